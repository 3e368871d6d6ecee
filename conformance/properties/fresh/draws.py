"""Draws texts, tables and special tokens for fresh cases."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import regex

from bpe_conformance.fixtures import PATTERNS, Merge, read_model, write_token
from bpe_conformance.fixtures.values import TEXTS
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Word

from .. import draws
from ..examples import SPECIALS, known_characters

Raw = dict[str, Any]
CLASSES = tuple(
    rf"\p{{{name}}}" for name in (*("Lu", "Ll", "Lt", "Lm", "Lo"), "M", "Nd", "Nl", "No", "P", "S", "Z", "C")
)
"""Classes of characters; in a list of pieces each stands for some of its characters."""


class Draw(draws.Draw):
    """Draws for one case."""

    def walk(self, letters: Sequence[str], length: int) -> str:
        """Return a text of `letters` in which earlier stretches come again."""
        text = ""
        while len(text) < length:
            start = self.below(len(text)) if text and self.chance(0.4) else None
            text += self.pick(letters) if start is None else text[start : start + self.between(2, 6)]
        return text[:length]

    def words(self, letters: Sequence[str], distinct: int, count: int, between: Sequence[str] = (" ", "\n")) -> str:
        """Return a text of `count` words, `distinct` of them different."""
        words = [self.walk(letters, self.between(1, 7)) for _ in range(distinct)]
        return "".join(self.pick(words) + self.pick(between) for _ in range(count))

    def pieces(self, pieces: Sequence[str], count: int) -> str:
        r"""Return `count` of `pieces`, joined; a class, such as `\p{Lu}` or `[a-z]`, gives one to three characters."""
        drawn = [self.pick(pieces) for _ in range(count)]
        return "".join(self._some(piece) if piece.startswith(("\\p{", "\\s", "[")) else piece for piece in drawn)

    def _some(self, character_class: str) -> str:
        return "".join(self.pick(_members(character_class)) for _ in range(self.pick((1, 1, 2, 3))))


@cache
def _members(character_class: str) -> list[str]:
    return regex.findall(character_class, known_characters())


@cache
def _real_text() -> str:
    return "\n".join(file.read_bytes().decode("utf-8") for file in sorted(TEXTS.glob("*.txt")))


def real_text(draw: Draw, stretches: int, longest: int) -> str:
    """Return stretches of the fixed text, from anywhere in it."""
    text = _real_text()
    starts = [draw.below(len(text) - longest) for _ in range(stretches)]
    return "".join(text[start : start + draw.between(1, longest)] for start in starts)


def table(draw: Draw, data: bytes, merges: int, any_ids: bool, special: Sequence[str] = ()) -> Raw:
    """Return a well-formed table whose merges are neighbours in `data`, in random order.

    Args:
        draw: draws.
        data: what the merges are found in.
        merges: how many, if so many are found.
        any_ids: whether ids run in any order; else they are a list of ranks.
        special: special tokens, which get entries; no merge makes one.
    """
    known = {bytes([byte]) for byte in range(256)} | {token.encode("utf-8") for token in special}
    words: list[Word] = [tuple(bytes([byte]) for byte in data)]
    found: list[Merge] = []
    for _ in range(4 * merges):
        word = words[-1] if draw.chance(0.7) else draw.pick(words)
        if len(word) < 2 or len(found) == merges:
            continue
        here = draw.below(len(word) - 1)
        pair = (word[here], word[here + 1])
        if pair[0] + pair[1] not in known:
            known.add(pair[0] + pair[1])
            found.append(pair)
            words.append(textbook.replace(word, pair))
    model: Raw = {"merges": [[write_token(left), write_token(right)] for left, right in found]}
    ids = list(range(256, 256 + len(found) + len(special)))
    if any_ids:
        offset, step = draw.pick((0, 0, 7)), draw.pick((1, 3, 100, 65_536, 1 << 20))
        model["byte_ids"] = offset or draw.pick(("raw", "gpt2", "reversed"))
        ids = draw.shuffled([256 + offset + step * place for place in range(len(ids))])
        if offset and special:
            ids[-1] = draw.below(offset)
        model["merge_ids"] = ids[: len(found)]
    if special:
        model["extra"] = [[index, token] for index, token in zip(ids[len(found) :], special, strict=True)]
        model["special_tokens"] = draw.shuffled(special)
    return model


def showing(text: str, special: Sequence[str] = (), pattern: str = "gpt2") -> Raw | None:
    """Return a table that shows where `text` is split, or None if there is none, or nothing to show."""
    shown = [write_token(b"".join(word)) for word in textbook.corpus(text, special, PATTERNS[pattern])]
    model: Raw = {"shows": shown, "pattern": pattern}
    if special:
        model["extra"] = [[90_000 + place, token] for place, token in enumerate(special)]
        model["special_tokens"] = list(special)
    try:
        entries = list(read_model(model).vocab.values())
    except ValueError:
        return None
    return model if len(shown) > 1 and len(entries) == len(dict.fromkeys(entries)) else None


def special_set(draw: Draw) -> list[str]:
    """Return special tokens that are beginnings, ends, doubles and overlaps of one another, of two bytes at least."""
    chosen = [draw.pick(SPECIALS) if draw.chance(0.7) else draw.walk("ab<|>", 4)]
    for _ in range(draw.between(0, 4)):
        one, other = draw.pick(chosen), draw.pick((*chosen, *SPECIALS))
        cut = draw.between(1, len(one))
        made = (one[:cut], one[cut:], one + one, one + other, one[-1] + other, one + "s", "a" + one, other, other)
        chosen += [token for token in (draw.pick(made),) if len(token.encode("utf-8")) > 1]
    return list(dict.fromkeys(chosen))


def strewn(draw: Draw, special: Sequence[str], count: int) -> str:
    """Return special tokens, parts of them, words and white space, `count` in all."""
    parts = [token[: draw.between(1, len(token))] for token in special] + [token[1:] for token in special]
    others = ("a", "b", "ab", "x", " ", "  ", "\n", "'s", "1", "é", " ab", "<", *parts)
    return "".join(draw.pick(special) if draw.chance(0.4) else draw.pick(others) for _ in range(count))


def in_turn(text: str, special: Sequence[str]) -> list[str]:
    """Return the segments of `text` as they are if special tokens are cut out wrongly, one kind after the other."""
    segments = [text]
    for token in special:
        cut = [[one] if one in special else regex.split(f"({regex.escape(token)})", one) for one in segments]
        segments = [part for one in cut for part in one if part]
    return segments
