"""Bugs outside the algorithm: the caller's objects, shared and kept state, chance, the environment."""

from __future__ import annotations

import codecs
import locale
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

from bpe_conformance.fixtures.pipeline import AddedToken
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Segments, Word, Words

from .bases import BaseEncoder, BaseTrainer, add_variants
from .encoding import MissingEntriesSkipped
from .training_ties import greatest_by

# Files and texts


class AddedTokensOfLastFile(BaseEncoder):
    last: BaseEncoder

    @classmethod
    def from_tokenizer_json(cls, path: str) -> BaseEncoder:
        AddedTokensOfLastFile.last = super().from_tokenizer_json(path)
        return cls.last

    def find_added(self, tokens: Sequence[AddedToken], text: str) -> Segments:
        return super().find_added(self.last.pipeline.added_tokens if self.last.pipeline else (), text)


# The caller's objects


class SpecialsTakenFromCallersVocab(BaseEncoder):
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, *more: Any, **settings: Any) -> None:
        super().__init__(vocab, merges, special_tokens, *more, **settings)
        for token in self.special:
            vocab.pop(self.special_id(token), None)
        self.vocab = vocab


class CallersSpecialsSorted(BaseEncoder):
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, *more: Any, **settings: Any) -> None:
        if special_tokens:
            special_tokens.sort(key=len, reverse=True)
        super().__init__(vocab, merges, special_tokens, *more, **settings)


class CallersVocabExtended(BaseEncoder):
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, *more: Any, **settings: Any) -> None:
        for token in special_tokens or ():
            if token.encode("utf-8") not in vocab.values():
                vocab[max(vocab) + 1] = token.encode("utf-8")
        super().__init__(vocab, merges, special_tokens, *more, **settings)


# What a tokenizer shares and keeps


class CachedListExtended(BaseEncoder):
    def encode_segment(self, segment: str) -> list[int]:
        cache: dict[str, list[int]] = self.__dict__.setdefault("cache", {})
        first, *others = self.split(segment) or [""]
        if first not in cache:
            cache[first] = self.encode_pre_token(first)
        ids = cache[first]
        for pre_token in others:
            ids += self.encode_pre_token(pre_token)
        return ids


class ResultListReused(BaseEncoder):
    def encode(self, text: str) -> list[int]:
        ids: list[int] = self.__dict__.setdefault("ids_of_result", [])
        ids[:] = super().encode(text)
        return ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [list(self.encode(text)) for text in texts]


class IdsLeftAfterError(BaseEncoder):
    def encode_segments(self, segments: Segments) -> list[int]:
        ids: list[int] = self.__dict__.setdefault("collected", [])
        for segment in segments:
            ids += super().encode_segments([segment])
        self.collected: list[int] = []
        return ids


class HalfFilledCacheAfterError(MissingEntriesSkipped):
    def encode_segment(self, segment: str) -> list[int]:
        return BaseEncoder.encode_segment(self, segment)

    def encode_pre_token(self, pre_token: str) -> list[int]:
        cache: dict[str, list[int]] = self.__dict__.setdefault("cache", {})
        if pre_token not in cache:
            ids = cache[pre_token] = []
            for token in self.merge(self.atoms(pre_token)):
                if self.ids[token] in self.missing:
                    raise KeyError(token)
                ids.append(self.ids[token])
        return list(cache[pre_token])


class DecodingsKeyedByLowByte(BaseEncoder):
    def key(self, ids: list[int]) -> bytes | str:
        return bytes(index & 0xFF for index in ids)

    def decode(self, ids: Iterable[int]) -> str:
        cache: dict[bytes | str, str] = self.__dict__.setdefault("cache", {})
        ids = list(ids)
        if (key := self.key(ids)) not in cache:
            cache[key] = super().decode(ids)
        return cache[key]


class SpecialsOnClass(BaseEncoder):
    collected: ClassVar[dict[str, None]] = {}

    def cut(self, text: str) -> list[tuple[str, bool]]:
        self.collected.update(dict.fromkeys(self.special))
        return textbook.cut_special(text, [token for token in self.collected if token.encode("utf-8") in self.ids])


class BufferInDefaultArgument(BaseEncoder):
    def encode_iterable(self, chunks: Iterable[str], held: list[str] = []) -> Iterator[int]:  # noqa: B006
        held.extend(chunks)
        yield from self.encode("".join(held))


class CorpusInDefaultArgument(BaseTrainer):
    def words(self, text: str, special: list[str], pattern: str, kept: Counter[Word] = Counter()) -> Words:  # noqa: B006
        for word, count in super().words(text, special, pattern):
            kept[word] += count
        return list(kept.items())


class MergesReadOnce(BaseEncoder):
    def encode_segment(self, segment: str) -> list[int]:
        ranked = enumerate(self.merges)
        words = [
            textbook.merge_by_pair(self.atoms(pre_token), {pair: rank for rank, pair in ranked})
            for pre_token in self.split(segment)
        ]
        return [self.ids[token] for word in words for token in word]


class DecoderKeptOnClass(BaseEncoder):
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def decode(self, ids: Iterable[int]) -> str:
        return self.decoder.decode(self.decode_bytes(ids))


class LockKeptAfterError(BaseEncoder):
    lock: ClassVar[Any] = Lock()

    def encode(self, text: str) -> list[int]:
        if not self.lock.acquire(blocking=False):
            raise RuntimeError("the tokenizer is in use")
        ids = super().encode(text)
        self.lock.release()
        return ids


# Chance and surroundings


class SpecialsInSetOrder(BaseEncoder):
    def cut(self, text: str) -> list[tuple[str, bool]]:
        if not self.special or not text:
            return [(text, False)] if text else []
        parts = re.split(f"({'|'.join(map(re.escape, set(self.special)))})", text)
        return [(part, part in self.special) for part in parts if part]


class FilesFromCurrentFolder(BaseEncoder):
    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: Sequence[str] | None = None) -> BaseEncoder:
        return super().from_files(Path(vocab_path).name, Path(merges_path).name, special_tokens)


class TiesByCollation(BaseTrainer):
    choose = greatest_by(
        lambda pair, ids: [locale.strxfrm(part.replace(b"\0", b"").decode("utf-8", "replace")) for part in pair]
    )


class DropoutLeftOn(BaseEncoder):
    def merge(self, word: Word) -> Word:
        return word if random.random() < 0.1 else super().merge(word)


add_variants(
    __name__, DecodingsKeyedByLowByte, key={"DecodingsKeyedByDigits": lambda self, ids: "".join(map(str, ids))}
)
