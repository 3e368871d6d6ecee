"""Adapters that are built from a model's file, as a user of the engine loads it: `NAME:PATH`.

An adapter translates arguments and repairs nothing. Its `model` is the path, so that a pack of that model fits.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bpe_conformance.reference.formats import MODEL_FILES
from bpe_conformance.reference.formats.tekken import is_tekken

from ..errors import AdapterError, one_line


def model_file(spec: str) -> Path:
    """Return the absolute path of the file that `NAME:PATH` names; a directory stands for the file in it."""
    path = Path(spec.partition(":")[2])
    if path.is_dir():
        path = next((path / name for name in MODEL_FILES if (path / name).is_file()), path)
    if not path.is_file():
        found = (
            f"there is no {' or '.join(MODEL_FILES)} in this directory" if path.is_dir() else "there is no such file"
        )
        raise AdapterError(f"{one_line(spec)}: {found}; write {spec.partition(':')[0]}:PATH of a model's file")
    return path.absolute()


def loaded(spec: str, load: Callable[[Path], object], version: object = "") -> Any:
    """Return an adapter over the tokenizer that `load` makes of the file; it is loaded once.

    Raises:
        AdapterError: if there is no such file, or the engine does not load it; one line with what the engine says.
    """
    path, name = model_file(spec), spec.partition(":")[0]
    try:
        tokenizer = load(path)
    except (AdapterError, KeyboardInterrupt):
        raise
    except BaseException as error:  # a panic of native code is not an Exception
        raise AdapterError(f"{one_line(spec)}: {name} does not load it: {one_line(_said(error))}") from None

    def make() -> object:
        return tokenizer

    adapter: Any = make
    adapter.__name__ = adapter.__qualname__ = name
    adapter.version, adapter.model = str(version), str(path)
    return adapter


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if isinstance(error, KeyError) or not str(error) else str(error)


def of_package(spec: str, base: Any) -> Any:
    """Return an adapter over what the class of a package makes of the file, with `from_model_file` if it has that."""
    load = getattr(base, "from_model_file", None) or getattr(base, "from_tokenizer_json", None)
    if load is None:
        name = spec.partition(":")[0]
        raise AdapterError(f"{one_line(spec)}: {name} reads no file of a model; write --adapter {name}")

    def read(path: Path) -> object:
        try:
            return load(str(path))
        except Exception:
            if is_tekken(path) and not hasattr(base, "from_model_file"):
                raise ValueError("it is a tekken.json; mistral, tiktoken and llamacpp read such a file") from None
            raise

    return loaded(spec, read, getattr(base, "version", ""))
