"""The spellings of the JSON-lines protocol (PROTOCOL.md), shared by its two ends."""

from __future__ import annotations

import json
import operator
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any

from bpe_conformance.fixtures.strict_json import parse_json

PROTOCOL = 1
MAX_LINE = 64 * 1024 * 1024
MAX_ID = 2**31
MAX_IDS = 8_000_000

Merge = tuple[bytes, bytes]
WireText = str | dict[str, list[int]]


def dump(message: Mapping[str, Any]) -> bytes:
    """Return one line: ASCII-escaped JSON and a line feed.

    Raises:
        ValueError: if the line is longer than `MAX_LINE`.
    """
    line = json.dumps(message, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"
    if len(line) > MAX_LINE:
        raise ValueError(f"a message of {len(line)} bytes does not fit a line of {MAX_LINE}")
    return line


def parse(line: bytes) -> dict[str, Any]:
    """Return the message that `line` holds.

    Raises:
        ValueError: if it is not one JSON object.
    """
    message = parse_json(line.decode("utf-8"), "line")
    if not isinstance(message, dict):
        raise ValueError("a JSON object is wanted")
    return message


def is_plain(text: str) -> bool:
    """Return whether `text` has no surrogates, so that a JSON string can hold it."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def write_text(text: str) -> WireText:
    """Return `text`, or its code points if it holds surrogates: in JSON two of them are one character."""
    return text if is_plain(text) else {"code_points": [ord(char) for char in text]}


def read_text(value: Any) -> str:
    """Return the text that `write_text` spelled.

    Raises:
        ValueError: if it is no text.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and set(value) == {"code_points"}:
        points = value["code_points"]
        if not isinstance(points, list) or any(type(point) is not int or not 0 <= point < 0x110000 for point in points):
            raise ValueError("code_points is no list of code points")
        return "".join(map(chr, points))
    raise ValueError(f"{type(value).__name__} is no text")


def write_choice(value: Collection[str]) -> str | list[WireText]:
    """Return special tokens: "all", or a list of texts."""
    return "all" if value == "all" else [write_text(text) for text in value]


def read_choice(value: Any) -> str | list[str]:
    """Return the special tokens that `write_choice` spelled.

    Raises:
        ValueError: if it is neither.
    """
    if value == "all":
        return "all"
    if not isinstance(value, list):
        raise ValueError(f'{type(value).__name__} is neither "all" nor a list of texts')
    return [read_text(text) for text in value]


def write_table(vocab: Mapping[int, bytes], merges: Iterable[Merge]) -> dict[str, Any]:
    """Return a vocabulary and merges with bytes as lower-case hex."""
    return {
        "vocab": [[_id(index, "vocab"), bytes(token).hex()] for index, token in vocab.items()],
        "merges": [[bytes(left).hex(), bytes(right).hex()] for left, right in merges],
    }


def read_table(value: Mapping[str, Any]) -> tuple[dict[int, bytes], list[Merge]]:
    """Return the vocabulary and merges that `write_table` spelled.

    Raises:
        ValueError: if it is no table, or an id stands twice.
    """
    try:
        vocab = {_id(index, "vocab"): bytes.fromhex(token) for index, token in value["vocab"]}
        merges = [(bytes.fromhex(left), bytes.fromhex(right)) for left, right in value["merges"]]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"no table of vocab and merges: {type(error).__name__}: {error}") from None
    if len(vocab) < len(value["vocab"]):
        raise ValueError("no table of vocab and merges: an id stands twice")
    return vocab, merges


def write_ids(ids: Iterable[Any], what: str) -> list[int]:
    """Return `ids` as exact integers.

    Raises:
        TypeError: if one is no integer (a bool is none either).
        ValueError: if there are more than `MAX_IDS`.
    """
    if isinstance(ids, str | bytes):
        raise TypeError(f"{what} returned {type(ids).__name__}; ids are wanted")
    exact = [_id(index, what) for index in islice(ids, MAX_IDS + 1)]
    if len(exact) > MAX_IDS:
        raise ValueError(f"{what}: more than {MAX_IDS} ids")
    return exact


def read_handle(value: Any, name: str) -> int:
    """Return the handle that a reply gives a model or a stream.

    Raises:
        TypeError: if there is none.
    """
    handle = value.get(name) if isinstance(value, dict) else None
    if type(handle) is not int:
        raise TypeError(f"the reply gives no handle: {name} is to be an integer")
    return handle


def read_ids(value: Any, what: str) -> list[int]:
    """Return the ids of a reply.

    Raises:
        TypeError: if it is not a list of integers.
    """
    if not isinstance(value, list) or any(type(index) is not int for index in value):
        raise TypeError(f"{what} returned something else than a list of integers")
    return value


def _id(index: Any, what: str) -> int:
    if type(index) is int and -MAX_ID <= index < MAX_ID:
        return index  # nearly always, and a table may hold 200,000 of them
    if isinstance(index, bool | str):
        raise TypeError(f"{what}: an id is of type {type(index).__name__}; an int is wanted")
    try:
        exact = int(operator.index(index))
    except TypeError:
        raise TypeError(f"{what}: an id is of type {type(index).__name__}; an int is wanted") from None
    if not -MAX_ID <= exact < MAX_ID:
        raise OverflowError(f"{what}: the id {exact} does not fit 32 bits")
    return exact
