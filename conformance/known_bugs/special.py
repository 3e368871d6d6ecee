"""Incorrect special tokens: the regular expression, the scan, what counts as special, the segments, the ids."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from bpe_conformance.fixtures import PATTERNS, Merge
from bpe_conformance.reference import textbook

from .correct import Encoder

Segments = list[tuple[str, bool]]


def _longest_first(special: Iterable[str]) -> list[str]:
    return sorted(special, key=len, reverse=True)


class _Alternation(Encoder):
    """Cuts by one regular expression, as most tokenizers do; correct by itself."""

    flags = 0

    def cut(self, text: str) -> Segments:
        if not self.special:
            return [(text, False)] if text else []
        parts = re.split(f"({self.expression()})", text, flags=self.flags)
        return [(part, part in self.special) for part in parts if part]

    def expression(self) -> str:
        return "|".join(map(re.escape, _longest_first(self.special)))


# The expression


class SpecialsInListOrder(_Alternation):
    """Joins the special tokens with `|` in list order, so that a prefix listed first hides the longer one."""

    clause = "SPECIAL-ORDER-1"
    fix = "Join them longest first: '|'.join(map(re.escape, sorted(special_tokens, key=len, reverse=True)))."
    evidence = "minbpe, uni-tokenizer 0.1.7, kitoken 0.11.1, ffbpe 0.1.10, js-tiktoken 1.0.21"

    def expression(self) -> str:
        return "|".join(map(re.escape, self.special))


class SpecialsShortestFirst(_Alternation):
    """Sorts the special tokens by length and forgets `reverse=True`, so that the shortest match wins."""

    clause = "SPECIAL-SCAN-1"
    fix = "Sort them longest first: sorted(special_tokens, key=len, reverse=True)."

    def expression(self) -> str:
        return "|".join(map(re.escape, sorted(self.special, key=len)))


class SpecialsUnescaped(_Alternation):
    """Joins the special tokens with `|` without `re.escape`, so that <|endoftext|> becomes an alternation."""

    clause = "SPECIAL-LITERAL-1"
    fix = "Escape each: '|'.join(map(re.escape, ...))."

    def expression(self) -> str:
        return "|".join(_longest_first(self.special))


class OnlyBarsEscaped(_Alternation):
    """Escapes only the `|` of special tokens, because <|endoftext|> is the only one its author tried."""

    clause = "SPECIAL-LITERAL-1"
    fix = r"Use re.escape(token) instead of token.replace('|', r'\|')."

    def expression(self) -> str:
        return "|".join(token.replace("|", r"\|") for token in _longest_first(self.special))


class SpecialsInAnyCase(Encoder):
    """Matches special tokens with `re.IGNORECASE`, to find <|EndOfText|> too, whose spelling is then lost."""

    clause = "SPECIAL-EXACT-1"
    fix = "Compile the alternation without re.IGNORECASE."

    def cut(self, text: str) -> Segments:
        known = {token.lower(): token for token in self.special}
        expression = "|".join(map(re.escape, _longest_first(self.special)))
        parts = re.split(f"({expression})", text, flags=re.IGNORECASE) if known else [text]
        return [(known.get(part.lower(), part), part.lower() in known) for part in parts if part]


class SpecialsAsWholeWords(_Alternation):
    """Finds a special token only if no letter or digit touches it, as the option `single_word` does."""

    clause = "SPECIAL-EXACT-1"
    fix = r"Remove the word boundaries (\b, \w) from the alternation."
    evidence = "AddedToken(single_word=True) in Hugging Face tokenizers"

    def expression(self) -> str:
        return rf"(?<!\w)(?:{super().expression()})(?!\w)"


class EmptyListSplitsEverywhere(_Alternation):
    """Splits by an alternation without branches if there are no special tokens; it matches everywhere."""

    clause = "SPECIAL-NONE-1"
    fix = "Split only if there is a special token: parts = re.split(...) if special_tokens else [text]."

    def cut(self, text: str) -> Segments:
        parts = re.split(f"({self.expression()})", text)
        return [(part, part in self.special) for part in parts if part]


class EmptySpecialSplitsEverywhere(_Alternation):
    """Puts an empty special token into the alternation, where it matches between all characters."""

    clause = "SPECIAL-EMPTY-1"
    fix = "Refuse it in the constructor: if '' in special_tokens: raise ValueError."
    evidence = "minibperust 0.1.0, tinybpe 1.0.0, turbobpe 0.1.2"

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        super().__init__(vocab, merges, [token for token in special_tokens or () if token], pattern)
        self.special = list(dict.fromkeys(special_tokens or ()))


class EmptySpecialFoundEverywhere(EmptySpecialSplitsEverywhere):
    """Finds an empty special token between all characters, and emits its id each time."""

    clause = "SPECIAL-EMPTY-1"
    fix = "Refuse it in the constructor: if '' in special_tokens: raise ValueError."
    evidence = "kitoken 0.11.1, splintr-rs 0.22.0"

    def special_id(self, token: str) -> int:
        return self.ids.get(token.encode("utf-8"), len(self.vocab))

    def cut(self, text: str) -> Segments:
        if "" not in self.special:
            return super().cut(text)
        return [segment for part in super().cut(text) for segment in (part, ("", True))]


class SpecialsInPattern(Encoder):
    """Puts the special tokens in front of the pattern as further branches, so that one pass finds both."""

    clause = "SPECIAL-SCAN-1"
    fix = "Cut the text at the special tokens first, and apply the pattern to each segment by itself."

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        for piece in textbook.split(
            text, "|".join([*map(re.escape, _longest_first(filter(None, self.special))), self.pattern])
        ):
            ids += [self.special_id(piece)] if piece in self.special else self.encode_pre_token(piece)
        return ids


# The scan


class SpecialsNotCut(Encoder):
    """Encodes special tokens like any text, because only training or decoding knows them."""

    clause = "SPECIAL-SCAN-1"
    fix = "Cut the text at the special tokens before you split it, and emit one id for each."
    evidence = "lexibyte 0.3.1; keras-team/keras-hub#703"

    def cut(self, text: str) -> Segments:
        return [(text, False)] if text else []


class SpecialsAmongPreTokens(Encoder):
    """Splits first and then compares pre-tokens with the special tokens; <|endoftext|> is never one."""

    clause = "SPECIAL-SCAN-1"
    fix = "Cut the text at the special tokens before you split it into pre-tokens."
    evidence = "bpetokenizer 1.2.1"

    def cut(self, text: str) -> Segments:
        return [(pre_token, pre_token in self.special) for pre_token in self.split(text)]


class SpecialsInsidePreTokens(Encoder):
    """Splits first and then cuts each pre-token, and misses a special token that spans two pre-tokens."""

    clause = "SPECIAL-SCAN-1"
    fix = "Cut the text at the special tokens before you split it into pre-tokens."

    def cut(self, text: str) -> Segments:
        return [segment for pre_token in self.split(text) for segment in textbook.cut_special(pre_token, self.special)]


class SpecialsOneByOne(Encoder):
    """Splits by one special token after the other, longest first, so that a long one hides an earlier one."""

    clause = "SPECIAL-SCAN-1"
    fix = "Scan once from left to right, and at each position try the special tokens longest first."

    def cut(self, text: str) -> Segments:
        segments: Segments = [(text, False)] if text else []
        for token in filter(None, _longest_first(self.special)):
            segments = [
                one
                for segment, special in segments
                for one in ([(segment, True)] if special else textbook.cut_special(segment, [token]))
            ]
        return segments


class SpecialsRescanned(Encoder):
    """Splits by one special token after the other and forgets which pieces are special tokens already."""

    clause = "SPECIAL-SCAN-1"
    fix = "Leave pieces alone that are special tokens already, or find all of them in one scan."

    def cut(self, text: str) -> Segments:
        parts = [text]
        for token in filter(None, _longest_first(self.special)):
            parts = [one for part in parts for one in re.split(f"({re.escape(token)})", part)]
        return [(part, part in self.special) for part in parts if part]


class SpecialsFoundOnce(Encoder):
    """Cuts at the first special token with `partition` and encodes the rest as text."""

    clause = "SPECIAL-SCAN-1"
    fix = "Continue to scan after each special token, up to the end of the text."
    evidence = "npm:gpt-tokenizer@4.0.0"

    def cut(self, text: str) -> Segments:
        segments = textbook.cut_special(text, self.special)
        found = next((place for place, (_, special) in enumerate(segments) if special), len(segments)) + 1
        rest = "".join(segment for segment, _ in segments[found:])
        return [*segments[:found], (rest, False)] if rest else segments[:found]


class SpecialsFoundAtStart(Encoder):
    """Finds a special token at the start of the text only, as `re.match` and a sticky JavaScript regex do."""

    clause = "SPECIAL-SCAN-1"
    fix = "Search the whole text: re.finditer or re.split, or the flag g instead of y."
    evidence = "npm:gpt-tokenizer@4.0.0"

    def cut(self, text: str) -> Segments:
        first = next((token for token in _longest_first(filter(None, self.special)) if text.startswith(token)), "")
        segments = [(first, True), (text[len(first) :], False)]
        return [segment for segment in segments if segment[0]]


class ScanWithoutBackingUp(Encoder):
    """Continues after the characters it compared when a match fails, so that `<<|e|>` hides `<|e|>`."""

    clause = "SPECIAL-SCAN-1"
    fix = "After a failed match continue at the next character: i += 1."
    evidence = "tokie 0.1.4, onnxruntime-extensions 0.15.2"

    def cut(self, text: str) -> Segments:
        starts = {token[:length] for token in self.special for length in range(1, len(token) + 1)}
        segments: Segments = []
        here = start = 0
        while here < len(text):
            end = here
            while end < len(text) and text[here : end + 1] in starts:
                end += 1
            if text[here:end] in self.special:
                segments += [(text[start:here], False), (text[here:end], True)]
                start = end
            here = max(end, here + 1)
        return [segment for segment in [*segments, (text[start:], False)] if segment[0]]


class TrieWithoutFallback(Encoder):
    """Walks a trie as far as it goes and gives up inside a longer token, though it passed a shorter one."""

    clause = "SPECIAL-SCAN-1"
    fix = "Remember the last complete token on the walk, and use it when the walk ends."
    evidence = "onnxruntime-extensions 0.15.2 (trietree.hpp)"

    def cut(self, text: str) -> Segments:
        starts = {token[:length] for token in self.special for length in range(1, len(token) + 1)}
        segments: Segments = []
        here = start = 0
        while here < len(text):
            end = here
            while end < len(text) and text[here : end + 1] in starts:
                end += 1
            if text[here:end] in self.special:
                segments += [(text[start:here], False), (text[here:end], True)]
                here = start = end
            else:
                here += 1
        return [segment for segment in [*segments, (text[start:], False)] if segment[0]]


class SpecialsCutUnderOnePattern(Encoder):
    """Cuts special tokens out in its fast path for GPT-2's pattern, and not in the path for other patterns."""

    clause = "SPECIAL-SCAN-1"
    fix = "Cut at the special tokens before the paths diverge, whatever the pattern."

    def cut(self, text: str) -> Segments:
        return super().cut(text) if self.pattern == PATTERNS["gpt2"] else [(text, False)] * bool(text)


# What counts as special


class EntriesThatLookSpecial(Encoder):
    """Treats every vocabulary entry of the form <|...|> as special, so that a model works without a list."""

    clause = "SPECIAL-OFF-1"
    fix = "Match only the special tokens that the caller lists."
    evidence = "one step from splintr-rs 0.22.0, which matches 54 tokens of its own"

    def cut(self, text: str) -> Segments:
        looks = [token.decode("utf-8") for token in self.ids if token.startswith(b"<|") and token.endswith(b"|>")]
        return textbook.cut_special(text, [*self.special, *looks])


class EntriesWithoutMerge(Encoder):
    """Treats every vocabulary entry that no merge creates as an added token, and matches it in the text."""

    clause = "SPECIAL-OFF-1"
    fix = "Match only the special tokens that the caller lists."

    def cut(self, text: str) -> Segments:
        made = {left + right for left, right in self.merges}
        added = [token.decode("utf-8", "ignore") for token in self.ids if len(token) > 1 and token not in made]
        return textbook.cut_special(text, [*self.special, *added])


class ScansNormalised(Encoder):
    """Matches special tokens in NFKC-normalised text, so that full-width letters do not hide one."""

    clause = "SPECIAL-EXACT-1"
    fix = "Leave the text unchanged: only the exact spelling is a special token."
    evidence = "AddedToken(normalized=True) in Hugging Face tokenizers"

    def prepare(self, text: str) -> str:
        seen = unicodedata.normalize("NFKC", text)
        return seen if any(token in seen and token not in text for token in self.special) else text


class EndoftextAlwaysSpecial(Encoder):
    """Treats <|endoftext|> as special whenever the vocabulary contains it, because a constant names it."""

    clause = "SPECIAL-OFF-1"
    fix = "Match only the special tokens that the caller lists."

    def cut(self, text: str) -> Segments:
        constant = ["<|endoftext|>"] if b"<|endoftext|>" in self.ids else []
        return textbook.cut_special(text, [*self.special, *constant])


# The segments


class SegmentsStripped(Encoder):
    """Strips the segments between special tokens, because line breaks separate documents too."""

    clause = "SPECIAL-SEGMENT-1"
    fix = "Encode each segment unchanged: no strip(), lstrip() or rstrip()."

    def cut(self, text: str) -> Segments:
        segments = super().cut(text)
        if len(segments) > 1:
            segments = [(segment if special else segment.strip(), special) for segment, special in segments]
        return [(segment, special) for segment, special in segments if segment]


class SpaceBeforeSpecialSwallowed(Encoder):
    """Treats the white space before a special token as part of it, as `lstrip` does for <mask>."""

    clause = "SPECIAL-EXACT-1"
    fix = r"Match the token by itself, without \s* before it."
    evidence = "AddedToken(lstrip=True), used for RoBERTa's <mask>"

    def cut(self, text: str) -> Segments:
        segments = super().cut(text)
        stripped = [
            (segment if special or place + 1 == len(segments) else segment.rstrip(), special)
            for place, (segment, special) in enumerate(segments)
        ]
        return [(segment, special) for segment, special in stripped if segment]


class SpaceBehindSpecialAdded(Encoder):
    """Puts a space before each segment after a special token, as some do at the start of a text."""

    clause = "SPECIAL-SEGMENT-1"
    fix = "Encode each segment unchanged, without a prefix space."
    evidence = "huggingface/transformers#25073 (legacy behaviour of Llama tokenizers)"

    def cut(self, text: str) -> Segments:
        return [
            (segment if special or not place or segment[0] == " " else " " + segment, special)
            for place, (segment, special) in enumerate(super().cut(text))
        ]


class SplitSeesSpecial(Encoder):
    """Applies the pattern to the whole text and cuts its matches, so that white space sees the special token."""

    clause = "SPECIAL-SEGMENT-1"
    fix = "Apply the pattern to each segment by itself: it ends where the segment ends."

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        segments = self.cut(text)
        for place, (segment, special) in enumerate(segments):
            following = segments[place + 1][0] if place + 1 < len(segments) else ""
            left = len(segment)
            for piece in [] if special else self.split(segment + following):
                ids += self.encode_pre_token(piece[:left]) if left > 0 else []
                left -= len(piece)
            ids += [self.special_id(segment)] if special else []
        return ids


# The ids


class SpecialsMergedLikeText(Encoder):
    """Cuts special tokens out of the text and then merges their bytes instead of emitting one id."""

    clause = "SPECIAL-SCAN-1"
    fix = "Emit the id of the entry: ids.append(token_to_id[token.encode('utf-8')])."

    def encode(self, text: str) -> list[int]:
        segments = self.cut(text)
        return [
            index
            for segment, special in segments
            for index in (self.encode_pre_token(segment) if special else self.encode_segment(segment))
        ]


class SpecialIdsBehindMerges(Encoder):
    """Numbers special tokens by list position from 256 + len(merges) on, and ignores their entries."""

    clause = "SPECIAL-ID-1"
    fix = "Look the id up: token_to_id[token.encode('utf-8')]."
    evidence = "one step from toktokenizer 0.2.0, which numbers them from 128"

    def special_id(self, token: str) -> int:
        return 256 + len(self.merges) + self.special.index(token)


class _Absent(Encoder):
    """Gives ids to the special tokens without an entry by `new_ids`, without looking whether they are in use."""

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        listed = [token.encode("utf-8") for token in special_tokens or ()]
        if b"" in listed:
            raise ValueError("a special token is empty")
        super().__init__(vocab, merges, None, pattern)
        self.special = list(dict.fromkeys(special_tokens or ()))
        for token, index in self.new_ids(listed):
            self.vocab[index] = token
            self.ids[token] = index

    def new_ids(self, listed: list[bytes]) -> list[tuple[bytes, int]]:
        raise NotImplementedError


class AbsentSpecialGetsLength(_Absent):
    """Gives a special token without an entry the id len(vocab), which is in use if the ids have a gap."""

    clause = "SPECIAL-ABSENT-2"
    fix = "Continue from the highest id: max(vocab) + 1."
    evidence = "Hugging Face tokenizers 0.23.3, transformers 4.57.6"

    def new_ids(self, listed: list[bytes]) -> list[tuple[bytes, int]]:
        absent = [token for token in dict.fromkeys(listed) if token not in self.ids]
        return [(token, len(self.vocab) + place) for place, token in enumerate(absent)]


class AbsentSpecialGetsLowestFreeId(_Absent):
    """Gives a special token without an entry the lowest free id, which may be reserved."""

    clause = "SPECIAL-ABSENT-1"
    fix = "Continue from the highest id: max(vocab) + 1."

    def new_ids(self, listed: list[bytes]) -> list[tuple[bytes, int]]:
        absent = [token for token in dict.fromkeys(listed) if token not in self.ids]
        free = [index for index in range(len(self.vocab) + len(absent)) if index not in self.vocab]
        return list(zip(absent, free, strict=False))


class RepeatedSpecialUsesUpId(_Absent):
    """Increments the next id for each special token in the list, also for repeats and known ones."""

    clause = "SPECIAL-ABSENT-1"
    fix = "Number only the new ones: for token in dict.fromkeys(special_tokens): if token not in known: ..."

    def new_ids(self, listed: list[bytes]) -> list[tuple[bytes, int]]:
        first = max(self.vocab) + 1
        return [(token, first + place) for place, token in enumerate(listed) if token not in self.ids]


class AbsentSpecialDropped(_Absent):
    """Emits the id of a special token if it finds one, and nothing if not, as `token_to_id.get` suggests."""

    clause = "SPECIAL-ABSENT-2"
    fix = "Add the token to the vocabulary in the constructor, or raise an error there."
    evidence = "7 of 10 CS336 encoders that were tried fail on a special token without an entry"

    def new_ids(self, listed: list[bytes]) -> list[tuple[bytes, int]]:
        return []

    def cut(self, text: str) -> Segments:
        return [(one, special) for one, special in super().cut(text) if not special or one.encode("utf-8") in self.ids]


class AbsentSpecialIsText(_Absent):
    """Ignores a special token that has no entry in the vocabulary, and splits and merges its text."""

    clause = "SPECIAL-ABSENT-2"
    fix = "Add the token to the vocabulary in the constructor, or raise an error there."

    def new_ids(self, listed: list[bytes]) -> list[tuple[bytes, int]]:
        self.special = [token for token in self.special if token.encode("utf-8") in self.ids]
        return []
