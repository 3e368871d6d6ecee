"""Ids are translated to and from a package's own numbering, which cannot represent all tables."""

from __future__ import annotations

import random

import pytest

from bpe_conformance.adapters.packages.own_ids import OwnIds, trained_table
from bpe_conformance.reference.textbook import build_vocab, learn


def test_own_ids_renumber_the_vocabulary() -> None:
    rng = random.Random(1)
    for _ in range(50):
        merges = learn("".join(rng.choices("abc é\n", k=80)), 256 + rng.randrange(30))
        listed = build_vocab(merges, ["<|e|>"])
        vocab = dict(zip(rng.sample(range(1000), len(listed)), listed.values(), strict=True))
        table = OwnIds(vocab, merges, ["<|e|>", "<|new|>"])
        assert {index: table.vocab[index] for index in vocab} == vocab
        assert max(table.vocab) == max(vocab) + 1
        own = [*range(256), *table.pairs.values(), *table.special.values()]
        assert own == list(range(256 + len(merges) + 2))
        assert table.inside(table.outside(own)) == own
        for (left, right), index in table.pairs.items():
            assert (
                table.tokens[left] + table.tokens[right]
                == table.tokens[index]
                == table.vocab[table.outside([index])[0]]
            )
        unknown = table.inside([5000, -1])
        assert not set(unknown) & set(own)
        assert unknown[1] < 0
        assert trained_table(table.tokens, table.pairs) == (build_vocab(merges), merges)


def test_own_ids_include_tokens_that_no_merge_creates() -> None:
    table = OwnIds({**build_vocab([]), 300: b"xyz"}, [], ["<|e|>"])
    assert (table.tokens[256], table.special) == (b"xyz", {"<|e|>": 257})
    assert table.outside([256, 257]) == [300, 301]


def test_adopted_ids_replace_those_of_bytes() -> None:
    table = OwnIds(build_vocab([]), [], ["<|e|>"])
    table.adopt({"<|e|>": 131})
    assert (table.outside([131]), table.inside([256])) == ([256], [131])


@pytest.mark.parametrize(
    ("vocab", "merges", "message"),
    [
        ({}, [], r"no id for b'\\x00'"),
        (build_vocab([]), [(b"a", b"b")], "no id for b'ab'"),
        ({**build_vocab([]), 256: b"abc"}, [(b"ab", b"c")], "no byte or merge produces"),
        ({**build_vocab([]), 256: b"ab"}, [(b"a", b"b"), (b"a", b"b")], "twice"),
    ],
)
def test_tables_that_own_ids_cannot_represent_are_rejected(vocab: dict[int, bytes], merges: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OwnIds(vocab, merges)
