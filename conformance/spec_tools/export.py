"""`bpe-conformance export`: writes the spec as plain JSON, for test runners in other languages."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Merge, Model
from bpe_conformance.fixtures.conventions import CONVENTIONS
from bpe_conformance.fixtures.files import write_folder, write_json
from bpe_conformance.fixtures.one_line import counted
from bpe_conformance.fixtures.values import spelled
from bpe_conformance.reference.formats import huggingface

from .. import __version__
from ..answer import Ids, NewIds, Offsets, Rows, Text
from ..command_line import CommandError, check_replaced, print_lines
from ..operations import LOOKUP_KEYS, TEXT_KEYS, TRAINING_KEYS, Expected, Merges, StoredIds, token_of
from ..operations.operation import plain
from ..properties import PROPERTIES
from ..spec import SCHEMAS, Case, Clause, Spec, spec_in
from . import spec_argument

SCHEMA = "export.schema.json"
MANIFEST = "manifest.json"
FORMAT = 1
Json = dict[str, Any]


def arguments(parser: argparse.ArgumentParser) -> None:
    made = "a directory that does not exist, or an earlier export to replace"
    parser.add_argument("folder", type=Path, metavar="DIR", help=made)
    spec_argument(parser)


def run(options: argparse.Namespace) -> int:
    print_lines([export(options.spec, options.folder)])
    return 0


def export(folder: Path, target: Path) -> str:
    check_replaced(target, "export", MANIFEST, "manifest")
    files = contents(spec_in(folder))
    write_folder(target, files)
    return f"{counted(len(files), 'file')}, {sum(map(len, files.values())) / 1e6:.1f} MB, in {target.resolve()}"


def contents(spec: Spec) -> dict[str, bytes]:
    """Return file name → bytes: the same for the same spec, on any machine."""
    models: dict[str, Model] = {}
    documents: dict[str, Json] = {"clauses.json": _clauses(spec), "conventions.json": _conventions()}
    for section in spec.sections:
        if cases := [_case(case, models) for case in spec.cases if case.clause.section == section.name]:
            documents[f"cases/{section.name}.json"] = {"kind": "cases", "section": section.name, "cases": cases}
    documents |= {f"models/{name}.json": _model(name, model) for name, model in models.items()}
    files = {name: write_json(document) for name, document in documents.items()}
    files[SCHEMA] = (SCHEMAS / SCHEMA).read_bytes()
    texts = (pair for case in spec.cases for pair in spelled(case.raw["input"]))
    files |= {f"texts/{spelling['file']}": text.encode("utf-8") for text, spelling in texts if "file" in spelling}
    files[MANIFEST] = write_json(_manifest(spec, models, files))
    return dict(sorted(files.items()))


def _manifest(spec: Spec, models: Mapping[str, Model], files: Mapping[str, bytes]) -> Json:
    return {
        "kind": "manifest",
        "format": FORMAT,
        "name": "bpe-conformance",
        "version": __version__,
        "counts": {"clauses": len(spec.clauses), "cases": len(spec.cases), "models": len(models)},
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())},
    }


def _clauses(spec: Spec) -> Json:
    sections = [
        {"name": part.name, "title": part.title, "intro": part.intro, "clauses": list(map(_clause, part.clauses))}
        for part in spec.sections
    ]
    laws = [
        {"id": law.id, "clause": law.clause_id, "class": law.conformance_class, "needs": list(law.needs)}
        for law in PROPERTIES
        if law.clause_id in spec.clauses
    ]
    return {"kind": "clauses", "sections": sections, "laws": laws}


def _clause(clause: Clause) -> Json:
    texts = {"statement": clause.statement.strip(), "rationale": clause.rationale.strip()}
    return {"id": clause.id, "level": clause.level, **texts, "sources": list(clause.sources), "uncased": clause.uncased}


def _conventions() -> Json:
    return {
        "kind": "conventions",
        "conventions": {name: list(values) for name, values in CONVENTIONS.items()},
        "training_keys": [*TRAINING_KEYS, *TEXT_KEYS],
        "lookup_keys": list(LOOKUP_KEYS),
        "patterns": PATTERNS,
    }


# Models


def _name(model: Model, models: dict[str, Model]) -> str:
    """Return the name of a model, its own or one derived from its content, and add the model under this name."""
    name = model.name or f"inline-{hashlib.sha256(json.dumps(_model('', model)).encode()).hexdigest()[:12]}"
    if models.setdefault(name, model) != model:
        raise CommandError(f"two models have the name {name}; rename one of them")
    return name


def _model(name: str, model: Model) -> Json:
    special = None if model.special_tokens is None else plain(model.special_tokens)
    named = {"kind": "model", "name": name, "pattern": model.pattern, "special_tokens": special}
    traits = {"well_formed": model.well_formed, "ranks_by_bytes": model.ranks_by_bytes}
    vocab = [[index, token.hex()] for index, token in model.vocab.items()]
    written = {**named, **traits, "vocab": vocab, "merges": list(map(_merge, model.merges))}
    if model.pipeline is not None:
        written |= {"pipeline": model.pipeline.write(), "tokenizer_json": huggingface.either_spelling(model)}
    return written


def _merge(merge: Merge) -> list[str]:
    return [part.hex() for part in merge]


# Cases


def _case(case: Case, models: dict[str, Model]) -> Json:
    named = {"id": case.id, "title": case.title, "since": case.since, "clause": case.clause.id, "level": case.level}
    about = {"agrees": list(case.agrees), "by_hand": case.by_hand, "source": case.source, "note": case.note}
    return {
        **named,
        "class": case.conformance_class,
        "op": case.operation.name,
        "model": None if case.model is None else _name(case.model, models),
        "input": case.operation.exported(case.model),
        "expect": _expected(case),
        **about,
    }


def _expected(case: Case) -> Json:
    expected = case.expected
    keys = (*TRAINING_KEYS, *TEXT_KEYS) if case.question.is_training else LOOKUP_KEYS
    if expected.by_convention:
        values = {key: expected.under(key) for key in keys}
        return {"by_convention": {key: _value(one[0], case) for key, one in values.items() if one is not None}}
    if not case.question.is_training:
        keys = tuple(case.operation.keys(case.model))
    made = [_value(value, case) for value in expected.alternatives]
    every = [{"by_convention": dict.fromkeys(keys, one)} if "merges" in one or "ids" in one else one for one in made]
    return {"any_of": every} if len(every) > 1 else every[0]


def _value(value: Any, case: Case) -> Json:
    """Return one value in full, with tokens in hexadecimal and stored ids inline."""
    match value:
        case Merges(merges, entries):
            ids = {} if entries is None else {"ids": [[index, token.hex()] for index, token in entries]}
            return {"merges": list(map(_merge, merges)), **ids}
        case Rows(rows):
            return {"batch": [_encoded(row, case) for row in rows]}
        case Ids(ids) | StoredIds(ids=Ids(ids)):
            return _encoded(ids, case)
        case Offsets(ids, spans):
            return {**_encoded(ids, case), "offsets": list(map(list, spans))}
        case Text(text):
            return {"text": plain(text), "bytes": case.operation.data(case.table).hex()}
        case NewIds(tokens):
            return {"with_new_ids": [token.hex() for token in tokens]}
    return Expected({"": (value,)}).write(case.operation, case.model)


def _encoded(ids: Sequence[int], case: Case) -> Json:
    return {"ids": list(ids), "tokens": [(token_of(index, case.table) or b"").hex() for index in ids]}
