"""Adapts packages that take ranks, bytes → id, like tiktoken, and the adapters of those that need no more."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.fixtures.models import token_ids

from . import Merges, OfPackage, Pattern, Special, Vocab, calls, temporary_file
from .tokenizer_json import GivesEncodings


class RankTable(NamedTuple):
    """A vocabulary and merges as ranks: `ordinary` is bytes → rank, which is the id; `vocab` has all tokens."""

    ordinary: dict[bytes, int]
    special: dict[str, int]
    vocab: dict[int, bytes]

    def file(self) -> bytes:
        """Return a rank file: a line `base64 rank` for each ordinary token, by rank."""
        rows = sorted(self.ordinary.items(), key=lambda row: row[1])
        return b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in rows)


def ranks_of(vocab: Vocab, merges: Merges, special_tokens: Special) -> RankTable:
    """Return ranks; raise ValueError if bytes are repeated or ids are not in the order of the merges.

    Special tokens that are missing from the vocabulary get max(ids)+1, +2, …, because each needs an id.
    """
    ids = {token: index for index, token in vocab.items()}
    if len(ids) != len(vocab):
        raise ValueError("ranks cannot represent this table: two ids have the same bytes")
    results = [left + right for left, right in merges]
    order = [ids[token] for token in results if token in ids]
    if any(first >= second for first, second in pairwise(order)):
        raise ValueError("ranks cannot represent this table: its ids are not in the order of the merges")
    all_ids = token_ids(vocab, special_tokens or ())
    special = {token: all_ids[token.encode("utf-8")] for token in special_tokens or ()}
    learned = {*results, *(bytes([byte]) for byte in range(256))}
    only_special = {token.encode("utf-8") for token in special} - learned
    ordinary = {token: index for token, index in ids.items() if token not in only_special}
    return RankTable(ordinary, special, {**vocab, **{index: token.encode("utf-8") for token, index in special.items()}})


class RanksTokenizer:
    """An adapter over a package that takes ranks; see `ranks_of` for what it cannot represent."""

    version: ClassVar[str]
    conventions: ClassVar[Mapping[str, str]] = {"lookup": "bytes"}

    def __init__(self, vocab: Vocab, merges: Merges, special_tokens: Special = None, pattern: Pattern = None) -> None:
        ranks = ranks_of(vocab, merges, special_tokens)
        self.vocab, self.merges = ranks.vocab, list(merges)
        self._tokenizer = self.load(ranks, PATTERNS["gpt2"] if pattern is None else pattern)

    def load(self, ranks: RankTable, pattern: str) -> Any:
        raise NotImplementedError

    encode = calls("encode", list)
    decode = calls("decode")


class Riptoken(OfPackage, RanksTokenizer):
    """`riptoken.CoreBPE`, an engine in Rust with the interface of tiktoken's."""

    module = "riptoken"
    decode_bytes = calls("decode_bytes", bytes)

    def load(self, ranks: RankTable, pattern: str) -> Any:
        self._special = set(ranks.special)
        return self.package.CoreBPE(ranks.ordinary, ranks.special, pattern)

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, self._special))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return list(self._tokenizer.encode_batch(list(texts), self._special))


class FastokensRanks(OfPackage, GivesEncodings, RanksTokenizer):
    module = "fastokens"
    arguments = {}

    def load(self, ranks: RankTable, pattern: str) -> Any:
        with temporary_file("ranks.tiktoken", ranks.file()) as path:
            return self.package.Tokenizer.from_tiktoken(path, pattern, ranks.special)


class SplintrEncoder(OfPackage):
    module, install = "splintr", "splintr-rs"
    encode = calls("encode_with_special", list)
    encode_batch = calls("encode_batch_with_special", list)
    decode = calls("decode_lossy", str)  # its decode raises an error on invalid UTF-8
    decode_bytes = calls("decode_bytes", bytes)


class Splintr(SplintrEncoder, RanksTokenizer):
    def load(self, ranks: RankTable, pattern: str) -> Any:
        return self.package.Tokenizer.from_bytes(ranks.file(), pattern, ranks.special)
