"""A self-test for authors of adapters in any language: the protocol of PROTOCOL.md, gone through step by step."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpe_conformance.command_error import CommandError
from bpe_conformance.fixtures import Model, read_model
from bpe_conformance.implementation import gpt2_files

from . import wire
from .talk import END_LIMIT, Breach, Reply, Talk, excerpt, misshapen

SPECIAL = ["<|e|>", "<|\u00e9|>"]
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
LONGEST_LIMIT = 86400.0
"""Seconds that a reply may be given at most."""
SURROGATES = "a\ud800b"
_USES_MODEL = ("encode", "decode", "encode_batch", "decode_bytes", "encode_iterable", "save")
_SILENCES = 3


@dataclass(frozen=True)
class Outcome:
    """What one step showed.

    Attributes:
        title: the step.
        state: ok, note, FAIL or skip.
        lines: what there is to say about it.
    """

    title: str
    state: str
    lines: tuple[str, ...] = ()

    @property
    def text(self) -> Iterator[str]:
        """The lines to print."""
        if self.state == "skip":
            yield f"skip  {self.title} ({'; '.join(self.lines)})"
            return
        yield f"{self.state:6}{self.title}"
        yield from (f"      {line}" for line in self.lines)


class Program:
    """The program under test: started when needed, with a model loaded when needed.

    Attributes:
        hello: what it answered to the first start.
        capabilities: what it announced.
        fixed: whether it has one vocabulary and takes no other.
    """

    def __init__(self, argv: Sequence[str], time_limit: float, start_limit: float) -> None:
        self._argv, self._limits = list(argv), (time_limit, start_limit)
        self._talk: Talk | None = None
        self._model = -1
        self.hello: dict[str, Any] = {}
        self.capabilities: frozenset[str] = frozenset()
        self.fixed = False

    def start(self) -> Reply:
        """Start it anew and return its answer to the handshake."""
        self.kill()
        try:
            self._talk = Talk(self._argv, *self._limits)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise CommandError(f"cannot start {excerpt(' '.join(self._argv))}: {reason}") from None
        return self._talk.ask("start", {"protocol": wire.PROTOCOL})

    def kill(self) -> None:
        """End it at once."""
        if self._talk is not None:
            self._talk.kill()
        self._talk, self._model = None, -1

    def end(self) -> int:
        """Close its input and return its exit status."""
        talk, self._talk, self._model = self._running(), None, -1
        return talk.end()

    def _running(self) -> Talk:
        if self._talk is None or not self._talk.fit:
            self.start()
        assert self._talk is not None
        return self._talk

    def ask(self, op: str, **fields: Any) -> Reply:
        """Send one request and return the reply, whatever kind it is."""
        return self._running().ask(op, fields)

    def result(self, op: str, shape: str, **fields: Any) -> Any:
        """Send one request and return its result, which has this shape."""
        return self.ask(op, **fields).shaped(shape)

    def load(self, model: Model, special_tokens: Sequence[str] | None = None, **more: str) -> int:
        """Load a model, or the only one, and return its handle."""
        fields = {**wire.write_table(model.vocab, model.merges), "special_tokens": special_tokens, **more}
        return int(self.result("load", "modelResult", **({} if self.fixed else fields))["model"])

    @property
    def model(self) -> int:
        """The handle of the model that most steps use, in the run that is on."""
        self._running()
        if self._model < 0:
            self._model = self.load(MODEL, SPECIAL)
        return self._model

    def encode(self, text: str, model: int | None = None) -> list[int]:
        """Return the ids of a text."""
        model = self.model if model is None else model
        ids: list[int] = self.result("encode", "ids", model=model, text=wire.write_text(text))
        return ids

    def alive(self) -> None:
        """See that it still answers."""
        self.ask("no_such_operation")


MODEL = read_model({"merges": [["b", "c"], ["a", "b"], [{"hex": "e2"}, {"hex": "82"}]]})
PLAIN = read_model({"merges": []})

Run = Callable[[Program], str | None]


@dataclass(frozen=True)
class Step:
    """One step: it returns None or a note, and raises Breach.

    Attributes:
        title: what is tried.
        needs: the capabilities without which it is left out.
        run: does it.
        tables: whether it needs a second table, which a fixed vocabulary is not.
    """

    title: str
    needs: tuple[str, ...]
    run: Run
    tables: bool = False


def check(spec: str, time_limit: float = 10.0, start_limit: float = 60.0) -> Iterator[Outcome]:
    """Yield what each step shows, as it is done.

    Args:
        spec: `cmd:PROGRAM ARGS`.
        time_limit: seconds in which a reply is due.
        start_limit: seconds in which the first one is.

    Raises:
        CommandError: if the program cannot be started at all.
    """
    program = Program(_argv(spec), time_limit, start_limit)
    silences = 0
    try:
        for step in _steps():
            missing = [name for name in step.needs if name not in program.capabilities]
            if missing or (program.fixed and step.tables):
                why = f"{missing[0]} is not announced" if missing else "it has one vocabulary"
                yield Outcome(step.title, "skip", (why,))
                continue
            outcome, silent = _try(step, program)
            yield outcome
            silences += silent
            if outcome.state == "FAIL" and not program.hello:
                return
            if silences == _SILENCES:
                yield Outcome(f"given up: {_SILENCES} times without an answer", "FAIL")
                return
    finally:
        program.kill()


def _argv(spec: str) -> list[str]:
    if not spec.startswith("cmd:"):
        raise CommandError(f'{spec!a} is no program; write "cmd:PROGRAM ARGS", as in "cmd:node tok.js"')
    try:
        argv = shlex.split(spec.removeprefix("cmd:"), posix=os.name == "posix")
    except ValueError as error:
        raise CommandError(f"{spec!a}: {error}; quote as in a shell") from None
    if not argv:
        raise CommandError('"cmd:" names no program; write "cmd:PROGRAM ARGS", as in "cmd:node tok.js"')
    return argv


def _try(step: Step, program: Program) -> tuple[Outcome, bool]:
    try:
        note = step.run(program)
    except Breach as breach:
        rows = (("sent", excerpt(breach.sent)), ("got", breach.got), ("rule", breach.rule), ("fix", breach.fix))
        lines = [f"{name:7}{value}" for name, value in rows if value]
        lines += [f"{'stderr':7}{excerpt(line)}" for line in breach.stderr.splitlines()[-5:]]
        return Outcome(step.title, "FAIL", tuple(lines)), breach.silent
    return Outcome(step.title, "note", (note,)) if note else Outcome(step.title, "ok"), False


def _steps() -> Iterator[Step]:
    yield Step("start: one reply, on one line", (), _handshake)
    for name in ("protocol", "name", "version", "language", "capabilities", "conventions", "model"):
        yield Step(f"start: {name}", (), _field(name))
    yield Step("an unknown operation is not_claimed", (), _unknown_operation)
    yield Step("a request of 1 MB in one line", (), _long_line)
    yield Step("load: a table, with special tokens and with null", (), _load)
    yield Step("encode: ASCII", ("encode",), _ascii)
    for what, text in TEXTS.items():
        yield Step(f"encode: {what}", ("encode",), _encoding(text))
    yield Step("encode: 1 MB of text", ("encode",), _long)
    yield Step("encode: lone surrogates", ("encode", "surrogates"), _surrogates)
    yield Step("encode: unknown members of a request are ignored", ("encode",), _unknown_member)
    yield Step("encode: allowed_special and disallowed_special", ("encode", "allowed_special"), _allowed)
    yield Step("encode_batch: no texts, and three", ("encode_batch",), _batch)
    for op, shape in (("decode", "text"), ("decode_bytes", "hex")):
        yield Step(f"{op}: ids, no ids, part of a character", (op,), _decoding(op, shape))
        yield Step(f"{op}: an unknown id and a negative one are errors", (op,), _unknown_id(op, shape))
    yield Step("decode: what was encoded comes back", ("encode", "decode"), _round_trip)
    yield Step("several models at once", ("encode",), _several_models, tables=True)
    yield Step("load: a pattern", ("pattern",), _pattern)
    yield Step("encode_iterable: chunks, an empty one, none", ("encode_iterable",), _stream)
    yield Step("encode_iterable: two streams at once, and other requests between", ("encode_iterable",), _two_streams)
    yield Step("encode_iterable: closed before the text is complete", ("encode_iterable",), _cut_stream)
    yield Step("train", ("train",), _train)
    yield Step("train: a pattern", ("train", "train_pattern"), _train_pattern)
    yield Step("train: a vocabulary that is too small does no harm", ("train",), _train_too_small)
    yield Step("table", (), _table)
    yield Step("save: vocab.json and merges.txt", ("save",), _save)
    yield Step("from_files", ("from_files",), _from_files)
    yield Step("an unknown model is an error, and the program lives on", (), _unknown_model)
    yield Step("unload", (), _unload)
    yield Step(f"it ends within {END_LIMIT:g} second when its input does", (), _end)
    yield Step("started again, it says and gives the same", (), _again)


def _handshake(program: Program) -> None:
    reply = program.start()
    if reply.kind != "result" or not isinstance(reply.value, dict):
        rule = "start is answered with an object that describes the program"
        raise Breach(reply.told, rule, "see The start in PROTOCOL.md", reply.sent)
    program.hello = reply.value
    capabilities = reply.value.get("capabilities")
    program.capabilities = frozenset(map(str, capabilities)) if isinstance(capabilities, list) else frozenset()
    program.fixed = isinstance(reply.value.get("model"), str)


_OPTIONAL = {"version": '"1.0"', "language": '"JavaScript (Node 20)"', "conventions": "{}", "model": "null"}


def _field(name: str) -> Run:
    def run(program: Program) -> str | None:
        if name not in program.hello:
            if name in _OPTIONAL:
                return f'is left out; "{name}": {_OPTIONAL[name]} is usual'
            raise Breach("it is left out", f"the answer to start has {name}", "see The start in PROTOCOL.md")
        value = program.hello[name]
        needed = {"protocol": 1, "name": "", "capabilities": []}
        if wrong := misshapen({**needed, name: value}, "startResult"):
            raise Breach(wrong, f"what {name} may be stands in protocol.schema.json, startResult", "write one of these")
        if name == "capabilities":
            if not {"encode", "decode", "train"} & program.capabilities:
                return "neither encode nor decode nor train: there is nothing to judge"
            if "train_pattern" in program.capabilities and "train" not in program.capabilities:
                return "train_pattern without train"
        return None

    return run


def _unknown_operation(program: Program) -> None:
    reply = program.ask("no_such_operation")
    if reply.kind != "not_claimed":
        rule = "an unknown operation is answered with not_claimed: later versions may ask for more"
        raise Breach(reply.told, rule, '{"seq": ..., "not_claimed": "no_such_operation"}', reply.sent)


def _load(program: Program) -> str | None:
    if not program.capabilities.intersection(_USES_MODEL):
        return "not asked for: nothing that needs a model is announced"
    _ = program.model
    program.load(MODEL)
    return None


def _refusal(reply: Reply, shape: str) -> str | None:
    """Return a note if the tokenizer refused what it should take, which is not the protocol's fault."""
    if reply.kind == "error":
        return f"refused: {excerpt(str(reply.value['message']))}; the suite judges that"
    reply.shaped(shape)
    return None


def _ascii(program: Program) -> None:
    program.encode("abc bc")


def _allowed(program: Program) -> str | None:
    text = TEXTS["a special token"]
    for allowed, disallowed in (([], []), (SPECIAL, []), ("all", "all")):
        chosen = {"allowed_special": allowed, "disallowed_special": disallowed}
        if note := _refusal(program.ask("encode", model=program.model, text=text, **chosen), "ids"):
            return note
    reply = program.ask("encode", model=program.model, text=text, allowed_special=[], disallowed_special="all")
    return None if reply.kind == "error" or program.fixed else "what is disallowed is no error; the suite judges that"


def _encoding(text: str) -> Run:
    def run(program: Program) -> str | None:
        return _refusal(program.ask("encode", model=program.model, text=text), "ids")

    return run


def _round_trip(program: Program) -> str | None:
    for text in TEXTS.values():
        encoded = program.ask("encode", model=program.model, text=text)
        decoded = program.ask("decode", model=program.model, ids=encoded.value if encoded.kind == "result" else [])
        if "error" in (encoded.kind, decoded.kind):
            continue
        back = wire.read_text(decoded.shaped("text"))
        if back != text:
            told = f"'{excerpt(text)}' comes back as '{excerpt(back)}': the suite judges that, but see first"
            return f"{told} that input is read as UTF-8, and that no byte order mark or line end is stripped"
    return None


def _long_line(program: Program) -> None:
    program.ask("no_such_operation", text=LONG)


def _long(program: Program) -> str | None:
    try:
        return _refusal(program.ask("encode", model=program.model, text=LONG), "ids")
    except Breach as breach:
        if not breach.silent:
            raise
        return f"{breach.got}: slow, but the suite's texts are shorter"


def _surrogates(program: Program) -> str | None:
    reply = program.ask("encode", model=program.model, text=wire.write_text(SURROGATES))
    if reply.kind == "not_claimed":
        raise Breach(
            reply.told, "surrogates are announced", "reply with ids or an error, or do not announce", reply.sent
        )
    if reply.kind == "result":
        reply.shaped("ids")
    program.alive()
    return None


def _unknown_member(program: Program) -> None:
    ids = program.encode("abc")
    reply = program.ask("encode", model=program.model, text="abc", no_such_member=[1])
    if reply.kind != "result" or reply.value != ids:
        rule = f"unknown members of a request are ignored: {ids} is expected"
        raise Breach(reply.told, rule, "read the members that you know, and no others", reply.sent)


def _batch(program: Program) -> None:
    for texts in ([], ["a", "", "b c\u20ac"]):
        reply = program.ask("encode_batch", model=program.model, texts=texts)
        if len(reply.shaped("batchResult")) != len(texts):
            raise Breach(
                reply.told, f"a list with the ids of each text, here {len(texts)}", "keep empty ones", reply.sent
            )


def _some_ids(program: Program) -> list[int]:
    if "encode" in program.capabilities:
        return program.encode("a\u20ac")
    return [0] if program.fixed else [97, 226, 130, 172]


def _decoding(op: str, shape: str) -> Run:
    def run(program: Program) -> str | None:
        ids = _some_ids(program)
        program.result(op, shape, model=program.model, ids=ids)
        notes = [_refusal(program.ask(op, model=program.model, ids=some), shape) for some in ([], ids[:-1])]
        return next(filter(None, notes), None)

    return run


def _unknown_id(op: str, shape: str) -> Run:
    def run(program: Program) -> str | None:
        notes = []
        for index in (wire.MAX_ID - 1, -1):
            reply = program.ask(op, model=program.model, ids=[index])
            if reply.kind == "result":
                reply.shaped(shape)
                notes.append(f"{index} gives {excerpt(repr(reply.value))}, no error: the suite judges that")
            program.alive()
        return "; ".join(notes) or None

    return run


def _several_models(program: Program) -> None:
    first = program.model
    before = program.encode("bcbc", first)
    second = program.load(PLAIN)
    other = program.encode("bcbc", second)
    again = program.encode("bcbc", first)
    if again != before:
        got = f"{before} from model {first}; {again} from it after model {second} was loaded"
        raise Breach(got, "a model stays until it is unloaded", "keep models by their numbers")
    if first == second or other == before:
        got = f"{before} from model {first}, with merges; {other} from model {second}, without"
        raise Breach(
            got, "each load makes another model, and a request names the one it is for", "look it up by `model`"
        )


def _pattern(program: Program) -> None:
    program.encode("a b", program.load(MODEL, None, pattern="[\\s\\S]+"))


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
        return f"{list(_FIRST)} gives {ids}, the whole text {whole}: the suite judges that".replace("\U0001f98a", "?")
    return None


def _two_streams(program: Program) -> None:
    wanted = [_alone(program, chunks) for chunks in (_FIRST, _SECOND)]
    streams = [_open(program), _open(program)]
    if streams[0] == streams[1]:
        raise Breach(f"{streams[0]} twice", "several streams may be open, each with a number", "count them")
    got: list[list[int]] = [[], []]
    for turn in range(max(len(_FIRST), len(_SECOND))):
        for which, chunks in enumerate((_FIRST, _SECOND)):
            if turn < len(chunks):
                got[which] += _feed(program, streams[which], chunks[turn])
        program.alive()
    for which, stream in enumerate(streams):
        got[which] += _close(program, stream)
    if got != wanted:
        told = f"{got[0]} and {got[1]} side by side, {wanted[0]} and {wanted[1]} one after the other"
        raise Breach(told, "streams do not mix", "keep what is held back by the stream's number")


def _cut_stream(program: Program) -> None:
    stream = _open(program)
    _feed(program, stream, "ab")
    _close(program, stream)
    reply = program.ask("stream_feed", stream=stream, text="c")
    if reply.kind == "result":
        raise Breach(reply.told, "a stream that is closed is gone: an error", "forget it when it is closed", reply.sent)


_TRAINING = {"text": "low lower \u20ac\u20ac\0", "vocab_size": 261, "special_tokens": SPECIAL}


def _trained(program: Program, **more: Any) -> Any:
    model = program.result("train", "modelResult", **{**_TRAINING, **more})["model"]
    table = dict(program.result("table", "tableResult", model=model))
    table["vocab"] = dict(table["vocab"])  # its order says nothing
    if program.capabilities & {"encode"}:
        program.encode("low", model)
    program.result("unload", "nothing", model=model)
    return table


def _train(program: Program) -> None:
    _trained(program)
    _trained(program, special_tokens=[], text="")


def _train_pattern(program: Program) -> None:
    _trained(program, pattern="[\\s\\S]+")


def _train_too_small(program: Program) -> None:
    reply = program.ask("train", **{**_TRAINING, "vocab_size": 3})
    if reply.kind == "result":
        reply.shaped("modelResult")
    program.alive()


def _table(program: Program) -> None:
    if program.capabilities.intersection(_USES_MODEL):  # a trainer's is seen where it trains
        reply = program.ask("table", model=program.model)
        if reply.kind != "not_claimed":
            reply.shaped("tableResult")


def _save(program: Program) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program.result("save", "nothing", model=program.model, folder=folder)
        names = sorted(path.name for path in Path(folder).iterdir())
        if not {"vocab.json", "merges.txt"} <= set(names):
            got = f"in the folder: {', '.join(names) or 'nothing'}"
            raise Breach(
                got, "save writes vocab.json and merges.txt into the folder", "join the path, and close the files"
            )


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
    reply = program.ask(uses[0], model=wire.MAX_ID - 1, **fields)
    program.alive()
    return f"it answers {reply.told}, as if there were one" if reply.kind == "result" else None


def _unload(program: Program) -> None:
    if not program.capabilities.intersection(_USES_MODEL):
        return
    keep = program.model
    program.result("unload", "nothing", model=program.load(PLAIN))
    if "encode" in program.capabilities:
        program.encode("abc", keep)


def _end(program: Program) -> str | None:
    program.alive()
    status = program.end()
    return f"with status {status}; 0 is usual" if status else None


def _answer(program: Program, text: str) -> tuple[str, Any]:
    reply = program.ask("encode", model=program.model, text=text)
    return reply.kind, reply.value if reply.kind == "result" else None


def _again(program: Program) -> None:
    seen = []
    for _ in range(2):
        hello = program.start().shaped("startResult") if not misshapen(program.hello, "startResult") else program.hello
        answers = [_answer(program, text) for text in TEXTS.values()] if "encode" in program.capabilities else []
        seen.append((hello, answers, _trained(program) if "train" in program.capabilities else None))
    if seen[0][0] != program.hello or seen[1][0] != program.hello:
        got = f"{excerpt(str(seen[1][0]))} after {excerpt(str(program.hello))}"
        raise Breach(got, "a program that is started again announces the same", "leave out what changes: times, ids")
    if seen[0] != seen[1]:
        raise Breach(
            "other ids or another table than in the run before",
            "a program that is started again gives the same: a model that is in use is made again there",
            "seed what is random; sort what is a set",
        )


def tally(outcomes: Sequence[Outcome], spec: str) -> Iterator[str]:
    """Yield the last lines: the count, and what to do next."""
    count = {state: sum(one.state == state for one in outcomes) for state in ("ok", "note", "FAIL", "skip")}
    yield ", ".join(f"{number} {state}" for state, number in count.items() if number)
    if not count["FAIL"]:
        yield f'the protocol is spoken; whether the tokenizer is right: pytest conformance --adapter "{excerpt(spec)}"'
