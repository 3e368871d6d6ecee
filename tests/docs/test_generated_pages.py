"""Pages of the manual are generated from data."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest
from helpers.console_blocks import ROOT

from bpe_conformance import cli
from bpe_conformance.known_bugs import known_bugs


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_bug_page_shows_the_smallest_failure(generate: ModuleType) -> None:
    bug = next(one for one in known_bugs() if one.id == "greedy-left-to-right")
    shown = generate._bug(bug, generate._smallest_failure(bug.id))
    assert f"**Fix.** {bug.fix}" in shown
    assert "  expected   a  | bc   [97, 256]\n  got        ab | c    [257, 99]\n" in shown


def test_sections_of_bugs_have_titles(generate: ModuleType) -> None:
    assert {bug.section for bug in known_bugs()} == {*generate.TITLES}


def test_every_chapter_and_command_has_a_page(generate: ModuleType) -> None:
    pages = generate._specification()
    chapters = {name.removeprefix("spec/").removesuffix(".md") for name in pages} - {"index"}
    assert chapters <= set(pages["spec/index.md"].split())
    assert "(merge-order-1)=\n**MERGE-ORDER-1** " in pages["spec/4-encode.md"]
    commands = generate._commands()
    assert all(f"\n## {one.name}\n" in commands for one in cli.COMMANDS)


def test_options_page_lists_every_option(generate: ModuleType) -> None:
    page = generate.options_page()
    assert page == generate.OPTIONS.read_text("utf-8"), "run: python docs/generate.py"
    assert "| `--bpe-case ID` | run exactly this case or property; repeatable |\n" in page
    assert "| `compare` | " in page


@pytest.mark.parametrize(
    ("page", "link", "rewritten"),
    [
        ("conventions", "[s](../conformance/SPEC.md)", "[s](/generated/spec/index.md)"),
        ("conventions", "[a](adapters.md#rules)", "[a](/adapters.md#rules)"),
        ("generated/contributing", "[a](docs/architecture.md)", "[a](/architecture.md)"),
        (
            "ci",
            "[schema](../conformance/report/report.schema.json)",
            "schema (`conformance/report/report.schema.json`)",
        ),
        ("ci", "[web](https://example.org)", "[web](https://example.org)"),
    ],
)
def test_links_lead_to_pages(generate: ModuleType, page: str, link: str, rewritten: str) -> None:
    source = [link]
    generate.rewrite_links(None, page, source)
    assert source == [rewritten]
