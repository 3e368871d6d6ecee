"""Cases of special tokens: alone, doubled, overlapping, at edges, spelled in parts, and what merely looks like one."""

from __future__ import annotations

from collections.abc import Iterator

from ..terminal import show
from .draft import Draft, encode, grouped
from .draws import Draw
from .reach import Reach

MANY = 12
"""Of so many special tokens each has its own cases; of more, those that overlap with others, and some."""
BESIDE = (" ", "  ", "\n", "\n\n", "\t", "a", "1", "!", "'s", "é", "日", "<", "|>", " the")
FOREIGN = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start|>", "<|fim_prefix|>", "<think>"),
    *("<s>", "</s>", "<unk>", "<pad>", "[CLS]", "[INST]", "<|e|>"),
)
"""Special tokens of other models."""
SWAPS = {"<": "＜", "|": "｜", "_": "-", "e": "е", "o": "ο", "i": "ı"}


def cases(reach: Reach, draw: Draw) -> Iterator[Draft]:
    """Yield the cases of every special token of the table; of a table without any, what looks like some."""
    special = list(dict.fromkeys(reach.model.special_tokens or ()))
    for token in _chosen(special):
        yield from _of_one(token, draw)
    for first, second in _pairs(special, draw):
        shown = f"{show.text_line(first)} and {show.text_line(second)}"
        for text in (first + second, second + first, f"{first} {second}", *_overlaps(first, second)):
            yield encode("special-two", "SPECIAL-SCAN-1", f"{shown}, side by side or overlapping", text)
    for group in grouped(special, 40):
        yield encode("special-all", "SPECIAL-ID-1", "every special token", "".join(f"{token}a " for token in group))
        yield encode("special-all", "SPECIAL-ORDER-1", "the same, none apart", "".join(reversed(group)))
    for _ in range(12 if special else 0):
        parts = [draw.pick(special) if draw.chance(0.4) else draw.pick(BESIDE) for _ in range(draw.between(4, 12))]
        yield encode("special-strewn", "SPECIAL-SEGMENT-1", "special tokens among others", "".join(parts))
    foreign = [text for text in FOREIGN if not any(token in text for token in special)]
    for text in foreign:
        yield encode("special-foreign", "SPECIAL-OFF-1", f"{text} is no special token of this model", f"a{text} b")


def _chosen(special: list[str]) -> list[str]:
    if len(special) <= MANY:
        return special
    met = [one for one in special if any(one != other and (one in other or other in one) for other in special)]
    return list(dict.fromkeys([*special[: MANY // 2], *special[-2:], *met[: MANY // 2]]))


def _of_one(token: str, draw: Draw) -> Iterator[Draft]:
    shown = show.text_line(token)
    middle = draw.between(1, len(token) - 1) if len(token) > 1 else 1
    for kind, clause, title, texts in (
        ("alone", "SPECIAL-ID-1", "alone", (token,)),
        ("doubled", "SPECIAL-SCAN-1", "doubled and trebled", (token * 2, token * 3, f"{token} {token}")),
        ("overlap", "SPECIAL-SCAN-1", "overlapping with a part of itself", _overlaps(token, token)),
        ("edge", "SPECIAL-SEGMENT-1", "at an edge", tuple(f"{token}{one}" for one in BESIDE[:6])),
        ("edge", "SPECIAL-SEGMENT-1", "at an edge", tuple(f"{one}{token}" for one in BESIDE[:6])),
        ("beside", "SPECIAL-SEGMENT-1", "between others", (token.join(["", *draw.shuffled(BESIDE), ""]),)),
        ("parts", "SPECIAL-EXACT-1", "in parts", (token[:-1], token[1:], f"{token[:middle]} {token[middle:]}")),
        ("parts", "SPECIAL-EXACT-1", "in parts", (token[:middle] + "\u200b" + token[middle:], token[::-1])),
        ("alike", "SPECIAL-EXACT-1", "written otherwise", _alike(token)),
    ):
        for text in dict.fromkeys(texts):
            yield encode(f"special-{kind}", clause, f"{shown} {title}", text)


def _alike(token: str) -> tuple[str, ...]:
    swapped = tuple(token.replace(char, other) for char, other in SWAPS.items() if char in token)
    return tuple(text for text in (token.upper(), token.lower(), token.title(), *swapped) if text != token)


def _overlaps(first: str, second: str) -> tuple[str, ...]:
    """Return texts in which the end of the first is the beginning of the second, or nearly."""
    shared = [length for length in range(1, min(len(first), len(second))) if first.endswith(second[:length])]
    return (*(first + second[length:] for length in shared), first + second[1:], first[:-1] + second)


def _pairs(special: list[str], draw: Draw) -> list[tuple[str, str]]:
    """Return pairs of special tokens, those first of which one holds or runs into the other."""
    met = [(a, b) for a in special for b in special if a != b and (a in b or any(a.endswith(b[:n]) for n in (1, 2, 3)))]
    return list(dict.fromkeys([*met[:MANY], *((draw.pick(special), draw.pick(special)) for _ in range(4) if special)]))
