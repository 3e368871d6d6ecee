"""Each parser as a function of bytes, which it rejects in one line with the file or reads into a valid value.

Hypothesis (`tests/slow/fixtures/test_parsers_fuzzed.py`) and atheris (`tests/fuzz/run.py`) drive them.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import queue
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import yaml

from bpe_conformance import cli
from bpe_conformance.adapters.bridge import client as bridge_client
from bpe_conformance.adapters.bridge import server as serve
from bpe_conformance.adapters.bridge.client import bridge
from bpe_conformance.adapters.errors import AdapterError, RemoteError
from bpe_conformance.adapters.loading import resolve
from bpe_conformance.command_line import CommandError
from bpe_conformance.fixtures import PATTERNS, Model
from bpe_conformance.fixtures.answers import LARGEST_ID, rebuild_ids
from bpe_conformance.fixtures.expression import compile_expression
from bpe_conformance.fixtures.yaml_file import SpecError, read_documents
from bpe_conformance.packs.files import (
    CASES,
    MANIFEST,
    TABLE,
    Overrides,
    checked_pattern,
    load_pack,
    read_model_files,
    read_special,
)
from bpe_conformance.reference import Tokenizer
from bpe_conformance.reference.formats import gpt2, huggingface, tiktoken
from bpe_conformance.report import document, matrix
from bpe_conformance.session.setup import read_known_failures, write_known_failures
from bpe_conformance.spec import installed_spec, load_spec

SPEC = Path(__file__).parent.parent / "spec"
SEEDS = Path(__file__).parent / "seeds"
SECONDS = 20.0
"""Seconds that one input may take."""
LONGEST = 800
"""The most characters of an error, including the path at its start."""
TEXT = "low lower é 日本\n"

DICTIONARY = (
    *(b'{"', b'":', b'"', b"[]", b"{}", b"null", b"true", b"1e999", b"NaN", b"-1", b"4294967296", b"9" * 5000),
    *(b"\\ud800", b"\xef\xbb\xbf", b"\xff", b"\0", b"\r\n", b"\n", b"---\n", b"- ", b": ", b"&a ", b"*a", b"!!x "),
    *(b"<<: ", b"? ", b"| ", b"> ", b"'", b"#", b"%YAML 1.2\n", b"..", b"/", b"YQ== 0\n", b"YR==", b"Zg", b" "),
    *(b"[" * 100, b"{a: " * 30, b'{"a":' * 100, b"(" * 200, b"{999999}", b"vocab", b"merges", b"added_tokens"),
    *(b"repeat", b"concat", b"code_points", b"file", b"hex", b"shows", b"extra", b"remove", b"\x85", b"\x86", b"\x94"),
)
"""Bytes that mutations insert."""


class Finding(AssertionError):
    """A parser broke a rule."""


@dataclass(frozen=True)
class Target:
    """One parser.

    Attributes:
        read: reads the bytes in a new directory and checks the result.
        refusals: the errors, of one line, with which the parser rejects input.
        places: whether the line names the directory or a file in it.
    """

    read: Callable[[bytes, Path], object]
    refusals: tuple[type[Exception], ...] = (ValueError,)
    places: bool = True


def check(name: str, data: bytes, folder: Path) -> str | None:
    """Let a target read `data`; return the line of its error, or None if it accepts the data.

    Raises:
        Finding: if the error is not one line with a position, or if reading takes too long.
        Exception: any other error of the parser.
    """
    target, began = TARGETS[name], time.perf_counter()
    try:
        target.read(data, folder)
        refusal = None
    except target.refusals as error:
        _check_refusal(error, folder if target.places else None)
        refusal = str(error)
    if (seconds := time.perf_counter() - began) > SECONDS:
        raise Finding(f"{seconds:.0f} s")
    return refusal


def seeds(name: str) -> list[bytes]:
    """Return the stored inputs of a target: small valid files, and those on which it once failed."""
    return [file.read_bytes() for file in sorted((SEEDS / name).iterdir())]


def _check_refusal(error: Exception, folder: Path | None) -> None:
    line = str(error)
    if len(line.splitlines()) != 1 or not line.isprintable():
        raise Finding(f"not one line: {line!a}") from error
    if folder is not None and str(folder) not in line:
        raise Finding(f"no place: {line}") from error
    if len(line) > LONGEST:
        raise Finding(f"{len(line)} characters: {line[:200]}") from error


def _put(folder: Path, name: str, data: bytes) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def _hold(holds: bool, what: str) -> None:
    if not holds:
        raise Finding(what)


# Tables


def _check_model(model: Model) -> None:
    ids = list(model.vocab)
    _hold(all(type(index) is int and 0 <= index <= LARGEST_ID for index in ids), f"ids {ids[:5]}")
    _hold(all(type(token) is bytes for token in model.vocab.values()), "tokens that are no bytes")
    _hold(len(set(model.merges)) == len(model.merges), "a merge is a duplicate")
    known = set(model.vocab.values())
    for left, right in model.merges:
        _hold(known.issuperset((left, right, left + right)), f"merge of unknown tokens {left!r} {right!r}")
    for text in model.special_tokens or ():
        _hold(not text or text.encode("utf-8") in known, f"special token {text!a}")


def _check_encodes(model: Model) -> None:
    """Check that an accepted table encodes a text and decodes it again."""
    _check_model(model)
    if PATTERNS.get(model.pattern, model.pattern) in PATTERNS.values():  # others may be slow by design
        tokenizer = Tokenizer.from_model(model)
        _hold(tokenizer.decode_bytes(tokenizer.encode(TEXT)) == TEXT.encode(), "it does not decode to the same")


def _back(write: Callable[[Path], object], read: Callable[[Path], object], file: Path, value: object) -> None:
    """Check that a model that can be written is read back equal."""
    try:
        write(file)
    except ValueError as error:
        _check_refusal(error, None)
        return
    _hold(read(file) == value, "what was read is written, and read as something else")


def _gpt2_vocab(data: bytes, folder: Path) -> None:
    file = _put(folder, "vocab.json", data)
    vocab = gpt2.read_vocab(file)
    _check_model(Model(vocab, ()))
    _back(lambda path: gpt2.write(path.parent, vocab, []), gpt2.read_vocab, file, vocab)


def _gpt2_merges(data: bytes, folder: Path) -> None:
    file = _put(folder, "merges.txt", data)
    merges = gpt2.read_merges(file)
    vocab = dict(enumerate({part for left, right in merges for part in (left, right, left + right)}))
    _check_model(Model(vocab, tuple(merges)))
    _back(lambda path: gpt2.write(path.parent, vocab, merges), gpt2.read_merges, file, merges)


def _gpt2_pair(data: bytes, folder: Path) -> None:
    vocab, _, merges = data.partition(b"\0")
    files = _put(folder, "vocab.json", vocab), _put(folder, "merges.txt", merges)
    model = read_model_files([str(file) for file in files], Overrides("x")).model
    _check_encodes(model)
    try:
        tokenizer = Tokenizer.from_files(*files)
    except ValueError as error:
        raise Finding("read as a table, and refused as two files") from error
    _hold(dict(model.vocab) == tokenizer.vocab, "read otherwise as two files")


def _tiktoken(data: bytes, folder: Path) -> None:
    file = _put(folder, "x.tiktoken", data)
    model = tiktoken.read(file)
    _check_model(model)
    _back(lambda path: tiktoken.write(path, model), tiktoken.read, file, model)


def _huggingface(data: bytes, folder: Path) -> None:
    file = _put(folder, "tokenizer.json", data)
    model = huggingface.read(file)
    _check_model(model)
    try:
        huggingface.write(file, model)
    except ValueError as error:
        _check_refusal(error, None)
        return
    back = huggingface.read(file)
    _hold((back.vocab, back.merges) == (model.vocab, model.merges), "what was read is written as something else")
    _hold(set(back.special_tokens or ()) == set(model.special_tokens or ()), "other special tokens")


def _table(data: bytes, folder: Path) -> None:
    file = _put(folder, "table", data)
    _check_encodes(read_model_files([str(file)], Overrides("x", "gpt2")).model)


def _pattern(data: bytes, folder: Path) -> None:
    text = data.decode("utf-8", "surrogatepass")
    for compiled in (compile_expression, checked_pattern):
        compiled(text)


# YAML


def _yaml(data: bytes, folder: Path) -> None:
    file = _put(folder, "x.yaml", data)
    found = []
    for loader in (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        try:
            found.append([one.value for one in read_documents(file, loader)])
        except SpecError as error:
            _check_refusal(error, folder)
            found.append(None)
    _hold(None in found or found[0] == found[1], f"the parsers differ: {str(found)[:300]}")
    for one in read_documents(file):
        _check_plain(one.value)
        for path in one.nodes:
            one.error(path, "")


def _check_plain(value: object) -> None:
    if isinstance(value, dict):
        _hold(all(type(key) in (str, int) for key in value), "keys")
        for part in value.values():
            _check_plain(part)
    elif isinstance(value, list):
        for part in value:
            _check_plain(part)
    else:
        _hold(value is None or type(value) in (str, int, bool), f"a {type(value).__name__}")


def _spec(data: bytes, folder: Path) -> None:
    shutil.copytree(SPEC / "clauses", folder / "clauses", dirs_exist_ok=True)
    _put(folder, "cases/x.yaml", data)
    for case in load_spec(folder).cases:
        _hold(case.clause.id in case.clause.id and bool(case.operation.name), "a case without a clause")
        _check_ids(case.model)


def _check_ids(model: Model | None) -> None:
    if model is not None:
        _hold(all(0 <= index <= LARGEST_ID for index in model.vocab), "ids out of range")


def _clauses(data: bytes, folder: Path) -> None:
    (folder / "cases").mkdir(exist_ok=True)
    _put(folder, "clauses/x.yaml", data)
    load_spec(folder)


def _model(data: bytes, folder: Path) -> None:
    (folder / "cases").mkdir(exist_ok=True)
    file = _put(folder, "models/x.yaml", data)
    _put(folder, "models/SHA256SUMS", f"{hashlib.sha256(data).hexdigest()}  {file.name}\n".encode())
    _check_ids(load_spec(folder).models["x"] if list(read_documents(file)) else None)


def _sums(data: bytes, folder: Path) -> None:
    (folder / "cases").mkdir(exist_ok=True)
    _put(folder, "models/SHA256SUMS", data)
    load_spec(folder)


def _known_failures(data: bytes, folder: Path) -> None:
    ids = [case.id for case in load_spec(SPEC, check_schema=False).cases]
    file = _put(folder, "known.yaml", data)
    found = read_known_failures(file, ids)
    write_known_failures(file, found)
    _hold(read_known_failures(file, ids) == found, "what was read is written as something else")


# Packs and reports


@cache
def _clauses_of_spec() -> Any:
    return installed_spec().clauses


def _pack(data: bytes, folder: Path) -> None:
    """Read a manifest, a table and cases, separated by NUL, with digests that match."""
    manifest, table, cases = [*data.split(b"\0", 2), b"", b""][:3]
    for name, part in ((TABLE, table), (CASES, cases)):
        _put(folder, name, part)
        manifest = manifest.replace(f"<{name}>".encode(), hashlib.sha256(part).hexdigest().encode())
    _put(folder, MANIFEST, manifest)
    for case in load_pack(folder, _clauses_of_spec()):
        if case.model is not None:
            _check_model(case.model)


def _report(data: bytes, folder: Path) -> None:
    file = _put(folder, "report.json", data)
    found = document.read(file)
    file.write_text(document.text(found), "utf-8")
    _hold(document.read(file) == found, "what was read is written as something else")
    matrix.text([found], {})


# Replies of programs


class _Said:
    """A process whose replies are fixed in advance."""

    lines: tuple[bytes, ...] = ()

    def __init__(self, *_: object) -> None:
        self.replies: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.popen = mock.Mock(pid=0)
        self._lines = iter(self.lines)

    def send(self, line: bytes) -> None:
        self.replies.put(next(self._lines, None))

    def stop(self, grace: float = 0.0) -> int | None:
        return None

    def stderr_tail(self) -> str:
        return ""


def _replies(data: bytes, folder: Path) -> None:
    """Read the lines as replies to the requests of the handshake, loading, encoding, decoding, the table and a
    stream."""
    _Said.lines = tuple(line + b"\n" for line in data.split(b"\n"))
    with mock.patch.object(bridge_client, "Process", _Said):
        adapter: Any = bridge(["program"])
        tokenizer = _answered(lambda: adapter({0: b"a"}, []))
        if tokenizer is None:
            return
        for call in (
            lambda: _hold(all(type(index) is int for index in rebuild_ids("encode", tokenizer.encode("a"))), "no ids"),
            lambda: _hold(type(tokenizer.decode([0])) is str, "no text"),
            lambda: _hold(all(type(token) is bytes for token in tokenizer.vocab.values()), "no table"),
            lambda: list(tokenizer.encode_iterable(["a", "b"])),
        ):
            _answered(call)


def _answered(call: Callable[[], Any]) -> Any:
    """Return the result of a call to a remote tokenizer, or None if it raises an error that an adapter may raise."""
    try:
        return call()
    except (AttributeError, RemoteError, NotImplementedError, ValueError, TypeError, OverflowError):
        return None


def _requests(data: bytes, folder: Path) -> None:
    """Read each line as a request to the server, which must answer with one line of JSON."""
    server = serve.Server(lambda: resolve("reference"))
    server.answer(b'{"seq": 1, "op": "start", "protocol": 1}')
    for line in data.split(b"\n"):
        if b"save" in line or b"from_files" in line:
            continue  # these requests name files
        reply = server.answer(line)
        _hold(reply.endswith(b"\n") and reply.count(b"\n") == 1, "not one line")
        json.loads(reply)


# Command lines


def _arguments(data: bytes, folder: Path) -> None:
    words = data.decode("utf-8", "surrogateescape").split("\0")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli._parser(words).parse_args(words)
        except SystemExit as left:
            _hold(left.code in (0, 2), f"status {left.code}")
            _hold(left.code == 0 or err.getvalue().count("\n") == 1, err.getvalue())
    with contextlib.suppress(CommandError):
        read_special(words)


FORMS = ("text", "jsonl", "uint16", "uint32")


def _ids(data: bytes, folder: Path) -> None:
    """Decode a file of ids and encode it as text; its first byte selects the format."""
    form = FORMS[data[0] % 4] if data else FORMS[0]
    table = folder / "bytes.tiktoken"
    if not table.exists():
        tiktoken.write(table, Tokenizer.train("", 256).model)
    file = _put(folder, "ids", data[1:])
    for command in ("decode", "encode"):
        status, _, said = _run(command, str(table), str(file), "--pattern", "gpt2", "--as", form)
        _hold(status in (0, 2), f"status {status}")
        _hold(status == 0 or (said.count("\n") == 1 and str(file) in said), f"{said!a}")


def _run(*words: str) -> tuple[int, bytes, str]:
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with mock.patch.object(sys, "stdout", out), mock.patch.object(sys, "stderr", err):
        status = cli.main(words)
        out.flush()
        err.flush()
    return status, out.buffer.getvalue(), err.buffer.getvalue().decode()  # type: ignore[attr-defined]


TARGETS: dict[str, Target] = {
    "gpt2_vocab": Target(_gpt2_vocab),
    "gpt2_merges": Target(_gpt2_merges),
    "gpt2_pair": Target(_gpt2_pair, (CommandError,)),
    "tiktoken": Target(_tiktoken),
    "huggingface": Target(_huggingface),
    "table": Target(_table, (CommandError,)),
    "pattern": Target(_pattern, (ValueError, CommandError), places=False),
    "yaml": Target(_yaml, (SpecError,)),
    "spec": Target(_spec, (SpecError,)),
    "clauses": Target(_clauses, (SpecError,)),
    "model": Target(_model, (SpecError,)),
    "sums": Target(_sums, (SpecError,)),
    "known_failures": Target(_known_failures, (SpecError,)),
    "pack": Target(_pack, (SpecError,)),
    "report": Target(_report, (document.ReportError,)),
    "replies": Target(_replies, (AdapterError, RemoteError, NotImplementedError), places=False),
    "requests": Target(_requests, (), places=False),
    "arguments": Target(_arguments, (), places=False),
    "ids": Target(_ids, ()),
}


def mutated(data: bytes, draw: Callable[[int], int]) -> bytes:
    """Return `data` after one change, whose position and kind `draw` chooses.

    Args:
        data: the bytes to change.
        draw: returns a number from 0 up to but not including its argument; it is called six times.
    """
    start, length, word, byte, kind = (draw(below) for below in (len(data) + 1, 8, len(DICTIONARY), 256, 4))
    end = min(len(data), start + draw(1 << length))
    return data[:start] + (b"", data[start:end] * 2, DICTIONARY[word], bytes([byte]))[kind] + data[end:]
