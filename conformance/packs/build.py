"""`bpe-conformance pack`: makes a pack, golden cases for one model, and writes it as a directory of plain JSON."""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import regex

from bpe_conformance.adapters import AdapterError, resolve
from bpe_conformance.fixtures import PATTERNS, Model
from bpe_conformance.fixtures.conventions import DEFAULTS
from bpe_conformance.fixtures.expression import pattern_name
from bpe_conformance.fixtures.files import write_files, write_folder, write_json
from bpe_conformance.fixtures.one_line import counted, plural
from bpe_conformance.reference import textbook
from bpe_conformance.reference.formats import gguf, huggingface

from .. import __version__
from ..answer import Ids
from ..command_line import CommandError, check_replaced, print_lines
from ..operations import Encode, Entries, Expected, Operation, oracle
from ..spec import SCHEMAS, Case, installed_spec
from ..spec_tools import witnesses
from ..spec_tools.witnesses import Witness
from ..terminal.show import text_line
from . import cases, files
from .cases import Draft, Draw
from .files import CASES, MANIFEST, SCHEMA, TABLE, TOKENIZER, ModelSource, model_size
from .reach import Reach, measure, text_of

Json = dict[str, Any]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", nargs="+", metavar="TABLE", help=files.NAMED)
    made = "a directory that does not exist, or an earlier pack to replace"
    parser.add_argument("-o", dest="folder", type=Path, required=True, metavar="DIR", help=made)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="another seed gives other texts; default 0")
    parser.add_argument("--name", help="the name of the model, and the `model` of its adapters")
    tests = "also write FILE.inp and FILE.out, which llama.cpp's test-tokenizer-0 reads for the vocabulary FILE"
    parser.add_argument("--llamacpp", dest="tests", type=Path, metavar="FILE", help=tests)
    files.add_options(parser)


def run(options: argparse.Namespace) -> int:
    if options.seed < 0:
        raise CommandError(f"--seed {options.seed}: must be 0 or more")
    check_replaced(options.folder, "pack", MANIFEST, "pack")
    source = files.read_model_files(options.table, files.overrides(options, options.name))
    print_lines(make(source, options.seed, options.folder, options.tests))
    return 0


def make(source: ModelSource, seed: int, target: Path, tests: Path | None = None) -> list[str]:
    table = model_files(source)
    pack = build(source.model, seed)
    agreement = agree(source.model, pack.cases, engines())
    contents = documents(source, pack, agreement, seed, table)
    write_folder(target, contents)
    size = sum(map(len, contents.values())) / 1e6
    written = [f"written   {counted(len(pack.cases), 'case')}, {size:.1f} MB, in {target}"]
    if tests is not None:
        rendered = gguf.tests(_ordinary(pack.cases))
        write_files(tests.parent, {f"{tests.name}{end}": text.encode() for end, text in rendered.items()})
        written.append(f"written   {' and '.join(f'{tests}{end}' for end in rendered)}, for test-tokenizer-0")
    return [*_lines(source, pack, agreement), *written]


def _ordinary(cases: Sequence[Case]) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield the texts without special tokens, and their ids by the merges."""
    for case in cases:
        special = case.table.special_tokens or ()
        for operation, right in _single(case, case.expected.under("pair") or ()):
            if isinstance(operation, Encode) and isinstance(right, Ids) and not any(map(operation.text.count, special)):
                yield operation.text, right.ids


# The cases


@dataclass(frozen=True)
class Pack:
    cases: list[Case]
    coverage: Json
    entries: Sequence[int] = ()  # the ids of the entries that are texts
    others: Mapping[int, Expected] = field(default_factory=dict)  # those whose text has not their id alone


def build(model: Model, seed: int) -> Pack:
    reach, draw = Reach(model), Draw(f"pack {seed}")
    forms = model.pipeline.normalizer if model.pipeline is not None else ()
    texts = {index: text_of(token) for index, token in sorted(model.vocab.items())}
    texts = {index: text for index, text in texts.items() if text and not reach.is_open(text)}
    entries = {index: reach.expected(Encode(text)) for index, text in texts.items()}
    others = {index: one for index, one in entries.items() if one != Expected({"": (Ids((index,)),)})}
    alone = {model.vocab[index] for index in entries.keys() - others.keys()}
    words, wrong = cases.words(reach, draw)
    mistakes, pattern, detected = cases.mistakes(reach, draw)
    hard = [text for draft in (*words, *mistakes) for text in draft.operation.texts()]
    drafts = [
        *words,
        *mistakes,
        *cases.special(reach, draw),
        *cases.raw(draw, forms),
        *cases.scripts(reach, draw),
        *cases.real(reach),
        *cases.long(draw),
        *cases.tokens(reach, draw, alone),
        *cases.decoding(reach, draw),
        *cases.streams(reach, draw, hard),
        *cases.batches(reach, draw),
        *cases.detokenizing(reach, draw),
        *cases.offsets(reach, draw, hard),
    ]
    asked = [text for draft in drafts for text in draft.operation.texts()]
    coverage = {
        **measure(reach, asked, alone),
        "pattern": {**pattern, "alternatives": cases.alternatives_met(reach, asked)},
        "words_that_a_wrong_encoder_encodes_otherwise": wrong,
        **({"texts_that_a_wrong_pipeline_encodes_otherwise": detected} if detected else {}),
    }
    clause = installed_spec().clauses[files.ENTRIES_CLAUSE]
    made = [*answered(reach, drafts), *files.entry_cases(model, texts, others, clause)]
    return Pack(made, coverage, tuple(entries), others)


def answered(reach: Reach, drafts: Iterable[Draft]) -> Iterator[Case]:
    """Yield the cases of drafts that differ. By convention, a pack stores only ids."""
    model, clauses = reach.model, installed_spec().clauses
    numbers: Counter[str] = Counter()
    distinct: dict[Operation, Draft] = {}
    for draft in drafts:
        if not any(map(reach.is_open, draft.operation.texts())):
            distinct.setdefault(draft.operation, draft)
    for operation, draft in distinct.items():
        expected = reach.expected(operation)
        if not expected.by_convention or isinstance(expected.alternatives[0], Ids):
            numbers[draft.kind] += 1
            name = f"{model.name}-{draft.kind}-{numbers[draft.kind]:04}"
            yield Case(name, draft.title, files.SINCE, clauses[draft.clause], operation, model, expected)


# The engines


@dataclass
class Agreement:
    asked: dict[str, Json] = field(default_factory=dict)  # package → version, lookup, number of cases it confirms
    not_asked: dict[str, str] = field(default_factory=dict)  # package → why it was not asked
    differs: list[Json] = field(default_factory=list)  # the cases in which an engine differs for a known reason

    def lines(self) -> list[str]:
        lines = [
            f"agrees    {name} {one['version']} ({one['lookup']} lookup) in {counted(one['agrees'], 'case')}"
            for name, one in self.asked.items()
        ]
        lines += [f"not run   {name}: {why}" for name, why in self.not_asked.items()]
        for reason in dict.fromkeys(row["reason"] for row in self.differs):
            differing = [row for row in self.differs if row["reason"] == reason]
            cases_of = {row["case"] for row in differing}  # one of entries can differ in several
            lines.append(f"differs   {differing[0]['engine']} in {counted(len(cases_of), 'case')}: {reason}")
        return lines


def engines() -> list[Witness]:
    """Return the witnesses of `regenerate` that encode; a pack may ask any version of them."""
    return [witness for witness in witnesses.load_witnesses() if "encode" in witness.asked]


def agree(model: Model, cases: Sequence[Case], asked: Sequence[Witness]) -> Agreement:
    agreement = Agreement()
    witnesses.build.cache_clear()  # an equal model of an earlier pack would be compared entry by entry at each look-up
    for witness in asked:
        lookup = witness.asked["encode"]
        target = _built(witness.adapter, lookup, model)
        if isinstance(target, str):
            agreement.not_asked[witness.package] = target
            continue
        differs = [row for case in cases for row in _differences(target, case, witness)]
        agreement.asked[witness.package] = {
            "version": importlib.metadata.version(witness.package),
            "lookup": lookup if model.pipeline is None or lookup == "bytes" else model.pipeline.lookup,
            "agrees": len(cases) - len({row["case"] for row in differs}),
        }
        agreement.differs += differs
    return agreement


def _built(adapter: str, lookup: str, model: Model) -> Any:
    is_whole = model.pipeline is not None and model.pipeline.lookup == "whole"  # which may give the same ids
    if lookup == "bytes" and not model.ranks_by_bytes and not is_whole:
        return "its lookup by bytes cannot represent this model"
    try:
        target = resolve(adapter)
        witnesses.build(target, model)
    except AdapterError as error:
        return str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of native code is not an Exception
        return f"it rejects the model or the pattern: {' '.join(str(error).split())[:160]}"
    return target


def _differences(target: Any, case: Case, witness: Witness) -> Iterator[Json]:
    for operation, right in _single(case, case.expected.under(witness.asked["encode"]) or ()):
        answer = witnesses.ask(target, operation, case.table, right)
        if answer is None or answer.agrees:
            continue
        if not (reason := _known_reason(operation, case.table, witness, answer.got)):
            got, expected, asked = (text_line(str(one)) for one in (answer.got, answer.expected, operation.write()))
            both = f"{witness.package} gives {got}, the textbook {expected} for {asked}"
            raise CommandError(f"{case.id}: {both}; no pack is written")
        yield {"engine": witness.package, "case": case.id, "reason": reason}


def _single(case: Case, expected: Sequence[Any]) -> Sequence[tuple[Operation, Any]]:
    """Return the operation of a case and its expected value; for entries, those of each."""
    (right,) = expected
    if isinstance(case.operation, Entries):
        return list(zip(map(Encode, case.operation.entries), map(Ids, right.rows), strict=True))
    return [(case.operation, right)]


def _known_reason(operation: Operation, model: Model, witness: Witness, got: Any) -> str:
    added = {text.encode("utf-8") for text in model.special_tokens or () if not text.isascii()}
    if any(model.vocab.get(index) in added for index in dict(operation.arguments()).get("ids", ())):
        return "it decodes added tokens that are not ASCII as mapped characters"
    if witness.package != "tiktoken":
        return ""
    texts = operation.texts()
    if model.pipeline is not None:
        by_bytes = oracle(model, {**DEFAULTS, "lookup": "bytes"})
        return "it merges by the ids of tokens" if got == list(map(by_bytes.encode, texts)) else ""
    for text in texts:
        if witnesses.is_ambiguous(model, text):
            return "if two special tokens begin at one position, it chooses by hash order"
        ordinary = (part for part, special in textbook.cut_special(text, model.special_tokens or ()) if not special)
        if any(regex.sub(model.expression, "", part) for part in ordinary):
            return "it drops text that the pattern does not match"
    return ""


# The files


def model_files(source: ModelSource) -> dict[str, bytes]:
    model = source.model
    if model.pipeline is None:
        vocab = [[index, token.hex()] for index, token in sorted(model.vocab.items())]
        merges = [[left.hex(), right.hex()] for left, right in model.merges]
        return {TABLE: write_json({"kind": "table", "vocab": vocab, "merges": merges})}
    try:
        return {TOKENIZER: huggingface.rendered(model).encode("utf-8")}
    except ValueError as error:
        raise CommandError(f"{', '.join(source.sources)}: a pack has a {TOKENIZER}, but {error}") from None


def documents(
    source: ModelSource, pack: Pack, agreement: Agreement, seed: int, table: Mapping[str, bytes]
) -> dict[str, bytes]:
    model = source.model
    written = [case for case in pack.cases if not isinstance(case.operation, Entries)]
    # entry n of a run of consecutive ids has an id that is n more than that of its first
    runs = [list(run) for _, run in groupby(enumerate(pack.entries), lambda entry: entry[1] - entry[0])]
    others = [{"id": index, "expect": one.write(None, with_tokens=False)} for index, one in pack.others.items()]
    entries = {"ids": [[run[0][1], run[-1][1]] for run in runs], "otherwise": others}
    stored = write_json({"kind": "cases", "cases": list(map(_written, written)), "entries": entries})
    contents = {CASES: stored, SCHEMA: (SCHEMAS / SCHEMA).read_bytes(), **table}
    pattern = {"name": model.pattern if model.pattern in PATTERNS else None, "regex": model.expression}
    sizes = {"tokens": model.vocab, "merges": model.merges, "cases": pack.cases, "entries": pack.entries}
    asked = {"agree": agreement.asked, "not_asked": agreement.not_asked, "differ": agreement.differs}
    manifest = {
        "kind": "pack",
        "format": files.FORMAT,
        "model": model.name,
        "made_by": f"bpe-conformance {__version__}",
        "seed": seed,
        "source": {"format": source.format, "sha256": dict(source.sources)},
        **({"pattern": pattern} if model.pipeline is None else {}),
        "special_tokens": model.special_ids,
        "counts": {name: len(part) for name, part in sizes.items()},
        "coverage": pack.coverage,
        "engines": {"oracle": "the textbook of bpe-conformance", **asked},
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(contents.items())},
    }
    contents[MANIFEST] = (json.dumps(manifest, ensure_ascii=True, indent=1) + "\n").encode("ascii")
    return dict(sorted(contents.items()))


def _written(case: Case) -> Json:
    named = {"id": case.id, "title": case.title, "clause": case.clause.id, "op": case.operation.name}
    expect = case.expected.write(case.operation, case.model, with_tokens=False)
    return {**named, "input": case.operation.write(), "expect": expect}


def _lines(source: ModelSource, pack: Pack, agreement: Agreement) -> list[str]:
    model, coverage = source.model, pack.coverage
    pattern, wrong = coverage["pattern"], coverage["words_that_a_wrong_encoder_encodes_otherwise"]
    lines = [f"model     {model.name}: {model_size(model)}, {_splits(model)}"]
    lines += [f"source    {name} sha256 {digest}" for name, digest in source.sources.items()]
    lines += [f"note      {note}" for note in source.notes]
    alone = len(pack.entries) - len(pack.others)
    lines += [f"entries   {len(pack.entries):,} are texts: {alone:,} give their id alone, {len(pack.others):,} others"]
    lines += [_share("tokens", "occur", coverage["tokens"]), _share("merges", "apply", coverage["merges"])]
    for reason, found in coverage["not_reached"].items():
        tokens = f"{found['count']:>7,} {plural(found['count'], 'token')}"
        lines.append(f"  {tokens} {reason}, such as {', '.join(found['examples'][:3])}")
    met = pattern["alternatives"]
    changed, detected = pattern["mutants"], pattern["told_apart"]
    others = f", and {changed - detected} the same for every text that was tried" if changed > detected else ""
    changes = f"{detected} of {changed} changed patterns give other ids{others}"
    lines.append(f"pattern   {met['met']} of {met['all']} alternatives matched; {changes}")
    silent = [name for name, count in wrong.items() if not count]
    others = f"; no text was found that exposes {', '.join(silent)}" if silent else ""
    lines.append(f"encoders  {len(wrong) - len(silent)} of {len(wrong)} incorrect ways to merge detected{others}")
    if pipelines := coverage.get("texts_that_a_wrong_pipeline_encodes_otherwise"):
        shown = [name for name, count in pipelines.items() if count]
        lines.append(f"settings  {len(shown)} of {len(pipelines)} mistakes in other steps detected: {', '.join(shown)}")
    return [*lines, *agreement.lines()]


def _splits(model: Model) -> str:
    if (pipeline := model.pipeline) is None:
        return f"pattern {pattern_name(model.pattern)}"
    forms = " and ".join(pipeline.normalizer) or "no normalizer"
    return f"{forms}, {counted(len(pipeline.steps), 'split step')}, lookup {pipeline.lookup}"


def _share(what: str, does: str, counts: Mapping[str, int]) -> str:
    possible = counts["all"] - counts["impossible"]
    share = f"{100 * counts['reached'] / possible:.2f} % of those that can" if possible else "none can"
    return f"{what:10}{counts['reached']:>9,} of {counts['all']:,} {does} in answers, {share}"
