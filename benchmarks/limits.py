"""Measures time and peak memory at growing sizes, each in a separate process.

`python benchmarks/limits.py [NAME ...]`, all without a name; `--steps 1` takes the smallest sizes only. Texts are
made from a seed. It prints a table. Time is that of the processor.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, product
from pathlib import Path
from typing import NamedTuple

from table import MEBIBYTE, MEGABYTE, markdown, number, provenance
from timing import measure

from bpe_conformance.fixtures import Merge, gpt2_model
from bpe_conformance.reference import Tokenizer
from bpe_conformance.reference.counting import count_pre_tokens
from bpe_conformance.reference.formats import huggingface, tiktoken

LETTERS = "etaoinshrdlucmfwypvbgkjqxz"
IDEOGRAPHS = "".join(map(chr, range(0x5000, 0x5800)))

_held: list[tempfile.TemporaryDirectory[str]] = []

Run = Callable[[], str]
"""The timed function, which returns its result in a few words."""


class Limit(NamedTuple):
    """A limit to measure.

    Attributes:
        what: a description.
        unit: the unit of the sizes.
        sizes: the sizes at which it is measured.
        prepare: prepares a size and returns the timed function.
    """

    what: str
    unit: str
    sizes: Sequence[int]
    prepare: Callable[[int], Run]


def words(seed: int, letters: str = LETTERS) -> Iterator[str]:
    """Yield words without end, some of them again and again and some of them once.

    >>> [len(word) for word in islice(words(0), 3)]
    [9, 8, 7]
    """
    draw = random.Random(seed)
    known = ["".join(draw.choices(letters, k=draw.randrange(1, 13))) for _ in range(20_000)]
    while True:
        common = [known[int(len(known) * draw.random() ** 4)] for _ in range(500)]
        yield from common
        yield "".join(draw.choices(letters, k=draw.randrange(1, 13)))


def prose(megabytes: int) -> Iterator[str]:
    """Yield text of about so many megabytes in chunks, in sentences and lines."""
    source = words(0)
    given = 0
    while given < megabytes * MEGABYTE:
        chunk = ".\n".join(" ".join(islice(source, 12)) for _ in range(900)) + ".\n"
        given += len(chunk)
        yield chunk


def one_line(megabytes: int) -> Iterator[str]:
    """Yield `prose` without line ends."""
    return (chunk.replace("\n", " ") for chunk in prose(megabytes))


def without_spaces(megabytes: int) -> Iterator[str]:
    """Yield sentences in ideographs, without spaces and line ends."""
    source = words(0, IDEOGRAPHS)
    given = 0
    while given < megabytes * MEGABYTE:
        chunk = "".join(f"{''.join(islice(source, 5))}，{''.join(islice(source, 5))}。" for _ in range(900))
        given += 3 * len(chunk)
        yield chunk


def random_letters(size: int) -> str:
    """Return that many random letters."""
    return "".join(random.Random(0).choices(LETTERS, k=size))


def distinct(many: int) -> Iterator[str]:
    """Yield text whose words all differ, in chunks.

    >>> next(distinct(3))
    ' etaaaaaaa etbaaaaaa etcaaaaaa'
    """
    letters = "abcdefghijklmnop"
    for start in range(0, many, 100_000):
        numbers = range(start, min(many, start + 100_000))
        yield "".join(" et" + "".join(letters[one >> shift & 15] for shift in range(0, 28, 4)) for one in numbers)


def special_tokens(many: int) -> list[str]:
    """Return special tokens with a common prefix."""
    return [f"<|special_{one}|>" for one in range(many)]


def near_misses(megabytes: int) -> str:
    """Return text that is full of beginnings of special tokens, and of some."""
    draw, parts, size = random.Random(0), [], 0
    while size < megabytes * MEGABYTE:
        parts.append(f"<|special_{draw.randrange(2000)}{draw.choice(['', '|', '|>', 'x'])} ")
        size += len(parts[-1])
    return "".join(parts)


def table_of(vocab_size: int) -> tuple[dict[int, bytes], list[Merge]]:
    """Return a table of so many tokens, a million at most, whose merges make pairs of bytes, and pairs of those.

    >>> [vocab[max(vocab)] for vocab, _ in map(table_of, (257, 256 + 26 * 40 + 1))]
    [b'Aa', b'AaAa']
    """
    firsts, seconds = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz!#$%&*+,-./:;?"
    pairs = [(bytes([first]), bytes([second])) for first, second in product(firsts, seconds)]
    joined = [first + second for first, second in pairs]
    merges = list(islice(chain(pairs, product(joined, joined)), vocab_size - 256))
    return dict(enumerate([*(bytes([byte]) for byte in range(256)), *map(b"".join, merges)])), merges


def _tokenizer(special: list[str]) -> Tokenizer:
    model = Tokenizer.train("".join(prose(1)), 1000).model
    return Tokenizer(model.vocab, model.merges, special)


def _trained_with_special_tokens(many: int) -> Run:
    text = near_misses(3)
    return lambda: f"{len(Tokenizer.train(text, 256 + many + 200, special_tokens(many)).vocab):,} tokens"


def _encoded_with_special_tokens(many: int) -> Run:
    text, tokenizer = near_misses(3), _tokenizer(special_tokens(many))
    return lambda: f"{len(tokenizer.encode(text)):,} ids"


def _streamed_with_special_tokens(many: int) -> Run:
    text, tokenizer = near_misses(3), _tokenizer(special_tokens(many))
    chunks = [text[start : start + 50] for start in range(0, len(text), 50)]
    return lambda: f"{sum(1 for _ in tokenizer.encode_iterable(chunks)):,} ids"


def _exported_with_special_tokens(many: int) -> Run:
    tokenizer = _tokenizer(special_tokens(many))
    text = near_misses(1)[:2000]

    def run() -> str:
        same = tokenizer.to_tiktoken().encode(text, allowed_special="all") == tokenizer.encode(text)
        same &= tokenizer.to_huggingface().encode(text).ids == tokenizer.encode(text)
        return "equal ids" if same else "other ids"

    return run


def _streamed(megabytes: int) -> Run:
    tokenizer = Tokenizer.from_model(gpt2_model())
    return lambda: f"{sum(1 for _ in tokenizer.encode_iterable(prose(megabytes))):,} ids"


def _encoded_file(chunks: Callable[[int], Iterator[str]]) -> Callable[[int], Run]:
    def prepare(megabytes: int) -> Run:
        tokenizer, text = Tokenizer.from_model(gpt2_model()), _written(chunks(megabytes))
        return lambda: f"{tokenizer.encode_file(text, text.with_suffix('.ids')):,} ids"

    return prepare


def _trained_on_file(chunks: Callable[[int], Iterator[str]], merges: int) -> Callable[[int], Run]:
    def prepare(size: int) -> Run:
        text = _written(chunks(size))
        return lambda: f"{len(Tokenizer.train(text, 256 + merges).merges):,} merges"

    return prepare


def _counted(many: int) -> Run:
    text = _written(distinct(many))
    return lambda: f"{len(count_pre_tokens(text)):,} counted"


def _folder() -> Path:
    """Return a directory that is removed when the process ends."""
    _held.append(tempfile.TemporaryDirectory())
    return Path(_held[-1].name)


def _written(chunks: Iterator[str]) -> Path:
    folder = _folder()
    with (folder / "text").open("w", encoding="utf-8", newline="") as file:
        file.writelines(chunks)
    return folder / "text"


def _encoded_piece(text_of: Callable[[int], str]) -> Callable[[int], Run]:
    def prepare(size: int) -> Run:
        tokenizer, text = Tokenizer.from_model(gpt2_model()), text_of(size)
        return lambda: f"{len(tokenizer.encode(text)):,} ids"

    return prepare


def _streamed_piece(text_of: Callable[[int], str]) -> Callable[[int], Run]:
    def prepare(size: int) -> Run:
        tokenizer, text = Tokenizer.from_model(gpt2_model()), text_of(size)
        chunks = [text[start : start + 1000] for start in range(0, size, 1000)]
        return lambda: f"{sum(1 for _ in tokenizer.encode_iterable(chunks)):,} ids"

    return prepare


def _trained_on_piece(text_of: Callable[[int], str]) -> Callable[[int], Run]:
    def prepare(size: int) -> Run:
        text = text_of(size)
        return lambda: f"{len(Tokenizer.train(text, 256 + 1000).merges):,} merges"

    return prepare


def _built(vocab_size: int) -> Run:
    vocab, merges = table_of(vocab_size)
    return lambda: f"{len(Tokenizer(vocab, merges).vocab):,} tokens"


def _with_table(use: Callable[[Tokenizer], str]) -> Callable[[int], Run]:
    def prepare(vocab_size: int) -> Run:
        tokenizer = Tokenizer(*table_of(vocab_size))
        return lambda: use(tokenizer)

    return prepare


def _encode_and_decode(tokenizer: Tokenizer) -> str:
    tokens = [token.decode() for token in tokenizer.vocab.values() if len(token) > 1]
    text = " ".join(random.Random(0).choices(tokens, k=2_000_000))
    ids = tokenizer.encode(text)
    return f"{len(ids):,} ids, {'the same text' if tokenizer.decode(ids) == text else 'another text'}"


def _save_and_load(tokenizer: Tokenizer) -> str:
    folder = _folder()
    tokenizer.save(folder)
    again = Tokenizer.from_files(folder / "vocab.json", folder / "merges.txt")
    return "equal tables" if again.model == tokenizer.model else "other tables"


def _tokenizer_json(tokenizer: Tokenizer) -> str:
    path = _folder() / "tokenizer.json"
    huggingface.write(path, tokenizer.model)
    return "equal tables" if huggingface.read(path) == tokenizer.model else "other tables"


def _rank_file(tokenizer: Tokenizer) -> str:
    path = _folder() / "ranks.tiktoken"
    tiktoken.write(path, tokenizer.model)
    return "equal tables" if tiktoken.read(path) == tokenizer.model else "other tables"


def _trained_to(vocab_size: int) -> Run:
    text = _written(distinct(vocab_size))
    return lambda: f"{len(Tokenizer.train(text, vocab_size).vocab):,} tokens"


MANY = (1_000, 10_000, 100_000)
MEGABYTES = (10, 100, 1000)
PIECES = (100_000, 1_000_000, 10_000_000)
VOCABULARIES = (10_000, 100_000, 1_000_000)

LIMITS: dict[str, Limit] = {
    "special-training": Limit(
        "3 MB of prefixes of special tokens, training", "tokens", MANY, _trained_with_special_tokens
    ),
    "special-encoding": Limit("… encoding", "tokens", MANY, _encoded_with_special_tokens),
    "special-stream": Limit("… in chunks of 50 characters", "tokens", MANY, _streamed_with_special_tokens),
    "special-export": Limit("… for tiktoken and tokenizers", "tokens", MANY, _exported_with_special_tokens),
    "stream": Limit("`encode_iterable`", "MB", MEGABYTES, _streamed),
    "file": Limit("`encode_file`, one process", "MB", MEGABYTES, _encoded_file(prose)),
    "piece-same": Limit("one pre-token of a…a, `encode`", "bytes", PIECES, _encoded_piece(lambda size: "a" * size)),
    "piece-training-same": Limit("… training on it", "bytes", PIECES, _trained_on_piece(lambda size: "a" * size)),
    "piece-random": Limit("one pre-token of random letters, `encode`", "bytes", PIECES, _encoded_piece(random_letters)),
    "piece-stream": Limit("… as a stream", "bytes", PIECES, _streamed_piece(random_letters)),
    "piece-training-random": Limit("… training on it", "bytes", PIECES, _trained_on_piece(random_letters)),
    "vocabulary-build": Limit("building a tokenizer from a table", "tokens", VOCABULARIES, _built),
    "vocabulary-encode": Limit("… encoding, decoding 10 MB", "tokens", VOCABULARIES, _with_table(_encode_and_decode)),
    "vocabulary-save": Limit("… saved, read as GPT-2's files", "tokens", VOCABULARIES, _with_table(_save_and_load)),
    "vocabulary-json": Limit("… as `tokenizer.json`", "tokens", VOCABULARIES, _with_table(_tokenizer_json)),
    "vocabulary-ranks": Limit("… as tiktoken's rank file", "tokens", VOCABULARIES, _with_table(_rank_file)),
    "vocabulary-training": Limit("… training it on distinct words", "tokens", VOCABULARIES, _trained_to),
    "line-training": Limit("one line, training to 5,000 merges", "MB", (10, 100), _trained_on_file(one_line, 5000)),
    "line-file": Limit("… `encode_file`", "MB", (10, 100), _encoded_file(one_line)),
    "ideographs-training": Limit("ideographs, training", "MB", (10, 100), _trained_on_file(without_spaces, 5000)),
    "ideographs-file": Limit("… `encode_file`", "MB", (10, 100), _encoded_file(without_spaces)),
    "distinct-counting": Limit("distinct pre-tokens, counting", "pre-tokens", PIECES, _counted),
    "distinct-training": Limit("… training to 1,000 merges", "pre-tokens", PIECES, _trained_on_file(distinct, 1000)),
}


def report(names: Sequence[str], steps: int | None) -> tuple[str, bool]:
    """Return the table, and whether something failed.

    Args:
        names: the limits.
        steps: how many sizes of each, the smallest first; None is all.
    """
    rows, failed = [], False
    for name in names:
        what, unit, sizes, _ = LIMITS[name]
        for size in sizes[:steps]:
            measured = measure("limit", [name, size])
            failed |= bool(measured.failure)
            said = measured.failure or measured.reported["said"]
            numbers = [number(measured.seconds), number(measured.peak / MEBIBYTE)]
            rows.append([f"`{name}`", what, f"{size:,} {unit}", *numbers, said])
            print(" ", *rows[-1], file=sys.stderr, flush=True)
    return markdown(["limit", "what", "size", "seconds", "peak, MiB", "result"], rows), failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit status is 1 if something failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(LIMITS))
    parser.add_argument("--steps", type=int, metavar="N", help="only N sizes of each, the smallest first")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in LIMITS]:
        parser.error(f"there is no limit {unknown[0]!a}; give one of {', '.join(LIMITS)}")
    said, failed = report(options.names or [*LIMITS], options.steps)
    print(f"{said}\n\n{provenance(['regex', 'numpy', 'tiktoken', 'tokenizers'])}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
