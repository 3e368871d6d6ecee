"""An implementation behind the adapter protocol: what it offers, and its answers as plain values."""

from __future__ import annotations

import contextlib
import inspect
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Merge, Model, gpt2_files, read_model
from bpe_conformance.fixtures.answers import type_name

from . import environment as surroundings
from .containment import CallFailed, Malformed, Raised, TimedOut, call, describe, limits
from .proxy import TokenizerProxy, kind, rebuild_merges, rebuild_vocab
from .scratch import scratch_folder

CONVENTIONS: dict[str, tuple[str, ...]] = {
    "tie_break": ("lex-greater", "lex-smaller", "smaller-ids", "first-seen", "unspecified"),
    "byte_order": ("raw", "gpt2"),
    "id_layout": ("bytes-specials-merges", "specials-bytes-merges", "bytes-merges-specials"),
    "lookup": ("pair", "bytes"),
}
SpawnFactory = Callable[[Mapping[str, str]], Any]
METHODS = ("encode", "decode", "encode_iterable", "encode_batch", "decode_bytes", "save", "from_files", "train")
TRIVIAL = read_model({"merges": [["a", "b"]]})
SPECIAL = read_model({"merges": [["a", "b"]], "special_tokens": ["<|e|>"], "extra": [[257, "<|e|>"]]})


class MisshapenAdapter(Exception):
    """What `--adapter` names cannot be judged. The message is one line: what is wrong, and the fix."""


def unanswered(name: str, late: str) -> str:
    """Return the line on an adapter that cannot be had in time.

    Args:
        name: as `--adapter` names it.
        late: what came instead of it.
    """
    if name.startswith("cmd:"):
        return f"{name}: the program gives {late} to start; bpe-conformance check-bridge shows what goes to and fro"
    return f"{name}: importing it gives {late}"


@dataclass(frozen=True)
class Trained:
    """What training returned: id → bytes, merges in order, and the tokenizer if there is one."""

    vocab: dict[int, bytes]
    merges: list[Merge]
    proxy: TokenizerProxy | None = field(default=None, compare=False)

    def tokenizer(self) -> TokenizerProxy | None:
        """Return the tokenizer if it encodes; one behind a pipe tells only when it is asked."""
        if self.proxy is None or not call("hasattr", hasattr, self.proxy.instance, "encode"):
            return None
        try:
            self.proxy.encode("")
        except Raised as raised:
            if isinstance(raised.error, NotImplementedError):
                return None
            raise
        return self.proxy


class Implementation:
    """The implementation under test.

    Attributes:
        name: what `--adapter` said.
        notes: what the user is told beside the results.
        conventions: every convention, the declared ones in place of the defaults.
        declared: the declared ones that differ from the defaults.
        fixed_model: the name of the only model that it has, or None if it takes any.
        capabilities: of `METHODS`, those it offers; `allowed_special`, where `encode` has parameters of the names
            `allowed_special` and `disallowed_special`; `special` and `train-special`, where special tokens are taken
            by the constructor and by `train`; `pattern` and `train-pattern` with the pattern names behind a colon
            (`pattern:cl100k`).
        whole: seconds that the case or law that is judged may take, or infinity.
    """

    def __init__(self, name: str, target: Any, time_limit: float = 10.0, again: SpawnFactory | None = None) -> None:
        """Look at `target` and settle, once, what it offers.

        Args:
            name: how the user named it.
            target: a class or factory of the adapter protocol.
            time_limit: seconds for each probe, and for one case.
            again: gives the same target from a new process with the environment variables that it is passed; None
                if there is no such way.

        Raises:
            MisshapenAdapter: if it offers nothing that can be judged, or declares what the spec does not know.
        """
        self.name = name
        self.notes: list[str] = []
        self._again = again
        self._target = target
        self._large: dict[str, TokenizerProxy | CallFailed] = {}
        self._time_limit = time_limit
        self.whole = self._end = math.inf
        if not callable(target):
            raise MisshapenAdapter(f"{name} is {kind(target)}; a class or a function is wanted")
        self.fixed_model = _fixed_model(target)
        self.declared, self.conventions = _conventions(name, target)
        self._pattern_spelling: dict[str, str] = {}
        with surroundings.kept():  # what the probes bring to light here, the cases tell
            self.capabilities = frozenset(self._settle())
        if not self.capabilities & {"train", "encode", "decode"}:
            raise MisshapenAdapter(
                f"{name} offers none of train, encode and decode; give it the methods of the adapter protocol"
            )

    @property
    def title(self) -> str:
        """What to call it: what a program behind the bridge announces, or as the user named it."""
        return self._short if self.name.startswith("cmd:") else self.name

    @property
    def version(self) -> str:
        """The implementation's own version, as its `version` or its package's `__version__` says, or ""."""
        own = getattr(self._target, "version", None)
        package = str(getattr(self._target, "__module__", "")).partition(".")[0]
        found = own if isinstance(own, str) else getattr(sys.modules.get(package), "__version__", "")
        return found if isinstance(found, str) else ""

    @property
    def language(self) -> str:
        """What it is written in, as a program behind the bridge announces it; Python's version for one in Python."""
        announced = getattr(self._target, "language", "") if self._remote else ""
        return announced if isinstance(announced, str) and announced else "" if self._remote else "Python"

    @property
    def limit(self) -> float:
        """Seconds for one case."""
        return self._time_limit

    @property
    def left(self) -> float:
        """Seconds that are left of the case or law."""
        return self._end - time.monotonic()

    def within(self, timeout_factor: int = 1) -> AbstractContextManager[None]:
        """Return the limits of one case, `timeout_factor` times as long as usual.

        A process of its own gets a little less time than the case, so that its own message is the one shown. If
        the case before has ended it, it is started here, and the case does not pay for what it imports.
        """
        seconds = self._time_limit * timeout_factor
        self.whole = seconds or math.inf
        self._end = time.monotonic() + self.whole
        if self._remote:
            self._target.connection.time_limit = 0.9 * seconds
            if self._target.connection.pid is None:
                with contextlib.suppress(Exception):  # the case tries it again, and tells
                    self._target.connection.start()
        return limits(seconds)

    @property
    def _remote(self) -> bool:
        """Whether the implementation runs in a process of its own, behind the JSON-lines bridge."""
        connection = vars(self._target).get("connection") if isinstance(self._target, type) else None
        return connection is not None and hasattr(connection, "generation")

    def build(self, model: Model) -> TokenizerProxy:
        """Return a tokenizer for `model`, built from fresh copies. That of a large table is built once.

        Raises:
            CallFailed: if the constructor raises.
        """
        if not model.is_large:
            return self._build(model)
        if model.name not in self._large:
            try:
                self._large[model.name] = self._build(model)
            except CallFailed as fault:
                self._large[model.name] = fault
        built = self._large[model.name]
        if isinstance(built, CallFailed):
            raise built
        return built

    def _build(self, model: Model) -> TokenizerProxy:
        if self.fixed_model is not None:
            return TokenizerProxy(call(f"{self._short}()", self._target))
        arguments, keywords = constructor_arguments(model, self._pattern_spelling)
        text = f"{self._short}({', '.join(['vocab', 'merges', 'special_tokens'][: len(arguments)])})"
        return TokenizerProxy(call(text, self._target, *arguments, **keywords))

    def note(self, told: str) -> None:
        """Have the reader told something, once."""
        if told not in self.notes:
            self.notes.append(told)

    @contextlib.contextmanager
    def in_new_process(self, environment: Mapping[str, str]) -> Iterator[Implementation]:
        """Give the same implementation in a process of its own, with other environment variables."""
        assert self._again is not None
        target = call("a new process", self._again, environment)
        try:
            yield call("a new process", Implementation, self.name, target, self._time_limit)
        finally:
            target.close()

    def build_from(self, arguments: Sequence[Any]) -> TokenizerProxy:
        """Return a tokenizer built from exactly these objects, so that a law can look at them afterwards."""
        return TokenizerProxy(call(f"{self._short}(...)", self._target, *arguments))

    def from_files(self, vocab: Path, merges: Path, special_tokens: Sequence[str] | None) -> TokenizerProxy:
        """Return a tokenizer loaded from `vocab.json` and `merges.txt`; a list is passed on itself, not a copy."""
        arguments: list[Any] = [str(vocab), str(merges)]
        if special_tokens is not None:
            arguments.append(special_tokens if type(special_tokens) is list else list(special_tokens))
        return TokenizerProxy(call("from_files(...)", self._target.from_files, *arguments))

    def train(self, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str = "gpt2") -> Trained:
        """Train and return plain values.

        Raises:
            CallFailed: if training raises, or what it returns has no readable vocabulary and merges.
        """
        keywords = {"pattern": self._pattern_spelling[f"train-{pattern}"]} if pattern != "gpt2" else {}
        return self.train_from(text, vocab_size, list(special_tokens), **keywords)

    def train_from(self, text: str, vocab_size: int, special_tokens: list[str], **keywords: str) -> Trained:
        """The same with exactly this list, so that a law can look at it afterwards."""
        result = call("train(...)", self._target.train, text, vocab_size, special_tokens, **keywords)
        missing = [name for name in ("vocab", "merges") if not call(f"train(...).{name}", hasattr, result, name)]
        pair = issubclass(type(result), tuple) and tuple.__len__(result) == 2
        if missing and pair:
            return Trained(rebuild_vocab(result[0]), rebuild_merges(result[1]))
        if missing:
            fix = "return a Tokenizer with .vocab and .merges, or a tuple (vocab, merges)"
            raise Malformed(f"train returned {type_name(result)}, which has no attribute {missing[0]}; {fix}")
        vocab = rebuild_vocab(call("train(...).vocab", getattr, result, "vocab"))
        merges = rebuild_merges(call("train(...).merges", getattr, result, "merges"))
        bare = pair and not any(call("train(...)", hasattr, result, name) for name in ("encode", "decode"))
        return Trained(vocab, merges, None if bare else TokenizerProxy(result))

    @property
    def _short(self) -> str:
        name = getattr(self._target, "__name__", None)
        return name if isinstance(name, str) and name else self.name.rpartition(":")[2]

    def _settle(self) -> Iterator[str]:
        if self._again is not None:
            yield "new process"
        if not self._remote:
            yield "shared memory"
        offered = self._offered()
        yield from offered
        if self._trains(bool(offered)) and not self._refuses(lambda: self.train("ab ab", 257, [])):
            yield "train"
            if not self._refuses(lambda: self.train("ab<|e|>ab", 258, list(SPECIAL.special_tokens or ()))):
                yield "train-special"
            yield from self._patterns("train-pattern", self._target.train, self._probe_training)
        if offered and self.fixed_model is None and not self._refuses(lambda: self._build(SPECIAL)):
            yield "special"
        if "encode" in offered and self.fixed_model is None:
            yield from self._patterns("pattern", self._target, self._probe_encoding)

    def _trains(self, encodes: bool) -> bool:
        """Whether there is a train that can be called; where the rest can be judged, one of a wrong shape is noted."""
        if not callable(getattr(self._target, "train", None)):
            return False
        try:
            _check_train(self.name, self._target)
        except MisshapenAdapter as misshapen:
            if not encodes:
                raise
            self.notes.append(f"training is not judged: {misshapen}")
            return False
        return True

    def _offered(self) -> list[str]:
        """Return the methods other than train that are there and not refused in a trivial probe."""
        target = self._target
        is_class = isinstance(target, type)
        if is_class and not any(hasattr(target, name) for name in ("encode", "decode")) and not self._constructible():
            return []
        self._check_constructor()
        try:
            with limits(self._time_limit):
                proxy: TokenizerProxy | None = self._build(TRIVIAL)
        except Raised as raised:
            if isinstance(raised.error, NotImplementedError):
                told = describe(raised.error).partition(": ")[2]
                if told not in ("", NotImplementedError.__name__):
                    self.notes.append(f"the constructor refuses: {told}")
                return []
            proxy = None
        except KeyboardInterrupt:
            raise
        except BaseException:
            proxy = None
        if proxy is None:
            found = [name for name in METHODS[:6] if callable(getattr(target, name, None))]
            return found if is_class else ["encode", "decode"]
        built = proxy
        found = [name for name in METHODS[:6] if callable(getattr(built.instance, name, None))]
        found = [name for name in found if not self._refuses(partial(self._probe, built, name))]
        if callable(getattr(target, "from_files", None)) and not self._refuses(self._probe_loading):
            found.append("from_files")
        chooses = "encode" in found and _takes(built.instance.encode, "allowed_special", "disallowed_special")
        if chooses and not self._refuses(lambda: built.encode_allowed("ab", (), ())):
            found.append("allowed_special")
        return found

    def _constructible(self) -> bool:
        try:
            self._check_constructor()
        except MisshapenAdapter:
            return False
        return True

    def _check_constructor(self) -> None:
        try:
            signature = inspect.signature(self._target)
        except (TypeError, ValueError):
            return
        if self.fixed_model is not None:
            return
        try:
            signature.bind({}, [], [])
            signature.bind({}, [])
        except TypeError as error:
            raise MisshapenAdapter(
                f"{self.name} cannot be called as (vocab, merges, special_tokens): {error}; wanted is "
                "def __init__(self, vocab: dict[int, bytes], merges: list[tuple[bytes, bytes]], "
                "special_tokens: list[str] | None = None)"
            ) from None

    def _refuses(self, probe: Callable[[], object]) -> bool:
        """Whether a trivial call raises NotImplementedError; other exceptions are left to the cases.

        Raises:
            MisshapenAdapter: if the answer has a shape that no case can take.
        """
        try:
            with limits(self._time_limit):
                probe()
        except Raised as raised:
            return isinstance(raised.error, NotImplementedError)
        except Malformed as misshapen:
            raise MisshapenAdapter(f"{self.name}: {misshapen}") from None
        except KeyboardInterrupt:
            raise
        except BaseException:
            return False
        return False

    @staticmethod
    def _probe(proxy: TokenizerProxy, name: str) -> None:
        if name == "encode":
            proxy.encode("ab")
        elif name in ("decode", "decode_bytes"):
            getattr(proxy, name)([97])
        elif name == "encode_iterable":
            proxy.stream(["ab"])
        elif name == "encode_batch":
            proxy.encode_batch(["ab"])
        elif name == "save":
            with scratch_folder() as folder:
                proxy.save(folder)

    def _probe_loading(self) -> None:
        with scratch_folder() as folder:
            self.from_files(*gpt2_files.write(TRIVIAL, folder), None)

    def _patterns(self, kind: str, function: Any, probe: Callable[[str], bool]) -> Iterator[str]:
        """Settle which patterns are offered, and whether by exact string or by name."""
        if not _takes(function, "pattern"):
            return
        prefix = "train-" if kind == "train-pattern" else ""
        for name, string in PATTERNS.items():
            if name == "gpt2":
                continue
            for spelling in (string, name):
                self._pattern_spelling[prefix + name] = spelling
                try:
                    with limits(self._time_limit):
                        works = probe(name)
                except KeyboardInterrupt:
                    raise
                except TimedOut:
                    return
                except BaseException:
                    works = False
                if works:
                    yield f"{kind}:{name}"
                    break

    def _probe_encoding(self, pattern: str) -> bool:
        model = Model(TRIVIAL.vocab, TRIVIAL.merges, None, pattern)
        return self._build(model).encode("xab") == [120, 256]

    def _probe_training(self, pattern: str) -> bool:
        return self.train("ab", 257, [], pattern).merges == [(b"a", b"b")]


def constructor_arguments(model: Model, spellings: Mapping[str, str]) -> tuple[list[Any], dict[str, Any]]:
    """Return what the constructor is called with for `model`: fresh copies."""
    vocab, merges, special_tokens = model.fresh()
    arguments: list[Any] = [vocab, merges]
    if special_tokens is not None:
        arguments.append(special_tokens)
    return arguments, {"pattern": spellings[model.pattern]} if model.pattern != "gpt2" else {}


def _fixed_model(target: Any) -> str | None:
    model = getattr(target, "model", None)
    return model if isinstance(model, str) else None


def _conventions(name: str, target: Any) -> tuple[dict[str, str], dict[str, str]]:
    declared = getattr(target, "conventions", None)
    declared = {} if declared is None else declared
    if not isinstance(declared, Mapping):
        raise MisshapenAdapter(f"{name}: conventions is {kind(declared)}; a mapping is wanted")
    values = {key: options[0] for key, options in CONVENTIONS.items()}
    for key, value in declared.items():
        if key not in CONVENTIONS:
            raise MisshapenAdapter(f"{name}: unknown convention {key!r}; known are {', '.join(CONVENTIONS)}")
        if value not in CONVENTIONS[key]:
            raise MisshapenAdapter(f"{name}: {key} is {value!r}; one of {', '.join(CONVENTIONS[key])} is wanted")
        values[key] = str(value)
    defaults = {key: options[0] for key, options in CONVENTIONS.items()}
    return {key: value for key, value in values.items() if value != defaults[key]}, values


def _check_train(name: str, target: Any) -> None:
    if isinstance(target, type):
        static = inspect.getattr_static(target, "train", None)
        if inspect.isfunction(static):
            raise MisshapenAdapter(
                f"{name}: train is a method of an instance; wanted is "
                "@classmethod def train(cls, text, vocab_size, special_tokens) -> Tokenizer"
            )
    try:
        inspect.signature(target.train).bind("", 256, [])
    except TypeError as error:
        raise MisshapenAdapter(
            f"{name}: train cannot be called as (text, vocab_size, special_tokens): {error}"
        ) from None
    except ValueError:
        return


def _takes(function: Any, *names: str) -> bool:
    """Whether `function` has parameters of these names; `**keywords` has none."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return all(name in parameters for name in names)


__all__ = ["CONVENTIONS", "Implementation", "MisshapenAdapter", "TokenizerProxy", "Trained", "describe"]
