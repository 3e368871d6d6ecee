"""Tokenizers that are wrong only for one kind of long input, large vocabulary or long training."""

from __future__ import annotations

import codecs
import io
import re
from collections import Counter
from typing import Any

from bpe_conformance.known_bugs.correct import Encoder, Trainer, Words
from bpe_conformance.reference import Tokenizer, textbook
from bpe_conformance.reference.formats import gpt2

NONE = {"allowed_special": (), "disallowed_special": ()}


class CutsBehindLineEnds(Tokenizer):
    def encode(self, text: str, **choice: Any) -> list[int]:
        cut = text.rfind("\n", 0, 65_536) + 1 if len(text) > 65_536 else 0
        if not cut:
            return super().encode(text, **choice)
        return [*super().encode(text[:cut], **choice), *self.encode(text[cut:], **choice)]


class LongTextsByTheDefaultPattern(Tokenizer):
    def encode(self, text: str, **choice: Any) -> list[int]:
        if len(text) < 10_000:
            return super().encode(text, **choice)
        return Tokenizer(self.vocab, self.merges, self.special_tokens).encode(text, **choice)


class LongRunsByTheLongestToken(Encoder):
    def encode_pre_token(self, pre_token: str) -> list[int]:
        data, ids, known = pre_token.encode(), list[int](), {token: index for index, token in self.vocab.items()}
        if len(data) <= 1_024:
            return super().encode_pre_token(pre_token)
        while data:
            size = next(size for size in range(min(8, len(data)), 0, -1) if data[:size] in known)
            ids.append(known[data[:size]])
            data = data[size:]
        return ids


class LongRunsFromTheRight(Encoder):
    def encode_pre_token(self, pre_token: str) -> list[int]:
        if len(pre_token) <= 1_000 or set(pre_token) != {"a"} or (b"a", b"a") not in self.ranks:
            return super().encode_pre_token(pre_token)
        return [
            *super().encode_pre_token("a" * (len(pre_token) % 2)),
            *super().encode_pre_token("aa") * (len(pre_token) // 2),
        ]


class FullBuffersFlushed(Encoder):
    def ready(self, held: str) -> int:
        return super().ready(held) or (len(held) if len(held) > 8_192 else 0)


class RingWithStaleKeys(Tokenizer):
    """Keeps ids in a ring of 2^16 slots, and does not forget a pre-token's slot when the slot is reused."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.places: dict[str, int] = {}
        self.slots: list[list[int]] = [[]] * 65_536

    def encode(self, text: str, **choice: Any) -> list[int]:
        ids: list[int] = []
        for pre_token in textbook.split(text):
            if pre_token not in self.places:
                self.places[pre_token] = len(self.places) % 65_536
                self.slots[self.places[pre_token]] = super().encode(pre_token, **choice)
            ids += self.slots[self.places[pre_token]]
        return ids


class UnfinishedDecoder(Tokenizer):
    def decode(self, ids: Any) -> str:
        if len(ids) <= 4_096:
            return super().decode(ids)
        return codecs.getincrementaldecoder("utf-8")("replace").decode(self.decode_bytes(ids))


class LineEndsTranslated(Tokenizer):
    def decode(self, ids: Any) -> str:
        data = self.decode_bytes(ids)
        return data.decode("utf-8", "replace") if len(data) < 8_192 else _read(data)


def _read(data: bytes) -> str:
    return io.TextIOWrapper(io.BytesIO(data), "utf-8", "replace").read()


class SurrogatesDropped(Tokenizer):
    def encode(self, text: str, **choice: Any) -> list[int]:
        return super().encode(text.encode("utf-8", "ignore").decode() if len(text) >= 4_096 else text, **choice)


class UnknownIdsClipped(Tokenizer):
    def decode(self, ids: Any) -> str:
        return super().decode([min(index, max(self.vocab)) for index in ids] if len(ids) > 1_024 else ids)


class ChoicesOfShortTexts(Tokenizer):
    def encode(self, text: str, **choice: Any) -> list[int]:
        return super().encode(text, **choice if len(text) < 16_384 else {})


class DisallowedInTheBeginning(Tokenizer):
    def encode(self, text: str, **choice: Any) -> list[int]:
        if len(text) > 10_000 and choice:
            super().encode(text[:10_000], **choice)
            choice = {**choice, "disallowed_special": ()}
        return super().encode(text, **choice)


class MostMergesRead(Tokenizer):
    @classmethod
    def from_files(cls, vocab_path: Any, merges_path: Any, special_tokens: Any = None, **options: Any) -> Any:
        merges = gpt2.read_merges(merges_path)[:50_000]
        return cls(gpt2.read_vocab(vocab_path), merges, special_tokens, **options)


class LongWordsSkipped(Trainer):
    @classmethod
    def words(cls, text: str, special: list[str], pattern: str) -> Words:
        return [(word, count) for word, count in super().words(text, special, pattern) if len(word) <= 4_192]


class FirstMillionCounted(Trainer):
    @classmethod
    def words(cls, text: str, special: list[str], pattern: str) -> Words:
        return super().words(text[:1_000_000], special, pattern)


class CountedInParts(Trainer):
    @classmethod
    def words(cls, text: str, special: list[str], pattern: str) -> Words:
        counted: Counter[Any] = Counter()
        while text:
            cut = text.rfind("\n", 0, 100_000) + 1 if len(text) > 100_000 else len(text)
            for word, count in super().words(text[: cut or None], special, pattern):
                counted[word] += count
            text = text[cut:] if cut else ""
        return list(counted.items())


class LongTextsCountedByTheDefaultPattern(Tokenizer):
    @classmethod
    def train(cls, text: Any, *given: Any, pattern: str | None = None, **options: Any) -> Any:
        return super().train(text, *given, pattern=pattern if len(text) < 50_000 else None, **options)


class SixteenBitVocabulary(Tokenizer):
    """Numbers tokens in 16 bits while it trains."""

    @classmethod
    def train(cls, *given: Any, **options: Any) -> Any:
        trained = super().train(*given, **options)
        return {index & 0xFFFF: token for index, token in trained.vocab.items()}, trained.merges


class SixteenBitWords(Tokenizer):
    """Numbers the tokens of its words in 16 bits while it trains."""

    @classmethod
    def train(cls, *given: Any, **options: Any) -> Any:
        trained = super().train(*given, **options)
        held = {token: trained.vocab[index & 0xFFFF] for index, token in trained.vocab.items()}
        merges = [(held[left], held[right]) for left, right in trained.merges]
        rest = dict(list(trained.vocab.items())[: len(trained.vocab) - len(merges)])
        return rest | {len(rest) + rank: left + right for rank, (left, right) in enumerate(merges)}, merges


class WordsCountedIn16Bits(Trainer):
    """Truncates the number of a pre-token to 16 bits."""

    @classmethod
    def words(cls, text: str, special: list[str], pattern: str) -> Words:
        return [(word, number & 0xFFFF) for word, number in super().words(text, special, pattern)]


class WordsCountedTo65535(Trainer):
    @classmethod
    def words(cls, text: str, special: list[str], pattern: str) -> Words:
        return [(word, min(number, 0xFFFF)) for word, number in super().words(text, special, pattern)]


class AllButTheLastPreTokenFlushed(Tokenizer):
    """Emits all but the last pre-token of a stream without white space once it is long."""

    def encode_iterable(self, chunks: Any, **choice: Any) -> Any:
        held = ""
        for chunk in chunks:
            held += chunk
            if len(held) > 131_072 and not any(map(str.isspace, held)):
                *ready, held = textbook.split(held)
                yield from (index for pre_token in ready for index in self.encode(pre_token))
        yield from self.encode(held, **choice)


class LongTextsBySmallerTables(Tokenizer):
    """Splits long texts with the standard library's classes of characters."""

    def encode(self, text: str, **choice: Any) -> list[int]:
        if len(text) < 100_000 or self.special_tokens:
            return super().encode(text, **choice)
        words = re.findall(r"'(?:[stmd]|re|ve|ll)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+", text)
        return [index for word in words for index in super(LongTextsBySmallerTables, self).encode(word)]


class CutBehindFullStops(Tokenizer):
    """Emits a stream without white space up to the last ideographic full stop."""

    def encode_iterable(self, chunks: Any, **choice: Any) -> Any:
        held = ""
        for chunk in chunks:
            held += chunk
            end = held.rfind("\u3002", 0, -1) + 1
            if len(held) > 8_192 and end:
                yield from self.encode(held[:end], **choice)
                held = held[end:]
        yield from self.encode(held, **choice)


class LongTextsWithoutMark(Tokenizer):
    def encode(self, text: str, **choice: Any) -> list[int]:
        data = text.encode("utf-8", "surrogatepass")
        return super().encode(data.decode("utf-8-sig", "surrogatepass") if len(text) > 8_192 else text, **choice)


class LongTextsWithoutNulAtTheEnd(Tokenizer):
    def encode(self, text: str, **choice: Any) -> list[int]:
        return super().encode(text.rstrip("\0") if len(text) > 8_192 else text, **choice)


class LongAsciiBySmallerTables(Tokenizer):
    """Treats the separators U+001C to U+001F as white space in long ASCII texts."""

    def encode(self, text: str, **choice: Any) -> list[int]:
        found = re.findall(r"'(?:[stmd]|re|ve|ll)| ?[A-Za-z]+| ?\d+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+", text)
        if len(text) > 20_000 and text.isascii() and not self.special_tokens:
            return [index for word in found for index in super(LongAsciiBySmallerTables, self).encode(word)]
        return super().encode(text, **choice)


class LongChunksReplaced(Tokenizer):
    """Replaces a lone surrogate in a long chunk by a question mark."""

    def encode_iterable(self, chunks: Any, **choice: Any) -> Any:
        taken = (one.encode("utf-8", "replace").decode() if len(one) > 4_096 else one for one in chunks)
        return super().encode_iterable(taken, **choice)


class LongIdsWithoutMark(Tokenizer):
    def decode(self, ids: Any) -> str:
        return self.decode_bytes(ids).decode("utf-8-sig" if len(ids) > 10_000 else "utf-8", "replace")


class LongWordsBeyondAsciiCut(Encoder):
    def encode_pre_token(self, pre_token: str) -> list[int]:
        size = len(pre_token) if pre_token.isascii() else 4_096
        pieces = [pre_token[start : start + size] for start in range(0, len(pre_token), size)]
        return [index for piece in pieces for index in super(LongWordsBeyondAsciiCut, self).encode_pre_token(piece)]


class LongTextsCountedBySmallerTables(Trainer):
    @classmethod
    def split(cls, segment: str, pattern: str) -> list[str]:
        found = r"'(?:[stmd]|re|ve|ll)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+"
        return re.findall(found, segment) if len(segment) > 50_000 else super().split(segment, pattern)


class LongTokensCut(Encoder):
    def decode_bytes(self, ids: Any) -> bytes:
        return b"".join(self.vocab[index][:4_096] for index in ids)


class FewRanks(Tokenizer):
    """Treats rank 100,000 as no rank."""

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, **options: Any) -> None:
        super().__init__(vocab, list(merges)[:100_000], special_tokens, **options)


class BlocksCutBehindLineEnds(Tokenizer):
    """Trains separately on blocks of 1,048,576 characters, extended to the end of the line."""

    @classmethod
    def train(cls, text: Any, size: int, special: Any = (), **options: Any) -> Any:
        start, blocks = 0, []
        while end := text.find("\n", start + (1 << 20)) + 1:
            blocks.append(text[start:end])
            start = end
        return super().train([*blocks, text[start:]], size, special, **options)


class NothingLongLearned(Tokenizer):
    @classmethod
    def train(cls, text: Any, size: int, special: Any = (), **options: Any) -> Any:
        trained = super().train(text, size, special, **options)
        merges = [(left, right) for left, right in trained.merges if len(left + right) <= 1_024]
        return {index: token for index, token in trained.vocab.items() if len(token) <= 1_024}, merges


class LongTextsToTrainOnWithoutMark(Trainer):
    @classmethod
    def cut(cls, text: str, special: list[str]) -> list[str]:
        return super().cut(text.removeprefix("\ufeff") if len(text) > 20_000 else text, special)


class WordsCountedOnceBehindAThousand(Trainer):
    """Counts each word once after a thousand merges."""

    @classmethod
    def learn(cls, words: Words, wanted: int) -> Any:
        begun = super().learn(words, min(wanted, 1_000))
        for pair in begun:
            words = [(cls.replace(word, pair), 1) for word, _ in words]
        return begun + super().learn(words, wanted - len(begun))


class LongRowsCutAtSpaces(Tokenizer):
    """Encodes a long text of a batch in parts of at most 65,536 characters, each of which ends before a space."""

    def encode_batch(self, texts: Any, **choice: Any) -> Any:
        return [self.in_parts(text, choice) for text in texts]

    def in_parts(self, text: str, choice: Any) -> list[int]:
        cut = text.rfind(" ", 1, 1 << 16)
        if len(text) <= 1 << 16 or cut < 0:
            return self.encode(text, **choice)
        return self.encode(text[:cut], **choice) + self.in_parts(text[cut:], choice)
