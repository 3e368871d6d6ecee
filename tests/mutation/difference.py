"""What the instrumented copy of the package calls, to note in which tests a fault would make a difference.

`suite.py` puts the calls in and reads the notes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

NOTES, TEST = "NOTES_OF_DIFFERENCES", "TEST_THAT_RUNS"
"""Environment variables, for other processes, too: the file, and the test or the command that runs."""
_seen: set[tuple[str, str]] = set()
_files: dict[str, int] = {}  # stay open: a process that is confined cannot open them


def note(fault: str) -> None:
    test = os.environ.get(TEST, "")
    if (test, fault) not in _seen:
        _seen.add((test, fault))
        if NOTES in os.environ:
            name = os.environ[NOTES]
            if name not in _files:
                _files[name] = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            os.write(_files[name], f"{fault} {test}\n".encode())


def if_true(fault: str, value: Any) -> Any:
    if value:
        note(fault)
    return value


def if_false(fault: str, value: Any) -> Any:
    if not value:
        note(fault)
    return value


def if_equal(fault: str, left: Any, right: Any, compare: Callable[[Any, Any], Any]) -> Any:
    if bool(left == right):
        note(fault)
    return compare(left, right)


def if_another_error(fault: str, kind: Any) -> Any:
    error = sys.exc_info()[1]
    if isinstance(error, Exception) and not isinstance(error, kind):
        note(fault)
    return kind


def if_several(fault: str, items: Any) -> Iterator[Any]:
    for number, item in enumerate(items):
        if number == 1:
            note(fault)
        yield item


def if_it_ends(fault: str, items: Any) -> Iterator[Any]:
    last = len(items) if hasattr(items, "__len__") else None
    number = 0
    for number, item in enumerate(items, 1):
        if number == last:
            note(fault)
        yield item
    if number and last is None:
        note(fault)


def if_mixed(fault: str, items: Any) -> Iterator[Any]:
    found = set()
    for item in items:
        found.add(bool(item))
        if len(found) == 2:
            note(fault)
        yield item
    if not found:
        note(fault)
