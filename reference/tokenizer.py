"""The tokenizer: a table of merges, special tokens and a split pattern, put together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, TypeVar

from bpe_conformance.fixtures import Merge, Model
from bpe_conformance.fixtures.conventions import TRAINING_CONVENTIONS

from . import live
from .counting import Source, count_pre_tokens
from .encoder import Encoder
from .files import AnyPath
from .formats import gpt2
from .learners import learner
from .patterns import DEFAULT_PATTERN, has_fence, pre_tokenize, resolve
from .progress import Progress, silent
from .special_token_policy import Choice, Wanted, wanted_of
from .special_tokens import SpecialTokens
from .streaming import pieces
from .trainer import number

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import tiktoken
    import tokenizers

    from .bulk.encoding import BulkEncoder

Self = TypeVar("Self", bound="Tokenizer")

BULK = 1 << 16
"""From so many characters on, encoding over arrays (`bulk`) is faster (measured)."""
CHOICES = 4
"""How many choices of special tokens are remembered; each may have an encoder over arrays of its own."""
LARGEST_ID = 1 << 22
"""Tables by id grow with the largest one; above this one, texts are encoded without."""


class Tokenizer:
    """A byte-level BPE tokenizer.

    Args:
        vocab: id → bytes; ids in any order, with gaps. If two ids stand for the same bytes, the first one
            encodes.
        merges: pairs of tokens, in order of rank; if a pair stands twice, its first rank counts.
        special_tokens: matched in the text before it is split. One without an entry gets the id max(ids) + 1.
        pattern: the name of a split pattern or a regular expression; None is GPT-2's.

    Attributes:
        vocab: id → bytes, with the special tokens.
        merges: pairs of tokens, in order of rank.
        special_tokens: each once, in the order given.
        pattern: as given, or "gpt2".
        compiled: the pattern, compiled.
        conventions: what training does otherwise than by default, by name.

    Raises:
        ValueError: if a byte, a part of a merge or its result has no entry, a special token is empty, or the
            pattern is neither a name nor a regular expression.

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
        *,
        pattern: str | None = None,
    ) -> None:
        self.vocab: dict[int, bytes] = dict(vocab)
        self.merges: list[Merge] = [(left, right) for left, right in merges]
        self.pattern = DEFAULT_PATTERN if pattern is None else pattern
        self.compiled = resolve(pattern)
        self._special = SpecialTokens(special_tokens)
        _check_table(self.vocab, self.merges)
        ids = {token: index for index, token in reversed(self.vocab.items())}
        following = max(self.vocab) + 1
        for text in self._special.tokens:
            if ids.setdefault(text.encode("utf-8"), following) == following:
                self.vocab[following] = text.encode("utf-8")
                following += 1
        self._special_ids = {text: ids[text.encode("utf-8")] for text in self._special.tokens}
        self._encoder = Encoder(ids, self.merges)
        self._idle: list[BulkEncoder] = []
        self._choices: dict[Wanted, tuple[Tokenizer | None, Choice]] = {}

    def __getstate__(self) -> dict[str, object]:
        """Return what a copy needs: no encoder over arrays, which is large after use, nor other copies."""
        return {**self.__dict__, "_idle": [], "_choices": {}}

    @property
    def special_tokens(self) -> list[str]:
        """The special tokens, each once, in the order given."""
        return list(self._special.tokens)

    @property
    def model(self) -> Model:
        """What this tokenizer is built from, as the formats take it."""
        return Model(dict(self.vocab), tuple(self.merges), self._special.tokens, self.pattern)

    @classmethod
    def from_model(cls: type[Self], model: Model) -> Self:
        """Build the tokenizer of `model`."""
        return cls(model.vocab, model.merges, model.special_tokens, pattern=model.pattern)

    @classmethod
    def train(
        cls: type[Self],
        source: Source,
        vocab_size: int,
        special_tokens: Iterable[str] = (),
        *,
        pattern: str | None = None,
        workers: int | None = None,
        executor: Executor | None = None,
        progress: Progress | None = None,
        tie_break: str | None = None,
        byte_order: str | None = None,
        id_layout: str | None = None,
    ) -> Self:
        """Train on `source` (section TRAIN).

        Args:
            source: a text; a path (`os.PathLike`, not `str`); or an iterable of texts or paths, each of them
                a document of its own. Files are decoded as UTF-8, with U+FFFD for what is not.
            vocab_size: 256 bytes, special tokens and merges, together; there are fewer if pairs run out.
            special_tokens: boundaries, never counted; a repeated one counts once.
            pattern: a name or a regular expression; None is GPT-2's.
            workers: processes that count pre-tokens; None is 1.
            executor: counts in place of processes of our own.
            progress: told the phase, how much is done, and of how much.
            tie_break: which of the most frequent pairs is merged (CONV-TIE-1); None is the convention of the
                class.
            byte_order: how the bytes are numbered; None is the convention of the class.
            id_layout: in which order the ids are given out; None is the convention of the class.

        Raises:
            ValueError: if `vocab_size` is below 256 and the special tokens, a convention is unknown, or a
                file cannot be read.
            RuntimeError: if a worker dies.
        """
        chosen = _complete(cls.conventions, tie_break=tie_break, byte_order=byte_order, id_layout=id_layout)
        special = SpecialTokens(special_tokens).tokens
        wanted = vocab_size - 256 - len(special)
        if wanted < 0:
            raise ValueError(f"vocab_size is {vocab_size}; bytes and special tokens are {vocab_size - wanted}")
        tell = progress or silent
        counts = count_pre_tokens(source, special, pattern, workers=workers, executor=executor, progress=tell)
        most = min(wanted, sum(map(len, counts)))  # each merge makes a word shorter
        learn = learner(counts, most, chosen["tie_break"])
        merges = learn(counts, wanted, chosen["tie_break"], chosen["byte_order"], tell)
        vocab = number(merges, special, chosen["byte_order"], chosen["id_layout"])
        return cls(vocab, merges, special, pattern=pattern)

    def encode(
        self,
        text: str,
        *,
        allowed_special: Collection[str] | None = None,
        disallowed_special: Collection[str] | None = None,
    ) -> list[int]:
        """Return the ids of `text`.

        Without the two keywords every special token in the text is found: right for a text of one's own. They say what
        a text from outside may hold, as tiktoken's do, here and in all that encodes. `allowed_special=set()` refuses
        special tokens; `allowed_special=set(), disallowed_special=()` has them encoded as plain text.

        Args:
            text: of any length.
            allowed_special: the special tokens that are found, "all" or a set of them; none, if only
                `disallowed_special` is given.
            disallowed_special: what the text must not hold: strings, special tokens or not; or "all", all special
                tokens that are not allowed, also if only `allowed_special` is given. What is in both is disallowed.

        Raises:
            ValueError: if the text holds what is disallowed, before anything is encoded.
            UnicodeEncodeError: a ValueError, if the text holds a lone surrogate.

        >>> tokenizer = Tokenizer({byte: bytes([byte]) for byte in range(256)}, [], ["<|e|>"])
        >>> tokenizer.encode("a<|e|>")
        [97, 256]
        >>> tokenizer.encode("a<|e|>", allowed_special=set(), disallowed_special=())
        [97, 60, 124, 101, 124, 62]
        """
        chosen = self
        if allowed_special is not None or disallowed_special is not None:
            chosen, choice = self._choose(allowed_special, disallowed_special)
            choice.check(text)
        if len(text) >= BULK and chosen._takes_bulk:
            # The whole text at once: between many special tokens, each segment would be short.
            result: list[int] = []
            with chosen._bulk() as bulk:
                for ids in bulk.encode([text]):
                    result += chosen._integers[ids].tolist()
            return result
        return list(chosen._ids_of(chosen._special.cut(text)))

    def encode_ordinary(self, text: str) -> list[int]:
        """Return the ids of `text`, in which special tokens are plain text.

        Raises:
            UnicodeEncodeError: a ValueError, if the text holds a lone surrogate.
        """
        return self.encode(text, disallowed_special=())

    def encode_to_numpy(
        self,
        text: str,
        *,
        allowed_special: Collection[str] | None = None,
        disallowed_special: Collection[str] | None = None,
    ) -> npt.NDArray[np.uint32]:
        """Return the ids of `text` as an array of uint32, for long texts faster than `encode`.

        Args:
            text: of any length.
            allowed_special: as `encode` has it.
            disallowed_special: as `encode` has it.

        Raises:
            ValueError: if the text holds what is disallowed.
            UnicodeEncodeError: a ValueError, if the text holds a lone surrogate.
            OverflowError: if an id does not fit.
        """
        import numpy as np  # loaded when it is wanted

        chosen, choice = self._choose(allowed_special, disallowed_special)
        choice.check(text)
        if len(text) >= BULK and chosen._takes_bulk:
            with chosen._bulk() as bulk:
                return np.concatenate(list(bulk.encode([text])))
        ids = chosen.encode(text)
        if ids and not 0 <= min(ids) <= max(ids) < 1 << 32:  # NumPy 1 does not check
            raise OverflowError(f"ids from {min(ids)} to {max(ids)} do not fit into 32 bits")
        return np.array(ids, np.uint32)

    def encode_file(
        self,
        source: AnyPath,
        target: AnyPath,
        *,
        bits: int | None = None,
        workers: int | None = None,
        progress: Progress | None = None,
        allowed_special: Collection[str] | None = None,
        disallowed_special: Collection[str] | None = None,
    ) -> int:
        """Write the ids of the text in a file to another file, as unsigned numbers, little-endian.

        The text is decoded as UTF-8, with U+FFFD for what is not. Memory stays flat, however large the file is,
        if special tokens or fences (single spaces, commas and full stops of Chinese, with one of
        `patterns.FENCED_PATTERNS`) are never far apart; what stands between two of them is held as a whole.

        Args:
            source: the path of a text.
            target: where the ids go; it is written as a whole or not at all.
            bits: of a number, 16 or 32; None is 16 if all ids fit, else 32.
            workers: processes; None is 1.
            progress: told how many bytes are done, and of how many.
            allowed_special: as `encode` has it.
            disallowed_special: as `encode` has it.

        Returns:
            int: how many ids were written.

        Raises:
            ValueError: if a file cannot be read or written, changes while it is read, or holds what is disallowed, or
                an id does not fit.
            RuntimeError: if a worker dies.
        """
        from .file_encoding import encode_file  # it loads NumPy

        if workers is not None and workers < 1:
            raise ValueError(f"workers is {workers}; at least 1 is wanted")
        chosen, choice = self._choose(allowed_special, disallowed_special)
        return encode_file(chosen, choice, source, target, bits, workers or 1, progress or silent)

    def encode_batch(
        self,
        texts: Iterable[str],
        *,
        allowed_special: Collection[str] | None = None,
        disallowed_special: Collection[str] | None = None,
    ) -> list[list[int]]:
        """Return the ids of each text.

        Args:
            texts: each is encoded alone: what two of them spell together is no special token.
            allowed_special: as `encode` has it.
            disallowed_special: as `encode` has it.

        Raises:
            ValueError: if a text holds what is disallowed, before anything is encoded.
            UnicodeEncodeError: a ValueError, if a text holds a lone surrogate.
        """
        if isinstance(texts, str):
            raise ValueError("texts is one string; give a list of strings")
        texts, chosen = list(texts), self
        if allowed_special is not None or disallowed_special is not None:
            chosen, choice = self._choose(allowed_special, disallowed_special)
            for place, text in enumerate(texts):
                choice.check(text, f"text {place}")
        if sum(map(len, texts)) < BULK or not chosen._takes_bulk:
            return [chosen.encode(text) for text in texts]
        with chosen._bulk() as bulk:
            return [chosen._integers[ids].tolist() for ids in bulk.encode_each(texts)]

    def encode_iterable(
        self,
        chunks: Iterable[str],
        *,
        allowed_special: Collection[str] | None = None,
        disallowed_special: Collection[str] | None = None,
    ) -> Iterator[int]:
        """Yield the ids of the joined chunks, lazily, wherever the cuts fall (section STREAM).

        Args:
            chunks: of any length. They are no boundaries: a special token that several of them spell is one.
            allowed_special: as `encode` has it.
            disallowed_special: as `encode` has it.

        Raises:
            ValueError: while ids are read, if the text holds what is disallowed. The ids of what stands before it may
                have been yielded; those of a part of it never are.
            UnicodeEncodeError: a ValueError, while ids are read, if the text holds a lone surrogate.
        """
        chosen, choice = self._choose(allowed_special, disallowed_special)
        return chosen._ids_of(pieces(choice.checked(chunks), chosen._special, chosen.compiled))

    def _choose(
        self, allowed_special: Collection[str] | None, disallowed_special: Collection[str] | None
    ) -> tuple[Tokenizer, Choice]:
        """Return a tokenizer that finds what is allowed, and is otherwise this one; and the choice."""
        wanted = wanted_of(allowed_special, disallowed_special)
        known = self._choices.get(wanted)
        if known is None:
            if len(self._choices) >= CHOICES:
                self._choices.clear()
            choice, narrowed = Choice.of(self._special.tokens, wanted), None
            if choice.allowed != self._special.tokens:
                narrowed = copy(self)
                narrowed._special = SpecialTokens(choice.allowed)
            known = self._choices[wanted] = narrowed, choice
        return known[0] or self, known[1]

    @cached_property
    def _takes_bulk(self) -> bool:
        """Whether long texts may be encoded over arrays."""
        from .bulk.encoding import is_orderly  # it loads NumPy

        fits = min(self.vocab) >= 0 and max(self.vocab) <= LARGEST_ID
        return fits and has_fence(self.compiled) and is_orderly(self._encoder.ranks)

    @cached_property
    def _integers(self) -> npt.NDArray[np.object_]:
        """Each id as an int of Python, to be shared by results: making new ones takes longer than all the rest."""
        import numpy as np  # loaded when it is wanted

        return np.arange(max(self.vocab) + 1).astype(object)

    @contextmanager
    def _bulk(self) -> Iterator[BulkEncoder]:
        from .bulk.encoding import BulkEncoder  # it loads NumPy

        # What it remembers is for one caller at a time; a second one, in another thread, gets an encoder of its own.
        try:
            bulk = self._idle.pop()
        except IndexError:
            bulk = BulkEncoder(self._encoder, self._special, self._special_ids, self.compiled)
        yield bulk
        self._idle[:] = [bulk]

    def _ids_of(self, segments: Iterable[tuple[str, bool]]) -> Iterator[int]:
        encode, compiled = self._encoder.encode, self.compiled
        for segment, is_special in segments:
            if is_special:
                yield self._special_ids[segment]
            elif len(segment) >= BULK and self._takes_bulk:
                with self._bulk() as bulk:
                    for ids in bulk.encode([segment]):
                        yield from self._integers[ids].tolist()
            else:
                for pre_token in pre_tokenize(segment, compiled):
                    yield from encode(pre_token)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Return the bytes of `ids`, concatenated.

        Raises:
            ValueError: if an id is unknown.
        """
        try:
            return b"".join([self.vocab[index] for index in ids])
        except KeyError as error:
            raise ValueError(f"the id {error.args[0]!a} is not in the vocabulary") from None

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of `ids`: their bytes are joined, then decoded as UTF-8 (section DECODE).

        Each maximal subpart that is not UTF-8 gives one U+FFFD; a leading BOM is kept.

        Raises:
            ValueError: if an id is unknown.
        """
        return self.decode_bytes(ids).decode("utf-8", errors="replace")

    def save(self, folder: AnyPath) -> None:
        """Write `vocab.json` and `merges.txt`, GPT-2's format; special tokens and pattern do not stand in it.

        Raises:
            ValueError: if two ids stand for the same bytes, which the format cannot hold.
        """
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
        """Build the tokenizer of GPT-2's two files.

        Raises:
            ValueError: with file and line, if they are malformed, or if they do not fit together.
        """
        vocab = gpt2.read_vocab(vocab_path)
        merges = gpt2.read_merges(merges_path, vocab)
        return cls(vocab, merges, special_tokens, pattern=pattern)

    def to_tiktoken(self, name: str = "bpe-conformance") -> tiktoken.Encoding:
        """Return a `tiktoken.Encoding` that gives the same ids, with `allowed_special="all"`.

        Args:
            name: what the encoding calls itself.

        Raises:
            ImportError: if tiktoken is not installed.
            ValueError: if it would encode otherwise; it says why.
        """
        return live.to_tiktoken(self.model, name)

    def to_huggingface(self) -> tokenizers.Tokenizer:
        """Return a `tokenizers.Tokenizer` that gives the same ids, and with `skip_special_tokens=False` the same text.

        Raises:
            ImportError: if tokenizers is not installed.
            ValueError: if it would encode or decode otherwise; it says why.
        """
        return live.to_huggingface(self.model)


def conventional(**conventions: str) -> type[Tokenizer]:
    """Return a `Tokenizer` class that follows and declares `conventions`.

    Raises:
        ValueError: if one is unknown.

    >>> conventional(tie_break="lex-smaller").train("low lower", 257).merges
    [(b'l', b'o')]
    """
    _complete(conventions)
    return type("Tokenizer", (Tokenizer,), {"conventions": conventions, "__doc__": Tokenizer.__doc__})


def _complete(declared: Mapping[str, str], **asked: str | None) -> dict[str, str]:
    """Return a value for every convention: what is asked, else what is declared, else the default."""
    given = {**declared, **{name: value for name, value in asked.items() if value is not None}}
    for name, value in given.items():
        if value not in TRAINING_CONVENTIONS.get(name, ()):
            offers = "; ".join(f"{known}: {', '.join(values)}" for known, values in TRAINING_CONVENTIONS.items())
            raise ValueError(f"the convention {name}={value!a} is unknown; there are {offers}")
    return {name: given.get(name, values[0]) for name, values in TRAINING_CONVENTIONS.items()}


def _check_table(vocab: Mapping[int, bytes], merges: Iterable[Merge]) -> None:
    for index, token in vocab.items():
        if not isinstance(index, int) or not isinstance(token, bytes):
            raise ValueError(f"vocab maps {index!a} to {token!a}; it maps ids (int) to tokens (bytes)")
    known = set(vocab.values())
    for byte in range(256):
        if bytes([byte]) not in known:
            raise ValueError(f"the vocabulary has no token for the byte {bytes([byte])!r}; it needs all 256")
    for rank, (left, right) in enumerate(merges):
        for role, token in (("left part", left), ("right part", right), ("result", left + right)):
            if token not in known:
                raise ValueError(f"the vocabulary lacks {token!r}, the {role} of merge {rank}: {(left, right)!r}")
