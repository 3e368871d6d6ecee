"""The search is reproducible, shrinks counterexamples, uses controls and leaves nothing on disk."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.wrong_tokenizers import Whole
from hypothesis import settings
from hypothesis import strategies as st

from bpe_conformance.answer import (
    MALFORMED,
    TIMED_OUT,
    Answer,
    EncodingDivergence,
    Fault,
    Ids,
    Pair,
    Refusal,
    UnknownId,
    WrongMerge,
)
from bpe_conformance.fixtures import read_model
from bpe_conformance.fixtures.yaml_file import SpecError
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.operations import Encode, ManyCalls, Question
from bpe_conformance.outcome import Dependence, Expectation, Mismatch
from bpe_conformance.properties import bind, choices, encoding, engine, streaming
from bpe_conformance.properties.asking import Instance, as_yaml, ask, is_late, is_lost, undisturbed, write_model
from bpe_conformance.properties.engine import Drawn, Effort, Found, Property, Search, SharedRun, Verdicts, skip_reason
from bpe_conformance.spec import installed_spec

ENCODE, STREAM = encoding.PROPERTIES[0], streaming.PROPERTIES[0]
ROUND_TRIP = next(one for one in encoding.PROPERTIES if one.id == "law-round-trip")
DEFAULT = Effort()
MODEL = read_model({"merges": [["a", "b"]]})


class Greedy(Whole):
    """Merges the leftmost pair that can be merged."""

    def merge(self, word: tuple[bytes, ...]) -> tuple[bytes, ...]:
        here = 0
        while here + 1 < len(word):
            if word[here : here + 2] in self.ranks:
                word = (*word[:here], word[here] + word[here + 1], *word[here + 2 :])
                here = 0
            else:
                here += 1
        return word


def run(one: Property, target: Any, effort: Effort = DEFAULT, limit: float = 10.0) -> Found | None:
    return one.run(Implementation("x", target, limit), effort)


def texts_of(effort: Effort) -> list[str]:
    seen: list[str] = []

    class Noting(Whole):
        def encode(self, text: str) -> list[int]:
            seen.append(text)
            return super().encode(text)

    assert run(ENCODE, Noting, effort) is None
    return seen


@pytest.mark.slow
def test_examples_are_the_same_in_every_process() -> None:
    code = "from properties.test_engine import *; print(ascii(texts_of(Effort())), ascii(run(ENCODE, Greedy)))"
    found = set()
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[1])}
        process = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, encoding="utf-8", check=True
        )
        found.add(process.stdout)
    assert len(found) == 1


def test_a_seed_gives_other_examples_and_the_factor_gives_more() -> None:
    default, seeded, again = texts_of(Effort()), texts_of(Effort(seed=7)), texts_of(Effort(seed=7))
    assert seeded == again
    assert len({*seeded} - {*default}) > 30
    assert len({*texts_of(Effort(seed=8))} - {*seeded}) > 30
    assert len(texts_of(Effort(seed=7, examples_factor=3))) > 2 * len(seeded)


def test_examples_are_varied() -> None:
    assert len({*texts_of(Effort())}) > 50
    assert "" not in texts_of(Effort())


def test_a_counterexample_is_small_and_names_its_cause() -> None:
    one = run(ENCODE, Greedy)
    assert one is not None
    assert len(one.mismatch.asked.operation.text) <= 4
    assert one.mismatch.asked.model is not None
    assert len(one.mismatch.asked.model.merges) <= 3
    where = one.mismatch.divergence
    assert isinstance(getattr(where, "cause", None), WrongMerge)
    assert one.case.startswith("clause: LAW-ENCODE-1\ncases:\n  - id: law-encode-found\n")


def test_an_exception_is_an_answer_to_a_small_example() -> None:
    class Raises(Whole):
        def encode(self, text: str) -> list[int]:
            if "b" in text and text not in ("ab", "xab"):
                raise IndexError("list index out of range")
            return super().encode(text)

    one = run(ENCODE, Raises)
    assert one is not None
    assert isinstance(one.mismatch.answer, Refusal)
    assert one.mismatch.answer.kind == "IndexError"
    assert len(one.mismatch.asked.operation.text) <= 2


def test_a_time_out_shows_the_input() -> None:
    class Hangs(Whole):
        def encode(self, text: str) -> list[int]:
            while len(text) > 3:
                pass
            return super().encode(text)

    one = run(ENCODE, Hangs, limit=0.2)
    assert one is not None
    assert isinstance(one.mismatch.answer, Fault)
    assert one.mismatch.answer.kind == TIMED_OUT
    assert len(one.mismatch.asked.operation.text) > 3
    assert "input: {text: " in one.case


def test_answers_that_change_from_call_to_call_are_kept() -> None:
    calls = iter(range(10**9))

    class Fickle(Whole):
        def encode(self, text: str) -> list[int]:
            return super().encode(text) + [97] * (next(calls) % 7 == 6)

    one = run(ENCODE, Fickle)
    assert one is not None
    assert isinstance(one.mismatch.answer, Ids)


def test_stream_failure_depends_on_equal_encode_failure() -> None:
    one = run(STREAM, Greedy)
    assert one is not None
    assert one.mismatch.depends_on is not None
    assert one.mismatch.depends_on.kind == "encode"


def test_independent_failure_is_found_among_dependent_ones() -> None:
    class ChunksAlone(Greedy):
        def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
            for chunk in chunks:
                yield from self.encode(chunk)

    one = run(STREAM, ChunksAlone)
    assert one is not None
    assert one.mismatch.depends_on is None


def test_a_failure_that_depends_on_another_does_not_end_the_search_for_others() -> None:
    search = Search("law-numbers", Implementation("x", Whole), Effort())
    own = Mismatch(Question(Encode("a")), Expectation((Ids((97,)),)), Ids(()))
    assert not search.judge(replace(own, depends_on=Dependence("undisturbed")))
    assert search.judge(own)


def test_the_decoder_is_not_blamed_for_encode() -> None:
    assert run(ROUND_TRIP, Greedy) is None


def test_a_disturbed_answer_is_compared_with_an_undisturbed_one() -> None:
    class Wrong(Whole):
        def encode(self, text: str) -> list[int]:
            return [0]

    question = Question(Encode("xab"), MODEL, "second call")
    right, wrong = Ids((120, 256)), Ids((120, 97, 98))
    assert undisturbed(Implementation("x", Whole), question, right) is None
    assert undisturbed(Implementation("x", Whole), question, wrong) == Mismatch(question, Expectation((right,)), wrong)
    dependent = undisturbed(Implementation("x", Wrong), question, Ids((0,)))
    assert dependent is not None
    assert dependent.depends_on == Dependence("undisturbed")


def test_a_tokenizer_that_cannot_be_built_answers_with_its_error() -> None:
    class Refuses(Whole):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
            if ("ab", "ab") in merges or len(merges) == 1:
                raise ValueError("no")
            super().__init__(vocab, merges, special_tokens, pattern)

    implementation, question = Implementation("x", Refuses), Question(Encode("ab"), MODEL)
    assert isinstance(ask(implementation, question), Refusal)
    instance = Instance(implementation, MODEL)
    assert instance.ask(question) == instance.ask(question) == ask(implementation, question)


def test_a_tokenizer_has_no_more_time_than_the_limit_unless_it_is_given_more() -> None:
    class Slow(Whole):
        def encode(self, text: str, **options: Any) -> list[int]:
            time.sleep(0.1)
            return super().encode(text, **options)

    implementation, question = Implementation("x", Slow, limit=0.03), Question(Encode("ab"), MODEL)
    assert is_late(Instance(implementation, MODEL).ask(question))
    assert not is_late(Instance(implementation, MODEL, 300).ask(question))


def test_an_error_of_the_suite_is_not_a_mismatch() -> None:
    @Drawn("law-broken", "LAW-ENCODE-1", ("encode",), lambda implementation: st.booleans())
    def one(implementation: Implementation, example: bool) -> Verdicts:
        raise LookupError("of the suite")

    with pytest.raises(LookupError, match="of the suite"):
        run(one, Whole)


def test_the_users_settings_are_left_alone() -> None:
    before = settings.get_current_profile_name()
    settings.register_profile("users", max_examples=1, derandomize=True)
    settings.load_profile("users")
    try:
        assert run(ENCODE, Greedy) is not None
        assert settings.get_current_profile_name() == "users"
        assert settings().max_examples == 1
    finally:
        settings.load_profile(before)


CONSTANTS = "NUMBERS = [{}]\nDATA = [{}]\n".format(
    ", ".join(map(str, range(1_000, 1_400))), ", ".join(str(bytes([97 + at % 7] * (1 + at % 30))) for at in range(400))
)


@pytest.mark.slow
def test_examples_do_not_depend_on_the_users_modules_and_nothing_is_written(tmp_path: Path) -> None:
    code = "from properties.test_engine import *; print(ascii(texts_of(Effort())), ascii(run(ENCODE, Greedy)))"
    found = set()
    for source in ("", CONSTANTS):
        folder = tmp_path / f"with {len(source)}"
        folder.mkdir()
        (folder / "users.py").write_text(source, "utf-8")
        path = os.pathsep.join([str(folder), str(Path(__file__).parents[1])])
        process = subprocess.run(
            [sys.executable, "-c", f"import users; {code}"],
            env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=folder,
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        found.add(process.stdout)
        assert [file.name for file in folder.iterdir()] == ["users.py"]
    assert len(found) == 1


def after(most: int) -> Callable[[str, int], bool]:
    """Return what ends a search after so many examples."""
    return lambda _, examples: examples > most


def test_fuzzing_ends_in_time_and_keeps_failing_examples(tmp_path: Path) -> None:
    assert run(ENCODE, Whole, Effort(deadline=0.2, database=tmp_path / "examples")) is None
    one = run(ENCODE, Greedy, Effort(deadline=20.0, database=tmp_path / "examples", watch=after(30)))
    assert one is not None
    again = run(ENCODE, Greedy, Effort(seed=5, deadline=20.0, database=tmp_path / "examples", watch=after(2)))
    assert again is not None
    assert again.examples == 1


def test_one_fault_does_not_hide_another() -> None:
    class RefusesSpaces(Greedy):
        def encode(self, text: str) -> list[int]:
            if " " in text:
                raise ValueError("no spaces")
            return super().encode(text)

    one = run(ENCODE, RefusesSpaces, Effort(deadline=20.0, watch=after(30)))
    assert one is not None
    found = {type(each.mismatch.answer) for each in (one, *one.more)}
    assert found == {Refusal, Ids}
    assert all(each.case for each in (one, *one.more))


def test_counterexamples_that_differ_in_form_place_or_cause_are_all_kept() -> None:
    def wrong(answer: Answer, where: EncodingDivergence | None) -> Mismatch:
        return Mismatch(Question(Encode("ab"), MODEL), Expectation((Ids((256,)),)), answer, where)

    ids, missed = Ids((97, 98)), WrongMerge(None, Pair((b"a", b"b"), 0, 0))
    several = [
        wrong(Refusal("ValueError", ""), None),
        wrong(Refusal("TypeError", ""), None),
        wrong(Fault(TIMED_OUT, ""), None),
        wrong(ids, None),
        wrong(ids, EncodingDivergence(0, 0, None)),
        wrong(ids, EncodingDivergence(0, 0, missed)),
        wrong(ids, EncodingDivergence(0, 0, UnknownId(97))),
    ]
    assert len({engine._kind(one) for one in several}) == len(several)
    assert engine._kind(several[-1]) == engine._kind(wrong(Ids((1,)), EncodingDivergence(5, 5, UnknownId(1))))


def test_a_search_with_a_deadline_continues_after_answers_that_change() -> None:
    calls = iter(range(10**9))

    class Fickle(Whole):
        def encode(self, text: str) -> list[int]:
            if next(calls) == 30:  # after the probes
                raise ValueError("once")
            return super().encode(text)

    seen: list[int] = []
    one = run(
        ENCODE, Fickle, Effort(deadline=20.0, watch=lambda name, examples: seen.append(examples) or examples > 50)
    )
    assert one is not None
    assert isinstance(one.mismatch.answer, Refusal)
    assert max(seen) > 40


def test_a_search_ends_when_it_is_asked_to() -> None:
    seen: list[int] = []

    def watch(name: str, examples: int) -> bool:
        seen.append(examples)
        return examples == 7

    assert run(ENCODE, Whole, Effort(deadline=60.0, watch=watch)) is None
    assert seen == [*range(8)]


@pytest.mark.parametrize(
    "raw",
    [
        {"merges": [["a", "b"]]},
        {"merges": [["a", "b"], ["ab", {"hex": "c3"}]], "byte_ids": "gpt2", "merge_ids": [258, 257]},
        {"merges": [["a", "b"], ["b", "c"]], "merge_ids": [256, 300]},
        {"merges": [], "byte_ids": 7, "extra": [[0, "<s>"]], "special_tokens": ["<s>"]},
        {"merges": [["a", "a"]], "byte_ids": "reversed", "pattern": "cl100k"},
        {"merges": [["a", "b"]], "remove": [192, 255]},
    ],
)
def test_a_model_is_written_as_it_is_read(raw: dict[str, Any]) -> None:
    assert write_model(read_model(raw)) == raw
    shuffled = read_model(raw)
    swapped = {**shuffled.vocab, 97: shuffled.vocab[98], 98: shuffled.vocab[97]}
    assert write_model(replace(shuffled, vocab=swapped)) is None


@pytest.mark.parametrize(
    ("any_model", "fixed", "reason"),
    [
        (False, None, None),
        (True, "gpt2", None),
        (True, "llama3", "other models than its own"),
        (False, "gpt2", "other models than its own"),
        (False, "llama3", "other models than its own"),
    ],
)
def test_a_tokenizer_of_one_model_is_asked_only_about_that(
    any_model: bool, fixed: str | None, reason: str | None
) -> None:
    implementation: Any = SimpleNamespace(fixed_model=fixed, capabilities={"encode"}, lacking={}, uncallable={})
    implementation.pack_model = None
    implementation.missing = partial(Implementation.missing, implementation)
    assert skip_reason(replace(ENCODE, needs=("encode",), any_model=any_model), implementation) == reason
    for needs, lacks in ((("decode",), "decode"), (("encode", "special"), "special tokens"), (("pattern",), "pattern")):
        assert skip_reason(replace(ENCODE, needs=needs, any_model=True), implementation) == (reason or lacks) or fixed
    implementation.pack_model = read_model({})
    assert skip_reason(replace(ENCODE, needs=("encode",), any_model=any_model), implementation) is None
    implementation.pack_model = None
    implementation.capabilities |= {"pattern:cl100k"}
    implementation.fixed_model = None
    assert skip_reason(replace(ENCODE, needs=("pattern",)), implementation) is None


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (choices.write([1, True, b"a"]), [1, True, b"a"]),
        (choices.write([]), []),
        (b"[1, 'a']", None),
        (b"[1.5]", None),
        (b"(1, 2)", None),
        (b"{1: 2}", None),
        (b"5", None),
        (b"[1", None),
        (b"open('x')", None),
        (b"\xff", None),
    ],
)
def test_only_choices_that_were_written_are_read(data: bytes, read: Any) -> None:
    assert choices.read(data) == read


def test_a_search_that_failed_before_begins_with_its_example_and_forgets_what_passes(tmp_path: Path) -> None:
    saved: dict[bytes, list[bytes]] = {b"law-numbers": [choices.write([b"z"]), choices.write([b"abc"]), b"no choices"]}
    database = SimpleNamespace(
        fetch=lambda key: list(saved[key]),
        save=lambda key, value: saved[key].append(value),
        delete=lambda key, value: saved[key].remove(value),
    )
    search = Search("law-numbers", Implementation("x", Whole), Effort(database=tmp_path, shrink=False))
    search._database = database  # type: ignore[assignment]
    seen: list[bytes] = []

    def judged(example: bytes) -> None:
        seen.append(example)
        search.judge(Mismatch(Question(Encode("a")), Expectation(()), Ids(())) if b"z" in example else None)

    search.run(st.binary(max_size=3), judged, 5)
    assert seen[1:3] == [b"abc", b"z"]
    assert choices.write([b"abc"]) not in saved[b"law-numbers"]
    assert choices.write([b"z"]) in saved[b"law-numbers"]


def test_every_error_of_the_suite_ends_the_search() -> None:
    search = Search("law-numbers", Implementation("x", Whole), Effort())

    def fails(example: bytes) -> None:
        raise LookupError(search.examples)

    with pytest.raises(LookupError, match="1"):
        search.run(st.binary(), fails, 5)


def test_a_question_with_a_context_or_an_unnamed_order_of_bytes_is_no_case() -> None:
    question = Question(Encode("a"), MODEL)
    assert as_yaml(question, "LAW-ENCODE-1", "one").startswith("clause: LAW-ENCODE-1\ncases:\n  - id: one\n")
    assert as_yaml(replace(question, context="again"), "LAW-ENCODE-1", "one") == ""
    assert as_yaml(Question(ManyCalls("many"), MODEL), "LAW-ENCODE-1", "one") == ""
    swapped = replace(MODEL, vocab={**MODEL.vocab, 97: b"b", 98: b"a"})
    assert as_yaml(Question(Encode("a"), swapped), "LAW-ENCODE-1", "one") == ""
    assert 'model: "named"' in as_yaml(Question(Encode("a"), replace(MODEL, name="named")), "LAW-ENCODE-1", "one")


def test_an_answer_is_lost_if_a_call_gave_none_and_late_if_it_took_too_long() -> None:
    for answer, lost, late in (
        (Fault(TIMED_OUT, "no"), True, True),
        (Fault("SystemExit", "3"), True, False),
        (Fault(MALFORMED, "no"), False, False),
        (Refusal("ValueError", "no"), False, False),
        (Ids(()), False, False),
    ):
        assert (is_lost(answer), is_late(answer)) == (lost, late)


def test_a_property_without_its_clause_is_an_error_of_the_spec() -> None:
    clauses = dict(installed_spec().clauses)
    assert len(bind(clauses, to_scale=True)) == len(bind(clauses)) + 1
    for name in ("LAW-ENCODE-1", bind(clauses)[-1].clause_id):
        with pytest.raises(SpecError, match=f"names the clause {name}, which does not exist"):
            bind({key: clause for key, clause in clauses.items() if key != name})


def test_the_smallest_of_the_answers_that_depend_on_others_is_shown() -> None:
    def dependent(text: str) -> Mismatch:
        asked = Question(Encode(text), MODEL)
        return Mismatch(asked, Expectation((Ids(()),)), Ids((1,)), depends_on=Dependence("encode", text))

    for texts in (("aaa", "a", "aaaa"), ("a", "aa"), ("aaaa", "aa", "a")):
        search = Search("law", Implementation("x", Whole), DEFAULT)
        assert not any(search.judge(dependent(text)) for text in texts)
        found = search.found("LAW-ENCODE-1")
        assert found is not None
        assert found.mismatch.asked.operation == Encode("a")


def test_a_run_with_a_seed_tries_more_examples() -> None:
    assert Effort.of_seed(None) == DEFAULT
    assert Effort.of_seed(7).seed == 7
    assert Effort.of_seed(7).examples_factor > 2 * DEFAULT.examples_factor


def test_a_shared_search_runs_once_for_each_seed() -> None:
    mismatch = Mismatch(Question(Encode("a"), MODEL), Expectation((Ids(()),)), Ids((1,)))
    seeds = list[int | None]()

    def search(_: Implementation, effort: Effort) -> dict[str, Found]:
        seeds.append(effort.seed)
        return {"law-one": Found(mismatch, effort.seed or 0)}

    shared, implementation = SharedRun("law", search), Implementation("x", Whole)
    one, other = (shared.property(name, "LAW-ENCODE-1", ("encode",), "") for name in ("law-one", "law-other"))
    for seed in (1, 2, 1):
        assert one.run(implementation, Effort(seed=seed)) == Found(mismatch, seed)
        assert other.run(implementation, Effort(seed=seed)) is None
    assert seeds == [1, 2]
