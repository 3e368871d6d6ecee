"""The example of the manual for a Dask cluster works, and so does a cluster with a killed worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bpe_conformance.reference import Tokenizer, corpus_encoding

distributed = pytest.importorskip("distributed", reason="distributed (Dask) is not installed")
dask = pytest.importorskip("dask")

pytestmark = [pytest.mark.release, pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]


@pytest.fixture(params=[0, 3], ids=["given-up", "tried-again"])
def client(request: pytest.FixtureRequest) -> Iterator[Any]:
    settings = {"distributed.scheduler.allowed-failures": request.param}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        client.allowed_failures = request.param
        yield client


def test_a_killed_worker_loses_at_most_its_jobs(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_encoding, "BATCH_SIZE", 1)
    one = Tokenizer.train("low lower newest", 270)
    files = [tmp_path / f"{number}.txt" for number in range(12)]
    for file in files:
        file.write_text("low lower newest " * 40_000, "utf-8")
    one.encode_files(files, tmp_path / "alone")
    pids = list(client.run(os.getpid).values())[:1]
    executor = client.get_executor()

    def kill(*_: object) -> None:
        if pids:
            os.kill(pids.pop(), signal.SIGKILL)

    done = one.encode_files(files, tmp_path / "out", executor=executor, workers=2, progress=kill)
    assert not pids
    assert done.arrays + len(done.failures) == len(files)
    assert len(done.failures) <= (2 if client.allowed_failures == 0 else 0)
    assert all("a worker failed (KilledWorker: " in line and "\n" not in line for line in done.failures)
    again = one.encode_files(files, tmp_path / "out", executor=executor, workers=2)
    assert again.arrays == len(files)
    assert again.skipped == done.arrays
    for file in (tmp_path / "alone").iterdir():
        assert file.read_bytes() == (tmp_path / "out" / file.name).read_bytes()
    assert len(list((tmp_path / "out").iterdir())) == len(files) + 1


def test_the_example_of_the_page_prints_the_shown_output(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "cluster.md").read_text("utf-8")
    script = page.split("```python\n")[1].split("```")[0]
    shown = page.split("```text\n")[1].split("```")[0]
    (tmp_path / "cluster.py").write_text(script, "utf-8")
    words = [sys.executable, "cluster.py", "cluster.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout == shown
