"""The sentence about a failure, and the rows below it, say what went wrong."""

from __future__ import annotations

import ast
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from bpe_conformance import answer
from bpe_conformance.answer import AnyError, Changed, EncodingDivergence, Ids, Lossless, NewIds, Pair, Rows, Unchanged
from bpe_conformance.fixtures import PATTERNS, Model, read_model
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Pipeline, Split
from bpe_conformance.operations import (
    Batch,
    Construct,
    Decode,
    DecodeBytes,
    Encode,
    Load,
    Merges,
    Narrowed,
    Question,
    Save,
    Setting,
    Stream,
    Train,
    divergence,
)
from bpe_conformance.outcome import Command, Expectation, Mismatch, Outcome, Verdict
from bpe_conformance.terminal import show, wording
from bpe_conformance.terminal.failure import describe

MERGES = ((b"a", b"b"), (b"c", b"d"), (b"ab", b"cd"))
MODEL = Model({**{byte: bytes([byte]) for byte in range(256)}, 256: b"ab", 257: b"cd", 258: b"abcd"}, MERGES)


@pytest.mark.parametrize(
    ("ids", "end"),
    [
        ([97, 98], ": they end after 2 of 4 bytes."),
        ([], ": they end after 0 of 4 bytes."),
        ([97, 120, 99, 100], ": the bytes differ from byte 1 on."),
        ([256, 257, 257], ": more bytes follow after its 4."),
        ([9_999], "."),
    ],
)
def test_ids_that_do_not_spell_the_text_say_where_they_differ(ids: list[int], end: str) -> None:
    mismatch = Mismatch(Question(Encode("abcd"), MODEL), Expectation((Lossless(),)), Ids(tuple(ids)))
    assert wording.fact(mismatch).endswith(f"returned ids that do not spell the text{end}")


@pytest.mark.parametrize(
    ("right", "got", "fact"),
    [
        ((97, 98), (98, 99), "returned each id plus 1."),
        ((97, 98, 256), (94, 95, 253), "returned each id minus 3."),
        ((97, 98), (98, 100), ": the bytes differ from byte 0 on."),
        ((97, 97), (98, 98), ": the bytes differ from byte 0 on."),
        ((97,), (98,), ": the bytes differ from byte 0 on."),
        ((97, 98), (98, 99, 100), ": the bytes differ from byte 0 on."),
    ],
)
def test_ids_that_all_differ_by_one_amount_say_so(right: tuple[int, ...], got: tuple[int, ...], fact: str) -> None:
    found = EncodingDivergence(0, 0, answer.BytesLost(0))
    mismatch = Mismatch(Question(Encode("ab"), MODEL), Expectation((Ids(right),)), Ids(got), found)
    assert wording.fact(mismatch).endswith(fact)


@pytest.mark.parametrize("name", ["allowed_special", "disallowed_special"])
@pytest.mark.parametrize("tokens", [[], ["<|e|>"], ["<|\xe9|>", "\U0001f600", "\ud800"], ["'\"\\", "\n\x1b"]])
def test_a_choice_of_special_tokens_is_python_in_ascii(name: str, tokens: list[str]) -> None:
    written = show.python_choice(name, tokens)
    assert written.isascii()
    assert written.isprintable()
    assert ast.literal_eval(written) == ({*tokens} if name == "allowed_special" else tuple(tokens))
    assert ast.literal_eval(show.python_choice(name, "all")) == "all"


def test_a_merge_that_is_left_out_is_named_alone() -> None:
    found = divergence.encoding(Setting(MODEL), "abcd", [258], [256, 257])
    mismatch = Mismatch(Question(Encode("abcd"), MODEL), Expectation((Ids((258,)),)), Ids((256, 257)), found)
    assert "left out a merge" in wording.fact(mismatch)
    assert wording.pointer(found) == "rank 2 (ab+cd) did not merge at byte 0"


def test_a_pair_that_is_merged_at_a_later_position_is_not_called_left_out() -> None:
    model = read_model({"merges": [["a", "a"]]})
    found = divergence.encoding(Setting(model), "baaa", [98, 256, 97], [98, 97, 256])
    mismatch = Mismatch(Question(Encode("baaa"), model), Expectation((Ids((98, 256, 97)),)), Ids((98, 97, 256)), found)
    assert "merged a later occurrence of a pair first" in wording.fact(mismatch)
    assert wording.pointer(found) == "rank 0 (a+a) merged at byte 2, not at byte 1"


def test_a_merge_where_none_is_due_is_named_alone() -> None:
    found = EncodingDivergence(0, 0, answer.WrongMerge(Pair((b"ab", b"cd"), 2, 0), None))
    assert wording.pointer(found) == "used rank 2"


def test_every_cause_of_wrong_ids_has_its_own_words_and_names_what_it_is_about() -> None:
    merge = Pair((b"ab", b"cd"), 2, 0)
    causes = {
        answer.UnknownId(9_001): ["9001"],
        answer.BytesLost(7): ["7"],
        answer.BytesLost(7, of_pipeline=True): ["7", "file"],
        answer.WrongId(b"cd", 257, 9_001): ["cd", "257", "9001"],
        answer.WrongId(None, 257, 9_001): ["special", "257", "9001"],
        answer.CrossesBoundary(b"cd", 7): ["cd", "7"],
        answer.PreTokenCut("abcd", 2, merge): ["abcd", "2"],
        answer.SpecialToken(b"cd", missed=True): ["special", "cd", "not"],
        answer.SpecialToken(b"cd", missed=True, of_pipeline=True): ["added", "cd", "not"],
        answer.SpecialToken(b"cd", missed=False): ["special", "cd"],
        answer.SpecialToken(b"cd", missed=False, of_pipeline=True): ["added", "cd"],
        answer.SpecialToken(b"cd", missed=False, allowed=False): ["special", "cd", "not allowed"],
        answer.WholeTokenCut("abcd"): ["abcd", "bytes"],
        answer.WholeTokenCut("abcd", "whole"): ["abcd", "whole"],
        answer.NotAResult(b"cd"): ["cd", "no merge"],
        answer.WrongMerge(None, merge): ["merge"],
        answer.WrongMerge(merge, merge): ["pair", "first"],
        answer.WrongMerge(merge, None): ["order"],
    }
    assert {*map(type, causes)} == {*answer.EncodingCause.__subclasses__()}
    said = {cause: wording._cause_fact(cause) for cause in causes}
    assert len({*said.values()}) == len(causes)
    assert [(cause, word) for cause, words in causes.items() for word in words if word not in said[cause]] == []


@pytest.mark.parametrize(
    ("ids", "put"),
    [
        ((257, 258), "put cd (id 257) before the correct ids"),
        ((258, 9), "put '\\t' (id 9) after the correct ids"),
        ((999, 258, 9), "put the unknown id 999 before and '\\t' (id 9) after the correct ids"),
        ((9, 9, 258), "returned ids that do not spell the text: the bytes differ from byte 0 on"),
    ],
)
def test_ids_that_are_added_at_the_ends_are_named(ids: tuple[int, ...], put: str) -> None:
    found = divergence.encoding(Setting(MODEL), "abcd", [258], ids)
    mismatch = Mismatch(Question(Encode("abcd"), MODEL), Expectation((Ids((258,)),)), Ids(ids), found)
    assert wording.fact(mismatch) == f"encode('abcd') {put}."


@pytest.mark.parametrize(("count", "more"), [(3, False), (4, True), (9, True)])
def test_other_texts_that_are_not_shown_are_not_concealed(count: int, more: bool) -> None:
    others = tuple(Narrowed(Encode("cd" * (at + 1)), (Ids((257,) * (at + 1)),), Ids((99,))) for at in range(count))
    found = wording.others(Mismatch(Question(Encode("ab"), MODEL), Expectation((Ids((256,)),)), Ids(()), others=others))
    assert found.startswith(f"{count} other texts: 'cd' is ")
    assert found.count(" is ") == 3
    assert found.endswith("; ...") is more


def test_dots_stand_for_ids_that_are_not_shown_and_for_no_others() -> None:
    for count in range(1, 2 * show.MOST_TOKENS):
        ids = (97,) * count
        cells = dict(wording.setting(Question(Decode(ids), MODEL), (), 999))["tokens"].split(" | ")
        assert cells == ["a"] * min(count, show.MOST_TOKENS) + ["..."] * (count > show.MOST_TOKENS)
        assert show._brief_ids(ids, MODEL).partition("   ")[0].split(" | ") == cells


def test_a_pipeline_is_shown_in_lines_with_the_names_of_known_expressions() -> None:
    added = tuple(AddedToken(f"<|token {number}|>") for number in range(9))
    model = replace(MODEL, pipeline=Pipeline(("NFC",), added, (Split(PATTERNS["o200k"]), Split("[0-9]"), ByteLevel())))
    rows = dict(wording.setting(Question(Encode("abcd"), model), (), 60))
    assert rows["pipeline"].endswith("Split o200k;\nSplit '[0-9]'; ByteLevel")
    assert max(map(len, rows["pipeline"].splitlines())) <= 60


def test_a_row_that_differs_is_shown_without_a_divergence() -> None:
    asked, right, wrong = Question(Batch(("ab",)), MODEL), Rows(((256,),)), Rows(((97, 98),))
    mismatch = Mismatch(asked, Expectation((right,)), wrong)
    failed = Outcome("law-batch", "property", "", "failed", None, "batch", mismatch)
    rows = dict(describe(failed, Command("x:Y")).evidence)
    assert (rows["expected"].split(), rows["got"].split()) == (["ab", "[256]"], ["a", "|", "b", "[97,", "98]"])


def test_a_new_id_is_expected_only_for_a_token_without_an_entry() -> None:
    shown = [show.expected(NewIds(tokens), show.BRIEF, MODEL) for tokens in ((b"ab",), (b"ab", b"<|e|>"))]
    assert shown == ["ab", "ab | '<|e|>', with a new id for each token without an entry"]


def test_a_new_id_that_is_in_use_is_named_with_its_token() -> None:
    asked, right = Question(Encode("b<|e|>"), MODEL), NewIds((b"b", b"<|e|>"))
    fact = wording.fact(Mismatch(asked, Expectation((right, AnyError("special"))), Ids((98, 256))))
    assert fact == "encode('b<|e|>') raised no error and gave '<|e|>' the id 256, which is that of 'ab'."


def test_the_clause_of_a_property_that_fails_under_another_one_is_explained() -> None:
    changed = Mismatch(
        Question(Construct(), MODEL), Expectation((Unchanged(),)), Changed(("the caller's vocab changed",))
    )
    failed = Outcome(
        "law-arguments", "property", "", "failed", None, "encoder", replace(changed, clause_id="ERROR-STATE-1")
    )
    shown = describe(failed, Command("x:Y"))
    assert shown.explain == "bpe-conformance explain ERROR-STATE-1"
    assert shown.fact.endswith(" built a tokenizer, but the caller's vocab changed.")


ABCD, ROWS = Question(Encode("abcd"), MODEL), Question(Batch(("a", "b")), MODEL)
TRAINED, SAVED = Question(Train("abab", 257)), Question(Save(), MODEL)
Training, Vocab = answer.TrainingDivergence, answer.VocabDivergence
AB, CD = (b"a", b"b"), (b"c", b"d")
WHOLE, TWO, BATCH = Ids((258,)), Ids((256, 257)), Rows(((97,), (98,)))
LEARNED = answer.Table({}, ())
FACTS: list[tuple[str, Question[Any], Any, Any, Any]] = [
    ("gave no answer within 3 s", ABCD, WHOLE, answer.Fault(answer.TIMED_OUT, "no answer within 3 s"), None),
    ("gave no usable answer: a float", ABCD, WHOLE, answer.Fault(answer.MALFORMED, "a float."), None),
    ("raised KeyError: 9", ABCD, WHOLE, answer.Refusal("KeyError", "KeyError: 9"), None),
    ("raised an error", ABCD, WHOLE, answer.Refusal("KeyError", "an error."), None),
    ("returned no ids", ABCD, WHOLE, Ids(()), EncodingDivergence(0, 0, answer.BytesLost(0))),
    ("stopped after 1 of 2 tokens", ABCD, TWO, Ids((256,)), None),
    ("returned 3 tokens instead of 2", ABCD, TWO, Ids((256, 257, 9)), None),
    ("returned an incorrect token at index 1", ABCD, TWO, Ids((256, 9)), None),
    (
        "(first; after others) returned no ids",
        replace(ABCD, about="first", context="after others"),
        WHOLE,
        Ids(()),
        None,
    ),
    ("(after others) returned no ids", replace(ABCD, context="after others"), WHOLE, Ids(()), None),
    ("returned the rows in another order", ROWS, BATCH, Rows(((98,), (97,))), answer.RowDivergence(0)),
    ("returned incorrect ids in row 1", ROWS, BATCH, Rows(((97,), (97,))), answer.RowDivergence(1)),
    ("returned 1 row for 2 texts", ROWS, BATCH, Rows(((97,),)), answer.RowDivergence(1)),
    ("returned a vocabulary without 'a' and with an extra 'b'", TRAINED, LEARNED, LEARNED, Vocab((b"a",), (b"b",))),
    ("returned a vocabulary with an extra 'b'", TRAINED, LEARNED, LEARNED, Vocab((), (b"b",))),
    ("returned a vocabulary without 'a'", TRAINED, LEARNED, LEARNED, Vocab((b"a",), ())),
    ("returned a vocabulary with an extra id 9, 'a'", TRAINED, LEARNED, LEARNED, answer.EntryDivergence(9, None, b"a")),
    ("wrote a vocabulary without the id 9, 'a'", SAVED, LEARNED, LEARNED, answer.EntryDivergence(9, b"a", None)),
    (
        "wrote a vocabulary in which id 9 is 'b' instead of 'a'",
        SAVED,
        LEARNED,
        LEARNED,
        answer.EntryDivergence(9, b"a", b"b"),
    ),
    ("stopped before merge 2, a+b (count 3)", TRAINED, LEARNED, LEARNED, Training(1, AB, 3, None, 0)),
    ("learned an extra merge 2, c+d (count 1)", TRAINED, LEARNED, LEARNED, Training(1, None, 0, CD, 1)),
    ("chose c+d as merge 2 instead of a+b (tied at count 3)", TRAINED, LEARNED, LEARNED, Training(1, AB, 3, CD, 3)),
    ("chose c+d (count 2) as merge 2 instead of a+b (count 3)", TRAINED, LEARNED, LEARNED, Training(1, AB, 3, CD, 2)),
    ("left out the merge of rank 1, a+b", SAVED, LEARNED, LEARNED, Training(1, AB, 0, None, 0)),
    ("wrote an extra merge of rank 1, c+d", SAVED, LEARNED, LEARNED, Training(1, None, 0, CD, 0)),
    ("wrote c+d as the merge of rank 1 instead of a+b", SAVED, LEARNED, LEARNED, Training(1, AB, 0, CD, 0)),
    (
        "returned bytes that differ from byte 3 on",
        Question(DecodeBytes((97,)), MODEL),
        answer.Bytes(b"a"),
        answer.Bytes(b""),
        answer.ByteDivergence(3),
    ),
    (
        "returned 'b' instead of 'a'",
        Question(Decode((97,)), MODEL),
        answer.Text("a"),
        answer.Text("b"),
        answer.TextDivergence(0),
    ),
    (
        "returned a text that differs from character 2 on",
        Question(Decode((97,)), MODEL),
        answer.Text("a" * 21),
        answer.Text("aab"),
        answer.TextDivergence(2),
    ),
    (
        "returned a text that differs from character 1 on",
        Question(Decode((97,)), MODEL),
        answer.Text("ab"),
        answer.Text("a" * 21),
        answer.TextDivergence(1),
    ),
]


@pytest.mark.parametrize(("said", "asked", "right", "got", "where"), FACTS)
def test_a_fact_says_what_differs(
    said: str, asked: Question[Any], right: Any, got: answer.Answer, where: answer.Divergence | None
) -> None:
    assert wording.fact(Mismatch(asked, Expectation((right,)), got, where)) == f"{wording.call(asked)} {said}."


def test_the_entry_of_an_id_is_expected_even_if_any_pair_of_the_highest_count_will_do() -> None:
    where = answer.EntryDivergence(256, b"<|a|>", b"ab")
    expected = Expectation((answer.HighestCount(2),))
    mismatch = Mismatch(Question(Train("ab", 258, ("<|a|>",))), expected, LEARNED, divergence=where)
    assert wording.expectation(mismatch) == "id 256 is '<|a|>'"


def test_an_id_that_is_accepted_beside_an_error_is_not_said_to_be_in_use() -> None:
    asked = Question(Encode("ab"), MODEL)
    for token, did in ((b"ab", "answered incorrectly"), (b"<x>", "gave '<x>' the id 257, which is that of 'cd'")):
        correct = Expectation((NewIds((token,)), AnyError("special")))
        assert wording.fact(Mismatch(asked, correct, Ids((257,)))) == f"encode('ab') raised no error and {did}."
    only = wording.fact(Mismatch(asked, Expectation((AnyError("surrogate"),)), Ids((257,))))
    assert only.startswith("encode('ab') raised no error, although ")
    either = Expectation((answer.Table({}, ()), AnyError("special")))
    trained = wording.fact(Mismatch(Question(Train("ab", 257)), either, Ids((257,))))  # without a model
    assert trained.endswith(" raised no error and answered incorrectly.")


@pytest.mark.parametrize(
    ("text", "special", "row"),
    [
        ("abcd", ("<e>",), None),
        ("<e>", ("<e>",), None),
        ("ab<e>", ("<e>",), "'ab' | special '<e>'"),
        ("ab<e>", (), None),
        ("a<e>" * show.MOST_TEXTS, ("<e>",), None),
    ],
)
def test_segments_are_shown_if_there_are_several_and_not_too_many(
    text: str, special: tuple[str, ...], row: str | None
) -> None:
    rows = dict(wording.setting(Question(Encode(text), replace(MODEL, special_tokens=special)), (), 999))
    assert rows.get("segments") == row
    assert ("special" in rows) is bool(special)
    assert "pattern" not in rows
    for pattern, shown in (("cl100k", "cl100k"), (r"(a)b|[\s\S]", r"'(a)b|[\\s\\S]'")):
        patterned = replace(MODEL, pattern=pattern)
        assert dict(wording.setting(Question(Encode(text), patterned), (), 999))["pattern"] == shown


@pytest.mark.parametrize(("position", "inside"), [(0, ""), (1, "; chunk 1 ends inside 'abcd', at byte 2"), (9, "")])
def test_a_chunk_that_ends_inside_a_token_is_named(position: int, inside: str) -> None:
    """The correct tokens are a single byte or the whole text."""
    asked = Question(Stream(("ab", "cd")), MODEL)
    right, byte = ((258,), 0) if position else ((256, 257), 0)
    where = EncodingDivergence(0 if position < 9 else 9, byte, answer.BytesLost(0))
    assert wording.cut_inside(asked, where, right).replace("'", "") == inside.replace("'", "")
    ends_there = Question(Stream(("abcd", "ab")), MODEL)
    assert wording.cut_inside(ends_there, EncodingDivergence(0, 0, answer.BytesLost(0)), (258,)) == ""


NONE_FAILED = Verdict("encoder", must=9, failed=0, known=0, errors=0, should=5, broken=0, stale=0)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({}, "PASS: 9 MUST tests pass"),
        ({"elsewhere": 2}, "PASS: 7 MUST tests pass; 2 more fail where another class fails, too, and do not count"),
        ({"failed": 2}, "FAIL: 2 of 9 MUST tests fail"),
        ({"failed": 2, "known": 1}, "FAIL: 3 of 9 MUST tests fail (1 of them known)"),
        ({"known": 1}, "FAIL: 1 of 9 MUST tests fails (1 of them known)"),
        ({"errors": 1}, "ERROR: the suite itself failed in 1 of 9 MUST tests; please report it"),
        ({"failed": 1, "errors": 1}, "FAIL: 1 of 9 MUST tests fails"),
        ({"broken": 2}, "PASS: 9 MUST tests pass; 2 of 5 SHOULD tests fail"),
        ({"stale": 1}, "PASS: 9 MUST tests pass; 1 that passes is listed as a known failure"),
        ({"failed": 1, "stale": 2}, "FAIL: 1 of 9 MUST tests fails; 2 that pass are listed as known failures"),
    ],
)
def test_a_verdict_has_all_its_counts(counts: dict[str, int], said: str) -> None:
    assert wording.verdict(replace(NONE_FAILED, **counts)) == said


def test_a_verdict_says_each_count_with_any_others() -> None:
    parts = {
        "known": (12, " (12 of them known)"),
        "elsewhere": (13, "; 13 more fail where another class fails, too"),
        "broken": (14, "; 14 of 50 SHOULD tests fail"),
        "stale": (15, "; 15 that pass are listed as known failures"),
    }
    for failed, *chosen in product((0, 11), *[(False, True)] * len(parts)):
        names = {name for name, is_there in zip(parts, chosen, strict=True) if is_there}
        counts = {name: parts[name][0] for name in names}
        said = wording.verdict(replace(NONE_FAILED, must=90, should=50, failed=failed, **counts))
        assert {name for name, (_, part) in parts.items() if part in said} == names, said
        assert said.startswith("FAIL: " if failed or "known" in names else "PASS: ")


def test_each_need_says_why_a_test_is_skipped() -> None:
    for need, why in {
        "decode": "decode is not implemented",
        "two ids": "the constructor rejects a token with two ids",
        "pattern:o200k": "the constructor does not take the pattern o200k",
        "pattern:*": "the constructor takes no other pattern",
        "pattern": "the constructor takes no pattern",
        "train-pattern:o200k": "train does not take the pattern o200k",
        "train-pattern": "train takes no pattern",
        "a reason": "a reason",
    }.items():
        assert wording.why_skipped(need) == why


@pytest.mark.parametrize(
    ("operation", "brief", "python"),
    [
        (Train("a", 257), "train('a', 257)", "train('a', 257, [])"),
        (Train("a", 257, ("<e>",)), "train('a', 257, special_tokens=['<e>'])", "train('a', 257, ['<e>'])"),
        (Train("a", 257, (), "cl100k"), "train('a', 257, pattern='cl100k')", "train('a', 257, [], pattern='cl100k')"),
        (Decode((1, 2)), "decode([1, 2])", "decode([1, 2])"),
        (Decode((1, 2), as_tuple=True), "decode((1, 2))", "decode((1, 2))"),
        (Load("a"), "from_files(...).encode('a')", "encode('a')"),
        (Batch(("a",) * 8), f"encode_batch({['a'] * 8})", f"encode_batch({['a'] * 8})"),
        (Batch(("a",) * 9), "encode_batch(9 texts, the first 'a')", f"encode_batch({['a'] * 9})"),
    ],
)
def test_a_call_has_all_its_arguments(operation: Any, brief: str, python: str) -> None:
    assert [show.call(operation.call(), style) for style in (show.BRIEF, show.PYTHON)] == [brief, python]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Merges((AB,), ((256, b"ab"),)), "merges 0: a+b; ids 256 'ab'"),
        (answer.Table({}, ()), "no merges"),
        (Rows(()), "an empty list"),
        (answer.Bytes(b""), "no bytes"),
        (answer.Bytes(bytes(24)), " ".join(["00"] * 24)),
        (answer.Bytes(bytes(25)), " ".join(["00"] * 24) + " ..."),
        (answer.AtMost(3, "byte"), "at most 3 bytes held back at any time"),
        (answer.AtMost(3_000, show.TIMES), "at most 3,000 times as long"),
        *((AnyError(reason), f"an error, because {why}") for reason, why in show.REASONS.items()),
        (AnyError("unknown-id"), "an error, because the vocabulary does not have the id"),
        (AnyError("other"), "an error"),
    ],
)
def test_what_is_expected_is_in_words(value: Any, shown: str) -> None:
    assert show.expected(value, show.BRIEF) == shown


def test_tokens_and_merges_are_shown_so_that_they_cannot_be_misread() -> None:
    assert show.token("\u20ac".encode() * 41) == f"{chr(0x20AC) * 10!a}...(123 bytes)"
    assert [show.bare(token) for token in (b"a\\b", b"a b", b"a\x1fb", b"a+b", b"!")] == [
        *("'a\\\\b'", "'a b'", "'a\\x1fb'", "'a+b'", "!"),
    ]
    assert show.ids((97, 999), MODEL.vocab) == "97 'a' | 999 ?"
    assert [show.cell(index, Model({1: b"", 2: b"a"}, ())) for index in (1, 2, 3)] == ["''", "a", "id 3"]
    ranks = show.ranked([AB] * 40, [30])
    assert [rank.partition(":")[0] for rank in ranks] == [*map(str, range(12)), "...", "29", "30", "31", "8 more ..."]
    assert show.packed(["aaa", "bbb", "c"], 9) == "aaa   bbb\nc"


@pytest.mark.parametrize(
    "text", ["\u20ac" * 3 + "b" * 3, "\u20ac" * 50 + "b" * 60, "\u20ac" * 11 + "b", "'" * 9 + '"b"']
)
def test_the_column_is_that_of_the_character(text: str) -> None:
    """Escaped characters have more columns."""
    around = text.index("b")
    shown, column = show.text_near(text, around)
    assert shown[column] == "b"
    assert shown[column - 1] != "b"
    assert len(shown) <= 100
    assert (shown == ascii(text)) is (len(ascii(text)) <= show.NEAR_WIDTH)
    assert shown == ascii(text) or shown.startswith("... ")


def test_each_step_of_a_pipeline_has_its_settings() -> None:
    behaviors = [
        Split(letter, behavior) for letter, behavior in (("a", "Removed"), ("b", "MergedWithNext"), ("c", "Isolated"))
    ]
    steps = (*behaviors, Split(PATTERNS["cl100k"], invert=True), ByteLevel(split=False))
    assert show.pipeline(Pipeline(("NFC",), (AddedToken("<s>", lstrip=True),), steps, lookup="whole")) == [
        *("NFC", "added '<s>' (lstrip)", "Split 'a' Removed", "Split 'b' MergedWithNext", "Split 'c'"),
        *("Split cl100k (invert)", "ByteLevel (no split)", "lookup whole"),
    ]
    added = tuple(AddedToken(f"<{number}>") for number in range(5))
    assert show.pipeline(Pipeline(("NFC", "NFD"), added))[-3:] == ["added '<2>'", "2 more added", "ByteLevel"]


def test_what_the_vocabulary_lacks_is_named() -> None:
    vocab = {index: token for index, token in MODEL.vocab.items() if token not in (b"z", b"abcd")}
    rows = dict(wording.setting(Question(Encode("ab"), Model(vocab, MERGES, ("<e>",))), (), 999))
    assert rows["lacks"] == "the vocabulary has no 'z', 'abcd', '<e>'"
    large = Model(
        {**MODEL.vocab, **{number: b"%d" % number for number in range(999, 9_999)}}, MERGES * 3_000, name="mine"
    )
    assert large.is_large
    assert dict(wording.setting(Question(Encode("ab"), large), (), 999)) == {"merges": "those of mine"}


@pytest.mark.parametrize(
    ("options", "files"),
    [
        ((("version_line", "#version: 7"),), "merges.txt begins with the line '#version: 7'"),
        (
            (("newline", "crlf"), ("final_newline", False)),
            "merges.txt has CR LF line ends; merges.txt has no final line end",
        ),
    ],
)
def test_what_is_special_about_files_is_said(options: tuple[tuple[str, Any], ...], files: str) -> None:
    assert dict(wording.setting(Question(Load("a", options), MODEL), (), 999))["files"] == files


def test_a_segment_is_cut_as_the_pipeline_does() -> None:
    added = AddedToken("<e>", lstrip=True)
    model = replace(MODEL, special_tokens=("<e>",), pipeline=Pipeline((), (added,), (ByteLevel(),)))
    rows = dict(wording.setting(Question(Encode("a <e>b"), model), (), 999))
    assert rows["segments"] == "'a' | added '<e>' | 'b'"  # the token takes the space


def test_an_answer_that_differs_from_another_one_is_not_called_incorrect() -> None:
    for source, did in (("", "gave an incorrect answer."), ("encode of each text", "gave another answer.")):
        wrong = Mismatch(Question(Batch(("ab",)), MODEL), Expectation((Rows(((97,),)),), source), Rows(((98,),)))
        assert wording.fact(wrong).endswith(did)


def test_everything_that_changed_and_everything_that_is_accepted_is_said() -> None:
    changed = Changed(("the locale changed", "the vocab changed"))
    for asked, did in ((ABCD, "gave a correct answer"), (Question(Construct(), MODEL), "built a tokenizer")):
        fact = wording.fact(Mismatch(asked, Expectation((Unchanged(),)), changed))
        assert fact.endswith(f"{did}, but the locale changed; the vocab changed.")
    several = Mismatch(ABCD, Expectation((TWO, WHOLE)), Ids((9,)))
    assert (
        wording.expectation(several)
        == f"{show.expected(TWO, show.BRIEF, MODEL)}, or {show.expected(WHOLE, show.BRIEF, MODEL)}"
    )
    lost = answer.Fault(answer.NO_RESULT, "no result")
    assert wording.fact(Mismatch(ABCD, Expectation((WHOLE,)), lost)).endswith(" gave no result.")
