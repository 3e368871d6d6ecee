"""Cases of merging: tokens and merges covered, words that wrong encoders encode otherwise, long pre-tokens."""

from __future__ import annotations

from collections.abc import Iterator

from bpe_conformance.fixtures.values import TEXTS
from bpe_conformance.reference import textbook

from ..terminal import show
from .cover import covering, ordinary
from .draft import Draft, encode, grouped
from .draws import Draw
from .reach import Reach, text_of
from .wrong import WRONG, Tables

WANTED = 48
"""Words for each wrong encoder, if there are so many."""
ALONE = 6
"""How many of them are a case of their own; the shortest."""
TRIED = 6000
LONG = (60, 400, 1200)


def tokens(reach: Reach, draw: Draw) -> Iterator[Draft]:
    """Yield texts that hold every token that can be reached."""
    texts, _ = covering(reach, draw)
    for number, text in enumerate(texts, 1):
        clause = "MERGE-ORDER-1" if text.isascii() else "MERGE-BYTES-1"
        yield encode("tokens", clause, f"every token of the table, text {number} of {len(texts)}", text)


def words(reach: Reach, draw: Draw) -> tuple[list[Draft], dict[str, int]]:
    """Return cases that tell wrong encoders from the right one, and how many words do so for each of them."""
    tables = Tables(reach)
    found: dict[str, list[str]] = {wrong.name: [] for wrong in WRONG}
    active = [wrong for wrong in WRONG if wrong.name != "whole-first"]
    for word in _candidates(reach, draw):
        atoms, right = textbook.atoms(word), reach.merged(word)
        for wrong in active:
            if wrong.merge(tables, atoms) != right:
                found[wrong.name].append(word)
        active = [wrong for wrong in active if len(found[wrong.name]) < WANTED]
    found["whole-first"] = _unbuilt(reach)
    drafts: list[Draft] = []
    for wrong in WRONG:
        shortest = sorted(found[wrong.name], key=lambda word: (len(word), word))[:ALONE]
        drafts += [
            encode(wrong.name, wrong.clause, f"wrong for who {wrong.what}: {show.text_line(word)}", word)
            for word in shortest
        ]
        for group in grouped(found[wrong.name], 16):
            text = "".join(word if word.startswith(" ") else f"\n{word}" for word in group)
            if len(group) > 1:
                drafts.append(encode(wrong.name, wrong.clause, f"words wrong for who {wrong.what}", text))
    return drafts, {name: len(words) for name, words in found.items()}


def _candidates(reach: Reach, draw: Draw) -> Iterator[str]:
    """Yield pre-tokens: of real text, of runs, of tokens set side by side."""
    seen: set[str] = set()
    texts = ordinary(reach)
    for number in range(TRIED):
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
    """Return the pre-tokens that are tokens and that merges do not build."""
    found = []
    for token in ordinary(reach):
        text = text_of(token)
        if len(token) > 1 and text and reach.pre_tokens(text) == [text] and reach.merged(text) != (token,):
            found.append(text)
    return found


def real(reach: Reach) -> Iterator[Draft]:
    """Yield the texts of the suite's real text, a paragraph each."""
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
            title = f"{length} bytes of {show.text_line(letters)} on end"
            yield encode("long", "MERGE-LONG-1", title, text)
