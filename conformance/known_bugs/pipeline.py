"""Incorrect pipelines: normalization, added tokens, split steps, the mapping of bytes, the lookup of whole tokens."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import regex

from bpe_conformance.fixtures import PATTERNS, spell, unspell
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Digits, Split, Step
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Cut, Matches, Segments, Word

from .bases import BaseEncoder, add_variants, like
from .special import cut_at_first_end

_NO_FLAGS = dict.fromkeys(("normalized", "lstrip", "rstrip", "single_word"), False)
_FAMOUS = ("gpt2", "cl100k", "o200k", "llama3", "qwen2")


class AddedTokensLeftOutOfStreams(BaseEncoder):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        added = set(map(self.special_id, self.special))
        return super().decode_iterable(index for index in ids if index not in added)


class AddedTokensNotDecoded(BaseEncoder):
    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        tokens = () if self.pipeline is None else self.pipeline.added_tokens
        silent = {self.special_id(token.content) for token in tokens if not token.special}
        return super().decode_bytes([index for index in ids if index not in silent])

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        for index in ids:
            yield self.decode([index])


class NormalizedTokensFirst(BaseEncoder):
    def find_added(self, tokens: Sequence[AddedToken], text: str) -> Segments:
        first, last = ([token for token in tokens if token.normalized is kind] for kind in (True, False))
        segments = super().find_added(first, text)
        cut = ([part] if part[1] else super(NormalizedTokensFirst, self).find_added(last, part[0]) for part in segments)
        return [part for parts in cut for part in parts]


class AddedTokensLongestFirst(BaseEncoder):
    def search_added(self, text: str, forms: Iterable[str]) -> Segments:
        segments: Segments = [(text, False)]
        for form in sorted(forms, key=len, reverse=True):
            cut = ([part] if part[1] else textbook.cut_special(part[0], [form]) for part in segments)
            segments = [part for parts in cut for part in parts]
        return segments


class AddedTokensByEnd(BaseEncoder):
    def search_added(self, text: str, forms: Iterable[str]) -> Segments:
        return cut_at_first_end(text, list(forms))


class AddedTokensInOrderOfFile(BaseEncoder):
    def search_added(self, text: str, forms: Iterable[str]) -> Segments:
        parts = re.split(f"({'|'.join(map(re.escape, forms)) or '(?!)'})", text)
        return [(part, index % 2 == 1) for index, part in enumerate(parts)]


class NormalizedContentsAsGiven(BaseEncoder):
    def find_added(self, tokens: Sequence[AddedToken], text: str) -> Segments:
        segments: Segments = []
        for segment, is_added in super().find_added([token for token in tokens if not token.normalized], text):
            forms = {token.content: token for token in tokens if token.normalized}
            segments += [(segment, True)] if is_added else self.cut_added(segment, forms)
        return segments


class SingleWordSeesTokenBefore(BaseEncoder):
    before = ""

    def find_added(self, tokens: Sequence[AddedToken], text: str) -> Segments:
        segments: Segments = []
        forms = {self.normalize(token.content): token for token in tokens if token.normalized}
        for segment, is_added in super().find_added([token for token in tokens if not token.normalized], text):
            segments += [(segment, True)] if is_added else self.cut_added(segment, forms)
            self.before = segment if is_added else ""
        self.before = ""
        return segments

    def touches_word(self, text: str, start: int, stop: int) -> bool:
        size = len(self.before)
        return super().touches_word(self.before + text, size + start, size + stop)


class TokensInStrippedWhiteSpaceLost(BaseEncoder):
    def locate_added(self, text: str, forms: Mapping[str, AddedToken]) -> list[tuple[int, int, str]]:
        parts: list[tuple[int, int, str]] = []
        end = 0
        for start, stop, content in super().locate_added(text, forms):
            if content and start >= end:
                parts += [(end, start, ""), (start, stop, content)]
                end = stop
        return [part for part in [*parts, (end, len(text), "")] if part[0] < part[1]]


class SplitsSeeWholeText(BaseEncoder):
    def apply_all(self, steps: Iterable[Step], segment: str) -> list[str]:
        pieces = [segment]
        for step in steps:
            start, whole, parts = 0, "".join(pieces), list[str]()
            for piece in pieces:
                end = start + len(piece)
                if isinstance(step, Split):
                    spans = textbook.find_matches(whole, step.expression)
                    inside = [(max(0, a - start), min(b, end) - start) for a, b in spans if a < end and b > start]
                    parts += self.cut_at(piece, inside, step.behavior, step.invert)
                else:
                    parts += self.apply(step, piece)
                start = end
            pieces = parts
        return pieces


class MappedLast(BaseEncoder):
    def apply(self, step: Step, piece: str) -> list[str]:
        parts = super().apply(step, piece)
        return [unspell(part).decode("utf-8") for part in parts] if isinstance(step, ByteLevel) else parts

    def atoms(self, pre_token: str) -> Word:
        return super().atoms(pre_token if self.pipeline is None else spell(pre_token.encode("utf-8")))


class PrefixSpaceOnlyAtStart(BaseEncoder):
    def find_special(self, text: str, allowed: list[str]) -> Segments:
        steps = self.pipeline.steps if self.pipeline is not None else ()
        has_prefix = any(isinstance(step, ByteLevel) and step.prefix_space for step in steps)
        return super().find_special(f" {text}" if has_prefix and text and text[0] != " " else text, allowed)

    def apply(self, step: Step, piece: str) -> list[str]:
        return super().apply(replace(step, prefix_space=False) if isinstance(step, ByteLevel) else step, piece)


class PrefixSpaceNotAfterTokens(BaseEncoder):
    is_first = True

    def encode_segments(self, segments: Segments) -> list[int]:
        ids: list[int] = []
        for segment in segments:
            self.is_first = not ids
            ids += super().encode_segments([segment])
        return ids

    def apply(self, step: Step, piece: str) -> list[str]:
        if isinstance(step, ByteLevel) and not self.is_first:
            step = replace(step, prefix_space=False)
        return super().apply(step, piece)


class StringsCompiled(BaseEncoder):
    @classmethod
    def from_tokenizer_json(cls, path: str) -> BaseEncoder:
        text = Path(path).read_text("utf-8").replace('"String":', '"Regex":')
        Path(path).write_text(text, "utf-8")
        return super().from_tokenizer_json(path)


class OwnSplitOffByDefault(BaseEncoder):
    @classmethod
    def from_tokenizer_json(cls, path: str) -> BaseEncoder:
        def filled(entry: dict[str, Any]) -> dict[str, Any]:
            return {"use_regex": False, **entry} if entry.get("type") == "ByteLevel" else entry

        document = json.loads(Path(path).read_text("utf-8"), object_hook=filled)
        Path(path).write_text(json.dumps(document), "utf-8")
        return super().from_tokenizer_json(path)


class MatchesOfFinditer(BaseEncoder):
    def apply(self, step: Step, piece: str) -> list[str]:
        if isinstance(step, Split):
            matches = [match.span() for match in regex.finditer(step.expression, piece, regex.V1)]
            return self.cut_at(piece, matches, step.behavior, step.invert)
        return super().apply(step, piece)


class OverlappingTextsCut(BaseEncoder):
    def apply(self, step: Step, piece: str) -> list[str]:
        if isinstance(step, Split) and step.expression.isalnum():
            found = regex.finditer(step.expression, piece, overlapped=True)
            return self.cut_at(piece, [match.span() for match in found], step.behavior, step.invert)
        return super().apply(step, piece)


class CapturedGroupsAsPieces(BaseEncoder):
    def apply(self, step: Step, piece: str) -> list[str]:
        if isinstance(step, Split) and step.behavior == "Isolated" and not step.invert:
            return [part for part in regex.split(f"({step.expression})", piece, flags=regex.V1) if part]
        return super().apply(step, piece)


class StreamCutBeforeSpacesOfPipeline(BaseEncoder):
    def ready(self, held: str) -> int:
        cut = held.rfind(" ")
        if self.pipeline is None or self.pipeline.added_tokens or cut <= 0 or held[cut - 1].isspace():
            return super().ready(held)
        return cut


class StreamCutAfterRstrip(BaseEncoder):
    enough = 1_024

    def ready(self, held: str) -> int:
        if self.pipeline is None or self.pipeline.steps != (ByteLevel(),) or len(held) < self.enough:
            return super().ready(held)
        flags = {(token.lstrip, token.single_word, token.normalized) for token in self.pipeline.added_tokens}
        cuts = [match.start() for match in re.finditer(self.cuts, held)]
        return max(cuts, default=0) if flags <= {(False, False, False)} else 0


class _ChangedFile(BaseEncoder):
    """Reads the file after a change."""

    @classmethod
    def change(cls, document: Any) -> None: ...

    @classmethod
    def from_tokenizer_json(cls, path: str) -> BaseEncoder:
        document = json.loads(Path(path).read_bytes())
        cls.change(document)
        Path(path).write_text(json.dumps(document), "utf-8")
        return super().from_tokenizer_json(path)


class NestedStepsIgnored(_ChangedFile):
    @classmethod
    def change(cls, document: Any) -> None:
        for name, key in (("normalizer", "normalizers"), ("pre_tokenizer", "pretokenizers")):
            parts = (document[name] or {}).get(key, [])
            parts[:] = [part for part in parts if part["type"] != "Sequence"]


def _sequences(step: Any) -> Iterator[list[Any]]:
    """Yield the lists of steps of a Sequence and of those inside it."""
    for part in (parts := (step or {}).get("pretokenizers", [])):
        yield from _sequences(part)
    yield parts


class OnlyLastSplit(_ChangedFile):
    @classmethod
    def change(cls, document: Any) -> None:
        for steps in _sequences(document["pre_tokenizer"]):
            splits = [step for step in steps if step["type"] == "Split"]
            steps[:] = [step for step in steps if step not in splits[:-1]]


class SplitsJoined(_ChangedFile):
    @classmethod
    def change(cls, document: Any) -> None:
        for steps in _sequences(document["pre_tokenizer"]):
            splits = [*takewhile(lambda step: step["type"] == "Split", steps)]
            if all(step["behavior"] == "Isolated" and not step["invert"] for step in splits) and splits:
                either = [one["pattern"].get("Regex") or re.escape(one["pattern"]["String"]) for one in splits]
                pattern = {"Regex": "|".join(f"(?:{one})" for one in either)}
                steps[: len(splits)] = [{**splits[0], "pattern": pattern}]


class MergesWithNumberSignSkipped(_ChangedFile):
    @classmethod
    def change(cls, document: Any) -> None:
        merges = document["model"]["merges"]
        merges[:] = [merge for merge in merges if not isinstance(merge, str) or merge[0] != "#"]


class IdsByOrderOfKeys(_ChangedFile):
    @classmethod
    def change(cls, document: Any) -> None:
        keys = document["model"]["vocab"]
        keys.update(zip(keys, sorted(keys.values()), strict=True))


class TemplateApplied(BaseEncoder):
    first: Sequence[int] = ()

    @classmethod
    def from_tokenizer_json(cls, path: str) -> BaseEncoder:
        written = json.loads(Path(path).read_bytes())["post_processor"] or {}
        named = [
            token for part in written.get("processors", [written]) for token in part.get("special_tokens", {}).values()
        ]
        first = [index for token in named for index in token["ids"]]
        return like(super().from_tokenizer_json(path), cls, first=first)

    def encode(self, text: str) -> list[int]:
        return [*self.first, *super().encode(text)]


def _given(step: str, change: Callable[..., tuple[Any, ...]]) -> Callable[..., Any]:
    """Return a step that does the correct thing with other arguments."""
    return lambda self, *arguments: getattr(BaseEncoder, step)(self, *change(*arguments))


def _tokens(**flags: Any) -> Callable[..., Any]:
    return _given("find_added", lambda tokens, text: ([replace(token, **flags) for token in tokens], text))


def _step(kind: type[Step], **settings: Any) -> Callable[..., Any]:
    return _given("apply", lambda step, *more: (replace(step, **settings) if isinstance(step, kind) else step, *more))


def _with_dotall(step: Step, *more: Any) -> tuple[Any, ...]:
    return (replace(step, expression=f"(?s:{step.expression})") if isinstance(step, Split) else step, *more)


def _behaviors(**others: str) -> Callable[..., Any]:
    return _given("cut_at", lambda piece, found, name, *more: (piece, found, others.get(name, name), *more))


def _gaps_from_start(self: BaseEncoder, piece: Cut, found: Matches, name: str, invert: bool = False) -> list[Cut]:
    if name != "Isolated" or invert:
        return textbook.cut_at(piece, found, name, invert)
    parts: list[Cut] = []
    end = 0
    for start, stop in found:
        parts += [piece[:start] if end < start else piece[:0], piece[start:stop]]
        end = stop
    parts.append(piece[end:])
    return [part for part in parts if part]


def _united(found: Matches) -> Matches:
    """Return each run of matches that touch as one."""
    starts = [span[0] for before, span in pairwise([(-1, -1), *found]) if before[1] != span[0]]
    ends = [span[1] for span, after in pairwise([*found, (-1, -1)]) if span[1] != after[0]]
    return [*zip(starts, ends, strict=True)]


def _merging(*behaviors: str) -> Callable[..., Any]:
    return _given(
        "cut_at", lambda piece, found, name, *more: (piece, _united(found) if name in behaviors else found, name, *more)
    )


def _before_byte_level(change: Callable[[list[Step]], list[Step]]) -> Callable[..., Any]:
    def changed(steps: Sequence[Step], segment: str) -> tuple[list[Step], str]:
        last = next(index for index, step in enumerate(steps) if isinstance(step, ByteLevel))
        return [*change([*steps[:last]]), *steps[last:]], segment

    return _given("apply_all", changed)


def _stripping(blanks: str) -> Callable[..., tuple[int, int]]:
    return lambda self, text, start, stop, token: (
        len(text[:start].rstrip(blanks)) if token.lstrip else start,
        len(text) - len(text[stop:].lstrip(blanks)) if token.rstrip else stop,
    )


class SettingsIgnored(BaseEncoder):
    find_added = _tokens(**_NO_FLAGS)

    def normalize(self, text: str) -> str:
        return text


def _forms(encoder: BaseEncoder) -> set[str]:
    return set(encoder.pipeline.normalizer if encoder.pipeline is not None else ())


def _canonical(self: BaseEncoder, text: str) -> str:
    forms = self.pipeline.normalizer[:1] if self.pipeline is not None else ()
    return unicodedata.normalize("NFD" if forms[0] in ("NFD", "NFKD") else "NFC", text) if forms else text


def _compatible(self: BaseEncoder, text: str) -> str:
    for form in self.pipeline.normalizer if self.pipeline is not None else ():
        text = unicodedata.normalize("NFKD" if form.endswith("D") else "NFKC", text)
    return text


add_variants(
    __name__,
    BaseEncoder,
    normalize={
        "NormalizerLeftOut": lambda self, text: text,
        "CompatibilityForgotten": _canonical,
        "CompatibilityAdded": _compatible,
        "MarksNormalizedInGroups": lambda self, text: "".join(
            BaseEncoder.normalize(self, part) for part in regex.findall(r"\P{M}?\p{M}{0,30}", text)
        ),
        "NfcOnlyWithMarksOrJamo": lambda self, text: (
            text
            if _forms(self) == {"NFC"} and not regex.search("[\u0300-\u036f\u1100-\u11ff]", text)
            else BaseEncoder.normalize(self, text)
        ),
        "LatinTextNotNormalized": lambda self, text: (
            text if max(text, default="") < "\u0300" else BaseEncoder.normalize(self, text)
        ),
    },
    find_added={
        "NormalizedAsOneText": lambda self, tokens, text: BaseEncoder.find_added(self, tokens, self.normalize(text)),
        "AddedTokensAsText": _given("find_added", lambda tokens, text: ((), text)),
        "NormalizedFlagIgnored": _tokens(normalized=False),
        "FlagsIgnored": _tokens(**_NO_FLAGS),
        "LstripIgnored": _tokens(lstrip=False),
        "RstripIgnored": _tokens(rstrip=False),
        "SingleWordIgnored": _tokens(single_word=False),
        "AddedTokensNotFound": _given(
            "find_added",
            lambda tokens, text: ([one for one in tokens if one.special or one.normalized], text),
        ),
        "FlagsOfSpecialTokensOnly": _given(
            "find_added",
            lambda tokens, text: (
                [one if one.special else replace(one, lstrip=False, rstrip=False) for one in tokens],
                text,
            ),
        ),
    },
    apply_all={
        "SplitsInReverse": _before_byte_level(lambda steps: steps[::-1]),
        "OnlyFirstSplit": _before_byte_level(lambda steps: steps[:1]),
    },
    apply={
        "InvertIgnored": _step(Split, invert=False),
        **{f"ExpressionOf{name[0].upper()}{name[1:]}": _step(Split, expression=PATTERNS[name]) for name in _FAMOUS},
        "DotsMatchLineEnds": _given("apply", _with_dotall),
        "PrefixSpaceLeftOut": _step(ByteLevel, prefix_space=False),
        "PrefixSpaceNotBeforeWhiteSpace": lambda self, step, piece: (
            _step(ByteLevel, prefix_space=False) if piece[:1].isspace() else BaseEncoder.apply
        )(self, step, piece),
        "OwnSplitOfByteLevelForgotten": _step(ByteLevel, split=False),
        "OwnSplitOfByteLevelAlways": _step(ByteLevel, split=True),
        "DigitsAlwaysIndividual": _step(Digits, individual=True),
    },
    digits={"DigitsDecimalOnly": r"\d", "DigitsWithIdeographs": r"[\p{N}\p{Numeric_Type=Numeric}]"},
    punctuation={
        "PunctuationWithoutSymbols": r"\p{P}",
        "PunctuationAscii": r"[!-/:-@\[-`{-~]",
        "PunctuationWithAllSymbols": r"[\p{P}\p{S}]",
    },
    cut_at={
        "MergedAsIsolated": _behaviors(MergedWithPrevious="Isolated", MergedWithNext="Isolated"),
        "MatchesMergedWithMatches": _merging("MergedWithPrevious", "MergedWithNext"),
        "MatchesMergedWithMatchesBefore": _merging("MergedWithPrevious"),
        "GapsFromTheStart": _gaps_from_start,
        "ContiguousAsIsolated": _behaviors(Contiguous="Isolated"),
        "IsolatedAsContiguous": _behaviors(Isolated="Contiguous"),
        "RemovedAsIsolated": _behaviors(Removed="Isolated"),
        "EmptyMatchesIgnored": _given(
            "cut_at", lambda piece, found, *more: (piece, [span for span in found if span[0] < span[1]], *more)
        ),
    },
    touches_word={
        "SingleWordOnlyBetweenSpaces": lambda self, text, start, stop: bool(
            (text[max(0, start - 1) : start] + text[stop : stop + 1]).strip()
        ),
        "SingleWordWithoutJoiners": lambda self, text, start, stop: bool(
            regex.search(r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]", text[max(0, start - 1) : start] + text[stop : stop + 1])
        ),
        "SingleWordByLettersAndDigits": lambda self, text, start, stop: any(
            map(str.isalnum, text[max(0, start - 1) : start] + text[stop : stop + 1])
        ),
    },
    stays_whole={
        "WholeIgnored": lambda self, word: False,
        "AlwaysWhole": lambda self, word: self.pipeline is not None and b"".join(word) in self.byte_ranks,
    },
    stripped={"StripsSpacesOnly": _stripping(" "), "StripsAsciiOnly": _stripping(" \t\n\v\f\r")},
)
