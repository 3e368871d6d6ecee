"""The suite's pytest items: one for each golden case, law and corpus."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bpe_conformance.fixtures.spec import Case, Clause

from ..cases import judging
from ..cases.difference import DISTURBED, TIMED_OUT, Difference
from ..implementation import environment, output
from ..implementation.containment import TimedOut, describe
from ..plugin import RUN
from ..properties.engine import Law, check, skip_reason
from ..terminal import failure
from ..terminal.show import ascii_only

if TYPE_CHECKING:
    from .run import Run

LARGE_PATIENCE = 6
"""How many times longer a case with a large table may take: simple encoders walk through all of its merges."""


UNDISTURBED = "ERROR-STATE-3"
"""The clause that the surroundings of every item are judged by."""


class Failed(Exception):
    """A case does not hold. The message is what the user reads."""


class Suite(pytest.Directory):
    """The installed suite, in place of its folder."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield what the options select, in the order of the spec; for pytest-xdist, the laws among the cases."""
        run = self.config.stash[RUN]
        cases: list[pytest.Item] = [CaseItem.from_parent(self, name=case.id, case=case) for case in run.cases]
        laws: list[pytest.Item] = [LawItem.from_parent(self, name=law.id, law=law) for law in run.laws]
        yield from spread(laws, cases) if hasattr(self.config, "workerinput") else [*cases, *laws]
        for corpus in run.corpora:
            yield CorpusItem.from_parent(self, name=corpus.id, corpus=corpus)


def spread(few: list[pytest.Item], many: list[pytest.Item]) -> list[pytest.Item]:
    """Return both, the few at equal distances among the many: workers are given stretches of what is collected."""
    placed = [(place / len(group), item) for group in (few, many) for place, item in enumerate(group)]
    return [item for _, item in sorted(placed, key=itemgetter(0))]


class BpeItem(pytest.Item):
    """What all items share: running, the states beyond passed and failed, and the data for the summary."""

    kind: str
    clause: Clause | None
    conformance_class: str

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.state = "error"
        self.message = ""
        self.reason = ""
        self.stale = False
        self.difference: Difference | None = None
        self.title = self.name

    @property
    def bpe_run(self) -> Run:
        """This session's run."""
        return self.config.stash[RUN]

    def reportinfo(self) -> tuple[Path, None, str]:
        """Say where the item stands: in the suite, under its id."""
        return self.path, None, f"conformance::{self.name}"

    def result(self, report: pytest.TestReport) -> dict[str, Any]:
        """Return what came of it, in plain values that cross process borders."""
        state = "error" if report.failed and self.state != "fail" else self.state
        clause, difference = self.clause, self.difference
        return {
            "id": self.name,
            "kind": self.kind,
            "title": self.title,
            "clause": clause.id if clause else "",
            "section": clause.section if clause else "corpus",
            "level": clause.level if clause else "",
            "class": self.conformance_class,
            "state": state,
            "seconds": round(report.duration, 4),
            "reason": self.reason,
            "stale": self.stale,
            "message": ascii_only(report.longreprtext) if state == "error" else self.message,
            "input": ascii_only(difference.input) if difference else "",
            "expected": ascii_only(difference.expected) if difference else "",
            "got": ascii_only(difference.got) if difference else "",
            "diverges": ascii_only(difference.diverges) if difference else "",
            "depends": ascii_only(difference.depends) if difference else "",
            "fingerprint": difference.fingerprint if difference else "",
        }

    def runtest(self) -> None:
        """Judge, and settle the state."""
        skip_reason = self.skip_reason()
        if skip_reason is not None:
            self.state, self.reason = "not claimed", ascii_only(skip_reason)
            pytest.skip(f"not claimed: {skip_reason}")
        captured = self.config.getoption("capture", "no") == "fd"
        with output.bounded(captured), environment.kept() as changes:
            text = self.check()
        if text is None and changes:
            self.difference = Difference(
                f"{self.title}: the answer is right",
                "the same, and nothing changed",
                "; ".join(changes),
                answer=DISTURBED,
            )
            clause = self.bpe_run.spec.clauses.get(UNDISTURBED, self.clause)
            text = failure.of_disturbance(self.name, clause, self.difference, self.bpe_run.command)
        self.message = ascii_only(text or "")
        reason = self.bpe_run.known_failures.get(self.name)
        self.reason = ascii_only(reason or "")
        level = self.clause.level if self.clause is not None else "must"
        advisory = level != "must" and not (level == "should" and self.config.getoption("--bpe-strict"))
        if text is None and reason is not None:
            self.state, self.stale = "fail", True
            self.message = (
                f"FAILED  {self.name} is listed as a known failure ({ascii_only(reason)}), and passes.\n"
                "  Take it out of the list."
            )
            raise Failed(self.message)
        if text is None:
            self.state = "pass"
        elif reason is not None:
            self.state = "known failure"
            pytest.skip(f"known failure: {ascii_only(reason)}")
        elif advisory:
            self.state = "advisory"
        else:
            self.state = "fail"
            raise Failed(self.message)

    def skip_reason(self) -> str | None:
        """Return what is needed and not claimed, or None."""
        raise NotImplementedError

    def check(self) -> str | None:
        """Return the text of the failure, or None if all is well."""
        raise NotImplementedError

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the failure's own text, without a traceback; of an error of the suite itself, where it happened."""
        if isinstance(excinfo.value, Failed):
            return self.message
        lines = traceback.format_tb(excinfo.tb)  # no values: an implementation's own may do anything when shown
        return ascii_only(f"{''.join(lines)}{describe(excinfo.value)}")


class CaseItem(BpeItem):
    """One golden case."""

    kind = "case"

    def __init__(self, *, case: Case, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.case = case
        self.title = case.title
        self.clause = case.clause
        self.conformance_class = case.conformance_class

    def skip_reason(self) -> str | None:
        """Return what the case needs and the implementation does not claim, or None."""
        return judging.skip_reason(self.case, self.bpe_run.implementation)

    def check(self) -> str | None:
        """Judge the case within its time limit."""
        implementation = self.bpe_run.implementation
        model = self.case.model
        timeout_factor = LARGE_PATIENCE if model is not None and model.is_large else 1
        difference: Difference | None
        try:
            with implementation.within(timeout_factor):
                difference = judging.judge(self.case, implementation)
        except TimedOut as late:
            difference = Difference(self.case.title, "an answer", str(late), answer=TIMED_OUT)
        if difference is None:
            return None
        self.difference = difference
        return failure.of_case(self.case, difference, self.bpe_run.command)


class LawItem(BpeItem):
    """One law, tried on many examples."""

    kind = "law"

    def __init__(self, *, law: Law, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.law = law
        self.title = law.clause.statement.partition(". ")[0].rstrip(".")
        self.clause = law.clause
        self.conformance_class = law.conformance_class

    def skip_reason(self) -> str | None:
        """Return what the law needs and the implementation does not claim, or None."""
        return skip_reason(self.law, self.bpe_run.implementation)

    def check(self) -> str | None:
        """Try the law."""
        broken = check(self.law, self.bpe_run.implementation)
        if broken is None:
            return None
        self.difference = broken.difference
        return failure.of_law(self.law, broken, self.bpe_run.command)


class CorpusItem(BpeItem):
    """One file or folder, encoded with GPT-2's table by the implementation and by tiktoken. No part of a verdict."""

    kind = "corpus"

    def __init__(self, *, corpus: Any, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.corpus = corpus
        self.clause = None
        self.conformance_class = "corpus"

    def skip_reason(self) -> str | None:
        """Return what is needed and not claimed, or None."""
        implementation = self.bpe_run.implementation
        if "encode" not in implementation.capabilities:
            return "encode"
        return None if implementation.fixed_model in (None, "gpt2") else "GPT-2's table"

    def check(self) -> str | None:
        """Compare."""
        from .corpus import compare

        return compare(self.corpus, self.bpe_run.implementation)
