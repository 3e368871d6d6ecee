"""`bpe-conformance export`: writes the spec as plain JSON, for test runners in other languages."""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Merge, Model, gpt2_files, read_text, read_token
from bpe_conformance.fixtures.characters import has_surrogate
from bpe_conformance.fixtures.conventions import CONVENTIONS
from bpe_conformance.fixtures.files import write_folder, write_json
from bpe_conformance.fixtures.spec import CLASS_OF_OP, FOLDER, Case, Clause, Spec, spec_in

from .. import __version__
from ..cases.expectations import (
    LOOKUP_KEYS,
    TEXT_KEYS,
    TRAINING_KEYS,
    choice,
    chunkings,
    expected_ids,
    value_for,
    whole_text,
)
from ..command_error import CommandError
from ..command_line import check_replaced, print_lines, spec_argument
from ..properties.catalogue import PROPERTIES

SCHEMA = "export.schema.json"
MANIFEST = "manifest.json"
FORMAT = 1
Json = dict[str, Any]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "folder", type=Path, metavar="DIR", help="a directory that does not exist, or an earlier export to replace"
    )
    spec_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Write the export."""
    print_lines([export(options.spec, options.folder)])
    return 0


def export(folder: Path, target: Path) -> str:
    """Write the spec in `folder` as JSON to the directory `target`, and return a line that describes it.

    An earlier export is replaced, completely or not at all.

    Raises:
        CommandError: if `target` exists and is anything but an earlier export.
        NotWritten: an OSError, if it cannot be written.
    """
    check_replaced(target, "export", MANIFEST, "manifest")
    files = contents(spec_in(folder))
    write_folder(target, files)
    size = sum(map(len, files.values()))
    return f"{len(files)} files, {size / 1e6:.1f} MB, in {target.resolve()}"


def contents(spec: Spec) -> dict[str, bytes]:
    """Return file name → bytes: the same for the same spec, on any machine."""
    models: dict[str, Model] = {}
    documents: dict[str, Json] = {"clauses.json": _clauses(spec), "conventions.json": _conventions()}
    for section in spec.sections:
        cases = [_case(case, models) for case in spec.cases if case.clause.section == section.name]
        if cases:
            documents[f"cases/{section.name}.json"] = {"kind": "cases", "section": section.name, "cases": cases}
    documents |= {f"models/{name}.json": _model(name, model) for name, model in models.items()}
    files = {name: write_json(document) for name, document in documents.items()}
    files[SCHEMA] = (FOLDER / "schemas" / SCHEMA).read_bytes()
    texts = {name for case in spec.cases for name in _named_files(case.input)}
    files |= {f"texts/{name}": read_text({"file": name}).encode("utf-8") for name in sorted(texts)}
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
        {
            "id": property_.id,
            "clause": property_.clause_id,
            "class": property_.conformance_class,
            "needs": list(property_.needs),
        }
        for property_ in PROPERTIES
        if property_.clause_id in spec.clauses
    ]
    return {"kind": "clauses", "sections": sections, "laws": laws}


def _clause(clause: Clause) -> Json:
    return {
        "id": clause.id,
        "level": clause.level,
        "statement": clause.statement.strip(),
        "rationale": clause.rationale.strip(),
        "sources": list(clause.sources),
        "uncased": clause.uncased,
    }


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
    special = model.special_tokens
    return {
        "kind": "model",
        "name": name,
        "pattern": model.pattern,
        "special_tokens": None if special is None else list(map(_text, special)),
        "well_formed": model.well_formed,
        "ranks_by_bytes": model.ranks_by_bytes,
        "vocab": [[index, token.hex()] for index, token in model.vocab.items()],
        "merges": [_merge(merge) for merge in model.merges],
    }


def _merge(merge: Merge) -> list[str]:
    return [part.hex() for part in merge]


# Cases


def _case(case: Case, models: dict[str, Model]) -> Json:
    return {
        "id": case.id,
        "title": case.title,
        "since": case.since,
        "clause": case.clause.id,
        "level": case.level,
        "class": CLASS_OF_OP[case.op],
        "op": case.op,
        "model": None if case.model is None else _name(case.model, models),
        "input": _input(case),
        "expect": _expect(case.expect, case),
        "agrees": list(case.agrees),
        "by_hand": case.by_hand,
        "source": case.source,
        "note": case.note,
    }


def _text(text: str) -> str | Json:
    """Return a text as JSON: a string, or code points if it contains a surrogate.

    >>> _text("a"), _text(chr(0xD800))
    ('a', {'code_points': [55296]})
    """
    if has_surrogate(text):
        return {"code_points": [ord(char) for char in text]}
    return text


def _input(case: Case) -> Json:
    given = case.input
    if case.op == "train":
        return _training_input(given["train"])
    if case.op == "decode":
        return {"ids": given["ids"]}
    if case.op == "save":
        return {}
    if case.op == "batch":
        return {"texts": [_text(read_text(text)) for text in given["texts"]]}
    text = _text(whole_text(case))
    if case.op == "stream":
        return {"text": text, "chunkings": [list(map(_text, chunks)) for chunks in chunkings(case)]}
    if case.op == "encode_allowed":
        chosen = {name: "all" if tokens == "all" else list(map(_text, tokens)) for name, tokens in choice(case).items()}
        return {"text": text, **chosen}
    return {"text": text, "files": _files(case)} if case.op == "load" else {"text": text}


def _training_input(given: Mapping[str, Any]) -> Json:
    return {
        "text": _text(read_text(given["text"])),
        "vocab_size": given["vocab_size"],
        "special_tokens": [_text(read_text(token)) for token in given["special_tokens"]],
        "pattern": given.get("pattern", "gpt2"),
    }


def _files(case: Case) -> Json:
    """Return the exact content of the files that a loading case reads."""
    options = {key: value for key, value in case.input.items() if key != "text"}
    with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
        written = gpt2_files.write(case.table, Path(folder), **options)
        return {file.name: file.read_bytes().decode("utf-8") for file in written}


def _expect(expect: Mapping[str, Any], case: Case) -> Json:
    if "any_of" in expect:
        return {"any_of": [_expect(alternative, case) for alternative in expect["any_of"]]}
    keys = (*TRAINING_KEYS, *TEXT_KEYS) if case.op == "train" else LOOKUP_KEYS
    if "by_convention" in expect:
        values = {key: value_for(expect, key) for key in keys}
        return {"by_convention": {key: _value(value, case) for key, value in values.items() if value is not None}}
    value = _value(expect, case)
    if "merges" in value:
        return {"by_convention": dict.fromkeys(keys, value)}
    if "ids" in value:
        return {"by_convention": dict.fromkeys(keys if case.table.ranks_by_bytes else keys[:1], value)}
    return value


def _value(expect: Mapping[str, Any], case: Case) -> Json:
    """Return one value in full, with tokens in hexadecimal and stored ids inline."""
    if "merges" in expect:
        merges = [_merge((read_token(left), read_token(right))) for left, right in expect["merges"]]
        ids = {"ids": [[index, read_token(token).hex()] for index, token in expect["ids"]]} if "ids" in expect else {}
        return {"merges": merges, **ids}
    if "batch" in expect:
        return {"batch": [_encoded(row, case) for row in expect["batch"]]}
    if "ids" in expect or "stored" in expect:
        return _encoded(expect, case)
    if "text" in expect:
        text = read_text(expect["text"])
        data = read_token(expect["bytes"]) if "bytes" in expect else text.encode("utf-8")
        return {"text": _text(text), "bytes": data.hex()}
    if "with_new_ids" in expect:
        return {"with_new_ids": [read_token(token).hex() for token in expect["with_new_ids"]]}
    return dict(expect)


def _encoded(expect: Mapping[str, Any], case: Case) -> Json:
    ids = expected_ids(expect)
    if "tokens" in expect:
        return {"ids": ids, "tokens": [read_token(token).hex() for token in expect["tokens"]]}
    return {"ids": ids, "tokens": [case.table.vocab[index].hex() for index in ids]}


def _named_files(value: Any) -> Iterator[str]:
    """Yield the names of the text files that the input of a case uses."""
    if isinstance(value, Mapping):
        if set(value) == {"file"}:
            yield value["file"]
        for part in value.values():
            yield from _named_files(part)
    elif isinstance(value, list):
        for part in value:
            yield from _named_files(part)
