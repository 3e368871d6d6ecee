"""Incorrect encoders: the text, the atoms, the order of merges, the lookup of ranks, ids, caches."""

from __future__ import annotations

import heapq
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

from bpe_conformance.fixtures import Merge, spell, unspell
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Word

from .correct import Encoder


def _join(word: Word, here: int) -> Word:
    """Return the word with the tokens at `here` and after it joined."""
    return (*word[:here], word[here] + word[here + 1], *word[here + 2 :])


# The text


class EncodesNfc(Encoder):
    """Normalises the text to NFC, as some tokenizers do to save tokens."""

    clause = "BYTES-TEXT-1"
    fix = "Encode the text unchanged; leave normalisation to the caller."
    evidence = "Qwen2 in transformers (tokenization_qwen2.py)"

    def prepare(self, text: str) -> str:
        return unicodedata.normalize("NFC", text)


class EncodesNfkc(Encoder):
    """Normalises the text to NFKC, as sentencepiece does by default: ﬁ becomes fi, ½ becomes 1⁄2."""

    clause = "BYTES-TEXT-1"
    fix = "Encode the text unchanged, without unicodedata.normalize."
    evidence = "sentencepiece (nmt_nfkc, its default)"

    def prepare(self, text: str) -> str:
        return unicodedata.normalize("NFKC", text)


class EncodesStripped(Encoder):
    """Strips the text, a habit from reading lines."""

    clause = "BYTES-TEXT-2"
    fix = "Remove text.strip()."

    def prepare(self, text: str) -> str:
        return text.strip()


class EncodesLowerCase(Encoder):
    """Converts the text to lower case, as uncased models such as BERT do."""

    clause = "BYTES-TEXT-2"
    fix = "Remove text.lower()."

    def prepare(self, text: str) -> str:
        return text.lower()


class EncodesUnixLineEnds(Encoder):
    """Turns CRLF and CR into LF, as a file opened in text mode does."""

    clause = "BYTES-TEXT-2"
    fix = "Keep CR; open files with newline='' or as bytes."

    def prepare(self, text: str) -> str:
        return text.replace("\r\n", "\n").replace("\r", "\n")


class EncodesWithoutBom(Encoder):
    """Drops U+FEFF at the start as a byte order mark, which it is only in files."""

    clause = "BYTES-TEXT-3"
    fix = "Encode U+FEFF like any other character; leave utf-8-sig to code that reads files."
    evidence = "one step from npm:gpt-tokenizer@4.0.0 and ai-tokenizer@1.0.6, which lose EF BB BF in lookups"

    def prepare(self, text: str) -> str:
        return text.removeprefix("\ufeff")


class EncodesUpToNul(Encoder):
    """Passes the text to C as a NUL-terminated string, which ends at the first U+0000."""

    clause = "BYTES-TEXT-3"
    fix = "Pass the length with the bytes: std::string(data, size), PyUnicode_AsUTF8AndSize."
    evidence = "onnxruntime-extensions 0.15.2"

    def prepare(self, text: str) -> str:
        return text.partition("\0")[0]


# Atoms


class CharactersSkipped(Encoder):
    """Looks up characters instead of bytes and skips those without an entry, as word-level code does."""

    clause = "BYTES-ATOM-1"
    fix = "Start from the bytes, which all have an entry: pre_token.encode('utf-8')."

    def atoms(self, pre_token: str) -> Word:
        return tuple(token for token in (character.encode() for character in pre_token) if token in self.ids)


class CharactersAsLatin1(Encoder):
    """Uses ord(character) as the byte, which fails for everything from U+0080 on."""

    clause = "BYTES-ATOM-1"
    fix = "Encode as UTF-8, not as Latin-1: pre_token.encode('utf-8')."

    def atoms(self, pre_token: str) -> Word:
        return tuple(bytes([byte]) for byte in pre_token.encode("latin-1", errors="replace"))


class CharactersAsSurrogates(Encoder):
    """Writes each half of a surrogate pair as three bytes, as code over JavaScript or Java chars does."""

    clause = "BYTES-ATOM-1"
    fix = "Use TextEncoder (JavaScript) or getBytes(UTF_8) (Java): four bytes beyond U+FFFF."

    def atoms(self, pre_token: str) -> Word:
        units = pre_token.encode("utf-16-be")
        halves = "".join(chr(high << 8 | low) for high, low in zip(units[::2], units[1::2], strict=True))
        return tuple(bytes([byte]) for byte in halves.encode("utf-8", errors="surrogatepass"))


# Nothing, too much and missing entries


class EmptyTextRaises(Encoder):
    """Reads the last id to see whether the text has ended, and raises IndexError if there is none."""

    clause = "BYTES-EMPTY-1"
    fix = "Return [] for the empty text."

    def encode(self, text: str) -> list[int]:
        ids = super().encode(text)
        return [*ids[:-1], ids[-1]]


class BeginningMarked(Encoder):
    """Puts the first special token before every text, as chat models expect it."""

    clause = "BYTES-EMPTY-1"
    fix = "Add no token that the text does not spell; leave that to the caller."
    evidence = "add_bos_token in Hugging Face's Llama tokenizers"

    def encode(self, text: str) -> list[int]:
        return [*map(self.special_id, self.special[:1]), *super().encode(text)]


class MissingEntriesSkipped(Encoder):
    """Skips a byte or token without a vocabulary entry, with `if token in ids`, so that text vanishes."""

    clause = "ERROR-TABLE-1"
    fix = "Look the id up with ids[token], which raises KeyError, or better check the table in the constructor."
    evidence = "Hugging Face tokenizers 0.23.3, kitoken 0.11.1, js-tiktoken 1.0.21; ollama/ollama#15232"

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        needed = {bytes([byte]) for byte in range(256)}
        needed |= {token for left, right in merges for token in (left, right, left + right)}
        self.missing = dict(enumerate(sorted(needed - set(vocab.values())), start=2**30))
        super().__init__({**vocab, **self.missing}, merges, special_tokens, pattern)

    def encode_segment(self, segment: str) -> list[int]:
        return [index for index in super().encode_segment(segment) if index not in self.missing]


class MissingEntriesAsZero(MissingEntriesSkipped):
    """Encodes a byte or token without a vocabulary entry as 0, with `ids.get(token, 0)`."""

    clause = "ERROR-TABLE-1"
    fix = "Look the id up with ids[token], which raises KeyError, or better check the table in the constructor."
    evidence = "paiml/aprender#3726 (all non-ASCII bytes); meta-pytorch/tokenizers#162"

    def encode_segment(self, segment: str) -> list[int]:
        return [0 if index in self.missing else index for index in Encoder.encode_segment(self, segment)]


class NoMergesRefused(Encoder):
    """Takes a vocabulary without merges for an untrained tokenizer, with `if not self.merges`, and raises an error."""

    clause = "BYTES-ALPHABET-1"
    fix = "Accept an empty merge list: then each byte is a token."
    evidence = "bytetok 0.4.0, tinybpe 1.0.0"

    def encode(self, text: str) -> list[int]:
        if not self.merges:
            raise ValueError("train the tokenizer first")
        return super().encode(text)


# The order of merges


class GreedyLeftToRight(Encoder):
    """Merges the leftmost pair that is in the merge list, instead of the pair that was learned first."""

    clause = "MERGE-ORDER-1"
    fix = "Compare all adjacent pairs, merge the one with the lowest rank, and repeat."
    evidence = "rasbt/LLMs-from-scratch#558: 'Hello,' did not encode as GPT-2 encodes it"

    def merge(self, word: Word) -> Word:
        here = 0
        while here + 1 < len(word):
            if word[here : here + 2] in self.ranks:
                word, here = _join(word, here), 0
            else:
                here += 1
        return word


class LongestMatch(Encoder):
    """Takes the longest vocabulary entry that fits, from left to right, as WordPiece does, and no merges."""

    clause = "MERGE-ORDER-1"
    fix = "Start from bytes, and merge the adjacent pair with the lowest rank until none is left."
    evidence = "paiml/aprender#3726: greedy longest match without merges"

    def merge(self, word: Word) -> Word:
        text, tokens = b"".join(word), list[bytes]()
        while text:
            fitting = (text[:size] for size in range(len(text), 0, -1) if text[:size] in self.ids)
            tokens.append(next(fitting))
            text = text[len(tokens[-1]) :]
        return tuple(tokens)


class FewestTokens(Encoder):
    """Takes the fewest tokens that spell the pre-token, in the belief that BPE minimises their number."""

    clause = "MERGE-ORDER-1"
    fix = "Start from bytes, and merge the adjacent pair with the lowest rank until none is left."
    evidence = "proposed in openai/tiktoken#333, expected in #99"

    @cached_property
    def longest(self) -> int:
        """The length of the longest token in bytes."""
        return max(map(len, self.ids))

    def merge(self, word: Word) -> Word:
        data = b"".join(word)
        best: list[Word] = [()]
        for end in range(1, len(data) + 1):
            starts = range(max(0, end - self.longest), end)
            best.append(
                min(((*best[start], data[start:end]) for start in starts if data[start:end] in self.ids), key=len)
            )
        return best[-1]


class SinglePass(Encoder):
    """Goes over the pre-token once and merges each token with the one before it if that pair is a merge."""

    clause = "MERGE-FULL-1"
    fix = "Repeat until no adjacent pair is a merge, and merge the pair with the lowest rank each time."

    def merge(self, word: Word) -> Word:
        tokens: list[bytes] = []
        for token in word:
            if tokens and (tokens[-1], token) in self.ranks:
                tokens[-1] += token
            else:
                tokens.append(token)
        return tuple(tokens)


class InitialPairsOnly(Encoder):
    """Merges the pairs of the bytes in order of rank, and never looks at the pairs that a merge creates."""

    clause = "MERGE-FULL-1"
    fix = "Compute the adjacent pairs again after each merge."

    def merge(self, word: Word) -> Word:
        for pair in sorted(set(pairwise(word)) & self.ranks.keys(), key=self.ranks.__getitem__):
            word = textbook.replace(word, pair)
        return word


class EachMergeOnce(Encoder):
    """Goes through the merge list once and replaces only the first occurrence of each pair."""

    clause = "MERGE-FULL-1"
    fix = "Replace every occurrence of the pair before you continue with the next."

    def merge(self, word: Word) -> Word:
        last = -1
        while True:
            places = [(self.ranks.get(pair, -1), here) for here, pair in enumerate(pairwise(word))]
            later = [place for place in places if place[0] > last]
            if not later:
                return word
            last, here = min(later)
            word = _join(word, here)


class RightmostOfEquals(Encoder):
    """Keeps pair -> position in a dict, in which the last occurrence of a pair wins: aaa ends as a·aa."""

    clause = "MERGE-LEFT-1"
    fix = "Take the leftmost occurrence: min((rank, position)) over all positions."
    evidence = "riptoken 0.2.4 from 500 bytes on; toktokenizer 0.2.0"

    def merge(self, word: Word) -> Word:
        while places := {pair: here for here, pair in enumerate(pairwise(word)) if pair in self.ranks}:
            word = _join(word, places[min(places, key=lambda pair: self.ranks[pair])])
        return word


class OverlapsMerged(Encoder):
    """Finds all occurrences of the best pair and merges each, overlapping ones too: aaa becomes aa·aa."""

    clause = "MERGE-LEFT-1"
    fix = "Skip both parts after each replacement."

    def merge(self, word: Word) -> Word:
        while found := [pair for pair in pairwise(word) if pair in self.ranks]:
            best = min(found, key=lambda pair: self.ranks[pair])
            places = [here for here, pair in enumerate(pairwise(word)) if pair == best]
            left = [here for here in range(len(word)) if here in places or here - 1 not in places]
            word = tuple(best[0] + best[1] if here in places else word[here] for here in left)
        return word


class ReplacedAsText(Encoder):
    """Joins the tokens with spaces and calls str.replace, which also matches the ends of longer tokens."""

    clause = "MERGE-PAIR-1"
    fix = r"Compare whole tokens; with a regular expression, (?<!\S)a b(?!\S)."

    def merge(self, word: Word) -> Word:
        while found := [pair for pair in pairwise(word) if pair in self.ranks]:
            best = min(found, key=lambda pair: self.ranks[pair])
            left, right = spell(best[0]), spell(best[1])
            text = " ".join(map(spell, word)).replace(f"{left} {right}", left + right)
            word = tuple(map(unspell, text.split(" ")))
        return word


# Ranks and the lookup


class _Ranked(Encoder):
    """Merges by the numbers that `rank` returns; correct by itself."""

    def merge(self, word: Word) -> Word:
        while found := [(rank, i) for i, pair in enumerate(pairwise(word)) if (rank := self.rank(*pair)) is not None]:
            word = _join(word, min(found)[1])
        return word

    def rank(self, left: bytes, right: bytes) -> int | None:
        """Return the rank of a pair, or None if it is no merge."""
        return self.ranks.get((left, right))


class RankFromId(_Ranked):
    """Uses the id of the result as the rank of a merge, which holds only if ids follow the merge list."""

    clause = "MERGE-RANK-1"
    fix = "Rank by position in the list: {pair: rank for rank, pair in enumerate(merges)}."
    evidence = "tokie 0.1.4 (backtracking.rs)"

    def rank(self, left: bytes, right: bytes) -> int | None:
        return self.ids[left + right] if (left, right) in self.ranks else None


class HighestRankFirst(_Ranked):
    """Merges the pair with the highest rank first, because heapq is a min-heap and it pushes negated ranks."""

    clause = "MERGE-ORDER-1"
    fix = "Merge the pair with the lowest rank: min(pairs, key=ranks.__getitem__)."

    def rank(self, left: bytes, right: bytes) -> int | None:
        return -self.ranks[left, right] if (left, right) in self.ranks else None


class LongestResultFirst(_Ranked):
    """Merges the pair with the longest result first, in the belief that longer tokens are better."""

    clause = "MERGE-ORDER-1"
    fix = "Merge the pair with the lowest rank: min(pairs, key=ranks.__getitem__)."

    def rank(self, left: bytes, right: bytes) -> int | None:
        return -len(left + right) if (left, right) in self.ranks else None


class RankFromBytes(Encoder):
    """Ranks the concatenation of two neighbours by its id, as tiktoken does, and does not declare it."""

    clause = "MERGE-PAIR-1"
    fix = "Look the pair up, not its concatenation, or declare conventions = {'lookup': 'bytes'}."
    evidence = "tiktoken 0.14.0, where it is a convention; kitoken 0.11.1, splintr-rs 0.22.0 over a tokenizer.json"

    def merge(self, word: Word) -> Word:
        return textbook.merge_by_bytes(word, self.ids)


class PackedPairKey(Encoder):
    """Packs two ids into one integer, left << 16 | right, so that two pairs share a key from id 65,536 on."""

    clause = "MERGE-RANK-1"
    fix = "Use the pair itself as the key, or 32 bits for each id."

    @cached_property
    def packed(self) -> dict[int, int]:
        """The rank of each merge under the key of its pair."""
        return {self.pack(*pair): rank for pair, rank in self.ranks.items()}

    def pack(self, left: bytes, right: bytes) -> int:
        """Return the key of a pair."""
        return self.ids[left] << 16 | self.ids[right]

    def merge(self, word: Word) -> Word:
        while found := [
            (self.packed[k], i) for i, p in enumerate(pairwise(word)) if (k := self.pack(*p)) in self.packed
        ]:
            rank, here = min(found)
            word = (*word[:here], b"".join(self.merges[rank]), *word[here + 2 :])
        return word


class WholePreTokenFirst(Encoder):
    """Returns a pre-token that is in the vocabulary as one token, without merging."""

    clause = "MERGE-WHOLE-1"
    fix = "Remove the shortcut, or use it only for tokens that their own bytes merge to."
    evidence = "tokie 0.1.4, pytorch-tokenizers 1.5.0, onnxruntime-extensions 0.15.2; Hugging Face with ignore_merges"

    def merge(self, word: Word) -> Word:
        whole = b"".join(word)
        return (whole,) if whole in self.ids else super().merge(word)


class RankZeroFalsy(_Ranked):
    """Writes `if ranks.get(pair)`, which treats the rank 0 of the first merge as missing."""

    clause = "MERGE-ORDER-1"
    fix = "Write `pair in ranks` or `is not None`."
    evidence = "one step from meta-pytorch/tokenizers#162: id 0 as the mark of an unknown token"

    def rank(self, left: bytes, right: bytes) -> int | None:
        return self.ranks.get((left, right)) or None


class TokensAsText(_Ranked):
    """Keeps tokens as str, and loses the merges whose result is not whole characters."""

    clause = "MERGE-BYTES-1"
    fix = "Keep tokens as bytes; decode only complete outputs."
    evidence = "one step from bpetokenizer 1.2.1, which saves tokens as text"

    def rank(self, left: bytes, right: bytes) -> int | None:
        whole = "\ufffd" not in (left + right).decode("utf-8", errors="replace")
        return self.ranks.get((left, right)) if whole else None


# A heap over a linked list


class _Heap(Encoder):
    """Merges with a heap of (rank, position, pair) and links to both neighbours; correct by itself."""

    checks: ClassVar[bool] = True
    relinks: ClassVar[bool] = True
    looks_left: ClassVar[bool] = True
    looks_right: ClassVar[bool] = True

    def merge(self, word: Word) -> Word:
        tokens = [*word, b""]
        before, after = list(range(-1, len(word))), [*range(1, len(word) + 1), len(word)]
        heap = [(self.ranks[pair], here, pair) for here, pair in enumerate(pairwise(word)) if pair in self.ranks]
        heapq.heapify(heap)
        while heap:
            _, here, pair = heapq.heappop(heap)
            now = tokens[here], tokens[after[here]]
            if now != pair and (self.checks or now not in self.ranks):
                continue
            tokens[here], tokens[after[here]] = b"".join(now), b""
            after[here] = after[after[here]]
            if self.relinks:
                before[after[here]] = here
            seams = [before[here]] * self.looks_left + [here] * self.looks_right
            for place in seams:
                new = tokens[place], tokens[after[place]]
                if place >= 0 and new in self.ranks:
                    heapq.heappush(heap, (self.ranks[new], place, new))
        return tuple(token for token in tokens if token)


class HeapStaleEntries(_Heap):
    """Pops an entry from the heap and merges what is at its position now, though the pair has changed."""

    clause = "MERGE-FULL-1"
    fix = "Skip an entry whose two tokens are no longer those it was pushed for."
    checks = False


class HeapLinkNotMended(_Heap):
    """Updates the link to the next token after a merge and forgets the link back from that token."""

    clause = "MERGE-FULL-1"
    fix = "Set before[after[i]] = i as well."
    relinks = False


class LeftSeamForgotten(_Heap):
    """Pushes the pair of a merged token with its right neighbour, and forgets the one with its left."""

    clause = "MERGE-FULL-1"
    fix = "Push both new pairs: (before, merged) and (merged, after)."
    looks_left = False


class RightSeamForgotten(_Heap):
    """Pushes the pair of a merged token with its left neighbour, and forgets the one with its right."""

    clause = "MERGE-FULL-1"
    fix = "Push both new pairs: (before, merged) and (merged, after)."
    looks_right = False


# Long pre-tokens and tokens


class LongPreTokenCut(Encoder):
    """Cuts pre-tokens every 256 bytes to bound the cost, so that no merge crosses these cuts."""

    clause = "MERGE-LONG-1"
    fix = "Merge long pre-tokens whole; a heap keeps that fast."
    evidence = "proposed in openai/tiktoken#391; Llama 3 cuts at 25,000 characters"

    def merge(self, word: Word) -> Word:
        return sum((super(LongPreTokenCut, self).merge(word[i : i + 256]) for i in range(0, len(word), 256)), ())


class LongPreTokensFromTheRight(RightmostOfEquals):
    """Uses a heap of (rank, -start) from 500 bytes on, which merges the rightmost of equal pairs first."""

    clause = "MERGE-LONG-1"
    fix = "Order the heap by (rank, start): the leftmost occurrence of a pair comes first."
    evidence = "riptoken 0.2.4 (byte_pair_merge_large)"

    def merge(self, word: Word) -> Word:
        return super().merge(word) if len(word) >= 500 else Encoder.merge(self, word)


# Ids


class IdsCounted(Encoder):
    """Gives the result of a merge the id 256 + rank, whatever the vocabulary says."""

    clause = "MERGE-ID-1"
    fix = "Look the bytes of each token up in the vocabulary."
    evidence = "minbpe, lexibyte 0.3.1, bytetok 0.4.0 and others number merges so"

    @cached_property
    def counted(self) -> dict[bytes, int]:
        """The id of each token that is the result of a merge."""
        return {left + right: 256 + rank for (left, right), rank in self.ranks.items()}

    def encode_pre_token(self, pre_token: str) -> list[int]:
        return [self.counted.get(token, self.ids[token]) for token in self.merge(self.atoms(pre_token))]


class IdsOfBytesAreValues(Encoder):
    """Uses the value of a byte as its id, which holds only if the vocabulary begins with the bytes in order."""

    clause = "BYTES-ALPHABET-1"
    fix = "Look bytes up like all tokens: GPT-2's vocabulary has them in another order."
    evidence = "minbpe and its descendants"

    def encode_pre_token(self, pre_token: str) -> list[int]:
        tokens = self.merge(self.atoms(pre_token))
        return [token[0] if len(token) == 1 else self.ids[token] for token in tokens]


class IdsAreIndexes(Encoder):
    """Renumbers the vocabulary, enumerate(sorted(vocab)), which closes gaps between ids."""

    clause = "MERGE-ID-1"
    fix = "Keep the ids of the vocabulary: {token: id for id, token in vocab.items()}."
    evidence = "one step from tokie 0.1.4 and fastokens 0.3.5, which require ids without gaps"

    @cached_property
    def place(self) -> dict[int, int]:
        """The place of each id."""
        return {index: number for number, index in enumerate(sorted(self.vocab))}

    def encode_pre_token(self, pre_token: str) -> list[int]:
        return [self.place[index] for index in super().encode_pre_token(pre_token)]


class IdsOfSixteenBits(Encoder):
    """Stores ids in uint16, as tokenized corpora are, and truncates those above 65,535."""

    clause = "MERGE-ID-1"
    fix = "Use 32 bits, or choose the width by the largest id."
    evidence = "huggingface/transformers#2825; CS336 stores ids as uint16"

    def encode_pre_token(self, pre_token: str) -> list[int]:
        return [index & 0xFFFF for index in super().encode_pre_token(pre_token)]


# Caches


class CacheOfAllInstances(Encoder):
    """Keeps results in a cache of the class, as @lru_cache on a function does, so that instances share it."""

    clause = "ERROR-STATE-1"
    fix = "Create the cache in __init__: self.cache = {}."
    varies = True
    cache: ClassVar[dict[str, list[int]]] = {}

    def encode_pre_token(self, pre_token: str) -> list[int]:
        if pre_token not in self.cache:
            self.cache[pre_token] = super().encode_pre_token(pre_token)
        return self.cache[pre_token]


class CacheHandsItsListOut(Encoder):
    """Returns the list in its cache, so that a caller who changes that list changes later answers."""

    clause = "LAW-PURE-1"
    fix = "Return a copy, list(cached), or keep tuples."

    def encode(self, text: str) -> list[int]:
        cache: dict[str, list[int]] = self.__dict__.setdefault("cache", {})
        if text not in cache:
            cache[text] = super().encode(text)
        return cache[text]
