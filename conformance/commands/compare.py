"""`bpe-conformance compare`: compares two tokenizers on the user's own text."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bpe_conformance.fixtures import PATTERNS, Model
from bpe_conformance.fixtures.expression import pattern_name
from bpe_conformance.fixtures.one_line import counted, shortened

from ..answer import first_difference
from ..command_line import CommandError
from ..implementation.implementation import Implementation, load
from ..implementation.proxy import CallFailed, TimedOut, TokenizerProxy
from ..packs.files import add_options, first_conflict, fit, lacks, overrides, read_model_files
from ..session import corpus
from ..terminal import show
from .common import bars, size

TIME_LIMIT = 60.0
LONG_ENOUGH = 5_000_000  # bytes from which on the speed is shown; start-up takes most of the time for shorter texts


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("adapters", nargs=2, metavar="ADAPTER", help="as for --adapter of the suite")
    add("--corpus", required=True, metavar="PATH", help="a text file, a directory, or stdlib")
    add("--table", metavar="TABLE", help="the model for both, as for encode; default: their fixed model, or gpt2")
    add_options(parser)


@dataclass
class Side:
    """One of the two tokenizers: what it is built from, and how many tokens it has returned in how much time."""

    implementation: Implementation
    model: Model
    tokens: int = 0
    seconds: float = 0.0
    proxy: TokenizerProxy | None = None

    def encode(self, text: str) -> list[int] | str:
        """Return the ids of `text`, or what went wrong."""
        try:
            with self.implementation.time_limit():
                self.proxy = self.proxy or self.implementation.build(self.model)
                began = time.perf_counter()
                ids = self.proxy.encode(text)
        except (CallFailed, TimedOut) as fault:
            self.proxy = None  # its process may have ended; the next call starts a new one
            return str(fault)
        self.seconds += time.perf_counter() - began
        self.tokens += len(ids)
        return ids


@dataclass
class Comparison:
    """The numbers of bytes read, of blocks encoded and of those that differ, and the first difference as lines."""

    read: int = 0
    blocks: int = 0
    different: int = 0
    first: list[str] = field(default_factory=list)


def run(options: argparse.Namespace) -> int:
    """Compare, and print the result; the status is 1 if their ids differ, or cannot be compared."""
    texts = corpus.find(options.corpus)
    found = Comparison()
    with contextlib.redirect_stdout(sys.stderr):
        left, right = (load(name, limit=TIME_LIMIT) for name in options.adapters)
        sides = _sides(left, right, options)
        same = sides[0].model == sides[1].model
        with bars("file") as progress:
            for number, file in enumerate(texts.files, start=1):
                _compare(file, sides, found, same)
                progress("comparing", number, len(texts.files))
    for line in _lines(sides, found, same, texts.files):
        print(line)
    return 1 if found.different or not same else 0


def _sides(left: Implementation, right: Implementation, options: argparse.Namespace) -> tuple[Side, Side]:
    for implementation in (left, right):
        if "encode" not in implementation.capabilities:
            raise CommandError(f"{implementation.name}: does not encode; name a tokenizer that does")
    if options.table is None and left.model_file and right.model_file:
        first, second = (read_model_files([str(one.model_file)], overrides(options)).model for one in (left, right))
        if not model_difference(first, second):
            options.table = left.fixed_model
    named = [options.table or one.fixed_model for one in (left, right)]  # `fit` gives the model of a file its name
    tables = named[0] or named[1] or "gpt2", named[1] or named[0] or "gpt2"
    return _side(left, tables[0], options), _side(right, tables[1], options)


def _side(implementation: Implementation, asked: str, options: argparse.Namespace) -> Side:
    try:
        model = read_model_files([asked], overrides(options)).model
    except CommandError:
        if options.table is not None or Path(asked).exists():
            raise
        fix = "make it the absolute path of the model's file"
        raise CommandError(f"{asked} is the `model` of an adapter; {fix}") from None
    fit(implementation, model, asked)
    if implementation.fixed_model not in (None, model.name):
        has = f"has only the model {implementation.fixed_model}"
        raise CommandError(f"{implementation.name}: {has}; remove --table {asked}")
    if model.pipeline is not None:
        if implementation.fixed_model is None and "from_tokenizer_json" not in implementation.capabilities:
            lacks = "has no from_tokenizer_json, which models with a pipeline need"
            raise CommandError(
                f"{implementation.name}: {lacks}; name one that has the model, such as tiktoken:llama3_1"
            )
    elif implementation.fixed_model is None and model.pattern != "gpt2":
        is_named = model.pattern in PATTERNS
        name = f"the pattern {model.pattern}" if is_named else "the regular expression of the table"
        if f"pattern:{pattern_name(model.pattern)}" not in implementation.capabilities:
            raise CommandError(f"{implementation.name}: does not support {name}")
    return Side(implementation, model)


def _compare(file: Path, sides: tuple[Side, Side], counts: Comparison, same: bool) -> None:
    line = 1
    for text in corpus.blocks(file):
        answers = [side.encode(text) for side in sides]
        counts.read += len(text.encode("utf-8"))
        counts.blocks += 1
        if any(isinstance(answer, str) for answer in answers) or (same and answers[0] != answers[1]):
            counts.different += 1
            if not counts.first:
                counts.first = list(_difference(file, line, text, sides, answers))
        line += text.count("\n")


def _difference(
    file: Path, line: int, text: str, sides: tuple[Side, Side], answers: Sequence[list[int] | str]
) -> Iterator[str]:
    lists = [answer for answer in answers if not isinstance(answer, str)]
    width = max(11, *(len(side.implementation.title) for side in sides))
    if len(lists) < 2:
        yield f"first         {file}, line {line} and following"
        for side, answer in zip(sides, answers, strict=True):
            result = answer if isinstance(answer, str) else counted(len(answer), "id")
            yield f"  {side.implementation.title:<{width}} {result}"
        return
    index = first_difference(lists[0], lists[1])
    before = text.encode("utf-8")[: sum(len(sides[0].model.vocab.get(id_, b"")) for id_ in lists[0][:index])]
    yield f"first         {file}, line {line + before.count(10)}"
    yield f"  {'after':<{width}} {show.text_line(before[-40:].decode('utf-8', 'replace'))}"
    for side, ids in zip(sides, lists, strict=True):
        yield f"  {side.implementation.title:<{width}} {show.ids(ids, side.model.vocab, index)}"


def model_difference(first: Model, second: Model) -> str:
    """Return how two models differ, apart from padding, or ""."""
    if (index := first_conflict(first.vocab, second.vocab)) is not None:
        return (
            f"the id {index} is {shortened(first.vocab[index])} in one, {shortened(second.vocab[index])} in the other"
        )
    if len(first.merges) == len(second.merges) and first.merges != second.merges:
        return "their merges differ"
    return lacks(first, second, "the first", "the second") or lacks(second, first, "the second", "the first")


def _lines(sides: tuple[Side, Side], counts: Comparison, same: bool, files: Sequence[Path]) -> Iterator[str]:
    names = " and ".join(side.implementation.title for side in sides)
    served = sides[0].model.name if same else " and ".join(side.model.name for side in sides)
    yield f"compared      {names} on {size(counts.read)} in {counted(len(files), 'file')}, model {served}"
    if invalid := [file for file in files if not corpus.is_utf8(file)]:
        example = f"{counted(len(invalid), 'file')}, for example {invalid[0]}"
        yield f"not UTF-8     {example}; invalid bytes were read as U+FFFD"
    if same or counts.different:
        alike = "none" if not counts.different else f"{counts.different:,}"
        yield f"different     {alike} of {counted(counts.blocks, 'block')}"
    else:
        yield f"different     not compared: the models differ; {model_difference(*(side.model for side in sides))}"
    yield from counts.first
    if all(side.tokens for side in sides):
        yield f"bytes/token   {' and '.join(f'{counts.read / side.tokens:.3f}' for side in sides)}"
    if counts.read >= LONG_ENOUGH and all(side.seconds for side in sides):
        yield f"speed         {' and '.join(f'{size(round(counts.read / side.seconds))}/s' for side in sides)}"
