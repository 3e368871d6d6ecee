"""Adapters that are built from a model's file, as a user of the engine loads it: `NAME:PATH`.

An adapter translates arguments and repairs nothing. Its `model` is the path, so that a pack of that model fits.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bpe_conformance.reference.formats import MODEL_FILES, gguf, huggingface, tekken

from .bridge.client import RemoteTokenizer, bridge
from .errors import AdapterError, BridgeError, one_line
from .packages import calls, require
from .signature import factory

LANGUAGES = Path(__file__).parent / "languages"


def model_file(spec: str) -> Path:
    """Return the absolute path of the file that `NAME:PATH` names; a directory stands for the file in it."""
    name, _, rest = spec.partition(":")
    if not rest:
        raise AdapterError(f"{name} names no file; write {name}:PATH of a model's file")
    path = Path(rest)
    if path.is_dir():
        path = next((path / name for name in MODEL_FILES if (path / name).is_file()), path)
    if not path.is_file():
        what = f"{' or '.join(MODEL_FILES)} in this directory" if path.is_dir() else "such file"
        raise AdapterError(f"{one_line(spec)}: there is no {what}; write {name}:PATH of a model's file")
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
        kind = f"{type(error).__name__}: " if isinstance(error, KeyError) or not str(error) else ""
        raise AdapterError(f"{one_line(spec)}: {name} does not load it: {one_line(f'{kind}{error}')}") from None

    return factory(lambda: tokenizer, name, version=str(version), model=str(path))


def of_package(spec: str, base: Any) -> Any:
    """Return an adapter over what the class of a package makes of the file, with `from_model_file` if it has that."""
    if (load := getattr(base, "from_model_file", None) or getattr(base, "from_tokenizer_json", None)) is None:
        name = spec.partition(":")[0]
        raise AdapterError(f"{name} reads no file of a model; write --adapter {name}")

    def read(path: Path) -> object:
        try:
            return load(str(path))
        except Exception:
            if tekken.is_tekken(path) and not hasattr(base, "from_model_file"):
                raise ValueError("it is a tekken.json; mistral, tiktoken and llamacpp read such a file") from None
            raise

    return loaded(spec, read, getattr(base, "version", ""))


# Mistral's own tokenizer (on PyPI: mistral-common), of a `tekken.json`


class MistralTokenizer:
    """`mistral_common.tokens.tokenizers.tekken.Tekkenizer`. Its `encode` finds no special tokens in a text."""

    encode = calls("encode", list, bos=False, eos=False)

    def __init__(self, tekkenizer: Any, keep: Any) -> None:
        self._tokenizer, self._keep = tekkenizer, keep

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), special_token_policy=self._keep))


def mistral(rest: str) -> object:
    package = require("mistral_common", "mistral-common")
    base = require("mistral_common.tokens.tokenizers.base", "mistral-common")
    tekkenizer = require("mistral_common.tokens.tokenizers.tekken", "mistral-common")

    def load(path: Path) -> MistralTokenizer:
        if not tekken.is_tekken(path):
            raise ValueError("this is no tekken.json, which has `config` and `vocab`; mistral reads no other file")
        return MistralTokenizer(tekkenizer.Tekkenizer.from_file(path), base.SpecialTokenPolicy.KEEP)

    return loaded(f"mistral:{rest}", load, package.__version__)


# Programs in JavaScript


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


class _Toktier:
    """`toktier.Tokenizer`. Its `decode` is that of `tokenizers`."""

    encode = calls("encode", lambda encoding: list(encoding.ids))
    encode_batch = calls("encode_batch", lambda encodings: [list(encoding.ids) for encoding in encodings])
    decode = calls("decode", str, skip_special_tokens=False)

    def __init__(self, tokenizer: Any, home: object) -> None:
        self._tokenizer, self._home = tokenizer, home  # the directory has to exist as long as the tokenizer


def toktier(rest: str) -> object:
    """Return the adapter of `toktier:PATH`, which downloads nothing: the file is put into a cache of its own."""
    package = require("toktier")
    manifests, tables = require("toktier.artifacts.manifest"), require("toktier.artifacts.tables")
    store = require("toktier.artifacts.store")

    def load(path: Path) -> _Toktier:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        entries = manifests.ArtifactManifest.load(tables.ARTIFACT_MANIFEST).entries
        known = {entry.file("tokenizer.json").sha256: entry for entry in entries.values()}.get(digest)
        if known is None:
            raise ValueError("it is none of the files that toktier knows; it would call tokenizers")
        family, file = known.family, known.file("tokenizer.json")
        manifest = manifests.ArtifactManifest({family: replace(known, files=(file,))})
        home = tempfile.TemporaryDirectory(prefix="bpe-conformance-")
        config = package.Config(home=home.name, offline=True)
        cached = store.ArtifactStore(manifest, config=config).directory(family)
        cached.mkdir(parents=True)
        shutil.copy(path, cached / "tokenizer.json")
        return _Toktier(package.load(family, config=config, manifest=manifest), home)

    return loaded(f"toktier:{rest}", load, package.__version__)
