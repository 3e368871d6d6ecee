"""Writes a pack as a folder of plain JSON: complete, or not there at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Model
from bpe_conformance.fixtures.saving import write_folder
from bpe_conformance.fixtures.spec import FOLDER

from .. import __version__
from ..command_error import CommandError
from .build import Pack, build
from .patterns import OWN
from .tables import Table
from .witnesses import Agreement, agree

SCHEMA = "pack.schema.json"
MANIFEST, TABLE, CASES = "pack.json", "table.json", "cases.json"
FORMAT = 1
Json = dict[str, Any]


def make(table: Table, seed: int, target: Path) -> list[str]:
    """Make the pack of a table and write it to the folder `target`, in place of a former pack there.

    Returns:
        list[str]: what is told of it: the table, the coverage, the engines.

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
    """Return JSON in ASCII with one line for each entry of what is long."""
    parts = []
    for key, value in document.items():
        text = json.dumps(value)
        if key in long:
            text = "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in value) + "\n ]"
        parts.append(f" {json.dumps(key)}: {text}")
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode("ascii")


def _lines(table: Table, pack: Pack, agreement: Agreement) -> list[str]:
    model, pattern = table.model, pack.pattern
    told = [
        f"model     {model.name}: {len(model.vocab):,} tokens, {len(model.merges):,} merges, pattern {model.pattern}"
    ]
    told += [f"source    {name} sha256 {digest}" for name, digest in table.sources.items()]
    told += [f"note      {note}" for note in table.notes]
    told += pack.coverage.lines()
    met = pattern["alternatives"]
    told.append(f"pattern   {met['met']} of {met['all']} alternatives matched, ")
    told[-1] += f"{pattern['told_apart']} of {pattern['mutants']} mistakes in it told apart"
    if pattern["not_told_apart"]:
        told[-1] += "; with the others every text that was tried has the same ids"
    silent = [name for name, count in pack.wrong.items() if not count]
    told.append(f"encoders  {len(pack.wrong) - len(silent)} of {len(pack.wrong)} wrong ways to merge told apart")
    if silent:
        told[-1] += f"; on this table no text that was tried tells {', '.join(silent)}"
    return told + agreement.lines()


def _check_target(target: Path) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise CommandError(f"{target} is a file; name a folder")
    foreign = sorted({file.name for file in target.iterdir()} - {MANIFEST, TABLE, CASES, SCHEMA})
    if foreign:
        raise CommandError(
            f"{target} holds {foreign[0]}, which is no part of a pack; name a folder that is new or empty"
        )
