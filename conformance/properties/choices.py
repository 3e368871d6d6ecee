"""The choices of which an example consists: drawn at random, repeated, saved, and shrunk.

Hypothesis turns choices into examples, but it does not draw them: its own backend also draws constants that it reads in
the modules of the user, so the examples would depend on these modules, and it would write a directory `.hypothesis`.
The examples are the same in every process and with every version of Hypothesis.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from random import Random
from typing import Any, ClassVar

from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, PrimitiveProvider

BACKEND = "bpe-conformance"
RARE = 0.001  # a choice that is True more rarely ends a run of steps
Choices = list[Any]
Span = tuple[int, int]


class Source:
    """Gives the choices of one example after another, at random or as planned.

    `made` has the choices of this example, and `spans` the parts of them that belong together, such as one step of a
    state machine, as (start, end).
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.planned: Choices | None = None  # the choices of the next example; None means random ones
        self.begin()
        self.is_begun = False  # whether an example has begun

    def begin(self) -> None:
        self.made, self.spans, self._open = Choices(), list[Span](), list[int]()
        self._plan, self.is_begun = self.planned, True

    def choose(self, drawn: Any, is_possible: Callable[[Any], bool], simplest: Any) -> Any:
        """Return the planned choice or, without a plan, the drawn one; the simplest one if the plan does not fit."""
        value, at = drawn, len(self.made)
        if self._plan is not None:
            fits = at < len(self._plan) and type(self._plan[at]) is type(drawn) and is_possible(self._plan[at])
            value = self._plan[at] if fits else simplest
        self.made.append(value)
        return value

    def open_span(self) -> None:
        self._open.append(len(self.made))

    def close_span(self) -> None:
        if self._open:  # Hypothesis opens one before the example begins
            self.spans.append((self._open.pop(), len(self.made)))


class Backend(PrimitiveProvider):
    """Makes Hypothesis take its choices from `source`."""

    source: ClassVar[Source]

    def per_test_case_context_manager(self) -> contextlib.AbstractContextManager[None]:
        self.source.begin()
        return contextlib.nullcontext()

    def span_start(self, label: int, /) -> None:
        self.source.open_span()

    def span_end(self, discard: bool, /) -> None:
        self.source.close_span()

    def draw_boolean(self, p: float = 0.5) -> bool:
        return bool(self.source.choose(self.source.random.random() < p, lambda value: True, p < RARE))

    def draw_integer(self, min_value: int | None = None, max_value: int | None = None, **options: Any) -> int:
        least = (0 if max_value is None else min(0, max_value)) if min_value is None else min_value
        most, random = least + (1 << 64) if max_value is None else max_value, self.source.random
        bits = (most - least).bit_length()
        if bits > 8 and random.getrandbits(1):
            bits = random.randint(0, bits)
        drawn = least + random.randint(0, min(most - least, (1 << bits) - 1))
        return int(self.source.choose(drawn, lambda value: least <= value <= most, least))

    def draw_bytes(self, min_size: int = 0, max_size: int = 1 << 16) -> bytes:
        most, random = min(max_size, min_size + (1 << 16)), self.source.random
        usual = min(max(2 * min_size, min_size + 10), most)
        drawn = random.randbytes(random.randint(min_size, usual if random.random() < 0.9 else most))
        return bytes(self.source.choose(drawn, lambda value: min_size <= len(value) <= most, bytes(min_size)))

    def draw_float(self, **options: Any) -> float:
        raise NotImplementedError("no strategy draws floating-point numbers")

    def draw_string(self, *arguments: Any, **options: Any) -> str:
        raise NotImplementedError("strategies build texts from bytes")


AVAILABLE_PROVIDERS[BACKEND] = Backend  # type: ignore[assignment,unused-ignore]


def size(choices: Sequence[Any]) -> tuple[Any, ...]:
    """Return a key by which smaller examples come first."""
    return len(choices), [(len(one), one) if isinstance(one, bytes) else (one, b"") for one in choices]


class Shrinker:
    """Proposes smaller examples. Of those that fail, it keeps the smallest."""

    def __init__(self, made: Choices, spans: Sequence[Span]) -> None:
        self.smallest, self._spans = made, spans

    def accept(self, made: Choices, spans: Sequence[Span]) -> bool:
        """Return whether an example that fails is smaller, and keep it."""
        is_smaller = size(made) < size(self.smallest)
        if is_smaller:
            self.smallest, self._spans = made, spans
        return is_smaller

    def proposals(self) -> Iterator[Choices]:
        """Yield the choices of examples to try; those after one that fails are made from it."""
        before: Choices | None = None
        while before is not self.smallest:
            before, part, at = self.smallest, 0, 0
            while part < len(spans := sorted({*self._spans}, key=lambda span: (span[0] - span[1], -span[0]))):
                (start, end), whole = spans[part], self.smallest
                if 0 < end - start < len(whole):
                    yield whole[:start] + whole[end:]
                part += whole is self.smallest
            while at < len(self.smallest):
                yield from self._lower(at)
                at += 1

    def _lower(self, at: int) -> Iterator[Choices]:
        tried, before = set[Any](), Choices()
        while before is not self.smallest and at < len(self.smallest):
            before = self.smallest
            for value in _smaller(before[at]):
                if value not in tried and before is self.smallest:
                    tried.add(value)
                    yield [*before[:at], value, *before[at + 1 :]]


def _smaller(value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        yield from [False] * value
    elif isinstance(value, int):
        bits = [1 << bit for bit in reversed(range(value.bit_length())) if value >> bit & 1]
        # the last hexadecimal digit of the number of a table says how many merges it has, so it comes first
        last_digit = (value & ~15 | digit for digit in range(value & 15))
        yield from chain([0] * (value > 0), last_digit, (value ^ bit for bit in bits), [value - 1] * (value > 0))
    else:
        for length in (1 << step for step in reversed(range(len(value).bit_length()))):
            yield from (value[:start] + value[start + length :] for start in range(0, len(value), length))
        for at, byte in enumerate(value):
            for lower in dict.fromkeys((0, 1, byte & 15, byte & 63, byte >> 1, byte - 1)):
                if 0 <= lower < byte:
                    yield value[:at] + bytes([lower]) + value[at + 1 :]


def write(choices: Choices) -> bytes:
    return repr(choices).encode("ascii")


def read(data: bytes) -> Choices | None:
    """Return choices that were written, or None if the bytes are something else."""
    try:
        choices = ast.literal_eval(data.decode("ascii"))
    except (ValueError, SyntaxError):
        return None
    return choices if isinstance(choices, list) and {*map(type, choices)} <= {int, bool, bytes} else None
