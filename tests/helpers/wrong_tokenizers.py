"""Tokenizers with one fault each that no known bug has."""

from __future__ import annotations

import codecs
import contextlib
import functools
import json
import re
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count, pairwise
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

from bpe_conformance.fixtures import PATTERNS, Merge, unspell
from bpe_conformance.known_bugs.bases import BaseTrainer
from bpe_conformance.reference import Tokenizer, textbook
from bpe_conformance.reference.formats import huggingface
from bpe_conformance.reference.textbook import Word


class Whole(textbook.Tokenizer):
    """The textbook with all methods of the protocol. It keeps the ids of pre-tokens: long texts repeat them."""

    _ids_of: dict[str, list[int]]

    def encode_pre_token(self, pre_token: str) -> list[int]:
        ids_of = self.__dict__.setdefault("_ids_of", {})
        if pre_token not in ids_of:
            ids_of[pre_token] = super().encode_pre_token(pre_token)
        return list(ids_of[pre_token])

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from self.encode("".join(chunks))

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def save(self, folder: str) -> None:
        Tokenizer(self.vocab, self.merges, self.special).save(Path(folder))

    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        loaded = Tokenizer.from_files(vocab, merges, special_tokens)
        return cls(loaded.vocab, loaded.merges, special_tokens)

    @classmethod
    def from_tokenizer_json(cls, path: str) -> Whole:
        model = huggingface.read(path)
        return cls(model.vocab, model.merges, pipeline=model.steps)


def failing(every: int) -> type[Whole]:
    """Return a class of which each call of that number, and of its multiples, raises an error."""
    numbers = count(1)

    def sometimes(function: Any) -> Any:
        def call(*arguments: Any, **keywords: Any) -> Any:
            if next(numbers) % every == 0:
                raise RuntimeError("a call fails")
            return function(*arguments, **keywords)

        return call

    methods = ("__init__", "encode", "decode", "decode_bytes", "encode_batch", "encode_iterable", "save")
    own = {name: sometimes(getattr(Whole, name)) for name in methods}
    own |= {name: classmethod(sometimes(getattr(Whole, name).__func__)) for name in ("train", "from_files")}
    return type("Failing", (Whole,), own)


class ReversesTheCallersMerges(Whole):
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
        super().__init__(vocab, merges, special_tokens, pattern)
        merges.reverse()


class AddsSpecialsToTheCallersVocab(Whole):
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
        super().__init__(vocab, merges, special_tokens, pattern)
        vocab.update(self.vocab)


class KeepsOnlyAllowedTokensThatOccur(Whole):
    """Changes the caller's set."""

    def encode(self, text: str, *, allowed_special: Any = "all", disallowed_special: Any = ()) -> list[int]:
        if isinstance(allowed_special, set):
            allowed_special &= {token for token in self.special if token in text}
        return super().encode(text, allowed_special=allowed_special, disallowed_special=disallowed_special)


class KeepsOnlyKnownTokensAllowed(Whole):
    def encode(self, text: str, *, allowed_special: Any = "all", disallowed_special: Any = ()) -> list[int]:
        if isinstance(allowed_special, set):
            allowed_special &= {*self.special}
        return super().encode(text, allowed_special=allowed_special, disallowed_special=disallowed_special)


class KeepsOnlyKnownTokensDisallowed(Whole):
    def encode(self, text: str, *, allowed_special: Any = "all", disallowed_special: Any = ()) -> list[int]:
        if isinstance(disallowed_special, set):
            disallowed_special &= {*self.special}
        return super().encode(text, allowed_special=allowed_special, disallowed_special=disallowed_special)


class SortsTheIdsToDecode(Whole):
    def decode(self, ids: Any) -> str:
        text = super().decode(ids)
        if isinstance(ids, list):
            ids.sort()
        return text


class HandsOutOneList(Whole):
    """Keeps what methods return for some texts, and returns the same lists again."""

    def kept(self, kind: str, text: str, make: Callable[[], Any]) -> Any:
        known: dict[Any, Any] = self.__dict__.setdefault("_ids_of", {})
        if text and not text.startswith("<") and len(text) < 1_000:
            return make()
        if (kind, text) not in known:
            known[kind, text] = make()
        return known[kind, text]


class HandsOutOneListOfIds(HandsOutOneList):
    def encode(self, text: str, **choice: Any) -> list[int]:
        return self.kept("ids", text, lambda: super(HandsOutOneList, self).encode(text, **choice))


class HandsOutOneListOfRows(HandsOutOneList):
    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        make = super().encode_batch
        return self.kept("rows", texts[0], lambda: make(texts)) if len(texts) == 1 else make(texts)


class HandsOutOneListOfEqualTexts(Whole):
    """Encodes each text of a large batch once."""

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        rows = {text: self.encode(text) for text in texts}
        return [rows[text] for text in texts] if len(texts) > 256 else super().encode_batch(texts)


class HandsOutOneListOfSpans(HandsOutOneList):
    def encode_with_offsets(self, text: str) -> Any:
        return self.kept("spans", text, lambda: super(HandsOutOneList, self).encode_with_offsets(text))


class HandsOutListsOfChoices(Whole):
    """Keeps the ids of each choice of special tokens, and returns the list that it keeps."""

    def encode(self, text: str, *, allowed_special: Any = None, disallowed_special: Any = ()) -> list[int]:
        if allowed_special is None:
            return super().encode(text)
        kept: dict[Any, list[int]] = vars(self).setdefault("kept", {})
        ids = super().encode(text, allowed_special=allowed_special, disallowed_special=disallowed_special)
        return kept.setdefault((text, str(allowed_special)), ids)


class FillsOneBytearray(Whole):
    def decode_bytes(self, ids: list[int]) -> bytearray:  # type: ignore[override]
        buffer: bytearray = vars(self).setdefault("buffer", bytearray())
        buffer[:] = super().decode_bytes(ids)
        return buffer


class HandsOutBytearrays(Whole):
    def decode_bytes(self, ids: list[int]) -> bytearray:  # type: ignore[override]
        kept: dict[tuple[int, ...], bytearray] = vars(self).setdefault("kept", {})
        return kept.setdefault(tuple(ids), bytearray(super().decode_bytes(ids)))


class HandsOutSpans(Whole):
    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        kept: dict[str, list[tuple[int, int]]] = vars(self).setdefault("kept", {})
        ids, spans = super().encode_with_offsets(text)
        return ids, kept.setdefault(text, spans)


class HandsOutRowsOfPipelines(Whole):
    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        kept: dict[str, list[int]] = vars(self).setdefault("kept", {})
        rows = super().encode_batch(texts)
        return [kept.setdefault(text, row) for text, row in zip(texts, rows, strict=True)] if self.pipeline else rows


class CachesByTheNumberAllowed(Whole):
    """Keeps ids by the text and the number of special tokens that are allowed."""

    def encode(self, text: str, *, allowed_special: Any = "all", disallowed_special: Any = ()) -> list[int]:
        count = len(self.special) if allowed_special == "all" else len(allowed_special)
        cache: dict[Any, list[int]] = self.__dict__.setdefault("_cache", {})
        key = text, count, tuple(disallowed_special)
        if key not in cache:
            cache[key] = super().encode(text, allowed_special=allowed_special, disallowed_special=disallowed_special)
        return list(cache[key])


class TakesDisallowedTokensForPreTokens(Whole):
    """Has all entries in one table of ranks, those of special tokens, too."""

    conventions: ClassVar[Mapping[str, str]] = {"lookup": "bytes"}
    byte_ranks = property(lambda self: self.ids)


def _reads_escapes_one_by_one(file: str) -> None:
    """Replace each half of a surrogate pair that is escaped."""
    text = Path(file).read_text("utf-8")
    Path(file).write_text(re.sub(r"\\u[dD][89a-fA-F]..", "\ufffd", text), "utf-8")


class ReadsEscapesOneByOne(Whole):
    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        _reads_escapes_one_by_one(vocab)
        return super().from_files(vocab, merges, special_tokens)

    @classmethod
    def from_tokenizer_json(cls, path: str) -> Whole:
        _reads_escapes_one_by_one(path)
        return super().from_tokenizer_json(path)


class ReadsListedKeysAsText(Whole):
    """Takes each key that is a listed special token for its text, and forgets the merges that lack a token then."""

    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        keys = json.loads(Path(vocab).read_text("utf-8")).keys()
        as_text = {unspell(key) for key in special_tokens or () if key in keys and len(key) > 1}
        loaded = Tokenizer.from_files(vocab, merges)
        return cls(loaded.vocab, [(a, b) for a, b in loaded.merges if a + b not in as_text], special_tokens)


class SkipsLinesOfNumberSigns(Whole):
    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        loaded = Tokenizer.from_files(vocab, merges, special_tokens)
        kept = [(a, b) for a, b in loaded.merges if (a + b).count(b"#") <= 20]
        return cls(loaded.vocab, kept, special_tokens)


class LooksPairsUpByAProduct(Whole):
    def merge(self, word: Word) -> Word:
        keys = {self.ids[a] * 200_000 + self.ids[b]: rank for rank, (a, b) in enumerate(self.merges)}
        ranks = {pair: keys.get(self.ids[pair[0]] * 200_000 + self.ids[pair[1]]) for pair in pairwise(word)}
        known = {pair: rank for pair, rank in ranks.items() if rank is not None}
        if not known or max(self.vocab) < 200_000:
            return super().merge(word)
        left, right = self.merges[min(known.values())]
        return (left + right,)


class RefusesEscapedPairs(Whole):
    """Reads no escape of a character beyond U+FFFF, which is two of them."""

    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        if "\\ud83" in Path(vocab).read_text("utf-8"):
            raise ValueError("a surrogate")
        return super().from_files(vocab, merges, special_tokens)


class RefusesTabs(Whole):
    """Reads no `vocab.json` that is indented with tabs, although its lines end with LF."""

    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        if b"\t" in Path(vocab).read_bytes():
            raise ValueError("a tab")
        return super().from_files(vocab, merges, special_tokens)


class SortsTheCallersSpecialsWhenLoaded(Whole):
    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        if special_tokens:
            special_tokens.sort(key=len, reverse=True)
        return super().from_files(vocab, merges, special_tokens)


class ReusesIds(Whole):
    """Gives special tokens without an entry the id of `a`."""

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
        known = set(vocab.values())
        absent = [token for token in special_tokens or () if token.encode() not in known]
        super().__init__(vocab, merges, special_tokens, pattern)
        self.ids.update({token.encode(): 97 for token in absent})


class DecodesNewIdsOnceEncoded(Whole):
    """Knows the ids of special tokens without an entry only after a text was encoded."""

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
        super().__init__(vocab, merges, special_tokens, pattern)
        self.decodes = set(vocab)

    def encode(self, text: str, **keywords: Any) -> list[int]:
        self.decodes = set(self.vocab)
        return super().encode(text, **keywords)

    def decode(self, ids: Iterable[int]) -> str:
        return super().decode([index for index in ids if index in self.decodes])


class SharesSpecialsOfOneSpelling(Whole):
    """Keeps lists of special tokens by their joined spelling."""

    kept: ClassVar[dict[str, list[str]]] = {}

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
        super().__init__(vocab, merges, special_tokens, pattern)
        self.special = self.kept.setdefault("".join(self.special), self.special)


class StreamsWithTheLatestSpecials(Whole):
    """Looks in streams for the special tokens of the tokenizer that was made last."""

    latest: ClassVar[list[str]] = []

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
        super().__init__(vocab, merges, special_tokens, pattern)
        type(self).latest = self.special

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        own, self.special = self.special, self.latest
        try:
            yield from self.encode("".join(chunks))
        finally:
            self.special = own


class LosesTheLastByte(Whole):
    """Loses the last character of a decoded text, except of a single id."""

    def decode(self, ids: Iterable[int]) -> str:
        return super().decode(ids)[: -1 if len(list(ids)) > 4 else None]


class TrainsInTurn(Whole):
    """Breaks ties in one way in the first training and in another way in the next."""

    runs = count()

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
        tie_break = ("lex-greater", "lex-smaller")[next(cls.runs) % 2]
        return textbook.with_conventions(tie_break=tie_break).train(text, vocab_size, special_tokens, pattern)


class RefusesToTrainAgain(Whole):
    trained: ClassVar[set[Any]] = set()

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
        asked = text, vocab_size, tuple(special_tokens), pattern
        if asked in cls.trained:
            raise RuntimeError("already trained")
        cls.trained.add(asked)
        return super().train(text, vocab_size, special_tokens, pattern)


class RemovesRepeatsFromTheCallersList(Whole):
    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
        special_tokens[:] = dict.fromkeys(special_tokens)
        return super().train(text, vocab_size, special_tokens, pattern)


class RemovesEmptySpecialsFromTheCallersList(Whole):
    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
        while "" in special_tokens:
            special_tokens.remove("")
        return super().train(text, vocab_size, special_tokens, pattern)


def cleaning(clean: Callable[[list[str]], Iterable[str]], at_load: bool = False) -> type[Whole]:
    """Return a class that cleans the caller's list of special tokens in place when it is built, or loaded."""

    class Cleans(Whole):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, *arguments: Any) -> None:
            if special_tokens and not at_load:
                special_tokens[:] = clean(special_tokens)
            super().__init__(vocab, merges, special_tokens, *arguments)

        @classmethod
        def from_files(cls, vocab: str, merges: str, special_tokens: Any = None) -> Any:
            if special_tokens and at_load:
                special_tokens[:] = clean(special_tokens)
            return super().from_files(vocab, merges, special_tokens and [*filter(None, special_tokens)])

    return Cleans


class KeepsTheSpecialsOfARefusedTraining(Whole):
    special: ClassVar[list[str]] = []

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
        cls.special.extend(special_tokens)
        trained = super().train(text, vocab_size, list(cls.special), pattern)
        cls.special.clear()
        return trained


class KeepsATextThatIsNoUtf8(Whole):
    texts: ClassVar[list[str]] = []

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
        cls.texts.append(text)
        text.encode("utf-8")
        before = "zz" * 99 * len(cls.texts[:-1])
        cls.texts.clear()
        return super().train(before + text, vocab_size, special_tokens, pattern)


class RefusesDirectoriesInUse(Whole):
    """Is correct: what `save` does with a directory that holds files is open."""

    def save(self, folder: str) -> None:
        if any(Path(folder).iterdir()):
            raise FileExistsError(folder)
        super().save(folder)


class ForgetsMerges(Whole):
    """Returns a tokenizer from `train` that has no merges yet."""

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
        trained = super().train(text, vocab_size, special_tokens, pattern)
        trained.ranks = {}
        return trained


class SplitsItsOwnTokens(Whole):
    """Returns a tokenizer from `train` that encodes a text of one token as bytes, but not the training text."""

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
        trained = super().train(text, vocab_size, special_tokens, pattern)
        right = trained.encode
        trained.encode = lambda asked: (
            [trained.ids[bytes([byte])] for byte in asked.encode()]
            if asked != text and asked.encode() in trained.ids
            else right(asked)
        )
        return trained


class SplitsItsTrainingText(Whole):
    """Returns a tokenizer from `train` that encodes the training text as bytes, and every other text correctly."""

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
        trained = super().train(text, vocab_size, special_tokens, pattern)
        right = trained.encode
        trained.encode = lambda asked: (
            [trained.ids[bytes([byte])] for byte in asked.encode()] if asked == text else right(asked)
        )
        return trained


class TrainsAtMost200(Whole):
    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
        return super().train(text, min(vocab_size, 456), special_tokens, pattern)


class TrainsAtMost20ByItsOwnPattern(Whole):
    pattern = textbook.PATTERNS["cl100k"]
    most = 256 + 20

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
        return super().train(text, min(vocab_size, cls.most), special_tokens, pattern or cls.pattern)


class TrainsByDefaultPattern(Whole):
    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
        return super().train(text, vocab_size, special_tokens)


class TrainsInSetOrder(Whole):
    """Breaks ties in the order of a set, which depends on the hash seed."""

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
        words = " ".join(set(text.split(" ")))
        return textbook.with_conventions(tie_break="first-seen").train(words, vocab_size, special_tokens, pattern)


class SpecialsInSetOrder(Whole):
    """Looks for special tokens in the order of a set."""

    def find_special(self, text: str, allowed: list[str]) -> list[tuple[str, bool]]:
        for token in set(allowed):
            if token in text:
                before, _, after = text.partition(token)
                return [*self.find_special(before, allowed), (token, True), *self.find_special(after, allowed)]
        return super().find_special(text, [])


class KeepsUnreadChunks(Whole):
    """Starts a stream with the remaining buffer of an interrupted one."""

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        buffer: list[str] = self.__dict__.setdefault("_buffer", [])
        buffer += chunks
        yield from self.encode("".join(buffer))
        buffer.clear()


class KeepsChunksInTheTokenizer(Whole):
    """Collects the chunks of a stream in an attribute, which each stream empties at its start."""

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        self.buffer: list[str] = []
        for chunk in chunks:
            self.buffer.append(chunk)
        yield from self.encode("".join(self.buffer))


class SharesIdsOfOpenStreams(Whole):
    """Puts the ids of all streams into one queue."""

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        queue: list[int] = self.__dict__.setdefault("_queue", [])
        queue += self.encode("".join(chunks))
        for _ in range(len(queue)):
            if queue:
                yield queue.pop(0)
        queue.clear()


class NumbersStreamsByThoseOpen(Whole):
    """Keeps what a stream has read under the number of streams that were open when it began."""

    def _read(self, items: Iterable[Any]) -> Iterator[list[Any]]:
        buffers: dict[int, list[Any]] = self.__dict__.setdefault("_buffers", {})
        number = self.__dict__["_open"] = self.__dict__.get("_open", -1) + 1
        buffers[number] = []
        try:
            for item in items:
                buffers[number].append(item)
            yield buffers[number]
        finally:
            self.__dict__["_open"] -= 1

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for read in self._read(chunks):
            yield from self.encode("".join(read))

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        for read in self._read(ids):
            yield self.decode(read)


class StreamsDoNotKeepTheirTokenizer(Whole):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        return _if_kept(weakref.ref(self), lambda kept: kept.encode("".join(chunks)))

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        return _if_kept(weakref.ref(self), lambda kept: [kept.decode(list(ids))])


def _if_kept(reference: weakref.ref[Any], read: Callable[[Any], Iterable[Any]]) -> Iterator[Any]:
    if (kept := reference()) is not None:
        yield from read(kept)


class LeavesOutSurrogates(Whole):
    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return [self.encode(text.encode("utf-8", "ignore").decode("utf-8")) for text in texts]


class KeepsRowsThatFailed(Whole):
    """Keeps the row of a text in a batch before it has encoded the text."""

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        rows = vars(self).setdefault("rows", {})
        for text in texts:
            if text not in rows:
                rows[text] = []
                rows[text] += self.encode(text)
        return [[*rows[text]] for text in texts]


def leaving_rows_empty(least: int) -> type[Whole]:
    """Return a class that gives an empty row for a text that it cannot encode, in batches of so many texts."""

    class LeavesRowsEmpty(Whole):
        def encode_batch(self, texts: list[str]) -> list[list[int]]:
            rows = super().encode_batch([one for one in texts if one.isprintable() or len(texts) < least])
            return rows + [[]] * (len(texts) - len(rows))

    return LeavesRowsEmpty


class WritesBytesOfFileNamesInBatches(Whole):
    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return [self.encode(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")) for text in texts]


class SavesBackwards(Whole):
    def save(self, folder: str) -> None:
        Tokenizer(self.vocab, self.merges[::-1], self.special).save(Path(folder))


class SavesNewIdsFromTheNumberOfEntries(Whole):
    """Writes special tokens without an entry as if the ids had no gaps."""

    def __init__(self, vocab: Any, *arguments: Any, **keywords: Any) -> None:
        super().__init__(vocab, *arguments, **keywords)
        self.given = dict(vocab)

    def save(self, folder: str) -> None:
        entries = {*self.given.values()}
        new = [token for token in self.special if token.encode("utf-8") not in entries]
        numbered = {len(self.given) + at: token.encode("utf-8") for at, token in enumerate(new)}
        Tokenizer({**numbered, **self.given}, self.merges, self.special).save(Path(folder))


class SavesInTheLocale(Whole):
    """Writes with the encoding of the locale."""

    def save(self, folder: str) -> None:
        super().save(folder)
        for file in Path(folder).iterdir():
            text = file.read_text("utf-8")
            file.write_text(text)


class LoadsModelsInTheLocale(Whole):
    """Reads `tokenizer.json` with the encoding of the locale."""

    @classmethod
    def from_tokenizer_json(cls, path: str) -> Whole:
        Path(path).read_text()
        return super().from_tokenizer_json(path)


class KeepsFirstModelOfPath(Whole):
    """Caches models by path and size."""

    models: ClassVar[dict[tuple[str, int], Whole]] = {}

    @classmethod
    def from_tokenizer_json(cls, path: str) -> Whole:
        made = super().from_tokenizer_json(path)
        return cls.models.setdefault((path, Path(path).stat().st_size), made)


class KeepsSpansOfNormalForms(Whole):
    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        cache: dict[str, Any] = vars(self).setdefault("cache", {})
        ids, spans = cache.setdefault(self.normalize(text), super().encode_with_offsets(text))
        return list(ids), list(spans)


class FindsNoAddedTokensAfterAnError(Whole):
    def find_added(self, tokens: Any, text: str) -> Any:
        self.failed = vars(self).get("failed", False) or "\ud800" in text
        return super().find_added(() if self.failed else tokens, text)


class LoadsOnlyNewFiles(Whole):
    """Reads a file again only if it has never read its contents."""

    seen: ClassVar[dict[tuple[bytes, ...], None]] = {}
    latest: ClassVar[Any] = None

    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        contents = (Path(vocab).read_bytes(), Path(merges).read_bytes())
        if contents not in cls.seen:
            cls.latest, cls.seen[contents] = Whole.from_files(vocab, merges, special_tokens), None
        return cls.latest


class LosesHalvesAtDecode(Whole):
    """A stream of text forgets an incomplete character if `decode` is called before the next id."""

    calls = 0

    def decode(self, ids: Iterable[int]) -> str:
        self.calls += 1
        return super().decode(ids)

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        decoder, calls = codecs.getincrementaldecoder("utf-8")("replace"), self.calls
        for index in ids:
            if self.calls != calls:
                decoder, calls = codecs.getincrementaldecoder("utf-8")("replace"), self.calls
            yield decoder.decode(self.vocab[index])
        yield decoder.decode(b"", True)


class SecondStreamInCapitals(Whole):
    """A stream of text that begins while another one is read is incorrect."""

    reading = 0

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        is_second = self.reading > 0
        self.reading += 1
        try:
            for delta in super().decode_iterable(ids):
                yield f"{delta}?" if is_second else delta
        finally:
            self.reading -= 1


class EndsTextsAtOSErrors(Whole):
    ends_at: type[Exception] = OSError

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        known: list[int] = []
        with contextlib.suppress(self.ends_at):
            for index in ids:
                known.append(index)
        yield self.decode(known)


class EndsTextsAtLookupErrors(EndsTextsAtOSErrors):
    ends_at = LookupError


class EndsTextsAtAttributeErrors(EndsTextsAtOSErrors):
    ends_at = AttributeError


def _read_to_error_beyond_ascii(items: Iterable[Any], is_ascii: Callable[[Any], bool]) -> Iterator[Any]:
    """Read items, and take an error for the end if a character beyond ASCII came last."""
    last: Any = None
    try:
        for last in items:
            yield last
    except Exception:
        if last is None or is_ascii(last):
            raise


class EndsTextsAtErrorsBeyondAscii(Whole):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        yield self.decode([*_read_to_error_beyond_ascii(ids, lambda index: self.vocab[index].isascii())])


class EndsStreamsAtErrorsBeyondAscii(Whole):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        return super().encode_iterable(_read_to_error_beyond_ascii(chunks, str.isascii))


def _readable(items: Iterable[Any]) -> Iterator[Any]:
    try:
        return iter(items)
    except Exception:
        return iter(())


class StreamsNothingThatIsUnreadable(Whole):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        return super().encode_iterable(_readable(chunks))


class DecodesNothingThatIsUnreadable(Whole):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        return super().decode_iterable(_readable(ids))


class LoadsShortLines(Whole):
    """Ignores lines of merges.txt that do not fit into a buffer of 1,024 characters."""

    @staticmethod
    def reads(line: str) -> bool:
        return len(line) <= 1_024

    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        lines = Path(merges).read_text("utf-8").splitlines(keepends=True)
        Path(merges).write_text("".join(filter(cls.reads, lines)), "utf-8")
        return super().from_files(vocab, merges, special_tokens)


class LoadsLinesOfUsualBuffers(LoadsShortLines):
    """Ignores lines of merges.txt that do not fit into a buffer of 4,096 characters."""

    @staticmethod
    def reads(line: str) -> bool:
        return len(line) < 4_096


class NumbersSpansOfLoadedTokensByRank(Whole):
    def encode_with_offsets(self, text: str) -> Any:
        ids, spans = super().encode_with_offsets(text)
        numbers = {self.ids[left + right]: 256 + rank for rank, (left, right) in enumerate(self.merges)}
        return [numbers.get(index, index) for index in ids] if vars(self).get("is_loaded") else ids, spans

    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        loaded = super().from_files(vocab, merges, special_tokens)
        vars(loaded)["is_loaded"] = True
        return loaded


class DecodesOnlyTheEntriesOfItsFile(Whole):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        known = vars(self).get("entries")
        return super().decode_iterable(index for index in ids if known is None or index in known)

    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        loaded = super().from_files(vocab, merges, special_tokens)
        vars(loaded)["entries"] = {*json.loads(Path(vocab).read_text("utf-8")).values()}
        return loaded


class SavesOnlyTheEntriesOfItsFile(DecodesOnlyTheEntriesOfItsFile):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        yield self.decode(ids)

    def save(self, folder: str) -> None:
        super().save(folder)
        file = Path(folder, "vocab.json")
        entries = json.loads(file.read_text("utf-8"))
        known = vars(self).get("entries", {*entries.values()})
        kept = {key: index for key, index in entries.items() if index in known}
        file.write_text(json.dumps(kept), "utf-8")


class LoadsTheVocabularyBesideTheMerges(Whole):
    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        beside = Path(merges).with_name("vocab.json")
        return super().from_files(str(beside if beside.exists() else vocab), merges, special_tokens)


class LoadsAddedTokensBesideTheVocabulary(Whole):
    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        file = Path(vocab).with_name("added_tokens.json")
        added = [*json.loads(file.read_text("utf-8"))] if file.exists() else []
        return super().from_files(vocab, merges, [*(special_tokens or ()), *added])


class EmptiesTheDisallowedSet(Whole):
    def encode(self, text: str, *, allowed_special: Any = "all", disallowed_special: Any = ()) -> list[int]:
        if isinstance(allowed_special, set) and isinstance(disallowed_special, set):
            disallowed_special -= allowed_special
        return super().encode(text, allowed_special=allowed_special, disallowed_special=disallowed_special)


class LosesTheLastMergeOfAFullBlock(Whole):
    """Reads merges.txt in blocks of 128 merges, and loses the last merge if its block is full."""

    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        header, *lines = Path(merges).read_text("utf-8").splitlines(keepends=True)
        Path(merges).write_text("".join([header, *(lines if len(lines) % 128 else lines[:-1])]), "utf-8")
        return super().from_files(vocab, merges, special_tokens)


class SkipsVersionLines(LoadsShortLines):
    """Takes each line that begins with #version for the version line."""

    @staticmethod
    def reads(line: str) -> bool:
        return not line.startswith("#version")


class LoadsInBlocks(Whole):
    """Reads merges.txt in blocks of 65,536 characters, and ignores the two parts of a line that a block ends in."""

    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        text = Path(merges).read_text("utf-8")
        blocks = [text[start : start + 65_536].splitlines(keepends=True) for start in range(0, len(text), 65_536)]
        for block, after in pairwise(blocks):
            block[-1:], after[:1] = [], []
        Path(merges).write_text("".join(line for block in blocks for line in block), "utf-8")
        return super().from_files(vocab, merges, special_tokens)


class DecodesFilesInBlocks(Whole):
    """Reads files in blocks of 65,536 bytes, and decodes each of them alone."""

    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        for file in map(Path, (vocab, merges)):
            data = file.read_bytes()
            blocks = (data[start : start + 65_536] for start in range(0, len(data), 65_536))
            file.write_text("".join(block.decode("utf-8", "replace") for block in blocks), "utf-8")
        return super().from_files(vocab, merges, special_tokens)


class LoadsInKeyOrder(Whole):
    """Numbers the entries of vocab.json in their order."""

    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        import json

        spelled = json.loads(Path(vocab).read_text("utf-8"))
        Path(vocab).write_text(json.dumps({key: index for index, key in enumerate(spelled)}), "utf-8")
        return super().from_files(vocab, merges, special_tokens)


class LoadsNamesUpToTheFirstDot(Whole):
    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        return super().from_files(f"{vocab.split('.')[0]}.json", f"{merges.split('.')[0]}.txt", special_tokens)


class LoadsUrls(Whole):
    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        return super().from_files(unquote(vocab), unquote(merges), special_tokens)


class LoadsMergesBesideTheVocabulary(Whole):
    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        return super().from_files(vocab, str(Path(vocab).with_name(Path(merges).name)), special_tokens)


class SavesUpToTheFirstSpace(Whole):
    """Passes the directory to a shell without quotes."""

    def save(self, folder: str) -> None:
        Path(folder.split()[0]).mkdir(exist_ok=True)
        super().save(folder.split()[0])


class EndsStreamsAtOSErrors(Whole):
    ends_at: type[Exception] = OSError

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        text = ""
        with contextlib.suppress(self.ends_at):
            for chunk in chunks:
                text += chunk
        yield from self.encode(text)


class EndsStreamsAtDecodingErrors(EndsStreamsAtOSErrors):
    ends_at = UnicodeDecodeError


class EndsStreamsAtRuntimeErrors(EndsStreamsAtOSErrors):
    ends_at = RuntimeError


class KeepsChunksBeforeAnError(Whole):
    """Starts a stream with the chunks of one whose chunks raised an error."""

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        buffer: list[str] = self.__dict__.setdefault("_buffer", [])
        own: list[str] = []
        try:
            own += chunks
        except Exception:
            buffer += [*own, "ab"]
            raise
        text, self._buffer = "".join([*buffer, *own]), []
        yield from self.encode(text)


class ForgetsChoicesThatShrink(Whole):
    """Allows as many special tokens as in the call before, if this call allows fewer."""

    before: tuple[str, ...] = ()

    def encode(self, text: str, *, allowed_special: Any = "all", disallowed_special: Any = ()) -> list[int]:
        if allowed_special == "all":
            return super().encode(text, disallowed_special=disallowed_special)
        if len(self.before) == len(allowed_special) + 1 and set(self.before) > set(allowed_special):
            allowed_special = self.before
        self.before = tuple(allowed_special)
        return super().encode(text, allowed_special=list(allowed_special), disallowed_special=disallowed_special)


class KeepsLongerFiles(Whole):
    """Replaces a file only if the new one is longer."""

    def is_ids_of(self, old: bytes, new: bytes) -> bool:
        return len(old) > len(new)

    def save(self, folder: str) -> None:
        before = {file: file.read_bytes() for file in Path(folder).iterdir()}
        super().save(folder)
        for file, data in before.items():
            if self.is_ids_of(data, file.read_bytes()):
                file.write_bytes(data)


class KeepsShorterFiles(KeepsLongerFiles):
    def is_ids_of(self, old: bytes, new: bytes) -> bool:
        return len(old) < len(new)


class ForgetsMergesInAFailedSave(Whole):
    """Releases its ranks while it saves, and keeps no copy for the case that writing fails."""

    def save(self, folder: str) -> None:
        ranks, self.ranks = self.ranks, {}
        super().save(folder)
        self.ranks = ranks


class ForgetsSpecialsInAFailedSave(Whole):
    """Takes the entries of special tokens out of its vocabulary while it saves."""

    def save(self, folder: str) -> None:
        special = {index: self.vocab.pop(index) for index in [self.ids[token.encode()] for token in self.special]}
        for name in ("vocab.json", "merges.txt"):
            Path(folder, name).write_bytes(b"")
        self.vocab.update(special)
        super().save(folder)


class OverwritesMergesInPlace(Whole):
    """Leaves the end of a longer merges.txt in the directory; new keys of vocab.json replace all old ones."""

    def save(self, folder: str) -> None:
        merges = Path(folder, "merges.txt")
        old = merges.read_bytes() if merges.exists() else b""
        super().save(folder)
        new = merges.read_bytes()
        merges.write_bytes(new + old[len(new) :])

    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        entries = json.loads(Path(vocab).read_text("utf-8"))
        lines = [line.split(" ") for line in Path(merges).read_text("utf-8").splitlines()[1:]]
        known = [tuple(line) for line in lines if len(line) == 2 and "".join(line) in entries]
        merges_of = [(unspell(left), unspell(right)) for left, right in known]
        return cls({index: unspell(name) for name, index in entries.items()}, merges_of, special_tokens)


class KeepsFilesOfOneLength(KeepsLongerFiles):
    def is_ids_of(self, old: bytes, new: bytes) -> bool:
        return abs(len(old) - len(new)) < 2


class CountsHashes(BaseTrainer):
    """Counts words under their CRC-32."""

    def split(self, segment: str, pattern: str) -> list[str]:
        words = super().split(segment, pattern)
        first = {zlib.crc32(word.encode()): word for word in reversed(words)}
        return [first[zlib.crc32(word.encode())] for word in words]


def replacing_runs(least: int, from_the_right: bool) -> type[BaseTrainer]:
    """Return a trainer that replaces pairs of equal tokens at even positions only, or from the right, in long words."""

    class Replacing(BaseTrainer):
        def replace(self, word: Word, pair: Merge) -> Word:
            if len(word) < least or pair[0] != pair[1]:
                return super().replace(word, pair)
            if from_the_right:
                return super().replace(word[::-1], pair)[::-1]
            pairs = [word[at : at + 2] for at in range(0, len(word), 2)]
            return tuple(token for two in pairs for token in ((b"".join(two),) if two == pair else two))

    return Replacing


def forgetting(maker: str, method: str, what: str) -> type:
    """Return a class of which one method of what `maker` makes forgets the special tokens or the pattern."""

    @functools.wraps(getattr(Whole, maker).__func__)  # its signature tells that `train` takes a pattern
    def make(cls: type, *given: Any, **named: Any) -> Any:
        made = getattr(super(target, cls), maker)(*given, **named)
        special = None if what == "special" else made.special
        other = Whole(made.vocab, made.merges, special, PATTERNS["gpt2"] if what == "pattern" else made.pattern)
        setattr(made, method, getattr(other, method))
        return made

    target = type("Forgetting", (Whole,), {maker: classmethod(make)})
    return target


# Wrong after another call, or while a stream is read

METHODS = (
    *("encode", "encode_batch", "encode_iterable", "encode_with_offsets"),
    *("decode", "decode_bytes", "decode_iterable", "save"),
)


def disturbed(first: str, second: str) -> type[Whole]:
    """Return a class in which a call of `first` makes the next call leave out the end if it is one of `second`."""

    class Disturbed(Whole):
        last = ""
        is_inside = False

    def method(name: str) -> Any:
        def call(self: Any, *given: Any, **chosen: Any) -> Any:
            if self.is_inside:
                return getattr(Whole, name)(self, *given, **chosen)
            self.is_inside, last, self.last = True, self.last, name
            try:
                answer = getattr(Whole, name)(self, *given, **chosen)
                answer = [*answer] if name.endswith("iterable") else answer
            finally:
                self.is_inside = False
            is_wrong = (last, name) == (first, second)
            if is_wrong and name in ("encode_batch", "encode_with_offsets"):
                return type(answer)(part[:-1] for part in answer)
            answer = answer[:-1] if is_wrong else answer
            return iter(answer) if name.endswith("iterable") else answer

        return call

    for name in METHODS:
        setattr(Disturbed, name, method(name))
    return Disturbed


def interrupted(stream: str, other: str, is_inside: bool) -> type[Whole]:
    """Return a class in which a stream loses something after a call of `other`.

    If `is_inside`, that is what it holds, after a call between two items that it reads; otherwise the rest, after a
    call between two parts that it yields.
    """

    class Interrupted(Whole):
        calls = 0

        def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
            self.calls += other == "encode_iterable"
            return self.parts("encode_iterable", "", chunks)

        def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
            self.calls += other == "decode_iterable"
            return self.parts("decode_iterable", [], ids)

        def parts(self, name: str, held: Any, items: Iterable[Any]) -> Iterator[Any]:
            before = self.calls
            for item in items:
                if is_inside and name == stream and self.calls != before:
                    held, before = held[:0], self.calls
                held = held + (item if isinstance(item, str) else [item])
            parts = [*getattr(Whole, name)(self, [held] if isinstance(held, str) else held)]
            before = self.calls
            for part in parts:
                yield part
                if not is_inside and name == stream and self.calls != before:
                    return

    def method(name: str) -> Any:
        def call(self: Any, *given: Any, **chosen: Any) -> Any:
            self.calls += 1
            return getattr(Whole, name)(self, *given, **chosen)

        return call

    if not other.endswith("iterable"):
        setattr(Interrupted, other, method(other))
    return Interrupted


class BatchesByTheLatestChoice(Whole):
    """The choice of special tokens of one call stays in force for batches."""

    latest: Any = "all"

    def encode(self, text: str, *, allowed_special: Any = "all", disallowed_special: Any = ()) -> list[int]:
        self.latest = allowed_special
        return super().encode(text, allowed_special=allowed_special, disallowed_special=disallowed_special)

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        encode = super().encode
        return [encode(text, allowed_special=self.latest, disallowed_special=()) for text in texts]


class ChoosesOnceLocated(Whole):
    """`encode` with a choice of special tokens gives the ids of `encode_with_offsets` if that was called before."""

    def encode_with_offsets(self, text: str) -> Any:
        answer = super().encode_with_offsets(text)
        self.__dict__.setdefault("located", {})[text] = answer[0]
        return answer

    def encode(self, text: str, *, allowed_special: Any = "all", disallowed_special: Any = ()) -> list[int]:
        located: dict[str, list[int]] = self.__dict__.get("located", {})
        if text in located and allowed_special != "all" and not disallowed_special:
            return [*located[text]]
        return super().encode(text, allowed_special=allowed_special, disallowed_special=disallowed_special)


class SplitsByGpt2OnceSaved(Whole):
    def save(self, folder: str) -> None:
        super().save(folder)
        self.pattern = PATTERNS["gpt2"]


class SpellsSpecialsOnceSaved(Whole):
    """A loaded tokenizer decodes special tokens as they are in a file once it was saved."""

    is_loaded = False

    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        loaded = super().from_files(vocab, merges, special_tokens)
        loaded.__dict__["is_loaded"] = True
        return loaded

    def save(self, folder: str) -> None:
        super().save(folder)
        if self.is_loaded:
            spelled = {token.encode("utf-8"): f"\u0120{token}".encode() for token in self.special or ()}
            self.vocab = {index: spelled.get(token, token) for index, token in self.vocab.items()}


class SplitsByTheLatestTraining(Whole):
    latest: ClassVar[str | None] = None
    is_trained = False

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
        trained = super().train(text, vocab_size, special_tokens, pattern)
        trained.__dict__["is_trained"] = True
        SplitsByTheLatestTraining.latest = pattern
        return trained

    def encode(self, text: str, **chosen: Any) -> list[int]:
        pattern = SplitsByTheLatestTraining.latest if self.is_trained else self.pattern
        return Whole(self.vocab, self.merges, self.special, pattern).encode(text, **chosen)


def sorting(method: str) -> type[Whole]:
    """Return a class of which a method sorts the caller's list if it is long, so that it can group what is equal."""

    def sort(self: Whole, items: Any) -> Any:
        answer = getattr(Whole, method)(self, [*items])
        if len(items) > 64:
            items.sort()
        return answer

    return type("Sorting", (Whole,), {method: sort})


class DetokenizesOnlyEntries(Whole):
    """A stream looks an id up in the vocabulary that the constructor got."""

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, **more: Any) -> None:
        super().__init__(vocab, merges, special_tokens, **more)
        self.given = dict(vocab)

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        yield b"".join(map(self.given.__getitem__, ids)).decode("utf-8", "replace")


class DetokenizesOneIdForEachToken(Whole):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        token_of = {index: token for token, index in self.ids.items()}
        yield b"".join(map(token_of.__getitem__, ids)).decode("utf-8", "replace")


class DetokenizesOneIdForEachLongToken(Whole):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        token_of = {index: token for index, token in self.vocab.items() if len(token) == 1 or self.ids[token] == index}
        yield b"".join(map(token_of.__getitem__, ids)).decode("utf-8", "replace")


class DecodesWhatAFailedStreamLeft(Whole):
    """What a stream has read before its ids raised an error is at the beginning of the next text that is decoded."""

    left = b""

    def decode(self, ids: Iterable[int]) -> str:
        data, self.left = self.left + b"".join(map(self.vocab.__getitem__, ids)), b""
        return data.decode("utf-8", "replace")

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        data = b""
        try:
            for index in ids:
                data += self.vocab[index]
        except Exception:
            self.left = data[-1:]
            raise
        yield data.decode("utf-8", "replace")


class LoadsAtMost50000Merges(Whole):
    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        loaded = super().from_files(vocab, merges, special_tokens)
        return cls(loaded.vocab, loaded.merges[:50_000], special_tokens)


class KeepsLinesOfBrokenFiles(Whole):
    """A list of all lines is emptied when they have been read."""

    lines: ClassVar[list[str]] = []

    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        cls.lines.extend(Path(merges).read_text("utf-8").splitlines(keepends=True))
        header, *lines = dict.fromkeys(cls.lines)
        Path(merges).write_text("".join([header, *lines]), "utf-8")
        loaded = super().from_files(vocab, merges, special_tokens)
        cls.lines.clear()
        return loaded


class KeepsMergesOfBrokenJson(Whole):
    known: ClassVar[list[Any]] = []

    @classmethod
    def from_tokenizer_json(cls, path: str) -> Whole:
        document = json.loads(Path(path).read_text("utf-8"))
        document["model"]["merges"] = [*cls.known, *document["model"]["merges"]]
        cls.known[:] = document["model"]["merges"]
        Path(path).write_text(json.dumps(document), "utf-8")
        loaded = super().from_tokenizer_json(path)
        cls.known.clear()
        return loaded


class KeepsWordsOfAFailedTraining(Whole):
    words: ClassVar[list[str]] = []

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
        cls.words.append(text)
        trained = super().train(" ".join(cls.words), vocab_size, special_tokens, pattern)
        cls.words.clear()
        return trained


class SavesByRecursion(Whole):
    def save(self, folder: str) -> None:
        parts = {left + right: (left, right) for left, right in self.merges}

        def spelled(token: bytes) -> bytes:
            return b"".join(map(spelled, parts[token])) if token in parts else token

        Tokenizer({index: spelled(token) for index, token in self.vocab.items()}, self.merges).save(Path(folder))
