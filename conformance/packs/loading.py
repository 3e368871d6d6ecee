"""Reads a pack for a run of the suite (`--bpe-pack DIR`)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from bpe_conformance.fixtures import Model
from bpe_conformance.fixtures.answers import LARGEST_ID
from bpe_conformance.fixtures.characters import has_surrogate
from bpe_conformance.fixtures.one_line import one_line, shortened
from bpe_conformance.fixtures.regular_file import read_regular
from bpe_conformance.fixtures.strict_json import parse_json
from bpe_conformance.fixtures.yaml_file import SpecError

from ..command_error import CommandError
from ..operations import OPERATIONS, Expected
from ..spec import FOLDER, Case, Clause
from .patterns import named

SCHEMA = "pack.schema.json"
MANIFEST, TABLE, CASES = "pack.json", "table.json", "cases.json"
FORMAT = 1
ANEW = "make the pack again"


def load_cases(folder: Path, clauses: Mapping[str, Clause]) -> tuple[Case, ...]:
    """Return the cases of the pack in `folder`; all have one model.

    Args:
        folder: a directory that `bpe-conformance pack` wrote.
        clauses: clause id → clause, of the spec.

    Raises:
        SpecError: one line, if it is not a pack, or has changed since it was made.
    """
    manifest = _manifest(folder)
    table, cases = (_unchanged(folder / name, manifest["files"].get(name)) for name in (TABLE, CASES))
    model = _model(folder, manifest, table)
    return tuple(_cases(cases, model, clauses, folder / CASES))


def _read(file: Path, fix: str) -> tuple[bytes, Any]:
    """Return the bytes of a file, and the value of its JSON."""
    try:
        data = read_regular(file)
    except OSError as error:
        raise SpecError(f"{file}: cannot be read: {error.strerror}; {fix}") from None
    try:
        return data, parse_json(data.decode("utf-8"), str(file))
    except UnicodeDecodeError as error:
        raise SpecError(f"{file}: not UTF-8 at byte {error.start}; {fix}") from None
    except ValueError as error:
        raise SpecError(f"{error}; {fix}") from None


def _manifest(folder: Path) -> dict[str, Any]:
    file = folder / MANIFEST
    _, manifest = _read(file, "make a pack: bpe-conformance pack TABLE -o DIR")
    if isinstance(manifest, dict) and manifest.get("format", FORMAT) != FORMAT:
        raise SpecError(f"{file}: its format is {shortened(manifest['format'])}, not {FORMAT}; {ANEW}")
    schema = json.loads((FOLDER / "schemas" / SCHEMA).read_text("utf-8"))
    wrong = best_match(Draft202012Validator({**schema, "oneOf": [{"$ref": "#/$defs/manifest"}]}).iter_errors(manifest))
    if wrong is not None:
        where = ".".join(map(str, wrong.absolute_path)) or "document"
        raise SpecError(f"{file}: {one_line(f'{where}: {wrong.message}')}")
    return dict(manifest)


def _unchanged(file: Path, digest: str | None) -> Any:
    data, value = _read(file, "the pack is not complete")
    if hashlib.sha256(data).hexdigest() != digest:
        raise SpecError(f"{file}: its sha256 is not the one in {MANIFEST}; {ANEW}")
    return value


def _model(folder: Path, manifest: Mapping[str, Any], table: Any) -> Model:
    file = folder / TABLE
    if not _fits(table, _TABLE):
        raise SpecError(f"{file}: expected `vocab`, a list of ids and tokens, and `merges`, a list of pairs; {ANEW}")
    vocab = {index: bytes.fromhex(token) for index, token in table["vocab"]}
    if len(vocab) < len(table["vocab"]):
        raise SpecError(f"{file}: duplicate id; {ANEW}")
    merges = tuple((bytes.fromhex(left), bytes.fromhex(right)) for left, right in table["merges"])
    known = set(vocab.values())
    for rank, (left, right) in enumerate(merges):
        if not known.issuperset((left, right, left + right)):
            raise SpecError(f"{file}: the vocabulary lacks a part or the result of merge {rank}; {ANEW}")
    special, file = manifest["special_tokens"], folder / MANIFEST
    for text, index in special.items():
        if not _is_text(text) or vocab.get(index) != text.encode("utf-8"):
            raise SpecError(f"{file}: the special token {shortened(text)} does not have this id in {TABLE}; {ANEW}")
    try:
        pattern = named(manifest["pattern"]["regex"])
    except CommandError as error:
        raise SpecError(f"{file}: {error}") from None
    return Model(vocab, merges, tuple(special), pattern, manifest["model"])


def _cases(value: Any, model: Model, clauses: Mapping[str, Clause], file: Path) -> Iterator[Case]:
    if not isinstance(value, dict) or not isinstance(value.get("cases"), list):
        raise SpecError(f"{file}: cases: expected a list; {ANEW}")
    seen: set[str] = set()
    for index, raw in enumerate(value["cases"]):
        if not _fits(raw, _CASES):
            raise SpecError(f"{file}: cases.{index} is not a case of encode, decode, stream or batch; {ANEW}")
        name, clause = raw["id"], clauses.get(raw["clause"])
        if name in seen:
            raise SpecError(f"{file}: cases.{index}: duplicate id {shortened(name)}; {ANEW}")
        seen.add(name)
        if clause is None:
            which = f"{shortened(name)} names the clause {shortened(raw['clause'])}"
            raise SpecError(f"{file}: {which}, which this version does not have; {ANEW}")
        expected = Expected.read(raw["expect"])
        operation = OPERATIONS[raw["op"]].read(raw["input"])
        yield Case(name, raw["title"], "1.0", clause, operation, model, expected)


# Checks of the table and the cases. Validation with JSON Schema takes longer than the run.

_HEX = re.compile("([0-9a-f]{2})*")


def _fits(value: Any, shape: Any) -> bool:
    """Return whether a value has a shape.

    Args:
        value: of JSON.
        shape: a tuple of alternatives, an object with exactly these members, a list of one shape for all items or
            of one for each, a constant, or a check.
    """
    if isinstance(shape, tuple):
        return any(_fits(value, option) for option in shape)
    if isinstance(shape, dict):
        same = isinstance(value, dict) and value.keys() == shape.keys()
        return same and all(_fits(value[name], one) for name, one in shape.items())
    if not isinstance(shape, list):
        return bool(shape(value)) if callable(shape) else value == shape
    if not isinstance(value, list):
        return False
    if len(shape) > 1:
        return len(value) == len(shape) and all(map(_fits, value, shape))
    return all(map(shape[0], value)) if callable(shape[0]) else all(_fits(item, shape[0]) for item in value)


def _is_id(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_ID


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not has_surrogate(value)


def _is_hex(value: object) -> bool:
    return isinstance(value, str) and _HEX.fullmatch(value) is not None


_TABLE = {"kind": _is_text, "vocab": [[_is_id, _is_hex]], "merges": [[_is_hex, _is_hex]]}
_IDS = {"ids": [_is_id]}
_ENCODED = (_IDS, {"by_convention": {"pair": _IDS, "bytes": _IDS}})
_DECODED = ({"text": _is_text}, {"text": _is_text, "bytes": (_is_text, {"hex": _is_hex})})
_STREAMED = ({"text": _is_text, "cut": ("everywhere", "characters")}, {"chunks": [_is_text]})
_CASES = tuple(
    {"id": _is_text, "title": _is_text, "clause": _is_text, "op": op, "input": given, "expect": expect}
    for op, given, expect in (
        ("encode", {"text": _is_text}, _ENCODED),
        ("stream", _STREAMED, _ENCODED),
        ("decode", _IDS, _DECODED),
        ("batch", {"texts": [_is_text]}, {"batch": [_IDS]}),
    )
)
