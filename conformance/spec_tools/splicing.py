"""Writes a computed value into a YAML file of the spec, in the place of the old one; all else stays as it stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bpe_conformance.fixtures.flow import write_flow
from bpe_conformance.fixtures.spec import Case

WIDTH = 110


def splice(lines: list[str], case: Case, value: Any, marks: Sequence[str]) -> None:
    """Put `value` and `marks` in the place of the case's own; whatever is the same is left as it stands."""
    assert case.document is not None
    keys = case.document.keys
    given, expect, agrees = (keys.get((*case.path, name)) for name in ("input", "expect", "agrees"))
    assert given is not None
    column = given.start_mark.column
    indent = " " * column
    end = _end(lines, (expect or given).start_mark.line, column)
    start = expect.start_mark.line if expect else end
    same = expect is not None and value == case.expect
    body = lines[start:end] if same else list(_block("expect", value, indent))
    flow = [f"{indent}agrees: {bracketed(marks)}"] if marks else []
    edits = [(start, end, body if agrees else body + flow)]
    if agrees and tuple(marks) != case.agrees:
        first = agrees.start_mark.line
        edits.append((first, _end(lines, first, column), flow))
    for first, behind, new in sorted(edits, reverse=True):
        lines[first:behind] = new


def _end(lines: Sequence[str], first: int, column: int) -> int:
    """Return the line behind the entry whose key stands in line `first` at `column`."""
    last = first
    for number in range(first + 1, len(lines)):
        line = lines[number]
        if line.strip() and not line.lstrip().startswith("#"):
            if len(line) - len(line.lstrip()) <= column:
                break
            last = number
    return last + 1


def _block(key: str, value: Any, indent: str) -> Iterator[str]:
    flow = f"{indent}{key}: {write_flow(value)}"
    if len(flow) <= WIDTH:
        yield flow
    elif isinstance(value, dict):
        yield f"{indent}{key}:"
        for name, part in value.items():
            yield from _block(name, part, indent + "  ")
    elif isinstance(value, list):
        yield f"{indent}{key}: ["
        line = indent + " "
        for part in value:
            piece = f" {write_flow(part)},"
            if len(line) + len(piece) > WIDTH and line.strip():
                yield line
                line = indent + " "
            line += piece
        yield line
        yield f"{indent}]"
    else:
        yield flow


def bracketed(marks: Sequence[str]) -> str:
    """Return `marks` as they stand in the file."""
    return f"[{', '.join(marks)}]"
