"""Training: the merges, and the vocabulary that comes with them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

from bpe_conformance.fixtures import PATTERNS, Merge, Model, read_token, write_token
from bpe_conformance.fixtures.conventions import CONVENTIONS, DEFAULTS
from bpe_conformance.fixtures.values import TEXTS
from bpe_conformance.reference import textbook

from ..answer import Acceptable, Answer, Divergence, HighestCount, Table, TrainingDivergence
from ..implementation.implementation import Implementation
from . import divergence
from .expected import Expected, Merges
from .operation import Call, Changes, Operation
from .setting import Conventions, Setting

TRAINING_KEYS = ("lex-greater", "lex-smaller", "smaller-ids", "smaller-ids/gpt2", "first-seen")
TEXT_KEYS = tuple(f"{key}/text" for key in TRAINING_KEYS)
"""The keys with `train_special` text. A case has them only where special tokens in its text make a difference."""


def training_key(conventions: Conventions) -> str:
    """Return the key under which a training case has the value for these conventions."""
    tie_break = conventions["tie_break"]
    order = "/gpt2" if (tie_break, conventions["byte_order"]) == ("smaller-ids", "gpt2") else ""
    return tie_break + order + ("/text" if conventions["train_special"] == "text" else "")


def tie_clause(conventions: Conventions) -> str:
    """Return the id of the clause that defines the declared `tie_break`."""
    return "TRAIN-TIE-1" if conventions["tie_break"] == DEFAULTS["tie_break"] else "TRAIN-TIE-2"


def conventions_of(key: str) -> dict[str, str]:
    """Return the conventions that decide the merges of a training under `key`, one of `TRAINING_KEYS` or `TEXT_KEYS`.

    >>> conventions_of("smaller-ids/gpt2/text")
    {'tie_break': 'smaller-ids', 'byte_order': 'gpt2', 'train_special': 'text'}
    """
    tie_break, *others = key.split("/")
    byte_order = "gpt2" if "gpt2" in others else "raw"
    train_special = "text" if "text" in others else "boundary"
    return {"tie_break": tie_break, "byte_order": byte_order, "train_special": train_special}


@dataclass(frozen=True)
class Train(Operation):
    """`train(text, vocab_size, special_tokens, pattern=…)`."""

    text: str
    vocab_size: int
    special: tuple[str, ...] = ()
    pattern: str = "gpt2"
    name, needs, conformance_class, prefix = "train", ("train",), "trainer", "train-"
    view = "--tie-break"
    spelled: ClassVar[Mapping[str, str]] = {"special": "special_tokens"}

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Operation:
        return super().read(raw["train"])

    def write(self) -> dict[str, Any]:
        return {"train": {key: value for key, value in super().write().items() if (key, value) != ("pattern", "gpt2")}}

    @contextmanager
    def receiver(self, implementation: Implementation, model: Model | None) -> Iterator[Implementation]:
        yield implementation

    def of(self, receiver: Implementation) -> Answer:
        return receiver.train(self.text, self.vocab_size, self.special, self.pattern).table

    def call(self) -> Call:
        keywords = {"special_tokens": list(self.special), "pattern": self.pattern}
        return Call("train", (self.text, self.vocab_size), keywords, on="class")

    def arguments(self) -> Iterator[tuple[str, Any]]:
        for label, value in super().arguments():
            if (label, value) != ("pattern", "gpt2"):
                yield label, value

    def texts(self) -> Sequence[str]:
        return (self.text,)

    def special_tokens(self, model: Model | None) -> Sequence[str]:
        return self.special

    def without_special_tokens(self, model: Model | None) -> tuple[Operation, None]:
        return replace(self, special=(), vocab_size=self.vocab_size - len(self.named)), None

    def split_by(self, model: Model | None) -> str:
        return self.pattern

    @property
    def named(self) -> list[str]:
        return [token for token in dict.fromkeys(self.special) if token]

    @property
    def most_merges(self) -> int:
        """How many merges fill the vocabulary, if none of them makes a special token."""
        return self.vocab_size - 256 - len(self.named)

    def words(self, setting: Setting) -> list[textbook.Word]:
        boundaries = self.special if setting.conventions["train_special"] == "boundary" else ()
        return textbook.corpus(self.text, boundaries, setting.expression(self.pattern))

    def vocab(self, merges: Sequence[Merge], conventions: Conventions = DEFAULTS) -> dict[int, bytes]:
        return textbook.build_vocab(merges, self.named, conventions["byte_order"], conventions["id_layout"])

    # The correct answer

    def key(self, conventions: Conventions) -> str:
        return training_key(conventions)

    def keys(self, model: Model | None) -> Sequence[str]:
        in_text = any(token in self.text for token in self.special)
        return (*TRAINING_KEYS, *TEXT_KEYS) if in_text else TRAINING_KEYS

    def under(self, key: str) -> dict[str, str]:
        return {**DEFAULTS, **conventions_of(key)}

    def computed(self, setting: Setting) -> Merges:
        merges = _learned(self, training_key(setting.conventions), setting.expression(self.pattern))
        entries = None
        if setting.clause.startswith("TRAIN-IDS-"):
            vocab = textbook.build_vocab(merges, self.special)
            entries = tuple((index, token) for index, token in vocab.items() if index >= 256)
        return Merges(merges, entries)

    def correct(self, expected: Expected, setting: Setting) -> tuple[Acceptable, ...] | None:
        stored = expected.under(training_key(setting.conventions))
        if stored is None:
            return (HighestCount(self.most_merges),) if setting.conventions["tie_break"] == "unspecified" else None
        return tuple(self._resolved(value, setting) if isinstance(value, Merges) else value for value in stored)

    def _resolved(self, stored: Merges, setting: Setting) -> Acceptable:
        if setting.conventions["tie_break"] == "unspecified":
            return HighestCount(self.most_merges)
        return Table(self.vocab(stored.merges, setting.conventions), stored.merges)

    def answer(self, setting: Setting) -> Acceptable:
        if setting.conventions["tie_break"] == "unspecified":
            return HighestCount(self.most_merges)
        return self._resolved(self.computed(setting), setting)

    def accepts(self, correct: Acceptable, answer: Answer, setting: Setting, receiver: Any = None) -> bool:
        match correct, answer:
            case Table(), Table():
                return answer.merges == correct.merges and self._wrong_entries(answer, setting) is None
            case HighestCount(), Table():
                return self.divergence((correct,), answer, setting) is None
        return super().accepts(correct, answer, setting, receiver)

    def divergence(self, correct: Sequence[Acceptable], answer: Answer, setting: Setting) -> Divergence | None:
        right = next((value for value in correct if isinstance(value, Table | HighestCount)), None)
        if right is None or not isinstance(answer, Table):
            return None
        if isinstance(right, HighestCount):
            named = {token.encode("utf-8") for token in self.named}
            most_merges = right.merges + sum(left + right in named for left, right in answer.merges)
            where = divergence.highest_counts(self.words(setting), most_merges, answer.merges)
            return where or self._wrong_entries(answer, setting)
        if answer.merges != right.merges:
            return divergence.training(self.words(setting), right.merges, answer.merges)
        return self._wrong_entries(answer, setting)

    def _wrong_entries(self, answer: Table, setting: Setting) -> Divergence | None:
        return divergence.entries(self.vocab(answer.merges, setting.conventions), answer.vocab, setting.clause)

    def comparable(self, answer: Answer, where: Divergence | None) -> Table | None:
        if not isinstance(answer, Table) or not isinstance(where, TrainingDivergence):
            return None
        vocab = self.vocab(answer.merges)  # the default ids
        return Table(vocab, answer.merges) if {*answer.vocab.values()} == {*vocab.values()} else None

    def other_conventions(self, conventions: Conventions) -> Iterator[Changes]:
        names = ("tie_break", "byte_order", "id_layout", "train_special")
        options = [[value for value in CONVENTIONS[name] if value != "unspecified"] for name in names]
        for values in product(*options):
            pairs = zip(names, values, strict=True)
            if changes := tuple((name, value) for name, value in pairs if value != conventions[name]):
                yield changes


@lru_cache(maxsize=len(TRAINING_KEYS + TEXT_KEYS))  # of one training
def _learned(asked: Train, key: str, expression: str) -> tuple[Merge, ...]:
    rules = conventions_of(key)
    return tuple(textbook.learn(asked.text, asked.vocab_size, list(asked.special), expression, **rules))


# Training on prose: the oracle learns hundreds of merges, which are too many for a case, so a file stores them

STORED = TEXTS / "prose-merges.json"
STORED_FILES = 14
STORED_SIZE = 256 + 760


def stored_text(folder: Path = TEXTS) -> str:
    return "".join(file.read_bytes().decode("utf-8") for file in sorted(folder.glob("*.txt"))[:STORED_FILES])


def stored_merges(key: str) -> list[Merge]:
    """Return the merges that the oracle learns from it, without special tokens, under the convention `key`."""
    return [(read_token(left), read_token(right)) for left, right in _stored()[key.removesuffix("/text")]]


def compute_stored(folder: Path = TEXTS) -> str:
    """Return the JSON of the file: the digest of the text, and a line of merges for each convention."""
    text = stored_text(folder)
    rows: dict[str, Any] = {"sha256": hashlib.sha256(text.encode("utf-8")).hexdigest()}
    for key in TRAINING_KEYS:
        learned = textbook.learn(text, STORED_SIZE, (), PATTERNS["gpt2"], **conventions_of(key))
        rows[key] = [[write_token(left), write_token(right)] for left, right in learned]
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(row)}" for key, row in rows.items()) + "\n}\n"


@cache
def _stored() -> Mapping[str, Any]:
    stored: Mapping[str, Any] = json.loads(STORED.read_text("utf-8"))
    return stored
