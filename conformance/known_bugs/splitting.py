"""Incorrect splitting: one table of incorrect regular expressions, then what no regular expression describes."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import NamedTuple

import regex

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.reference import textbook

from .correct import Encoder

GPT2 = PATTERNS["gpt2"]
CL100K = PATTERNS["cl100k"]
O200K = PATTERNS["o200k"]
TRIADS = PATTERNS["triads"]
CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"


class Row(NamedTuple):
    """One known bug that splits with an incorrect regular expression.

    Attributes:
        id: the id of the bug, in kebab-case; permanent.
        clause: the clause that it violates first.
        sentence: what it does, and why people write it.
        fix: what to change.
        wrong: the regular expression that it uses instead of the pattern `name`.
        name: the pattern that it gets wrong.
        evidence: where it was seen, or "".
        findall: whether it drops what `wrong` does not match, as `findall` does.
    """

    id: str
    clause: str
    sentence: str
    fix: str
    wrong: str
    name: str = "gpt2"
    evidence: str = ""
    findall: bool = False


# The table

PATTERN_BUGS = (
    Row(
        "contractions-forgotten",
        "SPLIT-CONTRACTION-1",
        "Has no alternatives for contractions, which look optional, so that the apostrophe is a pre-token.",
        "Begin the pattern with 's|'t|'re|'ve|'m|'ll|'d.",
        GPT2.replace(f"{CONTRACTIONS}|", ""),
        evidence="bpeasy 0.1.6 (its default split)",
    ),
    Row(
        "contractions-of-any-case",
        "SPLIT-CONTRACTION-2",
        "Ignores the case of contractions, as cl100k does and as looks correct for DON'T.",
        "Remove (?i: because GPT-2's contractions are lower case.",
        GPT2.replace(CONTRACTIONS, f"(?i:{CONTRACTIONS})"),
    ),
    Row(
        "contractions-with-curly-apostrophe",
        "SPLIT-CONTRACTION-2",
        "Accepts a typographic apostrophe in contractions, because most printed text has one.",
        "Match U+0027 only: to GPT-2, U+2019 is a character like any other punctuation.",
        GPT2.replace(CONTRACTIONS, "['\u2019](?:s|t|re|ve|m|ll|d)"),
    ),
    Row(
        "contractions-at-word-end",
        "SPLIT-CONTRACTION-1",
        r"Requires a \b after a contraction, so that it does not cut 'tis and 'dear, which GPT-2 cuts.",
        r"Remove the \b: a contraction is a pre-token whatever follows.",
        GPT2.replace(CONTRACTIONS, rf"(?:{CONTRACTIONS})\b"),
    ),
    Row(
        "contractions-inside-words",
        "SPLIT-CONTRACTION-1",
        "Keeps don't in one piece, as word tokenizers and o200k do.",
        "End the word before the apostrophe; the contraction is the next pre-token.",
        GPT2.replace(r" ?\p{L}+", rf" ?\p{{L}}+(?:{CONTRACTIONS})?"),
        evidence="OpenAI's o200k does so by design",
    ),
    Row(
        "letters-ascii",
        "SPLIT-LETTER-1",
        r"Writes [a-zA-Z] for \p{L}, which `re` does not know, so that accented letters become punctuation.",
        r"Use the package regex, which knows \p{L}.",
        GPT2.replace(r" ?\p{L}+", " ?[a-zA-Z]+").replace(r"\p{L}", "a-zA-Z"),
    ),
    Row(
        "letters-as-word-characters",
        "SPLIT-LETTER-1",
        r"Writes \w for letters and numbers, so that underscores, digits and marks all join the word.",
        r"Use \p{L}+ and \p{N}+ separately: \w also contains the underscore and marks.",
        GPT2.replace(r" ?\p{L}+| ?\p{N}+", r" ?\w+").replace(r"\p{L}\p{N}", r"\w"),
    ),
    Row(
        "letters-by-is-alphabetic",
        "SPLIT-UNICODE-1",
        "Takes the property Alphabetic for letters, as Rust's is_alphabetic does, which contains Ⅷ and vowel signs.",
        r"Use the general categories L and N: \p{L} and \p{N}.",
        GPT2.replace(r" ?\p{L}+| ?\p{N}+", r" ?\p{Alphabetic}+| ?[^\P{N}\p{Alphabetic}]+").replace(
            r"\p{L}", r"\p{Alphabetic}"
        ),
        evidence="tokie 0.1.4 (is_unicode_letter)",
    ),
    Row(
        "letters-with-marks",
        "SPLIT-MARK-1",
        r"Counts marks as letters, [\p{L}\p{M}]+, so that vowel signs and accents stay with their word.",
        r"Remove \p{M}: to GPT-2's pattern a mark is one of the other characters.",
        GPT2.replace(r" ?\p{L}+", r" ?[\p{L}\p{M}]+").replace(r"\s\p{L}", r"\s\p{L}\p{M}"),
    ),
    Row(
        "numbers-decimal-only",
        "SPLIT-UNICODE-1",
        r"Writes \d for \p{N}, so that superscripts, fractions and Roman numerals become punctuation.",
        r"Use \p{N}, which is Nd, Nl and No; \d is Nd only.",
        GPT2.replace(r"\p{N}", r"\d"),
    ),
    Row(
        "numbers-digit-by-digit",
        "SPLIT-NUMBER-1",
        "Makes every digit a pre-token, as Llama and Qwen do for the sake of arithmetic.",
        r"Repeat the class: ' ?\p{N}+'.",
        GPT2.replace(r" ?\p{N}+", r" ?\p{N}"),
        evidence="Qwen2; tinybpe 1.0.0 uses Qwen2's pattern for every model",
    ),
    Row(
        "punctuation-char-by-char",
        "SPLIT-OTHER-1",
        "Makes every punctuation character a pre-token, as BERT does, because the + after the class is missing.",
        r"Repeat the class: ' ?[^\s\p{L}\p{N}]+'.",
        GPT2.replace(r"\p{N}]+", r"\p{N}]"),
    ),
    Row(
        "underscore-lost",
        "SPLIT-LOSSLESS-1",
        r"Writes [^\W\d_] for letters and [^\s\w] for the rest, so that findall drops the underscore.",
        r"Use classes that complement each other: \p{L}, \p{N}, \s and [^\s\p{L}\p{N}].",
        GPT2.replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{N}_]"),
        findall=True,
    ),
    Row(
        "punctuation-glued-to-words",
        "SPLIT-DEFAULT-1",
        r"Splits at white space only, ' ?\S+', so that punctuation and digits join the word.",
        "Use GPT-2's pattern, which separates letters, numbers and other characters.",
        r" ?\S+|\s+(?!\S)|\s+",
    ),
    Row(
        "spaces-apart",
        "SPLIT-LETTER-1",
        "Leaves the optional space out, so that words and the spaces before them are separate pre-tokens.",
        "Write ' ?' before letters, numbers and other characters.",
        GPT2.replace(" ?", ""),
    ),
    Row(
        "any-white-space-before-words",
        "SPLIT-SPACE-2",
        r"Writes \s? for the optional space, because a blank in a regular expression is easily misread.",
        "Write ' ?': only U+0020 joins the word; tabs and line breaks do not.",
        GPT2.replace(" ?", r"\s?"),
        evidence="kitoken 0.11.1; tokie 0.1.4 for tabs",
    ),
    Row(
        "lookahead-missing",
        "SPLIT-SPACE-1",
        r"Leaves out \s+(?!\S), which RE2, Go and Rust's regex reject, so that runs swallow the next word's space.",
        r"Without a lookahead, give the last character of a run of \s back if \S follows.",
        GPT2.replace(r"\s+(?!\S)|", ""),
        evidence="wangkuiyi/huggingface-tokenizer-in-cxx#10 (RE2)",
    ),
    Row(
        "white-space-one-by-one",
        "SPLIT-SPACE-1",
        r"Replaces \s+(?!\S)|\s+ with \s+$|\s for an engine without lookahead, so that indents fall apart.",
        r"Give the last character of a run of \s back if \S follows; the others are one pre-token.",
        GPT2.replace(r"\s+(?!\S)|\s+", r"\s+$|\s"),
    ),
    Row(
        "line-breaks-apart",
        "SPLIT-SPACE-1",
        r"Separates line breaks from runs of white space with \s*[\r\n]+, which only later patterns have.",
        r"Use \s*[\r\n]+ only for cl100k and its successors.",
        GPT2.replace(r"|\s+(?!\S)", r"|\s*[\r\n]+|\s+(?!\S)"),
    ),
    Row(
        "findall-with-group",
        "SPLIT-LOSSLESS-1",
        "Groups the contractions with (...), so that findall returns what the group matched: mostly nothing.",
        "Use (?:...) for grouping, or [match.group() for match in regex.finditer(pattern, text)].",
        GPT2.replace(CONTRACTIONS, "('(?:s|t|re|ve|m|ll|d))"),
        findall=True,
    ),
    Row(
        "cl100k-as-default",
        "SPLIT-DEFAULT-1",
        "Uses cl100k's pattern as the default, as teaching code for GPT-4 does.",
        "Split with GPT-2's pattern if the caller names no other.",
        CL100K,
        evidence="minbpe (RegexTokenizer), rustbpe 0.1.0",
    ),
    Row(
        "cl100k-outdated",
        "SPLIT-NAME-1",
        "Uses cl100k's string of 2023, which splits trailing white space after its last line break.",
        r"Use today's string, with \s++$ before \s*[\r\n].",
        PATTERNS["cl100k-2023"],
        name="cl100k",
        evidence="tokie 0.1.4, which recognises a pattern by substrings",
    ),
    Row(
        "cl100k-contractions-of-lower-case",
        "SPLIT-CL100K-1",
        "Drops the (?i: of cl100k's contractions for an engine without inline flags, which changes DON'T.",
        "Match the contractions in any case, including long s.",
        CL100K.replace("(?i:", "(?:"),
        name="cl100k",
        evidence="one step from sugarme/tokenizer#43, where Go's regexp rejects the pattern",
    ),
    Row(
        "cl100k-long-s-not-folded",
        "SPLIT-CL100K-1",
        "Folds the case of contractions for ASCII only, so that 'ſ (U+017F) is no contraction.",
        "Use full case folding: (?i:s) matches U+017F too.",
        CL100K.replace("(?i:[sdmt]|ll|ve|re)", "(?:[sdmtSDMT]|[lL]{2}|[vV][eE]|[rR][eE])"),
        name="cl100k",
        evidence="splintr-rs 0.22.0, fastokens 0.3.5, @huggingface/tokenizers 0.2.0",
    ),
    Row(
        "cl100k-interval-repeated",
        "SPLIT-CL100K-3",
        r"Uses an engine that repeats \p{N}{1,3}+ instead of making it possessive, so that digits are not cut.",
        r"Write \p{N}{1,3} for Oniguruma, where {1,3}+ repeats the interval.",
        CL100K.replace(r"\p{N}{1,3}+", r"(?:\p{N}{1,3})+"),
        name="cl100k",
        evidence="Oniguruma's syntax, the engine of Hugging Face tokenizers",
    ),
    Row(
        "cl100k-words-after-space-only",
        "SPLIT-CL100K-2",
        "Writes GPT-2's ' ?' before cl100k's words, which accept any character but letters, numbers, CR and LF.",
        r"Write [^\r\n\p{L}\p{N}]?+ before \p{L}++.",
        CL100K.replace(r"[^\r\n\p{L}\p{N}]?+", " ?"),
        name="cl100k",
    ),
    Row(
        "cl100k-digits-from-the-right",
        "SPLIT-CL100K-3",
        "Groups the digits of cl100k's numbers from the right, as people write thousands.",
        r"Cut from the left: \p{N}{1,3}, without a lookahead.",
        CL100K.replace(r"\p{N}{1,3}+", r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"),
        name="cl100k",
    ),
    Row(
        "cl100k-punctuation-without-line-breaks",
        "SPLIT-CL100K-4",
        r"Leaves out the [\r\n]* after cl100k's punctuation, which GPT-2's pattern does not have.",
        r"Write ' ?[^\s\p{L}\p{N}]++[\r\n]*+'.",
        CL100K.replace(r"[\r\n]*+", ""),
        name="cl100k",
    ),
    Row(
        "llama3-as-cl100k",
        "SPLIT-LLAMA3-1",
        "Uses today's string of cl100k for Llama 3, whose pattern is cl100k's of 2023.",
        r"Use the string of 2023, which has no \s++$.",
        CL100K,
        name="llama3",
    ),
    Row(
        "qwen2-as-llama3",
        "SPLIT-QWEN2-1",
        r"Uses Llama 3's string for Qwen2, which differs in \p{N} only, so that digits come in threes.",
        r"Write \p{N} for \p{N}{1,3}.",
        PATTERNS["llama3"],
        name="qwen2",
    ),
    Row(
        "o200k-without-case",
        "SPLIT-O200K-1",
        "Writes cl100k's run of letters for o200k's two similar alternatives, and does not cut camelCase.",
        "Match upper case before lower case, and upper case by itself, as o200k's first two alternatives do.",
        r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|" + O200K[O200K.index(r"\p{N}{1,3}|") :],
        name="o200k",
    ),
    Row(
        "o200k-without-marks",
        "SPLIT-O200K-2",
        r"Leaves \p{M} out of o200k's letters, because no other pattern of OpenAI has it.",
        r"Keep \p{M} in all four classes.",
        O200K.replace(r"\p{M}", ""),
        name="o200k",
    ),
    Row(
        "o200k-contractions-apart",
        "SPLIT-O200K-3",
        "Separates contractions under o200k as under cl100k, though they end the word there.",
        "Put (?i:'s|'t|'re|'ve|'m|'ll|'d)? at the end of the alternatives for words.",
        f"(?i:{CONTRACTIONS})|" + O200K.replace(f"(?i:{CONTRACTIONS})?", ""),
        name="o200k",
    ),
    Row(
        "o200k-slash-apart",
        "SPLIT-O200K-6",
        r"Writes [\r\n]* after o200k's punctuation, as cl100k has it, which cuts off a slash after a line break.",
        r"Write [\r\n/]*.",
        O200K.replace(r"[\r\n/]*", r"[\r\n]*"),
        name="o200k",
        evidence="onnxruntime-extensions 0.15.2 (bpe_utils.hpp)",
    ),
    Row(
        "none-by-dot",
        "SPLIT-NONE-1",
        "Writes .+ for the whole text, but the dot stops at line breaks, which become pre-tokens.",
        r"Write [\s\S]+, use the flag DOTALL, or do not split at all.",
        ".+",
        name="none",
    ),
    Row(
        "none-as-default",
        "SPLIT-NONE-1",
        "Treats the pattern none as if no pattern were given, and splits with GPT-2's.",
        "Distinguish none, which asks for no split, from None, which asks for the default.",
        GPT2,
        name="none",
        evidence="tokie 0.1.4",
    ),
    Row(
        "triads-from-the-left",
        "SPLIT-TRIADS-2",
        r"Writes cl100k's \p{N}{1,3} for digits under triads, which cuts them from the left.",
        r"Look ahead to the end of the run: \p{N}{1,3}(?=(?:\p{N}{3}){0,9}(?!\p{N})).",
        TRIADS.replace(r"(?=(?:\p{N}{3}){0,9}(?!\p{N}))", ""),
        name="triads",
    ),
    Row(
        "triads-contractions-cut-off",
        "SPLIT-TRIADS-1",
        "Puts the contractions of cl100k before the words of triads, which also cuts O'Reilly and 'save.",
        "Remove the contractions: an apostrophe and the letters after it are a word.",
        f"['\u2019](?i:[sdmt]|ll|ve|re)|{TRIADS}",
        name="triads",
    ),
    Row(
        "triads-curly-apostrophe-apart",
        "SPLIT-TRIADS-1",
        "Allows a straight apostrophe before the words of triads, and takes the curly one for punctuation.",
        "Allow any character before a word but letters, numbers, CR and LF.",
        TRIADS.replace(r"[^\r\n\p{L}\p{N}]?", "[^\\r\\n\\p{L}\\p{N}\u2019]?"),
        name="triads",
    ),
    Row(
        "triads-without-marks",
        "SPLIT-TRIADS-1",
        r"Writes \p{L}+ for the words of triads, as most patterns do, so that a mark ends the word.",
        r"Write \p{L}[\p{L}\p{M}]*.",
        TRIADS.replace(r"\p{L}[\p{L}\p{M}]*", r"\p{L}+"),
        name="triads",
    ),
    Row(
        "triads-thousands-of-four-digits",
        "SPLIT-TRIADS-3",
        "Takes any three digits after a separator for thousands, even those of 1,2345.",
        r"Look ahead for the end of the digits: [,_]\p{N}{3}(?!\p{N}).",
        TRIADS.replace(r"[,_]\p{N}{3}(?!\p{N})", r"[,_]\p{N}{3}"),
        name="triads",
    ),
    Row(
        "triads-decimals-from-the-right",
        "SPLIT-TRIADS-4",
        "Leaves out the lookbehind that distinguishes decimals, because some engines have none.",
        "Cut the digits after a point from the left: 3 .141 592 65.",
        regex.sub(r"\(\?<=.*?\)\\p\{N\}\{1,3\}\|", "", TRIADS),
        name="triads",
    ),
    Row(
        "triads-exponents-anywhere",
        "SPLIT-TRIADS-5",
        "Takes every e before digits for an exponent if a pre-token begins there, which cuts names.",
        r"Look behind: an exponent follows a number, or begins the text, (?<!\P{N}).",
        TRIADS.replace(r"(?<!\P{N})", ""),
        name="triads",
    ),
    Row(
        "triads-percent-of-formats",
        "SPLIT-TRIADS-6",
        "Takes every percent sign after digits with them, even that of 5%3 and of 10%d.",
        r"Look ahead: %(?![\p{L}\p{N}]).",
        TRIADS.replace(r"(?:%(?![\p{L}\p{N}]))?", "%?"),
        name="triads",
    ),
)


class _Pattern(Encoder):
    """Splits by the regular expression `wrong` if the pattern is the one called `name`."""

    row: Row

    def split(self, segment: str) -> list[str]:
        if self.pattern != PATTERNS[self.row.name]:
            return super().split(segment)
        if self.row.findall:
            return regex.findall(self.row.wrong, segment)
        return textbook.split(segment, self.row.wrong)


def _tokenizer(row: Row) -> type[Encoder]:
    """Return the class of a row, named after its id as if it were written out in this module."""
    name = "".join(part[0].upper() + part[1:] for part in row.id.split("-"))
    texts = {"clause": row.clause, "fix": row.fix, "evidence": row.evidence, "__doc__": row.sentence}
    return type(name, (_Pattern,), {"row": row, "__module__": __name__, **texts})


globals().update({tokenizer.__name__: tokenizer for tokenizer in map(_tokenizer, PATTERN_BUGS)})


# What no regular expression describes


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


class LettersBeyondAscii(_Mistaken):
    """Takes all bytes from 128 on for letters, as ports to C do, so that emoji become parts of words."""

    clause = "SPLIT-UNICODE-1"
    fix = "Classify code points by their general category, not bytes."

    def mistaken(self, character: str) -> str:
        return "a" if character > "\x7f" else character


class LettersOfBasicPlane(_Mistaken):
    """Sees UTF-16 units, as JavaScript without the flag u does: no letters or numbers beyond U+FFFF."""

    clause = "SPLIT-UNICODE-1"
    fix = "Match code points, not UTF-16 units: in JavaScript, use the flag u."

    def mistaken(self, character: str) -> str:
        return "." if character > "\uffff" else character


class WordsByRe(Encoder):
    r"""Translates the pattern for `re` with [^\W\d_] and \d, which takes ½ and Ⅷ for letters."""

    clause = "SPLIT-UNICODE-1"
    fix = r"Use the package regex with the pattern unchanged: `re` has no \p{L}, and no class equals it."

    def split(self, segment: str) -> list[str]:
        wrong = rf"{CONTRACTIONS}| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+"
        return re.findall(wrong, segment) if self.pattern == GPT2 else super().split(segment)


class LinesSplitApart(Encoder):
    """Splits each line separately to bound the memory, so that white space across line breaks is cut."""

    clause = "SPLIT-SPACE-1"
    fix = "Match over the whole segment; finditer needs no copy of it."
    evidence = "gigabpe 0.1.0 in training"

    def split(self, segment: str) -> list[str]:
        return [
            piece for line in segment.splitlines(keepends=True) for piece in super(LinesSplitApart, self).split(line)
        ]


class WhiteSpaceDropped(Encoder):
    """Skips pre-tokens of white space, `if piece.strip()`, because they look empty."""

    clause = "SPLIT-LOSSLESS-1"
    fix = "Encode every pre-token: white space is text."

    def split(self, segment: str) -> list[str]:
        return [piece for piece in super().split(segment) if piece.strip()]


class WordsByStrSplit(Encoder):
    """Uses `str.split` and puts a space before each word but the first: tabs, line breaks and runs are lost."""

    clause = "SPLIT-LOSSLESS-1"
    fix = "Collect the matches of GPT-2's pattern; joined, they are the text."

    def split(self, segment: str) -> list[str]:
        return re.findall(r" ?\S+", " ".join(segment.split()))


class PrefixSpace(Encoder):
    """Puts a space before the text, as add_prefix_space does by default in some libraries."""

    clause = "BYTES-TEXT-2"
    fix = "Encode the text unchanged: add_prefix_space=False."
    evidence = "Hugging Face tokenizers (ByteLevel's default)"

    def split(self, segment: str) -> list[str]:
        return super().split(segment if segment[0].isspace() else f" {segment}")


class WhiteSpaceAscii(_Mistaken):
    r"""Limits \s to ASCII, as Java, Go and RE2 do, so that U+00A0 and U+3000 are punctuation."""

    clause = "SPLIT-SPACE-3"
    fix = r"Use Unicode's White_Space: (?U) in Java, [\s\v\p{Z}\x85] in Go."
    evidence = r"golang/go#39405: \s is [\t\n\f\r ]"

    def mistaken(self, character: str) -> str:
        return "." if character > "\x7f" and character.isspace() else character


class WhiteSpaceOfJavascript(_Mistaken):
    r"""Uses ECMAScript's \s, which contains U+FEFF and lacks U+0085."""

    clause = "SPLIT-SPACE-3"
    fix = r"Use \p{White_Space} with the flag u in JavaScript."
    evidence = "js-tiktoken 1.0.21, gpt-tokenizer 4.0.0, @huggingface/tokenizers 0.2.0, ai-tokenizer 1.0.6"

    def mistaken(self, character: str) -> str:
        return {"\ufeff": "\t", "\x85": "."}.get(character, character)


class WhiteSpaceOfPython(_Mistaken):
    r"""Uses str.isspace or the \s of `re`, which contain the separators U+001C to U+001F."""

    clause = "SPLIT-SPACE-3"
    fix = r"Use the \s of the package regex, which is Unicode's White_Space."
    evidence = "Python's re and str.isspace"

    def mistaken(self, character: str) -> str:
        return "\t" if "\x1c" <= character <= "\x1f" else character


class FenceMissing(Encoder):
    """Merges over the whole text, without any split, as the simplest textbook code does."""

    clause = "SPLIT-FENCE-1"
    fix = "Split first, and merge inside each pre-token."
    evidence = "minbpe's BasicTokenizer; toktokenizer 0.2.0"

    def split(self, segment: str) -> list[str]:
        return [segment]


class PatternIgnored(Encoder):
    """Accepts the parameter `pattern` and splits with GPT-2's pattern, a constant of the module."""

    clause = "SPLIT-NAME-1"
    fix = "Keep the pattern of the constructor: self.pattern = regex.compile(pattern)."
    evidence = "tokie 0.1.4 for patterns it does not recognise"

    def split(self, segment: str) -> list[str]:
        return textbook.split(segment)


class Qwen2Normalised(Encoder):
    """Normalises to NFC under Qwen2's pattern, a step of Qwen2's tokenizer outside its split."""

    clause = "SPLIT-QWEN2-1"
    fix = "Split the text unchanged."
    evidence = "Qwen2 in transformers (tokenization_qwen2.py)"

    def prepare(self, text: str) -> str:
        return unicodedata.normalize("NFC", text) if self.pattern == PATTERNS["qwen2"] else text


class WhiteSpaceOfPcre(_Mistaken):
    r"""Uses the \s of PCRE2, which contains U+180E, white space no longer since Unicode 6.3."""

    clause = "SPLIT-SPACE-3"
    fix = r"Use Unicode's White_Space: \s of the package regex, or a set of code points."
    evidence = "fastokens 0.3.5"

    def mistaken(self, character: str) -> str:
        return "\t" if character == "\u180e" else character


class PatternOverBytes(Encoder):
    """Applies the pattern to the UTF-8 bytes, of which those from 128 on are no letters, digits or white space."""

    clause = "SPLIT-UNICODE-1"
    fix = "Apply the pattern to the text, and encode each pre-token to bytes afterwards."

    def encode_segment(self, segment: str) -> list[int]:
        pieces = [found.group() for found in regex.finditer(self.pattern.encode("utf-8"), segment.encode("utf-8"))]
        return [self.ids[token] for piece in pieces for token in self.merge(tuple(bytes([byte]) for byte in piece))]


class ShortTextsLookedUp(Encoder):
    """Looks a text of fewer than ten characters up in the vocabulary before it splits it."""

    clause = "SPLIT-FENCE-1"
    fix = "Split every text, and look up pre-tokens at most."
    evidence = "npm:ai-tokenizer@1.0.6"

    def encode_segment(self, segment: str) -> list[int]:
        token = segment.encode("utf-8")
        return [self.ids[token]] if len(segment) < 10 and token in self.ids else super().encode_segment(segment)
