"""Properties about state: one state machine makes tokenizers and calls their methods, in any order.

The state machine compares each answer with the oracle's. If they differ, it makes the same call on a new tokenizer. If
that answer is incorrect too, no earlier step is at fault, and the mismatch depends on another failure.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from hypothesis import seed as seeded
from hypothesis import settings
from hypothesis.errors import InvalidDefinition
from hypothesis.stateful import run_state_machine_as_test

from bpe_conformance.fixtures.spec import CLASS_OF_OP

from ..implementation.implementation import Implementation
from ..outcome import Acceptable, Answer, Dependence, Expectation, Ids, Mismatch, Question, Refusal, Rows
from .asking import Instance, ask, fault_of, is_correct
from .engine import Effort, Fixed, Found, Property, Search, Verdicts
from .lifecycle_inputs import EVERY_MERGE, SPACED, origins
from .state_machine import ASKING, MAKING, Machine, Stage
from .undisturbed import Origin, Undisturbed

STEPS = 20
MOST_SHRINKS = 150
SHARED = "after other tokenizers of this process were used; in a new process the answer is correct"
_CLASS_OF = {**CLASS_OF_OP, "decode_bytes": "decoder"}
_OF_SHOULDS = frozenset({"encode_allowed"})
"""Operations that only a SHOULD asks for: an answer that is wrong in any case breaks no MUST."""
STAGES: tuple[tuple[str, Stage, int], ...] = (
    ("law-history", Stage(ASKING), 6),
    ("law-instances", Stage(ASKING | MAKING | {"encode_with_each"}), 14),
    (
        "law-after-error",
        Stage(frozenset({"encode", "encode_allowed", "decode", "batch", "stream", "refuse"})),
        4,
    ),
    ("law-lists", Stage(frozenset({"encode", "change_result"})), 8),
    ("law-unaliased", Stage(frozenset({"encode", "clear_arguments"})), 3),
)
"""The property that an encoder breaks that is wrong in this stage and in none before it, and the number of examples."""


class Lifecycle:
    """Runs the state machine, and assigns each wrong answer to a property.

    Args:
        implementation: the implementation under test.
        effort: how much to try.
        stages: those that are run.
    """

    def __init__(
        self, implementation: Implementation, effort: Effort, stages: Sequence[tuple[str, Stage, int]] = STAGES
    ) -> None:
        self.implementation = implementation
        self.origins = origins(implementation)
        self.undisturbed = Undisturbed(implementation)
        self._effort = effort
        self._stages = stages
        self._search = self._new_search()
        self._of_encoder = "law-history"
        self._failed: tuple[str, Mismatch] | None = None
        self._found: dict[str, Found] = {}
        self._dependent: dict[str, Found] = {}

    def run(self) -> dict[str, Found]:
        """Return the first failure of each conformance class, by the id of its property."""
        until = time.monotonic() + (self._effort.deadline or 0)
        for place, (name, stage, examples) in enumerate(self._stages):
            self._of_encoder, left = name, len(self._stages) - place
            ends = time.monotonic() + (until - time.monotonic()) / left
            while stage.is_possible(self.implementation.capabilities) and self._fails(stage, examples, ends):
                pass
        return self._dependent | self._found

    def _fails(self, stage: Stage, examples: int, ends: float) -> bool:
        if self._effort.deadline is not None:
            self._effort = replace(self._effort, deadline=max(0.001, ends - time.monotonic()))
        self._search, self._failed = self._new_search(), None
        self._search.repeat(partial(self._once, stage), examples)
        if self._failed is None:
            return False
        name, mismatch = self._failed
        self._found[name] = Found(mismatch, self._search.examples)
        self._effort = replace(self._effort, database=None)  # what is found again would be removed from it
        return True

    def _new_search(self) -> Search:
        return Search("law-history", self.implementation, self._effort, MOST_SHRINKS)

    def _once(self, stage: Stage, chosen: settings, number: int) -> None:
        def machine() -> Machine:
            self._search.begin()
            return Machine(self, stage)

        seeded(number)(machine)
        with contextlib.suppress(InvalidDefinition):  # no step is possible: every table was refused
            run_state_machine_as_test(machine, settings=settings(chosen, stateful_step_count=STEPS))  # type: ignore[arg-type]

    def judge(
        self,
        machine: Machine,
        origin: Origin,
        question: Question,
        answer: Answer,
        encode: Callable[[str], Answer] | None = None,
        state: str = "",
    ) -> None:
        """Compare an answer with the correct one.

        Args:
            machine: the state machine, after the call.
            origin: how the tokenizer was made.
            question: what it was asked.
            answer: what it answered.
            encode: encodes a text with the same tokenizer. A batch or a stream that is wrong as it is depends on it.
            state: the property that is broken if an earlier step is at fault, and a tokenizer that is built now is
                correct. Default: by the operation.
        """
        right = self.undisturbed.correct(origin, question)
        if is_correct(answer, right):
            return
        mismatch = Mismatch(replace(question, context=machine.context), Expectation((right,)), answer)
        history = _HISTORY_OF[_CLASS_OF[question.operation]]
        if state == "law-unaliased" and self.undisturbed.answers(origin, question):
            self.fail(state, mismatch)
        elif encode is not None and (text := _encoded_so(question, answer, encode)) is not None:
            self._depends(history, mismatch, Dependence("encode", text))
        elif self.undisturbed.answers(origin, question):
            if not state or not self.undisturbed.answers_if_built(origin, question):
                state = self._of_encoder if history == "law-history" else history
            if state == "law-after-error" and not machine.has_refused:
                state = "law-history"
            self.fail(state, mismatch)
        elif self.undisturbed.answers_in_new_process(origin, question):
            self._search.most_shrinks = 0  # what the tokenizers share outlives an example
            shared = replace(mismatch, asked=replace(question, context=SHARED))
            self.fail("law-instances" if history == "law-history" else history, shared)
        elif origin.made != "built" and question.model and self.undisturbed.answers_if_built(origin, question):
            self.fail("law-trained-ways" if origin.made == "trained" else "law-loaded-ways", mismatch)
        elif history not in self._dependent and question.operation not in _OF_SHOULDS:
            self._depends(history, mismatch, self._fault(question, right))

    def _fault(self, question: Question, right: Acceptable) -> Dependence:
        if question.model is None:
            return Dependence("undisturbed")
        return fault_of(self.implementation, question, right, ask(self.implementation, question))

    def _depends(self, name: str, mismatch: Mismatch, dependence: Dependence) -> None:
        self._dependent.setdefault(name, Found(replace(mismatch, depends_on=dependence)))

    def report_changed(self, mismatch: Mismatch) -> None:
        """End the example: a list of the caller's was changed."""
        history = _HISTORY_OF[_CLASS_OF[mismatch.asked.operation]]
        self.fail("law-lists" if history == "law-history" else history, mismatch)

    def fail(self, name: str, mismatch: Mismatch) -> None:
        """End the example, unless a failure of the same class was found before."""
        if _BY_ID[name].conformance_class not in {_BY_ID[found].conformance_class for found in self._found}:
            self._failed = name, mismatch
            self._search.judge(mismatch)


def _encoded_so(question: Question, answer: Answer, encode: Callable[[str], Answer]) -> str | None:
    """Return a text of a batch or a stream that `encode` gives the same ids, of all those that are wrong; or None."""
    given = question.input
    texts = given["texts"] if question.operation == "batch" else ["".join(given.get("chunks", ()))]
    alone = [encode(text) for text in texts]
    if question.operation == "batch":
        same = answer == Rows(tuple(one.ids if isinstance(one, Ids) else () for one in alone))
    else:
        same = answer == alone[0]
    return texts[-1] if same else None


_explored: WeakKeyDictionary[Implementation, dict[tuple[int | None, float], dict[str, Found]]] = WeakKeyDictionary()


def _explore(id_: str, implementation: Implementation, effort: Effort) -> Found | None:
    runs = _explored.setdefault(implementation, {})
    key = effort.seed, effort.examples_factor
    if key not in runs:
        runs[key] = Lifecycle(implementation, effort).run()
    return runs[key].get(id_)


@Fixed("law-tables", "LAW-WAYS-1", ("encode",))
def encode_together(implementation: Implementation) -> Verdicts:
    """Tokenizers with different tables and special tokens, all alive, each encode by their own table."""
    yield _together(implementation, "encode", {"text": EVERY_MERGE})


@Fixed("law-tables-stream", "LAW-WAYS-1", ("encode_iterable",))
def stream_together(implementation: Implementation) -> Verdicts:
    """Tokenizers with different tables and special tokens, all alive, each encode a stream by their own table."""
    cut = len(EVERY_MERGE) - len(SPACED) // 2
    yield _together(implementation, "stream", {"chunks": [EVERY_MERGE[:cut], EVERY_MERGE[cut:]]})


def _together(implementation: Implementation, operation: str, given: Mapping[str, Any]) -> Mismatch | None:
    """Make a tokenizer of each table, in two orders, and ask each when it is made and when all others are made."""
    alone, every = Undisturbed(implementation), origins(implementation, in_files=False)
    dependent: Mismatch | None = None
    for ways in (every, every[::-1]):
        tokenizers = [(way, Instance(implementation, way.model)) for way in ways]
        for way, tokenizer in (*tokenizers, *tokenizers):
            asked = Question(operation, way.model, given, "while tokenizers with other tables live")
            answer, right = tokenizer.ask(asked), alone.correct(way, asked)
            if is_correct(answer, right):
                continue
            found = Mismatch(asked, Expectation((right,)), answer)
            if alone.answers(way, asked) or alone.answers_in_new_process(way, asked):
                return found
            built = ask(implementation, replace(asked, operation="construct"))
            if not isinstance(built, Refusal):  # which tables it refuses is the subject of other tests
                fault = fault_of(implementation, asked, right, ask(implementation, asked))
                dependent = dependent or replace(found, depends_on=fault)
    return dependent


_SEARCHED: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("law-history", "MERGE-STATE-1", ("encode",), "texts after others that are nearly alike"),
    ("law-instances", "ERROR-STATE-1", ("encode",), "texts while other tokenizers live"),
    ("law-lists", "ERROR-STATE-1", ("encode", "shared memory"), "texts after the caller changed returned lists"),
    ("law-unaliased", "ERROR-STATE-2", ("encode", "shared memory"), "texts after the caller emptied the table"),
    ("law-after-error", "ERROR-AFTER-1", ("encode",), "texts after calls that were refused"),
    ("law-decode-history", "LAW-PURE-1", ("decode",), "ids after others, also in a list that grows"),
    ("law-stream-history", "LAW-PURE-1", ("encode_iterable",), "streams while others are open"),
    ("law-batch-history", "LAW-PURE-1", ("encode_batch",), "batches after others"),
    ("law-train-history", "LAW-REPLAY-1", ("train",), "trainings after others"),
    ("law-trained-ways", "LAW-WAYS-1", ("train",), "each method of a tokenizer that was trained"),
    ("law-loaded-ways", "LAW-WAYS-1", ("from_files", "encode"), "each method of one that was loaded"),
    ("law-files-again", "LAW-SAVE-1", ("from_files", "encode"), "one that was saved where others were"),
)
_BY_ID = {
    id_: Property(
        *(id_, clause, needs, partial(_explore, id_), f"The state machine asks for {asks}."), search="law-history"
    )
    for id_, clause, needs, asks in _SEARCHED
}
PROPERTIES: tuple[Property, ...] = (encode_together, stream_together, *_BY_ID.values())
_HISTORY_OF = {
    "encoder": "law-history",
    "decoder": "law-decode-history",
    "streaming": "law-stream-history",
    "batch": "law-batch-history",
    "trainer": "law-train-history",
    "files": "law-files-again",
}
