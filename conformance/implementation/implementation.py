"""The implementation under test: what it supports, and the same in other processes."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from . import capabilities, environment
from .factory import Factory

SpawnFactory = Callable[[Mapping[str, str]], Any]
"""Starts the adapter in a new process, with these environment variables added."""


class Implementation(Factory):
    """The implementation under test.

    Attributes:
        capabilities: what it supports, see `capabilities.settle`; and `new process`, if it can be started in another
            process, with Python's hash seed and locale.
        spawn: starts it in a new process, or None if that is not possible.
    """

    def __init__(
        self, name: str, target: Any, limit: float = 10.0, spawn: SpawnFactory | None = None, stderr: int = 2
    ) -> None:
        """Find out what `target` supports.

        Args:
            name: how the user named it.
            target: a class or factory of the adapter protocol.
            limit: seconds for one case, and for one probe; 0 is no limit.
            spawn: starts it in a new process; None if that is not possible.
            stderr: the file descriptor to which the reason is written if this process has to end.

        Raises:
            LoadError: if it offers nothing that can be tested, or declares an unknown convention.
        """
        super().__init__(name, target, limit, stderr)
        self.spawn = spawn
        self._elsewhere: dict[str, Implementation] = {}
        with environment.kept():  # the tests report changes
            self.capabilities = capabilities.settle(self) | (
                {"new process"} if spawn and not self.is_program else set()
            )

    @contextlib.contextmanager
    def in_new_process(self, environment: Mapping[str, str]) -> Iterator[Implementation]:
        """Yield the same implementation in a new process, with these environment variables added.

        Its capabilities are not probed again, so the caller's first call is the first call of the process.
        """
        other = self._spawned(environment)
        try:
            yield other
        finally:
            other.target.close()

    def elsewhere(self, environment: Mapping[str, str]) -> Implementation:
        """Return the same implementation in a process with these environment variables, which later callers share.

        Raises:
            CallFailed, TimedOut: if it does not start there.
        """
        key = repr(environment)
        if key not in self._elsewhere:
            self._elsewhere[key] = self._spawned(environment)
        return self._elsewhere[key]

    @contextlib.contextmanager
    def kept_watchdog(self) -> Iterator[None]:
        """Keep the watchdog running between tests: its thread takes longer to start and end than most tests.

        `stop_watchdog` stops it before something else takes long.
        """
        self._timer.keeps_watchdog = True
        try:
            yield
        finally:
            self._timer.keeps_watchdog = False
            self.stop_watchdog()

    def stop_watchdog(self) -> None:
        """Stop the watchdog, which ends this process if it is not stopped; the next call starts it again."""
        self._timer.close()

    def close(self) -> None:
        """End the processes of `elsewhere`."""
        while self._elsewhere:
            self._elsewhere.popitem()[1].target.close()

    def _spawned(self, environment: Mapping[str, str]) -> Implementation:
        assert self.spawn is not None
        other = copy.copy(self)
        other.target, other.spawn, other._large = self.call("a new process", self.spawn, environment), None, {}
        other.capabilities = self.capabilities - {"new process", "shared memory"}
        return other
