"""Incorrect trainers: which pair is merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bpe_conformance.fixtures import Merge, spell

from .correct import Trainer

# Ties


class TieFirstSeen(Trainer):
    """Takes the first of the most frequent pairs in counting order, as `max(counts, key=counts.get)` does."""

    clause = "TRAIN-TIE-1"
    fix = "Compare (count, pair): max(counts, key=lambda pair: (counts[pair], pair))."
    evidence = "minbpe (basic.py, regex.py); tiktoken 0.14.0 (_educational.py)"

    def choose(self, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        return max(counts, key=lambda pair: counts[pair])


class TieLastSeen(Trainer):
    """Takes the last of the most frequent pairs in counting order, because its loop compares with `>=`."""

    clause = "TRAIN-TIE-1"
    fix = "Replace the best pair only if (count, pair) > (best_count, best_pair)."

    def choose(self, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        return max(reversed(list(counts)), key=lambda pair: counts[pair])


class TieSetOrder(Trainer):
    """Takes the first of the most frequent pairs in a set, whose order changes from process to process."""

    clause = "TRAIN-TIE-1"
    fix = "Compare (count, pair), so that the order of iteration does not matter."
    varies = True

    def choose(self, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        return max(set(counts), key=lambda pair: counts[pair])


class TieLexSmaller(Trainer):
    """Takes the smallest of the most frequent pairs, as sorting by (-count, pair) or a min-heap does."""

    clause = "TRAIN-TIE-1"
    fix = "Use max() by (count, pair), or declare tie_break: lex-smaller."
    evidence = "gigatoken 0.10.0 with tie_breaking='assembled_bytes'"

    def choose(self, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        return min(counts, key=lambda pair: (-counts[pair], pair))


class TieSmallerIds(Trainer):
    """Takes the tied pair with the smallest ids, because its words hold ids instead of bytes."""

    clause = "TRAIN-TIE-1"
    fix = "Compare the bytes, (vocab[left], vocab[right]), or declare tie_break: smaller-ids."
    evidence = "Hugging Face tokenizers (trainer.rs: Merge::cmp), rustbpe 0.1.0, bpeasy 0.1.6"

    def choose(self, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        return min(counts, key=lambda pair: (-counts[pair], ids[pair[0]], ids[pair[1]]))


class TieGreaterIds(Trainer):
    """Takes the tied pair with the greatest ids, as `max` of (count, pair of ids) does."""

    clause = "TRAIN-TIE-1"
    fix = "Compare the bytes of the tokens: (vocab[left], vocab[right])."
    evidence = "bytetok 0.4.0"

    def key(self, pair: Merge, ids: Mapping[bytes, int]) -> object:
        return ids[pair[0]], ids[pair[1]]


class TieRightFirst(Trainer):
    """Compares the right tokens of tied pairs before the left ones, as `np.lexsort((left, right))` does."""

    clause = "TRAIN-TIE-1"
    fix = "Compare the tuple (left, right)."

    def key(self, pair: Merge, ids: Mapping[bytes, int]) -> object:
        return pair[1], pair[0]


class TieLongerFirst(Trainer):
    """Takes the longest of the tied pairs, in the belief that a longer token compresses more."""

    clause = "TRAIN-TIE-1"
    fix = "Ignore the length: compare (count, pair)."

    def key(self, pair: Merge, ids: Mapping[bytes, int]) -> object:
        return len(pair[0] + pair[1]), pair


class TieConcatenation(Trainer):
    """Compares the joined bytes of tied pairs, because it stores the new token only."""

    clause = "TRAIN-TIE-1"
    fix = "Compare the tuple (left, right), not left + right."

    def key(self, pair: Merge, ids: Mapping[bytes, int]) -> object:
        return pair[0] + pair[1]


class TieJoinedBySpace(Trainer):
    """Compares tied pairs as one string `left right`, because it stores them as lines of merges.txt."""

    clause = "TRAIN-TIE-1"
    fix = "Compare the tuple (left, right) of bytes."

    def key(self, pair: Merge, ids: Mapping[bytes, int]) -> object:
        return b" ".join(pair)


class TieDecodedText(Trainer):
    """Compares tied pairs as decoded text, in which every incomplete character is the same U+FFFD."""

    clause = "TRAIN-TIE-1"
    fix = "Compare the bytes themselves; a token need not be UTF-8."

    def key(self, pair: Merge, ids: Mapping[bytes, int]) -> object:
        return [token.decode("utf-8", errors="replace") for token in pair]


class TieGpt2Spelling(Trainer):
    """Compares tied pairs in GPT-2's printable spelling, in which the space (U+0120) follows all letters."""

    clause = "TRAIN-TIE-1"
    fix = "Compare bytes; spell tokens only when you write files."

    def key(self, pair: Merge, ids: Mapping[bytes, int]) -> object:
        return [spell(token) for token in pair]


class TieRepr(Trainer):
    """Compares `repr(pair)` of tied pairs, in which a line feed is a backslash and an n."""

    clause = "TRAIN-TIE-1"
    fix = "Compare the tuple (left, right) of bytes."

    def key(self, pair: Merge, ids: Mapping[bytes, int]) -> object:
        return repr(pair)


class TieSignedBytes(Trainer):
    """Compares bytes from 128 on as negative numbers, as Java's `byte` and C's `char` do."""

    clause = "TRAIN-TIE-1"
    fix = "Compare unsigned bytes: byte & 0xFF, Arrays.compareUnsigned, unsigned char or memcmp."

    def key(self, pair: Merge, ids: Mapping[bytes, int]) -> object:
        return [memoryview(token).cast("b").tolist() for token in pair]


class TiePrefixGreater(Trainer):
    """Negates the bytes of tied pairs for a min-heap, in which a prefix still comes first and so wins."""

    clause = "TRAIN-TIE-1"
    fix = "Append an end mark above all bytes to the negated ones, or define __lt__ on a class for the pair."

    def choose(self, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        return min(counts, key=lambda pair: (-counts[pair], [[-byte for byte in token] for token in pair]))


class TieAmongTopTen(Trainer):
    """Breaks ties among `counts.most_common(10)` only, because comparing all pairs is slow."""

    clause = "TRAIN-TIE-1"
    fix = "Compare all pairs with the highest count: max(counts, key=lambda pair: (counts[pair], pair))."

    def choose(self, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        return super().choose(dict(Counter(counts).most_common(10)), ids)


# Which pair is the best


class GreatestPairWhateverCount(Trainer):
    """Takes the greatest pair and ignores the counts, because it calls `max(counts)` without a key."""

    clause = "TRAIN-BEST-1"
    fix = "Compare counts first: max(counts, key=lambda pair: (counts[pair], pair))."

    def choose(self, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        return max(counts)


class RarestPair(Trainer):
    """Takes the pair with the lowest count, because heapq is a min-heap and it pushes counts unnegated."""

    clause = "TRAIN-BEST-1"
    fix = "Push the negated count: heappush(heap, (-count, ...))."

    def choose(self, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        return min(counts, key=lambda pair: (counts[pair], pair))


class WordpieceScore(Trainer):
    """Divides the count of a pair by the counts of its parts, which is WordPiece's score and not BPE's."""

    clause = "TRAIN-BEST-1"
    fix = "Choose by the count of the pair alone."

    def choose(self, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        parts = Counter[bytes]()
        for pair, times in counts.items():
            parts.update({pair[0]: times})
            parts.update({pair[1]: times})
        return max(counts, key=lambda pair: (counts[pair] / parts[pair[0]] / parts[pair[1]], pair))
