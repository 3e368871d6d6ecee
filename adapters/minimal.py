"""A short tokenizer that conforms as an encoder and a decoder, in a single file that users can copy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import regex

from bpe_conformance.fixtures import PATTERNS


class Tokenizer:
    """A byte-level BPE tokenizer with GPT-2's pattern. It neither trains nor reads files.

    Args:
        vocab: id → bytes.
        merges: pairs in order of rank.
        special_tokens: matched in the text before it is split.

    Raises:
        ValueError: if a byte or the result of a merge is not in the vocabulary.
    """

    def __init__(
        self, vocab: dict[int, bytes], merges: list[tuple[bytes, bytes]], special_tokens: list[str] | None = None
    ) -> None:
        self.vocab = dict(vocab)
        self.merges = list(merges)
        known = set(self.vocab.values())
        for token in dict.fromkeys(filter(None, special_tokens or [])):
            if token.encode() not in known:
                self.vocab[max(self.vocab) + 1] = token.encode()
        self._ids = {token: index for index, token in self.vocab.items()}
        self._ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        needed = [bytes([byte]) for byte in range(256)] + [left + right for left, right in self.merges]
        missing = next((token for token in needed if token not in self._ids), None)
        if missing is not None:
            raise ValueError(f"the vocabulary has no {missing!r}")
        longest_first = sorted(filter(None, special_tokens or []), key=len, reverse=True)
        self._special = frozenset(longest_first)
        self._cut = regex.compile(f"({'|'.join(map(regex.escape, longest_first)) or '(?!)'})")
        self._split = regex.compile(PATTERNS["gpt2"])

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        ids: list[int] = []
        for segment in self._cut.split(text):
            if segment in self._special:
                ids.append(self._ids[segment.encode()])
            else:
                for pre_token in self._split.findall(segment):
                    ids += [self._ids[token] for token in self._merge(pre_token.encode())]
        return ids

    def _merge(self, pre_token: bytes) -> list[bytes]:
        word = [bytes([byte]) for byte in pre_token]
        while True:
            pairs = enumerate(pairwise(word))
            found = [(self._ranks[pair], here) for here, pair in pairs if pair in self._ranks]
            if not found:
                return word
            here = min(found)[1]
            word[here : here + 2] = [word[here] + word[here + 1]]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`; bytes that are not UTF-8 become U+FFFD."""
        return b"".join(self.vocab[index] for index in ids).decode("utf-8", errors="replace")
