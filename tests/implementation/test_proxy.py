"""Whatever a call raises or returns becomes an answer or an error of one line."""

from __future__ import annotations

import json
import re
import traceback
import warnings
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, NoReturn

import pytest
import regex

from bpe_conformance.adapters.errors import RemoteError
from bpe_conformance.answer import MALFORMED, Fault, Refusal, Text
from bpe_conformance.fixtures import files
from bpe_conformance.fixtures.answers import MalformedAnswer, NoAnswer
from bpe_conformance.implementation import proxy
from bpe_conformance.implementation.proxy import (
    CallFailed,
    Malformed,
    Missing,
    Raised,
    TimedOut,
    contained,
    describe,
    frames_of,
    is_ours,
)
from bpe_conformance.implementation.time_limit import TimeLimit
from bpe_conformance.operations import Decode
from bpe_conformance.reference import Tokenizer


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, BaseException, ValueError, MemoryError, StopIteration])
def test_exceptions_become_faults(kind: type[BaseException]) -> None:
    error = kind("x")

    def fail() -> NoReturn:
        raise error

    with pytest.raises(Raised) as caught:
        contained("encode('a')", fail)
    raised = caught.value
    assert raised.error is error
    assert raised.is_error == isinstance(error, Exception)
    assert isinstance(raised.answer, Refusal if raised.is_error else Fault)
    assert raised.answer.kind == type(error).__name__
    assert str(raised).startswith(f"encode('a') raised {type(error).__name__}")
    (frame,) = raised.where
    assert re.match(rf"\S*{Path(__file__).name}:\d+ in fail: raise error", frame)


def test_ctrl_c_ends_the_run() -> None:
    def fail() -> NoReturn:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        contained("encode(...)", fail)


def test_answer_of_the_wrong_shape_is_a_fault() -> None:
    def fail() -> NoReturn:
        raise MalformedAnswer("encode returned None; expected list[int]")

    with pytest.raises(Malformed) as caught:
        contained("outer", lambda: contained("inner", fail))
    assert caught.value.answer == Fault(MALFORMED, "encode returned None; expected list[int]")
    assert issubclass(Raised, CallFailed)


@pytest.mark.parametrize(("wrong", "kind"), [(MalformedAnswer, Malformed), (NoAnswer, Missing)])
def test_an_answer_that_is_none_differs_from_others_of_the_wrong_shape(
    wrong: type[MalformedAnswer], kind: type[Malformed]
) -> None:
    def fail() -> NoReturn:
        raise wrong("x" * 10_000 + "\nsecond line")

    with pytest.raises(Malformed) as caught:
        contained("encode(...)", fail)
    assert type(caught.value) is kind
    assert 100 < len(str(caught.value)) < 1000
    assert "\n" not in str(caught.value)


def test_warnings_are_ignored_within_a_time_limit() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with TimeLimit().within(1):
            contained("encode(...)", lambda: warnings.warn("deprecated", stacklevel=1))


def test_messages_are_one_line_whatever_the_exception_does() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise SystemExit

    class Odd(Exception):
        def __str__(self) -> str:
            return 5  # type: ignore[return-value]

    assert describe(Mute()) == "Mute: (its message cannot be read)"
    assert describe(Odd()) == "Odd: (its message cannot be read)"
    assert describe(ValueError("one\ntwo")) == "ValueError: one"
    assert describe(ValueError("")) == "ValueError"
    assert len(describe(ValueError("x" * 10_000))) < 400
    assert len(str(proxy.Frame("mine.py:1", "encode", "x" * 10_000))) < 600

    class Fakes(str):
        def strip(self, chars: str | None = None) -> str:
            return "all is well"

    class Faking(Exception):
        def __str__(self) -> str:
            return Fakes("one\ntwo")

    assert describe(Faking()) == "Faking: one"

    class Late(Exception):
        def __str__(self) -> str:
            raise TimedOut(1, "encode(...)")

    with pytest.raises(TimedOut):
        describe(Late())


def test_an_error_without_a_message_is_its_type_here_and_in_another_process() -> None:
    assert describe(KeyError()) == describe(RemoteError("KeyError", "")) == "KeyError"
    assert describe(KeyError("no")) == describe(RemoteError("KeyError", "'no'")) == "KeyError: 'no'"


def test_other_attributes_of_an_error_are_not_those_of_another_process() -> None:
    class OfAService(Exception):
        process_failed = 0

        def details(self) -> str:
            return "unavailable"

    raised = Raised("encode(...)", OfAService("no"))
    assert (raised.where, raised.is_error, raised.place) == ([], True, "")


@pytest.mark.parametrize(("kind", "answer"), [("ValueError", Refusal), ("SystemExit", Fault), ("Disturbance", Fault)])
def test_an_exception_in_another_process_is_the_same_answer(kind: str, answer: Any) -> None:
    frame = 'File "/folder/mine.py", line 3, in encode'

    def fail() -> NoReturn:
        raise RemoteError(kind, "no such token", frame)

    with pytest.raises(Raised, match=rf"^encode raised {kind}: no such token$") as caught:
        contained("encode", fail)
    found = caught.value.answer
    assert (type(found), found.kind, found.message) == (answer, kind, f"{kind}: no such token")
    here, there = found.traceback
    assert " in fail: " in here
    assert there == frame


def test_the_frames_of_the_reference_are_shown_and_those_of_the_suite_are_not() -> None:
    with pytest.raises(Raised) as caught:
        contained("Tokenizer(...)", Tokenizer, {0: b"a"}, [])
    assert any(line.startswith("bpe_conformance/reference/tokenizer.py:") for line in caught.value.where)
    assert not any("implementation" in line for line in caught.value.where)


def test_frames_of_the_standard_library_are_shown_only_without_others() -> None:
    def parse() -> object:
        return json.loads("")

    with pytest.raises(Raised) as caught:
        contained("parse", parse)
    assert caught.value.where[-1].endswith('in parse: return json.loads("")')
    error = caught.value.error.with_traceback(innermost(caught.value.error))
    assert frames_of(error)[-1].place.startswith("json/decoder.py:")


def innermost(error: BaseException) -> TracebackType | None:
    """Return the last part of a traceback."""
    found = error.__traceback__
    while found is not None and found.tb_next is not None:
        found = found.tb_next
    return found


@pytest.mark.parametrize(
    ("module", "ours"),
    [
        ("bpe_conformance.plugin", True),
        ("bpe_conformance.implementation.proxy", True),
        ("bpe_conformance.adapters.bridge.client", True),
        ("bpe_conformance.fixtures.answers", True),
        ("bpe_conformance.known_bugs.encoding", False),
        ("bpe_conformance.reference", False),
        ("bpe_conformance.reference.bulk.encoding", False),
        ("bpe_conformance.adapters.packages.tiktoken", False),
        ("bpe_conformance_of_mine", False),
        ("mine", False),
    ],
)
def test_own_modules_are_recognized(module: str, ours: bool) -> None:
    assert is_ours(module) == ours


@pytest.mark.parametrize(
    ("file", "is_of_python"),
    [
        ("<frozen importlib._bootstrap>", True),
        (json.__file__, True),
        (pytest.__file__, False),
        (__file__, False),
        ("<string>", False),
    ],
)
def test_the_files_of_python_are_those_of_no_package(file: str, is_of_python: bool) -> None:
    assert files.is_of_python(file) == is_of_python


def test_frames_in_javascript_are_those_of_the_user_if_there_are_any() -> None:
    ours, theirs = f"at f (node_modules{proxy._OUR_MODULE}1:2)", "at g (t.js:3:4)"
    assert proxy.remote_frames(f"TypeError: no\n  {ours}\n  {theirs}") == ["TypeError: no", "g (t.js:3:4)"]
    assert proxy.remote_frames(f"TypeError: no\n  {ours}") == ["TypeError: no", ours.removeprefix("at ")]
    assert proxy.remote_frames(f"TypeError: no\n  at node:internal/undici:1:2\n  {theirs}")[-1] == "g (t.js:3:4)"


def test_frames_of_installed_packages_below_the_callers_are_not_shown() -> None:
    with pytest.raises(TypeError) as caught:
        regex.findall("a", b"a")  # type: ignore[call-overload]
    assert frames_of(caught.value)[-1].place.startswith("implementation/test_proxy.py:")
    package = caught.value.with_traceback(caught.value.__traceback__ and caught.value.__traceback__.tb_next)
    assert frames_of(package)[-1].place.startswith("regex/")


def test_a_file_has_a_name_where_the_current_directory_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert proxy.as_imported("/no/such/tok.py") == "/no/such/tok.py"


def test_the_frames_of_a_program_do_not_repeat_its_message() -> None:
    raised = Raised("encode('a')", RemoteError("TypeError", "no", "TypeError: no\n    at g (t.js:3:4)"))
    assert (raised.where, raised.place) == (["g (t.js:3:4)"], "t.js:3:4")
    assert str(raised) == "encode('a') raised TypeError: no"


def test_frames_of_another_python_are_shown_as_those_of_this_one() -> None:
    def f() -> NoReturn:
        json.loads("{")

    with pytest.raises(json.JSONDecodeError) as caught:
        f()
    text = "".join(traceback.format_exception(caught.value))
    here = [frame for frame in map(str, frames_of(caught.value)) if " in f: " in frame]
    assert [line for line in proxy.remote_frames(text) if " in f: " in line] == here
    assert "decoder.py" not in "".join(proxy.remote_frames(text))


def test_ids_are_decoded_as_a_tuple_or_as_a_list() -> None:
    class Kinds:
        def decode(self, ids: Any) -> str:
            return type(ids).__name__

    tokenizer = proxy.TokenizerProxy(Kinds())
    assert [tokenizer.decode(ids) for ids in ((97,), [97], range(97, 98))] == ["tuple", "list", "list"]
    for as_tuple, kind in ((True, "tuple"), (False, "list")):
        assert Decode((97,), as_tuple).of(tokenizer) == Text(kind)


def test_the_innermost_frames_are_shown() -> None:
    def outer(depth: int) -> float:
        return inner() if depth == 0 else outer(depth - 1)

    def inner() -> float:
        return 1 / 0

    with pytest.raises(Raised) as caught:
        contained("encode(...)", outer, 2 * proxy.SHOWN_FRAMES)
    assert len(caught.value.where) == proxy.SHOWN_FRAMES
    assert caught.value.where[-1] == f"{caught.value.place} in inner: return 1 / 0"


def test_the_innermost_frames_of_a_program_are_shown_and_the_error_before_them() -> None:
    places = [f"f{depth} (t.js:{depth}:1)" for depth in range(1, 2 * proxy.SHOWN_FRAMES)]
    text = "\n".join(["loading t.js", "TypeError: no", *(f"    at {place}" for place in places)])
    innermost_last = [*reversed(places[: proxy.SHOWN_FRAMES - 1])]
    assert proxy.remote_frames(text) == ["TypeError: no", *innermost_last]
    assert proxy.remote_frames("\n".join(places)) == places[-proxy.SHOWN_FRAMES :]  # of no known language


def test_a_file_of_the_working_directory_is_named_relative_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [])
    assert proxy.as_imported(str(Path.cwd() / "mine" / "tok.py")) == str(Path("mine", "tok.py"))


def test_a_method_gets_its_argument_in_the_form_that_the_protocol_states() -> None:
    got: list[Any] = []

    class Records:
        def encode(self, text: str, **special: Any) -> list[int]:
            got.append(special)
            return []

        def encode_batch(self, texts: Any) -> list[list[int]]:
            got.append(texts)
            return [[] for _ in texts]

        def encode_iterable(self, chunks: Any) -> Any:
            got.append(chunks)
            return iter([])

        def save(self, folder: Any) -> None:
            got.append(folder)

    tokenizer, chunks = proxy.TokenizerProxy(Records()), iter("ab")
    tokenizer.encode_allowed("a", ["<e>"], ["<s>"])
    tokenizer.encode_allowed("a", "all", "all")
    tokenizer.encode_batch(("a", "b"))
    tokenizer.stream(chunks)
    tokenizer.save(Path("folder"))
    few = {"allowed_special": {"<e>"}, "disallowed_special": ("<s>",)}
    every = {"allowed_special": "all", "disallowed_special": "all"}
    assert got == [few, every, ["a", "b"], chunks, "folder"]
    assert type(got[0]["allowed_special"]) is set
    assert type(got[2]) is list


def test_an_error_in_the_middle_of_a_stream_is_one_of_the_tokenizer() -> None:
    def fails(_: object) -> Any:
        yield "a"
        raise KeyError("no")

    tokenizer, seen = proxy.TokenizerProxy(SimpleNamespace(decode_iterable=fails)), list[str]()
    for read in (
        lambda: tokenizer.watch("decode_iterable", [97], seen.append),
        lambda: seen.extend(tokenizer.open("decode_iterable", [97])),
    ):
        with pytest.raises(Raised, match=r"^decode_iterable\(\.\.\.\) raised KeyError: 'no'$"):
            read()
    assert seen == ["a", "a"]
    tokenizer = proxy.TokenizerProxy(SimpleNamespace(decode_iterable=lambda ids: iter([b"a"])))
    with pytest.raises(Malformed, match="decode_iterable yielded bytes"):
        tokenizer.detokenize([97])
