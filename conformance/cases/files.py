"""Tests `save` and `from_files`: vocab.json and merges.txt in GPT-2's format."""

from __future__ import annotations

from bpe_conformance.fixtures import Model, gpt2_files
from bpe_conformance.fixtures.spec import Case

from ..implementation.implementation import Implementation
from ..implementation.output import scratch_folder
from ..implementation.proxy import CallFailed, TimedOut, TokenizerProxy
from ..outcome import (
    MALFORMED,
    EntryDivergence,
    Expectation,
    Fault,
    Mismatch,
    Table,
    TrainingDivergence,
    first_difference,
)
from .encoding import judge
from .expectations import question


def judge_loading(case: Case, implementation: Implementation) -> Mismatch | None:
    """Return how the encoding of a tokenizer that was loaded from files differs."""
    model = case.table
    options = {key: value for key, value in case.input.items() if key != "text"}
    with scratch_folder() as folder:
        vocab, merges = gpt2_files.write(model, folder, **options)

        def build() -> TokenizerProxy:
            return implementation.from_files(vocab, merges, model.special_tokens)

        return judge(case, implementation, build=build)


def judge_saving(case: Case, implementation: Implementation) -> Mismatch | None:
    """Return how the table in the saved files differs from the table of the tokenizer."""
    model, asked = case.table, question(case)
    expected = Expectation((Table(dict(model.vocab), model.merges),))
    with scratch_folder() as folder:
        try:
            implementation.build(model).save(folder)
            vocab, merges = gpt2_files.read(folder)
        except (CallFailed, TimedOut) as failed:
            return Mismatch(asked, expected, failed.answer)
        except ValueError as error:
            return Mismatch(asked, expected, Fault(MALFORMED, str(error)))
    answer = Table(vocab, tuple(merges))
    if answer.merges != model.merges:
        step = first_difference(answer.merges, model.merges)
        right = model.merges[step] if step < len(model.merges) else None
        wrong = merges[step] if step < len(merges) else None
        return Mismatch(asked, expected, answer, TrainingDivergence(step, right, 0, wrong, 0))
    entry = _first_wrong_entry(model, vocab)
    return None if entry is None else Mismatch(asked, expected, answer, entry)


def _first_wrong_entry(model: Model, vocab: dict[int, bytes]) -> EntryDivergence | None:
    special = {token.encode("utf-8") for token in model.special_tokens or ()}
    for index, token in model.vocab.items():
        if vocab.get(index) != token:
            return EntryDivergence(index, token, vocab.get(index))
    for index, token in vocab.items():
        if index not in model.vocab and token not in special:
            return EntryDivergence(index, None, token)
    return None
