"""Rewrites what is computed: expected values from the textbook oracle, stored ids, and SPEC.md; nothing else."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import gpt2_model
from bpe_conformance.fixtures.spec import FOLDER, Case, load_spec

from . import spec_page
from .expectations import COMPUTED, compute, oracle

WIDTH = 110


def regenerate(folder: Path = FOLDER, check: bool = False) -> list[str]:
    """Bring everything computed of the spec in `folder` up to what the oracle says.

    Args:
        folder: a spec; with the installed one, SPEC.md is rendered too.
        check: write nothing.

    Returns:
        One line for each thing that differed.
    """
    differences = _expectations(folder, check)
    computed = {}
    if (folder / "texts").is_dir():
        computed[folder / "texts" / "gpt2-ids.json"] = stored_ids(folder / "texts")
    if folder == FOLDER:
        computed[spec_page.FILE] = spec_page.render(load_spec(folder))
    for file, text in computed.items():
        if not file.exists() or file.read_bytes().decode("utf-8") != text:
            differences.append(f"{file.name} differs from what the spec and the oracle give")
            if not check:
                _write(file, text)
    return differences


def stored_ids(folder: Path) -> str:
    """Return the JSON of GPT-2's ids for every text in `folder`, by the oracle, a line a text."""
    tokenizer = oracle(gpt2_model())
    rows = []
    for file in sorted(folder.glob("*.txt")):
        data = file.read_bytes()
        entry = {"sha256": hashlib.sha256(data).hexdigest(), "ids": tokenizer.encode(data.decode("utf-8"))}
        rows.append(f"{json.dumps(file.name)}: {json.dumps(entry)}")
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _write(file: Path, text: str) -> None:
    target = file.resolve()
    temporary = target.with_name(target.name + ".tmp")
    temporary.write_bytes(text.encode("utf-8"))
    temporary.replace(target)


def _expectations(folder: Path, check: bool) -> list[str]:
    files: dict[Path, list[Case]] = {}
    for case in load_spec(folder).cases:
        assert case.document is not None
        files.setdefault(case.document.file, []).append(case)
    differences: list[str] = []
    for file, cases in files.items():
        lines = file.read_bytes().decode("utf-8").split("\n")
        changed = False
        for case in reversed(cases):
            if not is_computed(case):
                continue
            value = compute(case)
            if value == case.expect:
                continue
            verb = "has no expected value" if not case.expect else f"expects {_short(case.expect)}"
            differences.append(f"{file.name}: {case.id} {verb}; the oracle gives {_short(value)}")
            if case.by_hand:
                continue
            _splice(lines, case, value)
            changed = True
        if changed and not check:
            _write(file, "\n".join(lines))
    return differences


def is_computed(case: Case) -> bool:
    """Whether the oracle computes the expectation of `case`; the others state a rule, such as an error."""
    return not case.expect or any(key in case.expect for key in COMPUTED)


def _short(value: Any) -> str:
    line = "".join(write_flow(value))
    return line if len(line) <= 160 else f"{line[:150]} …"


def _splice(lines: list[str], case: Case, value: Any) -> None:
    assert case.document is not None
    keys = case.document.keys
    given = (*case.path, "input")
    anchor = keys.get((*case.path, "expect"), keys[given])
    first, column = anchor.start_mark.line, anchor.start_mark.column
    last = first
    for number in range(first + 1, len(lines)):
        line = lines[number]
        if line.strip() and not line.lstrip().startswith("#"):
            if len(line) - len(line.lstrip()) <= column:
                break
            last = number
    new = list(_block("expect", value, " " * column))
    if "expect" in case.document.value["cases"][case.path[1]]:
        lines[first : last + 1] = new
    else:
        lines[last + 1 : last + 1] = new


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


def write_flow(value: Any) -> str:
    """Return `value` as YAML in flow style: text double-quoted, all but plain visible characters escaped.

    >>> write_flow({"tokens": ["a", {"hex": "e282"}], "ids": [97, 256]})
    '{tokens: ["a", {hex: "e282"}], ids: [97, 256]}'
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {write_flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(write_flow, value)) + "]"
    if isinstance(value, str):
        return f'"{"".join(map(_escape, value))}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _escape(char: str) -> str:
    code = ord(char)
    short = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}
    if char in short:
        return short[char]
    visible = unicodedata.category(char)[0] in "LNPS" and unicodedata.normalize("NFC", char) == char
    if 0x20 <= code < 0x7F or (0xA0 < code < 0x10000 and visible):
        return char
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
