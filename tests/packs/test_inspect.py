"""`bpe-conformance inspect` says what a model is, what is odd about it, and what its steps make of a text."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from bpe_conformance.cli import main
from bpe_conformance.fixtures import Model, read_model
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Pipeline, Split
from bpe_conformance.packs import cases, inspect
from bpe_conformance.packs.cases import Draw
from bpe_conformance.packs.files import ModelSource
from bpe_conformance.packs.reach import Reach
from bpe_conformance.reference.formats import huggingface

TABLE = read_model(
    {
        "merges": [["b", "c"], ["a", "b"], ["ab", "c"], ["1", "2"], ["x", " "]],
        "extra": [
            [261, "qq"],
            [262, {"code_points": [0x212B]}],
            [270, "<s>"],
            [271, "<s>x"],
            [272, "<a>"],
            [273, "x<s>"],
            [263, {"code_points": [0x212B, 0x20, 0x31]}],
        ],
    }
)
ADDED = (AddedToken("<s>"), AddedToken("<s>x", normalized=True), AddedToken("<a>", lstrip=True), AddedToken("x<s>"))
STEPS = (Split(r"\d|zq(?=!)|xq(?=!)"), Split(r" "), ByteLevel(split=False))
MODEL = replace(
    TABLE,
    special_tokens=tuple(token.content for token in ADDED),
    pipeline=Pipeline(("NFC",), ADDED, STEPS, "whole"),
    name="odd",
)


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect, "TRIED", 50)


def odd(model: Model) -> str:
    return "\n".join(inspect._odd(Reach(model)))


def test_what_is_odd_is_said_with_a_text_that_shows_it() -> None:
    assert odd(MODEL).splitlines() == [
        "2 entries whose text is not one token, because normalization changes it, such as id 262"
        r"; see --text $'\u212b'",
        "2 entries whose text is not one token, because a step cuts it, such as id 259; see --text '12'",
        "2 entries whose text is one token only by the lookup whole, such as id 261; see --text 'qq'",
        "13 tokens in no UTF-8 text, such as <c0> (id 192), <c1> (id 193), <f5> (id 245)",
        "2 tokens in no text that was tried, such as '12' (id 259), 'x ' (id 260)",
        r"2 tokens in no normalized text, such as '\u212b' (id 262), '\u212b 1' (id 263)",
        "1 merge that cannot apply: the bytes of rank 2, ab+c, become 'a' | 'bc' by other merges; see --text 'abc'",
        r"the alternative zq(?=!) matches in none of 51 texts that were tried",
        r"the alternative xq(?=!) matches in none of 51 texts that were tried",
        "the added token '<s>x' is not found in its own text, which becomes '<s>' | 'x'; see --text '<s>x'",
        "1 pair of added tokens, one inside the other: '<s>' is not found inside 'x<s>'; see --text 'x<s>'",
        "6 ids below 273 without an entry, such as 264",
    ]


def test_an_added_token_is_odd_if_normalization_makes_it_another_one() -> None:
    texts = ("e\u0301", "\u00e9", "o\u0301", "\u00f3")
    added = tuple(AddedToken(text, normalized=True) for text in texts)
    vocab = {**{byte: bytes([byte]) for byte in range(256)}, **dict(enumerate(map(str.encode, texts), 256))}
    model = Model(vocab, (), special_tokens=texts, pipeline=Pipeline(("NFC",), added, (ByteLevel(),)))
    assert [*inspect._added(Reach(replace(model, name="x")))] == [
        "the added token 'e\\u0301' is not found in its own text, which becomes '\\xe9'; see --text $'e\\u0301'",
        "the added token 'o\\u0301' is not found in its own text, which becomes '\\xf3'; see --text $'o\\u0301'",
    ]


def test_the_tests_of_llamacpp_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tokenizer.json"
    huggingface.write(file, replace(MODEL, vocab={**MODEL.vocab, 262: b"qqq", 263: b"zzz"}))
    words = ["inspect", str(file), "--llamacpp", str(tmp_path / "m.gguf")]
    assert main(words) == 2
    assert capsys.readouterr().err.endswith("m.gguf.inp: cannot be read: No such file or directory\n")
    shown = "  this model  {}\n  the file    {}\n"
    for ids, status, said in [
        (" 258\n\n", 0, "2 of 2 texts"),
        (" 97 256\n\n", 1, "'abc'\n" + shown.format([258], [97, 256]) + "1 of 2 texts"),
        (" 7\n 8\n", 1, f"'abc'\n{shown.format([258], [7])}''\n{shown.format([], [8])}0 of 2 texts"),
    ]:
        (tmp_path / "m.gguf.inp").write_text("abc\n__ggml_vocab_test__\n\n__ggml_vocab_test__\n", "utf-8")
        (tmp_path / "m.gguf.out").write_text(ids, "utf-8")
        assert main(words) == status
        path = tmp_path / "m.gguf"
        assert capsys.readouterr().out == f"{said} of {path}.inp have the ids of {path}.out\n"


def test_equal_entries_and_missing_bytes_are_odd() -> None:
    vocab = {index: token for index, token in TABLE.vocab.items() if token != b"\xff"} | {300: b"ab"}
    found = odd(replace(MODEL, vocab=vocab, pipeline=replace(MODEL.pipeline, lookup="pair")))  # type: ignore[arg-type]
    assert "2 tokens not built by the merges, such as 'abc' is 'a' | 'bc', 'qq' is 'q' | 'q'" in found
    assert "2 entries whose text is not one token, because a step cuts it, such as id 259" in found  # `qq` is not cut
    assert "token only by the lookup whole" not in found
    assert "1 token with several ids: 'ab' has the ids 257, 300" in found
    assert "1 byte without an entry, such as ff" in found


def test_an_added_token_with_the_id_of_another_entry_is_odd_and_has_cases() -> None:
    assert MODEL.pipeline is not None
    token = AddedToken("\xfc", id=0xFC)  # as `tokenizers` writes it: the key of the byte FC in `model.vocab`
    pipeline = replace(MODEL.pipeline, added_tokens=(*ADDED, token))
    model = replace(MODEL, special_tokens=(*(MODEL.special_tokens or ()), token.content), pipeline=pipeline)
    why = "because its text is the key of that entry"
    assert f"the added token '\\xfc' has the id 252 of <fc>, {why}" in odd(model)
    assert why not in odd(MODEL)
    reach = Reach(model)
    drafts = [*cases.decoding(reach, Draw("0")), *cases.detokenizing(reach, Draw("0"))]
    kinds = [draft.kind for draft in drafts if "\xfc" in draft.title or "\\xfc" in draft.title]
    assert {"decode-special", "detok-special"} <= {*kinds}
    assert model.special_ids == {**MODEL.special_ids, "\xfc": 0xFC}


def test_an_added_token_after_others_can_be_a_byte_with_another_id(tmp_path: Path) -> None:
    table = read_model({"merges": [["b", "c"], ["a", "b"], [" ", "x"]]})
    added = (AddedToken("caf\xe9", id=259), AddedToken(" ", id=260))
    pipeline = Pipeline(added_tokens=added, steps=(ByteLevel(),))
    texts = tuple(token.content for token in added)
    more = {token.id or 0: token.content.encode() for token in added}
    model = replace(table, vocab={**table.vocab, **more}, special_tokens=texts, pipeline=pipeline, name="spaces")
    huggingface.write(tmp_path / "tokenizer.json", model)
    assert huggingface.read(tmp_path / "tokenizer.json").special_ids == {"caf\xe9": 259, " ": 260}
    drafts, _ = cases.words(Reach(model), Draw("0"))
    assert {"leftmost-first", "longest-match"} <= {draft.kind for draft in drafts}


def test_the_command_fits_a_screen_and_shows_the_steps_of_a_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    huggingface.write(tmp_path / "tokenizer.json", replace(MODEL, vocab={**MODEL.vocab, 262: b"qqq", 263: b"zzz"}))
    words = ["inspect", str(tmp_path / "tokenizer.json")]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= inspect.WIDTH
    assert {
        "normalizer  NFC",
        r"step 1      Split (behavior Isolated, invert False): \d|zq(?=!)|xq(?=!)",
        "lookup      whole: a pre-token that is an entry is one token (ignore_merges)",
        "added       1 token with lstrip: '<a>' 272",
        "llama.cpp   convert_hf_to_gguf.py does not know its ids: their hash is",
    } <= set(lines)
    assert main([*words, "--text", ""]) == 0
    assert capsys.readouterr().out == "text        ''\nids         \n"
    assert main([*words, "--text", "\udcff"]) == 2
    assert capsys.readouterr().err == "bpe-conformance: --text is not UTF-8\n"
    assert main([*words, "--text", "A\u030a2 abc<s>"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "text        'A\\u030a2 abc<s>'",
        "segment     '\\xc52 abc'",
        "pre-token   '\\xc5': <c3> 195 | <85> 133",
        "pre-token   '2': '2' 50",
        "pre-token   ' ': ' ' 32",
        "pre-token   'abc': 'abc' 258",
        "added       '<s>' 270",
        "ids         195 133 50 32 258 270",
    ]


def test_every_added_token_is_listed_with_its_flags_and_its_id() -> None:
    source = ModelSource(MODEL, "tokenizer.json", {"tokenizer.json": ""})
    added = [text for label, text in inspect._description(source, Reach(MODEL)) if label == "added"]
    assert added == [
        "2 tokens with none of normalized, lstrip, rstrip, single_word: '<s>' 270, 'x<s>' 273",
        "1 token with normalized: '<s>x' 271",
        "1 token with lstrip: '<a>' 272",
    ]
    plain = replace(TABLE, special_tokens=("<a>", "<s>"))
    described = dict(inspect._description(ModelSource(plain, "", {}), Reach(plain)))
    assert described["added"] == "2 tokens with none of normalized, lstrip, rstrip, single_word: '<a>' 272, '<s>' 270"
    assert described["lookup"] == "pair: by merges"
    assert dict(inspect._description(source, Reach(MODEL)))["lookup"].startswith("whole: ")
    numbered = replace(MODEL, pipeline=Pipeline(added_tokens=(AddedToken("<s>"), AddedToken("<b>", id=999))))
    described = dict(inspect._description(ModelSource(numbered, "", {}), Reach(numbered)))
    assert described["added"] == "2 tokens with none of normalized, lstrip, rstrip, single_word: '<s>' 270, '<b>' 999"
    assert described["normalizer"] == "none"
    many = tuple(AddedToken(f"<{number}>", id=900 + number) for number in range(6))
    numbered = replace(MODEL, pipeline=Pipeline(added_tokens=many))
    described = dict(inspect._description(ModelSource(numbered, "", {}), Reach(numbered)))
    assert described["added"].endswith("single_word: '<0>' 900, '<1>' 901, '<2>' 902, '<3>' 903, 2 more")


def test_the_names_by_which_llamacpp_knows_the_ids_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect.gguf, "recognised", lambda *_: ("0", {"gpt-2": None, "llama-bpe": 128000, "tekken": 0}))
    described = dict(inspect._description(ModelSource(MODEL, "", {}), Reach(MODEL)))
    known = "takes its ids for those of gpt-2 (no BOS), llama-bpe (BOS 128000), tekken (BOS 0)"
    assert described["llama.cpp"] == f"convert_hf_to_gguf.py {known}"


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash")
def test_a_shell_reads_the_text_that_shows_what_is_odd() -> None:
    texts = [
        "a b",
        "it's",
        "\\",
        "'\\'",
        "a\nb",
        "é",
        "\u2581x",
        "\uffff",
        "\U00010000",
        "\U0001f98a~",
        "\x7f",
        "$x `y`",
        "-n",
    ]
    words = " ".join(inspect._see(text).removeprefix("; see --text ") for text in texts)
    assert words.isascii()
    assert words.isprintable()
    read = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {words}"], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    )
    assert read.stdout.decode().split("\0")[:-1] == texts
    assert inspect._see("") == ""
