"""The manual quotes the page of the benchmarks, and the marks between which its tables are made are in order."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "benchmarks/README.md").read_text("utf-8")


def _rows(text: str) -> dict[str, set[str]]:
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if re.match(r"\| \w", line)]
    return {name: {*cells} for name, *cells in lines}


def _part(name: str) -> str:
    return PAGE.partition(f"<!-- {name} -->\n")[2].partition("\n<!-- end -->")[0]


def test_every_part_of_the_page_is_made_by_the_command() -> None:
    names = re.findall(r"<!-- (?!end)(\S+) -->", PAGE)
    assert len(names) > 10
    assert [name for name in names if len(_part(name)) < 200 or "<!--" in _part(name)] == []
    made = (ROOT / "benchmarks/race.py").read_text("utf-8")
    assert [name for name in names if f'        "{name}": l' not in made] == []


def test_the_manual_quotes_the_page() -> None:
    section = (ROOT / "docs/reference.md").read_text("utf-8").partition("\n## Speed\n")[2].partition("\n## ")[0]
    page = _rows(_part("train"))
    for name, cells in _rows(_part("encode")).items():
        page[name] = cells | _rows(_part("encode-cl100k"))[name]
    quoted = {name: cells for name, cells in _rows(section).items() if name in page}
    assert len(quoted) > 20
    assert {name: cells - page[name] for name, cells in quoted.items()} == {name: set() for name in quoted}
