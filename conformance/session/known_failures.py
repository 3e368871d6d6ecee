"""The list of known failures: id → reason. An unlisted failure fails the run, and so does a listed test that passes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from bpe_conformance.fixtures.files import write_text
from bpe_conformance.fixtures.one_line import shortened
from bpe_conformance.fixtures.values import write_flow
from bpe_conformance.fixtures.yaml_file import read_documents


def read(file: Path, known_ids: Collection[str]) -> dict[str, str]:
    """Read a mapping of id to reason; raise SpecError if it is malformed or names an id that does not exist."""
    failures: dict[str, str] = {}
    for document in read_documents(file):
        if not isinstance(document.value, dict):
            raise document.error((), "expected a mapping of id to reason")
        for key, reason in document.value.items():
            if key not in known_ids:
                fix = "correct the id, or remove the line if a new version has dropped the test"
                raise document.error((key,), f"there is no case or property {shortened(key)}; {fix}")
            if not isinstance(reason, str) or not reason.strip():
                raise document.error((key,), f"{key} needs a reason, in quotes")
            failures[str(key)] = reason
    return failures


def write(file: Path, failures: Mapping[str, str]) -> None:
    head = "# Known failures, `id: reason`. A listed test that passes fails the run: remove it from the list."
    lines = (f"{key}: {write_flow(reason)}" for key, reason in sorted(failures.items()))
    write_text(file, "\n".join([head, *lines, ""]))
