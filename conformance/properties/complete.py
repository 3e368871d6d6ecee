"""Spaces that are small enough to cover by construction: no example is drawn, and none is left out.

A tokenizer can be wrong for a single pair of letters, a single length or a single position. `spaces` counts what each
property covers; `bpe-conformance list --summary` prints it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

from bpe_conformance.fixtures import Merge, Model, characters, read_model
from bpe_conformance.reference import textbook

from ..answer import Answer, Ids
from ..implementation.implementation import Implementation
from ..operations import Encode, Question, Stream, oracle
from ..outcome import Expectation, Mismatch
from . import strategies
from .asking import Instance, ask, correct_answer, equals_oracle, is_correct, posed
from .engine import Fixed, Property, Verdicts

BLOCK, FEW = 96, 48
"""How many pairs one encoding, and one training, tests: few, because simple tokenizers are quadratic."""
LONGEST = 128
PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
ASCII = "".join(chr(code) for code in range(0x80) if not (chr(code).isspace() or code in range(0x1C, 0x20)))
"""All but white space, and U+001C to U+001F, which are white space to some engines."""
NEVER_IN_PAIRS = {*b"\t\n\v\f\r", *range(0x1C, 0x20), 0xC0, 0xC1, *range(0xF5, 0x100)}
"""White space, which golden cases cover, and bytes that UTF-8 never has."""
CONTRACTIONS = ("'s", "'t", "'m", "'d")
"""In the longer ones, the pair of letters is as frequent as that with the apostrophe, and wins the tie."""
MIXED = (
    "The cat's 12 hats: \u00e9t\u00e9 \u65e5\u672c \U0001f98a!\n\n"
    "  x =\t[a1, b_2]  // don't; 3.14 \u0436\u0437 e\u0301 "
)


def class_of(char: str) -> str:
    category = unicodedata.category(char)[0]
    return category if category in "LN" else "other"


@cache
def pairs_of_characters() -> Mapping[Merge, str]:
    """Return each pair of printable ASCII characters that GPT-2's pattern leaves together → a pre-token with it."""
    words = [one + other for one, other in product(PRINTABLE, PRINTABLE) if class_of(one) == class_of(other)]
    words += [f" {char}" for char in PRINTABLE] + list(CONTRACTIONS)
    return {(word[:1].encode(), word[1:2].encode()): word for word in words}


@cache
def pairs_of_bytes() -> Mapping[str, Mapping[Merge, str]]:
    """Return each pair of bytes of UTF-8 that GPT-2's pattern leaves together → a pre-token that holds it.

    They are in groups: no pre-token holds two pairs of its group. White space is left out.
    """
    firsts: dict[str, dict[int, str]] = {"L": {}, "N": {}, "other": {}}
    lasts: dict[str, dict[int, str]] = {"L": {}, "N": {}, "other": {}}
    for char in strategies.characters_at_edges() + "".join(run[::61] for run in characters.agreed()):
        data = char.encode("utf-8")
        if len(data) > 1 and not char.isspace():
            firsts[class_of(char)].setdefault(data[0], char)
            lasts[class_of(char)].setdefault(data[-1], char)
    ascii_of = {name: [char for char in ASCII if class_of(char) == name] for name in firsts}
    tails = range(0x80, 0xC0)
    alone = [chr(code) for code in range(0x80, 0x800) if not chr(code).isspace() and chr(code) != "\x85"]
    threes = [(lead, tail) for lead, tail in product(range(0xE0, 0xF0), tails) if _allowed(lead, tail)]
    fours = [(lead, tail) for lead, tail in product(range(0xF0, 0xF5), tails) if _allowed(lead, tail)]
    alone += [bytes([*pair, 0xA5]).decode() for pair in threes]
    alone += [bytes([*pair, 0xA5, 0xA5]).decode() for pair in fours]

    starts = {name: found.values() for name, found in firsts.items()}
    ends = {name: found.values() for name, found in lasts.items()}

    def beside(first: Mapping[str, Iterable[str]], second: Mapping[str, Iterable[str]]) -> dict[Merge, str]:
        found: dict[Merge, str] = {}
        for name in firsts:
            for one, other in product(first[name], second[name]):
                found.setdefault((one.encode()[-1:], other.encode()[:1]), one + other)
        return found

    after_space = {
        (b" ", char.encode()[:1]): f" {char}" for name in firsts for char in (*ascii_of[name], *starts[name])
    }
    return {
        "ASCII, ASCII": beside(ascii_of, ascii_of),
        "space, any first byte": after_space,
        "ASCII, first byte": beside(ascii_of, starts),
        "last byte, ASCII": beside(ends, ascii_of),
        "last byte, first byte": beside(ends, starts),
        "first byte, second byte": {(char.encode()[:1], char.encode()[1:2]): char for char in alone},
        "second byte, third byte": {
            (bytes([one]), bytes([other])): bytes([0xE4, one, other]).decode() for one, other in product(tails, tails)
        },
    }


def _allowed(lead: int, tail: int) -> bool:
    least, most = {0xE0: (0xA0, 0xBF), 0xED: (0x80, 0x9F), 0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}.get(
        lead, (0x80, 0xBF)
    )
    return least <= tail <= most


def spaces() -> Mapping[str, int]:
    """Return the name of each space → its size."""
    return {
        "pairs of printable ASCII characters, learned and merged in training": len(pairs_of_characters()),
        "pairs of bytes of UTF-8, merged in encoding": sum(map(len, pairs_of_bytes().values())),
        "ASCII characters, three in a row, of which a joined key confuses two pairs": 0x80,
        "ends of ranges of characters of one category, encoded": len(ends_of_ranges()),
        "lengths of a text and of a pre-token, encoded": 2 * (LONGEST + 1),
        "positions of a cut in a stream": LONGEST + 1,
        "runs of three white space characters in a stream": len(RUNS),
    }


def gaps() -> Iterator[str]:
    """Yield a line for each pair that is not merged where this module says so, by the oracle, and each byte in none."""
    for name, pairs in pairs_of_bytes().items():
        for block in blocks(pairs):
            question, right = encoding(block)
            if tuple(oracle(question.table).encode(question.operation.text)) != right.ids:
                yield f"{name}: not every pair of {block[0][0]} to {block[-1][0]} is merged"
    for word in ends_of_ranges():
        question, right = encoding_of_ranges([word])
        if textbook.split(word) != [word] or tuple(oracle(question.table).encode(f"\n{word}")) != right.ids:
            yield f"{word!a}: is not one pre-token"
    for pair, word in pairs_of_characters().items():
        if word not in textbook.split(f"\n{word}") or b"".join(pair) not in word.encode():
            yield f"{pair}: {word!a} is no pre-token that holds it"
    merged = {byte for pairs in pairs_of_bytes().values() for pair in pairs for byte in pair}
    if missing := {bytes([byte]) for byte in range(256)} - merged - {bytes([byte]) for byte in NEVER_IN_PAIRS}:
        yield f"the bytes {sorted(missing)} take part in no merge"


def blocks(pairs: Mapping[Merge, str], size: int = BLOCK) -> Iterator[list[tuple[Merge, str]]]:
    items = list(pairs.items())
    yield from (items[start : start + size] for start in range(0, len(items), size))


def together(
    implementation: Implementation,
    clause_id: str,
    question: Question[Any],
    alone: Iterable[Question[Any]],
    right: Answer | None = None,
) -> Verdicts:
    """Ask about many inputs at once. If the answer is incorrect, ask about each alone.

    Args:
        implementation: the implementation under test.
        clause_id: the clause that the case belongs to.
        question: the question about all inputs.
        alone: the questions about each of them.
        right: the correct answer if no other split is declared. Default: the oracle's.
    """
    if right is None or implementation.conventions["pattern"] != "gpt2":
        expected = correct_answer(question, implementation.conventions)
    else:
        expected = right
    if not is_correct(implementation, question, ask(implementation, question), expected):
        yield from (equals_oracle(implementation, one, clause_id) for one in (*alone, question))


def _training(words: Iterable[str]) -> Question[Any]:
    text = "\n".join(words)
    merges = text.count("\n") + 1
    return posed("train", None, {"text": text, "vocab_size": 256 + merges, "special_tokens": []})


@Fixed("law-train-pairs", "LAW-TRAIN-1", ("train",))
def trains_pairs(implementation: Implementation) -> Verdicts:
    """Every pair of printable ASCII characters that can be in one pre-token is learned and merged."""
    for block in blocks(pairs_of_characters(), FEW):
        words = [word for _, word in block]
        alone = (_training([word]) for word in words)
        yield from together(implementation, "LAW-TRAIN-1", _training(words), alone)


def encoding(pairs: Iterable[tuple[Merge, str]]) -> tuple[Question[Any], Ids]:
    """Return a question in which each of the pairs is merged once, and its answer."""
    items = list(pairs)
    model = strategies.with_ids([pair for pair, _ in items])
    ids: list[int] = []
    for rank, (pair, word) in enumerate(items):
        before, _, after = word.encode("utf-8").partition(b"".join(pair))
        ids += [10, *before, 256 + rank, *after]
    return posed("encode", model, {"text": "".join(f"\n{word}" for _, word in items)}), Ids(tuple(ids))


@Fixed("law-encode-pairs", "LAW-ENCODE-1", ("encode",))
def encodes_pairs(implementation: Implementation) -> Verdicts:
    """Every pair of bytes that UTF-8 allows within a pre-token is merged."""
    for pairs in pairs_of_bytes().values():
        for block in blocks(pairs):
            question, right = encoding(block)
            alone = (encoding([one])[0] for one in block)
            yield from together(implementation, "LAW-ENCODE-1", question, alone, right)


@Fixed("law-encode-keys", "MERGE-PAIR-1", ("encode",))
def keys(implementation: Implementation) -> Verdicts:
    """`aaa` becomes `aa` and `a`, for every ASCII character, although (a,aa) is a merge, too."""
    chars = [*map(chr, range(0x80))]
    merges = [pair for char in chars for pair in ((char.encode(), char.encode()), (char.encode(), 2 * char.encode()))]
    model = strategies.with_ids(merges)
    texts = ["\n".join(char * 3 for char in ASCII), *(char * 3 for char in chars if char not in ASCII)]
    for text in texts:
        question = posed("encode", model, {"text": text})
        alone = (replace(question, operation=Encode(part)) for part in text.split("\n") if part)
        yield from together(implementation, "MERGE-PAIR-1", question, alone)


RANGES = {"L": "a", "N": "1", "other": "."}
"""A character of each class. It is in one pre-token with a character of its own class only."""


@cache
def ends_of_ranges() -> Sequence[str]:
    """Return the first and the last character of every range of one category, each after a character of its class.

    White space is left out, and so are characters on whose classes engines differ.
    """
    chars = strategies.characters_at_edges()
    return tuple(RANGES[class_of(char)] + char for char in chars if not char.isspace())


def encoding_of_ranges(words: Iterable[str]) -> tuple[Question[Any], Ids]:
    """Return a question in which the first two bytes of each of these words are merged, and its answer."""
    spelled = [word.encode("utf-8") for word in words]
    pairs = list(dict.fromkeys((word[:1], word[1:2]) for word in spelled))
    ids = [index for word in spelled for index in (10, 256 + pairs.index((word[:1], word[1:2])), *word[2:])]
    text = "".join(f"\n{word.decode()}" for word in spelled)
    return posed("encode", strategies.with_ids(pairs), {"text": text}), Ids(tuple(ids))


@Fixed("law-split-ranges", "SPLIT-UNICODE-1", ("encode",))
def ranges(implementation: Implementation) -> Verdicts:
    """The first and the last character of every range of letters, numbers and other characters is split by class."""
    words = ends_of_ranges()
    for start in range(0, len(words), BLOCK):
        block = words[start : start + BLOCK]
        question, right = encoding_of_ranges(block)
        alone = (encoding_of_ranges([one])[0] for one in block)
        yield from together(implementation, "SPLIT-UNICODE-1", question, alone, right)


MODEL = read_model(
    {"merges": [["b", "c"], ["a", "b"], ["ab", "c"], [" ", "h"], ["\n", "\n"], [{"hex": "c3"}, {"hex": "a9"}]]}
)
TEXTS = tuple((part * LONGEST)[:LONGEST] for part in (MIXED, "abc"))


@Fixed("law-encode-lengths", "LAW-ENCODE-1", ("encode",))
def lengths(implementation: Implementation) -> Verdicts:
    """Texts and pre-tokens of every length from 1 to 128 characters give the correct ids."""
    instance = Instance(implementation, MODEL)
    for text, length in product(TEXTS, range(1, LONGEST + 1)):
        question = posed("encode", MODEL, {"text": text[:length]})
        answer, right = instance.ask(question), correct_answer(question, implementation.conventions)
        if answer != right:
            found = equals_oracle(implementation, question, "LAW-ENCODE-1")
            yield found or Mismatch(question, Expectation((right,)), answer)


@Fixed("law-stream-cuts", "LAW-STREAM-1", ("encode_iterable",))
def cuts(implementation: Implementation) -> Verdicts:
    """A stream gives the same ids wherever a text is cut in two, and if white space arrives character by character."""
    text = TEXTS[0]
    right = Ids(tuple(oracle(MODEL, implementation.conventions).encode(text)))
    instance = Instance(implementation, MODEL)
    for cut in range(LONGEST + 1):
        question = posed("stream", MODEL, {"chunks": [text[:cut], text[cut:]]})
        if instance.ask(question) != right:
            yield equals_oracle(implementation, question, "LAW-STREAM-1")
            return
    runs = posed("stream", _pairs_of_blanks(), {"chunks": [*"".join(STREAM)]})
    alone = (replace(runs, operation=Stream((*run,))) for run in STREAM)
    yield from together(implementation, "LAW-STREAM-1", runs, alone)


BLANKS = " \t\n\r\u00a0\u3000"
NEARLY_BLANKS = "\x1c\x1d\x1e\x1f\u00ad\u180e\u200b\u200d\u2060\ufeff"
"""Characters that `str.isspace`, an older Unicode or a reader takes for white space, and the patterns do not."""
RUNS = tuple(f"a{''.join(run)}b" for run in product(BLANKS, repeat=3))
"""White space of one byte, of two and of three, where a stream may not cut."""
STREAM = (*RUNS, *(f" !{char}! b" for char in NEARLY_BLANKS))


@cache
def _pairs_of_blanks() -> Model:
    """Return a table in which each pair of these white space characters is one token, and each `!` with the others."""
    merges: dict[Merge, None] = {}
    for char in (one.encode() for one in BLANKS + NEARLY_BLANKS):
        merges.update({(char[:end], char[end : end + 1]): None for end in range(1, len(char))})
    merges.update({(one.encode(), other.encode()): None for one, other in product(BLANKS, BLANKS)})
    for char in (one.encode() for one in NEARLY_BLANKS):
        merges.update({(b"!", char): None, (b"!" + char, b"!"): None})
    return strategies.with_ids([*merges])


PROPERTIES: tuple[Property, ...] = (trains_pairs, encodes_pairs, keys, ranges, lengths, cuts)
