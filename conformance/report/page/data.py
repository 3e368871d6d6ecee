"""The data for the script: the results in compact form, with each text once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bpe_conformance.fixtures.flow import write_flow

from ...operations import ManyCalls, Question
from ...spec import FOLDER, Case, installed_spec
from ...terminal import wording
from ..document import spec_fingerprint
from .markup import visible
from .view import STATES, Page, ShownImplementation, clause_of

FURTHER = {
    "conventions": "convention",
    "depends_on": "depends on",
    "error": "error",
    "case": "as a case",
    "reproduce": "reproduce",
}
"""Member of a failure that is shown below the evidence → its label."""
LONGEST = 360
WIDTH = 90

Results = Mapping[tuple[str, str], Mapping[str, Any]]


class Texts(dict[str, int]):
    """Text → its index in a list without repeats, by which other values name it."""

    def __missing__(self, text: str) -> int:
        return self.setdefault(text, len(self))

    def rows(self, rows: Sequence[Sequence[str]]) -> list[list[Any]]:
        """Return (label, text) rows with the index of each text."""
        return [[label, self[text]] for label, text in rows]


def text(page: Page) -> str:
    """Return the JSON that the page contains, safe inside a script element.

    `texts` is a list that the other numbers point into; a row is a label and such a number. `cases` has id, clause
    (its place), title, kind and rows for the input and the expected answer. Each of `implementations` has `states`, a
    letter for each case; `failures`, which gives for the place of a case that did not pass its fact, the rows of its
    evidence, further rows, and known bugs; and `reasons`, why which cases were skipped.
    """
    texts = Texts()
    places = {clause["id"]: number for number, clause in enumerate(page.clauses)}
    results: list[Results] = [
        {(clause_of(one), one["id"]): one for one in each.document["results"]} for each in page.implementations
    ]
    cases = sorted(dict.fromkeys(key for one in results for key in one), key=lambda key: places[key[0]])
    names = {case for _, case in cases}
    is_installed = spec_fingerprint(FOLDER) in {suite["spec"] for suite in page.suites}
    known = {case.id: _case_rows(case) for case in installed_spec().cases if is_installed and case.id in names}
    first = {key: one[key] for one in reversed(results) for key in one}
    made = {
        "states": {letter: state for state, letter in STATES.items()},
        "clauses": page.clauses,
        "bugs": _bugs(page.implementations),
        "cases": [
            [
                case,
                places[clause],
                first[clause, case]["title"],
                first[clause, case]["kind"],
                texts.rows(visible(list(known.get(case, ())))),
            ]
            for clause, case in cases
        ],
        "implementations": [
            _implementation(one, mine, cases, texts) for one, mine in zip(page.implementations, results, strict=True)
        ],
        "texts": list(texts),
    }
    written = json.dumps(made, separators=(",", ":"), ensure_ascii=False)
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _bugs(implementations: Sequence[ShownImplementation]) -> dict[str, Any]:
    return {
        bug["id"]: [bug["sentence"], bug["fix"], bug["clause"]]
        for one in implementations
        for cause in one.document["causes"]
        for bug in cause.get("bugs", ())
    }


def _implementation(
    implementation: ShownImplementation, results: Results, cases: Sequence[tuple[str, str]], texts: Texts
) -> dict[str, Any]:
    failures: dict[int, list[Any]] = {}
    reasons: dict[str, list[int]] = {}
    for index, key in enumerate(cases):
        result = results.get(key)
        if result is not None and result["state"] == "skipped":
            reasons.setdefault(result.get("reason", ""), []).append(index)
        elif result is not None and "failure" in result:
            failure = result["failure"]
            failures[index] = [
                texts[failure["fact"]],
                texts.rows(failure["evidence"]),
                texts.rows(further(result)),
                failure["bugs"],
            ]
    return {
        "name": implementation.name,
        "version": implementation.document["adapter"]["version"],
        "command": implementation.document["run"]["base"],
        "states": "".join(STATES[results[key]["state"]] if key in results else STATES["not tested"] for key in cases),
        "failures": failures,
        "reasons": list(reasons.items()),
    }


def further(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the (label, text) rows that are shown below the evidence of a failure."""
    reason = [("reason", result["reason"])] if result.get("reason") else []
    failure = result["failure"]
    return reason + [(label, failure[name]) for name, label in FURTHER.items() if failure[name]]


def _case_rows(case: Case) -> Iterator[tuple[str, str]]:
    yield "input", _fields(case.raw["input"])
    yield from wording.setting(Question(ManyCalls(""), case.model), (), WIDTH)
    yield "expected", _shortened(_fields(case.raw.get("expect", {})))


def _fields(values: Any) -> str:
    return "\n".join(f"{key}: {_shortened(write_flow(part))}" for key, part in values.items())


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 60]} ... {text[-40:]}"
