"""What decides the correct answer besides the arguments: the model, the conventions and the clause; and the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from bpe_conformance.fixtures import PATTERNS, Model
from bpe_conformance.fixtures.conventions import DEFAULTS
from bpe_conformance.reference import textbook

Conventions: TypeAlias = Mapping[str, str]


@dataclass(frozen=True)
class Setting:
    model: Model | None  # what the tokenizer is built from; None for training
    conventions: Conventions = field(default_factory=lambda: DEFAULTS)
    clause: str = ""  # the id of the clause that the question is about, or "". It decides how exactly ids are compared.

    @property
    def table(self) -> Model:
        assert self.model is not None
        return self.model

    @property
    def oracle(self) -> textbook.Tokenizer:
        return oracle(self.table, self.conventions)

    def expression(self, pattern: str) -> str:
        return expression(pattern, self.conventions)


def expression(pattern: str, conventions: Conventions) -> str:
    """Return the regular expression of a pattern. `gpt2`, the default, is the one that an implementation declares.

    >>> expression("gpt2", {"pattern": "none"}) == PATTERNS["none"], expression("gpt2", {"pattern": "[a-z]+"})
    (True, '[a-z]+')
    """
    own = conventions.get("pattern", "gpt2")
    return PATTERNS.get(pattern, pattern) if pattern != "gpt2" else PATTERNS.get(own, own)


def oracle(model: Model, conventions: Conventions = DEFAULTS) -> textbook.Tokenizer:
    """Return the textbook's tokenizer for a model under these conventions; a ValueError if it refuses the model."""
    make = _named if model.name else _latest
    return make(model, conventions["lookup"], expression(model.pattern, conventions))


def _oracle(model: Model, lookup: str, pattern: str) -> textbook.Tokenizer:
    kind = textbook.with_conventions(lookup=lookup)
    return kind(model.vocab, model.merges, model.special_tokens, pattern, model.pipeline)


_named, _latest = (lru_cache(maxsize=4)(_oracle) for _ in range(2))  # few models have a name, and those can be large


def pieces(model: Model, text: str, pattern: str = "") -> list[tuple[bytes, bool]]:
    """Return the bytes of the pre-tokens and special tokens of a text, and whether each is a special token."""
    if model.pipeline is None:
        found = textbook.pieces(text, model.special_tokens or (), pattern or model.expression)
        return [(piece.encode("utf-8", "surrogatepass"), special) for piece, special in found]
    right = oracle(model)
    segments = right.find_special(text, right.special)
    every = ((piece, special) for part, special in segments for piece in ([part] if special else right.split(part)))
    return [(piece.encode() if special else b"".join(right.atoms(piece)), special) for piece, special in every]


def token_of(index: int, model: Model) -> bytes | None:
    """Return the token of an id, or None. A special token without an entry has the id that the oracle gives it."""
    if index in model.vocab or not model.special_tokens:
        return model.vocab.get(index)
    try:
        return oracle(model).vocab.get(index)
    except ValueError:  # the oracle refuses the model
        return None
