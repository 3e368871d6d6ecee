"""`bpe-conformance conventions` finds the conventions of an implementation, and what it should declare."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import subprocess
import sys
from typing import Any, ClassVar

import pytest

from bpe_conformance.cli import main
from bpe_conformance.command_line import CommandError
from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.fixtures.conventions import CONVENTIONS, DEFAULTS, TIE_BREAKS
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs import known_bugs
from bpe_conformance.known_bugs.training_counts import (
    DistinctWordsOnly,
    NewPairsForgotten,
    NewPairsWithoutWeight,
    SeamsOfOldWord,
    StaleHeapEntry,
)
from bpe_conformance.operations import TRAINING_KEYS
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import (
    Tokenizer,
    build_vocab,
    choose,
    corpus,
    count_pairs,
    learn,
    replace,
    with_conventions,
)
from bpe_conformance.reference.tokenizer import conventional
from bpe_conformance.spec_tools.conventions import (
    OTHER_SPLIT,
    Probe,
    ProbeResult,
    Report,
    find,
    not_a_maximum,
    probe,
    probes,
)

TRAINING = list(itertools.product(TIE_BREAKS, CONVENTIONS["byte_order"], CONVENTIONS["id_layout"]))
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def report_of(target: object) -> Report:
    return probe(Implementation("it", target))


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_every_tie_break_of_the_reference_is_found(tie_break):
    report = report_of(conventional(tie_break=tie_break))
    assert report.found == {name: DEFAULTS[name] for name in CONVENTIONS} | {"tie_break": tie_break}
    assert report.status == 0


@pytest.mark.parametrize(("tie_break", "byte_order", "id_layout"), TRAINING)
def test_every_convention_of_the_textbook_is_found(tie_break, byte_order, id_layout):
    lookup = CONVENTIONS["lookup"][byte_order == "gpt2"]
    special = CONVENTIONS["train_special"][id_layout == "specials-bytes-merges"]
    declared = {
        "tie_break": tie_break,
        "byte_order": byte_order,
        "id_layout": id_layout,
        "lookup": lookup,
        "train_special": special,
    }
    report = report_of(with_conventions(**declared))
    assert report.found == declared
    assert report.status == 0
    assert report.to_declare == {name: value for name, value in declared.items() if value != DEFAULTS[name]}


@pytest.mark.parametrize(
    ("adapter", "package", "found"),
    [
        ("minimal", "regex", {"lookup": "pair"}),
        ("tiktoken", "tiktoken", {"lookup": "bytes"}),
        (
            "tiktoken-educational",
            "tiktoken",
            {
                "tie_break": "first-seen",
                "byte_order": "raw",
                "lookup": "bytes",
            },
        ),
        (
            "huggingface",
            "tokenizers",
            {
                "tie_break": "smaller-ids",
                "byte_order": "gpt2",
                "id_layout": "specials-bytes-merges",
                "lookup": "pair",
                "train_special": "text",
            },
        ),
        (
            "rustbpe",
            "rustbpe",
            {"tie_break": "smaller-ids", "byte_order": "raw"},
        ),
        (
            "bpeasy",
            "bpeasy",
            {"tie_break": "smaller-ids", "byte_order": "raw"},
        ),
    ],
)
def test_conventions_of_built_in_adapters_are_found(adapter, package, found):
    pytest.importorskip(package)
    report = find(adapter)
    assert report.found == found
    assert report.status == 0
    assert list(report.lines)[-1] == "nothing contradicts the declaration"


def test_probes_distinguish_all_rules():
    for one, other in itertools.combinations(TRAINING_KEYS, 2):
        assert any(probe.expected(one) != probe.expected(other) for probe in probes())
    assert len({probe.text for probe in probes()}) == len(probes())


def test_evidence_names_a_probe_for_each_rule_that_is_excluded():
    pytest.importorskip("rustbpe")
    evidence = find("rustbpe").findings[0].why
    for key in TRAINING_KEYS:
        assert (key in evidence.replace("smaller-ids/gpt2", "")) == (
            key in ("lex-greater", "lex-smaller", "first-seen")
        )
    assert "excludes smaller-ids/gpt2" in evidence


def test_a_probe_is_shown_until_the_merge_that_excludes_a_rule():
    merges = [(b"a", b"b"), (b"c", b"d"), (b"ab", b"cd")]
    one = Probe("abcd\nabcd", 3)
    assert [one.line(merges, until) for until in range(3)] == [
        rf"'abcd\nabcd' gives {shown}" for shown in ("(a,b)", "(a,b) (c,d)", "(a,b) (c,d) (ab,cd)")
    ]


def test_a_trainer_with_a_pattern_of_its_own_is_expected_to_split_by_it():
    class Own(Tokenizer):
        pattern = r"(?s:.)+"

        @classmethod
        def train(cls, text, vocab_size, special_tokens):
            return Tokenizer.train(text, vocab_size, special_tokens, cls.pattern)

    report = report_of(Own)
    assert report.found == {name: DEFAULTS[name] for name in CONVENTIONS}
    assert report.status == 0


def test_defaults_are_named():
    assert "nothing to declare: the tokenizer follows the defaults" in list(find("reference").lines)


def test_nothing_is_determined_for_a_tokenizer_that_only_decodes():
    class DecodeOnly:
        def __init__(self, vocab, merges, special_tokens=None):
            self.vocab = vocab

        def decode(self, ids):
            return b"".join(self.vocab[index] for index in ids).decode("utf-8", "replace")

    for declared in ({}, {"lookup": "bytes"}):
        report = report_of(type("Declaring", (DecodeOnly,), {"conventions": declared}))
        assert list(report.lines)[6:] == ["the tokenizer supports too little to determine a convention"]
        assert report.status == 0


class Undeclared(Tokenizer):
    @classmethod
    def train(cls, text, vocab_size, special_tokens, pattern=None):
        return with_conventions(tie_break="lex-smaller", id_layout="specials-bytes-merges").train(
            text, vocab_size, special_tokens, pattern
        )


def test_a_missing_declaration_is_a_contradiction():
    report = report_of(Undeclared)
    lines = list(report.lines)
    assert report.status == 1
    assert 'declare: conventions = {"tie_break": "lex-smaller", "id_layout": "specials-bytes-merges"}' in lines
    contradiction = "CONTRADICTION tie_break: the default is lex-greater, but the tokenizer follows lex-smaller"
    assert contradiction in lines
    assert lines[-1] == "declare it only if you intend it; otherwise it is a bug, which the suite names"


def test_a_wrong_declaration_is_a_contradiction():
    class Wrong(Undeclared):
        conventions: ClassVar = {"tie_break": "first-seen", "id_layout": "specials-bytes-merges", "lookup": "bytes"}

    report = report_of(Wrong)
    assert "CONTRADICTION tie_break: first-seen is declared, but the tokenizer follows lex-smaller" in list(
        report.lines
    )
    assert report.found["lookup"] == "bytes"
    assert report.status == 1


def training(pick):
    """Return a class that picks each merge from the counts with `pick`."""

    class Trainer:
        conventions: ClassVar = {"tie_break": "unspecified"}

        def __init__(self, vocab, merges):
            self.vocab, self.merges = vocab, merges

        @classmethod
        def train(cls, text, vocab_size, special_tokens):
            words = corpus(text, special_tokens, GPT2)
            merges = []
            while len(merges) < vocab_size - 256 - len(special_tokens) and count_pairs(words):
                merges.append(pick(count_pairs(words)))
                words = [replace(word, merges[-1]) for word in words]
            tokens = [*(bytes([byte]) for byte in range(256)), *(token.encode() for token in special_tokens)]
            return cls(dict(enumerate([*tokens, *(left + right for left, right in merges)])), merges)

    return Trainer


def last_seen(counts):
    most = max(counts.values())
    return [pair for pair, count in counts.items() if count == most][-1]


def test_unknown_tie_break_is_reported():
    report = report_of(training(last_seen))
    assert report.found["tie_break"] == "unspecified"
    assert report.status == 0
    assert report.to_declare == {"tie_break": "unspecified"}
    shown, *excluded = report.findings[0].why.split("; ")
    assert shown == "each merge has the highest count"
    assert excluded[0] == r"'ba\nab' gives (a,b), which excludes lex-greater"
    assert excluded[1:] == [rf"'ab\nba' gives (b,a), which excludes {key}" for key in TRAINING_KEYS[1:]]


class LearnsInBatches(Tokenizer):
    """Learns several merges from one count, and stops at a second pair that shares a token end to start."""

    @classmethod
    def train(cls, text, vocab_size, special_tokens, pattern=None):
        words, merges = corpus(text, special_tokens, GPT2), []
        room = vocab_size - 256 - len(special_tokens)
        while len(merges) < room and count_pairs(words):
            counts = count_pairs(words)
            best = sorted(counts, key=counts.__getitem__, reverse=True)[:10]
            ends, starts = {right for _, right in best}, {left for left, _ in best}
            chained = [index for index, (left, right) in enumerate(best) if left in ends or right in starts]
            for pair in best[: chained[1] if chained[1:] else None][: room - len(merges)]:
                merges.append(pair)
                words = [replace(word, pair) for word in words]
        return Tokenizer(build_vocab(merges, special_tokens), merges)


def test_merges_from_old_counts_are_not_maxima():
    report = report_of(LearnsInBatches)
    assert report.findings[0].broken
    why = r"'aaa\naaa\naaa\nzy\nzy': merge 2 is (z,y) with count 2; the highest is 3: (aa,a)"
    assert report.findings[0].why == why


@pytest.mark.parametrize("wrong", [NewPairsForgotten, NewPairsWithoutWeight, SeamsOfOldWord, StaleHeapEntry])
def test_incorrect_counts_are_reported(wrong):
    shown = [one for one in probes()[-5:] if not_a_maximum(one, wrong.train(one.text, 256 + one.merges, []).merges)]
    assert shown
    assert report_of(wrong).findings[0].broken


def test_special_tokens_are_blamed_where_other_counts_are_correct():
    class Ignores(Tokenizer):
        @classmethod
        def train(cls, text, vocab_size, special_tokens, pattern=None):
            return super().train(text, vocab_size - len(special_tokens) if special_tokens else vocab_size, [])

    report = report_of(Ignores)
    broken = {finding.name: finding.why for finding in report.findings if finding.broken}
    assert "tie_break" not in broken
    assert "training is incorrect even without" not in broken.get("train_special", "")


def test_incorrect_counts_are_not_blamed_on_special_tokens():
    report = report_of(DistinctWordsOnly)
    assert [finding.name for finding in report.findings if finding.broken] == ["tie_break"]
    assert report.findings[-1].why == "training is incorrect even without special tokens"


def test_probes_without_ties_are_the_same_under_every_rule():
    for one in probes()[-5:]:
        first, *others = (one.expected(key) for key in TRAINING_KEYS)
        assert all(merges == first for merges in others)
        assert not_a_maximum(one, first) == ""


def test_undeclared_unspecified_rule_is_reported():
    trainer = training(last_seen)
    trainer.conventions = {}
    report = report_of(trainer)
    assert report.status == 1
    lines = list(report.lines)
    after = lines[lines.index('declare: conventions = {"tie_break": "unspecified"}') + 1]
    assert after.endswith("if you meant to follow another rule, the trainer has a bug")
    assert after not in report_of(training(last_seen)).lines


def test_known_rule_declared_as_unspecified_is_reported():
    report = report_of(training(lambda counts: choose(counts, "lex-smaller", {})))
    assert report.status == 0
    assert list(report.lines)[-1].endswith("declare tie_break lex-smaller instead of unspecified")


def test_smallest_evidence_against_all_tie_breaks_is_shown():
    def rarest(counts):
        return min(counts, key=lambda pair: (counts[pair], pair))

    report = report_of(training(rarest))
    assert report.status == 1
    assert report.found.get("tie_break") is None
    assert "no known value" in report.findings[0].line
    assert "no declaration describes this tokenizer; run the suite, which names likely bugs" in list(report.lines)
    wrong = [
        one for one in probes() if not_a_maximum(one, training(rarest).train(one.text, 256 + one.merges, []).merges)
    ]
    assert repr(min(wrong, key=lambda one: len(one.text)).text)[1:-1] in report.findings[0].why


def test_trainer_with_too_few_merges_is_reported():
    class Lazy(Tokenizer):
        @classmethod
        def train(cls, text, vocab_size, special_tokens, pattern=None):
            return Tokenizer.train(text, min(vocab_size, 256 + len(special_tokens)), special_tokens)

    report = report_of(Lazy)
    assert "of 1 merges" in report.findings[0].why
    assert report.status == 1


def test_tie_break_and_ids_can_have_different_byte_orders():
    class Mixed(Tokenizer):
        conventions: ClassVar = {"tie_break": "smaller-ids", "byte_order": "gpt2"}

        @classmethod
        def train(cls, text, vocab_size, special_tokens, pattern=None):
            trained = super().train(text, vocab_size, special_tokens, pattern)
            vocab = with_conventions(byte_order="raw").train("", 256, []).vocab
            return Tokenizer({**trained.vocab, **vocab}, trained.merges, special_tokens)

    report = report_of(Mixed)
    assert report.found["byte_order"] == "gpt2"
    assert "from the ties; the ids are in raw order" in report.findings[1].why
    same = report_of(with_conventions(**Mixed.conventions)).findings[1]
    assert (same.value, same.why) == ("gpt2", "' ' has id 220, '!' has id 0")


def test_bytes_in_neither_order_are_reported():
    class Backwards(Tokenizer):
        @classmethod
        def train(cls, text, vocab_size, special_tokens, pattern=None):
            trained = super().train(text, vocab_size, special_tokens, pattern)
            trained.vocab = {**trained.vocab, **{255 - byte: bytes([byte]) for byte in range(256)}}
            return trained

    report = report_of(Backwards)
    _, found, layout, *_ = report.findings
    assert found.why.startswith("the ids are in neither order (the suite accepts any order: TRAIN-IDS-2 is a SHOULD): ")
    assert layout.why.startswith(
        "the ids are bytes 0 to 255; specials 256 to 257; merges 258 to 259 (the suite accepts"
    )
    assert (found.value, found.broken, layout.broken, report.status) == (None, False, False, 0)


def test_bytes_in_no_order_of_which_one_is_missing_are_a_contradiction():
    class Incomplete(Tokenizer):
        @classmethod
        def train(cls, text, vocab_size, special_tokens, pattern=None):
            trained = super().train(text, vocab_size, special_tokens, pattern)
            trained.vocab = {index: token for index, token in trained.vocab.items() if token != b"~"}
            return trained

    report = report_of(Incomplete)
    assert report.findings[1].why.startswith("the ids are in neither order: ")
    assert (report.findings[1].broken, report.findings[2].broken, report.status) == (True, True, 1)


@pytest.mark.parametrize(
    ("lost", "specials"),
    [
        (["<|a|>"], "specials 261 to 261, 1 without an id"),
        (["<|a|>", "<|b|>"], "specials none"),
    ],
)
def test_unknown_layout_is_reported(lost, specials):
    class Shifted(Tokenizer):
        @classmethod
        def train(cls, text, vocab_size, special_tokens, pattern=None):
            trained = super().train(text, vocab_size, special_tokens, pattern)
            entries = [
                (index + 5, token) for index, token in trained.vocab.items() if token.decode("latin-1") not in lost
            ]
            trained.vocab = dict(reversed(entries))
            return trained

    report = report_of(Shifted)
    assert report.findings[2].broken
    assert report.findings[2].why == f"the ids are bytes 5 to 260; {specials}; merges 263 to 264"
    assert report.found["byte_order"] == "raw"
    assert report.status == 1


@pytest.mark.parametrize("error", [NotImplementedError, ValueError])
def test_without_special_tokens_the_layout_is_undetermined(error):
    class Plain(Tokenizer):
        @classmethod
        def train(cls, text, vocab_size, special_tokens, pattern=None):
            if special_tokens:
                raise error("no special tokens")
            return super().train(text, vocab_size, special_tokens, pattern)

    report = report_of(Plain)
    assert report.found["byte_order"] == "raw"
    assert "id_layout" not in report.found
    assert "no special tokens" in report.findings[2].why
    assert report.status == 0


def test_lookup_of_whole_pre_tokens_is_found():
    class Whole(Tokenizer):
        def merge(self, word):
            whole = b"".join(word)
            return (whole,) if whole in self.ids else super().merge(word)

    assert report_of(Whole).found["lookup"] == "whole"


def test_what_a_split_into_characters_cannot_show_is_undetermined_and_contradicts_nothing():
    class Characters(Tokenizer):
        pattern = r"[\s\S]"

        def __init__(self, vocab, merges, special_tokens=None):
            super().__init__(vocab, merges, special_tokens, pattern=self.pattern)

        @classmethod
        def train(cls, text, vocab_size, special_tokens):
            trained = Tokenizer.train(text, vocab_size, special_tokens, pattern=cls.pattern)
            return trained.vocab, trained.merges

    report = report_of(Characters)
    undetermined = {one.name for one in report.findings if one.value is None and not one.broken}
    assert {"lookup", "train_special"} <= undetermined
    assert not [*report.contradictions]


def test_a_trainer_that_fits_no_value_is_not_undetermined():
    class Wrong(Tokenizer):
        pattern = "[a-z]+|[^a-z]"

        @classmethod
        def train(cls, text, vocab_size, special_tokens):
            vocab = {**{index: bytes([index]) for index in range(256)}, 256: b"qq", 257: b"qqq"}
            return vocab, [(b"q", b"q"), (b"qq", b"q")]

    (found,) = (one for one in report_of(Wrong).findings if one.name == "train_special")
    assert "apart" not in found.why


def test_unknown_lookup_is_reported():
    class Longest(Tokenizer):
        def merge(self, word):
            whole = b"".join(word)
            return (whole,) if whole in self.ids else word

    report = report_of(Longest)
    assert report.findings[3].broken
    assert report.status == 1


def test_encoder_that_merges_from_the_left_has_no_known_lookup():
    bug = next(one for one in known_bugs() if one.id == "greedy-left-to-right")
    (lookup,) = (one for one in report_of(bug.target).findings if one.name == "lookup")
    assert lookup.broken


def test_trainer_that_raises_is_reported():
    class Raises(Tokenizer):
        @classmethod
        def train(cls, text, vocab_size, special_tokens, pattern=None):
            raise RuntimeError("no")

    report = report_of(Raises)
    assert "tie_break" not in report.found
    assert "RuntimeError" in report.findings[0].why


def test_an_encoder_that_gives_no_answer_is_not_called_correct():
    report = report_of(type("Stub", (Tokenizer,), {"encode": lambda self, text: None}))
    assert list(report.lines)[-1].startswith("not determined: lookup; run the suite")
    assert report.status == 1


def test_command_prints_the_conventions(capsys):
    assert main(["conventions", "textbook"]) == 0
    assert "lex-greater" in capsys.readouterr().out
    for unusable in ("textbok", "json:dumps", "nothing.there:Tokenizer"):
        assert main(["conventions", unusable]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
    with pytest.raises(CommandError):
        find("textbok")


def test_result_does_not_depend_on_the_hash_seed(tmp_path):
    runs = set()
    for seed in ("0", "1"):
        code = "import sys; from bpe_conformance.cli import main; sys.exit(main(sys.argv[1:]))"
        command = [sys.executable, "-c", code, "conventions", "reference"]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        runs.add(subprocess.run(command, env=environment, cwd=tmp_path, check=True, capture_output=True).stdout)
    assert len(runs) == 1


def test_printed_declaration_is_a_literal():
    line = next(line for line in report_of(Undeclared).lines if line.startswith("declare: "))
    assert json.loads(line.partition(" = ")[2]) == {"tie_break": "lex-smaller", "id_layout": "specials-bytes-merges"}


def test_conventions_are_found_over_the_bridge():
    serve = shlex.join([sys.executable, "-m", "bpe_conformance.adapters.bridge", "textbook"])
    assert find(f"cmd:{serve}").found == {name: DEFAULTS[name] for name in CONVENTIONS}


def test_an_undetermined_convention_keeps_its_declared_value() -> None:
    findings = [ProbeResult("lookup", None, "unknown"), ProbeResult("tie_break", "first-seen", "found")]
    found = Report("x", {"lookup": "bytes", "tie_break": "lex-smaller"}, findings)
    assert found.to_declare == {"lookup": "bytes", "tie_break": "first-seen"}


def test_a_merge_too_many_is_no_rule_for_ties() -> None:
    one = Probe("abab\nab\nxy", 1)
    merges = learn(one.text, 258, (), one.split)
    assert len(merges) == 2
    assert not_a_maximum(one, merges[:1]) == ""
    assert not_a_maximum(one, merges).endswith("; one too many")


def test_a_trainer_that_answers_only_without_ties_has_no_rule() -> None:
    answered = {each.text for each in probes()[-5:]}

    class Refuses(Tokenizer):
        @classmethod
        def train(cls, text: str, *arguments: Any, **named: Any) -> Any:
            if text not in answered:
                raise ValueError("a tie")
            return super().train(text, *arguments, **named)

    (found,) = [one for one in probe(Implementation("x", Refuses)).findings if one.name == "tie_break"]
    assert found.value is None
    assert found.why.startswith("the probes do not distinguish lex-greater from ")
    assert "ValueError: a tie" in found.why


def test_a_fixed_model_shows_no_lookup() -> None:
    class Fixed:
        model = "gpt2"

        def encode(self, text: str) -> list[int]:
            return []

    (found,) = [one for one in probe(Implementation("x", Fixed)).findings if one.name == "lookup"]
    assert (found.value, found.broken) == (None, False)
    assert "the only model is gpt2" in found.why


NAMES = ("tie_break", "byte_order", "lookup")
FOLLOWS = {name: ProbeResult(name, DEFAULTS[name], "") for name in NAMES}
FAILED, BROKEN, UNKNOWN = (
    ProbeResult("lookup", None, "", **{state: True} if state else {}) for state in ("failed", "broken", "")
)


def test_a_trainer_with_another_undeclared_pattern_is_asked_to_declare_it():
    class Splits(textbook.Tokenizer):
        @classmethod
        def train(cls, text, vocab_size, special_tokens):
            return textbook.Tokenizer.train(text, vocab_size, special_tokens, PATTERNS["cl100k"])

    report = probe(Implementation("x", Splits))
    (found,) = [one for one in report.findings if one.name == "tie_break"]
    assert (found.value, found.why) == (None, OTHER_SPLIT)
    assert not any("tie_break" in line for line in report.contradictions)
    Splits.pattern = "cl100k"
    assert probe(Implementation("x", Splits)).found["tie_break"] == "lex-greater"


WHY = "not determined: lookup; run the suite, which shows why"
FOLLOWS_DEFAULTS = "nothing to declare: the tokenizer follows the defaults"
AGREES = "nothing contradicts the declaration"
SUPPORTS_TOO_LITTLE = "the tokenizer supports too little to determine a convention"
NO_DECLARATION = "no declaration describes this tokenizer; run the suite, which names likely bugs"


@pytest.mark.parametrize(
    ("declared", "findings", "status", "end"),
    [
        ({}, [FAILED], 1, [WHY]),
        ({}, [UNKNOWN], 0, [SUPPORTS_TOO_LITTLE]),
        ({}, [FOLLOWS["tie_break"], FAILED], 1, [WHY]),
        (
            {},
            [FOLLOWS["tie_break"]],
            0,
            [FOLLOWS_DEFAULTS, AGREES],
        ),
        ({}, [FOLLOWS["tie_break"], UNKNOWN], 0, [f"{FOLLOWS_DEFAULTS}, as far as they could be determined", AGREES]),
        (
            {},
            [FOLLOWS["tie_break"], BROKEN],
            1,
            [NO_DECLARATION, "CONTRADICTION lookup: the default is pair, but the tokenizer follows no known value"],
        ),
        (
            {"lookup": "whole"},
            [BROKEN],
            1,
            [NO_DECLARATION, "CONTRADICTION lookup: whole is declared, but the tokenizer follows no known value"],
        ),
        (
            {"lookup": "bytes"},
            [FOLLOWS["lookup"], FOLLOWS["tie_break"]],
            1,
            [
                FOLLOWS_DEFAULTS,
                "CONTRADICTION lookup: bytes is declared, but the tokenizer follows pair",
            ],
        ),
        (
            {"lookup": "bytes"},
            [UNKNOWN, FOLLOWS["tie_break"]],
            0,
            ['declare: conventions = {"lookup": "bytes"}', AGREES],
        ),
        (
            {"tie_break": "unspecified"},
            [FOLLOWS["tie_break"]],
            0,
            [
                FOLLOWS_DEFAULTS,
                AGREES,
                "for an exact test, declare tie_break lex-greater instead of unspecified",
            ],
        ),
    ],
)
def test_a_report_says_what_to_declare_and_what_is_not_known(declared, findings, status, end):
    report = Report("it", declared, findings)
    assert [*report.lines][1 + len(findings) :] == end
    assert report.status == status


@pytest.mark.parametrize(
    ("merges", "end"),
    [
        ([(b"a", b"b"), (b"ab", b"c")], ""),
        ([(b"b", b"c")], "merge 1 is (b,c) with count 2; the highest is 3: (a,b)"),
        ([(b"a", b"b")], "1 of 2 merges, although pairs remain"),
        ([(b"a", b"b"), (b"ab", b"c"), (b"x", b"y")], "merge 3 is (x,y) with count 1; one too many"),
    ],
)
def test_merges_that_are_no_maximum_too_few_or_too_many_are_named(merges, end):
    text = "abc\nabc\nab\nxy"
    assert not_a_maximum(Probe(text, 2), merges) == (f"{text!r}: {end}" if end else "")
