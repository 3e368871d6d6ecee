"""Reads and writes messages and values of the JSON-lines protocol (PROTOCOL.md), for the client and the server."""

from __future__ import annotations

import json
import operator
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from bpe_conformance.fixtures import Merge, answers
from bpe_conformance.fixtures.answers import MalformedAnswer
from bpe_conformance.fixtures.files import parse_json

PROTOCOL = 1
SMALLEST_ID = -(2**31)
"""The smallest id in a request: the suite also asks `decode` for negative ids."""

WireText = str | dict[str, list[int]]


def dump(message: Mapping[str, Any]) -> bytes:
    """Return a message as one line: ASCII JSON and a line feed.

    Raises:
        ValueError: if the line is longer than `answers.LONGEST_LINE`.
    """
    line = json.dumps(message, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"
    if len(line) > answers.LONGEST_LINE:
        raise ValueError(f"the message has {len(line)} bytes; a line may have at most {answers.LONGEST_LINE}")
    return line


def parse(line: bytes) -> dict[str, Any]:
    """Return the message in `line`.

    Raises:
        ValueError: if the line is not one JSON object in UTF-8.
    """
    message = parse_json(line.decode("utf-8"), "line")
    if not isinstance(message, dict):
        raise ValueError(f"line: a JSON {type(message).__name__}; expected an object")
    return message


def write_text(text: str) -> WireText:
    """Return `text`, or its code points if it contains surrogates, because JSON joins two of them to one character."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return {"code_points": [ord(char) for char in text]}
    return text


def read_text(value: Any) -> str:
    """Return the text that `write_text` spelled.

    Raises:
        MalformedAnswer: if the value is not a text.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and set(value) == {"code_points"}:
        points = value["code_points"]
        if isinstance(points, list) and all(type(point) is int and 0 <= point < 0x110000 for point in points):
            return "".join(map(chr, points))
    raise MalformedAnswer(f"JSON {type(value).__name__} instead of a text")


def write_choice(value: Collection[str]) -> str | list[WireText]:
    """Return a choice of special tokens: "all" or a list of texts."""
    return "all" if value == "all" else [write_text(text) for text in value]


def read_choice(value: Any) -> str | list[str]:
    """Return the choice of special tokens that `write_choice` spelled.

    Raises:
        MalformedAnswer: if the value is neither.
    """
    if value == "all":
        return "all"
    if not isinstance(value, list):
        raise MalformedAnswer(f'JSON {type(value).__name__} instead of "all" or a list of texts')
    return [read_text(text) for text in value]


def write_table(vocab: Mapping[int, bytes], merges: Iterable[Merge]) -> dict[str, Any]:
    """Return a vocabulary and merges with their bytes in lower-case hex."""
    return {
        "vocab": [[index, token.hex()] for index, token in vocab.items()],
        "merges": [[left.hex(), right.hex()] for left, right in merges],
    }


def read_table(value: Any) -> tuple[dict[int, bytes], list[Merge]]:
    """Return the vocabulary and merges that `write_table` spelled.

    Raises:
        MalformedAnswer: if the value is anything else, or an id is repeated.
    """
    try:
        vocab = {answers.rebuild_id("vocab", index, "contains"): read_bytes(token) for index, token in value["vocab"]}
        merges = [(read_bytes(left), read_bytes(right)) for left, right in value["merges"]]
    except MalformedAnswer:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedAnswer(f"expected vocab and merges: {type(error).__name__}: {error}") from None
    if len(vocab) < len(value["vocab"]):
        raise MalformedAnswer("vocab has a repeated id")
    return vocab, merges


def read_bytes(value: Any) -> bytes:
    """Return the bytes that `value` spells in hex.

    Raises:
        MalformedAnswer: if it is not hex.
    """
    try:
        return bytes.fromhex(value)
    except (TypeError, ValueError):
        raise MalformedAnswer(f"JSON {type(value).__name__} instead of bytes in hex") from None


def write_ids(ids: Iterable[int]) -> list[int]:
    """Return the ids of a request, which may be unknown or negative.

    Raises:
        ValueError: if one is below `SMALLEST_ID` or above `answers.LARGEST_ID`.
    """
    listed = [int(operator.index(index)) for index in ids]
    if listed and (min(listed) < SMALLEST_ID or max(listed) > answers.LARGEST_ID):
        raise ValueError(f"an id of the request is outside {SMALLEST_ID} to {answers.LARGEST_ID}")
    return listed


def read_handle(value: Any, name: str) -> int:
    """Return the number of a model or stream in a reply.

    Raises:
        MalformedAnswer: if it has none.
    """
    handle = value.get(name) if isinstance(value, dict) else None
    if type(handle) is not int:
        raise MalformedAnswer(f"the reply has no {name}; expected an integer")
    return handle
