"""Races the reference against other implementations on the text of `english.py`.

`python benchmarks/race.py NAME --text DIR` prints the tables of a race. `python benchmarks/race.py all --text DIR -o
DIR` makes all tables and charts of the benchmarks. Each timing runs in its own process; the participants take turns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import chart
import growth
import limits
import long_pieces
import pattern_growth
import peers
import rungs
import sources
from table import MEBIBYTE, MEGABYTE, markdown, number, provenance
from timing import Measured, measure

from bpe_conformance.fixtures import PATTERNS

SHORT = 60.0
"""Seconds after which a rung of the ladder stops, and is reported by merge."""
BUSY = 1.2
"""Processor seconds per second of an encoder that uses several cores."""


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


def best(results: Sequence[Measured], kind: str = "seconds") -> float:
    """Return the least seconds of the runs that did not fail, 0 without any."""
    return min((one.reported[kind] for one in results if not one.failure), default=0.0)


def times(results: Sequence[Measured], rival: Sequence[Measured], kind: str = "seconds") -> str:
    """Return the time as a multiple of the rival's: the median of the rounds, each against the same round."""
    pairs = zip(results, rival, strict=False)
    rounds = [one.reported[kind] / two.reported[kind] for one, two in pairs if not one.failure and not two.failure]
    return f"{median(rounds):.2f}" if rounds else "–"


def compared(
    results: Mapping[str, Sequence[Measured]], size: int, kinds: Mapping[str, str], rivals: Sequence[str], what: str
) -> tuple[str, dict[str, dict[str, float]]]:
    """Return the table of a race, and kind → participant → MB/s.

    Args:
        results: participant → its runs.
        size: the bytes of the text.
        kinds: the name of a time → its name in the reports.
        rivals: those whose times are the units of others.
        what: what the participants count.
    """
    columns = ["", *(f"{kind}, {unit}" for unit in ("s", "MB/s") for kind in kinds)]
    columns += [*(f"{kind} / {rival}" for rival in rivals for kind in kinds), "peak, MiB", what]
    rows = []
    speeds: dict[str, dict[str, float]] = {kind: {} for kind in kinds}
    for name, found in results.items():
        if not best(found):
            rows.append([name, found[0].failure, *["–"] * (len(columns) - 2)])
            continue
        for kind, reported in kinds.items():
            speeds[kind][name] = size / MEGABYTE / best(found, reported)
        cells = [*(best(found, reported) for reported in kinds.values()), *(speeds[kind][name] for kind in kinds)]
        multiples = [times(found, results[rival], reported) for rival in rivals for reported in kinds.values()]
        peak = max(one.peak for one in found) / MEBIBYTE
        count = f"{found[0].reported['count']:,}"
        rows.append([name, *map(number, cells), *multiples, number(peak), count])
    return markdown(columns, rows), speeds


def train(asked: argparse.Namespace) -> str:
    """Training to one vocabulary."""
    text, size = _text(asked, "train.txt")
    everybody = _chosen(asked, peers.TRAINERS)

    def run(name: str) -> Measured:
        workers = 1 if name.endswith("1 worker") else asked.workers
        return measure("train", [name, text, asked.vocab, workers], workers)

    results = interleaved(everybody, asked.rounds, run)
    rivals = [name for name in ("ours", "HF tokenizers", "rustbpe") if name in results]
    table, speeds = compared(results, size, {"time": "seconds"}, rivals, "merges")
    title = f"Training on {size / MEGABYTE:.0f} MB to {asked.vocab:,} tokens, GPT-2's pattern"
    _bars(asked, "train", title, "MB/s", speeds)
    said = [f"{title}, {asked.workers} workers unless stated{_rounds(asked)}:", table]
    if "ours" in results and asked.check:
        groups = [{name: found for name, found in results.items() if name.startswith("ours")}]
        for name, (_, theirs) in peers.SAME_TIES.items():
            groups.append({name: [run(name)], **{their: results[their] for their in theirs if their in results}})
        said.append(" ".join(f"Merges {agreement(group)}." for group in groups if len(group) > 1))
    return "\n\n".join(said)


def agreement(results: Mapping[str, Sequence[Measured]], report: str = "digest") -> str:
    """Return whose merges or ids equal those of the first participant.

    Raises:
        Failure: if the participants of the reference differ from each other.
    """
    reports = {name: found[0].reported[report] for name, found in results.items() if best(found)}
    if not reports:
        return "nobody gave anything"
    first, *others = reports
    different = [name for name in others if reports[name] != reports[first]]
    ours = [name for name in different if name.startswith("ours")]
    if ours and first.startswith("ours"):
        raise Failure(f"ours disagree: {', '.join(ours)} with {first}")
    same = "the others" if len(others) - len(different) > 6 else ", ".join(o for o in others if o not in different)
    many = (f"{name} ({reports[name]:,})" if report == "differ" else name for name in different)
    return f"equal to {first}: {same or 'nobody'}" + (f"; not equal: {', '.join(many)}" if different else "")


def encode(asked: argparse.Namespace) -> str:
    """Encoding of unseen text by every encoder, twice in one process."""
    text, size = _text(asked, "unseen.txt")
    return _encoding(asked, "encode", text, f"{size / MEGABYTE:.0f} MB of unseen text", size)


def streams(asked: argparse.Namespace) -> str:
    """Encoding of a stream in chunks of several sizes."""
    text, size = _text(asked, "unseen.txt")
    return _encoding(asked, "streams", text, f"{size / MEGABYTE:.0f} MB of unseen text as a stream", size)


def ideographs(asked: argparse.Namespace) -> str:
    """Encoding of ideographs without spaces and line ends, in one process and in two."""
    with tempfile.TemporaryDirectory(prefix="race-") as folder:
        text = Path(folder, "text")
        with text.open("w", encoding="utf-8", newline="") as file:
            file.writelines(limits.without_spaces(asked.megabytes))
        size = text.stat().st_size
        return _encoding(asked, "ideographs", text, f"{size / MEGABYTE:.0f} MB of ideographs on one line", size)


def sentences(asked: argparse.Namespace) -> str:
    """Encoding of 10,000 sentences, one call each or one batch."""
    text, _ = _text(asked, "unseen.txt")
    parts = peers.sentences(text)
    of = f"{len(parts):,} sentences, one call for each or a batch"
    return _encoding(asked, "sentences", text, of, sum(len(part.encode()) for part in parts))


def _encoding(asked: argparse.Namespace, group: str, text: Path, of: str, size: int) -> str:
    """Race the encoders of a group; the ids of all are compared with those of the first."""
    everybody = _chosen(asked, peers.GROUPS[group])
    with tempfile.TemporaryDirectory(prefix="race-") as folder:
        model = peers.write_model(asked.model, Path(folder))

        def run(name: str) -> Measured:
            workers = 2 if name.endswith("2 workers") else 1
            return measure("encode", [group, name, text, model, workers], workers)

        results = interleaved(everybody, asked.rounds, run)
    table, speeds = compared(results, size, {"cold": "seconds", "warm": "warm"}, everybody[:1], "ids")
    title = f"Encoding {of}, the model {asked.model}"
    if group == "encode":
        _bars(asked, f"encode-{asked.model}", title, "MB/s", speeds)
    alone = [(name, found[0]) for name, found in results.items() if best(found) and not name.endswith("2 workers")]
    busy = ", ".join(name for name, found in alone if found.reported["cores"] > BUSY)
    said = f"Ids {agreement(results, 'differ')}." + (f" More than one core: {busy}." if busy else "")
    return f"{title}, one core unless stated{_rounds(asked)}:\n\n{table}\n\n{said}"


def grow(asked: argparse.Namespace) -> str:
    """Growth of the time of training with the text and the vocabulary."""
    found = growth.training(_text(asked, "train.txt")[0], asked.vocab, asked.workers)
    for grown in found if asked.chart else ():
        chart.lines(asked.chart / f"growth-{grown.name}.svg", grown.title, grown.series, grown.unit, "seconds")
    return "\n\n".join(f"{grown.title}:\n\n{grown.table}" for grown in found)


def ladder(asked: argparse.Namespace) -> str:
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
    columns = ["rung", "merges", "time to the first merge, s", "time per further merge, ms", "total time, s"]
    columns += ["speed-up over the previous rung", "total speed-up"]
    title = f"Training on {size / MEGABYTE:.0f} MB to {wanted:,} merges"
    _bars(asked, "ladder", title, "seconds", {"": estimates}, logarithmic=True)
    end = f"All merges are identical. A total time with `~` is extrapolated: the run stopped after {asked.limit:g} s."
    return f"{title}, one run:\n\n{markdown(columns, rows)}\n\n{end}"


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


def _rounds(asked: argparse.Namespace) -> str:
    return f", best of {asked.rounds} rounds" if asked.rounds > 1 else ", one round"


def _bars(asked: argparse.Namespace, name: str, *what: Any, **options: Any) -> None:
    if asked.chart:
        chart.bars(asked.chart / f"{name}.svg", *what, **options)


COMMANDS: dict[str, tuple[Callable[[argparse.Namespace], str], int | None, Sequence[str]]] = {
    "train": (train, None, ("vocab", "workers", "rounds", "no-check", "only")),
    "encode": (encode, 30, ("model", "rounds", "only")),
    "streams": (streams, 30, ("model", "rounds", "only")),
    "ideographs": (ideographs, 30, ("model", "rounds", "only")),
    "sentences": (sentences, None, ("model", "rounds", "only")),
    "growth": (grow, None, ("vocab", "workers")),
    "ladder": (ladder, 10, ("vocab", "limit")),
}
"""Name → what returns its tables, the megabytes of the text that it takes (None: all), and its other options."""
OPTIONS: dict[str, dict[str, Any]] = {
    "vocab": {"type": int, "default": 32_000, "help": "tokens (default 32,000; 5,257 for ladder)"},
    "workers": {"type": int, "default": 2, "help": "processes or threads (default 2)"},
    "rounds": {"type": int, "default": 3, "help": "turns of each (default 3)"},
    "no-check": {"dest": "check", "action": "store_false", "help": "do not compare merges"},
    "model": {"choices": ("gpt2", "cl100k"), "default": "gpt2", "help": "the table (default gpt2)"},
    "limit": {"type": float, "default": SHORT, "help": "seconds for a rung (default 60)"},
    "only": {"action": "append", "metavar": "NAME", "help": "only this one; repeatable"},
}


def everything(asked: argparse.Namespace) -> None:
    """Make all tables and charts of the benchmarks in one run, in half an hour."""

    def race(name: str, *options: str) -> str:
        run, _, options_of = COMMANDS[name]
        size = [f"--megabytes={asked.megabytes}"] if asked.megabytes else []
        rounds = [f"--rounds={asked.rounds}"] if "rounds" in options_of else []
        options = (*options, *size, *rounds, "--text", str(asked.text), "--chart", str(asked.output / "charts"))
        return run(parser().parse_args([name, *options]))

    parts: dict[str, Callable[[], str]] = {
        "about": lambda: provenance(peers.PACKAGES),
        "train": lambda: race("train"),
        "encode": lambda: race("encode"),
        "encode-cl100k": lambda: race("encode", "--model", "cl100k"),
        "streams": lambda: race("streams"),
        "ideographs": lambda: race("ideographs"),
        "sentences": lambda: race("sentences"),
        "growth": lambda: race("growth"),
        "long-pieces": long_pieces.report,
        "limits": lambda: limits.report([*limits.LIMITS], asked.steps)[0],
        "pattern-growth": lambda: pattern_growth.report([*PATTERNS]),
        "ladder": lambda: race("ladder"),
        "sources": lambda: sources.report(asked.text),
    }
    (asked.output / "charts").mkdir(parents=True, exist_ok=True)
    page = asked.output / "README.md"
    for name in _chosen(asked, parts):
        started = time.monotonic()
        try:
            said = parts[name]()
        except (Failure, peers.Absent) as reason:
            said = f"{name}: {reason}"
        before = page.read_text("utf-8") if page.exists() else "# Benchmarks\n"
        page.write_text(updated(before, name, said), encoding="utf-8")
        print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)


def updated(page: str, name: str, said: str) -> str:
    """Return a page with new tables between their marks, or at the end if it does not have the marks.

    >>> updated("a\\n<!-- x -->\\n<!-- end -->\\n<!-- y -->\\nold\\n<!-- end -->", "x", "new")
    'a\\n<!-- x -->\\nnew\\n<!-- end -->\\n<!-- y -->\\nold\\n<!-- end -->'
    """
    start, end = f"<!-- {name} -->\n", "<!-- end -->"
    before, mark, rest = page.partition(start)
    if not mark:
        return f"{page}\n## {name}\n\n{start}{said}\n{end}\n"
    return before + start + said + "\n" + end + rest.partition(end)[2]


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    result = argparse.ArgumentParser(prog="race.py", description=__doc__.splitlines()[0])
    commands = result.add_subparsers(dest="command", required=True)

    def add(name: str, said: str | None, megabytes: int | None, options: Sequence[str]) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=said, description=said)
        command.add_argument("--text", type=Path, required=True, help="the directory that english.py wrote, or a file")
        size = f"{megabytes} MB" if megabytes else "all"
        command.add_argument("--megabytes", type=int, default=megabytes, help=f"how much text (default: {size})")
        for option in options:
            command.add_argument(f"--{option}", **OPTIONS[option])
        return command

    for name, (run, megabytes, options) in COMMANDS.items():
        command = add(name, run.__doc__, megabytes, options)
        command.add_argument("--chart", metavar="DIR", type=Path, help="write charts there")
        if name == "ladder":
            command.set_defaults(vocab=5257)
    command = add("all", everything.__doc__, None, ("rounds", "only"))
    command.add_argument("--steps", type=int, help="how many sizes of each limit (default: all)")
    help_of_output = "its README.md gets the tables, its charts/ the charts"
    command.add_argument("-o", "--output", metavar="DIR", type=Path, required=True, help=help_of_output)
    return result


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    asked = parser().parse_args(arguments)
    try:
        if asked.command == "all":
            everything(asked)
        else:
            if asked.chart:
                asked.chart.mkdir(parents=True, exist_ok=True)
            print(f"{COMMANDS[asked.command][0](asked)}\n\n{provenance(peers.PACKAGES)}")
    except (Failure, peers.Absent) as reason:
        print(f"race.py: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
