"""A replay shows each step of a decoding, and counts those that it does not show."""

from __future__ import annotations

import pytest

from bpe_conformance import cli
from bpe_conformance.fixtures import read_model
from bpe_conformance.operations import Encode
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
