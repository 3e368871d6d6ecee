"""Parts that several of the tokenizers share, independent of the suite and the reference."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import regex

Pair = tuple[bytes, bytes]
Split = Callable[[str], Iterable[str]]
BYTES = [bytes([byte]) for byte in range(256)]
split: Split = regex.compile(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s").findall


def distinct(special_tokens: Iterable[str] | None) -> list[str]:
    special = list(dict.fromkeys(special_tokens or ()))
    if "" in special:
        raise ValueError("a special token of no characters")
    return special


def segments(text: str, special: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield the special tokens and the text between them, found with `str.find`."""
    found: list[tuple[int, int, str]] = [(0, 0, token) for token in special]
    place = 0
    while found:
        found = [(text.find(token, place), -len(token), token) for _, _, token in found]
        found = [one for one in found if one[0] >= 0]
        if found:
            start, _, token = min(found)
            yield text[place:start], False
            yield token, True
            place = start + len(token)
    yield text[place:], False


def table(
    vocab: Mapping[int, bytes], merges: Iterable[Pair], special: Sequence[str]
) -> tuple[dict[int, bytes], list[Pair], dict[bytes, int]]:
    """Return copies of the vocabulary with all special tokens and of the merges, and token → id."""
    tokens, pairs = dict(vocab), [(left, right) for left, right in merges]
    ids = {token: index for index, token in reversed(list(tokens.items()))}
    for token in [*BYTES, *(part for left, right in pairs for part in (left, right, left + right))]:
        if token not in ids:
            raise ValueError(f"no entry for {token!r}")
    for text in special:
        if text.encode() not in ids:
            ids[text.encode()] = index = max(tokens) + 1
            tokens[index] = text.encode()
    return tokens, pairs, ids


def ranks(pairs: Sequence[Pair]) -> dict[Pair, int]:
    return {pair: rank for rank, pair in reversed(list(enumerate(pairs)))}


def count_words(text: str, special: Iterable[str], split: Split = split) -> dict[bytes, int]:
    counts: dict[bytes, int] = {}
    for segment, is_special in segments(text, special):
        for word in () if is_special else split(segment):
            counts[word.encode()] = counts.get(word.encode(), 0) + 1
    return counts


def room(vocab_size: int, special: Sequence[str]) -> int:
    if vocab_size < 256 + len(special):
        raise ValueError(f"{vocab_size} is less than 256 bytes and {len(special)} special tokens")
    return vocab_size - 256 - len(special)


def number(special: Sequence[str], pairs: Sequence[Pair]) -> dict[int, bytes]:
    return dict(enumerate([*BYTES, *(token.encode() for token in special), *(left + right for left, right in pairs)]))


def join(row: list[Any], left: Any, right: Any, both: Any) -> None:
    """Replace `left`, `right` by `both` in place, from the left."""
    if left not in row:
        return
    write = read = 0
    while read < len(row):
        if row[read] == left and read + 1 < len(row) and row[read + 1] == right:
            row[write] = both
            read += 2
        else:
            row[write] = row[read]
            read += 1
        write += 1
    del row[write:]


def learn_by_recounting(
    words: Mapping[bytes, int],
    wanted: int,
    pick: Callable[[list[Pair], list[Pair]], Pair],
    entries: Collection[bytes] = (),
) -> list[Pair]:
    """Recount in each step; `pick` chooses among the most frequent pairs, which are in text order.

    Merges that make one of `entries` do not count towards `wanted`.
    """
    rows = [([BYTES[byte] for byte in word], count) for word, count in words.items()]
    merges: list[Pair] = []
    while sum(left + right not in entries for left, right in merges) < wanted:
        counts: dict[Pair, int] = {}
        for row, count in rows:
            for pair in pairwise(row):
                counts[pair] = counts.get(pair, 0) + count
        if not counts:
            break
        most = max(counts.values())
        left, right = pick([pair for pair, count in counts.items() if count == most], merges)
        merges.append((left, right))
        for row, _ in rows:
            join(row, left, right, left + right)
    return merges
