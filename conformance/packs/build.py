"""`bpe-conformance pack`: makes a pack, golden cases for one model, and writes it as a directory of plain JSON."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Model
from bpe_conformance.fixtures.flow import write_json
from bpe_conformance.fixtures.saving import write_folder
from bpe_conformance.reference import textbook

from .. import __version__
from ..answer import Text
from ..command_error import CommandError
from ..command_line import check_replaced, print_lines
from ..operations import LOOKUP_KEYS, Decode, Expected
from ..spec import FOLDER
from . import encoding_cases, other_cases, tables
from .draws import Draw
from .encoding_cases import Draft, texts_of
from .loading import CASES, FORMAT, MANIFEST, SCHEMA, TABLE
from .patterns import OWN
from .reach import Reach, measure
from .tables import Table
from .witnesses import Agreement, agree

Json = dict[str, Any]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "table",
        nargs="+",
        metavar="TABLE",
        help="gpt2, cl100k or o200k; a directory or vocab.json merges.txt; a rank file (base64 rank); a tokenizer.json",
    )
    made = "a directory that does not exist, or an earlier pack to replace"
    parser.add_argument("-o", dest="folder", type=Path, required=True, metavar="DIR", help=made)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="another seed gives other texts; default 0")
    parser.add_argument("--name", help="the name of the model, and the `model` of its adapters")
    tables.options(parser)


def run(options: argparse.Namespace) -> int:
    """Make the pack and print what it covers."""
    if options.seed < 0:
        raise CommandError(f"--seed {options.seed}: must be 0 or more")
    check_replaced(options.folder, "pack", MANIFEST, "pack")
    given = tables.given(options, options.name)
    print_lines(make(tables.read_table(options.table, given), options.seed, options.folder))
    return 0


def make(table: Table, seed: int, target: Path) -> list[str]:
    """Make the pack of a table and write it to the directory `target`, which it replaces.

    Returns:
        list[str]: lines that describe it: the table, the coverage, the engines.

    Raises:
        CommandError: if an engine disagrees with the oracle.
        NotWritten: an OSError, if it cannot be written.
    """
    pack = build(table.model, seed)
    agreement = agree(table.model, pack.cases)
    files = contents(table, pack, agreement, seed)
    write_folder(target, files)
    size = sum(map(len, files.values()))
    return [*_lines(table, pack, agreement), f"written   {len(pack.cases):,} cases, {size / 1e6:.1f} MB, in {target}"]


# The cases


@dataclass(frozen=True)
class Pack:
    """The cases of a model, and what they cover.

    Attributes:
        cases: as in the file.
        coverage: how much of the vocabulary and the merges they reach, how many mistakes in the pattern they detect,
            and how many words each incorrect encoder gets wrong; as in the manifest.
    """

    cases: list[Json]
    coverage: Json


def build(model: Model, seed: int) -> Pack:
    """Return the pack of a model; the same for the same table and seed."""
    reach = Reach(model)
    draw = Draw(f"pack {seed}")
    words, wrong = encoding_cases.words(reach, draw)
    mistakes, pattern = encoding_cases.mistakes(reach, draw)
    hard = [draft.input["text"] for draft in (*words, *mistakes)]
    drafts = [
        *words,
        *mistakes,
        *other_cases.special(reach, draw),
        *encoding_cases.raw(draw),
        *encoding_cases.scripts(reach, draw),
        *encoding_cases.real(reach),
        *encoding_cases.long(draw),
        *encoding_cases.tokens(reach, draw),
        *other_cases.decoding(reach, draw),
        *other_cases.streams(reach, draw, hard),
        *other_cases.batches(reach, draw),
    ]
    texts = [text for draft in drafts for text in texts_of(draft.input)]
    coverage = {
        **measure(reach, texts),
        "pattern": {**pattern, "alternatives": encoding_cases.alternatives_met(reach, texts)},
        "words_that_a_wrong_encoder_encodes_otherwise": wrong,
    }
    return Pack(list(_cases(model, drafts)), coverage)


def _cases(model: Model, drafts: list[Draft]) -> Iterator[Json]:
    oracle = Oracle(model)
    numbers: Counter[str] = Counter()
    distinct: dict[str, Draft] = {}
    for draft in drafts:
        distinct.setdefault(repr((draft.op, draft.input)), draft)
    for draft in distinct.values():
        expect = oracle.expect(draft)
        if expect is None:
            continue
        numbers[draft.kind] += 1
        yield {
            "id": f"{model.name}-{draft.kind}-{numbers[draft.kind]:04}",
            "title": draft.title,
            "clause": draft.clause,
            "op": draft.op,
            "input": draft.input,
            "expect": expect,
        }


class Oracle:
    """The textbook's answers with the lookup `pair` and, if the model allows it, `bytes`."""

    def __init__(self, model: Model) -> None:
        self._model = model
        keys = LOOKUP_KEYS if model.ranks_by_bytes else LOOKUP_KEYS[:1]
        arguments = (model.vocab, model.merges, model.special_tokens, PATTERNS[model.pattern])
        self._by_lookup = {key: textbook.with_conventions(lookup=key)(*arguments) for key in keys}

    def expect(self, draft: Draft) -> Json | None:
        """Return the expectation of a case, or None for a batch on which the lookups differ."""
        if draft.op == "decode":
            text = Text(self._by_lookup["pair"].decode(draft.input["ids"]))
            return Expected({"": (text,)}).write(Decode(tuple(draft.input["ids"])), self._model)
        rows = {
            key: [{"ids": tokenizer.encode(text)} for text in texts_of(draft.input)]
            for key, tokenizer in self._by_lookup.items()
        }
        if draft.op == "batch":
            batches = list(rows.values())
            return {"batch": batches[0]} if batches.count(batches[0]) == len(batches) else None
        found = {key: row for key, [row] in rows.items()}
        first = next(iter(found.values()))
        return first if all(row == first for row in found.values()) else {"by_convention": found}


# The files


def contents(table: Table, pack: Pack, agreement: Agreement, seed: int) -> dict[str, bytes]:
    """Return file name → bytes: the same for the same table, seed and engines."""
    model = table.model
    files = {
        TABLE: write_json(_table(model)),
        CASES: write_json({"kind": "cases", "cases": pack.cases}),
        SCHEMA: (FOLDER / "schemas" / SCHEMA).read_bytes(),
    }
    name = None if model.pattern.startswith(OWN) else model.pattern
    manifest = {
        "kind": "pack",
        "format": FORMAT,
        "model": model.name,
        "made_by": f"bpe-conformance {__version__}",
        "seed": seed,
        "source": {"format": table.format, "sha256": dict(table.sources)},
        "pattern": {"name": name, "regex": PATTERNS[model.pattern]},
        "special_tokens": _special(model),
        "counts": {"tokens": len(model.vocab), "merges": len(model.merges), "cases": len(pack.cases)},
        "coverage": pack.coverage,
        "engines": {
            "oracle": "the textbook of bpe-conformance",
            "agree": agreement.asked,
            "not_asked": agreement.not_asked,
            "differ": agreement.differs,
        },
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())},
    }
    files[MANIFEST] = (json.dumps(manifest, ensure_ascii=True, indent=1) + "\n").encode("ascii")
    return dict(sorted(files.items()))


def _special(model: Model) -> dict[str, int]:
    return {text: model.ids[text.encode("utf-8")] for text in model.special_tokens or ()}


def _table(model: Model) -> Json:
    return {
        "kind": "table",
        "vocab": [[index, token.hex()] for index, token in sorted(model.vocab.items())],
        "merges": [[left.hex(), right.hex()] for left, right in model.merges],
    }


def _lines(table: Table, pack: Pack, agreement: Agreement) -> list[str]:
    model, coverage = table.model, pack.coverage
    pattern, wrong = coverage["pattern"], coverage["words_that_a_wrong_encoder_encodes_otherwise"]
    lines = [
        f"model     {model.name}: {len(model.vocab):,} tokens, {len(model.merges):,} merges, pattern {model.pattern}"
    ]
    lines += [f"source    {name} sha256 {digest}" for name, digest in table.sources.items()]
    lines += [f"note      {note}" for note in table.notes]
    lines += [_share("tokens", coverage["tokens"]), _share("merges", coverage["merges"])]
    for reason, found in coverage["not_reached"].items():
        lines.append(f"  {found['count']:>7,} tokens: {reason}, such as {', '.join(found['examples'][:3])}")
    met = pattern["alternatives"]
    others = "; with the others, all texts that were tried have the same ids" if pattern["not_told_apart"] else ""
    detected = f"{pattern['told_apart']} of {pattern['mutants']} mistakes in the pattern detected"
    lines.append(f"pattern   {met['met']} of {met['all']} alternatives matched, {detected}{others}")
    silent = [name for name, count in wrong.items() if not count]
    others = f"; no text was found that exposes {', '.join(silent)}" if silent else ""
    detected = f"{len(wrong) - len(silent)} of {len(wrong)} incorrect ways to merge detected"
    return [*lines, f"encoders  {detected}{others}", *agreement.lines()]


def _share(what: str, counts: Mapping[str, int]) -> str:
    possible = counts["all"] - counts["impossible"]
    share = f"{100 * counts['reached'] / possible:.2f} % of the possible ones" if possible else "none is possible"
    return f"{what:10}{counts['reached']:>9,} of {counts['all']:,} reached, {share}"
