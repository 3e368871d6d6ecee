"""The extension SuperBPE of the specification: a file with one section, its clauses and its cases.

The suite tests no adapter against an extension, and no verdict depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Merge, read_text, write_token
from bpe_conformance.fixtures.yaml_file import Document, PathOf, read_documents
from bpe_conformance.reference import textbook
from bpe_conformance.reference.superbpe import textbook as superbpe_textbook

from ..operations import TRAINING_KEYS, Expected, Merges, conventions_of
from ..spec import FOLDER, Clause, Section

FILE = FOLDER / "extensions" / "superbpe.yaml"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "superbpe.md"  # only in a clone: a package has no manual


@dataclass(frozen=True)
class ExtensionCase:
    id: str
    clause: Clause
    raw: Mapping[str, Any]
    document: Document
    path: PathOf

    @property
    def value(self) -> dict[str, Any]:
        """The oracle's value: of a training the merges, of an encoding tokens and ids; a rule itself."""
        training = self.raw["input"]["train"]
        if "error" in self.raw.get("expect", {}):
            return dict(self.raw["expect"])
        if self.raw["op"] == "encode":
            special = list(map(read_text, training["special_tokens"]))
            merges = _learn(training, "lex-greater")
            pattern = training.get("unit_pattern", superbpe_textbook.UNITS)
            tokenizer = textbook.Tokenizer(textbook.build_vocab(merges, special), merges, special, pattern)
            ids = tokenizer.encode(read_text(self.raw["input"]["text"]))
            return {"tokens": [write_token(tokenizer.vocab[index]) for index in ids], "ids": ids}
        values = {key: (Merges(tuple(_learn(training, key))),) for key in TRAINING_KEYS}
        return Expected.merged(values).write(None)


@dataclass(frozen=True)
class Extension:
    section: Section
    cases: tuple[ExtensionCase, ...]


def load_extension(file: Path = FILE) -> Extension:
    (document,) = read_documents(file)
    value = document.value
    name = value["section"]
    clauses = {raw["id"]: Clause.read(raw, name) for raw in value["clauses"]}
    rows = enumerate(value["cases"])
    cases = (ExtensionCase(raw["id"], clauses[raw["clause"]], raw, document, ("cases", index)) for index, raw in rows)
    return Extension(Section(name, value["title"], value["intro"], tuple(clauses.values())), tuple(cases))


def _learn(training: Mapping[str, Any], key: str) -> list[Merge]:
    rules: dict[str, Any] = conventions_of(key)
    del rules["train_special"]  # the extension has no such convention
    options = {name: training[name] for name in ("unit_pattern", "most_words") if name in training}
    documents, special = (list(map(read_text, training[name])) for name in ("documents", "special_tokens"))
    size, transition = training["vocab_size"], training["transition"]
    pattern = PATTERNS[training.get("pattern", "gpt2")]
    return superbpe_textbook.learn(documents, size, transition, special, pattern, **rules, **options)
