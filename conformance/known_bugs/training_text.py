"""Incorrect trainers: special tokens, the text and its split, merges, vocabulary and ids."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from bpe_conformance.fixtures import Merge
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Word

from .correct import Trainer, Words

# Special tokens


class SpecialTokensNotCut(Trainer):
    """Trains on the text with its special tokens in it, and learns pieces of <|endoftext|>."""

    clause = "TRAIN-SPECIAL-1"
    fix = "Split the text at the special tokens first, and count within the parts."
    evidence = "Hugging Face tokenizers 0.23.3, gigabpe 0.1.0, gigatoken 0.10.0, where it is a convention"

    def cut(self, text: str, special: list[str]) -> list[str]:
        return [text]


class SpecialTokensIgnored(Trainer):
    """Ignores the argument special_tokens, and leaves special tokens to the caller of the trained tokenizer."""

    clause = "TRAIN-SPECIAL-5"
    fix = "Cut the text at the special tokens, count them in vocab_size, and add them to the vocabulary."
    evidence = "minbpe, rustbpe 0.1.0 and tiktoken's _educational.py train without special tokens"

    def specials(self, special_tokens: list[str]) -> list[str]:
        return []


class OnlyEndoftextCut(Trainer):
    """Cuts the text at <|endoftext|> only, because the corpora of the course contain no other special token."""

    clause = "TRAIN-SPECIAL-1"
    fix = "Cut the text at every special token of the list."
    evidence = "wind-wing234/cs336-assignment1-basics#1: one hard-coded special token"

    def cut(self, text: str, special: list[str]) -> list[str]:
        return super().cut(text, [token for token in special if token == "<|endoftext|>"])


class EndoftextAlwaysCut(Trainer):
    """Cuts the text at <|endoftext|>, listed or not, because a constant separates its documents."""

    clause = "TRAIN-SPECIAL-3"
    fix = "Cut only at the special tokens of the list."
    evidence = "wind-wing234/cs336-assignment1-basics#1: one hard-coded special token"

    def cut(self, text: str, special: list[str]) -> list[str]:
        return super().cut(text, [*special, "<|endoftext|>"])


class SpecialTokensDeleted(Trainer):
    """Deletes the special tokens and joins the text around them, as `text.replace(token, '')` does."""

    clause = "TRAIN-SPECIAL-1"
    fix = "Train on the parts separately: no merge crosses a special token."

    def cut(self, text: str, special: list[str]) -> list[str]:
        return ["".join(super().cut(text, special))]


class SpecialTokensInListOrder(Trainer):
    """Joins the special tokens to a regular expression in list order, so that <|a|> hides <|a|><|b|>."""

    clause = "TRAIN-SPECIAL-1"
    fix = "Sort them longest first: sorted(special_tokens, key=len, reverse=True)."
    evidence = "uni-tokenizer 0.1.7, ffbpe 0.1.10"

    def cut(self, text: str, special: list[str]) -> list[str]:
        return re.split("|".join(map(re.escape, special)), text) if special else [text]


class SpecialTokensNotEscaped(Trainer):
    """Joins the special tokens to a regular expression unescaped, in which <|endoftext|> is three choices."""

    clause = "TRAIN-SPECIAL-2"
    fix = 'Escape them: "|".join(re.escape(token) for token in ...).'

    def cut(self, text: str, special: list[str]) -> list[str]:
        return re.split("|".join(sorted(special, key=len, reverse=True)), text) if special else [text]


class SpecialTokensByShape(Trainer):
    """Cuts the text at everything that looks like <|name|>, listed or not."""

    clause = "TRAIN-SPECIAL-3"
    fix = "Cut only at the special tokens of the list."

    def cut(self, text: str, special: list[str]) -> list[str]:
        return re.split(r"<\|\w+\|>", text)


class SegmentsStrippedInTraining(Trainer):
    """Strips the text between special tokens, because the line breaks there look like leftovers."""

    clause = "TRAIN-SPECIAL-4"
    fix = "Keep the white space of each part."

    def cut(self, text: str, special: list[str]) -> list[str]:
        return [segment.strip() for segment in super().cut(text, special)]


class SpecialTokensInPattern(Trainer):
    """Adds the special tokens to the pattern, which splits white space before one as before a word."""

    clause = "TRAIN-SPECIAL-4"
    fix = "Cut the text at the special tokens first, then split each part by itself."

    def words(self, text: str, special: list[str], pattern: str) -> Words:
        either = "|".join([*map(re.escape, sorted(special, key=len, reverse=True)), pattern])
        counted = Counter(pre_token for pre_token in self.split(text, either) if pre_token not in special)
        return [(self.atoms(pre_token), times) for pre_token, times in counted.items()]


class EmptyListSplitsEverywhereInTraining(Trainer):
    """Joins no special tokens to an empty expression, which cuts the text into single characters."""

    clause = "TRAIN-EMPTY-1"
    fix = "Do not split if special_tokens is empty."
    evidence = "4 of 9 CS336 trainers that were tried fail on an empty list"

    def cut(self, text: str, special: list[str]) -> list[str]:
        return super().cut(text, special) if special else list(text)


# The text


class TextNormalized(Trainer):
    """Normalises the text to NFC, as other kinds of tokenizers do."""

    clause = "TRAIN-TEXT-1"
    fix = "Remove unicodedata.normalize: composed and decomposed letters are different bytes."

    def prepare(self, text: str) -> str:
        return unicodedata.normalize("NFC", text)


class TextLowerCased(Trainer):
    """Converts the text to lower case, a step kept from a word-level tokenizer."""

    clause = "TRAIN-TEXT-1"
    fix = "Train on the text unchanged."

    def prepare(self, text: str) -> str:
        return text.lower()


class TextStripped(Trainer):
    """Strips the text, as programs do with the lines of a file."""

    clause = "TRAIN-TEXT-1"
    fix = "Remove .strip(): white space at both ends is part of the text."
    evidence = "toktokenizer 0.2.0 strips and collapses white space"

    def prepare(self, text: str) -> str:
        return text.strip()


class ByteOrderMarkDroppedInTraining(Trainer):
    """Drops U+FEFF at the start, as the codec utf-8-sig and JavaScript's TextDecoder do."""

    clause = "TRAIN-TEXT-1"
    fix = "Decode as utf-8 (JavaScript: ignoreBOM: true)."

    def prepare(self, text: str) -> str:
        return text.removeprefix("\ufeff")


class LineEndsTranslated(Trainer):
    """Turns CRLF and CR into LF, because it reads the text from a file in text mode."""

    clause = "TRAIN-TEXT-1"
    fix = 'Use open(path, encoding="utf-8", newline=""), or read bytes and decode them.'

    def prepare(self, text: str) -> str:
        return text.replace("\r\n", "\n").replace("\r", "\n")


class ChunksOfFixedSize(Trainer):
    """Splits chunks of 4,096 characters separately, which cuts words and special tokens in two."""

    clause = "TRAIN-TEXT-1"
    fix = "Cut chunks only where a special token begins, or train on the whole text."
    evidence = "wind-wing234/cs336-assignment1-basics#1: chunk boundaries inside special tokens"

    def cut(self, text: str, special: list[str]) -> list[str]:
        chunks = [text[start : start + 4096] for start in range(0, len(text), 4096)]
        return [segment for chunk in chunks for segment in Trainer.cut(self, chunk, special)]


class LineByLine(Trainer):
    """Splits line by line, as a loop over a file does, so that white space across line ends is cut."""

    clause = "TRAIN-SPLIT-1"
    fix = "Apply the pattern to the whole text between special tokens."
    evidence = "gigabpe 0.1.0; tokenizers' train(files)"

    def split(self, segment: str, pattern: str) -> list[str]:
        return [word for line in segment.splitlines(keepends=True) for word in textbook.split(line, pattern)]


class NoPreTokens(Trainer):
    """Trains on the bytes of the whole text without a split, so that merges cross words."""

    clause = "TRAIN-SPLIT-1"
    fix = "Split with GPT-2's pattern and count within each pre-token."
    evidence = "minbpe's BasicTokenizer; rasbt/LLMs-from-scratch#975 fixed the same"

    def split(self, segment: str, pattern: str) -> list[str]:
        return [segment]


class SplitAtWhiteSpace(Trainer):
    """Splits with `text.split()`, which drops the white space, as word-level BPE does."""

    clause = "TRAIN-SPLIT-1"
    fix = "Split with GPT-2's pattern, in which a space belongs to the word after it."
    evidence = "subword-nmt, a word-level trainer"

    def split(self, segment: str, pattern: str) -> list[str]:
        return segment.split()


class CharacterAtoms(Trainer):
    """Starts from characters instead of bytes, as word-level BPE does, so that € is one atom."""

    clause = "TRAIN-BYTES-1"
    fix = "Start from the bytes: [bytes([byte]) for byte in pre_token.encode('utf-8')]."
    evidence = "sentencepiece, subword-nmt: characters, not bytes"

    def atoms(self, pre_token: str) -> Word:
        return tuple(character.encode("utf-8") for character in pre_token)


# Merges, vocabulary, ids


class MergesSorted(Trainer):
    """Returns the merges sorted, for a stable order, and loses the order in which it learned them."""

    clause = "TRAIN-ORDER-1"
    fix = "Append each merge to a list and return that list."

    def learn(self, words: Words, merge_count: int) -> list[Merge]:
        return sorted(super().learn(words, merge_count))


class MergesResplit(Trainer):
    """Rebuilds each merge from the new token as all bytes but the last, and the last."""

    clause = "TRAIN-ORDER-1"
    fix = "Record the two tokens that were merged."
    evidence = "one step from openai/tiktoken#60: merges rebuilt from ranks"

    def learn(self, words: Words, merge_count: int) -> list[Merge]:
        return [((left + right)[:-1], right[-1:]) for left, right in super().learn(words, merge_count)]


class SpecialTokenMissing(Trainer):
    """Leaves special tokens that the text does not contain out of the vocabulary."""

    clause = "TRAIN-SPECIAL-5"
    fix = "Add every special token of the list to the vocabulary."

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str], pattern: str | None = None) -> Trainer:
        return super().train(text, vocab_size, [token for token in special_tokens if token in text], pattern)


class SpecialTokenTwice(Trainer):
    """Gives special tokens ids before the merges and again after them."""

    clause = "TRAIN-IDS-1"
    fix = "Add each special token once."
    evidence = "gigatoken 0.10.0 with a repeated special token"

    def build_vocab(self, merges: list[Merge], special: list[str]) -> dict[int, bytes]:
        vocab = super().build_vocab(merges, special)
        return vocab | {len(vocab) + place: token.encode("utf-8") for place, token in enumerate(special)}


class SpecialTokensSorted(Trainer):
    """Numbers the special tokens longest first, because it sorted the list for its regular expression."""

    clause = "TRAIN-IDS-2"
    fix = "Sort a copy for the regular expression, and number the tokens in the order given."

    def build_vocab(self, merges: list[Merge], special: list[str]) -> dict[int, bytes]:
        return super().build_vocab(merges, sorted(special, key=len, reverse=True))


class SpecialTokensLast(Trainer):
    """Numbers the special tokens after the merges, as tiktoken and minbpe do."""

    clause = "TRAIN-IDS-2"
    fix = "Number them from 256 on, or declare id_layout: bytes-merges-specials."
    evidence = "tiktoken, minbpe, bpeasy"

    def build_vocab(self, merges: list[Merge], special: list[str]) -> dict[int, bytes]:
        return textbook.build_vocab(merges, special, id_layout="bytes-merges-specials")


class BytesOfTheTextOnly(Trainer):
    """Gives ids to the bytes that occur in the text and to no others, as character-level tokenizers do."""

    clause = "TRAIN-IDS-1"
    fix = "Begin the vocabulary with all 256 bytes."
    evidence = "Hugging Face tokenizers without initial_alphabet; gigabpe 0.1.0"

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str], pattern: str | None = None) -> Trainer:
        trained = super().train(text, vocab_size, special_tokens, pattern)
        held = text.encode("utf-8")
        trained.vocab = {index: token for index, token in trained.vocab.items() if len(token) > 1 or token in held}
        return trained


class Gpt2ByteIds(Trainer):
    """Numbers the bytes in GPT-2's order, in which `!` is 0, without declaring it."""

    clause = "TRAIN-IDS-2"
    fix = "Use {b: bytes([b]) for b in range(256)}, or declare byte_order: gpt2."
    evidence = "Hugging Face tokenizers (ByteLevel.alphabet)"

    def build_vocab(self, merges: list[Merge], special: list[str]) -> dict[int, bytes]:
        return textbook.build_vocab(merges, special, byte_order="gpt2")
