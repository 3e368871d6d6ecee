"""The JSON document of one run: plain values, in an order that is the same for the same run."""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpe_conformance.fixtures.one_line import one_line
from bpe_conformance.fixtures.regular_file import read_regular
from bpe_conformance.fixtures.spec import FOLDER, Clause
from bpe_conformance.fixtures.strict_json import parse_json

from .. import __version__
from . import tally

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

FORMAT = "bpe-conformance report 1"
SCHEMA = Path(__file__).with_name("report.schema.json")
LONGEST = 2000
"""Characters of one field; what a tokenizer answers can be of any length."""

Document = dict[str, Any]


class ReportError(ValueError):
    """A report cannot be read. The message is one line."""


@dataclass(frozen=True)
class Adapter:
    """What was judged.

    Attributes:
        spec: as `--adapter` named it.
        name: what to call it: what a program announces, or the same as `spec`.
        version: its own, or "".
        language: what it is written in, or "" where that is not known.
        model: the only vocabulary that it has, or None.
        conventions: those that it declares beside the defaults.
        capabilities: what it offers.
        notes: what the suite told beside the results.
    """

    spec: str
    name: str
    version: str
    language: str
    model: str | None
    conventions: Mapping[str, str]
    capabilities: Iterable[str]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Judged:
    """How it was judged, and what came of it.

    Attributes:
        command: the command line that does it again.
        clauses: those of the spec.
        results: a mapping of plain values for each case, law and corpus, in the order of the run.
        likenesses: what the failures look like, as plain values.
        not_claimed: what is missing, folded for people.
        missing: ids of which no result came.
        complete: whether the run came to its end.
        options: further members of the document's `run`: the options that it was judged with, and its exit status.
    """

    command: str
    clauses: Mapping[str, Clause]
    results: Sequence[tally.Result]
    likenesses: Sequence[Mapping[str, Any]] = ()
    not_claimed: Sequence[str] = ()
    missing: Sequence[str] = ()
    complete: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)


def build(adapter: Adapter, judged: Judged, spec: Path = FOLDER) -> Document:
    """Return the document of a run.

    Args:
        adapter: what was judged.
        judged: what came of it.
        spec: the folder of the spec, whose fingerprint tells which one it was.
    """
    named = {one["clause"] for one in judged.results}
    likeness = {case: list(one["bugs"]) for one in reversed(judged.likenesses) for case in one["cases"]}
    return {
        "format": FORMAT,
        "created": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "suite": {"version": __version__, "spec": fingerprint(spec)},
        "platform": {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"},
        "adapter": {
            "spec": adapter.spec,
            "name": adapter.name,
            "version": adapter.version,
            "language": adapter.language,
            "model": adapter.model,
            "conventions": dict(adapter.conventions),
            "capabilities": sorted(adapter.capabilities),
            "notes": list(adapter.notes),
        },
        "run": {
            "command": judged.command,
            "complete": judged.complete,
            "missing": list(judged.missing),
            **judged.options,
        },
        "verdicts": [one.plain() for one in tally.verdicts(judged.results)],
        "sections": [one.plain() for one in tally.sections(judged.results)],
        "not_claimed": list(judged.not_claimed),
        "likenesses": [dict(one) for one in judged.likenesses],
        "clauses": [
            {
                "id": clause.id,
                "section": clause.section,
                "level": clause.level,
                "statement": clause.statement,
                "rationale": clause.rationale,
            }
            for clause in judged.clauses.values()
            if clause.id in named
        ],
        "results": [_result(one, likeness.get(one["id"], [])) for one in judged.results],
    }


def _result(one: tally.Result, looks_like: Sequence[str]) -> dict[str, Any]:
    kept = ("id", "kind", "title", "clause", "section", "level", "class", "state", "seconds")
    told = ("reason", "input", "expected", "got", "diverges", "depends", "message")
    result = {name: one[name] for name in kept}
    result |= {name: shortened(one[name]) for name in told if one.get(name)}
    result |= {"stale": True} if one.get("stale") else {}
    return result | ({"looks_like": list(looks_like)} if looks_like else {})


SELECTING = ("--bpe-section", "--bpe-clause", "--bpe-case", "-k")


def repeating(command: str) -> str:
    """Return the command line of a run without the options that selected: what `--bpe-case ID` is put behind.

    >>> repeating("pytest conformance --adapter x:Y --bpe-strict --bpe-section MERGE")
    'pytest conformance --adapter x:Y --bpe-strict'
    """
    try:
        words = iter(shlex.split(command))
    except ValueError:  # a report that somebody wrote by hand
        return command
    kept: list[str] = []
    for word in words:
        if word in SELECTING:
            next(words, None)
        else:
            kept.append(word)
    return shlex.join(kept)


def shortened(text: str) -> str:
    """Return `text`, or its two ends where it is longer than a report holds."""
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST - 240]} ... {text[-200:]}"


def fingerprint(folder: Path) -> str:
    """Return the first twelve hexadecimal digits of the SHA-256 of the spec's clauses and cases."""
    digest = hashlib.sha256()
    for file in sorted([*folder.glob("clauses/*.yaml"), *folder.glob("cases/*.yaml")]):
        digest.update(file.name.encode("utf-8") + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def text(document: Document) -> str:
    """Return the document as it stands in its file."""
    return json.dumps(document, indent=1) + "\n"


def read(file: Path) -> Document:
    """Return the document in `file`.

    Raises:
        ReportError: if it is no report, or not of this format.
        OSError: if it cannot be read.
    """
    data = read_regular(file)
    try:
        document = parse_json(data.decode("utf-8-sig"), str(file))
    except UnicodeDecodeError as error:
        raise ReportError(f"{file}: not UTF-8 at byte {error.start}") from None
    except ValueError as error:
        raise ReportError(str(error)) from None
    found = document.get("format") if isinstance(document, dict) else None
    if found != FORMAT:
        raise ReportError(
            f"{file}: its format is {one_line(ascii(found))[:80]}, not {FORMAT!r}, which --bpe-report writes"
        )
    from jsonschema.exceptions import best_match  # only who reads a report needs it

    wrong = best_match(_validator().iter_errors(document))
    if wrong is not None:
        where = ".".join(map(str, wrong.absolute_path)) or "document"
        raise ReportError(f"{file}: {one_line(f'{where}: {wrong.message}')}")
    return dict(document)


@cache
def _validator() -> Draft202012Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(SCHEMA.read_text("utf-8")))
