"""Cases of encoding: words that incorrect encoders fail, texts that incorrect patterns split differently, and more."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

import regex

from bpe_conformance.fixtures import PATTERNS, Model
from bpe_conformance.fixtures.characters import agreed
from bpe_conformance.fixtures.values import TEXTS
from bpe_conformance.reference import textbook

from ..known_bugs import KnownBug, known_bugs
from ..known_bugs.bases import BaseEncoder
from ..terminal import show
from .draws import PIECES, RAW_TEXT, SPACE, SPLIT_CLAUSES, Draw, all_real_text
from .patterns import Mutant, alternatives, mutants
from .reach import Reach, covering, ordinary, text_of

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


def encode(kind: str, clause: str, title: str, text: str) -> Draft:
    """Return the draft of an encoding."""
    return Draft(kind, clause, title, "encode", {"text": text})


def texts_of(given: Mapping[str, Any]) -> list[str]:
    """Return the texts that the input of a case encodes; for a stream, the whole text."""
    if "ids" in given:
        return []
    if "texts" in given:
        return list(given["texts"])
    return [given["text"] if "text" in given else "".join(given["chunks"])]


def grouped(parts: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the parts, `size` at a time."""
    for start in range(0, len(parts), size):
        yield parts[start : start + size]


# Merging

WRONG = {
    "longest-match": ("longest-match", "takes the longest token from the left"),
    "fewest-tokens": ("fewest-tokens", "takes the fewest tokens that spell the text"),
    "greedy-left-to-right": ("leftmost-first", "merges the leftmost pair in the list"),
    "highest-rank-first": ("latest-first", "merges the pair with the highest rank"),
    "longest-result-first": ("longest-first", "merges the pair with the longest result"),
    "rank-from-id": ("by-id", "merges the pair whose result has the lowest id"),
    "rightmost-of-equals": ("rightmost-of-equals", "merges the last of equal pairs"),
    "single-pass": ("single-pass", "makes one pass over the text"),
    "initial-pairs-only": ("never-again", "ignores the pairs that a merge creates"),
    "rank-from-bytes": ("by-bytes", "merges two tokens if their concatenation is a token"),
    "whole-pre-token-first": ("whole-first", "emits a whole pre-token that merges do not build"),
}
"""Id of a known bug → its name in the ids of a pack's cases, and what it does, as the end of a sentence."""
WORDS = 48
"""The largest number of words for each incorrect encoder."""
ALONE = 6
"""How many of them, the shortest ones, are separate cases."""
CANDIDATES = 2000
"""How many candidates of each kind are tried."""
LONG = (60, 400, 1200)
"""Bytes of a long pre-token."""


def tokens(reach: Reach, draw: Draw) -> Iterator[Draft]:
    """Yield texts that together contain every reachable token."""
    texts = covering(reach, draw)
    for number, text in enumerate(texts, 1):
        clause = "MERGE-ORDER-1" if text.isascii() else "MERGE-BYTES-1"
        yield encode("tokens", clause, f"every token of the model, text {number} of {len(texts)}", text)


def words(reach: Reach, draw: Draw) -> tuple[list[Draft], dict[str, int]]:
    """Return cases that incorrect encoders fail, and the number of words found for each encoder."""
    bugs = {bug.id: bug for bug in known_bugs() if bug.id in WRONG}
    active = _encoders(reach.model, bugs.values())
    found: dict[str, list[str]] = {bug: [] for bug in WRONG}
    for word in _candidates(reach, draw):
        atoms, right = textbook.atoms(word), reach.merged(word)
        for bug, encoder in list(active.items()):
            if encoder.merge(atoms) != right:
                found[bug].append(word)
                if len(found[bug]) == WORDS:
                    del active[bug]
    drafts: list[Draft] = []
    for bug, (name, what) in WRONG.items():
        clause, title = bugs[bug].clause, f"an encoder that {what} fails on"
        shortest = sorted(found[bug], key=lambda word: (len(word), word))[:ALONE]
        drafts += [encode(name, clause, f"{title} {show.text_line(word)}", word) for word in shortest]
        for group in grouped(found[bug], 16):
            text = "".join(word if word.startswith(" ") else f"\n{word}" for word in group)
            if len(group) > 1:
                drafts.append(encode(name, clause, f"{title} these words", text))
    return drafts, {name: len(found[bug]) for bug, (name, _) in WRONG.items()}


def _candidates(reach: Reach, draw: Draw) -> Iterator[str]:
    """Yield pre-tokens: adjacent tokens, repeated tokens, real text, and tokens that no merges build."""
    every = ordinary(reach)
    real = all_real_text().split()
    texts: list[str] = []
    for _ in range(CANDIDATES):
        texts.append("".join(text_of(draw.pick(every)) for _ in range(draw.between(2, 3))))
        texts.append(draw.pick((" ", "", "a")) + text_of(draw.pick(every)) * draw.between(2, 5))
        texts.append(f" {draw.pick(real)}")
    texts += [text for token in every if (text := text_of(token)) and reach.merged(text) != (token,)]
    for piece in dict.fromkeys(piece for text in texts for piece in reach.pre_tokens(text)):
        if 1 < len(piece.encode("utf-8")) <= 40:
            yield piece


def _encoders(model: Model, bugs: Iterable[KnownBug]) -> dict[str, BaseEncoder]:
    """Return these known bugs, each with the vocabulary and merges of a model, without its special tokens."""
    special = {text.encode("utf-8") for text in model.special_tokens or ()}
    base = BaseEncoder({index: token for index, token in model.vocab.items() if token not in special}, model.merges)
    found: dict[str, BaseEncoder] = {}
    for bug in bugs:
        target: Any = bug.target
        found[bug.id] = target.__new__(target)  # it shares the tables, which take long to build
        vars(found[bug.id]).update(vars(base))
    return found


def real(reach: Reach) -> Iterator[Draft]:
    """Yield the fixed texts of the suite, one case each."""
    clause = "MERGE-GPT2-1" if reach.model.is_gpt2 else "MERGE-ORDER-1"
    for file in sorted(TEXTS.glob("*.txt")):
        text = file.read_bytes().decode("utf-8")
        yield encode("real-text", clause, f"real text: {file.stem[3:].replace('-', ' ')}", text)


def long(draw: Draw) -> Iterator[Draft]:
    """Yield long pre-tokens."""
    for length in LONG:
        for letters in ("a", "ab", "etaoinshrdlu", "=", " ", "日本語の", "0123456789", "ёжик"):
            text = "".join(draw.pick(letters) for _ in range(length))
            text = text.encode("utf-8")[:length].decode("utf-8", "ignore")
            yield encode("long", "MERGE-LONG-1", f"{length} bytes of {show.text_line(letters)}", text)


# Splitting

DETECTIONS = 2
"""How many texts detect each mistake in a pattern."""
TRIED = 4000
"""How many texts are tried."""
BLOCK = 7
"""Bits of a code point within its block."""
BLOCKS = 32
"""How many blocks a text of all scripts samples."""
OBJECT_PROPERTIES = ("constructor", "__proto__", "toString", "valueOf", "hasOwnProperty", "__class__", "length", "null")
"""Names that a lookup in a plain JavaScript or Python object finds, although they are not entries."""


def mistakes(reach: Reach, draw: Draw) -> tuple[list[Draft], dict[str, object]]:
    """Return short texts whose ids mistakes in the pattern change, and how many mistakes they detect."""
    pattern = PATTERNS[reach.model.pattern]
    every = mutants(pattern)
    left = dict.fromkeys(every, DETECTIONS)
    drafts: list[Draft] = []
    clauses = SPLIT_CLAUSES.get(reach.model.pattern, ["FENCE-1"] * len(PIECES))
    subjects = list(zip(clauses, PIECES.values(), strict=True))
    own = _literals(pattern)
    tokens = ordinary(reach)
    for number in range(TRIED):
        if not left:
            break
        clause, pieces = subjects[number % len(subjects)]
        text = draw.pieces((*pieces, *own) if number % 3 == 0 else pieces, draw.between(2, 7))
        if number % 4 == 1:  # a missing border shows in the ids only if a merge crosses it
            text = "".join(text_of(draw.pick(tokens)) for _ in range(draw.between(2, 4)))
        detected = _detected_by(reach, left, text)
        if detected:
            drafts.append(encode("split", f"SPLIT-{clause}", f"split differently {detected[0].what}"[:120], text))
            for mutant in detected:
                left[mutant] -= 1
            left = {mutant: count for mutant, count in left.items() if count}
    never = [mutant.what for mutant, count in left.items() if count == DETECTIONS]
    report: dict[str, object] = {"mutants": len(every), "told_apart": len(every) - len(never), "not_told_apart": never}
    return drafts, report


def alternatives_met(reach: Reach, texts: Iterable[str]) -> dict[str, object]:
    """Return which alternatives of the pattern match in the texts."""
    pattern = PATTERNS[reach.model.pattern]
    parts = {part: regex.compile(part) for part in alternatives(pattern)}
    met = {
        next((part for part, one in parts.items() if one.match(segment, match.start())), None)
        for text in texts
        for segment, _ in textbook.cut_special(text, reach.model.special_tokens or ())
        for match in regex.finditer(pattern, segment)
    }
    missing = [part for part in parts if part not in met]
    return {"all": len(parts), "met": len(parts) - len(missing), "not_met": missing}


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


def scripts(reach: Reach, draw: Draw) -> Iterator[Draft]:
    """Yield words, numbers and signs of every block of Unicode, of characters on whose classes engines agree."""
    clause = "SPLIT-UNICODE-1" if reach.model.pattern in SPLIT_CLAUSES else "BYTES-ATOM-1"
    visible = (char for run in agreed() for char in run if char.isprintable())
    blocks = ["".join(block) for _, block in groupby(visible, lambda char: ord(char) >> BLOCK)]
    for group in grouped(blocks, BLOCKS):
        first = unicodedata.name(group[0][0], "signs").split(" ")[0].lower()
        words = ("".join(draw.pick(block) for _ in range(draw.between(1, 6))) for block in [*group, *group])
        text = "".join(draw.pick((" ", "  ", "\n", "1", ".")) + word for word in words)
        yield encode("scripts", clause, f"scripts, first {first}", text)


def raw(draw: Draw) -> Iterator[Draft]:
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
