"""Finds special tokens before a text is split (section SPECIAL of the spec), and says which of them a call recognizes.

`SpecialTokens` finds them in one scan of a text or of a stream. `SpecialTokenPolicy` implements tiktoken's keywords
`allowed_special` and `disallowed_special`: a disallowed string in a text is an error, allowed special tokens are
recognized, and all others are plain text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby, zip_longest
from operator import itemgetter
from os.path import commonprefix
from typing import NamedTuple

FEW = 64
"""Up to this number of tokens, a regular expression with alternatives is faster (measured)."""
FEW_BEGINNINGS = 8
"""Up to this number of beginnings, the search looks for the beginnings; above it, for their first characters."""

Strings = Collection[str] | None
"""A value of `allowed_special` or `disallowed_special`: "all" or a set of strings; None if a call does not give it."""
Keywords = tuple[frozenset[str] | None, frozenset[str] | None]
"""`allowed_special` and `disallowed_special`; None means "all"."""


class SpecialTokens:
    """A set of special tokens, at which text is cut. Their number hardly affects the time."""

    def __init__(self, tokens: Iterable[str] | None = None) -> None:
        if isinstance(tokens, str):
            raise ValueError(f"special_tokens is the string {tokens!a}; give a list of strings")
        self.tokens: tuple[str, ...] = tuple(dict.fromkeys(tokens or ()))
        for index, token in enumerate(self.tokens):
            if not isinstance(token, str) or not token:
                raise ValueError(f"special token {index} is {token!a}; give a non-empty string")
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
        index = bisect_right(self._sorted, text)
        token = self._sorted[index - 1] if index else ""
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
        beginnings = self._beginnings
        if len(beginnings) <= FEW_BEGINNINGS and not any(beginning in text for beginning in beginnings):
            return [text], []
        if self._exact:
            parts = self._exact.split(text)
            return parts[::2], parts[1::2]
        segments: list[str] = []
        marks: list[str] = []
        end = 0
        while span := self.find(text, end):
            segments.append(text[end : span[0]])
            marks.append(text[span[0] : span[1]])
            end = span[1]
        return [*segments, text[end:]], marks

    def scan(self, chunks: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Yield a stream in parts, each as soon as its special tokens are certain; no part cuts a special token.

        With each part comes the position after its last special token, or 0 if it has none. A match counts once no
        special token that is longer or starts further left can still be completed.

        >>> list(SpecialTokens(["<a>", "<a>b<a>", "<a>x"]).scan(["a<", "a>", "b", "<a>", "x"]))
        [('a', 0), ('<a>b<a>', 7), ('x', 0)]
        """
        held = ""
        for chunk in chunks:
            text = held + chunk
            end, opened = 0, self.open_at(text)
            while (match := self.find(text, end)) and match[0] < opened:
                end = match[1]
                opened = self.open_at(text, end) if opened < end else opened
            if opened:
                yield text[:opened], end
            held = text[opened:]
        if held:
            end = 0
            while match := self.find(held, end):
                end = match[1]
            yield held, end

    def open_at(self, text: str, start: int = 0) -> int:
        """Return the first position at or after `start` where more text could complete a special token, or `len(text)`.

        From that position on, `text` is a proper prefix of a token.

        >>> SpecialTokens(["<|e|>"]).open_at("a <|")
        2
        """
        size = len(text)
        positions = range(max(start, size - self._longest), size)
        return next((at for at in positions if text[at] in self._by_first and self._is_open(text[at:])), size)

    def _is_open(self, text: str) -> bool:
        """Return whether `text` is a proper prefix of a token; such tokens follow it in the sorted list."""
        index = bisect_right(self._sorted, text)
        return index < len(self._sorted) and self._sorted[index].startswith(text)


class SpecialTokenPolicy(NamedTuple):
    """Says what a call does with the special tokens of a tokenizer."""

    allowed: SpecialTokens  # those that are recognized
    disallowed: SpecialTokens  # the strings that no text may contain

    @classmethod
    def of(cls, special: SpecialTokens, keywords: Keywords) -> SpecialTokenPolicy:
        """Return the policy for a tokenizer with the special tokens `special`.

        Allowed strings that are not special tokens are ignored. Any string can be disallowed; "all" disallows the
        special tokens that are not allowed.
        """
        allowed, disallowed = keywords
        recognized = special
        if allowed is not None:
            recognized = SpecialTokens(token for token in special.tokens if token in allowed)
        if disallowed is None:
            disallowed = frozenset(special.tokens).difference(recognized.tokens)
        return cls(recognized, SpecialTokens(sorted(disallowed)))

    def check(self, text: str, name: str = "the text", offset: int = 0) -> None:
        """Check that a text, or the part of it at `offset`, contains no disallowed string; an error calls it `name`."""
        if match := self.disallowed.find(text):
            start, end = match
            raise ValueError(
                f"{name} contains {text[start:end]!a} at character {offset + start}, which is disallowed; "
                "allow it with allowed_special, or encode it as plain text with disallowed_special=()"
            )

    def checked(self, chunks: Iterable[str], name: str = "the text") -> Iterator[str]:
        """Yield the text of `chunks` in parts, each as soon as no disallowed string can extend past its end.

        >>> policy = SpecialTokenPolicy.of(SpecialTokens(["<|e|>"]), parse_keywords((), "all"))
        >>> list(policy.checked(["a<", "|e", ">"]))
        ['a', '<|e>']
        """
        if not self.disallowed.tokens:
            yield from chunks
            return
        offset = 0
        for text, _ in self.disallowed.scan(chunks):
            self.check(text, name, offset)
            yield text
            offset += len(text)


def parse_keywords(allowed_special: Strings, disallowed_special: Strings) -> Keywords:
    """Return the keywords of a call. If both are None, all tokens are allowed; if one is, it has tiktoken's default."""
    if allowed_special is None and disallowed_special is None:
        return None, frozenset()
    allowed = _strings("allowed_special", () if allowed_special is None else allowed_special)
    disallowed = _strings("disallowed_special", "all" if disallowed_special is None else disallowed_special)
    if disallowed and "" in disallowed:
        raise ValueError("disallowed_special contains an empty string, which occurs in every text")
    return allowed, disallowed


def _strings(parameter: str, value: Collection[str]) -> frozenset[str] | None:
    if isinstance(value, str) and value == "all":
        return None
    if isinstance(value, str) or not isinstance(value, Collection):
        raise ValueError(f'{parameter} is {value!a}; give "all" or a set of strings')
    for string in value:
        if not isinstance(string, str):
            raise ValueError(f'{parameter} contains {string!a}; give "all" or a set of strings')
    return frozenset(value)


def straddles(token: str, other: str) -> bool:
    """Return whether an occurrence of `token` can cover the start of an occurrence of `other`."""
    rests = (token[offset:] for offset in range(1, len(token)))
    return any(rest.startswith(other) or other.startswith(rest) for rest in rests)


def _any_of(strings: Sequence[str]) -> re.Pattern[str]:
    """Return an expression whose only group matches the first of `strings` that fits."""
    return re.compile(f"({'|'.join(map(re.escape, strings))})")
