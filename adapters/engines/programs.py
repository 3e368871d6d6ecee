"""`llamacpp:PATH` and `transformersjs:PATH`: programs in JavaScript over a model's file."""

from __future__ import annotations

from pathlib import Path

from ..bridge.client import RemoteTokenizer, bridge
from ..errors import AdapterError, BridgeError, one_line
from . import model_file

LANGUAGES = Path(__file__).parents[1] / "languages"


def transformersjs(rest: str) -> type[RemoteTokenizer]:
    """Return the adapter of `transformersjs:PATH`: npm's @huggingface/tokenizers, over a `tokenizer.json`."""
    spec = f"transformersjs:{rest}"
    return _program("huggingface.mjs", spec, model_file(spec))


def llamacpp(rest: str) -> type[RemoteTokenizer]:
    """Return the adapter of `llamacpp:PATH`: npm's node-llama-cpp, over a GGUF file."""
    spec = f"llamacpp:{rest}"
    return _program("llamacpp.mjs", spec, model_file(spec))


def _program(name: str, spec: str, path: Path) -> type[RemoteTokenizer]:
    try:
        return bridge(["node", str(LANGUAGES / name), str(path)])
    except BridgeError as error:
        raise AdapterError(f"{one_line(spec)}: {one_line(error.message)}") from None
    except AdapterError as error:
        raise AdapterError(f"{one_line(spec)}: {error}") from None
