"""A corpus is all text of its files, and a difference is found wherever it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.project import Project, states

from bpe_conformance.answer import EncodingDivergence, Refusal
from bpe_conformance.fixtures import read_model
from bpe_conformance.fixtures.yaml_file import SpecError
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.operations import Encode
from bpe_conformance.reference import textbook
from bpe_conformance.session import corpus, setup


class WrongAtHash(textbook.Tokenizer):
    def encode(self, text: str) -> list[int]:  # type: ignore[override]  # nobody chooses special tokens
        if "!" in text:
            raise ValueError("!")
        return super().encode(text.replace("#", "."))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "BLOCK", 8)
    monkeypatch.setattr(corpus, "gpt2_model", lambda: read_model({}))
    monkeypatch.setattr(corpus, "_tiktoken", lambda: lambda text: [*text.encode("utf-8")])


PARTS = [["one two\n", "three\nfour\n", "five"], ["\u20ac\u20ac\n\n\n\n\n\n\n", "x\n" * 4]]
"""Two files in blocks of about eight characters."""


def written(folder: Path, mark: str = "", place: int = 0) -> Path:
    for number, (name, parts) in enumerate(zip(("b.txt", "deep/a.md"), PARTS, strict=True)):
        file = folder / "texts" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        first = 3 * number
        marked = [part[:3] + mark + part[3:] if first + at == place else part for at, part in enumerate(parts)]
        file.write_text("".join(marked), "utf-8")
    return folder / "texts"


@pytest.mark.parametrize("place", range(5))
def test_a_difference_is_found_in_any_block_of_any_file(place: int, tmp_path: Path) -> None:
    implementation = Implementation("x", WrongAtHash)
    assert corpus.compare(corpus.find(str(written(tmp_path))), implementation) is None
    found = corpus.compare(corpus.find(str(written(tmp_path, "#", place))), implementation)
    assert found is not None
    operation = found.asked.operation
    assert isinstance(operation, Encode)
    assert found.asked.context == f"a block of {tmp_path / 'texts' / ('b.txt' if place < 3 else 'deep/a.md')}"
    assert isinstance(found.divergence, EncodingDivergence)
    place_of_mark = operation.text.encode("utf-8").index(b"#")
    assert (found.divergence.token, found.divergence.byte) == (place_of_mark, place_of_mark)


def test_an_error_is_a_difference_without_a_position(tmp_path: Path) -> None:
    found = corpus.compare(corpus.find(str(written(tmp_path, "!"))), Implementation("x", WrongAtHash))
    assert found is not None
    assert isinstance(found.answer, Refusal)
    assert found.divergence is None


def test_the_first_answer_of_a_tokenizer_counts(tmp_path: Path) -> None:
    class WrongAtFirst(textbook.Tokenizer):
        asked = 0

        def encode(self, text: str) -> list[int]:  # type: ignore[override]  # nobody chooses special tokens
            self.asked += 1
            return super().encode(text)[self.asked == 1 :]

    assert corpus.compare(corpus.find(str(written(tmp_path))), Implementation("x", WrongAtFirst)) is not None


def test_blocks_are_the_text_and_end_at_line_ends(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_bytes(b"one\ntwo \xff\nthree\n\nfour five six seven eight\nnine")
    blocks = list(corpus.blocks(file))
    assert "".join(blocks) == file.read_bytes().decode("utf-8", "replace")
    assert len(blocks) > 2
    assert all(block.endswith("\n") for block in blocks[:-1])


def test_the_files_of_a_corpus_are_those_with_text(tmp_path: Path) -> None:
    folder = written(tmp_path)
    assert corpus.find(str(folder)).files == (folder / "b.txt", folder / "deep" / "a.md")
    assert corpus.find(str(folder / "b.txt")).files == (folder / "b.txt",)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.txt").write_bytes(b"")
    for name in ("empty", "empty.txt"):
        with pytest.raises(SpecError, match="there is no text here"):
            corpus.find(str(tmp_path / name))
    library = corpus.find("stdlib").files
    assert len(library) > 100
    assert {file.suffix for file in library} == {".py"}
    assert not any("site-packages" in file.parts for file in library)


ADAPTERS = """
from bpe_conformance.fixtures import PATTERNS
from mine import DecodeOnly, Right

class Own(Right):
    pattern = PATTERNS["cl100k"]

class Fixed(Right):
    model = "another"
    def __init__(self):
        super().__init__({byte: bytes([byte]) for byte in range(256)}, [])

class OfGpt2(Fixed):
    model = "gpt2"
"""


@pytest.mark.parametrize(
    ("adapter", "state"), [("DecodeOnly", "SKIPPED"), ("Own", "SKIPPED"), ("Fixed", "SKIPPED"), ("OfGpt2", "PASSED")]
)
def test_a_corpus_is_skipped_only_where_the_ids_of_gpt2_cannot_be_had(
    adapter: str, state: str, project: Project
) -> None:
    project.write("others.py", ADAPTERS)
    names = ("book", "page", "word")  # each of several is a test
    options = [option for name in names for option in ("--bpe-corpus", project.write(name, f"a {name}\n").name)]
    result = project.judge(f"others:{adapter}", *options, "-v", "-k", "corpus")
    assert states(result) == {f"corpus-{name}": state for name in names}


def test_corpora_of_one_name_are_numbered(tmp_path: Path) -> None:
    paths = [tmp_path / folder / name for folder in "abc" for name in ("x.txt", "y.txt")]
    for file in paths:
        file.parent.mkdir(exist_ok=True)
        file.write_text("text")
    found = setup._corpora([str(file) for file in paths])
    assert [one.id for one in found] == [
        *("corpus-x.txt", "corpus-y.txt", "corpus-x.txt-2", "corpus-y.txt-2", "corpus-x.txt-3", "corpus-y.txt-3")
    ]
    assert [one.files for one in found] == [(file,) for file in paths]


def test_a_directory_is_read_whatever_its_name_is(tmp_path: Path) -> None:
    for name in ("site-packages", "texts"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("a")
        assert [file.name for file in corpus.find(str(tmp_path / name)).files] == ["a.txt"]
    library = corpus.find("stdlib").files
    assert library
    assert not [file for file in library if "site-packages" in file.parts or file.suffix != ".py"]
