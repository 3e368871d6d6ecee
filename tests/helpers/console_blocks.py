"""Runs the console blocks of the documents and compares their output with the pages."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md")}
PAGES |= {name: (ROOT / name).read_text("utf-8") for name in ("README.md", "CONTRIBUTING.md", "adapters/PROTOCOL.md")}
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


def matches(shown: list[str], printed: list[str]) -> bool:
    """Return whether `printed` is `shown`, in which a line `...` matches any lines, and a final `...` any ending."""
    if not shown:
        return not printed
    if shown[0] == "...":
        return any(matches(shown[1:], printed[skip:]) for skip in range(len(printed) + 1))
    if not printed:
        return False
    stem = shown[0].removesuffix("...").rstrip()
    same = printed[0].startswith(stem) if shown[0].endswith("...") else printed[0] == shown[0]
    return same and matches(shown[1:], printed[1:])


def _write_files(name: str, directory: Path) -> None:
    """Write the files that a page shows."""
    for _, body in BLOCKS[name]:
        if found := FILE.fullmatch(body.partition("\n")[0]):
            (directory / found[1]).parent.mkdir(parents=True, exist_ok=True)
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
        env={**os.environ, "COLUMNS": "80"},
        check=False,
    )
    printed = done.stdout.rstrip("\n").split("\n")
    assert matches(shown or [""], printed), f"{command}\n{done.stdout[-5000:]}{done.stderr[-3000:]}"


def run_page(name: str, directory: Path) -> None:
    """Write the files that a page shows, and those of the tutorial, and run its console blocks."""
    for other in ("docs/from-zero.md", "docs/conventions.md", name):
        _write_files(other, directory)
    for kind, body in BLOCKS[name]:
        if REPLACEMENT.match(body):
            _replace_method(body, directory)
        elif kind == "console":
            for step in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                _run(step, directory)
