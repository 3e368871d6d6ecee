"""Cases of encoding: words that wrong encoders fail, texts that wrong patterns split differently, and more."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import regex

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.fixtures.values import TEXTS
from bpe_conformance.reference import textbook

from ..terminal import show
from .draws import PIECES, RAW_TEXT, SPACE, SPLIT_CLAUSES, Draw
from .patterns import Mutant, alternatives, mutants
from .reach import Reach, covering, in_category, ordinary, text_of
from .wrong import WRONG, Tables

T = TypeVar("T")


@dataclass(frozen=True)
class Draft:
    """A case before it has an id and an expected value.

    Attributes:
        kind: its purpose, a part of its id.
        clause: the clause that it tests.
        title: what it shows.
        op: encode, decode, stream or batch.
        input: as in a case of the spec.
    """

    kind: str
    clause: str
    title: str
    op: str
    input: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        """The texts that are encoded; for a stream, the whole text."""
        if self.op == "batch":
            return list(self.input["texts"])
        if self.op == "stream":
            return [self.input["text"] if "text" in self.input else "".join(self.input["chunks"])]
        return [self.input["text"]] if self.op == "encode" else []


def encode(kind: str, clause: str, title: str, text: str) -> Draft:
    """Return the draft of an encoding."""
    return Draft(kind, clause, title, "encode", {"text": text})


def grouped(parts: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the parts, `size` at a time."""
    for start in range(0, len(parts), size):
        yield parts[start : start + size]


# Merging

WORDS = 48
"""The largest number of words for each wrong encoder."""
ALONE = 6
"""How many of them, the shortest ones, are separate cases."""
CANDIDATES = 6000
LONG = (60, 400, 1200)
"""Bytes of a long pre-token."""


def tokens(reach: Reach, draw: Draw) -> Iterator[Draft]:
    """Yield texts that together contain every reachable token."""
    texts, _ = covering(reach, draw)
    for number, text in enumerate(texts, 1):
        clause = "MERGE-ORDER-1" if text.isascii() else "MERGE-BYTES-1"
        yield encode("tokens", clause, f"every token of the model, text {number} of {len(texts)}", text)


def words(reach: Reach, draw: Draw) -> tuple[list[Draft], dict[str, int]]:
    """Return cases that wrong encoders fail, and the number of words found for each encoder."""
    tables = Tables(reach)
    found: dict[str, list[str]] = {wrong.name: [] for wrong in WRONG}
    active = [wrong for wrong in WRONG if wrong.name != "whole-first"]
    for word in _candidates(reach, draw):
        atoms, right = textbook.atoms(word), reach.merged(word)
        for wrong in active:
            if tables.merged(wrong, atoms) != right:
                found[wrong.name].append(word)
        active = [wrong for wrong in active if len(found[wrong.name]) < WORDS]
    found["whole-first"] = _unbuilt(reach)
    drafts: list[Draft] = []
    for wrong in WRONG:
        shortest = sorted(found[wrong.name], key=lambda word: (len(word), word))[:ALONE]
        clause = wrong.known_bug.clause
        drafts += [
            encode(wrong.name, clause, f"an encoder that {wrong.what} fails on {show.text_line(word)}", word)
            for word in shortest
        ]
        for group in grouped(found[wrong.name], 16):
            text = "".join(word if word.startswith(" ") else f"\n{word}" for word in group)
            if len(group) > 1:
                drafts.append(encode(wrong.name, clause, f"an encoder that {wrong.what} fails on these words", text))
    return drafts, {name: len(words) for name, words in found.items()}


def _candidates(reach: Reach, draw: Draw) -> Iterator[str]:
    """Yield pre-tokens: adjacent tokens, repeated parts, and real text."""
    seen: set[str] = set()
    texts = ordinary(reach)
    for number in range(CANDIDATES):
        kind = number % 4
        if kind == 0:
            text = "".join(text_of(draw.pick(texts)) for _ in range(draw.between(2, 3)))
        elif kind == 1:
            text = draw.walk(text_of(draw.pick(texts)) or "ab", draw.between(3, 14))
        elif kind == 2:
            text = draw.pick((" ", "", "a")) + text_of(draw.pick(texts)) * draw.between(2, 5)
        else:
            text = draw.pick(_real_words())
        for piece in reach.pre_tokens(text):
            if 1 < len(piece.encode("utf-8")) <= 40 and piece not in seen:
                seen.add(piece)
                yield piece


_WORDS: list[str] = []


def _real_words() -> list[str]:
    if not _WORDS:
        for file in sorted(TEXTS.glob("*.txt")):
            _WORDS.extend(f" {word}" for word in file.read_bytes().decode("utf-8").split())
    return _WORDS


def _unbuilt(reach: Reach) -> list[str]:
    """Return the pre-tokens that are tokens, but that merges do not build."""
    found = []
    for token in ordinary(reach):
        text = text_of(token)
        if len(token) > 1 and text and reach.pre_tokens(text) == [text] and reach.merged(text) != (token,):
            found.append(text)
    return found


def real(reach: Reach) -> Iterator[Draft]:
    """Yield the fixed texts of the suite, one case each."""
    clause = "MERGE-GPT2-1" if reach.model.is_gpt2 else "MERGE-ORDER-1"
    for file in sorted(TEXTS.glob("*.txt")):
        text = file.read_bytes().decode("utf-8")
        yield encode("real-text", clause, f"real text: {file.stem[3:].replace('-', ' ')}", text)


def long(reach: Reach, draw: Draw) -> Iterator[Draft]:
    """Yield long pre-tokens."""
    for length in LONG:
        for letters in ("a", "ab", "etaoinshrdlu", "=", " ", "日本語の", "0123456789", "ёжик"):
            text = letters * length if len(letters) == 1 else draw.walk(letters, length)
            text = text.encode("utf-8")[:length].decode("utf-8", "ignore")
            title = f"{length} bytes of {show.text_line(letters)}"
            yield encode("long", "MERGE-LONG-1", title, text)


# Splitting

DETECTIONS = 2
"""How many texts detect each mistake in a pattern."""
TRIED, TRIED_LARGE = 2000, 8000
"""How many texts are tried, for small and for large models."""
BLOCK = 7
"""Bits of a code point within its block."""
LARGE = ((0x3400, 0xA000), (0xAC00, 0xD780), (0x20000, 0x30000))
"""Code points of thousands of ideographs and syllables; a sample is enough."""
SCRIPT_CASES = 12
OBJECT_PROPERTIES = ("constructor", "__proto__", "toString", "valueOf", "hasOwnProperty", "__class__", "length", "null")
"""Names that a lookup in a plain JavaScript or Python object finds, although they are not entries."""


def mistakes(reach: Reach, draw: Draw) -> tuple[list[Draft], dict[str, object]]:
    """Return short texts whose ids mistakes in the pattern change, and how many mistakes they detect."""
    pattern = PATTERNS[reach.model.pattern]
    every = mutants(pattern)
    left = dict.fromkeys(every, DETECTIONS)
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
        if number % 4 == 1:  # a missing border shows in the ids only if a merge crosses it
            text = "".join(text_of(draw.pick(tokens)) for _ in range(draw.between(2, 4)))
        detected = _detected_by(reach, left, text)
        if detected:
            text = _shortened(reach, text, detected)
            drafts.append(encode("split", clause, f"split differently {detected[0].what}"[:120], text))
            for mutant in detected:
                left[mutant] -= 1
            left = {mutant: count for mutant, count in left.items() if count}
    never = [mutant.what for mutant, count in left.items() if count == DETECTIONS]
    report: dict[str, object] = {"mutants": len(every), "told_apart": len(every) - len(never), "not_told_apart": never}
    return drafts, report


def alternatives_met(reach: Reach, texts: Sequence[str]) -> dict[str, object]:
    """Return which alternatives of the pattern match in the texts."""
    parts = alternatives(PATTERNS[reach.model.pattern])
    compiled = [regex.compile(part) for part in parts]
    met = [0] * len(parts)
    whole = regex.compile(PATTERNS[reach.model.pattern])
    for text in texts:
        for part, _ in textbook.cut_special(text, reach.model.special_tokens or ()):
            for match in whole.finditer(part):
                index = next(at for at, one in enumerate(compiled) if one.match(part, match.start()))
                met[index] += 1
    return {
        "all": len(parts),
        "met": sum(map(bool, met)),
        "not_met": [p for p, n in zip(parts, met, strict=True) if not n],
    }


def _clauses(pattern: str) -> list[tuple[str, str]]:
    """Return the kinds of `PIECES`, each with its clause."""
    if pattern in SPLIT_CLAUSES:
        return [(about, f"SPLIT-{clause}") for about, clause in zip(PIECES, SPLIT_CLAUSES[pattern], strict=True)]
    return [(about, "SPLIT-FENCE-1") for about in PIECES]


def _literals(pattern: str) -> tuple[str, ...]:
    """Return the literals of a pattern: words, and characters of its classes."""
    bare = regex.sub(r"\\[pP]\{\w+\}|\\[^\W_]|\(\?[^:>)]*[:>]?|\{\d*,?\d*\}", " ", pattern)
    words = regex.findall(r"'?\p{L}+|[^\s\w\\\[\]()|?*+^$]", bare)
    return tuple(dict.fromkeys(words))


def _detected_by(reach: Reach, among: Iterable[Mutant], text: str) -> list[Mutant]:
    """Return the patterns whose split of a text gives other tokens."""
    right = reach.pre_tokens(text)
    tokens = [token for piece in right for token in reach.merged(piece)]
    found = []
    for mutant in among:
        other = textbook.split(text, mutant.pattern)
        if other != right and [token for piece in other for token in reach.merged(piece)] != tokens:
            found.append(mutant)
    return found


def _shortened(reach: Reach, text: str, detected: Sequence[Mutant]) -> str:
    """Return the text without the characters that are not needed to detect the same mistakes."""
    place = 0
    while place < len(text):
        shorter = text[:place] + text[place + 1 :]
        if len(_detected_by(reach, detected, shorter)) == len(detected):
            text = shorter
        else:
            place += 1
    return text


def scripts(reach: Reach, draw: Draw) -> Iterator[Draft]:
    """Yield words, numbers and signs of every block of Unicode 3.2, on whose classes all engines agree."""
    known = reach.model.pattern in SPLIT_CLAUSES
    clause = "SPLIT-UNICODE-1" if known else "BYTES-ATOM-1"
    for group in grouped([_sample(draw, block) for block in _blocks()], SCRIPT_CASES):
        first = unicodedata.name(group[0].strip()[0], "signs").split(" ")[0].lower()
        yield encode("scripts", clause, f"scripts, first {first}", " ".join(group))


def _sample(draw: Draw, block: str) -> str:
    words = ["".join(draw.pick(block) for _ in range(draw.between(1, 6))) for _ in range(3)]
    return "".join(draw.pick(("", " ", "  ", "\n", "1", ".")) + word for word in words)


@cache
def _blocks() -> list[str]:
    """Return, for each 128 code points, the characters whose category has not changed since Unicode 3.2.

    Only a few blocks of ideographs and Hangul syllables are used.
    """
    old = unicodedata.ucd_3_2_0
    found: dict[int, str] = {}
    for block in (*range(0x30000 >> BLOCK), 0xE0000 >> BLOCK):  # the others are not assigned, or for private use
        if any(first <= block << BLOCK < end for first, end in LARGE) and block % 37:
            continue
        for code in range(block << BLOCK, (block + 1) << BLOCK):
            char, category = chr(code), old.category(chr(code))
            if category not in ("Cn", "Co", "Cs") and in_category(char, category):
                found[block] = found.get(block, "") + char
    return list(found.values())


def raw(reach: Reach, draw: Draw) -> Iterator[Draft]:
    """Yield texts that some tokenizers change: with decomposed letters, control characters, white space or a BOM."""
    yield encode("empty", "BYTES-EMPTY-1", "the empty text", "")
    for text in OBJECT_PROPERTIES:
        yield encode("raw", "BYTES-TEXT-2", "the name of a property of every object is plain text", f"{text} {text}")
    for clause, pieces, ends in (
        ("BYTES-TEXT-1", RAW_TEXT[:16], ("",)),
        ("BYTES-TEXT-2", RAW_TEXT, SPACE),
        ("BYTES-TEXT-3", ("\ufeff", "\0", "a", r"\p{C}", " "), ("",)),
    ):
        for _ in range(8):
            text = draw.pick(ends) + draw.pieces(pieces, draw.between(6, 20)) + draw.pick(ends)
            yield encode("raw", clause, "text is not changed", text)
