"""Saving into `vocab.json` and `merges.txt`, and loading from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bpe_conformance.fixtures import Model, gpt2_files, read_text

from ..answer import MALFORMED, Acceptable, Accepted, Answer, Divergence, EntryDivergence, Fault, Table
from ..implementation.implementation import Implementation
from ..implementation.output import scratch_folder
from ..implementation.proxy import TokenizerProxy
from . import divergence
from .encode import Encode, Encoding
from .expected import Expected, OwnTable
from .operation import Call, Directory, Operation, plain
from .setting import Setting


@dataclass(frozen=True)
class Load(Encoding):
    """`from_files(vocab, merges)`, and `encode(text)` of the tokenizer that it returns."""

    text: str
    options: tuple[tuple[str, Any], ...] = ()  # what is special about the files, see `gpt2_files.write`
    name, needs, conformance_class = "load", ("from_files", "encode"), "files"

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Load:
        return cls(read_text(raw["text"]), tuple((name, value) for name, value in raw.items() if name != "text"))

    def write(self) -> dict[str, Any]:
        return {"text": self.text, **dict(self.options)}

    @contextmanager
    def receiver(self, implementation: Implementation, model: Model | None) -> Iterator[TokenizerProxy]:
        assert model is not None
        with scratch_folder() as folder:  # a tokenizer may read its files again while it encodes
            paths = gpt2_files.write(model, folder, **dict(self.options))
            yield implementation.from_files(*paths, model.special_tokens)

    def of(self, receiver: TokenizerProxy) -> Answer:
        return Encode(self.text).of(receiver)

    def call(self) -> Call:
        return Call("encode", (self.text,), on="loaded")

    def exported(self, model: Model | None) -> dict[str, Any]:
        assert model is not None
        with scratch_folder() as folder:
            written = gpt2_files.write(model, folder, **dict(self.options))
            contents = {file.name: file.read_bytes().decode("utf-8") for file in written}
        return {"text": plain(self.text), "files": contents}

    def arguments(self) -> Iterator[tuple[str, Any]]:
        yield "text", self.text
        if self.options:
            yield "files", self.options


@dataclass(frozen=True)
class OnlyLoad(Load):
    """`from_files(vocab, merges)` alone."""

    text: str = ""

    def of(self, receiver: TokenizerProxy) -> Answer:
        return Accepted()

    def computed(self, setting: Setting) -> Acceptable:
        return Accepted()


@dataclass(frozen=True)
class Save(Operation):
    """`save(folder)`, and the table in the files that it writes."""

    name, needs, conformance_class = "save", ("save",), "files"

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Save:
        return cls()

    def of(self, receiver: TokenizerProxy) -> Answer:
        with scratch_folder() as folder:
            receiver.save(folder)
            try:
                vocab, merges = gpt2_files.read(folder)
            except ValueError as error:
                return Fault(MALFORMED, str(error))
        return Table(vocab, tuple(merges))

    def computed(self, setting: Setting) -> Acceptable:
        return Table(dict(setting.table.vocab), setting.table.merges)

    def correct(self, expected: Expected, setting: Setting) -> tuple[Acceptable, ...]:
        return tuple(self.computed(setting) if value == OwnTable() else value for value in expected.under("pair") or ())

    def accepts(self, correct: Acceptable, answer: Answer, setting: Setting, receiver: Any = None) -> bool:
        if isinstance(correct, Table) and isinstance(answer, Table):
            return answer.merges == correct.merges and _first_wrong_entry(setting.table, answer.vocab) is None
        return super().accepts(correct, answer, setting, receiver)

    def divergence(self, correct: Sequence[Acceptable], answer: Answer, setting: Setting) -> Divergence | None:
        right = correct[0]
        if not isinstance(right, Table) or not isinstance(answer, Table):
            return None
        if answer.merges == right.merges:
            return _first_wrong_entry(setting.table, answer.vocab)
        return divergence.training([], right.merges, answer.merges)

    def call(self) -> Call:
        return Call("save", (Directory(),))


def _first_wrong_entry(model: Model, vocab: Mapping[int, bytes]) -> EntryDivergence | None:
    special = {token.encode("utf-8") for token in model.special_tokens or ()}
    for index, token in model.vocab.items():
        if vocab.get(index) != token:
            return EntryDivergence(index, token, vocab.get(index))
    for index, token in vocab.items():
        if index not in model.vocab and token not in special:
            return EntryDivergence(index, None, token)
    return None
