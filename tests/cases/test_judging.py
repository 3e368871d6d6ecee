from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.golden_cases import case, like, told
from helpers.plugin_adapters import Greedy, Right, TrainOnly

from bpe_conformance.cases.expectations import compute
from bpe_conformance.cases.judging import skip_reason
from bpe_conformance.fixtures import END_OF_TEXT, gpt2_model
from bpe_conformance.fixtures.spec import Case, load_spec
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.reference import Tokenizer as Reference
from bpe_conformance.reference import textbook

LOW = {"train": {"text": "low\nlow\nlower", "vocab_size": 300, "special_tokens": []}}
PRIORITY = {"merges": [["b", "c"], ["a", "b"]]}
LOOKUP = {"merges": [["b", "c"], ["a", "b"], ["ab", "c"]]}
SPECIAL = {"merges": [["a", "b"]], "extra": [[300, "<|e|>"]], "special_tokens": ["<|e|>"]}


def undeclared(**conventions: str) -> Any:
    """Return a trainer that follows conventions without saying so."""
    return like(Right, train=textbook.with_conventions(**conventions).train)


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


ENCODE = case("encode", PRIORITY, {"text": "abc"})
ENCODE_SPECIAL = case("encode", SPECIAL, {"text": "ab<|e|>ab"})
DECODE = case("decode", {}, {"ids": [226, 130, 172, 226]})
TRAIN = case("train", None, LOW, clause="TRAIN-TIE-1")
TRAIN_IDS = case("train", None, {"train": {**LOW["train"], "special_tokens": ["<|e|>"]}}, clause="TRAIN-IDS-2")
CUT = case("stream", {"merges": [["b", "c"], ["'", "l"], ["'l", "l"]]}, {"text": "abc'll", "cut": "everywhere"})
CHARACTERS = case("stream", {"merges": [["b", "c"]]}, {"text": "abc", "cut": "characters"})
LAZY = case("stream", {}, {"repeat_chunks": ["ab cd ", 4000]}, {"lazy": True})
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
        (ENCODE, like(Right, _merge=Greedy._merge)),
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
        (TRAIN, like(train=classmethod(fails))),
        (TRAIN_IDS, undeclared(id_layout="specials-bytes-merges")),
        (CUT, like(encode_iterable=greedy_stream)),
        (CUT, like(encode_iterable=lambda self, chunks: iter(self.encode("".join(chunks)[:-1])))),
        (CUT, like(encode_iterable=fails)),
        (CHARACTERS, like(encode_iterable=greedy_stream)),
        (LAZY, like(encode_iterable=patient_stream)),
        (LAZY, like(encode_iterable=fails)),
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
def test_right_passes_and_wrong_fails(made: Case, wrong: Any) -> None:
    assert told(made, Reference) is None
    difference = told(made, wrong)
    assert difference is not None
    fields = [difference.input, difference.expected, difference.got, difference.diverges, *difference.traceback]
    assert not any("\n" in field for field in fields)
    assert difference.input
    assert difference.expected
    assert difference.got
    assert difference.expected != difference.got


def test_other_answers_to_open_questions() -> None:
    assert told(SURROGATE, like(encode=lambda self, text: list(text.encode("utf-8", "surrogatepass")))) is None
    assert told(SURROGATE, like(encode=fails)) is None
    lossless = case(
        "encode", {"merges": [["a", "b"], ["a", "b"]], "merge_ids": [256, 258]}, {"text": "ab"}, {"lossless": True}
    )
    assert told(lossless, like(encode=lambda self, text: [97, 98])) is None
    assert told(lossless, like(encode=lambda self, text: [258])) is None
    assert told(lossless, like(encode=lambda self, text: [97])) is not None
    either = case("train", None, LOW, {"any_of": [{"merges": []}, {"merges": [["o", "w"]]}]}, "TRAIN-TIE-1")
    for merges in ([], [(b"o", b"w")]):
        vocab = textbook.number(merges)
        assert (
            told(either, like(train=classmethod(lambda cls, *_, merges=merges, vocab=vocab: (vocab, merges)))) is None
        )
    assert told(either, Reference) is not None
    error_or_value = case("train", None, LOW, {"any_of": [{"error": "size"}, compute(TRAIN)]}, "TRAIN-TIE-1")
    assert told(error_or_value, like(train=classmethod(fails))) is None
    assert told(error_or_value, Reference) is None


@pytest.mark.parametrize("tie_break", ["lex-greater", "lex-smaller", "smaller-ids", "first-seen"])
@pytest.mark.parametrize("byte_order", ["raw", "gpt2"])
def test_values_by_convention(tie_break: str, byte_order: str) -> None:
    text = "low\nlow\nlower ÿÿaaÿÿ aa\u00a0\u00a0"
    made = case("train", None, {"train": {"text": text, "vocab_size": 300, "special_tokens": []}}, clause="TRAIN-TIE-1")
    declared = textbook.with_conventions(tie_break=tie_break, byte_order=byte_order)
    assert told(made, declared) is None
    others = {"lex-greater", "lex-smaller", "first-seen"} - {tie_break}
    for other in others:
        assert told(
            made, like(declared, conventions={"tie_break": other, "byte_order": byte_order}, train=declared.train)
        )


def test_lookup_by_convention() -> None:
    made = case("encode", LOOKUP, {"text": "xabc"})
    by_bytes = textbook.with_conventions(lookup="bytes")
    assert told(made, Right) is None
    assert told(made, by_bytes) is None
    undeclared = like(Right, encode=lambda self, text: by_bytes(self.vocab, self.merges).encode(text))
    difference = told(made, undeclared)
    assert difference is not None
    assert difference.got == "120 'x' | 258 'abc'"
    no_ranks = case("encode", {**LOOKUP, "merge_ids": [258, 257, 256]}, {"text": "xabc"})
    assert skip_reason(no_ranks, Implementation("x", by_bytes)) == "tables that are no list of ranks (lookup: bytes)"


def steps(*merges: tuple[bytes, bytes]) -> Any:
    vocab = textbook.number(merges)
    train = classmethod(lambda cls, text, size, special: (vocab, list(merges)))
    return like(TrainOnly, conventions={"tie_break": "unspecified"}, train=train)


@pytest.mark.parametrize("tie_break", ["lex-greater", "lex-smaller", "first-seen"])
def test_any_maximum_is_right_without_a_tie_break(tie_break: str) -> None:
    merges = textbook.learn("low\nlow\nlower", 300, tie_break=tie_break)
    assert told(TRAIN, steps(*merges)) is None


def test_steps_that_are_no_maximum() -> None:
    right = textbook.learn("low\nlow\nlower", 300)
    not_most = told(TRAIN, steps((b"e", b"r"), *right[1:]))
    assert not_most is not None
    assert not_most.expected == "a pair of count 3: (l,o) (o,w)"
    assert not_most.got == "(e,r) with count 1"
    assert not_most.diverges == "at step 1"
    short = told(TRAIN, steps(*right[:-1]))
    assert short is not None
    assert (short.got, short.diverges) == ("the end of training", "at step 4")
    long = told(TRAIN, steps(*right, (b"a", b"b")))
    assert long is not None
    assert (long.expected, long.got) == ("4 merges", "5 merges")


def test_stored_ids_of_real_text() -> None:
    stored = next(one for one in load_spec(check_schema=False).cases if "stored" in one.expect)

    class Fixed(Right):
        model = "gpt2"

        def __init__(self) -> None:
            model = gpt2_model()
            super().__init__(model.vocab, model.merges, [END_OF_TEXT])

    class LosesOne(Fixed):
        def encode(self, text: str) -> list[int]:
            ids = super().encode(text)
            return ids[:-1] if len(ids) > 100 else ids

    assert told(stored, Fixed) is None
    assert told(stored, LosesOne) is not None
    assert skip_reason(ENCODE, Implementation("x", Fixed)) == "other models than its own"


@pytest.mark.parametrize(
    ("made", "answer", "diverges"),
    [
        (ENCODE, [257, 99], "at token 0, byte 0: (a,b) of rank 1 merged before (b,c) of rank 0 at byte 1"),
        (ENCODE, [97, 98, 99], "at token 1, byte 1: (b,c) of rank 0 at byte 1 did not merge"),
        (ENCODE, [97, 999], "at token 1, byte 1: the id 999 is not in the vocabulary"),
        (ENCODE, [97], "at token 1, byte 1: the ids do not spell the text; their bytes differ from byte 1 on"),
        (
            case("encode", {"merges": [["a", " "]]}, {"text": "a b"}),
            [256, 98],
            "crosses the boundary of a pre-token at byte 1",
        ),
        (
            case("encode", {"merges": [["a", "b"]]}, {"text": "x ab"}, clause="SPLIT-DEFAULT-1"),
            [120, 32, 97, 98],
            "at token 2, byte 2: the pre-token ' ab' is cut at byte 3, or (a,b) of rank 0 did not merge there",
        ),
        (case("encode", {"extra": [[300, "a"]]}, {"text": "a"}), [300], "'a' has the id 97, not 300"),
    ],
)
def test_where_it_diverges(made: Case, answer: Sequence[int], diverges: str) -> None:
    difference = told(made, like(encode=lambda self, text: list(answer)))
    assert difference is not None
    assert diverges in difference.diverges


@pytest.mark.parametrize(
    ("text", "answer", "diverges"),
    [
        (" ab", [32, 97, 98], "at token 0, byte 0: the pre-token ' ab' is a token, and emitted whole (lookup: bytes"),
        ("xdeab", [120, 100, 101, 97, 98], "at token 1, byte 1: (d,e) of rank 256 at byte 1 did not merge"),
        ("xcde", [120, 258, 101], "at token 1, byte 1: (c,d) of rank 258 merged before (d,e) of rank 256 at byte 2"),
    ],
)
def test_where_it_diverges_by_the_bytes_of_tokens(text: str, answer: Sequence[int], diverges: str) -> None:
    model = {"merges": [["d", "e"], ["c", "d"]], "merge_ids": [256, 258], "extra": [[257, " ab"]]}
    made = case("encode", model, {"text": text})
    difference = told(made, like(encode=lambda self, text: list(answer), conventions={"lookup": "bytes"}))
    assert difference is not None
    assert difference.diverges.startswith(diverges)


def test_where_training_and_decoding_diverge() -> None:
    smaller = told(TRAIN, undeclared(tie_break="lex-smaller"))
    assert smaller is not None
    assert smaller.diverges == "at step 1: (l,o) with count 3 was chosen, (o,w) with count 3 is right, a tie"
    decoded = told(DECODE, like(decode=lambda self, ids: "€?"))
    assert decoded is not None
    assert decoded.diverges == r"at character 1, from the bytes e2: '?' instead of '\ufffd'"


def test_the_adapters_own_frames_are_shown() -> None:
    difference = told(ENCODE, like(encode=fails))
    assert difference is not None
    assert difference.got == "encode(...) raised ValueError: the adapter's own"
    here = Path(__file__).name  # pytest imports it from its folder, which is not told
    assert any(frame.startswith(f"{here}:") and "in fails" in frame for frame in difference.traceback)


def test_a_new_id_of_a_special_token_is_told() -> None:
    """An expected id that the model does not hold is no reason to fail inside the suite."""
    made = case("encode", {"special_tokens": ["<|a|>", "<|b|>"]}, {"text": "<|b|>a"}, {"tokens": [], "ids": [257, 97]})

    class Swapped(Right):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
            super().__init__(vocab, merges, list(reversed(special_tokens or [])), pattern)

    difference = told(made, Swapped)
    assert difference is not None
    assert "the id 257 is right, not 256" in difference.diverges
