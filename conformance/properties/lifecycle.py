"""Properties about state: one state machine makes tokenizers and calls their methods, in any order.

The state machine compares each answer with the oracle's. If they differ, it makes the same call on a new tokenizer. If
that answer is incorrect too, no earlier step is at fault, and the mismatch depends on another failure.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from hypothesis import seed as seeded
from hypothesis import settings
from hypothesis.errors import InvalidDefinition
from hypothesis.stateful import run_state_machine_as_test

from ..answer import Refusal
from ..implementation.implementation import Implementation
from ..operations import Construct
from ..outcome import Expectation, Mismatch
from .asking import Instance, ask, fault_of, is_correct, posed
from .engine import Effort, Fixed, Found, Property, Search, Verdicts
from .lifecycle_inputs import EVERY_MERGE, SPACED, origins
from .state_machine import ASKING, MAKING, Machine, Stage
from .undisturbed import Judge, Undisturbed

SEARCH = "law-history"
STEPS = 20
MOST_SHRINKS = 150
STAGES = (
    Stage("law-history", ASKING, 6),
    Stage("law-instances", ASKING | MAKING | {"encode_with_each"}, 14),
    Stage("law-after-error", frozenset({"encode", "encode_allowed", "decode", "batch", "stream", "refuse"}), 4),
    Stage("law-lists", frozenset({"encode", "change_result"}), 8),
    Stage("law-unaliased", frozenset({"encode", "clear_arguments"}), 3),
)


class Lifecycle(Judge):
    """Runs the state machine.

    Args:
        implementation: the implementation under test.
        effort: how much to try.
        stages: the stages to run.
    """

    def __init__(self, implementation: Implementation, effort: Effort, stages: Sequence[Stage] = STAGES) -> None:
        super().__init__(implementation)
        self._effort = effort
        self._stages = stages

    def run(self) -> dict[str, Found]:
        """Return the first failure of each conformance class, by the id of its property."""
        until = time.monotonic() + (self._effort.deadline or 0)
        for place, stage in enumerate(self._stages):
            self.of_encoder, left = stage.name, len(self._stages) - place
            ends = time.monotonic() + (until - time.monotonic()) / left
            while stage.is_possible(self.implementation.capabilities) and self._fails(stage, ends):
                pass
        return self.dependent | self.found

    def _fails(self, stage: Stage, ends: float) -> bool:
        if self._effort.deadline is not None:
            self._effort = replace(self._effort, deadline=max(0.001, ends - time.monotonic()))
        self.search = Search(SEARCH, self.implementation, self._effort, MOST_SHRINKS)
        self.failed = None
        self.search.repeat(partial(self._once, stage), stage.examples)
        if self.failed is None:
            return False
        name, mismatch = self.failed
        self.found[name] = Found(mismatch, self.search.examples)
        self._effort = replace(self._effort, database=None)  # what is found again would be removed from it
        return True

    def _once(self, stage: Stage, chosen: settings, number: int) -> None:
        def machine() -> Machine:
            self.search.begin()
            self.has_refused = False
            return Machine(self, stage)

        seeded(number)(machine)
        with contextlib.suppress(InvalidDefinition):  # no step is possible: every table was refused
            run_state_machine_as_test(machine, settings=settings(chosen, stateful_step_count=STEPS))  # type: ignore[arg-type]


_explored: WeakKeyDictionary[Implementation, dict[tuple[int | None, float], dict[str, Found]]] = WeakKeyDictionary()


def _explore(id_: str, implementation: Implementation, effort: Effort) -> Found | None:
    runs = _explored.setdefault(implementation, {})
    key = effort.seed, effort.examples_factor
    if key not in runs:
        runs[key] = Lifecycle(implementation, effort).run()
    return runs[key].get(id_)


@Fixed("law-tables", "LAW-WAYS-1", ("encode",))
def encode_together(implementation: Implementation) -> Verdicts:
    """Several tokenizers exist at the same time, and each encodes by its own table and special tokens."""
    yield _together(implementation, "encode", {"text": EVERY_MERGE})


@Fixed("law-tables-stream", "LAW-WAYS-1", ("encode_iterable",))
def stream_together(implementation: Implementation) -> Verdicts:
    """Several tokenizers exist at the same time, and each encodes a stream by its own table and special tokens."""
    cut = len(EVERY_MERGE) - len(SPACED) // 2
    yield _together(implementation, "stream", {"chunks": [EVERY_MERGE[:cut], EVERY_MERGE[cut:]]})


def _together(implementation: Implementation, operation: str, given: Mapping[str, Any]) -> Mismatch | None:
    """Make a tokenizer of each table, in two orders, and ask each one twice: when it is made, and after all are made.

    Return the first incorrect answer, or None.
    """
    alone, every = Undisturbed(implementation), origins(implementation, in_files=False)
    dependent: Mismatch | None = None
    for ways in (every, every[::-1]):
        tokenizers = [(way, Instance(implementation, way.model)) for way in ways]
        for way, tokenizer in (*tokenizers, *tokenizers):
            asked = posed(operation, way.model, given, "while tokenizers with other tables exist")
            answer, right = tokenizer.ask(asked), alone.correct(way, asked)
            if is_correct(implementation, asked, answer, right):
                continue
            found = Mismatch(asked, Expectation((right,)), answer)
            if alone.answers(way, asked) or alone.answers_in_new_process(way, asked):
                return found
            built = ask(implementation, replace(asked, operation=Construct()))
            if not isinstance(built, Refusal):  # which tables it refuses is the subject of other tests
                fault = fault_of(implementation, asked, right, ask(implementation, asked))
                dependent = dependent or replace(found, depends_on=fault)
    return dependent


_SEARCHED: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("law-history", "MERGE-STATE-1", ("encode",), "`encode` is correct after similar texts."),
    ("law-instances", "ERROR-STATE-1", ("encode",), "`encode` is correct while other tokenizers exist."),
    ("law-lists", "ERROR-STATE-1", ("encode", "shared memory"), "`encode` is correct after returned lists change."),
    ("law-unaliased", "ERROR-STATE-2", ("encode", "shared memory"), "`encode` is correct after the table changes."),
    ("law-after-error", "ERROR-AFTER-1", ("encode",), "`encode` is correct after calls that raised an error."),
    ("law-decode-history", "LAW-PURE-1", ("decode",), "`decode` is correct after other ids, also in one list."),
    ("law-stream-history", "LAW-PURE-1", ("encode_iterable",), "A stream is correct while other streams are open."),
    ("law-batch-history", "LAW-PURE-1", ("encode_batch",), "`encode_batch` is correct after other batches."),
    ("law-train-history", "LAW-REPLAY-1", ("train",), "`train` is correct after other trainings."),
    ("law-trained-ways", "LAW-WAYS-1", ("train",), "Every method of a trained tokenizer is correct."),
    ("law-loaded-ways", "LAW-WAYS-1", ("from_files", "encode"), "Every method of a loaded tokenizer is correct."),
    ("law-files-again", "LAW-SAVE-1", ("from_files", "encode"), "A tokenizer saved over another one is correct."),
)
PROPERTIES: tuple[Property, ...] = (
    encode_together,
    stream_together,
    *(
        Property(id_, clause, needs, partial(_explore, id_), f"{asks} The calls come in any order.", search=SEARCH)
        for id_, clause, needs, asks in _SEARCHED
    ),
)
