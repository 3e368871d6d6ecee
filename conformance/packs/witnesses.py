"""Independent engines that confirm the values of a pack, if its model fits their conventions."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import regex

from bpe_conformance.adapters import AdapterError, resolve
from bpe_conformance.fixtures import PATTERNS, Model, read_token
from bpe_conformance.reference import textbook

from ..command_error import CommandError
from ..operations import Expected
from ..terminal.show import text_line
from .encoding_cases import texts_of

Json = dict[str, Any]


@dataclass(frozen=True)
class Engine:
    """An independent implementation: its adapter, its package, and its lookup."""

    adapter: str
    package: str
    lookup: str


ENGINES = (Engine("tiktoken", "tiktoken", "bytes"), Engine("huggingface", "tokenizers", "pair"))


@dataclass
class Agreement:
    """The answers of the engines.

    Attributes:
        asked: package → its version, its lookup, and the number of cases it confirms.
        not_asked: package → why it was not asked.
        differs: the cases in which an engine differs for a known reason.
    """

    asked: dict[str, Json] = field(default_factory=dict)
    not_asked: dict[str, str] = field(default_factory=dict)
    differs: list[Json] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return the lines to print."""
        lines = [
            f"agrees    {name} {one['version']} ({one['lookup']} lookup) in {one['agrees']:,} cases"
            for name, one in self.asked.items()
        ]
        lines += [f"not run   {name}: {why}" for name, why in self.not_asked.items()]
        for reason in dict.fromkeys(row["reason"] for row in self.differs):
            cases = [row for row in self.differs if row["reason"] == reason]
            lines.append(f"differs   {cases[0]['engine']} in {len(cases)} cases: {reason}")
        return lines


def agree(model: Model, cases: Sequence[Json], engines: Sequence[Engine] = ENGINES) -> Agreement:
    """Compare every value with every installed engine.

    Raises:
        CommandError: if one differs for no known reason.
    """
    agreement = Agreement()
    for engine in engines:
        built = _built(engine, model)
        if isinstance(built, str):
            agreement.not_asked[engine.package] = built
            continue
        agreed = 0
        for case in cases:
            expected = _expected(case, engine.lookup)
            got = _asked(built, case)
            if got == expected:
                agreed += 1
                continue
            reason = _reason(engine, model, case)
            if reason is None:
                raise CommandError(
                    f"{case['id']}: {engine.package} gives {text_line(str(got))}, the textbook "
                    f"{text_line(str(expected))} for {text_line(str(case['input']))}; no pack is written"
                )
            agreement.differs.append({"engine": engine.package, "case": case["id"], "reason": reason})
        version = importlib.metadata.version(engine.package)
        agreement.asked[engine.package] = {"version": version, "lookup": engine.lookup, "agrees": agreed}
    return agreement


def _built(engine: Engine, model: Model) -> Any:
    """Return the engine with the model, or why it cannot be built."""
    if engine.lookup == "bytes" and not model.ranks_by_bytes:
        return "its lookup by bytes cannot represent this model"
    try:
        target: Any = resolve(engine.adapter)
    except AdapterError as error:
        return str(error)
    keywords = {"pattern": PATTERNS[model.pattern]} if model.pattern != "gpt2" else {}
    try:
        return target(dict(model.vocab), list(model.merges), list(model.special_tokens or ()), **keywords)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of native code is not an Exception
        return f"it rejects the model or the pattern: {' '.join(str(error).split())[:160]}"


def _expected(case: Mapping[str, Any], lookup: str) -> Any:
    if case["op"] == "decode":
        return case["expect"]["text"]
    if case["op"] == "batch":
        return [row["ids"] for row in case["expect"]["batch"]]
    (found,) = Expected.read(case["expect"]).under(lookup) or ()
    return list(found.ids)


def _asked(tokenizer: Any, case: Mapping[str, Any]) -> Any:
    try:
        if case["op"] == "decode":
            ids = case["input"]["ids"]
            text = tokenizer.decode(list(ids))
            data = tokenizer.decode_bytes(list(ids)) if hasattr(tokenizer, "decode_bytes") else None
            expected = read_token(case["expect"].get("bytes", case["expect"]["text"]))
            return text if data in (None, expected) else data
        rows = [list(tokenizer.encode(text)) for text in texts_of(case["input"])]
        return rows if case["op"] == "batch" else rows[0]
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of native code is not an Exception
        return f"{type(error).__name__}: {error}"


def _reason(engine: Engine, model: Model, case: Mapping[str, Any]) -> str | None:
    """Return the known reason why an engine differs in a case, or None."""
    for text in texts_of(case["input"]) if engine.package == "tiktoken" else ():
        if _ambiguous(text, model.special_tokens or ()):
            return "if two special tokens begin at one position, it chooses by hash order"
        if _unmatched(text, model):
            return "it drops text that the pattern does not match"
    return None


def _ambiguous(text: str, special: Sequence[str]) -> bool:
    found = [token for token in special if token in text]
    return any(one != other and one.startswith(other) for one in found for other in found)


def _unmatched(text: str, model: Model) -> bool:
    segments = textbook.cut_special(text, model.special_tokens or ())
    return any(regex.sub(PATTERNS[model.pattern], "", part) for part, special in segments if not special)
