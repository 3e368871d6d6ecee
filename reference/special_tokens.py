"""Special tokens: found in one scan of the text, before it is split (section SPECIAL of the spec)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from os.path import commonprefix

FEW = 8
"""Strings at most that are looked for one by one."""


class SpecialTokens:
    """A set of special tokens that cuts text.

    Args:
        tokens: in the order given; a repeated one counts once; None is none.

    Attributes:
        tokens: each once, in the order given.

    Raises:
        ValueError: if a token is empty or no string, or if `tokens` is itself a string.
    """

    def __init__(self, tokens: Iterable[str] | None = None) -> None:
        if isinstance(tokens, str):
            raise ValueError(f"special_tokens is the string {tokens!a}; give a list of strings")
        self.tokens: tuple[str, ...] = tuple(dict.fromkeys(tokens or ()))
        for place, token in enumerate(self.tokens):
            if not isinstance(token, str) or not token:
                raise ValueError(f"special token {place} is {token!a}; give a string that is not empty")
        self._longest = max(map(len, self.tokens), default=0)
        self._by_first: dict[str, list[str]] = {}
        for token in sorted(self.tokens, key=len, reverse=True):
            self._by_first.setdefault(token[0], []).append(token)
        groups = self._by_first.values()
        # In a group of its own, what tokens begin with alike is compared once.
        expression = "|".join([f"(?:{'|'.join(map(re.escape, group))})" for group in groups])
        # An alternation of nothing would match everywhere, so without tokens there is no expression at all.
        self._any = re.compile(f"({expression})") if expression else None
        # A text without any of these holds no token. To look for a few is faster than the expression.
        self._beginnings = [commonprefix(group) for group in groups] if len(groups) <= FEW else [""]  # noqa: RUF071

    def find(self, text: str, start: int = 0) -> re.Match[str] | None:
        """Return the leftmost match at or after `start`, the longest at its place, or None."""
        return self._any.search(text, start) if self._any else None

    def cut(self, text: str) -> Iterator[tuple[str, bool]]:
        """Yield the segments of `text`, none of them empty, and whether each is a special token.

        Leftmost first, at one place the longest.

        >>> list(SpecialTokens(["<|e|>", "<|e|><|e|>"]).cut("a <|e|><|e|>b"))
        [('a ', False), ('<|e|><|e|>', True), ('b', False)]
        """
        end = 0
        if self._any:
            for match in self._any.finditer(text):
                if match.start() > end:
                    yield text[end : match.start()], False
                yield match.group(), True
                end = match.end()
        if end < len(text):
            yield text[end:], False

    def split(self, text: str) -> tuple[list[str], list[str]]:
        """Return the segments of `text`, empty ones too, and the special tokens between them.

        >>> SpecialTokens(["<|e|>"]).split("a<|e|><|e|>b")
        (['a', '', 'b'], ['<|e|>', '<|e|>'])
        """
        if not self._any or not any(beginning in text for beginning in self._beginnings):
            return [text], []
        parts = self._any.split(text)
        return parts[::2], parts[1::2]

    def open_at(self, text: str, start: int = 0) -> int:
        """Return the first place at or after `start` where more text could complete a special token.

        That is where the rest of `text` is the start of a token and not all of it; `len(text)` if there is
        none.

        >>> SpecialTokens(["<|e|>"]).open_at("a <|")
        2
        """
        size = len(text)
        for place in range(max(start, size - self._longest + 1), size):
            tokens = self._by_first.get(text[place], ())
            rest = text[place:] if tokens else ""
            if any(len(token) > size - place and token.startswith(rest) for token in tokens):
                return place
        return size


def straddles(token: str, other: str) -> bool:
    """Return whether some text holds `token` across the place where `other` starts.

    >>> straddles("aa", "aa"), straddles("x<a>", "<a>"), straddles("<a>x", "<a>")
    (True, True, False)
    """
    rests = (token[offset:] for offset in range(1, len(token)))
    return any(rest.startswith(other) or other.startswith(rest) for rest in rests)
