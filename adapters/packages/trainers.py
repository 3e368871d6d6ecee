"""Trainers of packages whose encoder cannot be built from a vocabulary, or is another package's."""

from __future__ import annotations

from collections.abc import Sequence

from bpe_conformance.fixtures import PATTERNS, spell, unspell
from bpe_conformance.reference.formats.tiktoken import merges_of_ranks

from . import LearnedTable, OfPackage, Pattern, refuse_special_tokens, temporary_file

NO_LIMIT = 1 << 30  # as bpeasy's `max_token_length`, which it requires: longer than any token
ALPHABET = sorted(spell(bytes([byte])) for byte in range(256))


class Bpeasy(OfPackage):
    """`bpeasy.train_bpe`. Its encoder is tiktoken's engine, which has its own adapter."""

    module, install = "bpeasy", "'bpeasy>=0.1.6'"
    conventions = {"tie_break": "smaller-ids"}

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: Pattern = None) -> LearnedTable:
        refuse_special_tokens(special_tokens)
        pat_str = PATTERNS["gpt2"] if pattern is None else pattern
        ranks: dict[bytes, int] = cls.package.train_bpe(iter([text]), pat_str, NO_LIMIT, vocab_size)
        return LearnedTable({rank: token for token, rank in ranks.items()}, merges_of_ranks(ranks))


class Rustbpe(OfPackage):
    """`rustbpe.Tokenizer.train_from_iterator`. Its tokenizer cannot be built from a vocabulary."""

    module, install = "rustbpe", "'rustbpe>=0.1'"
    conventions = {"tie_break": "smaller-ids"}

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: Pattern = None) -> LearnedTable:
        refuse_special_tokens(special_tokens)
        trainer = cls.package.Tokenizer()
        trainer.train_from_iterator(iter([text]), vocab_size, pattern=PATTERNS["gpt2"] if pattern is None else pattern)
        ranks = {bytes(token): rank for token, rank in trainer.get_mergeable_ranks()}
        return LearnedTable({rank: token for token, rank in ranks.items()}, merges_of_ranks(ranks))


class Gigabpe(OfPackage):
    """`gigabpe.train_bpe` with its `bytelevel` pre-tokenizer, which is GPT-2's pattern. It has no encoder."""

    module = "gigabpe"
    conventions = {"tie_break": "smaller-ids", "byte_order": "gpt2", "train_special": "text"}
    conventions |= {"id_layout": "specials-bytes-merges"}

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str]) -> LearnedTable:
        """Train on a file. Bytes that the text lacks get ids only if the alphabet is given, as special tokens."""
        special = list(dict.fromkeys(special_tokens))
        with temporary_file("corpus.txt", text.encode("utf-8")) as path:
            tokens = [*special, *ALPHABET]
            ids, pairs = cls.package.train_bpe([path], vocab_size, special_tokens=tokens, pretokenizer="bytelevel")
        vocab = {index: token.encode() if index < len(special) else unspell(token) for token, index in ids.items()}
        return LearnedTable(vocab, [(unspell(left), unspell(right)) for left, right in pairs])
