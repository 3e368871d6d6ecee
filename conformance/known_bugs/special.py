"""Incorrect special tokens: the regular expression, the scan, what counts as special, the segments, the ids."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Segments

from .bases import NAMES, BaseEncoder, add_variants, like


def _longest_first(special: Iterable[str]) -> list[str]:
    return sorted(special, key=len, reverse=True)


class _Alternation(BaseEncoder):
    """Cuts by one regular expression, as most tokenizers do. It is correct."""

    def cut(self, text: str) -> Segments:
        if not self.special:
            return [(text, False)] if text else []
        parts = re.split(f"({self.expression()})", text)
        return [(part, part in self.special) for part in parts if part]

    def expression(self) -> str:
        return "|".join(map(re.escape, _longest_first(self.special)))


# The expression


class SpecialsInListOrder(_Alternation):
    def expression(self) -> str:
        return "|".join(map(re.escape, self.special))


def cut_at_first_end(text: str, tokens: Collection[str]) -> Segments:
    """Cut at the token that ends first, or the longest of those, as a search does that reports a match at its end."""
    parts: Segments = []
    while found := [(at + len(token), at) for token in tokens if token and (at := text.find(token)) >= 0]:
        end, start = min(found)
        parts += [(part, special) for part, special in ((text[:start], False), (text[start:end], True)) if part]
        text = text[end:]
    return [*parts, (text, False)] if text else parts


class SpecialsByEnd(BaseEncoder):
    def cut(self, text: str) -> Segments:
        return cut_at_first_end(text, self.special)


class SpecialsInAnyCase(BaseEncoder):
    def cut(self, text: str) -> Segments:
        known = {token.lower(): token for token in self.special}
        expression = "|".join(map(re.escape, _longest_first(self.special)))
        parts = re.split(f"({expression})", text, flags=re.IGNORECASE) if known else [text]
        return [(known.get(part.lower(), part), part.lower() in known) for part in parts if part]


class FirstSpecialSkipped(_Alternation):
    def cut(self, text: str) -> Segments:
        found = re.search(self.expression(), text) if self.special else None
        if found is None:
            return super().cut(text)
        begin, rest = text[: found.end()], super().cut(text[found.end() :])
        if rest and not rest[0][1]:
            begin += rest.pop(0)[0]
        return [(begin, False), *rest]


class EmptyListSplitsEverywhere(_Alternation):
    def cut(self, text: str) -> Segments:
        parts = re.split(f"({self.expression()})", text)
        return [(part, part in self.special) for part in parts if part]


class EmptySpecialSplitsEverywhere(_Alternation):
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, *more: Any, **settings: Any) -> None:
        super().__init__(vocab, merges, [token for token in special_tokens or () if token], *more, **settings)
        if special_tokens:
            self.special = list(dict.fromkeys(special_tokens))


class EmptySpecialFoundEverywhere(EmptySpecialSplitsEverywhere):
    def special_id(self, token: str) -> int:
        return self.ids.get(token.encode("utf-8"), len(self.vocab))

    def cut(self, text: str) -> Segments:
        if "" not in self.special:
            return super().cut(text)
        return [segment for part in super().cut(text) for segment in (part, ("", True))]


class SpecialsStripped(BaseEncoder):
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, *more: Any, **settings: Any) -> None:
        stripped = filter(None, map(str.strip, special_tokens or ()))
        super().__init__(vocab, merges, list(stripped), *more, **settings)


class SpecialsInPattern(BaseEncoder):
    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        for piece in textbook.split(
            text, "|".join([*map(re.escape, _longest_first(filter(None, self.special))), self.pattern])
        ):
            ids += [self.special_id(piece)] if piece in self.special else self.encode_pre_token(piece)
        return ids


# The scan


class SpecialsOneByOne(BaseEncoder):
    def ordered(self) -> list[str]:
        return _longest_first(self.special)

    def cut(self, text: str) -> Segments:
        segments: Segments = [(text, False)] if text else []
        for token in filter(None, self.ordered()):
            segments = [
                part
                for segment, special in segments
                for part in ([(segment, True)] if special else textbook.cut_special(segment, [token]))
            ]
        return segments


class SpecialsInTurn(SpecialsOneByOne):
    def ordered(self) -> list[str]:
        return self.special


class SpecialsRescanned(BaseEncoder):
    def cut(self, text: str) -> Segments:
        parts = [text]
        for token in filter(None, _longest_first(self.special)):
            parts = [piece for part in parts for piece in re.split(f"({re.escape(token)})", part)]
        return [(part, part in self.special) for part in parts if part]


class SpecialsFoundOnce(BaseEncoder):
    def cut(self, text: str) -> Segments:
        segments = textbook.cut_special(text, self.special)
        end = next((index for index, (_, special) in enumerate(segments) if special), len(segments)) + 1
        rest = "".join(segment for segment, _ in segments[end:])
        return [*segments[:end], (rest, False)] if rest else segments[:end]


class SpecialsFoundAtStart(BaseEncoder):
    def cut(self, text: str) -> Segments:
        first = next((token for token in _longest_first(filter(None, self.special)) if text.startswith(token)), "")
        segments = [(first, True), (text[len(first) :], False)]
        return [segment for segment in segments if segment[0]]


class TrieWithoutFallback(BaseEncoder):
    def after_failure(self, here: int, end: int) -> int:
        return here + 1

    def cut(self, text: str) -> Segments:
        starts = {token[:length] for token in self.special for length in range(1, len(token) + 1)}
        segments: Segments = []
        here = start = 0
        while here < len(text):
            end = here
            while end < len(text) and text[here : end + 1] in starts:
                end += 1
            token = self.token_at(text, here, end)
            if token in self.special:
                segments += [(text[start:here], False), (token, True)]
                here = start = here + len(token)
            else:
                here = self.after_failure(here, end)
        return [segment for segment in [*segments, (text[start:], False)] if segment[0]]

    def token_at(self, text: str, here: int, end: int) -> str:
        return text[here:end]


class ScanResumesAtMismatch(TrieWithoutFallback):
    def after_failure(self, here: int, end: int) -> int:
        return max(end, here + 1)

    def token_at(self, text: str, here: int, end: int) -> str:
        return next((token for token in _longest_first(self.special) if text.startswith(token, here)), "")

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from like(self, BaseEncoder).encode_iterable(chunks)


class OutputsNotInherited(BaseEncoder):
    def cut(self, text: str) -> Segments:
        starts = {token[:length] for token in self.special for length in range(1, len(token) + 1)}
        found: dict[int, int] = {}
        read = ""
        for end, char in enumerate(text, 1):
            read += char
            while read and read not in starts:
                read = read[1:]
            if read in self.special:  # but not whether a token ends `read`
                found[end - len(read)] = end
        segments: Segments = []
        at = 0
        for start, end in sorted(found.items()):
            if start >= at:
                segments += [(text[at:start], False), (text[start:end], True)]
                at = end
        return [segment for segment in [*segments, (text[at:], False)] if segment[0]]


class FirstCharactersInSixteenBits(BaseEncoder):
    def cut(self, text: str) -> Segments:
        firsts = {ord(character) & 0xFFFF for token in self.special for character in token[:1]}
        return textbook.cut_special(text, self.special if firsts.intersection(map(ord, text)) else [])


# What counts as special


def _also(more: Callable[[BaseEncoder], Iterable[bytes]]) -> Callable[[BaseEncoder, str], Segments]:
    """Return a step `cut` that finds more tokens."""

    def cut(self: BaseEncoder, text: str) -> Segments:
        found = [token.decode("utf-8", "ignore") for token in more(self) if token in self.ids]
        return textbook.cut_special(text, [*self.special, *found])

    return cut


class ScansNormalised(BaseEncoder):
    def encode(self, text: str) -> list[int]:
        seen = unicodedata.normalize("NFKC", text)
        return super().encode(seen if any(token in seen and token not in text for token in self.special) else text)


class EndoftextByDefault(BaseEncoder):
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, *more: Any, **settings: Any) -> None:
        super().__init__(vocab, merges, special_tokens or ["<|endoftext|>"], *more, **settings)


# The segments


class TextBesideSpecialsLost(BaseEncoder):
    def cut(self, text: str) -> Segments:
        parts = super().cut(text)
        return parts if self.pipeline is not None else [part for part in parts if part[1]] or parts

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from like(self, BaseEncoder).encode_iterable(chunks)


def _changed(change: Callable[[str, int, int], str]) -> Callable[[BaseEncoder, str], Segments]:
    """Return a step `cut` that changes the ordinary segments, each by its index and the number of segments."""

    def cut(self: BaseEncoder, text: str) -> Segments:
        parts = BaseEncoder.cut(self, text)
        return [(one if special else change(one, at, len(parts)), special) for at, (one, special) in enumerate(parts)]

    return cut


# The ids


class _Absent(BaseEncoder):
    """Gives ids to the special tokens without an entry by `new_ids`, without checking whether they are in use."""

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, *more: Any, **settings: Any) -> None:
        listed = [token.encode("utf-8") for token in special_tokens or ()]
        if b"" in listed:
            raise ValueError("a special token is empty")
        super().__init__(vocab, merges, None, *more, **settings)
        if special_tokens:
            self.special = list(dict.fromkeys(special_tokens))
        for token, index in self.new_ids(listed):
            self.vocab[index] = token
            self.ids[token] = index

    def new_ids(self, listed: list[bytes]) -> list[tuple[bytes, int]]:
        return []


class AbsentSpecialGetsLength(_Absent):
    def new_ids(self, listed: list[bytes]) -> list[tuple[bytes, int]]:
        absent = [token for token in dict.fromkeys(listed) if token not in self.ids]
        return [(token, len(self.vocab) + position) for position, token in enumerate(absent)]


class KnownSpecialGetsNewId(_Absent):
    def new_ids(self, listed: list[bytes]) -> list[tuple[bytes, int]]:
        first = max(self.vocab) + 1
        return [(token, first + position) for position, token in enumerate(dict.fromkeys(listed))]


class AbsentSpecialsShareAnId(_Absent):
    def new_ids(self, listed: list[bytes]) -> list[tuple[bytes, int]]:
        first = max(self.vocab) + 1
        return [(token, first) for token in dict.fromkeys(listed) if token not in self.ids]


class RepeatedSpecialUsesUpId(_Absent):
    def new_ids(self, listed: list[bytes]) -> list[tuple[bytes, int]]:
        first = max(self.vocab) + 1
        return [(token, first + position) for position, token in enumerate(listed) if token not in self.ids]


class AbsentSpecialDropped(_Absent):
    def cut(self, text: str) -> Segments:
        return [(part, special) for part, special in super().cut(text) if not special or part.encode() in self.ids]


class AbsentSpecialIsText(_Absent):
    def new_ids(self, listed: list[bytes]) -> list[tuple[bytes, int]]:
        self.special = [token for token in self.special if token.encode("utf-8") in self.ids]
        return []


add_variants(
    __name__,
    _Alternation,
    expression={
        "SpecialsShortestFirst": lambda self: "|".join(map(re.escape, sorted(self.special, key=len))),
        "SpecialsUnescaped": lambda self: "|".join(_longest_first(self.special)),
        "OnlyBarsEscaped": lambda self: "|".join(token.replace("|", r"\|") for token in _longest_first(self.special)),
        "AnchorsUnescaped": lambda self: re.sub(r"\\([\^$])", r"\1", _Alternation.expression(self)),
        "SpecialsAsWholeWords": lambda self: rf"(?<!\w)(?:{_Alternation.expression(self)})(?!\w)",
    },
)


add_variants(
    __name__,
    BaseEncoder,
    cut={
        "EntriesThatLookSpecial": _also(
            lambda self: [token for token in self.ids if (token[:2], token[-2:]) == (b"<|", b"|>")]
        ),
        "EntriesWithoutMerge": _also(
            lambda self: {token for token in self.ids if len(token) > 1}.difference(map(b"".join, self.merges))
        ),
        "EndoftextAlwaysSpecial": _also(lambda self: [b"<|endoftext|>"]),
        "NamesAlwaysSpecial": _also(lambda self: map(str.encode, NAMES)),
        "SpacesAtEndDropped": _changed(lambda segment, at, count: segment.rstrip(" ")),
        "SpacesOfSegmentsStripped": _changed(lambda segment, at, count: segment.strip(" ") if count > 1 else segment),
        "BlankSegmentsDropped": _changed(lambda segment, at, count: segment if segment.strip() else ""),
        "SegmentsStripped": _changed(lambda segment, at, count: segment.strip() if count > 1 else segment),
        "SpaceBeforeSpecialSwallowed": _changed(
            lambda segment, at, count: segment.rstrip() if at + 1 < count else segment
        ),
        "SpaceBehindSpecialAdded": _changed(
            lambda segment, at, count: f" {segment}" if at and segment[0] != " " else segment
        ),
        "OneCharacterSpecialsNotFound": lambda self, text: textbook.cut_special(
            text, [token for token in self.special if len(token) > 1]
        ),
        "SpecialsNotCut": lambda self, text: [(text, False)] if text else [],
        "SpecialsAmongPreTokens": lambda self, text: [(word, word in self.special) for word in self.split(text)],
    },
    special_id={
        "SpecialsKeyedByLetters": lambda self, token: BaseEncoder.special_id(
            self, next(other for other in self.special if re.sub(r"[\W_]", "", other) == re.sub(r"[\W_]", "", token))
        ),
        "SpecialIdsBehindMerges": lambda self, token: 256 + len(self.merges) + self.special.index(token),
    },
)


add_variants(
    __name__,
    TrieWithoutFallback,
    after_failure={
        "ScanWithoutBackingUp": lambda self, here, end: max(end, here + 1),
        "ScanSkipsBreakingCharacter": lambda self, here, end: end + 1,
    },
)
