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


def encode(name: str, text: str, workers: str) -> dict[str, Any]:
    """Time an encoder; report the number of ids and their digest."""
    import numpy as np

    function = peers.ours_stream if name == peers.STREAM else peers.ENCODERS[name]
    reported, ids = _timed(lambda: function(Path(text), int(workers)))
    array = np.asarray(ids, dtype=np.uint32)
    return {**reported, "count": len(array), "digest": sha256(array.tobytes()).hexdigest()}


def sentences(name: str, text: str) -> dict[str, Any]:
    """Time an encoder on sentences twice: with empty caches, and again after it has encoded all of them."""
    prepared = peers.SENTENCES[name](Path(text), 1)
    cold, ids = _timed(lambda: prepared)
    warm, again = _timed(lambda: prepared)
    digest = sha256(repr(ids).encode()).hexdigest()
    return {**warm, "cold": cold["seconds"], "count": len(again), "digest": digest}


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
    begun = time.perf_counter()
    run, outcome = prepare()
    gc.collect()
    started = time.perf_counter()
    result = run()
    seconds = time.perf_counter() - started
    reported = {"seconds": seconds, "ended": time.time(), "preparation": started - begun}
    return reported, outcome(result)


def _digest_of_merges(merges: Sequence[tuple[bytes, bytes]]) -> str:
    return sha256(b"\n".join(left.hex().encode() + b" " + right.hex().encode() for left, right in merges)).hexdigest()


JOBS: dict[str, Callable[..., dict[str, Any]]] = {
    "train": train,
    "encode": encode,
    "sentences": sentences,
    "rung": rung,
    "limit": limit,
}

if __name__ == "__main__":
    try:
        answer = JOBS[sys.argv[1]](*sys.argv[2:])
    except Absent as reason:
        answer = {"seconds": 0.0, "ended": 0.0, "absent": str(reason)}
    print(json.dumps(answer))
