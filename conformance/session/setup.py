"""What a run tests: the spec, the adapter and the selected tests, from pytest's options."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from bpe_conformance.fixtures.files import check_file, write_text
from bpe_conformance.fixtures.one_line import shortened
from bpe_conformance.fixtures.values import write_flow
from bpe_conformance.fixtures.yaml_file import SpecError, read_documents

from ..command_line import CommandError, check_limit
from ..implementation.implementation import Implementation, load
from ..outcome import Command
from ..properties import bind as bind_properties
from ..properties.engine import Effort, skip_reason
from ..selection import Selection
from ..spec import FOLDER, Spec, spec_in
from .fuzzing import Fuzzing

if TYPE_CHECKING:
    from .corpus import Corpus


class Given(NamedTuple):
    """What `check` gives in Python, where no command line does."""

    target: object  # what to test, or None if its name is in `--adapter`
    argument: str  # the argument of `check` as code
    stderr: int  # a copy of the standard error, which the caller closes


class Setup:
    """What a run tests, read from pytest's options. An error is a SpecError, a SelectionError or a UsageError."""

    def __init__(self, config: pytest.Config) -> None:
        option = config.getoption
        directory, seed = option("--bpe-spec"), option("--bpe-seed")
        self.config = config
        self.spec = _with_pack(spec_in(Path(directory or FOLDER)), config)
        if (seed or 0) < 0:
            raise pytest.UsageError(f"--bpe-seed {seed}: must be 0 or more")
        if directory and seed is not None:
            raise pytest.UsageError("--bpe-seed draws examples for the suite's own specification; remove --bpe-spec")
        given: Given | None = getattr(config.option, "bpe_given", None)
        self.implementation = implementation = _implementation(config, self.spec, given)
        words = ("--pyargs", "bpe_conformance") if config.option.pyargs else ("conformance",)
        line = option("--adapter"), dict(_options(config)), words, tuple(_selecting(config))
        about = implementation.spellings, implementation.fixed_model is not None, implementation.returns_pair
        corpora, argument = tuple(option("--bpe-corpus") or ()), given.argument if given else ""
        self.command = Command(*line, *about, corpora, implementation.conventions, argument)
        is_other_spec = directory or option("--bpe-pack")
        properties = [] if directory else bind_properties(self.spec.clauses, option("--bpe-scale"))
        if option("--bpe-pack"):
            properties = [property_ for property_ in properties if property_.of_packs and implementation.pack_model]
        self.corpora = _corpora(self.command.corpora)
        order = {clause: position for position, clause in enumerate(self.spec.clauses)}
        ids = {*(case.id for case in self.spec.cases), *(property_.id for property_ in properties)}
        selection = Selection(option("--bpe-case") or (), option("--bpe-clause") or (), option("--bpe-section") or ())
        is_empty = not any(map(selection.matches, self.spec.cases)) and not any(map(selection.matches, properties))
        if is_empty and not is_other_spec:
            more = filter(selection.matches, bind_properties(self.spec.clauses, to_scale=True))
            if named := ", ".join(property_.id for property_ in more):
                raise pytest.UsageError(f"{named}: tested only with --bpe-scale; add it")
        selection.check(ids, order)
        self.cases = sorted(filter(selection.matches, self.spec.cases), key=lambda case: order[case.clause.id])
        self.properties = list(filter(selection.matches, properties))
        searches = [property_ for property_ in self.properties if property_.search]
        tested = [property_ for property_ in searches if skip_reason(property_, implementation) is None]
        self.fuzzing = Fuzzing.of(config, tested)
        if self.fuzzing is not None:
            if not searches:
                raise pytest.UsageError("--bpe-fuzz needs a property that draws examples, but none is selected")
            self.cases, self.properties = [], searches
        self.effort = replace(Effort.of_seed(seed), scale=option("--bpe-scale"))
        self.late: Counter[str] = Counter()  # operation → how many of its cases of a MUST had no answer in time
        self.late_should: Counter[str] = Counter()  # the same for SHOULD
        self.late_in_a_row: Counter[str] = Counter()  # operation → how many of its last cases of a MUST had none
        listed, written = option("--bpe-known-failures"), option("--bpe-write-known-failures")
        if written and (Path(written).is_dir() or not Path(written).absolute().parent.is_dir()):
            raise SpecError(f"{written}: cannot write here: name a file in an existing directory")
        try:
            if written:
                check_file(written)
        except OSError as error:
            raise SpecError(f"{written}: cannot write here: {error.strerror}") from None
        # test → reason; and the entries of the file that is replaced
        self.known_failures = read_known_failures(Path(listed), ids) if listed else {}
        self.listed_before = read_known_failures(Path(written), ids) if written and Path(written).exists() else {}


def _with_pack(spec: Spec, config: pytest.Config) -> Spec:
    if not (directory := config.getoption("--bpe-pack")):
        return spec
    others = {name: config.getoption(name) for name in ("--bpe-spec", "--bpe-seed", "--bpe-scale")}
    if given := [name for name, value in others.items() if value not in (None, "") and value is not False]:
        raise pytest.UsageError(f"--bpe-pack tests only the model of the pack; remove {' and '.join(given)}")
    from ..packs.files import load_pack

    cases = load_pack(Path(directory), spec.clauses)
    models = {cases[0].table.name: cases[0].table} if cases else {}  # all cases have one model
    return replace(spec, cases=cases, models={**spec.models, **models})


def _implementation(config: pytest.Config, spec: Spec, given: Given | None) -> Implementation:
    """Import the adapter and find out what it supports; its output is dropped. An engine's model must be the pack's."""
    name, limit = config.getoption("--adapter"), config.getoption("--bpe-time-limit")
    if not name:
        either = "--adapter mypkg.mymodule:Tokenizer (or --adapter reference, to see a passing run)"
        raise pytest.UsageError(f"name what to test: pytest conformance {either}")
    stderr = given.stderr if given else os.dup(2)  # while pytest captures, 2 is a file
    if (capture := config.pluginmanager.getplugin("capturemanager")) is not None:
        capture.resume_global_capture()
    try:
        check_limit("--bpe-time-limit", limit)
        trainer, isolate = config.getoption("--bpe-trainer"), config.getoption("--bpe-isolate")
        target = given.target if given else None
        if isolate and target is not None:
            raise pytest.UsageError(f'isolate=True needs a name that a new process can import: "mymodule:{name}"')
        loaded = load(name, trainer, isolate, limit, stderr, target)
        if (pack := config.getoption("--bpe-pack")) and spec.cases:
            from ..packs.files import fit

            fit(loaded, spec.cases[0].table, pack)
            if (model := spec.cases[0].table.name) != (own := loaded.fixed_model or model):
                if Path(own).is_absolute():
                    said = "which is not a file; write the path of its tokenizer.json"
                else:
                    said = f"but the pack is for {model!a}; if they have the same vocabulary, write model = {model!a}"
                raise CommandError(f"{loaded.name}: the attribute model is {shortened(own)}, {said}")
        return loaded
    except CommandError as error:
        raise pytest.UsageError(str(error)) from None
    finally:
        if capture is not None:
            capture.suspend_global_capture(in_=False)
            capture.read_global_capture()


def _options(config: pytest.Config) -> Iterator[tuple[str, str]]:
    """Yield the options on which the state of a case depends, with their values; "" is the value of a flag."""
    names = ("trainer", "spec", "pack", "seed", "fuzz", "time-limit", "isolate", "strict", "scale", "known-failures")
    for name in map("--bpe-{}".format, names):
        value = config.getoption(name)
        if value is not None and value is not False and (name, value) != ("--bpe-time-limit", 10):
            is_flag = value is True or name == "--bpe-isolate"  # whose value is a Confinement in `grade`
            yield name, "" if is_flag else f"{value:g}" if isinstance(value, float) else str(value)
    yield from (("-o", one) for one in config.getoption("override_ini") or () if one.startswith("addopts="))


def _selecting(config: pytest.Config) -> Iterator[str]:
    for name in ("--bpe-section", "--bpe-clause", "--bpe-case"):
        for value in config.getoption(name) or ():
            yield from (name, value.upper() if name == "--bpe-section" else value)
    if config.option.keyword:
        yield from ("-k", config.option.keyword)


def _corpora(paths: Sequence[str]) -> list[Corpus]:
    if not paths:
        return []
    from . import corpus

    corpus.check_engine()
    corpora: list[Corpus] = []
    for added in map(corpus.find, paths):
        corpora.append(replace(added, number=1 + sum(other.name == added.name for other in corpora)))
    return corpora


def read_known_failures(file: Path, known_ids: Collection[str]) -> dict[str, str]:
    """Return id → reason; a SpecError if the file is malformed or names an id that does not exist."""
    failures: dict[str, str] = {}
    try:
        documents = [*read_documents(file)]
    except SpecError as error:
        what = "; expected a YAML file of known failures, as --bpe-write-known-failures writes it" if error.line else ""
        raise SpecError(f"{error.message}{what}", error.file, error.line) from None
    for document in documents:
        if not isinstance(document.value, dict):
            raise document.error((), "expected a mapping of id to reason")
        for key, reason in document.value.items():
            if key not in known_ids:
                fix = "correct the id, or remove the line if a new version has dropped the test"
                raise document.error((key,), f"there is no case or property {shortened(key)}; {fix}")
            if not isinstance(reason, str) or not reason.strip():
                raise document.error((key,), f"{key} needs a reason, in quotes")
            failures[str(key)] = reason
    return failures


def write_known_failures(file: Path, failures: Mapping[str, str]) -> None:
    head = "# Known failures, `id: reason`. A listed test that passes fails the run: remove it from the list."
    lines = (f"{key}: {write_flow(reason)}" for key, reason in sorted(failures.items()))
    write_text(file, "\n".join([head, *lines, ""]))
