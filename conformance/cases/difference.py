"""How an answer differs from what the spec expects."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from bpe_conformance.fixtures.answers import type_name

from ..implementation.calls import CallFailed, Raised

TIMED_OUT = "raised TimedOut"
DISTURBED = "surroundings"
FAULTS = (TIMED_OUT, DISTURBED, "raised Malformed")
"""Answers that are no values, and hold for the process in which they were given."""


@dataclass(frozen=True)
class Difference:
    """An answer that is not the expected one. Each text is one line.

    Attributes:
        input: what was asked.
        expected: what the spec says.
        got: what came back.
        diverges: where the two part, or "".
        traceback: the implementation's own frames, if it raised.
        chunks: of a streaming case, those that it was asked with.
        depends: which other part of the implementation gives the same wrong answer, or "".
        answer: what came back, in a form that is the same for every implementation that answers so.
    """

    input: str
    expected: str
    got: str
    diverges: str = ""
    traceback: Sequence[str] = ()
    chunks: Sequence[str] = ()
    depends: str = ""
    answer: str = ""

    @property
    def fingerprint(self) -> str:
        """Eight hexadecimal digits: equal for equal answers, whatever the implementation is called."""
        return hashlib.sha256((self.answer or self.got).encode("utf-8")).hexdigest()[:8]


def faulty(line: str, expected: str, fault: CallFailed) -> Difference:
    """Return the difference that a fault is, with the implementation's own frames."""
    kind = type_name(fault.error if isinstance(fault, Raised) else fault)
    where = fault.where if isinstance(fault, Raised) else ()
    return Difference(line, expected, str(fault), "", where, answer=f"raised {kind}")
