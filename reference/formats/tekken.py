"""Reads Mistral's `tekken.json`: ranks in order, and the pattern.

Source: mistralai/mistral-common `src/mistral_common/tokens/tokenizers/tekken.py`. The id of a token is its rank plus
the number of special tokens, which no text contains: they are left out. Only so many ranks count that the ids are below
`default_vocab_size`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import Model
from bpe_conformance.fixtures.expression import compile_expression
from bpe_conformance.fixtures.files import AnyPath, parse_json
from bpe_conformance.fixtures.one_line import shortened
from bpe_conformance.fixtures.pipeline import ByteLevel, Pipeline, Split

from ..pipeline import model_of
from . import read_utf8
from .tiktoken import check_bytes, merges_of_ranks, read_token


def read(path: AnyPath) -> Model:
    """Read a model, without special tokens; a ValueError if the file is malformed."""
    document = parse_json(read_utf8(path), str(path))
    match document:
        case {
            "config": {
                "pattern": str(pattern),
                "default_vocab_size": int(size),
                "default_num_special_tokens": int(first),
            },
            "vocab": [*entries],
        } if 0 <= first <= size <= first + len(entries):
            pass
        case _:
            raise ValueError(f"{path}: expected `config`, with pattern and sizes, and as many entries of `vocab`")
    try:
        compile_expression(pattern)
    except ValueError as error:
        raise ValueError(f"{path}: config: {error}") from None
    ranks: dict[bytes, int] = {}
    for rank, entry in enumerate(entries[: size - first]):
        where = f"{path}: vocab[{rank}]"
        match entry:
            case {"rank": int(stated), "token_bytes": str(written)} if stated == rank:
                token = read_token(written, where)
            case _:
                raise ValueError(f"{where} is {shortened(entry)}; expected the rank {rank} and token_bytes")
        if not token or ranks.setdefault(token, rank) != rank:
            raise ValueError(f"{where}: the token {shortened(token)} is empty or a duplicate")
    check_bytes(ranks, str(path))
    vocab = {first + rank: token for token, rank in ranks.items()}
    merges = tuple(merges_of_ranks(ranks))
    lookup = "pair" if len(merges) + 256 == len(ranks) else "whole"  # which finds tokens that no merge builds
    return model_of(vocab, merges, Pipeline(steps=(Split(pattern), ByteLevel(split=False)), lookup=lookup))


def is_tekken(document: Any) -> bool:
    """Whether this is a tekken.json: the path of a file, or what it contains."""
    if isinstance(document, Path):
        with suppress(ValueError):
            document = parse_json(read_utf8(document), str(document))
    return isinstance(document, Mapping) and "config" in document and "vocab" in document
