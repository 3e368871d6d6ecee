"""Incorrect files: the lines of merges.txt, the ids of vocab.json, the spelling of bytes, special tokens, saving."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from bpe_conformance.fixtures import GPT2_BYTE_ORDER, Merge, spell, unspell
from bpe_conformance.reference.textbook import Word

from .bases import BaseEncoder, add_variants

# The lines of merges.txt


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")


class CarriageReturnKept(BaseEncoder):
    @classmethod
    def lines(cls, text: str) -> list[str]:
        lines = text.split("\n")
        return [line for line in lines[lines[0].startswith("#version") :] if line]

    @classmethod
    def bytes_of(cls, spelling: str) -> bytes:
        return b"".join(
            character.encode("utf-8") if character == "\r" else unspell(character) for character in spelling
        )


class RanksByResultId(BaseEncoder):
    @classmethod
    def loaded_merges(cls, merges: list[Merge], vocab: dict[int, bytes]) -> list[Merge]:
        ids = {token: index for index, token in vocab.items()}
        return sorted(merges, key=lambda pair: ids[pair[0] + pair[1]])


# The ids of vocab.json


class IdsFromMerges(BaseEncoder):
    @classmethod
    def loaded_merges(cls, merges: list[Merge], vocab: dict[int, bytes]) -> list[Merge]:
        made = [left + right for left, right in merges]
        others = [token for token in vocab.values() if len(token) > 1 and token not in made]
        tokens = [*(bytes([byte]) for byte in GPT2_BYTE_ORDER), *made, *others]
        vocab.clear()
        vocab.update(enumerate(tokens))
        return merges


# The spelling of bytes


class BytesSpelledAsLatin1(BaseEncoder):
    @classmethod
    def bytes_of(cls, spelling: str) -> bytes:
        return spelling.encode("latin-1")

    def spelling(self, token: bytes) -> str:
        return token.decode("latin-1")


class _OtherMap(BaseEncoder):
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
        return b"".join(cls.values().get(character) or character.encode("utf-8") for character in spelling)

    def spelling(self, token: bytes) -> str:
        return "".join(map(self.characters().__getitem__, token))


class SoftHyphenUnknown(_OtherMap):
    printable = (*range(0x21, 0x7F), *range(0xA1, 0x100))

    @classmethod
    def loaded_merges(cls, merges: list[Merge], vocab: dict[int, bytes]) -> list[Merge]:
        vocab[-1] = b"\xad"
        return merges

    def encode_pre_token(self, pre_token: str) -> list[int]:
        return [max(index, 0) for index in super().encode_pre_token(pre_token)]

    def atoms(self, pre_token: str) -> Word:
        word = super().atoms(pre_token)
        return word if self.pipeline is None else tuple(token for token in word if token != b"\xad")


class SoftHyphenNotRead(SoftHyphenUnknown):
    spelling = BaseEncoder.spelling
    atoms = BaseEncoder.atoms

    def encode_pre_token(self, pre_token: str) -> list[int]:
        ids = BaseEncoder.encode_pre_token(self, pre_token)
        if -1 in ids:
            raise KeyError(b"\xad")
        return ids

    @classmethod
    def from_tokenizer_json(cls, path: str) -> BaseEncoder:
        loaded = super().from_tokenizer_json(path)
        loaded.vocab = {index: token.replace(b"\xad", b"\xc5\x83") for index, token in loaded.vocab.items()}
        return loaded


# Special tokens


class SpecialsNotLoaded(BaseEncoder):
    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: Sequence[str] | None = None) -> BaseEncoder:
        loaded = super().from_files(vocab_path, merges_path, special_tokens)
        loaded.special.clear()
        return loaded


# Saving


class SavedWithoutSpecials(BaseEncoder):
    def entries(self) -> Iterable[tuple[int, bytes]]:
        special = {token.encode("utf-8") for token in self.special}
        return [(index, token) for index, token in self.vocab.items() if token not in special]


class SavedWithoutNewEntries(BaseEncoder):
    def __init__(self, vocab: Any, *more: Any, **settings: Any) -> None:
        super().__init__(vocab, *more, **settings)
        self.given = dict(vocab)

    def entries(self) -> Iterable[tuple[int, bytes]]:
        return self.given.items()


class EntriesSavedAsText(BaseEncoder):
    def save(self, folder: str) -> None:
        super().save(folder)
        names = {
            spell(token) if len(token) == 1 else token.decode("utf-8", "replace").replace(" ", "\u0120"): index
            for index, token in self.vocab.items()
        }
        Path(folder, "vocab.json").write_text(json.dumps(names), "utf-8")


class ExistingFilesKept(BaseEncoder):
    def save(self, folder: str) -> None:
        if not Path(folder, "vocab.json").exists():
            super().save(folder)


class FilesReadOnce(BaseEncoder):
    loaded: ClassVar[dict[str, BaseEncoder]] = {}

    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: Sequence[str] | None = None) -> BaseEncoder:
        if str(vocab_path) not in cls.loaded:
            cls.loaded[str(vocab_path)] = super().from_files(vocab_path, merges_path, special_tokens)
        first = cls.loaded[str(vocab_path)]
        return cls(first.vocab, first.merges, special_tokens)


class SavedInverted(BaseEncoder):
    def save(self, folder: str) -> None:
        super().save(folder)
        Path(folder, "vocab.json").write_text(json.dumps({i: spell(token) for i, token in self.vocab.items()}), "utf-8")


add_variants(
    __name__,
    BaseEncoder,
    lines={
        "FirstLineDropped": lambda cls, text: [line for line in _lines(text)[1:] if line],
        "LastLineDropped": lambda cls, text: _lines(text)[text.startswith("#version") : -1],
        "HeaderIsMerge": lambda cls, text: [line for line in _lines(text) if line],
        "HeaderComparedWhole": lambda cls, text: [
            line for line in _lines(text)[_lines(text)[0] == "#version: 0.2" :] if line
        ],
        "NumberSignLinesSkipped": lambda cls, text: [
            line for line in BaseEncoder.lines(text) if not line.startswith("#")
        ],
    },
    loaded_entries={
        "IdsByPlaceInFile": lambda cls, entries: [(spelling, position) for position, spelling in enumerate(entries)],
        "IdsCloseUp": lambda cls, entries: (
            [(spelling, position) for position, spelling in enumerate(sorted(entries, key=entries.__getitem__))]
        ),
    },
    loaded_merges={"LoadedMergesCutToVocabulary": lambda cls, merges, vocab: merges[: max(0, len(vocab) - 256)]},
    bytes_of={
        "SpellingsReadAsText": lambda cls, spelling: unspell(spelling) if len(spelling) == 1 else spelling.encode()
    },
    saved_merges={
        "SavedMergesSorted": lambda self: sorted(self.merges),
        "SavedMergesById": lambda self: sorted(self.merges, key=lambda pair: self.ids[pair[0] + pair[1]]),
    },
    spelling={"SavedAsText": lambda self, token: token.decode("utf-8", errors="replace")},
    entries={
        "SavedIdsRenumbered": lambda self: enumerate(token for _, token in sorted(self.vocab.items())),
        "SavedAsPlainObject": lambda self: [(index, one) for index, one in self.vocab.items() if one != b"__proto__"],
    },
    line={"SavedMergesWithoutSpace": lambda self, left, right: left + right},
)


add_variants(
    __name__,
    _OtherMap,
    printable={
        "SoftHyphenSpelledAsItself": (*range(0x21, 0x7F), *range(0xA1, 0x100)),
        "LastByteLeftOut": (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0xFF)),
        "TildeLeftOut": (*range(0x21, 0x7E), *range(0xA1, 0xAC), *range(0xAE, 0xFF)),
    },
)
