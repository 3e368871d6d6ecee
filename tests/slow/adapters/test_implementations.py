"""Checks the facts of docs/implementations.md again; each function is one mark on the page."""

from __future__ import annotations

import importlib.metadata
import io
import random
import re
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bpe_conformance.fixtures import PATTERNS, spell
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.reference import textbook
from bpe_conformance.spec_tools.conventions import find, probe
from bpe_conformance.spec_tools.witnesses import load_witnesses

PAGE = (Path(__file__).parents[3] / "docs" / "implementations.md").read_text("utf-8")
VERSIONS = dict(re.findall(r"^\| ([\w-]+) \| ([\d.]+) \|$", PAGE, re.MULTILINE))
BYTES = {bytes([byte]): byte for byte in range(256)}
GPT2 = PATTERNS["gpt2"]
SPECIAL = "<|e|>"
FACTS: dict[str, tuple[Callable[[], None], tuple[str, ...]]] = {}


def fact(*packages: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register a function under its name, with the packages that it uses."""

    def enter(function: Callable[[], None]) -> Callable[[], None]:
        FACTS[function.__name__.replace("_", "-")] = (function, packages)
        return function

    return enter


def test_every_mark_has_a_check_and_every_check_a_mark():
    assert set(re.findall(r"✓([a-z0-9-]+)", PAGE)) == {*FACTS}


def test_versions_are_those_of_the_witnesses():
    assert {(w.package, w.version) for w in load_witnesses()} <= set(VERSIONS.items())


@pytest.mark.parametrize("name", [*dict.fromkeys(re.findall(r"✓([a-z0-9-]+)", PAGE))])
def test_fact_of_the_page_holds(name):
    function, packages = FACTS[name]
    for package in packages:
        try:
            installed = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{package} is not installed")
        if installed != VERSIONS[package]:
            pytest.skip(f"the page speaks of {package} {VERSIONS[package]}; {installed} is installed")
    function()


def engine(ranks: dict[bytes, int] | None = None, special: dict[str, int] | None = None, pattern: str = GPT2) -> Any:
    """Return tiktoken's engine over the bytes and `ranks`."""
    import tiktoken

    table = {**BYTES, **(ranks or {})}
    return tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=table, special_tokens=special or {})


def hugging(merges=(), extra=(), special=(), ignore_merges=False, gap=0) -> Any:
    """Return Hugging Face's engine over the bytes and `merges`."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    vocab = {spell(token): index for token, index in BYTES.items()}
    for token in [*(left + right for left, right in merges), *extra]:
        vocab[spell(token)] = len(vocab) + gap
    pairs = [(spell(left), spell(right)) for left, right in merges]
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=pairs, ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    return tokenizer


def hugging_split(pattern: str, text: str) -> list[str]:
    from tokenizers import Regex, pre_tokenizers

    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    return [piece for piece, _ in split.pre_tokenize_str(text)]


def hugging_train(texts: list[str], **options: Any) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=300, show_progress=False, **options))
    return tokenizer


def rust_train(text: str, size: int, pattern: str | None = GPT2) -> Any:
    import rustbpe

    tokenizer = rustbpe.Tokenizer()
    tokenizer.train_from_iterator(iter([text]), size, pattern=pattern)
    return tokenizer


def byte_learned(tokens: Any) -> list[bytes]:
    return [token for token in map(bytes, tokens) if len(token) > 1]


class Giga:
    """gigatoken's trainer with the methods of the adapter protocol."""

    mode = ""

    def __init__(self, vocab: dict[int, bytes], merges: list[tuple[bytes, bytes]]) -> None:
        self.vocab, self.merges = vocab, merges

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str]) -> Giga:
        import gigatoken

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "corpus.txt")
            file.write_bytes(text.encode("utf-8"))
            source = gigatoken.TextFileSource([str(file)])
            return cls(*gigatoken.train_bpe(source, vocab_size, special_tokens, tie_breaking=cls.mode))


# Trainers


@fact("tokenizers")
def hf_ties():
    assert find("huggingface").found == {
        "tie_break": "smaller-ids",
        "byte_order": "gpt2",
        "id_layout": "specials-bytes-merges",
        "lookup": "pair",
        "train_special": "text",
    }


@fact("tokenizers")
def hf_min_frequency():
    from tokenizers import ByteLevelBPETokenizer, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    assert "cd" in hugging_train(["abcd"], initial_alphabet=alphabet).get_vocab()
    easy = ByteLevelBPETokenizer()
    easy.train_from_iterator(["ab cd ab"], vocab_size=300, show_progress=False)
    assert [token for token, index in easy.get_vocab().items() if index > 255] == ["ab"]


@fact("tokenizers")
def hf_special_text():
    from tokenizers import pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trained = hugging_train(["<|endoftext|>"] * 5, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"])
    assert {"endoftext", "<|", "|>"} <= set(trained.get_vocab())


@fact("tokenizers")
def hf_prefix_space():
    from tokenizers import pre_tokenizers

    assert [piece for piece, _ in pre_tokenizers.ByteLevel().pre_tokenize_str("a b")] == ["Ġa", "Ġb"]


@fact("tokenizers")
def hf_alphabet():
    trained = hugging_train(["hello world"])
    assert trained.decode(trained.encode("hello Zorld").ids) == "hello orld"


@fact("tiktoken")
def educational_ties():
    found = find("tiktoken-educational").found
    assert (found["tie_break"], found["byte_order"]) == ("first-seen", "raw")


@fact("tiktoken")
def educational_exhausted():
    from tiktoken._educational import bpe_train

    with pytest.raises(ValueError, match="max"):
        bpe_train("ab", 300, GPT2, visualise=None)


@fact("rustbpe")
def rustbpe_ties():
    assert find("rustbpe").found == {"tie_break": "smaller-ids", "byte_order": "raw"}


@fact("rustbpe")
def rustbpe_exhausted():
    assert byte_learned(token for token, _ in rust_train("abc", 300).get_mergeable_ranks()) == [b"ab", b"abc"]


@fact("rustbpe")
def rustbpe_split():
    own = rust_train("ab", 257, None).get_pattern()
    assert own.startswith(r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}|")
    assert own.endswith(r"|\s*[\r\n]|\s+(?!\S)|\s+")


@fact("rustbpe")
def rustbpe_decode():
    tokenizer = rust_train("ab", 257)
    assert tokenizer.encode("ab") == [256]
    with pytest.raises((TypeError, UnicodeDecodeError)):  # 0.1.0 fails to make the second one
        tokenizer.decode([0xF0])
    with pytest.raises(ValueError, match="Unknown token id"):
        tokenizer.decode([999])


@fact("bpeasy")
def bpeasy_ties():
    assert find("bpeasy").found == {"tie_break": "smaller-ids", "byte_order": "raw"}


@fact("bpeasy")
def bpeasy_special():
    from bpeasy.tokenizer import BPEasyTokenizer

    tokenizer = BPEasyTokenizer.train(iter(["abc"]), vocab_size=258, special_tokens=[SPECIAL])
    assert tokenizer.encode(SPECIAL, allowed_special="all") == [258]


@fact("bpeasy")
def bpeasy_length():
    import bpeasy

    for limit in (3, 4, 5):
        learned = byte_learned(bpeasy.train_bpe(iter(["abcde"]), GPT2, limit, 300))
        assert max(map(len, learned)) == limit - 1


@fact("bpeasy")
def bpeasy_split():
    from bpeasy import tokenizer

    assert PATTERNS["cl100k-2023"] == "(?i:'s|'t|'re|'ve|'m|'ll|'d)|" + tokenizer._DEFAULT_REGEX_PATTERN


@fact("gigatoken")
def gigatoken_ties():
    expected = {
        "huggingface": ("smaller-ids", "gpt2"),
        "raw_token_ids": ("smaller-ids", "raw"),
        "assembled_bytes": ("lex-smaller", "raw"),
    }
    for mode, (tie_break, byte_order) in expected.items():
        report = probe(Implementation("gigatoken", type("Mode", (Giga,), {"mode": mode})))
        assert (report.found["tie_break"], report.found["byte_order"]) == (tie_break, byte_order)
        assert report.found["id_layout"] == "bytes-specials-merges"
        assert "ids are in raw order" in report.findings[1].why or byte_order == "raw"


@fact("gigatoken")
def gigatoken_special_text():
    kind = type("Mode", (Giga,), {"mode": "raw_token_ids"})
    assert b"<|" in kind.train(f"{SPECIAL}{SPECIAL}", 260, [SPECIAL]).vocab.values()


@fact("gigatoken")
def gigatoken_exhausted():
    kind = type("Mode", (Giga,), {"mode": "raw_token_ids"})
    assert kind.train("abc", 300, []).merges == [(b"a", b"b"), (b"ab", b"c"), (b"b", b"c")]


@fact("gigatoken")
def gigatoken_split():
    kind = type("Mode", (Giga,), {"mode": "raw_token_ids"})
    learned = {left + right for left, right in kind.train("it's 1234567 x\n\n  y", 300, []).merges}
    assert b" 1234567" in learned
    assert b"\n\n " in learned
    assert not {b"\n\n  ", b"  y"} & learned


def learn_bpe(text: str, **options: Any) -> list[str]:
    from subword_nmt.learn_bpe import learn_bpe as learn

    out = io.StringIO()
    learn(io.StringIO(text), out, 5, **options)
    return out.getvalue().split("\n")[1:-1]


@fact("subword-nmt")
def subword_nmt_ties():
    assert learn_bpe("ab ba", min_frequency=1) == ["b a</w>", "a b</w>"]


@fact("subword-nmt")
def subword_nmt_least():
    assert learn_bpe("ab cd cd") == ["c d</w>"]


@fact("subword-nmt")
def subword_nmt_empty():
    with pytest.raises(ValueError, match="max"):
        learn_bpe("")


@fact("tokenizers", "rustbpe")
def byte_orders():
    from bpe_conformance.adapters import resolve

    hf, rust = resolve("huggingface"), resolve("rustbpe")
    text = "! \n !" * 2
    assert isinstance(hf, type)
    firsts = [kind.train(text, 257, [], PATTERNS["none"]).merges[0] for kind in (hf, rust)]  # type: ignore[attr-defined]
    assert firsts[0] != firsts[1]


@fact()
def first_seen_order():
    assert textbook.learn("ab\nba", 257, tie_break="first-seen") != textbook.learn(
        "ba\nab", 257, tie_break="first-seen"
    )


@fact("tokenizers", "tiktoken", "rustbpe", "bpeasy")
def runs():
    from bpe_conformance.adapters import resolve

    for name in ("huggingface", "tiktoken-educational", "rustbpe", "bpeasy"):
        kind: Any = resolve(name)
        assert kind.train("ab\nccc", 258, []).merges == [(b"c", b"c"), (b"a", b"b")]
        assert kind.train("aaa", 258, []).merges == [(b"a", b"a"), (b"aa", b"a")]


@fact("tiktoken", "tokenizers", "rustbpe")
def unmatched_text():
    from tokenizers import Regex, pre_tokenizers

    assert engine(pattern="[a-z]").encode("a1b") == [97, 98]
    assert rust_train("a1b", 300, "[a-z]").encode("a1b") == [97, 98]
    isolated = pre_tokenizers.Split(Regex("[a-z]"), "isolated").pre_tokenize_str("a1b")
    assert [piece for piece, _ in isolated] == ["a", "1", "b"]


# Encoders

TWO_WAYS = [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")]


@fact("tiktoken", "tokenizers")
def lookup():
    ranks = {b"bc": 256, b"ab": 257, b"abc": 258}
    assert engine(ranks).encode("xabc") == [120, 258]
    assert hugging(TWO_WAYS).encode("xabc").ids == [120, 97, 256]


@fact("tiktoken", "tokenizers")
def whole_first():
    ranks = {b"abc": 256}
    assert [len(engine(ranks).encode(text)) for text in ("abc", "xabc")] == [1, 4]
    for ignore_merges, lengths in ((False, [3, 4]), (True, [1, 4])):
        tokenizer = hugging(extra=[b"abc"], ignore_merges=ignore_merges)
        assert [len(tokenizer.encode(text).ids) for text in ("abc", "xabc")] == lengths


@fact("tiktoken", "tokenizers")
def special_default():
    tiktoken = engine(special={SPECIAL: 300})
    with pytest.raises(ValueError, match="disallowed special token"):
        tiktoken.encode(SPECIAL)
    assert tiktoken.encode(SPECIAL, allowed_special="all") == [300]
    assert len(tiktoken.encode(SPECIAL, disallowed_special=())) == 5
    tokenizer = hugging(special=[SPECIAL])
    assert tokenizer.encode(SPECIAL).ids == [256]
    tokenizer.encode_special_tokens = True
    assert len(tokenizer.encode(SPECIAL).ids) == 5


@fact("tiktoken", "tokenizers")
def special_overlap():
    seen = set()
    for tokens in (["<|a", "<|a|>"], ["<|a|>", "<|a"], ["<a", "<a>"], ["<a>", "<a"]):
        ids = {token: 300 + place for place, token in enumerate(tokens)}
        text = max(tokens, key=len)
        taken = engine(special=ids).encode(text, allowed_special="all")[0]
        seen.add((taken == ids[text], taken == 300))
        tokenizer = hugging(special=tokens)
        assert tokenizer.encode(text).ids == [tokenizer.token_to_id(text)]
    assert {longest for longest, _ in seen} == {True, False}
    assert {first for _, first in seen} == {True, False}


@fact("tokenizers")
def special_new_id():
    tokenizer = hugging([(b"a", b"b"), (b"c", b"d")], special=[SPECIAL], gap=1)
    assert tokenizer.token_to_id("cd") == 258
    assert tokenizer.token_to_id(SPECIAL) == 258


BAD = [[0xF0, 0x9F, 97], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xF0, 0x80, 0x80], [0xC0, 0xAF]]


@fact("tiktoken", "tokenizers")
def bad_utf8():
    for ids, count in zip(BAD, (1, 3, 4, 3, 2), strict=True):
        expected = bytes(ids).decode("utf-8", errors="replace")
        assert expected.count("\ufffd") == count
        assert engine().decode(ids) == hugging().decode(ids) == expected


@fact("tiktoken", "tokenizers")
def unknown_id():
    with pytest.raises(KeyError):
        engine().decode([97, 999, 98])
    assert hugging().decode([97, 999, 98]) == "ab"


@fact("tiktoken", "tokenizers")
def surrogates():
    assert engine().encode("\ud800") == list("\ufffd".encode())
    assert engine().encode("\ud83e\udd8a") == list("🦊".encode())
    with pytest.raises(TypeError):
        hugging().encode("\ud800")


@fact("tiktoken", "tokenizers")
def trained_tables():
    source = random.Random(3)
    for _ in range(30):
        text = "".join(source.choice(["a", "b", "c", " ", "é", "\n"]) for _ in range(60))
        merges = textbook.learn(text, 280)
        ranks = {left + right: 256 + rank for rank, (left, right) in enumerate(merges)}
        other = "".join(source.choice(["a", "b", "c", " ", "é", "\n"]) for _ in range(200))
        assert engine(ranks).encode(other) == hugging(merges).encode(other).ids


def all_places(text: bytes, merges: list[tuple[bytes, bytes]]) -> list[bytes]:
    word: tuple[bytes, ...] = tuple(bytes([byte]) for byte in text)
    while True:
        known = [merges.index(pair) for pair in pairwise(word) if pair in merges]
        if not known:
            return list(word)
        word = textbook.replace(word, merges[min(known)])


def one_pass(text: bytes, merges: list[tuple[bytes, bytes]]) -> list[bytes]:
    word: tuple[bytes, ...] = tuple(bytes([byte]) for byte in text)
    for pair in merges:
        word = textbook.replace(word, pair)
    return list(word)


@fact("tokenizers")
def not_well_formed():
    rows = re.findall(r"^\| (\([^|]*\)) \| `(\w+)` \| `([^`]*)` \| `([^`]*)` \| `([^`]*)` \|$", PAGE, re.MULTILINE)
    assert len(rows) == 3
    for spelled, text, *expected in rows:
        merges = [(left.encode(), right.encode()) for left, right in re.findall(r"\((\w+),(\w+)\)", spelled)]
        kinds = [all_places(text.encode(), merges), one_pass(text.encode(), merges)]
        ours = textbook.merge_by_pair(textbook.atoms(text), {pair: rank for rank, pair in enumerate(merges)})
        shown = [b"|".join(word).decode().replace("|", "\\|") for word in (ours, *kinds)]
        assert shown == expected
        assert hugging_pairs(merges, text) == [token.decode() for token in ours]


def hugging_pairs(merges: list[tuple[bytes, bytes]], text: str) -> list[str]:
    """Return Hugging Face's tokens; two merges may have the same concatenation."""
    from tokenizers import Tokenizer, models

    vocab = {token.decode("latin-1"): index for token, index in BYTES.items()}
    for left, right in merges:
        vocab.setdefault((left + right).decode(), len(vocab))
    pairs = [(left.decode(), right.decode()) for left, right in merges]
    tokens: list[str] = Tokenizer(models.BPE(vocab=vocab, merges=pairs)).encode(text).tokens
    return tokens


# Regular expressions

EVERYTHING = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)


def found_by_all(pattern: str, text: str) -> list[int]:
    import regex

    tiktoken = engine(pattern=pattern)
    return [
        len(regex.findall(pattern, text)),
        len(tiktoken.decode(tiktoken.encode(text, disallowed_special=()))),
        len(hugging_split(pattern, text)),
    ]


@fact("regex", "tiktoken", "tokenizers")
def engines():
    rows = re.findall(r"^\| `(\\[^`]*)` \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 3
    for pattern, *counts in rows:
        assert found_by_all(pattern, EVERYTHING) == [int(count.replace(",", "")) for count in counts]


@fact()
def re_white_space():
    import regex

    difference = set(re.findall(r"\s", EVERYTHING)) - set(regex.findall(r"\s", EVERYTHING))
    assert difference == {"\x1c", "\x1d", "\x1e", "\x1f"}


@fact("tiktoken", "tokenizers")
def long_s():
    assert found_by_all("(?i:s)", "sS\u017f\u0455") == [3, 3, 3]


@fact("tokenizers")
def oniguruma_interval():
    assert hugging_split(r"\p{N}{1,3}+", "12345") == ["12345"]
    assert hugging_split(r"\p{N}{1,3}", "12345") == ["123", "45"]


# Errors that are often repeated


@fact()
def python_max():
    counts = {(b"a", b"b"): 2, (b"b", b"a"): 2}
    assert max(counts, key=counts.__getitem__) == (b"a", b"b")
    assert max(counts, key=lambda pair: (counts[pair], pair)) == (b"b", b"a")


@fact()
def low_lower_newer():
    text = "\n".join(["low"] * 5 + ["lower"] * 2 + ["newer"] * 6)
    counts = textbook.count_pairs(textbook.corpus(text, (), GPT2))
    assert counts[b"e", b"w"] == 6
    firsts = {
        rule: textbook.learn(text, 257, (), GPT2, tie_break=rule)
        for rule in ("lex-smaller", "lex-greater", "first-seen")
    }
    assert firsts == {"lex-smaller": [(b"e", b"r")], "lex-greater": [(b"w", b"e")], "first-seen": [(b"w", b"e")]}


@fact()
def five_sentences():
    sentences = ["I work", "I work", "I worked", "he works", "he worked"]
    whole = "<s>".join(sentences)
    counts = textbook.count_pairs(textbook.corpus(whole, ["<s>"], PATTERNS["none"]))
    assert counts[b" ", b"w"] == 5
    assert textbook.learn(whole, 258, ["<s>"], PATTERNS["none"], tie_break="lex-smaller") == [(b" ", b"w")]
    words = "\n".join(sentences).replace(" ", "\n")
    assert textbook.learn(words, 257, (), GPT2, tie_break="lex-smaller") == [(b"o", b"r")]
