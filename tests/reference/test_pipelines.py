"""The pipeline of a model: random ones are read, written and applied as `tokenizers` does."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bpe_conformance.answer import Offsets
from bpe_conformance.fixtures import PATTERNS, Model, read_model, unspell
from bpe_conformance.fixtures.characters import NORMAL_FORMS
from bpe_conformance.fixtures.pipeline import (
    BEHAVIORS,
    AddedToken,
    ByteLevel,
    Digits,
    Pipeline,
    Punctuation,
    Split,
    Step,
)
from bpe_conformance.operations import EncodeWithOffsets, Setting
from bpe_conformance.operations.offsets import EXACT
from bpe_conformance.reference import Tokenizer, dispatch, file_encoding, textbook
from bpe_conformance.reference.encoder import SINGLE_BYTES
from bpe_conformance.reference.formats import huggingface

tokenizers = pytest.importorskip("tokenizers")
MANY = int(os.environ.get("BPE_EXAMPLES", "150"))
profile = settings(
    max_examples=MANY,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
PIECES = [
    *["a", "b", "ab", "abc", " ", "  ", "\n", "\t", "\u3000", "1", "23", "²", "½", "Ⅷ", "-", "--", "!", "$", "_", "'s"],
    *[
        "é",
        "e\u0301",
        "\u0301",
        "ﬁ",
        "Å",
        "K",
        "Ａ",
        "<s>",
        "<",
        ">",
        "日",
        "本",
        "。",
        "，",
        "が",
        "か\u3099",
        "\u0323",
    ],
    *[
        "a b",
        "x\ny",
        "a <s>",
        "<a>\nb",
        "\u00a0",
        "\u00a8",
        "x",
        "X",
        "\r\n",
        "a b",
        "<a>",
        "🦊",
        "ǅ",
        "क\u093f",
        "\x00",
        "\u200b",
        "\u212a",
        "<s>  x",
        "<s>\t\t  b",
    ],
]
CONTENTS = ["<s>", "ab", "abc", "b", "<a>", "<a>b", " x", "é", "e\u0301", "éé", "\n", "  ", "1", "K", "ﬁ", "Ġ", "日本"]
EXPRESSIONS = [
    *[*PATTERNS.values(), r"\p{N}{1,3}", r"\p{N}", r"[一-龥぀-ゟ゠-ヿ]+", r"\s+(?!\S)|\s+", "[0-9][0-9][0-9]", "", "|a"],
    *[
        r"(?=b)",
        r" ?[^(\s|[.,!?…。，、|_])]+",
        r"[\r\n]",
        r"\s+(?m:$)",
        r"(?:\p{N}{1,2})+",
        "-",
        "b|a-",
        r"Ġ|²",
        r"[^Ġ]+",
    ],
    *[r"[\p{Han}]+|[^\s&&[^\p{Han}]]+", r"[\p{Alphabetic}\p{M}\p{N}\p{Pc}]+", r"(?>a|ab)b?", "(a)|b"],
]
TEXTS = st.lists(st.sampled_from([*PIECES, *CONTENTS]), max_size=10).map("".join)
STEPS = st.one_of(
    st.builds(Split, st.sampled_from(EXPRESSIONS), st.sampled_from(BEHAVIORS), st.booleans()),
    st.builds(Digits, st.booleans()),
    st.builds(Punctuation, st.sampled_from(BEHAVIORS)),
)


@st.composite
def models(draw: st.DrawFn) -> Model:
    bytes_ = [bytes([byte]) for byte in range(256)]
    if draw(st.integers(0, 4)) == 0:
        absent = draw(st.sampled_from([(0xC0, 0xC1, *range(0xF5, 256)), (ord("b"),), (0xE6, 0x20)]))
        bytes_ = [byte for byte in bytes_ if byte[0] not in absent]
    tokens, merges = list(bytes_), []
    for text in draw(st.lists(TEXTS, max_size=4)):
        word = [byte for byte in map(bytes, zip(text.encode()[:9])) if byte in bytes_]
        while len(word) > 1:
            pair = tuple(word[:2])
            word[:2] = [b"".join(pair)]
            if word[0] not in tokens:
                tokens.append(word[0])
                merges.append(pair)
    merges = draw(st.permutations(merges))
    whole = [text.encode() for text in draw(st.lists(TEXTS, max_size=2)) if text]
    tokens = list(dict.fromkeys([*tokens, *whole]))
    form = st.sampled_from([(), (), ("NFC",), *((name,) for name in NORMAL_FORMS), ("NFD", "NFKC")])
    flags = st.sampled_from([False, False, True])
    chosen = st.builds(AddedToken, st.sampled_from(CONTENTS), *[flags] * 4)
    late = draw(st.booleans())
    begun = [AddedToken("<s>", late, rstrip=True), AddedToken(" x", late), AddedToken("\t\t", late)]
    added = draw(st.lists(chosen, max_size=4, unique_by=lambda t: t.content) | st.just(begun).map(list))
    vocab = dict(enumerate(tokens))
    for number, token in enumerate(added):
        index = next((index for index, known in vocab.items() if known == unspelled(token.content)), len(vocab))
        is_known = token.content.encode() in vocab.values() and vocab.get(index) != token.content.encode()
        vocab.setdefault(index, token.content.encode())
        if is_known or vocab[index] != token.content.encode():
            added[number] = replace(token, id=index)
    before, after = draw(st.lists(STEPS, max_size=2)), draw(st.lists(STEPS, max_size=draw(st.sampled_from([0, 0, 1]))))
    steps: list[Step] = [*before, ByteLevel(draw(flags), draw(st.booleans())), *after]
    pipeline = Pipeline(draw(form), tuple(added), tuple(steps), draw(st.sampled_from(["pair", "whole"])))
    return Model(vocab, tuple(merges), tuple(token.content for token in added), pipeline=pipeline)


def unspelled(text: str) -> bytes:
    try:
        return unspell(text)
    except ValueError:
        return text.encode()


def written(model: Model, file: Path) -> bool:
    """Write the model, or return False if the format cannot represent it; the message is one line."""
    try:
        huggingface.write(file, model)
    except ValueError as error:
        if "\n" in str(error):
            raise
        return False
    return True


def book(model: Model) -> textbook.Tokenizer:
    return textbook.Tokenizer(model.vocab, model.merges, model.special_tokens, model.pattern, model.pipeline)


@pytest.mark.slow
@profile
@given(model=models(), texts=st.lists(TEXTS, min_size=1, max_size=8))
def test_random_pipelines_round_trip_and_encode_as_tokenizers_does(
    model: Model, texts: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "tokenizer.json"
    if not written(model, file):
        return
    back = huggingface.read(file)
    if back.pipeline is not None:
        assert back == model
        assert dict(back.vocab) == dict(model.vocab)
    theirs, ours = tokenizers.Tokenizer.from_file(str(file)), Tokenizer.from_model(back)
    setting = Setting(back, clause=EXACT)
    drops = not {*back.vocab.values()}.issuperset(SINGLE_BYTES)  # bytes, which the offsets of tokenizers leave out
    for text in texts:
        encoding = theirs.encode(text, add_special_tokens=False)
        assert book(model).encode(text) == encoding.ids, text
        assert ours.encode(text) == encoding.ids, text
        right = EncodeWithOffsets(text).computed(setting)
        assert all(0 <= start <= end <= len(text) for start, end in right.spans), (text, right)
        assert ours.encode_with_offsets(text) == (list(right.ids), list(right.spans)), text
        answer = Offsets(tuple(encoding.ids), tuple(encoding.offsets))
        assert drops or EncodeWithOffsets(text).accepts(right, answer, setting), (text, right, answer)


@pytest.mark.slow
@profile
@given(data=st.data(), model=models(), texts=st.lists(TEXTS, min_size=1, max_size=8))
def test_every_way_to_encode_gives_the_ids_of_the_textbook(
    data: st.DataObject, model: Model, texts: list[str], tmp_path: Path
) -> None:
    uses_arrays = data.draw(st.booleans())
    model = data.draw(st.sampled_from([model, *fenced(model)]))
    oracle, ours = book(model), Tokenizer.from_model(model)
    with pytest.MonkeyPatch.context() as patched:
        if uses_arrays:
            patched.setattr("bpe_conformance.reference.dispatch.PREPARED_FROM", 0)
            patched.setitem(dispatch.ARRAYS_FROM, "encode", 0)
        expected = [oracle.encode(text) for text in texts]
        assert [ours.encode(text) for text in texts] == expected
        assert ours.encode_batch(texts) == expected
        text = "".join(texts)
        ids = oracle.encode(text)
        assert ours.encode_to_numpy(text).tolist() == ids
        cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
        chunks = [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]
        assert list(ours.encode_iterable(chunks)) == ids, chunks
        assert list(pickle.loads(pickle.dumps(ours)).encode_iterable(text)) == ids
        allowed = set(data.draw(st.lists(st.sampled_from(CONTENTS), max_size=3)))
        keywords: Any = {"allowed_special": allowed, "disallowed_special": ()}
        assert ours.encode(text, **keywords) == oracle.encode(text, **keywords)
        assert ours.encode_ordinary(text) == oracle.encode(text, allowed_special=(), disallowed_special=())
        (tmp_path / "text").write_bytes(text.encode())
        ours.encode_file(tmp_path / "text", tmp_path / "ids", bits=32)
        assert np.fromfile(tmp_path / "ids", "<u4").tolist() == ids
        assert ours.decode_bytes(ids) == oracle.decode_bytes(ids)


@pytest.mark.parametrize(("invert", "splits_before"), [*product((False, True), repeat=2)])
@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_an_empty_match_adds_no_piece_that_gets_a_prefix_space(
    behavior: str, invert: bool, splits_before: bool
) -> None:
    before = (Split(" "),) if splits_before else ()
    for expression in ("(?=b)", "(?<=a)b", "|a", "-|", "-"):
        steps = (*before, Split(expression, behavior, invert), ByteLevel(prefix_space=True))
        model = replace(read_model({"merges": [["a", "b"], [" ", "b"]]}), pipeline=Pipeline(steps=steps))
        oracle, ours, setting = book(model), Tokenizer.from_model(model), Setting(model, clause=EXACT)
        for text in ("b", "ab", "a-b", "--", " ab b", ""):
            assert ours.encode(text) == oracle.encode(text), (expression, text)
            right = EncodeWithOffsets(text).computed(setting)
            assert ours.encode_with_offsets(text) == (list(right.ids), list(right.spans)), (expression, text)


def fenced(model: Model) -> list[Model]:
    """Return models with the steps of published ones, for which streams are cut at fences and arrays are used."""
    assert model.pipeline is not None
    flags: Any = {"lstrip": False, "rstrip": False, "single_word": False}
    plain = tuple(replace(token, **flags) for token in model.pipeline.added_tokens)
    steps = [[ByteLevel()], *([Split(PATTERNS[name]), ByteLevel(split=False)] for name in ("llama3", "qwen2", "o200k"))]
    pipelines = [
        replace(model.pipeline, added_tokens=added, steps=tuple(each))
        for each in steps
        for added in (model.pipeline.added_tokens, plain)
    ]
    return [replace(model, pipeline=pipeline) for pipeline in pipelines]


TOKEN = AddedToken("<m>")
KANA = "\u304c"
LLAMA = (Split(PATTERNS["llama3"]), ByteLevel(split=False))


@pytest.mark.parametrize(
    ("pipeline", "text", "joined"),
    [
        (Pipeline(added_tokens=(replace(TOKEN, rstrip=True),)), "a<m> b c", ""),
        (Pipeline(added_tokens=(replace(TOKEN, lstrip=True),)), "a\n<m>\nb", ""),
        (Pipeline(added_tokens=(AddedToken("\n", single_word=True),)), "a b-\nc", ""),
        (Pipeline(added_tokens=(AddedToken("x"), AddedToken("ab", single_word=True))), "xab xab", ""),
        (Pipeline(added_tokens=(AddedToken("x"), replace(TOKEN, rstrip=True))), "x<m>  x", ""),
        (Pipeline(("NFKC",), (AddedToken("x\u00a0y", normalized=True),)), "a x y z", ""),
        (Pipeline(("NFC",), (AddedToken("x", normalized=True),)), "a b x\u0301 c", ""),
        (Pipeline(("NFC",), (AddedToken("e\u0301", normalized=True),)), "a e\u0301 \u00e9 c", ""),
        (Pipeline(("NFC",), (AddedToken("\u0301x", normalized=True),)), "a e\u0301x a e\u0301x", ""),
        (Pipeline(("NFC",)), "a e\u0301 c", "\u00e9"),
        (Pipeline(("NFD",)), f"{KANA}、b", "\u3099、"),
        (Pipeline(("NFD",)), f"a b{KANA}、b{KANA}、b", "\u3099、"),
        (Pipeline(("NFKD",), steps=LLAMA), f"a b{KANA}、b{KANA}、b", "\u3099、b"),
        (Pipeline(steps=LLAMA, lookup="whole"), "a bb cc bb", ""),
        (Pipeline(steps=(Split(r"\s?\S+"), ByteLevel(split=False)), lookup="whole"), "a bb cc bb", ""),
    ],
)
@pytest.mark.parametrize("from_size", [0, 1 << 30])
def test_nothing_is_cut_where_it_changes_ids(
    pipeline: Pipeline, text: str, joined: str, from_size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "PREPARED_FROM", 0)
    monkeypatch.setitem(dispatch.ARRAYS_FROM, "encode", from_size)
    monkeypatch.setattr(file_encoding, "CHUNK_SIZE", 4)
    tokens = [*(bytes([byte]) for byte in range(256)), *(token.content.encode() for token in pipeline.added_tokens)]
    merges, word = [], joined.encode()
    for size in range(1, len(word)):
        merges.append((word[:size], word[size : size + 1]))
    every = dict.fromkeys([*tokens, *(left + right for left, right in merges), b" bb"])
    special = tuple(token.content for token in pipeline.added_tokens)
    model = Model(dict(enumerate(every)), tuple(merges), special, pipeline=pipeline)
    ids, ours = book(model).encode(text), Tokenizer.from_model(model)
    assert ours.encode(text) == ids
    assert list(ours.encode_iterable(text)) == ids
    (tmp_path / "text").write_bytes(text.encode())
    for workers in (1, 2):
        ours.encode_file(tmp_path / "text", tmp_path / "ids", bits=32, workers=workers)
        assert np.fromfile(tmp_path / "ids", "<u4").tolist() == ids


def test_streams_yield_at_fences_and_added_tokens_as_soon_as_ids_are_certain() -> None:
    vocab = {byte: bytes([byte]) for byte in range(256)} | {256: b"<m>"}
    qwen = Pipeline(("NFC",), (TOKEN,), (Split(PATTERNS["qwen2"]), ByteLevel(split=False)))
    digits = Pipeline(("NFKC",), (TOKEN,), (Digits(), ByteLevel()))
    for pipeline, text, many in ((qwen, "one two", 3), (qwen, "one<m>", 4), (digits, "one two<m>", 8)):
        chunks = iter(text + "three")
        stream = Tokenizer(vocab, [], pipeline=pipeline).encode_iterable(chunks)
        assert len([next(stream) for _ in range(many)]) == many
        assert "".join(chunks).endswith("hree")


def test_spans_begin_in_order_where_a_space_is_added_between_parts_of_one_character() -> None:
    steps = (Split("[a-z]+", "Isolated"), ByteLevel(prefix_space=True))
    model = replace(read_model({}), pipeline=Pipeline(("NFD",), (), steps))
    ids, spans = Tokenizer.from_model(model).encode_with_offsets("\u00e9")
    assert bytes(ids).decode() == " e \u0301"
    assert spans == [(0, 0), (0, 1), (0, 0), (0, 1), (0, 1)]
    assert (ids, spans) == book(model).encode_with_offsets("\u00e9")


def test_spans_go_through_every_byte_level_step() -> None:
    steps = (ByteLevel(split=False), ByteLevel(prefix_space=True), Punctuation())
    model = replace(read_model({}), pipeline=Pipeline((), (), steps))
    ids, spans = Tokenizer.from_model(model).encode_with_offsets("\u00e9 a")
    assert bytes(ids).decode() == " \u00c3\u00a9\u0120a"
    assert (ids, spans) == book(model).encode_with_offsets("\u00e9 a")
