"""Rewrites what is computed: expectations by the textbook oracle, stored ids and merges, SPEC.md; nothing else."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import gpt2_model
from bpe_conformance.fixtures.flow import write_flow
from bpe_conformance.fixtures.saving import write_text
from bpe_conformance.fixtures.spec import FOLDER, Case, load_spec

from ..cases import stored_training
from ..cases.expectations import compute, is_computed, oracle, value_for
from ..terminal.show import ascii_only
from . import extension, spec_page
from .splicing import bracketed, splice
from .witnesses import HAND, Disagreements, Witness, is_witnessed, load_witnesses, present


@dataclass
class Outcome:
    """What `regenerate` found.

    Attributes:
        differences: one line for each thing that differed and, unless it was a check, was written.
        refusals: one line for each thing that was not written: a witness disagrees, or the file changed meanwhile.
        notes: one line for each witness that was not asked.
        witnessed: how many of the computed values have how many marks in `agrees`.
        rules: how many cases state a rule instead of a value.
    """

    differences: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    witnessed: Counter[int] = field(default_factory=Counter)
    rules: int = 0

    @property
    def agreement(self) -> str:
        """One line: how many values have how many witnesses besides the oracle."""
        counts = ", ".join(f"{count} by {marks}" for marks, count in sorted(self.witnessed.items()))
        total = sum(self.witnessed.values())
        return (
            f"of {total} values, besides the oracle's word: {counts or 'none'}; cases that state a rule: {self.rules}"
        )


def regenerate(folder: Path = FOLDER, check: bool = False, witnesses: Sequence[Witness] | None = None) -> Outcome:
    """Bring everything computed of the spec in `folder` up to what the oracle says, and ask the witnesses.

    Args:
        folder: a spec; with the installed one, SPEC.md is rendered too.
        check: write nothing.
        witnesses: who is asked where installed; None is everyone in `fixtures/witnesses.yaml`.

    Raises:
        SpecError: if the spec cannot be loaded.
    """
    everyone = load_witnesses() if witnesses is None else list(witnesses)
    outcome = Outcome()
    _expectations(folder, check, everyone, outcome)
    computed = {}
    if (folder / "texts").is_dir():
        computed[folder / "texts" / "gpt2-ids.json"] = stored_ids(folder / "texts")
        computed[folder / "texts" / stored_training.FILE.name] = stored_training.compute(folder / "texts")
    if folder == FOLDER:
        computed[spec_page.FILE] = spec_page.render(load_spec(folder, check_schema=False))
        computed |= extension.files()
    for file, text in computed.items():
        if not file.exists() or file.read_bytes().decode("utf-8") != text:
            outcome.differences.append(f"{file.name} differs from what the spec and the oracle give")
            if not check:
                write_text(file, text)
    return outcome


def stored_ids(folder: Path) -> str:
    """Return the JSON of GPT-2's ids for every text in `folder`, by the oracle, a line a text."""
    tokenizer = oracle(gpt2_model())
    rows = []
    for file in sorted(folder.glob("*.txt")):
        data = file.read_bytes()
        entry = {"sha256": hashlib.sha256(data).hexdigest(), "ids": tokenizer.encode(data.decode("utf-8"))}
        rows.append(f"{json.dumps(file.name)}: {json.dumps(entry)}")
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _expectations(folder: Path, check: bool, everyone: Sequence[Witness], outcome: Outcome) -> None:
    files: dict[Path, list[Case]] = {}
    cases = load_spec(folder).cases
    for case in cases:
        assert case.document is not None
        files.setdefault(case.document.file, []).append(case)
    disagreements = Disagreements(folder / "disagreements.yaml", [case.id for case in cases], everyone)
    asked, outcome.notes = present(everyone)
    for file, group in files.items():
        before = file.read_bytes()
        lines = before.decode("utf-8").split("\n")
        told: list[list[str]] = []
        for case in reversed(group):
            told.append([])
            value = compute(case) if is_computed(case) else dict(case.expect)
            if value != case.expect:
                verb = "has no expected value" if not case.expect else f"expects {_short(case.expect)}"
                line = f"{file.name}: {case.id} {verb}; the oracle gives {_short(value)}"
                if case.by_hand:
                    outcome.refusals.append(f"{line}; the value is by hand and is not written")
                    continue
                told[-1].append(line)
            marks = _marks(replace(case, expect=value), case, everyone, asked, disagreements, outcome)
            if marks is None:
                told.pop()
                continue
            if marks != case.agrees:
                told[-1].append(
                    f"{file.name}: {case.id} has the marks {bracketed(case.agrees)}; now {bracketed(marks)}"
                )
            if is_witnessed(replace(case, expect=value)):
                outcome.witnessed[len(marks)] += 1
            else:
                outcome.rules += 1
            splice(lines, case, value, marks)
        differences = [line for part in reversed(told) for line in part]
        outcome.differences += differences
        text = "\n".join(lines)
        if check or text.encode("utf-8") == before:
            continue
        if file.read_bytes() != before:
            outcome.refusals.append(f"{file.name} was changed meanwhile and is not written; run it again")
            continue
        write_text(file, text)
    outcome.refusals += disagreements.stale(witness.name for witness in asked)


def _marks(
    case: Case,
    recorded: Case,
    everyone: Sequence[Witness],
    asked: Sequence[Witness],
    disagreements: Disagreements,
    outcome: Outcome,
) -> tuple[str, ...] | None:
    """Return who agrees with `case`, or None if a witness disagrees and no reason is recorded.

    The mark of a witness that is not asked stays as long as the value that it stands for does.
    """
    marks = [HAND] if case.by_hand else []
    refused = False
    for witness in everyone:
        if witness not in asked:
            key = witness.asked.get(case.op, "")
            same = value_for(case.expect, key) == value_for(recorded.expect, key)
            marks += [witness.name] if witness.name in recorded.agrees and same else []
            continue
        answer = witness.answer(case)
        if answer is None:
            continue
        if answer.agrees:
            marks.append(witness.name)
        elif not disagreements.excuse(witness, case):
            refused = True
            outcome.refusals.append(
                f"{case.id}: {witness.name} gives {_plainly(answer.got)}; the oracle {_plainly(answer.expected)}"
            )
    return None if refused else tuple(marks)


def _plainly(value: Any) -> str:
    line = ascii_only(repr(value))
    return line if len(line) <= 160 else f"{line[:150]} ..."


def _short(value: Any) -> str:
    line = "".join(write_flow(value))
    return line if len(line) <= 160 else f"{line[:150]} …"
