"""Properties of `train`: any corpus; a trained tokenizer encodes according to its own table."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from bpe_conformance.fixtures import PATTERNS, Model
from bpe_conformance.reference import textbook

from ..cases import divergence, stored_training
from ..cases.expectations import oracle, training_key
from ..implementation.calls import CallFailed, TimedOut
from ..implementation.implementation import Implementation
from ..implementation.proxy import TokenizerProxy
from ..outcome import Answer, Changed, Dependence, Expectation, Ids, Mismatch, Question, Table, Unchanged
from . import strategies
from .asking import (
    CALLERS_SPECIALS,
    HASH_SEEDS,
    OTHER_PROCESSES,
    Instance,
    ask,
    contained,
    correct_answer,
    equals_oracle,
)
from .engine import Property, drawn, fixed
from .strategies import Questions


def _merges(implementation: Implementation, question: Question) -> Mismatch | None:
    """Training records the merges that counting all pairs anew at each step gives."""
    return equals_oracle(implementation, question, "LAW-TRAIN-1")


def _special(implementation: Implementation, question: Question) -> Mismatch | None:
    """Special tokens are boundaries of the training text; what is not listed is ordinary text."""
    return equals_oracle(implementation, question, "TRAIN-SPECIAL-1")


def _pattern(implementation: Implementation, question: Question) -> Mismatch | None:
    """Training splits by the pattern that is passed."""
    mismatch = equals_oracle(implementation, question, "TRAIN-SPLIT-1")
    given = {key: value for key, value in question.input.items() if key != "pattern"}
    if mismatch is None or equals_oracle(implementation, replace(question, input=given), "LAW-TRAIN-1") is None:
        return mismatch
    return replace(mismatch, clause_id="LAW-TRAIN-1")  # it is incorrect without that pattern, too


def _any(implementation: Implementation) -> Questions:
    names = strategies.patterns(implementation, "train-pattern")
    return strategies.trainings(implementation, "train-special" in implementation.capabilities, names)


def _default_pattern(implementation: Implementation) -> Questions:
    return strategies.trainings(implementation, "train-special" in implementation.capabilities)


def _by_pattern(implementation: Implementation) -> Questions:
    names = strategies.patterns(implementation, "train-pattern")
    return strategies.trainings(implementation, names=names[1:] or names)


def _again(implementation: Implementation, question: Question) -> Mismatch | None:
    """Training does not change the caller's list of special tokens, and repeating it gives the same result."""
    given = question.input
    special = list(given["special_tokens"])

    def train() -> Answer:
        trained = implementation.train_from(given["text"], given["vocab_size"], special)
        return Table(trained.vocab, tuple(trained.merges))

    first = contained(implementation, train)
    if special != given["special_tokens"]:
        asked = replace(question, context="with a list that the caller keeps")
        return Mismatch(asked, Expectation((Unchanged(),)), Changed((CALLERS_SPECIALS,)))
    second = ask(implementation, question)
    if second == first:
        return None
    return Mismatch(replace(question, context="a second time"), Expectation((first,), "the first training"), second)


def _trained_encodes(implementation: Implementation, question: Question) -> Mismatch | None:
    """A trained tokenizer encodes its training text, and each of its tokens, according to its own table."""
    given = question.input
    name = given.get("pattern", "gpt2")
    made: list[tuple[Model, TokenizerProxy]] = []

    def train() -> Answer:
        trained = implementation.train(**given)
        proxy = trained.tokenizer()
        if proxy is not None:
            special = tuple(given["special_tokens"])
            made.append((Model(trained.vocab, tuple(trained.merges), special, name), proxy))
        return Table(trained.vocab, tuple(trained.merges))

    contained(implementation, train)
    if not made or not made[0][0].well_formed:
        return None  # it trains only, or other properties show what is wrong
    model, proxy = made[0]
    tokenizer = Instance(implementation, lambda: proxy)
    right = oracle(model, implementation.conventions)
    tokens = [token.decode("utf-8", "replace") for token in model.vocab.values() if len(token) > 1]
    for text in (given["text"], *tokens[-4:]):
        asked = Question("encode", model, {"text": text}, "of the tokenizer that train returned")
        answer, expected = tokenizer.ask(asked), Ids(tuple(right.encode(text)))
        if answer != expected:
            built = _with_possible_pattern(asked, implementation)
            is_right = ask(implementation, built) == correct_answer(built, implementation.conventions)
            dependence = None if is_right else Dependence("undisturbed")
            return Mismatch(asked, Expectation((expected,)), answer, depends_on=dependence)
    return None


def _with_possible_pattern(question: Question, implementation: Implementation) -> Question:
    """Return the question as a constructor without that pattern can be asked: with the default pattern."""
    assert question.model is not None
    name = question.model.pattern
    supported = name == "gpt2" or f"pattern:{name}" in implementation.capabilities
    return question if supported else replace(question, model=replace(question.model, pattern="gpt2"))


HASH_SEED_TEXT = "the cat sat on the mat, that rat ate the oat; a bat at bay ate it all. abab cdcd efef zxzx yqyq"


def _hash_seed(implementation: Implementation) -> Mismatch | None:
    """Training gives the same merges and ids in processes with different hash seeds."""
    special = ["<|a|>", "<|a|><|a|>", "<|b|>", "at", "ate"] if "train-special" in implementation.capabilities else []
    given = {"text": HASH_SEED_TEXT, "vocab_size": 300, "special_tokens": special}
    answers = []
    try:
        for environment in OTHER_PROCESSES:
            answers.append(ask(implementation.elsewhere(environment), Question("train", None, given)))
    except (CallFailed, TimedOut):
        return None  # it starts only in the environment that it was started in
    if answers[1] == answers[0]:
        return None
    asked = Question("train", None, given, f"in a new process with PYTHONHASHSEED={HASH_SEEDS[1]}, LC_ALL=C")
    expected = Expectation((answers[0],), f"the same with PYTHONHASHSEED={HASH_SEEDS[0]}")
    return Mismatch(asked, expected, answers[1])


PROSE_MERGES = 300
FEW_LETTERS, FEW_MERGES = 4_000, 60
"""By another pattern than GPT-2's, whose merges are not stored."""


def _prose(implementation: Implementation) -> Mismatch | None:
    """Training on prose gives the correct merges, hundreds of them."""
    conventions = implementation.conventions
    if conventions["pattern"] != "gpt2":
        given = {"text": stored_training.text()[:FEW_LETTERS], "vocab_size": 256 + FEW_MERGES, "special_tokens": []}
        return equals_oracle(implementation, Question("train", None, given), "LAW-TRAIN-1")
    text = stored_training.text()
    question = Question("train", None, {"text": text, "vocab_size": 256 + PROSE_MERGES, "special_tokens": []})
    answer = ask(implementation, question, timeout_factor=6)
    if conventions["tie_break"] == "unspecified":
        return None
    merges = stored_training.merges(training_key(conventions))[:PROSE_MERGES]
    if isinstance(answer, Table) and list(answer.merges) == merges:
        return None
    vocab = textbook.build_vocab(merges, (), conventions["byte_order"], conventions["id_layout"])
    expected = Expectation((Table(vocab, tuple(merges)),))
    where = None
    if isinstance(answer, Table):
        where = divergence.training(textbook.corpus(text, (), PATTERNS["gpt2"]), merges, answer.merges)
    return Mismatch(question, expected, answer, where)


TRAIN = ("train",)
PROPERTIES: tuple[Property, ...] = (
    drawn("law-train", "LAW-TRAIN-1", "trainer", TRAIN, strategies.trainings, _merges, 50),
    drawn(
        "law-train-special",
        "TRAIN-SPECIAL-1",
        "trainer",
        ("train", "train-special"),
        partial(strategies.trainings, special=True),
        _special,
        70,
    ),
    drawn("law-train-pattern", "TRAIN-SPLIT-1", "trainer", TRAIN, _by_pattern, _pattern, 30),
    drawn("law-train-again", "LAW-REPLAY-1", "trainer", TRAIN, _default_pattern, _again, 8),
    drawn("law-train-encode", "LAW-SELF-1", "trainer", ("train", "encode"), _any, _trained_encodes, 20),
    fixed("law-train-long", "LAW-TRAIN-1", "trainer", TRAIN, _prose),
    fixed("law-hash-seed", "LAW-SEED-1", "trainer", ("train", "new process"), _hash_seed),
)
