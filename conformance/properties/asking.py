"""Asks an implementation and the oracle the same question. A wrong answer is a value."""

from __future__ import annotations

import builtins
import gc
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

from bpe_conformance.fixtures import GPT2_BYTE_ORDER, Model, answers, write_token
from bpe_conformance.fixtures.values import write_flow

from ..answer import MALFORMED, TIMED_OUT, Acceptable, Accepted, Answer, Changed, Fault, Ids, Table, Unchanged
from ..cases import dependence
from ..cases.judging import compare, refuses_long, time_factor
from ..implementation.implementation import Implementation
from ..implementation.proxy import YIELDING, TokenizerProxy, answered
from ..operations import (
    Batch,
    Decode,
    DecodeBytes,
    Detokenize,
    Encode,
    EncodeWithOffsets,
    Expected,
    Operation,
    Question,
    Setting,
    Stream,
    Train,
)
from ..outcome import Dependence, Expectation, Mismatch

T = TypeVar("T")
HASH_SEEDS = ("1", "2")
ASCII_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
OTHER_PROCESSES = ({"PYTHONHASHSEED": HASH_SEEDS[0]}, {"PYTHONHASHSEED": HASH_SEEDS[1], **ASCII_LOCALE})
"""The environments of two further processes. Properties share them, because an adapter may start slowly."""
CALLERS_SPECIALS = "the caller's special_tokens changed"
ODD_SPECIALS = (("", "<e>", ""), ("<e>", "<f>", "<e>", "<e>"), tuple(f"<{'e' * (37 * at % 99)}>" for at in range(99)))
"""Lists of special tokens that a call may refuse, clean up or sort, but not in place."""


def contained(implementation: Implementation, ask: Callable[[], Answer], timeout_factor: int = 1) -> Answer:
    """Return the answer. If the implementation raises or takes too long, return that as a value."""
    with implementation.time_limit(timeout_factor):
        return answered(ask)


class Instance:
    """One tokenizer, which is made when it is first asked: from a model, or by a function that trains or loads it."""

    def __init__(
        self, implementation: Implementation, make: Callable[[], TokenizerProxy] | Model, timeout_factor: int = 1
    ) -> None:
        self._implementation = implementation
        self._make: Callable[[], TokenizerProxy] = (
            partial(implementation.build, make) if isinstance(make, Model) else make
        )
        self._timeout_factor = timeout_factor
        self._made: TokenizerProxy | None = None

    def ask(self, question: Question[Any]) -> Answer:
        """Return the answer to a question; its model only affects the time limit."""
        return self.call(question.operation.of, time_factor(question, self._implementation))

    def call(self, ask: Callable[[TokenizerProxy], Answer], timeout_factor: int = 1) -> Answer:
        """Return what `ask` gets from the tokenizer, or what the implementation did instead."""

        def made() -> Answer:
            self._made = self._made or self._make()
            return ask(self._made)

        return contained(self._implementation, made, max(self._timeout_factor, timeout_factor))


def ask(implementation: Implementation, question: Question[Any], timeout_factor: int = 1) -> Answer:
    """Return the answer of a new tokenizer, or of a training, within a time limit."""
    with implementation.time_limit(timeout_factor):
        return dependence.ask(question, implementation)


class Interrupted(Exception):
    pass


_ARGUMENTS = {
    "UnicodeDecodeError": ("utf-8", b"\xff", 0, 1, "invalid start byte"),
    "UnicodeEncodeError": ("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
    "UnicodeTranslateError": ("\ud800", 0, 1, "no"),
}
_OTHERS = (Warning, StopIteration, StopAsyncIteration, MemoryError)  # of warnings, iterators, and the suite's limits
SOURCE_ERRORS: Sequence[Exception] = [
    Interrupted(),
    *(
        kind(*_ARGUMENTS.get(name, ()))
        for name, kind in sorted(vars(builtins).items())
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, _OTHERS)
        if name == kind.__name__ and name != "ExceptionGroup"
    ),
]
"""An error of a type that no code can know, and one of each built-in type that reading can raise."""


def failing(items: Iterable[T], error: Exception) -> Iterator[T]:
    yield from items
    raise error


class _Unreadable(Iterable[Any]):
    def __init__(self, error: Exception) -> None:
        self._error = error

    def __iter__(self) -> Iterator[Any]:
        raise self._error


def failing_anywhere(items: Sequence[T]) -> Iterator[tuple[str, Iterable[T]]]:
    """Yield a description of each error, and items whose end, first or middle one, or whose iter(), raises it."""
    for error in SOURCE_ERRORS:
        name = "an error" if isinstance(error, Interrupted) else type(error).__name__
        for at in (len(items), 0, len(items) // 2):
            yield f"reading item {at + 1} raises {name}", failing(items[:at], error)
        yield f"iter() of what is read raises {name}", _Unreadable(error)


def in_turn(streams: Sequence[Iterator[T]]) -> tuple[tuple[T, ...], ...]:
    """Return what streams yield that are read in turn, one item at a time."""
    rows: list[list[T]] = [[] for _ in streams]
    for items in zip_longest(*streams):
        for row, item in zip(rows, items, strict=True):
            row += [] if item is None else [item]
    return tuple(map(tuple, rows))


def among_others(
    tokenizer: TokenizerProxy, method: str, items: Iterable[T], other: Iterable[T], *calls: Callable[[], object]
) -> Iterator[T]:
    """Return items for a stream. When the first was read, a stream that was open before ends, and a third is read."""
    read = list(other)
    earlier = tokenizer.open(method, iter(read))
    next(earlier, None)

    def source() -> Iterator[T]:
        for item in items:
            yield item
            list(earlier)
            list(tokenizer.open(method, iter(read)))
            for call in calls:
                call()

    return source()


def of_temporary(
    implementation: Implementation, question: Question[Any], answer: Callable[[Iterable[Any]], Answer]
) -> Answer:
    """Return the answer of a stream to whose tokenizer nothing else refers."""
    call = question.operation.call()
    items, *_ = call.arguments or ((),)

    def read() -> Answer:
        parts = implementation.build(question.table).returned(call.method, iter(items))
        gc.collect()  # a tokenizer may refer to itself
        method, rebuild = call.method, YIELDING[call.method]
        return answer(
            implementation.call(
                f"{method}(...)", lambda: [rebuild(method, one) for one in answers.iterate(method, parts)]
            )
        )

    return contained(implementation, read)


def of_each_method(implementation: Implementation, model: Model, text: str) -> Iterator[Question[Any]]:
    """Yield a question to each method, about a text between special tokens, and about its ids."""
    specials = "".join(model.special_tokens or ())
    asked = f"{specials}{text}{specials}kl"
    right = correct_answer(Question(Encode(asked), model), implementation.conventions)
    ids = right.ids if isinstance(right, Ids) else ()
    every: tuple[Operation, ...] = (
        *(Encode(asked), EncodeWithOffsets(asked), Batch((asked, "kl")), Stream(tuple(asked))),
        *(Decode(ids), DecodeBytes(ids), Detokenize(ids)),
    )
    yield from (Question(one, model) for one in every if {*one.needs} <= implementation.capabilities)


def independent(verdicts: Iterable[Mismatch | None]) -> Mismatch | None:
    """Return the first mismatch that depends on no other failure; if there is none, the first one, or None."""
    found = [*filter(None, verdicts)]
    return next((one for one in found if one.depends_on is None), found[0] if found else None)


def is_lost(answer: Answer) -> bool:
    """Return whether there is no answer: the call took too long, or ended the process."""
    return isinstance(answer, Fault) and answer.kind != MALFORMED


def is_late(answer: Answer) -> bool:
    return isinstance(answer, Fault) and answer.kind == TIMED_OUT


def train(implementation: Implementation, asked: Train) -> tuple[Table, TokenizerProxy | None]:
    trained = implementation.train(asked.text, asked.vocab_size, asked.special, asked.pattern)
    return trained.table, trained.tokenizer()


def trained(implementation: Implementation, given: Train) -> tuple[Model, Instance] | None:
    """Train, and return the table and the tokenizer; None without a tokenizer or a well-formed table."""
    proxies = list[TokenizerProxy | None]()

    def train_it() -> Answer:
        table, proxy = train(implementation, given)
        proxies.append(proxy)
        return table

    table = contained(implementation, train_it)
    if not isinstance(table, Table) or (proxy := proxies[0]) is None:
        return None
    model = Model(table.vocab, table.merges, given.special, given.pattern)
    return (model, Instance(implementation, lambda: proxy)) if model.well_formed else None


def load(implementation: Implementation, folder: Path, special: list[str] | None) -> TokenizerProxy:
    return implementation.from_files(folder / "vocab.json", folder / "merges.txt", special)


def correct_answer(question: Question[Any], conventions: Mapping[str, str]) -> Acceptable:
    """Return the oracle's answer under these conventions; a ValueError if the oracle refuses the model."""
    answer: Acceptable = question.operation.answer(Setting(question.model, conventions))
    return answer


def odd_lists_kept(
    implementation: Implementation,
    pose: Callable[[tuple[str, ...]], Question[Any]],
    call: Callable[[list[str]], object],
) -> Iterator[Mismatch | None]:
    """Pass lists with empty and repeated special tokens, and compare them afterwards, whatever the call did."""

    def called(passed: list[str]) -> Answer:
        call(passed)
        return Accepted()

    for listed in ODD_SPECIALS:
        passed = [*listed]
        contained(implementation, partial(called, passed))
        if passed != [*listed]:
            asked = replace(pose(listed), context="with a list that the caller keeps")
            yield Mismatch(asked, Expectation((Unchanged(),)), Changed((CALLERS_SPECIALS,)))


def is_correct(implementation: Implementation, question: Question[Any], answer: Answer, right: Acceptable) -> bool:
    """Return whether an answer obeys every MUST if `right` is expected."""
    accepted: bool = question.operation.accepts(right, answer, Setting(question.model, implementation.conventions))
    return accepted or refuses_long(question, answer, implementation.conventions)


def equals_oracle(implementation: Implementation, question: Question[Any], clause_id: str) -> Mismatch | None:
    """Compare the answer of a new tokenizer with the oracle's, and find out what a failure depends on."""
    right = question.operation.answer(Setting(question.model, implementation.conventions, clause_id))
    return judged(implementation, question, Expected({"": (right,)}), clause_id)


def judged(
    implementation: Implementation, question: Question[Any], expected: Expected, clause_id: str
) -> Mismatch | None:
    """Compare the answer of a new tokenizer with what is expected, and find out what a failure depends on."""
    setting = Setting(question.model, implementation.conventions, clause_id)
    with implementation.time_limit(time_factor(question, implementation)):
        mismatch = compare(question, expected, setting, implementation)
    return None if mismatch is None else dependence.explained(mismatch, clause_id, implementation)


def undisturbed(implementation: Implementation, question: Question[Any], disturbed: Answer) -> Mismatch | None:
    """Compare an answer with a new tokenizer's to the same question; if both are wrong, the mismatch says so.

    It is None if both are wrong and a correct answer is only a SHOULD.
    """
    right = correct_answer(question, implementation.conventions)
    if is_correct(implementation, question, disturbed, right):
        return None
    with implementation.time_limit(math.inf, is_diagnosis=True):
        alone = ask(implementation, question)
        is_right = is_correct(implementation, question, alone, right)
        depends_on = None if is_right else fault_of(implementation, question, right, alone)
    if depends_on is not None and question.operation.is_recommended:
        return None
    return Mismatch(question, Expectation((right,)), disturbed, depends_on=depends_on)


def fault_of(implementation: Implementation, question: Question[Any], right: Acceptable, alone: Answer) -> Dependence:
    """Return which part is at fault if a new tokenizer's answer, `alone`, is wrong.

    It is the constructor if that raises the error, and `encode` if `encode` gives a stream or a batch the same ids;
    otherwise the method that was called.
    """
    depends_on = None
    if question.operation.conformance_class != "encoder":
        mismatch = Mismatch(question, Expectation((right,)), alone)
        depends_on = dependence.explained(mismatch, "LAW-ENCODE-1", implementation).depends_on
    return depends_on or Dependence("undisturbed")


def as_yaml(question: Question[Any], clause_id: str, id_: str) -> str:
    """Return a question as a complete golden case in YAML, or "" if its context matters."""
    operation = question.operation.golden()
    if question.context or operation is None:
        return ""
    title = f"a counterexample to {clause_id}"
    whole: dict[str, Any] = {"id": id_, "title": title, "since": "1.0", "op": operation.name}
    if question.model is not None:
        if (model := write_model(question.model)) is None:
            return ""
        whole["model"] = model
    expected = operation.compute(question.model, clause_id)
    whole |= {"input": operation.write(), "expect": expected.write(operation, question.model)}
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
    known = [(byte, index) for byte, index in enumerate(byte_ids) if index >= 0]
    order = next((name for name, ids in orders.items() if all(ids[byte] == index for byte, index in known)), None)
    if order is None:
        return None
    written: dict[str, Any] = {"merges": [[write_token(left), write_token(right)] for left, right in model.merges]}
    if order != "raw":
        written["byte_ids"] = order
    merge_ids = [model.ids[left + right] for left, right in model.merges]
    first_free = max(orders[order]) + 1
    if merge_ids != list(range(first_free, first_free + len(merge_ids))):
        written["merge_ids"] = merge_ids
    others = {*model.vocab} - {*byte_ids, *merge_ids}
    if others:
        written["extra"] = [[index, write_token(model.vocab[index])] for index in sorted(others)]
    if len(known) < 256:
        written["remove"] = [index for byte, index in enumerate(orders[order]) if byte_ids[byte] < 0]
    if model.pipeline is not None:
        written["pipeline"] = model.pipeline.write()
    elif model.special_tokens is not None:
        written["special_tokens"] = list(model.special_tokens)
    if model.pattern != "gpt2":
        written["pattern"] = model.pattern
    return written
