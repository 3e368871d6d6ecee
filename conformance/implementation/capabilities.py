"""What an implementation declares about itself, and what it supports by probes: small calls that are no tests.

A method or a pattern is supported unless the implementation says otherwise: `NotImplementedError`, or any ordinary
exception for a pattern. Whether an answer is correct plays no part.
"""

from __future__ import annotations

import difflib
import inspect
import math
import os
import re
import shlex
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Protocol

import regex

from bpe_conformance.adapters import CAPABILITIES, TESTABLE
from bpe_conformance.adapters.signature import is_like_minbpe, takes, takes_others, train_fault
from bpe_conformance.fixtures import PATTERNS, Model, gpt2_files, read_model
from bpe_conformance.fixtures.answers import type_name
from bpe_conformance.fixtures.conventions import CONVENTIONS, DEFAULTS
from bpe_conformance.fixtures.expression import is_name, pattern_name
from bpe_conformance.fixtures.one_line import ascii_only, counted, plural
from bpe_conformance.fixtures.pipeline import Pipeline

from ..command_line import CommandError
from .output import scratch_folder
from .proxy import CallFailed, Malformed, Missing, Raised, TimedOut, TokenizerProxy

GPT2_REWRITTEN = (  # GPT-2's pattern as CS336's handout and tiktoken write it; it counts as GPT-2's in a class, too
    r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""",
    r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s""",
)
_SMALL = read_model({"merges": [["a", "b"]]})
_WITH_SPECIAL = read_model({"merges": [["a", "b"]], "special_tokens": ["<|e|>"], "extra": [[257, "<|e|>"]]})
_WITH_TWO_IDS = read_model({"merges": [["a", "b"]], "extra": [[257, "a"]]})
_WITH_PIPELINE = Model(_SMALL.vocab, _SMALL.merges, (), pipeline=Pipeline())
_NO_PATTERN = "no-such-pattern"
_SEVERAL_LATE = 2
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_FILE = re.compile("path|file")
LONG = 2.0  # seconds after which the suite says what it waits for, at most half of them late


class LoadError(CommandError):
    """The adapter cannot be tested. The message is one line: what is wrong, and the fix."""


def conventions(name: str, target: Any) -> dict[str, str]:
    """Return the value of every convention, `pattern` among them: the declared one, or the default."""
    declared = getattr(target, "conventions", None)
    declared = {} if declared is None else declared
    if not isinstance(declared, Mapping):
        raise LoadError(f"{name}: conventions is of type {type_name(declared)}; expected a mapping")
    for key, value in declared.items():
        if key not in CONVENTIONS:
            raise LoadError(f"{name}: unknown convention {key!r}; known are {', '.join(CONVENTIONS)}")
        if value not in CONVENTIONS[key]:
            raise LoadError(f"{name}: {key} is {value!r}; expected one of {', '.join(CONVENTIONS[key])}")
    own = getattr(target, "pattern", None)
    return {**DEFAULTS, **{key: str(value) for key, value in declared.items()}, "pattern": _own_pattern(name, own)}


def _own_pattern(name: str, declared: object) -> str:
    """Return the pattern that a class declares as its own, by its name if it has one; `gpt2` if it declares none."""
    if not isinstance(declared, str):
        return "gpt2"
    try:
        regex.compile(declared)
    except (regex.error, ValueError) as error:
        raise LoadError(f"{name}: pattern is {declared!a}, which is not a regular expression: {error}") from None
    if declared not in PATTERNS and is_name(declared):
        known = ", ".join(PATTERNS)
        raise LoadError(f"{name}: pattern is {declared!a}; declare a regular expression, or one of {known}")
    if declared in GPT2_REWRITTEN:
        return "gpt2"
    return next((known for known, expression in PATTERNS.items() if declared == expression), declared)


class TrainResult(Protocol):
    """The result of a training; see `Trained`."""

    @property
    def proxy(self) -> TokenizerProxy | None: ...


class Probed(Protocol):
    """What probes need of an implementation; see `Implementation`."""

    name: str
    target: Any
    fixed_model: str | None
    conventions: dict[str, str]
    spellings: dict[str, str]
    lacking: dict[str, frozenset[str]]
    uncallable: dict[str, str]

    @property
    def is_remote(self) -> bool: ...

    @property
    def is_program(self) -> bool: ...

    def note(self, line: str) -> None: ...

    def time_limit(self, timeout_factor: float = 1) -> AbstractContextManager[object]: ...

    def build(self, model: Model) -> TokenizerProxy: ...

    def from_files(self, vocab: Path, merges: Path, special_tokens: Sequence[str] | None) -> TokenizerProxy: ...

    def from_tokenizer_json(self, model: Model) -> TokenizerProxy: ...

    def train(self, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str = ...) -> TrainResult: ...


def settle(implementation: Probed, stderr: int = 2) -> frozenset[str]:
    """Return the capabilities of an `Implementation`; set its spellings of patterns, notes and what cannot be asked.

    The capabilities are: each method of the protocol that exists and does not raise `NotImplementedError`;
    `allowed_special`, if `encode` has the parameters `allowed_special` and `disallowed_special`; `special` and
    `train-special`, if the constructor and `train` accept special tokens; `two ids`, if the constructor accepts a
    vocabulary in which one token has two; `pattern:NAME` and `train-pattern:NAME` for each pattern other than GPT-2's;
    `shared memory`, if it runs in this process.

    Raises:
        LoadError: if there is nothing to test, or no test can call it.
    """
    if implementation.is_remote:
        for name in sorted(implementation.target.capabilities - CAPABILITIES):
            close = difflib.get_close_matches(name, CAPABILITIES, n=1)
            hint = f"did you mean {close[0]!a}?" if close else "check-bridge lists what programs can announce"
            implementation.note(f"the protocol has no capability {name[:60]!a}; {hint}")
    own = getattr(implementation.target, "pattern", None)
    if isinstance(own, re.Pattern | regex.Pattern) and own.pattern not in (PATTERNS["gpt2"], *GPT2_REWRITTEN):
        fix = "if the tokenizer has a split of its own, declare the expression as a string"
        implementation.note(f"pattern is compiled, so it declares nothing; {fix}")
    prober = Prober(implementation, stderr)
    waiting = f"{implementation.name}: waiting for a first small call of"
    with announced(lambda: (prober.began, f"{waiting} {prober.asked}"), stderr):
        found = frozenset(prober.probe())
    if not found & TESTABLE:
        if prober.constructor_refuses:
            why = "its constructor raises NotImplementedError"
            if implementation.is_program:
                fix = "if it only reads a model's file, announce that file as model"
                why = f"it replies not_claimed to load; {fix}"
            raise LoadError(f"{implementation.name} cannot be tested: {why}")
        shape = "; or, if it reads a tokenizer.json, write --adapter tokenizer-json:MODULE:CLASS"
        fix = f"implement one{shape if callable(getattr(implementation.target, 'from_tokenizer_json', None)) else ''}"
        raise LoadError(f"{implementation.name} supports none of {', '.join(sorted(TESTABLE))}; {fix}")
    if prober.stubs and not (found & TESTABLE) - prober.stubs.keys():
        raise LoadError(f"{implementation.name}: {next(iter(prober.stubs.values()))}")
    for stub in prober.stubs.values():
        implementation.note(f"{stub}; raise NotImplementedError to have its tests skipped")
    return found


def _say(line: str, stderr: int) -> None:
    os.write(stderr, f"bpe-conformance: {ascii_only(line)}\n".encode("ascii"))


@contextmanager
def announced(waits: Callable[[], tuple[float, str]], stderr: int) -> Iterator[None]:
    """Say what the suite waits for, once, if it takes long. `waits` returns when the wait began, and the line."""
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(LONG / 2):
            since, line = waits()
            if time.monotonic() >= since + LONG:
                _say(line, stderr)
                return

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class Prober:
    def __init__(self, implementation: Probed, stderr: int) -> None:
        self._implementation = implementation
        self._target = implementation.target
        self._name = implementation.name
        self._fixed = implementation.fixed_model is not None
        self._stderr = stderr
        self.asked, self.began = "", math.inf  # the method that is called now, and since when
        self.constructor_refuses = False
        self.stubs: dict[str, str] = {}  # method that returned None → what is wrong
        self._late: set[str] = set()

    def probe(self) -> Iterator[str]:
        if not self._implementation.is_remote:
            yield "shared memory"
        offered = self._methods()
        yield from offered
        if "encode" in offered and not self._fixed:
            self._find_search_after_empty_match()
        train, build = self._implementation.train, self._implementation.build
        is_written = self._can_train(bool(offered))
        if is_written and not self._refuses("train", lambda: train("ab ab", 257, []), says_why=True):
            yield "train"
            of_tokenizers = [name for name in offered if name in _CALLS or name == "allowed_special"]
            self._find_lacking("train", lambda: train("ab ab", 257, []).proxy, of_tokenizers)
            if not self._refuses("train", lambda: train("ab<|e|>ab", 258, ["<|e|>"])):
                yield "train-special"
            yield from self._patterns("train-", self._target.train, self._train_with)
        models = {"special": _WITH_SPECIAL, "two ids": _WITH_TWO_IDS} if offered and not self._fixed else {}
        for name, model in models.items():
            if not self._refuses("the constructor", partial(build, model)):
                yield name
        if "encode" in offered and not self._fixed:
            yield from self._patterns("", self._target, self._encode_with)

    def takes(self, expression: str, prefix: str, says_why: bool) -> bool:
        """Return whether an expression that has no name is taken, which `spellings` then has; note why if not."""
        probe = self._train_with if prefix else self._encode_with
        if (refusal := self._raised(prefix, expression, expression, probe)) is None:
            return True
        del self._implementation.spellings[prefix + expression]
        if says_why:
            self._implementation.note(f"the constructor refuses the pattern {pattern_name(expression)}: {refusal}")
        return False

    def _methods(self) -> list[str]:
        """Return the methods, except train, that exist and do not refuse a small call."""
        is_class = isinstance(self._target, type)
        if is_class and not any(hasattr(self._target, name) for name in TESTABLE - {"train"}):
            if self._constructor_fault():
                return []
        elif fault := self._constructor_fault():
            raise LoadError(fault)
        try:
            with self._limited("the constructor"):
                proxy = self._implementation.build(_SMALL)
        except (CallFailed, TimedOut) as fault:
            if isinstance(fault, Raised) and isinstance(fault.error, NotImplementedError):
                self.constructor_refuses = True
                if fault.message not in ("", NotImplementedError.__name__):
                    self._implementation.note(f"the constructor raised NotImplementedError: {fault.message}")
                return []
            if isinstance(fault, TimedOut):
                self._tell("the constructor", fault)
            found = [name for name in _CALLS if callable(getattr(self._target, name, None))]
            loaders = [name for name, load in self._loaders().items() if not self._refuses(name, load)]
            return [*(found if is_class else ("encode", "decode")), *loaders]
        found = [name for name in _CALLS if callable(getattr(proxy.instance, name, None))]
        for name in ("encode", "decode"):
            others = [one for one in dir(type(proxy.instance)) if one.startswith(f"{name}_") and one not in _CALLS]
            if name not in found and others:
                self._implementation.note(f"{name} is missing, and {others[0]} is not tested: the suite calls {name}")
        calls = {name: partial(call, proxy, copy(argument)) for name, (call, argument) in _CALLS.items()}
        found = [name for name in found if not self._refuses(name, calls[name])]
        if "encode" in found and self._chooses(proxy):
            found.append("allowed_special")
        methods = tuple(found)
        for name, load in self._loaders().items():
            if not self._refuses(name, load):
                found.append(name)
                self._find_lacking(name, load, methods)
        return found

    def _loaders(self) -> dict[str, Callable[[], TokenizerProxy]]:
        """Return the class methods that load files, with a small first call of each."""
        loads = {"from_files": self._load_files}
        if not self._fixed:
            loads["from_tokenizer_json"] = partial(self._implementation.from_tokenizer_json, _WITH_PIPELINE)
        return {name: load for name, load in loads.items() if callable(getattr(self._target, name, None))}

    def _chooses(self, proxy: TokenizerProxy) -> bool:
        if not _takes_choice(proxy):
            if takes_others(proxy.instance.encode):
                fix = "if it passes them on, name the parameters allowed_special and disallowed_special"
                self._implementation.note(f"no choice of special tokens is tested: encode takes any keywords; {fix}")
            return False
        return not self._refuses("encode", lambda: _encode_allowed(proxy, "ab"))

    def _find_lacking(self, maker: str, make: Callable[[], TokenizerProxy | None], methods: Sequence[str]) -> None:
        """Find out which of these methods the tokenizers that `maker` returns do not have."""
        if maker in self._late:
            return
        try:
            with self._limited(maker):
                proxy = make()
                if proxy is None or (maker == "train" and not callable(getattr(proxy.instance, "encode", None))):
                    return  # it trains only
        except (
            Exception,
            SystemExit,
            TimedOut,
        ):  # tests report it; reading a method can build the tokenizer
            return
        lacking = []
        for name in methods:
            call, argument = _CALLS.get(name, (_encode_allowed, "ab"))
            has = _takes_choice(proxy) if name == "allowed_special" else callable(getattr(proxy.instance, name, None))
            method = name if name in _CALLS else "encode"
            failed = self._failed(method, partial(call, proxy, copy(argument))) if has else None
            if not has or (isinstance(failed, Raised) and isinstance(failed.error, NotImplementedError)):
                lacking.append(name)
        self._implementation.lacking[maker] = frozenset(lacking)
        if shown := [name for name in lacking if name in _CALLS and (name, maker) != ("save", "from_tokenizer_json")]:
            self._implementation.note(f"what {maker} returns is tested without {', '.join(shown)}, which it lacks")

    def _find_search_after_empty_match(self) -> None:
        """Find out where the search for a declared pattern continues after an empty match (SPLIT-LOSSLESS-1)."""
        own = self._implementation.conventions["pattern"]
        if own in PATTERNS:
            return
        later = f"(?>{own})"  # after it matched nothing, no other branch matches at the same position
        texts = (first + rest for first, rest in product("a1 -", map("".join, product("b2\t_'", repeat=2))))
        try:
            text = next((one for one in texts if _is_cut(own, one) != _is_cut(later, one)), None)
        except regex.error:  # a comment at its end, for example
            return
        if text is None:
            return
        model, answers = read_model({"merges": [[*text[1:]]]}), list[list[int]]()
        self._failed("encode", lambda: answers.append(self._implementation.build(model).encode(text)))
        if answers and len(answers[0]) == 2 + _is_cut(later, text):
            self._implementation.conventions["pattern"] = later

    def _constructor_fault(self) -> str:
        """Return why the constructor cannot be called as the protocol says, or ""."""
        try:
            signature = inspect.signature(self._target)
        except (TypeError, ValueError):
            return ""
        if self._fixed:
            return ""
        try:
            signature.bind({}, [], [])
            signature.bind({}, [])
        except TypeError as error:
            if is_like_minbpe(self._target):
                return f"{self._name} is a class like minbpe's; write --adapter minbpe:{self._name}"
            cannot = f"{self._name} cannot be called as (vocab, merges, special_tokens)"
            if callable(getattr(self._target, "from_tokenizer_json", None)):
                why = "to have each model written as a tokenizer.json that its from_tokenizer_json reads"
                return f"{cannot}; {why}, write --adapter tokenizer-json:{self._name}"
            if not isinstance(self._target, type) and "vocab_size" in signature.parameters:
                trainer = f"pass it as --bpe-trainer {self._name}, with an --adapter that has no train"
                return f"{cannot}; if it trains, make it the classmethod train of a class, or {trainer}"
            table = "vocab: dict[int, bytes], merges: list[tuple[bytes, bytes]]"
            most = sum(one.kind in _POSITIONAL for one in signature.parameters.values())
            why = str(error)
            if why.startswith("too many"):
                by_name = [one.name for one in signature.parameters.values() if one.kind is one.KEYWORD_ONLY]
                why = f"it takes {counted(most, 'argument')} but gets 3"
                why += f", by position; remove the * before {by_name[0]}" if by_name and not most else ""
            head = "__init__(self, " if isinstance(self._target, type) else f"{self._name.rpartition(':')[2]}("
            fix = f"write def {head}{table}, special_tokens: list[str] | None = None)"
            own = "; or, if it has loaded a model, give the class the attribute model, the path of the model's file"
            return f"{cannot}: {why}; {fix}{'' if most else own}"
        return ""

    def _can_train(self, is_testable: bool) -> bool:
        """Return whether `train` can be called. If it cannot but the rest can be tested, add a note."""
        is_remote = self._implementation.is_remote  # then the other process has looked
        fault = self._target.uncallable if is_remote else train_fault(self._target)
        if not fault and not callable(getattr(self._target, "train", None)):
            return False
        if fault and not is_testable:
            raise LoadError(f"{self._name}: {fault}")
        if fault:
            self._implementation.note(f"training is not tested: {self._name}: {fault}")
            self._implementation.uncallable["train"] = "train cannot be called as (text, vocab_size, special_tokens)"
        elif _FILE.search(first := _first_parameter(self._target.train)):
            function = "make it a function of a module, and pass it with --bpe-trainer MODULE:FUNCTION"
            self._implementation.note(
                f"train gets the text itself as its argument {first}; if it reads a file, {function}"
            )
        return not fault

    def _refuses(self, method: str, probe: Callable[[], object], says_why: bool = False) -> bool:
        """Return whether a small call raises NotImplementedError, and note its message if that `says_why`.

        A useless answer other than None is a LoadError.
        """
        failed = self._failed(method, probe)
        if isinstance(failed, Missing):
            self.stubs[method] = str(failed)
        elif isinstance(failed, Malformed):
            see = f"; to see the messages, run bpe-conformance check-bridge {shlex.quote(self._name)}"
            raise LoadError(f"{self._name}: {failed}{see if self._name.startswith('cmd:') else ''}")
        if not isinstance(failed, Raised) or not isinstance(failed.error, NotImplementedError):
            return False
        if says_why and failed.message not in ("", NotImplementedError.__name__):
            self._implementation.note(f"{method} is not tested: {failed.message}")
        return True

    def _failed(self, method: str, probe: Callable[[], object]) -> CallFailed | None:
        """Return how a small call failed; None if it did not fail, or if the method is late."""
        if method in self._late:
            return None
        try:
            with self._limited(method):
                probe()
        except CallFailed as failed:
            return failed
        except TimedOut as late:
            self._tell(method, late)
        return None

    @contextmanager
    def _limited(self, what: str) -> Iterator[None]:
        """Limit a probe, to a tenth of a case's limit if several methods have not answered."""
        factor = 0.1 if len(self._late) >= _SEVERAL_LATE else 1
        self.asked, self.began = what, time.monotonic()
        with self._implementation.time_limit(factor):
            yield

    def _tell(self, method: str, late: TimedOut) -> None:
        """Tell the user at once why nothing happens, and ask the method no more."""
        self._late.add(method)
        _say(f"{self._name}: {method} gave {late}; its tests still run", self._stderr)

    def _load_files(self) -> TokenizerProxy:
        with scratch_folder() as folder:
            return self._implementation.from_files(*gpt2_files.write(_SMALL, folder), None)

    def _patterns(self, prefix: str, function: Any, probe: Callable[[str], object]) -> Iterator[str]:
        """Find out which patterns are supported, and whether by name or as a regular expression."""
        declared = self._implementation.conventions["pattern"]
        own = [name for name in PATTERNS if PATTERNS[name] == PATTERNS.get(declared) and declared != "gpt2"]
        yield from (f"{prefix}pattern:{name}" for name in own)
        what = "train" if prefix else "the constructor"
        if not takes(function, "pattern"):
            if takes_others(function):
                fix = "if one of them is a pattern, name that parameter pattern"
                self._implementation.note(f"no pattern is tested: {what} takes any keyword arguments; {fix}")
            return
        refusals: dict[str, Raised] = {}
        always_raises = self._raised(prefix, "gpt2", None, probe) is not None
        for name in [name for name in PATTERNS if name not in ("gpt2", *own)]:
            if (refusal := self._refusal(prefix, name, probe)) is None or always_raises:
                yield f"{prefix}pattern:{name}"
            elif not isinstance(refusal.error, NotImplementedError):
                refusals[name] = refusal
        if refusals:
            first, patterns = next(iter(refusals.values())), plural(len(refusals), "pattern")
            self._implementation.note(f"{what} refuses the {patterns} {', '.join(refusals)}: {first}")

    def _refusal(self, prefix: str, name: str, probe: Callable[[str], object]) -> Raised | None:
        """Return the exception that a call with a pattern raises, whether as an expression or by name, or None."""
        refusal = self._raised(prefix, name, PATTERNS[name], probe)
        if refusal is None or self._raised(prefix, _NO_PATTERN, _NO_PATTERN, probe) is None:
            return refusal  # it takes any text for an expression, even a name
        return refusal if self._raised(prefix, name, name, probe) is not None else None

    def _raised(self, prefix: str, name: str, spelling: str | None, probe: Callable[[str], object]) -> Raised | None:
        """Return the ordinary exception of a call with a pattern in this spelling, or None. Tests report all else."""
        if spelling is not None:
            self._implementation.spellings[prefix + name] = spelling
        method = "train" if prefix else "encode"
        failed = None if "the constructor" in self._late else self._failed(method, lambda: probe(name))
        return failed if isinstance(failed, Raised) and failed.is_error else None

    def _train_with(self, pattern: str) -> None:
        self._implementation.train("ab ab ab", 257, [], pattern)

    def _encode_with(self, pattern: str) -> None:
        self._implementation.build(Model(_SMALL.vocab, _SMALL.merges, None, pattern)).encode("xab")


def _is_cut(pattern: str, text: str) -> bool:
    """Return whether a pattern cuts three characters before the last one."""
    return any(match.group() and 2 in match.span() for match in regex.finditer(pattern, text))


def _save(proxy: TokenizerProxy, _: None) -> None:
    with scratch_folder() as folder:
        proxy.save(folder)


_CALLS: dict[str, tuple[Callable[[TokenizerProxy, Any], object], Any]] = {
    "encode": (TokenizerProxy.encode, "ab"),
    "decode": (TokenizerProxy.decode, [97]),
    "encode_iterable": (TokenizerProxy.stream, ["ab"]),
    "encode_batch": (TokenizerProxy.encode_batch, ["ab"]),
    "decode_bytes": (TokenizerProxy.decode_bytes, [97]),
    "save": (_save, None),
    "decode_iterable": (TokenizerProxy.detokenize, [97]),
    "encode_with_offsets": (TokenizerProxy.encode_with_offsets, "ab"),
}
"""Method of a tokenizer → a small call of it, and the argument of the call."""


def _takes_choice(proxy: TokenizerProxy) -> bool:
    """Return whether `encode` takes a choice of special tokens."""
    return takes(getattr(proxy.instance, "encode", None), "allowed_special", "disallowed_special")


def _encode_allowed(proxy: TokenizerProxy, text: str) -> object:
    return proxy.encode_allowed(text, (), ())


def _first_parameter(function: Any) -> str:
    try:
        return next(iter(inspect.signature(function).parameters), "")
    except (TypeError, ValueError):
        return ""
