"""Answers of an implementation, what can be accepted instead of one, and where two answers differ, as values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from bpe_conformance.fixtures import Merge

# Answers


@dataclass(frozen=True)
class Ids:
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Bytes:
    data: bytes


@dataclass(frozen=True)
class Rows:
    rows: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Answers:
    """The answers to several questions, up to the first one that is not ids."""

    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class Offsets:
    """Ids, and for each the characters of the text that it covers: (start, end), end exclusive."""

    ids: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Table:
    vocab: Mapping[int, bytes]
    merges: tuple[Merge, ...]


@dataclass(frozen=True)
class Accepted:
    """A call that returned nothing and raised nothing: a constructor, or `save`."""


@dataclass(frozen=True)
class Measure:
    """How much was held back."""

    amount: int
    what: str = "character"


@dataclass(frozen=True)
class Changed:
    """The answer is correct, but the call changed something that it must not change."""

    what: tuple[str, ...]  # each change, in the words of the check that found it, for example "the current directory"


@dataclass(frozen=True)
class Refusal:
    """The implementation raised an ordinary exception."""

    kind: str  # the name of its type
    message: str  # its first line
    traceback: tuple[str, ...] = ()  # the implementation's own frames, innermost last


@dataclass(frozen=True)
class Fault:
    """The implementation gave no answer that can be compared."""

    kind: str  # `TimedOut`, `NoResult`, `Malformed` if its shape is wrong, or the name of what ended the process
    message: str
    traceback: tuple[str, ...] = ()  # the implementation's own frames, innermost last


Answer: TypeAlias = (
    Ids | Text | Bytes | Rows | Answers | Offsets | Table | Accepted | Measure | Changed | Refusal | Fault
)

TIMED_OUT = "TimedOut"
PROTOCOL_ERROR = "ProtocolError"  # of a program that does not follow the wire protocol
NO_RESULT = "NoResult"  # of a test that did not run
MALFORMED = "Malformed"


def canonical(answer: Answer) -> Any:
    """Return the whole answer as JSON values. Messages and tracebacks are left out: they name classes and files."""
    match answer:
        case Ids(ids):
            return {"ids": list(ids)}
        case Text(text):
            whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
            return {"text": text if text == whole else list(map(ord, text))}  # in JSON, two halves are one character
        case Bytes(data):
            return {"bytes": data.hex()}
        case Rows(rows):
            return {"rows": [list(row) for row in rows]}
        case Answers(answers):
            return {"answers": list(map(canonical, answers))}
        case Offsets(ids, spans):
            return {"ids": list(ids), "spans": list(map(list, spans))}
        case Table(vocab, merges):
            entries = [[index, vocab[index].hex()] for index in sorted(vocab)]
            return {"vocab": entries, "merges": [[left.hex(), right.hex()] for left, right in merges]}
        case Measure(amount, _):
            return {"measure": amount}
        case Changed():
            return {"changed": True}
        case Refusal(kind):
            return {"refusal": kind}
        case Fault(kind):
            return {"fault": kind}
        case Accepted():
            return {"accepted": True}


def fingerprint(answer: Answer, context: str = "") -> str:
    """Return eight hexadecimal digits that are equal for equal answers in the same context, for any implementation."""
    text = json.dumps(canonical(answer), sort_keys=True, ensure_ascii=True) + context
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:8]


# What can be accepted


@dataclass(frozen=True)
class AnyError:
    """Any ordinary exception is correct."""

    reason: str = ""


@dataclass(frozen=True)
class NewIds:
    """Ids of these tokens, where each token without an entry has one new id of its own."""

    tokens: tuple[bytes, ...]


@dataclass(frozen=True)
class Lossless:
    """Any ids that spell the text."""


@dataclass(frozen=True)
class AtMost:
    amount: int
    what: str = "character"


@dataclass(frozen=True)
class HighestCount:
    """Training in which each merge is a pair of the highest count, of `merges` merges (tie_break: unspecified)."""

    merges: int


@dataclass(frozen=True)
class Unchanged:
    """The same answer, and nothing else changed."""


Acceptable: TypeAlias = Answer | AnyError | NewIds | Lossless | AtMost | HighestCount | Unchanged


# Divergences


class Divergence:
    """Where two answers differ."""


class EncodingCause:
    """Why two encodings differ."""


@dataclass(frozen=True)
class Pair:
    """A merge in a text: its parts, its rank and the byte at which it begins."""

    merge: Merge
    rank: int
    byte: int | None = None


@dataclass(frozen=True)
class UnknownId(EncodingCause):
    id: int


@dataclass(frozen=True)
class BytesLost(EncodingCause):
    """The ids do not spell the text, or what a pipeline makes of it; their bytes differ from this byte on."""

    byte: int
    of_pipeline: bool = False


@dataclass(frozen=True)
class WrongId(EncodingCause):
    """The right token under another id. `token` is None for the new id of a special token."""

    token: bytes | None
    expected: int
    got: int


@dataclass(frozen=True)
class CrossesBoundary(EncodingCause):
    token: bytes
    byte: int


@dataclass(frozen=True)
class PreTokenCut(EncodingCause):
    """A pre-token that is cut at this byte, or in which this pair did not merge."""

    pre_token: str
    byte: int
    missing: Pair


@dataclass(frozen=True)
class SpecialToken(EncodingCause):
    """A special token, or an added token of a pipeline, that was missed, or found where it must not be."""

    token: bytes
    missed: bool
    allowed: bool = True
    of_pipeline: bool = False


@dataclass(frozen=True)
class WholeTokenCut(EncodingCause):
    """Under `lookup: bytes` or `whole`, a pre-token that is a token and was not emitted whole."""

    pre_token: str
    lookup: str = "bytes"


@dataclass(frozen=True)
class NotAResult(EncodingCause):
    """A token that no merge can give here."""

    token: bytes


@dataclass(frozen=True)
class WrongMerge(EncodingCause):
    """Merges in the wrong order."""

    used: Pair | None  # the merge that was applied, or None if one was only left out
    available: Pair | None  # the merge that had to be applied first, or None if it is not known


@dataclass(frozen=True)
class EncodingDivergence(Divergence):
    """Two encodings differ at this token, which begins at this byte of the text."""

    token: int  # index of the first token that differs
    byte: int  # offset of that token in the UTF-8 of the text
    cause: EncodingCause | None = None  # why, or None if the ids do not show it


@dataclass(frozen=True)
class TrainingDivergence(Divergence):
    """Two lists of merges differ at this step, counted from 0."""

    step: int  # index of the first merge that differs
    expected: Merge | None  # the correct pair, or None where training has ended
    expected_count: int  # how often it occurs at this step
    got: Merge | None  # the pair that was chosen, or None where training ended
    got_count: int  # how often it occurs at this step

    @property
    def is_tie(self) -> bool:
        return self.expected is not None and self.got is not None and self.expected_count == self.got_count


@dataclass(frozen=True)
class VocabDivergence(Divergence):
    missing: tuple[bytes, ...]
    surplus: tuple[bytes, ...]


@dataclass(frozen=True)
class EntryDivergence(Divergence):
    """One id of a vocabulary: the token expected, the token found; None is no entry."""

    id: int
    expected: bytes | None
    got: bytes | None


@dataclass(frozen=True)
class TextDivergence(Divergence):
    """Two texts differ at this character."""

    character: int  # index of the first character that differs
    source: bytes = b""  # the bytes from which that character is decoded


@dataclass(frozen=True)
class RowDivergence(Divergence):
    row: int
    token: int = 0


@dataclass(frozen=True)
class SpanDivergence(Divergence):
    """The ids are correct, and the spans differ at this token."""

    token: int


@dataclass(frozen=True)
class ByteDivergence(Divergence):
    byte: int


def first_difference(left: Sequence[object], right: Sequence[object]) -> int:
    """Return the first index at which two sequences differ, or the length of the shorter one."""
    for index, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return index
    return min(len(left), len(right))


def surplus_ends(right: tuple[int, ...], got: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return what is before and after the correct ids, at most one id each and not nothing; None if it is not so.

    >>> surplus_ends((5, 6), (1, 5, 6)), surplus_ends((5, 6), (1, 5, 6, 2)), surplus_ends((5, 6), (5, 6))
    (((1,), ()), ((1,), (2,)), None)
    """
    for before, after in ((1, 0), (1, 1), (0, 1)):
        end = before + len(right)
        if len(got) == end + after and got[before:end] == right:
            return got[:before], got[end:]
    return None
