"""Adapters of third-party packages: each adapts a tokenizer or trainer to the adapter protocol.

Packages that need more than a few lines have a module, which imports the package when it is loaded. The others are
together in modules named after what such a package takes (`own_ids`, `ranks`, `tokenizer_json`), ships
(`vocabularies`), wraps (`unitoken`) or does (`trainers`); a class there is an `OfPackage`.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

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


class OfPackage:
    """An adapter that imports its package when it is named."""

    module: ClassVar[str]
    install: ClassVar[str] = ""  # the argument of `pip install`, if it is not the name of the module
    package: ClassVar[Any]
    version: ClassVar[str]

    @classmethod
    def import_package(cls) -> None:
        cls.package = require(cls.module, cls.install)
        distribution = (cls.install or cls.module).strip("'").partition(">")[0]
        try:
            cls.version = version(distribution)
        except PackageNotFoundError:  # a source directory on the path
            cls.version = getattr(cls.package, "__version__", "")


def calls(method: str, make: Callable[[Any], Any] = lambda result: result, *more: Any, **options: Any) -> Any:
    """Return a method of an adapter: it calls one of the package's tokenizer, and makes Python's type of the result."""

    def call(self: Any, argument: str | Sequence[Any]) -> Any:
        passed = argument if isinstance(argument, str) else list(argument)
        return make(getattr(self._tokenizer, method)(passed, *more, **options))

    return call


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
