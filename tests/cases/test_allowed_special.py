"""The suite tests `allowed_special` and `disallowed_special` only on adapters that support them."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Collection, Iterator
from typing import Any

import pytest
from helpers.bridge_adapters import watched
from helpers.golden_cases import case, judged, like
from helpers.plugin_adapters import Right

from bpe_conformance.adapters.bridge import wire
from bpe_conformance.adapters.bridge.client import isolated
from bpe_conformance.adapters.loading import resolve
from bpe_conformance.answer import AnyError, EncodingDivergence, SpecialToken
from bpe_conformance.cases.dependence import explained
from bpe_conformance.cases.judging import judge, skip_reason
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.operations import EncodeAllowed
from bpe_conformance.reference import textbook
from bpe_conformance.spec import installed_spec
from bpe_conformance.spec_tools.witnesses import load_witnesses

CASES = [one for one in installed_spec().cases if one.operation.name == "encode_allowed"]
MODEL = {"merges": [["a", "b"]], "extra": [[300, "<|e|>"], [301, "<|f|>"]], "special_tokens": ["<|e|>", "<|f|>"]}


def made(text: str, allowed: Any, disallowed: Any) -> Any:
    given = {"text": text, "allowed_special": allowed, "disallowed_special": disallowed}
    return case("encode_allowed", MODEL, given, clause="SPECIAL-ALLOWED-1")


PLAIN = made("ab<|e|>", [], [])
ONE = made("ab<|e|><|f|>", ["<|f|>"], [])
ERROR = made("ab<|e|>", [], "all")
ANSWER = made("ab<|f|>", ["<|f|>"], "all")


# Adapters that are tested


class Keywords(Right):
    def encode(self, text: str, **options: Any) -> list[int]:
        return super().encode(text)


class OneOfThem(Right):
    def encode(self, text: str, *, allowed_special: Any = "all") -> list[int]:
        return super().encode(text)


class NotYet(Right):
    def encode(self, text: str, *, allowed_special: Any = None, disallowed_special: Any = None) -> list[int]:
        if (allowed_special, disallowed_special) != (None, None):
            raise NotImplementedError
        return super().encode(text)


class RefusesByDefault(Right):
    """Answers like tiktoken to the calls of the suite, which always have both arguments."""

    def encode(self, text: str, allowed_special: Any = (), disallowed_special: Any = "all") -> list[int]:
        return super().encode(text, allowed_special=allowed_special, disallowed_special=disallowed_special)


@pytest.mark.parametrize("adapter", [Keywords, OneOfThem, NotYet, "huggingface", "minimal"])
def test_adapter_without_the_keywords_is_not_tested(adapter: Any) -> None:
    if adapter == "huggingface":
        pytest.importorskip("tokenizers")
    implementation = Implementation("x", resolve(adapter) if isinstance(adapter, str) else adapter)
    assert {skip_reason(one, implementation) for one in CASES} == {"allowed_special"}


@pytest.mark.parametrize("adapter", ["reference", "textbook", "tiktoken", "tiktoken-gpt2", RefusesByDefault])
def test_adapter_with_the_keywords_passes(adapter: Any) -> None:
    if "tiktoken" in str(adapter):
        pytest.importorskip("tiktoken")
    implementation = Implementation("x", resolve(adapter) if isinstance(adapter, str) else adapter)
    asked = [one for one in CASES if skip_reason(one, implementation) is None]
    assert len(asked) == (len(CASES) if adapter != "tiktoken-gpt2" else 4)
    assert [one.id for one in asked if judge(one, implementation) is not None] == []


def test_arguments_have_the_types_of_tiktoken() -> None:
    seen = []

    class Noting(Right):
        def encode(self, text: str, *, allowed_special: Any = "all", disallowed_special: Any = "all") -> list[int]:
            seen.append((allowed_special, disallowed_special))
            return super().encode(text, allowed_special=allowed_special, disallowed_special=disallowed_special)

    for one in (ONE, ANSWER):
        assert judged(one, Noting) is None
    probe = (set[str](), ())
    assert probe in seen
    assert [pair for pair in seen if pair not in (("all", "all"), probe)] == [({"<|f|>"}, ()), ({"<|f|>"}, "all")]


# Transport of the arguments


@pytest.fixture
def there() -> Iterator[Any]:
    adapter = isolated("textbook")
    yield adapter
    adapter.close()


def test_keywords_pass_over_the_bridge(there: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "allowed_special" in there.capabilities
    messages = watched(there.client, monkeypatch)
    implementation = Implementation("x", there)
    assert [one.id for one in CASES if judge(one, implementation) is not None] == []
    messages.clear()
    proxy = implementation.build(PLAIN.model)
    proxy.encode("a")
    proxy.encode_allowed("a", ["<|e|>"], "all")
    sent = [json.loads(request) for request, _ in messages]
    plain, chosen = [one for one in sent if one["op"] == "encode"]
    assert set(plain) == {"seq", "op", "model", "text"}
    assert (chosen["allowed_special"], chosen["disallowed_special"]) == (["<|e|>"], "all")
    for wrong in ({"allowed_special": []}, {"disallowed_special": "all"}):  # a single one is passed on unchanged
        there(*PLAIN.model.fresh()).encode("a", **wrong)
        last = json.loads(messages[-1][0])
        assert {name: last[name] for name in wrong} == wrong


def test_tiktoken_encoding_gets_the_keywords(monkeypatch: pytest.MonkeyPatch) -> None:
    class Encoding:
        name = "gpt2"

        def encode(self, text: str, *, allowed_special: Collection[str] = ()) -> list[int]:
            return list(text.encode("utf-8"))

        def decode(self, ids: list[int]) -> str:
            return bytes(ids).decode("utf-8", "replace")

    class Both(Encoding):
        def encode(  # type: ignore[override]
            self, text: str, *, allowed_special: Collection[str] = (), disallowed_special: Collection[str] = "all"
        ) -> list[int]:
            if disallowed_special == "all" and "<|endoftext|>" in text and "<|endoftext|>" not in allowed_special:
                raise ValueError("disallowed")
            return super().encode(text)

    module = types.ModuleType("encodings_with_choice")
    module.Encoding, module.Both = Encoding, Both  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert "allowed_special" not in Implementation("x", resolve("encoding:encodings_with_choice:Encoding")).capabilities
    implementation = Implementation("x", resolve("encoding:encodings_with_choice:Both"))
    by_id = {one.id: one for one in CASES}
    assert judge(by_id["special-disallowed-gpt2"], implementation) is None
    assert judge(by_id["special-allowed-gpt2-all"], implementation) is not None


def test_invalid_keywords_are_rejected_at_both_ends(there: Any) -> None:
    for value in ("<|e|>", {"a": 1}, 5, ["a", 5], None):
        with pytest.raises(ValueError, match="text"):
            wire.read_choice(value)
    assert wire.read_choice(["a", {"code_points": [0xD800]}]) == ["a", "\ud800"]
    assert there(*PLAIN.model.fresh()).encode("<|e|>", allowed_special="all", disallowed_special=()) == [300]


# Wrong answers


def answers(answer: Any) -> Any:
    def encode(self: Any, text: str, *, allowed_special: Any = "all", disallowed_special: Any = ()) -> Any:
        right = textbook.Tokenizer.encode
        return answer(lambda *a, **k: right(self, text, *a, **k), allowed_special, disallowed_special)

    return like(Right, encode=encode)


@pytest.mark.parametrize(
    ("asked", "answer", "cause"),
    [
        (PLAIN, lambda right, a, d: right(), SpecialToken(b"<|e|>", missed=False, allowed=False)),
        (
            ONE,
            lambda right, a, d: right(allowed_special=(), disallowed_special=()),
            SpecialToken(b"<|f|>", missed=True),
        ),
        (ERROR, lambda right, a, d: right(allowed_special=a, disallowed_special=()), None),
        (ANSWER, lambda right, a, d: right(allowed_special=(), disallowed_special=d), None),
        (ERROR, lambda right, a, d: sys.exit(1), None),
    ],
)
def test_correct_passes_and_wrong_fails(asked: Any, answer: Any, cause: SpecialToken | None) -> None:
    assert judged(asked, Right) is None
    found = judged(asked, answers(answer))
    assert found is not None
    assert cause is None or (isinstance(found.divergence, EncodingDivergence) and found.divergence.cause == cause)
    assert isinstance(found.asked.operation, EncodeAllowed)


def test_a_missing_error_does_not_depend_on_encode_without_a_choice() -> None:
    """`encode` gives the same ids, but to another question."""
    implementation = Implementation("x", answers(lambda right, a, d: right(allowed_special=a, disallowed_special=())))
    found = judge(ERROR, implementation)
    assert found is not None
    assert explained(found, ERROR.clause.id, implementation).depends_on is None


BY_HASH_ORDER = {"special-allowed-longest"}
"""tiktoken chooses one of several special tokens at a position by hash order."""


def test_expected_values_are_computed_and_confirmed_by_tiktoken() -> None:
    assert {one.expected.is_computed for one in CASES} == {True}
    rules = {one.expected.alternatives[0] for one in CASES if AnyError in map(type, one.expected.alternatives)}
    assert rules == {AnyError("disallowed")}
    tiktoken = next(one for one in load_witnesses() if one.name == "tiktoken")
    if tiktoken.absent() is None:
        answers = {one.id: tiktoken.answer(one) for one in CASES}
        assert {name: answer for name, answer in answers.items() if answer and not answer.agrees} == {}
        assert {name for name, answer in answers.items() if answer is None} == BY_HASH_ORDER
    assert {one.id for one in CASES if "tiktoken" not in one.agrees} == BY_HASH_ORDER
