"""The cases of a pack have what they promise: every entry, every special token, every word that was found."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice, product
from string import ascii_lowercase
from typing import Any

import pytest

from bpe_conformance.fixtures import Model, read_model, write_token
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Pipeline
from bpe_conformance.operations import Batch, Encode, Stream, StreamCutEverywhere, Waiting
from bpe_conformance.packs import cases
from bpe_conformance.packs.cases import Draft, Draw
from bpe_conformance.packs.reach import Reach
from bpe_conformance.reference import Tokenizer, textbook

SPECIAL = ("<e>", "<e><e>", "<|e", "e|>", *(f"<|x{number:02}|>" for number in range(50)))
TEXT = "the cat's hat, they'll we've banana bananas abab abc 123 1234 éé 日本語の 日本 🦊🦊 the then there\n\n  " * 3


@pytest.fixture(scope="module")
def reach() -> Reach:
    trained = Tokenizer.train(TEXT, 256 + len(SPECIAL) + 110, SPECIAL, pattern="gpt2")
    return Reach(Model(trained.vocab, tuple(trained.merges), SPECIAL, "gpt2", "toy"))


def by_kind(drafts: Iterable[Draft]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for draft in drafts:
        found.setdefault(draft.kind, []).append(draft.operation)
    return found


def test_drawing_reaches_every_value_and_loses_none() -> None:
    draw = Draw("1")
    assert {draw.between(2, 5) for _ in range(200)} == {2, 3, 4, 5}
    assert {draw.pick("abc") for _ in range(200)} == {*"abc"}
    for size in range(8):
        mixed = [draw.shuffled(range(size)) for _ in range(60)]
        assert all(sorted(one) == [*range(size)] for one in mixed)
        assert size < 2 or {one[0] for one in mixed} == {one[-1] for one in mixed} == {*range(size)}
        groups = [*cases.grouped(range(size), 3)]
        assert [item for group in groups for item in group] == [*range(size)]
        assert all(len(group) == 3 for group in groups[:-1])
    assert {draw.pieces(("x", "[ab]"), 1) for _ in range(300)} > {"x", "a", "b", "ab", "aab"}
    assert all(draw.pieces(("x",), count) == "x" * count for count in range(4))


def test_the_contractions_of_texts_are_those_that_the_pattern_of_gpt2_splits_off() -> None:
    ends = ("".join(letters) for length in (1, 2) for letters in product(ascii_lowercase, repeat=length))
    assert {f"'{end}" for end in ends if textbook.split(f"x'{end}") == ["x", f"'{end}"]} == {*cases.CONTRACTIONS}


def test_the_text_that_some_tokenizers_change_has_each_kind_of_invisible_character() -> None:
    kinds = {unicodedata.category(text) for text in cases.RAW_TEXT if len(text) == 1 and not text.isprintable()}
    assert kinds == {"Cc", "Cf", "Co", "Zl", "Zs"}
    assert {unicodedata.category(text) for text in cases.RAW_TEXT if len(text) == 1} > kinds | {"Mn"}  # U+FE0F


def test_marks_follow_letters_that_they_can_and_cannot_be_composed_with() -> None:
    composed = [unicodedata.normalize("NFC", text) != text for text in cases.MARKED if len(text) > 1]
    assert {*composed} == {False, True}


def test_the_words_that_were_counted_are_in_the_cases(reach: Reach, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "CANDIDATES", 150)
    drafts, found = cases.words(reach, Draw("0"))
    made = by_kind(drafts)
    assert {*found} == {kind for name, (kind, _) in cases.WRONG.items() if name != "whole-ignored"}
    assert sum(count > cases.ALONE for count in found.values()) > 1
    for kind, count in found.items():
        texts = [operation.text for operation in made.get(kind, ())]
        words = {word for text in texts for word in reach.pre_tokens(text)} - {"\n"}
        assert len(words) >= count, kind
        alone = [text for text in texts if len(reach.pre_tokens(text)) == 1]
        assert len(alone) == min(count, cases.ALONE), kind


def test_candidates_are_words_of_real_text_and_tokens_in_a_row_down_to_a_single_character(
    reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cases, "CANDIDATES", 150)
    words = {word for word, _ in cases._candidates(reach, Draw("0"))}
    assert len(words & {f" {word}" for word in cases.all_real_text().split()}) > 20
    assert {len(word.encode("utf-8")) for word in words if len(word) == 1} >= {2, 3, 4}
    assert all(1 < len(word.encode("utf-8")) <= 40 for word in words)


def test_words_whose_tokens_only_change_places_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the pair of two equal letters alone, an encoder that merges the last pair gives the same tokens."""
    monkeypatch.setattr(cases, "CANDIDATES", 150)
    vocab = {byte: bytes([byte]) for byte in range(256)} | {256: b"aa"}
    _, found = cases.words(Reach(Model(vocab, ((b"a", b"a"),), (), "gpt2", "toy")), Draw("0"))
    assert found["rightmost-of-equals"]


def test_every_id_is_decoded_among_others_and_what_is_not_utf8_in_both_ways(
    reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    vocab = reach.model.vocab
    monkeypatch.setattr(cases, "IDS", 60)
    broken = {index for index, token in vocab.items() if not isinstance(write_token(token), str)}
    decoded, streamed = (by_kind(make(reach, Draw("0"))) for make in (cases.decoding, cases.detokenizing))
    for made, whole, part in ((decoded, "decode-all", "decode-broken"), (streamed, "detok-all", "detok-broken")):
        assert Counter(index for operation in made[whole] for index in operation.ids) == Counter([*vocab])
        assert {index for operation in made[part] if len(operation.ids) > 1 for index in operation.ids} == broken
    assert len([one for one in decoded["decode-broken"] if len(one.ids) == 1]) == min(len(broken), cases.BROKEN_ALONE)
    ended = {index for one in streamed["detok-end"] for index in one.ids}
    assert len(ended) == min(cases.BROKEN_ALONE, sum(map(textbook.unfinished, vocab.values())))
    assert all(textbook.unfinished(vocab[index]) for index in ended)
    completed = [(one.ids, b"".join(vocab[index] for index in one.ids)) for one in streamed["detok-rest"]]
    assert {ids[0] for ids, _ in completed} <= ended
    assert all(ids[0] == ids[-1] and textbook.unfinished(data) for ids, data in completed)
    assert all(data[: -len(vocab[ids[0]])].decode("utf-8", "ignore")[-1:] for ids, data in completed)
    longest = sorted((len(token) for token in vocab.values() if textbook.unfinished(token)), reverse=True)[:3]
    assert [len(vocab[one.ids[0]]) for one in streamed["detok-held"]] == longest
    assert all(one == Waiting(one.ids[:1] * 2, "held") for one in streamed["detok-held"])
    assert all(one.rule == "early" and len(one.ids) > 1_200 for one in streamed["detok-lazy"])
    assert [operation.ids for operation in decoded["decode-empty"]] == [()]


def test_texts_that_decoders_change_are_spelled_by_the_ids(reach: Reach) -> None:
    for make, kind in ((cases.decoding, "decode-text"), (cases.detokenizing, "detok-text")):
        texts = [reach.oracle.decode(operation.ids) for operation in by_kind(make(reach, Draw("0")))[kind]]
        assert texts == [text for _, text in cases.TIDIED]
    parts = [reach.oracle.decode(one.ids) for one in by_kind(cases.decoding(reach, Draw("0")))["decode-parts"]]
    assert parts[::2] == ["é", "€", "日", "🦊", "👍🏽"]
    assert all(whole in cut and "\ufffd" in cut for whole, cut in zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize(
    ("pattern", "clause"),
    [
        ("gpt2", "SPLIT-UNICODE-1"),
        ("qwen2", "SPLIT-UNICODE-1"),
        (r"\S+|\s+", "BYTES-ATOM-1"),
        ("none", "BYTES-ATOM-1"),
        ("a pipeline", "BYTES-ATOM-1"),
    ],
)
def test_only_a_split_at_classes_of_characters_is_tested_by_them_in_many_scripts(pattern: str, clause: str) -> None:
    model = replace(read_model({}), **({"pipeline": Pipeline()} if pattern == "a pipeline" else {"pattern": pattern}))
    drafts = cases.scripts(Reach(model), Draw("0"))
    assert {draft.clause for draft in islice(drafts, 3)} == {clause}


def test_the_text_beside_a_special_token_with_flags_has_the_rule_of_its_flags() -> None:
    added = (AddedToken("<a>"), AddedToken("<l>", lstrip=True), AddedToken("<r>", rstrip=True))
    added += (AddedToken("<w>", single_word=True, rstrip=True),)
    texts = tuple(token.content for token in added)
    table = read_model({"extra": [[256 + at, text] for at, text in enumerate(texts)]})
    model = replace(table, special_tokens=texts, pipeline=Pipeline(added_tokens=added, steps=(ByteLevel(),)))
    kinds = ("special-edge", "special-beside")
    drafts = [draft for draft in cases.special(Reach(model), Draw("0")) if draft.kind in kinds]
    rules = {(draft.title[1:4], draft.clause) for draft in drafts}
    assert rules == {
        ("<a>", "SPECIAL-SEGMENT-1"),
        ("<l>", "PIPELINE-STRIP-1"),
        ("<r>", "PIPELINE-STRIP-1"),
        ("<w>", "PIPELINE-WORD-1"),
    }


def test_every_special_token_is_encoded_and_decoded_and_some_are_tried_in_every_way(reach: Reach) -> None:
    made = by_kind(cases.special(reach, Draw("0")))
    for joined in (made["special-all"][::2], made["special-all"][1::2]):
        assert sorted(found(reach, joined)) == sorted(SPECIAL)
    some = [*SPECIAL[:10], *SPECIAL[-2:]]
    assert [operation.text for operation in made["special-alone"]] == some
    assert [operation.text for operation in made["special-tripled"]] == [token * 3 for token in some]
    for token in some:
        assert sum(token in operation.text for operation in made["special-edge"]) >= 12
        assert any(f"{token}{after}" in one.text for one in made["special-beside"] for after in cases.BESIDE)
        assert {token[:-1], token[1:], token[::-1]} <= {operation.text for operation in made["special-parts"]}
        assert token.upper() == token or token.upper() in {operation.text for operation in made["special-alike"]}
    pairs = {operation.text for operation in made["special-two"]}
    assert {
        "<e><e><e>",
        "<e> <e><e>",
        "<|ee|>",
        "e|><|e",
        "<|e e|>",
        "<|e|>",
    } <= pairs  # one contains or overlaps the other
    foreign = {operation.text[1:-2] for operation in made["special-foreign"]}
    assert foreign == {text for text in cases.FOREIGN if not any(token in text for token in SPECIAL)}
    for make, kind, around in (
        (cases.decoding, "decode-special", b" %b%b \xc3%b"),  # once beside half a character
        (cases.detokenizing, "detok-special", b"\xc3%b\xc3"),
    ):
        operations = by_kind(make(reach, Draw("0")))[kind]
        spelled = [b"".join(reach.model.vocab[index] for index in operation.ids) for operation in operations]
        assert spelled == [around.replace(b"%b", token.encode()) for token in SPECIAL]


def found(reach: Reach, operations: Sequence[Encode]) -> list[str]:
    return [part for operation in operations for part, special in reach.segments(operation.text) if special]


def test_streams_are_cut_in_every_way_and_batches_have_every_size(reach: Reach) -> None:
    hard = ["it's", "12345", " \n a", "x" * 30]
    streams = [draft.operation for draft in cases.streams(reach, Draw("0"), hard)]
    everywhere = [one.text for one in streams if isinstance(one, StreamCutEverywhere)]
    assert len(everywhere) == len({*everywhere}) > 20
    assert all(any(token in text for text in everywhere) for token in SPECIAL[:8])
    assert not any("x" * 30 in text for text in everywhere)  # the oracle would take long
    chunked = [one.chunks for one in streams if isinstance(one, Stream)]
    assert all(any(token in "".join(chunks) for token in SPECIAL) for chunks in chunked)
    assert {max(map(len, chunks)) == 1 for chunks in chunked} == {True, False}
    assert all(len(chunks) == 10 for chunks in chunked if max(map(len, chunks)) > 1)
    batches = [draft.operation for draft in cases.batches(reach, Draw("0"))]
    assert all(isinstance(one, Batch) and one.batch.count("") >= 2 for one in batches)
    assert [len(one.batch) for one in batches] == [4 * number + 4 for number in range(6)]
    assert all(max(Counter(one.batch).values()) > 1 for one in batches)
    without = Reach(Model(reach.model.vocab, reach.model.merges, (), "gpt2", "toy"))
    assert [*cases.streams(without, Draw("0"), [])]


def test_offsets_are_asked_where_the_tokens_spell_the_text(reach: Reach) -> None:
    asked = [draft.operation.text for draft in cases.offsets(reach, Draw("0"), ["it's", "é1", "x" * 30])]
    assert {"it's", "é1"} <= {*asked}
    assert all(any(token in text for text in asked) for token in SPECIAL[:8])
    assert {reach.oracle.decode(reach.ids(text)) for text in asked} == {*asked}


def test_two_tokens_overlap_in_every_way() -> None:
    names = ["".join(letters) for size in range(2, 6) for letters in product("ab", repeat=size)]
    for first, second in product(names, names):
        lengths = range(max(len(first), len(second)) + 1, len(first) + len(second))
        texts = [first + second[len(first) + len(second) - length :] for length in lengths]
        shared = [text for text in texts if text.endswith(second)]
        assert sorted(cases._overlaps(first, second)) == sorted([*shared, first + second[1:], first[:-1] + second])


def test_long_pre_tokens_have_their_lengths() -> None:
    lengths = [len(draft.operation.text.encode()) for draft in cases.long(Draw("0"))]
    assert {*lengths} >= {*cases.LONG}
    assert all(any(size - 3 <= length <= size for size in cases.LONG) for length in lengths)
    assert Counter(map(round_up, lengths)) == dict.fromkeys(cases.LONG, 8)


def round_up(length: int) -> int:
    return min(size for size in cases.LONG if length <= size)


def test_texts_have_every_overlap_of_added_tokens(reach: Reach) -> None:
    pipeline = Pipeline(added_tokens=(AddedToken("aabaa"),), steps=(ByteLevel(),))
    texts = "\n".join(
        text for _, text in cases._texts(Reach(replace(reach.model, pipeline=pipeline)), Draw("0"), ["a"])
    )
    assert [text for text in ("aabaaabaa", "aabaabaa") if text not in texts] == []


def test_texts_have_every_literal_of_a_pattern(reach: Reach) -> None:
    model = replace(reach.model, pattern=r"'zq|qu(?:ux)?|[\p{L}]+|wy|\s|.")
    texts = "\n".join(text for _, text in islice(cases._texts(Reach(model), Draw("0"), ["a"]), 800))
    assert [part for part in ("'zq", "qu", "ux", "wy") if part not in texts] == []
