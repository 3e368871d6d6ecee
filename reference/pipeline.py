"""Applies the pipeline of a model as `tokenizers` does: added tokens, normalization, split steps.

`PipelineEncoder` is the text encoder of a model with a pipeline. Where special tokens and one pattern give the same
ids, it encodes like that of a model without a pipeline, over arrays too.

Streams: text is encoded as soon as a position before which its ids are certain is known. Such a position is the end of
an added token that is neither `normalized` nor beside one with a flag and, if the steps are one pattern with fences, a
fence whose characters no normal form changes. A stream without such positions is held back until its end.

Versions of Unicode: normal forms follow version 9, as in `tokenizers` 0.23: characters that are newer stay as they are
and separate what is beside them. Everything else follows the installed `regex`; `tokenizers` has version 16 in
expressions and `single_word`, 17 in `Digits` and 8 in `Punctuation`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby, islice, pairwise, product
from operator import itemgetter

import regex

from bpe_conformance.fixtures import PATTERNS, Merge, Model, spell, unspell
from bpe_conformance.fixtures.characters import NEWER, NormalForm
from bpe_conformance.fixtures.expression import compile_expression, is_name
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Digits, Pipeline, Punctuation, Split, Step

from .encoder import NO_ID, SINGLE_BYTES, PreTokenEncoder
from .fences import are_safe_from, has_fence
from .formats.oniguruma import may_match_empty
from .patterns import pre_tokenize, resolve
from .special_tokens import SpecialTokens, straddles
from .streaming import parts
from .text_encoder import TextEncoder

Cutter = Callable[[str], Iterable[str]]  # cuts a piece of text into pieces, none of them empty
Origin = tuple[int, int] | None
"""The first character that something comes from, and the one after the last; None for an added space."""
MIXED = 25_000_000
"""The most characters of `normalized` added tokens, times those of the others, for which overlaps are looked for."""
_CLUSTER = regex.compile(r"(?s).[\p{M}\u1160-\u11ff\u3131-\u318e\uff9e-\uffdc]*")
"""A character, and those after it that can be composed with it: marks, vowels and final consonants of Hangul."""
_SPACES = regex.compile(r"\s*")
_SPACES_BEFORE = regex.compile(r"(?r)\s*")
_WORD_CHARACTER = regex.compile(r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]")
_PUNCTUATION = r"[\p{P}$+<=>^`|~\u166d\U000111c9]"


# Which pipelines are plain


def pattern_of(steps: Sequence[Step]) -> str | None:
    """Return the pattern that splits as the steps do, or None: a name, or an expression for `regex` without flags."""
    match steps:
        case [ByteLevel(False, is_split)]:
            return "gpt2" if is_split else "none"
        case [Split(expression, behavior, invert), ByteLevel(False, False)]:
            name = next((name for name, text in PATTERNS.items() if text == expression), None)
            if (behavior, invert) == ("Isolated", False):
                has_sets = regex.search(r"\[[^\]]*\[|&&", re.sub(r"\\.", "", expression))  # which only V1 has
                is_misread = has_sets or may_match_empty(expression) or is_name(expression)  # a name is no expression
                return name or (None if is_misread else expression)
            if (behavior, invert) == ("Removed", True):
                return name  # each of these matches all of a text
    return None


def are_plain(tokens: Iterable[AddedToken]) -> bool:
    """Return whether one search for the leftmost and longest finds the same tokens."""
    kinds: tuple[list[str], list[str]] = [], []
    for token in tokens:
        if token.lstrip or token.rstrip or token.single_word:
            return False
        kinds[token.normalized].append(token.content)
    # Tokens that are not `normalized` are found first.
    if sum(map(len, kinds[0])) * sum(map(len, kinds[1])) > MIXED:
        return False
    pairs = [*product(*kinds), *product(*reversed(kinds))]
    return not any(straddles(first, second) or first.startswith(second) for first, second in pairs)


def model_of(vocab: Mapping[int, bytes], merges: tuple[Merge, ...], pipeline: Pipeline) -> Model:
    """Return the model of a pipeline, without it where special tokens and a pattern suffice."""
    tokens, pattern = pipeline.added_tokens, pattern_of(pipeline.steps)
    special = tuple(token.content for token in tokens)
    is_plain = not pipeline.normalizer and pipeline.lookup == "pair" and are_plain(tokens)
    has_ids = set(vocab.values()).issuperset(SINGLE_BYTES) and all(token.id is None for token in tokens)
    if pattern is None or not is_plain or not has_ids:
        return Model(vocab, merges, special, pipeline=pipeline)
    return Model(vocab, merges, special, pattern)


# Added tokens and normal forms


def normalize(text: str, forms: Iterable[NormalForm]) -> str:
    if not text.isascii():
        for form in forms:
            between = NEWER.split(text)
            between[::2] = (unicodedata.normalize(form, part) for part in between[::2])
            text = "".join(between)
    return text


def origins_of(text: str, forms: Sequence[NormalForm], start: int) -> Iterator[tuple[int, int]]:
    """Yield, for each character of the normalized text, the characters that it comes from, counted from `start`.

    A text is cut where both parts, normalized, are the normalized text: first before each character that nothing
    before it can change, then in the few that are left together.
    """
    pieces = [text] if text.isascii() else _CLUSTER.findall(text)
    changed = [normalize(piece, forms) for piece in pieces]
    if "".join(changed) != (whole := normalize(text, forms)):
        pieces, changed = [text], [whole]
    for piece, form in zip(pieces, changed, strict=True):
        parts = ((index, piece[:index], piece[index:]) for index in range(1, len(piece)))
        cuts = [at for at, *both in parts if piece == form or "".join(normalize(part, forms) for part in both) == form]
        for first, last in pairwise([0, *cuts, len(piece)]):
            for _ in normalize(piece[first:last], forms):
                yield start + first, start + last
        start += len(piece)


class AddedTokens:
    """The added tokens that are searched for together: those that are `normalized`, or the others."""

    def __init__(self, tokens: Iterable[AddedToken], forms: Sequence[NormalForm] = ()) -> None:
        self._token_of = {normalize(token.content, forms): token for token in tokens}
        self.special = SpecialTokens(self._token_of)
        flagged = [token for token in self._token_of.values() if token.lstrip or token.rstrip or token.single_word]
        self._has_flags = bool(flagged)
        needs_neighbour = any(token.single_word for token in flagged)
        self.uncertain = tuple(
            token.content
            for token in self._token_of.values()
            if token in flagged or (needs_neighbour and _WORD_CHARACTER.fullmatch(token.content[-1]))
        )
        """The tokens after which a text cannot be cut."""

    def cut(self, text: str) -> Iterator[tuple[str, AddedToken | None]]:
        """Yield each non-empty segment of a text, and the added token if it is one."""
        return ((text[start:end], token) for start, end, token in self.locate(text))

    def locate(self, text: str) -> Iterator[tuple[int, int, AddedToken | None]]:
        """Yield where each segment begins and ends, which can be within white space that the token before took."""
        done = position = 0
        if not self._has_flags:
            for segment, is_added in self.special.cut(text):
                position += len(segment)
                yield done, position, self._token_of[segment] if is_added else None
                done = position
            return
        while span := self.special.find(text, position):
            start, position = span
            token = self._token_of[text[start:position]]
            beside = (text[max(start - 1, 0) : start], text[position : position + 1])
            if token.single_word and any(map(_WORD_CHARACTER.fullmatch, beside)):
                continue
            if token.lstrip:
                start = min(start, max(done, _SPACES_BEFORE.match(text, 0, start).start()))  # type: ignore[union-attr]
            end = _SPACES.match(text, position).end() if token.rstrip else position  # type: ignore[union-attr]
            if done < start:
                yield done, start, None
            yield start, end, token
            done = end
        if done != len(text):
            yield done, len(text), None


# Split steps


def cutters(steps: Sequence[Step]) -> Iterator[Cutter]:
    for number, step in enumerate(steps):
        if isinstance(step, ByteLevel):
            is_last = number == len(steps) - 1  # then `PreTokenEncoder` maps the characters to bytes
            yield partial(_byte_level, step.prefix_space, resolve("gpt2") if step.split else None, not is_last)
        else:
            yield _cutter(*_matching(step))


def _matching(step: Split | Digits | Punctuation) -> tuple[str, str, bool]:
    """Return the expression that a step cuts at, its behavior, and whether it inverts the matches."""
    match step:
        case Split(expression, behavior, invert):
            return expression, behavior, invert
        case Digits(individual):
            return r"\p{N}" if individual else r"\p{N}+", "Isolated", False
        case Punctuation(behavior):
            return _PUNCTUATION, behavior, False


def _cutter(expression: str, behavior: str, invert: bool) -> Cutter:
    compiled = compile_expression(expression, regex.V1)
    if behavior == "Isolated" and not may_match_empty(expression):
        return partial(pre_tokenize, compiled=compiled)
    return partial(_cut, compiled, behavior, invert)


def _cut(compiled: regex.Pattern[str], behavior: str, invert: bool, text: str) -> Iterable[str]:
    return [text[start:end] for start, end in _ranges(compiled, behavior, invert, text)]


def _ranges(compiled: regex.Pattern[str], behavior: str, invert: bool, text: str) -> Iterator[tuple[int, int]]:
    """Yield where each piece begins and ends."""
    segments: list[tuple[int, int, bool]] = []
    end = 0
    for start, stop in _matches(compiled, text):
        if end < start:
            segments.append((end, start, invert))
        segments.append((start, stop, not invert))
        end = stop
    if end < len(text):
        segments.append((end, len(text), invert))
    return ((start, end) for start, end in _pieces(segments, behavior) if start < end)


def _matches(compiled: regex.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Yield matches as the Rust crate `onig` does: one that is empty and right after another does not count."""
    position, last = 0, -1
    while position <= len(text) and (match := compiled.search(text, position)):
        if match.start() == match.end() == last:
            position += 1
            continue
        yield match.span()
        position = last = match.end()


def _pieces(segments: list[tuple[int, int, bool]], behavior: str) -> list[tuple[int, int]]:
    if behavior == "Removed":
        return [(start, end) for start, end, is_match in segments if not is_match]
    if behavior == "Contiguous":
        groups = (list(group) for _, group in groupby(segments, key=itemgetter(2)))
        return [(group[0][0], group[-1][1]) for group in groups]
    if behavior == "Isolated":
        return [(start, end) for start, end, _ in segments]
    step = -1 if behavior == "MergedWithNext" else 1
    pieces: list[tuple[int, int]] = []
    was_match = True
    for start, end, is_match in segments[::step]:
        if is_match and not was_match:
            first, second = [pieces.pop(), (start, end)][::step]
            start, end = first[0], second[1]
        pieces.append((start, end))
        was_match = is_match
    return pieces[::step]


def _byte_level(prefix_space: bool, compiled: regex.Pattern[str] | None, is_mapped: bool, text: str) -> Iterable[str]:
    if prefix_space and not text.startswith(" "):
        text = f" {text}"
    pieces = [text] if compiled is None else pre_tokenize(text, compiled)
    return (spell(piece.encode("utf-8")) for piece in pieces) if is_mapped else pieces


# Encoding texts


def pre_token_encoder(pipeline: Pipeline, ids: Mapping[bytes, int], merges: Iterable[Merge]) -> PreTokenEncoder:
    """Return the encoder of pre-tokens; `ids` has the tokens of `merges`, and those that `lookup: whole` finds."""
    own = {token.content.encode("utf-8") for token in pipeline.added_tokens if token.id is None}
    whole = {token: index for token, index in ids.items() if token not in own} if pipeline.lookup == "whole" else None
    return PreTokenEncoder(ids, merges, whole=whole, is_mapped=not isinstance(pipeline.steps[-1], ByteLevel))


@dataclass(eq=False)
class PipelineEncoder(TextEncoder):
    """Encodes texts of a model with a pipeline. `compiled` is the pattern of its steps, or any if they have none."""

    pipeline: Pipeline

    def __post_init__(self) -> None:
        super().__post_init__()
        forms, steps = self.pipeline.normalizer, self.pipeline.steps
        allowed = [token for token in self.pipeline.added_tokens if token.content in self.policy.allowed.tokens]
        self._raw = AddedTokens(token for token in allowed if not token.normalized)
        self._normalized = AddedTokens((token for token in allowed if token.normalized), forms)
        self._cutters = tuple(cutters(steps))
        self._is_mapped = not isinstance(steps[-1], ByteLevel)
        late = [token.content for token in self.pipeline.added_tokens if token.normalized]
        has_pattern = pattern_of(steps) is not None
        # `SplitEncoder`, for patterns without fences, does not look up whole pre-tokens.
        suits_arrays = self.encoder.has_all_bytes and (self.pipeline.lookup == "pair" or has_fence(self.compiled))
        self._is_plain = has_pattern and suits_arrays and are_plain(allowed) and all(map(self._is_unchanged, late))
        # A flag looks across fences, and a late token can reach across one that only its normal form has.
        has_flags = any(token.lstrip or token.rstrip or token.single_word for token in allowed)
        late_forms = [normalize(content, forms) for content in late]
        self._has_fences = has_pattern and not has_flags and are_safe_from([*late, *late_forms])

    @property
    def cut_pattern(self) -> regex.Pattern[str]:
        # Other forms change characters beside fences, and a late token can be composed with what is before it.
        late = any(token.normalized for token in self.pipeline.added_tokens)
        is_safe = not self.pipeline.normalizer or (self.pipeline.normalizer == ("NFC",) and not late)
        return self.compiled if self._has_fences and is_safe else resolve("none")

    def stream(self, chunks: Iterable[str], name: str = "the text") -> Iterator[int]:
        compiled = self.compiled if self._has_fences else resolve("none")
        checked = self.policy.checked(chunks, name)
        texts = parts(checked, self._raw.special, compiled, self._raw.uncertain, self._is_unchanged)
        return chain.from_iterable(chain.from_iterable(map(self._parts, texts)))

    def _uses_arrays(self, texts: Sequence[str]) -> bool:
        return super()._uses_arrays(texts) and self._is_plain and all(map(self._is_unchanged, texts))

    def _is_unchanged(self, text: str) -> bool:
        return normalize(text, self.pipeline.normalizer) == text

    def _plain_parts(self, text: str) -> Iterator[Iterable[int]]:
        encode, ids = self.encoder.encode, self.special_ids
        for segment, token in self._raw.cut(text):
            if token:
                yield (ids[token.content],)
                continue
            for part, late_token in self._normalized.cut(normalize(segment, self.pipeline.normalizer)):
                if late_token:
                    yield (ids[late_token.content],)
                    continue
                yield chain.from_iterable(map(encode, self._split(part)))

    def _split(self, part: str) -> Iterable[str]:
        pieces: Iterable[str] = (part,)
        for cutter in self._cutters:
            pieces = chain.from_iterable(map(cutter, pieces))
        return pieces

    def spans(self, text: str, vocab: Mapping[int, bytes]) -> Iterator[tuple[int, int]]:
        """Yield the characters of `text` that each token comes from; for an added space alone, an empty span.

        That is where the token before begins, because the next one can come from the same character.
        """
        first = 0
        for origins in self._origins(text, vocab):
            known = [origin for origin in origins if origin]
            first = known[0][0] if known else first
            yield first, known[-1][1] if known else first

    def _origins(self, text: str, vocab: Mapping[int, bytes]) -> Iterator[Sequence[Origin]]:
        forms = self.pipeline.normalizer
        for start, end, token in self._raw.locate(text):
            if token:
                yield [(start, end)]
                continue
            part = normalize(text[start:end], forms)
            origins = list(origins_of(text[start:end], forms, start))
            for first, last, late_token in self._normalized.locate(part):
                own = origins[first:last]
                yield from [own] if late_token else self._origins_of_part(part[first:last], own, vocab)

    def _origins_of_part(
        self, part: str, origins: Sequence[Origin], vocab: Mapping[int, bytes]
    ) -> Iterator[Sequence[Origin]]:
        pieces: list[tuple[str, Sequence[Origin]]] = [(part, origins)]
        steps = self.pipeline.steps
        for number, (step, cutter) in enumerate(zip(steps, self._cutters, strict=True), start=1):
            is_mapped = self._is_mapped or number < len(steps)
            pieces = [one for piece, own in pieces for one in _traced(step, cutter, is_mapped, piece, own)]
        for piece, own in pieces:
            word = unspell(piece) if self._is_mapped else piece.encode("utf-8")
            kept = iter([one for byte, one in zip(word, own, strict=True) if self.encoder.byte_ids[byte] != NO_ID])
            for index in self.encoder.encode(piece):
                yield list(islice(kept, len(vocab[index])))


def _traced(
    step: Step, cutter: Cutter, is_mapped: bool, piece: str, origins: Sequence[Origin]
) -> Iterator[tuple[str, Sequence[Origin]]]:
    """Yield the pieces of a step with what their characters come from. After `ByteLevel`, it is what their bytes do."""
    if not isinstance(step, ByteLevel):
        expression, behavior, invert = _matching(step)
        for start, end in _ranges(compile_expression(expression, regex.V1), behavior, invert, piece):
            yield piece[start:end], origins[start:end]
        return
    of_bytes: list[Origin] = [one for char, one in zip(piece, origins, strict=True) for _ in char.encode("utf-8")]
    left = iter([None, *of_bytes] if step.prefix_space and not piece.startswith(" ") else of_bytes)
    for part in cutter(piece):
        size = len(part) if is_mapped else len(part.encode("utf-8"))
        yield part, list(islice(left, size))
