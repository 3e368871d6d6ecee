"""Handlers of signals that no child of foreign code inherits: it would not end when it is told to."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

Handler = TypeVar("Handler", bound=Callable[[int, Any], object])
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_ours: list[Callable[[int, Any], object]] = []
_away: list[tuple[int, Any]] = []
_foreign: list[None] = []


@contextlib.contextmanager
def of_foreign_code() -> Iterator[None]:
    """Within it, forks are another's: commands that fork themselves clean up when a signal comes, at any moment."""
    _foreign.append(None)
    try:
        yield
    finally:
        _foreign.pop()


def stays_here(handler: Handler) -> Handler:
    """Have every fork of foreign code put the default in the place of this handler: a decorator.

    What is put back in the child alone comes too late: a signal that arrives before that is lost (Python drops what is
    pending in a child), and `multiprocessing.Pool` waits for ever for a worker that it has told to end.
    """
    _ours.append(handler)
    return handler


def _is_ours(number: int) -> bool:
    return bool(_foreign) and any(signal.getsignal(number) is one for one in _ours)


def _before() -> None:
    if threading.current_thread() is threading.main_thread():
        for number in filter(_is_ours, _ENDING):
            _away.append((number, signal.signal(number, signal.SIG_DFL)))


def _after_in_parent() -> None:
    while _away and threading.current_thread() is threading.main_thread():
        signal.signal(*_away.pop())


def _after_in_child() -> None:
    _away.clear()
    for number in filter(_is_ours, _ENDING):  # forked by another thread, for which no signal may be set
        signal.signal(number, signal.SIG_DFL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
