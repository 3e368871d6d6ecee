"""Hugging Face tokenizers as an adapter: `BPE` and `BpeTrainer` with `ByteLevel`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bpe_conformance.fixtures import spell, unspell

from . import Merges, Pattern, Special, Vocab, calls, require
from .tokenizer_json import GivesEncodings

tokenizers = require("tokenizers", "'tokenizers>=0.21'")
decoders, models, pre_tokenizers = tokenizers.decoders, tokenizers.models, tokenizers.pre_tokenizers
_POSSESSIVE_INTERVAL = re.compile(r"((?:\\[pP]\{\w+\}|\[(?:\\.|[^\]\\])*\]|\\?.)\{\d+(?:,\d*)?\})\+")


class Tokenizer(GivesEncodings):
    """`tokenizers.Tokenizer` over `models.BPE`. Of two ids for the same bytes, the first is kept.

    It raises ValueError if a special token equals another token's spelling in the byte map, so that a vocab.json cannot
    represent both.
    """

    version = tokenizers.__version__
    conventions = {"tie_break": "smaller-ids", "byte_order": "gpt2", "train_special": "text"}
    conventions |= {"id_layout": "specials-bytes-merges"}
    _ignore_merges = False
    decode = calls("decode", skip_special_tokens=False)

    def __init__(self, vocab: Vocab, merges: Merges, special_tokens: Special = None, pattern: Pattern = None) -> None:
        self.merges = list(merges)
        learned = {*(left + right for left, right in merges), *(bytes([byte]) for byte in range(256))}
        self._special = set(special_tokens or ())
        plain = {data: token for token in self._special if (data := token.encode("utf-8")) not in learned}
        spelled: dict[str, int] = {}
        for token, index in {token: index for index, token in reversed(dict(vocab).items())}.items():
            spelling = plain.get(token) or spell(token)
            if spelling in spelled:
                raise ValueError(f"a vocab.json cannot represent both tokens that are spelled {spelling!a}")
            spelled[spelling] = index
        pairs = [(spell(left), spell(right)) for left, right in merges]
        model = models.BPE(vocab=spelled, merges=pairs, ignore_merges=self._ignore_merges)
        self._tokenizer = _tokenizer(model, pattern)
        self._tokenizer.add_special_tokens(_added(special_tokens or ()))

    @classmethod
    def from_tokenizer_json(cls, path: str) -> Tokenizer:
        loaded = cls.__new__(cls)
        loaded.merges, loaded._special, loaded._tokenizer = [], set(), tokenizers.Tokenizer.from_file(path)
        return loaded

    @property
    def vocab(self) -> dict[int, bytes]:
        return _vocab(self._tokenizer.get_vocab(with_added_tokens=True), self._special)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: Pattern = None) -> Tokenizer:
        tokenizer = _tokenizer(models.BPE(), pattern)
        special, alphabet = _added(special_tokens), sorted(pre_tokenizers.ByteLevel.alphabet())
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=vocab_size, special_tokens=special, initial_alphabet=alphabet, show_progress=False
        )
        tokenizer.train_from_iterator([text], trainer)
        model = json.loads(tokenizer.to_str())["model"]
        merges = [(unspell(left), unspell(right)) for left, right in model["merges"]]
        return cls(_vocab(model["vocab"], set(special_tokens)), merges, list(special_tokens), pattern)

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        """Yield what `DecodeStream` gives. It has no end: the ids that it still waits for are decoded here."""
        stream, waiting = decoders.DecodeStream(skip_special_tokens=False), list[int]()
        for index in ids:
            waiting.append(index)
            if (delta := stream.step(self._tokenizer, index)) is not None:
                yield delta
                waiting = []
        yield self.decode(waiting)

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return encoding.ids, encoding.offsets


class IgnoreMergesTokenizer(Tokenizer):
    """The same with `ignore_merges`: a pre-token in the vocabulary is not merged, as in Llama 3's file."""

    conventions = {**Tokenizer.conventions, "lookup": "whole"}
    _ignore_merges = True


def _vocab(ids: Mapping[str, int], special_tokens: Collection[str]) -> dict[int, bytes]:
    return {index: key.encode("utf-8") if key in special_tokens else unspell(key) for key, index in ids.items()}


def _tokenizer(model: Any, pattern: Pattern) -> Any:
    tokenizer = tokenizers.Tokenizer(model)
    if pattern is None:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        split = pre_tokenizers.Split(tokenizers.Regex(_oniguruma(pattern)), "isolated")
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _added(special_tokens: Iterable[str]) -> list[Any]:
    return [tokenizers.AddedToken(token, special=True) for token in special_tokens]


def _oniguruma(pattern: str) -> str:
    r"""Return `pattern` in the engine's syntax, where `{1,3}+` is not possessive but repeats the interval.

    >>> print(_oniguruma(r"\p{N}{1,3}+|a++"))
    (?>\p{N}{1,3})|a++
    """
    return _POSSESSIVE_INTERVAL.sub(r"(?>\1)", pattern)
