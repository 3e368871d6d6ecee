"""tiktoken's engine, and its educational trainer, as adapters. tiktoken downloads nothing here."""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from bpe_conformance.fixtures import END_OF_TEXT, PATTERNS, gpt2
from bpe_conformance.fixtures.pipeline import Pipeline
from bpe_conformance.reference.formats import huggingface, tekken
from bpe_conformance.reference.formats.tiktoken import merges_of_ranks
from bpe_conformance.reference.pipeline import pattern_of

from . import Pattern, calls, refuse_special_tokens, require
from .ranks import RanksTokenizer, RankTable

tiktoken = require("tiktoken", "'tiktoken>=0.12'")
_educational = require("tiktoken._educational", "'tiktoken>=0.12'")
Choice: TypeAlias = Collection[str]  # the text `all`, or special tokens


class Tokenizer(RanksTokenizer):
    """`tiktoken.Encoding`. An empty special token is an error, because `encode` would never return."""

    version = tiktoken.__version__
    encode_batch = calls("encode_batch", list, allowed_special="all")
    decode_bytes = calls("decode_bytes", bytes)

    @classmethod
    def from_model_file(cls, path: str) -> Tokenizer:
        """Return the encoding of a `tokenizer.json` or `tekken.json`, with its ids as ranks."""
        model = tekken.read(path) if tekken.is_tekken(Path(path)) else huggingface.read(path)
        pattern, pipeline = model.pattern, model.pipeline or Pipeline()
        if model.pipeline is not None:
            pattern = pattern_of(pipeline.steps) or ""
        if pipeline.normalizer:
            raise ValueError(f"the normalizer is {' and '.join(pipeline.normalizer)}; tiktoken has none")
        if not pattern:
            lacks = "pre_tokenizer is not one expression that matches all of every text"
            raise ValueError(f"{lacks}; tiktoken has no other")
        if any(token.lstrip or token.rstrip or token.single_word for token in pipeline.added_tokens):
            raise ValueError("an added token has lstrip, rstrip or single_word; tiktoken has no such setting")
        special = {text: model.ids[text.encode("utf-8")] for text in model.special_tokens or ()}
        ordinary = {token: index for token, index in model.ids.items() if index not in special.values()}
        tokenizer = cls.__new__(cls)
        ranks = RankTable(ordinary, special, dict(model.vocab))
        tokenizer._tokenizer = tokenizer.load(ranks, PATTERNS.get(pattern, pattern))
        return tokenizer

    def load(self, ranks: RankTable, pattern: str) -> Any:
        if "" in ranks.special:
            raise ValueError("a special token is empty: tiktoken would never return from encode")
        tables = {"mergeable_ranks": ranks.ordinary, "special_tokens": ranks.special}
        return tiktoken.Encoding("adapter", pat_str=pattern, **tables)

    def encode(self, text: str, *, allowed_special: Choice = "all", disallowed_special: Choice = "all") -> list[int]:
        arguments = {"allowed_special": allowed_special, "disallowed_special": disallowed_special}
        return list(self._tokenizer.encode(text, **arguments))

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        """Yield the text of the bytes of each id, by Python's incremental decoder: tiktoken has no such method."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for index in ids:
            yield decoder.decode(self._tokenizer.decode_single_token_bytes(index))
        yield decoder.decode(b"", final=True)

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return ids and spans: a token ends where the next starts, one later if that begins inside a character."""
        ids = self.encode(text)
        starts = [*self._tokenizer.decode_with_offsets(ids)[1], len(text)]
        is_inside = [0x80 <= token[0] < 0xC0 for token in self._tokenizer.decode_tokens_bytes(ids)] + [False]
        ends = [start + inside for start, inside in zip(starts, is_inside, strict=True)][1:]
        return ids, list(zip(starts, ends, strict=False))


class EducationalTokenizer(Tokenizer):
    """tiktoken's engine with the ranks that `tiktoken._educational.bpe_train` learns."""

    conventions = {"lookup": "bytes", "tie_break": "first-seen"}

    @classmethod
    def train(
        cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: Pattern = None
    ) -> EducationalTokenizer:
        """Train on `text`. The trainer does not support special tokens, and raises ValueError when pairs run out."""
        refuse_special_tokens(special_tokens)
        pat_str = PATTERNS["gpt2"] if pattern is None else pattern
        ranks = _educational.bpe_train(text, vocab_size, pat_str, visualise=None)
        return cls({rank: token for token, rank in ranks.items()}, merges_of_ranks(ranks), None, pattern)


class Gpt2Tokenizer(Tokenizer):
    """tiktoken's encoding `gpt2`, built without a download."""

    model = "gpt2"

    def __init__(self) -> None:
        vocab, merges = gpt2()
        super().__init__(vocab, merges, [END_OF_TEXT])
