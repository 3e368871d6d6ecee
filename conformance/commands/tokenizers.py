"""The tokenizer that a command's options name."""

from __future__ import annotations

import argparse

from bpe_conformance.reference import Tokenizer

from ..packs import tables


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a model."""
    parser.add_argument(
        "tokenizer",
        metavar="TABLE",
        help="gpt2, cl100k or o200k; a directory written by train, or with vocab.json and merges.txt; "
        "a rank file (base64 rank); a tokenizer.json",
    )
    tables.options(parser)


def read(word: str, options: argparse.Namespace) -> tables.Table:
    """Read the model.

    Raises:
        CommandError: one line, if it cannot be read.
    """
    return tables.read_table([word], tables.given(options))


def tokenizer(options: argparse.Namespace) -> Tokenizer:
    """Return the tokenizer."""
    return Tokenizer.from_model(read(options.tokenizer, options).model)
