"""The HTML page of reports is tested as a file; tests/slow/report/test_page_browser.py tests it in a browser."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import jsonschema
import pytest
from helpers.project import Project
from helpers.sample_reports import GREEDY, HOSTILE, failing, greedy, lost, mismatch, outcome, report, result, spec

from bpe_conformance.operations import CLASSES
from bpe_conformance.outcome import BugCause, Command, ConventionCause, Dependence, ErrorCause
from bpe_conformance.report import document, markdown, page
from bpe_conformance.report.page import STATES, Cell
from bpe_conformance.terminal.failure import NAMES

pytestmark = pytest.mark.release

VOID = {"br", "input", "link", "meta", "wbr"}


class Element:
    def __init__(self, tag: str, attributes: dict[str, str | None]) -> None:
        self.tag, self.attributes = tag, attributes
        self.children: list[Element | str] = []

    def all(self, tag: str, **wanted: str) -> list[Element]:
        """Return the elements below with this tag and these attributes (`class_`: one of its classes)."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                if child.tag == tag and all(child.has(name, value) for name, value in wanted.items()):
                    found.append(child)
                found += child.all(tag, **wanted)
        return found

    def one(self, tag: str, **wanted: str) -> Element:
        (found,) = self.all(tag, **wanted)
        return found

    def has(self, name: str, value: str) -> bool:
        own = self.attributes.get(name.rstrip("_")) or ""
        return value in own.split() if name == "class_" else own == value

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)


class Parser(HTMLParser):
    """Builds a tree, and rejects HTML that a browser would have to repair."""

    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), self.get_starttag_text()
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag, (tag, self.getpos())

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parsed(html: str) -> Element:
    parser = Parser()
    parser.feed(html)
    parser.close()
    (root,) = parser.open
    return root


def data(root: Element) -> dict[str, Any]:
    return dict(json.loads(gzip.decompress(base64.b64decode(root.one("script", id="data").text))))


def test_the_page_is_one_file_that_loads_no_other() -> None:
    root = parsed(page.text([report(), report("two")]))
    assert len(root.all("script")) == 2
    assert [one.attributes["href"] for one in root.all("link")] == ["data:,"]
    for tag in ("img", "iframe", "object", "base", "form"):
        assert not any({"src", "data", "href", "action"} & one.attributes.keys() for one in root.all(tag))
    assert not any("src" in one.attributes for one in root.all("script"))
    assert all((one.attributes["href"] or "").startswith("#") for one in root.all("a"))
    assert set(re.findall(r"url\(\"?([^:)]*)", root.one("style").text)) == {"data"}
    (policy,) = [one.attributes["content"] or "" for one in root.all("meta") if "http-equiv" in one.attributes]
    assert policy.startswith("default-src 'none'")
    digest = hashlib.sha256(root.all("script")[1].text.encode("utf-8")).digest()
    assert f"script-src 'sha256-{base64.b64encode(digest).decode()}'" in policy


def test_the_same_reports_give_the_same_bytes() -> None:
    reports = [report("one", failing(), causes=[greedy([*failing()])]), report("two")]
    assert page.text(reports) == page.text(reports)


def test_every_clause_has_a_row_and_every_row_a_cell_for_each_implementation() -> None:
    states = {**failing(2), "bytes-alphabet-ascii": "warning", "bytes-alphabet-two-bytes": "skipped"}
    first, second = report("one", states), report("two", cases=5)
    table = parsed(page.text([first, second])).one("table", id="table")
    head = table.one("thead").all("th", scope="col")
    assert [one.text for one in head] == ["clause", "one", "two"]
    rows = {one.attributes["data-clause"]: one for one in table.all("tr") if "data-clause" in one.attributes}
    assert rows.keys() == {clause["id"] for clause in first["clauses"]}
    for name, row in rows.items():
        assert row.one("th", scope="row").text.startswith(str(name))
        for cell, each in zip(row.all("td"), (first, second), strict=True):
            mine = Cell(Counter(one["state"] for one in each["results"] if one["clause"] == name))
            words = cell.all("a")[0].attributes["aria-label"] if mine.counts else cell.text
            assert words == mine.words
            letters = [one.attributes["class"] for one in cell.all("a") + cell.all("span", class_="x")]
            assert letters == [STATES[mine.state]]
    sections = table.all("tr", class_="section")
    assert [one.one("th", scope="rowgroup").one("b").text for one in sections] == ["BYTES", "MERGE", "BATCH"]
    assert [one.one("span").text for one in sections[1].all("td")] == ["2/2 failed", "not tested"]


@pytest.mark.parametrize(
    ("states", "state", "words"),
    [
        ([], "not tested", "not tested"),
        (["passed", "passed"], "passed", "2 passed"),
        (["passed", "failed", "failed", "skipped"], "failed", "2/3 failed, 1 skipped"),
        (["passed", "passed", "failed"], "failed", "1/3 failed"),
        (["failed", "error", "passed"], "error", "2/3 did not pass: 1 error, 1 failed"),
        (["warning"], "warning", "1/1 warning"),
        (["known failure", "passed"], "known failure", "1/2 known failure"),
        (["skipped"], "skipped", "1 skipped"),
    ],
)
def test_a_cell_shows_the_worst_state_and_counts_the_others(states: list[str], state: str, words: str) -> None:
    assert (Cell(Counter(states)).state, Cell(Counter(states)).words) == (state, words)


def test_states_differ_in_shape_and_word() -> None:
    root = parsed(page.text([report()]))
    style = root.one("style").text
    legend = root.one("dl", class_="legend")
    assert {one.text for one in legend.all("dt")} == set(STATES)
    shapes = [
        re.search(rf'^\.{letter} {{ --char: "(.)"; --shape: var\((.*?)\)', style, re.M) for letter in STATES.values()
    ]
    found = [one.groups() for one in shapes if one]
    assert len({char for char, _ in found}) == len({shape for _, shape in found}) == len(STATES)


def test_without_a_script_the_verdicts_and_the_statements_are_there() -> None:
    one = report("one", failing(), cases=60, causes=[greedy([*failing()])], conventions={"tie_break": "first-seen"})
    root = parsed(page.text([one, report("two")]))
    table = root.one("table", class_="verdicts")
    heads = [head.text for head in table.one("thead").all("th", scope="col")]
    assert heads == ["implementation", *CLASSES, "conventions declared"]
    row, other = table.one("tbody").all("tr")
    assert len(row.all("td")) == len(other.all("td")) == len(heads) - 1
    encoder = next(each for each in one["verdicts"] if each["class"] == "encoder")
    assert row.all("td")[1].text.replace("\n", "") == f"fail{encoder['failed']} of {encoder['must']}"
    assert "tie_break=first-seen" in row.all("td")[-1].text
    about = root.one("details", id="in=one")
    assert encoder["sentence"] in about.text
    assert about.text.count("Merges from the left.") == 1
    assert "Take the lowest rank." in about.text
    rows = {each.attributes.get("data-clause"): each for each in root.one("table", id="table").all("tr")}
    for clause in one["clauses"]:
        assert clause["statement"].replace("`", "") in rows[clause["id"]].text


def test_a_class_that_was_skipped_differs_from_one_that_was_not_tested() -> None:
    trained = next(case.id for case in spec().cases if case.operation.name == "train")
    root = parsed(page.text([report("one", {trained: "skipped"}), report("two")]))
    found = [row.all("td")[0].text for row in root.one("table", class_="verdicts").one("tbody").all("tr")]
    assert found == ["skipped", "not tested"]


def test_a_class_whose_failures_follow_from_another_class_has_no_verdict() -> None:
    depends = replace(mismatch(), depends_on=Dependence("encode"))
    streams = [outcome(f"s{number}", "failed", conformance_class="streaming", mismatch=depends) for number in range(2)]
    passed = outcome("s2", conformance_class="streaming")
    made = document.build(result(outcome("e", "failed"), passed, *streams))
    root = parsed(page.text([made, report("two")]))
    table = root.one("table", class_="verdicts")
    names = [head.text for head in table.one("thead").all("th")]
    row = table.one("tbody").all("tr")[0]
    assert row.all("td")[names.index("streaming") - 1].text == "no verdict"


EVIDENCE = """\
merges     0: b+c   1: a+b
expected   a  | bc   [97, 256]
got        ab | c    [257, 99]
           ^^ used rank 1; rank 0 (b+c) was available at byte 1
"""


def test_a_page_of_one_report_begins_with_the_likely_causes() -> None:
    states = failing(4)
    first, second, third, _ = states
    causes = [
        ConventionCause((("lookup", "bytes"),), (first,)),
        greedy([second]),
        ErrorCause("IndexError: 7", "mine.py:7", (third,)),
    ]
    root = parsed(page.text([report("one", states, causes=causes)]))
    assert root.all("h2")[0].text == "Likely causes"
    declared, bug, error = root.all("article", class_="cause")
    assert declared.all("p")[0].text == "undeclared lookup=bytes may explain 1 of 4 failures."
    assert declared.all("p")[1].one("code").text == 'conventions = {"lookup": "bytes"}'
    assert [one.text for one in bug.all("p")[:2]] == [
        "greedy may explain 1 of 4 failures.",
        "Merges from the left. Fix: Take the lowest rank. MERGE-ORDER-1 bpe-conformance explain greedy",
    ]
    assert bug.all("p")[2].one("a").attributes["href"] == f"#in=one&case={second}"
    assert bug.one("p", class_="fact").text == "encode('abc') merged the wrong pair first."
    assert bug.one("pre").text == EVIDENCE
    assert error.all("p")[1].text == "Raised at mine.py:7"
    assert "No known cause explains the other 1." in root.one("main").text
    assert root.one("p", class_="next").text.startswith("Next: 3 likely causes explain 3 of 4 failures: undeclared")


def test_a_cause_that_several_bugs_fit_shows_the_first_of_them() -> None:
    for count in range(1, 6):
        bugs = tuple(replace(GREEDY, id=f"bug-{number}") for number in range(count))
        made = report("one", states := failing(2), causes=[BugCause(bugs, tuple(states))])
        (cause,) = parsed(page.text([made])).all("article", class_="cause")
        assert re.findall(r"explain (bug-\d)", cause.text) == [f"bug-{number}" for number in range(min(count, NAMES))]
        assert markdown.text(made).count("**Fix:**") == min(count, NAMES)


def test_a_page_of_one_report_shows_every_failure_in_full() -> None:
    states = {**failing(2), "bytes-alphabet-ascii": "warning", "bytes-alphabet-two-bytes": "error"}
    root = parsed(page.text([report("one", states, causes=[greedy([*failing(2)])], fields={"reason": "see 7"})]))
    heads = ["Likely causes", "About the run", "Clauses", "1 error", "2 failed", "1 warning"]
    assert [one.text for one in root.all("h2")] == heads
    assert len(root.all("table")) == 1
    for case, state in states.items():
        (article,) = [one for one in root.all("article") if one.all("h3") and one.one("h3").one("a").text == case]
        fields = {key.text: part.text for key, part in zip(article.all("dt"), article.all("dd"), strict=True)}
        assert fields["rerun"] == f"pytest conformance --adapter one --bpe-case {case}"
        assert fields["reason"] == "see 7"
        assert fields.get("likely") == ("greedy" if case in failing(2) else None)
        if state == "error":
            assert article.one("p", class_="fact").text == "The suite itself failed; please report it."
            assert not article.all("pre")
        else:
            assert fields["explain"] == f"bpe-conformance explain {case}"
            assert article.one("pre", class_="evidence").text == EVIDENCE
            (pointer,) = article.all("span", class_="pointer")
            assert pointer.text.strip().startswith("^^ used rank 1")


def test_the_data_contain_each_text_once() -> None:
    states = {**failing(2), "bytes-alphabet-ascii": "skipped"}
    reports = [report("one", states, causes=[greedy([*failing(2)])]), report("two", failing(1))]
    made = data(parsed(page.text(reports)))
    cases = [one[0] for one in made["cases"]]
    clauses = {one["id"]: one["clause"] for one in reports[0]["results"]}
    assert [made["clauses"][one[1]]["id"] for one in made["cases"]] == [clauses[case] for case in cases]
    first, second = made["implementations"]
    assert set(second["states"]) == {"p", "x", "f"}
    for case, letter in zip(cases, first["states"], strict=True):
        assert made["states"][letter] == states.get(case, "passed")
    assert first["reasons"] == [["train", [cases.index("bytes-alphabet-ascii")]]]
    assert [case for case in states if str(cases.index(case)) in first["failures"]] == [*failing(2)]
    place = str(cases.index(next(iter(states))))
    fact, evidence, further, bugs = first["failures"][place]
    assert fact == "encode('abc') merged the wrong pair first."
    assert [label for label, _ in evidence] == ["merges", "expected", "got", ""]
    assert evidence[3][1] == "^^ used rank 1; rank 0 (b+c) was available at byte 1"
    assert ([label for label, _ in further], bugs) == (["reproduce"], ["greedy"])
    assert second["failures"][place][:2] == [fact, evidence]
    assert made["bugs"]["greedy"] == ["Merges from the left.", "Take the `lowest` rank.", "MERGE-ORDER-1"]
    assert first["command"] == "pytest conformance --adapter one"


def test_the_command_of_a_case_leaves_out_what_selected_a_part() -> None:
    one = report(command=Command("x:Y", {"--bpe-strict": ""}, selecting=("--bpe-section", "MERGE")))
    made = data(parsed(page.text([one])))
    assert made["implementations"][0]["command"] == "pytest conformance --adapter x:Y --bpe-strict"


def test_details_of_a_failure_are_below_its_evidence() -> None:
    (one,) = document.build(result(outcome(state="failed", case="clause: X", reason="see 7")))["results"]
    *shown, (label, command) = page.further(one)
    assert shown == [("reason", "see 7"), ("as a case", "clause: X")]
    assert (label, command[:10]) == ("reproduce", "python -c ")


def test_a_case_that_passes_shows_its_input_only_if_the_installed_spec_has_it() -> None:
    mine, other = report(), report()
    other["suite"]["spec"] = "0" * 12
    shown, hidden = data(parsed(page.text([mine]))), data(parsed(page.text([other])))
    case = next(one for one in shown["cases"] if one[0] == "bytes-alphabet-two-bytes")
    rows = dict(case[4])
    assert list(rows) == ["call", "merges", "expected"]
    assert rows["call"].startswith("encode(")
    assert "[" in rows["expected"]
    assert all(one[4] == [] for one in hidden["cases"])


def test_two_reports_of_one_name_get_different_names() -> None:
    made = data(parsed(page.text([report("one"), report("one", pack="gpt2"), report("one"), report("one")])))
    assert [one["name"] for one in made["implementations"]] == ["one", "one (gpt2)", "one #2", "one #3"]


def test_reports_of_two_versions_are_both_named_by_their_version() -> None:
    older, newer = report("one"), report("one")
    newer["adapter"]["version"] = "2.0"
    root = parsed(page.text([older, report("two"), newer]))
    assert [one["name"] for one in data(root)["implementations"]] == ["one 1.0", "two", "one 2.0"]
    columns = [head.text.strip() for head in root.one("table", id="table").one("thead").all("th")]
    assert columns[-3:] == ["one 1.0", "two", "one 2.0"]


def test_a_partial_run_is_marked() -> None:
    without = document.build(result(outcome(), lost(), lost("another"), name="two"))
    root = parsed(page.text([report("one", selected=True), without, report("three")]))
    heads = [row.one("th", scope="row").text for row in root.one("table", class_="verdicts").one("tbody").all("tr")]
    assert ["in part" in one for one in heads] == [True, False, False]
    assert "2 results are missing, and count as failed" in root.one("details", id="in=two").text


def test_contents_of_a_report_do_not_become_markup() -> None:
    states = failing(2)
    causes = [greedy([*states], id=HOSTILE, sentence=HOSTILE, fix=HOSTILE, clause=HOSTILE)]
    bad = report(HOSTILE, states, causes=causes, conventions={HOSTILE: HOSTILE}, pack=HOSTILE)
    for one in bad["results"]:
        one["title"] = HOSTILE
        if one["state"] == "failed":
            texts = ("fact", "rule", "depends_on", "conventions", "case", "reproduce", "rerun", "explain", "error")
            one["failure"] |= {**dict.fromkeys(texts, HOSTILE), "evidence": [[HOSTILE, HOSTILE]], "bugs": [HOSTILE]}
    for reports in ([bad], [bad, report("two")]):
        html = page.text(reports)
        html.encode("utf-8")
        assert "\u202e" not in html
        root = parsed(html)
        assert len(root.all("script")) == 2
        assert not root.all("img")
        assert "<" not in root.one("script", id="data").text
        assert len(data(root)["implementations"][0]["failures"]) == 2
        assert {fact for fact, *_ in data(root)["implementations"][0]["failures"].values()} == {page.visible(HOSTILE)}
        assert page.visible(HOSTILE) in root.one("main").text


def test_visible_text_stays_and_every_other_character_is_escaped() -> None:
    kept = "a\n\u20ac \u05d0 caf\u00e9 \U0001f98a"
    assert page.visible(kept) == kept
    assert page.visible({"a\u200b": ["\u2066", 1, None]}) == {"a\\u200b": ["\\u2066", 1, None]}


def test_prose_is_rendered_with_no_markup_but_code() -> None:
    assert page.prose("`a<b` & `c") == "<code>a&lt;b</code> &amp; `c"
    assert page.breakable("a.b_c<") == "a.<wbr>b_<wbr>c&lt;"


def test_results_of_one_cause_are_shown_once_in_full_and_then_as_links() -> None:
    states = failing(60)
    root = parsed(page.text([report("x", states, causes=[greedy([*states][:50])])]))
    (section,) = [one for one in root.all("section", class_="results") if one.one("h2").text == "60 failed"]
    full = [article.one("h3").one("a").text for article in section.all("article")]
    (rest,) = section.all("details")
    assert rest.one("summary").text == "45 more of the cause greedy"
    assert (len(full), {*full, *(link.text for link in rest.all("a"))}) == (15, {*states})
    assert {*full} >= {*[*states][50:]}
    assert len(data(root)["implementations"][0]["failures"]) == 60


def test_the_page_of_25_implementations_is_below_one_megabyte() -> None:
    everything = len(spec().cases)
    states = failing(60) | {one.id: "skipped" for one in spec().cases if one.operation.name == "train"}
    reports = [report(f"implementation-{number}", states, cases=everything) for number in range(25)]
    for number, one in enumerate(reports):
        for each in one["results"]:
            if each["state"] == "failed":
                each["failure"]["evidence"][2][1] += f" by {number}" * 10
    html = page.text(reports)
    assert len(html.encode("utf-8")) < 1_000_000
    assert "dense" in (parsed(html).one("table", id="table").attributes["class"] or "")


def test_a_report_without_a_result_and_one_of_real_text_alone_have_a_page() -> None:
    corpus = report(cases=1, fields={"clause": None, "conformance_class": "corpus", "kind": "corpus"})
    assert "Nothing was tested." in parsed(page.text([report(cases=0)])).one("header").text
    rows = parsed(page.text([corpus])).one("table", id="table").all("tr")
    assert [row.attributes.get("data-clause") for row in rows[1:]] == [None, "corpus"]


def test_a_line_that_continues_beyond_the_edge_has_a_shadow_there() -> None:
    style = parsed(page.text([report()])).one("style").text
    (layers,) = re.findall(r"^\.evidence \{[^}]*background: ([^}]*) \}", style, re.MULTILINE)
    assert re.findall(r"\b(local|scroll)\b", layers) == ["local", "local", "scroll", "scroll"]


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours. Source: WCAG 2.2, relative luminance and contrast ratio."""

    def luminance(color: str) -> float:
        parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_colours_have_the_contrast_of_wcag_aa_in_light_and_dark() -> None:
    style = (page.HERE / "page.css").read_text("utf-8")
    light, dark = (dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", part)) for part in style.split("@media", 2)[:2])
    assert light.keys() >= dark.keys() > {"paper", "ink", "f-tint"}
    for colours in (light, {**light, **dark}):
        for ground in ("paper", "raised", "hover"):
            for text in ("ink", "soft", "link", *"pfewks"):
                assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
        for letter in "fewk":
            assert contrast(colours[letter], colours[f"{letter}-tint"]) >= 4.5, letter
        assert contrast(colours["x"], colours["paper"]) >= 3


def test_a_run_writes_the_page(project: Project) -> None:
    project.judge("mine:Greedy", "--bpe-report", "report.html")
    root = parsed((project.path / "report.html").read_text("utf-8"))
    assert root.one("h1").text.startswith("mine:Greedy")
    assert "merge-priority" in [one.one("h3").one("a").text for one in root.all("article") if one.all("h3")]


def test_sample_reports_match_the_schema() -> None:
    sample = report("one", failing(), causes=[greedy([*failing()])])
    jsonschema.validate(sample, json.loads(document.SCHEMA.read_text("utf-8")))
