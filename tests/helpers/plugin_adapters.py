"""Adapters for tests of the plugin; each test copies this file into its project as `mine.py`."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest

from bpe_conformance.reference import textbook

Right = textbook.Tokenizer


class Greedy(Right):
    """Merges the leftmost pair that can be merged."""

    def merge(self, word: textbook.Word) -> textbook.Word:
        here = 0
        while here + 1 < len(word):
            if word[here : here + 2] in self.ranks:
                word = (*word[:here], word[here] + word[here + 1], *word[here + 2 :])
                here = 0
            else:
                here += 1
        return word


class FromTheRight(Right):
    """Breaks a SHOULD."""

    def encode(self, text: str) -> list[int]:
        return super().encode(text)[::-1] if text == "aaa" else super().encode(text)


class Loud(Exception):
    def __str__(self) -> str:
        return "\ud800\U0001f98a\x1b[31mred"


class Acting(Right):
    """Does what the text says."""

    def encode(self, text: str) -> list[int]:
        act: Callable[[], Any] | None = getattr(self, "act_" + text.replace("-", "_"), None)
        if act is not None:
            act()
        return super().encode(text)

    def act_hang(self) -> None:
        while True:
            pass

    def act_swallow(self) -> None:
        while True:
            try:
                sum(range(100))
            except BaseException:
                continue

    def act_print(self) -> None:
        print("noise")
        print("noise", file=sys.stderr)
        sys.stdout.flush()

    def act_exit(self) -> None:
        sys.exit(0)

    def act_base(self) -> NoReturn:
        raise BaseException("base")

    def act_interrupt(self) -> NoReturn:
        raise KeyboardInterrupt

    def act_pytest_exit(self) -> None:
        pytest.exit("no more", 0)

    def act_pytest_skip(self) -> None:
        pytest.skip("not today")

    def act_escape(self) -> NoReturn:
        raise ValueError("\x1b[2J\x1b[31mred\x07")

    def act_surrogate(self) -> NoReturn:
        raise Loud


class Swallowing(Right):
    """Catches every exception that interrupts it."""

    def encode(self, text: str) -> list[int]:
        while text != "ab":
            with contextlib.suppress(BaseException):
                time.sleep(0.01)
        return super().encode(text)


class Failing(Right):
    """Its constructor misbehaves."""

    act = "act_base"

    def __init__(self, *arguments: Any) -> None:
        getattr(Acting, self.act)(self)


class HangingConstructor(Failing):
    act = "act_hang"


class ExitingConstructor(Failing):
    act = "act_exit"


class SkippingConstructor(Failing):
    act = "act_pytest_skip"


class TrainOnly:
    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str]) -> Any:
        return Right.train(text, vocab_size, special_tokens)


class EncodeOnly:
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
        self._tokenizer = Right(vocab, merges, special_tokens)

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text)


class DecodeOnly:
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
        self._tokenizer = Right(vocab, merges, special_tokens)

    def decode(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(ids)


class Unclaimed(Right):
    """Has every method, but most of them are not implemented."""

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str | None = None) -> Any:
        raise NotImplementedError

    def decode(self, ids: Iterable[int]) -> str:
        raise NotImplementedError

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        raise NotImplementedError

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        raise NotImplementedError
        yield

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        raise NotImplementedError


class LaterUnclaimed(Right):
    """Supports `encode` in the probe and refuses it later."""

    def encode(self, text: str) -> list[int]:
        if text != "ab":
            raise NotImplementedError
        return super().encode(text)


class BrokenStreams(Right):
    """Fails each streaming case in a different way."""

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for chunk in chunks:
            if chunk.startswith("ab cd"):
                raise ValueError("no long streams")
            yield from self.encode(chunk)


def make(vocab: Any, merges: Any, special_tokens: Any = None) -> Right:
    return Right(vocab, merges, special_tokens)


def learn(path: Path, vocab_size: int, special_tokens: list[str]) -> tuple[Any, Any]:
    trained = Right.train(path.read_text("utf-8"), vocab_size, special_tokens)
    return trained.vocab, trained.merges


def forgets(path: Path, vocab_size: int, special_tokens: list[str]) -> None: ...


def raises(path: Path, vocab_size: int, special_tokens: list[str]) -> Any:
    raise ValueError("no training today")


class Raises(Right):
    def encode(self, text: str) -> list[int]:
        if text == "abc":
            raise ValueError("no abc")
        return super().encode(text)


class FirstSeen(Right):
    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str | None = None) -> Any:
        merges = textbook.learn(text, vocab_size, special_tokens, tie_break="first-seen")
        return Right(textbook.build_vocab(merges, special_tokens), merges, list(special_tokens))


class ByBytes(Right):
    def merge(self, word: textbook.Word) -> textbook.Word:
        return textbook.merge_by_bytes(word, self.ids)


class Narrow:
    def __init__(self, path: str) -> None: ...

    def encode(self, text: str) -> list[int]:
        return []


class Demanding:
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any) -> None: ...

    def encode(self, text: str) -> list[int]:
        return []


class InstanceTrain:
    def train(self, text: str, vocab_size: int, special_tokens: list[str]) -> None: ...


class Declaring(Right):
    conventions = {"tie_break": "largest"}  # noqa: RUF012


class Inventing(Right):
    conventions = {"endianness": "little"}  # noqa: RUF012


class Trap(type):
    def __getattr__(cls, name: str) -> Any:
        raise BaseException(f"do not touch {name}")


class Trapping(metaclass=Trap): ...
