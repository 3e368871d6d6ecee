"""Tokenizers that declare conventions other than the defaults."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import ClassVar

import regex

from . import parts
from .linked import Tokenizer as Linked
from .parts import BYTES, Pair

_PRINTED = [*range(33, 127), *range(161, 173), *range(174, 256)]
GPT2_ORDER = [BYTES[byte] for byte in (*_PRINTED, *(byte for byte in range(256) if byte not in _PRINTED))]


class _Declared(Linked):
    conventions: ClassVar[Mapping[str, str]]

    @classmethod
    def pick(cls, ties: list[Pair], merges: list[Pair]) -> Pair:
        return max(ties)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str]) -> Linked:
        special = parts.distinct(special_tokens)
        wanted = parts.room(vocab_size, special)
        cut = special if cls.conventions.get("train_special") != "text" else []
        entries = [token.encode() for token in special]
        merges = parts.learn_by_recounting(parts.count_words(text, cut, cls.split), wanted, cls.pick, entries)
        groups = {
            "bytes": GPT2_ORDER if cls.conventions.get("byte_order") == "gpt2" else BYTES,
            "specials": entries,
            "merges": [left + right for left, right in merges if left + right not in entries],
        }
        layout = cls.conventions.get("id_layout", "bytes-specials-merges").split("-")
        return cls(dict(enumerate(token for group in layout for token in groups[group])), merges, special)


class LexSmaller(_Declared):
    conventions = {"tie_break": "lex-smaller"}  # noqa: RUF012

    @classmethod
    def pick(cls, ties: list[Pair], merges: list[Pair]) -> Pair:
        return min(ties)


class SmallerIds(_Declared):
    conventions = {  # noqa: RUF012
        "tie_break": "smaller-ids",
        "byte_order": "gpt2",
        "id_layout": "specials-bytes-merges",
    }

    @classmethod
    def pick(cls, ties: list[Pair], merges: list[Pair]) -> Pair:
        order = {token: place for place, token in enumerate([*GPT2_ORDER, *(left + right for left, right in merges)])}
        return min(ties, key=lambda pair: (order[pair[0]], order[pair[1]]))


class FirstSeen(_Declared):
    conventions = {  # noqa: RUF012
        "tie_break": "first-seen",
        "id_layout": "bytes-merges-specials",
        "train_special": "text",
    }

    @classmethod
    def pick(cls, ties: list[Pair], merges: list[Pair]) -> Pair:
        return ties[0]


class Unspecified(_Declared):
    conventions = {"tie_break": "unspecified"}  # noqa: RUF012

    @classmethod
    def pick(cls, ties: list[Pair], merges: list[Pair]) -> Pair:
        return min(ties, key=lambda pair: (zlib.crc32(b"%d %b %b" % (len(pair[0]), *pair)), pair))


class Words(_Declared):
    """Splits at white space, which forms its own pre-tokens."""

    conventions: ClassVar[Mapping[str, str]] = {}
    pattern = r"\S+|\s+"
    split = staticmethod(regex.compile(pattern).findall)


class Whole(Words):
    """Does not split the text."""

    pattern = "none"

    @staticmethod
    def split(text: str) -> list[str]:  # type: ignore[override]
        return [text] if text else []

    def _last_cut(self, text: str) -> int:
        return 0


class LookupBytes(Linked):
    """Merges any pair whose result is a token; a pre-token that is a token stays whole."""

    conventions: ClassVar[Mapping[str, str]] = {"lookup": "bytes"}
    train = None  # type: ignore[assignment]

    def __init__(self, vocab: Mapping[int, bytes], merges: Iterable[Pair], special_tokens: Sequence[str] | None = None):
        super().__init__(vocab, merges, special_tokens)
        apart = {token.encode() for token in self.special} - {*BYTES, *(left + right for left, right in self.merges)}
        self._whole = {token: index for token, index in self.ids.items() if token not in apart}

    def _word(self, word: str) -> tuple[int, ...]:
        row = [BYTES[byte] for byte in word.encode()]
        if word.encode() in self._whole:
            return (self._whole[word.encode()],)
        while True:
            found = [
                (self._whole[left + right], place)
                for place, (left, right) in enumerate(pairwise(row))
                if left + right in self._whole
            ]
            if not found:
                return tuple(self.ids[token] for token in row)
            place = min(found)[1]
            row[place : place + 2] = [row[place] + row[place + 1]]
