"""What a run says at its start, and where it may be started."""

from __future__ import annotations

import signal
import threading
from types import SimpleNamespace
from typing import Any

from bpe_conformance.session.fuzzing import Fuzzing
from bpe_conformance.session.run import Run


def test_the_first_lines_name_every_declared_convention_and_every_note() -> None:
    declared = {"tie_break": "first-seen", "byte_order": "gpt2", "lookup": "bytes"}
    notes = ["its constructor takes no pattern", "it is slow", "one is in \u0120"]
    implementation = SimpleNamespace(name="mine:T", declared=declared, notes=notes)
    config = SimpleNamespace(getoption=lambda name: 7 if name == "--bpe-seed" else None)
    setup = SimpleNamespace(cases=[1, 2], properties=[1])
    started: Any = SimpleNamespace(implementation=implementation, config=config, setup=setup)
    assert Run.pytest_report_header(started) == [
        "bpe-conformance: testing mine:T; 2 cases, 1 property with seed 7; "
        "conventions declared: tie_break=first-seen, byte_order=gpt2, lookup=bytes",
        "bpe-conformance: its constructor takes no pattern",
        "bpe-conformance: it is slow",
        "bpe-conformance: one is in \\u0120",
    ]


def test_a_search_in_another_thread_leaves_signals_alone() -> None:
    before, inside = signal.getsignal(signal.SIGINT), []

    def search() -> None:
        with Fuzzing(1, ("law-encode",), print).ended_by_ctrl_c():
            inside.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=search)
    thread.start()
    thread.join()
    assert inside == [before]
    with Fuzzing(1, ("law-encode",), print).ended_by_ctrl_c():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before
