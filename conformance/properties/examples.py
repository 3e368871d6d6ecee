"""What the laws are tried on. Every example is a case as it stands in the YAML, so that it can be pasted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from bpe_conformance.fixtures import PATTERNS, write_token
from bpe_conformance.fixtures.values import TEXTS

from ..implementation.implementation import Implementation
from .draws import Choices

Example = dict[str, Any]
SPECIALS = (
    "<|e|>",
    "<|e|><|e|>",
    "<|end|>",
    "<|e",
    "aa",
    "aaa",
    "ab",
    "bc",
    "a b",
    "\n\n",
    " x",
    "[.*]",
    "é|",
    "🦊",
    "x<|e|>y",
)
BROAD = "aaab bc  xyz'slltreved0123.,!?-\n\t\r\u00a0\u3000éñß€日本語ก\u0301\u200d🦊👍🏽ΑБאع½²Ⅷ'’"
NARROW = ("ab", "abc ", "a'sltv ", "ab\n \t", "aé€", "🦊a ", "12 a", "aA'sS ")
BLANK = (" ", "  ", "\n", "\t ")
SPLIT_APART = ("1", "23", "a", "B", "'s", "'S", "'ll", " ", "  ", "\n", "\r\n", ".", "/", "\u0301", "é", "日")
"""What the patterns split differently."""


@lru_cache(maxsize=1)
def known_characters() -> str:
    """Return the characters of the fixed text: code points that every engine classifies alike."""
    characters: set[str] = set()
    for file in sorted(TEXTS.glob("*.txt")):
        characters |= set(file.read_bytes().decode("utf-8"))
    return "".join(sorted(characters)) or BROAD


def texts(draw: Choices, longest: int = 40) -> str:
    """A text from a narrow alphabet, in which pairs repeat, or from a broad one, or with special tokens strewn in."""
    kind = draw.below(4)
    if kind == 0:
        return draw.text(draw.pick(NARROW), longest)
    if kind == 1:
        return draw.text(BROAD, longest)
    return strewn(draw, SPECIALS) if kind == 2 else draw.text(known_characters(), longest // 2)


def strewn(draw: Choices, special: Sequence[str], longest: int = 8) -> str:
    """A text in which the given special tokens, others and white space meet."""

    def piece() -> str:
        kind = draw.below(5)
        if kind < 2:
            return draw.text(("ab ", BROAD)[kind], 4)
        return draw.pick((special, BLANK, SPECIALS)[kind - 2])

    return "".join(draw.many(piece, longest, least=2))


def specials(draw: Choices) -> list[str]:
    """Special tokens, in an order of which the longest-first rule is independent."""
    return draw.distinct(SPECIALS, 5, least=1)


def tables(draw: Choices, text: str, implementation: Implementation, special: Sequence[str] = ()) -> Example:
    """A well-formed table that was not trained: adjacent pairs of `text` in random order, ids in any order."""
    word = [bytes([byte]) for byte in text.encode("utf-8")]
    known = {bytes([byte]) for byte in range(256)}
    found = set(pairwise(word))
    first = last = word

    def merge() -> list[Any] | None:
        nonlocal last
        pairs = sorted(pair for pair in found if pair[0] + pair[1] not in known)
        if not pairs:
            return None
        left, right = draw.pick(pairs)
        known.add(left + right)
        last = _joined(last if draw.chance(0.5) else first, left, right)
        found.update(pairwise(last))
        return [write_token(left), write_token(right)]

    merges = [one for one in draw.many(merge, 14) if one is not None]
    table: Example = {"merges": merges}
    if implementation.conventions["lookup"] == "pair":
        table["byte_ids"] = draw.pick(["raw", "gpt2", "reversed", 7])
        lowest = 256 + (7 if table["byte_ids"] == 7 else 0)
        step = draw.pick([1, 3])
        table["merge_ids"] = draw.shuffled([lowest + step * place for place in range(len(merges))])
    if special:
        chosen = [token for token in special if token.encode("utf-8") not in known]
        start = draw.pick([400, 1000])
        table["special_tokens"] = chosen
        table["extra"] = [[start + 2 * place, token] for place, token in enumerate(draw.shuffled(chosen))]
    return table


def _joined(word: list[bytes], left: bytes, right: bytes) -> list[bytes]:
    out: list[bytes] = []
    skip = False
    for place, token in enumerate(word):
        if skip:
            skip = False
        elif token == left and word[place + 1 : place + 2] == [right]:
            out.append(left + right)
            skip = True
        else:
            out.append(token)
    return out


def encodings(draw: Choices, implementation: Implementation, special: bool = False, pattern: bool = False) -> Example:
    """A text and a table."""
    special = special and "special" in implementation.capabilities
    chosen = specials(draw) if special else []
    if pattern and draw.chance(0.5):
        text = "".join(draw.many(lambda: draw.pick(SPLIT_APART), 12))
    else:
        text = strewn(draw, chosen) if special else texts(draw)
    model = tables(draw, text, implementation, chosen)
    if pattern:
        names = sorted(name for name in PATTERNS if f"pattern:{name}" in implementation.capabilities)
        model["pattern"] = draw.pick(names)
    return {"op": "encode", "model": model, "input": {"text": text}}


def chosen_specials(draw: Choices, implementation: Implementation, barred: bool = False) -> Example:
    """A text with special tokens, some of them allowed; and with `barred`, some disallowed.

    None begins with another: which of the two is found where one is not allowed is open (SPECIAL-ALLOWED-2).
    """
    drawn = specials(draw)
    special = [one for one in drawn if not any(one != other and one.startswith(other) for other in drawn)]
    text = strewn(draw, special)
    model = tables(draw, text, implementation, special)

    def some() -> str | list[str]:
        return "all" if draw.chance(0.3) else [token for token in model["special_tokens"] if draw.chance(0.5)]

    given = {"text": text, "allowed_special": some(), "disallowed_special": some() if barred else []}
    return {"op": "encode_allowed", "model": model, "input": given}


def mixed(draw: Choices, implementation: Implementation) -> Example:
    """A text and a table, with special tokens or without."""
    return encodings(draw, implementation, special=draw.chance(0.5))


def absent_specials(draw: Choices, implementation: Implementation) -> Example:
    """A table without entries for its special tokens; no case, since an error is an answer too."""
    example = encodings(draw, implementation, special=True)
    del example["model"]["extra"]
    if implementation.conventions["lookup"] == "pair" and draw.chance(0.5):
        example["model"]["extra"] = [[5000, "no such pre-token"]]
    return {"model": example["model"], "input": example["input"], "absent": True}


def absent_or_not(draw: Choices, implementation: Implementation) -> Example:
    """A table with special tokens, with entries for them or without."""
    if "special" in implementation.capabilities and draw.chance(0.5):
        return absent_specials(draw, implementation)
    return encodings(draw, implementation, special=True)


def streams(draw: Choices, implementation: Implementation) -> Example:
    """A text cut into chunks anywhere, some of them empty, with special tokens or without."""
    example = mixed(draw, implementation)
    text = example["input"]["text"]
    cuts = sorted(draw.many(lambda: draw.below(len(text) + 1), 8))
    chunks = [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]
    return {"op": "stream", "model": example["model"], "input": {"chunks": chunks}}


def batches(draw: Choices, implementation: Implementation) -> Example:
    """Several texts, some of them repeated, and a table."""
    chosen = specials(draw) if draw.chance(0.5) and "special" in implementation.capabilities else []
    given = draw.many(lambda: strewn(draw, chosen, 3) if chosen else texts(draw, 12), 5)
    given += given[:1] if draw.chance(0.5) else []
    model = tables(draw, "".join(given), implementation, chosen)
    return {"op": "batch", "model": model, "input": {"texts": given}}


def decodings(draw: Choices, implementation: Implementation) -> Example:
    """Ids of a table in any order: their bytes are often no UTF-8."""
    text = draw.text("é€🦊aÿ߿", 6, least=1)
    model = tables(draw, text, implementation)
    merge_ids = model.get("merge_ids", [256 + place for place in range(len(model["merges"]))])
    offset = 7 if model.get("byte_ids") == 7 else 0

    def index() -> int:
        return draw.pick([*merge_ids, offset]) if draw.chance(0.5) else offset + draw.below(256)

    return {"op": "decode", "model": model, "input": {"ids": draw.many(index, 16)}}


def trainings(draw: Choices, implementation: Implementation, special: bool = False) -> Example:
    """A corpus of words that repeat, and a vocabulary size, sometimes beyond what the corpus can give."""
    letters = draw.pick(["ab", "abc", "aé", "a🦊€", "low er", "a'st ", "ab\n ", "z a\u00ff\u07ff"])
    words = draw.many(lambda: draw.text(letters, 6, least=1), 6)
    special = special and "train-special" in implementation.capabilities
    chosen = draw.distinct(SPECIALS, 4) if special else []

    def between() -> str:
        kind = draw.below(3) if special else 0
        return draw.pick(((" ", "\n", "  ", ""), chosen or SPECIALS, SPECIALS)[kind])

    text = "".join(draw.many(lambda: draw.pick(words) + between(), 12)) if words else ""
    size = 256 + len(chosen) + draw.below(13)
    return {"op": "train", "input": {"train": {"text": text, "vocab_size": size, "special_tokens": chosen}}}
