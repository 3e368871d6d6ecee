"""`bpe-conformance train`: trains a tokenizer on text files."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from bpe_conformance.fixtures import PATTERNS, Model
from bpe_conformance.fixtures.conventions import TRAINING_CONVENTIONS
from bpe_conformance.fixtures.files import check_folder, write_files
from bpe_conformance.reference import Tokenizer, superbpe
from bpe_conformance.reference.dispatch import Progress
from bpe_conformance.reference.formats import gpt2, huggingface, tiktoken
from bpe_conformance.reference.patterns import resolve
from bpe_conformance.reference.special_tokens import SpecialTokens

from ..command_line import CommandError, command_errors
from ..terminal.show import token
from . import common
from .common import bars, size

FORMATS = ("huggingface", "gpt2", "tiktoken")
TABLES = ("tokenizer.json", "vocab.json", "merges.txt", "ranks.tiktoken")
SUPERBPE = ("unit_pattern", "most_words")
HELP = {
    "tie_break": "which of the most frequent pairs is merged",
    "byte_order": "the order of the ids of the bytes",
    "id_layout": "the order in which bytes, special tokens and merges get ids",
    "train_special": "whether special tokens in the text are boundaries or ordinary text",
    "format": "what to write: tokenizer.json, vocab.json with merges.txt, or ranks.tiktoken; repeatable; default: the "
    "first two, or only the first if the pattern is not gpt2",
    "unit_pattern": "SuperBPE: the pattern of the second stage and of encoding; see docs/superbpe.md",
}
SAMPLE = 10_000_000  # bytes of the first file that are encoded to report the bytes per token


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="a text in UTF-8, one document; - for standard input")
    add("--vocab-size", type=int, required=True, metavar="N", help="entries: bytes, special tokens and merges")
    add("-o", dest="folder", type=Path, required=True, metavar="DIR", help="output directory, created if needed")
    add("--special", action="append", default=[], metavar="TEXT", help="a special token; repeatable")
    add("--pattern", default="gpt2", metavar="NAME_OR_REGEX", help="the split pattern; default gpt2")
    add("--transition", type=int, metavar="N", help="SuperBPE: from this size on, merges cross word boundaries")
    add("--unit-pattern", metavar="REGEX", help=HELP["unit_pattern"])
    add("--most-words", type=int, metavar="N", help="SuperBPE: the maximum number of words in a token; default 4")
    add("--workers", type=int, default=1, metavar="N", help="processes for counting; default 1")
    for name, values in TRAINING_CONVENTIONS.items():
        option = f"--{name.replace('_', '-')}"
        add(option, choices=values, default=values[0], help=f"{HELP[name]}; default {values[0]}")
    add("--format", action="append", choices=FORMATS, help=HELP["format"])
    add("--errors", choices=("strict", "replace"), default="strict", help="what to do if a file is not UTF-8")


def run(options: argparse.Namespace) -> int:
    # vocab.json and merges.txt do not store the pattern, and readers assume GPT-2's.
    formats = options.format or FORMATS[: 2 if _encoding_pattern(options) in ("gpt2", PATTERNS["gpt2"]) else 1]
    began = time.perf_counter()
    with command_errors(ValueError, RuntimeError):
        _rehearse(options, formats)
        sources = [_source(name, options.errors) for name in options.files]
        sizes = [file.stat().st_size if isinstance(file, Path) else len(file.encode("utf-8")) for file in sources]
        with bars("") as progress:
            trained = _trained(sources, options, progress)
        seconds = time.perf_counter() - began
        files = _rendered(trained.model, formats)
        write_files(options.folder, {name: text.encode("utf-8") for name, text in files.items()})
    for line in _summary(trained, sources[0], sum(sizes), seconds, options):
        print(line)
    print(f"wrote         {', '.join(str(options.folder / name) for name in sorted(files))}")
    if _encoding_pattern(options) not in ("gpt2", PATTERNS["gpt2"]) and (without := set(formats) - {"huggingface"}):
        files_without = " and ".join(sorted(without))
        print(f"note          {files_without} files do not store the split pattern; tokenizer.json does")
    return 0


def _encoding_pattern(options: argparse.Namespace) -> str:
    if options.transition is None:
        return str(options.pattern)
    return options.unit_pattern or superbpe.UNITS


def _trained(sources: Iterable[str | Path], options: argparse.Namespace, progress: Progress) -> Tokenizer:
    settings = {name: getattr(options, name) for name in ("pattern", "workers", *TRAINING_CONVENTIONS)}
    if options.transition is None:
        return Tokenizer.train(sources, options.vocab_size, options.special, progress=progress, **settings)
    del settings["train_special"]
    settings |= {name: getattr(options, name) for name in SUPERBPE if getattr(options, name) is not None}
    size, transition = options.vocab_size, options.transition
    return superbpe.train(sources, size, transition, options.special, progress=progress, **settings)


def _check_superbpe(options: argparse.Namespace, least: int) -> None:
    for name in SUPERBPE:
        if options.transition is None and getattr(options, name) is not None:
            raise CommandError(f"--{name.replace('_', '-')}: belongs to SuperBPE; add --transition")
    if options.transition is None:
        return
    if options.train_special != "boundary":
        fix = "remove one of the two options"
        raise CommandError(f"--train-special text: SuperBPE always treats special tokens as boundaries; {fix}")
    if not least <= options.transition <= options.vocab_size:
        raise CommandError(f"--transition {options.transition}: must be from {least} to {options.vocab_size}")
    if options.most_words is not None and options.most_words < 1:
        raise CommandError(f"--most-words {options.most_words}: must be at least 1")
    if options.unit_pattern is not None:
        resolve(options.unit_pattern)


def _rehearse(options: argparse.Namespace, formats: Iterable[str]) -> None:
    """Check the options and the output directory before training: make the files of a model without merges."""
    special = SpecialTokens(options.special).tokens
    tokens = [bytes([byte]) for byte in range(256)] + [token.encode("utf-8") for token in special]
    if options.vocab_size < len(tokens):
        least = f"must be at least {len(tokens)}, for bytes and special tokens"
        raise CommandError(f"--vocab-size {options.vocab_size}: {least}")
    resolve(options.pattern)
    _check_superbpe(options, len(tokens))
    if not options.folder.absolute().parent.is_dir():
        raise CommandError(f"{options.folder}: there is no directory {options.folder.absolute().parent}")
    if options.folder.exists() and not options.folder.is_dir():
        raise CommandError(f"{options.folder}: is not a directory")
    files = _rendered(Model(dict(enumerate(tokens)), (), special, _encoding_pattern(options)), formats)
    for name in files:
        common.check_other(options.files, options.folder / name)
    for name in (table for table in TABLES if table not in files and (options.folder / table).exists()):
        raise CommandError(f"{options.folder / name}: belongs to an earlier tokenizer; delete it, or add its --format")
    check_folder(options.folder)


def _source(name: str, errors: str) -> str | Path:
    with common.opened(name) as stream:
        if not common.is_regular(name):  # a pipe can be read only once
            return "".join(common.decoded(common.chunks(stream, name), name, errors))
    if errors == "strict":
        common.check_utf8(name)
    return Path(name)


def _rendered(model: Model, formats: Iterable[str]) -> dict[str, str]:
    files = {}
    if "huggingface" in formats:
        files["tokenizer.json"] = huggingface.rendered(model)
    if "gpt2" in formats:
        files |= gpt2.rendered(model.vocab, model.merges)
    if "tiktoken" in formats:
        files["ranks.tiktoken"] = tiktoken.rendered(model)
    return files


def _summary(
    trained: Tokenizer, first: str | Path, read: int, seconds: float, options: argparse.Namespace
) -> Iterator[str]:
    merges = len(trained.merges)
    workers = f" with {options.workers} workers" if options.workers > 1 else ""
    tokens = f"{len(trained.vocab):,} tokens, {merges:,} of them merges"
    yield f"trained       {tokens}, on {size(read)} in {seconds:.1f} s{workers}"
    if len(trained.vocab) < options.vocab_size:
        yield f"exhausted     no pair is left to merge; --vocab-size {options.vocab_size:,} is not reached"
    yield from _memory()
    sample = first[:SAMPLE] if isinstance(first, str) else _head(first)
    if sample:
        whole = "" if len(sample.encode("utf-8")) == read else f" on the first {size(len(sample.encode('utf-8')))}"
        yield f"bytes/token   {len(sample.encode('utf-8')) / len(trained.encode(sample)):.3f}{whole}"
    longest = sorted(dict.fromkeys(left + right for left, right in trained.merges), key=len, reverse=True)[:3]
    if longest:
        shown = [(token(raw), len(raw)) for raw in longest]
        sized = (text if text.endswith(" bytes)") else f"{text} ({length} bytes)" for text, length in shown)
        yield f"longest       {', '.join(sized)}"


def _head(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return stream.read(SAMPLE).decode("utf-8", "replace")
    except OSError:  # the result is written; this is only for the summary
        return ""


def _memory() -> Iterator[str]:
    try:
        import resource
    except ImportError:
        return
    unit = 1 if sys.platform == "darwin" else 1024
    processes = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    own, of_worker = (resource.getrusage(who).ru_maxrss * unit for who in processes)
    yield f"memory        {size(own)} at most" + (f", the largest worker {size(of_worker)}" if of_worker else "")
