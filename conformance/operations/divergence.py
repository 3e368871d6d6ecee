"""Finds where two answers differ, and why: the token, the byte, the merge and its rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import accumulate, pairwise

from bpe_conformance.fixtures import Merge, Model
from bpe_conformance.reference import textbook

from .. import answer
from .setting import Setting, pieces

Word = textbook.Word
Rank = Callable[[Merge], "int | None"]  # returns the rank of a pair, or None if it does not merge


def encoding(setting: Setting, text: str, expected: Sequence[int], got: Sequence[int]) -> answer.EncodingDivergence:
    """Return where two encodings of `text` differ, and the merge, boundary or special token that explains it."""
    both = _Encodings(setting, text, expected, got)
    return answer.EncodingDivergence(both.position, both.offset, _cause(both, setting.clause.startswith("SPLIT-")))


class _Encodings:
    def __init__(self, setting: Setting, text: str, expected: Sequence[int], got: Sequence[int]) -> None:
        self.model, self.text = setting.table, text
        model = self.model
        self.expected, self.got = expected, got
        self.position = answer.first_difference(expected, got)
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


def _cause(both: _Encodings, splitting: bool) -> answer.EncodingCause | None:
    model, position = both.model, both.position
    unknown = next((index for index in both.got if index not in model.vocab), None)
    if position < min(len(both.expected), len(both.got)) and both.expected[position] not in model.vocab:
        return answer.WrongId(None, both.expected[position], both.got[position])
    if unknown is not None and unknown not in both.expected:
        return answer.UnknownId(unknown)
    expected_bytes, got_bytes = both.spelled(both.expected), both.spelled(both.got)
    if got_bytes != expected_bytes:
        return answer.BytesLost(answer.first_difference(expected_bytes, got_bytes), model.pipeline is not None)
    if position == len(both.got) or position == len(both.expected):
        return None
    if both.got[position] not in model.vocab:
        return answer.UnknownId(both.got[position])
    if splitting and _crossed(both) is None and (cut := _cut_pre_token(both)) is not None:
        return cut
    return _token_cause(both, both.expected[position], both.got[position])


def _cut_pre_token(both: _Encodings) -> answer.PreTokenCut | None:
    missed = _missed_merge(both, both.cuts)
    if missed is None or missed.byte is None:
        return None
    piece = next(piece for _, end, piece, _ in both.pieces if missed.byte < end)
    return answer.PreTokenCut(piece.decode("utf-8", "replace"), missed.byte + len(missed.merge[0]), missed)


def _token_cause(both: _Encodings, expected: int, got: int) -> answer.EncodingCause:
    model, offset = both.model, both.offset
    token = model.vocab[got]
    special = partial(answer.SpecialToken, of_pipeline=model.pipeline is not None)
    if (crossed := _crossed(both)) is not None:
        joined, boundary = crossed
        if both.ids is not None or any(left + right == joined for left, right in model.ranks):
            return answer.CrossesBoundary(joined, boundary)
        return special(joined, missed=False) if joined in both.special else answer.NotAResult(joined)
    if model.vocab[expected] == token:
        return answer.WrongId(token, expected, got)
    if model.vocab[expected] in both.special:
        return special(model.vocab[expected], missed=True)
    if token in both.special:
        return special(token, missed=False)
    if (whole := _cut_token(both, both.whole)) is not None:
        return answer.WholeTokenCut(whole, both.lookup)
    chosen = next(((rank, pair) for pair, rank in model.ranks.items() if pair[0] + pair[1] == token), None)
    used = None
    if chosen is not None:
        used = answer.Pair(chosen[1], chosen[0] if both.ids is None else both.ids[token], offset)
    available = _missed_merge(both, both.cuts)
    if available is None:
        if used is None:
            return answer.NotAResult(token)
        return answer.WrongMerge(used, _missed_merge(both, set(range(offset + 1, offset + len(token)))))
    is_too_early = used is not None and used.rank > available.rank
    return answer.WrongMerge(used if is_too_early else _later_occurrence(both, available), available)


def _later_occurrence(both: _Encodings, available: answer.Pair) -> answer.Pair | None:
    """Return the merge of the same pair at a later position that overlaps this one, if it was applied."""
    joined, next_token = b"".join(available.merge), both.got[both.position + 1 : both.position + 2]
    begins = both.offset + len(both.model.vocab[both.got[both.position]])
    # The answer divides the pair at the end of its token, or later.
    overlaps = available.byte is not None and available.byte < begins
    if overlaps and [both.model.vocab.get(index) for index in next_token] == [joined]:
        return replace(available, byte=begins)
    return None


def _crossed(both: _Encodings) -> tuple[bytes, int] | None:
    """Return the first token with a pre-token boundary inside, and the byte offset of the boundary, if there is one.

    Only tokens that begin within the first expected token that differs are looked at.
    """
    start, last = both.offset, both.offset + len(both.model.vocab[both.expected[both.position]])
    for index in both.got[both.position :]:
        if start >= last or (token := both.model.vocab.get(index)) is None:
            break
        end = start + len(token)
        if boundaries := [boundary for _, boundary, _, _ in both.pieces if start < boundary < end]:
            return token, boundaries[0]
        start = end
    return None


def _cut_token(both: _Encodings, tokens: Collection[bytes]) -> str | None:
    """Return the first pre-token that is a token, and that the given encoding divides."""
    for start, end, piece, _ in both.pieces:
        if piece in tokens and any(start < cut < end for cut in both.cuts):
            return piece.decode("utf-8", "replace")
    return None


def _missed_merge(both: _Encodings, cuts: set[int]) -> answer.Pair | None:
    """Return the first merge of the correct encoding that the given encoding divides."""
    for start, _, piece, special in both.pieces:
        atoms = tuple(bytes([byte]) for byte in piece)
        for word, rank, here, _ in () if special else merge_steps(atoms, both.rank):
            middle = start + sum(map(len, word[: here + 1]))
            if middle in cuts:
                return answer.Pair((word[here], word[here + 1]), rank, middle - len(word[here]))
    return None


def merge_steps(word: Word, rank: Rank) -> Iterator[tuple[Word, int, int, Word]]:
    """Yield each step of the merging of a pre-token: the tokens, the rank and the index of a pair, the tokens after."""
    while found := [(number, i) for i, pair in enumerate(pairwise(word)) if (number := rank(pair)) is not None]:
        number, here = min(found)
        after = (*word[:here], word[here] + word[here + 1], *word[here + 2 :])
        yield word, number, here, after
        word = after


def training(words: list[Word], expected: Sequence[Merge], got: Sequence[Merge]) -> answer.TrainingDivergence:
    step = answer.first_difference(expected, got)
    for pair in expected[:step]:
        words = [textbook.replace(word, pair) for word in words]
    counts = textbook.count_pairs(words)
    right = expected[step] if step < len(expected) else None
    chosen = got[step] if step < len(got) else None
    right_count, chosen_count = (counts[pair] if pair else 0 for pair in (right, chosen))
    return answer.TrainingDivergence(step, right, right_count, chosen, chosen_count)


def highest_counts(words: list[Word], most_merges: int, merges: Sequence[Merge]) -> answer.TrainingDivergence | None:
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
            return answer.TrainingDivergence(step, best[0], most, chosen, counts[chosen] if chosen else 0)
        words = [textbook.replace(word, chosen) for word in words]
    if len(merges) > (end := max(0, most_merges)):
        return answer.TrainingDivergence(end, None, 0, merges[end], 0)
    return None


def rows(expected: answer.Rows, got: answer.Rows) -> answer.RowDivergence:
    row = answer.first_difference(expected.rows, got.rows)
    both = row < min(len(expected.rows), len(got.rows))
    return answer.RowDivergence(row, answer.first_difference(expected.rows[row], got.rows[row]) if both else 0)


def decoding(data: bytes, expected: str, got: str) -> answer.TextDivergence:
    position = answer.first_difference(expected, got)
    ends, _ = ends_of_characters(data)
    source = data[ends[position] : ends[position + 1]] if position + 1 < len(ends) else b""
    return answer.TextDivergence(position, source)


def ends_of_characters(data: bytes) -> tuple[list[int], set[int]]:
    r"""Return 0 and the end of each character of the text of `data`, and the ends of those that are well-formed.

    >>> ends_of_characters(b"\xc3\xa9\xffa")
    ([0, 2, 3, 4], {2, 4})
    """
    ends, well_formed = [0], set[int]()
    while (start := ends[-1]) < len(data):
        try:
            text, malformed = data[start:].decode("utf-8"), b""
        except UnicodeDecodeError as error:
            text, malformed = error.object[: error.start].decode("utf-8"), error.object[error.start : error.end]
        ends += list(accumulate((len(char.encode("utf-8")) for char in text), initial=start))[1:]
        well_formed.update(ends[len(ends) - len(text) :])
        ends += [ends[-1] + len(malformed)] if malformed else []
    return ends, well_formed


def position(model: Model, expected: answer.Answer, got: answer.Answer) -> answer.Divergence | None:
    """Return the position at which two long answers differ, without a cause, or None if they are of different types."""
    difference = answer.first_difference
    match expected, got:
        case answer.Offsets(ids, spans), answer.Offsets() if ids == got.ids:
            return answer.SpanDivergence(difference(spans, got.spans))
        case ((answer.Ids(ids) | answer.Offsets(ids)), (answer.Ids(got_ids) | answer.Offsets(got_ids))):
            at = difference(ids, got_ids)
            return answer.EncodingDivergence(at, sum(len(model.vocab[index]) for index in ids[:at]))
        case answer.Rows(), answer.Rows():
            return rows(expected, got)
        case answer.Text(text), answer.Text(got_text):
            return answer.TextDivergence(difference(text, got_text))
        case answer.Bytes(data), answer.Bytes(got_data):
            return answer.ByteDivergence(difference(data, got_data))
    return None


def entries(expected: Mapping[int, bytes], got: Mapping[int, bytes], clause: str) -> answer.Divergence | None:
    """Return where the vocabulary of a training differs from that of its merges, as far as the clause says."""
    if clause == "TRAIN-IDS-2":
        index = min((index for index in {*expected, *got} if expected.get(index) != got.get(index)), default=None)
        return None if index is None else answer.EntryDivergence(index, expected.get(index), got.get(index))
    if expected == got:
        return None
    right, found = Counter(expected.values()), Counter(got.values())
    if clause != "TRAIN-IDS-1":
        right, found = Counter({*right}), Counter({*found})
    if right == found:
        return None
    return answer.VocabDivergence(tuple(sorted(right - found)), tuple(sorted(found - right)))


def chosen_token(model: Model, ids: Sequence[int], allowed: Collection[str]) -> answer.EncodingDivergence | None:
    """Return where ids have a special token that is not allowed, or None."""
    others = {token.encode("utf-8") for token in model.special_tokens or () if token not in allowed}
    byte = 0
    for number, index in enumerate(ids):
        token = model.vocab.get(index)
        if token is not None and token in others:
            return answer.EncodingDivergence(number, byte, answer.SpecialToken(token, missed=False, allowed=False))
        byte += len(token or b"")
    return None
