"""Counts over the outcomes of a run: by section, and the verdict of each conformance class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bpe_conformance.fixtures.spec import CLASSES, SECTIONS

from .outcome import Outcome


@dataclass(frozen=True)
class Kept:
    """How many of the tests that ran passed."""

    passed: int
    tested: int


@dataclass(frozen=True)
class Section:
    """The counts of one section. Errors of the suite count as failed."""

    section: str
    must: Kept
    should: Kept
    failed: int
    warnings: int
    known: int
    skipped: int


@dataclass(frozen=True)
class Verdict:
    """The verdict of one conformance class.

    Attributes:
        name: the class.
        must: how many tests of a MUST ran; `failed`, `known` and `errors` of them did not pass.
        should: how many tests of a SHOULD ran; `broken` of them did not pass.
        stale: how many passed and are listed as known failures. That fails the run, but not the class.
        elsewhere: how many tests of a MUST fail only because another class is incorrect. They do not count.
    """

    name: str
    must: int
    failed: int
    known: int
    errors: int
    should: int
    broken: int
    stale: int
    elsewhere: int = 0

    @property
    def word(self) -> str:
        """`pass`, `fail`, or `error` where the suite itself failed and nothing else did."""
        if self.failed or self.known:
            return "fail"
        return "error" if self.errors else "pass"

    def plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        own = asdict(self)
        return {"class": own.pop("name"), "verdict": self.word, **own}


def sections(outcomes: Iterable[Outcome]) -> list[Section]:
    """Return the counts of each section that has an outcome, in the order of the spec."""
    every = list(outcomes)
    return [
        section(name, mine) for name in SECTIONS if (mine := [outcome for outcome in every if outcome.section == name])
    ]


def section(name: str, mine: Sequence[Outcome]) -> Section:
    """Return the counts of these outcomes, under a name."""

    def kept(level: str) -> Kept:
        tested = [outcome for outcome in mine if outcome.level == level and outcome.state != "skipped"]
        return Kept(sum(outcome.state == "passed" or outcome.stale for outcome in tested), len(tested))

    def count(*states: str) -> int:
        return sum(outcome.state in states and not outcome.stale for outcome in mine)

    return Section(
        name,
        kept("must"),
        kept("should"),
        count("failed", "error"),
        count("warning"),
        count("known failure"),
        count("skipped"),
    )


def skipped(outcomes: Iterable[Outcome], capabilities: Collection[str]) -> dict[str, int]:
    """Return what the skipped tests need and do not have → the number of tests, most frequent first.

    Tests of `encode` need only `encode` if that is missing, and tests of patterns only `pattern` or `train-pattern` if
    the implementation supports none.
    """

    def missing(need: str) -> str:
        kind = need.partition(":")[0]
        if "encode" not in capabilities and kind in ("allowed_special", "pattern"):
            return "encode"
        is_pattern = kind in ("pattern", "train-pattern")
        return kind if is_pattern and not any(name.startswith(f"{kind}:") for name in capabilities) else need

    counts = Counter(missing(outcome.reason) for outcome in outcomes if outcome.state == "skipped")
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def at_fault(outcomes: Iterable[Outcome]) -> set[str]:
    """Return the conformance classes in which a MUST fails that depends on no other part or on one of the same class.

    What depends on one of these classes counts there. What depends on another class counts in its own, so that each
    failure counts.
    """
    failed = (outcome for outcome in outcomes if outcome.state in ("failed", "known failure") and not outcome.stale)
    return {
        outcome.conformance_class
        for outcome in failed
        if outcome.level == "must" and outcome.class_at_fault == outcome.conformance_class
    }


def verdicts(outcomes: Iterable[Outcome]) -> list[Verdict]:
    """Return the verdict of each conformance class of which a MUST was tested.

    A class of which all golden cases were skipped and nothing failed has none: its properties are about other methods
    too.
    """
    every = list(outcomes)
    tested = [outcome for outcome in every if outcome.state != "skipped"]
    faulty = at_fault(tested)
    selected = {outcome.conformance_class for outcome in every if outcome.kind == "case"}
    supported = {outcome.conformance_class for outcome in tested if outcome.kind == "case"}
    untested = selected - supported
    made = (
        _verdict(name, [outcome for outcome in tested if outcome.conformance_class == name], faulty) for name in CLASSES
    )
    return [verdict for verdict in made if verdict.must and (verdict.name not in untested or verdict.word != "pass")]


def _verdict(name: str, tested: list[Outcome], faulty: Collection[str]) -> Verdict:
    musts = [outcome for outcome in tested if outcome.level == "must"]
    shoulds = [outcome for outcome in tested if outcome.level == "should"]
    elsewhere = {
        outcome.test
        for outcome in musts
        if outcome.state in ("failed", "known failure")
        and not outcome.stale
        and outcome.class_at_fault != name
        and outcome.class_at_fault in faulty
    }

    def count(state: str) -> int:
        return sum(outcome.state == state and not outcome.stale and outcome.test not in elsewhere for outcome in musts)

    broken = sum(outcome.state != "passed" and not outcome.stale for outcome in shoulds)
    stale = sum(outcome.stale for outcome in [*musts, *shoulds])
    return Verdict(
        name,
        len(musts),
        count("failed"),
        count("known failure"),
        count("error"),
        len(shoulds),
        broken,
        stale,
        len(elsewhere),
    )
