"""The adapter protocol as types: the methods of a tokenizer that the suite can test.

An adapter is a class, or a function that returns tokenizers. It needs only `Adapter`, whose tokenizers implement
`Encoder`, `Decoder` or both; or only `Trainer`. Each other protocol is optional: implement it to support it. A method
that raises `NotImplementedError` in a first small call counts as not implemented. The suite passes arguments by
position, and as fresh copies; it passes `allowed_special` and `disallowed_special` by name.

To have mypy or pyright check your class, assign it to a variable of each type that it should satisfy:

    from bpe_conformance.protocol import Adapter, Tokenizer, Trainer

    adapter: Adapter[Tokenizer] = MyTokenizer
    trainer: Trainer = MyTokenizer
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, TypeVar

T_co = TypeVar("T_co", covariant=True)
Merge: TypeAlias = tuple[bytes, bytes]


class Encoder(Protocol):
    """A tokenizer that encodes."""

    def encode(self, text: str, /) -> Iterable[int]:
        """Return the token ids of `text`."""


class Decoder(Protocol):
    """A tokenizer that decodes."""

    def decode(self, ids: Sequence[int], /) -> str:
        """Return the text of a list or a tuple of token ids; bytes that are not UTF-8 become U+FFFD.

        Raises:
            Exception: of any type, if an id is unknown.
        """


class Tokenizer(Encoder, Decoder, Protocol):
    """A tokenizer that encodes and decodes."""


class Adapter(Protocol[T_co]):
    """A class or a function that builds a tokenizer from its vocabulary and merges."""

    def __call__(
        self, vocab: dict[int, bytes], merges: list[Merge], special_tokens: list[str] | None = None, /
    ) -> T_co:
        """Build a tokenizer.

        Args:
            vocab: id → the bytes of the token.
            merges: pairs of tokens in order of rank.
            special_tokens: texts that are found before the text is split; not passed if there are none.

        Raises:
            NotImplementedError: if special tokens are not supported.
            Exception: of any type, if the table is malformed.
        """


class FixedAdapter(Protocol[T_co]):
    """A class or a function that builds its only tokenizer."""

    @property
    def model(self) -> str:
        """The name of its vocabulary: `gpt2`, or that of a pack."""

    def __call__(self) -> T_co:
        """Build the tokenizer."""


class Table(Protocol):
    """A vocabulary and its merges, of a trained tokenizer for example."""

    @property
    def vocab(self) -> Mapping[int, bytes]:
        """Id → the bytes of the token."""

    @property
    def merges(self) -> Sequence[Merge]:
        """Pairs of tokens in the order learned."""


class Trainer(Protocol):
    """An adapter that trains: `train` is a class method of the class, or an attribute of the function."""

    def train(
        self, text: str, vocab_size: int, special_tokens: list[str], /
    ) -> Table | tuple[Mapping[int, bytes], Sequence[Merge]]:
        """Learn merges from `text` until the vocabulary has `vocab_size` entries or no pair is left.

        Args:
            text: the training text.
            vocab_size: the number of entries, with the 256 bytes and the special tokens.
            special_tokens: they get ids, and are cut out of the training text.

        Returns:
            A tokenizer with `vocab` and `merges`, or the two in a tuple; encoding is not tested then.

        Raises:
            NotImplementedError: if special tokens are not supported.
        """


class Streaming(Protocol):
    """A tokenizer that encodes a text in chunks."""

    def encode_iterable(self, chunks: Iterable[str], /) -> Iterable[int]:
        """Yield the ids of the text that the chunks make together, before all chunks are read."""


class Batch(Protocol):
    """A tokenizer that encodes several texts at once."""

    def encode_batch(self, texts: Sequence[str], /) -> Iterable[Iterable[int]]:
        """Return the ids of each text, each in a list of its own."""


class Detokenizes(Protocol):
    """A tokenizer that decodes ids while they arrive."""

    def decode_iterable(self, ids: Iterable[int], /) -> Iterable[str]:
        """Yield the text of `ids` in parts that make it together, each before more ids are read than it needs."""


class LocatesTokens(Protocol):
    """A tokenizer that tells where in the text each token is."""

    def encode_with_offsets(self, text: str, /) -> tuple[Sequence[int], Sequence[tuple[int, int]]]:
        """Return the ids of `text`, and for each the characters that it covers: (start, end), end exclusive."""


class DecodesBytes(Protocol):
    """A tokenizer that decodes to bytes."""

    def decode_bytes(self, ids: Sequence[int], /) -> bytes:
        """Return the bytes of the ids."""


class Saves(Protocol):
    """A tokenizer that can be saved."""

    def save(self, folder: str, /) -> object:
        """Write `vocab.json` and `merges.txt`, in the format of GPT-2, into an existing directory."""


class LoadsFiles(Protocol[T_co]):
    """An adapter that loads files: `from_files` is a class method of the class, or an attribute of the function."""

    def from_files(self, vocab_path: str, merges_path: str, special_tokens: list[str] | None = None, /) -> T_co:
        """Build a tokenizer from files in the format of GPT-2."""


class LoadsTokenizerJson(Protocol[T_co]):
    """An adapter that loads a `tokenizer.json`: a class method of the class, or an attribute of the function."""

    def from_tokenizer_json(self, path: str, /) -> T_co:
        """Build a tokenizer from a file in the format of Hugging Face's `tokenizers`, with a byte-level BPE model.

        `encode` gives the ids of the steps of the file, without those of a post-processor. The file stays as long as
        the tokenizer is in use.
        """


class ChoosesSpecialTokens(Protocol):
    """A tokenizer whose `encode` has tiktoken's parameters for special tokens."""

    def encode(
        self,
        text: str,
        /,
        *,
        allowed_special: Literal["all"] | Collection[str] = ...,
        disallowed_special: Literal["all"] | Collection[str] = ...,
    ) -> Iterable[int]:
        """Return the token ids of `text`.

        Args:
            text: the text.
            allowed_special: a set of the special tokens that are found.
            disallowed_special: a tuple of those that are an error; all others are ordinary text.
        """


class DeclaresConventions(Protocol):
    """An adapter that follows other conventions than the defaults (`bpe_conformance.fixtures.conventions`)."""

    @property
    def conventions(self) -> Mapping[str, str]:
        """Name → value, of those that differ from the defaults."""


class DeclaresPattern(Protocol):
    """An adapter with a fixed split other than GPT-2's."""

    @property
    def pattern(self) -> str:
        """The name of a pattern of the specification, such as `none`, or a regular expression (syntax of `regex`)."""
