"""Keeps the process around an item as it was: folder, locale, random numbers, standard streams, hooks, signals."""

from __future__ import annotations

import contextlib
import locale
import os
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

_CATEGORIES = ("LC_CTYPE", "LC_COLLATE", "LC_TIME", "LC_MONETARY", "LC_NUMERIC", "LC_MESSAGES")
_REPLACED: list[Any] = []  # a wrapper that is collected closes the stream that it wraps
_MOST_REPLACED = 64
_HOOKS = ((sys, "excepthook"), (sys, "unraisablehook"), (threading, "excepthook"))
_SIGNALS = ("SIGTERM", "SIGHUP", "SIGPIPE", "SIGXFSZ")
_STREAMS = ("stdin", "stdout", "stderr", "__stdout__", "__stderr__")


@contextlib.contextmanager
def kept() -> Iterator[list[str]]:
    """Within it an implementation is judged; afterwards its surroundings are as they were before.

    The state of `random` (and of NumPy's global generator, if it is loaded), the standard streams and their
    descriptors, the hooks for errors, the signals that end a process and the mask of new files are put
    back without a word, for to draw random numbers is no fault. `close` of a stream does nothing. The recursion limit
    is left alone unless it was lowered, `sys.path` unless something was taken out of it, and the environment variables
    are left alone: an implementation may set them once, in its first call, and need them ever after.

    Yields:
        A list. When the block has ended it holds a line for each change that is a fault: of the current folder
        and of the locale.
    """
    told: list[str] = []
    folder, locales, settings = _folder(), _locale(), [*_draws(), *_hooks(), *_settings()]
    streams = {name: getattr(sys, name) for name in _STREAMS}
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(_descriptors())
            for stream in streams.values():
                stack.enter_context(_open(stream))
            yield told
    finally:
        for name, stream in streams.items():
            _REPLACED.append(getattr(sys, name))
            setattr(sys, name, stream)
        _REPLACED[:] = [one for one in _REPLACED if all(one is not stream for stream in streams.values())][
            -_MOST_REPLACED:
        ]
        for put_back in settings:
            with contextlib.suppress(Exception):
                put_back()
        told += _keep_folder(folder)
        told += _keep_locale(locales)


@contextlib.contextmanager
def _open(stream: Any) -> Iterator[None]:
    """Within it, closing `stream` does nothing: pytest reads from it afterwards."""
    own = getattr(stream, "__dict__", {})
    covered = "close" not in own
    if covered:
        own["close"] = lambda: None
    try:
        yield
    finally:
        if covered:
            own.pop("close", None)


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:
        return ""


def _keep_folder(before: str) -> Iterator[str]:
    after = _folder()
    if after == before or not before:
        return
    changed = f"the current folder was changed to {after or 'one that is gone'}"
    try:
        os.chdir(before)
    except OSError as error:
        yield f"{changed}, and the one before cannot be gone back to: {error}"
    else:
        yield f"{changed}; leave it as it is"


def _locale() -> dict[str, str]:
    found = {}
    for name in _CATEGORIES:
        with contextlib.suppress(AttributeError, locale.Error):
            found[name] = locale.setlocale(getattr(locale, name))
    return found


def _keep_locale(before: dict[str, str]) -> Iterator[str]:
    after = _locale()
    changed = [name for name in before if after.get(name) != before[name]]
    for name in changed:
        with contextlib.suppress(locale.Error):
            locale.setlocale(getattr(locale, name), before[name])
    if changed:
        shown = ", ".join(f"{name} to {after.get(name)}" for name in changed)
        yield f"the locale was changed ({shown}); leave it as it is"


def _draws() -> Iterator[Callable[[], object]]:
    """Yield what puts back the state of each global source of random numbers."""
    state = random.getstate()
    yield lambda: random.setstate(state)
    numpy: Any = sys.modules.get("numpy.random")
    if numpy is not None and hasattr(numpy, "get_state"):
        legacy = numpy.get_state(legacy=False)
        yield lambda: numpy.set_state(legacy)


def _hooks() -> Iterator[Callable[[], object]]:
    """Yield what puts back each function that Python calls by itself."""
    for owner, name in _HOOKS:
        yield partial(setattr, owner, name, getattr(owner, name))


def _settings() -> Iterator[Callable[[], object]]:
    """Yield what puts back settings of the process without which the suite itself could not go on."""
    for entries in (sys.path, sys.meta_path, sys.path_hooks):
        yield partial(_refill, entries, list(entries))
    limit, mask = sys.getrecursionlimit(), os.umask(0o077)
    os.umask(mask)
    yield lambda: sys.setrecursionlimit(max(limit, sys.getrecursionlimit()))
    yield partial(sys.setswitchinterval, sys.getswitchinterval())
    yield partial(os.umask, mask)
    for name in _SIGNALS:
        if hasattr(signal, name) and threading.current_thread() is threading.main_thread():
            number = getattr(signal, name)
            yield partial(signal.signal, number, signal.getsignal(number))
    if hasattr(signal, "pthread_sigmask"):
        yield partial(signal.pthread_sigmask, signal.SIG_SETMASK, signal.pthread_sigmask(signal.SIG_BLOCK, []))


def _refill(entries: list[Any], before: list[Any]) -> None:
    """Put back what was taken out of a list, in its order; what was put in stays, and is asked nothing."""
    there, known = set(map(id, entries)), set(map(id, before))
    if not known <= there:
        entries[:] = [*before, *(one for one in entries if id(one) not in known)]


@contextlib.contextmanager
def _descriptors() -> Iterator[None]:
    """Within it the descriptors of the standard streams may be closed or moved."""
    kept = {}
    for number in range(3):
        with contextlib.suppress(OSError):
            kept[number] = os.dup(number)
    try:
        yield
    finally:
        for number, descriptor in kept.items():
            with contextlib.suppress(OSError):
                os.dup2(descriptor, number)
                os.close(descriptor)
