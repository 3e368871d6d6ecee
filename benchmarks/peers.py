"""The participants of the race: one small function for each trainer and each encoder.

Each does the untimed preparation, and returns the timed function and the one that makes its result comparable.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, count
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from bpe_conformance.adapters.packages.ranks import ranks_of
from bpe_conformance.adapters.packages.tokenizer_json import write_tokenizer_json
from bpe_conformance.command_line import CommandError
from bpe_conformance.fixtures import END_OF_TEXT, PATTERNS, Merge, spell, unspell
from bpe_conformance.packs.files import Overrides, read_model_files
from bpe_conformance.reference import Tokenizer
from bpe_conformance.reference.formats import huggingface as huggingface_format
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


def documents(file: Path) -> Iterator[str]:
    """Yield the parts of a text that lie between special tokens, reading a block of the file at a time."""
    rest = ""
    with file.open(encoding="utf-8", newline="") as text:
        while block := text.read(BLOCK):
            *whole, rest = (rest + block).split(SPECIAL)
            yield from whole
    yield rest


def same(result: Any) -> Any:
    """Return the result as it is."""
    return result


def package(name: str) -> Any:
    """Return a module.

    Raises:
        Absent: if it is not installed.
    """
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


# Encoders: (text, model, workers) -> ids, without special tokens


class Given(NamedTuple):
    """What an encoder is given.

    Attributes:
        text: the file with the text.
        model: the directory that `write_model` wrote.
        workers: the number of workers.
    """

    text: Path
    model: Path
    workers: int

    @property
    def string(self) -> str:
        """The whole text."""
        return self.text.read_bytes().decode("utf-8")

    @property
    def documents(self) -> list[str]:
        """The documents, each after the first with the special token, which is plain text, before it."""
        first, *others = documents(self.text)
        return [first, *(SPECIAL + part for part in others)]

    @property
    def json(self) -> str:
        """The path of the `tokenizer.json`."""
        return str(self.model / "tokenizer.json")

    @property
    def ranks(self) -> bytes:
        """The rank file."""
        return (self.model / "ranks.tiktoken").read_bytes()

    @property
    def table(self) -> dict[bytes, int]:
        """The ranks."""
        return {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, self.ranks.splitlines())}

    @property
    def pattern(self) -> str:
        """The split pattern."""
        return PATTERNS[self.model.name]

    def ours(self, method: str) -> Any:
        """Return a method of the reference."""
        tokenizer = Tokenizer.from_model(replace(huggingface_format.read(self.json), pattern=self.model.name))
        if not hasattr(tokenizer, method):
            raise Absent(f"Tokenizer.{method} is not there")
        return getattr(tokenizer, method)

    def tiktoken(self, method: str, **options: Any) -> Any:
        """Return a method of tiktoken."""
        options_of = {"pat_str": self.pattern, "mergeable_ranks": self.table, "special_tokens": {}}
        return partial(getattr(package("tiktoken").Encoding(self.model.name, **options_of), method), **options)

    def huggingface(self) -> Any:
        """Return the tokenizer of Hugging Face."""
        return package("tokenizers").Tokenizer.from_file(self.json)


PrepareEncoding = Callable[[Given], Prepared]


def write_model(name: str, folder: Path) -> Path:
    """Write gpt2 or cl100k into `folder` without its special tokens, in two formats, and return their directory.

    The `tokenizer.json` of cl100k has the pattern in the form that published files have, which more packages read.
    """
    try:
        model = read_model_files([name], Overrides()).model
    except CommandError as error:
        raise Absent(str(error)) from None
    special = {text.encode("utf-8") for text in (*(model.special_tokens or ()), SPECIAL)}
    vocab = {index: token for index, token in model.vocab.items() if token not in special}
    target = folder / name
    target.mkdir()
    pattern = None if name == "gpt2" else f"{name}-2023"
    write_tokenizer_json(str(target), vocab, model.merges, [], pattern)
    (target / "ranks.tiktoken").write_bytes(ranks_of(vocab, model.merges, []).file())
    return target


def differing(ids: Any, expected: Any, lengths: Mapping[int, int]) -> int:
    """Return how many of the expected tokens `ids` does not have at the same place of the text.

    >>> import numpy as np
    >>> differing(np.array([7, 1, 2, 3]), np.array([1, 1, 1, 2, 3]), {1: 1, 2: 1, 3: 1, 7: 2})
    2
    """
    import numpy as np

    if np.array_equal(ids, expected):
        return 0
    sizes = np.zeros(max(lengths) + 1, dtype=np.int64)
    sizes[list(lengths)] = list(lengths.values())
    here, there = (np.cumsum(sizes[each]) << 20 | each for each in (ids, expected))
    return len(np.setdiff1d(there, here)) or abs(len(ids) - len(expected))


def whole(prepare: Callable[[Given], Callable[[str], Any]], form: Callable[[Any], Any] = same) -> PrepareEncoding:
    """Return the participant that encodes the whole text in one call.

    Args:
        prepare: returns the function that encodes.
        form: turns its result into ids, as a part of what is timed.
    """

    def prepared(given: Given) -> Prepared:
        encode, string = prepare(given), given.string
        return Prepared(lambda: form(encode(string)), same)

    return prepared


def splintr(given: Given) -> Any:
    """splintr, over ranks; it knows no possessive quantifiers, so it is given the pattern of published files."""
    pattern = PATTERNS.get(f"{given.model.name}-2023", given.pattern)
    return package("splintr").Tokenizer.from_bytes(given.ranks, pattern, {}).encode_ordinary


def wordchipper(given: Given) -> Any:
    """wordchipper, which reads its own cache, filled with the ranks."""
    module = package("wordchipper")
    name = {"gpt2": "r50k_base"}.get(given.model.name, f"{given.model.name}_base")
    with tempfile.TemporaryDirectory(prefix="race-") as folder:
        path = Path(folder, "openai", name, f"{name}.tiktoken")
        path.parent.mkdir(parents=True)
        path.write_bytes(given.ranks)
        with mock.patch.dict(os.environ, WORDCHIPPER_CACHE_DIR=folder):
            tokenizer = module.Tokenizer.from_pretrained(name)
    return partial(tokenizer.encode, special_filter=module.SpecialFilter.include_none())


def quicktok(given: Given) -> Any:
    """quicktok, with its own tables."""
    if given.model.name == "gpt2":
        raise Absent("quicktok has no split for GPT-2")
    return package("quicktok").get_encoding(f"{given.model.name}_base").encode_ordinary


def huggingface_encode(given: Given) -> Prepared:
    """Hugging Face tokenizers, given some documents at a time: of the whole text it keeps offsets and strings too."""
    encode, parts = given.huggingface().encode_batch_fast, given.documents

    def run() -> list[int]:
        ids: list[int] = []
        for start in range(0, len(parts), 1000):
            for encoding in encode(parts[start : start + 1000], add_special_tokens=False):
                ids += encoding.ids
        return ids

    return Prepared(run, same)


def ours_file(given: Given) -> Prepared:
    """The reference, from a file to a file."""
    import numpy as np

    encode = given.ours("encode_file")
    folder = tempfile.TemporaryDirectory(prefix="race-")
    kind = "<u2" if given.model.name == "gpt2" else "<u4"

    def run() -> Path:
        target = Path(folder.name, "ids.bin")
        encode(given.text, target, workers=given.workers)
        return target

    return Prepared(run, lambda target: np.fromfile(target, dtype=kind))


def ours_files(given: Given) -> Prepared:
    """The reference, from a file to shards in a directory."""
    import numpy as np

    encode = given.ours("encode_files")
    turns = count()
    folder = tempfile.TemporaryDirectory(prefix="race-")

    def run() -> Path:
        target = Path(folder.name, str(next(turns)))
        encode([given.text], target, shard_size=1 << 23, workers=given.workers)
        return target

    return Prepared(run, lambda target: np.concatenate([np.load(file) for file in sorted(target.glob("*.npy"))]))


def tiktoken_batch(given: Given) -> Prepared:
    """tiktoken, lists of the documents, in threads."""
    encode, parts = given.tiktoken("encode_ordinary_batch", num_threads=given.workers), given.documents
    return Prepared(lambda: encode(parts), flat)


def stream(size: int) -> PrepareEncoding:
    """Return the participant that streams the text in chunks of so many characters, or in lines if `size` is 0."""

    def prepared(given: Given) -> Prepared:
        encode, text = given.ours("encode_iterable"), given.string
        starts = range(0, len(text), size) if size else ()
        chunks = [text[start : start + size] for start in starts] or text.splitlines(keepends=True)
        return Prepared(lambda: list(encode(chunks)), same)

    return prepared


# Sentences: the same as encoders, but in short calls, or in one batch


def sentences(text: Path) -> list[str]:
    """Return up to 10,000 sentences of the text."""
    with text.open(encoding="utf-8", newline="") as file:
        parts = file.read(BLOCK).replace(SPECIAL, " ").split(". ")
    return [part.strip() + "." for part in parts if 20 < len(part) < 300][:10_000]


def batch(prepare: Callable[[Given], Callable[[list[str]], Iterable[Sequence[int]]]]) -> PrepareEncoding:
    """Return the participant that encodes all sentences in one call."""

    def prepared(given: Given) -> Prepared:
        encode, parts = prepare(given), sentences(given.text)
        return Prepared(lambda: list(encode(parts)), flat)

    return prepared


def each(prepare: Callable[[Given], Callable[[str], Sequence[int]]]) -> PrepareEncoding:
    """Return the participant that encodes one sentence after another."""
    return batch(lambda given: partial(map, prepare(given)))


def flat(ids: Iterable[Sequence[int]]) -> list[int]:
    """Return the ids of several texts in one list."""
    return list(chain.from_iterable(ids))


def _hugging_face_sentence(given: Given) -> Callable[[str], list[int]]:
    encode = given.huggingface().encode
    return lambda part: list(encode(part, add_special_tokens=False).ids)


def _hugging_face_sentences(given: Given) -> Callable[[list[str]], list[list[int]]]:
    encode = given.huggingface().encode_batch_fast
    return lambda parts: [encoding.ids for encoding in encode(parts, add_special_tokens=False)]


def reader(name: str, method: str) -> Callable[[Given], Any]:
    """Return what prepares a method of a package's tokenizer over the `tokenizer.json`."""
    return lambda given: getattr(package(name).Tokenizer.from_file(given.json), method)


def _gigatoken(given: Given) -> Any:
    return package("gigatoken").Tokenizer(given.json).encode


TRAINERS: dict[str, PrepareTraining] = {
    "ours": ours,
    "ours, 1 worker": ours,
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
    "ours encode": whole(lambda given: given.ours("encode")),
    "tiktoken encode": whole(lambda given: given.tiktoken("encode", disallowed_special=())),
    "tiktoken encode_ordinary": whole(lambda given: given.tiktoken("encode_ordinary")),
    "riptoken encode_ordinary": whole(
        lambda given: package("riptoken").CoreBPE(given.table, {}, given.pattern).encode_ordinary
    ),
    "HF encode_batch_fast": huggingface_encode,
    "fastokens encode_ordinary": whole(reader("fastokens", "encode_ordinary"), attrgetter("ids")),
    "snaptokens encode": whole(reader("snaptokens", "encode"), attrgetter("ids")),
    "splintr encode_ordinary": whole(splintr),
    "quicktok encode_ordinary": whole(quicktok),
    "wordchipper encode": whole(wordchipper),
    "iree encode": whole(reader("iree.tokenizer", "encode")),
    "gigatoken encode, tolist": whole(_gigatoken, lambda ids: ids.tolist()),
    "ours encode_to_numpy": whole(lambda given: given.ours("encode_to_numpy")),
    "tiktoken encode_to_numpy": whole(lambda given: given.tiktoken("encode_to_numpy", disallowed_special=())),
    "iree encode_to_array": whole(reader("iree.tokenizer", "encode_to_array")),
    "gigatoken encode": whole(_gigatoken),
    "ours encode_file": ours_file,
    "ours encode_file, 2 workers": ours_file,
    "ours encode_files, 2 workers": ours_files,
    "tiktoken encode_ordinary_batch, 2 workers": tiktoken_batch,
    "HF encode_batch_fast, 2 workers": huggingface_encode,
    "gigatoken encode, 2 workers": whole(_gigatoken),
}
STREAMS: dict[str, PrepareEncoding] = {
    "ours encode": ENCODERS["ours encode"],
    **{f"ours encode_iterable, {size} KiB": stream(size << 10) for size in (1024, 256, 64)},
    "ours encode_iterable, lines": stream(0),
}
IDEOGRAPHS = {
    name: ENCODERS[name]
    for name in ("ours encode_file", "ours encode_file, 2 workers", "tiktoken encode_ordinary", "tiktoken encode")
}
SENTENCES: dict[str, PrepareEncoding] = {
    "ours encode": each(lambda given: given.ours("encode")),
    "tiktoken encode": each(lambda given: given.tiktoken("encode", disallowed_special=())),
    "tiktoken encode_ordinary": each(lambda given: given.tiktoken("encode_ordinary")),
    "HF encode": each(_hugging_face_sentence),
    "ours encode_batch": batch(lambda given: given.ours("encode_batch")),
    "tiktoken encode_ordinary_batch": batch(lambda given: given.tiktoken("encode_ordinary_batch", num_threads=1)),
    "HF encode_batch_fast": batch(_hugging_face_sentences),
}
GROUPS = {"encode": ENCODERS, "streams": STREAMS, "ideographs": IDEOGRAPHS, "sentences": SENTENCES}
PACKAGES = (
    *("tokenizers", "rustbpe", "gigabpe", "gigatoken", "bpeasy", "tiktoken", "riptoken", "fastokens", "snaptokens"),
    *("splintr-rs", "quicktok-v1", "wordchipper", "iree-tokenizer", "puretiktoken", "numpy", "regex"),
)
