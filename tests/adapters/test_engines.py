"""Engines over a model's file: `NAME:PATH`."""

from __future__ import annotations

import base64
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.project import Project

from bpe_conformance.adapters import AdapterError, CrashError, engines, loading, resolve
from bpe_conformance.cli import main
from bpe_conformance.command_line import CommandError
from bpe_conformance.fixtures import PATTERNS, Model, read_model
from bpe_conformance.fixtures.expression import pattern_name
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Digits, Pipeline, Split
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.packs.files import fit
from bpe_conformance.reference.formats import gguf, huggingface, tekken
from bpe_conformance.reference.tokenizer import Tokenizer as Reference

pytest.importorskip("tokenizers")
SMALL = read_model(
    {"merges": [["a", "b"], ["ab", "c"]], "special_tokens": ["<|e|>"], "extra": [[258, "<|e|>"]]}, "small"
)
OTHER = Model({**SMALL.vocab, 257: b"abd"}, (SMALL.merges[0], (b"ab", b"d")), SMALL.special_tokens)
ENGINE = """
from bpe_conformance.reference.formats import huggingface
from bpe_conformance.reference.textbook import Tokenizer

class Panic(BaseException):
    pass

class Engine:
    version = "1.2"

    @classmethod
    def from_tokenizer_json(cls, path):
        model = huggingface.read(path)
        if 257 not in model.vocab:
            raise Panic("unsupported size\\nof the vocabulary")
        return Tokenizer(model.vocab, model.merges, model.special_tokens)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").mkdir()
    huggingface.write("m/tokenizer.json", SMALL)
    (tmp_path / "an_engine.py").write_text(ENGINE, "utf-8")
    monkeypatch.delitem(sys.modules, "an_engine", raising=False)
    monkeypatch.setitem(loading.BUILT_IN, "engine", "an_engine:Engine")
    return tmp_path


@pytest.mark.parametrize("path", ["m", "m/tokenizer.json"])
def test_an_engine_loads_the_file_of_a_model(folder: Path, path: str) -> None:
    adapter = resolve(f"huggingface:{path}")
    implementation = Implementation("huggingface:m", adapter)
    assert implementation.model_file == folder / "m" / "tokenizer.json"
    assert implementation.version == resolve("huggingface").version  # type: ignore[attr-defined]
    assert implementation.conventions["tie_break"] == "lex-greater"  # that of a trainer, which it is not
    assert "train" not in implementation.capabilities
    assert implementation.build(SMALL).encode("abc<|e|>ab") == [257, 258, 256]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("huggingface:absent", "huggingface:absent: there is no such file; write huggingface:PATH"),
        ("huggingface:.", "huggingface:.: there is no tokenizer.json or tekken.json in this directory"),
        ("huggingface:an_engine.py", "huggingface:an_engine.py: huggingface does not load it: expected"),
        ("engine:m2/tokenizer.json", "engine:m2/tokenizer.json: engine does not load it: unsupported size of the voc"),
        ("minimal:m", "minimal reads no file of a model; write --adapter minimal"),
        ("minimal:", "minimal reads no file of a model; write --adapter minimal"),
        ("tiktoken:", "tiktoken names no file; write tiktoken:PATH of a model's file"),
        ("llamacpp:", "llamacpp names no file; write llamacpp:PATH of a model's file"),
        ("llamacpp:absent.gguf", "llamacpp:absent.gguf: there is no such file"),
    ],
)
def test_a_file_that_an_engine_does_not_load_gives_one_line(folder: Path, spec: str, message: str) -> None:
    (folder / "m2").mkdir()
    huggingface.write("m2/tokenizer.json", Model(dict(list(SMALL.vocab.items())[:256]), ()))
    with pytest.raises(AdapterError, match=re.escape(message)) as raised:
        resolve(spec)
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_an_engine_is_tested_with_a_pack_of_its_model(project: Project) -> None:
    def run(adapter: str) -> pytest.RunResult:
        options = ["--adapter", adapter, "--bpe-pack", "pack", "-k", "entries"]
        return project.pytester.runpytest_inprocess("conformance", *options)

    huggingface.write(project.path / "small.json", SMALL)
    huggingface.write(project.path / "other.json", OTHER)
    assert main(["pack", str(project.path / "small.json"), "-o", str(project.path / "pack")]) == 0
    assert "PASS: encoder" in run("huggingface:small.json").stdout.str()
    (line,) = [line for line in run("huggingface:other.json").errlines if line.startswith("ERROR")]
    differs = "the id 257 is b'abd' in its file, and b'abc' in pack"
    fix = f"make a pack of this file: bpe-conformance pack {project.path / 'other.json'} -o DIR"
    assert line == f"ERROR: huggingface:other.json: {differs}; {fix}"


def test_without_a_pack_the_run_says_how_to_make_one(project: Project) -> None:
    huggingface.write(project.path / "small.json", SMALL)
    run = project.judge("huggingface:small.json")
    assert run.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    text = " ".join(run.stdout.str().split())
    assert f"make one: bpe-conformance pack {project.path / 'small.json'} -o DIR, then add --bpe-pack DIR" in text


def test_the_name_of_an_engine_is_that_before_the_colon(folder: Path) -> None:
    adapter = engines.loaded("x:m", lambda path: [path], "2")
    assert (adapter.__name__, adapter.version, adapter.model) == ("x", "2", str(folder / "m" / "tokenizer.json"))
    assert adapter() is adapter()


def write_tekken(pattern: str) -> None:
    vocab = [{"rank": rank, "token_bytes": base64.b64encode(bytes([rank])).decode()} for rank in range(256)]
    vocab.append({"rank": 256, "token_bytes": base64.b64encode(b"ab").decode()})
    config = {"pattern": pattern, "default_vocab_size": 259, "default_num_special_tokens": 2}
    Path("tekken.json").write_text(json.dumps({"config": config, "vocab": vocab}), "utf-8")


def test_a_tekken_file_is_tested_with_the_engines_that_read_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tiktoken")
    write_tekken(PATTERNS["llama3"])
    monkeypatch.setattr(engines, "_program", lambda name, spec, path: SimpleNamespace(path=path))
    adapter: Any = resolve("llamacpp:tekken.json")
    assert gguf.read(adapter.path).vocab[258] == b"ab"
    write_tekken(r"\w+|\W")
    assert resolve("tiktoken:tekken.json")().encode("ab a") == [258, 34, 99]
    write_tekken(r"\w|\W")
    assert resolve("tiktoken:tekken.json")().encode("ab") == [99, 100]  # type: ignore[operator]
    with pytest.raises(AdapterError, match=r"does not load it: it is a tekken\.json; mistral, tiktoken and llamacpp"):
        resolve("huggingface:tekken.json")
    Path("tekken.json").write_text('{"config": {}, "vocab": []}', "utf-8")
    with pytest.raises(AdapterError, match=r"tiktoken does not load it: .* expected `config`"):
        resolve("tiktoken:tekken.json")


def test_mistral_decodes_special_tokens_and_adds_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Tekkenizer:
        @classmethod
        def from_file(cls, path: Path) -> Tekkenizer:
            assert path.name == "tekken.json"
            return cls()

        def encode(self, text: str, bos: bool = True, eos: bool = True) -> list[object]:
            return [bos, eos, text]

        def decode(self, ids: list[int], special_token_policy: str = "ignore") -> str:
            return f"{ids} {special_token_policy}"

    base = SimpleNamespace(SpecialTokenPolicy=SimpleNamespace(KEEP="keep"))
    modules = {"base": base, "tekken": SimpleNamespace(Tekkenizer=Tekkenizer)}
    monkeypatch.setattr(
        engines, "require", lambda name, _: modules.get(name.split(".")[-1]) or SimpleNamespace(__version__="1.2")
    )
    write_tekken(r"\w+|\W")
    adapter: Any = resolve("mistral:tekken.json")
    assert adapter().encode("ab") == [False, False, "ab"]
    assert adapter().decode((1,)) == "[1] keep"
    assert adapter.version == "1.2"
    with pytest.raises(AdapterError, match="mistral does not load it: this is no tekken"):
        resolve("mistral:m")


@pytest.mark.parametrize("name", ["tekken.json", "other.json"])
def test_a_tekken_file_is_recognised_by_its_content(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text('{"config": {}, "vocab": []}', "utf-8")
    (tmp_path / "tekken-like.json").write_text("{}", "utf-8")
    (tmp_path / "tekken.txt").write_bytes(b"\xff")
    assert [tekken.is_tekken(tmp_path / file) for file in (name, "tekken-like.json", "tekken.txt")] == [
        True,
        False,
        False,
    ]


BYTES = ByteLevel(split=False)


def test_a_split_that_llamacpp_does_not_have_gives_one_line(folder: Path) -> None:
    huggingface.write("d.json", Model(SMALL.vocab, SMALL.merges, (), pipeline=Pipeline(steps=(Digits(), ByteLevel()))))
    with pytest.raises(
        AdapterError, match=r"llamacpp:d\.json: llama\.cpp has no pre-tokenizer for this model"
    ) as raised:
        resolve("llamacpp:d.json")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("pipeline", "lacks"),
    [
        (Pipeline(("NFC", "NFKD")), "the normalizer is NFC and NFKD"),
        (Pipeline(steps=(Digits(), ByteLevel())), "pre_tokenizer is not one expression"),
        *(
            (
                Pipeline(added_tokens=(AddedToken("<|e|>", **{flag: True}),)),
                "an added token has lstrip, rstrip or single_word",
            )
            for flag in ("lstrip", "rstrip", "single_word")
        ),
    ],
)
def test_tiktoken_names_the_setting_that_it_lacks(folder: Path, pipeline: Pipeline, lacks: str) -> None:
    pytest.importorskip("tiktoken")
    huggingface.write(
        "p.json", replace(SMALL, special_tokens=tuple(t.content for t in pipeline.added_tokens), pipeline=pipeline)
    )
    with pytest.raises(AdapterError, match=f"tiktoken:p.json: tiktoken does not load it: {lacks}"):
        resolve("tiktoken:p.json")


def test_tiktoken_has_the_ids_of_the_file_as_ranks(folder: Path) -> None:
    pytest.importorskip("tiktoken")
    swapped = {**SMALL.vocab, 256: b"abc", 257: b"ab", 258: b"zz"}
    steps = (Split(PATTERNS["llama3"]), BYTES)
    whole = Pipeline((), (AddedToken("zz"),), steps, "whole")
    huggingface.write("p.json", Model(swapped, SMALL.merges, ("zz",), pipeline=whole))
    adapter: Any = resolve("tiktoken:p.json")
    assert adapter().encode("abc abzz") == [256, 32, 257, 258]
    assert adapter().encode("zz", allowed_special=set(), disallowed_special=()) == [*b"zz"]


def test_the_vocabulary_of_a_gguf_file_is_compared_with_the_pack(folder: Path) -> None:
    class Engine:
        model = str(folder / "small.gguf")

        def encode(self, text: str) -> list[int]:
            return []

    gguf.write("small.gguf", SMALL)
    implementation = Implementation("engine", Engine)
    fit(implementation, SMALL, "pack")
    assert implementation.fixed_model == "small"
    with pytest.raises(CommandError, match="engine: the id 257 is b'abc' in its file, and b'abd' in pack"):
        fit(implementation, OTHER, "pack")
    (folder / "small.gguf").write_bytes(b"GGUF")
    fit(implementation, OTHER, "pack")
    assert "not compared with that of pack" in implementation.notes[-1]


class PicksPatterns(Reference):
    """It takes other patterns as expressions, but not every one."""

    def __init__(self, *arguments: Any, pattern: str | None = None) -> None:
        if pattern == "[a-c]+":
            raise ValueError("no [a-c]+")
        super().__init__(*arguments, pattern=pattern)


def test_a_vocabulary_can_have_the_expression_of_a_pack() -> None:
    implementation = Implementation("engine", PicksPatterns)
    own = replace(SMALL, pattern=r"\w+|\W")
    fit(implementation, own, "pack")
    assert f"pattern:{pattern_name(own.pattern)}" in implementation.capabilities
    assert implementation.build(own).encode("abc ab") == [257, 32, 256]
    refused = replace(own, pattern="[a-c]+")
    fit(implementation, refused, "pack")
    assert f"pattern:{pattern_name(refused.pattern)}" not in implementation.capabilities
    assert implementation.notes[-1].endswith("raised ValueError: no [a-c]+")


def test_a_gguf_file_may_have_any_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_program", lambda *arguments: arguments)
    gguf.write("sha256-00", SMALL)
    assert resolve("llamacpp:sha256-00") == ("llamacpp.mjs", "llamacpp:sha256-00", folder / "sha256-00")


def test_two_engines_are_compared_on_a_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "text.txt").write_text("abc ab<|e|>", "utf-8")
    huggingface.write("same.json", SMALL)
    huggingface.write("other.json", OTHER)
    assert main(["compare", "huggingface:m", "textbook:same.json", "--corpus", "text.txt"]) == 0
    assert main(["compare", "huggingface:m", "engine:other.json", "--corpus", "text.txt"]) == 1
    differs = "not compared: the models differ; the id 257 is b'abc' in one, b'abd' in the other"
    assert f"different     {differs}" in capsys.readouterr().out


def test_llamacpp_reads_a_copy_and_is_the_engine_of_the_given_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def program(name: str, spec: str, path: Path) -> Any:
        return SimpleNamespace(path=path)

    monkeypatch.setattr(engines, "_program", program)
    huggingface.write("small.json", SMALL)
    adapter: Any = resolve("llamacpp:small.json")
    assert adapter.model == str(folder / "small.json")
    assert adapter.path.is_file()  # the program may be started again
    assert adapter.path.name == "small.gguf"


def test_a_program_gets_the_path_of_the_model_and_its_errors_are_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bridge(arguments: list[str]) -> object:
        program, script, path = arguments
        assert (program, path) == ("node", str(folder / "m" / "tokenizer.json"))
        assert Path(script).is_file()
        raise CrashError("start", "status 1", stderr="Error: no such module\nnode v20")

    monkeypatch.setattr(engines, "bridge", bridge)
    with pytest.raises(AdapterError) as caught:
        resolve("transformersjs:m")
    assert str(caught.value) == "transformersjs:m: start: status 1"


@pytest.mark.parametrize(
    ("error", "message"),
    [(KeyError("merges"), "KeyError: 'merges'"), (ValueError(), "ValueError:"), (OSError("no"), "no")],
)
def test_an_error_of_an_engine_is_said_with_its_kind_if_it_says_too_little(
    error: Exception, message: str, folder: Path
) -> None:
    def load(path: Path) -> object:
        raise error

    huggingface.write("small.json", SMALL)
    with pytest.raises(AdapterError) as caught:
        engines.loaded("mine:small.json", load)
    assert str(caught.value) == f"mine:small.json: mine does not load it: {message}"
