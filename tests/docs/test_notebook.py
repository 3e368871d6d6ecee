"""The notebook of the manual gives the outputs that it shows."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs" / "check.ipynb"


def executed(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the cells with the outputs that a notebook shows: the value of the last expression of each cell."""
    names: dict[str, Any] = {}
    done = []
    for cell in cells:
        if cell["cell_type"] == "code":
            body = ast.parse("".join(cell["source"])).body
            last = ast.Expression(body.pop().value) if isinstance(body[-1], ast.Expr) else None  # type: ignore[attr-defined]
            exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
            value = eval(compile(last, "<cell>", "eval"), names) if last is not None else None
            data = {"text/plain": repr(value).splitlines(keepends=True)}
            if hasattr(value, "_repr_html_"):
                data["text/html"] = value._repr_html_().splitlines(keepends=True)
            number = sum(other["cell_type"] == "code" for other in done) + 1
            output = {"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data}
            cell = {**cell, "execution_count": number, "outputs": [] if value is None else [output]}
        done.append(cell)
    return done


def test_the_notebook_gives_the_outputs_that_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    made = {**notebook, "cells": executed(notebook["cells"])}
    if os.environ.get("WRITE_EXPECTED"):
        NOTEBOOK.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert made == notebook
    assert [*tmp_path.iterdir()] == []
