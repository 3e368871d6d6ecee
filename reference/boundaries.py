"""Where a text may be cut into chunks whose counts add up to those of the whole.

A cut is right where a special token starts, and no special token that started earlier reaches over the place.
It is then a boundary of pre-tokens in the whole text as well. Both are known from the token alone if no
special token can straddle the place where it starts; such a token is a safe delimiter.

A cut is right, too, at a fence, if the pattern starts a pre-token there (see `patterns.has_fence`) and no special token
can reach over it. That is a space between two visible characters, or, for text without spaces, a comma or a full stop
behind an ideograph.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import AnyStr, BinaryIO

from .automaton import Automaton

WINDOW = 1 << 16
FENCE = "(?<=[!-~]) (?=[!-~])|(?<=[\u5000-\u9fff])[、。，]"
_FENCE_IN_BYTES = rb"(?<=[!-~]) (?=[!-~])|(?<=[\xe5-\xe9][\x80-\xbf]{2})(?:\xe3\x80[\x81\x82]|\xef\xbc\x8c)"
"""Of these characters, fences are at the same places in a text and in its bytes, be they UTF-8 or not."""
_FENCE_BEHIND, _FENCE_AHEAD = 3, 3
"""Bytes that this looks at, at most: before the place, and from there on."""
_FENCE_INSIDE = re.compile(FENCE.replace("(?=[!-~])", r"(?=[!-~]|\Z)"))


def safe_delimiters(special_tokens: Iterable[str]) -> list[str]:
    """Return the special tokens before which any text may be cut.

    A token that overlaps itself is none (`aaa` holds `aa` twice, but only the first is matched), nor is one
    that lies inside another or across its end. One that another token merely starts with is: a match starts
    there whichever of them it is.

    >>> safe_delimiters(["<|a|>", "aa", "x<|b|>y", "<|b|>", "<|a|>!"])
    ['<|a|>', 'x<|b|>y', '<|a|>!']
    """
    # As `special_tokens.straddles` tells of two tokens, for all at once: there may be thousands.
    tokens = dict.fromkeys(special_tokens)
    firsts, sizes = {token[0] for token in tokens}, {len(token) for token in tokens}
    rests = {token[start:] for token in tokens for start in range(1, len(token)) if token[start] in firsts}
    unsafe = {rest[:size] for rest in rests for size in sizes}
    return [
        token
        for token in tokens
        if token not in unsafe and rests.isdisjoint(token[:size] for size in range(1, len(token)))
    ]


def fences_are_safe(special_tokens: Iterable[str]) -> bool:
    """Return whether no special token can reach over a fence.

    >>> fences_are_safe(["<|e|>", " <a>"]), fences_are_safe(["<a b>"]), fences_are_safe(["a "])
    (True, False, False)
    """
    return not any(_FENCE_INSIDE.search(token) for token in special_tokens)


def text_boundaries(text: str, chunks: int, delimiters: Sequence[str], fences: bool = False) -> list[int]:
    """Return the offsets at which `text` is cut: about `chunks` + 1, the first 0 and the last its length.

    Args:
        text: what is cut.
        chunks: how many pieces are wanted; there are fewer where delimiters are.
        delimiters: safe ones.
        fences: whether fences delimit, too; without any delimiter, `text` stays whole.

    >>> text_boundaries("aaa|b|cc", 2, ["|"])
    [0, 5, 8]
    """
    automaton, fence = Automaton(delimiters), re.compile(FENCE) if fences else None

    def find_next(start: int) -> int:
        return _first(automaton, fence, text, start)

    return _snap(len(text), chunks if delimiters or fences else 1, find_next)


def file_boundaries(
    file: BinaryIO, chunks: int, delimiters: Sequence[str], fences: bool = False, window: int = WINDOW
) -> list[int]:
    """Return the byte offsets at which a file is cut; each is searched a window at a time.

    A chunk starts with the first byte of a character, behind a whole one: decoding chunk by chunk gives the same
    text as decoding the whole, also where the file is not UTF-8 (bytes are replaced as they are in the whole).

    Args:
        file: binary, seekable.
        chunks: how many pieces are wanted; there are fewer where delimiters are.
        delimiters: safe ones.
        fences: whether fences delimit, too; without any delimiter, the file stays whole.
        window: how many bytes to search at once.

    >>> import io
    >>> file_boundaries(io.BytesIO(b"aaa|b|cc"), 2, ["|"], window=1)
    [0, 5, 8]
    """
    size = file.seek(0, os.SEEK_END)
    encoded = [delimiter.encode("utf-8") for delimiter in delimiters]
    automaton, fence = Automaton(encoded), re.compile(_FENCE_IN_BYTES) if fences else None
    # Windows overlap, so that a delimiter that starts in one and ends in the next is found, as is what a fence needs.
    longest = max([*map(len, encoded), *[_FENCE_AHEAD] * fences], default=1)

    def find_next(start: int) -> int:
        while start < size:
            begin = max(0, start - _FENCE_BEHIND)
            file.seek(begin)
            # A window has no name, so that it is gone when the next one is read.
            place = begin + _first(automaton, fence, file.read(start - begin + window + longest), start - begin)
            if place < min(start + window, size):
                return place
            start += window
        return size

    return _snap(size, chunks if delimiters or fences else 1, find_next)


def _first(automaton: Automaton[AnyStr], fence: re.Pattern[AnyStr] | None, text: AnyStr, start: int) -> int:
    """Return where at or after `start` the first delimiter or fence starts, the length of `text` if there is none."""
    match = fence.search(text, start) if fence else None
    end = match.start() if match else len(text)
    found = automaton.find(text, start, end)
    return found[0] if found else end


def _snap(size: int, chunks: int, find_next: Callable[[int], int]) -> list[int]:
    cuts = [0]
    for number in range(1, chunks):
        even = size * number // chunks
        if even > cuts[-1]:
            cuts.append(find_next(even))
    return list(dict.fromkeys([*cuts, size]))
