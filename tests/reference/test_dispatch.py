"""The choice between the plain modules and arrays: when each is used, and that both give the same ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_conformance.fixtures import gpt2_model
from bpe_conformance.reference import Tokenizer, dispatch, textbook
from bpe_conformance.reference.dispatch import LARGEST_ID, EncodingChoice
from bpe_conformance.reference.encoder import PreTokenEncoder
from bpe_conformance.reference.merging import merge_by_scan
from bpe_conformance.reference.text_encoder import TextEncoder

LEAST, PREPARED = dispatch.ARRAYS_FROM["encode"], dispatch.PREPARED_FROM
SIZES = st.sampled_from([0, 1, LEAST - 1, LEAST, LEAST + 1, PREPARED - LEAST, PREPARED - 1, PREPARED, PREPARED + 1])


@given(st.lists(SIZES, max_size=12))
def test_arrays_take_long_texts_once_there_was_enough_text(sizes: list[int]) -> None:
    choice = EncodingChoice(range(300))
    for place, size in enumerate(sizes):
        assert choice.uses_arrays(size) == (size >= LEAST and sum(sizes[: place + 1]) >= PREPARED)


@pytest.mark.parametrize(
    ("ids", "fits"),
    [
        (range(256), True),
        (range(7, LARGEST_ID + 1), True),
        (range(LARGEST_ID + 2), False),
        (range(-1, 256), False),
    ],
)
def test_arrays_take_only_ids_that_fit(ids: range, fits: bool) -> None:
    assert EncodingChoice(ids).uses_arrays(PREPARED) == fits


METHODS: dict[str, Callable[[Tokenizer, str], Any]] = {
    "encode": lambda one, text: one.encode(text),
    "encode_batch": lambda one, text: one.encode_batch([text[:9], text[9:]]),
    "encode_to_numpy": lambda one, text: one.encode_to_numpy(text).tolist(),
    "encode_iterable": lambda one, text: list(one.encode_iterable([text[:9], text[9:]])),
}
TEXT = "The quick<|endoftext|> brown fox, isn't it?  " * 3


@pytest.mark.parametrize("path", ["plain", "arrays"])
@pytest.mark.parametrize("method", METHODS)
def test_each_path_gives_the_ids_of_the_textbook(method: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = gpt2_model()
    oracle = textbook.Tokenizer(model.vocab, model.merges, model.special_tokens)
    texts = [TEXT[:9], TEXT[9:]]
    expected = [oracle.encode(text) for text in texts] if method == "encode_batch" else oracle.encode(TEXT)
    monkeypatch.setitem(dispatch.ARRAYS_FROM, "encode", 0)
    monkeypatch.setattr(dispatch, "PREPARED_FROM", 0 if path == "arrays" else 1 << 60)
    used: list[str] = []
    bulk = TextEncoder._bulk

    def counted(self: TextEncoder) -> AbstractContextManager[Any]:
        used.append(path)
        return bulk(self)

    monkeypatch.setattr(TextEncoder, "_bulk", counted)
    assert METHODS[method](Tokenizer.from_model(model), TEXT) == expected
    assert bool(used) == (path == "arrays")


def test_caches_over_arrays_serve_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setitem(dispatch.ARRAYS_FROM, "encode", 0)
    monkeypatch.setattr(dispatch, "PREPARED_FROM", 0)
    one = Tokenizer.train(TEXT, 300, ["<|endoftext|>"])
    for _ in range(2):
        assert one.encode(TEXT) == textbook.Tokenizer(one.vocab, one.merges, one.special_tokens).encode(TEXT)
        made.append(id(one._text_encoder._idle[0]))
        assert len(one._text_encoder._idle) == 1
    assert made[0] == made[1]


@pytest.mark.parametrize("is_prepared", [False, True])
@given(word=st.text("abc", max_size=12).map(str.encode))
def test_a_long_pre_token_is_merged_over_arrays_once_they_exist(is_prepared: bool, word: bytes) -> None:
    ids = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b"abc": 257}
    encoder = PreTokenEncoder(ids, [(b"a", b"b"), (b"ab", b"c")])
    merged: list[list[bytes]] = []
    if is_prepared:
        merge = encoder.bulk_ranks.merge
        encoder.bulk_ranks.merge = lambda words: (merged.append(words), merge(words))[1]  # type: ignore
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(dispatch.ARRAYS_FROM, "merge", 5)
        found = encoder.merge(word)
    assert found == merge_by_scan(list(word), encoder.ranks)
    assert merged == ([[word]] if is_prepared and len(word) >= 5 else [])
    assert {type(index) for index in found} <= {int}


@pytest.mark.parametrize(("index", "fits"), [(-1, False), (256, True), ((1 << 32) - 1, True), (1 << 32, False)])
def test_an_array_has_only_ids_of_32_bits(index: int, fits: bool) -> None:
    one = Tokenizer({byte: bytes([byte]) for byte in range(256)} | {index: b"ab"}, [(b"a", b"b")])
    assert one.encode_to_numpy("").tolist() == []
    assert one.encode_to_numpy("\0b").tolist() == [0, 98]
    if fits:
        assert one.encode_to_numpy("abb").tolist() == [index, 98]
    else:
        with pytest.raises(OverflowError, match=f"ids from {min(98, index)} to {max(98, index)} do not fit"):
            one.encode_to_numpy("abb")


def chunks(text: str) -> Iterator[str]:
    yield from text


def test_an_interrupted_stream_over_arrays_leaves_the_encoder_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(dispatch.ARRAYS_FROM, "encode", 0)
    monkeypatch.setattr(dispatch, "PREPARED_FROM", 0)
    one = Tokenizer.train(TEXT, 300, ["<|endoftext|>"])
    stream = one.encode_iterable(chunks(TEXT))
    begun = [next(stream) for _ in range(3)]
    whole = one.encode(TEXT)
    assert begun == whole[:3]
    assert [*begun, *stream] == whole
