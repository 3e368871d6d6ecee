"""Wrong trainers: special tokens, the text and how it is split, the vocabulary."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from bpe_conformance.fixtures import Merge
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Word

from .plain import Trainer, Words

# Special tokens


class SpecialTokensNotCut(Trainer):
    """Trains on the text with its special tokens in it, and learns pieces of <|endoftext|>."""

    clause = "TRAIN-SPECIAL-1"
    fix = "Split the text at the special tokens first and count within the parts."

    @classmethod
    def cut(cls, text: str, special: list[str]) -> list[str]:
        return [text]


class SpecialTokensDeleted(Trainer):
    """Deletes the special tokens and joins what stood around them, as `text.replace(token, '')` does."""

    clause = "TRAIN-SPECIAL-1"
    fix = "Train on the parts one by one: a special token is a boundary."

    @classmethod
    def cut(cls, text: str, special: list[str]) -> list[str]:
        return ["".join(super().cut(text, special))]


class SpecialTokensInListOrder(Trainer):
    """Joins the special tokens into a regular expression in list order, where <|a|> hides <|a|><|b|>."""

    clause = "TRAIN-SPECIAL-1"
    fix = "Sort them longest first: sorted(special_tokens, key=len, reverse=True)."

    @classmethod
    def cut(cls, text: str, special: list[str]) -> list[str]:
        return re.split("|".join(map(re.escape, special)), text) if special else [text]


class SpecialTokensNotEscaped(Trainer):
    """Puts the special tokens into a regular expression as they are: <|endoftext|> is a choice of three."""

    clause = "TRAIN-SPECIAL-2"
    fix = 'Escape them: "|".join(re.escape(token) for token in ...).'

    @classmethod
    def cut(cls, text: str, special: list[str]) -> list[str]:
        return re.split("|".join(sorted(special, key=len, reverse=True)), text) if special else [text]


class SpecialTokensByShape(Trainer):
    """Cuts at everything that looks like <|name|>, listed or not."""

    clause = "TRAIN-SPECIAL-3"
    fix = "Cut at the special tokens of the list only."

    @classmethod
    def cut(cls, text: str, special: list[str]) -> list[str]:
        return re.split(r"<\|\w+\|>", text)


class SegmentsStrippedInTraining(Trainer):
    """Strips the text between special tokens, because the line ends around them look like leftovers of the file."""

    clause = "TRAIN-SPECIAL-4"
    fix = "Keep the white space of each part."

    @classmethod
    def cut(cls, text: str, special: list[str]) -> list[str]:
        return [segment.strip() for segment in super().cut(text, special)]


class SpecialTokensInPattern(Trainer):
    """Adds the special tokens to the pattern, so that white space before one is split as before a word."""

    clause = "TRAIN-SPECIAL-4"
    fix = "Cut the text at the special tokens first, then split each part alone."

    @classmethod
    def words(cls, text: str, special: list[str], pattern: str) -> Words:
        either = "|".join([*map(re.escape, sorted(special, key=len, reverse=True)), pattern])
        counted = Counter(pre_token for pre_token in cls.split(text, either) if pre_token not in special)
        return [(cls.atoms(pre_token), times) for pre_token, times in counted.items()]


class EmptyListSplitsEverywhereInTraining(Trainer):
    """Makes the empty pattern of no special tokens, which parts the text into single characters."""

    clause = "TRAIN-EMPTY-1"
    fix = "if not special_tokens: do not split."

    @classmethod
    def cut(cls, text: str, special: list[str]) -> list[str]:
        return super().cut(text, special) if special else list(text)


# The text


class TextNormalized(Trainer):
    """Normalises the text to NFC, as tokenizers of other kinds do."""

    clause = "TRAIN-TEXT-1"
    fix = "Leave unicodedata.normalize out: composed and decomposed letters are different bytes."

    @classmethod
    def prepare(cls, text: str) -> str:
        return unicodedata.normalize("NFC", text)


class TextLowerCased(Trainer):
    """Trains on lower-cased text, kept from a word-level tokenizer."""

    clause = "TRAIN-TEXT-1"
    fix = "Take the text as it is."

    @classmethod
    def prepare(cls, text: str) -> str:
        return text.lower()


class TextStripped(Trainer):
    """Strips the text, as one does with lines of a file."""

    clause = "TRAIN-TEXT-1"
    fix = "Leave .strip() out: white space at both ends is trained on too."

    @classmethod
    def prepare(cls, text: str) -> str:
        return text.strip()


class ByteOrderMarkDroppedInTraining(Trainer):
    """Drops U+FEFF at the beginning, as the codec utf-8-sig and JavaScript's TextDecoder do."""

    clause = "TRAIN-TEXT-1"
    fix = "Decode as utf-8 (JavaScript: ignoreBOM: true)."

    @classmethod
    def prepare(cls, text: str) -> str:
        return text.removeprefix("\ufeff")


class LineEndsTranslated(Trainer):
    """Turns CRLF and CR into LF, because the text goes through a file that is opened in text mode."""

    clause = "TRAIN-TEXT-1"
    fix = 'open(path, encoding="utf-8", newline=""), or read bytes and decode them.'

    @classmethod
    def prepare(cls, text: str) -> str:
        return text.replace("\r\n", "\n").replace("\r", "\n")


class ChunksOfFixedSize(Trainer):
    """Reads the text in chunks of 4,096 characters and splits each alone, which cuts words and special tokens."""

    clause = "TRAIN-TEXT-1"
    fix = "Cut chunks only where a special token begins, or train on the whole text."

    @classmethod
    def cut(cls, text: str, special: list[str]) -> list[str]:
        chunks = [text[start : start + 4096] for start in range(0, len(text), 4096)]
        return [segment for chunk in chunks for segment in Trainer.cut(chunk, special)]


class LineByLine(Trainer):
    """Splits line by line, as a loop over a file does: white space that spans line ends is cut."""

    clause = "TRAIN-SPLIT-1"
    fix = "Split the whole text between special tokens with the pattern."

    @classmethod
    def split(cls, segment: str, pattern: str) -> list[str]:
        return [word for line in segment.splitlines(keepends=True) for word in textbook.split(line, pattern)]


class NoPreTokens(Trainer):
    """Trains on the bytes of the whole text, as minbpe's BasicTokenizer does, so that merges cross words."""

    clause = "TRAIN-SPLIT-1"
    fix = "Split with GPT-2's pattern and count within each pre-token."

    @classmethod
    def split(cls, segment: str, pattern: str) -> list[str]:
        return [segment]


class SplitAtWhiteSpace(Trainer):
    """Splits with `text.split()`, which drops the white space, as word-level BPE does."""

    clause = "TRAIN-SPLIT-1"
    fix = "Split with GPT-2's pattern, in which a space belongs to the word behind it."

    @classmethod
    def split(cls, segment: str, pattern: str) -> list[str]:
        return segment.split()


class CharacterAtoms(Trainer):
    """Starts from characters instead of bytes, as word-level BPE code does; a multibyte character is one atom."""

    clause = "TRAIN-BYTES-1"
    fix = "Start from the bytes: [bytes([byte]) for byte in pre_token.encode('utf-8')]."

    @classmethod
    def atoms(cls, pre_token: str) -> Word:
        return tuple(character.encode("utf-8") for character in pre_token)


# Merges, vocabulary, ids


class MergesSorted(Trainer):
    """Returns the merges sorted, to have a stable order, and loses the order in which they were learned."""

    clause = "TRAIN-ORDER-1"
    fix = "Keep a list and append each merge as it is made."

    @classmethod
    def learn(cls, words: Words, wanted: int) -> list[Merge]:
        return sorted(super().learn(words, wanted))


class MergesResplit(Trainer):
    """Records a merge as all bytes but the last and the last one, made again from the new token."""

    clause = "TRAIN-ORDER-1"
    fix = "Record the two tokens that met."

    @classmethod
    def learn(cls, words: Words, wanted: int) -> list[Merge]:
        return [((left + right)[:-1], right[-1:]) for left, right in super().learn(words, wanted)]


class SpecialTokenMissing(Trainer):
    """Leaves out special tokens that the text does not hold."""

    clause = "TRAIN-SPECIAL-5"
    fix = "Add every special token of the list to the vocabulary."

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str], pattern: str | None = None) -> Trainer:
        return super().train(text, vocab_size, [token for token in special_tokens if token in text], pattern)


class SpecialTokenTwice(Trainer):
    """Gives special tokens ids in front of the merges and again behind them."""

    clause = "TRAIN-IDS-1"
    fix = "Add each special token in one place."

    @classmethod
    def number(cls, merges: list[Merge], special: list[str]) -> dict[int, bytes]:
        vocab = super().number(merges, special)
        return vocab | {len(vocab) + place: token.encode("utf-8") for place, token in enumerate(special)}


class SpecialTokensSorted(Trainer):
    """Numbers the special tokens longest first, because it sorted the list for its regular expression."""

    clause = "TRAIN-IDS-2"
    fix = "Sort a copy for the regular expression and number the tokens in the order given."

    @classmethod
    def number(cls, merges: list[Merge], special: list[str]) -> dict[int, bytes]:
        return super().number(merges, sorted(special, key=len, reverse=True))


class SpecialTokensLast(Trainer):
    """Numbers the special tokens after the merges, as tiktoken and minbpe do."""

    clause = "TRAIN-IDS-2"
    fix = "Number them from 256 on; or declare id_layout: bytes-merges-specials."

    @classmethod
    def number(cls, merges: list[Merge], special: list[str]) -> dict[int, bytes]:
        return textbook.number(merges, special, id_layout="bytes-merges-specials")


class BytesOfTheTextOnly(Trainer):
    """Gives ids to the bytes that the text holds, as character-level tokenizers do, and to no others."""

    clause = "TRAIN-IDS-1"
    fix = "Begin the vocabulary with all 256 bytes."

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str], pattern: str | None = None) -> Trainer:
        trained = super().train(text, vocab_size, special_tokens, pattern)
        held = text.encode("utf-8")
        trained.vocab = {index: token for index, token in trained.vocab.items() if len(token) > 1 or token in held}
        return trained


class Gpt2ByteIds(Trainer):
    """Numbers the bytes in GPT-2's order, in which `!` is 0, without declaring it."""

    clause = "TRAIN-IDS-2"
    fix = "vocab = {b: bytes([b]) for b in range(256)}; or declare byte_order: gpt2."

    @classmethod
    def number(cls, merges: list[Merge], special: list[str]) -> dict[int, bytes]:
        return textbook.number(merges, special, byte_order="gpt2")
