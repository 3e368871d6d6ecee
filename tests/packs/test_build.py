"""Engines that lie are noticed, and the coverage is what the cases reach."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import pytest

from bpe_conformance import cli
from bpe_conformance.adapters.textbook import Tokenizer as TokenizerOfFile
from bpe_conformance.command_line import CommandError
from bpe_conformance.fixtures import PATTERNS, Model, read_model
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Pipeline, Split
from bpe_conformance.known_bugs import known_bugs
from bpe_conformance.known_bugs.bases import BaseEncoder, like
from bpe_conformance.operations import Batch, Decode, Encode, Entries, Operation, Stream, StreamCutEverywhere
from bpe_conformance.packs import build, cases
from bpe_conformance.packs.build import agree, answered, engines
from bpe_conformance.packs.cases import Draft, Draw, alternatives_met, mistakes, tokens, words
from bpe_conformance.packs.files import ModelSource
from bpe_conformance.packs.patterns import alternatives, mutants, variants
from bpe_conformance.packs.reach import NO_UTF8, NOT_BUILT, NOT_FOUND, UNSETTLED, Reach, bodies_of, measure, text_of
from bpe_conformance.reference import textbook
from bpe_conformance.spec_tools.witnesses import Witness

ABC = read_model({"merges": [["a", "b"], ["ab", "c"]], "extra": [[300, "<|e|>"]], "special_tokens": ["<|e|>"]}, "abc")
AMBIGUOUS = read_model(
    {"extra": [[300, "<e>"], [301, "<e>x"]], "special_tokens": ["<e>", "<e>x"], "pattern": r"\p{L}+|<|>"}, "ambiguous"
)

WIDE = {"hex": "efbc"}
WIDE_TEN: list[list[Any]] = [[{"hex": "ef"}, {"hex": "bc"}], [WIDE, {"hex": "91"}], [WIDE, {"hex": "90"}], ["１", "０"]]
"""Merges for `１０`, which is an entry of Qwen3, too, although its pattern leaves each digit alone."""


def draft(operation: Operation) -> Draft:
    return Draft("kind", "MERGE-ORDER-1", "a title", operation)


# Engines


class Honest(textbook.Tokenizer):
    pass


class LiesAboutX(Honest):
    def encode(self, text: str, **chosen: Any) -> list[int]:
        return super().encode(text, **chosen) + [0] * text.count("x")


class LiesAboutBytes(Honest):
    def decode_bytes(self, ids: Any) -> bytes:
        return super().decode_bytes(ids).replace(b"\xff", b"")

    def decode(self, ids: Any) -> str:
        return super().decode_bytes(ids).decode("utf-8", "replace")


class LiesAboutText(Honest):
    def decode(self, ids: Any) -> str:
        return super().decode(ids).replace("\ufffd", "")


class LiesInDecode(Honest):
    def decode(self, ids: Any) -> str:
        return "?"


class RefusesAtLength(Honest):
    def __init__(self, *arguments: Any) -> None:
        raise BaseException("no " * 1000)


class Panics(Honest):
    def encode(self, text: str, **chosen: Any) -> list[int]:
        if "x" in text:
            raise BaseException("panic")
        return super().encode(text, **chosen)


class Refuses(Honest):
    def __init__(self, *arguments: Any) -> None:
        raise BaseException("no\n  pattern")


class LiesAboutTheFile(TokenizerOfFile):
    def encode(self, text: str, **chosen: Any) -> list[int]:
        return super().encode(text, **chosen) + [0] * text.startswith("x")


class Interrupted(Honest):
    def __init__(self, *arguments: Any) -> None:
        raise KeyboardInterrupt


def engine(name: str, package: str = "tokenizers", lookup: str = "pair") -> Witness:
    return Witness(package, package, "", f"{__name__}:{name}", {"encode": lookup}, "here")


EVERY = [
    draft(Encode("abc")),
    draft(Decode((256,))),
    draft(Batch(("ab", "abc"))),
    draft(StreamCutEverywhere("abc")),
    draft(Stream(("ab", "c"))),
]


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("LiesAboutX", draft(Encode("xab"))),
        ("LiesAboutX", draft(Batch(("ab", "xab")))),
        ("LiesAboutX", draft(Stream(tuple("xab")))),
        ("LiesAboutBytes", draft(Decode((97, 0xFF)))),
        ("LiesAboutText", draft(Decode((97, 0xFF)))),
        ("Panics", draft(Encode("xab"))),
    ],
)
def test_no_pack_is_written_if_an_engine_disagrees_in_any_case(name: str, last: Draft) -> None:
    cases = list(answered(Reach(ABC), [*EVERY, last]))
    with pytest.raises(CommandError, match=rf"^abc-kind-000{len(cases)}: tokenizers gives .* no pack is written$"):
        agree(ABC, cases, [engine("Honest"), engine(name)])
    agreed = agree(ABC, cases, [engine("Honest")]).asked["tokenizers"]
    assert (agreed["lookup"], agreed["agrees"]) == ("pair", len(cases))


def test_an_engine_that_disagrees_is_named_with_its_answer() -> None:
    cases = list(answered(Reach(ABC), [draft(Encode("x"))]))
    with pytest.raises(CommandError, match=r" tokenizers gives .*120, 0.*, the textbook [^0]*120[^0]* for "):
        agree(ABC, cases, [engine("LiesAboutX")])


class NeverCompared(dict[int, bytes]):
    def __eq__(self, other: object) -> bool:
        raise AssertionError("a vocabulary is compared, which takes milliseconds for a large one")

    __hash__ = None  # type: ignore[assignment]


def test_an_equal_model_of_an_earlier_pack_makes_engines_no_slower() -> None:
    drafts = list(answered(Reach(ABC), EVERY))
    for _ in range(2):
        model = replace(ABC, vocab=NeverCompared(ABC.vocab))
        agreement = agree(model, [replace(case, model=model) for case in drafts], [engine("Honest")])
        assert agreement.asked["tokenizers"]["agrees"] == len(EVERY)


def test_only_a_decoding_of_an_added_token_that_is_not_ascii_may_differ() -> None:
    added = read_model({"extra": [[300, "<\u00e9>"], [301, "<e>"]], "special_tokens": ["<\u00e9>", "<e>"]}, "added")
    given, lying = list(answered(Reach(added), [draft(Decode((97, 300)))])), "LiesInDecode"
    (row,) = agree(added, given, [engine(lying)]).differs
    assert row["reason"] == "it decodes added tokens that are not ASCII as mapped characters"
    for operation, name in ((Decode((97,)), lying), (Decode((97, 301)), lying), (Encode("x"), "LiesAboutX")):
        with pytest.raises(CommandError, match="no pack is written"):
            agree(added, list(answered(Reach(added), [draft(operation)])), [engine(name)])


def test_tiktoken_may_differ_for_a_known_reason() -> None:
    drafts = [draft(Encode(text)) for text in ("<e>", "<e>x", "1x", "ax")]
    agreement = agree(
        AMBIGUOUS, list(answered(Reach(AMBIGUOUS), drafts[:3])), [engine("LiesAboutX", "tiktoken", "bytes")]
    )
    assert [(row["case"][-1], row["reason"]) for row in agreement.differs] == [
        ("2", "if two special tokens begin at one position, it chooses by hash order"),
        ("3", "it drops text that the pattern does not match"),
    ]
    assert agreement.asked["tiktoken"]["agrees"] == 1
    for others, name in ((drafts, "tiktoken"), (drafts[1:2], "tokenizers"), (drafts[2:3], "tokenizers")):
        with pytest.raises(CommandError, match=f"{name} gives"):
            agree(AMBIGUOUS, list(answered(Reach(AMBIGUOUS), others)), [engine("LiesAboutX", name)])


ONE_SPECIAL = replace(AMBIGUOUS, vocab={**read_model({}).vocab, 300: b"<e>"}, special_tokens=("<e>",))


@pytest.mark.parametrize(("text", "is_known"), [("1<e>x", True), ("x<e>1", True), ("x<e>x", False), ("1<e>1x", True)])
def test_tiktoken_may_drop_text_on_either_side_of_a_special_token(text: str, is_known: bool) -> None:
    given, lying = list(answered(Reach(ONE_SPECIAL), [draft(Encode(text))])), [engine("LiesAboutX", "tiktoken")]
    if is_known:
        (row,) = agree(ONE_SPECIAL, given, lying).differs
        assert row["reason"] == "it drops text that the pattern does not match"
    else:
        with pytest.raises(CommandError, match="tiktoken gives"):
            agree(ONE_SPECIAL, given, lying)


def test_a_case_of_entries_that_differs_in_several_is_counted_once() -> None:
    drafts = [draft(Entries(("1x", "ab", "2x"))), draft(Encode("3x")), draft(Encode("ab"))]
    agreement = agree(ONE_SPECIAL, list(answered(Reach(ONE_SPECIAL), drafts)), [engine("LiesAboutX", "tiktoken")])
    assert [row["case"][-1] for row in agreement.differs] == ["1", "1", "2"]
    assert agreement.asked["tiktoken"]["agrees"] == 1
    assert agreement.lines()[-1].startswith("differs   tiktoken in 2 cases: ")


@pytest.mark.parametrize(
    ("name", "model", "reason"),
    [
        ("Refuses", ABC, "it rejects the model or the pattern: no pattern"),
        ("RefusesAtLength", ABC, "it rejects the model or the pattern: no no "),
        ("Missing", ABC, "has no 'Missing'"),
        ("Honest", replace(ABC, merges=ABC.merges[::-1]), "its lookup by bytes cannot represent this model"),
        (
            "Honest",
            replace(ABC, merges=ABC.merges[::-1], pipeline=Pipeline(steps=(ByteLevel(),))),
            "its lookup by bytes cannot represent this model",
        ),
    ],
)
def test_an_engine_that_cannot_be_asked_is_named_with_the_reason(name: str, model: Model, reason: str) -> None:
    agreement = agree(model, [], [engine(name, "tiktoken", "bytes"), engine("Missing")])
    assert agreement.asked == {}
    assert reason in agreement.not_asked["tiktoken"]
    assert agreement.lines() == [f"not run   {package}: {why}" for package, why in agreement.not_asked.items()]
    assert len(agreement.lines()) == 2
    assert max(map(len, agreement.lines())) < 300  # what an engine says is shortened


def test_ctrl_c_in_an_engine_ends_the_command() -> None:
    with pytest.raises(KeyboardInterrupt):
        agree(ABC, [], [engine("Interrupted")])


def test_a_model_without_a_lookup_by_bytes_is_asked_of_engines_that_look_up_pairs() -> None:
    model = replace(ABC, merges=ABC.merges[::-1])
    assert not model.ranks_by_bytes
    agreement = agree(model, list(answered(Reach(model), EVERY[:2])), [engine("Honest")])
    assert (agreement.not_asked, agreement.asked["tokenizers"]["agrees"]) == ({}, 2)


def test_tiktoken_is_asked_about_a_pipeline_that_it_can_load() -> None:
    pytest.importorskip("tiktoken")
    merges = [["b", "c"], ["a", "b"], ["ab", "c"]]
    steps = [{"step": "Split", "expression": PATTERNS["llama3"]}, {"step": "ByteLevel", "split": False}]
    pipeline = {"added_tokens": [{"content": "<e>"}], "steps": steps, "lookup": "whole"}
    model = read_model({"merges": merges, "extra": [[300, "qzqz"]], "pipeline": pipeline}, "whole")
    model = replace(model, merges=(*model.merges[:1], *model.merges))  # the ids do not determine such merges
    (tiktoken,) = (witness for witness in engines() if witness.package == "tiktoken")
    drafts = [draft(Encode(text)) for text in ("qzqz<e>abc 123", "xabc")]
    agreement = agree(model, list(answered(Reach(model), drafts)), [tiktoken])
    assert agreement.asked["tiktoken"]["agrees"] == 1
    assert [row["reason"] for row in agreement.differs] == ["it merges by the ids of tokens"]
    with pytest.raises(CommandError, match=r"^whole-kind-0002: tiktoken gives .* no pack is written$"):  # for no reason
        agree(model, list(answered(Reach(model), drafts)), [engine("LiesAboutTheFile", "tiktoken", "bytes")])
    normalized = replace(model, pipeline=replace(model.pipeline, normalizer=("NFC",)))  # type: ignore[arg-type]
    assert "the normalizer is NFC" in agree(normalized, [], [tiktoken]).not_asked["tiktoken"]


# Coverage


def test_the_reason_why_a_token_is_not_reached_is_reported() -> None:
    merges = [["b", "c"], ["a", "b"], ["ab", "c"]]
    reach = Reach(read_model({"merges": merges, "extra": [[500, "whole"], [501, {"code_points": [0x378]}]]}))
    assert reach.text_for(b"abc") is None
    assert reach.why_not(b"abc") == (NOT_BUILT, "'abc' is 'a' | 'bc'")
    assert reach.why_not(b"whole")[0] == NOT_BUILT
    assert reach.why_not(b"\xc0")[0] == reach.why_not(b"\x80" * 4)[0] == NO_UTF8
    assert not reach.can_merge((b"ab", b"c"))
    assert reach.can_merge((b"a", b"b"))
    assert reach.text_for(b"\xe2") is not None
    coverage = measure(reach, ["ab bc"])
    assert coverage["tokens"]["impossible"] == 13 + 3
    assert coverage["merges"] == {"all": 3, "reached": 2, "impossible": 1}


def test_a_merge_is_impossible_if_another_merge_makes_its_result() -> None:
    reach = Reach(read_model({"merges": [["b", "c"], ["a", "b"], ["a", "bc"]]}))
    assert reach.can_merge((b"a", b"bc"))
    assert not reach.can_merge((b"ab", b"c"))


def test_coverage_counts_only_what_the_texts_reach() -> None:
    reach = Reach(read_model({"merges": [["b", "c"], ["a", "bc"], ["x", "y"]], "extra": [[300, "<e>"]]}))
    coverage = measure(reach, ["abc"])
    assert coverage["tokens"] == {"all": 260, "reached": 1, "impossible": 14}
    assert coverage["merges"] == {"all": 3, "reached": 2, "impossible": 0}
    assert coverage["not_reached"][NOT_FOUND]["count"] == 260 - 1 - 14
    assert coverage["not_reached"][NOT_BUILT] == {"count": 1, "examples": ["'<e>' is '<' | 'e' | '>'"]}

    special = Reach(replace(reach.model, special_tokens=("<e>",)))
    assert measure(special, ["abc"], {b"<e>"})["tokens"] == {"all": 259, "reached": 1, "impossible": 13}


def test_what_is_cached_gives_the_answers_of_the_oracle() -> None:
    model = read_model({"merges": [["b", "c"], ["a", "b"], ["ab", "c"]], "extra": [[300, "\u00e9"]]}, "cached")
    added = replace(model, special_tokens=("\u00e9",))
    composed = Pipeline(("NFC",), (AddedToken("\u00e9", normalized=True),), (ByteLevel(),))
    for one in (model, added, replace(added, pipeline=composed)):
        reach = Reach(one)
        for text in ("xabc", "abc \u00e9", "e\u0301", "abce\u0301abc", ""):
            assert reach.expected(Encode(text)) == Encode(text).compute(one), text


def test_covering_texts_reach_every_token_for_which_there_is_a_text() -> None:
    merges = [["a", "b"], ["ab", " "], [" ", "ab"], ["1", "2"], ["\n", "\n"], [{"hex": "c3"}, {"hex": "a9"}]]
    reach = Reach(read_model({"merges": merges}))
    texts = [one.operation.texts()[0] for one in tokens(reach, Draw("0"), ())]
    reached = {token for text in texts for token in reach.tokens(text)}
    assert reached == {token for token in reach.model.vocab.values() if reach.text_for(token) is not None}
    assert 1 < len(texts) < 20
    anchored = Reach(read_model({"merges": [["a", "b"], ["c", "d"], ["e", "f"]], "pattern": r"\A(?:ab|cd|ef)|[\s\S]"}))
    starts = {one.operation.texts()[0][:2] for one in tokens(anchored, Draw("0"), ())}
    assert {"ab", "cd", "ef"} <= starts  # only at its beginning does a text have them
    (one,) = tokens(reach, Draw("0"), reached - {b" ab"})
    assert b" ab" in reach.tokens(*one.operation.texts())


@pytest.mark.parametrize("step", ["atoms", "merge", "stays_whole"])
def test_an_encoder_with_one_wrong_step_is_wrong(step: str) -> None:
    steps = {
        "atoms": lambda self, text: (b"x",),
        "merge": lambda self, word: word,
        "stays_whole": lambda self, word: b"".join(word) == b"xyz",
    }
    model = replace(ABC, pipeline=Pipeline(steps=(ByteLevel(),)), vocab={**ABC.vocab, 400: b"xyz"})
    reach, text = Reach(model), "xyz abc"
    right = reach.ids(text)
    wrong = reach.wrong(type("Wrong", (BaseEncoder,), {step: steps[step]}))
    assert wrong.encode_segments(reach.segments(text)) != right == reach.ids(text)


def test_unassigned_characters_are_not_used() -> None:
    model = read_model({"merges": [[{"hex": "cd"}, {"hex": "b8"}]]})
    reach = Reach(model)
    assert reach.text_for(b"\xcd\xb8") is None
    assert reach.why_not(b"\xcd\xb8")[0] == UNSETTLED
    assert (text_of(b"ab"), text_of(b"a\xcd\xb8"), text_of(b"\xcd"), text_of(b"\xf3\xb0\x80\x80")) == (
        "ab",
        "",
        "",
        "\U000f0000",
    )


@pytest.mark.parametrize("token", [b"\x82\xac", b"\xe2", b"\xe2\x82", b"a\xf0\x9f", b"\x9fb\xc3", b"\x80"])
def test_a_text_is_found_for_tokens_that_are_not_utf8(token: bytes) -> None:
    bodies = [body.encode() for body, _ in zip(bodies_of(token), range(300), strict=False)]
    assert bodies
    assert all(token in body and len(body) <= len(token) + 6 for body in bodies)


def test_tokens_that_no_merge_builds_become_cases() -> None:
    reach = Reach(read_model({"merges": [["a", "b"]], "extra": [[500, "abcd"]]}))
    drafts, found = words(reach, Draw("0"))
    assert found["whole-first"] == 1
    assert [draft.operation for draft in drafts if draft.clause == "MERGE-WHOLE-1"] == [Encode("abcd")]


def test_each_token_that_no_merge_builds_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpe_conformance.packs.cases.CANDIDATES", 0)  # nothing is drawn
    whole = [f"qz{chr(97 + number)}" for number in range(20)]
    reach = Reach(read_model({"merges": [["a", "b"]], "extra": [[500 + at, text] for at, text in enumerate(whole)]}))
    drafts, found = words(reach, Draw("0"))
    assert found["whole-first"] == len(whole)
    assert all(any(text in one.operation.text for one in drafts) for text in whole)  # type: ignore[attr-defined]


def test_cases_have_both_values_if_the_lookup_matters() -> None:
    model = read_model({"merges": [["b", "c"], ["a", "b"], ["ab", "c"]]})
    drafts, found = words(Reach(model), Draw("0"))
    assert found["by-bytes"]
    cases = list(answered(Reach(model), [draft for draft in drafts if draft.clause == "MERGE-PAIR-1"]))
    assert cases
    for case in cases:
        assert case.expected.under("pair") != case.expected.under("bytes")
    differing, same = (draft(Batch(("a", text))) for text in ("abc", "ab"))
    assert [case.operation for case in answered(Reach(model), [differing, same, same])] == [same.operation]


def test_every_draft_that_differs_is_a_case_of_its_own() -> None:
    texts = ["a" * (number % 40) + "b" * (number // 40) for number in range(1_200)]
    cases = list(answered(Reach(ABC), [draft(Encode(text)) for text in (*texts, *texts)]))
    assert [case.operation for case in cases] == [*map(Encode, texts)]
    assert len({case.id for case in cases}) == len(texts)
    assert all(case.expected == case.operation.compute(ABC) for case in cases[::97])


def test_a_contraction_that_compares_ascii_only_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """As quicktok's and splintr's: (?i:'s) also matches U+017F."""
    monkeypatch.setattr(cases, "TRIED", 8)  # random texts, too
    model = read_model({"merges": [["R", "E"], ["RE", "D"]], "pattern": "o200k"})
    _, report, _ = mistakes(Reach(model), Draw("0"))
    assert [what for what in report["not_told_apart"] if "by ASCII" in what] == []


def test_the_entries_of_a_pack_detect_mistakes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "TRIED", 0)
    _, report, _ = mistakes(Reach(read_model({"merges": WIDE_TEN, "pattern": "qwen2"})), Draw("0"))
    missed = report["not_told_apart"]
    assert r"\p{N} as [0-9]" not in missed
    assert r"\p{N} as [\p{Nd}]" in missed


def test_a_rare_kind_of_entry_is_drawn_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "TRIED", 1000)
    letters = [*product(ascii_lowercase, repeat=2), *product(map("".join, product(ascii_lowercase, "xyz")), "aeiou")]
    drafts, *_ = mistakes(
        Reach(read_model({"merges": [*map(list, letters), *WIDE_TEN], "pattern": "qwen2"})), Draw("0")
    )
    assert any("１０" in text for draft in drafts for text in draft.operation.texts())


def test_a_mistake_is_detected_only_if_a_text_or_an_entry_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "TRIED", 30)
    reach = Reach(read_model({"merges": [["R", "E"], ["a", "b"], ["1", "2"], [" ", "a"]], "pattern": "qwen2"}))
    drafts, report, _ = mistakes(reach, Draw("0"))
    texts = [text for one in drafts for text in one.operation.texts()]
    texts += filter(None, map(text_of, reach.model.vocab.values()))
    right = list(map(reach.ids, texts))
    wrong = [
        (what, like(reach.oracle, type(reach.oracle), pattern=pattern)) for what, pattern, _ in variants(reach.model)
    ]
    silent = [what for what, one in wrong if list(map(one.encode, texts)) == right]
    assert report == {"mutants": len(wrong), "told_apart": len(wrong) - len(silent), "not_told_apart": silent}
    assert 0 < len(silent) < len(wrong)


def test_a_token_is_found_beside_other_text_where_it_is_none_alone() -> None:
    """At the beginning of a text, the prefix space takes the first letter."""
    spaced = Pipeline(steps=(ByteLevel(prefix_space=True),))
    reach = Reach(replace(read_model({"merges": [[" ", "a"], ["a", "b"]]}), pipeline=spaced))
    assert b"ab" not in reach.tokens("ab")
    text = reach.text_for(b"ab")
    assert text is not None
    assert b"ab" in reach.tokens(text)


NORMALIZED = replace(ABC, pipeline=Pipeline(("NFC",), (AddedToken("<|e|>"),)))


def test_a_known_bug_of_the_settings_is_detected_only_if_a_text_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "TRIED", 40)
    reach = Reach(NORMALIZED)
    drafts, _, found = mistakes(reach, Draw("0"))
    texts = [text for one in drafts for text in one.operation.texts()]
    bugs = {bug.id: reach.wrong(bug.target) for bug in known_bugs() if bug.id in found}
    assert found.keys() >= {"normalizer-left-out", "normalized-as-one-text"}
    for name, wrong in bugs.items():
        detections = sum(wrong.encode(text) != reach.ids(text) for text in texts)
        assert found[name] == min(detections, cases.DETECTIONS)
    assert {count > 0 for count in found.values()} == {True, False}


def test_a_text_whose_normal_form_depends_on_the_version_of_unicode_is_left_out() -> None:
    drafts = [draft(Encode(text)) for text in ("a\u08ca", "a\u0301")]
    assert [len(list(answered(Reach(model), drafts))) for model in (NORMALIZED, ABC)] == [1, 2]


def test_only_gpt2_has_real_text_of_the_clause_about_gpt2() -> None:
    assert {one.clause for one in cases.real(Reach(ABC))} == {"MERGE-ORDER-1"}


@pytest.mark.parametrize("name", list(PATTERNS))
def test_every_pattern_has_mutants(name: str) -> None:
    found = mutants(PATTERNS[name])
    assert len(found) >= 5
    assert PATTERNS[name] not in found


@pytest.mark.parametrize("name", ["cl100k", "o200k", "llama3", "qwen2"])
def test_the_case_of_contractions_is_mistaken_in_two_ways(name: str) -> None:
    ways = {what.rpartition(" ")[2] for what in mutants(PATTERNS[name]).values() if what.startswith("(?i:")}
    assert ways == {"case", "ASCII"}


def test_a_split_step_is_mistaken_for_every_other_pattern() -> None:
    own = PATTERNS["cl100k"]
    pipeline = Pipeline(steps=(Split(own), ByteLevel(split=False)))
    wrong = {getattr(one.steps[0], "expression", "") for _, _, one in variants(replace(ABC, pipeline=pipeline)) if one}
    assert {*PATTERNS.values()} - wrong == {own}


def test_each_part_of_a_pattern_is_mistaken() -> None:
    whats = list(mutants(r"a(?!b)|c{2}(?=d)|(?<!x)[e\s]+|\p{N}{1,3}").values())
    alternatives = ["a(?!b)", "c{2}(?=d)", r"(?<!x)[e\s]+", r"\p{N}{1,3}"]
    assert whats == [
        *(f"without `{part}`" for part in alternatives),
        *(f"`{later}` before `{part}`" for part, later in pairwise(alternatives)),
        "`{2}` as `{3}`",
        *(r"[e\s] without e", r"[e\s] without \s", r"[e\s] with  \t\r\n for \s", r"[e\s] with \s\ufeff for \s"),
        *("`+` as ``", "`+` as `{1,2}`", r"\p{N} as [0-9]", r"\p{N} as [\p{Nd}]"),
        *("`{1,3}` as `{1,}`", "`{1,3}` as `{1,4}`", "`{1,3}` as `{1,2}`"),
        *("without (?!b)", "without (?=d)", "without (?<!x)"),
    ]


def test_a_mistake_in_the_alternatives_leaves_out_one_or_exchanges_two() -> None:
    parts = ["a", "b{2}", "(?!c)d", "e"]
    by_what = {what: mutant for mutant, what in mutants("|".join(parts)).items()}
    for part in parts:
        assert by_what[f"without `{part}`"].split("|") == [other for other in parts if other != part]
    for index, (part, later) in enumerate(pairwise(parts)):
        exchanged = [*parts[:index], later, part, *parts[index + 2 :]]
        assert by_what[f"`{later}` before `{part}`"].split("|") == exchanged


@pytest.mark.parametrize("pattern", [r"(?i:'s|\p{L})|x", r"(?i:é)|x", "'s|x"])
def test_only_a_group_of_letters_is_compared_by_ascii(pattern: str) -> None:
    assert not [what for what in mutants(pattern).values() if "by ASCII" in what]


def test_what_the_command_prints_is_what_the_pack_has() -> None:
    counts = {"all": 4, "reached": 2, "impossible": 1}
    pattern = {
        "mutants": 9,
        "told_apart": 8,
        "not_told_apart": ["x"],
        "alternatives": {"all": 3, "met": 2, "not_met": ["y"]},
    }
    coverage = {
        "tokens": counts,
        "merges": {"all": 1, "reached": 0, "impossible": 1},
        "pattern": pattern,
        "not_reached": {
            "a reason": {"count": 1, "examples": ["'a'"]},
            "another": {"count": 2, "examples": ["'b'", "'c'"]},
        },
        "words_that_a_wrong_encoder_encodes_otherwise": {"by-id": 2, "never": 0, "single-pass": 0},
        "texts_that_a_wrong_pipeline_encodes_otherwise": {"seen": 1, "unseen": 0, "seen-too": 2},
    }
    model = replace(ABC, pipeline=Pipeline(steps=(ByteLevel(),)))
    source = ModelSource(model, "", {"a.json": "12", "b.txt": "34"}, ("one thing", "another"))
    differing = (("t", "c1", "why"), ("u", "c1", "else"), ("t", "c2", "why"), ("t", "c2", "why"))
    rows = [{"engine": name, "case": case, "reason": why} for name, case, why in differing]
    asked = {name: {"version": "1.2", "lookup": "pair", "agrees": 1234} for name in ("t", "u")}
    pack = build.Pack([], coverage, (1, 2, 3), {3: Reach(ABC).expected(Encode("abc"))})
    assert build._lines(source, pack, build.Agreement(asked, {"v": "no", "w": "neither"}, rows)) == [
        "model     abc: 259 tokens, 2 merges, no normalizer, 1 split step, lookup pair",
        "source    a.json sha256 12",
        "source    b.txt sha256 34",
        "note      one thing",
        "note      another",
        "entries   3 are texts: 2 give their id alone, 1 others",
        "tokens            2 of 4 occur in answers, 66.67 % of those that can",
        "merges            0 of 1 apply in answers, none can",
        "        1 token a reason, such as 'a'",
        "        2 tokens another, such as 'b', 'c'",
        "pattern   2 of 3 alternatives matched; 8 of 9 changed patterns give other ids"
        ", and 1 the same for every text that was tried",
        "encoders  1 of 3 incorrect ways to merge detected; no text was found that exposes never, single-pass",
        "settings  2 of 3 mistakes in other steps detected: seen, seen-too",
        "agrees    t 1.2 (pair lookup) in 1,234 cases",
        "agrees    u 1.2 (pair lookup) in 1,234 cases",
        "not run   v: no",
        "not run   w: neither",
        "differs   t in 2 cases: why",
        "differs   u in 1 case: else",
    ]
    normalized = replace(model, pipeline=Pipeline(("NFC", "NFKC"), steps=(ByteLevel(), ByteLevel())))
    assert [build._splits(one) for one in (normalized, ABC)] == [
        "NFC and NFKC, 2 split steps, lookup pair",
        "pattern gpt2",
    ]


def test_a_negative_seed_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["pack", "gpt2", "-o", str(tmp_path / "out"), "--seed", "-1"]) == 2
    assert capsys.readouterr().err == "bpe-conformance: --seed -1: must be 0 or more\n"


def test_the_alternatives_of_a_pattern_are_cut_at_its_own_bars() -> None:
    assert alternatives(r"a|(b|c)|[|)]|\||d") == ["a", "(b|c)", "[|)]", r"\|", "d"]
    assert alternatives(r"[[a])]+|b")[-1] == "b"  # a set in a set
    assert mutants(r"[[a]((]+|b") == {}  # `regex` reads it otherwise
    assert not [what for what in mutants(r"[a]|[b]").values() if what.startswith("[")]


def test_the_alternatives_that_match_are_counted() -> None:
    reach = Reach(read_model({"extra": [[300, "<b>"]], "special_tokens": ["<b>"], "pattern": "a|b|cd|c|e"}))
    assert alternatives_met(reach, ["ac", "cd<b>"]) == {"all": 5, "met": 3, "not_met": ["b", "e"]}
    assert alternatives_met(reach, ["xbe"]) == {"all": 5, "met": 2, "not_met": ["a", "cd", "c"]}
    steps = Pipeline(steps=(Split("a|b"), Split("c|d"), ByteLevel(split=False)))
    of_steps = alternatives_met(Reach(replace(ABC, pipeline=steps)), ["acx"])
    assert of_steps == {"all": 4, "met": 2, "not_met": ["b", "d"]}
    beside = Reach(replace(ABC, pattern=r"a(?!b)|a|(?<=a)b|b"))  # what is beside a match decides between alternatives
    assert alternatives_met(beside, ["ab"])["not_met"] == ["a(?!b)", "b"]
