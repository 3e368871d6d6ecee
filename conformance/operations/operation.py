"""What an operation of a tokenizer is: the arguments, the call, the correct answer, and how to judge another one.

Each operation is one frozen dataclass whose fields are the arguments of the call, as tuples and exact builtins. Golden
cases, properties, packs and known bugs all ask by such a value, so it is hashable and equal to any other with the same
arguments.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from bpe_conformance.fixtures import Model, read_text
from bpe_conformance.fixtures.characters import has_surrogate
from bpe_conformance.fixtures.conventions import DEFAULTS
from bpe_conformance.fixtures.expression import pattern_name

from ..answer import Acceptable, Answer, AnyError, AtMost, Divergence, Measure, Refusal, Table
from ..implementation.implementation import Implementation
from .expected import Expected, Stored
from .setting import Conventions, Setting

LOOKUP_KEYS = ("pair", "bytes", "whole")
Changes: TypeAlias = tuple[tuple[str, str], ...]  # (convention, value) pairs that differ from the declared ones


@dataclass(frozen=True)
class Directory:
    """Stands for the path of a directory among the arguments of a call."""


@dataclass(frozen=True)
class Call:
    """A call as values, which `terminal.show` prints."""

    method: str  # of the adapter protocol; "" is the constructor
    arguments: tuple[Any, ...] | None = ()  # by position; None if there is nothing to show
    keywords: Mapping[str, Any] = field(default_factory=dict)
    on: Literal["class", "tokenizer", "loaded"] = "tokenizer"
    noun: str = "texts"  # what a list has: ids, or the name of its texts
    is_lazy: bool = False  # whether the method returns an iterator that has to be read

    @property
    def uses_files(self) -> bool:
        return self.on == "loaded" or Directory() in (self.arguments or ())


@dataclass(frozen=True)
class Narrowed:
    """One of the calls of an operation that makes many: one whose answer is incorrect."""

    operation: Operation
    correct: tuple[Acceptable, ...]
    answer: Answer


class Operation(ABC):
    """One call of an implementation. A subclass is a frozen dataclass, and its fields are the arguments."""

    name: ClassVar[str]  # in YAML and in exports
    needs: ClassVar[tuple[str, ...]]  # capabilities without which it cannot be asked; the first is what it tests
    conformance_class: ClassVar[str]  # the class whose verdict it counts in
    is_recommended: ClassVar[bool] = (
        False  # whether a correct answer is only a SHOULD; that other calls do not change it is a MUST
    )
    repeats_encode: ClassVar[bool] = False  # whether `encode` of each of its texts gives the same ids
    view: ClassVar[str] = "--lookup"  # the option of `explain` that takes a key of the expected values
    breaks: ClassVar[Mapping[str, str]] = {}  # clause of a test → the one that a wrong answer breaks
    prefix: ClassVar[str] = ""  # of the capabilities `special` and `pattern:NAME` that it needs: "" or `train-`
    spelled: ClassVar[Mapping[str, str]] = {}  # field → its name in YAML if that differs, or "" if it is not there
    measures: ClassVar[bool] = False  # whether it has to know the model, too, which tells what an id spells

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Operation:
        """Return the operation with the arguments that YAML spells under `input`, by the names of the fields."""
        fields_of = {name: field for field, name in cls.spelled.items()}
        return cls(**{fields_of.get(name, name): _read(value) for name, value in raw.items()})

    def write(self) -> dict[str, Any]:
        """Return the arguments as YAML spells them; `read` is the inverse."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in self._named()}

    def _named(self) -> Iterator[tuple[str, Any]]:
        """Yield each argument with its name in YAML."""
        for part in fields(self):  # type: ignore[arg-type]
            if name := self.spelled.get(part.name, part.name):
                yield name, getattr(self, part.name)

    def expecting(self, expected: Expected) -> Operation:
        """Return the operation that measures what a golden case expects: itself, unless that is not the answer."""
        return self

    # The call

    @contextmanager
    def receiver(self, implementation: Implementation, model: Model | None) -> Iterator[Any]:
        """Yield what the call is made on: a new tokenizer, unless a subclass needs another object."""
        assert model is not None
        tokenizer = implementation.build(model)
        yield (tokenizer, model) if self.measures else tokenizer

    @abstractmethod
    def of(self, receiver: Any) -> Answer:
        """Make the call, and return the answer."""

    @abstractmethod
    def call(self) -> Call:
        """Return the call as values."""

    def parts(self) -> Sequence[Operation]:
        """Return the calls that a case asks one by one, each of a new tokenizer."""
        return (self,)

    def after(
        self, answer: Answer, correct: Sequence[Acceptable], setting: Setting
    ) -> tuple[Operation, Acceptable] | None:
        """Return a second question to the same tokenizer after a correct answer, and what is correct, or None."""
        return None

    def golden(self) -> Operation | None:
        """Return the operation of a golden case that asks this question, if a property can write one."""
        return self

    def repeats(self, answer: Answer, encoded: Sequence[Answer]) -> bool:
        """Return whether an answer has only what `encode` gives for each of its texts."""
        return [answer] == list(encoded)

    # The input

    def without_choice(self, model: Model, lookup: str) -> Model:
        """Return a model whose tokenizer encodes in the same way without a choice of special tokens."""
        return model

    def exported(self, model: Model | None) -> dict[str, Any]:
        return {name: plain(value) for name, value in self._named()}

    def arguments(self) -> Iterator[tuple[str, Any]]:
        """Yield (label, value) for each argument that has to be shown."""
        for name, value in self._named():
            yield name.removesuffix("_special").removesuffix("_tokens"), value

    def data(self, model: Model) -> bytes:
        """Return the bytes that a text is decoded from, or none."""
        return b""

    def texts(self) -> Sequence[str]:
        """Return the texts that a tokenizer splits."""
        return ()

    def special_tokens(self, model: Model | None) -> Sequence[str]:
        return model.special_tokens or () if model is not None else ()

    def without_special_tokens(self, model: Model | None) -> tuple[Operation, Model | None]:
        """Return the same question without special tokens."""
        assert model is not None
        return self, replace(model, special_tokens=None)

    def split_by(self, model: Model | None) -> str:
        return pattern_name(model.pattern) if model is not None else "gpt2"

    # The correct answer

    def key(self, conventions: Conventions) -> str:
        """Return the key of `Expected` that holds under these conventions."""
        return conventions["lookup"]

    def keys(self, model: Model | None) -> Sequence[str]:
        if model is None:
            return LOOKUP_KEYS[:1]
        return [key for key in LOOKUP_KEYS if model.ranks_by_bytes or key != "bytes"]

    def under(self, key: str) -> dict[str, str]:
        return {**DEFAULTS, "lookup": key}

    @abstractmethod
    def computed(self, setting: Setting) -> Stored:
        """Return the oracle's answer in the form that YAML stores; a ValueError if the oracle refuses the model."""

    def compute(self, model: Model | None, clause: str = "") -> Expected:
        """Return the oracle's answers under every key."""
        settings = {key: Setting(model, self.under(key), clause) for key in self.keys(model)}
        return Expected.merged({key: (self.computed(setting),) for key, setting in settings.items()})

    def correct(self, expected: Expected, setting: Setting) -> tuple[Acceptable, ...] | None:
        """Return what this run accepts, or None if nothing is stored for its conventions."""
        return expected.under(self.key(setting.conventions))

    def answer(self, setting: Setting) -> Acceptable:
        """Return what this run accepts, by the oracle; a ValueError if it refuses the model."""
        expected = Expected({"": (self.computed(setting),)})
        return (self.correct(expected, setting) or ())[0]

    def accepts(self, correct: Acceptable, answer: Answer, setting: Setting, receiver: Any = None) -> bool:
        if isinstance(correct, AtMost):
            return isinstance(answer, Measure) and answer.amount <= correct.amount
        return isinstance(answer, Refusal) if isinstance(correct, AnyError) else answer == correct

    def narrowed(self, correct: Sequence[Acceptable], answer: Answer) -> Sequence[Narrowed]:
        """Return the calls to show instead of this one, each with an incorrect answer: by default, itself."""
        return [Narrowed(self, tuple(correct), answer)]

    def divergence(self, correct: Sequence[Acceptable], answer: Answer, setting: Setting) -> Divergence | None:
        """Return where an incorrect answer differs, or None if the values do not show it."""
        return None

    def comparable(self, answer: Answer, where: Divergence | None) -> Table | None:
        """Return the answer in a form that is equal for equal faults under different conventions, if there is one."""
        return None

    def other_conventions(self, conventions: Conventions) -> Iterator[Changes]:
        """Yield the changes of the declared conventions under which an incorrect answer may be correct."""
        yield from ((("lookup", key),) for key in LOOKUP_KEYS if key != conventions["lookup"])


def _read(value: Any) -> Any:
    """Return an argument as YAML spells it: a list is a tuple, and a mapping spells a text."""
    if isinstance(value, list):
        return tuple(map(_read, value))
    return read_text(value) if isinstance(value, dict) else value


def plain(value: Any) -> Any:
    """Return an argument as JSON; a text with a lone surrogate becomes code points.

    >>> plain(("a", chr(0xD800)))
    ['a', {'code_points': [55296]}]
    """
    if isinstance(value, tuple):
        return list(map(plain, value))
    is_broken = isinstance(value, str) and has_surrogate(value)
    return {"code_points": list(map(ord, value))} if is_broken else value


O_co = TypeVar("O_co", bound=Operation, covariant=True)


@dataclass(frozen=True)
class Question(Generic[O_co]):
    """What the implementation is asked: enough to ask again."""

    operation: O_co
    model: Model | None = None  # what the tokenizer is built from; None for training
    context: str = ""  # the situation of the call if it matters, for example "after 1,000 other texts"; else ""
    about: str = ""  # what a long input is made of; it does not change the answer

    @property
    def table(self) -> Model:
        """The model; None only in training."""
        assert self.model is not None
        return self.model

    @property
    def is_training(self) -> bool:
        """Whether it trains: everything else is asked of a tokenizer that is built from a model."""
        return self.model is None

    @property
    def pattern(self) -> str:
        return self.operation.split_by(self.model)


@dataclass(frozen=True)
class ManyCalls(Operation):
    """Stands for all calls of a test that breaks a rule about all of them."""

    title: str
    name, needs, conformance_class = "property", (), ""

    def of(self, receiver: Any) -> Answer:
        raise NotImplementedError

    def computed(self, setting: Setting) -> Acceptable:
        raise ValueError("there is no single answer")

    def golden(self) -> None:
        return None

    def call(self) -> Call:
        return Call(self.title, None)
