"""`bpe-conformance regenerate`: rewrites expected values, stored ids and merges, and the rendered pages."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import gpt2_model
from bpe_conformance.fixtures.files import write_text
from bpe_conformance.fixtures.one_line import ascii_only
from bpe_conformance.fixtures.values import write_flow

from ..command_line import print_lines
from ..operations import oracle, train
from ..spec import FOLDER, Case, load_spec
from . import spec_argument, spec_page, superbpe
from .superbpe import ExtensionCase
from .witnesses import HAND, Disagreements, Witness, is_witnessed, load_witnesses, present

WIDTH = 110  # the longest line of YAML, in characters, if its value can be split


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a value differs")
    spec_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Print the differences; the status is 1 if something could not be written, or a check found a difference."""
    outcome = regenerate(options.spec, options.check)
    differences, refusals = outcome.differences, outcome.refusals
    print_lines([*outcome.notes, *differences, *refusals])
    counted = f"{len(differences)} {'out of date' if options.check else 'updated'}"
    print_lines([counted if differences else "every computed value is the oracle's"])
    print_lines([f"{len(refusals)} not written"] if refusals else [])
    print_lines([outcome.agreement])
    return 1 if refusals or (differences and options.check) else 0


@dataclass
class Regeneration:
    """The result of `regenerate`, with one line for each value, file or witness."""

    differences: list[str] = field(default_factory=list)  # that were written, unless it was a check
    refusals: list[str] = field(default_factory=list)  # not written: a witness disagrees, or the file has changed
    notes: list[str] = field(default_factory=list)  # one line for each witness that did not run
    witnessed: Counter[int] = field(default_factory=Counter)  # number of marks in `agrees` → number of values
    rules: int = 0  # how many cases state a rule instead of a value

    @property
    def agreement(self) -> str:
        counts = ", ".join(f"{marks}: {count}" for marks, count in sorted(self.witnessed.items()))
        total = sum(self.witnessed.values())
        rules = f"cases with a rule instead: {self.rules}"
        return f"{total} values, by the number of libraries that confirm them: {counts or 'none'}; {rules}"


def regenerate(folder: Path = FOLDER, check: bool = False, witnesses: Sequence[Witness] | None = None) -> Regeneration:
    """Recompute every computed value of the spec in `folder` with the oracle, ask the witnesses, render the pages."""
    everyone = load_witnesses() if witnesses is None else list(witnesses)
    outcome = Regeneration()
    _expectations(folder, check, everyone, outcome)
    computed = {}
    if (folder / "texts").is_dir():
        computed[folder / "texts" / "gpt2-ids.json"] = stored_ids(folder / "texts")
        computed[folder / "texts" / train.STORED.name] = train.compute_stored(folder / "texts")
    if folder == FOLDER:
        computed[spec_page.FILE] = spec_page.render(load_spec(folder, check_schema=False))
        computed |= superbpe_files()
    for file, text in computed.items():
        if not file.exists() or file.read_bytes().decode("utf-8") != text:
            outcome.differences.append(f"{file.name} is out of date")
            if not check:
                write_text(file, text)
    return outcome


def stored_ids(folder: Path) -> str:
    """Return the JSON of GPT-2's ids for every text in `folder`, by the oracle, one line for each text."""
    tokenizer = oracle(gpt2_model())
    rows = []
    for file in sorted(folder.glob("*.txt")):
        data = file.read_bytes()
        entry = {"sha256": hashlib.sha256(data).hexdigest(), "ids": tokenizer.encode(data.decode("utf-8"))}
        rows.append(f"{json.dumps(file.name)}: {json.dumps(entry)}")
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _expectations(folder: Path, check: bool, everyone: Sequence[Witness], outcome: Regeneration) -> None:
    files: dict[Path, list[Case]] = {}
    cases = load_spec(folder).cases
    for case in cases:
        assert case.document is not None
        files.setdefault(case.document.file, []).append(case)
    disagreements = Disagreements(folder / "disagreements.yaml", [case.id for case in cases], everyone)
    asked, outcome.notes = present(everyone)
    for file, group in files.items():
        before = file.read_bytes()
        edits: list[tuple[Case, Any, tuple[str, ...]]] = []
        for case in group:
            computed, value = case, (recorded := case.raw.get("expect", {}))
            differences = []
            if case.expected.is_computed:
                assert case.document is not None
                try:
                    computed = replace(case, expected=case.operation.compute(case.model, case.clause.id))
                except (ValueError, LookupError) as error:
                    raise case.document.error(case.path, f"{case.id}: the oracle refuses this input: {error}") from None
                value = computed.expected.write(case.operation, case.model)
            if value != recorded:
                verb = "has no expected value" if not recorded else f"expects {_short(write_flow(recorded))}"
                line = f"{file.name}: {case.id} {verb}; the oracle gives {_short(write_flow(value))}"
                if case.by_hand:
                    outcome.refusals.append(f"{line}; the value is not written, because a person worked it out")
                    continue
                differences.append(line)
            if (marks := _marks(computed, case, everyone, asked, disagreements, outcome)) is None:
                continue
            if marks != case.agrees:
                had = f"{case.id} has agrees: {bracketed(case.agrees)}"
                differences.append(f"{file.name}: {had}; now {bracketed(marks)}")
            if is_witnessed(computed):
                outcome.witnessed[len(marks)] += 1
            else:
                outcome.rules += 1
            outcome.differences += differences
            edits.append((case, value, marks))
        lines = before.decode("utf-8").split("\n")
        for edit in reversed(edits):
            splice(lines, *edit)
        text = "\n".join(lines)
        if check or text.encode("utf-8") == before:
            continue
        if file.read_bytes() != before:
            changed = "is not written, because it has changed since it was read; run regenerate again"
            outcome.refusals.append(f"{file.name} {changed}")
        else:
            write_text(file, text)
    outcome.refusals += disagreements.stale(witness.name for witness in asked)


def _marks(
    case: Case,
    recorded: Case,
    everyone: Sequence[Witness],
    asked: Sequence[Witness],
    disagreements: Disagreements,
    outcome: Regeneration,
) -> tuple[str, ...] | None:
    """Return who agrees, or None if one disagrees without a known reason; who is absent keeps the mark of a value."""
    marks = [HAND] if case.by_hand else []
    refused = False
    for witness in everyone:
        if witness not in asked:
            key = witness.asked.get(case.operation.name, "")
            same = case.expected.under(key) == recorded.expected.under(key)
            marks += [witness.name] if witness.name in recorded.agrees and same else []
            continue
        if (answer := witness.answer(case)) is None:
            continue
        if answer.agrees:
            marks.append(witness.name)
        elif not disagreements.excuse(witness, case):
            refused = True
            got, expected = (_short(ascii_only(repr(value))) for value in (answer.got, answer.expected))
            both = f"{witness.name} gives {got}; the oracle {expected}"
            outcome.refusals.append(f"{case.id}: {both}")
    return None if refused else tuple(marks)


def _short(line: str) -> str:
    return line if len(line) <= 160 else f"{line[:150]} ..."


# Editing YAML in place


def splice(lines: list[str], case: Case | ExtensionCase, value: Any, marks: Sequence[str]) -> None:
    """Replace the `expect` and `agrees` of `case` in the lines of its file; an equal value keeps its layout."""
    assert case.document is not None
    keys = case.document.keys
    given, expect, agrees = (keys.get((*case.path, name)) for name in ("input", "expect", "agrees"))
    assert given is not None
    column = given.start_mark.column
    indent = " " * column
    end = _end(lines, (expect or given).start_mark.line, column)
    start = expect.start_mark.line if expect else end
    same = expect is not None and value == case.raw["expect"]
    body = lines[start:end] if same else list(_block("expect", value, indent))
    flow = [f"{indent}agrees: {bracketed(marks)}"] if marks else []
    edits = [(start, end, body if agrees else body + flow)]
    if agrees and list(marks) != case.raw["agrees"]:
        first = agrees.start_mark.line
        edits.append((first, _end(lines, first, column), flow))
    for first, after, new in sorted(edits, reverse=True):
        lines[first:after] = new


def _end(lines: Sequence[str], first: int, column: int) -> int:
    last = first
    for number in range(first + 1, len(lines)):
        line = lines[number]
        if line.strip() and not line.lstrip().startswith("#"):
            if len(line) - len(line.lstrip()) <= column:
                break
            last = number
    return last + 1


def _block(key: str, value: Any, indent: str) -> Iterator[str]:
    flow = f"{indent}{key}: {write_flow(value)}"
    if len(flow) <= WIDTH:
        yield flow
    elif isinstance(value, dict):
        yield f"{indent}{key}:"
        for name, part in value.items():
            yield from _block(name, part, indent + "  ")
    elif isinstance(value, list):
        yield f"{indent}{key}: ["
        line = indent + " "
        for part in value:
            piece = f" {write_flow(part)},"
            if len(line) + len(piece) > WIDTH and line.strip():
                yield line
                line = indent + " "
            line += piece
        yield line
        yield f"{indent}]"
    else:
        yield flow


def bracketed(marks: Sequence[str]) -> str:
    return f"[{', '.join(marks)}]"


# The extension SuperBPE


def superbpe_files() -> dict[Path, str]:
    """Return the file of the extension's cases with the oracle's values, and the page."""
    extension = superbpe.load_extension()
    lines = superbpe.FILE.read_text("utf-8").split("\n")
    for case in reversed(extension.cases):
        splice(lines, case, case.value, ())
    page = {superbpe.PAGE: spec_page.render_superbpe(extension)} if superbpe.PAGE.parent.is_dir() else {}
    return {superbpe.FILE: "\n".join(lines), **page}
