"""The bulk paths agree with the plain paths on hostile text, with all sizes of blocks, caches and steps."""

from __future__ import annotations

import pickle
import random
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_conformance.fixtures import PATTERNS, gpt2_model
from bpe_conformance.reference import Tokenizer, counting, dispatch, superbpe
from bpe_conformance.reference.bulk import arrays, encoding, learning, pieces
from bpe_conformance.reference.bulk.arrays import FixedTable, HashTable
from bpe_conformance.reference.bulk.encoding import BulkEncoder
from bpe_conformance.reference.bulk.pieces import PieceTable, blocks
from bpe_conformance.reference.conventions import TOKEN_KEYS
from bpe_conformance.reference.fences import FENCED_PATTERNS
from bpe_conformance.reference.merging import MergeRanks, merge_by_scan
from bpe_conformance.reference.patterns import pre_tokenize, resolve
from bpe_conformance.reference.special_tokens import SpecialTokens
from bpe_conformance.reference.trainer import learn, learn_plainly

BARRIER = bytes([arrays.BARRIER])
WHITE = [" ", "  ", "\n", "\t", "\r\n", "\u00a0", "\u3000", "\u2028", "\u0085", "\x1c", "\u200b", "\u180e", "\ufeff"]
WORDS = ["a", "s", "ll", "'", "''", "'s", "'ll", "'ve", "'S", "x's", "don't", "ſ", "é", "日本", "e\u0301", "²", "12345"]
OTHERS = ["!", "...", "\x00", "\x7f", "\U0001f600", "\U0010ffff", "~", "_", "<|e|>", "<|e", "aa", "<a b>", " x", "b "]
SPECIAL_TOKENS = [[], ["<|e|>"], ["aa"], ["<|e|>", "<|e|><|e|>"], [" ", "é"], ["<a b>", "b "], [" x", "'"], ["12"]]
CHARACTERS = st.characters(exclude_categories=["Cs"])
TEXTS = st.lists(st.sampled_from(WHITE + WORDS + OTHERS) | CHARACTERS, max_size=40).map("".join)
FENCED = sorted(FENCED_PATTERNS)
ROUNDS = st.tuples(st.sampled_from([0, 2, 64]), st.sampled_from([0, 1, 8, 256]))
"""`FEW` and `ROUND`: with 0, all merges are made in rounds over arrays; with 256, the plain path makes those of a few
words."""
LONG = dispatch.PREPARED_FROM


def starts_of(texts: list[str], compiled: regex.Pattern[str]) -> list[int]:
    """Return the positions at which pre-tokens start in texts that barriers separate."""
    found, place = [], 0
    for number, text in enumerate(texts):
        if number:
            found.append(place)
            place += 1
        for pre_token in pre_tokenize(text, compiled):
            found.append(place)
            place += len(pre_token.encode())
    return found


@given(st.lists(TEXTS, min_size=1, max_size=4))
@settings(max_examples=32, deadline=None)
def test_gpt2_pre_tokens_start_where_the_pattern_says(texts: list[str]) -> None:
    data = BARRIER.join([text.encode() for text in texts])
    assert pieces.gpt2_starts(data + BARRIER * 3, len(data)).tolist() == starts_of(texts, resolve("gpt2"))


def test_class_of_agrees_with_the_pattern() -> None:
    codes = [code for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    for step in range(0, len(codes), 1 << 18):
        some = codes[step : step + (1 << 18) : 5 if step == 0 else 29]
        text = "".join([f"{chr(code)}a {chr(code)}1{chr(code)}{chr(code)}!" for code in some])
        data = text.encode()
        assert pieces.gpt2_starts(data + BARRIER * 3, len(data)).tolist() == starts_of([text], resolve("gpt2"))


@pytest.mark.parametrize("name", FENCED)
@given(texts=st.lists(TEXTS, min_size=1, max_size=3))
@settings(max_examples=24, deadline=None)
def test_text_between_fences_splits_as_in_the_whole(name: str, texts: list[str]) -> None:
    compiled = resolve(name)
    data = BARRIER.join([text.encode() for text in texts])
    starts, are_pre_tokens = pieces.starts_for(compiled)
    begin = starts(data + BARRIER * 3, len(data)).tolist()
    cut = [data[start:end] for start, end in pairwise([*begin, len(data)])]
    assert are_pre_tokens == (name == "gpt2")
    found: list[str] = []
    for piece in cut:
        found += ["barrier"] if piece == BARRIER else pre_tokenize(piece.decode(), compiled)
    wanted: list[str] = []
    for text in texts:
        wanted += [*pre_tokenize(text, compiled), "barrier"]
    assert [*found, "barrier"] == wanted


def test_pattern_without_fences_is_rejected() -> None:
    with pytest.raises(ValueError, match="has no known fences"):
        pieces.starts_for(resolve(r"\S+|\s+"))


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=60), st.integers(0, 3))
@settings(max_examples=28, deadline=None)
def test_hash_table_numbers_keys_like_a_dict(keys: list[tuple[int, int]], bits: int) -> None:
    table, known = HashTable(bits), dict[tuple[int, int], int]()
    for begin in range(0, len(keys), 20):
        some = keys[begin : begin + 20]
        head, tail = (np.array([key[side] for key in some], np.uint64) << np.uint64(60) for side in (0, 1))
        assert table.find(head, tail).tolist() == [known.get(key, -1) for key in some]
        fresh = [place for place, key in enumerate(some) if key not in known and key not in some[:place]]
        numbers, new = table.enter(head, tail, len(known))
        for key in some:
            known.setdefault(key, len(known))
        assert numbers.tolist() == [known[key] for key in some]
        assert new.tolist() == fresh


def test_keys_that_collide_in_one_hash_table_do_not_in_another() -> None:
    one, other = HashTable(), HashTable()
    of_head, of_tail, _ = map(int, one._factors)
    draw = random.Random(0)
    tails = [draw.getrandbits(64) for _ in range(1000)]
    heads = [-tail * of_tail * pow(of_head, -1, 1 << 64) % (1 << 64) for tail in tails]
    keys = np.array(heads, np.uint64), np.array(tails, np.uint64)
    assert len(np.unique(one._first_slots(*keys))) == 1
    assert len(np.unique(other._first_slots(*keys))) > 700


@given(st.dictionaries(st.integers(0, 2**64 - 2), st.integers(0, 2**31 - 2), max_size=40), st.data())
@settings(max_examples=40, deadline=None)
def test_fixed_table_finds_what_a_dict_finds(known: dict[int, int], data: st.DataObject) -> None:
    keys, values = np.array([*known], np.uint64), np.array([*known.values()], np.int64)
    table = FixedTable(keys, values, 2**31 - 1)
    asked = data.draw(st.lists(st.sampled_from([*known, 0]) | st.integers(0, 2**64 - 2)))
    assert table.find(np.array(asked, np.uint64)).tolist() == [known.get(key, 2**31 - 1) for key in asked]


def test_fixed_table_holds_many_similar_keys() -> None:
    for size in (1, 2, 3, 63, 64, 65, 50_000, 131_072):
        keys = np.arange(size, dtype=np.uint64) * np.uint64(1 << 12)
        table = FixedTable(keys, np.arange(size), size)
        assert (table.find(keys) == np.arange(size)).all()
        assert (table.find(keys + np.uint64(1)) == size).all()


@pytest.mark.parametrize("line", ["ひらがな。", "カタカナー！", "天地玄黄。"])
def test_a_text_without_spaces_is_cut_into_blocks(line: str) -> None:
    cut = blocks([line * 100], SpecialTokens(), 50)
    assert max(block.size for block in cut) < len((line * 12).encode())


@pytest.mark.parametrize("special", SPECIAL_TOKENS)
@given(documents=st.lists(TEXTS, max_size=4), size=st.integers(1, 30))
@settings(max_examples=20, deadline=None)
def test_blocks_change_no_pre_token(special: list[str], documents: list[str], size: int) -> None:
    cutter, compiled = SpecialTokens(special), resolve("gpt2")
    found: list[bytes | str | None] = []
    table = PieceTable(pieces.gpt2_starts)
    for block in blocks(documents, cutter, size):
        marks = iter(block.special)
        found += [table.pieces[number] if number else next(marks) for number in table.number(block).tolist()]
        assert next(marks, "none left") == "none left"
    wanted: list[bytes | str | None] = []
    for document in documents:
        for segment, is_special in cutter.cut(document):
            wanted += [segment] if is_special else [one.encode() for one in pre_tokenize(segment, compiled)]
        wanted.append(None)
    assert found == wanted
    assert len(set(table.pieces)) == len(table.pieces)


@pytest.mark.parametrize("name", FENCED)
@given(documents=st.lists(TEXTS, max_size=5), special=st.sampled_from(SPECIAL_TOKENS))
@settings(max_examples=20, deadline=None)
def test_bulk_counts_equal_plain_counts_in_order(name: str, documents: list[str], special: list[str]) -> None:
    plain = counting.count_job([*documents], special, name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(dispatch.ARRAYS_FROM, "count", 0)
        patch.setattr(pieces, "BLOCK", 7)
        assert list(counting.count_job([*documents], special, name).items()) == list(plain.items())


@pytest.fixture(params=[(1, 64), (2, 3), (1024, 1)])
def steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    frontier, most = request.param
    monkeypatch.setattr(learning, "FRONTIER", frontier)
    monkeypatch.setattr(learning, "MOST", most)


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("tie_break", sorted(TOKEN_KEYS))
@pytest.mark.parametrize("byte_order", ["raw", "gpt2"])
def test_bulk_merges_equal_plain_merges(tie_break: str, byte_order: str) -> None:
    draw = random.Random(f"{tie_break} {byte_order}")
    for _ in range(50):
        letters = draw.choice(["a", "ab", "abc", "abcdefgh", "é日a"])
        longest, largest = draw.choice([(3, 1), (8, 3), (30, 1000)])
        counts: Counter[bytes] = Counter()
        for _ in range(draw.randrange(30)):
            word = "".join(draw.choice(letters) for _ in range(draw.randint(1, longest)))
            counts[word.encode()] += draw.randint(1, largest)
        wanted = draw.choice([0, 1, 5, 300])
        reported: list[int] = []
        merges = learning.learn(counts, wanted, tie_break, byte_order, partial(record_progress, reported))
        assert merges == learn_plainly(counts, wanted, tie_break, byte_order)
        assert reported[-1:] == [len(merges)] * bool(merges)


@pytest.mark.parametrize(
    "before",
    [
        [(b"a", b"b"), (b"ab", b"c"), (b"b", b"c"), (b"a", b"bc"), (b"x", b"y"), (b"x", b"a")],
        [(b"a", b"b"), (b"a", b"b"), (b"x", b"y")],
    ],
)
def test_bulk_learner_continues_from_any_merges(before: list[tuple[bytes, bytes]]) -> None:
    """This includes merges that create a token twice, which training itself never does."""
    counts = {b"abcabcxyab": 3, b"bcaabcd": 5, b"xabcx": 2}
    assert learning.learn(counts, 20, merges=before) == learn_plainly(counts, 20, merges=before)


@pytest.mark.parametrize(
    "counts",
    [
        {b"a" * 1000: 1},
        {b"ab": 1 << 31, b"bc": (1 << 31) - 1, b"abc": 1},
        {b"ab": 1 << 40, b"abc": 1 << 50},
        {b"ab": 127, b"bc": 128, b"bca": 255},
    ],
    ids=["a long run", "32 bits", "64 bits", "8 bits"],
)
def test_bulk_learner_holds_large_counts_and_long_words(counts: dict[bytes, int]) -> None:
    assert learning.learn(counts, 20) == learn_plainly(counts, 20)


def record_progress(reported: list[int], phase: str, done: int, total: int) -> None:
    reported.append(done)


def test_learn_chooses_bulk_learner_by_input(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        return plain_learn(*arguments, **options)

    plain_learn = learning.learn
    monkeypatch.setattr(learning, "learn", counted)
    many = {b"%d" % number: 1 for number in range(dispatch.ARRAYS_FROM["learn"] // 4)}
    assert learn(many, 3) == learn_plainly(many, 3)
    assert len(calls) == 1
    assert dispatch.learns_over_arrays(many, 0, 1 << 60, "lex-greater")
    assert not dispatch.learns_over_arrays(many, 1 << 24, 10, "lex-greater")
    for counts, tie_break in ((many, "first-seen"), ({b"aa": 1}, "lex-greater")):
        learn(counts, 3, tie_break)
    assert len(calls) == 1


@pytest.fixture(scope="module")
def gpt2() -> Tokenizer:
    return Tokenizer.from_model(gpt2_model())


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for operation in dispatch.ARRAYS_FROM:
        monkeypatch.setitem(dispatch.ARRAYS_FROM, operation, 0)
    monkeypatch.setattr(dispatch, "PREPARED_FROM", 0)


def plain(one: Tokenizer, text: str) -> list[int]:
    found: list[int] = []
    encoder = one._text_encoder.encoder
    for segment, is_special in SpecialTokens(one.special_tokens).cut(text):
        if is_special:
            found.append(one._text_encoder.special_ids[segment])
        else:
            for pre_token in pre_tokenize(segment, one.compiled):
                found += merge_by_scan([encoder.byte_ids[byte] for byte in pre_token.encode()], encoder.ranks)
    return found


@pytest.mark.usefixtures("at_once")
@given(text=TEXTS, rounds=ROUNDS, cache=st.sampled_from([0, 3, 1000]), size=st.integers(1, 40))
@settings(max_examples=28, deadline=None)
def test_bulk_gpt2_ids_equal_plain_ids(
    gpt2: Tokenizer, text: str, rounds: tuple[int, int], cache: int, size: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "FEW", rounds[0])
        patch.setattr(encoding, "ROUND", rounds[1])
        patch.setattr(encoding, "CACHE_SIZE", cache)
        patch.setattr(pieces, "BLOCK", size)
        assert gpt2.encode(text + "<|endoftext|>" + text) == plain(gpt2, text + "<|endoftext|>" + text)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", FENCED)
def test_bulk_ids_of_trained_tables_equal_plain_ids(name: str) -> None:
    draw = random.Random(name)
    for special in SPECIAL_TOKENS:
        text = "".join(draw.choice(WHITE + WORDS + OTHERS) for _ in range(600))
        trained = Tokenizer.train(text, 300, special, pattern=name)
        for _ in range(8):
            text = "".join(draw.choice(WHITE + WORDS + OTHERS) for _ in range(60))
            ids = plain(trained, text)
            assert trained.encode(text) == ids
            assert trained.encode_to_numpy(text).tolist() == ids
            assert list(trained.encode_iterable([text[:9], text[9:]])) == ids


@pytest.mark.usefixtures("at_once")
@given(
    merges=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=9, unique=True),
    text=st.text("abc", max_size=20),
    swap=st.booleans(),
    rounds=ROUNDS,
)
@settings(max_examples=40, deadline=None)
def test_bulk_ids_of_random_tables_equal_plain_ids(
    merges: list[tuple[int, int]], text: str, swap: bool, rounds: tuple[int, int]
) -> None:
    tokens = [b"a", b"b", b"c"]
    pairs = []
    for left, right in merges:
        pairs.append((tokens[left % len(tokens)], tokens[right % len(tokens)]))
        tokens.append(b"".join(pairs[-1]))
    if swap:
        pairs.reverse()
    vocab = dict(enumerate(dict.fromkeys([*(bytes([byte]) for byte in range(256)), *tokens])))
    one = Tokenizer(vocab, pairs)
    ids = {token: index for index, token in vocab.items()}
    ranks = MergeRanks.of(pairs, ids)
    raw = list(text.encode())
    assert one.encode(text) == plain(one, text) == merge_by_scan(raw, ranks)
    bulk = encoding.BulkRanks(ranks, range(256))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "FEW", rounds[0])
        patch.setattr(encoding, "ROUND", rounds[1])
        words = [text.encode(), b"", b"ab", text[:1].encode(), text[::-1].encode()]
        merged, sizes = bulk.merge(words)
    wanted = [merge_by_scan(word, ranks) for word in words]
    assert sizes.tolist() == list(map(len, wanted))
    assert merged.tolist() == [index for ids in wanted for index in ids]


@pytest.mark.usefixtures("at_once")
@given(texts=st.lists(TEXTS, max_size=6), size=st.integers(1, 60))
@settings(max_examples=20, deadline=None)
def test_batch_encodes_each_text_alone(gpt2: Tokenizer, texts: list[str], size: int) -> None:
    texts.insert(len(texts) // 2, "<|endoftext|>")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "BLOCK", size)
        assert gpt2.encode_batch(iter(texts)) == [plain(gpt2, text) for text in texts]


def test_long_texts_are_encoded_over_arrays(gpt2: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "over the lazy dog <|endoftext|>" * (LONG // 30)
    wanted = plain(gpt2, text)
    calls: list[int] = []
    encode = BulkEncoder._blocks

    def counted(self: BulkEncoder, documents: list[str]) -> Iterator[tuple[Any, Any]]:
        calls.append(1)
        return encode(self, documents)

    monkeypatch.setattr(BulkEncoder, "_blocks", counted)
    ids = gpt2.encode(text)
    array = gpt2.encode_to_numpy(text)
    assert gpt2.encode_batch([text[:200], text[200:]]) == [plain(gpt2, text[:200]), plain(gpt2, text[200:])]
    assert len(calls) == 3
    assert ids == wanted == array.tolist()
    assert {type(index) for index in ids} == {int}
    assert array.dtype == np.uint32
    with pytest.raises(UnicodeEncodeError):
        gpt2.encode(text + "\ud800")
    assert gpt2.encode(text) == wanted


def test_repeated_parts_of_text_without_fences_are_merged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    merged: list[bytes] = []
    merge = encoding.BulkRanks.merge

    def reported(self: encoding.BulkRanks, pre_tokens: list[bytes]) -> tuple[Any, Any]:
        merged.extend(pre_tokens)
        return merge(self, pre_tokens)

    monkeypatch.setattr(encoding.BulkRanks, "merge", reported)
    one = Tokenizer.train("天地,玄黄", 262, pattern="cl100k")
    text = "天地,玄黄。" * (LONG // 4)
    assert one.encode(text) == plain(one, text)
    assert [pre_token.decode() for pre_token in merged] == ["天地", ",玄黄", "。天地", "。"]


def test_cache_is_bounded_by_number_of_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "CACHE_SIZE", 3000)
    one = Tokenizer(dict(enumerate(bytes([byte]) for byte in range(256))), [], pattern="cl100k")
    bulk = BulkEncoder(one._text_encoder.encoder.bulk_ranks, SpecialTokens(), {}, one.compiled)
    for number in range(8):
        text = f"{number}," * 1000
        assert [ids.tolist() for ids in bulk.encode([text])] == [list(text.encode())]
        assert bulk._used <= 3000 + 2000


UNITS_AND_OTHERS = [superbpe.UNITS, PATTERNS["none"], r"\w+|\s+", r"[^\n]+", r" ?\S+"]


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("pattern", UNITS_AND_OTHERS)
@pytest.mark.parametrize("train", [PATTERNS["gpt2"], None], ids=["two stages", "one pattern"])
def test_bulk_ids_without_fences_equal_plain_ids(pattern: str, train: str | None) -> None:
    draw = random.Random(pattern)
    for special in SPECIAL_TOKENS:
        text = "".join(draw.choice(WHITE + WORDS + OTHERS + [" a", " s", " ll"]) for _ in range(600))
        merges = Tokenizer.train(text, 290, special, pattern=train or pattern).merges
        merges += [pair for pair in Tokenizer.train(text, 320, special, pattern=pattern).merges if pair not in merges]
        every = dict.fromkeys([*(bytes([byte]) for byte in range(256)), *map(b"".join, merges)])
        known = set(every)
        merges = [pair for pair in merges if known.issuperset(pair)]
        one = Tokenizer(dict(enumerate(every)), merges, special, pattern=pattern)
        for size in (1, 20, encoding.BLOCK):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(encoding, "BLOCK", size)
                texts = ["".join(draw.choice(WHITE + WORDS + OTHERS) for _ in range(30)) for _ in range(4)]
                texts[1:1] = ["", *special]
                assert one.encode_batch(texts) == [plain(one, text) for text in texts]
                assert one.encode_to_numpy(texts[0]).tolist() == plain(one, texts[0])


def test_parts_of_long_units_are_merged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    merged: list[bytes] = []
    merge = encoding.BulkRanks.merge

    def reported(self: encoding.BulkRanks, pre_tokens: list[bytes]) -> tuple[Any, Any]:
        merged.extend(pre_tokens)
        return merge(self, pre_tokens)

    monkeypatch.setattr(encoding.BulkRanks, "merge", reported)
    one = superbpe.train("by the sea and by the lake", 272, 266)
    text = "by the sea by the lake\n" * (LONG // 20)
    assert one.encode(text) == plain(one, text)
    assert len(merged) == len(set(merged)) < 20


def test_pickle_does_not_grow_with_use() -> None:
    text = " ".join(map(str, range(LONG)))
    one = Tokenizer.from_model(gpt2_model())
    size = len(pickle.dumps(one))
    ids = one.encode(text), one.encode(text[:999]), one.encode(text, disallowed_special=()), one.encode_batch([text])
    assert list(one.encode_iterable([text])) == ids[0]
    assert len(pickle.dumps(one)) == size
    again = pickle.loads(pickle.dumps(one))
    assert ids == (
        *(again.encode(text), again.encode(text[:999]), again.encode(text, disallowed_special=())),
        again.encode_batch([text]),
    )
    assert (again.vocab, again.merges, again.special_tokens) == (one.vocab, one.merges, one.special_tokens)


def test_threads_share_a_tokenizer(gpt2: Tokenizer) -> None:
    texts = [f"the quick {number} brown fox " * (LONG // 20) for number in range(8)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(gpt2.encode, texts)) == [plain(gpt2, text) for text in texts]


@given(st.lists(st.integers(0, 2**32 - 1) | st.sampled_from([5, 5 << 16, 65541, 2**32 - 1])))
def test_stable_order_sorts_as_python_does(keys: list[int]) -> None:
    expected = sorted(range(len(keys)), key=keys.__getitem__)
    assert arrays.stable_order(np.array(keys, np.uint32)).tolist() == expected
