"""What is computed of the extension SuperBPE: the expected values, by an oracle of its own, and the page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Merge, read_text, write_token
from bpe_conformance.fixtures.extension import SUPERBPE, load_extension
from bpe_conformance.fixtures.spec import Case
from bpe_conformance.reference import textbook
from bpe_conformance.reference.superbpe import textbook as superbpe_textbook

from ..cases.expectations import TRAINING_KEYS
from . import spec_page
from .splicing import splice

PAGE = Path(__file__).parents[1] / "SUPERBPE.md"
HEAD = """\
# SuperBPE: an extension of the specification

<!-- Rendered from fixtures/extensions/superbpe.yaml by `bpe-conformance regenerate`. Edit that file, not this one. -->

It is written as [the specification](SPEC.md) is, and goes beyond it: no adapter is asked for it, and no verdict depends
on it. `bpe_conformance.reference.superbpe.trainer` does it.
"""


def files() -> dict[Path, str]:
    """Return the file of the cases and the page, as the oracle would have them."""
    spec = load_extension()
    lines = SUPERBPE.read_text("utf-8").split("\n")
    for case in reversed(spec.cases):
        splice(lines, case, compute(case), ())
    return {SUPERBPE: "\n".join(lines), PAGE: "\n".join([HEAD, *spec_page.sections(spec)])}


def compute(case: Case) -> dict[str, Any]:
    """Return what is expected of `case`: for a training the merges, by convention; for an encoding tokens and ids.

    A rule, such as an error, is returned as it stands.
    """
    given = case.input["train"]
    if "error" in case.expect:
        return dict(case.expect)
    if case.op == "encode":
        special = [read_text(token) for token in given["special_tokens"]]
        merges = _learn(given, "lex-greater")
        pattern = given.get("unit_pattern", superbpe_textbook.UNITS)
        tokenizer = textbook.Tokenizer(textbook.number(merges, special), merges, special, pattern)
        ids = tokenizer.encode(read_text(case.input["text"]))
        return {"tokens": [write_token(tokenizer.vocab[index]) for index in ids], "ids": ids}
    values = {key: {"merges": [list(map(write_token, pair)) for pair in _learn(given, key)]} for key in TRAINING_KEYS}
    first = values["lex-greater"]
    return first if all(value == first for value in values.values()) else {"by_convention": values}


def _learn(given: Mapping[str, Any], key: str) -> list[Merge]:
    tie_break, _, byte_order = key.partition("/")
    options = {name: given[name] for name in ("unit_pattern", "most_words") if name in given}
    return superbpe_textbook.learn(
        [read_text(text) for text in given["documents"]],
        given["vocab_size"],
        given["transition"],
        [read_text(token) for token in given["special_tokens"]],
        PATTERNS[given.get("pattern", "gpt2")],
        tie_break=tie_break,
        byte_order=byte_order or "raw",
        **options,
    )
