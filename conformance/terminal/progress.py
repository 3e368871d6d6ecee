"""A progress line below pytest's dots, for long runs on a terminal."""

from __future__ import annotations

import os
import shutil
import time
from typing import Any, TextIO

import pytest

AFTER = 3.0  # seconds after which a run shows the line
INTERVAL = 0.2
CLEAR = "\x1b[J"  # erases the rest of the line, and all lines below


class Progress:
    def __init__(self, config: pytest.Config) -> None:
        self._started = self._drawn = time.monotonic()
        self._is_on = self._is_shown = False
        if config.pluginmanager.hasplugin("terminalreporter"):
            self._writer: Any = config.get_terminal_writer()
            self._file: TextIO = self._writer._file
            dots = config.option.verbose in (0, -1) and config.getoption("capture", "no") != "no"
            self._is_on = dots and self._file.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    def show(self, text: str, done: int, total: int) -> None:
        now = time.monotonic()
        if not self._is_on or now - self._started < AFTER or now - self._drawn < INTERVAL:
            return
        self._drawn = now
        line = f"  {text} ({done:,} of {total:,}, {now - self._started:.0f} s)"
        column = self._writer.width_of_current_line
        right = f"\x1b[{column}C" if column else ""
        width = shutil.get_terminal_size().columns - 1
        self._write(f"{CLEAR}\n{line[:width]}\x1b[1A\r{right}")
        self._is_shown = True

    def erase(self) -> None:
        if self._is_shown:
            self._write(CLEAR)
            self._is_shown = False

    def _write(self, text: str) -> None:
        self._file.write(text)
        self._file.flush()
