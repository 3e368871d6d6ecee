"""Ids are translated to and from a package's own numbering, which cannot represent all tables."""

from __future__ import annotations

import random
import types
from typing import ClassVar

import pytest

from bpe_conformance.adapters.packages.own_ids import OwnIds, OwnIdsTokenizer, trained_table
from bpe_conformance.adapters.packages.ranks import RankTable, ranks_of
from bpe_conformance.fixtures import PATTERNS
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
        unknown = table.inside([5000, -1, next(index for index in range(1000) if index not in table.vocab)])
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


def test_a_token_that_two_merges_give_has_the_id_of_the_first() -> None:
    merges = [(b"b", b"c"), (b"a", b"bc"), (b"a", b"b"), (b"ab", b"c"), (b"abc", b"d")]
    vocab = {**dict(enumerate(bytes([byte]) for byte in range(256))), 300: b"bc", 301: b"abc", 302: b"ab", 303: b"abcd"}
    table = OwnIds(vocab, merges)
    assert table.pairs == {(98, 99): 256, (97, 256): 257, (97, 98): 258, (258, 99): 259, (257, 100): 260}
    assert table.inside([301]) == [257]
    assert table.outside([257, 259]) == [301, 301]
    with pytest.raises(LookupError, match="the tokenizer returned the id 5000, which it does not have"):
        table.outside([97, 5000])


def test_learned_merges_are_in_the_order_of_their_ids() -> None:
    tokens = {97: b"a", 98: b"b", 99: b"c", 256: b"ab", 257: b"bc"}
    assert trained_table(tokens, {(98, 99): 257, (97, 98): 256})[1] == [(b"a", b"b"), (b"b", b"c")]


def test_ranks_are_the_ids_of_all_but_special_tokens() -> None:
    vocab = {**build_vocab([(b"a", b"b")]), 300: b"<|e|>", 301: b"xyz"}
    ranks = ranks_of(vocab, [(b"a", b"b")], ["<|e|>", "<|new|>", "ab", "a"])
    assert ranks.special == {"<|e|>": 300, "<|new|>": 302, "ab": 256, "a": 97}
    assert ranks.ordinary == {token: index for index, token in vocab.items() if token != b"<|e|>"}
    assert ranks.vocab == {**vocab, 302: b"<|new|>"}
    assert ranks_of(build_vocab([]), [(b"a", b"b")], None).ordinary == {bytes([byte]): byte for byte in range(256)}


def test_a_rank_file_is_sorted_by_rank() -> None:
    lines = RankTable({b"b": 2, b"a": 10, b"c": 1}, {"<|e|>": 0}, {}).file()
    assert lines == b"Yw== 1\nYg== 2\nYQ== 10\n"


@pytest.mark.parametrize(
    ("vocab", "merges", "message"),
    [
        ({**build_vocab([]), 256: b"a"}, [], "two ids have the same bytes"),
        ({**build_vocab([]), 256: b"bc", 257: b"ab"}, [(b"a", b"b"), (b"b", b"c")], "not in the order of the merges"),
        ({**build_vocab([]), 256: b"aaa"}, [(b"a", b"aa"), (b"aa", b"a")], "not in the order of the merges"),
    ],
)
def test_tables_that_ranks_cannot_represent_are_rejected(vocab: dict[int, bytes], merges: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ranks_of(vocab, merges, None)


class LikeMinbpe:
    def __init__(self, pattern: str) -> None:
        self.pattern, self.merges, self.vocab = pattern, {}, {}

    def register_special_tokens(self, special_tokens: dict[str, int]) -> None:
        self.special_tokens = special_tokens

    def train(self, text: str, vocab_size: int, verbose: bool = True) -> None:
        assert (text, vocab_size, verbose) == ("ab", 257, False)
        self.merges, self.vocab = {(97, 98): 256}, build_vocab([(b"a", b"b")])

    def encode(self, text: str, allowed_special: str = "none") -> list[int]:
        assert allowed_special == "all"
        return [self.special_tokens[text]] if text in self.special_tokens else [self.merges[97, 98]]

    def decode(self, ids: list[int]) -> str:
        return b"".join(self.vocab[index] for index in ids).decode()


def test_a_package_gets_its_own_ids_and_the_caller_those_of_the_vocabulary() -> None:
    class Adapter(OwnIdsTokenizer):
        package = types.SimpleNamespace(LikeMinbpe=LikeMinbpe)
        engine = "LikeMinbpe"
        encode_arguments: ClassVar = {"allowed_special": "all"}
        train_arguments: ClassVar = {"verbose": False}

    merges = [(b"a", b"b")]
    vocab = {1000 + byte: bytes([byte]) for byte in range(256)} | {7: b"ab"}
    tokenizer = Adapter(vocab, merges, ["<|e|>"])
    assert (tokenizer.vocab, tokenizer.merges) == ({**vocab, 1256: b"<|e|>"}, merges)
    assert (tokenizer.encode("ab"), tokenizer.encode("<|e|>")) == ([7], [1256])
    assert tokenizer.decode((7, 1097)) == "aba"
    assert tokenizer._tokenizer.pattern == PATTERNS["gpt2"]
    trained = Adapter.train("ab", 257, [], "x")
    assert (trained.vocab, trained.merges) == (build_vocab(merges), merges)
    assert trained._tokenizer.pattern == "x"
    with pytest.raises(NotImplementedError, match="does not support special tokens"):
        Adapter.train("ab", 257, ["<|e|>"])


def test_a_package_without_patterns_refuses_one() -> None:
    class Plain(OwnIdsTokenizer):
        takes_pattern = False
        engine = "SimpleNamespace"
        package = types

        @classmethod
        def register(cls, tokenizer: object, special_tokens: dict[str, int]) -> None: ...

    Plain(build_vocab([]), [])
    for make in (Plain, lambda *table: Plain.train("ab", 257, [], table[-1])):
        with pytest.raises(NotImplementedError, match="this package takes no pattern"):
            make(build_vocab([]), [], None, "x")
