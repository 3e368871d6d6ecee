"""Implements the conventions of training: which pair wins a tie, how bytes are ordered, and how ids are assigned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bpe_conformance.fixtures import GPT2_BYTE_ORDER, Merge
from bpe_conformance.fixtures.conventions import TRAINING_CONVENTIONS

BYTE_ORDERS: dict[str, Sequence[int]] = {"raw": range(256), "gpt2": GPT2_BYTE_ORDER}
"""Convention `byte_order` → the bytes in the order of their ids."""

_MIRROR = bytes(range(255, -1, -1))


def complete(declared: Mapping[str, str], **requested: str | None) -> dict[str, str]:
    """Return a value for every convention: the requested one, else the declared one, else the default.

    >>> list(complete({"byte_order": "gpt2"}, tie_break="lex-smaller", byte_order=None).values())
    ['lex-smaller', 'gpt2', 'bytes-specials-merges', 'boundary']
    """
    given = {**declared, **{name: value for name, value in requested.items() if value is not None}}
    for name, value in given.items():
        if value not in TRAINING_CONVENTIONS.get(name, ()):
            offers = "; ".join(f"{known}: {', '.join(values)}" for known, values in TRAINING_CONVENTIONS.items())
            raise ValueError(f"the convention {name}={value!a} is unknown; the known ones are {offers}")
    return {name: given.get(name, values[0]) for name, values in TRAINING_CONVENTIONS.items()}


def mirrored(token: bytes) -> str:
    """Return a string that sorts in reverse: it is smaller for a lexicographically greater token.

    A character beyond all bytes marks the end, so that a proper prefix, the smaller token, sorts last.

    >>> sorted([b"a", b"ab", b"b"], key=mirrored)
    [b'b', b'ab', b'a']
    """
    return token.translate(_MIRROR).decode("latin-1") + "\u0100"


TOKEN_KEYS: dict[str, Callable[[int, bytes], Any]] = {
    "lex-greater": lambda index, token: mirrored(token),
    "lex-smaller": lambda index, token: token,
    "smaller-ids": lambda index, token: index,
}
"""Tie-break → key of a token, from its id and bytes. Of two pairs with equal counts, the pair whose left and right
tokens have the smaller keys wins. First-seen has no such key: it depends on the positions of the pairs."""


def build_vocab(
    merges: Iterable[Merge], special_tokens: Iterable[str], byte_order: str, id_layout: str
) -> dict[int, bytes]:
    """Return the vocabulary that training yields, id → bytes (TRAIN-IDS-2).

    A merge that creates a special token shares the entry of that token. `id_layout` has the names of the groups, joined
    by hyphens.
    """
    specials = dict.fromkeys(text.encode("utf-8") for text in special_tokens)
    atoms = [bytes([byte]) for byte in BYTE_ORDERS[byte_order]]
    merged = [left + right for left, right in merges if left + right not in specials]
    groups = {"bytes": atoms, "specials": specials, "merges": merged}
    return dict(enumerate(token for group in id_layout.split("-") for token in groups[group]))
