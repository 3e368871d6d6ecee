"""Laws of one fixed history: what is wrong in one way, for one kind of long input, or after one call breaks its law."""

from __future__ import annotations

import codecs
import io
from collections import Counter
from typing import Any, ClassVar
from unicodedata import normalize

import pytest
import test_laws
import test_long_laws
from conftest import Project

from bpe_conformance.fixtures import spell
from bpe_conformance.fixtures.spec import load_spec
from bpe_conformance.judging.law import Law, check
from bpe_conformance.judging.laws import LAWS, bind
from bpe_conformance.judging.state_laws import STATE_LAWS
from bpe_conformance.judging.subject import Subject
from bpe_conformance.judging.training_laws import TRAINING_LAWS
from bpe_conformance.judging.ways_laws import WAYS_LAWS
from bpe_conformance.known_bugs.plain import Encoder, Trainer, Words
from bpe_conformance.reference import Tokenizer, format_gpt2, textbook

NONE = {"allowed_special": (), "disallowed_special": ()}


@pytest.fixture(scope="module")
def laws() -> dict[str, Law]:
    return {law.id: law for law in bind(load_spec(check_schema=False).clauses)}


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
        format_gpt2.write(folder, {i: token for i, token in self.vocab.items() if token not in special}, self.merges)


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
        format_gpt2.write(folder, self.given, self.merges)


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
    """Keeps ids in a ring of 2^16 slots, and a pre-token's place in it when the slot is used anew."""

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
        merges = format_gpt2.read_merges(merges_path)[:50_000]
        return cls(format_gpt2.read_vocab(vocab_path), merges, special_tokens, **options)


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


class SixteenBitVocabulary(Tokenizer):
    """Numbers tokens in 16 bits while it trains."""

    @classmethod
    def train(cls, *given: Any, **options: Any) -> Any:
        trained = super().train(*given, **options)
        return {index & 0xFFFF: token for index, token in trained.vocab.items()}, trained.merges


BREAKERS = [
    ("law-train-vocabulary", SixteenBitVocabulary),
    ("law-built-ways", BatchesWithoutPattern),
    ("law-trained-ways", StreamsWithoutSpecialsOnceTrained),
    ("law-trained-ways", DecodesByRankOnceTrained),
    ("law-trained-ways", SavesWithoutSpecialsOnceTrained),
    ("law-trained-ways", OneTrainedAtATime),
    ("law-loaded-ways", DecodesSpellingsOnceLoaded),
    ("law-saved-numbers", SavesWhatItWasGiven),
    ("law-long-texts", CutsBehindLineEnds),
    ("law-long-texts", LongTextsByTheDefaultPattern),
    ("law-long-runs", LongRunsByTheLongestToken),
    ("law-long-runs", LongRunsFromTheRight),
    ("law-long-streams", FullBuffersFlushed),
    ("law-many-pre-tokens", RingWithStaleKeys),
    ("law-long-decoding", UnfinishedDecoder),
    ("law-long-decoding", LineEndsTranslated),
    ("law-long-errors", SurrogatesDropped),
    ("law-long-errors", UnknownIdsClipped),
    ("law-long-choices", ChoicesOfShortTexts),
    ("law-long-choices", DisallowedInTheBeginning),
    ("law-large-files", MostMergesRead),
    ("law-train-large", LongWordsSkipped),
    ("law-train-large", FirstMillionCounted),
    ("law-train-large", CountedInParts),
    ("law-train-large-pattern", LongTextsCountedByTheDefaultPattern),
    ("law-batch-bad-text", RowsLeft),
    ("law-history", TextsByTheirBeginning),
    ("law-decode-history", IdsByTheirBeginning),
    ("law-history", TextsByTheirWords),
    ("law-history", SurrogatesAsQuestionMarks),
    ("law-history", RingOfTexts),
    ("law-lists", HandsItsListOut),
    ("law-lists", HandsItsRowsOut),
    ("law-lists", TakesChunksOff),
    ("law-lists", TakesIdsOff),
    ("law-lists", GoesOnWithAList),
    ("law-files-again", SortsTheCallersList),
    ("law-after-error", BytesLeftByAnError),
    ("law-instances", SpecialIdsOfTheClass),
    ("law-batch-history", LongTextsWithoutCase),
    ("law-stream-history", ChunksByTheirNormalForm),
    ("law-train-history", TrainingsByTheirLetters),
    ("law-decode-history", IdsByTheirNumber),
    ("law-choices-in-turn", ChoiceLeftByARefusal),
]


@pytest.mark.parametrize(("name", "target"), BREAKERS, ids=lambda one: getattr(one, "__name__", one))
def test_what_is_wrong_in_one_way_alone_breaks_the_law(laws: dict[str, Law], name: str, target: type) -> None:
    found = check(laws[name], Subject("x", target))
    assert found is not None
    assert found.difference.expected != found.difference.got
    assert "raised" not in found.difference.got


@pytest.mark.parametrize(
    "law",
    [law for law in (*WAYS_LAWS, *TRAINING_LAWS, *STATE_LAWS) if "new process" not in law.needs],
    ids=lambda law: law.id,
)
def test_the_reference_keeps_the_law(laws: dict[str, Law], law: Law) -> None:
    subject = Subject("x", Tokenizer)
    assert check(laws[law.id], subject) is None
    assert subject.notes == []


SAVING = """
import json
from pathlib import Path
from bpe_conformance.fixtures import spell
from bpe_conformance.reference import Tokenizer

class ByTheLocale(Tokenizer):
    def save(self, folder):
        with open(Path(folder, "vocab.json"), "w") as file:
            json.dump({spell(token): index for index, token in self.vocab.items()}, file, ensure_ascii=False)
        with open(Path(folder, "merges.txt"), "w") as file:
            file.write("".join(f"{spell(left)} {spell(right)}\\n" for left, right in self.merges))
"""


def test_files_in_the_encoding_of_the_locale_are_told(project: Project) -> None:
    project.write("saving.py", SAVING)
    for adapter, failed in (("saving:ByTheLocale", 1), ("reference", 0)):
        options = ("--adapter", adapter, "--bpe-case", "law-saved-elsewhere")
        done = project.pytester.runpytest_subprocess("conformance", *options, timeout=60)
        done.assert_outcomes(failed=failed, passed=1 - failed)


TUPLES = """
from bpe_conformance.reference import Tokenizer

class Pairs(Tokenizer):
    @classmethod
    def train(cls, *given, **options):
        trained = Tokenizer.train(*given, **options)
        return trained.vocab, trained.merges
"""


def test_a_trainer_that_returns_a_tuple_is_not_asked_to_encode_behind_the_bridge_either(project: Project) -> None:
    project.write("tuples.py", TUPLES)
    laws = [f"--bpe-case=law-{name}" for name in ("train-encode", "trained-ways", "train-pattern")]
    for options in ((), ("--bpe-isolate",)):
        done = project.pytester.runpytest_subprocess("conformance", "--adapter=tuples:Pairs", *laws, *options)
        done.assert_outcomes(passed=3)


def test_every_law_has_a_breaker() -> None:
    """But for those that begin new processes: law-hash-seed and its like in test_laws.py, law-saved-elsewhere above."""
    broken = {*test_laws.BREAKERS, *test_long_laws.BREAKERS, *(law for law, _ in BREAKERS)}
    broken |= {"law-long-ways", "law-split-classes"}  # test_rich_laws.py, test_character_laws.py
    assert broken == {law.id for law in LAWS if "new process" not in law.needs}
