"""Lets every reader of a path read things that are not files: `python tests/fuzz/kinds.py` prints the errors as JSON.

Run it in a separate process with little memory, which ends a reader that waits or reads a device to its end.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from bpe_conformance.fixtures.yaml_file import read_documents
from bpe_conformance.packs.files import MANIFEST, Overrides, load_pack, read_model_files
from bpe_conformance.reference.formats import gpt2, huggingface, tiktoken
from bpe_conformance.report import document
from bpe_conformance.session.setup import read_known_failures
from bpe_conformance.spec import load_spec

MEMORY = 4 << 30
LARGE = 3 << 30
"""Bytes of a sparse file, which takes no space on the disk."""


def _linked(path: Path, folder: Path, name: str) -> Path:
    """Return a directory in which `name` is a link to `path`."""
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.symlink_to(path)
    return folder


def _spec(path: Path, folder: Path, name: str) -> object:
    (folder / "cases").mkdir()
    return load_spec(_linked(path, folder, name))


READERS: dict[str, Callable[[Path, Path], object]] = {
    "vocab.json": lambda path, _: gpt2.read_vocab(path),
    "merges.txt": lambda path, _: gpt2.read_merges(path),
    "ranks": lambda path, _: tiktoken.read(path),
    "tokenizer.json": lambda path, _: huggingface.read(path),
    "table": lambda path, _: read_model_files([str(path)], Overrides("x", "gpt2")),
    "yaml": lambda path, _: list(read_documents(path)),
    "known failures": lambda path, _: read_known_failures(path, []),
    "report": lambda path, _: document.read(path),
    "pack": lambda path, folder: load_pack(_linked(path, folder, MANIFEST), {}),
    "cases": lambda path, folder: _spec(path, folder, "cases/x.yaml"),
    "clauses": lambda path, folder: _spec(path, folder, "clauses/x.yaml"),
    "models": lambda path, folder: _spec(path, folder, "models/x.yaml"),
    "sums": lambda path, folder: _spec(path, folder, "models/SHA256SUMS"),
}


def _kinds(folder: Path) -> dict[str, Path]:
    """Make things that are not readable files; return name → path."""
    paths = {name: folder / name for name in ("folder", "pipe", "loop", "dangling", "large", "plain")}
    paths["folder"].mkdir()
    os.mkfifo(paths["pipe"])
    paths["loop"].symlink_to(paths["loop"])
    paths["dangling"].symlink_to(folder / "absent")
    paths["plain"].touch()
    with paths["large"].open("wb") as stream:
        stream.truncate(LARGE)
    paths["below a file"] = paths.pop("plain") / "x"
    return {**paths, "absent": folder / "absent", "device": Path("/dev/zero"), "long name": folder / ("x" * 300)}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    said: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory(prefix="bpe-kinds-") as name:
        (Path(name) / "kinds").mkdir()
        for kind, path in _kinds(Path(name) / "kinds").items():
            for reader, read in READERS.items():
                place = Path(name) / f"{kind}, {reader}"
                place.mkdir()
                try:
                    read(path, place)
                    reported = "read"
                except BaseException as error:
                    reported = f"{type(error).__name__}: {error}"
                said.setdefault(kind, {})[reader] = reported
    print(json.dumps(said))


if __name__ == "__main__":
    main()
