"""Finds special tokens in one scan of the text, before it is split (section SPECIAL of the spec)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import groupby, zip_longest
from operator import itemgetter
from os.path import commonprefix

FEW = 64
"""Up to this number of tokens, a regular expression with alternatives is faster (measured)."""
FEW_BEGINNINGS = 8
"""Up to this number of beginnings, the search looks for the beginnings; above it, for their first characters."""


class SpecialTokens:
    """A set of special tokens, at which text is cut. Their number hardly affects the time.

    Args:
        tokens: the special tokens; duplicates are ignored, and None means no tokens.

    Attributes:
        tokens: the special tokens without duplicates, in the order given.

    Raises:
        ValueError: if a token is empty or not a string, or if `tokens` is itself a string.
    """

    def __init__(self, tokens: Iterable[str] | None = None) -> None:
        if isinstance(tokens, str):
            raise ValueError(f"special_tokens is the string {tokens!a}; give a list of strings")
        self.tokens: tuple[str, ...] = tuple(dict.fromkeys(tokens or ()))
        for place, token in enumerate(self.tokens):
            if not isinstance(token, str) or not token:
                raise ValueError(f"special token {place} is {token!a}; give a non-empty string")
        self._longest = max(map(len, self.tokens), default=0)

    def __reduce__(self) -> tuple[type[SpecialTokens], tuple[tuple[str, ...]]]:
        """Pickle the tokens only; what follows from them is made again when it is needed."""
        return type(self), (self.tokens,)

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self.tokens)

    @cached_property
    def _shorter(self) -> dict[str, str]:
        """Token → the longest other token that it starts with, or ""."""
        shorter: dict[str, str] = {}
        before = [""]
        for token in self._sorted:
            while not token.startswith(before[-1]):
                before.pop()
            shorter[token] = before[-1]
            before.append(token)
        return shorter

    @cached_property
    def _by_first(self) -> dict[str, list[str]]:
        """First character → the tokens that start with it."""
        return {first: list(group) for first, group in groupby(self._sorted, key=itemgetter(0))}

    @cached_property
    def _beginnings(self) -> list[str]:
        """What the tokens with the same first character begin with, for each first character."""
        return [commonprefix(tokens) for tokens in self._by_first.values()]  # noqa: RUF071  # not paths

    @cached_property
    def _exact(self) -> re.Pattern[str] | None:
        """An expression for all tokens, the longer ones first, if there are few."""
        return _any_of(self._sorted[::-1]) if len(self.tokens) <= FEW else None

    @cached_property
    def _candidate(self) -> re.Pattern[str]:
        """An expression that matches at the start of each token. Sets with characters above U+FFFF are slow."""
        if len(self._beginnings) <= FEW_BEGINNINGS:
            return _any_of(self._beginnings)
        near = [first for first in self._by_first if first <= "\uffff"]
        far = "\U00010000-\U0010ffff" if len(near) < len(self._by_first) else ""
        return re.compile(f"[{''.join(map(re.escape, near))}{far}]")

    def find(self, text: str, start: int = 0, end: int | None = None) -> tuple[int, int] | None:
        """Return the start and end of the leftmost match in `text[start:end]`, the longest one there, or None."""
        end = len(text) if end is None else end
        if not self.tokens:
            return None
        if self._exact:
            match = self._exact.search(text, start, end)
            return match.span() if match else None
        while match := self._candidate.search(text, start, end):
            start = match.start()
            if token := self._longest_at(text[start : min(end, start + self._longest)]):
                return start, start + len(token)
            start += 1
        return None

    def _longest_at(self, text: str) -> str:
        """Return the longest token with which `text` starts, or ""."""
        place = bisect_right(self._sorted, text)
        token = self._sorted[place - 1] if place else ""
        # All tokens between the result and `text` in the sorted list start with the result, as `text` does.
        if not text.startswith(token):
            token = self._shorter[token]
        if text.startswith(token):
            return token
        # The result is a prefix of what both start with: the first token that starts so, or `_shorter` of that one.
        size = bisect_left(range(1, len(token)), True, key=lambda length: not text.startswith(token[:length]))
        first = self._sorted[bisect_left(self._sorted, text[:size])]
        return first if len(first) == size else self._shorter[first]

    def cut(self, text: str) -> Iterator[tuple[str, bool]]:
        """Yield each non-empty segment of `text` and whether it is a special token.

        The leftmost match wins; of matches that start at the same position, the longest wins.

        >>> list(SpecialTokens(["<|e|>", "<|e|><|e|>"]).cut("a <|e|><|e|>b"))
        [('a ', False), ('<|e|><|e|>', True), ('b', False)]
        """
        segments, marks = self.split(text)
        for segment, mark in zip_longest(segments, marks):
            if segment:
                yield segment, False
            if mark:
                yield mark, True

    def split(self, text: str) -> tuple[list[str], list[str]]:
        """Return the segments of `text`, including empty ones, and the special tokens between them.

        >>> SpecialTokens(["<|e|>"]).split("a<|e|><|e|>b")
        (['a', '', 'b'], ['<|e|>', '<|e|>'])
        """
        some = self._beginnings
        if len(some) <= FEW_BEGINNINGS and not any(beginning in text for beginning in some):
            return [text], []
        if self._exact:
            parts = self._exact.split(text)
            return parts[::2], parts[1::2]
        segments: list[str] = []
        found: list[str] = []
        end = 0
        while span := self.find(text, end):
            segments.append(text[end : span[0]])
            found.append(text[span[0] : span[1]])
            end = span[1]
        return [*segments, text[end:]], found

    def open_at(self, text: str, start: int = 0) -> int:
        """Return the first position at or after `start` where more text could complete a special token, or `len(text)`.

        From that position on, `text` is a proper prefix of a token.

        >>> SpecialTokens(["<|e|>"]).open_at("a <|")
        2
        """
        size = len(text)
        places = range(max(start, size - self._longest), size)
        return next((place for place in places if text[place] in self._by_first and self._is_open(text[place:])), size)

    def _is_open(self, text: str) -> bool:
        """Return whether `text` is a proper prefix of a token; such tokens follow it in the sorted list."""
        place = bisect_right(self._sorted, text)
        return place < len(self._sorted) and self._sorted[place].startswith(text)


def token_ids(vocab: Mapping[int, bytes], special_tokens: Iterable[str]) -> dict[bytes, int]:
    """Return token → id, the first of several ids. A special token without an entry gets the id max(ids) + 1.

    >>> token_ids({0: b"a", 1: b"a"}, ["a", "<e>"])
    {b'a': 0, b'<e>': 2}
    """
    ids = {token: index for index, token in reversed(dict(vocab).items())}
    following = max(vocab, default=-1) + 1
    for text in special_tokens:
        if ids.setdefault(text.encode("utf-8"), following) == following:
            following += 1
    return ids


def straddles(token: str, other: str) -> bool:
    """Return whether an occurrence of `token` can cover the start of an occurrence of `other`.

    >>> straddles("aa", "aa"), straddles("x<a>", "<a>"), straddles("<a>x", "<a>")
    (True, True, False)
    """
    rests = (token[offset:] for offset in range(1, len(token)))
    return any(rest.startswith(other) or other.startswith(rest) for rest in rests)


def _any_of(strings: list[str]) -> re.Pattern[str]:
    """Return an expression whose only group matches the first of `strings` that fits."""
    return re.compile(f"({'|'.join(map(re.escape, strings))})")
