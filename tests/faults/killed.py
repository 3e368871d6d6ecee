"""Kills workers at work: `python tests/faults/killed.py fork|spawn|forkserver [TRIAL ...]`.

Each trial must give one clear line, leave no process and no new file, and give the same bytes afterwards. A hang is
ended and reported after `PATIENCE` seconds.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from bpe_conformance.reference import Tokenizer, counting, file_encoding
from bpe_conformance.reference.workers import in_processes

PATIENCE = 30
LONG = 1 << 20


def dies_in_its_result(job: int) -> bytes:
    """Send a result that is longer than a pipe holds, and only part of the third one."""
    if job == 2:
        write = os.write

        def send(self: Connection, data: bytes) -> None:
            write(self.fileno(), bytes(data)[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)

        Connection._send = send  # type: ignore[attr-defined]
    return bytes(LONG)


def dies_before_its_result(job: int) -> bytes:
    if job == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return bytes(LONG)


def kill_one(*_: object) -> None:
    """Kill a worker, whatever it is doing."""
    for child in multiprocessing.active_children()[:1]:
        child.kill()


def trials(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the trials, each of which must raise a RuntimeError."""
    texts = [f"low lower lowest {number} " * 200 for number in range(64)]
    (folder / "text").write_text("".join(texts), "utf-8")
    (folder / "ids").write_bytes(b"old")
    trained = Tokenizer.train(texts, 300)
    yield "in a result", lambda: list(in_processes(2, dies_in_its_result, range(20)))
    yield "in a job", lambda: list(in_processes(2, dies_before_its_result, range(20)))
    yield "while jobs are sent", lambda: list(in_processes(2, kill_with, [b"x" * LONG] * 20))
    yield "in training", lambda: Tokenizer.train(texts, 300, workers=2, progress=kill_one)
    yield (
        "in encode_file",
        lambda: trained.encode_file(folder / "text", folder / "ids", workers=2, progress=kill_one),
    )


def same_afterwards(folder: Path) -> None:
    texts = [(folder / "text").read_text("utf-8")] * 2
    trained = Tokenizer.train(texts, 300)
    assert Tokenizer.train(texts, 300, workers=2).merges == trained.merges
    for workers in (1, 2):
        trained.encode_file(folder / "text", folder / f"ids{workers}", workers=workers)
    assert (folder / "ids1").read_bytes() == (folder / "ids2").read_bytes()


def kill_with(job: bytes) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(method: str, *chosen: str) -> None:
    multiprocessing.set_start_method(method)
    counting.BATCH_SIZE = 1 << 12
    file_encoding.CHUNK_SIZE = 1 << 12
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, call in trials(folder):
            if chosen and what not in chosen:
                continue
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            try:
                call()
            except RuntimeError as error:
                reported = str(error)
            else:
                raise AssertionError(f"{what}: no error")
            assert reported.startswith("a worker died (ended by SIGKILL)"), reported
            assert "\n" not in reported
            assert not multiprocessing.active_children(), what
            assert sorted(file.name for file in folder.iterdir()) == ["ids", "text"], what
            assert (folder / "ids").read_bytes() == b"old"
            print(f"{method:10} {what:20} {reported[:40]}")
        if not chosen:
            same_afterwards(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
