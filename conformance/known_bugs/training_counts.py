"""Wrong trainers: counting, replacing, recounting, and when training ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from struct import pack, unpack

from bpe_conformance.fixtures import Merge
from bpe_conformance.reference.textbook import Word

from .plain import Trainer, Words

# Counting


class RunsWithoutOverlap(Trainer):
    """Counts (a,a) once in `aaa`, as `str.count` or a regular expression does, instead of by windows."""

    clause = "TRAIN-PAIR-1"
    fix = "Count every window: for pair in zip(word, word[1:])."

    @classmethod
    def windows(cls, word: Word) -> list[Merge]:
        pairs: list[Merge] = []
        here = 0
        while here + 1 < len(word):
            pairs.append((word[here], word[here + 1]))
            here += 2 if word[here : here + 3] == (word[here],) * 3 else 1
        return pairs


class PairOncePerWord(Trainer):
    """Counts a pair once in a word that holds it twice, because it collects the pairs of a word in a set."""

    clause = "TRAIN-PAIR-1"
    fix = "Add the count of the word for each window, not for each distinct pair."

    @classmethod
    def windows(cls, word: Word) -> list[Merge]:
        return list(dict.fromkeys(super().windows(word)))


class LastWindowMissed(Trainer):
    """Leaves out the last pair of each word, because the bound of its loop is one too small."""

    clause = "TRAIN-PAIR-1"
    fix = "Loop over range(len(word) - 1), or zip(word, word[1:])."

    @classmethod
    def windows(cls, word: Word) -> list[Merge]:
        return super().windows(word)[:-1]


class WindowsWrapAround(Trainer):
    """Pairs the last token of a word with its first, as `word[i - 1], word[i]` does at i = 0."""

    clause = "TRAIN-PAIR-1"
    fix = "Loop over range(1, len(word)), or zip(word, word[1:])."

    @classmethod
    def windows(cls, word: Word) -> list[Merge]:
        return [(word[here - 1], word[here]) for here in range(len(word))]


class DistinctWordsOnly(Trainer):
    """Counts each distinct word once, because the words were made a set or their frequency was left out."""

    clause = "TRAIN-WEIGHT-1"
    fix = "counts[pair] += frequency of the word."

    @classmethod
    def words(cls, text: str, special: list[str], pattern: str) -> Words:
        return [(word, 1) for word, _ in super().words(text, special, pattern)]


class RareWordsIgnored(Trainer):
    """Leaves out words that occur once, to save memory."""

    clause = "TRAIN-WEIGHT-1"
    fix = "Count every pre-token, however rare."

    @classmethod
    def words(cls, text: str, special: list[str], pattern: str) -> Words:
        return [(word, times) for word, times in super().words(text, special, pattern) if times > 1]


class CountsInShortIntegers(Trainer):
    """Keeps counts in 16-bit integers, which wrap at 32,768."""

    clause = "TRAIN-WEIGHT-1"
    fix = "Count in 64 bits: np.int64, u64, long."

    @classmethod
    def count(cls, words: Words) -> Counter[Merge]:
        return Counter({pair: (times + 2**15) % 2**16 - 2**15 for pair, times in super().count(words).items()})


class CountsInHalfFloats(Trainer):
    """Keeps counts in 16-bit floats, which round above 2,048."""

    clause = "TRAIN-WEIGHT-1"
    fix = "Count in 64-bit integers."

    @classmethod
    def count(cls, words: Words) -> Counter[Merge]:
        return Counter(
            {pair: int(unpack("e", pack("e", min(times, 65504)))[0]) for pair, times in super().count(words).items()}
        )


# Replacing


class ReplaceFirstOnly(Trainer):
    """Replaces only the first place of the pair in a word, as `word.index(left)` finds it."""

    clause = "TRAIN-REPLACE-1"
    fix = "Go on behind the new token until the word ends."

    @classmethod
    def replace(cls, word: Word, pair: Merge) -> Word:
        for here, window in enumerate(cls.windows(word)):
            if window == pair:
                return (*word[:here], pair[0] + pair[1], *word[here + 2 :])
        return word


class ReplaceFromRight(Trainer):
    """Replaces from the right, so that deleting in place moves no index: `aaa` becomes a·aa."""

    clause = "TRAIN-REPLACE-1"
    fix = "Scan from the left and write the result into a new list."

    @classmethod
    def replace(cls, word: Word, pair: Merge) -> Word:
        out = list(word)
        for here in reversed(range(len(word) - 1)):
            if tuple(out[here : here + 2]) == pair:
                out[here : here + 2] = [pair[0] + pair[1]]
        return tuple(out)


class ReplaceOverlapping(Trainer):
    """Makes the new token of every window that is the pair: `aaa` becomes aa·aa."""

    clause = "TRAIN-REPLACE-1"
    fix = "Step over both tokens of a replaced pair: here += 2."

    @classmethod
    def replace(cls, word: Word, pair: Merge) -> Word:
        hits = [window == pair for window in cls.windows(word)]
        out: list[bytes] = []
        for here, token in enumerate(word):
            if hits[here : here + 1] == [True]:
                out.append(pair[0] + pair[1])
            elif here == 0 or not hits[here - 1]:
                out.append(token)
        return tuple(out)


class ReplaceSkipsNext(Trainer):
    """Replaces in place and then steps over two tokens, so that `abab` becomes ab·a·b."""

    clause = "TRAIN-REPLACE-1"
    fix = "After deleting in place go on by one; two are right only where the old word is read."

    @classmethod
    def replace(cls, word: Word, pair: Merge) -> Word:
        out = list(word)
        here = 0
        while here + 1 < len(out):
            if (out[here], out[here + 1]) == pair:
                out[here : here + 2] = [pair[0] + pair[1]]
                here += 1
            here += 1
        return tuple(out)


class ReplaceInJoinedText(Trainer):
    """Replaces in the word as text with separators: (a,b) also matches at the end of a token `xa`."""

    clause = "TRAIN-REPLACE-1"
    fix = "Compare whole tokens, or guard both ends as subword-nmt does: (?<!\\S)a b(?!\\S)."

    @classmethod
    def replace(cls, word: Word, pair: Merge) -> Word:
        joined = b"\xff".join(word).replace(b"\xff".join(pair), b"".join(pair))
        return tuple(joined.split(b"\xff"))


# Stale counts


class _CountsOnce(Trainer):
    """Counts once, then corrects the counts at every merge: a right base for wrong corrections."""

    @classmethod
    def learn(cls, words: Words, wanted: int) -> list[Merge]:
        counts = cls.count(words)
        merges: list[Merge] = []
        while len(merges) < wanted and max(counts.values(), default=0) > 0:
            merges.append(cls.choose(counts, {}))
            for place, (old, times) in enumerate(words):
                new = cls.replace(old, merges[-1])
                if new != old:
                    cls.correct(counts, old, new, merges[-1], times)
                    words[place] = new, times
            del counts[merges[-1]]
        return merges

    @classmethod
    def correct(cls, counts: Counter[Merge], old: Word, new: Word, pair: Merge, times: int) -> None:
        """Take the windows of the old word out of the counts and put those of the new one in."""
        for window in cls.windows(old):
            counts[window] -= times
        for window in cls.windows(new):
            counts[window] += times


class SeamsOfOldWord(_CountsOnce):
    """Corrects three pairs down, two up at each place by the old neighbours, which `abab` also replaces."""

    clause = "TRAIN-RECOUNT-1"
    fix = "Take all pairs of the old word out of the counts and put all of the new word in."

    @classmethod
    def correct(cls, counts: Counter[Merge], old: Word, new: Word, pair: Merge, times: int) -> None:
        for here, window in enumerate(cls.windows(old)):
            if window == pair:
                for left in old[:here][-1:]:
                    counts.update({(left, pair[0]): -times, (left, pair[0] + pair[1]): times})
                for right in old[here + 2 :][:1]:
                    counts.update({(pair[1], right): -times, (pair[0] + pair[1], right): times})


class NewPairsWithoutWeight(_CountsOnce):
    """Counts the pairs of a new token once a word and not as often as the word occurs."""

    clause = "TRAIN-RECOUNT-1"
    fix = "Add the frequency of the word at the seams too: counts[new_pair] += times."

    @classmethod
    def correct(cls, counts: Counter[Merge], old: Word, new: Word, pair: Merge, times: int) -> None:
        for window in cls.windows(old):
            counts[window] -= times
        for window in cls.windows(new):
            counts[window] += 1 if pair[0] + pair[1] in window else times


class NewPairsForgotten(_CountsOnce):
    """Lowers the counts of the pairs that a merge breaks and forgets those that it makes."""

    clause = "TRAIN-RECOUNT-1"
    fix = "Count the new token with its neighbours: (left, new) and (new, right)."

    @classmethod
    def correct(cls, counts: Counter[Merge], old: Word, new: Word, pair: Merge, times: int) -> None:
        counts.subtract(dict.fromkeys(cls.windows(old), times))


class StaleHeapEntry(_CountsOnce):
    """Takes the top of a heap although the count of the pair has fallen since it was pushed."""

    clause = "TRAIN-RECOUNT-1"
    fix = "Compare the entry with counts[pair] when it is popped; push it again with the right count if they differ."

    @classmethod
    def correct(cls, counts: Counter[Merge], old: Word, new: Word, pair: Merge, times: int) -> None:
        for window in cls.windows(new):
            if pair[0] + pair[1] in window:
                counts[window] += times


class StaleIndex(_CountsOnce):
    """Looks the words of a pair up in an index made before the first merge, where no new token stands."""

    clause = "TRAIN-RECOUNT-1"
    fix = "Add the word to the index of each pair that a merge makes in it."

    @classmethod
    def replace(cls, word: Word, pair: Merge) -> Word:
        return super().replace(word, pair) if len(pair[0] + pair[1]) == 2 else word


class TwoMergesPerCount(Trainer):
    """Makes the two best merges of one count, to count half as often."""

    clause = "TRAIN-RECOUNT-1"
    fix = "Count again, or correct the counts, after every single merge."

    @classmethod
    def learn(cls, words: Words, wanted: int) -> list[Merge]:
        merges: list[Merge] = []
        while len(merges) < wanted and (counts := cls.count(words)):
            for pair in sorted(counts, key=lambda pair: (counts[pair], pair), reverse=True)[:2]:
                words = [(cls.replace(word, pair), times) for word, times in words]
                merges.append(pair)
        return merges[:wanted]


# The end, and sizes


class MinimumCountTwo(Trainer):
    """Stops when the best pair occurs once, as subword-nmt and a min_frequency of 2 do."""

    clause = "TRAIN-ONCE-1"
    fix = "Go on while any pair is left."

    @classmethod
    def ends(cls, counts: Mapping[Merge, int]) -> bool:
        return max(counts.values(), default=0) < 2


class ErrorWhenPairsRunOut(Trainer):
    """Calls `max` on no pairs when a small text runs out of them, which is an error."""

    clause = "TRAIN-END-1"
    fix = "if not counts: break"

    @classmethod
    def ends(cls, counts: Mapping[Merge, int]) -> bool:
        return False


class LastMergeRepeated(Trainer):
    """Records the last merge again and again when no pair is left, because the variable still holds it."""

    clause = "TRAIN-END-1"
    fix = "if not counts: break"

    @classmethod
    def learn(cls, words: Words, wanted: int) -> list[Merge]:
        merges = super().learn(words, wanted)
        return merges + merges[-1:] * (wanted - len(merges))


class TokenLengthCapped(Trainer):
    """Makes no token of more than 16 bytes, to keep separators and file paths out of the vocabulary."""

    clause = "TRAIN-LENGTH-1"
    fix = "Leave the limit out: a token may be as long as its pre-token."

    @classmethod
    def count(cls, words: Words) -> Counter[Merge]:
        return Counter({pair: times for pair, times in super().count(words).items() if len(pair[0] + pair[1]) <= 16})


class OneMergeTooMany(Trainer):
    """Makes one merge too many, because its loop compares the size with `<=`."""

    clause = "TRAIN-SIZE-1"
    fix = "while len(vocab) < vocab_size"

    @classmethod
    def wanted(cls, vocab_size: int, special: list[str]) -> int:
        return super().wanted(vocab_size, special) + 1


class OneMergeTooFew(Trainer):
    """Makes one merge too few, because it stops at len(vocab) + 1 or counts from 1."""

    clause = "TRAIN-SIZE-1"
    fix = "while len(vocab) < vocab_size"

    @classmethod
    def wanted(cls, vocab_size: int, special: list[str]) -> int:
        return max(0, super().wanted(vocab_size, special) - 1)


class VocabPadded(Trainer):
    """Fills the vocabulary up to vocab_size with unused tokens when the pairs run out."""

    clause = "TRAIN-END-1"
    fix = "Return the smaller vocabulary."

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str], pattern: str | None = None) -> Trainer:
        trained = super().train(text, vocab_size, special_tokens, pattern)
        trained.vocab |= {index: b"<unused%d>" % index for index in range(len(trained.vocab), vocab_size)}
        return trained


class SmallVocabAccepted(Trainer):
    """Takes a vocab_size below 256 without a word, because a loop over a negative range does nothing."""

    clause = "TRAIN-SIZE-3"
    fix = "if vocab_size < 256 + len(special_tokens): raise ValueError"

    @classmethod
    def wanted(cls, vocab_size: int, special: list[str]) -> int:
        return max(0, vocab_size - 256 - len(special))


class SpecialTokensNotCounted(Trainer):
    """Makes vocab_size - 256 merges and adds the special tokens on top."""

    clause = "TRAIN-SIZE-1"
    fix = "wanted = vocab_size - 256 - len(special_tokens)"

    @classmethod
    def wanted(cls, vocab_size: int, special: list[str]) -> int:
        return super().wanted(vocab_size, special) + len(special)


class RepeatedSpecialTokenCounted(Trainer):
    """Counts a special token that is listed twice as two, by the length of the list."""

    clause = "TRAIN-SIZE-4"
    fix = "special_tokens = list(dict.fromkeys(special_tokens))"

    @classmethod
    def specials(cls, special_tokens: list[str]) -> list[str]:
        return special_tokens
