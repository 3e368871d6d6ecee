"""Renders the pages SPEC.md and SUPERBPE.md from the clauses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bpe_conformance.fixtures.conventions import CONVENTIONS
from bpe_conformance.fixtures.spec import CLASS_OF_OP, Clause, Section, Spec

FILE = Path(__file__).parents[1] / "SPEC.md"
SUPERBPE_FILE = FILE.with_name("SUPERBPE.md")
HEAD = """\
# Byte-level BPE: the specification

<!-- Rendered from fixtures/clauses/*.yaml by `bpe-conformance regenerate`. Edit those files, not this one. -->

This page specifies byte-level byte-pair encoding: how a tokenizer is trained, how it encodes and decodes, the format
of its files, and what it does with invalid input. Every rule is a numbered clause. Every clause that can be tested
from outside has golden cases; `pytest conformance --adapter mypkg:Tokenizer` runs them.

Each clause has a level. **MUST**: a tokenizer that does otherwise is incorrect. **SHOULD**: a difference is reported as
a warning, and fails the run only under `--bpe-strict`. **MAY**: measured on request, without a verdict.
**UNSPECIFIED**: correct tokenizers differ here, so nothing is tested.

Each conformance class has a verdict of its own: {classes}.

Bytes that are not visible text are written in hexadecimal. A *token* is a sequence of bytes with an *id*. A *merge* is
a pair of tokens. The *rank* of a merge is its index in the list of merges, from 0.
"""

INTERFACE = """\
## Interface

The clauses describe a tokenizer with this interface. Every method is optional; implement it to support it.

```python
class Tokenizer:
    vocab: Mapping[int, bytes]
    merges: Sequence[tuple[bytes, bytes]]
    def __init__(self, vocab: dict[int, bytes], merges: list[tuple[bytes, bytes]], special_tokens: list[str] | None = None): ...
    def encode(self, text: str) -> list[int]: ...
    def decode(self, ids: Sequence[int]) -> str: ...
    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str]) -> "Tokenizer": ...
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]: ...
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]: ...
    def decode_bytes(self, ids: Sequence[int]) -> bytes: ...   # the bytes of the ids, joined and not decoded
    def save(self, folder) -> None: ...                        # vocab.json and merges.txt, into an existing directory
    @classmethod
    def from_files(cls, vocab_path, merges_path, special_tokens=None) -> "Tokenizer": ...
```

A keyword parameter `pattern` of `__init__` and `train` selects another split pattern than the default. The tokenizer
that `train` returns encodes with the pattern that it was trained with.
"""  # noqa: E501


SUPERBPE_HEAD = """\
# SuperBPE: an extension of the specification

<!-- Rendered from fixtures/extensions/superbpe.yaml by `bpe-conformance regenerate`. Edit that file, not this one. -->

This page is written like [the specification](SPEC.md) and goes beyond it: the suite tests no adapter against it, and no
verdict depends on it. `bpe_conformance.reference.superbpe.trainer` implements it.
"""


def render(spec: Spec) -> str:
    """Return SPEC.md."""
    classes = ", ".join(dict.fromkeys(CLASS_OF_OP.values()))
    return "\n".join([HEAD.format(classes=classes), *_contents(spec), INTERFACE, *_conventions(), *_sections(spec)])


def render_superbpe(spec: Spec) -> str:
    """Return SUPERBPE.md."""
    return "\n".join([SUPERBPE_HEAD, *_sections(spec)])


def _sections(spec: Spec) -> Iterator[str]:
    for section in spec.sections:
        yield f"## {section.name}. {section.title}\n\n{section.intro.strip()}\n"
        yield from (_clause(clause, spec) for clause in section.clauses)


def _contents(spec: Spec) -> Iterator[str]:
    yield "## Contents\n"
    yield "- [Interface](#interface)\n- [Conventions](#conventions)"
    for section in spec.sections:
        yield f"- [{section.name}. {section.title}](#{_anchor(section)})"
    yield ""


def _anchor(section: Section) -> str:
    kept = [char for char in f"{section.name}. {section.title}".lower() if char.isalnum() or char in " -"]
    return "".join(kept).replace(" ", "-")


def _conventions() -> Iterator[str]:
    yield "## Conventions\n"
    yield (
        "Correct implementations differ in four ways. An implementation that differs from a default declares that in "
        "`conventions`, and is tested with the values for its declaration.\n"
    )
    yield "| convention | default | others |\n|---|---|---|"
    for name, values in CONVENTIONS.items():
        yield f"| `{name}` | `{values[0]}` | {', '.join(f'`{value}`' for value in values[1:])} |"
    yield ""
    yield (
        "`tie_break` is defined in TRAIN-TIE-1, `byte_order` and `id_layout` in TRAIN-IDS-2, `lookup` in "
        "MERGE-LOOKUP-1.\n"
    )


def _clause(clause: Clause, spec: Spec) -> str:
    cases = [case.id for case in spec.cases if case.clause.id == clause.id]
    lines = [f"### {clause.id} ({clause.level.upper()})\n", f"{clause.statement.strip()}\n"]
    lines.append(f"*Why:* {clause.rationale.strip()}\n")
    if clause.uncased and not cases:
        lines.append(f"*No case:* {clause.uncased.strip()}\n")
    folded = [f"- {source}" for source in clause.sources]
    folded += [f"- cases: {', '.join(f'`{case}`' for case in cases)}"] if cases else []
    if folded:
        summary = f"Sources, {len(cases)} cases" if cases else "Sources"
        lines += [f"<details><summary>{summary}</summary>\n", "\n".join(folded), "\n</details>\n"]
    return "\n".join(lines)
