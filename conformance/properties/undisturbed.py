"""The answer of a tokenizer that gets no other call: the control for the properties about state."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import Model, gpt2_files

from ..implementation.calls import CallFailed, TimedOut
from ..implementation.implementation import Implementation
from ..implementation.proxy import TokenizerProxy
from ..implementation.scratch import scratch_folder
from ..outcome import Acceptable, Accepted, Answer, Question, Table
from .asking import Instance, contained, correct_answer, is_correct

MOST_PROCESSES = 3
"""New processes that are asked."""
SLOW_START = 3.0
"""Seconds; an implementation that takes longer to start is started only once."""


@dataclass(frozen=True)
class Origin:
    """How a tokenizer is made.

    Attributes:
        name: names its table; unique.
        model: its vocabulary, merges, special tokens and pattern.
        made: `built`, `trained`, `loaded`, or `saved`: saved and loaded.
        training: what it was trained with.
    """

    name: str
    model: Model
    made: str = "built"
    training: Mapping[str, Any] | None = None

    def make(self, implementation: Implementation) -> TokenizerProxy:
        """Make a tokenizer in this way."""
        if self.training is None and self.made == "built":
            return implementation.build(self.model)
        made = None if self.training is None else train(implementation, self.training)[1]
        if self.made == "trained":
            assert made is not None
            return made
        with scratch_folder() as folder:
            if self.made == "loaded":
                gpt2_files.write(self.model, folder)
            else:
                (made or implementation.build(self.model)).save(folder)
            return load(implementation, folder, self.model.fresh()[2])


def load(implementation: Implementation, folder: Path, special: list[str] | None) -> TokenizerProxy:
    """Load what was saved into a directory, with these special tokens."""
    return implementation.from_files(folder / "vocab.json", folder / "merges.txt", special)


class Undisturbed:
    """The correct answer, and whether the implementation gives it when it is asked nothing else.

    Args:
        implementation: the implementation under test.
    """

    def __init__(self, implementation: Implementation) -> None:
        self._implementation = implementation
        self._correct: dict[str, Acceptable] = {}
        self._answered: dict[str, bool] = {}
        self._processes = MOST_PROCESSES if implementation.spawn is not None else 0

    def correct(self, origin: Origin, question: Question) -> Acceptable:
        """Return the oracle's answer."""
        if question.operation in ("construct", "load"):
            return Accepted()
        key = _key(origin, question)
        if key not in self._correct:
            self._correct[key] = correct_answer(question, self._implementation.conventions)
        return self._correct[key]

    def answers(self, origin: Origin, question: Question) -> bool:
        """Return whether a new tokenizer, made in the same way, gives the correct answer."""
        key = f"{origin.made} {_key(origin, question)}"
        if key not in self._answered:
            self._answered[key] = self._is_correct(self._implementation, origin, question)
        return self._answered[key]

    def answers_in_new_process(self, origin: Origin, question: Question) -> bool:
        """Whether the first tokenizer of a new process gives the correct answer.

        What the tokenizers of a process share can spoil the answer of one that is made anew.
        """
        key = f"new process, {origin.made} {_key(origin, question)}"
        if key not in self._answered and self._processes:
            self._processes -= 1
            self._answered[key] = self._in_new_process(origin, question)
        return self._answered.get(key, False)

    def answers_if_built(self, origin: Origin, question: Question) -> bool:
        """Return whether a tokenizer with the same table gives the correct answer if the constructor makes it now."""
        built = replace(origin, made="built", training=None)
        return bool({"encode", "decode"} & self._implementation.capabilities) and self._is_correct(
            self._implementation, built, question
        )

    def _is_correct(self, implementation: Implementation, origin: Origin, question: Question) -> bool:
        with implementation.time_limit(math.inf, is_diagnosis=True):
            if question.operation == "train":
                answer = contained(implementation, lambda: train(implementation, question.input)[0])
            else:
                instance = Instance(implementation, partial(origin.make, implementation))
                answer = instance.call(accept) if question.operation == "load" else instance.ask(question)
        return is_correct(answer, self.correct(origin, question))

    def _in_new_process(self, origin: Origin, question: Question) -> bool:
        started = time.monotonic()
        try:
            with self._implementation.in_new_process({}) as other:
                return self._is_correct(other, origin, question)
        except (CallFailed, TimedOut):
            return False
        finally:
            if time.monotonic() - started > SLOW_START:
                self._processes = 0


def _key(origin: Origin, question: Question) -> str:
    return f"{origin.name} {question.operation} {sorted(question.input.items())}"


def accept(tokenizer: TokenizerProxy) -> Answer:
    """Ask nothing: making the tokenizer is the question."""
    return Accepted()


def train(implementation: Implementation, given: Mapping[str, Any]) -> tuple[Table, TokenizerProxy | None]:
    """Return the answer to a training, and the tokenizer if there is one."""
    trained = implementation.train(**given)
    return trained.table, trained.tokenizer()
