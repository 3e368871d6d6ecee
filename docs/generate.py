"""Generates pages of the manual from data, into docs/generated/, which is not in the repository.

These pages are the specification by chapter, the atlas of bugs, the commands, the Python API, and copies of the
documents at the top level. `python docs/generate.py` also updates the tables in docs/options.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path, PurePosixPath
from unittest.mock import patch

from bpe_conformance import cli, plugin
from bpe_conformance.cases.judging import judge, skip_reason
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs import KnownBug, known_bugs, matrix
from bpe_conformance.outcome import Command, Outcome
from bpe_conformance.spec import Case, Spec, installed_spec
from bpe_conformance.terminal.failure import describe

DOCS = Path(__file__).parent
ROOT = DOCS.parent
GENERATED = DOCS / "generated"
COPIES = {
    "CONTRIBUTING.md": "contributing",
    "SECURITY.md": "security",
    "CHANGELOG.md": "changelog",
    "adapters/PROTOCOL.md": "wire-protocol",
}
"""Documents outside of docs/ → their pages."""
PAGES = {name: f"generated/{page}" for name, page in COPIES.items()} | {
    "conformance/SPEC.md": "generated/spec/index",
    "README.md": "index",
}
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#|<)([^)#\s]+)(#[^)\s]*)?\)")
OPTIONS = DOCS / "options.md"
"""A page in the repository, whose tables of options and commands come from the code."""
GROUPS = {"What is tested": "bpe-conformance", "How it is tested": "bpe-conformance-how"}
"""Heading in OPTIONS → pytest's group of options."""
API = {
    "The tokenizer": "bpe_conformance.reference.tokenizer",
    "SuperBPE": "bpe_conformance.reference.superbpe.trainer",
    "The textbook": "bpe_conformance.reference.textbook",
    "The adapter protocol": "bpe_conformance.protocol",
}
TITLES = {
    "training_ties": "Training: ties",
    "training_counts": "Training: counts",
    "training_text": "Training: the text, its size and its ids",
    "splitting": "Splitting",
    "encoding": "Encoding",
    "special": "Special tokens",
    "allowed_special": "The choice of special tokens",
    "pipeline": "Pipelines of models",
    "decoding": "Decoding",
    "streaming": "Streaming",
    "detokenizing": "Text from ids as they arrive",
    "offsets": "Offsets",
    "files": "Files",
    "batch": "Batches",
    "state": "State",
    "long_inputs": "Long inputs",
}
ATLAS = """\
# Atlas of bugs

If you are about to write a byte-level BPE tokenizer, read this page first: it is the most useful page of the manual. It
shows {count} mistakes that people make. For each mistake, it gives the reason why people make it, the fix, and the
smallest test that shows it, with the correct answer (`expected`) and the incorrect one (`got`). Many of these mistakes
were seen in published packages, issues and courses; the others are one step from such a bug.

The suite recognizes each mistake by its answers. If a run of `pytest conformance` fails in the same way, it names the
bug and the fix. `bpe-conformance explain NAME` shows an entry in a terminal.

"""


def write_pages() -> None:
    """Write every page."""
    shutil.rmtree(GENERATED, ignore_errors=True)
    pages = {**_copies(), **_specification(), **_atlas(), "commands.md": _commands(), "api.md": _api()}
    for name, text in pages.items():
        file = GENERATED / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def rewrite_links(app: object, docname: str, source: list[str]) -> None:
    """Point links to documents at their pages, and show other files of the repository as names (`source-read`)."""
    origin = next((name for name, page in COPIES.items() if f"generated/{page}" == docname), f"docs/{docname}.md")
    source[0] = LINK.sub(lambda found: _link(found, PurePosixPath(origin).parent), source[0])


def _link(found: re.Match[str], folder: PurePosixPath) -> str:
    text, target, anchor = found[1], found[2], found[3] or ""
    path = os.path.normpath(folder / target)
    if path in PAGES:
        return f"[{text}](/{PAGES[path]}.md{anchor})"
    if path.startswith("docs/"):
        return f"[{text}](/{path.removeprefix('docs/')}{anchor})"
    return f"{text} (`{path}`)"


def _copies() -> dict[str, str]:
    return {f"{page}.md": (ROOT / name).read_text("utf-8") for name, page in COPIES.items()}


# The specification


def _specification() -> dict[str, str]:
    head, *chapters = re.split(r"^## ", (ROOT / "conformance" / "SPEC.md").read_text("utf-8"), flags=re.MULTILINE)
    pages, names = {}, []
    for chapter in chapters[1:]:
        title, _, body = chapter.partition("\n")
        name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
        names.append(name)
        anchored = re.sub(r'^<a id="([a-z0-9-]+)"></a>', r"(\1)=\n", body, flags=re.MULTILINE)
        pages[f"spec/{name}.md"] = f"# {title}\n{anchored.replace(chr(10) + '### ', chr(10) + '## ')}"
    tree = "\n".join(names)
    pages["spec/index.md"] = f"{head}\n```{{toctree}}\n{tree}\n```\n"
    return pages


# The atlas


def _atlas() -> dict[str, str]:
    bugs = known_bugs()
    sections = list(dict.fromkeys(bug.section for bug in bugs))
    pages = {"bugs/index.md": ATLAS.format(count=len(bugs)) + "```{toctree}\n" + "\n".join(sections) + "\n```\n"}
    with (
        patch.dict(os.environ, PYTHONHASHSEED="0"),
        ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool,
    ):
        failures = dict(
            zip((bug.id for bug in bugs), pool.map(_smallest_failure, (bug.id for bug in bugs)), strict=True)
        )
    for section in sections:
        mine = [bug for bug in bugs if bug.section == section]
        pages[f"bugs/{section}.md"] = f"# {TITLES[section]}\n\n" + "\n".join(
            _bug(bug, failures[bug.id]) for bug in mine
        )
    return pages


def _bug(bug: KnownBug, failure: str) -> str:
    clause = f"[{bug.clause}](#{bug.clause.lower()})"
    parts = [f"## {bug.id}\n", f"{_prose(bug.sentence)}\n", f"**Fix.** {_prose(bug.fix)}\n"]
    parts += [f"**Seen in** {_prose(bug.evidence)}.\n"] if bug.evidence else []
    parts.append(f"**Violates** {clause}.\n")
    parts.append(
        f"```text\n{failure}\n```\n" if failure else "Only a property test shows it; it has no short example.\n"
    )
    return "\n".join(parts)


def _prose(text: str) -> str:
    """Return plain text in one line as Markdown."""
    return re.sub(r"([\\\[\]*_<>{}$])", r"\\\1", " ".join(text.split()))


@cache
def _published() -> tuple[Spec, matrix.Matrix]:
    return installed_spec(), matrix.read()


def _smallest_failure(bug_id: str) -> str:
    """Return the smallest golden case that a known bug fails: the call, and both answers aligned."""
    bug = next(one for one in known_bugs() if one.id == bug_id)
    spec, found = _published()
    failing = found.answers.get(bug_id) or {found.varying.get(bug_id, ""): ""}
    implementation = Implementation(bug_id, bug.target)
    for case in sorted((one for one in spec.cases if one.id in failing), key=lambda case: _size(case, bug)):
        if skip_reason(case, implementation):
            continue
        with implementation.time_limit():
            mismatch = judge(case, implementation)
        if mismatch is not None:
            outcome = Outcome(
                case.id, "case", case.title, "failed", case.clause, case.conformance_class, mismatch=mismatch
            )
            shown = describe(outcome, Command(bug_id))
            return "\n".join(replace(shown, rule="", reproduce="", rerun="", explain="").lines())
    return ""


def _size(case: Case, bug: KnownBug) -> tuple[bool, int]:
    merges = 0 if case.model is None else len(case.model.merges)
    return case.clause.id != bug.clause, len(json.dumps(case.raw["input"])) + 8 * merges


# Options, commands and API


def options_page() -> str:
    """Return OPTIONS with its tables of options and commands as the code has them."""
    options = Options()
    plugin.pytest_addoption(options)  # type: ignore[arg-type]
    tables = {heading: options.groups[group] for heading, group in GROUPS.items()}
    tables["The command `bpe-conformance`"] = [(command.name, cli.HELP[command.name]) for command in cli.COMMANDS]
    text = OPTIONS.read_text("utf-8")
    for heading, rows in tables.items():
        table = "".join(f"| `{name}` | {effect} |\n" for name, effect in rows)
        before, title, section = text.partition(f"## {heading}\n")
        head, line, rest = section.partition("|---|---|\n")
        text = before + title + head + line + table + re.sub(r"\A(\|.*\n)*", "", rest)
    return text


class Options:
    """Takes the place of pytest's parser of options, and keeps the name and the help of each."""

    def __init__(self) -> None:
        self.groups: dict[str, list[tuple[str, str]]] = {}

    def getgroup(self, name: str, _description: str) -> Options:
        """Begin a group."""
        self.groups[name] = []
        return self

    def addoption(self, name: str, *, help: str, metavar: str = "", **_settings: object) -> None:  # noqa: A002
        """Keep an option of the latest group."""
        list(self.groups.values())[-1].append((f"{name} {metavar}".strip(), help))


def _commands() -> str:
    with patch.dict(os.environ, COLUMNS="88"):
        return _helps()


def _helps() -> str:
    parser = cli._parser(["--help"])
    parts = ["# Commands\n", f"```text\n{parser.format_help()}```\n"]
    for command in cli.COMMANDS:
        one = argparse.ArgumentParser(f"bpe-conformance {command.name}", description=cli.HELP[command.name])
        command.function("arguments")(one)
        parts += [f"## {command.name}\n", f"```text\n{one.format_help()}```\n"]
        parts += [f"For example: `bpe-conformance {command.name} {command.example}`\n"]
    return "\n".join(parts)


def _api() -> str:
    parts = ["# Python API\n"]
    for title, module in API.items():
        no_index = "" if title in ("The tokenizer", "SuperBPE") else "   :no-index:\n"  # they share names with these
        parts.append(f"## {title}\n\n```{{eval-rst}}\n.. automodule:: {module}\n   :members:\n{no_index}```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    write_pages()
    OPTIONS.write_text(options_page(), "utf-8")
