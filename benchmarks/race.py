"""Races the reference against other implementations on the text of `english.py`.

`python benchmarks/race.py all|train|encode|sentences|growth|ladder --text DIR`. Each timing runs in a process of
its own; the participants take turns. It prints a table, and writes a chart.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

import chart
import growth
import peers
import rungs
from table import markdown, number, provenance, ratio
from timing import Measured, measure

MEGABYTE = 10**6
MEBIBYTE = 1 << 20
SHORT = 60.0
"""Seconds after which a rung of the ladder stops, and is reported by merge."""


class Failure(Exception):
    """An error that the user can fix, in one line."""


def interleaved(names: Sequence[str], rounds: int, run: Callable[[str], Measured]) -> dict[str, list[Measured]]:
    """Run all participants alternately, `rounds` times; those that fail are dropped."""
    results: dict[str, list[Measured]] = {name: [] for name in names}
    for turn in range(rounds):
        for name in names:
            if not any(result.failure for result in results[name]):
                measured = run(name)
                results[name].append(measured)
                reported = measured.failure or f"{measured.seconds:.2f} s, {measured.peak / MEBIBYTE:.0f} MiB"
                print(f"  round {turn + 1}, {name}: {reported}", file=sys.stderr, flush=True)
    return results


def seconds(results: Sequence[Measured]) -> list[float]:
    """Return the times of runs that did not fail."""
    return [result.seconds for result in results if not result.failure]


def row(name: str, results: Sequence[Measured], size: int, rivals: Mapping[str, Sequence[Measured]]) -> list[str]:
    """Return a line of the table: best, median, MB/s, our time as a multiple of theirs, memory."""
    times = seconds(results)
    if not times:
        return [name, results[0].failure, *["–"] * (4 + len(rivals))]
    peak = max(result.peak for result in results)
    multiples = [ratio(min(times), min(seconds(theirs), default=0.0)) for theirs in rivals.values()]
    speed = number(size / MEGABYTE / min(times))
    count = f"{results[0].reported['count']:,}"
    return [name, number(min(times)), number(median(times)), speed, *multiples, number(peak / MEBIBYTE), count]


def header(rivals: Mapping[str, object], what: str) -> list[str]:
    """Return the table's first line."""
    return ["", "best, s", "median, s", "MB/s", *(f"time / {name}" for name in rivals), "peak, MiB", what]


def agreement(results: Mapping[str, Sequence[Measured]]) -> str:
    """Return a sentence that says whose results equal those of the first participant.

    Raises:
        Failure: if the participants of the reference differ from each other.
    """
    digests = {name: reported[0].reported["digest"] for name, reported in results.items() if seconds(reported)}
    if not digests:
        return "nobody gave anything"
    first, *others = digests
    different = [name for name in others if digests[name] != digests[first]]
    ours = [name for name in different if name.startswith("ours")]
    if ours and first.startswith("ours"):
        raise Failure(f"ours disagree: {', '.join(ours)} with {first}")
    same = [name for name in others if name not in different]
    reported = f"equal to {first}: {', '.join(same) or 'nobody'}"
    return reported + (f"; not equal: {', '.join(different)}" if different else "")


def train(asked: argparse.Namespace) -> None:
    """Training to one vocabulary."""
    text, size = _text(asked, "train.txt")
    everybody = _chosen(asked, peers.TRAINERS)

    def run(name: str, workers: int = asked.workers) -> Measured:
        return measure("train", [name, text, asked.vocab, workers], workers)

    results = interleaved(everybody, asked.rounds, run)
    rivals = {name: reported for name, reported in results.items() if name in ("HF tokenizers", "rustbpe")}
    title = f"Training: {size / MEGABYTE:.0f} MB, {asked.vocab:,} tokens, {asked.workers} workers"
    print(f"## {title}\n")
    print(markdown(header(rivals, "merges"), [row(name, results[name], size, rivals) for name in everybody]))
    if "ours" in results and asked.check:
        alone = {"ours": results["ours"], "ours, 1 worker": [run("ours", 1)]}
        print(f"\nMerges {agreement(alone)}.", end="")
        for name, (_, theirs) in peers.SAME_TIES.items():
            same = {name: [run(name)], **{their: results[their] for their in theirs if their in results}}
            print(f" Merges {agreement(same)}.", end="")
        print()
    _finish(
        asked,
        "train",
        title,
        "seconds",
        {name: min(seconds(reported), default=0.0) for name, reported in results.items()},
    )


def encode(asked: argparse.Namespace) -> None:
    """Encoding of unseen text with GPT-2's table."""
    text, size = _text(asked, "unseen.txt")
    everybody = _chosen(asked, peers.ENCODERS)

    def run(name: str) -> Measured:
        workers = 2 if name.endswith("2 workers") else 1
        return measure("encode", [name, text, workers], workers)

    results = interleaved(everybody, asked.rounds, run)
    wanted = ("tiktoken encode", "tiktoken encode_to_numpy", "ours encode_file")
    rivals = {name: reported for name, reported in results.items() if name in wanted}
    title = f"Encoding: {size / MEGABYTE:.0f} MB, GPT-2's table, one process unless stated, cold"
    print(f"## {title}\n")
    print(markdown(header(rivals, "ids"), [row(name, results[name], size, rivals) for name in everybody]))
    print(f"\nIds {agreement(results)}. Preparation, not timed (table, text):", end=" ")
    prepared = {name: reported[0].reported["preparation"] for name, reported in results.items() if seconds(reported)}
    print(", ".join(f"{name} {number(taken)} s" for name, taken in prepared.items()))
    speeds = {
        name: size / MEGABYTE / min(seconds(reported)) if seconds(reported) else 0.0
        for name, reported in results.items()
    }
    _finish(asked, "encode", title, "MB/s", speeds)


def sentences(asked: argparse.Namespace) -> None:
    """Encoding of 10,000 sentences, one call each or one batch, with GPT-2's table."""
    text, _ = _text(asked, "unseen.txt")
    many = len(peers.sentences(text))
    everybody = _chosen(asked, peers.SENTENCES)
    results = interleaved(everybody, asked.rounds, lambda name: measure("sentences", [name, text]))
    rows = []
    for name in everybody:
        warm = min(seconds(results[name]), default=0.0)
        cold = min((one.reported["cold"] for one in results[name] if not one.failure), default=0.0)
        rows.append([name, *(number(taken / many * 1e6) if taken else "–" for taken in (cold, warm))])
    print(f"## {many:,} sentences, GPT-2's table, one thread\n")
    print(markdown(["µs a sentence", "cold", "again"], rows))
    print(f"\nIds {agreement(results)}.")
    print(provenance(peers.PACKAGES))


def grow(asked: argparse.Namespace) -> None:
    """Growth: training and streaming."""
    parts: dict[str, Callable[[], growth.Grown]] = {
        "size": lambda: growth.training_by_size(_text(asked, "train.txt")[0], asked.workers, asked.vocab),
        "vocab": lambda: growth.training_by_vocabulary(_text(asked, "train.txt")[0], asked.workers),
        "stream": lambda: growth.streaming(_text(asked, "train.txt")[0]),
    }
    for name in asked.only or parts:
        if name not in parts:
            raise Failure(f"--only {name}: growth has {', '.join(parts)}")
        reported = parts[name]()
        print(f"## {reported.title}\n\n{reported.table}\n")
        if asked.chart:
            chart.lines(asked.chart / f"growth-{name}.svg", reported.panels, reported.x, reported.y)
    print(provenance(peers.PACKAGES))


def ladder(asked: argparse.Namespace) -> None:
    """From the textbook to the reference, one idea at a time."""
    text, size = _text(asked, "train.txt")
    wanted = asked.vocab - 257
    names = [*rungs.RUNGS, rungs.REFERENCE]
    results = {name: measure("rung", [name, text, wanted, asked.limit], rungs.WORKERS) for name in names}
    right = results[rungs.REFERENCE].reported["merges"]
    for name, measured in results.items():
        if measured.failure:
            raise Failure(f"{name}: {measured.failure}")
        if measured.reported["merges"] != right[: measured.reported["count"]]:
            raise Failure(f"{name} learned other merges than {rungs.REFERENCE}")
    estimates = {name: whole(measured, wanted) for name, measured in results.items()}
    rows = []
    for before, name in zip([names[0], *names], names, strict=False):
        measured, taken = results[name], estimates[name]
        about = "" if measured.reported["count"] == len(right) else "~"
        each = (measured.seconds - measured.reported["first"]) / max(1, measured.reported["count"] - 1)
        reported = [number(measured.reported["first"]), "–" if name == rungs.REFERENCE else number(each * 1000)]
        faster = [f"{number(estimates[other] / taken)} ×" for other in (before, names[0])]
        rows.append([name, f"{measured.reported['count']:,}", *reported, about + number(taken), *faster])
    title = f"The ladder: {size / MEGABYTE:.0f} MB, {wanted:,} merges"
    print(f"## {title}\n")
    columns = [
        "rung",
        "merges",
        "time to the first merge, s",
        "time per further merge, ms",
        "total time, s",
        "speed-up over the previous rung",
        "total speed-up",
    ]
    print(markdown(columns, rows))
    print(
        f"\nAll merges are identical. A total time with `~` is extrapolated: the run stopped after {asked.limit:g} s."
    )
    _finish(asked, "ladder", title, "seconds", estimates)


def whole(measured: Measured, wanted: int) -> float:
    """Return the estimated time of all merges, from the time of those that were made.

    >>> whole(Measured(12.0, 0, {"first": 2.0, "count": 11}), 101)
    102.0
    """
    first, made = measured.reported["first"], measured.reported["count"]
    if made >= wanted or made < 2:
        return measured.seconds
    return float(first + (measured.seconds - first) / (made - 1) * (wanted - 1))


def _text(asked: argparse.Namespace, name: str) -> tuple[Path, int]:
    """Return the text and its size, cut to `--megabytes` at a document's end."""
    text = asked.text / name if asked.text.is_dir() else asked.text
    if not text.is_file():
        raise Failure(f"{text} is not there; python benchmarks/english.py {asked.text} builds it")
    if asked.megabytes:
        text = growth.prefix(text, asked.megabytes)
    return text, text.stat().st_size


def _chosen(asked: argparse.Namespace, everybody: Mapping[str, object]) -> list[str]:
    unknown = [name for name in asked.only or () if name not in everybody]
    if unknown:
        raise Failure(f"--only {unknown[0]}: there are {', '.join(everybody)}")
    return list(asked.only or everybody)


def _finish(asked: argparse.Namespace, name: str, title: str, unit: str, values: Mapping[str, float]) -> None:
    rounds = "One run" if name == "ladder" or asked.rounds == 1 else f"{asked.rounds} rounds"
    print(f"\n{rounds}; {provenance(peers.PACKAGES)}")
    if asked.chart:
        chart.bars(asked.chart / f"{name}.svg", title, unit, values, logarithmic=name == "ladder")


def everything(asked: argparse.Namespace) -> None:
    """Training and encoding: every trainer and every encoder, in each of its modes."""
    for command in (train, encode):
        command(asked)
        print()


COMMANDS = {
    "all": everything,
    "train": train,
    "encode": encode,
    "sentences": sentences,
    "growth": grow,
    "ladder": ladder,
}


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    result = argparse.ArgumentParser(prog="race.py", description=__doc__.splitlines()[0])
    commands = result.add_subparsers(dest="command", required=True)
    for name, function in COMMANDS.items():
        command = commands.add_parser(name, help=function.__doc__, description=function.__doc__)
        command.add_argument(
            "--text",
            type=Path,
            required=True,
            help="the directory that english.py wrote, or a file",
        )
        command.add_argument("--megabytes", type=int, help="take so much of the text only")
        command.add_argument("--chart", metavar="DIR", type=Path, help="write charts there")
        if name not in ("encode", "sentences"):
            command.add_argument("--vocab", type=int, default=5257 if name == "ladder" else 32_000)
        if name in ("all", "train", "growth"):
            command.add_argument("--workers", type=int, default=2, help="processes or threads (default 2)")
        if name in ("all", "train", "encode", "sentences"):
            command.add_argument("--rounds", type=int, default=3, help="turns of each (default 3)")
        if name in ("all", "train"):
            command.add_argument("--no-check", dest="check", action="store_false", help="do not compare merges")
        if name == "ladder":
            command.add_argument("--limit", type=float, default=SHORT, help="seconds for a rung (default 60)")
        elif name == "all":
            command.set_defaults(only=None)
        else:
            command.add_argument("--only", action="append", metavar="NAME", help="only this one; repeatable")
    return result


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    asked = parser().parse_args(arguments)
    if asked.chart:
        asked.chart.mkdir(parents=True, exist_ok=True)
    try:
        COMMANDS[asked.command](asked)
    except Failure as reason:
        print(f"race.py: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
