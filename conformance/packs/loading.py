"""Reads a pack for a run of the suite (`--bpe-pack DIR`)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from bpe_conformance.fixtures import Model
from bpe_conformance.fixtures.answers import LARGEST_ID
from bpe_conformance.fixtures.one_line import one_line, shortened
from bpe_conformance.fixtures.regular_file import read_regular
from bpe_conformance.fixtures.spec import FOLDER, Case, Clause
from bpe_conformance.fixtures.strict_json import SURROGATE, parse_json
from bpe_conformance.fixtures.yaml_file import SpecError

from ..command_error import CommandError
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
    if not _TABLE(table):
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
        if not _is_case(raw):
            raise SpecError(f"{file}: cases.{index} is not a case of encode, decode, stream or batch; {ANEW}")
        name, clause = raw["id"], clauses.get(raw["clause"])
        if name in seen:
            raise SpecError(f"{file}: cases.{index}: duplicate id {shortened(name)}; {ANEW}")
        seen.add(name)
        if clause is None:
            which = f"{shortened(name)} names the clause {shortened(raw['clause'])}"
            raise SpecError(f"{file}: {which}, which this version does not have; {ANEW}")
        yield Case(name, raw["title"], "1.0", clause, raw["op"], model, raw["input"], raw["expect"])


# Checks of the table and the cases. Validation with JSON Schema takes longer than the run.

Check = Callable[[Any], bool]

_HEX = re.compile("([0-9a-f]{2})*")


def _is_id(value: object) -> bool:
    """Return whether a value is an id."""
    return type(value) is int and 0 <= value <= LARGEST_ID


def _is_text(value: object) -> bool:
    """Return whether a value is a text without lone surrogates."""
    return isinstance(value, str) and not SURROGATE.search(value)


def _is_hex(value: object) -> bool:
    """Return whether a value is lower-case hexadecimal."""
    return isinstance(value, str) and _HEX.fullmatch(value) is not None


def _list_of(check: Check) -> Check:
    """Return a check for lists whose items all pass `check`."""
    return lambda value: isinstance(value, list) and all(map(check, value))


def _one_of(*forms: Mapping[str, Check]) -> Check:
    """Return a check for objects with exactly the members of one of `forms`."""

    def check(value: object) -> bool:
        if not isinstance(value, dict):
            return False
        fitting = (form for form in forms if form.keys() == value.keys())
        return any(all(one(value[name]) for name, one in form.items()) for form in fitting)

    return check


def _pair(first: Check, second: Check) -> Check:
    """Return a check for lists of two."""
    return lambda value: isinstance(value, list) and len(value) == 2 and first(value[0]) and second(value[1])


def _is_bytes(value: object) -> bool:
    return _is_text(value) or _one_of({"hex": _is_hex})(value)


def _is_cut(value: object) -> bool:
    return value in ("everywhere", "characters")


def _is_any(value: object) -> bool:
    return True


_IDS: Mapping[str, Check] = {"ids": _list_of(_is_id)}
_ENCODED = _one_of(_IDS, {"by_convention": _one_of({"pair": _one_of(_IDS), "bytes": _one_of(_IDS)})})

_TABLE = _one_of(
    {"kind": _is_text, "vocab": _list_of(_pair(_is_id, _is_hex)), "merges": _list_of(_pair(_is_hex, _is_hex))}
)
_INPUT: Mapping[str, Check] = {
    "encode": _one_of({"text": _is_text}),
    "stream": _one_of({"text": _is_text, "cut": _is_cut}, {"chunks": _list_of(_is_text)}),
    "decode": _one_of(_IDS),
    "batch": _one_of({"texts": _list_of(_is_text)}),
}
"""Operation → check of the input."""
_EXPECT: Mapping[str, Check] = {
    "encode": _ENCODED,
    "stream": _ENCODED,
    "decode": _one_of({"text": _is_text}, {"text": _is_text, "bytes": _is_bytes}),
    "batch": _one_of({"batch": _list_of(_one_of(_IDS))}),
}
"""Operation → check of the expectation."""
_TEXTS = dict.fromkeys(("id", "title", "clause", "op"), _is_text)
_CASE = _one_of({**_TEXTS, "input": _is_any, "expect": _is_any})


def _is_case(value: Any) -> bool:
    """Return whether a value is a case."""
    if not _CASE(value) or value["op"] not in _INPUT:
        return False
    return _INPUT[value["op"]](value["input"]) and _EXPECT[value["op"]](value["expect"])
