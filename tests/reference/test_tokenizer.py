"""The methods of `Tokenizer` agree with one another and reject invalid arguments."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bpe_conformance.fixtures import PATTERNS, gpt2, gpt2_model
from bpe_conformance.reference import Tokenizer

BYTES = {byte: bytes([byte]) for byte in range(256)}


def test_special_tokens_absent_from_the_vocabulary_get_the_next_ids() -> None:
    vocab = {**BYTES, 300: b"ab"}
    tokenizer = Tokenizer(vocab, [(b"a", b"b")], ["<e>", "ab", "<f>", "<e>"])
    assert {index: tokenizer.vocab[index] for index in (300, 301, 302)} == {
        300: b"ab",
        301: b"<e>",
        302: b"<f>",
    }
    assert tokenizer.encode("<f>ab<e>") == [302, 300, 301]
    assert tokenizer.special_tokens == ["<e>", "ab", "<f>"]
    assert len(vocab) == 257


def test_segments_are_split_independently() -> None:
    vocab, merges = gpt2()
    tokenizer = Tokenizer(vocab, merges, ["<|e|>"])
    ids = tokenizer.encode("a  <|e|>  b")
    assert ids == [*tokenizer.encode("a  "), 50257, *tokenizer.encode("  b")]
    assert [tokenizer.vocab[index] for index in ids] == [b"a", b" ", b" ", b"<|e|>", b" ", b" b"]


def test_an_entry_that_looks_special_is_ordinary_text() -> None:
    vocab, merges = gpt2()
    assert 50256 not in Tokenizer(vocab, merges).encode("<|endoftext|>")
    assert Tokenizer(vocab, merges, ["<|endoftext|>"]).encode("<|endoftext|>") == [50256]


def test_encode_uses_first_of_two_ids_for_the_same_bytes() -> None:
    tokenizer = Tokenizer({**BYTES, 256: b"a"}, [])
    assert tokenizer.encode("a") == [97]
    assert tokenizer.decode([256]) == "a"


@pytest.mark.parametrize(
    ("vocab", "merges", "message"),
    [
        ({i: t for i, t in BYTES.items() if i != 7}, [], r"the vocabulary has no token for the byte b'\x07'"),
        ({}, [], r"no token for the byte b'\x00'"),
        (BYTES, [(b"a", b"b")], "lacks b'ab', the result of merge 0: (b'a', b'b')"),
        ({**BYTES, 256: b"abc"}, [(b"ab", b"c")], "lacks b'ab', the left part of merge 0"),
        ({**BYTES, 256: b"abc"}, [(b"a", b"bc")], "lacks b'bc', the right part of merge 0"),
        (
            {token: index for index, token in BYTES.items()},
            [],
            r"vocab maps b'\x00' to 0; it must map ids (int) to tokens",
        ),
        ({i: t.decode("latin-1") for i, t in BYTES.items()}, [], "it must map ids (int) to tokens (bytes)"),
    ],
)
def test_invalid_table_is_rejected(vocab: Any, merges: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        Tokenizer(vocab, merges)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ids", [[256], [-1], [97, 10**9]])
def test_an_unknown_id_is_refused(ids: list[int]) -> None:
    with pytest.raises(ValueError, match=f"the id {ids[-1]} is not in the vocabulary"):
        Tokenizer(BYTES, []).decode(ids)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xe2\x82\xac", "€"),
        (b"\xed\xa0\x80", "\ufffd" * 3),
        (b"\xf4\x90\x80\x80", "\ufffd" * 4),
        (b"\xf0\x80\x80", "\ufffd" * 3),
        (b"\xc0\xaf", "\ufffd" * 2),
        (b"\xf0\x9f\xa6", "\ufffd"),
        (b"\xef\xbb\xbfa", "\ufeffa"),
        (b"", ""),
    ],
)
def test_bytes_are_joined_before_they_are_decoded(data: bytes, text: str) -> None:
    tokenizer = Tokenizer(BYTES, [])
    assert tokenizer.decode(data) == text
    assert tokenizer.decode_bytes(iter(data)) == data


def test_tokenizer_copies_its_arguments() -> None:
    vocab, merges, special = {**BYTES, 256: b"ab"}, [(b"a", b"b")], ["<e>"]
    before = copy.deepcopy((vocab, merges, special))
    tokenizer = Tokenizer(vocab, merges, special)
    assert (vocab, merges, special) == before
    vocab.clear()
    merges.clear()
    special.clear()
    first = tokenizer.encode("ab ab")
    first.clear()
    tokenizer.special_tokens.clear()
    assert tokenizer.encode("ab ab<e>") == [256, 32, 256, 257]


def test_encode_batch_equals_encode() -> None:
    tokenizer = Tokenizer.train("low lower", 260)
    texts = ["low", "", "lower low"]
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]
    assert tokenizer.encode_batch(iter([])) == []
    with pytest.raises(ValueError, match="texts is a string"):
        tokenizer.encode_batch("low")


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        Tokenizer(BYTES, []).encode("a\ud800b")


@pytest.mark.parametrize("name", [None, *PATTERNS])
def test_save_and_load_restore_the_tokenizer(name: str | None, tmp_path: Path) -> None:
    special = ["<|e|>", "<a b>", "é"]
    tokenizer = Tokenizer.train("low lower<|e|> mañana 🦊 # #version x y", 290, special, pattern=name)
    tokenizer.save(tmp_path / "new" / "folder")
    files = tmp_path / "new" / "folder" / "vocab.json", tmp_path / "new" / "folder" / "merges.txt"
    loaded = Tokenizer.from_files(*files, special, pattern=name)
    assert (loaded.vocab, loaded.merges) == (tokenizer.vocab, tokenizer.merges)
    text = "lowest é<a b> <|e|>mañana\n"
    assert loaded.encode(text) == tokenizer.encode(text)
    assert sorted(path.name for path in files[0].parent.iterdir()) == ["merges.txt", "vocab.json"]


def test_model_round_trips() -> None:
    tokenizer = Tokenizer.from_model(gpt2_model())
    assert tokenizer.model == gpt2_model()
    assert pickle.loads(pickle.dumps(tokenizer)).encode("hello world") == tokenizer.encode("hello world")


def test_import_does_not_load_numpy() -> None:
    heavy = "numpy tiktoken tokenizers pytest hypothesis jsonschema bpe_conformance.reference.textbook"
    code = f"import sys, bpe_conformance.reference; print([m for m in {heavy.split()!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
