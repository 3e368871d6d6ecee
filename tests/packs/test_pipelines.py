"""Packs of models with a pipeline: each setting has cases, and a wrong engine fails with a cause that names it."""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from helpers.outcomes import outcomes_of
from helpers.project import Project

from bpe_conformance.adapters import AdapterError
from bpe_conformance.adapters.textbook import Tokenizer
from bpe_conformance.cases.judging import MUCH_TIME
from bpe_conformance.cli import main
from bpe_conformance.commands import explain
from bpe_conformance.commands.explain import View
from bpe_conformance.fixtures import PATTERNS, Model, read_model
from bpe_conformance.fixtures.characters import NORMAL_FORMS, NormalForm
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Digits, Pipeline, Punctuation, Split
from bpe_conformance.known_bugs.causes import diagnose
from bpe_conformance.operations import Decode, Detokenize, Encode
from bpe_conformance.outcome import BugCause
from bpe_conformance.packs import build, cases
from bpe_conformance.packs.cases import Draft, Draw
from bpe_conformance.packs.files import BLOCK, load_pack
from bpe_conformance.packs.patterns import expressions, variants
from bpe_conformance.packs.reach import CHANGED, NOT_BUILT, Reach
from bpe_conformance.plugin import SETTINGS
from bpe_conformance.reference import Tokenizer as Reference
from bpe_conformance.reference import textbook
from bpe_conformance.reference.formats import gguf, huggingface
from bpe_conformance.spec import Case, installed_spec
from bpe_conformance.terminal.causes import name as name_of

TEXT = (
    "the cat's hat, they'll we've  it's I'm 123 1234 é ﬁ ² 日本語 e\u0301 (the) !!! ... ?!\n\n  x\n y\t\tz THE   -\n"
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
NEW = "\u07fd"  # a mark since Unicode 11: the version decides how it is ordered among others
STEPS = (Digits(), Split("the"), Split(PATTERNS["llama3"], "Removed", invert=True), ByteLevel(split=False))


def toy(pattern: str = "llama3", **changes: Any) -> Model:
    trained = Reference.train(TEXT, 256 + 60, pattern=pattern)
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
        patch.setattr(cases, "TRIED", 800)
        patch.setattr(cases, "real", lambda reach: ())
        patch.setattr(cases, "scripts", lambda reach, draw: ())
        tests = folder / "toy.gguf"
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            words = ["pack", str(folder / "toy.json"), "-o", str(folder / "pack"), "--llamacpp", str(tests)]
            assert main(words) == 0
    assert shown.getvalue().endswith(f"\nwritten   {tests}.inp and {tests}.out, for test-tokenizer-0\n")
    return folder / "pack"


@pytest.mark.slow
def test_the_engines_agree_on_a_pack_that_detects_mistakes_in_every_setting(pack: Path) -> None:
    manifest = json.loads((pack / "pack.json").read_text("utf-8"))
    engines = manifest["engines"]
    assert engines["agree"]["tokenizers"]["agrees"] + len(engines["differ"]) == manifest["counts"]["cases"]
    assert {row["reason"] for row in engines["differ"]} <= {
        "it decodes added tokens that are not ASCII as mapped characters"
    }
    found = manifest["coverage"]["texts_that_a_wrong_pipeline_encodes_otherwise"]
    # llama3 leaves nothing over, and cuts what two matches of `the` that touch would join; it has no capturing group
    # and no dot. Each added token is `special` or `normalized`, and the normal form is not NFC.
    missing = {name for name, count in found.items() if not count}
    of_split = {"captured-groups-as-pieces", "gaps-from-the-start", "isolated-as-contiguous", "removed-as-isolated"}
    of_split.add("dots-match-line-ends")
    of_added = {"added-tokens-not-found", "tokens-in-stripped-white-space-lost"}
    of_words = {"single-word-sees-token-before", "single-word-without-joiners"}
    assert missing == {*of_split, *of_added, *of_words, "nfc-only-with-marks-or-jamo"}
    assert manifest["coverage"]["words_that_a_wrong_encoder_encodes_otherwise"]["whole-left-out"] == 2


def test_a_pack_is_read_as_it_was_made(pack: Path) -> None:
    read = load_pack(pack, installed_spec().clauses)
    assert read[0].model == toy()
    for case in read:
        assert case.operation.compute(case.model) == case.expected, case.id
    entries = [case for case in read if "-entries-" in case.id]
    assert [case.id for case in entries] == ["toy-entries-0001"]
    assert {"qzqz", "the", "<mask>"} <= set(entries[0].operation.texts())


def test_a_pack_has_cases_of_every_kind_and_entries_whose_normal_form_is_the_same_in_all_versions_of_unicode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[tuple[object, ...]] = []

    def drafts(name: str) -> list[Draft]:
        return [Draft(name, "MERGE-ORDER-1", "a title", Encode(f"a {name}"))]

    monkeypatch.setattr(build, "measure", lambda *_: {})
    monkeypatch.setattr(cases, "words", lambda *_: (drafts("words"), {}))
    monkeypatch.setattr(cases, "mistakes", lambda *_: (drafts("mistakes"), {}, {}))
    names = ("special", "raw", "scripts", "real", "long", "tokens", "decoding", "streams", "batches", "detokenizing")
    for name in (*names, "offsets"):
        monkeypatch.setattr(cases, name, lambda *some, name=name: given.append(some) or drafts(name))
    model = toy()
    model = replace(model, vocab={**model.vocab, 900: b"zz", 901: NEW.encode(), 902: b"\xff", 903: b"yy"})
    pack = build.build(model, 0)
    kinds = [case.id.removeprefix("toy-").rpartition("-")[0] for case in pack.cases]
    assert sorted({*kinds}) == sorted([*names, "offsets", "words", "mistakes", "entries"])
    hard = [some[-1] for some in given if isinstance(some[-1], list)]
    assert hard == [["a words", "a mistakes"]] * 2  # of streams and of offsets
    assert [index for index in pack.entries if index >= 900] == [900, 903]
    assert not [case.id for case in pack.cases for text in case.operation.texts() if NEW in text]
    assert {index for index in pack.others if index >= 900} == set()  # the lookup is whole


def test_no_text_of_many_scripts_depends_on_the_version_of_unicode() -> None:
    reach = Reach(toy())
    texts = [draft.operation.texts()[0] for draft in cases.scripts(reach, Draw("0"))]
    assert len(texts) > 20
    assert not list(filter(reach.is_open, texts))


def test_a_pack_of_one_engine_says_which_was_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise AdapterError(f"{name} is not installed")

    monkeypatch.setattr(build, "resolve", absent)
    agreement = build.agree(toy(), (), build.engines())
    assert agreement.not_asked["tiktoken"] == "tiktoken is not installed"


def test_a_slow_server_has_time_for_each_case_of_entries() -> None:
    assert MUCH_TIME * float(SETTINGS["--bpe-time-limit"]["default"]) >= BLOCK * 0.1  # seconds


def test_the_tests_of_llamacpp_have_the_texts_without_special_tokens(pack: Path) -> None:
    read = load_pack(pack, installed_spec().clauses)
    written = gguf.read_tests(pack.with_name("toy.gguf"))
    found = dict(written)
    assert [(text, tuple(ids)) for text, ids in written] == [(text, tuple(ids)) for text, ids in build._ordinary(read)]
    tokenizer = Reference.from_model(toy())
    assert {"the", "qzqz"} <= found.keys()
    assert not any(token.content in text for text in found for token in ADDED)
    assert all(tokenizer.encode(text) == list(ids) for text, ids in found.items())


def given(step: str, change: Callable[..., tuple[Any, ...]]) -> dict[str, Any]:
    """Return a step of an engine that does the correct thing with other arguments."""
    return {step: lambda self, *arguments: getattr(textbook.Encoding, step)(self, *change(*arguments))}


def tokens(**flags: bool) -> dict[str, Any]:
    return given("find_added", lambda added, text: ([replace(token, **flags) for token in added], text))


def step(kind: type, **settings: Any) -> dict[str, Any]:
    return given("apply", lambda step, piece: (replace(step, **settings) if isinstance(step, kind) else step, piece))


def behavior(wrong: str, *names: str) -> dict[str, Any]:
    return given("cut_at", lambda piece, found, name, *more: (piece, found, wrong if name in names else name, *more))


def expression(name: str) -> dict[str, Any]:
    return step(Split, expression=PATTERNS[name])


def order(change: Callable[[Sequence[Any]], Sequence[Any]]) -> dict[str, Any]:
    return given("apply_all", lambda steps, text: ((*change(steps[:-1]), steps[-1]), text))


def longest_first(self: Any, text: str, forms: Iterable[str]) -> list[tuple[str, bool]]:
    parts = [(text, False)]
    for form in sorted(forms, key=len, reverse=True):
        cut = ([part] if part[1] else textbook.cut_special(part[0], [form]) for part in parts)
        parts = [part for several in cut for part in several]
    return parts


def raw_last(self: Any, added: Sequence[AddedToken], text: str) -> list[tuple[str, bool]]:
    late, early = ([token for token in added if token.normalized is kind] for kind in (True, False))
    cut = textbook.Encoding.find_added(self, late, text)
    several = ([part] if part[1] else textbook.Encoding.find_added(self, early, part[0]) for part in cut)
    return [part for parts in several for part in parts]


SEVERAL = toy()
NO_FLAGS = dict.fromkeys(("normalized", "lstrip", "rstrip", "single_word"), False)
MAPPED = toy(
    normalizer=(),
    added_tokens=(AddedToken("<s>"),),
    steps=(
        Split("-", "Removed"),
        Punctuation("MergedWithNext"),
        Split("[th]", "Contiguous"),
        Split("(?=b)"),
        Digits(individual=True),
        ByteLevel(prefix_space=True, split=False),
        Digits(),
    ),
    lookup="pair",
    pattern="none",
)
MERGES = [[" ", " "], ["b", "c"], ["a", "b"], ["ab", "c"], ["c", "1"], ["q", "z"]]  # `xabc` has other ids by bytes
COMPOSED = toy(
    "gpt2",
    normalizer=("NFC",),
    added_tokens=(AddedToken("<s>"), AddedToken("<mask>", normalized=True)),
    steps=(ByteLevel(),),
    lookup="pair",
)
OWN = read_model({"merges": MERGES, "extra": [[300, "qzqz"]], "pipeline": {}}, "own")
ENGINES: dict[str, tuple[Model, dict[str, Any]]] = {
    "normalizer-left-out": (SEVERAL, {"normalize": lambda self, text: text}),
    "compatibility-forgotten": (SEVERAL, {"normalize": lambda self, text: unicodedata.normalize("NFC", text)}),
    "compatibility-added": (COMPOSED, {"normalize": lambda self, text: unicodedata.normalize("NFKC", text)}),
    "normalized-flag-ignored": (SEVERAL, tokens(normalized=False)),
    "flags-ignored": (SEVERAL, tokens(**NO_FLAGS)),
    "settings-ignored": (SEVERAL, {**tokens(**NO_FLAGS), "normalize": lambda self, text: text}),
    "normalized-tokens-first": (SEVERAL, {"find_added": raw_last}),
    "lstrip-ignored": (SEVERAL, tokens(lstrip=False)),
    "rstrip-ignored": (SEVERAL, tokens(rstrip=False)),
    "single-word-ignored": (SEVERAL, tokens(single_word=False)),
    "added-tokens-longest-first": (SEVERAL, {"search_added": longest_first}),
    "added-tokens-as-text": (SEVERAL, given("find_added", lambda added, text: ((), text))),
    "splits-in-reverse": (SEVERAL, order(lambda steps: steps[::-1])),
    "only-first-split": (SEVERAL, order(lambda steps: steps[:1])),
    "expression-of-gpt2": (SEVERAL, expression("gpt2")),
    "expression-of-cl100k": (SEVERAL, expression("cl100k")),
    "expression-of-o200k": (SEVERAL, expression("o200k")),
    "expression-of-llama3": (SEVERAL, expression("llama3")),
    "expression-of-qwen2": (SEVERAL, expression("qwen2")),
    "invert-ignored": (SEVERAL, step(Split, invert=False)),
    "own-split-of-byte-level-always": (SEVERAL, step(ByteLevel, split=True)),
    "digits-always-individual": (SEVERAL, step(Digits, individual=True)),
    "whole-ignored": (SEVERAL, {"stays_whole": lambda self, word: False}),
    "removed-as-isolated": (MAPPED, behavior("Isolated", "Removed")),
    "merged-as-isolated": (MAPPED, behavior("Isolated", "MergedWithNext")),
    "contiguous-as-isolated": (MAPPED, behavior("Isolated", "Contiguous")),
    "isolated-as-contiguous": (MAPPED, behavior("Contiguous", "Isolated")),
    "empty-matches-ignored": (
        MAPPED,
        given("cut_at", lambda piece, found, *more: (piece, [(a, b) for a, b in found if a < b], *more)),
    ),
    "punctuation-without-symbols": (MAPPED, {"punctuation": r"\p{P}"}),
    "digits-decimal-only": (MAPPED, {"digits": r"\p{Nd}"}),
    "prefix-space-left-out": (MAPPED, step(ByteLevel, prefix_space=False)),
    "always-whole": (OWN, {"stays_whole": lambda self, word: b"".join(word) in self.byte_ranks}),
    "own-split-of-byte-level-forgotten": (OWN, step(ByteLevel, split=False)),
}
"""Id of a known bug → a model, and the step of the textbook that an engine for it does wrong."""


@cache
def cases_of(model: Model) -> list[Case]:
    """Return the cases of a pack that are about its settings."""
    reach, draw = Reach(model), Draw("pack 0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cases, "TRIED", 800)
        patch.setattr(cases, "CANDIDATES", 200)
        patch.setattr(cases, "real", lambda reach: ())
        drafts = [*cases.words(reach, draw)[0], *cases.mistakes(reach, draw)[0]]
    return list(build.answered(reach, drafts))


@pytest.mark.parametrize("wrong", [tokens(normalized=False), tokens(normalized=True)])
def test_a_mark_after_an_added_token_shows_when_an_engine_normalizes(wrong: dict[str, Any]) -> None:
    asked = cases_of(COMPOSED)
    outcomes = outcomes_of(type("Engine", (Tokenizer,), wrong), asked)
    cause = diagnose(outcomes, asked).causes[0]
    assert isinstance(cause, BugCause), cause
    assert cause.bugs[0].id in ("normalized-flag-ignored", "normalized-as-one-text")


def test_raw_texts_of_a_model_that_normalizes_say_so() -> None:
    plain, composed = (list(cases.raw(Draw("pack 0"), forms)) for forms in ((), ("NFC",)))
    assert {draft.clause for draft in plain} == {"BYTES-EMPTY-1", "BYTES-TEXT-1", "BYTES-TEXT-2", "BYTES-TEXT-3"}
    assert {draft.clause for draft in composed} == {
        *("BYTES-EMPTY-1", "PIPELINE-NORM-1", "BYTES-TEXT-2", "BYTES-TEXT-3")
    }
    for draft in composed:
        (text,) = draft.operation.texts()
        is_changed = any(unicodedata.normalize(form, text) != text for form in NORMAL_FORMS)
        assert (draft.clause == "PIPELINE-NORM-1") == ("normalized by NFC" in draft.title) == is_changed


@pytest.mark.parametrize("form", ["NFD", "NFKC"])
def test_an_engine_with_another_normal_form_gets_no_advice_to_leave_text_unchanged(form: NormalForm) -> None:
    reach = Reach(COMPOSED)
    asked = [*cases_of(COMPOSED), *build.answered(reach, cases.raw(Draw("pack 0"), ("NFC",)))]
    wrong = {"encode": lambda self, text: Tokenizer.encode(self, unicodedata.normalize(form, text))}
    wrong |= {"normalize": lambda self, text: unicodedata.normalize(form, text)}
    causes = diagnose(outcomes_of(type("Engine", (Tokenizer,), wrong), asked), asked).causes
    named = [bug for cause in causes if isinstance(cause, BugCause) for bug in cause.bugs]
    assert all(bug.clause != "BYTES-TEXT-1" for bug in named), causes
    assert form == "NFD" or "compatibility-added" in {bug.id for bug in named}, causes


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_a_wrong_engine_fails_with_a_cause_that_names_the_setting(name: str) -> None:
    model, steps = ENGINES[name]
    asked = cases_of(model)
    outcomes = outcomes_of(type("Engine", (Tokenizer,), steps), asked)
    assert any(outcome.state == "failed" for outcome in outcomes)
    cause = diagnose(outcomes, asked).causes[0]
    assert isinstance(cause, BugCause), cause
    assert name in {bug.id for bug in cause.bugs}, cause


@pytest.mark.slow
def test_a_flag_that_is_not_read_is_named_where_another_one_hides_it() -> None:
    asked = cases_of(SEVERAL)
    outcomes = outcomes_of(type("Engine", (Tokenizer,), tokens(normalized=False, single_word=False)), asked)
    found = diagnose(outcomes, asked)
    named = {bug.id for cause in found.causes if isinstance(cause, BugCause) for bug in cause.bugs}
    assert {"normalized-flag-ignored", "single-word-ignored"} <= named
    assert {*found.unexplained} <= found.overlaid


@pytest.mark.parametrize(("before", "after"), [([b"sep"], []), ([], [b"<s>"]), ([b"<s>"], [b"sep"])])
def test_what_engines_add_and_leave_out_by_default_is_named(
    before: list[bytes], after: list[bytes], pack: Path
) -> None:
    class Engine(Tokenizer):
        def encode(self, text: str, **choice: Any) -> list[int]:
            first, last = ([self.ids[token] for token in tokens] for tokens in (before, after))
            return [*first, *super().encode(text, **choice), *last]

        def decode(self, ids: Sequence[int]) -> str:
            return super().decode([index for index in ids if self.vocab[index] not in (b"<s>", b"<mask>")])

    read = load_pack(pack, installed_spec().clauses)
    asked = [case for case in read if case.id.startswith("toy-decode-special")]
    asked += [case for case in read if isinstance(case.operation, Encode)][::12]
    outcomes = outcomes_of(Engine, asked)
    causes = diagnose(outcomes, asked).causes
    assert [name_of(cause) for cause in causes] == ["beginning-marked", "specials-left-out"]
    failed = {outcome.test for outcome in outcomes if outcome.state == "failed"}
    assert failed == {test for cause in causes for test in cause.tests}


def test_a_known_bug_of_decoders_is_named(pack: Path) -> None:
    class Engine(Tokenizer):
        def decode(self, ids: Sequence[int]) -> str:
            return "".join(self.vocab[index].decode("utf-8", "replace") for index in ids)

    asked = [case for case in load_pack(pack, installed_spec().clauses) if isinstance(case.operation, Decode)][::4]
    causes = diagnose(outcomes_of(Engine, asked), asked).causes
    assert [name_of(cause) for cause in causes] == ["tokens-decoded-apart"]


def test_a_known_bug_of_detokenizers_is_named(pack: Path) -> None:
    class Engine(Tokenizer):
        def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            return (decoder.decode(self.vocab[index]) for index in ids)

    asked = [case for case in load_pack(pack, installed_spec().clauses) if case.operation.name == "detokenize"]
    causes = diagnose(outcomes_of(Engine, asked), asked).causes
    assert [name_of(cause) for cause in causes] == ["end-of-stream-lost"]


def test_a_detokenizer_that_collects_all_ids_fails(pack: Path) -> None:
    class Engine(Tokenizer):
        def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
            yield self.decode(list(ids))

    asked = [case for case in load_pack(pack, installed_spec().clauses) if case.operation.name == "detokenize"]
    failed = [outcome for outcome in outcomes_of(Engine, asked) if outcome.state == "failed"]
    assert {outcome.clause and outcome.clause.id for outcome in failed} == {"DETOK-LAZY-1"}


@pytest.mark.slow
def test_a_known_bug_of_encoders_is_named(pack: Path) -> None:
    class Engine(Tokenizer):
        def encode(self, text: str) -> list[int]:
            return super().encode(text.replace("\r\n", "\n"))

    asked = [case for case in load_pack(pack, installed_spec().clauses) if isinstance(case.operation, Encode)]
    found = diagnose(outcomes_of(Engine, asked), asked).causes
    assert [name_of(cause) for cause in found] == ["encodes-crlf-as-lf"]


def test_known_bugs_of_streams_explain_long_lists_of_ids_and_tokens_that_are_not_special(
    pack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class StreamsEachIdAlone(Tokenizer):
        def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
            for index in ids:
                yield self.decode([index])

    class LeavesOutSpecials(Tokenizer):
        def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
            special = {self.ids[token.content.encode()] for token in ADDED[:2]}
            return super().decode_iterable(index for index in ids if index not in special)

    class AwaitsTheEnd(LeavesOutSpecials):
        def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
            held = ""
            for delta in super().decode_iterable(ids):
                held += delta
                if not held.endswith("\ufffd"):
                    yield held
                    held = ""

    every = load_pack(pack, installed_spec().clauses)
    asked = [case for case in every if isinstance(case.operation, Detokenize)]
    monkeypatch.setattr("bpe_conformance.known_bugs.causes.MOST_IDS", 100)
    assert max(len(case.operation.ids) for case in asked) > 100
    for target, name in (
        (StreamsEachIdAlone, "tokens-streamed-apart"),
        (LeavesOutSpecials, "specials-left-out-of-deltas"),
        (AwaitsTheEnd, "specials-skipped-and-end-awaited"),
    ):
        found = diagnose(outcomes_of(target, asked), asked)
        assert ([name_of(cause) for cause in found.causes], found.unexplained) == ([name], ())


def test_a_failure_of_an_engine_for_one_model_does_not_depend_on_itself(pack: Path) -> None:
    right = Tokenizer.from_tokenizer_json(str(pack.parent / "toy.json"))

    class Engine:
        model = "toy"

        def encode(self, text: str) -> list[int]:
            return right.encode(text.replace("\ufeff", "\n"))

    asked = [case for case in load_pack(pack, installed_spec().clauses) if isinstance(case.operation, Encode)]
    failed = [outcome for outcome in outcomes_of(Engine, asked) if outcome.state == "failed"]
    assert failed
    assert not [outcome.test for outcome in failed if outcome.depends]


def test_a_run_prints_the_cause(pack: Path, project: Project) -> None:
    adapter = "--adapter=bpe_conformance.known_bugs.pipeline:OnlyFirstSplit"
    result = project.pytester.runpytest_inprocess("conformance", adapter, f"--bpe-pack={pack}", "-k=split")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*only-first-split*"])


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("toys", "but the pack is for 'toy'; if they have the same vocabulary, write model = 'toy'"),
        ("/nowhere/tokenizer.json", "which is not a file; write the path of its tokenizer.json"),
    ],
)
def test_another_model_than_that_of_the_pack_is_an_error(model: str, said: str, pack: Path, project: Project) -> None:
    project.write("renamed.py", f"class T:\n    model = {model!r}\n    def encode(self, text): return []\n")
    message = project.refused("renamed:T", f"--bpe-pack={pack}", "--bpe-spec", "")
    assert message == f"ERROR: renamed:T: the attribute model is {model!r}, {said}"


def test_a_failure_of_entries_shows_the_first_texts_with_ids_and_tokens(pack: Path, project: Project) -> None:
    adapter = "--adapter=bpe_conformance.known_bugs.pipeline:WholeIgnored"
    chosen = ["--bpe-case=toy-entries-0001", f"--bpe-pack={pack}"]
    result = project.pytester.runpytest_inprocess("conformance", adapter, *chosen)
    result.stdout.fnmatch_lines(
        [
            "*FAILED toy-entries-0001*",
            "*expected *u8a9ex *[[]315]",
            "*got *u8a9e *| x *[[]*, 120]",
            "*also *1 other text: 'qzqz' is 316 'qzqz', not 113 'q' | 122 'z' | 113 'q' | 122 'z'*",
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
    assert reach.why_not(b"\xa5\x98")[0] == NOT_BUILT  # changed in U+0958, but not in other characters
    assert reach.is_open("\u32ff")
    assert not Reach(toy(normalizer=())).is_open("\u32ff")


def test_the_only_special_token_is_named_as_left_out_even_with_the_id_zero() -> None:
    class Engine(Tokenizer):
        def decode(self, ids: Sequence[int]) -> str:
            return super().decode([index for index in ids if self.vocab[index] != b"<s>"])

    ids = {index: index + 1 for index, token in MAPPED.vocab.items() if token != b"<s>"}
    vocab = {0: b"<s>", **{index: MAPPED.vocab[old] for old, index in ids.items()}}
    reach = Reach(replace(MAPPED, vocab=vocab))
    asked = list(build.answered(reach, cases.decoding(reach, Draw("pack 0"))))
    outcomes = outcomes_of(Engine, asked)
    (cause,) = diagnose(outcomes, asked).causes
    assert name_of(cause) == "specials-left-out or id-zero-skipped"
    assert {*cause.tests} == {outcome.test for outcome in outcomes if outcome.state == "failed"}


def test_a_special_token_that_a_merge_builds_has_a_pack() -> None:
    reach = Reach(toy("gpt2", normalizer=(), added_tokens=(AddedToken("th"),), steps=(ByteLevel(),), lookup="pair"))
    assert (b"t", b"h") in reach.model.merges
    drafts, _ = cases.words(reach, Draw("pack 0"))
    assert drafts


@pytest.mark.parametrize(("char", "is_new"), [("!", False), ("\u2014", False), ("\u061d", True), ("\u166d", True)])
def test_new_punctuation_is_open_where_a_step_cuts_it_out(char: str, is_new: bool) -> None:
    assert Reach(MAPPED).is_open(f"a{char}") is is_new
    assert not Reach(OWN).is_open(f"a{char}")


def test_streams_whose_chunks_are_encoded_alone_are_named() -> None:
    class Engine(Tokenizer):
        def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
            for chunk in chunks:
                yield from self.encode(chunk)

    reach = Reach(OWN)
    asked = list(build.answered(reach, cases.streams(reach, Draw("pack 0"), ["the th", "hat  a", "it's", "a 12"])))
    outcomes = outcomes_of(Engine, asked)
    (cause,) = diagnose(outcomes, asked).causes
    assert name_of(cause) == "chunks-encoded-alone"


@pytest.mark.slow
def test_each_case_of_a_pack_is_explained_by_a_replay_that_gives_its_ids(
    pack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explain, "_width", lambda: 100_000)
    spec = installed_spec()
    spec = replace(spec, cases=load_pack(pack, spec.clauses))
    encodings = [case for case in spec.cases if isinstance(case.operation, Encode)]
    assert len(encodings) > 50
    for case in encodings[::3]:
        lines = [line.strip() for line in explain.explain(spec, case.id, View.checked(None, None, True))]
        shown, times = Counter[str](), 1
        for line in lines[lines.index("replay") :]:
            if line.startswith("pre-token "):
                times = int(found[1]) if (found := re.search(r", (\d+) times$", line)) else 1
            elif line.startswith("= "):
                shown.update(re.findall(r"(?:^= |[|] )(\d+)(?= )", line) * times)
        (right,) = case.expected.under("whole") or ()
        added = {token.content.encode() for token in case.table.pipeline.added_tokens}  # type: ignore[union-attr]
        assert shown == Counter(str(index) for index in right.ids if case.table.vocab[index] not in added), case.id


def test_an_explanation_names_the_pack_in_what_it_points_to(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "merge-order-1", "--pack", str(pack)]) == 0
    assert f"bpe-conformance explain CASE --pack {pack} replays one" in " ".join(capsys.readouterr().out.split())
    assert main(["explain", "law-detok-growth", "--pack", str(pack)]) == 0
    assert f" --bpe-pack {pack} --bpe-case law-detok-growth" in capsys.readouterr().out
    assert main(["explain", "zzzz", "--pack", str(pack)]) == 2
    assert f"see cases.json of {pack}" in capsys.readouterr().err


def test_the_entries_of_a_pack_are_shown_in_part(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "toy-entries-0001", "--pack", str(pack)]) == 0
    shown = capsys.readouterr().out
    assert "each entry from id 0 to " in shown
    assert len(re.findall(r"[.][.][.] \d+\s+more", shown)) == 2
    assert "replay" not in shown
