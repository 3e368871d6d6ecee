"""An implementation gets the same verdict in process and over the bridge, whatever the types of its answers."""

from __future__ import annotations

import queue
import sys
from array import array
from collections import UserDict, deque, namedtuple
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from helpers.golden_cases import case

from bpe_conformance.adapters.bridge import client
from bpe_conformance.adapters.bridge.client import bridge, isolated
from bpe_conformance.adapters.bridge.server import Server
from bpe_conformance.answer import Fault
from bpe_conformance.cases.judging import judge, skip_reason
from bpe_conformance.fixtures.answers import LARGEST_ID
from bpe_conformance.implementation.implementation import Implementation, LoadError
from bpe_conformance.reference import Tokenizer as Right
from bpe_conformance.spec import installed_spec

GOLDEN = (
    "merge-priority-beats-leftmost",
    "decode-unknown-huge",
    "special-scan-longest-not-best-fit",
    "train-run-of-four-counts-three",
)
LARGE = {"merges": [["b", "c"], ["a", "b"]], "merge_ids": [LARGEST_ID, LARGEST_ID - 1]}

TRAINING = {"text": "low low lower", "vocab_size": 259, "special_tokens": ["<|e|>"]}
WITH_PATTERN = {"text": "ab ab ab", "vocab_size": 258, "special_tokens": [], "pattern": "none"}


def cases() -> list[Any]:
    golden = {one.id: one for one in installed_spec().cases}
    return [
        *(golden[name] for name in GOLDEN),
        case("encode", LARGE, {"text": "abcab"}),
        case("decode", LARGE, {"ids": [LARGEST_ID, 97]}),
        case("stream", LARGE, {"chunks": ["ab", "cab", ""]}),
        case("batch", LARGE, {"texts": ["abcab", "", "bc"]}),
        case("train", None, {"train": TRAINING}, clause="TRAIN-IDS-2"),
        case(
            "train",
            None,
            {"train": {"text": "ab ab ab", "vocab_size": 258, "special_tokens": [], "pattern": "none"}},
            clause="TRAIN-IDS-2",
        ),
    ]


CASES = cases()


class InMemory:
    """A server in this process, in place of another process."""

    adapter: Any = None

    def __init__(self, *_: object) -> None:
        self.replies: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.popen = SimpleNamespace(pid=0)
        self._server = Server(lambda: self.adapter)

    def send(self, line: bytes) -> None:
        self.replies.put(self._server.answer(line))

    def stop(self, grace: float = 0.0) -> int | None:
        return None

    def stderr_tail(self) -> str:
        return ""


def verdicts(target: Any) -> list[Any]:
    """Return the result of each case (passed, skipped or a different answer), or why the adapter cannot be tested."""
    try:
        implementation = Implementation("odd", target)
    except LoadError as error:
        return [str(error)]
    found: list[Any] = [sorted(implementation.capabilities - {"shared memory"})]
    for one in CASES:
        reason = skip_reason(one, implementation)
        mismatch = None if reason else judge(one, implementation)
        answer = mismatch and mismatch.answer
        if isinstance(answer, Fault) and answer.kind != "Malformed":
            answer = "the call ended the process"
        found.append((one.id, reason, answer if mismatch else "passed"))
    return found


def both(adapter: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[Any]]:
    with monkeypatch.context() as patch:
        patch.setattr(InMemory, "adapter", staticmethod(adapter) if not isinstance(adapter, type) else adapter)
        patch.setattr(client, "Process", InMemory)
        return verdicts(adapter), verdicts(bridge(["program"]))


def encoding(shape: Callable[[list[int]], Any]) -> Any:
    """Return a class whose methods all return ids of another type, except for the text of the first probe."""

    def encode(self: Any, text: str, **choice: Any) -> Any:
        ids = Right.encode(self, text, **choice)
        return ids if text == "ab" else shape(ids)

    def encode_batch(self: Any, texts: list[str]) -> Any:
        return (encode(self, text) for text in texts)

    def encode_iterable(self: Any, chunks: Any) -> Any:
        return encode(self, "".join(chunks))

    methods = {"encode": encode, "encode_batch": encode_batch, "encode_iterable": encode_iterable}
    return type("Odd", (Right,), methods)


def decoding(text: Callable[[str], Any], data: Callable[[bytes], Any]) -> Any:
    return type(
        "Odd",
        (Right,),
        {
            "decode": lambda self, ids: text(Right.decode_bytes(self, ids).decode("utf-8", "replace")),
            "decode_bytes": lambda self, ids: data(Right.decode_bytes(self, ids)),
        },
    )


def training(shape: Callable[[Any], Any]) -> Any:
    def train(cls: Any, text: str, vocab_size: int, special_tokens: list[str]) -> Any:
        return shape(Right.train(text, vocab_size, special_tokens))

    return type("Odd", (Right,), {"train": classmethod(train)})


class Index:
    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


class Text(str):
    __slots__ = ()

    def encode(self, *_: Any) -> Any:
        raise RuntimeError


class Lazy(Mapping[int, bytes]):
    def __init__(self, vocab: dict[int, bytes]) -> None:
        self._vocab = vocab

    def __getitem__(self, key: int) -> bytes:
        return self._vocab[key]

    def __iter__(self) -> Iterator[int]:
        return iter(self._vocab)

    def __len__(self) -> int:
        return len(self._vocab)


class Defaults(Right):
    """For this class only, None does not mean "no special tokens"."""

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = (), pattern: str | None = None) -> None:
        super().__init__(vocab, merges, [*special_tokens], pattern=pattern)

    @classmethod
    def from_files(cls, vocab_path: Any, merges_path: Any, special_tokens: Any = ()) -> Any:
        return super().from_files(vocab_path, merges_path, [*special_tokens])


Table = namedtuple("Table", ["merges", "vocab"])

LEGAL = {
    "plain": Right,
    "tuple": encoding(tuple),
    "generator": encoding(lambda ids: (index for index in ids)),
    "numpy array": encoding(lambda ids: np.array(ids, dtype=np.uint32)),
    "numpy integers": encoding(lambda ids: [np.int64(index) for index in ids]),
    "array": encoding(lambda ids: array("Q", ids)),
    "memoryview": encoding(lambda ids: memoryview(array("Q", ids))),
    "deque": encoding(deque),
    "named tuple": encoding(lambda ids: namedtuple("Ids", [f"id{n}" for n in range(len(ids))])(*ids)),
    "objects with __index__": encoding(lambda ids: [Index(index) for index in ids]),
    "str subclass, bytearray": decoding(Text, bytearray),
    "memoryview of bytes": decoding(str, memoryview),
    "a pair": training(lambda trained: (trained.vocab, trained.merges)),
    "mapping and lists": training(lambda trained: (Lazy(trained.vocab), [list(pair) for pair in trained.merges])),
    "proxy and iterator": training(lambda trained: (MappingProxyType(trained.vocab), iter(trained.merges))),
    "named table": training(lambda trained: Table(trained.merges, trained.vocab)),
    "object without encode": training(lambda trained: SimpleNamespace(vocab=trained.vocab, merges=trained.merges)),
    "bytearrays": training(
        lambda trained: (
            UserDict({np.int64(index): bytearray(token) for index, token in trained.vocab.items()}),
            deque((bytearray(left), memoryview(right)) for left, right in trained.merges),
        )
    ),
    "other defaults": Defaults,
    "a function": lambda vocab, merges, special_tokens=None: Right(vocab, merges, special_tokens),
}


def end(value: int) -> Any:
    raise SystemExit(value)


def panic(_: Any) -> Any:
    raise type("PanicException", (BaseException,), {})("panicked")


ILLEGAL = {
    "bool": (encoding(lambda ids: [True for _ in ids]), "encode returned an id of type bool; expected int"),
    "float": (encoding(lambda ids: [*map(float, ids)]), "encode returned an id of type float; expected int"),
    "numpy floats": (encoding(lambda ids: np.array(ids, float)), "encode returned an id of type float64; expected int"),
    "strings": (encoding(lambda ids: [*map(str, ids)]), "encode returned an id of type str; expected int"),
    "too large": (
        encoding(lambda ids: [index + 2**32 for index in ids]),
        f"encode returned the id {97 + 2**32}; expected an id from 0 to 4294967295",
    ),
    "just too large": (
        encoding(lambda ids: [2**32]),
        "encode returned the id 4294967296; expected an id from 0 to 4294967295",
    ),
    "huge": (
        encoding(lambda ids: [2**5000]),
        "encode returned an id of 5001 bits; expected an id from 0 to 4294967295",
    ),
    "negative": (
        encoding(lambda ids: [-1 - index for index in ids]),
        "encode returned the id -98; expected an id from 0 to 4294967295",
    ),
    "None": (encoding(lambda ids: None), "encode returned None; expected list[int]"),
    "a float": (encoding(lambda ids: 1.0), "encode returned float; expected list[int]"),
    "a str": (encoding(lambda ids: "ids"), "encode returned str; expected list[int]"),
    "bytes": (encoding(lambda ids: bytes(3)), "encode returned bytes; expected list[int]"),
    "a dict": (encoding(lambda ids: dict.fromkeys(ids)), "encode returned dict; expected list[int]"),
    "bytes for text": (decoding(str.encode, bytes), "odd: decode returned bytes; expected str"),
    "text for bytes": (decoding(str, bytes.decode), "odd: decode_bytes returned str; expected bytes"),
    "list for bytes": (decoding(str, list), "odd: decode_bytes returned list; expected bytes"),
    "no table": (training(lambda trained: None), "train returned None; return a Tokenizer with .vocab and .merges"),
    "str tokens": (
        training(lambda trained: (dict.fromkeys(trained.vocab, "a"), trained.merges)),
        "odd: vocab maps int to str; expected int to bytes: encode the tokens",
    ),
    "swapped vocab": (
        training(lambda trained: ({token: index for index, token in trained.vocab.items()}, trained.merges)),
        "odd: vocab maps bytes to int; expected int to bytes",
    ),
    "pairs of ids": (training(lambda trained: (trained.vocab, [(97, 98)])), "odd: merges contains pairs of int; "),
    "no rows": (
        type("Odd", (Right,), {"encode_batch": lambda self, texts: [None for _ in texts]}),
        "encode_batch returned a row of type None; expected list[int]",
    ),
    "no stream": (
        type("Odd", (Right,), {"encode_iterable": lambda self, chunks: None}),
        "encode_iterable returned None; expected an iterator of int",
    ),
    "an exit": (encoding(lambda ids: end(3)), "the call ended the process"),
    "a panic": (encoding(panic), "the call ended the process"),
}


def shown(verdict: Any) -> str:
    return "\n".join(map(str, verdict))


@pytest.mark.parametrize("name", LEGAL)
def test_legal_answers_are_legal_over_the_bridge(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = both(LEGAL[name], monkeypatch)
    assert there == here
    assert len(here) == len(CASES) + 1
    assert {answer for _, _, answer in here[1:]} == {"passed"}


@pytest.mark.parametrize("name", ILLEGAL)
def test_illegal_answers_are_illegal_over_the_bridge(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter, message = ILLEGAL[name]
    here, there = both(adapter, monkeypatch)
    assert there == here
    assert message in shown(here)


def test_verdicts_agree_in_a_real_process(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "odd_shapes.py").write_text(
        "import numpy as np\n"
        "from bpe_conformance.reference import Tokenizer as Right\n"
        "class Odd(Right):\n"
        "    def encode(self, text, **choice):\n"
        "        ids = super().encode(text, **choice)\n"
        "        return np.array(ids, dtype=np.uint32) if text != 'abcab' else [True]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    import odd_shapes  # type: ignore[import-not-found]

    there = isolated("odd_shapes:Odd", time_limit=60)
    try:
        found = verdicts(there)
    finally:
        there.close()
        sys.modules.pop("odd_shapes")
    assert found == verdicts(odd_shapes.Odd)
    assert "an id of type bool" in shown(found)
