"""`check-bridge` tests a program in any language against the protocol of PROTOCOL.md, step by step.

`STEPS` is the table of steps. The function of a step sends requests. It returns a note, or raises `Breach` with the
rule and a fix.
"""

from __future__ import annotations

import contextlib
import json
import queue
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import best_match

from bpe_conformance.fixtures import Model, gpt2_files, read_model
from bpe_conformance.fixtures.answers import LARGEST_ID

from ..errors import BridgeError, CrashError, HangError, ProtocolError
from ..loading import error_line, program_arguments
from . import wire
from .client import KINDS, ONE_REPLY, Client, Reply, announced, excerpt
from .process import Process

TEXTS = {
    "an empty text": "",
    "a special token": "ab<|e|>c",
    "text outside ASCII, U+1F98A as two escapes": "h\u20acll\u00f6 \U0001f98a",
    "U+0000 and other controls": "a\0b\x01\x1b\x7f",
    "a leading U+FEFF": "\ufeffab",
    "line ends inside the text": "a\nb\r\nc\rd\x85e\u2028f\u2029",
    "quotes and backslashes": 'a"b\\u0041\\n/\\',
}
LONG = "abc " * (1 << 18)
SPECIAL = ["<|e|>", "<|\u00e9|>"]
MODEL = read_model({"merges": [["b", "c"], ["a", "b"], [{"hex": "e2"}, {"hex": "82"}]]})
PLAIN = read_model({"merges": []})
LONGEST_LIMIT = 86400.0
"""The longest time limit for a reply, in seconds."""
END_LIMIT = 1.0
"""Seconds within which a program must exit after the end of its input."""
_WHOLE_TEXT = {"pattern": "[\\s\\S]+"}
_TRAINING = {"text": "low lower \u20ac\u20ac\0", "vocab_size": 261, "special_tokens": SPECIAL}
_STREAMS = (("ab", "", "c \U0001f98a b", "c"), ("xyz", " ", "z y"))
_UNKNOWN_ID = 2**31 - 1
_USES_MODEL = {*wire.methods(), "encode_iterable"}
_OPTIONAL = {"version": '"1.0"', "language": '"JavaScript (Node 20)"', "conventions": "{}", "model": "null"}
_MOST_HANGS = 3
Rule = tuple[str, str]
"""What PROTOCOL.md requires, and what the author of the program can do."""


class Breach(Exception):
    """The program broke a rule of the protocol.

    Attributes:
        got: what the program wrote or did.
        rule: the rule, and the fix.
        sent: the request that the program answered, or "".
    """

    def __init__(self, got: str | Reply, *rule: str) -> None:
        super().__init__(got)
        self.got = excerpt(json.dumps({got.kind: got.value})) if isinstance(got, Reply) else got
        self.rule, self.fix = rule
        self.sent = got.sent if isinstance(got, Reply) else ""


class _Client(Client):
    """A client that detects whether a program that seems to hang only fails to flush its output."""

    def wait(self, process: Process, operation: str, limit: float) -> bytes | None:
        with contextlib.suppress(queue.Empty):
            return process.replies.get(timeout=self.time_limit)
        if operation == "start" and limit > self.time_limit:
            self._probe_flushing(process)
            with contextlib.suppress(queue.Empty):
                return process.replies.get(timeout=limit - self.time_limit)
        process.stop(END_LIMIT)
        self._check_flushed(operation, process)
        raise queue.Empty

    def _probe_flushing(self, process: Process) -> None:
        """Start the program again and close its input, to avoid a wait for the whole start limit."""
        other = Process(self.argv)
        other.send(wire.dump({"seq": 1, "op": "start", "protocol": wire.PROTOCOL}))
        other.stop(self.time_limit)
        if process.replies.empty():
            self._check_flushed("start", other)

    @staticmethod
    def _check_flushed(operation: str, process: Process) -> None:
        if (late := _last_line(process)) is not None:
            got = f"nothing until its input was closed, and then {excerpt(late)}"
            fix = "flush standard output, and read line by line instead of to the end of the input"
            raise HangError(operation, got, "flush after every reply", fix, process.stderr_tail())

    def end(self) -> int:
        """End the program's input and return its exit status."""
        process, self.process = self.process, None
        assert process is not None
        status = process.stop(END_LIMIT)
        if (rest := _last_line(process)) is not None:
            raise Breach(excerpt(rest), *ONE_REPLY)
        if status is None:
            got = f"the program still ran {END_LIMIT:g} second later"
            raise Breach(got, "the program exits when its input ends", "leave the loop at the end of the input")
        return status


def _last_line(process: Process) -> bytes | None:
    """Return the next line of a program that has ended, unless another process keeps its output open."""
    try:
        return process.replies.get(timeout=END_LIMIT)
    except queue.Empty:
        return None


class Program:
    """The program under test. It is started, and its model is loaded, when a step needs them.

    Attributes:
        hello: its answer to the first start.
        capabilities: the capabilities that it announced.
        fixed: whether it has one fixed vocabulary and loads no other.
        refuses_special: whether it answered `not_claimed` to special tokens.
        sent: the last request.
    """

    def __init__(self, argv: Sequence[str], time_limit: float, start_limit: float) -> None:
        self.client = _Client(argv, time_limit=time_limit, start_limit=start_limit)
        self.client.trace = self._trace
        self._model = -1
        self.sent = ""
        self.hello: dict[str, Any] = {}
        self.capabilities: frozenset[str] = frozenset()
        self.fixed = self.refuses_special = False

    def _trace(self, direction: str, line: bytes) -> None:
        if direction == ">":
            self.sent = line.decode("ascii").rstrip("\n")

    def start(self) -> Reply:
        """Start it again and return its answer to the handshake."""
        self._model = -1
        return _well_formed(self.client.launch())

    def _run(self) -> None:
        if self.client.process is None:
            self.start()

    def end(self) -> int:
        """End its input and return its exit status."""
        self._run()
        self._model, self.sent = -1, ""
        return self.client.end()

    def ask(self, operation: str, **fields: Any) -> Reply:
        """Send one request, about the model that most steps use, and return a well-formed reply of any kind."""
        self._run()
        if operation in {*wire.methods(), "table", "stream_open"}:
            fields = {"model": self.model, **fields} if "model" not in fields else fields
        return _well_formed(self.client.exchange(operation, fields))

    def result(self, operation: str, **fields: Any) -> Any:
        """Send one request and return its result, without special tokens if the program does not support them."""
        reply = self.ask(operation, **fields)
        if reply.kind == "not_claimed" and fields.get("special_tokens"):
            self.refuses_special = True
            reply = self.ask(operation, **{**fields, "special_tokens": [] if operation == "train" else None})
        return _result(reply)

    def load(self, model: Model, special_tokens: Sequence[str] | None = None, **more: str) -> int:
        """Load a model, or the fixed one, and return its number."""
        table = {"vocab": wire.write_vocab(model.vocab), "merges": wire.write_merges(model.merges)}
        fields = {} if self.fixed else {**table, "special_tokens": special_tokens, **more}
        return int(self.result("load", **fields)["model"])

    @property
    def model(self) -> int:
        """The number, in the running program, of the model that most steps use."""
        self._run()
        if self._model < 0:
            self._model = self.load(MODEL, SPECIAL)
        return self._model

    def encode(self, text: str, **model: int) -> list[int]:
        ids: list[int] = self.result("encode", text=text, **model)
        return ids

    def check_alive(self) -> None:
        """Check that the program still answers."""
        self.ask("no_such_operation")


def _well_formed(reply: Reply) -> Reply:
    """Return the reply if it has exactly the members that PROTOCOL.md allows."""
    kinds = [kind for kind in KINDS if kind in reply.message]
    rule = ""
    if len(kinds) != 1 or set(reply.message) != {"seq", *kinds}:
        rule = "a reply has seq, one of result, not_claimed and error, and no other member"
        fix = 'write {"seq": ..., "result": ...}; a result can be null'
    elif kinds != ["result"] and not _validator("reply").is_valid(reply.message):
        rule = "not_claimed is a string; error is an object with type and message, both strings"
        fix = "write the reply in this form"
    if rule:
        breach = Breach(reply, rule, fix)
        breach.got = excerpt(json.dumps(reply.message))
        raise breach
    return reply


def _result(reply: Reply) -> Any:
    """Return the result of a well-formed reply, which must have the form that protocol.schema.json requires."""
    if reply.kind != "result":
        rule = "the reply to load, to unload, and to every operation that the program announces, is a result"
        raise Breach(reply, rule, "fix the failure, or do not announce the capability")
    expected = wire.RESULTS[reply.operation]
    if fault := _misshapen(reply.value, expected.shape):
        rule = f"the result of {reply.operation} is {expected.words}; here {fault}"
        raise Breach(reply, rule, "write the result in this form")
    return reply.value


def _misshapen(value: Any, shape: str) -> str:
    """Return a short text that says how `value` differs from a definition of protocol.schema.json, or ""."""
    if shape == "ids" and isinstance(value, list):  # a list can be too long for the validator
        wrong = [index for index in value if type(index) is not int or not 0 <= index <= LARGEST_ID]
        return f"it contains {excerpt(json.dumps(wrong[0]))}" if wrong else ""
    error = best_match(_validator(shape).iter_errors(value))
    if error is None:
        return ""
    position = "".join(f"[{key!a}]" for key in error.absolute_path)
    return excerpt(f"{position}: {error.message}" if position else error.message)


@cache
def _validator(shape: str) -> Draft202012Validator:
    definitions = json.loads(files("bpe_conformance.adapters").joinpath("protocol.schema.json").read_bytes())["$defs"]
    is_integer = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)  # not 97.0
    strict: Any = validators.extend(Draft202012Validator, type_checker=is_integer)  # type: ignore[no-untyped-call]
    return strict({"$defs": definitions, "$ref": f"#/$defs/{shape}"})  # type: ignore[no-any-return]


@dataclass(frozen=True)
class StepResult:
    """The result of one step.

    Attributes:
        title: the title of the step.
        state: ok, note, FAIL or skip.
        lines: details.
    """

    title: str
    state: str
    lines: tuple[str, ...] = ()

    @property
    def text(self) -> Iterator[str]:
        """The text to print."""
        if self.state == "skip":
            yield f"skip  {self.title} ({'; '.join(self.lines)})"
            return
        yield f"{self.state:6}{self.title}"
        yield from (f"      {line}" for line in self.lines)


@dataclass(frozen=True)
class Step:
    """One step of the check.

    Attributes:
        title: a description of the step.
        run: performs the step. A string that it returns is a note. It raises Breach or BridgeError.
        needs: the capabilities that the step needs; without them it is skipped.
        tables: whether it needs a second vocabulary, which a program with a fixed one cannot load.
    """

    title: str
    run: Callable[[Program], object]
    needs: tuple[str, ...] = ()
    tables: bool = False


def check(spec: str, time_limit: float = 10.0, start_limit: float = 60.0) -> Iterator[StepResult]:
    """Run the steps and yield the result of each.

    Args:
        spec: `cmd:PROGRAM ARGS`.
        time_limit: seconds within which the program must reply.
        start_limit: seconds within which it must reply to the first request.

    Raises:
        AdapterError: if the program cannot be started at all.
    """
    program = Program(program_arguments(spec), time_limit, start_limit)
    hangs = 0
    try:
        for step in STEPS:
            missing = [name for name in step.needs if name not in program.capabilities]
            if missing or (program.fixed and step.tables):
                why = f"{missing[0]} is not announced" if missing else "the program has a fixed vocabulary"
                yield StepResult(step.title, "skip", (why,))
                continue
            result, hung = _try(step, program)
            yield result
            hangs += hung
            if result.state == "FAIL" and not program.hello:
                return
            if hangs == _MOST_HANGS:
                yield StepResult(f"stopped after {_MOST_HANGS} steps without an answer", "FAIL")
                return
    finally:
        program.client.close()


def _try(step: Step, program: Program) -> tuple[StepResult, bool]:
    """Return the result of a step and whether the program hung."""
    try:
        note = step.run(program)
    except (Breach, BridgeError) as error:
        sent = error.sent if isinstance(error, Breach) else program.sent
        fix = error.fix
        if isinstance(error, CrashError) and not program.hello:
            fix = f"make the program start; run it yourself to see why it ends: {' '.join(program.client.argv)}"
        rows = [("sent", excerpt(sent)), ("got", error.got), ("rule", error.rule), ("fix", excerpt(fix))]
        if isinstance(error, BridgeError) and not isinstance(error, ProtocolError):
            rows += [("stderr", excerpt(line)) for line in _last_words(error.stderr)]
        lines = tuple(f"{name:7}{value}" for name, value in rows if value)
        return StepResult(step.title, "FAIL", lines), isinstance(error, HangError)
    return StepResult(step.title, "note", (note,)) if isinstance(note, str) else StepResult(step.title, "ok"), False


def _last_words(stderr: str) -> list[str]:
    """Return the last five lines, or the line that names the error if it is above them."""
    lines, named = stderr.splitlines()[-5:], error_line(stderr)
    return lines if any(line.strip() in named for line in lines if line.strip()) else [named]


def tally(results: Sequence[StepResult], spec: str) -> Iterator[str]:
    """Yield the last lines: the counts and the next step."""
    count = {state: sum(result.state == state for result in results) for state in ("ok", "note", "FAIL", "skip")}
    yield ", ".join(f"{number} {state}" for state, number in count.items() if number)
    if not count["FAIL"]:
        yield f'the program speaks the protocol; now test the tokenizer: pytest conformance --adapter "{excerpt(spec)}"'


def _note(*replies: Reply) -> str | None:
    """Return a note if the tokenizer raised an error, which the protocol allows; other replies must be results."""
    notes = []
    for reply in replies:
        if reply.kind == "error":
            notes.append(f"the tokenizer raised an error: {excerpt(str(reply.value['message']))}; the suite tests this")
        else:
            _result(reply)
    return next(iter(notes), None)


def _handshake(program: Program) -> None:
    reply = program.start()
    hello = reply.value
    if reply.kind != "result" or not isinstance(hello, dict):
        rule = "the result of start is an object that describes the program"
        raise Breach(reply, rule, "see *The start* in PROTOCOL.md")
    program.hello = hello
    capabilities = hello.get("capabilities")
    program.capabilities = frozenset(map(str, capabilities)) if isinstance(capabilities, list) else frozenset()
    program.fixed = isinstance(hello.get("model"), str)


def _field(name: str, program: Program) -> str | None:
    if name not in program.hello and name in _OPTIONAL:
        return f'is missing, but optional; a usual value is "{name}": {_OPTIONAL[name]}'
    if name not in program.hello:
        raise Breach("it is missing", f"the reply to start has {name}", "see *The start* in PROTOCOL.md")
    needed = {"protocol": 1, "name": "", "capabilities": []}
    if wrong := _misshapen({**needed, name: program.hello[name]}, "startResult"):
        raise Breach(wrong, f"{name} is as startResult in protocol.schema.json requires", "write an allowed value")
    if name == "capabilities" and not {"encode", "decode", "train"} & program.capabilities:
        return "contains neither encode nor decode nor train: the suite has nothing to test"
    if name == "capabilities" and "train_pattern" in program.capabilities and "train" not in program.capabilities:
        return "contains train_pattern but not train"
    return None


def _unknown_operation(program: Program) -> None:
    reply = program.ask("no_such_operation")
    if reply.kind != "not_claimed":
        rule = "the reply to an unknown operation is not_claimed, because later versions may have more operations"
        raise Breach(reply, rule, 'reply with {"seq": ..., "not_claimed": "no_such_operation"}')


def _load(program: Program) -> str | None:
    if not program.capabilities & _USES_MODEL:
        return "not tested: the program announces no operation that needs a model"
    _ = program.model
    program.load(MODEL)
    return "special tokens are not supported; the other steps use none" if program.refuses_special else None


def _encoding(text: str, program: Program) -> str | None:
    return _note(program.ask("encode", text=text))


def _allowed(program: Program) -> str | None:
    if program.refuses_special:
        return "not tested: special tokens are not supported"

    def reply(allowed: Any, disallowed: Any) -> Reply:
        text = TEXTS["a special token"]
        return program.ask("encode", text=text, allowed_special=allowed, disallowed_special=disallowed)

    if note := _note(reply([], []), reply(SPECIAL, []), reply("all", "all")):
        return note
    if program.fixed or reply([], "all").kind == "error":
        return None
    return "a disallowed special token gives no error; the suite tests this"


def _round_trip(program: Program) -> str | None:
    for text in TEXTS.values():
        encoded = program.ask("encode", text=text)
        decoded = program.ask("decode", ids=encoded.value if encoded.kind == "result" else [])
        if "error" not in (encoded.kind, decoded.kind) and (back := wire.read_text(_result(decoded))) != text:
            note = f"'{excerpt(text)}' comes back as '{excerpt(back)}'; the suite tests this. First check that"
            return f"{note} the program reads its input as UTF-8, and strips no byte order mark or line end"
    return None


def _long(program: Program) -> str | None:
    try:
        return _encoding(LONG, program)
    except HangError as error:
        return f"{error.got}; this is slow, but the suite's texts are shorter"


def _surrogates(program: Program) -> None:
    reply = program.ask("encode", text=wire.write_text("a\ud800b"))
    if reply.kind == "not_claimed":
        raise Breach(reply, "the program announces surrogates", "reply with ids or an error, or do not announce them")
    _note(reply)
    program.check_alive()


def _unknown_member(program: Program) -> None:
    ids = program.encode("abc")
    reply = program.ask("encode", text="abc", no_such_member=[1])
    if reply.kind != "result" or reply.value != ids:
        rule = f"the program ignores unknown members of a request; expected {ids}"
        raise Breach(reply, rule, "read only the members that you know")


def _batch(program: Program) -> None:
    for texts in ([], ["a", "", "b c\u20ac"]):
        reply = program.ask("encode_batch", texts=texts)
        if len(_result(reply)) != len(texts):
            rule = f"the result is a list with the ids of each text; here there are {len(texts)} texts"
            raise Breach(reply, rule, "keep the rows of empty texts")


def _decoding(operation: str, program: Program) -> str | None:
    ids = [0] if program.fixed else [97, 226, 130, 172]
    ids = program.encode("a\u20ac") if "encode" in program.capabilities else ids
    program.result(operation, ids=ids)
    return _note(program.ask(operation, ids=[]), program.ask(operation, ids=ids[:-1]))


def _unknown_id(operation: str, program: Program) -> str | None:
    notes = []
    for index in (_UNKNOWN_ID, -1):
        reply = program.ask(operation, ids=[index])
        if reply.kind == "result":
            notes.append(f"{index} gives {excerpt(repr(_result(reply)))}, not an error; the suite tests this")
        program.check_alive()
    return "; ".join(notes) or None


def _several_models(program: Program) -> None:
    first = program.model
    before = program.encode("bcbc")
    second = program.load(PLAIN)
    other = program.encode("bcbc", model=second)
    again = program.encode("bcbc")
    if again != before:
        got = f"{before} from model {first}; {again} from the same model after model {second} was loaded"
        raise Breach(got, "a model exists until the suite unloads it", "store models under their numbers")
    if first == second or other == before:
        got = f"{before} from model {first}, with merges; {other} from model {second}, without merges"
        rule = "each load makes a new model, and each request names a model"
        raise Breach(got, rule, "look the model up by the number in `model`")


def _open(program: Program) -> int:
    return int(program.result("stream_open")["stream"])


def _read(program: Program, stream: int, *chunks: str, close: bool = False) -> list[int]:
    """Feed chunks to a stream, close it if so asked, and return the ids of all replies."""
    replies = [program.result("stream_feed", stream=stream, text=chunk) for chunk in chunks]
    replies += [program.result("stream_close", stream=stream)] if close else []
    return [index for reply in replies for index in reply["ids"]]


def _stream(program: Program) -> str | None:
    ids = _read(program, _open(program), *_STREAMS[0], close=True)
    _read(program, _open(program), close=True)
    if "encode" in program.capabilities and ids != (whole := program.encode("".join(_STREAMS[0]))):
        note = f"{list(_STREAMS[0])} gives {ids}, but the whole text gives {whole}; the suite tests this"
        return note.replace("\U0001f98a", "?")
    return None


def _two_streams(program: Program) -> None:
    expected = [_read(program, _open(program), *chunks, close=True) for chunks in _STREAMS]
    streams = [_open(program), _open(program)]
    if streams[0] == streams[1]:
        rule = "several streams may be open, each with its own number"
        raise Breach(f"the number {streams[0]} twice", rule, "give each open stream a new number")
    got: list[list[int]] = [[], []]
    for turn in range(max(map(len, _STREAMS))):
        for ids, stream, chunks in zip(got, streams, _STREAMS, strict=True):
            ids += _read(program, stream, *chunks[turn : turn + 1])
        program.check_alive()
    for ids, stream in zip(got, streams, strict=True):
        ids += _read(program, stream, close=True)
    if got != expected:
        both = f"{got[0]} and {got[1]} side by side, {expected[0]} and {expected[1]} one after the other"
        raise Breach(both, "the program keeps streams apart", "store held-back text under the number of its stream")


def _cut_stream(program: Program) -> None:
    _read(program, _open(program), "ab", close=True)
    program.check_alive()


def _trained(program: Program, **more: Any) -> Any:
    model = program.result("train", **{**_TRAINING, **more})["model"]
    table = dict(program.result("table", model=model))
    table["vocab"] = dict(table["vocab"])  # its order has no meaning
    if "encode" in program.capabilities:
        program.encode("low", model=model)
    program.result("unload", model=model)
    return table


def _train(program: Program) -> None:
    _trained(program)
    _trained(program, special_tokens=[], text="")


def _train_too_small(program: Program) -> None:
    reply = program.ask("train", **{**_TRAINING, "vocab_size": 3})
    if reply.kind == "result":
        _result(reply)
    program.check_alive()


def _table(program: Program) -> None:
    if program.capabilities & _USES_MODEL:  # the step "train" checks the table of a trained model
        reply = program.ask("table")
        if reply.kind != "not_claimed":
            _result(reply)


def _save(program: Program) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program.result("save", folder=folder)
        names = sorted(path.name for path in Path(folder).iterdir())
    if not {"vocab.json", "merges.txt"} <= set(names):
        got = f"the directory contains {', '.join(names) or 'nothing'}"
        rule = "save writes vocab.json and merges.txt into the directory"
        raise Breach(got, rule, "join the directory and the file names, and close the files")


def _from_files(program: Program) -> None:
    with tempfile.TemporaryDirectory() as folder:
        vocab, merges = map(str, gpt2_files.write(MODEL, Path(folder)))
        for special in (None, SPECIAL):
            made = program.result("from_files", vocab_path=vocab, merges_path=merges, special_tokens=special)
    if "encode" in program.capabilities:
        program.encode("abc", model=made["model"])


def _unknown_model(program: Program) -> str | None:
    uses = [name for name in ("encode", "decode", "decode_bytes") if name in program.capabilities]
    if not uses:
        return None
    fields: dict[str, Any] = {"text": "a"} if uses[0] == "encode" else {"ids": []}
    reply = program.ask(uses[0], model=_UNKNOWN_ID, **fields)
    program.check_alive()
    return f"the reply is {Breach(reply, '', '').got}, as if the model existed" if reply.kind == "result" else None


def _unload(program: Program) -> None:
    if program.capabilities & _USES_MODEL:
        _ = program.model
        program.result("unload", model=program.load(PLAIN))
        if "encode" in program.capabilities:
            program.encode("abc")


def _end(program: Program) -> str | None:
    program.check_alive()
    status = program.end()
    return f"the exit status is {status}; 0 is usual" if status else None


def _again(program: Program) -> None:
    answers = []
    for _ in range(2):
        hello = program.start().value
        if announced(hello) != announced(program.hello):
            got = f"{excerpt(str(hello))} after {excerpt(str(program.hello))}"
            rule = "a restarted program announces the same as before"
            raise Breach(got, rule, "announce nothing that changes, such as a time or a process id")
        texts = TEXTS.values() if "encode" in program.capabilities else ()
        replies = [program.ask("encode", text=text) for text in texts]
        encoded = [(reply.kind, reply.value if reply.kind == "result" else None) for reply in replies]
        answers.append((encoded, _trained(program) if "train" in program.capabilities else None))
    if answers[0] != answers[1]:
        rule = "a restarted program gives the same answers, because the suite recreates the models in use"
        got = "different ids or a different table than before the restart"
        raise Breach(got, rule, "seed random numbers; sort sets")


STEPS = (
    Step("start: one reply, on one line", _handshake),
    *(
        Step(f"start: {name}", partial(_field, name))
        for name in ("protocol", "name", "version", "language", "capabilities", "conventions", "model")
    ),
    Step("an unknown operation gives not_claimed", _unknown_operation),
    Step("a request of 1 MB in one line", lambda program: program.ask("no_such_operation", text=LONG)),
    Step("load: a table, with special tokens and with null", _load),
    Step("encode: ASCII", lambda program: program.encode("abc bc"), ("encode",)),
    *(Step(f"encode: {what}", partial(_encoding, text), ("encode",)) for what, text in TEXTS.items()),
    Step("encode: 1 MB of text", _long, ("encode",)),
    Step("encode: lone surrogates", _surrogates, ("encode", "surrogates")),
    Step("encode: unknown members of a request are ignored", _unknown_member, ("encode",)),
    Step("encode: allowed_special and disallowed_special", _allowed, ("encode", "allowed_special")),
    Step("encode_batch: no texts, and three texts", _batch, ("encode_batch",)),
    *(
        Step(f"{name}: {what}", partial(run, name), (name,))
        for name in ("decode", "decode_bytes")
        for what, run in {
            "ids, no ids, part of a character": _decoding,
            "an unknown id and a negative id are errors": _unknown_id,
        }.items()
    ),
    Step("decode: the encoded text comes back", _round_trip, ("encode", "decode")),
    Step("several models at once", _several_models, ("encode",), tables=True),
    Step(
        "load: a pattern",
        lambda program: program.encode("a b", model=program.load(MODEL, None, **_WHOLE_TEXT)),
        ("pattern",),
    ),
    Step("encode_iterable: chunks, an empty chunk, no chunks", _stream, ("encode_iterable",)),
    Step("encode_iterable: two streams at once, and other requests between", _two_streams, ("encode_iterable",)),
    Step("encode_iterable: closed before the text is complete", _cut_stream, ("encode_iterable",)),
    Step("train", _train, ("train",)),
    Step("train: a pattern", lambda program: _trained(program, **_WHOLE_TEXT), ("train", "train_pattern")),
    Step("train: the program survives a vocabulary size that is too small", _train_too_small, ("train",)),
    Step("table", _table),
    Step("save: vocab.json and merges.txt", _save, ("save",)),
    Step("from_files", _from_files, ("from_files",)),
    Step("an unknown model is an error, and the program continues", _unknown_model),
    Step("unload", _unload),
    Step("the program exits within 1 second after its input ends", _end),
    Step("a restarted program gives the same answers", _again),
)
