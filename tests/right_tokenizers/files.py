"""Tokenizers that save GPT-2's two files, with special tokens as text or spelled (FILE-SPECIAL-2 leaves it open)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from .linked import Tokenizer as Linked

PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
OTHERS = [byte for byte in range(0x100) if byte not in PRINTABLE]
SPELLING = {byte: chr(byte) for byte in PRINTABLE} | {byte: chr(0x100 + place) for place, byte in enumerate(OTHERS)}
BYTE = {letter: byte for byte, letter in SPELLING.items()}


def spell(token: bytes) -> str:
    return "".join(SPELLING[byte] for byte in token)


def unspell(name: str) -> bytes:
    return bytes(BYTE[letter] for letter in name)


def write(folder: Path, names: Mapping[str, int], merges: Iterable[tuple[bytes, bytes]]) -> None:
    (folder / "vocab.json").write_text(json.dumps(names, ensure_ascii=False), encoding="utf-8")
    lines = [f"{spell(left)} {spell(right)}\n" for left, right in merges]
    (folder / "merges.txt").write_bytes("".join(["#version: 0.2\n", *lines]).encode())


def read(vocab_path: str, merges_path: str) -> tuple[dict[str, int], list[tuple[bytes, bytes]]]:
    lines = Path(merges_path).read_bytes().decode().replace("\r\n", "\n").split("\n")
    pairs = [line.split(" ") for line in lines[lines[0].startswith("#version") :] if line]
    names: dict[str, int] = json.loads(Path(vocab_path).read_bytes())
    return names, [(unspell(left), unspell(right)) for left, right in pairs]


class AsText(Linked):
    """Writes a special token to vocab.json as its text."""

    def save(self, folder: str) -> None:
        special = {token.encode(): token for token in self.special}
        write(Path(folder), {special.get(token) or spell(token): i for i, token in self.vocab.items()}, self.merges)

    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: list[str] | None = None) -> AsText:
        names, merges = read(vocab_path, merges_path)
        known = set(special_tokens or ())
        vocab = {i: name.encode() if name in known else unspell(name) for name, i in names.items()}
        return cls(vocab, merges, special_tokens)


class SpelledOnly(Linked):
    """Spells special tokens like all others, and reads them back."""

    def save(self, folder: str) -> None:
        write(Path(folder), {spell(token): i for i, token in self.vocab.items()}, self.merges)

    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: list[str] | None = None) -> SpelledOnly:
        names, merges = read(vocab_path, merges_path)
        return cls({i: unspell(name) for name, i in names.items()}, merges, special_tokens)
