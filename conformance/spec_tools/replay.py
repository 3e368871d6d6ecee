"""Replays training, encoding and decoding step by step, as lines of ASCII, with the textbook's functions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise

from bpe_conformance.fixtures import Merge, Model, unspell
from bpe_conformance.fixtures.one_line import counted
from bpe_conformance.reference import textbook

from ..answer import first_difference
from ..operations import oracle
from ..operations.divergence import Rank, Word, merge_steps
from ..terminal import show

ROWS, STEPS, WORDS, PIECES, WINDOW, BESIDE = 8, 12, 8, 12, 14, 24


@dataclass(frozen=True)
class Cut:
    everything: bool = False

    def __call__(self, size: int, most: int) -> int:
        """Return how many of `size` rows to show; a line with a count never replaces a single row."""
        return size if self.everything or size <= most + 1 else most

    def joined(self, rows: Sequence[str], most: int, between: str = " | ", empty: str = "none") -> str:
        shown = self(len(rows), most)
        more = [f"... {len(rows) - shown} more"] if shown < len(rows) else []
        return between.join([*rows[:shown], *more]) or empty


def quoted(text: str) -> str:
    r"""Return a text in ASCII with quotes, and runs of spaces as a number, because wrapping a line can lose spaces.

    >>> quoted("a€"), quoted("a b" + " " * 32)
    ("'a\\u20ac'", "'a b'+<20>*32")
    """
    parts = enumerate(re.split(r"( {2,})", text))
    return "+".join(f"<20>*{len(part)}" if number % 2 else ascii(part) for number, part in parts if part) or "''"


def shown_token(data: bytes) -> str:
    r"""Return a token as `show.token` does, but with runs of spaces as a number.

    >>> shown_token(b" low"), shown_token(b"\xc3"), shown_token(b" " * 32)
    ("' low'", '<c3>', '<20>*32')
    """
    if b"  " in data:
        with suppress(UnicodeDecodeError):
            return quoted(data.decode("utf-8"))
    return show.token(data)


def bare(data: bytes) -> str:
    r"""Return a token without quotes if that is unambiguous, otherwise as `shown_token` does.

    >>> bare(b"low"), bare(b" low"), bare(b"\xc3")
    ('low', "' low'", '<c3>')
    """
    return data.decode("ascii") if data.isalnum() and data.isascii() else shown_token(data)


def pair(merge: Merge) -> str:
    return f"({bare(merge[0])},{bare(merge[1])})"


# Training


def training(
    words: Sequence[Word], room: int, tie_break: str, byte_order: str, cut: Cut, special_tokens: Sequence[str] = ()
) -> Iterator[str]:
    # special tokens that are ordinary text: a merge can make one, which is no new entry
    specials = {text.encode("utf-8"): index - len(special_tokens) for index, text in enumerate(special_tokens)}
    ids = specials | textbook.byte_ids(byte_order)
    full = len(ids) + room
    words = list(words)
    yield f"corpus  {_corpus(words, cut)}"
    step = 0
    shown = cut(room + len(special_tokens), STEPS)
    while len(ids) < full and (counts := textbook.count_pairs(words)):
        chosen = textbook.choose(counts, tie_break, ids)
        words = [textbook.replace(word, chosen) for word in words]
        step += 1
        if step <= shown:
            yield f"step {step}"
            yield from (f"  {row}" for row in _counts(counts, chosen, cut))
            yield f"  merge   {_reason(counts, chosen, tie_break, ids)}"
            yield f"  corpus  {_corpus(words, cut)}"
        ids.setdefault(chosen[0] + chosen[1], len(ids))
    if step > shown:
        yield f"... {counted(step - shown, 'more step')} (--all shows them)"
    if len(ids) < full:
        yield f"no pair is left: training ends with {step} of {room} merges"
    else:
        yield f"the vocabulary is full: training ends with {counted(step, 'merge')}"


def _counts(counts: Mapping[Merge, int], chosen: Merge, cut: Cut) -> Iterator[str]:
    most = counts[chosen]
    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0] != chosen))
    tied = sum(count == most for count in counts.values()) > 1
    shown = cut(len(rows), ROWS)
    for merge, count in rows[:shown]:
        mark = "<- merged" if merge == chosen else "tied" if count == most else ""
        mark += ", of a tie" if merge == chosen and tied else ""
        yield f"{count:6}  {pair(merge):20}  {mark}".rstrip()
    if rest := rows[shown:]:
        also = sum(count == most for _, count in rest)
        note = f", {also} of them tied" if also else f", each at most {counted(rest[0][1], 'time')}"
        yield f"        ... {counted(len(rest), 'more pair')}{note}"


def _reason(counts: Mapping[Merge, int], chosen: Merge, tie_break: str, ids: Mapping[bytes, int]) -> str:
    most = counts[chosen]
    if not (others := [merge for merge, count in counts.items() if count == most and merge != chosen]):
        return f"{pair(chosen)}: no other pair occurs {counted(most, 'time')}"
    rival = textbook.choose(dict.fromkeys(others, most), tie_break, ids)
    head = f"{pair(chosen)}: {len(others) + 1} pairs tie at {most}; {tie_break} takes"
    if tie_break == "first-seen":
        return f"{head} the pair that occurs first in the text"
    side = 0 if chosen[0] != rival[0] else 1
    where = ("left", "right")[side]
    own, other = chosen[side], rival[side]
    same = "left tokens are equal, and " if side else ""
    if tie_break == "smaller-ids":
        return f"{head} it: {same}the {where} id {ids[own]} is below the {ids[other]} of {pair(rival)}"
    word = "greater" if own > other else "smaller"
    return f"{head} it: {same}{where} {bare(own)} is {word} than {bare(other)} of {pair(rival)}{_because(own, other)}"


def _because(own: bytes, other: bytes) -> str:
    """Return why one token sorts before the other, or "" if plain letters decide."""
    short, long = sorted((own, other), key=len)
    if long.startswith(short):
        return ", which is longer" if own == long else ", which is a prefix of the other"
    index = first_difference(own, other)
    if own[index : index + 1].isalnum() and other[index : index + 1].isalnum():
        return ""
    return f" (byte {own[index]:02x} against {other[index]:02x})"


def _corpus(words: Sequence[Word], cut: Cut) -> str:
    times = Counter(words)
    rows = [f"{' '.join(map(bare, word))}{f' x{count}' if count > 1 else ''}" for word, count in times.items()]
    return cut.joined(rows, WORDS, empty="empty")


# Encoding


def encoding(model: Model, text: str, lookup: str, cut: Cut) -> Iterator[str]:
    special = set(model.special_tokens or ())
    right = None if model.pipeline is None else oracle(model, {"lookup": lookup})
    segments = textbook.cut_special(text, special) if right is None else right.find_special(text, right.special)
    if special or not segments or right is not None:
        rows = [f"{'special ' * is_special}{show.text_line(segment)}" for segment, is_special in segments]
        yield f"segments  {cut.joined(rows, PIECES)}"
    lookup = lookup if right is None else right.lookup
    rank = _ranking(model, lookup)
    ordinary = (segment for segment, is_special in segments if not is_special)
    split = partial(textbook.split, pattern=model.expression) if right is None else right.split
    atoms = textbook.atoms if right is None else right.atoms
    seen = Counter(piece for segment in ordinary for piece in split(segment))
    shown = cut(len(seen), PIECES)
    for piece, times in islice(seen.items(), shown):
        again = f", {times} times" if times > 1 else ""
        text = piece if right is None else unspell(piece).decode("utf-8", "replace")
        yield f"pre-token {ascii(text) if cut.everything else show.text_line(text)}{again}"
        yield from (f"  {line}" for line in _merging(partial(atoms, piece), rank, model, lookup, cut))
    if shown < len(seen):
        yield f"... {counted(len(seen) - shown, 'more pre-token')} (--all shows them)"


def _ordinary(model: Model) -> dict[bytes, int]:
    special = {token.encode("utf-8") for token in model.special_tokens or ()}
    return {token: index for index, token in model.vocab.items() if token not in special}


def _ranking(model: Model, lookup: str) -> Rank:
    if lookup == "bytes":
        by_bytes = _ordinary(model)
        return lambda pair: by_bytes.get(pair[0] + pair[1])
    return model.ranks.get


def _merging(atoms: Callable[[], Word], rank: Rank, model: Model, lookup: str, cut: Cut) -> Iterator[str]:
    try:
        word = atoms()
    except UnicodeEncodeError:
        yield "contains a lone surrogate, which UTF-8 cannot encode; there is nothing to replay"
        return
    whole = b"".join(word)
    if lookup != "pair" and len(word) > 1 and whole in _ordinary(model):
        yield f"{_row(word, None)}   is in the vocabulary as a whole"
        word = (whole,)
    steps = list(merge_steps(word, rank))
    shown = cut(len(steps), STEPS)
    for before, number, here, _ in steps[:shown]:
        chosen = (before[here], before[here + 1])
        reason = f"{pair(chosen)} of rank {number} merges{_others(before, rank, here)}"
        row = _row(before, here)
        yield from [f"{row:{BESIDE}}  {reason}"] if len(row) <= BESIDE else [row, f"    {reason}"]
    if shown < len(steps):
        yield f"... {counted(len(steps) - shown, 'more merge')} (--all shows them)"
    tokens = steps[-1][-1] if steps else word
    rows = [f"{model.ids.get(token, 'no id')} {shown_token(token)}" for token in tokens]
    yield f"= {cut.joined(rows, PIECES)}"


def _others(word: Word, rank: Rank, here: int) -> str:
    ranked = [(two, rank(two)) for two in pairwise(word) if two != (word[here], word[here + 1])]
    if not (rows := [f"{pair(two)} {number}" for two, number in ranked if number is not None]):
        return ""
    rows = list(dict.fromkeys(rows))
    more = f" and {len(rows) - 4} more" if len(rows) > 5 else ""
    return f"; other ranks: {', '.join(rows[: 4 if more else 5])}{more}"


def _row(word: Word, here: int | None) -> str:
    """Return the tokens of a pre-token, with the merging pair in brackets; only those near it, if there are many."""
    tokens = list(map(bare, word))
    start = max(0, min((here or 0) - WINDOW // 2, len(tokens) - WINDOW)) if len(tokens) > WINDOW else 0
    if here is not None:
        tokens[here], tokens[here + 1] = f"[{tokens[here]}", f"{tokens[here + 1]}]"
    row = tokens[start : start + WINDOW]
    before = [f"... {start} before"] if start else []
    after = len(tokens) - start - WINDOW
    return " ".join([*before, *row, *([f"{after} more ..."] if after > 0 else [])])


# Decoding


def decoding(model: Model, ids: Sequence[int], cut: Cut) -> Iterator[str]:
    """Yield the bytes of each id, and the bytes that become each U+FFFD."""
    if unknown := [index for index in ids if index not in model.vocab]:
        yield f"the id {unknown[0]} is not in the vocabulary: there is nothing to decode"
        return
    rows = [f"{index} {model.vocab[index].hex(' ')}" for index in ids]
    yield f"bytes of each id  {cut.joined(rows, 2 * PIECES)}"
    data = b"".join(model.vocab[index] for index in ids)
    replaced = list(replacements(data))
    shown = cut(len(replaced), STEPS)
    for first, last, reason in replaced[:shown]:
        yield f"U+FFFD for {data[first:last].hex(' ')} at byte {first}: {reason}"
    if shown < len(replaced):
        yield f"... {len(replaced) - shown} more U+FFFD (--all shows them)"
    if not replaced:
        yield "the bytes are valid UTF-8: no U+FFFD"


def detokenizing(model: Model, ids: Sequence[int], cut: Cut) -> Iterator[str]:
    """Yield a line for each id: its bytes, the text that comes, and the bytes that are held back."""
    shown, held = cut(len(ids), STEPS), b""
    labels = [f"{index} {model.vocab.get(index, b'').hex(' ')}" for index in ids[:shown]]
    width = max(map(len, [*labels, "the end"]))
    for index, label in zip(ids, labels, strict=False):
        if index not in model.vocab:
            yield f"{label}is not in the vocabulary: an error"
            return
        held += model.vocab[index]
        ready = len(held) - textbook.unfinished(held)
        text, held = held[:ready].decode("utf-8", "replace"), held[ready:]
        waiting = f", {held.hex(' ')} held back" if held else ""
        yield f"{label:{width}}  gives {quoted(text) if text else 'no text'}{waiting}"
    if shown < len(ids):
        yield f"... {counted(len(ids) - shown, 'more id')} (--all shows them)"
    elif held:
        yield f"{'the end':{width}}  gives {quoted(held.decode('utf-8', 'replace'))}"


def replacements(data: bytes) -> Iterator[tuple[int, int, str]]:
    r"""Yield first byte, last byte (excluded) and reason of each part that decodes to one U+FFFD.

    >>> [part[:2] for part in replacements(b"a\xed\xa0\x80")]
    [(1, 2), (2, 3), (3, 4)]
    """
    start = 0
    while start < len(data):
        try:
            data[start:].decode("utf-8")
        except UnicodeDecodeError as error:
            yield start + error.start, start + error.end, error.reason
            start += error.end
        else:
            return
