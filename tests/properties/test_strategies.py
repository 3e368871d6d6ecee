"""The examples reach what the properties are about: every piece, token, layout of ids, choice and way to cut a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import regex
from helpers.wrong_tokenizers import Whole

from bpe_conformance.fixtures import GPT2_BYTE_ORDER, PATTERNS, Model, read_model
from bpe_conformance.fixtures.pipeline import BEHAVIORS, ByteLevel, Digits, Punctuation, Split
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.operations import Question
from bpe_conformance.properties import detokenizing, encoding, strategies
from bpe_conformance.properties.engine import Drawn, Effort, Verdicts
from bpe_conformance.properties.strategies import Layout
from bpe_conformance.reference import textbook

IMPLEMENTATION = Implementation("x", Whole)


def examples(
    strategy: Callable[[Implementation], Any], count: int, tested: Implementation = IMPLEMENTATION
) -> list[Question[Any]]:
    """Return the examples of a search: as many as `count`, and the simplest one."""
    found: list[Question[Any]] = []

    def test(implementation: Implementation, question: Question[Any]) -> Verdicts:
        found.append(question)
        yield None

    one = Drawn("law-drawn", "LAW-ENCODE-1", ("encode",), strategy, count)(test)
    assert one.run(tested, Effort()) is None
    assert len(found) == count
    return found


def made(merges: list[tuple[bytes, bytes]], data: bytes) -> bool:
    """Return whether each merge joins two tokens that can be adjacent somewhere in the data."""
    tokens = {bytes([byte]) for byte in data}
    for left, right in merges:
        if not {left, right} <= tokens or left + right in tokens:
            return False
        tokens.add(left + right)
    return True


def test_merges_are_of_tokens_that_exist_and_make_new_ones() -> None:
    random = Random(5)
    data = bytes(range(256)) + b"abab" * 3
    for seed in range(0, 256, 5):
        for count in (0, 1, 2, 30):
            merges = strategies.merges_beside(data, count, seed, ("ab", "\x00\x01"))
            assert len(merges) == count
            assert made(merges, data)
            assert not {b"ab", b"\x00\x01"} & {left + right for left, right in merges}
        few = bytes(random.choices(b"ab", k=3))
        assert len(strategies.merges_beside(few, 30, seed)) <= 30
        assert made(strategies.merges_beside(few, 30, seed), few)
    first = {strategies.merges_beside(data, 1, seed)[0] for seed in range(256)}
    assert len(first) > 80
    longest = max((left + right for left, right in strategies.merges_beside(b"abcabcabc", 12, 0)), key=len)
    assert len(longest) > 3


def test_ids_have_every_layout() -> None:
    layouts = [Layout.of(number) for number in range(1 << 12)]
    assert {one.byte_ids for one in layouts} == {0, 1, 2, 3}
    assert {(one.first, one.step) for one in layouts} == {(0, 1), (0, 3), (65_270, 3)}
    assert {one.order == 0 for one in layouts} == {True, False}
    merges = [(b"a", b"b"), (b"b", b"a"), (b"ab", b"ba"), (b"c", b"c")]
    orders = {0: range(256), 1: GPT2_BYTE_ORDER, 2: range(255, -1, -1), 3: range(256)}
    for layout in layouts[::7]:
        for special in (None, [], ["<e>", "<s>"]):
            model = strategies.with_ids(merges, layout, special, "cl100k")
            assert sorted(model.vocab.values()) == sorted(
                [
                    *(bytes([byte]) for byte in range(256)),
                    b"ab",
                    b"ba",
                    b"abba",
                    b"cc",
                    *(b"<e>", b"<s>")[: 2 * bool(special)],
                ]
            )
            offset = 7 if layout.byte_ids == 3 else 0
            assert [model.vocab[index + offset][0] for index in range(256)] == [*orders[layout.byte_ids]]
            above = [index for index in model.vocab if index >= 256 + offset]
            if offset and special:  # the last token has an id below those of the bytes
                assert len([index for index in model.vocab if index < 7]) == 1
            else:
                assert min(above) == 256 + offset + layout.first
                assert {later - earlier for earlier, later in pairwise(sorted(above))} == {layout.step}
            assert (model.special_tokens, model.pattern) == (None if special is None else tuple(special), "cl100k")
            assert layout.order or [model.vocab[index] for index in above][:4] == [b"ab", b"ba", b"abba", b"cc"]
    mixed = strategies.with_ids(merges, Layout(order=3))
    assert [mixed.ids[left + right] for left, right in merges] != sorted(mixed.ids[a + b] for a, b in merges)


@pytest.mark.parametrize("byte_ids", range(4))
def test_the_ids_of_bytes_are_those_of_the_table(byte_ids: int) -> None:
    model = strategies.with_ids([], Layout(byte_ids=byte_ids))
    assert b"".join(map(model.vocab.__getitem__, detokenizing._bytes(model, b"\0az\xe2\xff"))) == b"\0az\xe2\xff"


def test_texts_have_every_piece_and_tables_merges_gaps_and_layouts() -> None:
    asked = examples(strategies.encodings, 600)
    text = "\n".join(question.operation.text for question in asked)
    missing = {piece for alphabet in strategies.ALPHABETS for piece in alphabet} - {
        piece for alphabet in strategies.ALPHABETS for piece in alphabet if piece in text
    }
    assert missing == set()
    assert {len(question.table.merges) for question in asked} >= {0, 2, 10, 20, 30}
    ids = [[question.table.ids[bytes([byte])] for byte in (0, 1, 255)] for question in asked]
    assert {tuple(one) for one in ids} == {(0, 1, 255), (188, 189, 187), (255, 254, 0), (7, 8, 262)}
    assert {max(question.table.vocab) > 65_000 for question in asked} == {True, False}
    # a token of the table occurs in texts whose pieces do not give it
    tokens = [(question, left + right) for question in asked for left, right in question.table.merges]
    assert sum(token in question.operation.text.encode() for question, token in tokens) > len(tokens) / 3
    assert "" not in {question.operation.text for question in asked}


def test_high_bytes_add_each_token_of_the_table_to_the_text() -> None:
    model = read_model({"merges": [["x", "y"], ["xy", "z"]]})
    for byte, added in ((191, ""), (192, "xy"), (193, "\nxy\n"), (194, "xyz"), (195, "\nxyz\n")):
        (piece,) = strategies.pieces(strategies.ALPHABETS[0], bytes([byte]))
        assert strategies.text_with_tokens(strategies.ALPHABETS[0], bytes([byte]), model) == piece + added


def test_ids_to_decode_are_of_every_byte_and_of_every_token() -> None:
    asked = examples(strategies.decodings, 400)
    decoded = {question.table.vocab[index] for question in asked for index in question.operation.ids}
    assert len({token for token in decoded if len(token) == 1}) > 240
    assert any(
        question.table.ids[b"".join(question.table.merges[-1])] in question.operation.ids
        for question in asked
        if question.table.merges
    )
    data = [b"".join(question.table.vocab[index] for index in question.operation.ids) for question in asked]
    assert {"\ufffd" in one.decode("utf-8", "replace") for one in data} == {True, False}
    assert any(char in one.decode("utf-8", "replace") for one in data for char in "é€🦊")


def test_special_tokens_are_single_contain_one_another_and_come_in_lists() -> None:
    sets = strategies.special_sets()
    assert {(one,) for one in strategies.SPECIALS} <= {*sets}
    pairs = {one for one in sets if len(one) == 2}
    assert {
        (one, other) for one in strategies.SPECIALS for other in strategies.SPECIALS if one != other and one in other
    } <= pairs
    longer = [one for one in sets if len(one) > 2]
    assert {*longer} == {one[::-1] for one in longer}
    assert max(map(len, longer)) == len(strategies.SPECIALS) // 2
    for listed in longer:
        assert {*map(strategies.SPECIALS.index, listed)} <= {*range(len(strategies.SPECIALS))}
    for special in (("<|e|>",), ("aa", "aaa", "<|e|>")):
        found = {piece for byte in range(256) for piece in strategies.special_pieces(special, bytes([byte]))}
        parts = {part for token in special for part in (token[:-1], token[1:])}
        assert {*special, *parts, *strategies.UNLISTED, *strategies.SPECIALS, "'s", "\n"} <= found


def test_choices_of_special_tokens_are_all_none_and_some() -> None:
    for disallowed in (False, True):
        asked = examples(lambda implementation: strategies.allowed_encodings(implementation, disallowed), 300)  # noqa: B023
        for name, expected in (("allowed_special", True), ("disallowed_special", disallowed)):
            chosen = [(question, getattr(question.operation, name)) for question in asked]
            assert any(one == "all" for _, one in chosen) is expected
            assert any(one == () for _, one in chosen)
            several = [(one, question.table.special_tokens or ()) for question, one in chosen if isinstance(one, tuple)]
            assert any(len(one) > 1 for one, _ in several) is expected
            assert any(0 < len(one) < len(listed) for one, listed in several) is expected
            assert all({*one} <= {*listed} for one, listed in several)
        listed = [question.table.special_tokens or () for question in asked]
        assert not any(one != other and one.startswith(other) for some in listed for one in some for other in some)
        assert max(map(len, listed)) > 4


def test_texts_are_cut_inside_and_after_each_piece_and_into_empty_chunks() -> None:
    parts = ["<|e|>", "ab", "c", "日本"]
    for number in range(4**4):
        data = bytes(64 * (number >> 2 * at & 3) for at in range(4))
        chunks = strategies.chunked(parts, data)
        assert "".join(chunks) == "".join(parts)
        ends = {sum(map(len, chunks[: at + 1])) for at in range(len(chunks) - 1)}
        middles, after = (3, 6, 8, 9), (5, 7, 8, 10)
        expected = {middles[at] if byte == 64 else after[at] for at, byte in enumerate(data) if byte}
        assert ends == expected
        assert sum(byte == 192 for byte in data) <= chunks.count("")
    questions = examples(strategies.streams, 300)
    with_special = [question.operation.whole_text for question in questions if question.table.special_tokens]
    assert 100 < sum(any(token in text for token in strategies.SPECIALS) for text in with_special) < 250
    asked = [question.operation.chunks for question in questions]
    assert any("" in chunks[1:-1] for chunks in asked)
    assert max(map(len, asked)) > 12
    assert min(map(len, asked)) == 1
    assert any(
        any(token in "".join(chunks) and not any(token in chunk for chunk in chunks) for token in strategies.SPECIALS)
        for chunks in asked
    )


def test_a_third_of_the_streams_through_pipelines_are_split_nowhere() -> None:
    steps = [question.table.pipeline.steps for question in examples(encoding._pipeline_streams, 300)]
    assert 75 < steps.count((ByteLevel(split=False),)) < 150


@pytest.mark.parametrize("lookup", ["pair", "bytes"])
def test_tables_that_lack_special_tokens_can_have_an_entry_that_no_merge_makes(lookup: str) -> None:
    class Declares(Whole):
        conventions = {"lookup": lookup}  # noqa: RUF012

    asked = examples(encoding._absent_tokens, 60, Implementation("x", Declares))
    assert not [one for one in asked if {*map(str.encode, one.table.special_tokens)} & {*one.table.vocab.values()}]
    has_entry = {b"no such pre-token" in one.table.vocab.values() for one in asked}
    assert has_entry == ({False} if lookup == "bytes" else {False, True})


def test_batches_have_many_texts_equal_ones_and_special_tokens() -> None:
    asked = examples(strategies.batches, 300)
    sizes = [len(question.operation.batch) for question in asked]
    assert min(sizes) == 1
    assert max(sizes) > 3
    assert any(len({*question.operation.batch}) < len(question.operation.batch) for question in asked)
    with_special = [question for question in asked if question.table.special_tokens]
    assert len(with_special) > 60
    assert any(len(question.operation.batch) > 1 for question in with_special)
    assert not any(strategies.END in text or not text for question in asked for text in question.operation.batch)


def test_trainings_have_every_letter_separator_pattern_and_list() -> None:
    names = ["gpt2", "cl100k"]
    asked = examples(lambda implementation: strategies.trainings(implementation, True, names), 500)
    operations = [question.operation for question in asked]
    assert {one.pattern for one in operations} == {*names}
    listed = {one.special for one in operations}
    assert () in listed
    assert len(listed) > 30
    text = "".join(one.text for one in operations)
    assert {piece for corpus in strategies.CORPORA for piece in corpus if piece not in text} == set()
    assert {piece for piece in strategies.BETWEEN if piece not in text} == set()
    assert any(any(token in one.text for token in one.special) for one in operations)
    assert {one.vocab_size - 256 - len(one.special) for one in operations} == {*range(15), 100}
    assert not [one for one in examples(strategies.trainings, 100) if one.operation.special]
    without: Any = SimpleNamespace(capabilities={"train"})
    asked = examples(lambda _: strategies.trainings(without, True), 100)
    assert not [one for one in asked if one.operation.special]


def test_the_steps_of_pipelines_have_every_setting() -> None:
    alone = [encoding._steps(bytes((first, 0, 0, last))) for first in (0, 1) for last in range(256)]
    mappings = [step for steps in alone for step in steps if isinstance(step, ByteLevel)]
    assert {(one.prefix_space, one.split) for one in mappings} == {*product((False, True), repeat=2)}
    assert {isinstance(steps[0], ByteLevel) for steps in alone if len(steps) > 1} == {False, True}
    others = {step for first in range(1, 256) for step in encoding._steps(bytes((first, 0, 0, 0)))}
    splits = [step for step in others if isinstance(step, Split)]
    assert {step.expression for step in splits} == {*encoding.EXPRESSIONS}
    assert {(step.behavior, step.invert) for step in splits} == {*product(BEHAVIORS, (False, True))}
    assert {step.behavior for step in others if isinstance(step, Punctuation)} == {*BEHAVIORS}
    assert {step.individual for step in others if isinstance(step, Digits)} == {False, True}


def test_texts_for_pipelines_can_have_each_added_token() -> None:
    pieces = (*encoding.ASCII, *encoding.OTHERS)
    piece = re.compile("|".join(map(re.escape, sorted(pieces, key=len, reverse=True))))
    assert [one for one in encoding.CONTENTS if piece.sub("", one) and not any(one in other for other in pieces)] == []


def test_a_table_shows_where_a_text_is_split() -> None:
    for name in ("gpt2", "cl100k"):
        model = strategies.showing("it's 12 ab\n", name, PATTERNS[name])
        assert model is not None
        pieces = textbook.split("it's 12 ab\n", PATTERNS[name])
        assert {piece.encode() for piece in pieces} <= {*model.vocab.values()}
        assert model.pattern == name
    assert isinstance(strategies.showing("a", "gpt2", PATTERNS["gpt2"]), Model)


def test_texts_that_are_split_have_each_kind_of_character_that_a_pattern_names() -> None:
    text = "".join(piece for alphabet in strategies.SPLIT_APART for piece in alphabet)
    kinds = {kind for pattern in PATTERNS.values() for kind in re.findall(r"\\p\{\w+\}", pattern)}
    assert len(kinds) > 5
    assert {kind for kind in kinds if not regex.search(kind, text)} == set()


@pytest.mark.parametrize("lookup", ["pair", "whole"])
def test_the_tokens_of_a_text_are_its_pre_tokens(lookup: str) -> None:
    class Declares(Whole):
        conventions = {"lookup": lookup}  # noqa: RUF012

    both = examples(lambda one: strategies.splits(one, ["gpt2", "o200k"]), 9)
    assert {question.table.pattern for question in both} == {"gpt2", "o200k"}
    drawn = examples(lambda one: strategies.splits(one, ["gpt2"]), 20, Implementation("x", Declares))
    pieces = [{piece.encode() for piece in textbook.split(question.operation.text)} for question in drawn]
    shown = [words <= {*question.table.vocab.values()} for words, question in zip(pieces, drawn, strict=True)]
    assert sum(shown) > 15


@pytest.mark.parametrize("convention", ["pair", "bytes"])
def test_only_a_lookup_by_bytes_needs_ids_in_the_order_of_ranks(convention: str) -> None:
    def tables(numbers: range) -> Iterator[Model]:
        class Declares(Whole):
            conventions = {"lookup": convention}  # noqa: RUF012

        implementation = Implementation("x", Declares)
        for number in numbers:
            yield strategies.table(["ab", "c", "ab"], number, implementation, ["<e>"], "gpt2")

    ordered = {model.ranks_by_bytes for model in tables(range(15, 1 << 24, 99_991))}
    assert ordered == ({True} if convention == "bytes" else {True, False})
