"""The state machine reports a tokenizer that earlier calls disturb, and no other."""

from __future__ import annotations

import codecs
import functools
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from helpers.wrong_tokenizers import (
    METHODS,
    BatchesByTheLatestChoice,
    ChoosesOnceLocated,
    ForgetsMergesInAFailedSave,
    ForgetsSpecialsInAFailedSave,
    ReversesTheCallersMerges,
    SharesSpecialsOfOneSpelling,
    SortsTheCallersSpecialsWhenLoaded,
    SortsTheIdsToDecode,
    SpellsSpecialsOnceSaved,
    SplitsByGpt2OnceSaved,
    SplitsByTheLatestTraining,
    StreamsWithTheLatestSpecials,
    Whole,
    disturbed,
    interrupted,
)

from bpe_conformance.adapters.bridge.client import isolated
from bpe_conformance.adapters.loading import resolve
from bpe_conformance.answer import TIMED_OUT, Answer, Fault, Ids
from bpe_conformance.cases.judging import judge
from bpe_conformance.fixtures import PATTERNS, read_model
from bpe_conformance.fixtures.answers import restored
from bpe_conformance.fixtures.pipeline import Pipeline
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs.state import AddedTokensOfLastFile
from bpe_conformance.operations import Decode, Encode, Question, Train
from bpe_conformance.properties import lifecycle
from bpe_conformance.properties.engine import Effort, Found, skip_reason
from bpe_conformance.properties.lifecycle import (
    PROPERTIES,
    STAGES,
    Lifecycle,
    Machine,
    Origin,
    Stage,
    Undisturbed,
    after_each_error,
)
from bpe_conformance.reference import Tokenizer
from bpe_conformance.spec import installed_spec


class EncoderOnly:
    """Cannot be trained or loaded, so every step of the state machine needs a table."""

    vocab: dict[int, bytes]
    merges: list[tuple[bytes, bytes]]

    def __init__(self, *arguments: Any) -> None:
        self._inner = Tokenizer(*arguments)

    def encode(self, text: str) -> list[int]:
        return self._inner.encode(text)


class CachesByLength(Whole):
    def encode(self, text: str, *arguments: Any, **keywords: Any) -> list[int]:
        cache: dict[tuple[int, str], list[int]] = self.__dict__.setdefault("_cache", {})
        key = len(text), text[:2].lower()
        if key not in cache:
            cache[key] = super().encode(text, *arguments, **keywords)
        return list(cache[key])


class ChangesWhenOthersAreBuilt(Whole):
    made = 0

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        type(self).made += 1
        self._number = self.made

    def encode(self, text: str, *arguments: Any, **keywords: Any) -> list[int]:
        ids = super().encode(text, *arguments, **keywords)
        return ids if self._number == self.made else ids[::-1]


class HandsItsListOut(Whole):
    def encode(self, text: str, *arguments: Any, **keywords: Any) -> list[int]:
        cache: dict[str, list[int]] = self.__dict__.setdefault("_cache", {})
        return cache.setdefault(text, super().encode(text, *arguments, **keywords))


class KeepsOneListForNoIds(Whole):
    def encode(self, text: str, *arguments: Any, **keywords: Any) -> list[int]:
        none: list[int] = self.__dict__.setdefault("_none", [])
        return super().encode(text, *arguments, **keywords) if text else none


class KeepsOneListForASpecialToken(Whole):
    def encode(self, text: str, *arguments: Any, **keywords: Any) -> list[int]:
        ids = super().encode(text, *arguments, **keywords)
        cache: dict[str, list[int]] = self.__dict__.setdefault("_cache", {})
        return cache.setdefault(text, ids) if text in self.special else ids


class RepeatsOneEmptyRow(Whole):
    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        rows: list[list[int]] = [[]] * len(texts)
        for place, text in enumerate(texts):
            if text:
                rows[place] = self.encode(text)
        return rows


class KeepsTheCallersVocab(Whole):
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
        super().__init__(vocab, merges, special_tokens, pattern)
        self._callers = vocab

    def encode(self, text: str, *arguments: Any, **keywords: Any) -> list[int]:
        ids = super().encode(text, *arguments, **keywords)
        return [index for index in ids if self._callers or index == 0]


class StaysBusyAfterAnError(Whole):
    busy = False

    def encode(self, text: str, *arguments: Any, **keywords: Any) -> list[int]:
        if self.busy:
            raise RuntimeError("busy")
        self.busy = True
        ids = super().encode(text, *arguments, **keywords)
        self.busy = False
        return ids


class DecodesTheEndLater(Whole):
    held = b""

    def decode(self, ids: Iterable[int]) -> str:
        data = self.held + b"".join(self.vocab[index] for index in ids)
        self.held = data[-1:] if data[-1:] >= b"\xc0" else b""
        return data.decode("utf-8", "replace")


class KeepsHalfACharacterAfterAnError(Whole):
    """Keeps one incremental decoder, which each call finishes unless an id is unknown."""

    def decode(self, ids: Iterable[int]) -> str:
        decoder: Any = self.__dict__.setdefault("_decoder", codecs.getincrementaldecoder("utf-8")("replace"))
        return "".join(decoder.decode(self.vocab[index]) for index in ids) + decoder.decode(b"", final=True)


class HandsOneEmptyBatchOut(Whole):
    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        nothing: list[list[int]] = self.__dict__.setdefault("_nothing", [])
        return super().encode_batch(texts) if texts else nothing


class SharesTheBufferOfStreams(Whole):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        self.ids = self.encode("".join(chunks))
        for place in range(len(self.ids)):
            yield self.ids[min(place, len(self.ids) - 1)]


class CachesRowsByNumber(Whole):
    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        cache: dict[int, list[list[int]]] = self.__dict__.setdefault("_rows", {})
        return cache.setdefault(len(texts), super().encode_batch(texts))


class KeepsTheCorpus(Whole):
    corpus = ""

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
        cls.corpus += text + "\n\n"
        return super().train(cls.corpus, vocab_size, special_tokens, pattern)


class TrainedIsReversed(Whole):
    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
        trained: Any = super().train(text, vocab_size, special_tokens, pattern)
        trained.ranks = {}
        trained.encode = lambda text: [*text.encode()]
        return trained


class RowsOfEqualTextsAreOneList(Whole):
    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        rows = {text: self.encode(text) for text in texts}
        return [rows[text] for text in texts]


class LoadedIsReversed(Whole):
    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Any:
        loaded: Any = super().from_files(vocab, merges, special_tokens)
        encode = loaded.encode
        loaded.encode = lambda text: encode(text)[::-1]
        return loaded


class NeverReplacesFiles(Whole):
    def save(self, folder: str) -> None:
        elsewhere = Path(folder, "new")
        elsewhere.mkdir()
        Tokenizer(self.vocab, self.merges, self.special).save(elsewhere)
        for file in elsewhere.iterdir():
            if not Path(folder, file.name).exists():
                shutil.copy(file, folder)
        shutil.rmtree(elsewhere)


class CachesTextsByLastId(Whole):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        cache: dict[tuple[int, ...], list[str]] = self.__dict__.setdefault("texts", {})
        listed = list(ids)
        yield from cache.setdefault(tuple(listed[-1:]), list(super().decode_iterable(listed)))


class CachesSpansByFirstLetter(Whole):
    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        cache: dict[str, list[tuple[int, int]]] = self.__dict__.setdefault("cached", {})
        ids, spans = super().encode_with_offsets(text)
        return ids, cache.setdefault(text[:1], spans)


class KeepsIdsOfPipelinesByLength(Whole):
    def encode(self, text: str, **keywords: Any) -> list[int]:
        cache: dict[int, list[int]] = vars(self).setdefault("cache", {})
        if self.pipeline is None or len(text) not in cache:
            cache[len(text)] = super().encode(text, **keywords)
        return list(cache[len(text)])


WRONG = {
    "law-history": CachesByLength,
    "law-instances": ChangesWhenOthersAreBuilt,
    "law-lists": HandsItsListOut,
    "law-pipeline-history": KeepsIdsOfPipelinesByLength,
    "law-unaliased": KeepsTheCallersVocab,
    "law-after-error": StaysBusyAfterAnError,
    "law-decode-history": DecodesTheEndLater,
    "law-stream-history": SharesTheBufferOfStreams,
    "law-batch-history": CachesRowsByNumber,
    "law-detok-history": CachesTextsByLastId,
    "law-offsets-history": CachesSpansByFirstLetter,
    "law-trained-ways": TrainedIsReversed,
    "law-loaded-ways": LoadedIsReversed,
    "law-files-again": NeverReplacesFiles,
}
IN_NEW_PROCESSES = {"law-train-history": KeepsTheCorpus}
"""Wrong tokenizers with state that a whole process shares: only a new process answers correctly."""
TOGETHER = {
    "law-tables": SharesSpecialsOfOneSpelling,
    "law-tables-stream": StreamsWithTheLatestSpecials,
    "law-tables-pipeline": AddedTokensOfLastFile,
    "law-after-error-ways": ForgetsMergesInAFailedSave,
}
"""Wrong tokenizers that mix up the tables of several tokenizers."""
IN_ANY_ORDER = {
    "law-order-encode": ChoosesOnceLocated,
    "law-order-batch": BatchesByTheLatestChoice,
    "law-order-stream": SplitsByGpt2OnceSaved,
    "law-order-offsets": disturbed("decode", "encode_with_offsets"),
    "law-order-decode": disturbed("encode_batch", "decode_bytes"),
    "law-order-detok": disturbed("save", "decode_iterable"),
    "law-order-loaded": SpellsSpecialsOnceSaved,
    "law-order-trained": SplitsByTheLatestTraining,
    "law-open-stream": interrupted("encode_iterable", "save", is_inside=True),
    "law-open-detok": interrupted("decode_iterable", "encode_with_offsets", is_inside=False),
}
"""Wrong tokenizers that a call of one method disturbs in another one, or in a stream that is read."""

QUICK = Effort(shrink=False)
FEW = Effort(examples_factor=0.4, shrink=False)


def accused(implementation: Implementation, stages: Sequence[Any], effort: Effort = QUICK) -> set[str]:
    found = Lifecycle(implementation, effort, stages).run()
    return {name for name, one in found.items() if one.mismatch.depends_on is None}


def spawning(target: type, monkeypatch: pytest.MonkeyPatch) -> Implementation:
    here = Path(__file__).parent
    monkeypatch.setenv("PYTHONPATH", f"{here}{os.pathsep}{here.parent}")
    name = f"test_lifecycle:{target.__qualname__}"
    return Implementation("x", target, spawn=lambda environment: isolated(name, env=environment))


def stage_of(property_id: str) -> list[Any]:
    """Return the stage that is named after a property, or that of tokenizers that live together."""
    named = [stage for stage in STAGES if stage.name == property_id.replace("offsets", "detok")]
    return named or [stage for stage in STAGES if stage.name == "law-instances"]


def test_every_property_has_a_wrong_tokenizer() -> None:
    assert {*WRONG, *IN_NEW_PROCESSES, *TOGETHER, *IN_ANY_ORDER} == {one.id for one in PROPERTIES}


def test_a_correct_tokenizer_passes() -> None:
    assert Lifecycle(Implementation("x", Whole), Effort(examples_factor=0.4)).run() == {}
    assert all(one.run(Implementation("x", Whole), QUICK) is None for one in PROPERTIES if one.id in TOGETHER)


@pytest.mark.parametrize("get_tokenizer", ["", "def get_tokenizer(*_):\n    raise NotImplementedError\n"])
def test_a_cs336_module_needs_no_tokenizer(get_tokenizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (
        "from bpe_conformance.reference import Tokenizer\n\n\ndef run_train_bpe(path, vocab_size, special_tokens):\n"
    )
    source += "    trained = Tokenizer.train(path.read_bytes().decode(), vocab_size, special_tokens)\n"
    source += f"    return trained.vocab, trained.merges\n\n\n{get_tokenizer}"
    (tmp_path / "homework.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "homework", raising=False)
    assert Lifecycle(Implementation("x", resolve("cs336:homework")), QUICK).run() == {}


def test_a_tokenizer_that_refuses_some_tables_may_live_with_others() -> None:
    class RefusesReversedBytes(Whole):
        def __init__(self, vocab: Any, *arguments: Any) -> None:
            if vocab[0] != b"\0":
                raise ValueError("the ids of bytes are not their numbers")
            super().__init__(vocab, *arguments)

    implementation = Implementation("x", RefusesReversedBytes)
    assert all(one.run(implementation, QUICK) is None for one in PROPERTIES if one.id in TOGETHER)


@pytest.mark.parametrize("property_id", TOGETHER)
def test_tables_that_are_mixed_up_are_found(property_id: str) -> None:
    (found,) = (
        one.run(Implementation("x", TOGETHER[property_id]), QUICK) for one in PROPERTIES if one.id == property_id
    )
    assert found is not None


def test_special_tokens_are_asked_for_after_an_error_and_hide_no_failure_of_plain_text() -> None:
    class DecodesNoSpecials(Whole):
        def decode_bytes(self, ids: Iterable[int]) -> bytes:
            special = {token.encode() for token in self.special}
            return b"".join(one for one in map(self.vocab.__getitem__, ids) if one not in special)

    class ForgetsMergesToo(DecodesNoSpecials, ForgetsMergesInAFailedSave):
        pass

    (tested,) = (one for one in PROPERTIES if one.id == "law-after-error-ways")
    assert tested.run(Implementation("x", DecodesNoSpecials), QUICK) is None
    for target, method in ((ForgetsSpecialsInAFailedSave, "encode_with_offsets"), (ForgetsMergesToo, "encode")):
        found = tested.run(Implementation("x", target), QUICK)
        assert found is not None
        assert found.mismatch.depends_on is None
        assert found.mismatch.asked.operation.call().method == method
        assert found.mismatch.asked.context.startswith("after a call of save")


def test_spans_that_an_error_leaves_are_found() -> None:
    class KeepsSpansAfterAnError(Whole):
        """Gathers the spans in a list of its own, which a call empties only if it succeeds."""

        def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
            gathered: list[tuple[int, int]] = vars(self).setdefault("gathered", [])
            special = next((one for one in self.special if one in text), "")
            if special and "\ud800" in text:
                gathered.append((text.index(special), text.index(special) + len(special)))
            ids, spans = super().encode_with_offsets(text)
            found = [*gathered, *spans]
            gathered.clear()
            return ids, found

    (tested,) = (one for one in PROPERTIES if one.id == "law-after-error-ways")
    found = tested.run(Implementation("x", KeepsSpansAfterAnError), QUICK)
    assert found is not None
    call = "encode_with_offsets with a lone surrogate after special tokens"
    assert found.mismatch.asked.context == f"after a call of {call}"


@pytest.mark.parametrize("property_id", ["law-after-error", "law-after-error-ways"])
def test_what_encode_leaves_after_a_special_token_and_an_error_is_found(property_id: str) -> None:
    class StaysBusyAfterSpecials(Whole):
        def encode(self, text: str, **choice: Any) -> list[int]:
            if vars(self).pop("busy", False):
                return []
            self.busy = "\ud800" in text and any(one in text for one in self.special)
            return super().encode(text, **choice)

        def encode_batch(self, texts: list[str]) -> list[list[int]]:
            return [super(StaysBusyAfterSpecials, self).encode(text) for text in texts]

        def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
            yield from super().encode("".join(chunks))

    implementation = Implementation("x", StaysBusyAfterSpecials)
    if property_id == "law-after-error":
        assert property_id in accused(implementation, [stage for stage in STAGES if stage.name == property_id])
    else:
        (tested,) = (one for one in PROPERTIES if one.id == property_id)
        assert tested.run(implementation, QUICK) is not None


def test_what_a_save_into_no_directory_leaves_is_found() -> None:
    class IsLostInNoDirectory(Whole):
        lost = False

        def save(self, folder: str) -> None:
            self.lost |= not Path(folder).is_dir()
            super().save(folder)

        def encode(self, text: str, **choice: Any) -> list[int]:
            return [] if self.lost else super().encode(text, **choice)

    (tested,) = (one for one in PROPERTIES if one.id == "law-after-error-ways")
    found = tested.run(Implementation("x", IsLostInNoDirectory), QUICK)
    assert found is not None
    assert found.mismatch.asked.context.startswith("after a call of save")


def test_each_call_that_may_be_refused_is_made_before_others() -> None:
    failed = set[str]()

    class Records(Whole):
        def __getattribute__(self, name: str) -> Any:
            found = super().__getattribute__(name)
            if name not in ("encode", "decode", "decode_bytes", "encode_batch", "save") and not name.endswith("able"):
                return found

            @functools.wraps(found)
            def call(*arguments: Any, **keywords: Any) -> Any:
                try:
                    result = found(*arguments, **keywords)
                    return list(result) if name.endswith("able") else result
                except Exception as error:
                    failed.add(f"{name}: {type(error).__name__}: {error}")
                    raise

            return call

    (tested,) = (one for one in PROPERTIES if one.id == "law-after-error-ways")
    assert tested.run(Implementation("x", Records), QUICK) is None
    for method, error in (
        *((method, "UnicodeEncodeError") for method in ("encode", "encode_iterable", "encode_batch")),
        *((method, "KeyError") for method in ("decode", "decode_bytes", "decode_iterable")),
        *(("encode", "disallowed"), ("encode_iterable", "OSError")),
        ("save", "is not a regular file"),
    ):
        assert [one for one in failed if one.startswith(f"{method}: ") and error in one], (method, error)


def test_special_tokens_are_not_asked_for_after_an_error_if_that_takes_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = list[str]()

    def ask(_: object, question: Question[Any]) -> Answer:
        asked.append(question.operation.call().method)
        return Fault(TIMED_OUT, "no answer within 10 s")

    monkeypatch.setattr(lifecycle.Instance, "ask", ask)
    monkeypatch.setattr(lifecycle, "undisturbed", lambda *_: None)
    (tested,) = (one for one in PROPERTIES if one.id == "law-after-error-ways")
    assert tested.run(Implementation("x", Whole), QUICK) is None
    assert asked.count("encode") == 2


KEYS_OF_TABLES: dict[str, Callable[[Whole], Any]] = {
    "specials-by-spaces": lambda one: " ".join(one.special),
    "specials-by-commas": lambda one: ",".join(one.special),
    "specials-by-lines": lambda one: "\n".join(one.special),
    "specials-by-case": lambda one: [token.lower() for token in one.special],
    "merges-in-any-order": lambda one: (sorted(one.merges), sorted(one.vocab.items())),
    "merges-by-results": lambda one: (sorted(one.vocab.items()), b" ".join(left + right for left, right in one.merges)),
    "ids-in-any-order": lambda one: (one.merges, sorted(one.vocab), sorted(one.vocab.values())),
}


@pytest.mark.parametrize("name", KEYS_OF_TABLES)
def test_tables_that_a_key_confuses_are_found(name: str) -> None:
    of_specials, kept = name.startswith("specials"), dict[str, Whole]()

    class Confuses(Whole):
        """Encodes by the table, or by the special tokens, of the first tokenizer with the same key."""

        def encode(self, text: str, **choice: Any) -> list[int]:
            first = kept.setdefault(repr((KEYS_OF_TABLES[name](self), self.pattern, of_specials or self.special)), self)
            if of_specials:
                return self.encode_segments(self.find_special(text, first.special))
            return Whole.encode(first, text)

    (tables,) = (one for one in PROPERTIES if one.id == "law-tables")
    assert tables.run(Implementation("x", Confuses), QUICK) is not None


KEYS_OF_PIPELINES: dict[str, Callable[[Pipeline], Any]] = {
    "normalizer": lambda one: (one.added_tokens, one.steps),
    "normal-form": lambda one: (bool(one.normalizer), one.added_tokens, one.steps),
    "flags": lambda one: (one.normalizer, [token.content for token in one.added_tokens], one.steps),
    "prefix-space": lambda one: (one.normalizer, one.added_tokens, [type(step) for step in one.steps]),
    "number-of-steps": lambda one: (one.normalizer, one.added_tokens, len(one.steps)),
    "behavior": lambda one: (one.added_tokens, [getattr(step, "expression", step) for step in one.steps]),
    "invert": lambda one: (one.added_tokens, [getattr(step, "behavior", step) for step in one.steps]),
}


@pytest.mark.parametrize("name", KEYS_OF_PIPELINES)
def test_pipelines_that_a_key_confuses_are_found(name: str) -> None:
    kept = dict[str, Pipeline]()

    class Confuses(Whole):
        """Encodes by the first pipeline with the same key."""

        def encode(self, text: str, **choice: Any) -> list[int]:
            own = self.pipeline
            self.pipeline = own and kept.setdefault(repr(KEYS_OF_PIPELINES[name](own)), own)
            ids = super().encode(text, **choice)
            self.pipeline = own
            return ids

    (tables,) = (one for one in PROPERTIES if one.id == "law-tables-pipeline")
    assert tables.run(Implementation("x", Confuses), QUICK) is not None


@pytest.mark.parametrize("of_all", [False, True])
def test_a_setting_of_the_latest_pipeline_is_found_despite_a_cache(of_all: bool) -> None:
    class LooksUpAsTheLatest(Whole):
        """Keeps `ignore_merges` in the class, and what each tokenizer has encoded in the tokenizer."""

        lookups: ClassVar[list[str]] = ["pair"]

        @classmethod
        def from_tokenizer_json(cls, path: str) -> Any:
            made = super().from_tokenizer_json(path)
            cls.lookups[0] = made.pipeline.lookup if made.pipeline else "pair"
            return made

        def encode(self, text: str, **choice: Any) -> list[int]:
            kept: dict[str, list[int]] = vars(self).setdefault("kept", {})
            if text not in kept:
                self.lookup = self.lookups[0] if self.pipeline or of_all else self.lookup
                kept[text] = super().encode(text, **choice)
            return kept[text]

    (tables,) = (one for one in PROPERTIES if one.id == "law-tables-pipeline")
    assert tables.run(Implementation("x", LooksUpAsTheLatest), QUICK) is not None


def test_tables_that_are_wrong_in_one_order_are_found() -> None:
    class SplitsNothingAfterOneThatSplitsNothing(Whole):
        """The tokenizers by the default pattern are made first, and in the second order last."""

        latest: ClassVar[str | None] = None

        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
            if pattern == PATTERNS["none"]:
                type(self).latest = pattern
            super().__init__(vocab, merges, special_tokens, pattern or self.latest)

    implementation = Implementation("x", SplitsNothingAfterOneThatSplitsNothing)
    SplitsNothingAfterOneThatSplitsNothing.latest = None  # what probes have left
    assert next(one for one in PROPERTIES if one.id == "law-tables").run(implementation, QUICK) is not None


class MergesNothingAfterFour(Whole):
    """Makes tokenizers without merges once four are made in a process, so that even a new one is wrong."""

    made: ClassVar[int] = 0

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
        super().__init__(vocab, merges, special_tokens, pattern)
        type(self).made += 1
        if self.made > 4:
            self.ranks = {}


def test_tables_are_mixed_up_if_only_a_new_process_is_correct(monkeypatch: pytest.MonkeyPatch) -> None:
    found = next(one for one in PROPERTIES if one.id == "law-tables").run(
        spawning(MergesNothingAfterFour, monkeypatch), QUICK
    )
    assert found is not None
    assert found.mismatch.depends_on is None


@pytest.mark.parametrize("property_id", WRONG)
def test_damage_by_earlier_steps_is_found(property_id: str) -> None:
    assert property_id in accused(Implementation("x", WRONG[property_id]), stage_of(property_id))


class SortsWhatItHasReturned(Whole):
    def encode(self, text: str, *arguments: Any, **keywords: Any) -> list[int]:
        returned: list[list[int]] = self.__dict__.setdefault("_returned", [])
        for ids in returned:
            ids.sort()
        returned.append(super().encode(text, *arguments, **keywords))
        return returned[-1]


class SortsTheCallersTexts(Whole):
    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        rows = super().encode_batch(texts)
        texts.sort()
        return rows


class ReversesTheCallersChunks(Whole):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from super().encode_iterable(list(chunks))
        if isinstance(chunks, list):
            chunks.reverse()


@pytest.mark.parametrize(
    ("target", "property_id"),
    [
        (SortsWhatItHasReturned, "law-lists"),
        (SortsTheCallersTexts, "law-batch-history"),
        (ReversesTheCallersChunks, "law-stream-history"),
        (SortsTheIdsToDecode, "law-decode-history"),
        (ReversesTheCallersMerges, "law-lists"),
        (SortsTheCallersSpecialsWhenLoaded, "law-files-again"),
    ],
)
def test_a_list_whose_items_change_places_is_found(target: Any, property_id: str) -> None:
    stages = STAGES[1:2] if property_id == "law-files-again" else STAGES[:1]
    assert property_id in accused(Implementation("x", target), stages, FEW)


def test_a_list_of_special_tokens_that_the_constructor_empties_is_found() -> None:
    class EmptiesTheCallersSpecials(Whole):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
            super().__init__(vocab, merges, special_tokens, pattern)
            if special_tokens:
                special_tokens.clear()

    assert accused(Implementation("x", EmptiesTheCallersSpecials), STAGES[:1], FEW) == {"law-lists"}


def test_a_stream_that_another_one_ends_is_found() -> None:
    class ReadsTheLatestStream(Whole):
        def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
            own = self.latest = object()
            for index in super().encode_iterable(chunks):
                if self.latest is not own:
                    return
                yield index

    assert accused(Implementation("x", ReadsTheLatestStream), STAGES[:1], FEW) == {"law-stream-history"}


def test_a_method_is_called_unless_it_is_lost_or_a_trained_tokenizer_lacks_it() -> None:
    for is_offered, is_lost, is_trained, has in product((False, True), repeat=4):
        machine: Any = SimpleNamespace(
            capabilities={"decode", *["encode"] * is_offered}, lifecycle=SimpleNamespace(lost={*["encode"] * is_lost})
        )
        origin = Origin("a", read_model({}), training=Train("ab", 257) if is_trained else None)
        tokenizer: Any = SimpleNamespace(origin=origin, proxy=SimpleNamespace(has=lambda name, has=has: has))
        assert Machine._has(machine, tokenizer, "encode") == (is_offered and not is_lost and (has or not is_trained))


@pytest.mark.parametrize(("number", "buildable"), [*product(range(4), range(3))])
def test_the_first_tokenizer_has_whichever_table_can_be_built(number: int, buildable: int) -> None:
    tokenizers: list[int] = []

    def build(number: int) -> None:
        tokenizers.extend([buildable] * (number % 3 == buildable))

    lifecycle = SimpleNamespace(origins=[None] * 3)
    machine: Any = SimpleNamespace(capabilities={"encode"}, lifecycle=lifecycle, tokenizers=tokenizers, _build=build)
    Machine._build_first(machine, number)
    assert tokenizers == [buildable]


def test_a_step_is_taken_if_there_is_what_it_needs_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Machine, "_build_first", lambda machine, number: None)
    for name, (_, needs, _, _) in [*lifecycle._STEPS.items()]:
        taken: list[Any] = []
        monkeypatch.setattr(lifecycle, "_STEPS", {name: (lambda machine, _, to=taken: to.append(machine), needs, 0, 0)})
        stage: Any = SimpleNamespace(name="", steps={name})
        for capabilities in (needs, needs | {"more"}, *(needs - {one} for one in needs)):
            made = SimpleNamespace(capabilities=capabilities)
            of_tests: Any = SimpleNamespace(implementation=SimpleNamespace(made_by=lambda _, made=made: made))
            Machine.take_steps(of_tests, stage, bytes(1 + lifecycle.WIDTH))
        assert [machine.capabilities for machine in taken] == [needs, needs | {"more"}]


@pytest.mark.parametrize("step", ["encode", "locate", "batch", "stream", "detokenize"])
def test_a_step_asks_every_text_of_its_choice(step: str) -> None:
    asked: list[Any] = []
    machine: Any = SimpleNamespace(
        _chosen=lambda choice: SimpleNamespace(origin=SimpleNamespace(model=None)),
        _ask=lambda tokenizer, operation, call=None: asked.append(operation),
        _ids=lambda tokenizer, text, tail: [*text.encode()],
        _compare_lists=lambda *lists: None,
    )
    getattr(Machine, step)(machine, SimpleNamespace(texts=["KLM", "NOPQ", "RS"], number=0))
    written = [bytes(one.ids).decode() if step == "detokenize" else ascii(one.write()) for one in asked]
    assert re.sub("[^A-Z]", "", "".join(written)) == "KLMNOPQRS"


@pytest.mark.parametrize("step", ["decode", "detokenize"])
def test_the_bytes_after_a_text_differ_by_choice(step: str) -> None:
    tails: list[int] = []
    machine: Any = SimpleNamespace(
        _chosen=lambda choice: SimpleNamespace(grown=[]),
        _ask=lambda tokenizer, operation, call=None: None,
        _ids=lambda tokenizer, text, tail: tails.append((tail or 0) % len(lifecycle.TAILS)) or [97],
    )
    for number in range(len(lifecycle.TAILS)):
        choice = SimpleNamespace(texts=["k"], number=number, flag=False, other_flag=False)
        getattr(Machine, step)(machine, choice)
    assert {*tails} == {*range(len(lifecycle.TAILS))}


def test_each_question_is_asked_of_each_undisturbed_tokenizer_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Origin, Any]] = []

    def is_right(self: Undisturbed, implementation: Implementation, origin: Origin, question: Question[Any]) -> bool:
        asked.append((origin, question.operation))
        return len(asked) % 3 == 0

    monkeypatch.setattr(Undisturbed, "_is_right", is_right)
    undisturbed = Undisturbed(Implementation("x", Whole))
    models = {name: read_model({"merges": merges}) for name, merges in (("a", []), ("b", [["a", "b"]]))}
    every = [
        (Origin(name, model, made), Question(operation, model))
        for name, model in models.items()
        for made in ("built", "loaded", "saved")
        for operation in (Encode("ab"), Encode("b"), Decode((97, 98)))
    ]
    first = [undisturbed.answers(*one) for one in every]
    assert asked == [(origin, question.operation) for origin, question in every]
    assert [undisturbed.answers(*one) for one in every] == first == [number % 3 == 2 for number in range(len(every))]
    assert len(asked) == len(every)


@pytest.mark.parametrize("gives", [(1, 2, 3, 4, 5), (1, 2, 3), (1, 9, 3, 4, 5), (1, 2, 3, 4, 5, 5), ()])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_of_a_stream_that_is_not_read_to_its_end_what_it_gave_is_compared(gives: tuple[int, ...], count: int) -> None:
    right, judged = (1, 2, 3, 4, 5), list[tuple[int, ...]]()
    stream = SimpleNamespace(origin=None, question=None, ids=iter(gives), read=[])
    machine: Any = SimpleNamespace(
        streams=[stream],
        lifecycle=SimpleNamespace(undisturbed=SimpleNamespace(correct=lambda *_: Ids(right))),
        _attempt=lambda step, method, call: (call(), None),
        _judge=lambda origin, question, answer: judged.append(answer.ids),
    )
    for asked in range(count, 8, count):
        Machine._read_on(machine, 0, count)
        read = gives[:asked]
        assert judged[-1] == (read if len(read) < asked else (*read, *right[asked:]))


def test_batch_rows_that_share_a_list_break_only_the_clause_on_shared_lists() -> None:
    implementation = Implementation("x", RowsOfEqualTextsAreOneList)
    assert accused(implementation, stage_of("law-history")) == {"law-batch-history"}
    assert all(judge(case, implementation) is None for case in installed_spec().cases if case.operation.name == "batch")
    assert next(one.clause_id for one in PROPERTIES if one.id == "law-batch-history") == "LAW-PURE-1"


def test_equal_steps_in_a_row_are_shown_once() -> None:
    found = Lifecycle(Implementation("x", HandsItsListOut), QUICK, stage_of("law-lists")).run()["law-lists"]
    steps = found.mismatch.asked.context.split("; ")
    assert any(step.endswith(" times") for step in steps)
    assert all(one != other for one, other in pairwise(steps))


@pytest.mark.parametrize("target", [KeepsOneListForNoIds, KeepsOneListForASpecialToken])
def test_lists_kept_for_the_simplest_texts_are_found(target: Any) -> None:
    assert "law-lists" in accused(Implementation("x", target), stage_of("law-lists"))


def test_half_a_character_that_a_refused_call_leaves_is_found() -> None:
    stages = stage_of("law-after-error")
    assert accused(Implementation("x", KeepsHalfACharacterAfterAnError), stages) == {"law-decode-history"}


def test_rows_that_a_refused_call_makes_wrong_are_found() -> None:
    class LosesRowsAfterAnError(Whole):
        most: int | None = None

        def encode_batch(self, texts: list[str]) -> list[list[int]]:
            try:
                return super().encode_batch(texts)[: self.most]
            except UnicodeEncodeError:
                self.most = 1
                raise

    stages = stage_of("law-after-error")
    assert accused(Implementation("x", LosesRowsAfterAnError), stages, FEW) == {"law-batch-history"}


def test_the_call_right_after_a_refused_one_is_asked() -> None:
    class GivesNothingOnceAfterARefusedText(Whole):
        has_refused = False

        def encode(self, text: str, *arguments: Any, **keywords: Any) -> list[int]:
            if self.has_refused:
                self.has_refused = False
                return []
            self.has_refused = "\ud800" in text
            return super().encode(text, *arguments, **keywords)

        def decode_bytes(self, ids: Iterable[int]) -> bytes:
            self.has_refused = False
            return super().decode_bytes(ids)

    stages = stage_of("law-after-error")
    assert "law-after-error" in accused(Implementation("x", GivesNothingOnceAfterARefusedText), stages)


def test_damage_by_a_disallowed_token_is_found() -> None:
    class ForgetsMergesAtADisallowedToken(Whole):
        def encode(self, text: str, *, allowed_special: Any = "all", disallowed_special: Any = ()) -> list[int]:
            try:
                return super().encode(text, allowed_special=allowed_special, disallowed_special=disallowed_special)
            except UnicodeEncodeError:
                raise
            except ValueError:
                self.ranks = {}
                raise

    stages = [Stage("law-after-error", frozenset({"encode", "encode_allowed", "refuse"}), 30)]
    assert accused(Implementation("x", ForgetsMergesAtADisallowedToken), stages) == {"law-after-error"}


def test_the_call_right_after_a_refused_training_is_asked() -> None:
    class GivesNothingOnceAfterARefusedTraining(Whole):
        has_refused = False

        @classmethod
        def train(cls, *arguments: Any, **keywords: Any) -> Any:
            cls.has_refused = True
            trained = super().train(*arguments, **keywords)
            cls.has_refused = False
            return trained

        def encode(self, text: str, *arguments: Any, **keywords: Any) -> list[int]:
            ids = [] if self.has_refused else super().encode(text, *arguments, **keywords)
            type(self).has_refused = False
            return ids

    stages = stage_of("law-after-error")
    assert "law-after-error" in accused(Implementation("x", GivesNothingOnceAfterARefusedTraining), stages)


@pytest.mark.parametrize("least_specials", [0, 1])
def test_tokenizers_by_other_patterns_are_asked_after_other_calls(least_specials: int) -> None:
    class CachesByLengthUnderAPattern(CachesByLength):
        def encode(self, text: str, *arguments: Any, **keywords: Any) -> list[int]:
            is_right = self.pattern == PATTERNS["gpt2"] or len(self.special) < least_specials
            kind = Whole if is_right else CachesByLength
            return kind.encode(self, text, *arguments, **keywords)

    stages = [replace(STAGES[1], steps={"build", "encode"}, examples=30)]
    assert accused(Implementation("x", CachesByLengthUnderAPattern), stages) == {"law-instances"}


def test_bytes_that_decode_bytes_keeps_are_found() -> None:
    class DecodesTheEndLaterAsBytes(Whole):
        held = b""

        def decode_bytes(self, ids: Iterable[int]) -> bytes:
            data = self.held + super().decode_bytes(ids)
            self.held = data[-1:] if data[-1:] >= b"\xc0" else b""
            return data

    assert accused(Implementation("x", DecodesTheEndLaterAsBytes), stage_of("law-history")) == {"law-decode-history"}


def test_an_empty_batch_that_the_caller_can_change_is_found() -> None:
    assert accused(Implementation("x", HandsOneEmptyBatchOut), stage_of("law-lists")) == {"law-batch-history"}


def test_an_empty_row_that_is_repeated_is_found() -> None:
    assert "law-batch-history" in accused(Implementation("x", RepeatsOneEmptyRow), stage_of("law-lists"))


@pytest.mark.slow
@pytest.mark.parametrize("property_id", IN_NEW_PROCESSES)
def test_shared_state_of_a_process_is_found(property_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spawned = spawning(IN_NEW_PROCESSES[property_id], monkeypatch)
    assert property_id in accused(spawned, stage_of(property_id))


@pytest.mark.parametrize("property_id", IN_NEW_PROCESSES)
def test_a_new_process_that_gives_no_answer_is_no_correct_one(property_id: str) -> None:
    missing = Implementation(
        "x",
        IN_NEW_PROCESSES[property_id],
        spawn=lambda environment: isolated("no_such_module:Tok", env=environment),
    )
    assert property_id not in accused(missing, stage_of(property_id))


@pytest.mark.parametrize("property_id", ["law-after-error", "law-lists", "law-unaliased"])
def test_earlier_stages_report_nothing(property_id: str) -> None:
    earlier = STAGES[: [stage.name for stage in STAGES].index(property_id)]
    assert not accused(Implementation("x", WRONG[property_id]), earlier, Effort(examples_factor=0.4))


@pytest.mark.parametrize("accepts", [0, 2], ids=["no-table", "few-tables"])
def test_a_tokenizer_that_refuses_some_tables_is_tested_on_the_others(accepts: int) -> None:
    class Refuses(EncoderOnly):
        def __init__(self, vocab: Any, merges: Any, *arguments: Any) -> None:
            if not accepts or len(merges) > accepts:
                raise ValueError("this table is not supported")
            super().__init__(vocab, merges, *arguments)

    found = Lifecycle(Implementation("x", Refuses), Effort(examples_factor=0.4), STAGES[:1]).run()
    assert all(one.mismatch.depends_on for one in found.values())


def test_a_tokenizer_that_uses_its_callers_arguments_breaks_only_the_clause_on_them() -> None:
    class UsesTheCallersVocab(Whole):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
            super().__init__(vocab, merges, special_tokens, pattern)
            self._callers = vocab

        def encode(self, text: str, *arguments: Any, **keywords: Any) -> list[int]:
            ids = super().encode(text, *arguments, **keywords)
            return [index for index in ids if self._callers[index] is not None]

        def decode(self, ids: Iterable[int]) -> str:
            return b"".join(self._callers[index] for index in ids).decode("utf-8", "replace")

        def encode_batch(self, texts: list[str]) -> list[list[int]]:
            return [self.encode(text) for text in texts]

    assert [*Lifecycle(Implementation("x", UsesTheCallersVocab), QUICK).run()] == ["law-unaliased"]


class SavesTheCallersMerges(Whole):
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
        super().__init__(vocab, merges, special_tokens, pattern)
        self._callers = merges

    def save(self, folder: str) -> None:
        Whole(self.vocab, list(self._callers)).save(folder)


class SavesTheCallersVocab(Whole):
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
        super().__init__(vocab, merges, special_tokens, pattern)
        self._callers = vocab

    def save(self, folder: str) -> None:
        super().save(folder)
        if not self._callers:
            Path(folder, "vocab.json").write_text("{}", "utf-8")


class StreamsWithTheCallersMerges(Whole):
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
        super().__init__(vocab, merges, special_tokens, pattern)
        self._callers = merges

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        return Whole(self.vocab, list(self._callers)).encode_iterable(chunks)


@pytest.mark.parametrize("wrong", [SavesTheCallersMerges, SavesTheCallersVocab, StreamsWithTheCallersMerges])
def test_every_method_is_asked_after_the_caller_emptied_the_arguments(wrong: type[Whole]) -> None:
    assert accused(Implementation("x", wrong), stage_of("law-unaliased")) == {"law-unaliased"}


def test_a_trained_tokenizer_without_time_left_has_no_further_methods() -> None:
    class Slow(Whole):
        @property
        def encode_iterable(self) -> Any:
            if self.merges:
                time.sleep(0.5)
            return super().encode_iterable

    implementation = Implementation("x", Slow, limit=0.4)
    found = Lifecycle(implementation, QUICK, stage_of("law-instances")).run()
    assert {one.mismatch.asked.operation.name for one in found.values()} <= {"stream"}


@pytest.mark.slow
def test_an_encoder_that_always_finds_special_tokens_breaks_no_rule_about_state() -> None:
    class AlwaysFindsThem(Whole):
        def encode(self, text: str, *, allowed_special: Any = "all", disallowed_special: Any = ()) -> list[int]:
            return super().encode(text)

    assert Lifecycle(Implementation("x", AlwaysFindsThem), QUICK).run() == {}


def test_an_encoder_is_not_accused_of_an_error_that_it_did_not_raise() -> None:
    class CachesWithoutTheChoice(Whole):
        def encode(self, text: str, *, allowed_special: Any = "all", disallowed_special: Any = "all") -> list[int]:
            cache: dict[str, list[int]] = self.__dict__.setdefault("_cache", {})
            if text not in cache:
                cache[text] = super().encode(
                    text, allowed_special=allowed_special, disallowed_special=disallowed_special
                )
            return [*cache[text]]

    stages = [Stage("law-after-error", frozenset({"encode", "encode_allowed"}), 20)]
    assert accused(Implementation("x", CachesWithoutTheChoice), stages, Effort()) == {"law-history"}


def test_a_trained_tokenizer_that_cannot_encode_is_found() -> None:
    class TrainedCannotEncode(Whole):
        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
            trained: Any = super().train(text, vocab_size, special_tokens, pattern)
            trained.encode = {}.__getitem__
            return trained

    assert accused(Implementation("x", TrainedCannotEncode), stage_of("law-trained-ways"), FEW) == {"law-trained-ways"}


def test_a_trained_tokenizer_without_a_usable_table_is_asked_nothing() -> None:
    class LosesAnEntry(EncoderOnly):
        conventions: ClassVar[dict[str, str]] = {"tie_break": "unspecified"}

        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: list[str]) -> LosesAnEntry:
            learned = Tokenizer.train(text, vocab_size, special_tokens)
            trained = cls(learned.vocab, learned.merges)
            trained.vocab = {index: token for index, token in learned.vocab.items() if token != b"\x80"}
            trained.merges = learned.merges
            return trained

    assert not accused(Implementation("x", LosesAnEntry), stage_of("law-instances"))


def test_a_failed_save_that_changes_the_directory_is_a_change_of_the_process() -> None:
    class SavesInTheDirectory(Whole):
        def save(self, folder: str) -> None:
            before = Path.cwd()
            os.chdir(folder)
            super().save(".")
            os.chdir(before)

    with restored() as changes:
        after_each_error.run(Implementation("x", SavesInTheDirectory), QUICK)
    assert changes


class KeepsBytesOfABrokenStream(Whole):
    held = b""

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        for index in ids:
            self.held += self.vocab[index]
        data, self.held = self.held, b""
        yield data.decode("utf-8", "replace")


class CountsOnAfterAnError(Whole):
    position = 0

    def encode_with_offsets(self, text: str) -> Any:
        start, self.position = self.position, self.position + len(text)
        ids, spans = super().encode_with_offsets(text)
        self.position = 0
        return ids, [(start + first, start + last) for first, last in spans]


class KeepsChunksOfAFailedStream(Whole):
    chunks: Sequence[str] = ()

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for chunk in chunks:
            chunk.encode("utf-8")
            self.chunks = [*self.chunks, chunk]
        text, self.chunks = "".join(self.chunks), []
        yield from self.encode(text)


class PassesOnItsSpecialTokens(Whole):
    found: ClassVar[list[str]] = []

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
        self.found.extend(special_tokens or ())
        super().__init__(vocab, merges, [*self.found])
        self.found.clear()


class KeepsTheChoiceOfAFailedCall(Whole):
    def encode(self, text: str, *, allowed_special: Any = "all", disallowed_special: Any = ()) -> list[int]:
        if allowed_special == "all" or disallowed_special:
            return super().encode(text, disallowed_special=disallowed_special)
        every, self.special = self.special, [token for token in self.special if token in allowed_special]
        ids = super().encode(text)
        self.special = every
        return ids


class PassesOnItsMerges(Whole):
    found: ClassVar[list[Any]] = []

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
        for left, right in merges:
            if left + right not in vocab.values():
                raise ValueError("a merge without an entry")
            self.found.append((left, right))
        super().__init__(vocab, [*dict.fromkeys(self.found)], special_tokens)
        self.found.clear()


@pytest.mark.parametrize(
    ("target", "method"),
    [
        (KeepsTheChoiceOfAFailedCall, "allowed_special with a lone surrogate"),
        (PassesOnItsMerges, "the constructor got a merge of an unknown token"),
        (KeepsBytesOfABrokenStream, "decode_iterable"),
        (CountsOnAfterAnError, "encode_with_offsets"),
        (KeepsChunksOfAFailedStream, "encode_iterable"),
        (PassesOnItsSpecialTokens, "the constructor"),
    ],
)
def test_what_a_failed_call_leaves_is_found(target: type, method: str) -> None:
    one = after_each_error.run(Implementation("x", target), QUICK)
    assert one is not None
    assert one.mismatch.depends_on is None
    assert method in one.mismatch.asked.context


def test_a_call_that_does_not_end_ends_the_test() -> None:
    class Hangs(Whole):
        calls = 0

        def encode(self, text: str, **chosen: Any) -> list[int]:
            type(self).calls += 1
            time.sleep(60)
            return []

    implementation, Hangs.calls = Implementation("x", Hangs, limit=0.1), 0
    assert after_each_error.run(implementation, QUICK) is None
    assert Hangs.calls == 1


ORDERS = {
    "encode": "law-order-encode",
    "encode_batch": "law-order-batch",
    "encode_iterable": "law-order-stream",
    "encode_with_offsets": "law-order-offsets",
    "decode": "law-order-decode",
    "decode_bytes": "law-order-decode",
    "decode_iterable": "law-order-detok",
}
"""Method → the property that is broken if an earlier call of any method changes its answer."""
OF_ORDER = [one for one in PROPERTIES if one.id in IN_ANY_ORDER]


def of_order(id_: str, target: type, **options: Any) -> Found | None:
    return next(one for one in OF_ORDER if one.id == id_).run(Implementation("x", target, **options), QUICK)


@pytest.mark.parametrize("property_id", IN_ANY_ORDER)
def test_what_another_call_disturbs_is_found(property_id: str) -> None:
    found = of_order(property_id, IN_ANY_ORDER[property_id])
    assert found is not None
    assert found.mismatch.depends_on is None


def out_of_order(target: type) -> set[str]:
    """Return which of the properties of the order of calls a class breaks. None may depend on another failure."""
    implementation = Implementation("x", target)
    found = {one.id: one.run(implementation, QUICK) for one in OF_ORDER if skip_reason(one, implementation) is None}
    assert all(one is None or one.mismatch.depends_on is None for one in found.values())
    return {id_ for id_, one in found.items() if one is not None}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "broken"),
    [
        (Tokenizer, set()),
        (Whole, set()),
        (BatchesByTheLatestChoice, {"law-order-batch"}),
        (ChoosesOnceLocated, {"law-order-encode"}),
        (SplitsByGpt2OnceSaved, {f"law-order-{name}" for name in ("encode", "batch", "stream", "offsets")}),
        (SpellsSpecialsOnceSaved, {"law-order-loaded"}),
        (SplitsByTheLatestTraining, {"law-order-trained"}),
    ],
)
def test_what_a_call_or_another_tokenizer_leaves_is_found(target: type, broken: set[str]) -> None:
    assert out_of_order(target) == broken


@pytest.mark.parametrize("first", METHODS)
@pytest.mark.parametrize("second", ORDERS)
def test_every_pair_of_calls_is_made(first: str, second: str) -> None:
    found = of_order(ORDERS[second], disturbed(first, second))
    assert found is not None
    assert found.mismatch.depends_on is None
    assert found.mismatch.asked.operation.call().method == second


@pytest.mark.parametrize("is_inside", [True, False])
@pytest.mark.parametrize("other", METHODS)
@pytest.mark.parametrize("stream", ["encode_iterable", "decode_iterable"])
def test_every_method_is_called_while_a_stream_is_read(stream: str, other: str, is_inside: bool) -> None:
    id_ = "law-open-stream" if stream == "encode_iterable" else "law-open-detok"
    found = of_order(id_, interrupted(stream, other, is_inside))
    assert found is not None
    assert found.mismatch.depends_on is None
    assert ("it reads" if is_inside else "it yields") in found.mismatch.asked.context


class StreamsWithTheTableInUse(Whole):
    in_use: ClassVar[list[Any]] = [None]

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.in_use[0] = self

    def encode(self, text: str, **choice: Any) -> list[int]:
        self.in_use[0] = self
        return super().encode(text, **choice)

    def decode(self, ids: Iterable[int]) -> str:
        self.in_use[0] = self
        return super().decode(ids)

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        self.in_use[0] = self
        for index in super().encode_iterable(chunks):
            ids = {token: other for other, token in self.in_use[0].vocab.items()}
            yield ids.get(self.vocab[index], index)

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        self.in_use[0] = self
        own = {token: index for index, token in self.vocab.items()}
        yield from super().decode_iterable(own.get(self.in_use[0].vocab.get(index), index) for index in ids)


@pytest.mark.parametrize("id_", ["law-open-stream", "law-open-detok"])
def test_a_stream_that_goes_on_with_the_table_of_another_tokenizer_is_found(id_: str) -> None:
    found = of_order(id_, StreamsWithTheTableInUse)
    assert found is not None
    assert found.mismatch.asked.context.endswith("of another tokenizer")


def test_what_is_always_wrong_is_no_fault_of_earlier_calls() -> None:
    class LeavesOutTheEnd(Whole):
        def encode_batch(self, texts: list[str]) -> list[list[int]]:
            return super().encode_batch([text[:-1] for text in texts])

    class AllowsEveryToken(Whole):
        def encode(self, text: str, *, allowed_special: Any = "all", disallowed_special: Any = ()) -> list[int]:
            return super().encode(text)

    found = of_order("law-order-batch", LeavesOutTheEnd)
    assert found is not None
    assert found.mismatch.depends_on is not None
    assert of_order("law-order-loaded", LeavesOutTheEnd) is None
    assert of_order("law-order-encode", AllowsEveryToken) is None


def test_a_fault_that_needs_several_calls_is_found() -> None:
    class WrongTheFourthTime(Whole):
        calls = 0

        def encode(self, text: str, *, allowed_special: Any = "all", disallowed_special: Any = ()) -> list[int]:
            self.calls += 1
            ids = super().encode(text, allowed_special=allowed_special, disallowed_special=disallowed_special)
            return ids[self.calls == 4 :]

    found = of_order("law-order-encode", WrongTheFourthTime)
    assert found is not None
    assert found.mismatch.asked.context.endswith("among other calls")


class RefusesItsSource(Whole):
    """Raises an error if the source of a stream calls `encode`; `wait` makes that call hang."""

    wait = 0.0
    is_reading: bool | None = False

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        given = []
        for index in ids:
            if self.is_reading is None:
                raise RuntimeError("busy")
            given.append(index)
            self.is_reading = True
        self.is_reading = False
        yield from super().decode_iterable(given)

    def encode(self, text: str, **chosen: Any) -> list[int]:
        if self.is_reading:
            time.sleep(self.wait)
            self.is_reading = None
        return super().encode(text, **chosen)


class NeverEndsInItsSource(RefusesItsSource):
    wait = 60.0


class NeverSaves(Whole):
    def save(self, folder: str) -> None:
        time.sleep(60)


@pytest.mark.parametrize("target", [RefusesItsSource, NeverEndsInItsSource, NeverSaves])
def test_a_call_that_is_refused_or_does_not_end_is_no_fault_of_a_stream(target: type) -> None:
    assert of_order("law-open-detok", target, limit=0.8) is None


def test_a_call_that_does_not_end_is_no_fault_of_the_next_one() -> None:
    assert of_order("law-order-decode", NeverSaves, limit=0.8) is None


class DropsTheEndAfterACall(Whole):
    """Leaves out half a character at the end of a stream after any call of `encode`."""

    is_called = False

    def encode(self, text: str, **chosen: Any) -> list[int]:
        self.is_called = True
        return super().encode(text, **chosen)

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        text = "".join(super().decode_iterable(ids))
        yield text.rstrip("\ufffd") if self.is_called else text


@pytest.mark.parametrize("id_", ["law-order-detok", "law-open-detok"])
def test_a_call_after_which_a_stream_loses_what_it_holds_at_its_end_is_found(id_: str) -> None:
    found = of_order(id_, DropsTheEndAfterACall)
    assert found is not None
    assert found.mismatch.depends_on is None


def test_a_stream_that_blocks_other_calls_is_found() -> None:
    class BlocksWhileRead(Whole):
        is_open = False

        def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
            self.is_open = True
            yield from super().decode_iterable(ids)
            self.is_open = False

        def encode_with_offsets(self, text: str) -> Any:
            time.sleep(60 * self.is_open)
            return super().encode_with_offsets(text)

    found = of_order("law-open-detok", BlocksWhileRead, limit=0.3)
    assert found is not None
    assert found.mismatch.depends_on is None


def test_a_training_with_another_result_is_asked_nothing() -> None:
    class LearnsLessEachTime(Whole):
        trained = 0

        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
            LearnsLessEachTime.trained += 1
            return super().train(text, vocab_size - cls.trained, special_tokens, pattern)

    assert of_order("law-order-trained", LearnsLessEachTime) is None


def test_a_method_that_does_not_end_after_another_call_is_found() -> None:
    class WaitsForOpenStreams(Whole):
        is_open = False

        def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
            self.is_open = True
            yield from super().encode_iterable(chunks)
            self.is_open = False

        def decode(self, ids: Iterable[int]) -> str:
            time.sleep(60 * self.is_open)
            return super().decode(ids)

    found = of_order("law-order-decode", WaitsForOpenStreams, limit=0.3)
    assert found is not None
    assert found.mismatch.depends_on is None
    assert found.mismatch.asked.context == "after a stream that stays open"
