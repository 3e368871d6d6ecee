"""`encoding:MODULE:OBJECT`: an object with the interface of `tiktoken.Encoding`, over the table that it has."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Collection, Sequence
from typing import Any

from ..errors import AdapterError
from ..loading import find, one_line
from .signature import takes

MODELS = {"gpt2": "gpt2", "r50k_base": "gpt2", "cl100k_base": "cl100k", "o200k_base": "o200k"}
"""The name of an encoding → that of its model."""


class Shaped:
    """An encoding as a tokenizer of the protocol.

    Args:
        encoding: has `encode(text, allowed_special=...)` and `decode(ids)`; `decode_bytes(ids)` and
            `encode_batch(texts, allowed_special=...)` are offered if it has them.
    """

    def __init__(self, encoding: Any) -> None:
        self._encoding = encoding

    def encode(
        self, text: str, *, allowed_special: Collection[str] = "all", disallowed_special: Collection[str] | None = None
    ) -> list[int]:
        """Return the ids of `text`; `disallowed_special` is for an encoding that has it."""
        if disallowed_special is None:
            return list(self._encoding.encode(text, allowed_special=allowed_special))
        if not takes(self._encoding.encode, "disallowed_special"):
            raise NotImplementedError("the encoding's encode has no disallowed_special")
        chosen = {"allowed_special": allowed_special, "disallowed_special": disallowed_special}
        return list(self._encoding.encode(text, **chosen))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return [list(ids) for ids in self._method("encode_batch")(list(texts), allowed_special="all")]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`."""
        text: str = self._encoding.decode(list(ids))
        return text

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Return the bytes of `ids`."""
        data: bytes = self._method("decode_bytes")(list(ids))
        return data

    def _method(self, name: str) -> Any:
        if not hasattr(self._encoding, name):
            raise NotImplementedError(f"the encoding has no {name}")
        return getattr(self._encoding, name)


def shaped(spec: str) -> object:
    """Return an adapter over the encoding that `MODULE:OBJECT` names.

    Its model is that of the encoding's `name`: GPT-2's for `gpt2` and `r50k_base`, cl100k's for `cl100k_base`,
    o200k's for `o200k_base`, else the name itself.

    Args:
        spec: an object, or something that makes one when it is called without arguments.

    Raises:
        AdapterError: if it names nothing of that interface.
    """
    encoding: Any = find(spec)
    if inspect.isclass(encoding) or inspect.isroutine(encoding):
        encoding = _made(encoding, spec)
    lacks = [name for name in ("encode", "decode", "name") if not hasattr(encoding, name)]
    if lacks:
        raise AdapterError(
            f"encoding:{spec} has no {' and no '.join(lacks)}; "
            "wanted is an object with the interface of tiktoken.Encoding"
        )

    def make() -> Shaped:
        return Shaped(encoding)

    adapter: Any = make
    adapter.__name__ = adapter.__qualname__ = str(encoding.name)
    adapter.version = getattr(sys.modules.get(type(encoding).__module__.partition(".")[0]), "__version__", "")
    adapter.model = MODELS.get(str(encoding.name), str(encoding.name))
    return adapter


def _made(factory: Any, spec: str) -> Any:
    try:
        return factory()
    except Exception as error:
        raise AdapterError(f"encoding:{spec} cannot be called without arguments: {one_line(str(error))}") from None
