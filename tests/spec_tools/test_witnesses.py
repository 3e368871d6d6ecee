"""`bpe-conformance regenerate` writes expected values from the oracle and marks of witnesses, nothing else."""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import yaml
from helpers.golden_cases import case as made

from bpe_conformance.fixtures import Model, read_model
from bpe_conformance.fixtures.conventions import DEFAULTS
from bpe_conformance.fixtures.yaml_file import SpecError
from bpe_conformance.operations import (
    Batch,
    Decode,
    Encode,
    EncodeAllowed,
    EncodeWithOffsets,
    Operation,
    Setting,
    Train,
)
from bpe_conformance.reference import textbook
from bpe_conformance.spec import installed_spec, load_spec
from bpe_conformance.spec_tools.regenerate import regenerate
from bpe_conformance.spec_tools.witnesses import Witness, ask, is_ambiguous, load_witnesses

CASES = """\
clause: MERGE-ORDER-1
cases:
  # a comment that stays
  - id: first
    title: the pair learned first merges first
    since: "1.0"
    op: encode
    model: {merges: [["b", "c"],   ["a", "b"]]}
    input: {text: "abc"}
    expect: {tokens: ["a", "bc"], ids: [97, 256]}
    # another
    note: spaces   stay

  - id: second
    title: lookup by pair and by bytes differ
    since: "1.0"
    op: encode
    model: {merges: [["b", "c"], ["a", "b"], ["ab", "c"]]}
    input: {text: "xabc"}
    expect:
      by_convention:
        pair: {tokens: ["x", "a", "bc"], ids: [120, 97, 256]}
        bytes: {tokens: ["x", "abc"], ids: [120, 258]}
        whole: {tokens: ["x", "a", "bc"], ids: [120, 97, 256]}
  - id: third
    title: a rule and no value
    since: "1.0"
    op: encode
    model: pinned
    input: {text: "ab"}
    expect: {lossless: true}
  - id: fourth
    title: a value that is worked out by hand
    since: "1.0"
    op: encode
    model: pinned
    input: {text: "ab"}
    by: hand
    expect: {tokens: ["ab"], ids: [256]}
"""
TRAIN = """\
clause: TRAIN-TIE-1
cases:
  - id: tie
    title: two pairs that tie
    since: "1.0"
    op: train
    input: {train: {text: "ab\\nba", vocab_size: 257, special_tokens: []}}
"""
MODEL = """\
title: A model with one merge
merges: [["a", "b"]]
"""
CLAUSES = """\
section: {section}
title: A title
intro: An introduction.
clauses:
  - id: {id}
    level: must
    statement: A statement of a rule.
    rationale: A reason for the rule.
    sources: ["nobody"]
"""


class Agrees:
    """A correct witness: the textbook under the requested convention."""

    conventions: ClassVar = {"lookup": "bytes"}
    kind = textbook.with_conventions(lookup="bytes")

    def __new__(cls, *arguments, **keywords):
        return cls.kind(*arguments, **keywords)

    @classmethod
    def train(cls, *arguments, **keywords):
        return textbook.Tokenizer.train(*arguments, **keywords)


class Lies(Agrees):
    """Returns one id too many for every text that contains an x."""

    class kind(textbook.with_conventions(lookup="bytes")):  # noqa: N801
        def encode(self, text):
            return [*super().encode(text), *([0] if "x" in text else [])]


class Plain(Agrees):
    """Trains without special tokens only."""

    @classmethod
    def train(cls, text, vocab_size, special_tokens):
        if special_tokens:
            raise NotImplementedError
        return super().train(text, vocab_size, special_tokens)


class FailsOnSpecialTokens(Agrees):
    @classmethod
    def train(cls, text, vocab_size, special_tokens):
        if special_tokens:
            raise ValueError("no id is left")
        return super().train(text, vocab_size, special_tokens)


class Raises(Agrees):
    def __new__(cls, *arguments, **keywords):
        raise BaseException("panic\n\u20ac")


class Stopped(Agrees):
    def __new__(cls, *arguments, **keywords):
        raise KeyboardInterrupt


def witness(name="honest", kind="Agrees", version=None, package="regex", **asked) -> Witness:
    asked = asked or {"encode": "bytes", "train": "lex-greater"}
    version = version or importlib.metadata.version(package)
    return Witness(name, package, version, f"{__name__}:{kind}", asked, "here")


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    for part in ("cases", "clauses", "models"):
        (tmp_path / part).mkdir()
    (tmp_path / "models" / "pinned.yaml").write_text(MODEL)
    pin(tmp_path)
    (tmp_path / "cases" / "encode.yaml").write_text(CASES)
    (tmp_path / "cases" / "train.yaml").write_text(TRAIN)
    for section, name in (("MERGE", "MERGE-ORDER-1"), ("TRAIN", "TRAIN-TIE-1")):
        (tmp_path / "clauses" / f"{section.lower()}.yaml").write_text(CLAUSES.format(section=section, id=name))
    return tmp_path


def pin(folder: Path) -> None:
    file = folder / "models" / "pinned.yaml"
    (folder / "models" / "SHA256SUMS").write_text(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*.*")) if file.is_file()}


def agrees(folder: Path) -> dict[str, tuple[str, ...]]:
    return {case.id: case.agrees for case in load_spec(folder).cases}


def test_only_values_and_marks_are_written(spec):
    outcome = regenerate(spec, witnesses=[witness()])
    assert outcome.refusals == []
    marks = {"first": ("honest",), "second": ("honest",), "third": (), "fourth": ("hand", "honest"), "tie": ("honest",)}
    assert agrees(spec) == marks
    after = (spec / "cases" / "encode.yaml").read_text()
    added = "    agrees: [honest]\n"
    assert after.replace("    agrees: [hand, honest]\n", "").replace(added, "") == CASES
    assert "ids: [97, 256]}\n    agrees: [honest]\n    # another\n" in after
    assert 'whole: {tokens: ["x", "a", "bc"], ids: [120, 97, 256]}\n    agrees: [honest]\n' in after
    trained = (spec / "cases" / "train.yaml").read_text()
    assert trained.startswith(TRAIN)
    assert trained.count("\n") == TRAIN.count("\n") + 8
    assert trained.endswith('first-seen: {merges: [["a", "b"]]}\n    agrees: [honest]\n')
    assert outcome.witnessed == {1: 3, 2: 1}
    assert outcome.rules == 1
    assert outcome.agreement == (
        "4 values, by the number of libraries that confirm them: 1: 3, 2: 1; cases with a rule instead: 1"
    )


def test_check_writes_nothing(spec):
    before = contents(spec)
    outcome = regenerate(spec, check=True, witnesses=[witness()])
    assert contents(spec) == before
    assert any("train.yaml: tie has no expected value" in line for line in outcome.differences)
    assert any("first has agrees: []; now [honest]" in line for line in outcome.differences)


def test_a_changed_golden_of_one_convention_is_caught(spec):
    regenerate(spec, witnesses=[witness()])
    file = spec / "cases" / "encode.yaml"
    file.write_text(file.read_text().replace("ids: [120, 258]", "ids: [120, 257]"))
    assert len(regenerate(spec, check=True, witnesses=[witness()]).differences) == 1


def test_a_changed_mark_is_caught(spec):
    regenerate(spec, witnesses=[witness()])
    file = spec / "cases" / "train.yaml"
    file.write_text(file.read_text().replace("[honest]", "[honest, nobody]"))
    outcome = regenerate(spec, check=True, witnesses=[witness()])
    assert outcome.differences == ["train.yaml: tie has agrees: [honest, nobody]; now [honest]"]
    file = spec / "cases" / "encode.yaml"
    file.write_text(file.read_text().replace("[hand, honest]", "[honest, hand]"))
    outcome = regenerate(spec, check=True, witnesses=[witness()])
    assert outcome.differences[0] == "encode.yaml: fourth has agrees: [honest, hand]; now [hand, honest]"


def test_a_changed_value_by_hand_is_caught_and_never_overwritten(spec):
    regenerate(spec, witnesses=[witness()])
    file = spec / "cases" / "encode.yaml"
    file.write_text(file.read_text().replace('["ab"], ids: [256]', '["ab"], ids: [255]'))
    changed = contents(spec)
    outcome = regenerate(spec, witnesses=[witness()])
    assert len(outcome.refusals) == 1
    assert "a person worked it out" in outcome.refusals[0]
    assert contents(spec) == changed


def test_a_changed_model_file_is_caught(spec):
    regenerate(spec, witnesses=[witness()])
    (spec / "models" / "pinned.yaml").write_text(MODEL.replace("b", "c"))
    with pytest.raises(SpecError, match="sha256"):
        regenerate(spec, check=True, witnesses=[witness()])
    pin(spec)
    outcome = regenerate(spec, check=True, witnesses=[witness()])
    assert any("fourth expects" in line for line in outcome.refusals)


def test_a_changed_table_is_caught(spec, tmp_path_factory, monkeypatch):
    from bpe_conformance.fixtures import models

    folder = tmp_path_factory.mktemp("models")
    shutil.copytree(models.FOLDER / "gpt2", folder / "gpt2")
    file = folder / "gpt2" / "vocab.bpe"
    file.write_bytes(file.read_bytes().replace(b"\xc4\xa0 t\n", b"\xc4\xa0 q\n", 1))
    monkeypatch.setattr(models, "FOLDER", folder)
    models._gpt2.cache_clear()
    try:
        with pytest.raises(ValueError, match="sha256"):
            regenerate(spec, check=True, witnesses=[])
    finally:
        monkeypatch.undo()
        models._gpt2.cache_clear()


def test_a_disagreeing_witness_prevents_the_write(spec):
    regenerate(spec, witnesses=[])
    file = spec / "cases" / "encode.yaml"
    file.write_text(file.read_text().replace("ids: [120, 258]", "ids: [120, 257]"))
    before = contents(spec)["cases/encode.yaml"]
    outcome = regenerate(spec, witnesses=[witness("liar", "Lies")])
    assert outcome.refusals == ["second: liar gives [[120, 258, 0]]; the oracle [[120, 258]]"]
    assert "second" not in " ".join(outcome.differences)
    after = contents(spec)["cases/encode.yaml"]
    assert b"ids: [120, 257]" in after
    assert after.count(b"agrees") == before.count(b"agrees") + 1  # the other cases are written
    assert agrees(spec)["second"] == ()


def test_a_disagreeing_witness_fails_the_check(spec):
    regenerate(spec, witnesses=[witness()])
    outcome = regenerate(spec, check=True, witnesses=[witness(kind="Lies")])
    assert [line.split(":")[0] for line in outcome.refusals] == ["second"]


def test_a_witness_that_raises_disagrees_in_one_line(spec):
    outcome = regenerate(spec, witnesses=[witness(kind="Raises", encode="bytes")])
    assert len(outcome.refusals) == 3
    said = next(line for line in outcome.refusals if line.startswith("first"))
    assert said.startswith("first: honest gives 'BaseException: panic")
    assert said.isascii()
    assert "\n" not in said


def test_a_recorded_disagreement_is_written_without_the_mark(spec):
    entry = {"witness": "liar", "case": "second", "reason": "it lies", "source": "here"}
    (spec / "disagreements.yaml").write_text(yaml.safe_dump([entry]))
    outcome = regenerate(spec, witnesses=[witness("liar", "Lies"), witness()])
    assert outcome.refusals == []
    assert agrees(spec)["second"] == ("honest",)
    assert agrees(spec)["first"] == ("liar", "honest")


def test_a_recorded_disagreement_that_does_not_exist_is_an_error(spec):
    entry = {"witness": "honest", "case": "first", "reason": "it lied", "source": "here"}
    (spec / "disagreements.yaml").write_text(yaml.safe_dump([entry]))
    outcome = regenerate(spec, witnesses=[witness()])
    assert outcome.refusals == ["disagreements.yaml: honest agrees with first; delete the entry"]
    assert (
        regenerate(spec, witnesses=[witness(version="0")]).refusals == []
    )  # a witness that is not asked may still disagree


def test_of_several_recorded_disagreements_those_that_do_not_exist_are_errors(spec):
    told = {"witness": "liar", "reason": "it lies", "source": "here"}
    (spec / "disagreements.yaml").write_text(yaml.safe_dump([{**told, "case": case} for case in ("first", "second")]))
    outcome = regenerate(spec, witnesses=[witness("liar", "Lies")])
    assert outcome.refusals == ["disagreements.yaml: liar agrees with first; delete the entry"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"witness": "honest", "case": "nothing", "reason": "r", "source": "s"}, "there is no case nothing"),
        ({"witness": "nobody", "case": "first", "reason": "r", "source": "s"}, "there is no witness nobody"),
        ({"witness": "honest", "case": "first", "source": "s"}, "has the keys"),
        ({"witness": "honest", "case": "first", "reason": "r", "source": "s", "more": "m"}, "has the keys"),
        ("first", "has the keys"),
    ],
)
def test_malformed_disagreement_is_rejected(spec, entry, message):
    (spec / "disagreements.yaml").write_text(yaml.safe_dump([entry]))
    with pytest.raises(SpecError, match=message):
        regenerate(spec, check=True, witnesses=[witness()])


@pytest.mark.parametrize("absent", [witness(version="0.0"), witness(package="regex", version="0", kind="Lies")])
def test_an_absent_witness_keeps_its_mark(spec, absent):
    regenerate(spec, witnesses=[witness()])
    before = contents(spec)
    outcome = regenerate(spec, witnesses=[absent])
    assert outcome.differences == outcome.refusals == []
    assert contents(spec) == before
    assert outcome.notes == [
        f"honest is skipped: regex {importlib.metadata.version('regex')} is installed, not {absent.version}; "
        "its recorded marks stay"
    ]
    assert outcome.witnessed == {1: 3, 2: 1}


def test_witness_that_is_not_installed_is_noted(spec):
    away = witness(package="regex")
    regenerate(spec, witnesses=[away])
    gone = replace(away, package="no-such-distribution")
    outcome = regenerate(spec, check=True, witnesses=[gone])
    assert outcome.differences == []
    assert "is not installed" in outcome.notes[0]


def test_a_witness_whose_adapter_cannot_be_loaded_is_noted(spec):
    outcome = regenerate(spec, check=True, witnesses=[witness(kind="Missing")])
    assert outcome.refusals == []
    (note,) = outcome.notes
    assert note.startswith("honest is skipped: ")
    assert "has no 'Missing'" in note


def test_a_recorded_disagreement_is_that_of_one_witness_only(spec):
    entry = {"witness": "liar", "case": "second", "reason": "it lies", "source": "here"}
    (spec / "disagreements.yaml").write_text(yaml.safe_dump([entry]))
    outcome = regenerate(spec, check=True, witnesses=[witness("liar", "Lies"), witness("other", "Lies")])
    assert outcome.refusals == ["second: other gives [[120, 258, 0]]; the oracle [[120, 258]]"]


def test_ctrl_c_ends_the_questions(spec):
    with pytest.raises(KeyboardInterrupt):
        regenerate(spec, check=True, witnesses=[witness(kind="Stopped")])


def test_a_mark_is_removed_with_its_value(spec):
    regenerate(spec, witnesses=[witness(encode="bytes")])
    file = spec / "cases" / "encode.yaml"
    file.write_text(file.read_text().replace("ids: [120, 258]", "ids: [120, 257]").replace("[97, 256]", "[97, 257]"))
    regenerate(spec, witnesses=[witness(version="0", encode="bytes")])
    assert agrees(spec)["second"] == agrees(spec)["first"] == ()


def test_a_mark_stays_when_another_convention_changes(spec):
    regenerate(spec, witnesses=[witness(encode="bytes")])
    file = spec / "cases" / "encode.yaml"
    file.write_text(file.read_text().replace("ids: [120, 97, 256]", "ids: [120, 97, 257]"))
    regenerate(spec, witnesses=[witness(version="0", encode="bytes")])
    assert agrees(spec)["second"] == ("honest",)


def test_marks_are_removed_when_no_witness_agrees(spec):
    regenerate(spec, witnesses=[witness()])
    regenerate(spec, witnesses=[])
    assert agrees(spec) == {"first": (), "second": (), "third": (), "fourth": ("hand",), "tie": ()}
    assert (spec / "cases" / "encode.yaml").read_text().replace("    agrees: [hand]\n", "") == CASES


def test_marks_are_replaced_in_place(spec):
    file = spec / "cases" / "encode.yaml"
    file.write_text(CASES.replace("    note: spaces   stay\n", "    note: spaces   stay\n    agrees: [\n      old]\n"))
    regenerate(spec, witnesses=[witness()])
    assert "    note: spaces   stay\n    agrees: [honest]\n\n" in file.read_text()


def test_a_file_that_has_changed_since_it_was_read_is_not_written(spec, monkeypatch):
    from bpe_conformance.spec_tools import regenerate as module

    file = spec / "cases" / "encode.yaml"
    real = module.is_witnessed

    def is_witnessed(case):
        file.write_text(CASES + "# edited\n")
        return real(case)

    monkeypatch.setattr(module, "is_witnessed", is_witnessed)
    outcome = regenerate(spec, witnesses=[witness()])
    assert outcome.refusals == [
        "encode.yaml is not written, because it has changed since it was read; run regenerate again"
    ]
    assert file.read_text() == CASES + "# edited\n"


def test_a_missing_final_newline_is_not_added(spec):
    file = spec / "cases" / "train.yaml"
    file.write_bytes(TRAIN.rstrip("\n").encode())
    regenerate(spec, witnesses=[witness()])
    assert not file.read_bytes().endswith(b"\n")


def test_tiktoken_is_not_asked_about_two_special_tokens_at_one_position():
    model = read_model({"special_tokens": ["<a", "<a>", "b"]})
    assert is_ambiguous(model, "x<a>")
    assert not is_ambiguous(model, "x<a b")
    assert not is_ambiguous(read_model({"special_tokens": ["aa"]}), "aaa")
    assert not is_ambiguous(read_model({"special_tokens": ["ab", "bc"]}), "abc")


@pytest.mark.parametrize(("clause", "marks"), [("TRAIN-TIE-1", ("plain",)), ("TRAIN-IDS-2", ())])
def test_a_trainer_without_special_tokens_is_asked_about_merges_but_not_about_ids(spec, clause, marks):
    text = TRAIN.replace("TRAIN-TIE-1", clause).replace("special_tokens: []", 'special_tokens: ["<e>"]')
    (spec / "cases" / "train.yaml").write_text(text.replace("257", "258"))
    (spec / "clauses" / "train.yaml").write_text(CLAUSES.format(section="TRAIN", id=clause))
    outcome = regenerate(spec, witnesses=[witness("plain", "Plain")])
    assert (agrees(spec)["tie"], outcome.refusals) == (marks, [])


def test_a_trainer_that_fails_on_special_tokens_disagrees_in_one_line(spec):
    text = TRAIN.replace("special_tokens: []", 'special_tokens: ["<e>"]')
    (spec / "cases" / "train.yaml").write_text(text.replace("257", "258"))
    outcome = regenerate(spec, witnesses=[witness("fails", "FailsOnSpecialTokens")])
    assert [line.partition(":")[0] for line in outcome.refusals] == ["tie"]
    assert "ValueError: no id is left" in outcome.refusals[0]


def test_witnesses_are_not_asked_about_special_tokens_in_the_training_text(spec):
    text = TRAIN.replace("special_tokens: []", 'special_tokens: ["b"]').replace("257", "258")
    (spec / "cases" / "train.yaml").write_text(text)
    regenerate(spec, witnesses=[witness()])
    assert agrees(spec)["tie"] == ()


def test_a_witness_that_trains_on_special_tokens_as_text_is_asked_about_them() -> None:
    in_text = textbook.with_conventions(train_special="text")
    training = Train("abab<e>", 259, ("<e>",))
    merges = training.computed(Setting(None, {**DEFAULTS, "train_special": "text"}))
    trained = ask(in_text, training, None, merges)
    assert trained is not None
    assert trained.agrees
    assert ask(textbook.with_conventions(), training, None, merges) is None


AB = {"merges": [["a", "b"]]}


@pytest.mark.parametrize(
    ("model", "by_pair", "by_bytes"),
    [
        (AB, True, True),
        ({**AB, "extra": [[300, "ab"]]}, False, False),  # its table would have one id
        ({**AB, "extra": [[300, "<e>"]], "special_tokens": ["<e>"]}, True, True),
        ({**AB, "special_tokens": ["<e>"]}, True, False),  # it has no id
        ({**AB, "special_tokens": ["ab"]}, False, False),  # it is a result of a merge, too
        ({"merges": [["b", "c"], ["a", "b"]], "merge_ids": [257, 256]}, True, False),
        ({**AB, "remove": [256]}, False, False),
        ({**AB, "extra": [[300, "x<"], [301, "x<y"]], "special_tokens": ["x<", "x<y"]}, True, False),  # in any order
    ],
)
def test_a_witness_is_asked_only_about_models_that_it_holds_unchanged(
    model: dict[str, Any], by_pair: bool, by_bytes: bool
) -> None:
    """An answer about another model would depend on its adapter."""
    one = made("encode", model, {"text": "x<y"}, {"ids": [120, 60, 121]})
    for lookup, is_asked in (("pair", by_pair), ("bytes", by_bytes)):
        assert (witness(encode=lookup).answer(one) is not None) is is_asked, lookup


def test_a_trainer_is_asked_about_the_ids_of_its_layout_and_for_no_more_merges_than_there_are() -> None:
    specials_first = textbook.with_conventions(id_layout="specials-bytes-merges")
    first_seen = textbook.with_conventions(tie_break="first-seen")
    for kind, size, clause, is_asked in (
        (specials_first, 258, "TRAIN-TIE-1", True),
        (specials_first, 258, "TRAIN-IDS-2", False),
        (first_seen, 257, "TRAIN-TIE-1", True),
        (first_seen, 300, "TRAIN-TIE-1", False),  # tiktoken's raises an error when no pair is left
        (textbook.with_conventions(), 300, "TRAIN-TIE-1", True),
    ):
        training = Train("ab ab", size, ("<e>",) if kind is specials_first else ())
        expected = training.computed(Setting(None, {**DEFAULTS, **kind.conventions}, clause))
        answer = ask(kind, training, None, expected)
        assert (answer is not None) is is_asked
        assert answer is None or answer.agrees


def test_versions_are_defined_once():
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    pinned = dict(re.findall(r'"([\w-]+)==([\d.]+)"', project.partition("witnesses = [")[2].partition("]")[0]))
    assert pinned == {witness.package: witness.version for witness in load_witnesses()}


def test_every_mark_names_a_witness():
    names = {"hand", *(witness.name for witness in load_witnesses())}
    for case in installed_spec().cases:
        assert set(case.agrees) <= names


def test_a_witness_confirms_all_that_it_can_compute() -> None:
    """That is: the text and the bytes of ids, all texts of a batch, chosen special tokens, spans, and a training."""

    class Right(textbook.Tokenizer):
        conventions: ClassVar = {}

        def decode_bytes(self, ids: Sequence[int]) -> bytes:
            return b"".join(self.vocab[index] for index in ids)

        def decode(self, ids: Sequence[int]) -> str:
            return Right.decode_bytes(self, ids).decode("utf-8", "replace")

    class OtherBytes(Right):
        def decode_bytes(self, ids: Sequence[int]) -> bytes:
            return super().decode_bytes(ids[:-1])

    class OtherText(Right):
        def decode(self, ids: Sequence[int]) -> str:
            return super().decode(ids[:-1])

    class OtherLastText(Right):
        def encode(self, text: str, **chosen: Any) -> list[int]:
            return [*super().encode(text, **chosen), *[0] * (text == "c")]

    class AllowsAll(Right):
        def encode(self, text: str, **chosen: Any) -> list[int]:
            return super().encode(text, **{**chosen, "disallowed_special": ()})

    class FailsWhereItHasToReject(Right):
        def encode(self, text: str, **chosen: Any) -> list[int]:
            try:
                return super().encode(text, **chosen)
            except ValueError:
                raise KeyError from None

    class OtherSpans(Right):
        def encode_with_offsets(self, text: str) -> Any:
            ids, spans = super().encode_with_offsets(text)
            return ids, [(0, end) for _, end in spans]

    class OtherMerges(Right):
        @classmethod
        def train(cls, *arguments: Any, **named: Any) -> Any:
            trained = super().train(*arguments, **named)
            return SimpleNamespace(merges=trained.merges[::-1], vocab=trained.vocab)

    class OtherIds(Right):
        @classmethod
        def train(cls, *arguments: Any, **named: Any) -> Any:
            trained = super().train(*arguments, **named)
            shifted = {index + 1: token for index, token in trained.vocab.items()}
            return SimpleNamespace(merges=trained.merges, vocab=shifted)

    plain = read_model({"merges": [["a", "b"]]})
    special = read_model({"merges": [["a", "b"]], "extra": [[300, "<e>"]], "special_tokens": ["<e>"]})
    asked: dict[str, tuple[Operation, Model | None]] = {
        "decode": (Decode((256, 97)), plain),
        "batch": (Batch(("ab", "c")), plain),
        "chosen": (EncodeAllowed("ab<e>", ("<e>",), "all"), special),
        "rejected": (EncodeAllowed("ab<e>", (), "all"), special),
        "offsets": (EncodeWithOffsets("abc"), plain),
        "train": (Train("abab ab cd cd", 258, ()), None),
    }
    for pattern in ("gpt2", "none"):  # the witness is asked with the pattern of the case
        spaced = read_model({"merges": [["a", " "]], "pattern": pattern})
        asked |= {
            f"encode-{pattern}": (Encode("a b"), spaced),
            f"train-{pattern}": (Train("a b a b", 257, (), pattern), None),
        }
    for target, others in (
        (Right, set()),
        (OtherBytes, {"decode"}),
        (OtherText, {"decode"}),
        (OtherLastText, {"batch"}),
        (AllowsAll, {"rejected"}),
        (FailsWhereItHasToReject, {"rejected"}),
        (OtherSpans, {"offsets"}),
        (OtherMerges, {"train"}),
        (OtherIds, {name for name in asked if name.startswith("train")}),
    ):
        found = set()
        for name, (operation, model) in asked.items():
            answer = ask(target, operation, model, operation.computed(Setting(model, DEFAULTS)))
            assert answer is not None
            found |= set() if answer.agrees else {name}
        assert found == others, target
