"""tiktoken's engine, and its educational trainer, as adapters. tiktoken downloads nothing here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from typing import ClassVar, Literal

from bpe_conformance.fixtures import END_OF_TEXT, PATTERNS, Merge, gpt2

from . import claim_no_special_tokens, unavailable
from .ranks import merges_of, ranks_of

try:
    import tiktoken
    from tiktoken import _educational
except ImportError as error:
    raise unavailable("tiktoken", error, "'bpe-conformance[tiktoken]'") from error


class Tokenizer:
    """`tiktoken.Encoding`. A token's rank is its id, looked up by its bytes; the list of merges is not used.

    Args:
        vocab: id → bytes.
        merges: checked only: their results' ids must ascend.
        special_tokens: those that the vocabulary lacks get max(ids)+1, +2, …: tiktoken wants an id for each.
        pattern: a regular expression in fancy-regex's syntax; None is GPT-2's.

    Raises:
        ValueError: if ranks cannot hold the table (`ranks_of`); or if a special token is empty, for then its
            `encode` never returns, nor can it be interrupted.
    """

    version: ClassVar[str] = tiktoken.__version__
    conventions: ClassVar[Mapping[str, str]] = {"lookup": "bytes"}

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        self.merges = list(merges)
        if "" in (special_tokens or ()):
            raise ValueError("a special token is empty: tiktoken would never return from encode")
        ranks = ranks_of(vocab, merges, special_tokens)
        self.vocab = ranks.vocab
        self._encoding = tiktoken.Encoding(
            "adapter",
            pat_str=PATTERNS["gpt2"] if pattern is None else pattern,
            mergeable_ranks=ranks.ordinary,
            special_tokens=ranks.special,
        )

    def encode(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | Set[str] = "all",
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> list[int]:
        """Return the ids of `text`."""
        return self._encoding.encode(text, allowed_special=allowed_special, disallowed_special=disallowed_special)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return self._encoding.encode_batch(list(texts), allowed_special="all")

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`."""
        return self._encoding.decode(list(ids))

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Return the bytes of `ids`."""
        return self._encoding.decode_bytes(list(ids))


class EducationalTokenizer(Tokenizer):
    """tiktoken's engine over what `tiktoken._educational.bpe_train` learns."""

    conventions: ClassVar[Mapping[str, str]] = {
        "lookup": "bytes",
        "tie_break": "first-seen",
    }

    @classmethod
    def train(
        cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str | None = None
    ) -> EducationalTokenizer:
        """Train on `text`. When pairs run out, the trainer's own ValueError from `max()` is what comes.

        The trainer knows nothing of special tokens.
        """
        claim_no_special_tokens(special_tokens)
        pat_str = PATTERNS["gpt2"] if pattern is None else pattern
        ranks = _educational.bpe_train(text, vocab_size, pat_str, visualise=None)
        return cls({rank: token for token, rank in ranks.items()}, merges_of(ranks), None, pattern)


class GPT2Tokenizer(Tokenizer):
    """tiktoken's engine with GPT-2's table and no other: its encoding `gpt2`, built without a download."""

    model: ClassVar[str] = "gpt2"

    def __init__(self) -> None:
        vocab, merges = gpt2()
        super().__init__(vocab, merges, [END_OF_TEXT])
