"""Defines `Tokenizer`, which combines vocabulary and merges, special tokens and a split pattern."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from bpe_conformance.fixtures import Merge, Model
from bpe_conformance.fixtures.files import AnyPath
from bpe_conformance.fixtures.models import token_ids
from bpe_conformance.fixtures.pipeline import Pipeline

from .conventions import build_vocab, complete
from .counting import Source, count_pre_tokens
from .dispatch import Progress, silent
from .encoder import SINGLE_BYTES, PreTokenEncoder
from .formats import engines, gpt2, huggingface
from .patterns import DEFAULT_PATTERN, resolve
from .pipeline import PipelineEncoder, pattern_of, pre_token_encoder
from .special_tokens import Keywords, SpecialTokenPolicy, SpecialTokens, Strings, parse_keywords
from .text_encoder import TextEncoder
from .trainer import learn
from .workers import worker_count

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import tiktoken
    import tokenizers

    from .corpus_encoding import EncodedFiles

Self = TypeVar("Self", bound="Tokenizer")

POLICIES = 4
"""The number of special-token policies that a tokenizer caches; each can have its own encoder over arrays."""


class Tokenizer:
    """A byte-level BPE tokenizer.

    Args:
        vocab: id → bytes. Ids may be in any order and have gaps. If two ids have the same bytes, encoding returns the
            first.
        merges: pairs of tokens, in order of rank. If a pair is repeated, its first rank counts.
        special_tokens: matched before the text is split. A token without an entry gets the id max(ids) + 1.
        pattern: the name of a split pattern, or a regular expression; None means GPT-2's pattern.
        pipeline: the steps before merging, in place of special tokens and a pattern. A byte without an entry is
            dropped.

    Attributes:
        vocab: id → bytes, including the special tokens.
        merges: pairs of tokens, in order of rank.
        special_tokens: the special tokens without duplicates, in the order given.
        pattern: as given, or "gpt2".
        pipeline: as given, or None.
        compiled: the pattern, compiled; with a pipeline, that of its steps, if they are one pattern.
        conventions: a class attribute: convention → value, where the value is not the default (see `conventional`).

    Raises:
        ValueError: if a byte, a part of a merge or the result of a merge has no entry, if a special token is empty, or
            if the pattern is neither a name nor a regular expression.

    >>> tokenizer = Tokenizer.train("low low lower", 260, ["<|e|>"])
    >>> tokenizer.merges
    [(b'o', b'w'), (b'l', b'ow'), (b' ', b'low')]
    >>> tokenizer.encode("low<|e|> low")
    [258, 256, 259]
    >>> tokenizer.decode([258, 256, 259])
    'low<|e|> low'
    """

    conventions: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Iterable[Merge],
        special_tokens: Iterable[str] | None = None,
        pattern: str | None = None,
        *,
        pipeline: Pipeline | None = None,
    ) -> None:
        self.vocab: dict[int, bytes] = dict(vocab)
        self.merges: list[Merge] = [(left, right) for left, right in merges]
        self.pattern = DEFAULT_PATTERN if pattern is None else pattern
        self.pipeline = pipeline
        added = () if pipeline is None else pipeline.added_tokens
        self.compiled = resolve(pattern if pipeline is None else pattern_of(pipeline.steps) or "none")
        self._special = SpecialTokens(special_tokens if pipeline is None else [token.content for token in added])
        _check_table(self.vocab, self.merges, SINGLE_BYTES if pipeline is None else ())
        own_ids = {token.content: token.id for token in added if token.id is not None}
        others = [text for text in self._special.tokens if text not in own_ids]
        ids = token_ids(self.vocab, others)
        special_ids = own_ids | {text: ids[text.encode("utf-8")] for text in others}
        for text, index in special_ids.items():
            self.vocab.setdefault(index, text.encode("utf-8"))
        every_id = range(min(self.vocab), max(self.vocab) + 1)
        rest = SpecialTokenPolicy(self._special, SpecialTokens()), special_ids, self.compiled, every_id
        if pipeline is None:
            self._text_encoder = TextEncoder(PreTokenEncoder(ids, self.merges), *rest)
        else:
            self._text_encoder = PipelineEncoder(pre_token_encoder(pipeline, ids, self.merges), *rest, pipeline)
        self._encoders: dict[Keywords, TextEncoder] = {}

    def __getstate__(self) -> dict[str, object]:
        """Return the state to pickle, without caches, so that a pickle does not grow with use."""
        return {**self.__dict__, "_encoders": {}}

    @property
    def special_tokens(self) -> list[str]:
        """The special tokens without duplicates, in the order given."""
        return list(self._special.tokens)

    @property
    def model(self) -> Model:
        """The vocabulary, merges, special tokens and pattern, as one value."""
        return Model(dict(self.vocab), tuple(self.merges), self._special.tokens, self.pattern, pipeline=self.pipeline)

    @classmethod
    def from_model(cls: type[Self], model: Model) -> Self:
        """Build the tokenizer of `model`."""
        return cls(model.vocab, model.merges, model.special_tokens, pattern=model.pattern, pipeline=model.pipeline)

    @classmethod
    def train(
        cls: type[Self],
        source: Source,
        vocab_size: int,
        special_tokens: Iterable[str] = (),
        pattern: str | None = None,
        *,
        workers: int | None = None,
        executor: Executor | None = None,
        progress: Progress | None = None,
        tie_break: str | None = None,
        byte_order: str | None = None,
        id_layout: str | None = None,
        train_special: str | None = None,
    ) -> Self:
        """Train on `source` (section TRAIN).

        Args:
            source: a text; a path (`os.PathLike`, not `str`); or an iterable of texts or paths, each of which is a
                separate document. Files are decoded as UTF-8, with U+FFFD for invalid bytes.
            vocab_size: the number of bytes (256), special tokens and merges together; there are fewer merges if pairs
                run out.
            special_tokens: added to the vocabulary (see `train_special`); duplicates are ignored.
            pattern: a name or a regular expression; None means GPT-2's pattern.
            workers: the number of processes that count pre-tokens; None means 1.
            executor: counts pre-tokens in place of new processes.
            progress: called with the phase, the amount done and the total.
            tie_break: which of the most frequent pairs is merged (CONV-TIE-1). For this convention and the following,
                None means that of the class.
            byte_order: the order of the ids of the bytes.
            id_layout: the order in which ids are assigned.
            train_special: "boundary" if special tokens are boundaries in the text, "text" if they are ordinary text
                (TRAIN-SPECIAL-1).

        Raises:
            ValueError: if `vocab_size` is less than 256 plus the number of special tokens, a convention is unknown, or
                a file cannot be read.
            RuntimeError: if a worker dies.
        """
        chosen = complete(
            cls.conventions,
            tie_break=tie_break,
            byte_order=byte_order,
            id_layout=id_layout,
            train_special=train_special,
        )
        special = SpecialTokens(special_tokens).tokens
        wanted = vocab_size - 256 - len(special)
        if wanted < 0:
            raise ValueError(f"vocab_size is {vocab_size}; bytes and special tokens need {vocab_size - wanted}")
        report = progress or silent
        boundaries, text = (special, ()) if chosen["train_special"] == "boundary" else ((), special)
        counts = count_pre_tokens(source, boundaries, pattern, workers=workers, executor=executor, progress=report)
        specials = [token.encode("utf-8") for token in text]
        merges = learn(counts, wanted, chosen["tie_break"], chosen["byte_order"], report, specials=specials)
        vocab = build_vocab(merges, special, chosen["byte_order"], chosen["id_layout"])
        return cls(vocab, merges, special, pattern=pattern)

    def encode(self, text: str, *, allowed_special: Strings = None, disallowed_special: Strings = None) -> list[int]:
        """Return the ids of `text`.

        Without the two keywords, every special token in the text is recognized. Do this with text that you wrote. For
        text from others, use the keywords, which work as in tiktoken: `allowed_special=set()` makes every special token
        an error; `disallowed_special=()` makes it plain text. All methods that encode accept them.

        Args:
            text: the text to encode.
            allowed_special: the special tokens that are recognized: "all" or a set of them; none if only
                `disallowed_special` is given.
            disallowed_special: strings that the text must not contain, special tokens or not; or "all", which means all
                special tokens that are not allowed and is the default if only `allowed_special` is given. A string in
                both sets is disallowed.

        Raises:
            ValueError: if the text contains a disallowed string; raised before anything is encoded.
            UnicodeEncodeError: if the text contains a lone surrogate; a subclass of ValueError.

        >>> tokenizer = Tokenizer({byte: bytes([byte]) for byte in range(256)}, [], ["<|e|>"])
        >>> tokenizer.encode("a<|e|>")
        [97, 256]
        >>> tokenizer.encode("a<|e|>", allowed_special=set(), disallowed_special=())
        [97, 60, 124, 101, 124, 62]
        """
        return self._encoder(allowed_special, disallowed_special).encode(text)

    def encode_ordinary(self, text: str) -> list[int]:
        """Return the ids of `text` with special tokens as plain text.

        Raises:
            UnicodeEncodeError: if the text contains a lone surrogate; a subclass of ValueError.
        """
        return self.encode(text, disallowed_special=())

    def encode_with_offsets(
        self, text: str, *, allowed_special: Strings = None, disallowed_special: Strings = None
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the ids of `text`, and for each the characters to which it contributes a byte (section OFFSET).

        The arguments are those of `encode`. Tokens that share a character have spans that overlap.

        Raises:
            ValueError: if the text contains a disallowed string.
            UnicodeEncodeError: if the text contains a lone surrogate; a subclass of ValueError.

        >>> Tokenizer({byte: bytes([byte]) for byte in range(256)}, []).encode_with_offsets("aé")
        ([97, 195, 169], [(0, 1), (1, 2), (1, 2)])
        """
        encoder = self._encoder(allowed_special, disallowed_special)
        ids = encoder.encode(text)
        if isinstance(encoder, PipelineEncoder):
            return ids, list(encoder.spans(text, self.vocab))
        ends = accumulate((len(self.vocab[index]) for index in ids), initial=0)
        characters = [index for index, character in enumerate(text) for _ in character.encode("utf-8")]
        return ids, [(characters[start], characters[end - 1] + 1) for start, end in pairwise(ends)]

    def encode_to_numpy(
        self, text: str, *, allowed_special: Strings = None, disallowed_special: Strings = None
    ) -> npt.NDArray[np.uint32]:
        """Return the ids of `text` as an array of uint32; for long texts this is faster than `encode`.

        The arguments are those of `encode`.

        Raises:
            ValueError: if the text contains a disallowed string.
            UnicodeEncodeError: if the text contains a lone surrogate; a subclass of ValueError.
            OverflowError: if an id does not fit into 32 bits.
        """
        return self._encoder(allowed_special, disallowed_special).encode_to_numpy(text)

    def encode_file(
        self,
        source: AnyPath,
        target: AnyPath,
        *,
        bits: int | None = None,
        workers: int | None = None,
        progress: Progress | None = None,
        allowed_special: Strings = None,
        disallowed_special: Strings = None,
    ) -> int:
        """Write the ids of the text in a file to another file, as unsigned numbers, little-endian.

        The text is decoded as UTF-8, with U+FFFD for invalid bytes. Memory does not grow with the file as long as
        special tokens or fences (see `fences`) are never far apart, because the text between two of them is held in
        memory as a whole.

        Args:
            source: the path of the text file.
            target: the path of the file of ids. It is replaced only when the new one is complete.
            bits: the width of a number, 16 or 32 bits; None means 16 if all ids fit, else 32.
            workers: the number of processes; None means 1.
            progress: called with the phase, the number of bytes done and the total.
            allowed_special: as in `encode`.
            disallowed_special: as in `encode`.

        Returns:
            int: the number of ids written.

        Raises:
            ValueError: if a file cannot be read or written, changes while it is read, contains a disallowed string, or
                an id does not fit.
            RuntimeError: if a worker dies.
        """
        from .file_encoding import FileEncoder, encode_file  # it loads NumPy

        width = worker_count(workers)
        encoder = FileEncoder.of(self._encoder(allowed_special, disallowed_special), bits)
        return encode_file(encoder, source, target, width, progress or silent)

    def encode_files(
        self,
        sources: Iterable[AnyPath],
        directory: AnyPath,
        *,
        shard_size: int | None = None,
        bits: int | None = None,
        errors: str = "replace",
        workers: int | None = None,
        executor: Executor | None = None,
        progress: Progress | None = None,
        allowed_special: Strings = None,
        disallowed_special: Strings = None,
    ) -> EncodedFiles:
        """Write the ids of many files into a directory, as arrays (.npy) and an index of them (index.jsonl).

        A complete array is skipped if neither its file nor the tokenizer has changed, so the same call resumes a run
        that was stopped. A file that cannot be encoded does not stop the others.

        Args:
            sources: paths, or URLs if fsspec is installed. Every worker of the executor must be able to open them.
            directory: a new or empty one, or that of an earlier run. Every worker of the executor must be able to write
                to it.
            shard_size: the approximate number of bytes of text for each array: large files are cut, small ones share an
                array. None makes one array for each file, named after it.
            bits: as in `encode_file`.
            errors: "replace" to replace invalid UTF-8 by U+FFFD; "strict" to leave out a file that contains any.
            workers: the number of processes; None means 1 or, with an `executor`, the number of processors.
            executor: encodes in place of new processes; `workers` is then the number of its workers.
            progress: called with the phase, the number of bytes done and the total.
            allowed_special: as in `encode`.
            disallowed_special: as in `encode`.

        Returns:
            EncodedFiles: the numbers of arrays, ids and skipped arrays, and one line for each file that could not be
                encoded.

        Raises:
            ValueError: if an id does not fit, or the directory cannot be used.
            RuntimeError: if a worker dies and the executor cannot go on. Complete arrays stay.
        """
        from .corpus_encoding import Settings, encode_files  # they load NumPy
        from .file_encoding import FileEncoder

        if isinstance(sources, str | bytes | os.PathLike):
            raise ValueError(f"sources is a {type(sources).__name__}; give a list of paths")
        if errors not in ("replace", "strict"):
            raise ValueError(f"errors is {errors!a}; give 'replace' or 'strict'")
        width = worker_count(workers, executor)
        if shard_size is not None and shard_size < 1:
            raise ValueError(f"shard_size is {shard_size}; it must be at least 1")
        encoder = FileEncoder.of(self._encoder(allowed_special, disallowed_special), bits)
        settings = Settings(encoder, errors == "strict", str(Path(directory).absolute()))
        return encode_files(
            self.model, settings, list(sources), directory, shard_size, width, executor, progress or silent
        )

    def encode_batch(
        self, texts: Iterable[str], *, allowed_special: Strings = None, disallowed_special: Strings = None
    ) -> list[list[int]]:
        """Return the ids of each text. No special token spans two texts; the keywords are those of `encode`.

        Raises:
            ValueError: if a text contains a disallowed string; raised before anything is encoded.
            UnicodeEncodeError: if a text contains a lone surrogate; a subclass of ValueError.
        """
        if isinstance(texts, str):
            raise ValueError("texts is a string; give a list of strings")
        return self._encoder(allowed_special, disallowed_special).encode_each(list(texts))

    def encode_iterable(
        self, chunks: Iterable[str], *, allowed_special: Strings = None, disallowed_special: Strings = None
    ) -> Iterator[int]:
        """Yield the ids of the joined chunks lazily; the chunk boundaries do not affect them (section STREAM).

        A special token or pre-token can span several chunks. The keywords are those of `encode`.

        Raises:
            ValueError: during iteration, if the text contains a disallowed string. The ids of the text before that
                string may have been yielded; no id of the string itself is.
            UnicodeEncodeError: during iteration, if the text contains a lone surrogate; a subclass of ValueError.
        """
        return self._encoder(allowed_special, disallowed_special).stream(chunks)

    def _encoder(self, allowed_special: Strings, disallowed_special: Strings) -> TextEncoder:
        """Return the encoder that does with special tokens what a call asks for."""
        if allowed_special is None and disallowed_special is None:
            return self._text_encoder
        keywords = parse_keywords(allowed_special, disallowed_special)
        encoder = self._encoders.get(keywords)
        if encoder is None:
            if len(self._encoders) >= POLICIES:
                self._encoders.clear()
            encoder, policy = self._text_encoder, SpecialTokenPolicy.of(self._special, keywords)
            if policy.allowed.tokens != self._special.tokens or policy.disallowed.tokens:
                encoder = replace(encoder, policy=policy)  # both share the cache of pre-tokens
            self._encoders[keywords] = encoder
        return encoder

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Return the concatenated bytes of `ids`.

        Raises:
            ValueError: if an id is unknown.
        """
        try:
            return b"".join([self.vocab[index] for index in ids])
        except KeyError as error:
            raise ValueError(f"the id {error.args[0]!a} is not in the vocabulary") from None

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of `ids`: their bytes are joined, then decoded as UTF-8 (section DECODE).

        Each maximal subpart that is not UTF-8 becomes one U+FFFD; a leading BOM is kept.

        Raises:
            ValueError: if an id is unknown.
        """
        return self.decode_bytes(ids).decode("utf-8", errors="replace")

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        """Yield the text of `ids` while they arrive, in parts that together are `decode(ids)` (section DETOK).

        At most three bytes wait for the rest of their character. If an id is unknown, the text before it comes first.

        Raises:
            ValueError: if an id is unknown.

        >>> tokenizer = Tokenizer({byte: bytes([byte]) for byte in range(256)}, [])
        >>> list(tokenizer.decode_iterable([97, 226, 130, 172, 226]))
        ['a', '€', '\ufffd']
        """
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        vocab, decode = self.vocab, decoder.decode
        for index in ids:
            if delta := decode(vocab[index] if index in vocab else self.decode_bytes((index,))):
                yield delta
        if delta := decoder.decode(b"", final=True):
            yield delta

    def save(self, folder: AnyPath) -> None:
        """Write `vocab.json` and `merges.txt`, GPT-2's format, which has neither special tokens nor a pattern.

        Raises:
            ValueError: if two ids have the same bytes or there is a pipeline, which the format cannot represent.
        """
        if self.pipeline is not None:
            raise ValueError("vocab.json and merges.txt have no pipeline; write `model` as a tokenizer.json")
        gpt2.write(folder, self.vocab, self.merges)

    @classmethod
    def from_files(
        cls: type[Self],
        vocab_path: AnyPath,
        merges_path: AnyPath,
        special_tokens: Iterable[str] | None = None,
        *,
        pattern: str | None = None,
    ) -> Self:
        """Build the tokenizer from GPT-2's two files.

        Raises:
            ValueError: with file and line, if they are malformed, or if they do not fit together.
        """
        vocab = gpt2.read_vocab(vocab_path)
        merges = gpt2.read_merges(merges_path, vocab)
        return cls(vocab, merges, special_tokens, pattern=pattern)

    @classmethod
    def from_tokenizer_json(cls: type[Self], path: AnyPath) -> Self:
        """Build the tokenizer of a `tokenizer.json`, with its pipeline (chapter PIPELINE).

        Raises:
            ValueError: if the file is malformed, or has a setting that is not supported; the message names it.
        """
        return cls.from_model(huggingface.read(path))

    def to_tiktoken(self, name: str = "bpe-conformance") -> tiktoken.Encoding:
        """Return a `tiktoken.Encoding` that returns the same ids with `allowed_special="all"`.

        Args:
            name: the name of the encoding.

        Raises:
            ImportError: if tiktoken is not installed.
            ValueError: if it would encode differently; the message says why.
        """
        return engines.to_tiktoken(self.model, name)

    def to_huggingface(self) -> tokenizers.Tokenizer:
        """Return a `tokenizers.Tokenizer` with the same ids and, with `skip_special_tokens=False`, the same text.

        Raises:
            ImportError: if tokenizers is not installed.
            ValueError: if it would encode or decode differently; the message says why.
        """
        return engines.to_huggingface(self.model)


def conventional(**conventions: str) -> type[Tokenizer]:
    """Return a `Tokenizer` class that follows and declares `conventions`.

    Raises:
        ValueError: if one is unknown.

    >>> conventional(tie_break="lex-smaller").train("low lower", 257).merges
    [(b'l', b'o')]
    """
    complete(conventions)
    return type("Tokenizer", (Tokenizer,), {"conventions": conventions, "__doc__": Tokenizer.__doc__})


def _check_table(vocab: Mapping[int, bytes], merges: Iterable[Merge], needed: Sequence[bytes]) -> None:
    if {*map(type, vocab)} != {int} or {*map(type, vocab.values())} != {bytes}:
        for index, token in vocab.items():
            if not isinstance(index, int) or not isinstance(token, bytes):
                raise ValueError(f"vocab maps {index!a} to {token!a}; it must map ids (int) to tokens (bytes)")
    known = set(vocab.values())
    if not known.issuperset(needed):
        byte = next(byte for byte in needed if byte not in known)
        raise ValueError(f"the vocabulary has no token for the byte {byte!r}; it needs all 256")
    for rank, (left, right) in enumerate(merges):
        if left in known and right in known and left + right in known:
            continue
        for role, token in (("left part", left), ("right part", right), ("result", left + right)):
            if token not in known:
                raise ValueError(f"the vocabulary lacks {token!r}, the {role} of merge {rank}: {(left, right)!r}")
