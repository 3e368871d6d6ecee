"""What is read from a message is what the protocol's schema permits, and what was written into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from helpers.bridge_adapters import VALIDATOR

from bpe_conformance.adapters import MalformedAnswer
from bpe_conformance.adapters.bridge import wire
from bpe_conformance.fixtures import answers

ATOMS: list[Any] = [None, True, 0, 1, -1, 1.5, 2**31, 2**32, 2**64, "", "a", "all", "61", "6", "6g", "\u20ac", {}]
PAIRS: list[Any] = [
    *([1, "61"], [1, "6"], [1, None], [1, 61], [True, "61"], ["1", "61"], [-1, "61"], [1.5, "61"], [2**32, "61"]),
    *(["61", "62"], ["61"], ["61", "62", "63"], ["61", "6"], [None, "62"], [[], "61"], "61", {"1": "61"}),
]
POINTS: list[Any] = [[97], [0x10FFFF, 0xD800, 0], [0x110000], [-1], [True], [97.5], ["a"], "a", 97, None, [97, -1]]
VALUES: list[Any] = [
    *ATOMS,
    *([value] for value in ATOMS),
    *([1, value] for value in ATOMS),
    *([pair] for pair in PAIRS),
    *([[2, "62"], pair] for pair in PAIRS),
    *({"code_points": points} for points in POINTS),
    *([{"code_points": points}] for points in POINTS),
    {"code_points": [97], "more": 1},
    {"codepoints": [97]},
]
READERS: dict[str, Callable[[Any], Any]] = {
    "text": wire.read_text,
    "texts": wire.read_texts,
    "choice": wire.read_choice,
    "vocab": wire.read_vocab,
    "merges": wire.read_merges,
    "ids": lambda value: answers.rebuild_ids("encode", value),
}


@pytest.mark.parametrize("name", READERS)
def test_a_value_is_read_exactly_if_the_schema_permits_it(name: str) -> None:
    schema = {"$defs": VALIDATOR.schema["$defs"], "$ref": f"#/$defs/{name}"}
    validator = jsonschema.Draft202012Validator(schema)
    permitted = []
    for value in VALUES:
        try:
            READERS[name](value)
            is_read = True
        except MalformedAnswer:
            is_read = False
        if is_read != validator.is_valid(value):
            permitted.append((value, is_read))
    assert not permitted


def test_a_repeated_id_is_malformed() -> None:
    assert wire.read_vocab([[1, "61"], [2, "61"]]) == {1: b"a", 2: b"a"}
    for more in ("61", "62"):
        with pytest.raises(MalformedAnswer, match="repeated id"):
            wire.read_vocab([[1, "61"], [2, "63"], [1, more]])


@pytest.mark.parametrize("name", wire.OPERATIONS)
def test_arguments_are_read_as_they_were_written(name: str) -> None:
    operation = wire.OPERATIONS[name]
    text, texts, path = "a\ud800\u20ac\U0001f600", ["", "a", "\udc00"], "/no/such/file"
    examples: dict[str, Any] = {
        "text": text,
        "texts": texts,
        "special_tokens": texts,
        "ids": [0, -1, 2**32 - 1],
        "vocab_size": 300,
        "vocab": {0: b"", 7: b"a\xff"},
        "merges": [(b"a", b"\xff"), (b"", b"b")],
        "pattern": "gpt2",
        **dict.fromkeys(("path", "vocab_path", "merges_path", "folder"), path),
        "allowed_special": {"a", "\udc00"},
        "disallowed_special": ("a", "\ud800"),
    }
    given = {key: examples[key] for key in (*operation.arguments, *operation.further)}
    read, named = wire.read_arguments(name, wire.parse(wire.dump(wire.write_arguments(name, given))))
    assert read == [examples[key] for key in operation.arguments]
    assert named == {key: examples[key] for key in operation.further}
    required = {key: value for key, value in given.items() if key in operation.arguments}
    left_out = {key: None if operation.arguments[key].optional else value for key, value in required.items()}
    read, named = wire.read_arguments(name, wire.write_arguments(name, left_out))
    assert read == [examples[key] for key in operation.arguments if not operation.arguments[key].optional]
    assert named == {}


@pytest.mark.parametrize("ids", [[wire.SMALLEST_ID - 1], [0, answers.LARGEST_ID + 1]])
def test_ids_that_no_program_can_hold_are_not_sent(ids: list[int]) -> None:
    with pytest.raises(ValueError, match="an id of the request is outside"):
        wire.write_arguments("decode", {"ids": ids})


def test_the_form_of_every_result_is_known() -> None:
    named = [request["properties"]["op"] for request in VALIDATOR.schema["$defs"]["request"]["oneOf"]]
    every = {name for one in named for name in one.get("enum", [one.get("const")])}
    assert {*wire.RESULTS, "start"} == every
    assert all(result.shape in VALIDATOR.schema["$defs"] for result in wire.RESULTS.values())
