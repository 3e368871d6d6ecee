"""Imports between packages run one way, and a plain pytest run imports little."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from bpe_conformance.operations import OPERATIONS

ROOT = Path(__file__).parent.parent
PACKAGES = {
    "conformance": "bpe_conformance",
    "reference": "bpe_conformance.reference",
    "fixtures": "bpe_conformance.fixtures",
    "adapters": "bpe_conformance.adapters",
}


@cache
def _imports(file: Path) -> set[str]:
    """Return every module of ours that `file` imports, as an absolute name."""
    folder = file.relative_to(ROOT).parts[0]
    package = ".".join([PACKAGES[folder], *file.relative_to(ROOT).parts[1:-1]])
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "bpe_conformance"}


def _files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def _under(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


@pytest.mark.parametrize("file", _files("fixtures"), ids=lambda file: file.name)
def test_fixtures_import_no_other_directory(file: Path) -> None:
    assert all(_under(name, "bpe_conformance.fixtures") for name in _imports(file))


@pytest.mark.parametrize("file", _files("reference"), ids=lambda file: str(file.relative_to(ROOT)))
def test_the_reference_imports_at_most_fixtures_and_never_the_oracle(file: Path) -> None:
    names = _imports(file)
    path = file.relative_to(ROOT / "reference").as_posix()
    oracles = ("bpe_conformance.reference.textbook", "bpe_conformance.reference.superbpe.textbook")
    if path == "textbook.py":
        assert all(_under(name, "bpe_conformance.fixtures") for name in names)
    elif path == "superbpe/textbook.py":
        allowed = names - {"bpe_conformance.reference"}
        assert all(_under(name, "bpe_conformance.fixtures", oracles[0]) for name in allowed)
    else:
        assert all(_under(name, "bpe_conformance.fixtures", "bpe_conformance.reference") for name in names)
        assert not any(_under(name, *oracles) for name in names)
        assert path.startswith("superbpe/") or not any(
            _under(name, "bpe_conformance.reference.superbpe") for name in names
        )


@pytest.mark.parametrize("folder", PACKAGES)
def test_no_modules_import_one_another_in_a_circle(folder: str) -> None:
    """Imports inside functions and for types count as well."""
    files = {
        ".".join([PACKAGES[folder], *file.relative_to(ROOT).with_suffix("").parts[1:]]): file for file in _files(folder)
    }
    graph = {name: _imports(file) & (files.keys() - {name}) for name, file in files.items()}
    while free := {name for name, imported in graph.items() if not imported & graph.keys()}:
        graph = {name: imported for name, imported in graph.items() if name not in free}
    assert graph == {}


LAYERS: dict[str, tuple[str, ...]] = {
    "command_line": (),
    "protocol": (),
    "wheel": (),
    "answer": (),
    "implementation": ("answer", "command_line"),
    "operations": ("answer", "implementation"),
    "spec": ("operations",),
    "selection": ("operations", "spec"),
    "outcome": ("answer", "operations", "spec"),
    "terminal": ("protocol", "answer", "operations", "outcome"),
    "cases": ("answer", "implementation", "operations", "spec", "outcome"),
    "properties": ("answer", "implementation", "operations", "spec", "outcome", "cases"),
    "known_bugs": (
        "command_line",
        "answer",
        "implementation",
        "operations",
        "spec",
        "selection",
        "outcome",
        "cases",
        "properties",
    ),
    "spec_tools": (
        "command_line",
        "answer",
        "implementation",
        "operations",
        "spec",
        "selection",
        "outcome",
        "terminal",
        "cases",
        "properties",
        "known_bugs",
    ),
    "packs": (
        "command_line",
        "answer",
        "implementation",
        "operations",
        "spec",
        "terminal",
        "known_bugs",
        "spec_tools",
    ),
    "report": ("command_line", "operations", "spec", "outcome", "terminal", "packs"),
    "session": (
        "command_line",
        "answer",
        "implementation",
        "operations",
        "spec",
        "selection",
        "outcome",
        "terminal",
        "report",
        "cases",
        "properties",
        "known_bugs",
        "packs",
    ),
    "plugin": ("selection", "session"),
    "notebook": ("outcome", "selection", "terminal", "report", "session", "plugin"),
    "commands": (
        "command_line",
        "answer",
        "implementation",
        "operations",
        "spec",
        "selection",
        "outcome",
        "terminal",
        "properties",
        "known_bugs",
        "spec_tools",
        "packs",
        "report",
        "session",
        "plugin",
    ),
    "cli": ("command_line", "selection"),
}
"""Package or module of `conformance/`, from the bottom up → those of its siblings that it may import."""


def test_the_layers_of_the_suite_are_complete_and_go_one_way() -> None:
    entries = (path.stem for path in (ROOT / "conformance").iterdir() if path.is_dir() or path.suffix == ".py")
    assert {name for name in entries if not name.startswith("_")} == {*LAYERS}
    names = list(LAYERS)
    assert all(names.index(below) < place for place, name in enumerate(names) for below in LAYERS[name])


def _owner(name: str) -> str:
    """Return the package or module of `conformance/` that a module belongs to, or ""."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in LAYERS else ""


@pytest.mark.parametrize("package", LAYERS)
def test_imports_between_the_packages_of_the_suite_go_one_way(package: str) -> None:
    root = ROOT / "conformance" / package
    files = sorted(root.rglob("*.py")) if root.is_dir() else [root.with_suffix(".py")]
    found = {(file.name, owner) for file in files for name in _imports(file) if (owner := _owner(name))}
    assert {(file, owner) for file, owner in found if owner not in (package, *LAYERS[package])} == set()


_SIGNATURE = ("", ".takes", ".takes_others", ".train_fault", ".is_like_minbpe")
REMOTE = (
    "bpe_conformance.adapters",
    "bpe_conformance.adapters.CAPABILITIES",
    "bpe_conformance.adapters.RemoteError",
    "bpe_conformance.adapters.RemoteTokenizer",
    "bpe_conformance.adapters.TESTABLE",
    *(f"bpe_conformance.adapters.signature{name}" for name in _SIGNATURE),
)
"""The names that the suite may use from the adapters."""
WRITES_MODELS = (
    "implementation/implementation.py",
    "known_bugs/bases.py",
    "packs/build.py",
    "packs/inspect.py",
    "packs/files.py",
    "spec_tools/export.py",
    "spec_tools/witnesses.py",
    "terminal/reproduce.py",
)
"""The modules that read or write the file of a model."""
REACHES_ADAPTERS = (
    "implementation/implementation.py",
    "spec_tools/witnesses.py",
    "packs/build.py",
    "commands/check_bridge.py",
    "commands/grade.py",
)


@pytest.mark.parametrize("file", _files("conformance"), ids=lambda file: str(file.relative_to(ROOT)))
def test_the_suite_reaches_a_tokenizer_only_through_the_protocol(file: Path) -> None:
    path = file.relative_to(ROOT / "conformance").as_posix()
    for name in _imports(file):
        if _under(name, "bpe_conformance.reference") and not path.startswith("commands/"):
            oracles = ("bpe_conformance.reference.textbook", "bpe_conformance.reference.superbpe.textbook")
            formats = path in WRITES_MODELS and _under(name, "bpe_conformance.reference.formats")
            packages = ("bpe_conformance.reference", "bpe_conformance.reference.superbpe")
            assert _under(name, *oracles) or formats or name in packages, name
        if path not in REACHES_ADAPTERS and not (path.startswith("implementation/") and name in REMOTE):
            assert not _under(name, "bpe_conformance.adapters"), name


@pytest.mark.parametrize("file", sorted((ROOT / "conformance" / "known_bugs").glob("*.py")), ids=lambda file: file.name)
def test_known_bugs_depend_only_on_the_textbook(file: Path) -> None:
    if file.name in ("causes.py", "combined.py", "matrix.py"):
        return
    allowed = ("bpe_conformance.fixtures", "bpe_conformance.known_bugs", "bpe_conformance.reference.textbook")
    reader = ("bpe_conformance.reference.formats",) if file.name == "bases.py" else ()
    assert all(_under(name, *allowed, *reader) or name == "bpe_conformance.reference" for name in _imports(file))


@pytest.mark.parametrize("file", _files("adapters"), ids=lambda file: str(file.relative_to(ROOT)))
def test_adapters_do_not_import_the_suite(file: Path) -> None:
    allowed = ("bpe_conformance.adapters", "bpe_conformance.fixtures", "bpe_conformance.reference")
    for name in _imports(file):
        assert _under(name, *allowed) or name in ("bpe_conformance", "bpe_conformance.__version__"), name


@pytest.mark.parametrize(
    "file", [file for folder in PACKAGES for file in _files(folder)], ids=lambda file: str(file.relative_to(ROOT))
)
def test_imports_are_relative_inside_a_directory_and_absolute_across(file: Path) -> None:
    folder = file.relative_to(ROOT).parts[0]
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").startswith("bpe_conformance"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            others = [package for name, package in PACKAGES.items() if name not in (folder, "conformance")]
            assert all(
                (folder != "conformance" or _under(name, *others))
                and not (folder != "conformance" and _under(name, PACKAGES[folder]))
                for name in names
            ), names


@pytest.mark.parametrize("file", _files("conformance"), ids=lambda file: str(file.relative_to(ROOT)))
def test_only_operations_compare_the_name_of_an_operation(file: Path) -> None:
    """A comparison of an attribute or variable with the name of an operation, or a `match` with one."""
    if file.parent.name == "operations":
        return
    found = []
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Compare) and re.search(r"\b(op|operation|operation\.name)$", ast.unparse(node.left)):
            found += [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
        elif isinstance(node, ast.MatchValue) and isinstance(node.value, ast.Constant):
            found.append(node.value.value)
    assert not {*OPERATIONS}.intersection(found)


def test_a_run_that_does_not_name_the_suite_imports_only_the_plugin() -> None:
    code = (
        "import sys, bpe_conformance.plugin;"
        "print(*sorted(name for name in sys.modules if name.split('.')[0] in"
        " ('bpe_conformance', 'hypothesis', 'jsonschema', 'yaml', 'regex')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["bpe_conformance", "bpe_conformance.plugin"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "collected"),
    [
        (
            ["tests/properties/test_blame.py", "tests/slow/docs"],
            {"tests/slow/docs": True, "in_its_own_class_only": False},
        ),
        (["tests/properties/test_blame.py", "-m", "slow"], {"in_its_own_class_only": True, "_only_once_": False}),
        (["tests/properties/test_scale.py", "-m", "slow and not release"], {"beyond": False, "every_size": True}),
        (
            [
                "tests/properties/test_blame.py::test_a_method_that_gives_no_answer_counts_in_its_own_class_only",
                "tests/properties/test_scale.py",
            ],
            {"in_its_own_class_only": True, "every_known_bug_with_long": False},
        ),
        (["tests"], {"tests/slow/adapters/test_languages.py::": False, "every_known_bug_with_long": False}),
    ],
)
def test_slow_tests_run_only_if_their_directory_or_marker_is_named(
    arguments: list[str], collected: dict[str, bool]
) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--co", "-p", "no:cacheprovider", *arguments]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {name: any(name in line for line in listed.splitlines() if "::" in line) for name in collected} == collected
