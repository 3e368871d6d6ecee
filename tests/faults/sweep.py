"""Injects faults at every moment in turn: `python tests/faults/sweep.py [--seconds 300] [--seed 0] [signals|lines]`.

`signals`: commands with and without workers get SIGINT, SIGTERM or SIGHUP, alone or with their workers, at moments
drawn by the seed, most of them after they have set their handlers. Each must end immediately with the status of the
signal and one line, leave no process, and leave either the old or the new files. A command without a signal must then
give the same bytes. `lines`: every save is interrupted at each line and finds the disk full at each call; calls with
workers are interrupted at each line. This takes some minutes, whatever the value of `--seconds`.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import NoReturn

sys.path.insert(0, str(Path(__file__).parents[1]))

import psutil

from bpe_conformance import cli
from bpe_conformance.command_line import raised_signals
from bpe_conformance.reference import counting, file_encoding
from faults import saves, stops

PATIENCE = 30.0
TRAIN = ["train", "long", "--vocab-size", "600", "-o", "tok"]
ENCODE = ["encode", "table", "long", "-o", "ids"]
COMMANDS = [
    TRAIN,
    [*TRAIN, "--workers", "2"],
    ENCODE,
    [*ENCODE, "--as", "uint16"],
    [*ENCODE, "--as", "uint16", "--workers", "2"],
]
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def prepare(folder: Path) -> None:
    saves.prepare(folder)
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefgh", k=draw.randint(2, 9))) for _ in range(3000)]
    (folder / "long").write_text(" ".join(draw.choices(words, k=40_000)), "utf-8")


def start(words: list[str], errors: Path, is_ready: bool = False) -> int:
    """Run a command in a forked process that leads its own group, if `is_ready` until it handles signals.

    Return the id of the process.
    """
    reader, writer = os.pipe()
    process = os.fork()
    if not process:
        child(words, errors, writer)
    os.close(writer)
    if is_ready:
        os.read(reader, 1)  # nothing, if the process has ended
    os.close(reader)
    return process


def child(words: list[str], errors: Path, writer: int) -> NoReturn:
    @contextmanager
    def announced() -> Iterator[None]:
        with raised_signals():
            with suppress(OSError):  # nobody waits
                os.write(writer, b"!")
            yield

    status = 99
    cli.raised_signals = announced
    try:
        os.setpgid(0, 0)
        with errors.open("w") as stream:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(stream.fileno(), 2)
            status = cli.main(words)
    except KeyboardInterrupt:  # before the command has set its handler, or after it has removed it
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def ended(process: int) -> int | None:
    """Return the status of a process, or None if it does not end within `PATIENCE`."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    return None


def left(group: int) -> list[int]:
    """Return the processes of a group that do not end within a second."""
    until = time.monotonic() + 1
    while found := [one.pid for one in psutil.process_iter() if _group(one.pid) == group]:
        if time.monotonic() > until:
            break
        time.sleep(0.01)
    return found


def _group(process: int) -> int | None:
    try:
        return os.getpgid(process) if psutil.Process(process).status() != psutil.STATUS_ZOMBIE else None
    except (OSError, psutil.Error):
        return None


def signals(seconds: float, seed: int) -> Counter[str]:
    """Send signals, and check the result."""
    draw = random.Random(seed)
    counting.BATCH_SIZE, file_encoding.CHUNK_SIZE = 1 << 14, 1 << 14
    reported: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder, errors = Path(name, "files"), Path(name, "errors")
        folder.mkdir()
        os.chdir(folder)
        before, after, takes = {}, {}, {}
        for number, words in enumerate(COMMANDS):
            prepare(folder)
            before[number] = saves.tree(folder)
            process, began = start(words, errors, is_ready=True), time.monotonic()
            assert ended(process) == 0, errors.read_text("utf-8")
            takes[number] = time.monotonic() - began
            after[number] = saves.tree(folder)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            number = draw.randrange(len(COMMANDS))
            which, group, moment = draw.choice(SIGNALS), draw.random() < 0.5, draw.random() * takes[number] * 1.1
            is_ready = draw.random() < 0.8
            what = (COMMANDS[number], which.name, f"group {group}", f"{moment:.4f} s", f"ready {is_ready}")
            prepare(folder)
            process = start(COMMANDS[number], errors, is_ready)
            time.sleep(moment)
            try:
                os.killpg(process, which) if group else os.kill(process, which)
            except ProcessLookupError:  # the process has no group yet
                os.kill(process, which)
            status, said, found = ended(process), errors.read_text("utf-8"), saves.tree(folder)
            assert status is not None, (*what, "hangs")
            assert not left(process), (*what, "processes are left")
            assert found in (before[number], after[number]), (*what, sorted(set(found) ^ set(before[number])))
            if status == 128 + which:
                wanted = "interrupted" if which == signal.SIGINT else f"ended by {which.name}"
                assert said == f"bpe-conformance: {wanted}\n", (*what, said)
            else:
                # the command was over, or the signal came before its handler was set or after it was removed
                assert status in (0, -which, 99), (*what, status, said)
            other = "after" if is_ready else "before or after"
            reported[{0: "over", 128 + which: "ended as asked"}.get(status, other)] += 1
            if not sum(reported.values()) % 20:
                prepare(folder)
                assert ended(start(COMMANDS[number], errors)) == 0
                assert saves.tree(folder) == after[number], (*what, "other bytes afterwards")
    assert reported["after"] <= 2 + sum(reported.values()) // 10, reported
    return reported


def lines() -> None:
    """Interrupt at every line and fill the disk at every call."""
    with tempfile.TemporaryDirectory() as name:
        for save in saves.SAVES:
            with redirect_stdout(StringIO()):
                refused, interrupted = saves.full_disk(save, Path(name)), saves.interrupted(save, Path(name))
            print(f"{save:28} refused {refused:4}, interrupted {interrupted:5}", flush=True)
        for work in stops.WORK:
            print(f"{work:28} interrupted {stops.interrupted(work):5} with workers", flush=True)
        os.chdir("/")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["signals", "lines"])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if "signals" in options.what:
        reported = signals(options.seconds, options.seed)
        print(
            f"signals {sum(reported.values())}:",
            ", ".join(f"{count} {what}" for what, count in reported.most_common()),
        )
    if "lines" in options.what:
        lines()


if __name__ == "__main__":
    main()
