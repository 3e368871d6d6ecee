"""Cuts a text that comes in chunks into pieces that can be split and encoded one by one (section STREAM).

Two things are held back: the end of the text, while more text could make it a special token; and in a segment that has
not ended, everything after the last fence, because the next characters can change how it splits. The work for a
character does not depend on the size of the chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import regex

from . import fences
from .special_tokens import SpecialTokens

_LAST_FENCE = regex.compile(f"(?r){fences.TEXT}")


def pieces(chunks: Iterable[str], special: SpecialTokens, compiled: regex.Pattern[str]) -> Iterator[tuple[str, bool]]:
    """Yield pieces of the joined text, and whether each is a special token, as early as it is certain.

    The pre-tokens of the pieces, one after the other, are those of the whole text. The buffer holds at most the longest
    chunk, special token and text between two fences; for a pattern without fences it holds the whole segment.

    >>> from bpe_conformance.reference.patterns import resolve
    >>> list(pieces(["I'l", "l go", "<|e", "|>", "on"], SpecialTokens(["<|e|>"]), resolve("gpt2")))
    [("I'll", False), (' go', False), ('<|e|>', True), ('on', False)]
    """
    has_fence = fences.has_fence(compiled)
    held: list[str] = []
    size = 0
    tail = ""
    for text, is_special in fragments(chunks, special):
        if is_special:
            if held:
                yield "".join(held), False
            held, size, tail = [], 0, ""
            yield text, True
            continue
        held.append(text)
        size += len(text)
        # A new fence has a new character after it.
        window = tail + text
        match = _LAST_FENCE.search(window) if has_fence else None
        cut = size - len(window) + fences.position(match) if match else 0
        if cut > 0:
            joined = "".join(held)
            yield joined[:cut], False
            held, size = [joined[cut:]], size - cut
        tail = window[-2:]  # the most characters before a new one that decide whether a fence is there
    if held:
        yield "".join(held), False


def fragments(chunks: Iterable[str], special: SpecialTokens) -> Iterator[tuple[str, bool]]:
    """Yield the special tokens of the joined text, and between them its segments, in fragments.

    A match counts when no special token that is longer, or that starts further left, can still be completed.

    >>> list(fragments(["a<", "a>", "b", "<a>", "x"], SpecialTokens(["<a>", "<a>b<a>", "<a>x"])))
    [('a', False), ('<a>b<a>', True), ('x', False)]
    """
    held = ""
    for chunk in chunks:
        text = held + chunk
        start, opened = 0, special.open_at(text)
        while (found := special.find(text, start)) and found[0] < opened:
            begin, end = found
            if start < begin:
                yield text[start:begin], False
            yield text[begin:end], True
            start = end
            opened = special.open_at(text, start) if opened < start else opened
        if start < opened:
            yield text[start:opened], False
        held = text[opened:]
    yield from special.cut(held)
