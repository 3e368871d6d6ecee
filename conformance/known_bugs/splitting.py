"""Incorrect splitting: incorrect regular expressions, then bugs that no regular expression describes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from itertools import pairwise

import regex

from bpe_conformance.fixtures import PATTERNS, spell, unspell
from bpe_conformance.reference import textbook

from .bases import BaseEncoder, add_variants

GPT2 = PATTERNS["gpt2"]
CL100K = PATTERNS["cl100k"]
O200K = PATTERNS["o200k"]
TRIADS = PATTERNS["triads"]
CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"


def _by(wrong: str, name: str = "gpt2", findall: bool = False) -> Callable[[BaseEncoder, str], list[str]]:
    """Return the step `split` with a regular expression.

    Args:
        wrong: the regular expression that is used instead of the pattern `name`.
        name: the pattern that it gets wrong.
        findall: whether it drops what `wrong` does not match, as `findall` does.
    """

    def split(self: BaseEncoder, segment: str) -> list[str]:
        if self.pattern != PATTERNS[name]:
            return BaseEncoder.split(self, segment)
        return regex.findall(wrong, segment) if findall else textbook.split(segment, wrong)

    return split


add_variants(
    __name__,
    BaseEncoder,
    split={
        "ContractionsForgotten": _by(GPT2.replace(f"{CONTRACTIONS}|", "")),
        "ContractionsOfAnyCase": _by(GPT2.replace(CONTRACTIONS, f"(?i:{CONTRACTIONS})")),
        "ContractionsWithCurlyApostrophe": _by(GPT2.replace(CONTRACTIONS, "['\u2019](?:s|t|re|ve|m|ll|d)")),
        "ContractionsAtWordEnd": _by(GPT2.replace(CONTRACTIONS, rf"(?:{CONTRACTIONS})\b")),
        "ContractionsOfAnyLetters": _by(GPT2.replace(CONTRACTIONS, r"'\p{L}+")),
        "ContractionsInsideWords": _by(GPT2.replace(r" ?\p{L}+", rf" ?\p{{L}}+(?:{CONTRACTIONS})?")),
        "LettersAscii": _by(GPT2.replace(r" ?\p{L}+", " ?[a-zA-Z]+").replace(r"\p{L}", "a-zA-Z")),
        "LettersAsWordCharacters": _by(GPT2.replace(r" ?\p{L}+| ?\p{N}+", r" ?\w+").replace(r"\p{L}\p{N}", r"\w")),
        "LettersByIsAlphabetic": _by(
            GPT2.replace(r" ?\p{L}+| ?\p{N}+", r" ?\p{Alphabetic}+| ?[^\P{N}\p{Alphabetic}]+").replace(
                r"\p{L}", r"\p{Alphabetic}"
            )
        ),
        "LettersWithMarks": _by(GPT2.replace(r" ?\p{L}+", r" ?[\p{L}\p{M}]+").replace(r"\s\p{L}", r"\s\p{L}\p{M}")),
        "LettersWithJoiners": _by(GPT2.replace(r" ?\p{L}+", r" ?\p{L}(?:[\u200c\u200d]?\p{L})*")),
        "NumbersAscii": _by(GPT2.replace(r" ?\p{N}+", " ?[0-9]+").replace(r"\p{N}", "0-9")),
        "NumbersDecimalOnly": _by(GPT2.replace(r"\p{N}", r"\d")),
        "NumbersDigitByDigit": _by(GPT2.replace(r" ?\p{N}+", r" ?\p{N}")),
        "ClassesAscii": _by(
            GPT2.replace(r"\p{L}", "[a-zA-Z]", 1).replace(r"\p{N}", "[0-9]", 1).replace(r"\p{L}\p{N}", "a-zA-Z0-9")
        ),
        "PunctuationCharByChar": _by(GPT2.replace(r"\p{N}]+", r"\p{N}]")),
        "PunctuationGluedToWords": _by(r" ?\S+|\s+(?!\S)|\s+"),
        "SpacesApart": _by(GPT2.replace(" ?", "")),
        "AnyWhiteSpaceBeforeWords": _by(GPT2.replace(" ?", r"\s?")),
        "LookaheadMissing": _by(GPT2.replace(r"\s+(?!\S)|", "")),
        "OnlySpacesGivenBack": _by(GPT2.replace(r"\s+(?!\S)", r"\s+$|\s+(?= \S)")),
        "WhiteSpaceOneByOne": _by(GPT2.replace(r"\s+(?!\S)|\s+", r"\s+$|\s")),
        "LineBreaksApart": _by(GPT2.replace(r"|\s+(?!\S)", r"|\s*[\r\n]+|\s+(?!\S)")),
        "FindallWithGroup": _by(GPT2.replace(CONTRACTIONS, "('(?:s|t|re|ve|m|ll|d))"), findall=True),
        "Cl100kAsDefault": _by(CL100K),
        "Cl100kOutdated": _by(PATTERNS["cl100k-2023"], "cl100k"),
        "Cl100kContractionsOfLowerCase": _by(CL100K.replace("(?i:", "(?:"), "cl100k"),
        "Cl100kIntervalRepeated": _by(CL100K.replace(r"\p{N}{1,3}+", r"(?:\p{N}{1,3})+"), "cl100k"),
        "Cl100kWordsAfterSpaceOnly": _by(CL100K.replace(r"[^\r\n\p{L}\p{N}]?+", " ?"), "cl100k"),
        "Cl100kDigitsFromTheRight": _by(
            CL100K.replace(r"\p{N}{1,3}+", r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"), "cl100k"
        ),
        "Cl100kDigitsAsUtf16": _by(
            CL100K.replace(r"\p{N}{1,3}+", "|".join(("AAA", "AB", "BA", "AA", "B", "A")))
            .replace("A", r"(?:(?![\U00010000-\U0010ffff])\p{N})")
            .replace("B", r"(?:(?=[\U00010000-\U0010ffff])\p{N})"),
            "cl100k",
        ),
        "Cl100kPunctuationWithoutLineBreaks": _by(CL100K.replace(r"[\r\n]*+", ""), "cl100k"),
        "Llama3AsCl100k": _by(CL100K, "llama3"),
        "Qwen2AsLlama3": _by(PATTERNS["llama3"], "qwen2"),
        "O200kWithoutCase": _by(
            r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|" + O200K[O200K.index(r"\p{N}{1,3}|") :],
            "o200k",
        ),
        "O200kCaseOfAscii": _by(
            O200K.replace(r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"(?:(?![a-z])[\p{L}\p{M}])").replace(
                r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"(?:(?![A-Z])[\p{L}\p{M}])"
            ),
            "o200k",
        ),
        "O200kWithoutMarks": _by(O200K.replace(r"\p{M}", ""), "o200k"),
        "O200kContractionsApart": _by(f"(?i:{CONTRACTIONS})|" + O200K.replace(f"(?i:{CONTRACTIONS})?", ""), "o200k"),
        "O200kPossessive": _by(O200K.replace(r"\p{M}]*[", r"\p{M}]*+["), "o200k"),
        "O200kLongSNotFolded": _by(
            O200K.replace(f"(?i:{CONTRACTIONS})?", f"(?:(?!'\u017f)(?i:{CONTRACTIONS}))?"), "o200k"
        ),
        "O200kSlashApart": _by(O200K.replace(r"[\r\n/]*", r"[\r\n]*"), "o200k"),
        "NoneByDot": _by(".+", "none"),
        "NoneAsDefault": _by(GPT2, "none"),
        "TriadsFromTheLeft": _by(TRIADS.replace(r"(?=(?:\p{N}{3}){0,9}(?!\p{N}))", ""), "triads"),
        "TriadsContractionsCutOff": _by(f"['\u2019](?i:[sdmt]|ll|ve|re)|{TRIADS}", "triads"),
        "TriadsCurlyApostropheApart": _by(
            TRIADS.replace(r"[^\r\n\p{L}\p{N}]?", "[^\\r\\n\\p{L}\\p{N}\u2019]?"), "triads"
        ),
        "TriadsWithoutMarks": _by(TRIADS.replace(r"\p{L}[\p{L}\p{M}]*", r"\p{L}+"), "triads"),
        "TriadsThousandsOfFourDigits": _by(TRIADS.replace(r"[,_]\p{N}{3}(?!\p{N})", r"[,_]\p{N}{3}"), "triads"),
        "TriadsDecimalsFromTheRight": _by(regex.sub(r"\(\?<=.*?\)\\p\{N\}\{1,3\}\|", "", TRIADS), "triads"),
        "TriadsExponentsAnywhere": _by(TRIADS.replace(r"(?<!\P{N})", ""), "triads"),
        "TriadsPercentOfFormats": _by(TRIADS.replace(r"(?:%(?![\p{L}\p{N}]))?", "%?"), "triads"),
    },
)


# What no regular expression describes


class _Mistaken(BaseEncoder):
    """Splits as if each character were the one with which it is confused."""

    def mistaken(self, character: str) -> str:
        return character

    def split(self, segment: str) -> list[str]:
        ends = [0]
        for piece in super().split("".join(map(self.mistaken, segment))):
            ends.append(ends[-1] + len(piece))
        return [segment[start:end] for start, end in pairwise(ends)]


class WhiteSpaceWithoutControls(_Mistaken):
    def mistaken(self, character: str) -> str:
        return "." if character in "\v\f" else character

    def split(self, segment: str) -> list[str]:
        return super().split(segment) if segment.isascii() else BaseEncoder.split(self, segment)


class LettersByRange(BaseEncoder):
    def split(self, segment: str) -> list[str]:
        wrong = re.sub(r"(?<=\\[ns])\\p\{L\}", r"a-zA-Z\\x80-\\U0010ffff", self.pattern)
        wrong = wrong.replace(r"\p{L}", r"[a-zA-Z\x80-\U0010ffff]")
        return super().split(segment) if self.pattern == TRIADS else textbook.split(segment, wrong)


class ContractionsOfR(BaseEncoder):
    def split(self, segment: str) -> list[str]:
        wrong = self.pattern.replace("(?i:[sdmt]|ll|ve|re)", "(?i:[dmr-t]|ll|ve)")
        wrong = wrong.replace(f"(?i:{CONTRACTIONS})|", "(?i:'[r-t]|'ve|'m|'ll|'d)|")
        return super().split(segment) if wrong == self.pattern else textbook.split(segment, wrong)


class EmojiBeforeWordsApart(BaseEncoder):
    def split(self, segment: str) -> list[str]:
        wrong = self.pattern.replace(r"[^\r\n\p{L}\p{N}]", r"[^\r\n\p{L}\p{N}\U00010000-\U0010ffff]")
        return super().split(segment) if self.pattern == TRIADS else textbook.split(segment, wrong)


def _by_re(classes: str) -> Callable[[BaseEncoder, str], list[str]]:
    """Return the step `split` with these classes of `re` between the contractions and white space."""
    wrong = rf"{CONTRACTIONS}|{classes}|\s+(?!\S)|\s+"
    return lambda self, segment: (
        re.findall(wrong, segment) if self.pattern == GPT2 else BaseEncoder.split(self, segment)
    )


add_variants(
    __name__,
    BaseEncoder,
    split={
        "WordsByRe": _by_re(r" ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+"),
        "WordCharactersByRe": _by_re(r" ?\w+| ?[^\s\w]+"),
        "UnderscoreAsLetter": _by_re(r" ?[^\W\d]+| ?\d+| ?[^\s\w]+"),
        "UnderscoreLost": _by_re(r" ?[^\W\d_]+| ?\d+| ?[^\s\w]+"),
    },
)


class PatternOverBytes(BaseEncoder):
    def encode_segment(self, segment: str) -> list[int]:
        pieces = [match.group() for match in regex.finditer(self.pattern.encode("utf-8"), segment.encode("utf-8"))]
        return [self.ids[token] for piece in pieces for token in self.merge(tuple(bytes([byte]) for byte in piece))]


class SpelledBeforeSplit(BaseEncoder):
    def encode_segment(self, segment: str) -> list[int]:
        pieces = [unspell(piece) for piece in self.split(spell(segment.encode("utf-8")))]
        return [self.ids[token] for piece in pieces for token in self.merge(tuple(bytes([byte]) for byte in piece))]


class ShortTextsLookedUp(BaseEncoder):
    size = 10

    def encode_segment(self, segment: str) -> list[int]:
        token = segment.encode("utf-8")
        return [self.ids[token]] if len(segment) < self.size and token in self.ids else super().encode_segment(segment)


add_variants(
    __name__,
    _Mistaken,
    mistaken={
        "Cl100kLongSNotFolded": lambda self, character: "q" if character == "\u017f" else character,
        "LettersBeyondAscii": lambda self, character: "a" if character > "\x7f" else character,
        "CharactersOfUnicode3": lambda self, character: (
            "." if unicodedata.ucd_3_2_0.category(character) == "Cn" else character
        ),
        "NumbersByIsDigit": lambda self, character: (
            "." if unicodedata.category(character)[0] == "N" and not character.isdigit() else character
        ),
        "LettersOfBasicPlane": lambda self, character: "." if character > "\uffff" else character,
        "WhiteSpaceAscii": lambda self, character: "." if character > "\x7f" and character.isspace() else character,
        "WhiteSpaceOfJavascript": lambda self, character: {"\ufeff": "\t", "\x85": "."}.get(character, character),
        "WhiteSpaceOfPython": lambda self, character: "\t" if "\x1c" <= character <= "\x1f" else character,
        "WhiteSpaceOfJava": lambda self, character: (
            "\t" if "\x1c" <= character <= "\x1f" else "." if character in "\x85\xa0\u2007\u202f" else character
        ),
        "WhiteSpaceOfIcu": lambda self, character: "." if character in "\x0b\x85" else character,
        "WhiteSpaceOfPcre": lambda self, character: "\t" if character == "\u180e" else character,
    },
)


add_variants(
    __name__,
    BaseEncoder,
    split={
        "WhiteSpaceDropped": lambda self, text: [piece for piece in BaseEncoder.split(self, text) if piece.strip()],
        "WordsByStrSplit": lambda self, segment: re.findall(r" ?\S+", " ".join(segment.split())),
        "PrefixSpace": lambda self, text: BaseEncoder.split(self, text if text[0].isspace() else f" {text}"),
        "FenceMissing": lambda self, segment: [segment],
        "PatternIgnored": lambda self, segment: textbook.split(segment),
        "CharactersLeftOut": lambda self, text: BaseEncoder.split(self, text.encode("ascii", "ignore").decode("ascii")),
        "LinesSplitApart": lambda self, segment: (
            [piece for line in segment.splitlines(keepends=True) for piece in BaseEncoder.split(self, line)]
        ),
    },
    encode={
        "Qwen2Normalised": lambda self, text: BaseEncoder.encode(
            self, unicodedata.normalize("NFC", text) if self.pattern == PATTERNS["qwen2"] else text
        )
    },
)
