"""Asks an implementation and the oracle the same question. A wrong answer is a value."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import GPT2_BYTE_ORDER, Model, write_token
from bpe_conformance.fixtures.flow import write_flow
from bpe_conformance.fixtures.spec import CLASS_OF_OP, Case, Clause
from bpe_conformance.reference import textbook

from ..cases.dependence import explained
from ..cases.expectations import compute, conventions_of, expression, oracle, training_key, under
from ..cases.judging import judge
from ..cases.operations import OPERATIONS
from ..implementation.implementation import Implementation
from ..implementation.proxy import TokenizerProxy, answered
from ..outcome import (
    Acceptable,
    Accepted,
    Answer,
    AnyError,
    Bytes,
    Dependence,
    Expectation,
    HighestCount,
    Ids,
    Mismatch,
    Question,
    Refusal,
    Rows,
    Table,
    Text,
)

HASH_SEEDS = ("1", "2")
ASCII_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
OTHER_PROCESSES = ({"PYTHONHASHSEED": HASH_SEEDS[0]}, {"PYTHONHASHSEED": HASH_SEEDS[1], **ASCII_LOCALE})
"""The environments of two further processes. Properties share them, because an adapter can take long to start."""
CALLERS_SPECIALS = "the caller's special_tokens changed"


def contained(implementation: Implementation, ask: Callable[[], Answer], timeout_factor: int = 1) -> Answer:
    """Return the answer. If the implementation raises or takes too long, return that as a value."""
    with implementation.time_limit(timeout_factor):
        return answered(ask)


class Instance:
    """One tokenizer, which is made when it is first asked.

    Args:
        implementation: the implementation under test.
        make: makes the tokenizer: builds, trains or loads it. Or the model to build it from.
        timeout_factor: how many times longer than a case each question may take.
    """

    def __init__(
        self, implementation: Implementation, make: Callable[[], TokenizerProxy] | Model, timeout_factor: int = 1
    ) -> None:
        self._implementation = implementation
        self._make: Callable[[], TokenizerProxy] = (
            partial(implementation.build, make) if isinstance(make, Model) else make
        )
        self._timeout_factor = timeout_factor
        self._made: TokenizerProxy | None = None

    def ask(self, question: Question) -> Answer:
        """Return the answer to a question; its model is ignored."""
        return self.call(lambda tokenizer: OPERATIONS[question.operation](tokenizer, question.input))

    def call(self, ask: Callable[[TokenizerProxy], Answer]) -> Answer:
        """Return what `ask` gets from the tokenizer, or what the implementation did instead."""

        def made() -> Answer:
            self._made = self._made or self._make()
            return ask(self._made)

        return contained(self._implementation, made, self._timeout_factor)


def ask(implementation: Implementation, question: Question, timeout_factor: int = 1) -> Answer:
    """Return the answer of a new tokenizer, or of a training."""
    if question.operation == "train":
        return contained(implementation, lambda: implementation.train(**question.input).table, timeout_factor)
    return Instance(implementation, question.table, timeout_factor).ask(question)


def accept(tokenizer: TokenizerProxy) -> Answer:
    """Ask nothing: making the tokenizer is the question."""
    return Accepted()


def train(implementation: Implementation, given: Mapping[str, Any]) -> tuple[Table, TokenizerProxy | None]:
    """Return the answer to a training, and the tokenizer if there is one."""
    trained = implementation.train(**given)
    return trained.table, trained.tokenizer()


def load(implementation: Implementation, folder: Path, special: list[str] | None) -> TokenizerProxy:
    """Load what was saved into a directory, with these special tokens."""
    return implementation.from_files(folder / "vocab.json", folder / "merges.txt", special)


def correct_answer(question: Question, conventions: Mapping[str, str]) -> Answer | AnyError | HighestCount:
    """Return the oracle's answer under these conventions."""
    given = question.input
    if question.operation == "train":
        return _correct_training(given, conventions)
    right = oracle(question.table, conventions)
    match question.operation:
        case "encode":
            return Ids(tuple(right.encode(given["text"])))
        case "encode_allowed":
            try:
                return Ids(tuple(right.encode(**given)))
            except ValueError:
                return AnyError("disallowed")
        case "stream":
            return Ids(tuple(right.encode("".join(given["chunks"]))))
        case "batch":
            return Rows(tuple(tuple(right.encode(text)) for text in given["texts"]))
        case "decode":
            return Text(right.decode(given["ids"]))
        case "decode_bytes":
            return Bytes(right.decode_bytes(given["ids"]))
    raise ValueError(f"the oracle does not answer {question.operation}")


def _correct_training(given: Mapping[str, Any], conventions: Mapping[str, str]) -> Table | HighestCount:
    order = conventions["byte_order"]
    text, size, special = given["text"], given["vocab_size"], given["special_tokens"]
    if conventions["tie_break"] == "unspecified":
        return HighestCount(size - 256 - len({*special}))
    pattern = expression(given.get("pattern", "gpt2"), conventions)
    merges = textbook.learn(text, size, special, pattern, **conventions_of(training_key(conventions)))
    return Table(textbook.build_vocab(merges, special, order, conventions["id_layout"]), tuple(merges))


def is_correct(answer: Answer, right: Acceptable) -> bool:
    """Return whether an answer obeys every MUST if `right` is expected.

    If an error is expected, any error is correct. The ids that training gives to tokens are a SHOULD (TRAIN-IDS-2).
    """
    if isinstance(right, AnyError):
        return isinstance(answer, Refusal)
    if isinstance(right, Table) and isinstance(answer, Table):
        return answer.merges == right.merges and {*answer.vocab.values()} == {*right.vocab.values()}
    return answer == right


def equals_oracle(implementation: Implementation, question: Question, clause_id: str) -> Mismatch | None:
    """Test a question as a golden case with the oracle's value, and find out what a failure depends on.

    Args:
        implementation: the implementation under test.
        question: what to ask a new tokenizer.
        clause_id: the clause that the case belongs to.
    """
    return judged(implementation, under(as_case(question, clause_id), implementation.conventions))


def judged(implementation: Implementation, case: Case) -> Mismatch | None:
    """Test a golden case, and find out what a failure depends on."""
    with implementation.time_limit():
        mismatch = judge(case, implementation)
    return None if mismatch is None else explained(case, mismatch, implementation)


def undisturbed(implementation: Implementation, question: Question, disturbed: Answer) -> Mismatch | None:
    """Compare an answer with a new tokenizer's answer to the same question.

    If the new tokenizer is wrong too, the mismatch depends on that.

    Args:
        implementation: the implementation under test.
        question: with the `context` in which it was asked.
        disturbed: the answer in that context.
    """
    right = correct_answer(question, implementation.conventions)
    if is_correct(disturbed, right):
        return None
    with implementation.time_limit(math.inf, is_diagnosis=True):
        alone = ask(implementation, question)
    dependence = None if is_correct(alone, right) else fault_of(implementation, question, right, alone)
    return Mismatch(question, Expectation((right,)), disturbed, depends_on=dependence)


def fault_of(implementation: Implementation, question: Question, right: Acceptable, alone: Answer) -> Dependence:
    """Return which part is at fault if a new tokenizer's answer is wrong: that of the operation, or `encode`.

    Args:
        implementation: the implementation under test.
        question: what was asked.
        right: the correct answer.
        alone: the wrong answer. It is `encode`'s fault if `encode` gives a stream or a batch the same ids.
    """
    found = None
    if question.operation in ("stream", "batch"):
        mismatch = Mismatch(question, Expectation((right,)), alone)
        found = explained(as_case(question, "LAW-ENCODE-1"), mismatch, implementation).depends_on
    return found or Dependence("undisturbed")


def as_case(question: Question, clause_id: str, id_: str = "example") -> Case:
    """Return a question as a golden case without an expectation."""
    op = "decode" if question.operation == "decode_bytes" else question.operation
    given = {"train": _raw_training(question.input)} if op == "train" else dict(question.input)
    clause = Clause(clause_id, clause_id.partition("-")[0], "must", "", "", ())
    return Case(id_, f"a counterexample to {clause_id}", "1.0", clause, op, question.model, given, {})


def _raw_training(given: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if (key, value) != ("pattern", "gpt2")}


def as_yaml(question: Question, clause_id: str, id_: str) -> str:
    """Return a question as a complete golden case in YAML, or "" if its context matters."""
    case = as_case(question, clause_id, id_)
    if question.context or case.op not in CLASS_OF_OP:
        return ""
    whole: dict[str, Any] = {"id": id_, "title": case.title, "since": case.since, "op": case.op}
    if case.model is not None:
        if (model := write_model(case.model)) is None:
            return ""
        whole["model"] = model
    whole |= {"input": case.input, "expect": compute(case)}
    lines = [f"clause: {clause_id}", "cases:"]
    for number, (key, value) in enumerate(whole.items()):
        shown = value if key in ("id", "title", "op") else write_flow(value)
        lines.append(f"  {'-' if number == 0 else ' '} {key}: {shown}")
    return "\n".join(lines)


def write_model(model: Model) -> str | dict[str, Any] | None:
    """Return a model in the form of the YAML, or None if the order of its byte ids has no name there."""
    if model.name:
        return model.name
    byte_ids = [model.ids.get(bytes([byte]), -1) for byte in range(256)]
    orders: dict[Any, Sequence[int]] = {"raw": range(256), "reversed": range(255, -1, -1)}
    orders["gpt2"] = [GPT2_BYTE_ORDER.index(byte) for byte in range(256)]
    orders.setdefault(byte_ids[0], range(byte_ids[0], byte_ids[0] + 256))
    order = next((name for name, known in orders.items() if list(known) == byte_ids), None)
    if order is None:
        return None
    written: dict[str, Any] = {"merges": [[write_token(left), write_token(right)] for left, right in model.merges]}
    if order != "raw":
        written["byte_ids"] = order
    merge_ids = [model.ids[left + right] for left, right in model.merges]
    first_free = max(byte_ids) + 1
    if merge_ids != list(range(first_free, first_free + len(merge_ids))):
        written["merge_ids"] = merge_ids
    others = {*model.vocab} - {*byte_ids, *merge_ids}
    if others:
        written["extra"] = [[index, write_token(model.vocab[index])] for index in sorted(others)]
    if model.special_tokens is not None:
        written["special_tokens"] = list(model.special_tokens)
    if model.pattern != "gpt2":
        written["pattern"] = model.pattern
    return written
