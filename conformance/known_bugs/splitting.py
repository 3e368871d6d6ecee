"""Wrong splitting: each alternative of a pattern, the classes of the engine, the pattern that is asked for."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

import regex

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.reference import textbook

from .plain import Encoder

GPT2 = PATTERNS["gpt2"]
CL100K = PATTERNS["cl100k"]
O200K = PATTERNS["o200k"]
TRIADS = PATTERNS["triads"]
CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"


class _Pattern(Encoder):
    """Splits by the pattern `wrong` where the one called `name` is asked for."""

    name = "gpt2"
    wrong = ""

    def split(self, segment: str) -> list[str]:
        return textbook.split(segment, self.wrong if self.pattern == PATTERNS[self.name] else self.pattern)


class _Findall(_Pattern):
    """The same, and drops what the wrong pattern does not match."""

    def split(self, segment: str) -> list[str]:
        return regex.findall(self.wrong, segment) if self.pattern == GPT2 else super().split(segment)


class _Mistaken(Encoder):
    """Splits as if each character were the one that it is mistaken for."""

    def mistaken(self, character: str) -> str:
        """Return a character of the class that this engine puts `character` in."""
        return character

    def split(self, segment: str) -> list[str]:
        ends = [0]
        for piece in super().split("".join(map(self.mistaken, segment))):
            ends.append(ends[-1] + len(piece))
        return [segment[start:end] for start, end in pairwise(ends)]


# Contractions


class ContractionsForgotten(_Pattern):
    """Has no alternatives for contractions, which look like a nicety of English: the apostrophe stands alone."""

    clause = "SPLIT-CONTRACTION-1"
    fix = "Begin the pattern with 's|'t|'re|'ve|'m|'ll|'d."
    wrong = GPT2.replace(f"{CONTRACTIONS}|", "")


class ContractionsOfAnyCase(_Pattern):
    """Matches contractions without regard to case, as cl100k does and as looks right for DON'T."""

    clause = "SPLIT-CONTRACTION-2"
    fix = "Leave out (?i: GPT-2's contractions are lower case."
    wrong = GPT2.replace(CONTRACTIONS, f"(?i:{CONTRACTIONS})")


class ContractionsWithCurlyApostrophe(_Pattern):
    """Takes a typographic apostrophe for U+0027 in contractions, as most printed text has it."""

    clause = "SPLIT-CONTRACTION-2"
    fix = "Match U+0027 only: the curly apostrophe, U+2019, is a character like all other punctuation."
    wrong = GPT2.replace(CONTRACTIONS, "['\u2019](?:s|t|re|ve|m|ll|d)")


class ContractionsAtWordEnd(_Pattern):
    r"""Wants a \b after a contraction, so that 'tis and 'dear are not cut, which GPT-2 does cut."""

    clause = "SPLIT-CONTRACTION-1"
    fix = r"Leave out the \b: a contraction is a pre-token whatever follows."
    wrong = GPT2.replace(CONTRACTIONS, rf"(?:{CONTRACTIONS})\b")


class ContractionsInsideWords(_Pattern):
    """Keeps don't in one piece, as word tokenizers and o200k do."""

    clause = "SPLIT-CONTRACTION-1"
    fix = "End the word before the apostrophe; the contraction is the next pre-token."
    wrong = GPT2.replace(r" ?\p{L}+", rf" ?\p{{L}}+(?:{CONTRACTIONS})?")


# Letters


class LettersAscii(_Pattern):
    r"""Writes [a-zA-Z] for \p{L}, which `re` does not know: letters with accents fall to the punctuation."""

    clause = "SPLIT-LETTER-1"
    fix = r"Use the package regex, which knows \p{L}."
    wrong = GPT2.replace(r" ?\p{L}+", " ?[a-zA-Z]+").replace(r"\p{L}", "a-zA-Z")


class LettersBeyondAscii(_Mistaken):
    """Takes all bytes from 128 on for letters, as ports to C do: emoji and no-break spaces become parts of words."""

    clause = "SPLIT-UNICODE-1"
    fix = "Classify code points by their general category, not bytes."

    def mistaken(self, character: str) -> str:
        return "a" if character > "\x7f" else character


class LettersAsWordCharacters(_Pattern):
    r"""Writes \w for letters and numbers, so that underscores, digits and marks all go with the word."""

    clause = "SPLIT-LETTER-1"
    fix = r"Use \p{L}+ and \p{N}+ apart: \w is both, the underscore and marks."
    wrong = GPT2.replace(r" ?\p{L}+| ?\p{N}+", r" ?\w+").replace(r"\p{L}\p{N}", r"\w")


class LettersWithMarks(_Pattern):
    r"""Counts marks as letters, [\p{L}\p{M}]+, so that vowel signs and accents stay with their word."""

    clause = "SPLIT-MARK-1"
    fix = r"Leave \p{M} out: to GPT-2's pattern a mark is one of the other characters."
    wrong = GPT2.replace(r" ?\p{L}+", r" ?[\p{L}\p{M}]+").replace(r"\s\p{L}", r"\s\p{L}\p{M}")


class LettersOfBasicPlane(_Mistaken):
    """Sees UTF-16 units, as JavaScript without the flag u does: beyond U+FFFF there are no letters and numbers."""

    clause = "SPLIT-UNICODE-1"
    fix = "Match code points, not UTF-16 units: in JavaScript, give the regular expression the flag u."

    def mistaken(self, character: str) -> str:
        return "." if character > "\uffff" else character


class WordsByRe(Encoder):
    r"""Translates the pattern for `re` with [^\W\d_] and \d, which takes ½ and Ⅷ for letters and U+001C for a space."""

    clause = "SPLIT-UNICODE-1"
    fix = r"Use the package regex with the pattern as it is: `re` has no \p{L}, and no class is the same."

    def split(self, segment: str) -> list[str]:
        wrong = rf"{CONTRACTIONS}| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+"
        return re.findall(wrong, segment) if self.pattern == GPT2 else super().split(segment)


# Numbers


class NumbersDecimalOnly(_Pattern):
    r"""Writes \d for \p{N}: superscripts, fractions and Roman numerals fall to the punctuation."""

    clause = "SPLIT-UNICODE-1"
    fix = r"Use \p{N}, which is Nd, Nl and No; \d is Nd alone."
    wrong = GPT2.replace(r"\p{N}", r"\d")


class NumbersDigitByDigit(_Pattern):
    """Makes every digit a pre-token, as LLaMA and Qwen do for the sake of arithmetic."""

    clause = "SPLIT-NUMBER-1"
    fix = r"Repeat the class: ' ?\p{N}+'."
    wrong = GPT2.replace(r" ?\p{N}+", r" ?\p{N}")


# Other characters


class PunctuationCharByChar(_Pattern):
    """Makes every punctuation character a pre-token, as BERT does: the + after the class is missing."""

    clause = "SPLIT-OTHER-1"
    fix = r"Repeat the class: ' ?[^\s\p{L}\p{N}]+'."
    wrong = GPT2.replace(r"\p{N}]+", r"\p{N}]")


class UnderscoreLost(_Findall):
    r"""Writes [^\W\d_] for letters but [^\s\w] for the rest and takes findall: no alternative has the underscore."""

    clause = "SPLIT-LOSSLESS-1"
    fix = r"Let the classes complement each other: \p{L}, \p{N}, \s, and [^\s\p{L}\p{N}]."
    wrong = GPT2.replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{N}_]")


class PunctuationGluedToWords(_Pattern):
    r"""Splits at white space only, ' ?\S+', so that punctuation and digits go with the word."""

    clause = "SPLIT-DEFAULT-1"
    fix = "Use GPT-2's pattern: letters, numbers and other characters are kept apart."
    wrong = r" ?\S+|\s+(?!\S)|\s+"


# White space


class SpacesApart(_Pattern):
    """Leaves the optional space out: words and the spaces between them are pre-tokens of their own."""

    clause = "SPLIT-LETTER-1"
    fix = "Write ' ?' before letters, numbers and other characters."
    wrong = GPT2.replace(" ?", "")


class AnyWhiteSpaceBeforeWords(_Pattern):
    r"""Writes \s? for the optional space, as a blank in a regular expression is easily misread."""

    clause = "SPLIT-SPACE-2"
    fix = "Write ' ?': only U+0020 goes with the word, tabs and line breaks do not."
    wrong = GPT2.replace(" ?", r"\s?")


class LookaheadMissing(_Pattern):
    r"""Leaves out \s+(?!\S), which RE2, Go and Rust's regex refuse: runs swallow the space of the next word."""

    clause = "SPLIT-SPACE-1"
    fix = r"Where the engine has no lookahead, give the last character of a run of \s back before \S."
    wrong = GPT2.replace(r"\s+(?!\S)|", "")


class WhiteSpaceOneByOne(_Pattern):
    r"""Replaces \s+(?!\S)|\s+ by \s+$|\s where the engine has no lookahead: indents come out one by one."""

    clause = "SPLIT-SPACE-1"
    fix = r"Give the last character of a run of \s back before \S; the others are one pre-token."
    wrong = GPT2.replace(r"\s+(?!\S)|\s+", r"\s+$|\s")


class LineBreaksApart(_Pattern):
    r"""Takes line breaks out of runs of white space with \s*[\r\n]+, which GPT-2's pattern does not have."""

    clause = "SPLIT-SPACE-1"
    fix = r"Leave \s*[\r\n]+ to cl100k and its successors."
    wrong = GPT2.replace(r"|\s+(?!\S)", r"|\s*[\r\n]+|\s+(?!\S)")


class LinesSplitApart(Encoder):
    """Splits each line by itself to bound the memory: white space across line ends comes apart."""

    clause = "SPLIT-SPACE-1"
    fix = "Match over the whole segment; finditer needs no copy of it."

    def split(self, segment: str) -> list[str]:
        return [
            piece for line in segment.splitlines(keepends=True) for piece in super(LinesSplitApart, self).split(line)
        ]


class WhiteSpaceDropped(Encoder):
    """Skips pre-tokens of white space alone, `if piece.strip()`, since they look empty."""

    clause = "SPLIT-LOSSLESS-1"
    fix = "Encode every pre-token: white space is text."

    def split(self, segment: str) -> list[str]:
        return [piece for piece in super().split(segment) if piece.strip()]


class WordsByStrSplit(Encoder):
    """Takes `str.split` and puts a space before each word but the first: tabs, line breaks and runs are lost."""

    clause = "SPLIT-LOSSLESS-1"
    fix = "Collect the matches of GPT-2's pattern; joined, they are the text."

    def split(self, segment: str) -> list[str]:
        return re.findall(r" ?\S+", " ".join(segment.split()))


class PrefixSpace(Encoder):
    """Puts a space before the text, as add_prefix_space does by default in some libraries."""

    clause = "BYTES-TEXT-2"
    fix = "Encode the text as it is: add_prefix_space=False."

    def split(self, segment: str) -> list[str]:
        return super().split(segment if segment[0].isspace() else f" {segment}")


class WhiteSpaceAscii(_Mistaken):
    r"""Takes \s for its ASCII characters alone, as Java, Go and RE2 do: U+00A0 and U+3000 are punctuation."""

    clause = "SPLIT-SPACE-3"
    fix = r"Use Unicode's White_Space: (?U) in Java, [\s\v\p{Z}\x85] in Go."

    def mistaken(self, character: str) -> str:
        return "." if character > "\x7f" and character.isspace() else character


class WhiteSpaceOfJavascript(_Mistaken):
    r"""Takes \s as ECMAScript defines it: with U+FEFF and without U+0085."""

    clause = "SPLIT-SPACE-3"
    fix = r"Use \p{White_Space} with the flag u in JavaScript."

    def mistaken(self, character: str) -> str:
        return {"\ufeff": "\t", "\x85": "."}.get(character, character)


class WhiteSpaceOfPython(_Mistaken):
    r"""Takes str.isspace, or the \s of `re`, for white space: it holds the separators U+001C to U+001F."""

    clause = "SPLIT-SPACE-3"
    fix = r"Use the \s of the package regex, which is Unicode's White_Space."

    def mistaken(self, character: str) -> str:
        return "\t" if "\x1c" <= character <= "\x1f" else character


# The pattern as a whole


class FindallWithGroup(_Findall):
    """Groups the contractions by (...) for findall, which then returns what the group caught: mostly nothing."""

    clause = "SPLIT-LOSSLESS-1"
    fix = "Use (?:...) for grouping, or [match.group() for match in regex.finditer(pattern, text)]."
    wrong = GPT2.replace(CONTRACTIONS, "('(?:s|t|re|ve|m|ll|d))")


class FenceMissing(Encoder):
    """Merges over the whole text, without any split, as the simplest textbook code does."""

    clause = "SPLIT-FENCE-1"
    fix = "Split first, and merge inside each pre-token."

    def split(self, segment: str) -> list[str]:
        return [segment]


class PatternIgnored(Encoder):
    """Takes the parameter `pattern` and splits by GPT-2's pattern all the same, which is a constant of the module."""

    clause = "SPLIT-NAME-1"
    fix = "Keep the pattern of the constructor: self.pattern = regex.compile(pattern)."

    def split(self, segment: str) -> list[str]:
        return textbook.split(segment)


class Cl100kAsDefault(_Pattern):
    """Has cl100k's pattern for default, as teaching code for GPT-4 does."""

    clause = "SPLIT-DEFAULT-1"
    fix = "Split by GPT-2's pattern where no other is asked for."
    wrong = CL100K


# Other patterns


class Cl100kOutdated(_Pattern):
    """Splits by the string that cl100k was in 2023: trailing white space is cut after its last line break."""

    clause = "SPLIT-NAME-1"
    fix = r"Take the string of today, with \s++$ before \s*[\r\n]."
    name = "cl100k"
    wrong = PATTERNS["cl100k-2023"]


class Cl100kContractionsOfLowerCase(_Pattern):
    """Loses the (?i: when cl100k's pattern is carried to an engine without inline flags: DON'T is cut otherwise."""

    clause = "SPLIT-CL100K-1"
    fix = "Match the contractions without regard to case, long s included."
    name = "cl100k"
    wrong = CL100K.replace("(?i:", "(?:")


class Cl100kWordsAfterSpaceOnly(_Pattern):
    """Writes GPT-2's ' ?' before cl100k's words, which take any character that is no letter, number or line break."""

    clause = "SPLIT-CL100K-2"
    fix = r"Write [^\r\n\p{L}\p{N}]?+ before \p{L}++."
    name = "cl100k"
    wrong = CL100K.replace(r"[^\r\n\p{L}\p{N}]?+", " ?")


class Cl100kDigitsFromTheRight(_Pattern):
    """Groups the digits of cl100k's numbers from the right, as thousands are written."""

    clause = "SPLIT-CL100K-3"
    fix = r"Cut from the left: \p{N}{1,3}, with no lookahead."
    name = "cl100k"
    wrong = CL100K.replace(r"\p{N}{1,3}+", r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))")


class Cl100kPunctuationWithoutLineBreaks(_Pattern):
    r"""Leaves out the [\r\n]* after cl100k's punctuation, which GPT-2's pattern does not have."""

    clause = "SPLIT-CL100K-4"
    fix = r"Write ' ?[^\s\p{L}\p{N}]++[\r\n]*+'."
    name = "cl100k"
    wrong = CL100K.replace(r"[\r\n]*+", "")


class Llama3AsCl100k(_Pattern):
    """Takes today's string of cl100k for Llama 3's, which is that of 2023: trailing white space is not cut."""

    clause = "SPLIT-LLAMA3-1"
    fix = r"Take the string of 2023, which has no \s++$."
    name = "llama3"
    wrong = CL100K


class Qwen2AsLlama3(_Pattern):
    r"""Takes Llama 3's string for Qwen2's, which differs in \p{N} alone: digits come in threes."""

    clause = "SPLIT-QWEN2-1"
    fix = r"Write \p{N} for \p{N}{1,3}."
    name = "qwen2"
    wrong = PATTERNS["llama3"]


class Qwen2Normalised(Encoder):
    """Normalises to NFC under Qwen2's pattern, a step of Qwen2's tokenizer that is no part of its split."""

    clause = "SPLIT-QWEN2-1"
    fix = "Split the text as it is."

    def prepare(self, text: str) -> str:
        return unicodedata.normalize("NFC", text) if self.pattern == PATTERNS["qwen2"] else text


class O200kWithoutCase(_Pattern):
    """Writes cl100k's run of letters for o200k's two alternatives, which look alike: camelCase is not cut."""

    clause = "SPLIT-O200K-1"
    fix = "Match upper case before lower case, and upper case alone, as o200k's first two alternatives do."
    name = "o200k"
    wrong = r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|" + O200K[O200K.index(r"\p{N}{1,3}|") :]


class O200kWithoutMarks(_Pattern):
    r"""Leaves \p{M} out of o200k's letters, where alone of all patterns it stands."""

    clause = "SPLIT-O200K-2"
    fix = r"Keep \p{M} in all four classes."
    name = "o200k"
    wrong = O200K.replace(r"\p{M}", "")


class O200kContractionsApart(_Pattern):
    """Cuts contractions off under o200k as under cl100k, though they end the word there."""

    clause = "SPLIT-O200K-3"
    fix = "Put (?i:'s|'t|'re|'ve|'m|'ll|'d)? at the end of the alternatives for words."
    name = "o200k"
    wrong = f"(?i:{CONTRACTIONS})|" + O200K.replace(f"(?i:{CONTRACTIONS})?", "")


class O200kSlashApart(_Pattern):
    r"""Writes [\r\n]* after o200k's punctuation, as cl100k has it: the slash after a line break is cut off."""

    clause = "SPLIT-O200K-6"
    fix = r"Write [\r\n/]*."
    name = "o200k"
    wrong = O200K.replace(r"[\r\n/]*", r"[\r\n]*")


class NoneByDot(_Pattern):
    """Writes .+ for the whole text; the dot stops at line breaks, which become pre-tokens of their own."""

    clause = "SPLIT-NONE-1"
    fix = r"Write [\s\S]+, or give the flag DOTALL, or do not split at all."
    name = "none"
    wrong = ".+"


class NoneAsDefault(_Pattern):
    """Takes the pattern none for no pattern given, so that GPT-2's steps in."""

    clause = "SPLIT-NONE-1"
    fix = "Tell none, which asks for no split, from None, which asks for the default."
    name = "none"
    wrong = GPT2


class TriadsFromTheLeft(_Pattern):
    r"""Writes the \p{N}{1,3} of cl100k for digits under triads, so that they are cut from the left."""

    clause = "SPLIT-TRIADS-2"
    fix = r"Look ahead to the end of the run: \p{N}{1,3}(?=(?:\p{N}{3}){0,9}(?!\p{N}))."
    name = "triads"
    wrong = TRIADS.replace(r"(?=(?:\p{N}{3}){0,9}(?!\p{N}))", "")


class TriadsContractionsCutOff(_Pattern):
    """Puts the contractions of cl100k before the words of triads, which cut O'Reilly and 'save as well."""

    clause = "SPLIT-TRIADS-1"
    fix = "Leave the contractions out: an apostrophe and the letters behind it are a word."
    name = "triads"
    wrong = f"['\u2019](?i:[sdmt]|ll|ve|re)|{TRIADS}"


class TriadsCurlyApostropheApart(_Pattern):
    """Allows a straight apostrophe before the words of triads, and takes the curly one for punctuation."""

    clause = "SPLIT-TRIADS-1"
    fix = r"Let any character stand before a word that is no letter, no number, no CR and no LF."
    name = "triads"
    wrong = TRIADS.replace(r"[^\r\n\p{L}\p{N}]?", "[^\\r\\n\\p{L}\\p{N}\u2019]?")


class TriadsWithoutMarks(_Pattern):
    r"""Writes \p{L}+ for the words of triads, as all patterns but o200k have it: a mark ends the word."""

    clause = "SPLIT-TRIADS-1"
    fix = r"Write \p{L}[\p{L}\p{M}]*."
    name = "triads"
    wrong = TRIADS.replace(r"\p{L}[\p{L}\p{M}]*", r"\p{L}+")


class TriadsThousandsOfFourDigits(_Pattern):
    r"""Takes any three digits behind a separator for thousands, also those of 1,2345."""

    clause = "SPLIT-TRIADS-3"
    fix = r"Look ahead for the end of the digits: [,_]\p{N}{3}(?!\p{N})."
    name = "triads"
    wrong = TRIADS.replace(r"[,_]\p{N}{3}(?!\p{N})", r"[,_]\p{N}{3}")


class TriadsDecimalsFromTheRight(_Pattern):
    """Leaves out the look behind that tells decimals from whole digits, as some engines have none."""

    clause = "SPLIT-TRIADS-4"
    fix = "Cut the digits behind a point from the left: 3 .141 592 65."
    name = "triads"
    wrong = regex.sub(r"\(\?<=.*?\)\\p\{N\}\{1,3\}\|", "", TRIADS)


class TriadsExponentsAnywhere(_Pattern):
    """Takes every e before digits for an exponent where a pre-token begins, so that names are cut."""

    clause = "SPLIT-TRIADS-5"
    fix = r"Look behind: an exponent follows a number, or begins the text, (?<!\P{N})."
    name = "triads"
    wrong = TRIADS.replace(r"(?<!\P{N})", "")


class TriadsPercentOfFormats(_Pattern):
    """Takes every percent sign behind digits with them, also that of 5%3 and of 10%d."""

    clause = "SPLIT-TRIADS-6"
    fix = r"Look ahead: %(?![\p{L}\p{N}])."
    name = "triads"
    wrong = TRIADS.replace(r"(?:%(?![\p{L}\p{N}]))?", "%?")
