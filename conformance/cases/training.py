"""Judges training: the merges, and the vocabulary that comes with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from bpe_conformance.fixtures import PATTERNS, Merge, read_text
from bpe_conformance.fixtures.spec import Case
from bpe_conformance.reference import textbook

from ..implementation.containment import CallFailed, Raised
from ..implementation.implementation import Implementation, Trained
from ..terminal import show
from . import divergence
from .difference import Difference, faulty
from .expectations import read_merges, training_key, value_for


def judge_training(case: Case, implementation: Implementation) -> Difference | None:
    """Return how what the implementation learns differs from what `case` expects, or None."""
    given = case.input["train"]
    text, size = read_text(given["text"]), given["vocab_size"]
    special = [read_text(token) for token in given["special_tokens"]]
    named = [token for token in special if token]
    pattern = given.get("pattern", "gpt2")
    line = f"{show.text_line(text)}, vocab_size {size}, special tokens {special!a}"
    line += f", pattern {pattern}" if pattern != "gpt2" else ""
    conventions = implementation.conventions
    key = training_key(conventions["tie_break"], conventions["byte_order"])
    alternatives = list(case.expect.get("any_of", (case.expect,)))
    wanted_error = any("error" in one for one in alternatives)
    values = [value_for(one, key) for one in alternatives if "error" not in one]
    accepted = [read_merges(value["merges"]) for value in values if value]
    expected = accepted[0] if accepted else []
    shown = "an error" if wanted_error else f"merges {show.merges(expected)}"
    try:
        trained = implementation.train(text, size, special, pattern)
    except CallFailed as fault:
        if wanted_error and isinstance(fault, Raised) and fault.is_error:
            return None
        return faulty(line, shown, fault)
    if not values:
        return Difference(line, shown, f"a vocabulary of {len(trained.vocab)}")
    words = textbook.corpus(text, special, PATTERNS[pattern])
    if key == "unspecified" or not accepted:
        distinct = len(dict.fromkeys(named))
        found = _judge_any_maximum(words, size - 256 - distinct, trained.merges, line)
        expected = trained.merges
    elif trained.merges in accepted:
        found, expected = None, trained.merges
    else:
        around = show.first_difference(expected, trained.merges)
        found = Difference(
            line,
            f"merges {show.merges(expected, around)}",
            f"merges {show.merges(trained.merges, around)}",
            divergence.training(words, expected, trained.merges),
        )
    return found or _judge_vocab(case, line, expected, named, trained, conventions)


def _judge_any_maximum(
    words: list[textbook.Word], wanted: int, merges: Sequence[Merge], line: str
) -> Difference | None:
    """Judge training step by step: each merge is a pair of the highest count (tie_break: unspecified)."""
    for step in range(wanted):
        counts = textbook.count_pairs(words)
        if not counts:
            wanted = step
            break
        most = max(counts.values())
        best = [pair for pair, count in counts.items() if count == most]
        chosen = merges[step] if step < len(merges) else None
        if chosen not in best:
            got = f"{show.pair(chosen)} with count {counts[chosen]}" if chosen else "the end of training"
            where = f"at step {step + 1}"
            return Difference(line, f"a pair of count {most}: {show.merges(best)}", got, where)
        words = [textbook.replace(word, chosen) for word in words]
    if len(merges) > wanted:
        return Difference(line, f"{wanted} merges", f"{len(merges)} merges", f"at step {wanted + 1}")
    return None


def _judge_vocab(
    case: Case,
    line: str,
    merges: Sequence[Merge],
    special: Sequence[str],
    trained: Trained,
    conventions: Mapping[str, str],
) -> Difference | None:
    expected = textbook.number(merges, special, conventions["byte_order"], conventions["id_layout"])
    if case.clause.id == "TRAIN-IDS-2":
        if trained.vocab == expected:
            return None
        index = min(i for i in {*expected, *trained.vocab} if expected.get(i) != trained.vocab.get(i))
        wanted = show.token(expected[index]) if index in expected else "no entry"
        got = show.token(trained.vocab[index]) if index in trained.vocab else "no entry"
        return Difference(line, f"id {index} is {wanted}", f"id {index} is {got}", f"at id {index}")
    wanted_tokens, got_tokens = Counter(expected.values()), Counter(trained.vocab.values())
    if case.clause.id != "TRAIN-IDS-1":
        wanted_tokens, got_tokens = Counter(set(wanted_tokens)), Counter(set(got_tokens))
    if wanted_tokens == got_tokens:
        return None
    missing, extra = wanted_tokens - got_tokens, got_tokens - wanted_tokens
    told = [f"{show.token(token)} is missing" for token in sorted(missing)[:3]]
    told += [f"{show.token(token)} is too many" for token in sorted(extra)[:3]]
    return Difference(
        line, f"a vocabulary of {sum(wanted_tokens.values())} tokens", ", ".join(told), "in the vocabulary"
    )
