"""The README's code and commands do what the README shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bpe_conformance.reference import Tokenizer

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PROGRAMS = {
    "pytest": ["-m", "pytest"],
    "bpe-conformance": ["-c", "import sys; from bpe_conformance.cli import main; sys.exit(main())"],
}
CACHELESS = ["-p", "no:cacheprovider"]
METHOD = re.compile(r"^    def (\w+)\(.*?(?=^    def |\Z)", re.MULTILINE | re.DOTALL)


def _matches(shown: list[str], printed: list[str]) -> bool:
    """Whether `printed` is `shown`, where a line `...` stands for any lines and a final ` ...` for any ending."""
    if not shown:
        return not printed
    if shown[0] == "...":
        return any(_matches(shown[1:], printed[skip:]) for skip in range(len(printed) + 1))
    if not printed:
        return False
    stem = shown[0].removesuffix("...")
    same = printed[0].startswith(stem) if stem != shown[0] else printed[0] == shown[0]
    return same and _matches(shown[1:], printed[1:])


def test_the_commands_print_what_is_shown(tmp_path: Path) -> None:
    ran = 0
    for kind, body in BLOCKS:
        head = body.partition("\n")[0]
        if kind == "python" and re.fullmatch(r"# \w+\.py", head):
            (tmp_path / head[2:]).write_text(body, "utf-8")
        elif kind == "python" and head.startswith("# in "):
            name, method = re.fullmatch(r"# in (\w+\.py), instead of (\w+):", head).groups()  # type: ignore[union-attr]
            text = (tmp_path / name).read_text("utf-8")
            old = next(found.group() for found in METHOD.finditer(text) if found.group(1) == method)
            (tmp_path / name).write_text(text.replace(old, body.partition("\n")[2] + "\n"), "utf-8")
        elif kind == "console":
            for step in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, *shown = step.rstrip("\n").split("\n")
                words = shlex.split(command)
                done = subprocess.run(
                    [sys.executable, *PROGRAMS[words[0]], *words[1:], *(CACHELESS if words[0] == "pytest" else [])],
                    cwd=tmp_path,
                    capture_output=True,
                    text=True,
                    env={**os.environ, "COLUMNS": "80", "PYTEST_ADDOPTS": ""},
                    check=False,
                )
                printed = done.stdout.rstrip("\n").split("\n")
                assert _matches(shown or [""], printed), f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
                ran += 1
    assert ran >= 3


def test_the_reference_snippet_runs() -> None:
    snippet = next(body for kind, body in BLOCKS if kind == "python" and "reference import Tokenizer" in body)
    names: dict[str, object] = {}
    exec(snippet, names)
    assert names["tokenizer"]


def test_the_calls_for_text_from_outside() -> None:
    tokenizer = Tokenizer({byte: bytes([byte]) for byte in range(256)}, [], ["<|endoftext|>", "<|end|>"])
    snippet = next(body for kind, body in BLOCKS if kind == "python" and "untrusted = " in body)
    text, plain, found, refused = snippet.splitlines()
    names: dict[str, Any] = {"tokenizer": tokenizer}
    exec(text, names)
    assert eval(plain, names) == list(names["untrusted"].encode())
    assert eval(found, names)[-1] == 256
    for line, untrusted in ((refused, names["untrusted"]), (found, "a<|end|>")):
        with pytest.raises(ValueError, match=r"holds '<\|end(oftext)?\|>' at character \d+"):
            eval(line, {**names, "untrusted": untrusted})


def test_every_option_exists_and_is_told() -> None:
    told = set(re.findall(r"--(?:adapter|bpe-[a-z-]+)", README))
    done = subprocess.run([sys.executable, "-m", "pytest", "--help"], capture_output=True, text=True, check=True)
    known = set(re.findall(r"^  (--(?:adapter|bpe-[a-z-]+))", done.stdout, re.MULTILINE))
    assert told == known


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
