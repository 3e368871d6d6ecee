"""Makes a spec with a case for each attack, followed by a harmless case."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from . import Attack

SMALL = Path(__file__).parents[1] / "spec"
CLAUSES = {
    "encode": "BYTES-ATOM-1",
    "decode": "DECODE-UTF8-1",
    "train": "TRAIN-TIE-1",
    "batch": "BATCH-EQUAL-1",
    "stream": "STREAM-EQUAL-1",
    "save": "FILE-SAVE-1",
}


def write(folder: Path, attacks: Iterable[str]) -> Path:
    """Write the spec of these attacks into `folder` and return it."""
    shutil.copytree(SMALL / "clauses", folder / "clauses")
    (folder / "cases").mkdir()
    lines = []
    for op, clause in CLAUSES.items():
        names = [name for name in attacks if (Attack.known[name].op if name in Attack.known else "encode") == op]
        if names:
            lines += [f"clause: {clause}", "cases:"]
            for name in names:
                lines += [*_case(name, op, f" {name}"), *_case(f"after-{name}", op, "fine")]
            lines.append("---")
    (folder / "cases" / "attacks.yaml").write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")
    return folder


def _case(name: str, op: str, text: str) -> list[str]:
    ids = list(text.encode())
    row = {"tokens": list(text), "ids": ids}
    given, expect, model = {
        "encode": ({"text": text}, row, {}),
        "decode": ({"ids": ids}, {"text": text}, {}),
        "batch": ({"texts": [text, "b"]}, {"batch": [row, {"tokens": ["b"], "ids": [98]}]}, {}),
        "stream": ({"text": text, "cut": "everywhere"}, row, {}),
        "save": ({}, {"table": "same"}, {"special_tokens": [text]}),
        "train": ({"train": {"text": text, "vocab_size": 256, "special_tokens": []}}, {"merges": []}, None),
    }[op]
    whole = {"id": name, "title": "what an attack does", "since": "1.0", "op": op, "model": model}
    whole = {**whole, "input": given, "expect": expect}
    if model is None:
        del whole["model"]
    parts = [f"{key}: {value if key in ('id', 'op') else json.dumps(value)}" for key, value in whole.items()]
    return [f"  - {parts[0]}", *(f"    {part}" for part in parts[1:])]
