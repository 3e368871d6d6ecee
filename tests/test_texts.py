"""The fixed real text: its bytes, its ids under GPT-2's table, and how engines class its characters."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import regex

from bpe_conformance.fixtures import END_OF_TEXT, PATTERNS, gpt2, spell
from bpe_conformance.reference.textbook import Tokenizer

FOLDER = Path(str(files("bpe_conformance.fixtures"))) / "texts"
FILES = sorted(FOLDER.glob("*.txt"))
CHARACTERS = "".join(sorted({char for file in FILES for char in file.read_bytes().decode("utf-8")}))
SCRIPTS = (
    *("Arabic", "Armenian", "Bengali", "Cyrillic", "Devanagari", "Ethiopic", "Georgian", "Greek", "Han"),
    *("Hangul", "Hebrew", "Hiragana", "Katakana", "Latin", "Tamil", "Thai"),
)
WHITE_SPACE = {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F}
WHITE_SPACE |= {0x205F, 0x3000}
CLASSES = (
    *(r"\p{L}", r"\p{N}", r"\p{M}", r"\s", r"[\r\n]"),
    *(r"\p{Lu}", r"\p{Ll}", r"\p{Lt}", r"\p{Lm}", r"\p{Lo}"),
    *(r"(?i:[delmrstv])", r"[^\s\p{L}\p{N}]"),
)

each_text = pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
each_class = pytest.mark.parametrize("character_class", CLASSES)


@lru_cache(maxsize=1)
def stored() -> dict[str, dict[str, Any]]:
    """Text → sha256 and ids, as stored beside the texts."""
    value: dict[str, dict[str, Any]] = json.loads((FOLDER / "gpt2-ids.json").read_bytes())
    return value


@lru_cache(maxsize=1)
def textbook() -> Tokenizer:
    return Tokenizer(*gpt2(), [END_OF_TEXT])


@lru_cache(maxsize=1)
def tiktoken_gpt2() -> Any:
    tiktoken = pytest.importorskip("tiktoken")
    ids = {token: index for index, token in gpt2()[0].items()}
    special = {END_OF_TEXT: ids.pop(END_OF_TEXT.encode())}
    return tiktoken.Encoding("gpt2", pat_str=PATTERNS["gpt2"], mergeable_ranks=ids, special_tokens=special)


@lru_cache(maxsize=1)
def huggingface_gpt2() -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    vocab, merges = gpt2()
    ids = {spell(token): index for index, token in vocab.items() if token != END_OF_TEXT.encode()}
    pairs = [(spell(left), spell(right)) for left, right in merges]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=ids, merges=pairs))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.add_special_tokens([END_OF_TEXT])
    return tokenizer


def matched_by_regex(pattern: str) -> set[str]:
    """Return which of `CHARACTERS` match, by the engine of the spec."""
    return set(regex.findall(pattern, CHARACTERS))


def matched_by_tiktoken(pattern: str) -> set[str]:
    """The same; tiktoken drops what the pattern does not match."""
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)}
    encoding = tiktoken.Encoding("probe", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return set(encoding.decode_bytes(encoding.encode_ordinary(CHARACTERS)).decode("utf-8"))


def matched_by_huggingface(pattern: str) -> set[str]:
    """The same; what is left when the matches are removed did not match."""
    tokenizers = pytest.importorskip("tokenizers")
    remover = tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "removed")
    rest = {char for piece, _ in remover.pre_tokenize_str(CHARACTERS) for char in piece}
    return set(CHARACTERS) - rest


def test_the_size_is_that_of_a_text_which_a_naive_tokenizer_gets_through() -> None:
    sizes = [file.stat().st_size for file in FILES]
    assert 28_000 <= sum(sizes) <= 34_000
    assert max(sizes) <= 1000


def test_the_texts_are_numbered_without_a_gap() -> None:
    assert [int(file.name.split("-")[0]) for file in FILES] == list(range(1, len(FILES) + 1))


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_is_really_there(script: str) -> None:
    assert len(set(regex.findall(rf"\p{{Script={script}}}", CHARACTERS))) >= 15


def test_every_white_space_character_is_there() -> None:
    assert {ord(char) for char in matched_by_regex(r"\s")} == WHITE_SPACE


def test_all_ascii_is_there() -> None:
    assert set(map(chr, range(128))) <= set(CHARACTERS)


@each_text
def test_the_text_is_the_one_that_was_stored(file: Path) -> None:
    assert hashlib.sha256(file.read_bytes()).hexdigest() == stored()[file.name]["sha256"]


def test_the_stored_ids_are_in_one_form() -> None:
    assert list(stored()) == [file.name for file in FILES]
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in stored().items())
    assert (FOLDER / "gpt2-ids.json").read_bytes() == f"{{\n{lines}\n}}\n".encode("ascii")


@each_text
def test_the_ids_are_the_textbooks(file: Path) -> None:
    data = file.read_bytes()
    ids = stored()[file.name]["ids"]
    assert textbook().encode(data.decode("utf-8")) == ids
    assert textbook().decode_bytes(ids) == data


@each_text
def test_the_ids_are_tiktokens(file: Path) -> None:
    text = file.read_bytes().decode("utf-8")
    assert tiktoken_gpt2().encode(text, allowed_special="all") == stored()[file.name]["ids"]


@each_text
def test_the_ids_are_huggingfaces(file: Path) -> None:
    text = file.read_bytes().decode("utf-8")
    assert huggingface_gpt2().encode(text).ids == stored()[file.name]["ids"]


@each_class
def test_tiktoken_has_the_same_characters_in_the_class(character_class: str) -> None:
    assert matched_by_tiktoken(character_class) == matched_by_regex(character_class)


@each_class
def test_huggingface_has_the_same_characters_in_the_class(character_class: str) -> None:
    assert matched_by_huggingface(character_class) == matched_by_regex(character_class)


def test_every_character_is_assigned_in_unicode_12() -> None:
    assert matched_by_tiktoken(r"\p{Age=12.0}") == set(CHARACTERS)
    assert not matched_by_regex(r"\p{Cn}|\p{Cs}")


def test_end_of_text_is_whole_in_one_text_only() -> None:
    whole = [file.name for file in FILES if END_OF_TEXT.encode() in file.read_bytes()]
    assert [name.split("-", 1)[1] for name in whole] == ["special-whole.txt"]
