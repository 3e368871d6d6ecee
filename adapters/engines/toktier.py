"""`toktier:PATH`: toktier's own encoder, of a `tokenizer.json` whose sha256 toktier knows."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..packages import require
from . import loaded


class Tokenizer:
    """`toktier.Tokenizer`. Its `decode` is that of `tokenizers`."""

    def __init__(self, tokenizer: Any, home: object) -> None:
        self._tokenizer, self._home = tokenizer, home  # the directory has to exist as long as the tokenizer

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text).ids)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [list(encoding.ids) for encoding in self._tokenizer.encode_batch(list(texts))]

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))


def toktier(rest: str) -> object:
    """Return the adapter of `toktier:PATH`. It downloads nothing: the file is put into a cache of its own.

    A file that toktier does not know is refused, because toktier would leave it to `tokenizers`.
    """
    package = require("toktier")
    manifests, tables = require("toktier.artifacts.manifest"), require("toktier.artifacts.tables")
    store = require("toktier.artifacts.store")

    def load(path: Path) -> Tokenizer:
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
        return Tokenizer(package.load(family, config=config, manifest=manifest), home)

    return loaded(f"toktier:{rest}", load, package.__version__)
