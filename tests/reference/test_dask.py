"""Training and encoding on a Dask cluster of two worker processes, which a scheduler reaches over the network."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

from bpe_conformance.reference import Tokenizer, chunks, counting
from bpe_conformance.reference.counting import count_pre_tokens

distributed = pytest.importorskip("distributed", reason="distributed (Dask) is not installed")
dask = pytest.importorskip("dask")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    settings = {"distributed.scheduler.allowed-failures": 0}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def executor(client: Any) -> Any:
    return client.get_executor()


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    draw = random.Random(0)
    words = [b"low", b" lower", b" newest", b"\n", b" \xf0\x9f\xa6\x8a", b"\xff", b"<|e|>", b"  ", b"don't"]
    files = [tmp_path / str(number) for number in range(5)]
    for file in files:
        file.write_bytes(b"".join(draw.choice(words) for _ in range(4000)))
    return files


@pytest.mark.parametrize("tie_break", ["lex-greater", "first-seen"])
def test_cluster_trains_like_one_process(executor: Executor, paths: list[Path], tie_break: str) -> None:
    texts = [file.read_bytes().decode("utf-8", errors="replace") for file in paths]
    alone = Tokenizer.train(texts, 320, ["<|e|>"], tie_break=tie_break)
    assert len(alone.merges) > 40
    for source in (paths, iter(paths), iter(texts)):
        together = Tokenizer.train(source, 320, ["<|e|>"], tie_break=tie_break, executor=executor, workers=2)
        assert together.merges == alone.merges
        assert together.vocab == alone.vocab


def test_both_workers_count_one_file(executor: Executor, paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_SIZE", paths[0].stat().st_size)
    reported: list[tuple[int, int]] = []
    counts = count_pre_tokens(paths[0], executor=executor, workers=2, progress=lambda _, *step: reported.append(step))
    assert reported == [(1, 2), (2, 2)]
    assert counts == count_pre_tokens(paths[0])


def test_paths_are_found_from_another_directory(
    executor: Executor, paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(paths[0].parent)
    assert count_pre_tokens(Path("0"), executor=executor, workers=2) == count_pre_tokens(paths[0])


def test_error_of_a_job_arrives_unchanged(
    executor: Executor, paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        count_pre_tokens([*paths, "a\ud800"], executor=executor, workers=2)

    def vanish(*_: object) -> None:
        paths[-1].unlink(missing_ok=True)

    monkeypatch.setattr(counting, "BATCH_SIZE", 1)
    many = [file for file in paths for _ in range(10)]
    with pytest.raises(ValueError, match="4: cannot be read: No such file") as caught:
        count_pre_tokens(many, executor=executor, workers=1, progress=vanish)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("shard_size", [None, 20_000])
def test_cluster_encodes_like_one_process(
    executor: Executor, paths: list[Path], shard_size: int | None, tmp_path: Path
) -> None:
    one = Tokenizer.train(paths[0], 320, ["<|e|>"])
    done = [
        one.encode_files(paths, tmp_path / name, shard_size=shard_size, **options)
        for name, options in (("alone", {}), ("together", {"executor": executor, "workers": 2}))
    ]
    assert done[0] == done[1]
    assert done[0].arrays > 4
    for file in (tmp_path / "alone").iterdir():
        assert file.read_bytes() == (tmp_path / "together" / file.name).read_bytes()


def test_example_in_the_manual_runs(
    client: Any, paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text("utf-8")
    shown = next(block for block in page.split("```") if block.startswith("python\nfrom distributed import"))
    names: dict[str, Any] = {"Tokenizer": Tokenizer, "paths": paths}
    exec(shown.removeprefix("python\n").replace("tcp://scheduler:8786", client.scheduler.address), names)
    assert names["tokenizer"].merges == Tokenizer.train(paths, 32_000).merges
    assert names["done"].arrays == len(paths)


class Deadly(Executor):
    """Kills the worker in place of each job."""

    def __init__(self, inner: Executor) -> None:
        self.inner = inner

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self.inner.submit(os._exit, 1)


@pytest.mark.slow
def test_dead_worker_gives_one_line_error(executor: Executor, paths: list[Path]) -> None:
    with pytest.raises(RuntimeError, match=r"^a worker failed \(KilledWorker: Attempted to run task") as caught:
        count_pre_tokens(paths, executor=Deadly(executor), workers=1)
    assert "\n" not in str(caught.value)
    assert count_pre_tokens(paths, executor=executor, workers=2) == count_pre_tokens(paths)
