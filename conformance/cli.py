"""The command `bpe-conformance`: the table of subcommands. A subcommand imports its module only when it runs."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

from . import __version__
from .command_line import CommandError, TerminatedBySignal, discard, print_error, raised_signals
from .selection import SelectionError

BROKEN_PIPE = 141  # the exit status that a shell reports for a program that SIGPIPE ended
INTERRUPTED = 130  # the exit status that a shell reports for a program that SIGINT ended


@dataclass(frozen=True)
class Subcommand:
    """One subcommand, with arguments of an example.

    Its module has the functions `arguments`, which adds the arguments to a parser, and `run`, which returns the exit
    status; `prefix` is a prefix of both names. If it runs adapters in this process, it leaves signals alone, since the
    processes that an adapter forks would inherit their handlers.
    """

    name: str
    module: str
    example: str
    prefix: str = ""
    runs_adapters: bool = False

    def function(self, name: str) -> Callable[[Any], Any]:
        found: Callable[[Any], Any] = getattr(import_module(f".{self.module}", __package__), self.prefix + name)
        return found


COMMANDS = (
    Subcommand("list", "spec_tools.listing", "--section MERGE --level must"),
    Subcommand("explain", "commands.explain", "merge-priority-beats-leftmost"),
    Subcommand("export", "spec_tools.export", "bpe-spec"),
    Subcommand("pack", "packs.build", "my-model/tokenizer.json -o my-model/golden"),
    Subcommand("inspect", "packs.inspect", "my-model/tokenizer.json"),
    Subcommand("lint", "spec_tools.lint", "--spec fixtures"),
    Subcommand("regenerate", "spec_tools.regenerate", "--check"),
    Subcommand("conventions", "spec_tools.conventions", "mypkg.mymodule:Tokenizer", runs_adapters=True),
    Subcommand("check-bridge", "commands.check_bridge", '"cmd:node tok.js"'),
    Subcommand("known-bugs", "known_bugs.matrix", "greedy-left-to-right"),
    Subcommand("matrix", "report.matrix", "reference mypkg.mymodule:Tokenizer -o page"),
    Subcommand("grade", "commands.grade", "submissions/* --adapter tok:Tokenizer --seed 4711 -o results"),
    Subcommand("train", "commands.train", "book.txt --vocab-size 8192 --special '<|endoftext|>' --workers 2 -o mytok"),
    Subcommand("encode", "commands.encode", "gpt2 book.txt --as uint16 -o book.ids", "encode_"),
    Subcommand("decode", "commands.encode", "gpt2 book.ids --as uint16", "decode_"),
    Subcommand(
        "compare", "commands.compare", "mypkg.mymodule:Tokenizer tiktoken --corpus book.txt", runs_adapters=True
    ),
)
HELP = {
    "list": "print one line for each case and property: id, clause, level, title",
    "explain": "show a case, a clause, a section, a property or a known bug; replay a case step by step",
    "export": "write the specification as plain JSON with its schema, for test runners in other languages",
    "pack": "make golden cases for one model from its own files, for --bpe-pack and for test runners in other "
    "languages",
    "inspect": "show what a model is, and what is odd about it; or what each of its steps makes of one text",
    "lint": "check the clauses, cases and models of the specification; exit 1 if one breaks a rule",
    "regenerate": "recompute the expected values of the cases with the textbook oracle",
    "conventions": "probe which conventions an adapter follows, and print what it should declare",
    "check-bridge": "test a program in any language against the wire protocol, step by step; exit 1 if it breaks a "
    "rule",
    "known-bugs": "list the known bugs with the tests that catch them, or show one",
    "matrix": "test several implementations, each in its own process, and compare them on one page",
    "grade": "test submissions, each confined to its own directory and processes, and write a table of marks",
    "train": "train a tokenizer on text files, and write it in formats that other programs read",
    "encode": "turn text into ids",
    "decode": "turn ids into text",
    "compare": "show where two tokenizers differ on your own text; exit 1 if their ids or their models differ",
}


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        from bpe_conformance.fixtures.one_line import one_line

        self.exit(2, f"{self.prog}: {one_line(message)}; see {self.prog} --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        words = sys.argv[1:] if arguments is None else list(arguments)
        parser = _parser(words)
        options, unknown = parser.parse_known_args(words)
        if unknown:
            parser.prog += f" {options.command}"
            parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        command = next(command for command in COMMANDS if command.name == options.command)
        with nullcontext() if command.runs_adapters else raised_signals():
            status = _run(command, options)
    except BrokenPipeError:
        status = BROKEN_PIPE  # the reader has closed the pipe, as `| head` does
    except KeyboardInterrupt as error:
        if isinstance(error, TerminatedBySignal):
            print_error(f"ended by {signal.Signals(error.number).name}")
            status = 128 + error.number
        else:
            print_error("interrupted")
            status = INTERRUPTED
    return _flushed(status)


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
        epilog = f"example: bpe-conformance {command.name} {command.example}"
        one = commands.add_parser(command.name, help=HELP[command.name], description=HELP[command.name], epilog=epilog)
        if command.name in words:
            command.function("arguments")(one)
    return parser


def _run(command: Subcommand, options: argparse.Namespace) -> int:
    from bpe_conformance.fixtures.yaml_file import SpecError

    try:
        status: int = command.function("run")(options)
        return status
    except BrokenPipeError:
        raise
    except (CommandError, SelectionError, SpecError) as error:
        return _failed(str(error))
    except OSError as error:
        file = f"{error.filename}: " if error.filename else ""
        return _failed(f"{file}{error.strerror or error}")


def _failed(message: str) -> int:
    from bpe_conformance.fixtures.one_line import escaped

    print_error(escaped(message))
    return 2


def _flushed(status: int) -> int:
    if sys.stdout is None:
        return status
    try:
        sys.stdout.flush()
    except OSError as error:
        discard(sys.stdout)
        if isinstance(error, BrokenPipeError):
            return status or BROKEN_PIPE
        if not status:
            return _failed(f"standard output: {error.strerror or error}")
    return status
