"""Arrows between the packages run one way, and what a plain pytest run imports is small."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = {
    "conformance": "bpe_conformance",
    "reference": "bpe_conformance.reference",
    "fixtures": "bpe_conformance.fixtures",
    "adapters": "bpe_conformance.adapters",
}


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
def test_fixtures_import_nothing_of_ours(file: Path) -> None:
    assert all(_under(name, "bpe_conformance.fixtures") for name in _imports(file))


@pytest.mark.parametrize("file", _files("reference"), ids=lambda file: file.name)
def test_the_reference_imports_fixtures_at_most_and_never_the_oracle(file: Path) -> None:
    names = _imports(file)
    oracles = ("bpe_conformance.reference.textbook", "bpe_conformance.reference.superbpe.textbook")
    if file.name == "textbook.py":
        assert all(_under(name, "bpe_conformance.fixtures") for name in names)
    elif file.name == "superbpe_textbook.py":
        allowed = names - {"bpe_conformance.reference"}
        assert all(_under(name, "bpe_conformance.fixtures", oracles[0]) for name in allowed)
    else:
        assert all(_under(name, "bpe_conformance.fixtures", "bpe_conformance.reference") for name in names)
        assert not any(_under(name, *oracles) for name in names)
        assert file.name == "superbpe.py" or "bpe_conformance.reference.superbpe.trainer" not in names


@pytest.mark.parametrize("file", _files("conformance"), ids=lambda file: file.name)
def test_the_suite_reaches_an_implementation_only_through_the_protocol(file: Path) -> None:
    for name in _imports(file):
        if _under(name, "bpe_conformance.reference") and file.parent.name != "using":
            formats = file.parent.name == "pack" and name.startswith("bpe_conformance.reference.format_")
            oracles = ("bpe_conformance.reference.textbook", "bpe_conformance.reference.superbpe.textbook")
            textbook = _under(name, *oracles)
            assert textbook or formats or name == "bpe_conformance.reference", name
        if file.name not in ("session.py", "subjects.py", "witnesses.py", "check_bridge.py", "talk.py"):
            assert not _under(name, "bpe_conformance.adapters"), name
        if file.parent.name == "judging":
            assert not _under(name, "bpe_conformance.session"), name
            assert not _under(name, "bpe_conformance.spec_tools"), name
        if file.name != "cli.py" and file.parent.name != "using":
            assert not _under(name, "bpe_conformance.commands"), name


@pytest.mark.parametrize("file", sorted((ROOT / "conformance" / "known_bugs").glob("*.py")), ids=lambda file: file.name)
def test_known_bugs_are_written_over_the_textbook_alone(file: Path) -> None:
    allowed = ("bpe_conformance.fixtures", "bpe_conformance.known_bugs", "bpe_conformance.reference.textbook")
    assert all(_under(name, *allowed) or name == "bpe_conformance.reference" for name in _imports(file))


@pytest.mark.parametrize("file", _files("adapters"), ids=lambda file: file.name)
def test_adapters_know_nothing_of_the_suite(file: Path) -> None:
    allowed = ("bpe_conformance.adapters", "bpe_conformance.fixtures", "bpe_conformance.reference")
    assert all(
        _under(name, *allowed) or name in ("bpe_conformance", "bpe_conformance.__version__") for name in _imports(file)
    )


def test_a_run_that_does_not_name_the_suite_imports_only_the_plugin() -> None:
    code = (
        "import sys, bpe_conformance.plugin;"
        "print(*sorted(name for name in sys.modules if name.split('.')[0] in"
        " ('bpe_conformance', 'hypothesis', 'jsonschema', 'yaml', 'regex')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["bpe_conformance", "bpe_conformance.plugin"]
