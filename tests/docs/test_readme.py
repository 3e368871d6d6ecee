"""The commands and code in the README and the manual print what the pages show."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.console_blocks import BLOCKS, PAGES, ROOT, matches, run_page
from survey.listed import implementations

from bpe_conformance.known_bugs import known_bugs
from bpe_conformance.properties import PROPERTIES
from bpe_conformance.reference import Tokenizer
from bpe_conformance.spec import installed_spec


def test_readme_commands_print_the_shown_output(tmp_path: Path) -> None:
    run_page("README.md", tmp_path)


def test_a_clone_runs_the_suite_without_the_plugins_of_developers() -> None:
    options = "-p no:xdist -p no:cacheprovider --adapter reference --bpe-case bytes-empty -q"
    command = [sys.executable, "-m", "pytest", "conformance", *options.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_pages_with_commands_are_found() -> None:
    assert {"README.md", "docs/from-zero.md"} <= {name for name, blocks in BLOCKS.items() if "console" in dict(blocks)}


def test_the_readme_is_short() -> None:
    assert len(PAGES["README.md"].splitlines()) <= 200


def test_every_command_exists() -> None:
    """Commands that are too slow to run here use existing options."""
    done = subprocess.run([sys.executable, "-m", "pytest", "--help"], capture_output=True, text=True, check=True)
    known = set(re.findall(r"^  (--(?:adapter|bpe-[a-z-]+))", done.stdout, re.MULTILINE))
    shown = {name: set(re.findall(r"--(?:adapter|bpe-[a-z-]+)", text)) for name, text in PAGES.items()}
    assert {name: unknown for name, options in shown.items() if (unknown := options - known)} == {}
    assert shown["docs/options.md"] == known


@pytest.mark.parametrize("name", PAGES)
def test_the_clauses_that_pages_name_exist(name: str) -> None:
    named = set(re.findall(r"\b[A-Z]+-[A-Z]+-\d+\b", PAGES[name]))
    defined = set(re.findall(r"^\W*([A-Z]+-[A-Z]+-\d+)\b", PAGES[name], re.MULTILINE)) if "superbpe" in name else set()
    assert named - defined - installed_spec().clauses.keys() == set()


@pytest.mark.parametrize("name", PAGES)
def test_links_have_targets(name: str) -> None:
    for target in re.findall(r"\]\(([^)#:]*)(?:#[^)]*)?\)", PAGES[name]):
        built = target.startswith("generated/")  # Sphinx checks the links to pages that it builds from data
        assert built or (ROOT / name).parent.joinpath(target).exists(), target


@pytest.mark.parametrize("name", PAGES)
def test_the_links_to_headings_exist(name: str) -> None:
    for target, heading in re.findall(r"\]\(([^)#:]*)#([^)]*)\)", PAGES[name]):
        page = (ROOT / name).parent.joinpath(target).resolve() if target else ROOT / name
        titles = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
        assert heading in {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}, heading


def test_numbers_in_the_readme_are_current() -> None:
    spec, adapters = installed_spec(), implementations()
    counts = {
        "golden cases": len(spec.cases),
        "properties": len(PROPERTIES),
        "clauses": len(spec.clauses),
        "incorrect tokenizers": len(known_bugs()),
    }
    readme = " ".join(PAGES["README.md"].split())
    for what, count in counts.items():
        least = int(re.search(rf"[Mm]ore than ([\d,]+) {what}", readme)[1].replace(",", ""))  # type: ignore[index]
        assert least < count < 1.4 * least, what
    packages = {spec.partition("==")[0] for one in adapters for spec in one.pip[:1]}
    npm = {spec.rpartition("@")[0] for one in adapters for spec in one.npm}
    shown = f"{len(adapters)} adapters of {len(packages)} packages from PyPI and {len(npm)} from npm"
    for name in ("README.md", "docs/compare.md"):
        assert shown in " ".join(PAGES[name].split())


def test_the_reference_snippet_runs() -> None:
    shown = [body for _, body in BLOCKS["docs/reference.md"]]
    names: dict[str, object] = {}
    exec(next(body for body in shown if "reference import Tokenizer" in body), names)
    assert names["tokenizer"]


def test_calls_for_untrusted_text_work() -> None:
    tokenizer = Tokenizer({byte: bytes([byte]) for byte in range(256)}, [], ["<|endoftext|>", "<|end|>"])
    snippet = next(body for _, body in BLOCKS["docs/reference.md"] if "untrusted = " in body)
    text, plain, found, refused = snippet.splitlines()
    names: dict[str, Any] = {"tokenizer": tokenizer}
    exec(text, names)
    assert eval(plain, names) == list(names["untrusted"].encode())
    assert eval(found, names)[-1] == 256
    for line, untrusted in ((refused, names["untrusted"]), (found, "a<|end|>")):
        with pytest.raises(ValueError, match=r"'<\|end(oftext)?\|>' at character \d+"):
            eval(line, {**names, "untrusted": untrusted})


def test_every_member_of_exported_cases_is_explained() -> None:
    """The page for other test runners explains each key of the schema."""
    page = PAGES["docs/interpreting.md"]
    schema = json.loads((ROOT / "fixtures" / "schemas" / "export.schema.json").read_text("utf-8"))
    named = {name for part in schema["$defs"].values() for name in part.get("properties", ())}
    assert {name for name in named if f"`{name}`" not in page} == set()


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (["a", "...", "c"], ["a", "b", "b", "c"], True),
        (["a", "...", "c"], ["a", "b"], False),
        (["in ..."], ["in 3 s"], True),
        (["a"], ["a", "b"], False),
    ],
)
def test_comparison_of_output_can_fail(shown: list[str], printed: list[str], same: bool) -> None:
    assert matches(shown, printed) is same
