"""Wrong special tokens: the scan, the expression that it is written as, the segments, the ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from bpe_conformance.fixtures import PATTERNS, Merge
from bpe_conformance.reference import textbook

from .plain import Encoder

Segments = list[tuple[str, bool]]


def _longest_first(special: Iterable[str]) -> list[str]:
    return sorted(special, key=len, reverse=True)


class _Alternation(Encoder):
    """Cuts by one regular expression, as most tokenizers do; right as it stands."""

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
    """Joins the special tokens with `|` in the order of the list, where a prefix listed first hides the longer one."""

    clause = "SPECIAL-ORDER-1"
    fix = "Join them longest first: '|'.join(map(re.escape, sorted(special_tokens, key=len, reverse=True)))."

    def expression(self) -> str:
        return "|".join(map(re.escape, self.special))


class SpecialsShortestFirst(_Alternation):
    """Sorts the special tokens by length and forgets `reverse=True`, so that the shortest of several is taken."""

    clause = "SPECIAL-SCAN-1"
    fix = "Sort them longest first: sorted(special_tokens, key=len, reverse=True)."

    def expression(self) -> str:
        return "|".join(map(re.escape, sorted(self.special, key=len)))


class SpecialsUnescaped(_Alternation):
    """Joins the special tokens with `|` without `re.escape`, so that the `|` of `<|endoftext|>` is an alternation."""

    clause = "SPECIAL-LITERAL-1"
    fix = "Escape each: '|'.join(map(re.escape, ...))."

    def expression(self) -> str:
        return "|".join(_longest_first(self.special))


class OnlyBarsEscaped(_Alternation):
    """Escapes the `|` of special tokens and nothing else, since `<|endoftext|>` is the only one that was tried."""

    clause = "SPECIAL-LITERAL-1"
    fix = "Use re.escape(token) in place of token.replace('|', r'\\|')."

    def expression(self) -> str:
        return "|".join(token.replace("|", r"\|") for token in _longest_first(self.special))


class SpecialsInAnyCase(Encoder):
    """Matches special tokens with `re.IGNORECASE`, to find `<|EndOfText|>` too; its spelling is lost in decoding."""

    clause = "SPECIAL-EXACT-1"
    fix = "Compile the alternation without re.IGNORECASE."

    def cut(self, text: str) -> Segments:
        known = {token.lower(): token for token in self.special}
        expression = "|".join(map(re.escape, _longest_first(self.special)))
        parts = re.split(f"({expression})", text, flags=re.IGNORECASE) if known else [text]
        return [(known.get(part.lower(), part), part.lower() in known) for part in parts if part]


class SpecialsAsWholeWords(_Alternation):
    """Finds a special token only where no letter or digit touches it, as the option `single_word` does."""

    clause = "SPECIAL-EXACT-1"
    fix = r"Leave the word boundaries (\b, \w) out of the alternation."

    def expression(self) -> str:
        return rf"(?<!\w)(?:{super().expression()})(?!\w)"


class EmptyListSplitsEverywhere(_Alternation):
    """Splits by an alternation of no branches when there are no special tokens; it matches between all characters."""

    clause = "SPECIAL-NONE-1"
    fix = "Cut only if there is a special token: parts = re.split(...) if special_tokens else [text]."

    def cut(self, text: str) -> Segments:
        parts = re.split(f"({self.expression()})", text)
        return [(part, part in self.special) for part in parts if part]


class EmptySpecialSplitsEverywhere(_Alternation):
    """Takes an empty string into the alternation like any special token, where it matches between all characters."""

    clause = "SPECIAL-EMPTY-1"
    fix = "Refuse it at construction: if '' in special_tokens: raise ValueError."

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        super().__init__(vocab, merges, [token for token in special_tokens or () if token], pattern)
        self.special = list(dict.fromkeys(special_tokens or ()))


class SpecialsInPattern(Encoder):
    """Puts the special tokens in front of the pattern as further branches, so that one pass finds both."""

    clause = "SPECIAL-SCAN-1"
    fix = "Cut the text at the special tokens first, and run the pattern over each segment alone."

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        for piece in textbook.split(
            text, "|".join([*map(re.escape, _longest_first(filter(None, self.special))), self.pattern])
        ):
            ids += [self.special_id(piece)] if piece in self.special else self.encode_pre_token(piece)
        return ids


# The scan


class SpecialsNotCut(Encoder):
    """Encodes special tokens like any text, as a tokenizer does that learned of them in training only."""

    clause = "SPECIAL-SCAN-1"
    fix = "Cut the text at the special tokens before it is split, and emit one id for each."

    def cut(self, text: str) -> Segments:
        return [(text, False)] if text else []


class SpecialsAmongPreTokens(Encoder):
    """Splits first and then asks of each pre-token whether it is a special token, which `<|endoftext|>` never is."""

    clause = "SPECIAL-SCAN-1"
    fix = "Cut the text at the special tokens before it is split into pre-tokens."

    def cut(self, text: str) -> Segments:
        return [(pre_token, pre_token in self.special) for pre_token in self.split(text)]


class SpecialsInsidePreTokens(Encoder):
    """Splits first and then cuts each pre-token at its special tokens; one across two pre-tokens is never found."""

    clause = "SPECIAL-SCAN-1"
    fix = "Cut the text at the special tokens before it is split into pre-tokens."

    def cut(self, text: str) -> Segments:
        return [segment for pre_token in self.split(text) for segment in textbook.cut_special(pre_token, self.special)]


class SpecialsOneByOne(Encoder):
    """Splits the text by one special token after the other, longest first, so that a long one hides an earlier one."""

    clause = "SPECIAL-SCAN-1"
    fix = "Scan once from left to right, and at each place try the special tokens longest first."

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
    fix = "Leave pieces alone that were found as special tokens, or find all in one scan."

    def cut(self, text: str) -> Segments:
        parts = [text]
        for token in filter(None, _longest_first(self.special)):
            parts = [one for part in parts for one in re.split(f"({re.escape(token)})", part)]
        return [(part, part in self.special) for part in parts if part]


class SpecialsFoundOnce(Encoder):
    """Cuts at the first special token with `partition` and encodes the rest as text, since a prompt holds one."""

    clause = "SPECIAL-SCAN-1"
    fix = "Go on scanning behind each special token up to the end of the text."

    def cut(self, text: str) -> Segments:
        segments = textbook.cut_special(text, self.special)
        found = next((place for place, (_, special) in enumerate(segments) if special), len(segments)) + 1
        rest = "".join(segment for segment, _ in segments[found:])
        return [*segments[:found], (rest, False)] if rest else segments[:found]


class ScanWithoutBackingUp(Encoder):
    """Goes on behind the characters that it compared when a match fails, so that `<<|e|>` hides `<|e|>`."""

    clause = "SPECIAL-SCAN-1"
    fix = "After a failed match go on at the next character: here += 1."

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
    """Walks a trie as far as it goes and gives up inside a longer token, though it came past a shorter one."""

    clause = "SPECIAL-SCAN-1"
    fix = "Remember the last complete token on the walk, and take it when the walk ends."

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
    """Cuts special tokens out in a path of its own for GPT-2's pattern; the general path for others forgets them."""

    clause = "SPECIAL-SCAN-1"
    fix = "Cut before the paths part: split by special tokens first, whatever the pattern."

    def cut(self, text: str) -> Segments:
        return super().cut(text) if self.pattern == PATTERNS["gpt2"] else [(text, False)] * bool(text)


# Whom it takes for special


class EntriesThatLookSpecial(Encoder):
    """Takes every vocabulary entry of the form `<|...|>` for special, so that a loaded model works without a list."""

    clause = "SPECIAL-OFF-1"
    fix = "Match only the special tokens that the caller lists."

    def cut(self, text: str) -> Segments:
        looks = [token.decode("utf-8") for token in self.ids if token.startswith(b"<|") and token.endswith(b"|>")]
        return textbook.cut_special(text, [*self.special, *looks])


class EntriesWithoutMerge(Encoder):
    """Takes every vocabulary entry that no merge makes for an added token, and matches it in the text."""

    clause = "SPECIAL-OFF-1"
    fix = "Match only the special tokens that the caller lists."

    def cut(self, text: str) -> Segments:
        made = {left + right for left, right in self.merges}
        added = [token.decode("utf-8", "ignore") for token in self.ids if len(token) > 1 and token not in made]
        return textbook.cut_special(text, [*self.special, *added])


# The segments


class SegmentsStripped(Encoder):
    """Strips the segments between special tokens, since documents are separated by line ends as well."""

    clause = "SPECIAL-SEGMENT-1"
    fix = "Encode each segment as it is: no strip(), lstrip() or rstrip()."

    def cut(self, text: str) -> Segments:
        segments = super().cut(text)
        if len(segments) > 1:
            segments = [(segment if special else segment.strip(), special) for segment, special in segments]
        return [(segment, special) for segment, special in segments if segment]


class SpaceBeforeSpecialSwallowed(Encoder):
    """Takes the white space before a special token as part of it, as the option `lstrip` does for `<mask>`."""

    clause = "SPECIAL-EXACT-1"
    fix = "Match the token alone, without \\s* before it."

    def cut(self, text: str) -> Segments:
        segments = super().cut(text)
        stripped = [
            (segment if special or place + 1 == len(segments) else segment.rstrip(), special)
            for place, (segment, special) in enumerate(segments)
        ]
        return [(segment, special) for segment, special in stripped if segment]


class SpaceBehindSpecialAdded(Encoder):
    """Sets a space before each segment behind a special token, as a prefix space is set at the start of a text."""

    clause = "SPECIAL-SEGMENT-1"
    fix = "Encode each segment as it is, without a prefix space."

    def cut(self, text: str) -> Segments:
        return [
            (segment if special or not place or segment[0] == " " else " " + segment, special)
            for place, (segment, special) in enumerate(super().cut(text))
        ]


class SplitSeesSpecial(Encoder):
    """Runs the pattern over the whole text and cuts its matches, so that white space looks ahead at `<|e|>`."""

    clause = "SPECIAL-SEGMENT-1"
    fix = "Run the pattern over each segment alone: it ends where the segment ends."

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        segments = self.cut(text)
        for place, (segment, special) in enumerate(segments):
            behind = segments[place + 1][0] if place + 1 < len(segments) else ""
            left = len(segment)
            for piece in [] if special else self.split(segment + behind):
                ids += self.encode_pre_token(piece[:left]) if left > 0 else []
                left -= len(piece)
            ids += [self.special_id(segment)] if special else []
        return ids


# The ids


class SpecialsMergedLikeText(Encoder):
    """Cuts special tokens out of the text and then merges their bytes like a pre-token instead of emitting one id."""

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
    """Numbers special tokens by their place in the list, from 256 + len(merges) on, and does not look in the vocab."""

    clause = "SPECIAL-ID-1"
    fix = "Look the id up: id = token_to_id[token.encode('utf-8')]."

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
    fix = "Count on from the highest id: max(vocab) + 1."

    def new_ids(self, listed: list[bytes]) -> list[tuple[bytes, int]]:
        absent = [token for token in dict.fromkeys(listed) if token not in self.ids]
        return [(token, len(self.vocab) + place) for place, token in enumerate(absent)]


class AbsentSpecialGetsLowestFreeId(_Absent):
    """Gives a special token without an entry the lowest free id, which fills gaps that were left on purpose."""

    clause = "SPECIAL-ABSENT-1"
    fix = "Count on from the highest id: max(vocab) + 1."

    def new_ids(self, listed: list[bytes]) -> list[tuple[bytes, int]]:
        absent = [token for token in dict.fromkeys(listed) if token not in self.ids]
        free = [index for index in range(len(self.vocab) + len(absent)) if index not in self.vocab]
        return list(zip(absent, free, strict=False))


class RepeatedSpecialUsesUpId(_Absent):
    """Counts an id up for each special token in the list, also for a repeat and for one that has an entry."""

    clause = "SPECIAL-ABSENT-1"
    fix = "Number only those that are new: for token in dict.fromkeys(special_tokens): if token not in known: ..."

    def new_ids(self, listed: list[bytes]) -> list[tuple[bytes, int]]:
        first = max(self.vocab) + 1
        return [(token, first + place) for place, token in enumerate(listed) if token not in self.ids]


class AbsentSpecialDropped(_Absent):
    """Emits the id of a special token if it finds one, and nothing if not, as `token_to_id.get` suggests."""

    clause = "SPECIAL-ABSENT-2"
    fix = "Add the token to the vocabulary at construction, or raise there."

    def new_ids(self, listed: list[bytes]) -> list[tuple[bytes, int]]:
        return []

    def cut(self, text: str) -> Segments:
        return [(one, special) for one, special in super().cut(text) if not special or one.encode("utf-8") in self.ids]


class AbsentSpecialIsText(_Absent):
    """Ignores a special token that has no entry in the vocabulary, so that its text is split and merged."""

    clause = "SPECIAL-ABSENT-2"
    fix = "Add the token to the vocabulary at construction, or raise there."

    def new_ids(self, listed: list[bytes]) -> list[tuple[bytes, int]]:
        self.special = [token for token in self.special if token.encode("utf-8") in self.ids]
        return []
