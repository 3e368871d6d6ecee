"""The command `bpe-conformance`: a table of subcommands, each of which imports its module only when it runs."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, TextIO

from . import __version__, signals
from .command_error import CommandError

BROKEN_PIPE = 141  # what a shell gives for a program that SIGPIPE ended
INTERRUPTED = 130  # what a shell gives for a program that SIGINT ended


@dataclass(frozen=True)
class Command:
    """One subcommand.

    Attributes:
        name: its name.
        help: a line of help.
        example: its arguments, for example.
        arguments: adds its arguments to a parser.
        run: does it, and returns the exit status.
        runs_adapters: whether it runs adapters in this process. It leaves signals alone, since the processes that an
            adapter forks would inherit their handlers.
    """

    name: str
    help: str
    example: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    runs_adapters: bool = False


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print the line and leave with exit status 2."""
        from bpe_conformance.fixtures.one_line import one_line

        self.exit(2, f"{self.prog}: {one_line(message)}; see {self.prog} --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    try:
        words = sys.argv[1:] if arguments is None else list(arguments)
        options = _parser(words).parse_args(words)
        with nullcontext() if options.runs_adapters else signals.raised():
            status = _run(options)
    except BrokenPipeError:
        status = BROKEN_PIPE  # what reads our output has closed it, as `| head` does
    except KeyboardInterrupt as error:
        if isinstance(error, signals.TerminatedBySignal):
            _tell(f"ended by {signal.Signals(error.number).name}")
            status = 128 + error.number
        else:
            _tell("interrupted")
            status = INTERRUPTED
    return _flushed(status)


def _flushed(status: int) -> int:
    """Write what is left for standard output, and return the exit status."""
    if sys.stdout is None:
        return status
    try:
        sys.stdout.flush()
    except OSError as error:
        _silence(sys.stdout)
        if isinstance(error, BrokenPipeError):
            return status or BROKEN_PIPE
        if not status:
            return _refused(f"standard output: {error.strerror or error}")
    return status


def _parser(words: Sequence[str]) -> Parser:
    """Return the parser of all commands, with the arguments of those that `words` may mean."""
    parser = Parser(
        prog="bpe-conformance",
        description="Tools of the conformance suite for byte-level BPE tokenizers. "
        "The suite itself runs under pytest: pytest conformance --adapter mypkg:Tokenizer",
    )
    parser.add_argument("--version", action="version", version=f"bpe-conformance {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        shown = f"example: bpe-conformance {command.example}"
        one = commands.add_parser(command.name, help=command.help, description=command.help, epilog=shown)
        if command.name in words:
            command.arguments(one)
        one.set_defaults(run=command.run, runs_adapters=command.runs_adapters)
    return parser


def _run(options: argparse.Namespace) -> int:
    from bpe_conformance.fixtures.yaml_file import SpecError

    try:
        status: int = options.run(options)
    except BrokenPipeError:
        raise
    except (CommandError, SpecError) as error:
        return _refused(str(error))
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _refused(f"{place}{error.strerror or error}")
    return status


def _refused(message: str) -> int:
    from bpe_conformance.fixtures.one_line import escaped

    _tell(escaped(message))
    return 2


def _tell(message: str) -> None:
    if sys.stderr is None:
        return
    try:
        print(_printable(f"bpe-conformance: {message}", sys.stderr.encoding), file=sys.stderr, flush=True)
    except OSError:  # nobody hears it
        _silence(sys.stderr)


def _silence(stream: TextIO) -> None:
    """Lose what could not be written: the interpreter would try it again at its end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _print(lines: Iterable[str]) -> None:
    if sys.stdout is None:
        raise CommandError("standard output is closed")
    for line in lines:
        told = _printable(line, sys.stdout.encoding)
        try:
            print(told)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise CommandError(f"standard output: {error.strerror or error}") from None


def _printable(line: str, encoding: str | None) -> str:
    """Return the line as it is for a UTF-8 terminal, and in ASCII for any other."""
    if (encoding or "").lower().replace("-", "") == "utf8":
        return line.encode("utf-8", "backslashreplace").decode("utf-8")
    from .terminal.show import ascii_only

    return ascii_only(line)


def _spec_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--spec", type=Path, metavar="DIR", help="a spec other than the installed one")


def _folder(options: argparse.Namespace) -> Path:
    from bpe_conformance.fixtures.spec import FOLDER

    given: Path | None = options.spec
    return given or FOLDER


# Each command: its arguments, then what it does


def _regenerate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a value differs")
    _spec_argument(parser)


def _regenerate(options: argparse.Namespace) -> int:
    from .spec_tools.regenerate import regenerate

    outcome = regenerate(_folder(options), options.check)
    differences, refusals = outcome.differences, outcome.refusals
    _print([*outcome.notes, *differences, *refusals])
    verb = "differ" if options.check else "were brought up to date"
    _print([f"{len(differences)} {verb}" if differences else "every computed value is the oracle's"])
    _print([f"{len(refusals)} refused"] if refusals else [])
    _print([outcome.agreement])
    return 1 if refusals or (differences and options.check) else 0


def _lint_arguments(parser: argparse.ArgumentParser) -> None:
    _spec_argument(parser)
    parser.add_argument("--rules", action="store_true", help="print each rule with what it wants, and check nothing")


def _lint(options: argparse.Namespace) -> int:
    from .spec_tools import lint

    if options.rules:
        _print(f"{rule.name:20}{rule.wants}" for rule in lint.RULES)
        return 0
    findings = lint.lint(_folder(options))
    _print(finding.line(Path.cwd()) for finding in findings)
    _print([lint.verdict(findings)])
    return 1 if any(not finding.advice for finding in findings) else 0


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--clause", metavar="ID", help="only the cases of this clause, or of a prefix of ids")
    parser.add_argument("--section", metavar="NAME", help="only the cases of this section, for example MERGE")
    parser.add_argument("--level", help="only the cases of this level: must, should, may, unspecified")
    parser.add_argument("--op", help="only the cases of this operation: train, encode, decode, ...")
    parser.add_argument("--summary", action="store_true", help="count clauses, cases and laws by section instead")
    _spec_argument(parser)


def _list(options: argparse.Namespace) -> int:
    from bpe_conformance.fixtures.spec import load_spec

    from .spec_tools import listing

    spec = load_spec(_folder(options))
    filters = {name: getattr(options, name) for name in ("clause", "section", "level", "op")}
    given = [name for name, value in filters.items() if value is not None]
    if options.summary and given:
        raise CommandError(f"--summary counts the whole spec; leave --{given[0]} out")
    _print(listing.summary(spec) if options.summary else listing.lines(listing.select(spec, **filters)))
    return 0


def _explain_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="of a case, a clause or a law")
    parser.add_argument("--tie-break", metavar="NAME", help="replay a training under another convention")
    parser.add_argument("--lookup", metavar="NAME", help="replay an encoding under another convention")
    parser.add_argument("--all", action="store_true", help="cut nothing short")
    _spec_argument(parser)


def _explain(options: argparse.Namespace) -> int:
    from bpe_conformance.fixtures.spec import load_spec

    from .spec_tools import explain

    view = explain.View.checked(options.tie_break, options.lookup, options.all)
    _print(explain.explain(load_spec(_folder(options), options.spec is not None), options.id, view))
    return 0


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="is made, or replaced if it holds a former export")
    _spec_argument(parser)


def _export(options: argparse.Namespace) -> int:
    from .spec_tools.export import export

    _print([export(_folder(options), options.folder)])
    return 0


def _conventions_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("adapter", metavar="ADAPTER", help="as --adapter of the suite: mypkg.mymodule:Tokenizer")


def _conventions(options: argparse.Namespace) -> int:
    from .spec_tools.conventions import find

    report = find(options.adapter)
    _print(report.lines)
    return report.status


def _check_bridge_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("adapter", metavar="cmd:PROGRAM", help='as --adapter of the suite: "cmd:node tok.js"')
    parser.add_argument("--time-limit", metavar="SECONDS", type=float, default=10.0, help="for one reply; default 10")


def _check_bridge(options: argparse.Namespace) -> int:
    from bpe_conformance.adapters import AdapterError
    from bpe_conformance.adapters.bridge import check

    if not 0 < options.time_limit <= check.LONGEST_LIMIT:
        raise CommandError(f"--time-limit {options.time_limit:g}: seconds above 0 are wanted, a day at most")
    outcomes = []
    try:
        for outcome in check.check(options.adapter, options.time_limit):
            outcomes.append(outcome)
            _print(outcome.text)
            sys.stdout.flush()
    except AdapterError as error:
        raise CommandError(str(error)) from None
    _print(check.tally(outcomes, options.adapter))
    return 1 if any(outcome.state == "FAIL" for outcome in outcomes) else 0


def _known_bugs_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--check",
        action="store_true",
        help="judge each by its cases and a sample of the others; exit 1 if the matrix or its numbers are off",
    )
    what.add_argument(
        "--measure",
        action="store_true",
        help="judge each anew by cases and properties, and write the matrix; takes minutes",
    )


def _known_bugs(options: argparse.Namespace) -> int:
    from bpe_conformance.fixtures.saving import write_text
    from bpe_conformance.fixtures.spec import load_spec

    from .known_bugs import matrix, mutation_score

    spec, reasons = load_spec(check_schema=False), mutation_score.cases_without_bug()
    if options.measure:
        found = mutation_score.compute()
        write_text(matrix.FILE, matrix.text(found))
    else:
        found = matrix.read()
    wrong = list(mutation_score.check_published(found)) if options.check else []
    if not options.check and not options.measure:
        _print(mutation_score.listed(found))
    wrong += mutation_score.gaps(found, spec, reasons)
    _print(mutation_score.totals(found, spec, reasons))
    if options.measure:
        _print(mutation_score.seeds())
    _print(wrong)
    return 1 if wrong and (options.check or options.measure) else 0


def _matrix_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words",
        nargs="*",
        metavar="ADAPTER",
        help="an adapter, named as for the --adapter option of the suite, or a REPORT.json of --bpe-report",
    )
    parser.add_argument(
        "-o", dest="folder", type=Path, required=True, metavar="DIR", help="the output directory; made if needed"
    )
    parser.add_argument(
        "--all", action="store_true", help="also test those that the project lists; installs their packages"
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="also test this implementation of that list; repeatable"
    )
    parser.add_argument(
        "--environments", type=Path, metavar="DIR", help="where to install packages; default: DIR/packages"
    )
    parser.add_argument(
        "--jobs", type=int, metavar="N", default=os.cpu_count() or 1, help="how many to test at the same time"
    )
    parser.add_argument("--isolate", action="store_true", help="run every adapter with --bpe-isolate")


def _matrix(options: argparse.Namespace) -> int:
    from importlib.resources import files

    from .command_error import unknown
    from .survey import survey
    from .survey.environments import Environments
    from .survey.implementations import implementations
    from .survey.packs import Packs

    asked, tested = survey.named(options.words)
    environments = packs = None
    if options.all or options.only:
        listed = {one.name: one for one in implementations()}
        for name in options.only or ():
            if name not in listed:
                raise unknown("implementation", name, listed, "conformance/survey/implementations.yaml")
        asked += [listed[name] for name in options.only or listed]
        environments = Environments(options.environments or options.folder / "packages")
        packs = Packs(environments)
    if not asked and not tested:
        raise CommandError("name an implementation or a report, or give --all for those that the project lists")
    survey.check_names([one.name for one in asked])
    if options.jobs < 1:
        raise CommandError(f"--jobs {options.jobs}: must be at least 1")
    further = ["--bpe-isolate"] if options.isolate else []
    adapters = Path(str(files("bpe_conformance.adapters")))
    folder = options.folder.absolute()
    plan = survey.Survey(folder, adapters, environments, packs, options.jobs, further)
    for one in plan.run(asked):
        _print([one.line])
        sys.stdout.flush()
        tested.append(one)
    order = {one.name: place for place, one in enumerate(asked)}
    tested.sort(key=lambda one: order.get(one.name, -1))
    _print(f"wrote {options.folder / file.name}" for file in survey.write(folder, tested))
    return 1 if any(one.report is None for one in tested) else 0


def _pack_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "table",
        nargs="+",
        metavar="TABLE",
        help="gpt2, cl100k or o200k; a folder or vocab.json merges.txt; a rank file (base64 rank); a tokenizer.json",
    )
    parser.add_argument("-o", dest="folder", type=Path, required=True, metavar="DIR", help="is made, or replaced")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="another seed gives other texts; default 0")
    parser.add_argument("--name", help="of the model: what an adapter with this vocabulary has as its `model`")
    parser.add_argument("--pattern", metavar="NAME_OR_REGEX", help="where the table does not say how text is split")
    parser.add_argument(
        "--special",
        action="append",
        metavar="TEXT[=ID]",
        help="a special token, where the table does not say; repeatable",
    )


def _pack(options: argparse.Namespace) -> int:
    from .packs import tables, writing

    if options.seed < 0:
        raise CommandError(f"--seed is {options.seed}; an integer of 0 or more is wanted")
    given = tables.Given(options.name, options.pattern, tables.read_special(options.special))
    _print(writing.make(tables.read_table(options.table, given), options.seed, options.folder))
    return 0


def _using(module: str, function: str) -> Callable[..., Any]:
    """Return a function of a module of `using`, which is imported when it is called."""

    def call(given: Any) -> Any:
        return getattr(import_module(f"bpe_conformance.commands.{module}"), function)(given)

    return call


COMMANDS = (
    Command(
        "list",
        "print one line for each case: id, clause, level, title",
        "list --section MERGE --level must",
        _list_arguments,
        _list,
    ),
    Command(
        "explain",
        "show a case, a clause or a law, and replay a case step by step",
        "explain merge-priority-beats-leftmost",
        _explain_arguments,
        _explain,
    ),
    Command(
        "export",
        "write the whole spec as plain JSON with its schema, for harnesses in other languages",
        "export bpe-spec",
        _export_arguments,
        _export,
    ),
    Command(
        "pack",
        "make golden cases for one model from its own table, for --bpe-pack and for harnesses in other languages",
        "pack my-model/tokenizer.json -o my-model/golden",
        _pack_arguments,
        _pack,
    ),
    Command(
        "lint",
        "check the spec: clauses, cases, models; exit 1 if a rule is broken",
        "lint --spec fixtures",
        _lint_arguments,
        _lint,
    ),
    Command(
        "regenerate",
        "recompute the expected values of the cases from the textbook oracle",
        "regenerate --check",
        _regenerate_arguments,
        _regenerate,
    ),
    Command(
        "conventions",
        "find out by probing which conventions an adapter follows, and what it should declare",
        "conventions mypkg.mymodule:Tokenizer",
        _conventions_arguments,
        _conventions,
        runs_adapters=True,
    ),
    Command(
        "check-bridge",
        "go through the protocol with a program in any language, step by step; exit 1 if it breaks a rule",
        'check-bridge "cmd:node tok.js"',
        _check_bridge_arguments,
        _check_bridge,
    ),
    Command(
        "known-bugs",
        "list the known bugs with what catches each, and say how well the suite tells right from wrong",
        "known-bugs --check",
        _known_bugs_arguments,
        _known_bugs,
    ),
    Command(
        "matrix",
        "test several implementations, each in its own process, and put the reports on one page",
        "matrix reference mypkg.mymodule:Tokenizer -o page",
        _matrix_arguments,
        _matrix,
    ),
    Command(
        "train",
        "train a tokenizer on text files, and write it in the formats that others read",
        "train book.txt --vocab-size 8192 --special '<|endoftext|>' --workers 2 -o mytok",
        _using("train", "arguments"),
        _using("train", "run"),
    ),
    Command(
        "encode",
        "turn text into ids",
        "encode gpt2 book.txt --as uint16 -o book.ids",
        _using("encode", "encode_arguments"),
        _using("encode", "encode"),
    ),
    Command(
        "decode",
        "turn ids into text",
        "decode gpt2 book.ids --as uint16",
        _using("encode", "decode_arguments"),
        _using("encode", "decode"),
    ),
    Command(
        "compare",
        "encode one's own text with two tokenizers, and show where they differ; exit 1 if they do",
        "compare mypkg.mymodule:Tokenizer tiktoken --corpus book.txt",
        _using("compare", "arguments"),
        _using("compare", "run"),
        runs_adapters=True,
    ),
)
