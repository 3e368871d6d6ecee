"""The text of one failure: the fact, tokens aligned, the rule, the likely bug, and the commands that ask again."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from bpe_conformance.fixtures import Model

from ..outcome import EncodingDivergence, Fault, Ids, Mismatch, Outcome, Refusal, RowDivergence, Rows
from ..run_result import Bug, Command
from . import reproduce, show, wording

WIDTH = 100
BEFORE = 3
"""Tokens that are shown before the first that differs."""
MOST_TOKENS = 8
NAMES = 3
"""Known bugs that are named for one failure."""


@dataclass(frozen=True)
class Failure:
    """The words of one failure, part by part.

    Attributes:
        test: the id of the case or property.
        label: `FAILED`, or `WARNING` for a SHOULD.
        clause: its id and level, or "".
        fact: what the implementation did, in one sentence.
        evidence: (label, text) rows: merges, expected, got, and what else shows the failure. The text of `got` may have
            a second line, which points at the first difference.
        rule: the statement of the clause.
        bugs: the known bugs that explain it, the most likely one first.
        depends_on: the other part of the implementation that is at fault, or "".
        conventions: what to declare, if the answer is correct under other conventions, or "".
        case: a golden case in YAML that fails in the same way, or "".
        reproduce: Python without the suite, or "".
        rerun: the command that runs this test alone.
        explain: the command that explains it, or "".
    """

    test: str
    label: str
    clause: str
    fact: str
    evidence: tuple[tuple[str, str], ...] = ()
    rule: str = ""
    bugs: tuple[Bug, ...] = ()
    depends_on: str = ""
    conventions: str = ""
    case: str = ""
    reproduce: str = ""
    rerun: str = ""
    explain: str = ""
    error: str = field(default="", repr=False)

    @property
    def heading(self) -> str:
        """The first line."""
        return f"{self.label} {self.test}" + (f" [{self.clause}]" if self.clause else "")

    def lines(self) -> Iterator[str]:
        """Yield the lines of the whole failure, in visible ASCII."""
        yield from map(show.ascii_only, self._lines())

    def _lines(self) -> Iterator[str]:
        yield self.heading
        yield from textwrap.wrap(self.fact, WIDTH) or [""]
        if self.error:
            yield from self.error.splitlines()
            return
        yield ""
        for name, text in self.evidence:
            yield from _row(name, text)
        if self.depends_on:
            yield from _row("depends on", self.depends_on, wrap=True)
        if self.conventions:
            yield from _row("consistent", self.conventions, wrap=True)
        yield ""
        yield from _row("rule", self.rule, wrap=True)
        if self.bugs:
            first, *others = self.bugs
            also = ", ".join(bug.id for bug in others[: NAMES - 1])
            yield from _row("likely", first.id + (f" (also fits: {also})" if also else ""))
            yield from _row("fix", first.fix, wrap=True)
        if self.case:
            yield from _row("as a case", self.case)
        yield ""
        for name, text in (("reproduce", self.reproduce), ("rerun", self.rerun), ("explain", self.explain)):
            if text:
                yield from _row(name, text)


def _row(name: str, text: str, wrap: bool = False) -> Iterator[str]:
    lines = textwrap.wrap(text, WIDTH - 13) if wrap else text.splitlines()
    for number, line in enumerate(lines or [""]):
        yield f"  {name if number == 0 else '':<10} {line}".rstrip()


class FailureRepr:
    """A failure as pytest shows it: whole among the failures, one line in the short summary."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        self.reprcrash = SimpleNamespace(message=show.ascii_only(failure.fact))

    def __str__(self) -> str:
        return "\n".join(self.failure.lines())

    def toterminal(self, writer: Any) -> None:
        """Print the whole text, the heading and the caret in colour where pytest uses colour."""
        for number, line in enumerate(self.failure.lines()):
            caret = line.lstrip().startswith("^")
            writer.line(line, red=number == 0 or caret, bold=number == 0)


def describe(outcome: Outcome, command: Command, bugs: tuple[Bug, ...] = ()) -> Failure:
    """Return the words of a failure.

    Args:
        outcome: what failed: it has a mismatch, is stale, or is an error of the suite.
        command: how the user named the implementation.
        bugs: the known bugs that explain it, the most likely one first.
    """
    clause = f"{outcome.clause.id}, {outcome.clause.level.upper()}" if outcome.clause else ""
    label = "WARNING" if outcome.state == "warning" else "FAILED"
    rerun = command.rerun(outcome.test)
    if outcome.stale:
        fact = f"It is listed as a known failure ({outcome.reason}), and passes. Remove it from the list."
        return Failure(outcome.test, label, clause, fact, rerun=rerun)
    found = outcome.mismatch
    if found is None:
        return Failure(outcome.test, "ERROR", clause, "The suite itself failed; please report it.", error=outcome.error)
    statement = outcome.clause.statement if outcome.clause else ""
    return Failure(
        outcome.test,
        label,
        clause,
        wording.fact(found),
        tuple(_evidence(found, outcome)),
        statement,
        bugs,
        wording.dependence(found.depends_on) if found.depends_on else "",
        _conventions(found),
        outcome.case,
        reproduce.in_python(found.asked, command.importable, "--bpe-trainer" in command.options) or "",
        rerun,
        f"bpe-conformance explain {outcome.test}" if outcome.kind != "corpus" else "",
    )


def _conventions(found: Mismatch) -> str:
    if not found.conventions:
        return ""
    shown = " or ".join(" and ".join(f"{name}={value}" for name, value in one) for one in found.conventions)
    return f"the answer is correct under {shown}; if that is intended, declare it"


def _evidence(found: Mismatch, outcome: Outcome) -> Iterator[tuple[str, str]]:
    table = wording.table(found.asked.model)
    if table:
        yield "merges", table
    if isinstance(found.answer, Ids) and isinstance(found.divergence, EncodingDivergence):
        yield from _aligned(found, found.answer, found.divergence, found.asked.model)
    elif isinstance(found.answer, Rows) and isinstance(found.divergence, RowDivergence):
        yield from _aligned_row(found, found.answer, found.divergence)
    else:
        yield "expected", wording.expectation(found)
        yield "got", wording.answer(found)
        if where := wording.divergence(found):
            yield "first", where
    if isinstance(found.answer, Refusal | Fault) and found.answer.traceback:
        yield "raised in", "\n".join(found.answer.traceback)
    if outcome.examples > 1:
        yield "found by", f"{outcome.examples} examples; this is the smallest that fails"


def _aligned(found: Mismatch, answer: Ids, where: EncodingDivergence, model: Model | None) -> Iterator[tuple[str, str]]:
    right = next((one for one in found.expected.alternatives if isinstance(one, Ids)), None)
    if right is None:
        yield "expected", wording.expectation(found)
        yield "got", wording.answer(found)
        return
    if found.expected.source:
        yield "expected", f"the answer of {found.expected.source}:"
    yield from _columns(right.ids, answer.ids, where.token, model, wording.pointer(where))


def _aligned_row(found: Mismatch, answer: Rows, where: RowDivergence) -> Iterator[tuple[str, str]]:
    right = next(one for one in found.expected.alternatives if isinstance(one, Rows))
    if where.row >= min(len(right.rows), len(answer.rows)):
        yield "expected", f"{len(right.rows)} rows"
        yield "got", f"{len(answer.rows)} rows"
        return
    texts = found.asked.input["texts"]
    yield "text", f"{show.text_line(texts[where.row])} (row {where.row})"
    note = f"row {where.row}, token {where.token}"
    yield from _columns(right.rows[where.row], answer.rows[where.row], where.token, found.asked.model, note)


def _columns(
    right: Sequence[int], got: Sequence[int], place: int, model: Model | None, note: str
) -> Iterator[tuple[str, str]]:
    """Yield two rows of tokens with equal columns, and a caret under the first that differs."""
    vocab = model.vocab if model is not None else {}
    start = max(0, place - BEFORE)
    rows = [[_cell(index, vocab) for index in ids[start : start + MOST_TOKENS]] for ids in (right, got)]
    columns = max(map(len, rows))
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(columns)]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)) for row in rows]
    head = "... | " if start else ""
    tails = [" | ..." if start + MOST_TOKENS < len(ids) else "" for ids in (right, got)]
    full = [head + line + tail for line, tail in zip(lines, tails, strict=True)]
    width = max(map(len, full))
    ids = [show.numbers(ids[start : start + MOST_TOKENS]) for ids in (right, got)]
    here = place - start
    column = len(head) + sum(width + 3 for width in widths[:here])
    cell = rows[1][here] if here < len(rows[1]) else ""
    caret = " " * column + "^" * max(1, len(cell)) + (f" {note}" if note else "")
    yield "expected", f"{full[0]:<{width}}   {ids[0]}"
    yield "got", f"{full[1]:<{width}}   {ids[1]}\n{caret}"


def _cell(index: int, vocab: Any) -> str:
    if index not in vocab:
        return "?"
    shown = show.token(vocab[index])
    plain = shown[1:-1]
    return plain if shown[:1] == "'" and plain and plain.isalnum() else shown
