"""Incorrect files: the lines of merges.txt, the ids of vocab.json, the spelling of bytes, special tokens, saving."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from bpe_conformance.fixtures import GPT2_BYTE_ORDER, Merge, spell, unspell

from .correct import Encoder
from .variants import add_variants


class _Reader(Encoder):
    """Reads in steps: the lines of merges.txt, the entries of vocab.json, a spelling. It is correct."""

    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: Sequence[str] | None = None) -> Encoder:
        special = set(special_tokens or ())
        entries: dict[str, int] = json.loads(Path(vocab_path).read_bytes())
        vocab = {index: cls.token(spelling, special) for spelling, index in cls.entries(entries)}
        merges = [cls.pair(line) for line in cls.lines(Path(merges_path).read_bytes().decode("utf-8"))]
        return cls(vocab, cls.order(merges, vocab), special_tokens)

    @classmethod
    def lines(cls, text: str) -> list[str]:
        lines = text.replace("\r\n", "\n").split("\n")
        return [line for line in lines[lines[0].startswith("#version") :] if line]

    @classmethod
    def pair(cls, line: str) -> Merge:
        left, right = line.split(" ")
        return cls.bytes_of(left), cls.bytes_of(right)

    @classmethod
    def order(cls, merges: list[Merge], vocab: dict[int, bytes]) -> list[Merge]:
        return merges

    @classmethod
    def entries(cls, entries: dict[str, int]) -> Iterable[tuple[str, int]]:
        return entries.items()

    @classmethod
    def token(cls, spelling: str, special: set[str]) -> bytes:
        return spelling.encode("utf-8") if spelling in special else cls.bytes_of(spelling)

    @classmethod
    def bytes_of(cls, spelling: str) -> bytes:
        return unspell(spelling)


# The lines of merges.txt


class HeaderComparedWhole(_Reader):
    @classmethod
    def lines(cls, text: str) -> list[str]:
        lines = text.replace("\r\n", "\n").split("\n")
        return [line for line in lines[lines[0] == "#version: 0.2" :] if line]


class CarriageReturnKept(_Reader):
    @classmethod
    def lines(cls, text: str) -> list[str]:
        lines = text.split("\n")
        return [line for line in lines[lines[0].startswith("#version") :] if line]

    @classmethod
    def bytes_of(cls, spelling: str) -> bytes:
        return b"".join(
            character.encode("utf-8") if character == "\r" else unspell(character) for character in spelling
        )


class LastLineDropped(_Reader):
    @classmethod
    def lines(cls, text: str) -> list[str]:
        lines = text.replace("\r\n", "\n").split("\n")
        return lines[lines[0].startswith("#version") : -1]


class RanksByResultId(_Reader):
    @classmethod
    def order(cls, merges: list[Merge], vocab: dict[int, bytes]) -> list[Merge]:
        ids = {token: index for index, token in vocab.items()}
        return sorted(merges, key=lambda pair: ids[pair[0] + pair[1]])


# The ids of vocab.json


class IdsFromMerges(_Reader):
    @classmethod
    def order(cls, merges: list[Merge], vocab: dict[int, bytes]) -> list[Merge]:
        made = [left + right for left, right in merges]
        others = [token for token in vocab.values() if len(token) > 1 and token not in made]
        tokens = [*(bytes([byte]) for byte in GPT2_BYTE_ORDER), *made, *others]
        vocab.clear()
        vocab.update(enumerate(tokens))
        return merges


# The spelling of bytes


class OnlySpaceAndLineEndMapped(_Reader):
    @classmethod
    def bytes_of(cls, spelling: str) -> bytes:
        text = spelling.replace("Ġ", " ").replace("Ċ", "\n")
        return text.encode("utf-8") if len(spelling) > 1 else unspell(spelling)


class _OtherMap(_Reader):
    """Reads and writes with a byte map other than GPT-2's. The bytes in `printable` are spelled as themselves."""

    printable: Sequence[int] = ()

    @classmethod
    @cache
    def characters(cls) -> dict[int, str]:
        others = [byte for byte in range(256) if byte not in cls.printable]
        return {byte: chr(0x100 + others.index(byte)) if byte in others else chr(byte) for byte in range(256)}

    @classmethod
    @cache
    def values(cls) -> dict[str, bytes]:
        return {character: bytes([byte]) for byte, character in cls.characters().items()}

    @classmethod
    def bytes_of(cls, spelling: str) -> bytes:
        return b"".join(cls.values().get(one) or one.encode("utf-8") for one in spelling)

    def save(self, folder: str) -> None:
        characters = self.characters()
        entries = {"".join(map(characters.__getitem__, token)): index for index, token in self.vocab.items()}
        lines = [" ".join("".join(map(characters.__getitem__, part)) for part in pair) for pair in self.merges]
        Path(folder, "vocab.json").write_text(json.dumps(entries), "utf-8")
        Path(folder, "merges.txt").write_text("\n".join(["#version: 0.2", *lines, ""]), "utf-8")


# Special tokens


class SpecialsNotLoaded(_Reader):
    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: Sequence[str] | None = None) -> Encoder:
        loaded = super().from_files(vocab_path, merges_path, special_tokens)
        loaded.special.clear()
        return loaded


class LoadedEntriesThatLookSpecial(_Reader):
    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: Sequence[str] | None = None) -> Encoder:
        keys = json.loads(Path(vocab_path).read_bytes())
        looks = [key for key in keys if key.startswith("<|") and key.endswith("|>")]
        return super().from_files(vocab_path, merges_path, [*(special_tokens or ()), *looks])


# Saving


class _Writer(Encoder):
    """Writes in steps: a spelling, the entries of vocab.json, the merges, a line. It is correct."""

    def save(self, folder: str) -> None:
        entries = {self.spelling(token): index for index, token in self.entries()}
        Path(folder, "vocab.json").write_text(json.dumps(entries), "utf-8")
        lines = [self.line(self.spelling(left), self.spelling(right)) for left, right in self.pairs()]
        Path(folder, "merges.txt").write_text("\n".join(["#version: 0.2", *lines, ""]), "utf-8")

    def spelling(self, token: bytes) -> str:
        return spell(token)

    def entries(self) -> Iterable[tuple[int, bytes]]:
        return self.vocab.items()

    def pairs(self) -> Sequence[Merge]:
        return self.merges

    def line(self, left: str, right: str) -> str:
        return f"{left} {right}"


class SavedWithoutSpecials(_Writer):
    def entries(self) -> Iterable[tuple[int, bytes]]:
        special = {token.encode("utf-8") for token in self.special}
        return [(index, token) for index, token in self.vocab.items() if token not in special]


class SavedMergesByRankAsText(_Writer):
    def pairs(self) -> Sequence[Merge]:
        ranks = sorted(map(str, range(len(self.merges))))
        return [self.merges[int(rank)] for rank in ranks]


class SavedInverted(_Writer):
    def save(self, folder: str) -> None:
        super().save(folder)
        Path(folder, "vocab.json").write_text(json.dumps({i: spell(token) for i, token in self.vocab.items()}), "utf-8")


add_variants(
    __name__,
    _Reader,
    lines={
        "FirstLineDropped": lambda cls, text: [line for line in text.replace("\r\n", "\n").split("\n")[1:] if line],
        "HeaderIsMerge": lambda cls, text: [line for line in text.replace("\r\n", "\n").split("\n") if line],
        "NumberSignLinesSkipped": lambda cls, text: [line for line in _Reader.lines(text) if not line.startswith("#")],
    },
    entries={
        "IdsByPlaceInFile": lambda cls, entries: [(spelling, place) for place, spelling in enumerate(entries)],
        "IdsCloseUp": lambda cls, entries: (
            [(spelling, place) for place, spelling in enumerate(sorted(entries, key=entries.__getitem__))]
        ),
    },
    bytes_of={
        "SpellingsReadAsText": lambda cls, spelling: (
            unspell(spelling) if len(spelling) == 1 else spelling.encode("utf-8")
        ),
    },
)


add_variants(
    __name__,
    _OtherMap,
    printable={
        "SoftHyphenSpelledAsItself": (*range(0x21, 0x7F), *range(0xA1, 0x100)),
        "TildeLeftOut": (*range(0x21, 0x7E), *range(0xA1, 0xAC), *range(0xAE, 0xFF)),
    },
)


add_variants(
    __name__,
    _Writer,
    pairs={
        "SavedMergesSorted": lambda self: sorted(self.merges),
    },
    spelling={
        "SavedAsText": lambda self, token: token.decode("utf-8", errors="replace"),
    },
    entries={
        "SavedIdsRenumbered": lambda self: enumerate(token for _, token in sorted(self.vocab.items())),
    },
    line={
        "SavedMergesWithoutSpace": lambda self, left, right: left + right,
    },
)
