"""Properties of `train`: any corpus; a trained tokenizer encodes according to its own table."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from bpe_conformance.fixtures import Model

from ..answer import Answer, Changed, Ids, Table, Unchanged
from ..implementation.implementation import Implementation
from ..implementation.proxy import CallFailed, TimedOut, TokenizerProxy
from ..operations import Encode, Question, Setting, Train, oracle, training_key
from ..operations.train import stored_merges, stored_text
from ..outcome import Dependence, Expectation, Mismatch
from . import asking, strategies
from .asking import HASH_SEEDS, OTHER_PROCESSES, Instance, ask, contained, correct_answer, equals_oracle, train
from .engine import Drawn, Fixed, Property, Verdicts
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
    refused = Train(given.text, REFUSED_SIZE, other)
    for context in ("a second time", f"after a training with vocab_size={REFUSED_SIZE}"):
        if context != "a second time":
            ask(implementation, Question(refused))
        answer = ask(implementation, question)
        if answer != first:
            yield Mismatch(replace(question, context=context), expected, answer, clause_id="TRAIN-STABLE-1")


def _by_any_pattern(implementation: Implementation) -> Questions:
    return strategies.trainings(implementation, True, strategies.patterns(implementation, "train-pattern"))


@Drawn("law-train-encode", "LAW-SELF-1", ("train", "encode"), _by_any_pattern, 20)
def trained_encodes(implementation: Implementation, question: Question[Train]) -> Verdicts:
    """A trained tokenizer encodes its training text, and each of its tokens, according to its own table."""
    given, proxies = question.operation, list[TokenizerProxy | None]()

    def train_it() -> Answer:
        table, proxy = train(implementation, given)
        proxies.append(proxy)
        return table

    table = contained(implementation, train_it)
    if not isinstance(table, Table) or (proxy := proxies[0]) is None:
        return  # it trains only
    model = Model(table.vocab, table.merges, given.special, given.pattern)
    if not model.well_formed:
        return  # other properties show what is wrong
    tokenizer = Instance(implementation, lambda: proxy)
    right = oracle(model, implementation.conventions)
    tokens = [token.decode("utf-8", "replace") for token in model.vocab.values() if len(token) > 1]
    for text in (given.text, *tokens[-4:]):
        asked = Question(Encode(text), model, "of the tokenizer that train returned")
        answer, expected = tokenizer.ask(asked), Ids(tuple(right.encode(text)))
        if answer != expected:
            built = _with_possible_pattern(asked, implementation)
            is_right = ask(implementation, built) == correct_answer(built, implementation.conventions)
            dependence = None if is_right else Dependence("undisturbed")
            yield Mismatch(asked, Expectation((expected,)), answer, depends_on=dependence)


def _with_possible_pattern(question: Question[Encode], implementation: Implementation) -> Question[Encode]:
    """Return the question as a constructor without that pattern can be asked: with the default pattern."""
    supported = question.table.pattern in strategies.patterns(implementation)
    return question if supported else replace(question, model=replace(question.table, pattern="gpt2"))


HASH_SEED_TEXT = "the cat sat on the mat, that rat ate the oat; a bat at bay ate it all. abab cdcd efef zxzx yqyq"


@Fixed("law-hash-seed", "LAW-SEED-1", ("train", "new process"))
def hash_seed(implementation: Implementation) -> Verdicts:
    """Training gives the same merges and ids in processes with different hash seeds."""
    special = ("<|a|>", "<|a|><|a|>", "<|b|>", "at", "ate") if "train-special" in implementation.capabilities else ()
    context = f"in a new process with PYTHONHASHSEED={HASH_SEEDS[1]}, LC_ALL=C"
    asked = Question(Train(HASH_SEED_TEXT, 300, special), None, context)
    try:
        one, other = (ask(implementation.elsewhere(environment), asked) for environment in OTHER_PROCESSES)
    except (CallFailed, TimedOut):
        return  # it starts only in the environment that it was started in
    if other != one:
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
    *(pattern, again, trained_encodes, prose, hash_seed),
)
