"""Attacks by the answer: hostile objects, endless iterators, wrong types, gigantic values."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from bpe_conformance.reference.textbook import Tokenizer as Right

from .attack import Attack

WANTED = "encode returned an id of type *; expected int"


def fail(*_: Any) -> NoReturn:
    raise RuntimeError("hostile")


def spin(*_: Any) -> NoReturn:
    while True:
        pass


def sleep(*_: Any) -> None:
    time.sleep(1000)


class Anything:
    """An object that equals everything and converts to anything."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    def __bool__(self) -> bool:
        return True

    def __contains__(self, item: object) -> bool:
        return True


EQUAL = {"__eq__": Anything.__eq__, "__ne__": Anything.__ne__}


class Equal(Attack):
    def encode(self, text: str) -> Any:
        return Anything()


class EqualIds(Attack):
    def encode(self, text: str) -> Any:
        return [Anything()] * len(text)


class EqualList(Attack):
    def encode(self, text: str) -> Any:
        return type("List", (list, Anything), EQUAL)([1, 2, 3])


class EqualInts(Attack):
    def encode(self, text: str) -> Any:
        return [type("Int", (int,), {**EQUAL, "__hash__": int.__hash__})(5)] * len(text)


class EqualText(Attack):
    op = "decode"

    def decode(self, ids: Sequence[int]) -> Any:
        return type(
            "Text", (str,), {**EQUAL, "__hash__": str.__hash__, "__str__": fail, "encode": lambda *_: Anything()}
        )("no")


class Strings(Attack):
    def encode(self, text: str) -> Any:
        return [str(index) for index in self.right.encode(text)]


class Floats(Attack):
    def encode(self, text: str) -> Any:
        return [float(index) for index in self.right.encode(text)]


class NotANumber(Attack):
    def encode(self, text: str) -> Any:
        return [float("nan")]


class Booleans(Attack):
    def encode(self, text: str) -> Any:
        return [True]


class Negative(Attack):
    def encode(self, text: str) -> Any:
        return [index - 256 for index in self.right.encode(text)]


class Beyond64Bits(Attack):
    def encode(self, text: str) -> Any:
        return [2**64]


class Huge(Attack):
    def encode(self, text: str) -> Any:
        return [10**5000] * len(text)


class HugeIndex(Attack):
    def encode(self, text: str) -> Any:
        return [type("Index", (), {"__index__": lambda self: 10**5000})()]


class ChangingIndex(Attack):
    def encode(self, text: str) -> Any:
        numbers = itertools.count()
        return [type("Index", (), {"__index__": lambda self: next(numbers)})()] * len(text)


class BooleanIndex(Attack):
    def encode(self, text: str) -> Any:
        return [type("Index", (), {"__index__": lambda self: True})()]


class RaisingIndex(Attack):
    def encode(self, text: str) -> Any:
        return [type("Index", (), {"__index__": fail})()]


class EndlessIndex(Attack):
    def encode(self, text: str) -> Any:
        return [type("Index", (), {"__index__": spin})()]


class RaisingRepr(Attack):
    def encode(self, text: str) -> Any:
        return [type("Mute", (), {"__repr__": fail, "__str__": fail})()]


class GiganticRepr(Attack):
    def encode(self, text: str) -> Any:
        return [type("Loud", (), {"__repr__": lambda self: "x" * 10**9})()]


class EndlessRepr(Attack):
    def encode(self, text: str) -> Any:
        return [type("Endless", (), {"__repr__": spin, "__str__": spin})()]


class RaisingHash(Attack):
    def encode(self, text: str) -> Any:
        return type("Unhashable", (list,), {"__hash__": fail, "__eq__": fail})([1])


class LyingLength(Attack):
    def encode(self, text: str) -> Any:
        return type("Long", (list,), {"__len__": lambda self: 10**18})([1])


class LyingClass(Attack):
    def encode(self, text: str) -> Any:
        return type("Liar", (), {"__class__": property(lambda self: list)})()


class RaisingClass(Attack):
    def encode(self, text: str) -> Any:
        return type("Hidden", (), {"__class__": property(fail), "__getattribute__": fail})()


class HostileName(Attack):
    def encode(self, text: str) -> Any:
        return type("\x1b[2J</script>\n# " + "x" * 10**6, (), {})()


class HostileMetaclass(Attack):
    def encode(self, text: str) -> Any:
        meta = type("Meta", (type,), {"__getattribute__": fail, "__instancecheck__": fail, "__eq__": fail})
        return meta("Odd", (), {})()


class EverythingThere(Attack):
    def encode(self, text: str) -> Any:
        return type("Ghost", (), {"__getattr__": lambda self, name: self, "__iter__": lambda self: self})()


class EndlessIds(Attack):
    def encode(self, text: str) -> Any:
        return itertools.repeat(97)


class EndlessSilence(Attack):
    def encode(self, text: str) -> Any:
        return (index for index in itertools.count() if index < 0)


class EndlessIter(Attack):
    def encode(self, text: str) -> Any:
        return type("Itself", (), {"__iter__": spin})()


class ManyIds(Attack):
    def encode(self, text: str) -> Any:
        return [97] * 3_999_999


class TooManyIds(Attack):
    def encode(self, text: str) -> Any:
        return [97] * 30_000_000


class Nested(Attack):
    def encode(self, text: str) -> Any:
        ids: list[Any] = []
        for _ in range(100_000):
            ids = [ids]
        return ids


class Itself(Attack):
    def encode(self, text: str) -> Any:
        ids: list[Any] = []
        ids.append(ids)
        return ids


class GrowingList(Attack):
    def encode(self, text: str) -> Any:
        ids = [97]
        return (ids.append(index) or index for index in ids)


class Bytes(Attack):
    op = "decode"

    def decode(self, ids: Sequence[int]) -> Any:
        return self.right.decode(ids).encode()


class View(Attack):
    op = "decode"

    def decode(self, ids: Sequence[int]) -> Any:
        return memoryview(b"text")


class GiganticText(Attack):
    op = "decode"

    def decode(self, ids: Sequence[int]) -> Any:
        return "\x1b" * (40 << 20)


class SurrogateText(Attack):
    op = "decode"

    def decode(self, ids: Sequence[int]) -> Any:
        return "\ud800\udfff\x00\x1b]0;\x07</script>\u202e"


class EndlessRows(Attack):
    op = "batch"

    def encode_batch(self, texts: Sequence[str]) -> Any:
        return itertools.repeat([97])


class EndlessRow(Attack):
    op = "batch"

    def encode_batch(self, texts: Sequence[str]) -> Any:
        return [itertools.repeat(97) for _ in texts]


class EqualRows(Attack):
    op = "batch"

    def encode_batch(self, texts: Sequence[str]) -> Any:
        return Anything()


class EndlessStream(Attack):
    op = "stream"

    def encode_iterable(self, text: str) -> Any:
        return itertools.repeat(97)


class SilentStream(Attack):
    op = "stream"

    def encode_iterable(self, text: str) -> Any:
        while True:
            if time is None:
                yield


class ClosingStream(Attack):
    op = "stream"

    def encode_iterable(self, text: str) -> Iterator[int]:
        try:
            yield 1
            yield from self.right.encode(text)
        finally:
            raise BaseException("in its finally")


class EndlessVocab(Attack):
    op = "train"

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str]) -> Any:
        items = lambda self: ((index, b"a") for index in itertools.count())  # noqa: E731
        return type("Endless", (dict,), {"items": items})(), []


class EndlessMerges(Attack):
    op = "train"

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str]) -> Any:
        return {index: bytes([index]) for index in range(256)}, itertools.repeat((b"a", b"b"))


class ChangingVocab(Attack):
    op = "train"

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str]) -> Any:
        right = Right.train(text, vocab_size, special_tokens)

        class Vocab(Mapping[int, bytes]):
            def __getitem__(self, key: int) -> bytes:
                return right.vocab[key]

            def __len__(self) -> int:
                return len(right.vocab)

            def __iter__(self) -> Iterator[int]:
                for key in right.vocab:
                    right.vocab[len(right.vocab)] = b"more"
                    yield key

        return SimpleNamespace(vocab=Vocab(), merges=right.merges)


class GiganticTokens(Attack):
    op = "train"

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str]) -> Any:
        right = Right.train(text, vocab_size, special_tokens)
        return {**right.vocab, 256: b"x" * (16 << 20)}, [(b"x" * (8 << 20), b"x" * (8 << 20))]


class EqualMerges(Attack):
    op = "train"

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str]) -> Any:
        return Right.train(text, vocab_size, special_tokens).vocab, Anything()


class EqualBytes(Attack):
    op = "train"

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str]) -> Any:
        def like(token: bytes) -> bytes:
            return type("Token", (bytes,), {**EQUAL, "__hash__": lambda self: hash(token)})(b"no")

        right = Right.train(text, vocab_size, special_tokens)
        merges = [(like(left), like(second)) for left, second in right.merges]
        return {index: like(token) for index, token in right.vocab.items()}, merges


class EverythingLearned(Attack):
    op = "train"

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str]) -> Any:
        return type("Ghost", (), {"__getattr__": lambda self, name: self, "__call__": lambda self: self})()


def put(folder: Path, make: Callable[[Path], object]) -> None:
    """Replace the vocabulary by something else."""
    file = folder / "vocab.json"
    file.unlink()
    make(file)


class SavedPipe(Attack):
    op = "save"

    def save(self, folder: Path) -> None:
        put(folder, os.mkfifo)


class SavedDevice(Attack):
    op = "save"

    def save(self, folder: Path) -> None:
        put(folder, lambda file: file.symlink_to("/dev/zero"))


class SavedLoop(Attack):
    op = "save"

    def save(self, folder: Path) -> None:
        put(folder, lambda file: file.symlink_to(file))


class SavedFolder(Attack):
    op = "save"

    def save(self, folder: Path) -> None:
        put(folder, lambda file: (file / "deep").mkdir(parents=True))


class SavedSparse(Attack):
    op = "save"

    def save(self, folder: Path) -> None:
        put(folder, lambda file: (file.touch(), os.truncate(file, 1 << 42)))


class SavedDeep(Attack):
    op = "save"

    def save(self, folder: Path) -> None:
        put(folder, lambda file: file.write_text("[" * 1_000_000))


class SavedNumber(Attack):
    op = "save"

    def save(self, folder: Path) -> None:
        put(folder, lambda file: file.write_text('{"a": ' + "9" * 100_000 + "}"))


class SavedText(Attack):
    op = "save"

    def save(self, folder: Path) -> None:
        put(folder, lambda file: file.write_text('{"\\ud800\\u001b[31m</script>": "x"}'))


class SavedNowhere(Attack):
    op = "save"

    def save(self, folder: Path) -> None:
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


class SavedElsewhere(Attack):
    outcome = "passed"
    op = "save"

    def save(self, folder: Path) -> None:
        folder.rename(folder.with_name(folder.name + "-moved"))
        folder.symlink_to(folder.with_name(folder.name + "-moved"))


class SavedAsFile(Attack):
    op = "save"

    def save(self, folder: Path) -> None:
        SavedNowhere.save(self, folder)  # type: ignore[arg-type]
        folder.write_text("no folder")


class SavedLocked(Attack):
    outcome = "passed"
    op = "save"

    def save(self, folder: Path) -> None:
        (folder / "locked").mkdir()
        (folder / "locked" / "file").touch()
        (folder / "locked").chmod(0)
        folder.chmod(0)
