"""`check` runs the suite in the process of a notebook or a script, and returns a result that shows itself."""

from __future__ import annotations

import builtins
import contextlib
import difflib
import inspect
import io
import operator
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bpe_conformance.fixtures.yaml_file import SpecError

from . import plugin
from .outcome import RunResult
from .report import document
from .selection import SelectionError
from .session.run import Run
from .session.setup import Given
from .terminal import causes, summary

COLOURS = {"red": "color:#b00", "green": "color:#070", "yellow": "color:#860", "bold": "font-weight:bold"}
"""Markup of pytest's terminal → CSS."""
WITHOUT = ("cacheprovider", "faulthandler", "logging")  # plugins of pytest that write files or change the process
AFTER, INTERVAL = 2.0, 0.5  # seconds until the progress line comes, and between two updates


class Result:
    """What `check` returns. It shows itself: as text, and in colour in a notebook."""

    def __init__(self, result: RunResult, show: str | None) -> None:
        self._result = result
        self._text = _Text()
        in_full = not {"--bpe-case", "--bpe-fuzz"}.isdisjoint((*result.command.selecting, *result.command.options))
        summary.write(self._text, result, summary.failures(self._text, result, in_full, show))

    @property
    def passed(self) -> bool:
        """Whether something was tested, and no MUST test failed apart from known failures: the exit status is 0."""
        return self._result.exit_status == 0

    @property
    def verdicts(self) -> dict[str, str]:
        """Conformance class → `pass`, `fail`, or `error` if the suite itself failed; without what was not tested."""
        return {verdict.name: verdict.word for verdict in self._result.verdicts}

    @property
    def causes(self) -> list[str]:
        """The names of the likely causes of failures; the one that explains most is first."""
        diagnosis = self._result.diagnosis
        return [] if diagnosis.warnings else [causes.name(cause) for cause in diagnosis.causes]

    @property
    def failures(self) -> list[str]:
        """The ids of the tests that failed."""
        return [each.test for each in self._result.outcomes if each.state in ("failed", "error")]

    @property
    def report(self) -> dict[str, Any]:
        """The whole result, as `--bpe-report FILE.json` writes it."""
        return dict(document.build(self._result))

    def __repr__(self) -> str:
        parts = ((f" {title} ".center(80, "="), *(line for line, _ in lines)) for title, lines in self._text.parts)
        return "\n".join(line for part in parts for line in part)

    def _repr_html_(self) -> str:
        verdicts = _Text()
        verdicts.write_sep("", "")
        summary.verdicts(verdicts, self._result)
        *parts, (title, lines) = self._text.parts
        shown = [_html(verdicts.parts[0][1]), *(f"<h4>{title}</h4>{_html(lines)}" for title, lines in parts)]
        return "".join([*shown, f"<details><summary>{title}</summary>{_html(lines)}</details>"])


class _Text:
    """Takes the place of pytest's terminal: keeps the lines, each with its markup, below their titles."""

    def __init__(self) -> None:
        self.parts: list[tuple[str, list[tuple[str, Mapping[str, bool]]]]] = []

    def write_sep(self, _sep: str, title: str, **_markup: bool) -> None:
        self.parts.append((title, []))

    def write_line(self, line: str, **markup: bool) -> None:
        self.parts[-1][1].append((line, markup))

    line = write_line


def _html(lines: list[tuple[str, Mapping[str, bool]]]) -> str:
    from markupsafe import escape

    def row(line: str, markup: Mapping[str, bool]) -> str:
        style = ";".join(css for name, css in COLOURS.items() if markup.get(name))
        return f'<span style="{style}">{escape(line)}</span>' if style else escape(line)

    return f"<pre>{chr(10).join(row(*line) for line in lines)}</pre>"


class _Plugin:
    """A plugin for one call of pytest: the suite's options, its run, and a line of progress."""

    pytest_addoption = staticmethod(plugin.pytest_addoption)
    pytest_collect_directory = staticmethod(plugin.pytest_collect_directory)

    def __init__(self, given: Given) -> None:
        self.run: Run | None = None
        self.refusal = ""  # why the run cannot start, in one line
        self._given, self._stderr = given, sys.stderr
        self._shows = hasattr(builtins, "__IPYTHON__") or self._stderr.isatty()
        self._done, self._drawn, self._width = 0, time.monotonic() + AFTER, 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.option.bpe_given = self._given
        try:
            self.run = Run(config, ends_process=False)
        except (pytest.UsageError, SelectionError, SpecError) as error:
            self.refusal = str(error)
            raise pytest.UsageError(self.refusal) from None
        config.pluginmanager.register(self.run, plugin.RUN)

    def pytest_runtest_logstart(self) -> None:
        self._done += 1
        if self._shows and self.run is not None and time.monotonic() - self._drawn > INTERVAL:
            self._drawn = time.monotonic()
            self._write(f"{self._done:,} of {len(self.run.expected):,} tests")

    def pytest_sessionfinish(self) -> None:
        if self._width:
            self._write("")

    def _write(self, line: str) -> None:
        self._stderr.write(f"\r{line:<{self._width}}{'' if line else chr(13)}")
        self._stderr.flush()
        self._width = len(line)


def check(tokenizer: object, **options: Any) -> Result:
    """Run the suite on a tokenizer in this process, and return the result, which shows itself.

    The call leaves the process as it was, apart from the modules that it imports. A call of the tokenizer that exceeds
    the time limit is interrupted; native code that hangs ends the process after some minutes.

    Args:
        tokenizer: a class or a function of the adapter protocol, or what `--adapter` takes, as text.
        options: those of `pytest conformance` without `--bpe-`: `section="MERGE"`, `strict=True`, `time_limit=2`.
            `trainer` can also be the function.

    Raises:
        TypeError: if there is no such option.
        ValueError: if the tokenizer or the value of an option cannot be used; one line.
        KeyboardInterrupt: if the run is interrupted; what it has found so far is printed.
    """
    is_name = isinstance(tokenizer, str)
    if error := _unusable(tokenizer):
        raise ValueError(error)
    name = str(tokenizer) if is_name else str(getattr(tokenizer, "__name__", type(tokenizer).__name__))
    arguments = [str(plugin.SUITE), f"--adapter={name}", *_arguments(options)]
    arguments += ["-c", os.devnull, f"--rootdir={Path.cwd()}", "--noconftest", "--assert=plain", "--capture=sys"]
    arguments += [f"-pno:{without}" for without in WITHOUT]
    printed = io.StringIO()
    with contextlib.ExitStack() as stack:
        stderr = os.dup(2)
        stack.callback(os.close, stderr)
        own = _Plugin(Given(None if is_name else tokenizer, repr(name) if is_name else name, stderr))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.chdir(Path.cwd())
        patch.setattr(sys, "path", [*sys.path])
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        for variable in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
            patch.delenv(variable, raising=False)
        stack.enter_context(contextlib.redirect_stdout(printed))
        stack.enter_context(contextlib.redirect_stderr(printed))
        status = pytest.main(arguments, [own])
    if status == pytest.ExitCode.USAGE_ERROR:
        refusal = own.refusal or printed.getvalue().strip()
        if is_name and callable(getattr(sys.modules["__main__"], name, None)):
            refusal = f"to test your class {name}, leave out the quotes: check({name}); {refusal}"
        raise ValueError(re.sub("--bpe-([a-z-]+)", lambda option: option[1].replace("-", "_"), refusal))
    if own.run is None or own.run.result is None or status == pytest.ExitCode.INTERNAL_ERROR:
        raise RuntimeError(f"the suite itself failed; please report this\n{printed.getvalue()}")
    result = Result(own.run.result, options.get("show"))
    if status == pytest.ExitCode.INTERRUPTED:
        print(result)
        raise KeyboardInterrupt
    return result


def _unusable(tokenizer: object) -> str:
    """Return why `check` cannot test this, and what to pass instead, or ""."""
    if isinstance(tokenizer, str | type):
        return ""
    kind = type(tokenizer).__name__
    if isinstance(tokenizer, ModuleType):
        name = tokenizer.__name__
        is_cs336 = hasattr(tokenizer, "get_tokenizer") or hasattr(tokenizer, "run_train_bpe")
        fix = f"write check('cs336:{name}')" if is_cs336 else f"pass its class, as in check({name}.Tokenizer)"
        return f"check: {name} is a module; {fix}"
    if any(hasattr(tokenizer, method) for method in ("encode", "decode", "train")):
        return f"check: this is an object of the class {kind}; pass the class itself, as in check({kind})"
    if not callable(tokenizer):
        return f"check: this is of type {kind}; expected a class, a function, or the name of an adapter"
    return ""


def _arguments(options: Mapping[str, Any]) -> Iterator[str]:
    usages = dict(usage.partition(" ")[::2] for usage in {**plugin.WHAT, **plugin.HOW} if usage.startswith("--bpe-"))
    known = {option.removeprefix("--bpe-").replace("-", "_"): option for option in usages}
    for name, value in options.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            fix = f"did you mean {close[0]}?" if close else f"it has {', '.join(known)}"
            raise TypeError(f"check has no option {name!r}; {fix}")
        values = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
        if not values:
            raise ValueError(f"{name}={value!r} selects no test; leave out {name} to run all tests")
        option = known[name]
        for each in values:
            if each is None or (each is False and not usages[option]):
                continue
            if error := _wrong(option, each, bool(usages[option])):
                raise ValueError(f"{name}={each!r}: expected {error}")
            text = _function(each) if name == "trainer" and callable(each) else each
            yield f"{option}={text}" if usages[option] else option


def _wrong(option: str, value: object, takes_value: bool) -> str:
    """Return what an option expects if it does not take this value, or ""."""
    settings = plugin.SETTINGS.get(option, {})
    kind, choices = settings.get("type"), settings.get("choices")
    if not takes_value:
        return "" if value is True else "True or False"
    if choices is not None:
        return "" if value in choices else " or ".join(map(repr, choices))
    if kind is None:
        is_function = option == "--bpe-trainer" and inspect.isroutine(value)
        return "" if is_function or isinstance(value, str | os.PathLike) else "text"
    try:
        kind(str(value))
    except ValueError:
        return "an integer" if kind is int else "a number"
    return ""


def _function(function: Any) -> str:
    """Return the name of a function, as `--bpe-trainer` takes it."""
    module, name = function.__module__, function.__qualname__
    try:
        is_there = operator.attrgetter(name)(sys.modules.get(module)) == function
    except AttributeError:
        is_there = False
    if not is_there:
        raise ValueError(f"trainer={name}: define the function in a cell or a module, not inside other code")
    return f"{module}:{name}"
