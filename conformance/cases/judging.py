"""Asks an implementation, and compares its answer with the correct one: the same for golden cases and properties."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from bpe_conformance.fixtures.conventions import DEFAULTS

from ..answer import Acceptable, Answer, AnyError, Bytes, Ids, NewIds, Refusal, Table, Text
from ..implementation.implementation import Implementation
from ..implementation.proxy import CallFailed, TimedOut
from ..operations import Changes, Decode, DecodeBytes, Expected, Laziness, Operation, Question, Train
from ..operations.setting import Conventions, Setting, expression, oracle, pieces
from ..outcome import AFTER_ERROR, Expectation, Mismatch
from ..spec import Case

MUCH_TIME, MANY = 6, 256


def time_factor(question: Question[Any], implementation: Implementation) -> int:
    """Return how many times the usual limit the answer may take.

    It is more with a large table, all of whose merges simple encoders go through, for a batch of many texts, and for a
    program that gets a message for each of many ids or chunks.
    """
    messages = max(len(getattr(question.operation, part, ())) for part in ("ids", "chunks"))
    is_large = question.model is not None and question.model.is_large
    has_many = len(question.operation.texts()) >= MANY or (implementation.is_remote and messages >= MANY)
    return MUCH_TIME if is_large or has_many else 1


def judge(case: Case, implementation: Implementation, tries_conventions: bool = True) -> Mismatch | None:
    """Return how the answer differs from what `case` expects, or None. Trying other conventions may be slow."""
    declared, chosen = implementation.conventions, adapted(case, implementation) or case

    def asked_under(conventions: Conventions) -> Case:
        return _as_offered(under(chosen, conventions), implementation)

    asked = asked_under(declared)
    setting = Setting(asked.model, declared, case.clause.id)
    expected_under = (lambda conventions: asked_under(conventions).expected) if tries_conventions else None
    for operation in asked.operation.parts():
        question = Question(operation, asked.model)
        mismatch = compare(question, asked.expected, setting, implementation, expected_under)
        if mismatch is not None:
            return replace(mismatch, compared=case.operation.comparable(mismatch.answer, mismatch.divergence))
    return None


def compare(
    question: Question[Any],
    expected: Expected,
    setting: Setting,
    implementation: Implementation,
    expected_under: Callable[[Conventions], Expected] | None = None,
) -> Mismatch | None:
    """Ask, and return how the answer differs, or None. Nothing else decides whether an answer is correct.

    With what is expected under other conventions, the result has those under which the answer is correct.
    """
    operation: Operation = question.operation
    accepted = operation.correct(expected, setting)
    if accepted is None:
        return None
    correct: tuple[Acceptable, ...] = accepted
    conventions: tuple[Changes, ...] = ()
    with ExitStack() as stack:
        receiver: Any = None

        def ask() -> tuple[Answer, bool]:
            nonlocal receiver, correct
            try:
                if receiver is None:
                    receiver = stack.enter_context(operation.receiver(implementation, question.model))
                answer = operation.of(receiver)
                return answer, any(operation.accepts(value, answer, setting, receiver) for value in correct)
            except (CallFailed, TimedOut) as failed:
                if receiver is not None and _must_answer(operation, setting):
                    correct = tuple(value for value in correct if not isinstance(value, AnyError))
                is_refused = receiver is not None and refuses_long(question, failed.answer, implementation.conventions)
                is_right = any(operation.accepts(value, failed.answer, setting) for value in correct)
                return failed.answer, is_right or is_refused

        answer, is_correct = ask()
        is_repeated = is_correct and isinstance(answer, Refusal) and receiver is not None
        if is_repeated:
            answer, is_correct = ask()
        fails_again = is_repeated and not is_correct
        if is_correct and receiver is not None and (following := operation.after(answer, correct, setting)):
            if following[0].needs[0] not in implementation.capabilities:
                return None
            operation, correct = following[0], following[1:]
            answer, is_correct = ask()
        elif not is_correct and expected_under is not None:
            conventions = _fitting_conventions(operation, expected_under, setting, answer)
    if is_correct:
        return None
    first, *others = operation.narrowed(correct, answer)
    where = first.operation.divergence(first.correct, first.answer, setting)
    context = "again, after the same call raised an error" if fails_again else question.context
    asked = Question(first.operation, question.model, context)
    breaks = AFTER_ERROR if fails_again else operation.breaks.get(setting.clause, "")
    expected_here = Expectation(first.correct)
    found = Mismatch(asked, expected_here, first.answer, where, conventions=conventions, clause_id=breaks)
    return replace(found, others=tuple(others))


def _must_answer(operation: Operation, setting: Setting) -> bool:
    """Return whether an error is permitted in the constructor only: no text has a special token without an entry."""
    if setting.clause != "SPECIAL-ABSENT-2":
        return False
    entries = set(setting.table.vocab.values())
    absent = [token for token in setting.table.special_tokens or () if token.encode("utf-8") not in entries]
    return not any(token in text for token in absent for text in operation.texts())


def _fitting_conventions(
    operation: Operation, expected_under: Callable[[Conventions], Expected], setting: Setting, answer: Answer
) -> tuple[Changes, ...]:
    """Return the smallest sets of changed conventions under which the answer is correct."""
    fitting: list[Changes] = []
    for changes in operation.other_conventions(setting.conventions):
        other = replace(setting, conventions={**setting.conventions, **dict(changes)})
        correct = operation.correct(expected_under(other.conventions), other) or ()
        if any(operation.accepts(value, answer, other) for value in correct):
            fitting.append(changes)
    least = min(map(len, fitting), default=0)
    return tuple(changes for changes in fitting if len(changes) == least)


def under(case: Case, conventions: Conventions) -> Case:
    """Return the case. If it has no value for the declared pattern, the oracle computes it."""
    is_default = conventions["pattern"] == "gpt2" or case.pattern != "gpt2"
    if case.expected and (is_default or not case.expected.is_computed):
        return case
    setting = Setting(case.model, conventions, case.clause.id)
    return replace(case, expected=Expected({"": (case.operation.answer(setting),)}))


def is_correct_up_to_ties(mismatch: Mismatch, clause: str, conventions: Conventions) -> bool | None:
    """Return whether each merge has a pair of the highest count, and entries are correct; None if that takes long."""
    asked: Train = mismatch.asked.operation
    setting = Setting(None, {**conventions, "tie_break": "unspecified"}, clause)
    if not all(isinstance(value, Table) for value in mismatch.expected.alternatives):
        return False
    size = len(asked.text.encode("utf-8", "surrogatepass"))
    if size * min(size, asked.vocab_size) > MOST_COUNTED:  # a text has fewer merges than bytes
        return None
    return asked.accepts(asked.answer(setting), mismatch.answer, setting)


MOST_COUNTED = 1_000_000  # the largest training, in bytes × merges, whose pairs are counted again


# What an implementation does not support


OTHER_SPLIT = "GPT-2's split (another pattern is declared)"
LONGEST_PRE_TOKEN = 2048
"""In bytes. An encoder may reject a longer pre-token (LAW-LONG-2)."""
ANY_SPLIT = ("SPLIT-DEFAULT-1", "SPLIT-FENCE-1", "SPLIT-LOSSLESS-1", "SPLIT-NAME-1")
"""The clauses of the section SPLIT that hold for every pattern."""


def skip_reason(case: Case, implementation: Implementation) -> str | None:
    """Return the capability that the case needs and the implementation lacks, or None."""
    operation, offered = _as_offered(case, implementation).operation, implementation.capabilities
    has_pipeline = case.model is not None and case.model.pipeline is not None
    makers = ("from_tokenizer_json",) if has_pipeline else operation.needs  # such as `from_files`
    if (missing := implementation.missing(operation.needs, makers)) is not None:
        return missing
    if implementation.fixed_model is not None:
        name = case.model.name if case.model else ""
        return None if name == implementation.fixed_model else "other models than its own"
    if has_pipeline:
        return None if "from_tokenizer_json" in offered else "from_tokenizer_json"
    pattern = f"{operation.prefix}pattern:{case.pattern}"
    if case.pattern != "gpt2" and pattern not in offered:
        return pattern
    if adapted(case, implementation) is None:
        return "special tokens in train" if operation.prefix else "special tokens"
    if case.model is not None and len(case.model.ids) < len(case.model.vocab) and "two ids" not in offered:
        return "two ids"
    if case.model is not None and implementation.conventions["lookup"] == "bytes" and not case.model.ranks_by_bytes:
        return "tables that a list of ranks cannot represent (lookup: bytes)"
    own = implementation.conventions["pattern"]
    return OTHER_SPLIT if own != "gpt2" and case.pattern == "gpt2" and _is_of_gpt2(case, own) else None


def _as_offered(case: Case, implementation: Implementation) -> Case:
    """Return the case; one of `decode` becomes one of `decode_bytes` where the implementation has only that."""
    operation = case.operation
    offered = implementation.capabilities
    if not isinstance(operation, Decode) or "decode" in offered or "decode_bytes" not in offered:
        return case

    def as_bytes(value: Any) -> Any:
        if not isinstance(value, Text):
            return value
        data = operation.data(case.table)
        return Bytes(data if data.decode("utf-8", "replace") == value.text else value.text.encode("utf-8"))

    expected = Expected({"": tuple(map(as_bytes, case.expected.alternatives))})
    return replace(case, operation=DecodeBytes(operation.ids), expected=expected)


def _is_of_gpt2(case: Case, own: str) -> bool:
    """Return whether a case needs GPT-2's split or ids, or its text is one long pre-token under the pattern `own`."""
    if case.clause.section == "SPLIT" and case.clause.id not in ANY_SPLIT:
        return True
    if case.clause.id == "MERGE-GPT2-1" or isinstance(case.operation, Laziness):
        return True
    if case.model is None:
        return False
    if has_long_pre_token(case.question, {"pattern": own}):
        return True
    spells_tokens = any(isinstance(value, Ids | NewIds) for value in case.expected.alternatives)
    return not case.expected.is_computed and spells_tokens and _is_split_otherwise(case, own)


def refuses_long(question: Question[Any], answer: Answer, conventions: Conventions) -> bool:
    """Return whether an answer is an error, and a pre-token is long enough for it (LAW-LONG-2)."""
    return isinstance(answer, Refusal) and has_long_pre_token(question, conventions)


def has_long_pre_token(question: Question[Any], conventions: Conventions) -> bool:
    """Return whether a text to encode has a pre-token that is long enough to be refused (LAW-LONG-2)."""
    if question.model is None:
        return False
    split = expression(question.model.pattern, conventions)
    found = (piece for text in question.operation.texts() for piece in pieces(question.model, text, split))
    return any(len(piece) > LONGEST_PRE_TOKEN for piece, is_special in found if not is_special)


def _is_split_otherwise(case: Case, own: str) -> bool:
    named = [token for token in dict.fromkeys(case.table.special_tokens or ()) if token]
    model, text = replace(case.table, special_tokens=tuple(named)), case.operation.texts()[0]
    text = text.encode("utf-8", "replace").decode()
    by_both = [oracle(model, {**DEFAULTS, "pattern": pattern}).encode(text) for pattern in ("gpt2", own)]
    return by_both[0] != by_both[1]


def adapted(case: Case, implementation: Implementation) -> Case | None:
    """Return `case` without what `implementation` does not support, or None if the case is about special tokens.

    If no text spells a special token, the special tokens are removed, and in training `vocab_size` is reduced by their
    number.
    """
    operation, model = case.operation, case.model
    named = operation.special_tokens(model)
    is_supported = f"{operation.prefix}special" in implementation.capabilities
    if not named or is_supported or implementation.fixed_model is not None:
        return case
    about = case.clause.section == "SPECIAL" or case.clause.id.startswith(("TRAIN-SPECIAL", "TRAIN-IDS"))
    if about or any(token in text for token in named for text in operation.texts()):
        return None
    operation, model = operation.without_special_tokens(model)
    return replace(case, operation=operation, model=model)
