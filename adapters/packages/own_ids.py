"""Adapts packages that number tokens themselves: bytes by their values, merge n as 256 + n, then all others.

The merges of these packages are a mapping from pairs of such ids. The packages cannot represent other ids, such as
GPT-2's, so the adapter renumbers the vocabulary and translates ids in both directions. Below are the adapters of those
that need little more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import regex

from bpe_conformance.fixtures import PATTERNS, Merge
from bpe_conformance.fixtures.models import token_ids

from . import Merges, OfPackage, Pattern, Special, Vocab, refuse_special_tokens, temporary_file

IntPair = tuple[int, int]


class OwnIds:
    """A vocabulary and merges in a package's own numbering; ValueError if it cannot represent them."""

    vocab: dict[int, bytes]  # as given, with missing special tokens at max(ids)+1, +2, …
    pairs: dict[IntPair, int]  # pair of own ids → own id, in order of rank
    tokens: dict[int, bytes]  # own id → bytes of all but the special tokens: bytes, merges, and what no merge produces
    special: dict[str, int]  # special token → own id; these are the largest ids

    def __init__(self, vocab: Vocab, merges: Merges, special_tokens: Special = None) -> None:
        given = token_ids(vocab, special_tokens or ())
        special = {text: text.encode("utf-8") for text in special_tokens or ()}
        self.vocab = {**vocab, **{given[token]: token for token in special.values()}}
        own = {left + right: 256 + rank for rank, (left, right) in reversed(list(enumerate(merges)))}
        own = {bytes([byte]): byte for byte in range(256)} | own
        self.pairs = {}
        for rank, (left, right) in enumerate(merges):
            if left not in own or right not in own:
                why = "no byte or merge produces one of them"
                raise ValueError(f"no pair of ids represents {left!r} and {right!r}: {why}")
            if (own[left], own[right]) in self.pairs:
                raise ValueError(f"a mapping of pairs cannot contain {left!r} and {right!r} twice")
            self.pairs[own[left], own[right]] = 256 + rank
        tokens = [bytes([byte]) for byte in range(256)] + [left + right for left, right in merges]
        for token in tokens:
            if token not in given:
                raise ValueError(f"the vocabulary has no id for {token!r}")
        tokens += sorted(given.keys() - set(tokens) - set(special.values()), key=lambda token: given[token])
        self.tokens = dict(enumerate(tokens))
        self.special = {text: len(tokens) + place for place, text in enumerate(special)}
        self._outside = {index: given[token] for index, token in self.tokens.items()}
        self._outside |= {index: given[special[text]] for text, index in self.special.items()}
        self._inside = {outside: index for index, outside in reversed(self._outside.items())}

    def adopt(self, special: Mapping[str, int]) -> None:
        """Use the ids that the package itself assigned to the special tokens, even if they are in use."""
        for token, index in special.items():
            given = self._outside[self.special[token]]
            self._outside[index], self._inside[given] = given, index

    def outside(self, ids: Iterable[int]) -> list[int]:
        """Translate the package's own ids into those of the given vocabulary."""
        try:
            return [self._outside[index] for index in ids]
        except KeyError as unknown:
            raise LookupError(f"the tokenizer returned the id {unknown}, which it does not have") from None

    def inside(self, ids: Iterable[int]) -> list[int]:
        """Translate ids into the package's own; an unknown id stays unknown."""
        return [self._inside.get(index, index if index < 0 else len(self._outside) + index) for index in ids]


def trained_table(tokens: Mapping[int, bytes], pairs: Mapping[IntPair, int]) -> tuple[dict[int, bytes], list[Merge]]:
    return dict(tokens), [(tokens[left], tokens[right]) for left, right in sorted(pairs, key=lambda pair: pairs[pair])]


class OwnIdsTokenizer:
    """An adapter over a tokenizer of such a package, by default one like minbpe."""

    package: ClassVar[Any]
    version: ClassVar[str]
    engine: ClassVar[str]  # the name of the class in the package
    conventions: ClassVar[Mapping[str, str]] = {}
    takes_pattern: ClassVar[bool] = True
    encode_arguments: ClassVar[Mapping[str, Any]] = {}
    train_arguments: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, vocab: Vocab, merges: Merges, special_tokens: Special = None, pattern: Pattern = None) -> None:
        self._table = OwnIds(vocab, merges, special_tokens)
        self.vocab, self.merges = self._table.vocab, list(merges)
        self._tokenizer = self.filled(self._table, self._pattern(pattern))

    @classmethod
    def train(
        cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: Pattern = None
    ) -> OwnIdsTokenizer:
        refuse_special_tokens(special_tokens)
        return cls(*trained_table(*cls.learn(text, vocab_size, cls._pattern(pattern))), None, pattern)

    def encode(self, text: str) -> list[int]:
        return self._table.outside(self._tokenizer.encode(text, **self.encode_arguments))

    def decode(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(self._table.inside(ids))

    @classmethod
    def blank(cls, pattern: str) -> Any:
        engine = getattr(cls.package, cls.engine)
        return engine(pattern) if cls.takes_pattern else engine()

    @classmethod
    def filled(cls, table: OwnIds, pattern: str) -> Any:
        tokenizer = cls.blank(pattern)
        tokenizer.merges, tokenizer.vocab = table.pairs, table.tokens
        cls.register(tokenizer, table.special)
        return tokenizer

    @classmethod
    def register(cls, tokenizer: Any, special_tokens: dict[str, int]) -> None:
        tokenizer.register_special_tokens(special_tokens)

    @classmethod
    def learn(cls, text: str, vocab_size: int, pattern: str) -> tuple[Mapping[int, bytes], Mapping[IntPair, int]]:
        trainer = cls.blank(pattern)
        trainer.train(text, vocab_size, **cls.train_arguments)
        return trainer.vocab, trainer.merges

    @classmethod
    def _pattern(cls, pattern: Pattern) -> str:
        if pattern is not None and not cls.takes_pattern:
            raise NotImplementedError("this package takes no pattern")
        return PATTERNS["gpt2"] if pattern is None else pattern


class Bpetokenizer(OfPackage, OwnIdsTokenizer):
    """`bpetokenizer.BPETokenizer`, pure Python in the style of minbpe."""

    module, engine = "bpetokenizer", "BPETokenizer"
    conventions = {"tie_break": "first-seen"}
    encode_arguments = {"special_tokens": "all"}

    @classmethod
    def filled(cls, table: OwnIds, pattern: str) -> Any:
        tokenizer = cls.package.BPETokenizer(pattern, table.special)
        tokenizer.merges, tokenizer.vocab = table.pairs, table.tokens
        return tokenizer


class Lexibyte(OfPackage, OwnIdsTokenizer):
    """`lexibyte.LexiByteTokenizer`, pure Python. Its `encode` does not match registered special tokens."""

    module, engine = "lexibyte", "LexiByteTokenizer"
    conventions = {"tie_break": "first-seen"}
    takes_pattern = False


class Minibperust(OfPackage, OwnIdsTokenizer):
    """`MiniBpeRust.FastRegexTokenizer`: minbpe with training and encoding in Rust."""

    module, install, engine = "MiniBpeRust", "minibperust", "FastRegexTokenizer"
    conventions = {"tie_break": "first-seen"}
    encode_arguments = {"allowed_special": "all"}


class Turbobpe(OfPackage, OwnIdsTokenizer):
    """`turbobpe.RegexTokenizer`: minbpe with loops in C. Its trainer learns several merges from one count."""

    module, engine = "turbobpe", "RegexTokenizer"
    conventions = {"tie_break": "unspecified"}
    encode_arguments = {"allowed_special": "all"}


class Tinybpe(OfPackage, OwnIdsTokenizer):
    """`tinybpe.Tokenizer` and `tinybpe.Trainer`, in C."""

    module = "tinybpe"
    conventions = {"tie_break": "first-seen"}

    @classmethod
    def filled(cls, table: OwnIds, pattern: str) -> Any:
        return cls.package.Tokenizer(list(table.pairs), pat_str=pattern, special_tokens=table.special or None)

    @classmethod
    def learn(cls, text: str, vocab_size: int, pattern: str) -> tuple[Mapping[int, bytes], Mapping[IntPair, int]]:
        split = regex.compile(pattern)
        trainer = cls.package.Trainer(text, lambda text: [piece.encode("utf-8") for piece in split.findall(text)])
        trainer.train(vocab_size - 256)
        tokens = {byte: bytes([byte]) for byte in range(256)}
        for left, right in trainer.merges:
            tokens[len(tokens)] = tokens[left] + tokens[right]
        return tokens, {pair: 256 + rank for rank, pair in enumerate(trainer.merges)}


class Bytetok(OfPackage, OwnIdsTokenizer):
    """`bytetok.RegexTokenizer`, in Rust. It raises a TrainingError if there are special tokens and no merges."""

    module, engine = "bytetok", "RegexTokenizer"
    conventions = {"tie_break": "unspecified"}
    train_arguments = {"show_progress": False}

    @classmethod
    def register(cls, tokenizer: Any, special_tokens: dict[str, int]) -> None:
        if special_tokens:
            tokenizer.set_special_tokens(special_tokens)

    def encode(self, text: str) -> list[int]:
        return self._table.outside(self._tokenizer.encode(text, self._strategy()))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        rows = self._tokenizer.encode_batch(list(texts), self._strategy(), show_progress=False)
        return [self._table.outside(row) for row in rows]

    def _strategy(self) -> Any:
        return self.package.get_strategy("all") if self._table.special else None


class BpeFromScratch(OfPackage, OwnIdsTokenizer):
    """`bpe_from_scratch.ByteLevelBPE`, loaded from a file in its own format. It does not support special tokens."""

    module, install, engine = "bpe_from_scratch", "bpe-from-scratch", "ByteLevelBPE"
    takes_pattern = False

    @classmethod
    def filled(cls, table: OwnIds, pattern: str) -> Any:
        refuse_special_tokens(list(table.special))
        document: dict[str, Any] = {"vocab": {str(index): list(token) for index, token in table.tokens.items()}}
        document["merges"] = {f"{left},{right}": index for (left, right), index in table.pairs.items()}
        tokenizer = cls.blank(pattern)
        with temporary_file("table.json", json.dumps(document).encode()) as path:
            tokenizer.load(path)
        return tokenizer


class Toktokenizer(OfPackage, OwnIdsTokenizer):
    """`toktokenizer.BPETokenizer`. It splits no text, and gives special tokens ids that can equal those of bytes."""

    module, engine = "toktokenizer", "BPETokenizer"
    takes_pattern = False
    pattern = "none"
    conventions = {"tie_break": "unspecified"}

    @classmethod
    def filled(cls, table: OwnIds, pattern: str) -> Any:
        tokenizer = cls.blank(pattern)
        encoder = {index: pair for pair, index in table.pairs.items()}
        with temporary_file("table.json", json.dumps(encoder).encode()) as path:
            tokenizer.load_encoder(path)
        if table.special:
            tokenizer.add_special_tokens(list(table.special))
            table.adopt(tokenizer.special_tokens_map)
        return tokenizer

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: Pattern = None) -> _Trained:
        """Train on `text`. It takes the number of merges, whose ids begin at 128 and are not translated."""
        refuse_special_tokens(special_tokens)
        cls._pattern(pattern)
        inner = cls.package.BPETokenizer()
        inner.train(text, vocab_size - 256)
        tokens = {byte: bytes([byte]) for byte in range(256)}
        merges = []
        for (left, right), index in sorted(inner.encoder.items(), key=lambda item: item[1]):
            merges.append((tokens[left], tokens[right]))
            tokens[index] = tokens[left] + tokens[right]
        trained = _Trained.__new__(_Trained)
        trained.vocab, trained.merges, trained._tokenizer = tokens, merges, inner
        return trained


class _Trained(Toktokenizer):
    """A trained tokenizer, with the package's own ids."""

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(list(ids))
