"""Hypothesis strategies for texts, tables, special tokens, corpora and chunkings.

All draw bytes, and map each byte to a piece: one choice is cheap to draw, and shrinks to fewer pieces and to those that
come first. No strategy draws an empty text or list: an example that fails only because it is empty hides other faults.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import regex
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from bpe_conformance.fixtures import GPT2_BYTE_ORDER, PATTERNS, Merge, Model, characters, read_model, write_token
from bpe_conformance.reference import textbook

from ..implementation.implementation import Implementation
from ..outcome import Question

Questions = SearchStrategy[Question]
Pieces = Sequence[str]

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
    "<|endoftext|>",
    "<s>",
    "A",
    "ba",
)
"""Special tokens that begin, end and overlap with one another, hold white space and look like expressions."""
UNLISTED = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>", "</s>", "<unk>", "[PAD]", "[CLS]", "<|e|>", "<mask>")
"""Texts that are special tokens elsewhere: ordinary text, unless they are listed."""
WORDS: Pieces = ("a", "b", "ab", " ", "c", "abc", " ab", "bc")
ALPHABETS: tuple[Pieces, ...] = (
    "ab",
    "abc ",
    WORDS,
    ("a", "b", " ", "\n", "  ", "\t", "ab", "\r\n", "\n\n", " \n", "   "),
    ("a", "'s", "'ll", "'S", " ", "t", "'", "'t", "'VE", "'d", "'m", "\u2019s", "'re"),
    ("a", "1", "2", " ", "23", "a1", ".", "!!", ",", "_", "-", "x_y", "1.5", "12345", "/", "%", "e"),
    ("a", "é", "€", "🦊", "日", " ", "e\u0301", "ÿ", "߿", "ß"),
    ("a", "A", "Б", "日本", "ก", "\u0301", "👍🏽", "½", "²", "Ⅷ", "ñ", "İ", "ǅ", "ʰ", "ª", "𝟘", "٣", "\u093f", " "),
    ("a", " ", "\u00a0", "\u3000", "\x85", "\u200d", "\ufeff", "\u2028", "\x1c", "\x00", "\v", "\x7f", "\u00ad"),
    ("a", " ", *UNLISTED, "<|", "|>", "b"),
)
"""Alphabets, each for one kind of fault; narrow ones repeat pairs, broad ones mix classes of characters."""
SPLIT_APART: Pieces = (
    *("a", "B", " ", "1", "'s", "'S", ".", "\n", "23", "'ll", "  ", "\r\n", "/", "\u0301", "é", "日", "ab", "Ab", "aB"),
    *("\t", "123", "1234", "12345678", "x", "'", "'re", "'VE", "'x", "!!", "_", "\n\n", " \n ", "½", "Ⅷ", "²", "٣"),
    *(
        "\u00a0",
        "\u2003",
        "\u3000",
        "\u2019s",
        "ſ",
        "'ſ",
        "İ",
        "ǅ",
        "ʰ",
        "ª",
        "🦊",
        "ก\u0e31",
        "\u200d",
        "-",
        "%",
        "$1",
    ),
    *("1.5", "1,000", "1e5", "1.5e-3", "50%", "I'm", "O'Neil", "HTTPServer", "x=1", "(a)", "\x0b", "\x85", "\x00"),
)
"""What the patterns split differently."""


def pieces(alphabet: Pieces, data: bytes) -> str:
    """Return the text that the bytes spell in this alphabet."""
    return "".join([alphabet[byte % len(alphabet)] for byte in data])


def _bytes(most: int, least: int = 0) -> SearchStrategy[bytes]:
    return st.binary(min_size=least, max_size=most)


def texts(longest: int = 20) -> SearchStrategy[str]:
    """Texts in each of the alphabets."""
    return st.builds(_text, _bytes(1, 1), _bytes(longest, 1), _bytes(longest))


def _text(alphabet: bytes, first: bytes, second: bytes) -> str:
    return pieces(ALPHABETS[alphabet[0] % len(ALPHABETS)], first + second)


# Tables


@dataclass(frozen=True)
class Layout:
    """In which order a table has its ids.

    Attributes:
        byte_ids: 0 in order, 1 GPT-2's, 2 reversed, 3 from 7 on.
        step: between the ids of merges and special tokens.
        order: 0 in order of rank; others mix them.
    """

    byte_ids: int = 0
    step: int = 1
    order: int = 0

    @classmethod
    def of(cls, data: bytes) -> Layout:
        """Return the layout that three bytes choose."""
        return cls(data[0] % 4, (1, 3, 70_001)[data[1] % 3], data[2])


LAYOUTS = _bytes(3, 3)


def table(
    texts: Sequence[str],
    picks: bytes,
    implementation: Implementation,
    layout: bytes,
    special: Sequence[str] | None = None,
    pattern: str = "gpt2",
) -> Model:
    """Return a well-formed table that was not trained: its merges are neighbours in the texts, in any order.

    Args:
        texts: what the merges are found in.
        picks: one byte for each merge.
        implementation: for which; a list of ranks has its ids in order.
        layout: three bytes.
        special: the special tokens, each with an entry. None is none passed.
        pattern: the name of a pattern.
    """
    known = {bytes([byte]) for byte in range(256)} | {token.encode("utf-8") for token in special or ()}
    first = last = [bytes([byte]) for byte in "".join(texts).encode("utf-8")]
    found, merges = set(pairwise(first)), list[Merge]()
    for pick in picks:
        pairs = sorted(pair for pair in found if pair[0] + pair[1] not in known)
        if not pairs:
            break
        left, right = pairs[(pick >> 1) * len(pairs) >> 7]
        merges.append((left, right))
        known.add(left + right)
        last = list(textbook.replace(tuple(first if pick & 1 else last), (left, right)))
        found.update(pairwise(last))
    ranked = implementation.conventions["lookup"] == "bytes"
    return with_ids(merges, Layout() if ranked else Layout.of(layout), special, pattern)


def with_ids(merges: Sequence[Merge], layout: Layout, special: Sequence[str] | None, pattern: str) -> Model:
    """Return a model with these merges and special tokens, its ids laid out so."""
    orders = (range(256), GPT2_BYTE_ORDER, range(255, -1, -1), range(256))
    offset = 7 if layout.byte_ids == 3 else 0
    vocab = {index + offset: bytes([byte]) for index, byte in enumerate(orders[layout.byte_ids])}
    tokens = [left + right for left, right in merges] + [token.encode("utf-8") for token in special or ()]
    ids = [256 + offset + layout.step * index for index in range(len(tokens))]
    if layout.order:
        ids.sort(key=lambda index: (index * (2 * layout.order + 1) % 257, index))
    if offset and special:
        ids[-1] = layout.order % 7
    vocab.update(zip(ids, tokens, strict=True))
    return Model(vocab, tuple(merges), None if special is None else tuple(special), pattern)


def showing(text: str, pattern: str, special: Sequence[str] = ()) -> Model | None:
    """Return a table that shows where `text` is split, or None if there is none."""
    shown = [write_token(b"".join(word)) for word in textbook.corpus(text, special, PATTERNS[pattern])]
    try:
        return read_model({"shows": shown, "pattern": pattern})
    except ValueError:
        return None


# Special tokens


def special_tokens(data: bytes) -> list[str]:
    """Return the special tokens that the bytes choose, each once."""
    return list(dict.fromkeys(SPECIALS[byte % len(SPECIALS)] for byte in data))


def special_text(special: Sequence[str], data: bytes) -> str:
    """Return a text in which these special tokens, parts of them, others and white space meet."""
    parts = [part for token in special for part in (token[:-1], token[1:]) if part]
    others = ("a", "ab", " ", "\n", "'s", "1", "é", "  ", "b", *parts, *UNLISTED, *SPECIALS)
    return "".join(
        [special[byte // 2 % len(special)] if byte % 2 else others[byte // 2 % len(others)] for byte in data]
    )


def _has_special(implementation: Implementation) -> bool:
    return "special" in implementation.capabilities


def patterns(implementation: Implementation, prefix: str = "pattern") -> list[str]:
    """Return the names of the patterns that the constructor, or `train`, takes; GPT-2's first."""
    return [name for name in PATTERNS if name == "gpt2" or f"{prefix}:{name}" in implementation.capabilities]


# Questions


def encodings(implementation: Implementation) -> Questions:
    """A text and a table without special tokens."""

    def build(alphabet: bytes, first: bytes, second: bytes, picks: bytes, layout: bytes) -> Question:
        text = _text(alphabet, first, second)
        return Question("encode", table([text], picks, implementation, layout), {"text": text})

    return st.builds(build, _bytes(1, 1), _bytes(16, 1), _bytes(16), _bytes(14), LAYOUTS)


def splits(implementation: Implementation, names: Sequence[str]) -> Questions:
    """A text and a table that shows where it is split."""

    def build(name: str, data: bytes, picks: bytes) -> Question:
        text = pieces(SPLIT_APART, data)
        model = None if implementation.conventions["lookup"] == "bytes" else showing(text, name)
        model = model or table([text], picks, implementation, bytes(3), None, name)
        return Question("encode", model, {"text": text})

    return st.builds(build, st.sampled_from(names), _bytes(12, 1), _bytes(20, 10))


def special_encodings(implementation: Implementation) -> Questions:
    """A text and a table with special tokens."""

    def build(chosen: bytes, data: bytes, picks: bytes, layout: bytes) -> Question:
        special = special_tokens(chosen)
        text = special_text(special, data)
        return Question("encode", table([text], picks, implementation, layout, special), {"text": text})

    return st.builds(build, _bytes(5, 1), _bytes(10, 2), _bytes(10), LAYOUTS)


def mixed_encodings(implementation: Implementation) -> Questions:
    """A text and a table, with special tokens or without."""
    plain = encodings(implementation)
    return st.one_of(plain, special_encodings(implementation)) if _has_special(implementation) else plain


def allowed_encodings(implementation: Implementation, disallowed: bool) -> Questions:
    """A text with special tokens, some of them allowed, some disallowed.

    No special token begins with another: which one is found if the longer one is not allowed is open
    (SPECIAL-ALLOWED-2).
    """

    def build(chosen: bytes, data: bytes, picks: bytes, which: bytes) -> Question:
        drawn = special_tokens(chosen)
        special = [one for one in drawn if not any(one != other and one.startswith(other) for other in drawn)]
        text = special_text(special, data)
        given = {
            "text": text,
            "allowed_special": _some(special, which[0]),
            "disallowed_special": _some(special, which[1]) if disallowed else [],
        }
        return Question("encode_allowed", table([text], picks, implementation, bytes(3), special), given)

    return st.builds(build, _bytes(5, 1), _bytes(8, 2), _bytes(8), _bytes(2, 2))


def _some(special: Sequence[str], choice: int) -> str | list[str]:
    return "all" if choice >= 192 else [token for place, token in enumerate(special) if choice >> place & 1]


DECODED = "é€🦊aÿ߿\ufeff"
BYTES_FIRST = bytes.fromhex(
    "61 c3 a9 e2 82 ac f0 9f a6 8a 80 bf 00 20 ff c0 c1 e0 a0 9f ed ef bb f4 8f 90 f5 f8 fe df 7f 0a"
)


def decodings(implementation: Implementation, operation: str = "decode") -> Questions:
    """Ids of a table in any order; their bytes are often no UTF-8."""

    def build(text: bytes, picks: bytes, layout: bytes, data: bytes) -> Question:
        model = table([pieces(DECODED, text)], picks, implementation, layout)
        ids = {token: index for index, token in model.vocab.items()}
        singles = dict.fromkeys([*BYTES_FIRST, *range(256)])
        order = [*(left + right for left, right in model.merges), *(bytes([byte]) for byte in singles)]
        return Question(operation, model, {"ids": [ids[order[byte % len(order)]] for byte in data]})

    return st.builds(build, _bytes(6, 1), _bytes(8), LAYOUTS, _bytes(16, 1))


def encoded_texts(implementation: Implementation) -> Questions:
    """The correct ids of a text, to decode."""

    def ids_of(asked: Question) -> Question:
        assert asked.model is not None
        kind = textbook.with_conventions(lookup=implementation.conventions["lookup"])
        model = asked.model
        right = kind(model.vocab, model.merges, model.special_tokens, PATTERNS[model.pattern])
        return Question("decode", model, {"ids": right.encode(asked.input["text"])})

    return mixed_encodings(implementation).map(ids_of)


def streams(implementation: Implementation) -> Questions:
    """A text cut into chunks anywhere, some of them empty."""

    def build(asked: Question, cuts: bytes) -> Question:
        return replace(asked, operation="stream", input={"chunks": chunked(asked.input["text"], cuts)})

    return st.builds(build, mixed_encodings(implementation), _bytes(8))


def chunked(text: str, cuts: bytes) -> list[str]:
    """Return the text in chunks: one more than there are cuts."""
    ends = sorted(cut * (len(text) + 1) >> 8 for cut in cuts)
    return [text[start:end] for start, end in pairwise([0, *ends, len(text)])]


END = "\x00end"


def batches(implementation: Implementation) -> Questions:
    """Several texts, some of them alike, with special tokens or without."""

    def build(alphabet: bytes, first: bytes, second: bytes, picks: bytes) -> Question:
        plain = [*ALPHABETS[alphabet[0] % len(ALPHABETS)], END]
        given = [text for text in pieces(plain, first + second).split(END) if text] or ["a"]
        return Question("batch", table(given, picks, implementation, bytes(3)), {"texts": given})

    def build_special(chosen: bytes, data: bytes, picks: bytes) -> Question:
        special = special_tokens(chosen)
        given = [special_text(special, data[start : start + 4]) for start in range(0, len(data), 4)]
        return Question("batch", table(given, picks, implementation, bytes(3), special), {"texts": given})

    plain = st.builds(build, _bytes(1, 1), _bytes(24, 1), _bytes(16), _bytes(8))
    if not _has_special(implementation):
        return plain
    return st.one_of(plain, st.builds(build_special, _bytes(4, 1), _bytes(16, 1), _bytes(8)))


# Training

CORPORA: tuple[Pieces, ...] = (
    "ab",
    "abc",
    ("a", "é", "b", "€", "🦊"),
    "lower",
    ("a", "'s", "t", "s", "'"),
    ("a", "_", "1", "b", "-", "2"),
    ("z", " ", "a", "\u00ff", "\u07ff"),
    ("A", "a", "B", "b"),
)
BETWEEN: Pieces = (
    *(" ", " ", "\n", " ", "", "  ", "\r\n", ", ", "_", "'s ", " 12 ", ".\n\n", "-", "\t", "!! ", "\n \n", '"', "()"),
    *(" é", "\u00a0", "\u3000", "\x00", "\ufeff", *UNLISTED),
)


def trainings(implementation: Implementation, special: bool = False, names: Sequence[str] = ("gpt2",)) -> Questions:
    """A corpus of words that repeat, and a size that is at times more than the corpus can give."""

    def build(chosen: bytes, letters: bytes, words: bytes, sizes: bytes, name: str) -> Question:
        listed = special_tokens(chosen) if special else []
        source = pieces(CORPORA[sizes[0] % len(CORPORA)], letters)
        between = [*BETWEEN[:18], *(listed * 2), *BETWEEN[18:]]
        text = "".join(map(_word(source, between), words))
        given = {
            "text": text,
            "vocab_size": 256 + len(listed) + (sizes[1] % 16 if sizes[1] < 224 else 100),
            "special_tokens": listed,
        }
        return Question("train", None, {**given, "pattern": name} if name != "gpt2" else given)

    chosen = _bytes(4, 1) if special else st.just(b"")
    return st.builds(build, chosen, _bytes(8, 2), _bytes(40, 4), _bytes(2, 2), st.sampled_from(names))


def _word(source: str, between: Sequence[str]):
    def word(byte: int) -> str:
        start, length = byte % len(source), 1 + byte // 7 % 5
        return source[start : start + length] + between[byte // 5 % len(between)]

    return word


# Characters


CLASSES = (r"\p{L}", r"\p{N}", r"\p{M}", r"\s", r"\p{Lu}", r"\p{Ll}", r"\p{Lt}", r"\p{Lm}", r"\p{Lo}")


@cache
def edges() -> str:
    """Return the characters beside which the class changes, of those on whose classes all engines agree."""
    found: set[str] = set()
    for run in characters.agreed():
        found |= {run[0], run[-1]}
        for name in CLASSES:
            for match in regex.finditer(f"{name}+", run):
                found |= {run[match.start()], run[match.end() - 1], *run[match.end() : match.end() + 1]}
    return "".join(sorted(found))
