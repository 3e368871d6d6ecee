"""Wrong tokenizers, each in one way alone: after one call, in one method, or of one that was loaded or trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar
from unicodedata import normalize

from bpe_conformance.fixtures import spell
from bpe_conformance.reference import Tokenizer
from bpe_conformance.reference.formats import gpt2

NONE = {"allowed_special": (), "disallowed_special": ()}


class Marked(Tokenizer):
    """Knows how it was made."""

    made = "built"

    @classmethod
    def train(cls, *given: Any, **options: Any) -> Any:
        trained = super().train(*given, **options)
        trained.made = "trained"
        return trained

    @classmethod
    def from_files(cls, *given: Any, **options: Any) -> Any:
        loaded = super().from_files(*given, **options)
        loaded.made = "loaded"
        return loaded


class BatchesWithoutPattern(Tokenizer):
    def encode_batch(self, texts: Any, **choice: Any) -> Any:
        return Tokenizer(self.vocab, self.merges, self.special_tokens).encode_batch(texts, **choice)


class StreamsWithoutSpecialsOnceTrained(Marked):
    def encode_iterable(self, chunks: Any, **choice: Any) -> Any:
        return super().encode_iterable(chunks, **(NONE if self.made == "trained" else choice))


class DecodesByRankOnceTrained(Marked):
    def decode(self, ids: Any) -> str:
        if self.made != "trained":
            return super().decode(ids)
        tokens = [*(bytes([byte]) for byte in range(256)), *(left + right for left, right in self.merges)]
        tokens += [token.encode() for token in self.special_tokens]
        return b"".join(tokens[index] for index in ids).decode("utf-8", "replace")


class SavesWithoutSpecialsOnceTrained(Marked):
    def save(self, folder: Any) -> None:
        special = {token.encode() for token in self.special_tokens if self.made == "trained"}
        gpt2.write(folder, {i: token for i, token in self.vocab.items() if token not in special}, self.merges)


class OneTrainedAtATime(Tokenizer):
    latest: Any = None

    @classmethod
    def train(cls, *given: Any, **options: Any) -> Any:
        trained = super().train(*given, **options)
        cls.latest = Tokenizer(trained.vocab, trained.merges, trained.special_tokens, pattern=trained.pattern)
        return trained

    def encode(self, text: str, **choice: Any) -> list[int]:
        return (type(self).latest or super()).encode(text, **choice)  # type: ignore[no-any-return]


class DecodesSpellingsOnceLoaded(Marked):
    def decode(self, ids: Any) -> str:
        return "".join(spell(self.vocab[index]) for index in ids) if self.made == "loaded" else super().decode(ids)


class SavesWhatItWasGiven(Tokenizer):
    def __init__(self, vocab: Any, *given: Any, **options: Any) -> None:
        self.given = dict(vocab)
        super().__init__(vocab, *given, **options)

    def save(self, folder: Any) -> None:
        gpt2.write(folder, self.given, self.merges)


class RowsLeft(Tokenizer):
    def encode_batch(self, texts: Any, **choice: Any) -> Any:
        self.rows = getattr(self, "rows", [])
        for text in texts:
            self.rows.append(self.encode(text, **choice))
        rows, self.rows = self.rows, []
        return rows


class TextsByTheirBeginning(Tokenizer):
    def encode(self, text: str, **choice: Any) -> list[int]:
        if choice:
            return super().encode(text, **choice)
        kept = self.__dict__.setdefault("kept", {})
        return list(kept.setdefault((text[:512], len(text)), super().encode(text)))


class IdsByTheirBeginning(Tokenizer):
    def decode(self, ids: Any) -> str:
        kept = self.__dict__.setdefault("kept", {})
        return str(kept.setdefault((len(ids), tuple(ids[:64])), super().decode(ids)))


class LongTextsWithoutCase(Tokenizer):
    def encode_batch(self, texts: Any, **choice: Any) -> Any:
        rows: dict[str, list[int]] = {}
        keys = [text.casefold() if len(text) > 40 else text for text in texts]
        return [rows.setdefault(key, self.encode(text, **choice)) for key, text in zip(keys, texts, strict=True)]


class HandsItsListOut(Tokenizer):
    """Keeps texts, and hands out the very list that it keeps, the first time."""

    def encode(self, text: str, **choice: Any) -> list[int]:
        kept = self.__dict__.setdefault("kept", {})
        if text in kept:
            return list(kept[text])
        kept[text] = super().encode(text, **choice)
        return kept[text]  # type: ignore[no-any-return]


class HandsItsRowsOut(Tokenizer):
    def encode_batch(self, texts: Any, **choice: Any) -> Any:
        kept = self.__dict__.setdefault("kept", {})
        return [kept.setdefault(text, super(HandsItsRowsOut, self).encode(text, **choice)) for text in texts]

    def encode(self, text: str, **choice: Any) -> list[int]:
        return list(self.__dict__.setdefault("kept", {}).get(text) or super().encode(text, **choice))


class TakesChunksOff(Tokenizer):
    def encode_iterable(self, chunks: Any, **choice: Any) -> Any:
        taken = (chunks.pop(0) for _ in range(len(chunks))) if isinstance(chunks, list) else chunks
        return super().encode_iterable(taken, **choice)


class TakesIdsOff(Tokenizer):
    def decode_bytes(self, ids: Any) -> bytes:
        whole = super().decode_bytes(ids)
        if isinstance(ids, list):
            ids.clear()
        return whole

    def decode(self, ids: Any) -> str:
        return super().decode(list(ids))


class GoesOnWithAList(Tokenizer):
    """Decodes only what is new in a list that it was given before."""

    last: Any = None
    text = ""
    count = 0

    def decode(self, ids: Any) -> str:
        new = not (isinstance(ids, list) and ids is self.last)
        self.text = super().decode(ids) if new else self.text + super().decode(ids[self.count :])
        self.last, self.count = ids, len(ids)
        return self.text


class SortsTheCallersList(Tokenizer):
    @classmethod
    def from_files(cls, vocab_path: Any, merges_path: Any, special_tokens: Any = None, **options: Any) -> Any:
        if isinstance(special_tokens, list):
            special_tokens.sort(key=len, reverse=True)
        return super().from_files(vocab_path, merges_path, special_tokens, **options)


class BytesLeftByAnError(Tokenizer):
    def decode(self, ids: Any) -> str:
        held = self.__dict__.setdefault("held", bytearray())
        for index in ids:
            held += self.vocab[index]
        text = held.decode("utf-8", "replace")
        held.clear()
        return text


class SpecialIdsOfTheClass(Tokenizer):
    shared: ClassVar[dict[str, int]] = {}

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        ids = {token: index for index, token in self.vocab.items()}
        self.shared.update({token: ids[token.encode()] for token in self.special_tokens})

    def encode(self, text: str, **choice: Any) -> list[int]:
        return [
            self.shared.get(self.vocab[one].decode("utf-8", "ignore"), one) for one in super().encode(text, **choice)
        ]


class SurrogatesAsQuestionMarks(Tokenizer):
    """Keeps texts by bytes in which a lone surrogate is a question mark, and encodes it as U+FFFD."""

    def encode(self, text: str, **choice: Any) -> list[int]:
        kept, right = (
            self.__dict__.setdefault("kept", {}),
            text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
        )
        return list(kept.setdefault(text.encode("utf-8", "replace"), super().encode(right, **choice)))


class RingOfTexts(Tokenizer):
    """Keeps ids of texts in 2,048 slots, and a text's place when the slot is used anew."""

    def encode(self, text: str, **choice: Any) -> list[int]:
        places, slots = self.__dict__.setdefault("places", {}), self.__dict__.setdefault("slots", [[]] * 2_048)
        if text not in places:
            places[text] = len(places) % 2_048
            slots[places[text]] = super().encode(text, **choice)
        return list(slots[places[text]])


class TextsByTheirWords(Tokenizer):
    def encode(self, text: str, **choice: Any) -> list[int]:
        if len(text) < 100 or choice:
            return super().encode(text, **choice)
        return list(self.__dict__.setdefault("kept", {}).setdefault(tuple(text.split()), super().encode(text)))


class ChunksByTheirNormalForm(Tokenizer):
    def encode_iterable(self, chunks: Any, **choice: Any) -> Any:
        kept = self.__dict__.setdefault("kept", {})
        return super().encode_iterable((kept.setdefault(normalize("NFC", one), one) for one in chunks), **choice)


class TrainingsByTheirLetters(Tokenizer):
    kept: ClassVar[dict[Any, Any]] = {}

    @classmethod
    def train(cls, text: Any, size: int, special: Any = (), **options: Any) -> Any:
        key = "".join(sorted(text)), size, tuple(special or ()), *options.items()
        if key not in cls.kept:
            cls.kept[key] = super().train(text, size, special, **options)
        return cls.kept[key]


class IdsByTheirNumber(Tokenizer):
    def decode(self, ids: Any) -> str:
        key = tuple(sorted(ids)) if len(ids) > 500 else tuple(ids)
        return str(self.__dict__.setdefault("kept", {}).setdefault(key, super().decode(ids)))


class ChoiceLeftByARefusal(Tokenizer):
    left: Any = None

    def encode(self, text: str, **choice: Any) -> list[int]:
        if choice:
            self.left = choice
            ids = super().encode(text, **choice)
            self.left = None
            return ids
        return super().encode(text, **{**self.left, "disallowed_special": ()} if self.left else {})


class RowsByTheirBeginning(Tokenizer):
    def encode_batch(self, texts: Any, **choice: Any) -> Any:
        rows: dict[Any, list[int]] = {}
        keys = [(len(text), text[:1_000]) for text in texts]
        return [list(rows.setdefault(key, self.encode(text, **choice))) for key, text in zip(keys, texts, strict=True)]


class ChunksByTheirEnds(Tokenizer):
    kept: ClassVar[dict[Any, str]] = {}

    def encode_iterable(self, chunks: Any, **choice: Any) -> Any:
        alike = (self.kept.setdefault((len(one), one[:999], one[-999:]), one) for one in chunks)
        return super().encode_iterable(alike, **choice)


class TrainingsByTheirEnd(Tokenizer):
    kept: ClassVar[dict[Any, Any]] = {}

    @classmethod
    def train(cls, text: Any, size: int, special: Any = (), **options: Any) -> Any:
        key = len(text), text[-1_000:], size, tuple(special or ()), *options.items()
        if key not in cls.kept:
            cls.kept[key] = super().train(text, size, special, **options)
        return cls.kept[key]


class IdsByTheirEnd(Tokenizer):
    def decode(self, ids: Any) -> str:
        key = len(ids), tuple(ids[-500:])
        return str(self.__dict__.setdefault("kept", {}).setdefault(key, super().decode(ids)))


class BatchesWithoutNewSpecials(Tokenizer):
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, **options: Any) -> None:
        super().__init__(vocab, merges, special_tokens, **options)
        listed = [token for token in special_tokens or () if token.encode() in set(vocab.values())]
        self.without = Tokenizer(vocab, merges, listed, **options)

    def encode_batch(self, texts: Any, **choice: Any) -> Any:
        return self.without.encode_batch(texts, **choice)


class StreamsWithoutNewSpecials(BatchesWithoutNewSpecials):
    encode_batch = Tokenizer.encode_batch

    def encode_iterable(self, chunks: Any, **choice: Any) -> Any:
        return self.without.encode_iterable(chunks, **choice)


class MergesBesideTheVocabulary(Tokenizer):
    @classmethod
    def from_files(cls, vocab_path: Any, merges_path: Any, special_tokens: Any = None, **options: Any) -> Any:
        beside = Path(vocab_path).parent / Path(merges_path).name
        if beside.exists():
            return super().from_files(vocab_path, beside, special_tokens, **options)
        return cls(gpt2.read_vocab(vocab_path), [], special_tokens, **options)


class LongRowsHandedOutAgain(Tokenizer):
    """Keeps the last long text with its list, and hands that out again."""

    def encode(self, text: str, **choice: Any) -> list[int]:
        kept = self.__dict__.setdefault("kept", {})
        if len(text) < 10_000 or choice:
            return super().encode(text, **choice)
        if text not in kept:
            kept.clear()
            kept[text] = super().encode(text)
        return kept[text]  # type: ignore[no-any-return]


class SpecialTokensLeftByATraining(Tokenizer):
    left: ClassVar[Any] = None

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, **options: Any) -> None:
        super().__init__(vocab, merges, special_tokens or self.left, **options)

    @classmethod
    def train(cls, text: Any, size: int, special: Any = (), **options: Any) -> Any:
        cls.left = list(special or ())
        trained = super().train(text, size, special, **options)
        cls.left = None
        return trained


class SpecialTokensJoined(Tokenizer):
    """Shares tokenizers of the same special tokens, which it joins for a key."""

    kept: ClassVar[dict[Any, Tokenizer]] = {}

    def encode(self, text: str, **choice: Any) -> list[int]:
        key = "|".join(self.special_tokens), len(self.vocab), self.pattern
        return super(SpecialTokensJoined, self.kept.setdefault(key, self)).encode(text, **choice)


class OneIdWithoutMark(Tokenizer):
    def decode(self, ids: Any) -> str:
        return super().decode(ids).removeprefix("\ufeff" if len(ids) == 1 else "")


class BlankRowsChanged(Tokenizer):
    """Takes the white space at the end of a batch of one blank text for a space."""

    def encode_batch(self, texts: Any, **choice: Any) -> Any:
        blank = len(texts) == 1 and len(texts[0]) > 3 and texts[0].isspace()
        return super().encode_batch([texts[0][:-1] + " "] if blank else texts, **choice)
