"""Questions that a program confuses if its key loses something: a cache, a vocabulary, a pair.

One tokenizer is asked all of a group in turn, and again in reverse. Characters that programs change, or use as marks of
their own, take part in a training and in an encoding.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from bpe_conformance.fixtures import Merge, Model, characters

from ..answer import Acceptable
from ..implementation.implementation import Implementation
from ..operations import Batch, Decode, DecodeBytes, Encode, Operation, Question, Stream, Train
from ..outcome import Expectation, Mismatch
from . import strategies
from .asking import Instance, ask, correct_answer, equals_oracle, is_correct, undisturbed
from .complete import FEW, class_of, together
from .engine import Fixed, Property, Verdicts

# Caches

_LONG = "abcd" * 20
_PREFIX = list(range(97, 101)) * 20
WIDE_IDS = {321: b"ab", 65_601: b"cd", 131_137: b"abcd", 524_353: b"AB"}
"""Their low bytes are 65, and so are the low 16 bits of all but the first. An id of 20 bits has to be possible."""
IDS: Sequence[Sequence[Sequence[int]]] = (
    ([65], [321], [65_601], [131_137], [524_353]),
    ([1, 23], [12, 3], [123], [1, 2, 3]),
    ([111], [11, 1], [1, 11], [1, 1, 1]),
    ([65, 66, 67], [67, 66, 65], [65, 67, 66], [66, 65, 67], [65, 66, 66, 67], [65, 65, 66, 67]),
    ([65, 67], [66, 66], [64, 68], [67, 65]),
    ([65], [65, 0], [0, 65], [65, 65], []),
    ([*_PREFIX, 65], [*_PREFIX, 66], [65, *_PREFIX], [66, *_PREFIX], [*_PREFIX[:40], 65, *_PREFIX[40:]]),
)
"""Equal in their low bits; joined digits; sorted, as sets, at both ends; sum; without zeros; first and last ids."""
TEXTS: Sequence[Sequence[str]] = (
    ("ab", "AB", "Ab", "aB", "ba", "BA"),
    ("ab", " ab", "ab ", "  ab", "ab\n", "\tab", "ab\0", "ab\r\n", "ab\u00a0", "\ufeffab", "ab\u200b"),
    ("\u0061", "\u0161", "\u6161", "\U00010061", "a\u0301", "\u00e1", "\uff41"),
    ("k", "K", "\u212a", "\u212b", "\u00c5", "A\u030a", "\u0130", "i", "\u0131", "\u017f", "s", "\u00df", "ss"),
    ("1", "01", "1.0", "+1", "1e0", "001", "10", "1e1", "0x1", "\u0661", "\u00b9", "\u2460"),
    (f"{_LONG}a", f"{_LONG}b", f"a{_LONG}", f"b{_LONG}", f"{_LONG[:40]}b{_LONG[40:]}", f"{_LONG[:40]}c{_LONG[40:]}"),
    ("ab cd", "cd ab", "abc d", "a bcd", "abcd", "ab\ncd", "ab cd ab", "ab ab cd"),
    ("?", "\ufffd", "\U0001f98a", "\U0001f98b", "\u00bf", "\u263a", "\u263a\ufe0f"),
)
"""Equal without case or white space, in their low bits, normalized, as numbers, at both ends, as sets, in ASCII."""
CHUNKS: Sequence[Sequence[Sequence[str]]] = (
    (["ab", "cd"], ["cd", "ab"], ["ab", "dc"], ["ba", "cd"], ["ab", "ab"], ["ab", "cd", "ab"]),
    (["ab"], ["ab", "ab"], ["a", "b"], ["b", "a"], ["ab", " "], ["AB"], ["", "AB"]),
    ([_LONG, "a"], [_LONG, "b"], ["a", _LONG], ["b", _LONG]),
)
BATCHES: Sequence[Sequence[Sequence[str]]] = (
    (["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""], ["", "abc"], ["a", "b", "c"], ["c", "b", "a"]),
    (["ab", "cd"], ["cd", "ab"], ["ab", "cd", "ab"], ["ab", "ab", "cd"], ["AB", "cd"]),
    (["ab cd"], ["ab", "cd"], ["ab,cd"], ["ab\ncd"], ["ab\0cd"], ["['ab', 'cd']"]),
    ([f"{_LONG}a"], [f"{_LONG}b"], [f"a{_LONG}"]),
)
_TRAINED = "abcabd abcabe <|s|> cdcdcd"
TRAININGS: Sequence[Sequence[Train]] = (
    (Train(_TRAINED, 262), Train(_TRAINED, 260), Train(_TRAINED, 258), Train(_TRAINED[::-1], 262)),
    (
        Train(_TRAINED.upper(), 262),
        Train(_TRAINED, 261),
        Train(f"{_TRAINED} efef", 262),
        Train(f"efef {_TRAINED}", 262),
    ),
    (Train(f"{_TRAINED} <|s|> <|s|>", 262), Train(f"{_TRAINED} <|s|> <|s|>", 262, ("<|s|>",))),
)
"""Equal in their texts, as sorted letters, without case, at both ends, or without special tokens."""


@cache
def _model() -> Model:
    pairs = ["ab", "cd", "AB", "a\u0301", "01", "\u00e1"]
    merges: list[Merge] = [(pair.encode()[:1], pair.encode()[1:2]) for pair in pairs] + [(b"ab", b"cd")]
    return strategies.with_ids(merges)


@cache
def _wide_model() -> Model:
    model = strategies.with_ids([(b"a", b"b"), (b"c", b"d"), (b"ab", b"cd"), (b"A", b"B")])
    return replace(model, vocab={at: token for at, token in model.vocab.items() if at < 256} | WIDE_IDS)


def _in_turn(implementation: Implementation, groups: Sequence[Sequence[Question[Any]]]) -> Verdicts:
    """Ask one tokenizer the questions of each group, and again in reverse."""
    model = groups[0][0].model
    tokenizer = None if model is None else Instance(implementation, model)
    asked_earlier = list[tuple[Question[Any], Acceptable]]()
    for group in groups:
        rights = [(question, correct_answer(question, implementation.conventions)) for question in group]
        context = ""
        for question, right in [*rights, *reversed(rights)]:
            asked = replace(question, context=context)
            answer = ask(implementation, asked) if tokenizer is None else tokenizer.ask(asked)
            context = f"after the question {_brief(question.operation)}, among others"
            if not is_correct(implementation, question, answer, right):
                # an answer to another question is confused, even if a new tokenizer gives it: a class can have a cache
                if any(is_correct(implementation, other, answer, known) for other, known in asked_earlier):
                    yield Mismatch(asked, Expectation((right,)), answer)
                yield undisturbed(implementation, asked, answer)
            asked_earlier.append((question, right))


def _brief(operation: Operation) -> str:
    shown = ", ".join(ascii(value) for value in operation.call().arguments or ())
    return shown if len(shown) <= 60 else f"{shown[:28]} ... {shown[-27:]}"


def _groups(model: Model | None, groups: Iterable[Iterable[Operation]]) -> list[list[Question[Any]]]:
    return [[Question(operation, model) for operation in group] for group in groups]


@Fixed("law-cached-texts", "LAW-PURE-1", ("encode",))
def texts(implementation: Implementation) -> Verdicts:
    """One tokenizer encodes texts that are equal in their case, length, low bits, ends or normal form."""
    yield from _in_turn(implementation, _groups(_model(), (map(Encode, group) for group in TEXTS)))


@Fixed("law-cached-ids", "LAW-PURE-1", ("decode",))
def ids(implementation: Implementation) -> Verdicts:
    """One tokenizer decodes lists that are equal in their low bits, joined digits, sums, ends or order."""
    if implementation.conventions["lookup"] != "pair":
        return
    for kind in (Decode, DecodeBytes):
        if kind.name in implementation.capabilities:
            groups = _groups(_wide_model(), ((kind(tuple(ids)) for ids in group) for group in IDS))
            yield from _in_turn(implementation, groups)


@Fixed("law-cached-streams", "LAW-PURE-1", ("encode_iterable",))
def streams(implementation: Implementation) -> Verdicts:
    """One tokenizer encodes streams that are equal in their first chunk, their number of chunks or their letters."""
    yield from _in_turn(
        implementation, _groups(_model(), ((Stream(tuple(chunks)) for chunks in group) for group in CHUNKS))
    )


@Fixed("law-cached-batches", "LAW-PURE-1", ("encode_batch",))
def batches(implementation: Implementation) -> Verdicts:
    """One tokenizer encodes batches that are equal in their joined texts, their number of texts or their letters."""
    yield from _in_turn(
        implementation, _groups(_model(), ((Batch(tuple(texts)) for texts in group) for group in BATCHES))
    )


@Fixed("law-cached-trainings", "LAW-REPLAY-1", ("train",))
def trainings(implementation: Implementation) -> Verdicts:
    """Trainings that are equal in their text, size or letters give each their own merges."""
    if implementation.conventions["tie_break"] == "unspecified":
        return
    has_special = "train-special" in implementation.capabilities
    possible = ([asked for asked in group if has_special or not asked.special] for group in TRAININGS)
    yield from _in_turn(implementation, _groups(None, possible))


# Characters

MARKS = "\u0120\u010a\u0109\u010d\u2581\u2420\u2421\u2422\u2423\u2424\u00b7\u2587\u0100\u0143\ue000\U000f0000"
"""Characters that programs write for white space or bytes, or use as marks of their own."""
EQUIVALENT = "K\u212a\u00c5\u212b\u03a9\u2126\u00e9\u1e9b\u0344\u0374\u037e;\u1fef`\u2000\u2001\uf900\u8c48\ufb01\u2460"
"""Characters, most of them canonically equivalent to another one of them."""
CASES = "aAkK\u00df\u1e9e\u0130\u0131\u017f\u01c4\u01c5\u01c6\u03c3\u03c2\u03a3\u1c80\u0434\ua64a\ua64b"
NUMBERS = ("01", "1", "001", "10", "010", "00", "0", "100", "011", "101", "110")
BASES = {"L": "a", "N": "1", "other": "."}
WORDS = ("low</w>", "</w>low", "##ing", "@@", "low@@", "<unk>", "\u0120low", "\u2581low")


@cache
def every_kind() -> str:
    """Return one character of each general category, one with each byte of UTF-8, and those above."""
    known = [
        *map(chr, range(0x80)),
        *strategies.characters_at_edges(),
        *"".join(run[::7] for run in characters.agreed()),
    ]
    chosen = dict.fromkeys(MARKS + EQUIVALENT + CASES)
    of_category: dict[str, str] = {}
    of_byte: dict[int, str] = {}
    for char in known:
        of_category.setdefault(unicodedata.category(char), char)
        for byte in char.encode("utf-8"):
            of_byte.setdefault(byte, char)
    chosen |= dict.fromkeys([*of_category.values(), *of_byte.values()])
    return "".join(char for char in chosen if char not in characters.engine_differences())


def word(char: str) -> str:
    """Return a word with this character, which patterns leave together unless it is white space."""
    return f"{BASES[class_of(char)]}{char}" if not char.isspace() else f"a{char}b"


@cache
def _words() -> tuple[tuple[str, ...], ...]:
    words = [*map(word, every_kind()), *NUMBERS, *WORDS]
    return tuple(tuple(words[start : start + FEW]) for start in range(0, len(words), FEW))


def _training(words: Sequence[str]) -> Question[Any]:
    text = " ".join(words)
    return Question(Train(text, 256 + len(text)))


def _encoding(words: Sequence[str]) -> Question[Any]:
    """Return a question in which each word that is one pre-token is one token."""
    merges: dict[bytes, Merge] = {}
    for one in words:
        data = one.encode("utf-8")
        for end in range(2, len(data)):
            merges.setdefault(data[1 : end + 1], (data[1:end], data[end : end + 1]))
        if len(data) > 1:
            merges.setdefault(data, (data[:1], data[1:]))
    return Question(Encode("\n".join(words)), strategies.with_ids(list(merges.values())))


@Fixed("law-train-characters", "LAW-TRAIN-1", ("train",))
def trains_every_kind(implementation: Implementation) -> Verdicts:
    """Characters of every category, with every byte, marks of programs and equivalent characters are learned."""
    for words in _words():
        alone = (_training([one]) for one in words)
        yield from together(implementation, "LAW-TRAIN-1", _training(words), alone)


IN_REVERSE = strategies.with_ids([(b"\x97", b"\xa5"), (b"\xe6", b"\x97"), (b"\x97\xa5", b"\xe6")])
"""In a character of three bytes, the pair on the right comes first."""
BELOW = Model({0: b"abc", **{byte + 1: bytes([byte]) for byte in range(256)}}, ())
"""The entry of `abc` has the lowest id, and no merge makes it."""


@Fixed("law-encode-characters", "LAW-ENCODE-1", ("encode",))
def encodes_every_kind(implementation: Implementation) -> Verdicts:
    """Characters of every category, with every byte, marks of programs and equivalent characters are encoded."""
    for words in _words():
        question = _encoding(words)
        alone = [replace(question, operation=Encode(one)) for one in words] + [_encoding([one]) for one in words]
        yield from together(implementation, "LAW-ENCODE-1", question, alone)
    texts = ["\u65e5" * count for count in (1, 2, 3, 90)]
    yield from (equals_oracle(implementation, Question(Encode(text), IN_REVERSE), "MERGE-ORDER-1") for text in texts)
    if implementation.conventions["lookup"] == "pair":
        for text in ("abc", "xabc abc"):
            mismatch = equals_oracle(implementation, Question(Encode(text), BELOW), "MERGE-WHOLE-1")
            yield None if mismatch is None else replace(mismatch, clause_id="MERGE-WHOLE-1")


def gaps() -> Iterator[str]:
    """Yield what takes part in no training and no encoding of this module."""
    chars = every_kind()
    text = "".join(one for words in _words() for one in words)
    never = {0xC0, 0xC1, *range(0xF5, 0x100)}
    if missing := {*range(256)} - {*text.encode("utf-8")} - never:
        yield f"the bytes {sorted(missing)} take part in no training"
    categories = {unicodedata.category(char) for run in characters.agreed() for char in run}
    if missing_categories := categories - {unicodedata.category(char) for char in chars}:
        yield f"no character of {sorted(missing_categories)} takes part in a training"


PROPERTIES: tuple[Property, ...] = (
    trains_every_kind,
    encodes_every_kind,
    texts,
    ids,
    streams,
    batches,
    trainings,
)
