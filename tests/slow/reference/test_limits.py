"""Time and memory grow as expected at small sizes; `benchmarks/limits.py` and `pattern_growth.py` use large ones."""

from __future__ import annotations

import importlib.util
import random
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bpe_conformance.fixtures import PATTERNS, gpt2_model
from bpe_conformance.reference import Tokenizer, chunks, dispatch, file_encoding, textbook
from bpe_conformance.reference.bulk import encoding, learning, pieces
from bpe_conformance.reference.fences import FENCED_PATTERNS
from bpe_conformance.reference.merging import merge_by_rank
from bpe_conformance.reference.patterns import pre_tokenize, resolve
from bpe_conformance.reference.special_tokens import SpecialTokens
from bpe_conformance.reference.trainer import learn_plainly

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from shapes import SHAPES, text_of

pytestmark = pytest.mark.release

CHINESE = "天地玄黄，宇宙洪荒。日月盈昃，辰宿列張。"
ENGLISH = "It was the best of times, it was the worst of times. "


@pytest.fixture(scope="module")
def gpt2() -> Tokenizer:
    return Tokenizer.from_model(gpt2_model())


def growth(run: Callable[[int], object], small: int, large: int) -> float:
    """Return the processor time of `large` divided by that of `small`, each the best of three."""

    def seconds(size: int) -> float:
        start = time.process_time()
        run(size)
        return time.process_time() - start

    return min(seconds(large) for _ in range(3)) / min(seconds(small) for _ in range(3))


def tokens(many: int) -> list[str]:
    return [f"<|special_{number}|>" for number in range(many)]


def test_thousands_of_special_tokens_agree_with_the_textbook() -> None:
    special = [*tokens(1000), "<|special_1", "<|special_12", "|><|", "<|spec"]
    parts = [*special[::100], *special[-4:], "<|special_7777|>", "<|speci", "|>", "low lower", " low"]
    draw = random.Random(0)
    texts = ["".join(draw.choices(parts, k=12)) for _ in range(20)]
    wanted = textbook.Tokenizer.train(texts[0], 256 + len(special) + 10, special)
    trained = Tokenizer.train(texts[0], 256 + len(special) + 10, special)
    assert trained.merges == wanted.merges
    for text in texts:
        assert trained.encode(text) == wanted.encode(text)
        assert list(trained.encode_iterable(text)) == wanted.encode(text)


@pytest.mark.skipif(not importlib.util.find_spec("tiktoken"), reason="tiktoken is not installed")
def test_thousands_of_special_tokens_are_exported_to_tiktoken() -> None:
    low = Tokenizer.train("low", 258)
    made = {many: Tokenizer(low.vocab, low.merges, tokens(many)) for many in (500, 8000)}
    assert growth(lambda many: made[many].to_tiktoken(), 500, 8000) < 64
    text = "low<|special_77|>low<|special_9999|>"
    assert made[8000].to_tiktoken().encode(text, allowed_special="all") == made[8000].encode(text)


def test_a_vocabulary_beyond_what_the_text_gives_is_learned_over_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(dispatch.ARRAYS_FROM, "learn", 0)
    taken = []

    def learn(*arguments: object, **options: object) -> list[tuple[bytes, bytes]]:
        taken.append(arguments)
        return plain(*arguments, **options)  # type: ignore[arg-type]

    plain = learning.learn
    monkeypatch.setattr(learning, "learn", learn)
    trained = Tokenizer.train(ENGLISH, 10**12)
    assert taken
    assert trained.merges == textbook.Tokenizer.train(ENGLISH, 10**3, []).merges


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["English", "Chinese"])
def test_a_file_of_one_line_is_encoded_in_flat_memory(
    text: str, gpt2: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_encoding, "CHUNK_SIZE", 1 << 15)
    monkeypatch.setattr(pieces, "BLOCK", 1 << 13)
    monkeypatch.setitem(dispatch.ARRAYS_FROM, "encode", 1 << 12)

    def peak(size: int) -> int:
        source = tmp_path / "text"
        source.write_text(text * (size // len(text.encode())), encoding="utf-8")
        tracemalloc.start()
        gpt2.encode_file(source, tmp_path / "ids")
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(1 << 16)
    assert peak(1 << 20) < 2 * peak(1 << 17)


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["English", "Chinese"])
def test_a_stream_is_encoded_in_flat_memory(text: str, gpt2: Tokenizer) -> None:
    def peak(many: int) -> int:
        def stream() -> Iterator[str]:
            for _ in range(many):
                yield text * 20

        tracemalloc.start()
        given = sum(1 for _ in gpt2.encode_iterable(stream()))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert given == len(gpt2.encode(text * 20 * many))
        return found

    peak(2)
    assert peak(400) < 2 * peak(20)


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["English", "Chinese"])
def test_a_corpus_of_one_line_is_counted_in_chunks(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_SIZE", 1000)
    cut = list(chunks.Cuts.of(2, [], resolve("gpt2")).of_text(text * 500))
    assert max(map(len, cut)) < 1000 + len(text)
    assert "".join(cut) == text * 500


LONG = {"the same byte": "a" * 32_000, "random letters": "".join(random.Random(0).choices("etaoinshrdlu", k=32_000))}


@pytest.mark.parametrize("shape", LONG)
@pytest.mark.parametrize("way", ["plain", "arrays", "training", "training over arrays"])
def test_time_of_a_long_pre_token_is_proportional(way: str, shape: str, gpt2: Tokenizer) -> None:
    ranks = encoding.BulkRanks(gpt2._text_encoder.encoder.ranks, gpt2._text_encoder.encoder.byte_ids)

    def run(size: int) -> None:
        word = LONG[shape][:size].encode()
        if way == "plain":
            gpt2._text_encoder.encoder.merge(word)
        elif way == "arrays":
            ranks.merge([word])
        else:
            learn = learn_plainly if way == "training" else learning.learn
            learn({word: 1}, 8)

    assert growth(run, 2_000, 32_000) < 64


@pytest.mark.parametrize("shape", LONG)
def test_memory_of_a_long_pre_token_is_bounded(shape: str, gpt2: Tokenizer) -> None:
    word = [gpt2._text_encoder.encoder.byte_ids[byte] for byte in LONG[shape].encode()]
    tracemalloc.start()
    merge_by_rank(word, gpt2._text_encoder.encoder.ranks)
    assert tracemalloc.get_traced_memory()[1] < 100 * len(word)
    tracemalloc.stop()


WAYS = [(name, "plain") for name in PATTERNS] + [(name, "arrays") for name in sorted(FENCED_PATTERNS)]


@pytest.mark.parametrize(("name", "way"), WAYS)
def test_time_of_a_split_is_proportional_to_hostile_text(name: str, way: str) -> None:
    compiled, special = resolve(name), SpecialTokens()

    def steep(shape: str) -> bool:
        def run(size: int) -> object:
            text = text_of(shape, size)
            return list(pre_tokenize(text, compiled)) if way == "plain" else pieces.count([text], special, compiled)

        return growth(run, 500, 8_000) > 64

    # Measure steep growth a second time: the machine may be busy.
    assert [shape for shape in SHAPES if steep(shape) and steep(shape)] == []
