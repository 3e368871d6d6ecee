"""The pytest plugin. It imports the rest of the suite only when a run names it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

SUITE = Path(__file__).parent
NAME = "conformance"
RUN = "bpe-conformance-run"
"""The name under which a run is registered as a plugin."""


def pytest_addoption(parser: pytest.Parser) -> None:
    what = parser.getgroup("bpe-conformance", "byte-level BPE tokenizers: what is tested (pytest conformance)")
    what.addoption(
        "--adapter",
        metavar="NAME",
        help="the tokenizer to test: pkg.module:Class, a built-in name (reference, textbook, tiktoken, huggingface), "
        "cs336:MODULE, or cmd:PROGRAM",
    )
    what.addoption(
        "--bpe-trainer",
        metavar="NAME",
        help="the trainer for a class that has none: a function pkg.module:function "
        "(input_path, vocab_size, special_tokens) -> (vocab, merges)",
    )
    what.addoption("--bpe-case", metavar="ID", action="append", help="run exactly this case or property; repeatable")
    what.addoption(
        "--bpe-clause",
        metavar="ID",
        action="append",
        help="run the tests of this clause, or of all clauses whose ids begin with ID; repeatable",
    )
    what.addoption(
        "--bpe-section", metavar="NAME", action="append", help="run this section, for example MERGE; repeatable"
    )
    what.addoption(
        "--bpe-seed",
        metavar="N",
        type=int,
        help="test the properties on more and different examples, which depend only on N",
    )
    what.addoption(
        "--bpe-fuzz",
        metavar="MINUTES",
        type=float,
        help="test only the properties, on as many examples as fit into the time, and write counterexamples as cases",
    )
    what.addoption(
        "--bpe-scale",
        action="store_true",
        help="also test inputs of 70,000 to a million characters, and how time and memory grow",
    )
    what.addoption(
        "--bpe-corpus",
        metavar="PATH",
        action="append",
        help="also compare the GPT-2 ids of your own text with tiktoken's: a file, a directory, or stdlib "
        "(Python's own source code)",
    )
    what.addoption(
        "--bpe-pack",
        metavar="DIR",
        help="test the golden cases of one model, from bpe-conformance pack, instead of the specification",
    )
    what.addoption("--bpe-spec", metavar="DIR", help="test the specification in this directory instead")

    how = parser.getgroup("bpe-conformance-how", "byte-level BPE tokenizers: how it is tested (pytest conformance)")
    how.addoption("--bpe-strict", action="store_true", help="fail the run if a SHOULD test fails")
    how.addoption(
        "--bpe-isolate",
        action="store_true",
        help="run the adapter in a separate process; a crash, a native hang or (on Linux) more than 4 GiB of memory "
        "then fails only one test",
    )
    how.addoption(
        "--bpe-time-limit", metavar="SECONDS", type=float, default=10.0, help="the time limit for one case; default 10"
    )
    how.addoption(
        "--bpe-known-failures",
        metavar="FILE",
        help="read known failures from a YAML file of lines `id: reason`; an unlisted failure fails the run, and so "
        "does a listed test that passes",
    )
    how.addoption(
        "--bpe-write-known-failures",
        metavar="FILE",
        help="write the failures of this run as known failures; keep the reasons, and the tests that do not run",
    )
    how.addoption(
        "--bpe-report",
        metavar="PATH",
        action="append",
        help="write a report: FILE.json, FILE.md, badge.json, FILE.html, or all of them into DIR/; repeatable",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Replace the word `conformance` among the arguments by the installed suite, and resolve the adapter."""
    if not _name_suite(config):
        return
    from bpe_conformance.fixtures.yaml_file import SpecError

    from .selection import SelectionError
    from .session.run import Run

    try:
        run = Run(config)
    except (SpecError, SelectionError) as error:
        raise pytest.UsageError(str(error)) from None
    config.pluginmanager.register(run, RUN)


def _name_suite(config: pytest.Config) -> bool:
    named, foreign = False, False
    for index, argument in enumerate(config.args):
        path, _, name = str(argument).partition("::")
        if _is_suite(path, config):
            config.args[index] = str(SUITE)
            if name:  # pytest takes no :: after a directory
                config.option.bpe_case = [*(config.option.bpe_case or ()), name]
            named = True
        elif Path(path).name == NAME and Path(config.invocation_params.dir, path).exists():
            foreign = True
    asked = any(str(word).startswith("--adapter") for word in config.invocation_params.args)
    if asked and not named and not foreign and not hasattr(config, "workerinput"):
        raise pytest.UsageError("--adapter needs the name of the suite; write: pytest conformance --adapter ...")
    if foreign and not named and config.getoption("--adapter"):
        raise pytest.UsageError(
            f"the {NAME} in this directory is not the suite; write: pytest --pyargs bpe_conformance --adapter ..."
        )
    return named


def _is_suite(path: str, config: pytest.Config) -> bool:
    if config.option.pyargs and path == "bpe_conformance":
        return True
    here = Path(config.invocation_params.dir, path)
    if here == SUITE:
        return True
    if here.name != NAME:
        return False
    if not here.exists():
        return path.rstrip("/") == NAME
    return (here / "SPEC.md").is_file() and (here / "plugin.py").is_file()


@pytest.hookimpl(tryfirst=True)
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Keep the user's ignore rules (`.venv`, for example) away from the suite, wherever it is installed."""
    if not config.pluginmanager.hasplugin(RUN):
        return None
    if collection_path == SUITE or collection_path in SUITE.parents:
        return False
    environment = Path(sys.prefix)
    inside = environment in SUITE.parents and environment in collection_path.parents
    return True if inside and config.rootpath in environment.parents else None


@pytest.hookimpl(tryfirst=True)
def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the suite's directory as cases and properties."""
    if path != SUITE or not parent.config.pluginmanager.hasplugin(RUN):
        return None
    from .session.items import Suite

    suite: Any = Suite.from_parent(parent, path=path, nodeid=NAME)
    return suite  # type: ignore[no-any-return]
