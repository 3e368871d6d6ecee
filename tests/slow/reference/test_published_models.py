"""The reference gives the ids of the original for published models, through every method that encodes.

The models are fetched (see `tests/helpers/published_models.py`); a test is skipped, with the reason, where that fails.
`BPE_TEXTS` is the number of random texts for each model; from 10,000 on, all models, all entries of the vocabulary and
all real texts are tested, not a sample. The characters of random texts are those of Unicode 3.2 and some of 4 to 9:
about newer ones, the versions of Unicode in `tokenizers` disagree.
"""

from __future__ import annotations

import os
import random
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bpe_conformance import fixtures
from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.packs.files import Overrides, read_model_files
from bpe_conformance.reference import Tokenizer
from bpe_conformance.reference.formats.tiktoken import read_ranks
from tests.helpers.published_models import MODELS, CannotFetchError, fetched

pytestmark = pytest.mark.release

tokenizers = pytest.importorskip("tokenizers")
Encode = Callable[[Sequence[str]], list[list[int]]]
TEXTS = int(os.environ.get("BPE_TEXTS", "400"))
ONE_OF = 1 if TEXTS >= 10_000 else 19
"""Of entries of the vocabulary and of real texts, one in so many is tested."""
LIKE_ANOTHER = {"gpt35turbo", "gptoss", "tekken_240911"}  # the sample has a model with the same settings
REAL = sorted((Path(__file__).parents[3] / "fixtures" / "texts").glob("*.txt"))[::ONE_OF]
ASSIGNED = [
    char
    for char in map(chr, range(0x30000))
    if unicodedata.ucd_3_2_0.category(char) not in ("Cn", "Cs", "Co") and char != "\u0295"  # Ll until Unicode 16
]
MARKS = [char for char in ASSIGNED if unicodedata.category(char)[0] == "M"]
CHANGING = [char for char in ASSIGNED if unicodedata.normalize("NFKC", char) != char]
DIGITS = [char for char in ASSIGNED if unicodedata.category(char)[0] == "N"]
SPACES = [char for char in ASSIGNED if char.isspace()]
CONTROLS = [chr(code) for code in (*range(32), *range(127, 160), 0xAD, 0x200B, 0xFEFF, 0xFFFD)]
KINDS: list[Sequence[str]] = [
    *["abcdeinorst", "ABCDEINORST", "0123456789", "-.,;:!?'\"()[]{}<>/\\|@#$%^&*_+=~`", " ", " \n\t\r"],
    *[
        "áéíñöüßçÅﬁ",
        "абвгдежзиклм",
        "αβγδεζηθ",
        "的一是不了人我在有他",
        "、。，！？「」",
        "あいうえおかがアイウエオカガー",
    ],
    *["가각간힣각", "अआकखगघ\u093e\u093f\u094d\u0902", "กขคง\u0e31\u0e34\u0e48", "ابتثج\u064b\u064e"],
    *["אבגד\u05b0\u05b1", "🦊🤣👍🏽\u200d\ufe0f", ("'s", "'S", "'ll", "n't", "'RE", "\u2019s", "'\u017f")],
    *[("\r\n", "\n\n", "    ", "\t\t", " \n "), ASSIGNED, MARKS, CHANGING, DIGITS, SPACES, CONTROLS],
]


class Model:
    """A published model: the reference, the original, and random texts for it."""

    def __init__(self, name: str) -> None:
        file = fetched(name)
        self.name, self.model = name, read_model_files([str(file)], Overrides()).model
        self.ours, self.theirs = Tokenizer.from_model(self.model), original(file, self.model)
        self.entries = [token.decode() for token in self.model.vocab.values() if is_utf8(token)]
        self.special = list(self.model.special_tokens or ())

    def text(self, draw: random.Random) -> str:
        parts = []
        for _ in range(draw.randrange(1, 9)):
            kind = draw.randrange(len(KINDS) + 6)
            if kind < len(KINDS):
                parts += draw.choices(KINDS[kind], k=draw.randrange(1, 6))
            else:
                parts.append(draw.choice(self.entries if kind < len(KINDS) + 4 else [*self.special, " "]))
        return "".join(parts)

    def texts(self, count: int) -> list[str]:
        draw = random.Random(f"{self.name} {count}")
        return [self.text(draw) for _ in range(count)]


TEKKEN = "mistral_common.tokens.tokenizers.tekken"
NO_TEKKEN = "mistral-common, which gives the ids of Tekken, is not installed: pip install mistral-common==1.13.1"


def is_utf8(token: bytes) -> bool:
    return "\ufffd" not in token.decode("utf-8", "replace")


def original(file: Path, model: fixtures.Model) -> Encode:
    """Return what encodes by the file: `tokenizers`, `mistral-common`, or tiktoken after the normal form of Qwen."""
    if file.name == "tokenizer.json":
        theirs = tokenizers.Tokenizer.from_file(str(file))
        return lambda texts: [found.ids for found in theirs.encode_batch(list(texts), add_special_tokens=False)]
    if file.suffix == ".json":
        package = pytest.importorskip(TEKKEN, reason=NO_TEKKEN)
        tekkenizer = package.Tekkenizer.from_file(str(file))
        return lambda texts: [tekkenizer.encode(text, bos=False, eos=False) for text in texts]
    tiktoken = pytest.importorskip("tiktoken")
    ranks = read_ranks(file)
    special = {text: model.ids[text.encode()] for text in model.special_tokens or ()}
    encoding = tiktoken.Encoding("qwen", pat_str=PATTERNS["qwen2"], mergeable_ranks=ranks, special_tokens=special)
    return lambda texts: [encoding.encode(unicodedata.normalize("NFC", text), allowed_special="all") for text in texts]


@lru_cache(maxsize=1)
def model_of(name: str) -> Model:
    if name.startswith("tekken"):
        pytest.importorskip(TEKKEN, reason=NO_TEKKEN)
    try:
        return Model(name)
    except CannotFetchError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module", params=[name for name in MODELS if ONE_OF == 1 or name not in LIKE_ANOTHER])
def model(request: pytest.FixtureRequest) -> Model:
    return model_of(request.param)


def check(model: Model, texts: Sequence[str], ours: Sequence[Sequence[int]]) -> None:
    for text, expected, ids in zip(texts, model.theirs(texts), ours, strict=True):
        assert list(ids) == expected, text


def test_random_texts(model: Model) -> None:
    texts = model.texts(TEXTS)
    expected = model.theirs(texts)
    for text, ids in zip(texts, expected, strict=True):
        assert model.ours.encode(text) == ids, text
    draw = random.Random(0)
    for text, ids in zip(texts, expected, strict=True):
        cuts = sorted(draw.randrange(len(text) + 1) for _ in range(3))
        chunks = [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]
        assert list(model.ours.encode_iterable(chunks)) == ids, chunks
    for start in range(0, TEXTS, 500):
        assert model.ours.encode_batch(texts[start : start + 500]) == expected[start : start + 500]


def test_each_entry_of_the_vocabulary(model: Model) -> None:
    entries = model.entries[::ONE_OF]
    check(model, entries, [model.ours.encode(text) for text in entries])


def test_long_and_real_texts_through_every_method(model: Model, tmp_path: Path) -> None:
    random_texts = model.texts(TEXTS // 4)
    texts = ["".join(random_texts[start : start + 400]) for start in range(0, len(random_texts), 400)]
    texts += [file.read_bytes().decode() for file in REAL]
    expected = model.theirs(texts)
    assert model.ours.encode_batch(texts) == expected
    for number, (text, ids) in enumerate(zip(texts, expected, strict=True)):
        assert model.ours.encode_to_numpy(text).tolist() == ids
        chunks = [text[start : start + 999] for start in range(0, len(text), 999)]
        assert list(model.ours.encode_iterable(chunks)) == ids
        source, target = tmp_path / f"{number}.txt", tmp_path / "ids"
        source.write_bytes(text.encode())
        model.ours.encode_file(source, target, bits=32)
        assert np.fromfile(target, "<u4").tolist() == ids
    sources = sorted(tmp_path.glob("*.txt"), key=lambda file: int(file.stem))
    model.ours.encode_files(sources, tmp_path / "arrays", bits=32)
    for source, ids in zip(sources, expected, strict=True):
        assert np.load(tmp_path / "arrays" / f"{source.name}.npy").tolist() == ids
