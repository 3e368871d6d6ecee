"""All ways to merge a pre-token give the tokens of the textbook."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bpe_conformance.fixtures import Merge, gpt2
from bpe_conformance.reference import Tokenizer, textbook
from bpe_conformance.reference.bulk import encoding
from bpe_conformance.reference.encoder import LONG, PreTokenEncoder
from bpe_conformance.reference.merging import MergeRanks, merge_by_rank, merge_by_scan

Table = tuple[dict[int, bytes], list[Merge]]


def random_table(draw: random.Random, well_formed: bool, most: int = 14) -> Table:
    """Return a table of less than `most` merges whose ids are in random order and have gaps."""
    tokens = [bytes([byte]) for byte in draw.choice([b"ab", b"abc", b"a\xc3\xa9", b" ab", b"abcdefgh"])]
    merges: list[Merge] = []
    for _ in range(draw.randrange(1, most)):
        pair = draw.choice(tokens), draw.choice(tokens)
        if pair[0] + pair[1] not in tokens:
            tokens.append(pair[0] + pair[1])
        elif well_formed:
            continue
        merges.append(pair)
    if not well_formed and draw.random() < 0.7:
        draw.shuffle(merges)
    every = list(dict.fromkeys([bytes([byte]) for byte in range(256)] + tokens))
    ids = draw.sample(range(1000), len(every))
    return dict(zip(ids, every, strict=True)), merges


@pytest.mark.parametrize("well_formed", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_random_tables_encode_like_the_textbook(well_formed: bool, seed: int) -> None:
    draw = random.Random(f"{well_formed} {seed}")
    for _ in range(100):
        vocab, merges = random_table(draw, well_formed)
        special = draw.choice([None, [], ["ab"], ["<", "<<"], ["aba", "ba"]])
        ours = Tokenizer(vocab, merges, special)
        oracle = textbook.Tokenizer(vocab, merges, special)
        assert ours.vocab == oracle.vocab
        for _ in range(6):
            text = "".join(draw.choice("aabbc é<") for _ in range(draw.randrange(40)))
            assert ours.encode(text) == oracle.encode(text), (merges, special, text)
            assert ours.decode(ours.encode(text)) == text


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [(0, 0), (3, 2)], ids=["in rounds", "in some rounds"])
@pytest.mark.parametrize("well_formed", [True, False])
def test_all_ways_to_merge_agree_with_the_textbook(
    well_formed: bool, rounds: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "FEW", rounds[0])
    monkeypatch.setattr(encoding, "ROUND", rounds[1])
    draw = random.Random(f"{well_formed} {rounds}")
    for _ in range(150):
        vocab, merges = random_table(draw, well_formed, most=40)
        ids = {token: index for index, token in vocab.items()}
        encoder = PreTokenEncoder(ids, merges)
        by_pair: dict[Merge, int] = {}
        for rank, pair in enumerate(merges):
            by_pair.setdefault(pair, rank)
        tokens = [*(bytes([byte]) for byte in b"abc\xc3\xa9 "), *map(b"".join, merges)]
        runs = [draw.choices(tokens, k=draw.randrange(40)) for _ in range(3)]
        words = [b"".join(run) for run in runs]
        bulk = encoding.BulkRanks(encoder.ranks, encoder.byte_ids)
        barrier = [bulk.barrier_id]
        for kind, starts in ("bytes", [[bytes([byte]) for byte in word] for word in words]), ("tokens", runs):
            given, expected = barrier[:], []
            for start in starts:
                atoms = [ids[token] for token in start]
                wanted = [ids[token] for token in textbook.merge_by_pair(tuple(start), by_pair)]
                assert merge_by_scan(atoms, encoder.ranks) == wanted
                assert merge_by_rank(atoms, encoder.ranks) == wanted
                given += atoms + barrier
                expected.append(wanted)
            merged, sizes = bulk.merge(words) if kind == "bytes" else bulk.merge_ids(np.array(given))
            assert sizes.tolist() == list(map(len, expected))
            assert merged.tolist() == [index for wanted in expected for index in wanted]


def test_pairs_of_one_rank_are_merged_from_left_to_right_in_any_order_of_creation() -> None:
    """The pair "ab c" exists at position 3 before it is created at position 0."""
    names = ["a", "b", "c", "ab", "abc", "abcabc"]
    ranks = MergeRanks([(0, 1), (3, 2), (4, 4)], [3, 4, 5])
    word = [names.index(name) for name in ["a", "b", "c", "ab", "c", "abc"]]
    assert [names[index] for index in merge_by_rank(word, ranks)] == ["abcabc", "abc"]


def test_gpt2_encodes_like_the_textbook() -> None:
    vocab, merges = gpt2()
    ours = Tokenizer(vocab, merges, ["<|endoftext|>"])
    oracle = textbook.Tokenizer(vocab, merges, ["<|endoftext|>"])
    draw = random.Random(2)
    pieces = [
        "the",
        " quick",
        "  ",
        "\n",
        "don't",
        "12345",
        "🦊",
        "mañana",
        "ſ",
        "\t",
        "<|endoftext|>",
        "<|",
        "中文",
        "=" * 70,
    ]
    for _ in range(200):
        text = "".join(draw.choice(pieces) for _ in range(12))
        assert ours.encode(text) == oracle.encode(text)


def test_cache_is_bounded_and_returns_correct_ids() -> None:
    ids = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256}
    encoder = PreTokenEncoder(ids, [(b"a", b"b")], cache_size=5)
    draw = random.Random(0)
    for _ in range(300):
        word = "".join(draw.choice("ab") for _ in range(draw.randrange(1, 6)))
        assert encoder.encode(word) == tuple(encoder.merge(word.encode()))
        assert len(encoder._cache) <= 5
    encoder.encode("ab" * LONG)
    assert "ab" * LONG not in encoder._cache
    assert PreTokenEncoder(ids, [], cache_size=0).encode("ab") == (97, 98)
