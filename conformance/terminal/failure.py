"""The text of a failure."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from bpe_conformance.fixtures import Model, read_text
from bpe_conformance.fixtures.spec import Case, Clause

from ..cases.difference import Difference
from ..cases.expectations import choice
from . import show

if TYPE_CHECKING:
    from ..properties.engine import Broken, Law
    from ..session.run import Command


def of_case(case: Case, difference: Difference, command: Command) -> str:
    """Return what the user reads when `case` fails."""
    lines = [_head(case.id, case.clause), f"  {case.clause.statement}"]
    lines += _fields(difference)
    lines.append(_field("repeat", command.repeat(case.id)))
    python = in_python(case, command, difference.chunks)
    if python is not None:
        lines.append(_field("in Python", python))
    return "\n".join(lines)


def of_law(law: Law, broken: Broken, command: Command) -> str:
    """Return what the user reads when `law` fails."""
    lines = [_head(law.id, law.clause), f"  {law.clause.statement}"]
    lines += _fields(broken.difference)
    if broken.examples > 1:
        lines.append(_field("found by", f"{broken.examples} examples, the shortest failing one shown"))
    if broken.yaml:
        lines.append("  the same as a case, ready to paste:")
        lines += [f"    {line}" for line in broken.yaml.splitlines()]
    lines.append(_field("repeat", command.repeat(law.id)))
    return "\n".join(lines)


def of_disturbance(name: str, clause: Clause | None, difference: Difference, command: Command) -> str:
    """Return what the user reads when an answer is right and the process was changed."""
    head = [_head(name, clause), f"  {clause.statement}"] if clause else [f"FAILED  {name}"]
    return "\n".join([*head, *_fields(difference), _field("repeat", command.repeat(name))])


class FailureRepr:
    """A failure's text as pytest shows it: whole where failures stand, one line in the short summary.

    The short summary of a run on a CI service is not cut to the terminal's width and would repeat the whole text.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        head, *more = text.splitlines()
        self.reprcrash = SimpleNamespace(message=" ".join([*head.split()[2:], *(line.strip() for line in more[:1])]))

    def __str__(self) -> str:
        return self.text

    def toterminal(self, writer: Any) -> None:
        """Print the whole text."""
        for line in self.text.splitlines():
            writer.line(line)


def _head(name: str, clause: Clause) -> str:
    return f"FAILED  {name:<42} {clause.id} ({clause.level.upper()})"


def _fields(difference: Difference) -> list[str]:
    lines = [
        _field("input", difference.input),
        _field("expected", difference.expected),
        _field("got", difference.got),
    ]
    if difference.diverges:
        lines.append(_field("diverges", difference.diverges))
    if difference.depends:
        lines.append(_field("depends on", difference.depends))
    lines += [_field("raised in" if number == 0 else "", frame) for number, frame in enumerate(difference.traceback)]
    return lines


def _field(name: str, value: str) -> str:
    return f"  {name:<10} {value}"


def in_python(case: Case, command: Command, chunks: Sequence[str] = ()) -> str | None:
    """Return one line of Python that asks the same, or None where none is short enough."""
    if case.op == "stream" and not chunks:
        return None
    if command.importable is None or (case.model is not None and case.model.is_large):
        return None
    module, name = command.importable
    head = f"from {module} import {name.partition('.')[0]}; "
    if case.pattern != "gpt2":
        head = f"from bpe_conformance.fixtures import PATTERNS; {head}"
    if case.op == "train":
        if "--bpe-trainer" in command.options:
            return None
        given = case.input["train"]
        special = [read_text(token) for token in given["special_tokens"]]
        pattern = f", pattern=PATTERNS[{given['pattern']!r}]" if "pattern" in given else ""
        line = f"{name}.train({read_text(given['text'])!a}, {given['vocab_size']}, {special!a}{pattern}).merges"
    else:
        if case.model is None or case.op in ("save", "load"):
            return None
        line = f"{name}({_constructor(case.model)}){_call(case, chunks)}"
        if case.op == "stream":
            line = f"list({line})"
    return head + line if len(line) <= 400 else None


def _call(case: Case, chunks: Sequence[str]) -> str:
    if case.op == "decode":
        return f".decode({case.input['ids']})"
    if case.op == "batch":
        return f".encode_batch({[read_text(text) for text in case.input['texts']]!a})"
    if case.op == "stream":
        return f".encode_iterable({list(chunks)!a})"
    if case.op == "encode_allowed":
        return f".encode({read_text(case.input['text'])!a}, {show.choice(**choice(case))})"
    return "" if case.op == "construct" else f".encode({read_text(case.input['text'])!a})"


def _constructor(model: Model) -> str:
    raw = {byte: bytes([byte]) for byte in range(256)}
    others = {index: token for index, token in model.vocab.items() if raw.get(index) != token}
    bytes_of = "{i: bytes([i]) for i in range(256)}"
    if missing := [index for index in raw if index not in model.vocab]:
        bytes_of = f"{{i: bytes([i]) for i in range(256) if i not in {missing}}}"
    vocab = f"{{**{bytes_of}, **{others}}}" if others else bytes_of
    parts = [vocab, ascii(list(model.merges))]
    if model.special_tokens is not None:
        parts.append(ascii(list(model.special_tokens)))
    if model.pattern != "gpt2":
        parts.append(f"pattern=PATTERNS[{model.pattern!r}]")
    return ", ".join(parts)
