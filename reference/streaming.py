"""Cuts a stream of chunks of text into parts that can be encoded separately (section STREAM).

Two things are held back: the end of the text, while more text could make it a special token, and everything after the
last fence in an unfinished segment, because the next characters can change how it splits. The cost of a character does
not depend on the size of the chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import regex

from . import fences
from .special_tokens import SpecialTokens

_LAST_FENCE = regex.compile(f"(?r){fences.TEXT}")


def parts(
    chunks: Iterable[str],
    special: SpecialTokens,
    compiled: regex.Pattern[str],
    uncertain: tuple[str, ...] = (),
    is_stable: Callable[[str], bool] | None = None,
) -> Iterator[str]:
    """Yield parts of the joined text, each as soon as its ids are certain.

    The concatenated ids of the parts are those of the whole text. The buffer holds at most the longest chunk, special
    token and text between two fences. For a pattern without fences, it holds the whole segment. The text is not cut
    after a special token of `uncertain`, nor at a fence beside characters that are not `is_stable`.

    >>> from bpe_conformance.reference.patterns import resolve
    >>> list(parts(["I'l", "l go", "<|e", "|>", "on"], SpecialTokens(["<|e|>"]), resolve("gpt2")))
    ["I'll", ' go<|e|>', 'on']
    """
    has_fence = fences.has_fence(compiled)
    held: list[str] = []
    size = 0
    tail = ""
    for scanned, begin in special.scan(chunks):
        certain, text = "", scanned
        if begin and not scanned.endswith(uncertain, 0, begin):
            certain, text = "".join(held) + scanned[:begin], scanned[begin:]
            held, size, tail = [], 0, ""
        held.append(text)
        size += len(text)
        # A new fence is followed by a new character.
        window = tail + text
        found = map(fences.position, _LAST_FENCE.finditer(window)) if has_fence else iter(())
        if is_stable:
            found = (position for position in found if is_stable(window[position - 1 : position + 2]))
        cut = size - len(window) + position if (position := next(found, 0)) else 0
        if cut:
            joined = "".join(held)
            certain += joined[:cut]
            held, size = [joined[cut:]], size - cut
        if certain:
            yield certain
        tail = window[-2:]  # no more characters before a new one decide whether a fence is there
    if size:
        yield "".join(held)
