"""The capabilities of an implementation are detected, and its tokenizers get fresh arguments."""

from __future__ import annotations

import gc
import itertools
import math
import os
import re
import threading
import time
from collections import UserDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pytest
import regex
from helpers.plugin_adapters import DecodeOnly, EncodeOnly, Right, TrainOnly, Unclaimed, make

from bpe_conformance.adapters import RemoteTokenizer
from bpe_conformance.adapters.bridge.confinement import Confinement
from bpe_conformance.adapters.signature import factory, is_like_minbpe
from bpe_conformance.cases import judging
from bpe_conformance.fixtures import gpt2_model, read_model
from bpe_conformance.fixtures.answers import MalformedAnswer, rebuild_ids, rebuild_merges, rebuild_vocab
from bpe_conformance.fixtures.expression import pattern_name
from bpe_conformance.implementation import capabilities, time_limit
from bpe_conformance.implementation import implementation as loaded
from bpe_conformance.implementation.capabilities import GPT2_REWRITTEN, LoadError
from bpe_conformance.implementation.implementation import Implementation, Trained, spelling_of
from bpe_conformance.implementation.proxy import CallFailed, Malformed, Raised, TimedOut, TokenizerProxy
from bpe_conformance.known_bugs.bases import BaseEncoder
from bpe_conformance.operations import Encode
from bpe_conformance.properties import PROPERTIES
from bpe_conformance.properties.engine import Effort
from bpe_conformance.reference import Tokenizer as Reference
from bpe_conformance.reference import textbook
from bpe_conformance.reference.patterns import PATTERNS
from bpe_conformance.spec import installed_spec

MODEL = read_model({"merges": [["a", "b"]]})
METHODS = {"encode", "decode", "encode_iterable", "encode_batch", "decode_bytes", "save", "from_files", "train"}


def answering(value: Any, method: str = "encode", time_limit: float = 10) -> Implementation:
    """Return an adapter that, after the probe, answers with `value`, or with its result if it is a function."""
    looked_at: list[bool] = []

    def answer(self: Any, *arguments: Any) -> Any:
        if not looked_at:
            return getattr(Reference, method)(self, *arguments)
        return value() if callable(value) else value

    implementation = Implementation("x", type("Answering", (Reference,), {method: answer}), time_limit)
    looked_at.append(True)
    return implementation


# Capabilities


@pytest.mark.parametrize(
    ("adapter", "claimed"),
    [
        (Right, {"encode", "decode", "decode_bytes", "train"}),
        (TrainOnly, {"train"}),
        (EncodeOnly, {"encode"}),
        (DecodeOnly, {"decode"}),
        (Unclaimed, {"encode"}),
        (make, {"encode", "decode", "decode_bytes"}),
    ],
)
def test_capabilities_are_detected(adapter: Any, claimed: set[str]) -> None:
    assert METHODS & Implementation("x", adapter).capabilities == claimed


def test_a_program_that_loads_no_vocabulary_may_announce_the_model_of_a_file() -> None:
    with pytest.raises(LoadError, match="cmd:x cannot be tested: it replies not_claimed to load; if it only reads a"):
        Implementation("cmd:x", Unwritten)


def test_what_reads_a_file_is_a_capability_of_a_function_whose_tokenizers_cannot_be_made() -> None:
    def making(*_: Any) -> NoReturn:
        raise NameError("dta")

    adapter = factory(making, "Typo", from_tokenizer_json=making)
    assert Implementation("x", adapter).capabilities >= {"encode", "decode", "from_tokenizer_json"}


def not_written(*_: Any, **__: Any) -> NoReturn:
    raise NotImplementedError


def fails(*_: Any, **__: Any) -> NoReturn:
    raise ZeroDivisionError


class Whole(BaseEncoder):
    """Has every method of the adapter protocol."""

    train = textbook.Tokenizer.train


@cache
def capabilities_of_the_whole() -> frozenset[str]:
    return Implementation("x", Whole).capabilities


EVERY = {*METHODS, "decode_iterable", "encode_with_offsets", "from_tokenizer_json"}
FOLLOWING = {"encode": ("pattern:", "allowed_special"), "train": ("train-",)}
"""Method → what begins the capabilities that need it."""
CALLING = {"encode": ("encode_",), "decode_bytes": ("decode",)}
"""Method → what begins the names of those that call it, and raise its errors."""


@pytest.mark.parametrize("method", sorted(EVERY))
@pytest.mark.parametrize("way", [None, not_written, fails])
def test_a_method_that_is_missing_or_says_so_is_lacking_and_no_other(method: str, way: Any) -> None:
    whole = capabilities_of_the_whole()
    made = classmethod(way) if way and method in ("train", "from_files", "from_tokenizer_json") else way
    found = Implementation("x", type("Other", (Whole,), {method: made})).capabilities
    assert whole >= EVERY
    lacking = {name for name in whole - found if name != method}
    assert (method in found) is (way is fails)
    calling = CALLING.get(method, ()) if way is not_written else ()
    assert all(name.startswith((*FOLLOWING.get(method, ()), *calling)) for name in lacking)


ERRORS = (AttributeError, KeyError, LookupError, OSError, RuntimeError, TypeError, UnicodeError, ValueError)


@pytest.mark.parametrize("error", [*ERRORS, AssertionError, ImportError, RecursionError, StopIteration, SystemExit])
def test_only_not_implemented_says_that_a_method_is_lacking(error: type[BaseException]) -> None:
    def raises(*_: object) -> Any:
        raise error("no")

    methods = dict.fromkeys(("encode", "decode", "encode_batch", "encode_iterable", "save"), raises)
    methods["train"] = classmethod(raises)  # type: ignore[assignment]
    assert Implementation("x", type("Raises", (Whole,), methods)).capabilities >= methods.keys()


def test_what_a_constructor_that_fails_has_is_what_its_class_has() -> None:
    found = Implementation("x", type("Failing", (Whole,), {"__init__": fails})).capabilities
    assert found >= {one for one in EVERY if not one.startswith(("from", "train"))}
    assert not Implementation("x", type("Stub", (Whole,), {"__init__": not_written})).capabilities & EVERY - {"train"}
    assert Implementation("x", fails).capabilities & EVERY == {"encode", "decode"}  # of a function, nobody knows


def test_a_constructor_can_refuse_tokens_with_two_ids() -> None:
    class OneId(Right):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: Any = None) -> None:
            if len({*vocab.values()}) < len(vocab):
                raise NotImplementedError
            super().__init__(vocab, merges, special_tokens, pattern)

    implementation = Implementation("x", OneId)
    assert Implementation("x", Right).capabilities - implementation.capabilities == {"two ids"}
    skipped = [case for case in installed_spec().cases if judging.skip_reason(case, implementation) == "two ids"]
    assert "decode-bytes-two-ids-of-one-token" in {case.id for case in skipped}
    assert all(len({*case.table.vocab.values()}) < len(case.table.vocab) for case in skipped)


def encoding(encode: Any) -> Implementation:
    return Implementation("x", type("Encodes", (EncodeOnly,), {"encode": encode}))


def test_special_tokens_can_be_allowed_if_encode_takes_both_parameters_and_does_not_refuse_them() -> None:
    def takes_both(self: Any, text: str, *, allowed_special: Any = (), disallowed_special: Any = ()) -> list[int]:
        return [97]

    def takes_one(self: Any, text: str, *, allowed_special: Any = ()) -> list[int]:
        return [97]

    def refuses(self: Any, text: str, allowed_special: Any = None, disallowed_special: Any = None) -> list[int]:
        if allowed_special is not None:
            raise NotImplementedError("special tokens come later")
        return [97]

    for encode, can_be in ((takes_both, True), (takes_one, False), (refuses, False)):
        implementation = encoding(encode)
        assert ("allowed_special" in implementation.capabilities) is can_be
        assert implementation.notes == []  # only training says why


def test_a_pattern_that_is_not_written_is_lacking_without_a_note() -> None:
    passed: list[str] = []

    class ByName(Right):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str = "gpt2") -> None:
            if pattern not in ("gpt2", "cl100k"):
                raise NotImplementedError(f"no {pattern} yet")
            super().__init__(vocab, merges, special_tokens)

        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str = "") -> Any:
            if pattern not in ("", PATTERNS["cl100k"]):
                raise NotImplementedError(f"no {pattern} yet")
            passed.append(pattern)
            return Right.train(text, vocab_size, special_tokens)

    implementation = Implementation("x", ByName)
    found = {name for name in implementation.capabilities if ":" in name}
    assert found == {"pattern:cl100k", "train-pattern:cl100k"}
    assert implementation.notes == []
    implementation.train("ab ab", 257, [], "cl100k")
    assert passed[-1] == PATTERNS["cl100k"]  # the spelling that it takes


def test_each_method_that_returns_none_is_noted() -> None:
    methods = dict.fromkeys(("decode_bytes", "encode_batch"), lambda self, given: None)
    notes = Implementation("x", type("Stubs", (Reference,), methods)).notes
    assert [note.partition(" returned None")[0] for note in notes] == ["encode_batch", "decode_bytes"]


def test_a_method_with_another_name_is_noted() -> None:
    class Named:
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
            pass

        def decode(self, ids: list[int]) -> str:
            return "a"

        def encode_batch(self, texts: list[str]) -> list[list[int]]:
            return [[97]]

        encode_ordinary = decode_all = decode

    (note,) = Implementation("x", Named).notes
    assert note == "encode is missing, and encode_ordinary is not tested: the suite calls encode"


def test_probes_wait_less_after_several_methods_have_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    factors: list[float] = []
    limited = Implementation.time_limit

    def recorded(self: Implementation, factor: float = 1) -> Any:
        factors.append(factor)
        return limited(self, factor)

    def late(*_: object) -> NoReturn:
        raise TimedOut(10, "encode(...)")

    monkeypatch.setattr(Implementation, "time_limit", recorded)
    Implementation("x", type("Late", (Reference,), {"encode": late, "decode": late}))
    assert factors[:4] == [math.inf, 1, 1, 1]  # around all; the constructor, encode and decode
    assert {*factors[4:]} == {0.1}


def test_reference_has_all_capabilities() -> None:
    claimed = Implementation("reference", Reference).capabilities
    assert {"encode_iterable", "encode_batch", "save", "from_files", "pattern:cl100k", "train-pattern:none"} <= claimed


def test_a_factory_can_have_train_and_conventions() -> None:
    def factory(vocab: Any, merges: Any, special_tokens: Any = None) -> Any:
        return textbook.with_conventions(tie_break="lex-smaller")(vocab, merges, special_tokens)

    factory.train = textbook.with_conventions(tie_break="lex-smaller").train  # type: ignore[attr-defined]
    factory.conventions = {"tie_break": "lex-smaller", "lookup": "pair"}  # type: ignore[attr-defined]
    implementation = Implementation("x", factory)
    assert "train" in implementation.capabilities
    assert implementation.declared == {"tie_break": "lex-smaller"}
    assert implementation.conventions["byte_order"] == "raw"


def test_pattern_is_passed_by_name_or_expression() -> None:
    class ByName(Right):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
            if pattern not in (None, "cl100k"):
                raise ValueError(pattern)
            super().__init__(vocab, merges, special_tokens)

        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: Any) -> Any:  # type: ignore[override]
            return Right.train(text, vocab_size, special_tokens)

    claimed = Implementation("x", ByName).capabilities
    assert {name for name in claimed if ":" in name} == {"pattern:cl100k"}


class Expressions(Right):
    """Compiles the pattern with `re`, which has no \\p, and so takes a name for an expression."""

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str = "") -> None:
        re.compile(pattern)
        super().__init__(vocab, merges, special_tokens)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any) -> Any:  # type: ignore[override]
        return Right.train(text, vocab_size, special_tokens)


class Anything(Expressions):
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str = "") -> None:
        super().__init__(vocab, merges, special_tokens)
        self.pattern = pattern

    def encode(self, text: str) -> list[int]:  # type: ignore[override]
        return [0] if self.pattern else super().encode(text)


class NoneForPatterns(Anything):
    def encode(self, text: str) -> Any:
        return None if self.pattern else super().encode(text)


def test_a_pattern_is_supported_unless_an_exception_says_otherwise() -> None:
    def patterns(adapter: Any) -> set[str]:
        return {name for name in Implementation("x", adapter).capabilities if name.startswith("pattern:")}

    every = {f"pattern:{name}" for name in PATTERNS if name != "gpt2"}
    assert patterns(Expressions) == {"pattern:none"}
    assert patterns(Anything) == patterns(NoneForPatterns) == every
    always = type("Always", (Anything,), {"encode": fail_with_value_error})
    assert patterns(always) == every


def fail_with_value_error(*_: Any) -> NoReturn:
    raise ValueError("always")


def test_fixed_model_is_built_without_arguments() -> None:
    class Fixed:
        model = "gpt2"

        def encode(self, text: str) -> list[int]:
            return [0] * len(text)

    implementation = Implementation("x", Fixed)
    assert implementation.fixed_model == "gpt2"
    assert METHODS & implementation.capabilities == {"encode"}
    assert {"special", "two ids"}.isdisjoint(implementation.capabilities)  # it is not built again to find out
    assert implementation.build(gpt2_model()).encode("ab") == [0, 0]
    assert implementation.build(gpt2_model()) is implementation.build(gpt2_model())


@pytest.mark.slow
def test_a_constructor_that_timed_out_is_called_again_only_with_more_time() -> None:
    calls: list[float] = []

    class Endless(Right):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
            if len(merges) > 1000:
                calls.append(factor)
                for _ in itertools.count():
                    pass
            super().__init__(vocab, merges, special_tokens)

    implementation = Implementation("x", Endless, 0.3)
    answers = []
    for factor in (1, 1, 0.5, 2, 2):
        with implementation.time_limit(factor), pytest.raises(TimedOut) as caught:
            implementation.build(gpt2_model())
        answers.append(caught.value.answer)
    assert calls == [1, 2]
    assert [answer.message for answer in answers] == 3 * ["no answer within 0.3 s"] + 2 * ["no answer within 0.6 s"]
    assert all("Endless" in answer.traceback[-1] or "__init__" in answer.traceback[-1] for answer in answers)


class LikeMinbpe:
    def train(self, text: str, vocab_size: int, verbose: bool = False) -> None: ...

    def encode(self, text: str) -> list[int]:
        return []

    def decode(self, ids: list[int]) -> str:
        return ""


class Unwritten:
    def __init__(self, vocab: object, merges: object, special_tokens: object = None) -> None:
        raise NotImplementedError

    def encode(self, text: str) -> list[int]:
        return []


class LoadsOnly:
    """Its constructor takes no table."""

    def __init__(self, *table: object) -> None:
        if table:
            raise TypeError("use from_files")

    def encode(self, text: str) -> list[int]:
        return [*text.encode()]

    from_files = classmethod(lambda cls, *paths: cls())


class LoadsNothingYet(LoadsOnly):
    @classmethod
    def from_files(cls, *paths: object) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("name", ["gtp2", "cl100k_base"])
def test_a_declared_pattern_that_is_a_misspelt_name_is_refused(name: str) -> None:
    with pytest.raises(LoadError, match=f"pattern is '{name}'; declare a regular expression, or one of gpt2, "):
        Implementation("x", type("T", (LoadsOnly,), {"pattern": name}))


@pytest.mark.parametrize(
    ("compiled", "is_noted"),
    [
        (regex.compile(r"\w+|\W+"), True),
        (re.compile(b"[a-z]+"), True),
        (regex.compile(PATTERNS["gpt2"]), False),
        (regex.compile(GPT2_REWRITTEN[0]), False),
    ],
)
def test_a_compiled_pattern_declares_no_split(compiled: object, is_noted: bool) -> None:
    implementation = Implementation("x", type("T", (LoadsOnly,), {"pattern": compiled}))
    assert implementation.conventions["pattern"] == "gpt2"
    assert any("declare the expression as a string" in note for note in implementation.notes) is is_noted


def test_a_loader_is_tested_if_only_the_constructor_fails() -> None:
    assert "from_files" in Implementation("x", LoadsOnly).capabilities
    assert "from_files" not in Implementation("x", LoadsNothingYet).capabilities


class OnlyLoads:
    def encode(self, text: str) -> list[int]:
        return []

    from_tokenizer_json = classmethod(lambda cls, path: cls())


def test_the_suite_says_what_it_waits_for_if_that_takes_long(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Waits(Right):
        def decode(self, ids: Iterable[int]) -> str:
            waited = time.monotonic() + 10
            while not said.stat().st_size and time.monotonic() < waited:
                time.sleep(0.01)
            return super().decode(ids)

    monkeypatch.setattr(capabilities, "LONG", 0.05)
    said = tmp_path / "stderr"
    with said.open("w", encoding="ascii") as stderr:
        Implementation("x", Waits, stderr=stderr.fileno())
    assert "bpe-conformance: x: waiting for a first small call of decode\n" in said.read_text("ascii")


@pytest.mark.parametrize(
    ("adapter", "reported"),
    [
        (5, "x is of type int; expected a class or a function"),
        (SimpleNamespace, "cannot be called as (vocab, merges, special_tokens)"),
        (
            type("A", (Right,), {"__init__": lambda self, vocab, merges: None}),
            "it takes 2 arguments but gets 3; write",
        ),
        (
            type("A", (Right,), {"__init__": lambda self, vocab, *, merges: None}),
            "it takes 1 argument but gets 3; write",
        ),
        (
            type("A", (Right,), {"__init__": lambda self: None}),
            "= None); or, if it has loaded a model, give the class the attribute model, the path of the model's file",
        ),
        (
            lambda path, vocab_size: None,
            "make it the classmethod train of a class, or pass it as --bpe-trainer x, with",
        ),
        (lambda vocab: None, "x cannot be called as (vocab, merges, special_tokens): it takes 1 argument but gets 3"),
        (lambda vocab: None, "; write def x(vocab: dict[int, bytes], merges: "),
        (
            type("A", (Right,), {"__init__": lambda self, *, vocab, merges: None}),
            "it takes 0 arguments but gets 3, by position; remove the * before vocab; write def __init__(self, vocab",
        ),
        (OnlyLoads, "as a tokenizer.json that its from_tokenizer_json reads, write --adapter tokenizer-json:x"),
        (LikeMinbpe, "x is a class like minbpe's; write --adapter minbpe:x"),
        (type("Empty", (), {}), "x supports none of decode, decode_bytes, "),
        (type("Stub", (), {"__init__": lambda *_: None, "encode": lambda self, text: None}), "encode returned None"),
        (Unwritten, "x cannot be tested: its constructor raises NotImplementedError"),
        (type("A", (Right,), {"conventions": ["lookup"]}), "conventions is of type list; expected a mapping"),
        (type("A", (Right,), {"conventions": {"lookup": ["pair"]}}), "lookup is ['pair']; expected one of pair, bytes"),
        (type("A", (Right,), {"conventions": {"lookups": "pair"}}), "unknown convention 'lookups'"),
        (type("A", (Right,), {"conventions": {"pattern": "gpt2"}}), "unknown convention 'pattern'"),
        (type("A", (Right,), {"conventions": {"lookup": "pairs"}}), "lookup is 'pairs'; expected one of pair, bytes"),
        (type("A", (Right,), {"pattern": r"(\w+"}), "not a regular expression: missing )"),
        (type("A", (Right,), {"pattern": r"(?V0)(?V1)\w"}), "which is not a regular expression: "),
        (type("A", (TrainOnly,), {"train": classmethod(lambda cls, text: None)}), "train cannot be called as"),
    ],
)
def test_unusable_adapter_is_rejected(adapter: Any, reported: str) -> None:
    if adapter is SimpleNamespace:
        adapter = type("A", (), {"encode": lambda self: None, "__init__": lambda self: None})
    with pytest.raises(LoadError) as caught:
        Implementation("x", adapter)
    assert reported in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_declared_pattern_has_its_name_if_it_has_one() -> None:
    for declared, named in ((PATTERNS["cl100k"], "cl100k"), (PATTERNS["gpt2"], "gpt2"), ("[a-z]+", "[a-z]+")):
        implementation = Implementation("x", type("A", (EncodeOnly,), {"pattern": declared}))
        assert implementation.conventions["pattern"] == named
        assert {one for one in implementation.capabilities if ":" in one} == {f"pattern:{named}"} & {"pattern:cl100k"}


@pytest.mark.parametrize("goes_on", ["there", "one character later"])
@pytest.mark.parametrize("pattern", [r"\p{L}*|\p{N}+|\s", r"\p{N}+|\p{L}*| ?[^\s\p{L}\p{N}]+", r"\p{L}+|\s"])
def test_the_search_for_a_declared_pattern_goes_on_anywhere_after_an_empty_match(pattern: str, goes_on: str) -> None:
    expression = pattern if goes_on == "there" else f"(?>{pattern})"

    def start(self: BaseEncoder, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
        BaseEncoder.__init__(self, vocab, merges, special_tokens, expression)

    target = type("Own", (BaseEncoder,), {"pattern": pattern, "__init__": start})
    assert Implementation("x", target).conventions["pattern"] == (expression if "*" in pattern else pattern)


def test_a_declared_pattern_may_end_with_a_comment() -> None:
    target = type("Own", (EncodeOnly,), {"pattern": r"(?x) \p{L}* | \s # words"})
    assert Implementation("x", target).conventions["pattern"] == target.pattern  # type: ignore[attr-defined]


@pytest.mark.parametrize("pattern", GPT2_REWRITTEN)
def test_equivalent_pattern_is_recognized_as_gpt2(pattern: str) -> None:
    declared = Implementation("x", type("A", (Right,), {"pattern": pattern}))
    assert declared.conventions["pattern"] == "gpt2"
    for case in installed_spec().cases:
        if case.clause.section == "SPLIT" and case.pattern == "gpt2" and isinstance(case.operation, Encode):
            text = case.operation.text
            assert textbook.split(text, pattern) == textbook.split(text, PATTERNS["gpt2"])


def test_everything_passed_in_is_a_fresh_copy() -> None:
    class Greedy(Right):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
            super().__init__(vocab, merges, special_tokens)
            vocab.clear()
            merges.clear()

        def decode(self, ids: Any) -> str:
            text = super().decode(ids)
            ids.clear()
            return text

    implementation = Implementation("x", Greedy)
    ids = [256]
    for _ in range(2):
        assert implementation.build(MODEL).encode("ab") == [256]
        assert implementation.build(MODEL).decode(ids) == "ab"
    assert ids == [256]


# Answers


class Index:
    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        raise RuntimeError


class Sly(int):
    def __eq__(self, other: object) -> bool:
        return True

    def __index__(self) -> int:
        return 7

    def __add__(self, other: object) -> Any:
        return 8

    __hash__ = int.__hash__


@pytest.mark.parametrize(
    "given",
    [
        [97, 256],
        (97, 256),
        lambda: iter([97, 256]),
        lambda: (index for index in (97, 256)),
        np.array([97, 256]),
        [np.int64(97), np.uint16(256)],
        [Index(97), Index(256)],
        {97: 0, 256: 0}.keys(),
        range(97, 257, 159),
    ],
)
def test_ids_are_accepted_in_any_form(given: Any) -> None:
    got = answering(given).build(MODEL).encode("aab")
    assert got == [97, 256]
    assert type(got) is list
    assert {type(index) for index in got} == {int}


def test_subclasses_of_int_become_int() -> None:
    got = rebuild_ids("encode", [Sly(5)])
    assert got == [5] or got == [7]
    assert type(got[0]) is int
    assert got != [6]


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        (None, "encode returned None; expected list[int]"),
        ("ab", "encode returned str; expected list[int]"),
        (b"ab", "encode returned bytes; expected list[int]"),
        ({97: 0}, "encode returned dict; expected list[int]"),
        (97, "encode returned int; expected list[int]"),
        ([True], "encode returned an id of type bool; expected int"),
        ([97.0], "encode returned an id of type float; expected int"),
        ([np.float64(97)], "encode returned an id of type float64; expected int"),
        (["97"], "encode returned an id of type str; expected int"),
        ([None], "encode returned an id of type None; expected int"),
        ([[97]], "encode returned an id of type list; expected int"),
        (np.array([[97]]), "encode returned an id of type ndarray; expected int"),
    ],
)
def test_invalid_ids_are_a_fault(given: Any, reported: str) -> None:
    with pytest.raises(Malformed) as caught:
        answering(given).build(MODEL).encode("ab")
    assert str(caught.value) == reported


def test_an_answer_is_as_long_as_the_limit_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpe_conformance.fixtures.answers.MOST_IDS", 3)
    monkeypatch.setattr("bpe_conformance.fixtures.answers.MOST_ENTRIES", 3)
    for rebuild, made in (
        (partial(rebuild_ids, "encode"), lambda count: [97] * count),
        (rebuild_merges, lambda count: [(b"a", b"b")] * count),
        (rebuild_vocab, lambda count: dict.fromkeys(range(count), b"a")),
    ):
        assert rebuild(made(3)) == made(3)
        with pytest.raises(MalformedAnswer, match="more than 3 "):
            rebuild(made(4))


@pytest.mark.parametrize(
    ("method", "wrong", "reported"),
    [
        ("encode_iterable", "97", "encode_iterable returned an id of type str; expected int"),
        ("encode_iterable", -1, "encode_iterable returned the id -1; expected"),
        ("decode_iterable", b"a", "decode_iterable yielded bytes; expected str"),
    ],
)
def test_each_part_of_a_stream_is_checked_when_it_is_read(method: str, wrong: Any, reported: str) -> None:
    with pytest.raises(Malformed, match=reported):
        [*answering([wrong], method).build(MODEL).open(method, iter("a"))]


def test_endless_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpe_conformance.fixtures.answers.MOST_IDS", 1000)
    monkeypatch.setattr("bpe_conformance.fixtures.answers.MOST_ENTRIES", 1000)
    with pytest.raises(Malformed, match="more than 1000 ids"):
        answering(lambda: itertools.repeat(97)).build(MODEL).encode("ab")
    with pytest.raises(Malformed, match="more than 1000 ids"):
        answering(lambda: itertools.repeat(itertools.repeat(97)), "encode_batch").build(MODEL).encode_batch(["a"])
    with pytest.raises(MalformedAnswer, match="merges has more than 1000 entries"):
        rebuild_merges(itertools.repeat((b"a", b"b")))
    with pytest.raises(MalformedAnswer, match="more than 2 parts"):
        rebuild_merges([itertools.repeat(b"a")])

    class Endless(dict[int, bytes]):
        def items(self) -> Any:
            return ((index, b"a") for index in itertools.count())

    with pytest.raises(MalformedAnswer, match="vocab has more than 1000 entries"):
        rebuild_vocab(Endless())


def test_a_silent_generator_runs_out_of_time() -> None:
    def silent() -> Iterator[int]:
        yield from (index for index in itertools.count() if index < 0)

    implementation = answering(silent, "encode", 0.1)
    with pytest.raises(TimedOut):
        implementation.build(MODEL).encode("ab")


def fail(*_: Any) -> NoReturn:
    raise SystemExit(0)


@pytest.mark.parametrize("name", ["__iter__", "__next__"])
def test_hostile_iteration_is_a_fault(name: str) -> None:
    methods = {"__iter__": lambda self: self, "__next__": lambda self: 97, name: fail}
    with pytest.raises(Raised, match="SystemExit"):
        answering(type("Hostile", (), methods)()).build(MODEL).encode("ab")


@pytest.mark.parametrize("special", [None, (), ("<s>",)])
def test_a_constructor_that_fails_is_named_with_the_arguments_that_it_got(special: tuple[str, ...] | None) -> None:
    given: list[int] = []

    class Fails(Reference):
        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            given.append(len(arguments))
            if fails:
                raise ValueError("no")
            super().__init__(*arguments, **keywords)

    fails, named = False, ("vocab", "merges", "special_tokens")
    implementation = Implementation("x", Fails)
    fails = True
    with pytest.raises(CallFailed) as failed:
        implementation.build(replace(MODEL, special_tokens=special))
    assert str(failed.value) == f"Fails({', '.join(named[: given[-1]])}) raised ValueError: no"
    assert (given[-1] == 2) == (special is None)


def test_hostile_objects_cannot_fake_an_answer() -> None:
    class Everything:
        __class__ = property(fail)  # type: ignore[assignment]
        __index__ = __str__ = __repr__ = __bool__ = __len__ = fail

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    for method, ask in (("encode", "ab"), ("decode", [97]), ("decode_bytes", [97]), ("encode_batch", ["ab"])):
        proxy = answering(Everything(), method).build(MODEL)
        with pytest.raises(CallFailed):
            getattr(proxy, method)(ask)
    with pytest.raises(Raised):
        answering([Everything()]).build(MODEL).encode("ab")


def test_texts_and_bytes_become_builtins() -> None:
    class Text(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = str.__hash__

    class Data(bytes):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = bytes.__hash__

    text = answering(Text("no"), "decode").build(MODEL).decode([97])
    assert type(text) is str
    assert text == "no"
    data = answering(Data(b"no"), "decode_bytes").build(MODEL).decode_bytes([97])
    assert type(data) is bytes
    assert data == b"no"
    assert answering(bytearray(b"a"), "decode_bytes").build(MODEL).decode_bytes([97]) == b"a"
    with pytest.raises(Malformed, match="decode returned bytes; expected str"):
        answering(b"a", "decode").build(MODEL).decode([97])
    with pytest.raises(Malformed, match="decode_bytes returned str; expected bytes"):
        answering("a", "decode_bytes").build(MODEL).decode_bytes([97])


# Vocabulary and merges


class Lazy(Mapping[int, bytes]):
    def __getitem__(self, key: int) -> bytes:
        return bytes([key])

    def __iter__(self) -> Iterator[int]:
        return iter(range(3))

    def __len__(self) -> int:
        return 3


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({0: b"a"}, {0: b"a"}),
        (MappingProxyType({0: b"a"}), {0: b"a"}),
        (Lazy(), {0: b"\0", 1: b"\1", 2: b"\2"}),
        ({np.int32(5): bytearray(b"a")}, {5: b"a"}),
    ],
)
def test_vocabularies_are_copied_or_rejected(given: Any, wanted: dict[int, bytes]) -> None:
    got = rebuild_vocab(given)
    assert got == wanted
    assert type(got) is dict
    assert {type(key) for key in got} | {type(token) for token in got.values()} == {int, bytes}


@pytest.mark.parametrize(
    ("rebuild", "given", "reported"),
    [
        (rebuild_vocab, None, "vocab is None; expected dict[int, bytes]"),
        (rebuild_vocab, [b"a"], "vocab is list; expected dict[int, bytes]"),
        (rebuild_vocab, {b"a": 0}, "vocab maps bytes to int; expected int to bytes"),
        (rebuild_vocab, {"a": 0}, "vocab maps str to int; expected int to bytes"),
        (rebuild_vocab, {0: "a"}, "vocab maps int to str; expected int to bytes: encode the tokens"),
        (rebuild_vocab, {0: [97]}, "vocab contains a token of type list; expected bytes"),
        (rebuild_vocab, {0.0: b"a"}, "vocab contains an id of type float; expected int"),
        (rebuild_merges, None, "merges is None; "),
        (rebuild_merges, {(97, 98): 256}, "merges is dict; "),
        (rebuild_merges, "ab", "merges is str; "),
        (rebuild_merges, ["ab"], "merges contains str; "),
        (rebuild_merges, [5], "merges contains int; "),
        (rebuild_merges, [(97, 98)], "merges contains pairs of int; "),
        (rebuild_merges, [(b"a",)], "merges contains an entry of 1 parts; "),
        (rebuild_merges, [("a", "b")], "merges contains a token of type str; expected bytes"),
    ],
)
def test_wrong_shape_of_a_table_suggests_a_fix(rebuild: Callable[[Any], Any], given: Any, reported: str) -> None:
    with pytest.raises(MalformedAnswer) as caught:
        rebuild(given)
    assert str(caught.value).startswith(reported)
    assert "\n" not in str(caught.value)


def test_results_of_training_are_read() -> None:
    answers: list[Any] = [({0: b"a"}, [[b"a", b"b"]])]
    train = classmethod(lambda cls, text, vocab_size, special_tokens: answers[0])
    implementation = Implementation("x", type("A", (), {"train": train}))
    pair = implementation.train("", 256, [])
    assert (pair.vocab, pair.merges, pair.proxy) == ({0: b"a"}, [(b"a", b"b")], None)
    assert implementation.returns_pair
    answers[0] = SimpleNamespace(vocab={0: b"a"}, merges=[], encode=lambda text: time.sleep(0.01) or [0])
    trained = implementation.train("", 256, [])
    assert not implementation.returns_pair
    assert trained.proxy is not None
    before = implementation.limiter.seconds
    trained.proxy.encode("a")
    assert implementation.limiter.seconds - before >= 0.005  # its calls count, too
    fix = "return a Tokenizer with .vocab and .merges, or a tuple (vocab, merges)"
    for answers[0], message in (
        (None, f"train returned None; {fix}"),
        (({}, [], []), f"train returned tuple, which has no attribute vocab; {fix}"),
        ([{}, []], f"train returned list, which has no attribute vocab; {fix}"),
        (([], {}), "train returned (merges, vocab); return them in the other order: (vocab, merges)"),
        (SimpleNamespace(vocab={}), f"train returned SimpleNamespace, which has no attribute merges; {fix}"),
    ):
        with pytest.raises(Malformed) as caught:
            implementation.train("", 256, [])
        assert str(caught.value) == message


class Pair(NamedTuple):
    merges: Any
    vocab: Any


class EncodingPair(Pair):
    def encode(self, text: str) -> list[int]:
        return [len(text)]


def test_named_tuple_is_read_by_its_names() -> None:
    for kind in (Pair, EncodingPair):
        train = classmethod(lambda cls, *_, kind=kind: kind([(b"a", b"b")], {0: b"a"}))
        trained = Implementation("x", type("A", (), {"train": train})).train("", 256, [])
        assert (trained.vocab, trained.merges) == ({0: b"a"}, [(b"a", b"b")])
        assert (trained.proxy is not None) is (kind is EncodingPair)


class Untrue:
    def __bool__(self) -> bool:
        raise TypeError("no truth value")


def test_objects_without_a_truth_value_are_tested() -> None:
    declared = type("Declared", (Untrue, UserDict), {})({"lookup": "pair"})
    odd = type("Odd", (Untrue, Right), {"conventions": declared, "version": Untrue()})
    implementation = Implementation("mine:Odd", odd)
    assert implementation.conventions["lookup"] == "pair"
    assert {"train", "encode", "decode", "special"} <= implementation.capabilities

    class Factory(Untrue):
        __name__ = Untrue()

        def __call__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> Any:
            return odd(vocab, merges, special_tokens)

    named = Implementation("cmd:Factory", Factory())
    assert named.title == "Factory"
    assert named.build(MODEL).encode("ab") == [256]


def test_a_pattern_that_keywords_may_hide_is_noted() -> None:
    class Hides(textbook.Tokenizer):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, **keywords: Any) -> None:
            super().__init__(vocab, merges, special_tokens, **keywords)

    (note,) = Implementation("x", Hides).notes
    assert note.startswith("no pattern is tested: the constructor takes any keyword arguments")
    assert Implementation("x", textbook.Tokenizer).notes == []


def test_a_choice_of_special_tokens_that_keywords_may_hide_is_noted() -> None:
    class Hides(textbook.Tokenizer):
        def encode(self, text: str, **keywords: Any) -> list[int]:
            return super().encode(text, **keywords)

    found = Implementation("x", Hides)
    assert "allowed_special" not in found.capabilities
    (note,) = found.notes
    assert note.startswith("no choice of special tokens is tested: encode takes any keywords; ")


def test_reason_of_a_refusing_constructor_is_noted() -> None:
    class OfTheirOwn(NotImplementedError):
        pass

    def refusing(reported: str, kind: type[Exception] = NotImplementedError) -> Any:
        def refuse(self: Any, vocab: Any, merges: Any, special_tokens: Any = None) -> NoReturn:
            raise kind(reported)

        return type("Refusing", (Right,), {"__init__": refuse, "train": TrainOnly.train})

    assert Implementation("x", refusing("no table is\ntaken")).notes == [
        "the constructor raised NotImplementedError: no table is"
    ]
    (note,) = Implementation("x", refusing("no table is taken", OfTheirOwn)).notes
    assert note.endswith(": no table is taken")
    for reported in ("", "NotImplementedError"):
        assert Implementation("x", refusing(reported)).notes == []


@pytest.mark.parametrize(
    ("reported", "notes"),
    [("there is no f", ["train is not tested: there is no f"]), ("", []), ("NotImplementedError", [])],
)
def test_reason_why_training_is_not_implemented_is_noted(reported: str, notes: list[str]) -> None:
    def refuse(*_: object) -> NoReturn:
        raise NotImplementedError(reported)

    found = Implementation("x", type("Refusing", (Right,), {"train": staticmethod(refuse)}))
    assert "train" not in found.capabilities
    assert found.notes == notes


@pytest.mark.parametrize(
    ("methods", "reported"),
    [
        ({"encode": lambda self, text: text}, "x: encode returned str; expected list[int]"),
        ({"decode": lambda self, ids: b""}, "x: decode returned bytes; expected str"),
        ({"encode_batch": lambda self, texts: [1]}, "x: encode_batch returned a row of type int; expected list[int]"),
        ({"train": classmethod(lambda cls, *_: ({b"a": 0}, []))}, "x: vocab maps bytes to int; expected int to bytes"),
    ],
)
def test_a_wrong_shape_is_reported_before_any_case(methods: dict[str, Any], reported: str) -> None:
    with pytest.raises(LoadError) as caught:
        Implementation("x", type("A", (Right,), methods))
    assert str(caught.value) == reported


def test_missing_special_tokens_leave_the_rest_tested() -> None:
    class Plain(Right):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
            if special_tokens:
                raise NotImplementedError
            super().__init__(vocab, merges, None, pattern)

        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: Any) -> Any:
            if special_tokens:
                raise NotImplementedError
            return super().train(text, vocab_size, [])

    implementation = Implementation("mine:Plain", Plain)
    assert {"train", "encode", "decode"} <= implementation.capabilities
    assert not {"special", "train-special"} & implementation.capabilities
    assert {"special", "train-special"} <= Implementation("mine:Right", Right).capabilities
    cases = {case.id: case for case in installed_spec().cases}
    wanted = {
        "train-run-of-three-counts-two": None,
        "special-open-byte": "special tokens",
        "train-special-longest": "special tokens in train",
        "merge-priority-beats-leftmost": None,
    }
    assert {name: judging.skip_reason(cases[name], implementation) for name in wanted} == wanted
    assert judging.judge(cases["train-run-of-three-counts-two"], implementation) is None

    class Wrong(Plain):
        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: Any) -> Any:
            return super().train(text, vocab_size + 1, special_tokens)

    wrong = Implementation("mine:Wrong", Wrong)
    assert judging.judge(cases["train-run-of-three-counts-two"], wrong) is not None


@pytest.mark.parametrize(
    ("train", "is_like"),
    [
        (lambda self, text, vocab_size: None, True),
        (lambda self, text, vocab_size, verbose=False: None, True),
        (lambda self, corpus: None, False),
        (classmethod(lambda cls, text, vocab_size: None), False),
        (None, False),
    ],
)
def test_a_class_is_like_minbpes_only_if_an_instance_is_trained_to_a_size(train: Any, is_like: bool) -> None:
    class One:
        def encode(self, text: str) -> list[int]:
            return []

        def decode(self, ids: list[int]) -> str:
            return ""

    One.train = train  # type: ignore[attr-defined]
    with pytest.raises(LoadError) as caught:
        Implementation("x", One)
    assert ("minbpe" in str(caught.value)) is is_like


def test_special_tokens_are_passed_to_from_files_only_if_there_are_some() -> None:
    passed: list[tuple[Any, ...]] = []

    class Loads(Right):
        @classmethod
        def from_files(cls, *arguments: Any) -> Any:
            passed.append(arguments)
            return cls({index: bytes([index]) for index in range(256)}, [])

    implementation, (vocab, merges) = Implementation("x", Loads), (Path("v.json"), Path("m.txt"))
    listed = ["<e>", "<s>"]
    for special in (None, [], listed, ("<e>",)):
        implementation.from_files(vocab, merges, special)
    assert passed[-4:] == [
        ("v.json", "m.txt"),
        ("v.json", "m.txt", []),
        ("v.json", "m.txt", listed),
        ("v.json", "m.txt", ["<e>"]),
    ]
    assert passed[-2][2] is listed  # the caller's own list, which the tokenizer must not change


# Which patterns, files and tokenizers there are

OWN = r"\w+|\W"


def taking(*spellings: str, **attributes: Any) -> Implementation:
    """Return an implementation whose constructor takes only these patterns, and its own `pattern`."""

    class Takes(Reference):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
            if pattern not in (None, *spellings):
                raise ValueError(f"no pattern {pattern}")
            super().__init__(vocab, merges, special_tokens)

    return Implementation("x", type("Takes", (Takes,), attributes))


@pytest.mark.parametrize(
    ("implementation", "is_taken"),
    [
        (taking(*PATTERNS.values(), OWN), True),
        (taking(*PATTERNS.values()), False),
        (taking(*PATTERNS, OWN), False),  # it takes names, and this is none
        (taking("cl100k", PATTERNS["o200k"], OWN), True),
        (taking("o200k", PATTERNS["cl100k"], OWN), True),
        (taking(pattern=OWN), True),
        (taking(), False),
    ],
)
def test_an_expression_without_a_name_is_taken_like_those_with_one(
    implementation: Implementation, is_taken: bool
) -> None:
    implementation.take_expression(OWN)
    name = pattern_name(OWN)
    assert (f"pattern:{name}" in implementation.capabilities) == is_taken
    assert (OWN in implementation.spellings) == (is_taken and implementation.conventions["pattern"] != OWN)
    refused = [note for note in implementation.notes if name in note]
    assert bool(refused) == (not is_taken and implementation.spellings.get("cl100k") == PATTERNS["cl100k"])


@pytest.mark.parametrize(
    ("spellings", "passed"),
    [
        ({"cl100k": PATTERNS["cl100k"]}, OWN),
        ({"cl100k": "cl100k", "none": PATTERNS["none"]}, OWN),
        ({"cl100k": "cl100k"}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("prefix", ["", "train-"])
def test_an_expression_without_a_name_is_passed_as_it_is_if_others_are(
    spellings: dict[str, str], passed: str | None, prefix: str
) -> None:
    known = {prefix + name: spelling for name, spelling in spellings.items()}
    assert spelling_of(OWN, known, prefix) == passed
    assert spelling_of("cl100k", known, prefix) == spellings.get("cl100k")
    assert spelling_of("gpt2", known, prefix) is None


def test_the_patterns_that_a_constructor_refuses_are_noted() -> None:
    for names, what in ((["none"], "pattern none"), (["none", "cl100k"], "patterns cl100k, none")):
        others = [PATTERNS[name] for name in PATTERNS if name not in names]
        refused = f"the constructor refuses the {what}: "
        assert [note.startswith(refused) for note in taking(*others).notes].count(True) == 1


def test_a_tokenizer_of_one_model_reads_no_other() -> None:
    read: list[str] = []

    class Fixed(Reference):
        model = "gpt2"

        def __init__(self) -> None:
            super().__init__(MODEL.vocab, MODEL.merges)

        from_tokenizer_json = classmethod(lambda cls, path: read.append(path))

    assert "from_tokenizer_json" not in Implementation("x", Fixed).capabilities
    assert read == []


def test_a_train_of_the_metaclass_can_be_called() -> None:
    class Training(type):
        def train(cls, text: str, vocab_size: int, special_tokens: Any) -> Any:
            return Reference.train(text, vocab_size, special_tokens)

    class Trained(EncodeOnly, metaclass=Training):
        pass

    assert "train" in Implementation("x", Trained).capabilities


def test_a_loaded_tokenizer_may_lack_encode() -> None:
    class Loading(Reference):
        @classmethod
        def from_files(cls, *arguments: Any) -> Any:
            return SimpleNamespace(decode=super().from_files(*arguments).decode)

    implementation = Implementation("x", Loading)
    assert implementation.missing(("from_files", "encode"), ("from_files",)) == "no encode after from_files"
    assert "from_files" in implementation.capabilities
    assert implementation.notes[0].startswith("what from_files returns is tested without encode, ")


def test_a_train_that_cannot_be_called_is_noted_if_the_rest_can_be_tested() -> None:
    class Trains(EncodeOnly):
        def train(self, text: str, vocab_size: int) -> None:
            raise AssertionError

    implementation = Implementation("x", Trains)
    assert "train" not in implementation.capabilities
    assert implementation.notes[-1].startswith("training is not tested: x: train is an instance method; write")
    assert implementation.missing(["train"], ()) == "train cannot be called as (text, vocab_size, special_tokens)"


@pytest.mark.skipif(not time_limit.is_available(), reason="SIGALRM")
def test_a_probe_that_does_not_end_is_not_repeated() -> None:
    class Late(Reference):
        calls = 0

        def encode(self, text: str, *, allowed_special: Any = (), disallowed_special: Any = ()) -> list[int]:  # type: ignore[override]
            Late.calls += 1
            while True:
                pass

    implementation = Implementation("x", Late, 0.1)
    assert {"encode", "allowed_special"} <= implementation.capabilities  # the tests report it
    assert Late.calls == 1


@pytest.mark.skipif(not time_limit.is_available(), reason="SIGALRM")
@pytest.mark.parametrize("where", ["train", "what it returns"])
def test_a_trainer_that_does_not_end_or_exits_after_its_first_call_is_inspected(where: str) -> None:
    class Exits:
        def __getattr__(self, name: str) -> Any:
            if name != "encode":
                raise AttributeError(name)
            raise SystemExit

    class Late(Reference):
        calls = 0

        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
            Late.calls += 1
            trained = super().train(text, vocab_size, special_tokens)
            if where != "train":
                made = Exits()
                vars(made).update(vocab=trained.vocab, merges=trained.merges)
                return made
            while Late.calls == 2:
                pass
            return trained

    assert {"train", "encode"} <= Implementation("x", Late, 0.2).capabilities


def test_only_a_class_is_like_minbpes() -> None:
    def made() -> Any:
        raise AssertionError

    class Like:
        encode = decode = lambda self, given: given

        def train(self, text: str, vocab_size: int) -> None:
            pass

    class Trainer:
        def __call__(self, text: str, vocab_size: int) -> None:
            pass

    for name in ("encode", "decode", "train"):
        setattr(made, name, getattr(Like, name))
    trains_alone = type("TrainsAlone", (Like,), {"train": Trainer()})  # no instance is trained
    decodes_not = type("DecodesNot", (Like,), {"decode": None})
    found = [is_like_minbpe(one) for one in (Like, made, trains_alone, decodes_not)]
    assert found == [True, False, False, False]


def raising(error: Exception) -> Any:
    def raises(text: str) -> list[int]:
        raise error

    return SimpleNamespace(encode=raises)


@pytest.mark.parametrize(
    ("tokenizer", "encodes"),
    [
        (SimpleNamespace(encode=lambda text: []), True),
        (SimpleNamespace(decode=lambda ids: ""), False),
        (raising(NotImplementedError()), False),
        (raising(ValueError()), None),
        (None, False),
    ],
)
def test_a_training_gives_a_tokenizer_only_if_it_encodes(tokenizer: Any, encodes: bool | None) -> None:
    proxy = tokenizer and TokenizerProxy(tokenizer)
    trained = Trained({}, [], proxy)
    if encodes is None:
        with pytest.raises(Raised):
            trained.tokenizer()
    else:
        assert trained.tokenizer() is (proxy if encodes else None)


def test_a_trained_pair_can_encode() -> None:
    class Pair(tuple):  # type: ignore[type-arg]
        encode = None

    class Decodes(tuple):  # type: ignore[type-arg]
        decode = None

    table = MODEL.vocab, MODEL.merges
    for result, has_tokenizer in ((table, False), (Pair(table), True), (Decodes(table), True)):
        implementation = Implementation("x", like(train=classmethod(lambda *_, result=result: result)))
        trained = implementation.train("ab", 257, [])
        assert (trained.proxy is not None, implementation.returns_pair) == (has_tokenizer, True)
        assert (trained.vocab, trained.merges) == (dict(MODEL.vocab), list(MODEL.merges))


class Named(NamedTuple):
    vocab: Any
    merges: Any


def test_a_pair_with_names_is_no_plain_pair() -> None:
    implementation = Implementation("x", like(train=classmethod(lambda *_: Named(MODEL.vocab, MODEL.merges))))
    assert implementation.train("ab", 257, []).merges == list(MODEL.merges)
    assert not implementation.returns_pair


def test_only_python_has_a_new_process_with_another_hash_seed() -> None:
    for name, has_one in (("a:T", True), ("cmd:x", False)):
        implementation = Implementation(name, Right, spawn=lambda variables: Right)
        assert ("new process" in implementation.capabilities) is has_one


def test_a_pattern_for_which_a_constructor_exits_is_tested() -> None:
    class Exits(Reference):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
            if pattern not in (None, PATTERNS["gpt2"]):
                raise SystemExit(1)
            super().__init__(vocab, merges, special_tokens)

    implementation = Implementation("x", Exits)
    assert {f"pattern:{name}" for name in PATTERNS if name != "gpt2"} <= implementation.capabilities
    assert not implementation.notes


def test_the_pattern_of_a_fixed_model_is_not_looked_for() -> None:
    class Fixed:
        model = "gpt2"

        def __init__(self, **options: Any) -> None: ...

        def encode(self, text: str) -> list[int]:
            return []

    assert Implementation("x", Fixed).notes == []


def test_special_tokens_must_not_be_required() -> None:
    class Requires:
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any) -> None: ...

        def encode(self, text: str) -> list[int]:
            return []

    with pytest.raises(LoadError, match=r"missing a required argument: 'special_tokens'; write def __init__"):
        Implementation("x", Requires)


def test_a_note_is_shown_once() -> None:
    implementation = Implementation("x", Right)
    for line in ("one", "other", "one"):
        implementation.note(line)
    assert implementation.notes == ["one", "other"]


def like(**methods: Any) -> type:
    return type("Like", (Reference,), methods)


def test_a_limit_of_0_is_none() -> None:
    assert Implementation("x", Right, 0).limit == math.inf
    assert Implementation("x", Right, 3).limit == 3


def test_the_model_of_an_engine_is_a_file_with_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tokenizer.json").touch()
    monkeypatch.chdir(tmp_path)
    for model, is_file in (
        (str(tmp_path / "tokenizer.json"), True),
        ("tokenizer.json", False),
        (str(tmp_path), False),
        ("gpt2", False),
        (None, False),
    ):
        engine: Any = SimpleNamespace(target=SimpleNamespace(model=model))
        assert Implementation.model_file.fget(engine) == (Path(model) if is_file else None)  # type: ignore[attr-defined]


def test_a_target_without_a_name_has_that_of_its_adapter() -> None:
    for name, short in (("T", "T"), ("", "Tok"), (None, "Tok"), (5, "Tok")):
        named: Any = SimpleNamespace(name="a.b:Tok", target=SimpleNamespace(__name__=name))
        assert Implementation._short.fget(named) == short  # type: ignore[attr-defined]


def test_a_large_model_is_built_once_even_if_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpe_conformance.fixtures.models.LARGE", 0)
    large, calls = read_model({"merges": [["a", "b"]]}, "large"), []

    class Fails(Reference):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
            super().__init__(vocab, merges, special_tokens)
            if len(merges) == len(large.merges) and (97 in vocab) and calls is not None and Fails.fails:
                calls.append(1)
                raise KeyError("no")

        fails = False

    implementation = Implementation("x", Fails)
    for fails in (True, False):
        calls.clear()
        Fails.fails, implementation._large = fails, {}
        for _ in range(2):
            if fails:
                with pytest.raises(Raised, match="KeyError"):
                    implementation.build(large)
            else:
                assert implementation.build(large) is implementation.build(large)
        assert len(calls) == (1 if fails else 0)


def test_each_large_model_has_a_tokenizer_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpe_conformance.fixtures.models.LARGE", 0)
    implementation = Implementation("x", Right)
    models = [read_model({"merges": [list(pair)]}, f"merges {pair}") for pair in ("ab", "bc")]
    assert [implementation.build(model).encode("abc") for model in (*models, *models)] == 2 * [[256, 99], [97, 256]]


def test_a_tokenizer_json_exists_as_long_as_the_tokenizer_that_read_it(tmp_path: Path) -> None:
    read: list[Path] = []

    class Reads(Reference):
        @classmethod
        def from_tokenizer_json(cls, path: Any) -> Any:
            read.append(Path(path))
            return super().from_tokenizer_json(path)

    implementation = Implementation("x", Reads)
    tokenizer = implementation.from_tokenizer_json(MODEL)
    assert read[-1].exists()
    del tokenizer
    gc.collect()
    assert not read[-1].parent.parent.exists()
    implementation.from_tokenizer_json(MODEL, tmp_path)
    gc.collect()
    assert read[-1] == tmp_path / "tokenizer.json"
    assert read[-1].exists()


def test_what_probes_change_is_restored(tmp_path: Path) -> None:
    def moves(self: Any, text: str) -> list[int]:
        os.chdir(tmp_path)
        return [97]

    before = Path.cwd()
    encoding(moves)
    assert Path.cwd() == before


def test_a_new_process_has_large_tokenizers_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpe_conformance.fixtures.models.LARGE", 0)
    large = read_model({"merges": [["a", "b"]]}, "large")
    implementation = Implementation("x", Right, spawn=lambda variables: Right)
    here = implementation.build(large)
    other = implementation.elsewhere({})
    assert other.build(large) is not here
    assert implementation.build(large) is here


@pytest.mark.parametrize("error", [None, KeyError])
def test_a_new_process_ends_with_the_block_that_uses_it(error: type[Exception] | None) -> None:
    closed: list[bool] = []
    spawned = type("Spawned", (Right,), {"close": lambda: closed.append(True)})
    implementation = Implementation("x", Right, spawn=lambda variables: spawned)
    with nullcontext() if error is None else pytest.raises(error), implementation.in_new_process() as other:
        assert not closed
        assert {"new process", "shared memory"}.isdisjoint(other.capabilities)
        assert other.spawn is None
        if error is not None:
            raise error
    assert closed == [True]


def test_a_process_with_other_variables_is_started_once() -> None:
    started: list[Any] = []
    closed: list[bool] = []
    spawned = type("Spawned", (Right,), {"close": lambda: closed.append(True)})
    implementation = Implementation("x", Right, spawn=lambda variables: started.append(variables) or spawned)
    first = implementation.elsewhere({"PYTHONHASHSEED": "1"})
    assert implementation.elsewhere({"PYTHONHASHSEED": "1"}) is first
    assert implementation.elsewhere({"PYTHONHASHSEED": "2"}) is not first
    assert started == [{"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2"}]
    assert not closed
    implementation.close()
    assert closed == [True, True]


def test_a_program_is_in_a_process_of_its_own_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    monkeypatch.setattr(loaded, "isolated", lambda *_, **__: found.append("isolated") or Right)
    monkeypatch.setattr(loaded, "resolve", lambda name: found.append("resolved") or Right)
    for name, isolate, way in (("cmd:x", True, "resolved"), ("a:T", True, "isolated"), ("a:T", False, "resolved")):
        loaded.load(name, isolate=isolate)
        assert found.pop() == way


def test_each_process_has_the_trainer_the_limit_and_the_confinement_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    for name in ("isolated", "bridge"):
        monkeypatch.setattr(loaded, name, lambda *given, **named: started.append((given, named)) or Right)
    monkeypatch.setattr(loaded, "resolve", lambda name: Right)
    monkeypatch.setattr(loaded, "with_trainer", lambda target, trainer: started.append(((trainer,), {})) or target)
    variables, confinement = {"PYTHONHASHSEED": "1"}, Confinement("scratch", ())
    common = {"time_limit": 3, "confinement": confinement}

    implementation = loaded.load("a:T", "b:train", isolate=confinement, limit=3)
    assert started.pop() == (("a:T", "b:train"), common)
    assert implementation.limit == 3
    assert implementation.spawn is not None
    implementation.spawn(variables)
    given, named = started.pop()
    assert given == ("a:T", "b:train")
    assert {**named, **common, "env": variables} == named

    program = loaded.load("cmd:x y", limit=3)
    assert program.spawn is not None
    program.spawn(variables)
    assert started.pop() == ((["x", "y"],), {"time_limit": 3, "env": variables})

    assert loaded.load("a:T", "b:train").target is Right
    assert started == [(("b:train",), {})]
    assert loaded.load("a:T", target=Right).spawn is None  # a notebook's class, which no other process can import


@pytest.mark.skipif(not time_limit.is_available(), reason="SIGALRM")
@pytest.mark.parametrize(
    ("name", "isolate", "message"),
    [
        ("a:T", False, "a:T: importing it gave no answer within"),
        ("a:T", True, "a:T: importing it, or calling its constructor, gave no answer within"),
        ("cmd:x", False, "to start; run bpe-conformance check-bridge to see"),
    ],
)
def test_an_import_that_does_not_end_is_named(
    name: str, isolate: bool, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for function in ("resolve", "isolated"):
        monkeypatch.setattr(loaded, function, lambda *_, **__: time.sleep(60))
    monkeypatch.setattr(loaded, "IMPORT_FACTOR", 1)
    with pytest.raises(LoadError, match=re.escape(message)):
        loaded.load(name, limit=0.05, isolate=isolate)


def test_an_import_may_take_longer_than_a_case_and_prints_to_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def imports(name: str) -> Any:
        print("loading")
        waited = time.monotonic() + 10
        while not said.stat().st_size and time.monotonic() < waited:
            time.sleep(0.01)
        return Right

    monkeypatch.setattr(loaded, "resolve", imports)
    monkeypatch.setattr(loaded, "IMPORT_FACTOR", 10_000)
    monkeypatch.setattr(capabilities, "LONG", 0.05)
    said = tmp_path / "stderr"
    with said.open("w", encoding="ascii") as stderr:
        assert loaded.load("a:T", limit=0.02, stderr=stderr.fileno()).target is Right
    assert said.read_text("ascii").startswith("bpe-conformance: a:T: waiting for its import\n")
    assert capsys.readouterr() == ("", "loading\n")


def test_an_error_while_a_class_is_inspected_is_one_line_with_its_place() -> None:
    class Meta(type):
        @property
        def conventions(cls) -> NoReturn:
            raise ValueError("no\nor two")

    class Odd(Right, metaclass=Meta): ...

    with pytest.raises(
        LoadError, match=r"^a:T: inspecting it raised ValueError: no \(.*test_implementation\.py:\d+\)$"
    ):
        loaded.load("a:T", target=Odd)
    with pytest.raises(LoadError, match=r"^there is no adapter 'textbok'"):
        loaded.load("textbok")
    with pytest.raises(LoadError, match=r"^a:T is of type int; expected a class or a function$"):
        loaded.load("a:T", target=5)


def test_another_process_is_started_first_and_knows_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Any] = []

    class Client:
        pid: int | None = None
        time_limit = 0.0

        def start(self) -> None:
            events.append("started")
            self.pid = 1

    client = Client()
    implementation = Implementation("x", Right, 7).with_target(type("Other", (RemoteTokenizer,), {"client": client}))
    monkeypatch.setattr(
        time_limit.TimeLimit, "run", lambda self, what, function, grace: events.append(grace) or function()
    )
    for _ in range(2):
        implementation.call("encode(...)", lambda: events.append(client.time_limit))
    with implementation.time_limit(2):
        implementation.call("encode(...)", lambda: events.append(client.time_limit))
        with implementation.limiter.within(3):
            implementation.call("encode(...)", lambda: events.append(client.time_limit))
    assert events == [
        "started",
        1.0,
        7,
        1.0,
        7,
        1.0,
        14,
        1.0,
        3,
    ]  # the second number of a pair is the time that is left, and the first one the time to report it


def test_what_the_suite_waits_for_is_announced_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(capabilities, "LONG", 0.001)
    said = tmp_path / "stderr"
    with (
        said.open("w", encoding="ascii") as stderr,
        capabilities.announced(lambda: (0.0, "waiting"), stderr.fileno()),
    ):
        waited = time.monotonic() + 10
        while not said.stat().st_size and time.monotonic() < waited:
            time.sleep(0.001)
        time.sleep(0.1)
    assert said.read_text("ascii") == "bpe-conformance: waiting\n"


def test_what_announces_a_probe_ends_with_it() -> None:
    before = {*threading.enumerate()}
    for _ in range(20):
        with capabilities.announced(lambda: (0.0, "nothing"), 2):
            pass
        assert {*threading.enumerate()} == before


@pytest.mark.slow
def test_what_loaded_tokenizers_lack_is_not_tested_there() -> None:
    class Small:
        def __init__(self, inner: Reference) -> None:
            self.encode, self.decode, self.encode_batch = inner.encode, inner.decode, inner.encode_batch

        def encode_iterable(self, chunks: Iterable[str]) -> Any:
            raise NotImplementedError

    class Loading(Reference):
        @classmethod
        def from_files(cls, *arguments: Any) -> Any:
            return Small(super().from_files(*arguments))

        @classmethod
        def from_tokenizer_json(cls, path: Any) -> Any:
            return SimpleNamespace(encode=super().from_tokenizer_json(path).encode)

        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: Any = (), pattern: Any = None) -> Any:
            trained = Reference.train(text, vocab_size, special_tokens, pattern)
            return SimpleNamespace(vocab=trained.vocab, merges=trained.merges, encode=lambda text: trained.encode(text))

    implementation = Implementation("x", Loading)
    lacking = {"encode_iterable", "decode_bytes", "save", "decode_iterable", "encode_with_offsets"}
    assert implementation.lacking["from_files"] == lacking
    assert implementation.lacking["from_tokenizer_json"] == lacking | {"decode", "encode_batch"}
    assert implementation.lacking["train"] == lacking | {"decode", "encode_batch", "allowed_special"}
    assert lacking | {"decode"} <= implementation.capabilities
    assert implementation.made_by(("encode",)) is implementation
    assert implementation.made_by(("from_files",)).capabilities == implementation.capabilities - lacking
    assert implementation.missing(("from_files", "save"), ("from_files",)) == "no save after from_files"
    assert implementation.missing(("from_files", "encode"), ("from_files",)) is None
    assert implementation.missing(("save",), ("encode",)) is None
    assert implementation.notes == [
        "what from_files returns is tested without encode_iterable, decode_bytes, save, decode_iterable, "
        "encode_with_offsets, which it lacks",
        "what from_tokenizer_json returns is tested without decode, encode_iterable, encode_batch, decode_bytes, "
        "decode_iterable, encode_with_offsets, which it lacks",
        "what train returns is tested without decode, encode_iterable, encode_batch, decode_bytes, save, "
        "decode_iterable, encode_with_offsets, which it lacks",
    ]
    for id_ in ("law-trained-methods", "law-trained-ways", "law-train-encode"):
        (tested,) = (one for one in PROPERTIES if one.id == id_)
        assert tested.run(implementation, Effort()) is None


@pytest.mark.parametrize("name", ["input_path", "filename", "text"])
def test_a_train_that_names_a_file_is_noted(name: str) -> None:
    made: dict[str, Any] = {"Reference": Reference}
    code = (
        f"class Reads(Reference):\n @classmethod\n def train(cls, {name}, vocab_size, special_tokens):\n  return 1 / 0"
    )
    exec(code, made)
    notes = Implementation("x", made["Reads"]).notes
    assert [note.partition(";")[0] for note in notes if "--bpe-trainer" in note] == (
        [] if name == "text" else [f"train gets the text itself as its argument {name}"]
    )
