"""The JSON document of one run: plain values, in the same order for the same run."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures.files import parse_json, read_regular
from bpe_conformance.fixtures.one_line import ascii_only, counted, one_line

from .. import __version__
from .. import outcome as counts
from ..outcome import BugCause, Cause, ConventionCause, ErrorCause, Outcome, RunResult
from ..spec import schema_error, schema_validator
from ..terminal import causes, show, wording
from ..terminal.failure import Failure, describe

FORMAT = "bpe-conformance report 2"
SCHEMA = Path(__file__).with_name("report.schema.json")
OF_CLAUSE = ("id", "section", "level", "statement", "rationale")
LONGEST = 2000  # the longest text, in characters; an answer can have any length
LONGEST_CASE = 20_000  # the longest counterexample as a golden case, in characters; it is useful only as a whole

Document = dict[str, Any]


class ReportError(ValueError):
    """A report cannot be read or written. The message is one line."""


def build(result: RunResult) -> Document:
    named = {outcome.clause.id for outcome in result.outcomes if outcome.clause is not None}
    clauses = (clause for clause in result.clauses.values() if clause.id in named)
    tested, verdicts = result.tested, result.verdicts
    adapter = {**asdict(tested), "capabilities": sorted(tested.capabilities), "notes": sorted(tested.notes)}
    skipped = counts.skipped(result.outcomes, tested.capabilities).items()
    advice, code = causes.advice(result)
    return {
        "format": FORMAT,
        "created": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "suite": {"version": __version__, "spec": spec_fingerprint(result.spec), "hypothesis": version("hypothesis")},
        "platform": {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"},
        "adapter": _visible(adapter),
        "run": {
            "command": ascii_only(result.command.whole),
            "base": ascii_only(result.command.base),
            "complete": result.complete,
            "missing": result.missing,
            **asdict(result.options),
            "pack": _visible(result.options.pack),
            "part": ascii_only(result.part),
            "exit": result.exit_status,
        },
        "verdicts": [{**verdict.plain(), "sentence": wording.verdict(verdict)} for verdict in verdicts],
        "sections": [asdict(section) for section in counts.sections(result.outcomes)],
        "skipped": [{"count": count, "reason": ascii_only(wording.why_skipped(need))} for need, count in skipped],
        "causes": [_visible(_cause(cause, result)) for cause in result.diagnosis.causes],
        "unexplained": list(result.diagnosis.unexplained),
        "passes_alone": result.diagnosis.passes_alone,
        "next": ascii_only(f"{advice} `{code}`" if advice else ""),
        "clauses": [{name: getattr(clause, name) for name in OF_CLAUSE} for clause in clauses],
        "results": [_result(outcome, result) for outcome in result.outcomes],
    }


def _visible(value: Any) -> Any:
    """Return plain values with the suite's keys: each text is visible ASCII and at most `LONGEST` characters long."""
    if isinstance(value, str):
        text = ascii_only(value)
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 240]} ... {text[-200:]}"
    if isinstance(value, dict):
        return {key: _visible(part) for key, part in value.items()}
    return [_visible(part) for part in value] if isinstance(value, list) else value


def _cause(cause: Cause, result: RunResult) -> dict[str, Any]:
    shown = causes.example(cause, result)
    own = {"name": causes.name(cause), "tests": list(cause.tests), "smallest": shown.test}
    fix = ascii_only(causes.fix(cause, shown, result.command))
    match cause:
        case BugCause(bugs):
            said = ({**asdict(bug), "sentence": show.prose(bug.sentence), "fix": show.prose(bug.fix)} for bug in bugs)
            return {"kind": "bug", **own, "bugs": list(said)}
        case ConventionCause(pairs):
            declare = causes.conventions(cause)
            return {"kind": "convention", **own, "conventions": dict(pairs), "declare": declare, "fix": fix}
        case ErrorCause(message, place):
            return {"kind": "error", **own, "message": message, "place": place, "fix": fix}


def _result(outcome: Outcome, result: RunResult) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": outcome.test,
        "kind": outcome.kind,
        "title": outcome.title if outcome.clause is not None else ascii_only(outcome.title),
        "clause": outcome.clause.id if outcome.clause is not None else "",
        "section": outcome.section,
        "level": outcome.level,
        "class": outcome.conformance_class,
        "state": outcome.state,
        "seconds": outcome.seconds,
    }
    if outcome.reason:
        fields["reason"] = _visible(outcome.reason)
    if outcome.stale:
        fields["stale"] = True
    if outcome.state not in ("passed", "skipped"):
        fields["failure"] = _failure(describe(outcome, result.command, result.diagnosis), outcome.fingerprint)
    return fields


def _failure(failure: Failure, fingerprint: str) -> dict[str, Any]:
    return {
        "fact": _visible(failure.fact),
        "evidence": [[label, _visible(text)] for label, text in failure.evidence],
        "tests": ascii_only(failure.tests),
        "rule": failure.rule,
        "bugs": [bug.id for bug in failure.bugs],
        "depends_on": _visible(failure.depends_on),
        "conventions": _visible(failure.conventions),
        "case": ascii_only(failure.case) if len(failure.case) <= LONGEST_CASE else "",
        "reproduce": ascii_only(failure.reproduce),
        "rerun": ascii_only(failure.rerun),
        "explain": ascii_only(failure.explain),
        "error": _visible(failure.error),
        "fingerprint": fingerprint,
        "lines": [_visible(line) for line in failure.lines()],
    }


def spec_fingerprint(directory: Path) -> str:
    """Return the first twelve hexadecimal digits of the SHA-256 of the spec's clauses and cases."""
    digest = hashlib.sha256()
    for file in sorted([*directory.glob("clauses/*.yaml"), *directory.glob("cases/*.yaml")]):
        digest.update(file.name.encode("utf-8") + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def explained(document: Document, cause: Mapping[str, Any]) -> str:
    """Return how much a cause explains, in words: "explains 3 of 4 failures"."""
    total = sum(len(each["tests"]) for each in document["causes"]) + len(document["unexplained"])
    warnings = all(result["state"] == "warning" for result in document["results"] if result["id"] in cause["tests"])
    verb = "explains" if len(cause["tests"]) > 1 else "may explain"
    return f"{verb} {len(cause['tests']):,} of {counted(total, 'warning' if warnings else 'failure')}"


def text(document: Document) -> str:
    return json.dumps(document, indent=1) + "\n"


def is_partial(report: Document) -> bool:
    """Return whether the verdicts are about a part of the suite."""
    run = report["run"]
    return bool(run["selected"] or run["part"] or not run["complete"])


def read_json(file: Path) -> Any:
    try:
        return parse_json(read_regular(file).decode("utf-8-sig"), str(file))
    except UnicodeDecodeError as error:
        raise ReportError(f"{file}: not UTF-8 at byte {error.start}") from None
    except ValueError as error:
        raise ReportError(str(error)) from None


def read(file: Path) -> Document:
    document = read_json(file)
    found = document.get("format") if isinstance(document, dict) else None
    if found != FORMAT:
        shown = one_line(ascii(found))[:80]
        raise ReportError(f"{file}: its format is {shown}; expected {FORMAT!r}, which --bpe-report writes")
    if (invalid := schema_error(document, schema_validator(SCHEMA))) is not None:
        raise ReportError(f"{file}: {one_line(invalid[1])}")
    failed = {result["id"] for result in document["results"] if "failure" in result}
    for number, cause in enumerate(document["causes"]):
        if cause["smallest"] not in failed:
            shown = one_line(ascii(cause["smallest"]))[:80]
            raise ReportError(f"{file}: causes.{number}.smallest: there is no failure of {shown}")
    return dict(document)
