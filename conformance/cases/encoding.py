"""Judges encodings: the ids of a text, whole, in chunks, or from files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bpe_conformance.fixtures import Model, read_token
from bpe_conformance.fixtures.spec import Case

from ..implementation.containment import CallFailed, Raised
from ..implementation.implementation import Implementation
from ..implementation.proxy import TokenizerProxy
from ..terminal import show
from . import dependence, divergence
from .difference import Difference, faulty
from .expectations import expected_ids, value_for, whole_text

ACCEPTED = "no ids"
"""The answer of a constructor that raises nothing."""


def judge_ids(
    case: Case,
    model: Model,
    implementation: Implementation,
    ask: Callable[[TokenizerProxy], list[int]],
    shown: str,
    build: Callable[[], TokenizerProxy] | None = None,
    asked: str = "",
) -> Difference | None:
    """Return how the ids that the implementation gives differ from those that `case` expects.

    Args:
        case: what is judged.
        model: its table.
        implementation: the implementation.
        ask: gets the ids from a tokenizer.
        shown: the input, for people.
        build: gives the tokenizer, where it is not built from `model`.
        asked: what was asked beside the input, for people.
    """
    expect = value_for(case.expect, implementation.conventions["lookup"])
    if expect is None:
        return None
    text = whole_text(case)
    got: list[int] | CallFailed
    spelled = b""
    try:
        proxy = build() if build else implementation.build(model)
        got = ask(proxy) if case.op != "construct" else []
        if any("lossless" in one for one in _alternatives(expect)):
            spelled = _spelled(got, model, proxy)
    except CallFailed as fault:
        got = fault
    if any(_ids_match(one, model, text, got, spelled) for one in _alternatives(expect)):
        return None
    line = f"{shown}{_hex(text)}{asked}        {model_line(model)}" if case.op != "construct" else model_line(model)
    if case.op == "construct" and not isinstance(got, CallFailed):
        return Difference(line, _ids_line(expect, model, got), "the constructor accepted the table", answer=ACCEPTED)
    splitting = case.clause.section == "SPLIT"
    lookup = implementation.conventions["lookup"]
    found = _difference(line, _ids_line(expect, model, got), got, model, text, expect, splitting, lookup)
    if case.op in ("stream", "load", "encode_allowed"):
        depends = dependence.on_encode(text, model, implementation, got)
    elif _encodable(text):
        depends = dependence.on_pieces(text, case.clause.section, model, implementation, got)
    else:
        depends = ""
    return replace(found, depends=depends)


def _alternatives(expect: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for one in expect.get("any_of", (expect,)):
        if "by_convention" in one:
            yield from one["by_convention"].values()
        elif "any_of" in one:
            yield from _alternatives(one)
        else:
            yield one


def _spelled(ids: Sequence[int], model: Model, proxy: TokenizerProxy) -> bytes:
    """Return the bytes of `ids`: by the model, or, for the new id of a special token, by the implementation."""
    special = set(model.special_tokens or ())
    parts = []
    for index in ids:
        token = model.vocab.get(index, b"")
        if not token and special and (text := proxy.decode([index])) in special:
            token = text.encode("utf-8")
        parts.append(token)
    return b"".join(parts)


def _ids_match(expect: Mapping[str, Any], model: Model, text: str, got: list[int] | CallFailed, spelled: bytes) -> bool:
    if isinstance(got, CallFailed):
        return "error" in expect and isinstance(got, Raised) and got.is_error
    if "error" in expect:
        return False
    if "with_new_ids" in expect:
        return has_new_ids([read_token(token) for token in expect["with_new_ids"]], model, got)
    if "lossless" in expect:
        return spelled == text.encode("utf-8", "surrogatepass")
    return got == expected_ids(expect)


def has_new_ids(tokens: Sequence[bytes], model: Model, got: Sequence[int]) -> bool:
    """Whether `got` stands for `tokens`, those without an entry in the model each with one id that is not in use."""
    entries = {token: index for index, token in model.vocab.items()}
    new: dict[bytes, int] = {}
    for token, index in zip(tokens, got, strict=False):
        if token in entries:
            if index != entries[token]:
                return False
        elif index < 0 or index in model.vocab or new.setdefault(token, index) != index:
            return False
    return len(tokens) == len(got) and len(set(new.values())) == len(new)


def _ids_line(expect: Mapping[str, Any], model: Model, got: list[int] | CallFailed) -> str:
    lines = []
    for one in _alternatives(expect):
        if "error" in one:
            lines.append(f"an error ({one['error']})")
        elif "with_new_ids" in one:
            tokens = " | ".join(show.token(read_token(token)) for token in one["with_new_ids"])
            lines.append(f"{tokens}, each without an entry with a new id of its own")
        elif "lossless" in one:
            lines.append("ids whose bytes are the text")
        else:
            ids = expected_ids(one)
            around = 0 if isinstance(got, CallFailed) else show.first_difference(ids, got)
            lines.append(show.ids(ids, model.vocab, around))
    return "  or  ".join(lines)


def _difference(
    line: str,
    expected: str,
    got: list[int] | CallFailed,
    model: Model,
    text: str,
    expect: Mapping[str, Any],
    splitting: bool,
    lookup: str,
) -> Difference:
    if isinstance(got, CallFailed):
        return faulty(line, expected, got)
    plain = next((one for one in _alternatives(expect) if "ids" in one or "stored" in one), None)
    diverges, around = "", 0
    if plain is not None:
        ids = expected_ids(plain)
        around = show.first_difference(ids, got)
        diverges = (
            divergence.encoding(model, text, ids, got, splitting, lookup)
            if text.isprintable() or _encodable(text)
            else ""
        )
    return Difference(line, expected, show.ids(got, model.vocab, around), diverges)


def _encodable(text: str) -> bool:
    return not any(0xD800 <= ord(char) < 0xE000 for char in text)


def _hex(text: str) -> str:
    if len(text) > 24:
        return ""
    return f"  = {show.hex_line(text.encode('utf-8', 'surrogatepass'))}" if text else ""


def model_line(model: Model) -> str:
    """Return the table of a case in one line."""
    if model.is_large:
        return f"model {model.name}"
    name = f"model {model.name}: " if model.name else ""
    special = f", special tokens {list(model.special_tokens)!a}" if model.special_tokens else ""
    missing = sorted({bytes([byte]) for byte in range(256)} - set(model.vocab.values()))
    special += f", a vocabulary without {', '.join(map(show.token, missing))}" if missing else ""
    pattern = f", pattern {model.pattern}" if model.pattern != "gpt2" else ""
    return f"{name}merges {show.merges(model.merges)}{special}{pattern}"
