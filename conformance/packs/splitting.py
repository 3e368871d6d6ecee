"""Cases of splitting: what mistakes in the pattern split otherwise, every script, what looks like nothing."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import regex

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.reference import textbook

from .cover import ordinary
from .draft import Draft, encode, grouped
from .draws import PIECES, RAW_TEXT, SPACE, SPLIT_CLAUSES, Draw
from .mutants import Mutant, alternatives, mutants
from .reach import Reach, text_of

KILLS = 2
"""How many texts tell each mutant from the pattern."""
TRIED, TRIED_LARGE = 2000, 8000
"""How many texts are tried; for a large table, which has more to show, more."""
BLOCK = 7
LARGE = ((0x3400, 0xA000), (0xAC00, 0xD780), (0x20000, 0x30000))
"""Where ideographs and syllables stand by the thousand."""
SCRIPT_CASES = 12
PROPERTIES = ("constructor", "__proto__", "toString", "valueOf", "hasOwnProperty", "__class__", "length", "null")
"""What a table that is kept in an object finds although it does not hold it."""


def mistakes(reach: Reach, draw: Draw) -> tuple[list[Draft], dict[str, object]]:
    """Return short texts that mistakes in the pattern split otherwise, to other ids, and what they tell apart."""
    pattern = PATTERNS[reach.model.pattern]
    every = mutants(pattern)
    left = dict.fromkeys(every, KILLS)
    drafts: list[Draft] = []
    clauses = _clauses(reach.model.pattern)
    own = _literals(pattern)
    tokens = ordinary(reach)
    for number in range(TRIED_LARGE if reach.model.is_large else TRIED):
        if not left:
            break
        about, clause = clauses[number % len(clauses)]
        pieces = (*PIECES[about], *own) if number % 3 == 0 and own else PIECES[about]
        text = draw.pieces(pieces, draw.between(2, 7))
        if number % 4 == 1:  # only a merge across a border shows in ids that it is missed
            text = "".join(text_of(draw.pick(tokens)) for _ in range(draw.between(2, 4)))
        killed = _told_apart(reach, left, text)
        if killed:
            text = _shortened(reach, text, killed)
            drafts.append(encode("split", clause, f"split otherwise {killed[0].what}"[:120], text))
            for mutant in killed:
                left[mutant] -= 1
            left = {mutant: count for mutant, count in left.items() if count}
    never = [mutant.what for mutant, count in left.items() if count == KILLS]
    told: dict[str, object] = {"mutants": len(every), "told_apart": len(every) - len(never), "not_told_apart": never}
    return drafts, told


def alternatives_met(reach: Reach, texts: Sequence[str]) -> dict[str, object]:
    """Return which alternatives of the pattern match somewhere in the texts."""
    parts = alternatives(PATTERNS[reach.model.pattern])
    compiled = [regex.compile(part) for part in parts]
    met = [0] * len(parts)
    whole = regex.compile(PATTERNS[reach.model.pattern])
    for text in texts:
        for part, _ in textbook.cut_special(text, reach.model.special_tokens or ()):
            for match in whole.finditer(part):
                place = next(at for at, one in enumerate(compiled) if one.match(part, match.start()))
                met[place] += 1
    return {
        "all": len(parts),
        "met": sum(map(bool, met)),
        "not_met": [p for p, n in zip(parts, met, strict=True) if not n],
    }


def _clauses(pattern: str) -> list[tuple[str, str]]:
    """Return the kinds of texts, and the clause for each."""
    if pattern in SPLIT_CLAUSES:
        return [(about, f"SPLIT-{clause}") for about, clause in zip(PIECES, SPLIT_CLAUSES[pattern], strict=True)]
    return [(about, "SPLIT-FENCE-1") for about in PIECES]


def _literals(pattern: str) -> tuple[str, ...]:
    """Return what stands in a pattern as it is: words, and marks of its classes."""
    bare = regex.sub(r"\\[pP]\{\w+\}|\\[^\W_]|\(\?[^:>)]*[:>]?|\{\d*,?\d*\}", " ", pattern)
    words = regex.findall(r"'?\p{L}+|[^\s\w\\\[\]()|?*+^$]", bare)
    return tuple(dict.fromkeys(words))


def _told_apart(reach: Reach, among: Iterable[Mutant], text: str) -> list[Mutant]:
    """Return the mutants whose split of a text gives other tokens."""
    right = reach.pre_tokens(text)
    tokens = [token for piece in right for token in reach.merged(piece)]
    found = []
    for mutant in among:
        other = textbook.split(text, mutant.pattern)
        if other != right and [token for piece in other for token in reach.merged(piece)] != tokens:
            found.append(mutant)
    return found


def _shortened(reach: Reach, text: str, killed: Sequence[Mutant]) -> str:
    """Return the text without the characters that are not needed to tell the mutants apart."""
    place = 0
    while place < len(text):
        shorter = text[:place] + text[place + 1 :]
        if len(_told_apart(reach, killed, shorter)) == len(killed):
            text = shorter
        else:
            place += 1
    return text


def scripts(reach: Reach, draw: Draw) -> Iterator[Draft]:
    """Yield words, numbers and signs of every block of Unicode 3.2: engines of every age class them alike."""
    known = reach.model.pattern in SPLIT_CLAUSES
    clause = "SPLIT-UNICODE-1" if known else "BYTES-ATOM-1"
    for group in grouped([_sample(draw, block) for block in _blocks()], SCRIPT_CASES):
        first = unicodedata.name(group[0].strip()[0], "signs").split(" ")[0].lower()
        yield encode("scripts", clause, f"scripts from {first} on", " ".join(group))


def _sample(draw: Draw, block: str) -> str:
    words = ["".join(draw.pick(block) for _ in range(draw.between(1, 6))) for _ in range(3)]
    return "".join(draw.pick(("", " ", "  ", "\n", "1", ".")) + word for word in words)


@cache
def _blocks() -> list[str]:
    """Return the characters of each 128 code points whose category is what it was in Unicode 3.2.

    Of the ideographs and the Hangul syllables, a few blocks stand for all.
    """
    old = unicodedata.ucd_3_2_0
    found: dict[int, str] = {}
    for block in range(0x110000 >> BLOCK):
        if any(first <= block << BLOCK < end for first, end in LARGE) and block % 37:
            continue
        for code in range(block << BLOCK, (block + 1) << BLOCK):
            char, category = chr(code), old.category(chr(code))
            if category not in ("Cn", "Co", "Cs") and regex.match(rf"\p{{{category}}}", char):
                found[block] = found.get(block, "") + char
    return list(found.values())


def raw(reach: Reach, draw: Draw) -> Iterator[Draft]:
    """Yield texts that a tokenizer is tempted to clean: decomposed, with control characters, white space, a BOM."""
    yield encode("empty", "BYTES-EMPTY-1", "the empty text", "")
    for text in PROPERTIES:
        yield encode("raw", "BYTES-TEXT-2", "a word that every object has a property for is text", f"{text} {text}")
    for clause, pieces, ends in (
        ("BYTES-TEXT-1", RAW_TEXT[:16], ("",)),
        ("BYTES-TEXT-2", RAW_TEXT, SPACE),
        ("BYTES-TEXT-3", ("\ufeff", "\0", "a", r"\p{C}", " "), ("",)),
    ):
        for _ in range(8):
            text = draw.pick(ends) + draw.pieces(pieces, draw.between(6, 20)) + draw.pick(ends)
            yield encode("raw", clause, "text is taken as it is", text)
