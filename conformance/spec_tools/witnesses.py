"""Independent implementations that confirm the expected values of cases under their own conventions."""

from __future__ import annotations

import contextlib
import importlib.metadata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from bpe_conformance.adapters import AdapterError, resolve
from bpe_conformance.fixtures import PATTERNS, Model
from bpe_conformance.fixtures.one_line import ascii_only
from bpe_conformance.fixtures.yaml_file import read_documents
from bpe_conformance.reference import textbook
from bpe_conformance.reference.formats import huggingface

from ..answer import Ids, Offsets, Rows, Text
from ..implementation.output import scratch_folder
from ..implementation.proxy import TokenizerProxy
from ..operations import Decode, EncodeAllowed, Merges, Operation, StoredIds, Train
from ..spec import FOLDER, Case

FILE = FOLDER / "witnesses.yaml"
HAND = "hand"
_REJECTED = "an error"
_REASON_KEYS = {"witness", "case", "reason", "source"}


@dataclass(frozen=True)
class Witness:
    name: str  # as in `agrees`
    package: str
    version: str  # the only version that is used
    adapter: str  # short name or `module:Class` of its adapter
    asked: Mapping[str, str]  # operation of a case → the convention whose value the witness computes
    upstream: str  # repository and file of the code that it runs

    def absent(self) -> str | None:
        try:
            installed = importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return f"{self.package} is not installed"
        if installed != self.version:
            return f"{self.package} {installed} is installed, not {self.version}"
        try:
            resolve(self.adapter)
        except AdapterError as error:
            return str(error)
        return None

    def answer(self, case: Case) -> Answer | None:
        """Return the answer to a case, or None if the case is outside the witness's conventions."""
        operation, model, key = case.operation, case.model, self.asked.get(case.operation.name)
        if key is None or not is_witnessed(case) or (alternatives := case.expected.under(key)) is None:
            return None
        if model is None:
            is_inside = True
        elif model.pipeline is not None:
            is_inside = hasattr(resolve(self.adapter), "from_tokenizer_json")
        else:
            is_open = key == "bytes" and any(is_ambiguous(model, text) for text in operation.texts())
            is_inside = _can_hold(model, key) and not is_open
        return ask(resolve(self.adapter), operation, model, alternatives[0]) if is_inside else None


@dataclass(frozen=True)
class Answer:
    """The answer of a witness and the expected value, in the same form."""

    got: Any
    expected: Any

    @property
    def agrees(self) -> bool:
        return bool(self.got == self.expected)


def ask(target: Any, operation: Operation, model: Model | None, expected: Any) -> Answer | None:
    """Return the answer of an adapter, or None if the question is outside the adapter's conventions."""
    if isinstance(operation, Train):
        return _training(target, operation, expected)
    table: Any = model
    if isinstance(operation, EncodeAllowed):
        right: Any = list(expected.ids) if isinstance(expected, Ids) else _REJECTED
        return Answer(_ask(lambda: _encoded(build(target, table), operation)), right)
    if isinstance(operation, Decode):
        methods = ("decode", "decode_bytes")[: 1 + hasattr(target, "decode_bytes")]
        right = [expected.text, operation.data(table)][: len(methods)]
        return Answer(_ask(lambda: [getattr(build(target, table), name)([*operation.ids]) for name in methods]), right)
    if isinstance(expected, Ids | Rows):
        right = list(map(list, expected.rows if isinstance(expected, Rows) else (expected.ids,)))
        return Answer(_ask(lambda: [list(build(target, table).encode(text)) for text in operation.texts()]), right)
    if isinstance(expected, Text | Offsets):
        return Answer(_ask(lambda: operation.of(TokenizerProxy(build(target, table)))), expected)
    return None


def _encoded(tokenizer: Any, asked: EncodeAllowed) -> Any:
    allowed = "all" if asked.allowed_special == "all" else set(asked.allowed_special)
    with contextlib.suppress(ValueError):
        return list(tokenizer.encode(asked.text, allowed_special=allowed, disallowed_special=asked.disallowed_special))
    return _REJECTED


def is_witnessed(case: Case) -> bool:
    """Return whether `case` has a value that can be recomputed. Other cases state a rule, such as an error."""
    return bool(case.expected) and (case.expected.is_computed or isinstance(case.expected.alternatives[0], StoredIds))


def load_witnesses() -> list[Witness]:
    (document,) = read_documents(FILE)
    return [Witness(name, **raw) for name, raw in document.value.items()]


class Disagreements:
    """Known differences of witnesses, each with its reason, from the `disagreements.yaml` of a spec."""

    def __init__(self, file: Path, cases: Iterable[str], witnesses: Sequence[Witness]) -> None:
        self._reasons: dict[tuple[str, str], str] = {}
        self._met: set[tuple[str, str]] = set()
        known, names = set(cases), {witness.name for witness in witnesses}
        for document in read_documents(file) if file.exists() else ():
            for index, raw in enumerate(document.value):
                if not isinstance(raw, dict) or set(raw) != _REASON_KEYS:
                    raise document.error((index,), f"a disagreement has the keys {', '.join(sorted(_REASON_KEYS))}")
                if raw["case"] not in known:
                    raise document.error((index, "case"), f"there is no case {raw['case']}")
                if raw["witness"] not in names:
                    raise document.error((index, "witness"), f"there is no witness {raw['witness']}")
                self._reasons[raw["witness"], raw["case"]] = raw["reason"]

    def excuse(self, witness: Witness, case: Case) -> bool:
        """Return whether a difference between the two is recorded, and remember that it was seen."""
        pair = (witness.name, case.id)
        self._met.add(pair)
        return pair in self._reasons

    def stale(self, asked: Iterable[str]) -> Iterator[str]:
        """Yield a line for each recorded difference that a witness of `asked` no longer shows."""
        present = set(asked)
        for witness, case in self._reasons:
            if witness in present and (witness, case) not in self._met:
                yield f"disagreements.yaml: {witness} agrees with {case}; delete the entry"


def _can_hold(model: Model, key: str) -> bool:
    """Return whether a witness can represent a model unchanged, so that its answer does not depend on its adapter."""
    if model.is_gpt2:
        return True
    entries = set(model.vocab.values())
    special = {token.encode("utf-8", "surrogatepass") for token in model.special_tokens or ()}
    is_unique = len(entries) == len(model.vocab) and not special & model.learned
    by_bytes = key == "pair" or (special <= entries and model.ranks_by_bytes)
    return is_unique and model.learned <= entries and by_bytes


def is_ambiguous(model: Model, text: str) -> bool:
    """Return whether two special tokens match at one position of `text`; tiktoken then chooses by hash order."""
    found = {token for token in model.special_tokens or () if token in text}
    return any(longer != shorter and longer.startswith(shorter) for shorter in found for longer in found)


def _ask(question: Any) -> Any:
    try:
        return question()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of Rust code is not an Exception
        return f"{type(error).__name__}: {ascii_only(' '.join(str(error).split()))}"


@lru_cache(maxsize=4)
def build(target: Any, model: Model) -> Any:
    if model.pipeline is not None:
        with scratch_folder() as folder:
            huggingface.write(folder / "tokenizer.json", model)
            make = getattr(target, "from_tokenizer_json", None) or target.from_model_file
            return make(str(folder / "tokenizer.json"))
    keywords = {"pattern": model.expression} if model.pattern != "gpt2" else {}
    return target(*model.fresh(), **keywords)


def _training(target: Any, asked: Train, expected: Merges) -> Answer | None:
    size, special, merges = asked.vocab_size, list(dict.fromkeys(asked.special)), list(expected.merges)
    learned = {*(left + right for left, right in merges), *(bytes([byte]) for byte in range(256))}
    conventions = target.conventions
    cuts = conventions.get("train_special") != "text"
    if cuts and any(token in asked.text or token.encode("utf-8") in learned for token in special):
        return None
    if special and not _takes_special_tokens(target):  # they do not occur in the text: train without them
        if expected.entries is not None:
            return None
        size, special = size - len(special), []
    if conventions.get("tie_break") == "first-seen" and len(merges) < size - 256 - len(special):
        return None  # tiktoken's educational trainer raises an error when no pair is left
    numbering = [conventions.get("byte_order", "raw"), conventions.get("id_layout", "bytes-specials-merges")]
    vocab = textbook.build_vocab(merges, special, *numbering)
    if expected.entries is not None and vocab != textbook.build_vocab(merges, special):
        return None  # the case has the ids of another layout
    keywords = {"pattern": PATTERNS[asked.pattern]} if asked.pattern != "gpt2" else {}

    def train() -> Any:
        trained = target.train(asked.text, size, list(special), **keywords)
        return [list(trained.merges), dict(trained.vocab)]

    return Answer(_ask(train), [merges, vocab])


@cache
def _takes_special_tokens(target: Any) -> bool:
    try:
        target.train("ab", 258, ["<|e|>"])
    except NotImplementedError:
        return False
    except Exception:
        return True  # training on the case shows the error
    return True


def present(witnesses: Iterable[Witness]) -> tuple[list[Witness], list[str]]:
    here, lines = [], []
    for witness in witnesses:
        if (why := witness.absent()) is None:
            here.append(witness)
        else:
            lines.append(f"{witness.name} is skipped: {why}; its recorded marks stay")
    return here, lines
