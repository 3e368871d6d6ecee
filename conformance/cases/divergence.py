"""The first divergence, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from bpe_conformance.fixtures import PATTERNS, Merge, Model
from bpe_conformance.reference import textbook

from ..terminal import show


def encoding(
    model: Model,
    text: str,
    expected: Sequence[int],
    got: Sequence[int],
    splitting: bool = False,
    lookup: str = "pair",
) -> str:
    """Say where two encodings of `text` part, and which merge, boundary or special token is behind it.

    Args:
        model: the table.
        text: what was encoded.
        expected: the right ids.
        got: the ids that came back.
        splitting: whether the case is about pre-tokens, so that a merge that is missing shows a wrong boundary.
        lookup: the declared convention.
    """
    place = show.first_difference(expected, got)
    unknown = next((index for index in got if index not in model.vocab), None)
    offset = sum(len(model.vocab.get(index, b"")) for index in expected[:place])
    where = f"at token {place}, byte {offset}"
    if place < min(len(expected), len(got)) and expected[place] not in model.vocab:
        return f"{where}: the id {expected[place]} is right, not {got[place]}; it is new, for a special token"
    if unknown is not None and unknown not in expected:
        return f"{where}: the id {unknown} is not in the vocabulary"
    got_bytes = b"".join(model.vocab.get(index, b"") for index in got)
    expected_bytes = b"".join(model.vocab.get(index, b"") for index in expected)
    if got_bytes != expected_bytes:
        lost = show.first_difference(expected_bytes, got_bytes)
        return f"{where}: the ids do not spell the text; their bytes differ from byte {lost} on"
    if place == len(got) or place == len(expected):
        return where
    if got[place] not in model.vocab:
        return f"{where}: the id {got[place]} is a new one, and does not stand here"
    tokens = _ranked_tokens(model) if lookup == "bytes" else None
    if splitting and (cut := _wrong_boundary(model, text, _cuts(model, got), tokens)) is not None:
        return f"{where}: {cut}"
    return f"{where}: {_merge_in_words(model, text, expected[place], got[place], offset, got, tokens)}"


_Tokens = Mapping[bytes, int] | None
"""Tokens and their ids where the lookup is by their bytes."""


def _ranked_tokens(model: Model) -> dict[bytes, int]:
    special = {name.encode("utf-8") for name in model.special_tokens or ()}
    return {token: index for index, token in model.vocab.items() if token not in special}


def _wrong_boundary(model: Model, text: str, cuts: set[int], tokens: _Tokens) -> str | None:
    """Say which pre-token is cut where it is whole, if one is."""
    missed = _missed_merge(model, text, cuts, tokens)
    if missed is None:
        return None
    rank, pair, byte = missed
    here = 0
    for piece, _ in _pieces(model, text):
        end = here + len(piece.encode("utf-8", "surrogatepass"))
        if here <= byte < end:
            cut = f"the pre-token {show.text_line(piece)} is cut at byte {byte + len(pair[0])}"
            return f"{cut}, or {show.pair(pair)} of rank {rank} did not merge there"
        here = end
    return None


def _merge_in_words(
    model: Model, text: str, wanted: int, given: int, offset: int, got: Sequence[int], tokens: _Tokens
) -> str:
    boundaries = _boundaries(model, text)
    token = model.vocab[given]
    crossed = next((cut for cut in boundaries if offset < cut < offset + len(token)), None)
    if crossed is not None:
        return f"{show.token(token)} crosses the boundary of a pre-token at byte {crossed}"
    if model.vocab[wanted] == token:
        return f"{show.token(token)} has the id {wanted}, not {given}"
    special = {name.encode("utf-8") for name in model.special_tokens or ()}
    if model.vocab[wanted] in special:
        return f"the special token {show.token(model.vocab[wanted])} stands here"
    if token in special:
        return f"the special token {show.token(token)} does not stand here"
    if tokens is not None and (whole := _cut_token(model, text, _cuts(model, got), tokens)) is not None:
        return f"the pre-token {show.text_line(whole)} is a token, and emitted whole (lookup: bytes, MERGE-LOOKUP-1)"
    missed = _missed_merge(model, text, _cuts(model, got), tokens)
    chosen = next(((rank, pair) for pair, rank in model.ranks.items() if pair[0] + pair[1] == token), None)
    if chosen is not None and tokens is not None:
        chosen = tokens[token], chosen[1]
    if missed is None:
        if chosen is None:
            return f"{show.token(token)} is no merge's result here"
        proper = _missed_merge(model, text, set(range(offset + 1, offset + len(token))), tokens)
        first = f"; {show.pair(proper[1])} of rank {proper[0]} at byte {proper[2]} comes first" if proper else ""
        return f"{show.pair(chosen[1])} of rank {chosen[0]} merged out of order{first}"
    rank, merge, byte = missed
    told = f"{show.pair(merge)} of rank {rank} at byte {byte}"
    if chosen is not None and chosen[1] != merge:
        return f"{show.pair(chosen[1])} of rank {chosen[0]} merged before {told}"
    return f"{told} did not merge"


def _cuts(model: Model, ids: Sequence[int]) -> set[int]:
    cuts, here = {0}, 0
    for index in ids:
        here += len(model.vocab.get(index, b""))
        cuts.add(here)
    return cuts


def _boundaries(model: Model, text: str) -> list[int]:
    cuts, here = [], 0
    for piece, _ in _pieces(model, text):
        here += len(piece.encode("utf-8", "surrogatepass"))
        cuts.append(here)
    return cuts


def _pieces(model: Model, text: str) -> list[tuple[str, bool]]:
    pieces: list[tuple[str, bool]] = []
    for segment, special in textbook.cut_special(text, model.special_tokens or ()):
        if special:
            pieces.append((segment, True))
        else:
            pieces += [(piece, False) for piece in textbook.split(segment, PATTERNS[model.pattern])]
    return pieces


def _cut_token(model: Model, text: str, cuts: set[int], tokens: Mapping[bytes, int]) -> str | None:
    """Return the first pre-token that is a token, and across which there is a boundary."""
    start = 0
    for piece, special in _pieces(model, text):
        end = start + len(piece.encode("utf-8"))
        if not special and piece.encode("utf-8") in tokens and any(start < cut < end for cut in cuts):
            return piece
        start = end
    return None


def _missed_merge(model: Model, text: str, cuts: set[int], tokens: _Tokens) -> tuple[int, Merge, int] | None:
    """Return the first merge of the right encoding across which the given one has a boundary."""
    ranks = model.ranks
    start = 0
    for piece, special in _pieces(model, text):
        word = textbook.atoms(piece)
        while not special:
            if tokens is None:
                found = [(ranks[pair], i) for i, pair in enumerate(pairwise(word)) if pair in ranks]
            else:
                joined = [left + right for left, right in pairwise(word)]
                found = [(tokens[token], i) for i, token in enumerate(joined) if token in tokens]
            if not found:
                break
            rank, here = min(found)
            middle = start + sum(map(len, word[: here + 1]))
            if middle in cuts:
                return rank, (word[here], word[here + 1]), middle - len(word[here])
            word = (*word[:here], word[here] + word[here + 1], *word[here + 2 :])
        start += len(piece.encode("utf-8"))
    return None


def training(words: list[textbook.Word], expected: Sequence[Merge], got: Sequence[Merge]) -> str:
    """Say at which step two lists of merges part, with the counts of the pair chosen and of the pair expected."""
    step = show.first_difference(expected, got)
    for pair in expected[:step]:
        words = [textbook.replace(word, pair) for word in words]
    counts = textbook.count_pairs(words)
    if step == len(expected):
        return f"at step {step + 1}: {_counted(got[step], counts)} merged where training has ended"
    wanted = _counted(expected[step], counts)
    if step == len(got):
        return f"at step {step + 1}: training ended; {wanted} is next"
    tie = ", a tie" if counts.get(got[step]) == counts.get(expected[step]) else ""
    return f"at step {step + 1}: {_counted(got[step], counts)} was chosen, {wanted} is right{tie}"


def _counted(pair: Merge, counts: Mapping[Merge, int]) -> str:
    return f"{show.pair(pair)} with count {counts.get(pair, 0)}"


def decoding(data: bytes, expected: str, got: str) -> str:
    """Say at which character two texts part, and which bytes it is decoded from.

    Args:
        data: the bytes of all ids, one after the other.
        expected: their text.
        got: the text that came back.
    """
    place = show.first_difference(expected, got)
    wanted = show.text_line(expected[place : place + 8]) if place < len(expected) else "the end"
    given = show.text_line(got[place : place + 8]) if place < len(got) else "the end"
    sequence = _bytes_of_character(data, place)
    source = f", from the bytes {show.hex_line(sequence)}" if sequence else ""
    return f"at character {place}{source}: {given} instead of {wanted}"


def _bytes_of_character(data: bytes, place: int) -> bytes:
    """Return the bytes behind one character of the decoded text; a maximal subpart that is not UTF-8 is one."""
    here = 0
    for number in range(place + 1):
        ends = range(here + 1, min(here + 5, len(data) + 1))
        end = next((end for end in ends if _is_character(data[here:end])), None)
        if end is None:
            end = max((end for end in ends if len(data[here:end].decode("utf-8", "replace")) == 1), default=len(data))
        if number == place:
            return data[here:end]
        here = end
    return b""


def _is_character(part: bytes) -> bool:
    try:
        return len(part.decode("utf-8")) == 1
    except UnicodeDecodeError:
        return False
