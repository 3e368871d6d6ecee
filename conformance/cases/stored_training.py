"""Training on prose: the oracle learns hundreds of merges, which are too many for a case, so a file stores them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Merge, read_token, write_token
from bpe_conformance.fixtures.values import TEXTS
from bpe_conformance.reference import textbook

from ..operations import TRAINING_KEYS, conventions_of

FILE = TEXTS / "prose-merges.json"
TEXT_FILES = 14
SIZE = 256 + 760


def text(folder: Path = TEXTS) -> str:
    return "".join(file.read_bytes().decode("utf-8") for file in sorted(folder.glob("*.txt"))[:TEXT_FILES])


def merges(key: str) -> list[Merge]:
    """Return the merges that the oracle learns from it, without special tokens, under the convention `key`."""
    return [(read_token(left), read_token(right)) for left, right in _stored()[key.removesuffix("/text")]]


def compute(folder: Path = TEXTS) -> str:
    """Return the JSON of the file: the digest of the text, and a line of merges for each convention."""
    given = text(folder)
    rows: dict[str, Any] = {"sha256": hashlib.sha256(given.encode("utf-8")).hexdigest()}
    for key in TRAINING_KEYS:
        learned = textbook.learn(given, SIZE, (), PATTERNS["gpt2"], **conventions_of(key))
        rows[key] = [[write_token(left), write_token(right)] for left, right in learned]
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(row)}" for key, row in rows.items()) + "\n}\n"


@cache
def _stored() -> Mapping[str, Any]:
    stored: Mapping[str, Any] = json.loads(FILE.read_text("utf-8"))
    return stored
