"""Where a text may be cut into chunks whose counts add up to those of the whole.

A cut is right where a special token starts, and no special token that started earlier reaches over the place.
It is then a boundary of pre-tokens in the whole text as well. Both are known from the token alone if no
special token can straddle the place where it starts; such a token is a safe delimiter.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import BinaryIO

from .special_tokens import straddles

WINDOW = 1 << 16


def safe_delimiters(special_tokens: Iterable[str]) -> list[str]:
    """Return the special tokens before which any text may be cut.

    A token that overlaps itself is none (`aaa` holds `aa` twice, but only the first is matched), nor is one
    that lies inside another or across its end. One that another token merely starts with is: a match starts
    there whichever of them it is.

    >>> safe_delimiters(["<|a|>", "aa", "x<|b|>y", "<|b|>", "<|a|>!"])
    ['<|a|>', 'x<|b|>y', '<|a|>!']
    """
    tokens = list(dict.fromkeys(special_tokens))
    return [token for token in tokens if not any(straddles(other, token) for other in tokens)]


def text_boundaries(text: str, chunks: int, delimiters: Sequence[str]) -> list[int]:
    """Return the offsets at which `text` is cut: about `chunks` + 1, the first 0 and the last its length.

    Args:
        text: what is cut.
        chunks: how many pieces are wanted; there are fewer where delimiters are.
        delimiters: safe ones; without any, `text` stays whole.

    >>> text_boundaries("aaa|b|cc", 2, ["|"])
    [0, 5, 8]
    """
    find = re.compile("|".join(map(re.escape, delimiters))).search

    def find_next(start: int) -> int:
        match = find(text, start)
        return match.start() if match else len(text)

    return _snap(len(text), chunks if delimiters else 1, find_next)


def file_boundaries(file: BinaryIO, chunks: int, delimiters: Sequence[str], window: int = WINDOW) -> list[int]:
    """Return the byte offsets at which a file is cut; each is searched a window at a time.

    A chunk starts with a delimiter, so with the first byte of a character: decoding chunk by chunk gives the
    same text as decoding the whole, also where the file is not UTF-8 (bytes are replaced as they are in the
    whole).

    Args:
        file: binary, seekable.
        chunks: how many pieces are wanted; there are fewer where delimiters are.
        delimiters: safe ones; without any, the file stays whole.
        window: how many bytes to search at once.

    >>> import io
    >>> file_boundaries(io.BytesIO(b"aaa|b|cc"), 2, ["|"], window=1)
    [0, 5, 8]
    """
    size = file.seek(0, os.SEEK_END)
    tokens = [delimiter.encode("utf-8") for delimiter in delimiters]
    find = re.compile(b"|".join(map(re.escape, tokens))).search
    # Windows overlap, so that a delimiter that starts in one and ends in the next is found.
    overlap = max(map(len, tokens), default=1) - 1

    def find_next(start: int) -> int:
        while start < size:
            file.seek(start)
            match = find(file.read(window + overlap))
            if match and match.start() < window:
                return start + match.start()
            start += window
        return size

    return _snap(size, chunks if tokens else 1, find_next)


def _snap(size: int, chunks: int, find_next: Callable[[int], int]) -> list[int]:
    cuts = [0]
    for number in range(1, chunks):
        even = size * number // chunks
        if even > cuts[-1]:
            cuts.append(find_next(even))
    return list(dict.fromkeys([*cuts, size]))
