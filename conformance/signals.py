"""Makes signals that end a command raise an exception, so that the command can clean up files and processes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

NAMES = ("SIGTERM", "SIGHUP")


class TerminatedBySignal(KeyboardInterrupt):
    """A signal ended the command.

    Attributes:
        number: the signal's number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def raised() -> Iterator[None]:
    """Raise `TerminatedBySignal` for the signals of `NAMES`, unless they are handled or ignored already.

    Outside the main thread, where Python cannot handle signals, nothing is done.
    """
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    unhandled = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    try:
        for number in unhandled:
            signal.signal(number, _raise)
        yield
    finally:
        for number in unhandled:
            signal.signal(number, signal.SIG_DFL)


def _raise(number: int, _: object) -> NoReturn:
    raise TerminatedBySignal(number)
