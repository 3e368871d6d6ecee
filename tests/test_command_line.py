"""A signal that ends a command raises an exception in it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bpe_conformance import command_line

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def test_a_signal_raises_an_exception() -> None:
    with pytest.raises(command_line.TerminatedBySignal) as caught, command_line.raised_signals():
        signal.raise_signal(signal.SIGTERM)
    assert caught.value.number == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_signal_that_is_ignored_or_another_thread_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with command_line.raised_signals():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, earlier)
    found = []

    def look() -> None:
        with command_line.raised_signals():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [signal.SIG_DFL]


ADAPTER = """
import signal
from bpe_conformance.reference import Tokenizer as Reference

class Tokenizer(Reference):
    def __init__(self, *arguments):
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        super().__init__(*arguments)
"""


def test_commands_that_run_adapters_leave_signals_to_them(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(ADAPTER, "utf-8")
    (tmp_path / "text").write_text("hello, hello", "utf-8")
    code = "import sys; from bpe_conformance.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "compare", "mine:Tokenizer", "reference", "--corpus", "text"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
