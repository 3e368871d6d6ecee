"""Hypothesis strategies. Every example is a case as it stands in the YAML, so that a counterexample can be pasted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from bpe_conformance.fixtures import PATTERNS, write_token
from bpe_conformance.fixtures.values import TEXTS
from bpe_conformance.judging.subject import Subject

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
NARROW = ("ab", "abc ", "a'sltv ", "ab\n \t", "aé€", "🦊a ")


@lru_cache(maxsize=1)
def known_characters() -> str:
    """Return the characters of the fixed text: code points that every engine classifies alike."""
    characters: set[str] = set()
    for file in sorted(TEXTS.glob("*.txt")):
        characters |= set(file.read_bytes().decode("utf-8"))
    return "".join(sorted(characters)) or BROAD


def texts(longest: int = 40) -> st.SearchStrategy[str]:
    """Texts from narrow alphabets, in which pairs repeat, and from broad ones, with special tokens strewn in."""
    narrow = st.sampled_from(NARROW).flatmap(lambda letters: st.text(letters, max_size=longest))
    broad = st.text(BROAD, max_size=longest)
    wide = st.text(known_characters(), max_size=longest // 2)
    return st.one_of(narrow, broad, strewn(SPECIALS), wide)


def strewn(special: Sequence[str], longest: int = 8) -> st.SearchStrategy[str]:
    """Texts in which the given special tokens, others and white space meet."""
    letters = st.one_of(st.text("ab ", max_size=4), st.text(BROAD, max_size=4))
    blank = st.sampled_from((" ", "  ", "\n", "\t "))
    piece = st.one_of(letters, st.sampled_from(special), blank, st.sampled_from(SPECIALS))
    return st.lists(piece, min_size=2, max_size=longest).map("".join)


def specials() -> st.SearchStrategy[list[str]]:
    """Special tokens, in an order of which the longest-first rule is independent."""
    return st.lists(st.sampled_from(SPECIALS), min_size=1, max_size=5, unique=True)


@st.composite
def tables(draw: st.DrawFn, text: str, subject: Subject, special: Sequence[str] = ()) -> Example:
    """A well-formed table that was not trained: adjacent pairs of `text` in random order, ids in any order."""
    word = [bytes([byte]) for byte in text.encode("utf-8")]
    known = {bytes([byte]) for byte in range(256)}
    merges: list[list[Any]] = []
    words = [word]
    for _ in range(draw(st.integers(0, 14))):
        pairs = sorted({pair for one in words for pair in pairwise(one)})
        pairs = [pair for pair in pairs if pair[0] + pair[1] not in known]
        if not pairs:
            break
        left, right = draw(st.sampled_from(pairs))
        known.add(left + right)
        merges.append([write_token(left), write_token(right)])
        words.append(_joined(words[-1 if draw(st.booleans()) else 0], left, right))
    table: Example = {"merges": merges}
    if subject.conventions["lookup"] == "pair":
        table["byte_ids"] = draw(st.sampled_from(["raw", "gpt2", "reversed", 7]))
        first = 256 + (7 if table["byte_ids"] == 7 else 0)
        order = draw(st.permutations(range(len(merges))))
        step = draw(st.sampled_from([1, 3]))
        table["merge_ids"] = [first + step * place for place in order]
    if special:
        chosen = [token for token in special if token.encode("utf-8") not in known]
        start = 1000 if draw(st.booleans()) else 400
        table["special_tokens"] = chosen
        entries = draw(st.permutations(chosen))
        table["extra"] = [[start + 2 * place, token] for place, token in enumerate(entries)]
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


@st.composite
def encodings(draw: st.DrawFn, subject: Subject, special: bool = False, pattern: bool = False) -> Example:
    """A text and a table."""
    special = special and "special" in subject.capabilities
    chosen = draw(specials()) if special else []
    text = draw(strewn(chosen) if special else texts())
    model = draw(tables(text, subject, chosen))
    if pattern:
        names = sorted(name for name in PATTERNS if f"pattern:{name}" in subject.capabilities)
        model["pattern"] = draw(st.sampled_from(names))
    return {"op": "encode", "model": model, "input": {"text": text}}


@st.composite
def absent_specials(draw: st.DrawFn, subject: Subject) -> Example:
    """A table without entries for its special tokens; no case, since an error is an answer too."""
    example = draw(encodings(subject, special=True))
    del example["model"]["extra"]
    if subject.conventions["lookup"] == "pair" and draw(st.booleans()):
        example["model"]["extra"] = [[5000, "no such pre-token"]]
    return {"model": example["model"], "input": example["input"], "absent": True}


@st.composite
def streams(draw: st.DrawFn, subject: Subject) -> Example:
    """A text cut into chunks anywhere, some of them empty, with special tokens or without."""
    example = draw(encodings(subject, special=draw(st.booleans())))
    text = example["input"]["text"]
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    bounds = [0, *cuts, len(text)]
    chunks = [text[start:end] for start, end in pairwise(bounds)]
    return {"op": "stream", "model": example["model"], "input": {"chunks": chunks}}


@st.composite
def batches(draw: st.DrawFn, subject: Subject) -> Example:
    """Several texts, some of them repeated, and a table."""
    chosen = draw(specials()) if draw(st.booleans()) and "special" in subject.capabilities else []
    given = draw(st.lists(strewn(chosen, 3) if chosen else texts(12), max_size=5))
    given += given[:1] if draw(st.booleans()) else []
    model = draw(tables("".join(given), subject, chosen))
    return {"op": "batch", "model": model, "input": {"texts": given}}


@st.composite
def decodings(draw: st.DrawFn, subject: Subject) -> Example:
    """Ids of a table in any order: their bytes are often no UTF-8."""
    text = draw(st.text("é€🦊aÿ߿", min_size=1, max_size=6))
    model = draw(tables(text, subject))
    merge_ids = model.get("merge_ids", [256 + place for place in range(len(model["merges"]))])
    offset = 7 if model.get("byte_ids") == 7 else 0
    ids = draw(st.lists(st.one_of(st.integers(offset, offset + 255), st.sampled_from([*merge_ids, offset]))))
    return {"op": "decode", "model": model, "input": {"ids": ids}}


@st.composite
def trainings(draw: st.DrawFn, special: bool = False) -> Example:
    """A corpus of words that repeat, and a vocabulary size, sometimes beyond what the corpus can give."""
    letters = draw(st.sampled_from(["ab", "abc", "aé", "a🦊€", "low er", "a'st ", "ab\n ", "z a\u00ff\u07ff"]))
    word = st.text(letters, min_size=1, max_size=6)
    words = draw(st.lists(word, max_size=6))
    given = draw(st.lists(st.sampled_from(words), max_size=12)) if words else []
    between = st.sampled_from([" ", "\n", "  ", ""])
    chosen: list[str] = []
    if special:
        chosen = draw(st.lists(st.sampled_from(SPECIALS), max_size=4, unique=True))
        between = st.one_of(between, st.sampled_from(chosen or SPECIALS), st.sampled_from(SPECIALS))
    text = "".join(part + draw(between) for part in given)
    extra = draw(st.integers(0, 12))
    size = 256 + len(chosen) + extra
    return {"op": "train", "input": {"train": {"text": text, "vocab_size": size, "special_tokens": chosen}}}
