"""`--bpe-fuzz`: divides the time among the properties, shows the progress, and writes counterexamples as cases."""

from __future__ import annotations

import contextlib
import hashlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bpe_conformance.fixtures.files import check_folder, write_text
from bpe_conformance.fixtures.one_line import counted

from ..properties.asking import as_yaml
from ..properties.engine import Effort, Found, Property

DATABASE = Path(".hypothesis", "examples")  # of Hypothesis, relative to the current directory
DIRECTORY = Path("bpe-fuzz")  # the counterexamples
LONGEST = 7 * 24 * 60  # minutes
EVERY = 0.5  # seconds between two updates of the progress line


class Fuzzing:
    """The time of one run, shared by `searches`, and its findings. Ctrl-C ends the time; a second one ends the run."""

    def __init__(self, minutes: float, searches: Iterable[str], write: Callable[[str], object]) -> None:
        self._seconds = 60 * minutes
        self._left = {*searches}
        self._write = write  # even if output is captured
        self._until = self._shown = 0.0
        self._found = self._examples = 0
        self._is_live = sys.__stderr__ is not None and sys.__stderr__.isatty()
        self.interrupted = False

    @classmethod
    def of(cls, config: pytest.Config, properties: list[Property]) -> Fuzzing | None:
        if (minutes := config.getoption("--bpe-fuzz")) is None:
            return None
        if not 0 < minutes <= LONGEST:
            raise pytest.UsageError(f"--bpe-fuzz {minutes:g}: must be more than 0 and at most {LONGEST} minutes")
        if given := [name for name in ("--bpe-spec", "--bpe-pack") if config.getoption(name)]:
            raise pytest.UsageError(f"--bpe-fuzz tests only the properties; remove {' and '.join(given)}")
        if config.getoption("numprocesses", None):
            raise pytest.UsageError("--bpe-fuzz runs in one process; remove -n")
        try:
            check_folder(DIRECTORY)
        except OSError as error:
            why = f"cannot write counterexamples into {DIRECTORY}/ here: {error.strerror}"
            raise pytest.UsageError(f"--bpe-fuzz {why}; run it in a directory that can be written to") from None
        return cls(minutes, (property_.search for property_ in properties), lambda text: _past_capture(config, text))

    @contextlib.contextmanager
    def ended_by_ctrl_c(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        earlier = signal.signal(signal.SIGINT, self._end)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, earlier)

    def effort(self, tested: Property, effort: Effort) -> Effort:
        self._until = self._until or time.monotonic() + self._seconds
        share = max(0.001, (self._until - time.monotonic()) / max(1, len(self._left)))
        self._left.discard(tested.search)
        return replace(effort, deadline=share, database=DATABASE, watch=self._watch)

    def ended(self, tested: Property, failure: Found | None) -> Found | None:
        """Write the counterexamples of a property as cases, print them, and return them with their files."""
        if failure is not None:
            more = tuple(_written(tested, other) for other in failure.more)
            failure = replace(_written(tested, failure), more=more)
            self._found += 1 + len(failure.more)
        if self._examples:
            self._line(f"{tested.search}: {counted(self._examples, 'example')}{self._so_far()}", last=True)
        self._examples = 0
        return failure

    def _end(self, signum: int, frame: object) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self._until, self.interrupted = time.monotonic(), True

    def _watch(self, name: str, examples: int) -> bool:
        self._examples = examples + 1
        now = time.monotonic()
        if now - self._shown > EVERY and self._is_live:
            self._shown = now
            self._line(f"{name}: {counted(examples, 'example')}{self._so_far()}")
        return self.interrupted

    def _so_far(self) -> str:
        left = max(0, round(self._until - time.monotonic()))
        found = f"; {counted(self._found, 'counterexample')} so far" if self._found else ""
        return f"; {left // 60}:{left % 60:02} left{found}"

    def _line(self, text: str, last: bool = False) -> None:
        self._write(f"\r{text:<79}" + "\n" * last if self._is_live else f"{text}\n")


def _written(tested: Property, failure: Found) -> Found:
    if not failure.case:
        return failure
    clause = failure.mismatch.clause_id or tested.clause_id
    section, number = clause.partition("-")[0].lower(), hashlib.sha256(failure.case.encode("utf-8")).hexdigest()[:8]
    own = f"{section}-found-by-{tested.id}-{number}"  # as the lint requires
    case = as_yaml(failure.mismatch.asked, clause, own)
    file = DIRECTORY / "cases" / f"{own}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, f"{case}\n")
    return replace(failure, case=case, file=str(file))


def _past_capture(config: pytest.Config, text: str) -> None:
    manager: Any = config.pluginmanager.getplugin("capturemanager")
    terminal: Any = config.pluginmanager.getplugin("terminalreporter")
    with manager.global_and_fixture_disabled():
        if terminal is not None:
            terminal.ensure_newline()
        sys.stderr.write(text)
        sys.stderr.flush()
