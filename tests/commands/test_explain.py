"""`bpe-conformance explain` shows what the textbook does."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bpe_conformance import cli
from bpe_conformance.answer import Ids
from bpe_conformance.command_line import CommandError
from bpe_conformance.commands.explain import (
    View,
    _first_sentence,
    _headline,
    _model,
    _prose,
    _text,
    _training,
    _value,
    explain,
)
from bpe_conformance.fixtures import Model, read_model
from bpe_conformance.fixtures.one_line import counted
from bpe_conformance.fixtures.pipeline import ByteLevel, Pipeline
from bpe_conformance.known_bugs import known_bugs
from bpe_conformance.operations import LOOKUP_KEYS, TEXT_KEYS, TRAINING_KEYS, Expected, Train
from bpe_conformance.operations.divergence import merge_steps
from bpe_conformance.properties import PROPERTIES
from bpe_conformance.reference import textbook
from bpe_conformance.selection import SelectionError
from bpe_conformance.spec import Spec, installed_spec, load_spec
from bpe_conformance.spec_tools import replay

SMALL = Path(__file__).parents[1] / "spec"


@pytest.fixture(scope="module")
def spec() -> Spec:
    return installed_spec()


def _shown(spec: Spec, name: str, *options: str | bool | None) -> str:
    view = View.checked(*options) if options else None  # type: ignore[arg-type]
    return "\n".join(explain(spec, name, view))


@pytest.fixture(autouse=True)
def _width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_a_case_of_ties_shows_the_clause_of_the_rule_that_it_is_replayed_under(spec: Spec) -> None:
    name = "train-tie-space-below-letters"
    assert "TRAIN-TIE-1 (MUST)" in _shown(spec, name).split("\n")[0]
    assert "TRAIN-TIE-2 (MUST)" in _shown(spec, name, "first-seen", None, False).split("\n")[0]


def test_a_training_case_is_replayed(spec: Spec) -> None:
    shown = _shown(load_spec(SMALL), "train-low")
    replayed = shown[shown.index("  replay") :]
    assert replayed.split("\n")[1:10] == [
        "    corpus  l o w x2 | '\\n' x2 | l o w e r",
        "    step 1",
        "           3  (o,w)                 <- merged, of a tie",
        "           3  (l,o)                 tied",
        "           1  (w,e)",
        "           1  (e,r)",
        "      merge   (o,w): 2 pairs tie at 3; lex-greater takes it: left o is greater",
        "              than l of (l,o)",
        "      corpus  l ow x2 | '\\n' x2 | l ow e r",
    ]
    assert replayed.endswith("no pair is left: training ends with 4 of 44 merges")


def test_the_answers_by_convention_are_in_a_column(spec: Spec) -> None:
    rows = re.findall(r"^    (\S*[a-z]-\S*)( +)\(", _shown(spec, "train-special-longest"), re.MULTILINE)
    assert len({len(key + gap) for key, gap in rows}) == 1
    assert all(len(gap) >= 2 for _, gap in rows)
    assert "smaller-ids/gpt2/text" in dict(rows)


@pytest.mark.parametrize("key", [*TRAINING_KEYS, *TEXT_KEYS])
def test_the_replay_merges_what_the_case_expects(spec: Spec, key: str) -> None:
    cases = [case for case in spec.cases if case.operation.name == "train" and case.expected.by_convention]
    cases = [case for case in cases if "/text" not in key or key in case.expected.values][::8]
    for case in cases:
        merged = re.findall(r"^ +merge +(\(.*?\)): ", _unfolded(_shown(spec, case.id, key, None, True)), re.MULTILINE)
        (expected,) = case.expected.under(key) or ()
        assert merged == [replay.pair(merge) for merge in expected.merges], case.id


def _unfolded(shown: str) -> str:
    """Join what was folded: a line that is indented deeper than any line that begins something."""
    return re.sub(r"\n {14}(?=\S)", " ", shown)


def test_all_texts_of_a_batch_are_shown(spec: Spec) -> None:
    name = next(case.id for case in spec.cases if case.operation.texts() == ("c", "abc", "ab", "b"))
    shown = _shown(spec, name).split("replay")[0]
    assert re.findall(r"^ +(?:texts)? +'(\w+)'", shown, re.MULTILINE) == ["c", "abc", "ab", "b"]
    assert shown.count("\n  texts ") == 1


@pytest.mark.parametrize(("special", "shown"), [(None, None), ((), "none"), (("<a>", "b"), "'<a>', 'b'")])
def test_a_table_shows_its_special_tokens_even_if_the_list_is_empty(
    special: tuple[str, ...] | None, shown: str | None
) -> None:
    model = Model({byte: bytes([byte]) for byte in range(256)}, (), special)
    lines = [" ".join(line.split()) for line in _model(model, View())]
    assert [line for line in lines if line.startswith("special")] == ([] if shown is None else [f"special {shown}"])


def test_long_runs_of_spaces_are_counted(spec: Spec) -> None:
    shown = _shown(spec, "train-length-long-run-of-spaces")
    assert "merge   (<20>*32,<20>*32): " in shown
    assert "corpus  a x2 | <20>*64 x2 | ' ' b x2" in shown
    assert "  text       'a'+<20>*65+'b\\na'+<20>*65" in shown


def test_special_tokens_as_text_are_replayed(spec: Spec) -> None:
    shown = _shown(spec, "train-special-never-counted", "first-seen/text", None, False)
    assert "  replay, ties by first-seen, special tokens are ordinary text\n" in shown


def test_the_reason_says_how_the_tie_was_broken(spec: Spec) -> None:
    small = load_spec(SMALL)
    shown = {key: " ".join(_shown(small, "train-low", key, None, False).split()) for key in TRAINING_KEYS}
    assert "lex-smaller takes it: left l is smaller than o of (o,w)" in shown["lex-smaller"]
    assert "smaller-ids takes it: the left id 108 is below the 111 of (o,w)" in shown["smaller-ids"]
    assert "the left id 75 is below the 78 of (o,w)" in shown["smaller-ids/gpt2"]
    assert "first-seen takes the pair that occurs first in the text" in shown["first-seen"]


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ({(b"a", b"z"): 2, (b"ab", b"c"): 2}, "left ab is greater than a of (a,z), which is longer"),
        ({(b"a", b"b"): 2, (b"a", b"c"): 2}, "left tokens are equal, and right c is greater than b of (a,b)"),
        ({(b" ", b"a"): 1, (b"\xc3", b"a"): 1}, "left <c3> is greater than ' ' of (' ',a) (byte c3 against 20)"),
        ({(b"a", b"a"): 1}, "(a,a): no other pair occurs 1 time"),
    ],
)
def test_replay_gives_the_reason_of_each_merge(counts: dict[tuple[bytes, bytes], int], reason: str) -> None:
    chosen = textbook.choose(counts, "lex-greater", {})
    assert replay._reason(counts, chosen, "lex-greater", {}).endswith(reason)


def test_an_encoding_case_is_replayed(spec: Spec) -> None:
    shown = _shown(spec, "merge-priority-beats-leftmost").split("\n")
    assert shown[0] == "merge-priority-beats-leftmost                     MERGE-ORDER-1 (MUST), encoder"
    assert "  operation  encode" in shown
    assert "  text       'abc'  = 61 62 63" in shown
    assert "  merges     0 (b,c)  1 (a,b)" in shown
    assert "  expected   97 'a' | 256 'bc'" in shown
    assert shown[-4:] == [
        "  replay",
        "    pre-token 'abc'",
        "      a [b c]                   (b,c) of rank 0 merges; other ranks: (a,b) 1",
        "      = 97 'a' | 256 'bc'",
    ]


def test_the_steps_of_a_pipeline_are_shown(spec: Spec) -> None:
    assert "  pipeline   NFC; added 'e'; ByteLevel" in list(explain(spec, "pipeline-order-before-composing"))
    assert "\n  pipeline   added " in _shown(spec, "offset-special-strip")  # no normal form


def test_the_bytes_held_back_at_each_id_are_shown(spec: Spec) -> None:
    shown = _shown(spec, "detok-end-two-of-three")
    assert shown[shown.index("  replay") :].split("\n")[1:] == [
        "    97 61    gives 'a'",
        "    226 e2   gives no text, e2 held back",
        "    130 82   gives no text, e2 82 held back",
        "    the end  gives '\\ufffd'",
    ]


def test_the_other_lookup_is_replayed(spec: Spec) -> None:
    case = next(
        case
        for case in spec.cases
        if case.operation.name == "encode" and set(case.expected.values) == {"pair", "bytes", "whole"}
    )
    for key in ("pair", "bytes", "whole"):
        shown = " ".join(_shown(spec, case.id, None, key, True).partition("  replay")[2].split())
        ids = re.findall(r"(?:= |\| )(\d+) ", shown)
        assert (Ids(tuple(map(int, ids))),) == case.expected.under(key), key


def test_a_convention_that_nothing_follows_is_refused(spec: Spec) -> None:
    for name in ("decode-bytes-gpt2-fox", "MERGE-ORDER-1", "MERGE", "law-encode"):
        with pytest.raises(CommandError, match=f"^--tie-break .* {name} is none; remove the option$"):
            [*explain(spec, name, View(tie_break="first-seen"))]
    for name in ("train-low-lower-essay", "decode-bytes-gpt2-fox", "MERGE-ORDER-1", "tie-greater-ids"):
        with pytest.raises(CommandError, match=f"^--lookup .* {name} is none; remove the option$"):
            [*explain(spec, name, View(lookup="bytes"))]


def test_steps_end_where_the_textbook_ends(spec: Spec) -> None:
    ranks = {(b"a", b"a"): 0, (b"aa", b"aa"): 1, (b"aaaa", b"b"): 2}
    for text in ("aaaaab", "aaaa", "b", "baab"):
        word = textbook.atoms(text)
        states = [word, *(after for *_, after in merge_steps(word, ranks.get))]
        expected = textbook.merge_by_pair(word, ranks)
        assert states[-1] == expected
        assert len(states) == len(word) - len(expected) + 1


def test_decoding_says_where_each_replacement_comes_from(spec: Spec) -> None:
    shown = _shown(load_spec(SMALL), "decode-euro")
    assert shown.endswith("    U+FFFD for e2 at byte 3: unexpected end of data")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"abc",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80a",
        b"\xf0\x80\x80",
        b"\xc0\xaf",
        b"a\xf0\x9f\xa6",
        b"\xff\xe2\x82",
    ],
)
def test_replacements_are_those_of_the_decoder(data: bytes) -> None:
    parts = list(replay.replacements(data))
    assert len(parts) == data.decode("utf-8", "replace").count("\ufffd")
    for first, last, _ in parts:
        assert data[first:last].decode("utf-8", "replace") == "\ufffd"


@pytest.mark.slow
def test_the_command_to_try_is_one_line(spec: Spec) -> None:
    for name in [*(tested.id for tested in PROPERTIES), *(bug.id for bug in known_bugs()[:20])]:
        assert re.search(
            r"(?m)^  try it     pytest conformance --adapter mypkg:Tokenizer --bpe-case \S+$", _shown(spec, name)
        )


@pytest.mark.slow
def test_a_clause_and_a_property_are_shown(spec: Spec) -> None:
    clause = _shown(spec, "merge-order-1")  # in any case
    assert clause.startswith("MERGE-ORDER-1")
    assert "merge-priority-beats-leftmost" in clause
    for one in PROPERTIES:
        shown = _shown(spec, one.id)
        assert one.clause_id in shown
        assert "\n  tests      " in shown
        assert f"--bpe-case {one.id}" in shown.replace("\n             ", " ")


def test_a_section_is_shown(spec: Spec) -> None:
    section = next(section for section in spec.sections if section.name == "MERGE")
    lines = _shown(spec, "merge").split("\n")
    cases = sum(case.clause.section == "MERGE" for case in spec.cases)
    properties = sum(one.clause_id.startswith("MERGE-") for one in PROPERTIES)
    totals = f"{len(section.clauses)} clauses, {cases} cases, {properties} propert"
    assert " ".join(lines[0].split()).startswith(f"MERGE. {section.title} {totals}")
    assert section.intro.split()[0] in lines[1]
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in lines if line.startswith("  MERGE-")}
    assert {name: level for name, (level, _) in rows.items()} == {clause.id: clause.level for clause in section.clauses}
    for clause in section.clauses:
        (_, sentence), whole = rows[clause.id], _first_sentence(clause.statement)
        assert sentence == whole or (sentence.endswith("...") and whole.startswith(sentence.removesuffix("...")))
    assert any(sentence.endswith("...") for _, sentence in rows.values())
    whole = " ".join("\n".join(explain(spec, "merge", View.checked(None, None, True))).split())
    for clause in section.clauses:
        assert " ".join([clause.id, clause.level, *_first_sentence(clause.statement).split()]) in whole


@pytest.mark.parametrize("bug", ["greedy-left-to-right", "tie-set-order", "long-texts-in-blocks"])
def test_a_known_bug_is_shown_with_what_catches_it(bug: str, spec: Spec, capsys: pytest.CaptureFixture[str]) -> None:
    known = next(each for each in known_bugs() if each.id == bug)
    shown = " ".join(_shown(spec, bug.upper()).split())
    for text in (known.sentence, known.fix, known.evidence, f" violates {known.clause} "):
        assert " ".join(text.split()) in shown
    first = re.search(r"bpe-conformance explain (\S+)", shown)
    assert first is not None
    assert f"--bpe-case {first[1]}" in shown
    assert first[1] in _shown(spec, first[1])
    assert cli.main(["known-bugs", bug]) == 0
    assert " ".join(capsys.readouterr().out.split()) == shown


def test_an_unknown_id_suggests_the_nearest(spec: Spec) -> None:
    with pytest.raises(SelectionError, match="there is no case 'mine-entries-0001'; if a pack has it, add --pack DIR"):
        list(explain(spec, "mine-entries-0001"))
    with pytest.raises(SelectionError, match="did you mean merge-priority-beats-leftmost"):
        explain(spec, "merge-priority-beats-leftmos")
    with pytest.raises(SelectionError, match=r"did you mean .*priority"):
        explain(spec, "priority")
    for convention in ("tie_break", "undeclared tie_break=first-seen", "lookup=bytes"):
        with pytest.raises(SelectionError, match=r"^(tie_break|lookup) is a convention: docs/conventions.md explains"):
            explain(spec, convention)
    with pytest.raises(SelectionError, match="did you mean greedy-left-to-right"):
        explain(spec, "greedy-left-to-rigth")
    with pytest.raises(SelectionError, match="see bpe-conformance list"):
        explain(spec, "qqqqqqqqqq")
    with pytest.raises(SelectionError, match="no tie-break 'lex-bigger'; did you mean lex-greater"):
        View.checked("lex-bigger", None, False)


def _everything(spec: Spec) -> Iterator[str]:
    yield from spec.clauses
    yield from (section.name for section in spec.sections)
    yield from (one.id for one in PROPERTIES)
    yield from (bug.id for bug in known_bugs()[::40])
    small = [case for case in spec.cases if "file" not in case.raw["input"].get("text", ())]
    yield from (case.id for case in small[::25])
    yield max((case.id for case in small), key=len)
    yield from {case.operation.name: case.id for case in small}.values()


@pytest.mark.slow
def test_everything_can_be_explained_in_80_columns(spec: Spec) -> None:
    for name in _everything(spec):
        for line in explain(spec, name):
            is_one_line = line.startswith(("    ", "  try it "))  # code, a title or a command
            assert len(line) <= (120 if is_one_line else 80), (name, line)
            assert line == line.rstrip()


def test_another_terminal_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="latin-1"))
    assert cli.main(["explain", "SPECIAL-SCAN-1"]) == 0
    sys.stdout.flush()
    assert raw.getvalue().isascii()


def test_a_long_replay_is_shortened() -> None:
    model = read_model({"merges": [["a", "b"]]})
    text = " ".join("ab" * length for length in range(1, 20))
    shortened = "\n".join(replay.encoding(model, text, "pair", replay.Cut()))
    assert "... 7 more pre-tokens (--all shows them)" in shortened
    everything = list(replay.encoding(model, text, "pair", replay.Cut(everything=True)))
    assert sum(line.startswith("pre-token") for line in everything) == 19
    assert "--all" not in "".join(everything)


@pytest.mark.parametrize(("here", "row"), [(0, "[a b] c"), (20, "[u v] w"), (None, "a b c")])
def test_a_long_row_is_shown_near_its_merge(here: int | None, row: str) -> None:
    word = tuple(bytes([byte]) for byte in range(ord("a"), ord("z") + 1))
    shown = replay._row(word, here)
    assert row in shown
    assert len(shown.replace("[", "").replace("]", "")) < 60


@pytest.mark.parametrize("count", range(9))
def test_the_other_ranks_are_shown_up_to_five_and_counted(count: int) -> None:
    word = tuple(bytes([byte]) for byte in b"xy" + b"abcdefgh"[:count])
    others = replay._others(word, lambda two: ord(two[0]), 0)
    shown = [chr(int(rank)) for rank in re.findall(r" (\d+)(?=, | and |$)", others)]
    more = count > 5
    assert "".join(shown) == "yabcdefg"[: 4 if more else count]
    assert others.endswith(f"and {count - 4} more") is more
    assert not others or others.startswith("; other ranks: ")
    assert replay._others(word, lambda two: None, 0) == ""


def test_the_type_of_the_ids_is_shown(spec: Spec) -> None:
    assert "             as a tuple\n" in _shown(spec, "decode-sequence-tuple")


def test_a_view_has_what_the_options_name() -> None:
    for key in (*TRAINING_KEYS, *TEXT_KEYS):
        assert View.checked(key, None, False) == View(tie_break=key)
    for key in LOOKUP_KEYS:
        assert View.checked(None, key, True) == View(lookup=key, cut=replay.Cut(everything=True))
    with pytest.raises(SelectionError, match="no lookup 'pairs'; did you mean pair"):
        View.checked(None, "pairs", False)


@pytest.mark.parametrize(("columns", "width"), [(20, 59), (61, 60), (99, 98), (100, 99), (300, 99)])
def test_the_width_is_that_of_the_terminal_between_limits(
    columns: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    words = "byte-level " * 40
    assert max(map(len, _prose(words))) <= width
    assert max(map(len, _prose(words))) > width - 12
    assert " ".join(" ".join(_prose(words)).split()) == words.strip()
    for name in ("x" * 10, "x" * (width - 7), "x" * width):
        lines = [*_headline(name, "right")]
        assert lines == (
            [f"{name}{'right':>{width - len(name)}}"] if len(name) + 7 <= width else [name, f"{'right':>{width}}"]
        )


def test_code_lists_and_tables_keep_their_lines() -> None:
    lists = "- first\n- second\n\n1. number\n2. two\n\n| a | b |\n| c | d |"
    text = f"One\nparagraph.\n\n{lists}\n\n```python\nx = 1\n    y = 2\n```\nLast."
    assert [line.strip() for line in _prose(text, "why")] == [
        *("why        One paragraph.", "- first", "- second", "1. number", "2. two", "| a | b |", "| c | d |"),
        *("x = 1", "y = 2", "Last."),
    ]
    (first, *others) = _prose(text, "why")
    assert all(line.startswith(" " * 13) for line in others)
    assert first.startswith("  why        One")
    assert "                   y = 2" in others


@pytest.mark.parametrize("text", ["x" * 300, "ab " * 100, "a " + "b" * 200, "b" * 50 + " " + "c" * 100])
def test_a_long_value_is_wrapped_without_loss(text: str) -> None:
    lines = [*_value(text, "text")]
    assert max(map(len, lines)) <= 79
    parts = [line[13:] for line in lines]
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")
    assert all(" " not in part.strip() or len(part) > 30 for part in parts[:-1])
    assert lines[0].startswith("  text       ")
    if " " in text[30:70]:
        assert all(text[len(parts[0]) :].lstrip()[0] == after for after in parts[1][:1])


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("One rule. Two.", "One rule."),
        ("It is 1.5\ntimes. Then", "It is 1.5 times."),
        ("no stop", "no stop"),
        ("a.", "a."),
    ],
)
def test_the_first_sentence_of_a_rule_is_shown(text: str, first: str) -> None:
    assert _first_sentence(text) == first


def test_a_clause_has_all_its_cases_properties_sources_and_why_it_has_no_case(spec: Spec) -> None:
    uncased = [clause for clause in spec.clauses.values() if clause.uncased]
    for clause in [*[*spec.clauses.values()][::15], *uncased[:1]]:
        lines = _shown(spec, clause.id).split("\n")
        text = " ".join(" ".join(lines).split())
        cases = [case.id for case in spec.cases if case.clause.id == clause.id]
        shown = [line.split()[0] for line in lines if line.startswith("    ") and not line.startswith("     ")]
        if cases:
            assert shown[-len(cases) :] == cases
            assert all(" ".join(case.title.split()) in text for case in spec.cases if case.id in cases)
            assert f" {counted(len(cases), 'case')}; bpe-conformance explain CASE replays one" in text
        for about in (clause.uncased, clause.rationale, *clause.sources):
            assert not about or about.split()[-1] in text
        assert ("  no case    " in "\n".join(lines)) is bool(clause.uncased)
        assert sum(line.startswith("  sources    ") for line in lines) == bool(clause.sources)
        mine = [one.id for one in PROPERTIES if one.clause_id == clause.id]
        assert ("  properties " in "\n".join(lines)) is bool(mine)
        assert all(name in text for name in mine)


def test_a_property_says_what_it_needs(spec: Spec) -> None:
    for one in PROPERTIES[::9]:
        text = " ".join(_shown(spec, one.id).split())
        assert f" needs {', '.join(one.needs)} try it " in text


def test_a_case_says_who_agrees_where_it_comes_from_and_its_note(spec: Spec) -> None:
    cases = [case for case in spec.cases if case.model is None or not case.model.is_large]
    for has in ("agrees", "by_hand", "source", "note"):
        for is_there in (True, False):
            case = next(case for case in cases if bool(getattr(case, has)) is is_there)
            shown = _shown(spec, case.id)
            label = {"source": "\n  from       ", "note": "\n  note       "}.get(has, "\n  agrees     ")
            if has in ("source", "note"):
                assert (label in shown) is is_there
                continue
            assert (label in shown) is bool(case.agrees or case.by_hand)
            (row,) = [" ".join(part.split()) for part in shown.split(label)[1:]] or [""]
            assert row.startswith(", ".join(case.agrees).replace("hand", "a calculation by hand"))
    both = next(case for case in cases if case.source and case.note)
    assert {"from", "note"} <= {line[2:13].strip() for line in _shown(spec, both.id).split("\n")}


def test_the_options_of_files_and_short_texts_are_shown_in_full(spec: Spec) -> None:
    case = next(case for case in spec.cases if case.id == "file-version-none-one-merge")
    (row,) = (line for line in _shown(spec, case.id).split("\n") if line.startswith("  files "))
    assert row == "  files      version_line no"
    for text, spelled in (
        ("ab", "'ab'  = 61 62"),
        ("", "''"),
        ("a" * 24, f"'{'a' * 24}'  = {'61 ' * 23}61"),
        ("a" * 25, f"'{'a' * 25}'"),
    ):
        assert _text(text, View()) == spelled
    assert _text("a" * 700, View(cut=replay.Cut(everything=True))) == f"'{'a' * 700}'"
    assert "700 characters" in _text("a" * 700, View())
    assert _text("a" * 600, View()) == f"'{'a' * 600}'"


def test_a_table_shows_its_pattern_and_the_bytes_that_it_lacks() -> None:
    whole = {byte: bytes([byte]) for byte in range(256)}
    lacks = {byte: token for byte, token in whole.items() if byte not in (0x41, 0xFF)}
    rows = [" ".join(line.split()) for line in _model(Model(lacks, (), pattern="cl100k"), View())]
    assert rows == ["merges none", "pattern cl100k", "vocab no entry for byte 41, ff"]
    assert [" ".join(line.split()) for line in _model(Model(whole, ()), View())] == ["merges none"]


@pytest.mark.parametrize(
    ("model", "row"),
    [
        ({"merges": [["a", "b"], ["ab", "c"]], "remove": [256]}, "vocab no entry for 'ab'"),
        ({"merges": [["a", "b"]], "remove": [97, 256]}, "vocab no entry for byte 61; no entry for 'ab'"),
        (
            {"byte_ids": 1, "special_tokens": ["<|e|>"]},
            "vocab no entry for '<|e|>'; the bytes have the ids 1 to 256",
        ),
        ({"byte_ids": "gpt2"}, "vocab the ids of the bytes are not in order"),
        ({"merges": [["a", "b"]], "extra": [[300, "xyz"], [301, ""]]}, "vocab 300: 'xyz', 301: ''"),
        ({"special_tokens": ["<|e|>"], "extra": [[300, "<|e|>"]]}, "special '<|e|>'"),
    ],
)
def test_a_table_shows_what_is_unusual_in_its_vocabulary(model: dict[str, Any], row: str) -> None:
    assert " ".join([*_model(read_model(model), View())][-1].split()) == row


def test_tables_keep_their_rows(spec: Spec) -> None:
    shown = _shown(spec, "TRAIN").splitlines()
    assert "  | step | counts | chosen | pre-tokens after it |" in shown
    assert not any("|---" in line for line in shown)


def test_a_table_with_a_name_shows_its_pipeline_too() -> None:
    model = Model({97: b"a"}, (), name="small", pipeline=Pipeline(steps=(ByteLevel(),)))
    rows = [" ".join(line.split()) for line in _model(model, View())]
    assert rows[:2] == ["model small", "pipeline ByteLevel"]


def test_an_id_without_an_entry_and_a_value_that_is_not_computed_are_shown_as_such(spec: Spec) -> None:
    case = next(case for case in spec.cases if case.id == "decode-unknown-next")
    assert "\n  ids        97 'a' | 256 ?\n" in _shown(spec, case.id)
    new = replace(spec, cases=(replace(case, expected=Expected({})),))
    assert "\n  expected   no value yet; bpe-conformance regenerate computes it\n" in _shown(new, case.id)


def test_only_special_tokens_that_are_allowed_are_replayed_as_such(spec: Spec) -> None:
    for name, special in (("special-allowed-none", []), ("special-allowed-one-of-two", ["<|f|>"])):
        replayed = _shown(spec, name).partition("\n  replay\n")[2]
        assert re.findall(r"special '(.*?)'", replayed) == special


def test_every_accepted_answer_is_shown(spec: Spec) -> None:
    case = next(case for case in spec.cases if not case.expected.by_convention and len(case.expected.alternatives) > 1)
    lines = _shown(spec, case.id).split("\n")
    shown = [line.split()[0] for line in lines if line.startswith(("  expected ", "  or "))]
    assert shown == ["expected", *["or"] * (len(case.expected.alternatives) - 1)]


def test_a_text_that_does_not_have_its_bytes_shows_them() -> None:
    shown = _shown(load_spec(SMALL), "decode-euro")
    (row,) = (line for line in shown.split("\n") if line.startswith("  expected "))
    assert row.endswith(", the bytes " + row.rpartition(", the bytes ")[2])
    assert "e2" in row.rpartition(", the bytes ")[2].split()
    plain = next(case for case in installed_spec().cases if case.id == "decode-bytes-ascii")
    assert "the bytes" not in next(
        line for line in _shown(installed_spec(), plain.id).split("\n") if "expected " in line
    )


@pytest.mark.parametrize(("size", "is_error"), [(257, True), (258, False), (259, False)])
def test_a_vocabulary_that_is_too_small_for_the_special_tokens_is_an_error(size: int, is_error: bool) -> None:
    lines = [*_training(Train("abab", size, ("<a>", "<b>", "<a>")), View())]
    said = "256 bytes and 2 special tokens exceed vocab_size: training raises an error before any step"
    assert (lines == [said]) is is_error
    if not is_error:
        assert lines[-1].endswith(f"training ends with {counted(size - 258, 'merge')}")


@pytest.mark.parametrize(
    ("asked", "key", "corpus"),
    [
        (Train("a<x>b a<x>b", 300, ("<x>",)), "first-seen/text", "a | '<' x2 | x x2 | '>' x2 | b x2 | ' ' a"),
        (Train("a<x>b a<x>b", 300, ("<x>",)), "first-seen", "a | b x2 | ' ' a"),
        (Train("a b", 300, (), "none"), "lex-greater", "a ' ' b"),
    ],
)
def test_a_training_is_replayed_with_its_pattern_and_special_tokens(asked: Train, key: str, corpus: str) -> None:
    assert next(iter(_training(asked, View(tie_break=key)))) == f"corpus  {corpus}"


def test_a_rejected_text_has_no_replay_and_each_text_of_a_batch_has_one(spec: Spec) -> None:
    rejected = _shown(spec, "special-disallowed-alone")
    assert rejected.endswith("  replay: none, the tokenizer rejects the text before it encodes anything")
    case = next(case for case in spec.cases if case.operation.texts() == ("c", "abc", "ab", "b"))
    replayed = _shown(spec, case.id).partition("\n  replay\n")[2]
    assert re.findall(r"pre-token '(\w+)'", replayed) == ["c", "abc", "ab", "b"]


def test_a_property_whose_clause_another_specification_lacks_is_unknown() -> None:
    small = load_spec(SMALL)
    other = next(one.id for one in PROPERTIES if one.clause_id not in small.clauses)
    with pytest.raises(SelectionError, match=f"no case, clause, section, property or known bug '{other}'"):
        explain(small, other)


def test_the_property_about_growth_is_explained_with_the_option_that_it_needs(spec: Spec) -> None:
    shown = [*explain(spec, "law-growth")]
    assert shown[-1].endswith("pytest conformance --adapter mypkg:Tokenizer --bpe-scale --bpe-case law-growth")


def test_the_clauses_of_an_extension_are_explained_although_nothing_is_tested_with_them(spec: Spec) -> None:
    assert _shown(spec, "super").startswith("SUPER. SuperBPE")
    shown = _shown(spec, "SUPER-WORDS-1")
    assert shown.startswith("SUPER-WORDS-1 ")
    assert "5 cases; no adapter is tested with them" in shown
    assert "    super-most-words-zero\n        a limit of zero words is an error" in shown
    assert _shown(spec, "super-most-words-zero") == shown  # its case has no replay
