"""Finds many strings in a text with one automaton, so that their number hardly matters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from os.path import commonprefix
from typing import Any, AnyStr, Generic

FEW = 64
"""Up to this number of strings, a regular expression with alternatives is faster (measured)."""
FEW_BEGINNINGS = 8
"""Up to this number of beginnings, the search looks for the beginnings; above it, for their first characters."""

_Edges = dict[Any, tuple[Any, bool, dict[Any, Any]]]
"""A state: first character → the whole label of the edge, whether a string ends after it, and the next state."""


class Automaton(Generic[AnyStr]):
    """Finds strings: the leftmost first, and of those that start at the same position the longest.

    There is one state for each position at which strings diverge or end, so there are at most twice as many states as
    strings. The time is proportional to the length of the text; a string whose beginning repeats itself multiplies it.

    Args:
        strings: non-empty strings, all str or all bytes.

    >>> Automaton(["ab", "abcd", "x"]).split("-abc-abcd")
    (['-', 'c-', ''], ['ab', 'abcd'])
    """

    def __init__(self, strings: Iterable[AnyStr]) -> None:
        self._strings: list[AnyStr] = sorted(set(strings))
        self._longest = max(map(len, self._strings), default=0)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the strings only: states can be nested too deeply for a pickle, and rebuilding them is fast."""
        return type(self), (self._strings,)

    @cached_property
    def _root(self) -> _Edges:
        return _states(self._strings)

    @cached_property
    def _exact(self) -> re.Pattern[AnyStr] | None:
        return _any_of(self._strings[::-1]) if len(self._strings) <= FEW else None

    @cached_property
    def _beginnings(self) -> list[AnyStr]:
        """A text that contains none of these contains no string."""
        return [label for label, _, _ in self._root.values()]

    @cached_property
    def _candidate(self) -> re.Pattern[AnyStr] | None:
        few = len(self._beginnings) <= FEW_BEGINNINGS
        return _any_of(self._beginnings) if few else _any_like(list(self._root))

    def find(self, text: AnyStr, start: int = 0, end: int | None = None) -> tuple[int, int] | None:
        """Return the start and end of the leftmost string in `text[start:end]`, the longest one there, or None."""
        end = len(text) if end is None else end
        if self._exact:
            match = self._exact.search(text, start, end)
            return match.span() if match else None
        while self._candidate and (match := self._candidate.search(text, start, end)):
            start = match.start()
            if (after := self._longest_at(text, start, end)) > start:
                return start, after
            start += 1
        return None

    def split(self, text: AnyStr) -> tuple[list[AnyStr], list[AnyStr]]:
        """Return the segments of `text`, including empty ones, and the strings between them."""
        some = self._beginnings
        if len(some) <= FEW_BEGINNINGS and not any(beginning in text for beginning in some):
            return [text], []
        if self._exact:
            parts = self._exact.split(text)
            return parts[::2], parts[1::2]
        segments: list[AnyStr] = []
        found: list[AnyStr] = []
        end = 0
        while span := self.find(text, end):
            segments.append(text[end : span[0]])
            found.append(text[span[0] : span[1]])
            end = span[1]
        segments.append(text[end:])
        return segments, found

    def open_at(self, text: AnyStr, start: int = 0) -> int:
        """Return the first position at or after `start` where more text could complete a string, or `len(text)`.

        From that position on, `text` is a proper prefix of a string.

        >>> Automaton(["<|e|>"]).open_at("a <|")
        2
        """
        size = len(text)
        places = range(max(start, size - self._longest + 1), size)
        return next((place for place in places if self._is_open(text, place)), size)

    def _longest_at(self, text: AnyStr, place: int, limit: int) -> int:
        """Return the end of the longest string that starts at `place`, or `place` if none does."""
        end, edges = place, self._root
        while edge := edges.get(text[place : place + 1]):
            label, ends, edges = edge
            if not text.startswith(label, place, limit):
                break
            place += len(label)
            if ends:
                end = place
        return end

    def _is_open(self, text: AnyStr, place: int) -> bool:
        edges = self._root
        while edge := edges.get(text[place : place + 1]):
            label, _, edges = edge
            if len(label) > len(text) - place:
                return bool(label.startswith(text[place:]))
            if not text.startswith(label, place):
                return False
            place += len(label)
        return bool(edges) and place == len(text)


def _states(strings: list[AnyStr]) -> _Edges:
    """Return the first state of an automaton for sorted `strings`."""
    root: _Edges = {}
    waiting = [(root, 0, 0, len(strings))]
    while waiting:
        edges, depth, begin, end = waiting.pop()
        while begin < end:
            first = strings[begin]
            char = first[depth : depth + 1]
            after = begin + 1
            while after < end and strings[after][depth : depth + 1] == char:
                after += 1
            last = strings[after - 1]
            size = len(first) if last.startswith(first) else len(commonprefix([first, last]))  # noqa: RUF071
            following: _Edges = {}
            edges[char] = first[depth:size], len(first) == size, following
            begin += len(first) == size
            if begin < after:
                waiting.append((following, size, begin, after))
            begin = after
    return root


def _any_of(strings: Sequence[AnyStr]) -> re.Pattern[AnyStr] | None:
    """Return an expression whose only group matches the first of `strings` that fits; None if there are none."""
    return _compiled(f"({'|'.join(map(re.escape, map(_as_str, strings)))})", strings[0]) if strings else None


def _any_like(characters: Sequence[AnyStr]) -> re.Pattern[AnyStr]:
    """Return an expression for `characters`. If one is above U+FFFF, it matches all of those: sets of them are slow."""
    near = [_as_str(character) for character in characters if _as_str(character) <= "\uffff"]
    far = "\U00010000-\U0010ffff" if len(near) < len(characters) else ""
    return _compiled(f"[{''.join(map(re.escape, near))}{far}]", characters[0])


def _as_str(string: AnyStr) -> str:
    return string if isinstance(string, str) else string.decode("latin-1")


def _compiled(expression: str, like: AnyStr) -> re.Pattern[AnyStr]:
    return re.compile(expression if isinstance(like, str) else expression.encode("latin-1"))
