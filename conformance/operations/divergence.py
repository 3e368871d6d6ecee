"""Finds where two answers differ, and why: the token, the byte, the merge and its rank."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise

from bpe_conformance.fixtures import Merge
from bpe_conformance.reference import textbook

from ..answer import (
    BytesLost,
    CrossesBoundary,
    EncodingCause,
    EncodingDivergence,
    NotAResult,
    Pair,
    PreTokenCut,
    RowDivergence,
    Rows,
    SpecialToken,
    TextDivergence,
    TrainingDivergence,
    UnknownId,
    WholeTokenCut,
    WrongId,
    WrongMerge,
    first_difference,
)
from .setting import Setting, pieces

Word = textbook.Word
Rank = Callable[[Merge], "int | None"]  # returns the rank of a pair, or None if it does not merge


def encoding(setting: Setting, text: str, expected: Sequence[int], got: Sequence[int]) -> EncodingDivergence:
    """Return where two encodings of `text` differ, and the merge, boundary or special token that explains it."""
    both = _Encodings(setting, text, expected, got)
    return EncodingDivergence(both.position, both.offset, _cause(both, setting.clause.startswith("SPLIT-")))


class _Encodings:
    def __init__(self, setting: Setting, text: str, expected: Sequence[int], got: Sequence[int]) -> None:
        self.model, self.text = setting.table, text
        model = self.model
        self.expected, self.got = expected, got
        self.position = first_difference(expected, got)
        self.offset = len(self.spelled(expected[: self.position]))
        self.special = {name.encode("utf-8") for name in model.special_tokens or ()}
        self.pattern = setting.expression(model.pattern)
        ordinary = {token: index for index, token in model.vocab.items() if token not in self.special}
        lookup = setting.oracle.lookup if model.pipeline is not None else setting.conventions["lookup"]
        self.ids: Mapping[bytes, int] | None = ordinary if lookup == "bytes" else None
        self.whole = ordinary if lookup in ("bytes", "whole") else {}
        self.lookup = lookup

    def spelled(self, ids: Sequence[int]) -> bytes:
        return b"".join(self.model.vocab.get(index, b"") for index in ids)

    @cached_property
    def pieces(self) -> list[tuple[int, int, bytes, bool]]:
        """(first byte, byte after the last, bytes, whether it is a special token) of pre-tokens and special tokens."""
        found: list[tuple[int, int, bytes, bool]] = []
        end = 0
        for piece, special in pieces(self.model, self.text, self.pattern):
            start, end = end, end + len(piece)
            found.append((start, end, piece, special))
        return found

    @cached_property
    def cuts(self) -> set[int]:
        return {0, *accumulate(len(self.model.vocab.get(index, b"")) for index in self.got)}

    def rank(self, pair: Merge) -> int | None:
        return self.model.ranks.get(pair) if self.ids is None else self.ids.get(pair[0] + pair[1])


def _cause(both: _Encodings, splitting: bool) -> EncodingCause | None:
    model, position = both.model, both.position
    unknown = next((index for index in both.got if index not in model.vocab), None)
    if position < min(len(both.expected), len(both.got)) and both.expected[position] not in model.vocab:
        return WrongId(None, both.expected[position], both.got[position])
    if unknown is not None and unknown not in both.expected:
        return UnknownId(unknown)
    expected_bytes, got_bytes = both.spelled(both.expected), both.spelled(both.got)
    if got_bytes != expected_bytes:
        return BytesLost(first_difference(expected_bytes, got_bytes), model.pipeline is not None)
    if position == len(both.got) or position == len(both.expected):
        return None
    if both.got[position] not in model.vocab:
        return UnknownId(both.got[position])
    if splitting and _crossed(both) is None and (cut := _cut_pre_token(both)) is not None:
        return cut
    return _token_cause(both, both.expected[position], both.got[position])


def _cut_pre_token(both: _Encodings) -> PreTokenCut | None:
    missed = _missed_merge(both, both.cuts)
    if missed is None or missed.byte is None:
        return None
    piece = next(piece for _, end, piece, _ in both.pieces if missed.byte < end)
    return PreTokenCut(piece.decode("utf-8", "replace"), missed.byte + len(missed.merge[0]), missed)


def _token_cause(both: _Encodings, expected: int, got: int) -> EncodingCause:
    model, offset = both.model, both.offset
    token = model.vocab[got]
    if (crossed := _crossed(both)) is not None:
        return CrossesBoundary(token, crossed)
    if model.vocab[expected] == token:
        return WrongId(token, expected, got)
    if model.vocab[expected] in both.special:
        return SpecialToken(model.vocab[expected], missed=True)
    if token in both.special:
        return SpecialToken(token, missed=False)
    if (whole := _cut_token(both, both.whole)) is not None:
        return WholeTokenCut(whole, both.lookup)
    chosen = next(((rank, pair) for pair, rank in model.ranks.items() if pair[0] + pair[1] == token), None)
    used = None if chosen is None else Pair(chosen[1], both.ids[token] if both.ids is not None else chosen[0], offset)
    available = _missed_merge(both, both.cuts)
    if available is None:
        if used is None:
            return NotAResult(token)
        return WrongMerge(used, _missed_merge(both, set(range(offset + 1, offset + len(token)))))
    is_too_early = used is not None and used.rank > available.rank
    return WrongMerge(used if is_too_early else None, available)


def _crossed(both: _Encodings) -> int | None:
    """Return the byte offset of the pre-token boundary inside the first token that differs, if there is one."""
    last = both.offset + len(both.model.vocab[both.got[both.position]])
    return next((end for _, end, _, _ in both.pieces if both.offset < end < last), None)


def _cut_token(both: _Encodings, tokens: Collection[bytes]) -> str | None:
    """Return the first pre-token that is a token, and that the given encoding divides."""
    for start, end, piece, special in both.pieces:
        if not special and piece in tokens and any(start < cut < end for cut in both.cuts):
            return piece.decode("utf-8", "replace")
    return None


def _missed_merge(both: _Encodings, cuts: set[int]) -> Pair | None:
    """Return the first merge of the correct encoding that the given encoding divides."""
    for start, _, piece, special in both.pieces:
        atoms = tuple(bytes([byte]) for byte in piece)
        for word, rank, here, _ in () if special else merge_steps(atoms, both.rank):
            middle = start + sum(map(len, word[: here + 1]))
            if middle in cuts:
                return Pair((word[here], word[here + 1]), rank, middle - len(word[here]))
    return None


def merge_steps(word: Word, rank: Rank) -> Iterator[tuple[Word, int, int, Word]]:
    """Yield each step of the merging of a pre-token: the tokens, the rank and the index of a pair, the tokens after."""
    while found := [(number, i) for i, pair in enumerate(pairwise(word)) if (number := rank(pair)) is not None]:
        number, here = min(found)
        after = (*word[:here], word[here] + word[here + 1], *word[here + 2 :])
        yield word, number, here, after
        word = after


def training(words: list[textbook.Word], expected: Sequence[Merge], got: Sequence[Merge]) -> TrainingDivergence:
    step = first_difference(expected, got)
    for pair in expected[:step]:
        words = [textbook.replace(word, pair) for word in words]
    counts = textbook.count_pairs(words)
    right = expected[step] if step < len(expected) else None
    chosen = got[step] if step < len(got) else None
    return TrainingDivergence(
        step, right, counts.get(right, 0) if right else 0, chosen, counts.get(chosen, 0) if chosen else 0
    )


def highest_counts(words: list[textbook.Word], most_merges: int, merges: Sequence[Merge]) -> TrainingDivergence | None:
    """Return the first merge that is not a pair of the highest count (tie_break: unspecified), if there is one."""
    for step in range(most_merges):
        counts = textbook.count_pairs(words)
        if not counts:
            most_merges = step
            break
        most = max(counts.values())
        best = [pair for pair, count in counts.items() if count == most]
        chosen = merges[step] if step < len(merges) else None
        if chosen not in best:
            return TrainingDivergence(step, best[0], most, chosen, counts[chosen] if chosen else 0)
        words = [textbook.replace(word, chosen) for word in words]
    if len(merges) > (end := max(0, most_merges)):
        return TrainingDivergence(end, None, 0, merges[end], 0)
    return None


def rows(expected: Rows, got: Rows) -> RowDivergence:
    row = first_difference(expected.rows, got.rows)
    both = row < min(len(expected.rows), len(got.rows))
    return RowDivergence(row, first_difference(expected.rows[row], got.rows[row]) if both else 0)


def decoding(data: bytes, expected: str, got: str) -> TextDivergence:
    position = first_difference(expected, got)
    return TextDivergence(position, _bytes_of_character(data, position))


def _bytes_of_character(data: bytes, position: int) -> bytes:
    """Return the bytes of one character of the decoded text; a maximal subpart that is not UTF-8 is one."""
    parts: list[bytes] = []
    while data and len(parts) <= position:
        try:
            text, wrong, data = data.decode("utf-8"), b"", b""
        except UnicodeDecodeError as error:
            text, wrong = data[: error.start].decode("utf-8"), data[error.start : error.end]
            data = data[error.end :]
        parts += [*(char.encode("utf-8") for char in text), *([wrong] if wrong else [])]
    return parts[position] if position < len(parts) else b""
