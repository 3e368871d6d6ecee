"""`bpe-conformance matrix --model` makes packs, tests engines with them, and keeps earlier results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bpe_conformance import cli
from bpe_conformance.fixtures import read_model
from bpe_conformance.reference.formats import huggingface
from bpe_conformance.report import grid

pytestmark = pytest.mark.release

SMALL = read_model({"merges": [["a", "b"], ["ab", "c"]]}, "small")
MINE = """
from bpe_conformance.reference.formats import huggingface
from bpe_conformance.reference.textbook import Tokenizer

class Wrong(Tokenizer):
    model, version = "small", "0.1"

    def __init__(self):
        loaded = huggingface.read("small.json")
        super().__init__(loaded.vocab, loaded.merges)

    def encode(self, text):
        return [256, 99] if text == "abc" else super().encode(text)
"""


def test_the_command_keeps_earlier_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    huggingface.write("small.json", SMALL)
    Path("mine.py").write_text(MINE, "utf-8")
    Path("pytest.ini").write_text("[pytest]\naddopts = -p missing\n", "utf-8")  # what is set here has no effect
    Path("randomly.py").write_text("raise ImportError", "utf-8")  # a plugin of this name changes the order
    monkeypatch.setenv("PYTEST_PLUGINS", "randomly")
    assert cli.main(["matrix", "textbook", "mine:Wrong", "--model", "small.json", "-o", "page", "--jobs", "2"]) == 0
    assert "making the pack of small" in capsys.readouterr().out
    wrong, right = grid.read(Path("page/models.json"))
    assert (wrong.engine, wrong.version, wrong.model) == ("mine:Wrong", "0.1", "small")
    assert (right.passed, wrong.tested) == (right.tested, right.tested)
    assert 0 < wrong.tested - wrong.passed < 20
    assert "encode('abc')" in wrong.smallest[0]
    assert wrong.smallest[1].split() == ["expected", "abc", "[257]"]
    assert wrong.smallest[2].split() == ["got", "ab", "|", "c", "[256,", "99]"]
    assert wrong.clauses
    Path("mine.py").write_text(MINE.replace("0.1", "0.2").replace("[256, 99]", "[257]"), "utf-8")
    earlier = str(next(Path("page/reports").glob("*.json")))
    assert cli.main(["matrix", "mine:Wrong", "minimal", earlier, "--model", "small.json", "-o", "page"]) == 1
    shown = capsys.readouterr().out
    assert "making the pack" not in shown
    assert "the reports are in matrix.md only" in shown
    states = [(cell.engine, cell.version, cell.passed == cell.tested) for cell in grid.read(Path("page/models.json"))]
    assert states == [
        ("mine:Wrong", "0.1", False),
        ("mine:Wrong", "0.2", True),
        ("minimal", "", True),
        ("textbook", "", True),
    ]
    assert "minimal reads no file of a model" in Path("page/models.md").read_text("utf-8")
    assert json.loads(Path("page/models.json").read_text("utf-8"))["format"] == grid.FORMAT


def test_two_models_of_one_name_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("a", "b"):
        Path(folder).mkdir()
        huggingface.write(f"{folder}/small.json", SMALL)
    models = ["--model", "a/small.json", "--model", "b/small.json"]
    assert cli.main(["matrix", "textbook", *models, "-o", "page"]) == 2
    assert "b/small.json: its model is named small, as that of a/small.json; rename one" in capsys.readouterr().err
