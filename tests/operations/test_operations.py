"""An operation is a value: it is read and written without loss, and the oracle's answers are those that are stored."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.golden_cases import case, like

from bpe_conformance.adapters.bridge import wire
from bpe_conformance.answer import AnyError, Ids, Measure, Offsets, Refusal, Table, Text, TrainingDivergence
from bpe_conformance.cases.judging import compare
from bpe_conformance.fixtures import read_model, read_text
from bpe_conformance.fixtures.characters import has_surrogate
from bpe_conformance.fixtures.conventions import CONVENTIONS, DEFAULTS
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.operations import (
    CLASSES,
    IN_YAML,
    OPERATIONS,
    Decode,
    DecodeBytes,
    Encode,
    EncodeWithOffsets,
    Expected,
    Laziness,
    Load,
    Operation,
    Question,
    Setting,
    Stream,
    StreamCutEverywhere,
    Train,
    Waiting,
)
from bpe_conformance.reference import Tokenizer
from bpe_conformance.spec import FOLDER, Case, installed_spec

CASES = installed_spec().cases
MODEL = read_model({"merges": [["b", "c"], ["a", "b"]]})


@pytest.mark.parametrize("kind", IN_YAML, ids=lambda kind: kind.name)
def test_reading_inverts_writing(kind: type[Operation]) -> None:
    mine = [one for one in CASES if one.operation.name == kind.name]
    assert mine
    for one in mine:
        operation = one.operation
        again = kind.read(operation.write()).expecting(one.expected)
        assert again == operation
        assert hash(again) == hash(operation)
        assert Expected.read(one.expected.write(operation, one.model)) == one.expected


def spelled(value: Any) -> Any:
    """Return what YAML spells, with each text in full."""
    if isinstance(value, list):
        return [spelled(one) for one in value]
    if not isinstance(value, dict):
        return value
    if {*value} & {"repeat", "concat", "code_points", "file"}:
        return read_text(value)
    return {name: spelled(one) for name, one in value.items()}


def test_writing_gives_what_is_stored() -> None:
    """A field that is read as something else, or dropped, would be written so, too."""
    stored = [one for one in CASES if {"repeat_chunks"}.isdisjoint(one.raw["input"])]
    for one in stored:
        if one.raw["input"].get("cut") != "characters":
            assert one.operation.write() == spelled(one.raw["input"]), one.id
    assert {type(one.operation.sequence) for one in stored if isinstance(one.operation, Decode)} == {list, tuple}


def test_an_export_has_every_argument() -> None:
    written = {
        "train": ("text", "vocab_size", "special_tokens", "pattern"),
        "stream": ("text", "chunkings"),
        "load": ("text", "files"),
    }
    for one in CASES[::3]:
        operation, exported = one.operation, one.operation.exported(one.model)
        if one.operation.name in written:
            assert {*written[operation.name]} == {*exported}
        else:
            assert {*operation.write()} - {"sequence"} == {*exported}
        assert json.loads(json.dumps(exported)) == exported
        for name, value in operation.write().items():
            if name in ("text", "ids", "texts") and not has_surrogate(str(value)):
                assert exported[name] == value
        if operation.name == "stream" and isinstance(exported["text"], str):  # without surrogates
            assert {"".join(chunks) for chunks in exported["chunkings"]} == {exported["text"]}


def test_the_files_of_an_export_are_those_that_are_loaded() -> None:
    reads: Any = SimpleNamespace(from_files=lambda *paths: {file.name: file.read_bytes() for file in paths[:2]})
    options = set()
    for one in (one for one in CASES if isinstance(one.operation, Load) and one.model and not one.model.is_large):
        files = one.operation.exported(one.model)["files"]
        with one.operation.receiver(reads, one.model) as loaded:
            assert {name: text.encode("utf-8") for name, text in files.items()} == loaded, one.id
        options.update(dict(one.operation.options))
    assert len(options) > 3


def test_the_oracle_computes_what_is_stored() -> None:
    computed = [one for one in CASES if one.expected.is_computed and (one.model is None or not one.model.is_large)]
    for one in computed[::7]:
        assert one.operation.compute(one.model, one.clause.id) == one.expected, one.id
        raw = one.raw["expect"]
        assert one.expected.write(one.operation, one.model) == raw, one.id


def test_every_operation_has_a_class_and_its_needs() -> None:
    assert {*OPERATIONS} == {kind.name for kind in IN_YAML} | {"decode_bytes", "entries"}
    assert {kind.conformance_class for kind in OPERATIONS.values()} | {"pipeline"} == {*CLASSES}
    assert all(kind.needs for kind in OPERATIONS.values())


def test_every_operation_is_in_the_schemas_of_cases() -> None:
    for name, path in (
        ("cases", ("properties", "cases", "items", "properties", "op")),
        ("export", ("$defs", "case", "properties", "op")),
    ):
        schema: Any = json.loads((FOLDER / "schemas" / f"{name}.schema.json").read_text("utf-8"))
        for key in path:
            schema = schema[key]
        assert {*schema["enum"]} == {kind.name for kind in IN_YAML}, name


def test_every_operation_has_a_probe_and_a_request_of_the_bridge() -> None:
    """Without them, the cases of the operation would be skipped for every implementation."""

    class HasEveryMethod(Tokenizer):
        def __getattr__(self, name: str) -> Any:
            return lambda *_: []

    needs = {kind.needs[0] for kind in OPERATIONS.values()}
    assert needs <= Implementation("x", HasEveryMethod).capabilities
    requests = {*wire.METHODS, *wire.MAKERS, *(part.capability for part in wire.OPERATIONS.values())}
    assert needs <= requests
    schema = json.loads(files("bpe_conformance.adapters").joinpath("protocol.schema.json").read_text("utf-8"))
    assert needs <= {*schema["$defs"]["startResult"]["properties"]["capabilities"]["items"]["enum"]}


def test_a_stream_cut_everywhere_is_one_stream_for_each_cut() -> None:
    parts = Stream.read({"text": "abc", "cut": "everywhere"}).parts()
    assert parts == [Stream(("", "abc")), Stream(("a", "bc")), Stream(("ab", "c")), Stream(("abc", ""))]
    assert Stream.read({"text": "abc", "cut": "characters"}) == Stream(("a", "b", "c"))
    assert Stream.read({"repeat_chunks": ["ab", 3]}) == Stream(("ab", "ab", "ab"))
    assert isinstance(Stream.read({"text": "", "cut": "everywhere"}), StreamCutEverywhere)


def test_laziness_is_measured() -> None:
    asked = Question(Laziness(("ab " * 10_000,) * 3), MODEL)
    setting, expected = Setting(MODEL), Expected({"": ()})
    assert compare(asked, expected, setting, Implementation("x", Tokenizer)) is None
    hoards = like(encode_iterable=lambda self, chunks: iter(self.encode("".join(chunks))))
    mismatch = compare(asked, expected, setting, Implementation("x", hoards))
    assert mismatch is not None
    assert mismatch.answer == Measure(90_000)


@pytest.mark.parametrize(
    ("rule", "data", "passes"),
    [
        ("held", b"\x80" * 3, True),
        ("held", b"\x80" * 4, False),
        ("held", b"a\x80\x80\x80\x80a", False),
        ("prompt", b"\x80", True),  # no character ends
        ("prompt", b"a", False),
        ("early", b"a" * 256, True),
        ("early", b"a" * 257, False),
    ],
)
def test_a_detokenizer_that_waits_for_the_end_passes_only_where_little_comes_before_it(
    rule: str, data: bytes, passes: bool
) -> None:
    waits = like(decode_iterable=lambda self, ids: iter([self.decode([*ids])]))
    asked, expected = Question(Waiting(tuple(data), rule), read_model({})), Expected({"": ()})
    assert (compare(asked, expected, Setting(asked.model), Implementation("x", waits)) is None) is passes


def test_bytes_are_asked_after_a_correct_text_and_after_a_correct_error() -> None:
    asked: list[Any] = []

    class Records(Tokenizer):
        def decode_bytes(self, ids: Any) -> bytes:
            asked.append(list(ids))
            return super().decode_bytes(ids)

    implementation = Implementation("x", Records)
    for alternatives, ids, count in (
        ((Text("a"),), (97,), 2),  # the reference's own `decode` calls `decode_bytes`, too
        ((AnyError("unknown-id"),), (999,), 3),  # after an error, `decode` is called again
        ((AnyError("unknown-id"), Text("")), (999,), 2),  # where both are correct, the bytes are open
    ):
        asked.clear()
        question = Question(Decode(ids), MODEL)
        assert compare(question, Expected({"": alternatives}), Setting(MODEL), implementation) is None
        assert len(asked) == count

    class RaisesInTextOnly(Tokenizer):
        def decode(self, ids: Any, errors: str = "replace") -> str:
            raise ValueError

        def decode_bytes(self, ids: Any) -> bytes:
            return b""

    wrong = Implementation("x", RaisesInTextOnly)
    mismatch = compare(
        Question(Decode((999,)), MODEL), Expected({"": (AnyError("unknown-id"),)}), Setting(MODEL), wrong
    )
    assert mismatch is not None
    assert mismatch.asked.operation == DecodeBytes((999,))
    assert mismatch.expected.alternatives == (AnyError("unknown-id"),)


def test_the_bytes_are_those_of_the_text_that_was_given_where_several_are_correct() -> None:
    class LeavesOut(Tokenizer):
        """Leaves out what is not UTF-8, which `expected` permits."""

        def decode(self, ids: Any, errors: str = "ignore") -> str:
            return super().decode_bytes(ids).decode("utf-8", errors)

        def decode_bytes(self, ids: Any) -> bytes:
            return self.decode(ids).encode()

    class KeepsThemInBytes(LeavesOut):
        def decode_bytes(self, ids: Any) -> bytes:
            return Tokenizer.decode_bytes(self, ids)

    expected = Expected({"": (Text("a\ufffd"), Text("a"))})
    for target, passes in ((Tokenizer, True), (LeavesOut, True), (KeepsThemInBytes, False)):
        question = Question(Decode((97, 0xFF)), read_model({}))
        mismatch = compare(question, expected, Setting(question.model), Implementation("x", target))
        assert (mismatch is None) is passes


@pytest.mark.parametrize(("clause", "passes"), [("", True), ("TRAIN-IDS-1", False), ("TRAIN-IDS-2", False)])
def test_a_clause_about_ids_rejects_a_token_with_two(clause: str, passes: bool) -> None:
    training, setting = Train("ab ab", 257), Setting(None, clause=clause)
    right = training.answer(setting)
    assert training.accepts(right, right, setting)
    assert training.accepts(right, replace(right, vocab={**right.vocab, 300: b"ab"}), setting) is passes


def test_ties_that_are_open_accept_any_pair_of_the_highest_count_and_only_the_entries_of_the_merges() -> None:
    training = Train("ab ab cd cd<e>", 258, ("<e>",))
    setting = Setting(None, {**DEFAULTS, "tie_break": "unspecified"})
    right = training.answer(setting)
    ab, cd = (b"a", b"b"), (b"c", b"d")
    for merges, accepted in (((ab,), True), ((cd,), True), ((), False), ((ab, cd), False), (((b"b", b" "),), False)):
        answer = Table(training.vocab(merges), merges)
        assert training.accepts(right, answer, setting) is accepted, merges
        assert not training.accepts(right, replace(answer, vocab={**answer.vocab, 300: b"zz"}), setting)
    assert training.accepts(right, training.of(Implementation("x", Tokenizer)), setting)
    empty, ignored = Train("ab", 257, ("",)), Train("ab", 257)  # to ignore an empty special token is correct
    assert empty.accepts(empty.answer(setting), ignored.of(Implementation("x", Tokenizer)), setting)


def test_a_training_is_compared_under_every_other_convention_that_decides_its_answer() -> None:
    training = Train("ab ab cd cd", 257)
    changes = [*map(dict, training.other_conventions(DEFAULTS))]
    names = ("tie_break", "byte_order", "id_layout", "train_special")
    values = [[value for value in CONVENTIONS[name] if value != "unspecified"] for name in names]
    under = {tuple({**DEFAULTS, **change}[name] for name in names) for change in changes}
    assert under == {*product(*values)} - {tuple(DEFAULTS[name] for name in names)}
    assert len(under) == len(changes)


def test_a_table_is_compared_by_its_merges_and_entries_whatever_ids_they_have() -> None:
    training, where = Train("ab ab", 257), TrainingDivergence(0, None, 0, None, 0)
    merges = ((b"b", b"a"),)
    vocab = training.vocab(merges)
    moved = Table({index + 7: token for index, token in vocab.items()}, merges)
    assert training.comparable(moved, where) == Table(vocab, merges)
    for other in ({**vocab, 300: b"zz"}, {index: vocab[index] for index in range(256)}):
        assert training.comparable(replace(moved, vocab=other), where) is None


def test_an_error_where_ids_are_expected_is_incorrect() -> None:
    setting = Setting(MODEL)
    assert not Encode("a").accepts(Ids((97,)), Refusal("ValueError", "no"), setting)
    assert Encode("a").accepts(AnyError(), Refusal("ValueError", "no"), setting)


def test_a_key_of_text_falls_back_to_the_same_ties() -> None:
    same = Expected.merged({"lex-greater": (1,), "first-seen": (2,), "lex-greater/text": (1,), "first-seen/text": (2,)})
    assert same.values == {"lex-greater": (1,), "first-seen": (2,)}
    assert same.under("first-seen/text") == (2,)
    assert same.under("smaller-ids") is None
    assert Expected.merged({"pair": (1,), "bytes": (1,)}).under("bytes") == (1,)


def test_a_case_made_by_a_test_is_like_a_stored_one() -> None:
    made: Case = case("encode", {"merges": [["b", "c"], ["a", "b"]]}, {"text": "abc"})
    assert made.expected == Expected({"": (Ids((97, 256)),)})


@pytest.mark.parametrize("key", ["a", "b", "c"])
def test_keys_are_merged_only_if_all_values_are_equal(key: str) -> None:
    values = {name: (Text("right"),) for name in "abc"}
    assert Expected.merged(values) == Expected({"": (Text("right"),)})
    differing = {**values, key: (Text("other"),)}
    assert Expected.merged(differing) == Expected(differing)
    as_text = {**values, **{f"{name}/text": value for name, value in differing.items()}}
    assert Expected.merged(as_text) == Expected(as_text)


def test_ids_are_compared_wherever_they_are_among_the_alternatives() -> None:
    setting, ids = Setting(MODEL), Ids((97, 256))
    for correct in ((ids,), (AnyError("table"), ids)):
        assert Encode("abc").divergence(correct, Ids((257, 99)), setting) is not None


@pytest.mark.parametrize(
    ("spans", "exact", "possible"),
    [
        (((0, 2), (0, 2), (2, 3), (3, 4)), True, True),
        (((0, 1), (1, 2), (2, 3), (3, 4)), True, True),  # each byte has one of the two characters that became one
        (((0, 2), (0, 2), (2, 3), (2, 3)), False, True),
        (((0, 2), (0, 2), (1, 3), (3, 4)), False, True),
        (((0, 2), (0, 2), (2, 4), (3, 4)), False, True),
        (((0, 3), (0, 2), (2, 3), (3, 4)), False, True),
        (((0, 2), (0, 2), (2, 3), (3, 3)), False, True),
        (((0, 2), (0, 2), (2, 3), (3, 5)), False, False),
        (((0, 2), (0, 2), (3, 4), (2, 3)), False, False),
        (((2, 1), (2, 2), (2, 3), (3, 4)), False, False),
        (((0, 2), (0, 2), (2, 3)), False, False),
    ],
)
def test_where_normalization_changes_a_text_each_span_has_to_fit(
    spans: tuple[tuple[int, int], ...], exact: bool, possible: bool
) -> None:
    model = read_model({"merges": [], "pipeline": {"normalizer": ["NFC"]}})
    operation, ids = EncodeWithOffsets("e\u0301bx"), (0xC3, 0xA9, 98, 120)
    for clause, accepted in (("OFFSET-CHANGED-2", exact), ("OFFSET-CHANGED-1", possible)):
        setting = Setting(model, DEFAULTS, clause)
        right = operation.answer(setting)
        assert right.ids == ids
        assert operation.accepts(right, Offsets(ids, spans), setting) is accepted, clause
        assert not operation.accepts(right, Offsets((*ids[:3], 121), spans), setting)


def test_an_added_token_in_changed_text_has_an_exact_span() -> None:
    added = [{"content": "<n>", "normalized": True}, {"content": "b"}]
    model = read_model({"extra": [[256, "<n>"]], "pipeline": {"normalizer": ["NFC"], "added_tokens": added}})
    operation, setting = EncodeWithOffsets("e\u0301<n>b"), Setting(model, DEFAULTS)
    right = operation.computed(setting)
    assert right == Offsets((0xC3, 0xA9, 256, 98), ((0, 2), (0, 2), (2, 5), (5, 6)))
    for at, span, accepted in ((0, (0, 1), True), (2, (1, 4), False), (2, (2, 4), False), (3, (6, 6), False)):
        spans = [*right.spans]
        spans[at] = span
        assert operation.accepts(right, Offsets(right.ids, tuple(spans)), setting) is accepted, (at, span)


@pytest.mark.parametrize(
    ("text", "ids", "spans", "clause"),
    [
        ("ab", (97, 98), ((0, 1), (0, 2)), "OFFSET-SPAN-1"),
        ("ab", (97, 98), ((0, 1),), "OFFSET-SPAN-1"),
        ("ab", (97, 99), ((0, 1), (1, 2)), "OFFSET-IDS-1"),
        ("  <l>a", (256, 97), ((2, 5), (5, 6)), "OFFSET-SPECIAL-1"),
        ("  <l>a", (256, 97), ((0, 5), (4, 6)), "OFFSET-SPAN-1"),
        ("e\u0301<l>b", (0xC3, 0xA9, 256, 98), ((0, 2), (0, 2), (2, 5), (4, 6)), "OFFSET-SPECIAL-1"),
        ("e\u0301b", (0xC3, 0xA9, 98), ((0, 2), (0, 2), (1, 3)), "OFFSET-CHANGED-1"),
    ],
)
def test_incorrect_offsets_break_the_clause_about_their_part_of_the_text(
    text: str, ids: tuple[int, ...], spans: tuple[tuple[int, int], ...], clause: str
) -> None:
    added = [{"content": "<l>", "lstrip": True}]
    model = read_model({"extra": [[256, "<l>"]], "pipeline": {"normalizer": ["NFC"], "added_tokens": added}})
    assert EncodeWithOffsets(text).broken_clause(Offsets(ids, spans), Setting(model, DEFAULTS)) == clause


def test_what_normalization_does_not_change_has_exact_spans_under_a_pipeline() -> None:
    model = read_model({"merges": [["a", "b"]], "pipeline": {"normalizer": ["NFC"]}})
    operation, setting = EncodeWithOffsets("abc"), Setting(model, DEFAULTS, "OFFSET-SPAN-1")
    right = Offsets((256, 99), ((0, 2), (2, 3)))
    assert operation.answer(setting) == right
    assert operation.accepts(right, right, setting)
    assert not operation.accepts(right, replace(right, spans=((0, 1), (1, 3))), setting)


@pytest.mark.parametrize(
    ("spans", "accepted"),
    [
        (((0, 1), (1, 2), (2, 4), (4, 5)), True),
        (((0, 1), (1, 2), (2, 3), (4, 5)), True),  # as tokenizers gives it
        (((0, 1), (1, 2), (1, 3), (4, 5)), False),
        (((0, 1), (1, 2), (3, 5), (4, 5)), False),
        (((0, 1), (1, 2), (3, 2), (4, 5)), False),
        (((0, 1), (1, 2), (2, 4), (3, 5)), False),
        (((0, 0), (0, 0), (0, 0), (0, 0)), False),
    ],
)
def test_only_the_span_of_a_token_found_in_changed_text_is_open(
    spans: tuple[tuple[int, int], ...], accepted: bool
) -> None:
    token = {"content": "\u00e9", "normalized": True}
    model = read_model({"extra": [[256, "\u00e9"]], "pipeline": {"normalizer": ["NFC"], "added_tokens": [token]}})
    operation, setting = EncodeWithOffsets("a e\u0301b"), Setting(model, DEFAULTS, "OFFSET-SPECIAL-1")
    right = operation.answer(setting)
    assert right.ids == (97, 32, 256, 98)
    assert operation.accepts(right, Offsets(right.ids, spans), setting) is accepted


@pytest.mark.parametrize(("span", "exact"), [((2, 4), True), ((1, 4), False), ((2, 3), False), ((3, 4), False)])
def test_where_normalization_changes_a_text_a_span_covers_every_other_character(
    span: tuple[int, int], exact: bool
) -> None:
    model = read_model({"merges": [["b", "x"]], "pipeline": {"normalizer": ["NFC"]}})
    operation, setting = EncodeWithOffsets("e\u0301bx"), Setting(model, DEFAULTS, "OFFSET-CHANGED-2")
    right = operation.answer(setting)
    assert right.spans[-1] == (2, 4)
    assert operation.accepts(right, replace(right, spans=(*right.spans[:-1], span)), setting) is exact


@pytest.mark.parametrize(
    ("text", "wrong", "accepted"),
    [
        ("e\u0301<s>ab", {3: (6, 7), 4: (7, 7)}, False),  # letters after the special token
        ("e\u0301<s>ab", {0: (0, 1), 1: (0, 1)}, True),  # of what was composed
        ("ab<s>e\u0301", {0: (0, 0)}, False),  # a letter before it
        ("ab<s>e\u0301", {3: (5, 6), 4: (5, 6)}, True),
        ("ae\u0301<s>", {0: (0, 3)}, True),  # its neighbour was composed
    ],
)
def test_text_between_added_tokens_has_exact_spans_if_its_tokens_spell_it(
    text: str, wrong: dict[int, tuple[int, int]], accepted: bool
) -> None:
    model = read_model({"pipeline": {"normalizer": ["NFC"], "added_tokens": [{"content": "<s>"}]}})
    operation, setting = EncodeWithOffsets(text), Setting(model, DEFAULTS, "OFFSET-SPECIAL-1")
    right = operation.answer(setting)
    spans = tuple(wrong.get(at, span) for at, span in enumerate(right.spans))
    assert spans != right.spans
    assert operation.accepts(right, replace(right, spans=spans), setting) is accepted


@pytest.mark.parametrize("text", ["<s> a b", " a b<s>", " a b"])
def test_a_space_that_was_added_in_place_of_a_removed_one_has_no_exact_span(text: str) -> None:
    steps = [{"step": "Split", "expression": " ", "behavior": "Removed"}, {"step": "ByteLevel", "prefix_space": True}]
    pipeline = {"added_tokens": [{"content": "<s>"}], "steps": steps}
    model = read_model({"merges": [[" ", "a"], [" ", "b"]], "pipeline": pipeline})
    operation, setting = EncodeWithOffsets(text), Setting(model, DEFAULTS, "OFFSET-SPECIAL-1")
    right = operation.answer(setting)
    letters = {right.ids.index(256): text.index("a"), right.ids.index(257): text.index("b")}
    assert [right.spans[at] for at in letters] == [(begin, begin + 1) for begin in letters.values()]
    counted = tuple((letters[at] - 1, span[1]) if at in letters else span for at, span in enumerate(right.spans))
    assert operation.accepts(right, replace(right, spans=counted), setting)
