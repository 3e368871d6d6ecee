"""A proxy for one tokenizer of an implementation. It rebuilds every answer from exact builtins.

Everything that a call raises becomes an exception of the suite, with the implementation's own frames.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from bpe_conformance.adapters import RemoteError
from bpe_conformance.fixtures import answers
from bpe_conformance.fixtures.answers import MalformedAnswer, NoAnswer, type_name
from bpe_conformance.fixtures.files import INSTALLED, is_of_python

from ..answer import MALFORMED, TIMED_OUT, Answer, Fault, Refusal

T = TypeVar("T")
SHOWN_FRAMES = 4  # how many frames of a traceback are shown, the innermost ones
_LONGEST_MESSAGE = 300
_LONGEST_LINE = 500
_OUR_MODULE = "/protocol.mjs:"  # marks the frames of the module that implements the protocol for JavaScript programs
_PYTHON_FRAME = re.compile(r'^ *File "(.+)", line (\d+), in (.+)\n(?! *File ")(.*)', re.M)
_PYTHON_FILE = re.compile('(?<=^File ")[^"]+')
_PACKAGE = __name__.partition(".")[0]
_UNDER_TEST = tuple(f"{_PACKAGE}.{name}" for name in ("adapters.packages", "known_bugs", "reference"))
"""Parts of this package that are implementations."""

YIELDING: dict[str, Callable[[str, Any], Any]] = {
    "encode_iterable": answers.rebuild_id,
    "decode_iterable": answers.rebuild_delta,
}
"""Method that yields parts → the check of a part."""


class CallFailed(Exception):
    """A call gave no answer. The message is one line."""

    @property
    def answer(self) -> Refusal | Fault:
        raise NotImplementedError


class Raised(CallFailed):
    """A call raised.

    `where` are lines of its traceback without the suite's own frames, and `place` is file:line of the innermost.
    `is_error` is false for a `BaseException` and for a process that ended, which are no answers.
    """

    def __init__(self, call: str, error: BaseException) -> None:
        self.error = error
        self._description = describe(error)
        frames = frames_of(error)
        remote = [line for line in remote_frames(_attribute(error, "details")) if line != self._description]
        self.where = [*map(str, frames), *remote]
        self.place = frames[-1].place if frames else error.place if isinstance(error, RemoteError) else ""
        self.is_error = issubclass(type(error), Exception) and not _attribute(error, "process_failed")
        self._kind = _attribute(error, "type") if type(error) is RemoteError else type_name(error)
        self.message = _message(error)
        super().__init__(f"{call} raised {self._description}")

    @property
    def answer(self) -> Refusal | Fault:
        return (Refusal if self.is_error else Fault)(self._kind, self._description, tuple(self.where))


class Malformed(CallFailed):
    @property
    def answer(self) -> Refusal | Fault:
        return Fault(MALFORMED, str(self))


class Missing(Malformed):
    """The answer is None."""


class TimedOut(BaseException):
    """Calls took longer than the time limit. Not an `Exception`, so that an implementation rarely catches it."""

    def __init__(self, seconds: float, call: str, where: Sequence[str] = ()) -> None:
        super().__init__(f"no answer within {seconds:g} s")
        self.seconds = seconds
        self.call = call
        self._where = tuple(where)

    @property
    def answer(self) -> Fault:
        return Fault(TIMED_OUT, str(self), self._where or tuple(map(str, frames_of(self))))


def answered(ask: Callable[[], Answer]) -> Answer:
    try:
        return ask()
    except (CallFailed, TimedOut) as failed:
        return failed.answer


class Call(Protocol):
    """The type of `contained`, and of `Implementation.call`."""

    def __call__(self, what: str, function: Callable[..., T], /, *arguments: Any, **keywords: Any) -> T: ...


def contained(what: str, function: Callable[..., T], /, *arguments: Any, **keywords: Any) -> T:
    """Call an implementation; `what` is the call as messages show it: `encode(...)`.

    Raises:
        Raised: if it raises anything, `SystemExit` and other `BaseException`s included.
        Malformed: if an answer has the wrong shape (`fixtures.answers`).
        TimedOut: if the time limit is exceeded.
        KeyboardInterrupt: if it raises that, as Python does for Ctrl-C.
    """
    try:
        return function(*arguments, **keywords)
    except (TimedOut, CallFailed, KeyboardInterrupt):
        raise
    except BaseException as error:
        if type(error) in (MalformedAnswer, NoAnswer):
            kind = Missing if type(error) is NoAnswer else Malformed
            raise kind(str(error).splitlines()[0][:_LONGEST_LINE]) from None
        raise Raised(what, error) from None


class TokenizerProxy:
    """One tokenizer of the implementation. Each method raises as `contained` does.

    `encode_allowed_itself` and the like pass exactly the object that they get, which the implementation could change.
    """

    def __init__(self, instance: Any, call: Call = contained) -> None:
        self.instance = instance
        self._call = call

    def has(self, name: str) -> bool:
        return self._call(name, hasattr, self.instance, name)

    def returned(self, method: str, *arguments: Any, **keywords: Any) -> Any:
        """Return the object itself that a method returns, for tests that change it. It can have any type."""
        return self._call(f"{method}(...)", lambda: getattr(self.instance, method)(*arguments, **keywords))

    def encode(self, text: str) -> list[int]:
        return self._ids("encode", lambda: self.instance.encode(text))

    def encode_allowed(self, text: str, allowed: Collection[str], disallowed: Collection[str]) -> list[int]:
        """Return the ids of `text`, with both arguments in tiktoken's form: "all", a set, or a tuple."""
        return self.encode_allowed_itself(text, "all" if allowed == "all" else set(allowed), disallowed)

    def encode_allowed_itself(self, text: str, allowed: str | set[str], disallowed: Collection[str]) -> list[int]:
        disallowed = disallowed if disallowed == "all" or type(disallowed) is set else tuple(disallowed)
        keywords = {"allowed_special": allowed, "disallowed_special": disallowed}
        return self._ids("encode", lambda: self.instance.encode(text, **keywords))

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of `ids`. A tuple is passed as a tuple, other sequences as a list."""
        return self.decode_itself(ids if type(ids) is tuple else list(ids))

    def decode_itself(self, ids: Sequence[int]) -> str:
        return self._call("decode(...)", lambda: answers.rebuild_text("decode", self.instance.decode(ids)))

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return self.decode_bytes_itself(list(ids))

    def decode_bytes_itself(self, ids: list[int]) -> bytes:
        rebuild = answers.rebuild_bytes
        return self._call("decode_bytes(...)", lambda: rebuild("decode_bytes", self.instance.decode_bytes(ids)))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        name, rebuild = "encode_batch", answers.rebuild_rows
        return self._call(f"{name}(...)", lambda: rebuild(name, self.instance.encode_batch(list(texts)), len(texts)))

    def stream(self, chunks: Iterable[str]) -> list[int]:
        return self._ids("encode_iterable", lambda: self.instance.encode_iterable(chunks))

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        name, rebuild = "encode_with_offsets", answers.rebuild_offsets
        return self._call(f"{name}(...)", lambda: rebuild(name, self.instance.encode_with_offsets(text)))

    def detokenize(self, ids: Iterable[int]) -> str:
        name, rebuild = "decode_iterable", answers.rebuild_deltas
        return self._call(f"{name}(...)", lambda: "".join(rebuild(name, self._begin(name, ids))))

    def watch(self, method: str, items: Iterable[Any], seen: Callable[[Any], None]) -> None:
        """Read all that a method of `YIELDING` yields, and call `seen` with each part at once."""

        def read() -> None:
            for part in self._begin(method, items):
                seen(YIELDING[method](method, part))

        self._call(f"{method}(...)", read)

    def open(self, method: str, items: Iterable[Any]) -> Iterator[Any]:
        """Return an iterator over what a method of `YIELDING` yields. To begin and to read a part are one call each."""
        what, ended = f"{method}(...)", object()
        parts = self._call(what, self._begin, method, items)

        def each() -> Iterator[Any]:
            while (part := self._call(what, next, parts, ended)) is not ended:
                yield self._call(what, YIELDING[method], method, part)

        return each()

    def save(self, folder: Path) -> None:
        self._call("save(...)", lambda: self.instance.save(str(folder)))

    def _ids(self, method: str, ask: Callable[[], Any]) -> list[int]:
        return self._call(f"{method}(...)", lambda: answers.rebuild_ids(method, ask()))

    def _begin(self, method: str, items: Iterable[Any]) -> Iterator[Any]:
        return answers.iterate(method, getattr(self.instance, method)(items))


def describe(error: BaseException) -> str:
    """Return the type and the first line of the message of `error`, whatever its `__str__` does."""
    name, message = type_name(error), _message(error)
    if message and type(error) is RemoteError:
        return message
    return f"{name}: {message}" if message else name


def _message(error: BaseException) -> str:
    try:
        lines = str.__add__("", str(error)).strip().splitlines()
    except TimedOut:
        raise
    except BaseException:
        return "(its message cannot be read)"
    return lines[0][:_LONGEST_MESSAGE] if lines else ""


def _attribute(error: BaseException, name: str) -> str:
    """Return an attribute as text, "yes" for True, or "". Reading it can run foreign code."""
    try:
        value = getattr(error, name, "")
    except TimedOut:
        raise
    except BaseException:
        return ""
    return str.__add__("", value) if issubclass(type(value), str) else "yes" if value is True else ""


def is_ours(module: str) -> bool:
    """Return whether a module belongs to the suite, and not to an implementation, its packages, or Python."""
    return _is_part(module, _PACKAGE) and not any(_is_part(module, name) for name in _UNDER_TEST)


def _is_part(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


class Frame(NamedTuple):
    """A frame of a traceback; `place` is file:line."""

    place: str
    function: str
    source: str

    def __str__(self) -> str:
        return f"{self.place} in {self.function}: {self.source}"[:_LONGEST_LINE]


def frames_of(error: BaseException) -> list[Frame]:
    """Return the innermost frames that are not the suite's own and, if there are others, not Python's.

    They end with the last one outside of installed packages, if there is one, because what that passes on is at fault.
    """
    try:
        found = zip(traceback.walk_tb(error.__traceback__), traceback.extract_tb(error.__traceback__), strict=True)
        theirs = [summary for (live, _), summary in found if not is_ours(str(live.f_globals.get("__name__")))]
    except BaseException:  # reading an exception of the implementation can raise anything
        return []
    written = [frame for frame in theirs if not is_of_python(frame.filename)]
    own = [number for number, frame in enumerate(written, 1) if not INSTALLED & {*Path(frame.filename).parts}]
    written = written[: own[-1]] if own else written
    shown = (written or theirs)[-SHOWN_FRAMES:]
    return [Frame(f"{as_imported(frame.filename)}:{frame.lineno}", frame.name, frame.line or "") for frame in shown]


def remote_frames(text: str) -> list[str]:
    """Return the innermost lines of a traceback, or of an error output, that another process wrote, innermost last."""

    def of_python(found: re.Match[str]) -> str:
        place = f"{as_imported(found[1])}:{found[2]}"
        return "" if is_of_python(found[1]) else str(Frame(place, found[3], found[4].strip()))

    text = _PYTHON_FRAME.sub(of_python, text)
    lines = [line.strip() for line in text.splitlines() if line.strip(" ^~")]
    lines = [_PYTHON_FILE.sub(lambda found: as_imported(found[0]), line)[:_LONGEST_LINE] for line in lines]
    first = next((index for index, line in enumerate(lines) if line.startswith("at ")), None)
    if first is None:
        return lines[-SHOWN_FRAMES:]
    error = lines[:first][-1:]  # JavaScript and Java name the error, then the innermost frame, then its callers
    innermost_first = [line.removeprefix("at ") for line in lines[first:] if line.startswith("at ")]
    theirs = [line for line in innermost_first if _OUR_MODULE not in line and "node:" not in line] or innermost_first
    return [*error, *reversed(theirs[: SHOWN_FRAMES - 1])]


def as_imported(filename: str) -> str:
    """Return a file's path relative to where it is imported from, so that reports do not depend on that directory."""
    folders = set()
    for folder in [*sys.path, ""]:
        with contextlib.suppress(OSError):  # the current directory may be gone
            folders.add(os.path.join(os.path.abspath(folder), ""))  # noqa: PTH100, PTH118
    return filename[max((len(folder) for folder in folders if filename.startswith(folder)), default=0) :]
