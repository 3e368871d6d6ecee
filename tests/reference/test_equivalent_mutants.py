"""Each entry of `tests/mutation/equivalent.yaml` names code that exists."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import bpe_conformance.reference

REFERENCE = Path(bpe_conformance.reference.__file__).parent
LISTED = yaml.safe_load((Path(__file__).parents[1] / "mutation" / "equivalent.yaml").read_text("utf-8"))


def source_lines(module: str, function: str) -> Iterator[str]:
    """Yield the lines of the functions of this name, or of the whole module, as `mutants.py` writes them."""
    source = (REFERENCE / f"{module}.py").read_text("utf-8")
    lines = [" ".join(line.split()) for line in source.splitlines()]
    for node in ast.walk(ast.parse(source)) if function else ():
        if isinstance(node, ast.FunctionDef) and node.name == function:
            yield from lines[min([node.lineno, *(one.lineno for one in node.decorator_list)]) - 1 : node.end_lineno]
    yield from () if function else lines


@pytest.mark.slow
def test_every_entry_names_a_line_of_its_function() -> None:
    entries: list[list[Any]] = []
    for group in LISTED["equivalent"]:
        entries += [[module, function, was] for module, function, _, was, _ in group.get("mutants", ())]
        entries += group.get("lines", ())
    assert len(entries) > 100
    assert [entry for entry in entries if entry[2] not in source_lines(entry[0], entry[1])] == []


def test_every_entry_has_a_reason_and_is_listed_once() -> None:
    groups = LISTED["equivalent"]
    assert all(group["reason"] and (group.get("mutants") or group.get("lines")) for group in groups)
    entries = [tuple(entry) for group in groups for kind in ("mutants", "lines") for entry in group.get(kind, ())]
    assert sorted(entries) == sorted(set(entries))


def test_every_name_that_is_not_mutated_occurs() -> None:
    for module, names in LISTED["unreached"].items():
        nodes = list(ast.walk(ast.parse((REFERENCE / f"{module}.py").read_text("utf-8"))))
        known = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        known |= {node.id for node in nodes if isinstance(node, ast.Name)}
        assert set(names) <= known, module
