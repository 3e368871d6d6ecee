"""Wrong encoders: the text, the atoms, the order of merges, the lookup, ids, caches."""

from __future__ import annotations

import heapq
import unicodedata
import zlib
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

from bpe_conformance.fixtures import Merge, spell, unspell
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Word

from .plain import Encoder


def _join(word: Word, here: int) -> Word:
    """Return the word with the tokens at `here` and after it joined."""
    return (*word[:here], word[here] + word[here + 1], *word[here + 2 :])


# The text


class EncodesNfc(Encoder):
    """Normalises to NFC first, as some tokenizers do to save tokens: a decomposed é comes back composed."""

    clause = "BYTES-TEXT-1"
    fix = "Encode the text as it is; a caller who wants NFC can ask for it."

    def prepare(self, text: str) -> str:
        return unicodedata.normalize("NFC", text)


class EncodesNfkc(Encoder):
    """Normalises to NFKC first, as sentencepiece does by default: ﬁ becomes fi and ½ three characters."""

    clause = "BYTES-TEXT-1"
    fix = "Encode the text as it is, without unicodedata.normalize."

    def prepare(self, text: str) -> str:
        return unicodedata.normalize("NFKC", text)


class EncodesStripped(Encoder):
    """Strips the text, a habit from reading lines: white space at both ends is lost."""

    clause = "BYTES-TEXT-2"
    fix = "Leave out text.strip()."

    def prepare(self, text: str) -> str:
        return text.strip()


class EncodesLowerCase(Encoder):
    """Puts the text in lower case, as uncased models of the BERT kind do."""

    clause = "BYTES-TEXT-2"
    fix = "Leave out text.lower()."

    def prepare(self, text: str) -> str:
        return text.lower()


class EncodesUnixLineEnds(Encoder):
    """Turns CR LF and CR into LF, as a file opened in text mode does."""

    clause = "BYTES-TEXT-2"
    fix = "Keep CR; open files with newline='' or as bytes."

    def prepare(self, text: str) -> str:
        return text.replace("\r\n", "\n").replace("\r", "\n")


class EncodesWithoutBom(Encoder):
    """Drops a U+FEFF at the start as a byte-order mark, which it is in files only."""

    clause = "BYTES-TEXT-3"
    fix = "Encode U+FEFF like every other character; leave utf-8-sig to readers of files."

    def prepare(self, text: str) -> str:
        return text.removeprefix("\ufeff")


class EncodesUpToNul(Encoder):
    """Hands the text to C as a NUL-terminated string, so that it ends at the first U+0000."""

    clause = "BYTES-TEXT-3"
    fix = "Pass the length along with the bytes: std::string(data, size), PyUnicode_AsUTF8AndSize."

    def prepare(self, text: str) -> str:
        return text.partition("\0")[0]


# Atoms


class CharactersSkipped(Encoder):
    """Looks characters up instead of bytes and skips those without an entry, as word-level code skips the unknown."""

    clause = "BYTES-ATOM-1"
    fix = "Start from the bytes, which all have an entry: pre_token.encode('utf-8')."

    def atoms(self, pre_token: str) -> Word:
        return tuple(token for token in (character.encode() for character in pre_token) if token in self.ids)


class CharactersAsLatin1(Encoder):
    """Takes ord(character) for the byte, which is right below U+0080; above U+00FF it gives a question mark."""

    clause = "BYTES-ATOM-1"
    fix = "Encode as UTF-8, not as Latin-1: pre_token.encode('utf-8')."

    def atoms(self, pre_token: str) -> Word:
        return tuple(bytes([byte]) for byte in pre_token.encode("latin-1", errors="replace"))


class CharactersAsSurrogates(Encoder):
    """Writes each half of a surrogate pair in three bytes, as code that goes by JavaScript's or Java's chars does."""

    clause = "BYTES-ATOM-1"
    fix = "Use TextEncoder (JavaScript), getBytes(UTF_8) (Java): four bytes beyond U+FFFF."

    def atoms(self, pre_token: str) -> Word:
        units = pre_token.encode("utf-16-be")
        halves = "".join(chr(high << 8 | low) for high, low in zip(units[::2], units[1::2], strict=True))
        return tuple(bytes([byte]) for byte in halves.encode("utf-8", errors="surrogatepass"))


# The order of merges


class EmptyTextRaises(Encoder):
    """Looks at the last id to see whether the text has ended, and raises IndexError where there is none."""

    clause = "BYTES-EMPTY-1"
    fix = "Return [] for the empty text."

    def encode(self, text: str) -> list[int]:
        ids = super().encode(text)
        return [*ids[:-1], ids[-1]]


class BeginningMarked(Encoder):
    """Puts the first special token before every text, as chat models want it."""

    clause = "BYTES-EMPTY-1"
    fix = "Add no token that the text does not spell; leave it to the caller."

    def encode(self, text: str) -> list[int]:
        return [*map(self.special_id, self.special[:1]), *super().encode(text)]


class MissingEntriesSkipped(Encoder):
    """Takes any table and skips a token without an entry, with `if token in ids`: parts of the text vanish."""

    clause = "ERROR-TABLE-1"
    fix = "Look the id up by ids[token], so that a missing entry raises KeyError; best check in the constructor."

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


class GreedyLeftToRight(Encoder):
    """Merges the leftmost pair that it finds in the table instead of the earliest learned one, in one loop."""

    clause = "MERGE-ORDER-1"
    fix = "Look at all adjacent pairs, merge the one of the lowest rank, and begin again."

    def merge(self, word: Word) -> Word:
        here = 0
        while here + 1 < len(word):
            if word[here : here + 2] in self.ranks:
                word, here = _join(word, here), 0
            else:
                here += 1
        return word


class LongestMatch(Encoder):
    """Takes the longest token of the vocabulary that fits, from left to right, as WordPiece does; merges are unused."""

    clause = "MERGE-ORDER-1"
    fix = "Start from bytes and merge the adjacent pair of the lowest rank until none is left."

    def merge(self, word: Word) -> Word:
        text, tokens = b"".join(word), list[bytes]()
        while text:
            fitting = (text[:size] for size in range(len(text), 0, -1) if text[:size] in self.ids)
            tokens.append(next(fitting))
            text = text[len(tokens[-1]) :]
        return tuple(tokens)


class EachMergeOnce(Encoder):
    """Goes through the merge list once and replaces the first place of each pair only, as str.index finds it."""

    clause = "MERGE-FULL-1"
    fix = "Replace the pair wherever it stands before going on to the next."

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
    """Keeps pair -> place in a dict, where the last place of a pair overwrites the first: aaa ends as a·aa."""

    clause = "MERGE-LEFT-1"
    fix = "Take the leftmost place: min((rank, place)) over all places."

    def merge(self, word: Word) -> Word:
        while places := {pair: here for here, pair in enumerate(pairwise(word)) if pair in self.ranks}:
            word = _join(word, places[min(places, key=lambda pair: self.ranks[pair])])
        return word


class OverlapsMerged(Encoder):
    """Finds all places of the best pair, then joins at each, overlapping ones as well: aaa becomes aa·aa."""

    clause = "MERGE-LEFT-1"
    fix = "Step over both parts after each replacement."

    def merge(self, word: Word) -> Word:
        while found := [pair for pair in pairwise(word) if pair in self.ranks]:
            best = min(found, key=lambda pair: self.ranks[pair])
            places = [here for here, pair in enumerate(pairwise(word)) if pair == best]
            left = [here for here in range(len(word)) if here in places or here - 1 not in places]
            word = tuple(best[0] + best[1] if here in places else word[here] for here in left)
        return word


class ReplacedAsText(Encoder):
    """Joins the tokens by spaces and calls str.replace, which also finds the pair at the ends of longer tokens."""

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
    """Merges rightly, and asks `rank` for each pair."""

    def merge(self, word: Word) -> Word:
        while found := [(rank, i) for i, pair in enumerate(pairwise(word)) if (rank := self.rank(*pair)) is not None]:
            word = _join(word, min(found)[1])
        return word

    def rank(self, left: bytes, right: bytes) -> int | None:
        """Return the rank of a pair, or None if it is no merge."""
        return self.ranks.get((left, right))


class RankFromId(_Ranked):
    """Takes the id of the result for the rank of a merge, which holds where ids follow the list."""

    clause = "MERGE-RANK-1"
    fix = "Rank by the place in the list: {pair: rank for rank, pair in enumerate(merges)}."

    def rank(self, left: bytes, right: bytes) -> int | None:
        return self.ids[left + right] if (left, right) in self.ranks else None


class RankFromBytes(Encoder):
    """Ranks whatever two neighbours make by its id, as tiktoken does whose tables hold no pairs, undeclared."""

    clause = "MERGE-PAIR-1"
    fix = "Look the pair up, not its concatenation; or declare conventions = {'lookup': 'bytes'}."

    def merge(self, word: Word) -> Word:
        return textbook.merge_by_bytes(word, self.ids)


class PackedPairKey(Encoder):
    """Packs two ids in one integer, left << 16 | right, which stands for two pairs once an id needs 17 bits."""

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


class PackedPairKeySeventeenBits(PackedPairKey):
    """Packs two ids as (left << 17) + right, enough for cl100k's 100,277 ids; with o200k's two pairs share a key."""

    clause = "MERGE-RANK-1"
    fix = "Use the pair itself as the key, or 32 bits for each id."

    def pack(self, left: bytes, right: bytes) -> int:
        return (self.ids[left] << 17) + self.ids[right]


class PackedPairKeyEighteenBits(PackedPairKey):
    """Packs two ids as left << 18 | right, enough for o200k's 200,019 ids; with more, two pairs share a key."""

    clause = "MERGE-RANK-1"
    fix = "Use the pair itself as the key, or 32 bits for each id."

    def pack(self, left: bytes, right: bytes) -> int:
        return self.ids[left] << 18 | self.ids[right]


class PairHashAsKey(PackedPairKey):
    """Takes a hash of 32 bits for the pair itself, left * 100003 + right, which wraps at ids from 43,000 on."""

    clause = "MERGE-RANK-1"
    fix = "Use the pair itself as the key, or compare it on a hit; 64 bits hold two ids of 32."

    def pack(self, left: bytes, right: bytes) -> int:
        return (self.ids[left] * 100_003 + self.ids[right]) & 0xFFFFFFFF


class WholePreTokenFirst(Encoder):
    """Looks the whole pre-token up in the vocabulary before merging, a shortcut that learned tables allow."""

    clause = "MERGE-WHOLE-1"
    fix = "Leave the shortcut out, or take it only for tokens that their own bytes merge to."

    def merge(self, word: Word) -> Word:
        whole = b"".join(word)
        return (whole,) if whole in self.ids else super().merge(word)


class RankZeroFalsy(_Ranked):
    """Writes `if ranks.get(pair)`, where the rank 0 of the first merge counts as none."""

    clause = "MERGE-ORDER-1"
    fix = "Ask for `pair in ranks`, or `is not None`."

    def rank(self, left: bytes, right: bytes) -> int | None:
        return self.ranks.get((left, right)) or None


class TokensAsText(_Ranked):
    """Keeps tokens as str, so that merges whose result is no whole characters are lost on the way."""

    clause = "MERGE-BYTES-1"
    fix = "Keep tokens as bytes; decode only whole outputs."

    def rank(self, left: bytes, right: bytes) -> int | None:
        whole = "\ufffd" not in (left + right).decode("utf-8", errors="replace")
        return self.ranks.get((left, right)) if whole else None


# A heap over a linked list


class _Heap(Encoder):
    """Merges rightly, with a heap of (rank, place, pair) and links to the tokens before and after each."""

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
    """Takes an entry from the heap without asking whether its pair still stands there, and merges what does."""

    clause = "MERGE-FULL-1"
    fix = "Skip an entry whose two tokens are no longer those it was made for."
    checks = False


class HeapLinkNotMended(_Heap):
    """Mends the link to the next token after a merge and forgets the link back from that token."""

    clause = "MERGE-FULL-1"
    fix = "Set before[after[here]] = here as well."
    relinks = False


class LeftSeamForgotten(_Heap):
    """Looks at the pair that a merged token forms with its right neighbour, not with its left one."""

    clause = "MERGE-FULL-1"
    fix = "Push both new pairs: (before, merged) and (merged, after)."
    looks_left = False


class RightSeamForgotten(_Heap):
    """Looks at the pair that a merged token forms with its left neighbour, not with its right one."""

    clause = "MERGE-FULL-1"
    fix = "Push both new pairs: (before, merged) and (merged, after)."
    looks_right = False


# Long pre-tokens and tokens


class LongPreTokenCut(Encoder):
    """Cuts pre-tokens every 256 bytes to bound the cost, so that no merge crosses these places."""

    clause = "MERGE-LONG-1"
    fix = "Merge long pre-tokens whole; a heap keeps that fast."

    def merge(self, word: Word) -> Word:
        return sum((super(LongPreTokenCut, self).merge(word[i : i + 256]) for i in range(0, len(word), 256)), ())


# Ids


class IdsCounted(Encoder):
    """Gives the result of a merge the id 256 + rank, whatever the vocabulary says."""

    clause = "MERGE-ID-1"
    fix = "Look the bytes of each token up in the vocabulary."

    @cached_property
    def counted(self) -> dict[bytes, int]:
        """The id of each token that is the result of a merge."""
        return {left + right: 256 + rank for (left, right), rank in self.ranks.items()}

    def encode_pre_token(self, pre_token: str) -> list[int]:
        return [self.counted.get(token, self.ids[token]) for token in self.merge(self.atoms(pre_token))]


class IdsOfBytesAreValues(Encoder):
    """Gives a byte its value as id, which holds where the bytes stand first and in order."""

    clause = "BYTES-ALPHABET-1"
    fix = "Look bytes up like all tokens: GPT-2's table has them in another order."

    def encode_pre_token(self, pre_token: str) -> list[int]:
        tokens = self.merge(self.atoms(pre_token))
        return [token[0] if len(token) == 1 else self.ids[token] for token in tokens]


class IdsAreIndexes(Encoder):
    """Numbers the vocabulary anew, enumerate(sorted(vocab)), so that gaps between ids close."""

    clause = "MERGE-ID-1"
    fix = "Keep the ids that the vocabulary gives: {token: index for index, token in vocab.items()}."

    @cached_property
    def place(self) -> dict[int, int]:
        """The place of each id."""
        return {index: number for number, index in enumerate(sorted(self.vocab))}

    def encode_pre_token(self, pre_token: str) -> list[int]:
        return [self.place[index] for index in super().encode_pre_token(pre_token)]


class IdsOfSixteenBits(Encoder):
    """Keeps ids in uint16, as corpora are stored, and loses the rest of those above 65,535."""

    clause = "MERGE-ID-1"
    fix = "Use 32 bits, or choose the width by the largest id."

    def encode_pre_token(self, pre_token: str) -> list[int]:
        return [index & 0xFFFF for index in super().encode_pre_token(pre_token)]


# Caches


class _Cache(Encoder):
    """Keeps the ids of pre-tokens under a key, rightly if the key is the pre-token."""

    def encode_pre_token(self, pre_token: str) -> list[int]:
        cache: dict[Hashable, list[int]] = self.__dict__.setdefault("cache", {})
        key = self.key(pre_token)
        if key not in cache:
            cache[key] = super().encode_pre_token(pre_token)
        return cache[key]

    def key(self, pre_token: str) -> Hashable:
        """Return what the ids are kept under."""
        return pre_token


class CacheByLowerCase(_Cache):
    """Keeps results under the lower-case pre-token to save memory: Ab answers for AB."""

    clause = "MERGE-STATE-1"
    fix = "Key the cache by the pre-token itself."
    varies = True

    def key(self, pre_token: str) -> Hashable:
        return pre_token.lower()


class CacheByHash(_Cache):
    """Keeps results under a hash of 16 bits without comparing the pre-tokens: the first of two that collide answers."""

    clause = "MERGE-STATE-1"
    fix = "Compare the pre-token on a hit, or use a dict, which does."
    varies = True

    def key(self, pre_token: str) -> Hashable:
        return zlib.crc32(pre_token.encode("utf-8")) & 0xFFFF


class CacheByPrefix(_Cache):
    """Keeps results under the first 16 characters, the size of a field in a C struct, and the length."""

    clause = "MERGE-STATE-1"
    fix = "Key the cache by the whole pre-token."
    varies = True

    def key(self, pre_token: str) -> Hashable:
        return pre_token[:16], len(pre_token)


class CacheOfAllInstances(Encoder):
    """Keeps results in a dict of the class, as @lru_cache on a function does: tokenizers answer for each other."""

    clause = "ERROR-STATE-1"
    fix = "Make the cache in __init__: self.cache = {}."
    varies = True
    cache: ClassVar[dict[str, list[int]]] = {}

    def encode_pre_token(self, pre_token: str) -> list[int]:
        if pre_token not in self.cache:
            self.cache[pre_token] = super().encode_pre_token(pre_token)
        return self.cache[pre_token]


class CacheHandsItsListOut(Encoder):
    """Returns the list that its cache of texts holds, so that a caller who changes it changes later answers."""

    clause = "LAW-PURE-1"
    fix = "Return a copy: list(cached); or keep tuples."

    def encode(self, text: str) -> list[int]:
        cache: dict[str, list[int]] = self.__dict__.setdefault("cache", {})
        if text not in cache:
            cache[text] = super().encode(text)
        return cache[text]
