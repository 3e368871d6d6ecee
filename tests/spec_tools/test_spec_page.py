"""The rendered specification contains all data, each clause once, and examples taken from cases."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.fixtures.yaml_file import SpecError
from bpe_conformance.spec import Spec, installed_spec
from bpe_conformance.spec_tools import spec_page, superbpe
from bpe_conformance.spec_tools.spec_page import FILE, render

CLAUSE = re.compile(r'^<a id="([a-z0-9-]+)"></a>\*\*([A-Z0-9-]+)\*\* (.*)$', re.MULTILINE)
OF_THE_HARNESS = re.compile(r"\b(adapter|pytest|Hypothesis|--bpe|bpe-conformance|the suite)\b")


@cache
def spec() -> Spec:
    return installed_spec()


def test_every_pattern_is_printed_exactly() -> None:
    lines = {line.strip() for line in FILE.read_text("utf-8").splitlines()}
    assert all(pattern in lines for pattern in PATTERNS.values())


def shown_as_code(markdown: str) -> str:
    """Return the text of a code span, by the rules of CommonMark, which must be all that there is."""
    fences = [found.span() for found in re.finditer("`+", markdown)]
    (_, start), (end, last) = fences[0], next(one for one in fences[1:] if one[1] - one[0] == fences[0][1])
    assert last == len(markdown)
    text = markdown[start:end]
    return text[1:-1] if text.strip(" ") and text.startswith(" ") and text.endswith(" ") else text


@pytest.mark.parametrize("text", ["a", "`", "`a", "a`", "a`b", "`a`", "a+` b+c", "'` '"])
def test_code_in_a_page_is_the_text(text: str) -> None:
    assert shown_as_code(spec_page.code(text)) == text


@pytest.mark.parametrize("size", range(1, spec_page.MOST_ALIKE + 3))
def test_equal_tokens_in_a_row_are_counted_only_if_they_are_many(size: int) -> None:
    is_listed = size <= spec_page.MOST_ALIKE
    alike = ["'ab'"] * size if is_listed else [f"'ab' \u00d7 {size}"]
    assert spec_page.tokens([b"x", *[b"ab"] * size, b"x"]).split(" | ") == ["'x'", *alike, "'x'"]


def test_every_clause_is_stated_once() -> None:
    stated = {name: statement for _, name, statement in CLAUSE.findall(FILE.read_text("utf-8"))}
    assert stated == {clause.id: clause.statement.strip() for clause in spec().clauses.values()}


def test_every_case_is_named() -> None:
    page = FILE.read_text("utf-8")
    assert all(f"`{case.id}`" in page for case in spec().cases)


def test_a_clause_with_short_cases_has_two_examples() -> None:
    chapters = FILE.read_text("utf-8").partition("## Annex B")[0]
    shown = re.findall(r"^- .*→.* \(([a-z0-9-]+)\)$", chapters, re.MULTILINE)
    clause_of = {case.id: case.clause.id for case in spec().cases}
    found = Counter(clause_of[name] for name in shown)
    fits = (case for case in spec().cases if len(spec_page.example(case)) <= spec_page.LONGEST_EXAMPLE)
    short = Counter(case.clause.id for case in fits)
    for clause in spec().clauses.values():
        assert found[clause.id] == (len(clause.examples) or min(2, short[clause.id])), clause.id


def test_the_pages_are_those_that_the_files_give() -> None:
    assert render(spec()) == FILE.read_text("utf-8")
    assert spec_page.render_superbpe(superbpe.load_extension()) == superbpe.PAGE.read_text("utf-8")


def test_the_normative_chapters_say_nothing_about_the_suite() -> None:
    chapters = FILE.read_text("utf-8").partition("-->")[2].partition("## Annex B")[0]
    assert OF_THE_HARNESS.findall(chapters) == []


def test_every_clause_that_a_step_names_exists() -> None:
    chapters = FILE.read_text("utf-8").partition("## Annex B")[0]
    named = set(re.findall(r"\b[A-Z]+(?:-[A-Z0-9]+)+-[0-9]+\b", re.sub(r"^- .*→.*$", "", chapters, flags=re.MULTILINE)))
    assert named == set(spec().clauses)


def test_a_clause_that_the_chapters_leave_out_is_an_error() -> None:
    section = spec().sections[0]
    more = replace(section, clauses=(*section.clauses, replace(section.clauses[0], id="BYTES-NEW-1")))
    with pytest.raises(
        SpecError, match=r"specification\.md: each clause must have exactly one placeholder: BYTES-NEW-1"
    ):
        render(replace(spec(), sections=(more, *spec().sections[1:])))


@pytest.mark.parametrize(("options", "tokens"), [({}, ["ab", "1"]), ({"unit_pattern": "[^\\n]+"}, ["ab1"])])
def test_a_superbpe_case_encodes_by_the_unit_pattern_of_its_training(
    options: dict[str, str], tokens: list[str]
) -> None:
    case = superbpe.load_extension().cases[0]
    training = {"documents": ["ab1 ab1"], "vocab_size": 258, "transition": 257, "special_tokens": [], **options}
    raw = {"op": "encode", "input": {"train": training, "text": "ab1"}}
    assert replace(case, raw=raw).value["tokens"] == tokens
