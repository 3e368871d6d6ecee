"""Finds special tokens in one scan of the text, before it is split (section SPECIAL of the spec)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest

from .automaton import Automaton


class SpecialTokens:
    """A set of special tokens, at which text is cut.

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
        self._automaton = Automaton(self.tokens)

    def find(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """Return the start and end of the leftmost match at or after `start`, the longest one there, or None."""
        return self._automaton.find(text, start)

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
        return self._automaton.split(text)

    def open_at(self, text: str, start: int = 0) -> int:
        """Return the first position at or after `start` where more text could complete a special token, or `len(text)`.

        From that position on, `text` is a proper prefix of a token.

        >>> SpecialTokens(["<|e|>"]).open_at("a <|")
        2
        """
        return self._automaton.open_at(text, start)


def straddles(token: str, other: str) -> bool:
    """Return whether an occurrence of `token` can cover the start of an occurrence of `other`.

    >>> straddles("aa", "aa"), straddles("x<a>", "<a>"), straddles("<a>x", "<a>")
    (True, True, False)
    """
    rests = (token[offset:] for offset in range(1, len(token)))
    return any(rest.startswith(other) or other.startswith(rest) for rest in rests)
