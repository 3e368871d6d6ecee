"""Every finding has a script that shows it and a place on the page."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

import pytest

from bpe_conformance.spec import installed_spec
from survey.listed import FOUND_IN_ENGINES, SCRIPTS, Finding, findings

NAMES = sorted(file.name for file in SCRIPTS.iterdir() if file.name.startswith("confirm_"))
FOUND = [*findings(), *findings(FOUND_IN_ENGINES)]


def test_every_finding_has_a_script_unless_it_is_a_limit() -> None:
    assert [one for one in FOUND if not one.script and one.verdict != "limit"] == []


def test_clauses_exist_and_a_failed_should_is_not_a_bug() -> None:
    clauses = installed_spec().clauses
    for one in FOUND:
        assert {one.clause, *one.also} <= set(clauses), one
        assert one.verdict in ("bug", "limit", "convention", "advice", "open")
        assert clauses[one.clause].level == "must" or one.verdict != "bug", one


@pytest.mark.parametrize("name", NAMES)
def test_a_script_imports_nothing_from_this_project(name: str) -> None:
    text = (SCRIPTS / name).read_text("utf-8")
    mine = [one for one in FOUND if one.script == name]
    assert set(re.findall(r'^check\("([^"]+)"', text, re.MULTILINE)) == {one.clause for one in mine}
    installed = set(re.findall("(?:pip|npm) install ([^`]+)`", text))
    assert {one.package.removeprefix("npm:") for one in mine} == installed
    if name.endswith(".py"):
        imported = {*_modules(text)} - sys.stdlib_module_names - {"shared"}
        assert len(imported) == 1
    else:
        package = re.sub(r"(?<=.)@[0-9].*", "", mine[0].package.removeprefix("npm:"))
        imported = set(re.findall(r'(?:from |url\)\()"([^"]+)"', text)) - {"node:module", "./shared.mjs"}
        assert {f"{one}/".startswith(f"{package}/") for one in imported} == {True}
    assert not imported & {".", "bpe_conformance", "conformance"}


def test_what_the_scripts_share_needs_no_package() -> None:
    assert set(_modules((SCRIPTS / "shared.py").read_text("utf-8"))) <= sys.stdlib_module_names
    assert "import" not in (SCRIPTS / "shared.mjs").read_text("utf-8")


def _modules(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." if node.level else str(node.module).partition(".")[0]


def test_a_script_is_named_after_the_package_and_contains_the_clause() -> None:
    values = dict.fromkeys(("adapter", "verdict", "input", "expected", "got", "why"), "x")
    assert Finding(**values, package="npm:@huggingface/tokenizers@1.0", clause="DECODE-EMPTY-1").script == (
        "confirm_npm_huggingface_tokenizers.mjs"
    )
    assert Finding(**values, package="splintr-rs==1.0", clause="ERROR-TABLE-1").script == "confirm_splintr_rs.py"
    assert Finding(**values, package="splintr-rs==1.0", clause="MERGE-LONG-1").script == ""
    assert Finding(**values, package="other==1.0", clause="MERGE-LONG-1").script == ""
