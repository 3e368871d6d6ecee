"""Wrong trainers: which pair is chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bpe_conformance.fixtures import Merge, spell

from .plain import Trainer

# Ties


class TieFirstSeen(Trainer):
    """Takes the first of the most frequent pairs that it met, as `max(counts, key=counts.get)` does."""

    clause = "TRAIN-TIE-1"
    fix = "Compare (count, pair): max(counts, key=lambda pair: (counts[pair], pair))."

    @classmethod
    def choose(cls, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        return max(counts, key=lambda pair: counts[pair])


class TieLastSeen(Trainer):
    """Takes the last of the most frequent pairs that it met, because its loop compares with `>=`."""

    clause = "TRAIN-TIE-1"
    fix = "Take a pair of an equal count only if it is greater: (count, pair) > (best_count, best_pair)."

    @classmethod
    def choose(cls, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        return max(reversed(list(counts)), key=lambda pair: counts[pair])


class TieSetOrder(Trainer):
    """Takes the first of the most frequent pairs in a set, whose order is another one in each process."""

    clause = "TRAIN-TIE-1"
    fix = "Compare (count, pair), so that no order of iteration matters."
    varies = True

    @classmethod
    def choose(cls, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        return max(set(counts), key=lambda pair: counts[pair])


class TieLexSmaller(Trainer):
    """Takes the smallest of the most frequent pairs, as sorting by (-count, pair) or a min-heap of these does."""

    clause = "TRAIN-TIE-1"
    fix = "max() by (count, pair); or declare tie_break: lex-smaller."

    @classmethod
    def choose(cls, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        return min(counts, key=lambda pair: (-counts[pair], pair))


class TieSmallerIds(Trainer):
    """Takes the pair with the smallest ids among the most frequent, because its words hold ids and not bytes."""

    clause = "TRAIN-TIE-1"
    fix = "Compare (vocab[left], vocab[right]), the bytes behind the ids; or declare tie_break: smaller-ids."

    @classmethod
    def choose(cls, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        return min(counts, key=lambda pair: (-counts[pair], ids[pair[0]], ids[pair[1]]))


class TieGreaterIds(Trainer):
    """Takes the pair with the greatest ids among the most frequent, as `max` of (count, pair of ids) does."""

    clause = "TRAIN-TIE-1"
    fix = "Compare (vocab[left], vocab[right]), the bytes behind the ids."

    @classmethod
    def key(cls, pair: Merge, ids: Mapping[bytes, int]) -> object:
        return ids[pair[0]], ids[pair[1]]


class TieRightFirst(Trainer):
    """Compares the right tokens of tied pairs before the left ones, as a sort by columns in the wrong order does."""

    clause = "TRAIN-TIE-1"
    fix = "Compare (left, right) as a tuple."

    @classmethod
    def key(cls, pair: Merge, ids: Mapping[bytes, int]) -> object:
        return pair[1], pair[0]


class TieLongerFirst(Trainer):
    """Takes the longest of the tied pairs, in the belief that a longer token compresses more."""

    clause = "TRAIN-TIE-1"
    fix = "Leave the length out: compare (count, pair)."

    @classmethod
    def key(cls, pair: Merge, ids: Mapping[bytes, int]) -> object:
        return len(pair[0] + pair[1]), pair


class TieConcatenation(Trainer):
    """Compares the joined bytes of tied pairs, because the new token is what it stores."""

    clause = "TRAIN-TIE-1"
    fix = "Compare the tuple (left, right), not left + right."

    @classmethod
    def key(cls, pair: Merge, ids: Mapping[bytes, int]) -> object:
        return pair[0] + pair[1]


class TieJoinedBySpace(Trainer):
    """Compares `left right` as one string, because it keeps pairs as lines of merges.txt."""

    clause = "TRAIN-TIE-1"
    fix = "Compare the tuple (left, right) of bytes."

    @classmethod
    def key(cls, pair: Merge, ids: Mapping[bytes, int]) -> object:
        return b" ".join(pair)


class TieDecodedText(Trainer):
    """Compares tied pairs as decoded text, in which every part of a character is the same U+FFFD."""

    clause = "TRAIN-TIE-1"
    fix = "Compare the bytes themselves; tokens need not be UTF-8."

    @classmethod
    def key(cls, pair: Merge, ids: Mapping[bytes, int]) -> object:
        return [token.decode("utf-8", errors="replace") for token in pair]


class TieGpt2Spelling(Trainer):
    """Compares tied pairs in GPT-2's printable spelling, in which the space (U+0120) is above all letters."""

    clause = "TRAIN-TIE-1"
    fix = "Compare bytes; spell them only when files are written."

    @classmethod
    def key(cls, pair: Merge, ids: Mapping[bytes, int]) -> object:
        return [spell(token) for token in pair]


class TieSignedBytes(Trainer):
    """Compares bytes from 128 on as negative numbers, as Java's byte and C's char do."""

    clause = "TRAIN-TIE-1"
    fix = "Compare unsigned bytes: byte & 0xFF, Arrays.compareUnsigned, unsigned char, memcmp."

    @classmethod
    def key(cls, pair: Merge, ids: Mapping[bytes, int]) -> object:
        return [memoryview(token).cast("b").tolist() for token in pair]


class TiePrefixGreater(Trainer):
    """Negates the bytes of a pair for a min-heap, where a prefix still comes first and so counts as the greater."""

    clause = "TRAIN-TIE-1"
    fix = "Put an end mark above all bytes behind the negated ones, or wrap the pair in a class with its own __lt__."

    @classmethod
    def choose(cls, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        return min(counts, key=lambda pair: (-counts[pair], [[-byte for byte in token] for token in pair]))


class TiePackedKey(Trainer):
    """Compares the first eight bytes of each token, because they fit into a 64-bit integer."""

    clause = "TRAIN-TIE-1"
    fix = "Compare whole tokens; a packed key may only decide where the keys differ."

    @classmethod
    def key(cls, pair: Merge, ids: Mapping[bytes, int]) -> object:
        return [int.from_bytes(token[:8].ljust(8, b"\0"), "big") for token in pair]


# What is greatest


class GreatestPairWhateverCount(Trainer):
    """Takes the greatest pair whatever its count, because `max(counts)` was called without a key."""

    clause = "TRAIN-BEST-1"
    fix = "Compare counts first: max(counts, key=lambda pair: (counts[pair], pair))."

    @classmethod
    def choose(cls, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        return max(counts)


class RarestPair(Trainer):
    """Takes the pair of the lowest count, because heapq is a min-heap and the counts were pushed as they are."""

    clause = "TRAIN-BEST-1"
    fix = "Push the negated count: heappush(heap, (-count, ...))."

    @classmethod
    def choose(cls, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        return min(counts, key=lambda pair: (counts[pair], pair))


class WordpieceScore(Trainer):
    """Divides the count of a pair by the counts of its parts, which is WordPiece's score and not BPE's."""

    clause = "TRAIN-BEST-1"
    fix = "Choose by the count of the pair alone."

    @classmethod
    def choose(cls, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        parts = Counter[bytes]()
        for pair, times in counts.items():
            parts.update({pair[0]: times})
            parts.update({pair[1]: times})
        return max(counts, key=lambda pair: (counts[pair] / parts[pair[0]] / parts[pair[1]], pair))
