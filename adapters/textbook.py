"""The textbook as an adapter that also loads a `tokenizer.json`, because the textbook itself reads no files."""

from __future__ import annotations

from bpe_conformance.reference import textbook
from bpe_conformance.reference.formats import huggingface


class Tokenizer(textbook.Tokenizer):
    __doc__ = textbook.Tokenizer.__doc__

    @classmethod
    def from_tokenizer_json(cls, path: str) -> Tokenizer:
        model = huggingface.read(path)
        return cls(model.vocab, model.merges, pipeline=model.steps)
