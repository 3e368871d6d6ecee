"""State: tokenizers are built, trained and loaded, and called in any order in every method.

One state machine asks. Each answer is compared with the oracle's. Where it differs, a new tokenizer is asked the same
question alone: if its answer is wrong too, no earlier step is at fault, and the mismatch depends on another failure.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, wraps
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from hypothesis import seed as seeded
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from bpe_conformance.fixtures import PATTERNS, Model, gpt2_files, read_model
from bpe_conformance.fixtures.answers import iterate, rebuild_ids
from bpe_conformance.fixtures.spec import CLASS_OF_OP

from ..implementation.calls import CallFailed, TimedOut
from ..implementation.implementation import Implementation, constructor_arguments
from ..implementation.proxy import TokenizerProxy
from ..implementation.scratch import scratch_folder
from ..outcome import (
    Accepted,
    Answer,
    Bytes,
    Changed,
    Dependence,
    Expectation,
    Ids,
    Mismatch,
    Question,
    Rows,
    Table,
    Text,
    Unchanged,
    fingerprint,
)
from .asking import OPERATIONS, is_correct
from .engine import Effort, Found, Property, Search
from .undisturbed import Origin, Undisturbed, load, train

EXAMPLES, STEPS = 20, 20
MOST_SHRINKS = 150
MOST_TOKENIZERS = 5
LONGEST_CONTEXT = 12
SHARED = "after other tokenizers of this process were used; in a new process the answer is correct"
SPECIAL = "<|s|>"


# What is asked: letters, tables and special tokens other than those with which capabilities are probed


def _table(*merges: str, **more: Any) -> dict[str, Any]:
    return {"merges": [pair.split("+") for pair in merges], **more}


_MERGES = ("k+l", "l+m", "kl+m", " +kl", "K+L", "3+4", "m+n", "k+k", "k+\n")
_OTHERS = ("l+m", "k+l", "k+lm", "m+n", "k+k", " +k", "4+5", "L+M")
_TABLES: Mapping[str, Mapping[str, Any]] = {
    "plain": _table(*_MERGES),
    "other": _table(*_OTHERS, merge_ids=[257, 256, *range(258, 264)]),
    "special": _table(*_MERGES, special_tokens=[SPECIAL], extra=[[300, SPECIAL]]),
    "renumbered": _table(*_MERGES, special_tokens=["xx", SPECIAL], extra=[[300, SPECIAL], [301, "xx"]]),
    "unlisted": _table(*_MERGES, extra=[[300, SPECIAL], [301, "xx"]]),
    "reversed": _table(*_MERGES, byte_ids="reversed"),
    "bar": _table(*_OTHERS, special_tokens=["xx|yy"], extra=[[300, "xx|yy"]]),
    "apart": _table(*_OTHERS, special_tokens=["xx", "yy"], extra=[[300, "xx"], [301, "yy"]]),
}
_ALIKE = (
    "klm klmn xy\u00e9 ",
    "KLM klmn xy\u00e9 ",
    "klm  klmn xy\u00e9 ",
    " klm klmn xy\u00e9",
    "klm klmn xye\u0301 ",
)
_FAMILIES: tuple[tuple[str, ...], ...] = (
    ("klm", "KLM", "Klm", "mlk", "klm ", " klm", "kl", "lm", "k?", "k\ufffd"),
    (*_ALIKE, "klmn klm xy\u00e9 ", "klm, klmn xy\u00e9 ", "klm klmn xye ", "klm klmn xy\u00e9\n"),
    tuple(one * 12 for one in _ALIKE),
    tuple("klmn" * 6 + end for end in ("kl", "lk", "mn", "nk")),
    tuple(start + " klmn" * 30 for start in ("kl", "lk", "mn")) + tuple("klmn " * 30 + end for end in ("kl", "lk")),
    (f"kl{SPECIAL}klm", f"{SPECIAL}{SPECIAL}kl", f"klm xx|yy {SPECIAL} kl", f"klm<|klm{SPECIAL}", "klm xx|yy"),
    ("", " ", "\n\n", " \n \n", "\ufeff", "\ufeffklm", "    ", "k"),
    ("it's IT'S 345345 klm\n\n klm", "345 3453 45", "klm's klm'S\r\n\r\nklm", "klm\n\nklm.klm"),
    # pairs of words of one 32-bit hash: CRC-32, FNV-1a and -1, Java, djb2, MurmurHash3, one-at-a-time, sdbm, xxHash
    (
        "plumless\ncostarring\ndeclinate\nAa\nhetairas\naavjr\naamvm\nurmfetsu\nazpcsgid",
        "buckeroo\nliquid\nmacallums\nBB\nmentioner\nabrul\naeraa\nrmanpzqf\nodkzfrif",
    ),
)
"""Texts that a cache with a key that leaves something out takes for one another."""
_CORPORA = (
    "klmn klmn klkl mnmn<|s|>klmn mnkl nknk",
    "knkn lknm<|s|>nmlk mnmn nmlk lklk nmlk nmlk",
    "klmn klmn klkl mnmn<|s|>klmn mnkl nkn",
    "it's 345345 KLM\n\n klm it's 345 345 KLM",
)
_TRAININGS: tuple[Mapping[str, Any], ...] = tuple(
    {"text": text, "vocab_size": size, "special_tokens": special, "pattern": pattern}
    for text in _CORPORA
    for size, special, pattern in ((266, (), "gpt2"), (262, (), "gpt2"), (264, (SPECIAL,), "gpt2"), (264, (), "cl100k"))
)
_WITH_SPECIALS = _FAMILIES[5]
_TEXTS = st.sampled_from(_FAMILIES).flatmap(lambda family: st.lists(st.sampled_from(family), min_size=1, max_size=8))
_ONE_TEXT = st.sampled_from(_FAMILIES[0] + _WITH_SPECIALS)
_NUMBERS = st.integers(0, 63)
_TAILS = (b"", b"\xf0\x9f", b"\xa6\x8a", b"\xe2\x82", b"\xc3", b"\xef\xbb\xbf", b"k", b"\xff", b"\n")
"""Bytes that are decoded after a text: halves of characters among them."""
_BAD = "klm\ud800 k"


def _failing() -> Iterator[str]:
    yield from ("klm k", "lm ")
    raise ValueError("no more chunks")


_REFUSED: Mapping[str, tuple[str, str, Callable[[TokenizerProxy, list[int]], object]]] = {
    "encode": ("encode", "a lone surrogate", lambda one, ids: one.encode(_BAD)),
    "decode": ("decode", "an unknown id", lambda one, ids: one.decode([*ids, 10**9])),
    "decode_bytes": ("decode_bytes", "an unknown id", lambda one, ids: one.decode_bytes([*ids, 10**9])),
    "batch": ("encode_batch", "a lone surrogate", lambda one, ids: one.encode_batch(["klm", _BAD])),
    "stream": ("encode_iterable", "a lone surrogate", lambda one, ids: one.stream(iter(["klm", _BAD]))),
    "iterator": ("encode_iterable", "an iterator that raises an error", lambda one, ids: one.stream(_failing())),
}
_METHOD_OF = {"stream": "encode_iterable", "batch": "encode_batch", "encode_allowed": "encode"}
_CLASS_OF = {**CLASS_OF_OP, "decode_bytes": "decoder"}


def _origins(implementation: Implementation) -> list[Origin]:
    """Return how tokenizers can be built that the implementation takes."""
    special, ranked = "special" in implementation.capabilities, implementation.conventions["lookup"] == "bytes"
    models = {name: read_model(table) for name, table in _TABLES.items()}
    for name in PATTERNS:
        if f"pattern:{name}" in implementation.capabilities:
            models[name] = replace(models["special" if special else "plain"], pattern=name)
    return [
        Origin(name, one)
        for name, one in models.items()
        if (special or not one.special_tokens) and (one.ranks_by_bytes or not ranked)
    ]


# What is found


class _Lifecycle:
    """Runs the state machine, and sorts what is wrong by property.

    Args:
        implementation: the implementation under test.
        effort: how much to try.
    """

    def __init__(self, implementation: Implementation, effort: Effort) -> None:
        self.implementation = implementation
        self.origins = _origins(implementation)
        self.undisturbed = Undisturbed(implementation)
        self._effort = effort
        self._search = self._new_search()
        self._failed: tuple[str, Mismatch] | None = None
        self._found: dict[str, Found] = {}
        self._dependent: dict[str, Found] = {}

    def run(self) -> dict[str, Found]:
        """Return what fails, by the id of its property: of each conformance class the first failure that is found."""
        until = time.monotonic() + (self._effort.deadline or 0)
        while True:
            if self._effort.deadline is not None:
                self._effort = replace(self._effort, deadline=max(0.001, until - time.monotonic()))
            self._search, self._failed = self._new_search(), None
            self._search.repeat(self._once, EXAMPLES)
            if self._failed is None:
                return self._dependent | self._found
            name, mismatch = self._failed
            self._found[name] = Found(mismatch, self._search.examples)
            self._effort = replace(self._effort, database=None)  # what is found again would be removed from it

    def _new_search(self) -> Search:
        return Search("law-history", self.implementation, self._effort, MOST_SHRINKS)

    def _once(self, chosen: settings, number: int) -> None:
        def machine() -> _Machine:
            self._search.begin()
            return _Machine(self)

        seeded(number)(machine)
        run_state_machine_as_test(machine, settings=settings(chosen, stateful_step_count=STEPS))  # type: ignore[arg-type]

    def judge(
        self,
        machine: _Machine,
        origin: Origin,
        question: Question,
        answer: Answer,
        encode: Callable[[str], Answer] | None = None,
        state: str = "",
    ) -> None:
        """Compare an answer with the correct one.

        Args:
            machine: the state machine, after the call.
            origin: how the tokenizer was made.
            question: what it was asked.
            answer: what it answered.
            encode: encodes a text with the same tokenizer. A batch or a stream that is wrong as it is depends on it.
            state: the property that is broken if an earlier step is at fault, and a tokenizer that is built now is
                correct. Default: by the operation.
        """
        right = self.undisturbed.correct(origin, question)
        if is_correct(answer, right):
            return
        mismatch = Mismatch(replace(question, context=machine.context), Expectation((right,)), answer)
        history = _HISTORY_OF[_CLASS_OF[question.operation]]
        if encode is not None and (text := _encoded_so(question, answer, encode)) is not None:
            self._depends(history, mismatch, Dependence("encode", text))
        elif self.undisturbed.answers(origin, question):
            if not state or not self.undisturbed.answers_if_built(origin, question):
                state = _of_encoder(machine) if history == "law-history" else history
            self.fail(state, mismatch)
        elif self.undisturbed.answers_in_new_process(origin, question):
            self._search.most_shrinks = 0  # what the tokenizers share outlives an example
            shared = replace(mismatch, asked=replace(question, context=SHARED))
            self.fail("law-instances" if history == "law-history" else history, shared)
        elif origin.made != "built" and question.model and self.undisturbed.answers_if_built(origin, question):
            self.fail("law-trained-ways" if origin.made == "trained" else "law-loaded-ways", mismatch)
        else:
            self._depends(history, mismatch, Dependence("undisturbed"))

    def _depends(self, name: str, mismatch: Mismatch, dependence: Dependence) -> None:
        self._dependent.setdefault(name, Found(replace(mismatch, depends_on=dependence)))

    def fail(self, name: str, mismatch: Mismatch) -> None:
        """End the example, unless a failure of the same class was found before."""
        if _BY_ID[name].conformance_class not in {_BY_ID[found].conformance_class for found in self._found}:
            self._failed = name, mismatch
            self._search.judge(mismatch)


def _encoded_so(question: Question, answer: Answer, encode: Callable[[str], Answer]) -> str | None:
    """Return a text of a batch or a stream that `encode` gives the same ids, of all those that are wrong; or None."""
    given = question.input
    texts = given["texts"] if question.operation == "batch" else ["".join(given.get("chunks", ()))]
    alone = [encode(text) for text in texts]
    if question.operation == "batch":
        same = answer == Rows(tuple(one.ids if isinstance(one, Ids) else () for one in alone))
    else:
        same = answer == alone[0]
    return texts[-1] if same else None


def _of_encoder(machine: _Machine) -> str:
    """Return the id of the property that `encode` breaks after these steps."""
    if machine.changed:
        return "law-unaliased" if machine.changed == {"arguments"} else "law-lists"
    if machine.refused:
        return "law-after-error"
    return "law-instances" if machine.made > 1 else "law-history"


# The state machine


@dataclass
class _Tokenizer:
    """A tokenizer, under the name that it has in the list of steps.

    Attributes:
        name: its name.
        origin: how it was made.
        proxy: it.
        grown: a list that it decodes again and again.
        arguments: the lists and the mapping from which it was built.
    """

    name: str
    origin: Origin
    proxy: TokenizerProxy
    grown: list[int] = field(default_factory=list)
    arguments: Sequence[Any] = ()


@dataclass
class _Stream:
    """A stream that is read in part."""

    origin: Origin
    question: Question
    ids: Iterator[Any]
    read: list[int] = field(default_factory=list)


def _step(
    *needs: str, tokenizers: int = 1, streams: int = 0, **strategies: Any
) -> Callable[[Callable[..., None]], Any]:
    """Return what makes a rule of a method: one step.

    Args:
        needs: the capabilities without which it is left out.
        tokenizers: how many there have to be.
        streams: how many streams have to be open.
        strategies: what to draw for its parameters.
    """

    def is_possible(machine: _Machine) -> bool:
        enough = len(machine.tokenizers) >= tokenizers and len(machine.streams) >= streams
        return enough and machine.capabilities.issuperset(needs)

    def decorate(body: Callable[..., None]) -> Any:
        @wraps(body)
        def limited(machine: _Machine, **drawn: Any) -> None:
            with machine.implementation.time_limit():
                body(machine, **drawn)

        step: Any = rule(**strategies)
        return precondition(is_possible)(step(limited))

    return decorate


class _Machine(RuleBasedStateMachine):
    """Makes and asks tokenizers in any order.

    Attributes:
        tokenizers: those that were made last, at most `MOST_TOKENIZERS`.
        streams: those that are not read to their end.
        made: how many tokenizers were made.
        changed: whether the caller changed `lists` that were returned, and `arguments` of a constructor.
        refused: whether a call was made that an implementation may refuse.
    """

    def __init__(self, lifecycle: _Lifecycle) -> None:
        super().__init__()
        self.lifecycle = lifecycle
        self.implementation = lifecycle.implementation
        self.call = self.implementation.call
        self.capabilities = self.implementation.capabilities
        self.tokenizers: list[_Tokenizer] = []
        self.streams: list[_Stream] = []
        self.made = 0
        self.changed: set[str] = set()
        self.refused = False
        self._returned: list[tuple[list[Any], list[Any], Question]] = []
        self._steps: list[str] = []
        self._scratch = contextlib.ExitStack()

    @property
    def context(self) -> str:
        """The steps before the last one, separated by semicolons."""
        before = self._steps[:-1]
        return "; ".join(["..."] * (len(before) > LONGEST_CONTEXT) + before[-LONGEST_CONTEXT:])

    @cached_property
    def folder(self) -> Path:
        """A directory that all tokenizers are saved into."""
        return self._scratch.enter_context(scratch_folder())

    def teardown(self) -> None:
        """Remove the directory."""
        self._scratch.close()

    def one(self, which: int) -> _Tokenizer:
        """Return one of the tokenizers."""
        return self.tokenizers[which % len(self.tokenizers)]

    def attempt(self, step: str, ask: Callable[[], object]) -> Answer:
        """Make a call, a step of the list. What is no answer is accepted."""
        self._steps.append(step)
        try:
            answer = ask()
            return answer if isinstance(answer, Answer) else Accepted()
        except (CallFailed, TimedOut) as failed:
            return failed.answer

    # Making tokenizers

    def add(self, origin: Origin, make: Callable[[], TokenizerProxy], arguments: Sequence[Any] = ()) -> bool:
        """Make a tokenizer. Returns whether there is one."""
        proxies: list[TokenizerProxy] = []
        self.made += 1
        name = f"t{self.made}"
        question = Question("construct" if origin.made == "built" else "load", origin.model, {})
        answer = self.attempt(f"{name} = {origin.made} {origin.name}", lambda: proxies.append(make()))
        self.lifecycle.judge(self, origin, question, answer)
        kept = [*self.tokenizers, *(_Tokenizer(name, origin, proxy, arguments=arguments) for proxy in proxies)]
        self.tokenizers = kept[-MOST_TOKENIZERS:]
        return bool(proxies)

    @initialize(number=_NUMBERS)
    def begin(self, number: int) -> None:
        if {"encode", "decode"} & self.capabilities:
            self.build(number=number)

    @_step(tokenizers=1, number=_NUMBERS)
    def build(self, number: int) -> None:
        """Build a tokenizer; what the constructor is given stays as it is."""
        origin = self.lifecycle.origins[number % len(self.lifecycle.origins)]
        if "shared memory" not in self.capabilities or origin.model.pattern != "gpt2":
            self.add(origin, partial(self.implementation.build, origin.model))
            return
        given, before = constructor_arguments(origin.model, {})[0], constructor_arguments(origin.model, {})[0]
        self.add(origin, partial(self.implementation.build_from, given), given)
        for name, now, then in zip(("vocab", "merges", "special_tokens"), given, before, strict=False):
            self.compare_lists(Question("construct", origin.model, {}), name, now, then)

    @_step("from_files", "encode", tokenizers=0, number=_NUMBERS, text=_ONE_TEXT)
    def load(self, number: int, text: str) -> None:
        """Load a tokenizer from files of the same names as all others."""
        origins = [one for one in self.lifecycle.origins if one.model.pattern == "gpt2"]
        origin = replace(origins[number % len(origins)], made="loaded")
        special, before = origin.model.fresh()[2], origin.model.fresh()[2]
        files = gpt2_files.write(origin.model, self.folder)
        if self.add(origin, lambda: self.implementation.from_files(*files, special)):
            self.compare_lists(Question("load", origin.model, {}), "special_tokens", special, before)
            self.ask(self.tokenizers[-1], "encode", {"text": text}, state="law-files-again")

    @_step("save", "from_files", "encode", which=_NUMBERS, text=_ONE_TEXT)
    def save(self, which: int, text: str) -> None:
        """Save a tokenizer into the directory that others were saved into, and load it."""
        tokenizer = self.one(which)
        origin = replace(tokenizer.origin, made="saved")
        if origin.model.pattern != "gpt2" or not self.has(tokenizer, "save"):
            return
        answer = self.attempt(  # to refuse a directory that is in use is correct
            f"{tokenizer.name}.save(directory)", lambda: tokenizer.proxy.save(self.folder)
        )
        if answer == Accepted() and self.add(origin, partial(load, self.implementation, self.folder, origin.model)):
            self.ask(self.tokenizers[-1], "encode", {"text": text}, state="law-files-again")

    @_step("train", tokenizers=0, number=_NUMBERS)
    def train(self, number: int) -> None:
        """Train, and keep the tokenizer if the table is correct."""
        given = _TRAININGS[number % len(_TRAININGS)]
        special, pattern = given["special_tokens"], given["pattern"]
        if special and "train-special" not in self.capabilities:
            return
        if pattern != "gpt2" and f"train-pattern:{pattern}" not in self.capabilities:
            return
        question, proxies = Question("train", None, given), list[TokenizerProxy | None]()
        origin = Origin(f"training {number % len(_TRAININGS)}", _NO_MODEL, "trained", given)

        def ask() -> Answer:
            table, proxy = train(self.implementation, given)
            proxies.append(proxy)
            return table

        step = f"train({', '.join(f'{key}={value!a}' for key, value in given.items())})"
        answer = self.attempt(step, ask)
        if self.implementation.conventions["tie_break"] == "unspecified":
            origin = replace(origin, name=f"{origin.name} {fingerprint(answer)}")
        else:
            self.lifecycle.judge(self, origin, question, answer)
            if answer != self.lifecycle.undisturbed.correct(origin, question):
                return
        if isinstance(answer, Table) and (proxy := proxies[0]) is not None:
            model = Model(answer.vocab, answer.merges, special or None, pattern)
            self.add(replace(origin, model=model), lambda: proxy)

    # Asking them

    def has(self, tokenizer: _Tokenizer, method: str) -> bool:
        """Whether a tokenizer has a method: one that was trained may have fewer."""
        return method in self.capabilities and (
            tokenizer.origin.training is None or self.call("hasattr", hasattr, tokenizer.proxy.instance, method)
        )

    def ask(
        self,
        tokenizer: _Tokenizer,
        operation: str,
        given: Mapping[str, Any],
        how: Callable[[TokenizerProxy], Answer] | None = None,
        state: str = "",
    ) -> None:
        """Ask a question and compare the answer; the lists that were returned before stay as they were.

        Args:
            tokenizer: the tokenizer.
            operation: of the question.
            given: the input of the question.
            how: asks it. Default: as a new tokenizer is asked.
            state: as for `judge`.
        """
        method = _METHOD_OF.get(operation, operation)
        if not self.has(tokenizer, method):
            return
        question = Question(operation, tokenizer.origin.model, given)
        asked = how or (lambda proxy: OPERATIONS[operation](proxy, given))
        step = f"{tokenizer.name}.{method}({', '.join(f'{value!a}' for value in given.values())})"
        answer = self.attempt(step, lambda: asked(tokenizer.proxy))
        encode = (
            partial(_encode, tokenizer) if operation in ("batch", "stream") and self.has(tokenizer, "encode") else None
        )
        self.lifecycle.judge(self, tokenizer.origin, question, answer, encode, state)
        for returned, before, earlier in self._returned:
            self.compare_lists(earlier, "the list that was returned", returned, before)

    def compare_lists(self, question: Question, what: str, now: Any, before: Any) -> None:
        """Compare a list of the caller's with what it was."""
        if now != before:
            history = _HISTORY_OF[_CLASS_OF[question.operation]]
            asked = replace(question, context=self.context)
            mismatch = Mismatch(asked, Expectation((Unchanged(),)), Changed((what,)))
            self.lifecycle.fail("law-lists" if history == "law-history" else history, mismatch)

    @_step("encode", which=_NUMBERS, texts=_TEXTS)
    def encode(self, which: int, texts: list[str]) -> None:
        """Encode texts that are nearly alike."""
        for text in texts:
            self.ask(self.one(which), "encode", {"text": text})

    @_step("encode", tokenizers=2, texts=_TEXTS)
    def encode_with_each(self, texts: list[str]) -> None:
        """Encode one text with each tokenizer."""
        for tokenizer in self.tokenizers:
            self.ask(tokenizer, "encode", {"text": texts[0]})

    @_step(
        *("encode", "special", "allowed_special"),
        which=_NUMBERS,
        text=st.sampled_from(_WITH_SPECIALS),
        allowed=st.integers(0, 3),
        barred=st.booleans(),
    )
    def encode_allowed(self, which: int, text: str, allowed: int, barred: bool) -> None:
        """Encode with some of the special tokens allowed, and all others barred or not."""
        special = self.one(which).origin.model.special_tokens or ()
        chosen = [token for number, token in enumerate(special) if allowed >> number & 1]
        self.refused |= barred
        given = {"text": text, "allowed_special": chosen, "disallowed_special": "all" if barred else []}
        self.ask(self.one(which), "encode_allowed", given)

    @_step(
        "decode",
        which=_NUMBERS,
        texts=_TEXTS,
        tails=st.lists(_NUMBERS, max_size=4),
        method=st.sampled_from(("decode", "decode_bytes")),
        growing=st.booleans(),
    )
    def decode(self, which: int, texts: list[str], tails: list[int], method: str, growing: bool) -> None:
        """Decode the ids of texts and of parts of characters, in lists of their own or in one list that grows."""
        tokenizer = self.one(which)
        for text, tail in itertools.zip_longest(texts, tails):
            ids = self.ids(tokenizer, text or "", tail)
            if not growing or "shared memory" not in self.capabilities:
                self.ask(tokenizer, method, {"ids": ids})
                continue
            tokenizer.grown += ids
            before = list(tokenizer.grown)
            self.ask(tokenizer, method, {"ids": before}, partial(_DECODING_ITSELF[method], ids=tokenizer.grown))
            self.compare_lists(
                Question(method, tokenizer.origin.model, {"ids": before}), "ids", tokenizer.grown, before
            )

    def ids(self, tokenizer: _Tokenizer, text: str, tail: int | None) -> list[int]:
        """Return the ids of a text, and those of the bytes of a tail."""
        model = tokenizer.origin.model
        right = self.lifecycle.undisturbed.correct(tokenizer.origin, Question("encode", model, {"text": text}))
        assert isinstance(right, Ids)
        by_token = {token: index for index, token in model.vocab.items()}
        return [*right.ids, *(by_token[bytes([byte])] for byte in _TAILS[(tail or 0) % len(_TAILS)])]

    @_step("encode_batch", which=_NUMBERS, texts=_TEXTS)
    def batch(self, which: int, texts: list[str]) -> None:
        """Encode a batch."""
        self.ask(self.one(which), "batch", {"texts": texts})

    @_step("encode_iterable", which=_NUMBERS, texts=_TEXTS)
    def stream(self, which: int, texts: list[str]) -> None:
        """Encode the chunks of a list, which stays as it is."""
        tokenizer, given = self.one(which), list(texts)
        self.ask(tokenizer, "stream", {"chunks": texts}, lambda one: Ids(tuple(one.stream(given))))
        self.compare_lists(Question("stream", tokenizer.origin.model, {"chunks": texts}), "chunks", given, texts)

    @_step("encode_iterable", "shared memory", which=_NUMBERS, texts=_TEXTS, count=st.integers(0, 9))
    def open_stream(self, which: int, texts: list[str], count: int) -> None:
        """Read some ids of a stream."""
        tokenizer, opened = self.one(which), list[Iterator[Any]]()
        if not self.has(tokenizer, "encode_iterable"):
            return

        def ask() -> None:
            encode = tokenizer.proxy.instance.encode_iterable
            opened.append(self.call("encode_iterable", lambda: iterate("encode_iterable", encode(iter(texts)))))

        question = Question("stream", tokenizer.origin.model, {"chunks": texts})
        step = f"s{len(self.streams)} = {tokenizer.name}.encode_iterable({texts!a})"
        if self.attempt(step, ask) == Accepted():
            self.streams.append(_Stream(tokenizer.origin, question, opened[0]))
            self.read_on(number=len(self.streams) - 1, count=count)

    @_step(tokenizers=0, streams=1, number=_NUMBERS, count=st.integers(1, 99))
    def read_on(self, number: int, count: int) -> None:
        """Read on in one of the streams."""
        stream = self.streams[number % len(self.streams)]
        wanted = len(stream.read) + count

        def ask() -> Answer:
            stream.read += self.call(
                "encode_iterable", lambda: rebuild_ids("encode_iterable", itertools.islice(stream.ids, count))
            )
            return Ids(tuple(stream.read))

        answer = self.attempt(f"{count} ids of s{number % len(self.streams)}", ask)
        right = self.lifecycle.undisturbed.correct(stream.origin, stream.question)
        if isinstance(answer, Ids) and isinstance(right, Ids) and len(answer.ids) == wanted:
            answer = Ids((*answer.ids, *right.ids[wanted:]))  # it goes on
        self.lifecycle.judge(self, stream.origin, stream.question, answer)

    # Errors, and lists that the caller changes

    @_step(which=_NUMBERS, kind=st.sampled_from([*_REFUSED, "train"]))
    def refuse(self, which: int, kind: str) -> None:
        """Make a call that an implementation may refuse, whatever comes of it."""
        tokenizer = self.one(which)
        method, what, ask = _REFUSED.get(kind, ("train", "", None))
        if not self.has(tokenizer, method):
            return
        self.refused = True
        if ask is None:
            given: dict[str, Any] = {"text": _CORPORA[0], "vocab_size": 100, "special_tokens": [SPECIAL]}
            self.attempt("train(..., vocab_size=100)", lambda: train(self.implementation, given)[0])
        else:
            ids, step = self.ids(tokenizer, "kl", 1), f"{tokenizer.name}.{method} of {what}"
            self.attempt(step, lambda: ask(tokenizer.proxy, ids))

    @_step("encode", "shared memory", which=_NUMBERS, texts=_TEXTS, batch=st.booleans(), change=st.booleans())
    def use_result(self, which: int, texts: list[str], batch: bool, change: bool) -> None:
        """Keep the lists that are returned, or change them, and ask again."""
        tokenizer, given = self.one(which), list(texts)
        method, argument = ("encode_batch", given) if batch else ("encode", texts[0])
        if not self.has(tokenizer, method):
            return
        model = tokenizer.origin.model
        question = (
            Question("batch", model, {"texts": texts}) if batch else Question("encode", model, {"text": texts[0]})
        )
        returned: list[Any] = []
        self.ask_again(tokenizer, texts[:2] * 2)

        def ask() -> None:
            result = self.call(method, getattr(tokenizer.proxy.instance, method), argument)
            returned.extend([*(result if batch and type(result) is list else ()), result])

        step = f"{'change' if change else 'keep'} the result of {tokenizer.name}.{method}({argument!a})"
        self.attempt(step, ask)
        self.compare_lists(question, "texts", given, texts)
        for one in returned:
            if type(one) is list and change:
                self.changed.add("lists")
                one.reverse()
                one.append(0)
            elif type(one) is list:
                self._returned.append((one, list(one), question))
        self.ask_again(tokenizer, texts[:2])

    def ask_again(self, tokenizer: _Tokenizer, texts: list[str]) -> None:
        """Ask what is asked before the caller changes something, and after it."""
        for text in texts:
            self.ask(tokenizer, "encode", {"text": text})
        self.ask(tokenizer, "batch", {"texts": texts})
        self.ask(tokenizer, "decode", {"ids": self.ids(tokenizer, texts[0], 0)})

    @_step("encode", "shared memory", which=_NUMBERS, texts=_TEXTS)
    def clear_arguments(self, which: int, texts: list[str]) -> None:
        """Empty what the constructor was given."""
        tokenizer = self.one(which)
        if not tokenizer.arguments:
            return
        texts = [f"kl{''.join(tokenizer.origin.model.special_tokens or ())}k", texts[0]]
        self.ask_again(tokenizer, texts * 2)
        self._steps.append(f"clear the arguments of {tokenizer.name}")
        self.changed.add("arguments")
        for one in tokenizer.arguments:
            one.clear()
        tokenizer.arguments = ()
        self.ask_again(tokenizer, texts)


def _encode(tokenizer: _Tokenizer, text: str) -> Answer:
    try:
        return Ids(tuple(tokenizer.proxy.encode(text)))
    except (CallFailed, TimedOut) as failed:
        return failed.answer


_NO_MODEL = Model({}, ())
_DECODING_ITSELF: Mapping[str, Callable[..., Answer]] = {
    "decode": lambda one, ids: Text(one.decode_itself(ids)),
    "decode_bytes": lambda one, ids: Bytes(one.decode_bytes_itself(ids)),
}


# The properties

_explored: WeakKeyDictionary[Implementation, dict[tuple[int | None, float], dict[str, Found]]] = WeakKeyDictionary()


def _explore(id_: str, implementation: Implementation, effort: Effort) -> Found | None:
    runs = _explored.setdefault(implementation, {})
    key = effort.seed, effort.examples_factor
    if key not in runs:
        runs[key] = _Lifecycle(implementation, effort).run()
    return runs[key].get(id_)


_TABLE: tuple[tuple[str, str, str, tuple[str, ...], str], ...] = (
    ("law-history", "MERGE-STATE-1", "encoder", (), "texts after others that are nearly alike"),
    ("law-instances", "ERROR-STATE-1", "encoder", (), "texts while other tokenizers live"),
    ("law-lists", "ERROR-STATE-1", "encoder", ("shared memory",), "texts after the caller changed returned lists"),
    ("law-unaliased", "ERROR-STATE-2", "encoder", ("shared memory",), "texts after the caller emptied the table"),
    ("law-after-error", "ERROR-AFTER-1", "encoder", (), "texts after calls that were refused"),
    ("law-decode-history", "LAW-PURE-1", "decoder", ("decode",), "ids after others, also in a list that grows"),
    ("law-stream-history", "LAW-PURE-1", "streaming", ("encode_iterable",), "streams while others are open"),
    ("law-batch-history", "LAW-PURE-1", "batch", ("encode_batch",), "batches after others"),
    ("law-train-history", "LAW-REPLAY-1", "trainer", ("train",), "trainings after others"),
    ("law-trained-ways", "LAW-WAYS-1", "trainer", ("train",), "each method of a tokenizer that was trained"),
    ("law-loaded-ways", "LAW-WAYS-1", "files", ("from_files", "encode"), "each method of one that was loaded"),
    ("law-files-again", "LAW-SAVE-1", "files", ("from_files", "encode"), "one that was saved where others were"),
)
PROPERTIES: tuple[Property, ...] = tuple(
    Property(
        id_,
        clause,
        class_,
        needs or ("encode",),
        partial(_explore, id_),
        f"The state machine asks for {asks}.",
        search="law-history",
    )
    for id_, clause, class_, needs, asks in _TABLE
)
_BY_ID = {one.id: one for one in PROPERTIES}
_HISTORY_OF = {
    "encoder": "law-history",
    "decoder": "law-decode-history",
    "streaming": "law-stream-history",
    "batch": "law-batch-history",
    "trainer": "law-train-history",
    "files": "law-files-again",
}
