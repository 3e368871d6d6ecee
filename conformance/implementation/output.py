"""What an implementation writes besides its answers: output and temporary files."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bpe_conformance.fixtures.one_line import ascii_only

KEPT = 64 * 1024  # the most bytes that are kept of the standard output of one item, and of its standard error
CUT = b"\n... the rest is cut\n"


def cut_captured() -> None:
    """Cut captured output before anything reads it, if the standard streams go to temporary files."""
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            if os.fstat(descriptor).st_size > KEPT:
                os.ftruncate(descriptor, KEPT)
                os.lseek(descriptor, 0, os.SEEK_END)
                os.write(descriptor, CUT)


def shown(text: str) -> str:
    """Return captured output without characters that control a terminal, or that HTML and XML do not allow."""
    return ascii_only(text.replace("\t", "    ")[: KEPT + len(CUT)])[: KEPT + len(CUT)]


class _Folder:
    """A directory inside a temporary one. If it is moved or replaced, the outer one still removes it."""

    def __init__(self) -> None:
        self._outer = tempfile.TemporaryDirectory(prefix="bpe-conformance-", ignore_cleanup_errors=True)
        self.inner, self._uses = Path(self._outer.name, "saved"), 1
        self.inner.mkdir()
        self._made = self._state()
        self.remove = self._outer.cleanup

    def _state(self) -> tuple[int, int]:
        found = os.lstat(self.inner)
        return found.st_ino, found.st_mode

    def renew(self) -> bool:
        """Remove the files in the directory, and rename it. Return whether it is as if it was made now."""
        try:
            if [*self.inner.parent.iterdir()] != [self.inner] or self._state() != self._made:
                return False
            for file in self.inner.iterdir():
                file.unlink()  # fails for a directory
            self._uses += 1
            self.inner = self.inner.rename(self.inner.with_name(f"saved{self._uses}"))
        except OSError:
            return False
        return True


_renewed: list[_Folder] | None = None  # those that can be used again, inside `reused_folders`


@contextlib.contextmanager
def reused_folders() -> Iterator[None]:
    """Let `scratch_folder` rename what it has yielded: to remove a directory takes milliseconds on some machines."""
    global _renewed
    outer, _renewed = _renewed, []
    try:
        yield
    finally:
        for folder in _renewed:
            folder.remove()
        _renewed = outer


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield an empty directory whose path is new."""
    folder = _renewed.pop() if _renewed else _Folder()
    if not folder.inner.is_dir():  # a process that the implementation forked has removed it when it ended
        folder = _Folder()
    try:
        yield folder.inner
    finally:
        if _renewed is not None and folder.renew():
            _renewed.append(folder)
        else:
            folder.remove()
