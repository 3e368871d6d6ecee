"""Properties about state: one machine makes tokenizers and calls their methods, in any order.

It compares each answer with the oracle's. If they differ, a new tokenizer, made in the same way, is asked the same. If
that answer is incorrect too, no earlier step is at fault, and the mismatch depends on another failure. Otherwise it
breaks a property of its conformance class, so one run has a finding for each class. A method that does not end is not
called again, so that it costs few time limits and does not count in other classes.

Letters, tables and special tokens differ from those in the probes of capabilities.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from hypothesis import strategies as st

from bpe_conformance.fixtures import PATTERNS, Model, gpt2_files, read_model
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Pipeline, Split, Step

from ..answer import Acceptable, Accepted, Answer, Bytes, Changed, Ids, Refusal, Text, Unchanged, fingerprint
from ..implementation.implementation import Implementation, constructor_arguments
from ..implementation.output import scratch_folder
from ..implementation.proxy import CallFailed, TimedOut, TokenizerProxy, answered
from ..operations import Batch, Decode, DecodeBytes, Detokenize, EncodeWithOffsets, OnlyLoad, Stream, Train
from ..operations.encode import Construct, Encode, EncodeAllowed
from ..operations.operation import Operation, Question
from ..outcome import Dependence, Expectation, Mismatch
from . import strategies
from .asking import (
    CALLERS_SPECIALS,
    Instance,
    ask,
    correct_answer,
    failing,
    fault_of,
    is_correct,
    is_lost,
    load,
    of_each_method,
    train,
    trained,
    undisturbed,
)
from .engine import Effort, Fixed, Found, Property, Search, SharedRun, Verdicts

T = TypeVar("T")
Asking: TypeAlias = Callable[[TokenizerProxy], Answer]

# Inputs

SPECIAL = "<|s|>"
SPACED = "<| k l |>"


def _table(*merges: str, **more: Any) -> dict[str, Any]:
    return {"merges": [pair.split("+") for pair in merges], **more}


_MERGES = ("k+l", "l+m", "kl+m", " +kl", "K+L", "3+4", "m+n", "k+k", "k+\n")
_OTHERS = ("l+m", "k+l", "k+lm", "m+n", "k+k", " +k", "4+5", "L+M")


def _special(*tokens: str) -> dict[str, Any]:
    return _table(*_OTHERS, special_tokens=[*tokens], extra=[[300 + at, token] for at, token in enumerate(tokens)])


TABLES: Mapping[str, Mapping[str, Any]] = {
    "plain": _table(*_MERGES),
    "other": _table(*_OTHERS, merge_ids=[257, 256, *range(258, 264)]),
    "special": _table(*_MERGES, special_tokens=[SPECIAL], extra=[[300, SPECIAL]]),
    "renumbered": _table(*_MERGES, special_tokens=["xx", SPECIAL], extra=[[300, SPECIAL], [301, "xx"]]),
    "unlisted": _table(*_MERGES, extra=[[300, SPECIAL], [301, "xx"]]),
    "reversed": _table(*_MERGES, byte_ids="reversed"),
    "bar": _special("xx|yy"),
    "apart": _special("xx", "yy"),
    "joined": _special("xxyy"),
}
PIPELINES = {
    "composed": Pipeline(("NFC",), (AddedToken(SPECIAL),), (ByteLevel(),)),
    "spaced": Pipeline((), (AddedToken("xx", True),), (ByteLevel(True),)),
}
_ADDED = AddedToken(SPECIAL)
_BYTE_LEVEL: tuple[Step, ...] = (ByteLevel(),)
ALIKE_PIPELINES: Mapping[str, Pipeline] = {
    "unchanged": Pipeline((), (_ADDED,), _BYTE_LEVEL),
    "decomposed": Pipeline(("NFD",), (_ADDED,), _BYTE_LEVEL),
    "stripping": Pipeline(("NFC",), (replace(_ADDED, rstrip=True),), _BYTE_LEVEL),
    "single word": Pipeline(("NFC",), (replace(_ADDED, single_word=True),), _BYTE_LEVEL),
    "not spaced": Pipeline((), (AddedToken("xx", True),), _BYTE_LEVEL),
    "isolated": Pipeline((), (_ADDED,), (Split("l"), *_BYTE_LEVEL)),
    "removed": Pipeline((), (_ADDED,), (Split("l", "Removed"), *_BYTE_LEVEL)),
    "inverted": Pipeline((), (_ADDED,), (Split("l", "Removed", True), *_BYTE_LEVEL)),
    "any character": Pipeline((), (_ADDED,), (Split("k.", "Removed"), *_BYTE_LEVEL)),
    "a point": Pipeline((), (_ADDED,), (Split(r"k\.", "Removed"), *_BYTE_LEVEL)),
    "whole": Pipeline((), (_ADDED,), _BYTE_LEVEL, lookup="whole"),
}
"""Pipelines that an incomplete key confuses with one another or with those above."""
_SPECIALS = ([SPACED], ["pq", "qp"], ["PQ", "QP"], ["pq qp"], ["pq,qp"], ["pq;qp"], ["pq\nqp"], ["pq\0qp"])
UNSAVED: Mapping[str, Mapping[str, Any]] = {
    "in another order": _table("l+m", "k+l", *_MERGES[2:], merge_ids=[257, 256, *range(258, 265)]),
    "klm from k": _table("k+l", "l+m", "k+lm"),
    "klm from kl": _table("k+l", "l+m", "kl+m"),
    **{ascii(some): _special(*some) for some in _SPECIALS},
}
"""Tables that an incomplete key confuses. They are not saved: the spelling of special tokens in files is open."""
COLLIDING = (
    *(("plumless", "buckeroo"), ("costarring", "liquid"), ("declinate", "macallums"), ("Aa", "BB")),
    *(("hetairas", "mentioner"), ("aavjr", "abrul"), ("aamvm", "aeraa"), ("urmfetsu", "rmanpzqf")),
    ("azpcsgid", "odkzfrif"),
)
"""Words with the same 32-bit hash: CRC-32, FNV-1a and -1, Java, djb2, MurmurHash3, one-at-a-time, sdbm, xxHash."""
_ALIKE = (
    "klm klmn xy\u00e9 ",
    "KLM klmn xy\u00e9 ",
    "klm  klmn xy\u00e9 ",
    " klm klmn xy\u00e9",
    "klm klmn xye\u0301 ",
)
FAMILIES: tuple[tuple[str, ...], ...] = (
    ("klm", "KLM", "Klm", "mlk", "klm ", " klm", "kl", "lm", "k?", "k\ufffd"),
    (*_ALIKE, "klmn klm xy\u00e9 ", "klm, klmn xy\u00e9 ", "klm klmn xye ", "klm klmn xy\u00e9\n"),
    tuple(one * 12 for one in _ALIKE),
    tuple("klmn" * 6 + end for end in ("kl", "lk", "mn", "nk")),
    tuple(start + " klmn" * 30 for start in ("kl", "lk", "mn")) + tuple("klmn " * 30 + end for end in ("kl", "lk")),
    (
        *(f"kl{SPECIAL}klm", f"{SPECIAL}{SPECIAL}kl", f"klm xx|yyy {SPECIAL} kl", f"klm<|klm{SPECIAL}"),
        *("klm xx|yyy", f"kl{SPACED}klm"),
    ),
    ("", " ", "\n\n", " \n \n", "\ufeff", "\ufeffklm", "    ", "k"),
    ("it's IT'S 345345 klm\n\n klm", "345 3453 45", "klm's klm'S\r\n\r\nklm", "klm\n\nklm.klm"),
    tuple(map("\n".join, zip(*COLLIDING, strict=True))),
)
"""Texts that a cache confuses if its key is incomplete."""
CORPORA = (
    "klmn klmn klkl mnmn<|s|>klmn mnkl nknk",
    "knkn lknm<|s|>nmlk mnmn nmlk lklk nmlk nmlk",
    "klmn klmn klkl mnmn<|s|>klmn mnkl nkn",
    "it's 345345 KLM\n\n klm it's 345 345 KLM",
)
TRAININGS = tuple(
    Train(text, size, special, pattern)
    for text in CORPORA
    for size, special, pattern in ((266, (), "gpt2"), (262, (), "gpt2"), (264, (SPECIAL,), "gpt2"), (264, (), "cl100k"))
)
EVERY_MERGE = f"klm klmn mnkl kk KLM lmk 345 k\n{SPECIAL}xx|yyy xxyyy{SPACED}"
"""A text that needs each merge and special token of the tables."""
EVERY_TABLE = f"pq qp PQ QP pq,qp;pq;qp pq\nqp pq\0qp {EVERY_MERGE}"
"""A text that differs for all tables, those that are not saved included."""
TAILS = (b"", b"\xf0\x9f", b"\xa6\x8a", b"\xe2\x82", b"\xc3", b"\xef\xbb\xbf", b"k", b"\xff", b"\n")
"""Bytes that are decoded after a text, some of them parts of characters."""
_BAD, _TWO, _WITH_SPECIAL = "klm\ud800 k", ("klm k", "lm "), f"kl {SPECIAL}m"


REFUSED: tuple[tuple[str, str, Callable[[TokenizerProxy, list[int], str], object]], ...] = (
    ("encode", "a lone surrogate", lambda proxy, ids, special: proxy.encode(_BAD)),
    ("encode", "a lone surrogate after special tokens", lambda proxy, ids, special: proxy.encode(f"kl{special}{_BAD}")),
    ("decode", "an unknown id", lambda proxy, ids, special: proxy.decode([*ids, 10**9])),
    ("decode_bytes", "an unknown id", lambda proxy, ids, special: proxy.decode_bytes([*ids, 10**9])),
    ("encode_batch", "a lone surrogate", lambda proxy, ids, special: proxy.encode_batch(["klm", _BAD])),
    ("encode_iterable", "a lone surrogate", lambda proxy, ids, special: proxy.stream(iter(["klm", special, _BAD]))),
    ("encode_iterable", "an iterator that raises an error", lambda proxy, *_: proxy.stream(failing(_TWO, OSError()))),
)
"""Calls that an implementation may refuse."""


_DISALLOWING: Sequence[tuple[Any, Any]] = (((), (SPECIAL,)), ((), "all"))
_ALLOWING: Sequence[tuple[Any, Any]] = (((), ()), ((SPECIAL,), ()), ((SPECIAL,), "all"), ("all", ()))
"""Values of `allowed_special` and `disallowed_special`."""


def _shown_choice(allowed: object, disallowed: object) -> str:
    return f"allowed_special={allowed!r} and disallowed_special={disallowed!r}"


def _encode_chosen(
    text: str, allowed: Sequence[str], disallowed: Sequence[str], proxy: TokenizerProxy, *_: Any
) -> object:
    return proxy.encode_allowed(text, allowed, disallowed)


def _save_over_directories(proxy: TokenizerProxy, *_: object) -> None:
    with scratch_folder() as folder:
        for name in ("vocab.json", "merges.txt"):
            (folder / name / "a").mkdir(parents=True)
        proxy.save(folder)


def _save_nowhere(proxy: TokenizerProxy, *_: object) -> None:
    with scratch_folder() as folder:
        proxy.save(folder / "none" / "none")


ALSO_REFUSED: tuple[tuple[str, str, Callable[[TokenizerProxy, list[int], str], object]], ...] = (
    ("decode_iterable", "an unknown id", lambda proxy, ids, special: proxy.detokenize([*ids, 10**9])),
    ("encode_with_offsets", "a lone surrogate", lambda proxy, ids, special: proxy.encode_with_offsets(_BAD)),
    (
        "encode_with_offsets",
        "a lone surrogate after special tokens",
        lambda proxy, ids, special: proxy.encode_with_offsets(f"kl{special}{_BAD}"),
    ),
    *(
        ("allowed_special", f"{what}, {_shown_choice(*choice)}", partial(_encode_chosen, text, *choice))
        for what, text, choices in (
            ("a disallowed token", _WITH_SPECIAL, _DISALLOWING),
            ("a lone surrogate", f"{_WITH_SPECIAL}{_BAD}", (*_DISALLOWING, *_ALLOWING)),
        )
        for choice in choices
    ),
    ("save", "files that are directories", _save_over_directories),
    ("save", "a directory that does not exist", _save_nowhere),
)
"""More of them, for `law-after-error-ways` alone: the machine would draw each too seldom."""


@dataclass(frozen=True)
class Origin:
    """How a tokenizer is made: from a model, whose table has a unique name."""

    name: str
    model: Model
    made: str = "built"  # or "trained", "loaded", or "saved", which means saved and then loaded
    training: Train | None = None

    def make(self, implementation: Implementation) -> TokenizerProxy:
        if self.made == "built":
            return implementation.build(self.model)
        made = None if self.training is None else train(implementation, self.training)[1]
        if self.made == "trained":
            assert made is not None
            return made
        with scratch_folder() as folder:
            if self.made == "loaded":
                gpt2_files.write(self.model, folder)
            else:
                (made or implementation.build(self.model)).save(folder)
            return load(implementation, folder, self.model.fresh()[2])


def origins(implementation: Implementation, in_files: bool = True) -> list[Origin]:
    """Return the ways to build tokenizers; `in_files`: without the tables that cannot be written to files."""
    special, ranked = "special" in implementation.capabilities, implementation.conventions["lookup"] == "bytes"
    tables = TABLES if in_files else {**TABLES, **UNSAVED}
    models = {name: read_model(table) for name, table in tables.items()}
    of_patterns = models["special" if special else "plain"]
    supported = [name for name in PATTERNS if f"pattern:{name}" in implementation.capabilities]
    models |= {name: replace(of_patterns, pattern=name) for name in supported}
    return [
        Origin(name, model)
        for name, model in models.items()
        if (special or not model.special_tokens) and (model.ranks_by_bytes or not ranked)
    ]


def origins_of_pipelines(pipelines: Mapping[str, Pipeline] = PIPELINES) -> list[Origin]:
    plain = {**TABLES["plain"], "extra": [[300, " lmk"]]}  # no merges build it, so it is one token by `whole` only
    return [Origin(name, read_model({**plain, "pipeline": steps.write()})) for name, steps in pipelines.items()]


# Who is at fault

MOST_PROCESSES = 3
SLOW_START = 3.0
"""In seconds. An implementation that takes longer to start is started only once."""
SHARED = "after other tokenizers of this process were used; in a new process the answer is correct"


class Undisturbed:
    """Knows the correct answers, and whether the implementation gives them if it gets no other call."""

    def __init__(self, implementation: Implementation) -> None:
        self._implementation = implementation
        self._correct: dict[tuple[str, Operation], Acceptable] = {}
        self._answered: dict[tuple[bool, str, str, Operation], bool] = {}
        self._processes = MOST_PROCESSES if implementation.spawn is not None else 0

    def correct(self, origin: Origin, question: Question[Any]) -> Acceptable:
        key = origin.name, question.operation
        if key not in self._correct:
            self._correct[key] = correct_answer(question, self._implementation.conventions)
        return self._correct[key]

    def answers(self, origin: Origin, question: Question[Any], in_new_process: bool = False) -> bool:
        """Return whether a new tokenizer, made in the same way, gives the correct answer.

        State that tokenizers share can change the answer even of a new one. The first one of a new process shows that.
        """
        key = in_new_process, origin.made, origin.name, question.operation
        if key not in self._answered and (self._processes or not in_new_process):
            self._processes -= in_new_process
            is_right = self._in_new_process if in_new_process else partial(self._is_right, self._implementation)
            self._answered[key] = is_right(origin, question)
        return self._answered.get(key, False)

    def answers_if_built(self, origin: Origin, question: Question[Any]) -> bool:
        """Return whether a tokenizer with the same table gives the correct answer if the constructor makes it now."""
        built = replace(origin, made="built", training=None)
        has_tokenizers = bool({"encode", "decode"} & self._implementation.capabilities)
        return has_tokenizers and self._is_right(self._implementation, built, question)

    def _is_right(self, implementation: Implementation, origin: Origin, question: Question[Any]) -> bool:
        instance = Instance(implementation, partial(origin.make, implementation))
        with implementation.time_limit(math.inf, is_diagnosis=True):
            answer = ask(implementation, question) if question.is_training else instance.ask(question)
        return is_correct(implementation, question, answer, self.correct(origin, question))

    def _in_new_process(self, origin: Origin, question: Question[Any]) -> bool:
        started = time.monotonic()
        try:
            with self._implementation.in_new_process() as other:
                return self._is_right(other, origin, question)
        except (CallFailed, TimedOut):
            return False
        finally:
            if time.monotonic() - started > SLOW_START:
                self._processes = 0


@dataclass(frozen=True)
class Stage:
    """A part of the run of the machine, which may take the steps of these names.

    Its name is the property that is broken if `encode` is incorrect in this stage, but in no earlier one. It is
    possible with all capabilities of one of the sets in `needs`. The last stage has tokenizers with pipelines only, and
    runs if all others have found nothing.
    """

    name: str
    steps: Set[str]
    examples: int
    needs: Sequence[Set[str]] = ({"encode"}, {"decode"})


MADE = {  # how a tokenizer is made -> the step in the list of calls
    "built": "built from the table {}",
    "trained": "the result of {}",
    "loaded": "loaded from files of the table {}",
    "saved": "loaded from the directory",
}
ASKING = {"encode", "encode_allowed", "decode", "batch", "stream", "open_stream", "read_on", "use_result"}
OF_PIPELINES = "law-pipeline-history"
MAKING = {"build", "load", "save", "train"}
STAGES = (
    Stage("law-history", ASKING, 14),
    Stage("law-instances", ASKING | MAKING | {"encode_with_each"}, 40, [set()]),
    Stage("law-after-error", {"encode", "encode_allowed", "decode", "batch", "stream", "refuse"}, 8),
    Stage("law-lists", {"encode", "use_result"}, 16, [{"encode", "shared memory"}]),
    Stage("law-unaliased", {"encode", "clear_arguments"}, 8, [{"encode", "shared memory"}]),
    Stage("law-detok-history", {"decode", "detokenize", "locate"}, 8, [{"decode_iterable"}, {"encode_with_offsets"}]),
    Stage(OF_PIPELINES, ASKING | {"build", "detokenize", "locate", "refuse"}, 16, [{"from_tokenizer_json"}]),
)
MOST_SHRINKS = 150


class EndOfExample(Exception):
    pass


class Lifecycle:
    """Runs the machine, and assigns each incorrect answer to a property."""

    def __init__(self, implementation: Implementation, effort: Effort, stages: Sequence[Stage] = STAGES) -> None:
        self.implementation = implementation
        self.origins = origins(implementation)
        self.undisturbed = Undisturbed(implementation)
        self.lost = set[str]()  # methods that gave no answer in time, or ended the process; not called again
        self._effort, self._stages = effort, stages
        self._found: dict[str, Found] = {}
        self._dependent: dict[str, Found] = {}
        self._search: Search
        self._of_encoder = ""

    def run(self) -> dict[str, Found]:
        until = time.monotonic() + (self._effort.deadline or 0)
        for number, stage in enumerate(self._stages):
            if not any(needs <= self.implementation.capabilities for needs in stage.needs):
                continue
            if stage.name == OF_PIPELINES:
                if self._found or self._dependent:
                    break
                self.origins = origins_of_pipelines()
            effort, self._of_encoder = self._effort, stage.name
            if effort.deadline is not None:
                share = (until - time.monotonic()) / (len(self._stages) - number)
                effort = replace(effort, deadline=max(0.001, share))
            self._search = Search(stage.name, self.implementation, effort, several=True)
            self._search.most_shrinks = MOST_SHRINKS
            self._search.run(EXAMPLES, partial(Machine.take_steps, self, stage), stage.examples)
            self._found |= {str(name): found for name, found in self._search.by_kind.items()}
        return self._dependent | self._found

    def judge(
        self,
        origin: Origin,
        question: Question[Any],
        answer: Answer,
        encoder: TokenizerProxy | None = None,
        state: str = "",
        has_refused: bool = True,
    ) -> None:
        """Compare an answer with the correct one, and end the example if a property is broken.

        The earlier steps are the context of the question. A batch or a stream depends on `encode` of the same
        tokenizer, the `encoder`, if the ids are equal. `state` is the property that is broken if an earlier step is at
        fault and a tokenizer that is built now is correct; "" means the one for the operation. `has_refused` says
        whether a call of this example raised an error.
        """
        right, known = self.undisturbed.correct(origin, question), self.undisturbed
        if is_correct(self.implementation, question, answer, right):
            return
        clause = "TRAIN-STABLE-1" if question.is_training else ""
        mismatch = Mismatch(question, Expectation((right,)), answer, clause_id=clause)
        history = _history(question)
        if state == "law-unaliased" and known.answers(origin, question):
            self.fail(state, mismatch)
        elif encoder is not None and (text := self._same_in_encode(origin, question, answer, encoder)) is not None:
            self._depends(history, mismatch, Dependence("encode", text))
        elif known.answers(origin, question):
            if not state or not known.answers_if_built(origin, question):
                state = self._of_encoder if history == "law-history" else history
            self.fail("law-history" if state == "law-after-error" and not has_refused else state, mismatch)
        elif is_lost(answer):
            self._depends(history, mismatch, Dependence("undisturbed"))
        elif known.answers(origin, question, in_new_process=True):
            self._search.most_shrinks = 0  # what the tokenizers share outlives an example
            shared = replace(mismatch, asked=replace(question, context=SHARED))
            self.fail("law-instances" if history == "law-history" else history, shared)
        elif origin.made != "built" and question.model and known.answers_if_built(origin, question):
            self.fail("law-trained-ways" if origin.made == "trained" else "law-loaded-ways", mismatch)
        elif history not in self._dependent and not isinstance(question.operation, EncodeAllowed):  # a SHOULD
            fault = Dependence("undisturbed")
            if question.model is not None:
                fault = fault_of(self.implementation, question, right, ask(self.implementation, question))
            self._depends(history, mismatch, fault)

    def _same_in_encode(
        self, origin: Origin, question: Question[Any], answer: Answer, encoder: TokenizerProxy
    ) -> str | None:
        """Return a text of a batch or stream if `encode` gives each of its texts the same ids; otherwise None.

        If there is no answer, return a text to which `encode` of a new tokenizer gives none either.
        """
        texts = question.operation.texts()
        if "encode" in self.lost:
            return texts[-1] if is_lost(answer) else None
        if is_lost(answer):
            new = Instance(self.implementation, partial(origin.make, self.implementation))
            return next((text for text in texts if is_lost(new.ask(Question(Encode(text), question.model)))), None)
        alone = [answered(partial(Encode(text).of, encoder)) for text in texts]
        right = [self.undisturbed.correct(origin, Question(Encode(text), question.model)) for text in texts]
        return texts[-1] if question.operation.repeats(answer, alone) and alone != right else None

    def _depends(self, name: str, mismatch: Mismatch, dependence: Dependence) -> None:
        self._dependent.setdefault(name, Found(replace(mismatch, depends_on=dependence)))

    def fail(self, name: str, mismatch: Mismatch) -> None:
        """Report a failure, which ends the example, unless an earlier one is of the same conformance class."""
        broken = {CLASS_OF[str(other)] for other in (*self._found, *self._search.by_kind)}
        if CLASS_OF[name] not in broken and self._search.judge(mismatch, name):
            raise EndOfExample


# The machine

MOST_STEPS, WIDTH = 20, 8
"""An example is bytes: the first one chooses the first tokenizer; after that, each `WIDTH` bytes are one step."""
EXAMPLES = st.one_of(
    st.binary(min_size=WIDTH, max_size=MOST_STEPS * WIDTH),
    *[st.binary(min_size=MOST_STEPS * WIDTH // 2, max_size=MOST_STEPS * WIDTH)] * 3,  # seldom only a few steps
)
MOST_TOKENIZERS = 5
LONGEST_CONTEXT = 12
LONGEST_VALUE = 40


class Choice:
    def __init__(self, data: bytes) -> None:
        self.step, self.tokenizer, self.number, family, first, stride, count, flags = data
        known, few = FAMILIES[family % len(FAMILIES)], FAMILIES[0] + FAMILIES[5]
        self.texts = [known[(first + stride * at) % len(known)] for at in range(1 + count % 8)]
        self.with_specials, self.short = FAMILIES[5][first % len(FAMILIES[5])], few[first % len(few)]
        self.simplest = [("", "k", SPECIAL)[first % 3]] if flags & 12 == 12 else self.texts
        self.flag, self.other_flag = bool(flags & 1), bool(flags & 2)


@dataclass
class _Tokenizer:
    name: str  # in the list of steps
    origin: Origin
    proxy: TokenizerProxy
    arguments: Sequence[Any] = ()  # of the constructor
    is_cleared: bool = False  # whether the machine has emptied them
    grown: list[int] = field(default_factory=list)  # ids that `decode` gets, with more in each call


@dataclass
class _Stream:
    origin: Origin
    question: Question[Any]
    ids: Iterator[Any]
    read: list[int] = field(default_factory=list)


_STEPS: dict[str, tuple[Callable[[Machine, Choice], None], Set[str], int, int]] = {}
"""The steps, what capabilities they need, and how many tokenizers and open streams."""


def _step(*needs: str, tokenizers: int = 1, streams: int = 0) -> Callable[[Any], Any]:
    def decorate(take: Callable[[Machine, Choice], None]) -> Any:
        _STEPS[take.__name__] = take, {*needs}, tokenizers, streams
        return take

    return decorate


class Machine:
    """Makes tokenizers and calls their methods. The stage says what steps it may take."""

    _directory: Path

    def __init__(self, lifecycle: Lifecycle, stage: Stage) -> None:
        self.lifecycle, self.stage = lifecycle, stage
        self.implementation = lifecycle.implementation
        of_steps = [maker for step, maker in (("load", "from_files"), ("train", "train")) if step in stage.steps]
        makers = ["from_tokenizer_json"] if stage.name == OF_PIPELINES else of_steps
        self.capabilities = self.implementation.made_by(makers).capabilities
        self.tokenizers: list[_Tokenizer] = []
        self.streams: list[_Stream] = []
        self._made = 0
        self._has_refused = self._is_lost = False
        self._returned: list[tuple[list[Any], list[Any], Question[Any]]] = []
        self._taken: list[str] = []

    @classmethod
    def take_steps(cls, lifecycle: Lifecycle, stage: Stage, data: bytes) -> None:
        """Take the steps that the bytes choose. If one is not possible, take the next one that is."""
        machine, steps = cls(lifecycle, stage), [step for name, step in _STEPS.items() if name in stage.steps]
        with scratch_folder() as machine._directory, contextlib.suppress(EndOfExample):
            machine._build_first(data[0] % (len(TABLES) if data[0] & 3 else 256))  # seldom by another pattern
            for start in range(0, len(data) - WIDTH + 1, WIDTH):
                choice = Choice(data[start : start + WIDTH])
                at = choice.step % len(steps)
                for take, needs, tokenizers, streams in steps[at:] + steps[:at]:
                    enough = len(machine.tokenizers) >= tokenizers and len(machine.streams) >= streams
                    if enough and needs <= machine.capabilities:
                        take(machine, choice)
                        break

    def _chosen(self, choice: Choice) -> _Tokenizer:
        return self.tokenizers[choice.tokenizer % len(self.tokenizers)]

    def _attempt(self, step: str, method: str, call: Callable[[], T]) -> tuple[Answer, T | None]:
        """Make a call, add it to the steps, and return its answer (`Accepted` for anything else) and what it returns.

        After a call without an answer, the example ends, because the tokenizers may be unusable.
        """
        if self._is_lost:
            raise EndOfExample
        self._taken.append(step)
        try:
            returned = call()
            return returned if isinstance(returned, Answer) else Accepted(), returned
        except (CallFailed, TimedOut) as failed:
            self._has_refused = True
            if is_lost(failed.answer):
                self._is_lost = True
                self.lifecycle.lost.add(method)
            return failed.answer, None

    def _asked(self, question: Question[Any]) -> Question[Any]:
        """Return the question of the last step. Its context is the steps before, equal ones in a row as one."""
        runs = [(step, len([*equal])) for step, equal in itertools.groupby(self._taken[:-1])]
        before = [step if count == 1 else f"{step} {count} times" for step, count in runs]
        shown = ["..."] * (len(before) > LONGEST_CONTEXT) + before[-LONGEST_CONTEXT:]
        return replace(question, context="; ".join(shown))

    def _judge(self, origin: Origin, question: Question[Any], answer: Answer, **options: Any) -> None:
        self.lifecycle.judge(origin, self._asked(question), answer, has_refused=self._has_refused, **options)

    def _compare_lists(self, question: Question[Any], what: str, now: Any, before: Any) -> None:
        """Report a list of the caller that no longer has its earlier value."""
        if now != before:
            history = _history(question)
            mismatch = Mismatch(self._asked(question), Expectation((Unchanged(),)), Changed((what,)))
            self.lifecycle.fail("law-lists" if history == "law-history" else history, mismatch)

    # Making tokenizers

    def _add(
        self, origin: Origin, make: Callable[[], TokenizerProxy], arguments: Sequence[Any] = (), state: str = ""
    ) -> bool:
        self._made += 1
        name, method = f"t{self._made}", "construct" if origin.made == "built" else "from_files"
        question = Question(Construct() if origin.made == "built" else OnlyLoad(), origin.model)
        step = f"{name}: {MADE[origin.made].format(origin.name)}"
        answer, proxy = self._attempt(step, method, make)
        self._judge(origin, question, answer, state=state)
        if proxy is not None:
            self.tokenizers = [*self.tokenizers, _Tokenizer(name, origin, proxy, arguments)][-MOST_TOKENIZERS:]
        return proxy is not None

    def _build_first(self, number: int) -> None:
        if {"encode", "decode"} & self.capabilities:
            for at in range(len(self.lifecycle.origins)):
                if not self.tokenizers:
                    self._build(number + at)

    def _build(self, number: int) -> None:
        origin = self.lifecycle.origins[number % len(self.lifecycle.origins)]
        if "construct" in self.lifecycle.lost:
            return
        if "shared memory" not in self.capabilities or origin.model.pattern != "gpt2" or origin.model.pipeline:
            self._add(origin, partial(self.implementation.build, origin.model))
            return
        arguments, before = (constructor_arguments(origin.model, {})[0] for _ in range(2))
        self._add(origin, partial(self.implementation.build_from, arguments), arguments)
        for name, now, then in zip(("vocab", "merges", "special_tokens"), arguments, before, strict=False):
            self._compare_lists(Question(Construct(), origin.model), f"the caller's {name} changed", now, then)

    @_step("encode")
    def encode(self, choice: Choice) -> None:
        for text in choice.texts:
            self._ask(self._chosen(choice), Encode(text))

    @_step()
    def build(self, choice: Choice) -> None:
        self._build(choice.number)

    @_step("from_files", "encode", tokenizers=0)
    def load(self, choice: Choice) -> None:
        """Load a tokenizer from files with the same names as all others."""
        in_files = [origin for origin in self.lifecycle.origins if origin.model.pattern == "gpt2"]
        origin = replace(in_files[choice.number % len(in_files)], made="loaded")
        special, before = origin.model.fresh()[2], origin.model.fresh()[2]
        files = gpt2_files.write(origin.model, self._directory)
        if "from_files" in self.lifecycle.lost:
            return
        if self._add(origin, lambda: self.implementation.from_files(*files, special)):
            self._compare_lists(Question(OnlyLoad(), origin.model), CALLERS_SPECIALS, special, before)
            self._ask_loaded(choice.short)

    @_step("save", "from_files", "encode")
    def save(self, choice: Choice) -> None:
        self._save(self._chosen(choice), choice.short)

    def _save(self, tokenizer: _Tokenizer, text: str) -> None:
        """Save a tokenizer into the directory that others were saved into, and load it."""
        state = "law-unaliased" if tokenizer.is_cleared else ""
        origin = replace(tokenizer.origin, made="saved")
        if origin.model.pattern != "gpt2" or "from_files" in self.lifecycle.lost or not self._has(tokenizer, "save"):
            return
        if origin.model.special_tokens and "special" not in self.capabilities:
            return  # it was trained with special tokens that `from_files` can refuse
        step = f"{tokenizer.name}.save(directory)"  # to refuse a directory that is in use is correct
        if self._attempt(step, "save", lambda: tokenizer.proxy.save(self._directory))[0] == Accepted():
            again = partial(load, self.implementation, self._directory, origin.model.fresh()[2])
            if self._add(origin, again, state=state):
                self._ask_loaded(text, state or "law-files-again")

    def _ask_loaded(self, text: str, state: str = "law-files-again") -> None:
        """Call `encode` of the newest tokenizer, which was loaded. Drop the tokenizer if the answer is incorrect."""
        tokenizer = self.tokenizers[-1]
        if not all(self._ask(tokenizer, Encode(asked), state=state) for asked in (text, EVERY_MERGE)):
            self.tokenizers.remove(tokenizer)

    @_step("train", tokenizers=0)
    def train(self, choice: Choice) -> None:
        """Train, and keep the tokenizer if the table is correct."""
        number = choice.number % len(TRAININGS)
        asked = TRAININGS[number]
        needed = {"train-special"} if asked.special else {f"train-pattern:{asked.pattern}"} - {"train-pattern:gpt2"}
        if not needed <= self.capabilities or "train" in self.lifecycle.lost:
            return
        arguments = asked.text, asked.vocab_size, asked.special, asked.pattern
        answer, trained = self._attempt(_shown(asked), "train", lambda: self.implementation.train(*arguments))
        table = answer if trained is None else trained.table
        origin = Origin(f"training {number}", Model({}, ()), "trained", asked)
        if self.implementation.conventions["tie_break"] == "unspecified":
            origin = replace(origin, name=f"{origin.name} {fingerprint(table)}")
        else:
            self._judge(origin, Question(asked), table)
            if not self._is_correct(origin, Question(asked), table):
                return
        if trained is None or trained.proxy is None or "encode" in self.lifecycle.lost:
            return
        model = Model(trained.vocab, tuple(trained.merges), asked.special or None, asked.pattern)
        if not model.well_formed:  # other tests show it
            return
        answer, proxy = self._attempt("its tokenizer", "encode", trained.tokenizer)
        origin = replace(origin, model=model)
        if answer != Accepted():
            self._judge(origin, Question(Encode(""), model), answer)
        elif proxy is not None:
            self._add(origin, lambda: proxy)

    # Asking them

    def _has(self, tokenizer: _Tokenizer, method: str) -> bool:
        """Return whether to call a method. A trained tokenizer can have fewer methods than a built one."""
        if method not in self.capabilities or method in self.lifecycle.lost or tokenizer.origin.training is None:
            return method in self.capabilities - self.lifecycle.lost
        try:
            return tokenizer.proxy.has(method)
        except (CallFailed, TimedOut):
            return False

    def _ask(self, tokenizer: _Tokenizer, operation: Operation, call: Asking | None = None, state: str = "") -> bool:
        """Ask a question, and return whether the answer is correct. Lists that were returned earlier must not change.

        `call` makes the call if it is not the usual one; `state` is as for `judge`. If the tokenizer lacks the method,
        the answer counts as correct.
        """
        method = operation.call().method
        if not self._has(tokenizer, method):
            return True
        question = Question(operation, tokenizer.origin.model)
        make = call or operation.of
        answer, _ = self._attempt(f"{tokenizer.name}.{_shown(operation)}", method, lambda: make(tokenizer.proxy))
        encoder = tokenizer.proxy if operation.repeats_encode and "encode" in self.capabilities else None
        state = "law-unaliased" if tokenizer.is_cleared else state
        self._judge(tokenizer.origin, question, answer, encoder=encoder, state=state)
        for returned, before, earlier in self._returned:
            self._compare_lists(earlier, "a list that it had returned changed", returned, before)
        return self._is_correct(tokenizer.origin, question, answer)

    def _is_correct(self, origin: Origin, question: Question[Any], answer: Answer) -> bool:
        right = self.lifecycle.undisturbed.correct(origin, question)
        return is_correct(self.implementation, question, answer, right)

    @_step("encode", tokenizers=2)
    def encode_with_each(self, choice: Choice) -> None:
        for tokenizer in self.tokenizers:
            self._ask(tokenizer, Encode(choice.texts[0]))

    @_step("encode", "special", "allowed_special")
    def encode_allowed(self, choice: Choice) -> None:
        model = self._chosen(choice).origin.model
        special = () if model.pipeline else model.special_tokens or ()  # of a pipeline, all are found
        allowed = [token for at, token in enumerate(special) if choice.number >> at & 1]
        disallowed = "all" if choice.flag and "refuse" in self.stage.steps else ()
        self._ask(self._chosen(choice), EncodeAllowed(choice.with_specials, tuple(allowed), disallowed))

    @_step("decode")
    def decode(self, choice: Choice) -> None:
        """Decode the ids of texts and of parts of characters, in separate lists or in one growing list."""
        tokenizer, kind = self._chosen(choice), DecodeBytes if choice.flag else Decode
        grown = tokenizer.grown

        def decode_grown(proxy: TokenizerProxy) -> Answer:
            return Bytes(proxy.decode_bytes_itself(grown)) if choice.flag else Text(proxy.decode_itself(grown))

        tails = [choice.number + at for at in range(choice.number % 5)]
        for text, tail in itertools.zip_longest(choice.texts, tails):
            ids = self._ids(tokenizer, text or "", tail)
            if not choice.other_flag or "shared memory" not in self.capabilities:
                self._ask(tokenizer, kind(tuple(ids)))
                continue
            grown += ids
            asked = kind(tuple(grown))
            self._ask(tokenizer, asked, decode_grown)
            self._compare_lists(
                Question(asked, tokenizer.origin.model), "the caller's ids changed", grown, [*asked.ids]
            )

    def _ids(self, tokenizer: _Tokenizer, text: str, tail: int | None) -> list[int]:
        """Return the ids of a text, and those of the bytes of a tail."""
        model = tokenizer.origin.model
        right = self.lifecycle.undisturbed.correct(tokenizer.origin, Question(Encode(text), model))
        assert isinstance(right, Ids)
        return [*right.ids, *(model.ids[bytes([byte])] for byte in TAILS[(tail or 0) % len(TAILS)])]

    @_step("decode_iterable")
    def detokenize(self, choice: Choice) -> None:
        tokenizer = self._chosen(choice)
        for number, text in enumerate(choice.texts, choice.number):
            self._ask(tokenizer, Detokenize(tuple(self._ids(tokenizer, text, number))))

    @_step("encode_with_offsets")
    def locate(self, choice: Choice) -> None:
        for text in choice.texts:
            self._ask(self._chosen(choice), EncodeWithOffsets(text))

    @_step("encode_batch")
    def batch(self, choice: Choice) -> None:
        self._ask(self._chosen(choice), Batch(tuple(choice.texts)))

    @_step("encode_iterable")
    def stream(self, choice: Choice) -> None:
        """Encode the chunks of a list, which must not change. Each text is two chunks."""
        chunks = [half for text in choice.texts for half in (text[: len(text) // 2], text[len(text) // 2 :])]
        tokenizer, callers, asked = self._chosen(choice), list(chunks), Stream(tuple(chunks))
        self._ask(tokenizer, asked, lambda proxy: Ids(tuple(proxy.stream(callers))))
        self._compare_lists(Question(asked, tokenizer.origin.model), "the caller's chunks changed", callers, chunks)

    @_step("encode_iterable", "shared memory")
    def open_stream(self, choice: Choice) -> None:
        tokenizer, texts = self._chosen(choice), choice.texts
        if not self._has(tokenizer, "encode_iterable"):
            return
        step = f"s{len(self.streams)} = {tokenizer.name}.encode_iterable({_brief(texts)})"
        _, ids = self._attempt(step, "encode_iterable", lambda: tokenizer.proxy.open("encode_iterable", iter(texts)))
        if ids is not None:
            self.streams.append(_Stream(tokenizer.origin, Question(Stream(tuple(texts)), tokenizer.origin.model), ids))
            self._read_on(len(self.streams) - 1, choice.number % 10)

    @_step(tokenizers=0, streams=1)
    def read_on(self, choice: Choice) -> None:
        self._read_on(choice.tokenizer % len(self.streams), 1 + choice.number % 99)

    def _read_on(self, number: int, count: int) -> None:
        stream, method = self.streams[number], "encode_iterable"
        wanted = len(stream.read) + count

        def call() -> Answer:
            stream.read += itertools.islice(stream.ids, count)
            return Ids(tuple(stream.read))

        answer, _ = self._attempt(f"{count} ids of s{number}", method, call)
        right = self.lifecycle.undisturbed.correct(stream.origin, stream.question)
        if isinstance(answer, Ids) and isinstance(right, Ids) and len(answer.ids) == wanted:
            answer = Ids((*answer.ids, *right.ids[wanted:]))  # it goes on
        self._judge(stream.origin, stream.question, answer)

    # Errors, and lists that the caller changes

    @_step()
    def refuse(self, choice: Choice) -> None:
        """Make each call that may raise an error, ignore its answer, and then call all methods."""
        tokenizer, texts = self._chosen(choice), choice.texts[:1]
        if "train" in self.capabilities - self.lifecycle.lost:
            refused = partial(self.implementation.train, CORPORA[0], 100, (SPECIAL,))
            self._attempt("train(..., vocab_size=100)", "train", refused)
            self._ask_again(tokenizer, texts)
        ids, special = self._ids(tokenizer, "kl", 1), "".join(tokenizer.origin.model.special_tokens or ())
        for method, what, call in REFUSED:
            if self._has(tokenizer, method):
                asked = partial(call, tokenizer.proxy, ids, special)
                self._attempt(f"{tokenizer.name}.{method} of {what}", method, asked)
                self._ask_again(tokenizer, texts)

    @_step("encode", "shared memory")
    def use_result(self, choice: Choice) -> None:
        """Change a list that was returned, if that is the subject of the stage; otherwise, keep it."""
        change, tokenizer, batch = self.stage.name == "law-lists", self._chosen(choice), choice.flag
        texts = choice.simplest if change else choice.texts
        texts = [*texts, texts[0]] if batch else texts
        callers = list(texts)
        method, argument = ("encode_batch", callers) if batch else ("encode", texts[0])
        if not self._has(tokenizer, method):
            return
        question = Question[Any](Batch(tuple(texts)) if batch else Encode(texts[0]), tokenizer.origin.model)
        returned: list[Any] = []
        self._ask_again(tokenizer, texts[:2] * 2)

        def call() -> None:
            for passed in [callers, list[str]()] if batch else [argument]:
                result = tokenizer.proxy.returned(method, passed)
                returned.extend([*(result if batch and type(result) is list else ()), result])

        step = f"{'change' if change else 'keep'} the result of {tokenizer.name}.{method}({_brief(argument)})"
        self._attempt(step, method, call)
        self._compare_lists(question, "the caller's texts changed", callers, texts)
        rows = [id(result) for result in returned[:-1] if type(result) is list]
        if len({*rows}) < len(rows) and not self._encodes_to_one_list(tokenizer, texts[0]):
            self._compare_lists(question, "two rows are the same list", len(rows), len({*rows}))
        for result in returned:
            if type(result) is list and change:
                result.reverse()
                result.append(0)
            elif type(result) is list:
                self._returned.append((result, list(result), question))
        if batch:
            self._ask(tokenizer, Batch(()))
        self._ask_again(tokenizer, texts[:2])

    def _encodes_to_one_list(self, tokenizer: _Tokenizer, text: str) -> bool:
        try:
            first, second = (tokenizer.proxy.returned("encode", text) for _ in range(2))
        except (CallFailed, TimedOut):
            return False
        return first is second

    def _ask_again(self, tokenizer: _Tokenizer, texts: list[str]) -> None:
        for text in texts:
            self._ask(tokenizer, Encode(text))
        self._ask(tokenizer, Batch(tuple(texts)))
        self._ask(tokenizer, Decode(tuple(self._ids(tokenizer, texts[0], 0))))

    @_step("encode", "shared memory")
    def clear_arguments(self, choice: Choice) -> None:
        tokenizer = self._chosen(choice)
        if not tokenizer.arguments:
            return
        texts = [f"kl{''.join(tokenizer.origin.model.special_tokens or ())}k", choice.texts[0]]
        self._ask_again(tokenizer, texts * 2)
        self._taken.append(f"clear the vocab, merges and special tokens passed to {tokenizer.name}")
        for argument in tokenizer.arguments:
            argument.clear()
        tokenizer.arguments, tokenizer.is_cleared = (), True
        self._ask_again(tokenizer, texts)
        self._ask(tokenizer, Stream(tuple(texts[0])))
        if {"save", "from_files"} <= self.capabilities:
            self._save(tokenizer, texts[0])


def _history(question: Question[Any]) -> str:
    """Return the property that is broken if an earlier call changes the answer to a question."""
    is_plain = question.model is None or question.model.pipeline is None
    return HISTORIES[question.operation.conformance_class] if is_plain else OF_PIPELINES


def _shown(operation: Operation) -> str:
    """Return a call in ASCII for the list of steps."""
    call = operation.call()
    shown = [_brief(value) for value in call.arguments or ()]
    shown += [f"{name}={_brief(value)}" for name, value in call.keywords.items()]
    return f"{call.method}({', '.join(shown)})"


def _brief(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 4]} ..."


# The properties


@Fixed("law-tables", "LAW-WAYS-1", ("encode",))
def encode_together(implementation: Implementation) -> Verdicts:
    """Several tokenizers exist at the same time, and each encodes by its own table and special tokens."""
    yield _together(implementation, Encode(EVERY_TABLE))


@Fixed("law-tables-stream", "LAW-WAYS-1", ("encode_iterable",))
def stream_together(implementation: Implementation) -> Verdicts:
    """Several tokenizers exist at the same time, and each encodes a stream by its own table and special tokens."""
    cut = len(EVERY_TABLE) - len(SPACED) // 2
    yield _together(implementation, Stream((EVERY_TABLE[:cut], EVERY_TABLE[cut:])))


@Fixed("law-tables-pipeline", "LAW-WAYS-1", ("from_tokenizer_json", "encode"))
def load_together(implementation: Implementation) -> Verdicts:
    """Several tokenizers with pipelines exist at the same time, and each encodes by its own steps and added tokens."""
    yield _together(implementation, Encode(f"{EVERY_MERGE} \u00e9e\u0301k{SPECIAL} kl"), pipelines=True)


def _together(implementation: Implementation, operation: Operation, pipelines: bool = False) -> Mismatch | None:
    """Make tokenizers of all tables, in two orders; ask each at once and at the end; return the first mismatch.

    In the last two rounds, they are asked something else first, because a cache of their own would keep the answer.
    """
    of_pipelines = origins_of_pipelines({**PIPELINES, **ALIKE_PIPELINES}) if pipelines else []
    every = of_pipelines or origins(implementation, in_files=False)
    if of_pipelines and implementation.conventions["lookup"] != "bytes":  # the class may keep a setting of a file
        every = [*of_pipelines, Origin("plain", replace(of_pipelines[0].model, pipeline=None))]
    alone = Undisturbed(implementation)
    dependent: Mismatch | None = None
    other: Operation = Stream(("9",)) if isinstance(operation, Stream) else Encode("9")
    for ways, first_asked in ((every, operation), (every[::-1], operation), (every, other), (every[::-1], other)):
        tokenizers = [(way, Instance(implementation, way.model)) for way in ways]
        in_turn = [(first_asked, *one) for one in tokenizers] + [(operation, *one) for one in tokenizers]
        for posed, way, tokenizer in in_turn:
            asked = Question(posed, way.model, "while tokenizers with other tables exist")
            answer, right = tokenizer.ask(asked), alone.correct(way, asked)
            if is_correct(implementation, asked, answer, right):
                continue
            found = Mismatch(asked, Expectation((right,)), answer)
            if alone.answers(way, asked) or (not is_lost(answer) and alone.answers(way, asked, in_new_process=True)):
                return found
            if is_lost(answer):
                return replace(found, depends_on=fault_of(implementation, asked, right, answer))
            built = ask(implementation, Question(Construct(), way.model))
            if not isinstance(built, Refusal):  # which tables it refuses is the subject of other tests
                fault = fault_of(implementation, asked, right, ask(implementation, asked))
                dependent = dependent or replace(found, depends_on=fault)
    return dependent


@Fixed("law-after-error-ways", "ERROR-AFTER-1", ("encode",))
def after_each_error(implementation: Implementation) -> Verdicts:
    """After a call of any method that raised an error, or of the constructor, each method is correct."""
    has_special = "special" in implementation.capabilities
    model, plain = (read_model(TABLES[name]) for name in ("special" if has_special else "plain", "plain"))
    asked = [replace(one, model=model) for one in of_each_method(implementation, plain, "m ")]
    with_special = [*of_each_method(implementation, model, "m ")] if has_special else []
    for method, what, call in (*REFUSED, *ALSO_REFUSED):

        def fail(proxy: TokenizerProxy, call: Callable[..., object] = call) -> Answer:
            call(proxy, [107, 0xC3], SPECIAL if has_special else "")
            return Accepted()

        if method not in implementation.capabilities:
            continue
        instance, context = Instance(implementation, model), f"after a call of {method} with {what}"
        for question in asked:
            if is_lost(instance.call(fail)):
                return  # for other tests to find
            yield undisturbed(implementation, replace(question, context=context), instance.ask(question))
        for question in with_special:
            if is_lost(answer := instance.ask(question)):
                return
            found = undisturbed(implementation, replace(question, context=context), answer)
            if found is not None and found.depends_on is None:  # so that it hides no failure of plain text
                yield found
    unknown = replace(plain, merges=((b"l", b"m"), *plain.merges, (b"k", b"absent")))
    without_bytes = Model({97: b"a"}, (), (SPECIAL,))
    for what, table in (("a table without bytes", without_bytes), ("a merge of an unknown token", unknown)):
        if has_special or not table.special_tokens:  # a class may keep what a constructor that failed has found
            ask(implementation, Question(Construct(), table))
            later = Question(Encode(f"klm {_WITH_SPECIAL}"), plain, f"after the constructor got {what}")
            yield undisturbed(implementation, later, ask(implementation, later))


# Any call after any other one, and while a stream is read

PAIR_SPECIALS = (SPECIAL, "xx")
PAIR_TEXTS = (
    f"kl{SPECIAL}klm k\u00e9xx l it'll 12345678 \U0001f98aK'LL",
    f"l{SPECIAL} kl\u00e9m mxx it's 123456 12345 K'S\U0001f98a",
)
"""Special tokens, words that need merges, digits that each pattern splits, and characters of several bytes."""
_PAIRS = ("kl", "lm", "it", "12", "34", "k\u00e9", " 1", "56", "'L")
PAIR_CHUNKS = (
    "k",
    "lm",
    f"kl{SPECIAL[:2]}",
    f"{SPECIAL[2:]}k",
    "",
    "lm it'",
    "s 1234",
    "5678 x",
    "x\u00e9 ",
    " ",
    "kl<|",
)
"""The ends of chunks are within words, special tokens and white space."""
HALF = b"\xf0\x9f"  # of a character, which ends the ids
OF_OTHERS = Train("klkl mnmn 1234 5678 1234", 260)
Calling: TypeAlias = Callable[[TokenizerProxy], object]
Making: TypeAlias = Callable[[], tuple[Model, Instance] | None]


def _pair_model(
    implementation: Implementation,
    pattern: str = "gpt2",
    special: Sequence[str] = PAIR_SPECIALS,
    reverse: bool = False,  # whether the merges are in the opposite order
) -> Model:
    merges = [(pair.encode()[:1], pair.encode()[1:2]) for pair in _PAIRS[:: -1 if reverse else 1]]
    listed = special if "special" in implementation.capabilities else None
    return strategies.with_ids(merges, special=listed, pattern=pattern)


def _operations(implementation: Implementation, model: Model, text: str) -> Iterator[Operation]:
    """Yield each method, with each of its options, for a text or for its ids."""
    right = correct_answer(Question(Encode(text), model), implementation.conventions)
    assert isinstance(right, Ids)
    ids = (*right.ids, *(model.ids[bytes([byte])] for byte in HALF))
    half, special = len(text) // 2, tuple(model.special_tokens or ())
    every: tuple[Operation, ...] = (Encode(text), EncodeAllowed(text, (), ()), EncodeAllowed(text, special[:1], ()))
    every += (Batch((text, "kl")), Stream((text[:half], text[half:])), EncodeWithOffsets(text))
    every += (Decode(ids), DecodeBytes(ids), Detokenize(ids))
    for operation in every:
        is_chosen = isinstance(operation, EncodeAllowed)
        if {*operation.needs} <= implementation.capabilities and (special or not is_chosen):
            yield operation


def _calls(implementation: Implementation, model: Model, text: str) -> Iterator[tuple[str, Calling]]:
    """Yield each call of a tokenizer, with what it is: those above, streams that stay open, errors, and `save`."""
    for operation in _operations(implementation, model, text):
        yield _shown(operation), operation.of
    ids = [model.ids[b"k"], model.ids[HALF[:1]]]
    opened = list[object]()

    def begin(method: str, items: Sequence[Any], proxy: TokenizerProxy) -> None:
        opened.append(parts := proxy.open(method, iter(items)))
        next(parts, None)

    def save(proxy: TokenizerProxy) -> None:
        with scratch_folder() as folder:
            proxy.save(folder)

    more: tuple[tuple[str, str, Calling], ...] = (
        ("encode_iterable", "a stream that stays open", partial(begin, "encode_iterable", [*text])),
        ("decode_iterable", "a stream of ids that stays open", partial(begin, "decode_iterable", ids)),
        ("save", "save", save),
        ("allowed_special", "encode of a disallowed token", EncodeAllowed(text, (), "all").of),
        ("encode", "encode of a lone surrogate", Encode(f"{text}{_BAD}").of),
        ("decode", "decode of an unknown id", Decode((*ids, 10**9)).of),
    )
    yield from ((what, call) for need, what, call in more if need in implementation.capabilities)


def _others(implementation: Implementation) -> Iterator[tuple[str, Calling]]:
    """Yield calls that make another tokenizer, with another pattern and other special tokens if these are possible."""
    model = _pair_model(implementation, strategies.patterns(implementation)[:2][-1], ("pq",))
    special = ("pq",) if "train-special" in implementation.capabilities else ()
    names = strategies.patterns(implementation, "train-pattern")
    asked = replace(OF_OTHERS, special=special, pattern=names[:2][-1])
    in_files = replace(model, pattern="gpt2")
    made: tuple[tuple[str, str, Callable[[], TokenizerProxy | None]], ...] = (
        ("", "built", partial(implementation.build, model)),
        ("from_files", "loaded", partial(Origin("", in_files, "loaded").make, implementation)),
        ("train", "trained", lambda: train(implementation, asked)[1]),
    )
    kept = list[object]()

    def call(make: Callable[[], TokenizerProxy | None], _: TokenizerProxy) -> None:
        kept.append(other := make())
        if other is not None and "encode" in implementation.capabilities:
            other.encode(PAIR_TEXTS[0])

    for need, how, make in made:
        if not need or need in implementation.capabilities:
            yield f"another tokenizer was {how}", partial(call, make)


def _of_another(implementation: Implementation, text: str) -> Iterator[tuple[str, Calling]]:
    """Yield each call of another tokenizer, whose table gives other ids to the same tokens."""
    model = _pair_model(implementation, reverse=True)
    made = cache(partial(implementation.build, model))

    def of_made(call: Calling, _: TokenizerProxy) -> None:
        call(made())

    for what, call in _calls(implementation, model, text):
        yield f"{what}, of another tokenizer", partial(of_made, call)


def _ignoring(call: Calling, proxy: TokenizerProxy) -> Answer:
    with contextlib.suppress(CallFailed):
        call(proxy)
    return Accepted()


def _built(implementation: Implementation, model: Model) -> tuple[Model, Instance]:
    return model, Instance(implementation, model)


def _after_each(implementation: Implementation, make: Making, methods: Set[str], how: str = "built") -> Verdicts:
    """Make each call of a new tokenizer, and then each call of these methods, about the same text or another one.

    If it is not built, what a built one has in common with it is not its fault.
    """
    if (made := make()) is None:
        return
    model, dependent = made[0], list[Mismatch]()
    asked = [Question(one, model) for one in _operations(implementation, model, PAIR_TEXTS[0])]
    asked = [question for question in asked if not methods or question.operation.call().method in methods]
    rights = {question: correct_answer(question, implementation.conventions) for question in asked}
    calls: list[tuple[str, Calling]] = [("", lambda _: None), *_others(implementation)]
    calls += [one for text in PAIR_TEXTS for one in _calls(implementation, model, text)]

    def is_right_after(call: Calling, question: Question[Any], again: tuple[Model, Instance] | None) -> bool:
        if again is None or is_lost(again[1].call(partial(_ignoring, call))):
            return False
        return is_correct(implementation, question, again[1].ask(question), rights[question])

    for number, (what, call) in enumerate(calls):
        if (made := make()) is None or made[0] != model:
            return
        at = number % len(asked)  # so that the call does not always come before the same question first
        for question in [one for one in asked[at:] + asked[:at] if one in rights]:
            if is_lost(made[1].call(partial(_ignoring, call))):
                return  # for other tests to find: to wait for more calls would take too long
            answer = made[1].ask(question)
            if is_lost(answer) and (how != "built" or not what):
                return
            if is_correct(implementation, question, answer, rights[question]):
                continue
            is_pair = not is_right_after(call, question, make())
            context = [f"after {what}"] * bool(what) + ["among other calls"] * (not is_pair)
            is_own = how == "built" or (is_pair and is_right_after(call, question, _built(implementation, model)))
            later = replace(question, context=", ".join([how] * (how != "built") + context))
            found = undisturbed(implementation, later, answer) if is_own else None
            if found is not None and found.depends_on is None:
                yield found
            elif found is not None and not isinstance(question.operation, EncodeAllowed):  # a SHOULD
                dependent.append(found)
            del rights[question]
    yield from dependent


def _order(id_: str, clause_id: str, method: str) -> Property:
    def test(implementation: Implementation) -> Verdicts:
        for pattern in strategies.patterns(implementation)[:2]:
            model = _pair_model(implementation, pattern)
            make = partial(_built, implementation, model)
            yield from _after_each(implementation, make, {method, "decode_bytes"} if method == "decode" else {method})

    asks = f"`{method}` is correct after each call of each method, and after another tokenizer was made."
    return replace(Fixed(id_, clause_id, (method,))(test), asks=asks)


@Fixed("law-order-loaded", "LAW-WAYS-1", ("from_files", "encode"))
def loaded_in_any_order(implementation: Implementation) -> Verdicts:
    """Each method of a loaded tokenizer is correct after each call of each method, and after another one was made."""
    model = _pair_model(implementation)
    with scratch_folder() as folder:
        files = gpt2_files.write(model, folder)

        def make() -> tuple[Model, Instance]:
            return model, Instance(implementation, lambda: implementation.from_files(*files, model.fresh()[2]))

        yield from _after_each(implementation, make, set(), "loaded from files")


@Fixed("law-order-trained", "LAW-WAYS-1", ("train", "encode"))
def trained_in_any_order(implementation: Implementation) -> Verdicts:
    """Each method of a trained tokenizer is correct after each call of each method, and after another one was made."""
    special = PAIR_SPECIALS if "train-special" in implementation.capabilities else ()
    given = Train(" ".join(PAIR_TEXTS), 268, special)
    yield from _after_each(implementation, lambda: trained(implementation, given), set(), "trained")


def _while_read(
    implementation: Implementation, question: Question[Any], items: Sequence[Any], answer: Callable[[Any], Answer]
) -> Verdicts:
    """Read a stream, and make each call inside its source, between two items, or between two parts that it yields."""
    method, model = question.operation.call().method, question.table

    def read(is_inside: bool, call: Calling, proxy: TokenizerProxy) -> Answer:

        def source() -> Iterator[Any]:
            for item in items:
                yield item
                if is_inside:
                    _ignoring(call, proxy)

        parts = list[Any]()
        for part in proxy.open(method, source()):
            parts.append(part)
            if not is_inside:
                _ignoring(call, proxy)
        return answer(parts)

    calls = *_calls(implementation, model, PAIR_TEXTS[1]), *_of_another(implementation, PAIR_TEXTS[1])
    for is_inside, (what, call) in itertools.product((False, True), calls):
        got = Instance(implementation, model).call(partial(read, is_inside, call))
        if is_inside and isinstance(got, Refusal):
            continue  # it may refuse that
        if is_lost(got) and (is_inside or is_lost(Instance(implementation, model).call(partial(_ignoring, call)))):
            return  # the source cannot call it at all, or other tests find it
        where = "between two items that it reads" if is_inside else "between two parts that it yields"
        yield undisturbed(implementation, replace(question, context=f"with a call {where}: {what}"), got)


@Fixed("law-open-stream", "LAW-PURE-1", ("encode_iterable",))
def calls_while_encoding(implementation: Implementation) -> Verdicts:
    """A stream gives the same ids if any method is called between two chunks that it reads, or two ids."""
    question = Question(Stream(PAIR_CHUNKS), _pair_model(implementation))
    yield from _while_read(implementation, question, PAIR_CHUNKS, lambda parts: Ids(tuple(parts)))


@Fixed("law-open-detok", "DETOK-STATE-1", ("decode_iterable",))
def calls_while_detokenizing(implementation: Implementation) -> Verdicts:
    """A stream gives the same text if any method is called between two ids that it reads, or two parts of the text."""
    model = _pair_model(implementation)
    right = correct_answer(Question(Encode(PAIR_TEXTS[0]), model), implementation.conventions)
    assert isinstance(right, Ids)
    ids = (*right.ids, model.ids[b"k\xc3"], *(model.ids[bytes([byte])] for byte in b"\xa9" + HALF))
    yield from _while_read(implementation, Question(Detokenize(ids), model), ids, lambda parts: Text("".join(parts)))


RUN = SharedRun("law-history", lambda implementation, effort: Lifecycle(implementation, effort).run())
_SEARCHED = (
    ("law-history", "MERGE-STATE-1", "encode", "`encode` is correct after similar texts."),
    ("law-instances", "LAW-WAYS-1", "encode", "`encode` is correct while other tokenizers exist."),
    ("law-lists", "ERROR-STATE-1", "encode, shared memory", "`encode` is correct after returned lists change."),
    ("law-unaliased", "ERROR-STATE-2", "encode, shared memory", "`encode` is correct after the table changes."),
    ("law-after-error", "ERROR-AFTER-1", "encode", "`encode` is correct after calls that raised an error."),
    ("law-decode-history", "LAW-PURE-1", "decode", "`decode` is correct after other ids, also in one list."),
    ("law-stream-history", "LAW-PURE-1", "encode_iterable", "A stream is correct while other streams are open."),
    ("law-detok-history", "DETOK-STATE-1", "decode_iterable", "`decode_iterable` is correct after other ids."),
    ("law-offsets-history", "LAW-PURE-1", "encode_with_offsets", "`encode_with_offsets` is correct after other texts."),
    (OF_PIPELINES, "LAW-PURE-1", "from_tokenizer_json", "A tokenizer with a pipeline is correct."),
    ("law-batch-history", "LAW-PURE-1", "encode_batch", "`encode_batch` is correct after other batches."),
    ("law-train-history", "LAW-REPLAY-1", "train", "`train` is correct after other trainings."),
    ("law-trained-ways", "LAW-WAYS-1", "train", "Every method of a trained tokenizer is correct."),
    ("law-loaded-ways", "LAW-WAYS-1", "from_files, encode", "Every method of a loaded tokenizer is correct."),
    ("law-files-again", "LAW-SAVE-1", "from_files, encode", "A tokenizer saved over another one is correct."),
)
"""The properties that the machine can find to be broken: id, clause, what each needs, and what it tests."""
PROPERTIES: tuple[Property, ...] = (encode_together, stream_together, load_together, after_each_error)
PROPERTIES += tuple(
    _order(f"law-order-{name}", "DETOK-STATE-1" if name == "detok" else "LAW-PURE-1", method)
    for name, method in (
        *(("encode", "encode"), ("batch", "encode_batch"), ("stream", "encode_iterable")),
        *(("offsets", "encode_with_offsets"), ("decode", "decode"), ("detok", "decode_iterable")),
    )
)
PROPERTIES += (loaded_in_any_order, trained_in_any_order, calls_while_encoding, calls_while_detokenizing)
PROPERTIES += tuple(
    RUN.property(id_, clause, tuple(needs.split(", ")), f"{asks} The calls come in any order.")
    for id_, clause, needs, asks in _SEARCHED
)
CLASS_OF = {one.id: one.conformance_class for one in PROPERTIES}
HISTORIES = {class_: id_ for id_, class_ in CLASS_OF.items() if id_.endswith("history") or id_ == "law-files-again"}
"""Conformance class → the property that is broken if an earlier call changes an answer."""
