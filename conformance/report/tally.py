"""Counts over the results of a run: by section, and the verdict of each class of conformance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bpe_conformance.fixtures.spec import CLASSES, SECTIONS

Result = Mapping[str, Any]


@dataclass(frozen=True)
class Kept:
    """How many of those that were judged passed."""

    passed: int
    judged: int


@dataclass(frozen=True)
class Section:
    """The counts of one section. Errors are counted among the failed."""

    section: str
    must: Kept
    should: Kept
    failed: int
    advisory: int
    known: int
    not_claimed: int

    def plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Verdict:
    """The verdict of one class of conformance.

    Attributes:
        name: the class.
        must: how many MUST were judged; `failed`, `known` and `errors` of them do not hold.
        should: how many SHOULD were judged; `broken` of them do not hold.
        stale: how many hold and are listed as known failures, which fails the run, but says nothing against the class.
    """

    name: str
    must: int
    failed: int
    known: int
    errors: int
    should: int
    broken: int
    stale: int

    @property
    def word(self) -> str:
        """`pass`, `fail`, or `error` where the suite itself went wrong and nothing else fails."""
        if self.failed or self.known:
            return "fail"
        return "error" if self.errors else "pass"

    @property
    def told(self) -> str:
        """The verdict in words."""
        if self.word == "error":
            return (
                f"ERROR: {self.errors} of {self.must} MUST could not be judged; this is a fault of the suite: report it"
            )
        if self.word == "fail":
            told = f"FAIL: {self.failed + self.known} of {self.must} MUST do not hold"
            told += f" ({self.known} of them known)" if self.known else ""
        else:
            told = f"PASS: {self.must} MUST hold"
        told += f"; {self.broken} of {self.should} SHOULD do not" if self.broken else ""
        return told + (f"; {self.stale} that hold are listed as known failures" if self.stale else "")

    def plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        own = asdict(self)
        return {"class": own.pop("name"), "verdict": self.word, "told": self.told, **own}


def sections(results: Iterable[Result]) -> list[Section]:
    """Return the counts of each section of which there is a result, in the order of the spec."""
    all_results = list(results)
    return [
        _section(name, mine) for name in SECTIONS if (mine := [one for one in all_results if one["section"] == name])
    ]


def _section(name: str, mine: list[Result]) -> Section:
    def kept(level: str) -> Kept:
        judged = [one for one in mine if one["level"] == level and one["state"] != "not claimed"]
        return Kept(sum(one["state"] == "pass" or bool(one.get("stale")) for one in judged), len(judged))

    def count(*states: str) -> int:
        return sum(one["state"] in states and not one.get("stale") for one in mine)

    return Section(
        name,
        kept("must"),
        kept("should"),
        count("fail", "error"),
        count("advisory"),
        count("known failure"),
        count("not claimed"),
    )


def verdicts(results: Iterable[Result]) -> list[Verdict]:
    """Return the verdict of each class of conformance of which a MUST was judged."""
    all_results = list(results)
    found = (_verdict(name, [one for one in all_results if one["class"] == name]) for name in CLASSES)
    return [one for one in found if one.must]


def _verdict(name: str, results: list[Result]) -> Verdict:
    judged = [one for one in results if one["state"] != "not claimed"]
    musts = [one for one in judged if one["level"] == "must"]
    shoulds = [one for one in judged if one["level"] == "should"]

    def count(state: str) -> int:
        return sum(one["state"] == state and not one.get("stale") for one in musts)

    broken = sum(one["state"] != "pass" and not one.get("stale") for one in shoulds)
    stale = sum(bool(one.get("stale")) for one in [*musts, *shoulds])
    return Verdict(name, len(musts), count("fail"), count("known failure"), count("error"), len(shoulds), broken, stale)
