"""Hypothesis strategies for texts, tables, special tokens, corpora and chunkings.

An example needs few choices, which are cheap and shrink well: bytes, each of which chooses a piece of text, and a
number, which chooses a table. An example has at most one choice of each kind, because Hypothesis would otherwise vary
an example by copying one choice to the other. No strategy draws an empty text or list, because an example that fails
only because it is empty hides other faults.
"""

from __future__ import annotations

import unicodedata
from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, islice, pairwise, product
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from bpe_conformance.fixtures import GPT2_BYTE_ORDER, PATTERNS, Merge, Model, characters, read_model, write_token
from bpe_conformance.reference import textbook

from ..implementation.implementation import Implementation
from ..operations import Batch, Decode, Encode, EncodeAllowed, Question, Stream, Train, expression, oracle

T = TypeVar("T")
Questions = SearchStrategy[Question[Any]]
Encodings = SearchStrategy[Question[Encode]]
Pieces = Sequence[str]

SPECIALS = (
    *("<|e|>", "<|e|><|e|>", "<|end|>", "<|e", "aa", "aaa", "ab", "bc", "a b", "\n\n", " x", "[.*]", "é|", "🦊"),
    *("x<|e|>y", "<|endoftext|>", "<s>", "ba"),
)
"""Special tokens that begin, end and overlap one another, contain white space, or look like regular expressions."""
UNLISTED = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>", "</s>", "<unk>", "[PAD]", "[CLS]", "<|e|>", "<mask>")
"""Special tokens of well-known models. They are ordinary text unless they are listed."""
WORDS: Pieces = ("a", "b", "ab", " ", "c", "abc", " ab", "bc")
ALPHABETS: tuple[Pieces, ...] = (
    *("ab", "abc ", "abcd", "aabcde", WORDS),
    ("a", "b", " ", "\n", "  ", "\t", "ab", "\r\n", "\n\n", " \n", "   "),
    ("a", "'s", "'ll", "'S", " ", "t", "'", "'t", "'VE", "'d", "'m", "\u2019s", "'re"),
    ("a", "1", "2", " ", "23", "a1", ".", "!!", ",", "_", "-", "x_y", "1.5", "12345", "/", "%", "e"),
    ("a", "é", "€", "🦊", "日", " ", "e\u0301", "ÿ", "߿", "ß"),
    ("a", "A", "Б", "日本", "ก", "\u0301", "👍🏽", "½", "²", "Ⅷ", "ñ", "İ", "ǅ", "ʰ", "ª", "𝟘", "٣", "\u093f", " "),
    ("a", " ", "\u00a0", "\u3000", "\x85", "\u200d", "\ufeff", "\u2028", "\x1c", "\x00", "\v", "\x7f", "\u00ad"),
    ("a", " ", *UNLISTED, "<|", "|>", "b"),
)
"""Alphabets, each for one kind of fault; narrow ones repeat pairs, broad ones mix classes of characters."""
SPLIT_APART: tuple[Pieces, ...] = (
    ("a", "'s", " ", "'S", "B", "'ll", "'VE", "'", "x", "'re", "\u2019s", "'\u017f", "'d", "I'm", "1", "\n", "'T"),
    ("1", "a", "23", "1234", ".", ",", "12345678", "1.5", "1,000", "1e5", "-", "e", "%", "_", " ", "½", "Ⅷ", "²", "٣"),
    ("a", " ", "\n", "  ", "\t", "\r\n", ".", "\n\n", " \n ", "1", "\u00a0", "\u3000", "\x85", "\u2003", "\x1c", "!"),
    (".", "a", "!!", "/", "_", "\n", "-", "$1", "(a)", "x=1", " ", "🦊", "\u200d", "\0", "'", "\r\n", "…", "/\n"),
    ("a", "B", "Ab", "aB", "HTTPServer", "é", "e\u0301", "\u0301", "日", "İ", "ǅ", "ʰ", "ª", "ก\u0e31", " ", "O'Neil"),
)
"""Alphabets of pieces that the patterns split differently."""


def pieces(alphabet: Pieces, data: bytes) -> list[str]:
    return [alphabet[byte % len(alphabet)] for byte in data]


def some_bytes(most: int, least: int = 1) -> SearchStrategy[bytes]:
    """Return a strategy for `least` to `most` bytes, often few of them."""
    few = st.binary(min_size=least, max_size=most)
    return few if most < 12 else st.one_of(few, st.binary(min_size=most // 3, max_size=most))


# Tables

TABLE_BITS = 24
tables = st.integers(0, (1 << TABLE_BITS) - 1)
"""Numbers that choose a table for a text; 0 chooses the table without merges."""


@dataclass(frozen=True)
class Layout:
    """The order in which a table assigns ids."""

    byte_ids: int = 0  # of the bytes: 0 for their values, 1 for GPT-2's order, 2 for the reverse, 3 for ids from 7 on
    first: int = 0  # the number of unused ids between the bytes and the first merge
    step: int = 1  # the distance between the ids of two merges or special tokens
    order: int = 0  # 0 for ids in order of rank; any other number mixes them

    @classmethod
    def of(cls, number: int) -> Layout:
        first, step = ((0, 1), (0, 1), (0, 3), (65_270, 3))[number >> 2 & 3]
        return cls(number & 3, first, step, number >> 4)


def table(
    parts: Iterable[str],
    number: int,
    implementation: Implementation,
    special: Sequence[str] | None = None,
    pattern: str = "gpt2",
) -> Model:
    """Return a well-formed table that was not trained: merges of tokens that can be adjacent, in any order.

    The table depends on the set of parts of a text, not on their number and order, so a smaller text often has the same
    table. `number` chooses the number of merges, the merges and the ids. If the implementation looks up pairs by bytes,
    the ids are in order of rank. Each special token gets an entry.
    """
    count, seed, layout = 2 * (number & 15), number >> 4 & 255, number >> 12
    merges = merges_beside(_neighbours(parts).encode("utf-8"), count, seed, special or ())
    if implementation.conventions["lookup"] == "bytes":
        return with_ids(merges, Layout(), special, pattern)
    return with_ids(merges, Layout.of(layout), special, pattern)


MOST_PARTS = 5


def merges_beside(data: bytes, count: int, seed: int, others: Iterable[str] = ()) -> list[Merge]:
    """Return at most `count` merges, each of two tokens that are adjacent in `data` once some earlier ones are merged.

    `seed` chooses them. No merge creates one of the `others`.
    """
    # Each token is one character of a string, in which `str.replace` merges a pair.
    first = last = data.decode("latin-1")
    tokens = [bytes([byte]) for byte in range(256)]
    known, seen = {token.encode("utf-8") for token in others}, set[tuple[str, str]]()
    pairs, merges = list[tuple[Merge, bytes, str]](), list[Merge]()
    for step in range(count):
        for one, other in {*pairwise(last)} - seen:
            merge = tokens[ord(one)], tokens[ord(other)]
            if (token := merge[0] + merge[1]) not in known:
                insort(pairs, (merge, token, one + other))
            seen.add((one, other))
        if not pairs:
            break
        pick = seed * (2 * step + 3) & 255
        merge, token, found = pairs[pick * len(pairs) >> 8]
        merges.append(merge)
        tokens.append(token)
        known.add(token)
        pairs = [pair for pair in pairs if pair[1] != token]
        last = (first if pick & 1 else last).replace(found, chr(len(tokens) - 1))
    return merges


def _neighbours(parts: Iterable[str]) -> str:
    """Return a text in which the first few different parts repeat, and each is adjacent to each."""
    few = sorted({*islice(dict.fromkeys(parts), MOST_PARTS)})
    return "".join([*(part * 5 for part in few), *(one + other for one in few for other in few)])


def with_ids(
    merges: Sequence[Merge], layout: Layout = Layout(), special: Sequence[str] | None = None, pattern: str = "gpt2"
) -> Model:
    """Return a model with these merges and special tokens, and with ids in the order of `layout`."""
    orders = (range(256), GPT2_BYTE_ORDER, range(255, -1, -1), range(256))
    offset = 7 if layout.byte_ids == 3 else 0
    vocab = {index + offset: bytes([byte]) for index, byte in enumerate(orders[layout.byte_ids])}
    tokens = [left + right for left, right in merges] + [token.encode("utf-8") for token in special or ()]
    ids = [256 + offset + layout.first + layout.step * index for index in range(len(tokens))]
    if layout.order:
        ids.sort(key=lambda index: (index * (2 * layout.order + 1) % 257, index))
    if offset and special:
        ids[-1] = layout.order % 7
    vocab.update(zip(ids, tokens, strict=True))
    return Model(vocab, tuple(merges), None if special is None else tuple(special), pattern)


def showing(text: str, pattern: str, split: str) -> Model | None:
    """Return a table that shows where the expression `split` splits `text`, or None if there is none."""
    shown = [write_token(b"".join(word)) for word in textbook.corpus(text, (), split)]
    try:
        return read_model({"shows": shown, "pattern": pattern})
    except ValueError:
        return None


# Special tokens


def special_sets(known: Sequence[str] = SPECIALS) -> list[tuple[str, ...]]:
    """Return lists of special tokens: single tokens, pairs in which one token contains the other, and longer lists."""
    pairs = [(one, other) for one in known for other in known if one != other and one in other]
    longer = [tuple(known[start :: step + 2]) for step in range(3) for start in range(step + 2)]
    return [*((one,) for one in known), *pairs, *longer, *(one[::-1] for one in longer)]


def special_pieces(special: Sequence[str], data: bytes) -> list[str]:
    """Return the piece of text that each byte chooses: a special token, a part of one, or other text."""
    cut = [part for token in special for part in (token[:-1], token[1:]) if part]
    others = ("a", "ab", " ", "\n", "'s", "1", "é", "  ", "b", *cut, *UNLISTED, *SPECIALS)
    return [(special if byte % 2 else others)[byte // 2 % len(special if byte % 2 else others)] for byte in data]


SOME_SPECIALS = st.sampled_from(special_sets())


def _either(implementation: Implementation, plain: SearchStrategy[T], special: SearchStrategy[T]) -> SearchStrategy[T]:
    return st.one_of(plain, special) if "special" in implementation.capabilities else plain


def patterns(implementation: Implementation, prefix: str = "pattern") -> list[str]:
    """Return the names of the patterns that the constructor or, by another prefix, `train` supports; GPT-2's first."""
    return [name for name in PATTERNS if name == "gpt2" or f"{prefix}:{name}" in implementation.capabilities]


# Questions


def encodings(implementation: Implementation) -> Encodings:

    def build(alphabet: Pieces, data: bytes, number: int) -> Question[Encode]:
        model = table(pieces(alphabet, data), number, implementation)
        return Question(Encode(text_with_tokens(alphabet, data, model)), model)

    return st.builds(build, st.sampled_from(ALPHABETS), some_bytes(32), tables)


def splits(implementation: Implementation, names: Sequence[str]) -> Encodings:
    """Return a strategy: a text, and a table whose ids show where the text is split."""

    def build(chosen: tuple[str, Pieces], data: bytes, number: int) -> Question[Encode]:
        name, alphabet = chosen
        text = "".join(parts := pieces(alphabet, data))
        conventions = implementation.conventions
        model = None if conventions["lookup"] == "bytes" else showing(text, name, expression(name, conventions))
        return Question(Encode(text), model or table(parts, number | 15, implementation, None, name))

    return st.builds(build, st.sampled_from(list(product(names, SPLIT_APART))), some_bytes(16), tables)


def text_with_tokens(alphabet: Pieces, data: bytes, model: Model) -> str:
    """Return the text that the bytes choose. A byte of at least 192 adds a token of `model`."""
    tokens = [(left + right).decode("utf-8", "ignore") for left, right in model.merges]
    parts = []
    for byte, piece in zip(data, pieces(alphabet, data), strict=True):
        parts.append(piece)
        if byte >= 192 and tokens:
            apart = "\n" * (byte & 1)
            parts += [apart, tokens[byte // 2 % len(tokens)], apart]
    return "".join(parts)


def special_encodings(implementation: Implementation, known: Sequence[str] = SPECIALS) -> Encodings:

    def build(special: Sequence[str], data: bytes, number: int) -> Question[Encode]:
        parts = special_pieces(special, data)
        return Question(Encode("".join(parts)), table(parts, number, implementation, special))

    return st.builds(build, st.sampled_from(special_sets(known)), some_bytes(12), tables)


def mixed_encodings(implementation: Implementation, known: Sequence[str] = SPECIALS) -> Encodings:
    """Return a strategy: a text, and a table with or without some of these special tokens."""
    return _either(implementation, encodings(implementation), special_encodings(implementation, known))


def allowed_encodings(implementation: Implementation, disallowed: bool = False) -> Questions:
    """Return a strategy: a text with special tokens, some of them allowed and, if `disallowed`, some disallowed.

    No special token begins with another, because it is open which of the two is found if only the shorter one is
    allowed (SPECIAL-ALLOWED-2).
    """

    def build(drawn: Sequence[str], data: bytes, number: int) -> Question[Any]:
        special = [one for one in drawn if not any(one != other and one.startswith(other) for other in drawn)]
        parts = special_pieces(special, data)
        refused = _some(special, number >> 8) if disallowed else ()
        operation = EncodeAllowed("".join(parts), _some(special, number >> 16), refused)
        return Question(operation, table(parts, number & 0xFFF, implementation, special))

    return st.builds(build, SOME_SPECIALS, some_bytes(10), tables)


def _some(special: Sequence[str], choice: int) -> str | tuple[str, ...]:
    choice &= 255
    return "all" if choice >= 192 else tuple(token for index, token in enumerate(special) if choice >> index % 6 & 1)


DECODED = "é€🦊aÿ߿\ufeff"
BYTES_FIRST = bytes.fromhex("61c3a9e282acf09fa68a80bf0020ffc0c1e0a09fedefbbf48f90f5f8fedf7f0a")


def decodings(implementation: Implementation) -> Questions:
    """Return a strategy: ids of a table in any order, whose bytes are often not UTF-8."""

    def build(data: bytes, number: int) -> Question[Any]:
        model = table(DECODED, number, implementation)
        singles = dict.fromkeys([*BYTES_FIRST, *range(256)])
        order = [*(left + right for left, right in model.merges), *(bytes([byte]) for byte in singles)]
        return Question(Decode(tuple(model.ids[order[byte % len(order)]] for byte in data)), model)

    return st.builds(build, some_bytes(16), tables)


def encoded_texts(implementation: Implementation) -> Questions:

    def ids_of(asked: Question[Encode]) -> Question[Any]:
        ids = oracle(asked.table, implementation.conventions).encode(asked.operation.text)
        return Question(Decode(tuple(ids)), asked.model)

    return mixed_encodings(implementation).map(ids_of)


def streams(implementation: Implementation) -> Questions:

    def build(alphabet: Pieces, data: bytes, number: int) -> Question[Any]:
        parts = pieces(alphabet, bytes(byte % 64 for byte in data))
        return Question(Stream(chunked(parts, data)), table(parts, number, implementation))

    def build_special(special: Sequence[str], data: bytes, number: int) -> Question[Any]:
        parts = special_pieces(special, bytes(byte % 64 for byte in data))
        return Question(Stream(chunked(parts, data)), table(parts, number, implementation, special))

    plain = st.builds(build, st.sampled_from(ALPHABETS), some_bytes(24), tables)
    return _either(implementation, plain, st.builds(build_special, SOME_SPECIALS, some_bytes(12), tables))


def chunked(parts: Sequence[str], data: bytes) -> tuple[str, ...]:
    """Return the parts, joined to chunks; `data` has a byte for each part.

    From 64 on, it ends a chunk in the middle of the part; from 128 on, after it; from 192 on, an empty chunk follows.
    """
    chunks = [""]
    for part, byte in zip(parts, data, strict=True):
        middle = (len(part) + 1) // 2 if byte // 64 == 1 else 0
        chunks[-1] += part[:middle]
        chunks += [""] * (middle > 0)
        chunks[-1] += part[middle:]
        chunks += [""] * (0, 0, 1, 2)[byte // 64]
    return tuple(chunks)


END = "\x00end"


def batches(implementation: Implementation) -> Questions:
    """Return a strategy: several texts, some of them equal, with or without special tokens."""

    def build(alphabet: Pieces, data: bytes, number: int) -> Question[Any]:
        parts = pieces([*alphabet, END], data)
        texts = [text for text in "".join(parts).split(END) if text] or ["a"]
        model = table([part for part in parts if part != END], number, implementation)
        return Question(Batch(tuple(texts)), model)

    def build_special(special: Sequence[str], data: bytes, number: int) -> Question[Any]:
        parts = special_pieces(special, data)
        texts = ["".join(parts[start : start + 4]) for start in range(0, len(parts), 4)]
        return Question(Batch(tuple(texts)), table(parts, number, implementation, special))

    plain = st.builds(build, st.sampled_from(ALPHABETS), some_bytes(32), tables)
    return _either(implementation, plain, st.builds(build_special, SOME_SPECIALS, some_bytes(16), tables))


# Training

CORPORA: tuple[Pieces, ...] = (
    *("ab", "abc", ("a", "é", "b", "€", "🦊"), "lower", ("a", "'s", "t", "s", "'")),
    *(("a", "_", "1", "b", "-", "2"), ("z", " ", "a", "\u00ff", "\u07ff"), ("A", "a", "B", "b")),
)
BETWEEN: Pieces = (
    *(" ", " ", "\n", " ", "", "  ", "\r\n", ", ", "_", "'s ", " 12 ", ".\n\n", "-", "\t", "!! ", "\n \n", '"', "()"),
    *(" é", "e\u0301", "\u00a0", "\u3000", "\x00", "\ufeff", *UNLISTED),
)


def trainings(implementation: Implementation, special: bool = False, names: Sequence[str] = ("gpt2",)) -> Questions:
    """Return a strategy: a corpus of repeated words, and a vocabulary size that the corpus sometimes cannot reach.

    `special` says whether to list special tokens, if `train` takes them; `names` are the patterns to train with.
    """
    listed = special_sets() if special and "train-special" in implementation.capabilities else []
    sets: list[tuple[str, ...]] = [(), *listed]

    def build(chosen: tuple[tuple[str, ...], str], data: bytes, number: int) -> Question[Any]:
        listed, name = chosen
        source = "".join(pieces(CORPORA[number % len(CORPORA)], (number >> 3).to_bytes(3, "little") + data[:4]))
        between = [*BETWEEN[:18], *(listed * 2), *BETWEEN[18:]]
        merges = number >> 16 & 15
        text = "".join(map(_word(source, between), data))
        return Question(Train(text, 256 + len(listed) + (merges if merges < 15 else 100), listed, name))

    return st.builds(build, st.sampled_from(list(product(sets, names))), some_bytes(48, 2), tables)


def _word(source: str, between: Sequence[str]) -> Callable[[int], str]:
    def word(byte: int) -> str:
        start, length = byte % len(source), 1 + byte // 7 % 5
        return source[start : start + length] + between[byte // 5 % len(between)]

    return word


# Characters


@cache
def characters_at_edges() -> str:
    """Return the ends and the middle of each run of one category, if all engines agree on their classes.

    A table that reads the first and the last entry of a block, as UnicodeData.txt has it, lacks the middle.
    """
    found: set[str] = set()
    for run in characters.agreed():
        for _, group in groupby(run, unicodedata.category):
            same = list(group)
            found |= {same[0], same[len(same) // 2], same[-1]}
    return "".join(sorted(found))


@cache
def characters_of_old_categories() -> str:
    """Return those that are of the same category in Unicode 3.2: engines have tables of different versions."""
    old = unicodedata.ucd_3_2_0
    return "".join(char for char in characters_at_edges() if old.category(char) == unicodedata.category(char) != "Cn")


def some_characters() -> SearchStrategy[str]:
    """Return a strategy: characters of all scripts and categories, in any order."""

    def build(data: bytes) -> str:
        known = characters_at_edges()
        codes = [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data) - 1, 2)]
        return "".join([known[code * len(known) >> 16] for code in codes])

    return some_bytes(48, 2).map(build)
