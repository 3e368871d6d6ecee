"""`encode_files` gives each file the ids of its text, and a stopped run leaves the directory usable."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import random
import re
import sys
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe_conformance.reference import Tokenizer, corpus_encoding, file_encoding
from bpe_conformance.reference.array_directory import header

WORDS = ["low", " lower", " newest", "<|e|>", "\n", "  ", "日本", " é", "'s", " 12"]


@pytest.fixture(scope="module")
def trained() -> Tokenizer:
    return Tokenizer.train("low lower newest 日本", 270, ["<|e|>"])


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Three files of different sizes, an empty file, and a file with the name of another one."""
    draw = random.Random(0)
    found = []
    for name, words in (("a.txt", 40), ("b.txt", 1500), ("empty", 0), ("c.txt", 300), ("other/a.txt", 10)):
        file = tmp_path / "texts" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(draw.choice(WORDS) for _ in range(words)), "utf-8", newline="")
        found.append(file)
    return found


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_encoding, "CHUNK_SIZE", 500)
    monkeypatch.setattr(corpus_encoding, "BATCH_SIZE", 100)


def text(file: Path) -> str:
    return file.read_bytes().decode("utf-8", errors="replace")


def index(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "index.jsonl").read_text("ascii").splitlines()][1:]


def encoded(directory: Path) -> dict[str, list[int]]:
    """Return source → ids, as read through the index."""
    found: dict[str, list[int]] = {}
    for line in index(directory):
        array = np.load(directory / line["array"], mmap_mode="r")
        assert len(array) == line["ids"] == sum(part["ids"] for part in line["parts"])
        begin = 0
        for part in line["parts"]:
            found.setdefault(part["source"], []).extend(array[begin : begin + part["ids"]].tolist())
            begin += part["ids"]
    return found


def names(directory: Path) -> list[str]:
    return sorted(file.name for file in directory.iterdir())


def snapshot(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir()}


def modified(directory: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mtime_ns for file in directory.glob("*.npy")}


@pytest.mark.parametrize("shard_size", [None, 700])
@pytest.mark.parametrize("pattern", ["gpt2", r"\S+|\s+"])
def test_file_gets_the_ids_of_its_text(shard_size: int | None, pattern: str, files: list[Path], tmp_path: Path) -> None:
    one = Tokenizer.train("low lower newest 日本", 270, ["<|e|>"], pattern=pattern)
    out, steps = tmp_path / "out", []
    done = one.encode_files(files, out, shard_size=shard_size, progress=lambda *step: steps.append(step))
    wanted = {str(file): one.encode(text(file)) for file in files}
    assert encoded(out) == wanted
    assert done == (len(index(out)), sum(map(len, wanted.values())), 0, [])
    total = sum(file.stat().st_size for file in files)
    assert steps[-1] == ("encoding", total, total)
    if not shard_size:
        assert names(out) == ["a.txt-2.npy", "a.txt.npy", "b.txt.npy", "c.txt.npy", "empty.npy", "index.jsonl"]
        assert [line["parts"][0]["source"] for line in index(out)] == list(map(str, files))
        assert np.load(out / "b.txt.npy").dtype == np.uint16
    elif pattern == "gpt2":
        sizes = [sum(part["end"] - part["start"] for part in line["parts"]) for line in index(out)]
        assert len(sizes) > 5
        assert max(sizes) <= 700 + 20
        assert min(sizes[:-1]) > 200


@pytest.mark.parametrize("shard_size", [None, 700])
def test_executors_write_equal_arrays(
    shard_size: int | None, trained: Tokenizer, files: list[Path], tmp_path: Path
) -> None:
    outs = [tmp_path / f"out{number}" for number in range(4)]
    trained.encode_files(files, outs[0], shard_size=shard_size)
    trained.encode_files(files, outs[1], shard_size=shard_size, workers=2)
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(2) as processes:
        for out, executor in zip(outs[2:], (threads, processes), strict=True):
            trained.encode_files(files, out, shard_size=shard_size, executor=executor, workers=2)
    for out in outs[1:]:
        assert snapshot(out) == snapshot(outs[0])
    assert not multiprocessing.active_children()


def test_numpy_reads_the_header() -> None:
    for count in (0, 1, 1 << 40):
        assert len(header("<u2", count)) == 128
        assert f"({count},)".encode() in header("<u2", count)


class Stopped(BaseException):
    """Stops a run as an interrupt does."""


@pytest.mark.parametrize("shard_size", [None, 700])
@pytest.mark.parametrize("workers", [1, 2])
def test_stopped_run_is_resumed(
    workers: int, shard_size: int | None, trained: Tokenizer, files: list[Path], tmp_path: Path
) -> None:
    trained.encode_files(files, tmp_path / "wanted", shard_size=shard_size)
    out = tmp_path / "out"
    for after in (0, 1):
        steps = []

        def stop(*step: Any, steps: list[Any] = steps, after: int = after) -> None:
            steps.append(step)
            if len(steps) > after:
                raise Stopped

        with pytest.raises(Stopped):
            trained.encode_files(files, out, shard_size=shard_size, workers=workers, progress=stop)
        assert all(not name.startswith(".") for name in names(out))
    complete = modified(out)
    with (out / "index.jsonl").open("ab") as stream:
        stream.write(b'{"array": "a.t')  # as if the machine had crashed here
    done = trained.encode_files(files, out, shard_size=shard_size, workers=workers)
    assert done.skipped >= 3
    assert done.failures == []
    recorded = {name: time for name, time in modified(out).items() if complete.get(name) == time}
    assert len(recorded) >= done.skipped
    assert snapshot(out) == snapshot(tmp_path / "wanted")
    again = trained.encode_files(files, out, shard_size=shard_size, workers=workers)
    assert again == done._replace(skipped=done.arrays)


class StoppedAtTheFirstResult(Executor):
    """Makes all calls; Ctrl-C is pressed while the result of the first is awaited."""

    def submit(self, call: Any, /, *arguments: Any, **keywords: Any) -> Any:
        done: Future[Any] = Future()
        result = call(*arguments, **keywords)
        done.result = lambda timeout=None: (_ for _ in ()).throw(KeyboardInterrupt)  # type: ignore[method-assign]
        assert result
        return done


def test_run_that_is_stopped_before_its_first_result_is_resumed(
    trained: Tokenizer, files: list[Path], tmp_path: Path
) -> None:
    directory = tmp_path / "ids"
    with pytest.raises(KeyboardInterrupt):
        trained.encode_files(files, directory, executor=StoppedAtTheFirstResult())
    assert trained.encode_files(files, directory).failures == []
    assert len(encoded(directory)) == len(files)


@pytest.mark.parametrize("lists", [True, False])
def test_the_index_of_arrays_is_kept_even_if_the_directory_cannot_be_listed(
    lists: bool, trained: Tokenizer, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise OSError(errno.EIO, "Input/output error")

    out = tmp_path / "out"
    trained.encode_files(files, out)
    before = snapshot(out)
    with monkeypatch.context() as patched:
        if not lists:
            patched.setattr(Path, "iterdir", fails)
        assert trained.encode_files(files, out).skipped == len(files)
    assert snapshot(out) == before


def test_damaged_or_missing_array_is_rewritten(trained: Tokenizer, files: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    trained.encode_files(files, out)
    before = snapshot(out)
    os.truncate(out / "b.txt.npy", 200)
    (out / "c.txt.npy").unlink()
    (out / ".a.txt.npy.0123abcd.tmp").write_bytes(b"of a worker that was killed")
    assert trained.encode_files(files, out).skipped == 3
    assert snapshot(out) == before


@pytest.mark.parametrize("shard_size", [None, 700])
def test_changed_file_is_encoded_again(
    shard_size: int | None, trained: Tokenizer, files: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    trained.encode_files(files, out, shard_size=shard_size)
    files[1].write_text("lower " * 10, "utf-8")
    done = trained.encode_files(files, out, shard_size=shard_size)
    assert 0 < done.skipped < done.arrays
    assert encoded(out) == {str(file): trained.encode(text(file)) for file in files}
    assert names(out) == sorted(["index.jsonl", *(line["array"] for line in index(out))])


def test_later_run_adds_files(trained: Tokenizer, files: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    trained.encode_files(files[3:], out)
    assert trained.encode_files(files[:3], out)[:3:2] == (3, 0)
    assert names(out) == ["a.txt-2.npy", "a.txt.npy", "b.txt.npy", "c.txt.npy", "empty.npy", "index.jsonl"]
    assert encoded(out) == {str(file): trained.encode(text(file)) for file in files}


@pytest.mark.parametrize("shard_size", [None, 700])
@pytest.mark.parametrize("workers", [1, 2])
def test_failing_file_does_not_stop_the_others(
    workers: int, shard_size: int | None, files: list[Path], tmp_path: Path
) -> None:
    one = Tokenizer.train("low lower newest", 270, ["<|e|>", "<|x|>"])
    out = tmp_path / "out"
    files[0].write_bytes(b"low\xff")
    with files[3].open("ab") as stream:
        stream.write(b"<|x|>")
    wanted = {str(file): one.encode(text(file)) for file in (files[1], files[2], files[4])}
    options: dict[str, Any] = {"shard_size": shard_size, "workers": workers, "errors": "strict"}
    options |= {"allowed_special": {"<|e|>"}, "disallowed_special": {"<|x|>"}}
    done = one.encode_files([*files, tmp_path / "none", tmp_path], out, **options)
    assert [line.split(": ")[0].split(",")[0] for line in done.failures] == list(
        map(str, [files[0], files[3], tmp_path / "none", tmp_path])
    )
    assert [line.count("\n") for line in done.failures] == [0] * 4
    assert "a.txt: not UTF-8 at byte 3" in done.failures[0]
    assert "contains '<|x|>' at character" in done.failures[1]
    assert "none: cannot be read: No such file" in done.failures[2]
    found = encoded(out)
    assert {source: found.get(source) for source in wanted} == wanted
    assert str(files[0]) not in found
    assert all(not name.startswith(".") for name in names(out))
    files[0].write_bytes(b"low")
    files[3].write_bytes(b"low")
    assert one.encode_files(files, out, **options).failures == []
    assert encoded(out) == {str(file): one.encode(text(file)) for file in files}


def test_file_that_cannot_be_cut_gets_the_same_ids_and_errors(
    trained: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one = Tokenizer(trained.vocab, trained.merges, ["a b"])
    Path("text").write_bytes(b"low\xff a b\xe2\x82 lower\xe2")
    one.encode_file("text", "ids", bits=16)
    assert np.fromfile("ids", "<u2").tolist() == one.encode("low\ufffd a b\ufffd lower\ufffd")
    with pytest.raises(ValueError, match=r"^text contains 'a b' at character 5"):
        one.encode_file("text", "ids", allowed_special=(), disallowed_special="all")


def test_run_does_not_resume_one_with_other_errors(trained: Tokenizer, tmp_path: Path) -> None:
    invalid, out = tmp_path / "invalid.txt", tmp_path / "out"
    invalid.write_bytes(b"low\xff")
    assert trained.encode_files([invalid], out, errors="replace").failures == []
    with pytest.raises(ValueError, match="with other options"):
        trained.encode_files([invalid], out, errors="strict")


def test_run_does_not_resume_one_with_other_special_tokens(
    trained: Tokenizer, files: list[Path], tmp_path: Path
) -> None:
    choices: list[dict[str, Any]] = [
        {"allowed_special": "all"},
        {"allowed_special": (), "disallowed_special": ()},
        {"disallowed_special": {"no such text"}},
    ]
    for choice in choices:
        trained.encode_files(files[3:], tmp_path / str(choices.index(choice)), **choice)
    for made, asked in permutations(choices, 2):
        with pytest.raises(ValueError, match="with other options"):
            trained.encode_files(files[3:], tmp_path / str(choices.index(made)), **asked)


@pytest.mark.parametrize(("workers", "special"), [(1, "<|e|>"), (2, "<|e|>"), (1, "a b")])
def test_file_that_changes_during_the_run_is_a_failure(
    workers: int, special: str, trained: Tokenizer, files: list[Path], tmp_path: Path
) -> None:
    one = Tokenizer(trained.vocab, trained.merges, [special])  # with "a b", a file cannot be cut, and is a stream

    def change(*_: object) -> None:
        files[0].write_bytes(b"lower")
        files[4].unlink(missing_ok=True)

    done = one.encode_files(files, tmp_path / "out", workers=workers, progress=change)
    assert done.arrays == 3
    changed, gone = [line.split(": ", 1)[1] for line in done.failures]
    assert re.fullmatch("changed (from [0-9]+ to [0-9]+ bytes )?while it was read; try again", changed)
    assert gone.startswith("cannot be read: ")
    assert names(tmp_path / "out") == ["b.txt.npy", "c.txt.npy", "empty.npy", "index.jsonl"]


def dies_on_b(self: object, text: str, name: str) -> Any:
    if multiprocessing.parent_process() and len(text) > 300:
        os._exit(1)
    return np.zeros(1, np.uint32)


@pytest.mark.skipif(multiprocessing.get_start_method() != "fork", reason="a forked worker knows what is patched here")
@pytest.mark.parametrize("pool", [None, ProcessPoolExecutor])
def test_dead_worker_gives_one_line_error_and_keeps_arrays(
    pool: Any, trained: Tokenizer, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    trained.encode_files(files[:1], out)
    with monkeypatch.context() as patch:
        patch.setattr("bpe_conformance.reference.text_encoder.TextEncoder.encode_to_numpy", dies_on_b)
        executor = pool(2) if pool else None
        with pytest.raises(RuntimeError, match=r"^a worker died") as caught:
            trained.encode_files(files, out, workers=2, executor=executor)
        if executor:
            executor.shutdown()
    assert "\n" not in str(caught.value)
    assert all(not name.startswith(".") for name in names(out))
    assert trained.encode_files(files, out, workers=2).skipped > 0
    assert encoded(out) == {str(file): trained.encode(text(file)) for file in files}


class Unreliable(Executor):
    """Fails every second job, like a cluster that has lost a worker."""

    def __init__(self) -> None:
        self.pool, self.jobs = ThreadPoolExecutor(1), 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        self.jobs += 1
        return self.pool.submit(fn, *args) if self.jobs % 2 else self.pool.submit(divmod, 1, 0)


def test_lost_job_does_not_stop_the_others(trained: Tokenizer, files: list[Path], tmp_path: Path) -> None:
    executor = Unreliable()
    done = trained.encode_files(files, tmp_path / "out", executor=executor, workers=1)
    executor.pool.shutdown()
    assert done.failures
    assert all("a worker failed (ZeroDivisionError" in line for line in done.failures)
    assert done.arrays + len(done.failures) == len(files)


def test_unusable_directory_gives_one_line_error(trained: Tokenizer, files: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    trained.encode_files(files, out)
    other = Tokenizer(trained.vocab, trained.merges)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "index.jsonl").write_text("[]\n{}", "utf-8")
    for one, directory, options, message in (
        (other, out, {}, "out: has ids of another tokenizer or with other options; name another directory"),
        (trained, out, {"bits": 32}, "out: has ids of another tokenizer or with other options"),
        (trained, out, {"shard_size": 9}, "out: has ids of another tokenizer or with other options"),
        (trained, tmp_path / "texts", {}, "texts: has files but no index.jsonl; name an empty or new directory"),
        (trained, files[0], {}, "a.txt: cannot be written: File exists"),
        (trained, tmp_path / "no" / "out", {}, "out: cannot be written: No such file or directory"),
        (trained, foreign, {}, "index.jsonl: is not an index of arrays; name another directory"),
    ):
        with pytest.raises(ValueError, match=r"^[^\n]*$") as caught:
            one.encode_files(files, directory, **options)  # type: ignore[arg-type]
        assert message in str(caught.value)
    for options, message in (
        ({"workers": 0}, "workers is 0"),
        ({"shard_size": 0}, "shard_size is 0"),
        ({"errors": "x"}, "errors is 'x'"),
    ):
        with pytest.raises(ValueError, match=message):
            trained.encode_files(files, out, **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sources is a str"):
        trained.encode_files("text", out)
    assert trained.encode_files([tmp_path / "none"], tmp_path / "new").arrays == 0
    assert not (tmp_path / "new").exists(), "nothing is in it"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no flock")
def test_two_runs_do_not_share_a_directory(trained: Tokenizer, files: list[Path], tmp_path: Path) -> None:
    messages = []

    def second(*_: object) -> None:
        with pytest.raises(ValueError, match="out: another run is writing to it") as caught:
            trained.encode_files(files, tmp_path / "out")
        messages.append(str(caught.value))

    assert trained.encode_files(files, tmp_path / "out", progress=second).arrays == len(files) == len(messages)


def test_fsspec_reads_urls(trained: Tokenizer, files: list[Path], tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    data = files[1].read_bytes()
    with fsspec.open("memory://corpus/m.txt", "wb") as stream:
        stream.write(data)
    urls = ["memory://corpus/m.txt", files[0].as_uri(), "memory://corpus/none", "nothing://x"]
    for workers, shard_size in ((1, None), (2, 700)):
        out = tmp_path / f"out{workers}"
        done = trained.encode_files([*urls, files[3]], out, workers=workers, shard_size=shard_size)
        assert encoded(out) == {
            urls[0]: trained.encode(data.decode()),
            urls[1]: trained.encode(text(files[0])),
            str(files[3]): trained.encode(text(files[3])),
        }
        assert [line.split(": ")[0] for line in done.failures] == urls[2:]
        assert done.failures[0] == "memory://corpus/none: cannot be read: no such file"
        assert "\n" not in done.failures[1]
        assert trained.encode_files([*urls, files[3]], out, shard_size=shard_size).skipped == done.arrays
    assert "m.txt.npy" in names(tmp_path / "out1")
    with fsspec.open("memory://corpus/m.txt", "wb") as stream:
        stream.write(b"low")
    trained.encode_files(urls[:1], tmp_path / "out1")
    assert encoded(tmp_path / "out1")[urls[0]] == trained.encode("low")


def test_url_of_unknown_size_is_a_failure(trained: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://corpus/sized.txt", "wb") as stream:
        stream.write(b"low")
    system = type(fsspec.filesystem("memory"))
    monkeypatch.setattr(system, "info", lambda self, path: {"name": path, "size": None, "type": "file"})
    done = trained.encode_files(["memory://corpus/sized.txt"], tmp_path / "out")
    assert done.failures == ["memory://corpus/sized.txt: cannot be read: its server does not report its size"]


def test_url_without_fsspec_gives_one_line_error(
    trained: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    done = trained.encode_files(["memory://corpus/m.txt"], tmp_path / "out")
    assert done.failures == ["memory://corpus/m.txt: cannot be read: install fsspec to read URLs"]
