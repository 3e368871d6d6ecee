"""Restores the state of the process: current directory, locale, environment variables, signal handlers."""

from __future__ import annotations

import contextlib
import locale
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from typing import Any

_CATEGORIES = ("LC_CTYPE", "LC_COLLATE", "LC_TIME", "LC_MONETARY", "LC_NUMERIC", "LC_MESSAGES")
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE", "SIGALRM")


@contextlib.contextmanager
def kept() -> Iterator[list[str]]:
    """Restore what the implementation changes within the block.

    Environment variables that it adds stay, because it may set them in its first call and need them later.

    Yields:
        A list. After the block it contains a line for each change of the current directory or the locale, which
        ERROR-STATE-3 forbids.
    """
    changes: list[str] = []
    directory, categories, variables, handlers = _directory(), _locale(), dict(os.environ), _handlers()
    try:
        yield changes
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if (now := dict(os.environ)) != variables:
            os.environ.update({name: value for name, value in variables.items() if now.get(name) != value})
        changes += _restored_directory(directory)
        changes += _restored_locale(categories)


def _directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:
        return ""


def _restored_directory(before: str) -> Iterator[str]:
    after = _directory()
    if after == before or not before:
        return
    changed = f"the tokenizer changed the current directory to {after or 'one that no longer exists'}"
    try:
        os.chdir(before)
    except OSError as error:
        yield f"{changed}, and the suite cannot return to the earlier one: {error}"
    else:
        yield f"{changed}; leave it as it is"


def _locale() -> dict[str, str]:
    found = {}
    for name in _CATEGORIES:
        with contextlib.suppress(AttributeError, locale.Error):
            found[name] = locale.setlocale(getattr(locale, name))
    return found


def _restored_locale(before: Mapping[str, str]) -> Iterator[str]:
    after = _locale()
    changed = [name for name in before if after.get(name) != before[name]]
    for name in changed:
        with contextlib.suppress(locale.Error):
            locale.setlocale(getattr(locale, name), before[name])
    if changed:
        shown = ", ".join(f"{name} to {after.get(name)}" for name in changed)
        yield f"the tokenizer changed the locale ({shown}); leave it as it is"


def _handlers() -> dict[int, Any]:
    """Return the signal handlers that can be restored: those that Python set, in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    found = {number: signal.getsignal(number) for number in numbers}
    return {number: handler for number, handler in found.items() if handler is not None}
