"""The progress line of a long run looks correct in a terminal."""

from __future__ import annotations

import io
import os
import pty
import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.project import SPEC, Project

from bpe_conformance.terminal import progress

CONTROL = re.compile(r"\x1b\[(\d*)([A-Z])")


def screen(text: str) -> list[str]:
    """Return the lines that a terminal shows after receiving `text`."""
    lines, row, column = [""], 0, 0
    place = 0
    while place < len(text):
        if found := CONTROL.match(text, place):
            count, place = int(found[1] or 1), found.end()
            match found[2]:
                case "A":
                    row -= count
                case "C":
                    column += count
                case "J":
                    lines[row:] = [lines[row][:column]]
            continue
        char, place = text[place], place + 1
        if char == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif char == "\r":
            column = 0
        else:
            lines[row] = lines[row][:column].ljust(column) + char + lines[row][column + 1 :]
            column += 1
    return lines


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def made(monkeypatch: pytest.MonkeyPatch, verbose: int = 0, capture: str = "fd", term: str | None = "xterm") -> Any:
    monkeypatch.delenv("TERM", raising=False) if term is None else monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(progress, "AFTER", 0)
    monkeypatch.setattr(progress, "INTERVAL", 0)
    writer = SimpleNamespace(_file=Terminal(), width_of_current_line=0)
    option = SimpleNamespace(verbose=verbose)
    config: Any = SimpleNamespace(
        option=option,
        pluginmanager=SimpleNamespace(hasplugin=lambda name: name == "terminalreporter"),
        get_terminal_writer=lambda: writer,
        getoption=lambda name, default: capture,
    )
    return progress.Progress(config), writer


def test_progress_line_keeps_the_dots(monkeypatch: pytest.MonkeyPatch) -> None:
    line, writer = made(monkeypatch)
    terminal = writer._file
    for number in range(8):
        line.show(f"MERGE case-{'x' * (9 - number)}", number, 8)
        before = screen(terminal.getvalue())
        assert re.fullmatch(rf"  MERGE case-x+ \({number} of 8, 0 s\)", before[-1])
        line.erase()
        terminal.write(".")
        writer.width_of_current_line += 1
        if number == 4:
            terminal.write(" [62%]\n")
            writer.width_of_current_line = 0
    assert screen(terminal.getvalue()) == ["..... [62%]", "..."]


@pytest.mark.parametrize("verbose", [0, -1])
def test_progress_is_shown_with_and_without_the_option_for_less_output(
    verbose: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, writer = made(monkeypatch, verbose=verbose)
    line.show("MERGE", 1, 2)
    assert "MERGE (1 of 2, 0 s)" in writer._file.getvalue()


@pytest.mark.parametrize(
    "options", [{"verbose": 1}, {"verbose": -2}, {"capture": "no"}, {"term": "dumb"}, {"term": None}]
)
def test_progress_line_needs_the_dots_of_pytest(monkeypatch: pytest.MonkeyPatch, options: Any) -> None:
    line, writer = made(monkeypatch, **options)
    line.show("MERGE", 1, 2)
    assert writer._file.getvalue() == ""


def test_a_short_run_shows_no_progress_line(monkeypatch: pytest.MonkeyPatch) -> None:
    line, writer = made(monkeypatch)
    monkeypatch.setattr(progress, "AFTER", 3)
    line.show("MERGE", 1, 2)
    assert writer._file.getvalue() == ""


SLOW = """
from bpe_conformance.reference import textbook
from bpe_conformance.terminal import progress

progress.AFTER = progress.INTERVAL = 0


class Slow(textbook.Tokenizer): ...
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_a_run_on_a_terminal_shows_its_progress(project: Project) -> None:
    project.write("slow.py", SLOW)
    command = [sys.executable, "-m", "pytest", "conformance", "--adapter", "slow:Slow", f"--bpe-spec={SPEC}"]
    command += ["--bpe-section", "MERGE", "-p", "no:xdist"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ |= {"TERM": "xterm", "COLUMNS": "80"}
        os.chdir(project.path)
        os.execv(sys.executable, command)
    data = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        data += part
    os.waitpid(pid, 0)
    text = re.sub(r"\x1b\[[\d;]*m", "", data.decode().replace("\r\n", "\n"))
    shown = re.findall(r"MERGE \S+ \(\d+ of \d+, 0 s\)", text)
    count = int(re.findall(r"collected (\d+) items", text)[0])
    assert len(shown) == count
    dots = [line for line in screen(text) if line.startswith("conformance ")]
    assert [re.sub(r" +", " ", line) for line in dots] == [f"conformance {'.' * count} [100%]"]
    assert not any(" of " in line for line in screen(text))


def test_a_line_is_drawn_at_intervals_and_erased_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setenv("COLUMNS", "40")
    line, writer = made(monkeypatch)
    monkeypatch.setattr(progress, "AFTER", 3)
    monkeypatch.setattr(progress, "INTERVAL", 2)
    drawn = []
    for clock[0] in (101.0, 102.9, 103.0, 104.0, 105.0):
        before = writer._file.getvalue()
        line.show("x" * 60, 1, 2)
        drawn.append(writer._file.getvalue() != before)
    assert drawn == [False, False, True, False, True]
    assert max(map(len, screen(writer._file.getvalue()))) == 39
    line.erase()
    erased = writer._file.getvalue()
    line.erase()
    assert writer._file.getvalue() == erased
