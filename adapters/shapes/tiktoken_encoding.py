"""`encoding:MODULE:OBJECT` adapts an object with the interface of `tiktoken.Encoding` and its own vocabulary."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Collection, Sequence
from typing import Any

from ..errors import AdapterError, one_line
from ..loading import find
from ..signature import factory, takes

MODELS = {"gpt2": "gpt2", "r50k_base": "gpt2", "cl100k_base": "cl100k", "o200k_base": "o200k"}  # encoding → its model


class EncodingTokenizer:
    """An adapter over an encoding with `encode(text, allowed_special=...)` and `decode(ids)`."""

    def __init__(self, encoding: Any) -> None:
        self._encoding = encoding

    def encode(
        self, text: str, *, allowed_special: Collection[str] = "all", disallowed_special: Collection[str] | None = None
    ) -> list[int]:
        if disallowed_special is None:
            return list(self._encoding.encode(text, allowed_special=allowed_special))
        if not takes(self._encoding.encode, "disallowed_special"):
            raise NotImplementedError("the encoding's encode has no disallowed_special")
        chosen = {"allowed_special": allowed_special, "disallowed_special": disallowed_special}
        return list(self._encoding.encode(text, **chosen))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [list(ids) for ids in self._method("encode_batch")(list(texts), allowed_special="all")]

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._encoding.decode(list(ids))
        return text

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        data: bytes = self._method("decode_bytes")(list(ids))
        return data

    def _method(self, name: str) -> Any:
        if not hasattr(self._encoding, name):
            raise NotImplementedError(f"the encoding has no {name}")
        return getattr(self._encoding, name)


def encoding(spec: str) -> object:
    """Return an adapter over the encoding that `MODULE:OBJECT` names, or over what OBJECT returns without arguments.

    The encoding's `name` determines the model: see `MODELS`, else the name itself.
    """
    found: Any = find(spec)
    if inspect.isclass(found) or inspect.isroutine(found):
        found = _call(found, spec)
    if lacks := [name for name in ("encode", "decode", "name") if not hasattr(found, name)]:
        expected = "expected an object with the interface of tiktoken.Encoding"
        raise AdapterError(f"encoding:{spec} has no {' and no '.join(lacks)}; {expected}")

    version = getattr(sys.modules.get(type(found).__module__.partition(".")[0]), "__version__", "")
    name = str(found.name)
    return factory(lambda: EncodingTokenizer(found), name, version=version, model=MODELS.get(name, name))


def _call(factory: Any, spec: str) -> Any:
    try:
        return factory()
    except Exception as error:
        raise AdapterError(f"encoding:{spec} cannot be called without arguments: {one_line(str(error))}") from None
