"""`Tokenizer.to_tiktoken` and `Tokenizer.to_huggingface` give equal ids on real text, or an error that says why not."""

from __future__ import annotations

import inspect
import random
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from bpe_conformance.fixtures import END_OF_TEXT, PATTERNS, Model, gpt2, gpt2_model
from bpe_conformance.reference import Tokenizer, conventional
from bpe_conformance.reference.formats import engines
from bpe_conformance.spec import FOLDER

pytestmark = pytest.mark.release

BYTES = {byte: bytes([byte]) for byte in range(256)}
SPECIAL = [END_OF_TEXT, "<|a b|>", "日本", "{1}"]
NUMBERS = "It rose 12.5% to $1,234,567.89 on 2024-03-15, i.e. 6.022e23 or 1E-05; O'Reilly’S 3.14159.\n" * 3


@pytest.fixture(scope="module")
def real() -> str:
    """Return prose in thirty scripts, code, numbers, and special tokens between them."""
    prose = [file.read_bytes().decode("utf-8") for file in sorted((FOLDER / "texts").glob("*.txt"))]
    code = [inspect.getsource(module) for module in (textwrap, inspect, random)]
    return "".join(f"{text}{SPECIAL[place % 4]}" for place, text in enumerate([*prose, *code, NUMBERS]))


def refused(action: Callable[[], object]) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        action()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def assert_same(ours: Tokenizer, text: str) -> None:
    ids = ours.encode(text)
    encoding = ours.to_tiktoken("mine")
    assert encoding.name == "mine"
    assert encoding.encode(text, allowed_special="all") == ids
    assert encoding.decode(ids) == text
    theirs = ours.to_huggingface()
    assert theirs.encode(text).ids == ids
    assert theirs.decode(ids, skip_special_tokens=False) == text


@pytest.mark.parametrize("name", [*PATTERNS, r" ?\p{L}+| ?[^\s\p{L}]+|\s+"])
def test_live_tokenizers_give_equal_ids_on_real_text(name: str, real: str) -> None:
    pytest.importorskip("tiktoken")
    pytest.importorskip("tokenizers")
    if name == "none":
        real = real[:1500]
    ours = Tokenizer.train(real[:30_000], 700, SPECIAL, pattern=name)
    assert_same(ours, real[:60_000])


def test_live_tokenizers_give_equal_ids_with_gpt2(real: str) -> None:
    pytest.importorskip("tiktoken")
    pytest.importorskip("tokenizers")
    assert_same(Tokenizer(*gpt2(), SPECIAL), real)


def test_live_tokenizers_give_equal_ids_under_conventions(real: str) -> None:
    pytest.importorskip("tiktoken")
    pytest.importorskip("tokenizers")
    for layout in ("specials-bytes-merges", "bytes-merges-specials"):
        kind = conventional(tie_break="smaller-ids", byte_order="gpt2", id_layout=layout)
        assert_same(kind.train(real[:9000], 500, SPECIAL), real[:30_000])


def test_live_tokenizer_encodes_equally_or_table_is_rejected() -> None:
    pytest.importorskip("tiktoken")
    pytest.importorskip("tokenizers")
    draw, built = random.Random(3), {"to_tiktoken": 0, "to_huggingface": 0}
    for _ in range(300):
        tokens, merges = [b"a", b"b", b" "], []
        for _ in range(draw.randrange(1, 9)):
            pair = draw.choice(tokens), draw.choice(tokens)
            if pair[0] + pair[1] not in tokens:
                tokens.append(pair[0] + pair[1])
                merges.append(pair)
        if draw.random() < 0.3:
            draw.shuffle(merges)
        special = draw.sample(["a<", "<a>", "<a>b", "><", " <", "ab"], draw.randrange(4))
        entries = list(dict.fromkeys([*BYTES.values(), *tokens, *(text.encode() for text in special)]))
        ids = draw.sample(range(9999), len(entries)) if draw.random() < 0.3 else range(len(entries))
        vocab = dict(zip(ids, entries, strict=True))
        ours = Tokenizer(vocab, merges, special, pattern=draw.choice(["gpt2", "none", "triads"]))
        texts = ["".join(draw.choice("aabb <>") for _ in range(draw.randrange(14))) for _ in range(12)]
        for name in built:
            try:
                theirs: Any = getattr(ours, name)()
            except ValueError:
                continue
            built[name] += 1
            for text in texts:
                ids = theirs.encode(text, allowed_special="all") if name == "to_tiktoken" else theirs.encode(text).ids
                assert ids == ours.encode(text), (name, merges, special, text)
    assert 60 < built["to_tiktoken"] < 200 < built["to_huggingface"]


@pytest.mark.parametrize(
    ("tokenizer", "what"),
    [
        (Tokenizer({**BYTES, 256: b"a"}, []), "two ids have the bytes b'a'"),
        (Tokenizer({**BYTES, 256: b"zz"}, []), "the merges do not follow from the ids"),
        (Tokenizer({**BYTES, 256: b"zzz"}, []), "the merges do not follow from the ids"),
        (Tokenizer({**BYTES, 256: b"bc", 257: b"ab"}, [(b"a", b"b"), (b"b", b"c")]), "the merges do not follow"),
        (Tokenizer(BYTES, [], ["a"]), "a byte is missing or is a special token"),
        (Tokenizer(BYTES, [], ["<e>", "<e>x"]), "'<e>x' starts with '<e>'; tiktoken can match either"),
        (Tokenizer({**BYTES, 2**32 - 1: b"zz"}, [(b"z", b"z")]), f"the id {2**32 - 1} of b'zz' does not fit"),
        (Tokenizer({**BYTES, -1: b"zz"}, [(b"z", b"z")]), "the id -1 of b'zz' does not fit"),
        (Tokenizer(BYTES, [], pattern=r"\p{L}+|\s"), r"tiktoken splits differently by the pattern '\\p{L}+|\\s'"),
        (Tokenizer(BYTES, [], pattern=r"x*|."), "matches empty text"),
        (Tokenizer(BYTES, [], pattern=r"(?V1)[a--b]|[\s\S]"), "tiktoken rejects the pattern"),
    ],
)
def test_to_tiktoken_rejects_models_that_encode_differently(tokenizer: Tokenizer, what: str) -> None:
    pytest.importorskip("tiktoken")
    assert what in refused(tokenizer.to_tiktoken)


@pytest.mark.parametrize(
    ("tokenizer", "what"),
    [
        (Tokenizer({**BYTES, 256: b"a"}, []), "the ids 97 and 256 have the same bytes, b'a'"),
        (Tokenizer(BYTES, [], [" "]), "' ' is also an ordinary token"),
        (Tokenizer(BYTES, [], ["café"]), "'caf\\xe9' spells other bytes; tokenizers would decode it as b'caf\\xe9'"),
        (Tokenizer({**BYTES, 2**32: b"zz"}, [(b"z", b"z")]), f"the id {2**32} of b'zz' does not fit"),
        (Tokenizer(BYTES, [], pattern=r"\w+|\W"), r"tokenizers splits differently by the pattern '\\w+|\\W'"),
        (Tokenizer(BYTES, [], pattern=r"\d{1,3}+|\D"), "is not possessive in tokenizers"),
        (Tokenizer(BYTES, [], pattern=r"x*|."), "matches empty text"),
        (Tokenizer(BYTES, [], pattern=r"(?V1)[a--b]|[\s\S]"), "tokenizers rejects the pattern"),
    ],
)
def test_to_huggingface_rejects_models_that_encode_differently(tokenizer: Tokenizer, what: str) -> None:
    pytest.importorskip("tokenizers")
    assert what in refused(tokenizer.to_huggingface)


@pytest.mark.parametrize("package", ["tiktoken", "tokenizers"])
def test_a_model_without_its_special_tokens_or_bytes_is_refused(package: str) -> None:
    pytest.importorskip(package)

    def build(model: Model) -> object:
        return engines.to_tiktoken(model, "x") if package == "tiktoken" else engines.to_huggingface(model)

    assert "'<e>' is not in the vocabulary" in refused(lambda: build(Model(BYTES, (), ("<e>",))))
    assert "byte" in refused(lambda: build(Model({index: BYTES[index] for index in range(1, 256)}, ())))


@pytest.mark.parametrize(("name", "package"), [("to_tiktoken", "tiktoken"), ("to_huggingface", "tokenizers")])
def test_missing_package_error_says_what_to_install(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"^{package} is not installed: pip install '{package}>=[\d.]+'$"):
        getattr(Tokenizer(BYTES, []), name)()


def test_to_tiktoken_sets_properties_of_gpt2() -> None:
    pytest.importorskip("tiktoken")
    encoding = Tokenizer.from_model(gpt2_model()).to_tiktoken()
    assert encoding.name == "bpe-conformance"
    assert encoding.n_vocab == 50257
    assert encoding.eot_token == 50256
