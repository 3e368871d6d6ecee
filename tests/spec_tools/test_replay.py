"""A replay shows each step of a decoding, and counts those that it does not show."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

import pytest

from bpe_conformance import cli
from bpe_conformance.fixtures import PATTERNS, Model, read_model
from bpe_conformance.fixtures.pipeline import ByteLevel, Pipeline
from bpe_conformance.operations import Encode
from bpe_conformance.reference import textbook
from bpe_conformance.spec import installed_spec
from bpe_conformance.spec_tools import replay
from bpe_conformance.spec_tools.replay import STEPS, Cut

MODEL = read_model({"merges": [["a", "b"]], "special_tokens": ["<e>", "  "], "extra": [[300, "<e>"], [301, "  "]]})


@pytest.mark.parametrize("count", [0, 1, STEPS, STEPS + 1, STEPS + 2, 40])
def test_what_is_not_shown_is_counted(count: int) -> None:
    ids = [97] * count + [0x80] * count
    for everything in (False, True):
        cut = Cut(everything)
        decoded = list(replay.decoding(MODEL, ids, cut))
        streamed = list(replay.detokenizing(MODEL, ids[count:], cut))
        shown = count if everything or count <= STEPS + 1 else STEPS
        more = [] if shown == count else [f"... {count - shown} more U+FFFD (--all shows them)"]
        none = [] if count else ["the bytes are valid UTF-8: no U+FFFD"]
        expected = [f"U+FFFD for 80 at byte {count + at}: invalid start byte" for at in range(shown)]
        assert decoded[1:] == [*expected, *more, *none]
        assert streamed[:shown] == ["128 80   gives '\\ufffd'"] * shown
        assert streamed[shown:] == [line.replace("U+FFFD", "ids") for line in more]


def test_ids_that_are_not_in_the_vocabulary_end_a_replay() -> None:
    line = "the id 999 is not in the vocabulary: there is nothing to decode"
    assert list(replay.decoding(MODEL, [97, 999, 98, 1000], Cut())) == [line]
    streamed = list(replay.detokenizing(MODEL, [97, 999, 98], Cut()))
    assert [row.split("  ")[0].strip() for row in streamed] == ["97 61", "999 is not in the vocabulary: an error"]


def test_bytes_that_wait_come_with_the_rest_or_at_the_end() -> None:
    lines = list(replay.detokenizing(MODEL, [0xE2, 0x82, 0xAC, 97, 0xE2, 0x82], Cut()))
    assert [line.split("gives ")[1] for line in lines] == [
        "no text, e2 held back",
        "no text, e2 82 held back",
        "'\\u20ac'",
        "'a'",
        "no text, e2 held back",
        "no text, e2 82 held back",
        "'\\ufffd'",
    ]


def test_a_lookup_by_bytes_does_not_find_special_tokens() -> None:
    by_bytes, by_pair = (replay._ranking(MODEL, lookup) for lookup in ("bytes", "pair"))
    assert (by_bytes((b"a", b"b")), by_pair((b"a", b"b"))) == (256, 0)
    assert by_bytes((b" ", b" ")) is by_bytes((b"<", b"e>")) is by_pair((b" ", b" ")) is None


def test_a_lookup_by_bytes_is_replayed_only_if_the_model_has_one(capsys: pytest.CaptureFixture[str]) -> None:
    cases = [case for case in installed_spec().cases if case.model is not None and type(case.operation) is Encode]
    for case in (
        next(case for case in cases if not case.table.ranks_by_bytes),
        next(case for case in cases if case.table.ranks_by_bytes and case.table.merges),
    ):
        status = cli.main(["explain", case.id, "--lookup", "bytes"])
        refused = "--lookup bytes needs unique tokens with ids in merge order" in capsys.readouterr().err
        assert (status, refused) == ((0, False) if case.table.ranks_by_bytes else (2, True))


@pytest.mark.parametrize("count", range(7))
def test_rows_beyond_the_limit_are_counted_and_never_only_one(count: int) -> None:
    rows = list("abcdef"[:count])
    assert Cut(everything=True).joined(rows, 3, empty="no ids") == (" | ".join(rows) or "no ids")
    shown = rows if count <= 4 else [*rows[:3], f"... {count - 3} more"]
    assert Cut().joined(rows, 3, between=", ") == (", ".join(shown) or "none")


ALPHABET = "abcdefghijklmnop"


def trained(text: str, room: int, tie_break: str = "lex-greater", everything: bool = False) -> list[str]:
    words = textbook.corpus(text, (), PATTERNS["gpt2"])
    return [*replay.training(words, room, tie_break, "raw", Cut(everything))]


@pytest.mark.parametrize("everything", [True, False])
@pytest.mark.parametrize(("room", "steps"), [(12, 12), (13, 13), (14, 14), (15, 15), (16, 15), (99, 15)])
def test_a_training_shows_its_first_steps_and_counts_all(room: int, steps: int, everything: bool) -> None:
    lines = trained(ALPHABET, room, everything=everything)
    shown = steps if everything or room <= 13 else 12
    assert [line for line in lines if line.startswith("step")] == [f"step {number + 1}" for number in range(shown)]
    merged = [line.split()[1] for line in lines if line.startswith("  merge ")]
    assert merged == [f"({ALPHABET[14 - at]},{ALPHABET[15 - at :]}):" for at in range(shown)]
    more = [f"... {steps - shown} more steps (--all shows them)"] if shown < steps else []
    ends = "the vocabulary is full: training ends with" if room == steps else "no pair is left: training ends with"
    merges = f"{steps} merges" if room == steps else f"{steps} of {room} merges"
    assert lines[-1 - len(more) :] == [*more, f"{ends} {merges}"]


@pytest.mark.parametrize("tie_break", ["lex-greater", "lex-smaller", "smaller-ids", "first-seen"])
def test_a_training_merges_what_the_oracle_merges(tie_break: str) -> None:
    random = Random(3)
    for special in [["ab", "ca", "abc"]] * 20:
        text = "".join(random.choices("abc ", k=30))
        lines = replay.training(textbook.corpus(text, (), PATTERNS["gpt2"]), 6, tie_break, "raw", Cut(True), special)
        merged = [line.removeprefix("  merge   ") for line in lines if line.startswith("  merge ")]
        learned = textbook.learn(text, 256 + 3 + 6, special, tie_break=tie_break, train_special="text")
        assert [line.startswith(f"{replay.pair(pair)}: ") for line, pair in zip(merged, learned, strict=True)] == [
            True
        ] * len(merged)


@pytest.mark.parametrize(("tie_break", "second"), [("smaller-ids", "(x,y)"), ("lex-greater", "(x,y)")])
def test_a_merge_that_makes_a_special_token_adds_no_entry(tie_break: str, second: str) -> None:
    words = [(b"a", b"b"), (b"a", b"b"), (b"x", b"y"), (b"x", b"y"), (b"x", b"y"), (b"ab", b"c")]
    lines = [*replay.training(words, 2, tie_break, "raw", Cut(), ["ab"])]
    assert [line.split()[1] for line in lines if line.startswith("  merge ")] == [f"{second}:", "(a,b):", "(ab,c):"]
    assert lines[-1] == "the vocabulary is full: training ends with 3 merges"


def test_a_training_shows_the_pairs_by_their_counts_and_the_merge_first() -> None:
    lines = trained("abab abab bcbc bcbc xy", 1)
    rows = [line.split(maxsplit=2) for line in lines[2 : lines.index(next(row for row in lines if "merge   " in row))]]
    counts = [int(row[0]) for row in rows if row[0] != "..."]
    assert counts == sorted(counts, reverse=True)
    assert rows[0] == ["4", "(b,c)", "<- merged, of a tie"]
    assert rows[1] == ["4", "(a,b)", "tied"]
    assert not any("tied" in line or "merged" in line for line in lines[4 : len(rows) + 2])


def test_a_pair_that_alone_has_the_highest_count_is_not_of_a_tie() -> None:
    (row,) = (line.split(maxsplit=2) for line in trained("ab ab bc", 1) if "<- merged" in line)
    assert row == ["2", "(a,b)", "<- merged"]


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (ALPHABET, "... 7 more pairs, 7 of them tied"),
        (f"{ALPHABET} zzz zzz", "... 9 more pairs, each at most 1 time"),
        (" ".join([*["zz zy"] * 2, *([ALPHABET] * 2), "zz"]), "... 11 more pairs, each at most 2 times"),
    ],
)
def test_the_pairs_that_are_not_shown_are_counted(text: str, rest: str) -> None:
    assert next(line.strip() for line in trained(text, 1) if "more pair" in line) == rest


@pytest.mark.parametrize(
    ("tie_break", "reason"),
    [
        ("lex-greater", "(c,d): 3 pairs tie at 1; lex-greater takes it: left c is greater than b of (b,c)"),
        ("lex-smaller", "(a,b): 3 pairs tie at 1; lex-smaller takes it: left a is smaller than b of (b,c)"),
        ("smaller-ids", "(a,b): 3 pairs tie at 1; smaller-ids takes it: the left id 97 is below the 98 of (b,c)"),
        ("first-seen", "(a,b): 3 pairs tie at 1; first-seen takes the pair that occurs first in the text"),
    ],
)
def test_a_tie_is_explained_by_the_pair_that_comes_next(tie_break: str, reason: str) -> None:
    (line,) = (line for line in trained("abcd", 1, tie_break) if line.startswith("  merge "))
    assert line.split(maxsplit=1)[1] == reason


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ((b".", b"y"), "left '-' is smaller than '.' of ('.',y) (byte 2d against 2e)"),
        ((b"a", b"y"), "left '-' is smaller than a of (a,y) (byte 2d against 61)"),
        ((b"-", b"y"), "left tokens are equal, and right x is smaller than y of ('-',y)"),
        ((b"-!", b"y"), "left '-' is smaller than '-!' of ('-!',y), which is a prefix of the other"),
    ],
)
def test_a_tie_says_which_bytes_decide(other: tuple[bytes, bytes], reason: str) -> None:
    lines = replay.training([other, (b"-", b"x")], 1, "lex-smaller", "raw", Cut())
    (line,) = (line for line in lines if line.startswith("  merge "))
    assert line == f"  merge   ('-',x): 2 pairs tie at 1; lex-smaller takes it: {reason}"


def test_a_letter_and_another_byte_are_distinguished_by_their_bytes() -> None:
    (line,) = (
        line
        for line in replay.training([(b"-", b"x"), (b"a", b"y")], 1, "lex-greater", "raw", Cut())
        if line.startswith("  merge ")
    )
    assert line.endswith("left a is greater than '-' of ('-',x) (byte 61 against 2d)")


def test_words_that_repeat_are_counted_and_only_eight_are_shown() -> None:
    corpus, *_ = trained("aa aa aa bb", 1)
    assert corpus == "corpus  a a | ' ' a a x2 | ' ' b b"
    corpus, *_ = trained(" ".join(f"a{letter}" for letter in ALPHABET), 1)
    assert (corpus.count("|"), corpus.endswith("| ... 8 more")) == (8, True)
    assert trained("", 1) == ["corpus  empty", "no pair is left: training ends with 0 of 1 merges"]


def encoded(model: Model, text: str, lookup: str = "pair", everything: bool = False) -> list[str]:
    return [*replay.encoding(model, text, lookup, Cut(everything))]


def test_an_encoding_shows_its_segments_and_each_pre_token_once() -> None:
    assert encoded(MODEL, "ab<e>ab cab   x") == [
        "segments  'ab' | special '<e>' | 'ab cab' | special '  ' | ' x'",
        "pre-token 'ab', 2 times",
        "  [a b]                     (a,b) of rank 0 merges",
        "  = 256 'ab'",
        "pre-token ' cab'",
        "  ' ' c [a b]               (a,b) of rank 0 merges",
        "  = 32 ' ' | 99 'c' | 256 'ab'",
        "pre-token ' x'",
        "  = 32 ' ' | 120 'x'",
    ]
    plain = read_model({"merges": [["a", "b"]]})
    assert encoded(plain, "") == ["segments  none"]
    assert encoded(plain, "a") == ["pre-token 'a'", "  = 97 'a'"]
    assert encoded(replace(plain, special_tokens=("", "x")), "a")[0] == "segments  'a'"
    assert encoded(replace(plain, pattern="none"), "a b")[0] == "pre-token 'a b'"


def test_an_encoding_says_what_it_cannot_encode_and_what_has_no_id() -> None:
    lost = replace(
        MODEL, special_tokens=None, vocab={index: MODEL.vocab[index] for index in MODEL.vocab if index != 256}
    )
    assert encoded(lost, "ab")[-1] == "  = no id 'ab'"
    surrogate = "  contains a lone surrogate, which UTF-8 cannot encode; there is nothing to replay"
    assert encoded(lost, "x\ud800")[-1] == surrogate


def test_a_long_encoding_shows_twelve_merges_and_the_result_of_all() -> None:
    model = read_model({"merges": [["a", "a"], ["aa", "aa"], ["x", "y"]]})
    for everything in (True, False):
        lines = encoded(model, "a" * 28 + "xy", everything=everything)
        merges = [line for line in lines if " of rank " in line]
        assert len(merges) == (22 if everything else 12)
        more = [line for line in lines if "more merge" in line]
        assert more == ([] if everything else ["  ... 10 more merges (--all shows them)"])
        assert lines[-1] == "  = " + "257 'aaaa' | " * 7 + "258 'xy'"
    assert lines[1:3] == [
        "  [a a] a a a a a a a a a a a a 16 more ...",
        "      (a,a) of rank 0 merges; other ranks: (x,y) 2",
    ]
    assert any("  ... 1 before aa " in line for line in lines)
    rows = [line for line in encoded(model, "a" * 28 + "xy", everything=True) if "[" in line and "of rank" not in line]
    for row in rows:
        left_out = [int(number) for number in re.findall(r"(\d+) (?:before|more)", row)]
        shown = re.sub(r"\.\.\. \d+ before|\d+ more \.\.\.", "", row).split()
        assert len(shown) == 14 or not left_out
    assert any(row.endswith(" x y") and "before" in row for row in rows)


@pytest.mark.parametrize(("lookup", "is_whole"), [("pair", False), ("bytes", True), ("whole", True)])
def test_a_pre_token_in_the_vocabulary_is_not_merged_if_the_lookup_takes_it_whole(lookup: str, is_whole: bool) -> None:
    model = read_model({"merges": [["a", "a"], ["aa", "aa"]], "special_tokens": ["aaa"], "extra": [[300, "aaa"]]})
    lines = encoded(replace(model, special_tokens=("bbb",)), "aaaa", lookup)
    assert ("  a a a a   is in the vocabulary as a whole" in lines) is is_whole
    assert lines[-1] == "  = 257 'aaaa'"
    entry = replace(model, special_tokens=None, vocab={**model.vocab, 301: b"aab"})
    assert encoded(entry, "aab", lookup)[-1] == ("  = 301 'aab'" if is_whole else "  = 256 'aa' | 98 'b'")
    assert not any("whole" in line for line in encoded(model, "a", lookup))
    ranked = encoded(model, "aab", lookup)
    assert "  [a a] b                   (a,a) of rank " + ("256" if lookup == "bytes" else "0") + " merges" in ranked


def test_more_than_one_space_is_shown_as_a_number() -> None:
    assert replay.quoted(" a  b   ") == "' a'+<20>*2+'b'+<20>*3"
    assert replay.shown_token(b" a  b   ") == "' a'+<20>*2+'b'+<20>*3"


def test_the_lookup_of_a_pipeline_is_its_own() -> None:
    model = read_model({"merges": [["a", "a"]], "extra": [[300, "aab"]]})
    for lookup, tokens in (("pair", "256 'aa' | 98 'b'"), ("whole", "300 'aab'")):
        of_pipeline = replace(model, pipeline=Pipeline(steps=(ByteLevel(),), lookup=lookup))
        assert encoded(of_pipeline, "aab")[-1] == f"  = {tokens}"


@pytest.mark.parametrize("data", [b"\xe2\x82a\xff", b"ab\xffcd\xe2\x82"])
def test_a_replacement_says_where_its_bytes_are(data: bytes) -> None:
    for first, last, _ in replay.replacements(data):
        kept = data[:first].decode("utf-8", "replace") + "\ufffd" + data[last:].decode("utf-8", "replace")
        assert kept == data.decode("utf-8", "replace")
