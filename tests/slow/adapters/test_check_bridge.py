"""`check-bridge` passes programs that follow the protocol, and names the rule that any other program breaks."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from bpe_conformance.adapters import AdapterError
from bpe_conformance.adapters.bridge import check, client
from bpe_conformance.cli import main

# A program that is correct unless its argument names a fault. Ids are bytes; 256 is "bc" if a model has merges.
PROGRAM = r"""
import codecs, json, os, pathlib, sys, time
fault = sys.argv[1]
models, streams = {}, {}
out = sys.stdout.buffer
count = 0
if fault == "none": sys.stderr.write("noise\n" * 30000)
if fault == "banner": print("ready", flush=True)
if fault == "slow-start": time.sleep(1.5)
if fault == "no-start": sys.exit("boom: no module named tok")

def write(reply):
    line = json.dumps(reply, ensure_ascii=fault not in ("utf-8", "cp1252"))
    if fault == "utf-16": line = line + "\0"
    out.write((line.encode("cp1252", "replace") if fault == "cp1252" else line.encode()) + b"\n")
    if fault != "no-flush": out.flush()

def text_of(value):
    return value if isinstance(value, str) else "".join(map(chr, value["code_points"]))

def new(value):
    streaming = isinstance(value, list)
    if fault == "one-model" and not streaming: models.clear()
    single = fault == "one-model" and not streaming or fault == "one-stream" and streaming
    handle = 1 if single else max([0, *models, *streams]) + 1
    (streams if streaming else models)[handle] = value
    return handle

def encode(model, text):
    if fault == "ignores-model": model = max(models)
    if text == "" and fault == "empty": return None
    if fault == "nul" and "\0" in text: os._exit(3)
    if fault == "bom": text = text.removeprefix("\ufeff")
    if fault == "pairs": text = text.replace("l\u00f6 \U0001f98a", "l\u00f6 \ufffd\ufffd")
    if fault == "hang" and "\U0001f98a" in text: time.sleep(60)
    if fault == "slow" and len(text) > 9999: time.sleep(60)
    if fault == "refuses" and "\0" in text: raise ValueError("NUL")
    if fault == "long" and len(text) > 1 << 19: raise ValueError("too long")
    data = text.encode("utf-8", "strict" if fault != "surrogate-crash" else "surrogatepass")
    ids, place = [], 0
    while place < len(data):
        pair = models[model]["merges"] and data[place:place + 2] == b"bc"
        ids.append(256 if pair else data[place])
        place += 2 if pair else 1
    if fault == "restart": ids.append(os.getpid() % 128)
    if fault == "float": return [float(i) for i in ids]
    if fault == "strings": return [str(i) for i in ids]
    if fault == "big": return [i + (1 << 32) for i in ids]
    return ids

def data_of(ids):
    if fault == "no-ids" and not ids: raise ValueError("nothing to decode")
    if fault == "unknown-id-crash" and ids and max(ids) > 300: os._exit(4)
    if fault == "unknown-id-empty": ids = [i for i in ids if 0 <= i < 257]
    return b"".join(b"bc" if i == 256 else bytes([i]) for i in ids)

def answer(r):
    op = r["op"]
    if op == "start":
        known = ["encode", "decode", "encode_batch", "decode_bytes", "encode_iterable", "save", "train", "from_files",
                 "pattern", "train_pattern", "surrogates", "allowed_special", "decode_iterable", "encode_with_offsets",
                 "from_tokenizer_json"]
        hello = {"protocol": 1, "name": "p", "version": "1", "language": "Python", "capabilities": known,
                 "conventions": {}, "model": None}
        if fault == "protocol": hello["protocol"] = "1"
        if fault == "nameless": del hello["name"]
        if fault == "version": hello["version"] = 1.0
        if fault == "capabilities": known.append("tokenise")
        if fault == "conventions": hello["conventions"] = {"tie_break": "random"}
        if fault == "model": hello["model"] = 7
        if fault == "shuffled": known.sort(key=lambda _: os.urandom(8))
        if fault == "another": hello["version"] = str(os.getpid())
        if fault == "fixed":
            hello["model"] = "gpt2"
            hello["capabilities"] = known[:1]
        if fault == "trainer": hello["capabilities"] = ["train"]
        return hello
    if fault == "no-special" and r.get("special_tokens"): raise NotImplementedError("special tokens")
    if op == "load": return {"model": new({"merges": r.get("merges", []), "vocab": r.get("vocab", [])})}
    if op == "unload":
        if fault == "unload": models.clear()
        models.pop(r["model"], None)
        return {} if fault == "unload-result" else None
    if op == "table":
        if fault == "hex-table": return {"vocab": [[0, "0X"]], "merges": []}
        m = models[r["model"]]
        if fault == "hash-order": return {"vocab": sorted(m["vocab"], key=lambda _: os.urandom(8)), "merges": []}
        return {"vocab": m["vocab"], "merges": m["merges"]}
    if op == "encode":
        if fault == "strict-members" and len(r) > 4: raise ValueError("what is this?")
        if fault == "choice" and "allowed_special" in r: return {"ids": []}
        if r.get("disallowed_special") == "all" and r["allowed_special"] == [] and "<|" in r["text"]:
            if fault != "allows": raise ValueError("disallowed")
        return encode(r["model"], text_of(r["text"]))
    if op == "encode_batch":
        return [encode(r["model"], text_of(t)) for t in r["texts"] if t or fault != "batch"]
    if op == "decode":
        data = data_of(r["ids"])
        codec = "utf-8-sig" if fault == "decodes-bom" else "utf-8"
        return list(data) if fault == "decode-list" else data.decode(codec, "replace")
    if op == "decode_bytes":
        return data_of(r["ids"]).hex().upper() if fault == "upper" else data_of(r["ids"]).hex()
    if op == "train":
        if r["vocab_size"] < 256:
            if fault == "small-crash": os._exit(5)
            raise ValueError("too small")
        return {"model": new({"merges": [], "vocab": [[i, "%02x" % i] for i in range(256)]})}
    if op == "encode_with_offsets":
        ids, end, offsets = encode(r["model"], r["text"]), 0, []
        if fault == "restart": ids.pop()
        owner = [at for at, char in enumerate(r["text"]) for _ in char.encode()]
        for index in ids:
            start, end = end, end + len(data_of([index]))
            offsets.append([owner[start], owner[end - 1] + 1])
        return {"ids": ids, "offsets": [span[0] for span in offsets] if fault == "starts" else offsets}
    if op == "stream_open":
        if r.get("method") == "decode_iterable":
            return {"stream": new([codecs.getincrementaldecoder("utf-8")("replace")])}
        return {"stream": new([r["model"]])}
    if "stream" in r and hasattr(streams[r["stream"]][0], "decode"):
        name = "ids" if fault == "deltas" else "deltas"
        decoder = streams[min(streams) if fault == "one-decoder" else r["stream"]][0]
        if op == "stream_feed": return {name: [decoder.decode(data_of([r["id"]]))][:fault != "deltas"]}
        del streams[r["stream"]]
        return {name: [] if fault == "deltas" else [decoder.decode(b"", True)], "ended": True}
    if op == "stream_feed":
        fed = min(streams) if fault == "mixed" else r["stream"]
        if fault == "swapped" and len(streams) == 2: fed = sum(streams) - fed
        buffer = streams[fed]
        buffer.append(r["text"])
        return {"ids": "none"} if fault == "chunk" else {"ids": []}
    if op == "stream_close":
        buffer = streams.pop(r["stream"])
        return {"ids": encode(buffer[0], "".join(buffer[1:])), "ended": True}
    if op == "save":
        name = "merges" if fault == "save" else "merges.txt"
        pathlib.Path(r["folder"], name).write_text("")
        pathlib.Path(r["folder"], "vocab.json").write_text("{}")
        return None
    if op == "from_files":
        if fault == "files": raise FileNotFoundError("vocab")
        return {"model": new({"merges": [], "vocab": []})}
    if op == "from_tokenizer_json":
        return {"model": new({"merges": [["61", "62"]], "vocab": [[256, "6162"]]})}
    raise NotImplementedError(op)

for line in sys.stdin if fault != "reads-all" else sys.stdin.read().splitlines():
    if fault == "short-lines": line = line[:9999]
    r = json.loads(line)
    count += 1
    if fault == "seq": r["seq"] = 0
    if fault == "print": print("encoding", flush=True)
    try:
        reply = {"seq": r["seq"], "result": answer(r)}
        if fault == "extra": reply["id"] = 1
        if fault == "both": reply["error"] = None
        write(reply)
        if fault == "twice": write(reply)
    except NotImplementedError as error:
        key = "error" if fault == "unknown-op" else "not_claimed"
        write({"seq": r["seq"], key: str(error) if key != "error" else {"type": "E", "message": "no"}})
    except Exception as error:
        if fault == "raises": raise
        reported = {"type": type(error).__name__, "message": str(error)}
        write({"seq": r["seq"], "error": str(error) if fault == "error-text" else reported})
if fault == "farewell": print("bye", flush=True)
if fault == "stays": time.sleep(60)
if fault == "status": sys.exit(3)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    file = tmp_path_factory.mktemp("check-bridge") / "program.py"
    file.write_text(PROGRAM, encoding="utf-8")
    return file


def steps(program: Path, fault: str, limit: float = 20.0) -> Iterator[check.StepResult]:
    return check.check(f"cmd:{sys.executable} -S -E {program} {fault}", limit, 20.0)


def run(program: Path, fault: str, limit: float = 20.0) -> list[check.StepResult]:
    return list(steps(program, fault, limit))


def test_correct_program_passes_every_step(program):
    outcomes = run(program, "none")
    assert {outcome.state for outcome in outcomes} == {"ok"}, [o for o in outcomes if o.state != "ok"]
    assert len(outcomes) == 48


FAULTS = {
    "banner": ("one reply", "standard output"),
    "print": ("one reply", "standard error"),
    "cp1252": ("decode: ids", "UTF-8"),
    "utf-16": ("one reply", "one JSON object"),
    "twice": ("unknown operation", "to standard output, and nothing else|repeats the request's seq"),
    "seq": ("one reply", "repeats the request's seq"),
    "extra": ("one reply", "no other member"),
    "both": ("one reply", "no other member"),
    "protocol": ("start: protocol", "has an allowed value for protocol"),
    "nameless": ("start: name", "has name"),
    "version": ("start: version", "has an allowed value for version"),
    "capabilities": ("start: capabilities", "has an allowed value for capabilities"),
    "conventions": ("start: conventions", "has an allowed value for conventions"),
    "model": ("start: model", "has an allowed value for model"),
    "unknown-op": ("unknown operation", "not_claimed"),
    "error-text": ("lone surrogates", "error is an object"),
    "empty": ("an empty text", "list of integers"),
    "float": ("encode: ASCII", "list of integers"),
    "strings": ("encode: ASCII", "list of integers"),
    "big": ("encode: ASCII", "list of integers"),
    "nul": ("U+0000", "until its input ends"),
    "strict-members": ("unknown members", "ignores unknown members"),
    "choice": ("allowed_special", "list of integers"),
    "batch": ("encode_batch", "empty texts"),
    "decode-list": ("decode: ids", "a string"),
    "upper": ("decode_bytes: ids", "lower-case hex"),
    "unknown-id-crash": ("unknown id", "until its input ends"),
    "raises": ("lone surrogates", "until its input ends"),
    "one-model": ("several models", "until the suite unloads it"),
    "ignores-model": ("several models", "until the suite unloads it|names a model"),
    "chunk": ("chunks", "chunkResult|ids"),
    "deltas": ("decode_iterable: ids", "has deltas"),
    "starts": ("encode_with_offsets", "offsets"),
    "one-stream": ("two streams", "each with its own number"),
    "mixed": ("two streams", "keeps streams apart"),
    "swapped": ("two streams", "keeps streams apart"),
    "small-crash": ("too small", "until its input ends"),
    "hex-table": ("train", "hex"),
    "save": ("save", "merges.txt"),
    "files": ("from_files", "that the program announces, is a result"),
    "unload": ("table", "is a result, or not_claimed"),
    "unload-result": ("train", "null"),
    "farewell": ("exits within", "to standard output, and nothing else"),
    "restart": ("restarted", "gives the same answers"),
    "another": ("restarted", "announces the same"),
}


@pytest.mark.release
@pytest.mark.parametrize("fault", FAULTS)
def test_step_names_the_broken_rule(program, monkeypatch, fault):
    monkeypatch.setattr(check, "LONG", "abc")
    step, words = FAULTS[fault]
    failed = next(outcome for outcome in steps(program, fault) if outcome.state == "FAIL")
    assert step in failed.title, failed
    reported = "\n".join(failed.lines)
    assert any(part in reported for part in words.split("|")), failed
    assert "fix    " in reported
    assert reported.isascii()


def test_order_of_the_vocabulary_does_not_matter(program, monkeypatch):
    monkeypatch.setattr(check, "LONG", "abc")
    assert {outcome.state for outcome in run(program, "hash-order")} == {"ok"}


def test_a_reply_that_is_not_flushed_is_recognized(program, monkeypatch):
    monkeypatch.setattr(check, "END_LIMIT", 5.0)
    for fault, start_limit in (("no-flush", 60), ("reads-all", 0.7)):
        spec = f"cmd:{sys.executable} -S -E {program} {fault}"
        (outcome,) = check.check(spec, 0.7, start_limit)
        assert "until its input was closed, and then" in outcome.lines[1]
        assert "flush" in outcome.lines[3]


def test_check_bridge_waits_for_a_slow_start(program):
    first = next(check.check(f"cmd:{sys.executable} -S -E {program} slow-start", 0.5, 30))
    assert first.state == "ok"


def test_a_hang_fails_its_step_and_the_next_has_a_new_process(program, monkeypatch):
    monkeypatch.setattr(check, "LONG", "abc")
    monkeypatch.setattr(check, "END_LIMIT", 0.05)
    monkeypatch.setattr(check, "_MOST_HANGS", 2)
    outcomes = run(program, "hang", 0.7)
    failed = [outcome.title for outcome in outcomes if outcome.state == "FAIL"]
    assert failed[0].startswith("encode: text outside ASCII")
    assert failed[-1] == "stopped after 2 steps without an answer"
    after = outcomes[[outcome.title for outcome in outcomes].index(failed[0]) + 1]
    assert after.state == "ok"


def test_slow_tokenizer_gets_a_note_and_an_unread_line_fails(program, monkeypatch):
    monkeypatch.setattr(check, "LONG", "abc " * 4000)
    monkeypatch.setattr(check, "END_LIMIT", 1)
    states = {outcome.title: outcome.state for outcome in run(program, "slow", 2)}
    assert states["encode: 1 MB of text"] == "note"
    assert "FAIL" not in states.values()
    failed = next(outcome for outcome in steps(program, "short-lines", 2) if outcome.state == "FAIL")
    assert failed.title == "a request of 1 MB in one line"


def test_program_must_exit_at_end_of_input(program, monkeypatch):
    monkeypatch.setattr(check, "LONG", "abc")
    monkeypatch.setattr(check, "END_LIMIT", 0.2)
    failed = [outcome for outcome in run(program, "stays") if outcome.state == "FAIL"]
    assert [outcome.title for outcome in failed] == ["the program exits within 1 second after its input ends"]


@pytest.mark.release
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("bom", "gives the ids of 'ab'"),
        ("decodes-bom", "comes back as 'ab'"),
        ("pairs", r"gives the ids of 'h\u20acll\xf6 \ufffd\ufffd'; the suite tests this. First check that it joins"),
        ("long", "too long"),
        ("unknown-id-empty", "not an error; the suite tests this"),
        ("status", "the exit status is 3"),
        ("one-decoder", "the deltas are"),
        ("allows", "a disallowed special token gives no error; the suite tests this"),
        ("refuses", "the tokenizer raised an error: NUL; the suite tests this"),
        ("no-ids", "raised an error: nothing to decode"),
        ("no-special", "special tokens are not supported"),
    ],
)
def test_wrong_answers_get_a_note(program, fault, words, monkeypatch):
    if fault != "long":
        monkeypatch.setattr(check, "LONG", "abc")
    outcomes = run(program, fault)
    assert not [outcome for outcome in outcomes if outcome.state == "FAIL"]
    notes = [line for outcome in outcomes if outcome.state == "note" for line in outcome.lines]
    assert any(words in line or words.replace("'", "") in line for line in notes), notes


def test_steps_for_missing_capabilities_are_skipped(program, monkeypatch):
    monkeypatch.setattr(check, "LONG", "abc")
    for fault, judged in (("fixed", "encode: ASCII"), ("trainer", "train")):
        outcomes = run(program, fault)
        states = {outcome.title: outcome.state for outcome in outcomes}
        assert "FAIL" not in states.values()
        assert states[judged] == "ok"
        assert states["several models at once"] == "skip"
        assert states["a restarted program gives the same answers"] == "ok"


def test_command_prints_steps_and_tally(program, capfd):
    good, bad = (f"cmd:{sys.executable} -S -E {program} {fault}" for fault in ("none", "seq"))
    assert main(["check-bridge", good]) == 0
    out = capfd.readouterr().out.splitlines()
    assert out[0] == "ok    start: one reply, on one line"
    assert out[-2] == "48 ok"
    assert out[-1].endswith(f'pytest conformance --adapter "{good}"') or "..." in out[-1]
    assert main(["check-bridge", bad]) == 1
    out = capfd.readouterr().out.splitlines()
    assert out[0] == "FAIL  start: one reply, on one line"
    assert [line.split()[0] for line in out[1:5]] == ["sent", "got", "rule", "fix"]
    assert json.loads(out[1].split(maxsplit=1)[1]) == {"seq": 1, "op": "start", "protocol": 1}
    assert out[-1] == "1 FAIL"


@pytest.mark.parametrize("spec", ["mypkg:Tokenizer", "cmd:", "cmd:'", "cmd:/nowhere/program x"])
def test_missing_program_gives_one_line_error(spec, capfd):
    with pytest.raises(AdapterError) as caught:
        list(check.check(spec))
    assert "\n" not in str(caught.value)
    assert main(["check-bridge", spec]) == 2
    assert len(capfd.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("limit", ["0", "-1", "nan", "inf"])
def test_invalid_time_limit_gives_one_line_error(limit, capfd):
    assert main(["check-bridge", "cmd:cat", "--time-limit", limit]) == 2
    assert capfd.readouterr().err.startswith("bpe-conformance: --time-limit")


def test_program_that_exits_at_once_shows_its_stderr(program):
    (outcome,) = run(program, "no-start")
    assert "ended with status 1" in outcome.lines[1]
    assert outcome.lines[-1] == "stderr boom: no module named tok"


def test_own_server_passes(monkeypatch):
    monkeypatch.setattr(check, "LONG", "abc")
    outcomes = list(check.check(f"cmd:{sys.executable} -m bpe_conformance.adapters.bridge textbook"))
    assert not [outcome for outcome in outcomes if outcome.state in ("FAIL", "note")]


def test_first_example_of_the_protocol_page_passes(tmp_path, capfd):
    page = files("bpe_conformance.adapters").joinpath("PROTOCOL.md").read_text("utf-8")
    source = re.search(r"```python\n(# first\.py\n.*?)```", page, flags=re.S)
    console = re.search(r"```console\n\$ bpe-conformance check-bridge .*?\n(.*?)```", page, flags=re.S)
    assert source is not None
    assert console is not None
    (tmp_path / "first.py").write_text(source[1], encoding="utf-8")
    assert main(["check-bridge", f"cmd:{sys.executable} {tmp_path / 'first.py'}"]) == 0
    printed = capfd.readouterr().out
    assert "FAIL" not in printed
    position = 0
    for part in console[1].split("...\n"):
        assert (position := printed.find(part, position)) >= 0, part
    assert printed.startswith(console[1].split("...\n")[0])


def test_order_of_capabilities_does_not_matter(program, monkeypatch):
    monkeypatch.setattr(check, "LONG", "abc")
    outcomes = run(program, "shuffled")
    assert {outcome.state for outcome in outcomes} == {"ok"}, [one for one in outcomes if one.state != "ok"]


class Ended(client.Process):
    """A program that has ended before it gets its first request."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.popen.wait()
        self._threads[1].join()  # the one that reads its replies


@pytest.mark.parametrize("process", [client.Process, Ended])
def test_the_error_of_a_program_that_does_not_start_is_shown(process, tmp_path, monkeypatch):
    monkeypatch.setattr(client, "Process", process)
    (tmp_path / "stack.py").write_text(
        "import sys\nsys.exit('node:internal:1\\n\\nError: Cannot find module nope.js\\n' + '    at f (n:4)\\n' * 9)"
    )
    monkeypatch.chdir(tmp_path)
    (outcome,) = check.check(f"cmd:{sys.executable} stack.py")
    assert outcome.lines[3:] == (
        f"fix    make the program start; run it yourself to see why it ends: {sys.executable} stack.py",
        "stderr Error: Cannot find module nope.js",
    )


def test_the_table_names_rules_and_functions_that_exist():
    steps = check._TABLE["steps"]
    requests = [request for step in steps for request in step.get("requests", ())]
    assert {step["run"] for step in steps if "run" in step} == check._FUNCTIONS.keys()
    assert {request["rule"] for request in requests if "rule" in request} <= check.RULES.keys()
    source = Path(check.__file__).read_text("utf-8")
    named = {request.get("rule") for request in requests} | {
        rule for rule in check.RULES if f'"{rule}"' in source.replace("RULES: Mapping", "")
    }
    assert named >= check.RULES.keys()
