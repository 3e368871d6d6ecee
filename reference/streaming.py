"""Cuts a text that comes in chunks into pieces that may be split and encoded one by one (section STREAM).

Two things are held back: the end of the text, while more text could make it a special token; and, in an open
segment, what stands behind the last fence, for the next characters may change how it splits. Every character
is looked at a bounded number of times, however small the chunks are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import regex

from .patterns import has_fence
from .special_tokens import SpecialTokens

_LAST_FENCE = regex.compile(r"(?r)(?<=\S) (?=\S)|(?<=[\u5000-\u9fff])[、。，]")


def pieces(chunks: Iterable[str], special: SpecialTokens, compiled: regex.Pattern[str]) -> Iterator[tuple[str, bool]]:
    """Yield pieces of the joined text, and whether each is a special token, as early as it is certain.

    The pre-tokens of the pieces, one after the other, are those of the whole. What is
    buffered is bounded by the longest chunk, special token and stretch without a fence; a pattern without
    fences holds back the whole segment.

    >>> from bpe_conformance.reference.patterns import resolve
    >>> list(pieces(["I'l", "l go", "<|e", "|>", "on"], SpecialTokens(["<|e|>"]), resolve("gpt2")))
    [("I'll", False), (' go', False), ('<|e|>', True), ('on', False)]
    """
    fenced = has_fence(compiled)
    held: list[str] = []
    tail = ""
    for text, is_special in fragments(chunks, special):
        if is_special:
            if held:
                yield "".join(held), False
            held, tail = [], ""
            yield text, True
            continue
        # A fence not seen before has a character of the new text at its right, so two old ones suffice.
        window = tail + text
        fence = _LAST_FENCE.search(window) if fenced else None
        if fence:
            here = fence.start() - len(tail)
            held.append(text)
            joined = "".join(held)
            cut = len(joined) - len(text) + here
            yield joined[:cut], False
            held = [joined[cut:]]
        else:
            held.append(text)
        tail = window[-2:]
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
