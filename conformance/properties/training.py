"""Properties of `train`: any corpus; a trained tokenizer encodes according to its own table."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from ..answer import Answer, Changed, Refusal, Table, Unchanged
from ..implementation.implementation import Implementation
from ..implementation.proxy import CallFailed, TimedOut
from ..operations import Encode, Question, Setting, Train, tie_clause, training_key
from ..operations.train import stored_merges, stored_text
from ..outcome import Dependence, Expectation, Mismatch
from . import asking, strategies
from .asking import (
    HASH_SEEDS,
    OTHER_PROCESSES,
    Instance,
    ask,
    contained,
    correct_answer,
    equals_oracle,
    is_correct,
)
from .engine import Drawn, Fixed, Property, Verdicts
from .lifecycle import COLLIDING
from .strategies import Questions

TRAIN = ("train",)
_with_special = partial(strategies.trainings, special=True)


def _by_pattern(implementation: Implementation) -> Questions:
    names = strategies.patterns(implementation, "train-pattern")
    return strategies.trainings(implementation, names=names[1:] or names)


@Drawn("law-train-pattern", "TRAIN-SPLIT-1", TRAIN, _by_pattern, 30)
def pattern(implementation: Implementation, question: Question[Train]) -> Verdicts:
    """Training splits by the pattern that is passed."""
    mismatch = equals_oracle(implementation, question, "TRAIN-SPLIT-1")
    default = Question(replace(question.operation, pattern="gpt2"))
    if mismatch and equals_oracle(implementation, default, "LAW-TRAIN-1"):
        mismatch = replace(mismatch, clause_id="LAW-TRAIN-1")  # it is incorrect without that pattern, too
    yield mismatch


REFUSED_SIZE = 100  # a vocab_size that a trainer should reject


@Drawn("law-train-again", "LAW-REPLAY-1", TRAIN, _with_special, 8)
def again(implementation: Implementation, question: Question[Train]) -> Verdicts:
    """Training does not change the caller's list of special tokens, and repeating it gives the same result."""
    given = question.operation
    for listed in ((*given.special, *given.special[:1]), given.special):
        passed = list(listed)

        def train_it(passed: list[str] = passed) -> Answer:
            return implementation.train_from(given.text, given.vocab_size, passed).table

        first = contained(implementation, train_it)
        if passed != [*listed]:
            asked = Question(replace(given, special=listed), None, "with a list that the caller keeps")
            changed = Changed((asking.CALLERS_SPECIALS,))
            yield Mismatch(asked, Expectation((Unchanged(),)), changed, clause_id="ERROR-STATE-1")
    expected = Expectation((first,), "the first training")
    other = ("<|other|>",) if "train-special" in implementation.capabilities else ()
    for context, refused in (
        ("a second time", None),
        (f"after a training with vocab_size={REFUSED_SIZE}", Train(given.text, REFUSED_SIZE, other)),
        ("after a training on a lone surrogate", replace(given, text=f"ab ab {given.text} b\ud800")),
    ):
        if refused is not None:
            ask(implementation, Question(refused))
        answer = ask(implementation, question)
        if answer != first:
            yield Mismatch(replace(question, context=context), expected, answer, clause_id="TRAIN-STABLE-1")


@Fixed("law-train-list", "ERROR-STATE-1", (*TRAIN, "train-special", "shared memory"))
def list_passed_to_train(implementation: Implementation) -> Verdicts:
    """`train` does not change its list of special tokens, which can be long, or have empty or repeated ones."""
    given = Train("ab ab", 360)
    yield from asking.odd_lists_kept(
        implementation,
        lambda listed: Question(replace(given, special=listed)),
        partial(implementation.train_from, given.text, given.vocab_size),
    )


def _by_any_pattern(implementation: Implementation) -> Questions:
    return strategies.trainings(implementation, True, strategies.patterns(implementation, "train-pattern"))


@Drawn("law-train-encode", "LAW-SELF-1", ("train", "encode"), _by_any_pattern, 20)
def trained_encodes(implementation: Implementation, question: Question[Train]) -> Verdicts:
    """A trained tokenizer encodes its training text, and each of its tokens, according to its own table."""
    given = question.operation
    if (found := asking.trained(implementation, given)) is None:
        return
    model, tokenizer = found
    tokens = [token.decode("utf-8", "replace") for token in model.vocab.values() if len(token) > 1]
    learned = {left + right for left, right in model.merges}
    either = [one for one in model.special_tokens or () if one.encode() in learned or len(one.encode()) == 1]
    for text in (given.text, *tokens[-4:]):
        if not any(one in text for one in either):  # it is open whether they are found (SPECIAL-OPEN-1)
            yield _of_trained(implementation, tokenizer, Question(Encode(text), model))


def _of_trained(implementation: Implementation, tokenizer: Instance, question: Question[Any]) -> Mismatch | None:
    """Compare the answer of a trained tokenizer with the oracle's, and find out whether a built one is correct."""
    asked = replace(question, context="of the tokenizer that train returned")
    answer, right = tokenizer.ask(asked), correct_answer(asked, implementation.conventions)
    if is_correct(implementation, asked, answer, right):
        return None
    built = _with_possible_pattern(question, implementation)
    with_pattern = correct_answer(built, implementation.conventions)
    is_right = is_correct(implementation, built, ask(implementation, built), with_pattern)
    dependence = None if is_right else Dependence("undisturbed")
    return Mismatch(asked, Expectation((right,)), answer, depends_on=dependence)


def _with_possible_pattern(question: Question[Any], implementation: Implementation) -> Question[Any]:
    """Return the question as a constructor without that pattern can be asked: with the default pattern."""
    supported = question.table.pattern in strategies.patterns(implementation)
    return question if supported else replace(question, model=replace(question.table, pattern="gpt2"))


METHODS_TEXT = "ab'll it's 12345678 DON'T x\u00e9\u65e5\u672c\n\n  abAbC (a.b)\r\n\t 1,234 " * 3
"""Trained on it by one pattern, a tokenizer gives other ids by any other pattern."""


@Fixed("law-trained-methods", "LAW-WAYS-1", TRAIN)
def methods(implementation: Implementation) -> Verdicts:
    """Each method of a trained tokenizer follows the special tokens and the pattern that it was trained with."""
    special = ("<|s|>",) if "train-special" in implementation.capabilities else ()
    named = strategies.patterns(implementation, "train-pattern")[1:]
    for given in [Train(METHODS_TEXT, 300, special), *(Train(METHODS_TEXT, 300, (), name) for name in named)]:
        if (found := asking.trained(implementation, given)) is not None:
            model, tokenizer = found
            every = asking.of_each_method(implementation, model, METHODS_TEXT)
            yield asking.independent(_of_trained(implementation, tokenizer, question) for question in every)


RUNS = (11, 17, 33, 65, 101, 201, 257, 513, 1_029)  # odd, so that merges from the right leave another letter alone


@Fixed("law-train-runs", "TRAIN-REPLACE-1", TRAIN)
def runs(implementation: Implementation) -> Verdicts:
    """In a run of one letter, pairs are replaced from its left end, wherever in a word of any length it begins."""
    for length, before in product(RUNS, ("", "b")):
        merges = length.bit_length() - 1 + length.bit_count() - 1 + len(before)  # until one token is left
        asked = Question(Train(f"{before}{length * 'a'}", 256 + merges))
        yield equals_oracle(implementation, asked, "TRAIN-REPLACE-1")


EQUAL, MOST_OF_EQUAL = (8, 16, 32, 64, 128, 256, 512), 340  # bytes; a vocab_size that no training reaches


@Fixed("law-train-hashes", "TRAIN-WEIGHT-1", TRAIN)
def hashes(implementation: Implementation) -> Verdicts:
    """Two words of a text that have the same 32-bit hash are counted apart."""
    for rare, often in COLLIDING:
        asked = Question(Train("\n".join((rare, *[often] * 3, rare)), 256 + len(often)))
        yield equals_oracle(implementation, asked, "TRAIN-WEIGHT-1")


@Fixed("law-train-equal-starts", "TRAIN-TIE-1", TRAIN)
def equal_starts(implementation: Implementation) -> Verdicts:
    """Tokens of tied pairs that begin with the same bytes, up to hundreds of them, are compared to their end.

    The greater token is the shorter one.
    """
    if implementation.conventions["tie_break"] == "unspecified":
        return
    clause = tie_clause(implementation.conventions)
    for size, (one, other), is_left in product(EQUAL, (("xx", "y"), ("y", "xx")), (True, False)):
        word = f"{size // 8 * 'abcdefgh'}i"
        pair = "{}{}q" if is_left else "Q{}{}"
        lines = [line for end in (one, other) for line in [f"{word}{end}"] * 9 + [pair.format(word, end)] * 3]
        asked = Train("\n".join(lines), MOST_OF_EQUAL)
        every = correct_answer(Question(asked), implementation.conventions)
        merges = every.merges if isinstance(every, Table) else ()  # until no pair is left
        yield equals_oracle(implementation, Question(replace(asked, vocab_size=256 + len(merges))), clause)


HASH_SEED_TEXT = "the cat sat on the mat, that rat ate the oat; a bat at bay ate it all. abab cdcd efef zxzx yqyq"


@Fixed("law-hash-seed", "LAW-SEED-1", ("train", "new process"))
def hash_seed(implementation: Implementation) -> Verdicts:
    """Training gives the same merges and ids under different hash seeds, even if a special token is listed twice."""
    special = ("<|a|>", "<|a|><|a|>", "<|b|>", "at", "ate") if "train-special" in implementation.capabilities else ()
    context = f"in a new process with PYTHONHASHSEED={HASH_SEEDS[1]}, LC_ALL=C"
    for listed in (special, (*special, *special[:1])) if special else ((),):
        asked = Question(Train(HASH_SEED_TEXT, 300, listed), None, context)
        try:
            one, other = (ask(implementation.elsewhere(environment), asked) for environment in OTHER_PROCESSES)
        except (CallFailed, TimedOut):
            return  # it starts only in the environment that it was started in
        if other != one and not (isinstance(one, Refusal) and isinstance(other, Refusal)):
            yield Mismatch(asked, Expectation((one,), f"the same with PYTHONHASHSEED={HASH_SEEDS[0]}"), other)


PROSE_MERGES = 300
FEW_LETTERS, FEW_MERGES = 4_000, 60  # by another pattern than GPT-2's, whose merges are not stored


@Fixed("law-train-long", "LAW-TRAIN-1", TRAIN)
def prose(implementation: Implementation) -> Verdicts:
    """Training on prose gives the correct merges, hundreds of them."""
    conventions = implementation.conventions
    if conventions["pattern"] != "gpt2":
        few = Train(stored_text()[:FEW_LETTERS], 256 + FEW_MERGES)
        yield equals_oracle(implementation, Question(few), "LAW-TRAIN-1")
        return
    training = Train(stored_text(), 256 + PROSE_MERGES)
    question = Question(training)
    answer = ask(implementation, question, timeout_factor=6)
    if conventions["tie_break"] == "unspecified":
        return
    merges = stored_merges(training_key(conventions))[:PROSE_MERGES]
    if not isinstance(answer, Table) or list(answer.merges) != merges:
        right = Table(training.vocab(merges, conventions), tuple(merges))
        where = training.divergence((right,), answer, Setting(None, conventions))
        yield Mismatch(question, Expectation((right,)), answer, where)


PROPERTIES: tuple[Property, ...] = (
    Drawn("law-train", "LAW-TRAIN-1", TRAIN, strategies.trainings, 50).agree(
        "Training learns the merges that result from counting all pairs again before each merge."
    ),
    Drawn("law-train-special", "TRAIN-SPECIAL-1", (*TRAIN, "train-special"), _with_special, 70).agree(
        "Special tokens are boundaries in the training text; all other text is ordinary."
    ),
    *(pattern, runs, hashes, equal_starts, again, list_passed_to_train, trained_encodes, methods, prose, hash_seed),
)
