"""`pack` and `export` replace only directories that they wrote, and refuse all others at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bpe_conformance.cli import main
from bpe_conformance.fixtures import read_model
from bpe_conformance.packs import cases
from bpe_conformance.reference.formats import huggingface

SPEC = str(Path(__file__).parents[1] / "spec")


def pack(out: Path) -> Path:
    """Write the files by which an earlier pack is known."""
    out.mkdir()
    (out / "cases.json").write_text("earlier")
    (out / "pack.json").write_text('{"kind": "pack", "files": {"cases.json": ""}}')
    return out


def linked(file: Path) -> None:
    file.symlink_to(file.rename(file.parent.with_name("elsewhere")))


UNKNOWN = "exists and is not an earlier pack"
KEPT: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a file": (UNKNOWN, lambda out: out.write_text("mine")),
    "an empty directory": (UNKNOWN, lambda out: out.mkdir()),
    "a link to nothing": (UNKNOWN, lambda out: out.symlink_to("nowhere")),
    "a link to a pack": (UNKNOWN, lambda out: out.symlink_to(pack(out.with_name("real")))),
    "another directory": (UNKNOWN, lambda out: (out / "deep").mkdir(parents=True)),
    "an export": (UNKNOWN, lambda out: main(["export", str(out), "--spec", SPEC])),
    "a pack with another file": (
        "contains mine.txt, which is not part of the pack",
        lambda out: (pack(out) / "mine.txt").touch(),
    ),
    "a pack with a directory": (
        "contains mine, which is not part of the pack",
        lambda out: (pack(out) / "mine").mkdir(),
    ),
    "a pack with a link": (
        "contains cases.json, which is not part of the pack",
        lambda out: linked(pack(out) / "cases.json"),
    ),
}
"""What is where a pack should be written → why it is kept, and a function that makes it."""


def states(folder: Path) -> list[tuple[Path, int, int]]:
    return [(path, os.lstat(path).st_ino, os.lstat(path).st_mtime_ns) for path in sorted(folder.rglob("*"))]


@pytest.mark.parametrize("name", KEPT)
def test_what_no_pack_wrote_is_kept(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    message, make = KEPT[name]
    make(tmp_path / "out")
    capsys.readouterr()
    before = states(tmp_path)
    with monkeypatch.context() as patch:
        if message == UNKNOWN:  # it can be a whole disk
            patch.setattr(os, "scandir", lambda *_: pytest.fail("the directory is listed"))
        assert main(["pack", str(tmp_path / "none.json"), "-o", str(tmp_path / "out")]) == 2
    line = f"bpe-conformance: {tmp_path / 'out'} {message}; name a directory that does not exist\n"
    assert capsys.readouterr().err == line
    assert states(tmp_path) == before


def test_an_earlier_pack_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, few in (("LONG", (9,)), ("TRIED", 9), ("CANDIDATES", 9), ("real", lambda reach: ())):
        monkeypatch.setattr(cases, name, few)
    model = read_model({"merges": [["a", "b"], ["ab", "c"]]})
    huggingface.write(tmp_path / "tokenizer.json", model)
    out = pack(tmp_path / "out")
    assert main(["pack", str(tmp_path / "tokenizer.json"), "-o", str(out)]) == 0
    assert {file.name for file in out.iterdir()} == {"cases.json", "pack.json", "pack.schema.json", "table.json"}
    assert (out / "cases.json").read_text() != "earlier"
    assert {file.name for file in tmp_path.iterdir()} == {"out", "tokenizer.json"}


def test_an_export_in_directories_is_replaced_and_another_directory_in_it_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", str(tmp_path / "out"), "--spec", SPEC]
    assert main(words) == main(words) == 0
    (tmp_path / "out" / "cases" / "mine").mkdir()
    assert main(words) == 2
    assert f"contains {Path('cases', 'mine')}, which is not part of the export" in capsys.readouterr().err
