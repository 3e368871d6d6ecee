"""The implementation that a command's argument names."""

from __future__ import annotations

import contextlib
import sys

from ..command_error import CommandError
from .containment import Raised, TimedOut, call, limits
from .implementation import Implementation, MisshapenAdapter, unanswered


def load(name: str, time_limit: float = 10.0) -> Implementation:
    """Return the adapter that `name` names, looked at. What it prints goes to standard error.

    Raises:
        CommandError: if it cannot be used; one line.
    """
    from bpe_conformance.adapters import AdapterError, resolve

    with contextlib.redirect_stdout(sys.stderr):
        try:
            with limits(6 * time_limit):
                target = call("", resolve, name)
            implementation: Implementation = call("", Implementation, name, target, time_limit)
        except TimedOut as late:
            raise CommandError(unanswered(name, str(late))) from None
        except Raised as raised:
            if isinstance(raised.error, AdapterError | MisshapenAdapter):
                raise CommandError(str(raised.error)) from None
            raise CommandError(f"{name}: looking at it{raised}") from None
        return implementation
