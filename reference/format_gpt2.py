"""GPT-2's files: `vocab.json` (spelled token → id) and `merges.txt` (a pair of spelled tokens a line).

Source: openai/gpt-2 `src/encoder.py`. Tokens are spelled by its byte ↔ character map, special tokens as well.
Files of others hold special tokens as plain text; a key of `vocab.json` with a character outside the map (a
space, say) can only be that, and is read as its UTF-8 bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import Merge, spell, unspell

from .files import AnyPath, read_lines, read_utf8, write_utf8

HEADER = "#version"


def read_vocab(path: AnyPath) -> dict[int, bytes]:
    """Read `vocab.json`.

    Returns:
        dict: id → bytes, in the order of the file.

    Raises:
        ValueError: with file and line, if it is no JSON object of spelled tokens → ids, each once.
    """
    text = read_utf8(path)
    try:
        entries = json.loads(text, object_pairs_hook=list)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise ValueError(f"{path}:1: nested too deep; an object of spelled tokens and ids is wanted") from None
    if not text.lstrip().startswith("{"):
        raise ValueError(f"{path}:1: an object of spelled tokens and ids is wanted")
    return vocab_of_entries(entries, str(path))


def vocab_of_entries(entries: Sequence[tuple[str, Any]], where: str) -> dict[int, bytes]:
    """Return id → bytes for spelled tokens and ids, or raise a ValueError that begins with `where`."""
    vocab: dict[int, bytes] = {}
    seen: set[str] = set()
    for key, index in entries:
        if not isinstance(index, int) or isinstance(index, bool):
            raise ValueError(f"{where}: the id of {key!a} is {index!a}; an integer is wanted")
        if key in seen:
            raise ValueError(f"{where}: the token {key!a} stands twice")
        if index in vocab:
            raise ValueError(f"{where}: the id {index} stands for {spell(vocab[index])!a} and for {key!a}")
        seen.add(key)
        vocab[index] = read_key(key, where)
    return vocab


def read_key(key: str, where: str) -> bytes:
    """Return the bytes of a vocabulary's key: unspelled, or, if it is not spelled by the map, as UTF-8.

    >>> read_key("Ġthe", ""), read_key("<|a b|>", "")
    (b' the', b'<|a b|>')
    """
    with suppress(ValueError):
        return unspell(key)
    try:
        return key.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{where}: the token {key!a} holds a lone surrogate") from None


def read_merges(path: AnyPath) -> list[Merge]:
    """Read `merges.txt`; the first line may be a `#version` header, every other one is a merge.

    Raises:
        ValueError: with file and line, if a line is not two spelled tokens with a space between them.
    """
    lines = read_lines(path)
    merges: list[Merge] = []
    for number, line in enumerate(lines, start=1):
        if number == 1 and (not line or line.startswith(HEADER)):
            continue
        merges.append(read_merge(line.split(" "), f"{path}:{number}"))
    return merges


def read_merge(parts: Sequence[str], where: str) -> Merge:
    """Return the merge of two spelled tokens, or raise a ValueError that begins with `where`."""
    if len(parts) != 2 or not all(parts):
        raise ValueError(f"{where}: {' '.join(parts)!a} is no merge; two tokens and one space are wanted")
    try:
        return unspell(parts[0]), unspell(parts[1])
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def write(folder: AnyPath, vocab: Mapping[int, bytes], merges: Sequence[Merge]) -> None:
    """Write `vocab.json` and `merges.txt` into `folder`, which is made if it is not there.

    Raises:
        ValueError: if two ids stand for the same bytes: the format has one id for a token.
    """
    spelled = spelled_vocab(vocab)
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    write_utf8(target / "vocab.json", json.dumps(spelled, ensure_ascii=False))
    lines = [f"{HEADER}: 0.2", *(f"{spell(left)} {spell(right)}" for left, right in merges)]
    write_utf8(target / "merges.txt", "\n".join(lines) + "\n")


def spelled_vocab(vocab: Mapping[int, bytes]) -> dict[str, int]:
    """Return spelled token → id.

    Raises:
        ValueError: if two ids stand for the same bytes.
    """
    spelled: dict[str, int] = {}
    for index, token in vocab.items():
        key = spell(token)
        if key in spelled:
            both = f"{spelled[key]} and {index}"
            raise ValueError(f"the ids {both} stand for {token!r}; the format has one id for a token")
        spelled[key] = index
    return spelled
