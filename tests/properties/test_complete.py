"""The spaces are complete, the textbook agrees with them, and a single wrong pair, length or position fails."""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import accumulate, count, groupby, islice, pairwise, product
from string import ascii_uppercase
from typing import Any

import pytest
import regex
from helpers import wrong_tokenizers as wrong
from helpers.wrong_tokenizers import Whole

from bpe_conformance.answer import Text
from bpe_conformance.fixtures import PATTERNS, Model, characters, read_model
from bpe_conformance.fixtures.conventions import DEFAULTS
from bpe_conformance.fixtures.pipeline import ByteLevel, Digits, Pipeline, Punctuation
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs.bases import BaseEncoder, like
from bpe_conformance.known_bugs.batch import RowsByEndsOfTexts
from bpe_conformance.known_bugs.detokenizing import OverlongFormsAwaited
from bpe_conformance.known_bugs.encoding import RanksKeyedBySpace
from bpe_conformance.known_bugs.pipeline import StreamCutAfterRstrip
from bpe_conformance.operations import Decode, Detokenize, Operation, Question, oracle
from bpe_conformance.properties import asking, complete, strategies
from bpe_conformance.properties.engine import Effort, Found, skip_reason
from bpe_conformance.reference import Tokenizer as Reference
from bpe_conformance.reference import textbook

PROPERTIES = {one.id: one for one in complete.PROPERTIES}


class NeverLearnsQz(Whole):
    @classmethod
    def train(cls, text: str, *given: Any, **options: Any) -> Any:
        return super().train(text.replace("qz", "q z"), *given, **options)


class NeverMergesBdC3(Whole):
    """0xBD and 0xC3 are the end of one character and the start of another."""

    def merge(self, word: textbook.Word) -> textbook.Word:
        return super().merge(tuple(word)) if (b"\xbd", b"\xc3") not in pairwise(word) else word


class CutsAt37(Whole):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for chunk in (given := list(chunks)):
            yield from [] if len(given[0]) == 37 and chunk is given[-1] else self.encode(chunk)
        return


class CutsAfterNoBreakSpaces(Whole):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for part in re.split("(?<=\u00a0)(?=  )", "".join(chunks)):
            yield from self.encode(part)


class CutsBeforeSeparators(Whole):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for part in re.split("(?=\x1d)", "".join(chunks)):
            yield from self.encode(part)


class FlushesAThousand(Whole):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        first, *rest = [*chunks, ""]
        yield from (
            [*self.encode(first), *self.encode("".join(rest))]
            if len(first) > 1_000
            else super().encode_iterable([first, *rest])
        )


class CutsShortTexts(Whole):
    """Encodes each chunk alone unless there is much text."""

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        held = [*chunks]
        for part in held if sum(map(len, held)) < 1_000 else ["".join(held)]:
            yield from self.encode(part)


class JoinsOverlongForms(Whole):
    def decode(self, ids: Iterable[int]) -> str:
        data = self.decode_bytes(ids)
        return re.sub(rb"\xe0[\x80-\x9f](?![\x80-\xbf])", "\ufffd".encode(), data).decode("utf-8", "replace")


class DecodesOverlongNul(Whole):
    """Reads the byte 0 as Java writes it."""

    def decode(self, ids: Iterable[int]) -> str:
        return self.decode_bytes(ids).replace(b"\xc0\x80", b"\0").decode("utf-8", "replace")


class DecodesFormsOfFiveBytes(Whole):
    def decode(self, ids: Iterable[int]) -> str:
        return re.sub(rb"[\xf8-\xfb][\x80-\xbf]+", b"\xff", self.decode_bytes(ids)).decode("utf-8", "replace")


class StreamsFormsOfFiveBytes(Whole):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        yield DecodesFormsOfFiveBytes(self.vocab, self.merges).decode(ids)


class GivesUpAfterMalformedBytes(Whole):
    """Emits all that it holds, complete or not, as soon as a run of malformed bytes is 60 ids long."""

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        held: list[int] = []
        for index in ids:
            held.append(index)
            text = self.decode(held)
            if not text.endswith("\ufffd") or len(held) > 60:
                yield text
                held = []
        yield self.decode(held)


class WrongForWordsOf111(Whole):
    def encode_pre_token(self, pre_token: str) -> list[int]:
        return super().encode_pre_token(pre_token)[: None if len(pre_token) != 111 else -1]


class WrongFor111(Whole):
    def encode(self, text: str) -> list[int]:
        return super().encode(text)[: None if len(text) != 111 else -1]


class LosesAnIdAfter100Texts(Whole):
    asked = 0

    def encode(self, text: str) -> list[int]:
        self.asked += 1
        return super().encode(text)[: None if self.asked <= 100 else -1]


class RemembersTheAddressOfTheLastText(Whole):
    last: tuple[tuple[int, int], list[int]] = ((0, 0), [])

    def encode(self, text: str, **choice: Any) -> list[int]:
        where = id(text), len(text)
        if where != self.last[0]:
            self.last = where, super().encode(text, **choice)
        return self.last[1][:]


class WholeFrom100Bytes(Whole):
    def encode_pre_token(self, pre_token: str) -> list[int]:
        token = pre_token.encode("utf-8")
        return [self.ids[token]] if len(token) >= 100 and token in self.ids else super().encode_pre_token(pre_token)


class RanksKeyedByBar(RanksKeyedBySpace):
    separator = b"|"


class RanksKeyedByTab(RanksKeyedBySpace):
    separator = b"\t"


class RanksKeyedByHash(BaseEncoder):
    """Looks a pair up by the length of its left token and the CRC-32 of both together."""

    @staticmethod
    def key(left: bytes, right: bytes) -> Any:
        return len(left), zlib.crc32(left + right)

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        known = {self.key(*pair): rank for pair, rank in reversed(self.ranks.items())}
        tokens = {token for token in self.vocab.values() if token.isalpha()}
        every = [(left, right) for left, right in product(tokens, tokens) if self.key(left, right) in known]
        self.ranks = {**self.ranks, **{pair: known[self.key(*pair)] for pair in every}}


class RanksKeyedByHashes(RanksKeyedByHash):
    """Looks a pair up by the hashes of its parts."""

    @staticmethod
    def key(left: bytes, right: bytes) -> Any:
        return zlib.crc32(left), zlib.crc32(right)


class TableOfLetters(BaseEncoder):
    """Splits by a table of ranges, in which these characters have the class of another one."""

    characters, other = "[\U00010a80-\U00010a9c]", "\u00a7"

    def split(self, segment: str) -> list[str]:
        pieces = super().split(re.sub(self.characters, self.other, segment))
        ends = [0, *accumulate(map(len, pieces))]
        return [segment[start:end] for start, end in pairwise(ends)]


class TableEndsEarly(TableOfLetters):
    """U+0BF2 is the last number of its range."""

    characters = "\u0bf2"


class TableEndsLate(TableOfLetters):
    """U+10A9D is a number after a range of letters."""

    characters, other = "\U00010a9d", "a"


class TableLacksMiddles(TableOfLetters):
    """The letters between the two entries that UnicodeData.txt has for a block are unknown."""

    characters, other = "[\u3401-\u4db4]", "."


class NoncharacterEndsText(BaseEncoder):
    """Takes U+FFFF for the end of the text, as iterators over characters in Java do."""

    last = "\uffff"

    def split(self, segment: str) -> list[str]:
        return [piece for part in re.split(f"(?<=\\s)(?={self.last})", segment) for piece in super().split(part)]


class ReplacementEndsText(NoncharacterEndsText):
    last = "\ufffd"


class EndOfFileEndsText(NoncharacterEndsText):
    last = "\x1a"


class BidirectionalControlsDoNotCount(BaseEncoder):
    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        ids, spans = super().encode_with_offsets(text)
        if self.pipeline is not None:
            return ids, spans
        before = [0, *accumulate(char in "\u202a\u202e" for char in text)]
        return ids, [(start - before[start], end - before[end]) for start, end in spans]


class JoinsRowsBy(BaseEncoder):
    separator = "\n\0\n"

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return [self.encode(text) for text in self.separator.join(texts).split(self.separator)] if texts else []


class JoinsRowsByAGroupSeparator(JoinsRowsBy):
    separator = "\x1d"


class NumbersSpecialsBetweenUnitSeparators(BaseEncoder):
    def encode(self, text: str, **choice: Any) -> list[int]:
        if choice or self.pipeline is not None:
            return super().encode(text, **choice)
        for at, token in enumerate(self.special):
            text = text.replace(f"\x1f{at}\x1f", token)
        return super().encode(text)


class CountsLineSeparatorsAsLineEnds(BaseEncoder):
    """As JavaScript does, in the patterns that have a class for line ends."""

    def split(self, segment: str) -> list[str]:
        changed = "" if self.pattern == PATTERNS["gpt2"] else "\u2028\u2029"
        return textbook.split(segment, self.pattern.replace(r"[\r\n", rf"[\r\n{changed}"))


class CountsModifierSymbolsAsPunctuation(Whole):
    def encode(self, text: str, **choice: Any) -> list[int]:
        removes = self.pipeline is not None and self.pipeline.steps[0] == Punctuation("Removed")
        return super().encode(re.sub("[\u00b4\u02c2]", "", text) if removes else text, **choice)


class CountsNoRomanNumeralsAsDigits(Whole):
    def encode(self, text: str, **choice: Any) -> list[int]:
        if self.pipeline is None or Digits(individual=True) not in self.pipeline.steps or "\u2160" not in text:
            return super().encode(text, **choice)
        return like(self, Whole, pipeline=Pipeline((), (), (ByteLevel(split=False),))).encode(text)


class CountsNoConnectorsAsLettersOfWords(Whole):
    def encode(self, text: str, **choice: Any) -> list[int]:
        is_single = self.pipeline is not None and any(one.single_word for one in self.pipeline.added_tokens)
        return super().encode(text.replace("\u203f", "\u2011") if is_single else text, **choice)


class DecodesApartFromSpecials(BaseEncoder):
    """Decodes what is between special tokens with a new decoder, which drops a byte-order mark that comes first."""

    def decode(self, ids: Iterable[int]) -> str:
        special = {self.special_id(token) for token in self.special}
        parts = [[*part] for _, part in groupby(ids, special.__contains__)]
        return "".join(
            BaseEncoder.decode(self, part).removeprefix("\ufeff" if at else "") for at, part in enumerate(parts)
        )


class StreamsApartFromSpecials(BaseEncoder):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        yield DecodesApartFromSpecials.decode(self, ids)  # type: ignore[arg-type]


class LooksAtThreeIds(Whole):
    """Takes ASCII characters and their ids for each other if the table does so for three of them."""

    @property
    def is_usual(self) -> bool:
        return all(self.vocab[index] == bytes([index]) for index in (32, 65, 97))

    def encode(self, text: str) -> list[int]:
        return [*text.encode()] if self.is_usual and text.isascii() else super().encode(text)

    def decode(self, ids: Iterable[int]) -> str:
        given = list(ids)
        return bytes(given).decode() if self.is_usual and max(given) < 0x80 else super().decode(given)


class StreamsByThreeIds(Whole):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        yield LooksAtThreeIds(self.vocab, self.merges).decode(ids)


class JoinsTheTextAtSpecials(Whole):
    """Puts one character in the place of each special token, and trains on what is between these characters."""

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str | None = None) -> Any:
        joined = "\ue000".join(part for part, special in textbook.cut_special(text, special_tokens) if not special)
        cut = joined.replace("\ue000", special_tokens[0]) if special_tokens else text
        return super().train(cut, vocab_size, special_tokens, pattern)


class TakesACharacterForASpecialToken(Whole):
    """Puts a character in the place of each special token."""

    def encode(self, text: str, **choice: Any) -> list[int]:
        found = [token for token in self.special if token in text]
        return super().encode(text.replace("\U0010fffd", found[0]) if found else text, **choice)


class CoversWhiteSpaceOnce(Whole):
    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        ids, spans = super().encode_with_offsets(text)
        ends = [0, *(end for _, end in spans)]
        return ids, [(max(start, before), end) for before, (start, end) in zip(ends, spans, strict=False)]


def gathering(size: int, cut: Callable[[str], int], special: bool = True, pattern: str = "") -> type:
    """Return a class whose streams gather so many characters, and then encode the text up to a cut.

    Without `special`, or with `pattern`, it does so only without special tokens, or with this pattern.
    """

    class Gathers(Whole):
        def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
            held, cuts = "", (special or not self.special) and self.pattern == PATTERNS.get(pattern, self.pattern)
            for chunk in chunks:
                held += chunk
                if cuts and len(held) >= size:
                    yield from self.encode(held[: cut(held)])
                    held = held[cut(held) :]
            yield from self.encode(held)

    return Gathers


def before_last_space(text: str) -> int:
    """Return the last position where GPT-2's pattern cuts, although a special token can have a space inside."""
    return max((found.end() for found in re.finditer(r"\S(?= \S)", text)), default=0)


def after_signs(white_space: str) -> Callable[[str], int]:
    """Return a cut at the end if that is no letter, no digit and none of these characters."""
    return lambda text: len(text) if not text[-1].isalnum() and text[-1] not in white_space else 0


WHITE_SPACE = complete.BLANKS + complete.OTHER_BLANKS


class FlushesLinesOfNormalForms(Whole):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        held, has_form = "", self.pipeline is not None and self.pipeline.normalizer and not self.pipeline.added_tokens
        for chunk in chunks:
            held += chunk
            if has_form and held.endswith("\n"):
                yield from self.encode(held)
                held = ""
        yield from self.encode(held)


class FlushesAddedTokens(Whole):
    """Does not wait for a longer one."""

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        held, added = "", () if self.pipeline is None else self.pipeline.added_tokens
        ends = tuple(token.content for token in added if token.lstrip)
        for chunk in chunks:
            held += chunk
            if ends and held.endswith(ends):
                yield from self.encode(held)
                held = ""
        yield from self.encode(held)


class KeepsOneSpace(Whole):
    def encode(self, text: str, **choice: Any) -> list[int]:
        return super().encode(text if self.pipeline is None else text.replace("\u205f<l>", "\u205f\0<l>"), **choice)


class RowsByNormalForm(Whole):
    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        if self.pipeline is None or not self.pipeline.added_tokens:
            return super().encode_batch(texts)
        first = {unicodedata.normalize("NFC", text): text for text in reversed(texts)}
        return super().encode_batch([first[unicodedata.normalize("NFC", text)] for text in texts])


def run(name: str, target: Any) -> Found | None:
    return PROPERTIES[name].run(Implementation("x", target), Effort())


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("law-encode-keys", RanksKeyedByBar),
        ("law-encode-keys", RanksKeyedByTab),
        ("law-encode-keys", RanksKeyedByHash),
        ("law-encode-keys", RanksKeyedByHashes),
        ("law-encode-keys", wrong.LooksPairsUpByAProduct),
        ("law-split-ends", NoncharacterEndsText),
        ("law-split-ends", ReplacementEndsText),
        ("law-split-ends", EndOfFileEndsText),
        ("law-offsets-ranges", BidirectionalControlsDoNotCount),
        ("law-split-line-ends", CountsLineSeparatorsAsLineEnds),
        ("law-pipeline-classes", CountsModifierSymbolsAsPunctuation),
        ("law-pipeline-classes", CountsNoRomanNumeralsAsDigits),
        ("law-pipeline-classes", CountsNoConnectorsAsLettersOfWords),
        ("law-batch-names", JoinsRowsBy),
        ("law-batch-names", JoinsRowsByAGroupSeparator),
        ("law-encode-names", NumbersSpecialsBetweenUnitSeparators),
        ("law-split-ranges", TableOfLetters),
        ("law-split-ranges", TableEndsLate),
        ("law-split-ranges", TableLacksMiddles),
        ("law-encode-lengths", WrongFor111),
        ("law-stream-cuts", CutsAt37),
        ("law-stream-cuts", CutsAfterNoBreakSpaces),
        ("law-stream-cuts", CutsBeforeSeparators),
        ("law-stream-cuts", FlushesAThousand),
        ("law-stream-cuts", CutsShortTexts),
        ("law-decode-subparts", JoinsOverlongForms),
        ("law-decode-subparts", DecodesOverlongNul),
        ("law-decode-subparts", DecodesFormsOfFiveBytes),
        ("law-detok-subparts", GivesUpAfterMalformedBytes),
        ("law-detok-subparts", StreamsFormsOfFiveBytes),
        ("law-decode-subparts", DecodesApartFromSpecials),
        ("law-detok-subparts", StreamsApartFromSpecials),
        ("law-encode-lengths", WrongForWordsOf111),
        ("law-encode-lengths", WholeFrom100Bytes),
        ("law-encode-lengths", LosesAnIdAfter100Texts),
        ("law-detok-subparts", OverlongFormsAwaited),
        ("law-cached-texts", RemembersTheAddressOfTheLastText),
        ("law-cached-batches", RowsByEndsOfTexts),
        ("law-pipeline-cuts", StreamCutAfterRstrip),
        ("law-pipeline-blanks", CoversWhiteSpaceOnce),
        ("law-train-characters", JoinsTheTextAtSpecials),
        ("law-encode-characters", TakesACharacterForASpecialToken),
        ("law-encode-swapped", LooksAtThreeIds),
        ("law-decode-swapped", LooksAtThreeIds),
        ("law-detok-swapped", StreamsByThreeIds),
        *(("law-stream-cuts", gathering(size, before_last_space)) for size in (40, 290, 2_090)),
        *(("law-stream-cuts", gathering(size, before_last_space, False, "none")) for size in (40, 290, 2_090)),
        *(
            ("law-stream-cuts", gathering(size, after_signs(WHITE_SPACE.replace(char, "")), False))
            for size, char in product((1, 2_048), "\x0b\x85\u1680\u200a\u205f")
        ),
        ("law-pipeline-cuts", FlushesLinesOfNormalForms),
        ("law-pipeline-cuts", FlushesAddedTokens),
        ("law-pipeline-strips", KeepsOneSpace),
        ("law-cached-pipelines", RowsByNormalForm),
    ],
)
def test_a_single_incorrect_value_fails(name: str, target: type) -> None:
    found = run(name, target)
    assert found is not None
    assert found.mismatch.depends_on is None


@pytest.mark.slow
def test_a_stream_that_gathers_and_cuts_where_gpt2_does_passes() -> None:
    assert run("law-stream-cuts", gathering(300, before_last_space, False, "gpt2")) is None


def named(names: Mapping[str, str], is_strict: bool, split: Callable[..., list[str]] = textbook.split) -> type:
    """Return a class that takes these names for expressions, and refuses others if it is strict."""

    def meant(pattern: str | None) -> str | None:
        if is_strict and pattern is not None and "-" in pattern and pattern not in (*names, *PATTERNS.values()):
            raise ValueError(f"unknown pattern {pattern}")
        return None if pattern is None else names.get(pattern, pattern)

    class Named(Whole):
        def __init__(self, vocab: Any, merges: Any, special: Any = None, pattern: str | None = None) -> None:
            super().__init__(vocab, merges, special, meant(pattern))

        def split(self, segment: str) -> list[str]:
            return split(segment, self.pattern)

        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
            return super().train(text, vocab_size, special_tokens, meant(pattern))

    return Named


def collected(segment: str, pattern: str) -> list[str]:
    """Return only the matches, as much code does."""
    return [found.group() for found in regex.finditer(pattern, segment) if found.group()]


@pytest.mark.parametrize("name", ["law-encode-by-name", "law-train-by-name"])
@pytest.mark.parametrize("is_strict", [True, False])
def test_a_name_for_another_expression_is_found(name: str, is_strict: bool) -> None:
    assert run(name, named(PATTERNS, is_strict)) is None
    for pattern, other in (("qwen2", "llama3"), ("cl100k", "cl100k-2023"), ("none", "gpt2"), ("o200k", "cl100k")):
        found = run(name, named({**PATTERNS, pattern: PATTERNS[other]}, is_strict))
        assert found is not None, pattern
        assert found.mismatch.asked.context == f"with the name {pattern} as the pattern"


@pytest.mark.parametrize("split", [textbook.split, collected])
@pytest.mark.parametrize("known", [(), ("cl100k",), ("none", "llama3")])
def test_a_name_that_a_class_does_not_know_is_not_tested(known: Sequence[str], split: Any) -> None:
    target = named({name: PATTERNS[name] for name in known}, False, split)
    assert run("law-encode-by-name", target) is None
    assert run("law-train-by-name", target) is None


@pytest.mark.parametrize("varies", [True, False])
def test_a_name_is_not_blamed_for_what_is_also_wrong_by_the_expression_or_varies(varies: bool) -> None:
    numbers = count()

    class LosesIds(named(PATTERNS, False)):  # type: ignore[misc]
        def encode(self, text: str, **choice: Any) -> list[int]:
            return list(super().encode(text, **choice)[: -1 - varies * next(numbers)])

    assert run("law-encode-by-name", LosesIds) is None


def test_a_stream_that_does_not_know_a_name_is_found() -> None:
    class StreamsWords(named(PATTERNS, True)):  # type: ignore[misc]
        def __init__(self, vocab: Any, merges: Any, special: Any = None, pattern: str | None = None) -> None:
            super().__init__(vocab, merges, special, pattern)
            self.cuts = pattern == "none"

        def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
            for part in re.split("(?<=[^ ])(?= [^ ])", "".join(chunks)) if self.cuts else ["".join(chunks)]:
                yield from self.encode(part)

    assert run("law-stream-expressions", StreamsWords) is None
    assert run("law-encode-by-name", StreamsWords) is not None


@pytest.mark.parametrize("loses", [True, False])
def test_text_beside_an_empty_match_may_be_cut_and_not_lost(loses: bool) -> None:
    def at_each_match(segment: str, pattern: str) -> list[str]:
        pieces, end = [], 0
        for found in regex.finditer(pattern, segment):
            pieces += [segment[end : found.start()] * (bool(found.group()) or not loses), found.group()]
            end = found.end()
        return [piece for piece in (*pieces, segment[end:]) if piece]

    assert run("law-encode-expressions", named({}, False, collected)) is None
    found = run("law-encode-expressions", named({}, False, at_each_match))
    assert (found is not None) is loses
    if found is not None:
        assert found.mismatch.asked.table.pattern == complete.WITH_EMPTY_MATCHES
        assert found.mismatch.clause_id == "SPLIT-LOSSLESS-1"


def test_as_many_lengths_are_asked_as_are_said_to_be_covered() -> None:
    asked = set[str]()

    class Records(Whole):
        def encode(self, text: str, **choice: Any) -> list[int]:
            asked.add(text)
            return super().encode(text, **choice)

    implementation = Implementation("x", Records)
    assert "encode" in implementation.capabilities
    asked.clear()  # what probes have asked
    assert PROPERTIES["law-encode-lengths"].run(implementation, Effort()) is None
    (said,) = (count for space, count in complete.spaces().items() if "of a pre-token and of an entry" in space)
    assert len(asked) == said
    longest = [text for text in asked if len(text) == complete.LONGEST and len({*text}) > 1]
    assert [len({text[:end] for end in range(1, len(text) + 1)} - asked) for text in longest] == [0, 0]


MEETING = [*(part.encode() for part in ("<e>", "\ufeff", "\ufffd", "a", "\u65e5")), b"\x80", b"\xed\xa0\x80"]


@pytest.mark.parametrize(("left", "right"), [*product(MEETING, repeat=2)])
def test_a_decoder_that_is_wrong_where_two_kinds_meet_is_found(left: bytes, right: bytes) -> None:
    """The bytes are looked for, so a U+FFFD that stands for malformed bytes is not the character."""

    class LosesThem(Whole):
        def decode(self, ids: Iterable[int]) -> str:
            data = b"".join(self.vocab[index] for index in ids)
            return data.replace(left + right, b"").decode("utf-8", "replace")

    assert run("law-decode-subparts", LosesThem) is not None


@pytest.mark.parametrize(
    ("name", "target", "clause_id"),
    [
        ("law-decode-subparts", DecodesApartFromSpecials, "DECODE-UTF8-1"),
        ("law-detok-subparts", StreamsApartFromSpecials, "DETOK-EQUAL-1"),
        ("law-train-characters", JoinsTheTextAtSpecials, "TRAIN-SPECIAL-1"),
        ("law-encode-characters", TakesACharacterForASpecialToken, "SPECIAL-SCAN-1"),
    ],
)
def test_what_is_wrong_only_beside_others_or_special_tokens_breaks_a_clause_about_that(
    name: str, target: type, clause_id: str
) -> None:
    found = run(name, target)
    assert found is not None
    assert found.mismatch.clause_id == clause_id


SECOND_BYTES = {0xE0: (0xA0, 0xBF), 0xED: (0x80, 0x9F), 0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}
"""What follows a first byte; any other is followed by 80 to BF. From table 3-7 of the Unicode standard."""
SIZES = {1: range(0x80), 2: range(0xC2, 0xE0), 3: range(0xE0, 0xF0), 4: range(0xF0, 0xF5)}
LIMITS = [(0xE0, 0), (0xED, 1), (0xF0, 0), (0xF4, 1)]


def test_each_first_byte_is_decoded_before_the_bytes_at_both_sides_of_each_limit() -> None:
    asked = {(part[0], part[1]) for part in complete.SUBPARTS}
    for first in range(0xC0, 0x100):
        lowest, highest = SECOND_BYTES.get(first, (0x80, 0xBF))
        limits = (lowest - 1, lowest, highest, highest + 1)
        assert [second for second in limits if (first, second) not in asked] == [], first


def decoded(data: bytes, second_bytes: Mapping[int, tuple[int, int]]) -> str:
    text, at = "", 0
    while at < len(data):
        lead = data[at]
        size = next((length for length, leads in SIZES.items() if lead in leads), 0)
        end, (low, high) = at + 1, second_bytes.get(lead, (0x80, 0xBF))
        while end < min(at + size, len(data)) and low <= data[end] <= high:
            end, low, high = end + 1, 0x80, 0xBF
        code = lead & 0xFF >> (size + 1 if size > 1 else 0)
        for byte in data[at + 1 : end]:
            code = code << 6 | byte & 0x3F
        text += chr(min(code, 0x10FFFF)) if end == at + size else "\ufffd"
        at = end
    return text


@pytest.mark.parametrize(("lead", "place"), LIMITS)
@pytest.mark.parametrize("change", [-1, 0, 1])
def test_each_limit_of_the_second_byte_of_a_character_is_tested(lead: int, place: int, change: int) -> None:
    limits = [*SECOND_BYTES[lead]]
    limits[place] += change
    changed = {**SECOND_BYTES, lead: (limits[0], limits[1])}

    class Decodes(Whole):
        def decode(self, ids: Iterable[int]) -> str:
            return decoded(self.decode_bytes(ids), changed)

    assert (run("law-decode-subparts", Decodes) is None) == (change == 0)


@pytest.mark.parametrize(
    "mark",
    [r"</w>(?!\S)", r"(?<!\S)</w>", r"(?<!\S)##", r"(?<=\w)@@(?!\S)", r"<unk>", "(?<!\\S)\u0120", "(?<!\\S)\u2581"],
)
def test_a_tokenizer_that_takes_a_mark_of_others_for_one_of_its_own_is_found(mark: str) -> None:
    class LeavesOutTheMark(Whole):
        @classmethod
        def train(cls, text: str, *given: Any, **options: Any) -> Any:
            return super().train(re.sub(mark, "", text), *given, **options)

        def encode(self, text: str, **choice: Any) -> list[int]:
            return super().encode(re.sub(mark, "", text), **choice)

    assert run("law-encode-characters", LeavesOutTheMark) is not None
    assert run("law-train-characters", LeavesOutTheMark) is not None


@pytest.mark.parametrize(("is_remote", "factor"), [(False, 1), (True, 6)])
def test_a_program_has_more_time_for_many_inputs_at_once(
    is_remote: bool, factor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Placed(Implementation):
        pass

    implementation, asked = Placed("x", textbook.Tokenizer), list[int]()
    monkeypatch.setattr(Placed, "is_remote", is_remote)
    question = Question(Decode((97, 98)), read_model({}))
    monkeypatch.setattr(complete, "ask", lambda target, question, factor: asked.append(factor) or Text("ab"))
    assert list(complete.together(implementation, "DECODE-UTF8-1", question, None, ())) == []
    assert asked == [factor]


@pytest.mark.parametrize(("ids", "is_remote", "factor"), [(256, True, 6), (255, True, 1), (256, False, 1)])
def test_a_program_has_more_time_for_many_ids(
    ids: int, is_remote: bool, factor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Placed(Implementation):
        pass

    implementation, factors = Placed("x", textbook.Tokenizer), list[float]()
    monkeypatch.setattr(Placed, "is_remote", is_remote)
    monkeypatch.setattr(Placed, "time_limit", lambda self, factor: factors.append(factor) or nullcontext())
    monkeypatch.setattr(asking, "compare", lambda *_: None)
    asked = Question(Detokenize((97,) * ids), read_model({}))
    assert asking.equals_oracle(implementation, asked, "DETOK-LAZY-1") is None
    assert factors == [factor]


class WrongTogether(Whole):
    """Is correct for each short input, and loses the end of what many of them are together."""

    def encode(self, text: str, **choice: Any) -> list[int]:
        return super().encode(text, **choice)[:60]

    def decode(self, ids: Iterable[int]) -> str:
        return super().decode(list(ids)[:60])

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from self.encode("".join(chunks))

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        yield from list(super().decode_iterable(ids))[:60]

    @classmethod
    def train(cls, text: str, vocab_size: int, *given: Any, **options: Any) -> Any:
        return super().train(text, min(vocab_size, 290), *given, **options)


TOGETHER = ("train-pairs", "encode-pairs", "encode-keys", "split-ranges", "stream-cuts", "train-characters")
TOGETHER += ("encode-characters", "decode-subparts", "detok-subparts")


@pytest.mark.parametrize("name", TOGETHER)
def test_what_is_wrong_only_for_many_inputs_at_once_is_found(name: str) -> None:
    assert PROPERTIES[f"law-{name}"].run(Implementation("x", WrongTogether), Effort()) is not None


def test_the_failing_pair_is_shown_alone() -> None:
    trained, encoded = run("law-train-pairs", NeverLearnsQz), run("law-encode-pairs", NeverMergesBdC3)
    assert trained is not None
    assert trained.mismatch.asked.operation.text == "qz"
    assert encoded is not None
    assert encoded.mismatch.asked.model is not None
    assert encoded.mismatch.asked.model.merges == ((b"\xbd", b"\xc3"),)
    split = run("law-split-ranges", TableEndsEarly)
    assert split is not None
    assert split.mismatch.asked.operation.text == "\n1\u0bf2"
    assert {found.mismatch.depends_on for found in (trained, encoded, split)} == {None}


NEVER_IN_TEXT = {0xC0, 0xC1, *range(0xF5, 0x100)}
NEVER_IN_PAIRS = {*b"\t\n\v\f\r", *range(0x1C, 0x20), *NEVER_IN_TEXT}
"""White space, which golden cases cover, and bytes that UTF-8 never has."""


def gaps() -> Iterator[str]:
    """Yield a line for each pair that is not merged where the module says so, by the oracle, and each byte in none."""
    for name, pairs in complete.pairs_of_bytes().items():
        question, right = complete.encoding(list(pairs.items()))
        if tuple(oracle(question.table).encode(question.operation.text)) != right.ids:
            yield f"{name}: not every pair is merged"
    for word in complete.parts_of_ranges():
        question, right = complete.encoding_of_ranges([word])
        if textbook.split(word) != [word] or tuple(oracle(question.table).encode(f"\n{word}")) != right.ids:
            yield f"{word!a}: is not one pre-token"
    for pair, word in complete.pairs_of_characters().items():
        if word not in textbook.split(f"\n{word}") or b"".join(pair) not in word.encode():
            yield f"{pair}: {word!a} is no pre-token that holds it"
    for word in complete._words():
        question = complete._encoding([word])
        if textbook.split(word) == [word] and len(oracle(question.table).encode(word)) != 1:
            yield f"{word!a}: is not one token"
    merged = {byte for pairs in complete.pairs_of_bytes().values() for pair in pairs for byte in pair}
    if missing := {bytes([byte]) for byte in range(256)} - merged - {bytes([byte]) for byte in NEVER_IN_PAIRS}:
        yield f"the bytes {sorted(missing)} take part in no merge"
    words = "".join(complete._words())
    if missing := {*range(256)} - {*words.encode("utf-8")} - NEVER_IN_TEXT:
        yield f"the bytes {sorted(missing)} take part in no training"
    categories = {unicodedata.category(char) for run in characters.agreed() for char in run}
    if missing_categories := categories - {unicodedata.category(char) for char in complete.every_kind()}:
        yield f"no character of {sorted(missing_categories)} takes part in a training"


def test_every_run_of_white_space_is_counted() -> None:
    assert complete.spaces()["runs of white space characters in a stream"] == len(complete.BLANKS) ** 3 + 4 * len(
        complete.OTHER_BLANKS
    )


def test_two_white_space_characters_in_a_row_and_what_is_nearly_one_are_a_token_in_streams() -> None:
    encode = oracle(complete._pairs_of_blanks()).encode
    pairs = {"".join(pair) for run in complete.RUNS for pair in pairwise(run[1:-1])}
    assert {char for pair in pairs for char in pair} == {*WHITE_SPACE}
    assert [pair for pair in pairs if len(encode(pair)) != 1] == []
    assert [char for char in complete.NEARLY_BLANKS if len(encode(f"!{char}!")) != 1] == []


def test_characters_whose_case_changes_in_an_unusual_way_are_among_those_of_every_kind() -> None:
    asked = complete.every_kind()
    assert any(len(char.lower()) > 1 for char in asked)
    assert any(char.upper() in ascii_uppercase and not char.isascii() for char in asked)
    assert any(len({char.upper(), char.title(), char.lower()}) == 3 and len(char.title()) == 1 for char in asked)


def test_spaces_have_no_gap() -> None:
    assert [*gaps()] == []


def test_every_pair_of_bytes_of_two_characters_in_one_pre_token_is_covered() -> None:
    ends, starts = dict[tuple[str, object], str](), dict[tuple[str, int], str]()
    for char in (char for run in characters.agreed() for char in run if char.isprintable() and not char.isspace()):
        kind, data = unicodedata.category(char)[0], char.encode("utf-8")
        ends.setdefault((kind, char if char.isascii() else data[-1]), char)
        starts.setdefault((kind, data[0]), char)
    beside = (
        (one, other) for one, other in product(ends.values(), starts.values()) if textbook.split(one + other)[1:] == []
    )
    found = {(one.encode()[-1:], other.encode()[:1]) for one, other in beside}
    covered = {pair for pairs in complete.pairs_of_bytes().values() for pair in pairs}
    assert found - covered == {(b"'", letter.encode()) for letter in "dmst"}


def test_every_pair_of_bytes_of_one_character_is_covered() -> None:
    found = set[tuple[int, int]]()
    for char in map(chr, (*range(0x80, 0xD800), *range(0xE000, 0x110000))):
        if not char.isspace():
            data = char.encode("utf-8")
            found.update(pairwise(data))
    covered = {(*left, *right) for pairs in complete.pairs_of_bytes().values() for left, right in pairs}
    assert found - covered == set()


def test_every_pair_of_printable_characters_in_one_pre_token_is_covered() -> None:
    found = set()
    for one, other in product(map(chr, range(0x20, 0x7F)), repeat=2):
        for text in (one + other, f"x{one}{other}", f"{one}{other}x", f"{one}{other}e"):
            found |= {pair for word in textbook.split(text) for pair in pairwise(word)}
    covered = {(one.decode(), other.decode()) for one, other in complete.pairs_of_characters()}
    assert found - covered == {(" ", " "), ("'", "r"), ("'", "v")}
    assert covered <= found


# Expressions


KNOWN = {None, *PATTERNS.values()}
"""A tokenizer that is wrong for others only passes all tests with the patterns of the specification."""
Change = Callable[[str], str]


def splitting(change: Change, *methods: str) -> type[Reference]:
    """Return a class that changes expressions without a name, everywhere or in these methods and what they call."""

    class Splits(Reference):
        def __init__(
            self, vocab: Any, merges: Any, special: Any = None, pattern: str | None = None, **more: Any
        ) -> None:
            changed = pattern if pattern is None or pattern in KNOWN or pattern in PATTERNS else change(pattern)
            super().__init__(vocab, merges, special, pattern if methods else changed, **more)
            self.other = Reference(vocab, merges, special, changed) if methods else None

    for name in methods:
        setattr(Splits, name, lambda self, *given, name=name: getattr(self.other, name)(*given))
    return Splits


def as_gpt2(expression: str) -> str:
    return PATTERNS["gpt2"]


def meaning(letter: str, matched: str) -> Change:
    """Return a change of what a class such as `\\s` matches, and its complement, in expressions that have no name."""

    def change(expression: str) -> str:
        if expression in PATTERNS.values():
            return expression
        nested = expression.replace(f"\\{letter}", f"[{matched}]").replace(f"\\{letter.upper()}", f"[^{matched}]")
        return f"(?V1){nested}"

    return change


def groups_as_all(expression: str) -> str:
    """Return an expression whose matches are the groups of this one, as `findall` gives them."""
    return re.sub(r"\((a)\)b", r"\1(?=b)", expression)


@pytest.mark.parametrize(
    "change",
    [
        as_gpt2,
        groups_as_all,
        lambda expression: PATTERNS["llama3"] if r"\p{N}{1,3}" in expression else expression,
        lambda expression: PATTERNS["gpt2"] if expression.startswith("'s|'t|'re|'ve") else expression,
        lambda expression: PATTERNS["gpt2"] if expression.endswith(r"|\s+(?!\S)|\s+") else expression,
        lambda expression: expression if r"\p{" in expression else PATTERNS["gpt2"],
        lambda expression: re.sub(r"([?+*])\+", r"\1", expression),
        lambda expression: re.sub(r"([?+*])\?", r"\1", expression),
        lambda expression: expression.replace("(?<=a)", ""),
        lambda expression: expression.replace("(?=c)", ""),
        lambda expression: expression.replace("(?i:", "(?:"),
        lambda expression: f"(?s){expression}",
        lambda expression: f"(?i){expression}",
        lambda expression: expression.replace("(?i:ks)", "(?:[kK][sS])"),
        *(meaning("s", other) for other in (r" \t\n\r\f\v", r"\s\x1c-\x1f", "\\s\ufeff", "\\s\u180e", "\\s\u200b")),
        *(meaning("s", rf"\s--[{other}]") for other in (r"\x85", r"\xa0", r"\u3000", r"\u2000-\u200a")),
        *(meaning("d", other) for other in ("0-9", r"\p{N}")),
        *(meaning("w", other) for other in ("a-zA-Z0-9_", r"\p{L}\p{N}", r"\w--[_]", r"\w--\p{Nl}")),
    ],
)
def test_a_tokenizer_that_takes_an_expression_for_another_one_is_found(change: Change) -> None:
    found = run("law-encode-expressions", splitting(change))
    assert found is not None
    assert found.mismatch.depends_on is None
    assert found.mismatch.asked.table.pattern in complete.EXPRESSIONS


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("law-batch-expressions", "encode_batch"),
        ("law-stream-expressions", "encode_iterable"),
        ("law-offsets-expressions", "encode_with_offsets"),
    ],
)
def test_a_method_that_splits_by_another_expression_than_encode_is_found(name: str, method: str) -> None:
    wrong = splitting(as_gpt2, method)
    assert run("law-encode-expressions", wrong) is None
    found = run(name, wrong)
    assert found is not None
    assert found.mismatch.depends_on is None


class StreamsCutAtSpaces(Reference):
    """Encodes up to the last space at once, which is correct for the patterns of the specification but `none`."""

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for part in re.split("(?<=[^ ])(?= [^ ])", "".join(chunks)):
            yield from self.encode(part)


class StreamsByChunk(Reference):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for chunk in chunks:
            yield from self.encode(chunk)


@pytest.mark.parametrize("target", [StreamsCutAtSpaces, StreamsByChunk])
def test_a_stream_that_cuts_a_pre_token_of_an_expression_is_found(target: type) -> None:
    assert run("law-stream-expressions", target) is not None


class TrainsByGpt2(Reference):
    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any = (), pattern: str | None = None) -> Any:
        used = pattern if pattern in KNOWN else None
        return super().train(text, vocab_size, special_tokens, used)


class RefusesOthers(Reference):
    """Knows the patterns of the specification, as expressions."""

    def __init__(self, vocab: Any, merges: Any, special: Any = None, pattern: str | None = None, **more: Any) -> None:
        if pattern not in KNOWN and pattern not in PATTERNS:
            raise ValueError(f"unknown expression: {pattern}")
        super().__init__(vocab, merges, special, **more)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any = (), pattern: str | None = None) -> Any:
        if pattern not in KNOWN:
            raise ValueError(f"unknown expression: {pattern}")
        return super().train(text, vocab_size, special_tokens)


def test_training_by_another_expression_is_found() -> None:
    assert run("law-train-expressions", TrainsByGpt2) is not None
    assert run("law-encode-expressions", TrainsByGpt2) is None


@pytest.mark.parametrize("place", ["before", "between", "after"])
def test_training_that_skips_some_of_what_an_expression_does_not_match_is_found(place: str) -> None:
    class CountsMatches(Reference):
        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: Any = (), pattern: str | None = None) -> Any:
            if pattern == complete.WITH_GAPS:
                first, last = text.index("a"), text.rindex("b") + 1
                before, inside, after = text[:first], text[first:last], text[last:]
                kept = {"before": ("", inside, after), "after": (before, inside, "")}
                text = "".join(kept.get(place, (before, inside.replace("-", "\n"), after)))
            return super().train(text, vocab_size, special_tokens, pattern)

    assert run("law-train-expressions", CountsMatches) is not None


def test_a_trainer_may_count_within_the_matches_alone() -> None:
    class CountsMatches(Reference):
        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: Any = (), pattern: str | None = None) -> Any:
            text = " ".join(regex.findall(pattern, text)) if pattern == complete.WITH_GAPS else text
            return super().train(text, vocab_size, special_tokens, pattern)

    found = CountsMatches.train(complete.GAPS, 300, (), complete.WITH_GAPS)
    assert found.merges == [(b"a", b"b")]
    assert run("law-train-expressions", CountsMatches) is None


@pytest.mark.parametrize("target", [RefusesOthers, Reference])
@pytest.mark.parametrize("kind", ["encode", "batch", "stream", "offsets", "train"])
def test_a_tokenizer_that_refuses_expressions_is_not_wrong(kind: str, target: type) -> None:
    assert run(f"law-{kind}-expressions", target) is None


def test_the_number_of_expressions_that_are_taken_is_noted() -> None:
    implementation = Implementation("x", RefusesOthers)
    assert PROPERTIES["law-encode-expressions"].run(implementation, Effort()) is None
    assert PROPERTIES["law-train-expressions"].run(implementation, Effort()) is None
    which = "takes 0 of 20 expressions that have no name; the others are not tested"
    assert implementation.notes == [f"the constructor {which}", f"train {which}"]
    assert not {*complete.EXPRESSIONS} & {*implementation.spellings}


def test_a_trainer_without_a_pattern_is_not_asked_for_expressions() -> None:
    class Trains(Reference):
        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: Any = ()) -> Any:
            return super().train(text, vocab_size, special_tokens)

    reasons = {
        name: skip_reason(PROPERTIES["law-train-expressions"], Implementation("x", name))
        for name in (Reference, Trains)
    }
    assert reasons == {Reference: None, Trains: "train-pattern"}


def test_a_class_with_a_split_of_its_own_takes_no_expressions_and_has_no_note() -> None:
    class Fixed:
        pattern = "cl100k"

        def __init__(self, vocab: Any, merges: Any, special: Any = None) -> None:
            self.inner = Reference(vocab, merges, special, pattern=PATTERNS["cl100k"])

        def encode(self, text: str) -> list[int]:
            return self.inner.encode(text)

    implementation = Implementation("x", Fixed)
    assert PROPERTIES["law-encode-expressions"].run(implementation, Effort()) is None
    assert implementation.notes == []


def test_each_expression_matches_every_character_and_splits_in_its_own_way() -> None:
    every = [*complete.EXPRESSIONS, *dict.fromkeys(PATTERNS.values())]
    matches = [[match[0] for match in regex.finditer(one, complete.EXPRESSED)] for one in every]
    assert ["".join(found) for found in matches] == [complete.EXPRESSED] * len(every)
    shown = (oracle(replace(complete._of_expressed(), pattern=one)).encode(complete.EXPRESSED) for one in every)
    own, known = ([*map(tuple, some)] for some in (islice(shown, len(complete.EXPRESSIONS)), shown))
    assert len({*own}) == len(own)
    assert not {*own} & {*known}


def test_other_engines_split_alike_by_each_expression() -> None:
    """Expressions on which engines differ would fail correct tokenizers that are built on them."""
    tokenizers, tiktoken = pytest.importorskip("tokenizers"), pytest.importorskip("tiktoken")
    of_expressed = complete._of_expressed()
    ranks = {token: index for index, token in of_expressed.vocab.items()}
    for expression in complete.EXPRESSIONS:
        pieces = [match[0] for match in regex.finditer(expression, complete.EXPRESSED)]
        split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(expression), "isolated")
        assert [piece for piece, _ in split.pre_tokenize_str(complete.EXPRESSED)] == pieces, expression
        encoding = tiktoken.Encoding("x", pat_str=expression, mergeable_ranks=ranks, special_tokens={})
        right = oracle(replace(of_expressed, pattern=expression), {**DEFAULTS, "lookup": "bytes"})
        assert encoding.encode(complete.EXPRESSED) == right.encode(complete.EXPRESSED), expression


# Names and marks


def dropping(method: str, drops: Callable[[bytes], bool], first: bool = False, listed: bool | None = None) -> type:
    """Return a class that leaves some tokens out of what it decodes: all of them, or only the first id and the last."""

    def changed(self: Any, ids: Iterable[int]) -> Any:
        given = list(ids)
        is_meant = listed is None or listed == bool(self.special_tokens)
        kept = [
            index
            for at, index in enumerate(given)
            if not (is_meant and drops(self.vocab[index]) and (not first or at in (0, len(given) - 1)))
        ]
        return getattr(Reference, method)(self, kept)

    return type("Drops", (Reference,), {method: changed})


OF_DECODING = {"decode": "law-decode", "decode_bytes": "law-decode", "decode_iterable": "law-detok"}


@pytest.mark.parametrize("name", ["<s>", "[PAD]", "<|im_end|>"])
@pytest.mark.parametrize("method", [*OF_DECODING])
@pytest.mark.parametrize("listed", [True, False])
def test_a_name_that_decoding_leaves_out_is_found(name: str, method: str, listed: bool) -> None:
    found = run(f"{OF_DECODING[method]}-names", dropping(method, name.encode().__eq__, listed=listed))
    assert found is not None
    assert found.mismatch.depends_on is None
    assert found.mismatch.clause_id == ("DETOK-SPECIAL-1" if method == "decode_iterable" else "SPECIAL-DECODE-1")


@pytest.mark.parametrize("method", ["decode", "decode_iterable"])
def test_a_name_that_decoding_leaves_out_at_an_end_is_found(method: str) -> None:
    target = dropping(method, lambda token: token in (b"<eos>", b"[BOS]"), first=True)
    assert run(f"{OF_DECODING[method]}-names", target) is not None


LEFT_OUT = (r"</w>(?!\S)", r"(?<!\S)##", r"@@ ", r"(?<=\w)@@$", "^\u2581", "\u0120", r"<0x[0-9A-F]{2}>", r"\x1b\[\d*m")
LEFT_OUT += (r" (?=n't|'s|[.,])", "&amp;", r"\\n", "\u200b", "\ufeff(?=kl)", "\r", "\0")


@pytest.mark.parametrize("mark", LEFT_OUT)
@pytest.mark.parametrize("is_stream", [False, True])
def test_a_mark_that_decoding_leaves_out_is_found(mark: str, is_stream: bool) -> None:
    class LeavesOut(Reference):
        def decode(self, ids: Iterable[int], *given: Any) -> str:
            text = super().decode(ids, *given)
            return text if is_stream else re.sub(mark, "", text)

        def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
            text = "".join(super().decode_iterable(ids))
            yield re.sub(mark, "", text) if is_stream else text

    names = ["law-decode-marks", "law-detok-marks"]
    found = [run(name, LeavesOut) for name in names]
    assert [one is not None for one in found] == [not is_stream, is_stream]


class EncodesSome(Reference):
    """Takes some names for special tokens that are entries but are not listed."""

    def __init__(self, vocab: Any, merges: Any, special: Any = None, pattern: str | None = None, **more: Any) -> None:
        entries = {*vocab.values()}
        known = [name for name in ("<pad>", "<|eot_id|>") if name.encode() in entries and not special]
        super().__init__(vocab, merges, [*(special or ()), *known], pattern, **more)


class LoadsSome(Reference):
    @classmethod
    def from_files(cls, vocab: Any, merges: Any, special_tokens: Any = None, **more: Any) -> Any:
        loaded = Reference.from_files(vocab, merges, special_tokens, **more)
        found = [name for name in ("<s>", "</s>") if name.encode() in loaded.vocab.values()]
        return cls(loaded.vocab, loaded.merges, [*(special_tokens or ()), *found])


class LoadsWithoutSome(Reference):
    """Finds fewer of the special tokens after loading."""

    @classmethod
    def from_files(cls, vocab: Any, merges: Any, special_tokens: Any = None, **more: Any) -> Any:
        return super().from_files(vocab, merges, [one for one in special_tokens or () if one != "[MASK]"], **more)


class BatchesWithoutTheLast(Reference):
    """Takes a special token at the end of a text for padding."""

    def encode_batch(self, texts: Any, **choice: Any) -> Any:
        return super().encode_batch([text.removesuffix("<pad>") for text in texts], **choice)


class StreamsUpToAName(Reference):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for index in super().encode_iterable(chunks):
            yield index
            if self.special_tokens and self.vocab[index] == b"<|eot_id|>":
                return


class NoSpanOfAName(Reference):
    def encode_with_offsets(self, text: str) -> Any:
        ids, spans = super().encode_with_offsets(text)
        return ids, [(0, 0) if self.vocab[index] == b"[CLS]" else span for index, span in zip(ids, spans, strict=True)]


class SavesWithoutSome(Reference):
    left_out = (b"<pad>", b"<s>")

    def save(self, folder: Any) -> None:
        kept = {index: token for index, token in self.vocab.items() if token not in self.left_out}
        Reference(kept, self.merges).save(folder)


@pytest.mark.parametrize(
    ("name", "target", "clause_id"),
    [
        ("law-encode-names", EncodesSome, "SPECIAL-OFF-1"),
        ("law-batch-names", BatchesWithoutTheLast, "LAW-BATCH-1"),
        ("law-stream-names", StreamsUpToAName, "STREAM-EQUAL-1"),
        ("law-offsets-names", NoSpanOfAName, "OFFSET-SPAN-1"),
        ("law-save-names", SavesWithoutSome, "FILE-SAVE-1"),
        ("law-load-names", LoadsSome, ""),
        ("law-load-names", LoadsWithoutSome, ""),
    ],
)
def test_a_name_that_one_method_treats_otherwise_is_found(name: str, target: type, clause_id: str) -> None:
    found = run(name, target)
    assert found is not None
    assert (found.mismatch.depends_on, found.mismatch.clause_id) == (None, clause_id)
    if name == "law-load-names":
        assert len(found.mismatch.asked.operation.text) < 20


@pytest.mark.parametrize("name", ["law-batch-names", "law-stream-names", "law-offsets-names"])
def test_every_name_and_mark_is_asked_of_each_method(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[bool, str] = {}

    def note(_: Implementation, clause_id: str, model: Model, operations: Iterable[Operation]) -> Iterator[None]:
        asked[bool(model.special_tokens)] = "\n".join("".join(part) for one in operations for part in one.texts())
        yield None

    monkeypatch.setattr(complete, "_of_one", note)
    assert run(name, Reference) is None
    assert {*asked} == {False, True}
    for texts in asked.values():
        assert [part for part in (*complete.SPECIAL_NAMES, *complete.SIGNS) if part not in texts] == []


@pytest.mark.parametrize(
    ("name", "kind", "parts", "is_spelled"),
    [
        ("law-decode-names", Decode, complete.SPECIAL_NAMES, False),
        ("law-detok-names", Detokenize, complete.SPECIAL_NAMES, False),
        ("law-decode-marks", Decode, complete.SIGNS, True),
        ("law-detok-marks", Detokenize, complete.SIGNS, True),
    ],
)
def test_every_name_and_mark_is_decoded_as_one_id_and_every_mark_as_its_bytes(
    name: str,
    kind: type[Decode | Detokenize],
    parts: Sequence[str],
    is_spelled: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[int, ...]] = []

    def note(_: Implementation, clause_id: str, model: Model, operations: Iterable[Operation]) -> Iterator[None]:
        asked.extend(one.ids for one in operations if isinstance(one, kind))
        yield None

    monkeypatch.setattr(complete, "_of_one", note)
    assert run(name, Reference) is None
    spelled = b"\n".join(bytes(ids) for ids in asked if max(ids) < 256)
    for part in parts:
        assert any(complete.UNLISTED.ids[part.encode()] in ids for ids in asked), part
        assert part.encode() in spelled or not is_spelled, part


def test_a_listed_name_that_takes_a_space_breaks_the_clause_of_special_tokens() -> None:
    class StripsIfListed(Reference):
        def encode(self, text: str, **choice: Any) -> Any:
            return super().encode(text.replace(" [SEP]", "[SEP]") if self.special_tokens else text, **choice)

    found = run("law-encode-names", StripsIfListed)
    assert found is not None
    assert found.mismatch.clause_id == "SPECIAL-SCAN-1"


def test_names_and_marks_of_other_tests_are_among_those_of_every_method() -> None:
    assert {*strategies.UNLISTED} - {*complete.SPECIAL_NAMES} == {"<|e|>"}
    signs = " ".join((*complete.SPECIAL_NAMES, *complete.SIGNS))
    assert [word for word in complete.WORDS if word.replace("low", "").replace("ing", "") not in signs] == []


def test_each_part_is_at_the_start_in_the_middle_and_at_the_end_once_and_twice() -> None:
    for part in ("<s>", "@@"):
        texts = complete._texts([part])
        for many in (part, part * 2):
            assert any(text.startswith(many) and text != many and text.count(part) * part == many for text in texts)
            assert any(text.endswith(many) and text != many and text.count(part) * part == many for text in texts)
            assert any(text.strip("kl ") == many and text[0] + text[-1] == "kl" for text in texts)
    decoded = [oracle(complete.UNLISTED).decode(list(ids)) for ids in complete._ids(["<s>"])]
    assert decoded == complete._texts(["<s>"])
