"""A table as Hugging Face's `tokenizer.json`, for the packages that take nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bpe_conformance.fixtures import Merge, Model
from bpe_conformance.reference.formats import huggingface


def write_tokenizer_json(
    folder: str,
    vocab: Mapping[int, bytes],
    merges: Sequence[Merge],
    special_tokens: Sequence[str] | None,
    pattern: str | None,
) -> str:
    """Write a `tokenizer.json` into `folder`, and return its path.

    Args:
        folder: where to; the file is only needed until the package has read it.
        vocab: id → bytes; of two ids for the same bytes only the first is kept: the form holds no more.
        merges: pairs in order of rank.
        special_tokens: those that the vocabulary lacks get max(ids)+1, +2, …: the form wants an id for each.
        pattern: a regular expression for `Split(isolated)`; None is the one built into `ByteLevel`.

    Raises:
        ValueError: if the form cannot hold the table.
    """
    ids = {token: index for index, token in reversed(dict(vocab).items())}
    free = max(vocab, default=-1) + 1
    special = list(dict.fromkeys(special_tokens or ()))
    for text in special:
        if ids.setdefault(text.encode("utf-8"), free) == free:
            free += 1
    table = {index: token for token, index in ids.items()}
    path = Path(folder, "tokenizer.json")
    huggingface.write(path, Model(table, tuple(merges), tuple(special), "gpt2" if pattern is None else pattern))
    return str(path)
