"""The commands and the code of the README and of the manual do what the pages show."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bpe_conformance.fixtures.spec import load_spec
from bpe_conformance.known_bugs import known_bugs
from bpe_conformance.properties.catalogue import PROPERTIES
from bpe_conformance.reference import Tokenizer
from bpe_conformance.survey.implementations import implementations

ROOT = Path(__file__).parents[2]
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md")}
PAGES |= {name: (ROOT / name).read_text("utf-8") for name in ("README.md", "CONTRIBUTING.md")}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = {name: BLOCK.findall(text) for name, text in PAGES.items()}
FILE = re.compile(r"# ([\w/]+\.(?:py|yaml))")
REPLACEMENT = re.compile(r"# in (\w+\.py), instead of (\w+):")
METHOD = re.compile(r"^    def (\w+)\(.*?(?=^    def |\Z)", re.MULTILINE | re.DOTALL)
PROGRAMS = {
    "pytest": ["-m", "pytest"],
    "bpe-conformance": ["-c", "import sys; from bpe_conformance.cli import main; sys.exit(main())"],
}
CACHELESS = ["-p", "no:cacheprovider"]


def _matches(shown: list[str], printed: list[str]) -> bool:
    """Whether `printed` is `shown`, where a line `...` stands for any lines and a final `...` for any ending."""
    if not shown:
        return not printed
    if shown[0] == "...":
        return any(_matches(shown[1:], printed[skip:]) for skip in range(len(printed) + 1))
    if not printed:
        return False
    stem = shown[0].removesuffix("...").rstrip()
    same = printed[0].startswith(stem) if shown[0].endswith("...") else printed[0] == shown[0]
    return same and _matches(shown[1:], printed[1:])


def _write_files(name: str, directory: Path) -> None:
    """Write the files that a page shows."""
    for _, body in BLOCKS[name]:
        if found := FILE.fullmatch(body.partition("\n")[0]):
            (directory / found[1]).parent.mkdir(exist_ok=True)
            (directory / found[1]).write_text(body, "utf-8")


def _replace_method(body: str, directory: Path) -> None:
    head, _, method = body.partition("\n")
    file, name = REPLACEMENT.fullmatch(head).groups()  # type: ignore[union-attr]
    text = (directory / file).read_text("utf-8")
    old = next(found.group() for found in METHOD.finditer(text) if found.group(1) == name)
    (directory / file).write_text(text.replace(old, method + "\n"), "utf-8")


def _run(step: str, directory: Path) -> None:
    command, *shown = step.rstrip("\n").split("\n")
    words = shlex.split(command)
    done = subprocess.run(
        [sys.executable, *PROGRAMS[words[0]], *words[1:], *(CACHELESS if words[0] == "pytest" else [])],
        cwd=directory,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "80", "PYTEST_ADDOPTS": ""},
        check=False,
    )
    printed = done.stdout.rstrip("\n").split("\n")
    assert _matches(shown or [""], printed), f"{command}\n{done.stdout[-5000:]}{done.stderr[-3000:]}"


@pytest.mark.parametrize("name", ["README.md"])
def test_the_commands_print_what_is_shown(name: str, tmp_path: Path) -> None:
    for other in ("docs/from-zero.md", "docs/conventions.md", name):
        _write_files(other, tmp_path)
    for kind, body in BLOCKS[name]:
        if REPLACEMENT.match(body):
            _replace_method(body, tmp_path)
        elif kind == "console":
            for step in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                _run(step, tmp_path)


def test_the_pages_with_commands_are_found() -> None:
    assert {"README.md", "docs/from-zero.md"} <= {name for name, blocks in BLOCKS.items() if "console" in dict(blocks)}


def test_the_readme_is_short() -> None:
    assert len(PAGES["README.md"].splitlines()) <= 200


def test_every_command_exists() -> None:
    """The commands that are too slow to run here have options that exist."""
    done = subprocess.run([sys.executable, "-m", "pytest", "--help"], capture_output=True, text=True, check=True)
    known = set(re.findall(r"^  (--(?:adapter|bpe-[a-z-]+))", done.stdout, re.MULTILINE))
    shown = {name: set(re.findall(r"--(?:adapter|bpe-[a-z-]+)", text)) for name, text in PAGES.items()}
    assert {name: unknown for name, options in shown.items() if (unknown := options - known)} == {}
    assert shown["docs/options.md"] == known


@pytest.mark.parametrize("name", PAGES)
def test_the_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)#:]*)(?:#[^)]*)?\)", PAGES[name]):
        assert (ROOT / name).parent.joinpath(target).exists(), target


@pytest.mark.parametrize("name", PAGES)
def test_the_links_to_headings_exist(name: str) -> None:
    for target, heading in re.findall(r"\]\(([^)#:]*)#([^)]*)\)", PAGES[name]):
        page = (ROOT / name).parent.joinpath(target).resolve() if target else ROOT / name
        titles = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
        assert heading in {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}, heading


def test_the_numbers_are_those_of_today() -> None:
    spec, adapters = load_spec(check_schema=False), implementations()
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
    packages = {spec.partition("==")[0] for one in adapters for spec in one.pip}
    npm = {spec.rpartition("@")[0] for one in adapters for spec in one.npm}
    shown = f"{len(adapters)} adapters of {len(packages)} packages from PyPI and {len(npm)} from npm"
    for name in ("README.md", "docs/compare.md"):
        assert shown in " ".join(PAGES[name].split())


def test_the_reference_snippet_runs() -> None:
    shown = [body for _, body in BLOCKS["docs/reference.md"]]
    names: dict[str, object] = {}
    exec(next(body for body in shown if "reference import Tokenizer" in body), names)
    assert names["tokenizer"]


def test_the_calls_for_untrusted_text() -> None:
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


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (["a", "...", "c"], ["a", "b", "b", "c"], True),
        (["a", "...", "c"], ["a", "b"], False),
        (["in ..."], ["in 3 s"], True),
        (["a"], ["a", "b"], False),
    ],
)
def test_the_comparison_can_fail(shown: list[str], printed: list[str], same: bool) -> None:
    assert _matches(shown, printed) is same
