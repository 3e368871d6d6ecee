"""Tries hostile adapters on the suite: `python tests/hostile/run.py [NAME ...]`; exit status 1 if one is not contained.

Each attack is tried alone, in process and with --bpe-isolate, and those of tests/hostile/program.py over the wire.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from hostile import Attack, program, trial

Plan = tuple[str, str, tuple[str, ...], str, str]


def plans(names: list[str]) -> Iterator[Plan]:
    """Yield name, mode, options, adapter and expected state."""
    for name, attack in Attack.known.items():
        if name in names or not names:
            if attack.in_process:
                yield name, "in the process", (), "hostile:Tokenizer", attack.outcome
            yield name, "isolated", ("--bpe-isolate",), "hostile:Tokenizer", attack.outcome
    for name in program.ATTACKS:
        if name in names or not names:
            yield name, "over the wire", (), trial.PROGRAM, "failed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="attacks; all of them if none is named")
    parser.add_argument("--time-limit", default="1", help="--bpe-time-limit; default 1")
    parser.add_argument("--timeout", type=float, default=100, help="seconds that a run may take")
    options = parser.parse_args()
    unknown = sorted({*options.names} - {*Attack.known, *program.ATTACKS})
    if unknown:
        parser.error(f"no such attack: {', '.join(unknown)}")
    broken = tried = 0
    longest = 0.0
    for name, mode, more, adapter, expected in plans(options.names):
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["--bpe-time-limit", options.time_limit, *more]
            found = trial.try_out(Path(folder), [name], *arguments, adapter=adapter, timeout=options.timeout)
        state, got = found.results.get(name, ("none", ""))
        after, _ = found.results.get(f"after-{name}", ("none", ""))
        blamed = name in program.SURPLUS
        status = {"failed": 1, "passed": 0}[expected]
        held = (state, found.status, found.folders) == (expected, status, []) and (after == "passed" or blamed)
        held = held and (not found.processes or mode == "in the process")  # processes that are left there are not ended
        tried, broken, longest = tried + 1, broken + (not held), max(longest, found.seconds)
        left = f", {len(found.processes)} processes left" if found.processes else ""
        print(
            f"{'held' if held else 'BROKEN':7} {mode:15} {name:24} {found.seconds:5.1f} s  {state}{left}  {got[:100]!a}"
        )
    print(f"{tried} tried, {broken} not held, the longest run took {longest:.1f} s")
    raise SystemExit(1 if broken else 0)


if __name__ == "__main__":
    main()
