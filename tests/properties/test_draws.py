from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence

import pytest
from helpers.plugin_adapters import Right

from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.properties import examples
from bpe_conformance.properties.basic import LAWS
from bpe_conformance.properties.draws import Choices, smallest

# The examples of the laws are the same in every run, on every platform and version of Python. A change to the
# generators, to the known characters or to the fixed texts gives others: measure what they catch, and pin them anew.
EXAMPLES = "f22342d49b7e5e452b0f89e1ef75b36fc2075b0a50b2896c1f651d746c45fcd0"


def test_the_examples_of_the_laws_are_pinned() -> None:
    implementation = Implementation("x", Right)
    apart = "law-encode-pattern"  # it draws from the patterns that there are
    laws = [law for law in LAWS if law.id != apart and law.tries > 1]
    drawn = [
        repr(law.draw(Choices(f"{law.id} {number}"), implementation)) for law in laws for number in range(law.tries)
    ]
    assert hashlib.sha256("\n".join(drawn).encode()).hexdigest() == EXAMPLES


def test_the_examples_of_a_law_differ() -> None:
    implementation = Implementation("x", Right)
    for law in LAWS:
        drawn = {repr(law.draw(Choices(f"{law.id} {number}"), implementation)) for number in range(law.tries)}
        assert len(drawn) > 0.8 * law.tries, law.id


def test_the_same_choices_give_the_same_example() -> None:
    implementation = Implementation("x", Right)
    for law in LAWS:
        first = Choices(f"{law.id} 7")
        example = law.draw(first, implementation)
        again = Choices("", first.made)
        assert law.draw(again, implementation) == example
        assert again.made == first.made


def test_without_choices_everything_is_the_simplest() -> None:
    draw = Choices("", [])
    assert examples.encodings(draw, Implementation("x", Right))["input"] == {"text": ""}
    assert set(draw.made) == {0}


def test_a_choice_that_is_too_great_is_made_the_greatest() -> None:
    draw = Choices("", [9, 9])
    assert (draw.below(3), draw.pick("ab"), draw.below(5)) == (2, "b", 0)
    assert draw.made == [2, 1, 0]


def test_every_number_of_draws_is_equally_likely() -> None:
    counts = Counter(len(Choices(str(number)).many(lambda: None, 5, least=2)) for number in range(2_000))
    assert set(counts) == {2, 3, 4, 5}
    assert min(counts.values()) > 400


def test_distinct_ones() -> None:
    for number in range(50):
        drawn = Choices(str(number)).distinct("abc", 5, least=1)
        assert 1 <= len(drawn) == len(set(drawn)) <= 3


def test_chances() -> None:
    assert 350 < sum(Choices(str(number)).chance(0.2) for number in range(2_000)) < 450


@pytest.mark.parametrize(
    ("wrong", "smaller"),
    [
        (lambda numbers: len(numbers) > 2, [0, 0, 0]),
        (lambda numbers: any(number > 6 for number in numbers), [7]),
        (lambda numbers: numbers.count(5) > 1, [5, 5]),
        (lambda numbers: sorted(numbers) != numbers, [1, 0]),
    ],
)
def test_what_fails_is_made_small(wrong: object, smaller: list[int]) -> None:
    assert callable(wrong)

    def numbers(draw: Choices) -> list[int]:
        return draw.many(lambda: draw.below(20), 30)

    def fails(choices: Sequence[int]) -> Sequence[int] | None:
        draw = Choices("", choices)
        return draw.made if wrong(numbers(draw)) else None

    first = next(draw for draw in map(Choices, "abcdefghijklmnopqrstuvwxyz") if wrong(numbers(draw)))
    assert numbers(Choices("", smallest(first.made, fails))) == smaller


def test_what_does_not_fail_again_stays_as_it_is() -> None:
    assert smallest([3, 1, 2], lambda choices: None) == [3, 1, 2]


def test_a_run_of_the_laws_imports_neither_hypothesis_nor_jsonschema() -> None:
    code = (
        "import sys, pytest;"
        "status = pytest.main(['conformance', '--adapter', 'textbook', '--bpe-case', 'law-encode', '-q']);"
        "print(status, *sorted({'hypothesis', 'jsonschema', 'jinja2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"
