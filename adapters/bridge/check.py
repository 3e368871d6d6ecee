"""`check-bridge` tests a program in any language against the protocol of PROTOCOL.md, step by step.

check.yaml is the table of the steps: requests, replies, rules and hints. A step that needs more is a function here.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import queue
import shlex
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from jsonschema.exceptions import ValidationError, best_match

from bpe_conformance.fixtures import Model, gpt2_files, read_model
from bpe_conformance.fixtures.answers import LARGEST_ID
from bpe_conformance.fixtures.files import strict_validator
from bpe_conformance.reference.formats import huggingface

from ..errors import BridgeError, CrashError, HangError, ProtocolError, error_line
from ..loading import program_arguments
from . import wire
from .client import KINDS, ONE_REPLY, Client, Reply, announced, excerpt
from .process import Process

_FOLDER = files("bpe_conformance.adapters")
_TABLE = yaml.safe_load(_FOLDER.joinpath("bridge/check.yaml").read_text("utf-8"))
TEXTS: Mapping[str, str] = _TABLE["texts"]
RULES: Mapping[str, tuple[str, str]] = _TABLE["rules"] | {"one reply": ONE_REPLY}
LONG = "abc " * (1 << 18)
SPECIAL = ["<|e|>", "<|\u00e9|>"]
MODEL = read_model({"merges": [["b", "c"], ["a", "b"], [{"hex": "e2"}, {"hex": "82"}]]})
PLAIN = read_model({"merges": []})
END_LIMIT = 1.0  # seconds within which a program must exit after the end of its input
_MOST_HANGS = 3
_TRAINING = {"text": "low lower \u20ac\u20ac\0", "vocab_size": 261, "special_tokens": SPECIAL}
_TEXT = "ab \u20ac\U0001f98a c"
_STREAMS = (("ab", "", "c \U0001f98a b", "c"), ("xyz", " ", "z y"))
_LACKS = {  # what is no capability -> why a step that needs it is skipped
    "special tokens": "special tokens are not supported",
    "other vocabularies": "the program has a fixed vocabulary",
}


class Breach(Exception):
    """The program broke a rule of the protocol: what it wrote or did, and the name of the rule."""

    def __init__(self, got: str | Reply, rule: str, **values: object) -> None:
        super().__init__(got)
        self.got = _shown(got) if isinstance(got, Reply) else got
        self.sent = got.sent if isinstance(got, Reply) else ""
        self.rule, self.fix = (text.format(**values) for text in RULES[rule])


def _shown(reply: Reply) -> str:
    return excerpt(json.dumps({reply.kind: reply.value}))


class Program(Client):
    """The program under test. It is started, and its model is loaded, when a step needs them.

    If it seems to hang, it is ended, to find out whether it only fails to flush its output.
    `capabilities` are those that it announced, and what it has of `_LACKS`; a `fixed` program has one vocabulary.
    """

    def __init__(self, argv: Sequence[str], time_limit: float, start_limit: float) -> None:
        super().__init__(argv, time_limit=time_limit, start_limit=start_limit)
        self.hello: dict[str, Any] = {}
        self.capabilities: set[str] = set()
        self.fixed = False
        self.loads: dict[int, str] = {}  # the number of a model -> the request that loaded it, with "..." for the vocab
        self._model = -1

    def wait(self, process: Process, operation: str, limit: float) -> bytes | None:
        with contextlib.suppress(queue.Empty):
            return process.replies.get(timeout=self.time_limit)
        if operation == "start" and limit > self.time_limit:
            # Start it again and close its input, to avoid a wait for the whole start limit.
            other = Process(self.argv)
            other.send(wire.dump({"seq": 1, "op": "start", "protocol": wire.PROTOCOL}))
            other.stop(self.time_limit)
            if process.replies.empty():
                self._check_flushed(operation, other)
            with contextlib.suppress(queue.Empty):
                return process.replies.get(timeout=limit - self.time_limit)
        process.stop(END_LIMIT)
        self._check_flushed(operation, process)
        raise queue.Empty

    @staticmethod
    def _check_flushed(operation: str, process: Process) -> None:
        if (late := _last_line(process)) is not None:
            got = f"nothing until its input was closed, and then {excerpt(late)}"
            raise HangError(operation, got, *RULES["flush"], process.stderr_tail())

    def launch(self) -> Reply:
        self._model = -1
        return _well_formed(super().launch())

    def end(self) -> int:
        process, self.process, self.sent = self.process, None, ""
        assert process is not None
        status = process.stop(END_LIMIT)
        if (rest := _last_line(process)) is not None:
            raise Breach(excerpt(rest), "one reply")
        if status is None:
            raise Breach(f"the program still ran {END_LIMIT:g} second later", "end")
        return status

    def ask(self, op: str, **fields: Any) -> Reply:
        """Send one request, by default about the usual model, and again without special tokens if it supports none."""
        if self.process is None:
            self.launch()
        if op in {*wire.METHODS, "table", "stream_open"}:
            fields = {"model": fields.get("model") or self.usual_model, **fields}
        reply = _well_formed(self.exchange(op, fields))
        if reply.kind == "not_claimed" and fields.get("special_tokens"):
            self.capabilities.discard("special tokens")
            return self.ask(op, **{**fields, "special_tokens": [] if op == "train" else None})
        return reply

    def result(self, op: str, **fields: Any) -> Any:
        return _result(self.ask(op, **fields))

    def load(self, model: Model, special_tokens: Sequence[str] | None = None, **more: str) -> int:
        table = {"vocab": wire.write_vocab(model.vocab), "merges": wire.write_merges(model.merges)}
        fields = {} if self.fixed else {**table, "special_tokens": special_tokens, **more}
        reply = self.ask("load", **fields)
        number = int(_result(reply)["model"])
        request = {name: "..." if name == "vocab" else value for name, value in json.loads(reply.sent).items()}
        self.loads[number] = json.dumps(request, separators=(",", ":"))
        return number

    @property
    def usual_model(self) -> int:
        if self.process is None or self._model < 0:
            self._model = self.load(MODEL, SPECIAL)
        return self._model

    def encode(self, text: str, **model: int) -> list[int]:
        """Return the ids of a text; none if the program does not encode."""
        return list(self.result("encode", text=text, **model)) if "encode" in self.capabilities else []


def _last_line(process: Process) -> bytes | None:
    """Return the next line of a program that has ended, unless another process keeps its output open."""
    try:
        return process.replies.get(timeout=END_LIMIT)
    except queue.Empty:
        return None


def _well_formed(reply: Reply) -> Reply:
    """Return the reply if it has exactly the members that PROTOCOL.md allows."""
    kinds = [kind for kind in KINDS if kind in reply.message]
    rule = "form" if len(kinds) != 1 or set(reply.message) != {"seq", *kinds} else ""
    if not rule and kinds != ["result"] and not _validator("reply").is_valid(reply.message):
        rule = "kind"
    if rule:
        breach = Breach(reply, rule)
        breach.got = excerpt(json.dumps(reply.message))
        raise breach
    return reply


def _result(reply: Reply, rule: str = "announced") -> Any:
    """Return the result of a well-formed reply, which must have the form that protocol.schema.json requires."""
    if reply.kind != "result":
        raise Breach(reply, rule)
    expected = wire.RESULTS.get(reply.operation)
    if expected and (fault := _misshapen(reply.value, expected.shape)):
        raise Breach(reply, "shape", operation=reply.operation, words=expected.words, fault=fault)
    return reply.value


def _misshapen(value: Any, shape: str) -> str:
    """Return a short text that says how `value` differs from a definition of protocol.schema.json, or ""."""
    if shape == "ids" and isinstance(value, list):  # a list can be too long for the validator
        wrong = [index for index in value if type(index) is not int or not 0 <= index <= LARGEST_ID]
        return f"it contains {excerpt(json.dumps(wrong[0]))}" if wrong else ""
    if (error := best_match(_validator(shape).iter_errors(value))) is None:
        return ""
    position = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in error.absolute_path).lstrip(".")
    return excerpt(f"{position}: {_fault(error)}" if position else _fault(error))


def _fault(error: ValidationError) -> str:
    """Return what is wrong with a value in the terms of JSON."""
    value: Any = error.instance
    required: Any = error.validator_value
    schema: Any = error.schema
    shown = json.dumps(value)
    match error.validator:
        case "const":
            return f"{shown} instead of {json.dumps(required)}"
        case "type":
            kinds = [required] if isinstance(required, str) else required
            return f"{shown} is not of type {' or '.join(kinds)}"
        case "enum":
            return _unknown(value, required) if isinstance(value, str) else f"{shown} is none of {_listed(required)}"
        case "additionalProperties":
            known = schema["properties"]
            return _unknown(next(name for name in value if name not in known), known)
        case "uniqueItems":
            return f"{shown} has an item twice"
    return str(error.message)


def _unknown(name: str, known: Iterable[str]) -> str:
    alike = difflib.get_close_matches(name.replace("-", "_"), known, 1) or [
        other for other in known if other.replace("_", "").replace("-", "") == name.casefold()
    ]
    fix = f"did you mean {json.dumps(alike[0])}?" if alike else f"there are {_listed(known)}"
    return f"there is no {json.dumps(name)}; {fix}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(json.dumps, names))


@cache
def _validator(shape: str) -> Any:
    return strict_validator(json.loads(_FOLDER.joinpath("protocol.schema.json").read_bytes()), shape)


class StepResult(NamedTuple):
    title: str
    state: str  # ok, note, FAIL or skip
    lines: tuple[str, ...] = ()
    op: str = ""  # of the request that failed

    @property
    def text(self) -> list[str]:
        if self.state == "skip":
            return [f"skip  {self.title} ({'; '.join(self.lines)})"]
        return [f"{self.state:6}{self.title}", *(f"      {line}" for line in self.lines)]


def check(spec: str, time_limit: float = 10.0, start_limit: float = 60.0) -> Iterator[StepResult]:
    """Run the steps of `cmd:PROGRAM` and yield their results; raise AdapterError if it cannot be started at all."""
    program = Program(program_arguments(spec), time_limit, start_limit)
    hangs, load_failure, advised = 0, [""], dict[tuple[str, ...], str]()
    try:
        for title, step, values in _steps():
            if missing := [name for name in step.get("needs", ()) if name not in program.capabilities]:
                yield StepResult(title, "skip", (_LACKS.get(missing[0], f"{missing[0]} is not announced"),))
                continue
            result, hung = _try(title, step, program, values)
            if result.op == "load":
                _, *said = result.lines  # without the request
                if said == load_failure:
                    result = StepResult(title, "skip", ("not checked; it needs load, which fails as above",))
                load_failure = said
            yield _without_advice(result, advised)
            hangs += hung
            if result.state == "FAIL" and not program.hello:
                return
            if hangs == _MOST_HANGS:
                yield StepResult(f"stopped after {_MOST_HANGS} steps without an answer", "FAIL")
                return
    finally:
        program.close()


def _without_advice(result: StepResult, advised: dict[tuple[str, ...], str]) -> StepResult:
    """Shorten a failure whose rule and fix were shown before; `advised` is the first step with each rule and fix."""
    advice = tuple(line for line in result.lines if line.startswith(("rule ", "fix ")))
    first = advised.setdefault(advice, result.title)
    if not advice or first == result.title:
        return result
    got = [line for line in result.lines if line.startswith(("got ", "stderr "))]
    return result._replace(lines=(*got, f'fix    as for "{first}"'))


def _steps() -> Iterator[tuple[str, Mapping[str, Any], dict[str, Any]]]:
    for step in _TABLE["steps"]:
        for name, text in TEXTS.items() if "{text}" in step["title"] else [("", "")]:
            values = {"long": LONG, "special": SPECIAL, "text": text, "op": step["title"].partition(":")[0]}
            yield step["title"].format(text=name), step, values


def _try(title: str, step: Mapping[str, Any], program: Program, values: dict[str, Any]) -> tuple[StepResult, bool]:
    try:
        run = _FUNCTIONS.get(step.get("run", ""))
        arguments = [_value(value, values) for value in step.get("with", ())]
        note = run(program, *arguments) if run else _ask(step["requests"], program, values)
    except (Breach, BridgeError) as error:
        rule, fix = error.rule, error.fix
        if isinstance(error, CrashError) and not program.hello:
            fix = f"make the program start; run it yourself to see why it ends: {shlex.join(program.argv)}"
        elif isinstance(error, CrashError) and error.operation == "start":
            rule, fix = RULES["second start"]
        sent = error.sent if isinstance(error, Breach) else program.sent
        request = json.loads(sent or "{}")
        load = program.loads.get(request.get("model"), "")
        rows = [("load", excerpt(load)), ("sent", excerpt(sent)), ("got", error.got), ("rule", rule), ("fix", fix)]
        if isinstance(error, BridgeError) and not isinstance(error, ProtocolError):
            rows += [("stderr", excerpt(line)) for line in _last_words(error.stderr)]
        lines = tuple(f"{name:7}{value}" for name, value in rows if value)
        return StepResult(title, "FAIL", lines, request.get("op", "")), isinstance(error, HangError)
    return StepResult(title, "note", (note,)) if note else StepResult(title, "ok"), False


def _last_words(stderr: str) -> list[str]:
    """Return the last five lines, or the line that names the error if it is above them."""
    lines, named = stderr.splitlines()[-5:], error_line(stderr)
    return lines if any(line.strip() in named for line in lines if line.strip()) else [named]


def tally(results: Sequence[StepResult], spec: str) -> Iterator[str]:
    count = {state: sum(result.state == state for result in results) for state in ("ok", "note", "FAIL", "skip")}
    yield ", ".join(f"{number} {state}" for state, number in count.items() if number)
    if not count["FAIL"]:
        yield f'the program speaks the protocol; now test the tokenizer: pytest conformance --adapter "{excerpt(spec)}"'


_RAISED = {"error": "the tokenizer raised an error: {message}; the suite tests this"}


def _ask(requests: Iterable[Mapping[str, Any]], program: Program, values: dict[str, Any]) -> str:
    notes = []
    for request in requests:
        needs, lacks = request.get("needs", ()), request.get("lacks", ())
        if not program.capabilities.issuperset(needs) or not program.capabilities.isdisjoint(lacks):
            continue
        if "load" in request:
            model = {"usual": MODEL, "plain": PLAIN}[request["load"]]
            values[request["keep"]] = program.load(model, **request.get("with", {}))
            continue
        if "$ids" in request["send"].values():
            values["ids"] = program.encode("a\u20ac") or ([0] if program.fixed else [97, 226, 130, 172])
            values["part"] = values["ids"][:-1]
        fields = {name: _value(value, values) for name, value in request["send"].items()}
        reply = program.ask(**fields)
        rule = request.get("rule", "announced")
        expected = values[request["equals"]] if "equals" in request else request.get("count")
        if reply.kind not in request.get("kinds", ["result"]):
            raise Breach(reply, rule, expected=expected)
        result: Any = _result(reply) if reply.kind == "result" else None
        values[request.get("keep", "")] = result
        if expected is not None and expected != (len(result) if "count" in request else result):
            raise Breach(reply, rule, expected=expected)
        note = {**_RAISED, **request.get("note", {})}.get(reply.kind, "")
        message = excerpt(str(reply.value["message"])) if reply.kind == "error" else ""
        notes.append(note.format(message=message, value=excerpt(repr(result)), reply=_shown(reply)))
        if request.get("alive"):
            program.ask("no_such_operation")
    return "; ".join(dict.fromkeys(filter(None, notes)))


def _value(value: Any, values: Mapping[str, Any]) -> Any:
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    name, _, member = value[1:].partition(".")
    return values[name][member] if member else values[name]


# The functions of the steps that no table describes


def _handshake(program: Program) -> None:
    reply = program.launch()
    hello = reply.value
    if reply.kind != "result" or not isinstance(hello, dict):
        raise Breach(reply, "object")
    program.hello = hello
    capabilities = hello.get("capabilities")
    program.capabilities = set(map(str, capabilities)) if isinstance(capabilities, list) else set()
    program.fixed = isinstance(hello.get("model"), str)
    program.capabilities |= {"special tokens"} if program.fixed else {*_LACKS}
    if program.capabilities & {*wire.METHODS}:
        program.capabilities.add("a model")


def _field(program: Program, field: str) -> str:
    usual = _TABLE["optional"].get(field)
    if field not in program.hello and usual:
        return f'is missing, but optional; a usual value is "{field}": {usual}'
    if field not in program.hello:
        raise Breach("it is missing", "member", name=field)
    needed = {"protocol": 1, "name": "", "capabilities": []}
    if wrong := _misshapen({**needed, field: program.hello[field]}, "startResult"):
        raise Breach(wrong, "value", name=field)
    if field == "capabilities" and not wire.TESTABLE & program.capabilities:
        return f"contains none of {', '.join(sorted(wire.TESTABLE))}: the suite has nothing to test"
    if field == "capabilities" and "train_pattern" in program.capabilities and "train" not in program.capabilities:
        return "contains train_pattern but not train"
    return ""


def _load(program: Program) -> str:
    if "a model" not in program.capabilities:
        return "not tested: the program announces no operation that needs a model"
    _ = program.usual_model
    program.load(MODEL)
    return "" if "special tokens" in program.capabilities else f"{_LACKS['special tokens']}; the other steps use none"


def _encode(program: Program, text: str) -> str:
    """Encode a text, and note whether the ids are those of another one: above all if JSON's escapes are misread."""
    reply = program.ask("encode", text=text)
    if reply.kind == "error":
        return _RAISED["error"].format(message=excerpt(str(reply.value["message"])))
    if not (other := _other_text(program, reply, text)):
        return ""
    note = f"'{excerpt(text)}' gives the ids of '{excerpt(other)}'; the suite tests this"
    return f"{note}. First check that it joins the two escapes of a surrogate pair, and drops or changes no character"


def _other_text(program: Program, reply: Reply, text: str) -> str:
    """Return the text of the ids, if it is another one and the vocabulary is the suite's, or ""."""
    if reply.kind == "error" or program.fixed:
        return ""
    names = {**MODEL.vocab, **{len(MODEL.vocab) + index: name.encode() for index, name in enumerate(SPECIAL)}}
    data = b"".join(names.get(index, b"?") for index in _result(reply))
    return "" if data == text.encode() else data.decode(errors="replace")


def _round_trip(program: Program) -> str:
    for text in TEXTS.values():
        encoded = program.ask("encode", text=text)
        if _other_text(program, encoded, text):
            continue
        decoded = program.ask("decode", ids=encoded.value if encoded.kind == "result" else [])
        if "error" not in (encoded.kind, decoded.kind) and (back := wire.read_text(_result(decoded))) != text:
            note = f"'{excerpt(text)}' comes back as '{excerpt(back)}'; the suite tests this. First check that"
            return f"{note} it decodes the joined bytes, not each token, and strips no byte order mark or line end"
    return ""


def _long(program: Program) -> str:
    try:
        return _ask([{"send": {"op": "encode", "text": LONG}, "kinds": ["result", "error"]}], program, {})
    except HangError as error:
        return f"{error.got}; this is slow, but the suite's texts are shorter"


def _several_models(program: Program) -> str:
    first, before = program.usual_model, program.encode("bcbc")
    second = program.load(PLAIN)
    other, again = program.encode("bcbc", model=second), program.encode("bcbc")
    if again != before:
        got = f"{before} from model {first}, with merges, and {again} after load of model {second}, without merges"
        raise Breach(got, "kept")
    if first == second:
        raise Breach(f"the number {first} for two models", "named")
    if other == before and len(before) == len("bcbc"):
        return "both models give an id for each byte, as if there were no merges; the suite tests this"
    if other == before != []:
        got = f"{before} from model {first}, with merges; {other} from model {second}, without merges"
        raise Breach(got, "named")
    return ""


def _streams(program: Program, name: str, *many: Sequence[Any], between: str = "") -> list[list[Any]]:
    """Feed several streams in turn, close them, and return what each gave; ask `between` after each turn."""
    kind, method = wire.STREAMS[name], {} if name == wire.DEFAULT_STREAM else {"method": name}
    streams = [program.result("stream_open", **method)["stream"] for _ in many]
    if len({*streams}) < len(streams):
        raise Breach(f"the number {streams[0]} twice", "numbers")
    got: list[list[Any]] = [[] for _ in many]

    def ask(op: str, index: int, **item: Any) -> None:
        reply = program.result(op, stream=streams[index], **item)
        if kind.yields not in reply:
            raise Breach(excerpt(json.dumps(reply)), "member of a stream", name=kind.yields)
        got[index] += reply[kind.yields]

    for turn in range(max(map(len, many))):
        for index, items in enumerate(many):
            if turn < len(items):
                ask("stream_feed", index, **{kind.item: items[turn]})
        if between:
            program.ask(between)
    for index in range(len(many)):
        ask("stream_close", index)
    return got


def _stream(program: Program) -> str:
    (ids,), _ = (_streams(program, "encode_iterable", chunks) for chunks in (_STREAMS[0], ()))
    if "encode" in program.capabilities and ids != (whole := program.encode("".join(_STREAMS[0]))):
        note = f"{list(_STREAMS[0])} gives {ids}, but the whole text gives {whole}; the suite tests this"
        return note.replace("\U0001f98a", "?")
    return ""


def _two_streams(program: Program) -> None:
    expected = [_streams(program, "encode_iterable", chunks)[0] for chunks in _STREAMS]
    got = _streams(program, "encode_iterable", *_STREAMS, between="no_such_operation")
    if got != expected:
        one_by_one = f"{expected[0]} and {expected[1]} one after the other"
        raise Breach(f"{got[0]} and {got[1]} side by side, {one_by_one}", "apart")


def _deltas(program: Program) -> str:
    """Send each id of a text to two streams in turn; without `encode`, one id."""
    deltas, _ = _streams(program, "decode_iterable", *[program.encode(_TEXT) or [97]] * 2)
    if "encode" in program.capabilities and (text := "".join(map(wire.read_text, deltas))) != _TEXT:
        return f"the deltas are {excerpt(text)} instead of {excerpt(_TEXT)}; the suite tests this"
    return ""


def _trained(program: Program, **more: Any) -> Any:
    model = program.result("train", **{**_TRAINING, **more})["model"]
    table = dict(program.result("table", model=model))
    table["vocab"] = dict(table["vocab"])  # its order has no meaning
    program.encode("low", model=model)
    program.result("unload", model=model)
    return table


def _train(program: Program, *settings: Mapping[str, Any]) -> None:
    for more in settings:
        _trained(program, **more)


def _save(program: Program) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program.result("save", folder=folder)
        names = sorted(path.name for path in Path(folder).iterdir())
    if not {"vocab.json", "merges.txt"} <= set(names):
        raise Breach(f"the directory contains {', '.join(names) or 'nothing'}", "files")


def _from_files(program: Program) -> None:
    with tempfile.TemporaryDirectory() as folder:
        vocab, merges = map(str, gpt2_files.write(MODEL, Path(folder)))
        for special in (None, SPECIAL):
            made = program.result("from_files", vocab_path=vocab, merges_path=merges, special_tokens=special)
    program.encode("abc", model=made["model"])


def _from_tokenizer_json(program: Program) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tokenizer.json")
        huggingface.write(path, MODEL)
        program.encode("abc", model=program.result("from_tokenizer_json", path=str(path))["model"])


def _end(program: Program) -> str:
    program.ask("no_such_operation")
    status = program.end()
    return f"the exit status is {status}; 0 is usual" if status else ""


def _again(program: Program) -> None:
    answers = []
    for _ in range(2):
        hello = program.launch().value
        if announced(hello) != announced(program.hello):
            raise Breach(f"{excerpt(str(hello))} after {excerpt(str(program.hello))}", "restart")
        texts = TEXTS.values() if "encode" in program.capabilities else ()
        replies = [program.ask("encode", text=text) for text in texts]
        encoded = [(reply.kind, reply.value if reply.kind == "result" else None) for reply in replies]
        answers.append((encoded, _trained(program) if "train" in program.capabilities else None))
    if answers[0] != answers[1]:
        raise Breach("different ids or a different table than before the restart", "again")


_FUNCTIONS: Mapping[str, Callable[..., str | None]] = {  # the name in `run` -> the function of the step
    function.__name__[1:]: function
    for function in (
        *(_handshake, _field, _load, _encode, _long, _round_trip, _several_models, _stream, _two_streams, _deltas),
        *(_train, _save, _from_files, _from_tokenizer_json, _end, _again),
    )
}
