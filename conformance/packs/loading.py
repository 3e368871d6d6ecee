"""Reads a pack for a run of the suite (`--bpe-pack DIR`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from bpe_conformance.fixtures import Model
from bpe_conformance.fixtures.one_line import one_line, shortened
from bpe_conformance.fixtures.regular_file import read_regular
from bpe_conformance.fixtures.spec import FOLDER, Case, Clause
from bpe_conformance.fixtures.strict_json import parse_json
from bpe_conformance.fixtures.yaml_file import SpecError

from ..command_error import CommandError
from . import shapes
from .patterns import named
from .writing import CASES, FORMAT, MANIFEST, SCHEMA, TABLE

ANEW = "make the pack anew"


def load_cases(folder: Path, clauses: Mapping[str, Clause]) -> tuple[Case, ...]:
    """Return the cases of the pack in `folder`, all of one model.

    Args:
        folder: what `bpe-conformance pack` wrote.
        clauses: clause id → clause, of the spec.

    Raises:
        SpecError: one line, if it is no pack, or was changed since it was made.
    """
    manifest = _manifest(folder)
    table, cases = (_unchanged(folder / name, manifest["files"].get(name)) for name in (TABLE, CASES))
    model = _model(folder, manifest, table)
    return tuple(_cases(cases, model, clauses, folder / CASES))


def _read(file: Path, fix: str) -> tuple[bytes, Any]:
    """Return what stands in a file, and the value of its JSON."""
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
        raise SpecError(f"{file}: its sha256 is not the one in {MANIFEST}; it was changed: {ANEW}")
    return value


def _model(folder: Path, manifest: Mapping[str, Any], table: Any) -> Model:
    file = folder / TABLE
    if not shapes.TABLE(table):
        raise SpecError(f"{file}: its vocab is no list of ids and tokens, or its merges no list of pairs; {ANEW}")
    vocab = {index: bytes.fromhex(token) for index, token in table["vocab"]}
    if len(vocab) < len(table["vocab"]):
        raise SpecError(f"{file}: an id stands twice; {ANEW}")
    merges = tuple((bytes.fromhex(left), bytes.fromhex(right)) for left, right in table["merges"])
    known = set(vocab.values())
    for rank, (left, right) in enumerate(merges):
        if not known.issuperset((left, right, left + right)):
            raise SpecError(f"{file}: the vocabulary lacks a part or the result of merge {rank}; {ANEW}")
    special, file = manifest["special_tokens"], folder / MANIFEST
    for text, index in special.items():
        if not shapes.is_text(text) or vocab.get(index) != text.encode("utf-8"):
            raise SpecError(f"{file}: the special token {shortened(text)} is not that of {TABLE}; {ANEW}")
    try:
        pattern = named(manifest["pattern"]["regex"])
    except CommandError as error:
        raise SpecError(f"{file}: {error}") from None
    return Model(vocab, merges, tuple(special), pattern, manifest["model"])


def _cases(value: Any, model: Model, clauses: Mapping[str, Clause], file: Path) -> Iterator[Case]:
    if not isinstance(value, dict) or not isinstance(value.get("cases"), list):
        raise SpecError(f"{file}: cases: a list is wanted; {ANEW}")
    seen: set[str] = set()
    for place, raw in enumerate(value["cases"]):
        if not shapes.is_case(raw):
            raise SpecError(f"{file}: cases.{place} is no case of encode, decode, stream or batch; {ANEW}")
        name, clause = raw["id"], clauses.get(raw["clause"])
        if name in seen:
            raise SpecError(f"{file}: cases.{place}: the id {shortened(name)} stands twice; {ANEW}")
        seen.add(name)
        if clause is None:
            which = f"{shortened(name)} belongs to {shortened(raw['clause'])}"
            raise SpecError(f"{file}: {which}, which this version has not; {ANEW}")
        yield Case(name, raw["title"], "1.0", clause, raw["op"], model, raw["input"], raw["expect"])
