"""The terminal shows the expected text of a failure, for one wrong tokenizer of each area.

After a change of wording, `WRITE_EXPECTED=1 pytest tests/terminal` rewrites the expected texts.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from helpers.expected import check
from helpers.sample_reports import greedy, result

from bpe_conformance.answer import (
    MALFORMED,
    PROTOCOL_ERROR,
    TIMED_OUT,
    AtMost,
    Changed,
    EncodingDivergence,
    Fault,
    Ids,
    Lossless,
    Measure,
    Pair,
    PreTokenCut,
    Rows,
    Table,
    Text,
    TextDivergence,
    Unchanged,
    WrongMerge,
)
from bpe_conformance.cases.dependence import explained
from bpe_conformance.cases.judging import judge
from bpe_conformance.fixtures import Model
from bpe_conformance.fixtures.conventions import DEFAULTS
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.operations import Batch, Decode, Encode, Question, Stream, Train
from bpe_conformance.outcome import (
    Bug,
    BugCause,
    Command,
    ConventionCause,
    Diagnosis,
    Expectation,
    Mismatch,
    Outcome,
    State,
)
from bpe_conformance.reference import Tokenizer as Reference
from bpe_conformance.reference import textbook
from bpe_conformance.spec import Case, installed_spec
from bpe_conformance.terminal.failure import POINTER, WIDTH, Failure, aligned, describe, for_terminal

EXPECTED = Path(__file__).parent / "expected"
COMMAND = Command("mytok:Tokenizer")
BUGS = (
    Bug("greedy-left-to-right", "Merges the leftmost pair.", "Merge the pair of the lowest rank.", "MERGE-ORDER-1"),
    Bug("longest-match", "Takes the longest token.", "Start from bytes.", "MERGE-ORDER-1"),
)


DIAGNOSIS = Diagnosis((BugCause(BUGS, ("merge-priority-beats-leftmost",)),), ("merge-priority-beats-leftmost",))


class MergesLeftmost(Reference):
    def encode(self, text: str) -> list[int]:  # type: ignore[override]
        table = {pair: index for index, pair in enumerate(self.merges)}
        ids: list[int] = []
        for piece in textbook.split(text, self.pattern):
            parts = [bytes([byte]) for byte in piece.encode("utf-8")]
            place = 0
            while place + 1 < len(parts):
                if (parts[place], parts[place + 1]) in table:
                    parts[place : place + 2] = [parts[place] + parts[place + 1]]
                    place = 0
                else:
                    place += 1
            ids += [self._index(part) for part in parts]
        return ids

    def _index(self, part: bytes) -> int:
        return next(index for index, token in self.vocab.items() if token == part)


def without_split(self: Any, text: str) -> list[int]:
    return Reference(self.vocab, self.merges, pattern=r"(?s:.+)").encode(text)


def without_special(self: Any, text: str) -> list[int]:
    return Reference(self.vocab, self.merges, None).encode(text)


def raising(*_: Any, **__: Any) -> Any:
    raise KeyError("x")


def ends_at(last: int, step: int) -> Any:
    """Return a `save` that leaves entries out."""

    def save(self: Any, folder: Any) -> None:
        Reference(dict(list(self.vocab.items())[:last]), self.merges[:step]).save(folder)

    return save


def loads_without_first_line(cls: Any, vocab: Any, merges: Any, special_tokens: Any = None) -> Any:
    lines = Path(merges).read_text("utf-8").splitlines()
    Path(merges).write_text("\n".join(lines[1:]) + "\n", "utf-8")
    return Reference.from_files(vocab, merges, special_tokens)


def first_seen(cls: Any, text: str, vocab_size: int, special_tokens: list[str]) -> Any:
    return textbook.with_conventions(tie_break="first-seen").train(text, vocab_size, special_tokens)


def counts_words_once(cls: Any, text: str, vocab_size: int, special_tokens: list[str]) -> Any:
    return Reference.train(" ".join(dict.fromkeys(text.split())), vocab_size, special_tokens)


def like(**methods: Any) -> type:
    """Return a class like the reference in which some methods answer differently."""
    return type("Tokenizer", (Reference,), methods)


WRONG: Mapping[str, tuple[str, Any]] = {
    "merge-order": ("merge-priority-beats-leftmost", MergesLeftmost),
    "split": ("split-letter-accents", like(encode=lambda self, text: [*text.encode("utf-8")])),
    "split-boundary": ("split-space-two", like(encode=without_split)),
    "special-tokens": ("special-scan-leftmost-first", like(encode=without_special)),
    "allowed-special": (
        "special-allowed-none",
        like(encode=lambda self, text, allowed_special=(), disallowed_special=(): Reference.encode(self, text)),
    ),
    "disallowed-special": (
        "special-disallowed-alone",
        like(encode=lambda self, text, allowed_special=(), disallowed_special=(): Reference.encode(self, text)),
    ),
    "decode": (
        "decode-bytes-tail-token",
        like(decode=lambda self, ids: "".join(self.vocab[one].decode("utf-8", "replace") for one in ids)),
    ),
    "decode-bytes": (
        "decode-bytes-gpt2-order",
        like(decode_bytes=lambda self, ids: Reference(self.vocab, self.merges).decode(ids).encode("utf-8")),
    ),
    "stream": (
        "stream-contraction-ll",
        like(encode_iterable=lambda self, chunks: (one for chunk in chunks for one in Reference.encode(self, chunk))),
    ),
    "batch": (
        "batch-multibyte",
        like(encode_batch=lambda self, texts: [Reference.encode(self, text)[::-1] for text in texts]),
    ),
    "batch-order": (
        "batch-multibyte",
        like(encode_batch=lambda self, texts: [Reference.encode(self, text) for text in sorted(texts)]),
    ),
    "batch-rows": (
        "batch-empty-text",
        like(encode_batch=lambda self, texts: [Reference.encode(self, text) for text in texts if text]),
    ),
    "train-tie": ("train-tie-space-below-letters", like(train=classmethod(first_seen))),
    "train-count": ("train-last-pair-of-word-counts", like(train=classmethod(counts_words_once))),
    "train-end": (
        "train-special-inside-another-nothing-left",
        like(train=classmethod(lambda cls, text, size, special: Reference.train("abab", size, []))),
    ),
    "save": ("file-save-special", like(save=ends_at(257, 1))),
    "save-merges": ("file-save-special", like(save=ends_at(258, 0))),
    "load": ("file-version-none-one-merge", like(from_files=classmethod(loads_without_first_line))),
    "construct": (
        "error-table-construct-part",
        like(__init__=lambda self, *_: None, encode=lambda self, _: [], decode=lambda self, _: ""),
    ),
    "exception": ("merge-priority-beats-leftmost", like(encode=raising)),
    "malformed": ("merge-priority-beats-leftmost", like(encode=lambda self, text: [2.5] if text == "abc" else [])),
    "time-out": ("merge-priority-beats-leftmost", like(encode=lambda self, text: time.sleep(5) or [])),
    "no-ids": ("bytes-atom-four", like(encode=lambda self, text: [])),
    "not-in-vocabulary": ("bytes-atom-four", like(encode=lambda self, text: [9999])),
}
"""Area → a golden case, and a tokenizer that fails it."""


@cache
def cases() -> dict[str, Case]:
    return {case.id: case for case in installed_spec().cases}


def outcome(case: Case, mismatch: Mismatch) -> Outcome:
    state: State = "failed" if case.level == "must" else "warning"
    return Outcome(case.id, "case", case.title, state, case.clause, case.conformance_class, mismatch)


def judged(area: str) -> Failure:
    """Return the failure of the tokenizer of an area."""
    name, target = WRONG[area]
    case = cases()[name]
    implementation = Implementation("mytok:Tokenizer", target, 0.2 if area == "time-out" else 10.0)
    with implementation.time_limit():
        mismatch = judge(case, implementation)
    assert mismatch is not None, area
    if area != "time-out":
        mismatch = explained(mismatch, case.clause.id, implementation)
    return describe(outcome(case, mismatch), COMMAND, DIAGNOSIS if area == "merge-order" else None)


LOCALE = "the tokenizer changed the locale; leave it as it is"
FRAMES = ("mytok.py:7 in encode: return self._ranks[part]", f"mytok.py:9 in merge: {'x' * 90} + {'y' * 60}")


def made() -> Iterator[tuple[str, Failure]]:
    """Yield failures that no golden case shows."""
    case = cases()["merge-priority-beats-leftmost"]
    asked = Question(Encode("abc"), case.model)
    training = Question(Train("abc ab", 300), None, "after others")
    ab, bc = (b"a", b"b"), (b"b", b"c")
    tables = [
        Table({256: first, 257: b"abc"}, merges)
        for first, merges in (
            (b"ab", (ab, (b"ab", b"c"))),
            (b"bc", (bc, (b"a", b"bc"))),
            (b"\xe2", (ab, (b"ab", b"c"))),
        )
    ]
    stream = Question(Stream(tuple(["a" * 100] * 1000)), case.model)
    found = {
        "changed": Mismatch(asked, Expectation((Unchanged(),)), Changed((LOCALE,))),
        "held-back": Mismatch(stream, Expectation((AtMost(16_484),)), Measure(99_999)),
        "process-ended": Mismatch(
            asked, Expectation((Lossless(),)), Fault("CrashError", "signal 11 ended the program", FRAMES)
        ),
        "context": Mismatch(
            Question(Encode("abc"), case.model, "after 1,000 other texts"),
            Expectation((Lossless(),), "encode of a new tokenizer"),
            Fault(MALFORMED, "encode(...) returned None; expected list[int]"),
        ),
        "property-merges": Mismatch(training, Expectation((tables[0],)), tables[1]),
        "property-entries": Mismatch(training, Expectation((tables[0],)), tables[2]),
    }
    for area, mismatch in found.items():
        yield area, describe(outcome(case, mismatch), COMMAND)
    property_ = replace(outcome(case, found["changed"]), examples=41, case="clause: X\ncases: []")
    yield "counterexample", describe(property_, COMMAND)
    passed = Outcome(case.id, "case", case.title, "failed", case.clause, "encoder", reason="see issue 7", stale=True)
    yield "stale", describe(passed, COMMAND)
    broken = Outcome(case.id, "case", case.title, "error", case.clause, "encoder", error='File "x.py"\nKeyError: 7')
    yield "error", describe(broken, COMMAND)


def failures() -> Iterator[tuple[str, Failure]]:
    yield from ((area, judged(area)) for area in WRONG)
    yield from made()


@pytest.fixture(scope="module")
def found() -> dict[str, Failure]:
    return dict(failures())


AREAS = sorted(file.stem for file in EXPECTED.glob("*.txt"))


def plain(failure: Failure) -> str:
    """Return the text without frames of this file, whose line numbers change."""
    kept = [(label, text) for label, text in failure.evidence if "test_failure.py" not in text]
    return "\n".join(replace(failure, evidence=tuple(kept)).lines()) + "\n"


@pytest.mark.parametrize("area", AREAS)
def test_failure_has_the_expected_text(area: str, found: Mapping[str, Failure]) -> None:
    check(plain(found[area]), EXPECTED / f"{area}.txt")


def test_every_failure_has_an_expected_text(found: Mapping[str, Failure]) -> None:
    assert sorted(found) == AREAS


COMMANDS = ("  reproduce ", "  rerun ", "  explain ")


@pytest.mark.parametrize("area", AREAS)
def test_lines_are_visible_ascii_and_at_most_100_columns_wide(area: str, found: Mapping[str, Failure]) -> None:
    for line in found[area].lines():
        assert line.isascii()
        assert not line or line.isprintable()
        assert len(line) <= WIDTH or line.startswith(COMMANDS)  # a command is one line, which users copy


@pytest.mark.parametrize("part", [one.name for one in fields(Failure) if one.name != "is_part"])
def test_each_part_of_a_failure_is_shown_in_visible_ascii(part: str) -> None:
    text = "\u00e9\x1b[2J\u202e"
    values = {"evidence": ((text, text),), "bugs": (Bug(text, text, text, text),)}
    failure = replace(Failure("a-case", "FAILED", "", "It failed."), **{part: values.get(part, text)})
    shown = [*failure.lines()]
    assert "\\xe9\\x1b[2J\\u202e" in "".join(shown)
    assert all(line.isascii() and (line.isprintable() or not line) for line in shown)


@pytest.mark.parametrize("count", [1, 6, 7])
def test_up_to_six_entries_that_differ_are_compared(count: int) -> None:
    tables = (Table({300 + at: bytes([first + at]) for at in range(count)}, ()) for first in (97, 110))
    right, wrong = tables
    mismatch = Mismatch(Question(Train("ab", 300), None), Expectation((right,)), wrong)
    shown = plain(describe(outcome(cases()["merge-priority-beats-leftmost"], mismatch), COMMAND))
    for table in (right, wrong):
        row = "   ".join(f"{index}: {token.decode()!r}" for index, token in [*table.vocab.items()][:6])
        assert re.search(rf"{re.escape(row)}$", shown, re.MULTILINE)


def test_rule_and_fix_spell_signs_in_ascii() -> None:
    assert Failure("a-case", "FAILED", "", "It returned aa·a.").reprcrash.message.isascii()
    bug = Bug("a-bug", "Joins aa·a.", "Write aa, …, not aa·a.", "MERGE-ID-2")
    lines = list(Failure("a-case", "FAILED", "", "It failed.", rule="Ids of 2²⁰ and more.", bugs=(bug,)).lines())
    assert lines[-3:] == [
        "  rule       Ids of 2^20 and more.",
        "  likely     a-bug",
        "  fix        Write aa, ..., not aa|a.",
    ]


@pytest.mark.parametrize("length", [1, 400, 401])
def test_a_counterexample_is_shown_unless_a_line_is_too_long_and_its_file_is_named(length: int) -> None:
    case = "\n".join(letter * length for letter in "abc")
    shown = list(Failure("a-case", "FAILED", "", "It failed.", case=case, file="cases/x.yaml").lines())
    rows = case.split("\n") if length <= 400 else ["too long for a terminal; a report contains it"]
    assert [line[13:] for line in shown[3:-1]] == rows
    assert shown[-1] == "  written to cases/x.yaml"


@pytest.mark.parametrize("area", AREAS)
def test_a_caret_is_under_the_first_difference(area: str, found: Mapping[str, Failure]) -> None:
    rows = found[area].evidence
    for (label, above), (pointer, text) in pairwise(rows):
        if pointer == POINTER:
            assert label == "got"
            right = next(text for name, text in rows if name == "expected")
            column = text.index("^")
            cut = [line[:column].replace(" ", "").rstrip("|") for line in (right, above)]
            assert cut[0] == cut[1]
            return


@pytest.mark.parametrize("length", [1, 5, 40])
@pytest.mark.parametrize("place", [0, 4, 39])
def test_rows_fit_whatever_their_length(length: int, place: int) -> None:
    right = [f"{number}{'x' * length}" for number in range(40)]
    got = [*right[:place], "y" * length, *right[place + 1 :]]
    ids = (list(range(40)), list(range(100_000, 100_040)))
    rows = dict(aligned(right, got, place, "a note " * 20, ids))
    assert max(len(line) for text in rows.values() for line in text.splitlines()) <= WIDTH - 13
    assert rows["got"][rows[POINTER].index("^") :].startswith("y")


@pytest.mark.parametrize(
    ("kind", "command", "rerun", "explain"),
    [
        ("case", Command("a:B", {"--bpe-pack": "p"}), "a:B --bpe-pack p --bpe-case x", "explain x --pack p"),
        ("case", Command("a:B", {"--bpe-spec": "s"}), "a:B --bpe-spec s --bpe-case x", "explain x --spec s"),
        ("corpus", Command("a:B", corpora=("book.txt",)), "a:B --bpe-corpus book.txt -k x", ""),
    ],
)
def test_commands_name_what_holds_the_test(kind: Any, command: Command, rerun: str, explain: str) -> None:
    case = cases()["merge-priority-beats-leftmost"]
    asked = Question(Encode("abc"), case.model)
    mismatch = Mismatch(asked, Expectation((Unchanged(),)), Changed((LOCALE,)))
    shown = describe(replace(outcome(case, mismatch), test="x", kind=kind), command)
    assert shown.rerun == f"pytest conformance --adapter {rerun}"
    assert shown.explain == (f"bpe-conformance {explain}" if explain else "")


class Writer:
    """Records the text and the markup written to a terminal."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, bool, bool]] = []

    def line(self, text: str, red: bool = False, bold: bool = False) -> None:
        self.lines.append((text, red, bold))


def test_the_heading_and_the_pointer_are_red(found: Mapping[str, Failure]) -> None:
    writer = Writer()
    found["merge-order"].toterminal(writer)
    assert [text for text, _, _ in writer.lines] == list(found["merge-order"].lines())
    red = [(text, bold) for text, is_red, bold in writer.lines if is_red]
    assert [(text.split()[0], bold) for text, bold in red] == [("FAILED", True), ("^^", False)]


TEST = "merge-priority-beats-leftmost"


def changed(**fields: Any) -> Outcome:
    """Return the outcome of a failing case with other fields."""
    case = cases()[TEST]
    asked = Question(Encode("abc"), case.model)
    return replace(outcome(case, Mismatch(asked, Expectation((Unchanged(),)), Changed((LOCALE,)))), **fields)


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        *((kind, "stderr") for kind in ("CrashError", "HangError", "OutOfMemoryError", PROTOCOL_ERROR)),
        (TIMED_OUT, "stopped at"),
        (MALFORMED, "raised in"),
    ],
)
def test_the_end_of_what_a_program_printed_is_not_where_an_error_was_raised(kind: str, label: str) -> None:
    case = cases()[TEST]
    asked = Question(Encode("abc"), case.model)
    wrong = Mismatch(asked, Expectation((Ids((1,)),)), Fault(kind, "it failed", ("a line",)))
    shown = describe(outcome(case, wrong), COMMAND)
    assert [name for name, text in shown.evidence if "a line" in text] == [label]


def test_a_convention_or_a_bug_that_explains_a_failure_is_shown() -> None:
    cause = ConventionCause((("lookup", "bytes"), ("tie_break", "first-seen")), (TEST,))
    shown = " ".join(str(describe(changed(), COMMAND, Diagnosis((cause,), (TEST,)))).split())
    assert "convention the answer is correct under lookup=bytes and tie_break=first-seen; if you intend this" in shown
    bugs = tuple(replace(BUGS[0], id=f"bug-{number}") for number in range(5))
    shown = str(describe(changed(), COMMAND, Diagnosis((BugCause(bugs, (TEST,)),), (TEST,))))
    assert "  likely     bug-0 (also fits: bug-1, bug-2)\n" in shown
    part = replace(COMMAND, selecting=("--bpe-case", TEST))
    for count, also in ((2, "also fits: bug-1"), (3, "also fits: bug-1, bug-2"), (4, "3 others fit, too")):
        shown = str(describe(changed(), part, Diagnosis((BugCause(bugs[:count], (TEST,)),), (TEST,))))
        assert f"  likely     bug-0 ({also}; a whole run tells them apart)\n" in shown
    assert "bug-0" not in str(describe(changed(), COMMAND, Diagnosis((BugCause(bugs, ("other",)),), (TEST,))))


@pytest.mark.parametrize(
    ("state", "label"), [("failed", "FAILED"), ("known failure", "FAILED"), ("warning", "WARNING")]
)
def test_a_heading_says_how_much_a_failure_counts(state: State, label: str) -> None:
    assert str(describe(changed(state=state), COMMAND)).startswith(f"{label} {TEST} [MERGE-ORDER-1, MUST]\n")
    assert str(describe(changed(state=state, clause=None), COMMAND)).startswith(f"{label} {TEST}\n")


def test_a_counterexample_in_a_file_is_run_from_there() -> None:
    shown = describe(changed(kind="property", file="found/cases/law-x-1.yaml", examples=2), COMMAND)
    assert shown.rerun == "pytest conformance --adapter mytok:Tokenizer --bpe-spec found --bpe-case law-x-1"
    assert ("found by", "2 examples; this is the smallest that fails") in shown.evidence
    assert "found by" not in dict(describe(changed(kind="property", examples=1), COMMAND).evidence)


@pytest.mark.parametrize(
    ("cause", "ranks"),
    [
        (WrongMerge(Pair((b"a", b"b"), 20, 0), Pair((b"a", b"b"), 30, 1)), {20, 30}),
        (WrongMerge(None, Pair((b"a", b"b"), 30, 1)), {30}),
        (PreTokenCut("abc", 1, Pair((b"a", b"b"), 25, 0)), {25}),
    ],
)
def test_merges_of_any_rank_that_explain_a_failure_are_shown(cause: Any, ranks: set[int]) -> None:
    model = Model({byte: bytes([byte]) for byte in range(256)}, ((b"a", b"b"),) * 40)
    wrong = Mismatch(
        Question(Encode("abc"), model), Expectation((Ids((97, 98, 99)),)), Ids((98,)), EncodingDivergence(0, 0, cause)
    )
    shown = dict(describe(changed(mismatch=wrong), COMMAND).evidence)["merges"]
    assert {int(rank) for rank in re.findall(r"\b(\d+): ", shown) if int(rank) > 12} == {
        near for rank in ranks for near in (rank - 1, rank, rank + 1)
    }


def test_only_a_case_is_explained_under_the_declared_convention() -> None:
    command = Command("a:B", conventions={**DEFAULTS, "tie_break": "first-seen"})
    wrong = Mismatch(Question(Train("ab", 300), None), Expectation((Unchanged(),)), Changed((LOCALE,)))
    for kind, view in (("case", " --tie-break first-seen"), ("property", "")):
        shown = describe(changed(test="x", kind=kind, mismatch=wrong), command)
        assert shown.explain == f"bpe-conformance explain x{view}"


@pytest.mark.parametrize(("pattern", "shown"), [("gpt2", "x"), ("none", "MERGE-ORDER-1")])
def test_a_case_whose_value_is_of_another_split_is_explained_by_its_clause(pattern: str, shown: str) -> None:
    command = Command("a:B", conventions={**DEFAULTS, "pattern": pattern})
    wrong = Mismatch(Question(Train("ab", 300), None), Expectation((Unchanged(),)), Changed((LOCALE,)))
    assert describe(changed(test="x", mismatch=wrong), command).explain == f"bpe-conformance explain {shown}"


@pytest.mark.parametrize(
    ("fields", "program"),
    [({}, TEST), ({"kind": "property", "file": "found/cases/law-x-1.yaml"}, "law-x-1"), ({"kind": "corpus"}, "")],
)
def test_a_long_program_is_in_a_file_that_is_named_as_the_test_or_the_case(
    fields: dict[str, Any], program: str, tmp_path: Path
) -> None:
    wrong = Mismatch(Question(Encode("a" * 999), cases()[TEST].model), Expectation((Unchanged(),)), Changed((LOCALE,)))
    made = replace(result(), command=Command("a:B"), programs=tmp_path)
    shown = for_terminal(changed(mismatch=wrong, **fields), made).reproduce
    assert shown == (f"python {tmp_path / program}.py" if program else "")
    assert [file.stem for file in tmp_path.iterdir()] == ([program] if program else [])


def test_where_a_test_passes_alone_only_failures_with_a_cause_have_a_program(tmp_path: Path) -> None:
    wrong = Mismatch(Question(Encode("a"), cases()[TEST].model), Expectation((Unchanged(),)), Changed((LOCALE,)))
    explained, unexplained = (changed(test=test, mismatch=wrong) for test in ("one", "two"))
    diagnosis = Diagnosis((greedy(["one"]),), ("one", "two"), passes_alone="two")
    made = replace(result(diagnosis=diagnosis), command=Command("a:B"), programs=tmp_path)
    assert for_terminal(explained, made).reproduce
    assert not for_terminal(unexplained, made).reproduce


@pytest.mark.parametrize("length", [1, 200, 255, 300])
def test_a_brief_rule_ends_with_a_sentence(length: int) -> None:
    first, second, third = "An id MUST exist.", f"Otherwise {'x' * length}.", "`b` is next."
    failure = Failure("a-case", "FAILED", "", "It failed.", rule=f"{first} {second} {third}", case="id: x")
    shown = failure.brief()
    assert shown.case == ""
    is_short = length < 255
    assert shown.rule.startswith(first)
    assert (second in shown.rule) is is_short
    assert len(shown.rule) <= 300
    assert shown.rule.endswith(" ...") is (third not in shown.rule)


def rows_of(right: list[str], got: list[str], place: int) -> list[str]:
    return [text for _, text in aligned(right, got, place, "here")]


@pytest.mark.parametrize("count", [7, 8, 9])
def test_dots_stand_for_cells_beside_a_window(count: int) -> None:
    cells = [str(number) for number in range(count)]
    right, got, caret = rows_of(["x", *cells[1:]], cells, 0)
    assert right.endswith("...") is got.endswith("...") is (count > 8)
    assert caret == "^ here"
    right, got, caret = rows_of([*cells[:-1], "x"], cells, count - 1)
    assert got.split(" | ") == ["...", *cells[-4:]]
    assert caret.index("^") == got.index(cells[-1])


@pytest.mark.parametrize(("right", "got"), [(20, 3), (3, 20), (3, 0), (0, 3)])
def test_rows_of_different_lengths_end_where_they_do(right: int, got: int) -> None:
    rows = rows_of(["a"] * right, ["b"] * got, 0)
    for row, count, cell in zip(rows, (right, got), "ab", strict=False):
        assert row.split(" | ") == ([cell] * min(count, 8) + ["..."] * (count > 8) or ["none"])


@pytest.mark.parametrize(("length", "is_cut"), [(27, False), (28, False), (29, True), (50, True)])
def test_a_long_cell_is_cut_in_its_middle(length: int, is_cut: bool) -> None:
    cell = f"<{'x' * (length - 2)}>"
    _, got, _ = rows_of(["a"], [cell], 0)
    assert (len(got) == 27 and "..." in got) if is_cut else got == cell
    assert got[0] + got[-1] == "<>"


def test_a_note_without_room_is_below_the_caret() -> None:
    for length, lines in ((WIDTH - 15, 1), (WIDTH - 14, 2)):
        _, _, pointer = [text for _, text in aligned(["a"], ["b"], 0, "n" * length)]
        assert len(pointer.splitlines()) == lines


def test_rows_that_are_only_missing_are_counted_and_not_compared() -> None:
    model = cases()[TEST].model
    right = Rows(((97,), (98,)))
    for rows, labels in ((((97,),), ["expected", "got"]), (((99,),), ["text", "expected", "got", POINTER])):
        mismatch = Mismatch(Question(Batch(("a", "b")), model), Expectation((right,)), Rows(rows))
        shown = [row for row in describe(outcome(cases()[TEST], mismatch), COMMAND).evidence if row[0] != "merges"]
        assert [label for label, _ in shown] == labels
    assert dict(shown)["text"] == "'a' (row 0)"


def test_an_entry_that_only_the_answer_has_is_shown() -> None:
    right, wrong = Table({256: b"ab"}, ()), Table({256: b"ab", 300: b"x"}, ())
    mismatch = Mismatch(Question(Train("ab", 300), None), Expectation((right,)), wrong)
    shown = dict(describe(outcome(cases()[TEST], mismatch), COMMAND).evidence)
    assert (shown["expected"], shown["got"]) == ("300: no entry", "300: 'x'")


def test_a_text_is_compared_near_the_first_difference() -> None:
    right, wrong = Text("a" * 100 + "b" + "c" * 100), Text("a" * 100 + "x" + "c" * 100)
    mismatch = Mismatch(
        Question(Decode((97,)), cases()[TEST].model), Expectation((right,)), wrong, TextDivergence(100, b"\xe2")
    )
    shown = dict(describe(outcome(cases()[TEST], mismatch), COMMAND).evidence)
    column = shown[POINTER].index("^")
    assert (shown["expected"][column], shown["got"][column]) == ("b", "x")
    assert shown[POINTER].endswith("^ character 100, from the byte e2 (hex)")
