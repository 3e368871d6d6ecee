"""A case, a clause or a law in words, and a case replayed step by step."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Model, read_text, read_token
from bpe_conformance.fixtures.spec import CLASS_OF_OP, Case, Clause, Spec
from bpe_conformance.reference import textbook

from ..cases.expectations import (
    LOOKUP_KEYS,
    TRAINING_KEYS,
    choice,
    chunkings,
    expected_ids,
    read_merges,
    whole_text,
    with_allowed,
)
from ..command_error import CommandError, unknown
from ..properties.catalogue import PROPERTIES
from ..properties.engine import Property
from ..terminal import show
from . import replay
from .replay import Cut

LABEL = 11
LONG = 600


@dataclass(frozen=True)
class View:
    """How a case is looked at.

    Attributes:
        tie_break: a key of training values (`TRAINING_KEYS`).
        lookup: pair or bytes.
        cut: what is left out.
    """

    tie_break: str = "lex-greater"
    lookup: str = "pair"
    cut: Cut = field(default_factory=Cut)

    @classmethod
    def checked(cls, tie_break: str | None, lookup: str | None, everything: bool) -> View:
        """Return the view that these options ask for.

        Raises:
            CommandError: if one names no convention.
        """
        for what, name, keys in (("tie-break", tie_break, TRAINING_KEYS), ("lookup", lookup, LOOKUP_KEYS)):
            if name is not None and name not in keys:
                raise unknown(what, name, keys, f"one of {', '.join(keys)} is wanted; explain --help")
        return cls(tie_break or "lex-greater", lookup or "pair", Cut(everything))


def explain(spec: Spec, name: str, view: View | None = None) -> Iterator[str]:
    """Return the lines that explain a case, a clause or a law.

    Raises:
        CommandError: if there is nothing of this name; the message names what is nearest.
    """
    view = view or View()
    cases = {case.id: case for case in spec.cases}
    laws = {law.id: law for law in PROPERTIES if law.clause_id in spec.clauses}
    wanted = {known.lower(): known for known in (*cases, *spec.clauses, *laws)}.get(name.lower(), name)
    if wanted in cases:
        return _case(cases[wanted], view)
    if wanted in spec.clauses:
        return _clause(spec.clauses[wanted], spec)
    if wanted in laws:
        return _law(laws[wanted], spec)
    known = (*spec.clauses, *laws, *cases)
    raise unknown("case, clause or law", name, known, "bpe-conformance list")


# Layout


def _width() -> int:
    return max(60, min(100, shutil.get_terminal_size().columns)) - 1


def _headline(name: str, right: str) -> Iterator[str]:
    gap = _width() - len(name) - len(right)
    yield from [f"{name}{' ' * gap}{right}"] if gap > 1 else [name, f"{right:>{_width()}}"]


def _prose(text: str, label: str = "") -> Iterator[str]:
    """Yield a paragraph, with a label before it."""
    head = f"  {label:{LABEL}}" if label else "  "
    yield from textwrap.wrap(
        " ".join(text.split()),
        _width(),
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_on_hyphens=False,
    )


def _value(text: str, label: str = "") -> Iterator[str]:
    """Yield what is no prose: cut at spaces where that loses nothing, else anywhere."""
    head = f"  {label:{LABEL}}"
    yield from _folded(text, head, " " * len(head))


def _folded(text: str, head: str, indent: str) -> Iterator[str]:
    while text:
        room = _width() - len(head)
        if len(text) > room:
            place = text.rfind(" ", room // 2, room)
            room = place + 1 if place > 0 else room
        yield f"{head}{text[:room]}".rstrip()
        text, head = text[room:], indent


def _replayed(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        body = line.lstrip()
        indent = "    " + line[: len(line) - len(body)]
        hanging = next((indent + " " * len(name) for name in ("corpus  ", "merge   ") if body.startswith(name)), "")
        yield from _folded(body, indent, hanging or f"{indent}  ")


# A clause, a law


def _head(clause: Clause) -> Iterator[str]:
    yield from _prose(clause.statement)
    yield ""
    yield from _prose(clause.rationale, "why")
    for number, source in enumerate(clause.sources):
        yield from _prose(source, " " if number else "sources")


def _clause(clause: Clause, spec: Spec) -> Iterator[str]:
    yield from _headline(clause.id, clause.level.upper())
    yield from _head(clause)
    if clause.uncased:
        yield from _prose(clause.uncased, "no case")
    cases = [case for case in spec.cases if case.clause.id == clause.id]
    laws = [law for law in PROPERTIES if law.clause_id == clause.id]
    if laws:
        yield from _prose(", ".join(law.id for law in laws), "laws")
    if cases:
        yield ""
        yield f"  {len(cases)} {'case' if len(cases) == 1 else 'cases'}; bpe-conformance explain CASE replays one"
        width = max(len(case.id) for case in cases)
        for case in cases:
            line = f"    {case.id:{width}}  {case.title}"
            yield from [line] if len(line) <= _width() else [f"    {case.id}", f"        {case.title}"]


def _law(law: Property, spec: Spec) -> Iterator[str]:
    clause = spec.clauses[law.clause_id]
    yield from _headline(law.id, f"{clause.id} ({clause.level.upper()}), {law.conformance_class}")
    yield from _head(clause)
    needs = ", ".join(law.needs)
    yield from _prose(law.asks, "asked")
    yield from _prose(needs, "needs")
    yield from _prose(f"pytest conformance --adapter mypkg:Tokenizer --bpe-case {law.id}", "try it")


# A case


def _case(case: Case, view: View) -> Iterator[str]:
    clause = case.clause
    yield from _headline(case.id, f"{clause.id} ({clause.level.upper()}), {CLASS_OF_OP[case.op]}")
    yield from _prose(case.title)
    yield ""
    yield from _head(clause)
    yield ""
    yield from _value(case.op, "operation")
    yield from _input(case, view)
    if case.model is not None:
        yield from _model(case.model, view)
    yield from _expected(case, view)
    if case.agrees or case.by_hand:
        yield from _prose(", ".join([*case.agrees, *(["worked out by hand"] if case.by_hand else [])]), "agrees")
    if case.source:
        yield from _prose(case.source, "from")
    if case.note:
        yield from _prose(case.note, "note")
    yield from _replay(case, view)


def _input(case: Case, view: View) -> Iterator[str]:
    given = case.input
    if case.op == "train":
        yield from _training_input(given["train"], view)
    elif case.op == "decode":
        assert case.model is not None
        yield from _value(_ids(given["ids"], case.model.vocab, view), "ids")
        if "sequence" in given:
            yield from _value(f"as a {given['sequence']}")
    elif case.op == "batch":
        for number, text in enumerate(given["texts"]):
            yield from _value(_text(read_text(text), view), "" if number else "texts")
    elif case.op == "stream":
        yield from _chunks(case, view)
    elif case.op != "save":
        yield from _value(_text(read_text(given["text"]), view), "text")
    if case.op == "encode_allowed":
        for name, tokens in choice(case).items():
            shown = "all" if tokens == "all" else ", ".join(map(show.text_line, tokens)) or "none"
            yield from _value(shown, name.removesuffix("_special"))
    files = [f"{key} {_plain(value)}" for key, value in given.items() if case.op == "load" and key != "text"]
    if files:
        yield from _value(", ".join(files), "files")


def _training_input(given: Mapping[str, Any], view: View) -> Iterator[str]:
    yield from _value(_text(read_text(given["text"]), view), "text")
    special = [show.text_line(read_text(token)) for token in given["special_tokens"]]
    yield from _value(str(given["vocab_size"]), "vocab_size")
    yield from _value(", ".join(special) or "none", "special")
    if "pattern" in given:
        yield from _value(given["pattern"], "pattern")


def _chunks(case: Case, view: View) -> Iterator[str]:
    ways = chunkings(case)
    if len(ways) > 1:
        yield from _value(_text(whole_text(case), view), "text")
        yield from _value(f"cut in two at each of {len(ways)} places", "chunks")
        return
    chunks = ways[0]
    shown = view.cut(len(chunks), replay.PIECES)
    rows = [_text(chunk, view) for chunk in chunks[:shown]]
    more = [f"... {len(chunks) - shown} more"] if shown < len(chunks) else []
    yield from _value(" | ".join([*rows, *more]) or "none", "chunks")


def _plain(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _text(text: str, view: View) -> str:
    if view.cut.everything or len(text) <= LONG:
        data = text.encode("utf-8", "surrogatepass")
        spelled = f"  = {data.hex(' ')}" if 0 < len(data) <= 24 else ""
        return f"{text!a}{spelled}"
    return show.text_line(text)


def _model(model: Model, view: View) -> Iterator[str]:
    if model.name:
        yield from _value(model.name, "model")
    else:
        shown = view.cut(len(model.merges), 2 * replay.PIECES)
        rows = [f"{rank} {replay.pair(merge)}" for rank, merge in enumerate(model.merges[:shown])]
        more = [f"... {len(model.merges) - shown} more"] if shown < len(model.merges) else []
        yield from _value("  ".join([*rows, *more]) or "none", "merges")
    if model.special_tokens is not None:
        yield from _value(", ".join(map(show.text_line, model.special_tokens)) or "none", "special")
    if model.pattern != "gpt2":
        yield from _value(model.pattern, "pattern")
    missing = [byte for byte in range(256) if bytes([byte]) not in set(model.vocab.values())]
    if missing:
        yield from _value(f"no entry for byte {', '.join(f'{byte:02x}' for byte in missing[:8])}", "vocab")


def _expected(case: Case, view: View) -> Iterator[str]:
    if "by_convention" in case.expect:
        yield "  expected   by convention"
        for key, value in case.expect["by_convention"].items():
            yield from _folded(_answer(value, case, view), f"    {key:18}", " " * 22)
        return
    alternatives = case.expect.get("any_of", [case.expect])
    for number, one in enumerate(alternatives):
        yield from _value(_answer(one, case, view), "or" if number else "expected")


def _answer(expect: Mapping[str, Any], case: Case, view: View) -> str:
    """Tell one expectation in a line."""
    vocab = case.model.vocab if case.model else {}
    if not expect:
        return "nothing yet; bpe-conformance regenerate computes it"
    if "any_of" in expect or "by_convention" in expect:
        parts = expect.get("any_of") or list(expect["by_convention"].values())
        return "  or  ".join(_answer(part, case, view) for part in parts)
    if "error" in expect:
        return f"an error ({expect['error']})"
    if "merges" in expect:
        ids = [f"; ids {_ids([i for i, _ in expect['ids']], _table(expect), view)}"] if "ids" in expect else []
        return "".join([" ".join(map(replay.pair, read_merges(expect["merges"]))) or "no merges", *ids])
    if "text" in expect:
        spelled = f", the bytes {read_token(expect['bytes']).hex(' ')}" if "bytes" in expect else ""
        return f"{_text(read_text(expect['text']), view)}{spelled}"
    if "batch" in expect:
        return "  then  ".join(_ids(row["ids"], vocab, view) for row in expect["batch"])
    if "with_new_ids" in expect:
        tokens = " | ".join(show.token(read_token(token)) for token in expect["with_new_ids"])
        return f"{tokens}; each that has no entry gets a new id of its own"
    if "ids" in expect:
        return _ids(expect["ids"], vocab, view)
    if "stored" in expect:
        return f"{_ids(expected_ids(expect), vocab, view)}; stored in fixtures/texts/gpt2-ids.json"
    told = {
        "lossless": "ids whose bytes are the text",
        "lazy": "the first id before a tenth of the chunks is read",
        "table": "vocab.json and merges.txt that hold the same table",
    }
    return told[next(iter(expect))]


def _ids(ids: Sequence[int], vocab: Mapping[int, bytes], view: View) -> str:
    shown = view.cut(len(ids), 2 * replay.PIECES)
    rows = [f"{index} {show.token(vocab[index])}" if index in vocab else f"{index} ?" for index in ids[:shown]]
    return " | ".join([*rows, *([f"... {len(ids) - shown} more"] if shown < len(ids) else [])]) or "no ids"


def _table(expect: Mapping[str, Any]) -> dict[int, bytes]:
    return {index: read_token(token) for index, token in expect["ids"]}


# The replay


def _replay(case: Case, view: View) -> Iterator[str]:
    if case.op in ("save", "construct") or "lazy" in case.expect:
        return
    yield ""
    if case.op == "train":
        yield f"  replay, ties by {view.tie_break}"
        yield from _replayed(_training(case, view))
        return
    assert case.model is not None
    if case.op == "decode":
        yield "  replay"
        yield from _replayed(replay.decoding(case.model, case.input["ids"], view.cut))
        return
    if view.lookup == "bytes" and not case.model.ranks_by_bytes:
        raise CommandError(f"the table of {case.id} is no list of ranks, which --lookup bytes needs; leave it out")
    if "disallowed" in case.expect.values():
        yield "  replay: none, the text is refused before anything is encoded"
        return
    model = with_allowed(case) if case.op == "encode_allowed" else case.model
    yield "  replay" if view.lookup == "pair" else "  replay, a pair ranked by the id of its concatenation"
    for text in _texts(case):
        yield from _replayed(replay.encoding(model, text, view.lookup, view.cut))


def _texts(case: Case) -> list[str]:
    return list(map(read_text, case.input["texts"])) if case.op == "batch" else [whole_text(case)]


def _training(case: Case, view: View) -> Iterator[str]:
    given = case.input["train"]
    special = list(dict.fromkeys(read_text(token) for token in given["special_tokens"]))
    wanted = given["vocab_size"] - 256 - len(special)
    if wanted < 0:
        yield f"256 bytes and {len(special)} special tokens are more than vocab_size allows: an error, no step is made"
        return
    words = textbook.corpus(read_text(given["text"]), special, PATTERNS[given.get("pattern", "gpt2")])
    tie_break, _, byte_order = view.tie_break.partition("/")
    yield from replay.training(words, wanted, tie_break, byte_order or "raw", view.cut)
