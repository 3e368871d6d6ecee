from __future__ import annotations

import re
import time
from typing import Any

import pytest
from helpers.project import Project

from bpe_conformance.fixtures.models import gpt2_model
from bpe_conformance.fixtures.spec import load_spec
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs import known_bugs
from bpe_conformance.known_bugs.correct import Encoder
from bpe_conformance.properties import long_inputs
from bpe_conformance.properties.basic import bind
from bpe_conformance.properties.engine import Law, check
from bpe_conformance.properties.long_inputs import BLANKS, LENGTHS, MODEL, RUNS, SPECIAL, WORD
from bpe_conformance.properties.time_budget import forecast
from bpe_conformance.reference import Tokenizer, textbook

BREAKERS = {
    "law-large-table": ["sixteen-bit-ranks"],
    "law-long-texts": ["long-texts-in-blocks", "specials-off-in-long-texts"],
    "law-long-runs": ["long-runs-cut"],
    "law-long-streams": ["long-chunks-encoded-alone"],
    "law-large-batches": ["whole-groups-only"],
    "law-long-batches": ["long-texts-in-blocks"],
    "law-long-decoding": ["decodes-in-blocks"],
}


@pytest.fixture(scope="module")
def laws() -> dict[str, Law]:
    return {law.id: law for law in bind(load_spec(check_schema=False).clauses)}


@pytest.mark.parametrize(("name", "bug"), [(law, bug) for law, bugs in BREAKERS.items() for bug in bugs])
def test_what_is_wrong_for_long_inputs_alone_breaks_the_law(laws: dict[str, Law], name: str, bug: str) -> None:
    target = next(one.target for one in known_bugs() if one.id == bug)
    found = check(laws[name], Implementation("x", target))
    assert found is not None
    assert found.difference.expected != found.difference.got
    assert "no answer" not in found.difference.got


def test_every_long_bug_breaks_a_law() -> None:
    assert {bug.id for bug in known_bugs() if bug.long} == {bug for bugs in BREAKERS.values() for bug in bugs}


@pytest.mark.parametrize("name", BREAKERS)
def test_the_reference_keeps_the_law(laws: dict[str, Law], name: str) -> None:
    implementation = Implementation("x", Tokenizer)
    assert check(laws[name], implementation) is None
    assert implementation.notes == []


@pytest.mark.parametrize("part", [WORD + WORD + BLANKS, WORD + BLANKS + WORD + SPECIAL])
def test_a_cut_shows_wherever_it_is_no_multiple_of_three(part: str) -> None:
    right = textbook.Tokenizer(MODEL.vocab, MODEL.merges, MODEL.special_tokens if SPECIAL in part else None)
    whole = right.encode(part * 3)
    assert whole == right.encode(part) * 3
    for cut in range(1, 3 * len(part)):
        seen = right.encode((part * 3)[:cut]) + right.encode((part * 3)[cut:]) != whole
        assert seen or cut % 3 == 0, cut
    data = (part * 3).encode("utf-8")
    for cut in range(1, len(data)):
        try:
            halves = data[:cut].decode("utf-8"), data[cut:].decode("utf-8")
        except UnicodeDecodeError:
            continue
        assert right.encode(halves[0]) + right.encode(halves[1]) != whole or cut % 3 == 0, cut


@pytest.mark.parametrize("part", ["abc", "\t \n", "123"])
def test_a_long_run_is_its_part_again_and_again_in_one_pre_token(part: str) -> None:
    right = textbook.Tokenizer(RUNS.vocab, RUNS.merges, None)
    assert len(right.encode(part)) == 1
    assert right.encode("\n" + part * 5) == [10, *right.encode(part) * 5]
    assert max(map(len, textbook.split("\n" + part * 5))) >= 15


@pytest.mark.parametrize("size", [*(2**power for power in range(12, 21)), *(10**6, 400_000, 500_000, 25_000, 100_000)])
def test_the_usual_sizes_of_blocks_are_no_multiples_of_three(size: int) -> None:
    assert size % 3
    assert size < LENGTHS[-1]


def test_what_is_too_slow_for_long_inputs_is_not_judged_on_them_and_told(
    laws: dict[str, Law], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_inputs, "LENGTHS", (40, 160, 10**9))

    class Slow(Encoder):
        def encode(self, text: str) -> list[int]:
            time.sleep(0.01)
            return super().encode(text)

    implementation = Implementation("x", Slow)
    assert check(laws["law-long-texts"], implementation) is None
    ways = (", special tokens", "", ", mixed text, gpt2", ", mixed text, cl100k", ", a special token with spaces")
    assert implementation.notes == [
        f"law-long-texts{way}: sizes of 1,000,000,000 and more take too long to try" for way in ways
    ]


def test_slow_batches_are_judged_on_fewer_texts_and_told(laws: dict[str, Law]) -> None:
    class Slow(Tokenizer):
        def encode_batch(self, texts: list[str], **options: Any) -> list[list[int]]:
            time.sleep(0.0005 * len(texts))
            return super().encode_batch(texts, **options)

    implementation = Implementation("x", Slow, time_limit=0.4)
    assert check(laws["law-large-batches"], implementation) is None
    assert [re.sub(r"[\d,]+ and", "N and", note) for note in implementation.notes] == [
        "law-large-batches, special tokens: sizes of N and more take too long to try",
        "law-large-batches: sizes of N and more take too long to try",
    ]


def test_a_slow_trainer_is_judged_on_fewer_texts_and_told(laws: dict[str, Law]) -> None:
    class Slow(Tokenizer):
        @classmethod
        def train(cls, *given: Any, **options: Any) -> Any:
            time.sleep(0.05)
            return super().train(*given, **options)

    implementation = Implementation("x", Slow, time_limit=0.3)
    assert check(laws["law-train-history"], implementation) is None
    assert len(implementation.notes) == 1
    assert re.fullmatch(r"law-train-history: \d+ of \d+ steps take too long to try", implementation.notes[0])


@pytest.mark.parametrize(
    ("took", "size", "seconds"),
    [
        ([(10, 1.0)], 40, 16.0),
        ([(10, 1.0), (40, 4.0)], 160, 16.0),
        ([(10, 1.0), (40, 16.0)], 160, 256.0),
        ([(10, 0.01), (40, 16.0)], 160, 256.0),
        ([(10, 1.0), (40, 0.5)], 160, 2.0),
        ([(100, 1.0), (511, 5.11), (512, 9.0)], 513, 9.0),
    ],
)
def test_the_time_for_a_size_is_foretold_from_smaller_ones(
    took: list[tuple[int, float]], size: int, seconds: float
) -> None:
    assert forecast(took, size) == pytest.approx(seconds, rel=0.01)


def test_a_long_pre_token_may_be_refused_and_a_long_text_may_not(laws: dict[str, Law]) -> None:
    class Refuses(Tokenizer):
        def encode(self, text: str, **options: Any) -> list[int]:
            if len(text) > 20_000:
                raise ValueError("too long")
            return super().encode(text, **options)

    implementation = Implementation("x", Refuses)
    assert check(laws["law-long-runs"], implementation) is None
    assert implementation.notes == [
        "law-long-runs: a pre-token of 70,000 characters: encode(...) raised ValueError: too long",
    ]
    assert check(laws["law-long-texts"], implementation) is not None


def test_a_long_pre_token_may_be_refused_in_a_stream_too(laws: dict[str, Law]) -> None:
    class Refuses(Tokenizer):
        def encode_iterable(self, chunks: Any, **options: Any) -> Any:
            text = "".join(chunks)
            if re.search(r"[abc!?.]{20001}|[ ]{20001}", text):
                raise ValueError("too long")
            return super().encode_iterable([text], **options)

    implementation = Implementation("x", Refuses)
    assert check(laws["law-long-streams"], implementation) is None
    assert len(implementation.notes) == 1
    assert implementation.notes[0].endswith(" characters: encode_iterable(...) raised ValueError: too long")


def test_the_laws_hold_for_an_implementation_of_gpt2_alone(laws: dict[str, Law]) -> None:
    class OfGpt2(Tokenizer):
        model = "gpt2"

        def __init__(self, blocks: bool = False) -> None:
            model = gpt2_model()
            super().__init__(model.vocab, model.merges, model.special_tokens)

    class InBlocks(OfGpt2):
        def encode(self, text: str, **options: Any) -> list[int]:
            parts = [text[start : start + 65_536] for start in range(0, len(text), 65_536)]
            return [index for part in parts for index in super(InBlocks, self).encode(part)]

    for target, holds in ((OfGpt2, True), (InBlocks, False)):
        assert (check(laws["law-long-texts"], Implementation("x", target)) is None) is holds


def test_an_implementation_of_gpt2_without_special_tokens_is_asked_for_none(laws: dict[str, Law]) -> None:
    class Ordinary(Tokenizer):
        model = "gpt2"

        def __init__(self) -> None:
            model = gpt2_model()
            super().__init__(model.vocab, model.merges)

    implementation = Implementation("x", Ordinary)
    tried = [laws[name] for name in BREAKERS if laws[name].any_model]
    assert len(tried) == 5
    assert [law.id for law in tried if check(law, implementation) is not None] == []


def test_a_wrong_stream_is_caught_behind_the_bridge(project: Project) -> None:
    adapter = "bpe_conformance.known_bugs.long_inputs:LongChunksEncodedAlone"
    options = ("--adapter", adapter, "--bpe-isolate", "--bpe-case", "law-long-streams")
    result = project.pytester.runpytest_subprocess("conformance", *options, timeout=120)
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("name", ["law-long-runs", "law-long-ways"])
def test_a_slow_tokenizer_is_judged_on_what_there_is_time_for(laws: dict[str, Law], name: str) -> None:
    class Slow(Encoder):
        def encode_pre_token(self, pre_token: str) -> list[int]:
            time.sleep(len(pre_token) * 2e-5)
            return super().encode_pre_token(pre_token)

    implementation = Implementation("x", Slow, time_limit=1)
    assert check(laws[name], implementation) is None
    assert any("take too long to try" in note for note in implementation.notes)
