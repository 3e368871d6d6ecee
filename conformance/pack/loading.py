"""Reads a pack for a run of the suite (`--bpe-pack DIR`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from bpe_conformance.fixtures import Model
from bpe_conformance.fixtures.spec import FOLDER, Case, Clause
from bpe_conformance.fixtures.yaml_file import SpecError
from bpe_conformance.pack.patterns import named
from bpe_conformance.pack.writing import CASES, FORMAT, MANIFEST, SCHEMA, TABLE
from bpe_conformance.tools.command_error import CommandError


def load_cases(folder: Path, clauses: Mapping[str, Clause]) -> tuple[Case, ...]:
    """Return the cases of the pack in `folder`, all of one model.

    Args:
        folder: what `bpe-conformance pack` wrote.
        clauses: clause id → clause, of the spec.

    Raises:
        SpecError: one line, if it is no pack, or was changed since it was made.
    """
    manifest = _manifest(folder)
    documents = {name: _unchanged(folder / name, manifest["files"].get(name)) for name in (TABLE, CASES)}
    model = _model(folder, manifest, documents[TABLE])
    return tuple(_case(raw, model, clauses, folder / CASES) for raw in documents[CASES]["cases"])


def _manifest(folder: Path) -> dict[str, Any]:
    file = folder / MANIFEST
    try:
        manifest = json.loads(file.read_bytes())
    except OSError as error:
        raise SpecError(
            f"{file}: cannot be read: {error.strerror}; make a pack: bpe-conformance pack TABLE -o DIR"
        ) from None
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{file}: not JSON: {error}") from None
    if isinstance(manifest, dict) and manifest.get("format", FORMAT) != FORMAT:
        raise SpecError(f"{file}: its format is {manifest['format']!a}, not {FORMAT}; make the pack anew")
    schema = json.loads((FOLDER / "schemas" / SCHEMA).read_text("utf-8"))
    wrong = best_match(Draft202012Validator({**schema, "oneOf": [{"$ref": "#/$defs/manifest"}]}).iter_errors(manifest))
    if wrong is not None:
        where = ".".join(map(str, wrong.absolute_path)) or "document"
        raise SpecError(f"{file}: {where}: {' '.join(wrong.message.split())[:200]}")
    return dict(manifest)


def _unchanged(file: Path, digest: str | None) -> dict[str, Any]:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise SpecError(f"{file}: cannot be read: {error.strerror}; the pack is not complete") from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise SpecError(f"{file}: its sha256 is not the one in {MANIFEST}; it was changed: make the pack anew")
    return dict(json.loads(data))


def _model(folder: Path, manifest: Mapping[str, Any], table: Mapping[str, Any]) -> Model:
    try:
        pattern = named(manifest["pattern"]["regex"])
    except CommandError as error:
        raise SpecError(f"{folder / MANIFEST}: {error}") from None
    merges = tuple((bytes.fromhex(left), bytes.fromhex(right)) for left, right in table["merges"])
    vocab = {index: bytes.fromhex(token) for index, token in table["vocab"]}
    return Model(vocab, merges, tuple(manifest["special_tokens"]), pattern, manifest["model"])


def _case(raw: Mapping[str, Any], model: Model, clauses: Mapping[str, Clause], file: Path) -> Case:
    clause = clauses.get(raw["clause"])
    if clause is None:
        raise SpecError(
            f"{file}: {raw['id']} belongs to {raw['clause']}, which this version has not; make the pack anew"
        )
    return Case(raw["id"], raw["title"], "1.0", clause, raw["op"], model, raw["input"], raw["expect"])
