"""What an implementation writes and changes besides its answers: output, temporary files, the directory, the locale."""

from __future__ import annotations

import contextlib
import locale
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from bpe_conformance.fixtures.one_line import ascii_only

KEPT = 64 * 1024  # the most bytes that are kept of the standard output of one item, and of its standard error
CUT = b"\n... the rest is cut\n"
_CATEGORIES = ("LC_CTYPE", "LC_COLLATE", "LC_TIME", "LC_MONETARY", "LC_NUMERIC", "LC_MESSAGES")


def cut_captured() -> None:
    """Cut captured output before anything reads it, if the standard streams go to temporary files."""
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            file = os.fstat(descriptor)
            if stat.S_ISREG(file.st_mode) and file.st_size > KEPT:
                os.ftruncate(descriptor, KEPT)
                os.lseek(descriptor, 0, os.SEEK_END)
                os.write(descriptor, CUT)


def shown(text: str) -> str:
    """Return captured output without characters that control a terminal, or that HTML and XML do not allow."""
    return ascii_only(text.replace("\t", "    ")[: KEPT + len(CUT)])[: KEPT + len(CUT)]


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a directory inside a temporary one. If it is moved or replaced, the outer one still removes it."""
    with tempfile.TemporaryDirectory(prefix="bpe-conformance-", ignore_cleanup_errors=True) as outer:
        inner = Path(outer, "saved")
        inner.mkdir()
        yield inner


@contextlib.contextmanager
def restored() -> Iterator[list[str]]:
    """Restore the current directory and the locale; the list then has a line for each change (ERROR-STATE-3)."""
    changes: list[str] = []
    directory, categories = _directory(), _locale()
    try:
        yield changes
    finally:
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
        shown_changes = ", ".join(f"{name} to {after.get(name)}" for name in changed)
        yield f"the tokenizer changed the locale ({shown_changes}); leave it as it is"
