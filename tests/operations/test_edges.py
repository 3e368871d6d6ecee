"""Operations accept and compare answers of every type, and say where they differ only where both have positions."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, pairwise, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bpe_conformance.answer import (
    MALFORMED,
    Answer,
    Answers,
    AnyError,
    AtMost,
    ByteDivergence,
    Bytes,
    CrossesBoundary,
    EncodingDivergence,
    EntryDivergence,
    Fault,
    HighestCount,
    Ids,
    Lossless,
    Measure,
    NotAResult,
    Offsets,
    Pair,
    Refusal,
    RowDivergence,
    Rows,
    SpanDivergence,
    SpecialToken,
    Table,
    Text,
    TextDivergence,
    TrainingDivergence,
    UnknownId,
    VocabDivergence,
    WholeTokenCut,
    WrongMerge,
)
from bpe_conformance.fixtures import conventions, read_model
from bpe_conformance.fixtures.conventions import DEFAULTS
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Pipeline
from bpe_conformance.implementation.proxy import Raised, TokenizerProxy
from bpe_conformance.operations import (
    Batch,
    DecodeBytes,
    Detokenize,
    Encode,
    EncodeWithOffsets,
    Entries,
    Expected,
    Save,
    Setting,
    Stream,
    Train,
    divergence,
)
from bpe_conformance.operations.detokenize import Waiting
from bpe_conformance.operations.divergence import ends_of_characters
from bpe_conformance.operations.encode import _has_new_ids
from bpe_conformance.operations.setting import pieces
from bpe_conformance.operations.stream import HELD_BACK, Laziness

MODEL = read_model({"merges": [["a", "b"]], "extra": [[300, "<e>"]], "special_tokens": ["<e>", "<f>"]})
CONVENTIONS = {**DEFAULTS, "pattern": "gpt2"}
SETTING = Setting(MODEL, CONVENTIONS, "MERGE-ORDER-1")
ERROR = Refusal("ValueError", "no")
TABLE = Table(dict(MODEL.vocab), MODEL.merges)


@pytest.mark.parametrize(
    ("operation", "right"),
    [
        (Batch(("ab", "a")), Rows(((256,), (97,)))),
        (EncodeWithOffsets("ab"), Offsets((256,), ((0, 2),))),
        (Save(), TABLE),
        (Train("ab ab", 257, ()), Table({**{byte: bytes([byte]) for byte in range(256)}, 256: b"ab"}, ((b"a", b"b"),))),
        (Entries(("ab", "a")), Rows(((256,), (97,)))),
    ],
)
def test_an_error_is_no_answer_and_has_no_position(operation: Any, right: Any) -> None:
    setting = replace(SETTING, model=None) if isinstance(operation, Train) else SETTING
    assert not operation.accepts(right, ERROR, setting)
    assert not operation.accepts(AnyError(), right, setting)
    if not isinstance(operation, Entries):  # of which a pack stores ids only
        assert operation.accepts(AnyError(), ERROR, setting)
        assert operation.divergence((right,), ERROR, setting) is None
        assert operation.divergence((AnyError(),), right, setting) is None
    assert operation.narrowed((right,), ERROR)[0].answer == ERROR
    given = Answers((Ids((256,)), Ids((97,)))) if isinstance(operation, Entries) else right
    assert operation.accepts(right, given, setting)


@pytest.mark.parametrize(
    ("operation", "right", "wrong", "where"),
    [
        (Batch(("a", "ab")), Rows(((97,), (97, 98))), Rows(((97,), (97, 99))), RowDivergence(1, 1)),
        (Batch(("a", "ab")), Rows(((97,), (256,))), Rows(((97,),)), RowDivergence(1, 0)),
        (DecodeBytes((97, 98)), Bytes(b"ab"), Bytes(b"ac"), ByteDivergence(1)),
        (None, Offsets((256,), ((0, 2),)), Offsets((256,), ((0, 1),)), SpanDivergence(0)),
        (None, Offsets((256, 97), ((0, 2), (2, 3))), Offsets((256, 98), ((0, 2), (2, 3))), EncodingDivergence(1, 2)),
        (None, Ids((256, 97)), Ids((256, 98)), EncodingDivergence(1, 2)),
        (None, Text("ab"), Text("ac"), TextDivergence(1)),
        (None, Text("ab"), Bytes(b"ab"), None),
    ],
)
def test_two_answers_of_one_type_differ_at_a_position(operation: Any, right: Any, wrong: Any, where: Any) -> None:
    """Long answers (None) have no cause."""
    if operation is not None:
        assert operation.divergence((right,), wrong, SETTING) == where
    if not isinstance(where, RowDivergence) or operation is None:
        assert divergence.position(MODEL, right, wrong) == where


def test_a_token_across_a_boundary_is_named_before_a_pre_token_that_is_cut() -> None:
    model = read_model({"merges": [["b", " "], ["c", "d"]]})
    where = divergence.encoding(Setting(model, CONVENTIONS, "SPLIT-SPACE-1"), "b cd", (98, 32, 257), (256, 99, 100))
    assert where.cause == CrossesBoundary(b"b ", 1)


def test_a_token_across_a_boundary_is_named_if_it_is_not_the_first_that_differs() -> None:
    setting = Setting(read_model({"merges": [["b", " "], ["a", "b"]]}), CONVENTIONS, "SPLIT-SPACE-1")
    assert divergence.encoding(setting, "ab c", (257, 32, 99), (97, 256, 99)).cause == CrossesBoundary(b"b ", 2)
    later = divergence.encoding(setting, "abb c", (257, 98, 32, 99), (97, 98, 256, 99))
    assert not isinstance(later.cause, CrossesBoundary)  # the first token that differs ends before


def test_an_added_token_across_a_boundary_is_named_unless_a_merge_gives_it() -> None:
    pipeline = {"added_tokens": [{"content": "bc"}, {"content": "abcd", "normalized": True}]}
    for merges, cause in (
        ([], SpecialToken(b"abcd", missed=False, of_pipeline=True)),
        ([["b", "c"], ["a", "bc"], ["abc", "d"]], CrossesBoundary(b"abcd", 1)),
    ):
        model = read_model({"merges": merges, "pipeline": pipeline})
        right, wrong = ((97, model.ids[b"bc"], 100), (model.ids[b"abcd"],))
        where = divergence.encoding(Setting(model, CONVENTIONS, "PIPELINE-ORDER-1"), "abcd", right, wrong)
        assert where.cause == cause


def test_an_entry_across_a_boundary_that_no_merge_makes_is_not_merged() -> None:
    made = read_model({"merges": [["b", "c"]]})
    model = replace(made, vocab={**made.vocab, 257: b"a b"})
    where = divergence.encoding(Setting(model, CONVENTIONS, "SPECIAL-OFF-1"), "a b", (97, 32, 98), (257,))
    assert where.cause == NotAResult(b"a b")


@pytest.mark.parametrize(
    ("merges", "expected", "got", "cause"),
    [
        ([["a", "b"]], (256, 99), (97, 999), UnknownId(999)),
        ([["a", "b"], ["b", "c"]], (256, 99), (97, 257), WrongMerge(None, Pair((b"a", b"b"), 0, 0))),
        ([["a", "b"], ["ab", "c"]], (257,), (256, 99), WrongMerge(None, Pair((b"ab", b"c"), 1, 0))),
        (
            [["b", "c"], ["a", "b"]],
            (97, 256),
            (257, 99),
            WrongMerge(Pair((b"a", b"b"), 1, 0), Pair((b"b", b"c"), 0, 1)),
        ),
    ],
)
def test_an_id_without_an_entry_is_named_first_and_a_merge_as_too_early_only_if_its_rank_is_higher(
    merges: Any, expected: Any, got: Any, cause: Any
) -> None:
    setting = Setting(read_model({"merges": merges}), CONVENTIONS, "MERGE-ORDER-1")
    assert divergence.encoding(setting, "abc", expected, got).cause == cause


def test_a_pair_inside_a_special_token_is_no_merge_that_an_encoder_missed() -> None:
    made = read_model({"merges": [["<", "|"]], "extra": [[300, "<|>"], [301, "ab"]], "special_tokens": ["<|>"]})
    setting = Setting(made, CONVENTIONS, "SPECIAL-ATOMIC-1")
    got = (301, *b"<|>")
    assert divergence.encoding(setting, "ab<|>", setting.oracle.encode("ab<|>"), got).cause == NotAResult(b"ab")
    as_text = Setting(replace(made, special_tokens=None), CONVENTIONS, "MERGE-ORDER-1")
    missed = divergence.encoding(as_text, "ab<|>", as_text.oracle.encode("ab<|>"), got).cause
    assert missed == WrongMerge(None, Pair((b"<", b"|"), 0, 2))


@pytest.mark.parametrize("lookup", conventions.CONVENTIONS["lookup"])
def test_an_entry_that_is_divided_is_named_under_each_lookup_that_keeps_it(lookup: str) -> None:
    model = read_model({"merges": [["a", "b"]], "extra": [[300, "abc"]]})
    setting = Setting(model, {**CONVENTIONS, "lookup": lookup}, "MERGE-ORDER-1")
    right = setting.oracle.encode("abc x")
    where = divergence.encoding(setting, "abc x", right, [97, 98, 99, *b" x"])
    assert (where.cause == WholeTokenCut("abc", lookup)) == (right[0] == 300) == (lookup != "pair")


def test_a_special_token_is_a_piece_of_its_own() -> None:
    steps = Pipeline(added_tokens=(AddedToken("<e>"),), steps=(ByteLevel(),))
    for model in (replace(MODEL, special_tokens=("<e>",)), replace(MODEL, pipeline=steps)):
        assert pieces(model, "ab<e>a") == [(b"ab", False), (b"<e>", True), (b"a", False)]


def test_a_new_id_stands_for_a_special_token_only() -> None:
    """A tokenizer that decodes an id of its own to ordinary text does not encode the text with the model."""
    texts = {900: "<f>", 901: "ab"}
    receiver: Any = SimpleNamespace(decode=lambda ids: texts[ids[0]])
    for text, ids, accepted in (("a<f>", (97, 900), True), ("ab", (901,), False), ("ab", (97, 98), True)):
        assert Encode(text).accepts(Lossless(), Ids(ids), SETTING, receiver) is accepted


SPELLED = EncodeWithOffsets("ab<e>a")
RIGHT = SPELLED.computed(SETTING)


@pytest.mark.parametrize(
    ("answer", "where"),
    [
        (Offsets((256, 300, 97), ((0, 2), (2, 5), (5, 6))), None),
        (Offsets((256, 300, 97), ((0, 2), (2, 5), (5, 7))), SpanDivergence(2)),
        (Offsets((256, 300, 97), ((0, 1), (2, 5), (5, 6))), SpanDivergence(0)),
        (Offsets((97, 98, 300, 97), ((0, 1), (1, 2), (2, 5), (5, 6))), "ids"),
    ],
)
def test_spans_are_compared_where_the_tokens_spell_the_text(answer: Offsets, where: Any) -> None:
    assert isinstance(RIGHT, Offsets)
    assert SPELLED.accepts(RIGHT, answer, SETTING) == (where is None)
    if where is not None:
        found = SPELLED.divergence((AnyError(), RIGHT), answer, SETTING)
        assert found == where or (where == "ids" and not isinstance(found, SpanDivergence))


def test_offsets_repeat_encode_if_their_ids_are_equal() -> None:
    for answer, encoded, repeats in (
        (RIGHT, [Ids((256, 300, 97))], True),
        (RIGHT, [Ids((256, 300))], False),
        (RIGHT, [ERROR], False),
        (RIGHT, [], False),
        (ERROR, [ERROR], False),
    ):
        assert SPELLED.repeats(answer, encoded) == repeats  # type: ignore[arg-type]


def test_a_batch_repeats_encode_if_each_row_has_its_ids_and_a_text_with_an_error_has_none() -> None:
    rows: list[Answer] = [Ids((256,)), ERROR, Ids((97, 98))]
    right = {0: (256,), 1: (), 2: (97, 98)}
    for chosen in product(range(3), repeat=2):
        encoded = [rows[at] for at in chosen]
        for given in chain.from_iterable(product(right.values(), repeat=size) for size in range(3)):
            assert Batch(("x", "y")).repeats(Rows(given), encoded) == (given == tuple(right[at] for at in chosen))


@pytest.mark.parametrize(
    ("ids", "are_right"),
    [
        ((300, 301), True),
        ((300, 999), True),
        ((300, 0), False),
        ((300, -1), False),
        ((300, 97), False),
        ((301, 302), False),
        ((300,), False),
        ((300, 301, 302), False),
    ],
)
def test_a_token_without_an_entry_has_an_id_of_its_own(ids: tuple[int, ...], are_right: bool) -> None:
    assert _has_new_ids((b"<e>", b"<f>"), MODEL, ids) == are_right


def test_a_new_id_belongs_to_one_token() -> None:
    for ids, are_right in (
        ((301, 302, 301), True),
        ((301, 301, 301), False),
        ((301, 302, 302), False),
        ((301, 302, 303), False),
    ):
        assert _has_new_ids((b"<f>", b"<g>", b"<f>"), MODEL, ids) == are_right


@pytest.mark.parametrize(
    ("vocab", "merges", "where"),
    [
        ({**MODEL.vocab, 301: b"<f>"}, MODEL.merges, None),  # a special token has an id now
        ({**MODEL.vocab, 301: b"<g>"}, MODEL.merges, EntryDivergence(301, None, b"<g>")),
        ({**MODEL.vocab, 97: b"x"}, MODEL.merges, EntryDivergence(97, b"a", b"x")),
        (
            {index: token for index, token in MODEL.vocab.items() if index != 97},
            MODEL.merges,
            EntryDivergence(97, b"a", None),
        ),
        (MODEL.vocab, (), TrainingDivergence(0, (b"a", b"b"), 0, None, 0)),
        (MODEL.vocab, ((b"c", b"d"),), TrainingDivergence(0, (b"a", b"b"), 0, (b"c", b"d"), 0)),
        (MODEL.vocab, (*MODEL.merges, (b"c", b"d")), TrainingDivergence(1, None, 0, (b"c", b"d"), 0)),
    ],
)
def test_saved_files_hold_the_table_and_may_hold_special_tokens(vocab: Any, merges: Any, where: Any) -> None:
    saved = Table(dict(vocab), tuple(merges))
    assert Save().accepts(TABLE, saved, SETTING) == (where is None)
    assert Save().divergence((TABLE,), saved, SETTING) == where


@pytest.mark.parametrize(
    ("vocab", "merges", "said"),
    [
        (b"[]", b"", "vocab.json: expected an object of spelled tokens and ids"),
        (b'{"a": 0}', b"a b c\n", "merges.txt:1: 'a b c' is not two spellings with a space between"),
        (b'{"a": 0}', b"\xff\n", "merges.txt is not UTF-8"),
        (b'{"a": 0}', None, "save did not write merges.txt into its directory"),
    ],
)
def test_saved_files_that_nobody_can_read_are_a_malformed_answer(vocab: bytes, merges: bytes | None, said: str) -> None:
    def save(folder: Path) -> None:
        (folder / "vocab.json").write_bytes(vocab)
        if merges is not None:
            (folder / "merges.txt").write_bytes(merges)

    receiver: Any = SimpleNamespace(save=save)
    assert Save().of(receiver) == Fault(MALFORMED, said)


def test_any_training_of_the_highest_counts_is_right_only_if_ties_are_open() -> None:
    training = Train("ab ab", 257, ())
    for tie_break, kind in (("lex-greater", Table), ("unspecified", HighestCount)):
        setting = Setting(None, {**CONVENTIONS, "tie_break": tie_break}, "TRAIN-TIE-1")
        assert isinstance(training.answer(setting), kind)
        stored = training.compute(None, "TRAIN-TIE-1")
        assert [type(one) for one in training.correct(stored, setting) or ()] == [kind]
        missing = training.correct(Expected({}), setting)
        assert missing == ((HighestCount(training.most_merges),) if kind is HighestCount else None)


def test_a_merge_after_the_last_pair_has_no_count_to_be_highest() -> None:
    ab: tuple[bytes, bytes] = (b"a", b"b")
    for merges, found in (
        ([ab], None),
        ([ab, (b"q", b"q")], TrainingDivergence(1, None, 0, (b"q", b"q"), 0)),
        ([(b"q", b"q")], TrainingDivergence(0, ab, 1, (b"q", b"q"), 0)),
        ([], TrainingDivergence(0, ab, 1, None, 0)),
    ):
        assert divergence.highest_counts([ab], 3, merges) == found


def test_an_expected_value_is_by_convention_if_it_names_some() -> None:
    for values, by_convention in (({}, False), ({"": (1,)}, False), ({"pair": (1,), "bytes": (2,)}, True)):
        assert Expected(values).by_convention == by_convention  # type: ignore[arg-type]


def test_the_clause_says_how_exactly_entries_are_compared() -> None:
    right, moved = {0: b"a", 1: b"b"}, {0: b"b", 1: b"a"}
    twice, more = {**right, 2: b"a"}, {**right, 2: b"c"}
    for clause, moved_at, twice_at in (
        ("TRAIN-IDS-1", None, VocabDivergence((), (b"a",))),
        ("TRAIN-IDS-2", EntryDivergence(0, b"a", b"b"), EntryDivergence(2, None, b"a")),
        ("TRAIN-COUNT-1", None, None),
    ):
        assert divergence.entries(right, right, clause) is None
        assert divergence.entries(right, moved, clause) == moved_at
        assert divergence.entries(right, twice, clause) == twice_at
        for left, found in ((right, more), (more, right)):
            assert divergence.entries(left, found, clause) is not None


def test_a_token_that_is_not_allowed_begins_at_its_byte() -> None:
    found = divergence.chosen_token(MODEL, (256, 97, 300), ("<f>",))
    assert found == EncodingDivergence(2, 3, SpecialToken(b"<e>", missed=False, allowed=False))
    assert divergence.chosen_token(MODEL, (256, 97, 300), ("<e>",)) is None


@pytest.mark.parametrize("deltas", [[], ["", ""], ["", "\u00e9"]])
def test_what_comes_late_is_counted_in_characters(deltas: list[str]) -> None:
    class AtTheEnd:
        def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
            yield from deltas[:1]
            list(ids)
            yield from deltas[1:]

    ids = tuple("\u00e9\u65e5a".encode()) * 4
    assert Waiting(ids, "early").of((TokenizerProxy(AtTheEnd()), MODEL)) == Measure(12, "id")
    ids = tuple("\ufffda".encode()) * 4  # that a stream which ends in U+FFFD waits is for DETOK-HELD-1
    assert Waiting(ids, "early").of((TokenizerProxy(AtTheEnd()), MODEL)) == Measure(4, "id")


def test_the_bytes_of_an_incomplete_character_do_not_wait() -> None:
    class AtOnce:
        def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
            decoder = codecs.getincrementaldecoder("utf-8")()
            yield from (decoder.decode(bytes([index])) for index in ids)

    ids = tuple("a\u00e9\u65e5\U0001f98a.".encode())
    for rule, most in (("prompt", 0), ("held", 3)):
        assert Waiting(ids, rule).of((TokenizerProxy(AtOnce()), MODEL)) == Measure(most, "byte")


@pytest.mark.parametrize(("expected", "got"), [([97], [97, 300]), ([97, 300], [97])])
def test_an_empty_token_at_the_end_has_no_cause(expected: list[int], got: list[int]) -> None:
    setting = Setting(replace(MODEL, vocab={**MODEL.vocab, 300: b""}), CONVENTIONS, "SPLIT-SPACE-1")
    assert divergence.encoding(setting, "a", expected, got).cause is None


def test_an_end_is_that_of_a_well_formed_character_if_it_is_utf_8_alone() -> None:
    for parts in product((b"", b"a", b"\xc3\xa9", b"\xff", b"\xe2\x82", b"\xf0\x9f\xa6\x8a"), repeat=3):
        data = b"".join(parts)
        ends, well_formed = ends_of_characters(data)
        characters = [data[start:end].decode("utf-8", "replace") for start, end in pairwise(ends)]
        assert characters == [*data.decode("utf-8", "replace")]
        assert well_formed == {end for end, char in zip(ends[1:], characters, strict=True) if char != "\ufffd"}


def test_what_is_streamed_has_no_length() -> None:
    class Measures:
        def encode_iterable(self, chunks: Any) -> Iterator[int]:
            yield len(chunks)

        def decode_iterable(self, ids: Any) -> Iterator[str]:
            yield str(len(ids))

    for operation in (Stream(("a", "b")), Detokenize((97, 98))):
        with pytest.raises(Raised, match="has no len"):
            operation.of(TokenizerProxy(Measures()))


def test_a_value_is_computed_if_every_alternative_of_every_key_is() -> None:
    ids, rule = Ids((1,)), AnyError("table")
    for values, is_computed in (
        ({"": (ids,)}, True),
        ({"": (AnyError("disallowed"),)}, True),
        ({"": (rule,)}, False),
        ({"": (ids, ids)}, False),
        ({"pair": (ids,), "bytes": (rule,)}, False),
    ):
        assert Expected(values).is_computed is is_computed  # type: ignore[arg-type]


def test_a_value_for_one_convention_is_written_with_its_name() -> None:
    raw = {"by_convention": {"pair": {"ids": [1]}}}
    assert Expected.read(raw).write(Batch(()), with_tokens=False) == raw


def test_a_stream_may_hold_back_the_longest_chunk_piece_and_special_token() -> None:
    def most(*chunks: str, special: tuple[str, ...] | None = None) -> int:
        setting = replace(SETTING, model=replace(MODEL, special_tokens=special))
        (right,) = Laziness(chunks).correct(Expected(), setting)
        assert isinstance(right, AtMost)
        return right.amount - HELD_BACK

    assert most("ab", "c") == 2 + 3
    assert most("a b", "c d") == 3 + 3  # the pre-token ` bc`
    assert most("ab", "c", special=("<|e|>", "<e>")) == 2 + 3 + 5
