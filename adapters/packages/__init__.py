"""One module for each third-party package, which adapts its tokenizer or trainer to the adapter protocol.

A module imports its package when it is loaded. Base classes are in modules named after the input of a package
(`own_ids`, `ranks`, `tokenizer_json`) and in `unitoken`.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from bpe_conformance.fixtures import Merge

from ..errors import AdapterUnavailable

Vocab: TypeAlias = Mapping[int, bytes]
Merges: TypeAlias = Sequence[Merge]
Special: TypeAlias = Sequence[str] | None
Pattern: TypeAlias = str | None


def require(module: str, install: str = "") -> Any:
    """Import a module of a package, or raise AdapterUnavailable; `install` is the argument of `pip install`."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        help_line = f"install it: pip install {install or package}"
        missing = (getattr(error, "name", "") or "").partition(".")[0]
        if missing == package and sys.modules.get(package) is None:
            raise AdapterUnavailable(f"{package} is not installed; {help_line}") from error
        raise AdapterUnavailable(f"{package} cannot be imported: {error}; {help_line}") from error


def refuse_special_tokens(special_tokens: Sequence[str]) -> None:
    if special_tokens:
        raise NotImplementedError("this package does not support special tokens")


class LearnedTable(NamedTuple):
    """The result of a trainer whose tokenizer is not tested."""

    vocab: dict[int, bytes]
    merges: list[Merge]


@contextmanager
def temporary_file(name: str, data: bytes) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        yield str(path)
