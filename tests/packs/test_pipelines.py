"""Packs of models with a pipeline: each setting has cases, and a wrong engine fails with a cause that names it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.project import Project

from bpe_conformance.adapters import AdapterError
from bpe_conformance.cli import main
from bpe_conformance.fixtures import PATTERNS, Model
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Digits, Pipeline, Split
from bpe_conformance.packs import build, cases
from bpe_conformance.packs.files import BLOCK, load_pack
from bpe_conformance.packs.patterns import expressions, variants
from bpe_conformance.packs.reach import CHANGED, Reach
from bpe_conformance.plugin import SETTINGS
from bpe_conformance.reference import Tokenizer
from bpe_conformance.reference.formats import huggingface
from bpe_conformance.session.items import LARGE_TIMEOUT_FACTOR
from bpe_conformance.spec import installed_spec

TEXT = (
    "the cat's hat, they'll we've  it's I'm 123 1234 é ﬁ ² 日本語 e\u0301 (the) !!! ... ?!\n\n  x\n y\t\tz THE the\r\n"
    * 3
)
ADDED = (
    AddedToken("<s>"),
    AddedToken("<s>a"),
    AddedToken("s>abc"),
    AddedToken("<mask>", lstrip=True, rstrip=True),
    AddedToken("sep", single_word=True),
    AddedToken("e\u0301e\u0301", normalized=True),
)
STEPS = (Digits(), Split("the"), Split(PATTERNS["llama3"], "Removed", invert=True), ByteLevel(split=False))


def toy(**changes: Any) -> Model:
    trained = Tokenizer.train(TEXT, 256 + 60, pattern="llama3")
    whole = ["語x", "qzqz"]  # no merges build them
    more = enumerate([*whole, *(token.content for token in ADDED)], len(trained.vocab))
    settings: dict[str, Any] = {"normalizer": ("NFKC",), "added_tokens": ADDED, "steps": STEPS, "lookup": "whole"}
    pipeline = Pipeline(**{**settings, **changes})
    special = tuple(token.content for token in pipeline.added_tokens)
    return Model(
        {**trained.vocab, **{index: text.encode() for index, text in more}},
        tuple(trained.merges),
        special,
        pipeline=pipeline,
        name="toy",
    )


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pack")
    huggingface.write(folder / "toy.json", toy())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cases, "LONG", (60,))  # the oracle takes quadratic time
        patch.setattr(cases, "TRIED", 400)
        patch.setattr(cases, "real", lambda reach: ())
        patch.setattr(cases, "scripts", lambda reach, draw: ())
        assert main(["pack", str(folder / "toy.json"), "-o", str(folder / "pack")]) == 0
    return folder / "pack"


def test_the_engines_agree_on_a_pack_that_detects_mistakes_in_every_setting(pack: Path) -> None:
    manifest = json.loads((pack / "pack.json").read_text("utf-8"))
    engines = manifest["engines"]
    assert engines["agree"]["tokenizers"]["agrees"] + len(engines["differ"]) == manifest["counts"]["cases"]
    assert {row["reason"] for row in engines["differ"]} <= {
        "it decodes added tokens that are not ASCII as mapped characters"
    }
    found = manifest["coverage"]["texts_that_a_wrong_pipeline_encodes_otherwise"]
    assert all(found[name] for name in {*WRONG} - {"whole-ignored"})
    assert manifest["coverage"]["words_that_a_wrong_encoder_encodes_otherwise"]["whole-left-out"] == 2


def test_a_pack_is_read_as_it_was_made(pack: Path) -> None:
    read = load_pack(pack, installed_spec().clauses)
    assert read[0].model == toy()
    for case in read:
        assert case.operation.compute(case.model) == case.expected, case.id
    entries = [case for case in read if "-entries-" in case.id]
    assert [case.id for case in entries] == ["toy-entries-0001"]
    assert {"qzqz", "the", "<mask>"} <= set(entries[0].operation.texts())


def test_a_pack_of_one_engine_says_which_was_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise AdapterError(f"{name} is not installed")

    monkeypatch.setattr(build, "resolve", absent)
    agreement = build.agree(toy(), (), build.engines())
    assert agreement.not_asked["tiktoken"] == "tiktoken is not installed"


def test_a_slow_server_has_time_for_each_case_of_entries() -> None:
    assert LARGE_TIMEOUT_FACTOR * float(SETTINGS["--bpe-time-limit"]["default"]) >= BLOCK * 0.1  # seconds


def test_the_tests_of_llamacpp_have_the_texts_without_special_tokens(pack: Path) -> None:
    read = load_pack(pack, installed_spec().clauses)
    found = dict(build._ordinary(read))
    tokenizer = Tokenizer.from_model(toy())
    assert {"the", "qzqz"} <= found.keys()
    assert not any(token.content in text for text in found for token in ADDED)
    assert all(tokenizer.encode(text) == list(ids) for text, ids in found.items())


WRONG = (
    *("normalizer-left-out", "normalized-flag-ignored", "lstrip-ignored", "rstrip-ignored", "single-word-ignored"),
    *("only-first-split", "whole-ignored", "added-tokens-longest-first"),
)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_engine_fails_with_a_cause_that_names_the_setting(name: str, pack: Path, project: Project) -> None:
    target = "".join(part[0].upper() + part[1:] for part in name.split("-"))
    report = project.path / "report.json"
    result = project.pytester.runpytest_inprocess(
        "conformance",
        f"--adapter=bpe_conformance.known_bugs.pipeline:{target}",
        f"--bpe-pack={pack}",
        f"--bpe-report={report}",
        "-k=not stream and not decode and not batch",
    )
    assert result.ret == 1
    causes = json.loads(report.read_text("utf-8"))["causes"]
    assert name in json.dumps(causes[0]), causes


def test_a_failure_of_entries_shows_the_first_texts_with_ids_and_tokens(pack: Path, project: Project) -> None:
    adapter = "--adapter=bpe_conformance.known_bugs.pipeline:WholeIgnored"
    chosen = ["--bpe-case=toy-entries-0001", f"--bpe-pack={pack}"]
    result = project.pytester.runpytest_inprocess("conformance", adapter, *chosen)
    result.stdout.fnmatch_lines(
        [
            "*FAILED toy-entries-0001*",
            "*expected *u8a9ex *[[]313]",
            "*got *u8a9e *| x *[[]268, 120]",
            "*also *1 other text: 'qzqz' is 314 'qzqz', not 113 'q' | 122 'z' | 113 'q' | 122 'z'*",
        ]
    )


def test_every_expression_of_a_pipeline_has_variants() -> None:
    model = toy()
    assert [len(steps) for steps, _ in expressions(model)] == [1, 2]
    found = list(variants(model))
    assert len(found) > 50
    assert len({pipeline for _, _, pipeline in found}) == len(found)
    gpt2 = toy(steps=(ByteLevel(),))
    assert expressions(gpt2) == [((), PATTERNS["gpt2"])]
    assert not expressions(toy(steps=(ByteLevel(prefix_space=True),)))


def test_tokens_that_normalization_changes_are_named() -> None:
    model = toy()
    reach = Reach(
        Model({**model.vocab, 600: "ﬁ".encode()}, model.merges, model.special_tokens, pipeline=model.pipeline)
    )
    assert reach.text_for("ﬁ".encode()) is None
    assert reach.why_not("ﬁ".encode()) == (CHANGED, "'\\ufb01'")
    assert reach.is_open("\u32ff")
    assert not Reach(toy(normalizer=())).is_open("\u32ff")
