"""A golden case passes a correct answer under the declared conventions, and fails any other with its divergence."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.golden_cases import case, judged, like
from helpers.plugin_adapters import Greedy, Right, TrainOnly
from helpers.wrong_tokenizers import Whole

from bpe_conformance.answer import (
    MALFORMED,
    TIMED_OUT,
    AnyError,
    BytesLost,
    CrossesBoundary,
    EncodingCause,
    EncodingDivergence,
    Fault,
    Ids,
    Pair,
    PreTokenCut,
    Refusal,
    TextDivergence,
    TrainingDivergence,
    UnknownId,
    WholeTokenCut,
    WrongId,
    WrongMerge,
    fingerprint,
)
from bpe_conformance.cases import judging
from bpe_conformance.cases.judging import OTHER_SPLIT, adapted, judge, skip_reason
from bpe_conformance.fixtures import END_OF_TEXT, gpt2_model, read_model
from bpe_conformance.fixtures.conventions import DEFAULTS
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.operations import Batch, Encode, Entries, Expected, Question, Setting, StoredIds
from bpe_conformance.outcome import AFTER_ERROR, Expectation, Mismatch
from bpe_conformance.reference import Tokenizer as Reference
from bpe_conformance.reference import textbook
from bpe_conformance.spec import Case, installed_spec
from bpe_conformance.terminal import wording

RIGHT = [["o", "w"], ["l", "ow"], ["low", "e"], ["lowe", "r"]]
LOW = {"train": {"text": "low\nlow\nlower", "vocab_size": 300, "special_tokens": []}}
PRIORITY = {"merges": [["b", "c"], ["a", "b"]]}
LOOKUP = {"merges": [["b", "c"], ["a", "b"], ["ab", "c"]]}
SPECIAL = {"merges": [["a", "b"]], "extra": [[300, "<|e|>"]], "special_tokens": ["<|e|>"]}


@pytest.mark.parametrize(("count", "factor"), [(255, 1), (256, judging.MUCH_TIME)])
def test_a_batch_of_many_texts_may_take_more_time(count: int, factor: int) -> None:
    question = Question[Any](Batch(("ab",) * count), read_model({}))
    assert judging.time_factor(question, Implementation("x", Right)) == factor


def test_a_large_vocabulary_may_take_more_time() -> None:
    implementation = Implementation("x", Right)
    assert judging.time_factor(Question(Encode("a"), gpt2_model()), implementation) == judging.MUCH_TIME
    assert judging.time_factor(Question(Encode("a"), read_model({})), implementation) == 1


def undeclared(**conventions: str) -> Any:
    """Return a trainer that follows conventions without declaring them."""
    return like(Right, train=textbook.with_conventions(**conventions).train)


def learns_a_merge_twice(cls: Any, text: str, size: int, special: Sequence[str]) -> Any:
    trained = Right.train(text, size, special)
    return trained.vocab, [*trained.merges, trained.merges[0]]


def fails(*_: Any) -> Any:
    raise ValueError("the adapter's own")


def exits(*_: Any) -> Any:
    raise SystemExit(1)


def loads_backwards(cls: Any, vocab: Any, merges: Any, special_tokens: Any = None) -> Any:
    lines = Path(merges).read_text("utf-8").splitlines()
    Path(merges).write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n", "utf-8")
    return Reference.from_files(vocab, merges, special_tokens)


def loads_one_header(cls: Any, vocab: Any, merges: Any, special_tokens: Any = None) -> Any:
    assert Path(merges).read_text("utf-8").startswith("#version: 0.2\n")
    return Reference.from_files(vocab, merges, special_tokens)


def saves(change: Callable[[dict[str, int], list[str]], None]) -> Callable[[Any, str], None]:
    def save(self: Any, folder: str) -> None:
        Reference.save(self, Path(folder))
        vocab, merges = Path(folder, "vocab.json"), Path(folder, "merges.txt")
        entries, lines = json.loads(vocab.read_text("utf-8")), merges.read_text("utf-8").splitlines()
        change(entries, lines)
        vocab.write_text(json.dumps(entries), "utf-8")
        merges.write_text("\n".join(lines) + "\n", "utf-8")

    return save


def greedy_stream(self: Any, chunks: Iterable[str]) -> Iterator[int]:
    for chunk in chunks:
        yield from self.encode(chunk)


def patient_stream(self: Any, chunks: Iterable[str]) -> Iterator[int]:
    yield from self.encode("".join(chunks))


def lazy_at_first(self: Any, chunks: Iterable[str]) -> Iterator[int]:
    held, read = "", 0
    for chunk in chunks:
        held, read = held + chunk, read + len(chunk)
        if read < 20_000:
            yield from self.encode(held)
            held = ""
    yield from self.encode(held)


ENCODE = case("encode", PRIORITY, {"text": "abc"})
ENCODE_SPECIAL = case("encode", SPECIAL, {"text": "ab<|e|>ab"})
DECODE = case("decode", {}, {"ids": [226, 130, 172, 226]})
TRAIN = case("train", None, LOW, clause="TRAIN-TIE-1")
TRAIN_IDS = case("train", None, {"train": {**LOW["train"], "special_tokens": ["<|e|>"]}}, clause="TRAIN-IDS-2")
CUT = case("stream", {"merges": [["b", "c"], ["'", "l"], ["'l", "l"]]}, {"text": "abc'll", "cut": "everywhere"})
CHARACTERS = case("stream", {"merges": [["b", "c"]]}, {"text": "abc", "cut": "characters"})
LAZY = case("stream", {}, {"repeat_chunks": ["ab cd ", 4000]}, {"lazy": True})
LAZY_WIDE = case("stream", {}, {"repeat_chunks": ["\u65e5\u672c \u732b ", 9000]}, {"lazy": True})
BATCH = case("batch", PRIORITY, {"texts": ["abc", "", "ab"]})
SAVE = case("save", SPECIAL, {}, {"table": "same"})
LOAD = case("load", PRIORITY, {"text": "abc", "newline": "crlf", "key_order": "reversed"})
HEADER = case("load", PRIORITY, {"text": "abc", "version_line": "#version: 9 - by hand"})
TUPLE = case("decode", {}, {"ids": [97, 98], "sequence": "tuple"})
ERROR = case("construct", {"remove": [97]}, {"text": "a"}, {"error": "table"})
SURROGATE = case(
    "encode", {}, {"text": {"code_points": [97, 0xD800]}}, {"any_of": [{"error": "surrogate"}, {"lossless": True}]}
)
UNKNOWN = case("decode", {}, {"ids": [97, 999]}, {"error": "unknown-id"})
SIZE = case("train", None, {"train": {**LOW["train"], "vocab_size": 255}}, {"error": "size"}, "TRAIN-SIZE-1")


@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        (ENCODE, like(encode=lambda self, text: [])),
        (ENCODE, like(encode=lambda self, text: [97, 98, 99])),
        (ENCODE, like(encode=lambda self, text: [97, 256, 256])),
        (ENCODE, like(encode=lambda self, text: [97, 999])),
        (ENCODE, like(encode=lambda self, text: None if text == "abc" else [])),
        (ENCODE, like(encode=fails)),
        (ENCODE, like(encode=exits)),
        (ENCODE, like(Right, merge=Greedy.merge)),
        (ENCODE_SPECIAL, like(encode=lambda self, text: textbook.Tokenizer(self.vocab, self.merges).encode(text))),
        (DECODE, like(decode=lambda self, ids: "€")),
        (DECODE, like(decode=lambda self, ids: b"x" if len(ids) > 1 else "")),
        (DECODE, like(decode=lambda self, ids: "".join(bytes([i]).decode("utf-8", "replace") for i in ids))),
        (DECODE, like(decode=fails)),
        (DECODE, like(decode_bytes=lambda self, ids: b"")),
        (DECODE, like(decode_bytes=fails)),
        (TRAIN, undeclared(tie_break="lex-smaller")),
        (TRAIN, like(train=classmethod(lambda cls, text, size, special: Right.train(text, size - 44, special)))),
        (TRAIN, like(train=classmethod(lambda cls, text, size, special: Right.train(text + "r", size, special)))),
        (
            TRAIN,
            like(train=classmethod(lambda cls, text, size, special: ({0: b"a"}, Right.train(text, size, []).merges))),
        ),
        (TRAIN, like(train=classmethod(learns_a_merge_twice))),
        (TRAIN, like(train=classmethod(fails))),
        (TRAIN_IDS, undeclared(id_layout="specials-bytes-merges")),
        (CUT, like(encode_iterable=greedy_stream)),
        (CUT, like(encode_iterable=lambda self, chunks: iter(self.encode("".join(chunks)[:-1])))),
        (CUT, like(encode_iterable=fails)),
        (CHARACTERS, like(encode_iterable=greedy_stream)),
        (LAZY, like(encode_iterable=patient_stream)),
        (LAZY, like(encode_iterable=fails)),
        (LAZY_WIDE, like(encode_iterable=lazy_at_first)),
        (LAZY, like(encode_iterable=lambda self, chunks: [] if isinstance(chunks, list) else None)),
        (BATCH, like(encode_batch=lambda self, texts: [self.encode(text) for text in reversed(texts)])),
        (BATCH, like(encode_batch=lambda self, texts: [self.encode(text) for text in texts if text])),
        (BATCH, like(encode_batch=lambda self, texts: [self.encode(text) for text in [*texts, "a"]])),
        (BATCH, like(encode_batch=lambda self, texts: self.encode("".join(texts)) if len(texts) > 1 else [])),
        (BATCH, like(encode_batch=fails)),
        (SAVE, like(save=lambda self, folder: None)),
        (SAVE, like(save=saves(lambda vocab, merges: merges.reverse()))),
        (SAVE, like(save=saves(lambda vocab, merges: vocab.pop("ab")))),
        (SAVE, like(save=saves(lambda vocab, merges: vocab.update(zz=999)))),
        (SAVE, like(save=saves(lambda vocab, merges: vocab.update(ab=999)))),
        (SAVE, like(save=saves(lambda vocab, merges: merges.append("a b c")))),
        (SAVE, like(save=fails)),
        (LOAD, like(from_files=classmethod(loads_backwards))),
        (LOAD, like(from_files=classmethod(fails))),
        (HEADER, like(from_files=classmethod(loads_one_header))),
        (TUPLE, like(decode=lambda self, ids: Reference.decode(self, ids) if type(ids) is list else "")),
        (ERROR, like(__init__=lambda self, *_: None, encode=lambda self, text: [])),
        (ERROR, like(__init__=exits)),
        (SURROGATE, like(encode=lambda self, text: [97])),
        (SURROGATE, like(encode=exits)),
        (UNKNOWN, like(decode=lambda self, ids: "a")),
        (UNKNOWN, like(decode=fails, decode_bytes=lambda self, ids: b"a")),
        (UNKNOWN, like(decode=fails, decode_bytes=exits)),
        (SIZE, like(train=classmethod(lambda cls, text, size, special: Right.train(text, 256, [])))),
    ],
)
def test_correct_passes_and_wrong_fails(made: Case, wrong: Any) -> None:
    assert judged(made, Reference) is None
    mismatch = judged(made, wrong)
    assert mismatch is not None
    assert mismatch.answer not in mismatch.expected.alternatives
    asked = mismatch.asked.operation
    assert not {asked, asked.golden()}.isdisjoint(made.operation.parts())
    for words in (wording.fact(mismatch), wording.expectation(mismatch), wording.value(mismatch.answer, mismatch)):
        assert words
        assert "\n" not in words


def test_unspecified_answers_pass() -> None:
    assert judged(SURROGATE, like(encode=lambda self, text: list(text.encode("utf-8", "surrogatepass")))) is None
    assert judged(SURROGATE, like(encode=fails)) is None
    lossless = case(
        "encode", {"merges": [["a", "b"], ["a", "b"]], "merge_ids": [256, 258]}, {"text": "ab"}, {"lossless": True}
    )
    assert judged(lossless, like(encode=lambda self, text: [97, 98])) is None
    assert judged(lossless, like(encode=lambda self, text: [258])) is None
    assert judged(lossless, like(encode=lambda self, text: [97])) is not None
    either = case("train", None, LOW, {"any_of": [{"merges": []}, {"merges": [["o", "w"]]}]}, "TRAIN-TIE-1")
    for merges in ([], [(b"o", b"w")]):
        vocab = textbook.build_vocab(merges)
        assert (
            judged(either, like(train=classmethod(lambda cls, *_, merges=merges, vocab=vocab: (vocab, merges)))) is None
        )
    assert judged(either, Reference) is not None
    error_or_value = case("train", None, LOW, {"any_of": [{"error": "size"}, {"merges": RIGHT}]}, "TRAIN-TIE-1")
    assert judged(error_or_value, like(train=classmethod(fails))) is None
    assert judged(error_or_value, Reference) is None


@pytest.mark.parametrize("tie_break", ["lex-greater", "lex-smaller", "smaller-ids", "first-seen"])
@pytest.mark.parametrize("byte_order", ["raw", "gpt2"])
def test_expected_values_follow_the_convention(tie_break: str, byte_order: str) -> None:
    text = "low\nlow\nlower ÿÿaaÿÿ aa\u00a0\u00a0"
    made = case("train", None, {"train": {"text": text, "vocab_size": 300, "special_tokens": []}}, clause="TRAIN-TIE-1")
    declared = textbook.with_conventions(tie_break=tie_break, byte_order=byte_order)
    assert judged(made, declared) is None
    others = {"lex-greater", "lex-smaller", "first-seen"} - {tie_break}
    for other in others:
        assert judged(
            made, like(declared, conventions={"tie_break": other, "byte_order": byte_order}, train=declared.train)
        )


def test_special_tokens_can_be_text_in_training() -> None:
    given = {"train": {"text": "aab\naab\ncd", "vocab_size": 259, "special_tokens": ["aa"]}}
    made = case("train", None, given, clause="TRAIN-SPECIAL-1")
    as_text = textbook.with_conventions(train_special="text", tie_break="lex-smaller")
    trained = as_text.train("aab\naab\ncd", 259, ["aa"])
    assert trained.merges == [(b"a", b"a"), (b"aa", b"b"), (b"c", b"d")]
    assert list(trained.vocab.values()).count(b"aa") == 1
    assert len(trained.vocab) == 259
    for conventions in (as_text.conventions, {"train_special": "text", "tie_break": "unspecified"}):
        assert judged(made, like(Right, train=as_text.train, conventions=conventions)) is None
    mismatch = judged(made, like(Right, train=as_text.train, conventions={"tie_break": "lex-smaller"}))
    assert mismatch is not None
    assert mismatch.conventions == ((("train_special", "text"),),)


def splitting(pattern: str, by: str | None = None) -> Any:
    """Return a correct tokenizer that declares a pattern, and splits by `by` if it is given."""
    split = textbook.PATTERNS.get(by or pattern, by or pattern)

    class Split(textbook.Tokenizer):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
            super().__init__(vocab, merges, special_tokens, split)

        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str]) -> Any:
            return textbook.Tokenizer.train(text, vocab_size, special_tokens, split)

    Split.pattern = pattern  # type: ignore[assignment]
    return Split


@pytest.mark.parametrize("pattern", ["none", r"\S+|\s+", "cl100k", r"\w+"])
def test_declared_pattern_is_used(pattern: str) -> None:
    merges = {"merges": [["a", " "], ["a ", "b"], [" ", "b"], ["b", "'"], ["1", "2"], ["12", "3"], ["123", "4"]]}
    made = [
        case("encode", merges, {"text": "a b's 1234"}, clause="SPLIT-FENCE-1"),
        case("train", None, {"train": {**LOW["train"], "text": "it's it's it's 1234"}}, clause="TRAIN-SPLIT-1"),
    ]
    assert all(judged(one, splitting(pattern)) is None for one in made)
    assert all(judged(one, splitting(pattern, by="gpt2")) is not None for one in made)
    assert all(judged(one, splitting("gpt2", by=pattern)) is not None for one in made)
    assert Implementation("x", splitting(pattern)).declared == {"pattern": pattern}
    assert Implementation("x", splitting(textbook.PATTERNS["gpt2"])).declared == {}


def test_split_that_drops_text_fails() -> None:
    def encode(self: Any, text: str) -> list[int]:
        return [index for word in re.findall(r"\w+", text) for index in super(type(self), self).encode(word)]

    lossless = [one for one in installed_spec().cases if one.clause.id == "SPLIT-LOSSLESS-1"]
    mine = [one for one in lossless if one.pattern == "gpt2"]
    assert mine
    assert all(judged(one, splitting(r"\w+")) is None for one in mine)
    assert all(judged(one, like(splitting(r"\w+"), encode=encode)) is not None for one in mine)


def test_cases_of_another_split_are_skipped() -> None:
    own, default = Implementation("x", splitting("none")), Implementation("x", splitting("gpt2"))
    skipped = {one.clause.id for one in installed_spec().cases if skip_reason(one, own) == OTHER_SPLIT}
    assert {"SPLIT-LETTER-1", "SPLIT-SPACE-2", "MERGE-GPT2-1"} <= skipped
    assert not {"SPLIT-FENCE-1", "SPLIT-LOSSLESS-1", "TRAIN-SPLIT-1", "MERGE-ORDER-1"} & skipped
    long = case("encode", PRIORITY, {"text": "a " * 1025})
    assert [skip_reason(long, one) for one in (own, default)] == [OTHER_SPLIT, None]


def test_lookup_follows_the_convention() -> None:
    made = case("encode", LOOKUP, {"text": "xabc"})
    by_bytes = textbook.with_conventions(lookup="bytes")
    assert judged(made, Right) is None
    assert judged(made, by_bytes) is None
    undeclared = like(Right, encode=lambda self, text: by_bytes(self.vocab, self.merges).encode(text))
    mismatch = judged(made, undeclared)
    assert mismatch is not None
    assert mismatch.answer == Ids((120, 258))
    assert mismatch.conventions == ((("lookup", "bytes"),),)
    no_ranks = case("encode", {**LOOKUP, "merge_ids": [258, 257, 256]}, {"text": "xabc"})
    assert (
        skip_reason(no_ranks, Implementation("x", by_bytes))
        == "tables that a list of ranks cannot represent (lookup: bytes)"
    )


def steps(*merges: tuple[bytes, bytes]) -> Any:
    vocab = textbook.build_vocab(merges)
    train = classmethod(lambda cls, text, size, special: (vocab, list(merges)))
    return like(TrainOnly, conventions={"tie_break": "unspecified"}, train=train)


@pytest.mark.parametrize("tie_break", ["lex-greater", "lex-smaller", "first-seen"])
def test_any_most_frequent_pair_passes_without_a_tie_break(tie_break: str) -> None:
    merges = textbook.learn("low\nlow\nlower", 300, tie_break=tie_break)
    assert judged(TRAIN, steps(*merges)) is None


def test_pair_below_the_maximum_fails() -> None:
    right = textbook.learn("low\nlow\nlower", 300)
    not_most = judged(TRAIN, steps((b"e", b"r"), *right[1:]))
    assert not_most is not None
    assert not_most.divergence == TrainingDivergence(0, (b"l", b"o"), 3, (b"e", b"r"), 1)
    short = judged(TRAIN, steps(*right[:-1]))
    assert short is not None
    assert short.divergence == TrainingDivergence(3, (b"lowe", b"r"), 1, None, 0)
    long = judged(TRAIN, steps(*right, (b"a", b"b")))
    assert long is not None
    assert long.divergence == TrainingDivergence(4, None, 0, (b"a", b"b"), 0)


def test_ids_of_real_text_are_compared() -> None:
    stored = next(one for one in installed_spec().cases if StoredIds in map(type, one.expected.alternatives))

    class Fixed(Right):
        model = "gpt2"

        def __init__(self) -> None:
            model = gpt2_model()
            super().__init__(model.vocab, model.merges, [END_OF_TEXT])

    class LosesOne(Fixed):
        def encode(self, text: str) -> list[int]:
            ids = super().encode(text)
            return ids[:-1] if len(ids) > 100 else ids

    assert judged(stored, Fixed) is None
    assert judged(stored, LosesOne) is not None
    assert skip_reason(ENCODE, Implementation("x", Fixed)) == "other models than its own"


BC, AB = (b"b", b"c"), (b"a", b"b")


@pytest.mark.parametrize(
    ("made", "answer", "divergence"),
    [
        (ENCODE, [257, 99], EncodingDivergence(0, 0, WrongMerge(Pair(AB, 1, 0), Pair(BC, 0, 1)))),
        (ENCODE, [97, 98, 99], EncodingDivergence(1, 1, WrongMerge(None, Pair(BC, 0, 1)))),
        (ENCODE, [97, 999], EncodingDivergence(1, 1, UnknownId(999))),
        (ENCODE, [97], EncodingDivergence(1, 1, BytesLost(1))),
        (
            case("encode", {"merges": [["a", " "]]}, {"text": "a b"}),
            [256, 98],
            EncodingDivergence(0, 0, CrossesBoundary(b"a ", 1)),
        ),
        (
            case("encode", {"merges": [["a", "b"]]}, {"text": "x ab"}, clause="SPLIT-DEFAULT-1"),
            [120, 32, 97, 98],
            EncodingDivergence(2, 2, PreTokenCut(" ab", 3, Pair(AB, 0, 2))),
        ),
        (
            case("encode", {"merges": [[" ", "a"]]}, {"text": "x ab"}, clause="SPLIT-DEFAULT-1"),
            [120, 32, 97, 98],
            EncodingDivergence(1, 1, PreTokenCut(" ab", 2, Pair((b" ", b"a"), 0, 1))),
        ),
        (
            case("encode", {"merges": [["a", "b"], ["ab", "c"]]}, {"text": "abc"}),
            [256, 99],
            EncodingDivergence(0, 0, WrongMerge(None, Pair((b"ab", b"c"), 1, 0))),
        ),
        (
            case("encode", {"extra": [[300, "a"]]}, {"text": "a"}),
            [300],
            EncodingDivergence(0, 0, WrongId(b"a", 97, 300)),
        ),
    ],
)
def test_divergence_of_encodings_is_located(made: Case, answer: Sequence[int], divergence: EncodingDivergence) -> None:
    mismatch = judged(made, like(encode=lambda self, text: list(answer)))
    assert mismatch is not None
    assert mismatch.divergence == divergence


LONG = "a" * (judging.LONGEST_PRE_TOKEN + 1)


@pytest.mark.parametrize(
    ("text", "special", "refuses", "accepted"),
    [
        (LONG, [], "encode", True),
        (LONG[1:], [], "encode", False),
        (LONG, [LONG], "encode", False),
        (f"{LONG[1:]} b", [LONG], "encode", False),
        (LONG, [], "__init__", False),
    ],
)
def test_only_a_call_with_a_long_pre_token_may_be_refused(
    text: str, special: list[str], refuses: str, accepted: bool
) -> None:
    class Refuses(Reference):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
            if refuses == "__init__" and len(merges) == 1:
                raise ValueError("no room")
            super().__init__(vocab, merges, special_tokens)

        def encode(self, text: str, **choice: Any) -> list[int]:
            return fails() if refuses == "encode" and len(text) >= len(LONG) - 1 else super().encode(text, **choice)

    extra = [[300 + at, token] for at, token in enumerate(special)]
    made = case("encode", {"merges": [["a", "b"]], "extra": extra, "special_tokens": special}, {"text": text})
    assert (judged(made, Refuses) is None) is accepted


@pytest.mark.parametrize(
    ("answer", "accepted"),
    [
        (Refusal("ValueError", "no room"), True),
        (Fault(TIMED_OUT, "no answer"), False),
        (Fault("SystemExit", "1"), False),
        (Fault(MALFORMED, "None"), False),
    ],
)
def test_a_long_pre_token_may_be_refused_but_not_left_without_an_answer(answer: Any, accepted: bool) -> None:
    question = Question[Any](Encode(LONG), read_model({}))
    assert judging.refuses_long(question, answer, DEFAULTS | {"pattern": "gpt2"}) is accepted


@pytest.mark.parametrize(
    ("text", "answer", "cause"),
    [
        (" ab", [32, 97, 98], WholeTokenCut(" ab")),
        ("xdeab", [120, 100, 101, 97, 98], WrongMerge(None, Pair((b"d", b"e"), 256, 1))),
        ("xcde", [120, 258, 101], WrongMerge(Pair((b"c", b"d"), 258, 1), Pair((b"d", b"e"), 256, 2))),
    ],
)
def test_divergence_is_located_by_bytes_of_tokens(text: str, answer: Sequence[int], cause: EncodingCause) -> None:
    model = {"merges": [["d", "e"], ["c", "d"]], "merge_ids": [256, 258], "extra": [[257, " ab"]]}
    made = case("encode", model, {"text": text})
    mismatch = judged(made, like(encode=lambda self, text: list(answer), conventions={"lookup": "bytes"}))
    assert mismatch is not None
    assert isinstance(mismatch.divergence, EncodingDivergence)
    assert mismatch.divergence.cause == cause


def test_divergence_of_training_and_decoding_is_located() -> None:
    smaller = judged(TRAIN, undeclared(tie_break="lex-smaller"))
    assert smaller is not None
    assert smaller.divergence == TrainingDivergence(0, (b"o", b"w"), 3, (b"l", b"o"), 3)
    assert (("tie_break", "lex-smaller"),) in smaller.conventions
    decoded = judged(DECODE, like(decode=lambda self, ids: "€?"))
    assert decoded is not None
    assert decoded.divergence == TextDivergence(1, b"\xe2")


def test_undeclared_ids_are_recognized() -> None:
    mismatch = judged(TRAIN_IDS, undeclared(id_layout="specials-bytes-merges"))
    assert mismatch is not None
    assert mismatch.conventions == ((("id_layout", "specials-bytes-merges"),),)


def test_failure_shows_frames_of_the_adapter() -> None:
    mismatch = judged(ENCODE, like(encode=fails))
    assert mismatch is not None
    assert isinstance(mismatch.answer, Refusal)
    assert mismatch.answer.message == "ValueError: the adapter's own"
    assert any(Path(__file__).name in frame and "in fails" in frame for frame in mismatch.answer.traceback)


def test_an_expected_id_may_be_missing_from_the_model() -> None:
    made = case("encode", {"special_tokens": ["<|a|>", "<|b|>"]}, {"text": "<|b|>a"}, {"tokens": [], "ids": [257, 97]})

    class Swapped(Right):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
            super().__init__(vocab, merges, list(reversed(special_tokens or [])), pattern)

    mismatch = judged(made, Swapped)
    assert mismatch is not None
    assert mismatch.divergence == EncodingDivergence(0, 0, WrongId(None, 257, 256))


def test_an_error_that_is_correct_is_raised_again() -> None:
    class Once(Reference):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
            super().__init__({**dict(enumerate(bytes([byte]) for byte in range(256))), **vocab}, merges, special_tokens)
            self.cache: dict[str, list[int]] = {}

        def encode(self, text: str) -> list[int]:  # type: ignore[override]
            if text not in self.cache:
                self.cache[text] = [97]
                raise ValueError("no z")
            return self.cache[text]

    golden = next(case for case in installed_spec().cases if case.id == "error-table-byte")
    assert judged(golden, like(encode=fails)) is None
    mismatch = judged(golden, Once)
    assert mismatch is not None
    assert (mismatch.answer, mismatch.clause_id) == (Ids((97,)), AFTER_ERROR)
    assert mismatch.asked.context == "again, after the same call raised an error"
    assert mismatch.fingerprint not in {fingerprint(mismatch.answer), fingerprint(Ids(()))}


@pytest.mark.parametrize(("text", "clause"), [("", ""), ("\ufffd", "DECODE-BYTES-1")])
def test_incorrect_bytes_of_a_correct_text_break_the_clause_about_bytes(text: str, clause: str) -> None:
    golden = next(case for case in installed_spec().cases if case.id == "decode-utf8-ff")
    mismatch = judged(golden, like(decode=lambda self, ids: text, decode_bytes=lambda self, ids: b""))
    assert mismatch is not None
    assert mismatch.clause_id == clause


class NoDecoder:
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None: ...

    def encode(self, text: str) -> list[int]:
        return []


def test_what_is_not_offered_is_what_the_case_asks() -> None:
    assert skip_reason(DECODE, Implementation("x", NoDecoder)) == "decode"


EVERYTHING = Implementation("x", Whole)
UNASKED = {"new process", "shared memory"}
"""What no golden case needs."""


@pytest.mark.parametrize("lacking", sorted(EVERYTHING.capabilities - {"encode", "decode", "decode_bytes"}))
def test_what_is_lacking_is_why_a_case_is_skipped(lacking: str) -> None:
    """Without one capability, the cases that need it are skipped for it, and no others."""
    less = copy.copy(EVERYTHING)
    less.capabilities = EVERYTHING.capabilities - {lacking}
    of_special = {"special": "special tokens", "train-special": "special tokens in train"}
    reasons = {skip_reason(golden, less) for golden in installed_spec().cases}
    assert reasons == {None, *({of_special.get(lacking, lacking)} - UNASKED)}


def test_files_are_loaded_only_where_the_tokenizer_encodes() -> None:
    less = copy.copy(EVERYTHING)
    less.capabilities = EVERYTHING.capabilities - {"encode"}
    golden = next(golden for golden in installed_spec().cases if golden.operation.name == "load")
    assert skip_reason(golden, less) == "encode"


def test_every_incorrect_entry_is_found() -> None:
    asked, model = Entries(("a", "ab", "ba")), read_model({"merges": [["a", "b"], ["b", "a"]]})
    implementation = Implementation("x", like(encode=lambda self, text: [*text.encode()]))
    setting = Setting(model, implementation.conventions)
    found = judging.compare(Question(asked, model), Expected({"": (asked.computed(setting),)}), setting, implementation)
    assert found is not None
    assert found.asked.operation == Encode("ab")
    assert [other.operation for other in found.others] == [Encode("ba")]


def test_a_case_of_the_only_model_keeps_its_special_tokens() -> None:
    class Fixed:
        model = "gpt2"

        def encode(self, text: str) -> list[int]:
            return []

    golden = next(case for case in installed_spec().cases if case.id == "merge-gpt2-hello")
    assert adapted(golden, Implementation("x", Fixed)) is golden


class RefusesNewTokens(Reference):
    def encode(self, text: str, **chosen: Any) -> Any:
        if "<|e|>" in text:
            raise ValueError(text)
        return super().encode(text, **chosen)

    def encode_batch(self, texts: Any, **chosen: Any) -> Any:
        return [self.encode(text) for text in texts]


@pytest.mark.parametrize("texts", [["ab<|e|>"], ["ab", "<|e|>"], ["<|e|>", "ab"], ["ab", "x", "a<|e|>b"]])
def test_an_absent_special_token_in_any_text_permits_an_error(texts: list[str]) -> None:
    model = {"merges": [["a", "b"]], "special_tokens": ["<|e|>"]}
    rows = [{"tokens": ["ab"], "ids": [256]}] * len(texts)
    expected = {"any_of": [{"error": "special"}, {"batch": rows}]}

    def fails(adapter: Any, batch: list[str]) -> bool:
        return judged(case("batch", model, {"texts": batch}, expected, "SPECIAL-ABSENT-2"), adapter) is not None

    assert not fails(RefusesNewTokens, texts)
    assert fails(like(encode_batch=lambda self, texts: 1 / 0), ["ab"] * len(texts))


def test_only_a_special_token_without_an_entry_permits_an_error() -> None:
    model = {"merges": [["a", "b"]], "special_tokens": ["<|e|>", "<|f|>"], "extra": [[300, "<|e|>"]]}
    expected = {"any_of": [{"error": "special"}, {"tokens": ["ab", "<|e|>"], "ids": [256, 300]}]}
    asked = case("encode", model, {"text": "ab<|e|>"}, expected, "SPECIAL-ABSENT-2")
    assert judged(asked, RefusesNewTokens) is not None


# What is asked, and of whom


class OnlyBytes:
    """Decodes to these bytes, and does nothing else."""

    data = b""

    def __init__(self, *given: Any) -> None:
        pass

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        return self.data


@pytest.mark.parametrize(
    ("text", "data", "is_correct"),
    [
        ("a", b"a", True),
        ("b", b"b", True),
        ("b", b"a", False),
        ("\ufffd", b"\xff", True),
        ("\ufffd", b"\xef\xbf\xbd", False),
    ],
)
def test_a_text_is_asked_of_decode_bytes_as_bytes(text: str, data: bytes, is_correct: bool) -> None:
    ids = [255] if text == "\ufffd" else [97]
    made = case("decode", {}, {"ids": ids}, {"text": text})
    assert (judged(made, like(OnlyBytes, data=data)) is None) == is_correct


def test_a_case_about_special_tokens_fails_even_if_it_should_be_skipped() -> None:
    class Without(Reference):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
            if special_tokens:
                raise NotImplementedError
            super().__init__(vocab, merges, special_tokens, pattern=pattern)

    implementation = Implementation("x", Without)
    assert adapted(ENCODE_SPECIAL, implementation) is None
    assert judge(ENCODE_SPECIAL, implementation) is not None


@pytest.mark.parametrize("rows", [0, 1, 3, 4])
def test_a_batch_has_a_row_for_each_text(rows: int) -> None:
    def encode_batch(self: Any, texts: Sequence[str]) -> list[list[int]]:
        return [[97]] * (rows if len(texts) == 2 else len(texts))

    made = case("batch", {}, {"texts": ["a", "a"]})
    assert judged(made, like(encode_batch=lambda self, texts: [[97]] * len(texts))) is None
    assert judged(made, like(encode_batch=encode_batch)) is not None


def test_what_the_clauses_leave_open_is_correct() -> None:
    opened: Any = SimpleNamespace(correct=lambda expected, setting: None)
    implementation = Implementation("x", Reference)
    setting = Setting(None, implementation.conventions, "MERGE-ORDER-1")
    assert judging.compare(Question(opened), Expected({}), setting, implementation) is None


def test_the_smallest_change_of_conventions_under_which_any_value_fits_is_named() -> None:
    changes = [
        (("lookup", "bytes"),),
        (("lookup", "bytes"), ("tie_break", "first-seen")),
        (("tie_break", "first-seen"),),
    ]
    answers = {"bytes": (1, 2), "pair": (3,)}
    asked: Any = SimpleNamespace(
        other_conventions=lambda conventions: changes,
        correct=lambda expected, setting: answers[setting.conventions["lookup"]],
        accepts=lambda value, answer, setting: value == answer,
    )
    setting = Setting(None, {**DEFAULTS, "pattern": "gpt2"}, "MERGE-ORDER-1")
    for answer, fitting in ((1, changes[:1]), (2, changes[:1]), (3, changes[2:]), (4, [])):
        assert judging._fitting_conventions(asked, lambda _: Expected({}), setting, answer) == tuple(fitting)  # type: ignore[arg-type]


ANY_OF = case(
    "encode", {"merges": [["3", "4"]]}, {"text": "1234"}, {"any_of": [{"ids": [49, 50, 256]}, {"error": "x"}]}
)
TEXTS = case("batch", {}, {"texts": ["a", "b" * 3000]})


def test_a_value_that_is_not_computed_holds_under_every_pattern() -> None:
    for pattern, is_same in (("gpt2", True), ("cl100k", False)):
        conventions = {**DEFAULTS, "pattern": pattern}
        assert judging.under(ANY_OF, conventions) is ANY_OF
        assert (judging.under(ENCODE, conventions) is ENCODE) == is_same
        empty = judging.under(replace(ENCODE, expected=Expected({})), conventions)
        assert empty.expected.alternatives == (Ids((97, 256)),)


@pytest.mark.parametrize(
    ("made", "is_skipped"),
    [
        (ANY_OF, True),
        (case("encode", {"merges": [["3", "4"]]}, {"text": "34"}, {"any_of": [{"ids": [256]}, {"error": "x"}]}), False),
        (ENCODE, False),
        (LAZY, True),
        (TEXTS, True),
        (case("batch", {}, {"texts": ["a", "b" * 2000]}), False),
    ],
)
def test_what_needs_the_split_of_gpt2_is_skipped_under_another(made: Case, is_skipped: bool) -> None:
    implementation = Implementation("x", like(Whole, pattern="cl100k"))
    assert skip_reason(made, implementation) == (OTHER_SPLIT if is_skipped else None)


@pytest.mark.parametrize(
    ("change", "right"),
    [(lambda right: (right,), True), (lambda right: (right, AnyError()), False), (lambda _: (AnyError(),), False)],
)
def test_only_a_training_without_an_error_is_correct_up_to_ties(change: Any, right: bool) -> None:
    setting = Setting(None, DEFAULTS, "TRAIN-TIE-1")
    table = TRAIN.operation.answer(setting)
    wrong = Mismatch(Question(TRAIN.operation), Expectation(change(table)), table)
    assert judging.is_correct_up_to_ties(wrong, "TRAIN-TIE-1", DEFAULTS) == right


def test_a_training_of_a_short_text_is_counted_again_whatever_size_it_asks_for() -> None:
    asked = replace(TRAIN.operation, text="ab ac", vocab_size=10**9)
    right, other = (
        asked.answer(Setting(None, {**DEFAULTS, "tie_break": rule}, "TRAIN-TIE-1"))
        for rule in ("lex-greater", "lex-smaller")
    )
    wrong = Mismatch(Question(asked), Expectation((right,)), other)
    assert judging.is_correct_up_to_ties(wrong, "TRAIN-TIE-1", DEFAULTS) is True
    long = Mismatch(Question(replace(asked, text="ab " * 400_000, vocab_size=258)), Expectation((right,)), other)
    assert judging.is_correct_up_to_ties(long, "TRAIN-TIE-1", DEFAULTS) is None


def test_a_second_call_is_asked_of_the_same_tokenizer() -> None:
    class Spent(Right):
        """After `decode`, `decode_bytes` of the same instance gives nothing."""

        spent = False

        def decode(self, ids: Sequence[int]) -> str:
            text = super().decode(ids)
            self.spent = True
            return text

        def decode_bytes(self, ids: Sequence[int]) -> bytes:
            return b"" if self.spent else super().decode_bytes(ids)

    assert judged(DECODE, Right) is None
    found = judged(DECODE, Spent)
    assert found is not None
    assert found.asked.operation.name == "decode_bytes"
