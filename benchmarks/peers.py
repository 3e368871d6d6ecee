"""The participants of the race: one small function for each trainer and each encoder.

Each does the untimed preparation, and returns the timed function and the one that makes its result comparable.
"""

from __future__ import annotations

import importlib
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from bpe_conformance.adapters.packages.ranks import RankTable, ranks_of
from bpe_conformance.adapters.packages.tokenizer_json import write_tokenizer_json
from bpe_conformance.fixtures import END_OF_TEXT, PATTERNS, Merge, gpt2_model, spell, unspell
from bpe_conformance.reference import Tokenizer
from bpe_conformance.reference.formats.tiktoken import merges_of_ranks

SPECIAL = END_OF_TEXT
GPT2 = PATTERNS["gpt2"]
BLOCK = 1 << 24


class Absent(Exception):
    """A participant is unavailable in this environment or version."""


class Prepared(NamedTuple):
    """A job that is ready to be timed.

    Attributes:
        run: the timed part.
        outcome: turns what `run` returned into merges (training) or ids (encoding).
    """

    run: Callable[[], Any]
    outcome: Callable[[Any], Any]


PrepareTraining = Callable[[Path, int, int], Prepared]
"""Takes the text, the vocabulary size and the number of workers."""
PrepareEncoding = Callable[[Path, int], Prepared]
"""Takes the text and the number of workers."""


def documents(file: Path) -> Iterator[str]:
    """Yield the parts of a text that lie between special tokens, reading a block of the file at a time."""
    rest = ""
    with file.open(encoding="utf-8", newline="") as text:
        while block := text.read(BLOCK):
            *whole, rest = (rest + block).split(SPECIAL)
            yield from whole
    yield rest


def package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Absent(f"{name} is not installed") from None


# Trainers: (text, vocabulary size, workers) -> merges


def ours(text: Path, vocab_size: int, workers: int, **ties: str) -> Prepared:
    """The reference, which cuts out special tokens itself; `ties` are the conventions of a rival, to compare merges."""
    return Prepared(
        lambda: Tokenizer.train(text, vocab_size, [SPECIAL], workers=workers, **ties),
        lambda tokenizer: tokenizer.merges,
    )


def huggingface(text: Path, vocab_size: int, workers: int) -> Prepared:
    """Hugging Face tokenizers, given the documents one by one."""
    module = package("tokenizers")
    tokenizer = module.Tokenizer(module.models.BPE())
    tokenizer.pre_tokenizer = module.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = module.trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[SPECIAL],
        initial_alphabet=sorted(module.pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )

    def merges(_: object) -> list[Merge]:
        return [(unspell(left), unspell(right)) for left, right in json.loads(tokenizer.to_str())["model"]["merges"]]

    return Prepared(lambda: tokenizer.train_from_iterator(documents(text), trainer), merges)


def rustbpe(text: Path, vocab_size: int, workers: int) -> Prepared:
    """rustbpe, given the documents one by one; it knows no special tokens."""
    trainer = package("rustbpe").Tokenizer()
    return Prepared(
        lambda: trainer.train_from_iterator(documents(text), vocab_size - 1, pattern=GPT2),
        lambda _: merges_of_ranks({bytes(token): rank for token, rank in trainer.get_mergeable_ranks()}),
    )


def gigabpe(text: Path, vocab_size: int, workers: int) -> Prepared:
    """gigabpe, which reads files: the text with special tokens left out, a file for each worker."""
    module = package("gigabpe")
    folder = tempfile.TemporaryDirectory(prefix="race-")
    files = [Path(folder.name, f"{number}.txt") for number in range(workers)]
    parts = list(documents(text))
    for number, file in enumerate(files):
        file.write_bytes("".join(parts[number::workers]).encode("utf-8"))
    parts.clear()
    alphabet = sorted(spell(bytes([byte])) for byte in range(256))

    def run() -> list[tuple[str, str]]:
        names = [str(file) for file in files]
        special = [SPECIAL, *alphabet]
        options = {"pretokenizer": "bytelevel", "threads": workers}
        merges: list[tuple[str, str]] = module.train_bpe(names, vocab_size, special_tokens=special, **options)[1]
        return merges

    def outcome(merges: list[tuple[str, str]]) -> list[Merge]:
        folder.cleanup()
        return [(unspell(left), unspell(right)) for left, right in merges]

    return Prepared(run, outcome)


def gigatoken(text: Path, vocab_size: int, workers: int) -> Prepared:
    """gigatoken, which cuts the text at a separator itself."""
    module = package("gigatoken")

    def run() -> Any:
        return module.train_bpe(text.read_bytes(), vocab_size, [SPECIAL], separator=SPECIAL.encode("utf-8"))

    return Prepared(run, lambda trained: [(bytes(left), bytes(right)) for left, right in trained[1]])


def bpeasy(text: Path, vocab_size: int, workers: int) -> Prepared:
    """bpeasy, given the documents one by one; it knows no special tokens."""
    module = package("bpeasy")
    return Prepared(lambda: module.train_bpe(documents(text), GPT2, 1 << 30, vocab_size - 1), merges_of_ranks)


# Encoders: (text, workers) -> ids, with GPT-2's table and no special tokens


def _read(text: Path) -> str:
    return text.read_bytes().decode("utf-8")


def _ranks() -> RankTable:
    vocab, merges, _ = gpt2_model(None).fresh()
    learned = {index: token for index, token in vocab.items() if token != SPECIAL.encode("utf-8")}
    return ranks_of(learned, merges, [])


def _tiktoken() -> Any:
    ranks = dict(_ranks().ordinary)
    return package("tiktoken").Encoding("gpt2", pat_str=GPT2, mergeable_ranks=ranks, special_tokens={})


def _reference(method: str) -> Any:
    tokenizer = Tokenizer.from_model(gpt2_model(None))
    if not hasattr(tokenizer, method):
        raise Absent(f"Tokenizer.{method} is not there")
    return getattr(tokenizer, method)


def _same(ids: Any) -> Any:
    return ids


def reference(method: str) -> PrepareEncoding:
    """Return the participant that calls a method of the reference with the whole text."""

    def prepare(text: Path, workers: int) -> Prepared:
        return Prepared(partial(_reference(method), _read(text)), _same)

    return prepare


def tiktoken(method: str, **options: Any) -> PrepareEncoding:
    """Return the participant that calls a method of tiktoken with the whole text."""

    def prepare(text: Path, workers: int) -> Prepared:
        return Prepared(partial(getattr(_tiktoken(), method), _read(text), **options), _same)

    return prepare


def riptoken_ordinary(text: Path, workers: int) -> Prepared:
    """riptoken, a list."""
    core, string = package("riptoken").CoreBPE(dict(_ranks().ordinary), {}, GPT2), _read(text)
    return Prepared(lambda: core.encode_ordinary(string), _same)


def _tokenizer_json() -> tuple[tempfile.TemporaryDirectory[str], str]:
    folder = tempfile.TemporaryDirectory(prefix="race-")
    ranks = _ranks()
    return folder, write_tokenizer_json(folder.name, ranks.vocab, gpt2_model(None).merges, [], None)


def _huggingface() -> Any:
    folder, path = _tokenizer_json()
    with folder:
        return package("tokenizers").Tokenizer.from_file(path)


def huggingface_encode(text: Path, workers: int) -> Prepared:
    """Hugging Face tokenizers, given some documents at a time: of the whole text it keeps offsets and strings too."""
    encode, parts = _huggingface().encode_batch_fast, _separated(text)

    def run() -> list[int]:
        ids: list[int] = []
        for start in range(0, len(parts), 1000):
            for encoding in encode(parts[start : start + 1000], add_special_tokens=False):
                ids += encoding.ids
        return ids

    return Prepared(run, _same)


def gigatoken_encode(form: Callable[[Any], Any]) -> PrepareEncoding:
    """Return the participant that gives gigatoken's ids in a form: an array as it is, or a list."""

    def prepare(text: Path, workers: int) -> Prepared:
        module = package("gigatoken")
        folder, path = _tokenizer_json()
        with folder:
            encode, string = module.Tokenizer(path).encode, _read(text)
        return Prepared(lambda: form(encode(string)), _same)

    return prepare


def ours_file(text: Path, workers: int) -> Prepared:
    """The reference, from a file to a file."""
    import numpy as np

    encode = _reference("encode_file")
    folder = tempfile.TemporaryDirectory(prefix="race-")
    target = Path(folder.name, "ids.bin")

    def outcome(_: int) -> Any:
        ids = np.fromfile(target, dtype="<u2")
        folder.cleanup()
        return ids

    return Prepared(lambda: encode(text, target, workers=workers), outcome)


def ours_files(text: Path, workers: int) -> Prepared:
    """The reference, from a file to shards in a directory."""
    import numpy as np

    encode = _reference("encode_files")
    folder = tempfile.TemporaryDirectory(prefix="race-")

    def outcome(_: object) -> Any:
        ids = np.concatenate([np.load(file) for file in sorted(Path(folder.name).glob("*.npy"))])
        folder.cleanup()
        return ids

    return Prepared(lambda: encode([text], folder.name, shard_size=1 << 23, workers=workers), outcome)


def ours_batch(text: Path, workers: int) -> Prepared:
    """The reference, lists of the documents."""
    encode, parts = _reference("encode_batch"), _separated(text)
    return Prepared(lambda: encode(parts), lambda lists: list(chain.from_iterable(lists)))


def ours_stream_list(text: Path, workers: int) -> Prepared:
    """The reference, from chunks of a file, a list."""
    encode = _reference("encode_iterable")
    return Prepared(lambda: list(encode(_chunks(text))), _same)


def tiktoken_batch(text: Path, workers: int) -> Prepared:
    """tiktoken, lists of the documents, in threads."""
    encoding, parts = _tiktoken(), _separated(text)
    return Prepared(
        lambda: encoding.encode_ordinary_batch(parts, num_threads=workers),
        lambda lists: list(chain.from_iterable(lists)),
    )


def _separated(text: Path) -> list[str]:
    """Return the documents, each after the first with the special token, which is plain text, before it."""
    first, *others = documents(text)
    return [first, *(SPECIAL + part for part in others)]


def ours_stream(text: Path, workers: int) -> Prepared:
    """The reference, from chunks of a file, ids counted and dropped."""
    encode = _reference("encode_iterable")
    return Prepared(lambda: sum(1 for _ in encode(_chunks(text))), lambda count: [count])


def _chunks(text: Path) -> Iterator[str]:
    with text.open(encoding="utf-8", newline="") as file:
        while chunk := file.read(1 << 16):
            yield chunk


# Sentences: the same as encoders, but in short calls, or in one batch


def sentences(text: Path) -> list[str]:
    """Return up to 10,000 sentences of the text."""
    with text.open(encoding="utf-8", newline="") as file:
        parts = file.read(BLOCK).replace(SPECIAL, " ").split(". ")
    return [part.strip() + "." for part in parts if 20 < len(part) < 300][:10_000]


def _each(encode: Callable[[str], list[int]], text: Path) -> Prepared:
    parts = sentences(text)
    return Prepared(lambda: [encode(part) for part in parts], _flat)


def _batch(encode: Callable[[list[str]], Sequence[Sequence[int]]], text: Path) -> Prepared:
    parts = sentences(text)
    return Prepared(lambda: encode(parts), _flat)


def _flat(ids: Sequence[Sequence[int]]) -> list[int]:
    return list(chain.from_iterable(ids))


def _hugging_face_calls(text: Path, workers: int) -> Prepared:
    encode = _huggingface().encode
    return _each(lambda part: encode(part, add_special_tokens=False).ids, text)


def _hugging_face_batch(text: Path, workers: int) -> Prepared:
    encode = _huggingface().encode_batch_fast
    return _batch(lambda parts: [encoding.ids for encoding in encode(parts, add_special_tokens=False)], text)


TRAINERS: dict[str, PrepareTraining] = {
    "ours": ours,
    "HF tokenizers": huggingface,
    "rustbpe": rustbpe,
    "gigabpe": gigabpe,
    "gigatoken": gigatoken,
    "bpeasy": bpeasy,
}
SAME_TIES: dict[str, tuple[PrepareTraining, Sequence[str]]] = {
    "ours as HF": (
        partial(ours, tie_break="smaller-ids", byte_order="gpt2"),
        ("HF tokenizers", "gigabpe", "gigatoken"),
    ),
    "ours as rustbpe": (partial(ours, tie_break="smaller-ids"), ("rustbpe", "bpeasy")),
}
ENCODERS: dict[str, PrepareEncoding] = {
    "ours encode": reference("encode"),
    "tiktoken encode": tiktoken("encode", disallowed_special=()),
    "tiktoken encode_ordinary": tiktoken("encode_ordinary"),
    "riptoken encode_ordinary": riptoken_ordinary,
    "HF encode_batch_fast": huggingface_encode,
    "gigatoken encode, tolist": gigatoken_encode(lambda ids: ids.tolist()),
    "ours encode_to_numpy": reference("encode_to_numpy"),
    "tiktoken encode_to_numpy": tiktoken("encode_to_numpy", disallowed_special=()),
    "gigatoken encode": gigatoken_encode(_same),
    "ours encode_file": ours_file,
    "ours encode_file, 2 workers": ours_file,
    "ours encode_files, 2 workers": ours_files,
    "ours encode_iterable, list": ours_stream_list,
    "ours encode_batch": ours_batch,
    "tiktoken encode_ordinary_batch, 2 workers": tiktoken_batch,
    "HF encode_batch_fast, 2 workers": huggingface_encode,
    "gigatoken encode, 2 workers": gigatoken_encode(_same),
}
SENTENCES: dict[str, PrepareEncoding] = {
    "ours encode": lambda text, workers: _each(_reference("encode"), text),
    "tiktoken encode": lambda text, workers: _each(partial(_tiktoken().encode, disallowed_special=()), text),
    "tiktoken encode_ordinary": lambda text, workers: _each(_tiktoken().encode_ordinary, text),
    "HF encode": _hugging_face_calls,
    "ours encode_batch": lambda text, workers: _batch(_reference("encode_batch"), text),
    "tiktoken encode_ordinary_batch": lambda text, workers: _batch(
        partial(_tiktoken().encode_ordinary_batch, num_threads=workers), text
    ),
    "HF encode_batch_fast": _hugging_face_batch,
}
STREAM = "ours encode_iterable"
"""A participant whose ids are only counted."""
PACKAGES = ("tokenizers", "rustbpe", "gigabpe", "gigatoken", "bpeasy", "tiktoken", "riptoken", "numpy", "regex")
