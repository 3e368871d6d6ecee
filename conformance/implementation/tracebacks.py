"""Extracts the frames of an implementation from a traceback, without the suite's own frames."""

from __future__ import annotations

import os
import re
import sys
import traceback
from typing import NamedTuple

SHOWN = 4
"""How many frames are shown, the innermost ones."""
_LONGEST_LINE = 500
_OUR_MODULE = "/protocol.mjs:"
"""Marks the frames of the module that implements the protocol for JavaScript programs."""
_PYTHON_FILE = re.compile('(?<=^File ")[^"]+')
_PACKAGE = __name__.partition(".")[0]
_UNDER_TEST = tuple(f"{_PACKAGE}.{name}" for name in ("adapters.packages", "known_bugs", "reference"))
"""Parts of this package that are implementations."""


def is_ours(module: str) -> bool:
    """Return whether a module belongs to the suite, and not to an implementation, its packages, or Python."""
    return _is_part(module, _PACKAGE) and not any(_is_part(module, name) for name in _UNDER_TEST)


def _is_part(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


class Frame(NamedTuple):
    """A frame of a traceback; `place` is file:line."""

    place: str
    function: str
    source: str

    def __str__(self) -> str:
        return f"{self.place} in {self.function}: {self.source}"[:_LONGEST_LINE]


def frames(error: BaseException) -> list[Frame]:
    """Return the innermost frames that are not the suite's own, innermost last."""
    try:
        found = zip(traceback.walk_tb(error.__traceback__), traceback.extract_tb(error.__traceback__), strict=True)
        theirs = [summary for (live, _), summary in found if not is_ours(str(live.f_globals.get("__name__")))]
    except BaseException:  # reading an exception of the implementation can raise anything
        return []
    return [
        Frame(f"{as_imported(frame.filename)}:{frame.lineno}", frame.name, frame.line or "")
        for frame in theirs[-SHOWN:]
    ]


def remote(text: str) -> list[str]:
    """Return the innermost lines of a traceback, or of an error output, that another process wrote, innermost last."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" ^~")]
    lines = [_PYTHON_FILE.sub(lambda found: as_imported(found[0]), line)[:_LONGEST_LINE] for line in lines]
    first = next((index for index, line in enumerate(lines) if line.startswith("at ")), None)
    if first is None:
        return lines[-SHOWN:]
    error = lines[:first][-1:]  # JavaScript and Java name the error, then the innermost frame, then its callers
    innermost_first = [line.removeprefix("at ") for line in lines[first:] if line.startswith("at ")]
    theirs = [line for line in innermost_first if _OUR_MODULE not in line] or innermost_first
    return [*error, *reversed(theirs[: SHOWN - 1])]


def as_imported(filename: str) -> str:
    """Return a file's path relative to where it is imported from, so that reports do not depend on that directory."""
    folders = {os.path.join(os.path.abspath(folder), "") for folder in [*sys.path, ""]}  # noqa: PTH100, PTH118
    return filename[max((len(folder) for folder in folders if filename.startswith(folder)), default=0) :]
