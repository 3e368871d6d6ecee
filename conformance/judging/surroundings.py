"""Keeps the process around an item as it was: folder, locale, random numbers, standard streams."""

from __future__ import annotations

import contextlib
import locale
import os
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

_CATEGORIES = ("LC_CTYPE", "LC_COLLATE", "LC_TIME", "LC_MONETARY", "LC_NUMERIC", "LC_MESSAGES")
_REPLACED: list[Any] = []  # a wrapper that is collected closes the stream that it wraps
_MOST_REPLACED = 64
_STREAMS = ("stdin", "stdout", "stderr", "__stdout__", "__stderr__")


@contextlib.contextmanager
def kept() -> Iterator[list[str]]:
    """Within it an implementation is judged; afterwards its surroundings are as they were before.

    The state of `random` (and of NumPy's global generator, if it is loaded) and the standard streams are put back
    without a word, for to draw random numbers is no fault. `close` of a stream does nothing. The recursion limit, the
    environment variables and `sys.path` are left alone: an implementation may set them once, in its first call, and
    need them ever after.

    Yields:
        A list. When the block has ended it holds a line for each change that is a fault: of the current folder
        and of the locale.
    """
    told: list[str] = []
    folder, locales, draws = _folder(), _locale(), list(_draws())
    streams = {name: getattr(sys, name) for name in _STREAMS}
    try:
        with contextlib.ExitStack() as stack:
            for stream in streams.values():
                stack.enter_context(_open(stream))
            yield told
    finally:
        for name, stream in streams.items():
            _REPLACED.append(getattr(sys, name))
            setattr(sys, name, stream)
        _REPLACED[:] = [one for one in _REPLACED if one not in streams.values()][-_MOST_REPLACED:]
        for put_back in draws:
            with contextlib.suppress(ValueError, TypeError):
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


def _draws() -> Iterator[Callable[[], None]]:
    """Yield what puts back the state of each global source of random numbers."""
    state = random.getstate()
    yield lambda: random.setstate(state)
    numpy: Any = sys.modules.get("numpy.random")
    if numpy is not None and hasattr(numpy, "get_state"):
        legacy = numpy.get_state(legacy=False)
        yield lambda: numpy.set_state(legacy)
