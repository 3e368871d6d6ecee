"""The spellings of the JSON-lines protocol (PROTOCOL.md), shared by its two ends."""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import Any, ParamSpec, TypeVar

from bpe_conformance.fixtures.strict_json import parse_json

from ..errors import MisshapenError

PROTOCOL = 1
MAX_LINE = 64 * 1024 * 1024
MAX_ID = 2**31
MAX_IDS = 8_000_000

P = ParamSpec("P")
T = TypeVar("T")
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


def _reading(read: Callable[P, T]) -> Callable[P, T]:
    """Return the same function, which raises MisshapenError for whatever it cannot read."""

    @functools.wraps(read)
    def reading(*arguments: P.args, **keywords: P.kwargs) -> T:
        try:
            return read(*arguments, **keywords)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise MisshapenError(str(error)) from None

    return reading


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


@_reading
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


@_reading
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


@_reading
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


@_reading
def read_handle(value: Any, name: str) -> int:
    """Return the handle that a reply gives a model or a stream.

    Raises:
        TypeError: if there is none.
    """
    handle = value.get(name) if isinstance(value, dict) else None
    if type(handle) is not int:
        raise TypeError(f"the reply gives no handle: {name} is to be an integer")
    return handle


@_reading
def read_ids(value: Any, what: str) -> list[int]:
    """Return the ids of a reply.

    Raises:
        TypeError: if it is not a list of integers.
    """
    if not isinstance(value, list) or any(type(index) is not int for index in value):
        raise TypeError(f"{what} returned something else than a list of integers")
    return value


@_reading
def read_rows(value: Any, what: str) -> list[list[int]]:
    """Return the lists of ids of a reply.

    Raises:
        MisshapenError: if it is no list of lists of integers.
    """
    if not isinstance(value, list):
        raise TypeError(f"{what} returned something else than a list")
    return [read_ids(row, what) for row in value]


@_reading
def read_bytes(value: Any, what: str) -> bytes:
    """Return the bytes of a reply.

    Raises:
        MisshapenError: if they are not spelled in hex.
    """
    if not isinstance(value, str):
        raise TypeError(f"{what} returned something else than bytes in hex")
    return bytes.fromhex(value)


def write_answer(ids: Any, what: str) -> list[int]:
    """Return the ids that an adapter gave as exact integers.

    Raises:
        MisshapenError: if they are none; whatever the adapter raises while they are read.
    """
    rows = write_items(ids, what, MAX_IDS + 1)
    try:
        return write_ids(rows, what)
    except (TypeError, ValueError, OverflowError) as error:
        raise MisshapenError(str(error)) from None


def write_table_answer(vocab: Any, merges: Any) -> dict[str, Any]:
    """Return the vocabulary and merges that an adapter shows.

    Raises:
        MisshapenError: if they are none.
    """
    try:
        return write_table(vocab, merges)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise MisshapenError(f"vocab maps no int to bytes, or merges are no pairs of bytes: {error}") from None


def write_items(value: Any, what: str, most: int) -> list[Any]:
    """Return at most this many items of what an adapter gave.

    Raises:
        MisshapenError: if it holds none; whatever the adapter raises while they are read.
    """
    kind = type(value)
    if issubclass(kind, str | bytes | Mapping) or not (hasattr(kind, "__iter__") or hasattr(kind, "__getitem__")):
        raise MisshapenError(f"{what} returned {kind.__name__}; a list is wanted")
    return list(islice(value, most))


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
        raise OverflowError(f"{what}: an id of {exact.bit_length()} bits does not fit 32")
    return exact
