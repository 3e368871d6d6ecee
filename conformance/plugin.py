"""The pytest plugin. It imports the rest of the suite only when a run names it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

SUITE = Path(__file__).parent
NAME = "conformance"
RUN = "bpe-conformance-run"  # the name under which a run is registered as a plugin


WHAT = {
    "--adapter NAME": "the tokenizer to test: pkg.module:Class, a built-in name (reference, textbook, tiktoken, "
    "huggingface), cs336:MODULE, or cmd:PROGRAM",
    "--bpe-trainer NAME": "a function to train with, in place of the class's train: pkg.module:function "
    "(input_path, vocab_size, special_tokens) -> (vocab, merges)",
    "--bpe-case ID": "run exactly this case or property; repeatable",
    "--bpe-clause ID": "run the tests of this clause, or of all whose ids begin with ID and a hyphen; repeatable",
    "--bpe-section NAME": "run this section, for example MERGE; repeatable",
    "--bpe-seed N": "test the properties on more and different examples, which depend only on N",
    "--bpe-fuzz MINUTES": "test only the properties, on as many examples as fit into the time, and write "
    "counterexamples as cases",
    "--bpe-scale": "also test inputs of 70,000 to a million characters, and how time and memory grow",
    "--bpe-corpus PATH": "also compare the GPT-2 ids of your own text with tiktoken's: a file, a directory, or stdlib "
    "(Python's own source code)",
    "--bpe-pack DIR": "test the golden cases of one model, from bpe-conformance pack, instead of the specification",
    "--bpe-spec DIR": "test the specification in this directory instead",
}
HOW = {
    "--bpe-strict": "count every SHOULD as a MUST, in verdicts and in the exit status",
    "--bpe-isolate": "run the adapter in a separate process; a crash, a native hang or (on Linux) more than 4 GiB of "
    "memory then fails only one test",
    "--bpe-time-limit SECONDS": "the time limit for one case; default 10",
    "--bpe-known-failures FILE": "read known failures from a YAML file of lines `id: reason`; an unlisted failure "
    "fails the run, and so does a listed test that passes",
    "--bpe-write-known-failures FILE": "write the failures of this run as known failures; keep the reasons, and the "
    "tests that are not selected; a run that is stopped (Ctrl-C, -x) writes nothing",
    "--bpe-show WHAT": "print every failure (failures) or every warning (warnings) in full; -v prints both",
    "--bpe-report PATH": "write a report: FILE.json, FILE.md, badge.json, FILE.html, or all of them into DIR/; "
    "repeatable",
}
"""Option, with a name for its value unless it is a flag → its help."""
SETTINGS: dict[str, dict[str, Any]] = {
    "--bpe-seed": {"type": int},
    "--bpe-fuzz": {"type": float},
    "--bpe-time-limit": {"type": float, "default": 10.0},
    "--bpe-show": {"choices": ("failures", "warnings")},
    **{f"--bpe-{name}": {"action": "append"} for name in ("case", "clause", "section", "corpus", "report")},
}


def pytest_addoption(parser: pytest.Parser) -> None:
    for name, verb, options in (("bpe-conformance", "what is", WHAT), ("bpe-conformance-how", "how it is", HOW)):
        group = parser.getgroup(name, f"byte-level BPE tokenizers: {verb} tested (pytest conformance)")
        for usage, help_text in options.items():
            option, _, metavar = usage.partition(" ")
            settings = {"metavar": metavar, **SETTINGS.get(option, {})} if metavar else {"action": "store_true"}
            group.addoption(option, help=help_text, **settings)


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
        fix = "write: pytest --pyargs bpe_conformance --adapter ..."
        raise pytest.UsageError(f"the {NAME} in this directory is not the suite; {fix}")
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
