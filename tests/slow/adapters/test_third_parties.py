"""The third-party adapters agree with the textbook under equal conventions."""

from __future__ import annotations

import random

import pytest

from bpe_conformance.adapters.minimal import Tokenizer as Minimal
from bpe_conformance.fixtures import PATTERNS, gpt2
from bpe_conformance.reference.textbook import Tokenizer, build_vocab, learn, with_conventions

ALPHABET = [
    "a",
    "b",
    "c",
    "ab",
    " ",
    "  ",
    "\n",
    "'s",
    "€",
    "🦊",
    "é",
    "\ufeff",
    "\x85",
    "12",
    "!",
    "\r\n",
    "\0",
]
SPECIAL = "<|e|>"
END = "<|endoftext|>"


def random_text(rng: random.Random, size: int = 60) -> str:
    return "".join(rng.choices(ALPHABET, weights=[rng.random() for _ in ALPHABET], k=size))


def tables(seed: int, count: int = 60):
    rng = random.Random(seed)
    for _ in range(count):
        tie_break = rng.choice(["lex-greater", "lex-smaller", "first-seen"])
        merges = learn(random_text(rng, 80), 256 + rng.randrange(40), tie_break=tie_break)
        rng.shuffle(special := rng.choice([[], [SPECIAL], [SPECIAL, "<|é x|>"]]))
        yield rng, merges, special


def agrees(there, here, rng) -> None:
    text = random_text(rng) + rng.choice([SPECIAL, "", "<|é x|>"]) + random_text(rng)
    ids = here.encode(text)
    assert there.encode(text) == ids
    assert there.decode(ids) == here.decode(ids) == text
    some = ids[::2]
    assert there.decode(some) == here.decode(some)
    if hasattr(there, "decode_bytes"):
        assert there.decode_bytes(some) == here.decode_bytes(some)
    if hasattr(there, "encode_batch"):
        assert there.encode_batch([text, ""]) == [ids, []]


def test_minimal_agrees_with_the_textbook():
    for rng, merges, special in tables(1):
        vocab = build_vocab(merges, special[:1])
        agrees(Minimal(vocab, merges, special), Tokenizer(vocab, merges, special), rng)
        vocab[999] = (text := random_text(rng)).encode()  # an entry that no merge builds
        assert Minimal(vocab, merges, special).encode(text) == Tokenizer(vocab, merges, special).encode(text)
    with pytest.raises(ValueError, match="has no"):
        Minimal({}, [])


def test_tiktoken_agrees_on_well_formed_tables():
    adapter = pytest.importorskip("bpe_conformance.adapters.packages.tiktoken").Tokenizer
    oracle = with_conventions(lookup="bytes")
    for rng, merges, special in tables(2):
        vocab = build_vocab(merges, special[:1], rng.choice(["raw", "gpt2"]))
        there = adapter(vocab, merges, special)
        here = oracle(vocab, merges, special)
        agrees(there, here, rng)
        assert there.vocab == here.vocab


def test_tiktoken_rejects_tables_that_ranks_cannot_represent():
    adapter = pytest.importorskip("bpe_conformance.adapters.packages.tiktoken").Tokenizer
    vocab = {**build_vocab([]), 256: b"bc", 257: b"ab"}
    with pytest.raises(ValueError, match="order of the merges"):
        adapter(vocab, [(b"a", b"b"), (b"b", b"c")])
    with pytest.raises(ValueError, match="same bytes"):
        adapter({**vocab, 258: b"ab"}, [])
    with pytest.raises(ValueError, match="empty"):
        adapter(vocab, [], [""])
    assert adapter({**vocab, 258: b"abc"}, []).encode("abc") == [258]


def test_tiktoken_trainer_breaks_ties_by_first_seen():
    adapter = pytest.importorskip("bpe_conformance.adapters.packages.tiktoken").EducationalTokenizer
    oracle = with_conventions(**adapter.conventions)
    rng = random.Random(3)
    for _ in range(40):
        text = random_text(rng, 200)
        size = 256 + min(15, len(learn(text, 271)))
        there, here = adapter.train(text, size, []), oracle.train(text, size, [])
        assert (there.merges, there.vocab) == (here.merges, here.vocab)
        agrees(there, here, rng)
    with pytest.raises(NotImplementedError):
        adapter.train("abab", 258, [SPECIAL])
    with pytest.raises(ValueError, match="empty"):
        adapter.train("ab", 300, [])


def test_huggingface_agrees_on_well_formed_tables():
    adapter = pytest.importorskip("bpe_conformance.adapters.packages.huggingface").Tokenizer
    for rng, merges, special in tables(4):
        vocab = build_vocab(merges, special, rng.choice(["raw", "gpt2"]))
        ids = list(vocab)
        rng.shuffle(ids)
        vocab = dict(zip(ids, vocab.values(), strict=True))
        there, here = adapter(vocab, merges, special), Tokenizer(vocab, merges, special)
        agrees(there, here, rng)
        assert there.vocab == here.vocab
    fresh = adapter(build_vocab([]), [], [SPECIAL])
    assert fresh.encode(SPECIAL) == [256]
    with pytest.raises(ValueError, match=r"vocab\.json"):
        adapter({**build_vocab([]), 256: "Ġ".encode()}, [], ["Ġ"])


def test_huggingface_trainer_breaks_ties_by_smaller_ids():
    adapter = pytest.importorskip("bpe_conformance.adapters.packages.huggingface").Tokenizer
    oracle = with_conventions(**adapter.conventions)
    rng = random.Random(5)
    for _ in range(60):
        text, size = random_text(rng, 150), 256 + rng.randrange(60)
        there, here = adapter.train(text, size, []), oracle.train(text, size, [])
        assert there.merges == here.merges
        assert there.vocab == here.vocab
        agrees(there, here, rng)
    there, here = (
        adapter.train("abab abc", 260, [SPECIAL, "<|é x|>"]),
        oracle.train("abab abc", 260, [SPECIAL, "<|é x|>"]),
    )
    assert (there.merges, there.vocab) == (here.merges, here.vocab)


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("module", ["tiktoken", "huggingface"])
def test_engines_agree_on_patterns(module, name):
    adapter = pytest.importorskip(f"bpe_conformance.adapters.packages.{module}").Tokenizer
    rng = random.Random(6)
    pattern = PATTERNS[name]
    for _ in range(20):
        corpus = random_text(rng, 100) + " 12345 I'LL we'Re\n\n  x\n"
        merges = learn(corpus, 330, pattern=pattern)
        vocab = build_vocab(merges)
        text = random_text(rng, 100) + rng.choice(["a\n ", " 12345 I'LL", "  \r\n", ""])
        here = Tokenizer(vocab, merges, pattern=pattern)
        assert adapter(vocab, merges, None, pattern=pattern).encode(text) == here.encode(text)


@pytest.mark.parametrize("module", ["tiktoken", "huggingface"])
def test_gpt2_tokenizers_agree(module):
    adapter = pytest.importorskip(f"bpe_conformance.adapters.packages.{module}").Tokenizer
    vocab, merges = gpt2()
    there = adapter(vocab, merges, [END])
    text = f"Let's tokenize  this,\n\nwon't we? 🦊 mañana{END} ok"
    assert there.encode(text) == Tokenizer(vocab, merges, [END]).encode(text)
    assert there.decode(there.encode(text)) == text
