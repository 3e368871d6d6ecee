"""The incremental trainer learns the merges of the textbook under every convention."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.fixtures.conventions import TIE_BREAKS
from bpe_conformance.reference import Tokenizer, conventional, dispatch, textbook
from bpe_conformance.reference.conventions import mirrored
from bpe_conformance.reference.trainer import WeightedWords, learn

ALPHABETS = ["ab", " ab", "abc ", "aé ", "ab€x", "a\n \t'", "<a> x", "\u0301 aS1", "🦊ab"]
SPECIAL_TOKENS = [
    [],
    ["<a>"],
    ["aa"],
    ["<a>", "x<a>"],
    ["<a><a>", "<a>"],
    ["ab", "ba", "aba"],
    ["a"],
    ["<a>", "<a>"],
    [" "],
]
LAYOUTS = ["bytes-specials-merges", "specials-bytes-merges", "bytes-merges-specials"]


def random_text(draw: random.Random, longest: int = 60) -> str:
    alphabet = draw.choice(ALPHABETS)
    text = "".join(draw.choice(alphabet) for _ in range(draw.randrange(longest)))
    if draw.random() < 0.3:
        text = " ".join([text[: draw.randrange(1, 9)] for _ in range(draw.randrange(9))] + [text])
    return text


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("seed", range(4))
def test_training_agrees_with_the_textbook(tie_break: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(f"{tie_break} {seed}")
    for number in range(200):
        monkeypatch.setitem(dispatch.ARRAYS_FROM, "learn", 0 if number % 2 else 1 << 15)
        text, special = random_text(draw), draw.choice(SPECIAL_TOKENS)
        if special and number % 3 == 0:
            text = "".join(draw.choice([*special, text]) for _ in range(draw.randrange(20)))
        size = draw.randrange(256 + len(set(special)), 301)
        name = draw.choice([None, *PATTERNS])
        byte_order, layout = draw.choice(["raw", "gpt2"]), draw.choice(LAYOUTS)
        conventions = {"tie_break": tie_break, "byte_order": byte_order, "id_layout": layout}
        conventions["train_special"] = draw.choice(["boundary", "text"])
        ours = conventional(**conventions).train(text, size, special, pattern=name)
        pattern = None if name is None else PATTERNS[name]
        oracle = textbook.with_conventions(**conventions).train(text, size, special, pattern)
        assert ours.merges == oracle.merges, (text, special, name, conventions)
        assert list(ours.vocab.items()) == list(oracle.vocab.items())


@pytest.mark.parametrize("seed", range(60))
def test_index_equals_a_recount_after_every_merge(seed: int) -> None:
    draw = random.Random(seed)
    words = [[draw.randrange(4) for _ in range(draw.randrange(12))] for _ in range(12)]
    corpus = WeightedWords((list(word), draw.randrange(1, 5)) for word in words)
    new, winner = 4, 10**9
    while corpus.counts:
        before = dict(corpus.counts)
        pair = max(corpus.counts, key=lambda pair: (corpus.counts[pair], pair))
        assert corpus.counts[pair] <= winner
        winner = corpus.counts[pair]
        created = corpus.merge(pair, new)
        recount: Counter[tuple[int, int]] = Counter()
        holders: dict[tuple[int, int], set[int]] = {}
        for number, (word, weight) in enumerate(zip(corpus.words, corpus.weights, strict=True)):
            for found in pairwise(word):
                recount[found] += weight
                holders.setdefault(found, set()).add(number)
        assert corpus.counts == recount
        assert corpus.holders == holders
        assert created == recount.keys() - before.keys()
        assert all(recount[found] <= count for found, count in before.items())
        new += 1


def test_mirrored_inverts_the_order_of_tokens() -> None:
    draw = random.Random(0)
    tokens = {bytes(draw.choice([0, 1, 97, 254, 255]) for _ in range(draw.randrange(1, 5))) for _ in range(300)}
    assert sorted(tokens, key=mirrored) == sorted(tokens, reverse=True)
    pairs = [(left, right) for left in tokens for right in draw.sample(sorted(tokens), 5)]
    assert sorted(pairs, key=lambda pair: (mirrored(pair[0]), mirrored(pair[1]))) == sorted(pairs, reverse=True)


@pytest.mark.parametrize(
    ("tie_break", "words", "merges"),
    [
        ("lex-greater", {"low": 3, "lower": 2}, "o+w l+ow low+e lowe+r"),
        ("lex-smaller", {"low": 3, "lower": 2}, "l+o lo+w e+r low+er"),
        ("lex-smaller", {"low": 5, "lower": 2, "newer": 6}, "e+r w+er l+o e+wer n+ewer lo+w lo+wer"),
        ("lex-greater", {"low": 5, "lower": 2, "newer": 6}, "w+e we+r l+o n+e ne+wer lo+w lo+wer"),
        ("first-seen", {"low": 5, "lower": 2, "newer": 6}, "w+e we+r l+o n+e ne+wer lo+w lo+wer"),
        ("first-seen", {"daad": 1}, "d+a da+a daa+d"),
        ("lex-greater", {"aaa": 1}, "a+a aa+a"),
        ("lex-greater", {"abab": 1}, "a+b ab+ab"),
        ("smaller-ids", {"! ": 1, " b": 1, "!b": 1}, " +b ! +  !+b"),
    ],
)
def test_worked_examples(tie_break: str, words: dict[str, int], merges: str) -> None:
    learned = learn({word.encode(): count for word, count in words.items()}, 99, tie_break)
    if tie_break == "smaller-ids":
        assert learned == [(b" ", b"b"), (b"!", b" "), (b"!", b"b")]
    else:
        assert " ".join(f"{left.decode()}+{right.decode()}" for left, right in learned) == merges


def test_smaller_ids_depends_on_the_order_of_bytes() -> None:
    words = {b" x": 1, b"!x": 1}
    assert learn(words, 1, "smaller-ids", "raw") == [(b" ", b"x")]
    assert learn(words, 1, "smaller-ids", "gpt2") == [(b"!", b"x")]


def test_training_ends_when_pairs_run_out() -> None:
    assert Tokenizer.train("ab ab", 1000).merges == [(b"a", b"b"), (b" ", b"ab")]
    assert Tokenizer.train("", 1000, ["<e>"]).vocab == Tokenizer.train("", 257, ["<e>"]).vocab


def test_bytes_and_special_tokens_alone_give_no_merges() -> None:
    assert Tokenizer.train("aaaa", 257, ["<e>", "<e>"]).merges == []


@pytest.mark.parametrize(("size", "special"), [(255, []), (256, ["<e>"]), (0, []), (-1, [])])
def test_vocab_size_below_bytes_and_special_tokens_is_rejected(size: int, special: list[str]) -> None:
    with pytest.raises(ValueError, match=f"vocab_size is {size}; bytes and special tokens need {256 + len(special)}"):
        Tokenizer.train("text", size, special)


def test_progress_reports_each_merge() -> None:
    reported: list[tuple[str, int, int]] = []
    Tokenizer.train("ab ab", 300, progress=lambda *step: reported.append(step))
    assert reported == [("counting", 1, 1), ("merging", 1, 44), ("merging", 2, 44)]


@pytest.mark.parametrize("convention", [{"tie_break": "random"}, {"lookup": "bytes"}, {"colour": "red"}])
def test_unknown_convention_is_rejected(convention: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="is unknown; the known ones are tie_break: lex-greater"):
        conventional(**convention)


def test_conventions_are_declared_and_followed() -> None:
    smaller = conventional(tie_break="lex-smaller")
    assert smaller.conventions == {"tie_break": "lex-smaller"}
    assert smaller.train("low lower", 257).merges == [(b"l", b"o")]
    assert smaller.train("low lower", 257, tie_break="lex-greater").merges == [(b"o", b"w")]
    assert Tokenizer.conventions == {}
