"""`check-bridge` tests a program in any language against the protocol of PROTOCOL.md, step by step."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import gpt2_files

from ..errors import BridgeError, HangError, ProtocolError
from ..loading import program_arguments
from . import wire
from .client import Reply, announced, excerpt
from .program import MODEL, PLAIN, SPECIAL, Breach, Program, breach, misshapen, shaped, shown, well_formed

TEXTS = {
    "an empty text": "",
    "a special token": "ab<|e|>c",
    "text outside ASCII, U+1F98A as two escapes": "h\u20acll\u00f6 \U0001f98a",
    "U+0000 and other controls": "a\0b\x01\x1b\x7f",
    "a leading U+FEFF": "\ufeffab",
    "line ends inside the text": "a\nb\r\nc\rd\x85e\u2028f\u2029",
    "quotes and backslashes": 'a"b\\u0041\\n/\\',
}
WHOLE_TEXT = {"pattern": "[\\s\\S]+"}
LONG = "abc " * (1 << 18)
LONGEST_LIMIT = 86400.0
"""The longest time limit for a reply, in seconds."""
SURROGATES = "a\ud800b"
UNKNOWN_ID = 2**31 - 1
_USES_MODEL = ("encode", "decode", "encode_batch", "decode_bytes", "encode_iterable", "save")
_MOST_HANGS = 3


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
        needs: the capabilities that the step needs; without them it is skipped.
        run: performs the step. A string that it returns is a note. It raises Breach or BridgeError.
        tables: whether it needs a second vocabulary, which a program with a fixed one cannot load.
    """

    title: str
    needs: tuple[str, ...]
    run: Callable[[Program], object]
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
        for step in _steps():
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
        rows = (("sent", excerpt(sent)), ("got", error.got), ("rule", error.rule), ("fix", error.fix))
        lines = [f"{name:7}{value}" for name, value in rows if value]
        if isinstance(error, BridgeError) and not isinstance(error, ProtocolError):
            lines += [f"{'stderr':7}{excerpt(line)}" for line in error.stderr.splitlines()[-5:]]
        return StepResult(step.title, "FAIL", tuple(lines)), isinstance(error, HangError)
    return StepResult(step.title, "note", (note,)) if isinstance(note, str) else StepResult(step.title, "ok"), False


def _steps() -> Iterator[Step]:
    yield Step("start: one reply, on one line", (), _handshake)
    for name in ("protocol", "name", "version", "language", "capabilities", "conventions", "model"):
        yield Step(f"start: {name}", (), partial(_field, name=name))
    yield Step("an unknown operation gives not_claimed", (), _unknown_operation)
    yield Step("a request of 1 MB in one line", (), lambda program: program.ask("no_such_operation", text=LONG))
    yield Step("load: a table, with special tokens and with null", (), _load)
    yield Step("encode: ASCII", ("encode",), lambda program: program.encode("abc bc"))
    for what, text in TEXTS.items():
        yield Step(f"encode: {what}", ("encode",), partial(_encoding, text=text))
    yield Step("encode: 1 MB of text", ("encode",), _long)
    yield Step("encode: lone surrogates", ("encode", "surrogates"), _surrogates)
    yield Step("encode: unknown members of a request are ignored", ("encode",), _unknown_member)
    yield Step("encode: allowed_special and disallowed_special", ("encode", "allowed_special"), _allowed)
    yield Step("encode_batch: no texts, and three texts", ("encode_batch",), _batch)
    for op, shape in (("decode", "text"), ("decode_bytes", "hex")):
        decodes, unknown = partial(_decoding, op=op, shape=shape), partial(_unknown_id, op=op, shape=shape)
        yield Step(f"{op}: ids, no ids, part of a character", (op,), decodes)
        yield Step(f"{op}: an unknown id and a negative id are errors", (op,), unknown)
    yield Step("decode: the encoded text comes back", ("encode", "decode"), _round_trip)
    yield Step("several models at once", ("encode",), _several_models, tables=True)
    yield Step(
        "load: a pattern", ("pattern",), lambda program: program.encode("a b", program.load(MODEL, None, **WHOLE_TEXT))
    )
    yield Step("encode_iterable: chunks, an empty chunk, no chunks", ("encode_iterable",), _stream)
    yield Step("encode_iterable: two streams at once, and other requests between", ("encode_iterable",), _two_streams)
    yield Step("encode_iterable: closed before the text is complete", ("encode_iterable",), _cut_stream)
    yield Step("train", ("train",), _train)
    yield Step("train: a pattern", ("train", "train_pattern"), lambda program: _trained(program, **WHOLE_TEXT))
    yield Step("train: the program survives a vocabulary size that is too small", ("train",), _train_too_small)
    yield Step("table", (), _table)
    yield Step("save: vocab.json and merges.txt", ("save",), _save)
    yield Step("from_files", ("from_files",), _from_files)
    yield Step("an unknown model is an error, and the program continues", (), _unknown_model)
    yield Step("unload", (), _unload)
    yield Step("the program exits within 1 second after its input ends", (), _end)
    yield Step("a restarted program gives the same answers", (), _again)


def _handshake(program: Program) -> None:
    reply = well_formed(program.start())
    hello = reply.value
    if reply.kind != "result" or not isinstance(hello, dict):
        rule = "the result of start is an object that describes the program"
        raise breach(reply, rule, "see *The start* in PROTOCOL.md")
    program.hello = hello
    capabilities = hello.get("capabilities")
    program.capabilities = frozenset(map(str, capabilities)) if isinstance(capabilities, list) else frozenset()
    program.fixed = isinstance(hello.get("model"), str)


_OPTIONAL = {"version": '"1.0"', "language": '"JavaScript (Node 20)"', "conventions": "{}", "model": "null"}


def _field(program: Program, name: str) -> str | None:
    if name not in program.hello:
        if name in _OPTIONAL:
            return f'is missing, but optional; a usual value is "{name}": {_OPTIONAL[name]}'
        raise Breach("it is missing", f"the reply to start has {name}", "see *The start* in PROTOCOL.md")
    value = program.hello[name]
    needed = {"protocol": 1, "name": "", "capabilities": []}
    if wrong := misshapen({**needed, name: value}, "startResult"):
        raise Breach(wrong, f"{name} is as startResult in protocol.schema.json requires", "write an allowed value")
    if name == "capabilities":
        if not {"encode", "decode", "train"} & program.capabilities:
            return "contains neither encode nor decode nor train: the suite has nothing to test"
        if "train_pattern" in program.capabilities and "train" not in program.capabilities:
            return "contains train_pattern but not train"
    return None


def _unknown_operation(program: Program) -> None:
    reply = program.ask("no_such_operation")
    if reply.kind != "not_claimed":
        rule = "the reply to an unknown operation is not_claimed, because later versions may have more operations"
        raise breach(reply, rule, 'reply with {"seq": ..., "not_claimed": "no_such_operation"}')


def _load(program: Program) -> str | None:
    if not program.capabilities.intersection(_USES_MODEL):
        return "not tested: the program announces no operation that needs a model"
    _ = program.model
    program.load(MODEL)
    return "special tokens are not supported; the other steps use none" if program.refuses_special else None


def _refusal(reply: Reply, shape: str) -> str | None:
    """Return a note if the tokenizer raised an error; the protocol allows that."""
    if reply.kind == "error":
        return f"the tokenizer raised an error: {excerpt(str(reply.value['message']))}; the suite tests this"
    shaped(reply, shape)
    return None


def _allowed(program: Program) -> str | None:
    if program.refuses_special:
        return "not tested: special tokens are not supported"
    text = TEXTS["a special token"]
    for allowed, disallowed in (([], []), (SPECIAL, []), ("all", "all")):
        chosen = {"allowed_special": allowed, "disallowed_special": disallowed}
        if note := _refusal(program.ask("encode", model=program.model, text=text, **chosen), "ids"):
            return note
    reply = program.ask("encode", model=program.model, text=text, allowed_special=[], disallowed_special="all")
    if reply.kind == "error" or program.fixed:
        return None
    return "a disallowed special token gives no error; the suite tests this"


def _encoding(program: Program, text: str) -> str | None:
    return _refusal(program.ask("encode", model=program.model, text=text), "ids")


def _round_trip(program: Program) -> str | None:
    for text in TEXTS.values():
        encoded = program.ask("encode", model=program.model, text=text)
        decoded = program.ask("decode", model=program.model, ids=encoded.value if encoded.kind == "result" else [])
        if "error" in (encoded.kind, decoded.kind):
            continue
        back = wire.read_text(shaped(decoded, "text"))
        if back != text:
            note = f"'{excerpt(text)}' comes back as '{excerpt(back)}'; the suite tests this. First check that"
            return f"{note} the program reads its input as UTF-8, and strips no byte order mark or line end"
    return None


def _long(program: Program) -> str | None:
    try:
        return _encoding(program, LONG)
    except HangError as error:
        return f"{error.got}; this is slow, but the suite's texts are shorter"


def _surrogates(program: Program) -> str | None:
    reply = program.ask("encode", model=program.model, text=wire.write_text(SURROGATES))
    if reply.kind == "not_claimed":
        raise breach(reply, "the program announces surrogates", "reply with ids or an error, or do not announce them")
    if reply.kind == "result":
        shaped(reply, "ids")
    program.check_alive()
    return None


def _unknown_member(program: Program) -> None:
    ids = program.encode("abc")
    reply = program.ask("encode", model=program.model, text="abc", no_such_member=[1])
    if reply.kind != "result" or reply.value != ids:
        rule = f"the program ignores unknown members of a request; expected {ids}"
        raise breach(reply, rule, "read only the members that you know")


def _batch(program: Program) -> None:
    for texts in ([], ["a", "", "b c\u20ac"]):
        reply = program.ask("encode_batch", model=program.model, texts=texts)
        if len(shaped(reply, "batchResult")) != len(texts):
            rule = f"the result is a list with the ids of each text; here there are {len(texts)} texts"
            raise breach(reply, rule, "keep the rows of empty texts")


def _some_ids(program: Program) -> list[int]:
    if "encode" in program.capabilities:
        return program.encode("a\u20ac")
    return [0] if program.fixed else [97, 226, 130, 172]


def _decoding(program: Program, op: str, shape: str) -> str | None:
    ids = _some_ids(program)
    program.result(op, shape, model=program.model, ids=ids)
    notes = [_refusal(program.ask(op, model=program.model, ids=some), shape) for some in ([], ids[:-1])]
    return next(filter(None, notes), None)


def _unknown_id(program: Program, op: str, shape: str) -> str | None:
    notes = []
    for index in (UNKNOWN_ID, -1):
        reply = program.ask(op, model=program.model, ids=[index])
        if reply.kind == "result":
            shaped(reply, shape)
            notes.append(f"{index} gives {excerpt(repr(reply.value))}, not an error; the suite tests this")
        program.check_alive()
    return "; ".join(notes) or None


def _several_models(program: Program) -> None:
    first = program.model
    before = program.encode("bcbc", first)
    second = program.load(PLAIN)
    other = program.encode("bcbc", second)
    again = program.encode("bcbc", first)
    if again != before:
        got = f"{before} from model {first}; {again} from the same model after model {second} was loaded"
        raise Breach(got, "a model exists until the suite unloads it", "store models under their numbers")
    if first == second or other == before:
        got = f"{before} from model {first}, with merges; {other} from model {second}, without merges"
        raise Breach(
            got,
            "each load makes a new model, and each request names a model",
            "look the model up by the number in `model`",
        )


def _feed(program: Program, stream: int, text: str) -> list[int]:
    ids: list[int] = program.result("stream_feed", "chunkResult", stream=stream, text=text)["ids"]
    return ids


def _open(program: Program) -> int:
    return int(program.result("stream_open", "streamResult", model=program.model)["stream"])


def _close(program: Program, stream: int) -> list[int]:
    ids: list[int] = program.result("stream_close", "chunkResult", stream=stream)["ids"]
    return ids


_FIRST, _SECOND = ("ab", "", "c \U0001f98a b", "c"), ("xyz", " ", "z y")


def _alone(program: Program, chunks: Sequence[str]) -> list[int]:
    stream = _open(program)
    return [index for chunk in chunks for index in _feed(program, stream, chunk)] + _close(program, stream)


def _stream(program: Program) -> str | None:
    ids = _alone(program, _FIRST)
    _alone(program, [])
    if "encode" in program.capabilities and ids != (whole := program.encode("".join(_FIRST))):
        note = f"{list(_FIRST)} gives {ids}, but the whole text gives {whole}; the suite tests this"
        return note.replace("\U0001f98a", "?")
    return None


def _two_streams(program: Program) -> None:
    expected = [_alone(program, chunks) for chunks in (_FIRST, _SECOND)]
    streams = [_open(program), _open(program)]
    if streams[0] == streams[1]:
        rule = "several streams may be open, each with its own number"
        raise Breach(f"the number {streams[0]} twice", rule, "give each open stream a new number")
    got: list[list[int]] = [[], []]
    for turn in range(max(len(_FIRST), len(_SECOND))):
        for which, chunks in enumerate((_FIRST, _SECOND)):
            if turn < len(chunks):
                got[which] += _feed(program, streams[which], chunks[turn])
        program.check_alive()
    for which, stream in enumerate(streams):
        got[which] += _close(program, stream)
    if got != expected:
        both = f"{got[0]} and {got[1]} side by side, {expected[0]} and {expected[1]} one after the other"
        raise Breach(both, "the program keeps streams apart", "store held-back text under the number of its stream")


def _cut_stream(program: Program) -> None:
    stream = _open(program)
    _feed(program, stream, "ab")
    _close(program, stream)
    program.check_alive()


_TRAINING = {"text": "low lower \u20ac\u20ac\0", "vocab_size": 261, "special_tokens": SPECIAL}


def _trained(program: Program, **more: Any) -> Any:
    model = program.result("train", "modelResult", **{**_TRAINING, **more})["model"]
    table = dict(program.result("table", "tableResult", model=model))
    table["vocab"] = dict(table["vocab"])  # its order has no meaning
    if program.capabilities & {"encode"}:
        program.encode("low", model)
    program.result("unload", "nothing", model=model)
    return table


def _train(program: Program) -> None:
    _trained(program)
    _trained(program, special_tokens=[], text="")


def _train_too_small(program: Program) -> None:
    reply = program.ask("train", **{**_TRAINING, "vocab_size": 3})
    if reply.kind == "result":
        shaped(reply, "modelResult")
    program.check_alive()


def _table(program: Program) -> None:
    if program.capabilities.intersection(_USES_MODEL):  # the step "train" checks the table of a trained model
        reply = program.ask("table", model=program.model)
        if reply.kind != "not_claimed":
            shaped(reply, "tableResult")


def _save(program: Program) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program.result("save", "nothing", model=program.model, folder=folder)
        names = sorted(path.name for path in Path(folder).iterdir())
        if not {"vocab.json", "merges.txt"} <= set(names):
            got = f"the directory contains {', '.join(names) or 'nothing'}"
            rule = "save writes vocab.json and merges.txt into the directory"
            raise Breach(got, rule, "join the directory and the file names, and close the files")


def _from_files(program: Program) -> None:
    with tempfile.TemporaryDirectory() as folder:
        vocab, merges = gpt2_files.write(MODEL, Path(folder))
        paths = {"vocab_path": str(vocab), "merges_path": str(merges)}
        for special in (None, SPECIAL):
            model = program.result("from_files", "modelResult", **paths, special_tokens=special)["model"]
    if "encode" in program.capabilities:
        program.encode("abc", model)


def _unknown_model(program: Program) -> str | None:
    uses = [op for op in ("encode", "decode", "decode_bytes") if op in program.capabilities]
    if not uses:
        return None
    fields: dict[str, Any] = {"text": "a"} if uses[0] == "encode" else {"ids": []}
    reply = program.ask(uses[0], model=UNKNOWN_ID, **fields)
    program.check_alive()
    return f"the reply is {shown(reply)}, as if the model existed" if reply.kind == "result" else None


def _unload(program: Program) -> None:
    if not program.capabilities.intersection(_USES_MODEL):
        return
    keep = program.model
    program.result("unload", "nothing", model=program.load(PLAIN))
    if "encode" in program.capabilities:
        program.encode("abc", keep)


def _end(program: Program) -> str | None:
    program.check_alive()
    status = program.end()
    return f"the exit status is {status}; 0 is usual" if status else None


def _answer(program: Program, text: str) -> tuple[str, Any]:
    reply = program.ask("encode", model=program.model, text=text)
    return reply.kind, reply.value if reply.kind == "result" else None


def _again(program: Program) -> None:
    seen = []
    for _ in range(2):
        hello = well_formed(program.start()).value
        answers = [_answer(program, text) for text in TEXTS.values()] if "encode" in program.capabilities else []
        seen.append((hello, answers, _trained(program) if "train" in program.capabilities else None))
    if any(announced(hello) != announced(program.hello) for hello, _, _ in seen):
        got = f"{excerpt(str(seen[1][0]))} after {excerpt(str(program.hello))}"
        raise Breach(
            got,
            "a restarted program announces the same as before",
            "announce nothing that changes, such as a time or a process id",
        )
    if seen[0][1:] != seen[1][1:]:
        raise Breach(
            "different ids or a different table than before the restart",
            "a restarted program gives the same answers, because the suite recreates the models in use",
            "seed random numbers; sort sets",
        )


def tally(results: Sequence[StepResult], spec: str) -> Iterator[str]:
    """Yield the last lines: the counts and the next step."""
    count = {state: sum(result.state == state for result in results) for state in ("ok", "note", "FAIL", "skip")}
    yield ", ".join(f"{number} {state}" for state, number in count.items() if number)
    if not count["FAIL"]:
        yield f'the program speaks the protocol; now test the tokenizer: pytest conformance --adapter "{excerpt(spec)}"'
