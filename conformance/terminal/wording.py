"""What was asked, expected and answered, and where the two part, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bpe_conformance.fixtures import Model

from ..outcome import (
    TIMED_OUT,
    Acceptable,
    Accepted,
    AnyError,
    AtMost,
    ByteDivergence,
    Bytes,
    BytesLost,
    Changed,
    CrossesBoundary,
    Dependence,
    EncodingCause,
    EncodingDivergence,
    EntryDivergence,
    Fault,
    HighestCount,
    Ids,
    Lossless,
    Measure,
    Mismatch,
    NewIds,
    NotAResult,
    PreTokenCut,
    Question,
    Refusal,
    RowDivergence,
    Rows,
    SpecialToken,
    Table,
    Text,
    TextDivergence,
    TrainingDivergence,
    Unchanged,
    UnknownId,
    VocabDivergence,
    WholeTokenCut,
    WrongId,
    WrongMerge,
    first_difference,
)
from . import show

METHODS = {
    "encode": "encode",
    "encode_allowed": "encode",
    "load": "encode",
    "construct": "the constructor",
    "decode": "decode",
    "decode_bytes": "decode_bytes",
    "stream": "encode_iterable",
    "batch": "encode_batch",
    "save": "save",
    "train": "train",
}
"""Operation → the method of the adapter protocol."""
MOST_CHUNKS = 8


def call(asked: Question) -> str:
    """Return the call that was made, as Python would write it."""
    given, method = asked.input, METHODS[asked.operation]
    match asked.operation:
        case "train":
            special = given.get("special_tokens") or []
            more = f", special_tokens={special!a}" if special else ""
            pattern = f", pattern={given['pattern']!a}" if given.get("pattern", "gpt2") != "gpt2" else ""
            return f"train({show.text_line(given['text'])}, {given['vocab_size']}{more}{pattern})"
        case "construct" | "save":
            return f"{method}(...)" if asked.operation == "save" else method
        case "decode" | "decode_bytes":
            return f"{method}({_sequence(given['ids'], given.get('sequence') == 'tuple')})"
        case "stream":
            return f"{method}({_chunks(given['chunks'])})"
        case "batch":
            return f"{method}({_texts(given['texts'])})"
        case "encode_allowed":
            chosen = show.choice(given["allowed_special"], given["disallowed_special"])
            return f"encode({show.text_line(given['text'])}, {chosen})"
    loaded = "from_files(...)." if asked.operation == "load" else ""
    return f"{loaded}{method}({show.text_line(given['text'])})"


def _sequence(ids: Sequence[int], as_tuple: bool) -> str:
    shown = ", ".join(map(str, ids[:24])) + (f", ... {len(ids) - 24} more" if len(ids) > 24 else "")
    return f"({shown})" if as_tuple else f"[{shown}]"


def _chunks(chunks: Sequence[str]) -> str:
    if len(chunks) > MOST_CHUNKS:
        return f"{len(chunks)} chunks, the first {show.text_line(chunks[0])}"
    return f"[{', '.join(map(show.text_line, chunks))}]"


def _texts(texts: Sequence[str]) -> str:
    if len(texts) > MOST_CHUNKS:
        return f"{len(texts)} texts, the first {show.text_line(texts[0])}"
    return f"[{', '.join(map(show.text_line, texts))}]"


def table(model: Model | None) -> str:
    """Return the table that a tokenizer was built from, in one line; "" where there is none."""
    if model is None:
        return ""
    if model.is_large:
        return f"those of {model.name}"
    special = f", special tokens {list(model.special_tokens)!a}" if model.special_tokens else ""
    missing = sorted({bytes([byte]) for byte in range(256)} - set(model.vocab.values()))
    special += f", a vocabulary without {', '.join(map(show.token, missing))}" if missing else ""
    pattern = f", pattern {model.pattern}" if model.pattern != "gpt2" else ""
    return f"{show.ranked(model.merges)}{special}{pattern}"


def fact(mismatch: Mismatch) -> str:
    """Return what the implementation did, in one sentence."""
    asked = call(mismatch.asked)
    context = f" ({mismatch.asked.context})" if mismatch.asked.context else ""
    return f"{asked}{context} {_did(mismatch)}."


def _did(mismatch: Mismatch) -> str:
    answer, where = mismatch.answer, mismatch.divergence
    alternatives = mismatch.expected.alternatives
    match answer:
        case Fault(kind, message):
            return f"gave {message}" if kind == TIMED_OUT else f"gave no usable answer: {message}".rstrip(".")
        case Refusal(_, message):
            return f"raised {message}".rstrip(".")
        case Changed(what):
            return f"answered correctly, but {'; '.join(what)}"
        case Accepted():
            return "accepted the table and must refuse it"
        case Measure(amount):
            return f"held back {amount:,} characters"
    match where:
        case EncodingDivergence(cause=cause) if cause is not None:
            return _cause_fact(cause)
        case EncodingDivergence(token=token) if isinstance(answer, Ids):
            right = next((one for one in alternatives if isinstance(one, Ids)), None)
            if right is not None and token == len(answer.ids):
                return f"stopped after {token} of {len(right.ids)} tokens"
            if right is not None and token == len(right.ids):
                return f"returned {len(answer.ids)} tokens instead of {len(right.ids)}"
            return f"returned an incorrect token at index {token}"
        case TrainingDivergence() if mismatch.asked.operation == "save":
            return f"wrote incorrect merges, the first at index {where.step}"
        case TrainingDivergence():
            return _training_fact(where)
        case VocabDivergence(missing, surplus):
            parts = [f"lacks {', '.join(map(show.token, missing[:3]))}"] if missing else []
            parts += [f"has {', '.join(map(show.token, surplus[:3]))} too many"] if surplus else []
            return f"returned a vocabulary that {' and '.join(parts)}"
        case EntryDivergence(index, expected, got):
            return f"gave the id {index} to {_entry(got)} instead of {_entry(expected)}"
        case TextDivergence(character):
            return f"returned a text that is incorrect from character {character} on"
        case RowDivergence(row):
            return f"returned an incorrect row {row}"
        case ByteDivergence(byte):
            return f"returned bytes that are incorrect from byte {byte} on"
    if any(isinstance(one, AnyError) for one in alternatives):
        return "returned an answer and must raise an error"
    return "returned an incorrect answer"


def _cause_fact(cause: EncodingCause) -> str:
    match cause:
        case UnknownId(index):
            return f"returned the id {index}, which is not in the vocabulary"
        case BytesLost(byte):
            return f"returned ids that do not spell the text; the bytes differ from byte {byte} on"
        case WrongId(token, expected, got):
            what = show.token(token) if token is not None else "the special token without an entry"
            return f"returned the id {got} for {what}, whose id is {expected}"
        case CrossesBoundary(token, byte):
            return f"merged {show.token(token)} across the pre-token boundary at byte {byte}"
        case PreTokenCut(pre_token, byte):
            return f"cut the pre-token {show.text_line(pre_token)} at byte {byte}"
        case SpecialToken(token, missed=True):
            return f"did not find the special token {show.token(token)}"
        case SpecialToken(token, allowed=False):
            return f"found the special token {show.token(token)}, which is not allowed"
        case SpecialToken(token):
            return f"found the special token {show.token(token)} where there is none"
        case WholeTokenCut(pre_token):
            return f"split the pre-token {show.text_line(pre_token)}, which is a token (lookup: bytes)"
        case NotAResult(token):
            return f"returned {show.token(token)}, which no merge gives here"
        case WrongMerge(used, available):
            if used is None:
                return "left out a merge"
            return "merged the wrong pair first" if available is not None else "merged pairs in the wrong order"
    raise AssertionError(cause)


def _training_fact(where: TrainingDivergence) -> str:
    step = f"at step {where.step + 1}"
    if where.got is None:
        return f"stopped {step}, where {counted(where.expected, where.expected_count)} is next"
    if where.expected is None:
        return f"learned {counted(where.got, where.got_count)} {step}, where training has ended"
    if where.is_tie:
        return f"broke a tie at count {where.got_count} {step}: chose {show.pair(where.got)}"
    return f"chose {counted(where.got, where.got_count)} {step}"


def counted(pair: tuple[bytes, bytes] | None, count: int) -> str:
    """Return a pair with its count."""
    return f"{show.pair(pair)} with count {count}" if pair is not None else "no pair"


def _entry(token: bytes | None) -> str:
    return show.token(token) if token is not None else "no token"


def pointer(where: EncodingDivergence) -> str:
    """Return what happened at the first token that differs: the note beside the caret."""
    match where.cause:
        case WrongMerge(used, available):
            parts = [f"used rank {used.rank}"] if used is not None else []
            if available is not None:
                state = "was available" if used is not None else "did not merge"
                parts.append(f"rank {available.rank} {show.pair(available.merge)} {state} at byte {available.byte}")
            return "; ".join(parts)
        case PreTokenCut(_, _, missing):
            return f"or rank {missing.rank} {show.pair(missing.merge)} did not merge at byte {missing.byte}"
        case CrossesBoundary(_, byte):
            return f"a pre-token ends at byte {byte}"
        case SpecialToken(token, missed=True):
            return f"the special token {show.token(token)} is here"
        case SpecialToken(token):
            return f"the special token {show.token(token)} is not here"
        case NotAResult(token):
            return f"no merge gives {show.token(token)} here"
        case WrongId(_, expected, got):
            return f"id {got} instead of {expected}"
    return f"byte {where.byte} of the text"


def divergence(mismatch: Mismatch) -> str:
    """Return where the two part, in one line; "" where the fact says all."""
    match mismatch.divergence:
        case EncodingDivergence(token=token, byte=byte) as where:
            return f"at token {token}, byte {byte}: {pointer(where)}"
        case TrainingDivergence(step=step) as where:
            if mismatch.asked.operation == "save":
                return f"at merge {step}"
            tie = " (a tie)" if where.is_tie else ""
            right = counted(where.expected, where.expected_count) if where.expected else "the end of training"
            got = counted(where.got, where.got_count) if where.got else "the end of training"
            return f"at step {step + 1}: {right} expected, {got} chosen{tie}"
        case TextDivergence(character, source):
            return f"at character {character}" + (f", from the bytes {show.hex_line(source)}" if source else "")
        case RowDivergence(row, token):
            return f"at row {row}, token {token}"
        case ByteDivergence(byte):
            return f"at byte {byte}"
        case EntryDivergence(index):
            return f"at id {index}"
    return ""


def expectation(mismatch: Mismatch) -> str:
    """Return what is correct, in one line."""
    shown = "  or  ".join(acceptable(one, mismatch) for one in mismatch.expected.alternatives)
    return f"{shown}, as {mismatch.expected.source}" if mismatch.expected.source else shown


def answer(mismatch: Mismatch) -> str:
    """Return what came back, in one line."""
    match mismatch.answer:
        case Fault(_, message) | Refusal(_, message):
            return message
        case Changed(what):
            return "; ".join(what)
        case Accepted():
            return "no error"
        case Measure(amount):
            return f"{amount:,} characters held back"
        case found:
            return _value(found, mismatch)


def acceptable(value: Acceptable, mismatch: Mismatch) -> str:
    """Return one alternative of an expectation in one line."""
    match value:
        case AnyError(reason):
            return f"an error ({reason})" if reason else "an error"
        case NewIds(tokens):
            return f"{' | '.join(map(show.token, tokens))}, with a new id for each token without an entry"
        case Lossless():
            return "ids whose bytes are the text"
        case AtMost(amount):
            return f"at most {amount:,} characters held back at any time"
        case HighestCount(merges):
            where = mismatch.divergence
            if isinstance(where, TrainingDivergence) and where.expected is not None:
                return f"a pair of count {where.expected_count}, such as {show.pair(where.expected)}"
            return f"at most {merges} merges, each of a highest count"
        case Unchanged():
            return "the same, and nothing else changed"
        case Accepted():
            return "no error"
        case found:
            return _value(found, mismatch)


def _value(value: Any, mismatch: Mismatch) -> str:
    where = mismatch.divergence
    match value:
        case Ids(ids):
            around = where.token if isinstance(where, EncodingDivergence) else _around(mismatch, Ids)
            vocab = mismatch.asked.model.vocab if mismatch.asked.model else {}
            return show.ids(ids, vocab, around)
        case Text(text):
            around = where.character if isinstance(where, TextDivergence) else 0
            return show.text_near(text, around)
        case Bytes(data):
            return f"bytes {show.hex_line(data)}" if data else "no bytes"
        case Rows(rows):
            row = where.row if isinstance(where, RowDivergence) else 0
            shown = show.numbers(rows[row]) if row < len(rows) else "no row"
            return f"row {row} of {len(rows)}: {shown}"
        case Table(vocab, merges):
            match where:
                case EntryDivergence(index):
                    return f"id {index} is {_entry(vocab.get(index))}"
                case VocabDivergence():
                    return f"a vocabulary of {len(vocab)} tokens"
                case TrainingDivergence(step=step):
                    return f"merges {show.merges(merges, step)}"
            return f"merges {show.merges(merges)}"
        case Fault(_, message) | Refusal(_, message):
            return message
    return str(value)


def _around(mismatch: Mismatch, kind: type) -> int:
    right = next((one for one in mismatch.expected.alternatives if isinstance(one, Ids)), None)
    if kind is Ids and right is not None and isinstance(mismatch.answer, Ids):
        return first_difference(right.ids, mismatch.answer.ids)
    return 0


def dependence(found: Dependence) -> str:
    """Return which other part of the implementation is at fault."""
    text = show.text_line(found.text)
    match found.kind:
        case "encode":
            return f"encode: it gives the same incorrect answer for {text}; fix that first"
        case "segment":
            return f"encode: {text} alone is encoded incorrectly, too; fix that first"
        case "pre-tokens":
            return "splitting: each pre-token alone is encoded correctly, so the text is split incorrectly (SPLIT)"
        case "segments":
            return "special tokens: each segment between them alone is encoded correctly (SPECIAL)"
        case _:
            return "another failure: the same question fails without the disturbance"
