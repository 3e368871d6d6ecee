"""The JSON-lines protocol (PROTOCOL.md) as values: messages, and the operations that client, server and check share.

To add a method, add it to `OPERATIONS`, or to `STREAMS`, and to protocol.schema.json.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from bpe_conformance.fixtures import Merge, answers
from bpe_conformance.fixtures.answers import (
    MalformedAnswer,
    NoAnswer,
    rebuild_bytes,
    rebuild_ids,
    rebuild_rows,
    rebuild_text,
)
from bpe_conformance.fixtures.files import parse_json

PROTOCOL = 1
SMALLEST_ID = -(2**31)  # the smallest id in a request: the suite also asks `decode` for negative ids

WireText = str | dict[str, list[int]]
T = TypeVar("T")


def dump(message: Mapping[str, Any]) -> bytes:
    """Return a message as one line: ASCII JSON and a line feed. A line that is too long is a ValueError."""
    line = json.dumps(message, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"
    if len(line) > answers.LONGEST_LINE:
        raise ValueError(f"the message has {len(line)} bytes; a line may have at most {answers.LONGEST_LINE}")
    return line


def parse(line: bytes) -> dict[str, Any]:
    """Return the message in `line`; raise ValueError if the line is not one JSON object in UTF-8."""
    text = line.decode("utf-8")
    try:
        message = parse_json(text, "", 1)
    except ValueError as error:
        raise ValueError(str(error).removeprefix(":1: ")) from None
    if not isinstance(message, dict):
        raise ValueError(f"{kind(message)} instead of an object")
    return message


def kind(value: Any) -> str:
    """Return what a JSON value is, in words of the protocol."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    names: dict[type, str] = {dict: "an object", list: "a list", str: "a string", int: "an integer"}
    return names.get(type(value), "a number with a fraction or an exponent")


# A function `read_…` returns the value that `write_…` spelled, or raises MalformedAnswer.


def write_text(text: str) -> WireText:
    """Return `text`, or its code points if it contains surrogates, because JSON joins two of them to one character."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return {"code_points": [ord(char) for char in text]}
    return text


def read_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and set(value) == {"code_points"}:
        points = value["code_points"]
        if isinstance(points, list) and all(type(point) is int and 0 <= point < 0x110000 for point in points):
            return "".join(map(chr, points))
    raise MalformedAnswer(f"{kind(value)} instead of a text")


def write_texts(texts: Iterable[str]) -> list[WireText]:
    return [write_text(text) for text in texts]


def read_texts(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise MalformedAnswer(f"{kind(value)} instead of a list of texts")
    return [read_text(text) for text in value]


def write_choice(value: Collection[str]) -> str | list[WireText]:
    return "all" if value == "all" else write_texts(value)


def read_choice(value: Any) -> str | list[str]:
    if value != "all" and not isinstance(value, list):
        raise MalformedAnswer(f'{kind(value)} instead of "all" or a list of texts')
    return "all" if value == "all" else read_texts(value)


def read_bytes(value: Any) -> bytes:
    try:
        return bytes.fromhex(value)
    except (TypeError, ValueError):
        raise MalformedAnswer(f"{kind(value)} instead of bytes in hex") from None


def _read_ids(value: Any) -> Any:
    """Return the ids of a reply as they are, if JSON has them as a list of integers; the suite checks their size."""
    if not isinstance(value, list):
        raise (NoAnswer if value is None else MalformedAnswer)(f"{kind(value)} instead of a list of integers")
    if not set(map(type, value)) <= {int}:
        wrong = next(item for item in value if type(item) is not int)
        found_nothing = ", as if a lookup found nothing" if wrong is None else ""
        raise MalformedAnswer(f"{kind(wrong)} in a list of ids{found_nothing}; an id is an integer")
    return value


def write_vocab(vocab: Any) -> list[list[Any]]:
    return [[index, token.hex()] for index, token in answers.rebuild_vocab(vocab).items()]


def read_vocab(value: Any) -> dict[int, bytes]:
    pairs = _read_pairs(value, lambda key: answers.rebuild_id("vocab", key, "contains"), "vocab as pairs of id and hex")
    vocab = dict(pairs)
    if len(vocab) < len(pairs):
        raise MalformedAnswer("vocab has a repeated id")
    return vocab


def write_merges(merges: Any) -> list[list[str]]:
    return [[left.hex(), right.hex()] for left, right in answers.rebuild_merges(merges)]


def read_merges(value: Any) -> list[Merge]:
    return _read_pairs(value, read_bytes, "merges as pairs of hex")


def _read_pairs(value: Any, first: Callable[[Any], T], expected: str) -> list[tuple[T, bytes]]:
    try:
        if not isinstance(value, list):
            raise TypeError(kind(value))
        return [(first(left), read_bytes(right)) for left, right in value]
    except MalformedAnswer:
        raise
    except (TypeError, ValueError) as error:
        raise MalformedAnswer(f"expected {expected}: {type(error).__name__}: {error}") from None


def read_member(value: Any, name: str) -> Any:
    if not isinstance(value, dict) or name not in value:
        raise MalformedAnswer(f"the reply has no {name}")
    return value[name]


def read_handle(value: Any, name: str) -> int:
    handle = value.get(name) if isinstance(value, dict) else None
    if type(handle) is not int:
        raise MalformedAnswer(f"the reply has no {name}; expected an integer")
    return handle


def _write_ids(ids: Iterable[int]) -> list[int]:
    """Return the ids of a request, which may be unknown or negative."""
    listed = [int(operator.index(index)) for index in ids]
    if listed and (min(listed) < SMALLEST_ID or max(listed) > answers.LARGEST_ID):
        raise ValueError(f"an id of the request is outside {SMALLEST_ID} to {answers.LARGEST_ID}")
    return listed


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Argument:
    """An argument: `write` makes a member of the request, `read` turns it back. If optional, None is not passed on."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    optional: bool = False


@dataclass(frozen=True)
class Returned:
    """A result: a definition in protocol.schema.json, the same in words, and how it is written in a reply and read."""

    shape: str
    words: str
    write: Callable[..., Any] = _same  # of the method's name, its answer and its arguments
    read: Callable[[Any], Any] = _same


@dataclass(frozen=True)
class Operation:
    """A method with arguments by position and, if the program announces `capability`, the `further` ones by name."""

    arguments: Mapping[str, Argument]
    result: Returned
    further: Mapping[str, Argument] = field(default_factory=dict)
    capability: str = ""


@dataclass(frozen=True)
class Streamed:
    """A method from one iterator to another: a request has one `item`, a reply what it then yields, in `yields`."""

    item: str
    argument: Argument
    yields: str
    result: Returned


TEXT, TEXTS, SIZE = Argument(write_text, read_text), Argument(write_texts, read_texts), Argument(_same, _same)
GIVEN_IDS = Argument(_write_ids, _same)
GIVEN_ID = Argument(lambda index: _write_ids([index])[0], _same)
PATH = Argument(lambda path: str(Path(path).absolute()), str)
SPECIAL = Argument(
    lambda tokens: None if tokens is None else write_texts(tokens),
    lambda value: None if value is None else read_texts(value),
    optional=True,
)
VOCAB, MERGES = Argument(write_vocab, read_vocab), Argument(write_merges, read_merges)
TABLE = {"vocab": VOCAB, "merges": MERGES, "special_tokens": SPECIAL}
PATTERN = {"pattern": Argument(_same, _same)}
# Callers of tiktoken pass a set and a tuple.
CHOICES = {
    "allowed_special": Argument(write_choice, lambda value: value if value == "all" else set(read_choice(value))),
    "disallowed_special": Argument(write_choice, lambda value: value if value == "all" else tuple(read_choice(value))),
}
MODEL = Returned("modelResult", '{"model": a number that you choose}')
IDS = Returned(
    "ids", f"a list of integers from 0 to {answers.LARGEST_ID}", lambda name, ids, _: rebuild_ids(name, ids), _read_ids
)
ROWS = Returned(
    "batchResult", "a list with the ids of each text", lambda name, rows, texts: rebuild_rows(name, rows, len(texts))
)
DECODED = Returned("text", "a string", lambda name, text, _: write_text(rebuild_text(name, text)), read_text)
BYTES = Returned(
    "hex", "bytes as lower-case hex, two digits each", lambda name, data, _: rebuild_bytes(name, data).hex(), read_bytes
)
OFFSETS = Returned(
    "offsetsResult",
    '{"ids": [...], "offsets": [[start, end], ...]}',
    lambda name, value, _: dict(zip(("ids", "offsets"), answers.rebuild_offsets(name, value), strict=True)),
    lambda value: (read_member(value, "ids"), read_member(value, "offsets")),
)
DELTAS = Returned(
    "texts",
    "a list of strings",
    lambda name, deltas, _: [write_text(answers.rebuild_delta(name, delta)) for delta in deltas],
    read_texts,
)
CHUNK = Returned("chunkResult", '{"ids" or "deltas": [...], "ended": true or false}')
NOTHING = Returned("nothing", "null", lambda *_: None, lambda _: None)

OPERATIONS = {  # name of a method, or `load` for the constructor → its operation
    "load": Operation(TABLE, MODEL, PATTERN, "pattern"),
    "train": Operation({"text": TEXT, "vocab_size": SIZE, "special_tokens": TEXTS}, MODEL, PATTERN, "train_pattern"),
    "from_files": Operation({"vocab_path": PATH, "merges_path": PATH, "special_tokens": SPECIAL}, MODEL),
    "from_tokenizer_json": Operation({"path": PATH}, MODEL),
    "encode": Operation({"text": TEXT}, IDS, CHOICES, "allowed_special"),
    "encode_batch": Operation({"texts": TEXTS}, ROWS),
    "decode": Operation({"ids": GIVEN_IDS}, DECODED),
    "decode_bytes": Operation({"ids": GIVEN_IDS}, BYTES),
    "save": Operation({"folder": PATH}, NOTHING),
    "encode_with_offsets": Operation({"text": TEXT}, OFFSETS),
}
STREAMS = {  # name of a method that takes several requests → what they contain; `stream_open` has its name in `method`
    "encode_iterable": Streamed("text", TEXT, "ids", IDS),
    "decode_iterable": Streamed("id", GIVEN_ID, "deltas", DELTAS),
}
DEFAULT_STREAM = "encode_iterable"  # the method of a `stream_open` that names none
MAKERS = ("load", "train", "from_files", "from_tokenizer_json")  # they make a model; the others are methods of one
RESULTS: Mapping[str, Returned] = {  # operation → its result; that of `start` is an object that describes the program
    **{name: operation.result for name, operation in OPERATIONS.items()},
    "unload": NOTHING,
    "table": Returned("tableResult", '{"vocab": [[id, hex], ...], "merges": [[hex, hex], ...]}'),
    "stream_open": Returned("streamResult", '{"stream": a number that you choose}'),
    **dict.fromkeys(("stream_feed", "stream_close"), CHUNK),
}


def write_arguments(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    known = {**OPERATIONS[name].arguments, **OPERATIONS[name].further}
    return {key: known[key].write(value) for key, value in arguments.items()}


def read_arguments(name: str, request: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a request by position and by name, in the types that callers in Python use."""
    operation = OPERATIONS[name]
    values: list[Any] = []
    for key, argument in operation.arguments.items():
        value = argument.read(request.get(key) if argument.optional else request[key])
        if value is not None or not argument.optional:
            values.append(value)
    return values, {key: further.read(request[key]) for key, further in operation.further.items() if key in request}


METHODS = (*(name for name in OPERATIONS if name not in MAKERS), *STREAMS)  # what a tokenizer can have
CAPABILITIES = frozenset(
    {*OPERATIONS, *STREAMS, *(operation.capability for operation in OPERATIONS.values()), "surrogates"} - {"load", ""}
)
"""What a program can announce."""
TESTABLE = frozenset({"train", "encode", "decode", "decode_bytes", "decode_iterable", "encode_with_offsets"})
"""The methods that can be tested alone; an implementation has one of them."""
