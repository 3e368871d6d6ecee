"""Counts do not depend on the kind of source, the chunks or the workers."""

from __future__ import annotations

import multiprocessing
import os
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bpe_conformance.reference import Tokenizer, chunks, counting, dispatch, textbook
from bpe_conformance.reference.counting import count_pre_tokens


@pytest.fixture(scope="module")
def text() -> str:
    draw = random.Random(0)
    words = ["low", " lower", " newest", "\n", " 🦊", "<|e|>", "  ", "don't"]
    return "".join(draw.choice(words) for _ in range(4000))


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_SIZE", 5000)
    monkeypatch.setattr(chunks, "FILE_CHUNK_SIZE", 5000)
    monkeypatch.setattr(counting, "BATCH_SIZE", 3000)
    monkeypatch.setattr(counting, "PART_SIZE", 1000)


def oracle(texts: list[str], special: list[str]) -> Counter[bytes]:
    gpt2 = textbook.Tokenizer.train("", 256, []).pattern
    words = [word for text in texts for word in textbook.corpus(text, special, gpt2)]
    return Counter(b"".join(word) for word in words)


@pytest.mark.parametrize("workers", [None, 1, 2])
def test_all_kinds_of_source_give_equal_counts(text: str, workers: int | None, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(text.encode())
    whole = oracle([text], ["<|e|>"])
    for source in (text, file, [file], [text], iter([text])):
        counts = count_pre_tokens(source, ["<|e|>"], workers=workers)
        assert list(counts.items()) == list(whole.items())


def test_files_and_texts_are_separate_documents(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.write_bytes(b"low")
    second.write_bytes(b"er")
    assert count_pre_tokens([first, second]) == {b"low": 1, b"er": 1}
    assert count_pre_tokens(["low", "er", second]) == {b"low": 1, b"er": 2}
    assert count_pre_tokens(["low<|", "e|>er"], ["<|e|>"]) == oracle(["low<|", "e|>er"], ["<|e|>"])


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_count_accepts_any_executor(text: str, pool: Any) -> None:
    documents = [text[place : place + 500] for place in range(0, len(text), 500)]
    with pool(2) as executor:
        counts = count_pre_tokens(iter(documents), ["<|e|>"], executor=executor)
        assert list(counts.items()) == list(oracle(documents, ["<|e|>"]).items())
        assert count_pre_tokens(text, ["<|e|>"], workers=3, executor=executor) == oracle([text], ["<|e|>"])


def test_long_iterable_is_read_lazily(text: str) -> None:
    taken = 0

    def documents() -> Iterator[str]:
        nonlocal taken
        for _ in range(40):
            taken += 1
            yield text

    def on_progress(phase: str, done: int, total: int) -> None:
        assert taken <= done + 4 + 1

    with ThreadPoolExecutor(1) as executor:
        count_pre_tokens(documents(), workers=1, executor=executor, progress=on_progress)


def test_two_workers_train_like_one(text: str, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(text.encode())
    for tie_break in ("lex-greater", "first-seen"):
        alone = Tokenizer.train(text, 300, ["<|e|>"], tie_break=tie_break)
        together = Tokenizer.train(file, 300, ["<|e|>"], workers=2, tie_break=tie_break)
        assert alone.merges == together.merges
        assert alone.vocab == together.vocab


def test_file_newlines_and_bom_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"\xef\xbb\xbfa\r\nb\xff")
    assert count_pre_tokens(file) == oracle(["\ufeffa\r\nb\ufffd"], [])
    file.write_bytes(b"")
    assert count_pre_tokens(file) == count_pre_tokens("") == count_pre_tokens([]) == {}


def test_large_file_is_read_in_parts(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(text.encode())
    sizes: list[int] = []
    read = chunks.FileChunk.read

    def recorded(chunk: chunks.FileChunk) -> str:
        sizes.append(chunk.end - chunk.start)
        return read(chunk)

    monkeypatch.setattr(chunks.FileChunk, "read", recorded)
    count_pre_tokens(file, ["<|e|>"])
    assert sum(sizes) == file.stat().st_size
    assert max(sizes) < 2 * counting.PART_SIZE


def test_progress_counts_chunks(text: str, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(text.encode())
    reported: list[tuple[str, int, int]] = []
    count_pre_tokens(file, ["<|e|>"], progress=lambda *step: reported.append(step))
    assert reported[-1][1] == reported[-1][2] == len(reported) > 1
    reported.clear()
    count_pre_tokens([file, text], progress=lambda *step: reported.append(step))
    assert reported[-1][1] == reported[-1][2] == len(reported) > 1
    reported.clear()
    count_pre_tokens(iter([text[:200]]), progress=lambda *step: reported.append(step))
    assert reported == [("counting", 1, 0)]


@pytest.mark.parametrize("workers", [1, 2])
def test_unreadable_file_gives_one_line_error(tmp_path: Path, workers: int) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(ValueError, match=r"cannot be read: \w+") as caught:
            count_pre_tokens([path], workers=workers)
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("source", [b"abc", 7, None, [b"abc"], ["a", 3]])
def test_count_rejects_other_sources(source: Any) -> None:
    with pytest.raises(ValueError, match="give"):
        count_pre_tokens(source)


def test_workers_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match="workers is 0"):
        count_pre_tokens("text", workers=0)


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        count_pre_tokens("a\ud800")


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", [iter, list])
def test_source_can_be_several_paths(text: str, workers: int, kind: Any, tmp_path: Path) -> None:
    places = [0, 10, 11, 11, 6000, 18000, len(text)]
    parts = [text[start:end] for start, end in pairwise(places)]
    files = [tmp_path / str(number) for number in range(len(parts))]
    for file, part in zip(files, parts, strict=True):
        file.write_bytes(part.encode())
    counts = count_pre_tokens(kind(files), ["<|e|>"], workers=workers)
    assert list(counts.items()) == list(oracle(parts, ["<|e|>"]).items())


def test_relative_path_survives_change_of_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"low")
    monkeypatch.chdir(tmp_path)
    with ProcessPoolExecutor(1, initializer=os.chdir, initargs=("/",)) as executor:
        assert count_pre_tokens([Path("a")], executor=executor) == {b"low": 1}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("change", [b"", b"low " * 9000, None])
def test_changed_file_gives_one_line_error(change: bytes | None, workers: int, tmp_path: Path) -> None:
    files = [tmp_path / str(number) for number in range(50)]
    for file in files:
        file.write_bytes(b"low " * 2500)

    def on_progress(*_: object) -> None:
        if change is None:
            files[-1].unlink(missing_ok=True)
        else:
            files[-1].write_bytes(change)

    reported = (
        "cannot be read: No such file" if change is None else r"changed from 10000 to \d+ bytes while it was read"
    )
    with pytest.raises(ValueError, match=f"49: {reported}") as caught:
        Tokenizer.train(files, 300, workers=workers, progress=on_progress)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert not multiprocessing.active_children()


def test_size_of_file_is_checked_after_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"low")
    measure = os.fstat

    def measure_and_cut(handle: int) -> os.stat_result:
        found = measure(handle)
        os.truncate(file, 1)
        return found

    monkeypatch.setattr(os, "fstat", measure_and_cut)
    chunk = chunks.FileChunk(str(file), 0, 3, chunks.FileState(3, 0, 0))
    assert chunk.read() == "low"
    with pytest.raises(ValueError, match="a: changed from 3 to 1 bytes"):
        chunk.read()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("phase", ["counting", "merging"])
def test_an_interruption_leaves_no_process(phase: str, workers: int, text: str) -> None:
    def on_progress(now: str, *_: object) -> None:
        if now == phase:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        Tokenizer.train([text] * 20, 300, workers=workers, progress=on_progress)
    assert not multiprocessing.active_children()
    assert caught.tb, "which holds what would end the processes when it is collected"


def die(*_: object) -> Counter[bytes]:
    os._exit(1)


@pytest.mark.skipif(multiprocessing.get_start_method() != "fork", reason="a forked worker knows what is patched here")
def test_a_worker_that_dies_leaves_no_process(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "pre_tokenize", die)
    monkeypatch.setitem(dispatch.ARRAYS_FROM, "count", 1 << 30)
    with pytest.raises(RuntimeError, match=r"^a worker died") as caught:
        Tokenizer.train([text] * 20, 300, workers=2)
    assert "\n" not in str(caught.value)
    assert not multiprocessing.active_children()


def test_dead_worker_gives_one_line_error() -> None:
    class Deadly(ProcessPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            return super().submit(die)

    executor: Executor
    with Deadly(1) as executor, pytest.raises(RuntimeError, match="a worker died") as caught:
        count_pre_tokens(["a", "b"], executor=executor)
    assert "\n" not in str(caught.value)
