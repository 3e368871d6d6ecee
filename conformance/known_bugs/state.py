"""Incorrect outside the algorithm: the caller's objects, shared and kept state, chance, the environment."""

from __future__ import annotations

import codecs
import locale
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

from bpe_conformance.fixtures import Merge
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Word

from .correct import Encoder, Trainer, Words

# The caller's objects


class SpecialsTakenFromCallersVocab(Encoder):
    """Moves special tokens out of the caller's vocab with `pop`, so that decoding no longer finds them."""

    clause = "ERROR-STATE-1"
    fix = "Copy the vocabulary, dict(vocab), and leave the special tokens in it."

    def __init__(
        self,
        vocab: dict[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        super().__init__(vocab, merges, special_tokens, pattern)
        for token in self.special:
            vocab.pop(self.special_id(token), None)
        self.vocab = vocab


class CallersSpecialsSorted(Encoder):
    """Sorts the caller's list of special tokens in place, longest first, before it numbers new ones."""

    clause = "ERROR-STATE-1"
    fix = "Sort a copy, sorted(special_tokens, key=len, reverse=True), and number in the order of the list."

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: list[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        if special_tokens:
            special_tokens.sort(key=len, reverse=True)
        super().__init__(vocab, merges, special_tokens, pattern)


# What a tokenizer shares and keeps


class CachedListExtended(Encoder):
    """Appends to the list that its cache holds for the first pre-token, and so changes the cached answer."""

    clause = "LAW-PURE-1"
    fix = "Begin with a new list: ids = []; ids.extend(cached)."
    varies = True

    def encode_segment(self, segment: str) -> list[int]:
        cache: dict[str, list[int]] = self.__dict__.setdefault("cache", {})
        first, *others = self.split(segment) or [""]
        if first not in cache:
            cache[first] = self.encode_pre_token(first)
        ids = cache[first]
        for pre_token in others:
            ids += self.encode_pre_token(pre_token)
        return ids


class SpecialsOnClass(Encoder):
    """Collects special tokens in a list on the class, so that those of earlier instances are matched too."""

    clause = "ERROR-STATE-1"
    fix = "Create the list in __init__: self.special_tokens = list(special_tokens or [])."
    varies = True
    collected: ClassVar[dict[str, None]] = {}

    def cut(self, text: str) -> list[tuple[str, bool]]:
        self.collected.update(dict.fromkeys(self.special))
        return textbook.cut_special(text, [token for token in self.collected if token.encode("utf-8") in self.ids])


class BufferInDefaultArgument(Encoder):
    """Collects chunks in a list that is a default argument, which all streams share."""

    clause = "LAW-PURE-1"
    fix = "Create the buffer inside the function: held = []."
    varies = True

    def encode_iterable(self, chunks: Iterable[str], held: list[str] = []) -> Iterator[int]:  # noqa: B006
        held.extend(chunks)
        yield from self.encode("".join(held))


class CorpusInDefaultArgument(Trainer):
    """Counts pre-tokens in a Counter that is a default argument, so that earlier trainings still count."""

    clause = "LAW-REPLAY-1"
    fix = "Create the counter inside the function: counts = Counter()."
    evidence = "one step from bpetokenizer 1.2.1, whose second training keeps the merges of the first"
    varies = True

    def words(self, text: str, special: list[str], pattern: str, kept: Counter[Word] = Counter()) -> Words:  # noqa: B006
        for word, count in super().words(text, special, pattern):
            kept[word] += count
        return list(kept.items())


class MergesReadOnce(Encoder):
    """Reads the merges from a generator, which is exhausted after the first pre-token."""

    clause = "MERGE-FULL-1"
    fix = "Build a dict of ranks once: {pair: rank for rank, pair in enumerate(merges)}."

    def encode_segment(self, segment: str) -> list[int]:
        ranked = enumerate(self.merges)
        words = [
            textbook.merge_by_pair(self.atoms(pre_token), {pair: rank for rank, pair in ranked})
            for pre_token in self.split(segment)
        ]
        return [self.ids[token] for word in words for token in word]


class DecoderKeptOnClass(Encoder):
    """Keeps one incremental decoder for all calls, so that half a character waits for the next call."""

    clause = "LAW-PURE-1"
    fix = "Create the decoder in decode, and finish it with final=True."
    evidence = "npm:gpt-tokenizer@4.0.0"
    varies = True
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def decode(self, ids: Iterable[int]) -> str:
        return self.decoder.decode(self.decode_bytes(ids))


class LockKeptAfterError(Encoder):
    """Acquires a lock and releases it at the end, which an error skips; every later call then fails."""

    clause = "ERROR-AFTER-1"
    fix = "Use the lock in a with statement: with self.lock: ..."
    varies = True
    lock: ClassVar[Any] = Lock()

    def encode(self, text: str) -> list[int]:
        if not self.lock.acquire(blocking=False):
            raise RuntimeError("the tokenizer is in use")
        ids = super().encode(text)
        self.lock.release()
        return ids


# Chance and surroundings


class SpecialsInSetOrder(Encoder):
    """Tries the special tokens in the order of a set, which changes with the hash seed of the process."""

    clause = "SPECIAL-ORDER-1"
    fix = "Sort them: sorted(set(special_tokens), key=len, reverse=True)."
    evidence = "tiktoken 0.14.0, riptoken 0.2.4 (the order of a hash map)"
    varies = True

    def cut(self, text: str) -> list[tuple[str, bool]]:
        if not self.special or not text:
            return [(text, False)] if text else []
        parts = re.split(f"({'|'.join(map(re.escape, set(self.special)))})", text)
        return [(part, part in self.special) for part in parts if part]


class TiesByCollation(Trainer):
    """Compares tied pairs in the order of the locale, as localeCompare and C#'s CompareTo do."""

    clause = "TRAIN-TIE-1"
    fix = "Compare bytes: max(tied)."
    varies = True

    def key(self, pair: Merge, ids: Mapping[bytes, int]) -> Any:
        return [locale.strxfrm(part.replace(b"\0", b"").decode("utf-8", errors="replace")) for part in pair]


class DropoutLeftOn(Encoder):
    """Leaves one pre-token in ten unmerged at random, as BPE dropout does while a model is trained."""

    clause = "LAW-IDEMPOTENT-1"
    fix = "Apply every merge when you encode; leave dropout to the caller."
    evidence = "the option dropout of Hugging Face's BPE, which tokenizer.json stores"
    varies = True

    def merge(self, word: Word) -> Word:
        return word if random.random() < 0.1 else super().merge(word)


class FilesFromCurrentFolder(Encoder):
    """Opens vocab.json and merges.txt in the current directory, whatever directory the caller names."""

    clause = "FILE-LOAD-1"
    fix = "Open the paths that were given."
    evidence = "bpetokenizer 1.2.1 opens its own files relative to the current directory"
    varies = True

    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: Sequence[str] | None = None) -> Encoder:
        return super().from_files(Path(vocab_path).name, Path(merges_path).name, special_tokens)
