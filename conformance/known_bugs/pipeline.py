"""Incorrect pipelines: normalization, added tokens, split steps, the mapping of bytes, the lookup of whole tokens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from bpe_conformance.fixtures import spell, unspell
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Digits, Punctuation, Split, Step
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Matches, Segments, Word

from .bases import BaseEncoder, add_variants

Behaviors = dict[str, str]


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


def _steps(change: Callable[[list[Step]], list[Step]]) -> Callable[[BaseEncoder, Iterable[Step], str], list[str]]:
    """Return `apply_all` with other steps before ByteLevel."""

    def apply_all(self: BaseEncoder, steps: Iterable[Step], segment: str) -> list[str]:
        listed = [*steps]
        last = next(index for index, step in enumerate(listed) if isinstance(step, ByteLevel))
        return BaseEncoder.apply_all(self, [*change(listed[:last]), *listed[last:]], segment)

    return apply_all


def _step(kind: type[Step], **settings: Any) -> Callable[[BaseEncoder, Step, str], list[str]]:
    """Return `apply` with other settings of one kind of step."""

    def apply(self: BaseEncoder, step: Step, piece: str) -> list[str]:
        return BaseEncoder.apply(self, replace(step, **settings) if isinstance(step, kind) else step, piece)

    return apply


def _matching(kind: type[Step], expression: str) -> Callable[[BaseEncoder, Step, str], list[str]]:
    """Return `apply` with another expression of `Digits` or `Punctuation`."""

    def apply(self: BaseEncoder, step: Step, piece: str) -> list[str]:
        if not isinstance(step, kind):
            return BaseEncoder.apply(self, step, piece)
        behavior = step.behavior if isinstance(step, Punctuation) else "Contiguous"
        behavior = "Isolated" if isinstance(step, Digits) and step.individual else behavior
        return self.cut_at(piece, textbook.find_matches(piece, expression), behavior)

    return apply


def _behaviors(others: Behaviors) -> Callable[..., list[str]]:
    """Return `cut_at` that takes behaviors for others."""

    def cut_at(self: BaseEncoder, piece: str, matches: Matches, behavior: str, invert: bool = False) -> list[str]:
        return textbook.cut_at(piece, matches, others.get(behavior, behavior), invert)

    return cut_at


def _flags(**flags: Any) -> Callable[[BaseEncoder, Sequence[AddedToken], str], Segments]:
    """Return `find_added` that gives every added token these flags."""

    def find_added(self: BaseEncoder, tokens: Sequence[AddedToken], text: str) -> Segments:
        return BaseEncoder.find_added(self, [replace(token, **flags) for token in tokens], text)

    return find_added


def _in_order(self: BaseEncoder, text: str, forms: Iterable[str]) -> Segments:
    parts = re.split(f"({'|'.join(map(re.escape, forms)) or '(?!)'})", text)
    return [(part, index % 2 == 1) for index, part in enumerate(parts)]


class PrefixSpaceOnlyAtStart(BaseEncoder):
    def find_added(self, tokens: Sequence[AddedToken], text: str) -> Segments:
        steps = self.pipeline.steps if self.pipeline is not None else ()
        has_prefix = any(isinstance(step, ByteLevel) and step.prefix_space for step in steps)
        return super().find_added(tokens, f" {text}" if has_prefix and text and text[0] != " " else text)

    def apply(self, step: Step, piece: str) -> list[str]:
        return _step(ByteLevel, prefix_space=False)(self, step, piece)


add_variants(
    __name__,
    BaseEncoder,
    normalize={
        "NormalizerLeftOut": lambda self, text: text,
        "CompatibilityForgotten": lambda self, text: (
            unicodedata.normalize(next((form.replace("K", "") for form in self.pipeline.normalizer), "NFC"), text)
            if self.pipeline.normalizer
            else text
        ),
    },
    find_added={
        "NormalizedAsOneText": lambda self, tokens, text: BaseEncoder.find_added(self, tokens, self.normalize(text)),
        "AddedTokensAsText": lambda self, tokens, text: BaseEncoder.find_added(self, (), text),
        "NormalizedFlagIgnored": _flags(normalized=False),
        "LstripIgnored": _flags(lstrip=False),
        "RstripIgnored": _flags(rstrip=False),
        "SingleWordIgnored": _flags(single_word=False),
    },
    search_added={"AddedTokensInOrderOfFile": _in_order},
    apply_all={
        "SplitsInReverse": _steps(lambda steps: steps[::-1]),
        "OnlyFirstSplit": _steps(lambda steps: steps[:1]),
    },
    apply={
        "InvertIgnored": _step(Split, invert=False),
        "PrefixSpaceLeftOut": _step(ByteLevel, prefix_space=False),
        "OwnSplitOfByteLevelForgotten": _step(ByteLevel, split=False),
        "OwnSplitOfByteLevelAlways": _step(ByteLevel, split=True),
        "DigitsDecimalOnly": _matching(Digits, r"\d"),
        "DigitsAlwaysIndividual": _step(Digits, individual=True),
        "PunctuationWithoutSymbols": _matching(Punctuation, r"\p{P}"),
        "PunctuationAscii": _matching(Punctuation, r"[!-/:-@\[-`{-~]"),
    },
    cut_at={
        "MergedAsIsolated": _behaviors({"MergedWithPrevious": "Isolated", "MergedWithNext": "Isolated"}),
        "ContiguousAsIsolated": _behaviors({"Contiguous": "Isolated"}),
        "IsolatedAsContiguous": _behaviors({"Isolated": "Contiguous"}),
        "RemovedAsIsolated": _behaviors({"Removed": "Isolated"}),
        "EmptyMatchesIgnored": lambda self, piece, matches, behavior, invert=False: textbook.cut_at(
            piece, [(start, end) for start, end in matches if start < end], behavior, invert
        ),
    },
    touches_word={
        "SingleWordOnlyBetweenSpaces": lambda self, text, start, stop: bool(
            (text[max(0, start - 1) : start] + text[stop : stop + 1]).strip()
        )
    },
    stays_whole={
        "WholeIgnored": lambda self, word: False,
        "AlwaysWhole": lambda self, word: self.pipeline is not None and b"".join(word) in self.byte_ranks,
    },
    stripped={
        "StripsSpacesOnly": lambda self, text, start, stop, token: (
            len(text[:start].rstrip(" ")) if token.lstrip else start,
            len(text) - len(text[stop:].lstrip(" ")) if token.rstrip else stop,
        )
    },
)
