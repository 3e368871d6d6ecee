"""Loads the implementation that the user named."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from typing import Any

from bpe_conformance.adapters import AdapterError, resolve
from bpe_conformance.adapters.bridge.client import bridge, isolated
from bpe_conformance.adapters.loading import program_arguments
from bpe_conformance.adapters.shapes.functions import with_trainer

from .calls import Raised, TimedOut, call
from .declarations import LoadError
from .implementation import Implementation
from .time_limit import Timer, time_limit

__all__ = ["LoadError", "load"]
IMPORT_FACTOR = 6
"""How many times as long as a case the import of the adapter may take."""


def load(
    name: str, trainer: str | None = None, isolate: bool = False, limit: float = 10.0, stderr: int = 2
) -> Implementation:
    """Return the implementation that `name` means. What it prints goes to standard error.

    Args:
        name: as `--adapter` takes it.
        trainer: as `--bpe-trainer` takes it.
        isolate: whether to run it in another process.
        limit: seconds for one case.
        stderr: the file descriptor for the reason, if this process has to be ended.

    Raises:
        LoadError: if it cannot be imported or tested; one line.
    """
    is_program = name.startswith("cmd:")

    def resolved() -> Any:
        if isolate and not is_program:
            return isolated(name, trainer, time_limit=limit)
        target = resolve(name)
        return with_trainer(target, trainer) if trainer else target

    def spawn(environment: Mapping[str, str]) -> Any:
        if is_program:
            return bridge(program_arguments(name), time_limit=limit, env=environment)
        return isolated(name, trainer, time_limit=limit, env=environment, memory=0)  # no limit of memory

    with contextlib.redirect_stdout(sys.stderr):
        try:
            with time_limit(IMPORT_FACTOR * limit, Timer(stderr)):
                target = call("", resolved)
            return call("", Implementation, name, target, limit, spawn, stderr)
        except TimedOut as late:
            if is_program:
                see = "run bpe-conformance check-bridge to see the messages"
                raise LoadError(f"{name}: the program gave {late} to start; {see}") from None
            raise LoadError(f"{name}: importing it gave {late}") from None
        except Raised as raised:
            if isinstance(raised.error, AdapterError | LoadError):
                raise LoadError(str(raised.error)) from None
            at = f" ({raised.place})" if raised.place else ""
            raise LoadError(f"{name}: inspecting it{raised}{at}") from None
