"""A user's class is checked against the adapter protocol by mypy."""

from __future__ import annotations

import pytest
from mypy import api

CORRECT = """
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from bpe_conformance.protocol import (
    Adapter, Batch, DeclaresConventions, DeclaresPattern, DecodesBytes, LoadsFiles, Saves, Streaming, Trainer
)
from bpe_conformance.protocol import Tokenizer as TokenizerProtocol


class Tokenizer:
    conventions: ClassVar[Mapping[str, str]] = {}
    pattern: ClassVar[str] = "none"

    def __init__(
        self, vocab: dict[int, bytes], merges: list[tuple[bytes, bytes]], special_tokens: list[str] | None = None
    ) -> None:
        self.vocab: Mapping[int, bytes] = vocab
        self.merges: Sequence[tuple[bytes, bytes]] = merges

    def encode(self, text: str) -> list[int]:
        return []

    def decode(self, ids: Sequence[int]) -> str:
        return ""

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str]) -> Tokenizer:
        return cls({}, [])

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield 0

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return []

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        return b""

    def save(self, folder: str) -> None: ...

    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: list[str] | None = None) -> Tokenizer:
        return cls({}, [])


adapter: Adapter[TokenizerProtocol] = Tokenizer
trainer: Trainer = Tokenizer
files: LoadsFiles[TokenizerProtocol] = Tokenizer
declares: DeclaresConventions = Tokenizer
splits: DeclaresPattern = Tokenizer
built = Tokenizer({}, [])
streaming: Streaming = built
batch: Batch = built
decodes_bytes: DecodesBytes = built
saves: Saves = built
"""

BUILT_IN = """
from bpe_conformance.adapters import minimal
from bpe_conformance import reference
from bpe_conformance.protocol import Adapter, ChoosesSpecialTokens, LoadsFiles, Streaming, Tokenizer, Trainer
from bpe_conformance.reference import textbook

adapters: list[Adapter[Tokenizer]] = [reference.Tokenizer, textbook.Tokenizer, minimal.Tokenizer]
trainers: list[Trainer] = [reference.Tokenizer, textbook.Tokenizer]
files: LoadsFiles[Tokenizer] = reference.Tokenizer
built = reference.Tokenizer({}, [])
streaming: Streaming = built
chooses: ChoosesSpecialTokens = built
"""


WRONG = {
    "text": ("def encode(self, text: str)", "def encode(self, text: bytes)"),
    "ids": ("text: str) -> list[int]:\n        return []", "text: str) -> list[str]:\n        return []"),
    "constructor": (
        "special_tokens: list[str] | None = None\n    ) -> None",
        "special_tokens: list[str]\n    ) -> None",
    ),
    "train": ("def train(cls, text: str, vocab_size: int", "def train(cls, text: str, vocab_size: str"),
    "decode": ("def decode(self, ids: Sequence[int])", "def decode(self, ids: list[int])"),
    "instance": ("@classmethod\n    def train(cls", "def train(self"),
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return mypy's messages about each file."""
    sources = {"correct": CORRECT, "built_in": BUILT_IN}
    for name, (old, new) in WRONG.items():
        assert CORRECT.count(old) == 1
        sources[name] = CORRECT.replace(old, new)
    folder = tmp_path_factory.mktemp("checked")
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source, "utf-8")
    output, failed, _ = api.run(["--strict", "--no-error-summary", f"--cache-dir={folder}/cache", str(folder)])
    assert not failed
    lines = [line for line in output.splitlines() if ": error: " in line]
    return {name: [line for line in lines if f"/{name}.py:" in line] for name in sources}


@pytest.mark.release
@pytest.mark.parametrize("name", ["correct", "built_in"])
def test_a_correct_class_is_accepted(errors: dict[str, list[str]], name: str) -> None:
    assert errors[name] == []


@pytest.mark.release
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_signature_is_rejected(errors: dict[str, list[str]], name: str) -> None:
    assert any("Incompatible types in assignment" in line for line in errors[name])
