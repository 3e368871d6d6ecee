"""Incorrect files: the lines of merges.txt, the ids of vocab.json, the spelling of bytes, special tokens, saving."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from bpe_conformance.fixtures import GPT2_BYTE_ORDER, Merge, spell, unspell

from .correct import Encoder


class _Reader(Encoder):
    """Reads in steps: the lines of merges.txt, the entries of vocab.json, a spelling; correct by itself."""

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


class FirstLineDropped(_Reader):
    """Drops the first line of merges.txt, whatever it is, as GPT-2's own reader does."""

    clause = "FILE-VERSION-2"
    fix = "Drop the first line only if it begins with '#version'."
    evidence = "GPT-2's encoder.py; transformers 4.57.6 (GPT2Tokenizer)"

    @classmethod
    def lines(cls, text: str) -> list[str]:
        return [line for line in text.replace("\r\n", "\n").split("\n")[1:] if line]


class HeaderIsMerge(_Reader):
    """Reads every line of merges.txt as a merge, so that `#version: 0.2` gets rank 0."""

    clause = "FILE-VERSION-1"
    fix = "Drop the first line if it begins with '#version'."
    evidence = "ffbpe 0.1.10"

    @classmethod
    def lines(cls, text: str) -> list[str]:
        return [line for line in text.replace("\r\n", "\n").split("\n") if line]


class HeaderComparedWhole(_Reader):
    """Drops only the header `#version: 0.2` itself; Hugging Face's also says who trained the table."""

    clause = "FILE-VERSION-1"
    fix = "Test whether the first line begins with '#version'."

    @classmethod
    def lines(cls, text: str) -> list[str]:
        lines = text.replace("\r\n", "\n").split("\n")
        return [line for line in lines[lines[0] == "#version: 0.2" :] if line]


class NumberSignLinesSkipped(_Reader):
    """Skips lines of merges.txt that begin with `#` as comments, and so all merges of number signs."""

    clause = "FILE-VERSION-1"
    fix = "Drop the first line if it begins with '#version', and no other line."

    @classmethod
    def lines(cls, text: str) -> list[str]:
        return [line for line in super().lines(text) if not line.startswith("#")]


class CarriageReturnKept(_Reader):
    """Splits merges.txt at LF only, and keeps the CR of a Windows file in the second part of each merge."""

    clause = "FILE-LINES-1"
    fix = r"Use text.replace('\r\n', '\n').split('\n'), or open the file in text mode."

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
    """Drops what follows the last line break, as `[1:-1]` does; in some files that is the last merge."""

    clause = "FILE-LINES-1"
    fix = "Drop empty lines instead: [line for line in lines if line]."
    evidence = "GPT-2's encoder.py; transformers 4.57.6 (GPT2Tokenizer)"

    @classmethod
    def lines(cls, text: str) -> list[str]:
        lines = text.replace("\r\n", "\n").split("\n")
        return lines[lines[0].startswith("#version") : -1]


class RanksByResultId(_Reader):
    """Ranks merges by the ids of their results instead of by their lines, because GPT-2's agree."""

    clause = "FILE-LOAD-1"
    fix = "Use the position of a merge among the lines of merges.txt as its rank."
    evidence = "one step from tokie 0.1.4, which ranks by id"

    @classmethod
    def order(cls, merges: list[Merge], vocab: dict[int, bytes]) -> list[Merge]:
        ids = {token: index for index, token in vocab.items()}
        return sorted(merges, key=lambda pair: ids[pair[0] + pair[1]])


# The ids of vocab.json


class IdsByPlaceInFile(_Reader):
    """Numbers the keys of vocab.json in file order and ignores their values."""

    clause = "FILE-LOAD-1"
    fix = "Take the ids from the file: {id: token for token, id in entries.items()}."

    @classmethod
    def entries(cls, entries: dict[str, int]) -> Iterable[tuple[str, int]]:
        return [(spelling, place) for place, spelling in enumerate(entries)]


class IdsCloseUp(_Reader):
    """Sorts the entries of vocab.json by id into a list, whose indexes are the ids only if there is no gap."""

    clause = "FILE-LOAD-1"
    fix = "Keep a dict from id to token, or fill the gaps of the list."

    @classmethod
    def entries(cls, entries: dict[str, int]) -> Iterable[tuple[str, int]]:
        return [(spelling, place) for place, spelling in enumerate(sorted(entries, key=entries.__getitem__))]


class IdsFromMerges(_Reader):
    """Builds the vocabulary from merges.txt alone: bytes in GPT-2's order, then one token per line."""

    clause = "FILE-LOAD-1"
    fix = "Take the ids from vocab.json."

    @classmethod
    def order(cls, merges: list[Merge], vocab: dict[int, bytes]) -> list[Merge]:
        made = [left + right for left, right in merges]
        others = [token for token in vocab.values() if len(token) > 1 and token not in made]
        tokens = [*(bytes([byte]) for byte in GPT2_BYTE_ORDER), *made, *others]
        vocab.clear()
        vocab.update(enumerate(tokens))
        return merges


# The spelling of bytes


class SpellingsReadAsText(_Reader):
    """Reads spellings as text in UTF-8, so that `Ġt` becomes C4 A0 74."""

    clause = "FILE-MAP-1"
    fix = "Map each character back to its byte with the inverse of GPT-2's bytes_to_unicode."

    @classmethod
    def bytes_of(cls, spelling: str) -> bytes:
        return unspell(spelling) if len(spelling) == 1 else spelling.encode("utf-8")


class OnlySpaceAndLineEndMapped(_Reader):
    """Replaces `Ġ` and `Ċ` by space and line feed and reads the rest as text, which works for ASCII."""

    clause = "FILE-MAP-1"
    fix = "Map each character back to its byte with the inverse of GPT-2's bytes_to_unicode."

    @classmethod
    def bytes_of(cls, spelling: str) -> bytes:
        text = spelling.replace("Ġ", " ").replace("Ċ", "\n")
        return text.encode("utf-8") if len(spelling) > 1 else unspell(spelling)


class _OtherMap(_Reader):
    """Reads and writes with another byte map than GPT-2's: `printable` are the bytes that are spelled as themselves."""

    printable: Sequence[int] = ()

    @classmethod
    @cache
    def characters(cls) -> dict[int, str]:
        others = [byte for byte in range(256) if byte not in cls.printable]
        return {byte: chr(0x100 + others.index(byte)) if byte in others else chr(byte) for byte in range(256)}

    @classmethod
    def bytes_of(cls, spelling: str) -> bytes:
        known = {character: byte for byte, character in cls.characters().items()}
        return b"".join(bytes([known[one]]) if one in known else one.encode("utf-8") for one in spelling)

    def save(self, folder: str) -> None:
        characters = self.characters()
        entries = {"".join(map(characters.__getitem__, token)): index for index, token in self.vocab.items()}
        lines = [" ".join("".join(map(characters.__getitem__, part)) for part in pair) for pair in self.merges]
        Path(folder, "vocab.json").write_text(json.dumps(entries), "utf-8")
        Path(folder, "merges.txt").write_text("\n".join(["#version: 0.2", *lines, ""]), "utf-8")


class SoftHyphenSpelledAsItself(_OtherMap):
    """Spells AD as U+00AD, because it writes one range A1-FF instead of the two around the soft hyphen."""

    clause = "FILE-MAP-1"
    fix = "The printable bytes are 21-7E, A1-AC and AE-FF; AD is spelled U+0143."
    printable = (*range(0x21, 0x7F), *range(0xA1, 0x100))


class DeleteSpelledAsItself(_OtherMap):
    """Spells 7F as itself, because a range ends one too late, which shifts the spelling of later bytes."""

    clause = "FILE-MAP-1"
    fix = "The printable bytes are 21-7E, A1-AC and AE-FF: range(0x21, 0x7F) ends before 7F."
    printable = (*range(0x21, 0x80), *range(0xA1, 0xAD), *range(0xAE, 0x100))


class TildeLeftOut(_OtherMap):
    """Leaves 7E, AC and FF out of the printable bytes, as `range(ord("!"), ord("~"))` does without + 1."""

    clause = "FILE-MAP-1"
    fix = "Add one to the end of each range: range(ord('!'), ord('~') + 1)."
    printable = (*range(0x21, 0x7E), *range(0xA1, 0xAC), *range(0xAE, 0xFF))


# Special tokens


class SpecialsNotLoaded(_Reader):
    """Accepts `special_tokens` and does not pass them to the constructor."""

    clause = "FILE-SPECIAL-1"
    fix = "Pass them on: return cls(vocab, merges, special_tokens)."

    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: Sequence[str] | None = None) -> Encoder:
        loaded = super().from_files(vocab_path, merges_path, special_tokens)
        loaded.special.clear()
        return loaded


class LoadedEntriesThatLookSpecial(_Reader):
    """Makes every <|...|> of vocab.json a special token when it loads, whatever the caller lists."""

    clause = "FILE-SPECIAL-1"
    fix = "Pass on the special_tokens that the caller gave, and no others."

    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: Sequence[str] | None = None) -> Encoder:
        keys = json.loads(Path(vocab_path).read_bytes())
        looks = [key for key in keys if key.startswith("<|") and key.endswith("|>")]
        return super().from_files(vocab_path, merges_path, [*(special_tokens or ()), *looks])


class AbsentSpecialsNotLoaded(_Reader):
    """Uses only those special tokens that vocab.json contains, and treats the others as text."""

    clause = "SPECIAL-ABSENT-2"
    fix = "Pass all of them to the constructor, which gives new ids to those without an entry."

    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: Sequence[str] | None = None) -> Encoder:
        keys = json.loads(Path(vocab_path).read_bytes())
        return super().from_files(vocab_path, merges_path, [token for token in special_tokens or () if token in keys])


# Saving


class _Writer(Encoder):
    """Writes in steps: a spelling, the entries of vocab.json, the merges, a line; correct by itself."""

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


class SavedAsText(_Writer):
    """Writes tokens as text, with U+FFFD for what is not UTF-8, so that different tokens become equal."""

    clause = "FILE-SAVE-1"
    fix = "Spell each byte as one character (GPT-2's bytes_to_unicode)."
    evidence = "bpetokenizer 1.2.1"

    def spelling(self, token: bytes) -> str:
        return token.decode("utf-8", errors="replace")


class SavedIdsRenumbered(_Writer):
    """Numbers the entries from 0 when it saves, in the order of their ids, which closes gaps."""

    clause = "FILE-SAVE-1"
    fix = "Write each token with its id: {spell(token): id for id, token in vocab.items()}."

    def entries(self) -> Iterable[tuple[int, bytes]]:
        return enumerate(token for _, token in sorted(self.vocab.items()))


class SavedWithoutSpecials(_Writer):
    """Leaves special tokens out of vocab.json, because some libraries keep them in a file of their own."""

    clause = "FILE-SAVE-1"
    fix = "Write every entry of the vocabulary."

    def entries(self) -> Iterable[tuple[int, bytes]]:
        special = {token.encode("utf-8") for token in self.special}
        return [(index, token) for index, token in self.vocab.items() if token not in special]


class SavedMergesSorted(_Writer):
    """Writes the merges in alphabetical order, so that the file does not change from run to run."""

    clause = "FILE-SAVE-1"
    fix = "Write the merges in order of rank."

    def pairs(self) -> Sequence[Merge]:
        return sorted(self.merges)


class SavedMergesByRankAsText(_Writer):
    """Keeps merges in JSON under their ranks, which become text, and sorts them: 10 comes before 2."""

    clause = "FILE-SAVE-1"
    fix = "Sort by number, sorted(ranks, key=int), or keep the merges in a list."

    def pairs(self) -> Sequence[Merge]:
        ranks = sorted(map(str, range(len(self.merges))))
        return [self.merges[int(rank)] for rank in ranks]


class SavedMergesByResultId(_Writer):
    """Writes the merges in the order of the ids of their results, as if these were the ranks."""

    clause = "FILE-SAVE-1"
    fix = "Write the merges in order of rank."

    def pairs(self) -> Sequence[Merge]:
        return sorted(self.merges, key=lambda pair: self.ids[pair[0] + pair[1]])


class SavedMergesWithoutSpace(_Writer):
    """Writes the result of each merge instead of its two parts, as a list of tokens."""

    clause = "FILE-SAVE-1"
    fix = "Write both parts of a merge with a space between them."

    def line(self, left: str, right: str) -> str:
        return left + right


class SavedInverted(_Writer):
    """Writes vocab.json from id to token, as it keeps the vocabulary; JSON turns the ids into strings."""

    clause = "FILE-SAVE-1"
    fix = "Write token to id: {spell(token): id for id, token in vocab.items()}."

    def save(self, folder: str) -> None:
        super().save(folder)
        Path(folder, "vocab.json").write_text(json.dumps({i: spell(token) for i, token in self.vocab.items()}), "utf-8")
