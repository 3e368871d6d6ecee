"""The implementation under test: loads it, and builds, trains and loads its tokenizers, each call within a limit."""

from __future__ import annotations

import contextlib
import copy
import math
import sys
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from bpe_conformance.adapters import AdapterError, RemoteTokenizer, resolve
from bpe_conformance.adapters.bridge.client import bridge, isolated
from bpe_conformance.adapters.bridge.confinement import Confinement
from bpe_conformance.adapters.loading import program_arguments
from bpe_conformance.adapters.shapes.functions import with_trainer
from bpe_conformance.adapters.signature import version_of
from bpe_conformance.fixtures import PATTERNS, Merge, Model
from bpe_conformance.fixtures.answers import made, rebuild_merges, rebuild_vocab, restored, type_name
from bpe_conformance.fixtures.conventions import DEFAULTS
from bpe_conformance.fixtures.expression import pattern_name
from bpe_conformance.reference.formats import huggingface

from ..answer import Table
from . import capabilities, time_limit
from .capabilities import LoadError
from .output import reused_folders, scratch_folder
from .proxy import CallFailed, Malformed, Raised, TimedOut, TokenizerProxy, contained
from .time_limit import Clock, TimeLimit

__all__ = ["Implementation", "LoadError", "Trained", "constructor_arguments", "load"]
T = TypeVar("T")
IMPORT_FACTOR = 6  # how many times as long as a case the import of the adapter may take
_REMOTE_GRACE = 1.0  # seconds in which another process can report its own time limit, because it says more
Spawn = Callable[[Mapping[str, str]], Any] | None  # starts the adapter in a new process, with these variables added


@dataclass(frozen=True)
class Trained:
    """The result of training: id → bytes, merges in order of rank, and the tokenizer if there is one."""

    vocab: dict[int, bytes]
    merges: list[Merge]
    proxy: TokenizerProxy | None = field(default=None, compare=False)

    @property
    def table(self) -> Table:
        return Table(self.vocab, tuple(self.merges))

    def tokenizer(self) -> TokenizerProxy | None:
        """Return the tokenizer if it encodes. Only a call shows this for a tokenizer in another process."""
        try:
            if self.proxy is not None and self.proxy.has("encode"):
                self.proxy.encode("")
                return self.proxy
        except Raised as raised:
            if not isinstance(raised.error, NotImplementedError):
                raise
        return None


class Implementation:
    """The implementation under test: a class or a factory of the adapter protocol."""

    def __init__(self, name: str, target: Any, limit: float = 10.0, spawn: Spawn = None, stderr: int = 2) -> None:
        """Find out what `target` declares and supports. `stderr` gets what the user has to know at once."""
        if not callable(target):
            raise LoadError(f"{name} is of type {type_name(target)}; expected a class or a function")
        self.name = name
        self.target = target
        self.limit = limit or math.inf  # seconds that the calls of one case may take, or infinity
        self.spawn = spawn  # starts it in a new process, or None if that is not possible
        self.notes: list[str] = []  # lines for the user, in addition to the results
        self.spellings: dict[str, str] = {}  # pattern → what it calls it, in training with the prefix `train-`
        self.lacking: dict[str, frozenset[str]] = {}  # method that returns a tokenizer → the methods that this lacks
        self.uncallable: dict[str, str] = {}  # method that exists → why the suite cannot call it
        self._limited: dict[frozenset[str], Implementation] = {}
        self.returns_pair = False  # whether `train` returned a pair (vocab, merges), no tokenizer
        self._stderr = stderr
        self.limiter = TimeLimit(stderr)
        self._large: dict[str, tuple[TokenizerProxy | CallFailed | TimedOut, float]] = {}
        self._elsewhere: dict[str, Implementation] = {}
        model = getattr(target, "model", None)
        self.fixed_model = model if isinstance(model, str) else None  # or None; a path for an engine without a pack
        self.pack_model: Model | None = None  # the model of the pack that it is tested with
        self.conventions = capabilities.conventions(name, target)
        self.declared = {key: value for key, value in self.conventions.items() if value != DEFAULTS[key]}
        if not self.is_remote and not time_limit.is_available():
            self.note("the suite cannot interrupt a call that does not end here; use --bpe-isolate to end such calls")
        with restored(), reused_folders(), self.time_limit(math.inf):  # the tests report changes
            self.capabilities = capabilities.settle(self, stderr)
        if spawn and not self.is_program:
            self.capabilities |= {"new process"}  # with another hash seed and locale of Python

    # Who it is

    @property
    def title(self) -> str:
        """Its name: what a program in another process announces, or what the user wrote."""
        return self._short if self.is_program else self.name

    @property
    def version(self) -> str:
        return version_of(self.target)

    @property
    def language(self) -> str:
        if not self.is_remote:
            return "Python"
        announced = getattr(self.target, "language", "")
        return announced if isinstance(announced, str) else ""

    @property
    def model_file(self) -> Path | None:
        """The file that an engine has loaded its model from, which is then its `model`, or None."""
        file = Path(str(getattr(self.target, "model", "")))
        return file if file.is_absolute() and file.is_file() else None

    @property
    def is_program(self) -> bool:
        return self.name.startswith("cmd:")

    @property
    def is_remote(self) -> bool:
        return isinstance(self.target, type) and issubclass(self.target, RemoteTokenizer)

    @property
    def _short(self) -> str:
        name = getattr(self.target, "__name__", None)
        return name if isinstance(name, str) and name else self.name.rpartition(":")[2]

    def note(self, line: str) -> None:
        if line not in self.notes:
            self.notes.append(line)

    # Calls and their time

    @contextlib.contextmanager
    def time_limit(self, timeout_factor: float = 1, is_diagnosis: bool = False) -> Iterator[Clock]:
        """Limit the calls within the block to `timeout_factor` times the limit of a case; only calls count.

        An infinite limit around many others prepares the process once for all of them. If an implementation in another
        process is not running, it is started first, which does not count either. The seconds exclude a diagnosis.
        """
        if self.is_remote and self.target.client.pid is None:
            with contextlib.suppress(Exception):  # the first call tries it again
                self.target.client.start()
        with self.limiter.within(self.limit * timeout_factor, is_diagnosis) as clock:
            yield clock

    def call(self, what: str, function: Callable[..., T], /, *arguments: Any, **keywords: Any) -> T:
        """Call the implementation as `contained` does. Outside any finite time limit, the limit of one case applies."""
        with contextlib.nullcontext() if self.limiter.is_finite else self.time_limit():
            grace = 0.0
            if self.is_remote:
                self.target.client.time_limit, grace = self.limiter.remaining, _REMOTE_GRACE
            return self.limiter.run(what, lambda: contained(what, function, *arguments, **keywords), grace)

    # Tokenizers

    def build(self, model: Model) -> TokenizerProxy:
        """Return a tokenizer for `model`, built from fresh copies.

        For a large table, it is built only once. After a `TimedOut`, the constructor is called again only if it may
        take longer than before.
        """
        if not model.is_large:
            return self._build(model)
        seconds = self.limiter.remaining if self.limiter.is_finite else self.limit
        built, tried = self._large.get(model.name, (None, 0.0))
        if built is None or (isinstance(built, TimedOut) and seconds > tried):
            try:
                built = self._build(model)
            except CallFailed as failed:
                built = failed
            except TimedOut as late:  # its traceback would keep everything alive that the constructor has made
                built = TimedOut(late.seconds, late.call, late.answer.traceback)
            self._large[model.name] = built, seconds
        if isinstance(built, TimedOut):
            raise TimedOut(built.seconds, built.call, built.answer.traceback)
        if isinstance(built, CallFailed):
            raise built
        return built

    def _build(self, model: Model) -> TokenizerProxy:
        if self.fixed_model is not None:
            return self._proxy(f"{self._short}()")
        if model.pipeline is not None:
            return self.from_tokenizer_json(model)
        arguments, keywords = constructor_arguments(model, self.spellings)
        text = f"{self._short}({', '.join(['vocab', 'merges', 'special_tokens'][: len(arguments)])})"
        return self._proxy(text, *arguments, **keywords)

    def _proxy(self, what: str, *arguments: Any, **keywords: Any) -> TokenizerProxy:
        return self._made("the constructor", what, lambda: self.target(*arguments, **keywords))

    def _made(self, maker: str, what: str, make: Callable[[], Any]) -> TokenizerProxy:
        return TokenizerProxy(self.call(what, lambda: made(maker, make())), self.call)

    def build_from(self, arguments: Sequence[Any]) -> TokenizerProxy:
        """Return a tokenizer built from exactly these objects, so that a test can inspect them afterwards."""
        return self._proxy(f"{self._short}(...)", *arguments)

    def from_files(self, vocab: Path, merges: Path, special_tokens: Sequence[str] | None) -> TokenizerProxy:
        """Return a tokenizer loaded from `vocab.json` and `merges.txt`. The list itself is passed, not a copy."""
        arguments: list[Any] = [str(vocab), str(merges)]
        if special_tokens is not None:
            arguments.append(special_tokens if type(special_tokens) is list else list(special_tokens))
        return self._made("from_files", "from_files(...)", lambda: self.target.from_files(*arguments))

    def from_tokenizer_json(
        self, model: Model, folder: Path | None = None, change: Callable[[str], str] = str
    ) -> TokenizerProxy:
        """Load a `tokenizer.json`, in the caller's directory or in one that exists as long as the tokenizer."""
        with contextlib.ExitStack() as stack:
            path = (folder or stack.enter_context(scratch_folder())) / "tokenizer.json"
            path.write_text(change(huggingface.either_spelling(model)), "utf-8", newline="\n")
            load = "from_tokenizer_json"
            proxy = self._made(load, f"{load}(...)", lambda: self.target.from_tokenizer_json(str(path)))
            weakref.finalize(proxy, stack.pop_all().close)
        return proxy

    def train(self, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str = "gpt2") -> Trained:
        spelling = spelling_of(pattern, self.spellings, "train-")
        keywords = {} if spelling is None else {"pattern": spelling}
        return self.train_from(text, vocab_size, list(special_tokens), **keywords)

    def train_from(self, text: str, vocab_size: int, special_tokens: list[str], **keywords: str) -> Trained:
        """Train with exactly this list, so that a test can inspect it afterwards. Raises what `train` raises."""
        train = self.target.train
        result = self.call("train(...)", lambda: made("train", train(text, vocab_size, special_tokens, **keywords)))

        def has(name: str) -> bool:
            return self.call(f"train(...).{name}", hasattr, result, name)

        missing = next((name for name in ("vocab", "merges") if not has(name)), "")
        is_pair = issubclass(type(result), tuple) and tuple.__len__(result) == 2
        if missing and not is_pair:
            fix = "return a Tokenizer with .vocab and .merges, or a tuple (vocab, merges)"
            raise Malformed(f"train returned {type_name(result)}, which has no attribute {missing}; {fix}")
        if missing and issubclass(type(result[0]), list) and issubclass(type(result[1]), Mapping):
            raise Malformed("train returned (merges, vocab); return them in the other order: (vocab, merges)")
        vocab = self.call("train(...).vocab", lambda: rebuild_vocab(result[0] if missing else result.vocab))
        merges = self.call("train(...).merges", lambda: rebuild_merges(result[1] if missing else result.merges))
        self.returns_pair = bool(missing)
        if is_pair and not any(map(has, ("encode", "decode"))):
            return Trained(vocab, merges)
        return Trained(vocab, merges, TokenizerProxy(result, self.call))

    # Other processes

    @contextlib.contextmanager
    def in_new_process(self) -> Iterator[Implementation]:
        """Yield this implementation in a new process. The caller makes its first call."""
        other = self._spawned({})
        try:
            yield other
        finally:
            other.target.close()

    def elsewhere(self, environment: Mapping[str, str]) -> Implementation:
        """Return the same implementation in a process with these environment variables, which later callers share."""
        key = repr(environment)
        if key not in self._elsewhere:
            self._elsewhere[key] = self._spawned(environment)
        return self._elsewhere[key]

    def take_expression(self, expression: str) -> None:
        """Find out whether the constructor takes a split pattern without a name, if it takes others as expressions."""
        if self.conventions["pattern"] == expression or self.takes_expression(expression, says_why=True):
            self.capabilities |= {f"pattern:{pattern_name(expression)}"}

    def takes_expression(self, expression: str, prefix: str = "", says_why: bool = False) -> bool:
        """Return whether the constructor or, by the prefix `train-`, `train` takes an expression that has no name.

        Without any named pattern that it takes as an expression, it is not called.
        """
        if spelling_of(expression, self.spellings, prefix) is None:
            return False
        with restored():
            return capabilities.Prober(self, self._stderr).takes(expression, prefix, says_why)

    def close(self) -> None:
        while self._elsewhere:
            self._elsewhere.popitem()[1].target.close()

    def with_target(self, target: Any) -> Implementation:
        """Return another implementation with the same capabilities, which are not probed."""
        other = copy.copy(self)
        other.target, other._large = target, {}
        return other

    def made_by(self, makers: Collection[str]) -> Implementation:
        """Return this implementation, without the capabilities that tokenizers of one of these methods lack."""
        lacking = frozenset[str]().union(*(self.lacking.get(maker, ()) for maker in makers))
        if not lacking:
            return self
        if lacking not in self._limited:
            other = self._limited[lacking] = copy.copy(self)
            other.capabilities = self.capabilities - lacking
        return self._limited[lacking]

    def missing(self, needs: Iterable[str], makers: Collection[str]) -> str | None:
        """Return the first of these needs that the implementation, or a tokenizer of one of these methods, lacks."""
        for need in needs:
            if need not in self.capabilities:
                return self.uncallable.get(need, need)
            if maker := next((maker for maker in makers if need in self.lacking.get(maker, ())), None):
                return f"no {need} after {maker}"
        return None

    def _spawned(self, environment: Mapping[str, str]) -> Implementation:
        assert self.spawn is not None
        other = self.with_target(self.call("a new process", self.spawn, environment))
        other.spawn = None
        other.capabilities = self.capabilities - {"new process", "shared memory"}
        return other


def constructor_arguments(model: Model, spellings: Mapping[str, str]) -> tuple[list[Any], dict[str, Any]]:
    vocab, merges, special_tokens = model.fresh()
    arguments: list[Any] = [vocab, merges]
    if special_tokens is not None:
        arguments.append(special_tokens)
    spelling = spelling_of(model.pattern, spellings)
    return arguments, {} if spelling is None else {"pattern": spelling}


def spelling_of(pattern: str, spellings: Mapping[str, str], prefix: str = "") -> str | None:
    """Return how to pass a pattern: an expression without a name as it is, if those with one are expressions, too."""
    if pattern in PATTERNS or not any(spellings.get(f"{prefix}{name}") == PATTERNS[name] for name in PATTERNS):
        return spellings.get(f"{prefix}{pattern}")
    return pattern


def load(
    name: str,
    trainer: str | None = None,
    isolate: bool | Confinement = False,
    limit: float = 10.0,
    stderr: int = 2,
    target: object = None,
) -> Implementation:
    """Return the implementation that `--adapter` names, or `target` under this name. What it prints goes to stderr.

    Raises:
        LoadError: if it cannot be imported or tested; one line.
    """
    is_program = name.startswith("cmd:")
    confinement = isolate if isinstance(isolate, Confinement) else None

    def resolved() -> Any:
        if isolate and not is_program:
            return isolated(name, trainer, time_limit=limit, confinement=confinement)
        found = resolve(name) if target is None else target
        return with_trainer(found, trainer) if trainer else found

    def spawn(environment: Mapping[str, str]) -> Any:
        if is_program:
            return bridge(program_arguments(name), time_limit=limit, env=environment)
        return isolated(
            name, trainer, time_limit=limit, env=environment, memory=0, confinement=confinement, has_sample=False
        )

    importing = TimeLimit(stderr)
    with contextlib.redirect_stdout(sys.stderr):
        try:
            waiting = time.monotonic(), f"{name}: waiting for its import"
            with capabilities.announced(lambda: waiting, stderr), importing.within(IMPORT_FACTOR * limit):
                found = importing.run("", lambda: contained("", resolved))
            return contained("", Implementation, name, found, limit, spawn if target is None else None, stderr)
        except TimedOut as late:
            if is_program:
                see = "run bpe-conformance check-bridge to see the messages"
                raise LoadError(f"{name}: the program gave {late} to start; {see}") from None
            what = "importing it, or calling its constructor," if isolate else "importing it"
            raise LoadError(f"{name}: {what} gave {late}") from None
        except Raised as raised:
            if isinstance(raised.error, AdapterError | LoadError):
                raise LoadError(str(raised.error)) from None
            at = f" ({raised.place})" if raised.place else ""
            raise LoadError(f"{name}: inspecting it{raised}{at}") from None
