"""`bpe-conformance pack`: makes a pack, golden cases for one model, and writes it as a directory of plain JSON."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Model, write_token
from bpe_conformance.fixtures.saving import write_folder
from bpe_conformance.fixtures.spec import FOLDER
from bpe_conformance.reference import textbook

from .. import __version__
from ..cases.expectations import LOOKUP_KEYS
from ..command_error import CommandError
from ..command_line import print_lines
from . import encoding_cases, other_cases, tables
from .draws import Draw
from .encoding_cases import Draft
from .loading import CASES, FORMAT, MANIFEST, SCHEMA, TABLE
from .patterns import OWN
from .reach import Coverage, Reach, measure
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
    parser.add_argument("-o", dest="folder", type=Path, required=True, metavar="DIR", help="created, or replaced")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="another seed gives other texts; default 0")
    parser.add_argument("--name", help="the name of the model, and the `model` of its adapters")
    tables.options(parser)


def run(options: argparse.Namespace) -> int:
    """Make the pack and print what it covers."""
    if options.seed < 0:
        raise CommandError(f"--seed {options.seed}: must be 0 or more")
    given = tables.given(options, options.name)
    print_lines(make(tables.read_table(options.table, given), options.seed, options.folder))
    return 0


def make(table: Table, seed: int, target: Path) -> list[str]:
    """Make the pack of a table and write it to the directory `target`, replacing an earlier pack.

    Returns:
        list[str]: lines that describe it: the table, the coverage, the engines.

    Raises:
        CommandError: if `target` holds anything but a pack, or an engine disagrees with the oracle.
        NotWritten: an OSError, if it cannot be written.
    """
    _check_target(target)
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
        model: the model that they test.
        cases: as in the file.
        coverage: how much of the vocabulary and the merges they reach.
        pattern: how many mistakes in the pattern they detect, and which alternatives they match.
        wrong: name of a wrong encoder → how many words it encodes incorrectly.
    """

    model: Model
    cases: list[Json]
    coverage: Coverage
    pattern: Mapping[str, Any]
    wrong: Mapping[str, int]


def build(model: Model, seed: int) -> Pack:
    """Return the pack of a model; the same for the same table and seed."""
    reach = Reach(model)
    words, wrong = encoding_cases.words(reach, _draw(seed, "words"))
    mistakes, pattern = encoding_cases.mistakes(reach, _draw(seed, "mistakes"))
    hard = [text for draft in (*words, *mistakes) for text in draft.texts]
    drafts = [
        *words,
        *mistakes,
        *other_cases.special(reach, _draw(seed, "specials")),
        *encoding_cases.raw(reach, _draw(seed, "raw")),
        *encoding_cases.scripts(reach, _draw(seed, "scripts")),
        *encoding_cases.real(reach),
        *encoding_cases.long(reach, _draw(seed, "long")),
        *encoding_cases.tokens(reach, _draw(seed, "tokens")),
        *other_cases.decoding(reach, _draw(seed, "decoding")),
        *other_cases.streams(reach, _draw(seed, "streams"), hard),
        *other_cases.batches(reach, _draw(seed, "batches")),
    ]
    texts = [text for draft in drafts for text in draft.texts]
    pattern = {**pattern, "alternatives": encoding_cases.alternatives_met(reach, texts)}
    return Pack(model, list(_cases(model, drafts)), measure(reach, texts), pattern, wrong)


def _draw(seed: int, what: str) -> Draw:
    return Draw(f"pack {seed} {what}")


def _cases(model: Model, drafts: list[Draft]) -> Iterator[Json]:
    oracle = Oracle(model)
    numbers: dict[str, int] = {}
    seen: set[str] = set()
    for draft in drafts:
        key = repr((draft.op, draft.input))
        if key in seen:
            continue
        seen.add(key)
        expect = oracle.expect(draft)
        if expect is None:
            continue
        numbers[draft.kind] = number = numbers.get(draft.kind, 0) + 1
        yield {
            "id": f"{model.name}-{draft.kind}-{number:04}",
            "title": draft.title,
            "clause": draft.clause,
            "op": draft.op,
            "input": draft.input,
            "expect": expect,
        }


class Oracle:
    """The textbook's answers with the lookup `pair` and, if the model allows it, `bytes`."""

    def __init__(self, model: Model) -> None:
        keys = LOOKUP_KEYS if model.ranks_by_bytes else LOOKUP_KEYS[:1]
        arguments = (model.vocab, model.merges, model.special_tokens, PATTERNS[model.pattern])
        self._by_lookup = {key: textbook.with_conventions(lookup=key)(*arguments) for key in keys}

    def expect(self, draft: Draft) -> Json | None:
        """Return the expectation of a case, or None for a batch on which the lookups differ."""
        if draft.op == "decode":
            tokenizer = self._by_lookup["pair"]
            text, data = tokenizer.decode(draft.input["ids"]), tokenizer.decode_bytes(draft.input["ids"])
            return {"text": text} if text.encode("utf-8") == data else {"text": text, "bytes": write_token(data)}
        found = {key: [one.encode(text) for text in draft.texts] for key, one in self._by_lookup.items()}
        same = all(ids == found["pair"] for ids in found.values())
        if draft.op == "batch":
            return {"batch": [{"ids": ids} for ids in found["pair"]]} if same else None
        if same:
            return {"ids": found["pair"][0]}
        return {"by_convention": {key: {"ids": ids[0]} for key, ids in found.items()}}


# The files


def contents(table: Table, pack: Pack, agreement: Agreement, seed: int) -> dict[str, bytes]:
    """Return file name → bytes: the same for the same table, seed and engines."""
    cases = {"kind": "cases", "cases": pack.cases}
    files = {
        TABLE: _rows(_table(table.model), ("vocab", "merges")),
        CASES: _rows(cases, ("cases",)),
        SCHEMA: (FOLDER / "schemas" / SCHEMA).read_bytes(),
    }
    model = table.model
    manifest = {
        "kind": "pack",
        "format": FORMAT,
        "model": model.name,
        "made_by": f"bpe-conformance {__version__}",
        "seed": seed,
        "source": {"format": table.format, "sha256": dict(table.sources)},
        "pattern": {"name": model.pattern if _of_spec(model.pattern) else None, "regex": PATTERNS[model.pattern]},
        "special_tokens": _special(model),
        "counts": {"tokens": len(model.vocab), "merges": len(model.merges), "cases": len(pack.cases)},
        "coverage": {
            **pack.coverage.json(),
            "pattern": dict(pack.pattern),
            "words_that_a_wrong_encoder_encodes_otherwise": dict(pack.wrong),
        },
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


def _of_spec(pattern: str) -> bool:
    return not pattern.startswith(OWN)


def _special(model: Model) -> dict[str, int]:
    ids = {token: index for index, token in model.vocab.items()}
    return {text: ids[text.encode("utf-8")] for text in model.special_tokens or ()}


def _table(model: Model) -> Json:
    return {
        "kind": "table",
        "vocab": [[index, token.hex()] for index, token in sorted(model.vocab.items())],
        "merges": [[left.hex(), right.hex()] for left, right in model.merges],
    }


def _rows(document: Mapping[str, Any], long: tuple[str, ...]) -> bytes:
    """Return JSON in ASCII with one line for each entry of the values under the keys `long`."""
    parts = []
    for key, value in document.items():
        text = json.dumps(value)
        if key in long:
            text = "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in value) + "\n ]"
        parts.append(f" {json.dumps(key)}: {text}")
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode("ascii")


def _lines(table: Table, pack: Pack, agreement: Agreement) -> list[str]:
    model, pattern = table.model, pack.pattern
    lines = [
        f"model     {model.name}: {len(model.vocab):,} tokens, {len(model.merges):,} merges, pattern {model.pattern}"
    ]
    lines += [f"source    {name} sha256 {digest}" for name, digest in table.sources.items()]
    lines += [f"note      {note}" for note in table.notes]
    lines += pack.coverage.lines()
    met = pattern["alternatives"]
    lines.append(f"pattern   {met['met']} of {met['all']} alternatives matched, ")
    lines[-1] += f"{pattern['told_apart']} of {pattern['mutants']} mistakes in it detected"
    if pattern["not_told_apart"]:
        lines[-1] += "; with the others, every text tried has the same ids"
    silent = [name for name, count in pack.wrong.items() if not count]
    lines.append(f"encoders  {len(pack.wrong) - len(silent)} of {len(pack.wrong)} wrong ways to merge detected")
    if silent:
        lines[-1] += f"; no text found for this table exposes {', '.join(silent)}"
    return lines + agreement.lines()


def _check_target(target: Path) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise CommandError(f"{target} is a file; name a directory")
    foreign = sorted({file.name for file in target.iterdir()} - {MANIFEST, TABLE, CASES, SCHEMA})
    if foreign:
        raise CommandError(f"{target} holds {foreign[0]}, which is not part of a pack; name a new or empty directory")
