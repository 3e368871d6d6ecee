"""The text of one failure: the fact, tokens aligned, the rule, the likely bug, and commands that repeat the call."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bpe_conformance.fixtures import Model
from bpe_conformance.fixtures.one_line import ascii_only, plural

from .. import answer as answers
from ..outcome import PROCESS_FAILED, Bug, BugCause, Command, ConventionCause, Diagnosis, Mismatch, Outcome, RunResult
from . import reproduce, show, wording

WIDTH = 100
LABEL = 13  # columns before the text of a row
ROOM = WIDTH - LABEL
MOST_ENTRIES = 6
WINDOWS = ((3, 8), (3, 7), (3, 6), (2, 5), (2, 4), (1, 3), (1, 2), (0, 1))  # cells before the difference, and in total
LONGEST_CELL = 28
LONGEST_RULE = 260  # characters of a rule in its short form, unless its first sentence is longer
LONGEST_CASE = 400  # characters of a line of a counterexample as a golden case
NAMES = 3  # how many known bugs one failure names
POINTER = ""  # the label of a row that points to the row above
STYLES: dict[str, dict[str, bool]] = {  # style of a line → the markup for pytest's terminal, if it uses colour
    "heading": {"red": True, "bold": True},
    "pointer": {"red": True},
    "cause": {"bold": True},
    "": {},
}


@dataclass(frozen=True)
class Failure:
    """The text of one failure, in parts. It is also what pytest takes as the representation of a failure."""

    test: str  # the id of the case or property
    label: str  # `FAILED`, or `WARNING` for a SHOULD
    clause: str  # its id and level, or ""
    fact: str  # what the implementation did, in one sentence
    evidence: tuple[tuple[str, str], ...] = ()  # (label, text) rows: merges, expected, got, and what else shows it
    tests: str = ""  # what the test tests, in one sentence
    rule: str = ""  # the statement of the clause
    bugs: tuple[Bug, ...] = ()  # the known bugs that explain it, the most likely one first
    is_part: bool = False  # whether only a part of the suite ran, which leaves more bugs possible
    depends_on: str = ""  # the other part of the implementation that is at fault, or ""
    conventions: str = ""  # what to declare, if the answer is correct under other conventions, or ""
    case: str = ""  # a golden case in YAML that fails in the same way, or ""
    file: str = ""  # the file with this case, or ""
    reproduce: str = ""  # Python without the suite, or ""
    rerun: str = ""  # the command that runs this test alone
    explain: str = ""  # the command that explains it, or ""
    error: str = field(default="", repr=False)  # the traceback of an error of the suite itself, or ""

    def brief(self) -> Failure:
        """Return the text without the counterexample as a golden case, and with the first sentences of a long rule."""
        return replace(self, case="", rule=_first_sentences(self.rule))

    @property
    def reprcrash(self) -> SimpleNamespace:
        """The failure in one line, for pytest's short summary and JUnit XML."""
        return SimpleNamespace(message=ascii_only(self.fact))

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def toterminal(self, writer: Any) -> None:
        for line, style in self.styled():
            writer.line(line, **STYLES[style])

    def lines(self) -> Iterator[str]:
        return (line for line, _ in self.styled())

    def styled(self) -> Iterator[tuple[str, str]]:
        """Yield the lines, in visible ASCII, each with its style: `heading`, `pointer` or ""."""
        heading = f"{self.label} {self.test}" + (f" [{self.clause}]" if self.clause else "")
        yield ascii_only(heading), "heading"
        for line in [*_wrapped(self.fact, WIDTH).splitlines(), *self.error.splitlines()]:
            yield ascii_only(line), ""
        yield from _block(self.evidence)
        prose = {"tests": show.prose(self.tests), "rule": show.prose(self.rule)}
        wrapped = {"depends on": self.depends_on, "convention": self.conventions, **prose}
        rows = [(name, _wrapped(text)) for name, text in wrapped.items() if text]
        if self.bugs:
            first, *others = self.bugs
            also = f"also fits: {', '.join(bug.id for bug in others[: NAMES - 1])}"
            if self.is_part:
                also = also if len(others) < NAMES else f"{len(others)} others fit, too"
                also += "; a whole run tells them apart"
            rows.append(("likely", first.id + (f" ({also})" if others else "")))
            rows.append(("fix", _wrapped(show.prose(first.fix))))
        if self.case:
            fits = max(map(len, self.case.splitlines())) <= LONGEST_CASE
            rows.append(("as a case", self.case if fits else "too long for a terminal; a report contains it"))
        if self.file:
            rows.append(("written to", self.file))
        commands = (("reproduce", self.reproduce), ("rerun", self.rerun), ("explain", self.explain))
        yield from _block([*rows, *((name, text) for name, text in commands if text)])


def _wrapped(text: str, width: int = ROOM, indent: str = "") -> str:
    return "\n".join(textwrap.wrap(ascii_only(text), width, subsequent_indent=indent, break_on_hyphens=False))


def _block(rows: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    if rows:
        yield "", ""
    for name, text in rows:
        for number, line in enumerate(text.splitlines() or [""]):
            shown = f"  {name if number == 0 else '':<{LABEL - 3}} {line}".rstrip()
            yield ascii_only(shown), "pointer" if name == POINTER else ""


def describe(outcome: Outcome, command: Command, diagnosis: Diagnosis | None = None) -> Failure:
    clause = f"{outcome.clause.id}, {outcome.clause.level.upper()}" if outcome.clause else ""
    label = "WARNING" if outcome.state == "warning" else "FAILED"
    is_corpus = outcome.kind == "corpus"
    rerun = command.rerun(outcome)
    if outcome.stale:
        fact = f"It is listed as a known failure ({outcome.reason}), but it passes. Remove it from the list."
        return Failure(outcome.test, label, clause, fact, rerun=rerun)
    if (found := outcome.mismatch) is None:
        fact = "The suite itself failed; please report it."
        return Failure(outcome.test, "ERROR", clause, fact, rerun=rerun, error=outcome.error)
    statement = outcome.clause.under(command.conventions) if outcome.clause else ""
    cause = diagnosis.cause_of(outcome.test) if diagnosis is not None else None
    explained = (outcome.kind == "property" and found.clause_id) or outcome.test
    operation = found.asked.operation if outcome.kind == "case" else None
    is_split_otherwise = command.conventions.get("pattern", "gpt2") != "gpt2" and found.asked.pattern == "gpt2"
    if outcome.clause and operation is not None and is_split_otherwise and "--bpe-pack" not in command.options:
        explained, operation = outcome.clause.id, None  # the explanation of the case has the values of GPT-2's split
    return Failure(
        outcome.test,
        label,
        clause,
        wording.fact(found),
        tuple(_evidence(found, outcome)),
        outcome.title if outcome.clause else "",
        statement,
        cause.bugs if isinstance(cause, BugCause) else (),
        bool(command.selecting),
        wording.dependence(found.depends_on) if found.depends_on else "",
        _conventions(cause) if isinstance(cause, ConventionCause) else "",
        outcome.case,
        outcome.file,
        reproduce.one_line(found.asked, command, reproduce.entries(found)),
        rerun,
        "" if is_corpus else command.explain(explained, operation),
    )


def for_terminal(outcome: Outcome, result: RunResult, diagnosis: Diagnosis | None = None) -> Failure:
    """Describe a failure; a long program is in a file, and there is none if earlier calls change the answer."""
    failure = describe(outcome, result.command, diagnosis)
    if result.diagnosis.passes_alone and result.diagnosis.cause_of(outcome.test) is None:
        return replace(failure, reproduce="")
    if failure.reproduce or outcome.mismatch is None or outcome.kind == "corpus":
        return failure
    name = Path(outcome.file).stem if outcome.file else outcome.test
    found = outcome.mismatch
    return replace(failure, reproduce=reproduce.save(found.asked, name, result, reproduce.entries(found)))


def _first_sentences(rule: str) -> str:
    shown, *rest = re.split(r"(?<=\.) (?=[A-Z`])", rule)
    while rest and len(shown) + len(rest[0]) < LONGEST_RULE:
        shown += f" {rest.pop(0)}"
    return f"{shown} ..." if rest else shown


def _conventions(cause: ConventionCause) -> str:
    shown = " and ".join(f"{name}={value}" for name, value in cause.conventions)
    return f"the answer is correct under {shown}; if you intend this, declare it"


def _evidence(mismatch: Mismatch, outcome: Outcome) -> Iterator[tuple[str, str]]:
    yield from wording.setting(mismatch.asked, _ranks(mismatch), ROOM)
    if mismatch.expected.source:
        yield "compared", f"with {mismatch.expected.source}"
    if not (rows := list(_compared(mismatch))):
        rows = [("expected", _wrapped(wording.expectation(mismatch)))]
        if not isinstance(mismatch.answer, answers.Refusal | answers.Fault | answers.Accepted):
            rows.append(("got", _wrapped(wording.value(mismatch.answer, mismatch))))
    yield from rows
    if isinstance(mismatch.answer, answers.Refusal | answers.Fault) and mismatch.answer.traceback:
        labels = {answers.TIMED_OUT: "stopped at", **dict.fromkeys(PROCESS_FAILED, "stderr")}
        label = labels.get(mismatch.answer.kind, "raised in")
        yield label, "\n".join(_wrapped(line, indent="  ") for line in mismatch.answer.traceback)
    if mismatch.others:
        yield "also", _wrapped(wording.others(mismatch), indent="  ")
    if outcome.examples > 1:
        yield "found by", f"{outcome.examples:,} examples; this is the smallest that fails"


def _ranks(mismatch: Mismatch) -> list[int]:
    match mismatch.divergence:
        case answers.EncodingDivergence(cause=answers.WrongMerge(used, available)):
            return [one.rank for one in (used, available) if one is not None]
        case answers.EncodingDivergence(cause=answers.PreTokenCut(_, _, missing)):
            return [missing.rank]
    return []


def _compared(mismatch: Mismatch) -> Iterator[tuple[str, str]]:
    """Yield the correct answer above the incorrect one, aligned, or nothing if they cannot be aligned."""
    answer, where, model = mismatch.answer, mismatch.divergence, mismatch.asked.model
    right: Any = wording.expected_of(mismatch, type(answer))
    if right is None:
        return
    match answer, where:
        case ((answers.Ids(ids) | answers.Offsets(ids)), answers.EncodingDivergence(position)):
            note = wording.pointer(where) + wording.cut_inside(mismatch.asked, where, right.ids)
            yield from _tokens(right.ids, ids, position, model, note)
        case answers.Ids(ids), _:
            position = answers.first_difference(right.ids, ids)
            yield from _tokens(right.ids, ids, position, model, f"token {position}")
        case answers.Rows(rows), _ if rows[: len(right.rows)] != right.rows[: len(rows)]:
            row = answers.first_difference(right.rows, rows)
            yield "text", f"{show.text_line(mismatch.asked.operation.batch[row], ROOM // 2)} (row {row})"
            token = answers.first_difference(right.rows[row], rows[row])
            yield from _tokens(right.rows[row], rows[row], token, model, f"row {row}, token {token}")
        case answers.Offsets(ids, spans), answers.SpanDivergence(token):
            first, second = (
                [f"{show.cell(index, model)} {show.span(span)}" for index, span in zip(ids, one, strict=False)]
                for one in (right.spans, spans)
            )
            yield from aligned(first, second, token, f"token {token}")
        case answers.Table(vocab, merges), answers.TrainingDivergence() | None:
            first, second = ([show.joined(merge) for merge in one] for one in (right.merges, merges))
            if where is not None:
                yield from aligned(first, second, where.step, wording.training_pointer(mismatch, where))
            elif first != second:
                position = answers.first_difference(right.merges, merges)
                yield from aligned(first, second, position, f"merge {position + 1}")
            else:
                yield from _entries(right.vocab, vocab)
        case answers.Text(text), answers.TextDivergence(character, data):
            shown, column = show.text_near(text, character)
            source = f", from the {plural(len(data), 'byte', 'bytes')} {show.hex_line(data)} (hex)" if data else ""
            yield "expected", show.text_near(right.text, character)[0]
            yield "got", shown
            yield POINTER, _pointed(column, 1, f"character {character}{source}")
        case answers.Bytes(data), answers.ByteDivergence(byte):
            first, second = ([f"{one:02x}" for one in some] for some in (right.data, data))
            yield from aligned(first, second, byte, f"byte {byte}", between=" ")


def _entries(right: Mapping[int, bytes], got: Mapping[int, bytes]) -> Iterator[tuple[str, str]]:
    differing = [index for index in sorted({*right, *got}) if right.get(index) != got.get(index)][:MOST_ENTRIES]
    for label, entries in (("expected", right), ("got", got)):
        shown = (f"{index}: {show.token(entries[index]) if index in entries else 'no entry'}" for index in differing)
        yield label, "   ".join(shown)


def _tokens(
    right: Sequence[int], got: Sequence[int], position: int, model: Model | None, note: str
) -> Iterator[tuple[str, str]]:
    first, second = ([show.cell(index, model) for index in ids] for ids in (right, got))
    yield from aligned(first, second, position, note, (right, got))


def aligned(
    right: Sequence[str],
    got: Sequence[str],
    position: int,
    note: str,
    ids: tuple[Sequence[int], Sequence[int]] | None = None,
    between: str = " | ",
) -> Iterator[tuple[str, str]]:
    """Yield two rows of cells with equal columns, and a caret under the first that differs."""
    for before, most in WINDOWS:
        start = max(0, position - before)
        rows = [[_short(cell) for cell in cells[start : start + most]] for cells in (right, got)]
        widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(max(map(len, rows)))]
        head = f"...{between}" if start else ""
        tails = [f"{between}..." if start + most < len(cells) else "" for cells in (right, got)]
        padded = (between.join(map(str.ljust, row, widths)) for row in rows)
        lines = [head + row + tail for row, tail in zip(padded, tails, strict=True)]
        if ids is not None:
            width = max(map(len, lines))
            numbers = [show.numbers(one[start : start + most]) for one in ids]
            lines = [f"{line:<{width}}   {number}" for line, number in zip(lines, numbers, strict=True)]
        if max(map(len, lines)) <= ROOM:
            break
    here = position - start
    column = len(head) + sum(width + len(between) for width in widths[:here])
    yield "expected", lines[0].rstrip() or "none"
    yield "got", lines[1].rstrip() or "none"
    yield POINTER, _pointed(column, len(rows[1][here]) if here < len(rows[1]) else 1, note)


def _short(cell: str) -> str:
    return cell if len(cell) <= LONGEST_CELL else f"{cell[: LONGEST_CELL // 2 - 2]}...{cell[2 - LONGEST_CELL // 2 :]}"


def _pointed(column: int, width: int, note: str) -> str:
    """Return a caret in a column, with a note beside it or, if there is no room, below it."""
    caret = " " * column + "^" * max(1, width)
    if not note or len(caret) + 1 + len(note) <= ROOM:
        return f"{caret} {note}".rstrip()
    below = textwrap.wrap(note, ROOM)
    indent = min(column, ROOM - max(map(len, below)))
    return "\n".join([caret, *(" " * indent + line for line in below)])
