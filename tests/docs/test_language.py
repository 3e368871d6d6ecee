"""Documents, docstrings, comments, messages, clauses and names of tests contain no banned phrase.

Documents have all code in fences: a tool that wraps paragraphs joins the lines of code that is only indented.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.console_blocks import ROOT

INSTEAD = {
    r"(?:is|are|was|were|one) wanted": "expected",
    r"told": "reported, or distinguished",
    r"stand(?:s|ing)?(?! for| in for)": "is, or occurs",
    r"stood": "was",
    r"mend(?:s|ed|ing)?": "fix",
    r"offered by": "optional",
    r"behind": "after",
    r"advisor(?:y|ies)": "warning",
    r"not claimed": "skipped",
    r"(?:is|are|be|not) judged": "tested",
    r"lawful(?:ly)?": "correct",
    r"it is no (?!longer\b|more\b)\w+": "it is not a",
    r"whatever is (?:left|at hand)": "the rest",
}
"""Regular expression of a banned phrase → what to write instead."""
BANNED = {
    re.compile("(?<![\\w-])" + phrase.replace(" ", "\\s+") + "(?![\\w-])", re.IGNORECASE): better
    for phrase, better in INSTEAD.items()
}
ANY = re.compile("|".join(phrase.pattern for phrase in BANNED), re.IGNORECASE)
PRODUCT = ("conformance", "reference", "adapters", "fixtures", "docs")
TEXTS = ("statement", "rationale", "uncased", "intro", "title", "note", "sentence", "fix", "reason", "about", "finding")
"""Keys of YAML that hold English; the others hold data, names of packages and quotations."""
LIST = ("- ", "* ", *(f"{number}. " for number in range(1, 100)))
HERE = Path(__file__)


def documents() -> Iterator[Path]:
    yield from ROOT.glob("*.md")
    for folder in (*PRODUCT, "tests"):
        yield from (file for file in (ROOT / folder).rglob("*.md") if "generated" not in file.parts)


def in_yaml(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, part in value.items():
            if isinstance(part, str) and key in TEXTS:
                yield f"{path}{key}", part
            else:
                yield from in_yaml(part, f"{path}{key}.")
    elif isinstance(value, list):
        for part in value:
            name = part.get("id", "") if isinstance(part, dict) else ""
            yield from in_yaml(part, f"{path}{name}.")


def in_python(source: str, with_strings: bool) -> Iterator[tuple[str, str]]:
    """Yield docstrings, comments and names of functions, and in product code all other strings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and with_strings:
            yield f"line {node.lineno}", node.value
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            if not isinstance(node, ast.Module):
                yield f"line {node.lineno}", node.name.replace("_", " ")
            yield f"line {getattr(node, 'lineno', 1)}", ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield f"line {token.start[0]}", token.string


def texts() -> Iterator[tuple[str, str, str]]:
    """Yield (file, position, text) for all text that people read."""
    for file in documents():
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            yield file.relative_to(ROOT).as_posix(), f"line {number}", line
    for file in [*(ROOT / "fixtures").rglob("*.yaml"), *(ROOT / "conformance").rglob("*.yaml")]:
        source = file.read_text("utf-8")
        for document in yaml.load_all(source, yaml.CSafeLoader) if ANY.search(source) else ():
            for path, text in in_yaml(document):
                yield file.relative_to(ROOT).as_posix(), path, text
    for folder in (*PRODUCT, "tests"):
        for file in (ROOT / folder).rglob("*.py"):
            source = file.read_text("utf-8")
            if file != HERE and ANY.search(source.replace("_", " ")):  # parsing all files takes too long
                for line, text in in_python(source, with_strings=folder != "tests"):
                    yield file.relative_to(ROOT).as_posix(), line, text


def banned(text: str) -> list[str]:
    """Return the banned phrases outside code in a text, each with what to write instead."""
    text = re.sub(r"`[^`\n]*`", "", text)
    found = ((phrase.search(text), better) for phrase, better in BANNED.items())
    return [f"{match.group()!r}: write {better}" for match, better in found if match]


def test_no_text_has_a_banned_phrase() -> None:
    found = [f"{file}, {where}: {fault}" for file, where, text in texts() for fault in banned(text)]
    assert found == [], f"{len(found)} phrases"


@pytest.mark.parametrize(
    "text",
    ["an int is wanted", "what it told", "The pair stands twice.", "the token behind it", "MENDED", "it is no law"],
)
def test_banned_finds_phrases(text: str) -> None:
    assert len(banned(text)) == 1


@pytest.mark.parametrize(
    "text", ["I understand", "merge-rank-behind", "`told`", "`...` stands for any lines", "recommended"]
)
def test_banned_ignores_other_words(text: str) -> None:
    assert banned(text) == []


def indented_code(text: str) -> Iterator[int]:
    """Yield the numbers of the lines that begin a code block by their indentation."""
    is_fenced = in_list = False
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_fenced = not is_fenced
        elif not is_fenced and line:
            in_list = line.startswith(LIST) or (in_list and line.startswith(" "))
            if line.startswith("    ") and not before and not in_list:
                yield number
        before = line


def test_code_is_in_fences() -> None:
    found = {file.relative_to(ROOT).as_posix(): list(indented_code(file.read_text("utf-8"))) for file in documents()}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("One:\n\n    pip install x\n    x --all\n", [3]),
        ("One:\n\n```sh\n\n    x\n```\n", []),
        ("- one\n\n    more of it\n\nTwo:\n\n    x\n", [7]),
        ("One\n    goes on.\n", []),
    ],
)
def test_indented_code_is_found(text: str, lines: list[int]) -> None:
    assert list(indented_code(text)) == lines
