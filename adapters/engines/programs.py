"""`llamacpp:PATH` and `transformersjs:PATH`: programs in JavaScript over a model's file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bpe_conformance.reference.formats import gguf, huggingface, tekken

from ..bridge.client import RemoteTokenizer, bridge
from ..errors import AdapterError, BridgeError, one_line
from . import model_file

LANGUAGES = Path(__file__).parents[1] / "languages"


def transformersjs(rest: str) -> type[RemoteTokenizer]:
    """Return the adapter of `transformersjs:PATH`: npm's @huggingface/tokenizers, over a `tokenizer.json`."""
    spec = f"transformersjs:{rest}"
    return _program("huggingface.mjs", spec, model_file(spec))


def llamacpp(rest: str) -> Any:
    """Return the adapter of `llamacpp:PATH`: npm's node-llama-cpp, over a GGUF file or one made of a tokenizer.json."""
    spec = f"llamacpp:{rest}"
    path = model_file(spec)
    with path.open("rb") as stream:
        is_gguf = stream.read(len(gguf.MAGIC)) == gguf.MAGIC  # a file can have another name, as Ollama's have
    if is_gguf:
        return _program("llamacpp.mjs", spec, path)
    folder = tempfile.TemporaryDirectory(prefix="bpe-conformance-")
    made = Path(folder.name, f"{path.stem}.gguf")
    try:
        gguf.write(made, tekken.read(path) if tekken.is_tekken(path) else huggingface.read(path))
    except ValueError as error:
        raise AdapterError(f"{one_line(spec)}: {one_line(str(error))}") from None
    adapter: Any = _program("llamacpp.mjs", spec, made)
    adapter.model, adapter.folder = str(path), folder  # the file has to exist as long as the program may start again
    return adapter


def _program(name: str, spec: str, path: Path) -> type[RemoteTokenizer]:
    try:
        return bridge(["node", str(LANGUAGES / name), str(path)])
    except (AdapterError, BridgeError) as error:
        message = one_line(error.message) if isinstance(error, BridgeError) else error
        raise AdapterError(f"{one_line(spec)}: {message}") from None
