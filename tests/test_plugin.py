"""Which words on the command line name the suite, and which directories pytest collects because of it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bpe_conformance import plugin
from bpe_conformance.plugin import SUITE

ADAPTER = ["--adapter", "textbook"]


def config(folder: Path, arguments: list[str], options: list[str], pyargs: bool = False, **others: Any) -> Any:
    """Return what the plugin reads of a pytest.Config; `others` are set in a file of settings."""
    values = {"--adapter": "textbook" if options else None, **others}
    return SimpleNamespace(
        args=[*arguments],
        option=SimpleNamespace(pyargs=pyargs, bpe_case=None),
        invocation_params=SimpleNamespace(dir=folder, args=[*options, *arguments]),
        getoption=values.__getitem__,
    )


def named(made: Any) -> list[str] | None:
    """Return the arguments of pytest, with `suite` for the suite, or None if no suite is named."""
    is_named = plugin._name_suite(made)
    shown = ["suite" if argument == str(SUITE) else argument for argument in made.args]
    assert is_named == ("suite" in shown)
    return shown if is_named else None


@pytest.mark.parametrize(
    ("arguments", "expected", "cases"),
    [
        (["conformance"], ["suite"], None),
        (["conformance/"], ["suite"], None),
        (["conformance", "tests"], ["suite", "tests"], None),
        (["tests", "conformance"], ["tests", "suite"], None),
        (["conformance::a", "conformance::b"], ["suite", "suite"], ["a", "b"]),
        ([str(SUITE)], ["suite"], None),
        (["elsewhere/conformance"], ["suite"], None),  # a clone
    ],
)
def test_the_suite_takes_the_place_of_the_words_that_name_it(
    tmp_path: Path, arguments: list[str], expected: list[str], cases: list[str] | None
) -> None:
    clone = tmp_path / "elsewhere" / "conformance"
    clone.mkdir(parents=True)
    for file in ("SPEC.md", "plugin.py"):
        (clone / file).touch()
    made = config(tmp_path, arguments, ADAPTER)
    assert named(made) == expected
    assert made.option.bpe_case == cases


@pytest.mark.parametrize("files", [[], ["plugin.py"], ["SPEC.md"], ["test_mine.py"]])
def test_a_directory_of_that_name_is_not_the_suite(tmp_path: Path, files: list[str]) -> None:
    (tmp_path / "conformance").mkdir()
    for file in files:
        (tmp_path / "conformance" / file).touch()
    assert named(config(tmp_path, ["conformance"], [])) is None
    with pytest.raises(pytest.UsageError, match="the conformance in this directory is not the suite"):
        named(config(tmp_path, ["conformance"], ADAPTER))
    both = ["conformance", "bpe_conformance"]
    assert named(config(tmp_path, both, ADAPTER, pyargs=True)) == ["conformance", "suite"]
    with pytest.raises(pytest.UsageError, match="the conformance in this directory is not the suite"):
        named(config(tmp_path, both, ADAPTER))


def test_an_adapter_without_the_suite_is_refused_on_the_command_line_only(tmp_path: Path) -> None:
    assert named(config(tmp_path, ["tests"], [])) is None
    by_settings = config(tmp_path, ["tests"], [], **{"--adapter": "textbook"})
    assert named(by_settings) is None
    plugin.pytest_configure(by_settings)  # which begins no run
    for options in (ADAPTER, ["--adapter=textbook"]):
        with pytest.raises(pytest.UsageError, match="--adapter needs the name of the suite"):
            named(config(tmp_path, ["elsewhere/conformance"], options))


def test_of_the_environment_of_a_project_only_the_suite_is_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = tmp_path / ".venv"
    packages = environment / "lib" / "site-packages"
    monkeypatch.setattr(plugin, "SUITE", packages / "bpe_conformance")
    monkeypatch.setattr(sys, "prefix", str(environment))
    paths = [packages / "bpe_conformance", packages, environment, packages / "other", tmp_path / "tests"]
    for runs, root, expected in (
        (True, tmp_path, [False, False, False, True, None]),
        (True, tmp_path / "elsewhere", [False, False, False, None, None]),
        (False, tmp_path, [None] * 5),
    ):
        manager = SimpleNamespace(hasplugin=lambda name, runs=runs: runs)
        made: Any = SimpleNamespace(pluginmanager=manager, rootpath=root)
        assert [plugin.pytest_ignore_collect(path, made) for path in paths] == expected
