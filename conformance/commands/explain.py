"""`bpe-conformance explain` explains a case, a clause, a section, a property or a bug, and replays a case."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Model
from bpe_conformance.fixtures.conventions import CONVENTIONS, DEFAULTS
from bpe_conformance.fixtures.one_line import counted
from bpe_conformance.reference import textbook

from ..answer import AnyError, Rows, Text
from ..command_line import CommandError, print_lines
from ..known_bugs import known_bugs, matrix
from ..operations import LOOKUP_KEYS, TEXT_KEYS, TRAINING_KEYS, Entries, Lazy, Train, conventions_of
from ..packs.files import CASES, load_pack
from ..properties import EVERY as EVERY_PROPERTY
from ..properties.engine import Property
from ..properties.scale import GROWTH
from ..selection import SelectionError, known
from ..spec import Case, Clause, Section, Spec, spec_in
from ..spec_tools import replay, spec_argument
from ..spec_tools.replay import Cut
from ..spec_tools.superbpe import load_extension
from ..terminal import show

LABEL = 11
LONG = 600


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="the id of a case, a clause or a property, or the name of a section or a known bug")
    parser.add_argument("--tie-break", metavar="NAME", help="replay a training under another convention")
    parser.add_argument("--lookup", metavar="NAME", help="replay an encoding under another convention")
    parser.add_argument("--all", action="store_true", help="show everything in full")
    parser.add_argument("--pack", type=Path, metavar="DIR", help="explain a case of this pack")
    spec_argument(parser)


def run(options: argparse.Namespace) -> int:
    view = View.checked(options.tie_break, options.lookup, options.all)
    spec = spec_in(options.spec)
    if options.pack is not None:
        spec, view = replace(spec, cases=load_pack(options.pack, spec.clauses)), replace(view, pack=str(options.pack))
    print_lines(explain(spec, options.id, view))
    return 0


@dataclass(frozen=True)
class View:
    tie_break: str = "lex-greater"  # a key of training values (`TRAINING_KEYS`, `TEXT_KEYS`)
    lookup: str = ""  # by default that of the model
    cut: Cut = field(default_factory=Cut)  # how much of a long table is shown
    pack: str = ""  # the directory of the pack that has the cases, or "" for the specification

    @classmethod
    def checked(cls, tie_break: str | None, lookup: str | None, everything: bool) -> View:
        if tie_break is not None:
            known(tie_break, (*TRAINING_KEYS, *TEXT_KEYS), "tie-break", listed=True)
        if lookup is not None:
            known(lookup, LOOKUP_KEYS, "lookup", listed=True)
        return cls(tie_break or "lex-greater", lookup or "", Cut(everything))


def explain(spec: Spec, name: str, view: View | None = None) -> Iterator[str]:
    cases = {case.id: case for case in spec.cases}
    view, extension = view or View(), load_extension()
    sections = {section.name: section for section in (*spec.sections, extension.section)}
    clauses = {clause.id: clause for section in sections.values() for clause in section.clauses}
    properties = {property_.id: property_ for property_ in EVERY_PROPERTY if property_.clause_id in spec.clauses}
    of_extension = {case.id: case.clause.id for case in extension.cases}  # they have no replay
    name = of_extension.get(name.lower(), name)
    every = (*clauses, *sections, *properties, *cases)
    name = {known.lower(): known for known in every}.get(name.lower(), name)
    if name not in every and name.lower() in (bugs := [bug.id for bug in known_bugs()]):
        _check_replayed(name, None, view)
        return matrix.described(name)
    if name not in every and (word := name.removeprefix("undeclared ").partition("=")[0]) in (*CONVENTIONS, "pattern"):
        see = "docs/conventions.md explains it, and bpe-conformance conventions ADAPTER probes its value"
        raise SelectionError(f"{word} is a convention: {see}")
    if name not in every and not view.pack and re.search(r"-\d{4}$", name):
        raise SelectionError(f"there is no case {name!a}; if a pack has it, add --pack DIR")
    see = f"{CASES} of {view.pack}" if view.pack else "bpe-conformance list"
    known(name, every if name in every else [*every, *bugs], "case, clause, section, property or known bug", see=see)
    _check_replayed(name, cases.get(name), view)
    if name in cases:
        return _case(cases[name], spec, view)
    titled = [(case.clause.id, case.id, str(case.raw["title"])) for case in extension.cases]
    titled = [*((case.clause.id, case.id, case.title) for case in spec.cases), *titled]
    if name in clauses:
        pack = f" --pack {shlex.quote(view.pack)}" if view.pack else ""
        replays = f"bpe-conformance explain CASE{pack} replays one"
        after = replays if name in spec.clauses else "no adapter is tested with them"
        return _clause(clauses[name], [row[1:] for row in titled if row[0] == name], after)
    if name in sections:
        ids = {clause.id for clause in sections[name].clauses}
        return _section(sections[name], sum(row[0] in ids for row in titled), view)
    return _property(properties[name], spec, view.pack)


def _check_replayed(name: str, case: Case | None, view: View) -> None:
    """Raise a CommandError if a convention is named and nothing follows it."""
    trains = case is not None and isinstance(case.operation, Train)
    if view.tie_break != View.tie_break and not trains:
        raise CommandError(f"--tie-break replays a case of training, and {name} is none; remove the option")
    if view.lookup and (case is None or trains or not case.operation.texts()):
        raise CommandError(f"--lookup replays a case of encoding, and {name} is none; remove the option")


# Layout


def _width() -> int:
    return max(60, min(100, shutil.get_terminal_size().columns)) - 1


def _headline(name: str, right: str) -> Iterator[str]:
    gap = _width() - len(name) - len(right)
    yield from [f"{name}{' ' * gap}{right}"] if gap > 1 else [name, f"{right:>{_width()}}"]


def _prose(text: str, label: str = "", head: str = "") -> Iterator[str]:
    """Yield Markdown, wrapped to the width, after a label or a head. Code, list items and tables keep their lines."""
    head = head or (f"  {label:{LABEL}}" if label else "  ")
    indent = " " * len(head)
    for number, block in enumerate(re.split(r"^```.*\n", text, flags=re.MULTILINE)):
        if number % 2:
            yield from (f"{indent}  {line}".rstrip() for line in block.splitlines())
            continue
        block = re.sub(r"^\|[-:|]+\|\n", "", block, flags=re.MULTILINE)  # between the head and the rows of a table
        for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:\||- |\d+\. ))", block):
            wrapper = textwrap.TextWrapper(_width(), head, indent, break_on_hyphens=False)
            yield from wrapper.wrap(" ".join(paragraph.split()))
            head = indent


def _value(text: str, label: str = "") -> Iterator[str]:
    """Yield a value after a label, wrapped at spaces if that loses nothing, otherwise anywhere."""
    return _folded(text, f"  {label:{LABEL}}", " " * (LABEL + 2))


def _folded(text: str, head: str, indent: str) -> Iterator[str]:
    while text:
        room = _width() - len(head)
        if len(text) > room:
            space = text.rfind(" ", room // 2, room)
            room = space + 1 if space > 0 else room
        yield f"{head}{text[:room]}".rstrip()
        text, head = text[room:], indent


def _replayed(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        body = line.lstrip()
        indent = "    " + line[: len(line) - len(body)]
        hanging = next((indent + " " * len(name) for name in ("corpus  ", "merge   ") if body.startswith(name)), "")
        yield from _folded(body, indent, hanging or f"{indent}  ")


# A section, a clause, a property


def _section(section: Section, cases: int, view: View) -> Iterator[str]:
    ids = {clause.id for clause in section.clauses}
    properties = sum(property_.clause_id in ids for property_ in EVERY_PROPERTY)
    totals = {"clause": len(ids), "case": cases, "property": properties}
    numbers = ", ".join(counted(total, noun) for noun, total in totals.items())
    yield from _headline(f"{section.name}. {section.title}", numbers)
    yield from _prose(section.intro)
    yield ""
    width, level = max(map(len, ids)), max(len(clause.level) for clause in section.clauses)
    for clause in section.clauses:
        head = f"  {clause.id:{width}}  {clause.level:{level}}  "
        if view.cut.everything:
            yield from _prose(clause.statement, head=head)
            continue
        line = f"{head}{_first_sentence(clause.statement)}"
        yield line if len(line) <= _width() else f"{line[: _width() - 3].rstrip()}..."
    yield ""
    yield "  bpe-conformance explain CLAUSE shows one with its cases"
    if not view.cut.everything:
        yield "  --all shows each rule in full"


def _first_sentence(text: str) -> str:
    line = " ".join(text.split())
    found = re.match(r".*?\.(?=\s|$)", line)
    return found.group() if found else line


def _head(clause: Clause) -> Iterator[str]:
    yield from _prose(clause.statement)
    yield ""
    yield from _prose(clause.rationale, "why")
    for number, source in enumerate(clause.sources):
        yield from _prose(source, " " if number else "sources")


def _clause(clause: Clause, cases: Sequence[tuple[str, str]], after: str) -> Iterator[str]:
    """Explain a clause, and list its cases, as (id, title), after their number and the text `after`."""
    yield from _headline(clause.id, clause.level.upper())
    yield from _head(clause)
    if clause.uncased:
        yield from _prose(clause.uncased, "no case")
    if properties := [property_.id for property_ in EVERY_PROPERTY if property_.clause_id == clause.id]:
        yield from _prose(", ".join(properties), "properties")
    if cases:
        yield ""
        yield f"  {counted(len(cases), 'case')}; {after}"
        width = max(len(case) for case, _ in cases)
        for case, title in cases:
            line = f"    {case:{width}}  {title}"
            yield from [line] if len(line) <= _width() else [f"    {case}", f"        {title}"]


def _property(property_: Property, spec: Spec, pack: str) -> Iterator[str]:
    clause = spec.clauses[property_.clause_id]
    yield from _headline(property_.id, f"{clause.id} ({clause.level.upper()}), {property_.conformance_class}")
    yield from _head(clause)
    yield from _prose(property_.asks, "tests")
    yield from _prose(", ".join(property_.needs), "needs")
    option = " --bpe-scale" if property_ is GROWTH else f" --bpe-pack {shlex.quote(pack)}" if pack else ""
    yield f"  {'try it':<11}pytest conformance --adapter mypkg:Tokenizer{option} --bpe-case {property_.id}"


# A case


def _case(case: Case, spec: Spec, view: View) -> Iterator[str]:
    clause = spec.clause_of(case, conventions_of(view.tie_break))
    yield from _headline(case.id, f"{clause.id} ({clause.level.upper()}), {case.conformance_class}")
    yield from _prose(case.title)
    yield ""
    yield from _head(clause)
    yield ""
    yield from _value(case.operation.name, "operation")
    yield from _input(case, view)
    if case.model is not None:
        yield from _model(case.model, view)
    yield from _expected(case, view)
    if case.agrees:
        marks = ("a calculation by hand" if mark == "hand" else mark for mark in case.agrees)
        yield from _prose(", ".join(marks), "agrees")
    if case.source:
        yield from _prose(case.source, "from")
    if case.note:
        yield from _prose(case.note, "note")
    yield from _replay(case, view)


def _input(case: Case, view: View) -> Iterator[str]:
    style = _style(view)
    for label, value in case.operation.arguments():
        if label == "text":
            yield from _value(style.text(value), label)
        elif label == "ids":
            yield from _value(style.ids(value, case.model), label)
        elif label == "texts":
            for number, text in enumerate(value):
                yield from _value(style.text(text), "" if number else label)
        elif label == "files":
            shown = ((name, {True: "yes", False: "no"}.get(option, option)) for name, option in value)
            yield from _value(", ".join(f"{name} {option}" for name, option in shown), label)
        elif isinstance(value, tuple):
            yield from _value(style.texts(value, label), label)
        else:
            yield from _value(str(value), label)


def _text(text: str, view: View) -> str:
    if view.cut.everything or len(text) <= LONG:
        data = text.encode("utf-8", "surrogatepass")
        spelled = f"  = {data.hex(' ')}" if 0 < len(data) <= 24 else ""
        return f"{replay.quoted(text)}{spelled}"
    return show.text_line(text)


def _model(model: Model, view: View) -> Iterator[str]:
    if model.name:
        yield from _value(model.name, "model")
    else:
        rows = [f"{rank} {replay.pair(merge)}" for rank, merge in enumerate(model.merges)]
        yield from _value(view.cut.joined(rows, 2 * replay.PIECES, between="  "), "merges")
    if model.special_tokens is not None:
        yield from _value(", ".join(map(show.text_line, model.special_tokens)) or "none", "special")
    if model.pattern != "gpt2":
        yield from _value(model.pattern, "pattern")
    if model.pipeline is not None:
        yield from _value("; ".join(show.pipeline(model.pipeline)), "pipeline")
    if not model.name:
        yield from _value("; ".join(_entries(model)), "vocab")


def _entries(model: Model) -> Iterator[str]:
    """Yield what distinguishes a vocabulary from the usual one: the bytes in order, then merges and special tokens."""
    ids = {token: index for index, token in model.vocab.items()}
    if missing := [byte for byte in range(256) if bytes([byte]) not in ids]:
        yield f"no entry for byte {', '.join(f'{byte:02x}' for byte in missing[:8])}"
    specials = [text.encode() for text in model.special_tokens or ()]
    known = dict.fromkeys(token for left, right in model.merges for token in (left, right, left + right))
    if absent := [token for token in (*known, *specials) if token not in ids and len(token) != 1]:
        yield f"no entry for {', '.join(map(show.token, absent[:8]))}"
    if not missing and (first := ids[b"\0"]) and all(ids[bytes([byte])] == first + byte for byte in range(256)):
        yield f"the bytes have the ids {first} to {first + 255}"
    elif any(ids.get(bytes([byte]), byte) != byte for byte in range(256)):
        yield "the ids of the bytes are not in order"
    described = {*known, *specials}
    others = [
        f"{index}: {show.token(token)}" for token, index in ids.items() if len(token) != 1 and token not in described
    ]
    if others:
        yield f"{', '.join(others[:8])}{', ...' * (len(others) > 8)}"


def _expected(case: Case, view: View) -> Iterator[str]:
    if not case.expected:
        yield from _value("no value yet; bpe-conformance regenerate computes it", "expected")
    elif case.expected.by_convention:
        yield "  expected   by convention"
        width = max(18, *(len(key) + 2 for key in case.expected.values))
        for key, (value,) in case.expected.values.items():
            yield from _folded(_answer(value, case, view), f"    {key:<{width}}", " " * (4 + width))
    else:
        for number, value in enumerate(case.expected.alternatives):
            yield from _value(_answer(value, case, view), "or" if number else "expected")


def _answer(value: Any, case: Case, view: View) -> str:
    if isinstance(value, Rows) and isinstance(case.operation, Entries):
        return view.cut.joined([_ids(row, case.table.vocab, view) for row in value.rows], replay.PIECES, "; ")
    shown = show.expected(value, _style(view), case.model)
    data = case.operation.data(case.model) if case.model is not None else b""
    if isinstance(value, Text) and data != value.text.encode("utf-8"):
        shown += f", the bytes {data.hex(' ')}"
    return shown


def _style(view: View) -> show.Style:
    """Return how values look in an explanation: in full, as far as the view shows that much."""

    def texts(values: Sequence[str], noun: str) -> str:
        if noun in ("chunks", "entries"):
            between = " | " if noun == "chunks" else ", "
            return view.cut.joined([_text(text, view) for text in values], replay.PIECES, between)
        return ", ".join(map(show.text_line, values)) or "none"

    return replace(
        show.BRIEF,
        text=lambda text: _text(text, view),
        texts=texts,
        ids=lambda ids, model: _ids(ids, model.vocab if model is not None else {}, view),
        tokens=lambda tokens: " | ".join(map(show.token, tokens)),
        merges=lambda merges: " ".join(map(replay.pair, merges)) or "no merges",
        entries=lambda entries: _ids([index for index, _ in entries], dict(entries), view),
    )


def _ids(ids: Sequence[int], vocab: Mapping[int, bytes], view: View) -> str:
    rows = [f"{index} {replay.shown_token(vocab[index])}" if index in vocab else f"{index} ?" for index in ids]
    return view.cut.joined(rows, 2 * replay.PIECES, empty="no ids")


# The replay


def _replay(case: Case, view: View) -> Iterator[str]:
    operation = case.operation
    if isinstance(operation, Train):
        key = view.tie_break.removesuffix("/text")
        yield ""
        yield f"  replay, ties by {key}" + (", special tokens are ordinary text" if key != view.tie_break else "")
        yield from _replayed(_training(operation, view))
    elif (ids := dict(operation.arguments()).get("ids")) is not None:
        yield ""
        yield "  replay"
        replayed = replay.detokenizing if "decode_iterable" in operation.needs else replay.decoding
        yield from _replayed(replayed(case.table, ids, view.cut))
    elif isinstance(operation, Entries):
        return
    elif operation.texts() and Lazy() not in case.expected.alternatives:
        yield ""
        yield from _encoding(case, view)


def _encoding(case: Case, view: View) -> Iterator[str]:
    operation, model = case.operation, case.table
    lookup = view.lookup or (model.pipeline.lookup if model.pipeline else DEFAULTS["lookup"])
    if lookup == "bytes" and not model.ranks_by_bytes:
        raise CommandError(f"{case.id}: --lookup bytes needs unique tokens with ids in merge order; remove it")
    if AnyError("disallowed") in case.expected.alternatives:
        yield "  replay: none, the tokenizer rejects the text before it encodes anything"
        return
    model = operation.without_choice(model, lookup)
    yield "  replay, each pair ranked by the id of its concatenation" if lookup == "bytes" else "  replay"
    for text in operation.texts():
        yield from _replayed(replay.encoding(model, text, lookup, view.cut))


def _training(asked: Train, view: View) -> Iterator[str]:
    special = list(dict.fromkeys(asked.special))
    if (room := asked.vocab_size - 256 - len(special)) < 0:
        yield f"256 bytes and {len(special)} special tokens exceed vocab_size: training raises an error before any step"
        return
    rules = conventions_of(view.tie_break)
    boundaries, text = (special, ()) if rules["train_special"] == "boundary" else ((), special)
    words = textbook.corpus(asked.text, boundaries, PATTERNS[asked.pattern])
    yield from replay.training(words, room, rules["tie_break"], rules["byte_order"], view.cut, text)
