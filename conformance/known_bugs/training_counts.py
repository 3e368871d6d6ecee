"""Incorrect trainers: counting, replacing, recounting, and when training ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar

from bpe_conformance.fixtures import Merge
from bpe_conformance.reference.textbook import Word

from .correct import Trainer, Words

# Counting


class RunsWithoutOverlap(Trainer):
    """Counts (a,a) once in `aaa`, as `str.count` and regular expressions do, instead of twice."""

    clause = "TRAIN-PAIR-1"
    fix = "Count every adjacent pair: for pair in zip(word, word[1:])."

    def windows(self, word: Word) -> list[Merge]:
        pairs: list[Merge] = []
        here = 0
        while here + 1 < len(word):
            pairs.append((word[here], word[here + 1]))
            here += 2 if word[here : here + 3] == (word[here],) * 3 else 1
        return pairs


class PairOncePerWord(Trainer):
    """Counts a pair once in a word that holds it twice, because it collects the pairs of a word in a set."""

    clause = "TRAIN-PAIR-1"
    fix = "Add the count of the word for each occurrence of the pair, not for each distinct pair."

    def windows(self, word: Word) -> list[Merge]:
        return list(dict.fromkeys(super().windows(word)))


class LastWindowMissed(Trainer):
    """Leaves out the last pair of each word, because the bound of its loop is one too small."""

    clause = "TRAIN-PAIR-1"
    fix = "Loop over range(len(word) - 1) or zip(word, word[1:])."

    def windows(self, word: Word) -> list[Merge]:
        return super().windows(word)[:-1]


class WindowsWrapAround(Trainer):
    """Pairs the last token of a word with its first, as `word[i - 1], word[i]` does at i = 0."""

    clause = "TRAIN-PAIR-1"
    fix = "Loop over range(1, len(word)) or zip(word, word[1:])."

    def windows(self, word: Word) -> list[Merge]:
        return [(word[here - 1], word[here]) for here in range(len(word))]


class DistinctWordsOnly(Trainer):
    """Counts each distinct word once, because it keeps words in a set or forgets their frequency."""

    clause = "TRAIN-WEIGHT-1"
    fix = "Add the frequency of the word: counts[pair] += frequency."

    def words(self, text: str, special: list[str], pattern: str) -> Words:
        return [(word, 1) for word, _ in super().words(text, special, pattern)]


class RareWordsIgnored(Trainer):
    """Leaves out words that occur once, to save memory."""

    clause = "TRAIN-WEIGHT-1"
    fix = "Count every pre-token, however rare."

    def words(self, text: str, special: list[str], pattern: str) -> Words:
        return [(word, times) for word, times in super().words(text, special, pattern) if times > 1]


class CountsInShortIntegers(Trainer):
    """Keeps counts in signed 16-bit integers, which wrap at 32,768."""

    clause = "TRAIN-WEIGHT-1"
    fix = "Count in 64 bits: np.int64, u64, long."
    evidence = "one step from huggingface/tokenizers#2058, #437: counts in 32 bits wrap"

    def count(self, words: Words) -> Counter[Merge]:
        return Counter({pair: (times + 2**15) % 2**16 - 2**15 for pair, times in super().count(words).items()})


# Replacing


class ReplaceFirstOnly(Trainer):
    """Replaces only the first occurrence of the pair in a word, because `word.index(left)` finds one."""

    clause = "TRAIN-REPLACE-1"
    fix = "Continue after the new token until the word ends."

    def replace(self, word: Word, pair: Merge) -> Word:
        for here, window in enumerate(self.windows(word)):
            if window == pair:
                return (*word[:here], pair[0] + pair[1], *word[here + 2 :])
        return word


class ReplaceFromRight(Trainer):
    """Replaces from the right, so that deleting in place moves no index: `aaa` becomes a·aa."""

    clause = "TRAIN-REPLACE-1"
    fix = "Scan from the left and write the result to a new list."

    def replace(self, word: Word, pair: Merge) -> Word:
        out = list(word)
        for here in reversed(range(len(word) - 1)):
            if tuple(out[here : here + 2]) == pair:
                out[here : here + 2] = [pair[0] + pair[1]]
        return tuple(out)


class ReplaceOverlapping(Trainer):
    """Replaces every occurrence of the pair, overlapping ones too: `aaa` becomes aa·aa."""

    clause = "TRAIN-REPLACE-1"
    fix = "Skip both tokens of a replaced pair: i += 2."

    def replace(self, word: Word, pair: Merge) -> Word:
        hits = [window == pair for window in self.windows(word)]
        out: list[bytes] = []
        for here, token in enumerate(word):
            if hits[here : here + 1] == [True]:
                out.append(pair[0] + pair[1])
            elif here == 0 or not hits[here - 1]:
                out.append(token)
        return tuple(out)


class ReplaceSkipsNext(Trainer):
    """Replaces in place and then skips two tokens, so that `abab` becomes ab·a·b."""

    clause = "TRAIN-REPLACE-1"
    fix = "After a deletion in place advance by one; advance by two only where you read the old word."

    def replace(self, word: Word, pair: Merge) -> Word:
        out = list(word)
        here = 0
        while here + 1 < len(out):
            if (out[here], out[here + 1]) == pair:
                out[here : here + 2] = [pair[0] + pair[1]]
                here += 1
            here += 1
        return tuple(out)


class ReplaceInJoinedText(Trainer):
    """Replaces in the word as text with separators, in which (a,b) also matches the end of a token `xa`."""

    clause = "TRAIN-REPLACE-1"
    fix = r"Compare whole tokens, or guard both ends as subword-nmt does: (?<!\S)a b(?!\S)."

    def replace(self, word: Word, pair: Merge) -> Word:
        joined = b"\xff".join(word).replace(b"\xff".join(pair), b"".join(pair))
        return tuple(joined.split(b"\xff"))


# Stale counts


class _CountsOnce(Trainer):
    """Counts once, then updates the counts after every merge; correct by itself.

    Attributes:
        least: the least count of a pair that it merges.
    """

    least: ClassVar[int] = 1

    def learn(self, words: Words, merge_count: int) -> list[Merge]:
        counts = self.count(words)
        merges: list[Merge] = []
        while len(merges) < merge_count and max(counts.values(), default=-1) >= self.least:
            merges.append(self.choose(counts, {}))
            for place, (old, times) in enumerate(words):
                new = self.replace(old, merges[-1])
                if new != old:
                    self.correct(counts, old, new, merges[-1], times)
                    words[place] = new, times
            del counts[merges[-1]]
        return merges

    def correct(self, counts: Counter[Merge], old: Word, new: Word, pair: Merge, times: int) -> None:
        """Take the windows of the old word out of the counts and put those of the new one in."""
        for window in self.windows(old):
            counts[window] -= times
        for window in self.windows(new):
            counts[window] += times


class SeamsOfOldWord(_CountsOnce):
    """Updates counts with the old neighbours of each occurrence, some of which the same merge replaces (abab)."""

    clause = "TRAIN-RECOUNT-1"
    fix = "Subtract all pairs of the old word, and add all pairs of the new word."
    evidence = "mocibb/cs336#1: counts go wrong at adjacent occurrences"

    def correct(self, counts: Counter[Merge], old: Word, new: Word, pair: Merge, times: int) -> None:
        for here, window in enumerate(self.windows(old)):
            if window == pair:
                for left in old[:here][-1:]:
                    counts.update({(left, pair[0]): -times, (left, pair[0] + pair[1]): times})
                for right in old[here + 2 :][:1]:
                    counts.update({(pair[1], right): -times, (pair[0] + pair[1], right): times})


class RightNeighbourOfOldWord(_CountsOnce):
    """Counts a new token with its right neighbour in the old word, which the same merge may replace (abab)."""

    clause = "TRAIN-RECOUNT-1"
    fix = "Subtract all pairs of the old word, and add all pairs of the new word."
    evidence = "mocibb/cs336#1: counts go wrong at adjacent occurrences"

    def correct(self, counts: Counter[Merge], old: Word, new: Word, pair: Merge, times: int) -> None:
        for window in self.windows(old):
            counts[window] -= times
        here = 0
        for left, right in self.windows(new):
            here += 2 if left == pair[0] + pair[1] else 1
            counts[left, old[here] if left == pair[0] + pair[1] else right] += times


class AdjacentNewPairsCountedTwice(_CountsOnce):
    """Counts a new token with both neighbours at each occurrence: `abab` counts (ab,ab) twice."""

    clause = "TRAIN-RECOUNT-1"
    fix = "Subtract all pairs of the old word, and add all pairs of the new word."

    def correct(self, counts: Counter[Merge], old: Word, new: Word, pair: Merge, times: int) -> None:
        super().correct(counts, old, new, pair, times)
        merged = pair[0] + pair[1]
        counts[merged, merged] += times * self.windows(new).count((merged, merged))


class NewPairsWithoutWeight(_CountsOnce):
    """Counts the pairs of a new token once per word, not as often as the word occurs."""

    clause = "TRAIN-RECOUNT-1"
    fix = "Add the frequency of the word for the new pairs too: counts[new_pair] += frequency."

    def correct(self, counts: Counter[Merge], old: Word, new: Word, pair: Merge, times: int) -> None:
        for window in self.windows(old):
            counts[window] -= times
        for window in self.windows(new):
            counts[window] += 1 if pair[0] + pair[1] in window else times


class NewPairsForgotten(_CountsOnce):
    """Lowers the counts of the pairs that a merge breaks and does not count the pairs that it creates."""

    clause = "TRAIN-RECOUNT-1"
    fix = "Count the new token with both neighbours: (left, new) and (new, right)."

    def correct(self, counts: Counter[Merge], old: Word, new: Word, pair: Merge, times: int) -> None:
        counts.subtract(dict.fromkeys(self.windows(old), times))


class StaleHeapEntry(_CountsOnce):
    """Takes the top of a heap although the count of that pair has fallen since it was pushed."""

    clause = "TRAIN-RECOUNT-1"
    fix = "Compare the popped entry with counts[pair]; if they differ, push it again with the current count."
    evidence = "Hugging Face's trainer.rs (do_train) guards against it"

    def correct(self, counts: Counter[Merge], old: Word, new: Word, pair: Merge, times: int) -> None:
        for window in self.windows(new):
            if pair[0] + pair[1] in window:
                counts[window] += times


class StaleIndex(_CountsOnce):
    """Looks up the words of a pair in an index built before the first merge, which knows no new token."""

    clause = "TRAIN-RECOUNT-1"
    fix = "Add the word to the index of each pair that a merge creates in it."

    def replace(self, word: Word, pair: Merge) -> Word:
        return super().replace(word, pair) if len(pair[0] + pair[1]) == 2 else word


class TwoMergesPerCount(Trainer):
    """Applies the two best merges of one count, to count half as often."""

    clause = "TRAIN-RECOUNT-1"
    fix = "Recount, or update the counts, after every single merge."
    evidence = "turbobpe 0.1.2 merges the ten best pairs of one count"

    def learn(self, words: Words, merge_count: int) -> list[Merge]:
        merges: list[Merge] = []
        while len(merges) < merge_count and (counts := self.count(words)):
            for pair in sorted(counts, key=lambda pair: (counts[pair], pair), reverse=True)[:2]:
                words = [(self.replace(word, pair), times) for word, times in words]
                merges.append(pair)
        return merges[:merge_count]


# The end, and sizes


class MinimumCountTwo(Trainer):
    """Stops when the best pair occurs once, as subword-nmt and `min_frequency=2` do."""

    clause = "TRAIN-ONCE-1"
    fix = "Continue while any pair is left."
    evidence = "subword-nmt 0.3.8; Hugging Face ByteLevelBPETokenizer (min_frequency=2)"

    def ends(self, counts: Mapping[Merge, int]) -> bool:
        return max(counts.values(), default=0) < 2


class ErrorWhenPairsRunOut(Trainer):
    """Calls `max` on no pairs when a small text runs out of them, which raises ValueError."""

    clause = "TRAIN-END-1"
    fix = "Stop training when no pair is left: if not counts: break."
    evidence = "karpathy/minbpe#114; tiktoken 0.14.0 (_educational.py); bpetokenizer 1.2.1; some CS336 solutions"

    def ends(self, counts: Mapping[Merge, int]) -> bool:
        return False


class MergesOfCountZero(_CountsOnce):
    """Merges pairs whose count has fallen to 0, because they stay in its queue when no other pair is left."""

    clause = "TRAIN-END-1"
    fix = "Stop training when the best count is 0; remove a pair from the counts at 0."
    evidence = "gigatoken 0.10.0; huggingface/tokenizers#2320"
    least = 0


class LastMergeRepeated(Trainer):
    """Records the last merge again and again when no pair is left, because the variable still holds it."""

    clause = "TRAIN-END-1"
    fix = "Stop training when no pair is left: if not counts: break."

    def learn(self, words: Words, merge_count: int) -> list[Merge]:
        merges = super().learn(words, merge_count)
        return merges + merges[-1:] * (merge_count - len(merges))


class TokenLengthCapped(Trainer):
    """Creates no token of more than 16 bytes, to keep separators and paths out of the vocabulary."""

    clause = "TRAIN-LENGTH-1"
    fix = "Remove the limit: a token may be as long as its pre-token."
    evidence = "bpeasy (max_token_length), sentencepiece (max_sentencepiece_length, 16)"

    def count(self, words: Words) -> Counter[Merge]:
        return Counter({pair: times for pair, times in super().count(words).items() if len(pair[0] + pair[1]) <= 16})


class OneMergeTooMany(Trainer):
    """Learns one merge too many, because its loop compares the size with `<=`."""

    clause = "TRAIN-SIZE-1"
    fix = "Loop while len(vocab) < vocab_size."

    def merge_count(self, vocab_size: int, special: list[str]) -> int:
        return super().merge_count(vocab_size, special) + 1


class OneMergeTooFew(Trainer):
    """Learns one merge too few, because it stops at len(vocab) + 1 or counts from 1."""

    clause = "TRAIN-SIZE-1"
    fix = "Loop while len(vocab) < vocab_size."

    def merge_count(self, vocab_size: int, special: list[str]) -> int:
        return max(0, super().merge_count(vocab_size, special) - 1)


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
    """Accepts a vocab_size that is too small, because a loop over a negative range does nothing."""

    clause = "TRAIN-SIZE-3"
    fix = "Raise ValueError if vocab_size < 256 + len(special_tokens)."
    evidence = "gigatoken 0.10.0: vocab_size 255 gives 256 entries"

    def merge_count(self, vocab_size: int, special: list[str]) -> int:
        return max(0, vocab_size - 256 - len(special))


class SizeWithoutMergesRefused(Trainer):
    """Requires a vocab_size above 256, though a vocabulary of the bytes alone is valid."""

    clause = "TRAIN-SIZE-2"
    fix = "Compare with <: if vocab_size < 256 + len(special_tokens): raise ValueError."
    evidence = "bpetokenizer 1.2.1, bytetok 0.4.0, bpe-from-scratch 0.3.0"

    def merge_count(self, vocab_size: int, special: list[str]) -> int:
        if vocab_size <= 256:
            raise ValueError("vocab_size must be above 256")
        return super().merge_count(vocab_size, special)


class SpecialTokensNotCounted(Trainer):
    """Learns vocab_size - 256 merges and adds the special tokens on top."""

    clause = "TRAIN-SIZE-1"
    fix = "Learn vocab_size - 256 - len(special_tokens) merges."
    evidence = "bpeasy 0.1.6 (BPEasyTokenizer)"

    def merge_count(self, vocab_size: int, special: list[str]) -> int:
        return super().merge_count(vocab_size, special) + len(special)


class RepeatedSpecialTokenCounted(Trainer):
    """Counts a special token that is listed twice as two, by the length of the list."""

    clause = "TRAIN-SIZE-4"
    fix = "Remove repeats first: special_tokens = list(dict.fromkeys(special_tokens))."
    evidence = "gigatoken 0.10.0, ffbpe 0.1.10"

    def specials(self, special_tokens: list[str]) -> list[str]:
        return special_tokens
