"""Runs a job of the race in its own process: `job.py KIND ARGUMENTS`. It prints one line of JSON."""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import limits
import peers
import rungs
from peers import Absent, Prepared


def train(name: str, text: str, vocab_size: str, workers: str) -> dict[str, Any]:
    """Time a trainer; report the number of merges and their digest."""
    function = peers.TRAINERS[name] if name in peers.TRAINERS else peers.SAME_TIES[name][0]
    reported, merges = _timed(lambda: function(Path(text), int(vocab_size), int(workers)))
    return {**reported, "count": len(merges), "digest": _digest_of_merges(merges)}


def encode(group: str, name: str, text: str, model: str, workers: str) -> dict[str, Any]:
    """Time an encoder twice, with empty caches and again.

    It reports the number of ids, and how many tokens differ from those of the first participant of the group.
    """
    import numpy as np

    given = peers.Given(Path(text), Path(model), int(workers))
    prepared = peers.GROUPS[group][name](given)
    cold, ids = _timed(lambda: prepared)
    ids = np.asarray(ids, dtype=np.uint32)
    warm, again = _timed(lambda: prepared)
    first = Path(model, f"{group}.npy")
    if not first.exists():
        np.save(first, ids)
    lengths = {rank: len(token) for token, rank in given.table.items()}
    differ = max(peers.differing(np.asarray(each), np.load(first), lengths) for each in (ids, again))
    return {**cold, "warm": warm["seconds"], "count": len(ids), "differ": differ}


def rung(name: str, text: str, wanted: str, limit: str) -> dict[str, Any]:
    """Run one rung of the ladder until there are enough merges or the time is up."""
    climb = partial(rungs.reference, wanted=int(wanted)) if name == rungs.REFERENCE else rungs.RUNGS[name]
    merges, moments, started = [], [], time.perf_counter()
    for merge in climb(Path(text)):
        merges.append(merge)
        moments.append(time.perf_counter() - started)
        # The pace is that of the merges after the first, so at least two are needed.
        if len(merges) == int(wanted) or (len(merges) > 1 and moments[-1] > float(limit)):
            break
    # The time of the first merge includes the preparation.
    reported = {"seconds": moments[-1], "ended": time.time(), "first": moments[0], "count": len(merges)}
    return {**reported, "merges": [[left.hex(), right.hex()] for left, right in merges]}


def limit(name: str, size: str) -> dict[str, Any]:
    """Time a limit at a size, in processor seconds, and report its result."""
    run = limits.LIMITS[name].prepare(int(size))
    gc.collect()
    started = time.process_time()
    said = run()
    return {"seconds": time.process_time() - started, "ended": time.time(), "said": said}


def _timed(prepare: Callable[[], Prepared]) -> tuple[dict[str, Any], Any]:
    run, outcome = prepare()
    gc.collect()
    started, before = time.perf_counter(), time.process_time()
    result = run()
    seconds = time.perf_counter() - started
    cores = (time.process_time() - before) / seconds
    reported = {"seconds": seconds, "ended": time.time(), "cores": cores}
    return reported, outcome(result)


def _digest_of_merges(merges: Sequence[tuple[bytes, bytes]]) -> str:
    return sha256(b"\n".join(left.hex().encode() + b" " + right.hex().encode() for left, right in merges)).hexdigest()


JOBS = {job.__name__: job for job in (train, encode, rung, limit)}

if __name__ == "__main__":
    try:
        answer = JOBS[sys.argv[1]](*sys.argv[2:])
    except Absent as reason:
        answer = {"seconds": 0.0, "ended": 0.0, "absent": str(reason)}
    print(json.dumps(answer))
