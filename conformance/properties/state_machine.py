"""The steps of the state machine: it builds, trains, loads, saves and calls tokenizers, in any order."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, wraps
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from bpe_conformance.fixtures import Model, gpt2_files
from bpe_conformance.fixtures.answers import rebuild_ids

from ..answer import Accepted, Answer, Bytes, Changed, Ids, Table, Text, Unchanged, fingerprint
from ..implementation.implementation import constructor_arguments
from ..implementation.output import scratch_folder
from ..implementation.proxy import CallFailed, TimedOut, TokenizerProxy
from ..operations import Question, Train
from ..outcome import Expectation, Mismatch
from .asking import CALLERS_SPECIALS, is_correct, load, posed, train
from .lifecycle_inputs import (
    CORPORA,
    EVERY_MERGE,
    METHODS,
    NUMBERS,
    ONE_TEXT,
    REFUSED,
    SIMPLEST,
    SPECIAL,
    TAILS,
    TEXTS,
    TRAININGS,
    WITH_SPECIALS,
    Origin,
)
from .undisturbed import Judge

MOST_TOKENIZERS = 5
LONGEST_CONTEXT = 12
LONGEST_VALUE = 40
ASKING = frozenset({"encode", "encode_allowed", "decode", "batch", "stream", "open_stream", "read_on", "keep_result"})
MAKING = frozenset({"build", "load", "save", "train"})


@dataclass(frozen=True)
class Stage:
    """A part of the run of the machine.

    Attributes:
        name: the property that is broken if `encode` is incorrect in this stage, but in no earlier one.
        steps: the names of the steps that the machine may take.
        examples: the number of examples that a default run draws.
    """

    name: str
    steps: frozenset[str]
    examples: int

    def is_possible(self, capabilities: Set[str]) -> bool:
        """Return whether this stage can test an implementation with these capabilities."""
        if self.steps & {"change_result", "clear_arguments"}:
            return {"encode", "shared memory"} <= capabilities
        return "train" in self.steps or bool({"encode", "decode"} & capabilities)


@dataclass
class _Tokenizer:
    """A tokenizer, with its name in the list of steps.

    Attributes:
        name: its name.
        origin: how it was made.
        proxy: its proxy.
        grown: a list of ids that grows between calls of `decode`.
        arguments: the vocabulary and the lists that the constructor got.
        is_cleared: whether the machine has emptied these arguments.
    """

    name: str
    origin: Origin
    proxy: TokenizerProxy
    grown: list[int] = field(default_factory=list)
    arguments: Sequence[Any] = ()
    is_cleared: bool = False


@dataclass
class _Stream:
    """A partly read stream."""

    origin: Origin
    question: Question[Any]
    ids: Iterator[Any]
    read: list[int] = field(default_factory=list)


def _step(
    *needs: str, tokenizers: int = 1, streams: int = 0, **strategies: Any
) -> Callable[[Callable[..., None]], Any]:
    """Return a decorator that makes a method a step, which Hypothesis calls a rule.

    Args:
        needs: the capabilities that the step needs.
        tokenizers: the least number of tokenizers.
        streams: the least number of open streams.
        strategies: the strategies for the parameters of the method.
    """

    def decorate(body: Callable[..., None]) -> Any:
        def is_possible(machine: Machine) -> bool:
            enough = len(machine.tokenizers) >= tokenizers and len(machine.streams) >= streams
            return enough and machine.capabilities.issuperset(needs) and body.__name__ in machine.stage.steps

        @wraps(body)
        def limited(machine: Machine, **drawn: Any) -> None:
            with machine.implementation.time_limit():
                body(machine, **drawn)

        step: Any = rule(**strategies)
        return precondition(is_possible)(step(limited))

    return decorate


class Machine(RuleBasedStateMachine):
    """Makes tokenizers and calls their methods, in any order.

    Attributes:
        tokenizers: the newest tokenizers, at most `MOST_TOKENIZERS`.
        streams: the open streams.
        made: the number of tokenizers made so far.
        stage: the stage, which says what steps the machine may take.
    """

    def __init__(self, lifecycle: Judge, stage: Stage) -> None:
        super().__init__()
        self.lifecycle = lifecycle
        self.implementation = lifecycle.implementation
        self.call = self.implementation.call
        self.capabilities = self.implementation.capabilities
        self.stage = stage
        self.tokenizers: list[_Tokenizer] = []
        self.streams: list[_Stream] = []
        self.made = 0
        self._returned: list[tuple[list[Any], list[Any], Question[Any]]] = []
        self._steps: list[str] = []
        self._scratch = contextlib.ExitStack()

    def asked(self, question: Question[Any]) -> Question[Any]:
        """Return the question of the last step, with the steps before it as its context.

        Equal steps in a row are one, with their number.
        """
        runs = [(step, len([*equal])) for step, equal in itertools.groupby(self._steps[:-1])]
        before = [step if count == 1 else f"{step} {count} times" for step, count in runs]
        shown = ["..."] * (len(before) > LONGEST_CONTEXT) + before[-LONGEST_CONTEXT:]
        return replace(question, context="; ".join(shown))

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
        """Make a call, add it to the steps, and return its answer; `Accepted` if the call returns none."""
        self._steps.append(step)
        try:
            answer = ask()
            return answer if isinstance(answer, Answer) else Accepted()
        except (CallFailed, TimedOut) as failed:
            self.lifecycle.has_refused = True
            return failed.answer

    # Making tokenizers

    def add(
        self, origin: Origin, make: Callable[[], TokenizerProxy], arguments: Sequence[Any] = (), state: str = ""
    ) -> bool:
        """Make a tokenizer, and return whether that worked."""
        proxies: list[TokenizerProxy] = []
        self.made += 1
        name = f"t{self.made}"
        question = posed("construct" if origin.made == "built" else "load", origin.model, {})
        answer = self.attempt(f"{name} = {origin.made} {origin.name}", lambda: proxies.append(make()))
        self.lifecycle.judge(origin, self.asked(question), answer, state=state)
        kept = [*self.tokenizers, *(_Tokenizer(name, origin, proxy, arguments=arguments) for proxy in proxies)]
        self.tokenizers = kept[-MOST_TOKENIZERS:]
        return bool(proxies)

    @initialize(number=NUMBERS)
    def begin(self, number: int) -> None:
        """Build the first tokenizer, from the first table that the implementation accepts."""
        if {"encode", "decode"} & self.capabilities:
            for place in range(len(self.lifecycle.origins)):
                self.build(number=number + place)
                if self.tokenizers:
                    break

    @_step(tokenizers=1, number=NUMBERS)
    def build(self, number: int) -> None:
        """Build a tokenizer; the constructor must not change its arguments."""
        origin = self.lifecycle.origins[number % len(self.lifecycle.origins)]
        if "shared memory" not in self.capabilities or origin.model.pattern != "gpt2":
            self.add(origin, partial(self.implementation.build, origin.model))
            return
        given, before = constructor_arguments(origin.model, {})[0], constructor_arguments(origin.model, {})[0]
        self.add(origin, partial(self.implementation.build_from, given), given)
        for name, now, then in zip(("vocab", "merges", "special_tokens"), given, before, strict=False):
            self.compare_lists(posed("construct", origin.model, {}), f"the caller's {name} changed", now, then)

    @_step("from_files", "encode", tokenizers=0, number=NUMBERS, text=ONE_TEXT)
    def load(self, number: int, text: str) -> None:
        """Load a tokenizer from files with the same names as all others."""
        origins = [one for one in self.lifecycle.origins if one.model.pattern == "gpt2"]
        origin = replace(origins[number % len(origins)], made="loaded")
        special, before = origin.model.fresh()[2], origin.model.fresh()[2]
        files = gpt2_files.write(origin.model, self.folder)
        if self.add(origin, lambda: self.implementation.from_files(*files, special)):
            self.compare_lists(posed("load", origin.model, {}), CALLERS_SPECIALS, special, before)
            self.ask_loaded(text)

    @_step("save", "from_files", "encode", which=NUMBERS, text=ONE_TEXT)
    def save(self, which: int, text: str) -> None:
        """Save a tokenizer into the directory that others were saved into, and load it."""
        self.save_one(self.one(which), text)

    def save_one(self, tokenizer: _Tokenizer, text: str) -> None:
        """Save a tokenizer and load it."""
        state = "law-unaliased" if tokenizer.is_cleared else ""
        origin = replace(tokenizer.origin, made="saved")
        if origin.model.pattern != "gpt2" or not self.has(tokenizer, "save"):
            return
        special = origin.model.fresh()[2]
        answer = self.attempt(  # to refuse a directory that is in use is correct
            f"{tokenizer.name}.save(directory)", lambda: tokenizer.proxy.save(self.folder)
        )
        again = partial(load, self.implementation, self.folder, special)
        if answer == Accepted() and self.add(origin, again, state=state):
            self.ask_loaded(text, state or "law-files-again")

    def ask_loaded(self, text: str, state: str = "law-files-again") -> None:
        """Call `encode` of the newest tokenizer, which was loaded. Drop the tokenizer if the answer is incorrect."""
        tokenizer = self.tokenizers[-1]
        for one in (text, EVERY_MERGE):
            if not self.ask(tokenizer, "encode", {"text": one}, state=state):
                self.tokenizers.remove(tokenizer)
                return

    @_step("train", tokenizers=0, number=NUMBERS)
    def train(self, number: int) -> None:
        """Train, and keep the tokenizer if the table is correct."""
        given = TRAININGS[number % len(TRAININGS)]
        special, pattern = given["special_tokens"], given["pattern"]
        if special and "train-special" not in self.capabilities:
            return
        if pattern != "gpt2" and f"train-pattern:{pattern}" not in self.capabilities:
            return
        question, proxies = posed("train", None, given), list[TokenizerProxy | None]()
        origin = Origin(f"training {number % len(TRAININGS)}", _NO_MODEL, "trained", given)

        def ask() -> Answer:
            table, proxy = train(self.implementation, question.operation)
            proxies.append(proxy)
            return table

        step = f"train({', '.join(f'{key}={_brief(value)}' for key, value in given.items())})"
        answer = self.attempt(step, ask)
        if self.implementation.conventions["tie_break"] == "unspecified":
            origin = replace(origin, name=f"{origin.name} {fingerprint(answer)}")
        else:
            self.lifecycle.judge(origin, self.asked(question), answer)
            if not is_correct(
                self.implementation, question, answer, self.lifecycle.undisturbed.correct(origin, question)
            ):
                return
        if isinstance(answer, Table) and (proxy := proxies[0]) is not None:
            model = Model(answer.vocab, answer.merges, special or None, pattern)
            if model.well_formed:  # if not, other tests show it
                self.add(replace(origin, model=model), lambda: proxy)

    # Asking them

    def has(self, tokenizer: _Tokenizer, method: str) -> bool:
        """Return whether a tokenizer has a method. A trained tokenizer can have fewer methods than a built one."""
        if method not in self.capabilities or tokenizer.origin.training is None:
            return method in self.capabilities
        try:
            return tokenizer.proxy.has(method)
        except (CallFailed, TimedOut):
            return False

    def ask(
        self,
        tokenizer: _Tokenizer,
        operation: str,
        given: Mapping[str, Any],
        how: Callable[[TokenizerProxy], Answer] | None = None,
        state: str = "",
    ) -> bool:
        """Ask a question, and compare the answer. Lists that were returned earlier must not change.

        Args:
            tokenizer: the tokenizer.
            operation: the operation of the question.
            given: the input of the question.
            how: makes the call; None means the usual one.
            state: as for `judge`.

        Returns:
            bool: whether the answer is correct; True if the tokenizer lacks the method.
        """
        method = METHODS[operation]
        if not self.has(tokenizer, method):
            return True
        question = posed(operation, tokenizer.origin.model, given)
        asked = how or question.operation.of
        step = f"{tokenizer.name}.{method}({', '.join(map(_brief, given.values()))})"
        answer = self.attempt(step, lambda: asked(tokenizer.proxy))
        encode = (
            partial(_encode, tokenizer) if operation in ("batch", "stream") and self.has(tokenizer, "encode") else None
        )
        state = "law-unaliased" if tokenizer.is_cleared else state
        self.lifecycle.judge(tokenizer.origin, self.asked(question), answer, encode, state)
        for returned, before, earlier in self._returned:
            self.compare_lists(earlier, "a list that it had returned changed", returned, before)
        return is_correct(
            self.implementation, question, answer, self.lifecycle.undisturbed.correct(tokenizer.origin, question)
        )

    def compare_lists(self, question: Question[Any], what: str, now: Any, before: Any) -> None:
        """Report a list of the caller that no longer has its earlier value."""
        if now != before:
            mismatch = Mismatch(self.asked(question), Expectation((Unchanged(),)), Changed((what,)))
            self.lifecycle.report_changed(mismatch)

    @_step("encode", which=NUMBERS, texts=TEXTS)
    def encode(self, which: int, texts: list[str]) -> None:
        """Encode similar texts."""
        for text in texts:
            self.ask(self.one(which), "encode", {"text": text})

    @_step("encode", tokenizers=2, texts=TEXTS)
    def encode_with_each(self, texts: list[str]) -> None:
        """Encode one text with each tokenizer."""
        for tokenizer in self.tokenizers:
            self.ask(tokenizer, "encode", {"text": texts[0]})

    @_step(
        *("encode", "special", "allowed_special"),
        which=NUMBERS,
        text=st.sampled_from(WITH_SPECIALS),
        allowed=st.integers(0, 3),
        barred=st.booleans(),
    )
    def encode_allowed(self, which: int, text: str, allowed: int, barred: bool) -> None:
        """Encode with some special tokens allowed, and all others disallowed or ordinary."""
        special = self.one(which).origin.model.special_tokens or ()
        chosen = [token for number, token in enumerate(special) if allowed >> number & 1]
        disallowed = "all" if barred and "refuse" in self.stage.steps else []
        given = {"text": text, "allowed_special": chosen, "disallowed_special": disallowed}
        self.ask(self.one(which), "encode_allowed", given)

    @_step(
        "decode",
        which=NUMBERS,
        texts=TEXTS,
        tails=st.lists(NUMBERS, max_size=4),
        method=st.sampled_from(("decode", "decode_bytes")),
        growing=st.booleans(),
    )
    def decode(self, which: int, texts: list[str], tails: list[int], method: str, growing: bool) -> None:
        """Decode the ids of texts and of parts of characters, in separate lists or in one growing list."""
        tokenizer = self.one(which)
        for text, tail in itertools.zip_longest(texts, tails):
            ids = self.ids(tokenizer, text or "", tail)
            if not growing or "shared memory" not in self.capabilities:
                self.ask(tokenizer, method, {"ids": ids})
                continue
            tokenizer.grown += ids
            before = list(tokenizer.grown)
            self.ask(tokenizer, method, {"ids": before}, partial(_DECODING_ITSELF[method], ids=tokenizer.grown))
            asked = posed(method, tokenizer.origin.model, {"ids": before})
            self.compare_lists(asked, "the caller's ids changed", tokenizer.grown, before)

    def ids(self, tokenizer: _Tokenizer, text: str, tail: int | None) -> list[int]:
        """Return the ids of a text, and those of the bytes of a tail."""
        model = tokenizer.origin.model
        right = self.lifecycle.undisturbed.correct(tokenizer.origin, posed("encode", model, {"text": text}))
        assert isinstance(right, Ids)
        return [*right.ids, *(model.ids[bytes([byte])] for byte in TAILS[(tail or 0) % len(TAILS)])]

    @_step("encode_batch", which=NUMBERS, texts=TEXTS)
    def batch(self, which: int, texts: list[str]) -> None:
        """Encode a batch."""
        self.ask(self.one(which), "batch", {"texts": texts})

    @_step("encode_iterable", which=NUMBERS, texts=TEXTS)
    def stream(self, which: int, texts: list[str]) -> None:
        """Encode the chunks of a list, which must not change. Each text is two chunks."""
        chunks = [half for text in texts for half in (text[: len(text) // 2], text[len(text) // 2 :])]
        tokenizer, given = self.one(which), list(chunks)
        self.ask(tokenizer, "stream", {"chunks": chunks}, lambda one: Ids(tuple(one.stream(given))))
        asked = posed("stream", tokenizer.origin.model, {"chunks": chunks})
        self.compare_lists(asked, "the caller's chunks changed", given, chunks)

    @_step("encode_iterable", "shared memory", which=NUMBERS, texts=TEXTS, count=st.integers(0, 9))
    def open_stream(self, which: int, texts: list[str], count: int) -> None:
        """Read some ids of a stream."""
        tokenizer, opened = self.one(which), list[Iterator[Any]]()
        if not self.has(tokenizer, "encode_iterable"):
            return

        question = posed("stream", tokenizer.origin.model, {"chunks": texts})
        step = f"s{len(self.streams)} = {tokenizer.name}.encode_iterable({_brief(texts)})"
        if self.attempt(step, lambda: opened.append(tokenizer.proxy.open_stream(iter(texts)))) == Accepted():
            self.streams.append(_Stream(tokenizer.origin, question, opened[0]))
            self.read_on(number=len(self.streams) - 1, count=count)

    @_step(tokenizers=0, streams=1, number=NUMBERS, count=st.integers(1, 99))
    def read_on(self, number: int, count: int) -> None:
        """Continue to read one of the streams."""
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
        self.lifecycle.judge(stream.origin, self.asked(stream.question), answer)

    # Errors, and lists that the caller changes

    @_step(which=NUMBERS, texts=TEXTS)
    def refuse(self, which: int, texts: list[str]) -> None:
        """Make each call that may raise an error, ignore its answer, and then call all methods."""
        tokenizer = self.one(which)
        if "train" in self.capabilities:
            given = Train(CORPORA[0], 100, (SPECIAL,))
            self.attempt("train(..., vocab_size=100)", lambda: train(self.implementation, given)[0])
            self.ask_again(tokenizer, texts[:1])
        ids = self.ids(tokenizer, "kl", 1)
        for method, what, ask in REFUSED:
            if self.has(tokenizer, method):
                step = f"{tokenizer.name}.{method} of {what}"
                self.attempt(step, partial(ask, tokenizer.proxy, ids))
                self.ask_again(tokenizer, texts[:1])

    @_step("encode", "shared memory", which=NUMBERS, texts=TEXTS, batch=st.booleans())
    def keep_result(self, which: int, texts: list[str], batch: bool) -> None:
        """Keep returned lists, and call all methods."""
        self.use_result(which, texts, batch, change=False)

    @_step("encode", "shared memory", which=NUMBERS, texts=TEXTS | SIMPLEST, batch=st.booleans())
    def change_result(self, which: int, texts: list[str], batch: bool) -> None:
        """Change returned lists, and call all methods."""
        self.use_result(which, texts, batch, change=True)

    def use_result(self, which: int, texts: list[str], batch: bool, change: bool) -> None:
        """Keep or change returned lists. Call all methods before and after."""
        texts = [*texts, texts[0]] if batch else texts
        tokenizer, given = self.one(which), list(texts)
        method, argument = ("encode_batch", given) if batch else ("encode", texts[0])
        if not self.has(tokenizer, method):
            return
        model = tokenizer.origin.model
        question = posed("batch", model, {"texts": texts}) if batch else posed("encode", model, {"text": texts[0]})
        returned: list[Any] = []
        self.ask_again(tokenizer, texts[:2] * 2)

        def ask() -> None:
            for one in [given, list[str]()] if batch else [argument]:
                result = tokenizer.proxy.returned(method, one)
                returned.extend([*(result if batch and type(result) is list else ()), result])

        step = f"{'change' if change else 'keep'} the result of {tokenizer.name}.{method}({_brief(argument)})"
        self.attempt(step, ask)
        self.compare_lists(question, "the caller's texts changed", given, texts)
        rows = [id(one) for one in returned[:-1] if type(one) is list]
        if len({*rows}) < len(rows) and not self.encodes_to_one_list(tokenizer, texts[0]):
            self.compare_lists(question, "two rows are the same list", len(rows), len({*rows}))
        for one in returned:
            if type(one) is list and change:
                one.reverse()
                one.append(0)
            elif type(one) is list:
                self._returned.append((one, list(one), question))
        if batch:
            self.ask(tokenizer, "batch", {"texts": []})
        self.ask_again(tokenizer, texts[:2])

    def encodes_to_one_list(self, tokenizer: _Tokenizer, text: str) -> bool:
        """Return whether `encode` returns one list for two calls."""
        try:
            first, second = (tokenizer.proxy.returned("encode", text) for _ in range(2))
        except (CallFailed, TimedOut):
            return False
        return first is second

    def ask_again(self, tokenizer: _Tokenizer, texts: list[str]) -> None:
        """Call `encode`, `encode_batch` and `decode`."""
        for text in texts:
            self.ask(tokenizer, "encode", {"text": text})
        self.ask(tokenizer, "batch", {"texts": texts})
        self.ask(tokenizer, "decode", {"ids": self.ids(tokenizer, texts[0], 0)})

    @_step("encode", "shared memory", which=NUMBERS, texts=TEXTS)
    def clear_arguments(self, which: int, texts: list[str]) -> None:
        """Empty the arguments of the constructor."""
        tokenizer = self.one(which)
        if not tokenizer.arguments:
            return
        texts = [f"kl{''.join(tokenizer.origin.model.special_tokens or ())}k", texts[0]]
        self.ask_again(tokenizer, texts * 2)
        self._steps.append(f"clear the arguments of {tokenizer.name}")
        for one in tokenizer.arguments:
            one.clear()
        tokenizer.arguments, tokenizer.is_cleared = (), True
        self.ask_again(tokenizer, texts)
        self.ask(tokenizer, "stream", {"chunks": [*texts[0]]})
        if {"save", "from_files"} <= self.capabilities:
            self.save_one(tokenizer, texts[0])


def _brief(value: object) -> str:
    """Return a value in ASCII for the name of a step; a long value is cut."""
    text = ascii(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 4]} ..."


def _encode(tokenizer: _Tokenizer, text: str) -> Answer:
    try:
        return Ids(tuple(tokenizer.proxy.encode(text)))
    except (CallFailed, TimedOut) as failed:
        return failed.answer


_NO_MODEL = Model({}, ())
_DECODING_ITSELF: Mapping[str, Callable[..., Answer]] = {
    "decode": lambda one, ids: Text(one.decode(ids)),
    "decode_bytes": lambda one, ids: Bytes(one.decode_bytes(ids)),
}
