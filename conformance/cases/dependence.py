"""Determines whether another part of the implementation causes an incorrect answer, by testing that part alone."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import accumulate
from typing import Any

from bpe_conformance.fixtures import Model
from bpe_conformance.fixtures.characters import has_surrogate
from bpe_conformance.reference import textbook

from ..answer import Answer, Fault, Ids, Offsets, Refusal, Rows, Table, Text, fingerprint
from ..implementation.implementation import Implementation
from ..implementation.proxy import CallFailed, TimedOut, answered
from ..operations import (
    Batch,
    Construct,
    Decode,
    Decoding,
    Detokenize,
    Encode,
    Encoding,
    Expected,
    Operation,
    Question,
    Save,
)
from ..operations.setting import Setting, oracle, pieces
from ..outcome import Dependence, Mismatch, Outcome
from .judging import compare

MOST_PIECES = 16
MOST_PARTS = 16  # the most parts of a stream that the search finds
LONGEST_IN_PARTS = 10_000
"""In characters. Longer streams are not searched for parts, because the search encodes the text dozens of times."""
AT_ENDS = 8  # the most ids that a fault changes only because they are at the end of a text


def ask(question: Question[Any], implementation: Implementation) -> Answer:
    """Return the answer of a new tokenizer or of a training, or how the call failed."""

    def made() -> Answer:
        with question.operation.receiver(implementation, question.model) as receiver:
            answer: Answer = question.operation.of(receiver)
            return answer

    return answered(made)


def explained(mismatch: Mismatch, clause: str, implementation: Implementation) -> Mismatch:
    """Return `mismatch`, with the part of the implementation that causes it, if that part alone is incorrect, too."""
    try:
        with implementation.time_limit(is_diagnosis=True):
            depends_on = _dependence(mismatch, clause, implementation)
    except (CallFailed, TimedOut, ValueError):  # the textbook rejects a table or a special token
        return mismatch
    return mismatch if depends_on is None else replace(mismatch, depends_on=depends_on)


def _dependence(mismatch: Mismatch, clause: str, implementation: Implementation) -> Dependence | None:
    operation, model = mismatch.asked.operation, mismatch.asked.model
    if model is None:
        return None
    is_built = operation.conformance_class != "encoder" and "from_files" not in operation.needs
    if is_built and _constructor_fails(mismatch, clause, implementation):
        return Dependence("construct")
    if model.pipeline is None:
        return _of_operation(mismatch, model, clause, implementation)
    if (wrong := _plainly_wrong(operation, model, implementation)) is not None:
        return Dependence("encode", wrong)
    found = _of_operation(mismatch, model, clause, implementation)
    if found is None and type(operation) is not Encode and _is_wrong_alone(operation, model, implementation):
        return Dependence("plain")
    return Dependence("pipeline", found.text) if found is not None and found.kind == "encode" else found


def _of_operation(mismatch: Mismatch, model: Model, clause: str, implementation: Implementation) -> Dependence | None:
    operation = mismatch.asked.operation
    if isinstance(operation, Save):
        return Dependence("construct") if _holds_what_it_saved(mismatch, model, implementation) else None
    if isinstance(operation, Batch):
        return _of_batch(operation, mismatch, model, implementation)
    if isinstance(operation, Detokenize) and "decode" in implementation.capabilities:
        alone = ask(Question(Decode(operation.ids), model), implementation)
        return Dependence("decode") if fingerprint(alone) == fingerprint(mismatch.answer) else None
    if not isinstance(operation, Encoding):
        return None
    text, is_chosen = operation.whole_text, operation.needs == ("allowed_special",)
    if is_chosen and Ids not in map(type, mismatch.expected.alternatives):
        return None  # `encode` of the same text has ids
    if not isinstance(operation, Encode):
        if isinstance(right := mismatch.expected.alternatives[0], Offsets):
            is_wrong = _encoded(text, model, implementation) != Ids(right.ids)
            return Dependence("encode", text) if is_wrong and "encode" in implementation.capabilities else None
        plain = operation.without_choice(model, implementation.conventions["lookup"])
        found = _on_encode(text, plain, implementation, mismatch.answer)
        is_in_parts = operation.conformance_class == "streaming"
        return found or (_on_parts(text, model, implementation, mismatch.answer) if is_in_parts else None)
    if has_surrogate(text) or not isinstance(mismatch.answer, Ids):
        return None
    return _on_pieces(text, clause.partition("-")[0], model, implementation, mismatch.answer)


def _plainly_wrong(operation: Operation, model: Model, implementation: Implementation) -> str | None:
    """Return what `encode` without a pipeline gets wrong: a pre-token, after all steps of the pipeline, or a text."""
    if "encode" not in implementation.capabilities or model.is_large or implementation.fixed_model is not None:
        return None
    plain = _without_pipeline(operation, model, implementation)
    if isinstance(ask(Question(Construct(), plain), implementation), Refusal):
        return None  # it has pipelines only
    right = oracle(plain, implementation.conventions)
    every = (piece for text in operation.texts() for piece, is_added in pieces(model, text) if not is_added)
    texts = [text for piece in dict.fromkeys(every) if "\ufffd" not in (text := piece.decode("utf-8", "replace"))]
    texts = [*texts[:MOST_PIECES], *operation.texts()[:MOST_PIECES]]  # a pre-token can be a part of a character
    return next((text for text in texts if not _correct_alone(text, plain, implementation, right)), None)


def _is_wrong_alone(operation: Operation, model: Model, implementation: Implementation) -> bool:
    """Return whether the same call is answered incorrectly without a pipeline, too."""
    if model.is_large or implementation.fixed_model is not None:  # it cannot leave out its pipeline
        return False
    plain = Question(operation, _without_pipeline(operation, model, implementation))
    setting, answer = Setting(plain.model, implementation.conventions), ask(plain, implementation)
    return not isinstance(answer, Refusal | Fault) and not operation.accepts(operation.answer(setting), answer, setting)


def _without_pipeline(operation: Operation, model: Model, implementation: Implementation) -> Model:
    is_short = sum(map(len, operation.texts())) <= LONGEST_IN_PARTS  # one long pre-token takes the oracle too long
    is_whole = is_short and "pattern:none" in implementation.capabilities  # others split what a pipeline leaves whole
    return replace(model, pipeline=None, special_tokens=None, pattern="none" if is_whole else model.pattern)


def _constructor_fails(mismatch: Mismatch, clause: str, implementation: Implementation) -> bool:
    """Find out whether the constructor raised the error, or gave incorrect ids to special tokens without entries."""
    asked, model = mismatch.asked, mismatch.asked.table
    try:
        tokenizer = implementation.build(model)
    except (CallFailed, TimedOut) as failed:
        return fingerprint(failed.answer) == fingerprint(mismatch.answer)
    entries = set(model.vocab.values())
    named = model.special_tokens or ()
    listed = tuple(token for token in named if token.encode("utf-8", "replace") in entries)
    if not isinstance(asked.operation, Decoding) or len(listed) == len(named):
        return False
    without = replace(asked, model=replace(model, special_tokens=listed))
    setting = Setting(without.model, implementation.conventions, clause)
    if compare(without, Expected({"": mismatch.expected.alternatives}), setting, implementation) is None:
        return True
    text = mismatch.expected.alternatives[0]
    if not isinstance(text, Text) or "encode" not in implementation.capabilities:
        return False
    ids = _asked(lambda: tokenizer.encode(text.text))
    return isinstance(ids, Ids) and ids.ids != asked.operation.ids and tokenizer.decode(list(ids.ids)) == text.text


def _holds_what_it_saved(mismatch: Mismatch, model: Model, implementation: Implementation) -> bool:
    """Find out whether the only fault of saved files is an entry that the constructor added, by decoding its id."""
    saved, expected = mismatch.answer, mismatch.expected.alternatives[0]
    if not isinstance(saved, Table) or not isinstance(expected, Table) or "decode" not in implementation.capabilities:
        return False
    more = {index: token for index, token in saved.vocab.items() if index not in expected.vocab}
    if saved.merges != expected.merges or not more or len(saved.vocab) - len(more) < len(expected.vocab):
        return False
    tokenizer = implementation.build(model)

    def decoded(index: int) -> Answer:
        return answered(lambda: Text(tokenizer.decode([index])))

    return all(decoded(index) == Text(token.decode()) for index, token in more.items())


def _of_batch(operation: Batch, mismatch: Mismatch, model: Model, implementation: Implementation) -> Dependence | None:
    """Find out whether `encode` alone gives the same error, or the same incorrect rows, as the batch."""
    texts = operation.batch
    if not isinstance(mismatch.answer, Rows):
        alone = (_on_encode(text, model, implementation, mismatch.answer) for text in texts)
        return next(filter(None, alone), None)
    expected = mismatch.expected.alternatives[0]
    assert isinstance(expected, Rows)
    rows = zip(texts, expected.rows, mismatch.answer.rows, strict=False)
    wrong = [(text, got) for text, right, got in rows if right != got]
    if len(mismatch.answer.rows) != len(texts):
        return None
    found = [_on_encode(text, model, implementation, Ids(got)) for text, got in wrong]
    return found[0] if found and all(found) else None  # an answer of chance can be correct when asked again


def _on_encode(text: str, model: Model, implementation: Implementation, got: Answer) -> Dependence | None:
    """Find out whether `encode` of the whole text gives the same incorrect answer as a stream, a batch or files."""
    if "encode" not in implementation.capabilities:
        return None
    alone = _encoded(text, model, implementation)
    return Dependence("encode", text) if fingerprint(alone) == fingerprint(got) else None


def _on_parts(text: str, model: Model, implementation: Implementation, got: Answer) -> Dependence | None:
    """Find out whether `encode` gives the incorrect ids of a stream, part by part, although the stream cuts correctly.

    The end of each part is found by bisection: `encode` of a longer text no longer gives the ids that come next. The
    last ids of a text are left out at first, because a fault can change them at any end.
    """
    if "encode" not in implementation.capabilities:
        return None
    if isinstance(got, Refusal):
        alone = _encoded("", model, implementation)
        same = isinstance(alone, Refusal) and (alone.kind, alone.traceback[-1:]) == (got.kind, got.traceback[-1:])
        return Dependence("encode", "") if same and got.traceback else None
    if not isinstance(got, Ids) or model.is_large or len(text) > LONGEST_IN_PARTS or model.pipeline is not None:
        return None
    right = oracle(model, implementation.conventions)
    cut = textbook.pieces(text, model.special_tokens or (), right.pattern)
    ends, parts = list(accumulate(len(piece) for piece, _ in cut)), list[str]()

    def fits(end: int, but: int) -> bool:
        tokenizer, more = implementation.build(model), [*parts, text[done:end]]
        ids = _asked(lambda: [index for part in more for index in tokenizer.encode(part)])
        first = ids.ids[: max(0, len(ids.ids) - but)] if isinstance(ids, Ids) else None
        return first == got.ids[: len(first or ())] and (but > 0 or end < len(text) or ids == got)

    done = 0
    while done < len(text) and len(parts) < MOST_PARTS:
        ahead = ends[bisect_right(ends, done) :]
        place = bisect_left(ahead, True, key=lambda end: not fits(end, AT_ENDS))
        near = ahead[max(0, place - 2 * AT_ENDS) : place]
        end = next((one for one in reversed(near) if fits(one, 0)), done)
        if end == done:
            return None
        parts.append(text[done:end])
        done = end
    is_right = [index for part in parts for index in right.encode(part)] == right.encode(text)
    return Dependence("encode", text) if is_right else None


def _on_pieces(text: str, section: str, model: Model, implementation: Implementation, got: Ids) -> Dependence | None:
    """Find out whether the parts of a text, each encoded alone, have incorrect ids, or all have the correct ids."""
    if section == "SPLIT" or model.pipeline is not None:
        return None
    right = oracle(model, implementation.conventions)
    segments = textbook.cut_special(text, model.special_tokens or ())
    if any(special for _, special in segments):
        plain = (segment for segment, special in segments if not special)
        wrong = next((one for one in plain if not _correct_alone(one, model, implementation, right)), None)
        if wrong is not None:
            return Dependence("segment", wrong)
        return None if section == "SPECIAL" else Dependence("segments", text)
    if model.is_large:
        return None
    by_bytes = right.conventions.get("lookup") == "bytes"
    cut = textbook.split(text, right.pattern) if by_bytes or _is_merged(got, model) else []
    if 1 < len(cut) <= MOST_PIECES and all(_correct_alone(piece, model, implementation, right) for piece in cut):
        return Dependence("pre-tokens", text)
    return None


def _is_merged(got: Ids, model: Model) -> bool:
    """Return whether all tokens are bytes or results of merges: an incorrect split alone gives no others."""
    results = {left + right for left, right in model.merges}
    tokens = [model.vocab.get(index, b"") for index in got.ids]
    return all(len(token) == 1 or token in results for token in tokens)


def without_blame_of_splitting(outcomes: Iterable[Outcome]) -> dict[str, Outcome]:
    """Return test → outcome, for the outcomes that no longer depend on splitting because the section SPLIT passes."""
    every = list(outcomes)
    tested = {outcome.state for outcome in every if outcome.section == "SPLIT" and outcome.state != "skipped"}
    if tested != {"passed"}:
        return {}
    return {
        outcome.test: replace(outcome, mismatch=replace(outcome.mismatch, depends_on=None))
        for outcome in every
        if outcome.mismatch and outcome.mismatch.depends_on and outcome.mismatch.depends_on.kind == "pre-tokens"
    }


def _correct_alone(text: str, model: Model, implementation: Implementation, right: textbook.Tokenizer) -> bool:
    return _encoded(text, model, implementation) == Ids(tuple(right.encode(text)))


def _encoded(text: str, model: Model, implementation: Implementation) -> Answer:
    return ask(Question(Encode(text), model), implementation)


def _asked(ask: Callable[[], list[int]]) -> Answer:
    return answered(lambda: Ids(tuple(ask())))
