"""`encode_file` writes the ids of the text of a file, completely or not at all."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe_conformance.fixtures.files import replacing
from bpe_conformance.reference import Tokenizer, chunks, dispatch, file_encoding
from bpe_conformance.reference.fences import FENCED_PATTERNS
from bpe_conformance.reference.text_encoder import TextEncoder
from bpe_conformance.reference.tokenizer import conventional

PATTERNS = [*sorted(FENCED_PATTERNS), "none", r"\S+|\s+", r"[a-z]+| "]
SPECIAL_TOKENS = [[], ["<|e|>"], ["<|e|>", "<|e|><|e|>", "x<|e"], ["<a b>", "b "], [" ", "é"], ["\ufffd<", " x"]]
PARTS = [b"low", b" lower", b" newest", b"<|e|>", b"<a b>", b" x", b"\xc3\xa9", "日本".encode(), b"\n", b"  ", b"\xa0"]
PARTS += [b"\xff", b"\xe6\x97", b"\xf0\x9f", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"'s", b"12 3", b" ", b"<", b"\xc2\xa0"]


def hostile(seed: object, parts: int) -> bytes:
    draw = random.Random(repr(seed))
    return b"".join(draw.choice(PARTS) for _ in range(parts))


def decoded(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "text"
    file.write_bytes(b"low lower newest " * 400)
    return file


@pytest.fixture(scope="module")
def trained() -> Tokenizer:
    return Tokenizer.train("low lower newest", 270, ["<|e|>"])


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_encoding, "CHUNK_SIZE", 500)
    monkeypatch.setattr(file_encoding, "STREAMED", 7)


def is_clean(folder: Path, *names: str) -> bool:
    """Return whether the directory contains only `names` and no child process is alive."""
    return sorted(file.name for file in folder.iterdir()) == sorted(names) and not multiprocessing.active_children()


@pytest.mark.parametrize("special", SPECIAL_TOKENS, ids=str)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_file_gets_the_ids_of_its_text(
    pattern: str, special: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = Tokenizer.train(decoded(hostile("training", 2000)), 330, special, pattern=pattern)
    source, target = tmp_path / "text", tmp_path / "ids"
    for number in range(12):
        data = hostile((pattern, special, number), 120)
        source.write_bytes(data)
        monkeypatch.setattr(file_encoding, "CHUNK_SIZE", 5 + 13 * number)
        monkeypatch.setattr(file_encoding, "STREAMED", 1 + number)
        monkeypatch.setattr(chunks, "WINDOW", 1 + number)
        monkeypatch.setitem(dispatch.ARRAYS_FROM, "encode", 0 if number % 2 else 1 << 16)
        count = trained.encode_file(source, target)
        ids = np.fromfile(target, "<u2").tolist()
        assert ids == trained.encode(decoded(data))
        assert count == len(ids)


@pytest.mark.parametrize("special", [["<|e|>"], ["<a b>"]])
def test_two_workers_write_the_same_file_as_one(special: list[str], tmp_path: Path) -> None:
    trained = Tokenizer.train(decoded(hostile("training", 2000)), 330, special)
    source = tmp_path / "text"
    source.write_bytes(hostile("workers", 1500))
    reported: list[tuple[str, int, int]] = []
    counts = [trained.encode_file(source, tmp_path / "1", workers=1)]
    counts.append(trained.encode_file(source, tmp_path / "2", workers=2, progress=lambda *step: reported.append(step)))
    assert counts == [len(trained.encode(decoded(source.read_bytes())))] * 2
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
    size = source.stat().st_size
    assert [step[1] for step in reported] == sorted(step[1] for step in reported)
    assert len(reported) > 5
    assert reported[-1] == ("encoding", size, size)
    assert reported[0][1] < size / 2
    assert is_clean(tmp_path, "text", "1", "2")


def test_workers_encode_with_other_conventions(source: Path, tmp_path: Path) -> None:
    other = conventional(tie_break="lex-smaller", byte_order="gpt2").train("low lower", 260)
    other.encode_file(source, tmp_path / "ids", workers=2)
    assert np.fromfile(tmp_path / "ids", "<u2").tolist() == other.encode(source.read_text("utf-8"))


@pytest.mark.parametrize(("highest", "size"), [((1 << 16) - 1, 2), (1 << 16, 4), ((1 << 32) - 1, 4)])
def test_ids_take_two_bytes_if_they_fit_else_four(highest: int, size: int, tmp_path: Path) -> None:
    vocab = {byte: bytes([byte]) for byte in range(256)} | {highest: b"ab"}
    (tmp_path / "text").write_bytes(b"cab")
    assert Tokenizer(vocab, [(b"a", b"b")]).encode_file(tmp_path / "text", tmp_path / "ids") == 2
    raw = (tmp_path / "ids").read_bytes()
    assert [int.from_bytes(raw[place : place + size], "little") for place in range(0, len(raw), size)] == [99, highest]


@pytest.mark.parametrize("index", [-1, 1 << 32])
def test_ids_that_do_not_fit_give_one_line_error(index: int, source: Path, tmp_path: Path) -> None:
    vocab = {byte: bytes([byte]) for byte in range(256)} | {index: b"ab"}
    with pytest.raises(ValueError, match=r"do not fit into \d+ bits"):
        Tokenizer(vocab, [(b"a", b"b")]).encode_file(source, tmp_path / "ids")
    assert is_clean(tmp_path, "text")


@pytest.mark.parametrize("special", [[], ["a b"]])
@pytest.mark.parametrize("workers", [1, 2])
def test_an_empty_file_has_no_ids(special: list[str], workers: int, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"")
    one = Tokenizer.train("", 257, special)
    assert one.encode_file(tmp_path / "text", tmp_path / "ids", workers=workers) == 0
    assert (tmp_path / "ids").read_bytes() == b""


def test_a_byte_order_mark_is_text(tmp_path: Path, trained: Tokenizer) -> None:
    (tmp_path / "text").write_bytes(b"\xef\xbb\xbflow")
    trained.encode_file(tmp_path / "text", tmp_path / "ids")
    assert np.fromfile(tmp_path / "ids", "<u2").tolist() == trained.encode("\ufefflow")


@pytest.mark.parametrize("special", [[], ["a b"]])
def test_memory_does_not_grow_with_the_file(
    special: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_encoding, "CHUNK_SIZE", 1 << 14)
    monkeypatch.setattr(file_encoding, "STREAMED", 1 << 12)
    one = Tokenizer.train("low lower newest", 270, special)
    (tmp_path / "text").write_bytes(b"low lower newest " * 1000)
    one.encode_file(tmp_path / "text", tmp_path / "ids")
    peaks = []
    for repeats in (3_000, 30_000):
        (tmp_path / "text").write_bytes(b"low lower newest " * repeats)
        gc.collect()
        tracemalloc.start()
        one.encode_file(tmp_path / "text", tmp_path / "ids")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


@pytest.mark.parametrize("workers", [1, 2])
def test_unreadable_source_gives_one_line_error(workers: int, tmp_path: Path, trained: Tokenizer) -> None:
    for source in (tmp_path / "missing", tmp_path):
        with pytest.raises(ValueError, match=r"cannot be read: \w+") as caught:
            trained.encode_file(source, tmp_path / "ids", workers=workers)
        assert str(caught.value).startswith(f"{source}: ")
        assert "\n" not in str(caught.value)
        assert is_clean(tmp_path)


def test_unwritable_target_gives_one_line_error(source: Path, tmp_path: Path, trained: Tokenizer) -> None:
    (tmp_path / "folder").mkdir()
    for target in (
        tmp_path / "none" / "ids",
        tmp_path / "folder",
        source / "ids",
        Path(os.devnull),
        tmp_path / ("a" * 300),
    ):
        reported: list[object] = []
        with pytest.raises(ValueError, match=r"cannot be written: \w+") as caught:
            trained.encode_file(source, target, progress=lambda *step, reported=reported: reported.append(step))
        assert str(caught.value).startswith(f"{target}: ")
        assert "\n" not in str(caught.value)
        assert not reported, "it is said before the work"
        assert is_clean(tmp_path, "text", "folder")


def test_a_link_is_followed(source: Path, tmp_path: Path, trained: Tokenizer) -> None:
    (tmp_path / "link").symlink_to("real")
    trained.encode_file(source, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert np.fromfile(tmp_path / "real", "<u2").tolist() == trained.encode(source.read_text("utf-8"))


@pytest.mark.parametrize("special", [["<|e|>"], ["a b"]])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("change", [b"", b"low " * 2000])
def test_changed_file_gives_one_line_error(
    special: list[str], workers: int, change: bytes, source: Path, tmp_path: Path
) -> None:
    one = Tokenizer.train("low lower newest", 270, special)
    size = source.stat().st_size

    def on_progress(*_: object) -> None:
        if source.stat().st_size == size:
            source.write_bytes(change)

    with pytest.raises(ValueError, match=rf"text: changed from {size} to \d+ bytes while it was read; try again"):
        one.encode_file(source, tmp_path / "ids", workers=workers, progress=on_progress)
    assert is_clean(tmp_path, "text")


@pytest.mark.parametrize("workers", [1, 2])
def test_vanished_file_gives_one_line_error(workers: int, source: Path, tmp_path: Path, trained: Tokenizer) -> None:
    with pytest.raises(ValueError, match="text: cannot be read: No such file"):
        trained.encode_file(source, tmp_path / "ids", workers=workers, progress=lambda *_: source.unlink(True))
    assert is_clean(tmp_path)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_interruption_leaves_nothing(
    workers: int, error: type[BaseException], source: Path, tmp_path: Path, trained: Tokenizer
) -> None:
    (tmp_path / "ids").write_bytes(b"old")

    def on_progress(*_: object) -> None:
        raise error

    with pytest.raises(error) as caught:
        trained.encode_file(source, tmp_path / "ids", workers=workers, progress=on_progress)
    assert is_clean(tmp_path, "text", "ids")
    assert caught.tb, "which holds what would end the processes when it is collected"
    assert (tmp_path / "ids").read_bytes() == b"old"


def dies_in_a_worker(*_: Any) -> np.ndarray[Any, Any]:
    if multiprocessing.parent_process():
        os._exit(1)
    return np.zeros(1, np.uint32)


@pytest.mark.skipif(multiprocessing.get_start_method() != "fork", reason="a forked worker knows what is patched here")
def test_a_worker_that_dies_leaves_nothing(
    source: Path, tmp_path: Path, trained: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TextEncoder, "encode_to_numpy", dies_in_a_worker)
    with pytest.raises(RuntimeError, match="a worker died") as caught:
        trained.encode_file(source, tmp_path / "ids", workers=2)
    assert "\n" not in str(caught.value)
    assert is_clean(tmp_path, "text")


def test_spawned_workers_get_a_copy(source: Path, tmp_path: Path, trained: Tokenizer) -> None:
    script = f"""
if __name__ == "__main__":
    import multiprocessing
    multiprocessing.set_start_method("spawn")
    from bpe_conformance.reference import Tokenizer, file_encoding
    file_encoding.CHUNK_SIZE = {source.stat().st_size // 3}
    one = Tokenizer({trained.vocab!r}, {trained.merges!r}, {trained.special_tokens!r})
    one.encode_file("text", "ids", workers=2)
"""
    (tmp_path / "script.py").write_text(script, "utf-8")
    subprocess.run([sys.executable, "script.py"], cwd=tmp_path, check=True)
    trained.encode_file(source, tmp_path / "wanted")
    assert (tmp_path / "ids").read_bytes() == (tmp_path / "wanted").read_bytes()


def test_workers_below_one_are_refused(source: Path, tmp_path: Path, trained: Tokenizer) -> None:
    with pytest.raises(ValueError, match="workers is 0"):
        trained.encode_file(source, tmp_path / "ids", workers=0)


@pytest.mark.skipif(os.name == "nt", reason="modes are those of POSIX")
def test_replaced_file_keeps_its_mode(tmp_path: Path) -> None:
    target = tmp_path / "private"
    target.touch(mode=0o600)
    with replacing(target) as stream:
        stream.write(b"ids")
    assert target.stat().st_mode & 0o777 == 0o600
