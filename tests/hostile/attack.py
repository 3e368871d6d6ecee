"""The base of attacks: things that an adapter does to the suite instead of answering one call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from bpe_conformance.reference.textbook import Tokenizer as Right


class Attack:
    """One attack. A subclass overrides the method that its `op` names.

    Attributes:
        op: the operation of the case in which it is tried.
        outcome: the expected state of its case: "passed" if it does no harm and the answer is correct.
        in_process: whether it is contained even in the suite's own process, without --bpe-isolate.
    """

    op: ClassVar[str] = "encode"
    outcome: ClassVar[str] = "failed"
    in_process: ClassVar[bool] = True
    known: ClassVar[dict[str, type[Attack]]] = {}

    def __init_subclass__(cls) -> None:
        cls.known[cls.__name__.lower()] = cls

    def __init__(self, right: Right) -> None:
        self.right = right

    def encode(self, text: str) -> Any:
        """Act, and return the correct answer."""
        self.act()
        return self.right.encode(text)

    def act(self) -> None:
        """Do something besides answering."""

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str]) -> Any:
        """Learn correctly."""
        return Right.train(text, vocab_size, special_tokens)


def named(text: str) -> type[Attack] | None:
    """Return the attack that a text names."""
    return Attack.known.get(text.strip()) if text.startswith(" ") else None


class Tokenizer(Right):
    """A correct tokenizer except in calls whose text, first text or special token names an attack."""

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
        super().__init__(vocab, merges, special_tokens)
        self.named = next((found for token in special_tokens or () if (found := named(token))), None)

    def _for(self, op: str, text: str) -> Attack | None:
        found = named(text)
        return found(Right(self.vocab, self.merges)) if found is not None and found.op == op else None

    def encode(self, text: str) -> Any:
        attack = self._for("encode", text)
        return super().encode(text) if attack is None else attack.encode(text)

    def decode(self, ids: Sequence[int]) -> Any:
        text = super().decode(ids)
        attack: Any = self._for("decode", text)
        return text if attack is None else attack.decode(ids)

    def decode_bytes(self, ids: Sequence[int]) -> Any:
        return super().decode_bytes(ids)

    def encode_batch(self, texts: Sequence[str]) -> Any:
        attack: Any = self._for("batch", texts[0])
        return [super(Tokenizer, self).encode(text) for text in texts] if attack is None else attack.encode_batch(texts)

    def encode_iterable(self, chunks: Iterable[str]) -> Any:
        text = "".join(chunks)
        attack: Any = self._for("stream", text)
        return iter(super().encode(text)) if attack is None else attack.encode_iterable(text)

    def save(self, folder: str | Path) -> None:
        from bpe_conformance.reference import Tokenizer as Reference

        Reference(self.vocab, self.merges).save(folder)
        attack: Any = self.named and self.named(Right(self.vocab, self.merges))
        if attack is not None:
            attack.save(Path(folder))

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str | None = None) -> Any:
        found = named(text)
        return (Right if found is None else found).train(text, vocab_size, special_tokens)
