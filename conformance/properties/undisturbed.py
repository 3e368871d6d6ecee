"""The answer of a tokenizer that gets no other call: the control for the properties about state."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ..answer import Acceptable, Accepted, Answer, Ids, Rows
from ..implementation.implementation import Implementation
from ..implementation.proxy import CallFailed, TimedOut
from ..operations import Question
from ..outcome import Dependence, Expectation, Mismatch
from .asking import Instance, accept, ask, contained, correct_answer, fault_of, is_correct, train
from .engine import Found, Search
from .lifecycle_inputs import Origin, origins

MOST_PROCESSES = 3
"""The most new processes to start."""
SLOW_START = 3.0
"""In seconds. An implementation that takes longer to start is started only once."""
SHARED = "after other tokenizers of this process were used; in a new process the answer is correct"
HISTORIES = {
    "encoder": "law-history",
    "decoder": "law-decode-history",
    "streaming": "law-stream-history",
    "batch": "law-batch-history",
    "trainer": "law-train-history",
    "files": "law-files-again",
}
"""Conformance class → the property that is broken if an earlier call changes an answer."""
CLASS_OF_WAYS = {"law-trained-ways": "trainer", "law-loaded-ways": "files"}
"""Property of trained or loaded tokenizers → the conformance class that it counts in."""
_OF_SHOULDS = frozenset({"encode_allowed"})
"""Operations of SHOULD clauses: an answer that is incorrect even without other calls breaks no MUST."""


class Undisturbed:
    """Knows the correct answers, and whether the implementation gives them if it gets no other call.

    Args:
        implementation: the implementation under test.
    """

    def __init__(self, implementation: Implementation) -> None:
        self._implementation = implementation
        self._correct: dict[str, Acceptable] = {}
        self._answered: dict[str, bool] = {}
        self._processes = MOST_PROCESSES if implementation.spawn is not None else 0

    def correct(self, origin: Origin, question: Question[Any]) -> Acceptable:
        """Return the oracle's answer."""
        if question.operation.name in ("construct", "load"):
            return Accepted()
        key = _key(origin, question)
        if key not in self._correct:
            self._correct[key] = correct_answer(question, self._implementation.conventions)
        return self._correct[key]

    def answers(self, origin: Origin, question: Question[Any]) -> bool:
        """Return whether a new tokenizer, made in the same way, gives the correct answer."""
        key = f"{origin.made} {_key(origin, question)}"
        if key not in self._answered:
            self._answered[key] = self._is_correct(self._implementation, origin, question)
        return self._answered[key]

    def answers_in_new_process(self, origin: Origin, question: Question[Any]) -> bool:
        """Return whether the first tokenizer of a new process gives the correct answer.

        In this process, state that tokenizers share can change the answer even of a new tokenizer.
        """
        key = f"new process, {origin.made} {_key(origin, question)}"
        if key not in self._answered and self._processes:
            self._processes -= 1
            self._answered[key] = self._in_new_process(origin, question)
        return self._answered.get(key, False)

    def answers_if_built(self, origin: Origin, question: Question[Any]) -> bool:
        """Return whether a tokenizer with the same table gives the correct answer if the constructor makes it now."""
        built = replace(origin, made="built", training=None)
        return bool({"encode", "decode"} & self._implementation.capabilities) and self._is_correct(
            self._implementation, built, question
        )

    def _is_correct(self, implementation: Implementation, origin: Origin, question: Question[Any]) -> bool:
        with implementation.time_limit(math.inf, is_diagnosis=True):
            if question.operation.name == "train":
                answer = contained(implementation, lambda: train(implementation, question.operation)[0])
            else:
                instance = Instance(implementation, partial(origin.make, implementation))
                answer = instance.call(accept) if question.operation.name == "load" else instance.ask(question)
        return is_correct(implementation, question, answer, self.correct(origin, question))

    def _in_new_process(self, origin: Origin, question: Question[Any]) -> bool:
        started = time.monotonic()
        try:
            with self._implementation.in_new_process({}) as other:
                return self._is_correct(other, origin, question)
        except (CallFailed, TimedOut):
            return False
        finally:
            if time.monotonic() - started > SLOW_START:
                self._processes = 0


def _key(origin: Origin, question: Question[Any]) -> str:
    return f"{origin.name} {question.operation}"


class Judge:
    """Compares each answer of the state machine with the correct one, and assigns an incorrect one to a property.

    Args:
        implementation: the implementation under test.

    Attributes:
        search: the current search.
        of_encoder: the property that is broken if `encode` is incorrect in this search.
        has_refused: whether a call of this example raised an error.
        failed: the property that this example breaks, and the incorrect answer.
        found: broken property → its counterexample, of earlier searches.
        dependent: property → its counterexample, if another failure causes it.
    """

    search: Search
    of_encoder: str
    has_refused: bool
    failed: tuple[str, Mismatch] | None

    def __init__(self, implementation: Implementation) -> None:
        self.implementation = implementation
        self.origins = origins(implementation)
        self.undisturbed = Undisturbed(implementation)
        self.found: dict[str, Found] = {}
        self.dependent: dict[str, Found] = {}

    def judge(
        self,
        origin: Origin,
        question: Question[Any],
        answer: Answer,
        encode: Callable[[str], Answer] | None = None,
        state: str = "",
    ) -> None:
        """Compare an answer with the correct one.

        Args:
            origin: how the tokenizer was made.
            question: the question, with the earlier steps as its context.
            answer: the answer.
            encode: encodes a text with the same tokenizer. If it gives the incorrect ids of a batch or a stream, the
                failure depends on `encode`.
            state: the property that is broken if an earlier step is at fault, and a tokenizer that is built now is
                correct; "" means the one for the operation.
        """
        right = self.undisturbed.correct(origin, question)
        if is_correct(self.implementation, question, answer, right):
            return
        clause = "TRAIN-STABLE-1" if question.operation.name == "train" else ""
        mismatch = Mismatch(question, Expectation((right,)), answer, clause_id=clause)
        history = _history(question)
        if state == "law-unaliased" and self.undisturbed.answers(origin, question):
            self._fail(state, mismatch)
        elif encode is not None and (text := _same_in_encode(question, answer, encode)) is not None:
            self._depends(history, mismatch, Dependence("encode", text))
        elif self.undisturbed.answers(origin, question):
            if not state or not self.undisturbed.answers_if_built(origin, question):
                state = self.of_encoder if history == "law-history" else history
            if state == "law-after-error" and not self.has_refused:
                state = "law-history"
            self._fail(state, mismatch)
        elif self.undisturbed.answers_in_new_process(origin, question):
            self.search.most_shrinks = 0  # what the tokenizers share outlives an example
            shared = replace(mismatch, asked=replace(question, context=SHARED))
            self._fail("law-instances" if history == "law-history" else history, shared)
        elif origin.made != "built" and question.model and self.undisturbed.answers_if_built(origin, question):
            self._fail("law-trained-ways" if origin.made == "trained" else "law-loaded-ways", mismatch)
        elif history not in self.dependent and question.operation.name not in _OF_SHOULDS:
            self._depends(history, mismatch, self._fault(question, right))

    def report_changed(self, mismatch: Mismatch) -> None:
        """Report a changed list of the caller, which ends the example."""
        history = _history(mismatch.asked)
        self._fail("law-lists" if history == "law-history" else history, mismatch)

    def _fault(self, question: Question[Any], right: Acceptable) -> Dependence:
        if question.model is None:
            return Dependence("undisturbed")
        return fault_of(self.implementation, question, right, ask(self.implementation, question))

    def _depends(self, name: str, mismatch: Mismatch, dependence: Dependence) -> None:
        self.dependent.setdefault(name, Found(replace(mismatch, depends_on=dependence)))

    def _fail(self, name: str, mismatch: Mismatch) -> None:
        """Report a failure, which ends the example, unless an earlier one is of the same conformance class."""
        if _class_of(name) not in map(_class_of, self.found):
            self.failed = name, mismatch
            self.search.judge(mismatch)


def _history(question: Question[Any]) -> str:
    return (
        "law-decode-history"
        if question.operation.name == "decode_bytes"
        else HISTORIES[question.operation.conformance_class]
    )


def _class_of(name: str) -> str:
    return CLASS_OF_WAYS.get(name) or next((class_ for class_, own in HISTORIES.items() if own == name), "encoder")


def _same_in_encode(question: Question[Any], answer: Answer, encode: Callable[[str], Answer]) -> str | None:
    """Return a text of a batch or stream if `encode` gives each of its texts the same ids; otherwise None."""
    texts = question.operation.texts()
    alone = [encode(text) for text in texts]
    if question.operation.name == "batch":
        same = answer == Rows(tuple(one.ids if isinstance(one, Ids) else () for one in alone))
    else:
        same = answer == alone[0]
    return texts[-1] if same else None
