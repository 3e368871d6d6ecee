"""Interrupts calls with workers at each line in turn: no worker may be left."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import psutil

from bpe_conformance.reference import Tokenizer, counting, file_encoding
from bpe_conformance.reference.workers import in_processes
from faults.injection import Fault, Interrupt
from faults.saves import EVERY

FILES = ("reference/workers.py", "reference/counting.py", "reference/file_encoding.py")
TEXTS = [f"low lower lowest {number} " * 40 for number in range(12)]


def double(job: int) -> int:
    return 2 * job


def _train() -> object:
    return Tokenizer.train(TEXTS, 270, workers=2).merges


def _encode_file() -> object:
    Path("text").write_text("".join(TEXTS), "utf-8")
    Tokenizer.train(TEXTS, 270).encode_file("text", "ids", workers=2)
    return Path("ids").read_bytes()


WORK: dict[str, Callable[[], object]] = {
    "in_processes": lambda: list(in_processes(2, double, range(6))),
    "train": _train,
    "encode_file": _encode_file,
}
"""Calls with two workers, in the current directory."""


def interrupted(work: str, most: int = EVERY) -> int:
    """Interrupt at each line in turn, at about `most` of them, and check that nothing is left; return how often."""
    sizes = counting.BATCH_SIZE, file_encoding.CHUNK_SIZE
    earlier = set(psutil.Process().children(recursive=True))  # of other tests
    counting.BATCH_SIZE = file_encoding.CHUNK_SIZE = 2000
    try:
        wanted = WORK[work]()
        whole = Interrupt(EVERY, FILES)
        _stop(work, whole)
        moments = range(1, whole.seen + 1, max(1, whole.seen // most))
        for n in moments:
            _stop(work, Interrupt(n, FILES))
            left = set(psutil.Process().children(recursive=True)) - earlier
            assert not multiprocessing.active_children(), n
            assert not [
                one for one in left if one.is_running() and "resource_tracker" not in " ".join(one.cmdline())
            ], n
            assert not [file for file in Path().iterdir() if file.name.startswith(".")], n
        assert WORK[work]() == wanted, "the same bytes as before"
    finally:
        counting.BATCH_SIZE, file_encoding.CHUNK_SIZE = sizes
    return len(moments)


def _stop(work: str, fault: Fault) -> None:
    try:
        with fault:
            WORK[work]()
    except KeyboardInterrupt:
        assert fault.seen >= fault.n
