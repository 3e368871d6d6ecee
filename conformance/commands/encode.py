"""`bpe-conformance encode` and `decode`: text to ids and back, for files and pipes of any size."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from bpe_conformance.fixtures.files import parse_json
from bpe_conformance.fixtures.one_line import counted
from bpe_conformance.reference import Tokenizer
from bpe_conformance.reference.chunks import is_url

from ..command_line import CommandError, command_errors, print_error
from ..packs.files import ONE_NAMED, add_options, overrides, read_model_files
from . import common
from .common import bars

NUMBERS: dict[str, npt.DTypeLike] = {"uint16": "<u2", "uint32": "<u4"}
BITS = {"uint16": 16, "uint32": 32}
FORMS = ("text", "jsonl", *NUMBERS)
BATCH = 1 << 16
LONGEST = 20  # maximum number of digits of an id
HELP = {
    "files": "a text in UTF-8; default standard input; the ids of several files, or of URLs if fsspec is installed, "
    "become arrays (.npy) in the directory of -o; an array that is already complete is skipped",
    "tokenizer": ONE_NAMED,
    "--as": "text (default): ids separated by white space; jsonl: a JSON string or a JSON array of ids on each "
    "line; uint16, uint32: little-endian numbers",
    "--stream": "write each character as soon as its last id arrives, and U+FFFD for bytes that are not UTF-8",
}


def encode_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _table_arguments(parser)
    add("files", nargs="*", default=[], metavar="FILE", help=HELP["files"])
    _output_arguments(parser, "FILE_OR_DIR")
    add("--errors", choices=("strict", "replace"), default="strict", help="what to do if the text is not UTF-8")
    add("--workers", type=int, default=1, metavar="N", help="worker processes, for arrays, uint16 and uint32")
    add("--shard-size", type=int, metavar="BYTES", help="bytes of text in each array; default: one array for each file")


def decode_arguments(parser: argparse.ArgumentParser) -> None:
    _table_arguments(parser)
    parser.add_argument("file", nargs="?", default=common.STANDARD, metavar="FILE", help="ids; default standard input")
    _output_arguments(parser, "FILE")
    parser.add_argument("--stream", action="store_true", help=HELP["--stream"])


def _table_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tokenizer", metavar="TABLE", help=HELP["tokenizer"])
    add_options(parser)


def _tokenizer(options: argparse.Namespace) -> Tokenizer:
    return Tokenizer.from_model(read_model_files([options.tokenizer], overrides(options)).model)


def _output_arguments(parser: argparse.ArgumentParser, target: str) -> None:
    where = "the output; default standard output"
    parser.add_argument("-o", dest="target", default=common.STANDARD, metavar=target, help=where)
    parser.add_argument("--as", dest="form", choices=FORMS, help=HELP["--as"])


def encode_run(options: argparse.Namespace) -> int:
    if options.workers < 1:
        raise CommandError(f"--workers {options.workers}: must be at least 1")
    one = _tokenizer(options)
    if options.form in NUMBERS and max(one.vocab) > np.iinfo(NUMBERS[options.form]).max:
        raise CommandError(f"--as {options.form}: the id {max(one.vocab)} does not fit; use uint32")
    if len(options.files) > 1 or options.shard_size is not None or any(map(is_url, options.files)):
        return _encode_files(one, options)
    options.file, options.form = (*options.files, common.STANDARD)[0], options.form or "text"
    common.check_other([options.file], options.target)
    with common.opened(options.file) as source:
        to_file = options.target != common.STANDARD and not common.is_special(options.target)
        if options.form in NUMBERS and to_file and common.is_regular(options.file):
            _encode_file(one, options)
            return 0
        with common.written(options.target, options.form in NUMBERS) as target:
            decoded = common.decoded(common.chunks(source, options.file), options.file, options.errors)
            for part in _encoded(one, decoded, options):
                target.write(part)
                target.flush()
    return 0


def _encode_files(tokenizer: Tokenizer, options: argparse.Namespace) -> int:
    if options.target == common.STANDARD:
        raise CommandError("several files, URLs and --shard-size need an output directory; add -o DIR")
    if options.form and options.form not in NUMBERS:
        raise CommandError(f"--as {options.form}: arrays in a directory are uint16 or uint32")
    if common.STANDARD in options.files:
        raise CommandError("standard input cannot be one of several inputs; name only files")
    with command_errors(ValueError, RuntimeError), bars("B") as progress:
        settings = {name: getattr(options, name) for name in ("shard_size", "errors", "workers")}
        settings |= {"bits": BITS.get(options.form), "progress": progress}
        done = tokenizer.encode_files(options.files, options.target, **settings)
    for line in done.failures:
        print_error(line)
    skipped = f", {done.skipped:,} of them complete before" if done.skipped else ""
    print(f"{counted(done.arrays, 'array')} with {done.ids:,} ids{skipped}")
    return 2 if done.failures else 0


def _encode_file(tokenizer: Tokenizer, options: argparse.Namespace) -> None:
    if options.errors == "strict":
        common.check_utf8(options.file)
    common.check_target(options.target)
    settings = {"bits": BITS[options.form], "workers": options.workers}
    with command_errors(ValueError, RuntimeError), bars("B") as progress:
        tokenizer.encode_file(options.file, options.target, **settings, progress=progress)


def _encoded(tokenizer: Tokenizer, decoded: Iterator[str], options: argparse.Namespace) -> Iterator[bytes]:
    if options.form == "jsonl":
        for number, line in enumerate(_lines(decoded), start=1):
            value = _json(line, number, options.file)
            if not isinstance(value, str):
                raise _malformed(options.file, number, f"{line[:40]!a} is not a JSON string")
            try:
                yield f"{json.dumps(tokenizer.encode(value), separators=(',', ':'))}\n".encode("ascii")
            except UnicodeEncodeError:
                raise _malformed(options.file, number, "the text contains a lone surrogate") from None
        return
    ids = tokenizer.encode_iterable(decoded)
    between = b""
    while some := list(islice(ids, BATCH)):
        if options.form == "text":
            yield between + " ".join(map(str, some)).encode("ascii")
            between = b" "
        else:
            yield np.array(some, NUMBERS[options.form]).tobytes()
    if options.form == "text":
        yield b"\n"


def decode_run(options: argparse.Namespace) -> int:
    options.form = options.form or "text"
    if options.stream and options.form == "jsonl":
        raise CommandError("--stream writes one text as it arrives, and --as jsonl has a text in each line; remove one")
    one = _tokenizer(options)
    common.check_other([options.file], options.target)
    with common.opened(options.file) as source, common.written(options.target, binary=False) as target:
        for part in _decoded(one, source, options):
            target.write(part)
            target.flush()
    return 0


def _decoded(tokenizer: Tokenizer, source: IO[bytes], options: argparse.Namespace) -> Iterator[bytes]:
    data = common.chunks(source, options.file)
    if options.form == "jsonl":
        for number, line in enumerate(_lines(common.decoded(data, options.file, "strict")), start=1):
            value = _json(line, number, options.file)
            if not isinstance(value, list) or not all(type(index) is int for index in value):
                raise _malformed(options.file, number, f"{line[:40]!a} is not a JSON array of ids")
            try:
                yield f"{json.dumps(tokenizer.decode(value), ensure_ascii=False)}\n".encode()
            except ValueError as error:
                raise _malformed(options.file, number, str(error)) from None
        return
    batches = _numbers(data, options) if options.form in NUMBERS else _written(data, options.file)
    batches = _known(batches, tokenizer, options.file)
    if options.stream:
        yield from (delta.encode() for delta in tokenizer.decode_iterable(chain.from_iterable(batches)))
    else:
        yield from map(tokenizer.decode_bytes, batches)


def _known(batches: Iterable[list[int]], tokenizer: Tokenizer, name: str) -> Iterator[list[int]]:
    """Yield ids up to the first that is unknown, and then raise a CommandError."""
    known = 0
    for ids in batches:
        index = next((index for index, id_ in enumerate(ids) if id_ not in tokenizer.vocab), len(ids))
        yield ids[:index]
        known += index
        if index < len(ids):
            where = f"{common.shown(name)}: the id {ids[index]} at index {known}"
            raise CommandError(f"{where} is not in the vocabulary")


def _numbers(data: Iterable[bytes], options: argparse.Namespace) -> Iterator[list[int]]:
    kind = np.dtype(NUMBERS[options.form])
    held = b""
    for part in data:
        held += part
        whole = len(held) // kind.itemsize * kind.itemsize
        yield np.frombuffer(held[:whole], kind).tolist()
        held = held[whole:]
    if held:
        where = common.shown(options.file)
        raise CommandError(f"{where}: its size is not a multiple of {kind.itemsize}; is it {options.form}?")


def _written(data: Iterable[bytes], name: str) -> Iterator[list[int]]:
    held = b""
    known = 0
    for part in chain(data, [b" "]):
        words = (held + part).split()
        held = b"" if part[-1:].isspace() else words.pop()
        if held[LONGEST:]:
            words.append(held)
        for word in words:
            if not word.isdigit() or word[LONGEST:]:
                shown = word[:40].decode("utf-8", "replace")
                fix = "; if each line is a JSON array of ids, add --as jsonl" if word.startswith(b"[") else ""
                raise CommandError(f"{common.shown(name)}: {shown!a} at index {known} is not an id{fix}")
            known += 1
        yield list(map(int, words))


def _lines(decoded: Iterable[str]) -> Iterator[str]:
    """Yield lines without their LF, the only separator; no empty line at the end."""
    held: list[str] = []
    for part in decoded:
        *complete, rest = part.split("\n")
        for line in complete:
            yield "".join([*held, line])
            held = []
        held.append(rest)
    if any(held):
        yield "".join(held)


def _json(line: str, number: int, name: str) -> Any:
    with command_errors(ValueError):
        return parse_json(line, common.shown(name), number)


def _malformed(name: str, number: int, what: str) -> CommandError:
    return CommandError(f"{common.shown(name)}:{number}: {what}")
