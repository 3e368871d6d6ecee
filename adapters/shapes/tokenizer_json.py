"""`tokenizer-json:MODULE:Class` adapts a class that reads a `tokenizer.json` and takes no vocabulary and merges."""

from __future__ import annotations

import tempfile
import weakref
from typing import Any

from ..errors import AdapterError
from ..loading import load
from ..packages import Merges, Pattern, Special, Vocab
from ..packages.tokenizer_json import write_tokenizer_json
from ..signature import factory, version_of


def tokenizer_json(spec: str) -> object:
    """Return an adapter over a class with `from_tokenizer_json(path)`: each model is written as such a file.

    The tokenizers are those of the class, and so are its conventions. The adapter refuses a vocabulary in which a token
    has two ids, which the file cannot give it, or a byte is missing, for which the format has rules of its own.
    """
    cls: Any = load(spec)
    if not callable(getattr(cls, "from_tokenizer_json", None)):
        raise AdapterError(f"tokenizer-json:{spec} has no from_tokenizer_json(path), a class method that reads a file")

    def make(vocab: Vocab, merges: Merges, special_tokens: Special = None, pattern: Pattern = None) -> Any:
        tokens = {*vocab.values()}
        if len(tokens) < len(vocab):
            raise NotImplementedError("a tokenizer.json cannot give one token two ids")
        if missing := [byte for byte in range(256) if bytes([byte]) not in tokens]:
            raise ValueError(f"the vocabulary lacks the byte {missing[0]:#04x}")
        folder = tempfile.TemporaryDirectory(prefix="bpe-conformance-")
        path = write_tokenizer_json(folder.name, vocab, merges, special_tokens, pattern)
        tokenizer = cls.from_tokenizer_json(path)
        try:
            weakref.finalize(tokenizer, folder.cleanup)  # it can read the file as long as it is in use
        except TypeError:  # it allows no weak references
            kept.append(folder)
        return tokenizer

    kept = list[tempfile.TemporaryDirectory[str]]()
    names = ("from_tokenizer_json", "train", "conventions", "pattern")
    carried = {name: getattr(cls, name) for name in names if hasattr(cls, name)}
    return factory(make, cls.__name__, version=version_of(cls), **carried)
