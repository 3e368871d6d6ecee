"""What the script reads: the results in few characters, each text once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .installed import case_texts
from .states import STATES
from .view import Implementation, Page, clause_of
from .visible import visible

TOLD = ("input", "expected", "got", "diverges", "depends", "reason")
LABEL = re.compile(r"  (the same as a case(?=, ready to paste:)|\S+(?: \S+)?)(.*)")
SAID_HERE = {name: name for name in ("raised in", "found by", "in Python")} | {"the same as a case": "as a case"}
"""Label in a message → label in the page, of what stands in no field of a result."""

Results = Mapping[tuple[str, str], Mapping[str, Any]]


class Texts:
    """Texts by their place in a list, each once."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def place(self, text: str) -> int:
        """Return the place of `text`; -1 of nothing."""
        return self.places.setdefault(text, len(self.places)) if text else -1


def text(page: Page) -> str:
    """Return the JSON that stands in the page, safe inside a script element.

    `texts` is a list that the other numbers point into, with -1 for nothing. `cases` holds id, clause (its place),
    title, kind, input and expected. Each of `implementations` has `states`, a letter for each case; `told`, which gives
    for the place of a case that did not pass the texts of `TOLD`, then the rest of the message with labels, then known
    bugs; and `reasons`, why which cases are not claimed.
    """
    texts = Texts()
    places = {clause["id"]: number for number, clause in enumerate(page.clauses)}
    results: list[Results] = [
        {(clause_of(one), one["id"]): one for one in each.document["results"]} for each in page.implementations
    ]
    cases = sorted(_cases(results), key=lambda key: places[key[0]])
    known: dict[str, tuple[str, str]] = {}
    for suite in page.suites:
        known |= case_texts(suite["spec"])
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
                *(texts.place(visible(part)) for part in known.get(case, ("", ""))),
            ]
            for clause, case in cases
        ],
        "implementations": [
            _implementation(one, mine, cases, texts) for one, mine in zip(page.implementations, results, strict=True)
        ],
        "texts": list(texts.places),
    }
    written = json.dumps(made, separators=(",", ":"), ensure_ascii=False)
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _cases(results: Sequence[Results]) -> Iterator[tuple[str, str]]:
    yield from dict.fromkeys(key for one in results for key in one)


def _bugs(implementations: Sequence[Implementation]) -> dict[str, Any]:
    return {
        bug["id"]: [bug["sentence"], bug["fix"], bug["clause"]]
        for one in implementations
        for likeness in one.document["likenesses"]
        for bug in likeness["told"]
    }


def _implementation(
    one: Implementation, results: Results, cases: Sequence[tuple[str, str]], texts: Texts
) -> dict[str, Any]:
    told: dict[int, list[Any]] = {}
    reasons: dict[str, list[int]] = {}
    for place, key in enumerate(cases):
        result = results.get(key)
        if result is None or result["state"] == "pass":
            continue
        if result["state"] == "not claimed":
            reasons.setdefault(result.get("reason", ""), []).append(place)
            continue
        told[place] = [
            *(texts.place(result.get(name, "")) for name in TOLD),
            [[label, texts.place(part)] for label, part in _rest(result)],
            result.get("looks_like", []),
        ]
    return {
        "name": one.name,
        "version": one.adapter["version"],
        "command": one.repeating,
        "states": "".join(STATES[results[key]["state"]] if key in results else STATES["not judged"] for key in cases),
        "told": told,
        "reasons": list(reasons.items()),
    }


def _rest(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what a message says beside its fields, each with its label: a traceback, a counterexample, Python."""
    message = str(result.get("message", ""))
    if not result.get("got"):
        yield "message", message
        return
    label, lines = "", []
    for line in [*message.split("\n")[2:], "  end"]:
        begins = LABEL.match(line)
        if not begins:
            lines.append(line.strip() if label == "raised in" else line[4:])
            continue
        if label in SAID_HERE and lines:
            yield SAID_HERE[label], "\n".join(lines)
        label, lines = begins[1], [first] if (first := begins[2].strip().removeprefix(", ready to paste:")) else []
