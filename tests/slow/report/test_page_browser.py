"""The HTML page of reports works in a browser: filter, details, keyboard, links and narrow windows."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.sample_reports import HOSTILE, failing, greedy, report, spec

from bpe_conformance.report import page

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install -e '.[browser]'")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not installed")
QUIET = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-quic"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--window-size=1280,900",
]
MANY = 300
CASE = "merge-priority-beats-leftmost"
ENTER, ESCAPE, DOWN, RIGHT, LEFT, TAB = "\ue007", "\ue00c", "\ue015", "\ue014", "\ue012", "\ue004"


class Browser:
    def __init__(self, driver: Any, folder: Path) -> None:
        self.driver, self.folder = driver, folder

    def open(self, name: str, hash_: str = "") -> None:
        self.driver.get("about:blank")  # otherwise only the hash would change
        self.driver.get(f"{(self.folder / name).as_uri()}{hash_}")
        self.until("document.body?.classList.contains('js')")

    def js(self, code: str) -> Any:
        return self.driver.execute_script(f"return {code}")

    def keys(self, *keys: str) -> None:
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def until(self, code: str) -> None:
        """Wait until an expression is true, because going back in the history takes a moment."""
        end = time.monotonic() + 5
        while not self.js(code):
            assert time.monotonic() < end, (code, self.js("location.hash"))
            time.sleep(0.02)

    @property
    def shown(self) -> list[str]:
        """Return the clauses whose rows are visible."""
        rows = "[...document.querySelectorAll('#table tr[data-clause]')]"
        return list(self.js(f"{rows}.filter((row) => row.offsetParent !== null).map((row) => row.dataset.clause)"))

    def choose(self, name: str, value: str) -> None:
        self.js(
            f"(() => {{ const field = document.querySelector('#filter [name={name}]'); field.value = '{value}';"
            " field.dispatchEvent(new Event('input', { bubbles: true })); })()"
        )


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    states = failing(2)
    one = report("one", states, cases=60, causes=[greedy([*states])])
    bad = report(HOSTILE, states)
    for result in bad["results"]:
        result["title"] = HOSTILE
        if result["state"] == "failed":
            result["failure"] |= {"fact": HOSTILE, "evidence": [[HOSTILE, HOSTILE]], "depends_on": HOSTILE}
    made = {"several": [report("right", cases=60), one], "single": [one], "hostile": [bad, one]}
    mine = [case.id for case in spec().cases if case.clause.id == "MERGE-ORDER-1"]
    late = report("late", {mine[0]: "passed", mine[-1]: "failed"}, cases=0)
    made["late"] = [report("all", dict.fromkeys(mine, "passed"), cases=0), late]
    made["many"] = [report(f"implementation-{number}", cases=MANY) for number in range(12)]
    for name, reports in made.items():
        (folder / f"{name}.html").write_bytes(page.text(reports).encode("utf-8"))
    return folder


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for word in (*QUIET, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(word)
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield started
    started.quit()


@pytest.fixture
def browser(driver: Any, pages: Path) -> Iterator[Browser]:
    yield Browser(driver, pages)
    assert [entry["message"] for entry in driver.get_log("browser")] == []


def test_the_search_finds_clauses_and_cases_and_says_how_many(browser: Browser) -> None:
    browser.open("several.html")
    everything = len(browser.shown)
    browser.keys("/", "MERGE-ORDER")
    assert browser.shown == ["MERGE-ORDER-1"]
    assert browser.js("document.getElementById('count').textContent") == f"1 of {everything} clauses"
    assert browser.js("document.getElementById('count').getAttribute('aria-live')") == "polite"
    assert browser.js("location.hash") == "#q=MERGE-ORDER"
    browser.keys(*["\ue003"] * len("MERGE-ORDER"), "beats leftmost")
    assert browser.shown == ["MERGE-ORDER-1"]
    assert browser.js("document.querySelector('.hits').textContent") == CASE
    browser.keys("zzz")
    assert browser.shown == []
    assert browser.js("document.getElementById('none').offsetParent !== null")
    browser.js("document.querySelector('#filter button').click()")
    assert len(browser.shown) == everything


def test_a_filter_is_in_the_link_and_back_removes_it(browser: Browser) -> None:
    browser.open("several.html")
    everything = browser.shown
    browser.choose("state", "failed")
    assert browser.shown == ["MERGE-ORDER-1"]
    browser.choose("in", "right")
    assert browser.js("location.hash") == "#state=failed&in=right"
    assert browser.shown == []
    browser.js("history.back()")
    browser.until("location.hash === '#state=failed'")
    assert browser.shown == ["MERGE-ORDER-1"]
    browser.js("history.back()")
    browser.until("!location.hash")
    assert browser.shown == everything


def test_a_link_restores_the_view_it_was_made_from(browser: Browser) -> None:
    browser.open("several.html", "#section=MERGE&level=must&in=one")
    assert browser.shown
    assert all(clause.startswith("MERGE-") for clause in browser.shown)
    assert browser.js("[...document.querySelectorAll('#filter select')].map((one) => one.value)") == [
        *("MERGE", "must", "", "one"),
    ]
    assert browser.js("document.querySelectorAll('#table thead th')[1].offsetParent") is None
    assert browser.js("document.querySelector('.about[open] h3').textContent").startswith("one")
    browser.open("several.html", f"#case={CASE}&in=one")
    assert browser.js("document.querySelector('dialog[open] h2').textContent") == "MERGE-ORDER-1"
    fields = dict(
        browser.js(
            "[...document.querySelectorAll('.wanted[open] dt')]"
            ".map((one) => [one.textContent, one.nextSibling.textContent])"
        )
    )
    assert fields.pop("reproduce").startswith("python -c ")
    assert fields == {
        "likely": "greedy: Merges from the left. Fix: Take the lowest rank.",
        "rerun": f"pytest conformance --adapter one --bpe-case {CASE}",
        "explain": f"bpe-conformance explain {CASE}",
    }
    assert browser.js("document.querySelector('.wanted .fact').textContent") == (
        "encode('abc') merged the wrong pair first."
    )
    assert browser.js("document.querySelector('.wanted .evidence').textContent").splitlines() == [
        "merges     0: b+c   1: a+b",
        "expected   a  | bc   [97, 256]",
        "got        ab | c    [257, 99]",
        "           ^^ used rank 1; rank 0 (b+c) was available at byte 1",
    ]


def test_the_pointer_is_under_what_differs_and_has_the_colour_of_a_failure(browser: Browser) -> None:
    browser.open("several.html", f"#case={CASE}&in=one")
    pointer = "document.querySelector('.wanted .pointer')"
    assert browser.js(f"getComputedStyle({pointer}).color") == browser.js(
        "getComputedStyle(document.querySelector('.wanted .word.f')).color"
    )
    assert browser.js(f"getComputedStyle({pointer}).fontFamily") == browser.js(
        "getComputedStyle(document.querySelector('.wanted .evidence i')).fontFamily"
    )
    assert browser.js("getComputedStyle(document.querySelector('.wanted .evidence')).whiteSpace") == "pre"


def test_a_link_to_a_case_far_down_shows_it(browser: Browser) -> None:
    cases = spec().cases[:MANY]
    last = {case.clause.id: case.id for case in cases}
    longest = max(last, key=lambda clause: sum(case.clause.id == clause for case in cases))
    browser.open("many.html", f"#case={last[longest]}&in=implementation-3")
    place = browser.js("document.querySelector('.wanted summary').getBoundingClientRect().bottom")
    assert 0 < place < browser.js("innerHeight")
    assert browser.js("document.querySelector('dialog').scrollTop") > 0


def test_the_keyboard_alone_reaches_a_case_and_comes_back(browser: Browser) -> None:
    browser.open("several.html")
    focused = "document.activeElement.getAttribute('href')"
    browser.keys(TAB)
    assert browser.js(focused) == "#clauses"
    browser.js("document.querySelector('.scroll.wide').focus()")
    browser.keys(TAB, DOWN, RIGHT, RIGHT, LEFT, RIGHT)
    cell = browser.js(focused)
    assert cell.startswith("#in=one&clause=")
    browser.keys(ENTER)
    assert browser.js("document.querySelector('dialog').open")
    assert browser.js("document.activeElement.id") == "details-title"
    assert browser.js("location.hash") == cell
    browser.keys(ESCAPE)
    browser.until("!document.querySelector('dialog').open && !location.hash")
    assert browser.js(focused) == cell
    browser.keys(TAB)
    assert not browser.js("document.getElementById('table').contains(document.activeElement)")


def test_the_head_does_not_hide_a_cell_that_has_the_focus(browser: Browser) -> None:
    browser.open("many.html")
    browser.js("document.querySelector('#table tbody a').focus()")
    browser.keys(RIGHT, DOWN)
    top = "document.activeElement.getBoundingClientRect().top"
    head = "document.querySelector('#table thead th').getBoundingClientRect()"
    browser.js(f"scrollBy(0, {top} - document.getElementById('filter').offsetHeight - 20)")
    assert browser.js(f"{top} < {head}.bottom")
    browser.keys(DOWN)
    assert browser.js(f"{top} >= {head}.bottom")


def test_back_closes_the_details_and_close_goes_back(browser: Browser) -> None:
    browser.open("several.html", "#section=MERGE")
    cell = "document.querySelector('#table td a.f')"
    browser.js(f"{cell}.click()")
    assert browser.js("location.hash") == "#section=MERGE&in=one&clause=MERGE-ORDER-1"
    assert browser.js("document.querySelectorAll('#table thead th')[1].offsetParent !== null")  # the table stays
    browser.js("history.back()")
    browser.until("location.hash === '#section=MERGE'")
    assert not browser.js("document.querySelector('dialog').open")
    before = browser.js("history.length")
    browser.js(f"{cell}.click()")
    browser.js("document.querySelector('dialog header button').click()")
    browser.until("location.hash === '#section=MERGE'")
    assert browser.js("history.length") == before
    browser.open("several.html", "#clause=MERGE-ORDER-1&in=one")
    browser.js("document.querySelector('dialog header button').click()")
    assert browser.js("location.hash") == "#in=one"


def test_the_details_of_all_implementations_link_to_each(browser: Browser) -> None:
    browser.open("several.html", "#clause=MERGE-ORDER-1")
    assert browser.js(f"[...document.querySelectorAll('.cases .id')].map((one) => one.textContent).includes('{CASE}')")
    browser.js("document.querySelector('.cases summary').click()")
    browser.until("document.querySelector('.cases dl a')")
    browser.js("document.querySelector('.cases dl a').click()")
    assert browser.js("document.querySelector('dialog select').value") == "one"
    assert browser.js("location.hash") == f"#in=one&case={CASE}"


def test_failures_are_first_and_what_was_not_tested_is_left_out(browser: Browser) -> None:
    shown = "[...document.querySelectorAll('.cases .id')].map((one) => one.textContent)"
    mine = [case.id for case in spec().cases if case.clause.id == "MERGE-ORDER-1"]
    browser.open("late.html", "#clause=MERGE-ORDER-1&in=late")
    assert browser.js(shown) == [mine[-1], mine[0]]
    browser.open("late.html", f"#case={mine[1]}&in=late")
    assert browser.js(shown) == [mine[-1], mine[0], mine[1]]


def test_contents_of_a_report_are_shown_and_not_run(browser: Browser) -> None:
    browser.open("hostile.html", f"#case={CASE}")
    browser.js("document.querySelector('.cases .wanted dl a').click()")
    assert "<img src=x onerror=alert(1)>" in browser.js("document.querySelector('.wanted .fact').textContent")
    assert browser.js("document.querySelectorAll('img').length") == 0


@pytest.mark.parametrize("name", ["several", "single", "many"])
@pytest.mark.parametrize("hash_", ["", "#in=one&section=MERGE"])
def test_a_narrow_window_never_scrolls_sideways_as_a_whole(browser: Browser, name: str, hash_: str) -> None:
    size: Callable[[str, dict[str, Any]], Any] = browser.driver.execute_cdp_cmd
    size("Emulation.setDeviceMetricsOverride", {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True})
    try:
        browser.open(f"{name}.html", hash_)
        assert browser.js("document.documentElement.scrollWidth") <= 360
    finally:
        size("Emulation.clearDeviceMetricsOverride", {})


def test_the_printed_page_has_every_implementation_and_no_filter(browser: Browser) -> None:
    browser.open("several.html")
    seen = "['#filter', '#about', '.verdicts'].map((one) => document.querySelector(one).offsetParent !== null)"
    assert browser.js(seen) == [True, False, True]
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert browser.js(seen) == [False, True, True]
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
