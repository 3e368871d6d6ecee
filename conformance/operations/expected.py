"""What a golden case expects: by convention, and with alternatives; one codec reads and writes the form of the YAML."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

from bpe_conformance.fixtures import Merge, Model, read_text, read_token, write_token
from bpe_conformance.fixtures.values import TEXTS

from ..answer import Acceptable, AnyError, Ids, Lossless, NewIds, Offsets, Rows, Text
from .setting import token_of


@dataclass(frozen=True)
class StoredIds:
    """The ids of a text under GPT-2's model, which a file stores because a case would be too long."""

    text: str  # the name of the file in `fixtures/texts`

    @property
    def ids(self) -> Ids:
        return Ids(tuple(_gpt2_ids()[self.text]["ids"]))


@cache
def _gpt2_ids() -> dict[str, Any]:
    stored: dict[str, Any] = json.loads((TEXTS / "gpt2-ids.json").read_text("utf-8"))
    return stored


@dataclass(frozen=True)
class Merges:
    """The merges of a training, in order; if the clause is about ids, with the entries that it adds."""

    merges: tuple[Merge, ...]
    entries: tuple[tuple[int, bytes], ...] | None = None  # with the default ids


@dataclass(frozen=True)
class Lazy:
    """The stream holds back little text."""

    kind: str = "lazy"


LAZY_KINDS = ("lazy", "early", "prompt", "held")
"""What a stream may hold back: text to encode (`lazy`); decoded text, by each of three rules."""


@dataclass(frozen=True)
class OwnTable:
    """The vocabulary and merges that the tokenizer was built from."""


Stored: TypeAlias = Acceptable | StoredIds | Merges | Lazy | OwnTable


@dataclass(frozen=True)
class Expected:
    """The correct answers of a golden case: key of a convention → alternatives; the key "" stands for every one."""

    values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.values)

    @property
    def alternatives(self) -> tuple[Stored, ...]:
        return next(iter(self.values.values()), ())

    @property
    def by_convention(self) -> bool:
        return "" not in self.values and bool(self.values)

    @property
    def is_computed(self) -> bool:
        """Whether the oracle computes it. Other cases state a rule, such as an error."""
        computed = (Ids, Text, Rows, Offsets, Merges)
        return all(
            len(values) == 1 and (isinstance(values[0], computed) or values[0] == AnyError("disallowed"))
            for values in self.values.values()
        )

    def under(self, key: str) -> tuple[Any, ...] | None:
        """Return the alternatives under a key, or None. Trainings with special tokens as text may be as without."""
        for known in (key, key.removesuffix("/text"), ""):
            if known in self.values:
                return tuple(value.ids if isinstance(value, StoredIds) else value for value in self.values[known])
        return None

    @classmethod
    def merged(cls, values: Mapping[str, tuple[Any, ...]]) -> Expected:
        """Return the expectation with as few keys as possible: one if all are equal; `…/text` only if it matters."""
        plain = {key: value for key, value in values.items() if not key.endswith("/text")}
        if all(plain.get(key.removesuffix("/text")) == value for key, value in values.items()):
            values = plain
        first = next(iter(values.values()), ())
        return cls({"": first} if all(value == first for value in values.values()) else dict(values))

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Expected:
        if not raw:
            return cls()
        if "by_convention" in raw:
            return cls({key: (_read(value),) for key, value in raw["by_convention"].items()})
        return cls({"": tuple(map(_read, raw.get("any_of", (raw,))))})

    def write(self, operation: Any, model: Model | None = None, with_tokens: bool = True) -> dict[str, Any]:
        """Return the form of the YAML; the bytes of `operation` are beside a text unless they are its UTF-8."""
        data = b"" if model is None else operation.data(model)
        model = model if with_tokens else None
        if self.by_convention:
            return {"by_convention": {key: _write(value, model, data) for key, (value,) in self.values.items()}}
        written = [_write(value, model, data) for value in self.alternatives]
        return {"any_of": written} if len(written) > 1 else written[0] if written else {}


def _read(raw: Mapping[str, Any]) -> Stored:
    if "error" in raw:
        return AnyError(raw["error"])
    if "with_new_ids" in raw:
        return NewIds(tuple(map(read_token, raw["with_new_ids"])))
    if "lossless" in raw:
        return Lossless()
    if kind := next((kind for kind in LAZY_KINDS if kind in raw), ""):
        return Lazy(kind)
    if "table" in raw:
        return OwnTable()
    if "stored" in raw:
        return StoredIds(raw["stored"])
    if "text" in raw:
        return Text(read_text(raw["text"]))
    if "batch" in raw:
        return Rows(tuple(tuple(row["ids"]) for row in raw["batch"]))
    if "offsets" in raw:
        return Offsets(tuple(raw["ids"]), tuple((start, end) for start, end in raw["offsets"]))
    if "merges" in raw:
        merges = tuple((read_token(left), read_token(right)) for left, right in raw["merges"])
        entries = tuple((index, read_token(token)) for index, token in raw["ids"]) if "ids" in raw else None
        return Merges(merges, entries)
    return Ids(tuple(raw["ids"]))


def _write(value: Stored, model: Model | None, data: bytes) -> dict[str, Any]:
    match value:
        case AnyError(reason):
            return {"error": reason}
        case NewIds(tokens):
            return {"with_new_ids": list(map(write_token, tokens))}
        case Lossless():
            return {"lossless": True}
        case Lazy(kind):
            return {kind: True}
        case OwnTable():
            return {"table": "same"}
        case StoredIds(text):
            return {"stored": text}
        case Text(text):
            return {"text": text} if text.encode("utf-8") == data else {"text": text, "bytes": write_token(data)}
        case Rows(rows):
            return {"batch": [_write_ids(row, model) for row in rows]}
        case Merges(merges, entries):
            written: dict[str, Any] = {"merges": [list(map(write_token, pair)) for pair in merges]}
            if entries is not None:
                written["ids"] = [[index, write_token(token)] for index, token in entries]
            return written
        case Ids(ids):
            return _write_ids(ids, model)
        case Offsets(ids, spans):
            return {**_write_ids(ids, model), "offsets": list(map(list, spans))}
    raise TypeError(f"YAML does not store {value}")


def _write_ids(ids: Sequence[int], model: Model | None) -> dict[str, Any]:
    if model is None:
        return {"ids": list(ids)}
    return {"tokens": [write_token(token_of(index, model) or b"") for index in ids], "ids": list(ids)}
