"""Reads and writes GPT-2's files: `vocab.json` (spelled token → id) and `merges.txt` (a line for each pair of tokens).

Source: openai/gpt-2 `src/encoder.py`. Tokens, including special tokens, are spelled with GPT-2's map from bytes to
characters. Other programs write special tokens as plain text: a key of `vocab.json` with a character outside the map
(such as a space) must be one, and is read as UTF-8.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from bpe_conformance.fixtures import Merge, spell, unspell
from bpe_conformance.fixtures.answers import LARGEST_ID
from bpe_conformance.fixtures.files import AnyPath, parse_json, write_files
from bpe_conformance.fixtures.one_line import shortened

from . import read_lines, read_utf8

HEADER = "#version"


def read_vocab(path: AnyPath) -> dict[int, bytes]:
    """Read `vocab.json`: id → bytes, in the order of the file."""
    entries = parse_json(read_utf8(path), str(path))
    if not isinstance(entries, dict):
        raise ValueError(f"{path}:1: expected an object of spelled tokens and ids")
    return vocab_of_entries(entries.items(), str(path))


def vocab_of_entries(entries: Iterable[tuple[str, Any]], where: str) -> dict[int, bytes]:
    """Return id → bytes for distinct spelled tokens and their ids; errors begin with `where`."""
    vocab, what = dict[int, bytes](), f"{where}: the id"
    for key, value in entries:
        index = read_id(value, what, key)
        if index in vocab:
            both = f"{shortened(spell(vocab[index]))} and to {shortened(key)}"
            raise ValueError(f"{where}: the id {index} belongs to {both}")
        vocab[index] = read_key(key, where)
    return vocab


def read_id(value: Any, what: str, key: str = "") -> int:
    """Return an id from a file; an error begins with `what` and names the key that has it."""
    if type(value) is int and 0 <= value <= LARGEST_ID:
        return value
    named = f"{what} of {shortened(key)}" if key else what
    expected = f"ids are 0 to {LARGEST_ID}" if type(value) is int else "expected an integer"
    raise ValueError(f"{named} is {shortened(value)}; {expected}")


def read_key(key: str, where: str) -> bytes:
    """Return the bytes of a key of the vocabulary: unspelled, or its UTF-8 if the map does not spell it.

    >>> read_key("Ġthe", ""), read_key("<|a b|>", "")
    (b' the', b'<|a b|>')
    """
    try:
        return unspell(key)
    except ValueError:
        try:
            return key.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(f"{where}: the token {shortened(key)} contains a lone surrogate") from None


def read_merges(path: AnyPath, vocab: Mapping[int, bytes] | None = None) -> list[Merge]:
    """Read `merges.txt`: the first line may be a `#version` header, and every other line is a merge.

    The vocabulary must contain the parts and the result of each merge; None means no check.
    """
    lines = read_lines(path)
    first = 1 if not lines[0] or lines[0].startswith(HEADER) else 0
    pairs = (line.split(" ") for line in lines[first:])
    return list(merges_of_pairs(pairs, lambda rank: f"{path}:{first + rank + 1}", vocab))


def merges_of_pairs(
    pairs: Iterable[Sequence[str]], position: Callable[[int], str], vocab: Mapping[int, bytes] | None = None
) -> Iterator[Merge]:
    """Yield the merges for pairs of spelled tokens; `vocab` is as in `read_merges`.

    A repeated pair is an error: GPT-2 and Hugging Face use its last rank, others the first. Error messages begin with
    the `position` of a merge, by its rank.
    """
    ranks: dict[Merge, int] = {}
    known = None if vocab is None else set(vocab.values())
    unspelled = cache(unspell)
    for rank, parts in enumerate(pairs):
        try:
            if len(parts) != 2 or not all(parts):
                raise ValueError(f"{shortened(' '.join(parts))} is not a merge; expected two tokens and one space")
            left, right = merge = unspelled(parts[0]), unspelled(parts[1])
        except ValueError as error:
            raise ValueError(f"{position(rank)}: {error}") from None
        if ranks.setdefault(merge, rank) != rank:
            twice = f"{shortened(' '.join(parts))} is a duplicate of merge {ranks[merge]}"
            raise ValueError(f"{position(rank)}: {twice}")
        if known is not None and not (left in known and right in known and left + right in known):
            roles = {"left part": left, "right part": right, "result": left + right}
            role, token = next((role, token) for role, token in roles.items() if token not in known)
            raise ValueError(f"{position(rank)}: the vocabulary lacks {shortened(token)}, the {role} of merge {rank}")
        yield merge


def write(folder: AnyPath, vocab: Mapping[int, bytes], merges: Sequence[Merge]) -> None:
    """Write both `vocab.json` and `merges.txt`, or neither, into a directory, which is created if necessary."""
    write_files(folder, {name: text.encode("utf-8") for name, text in rendered(vocab, merges).items()})


def rendered(vocab: Mapping[int, bytes], merges: Sequence[Merge]) -> dict[str, str]:
    """Return name → content of both files. A repeated merge is written once, because its second rank has no effect."""
    spelled = spelled_vocab(vocab)
    lines = [f"{HEADER}: 0.2", *(f"{spell(left)} {spell(right)}" for left, right in dict.fromkeys(merges))]
    return {"vocab.json": json.dumps(spelled, ensure_ascii=False), "merges.txt": "\n".join(lines) + "\n"}


def spelled_vocab(vocab: Mapping[int, bytes]) -> dict[str, int]:
    """Return spelled token → id; two ids with the same bytes are an error."""
    spelled: dict[str, int] = {}
    for index, token in vocab.items():
        key = spell(token)
        if key in spelled:
            both = f"{spelled[key]} and {index}"
            raise ValueError(f"the ids {both} have the same bytes, {token!r}; the format has one id for a token")
        spelled[key] = index
    return spelled
