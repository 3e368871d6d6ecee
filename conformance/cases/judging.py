"""Tests one golden case: asks the implementation, and compares its answer with the expected one."""

from __future__ import annotations

from bpe_conformance.fixtures.spec import Case

from ..implementation.implementation import Implementation
from ..outcome import Mismatch
from . import decoding, encoding, files, training
from .expectations import under
from .skipping import adapted


def judge(case: Case, implementation: Implementation) -> Mismatch | None:
    """Return how the answer differs from what `case` expects, or None if it does not.

    Raises:
        TimedOut: if the time limit of the implementation runs out.
    """
    stored = case
    case = under(adapted(case, implementation) or case, implementation.conventions)
    match case.op:
        case "train":
            return training.judge(case, implementation, stored)
        case "decode":
            return decoding.judge(case, implementation)
        case "batch":
            return encoding.judge_batch(case, implementation)
        case "save":
            return files.judge_saving(case, implementation)
        case "load":
            return files.judge_loading(case, implementation)
        case "stream":
            return encoding.judge_stream(case, implementation)
        case "encode_allowed":
            return encoding.judge_allowed(case, implementation)
        case _:  # encode, construct
            return encoding.judge(case, implementation)
