"""Converts a model into tokenizers of other packages: tiktoken's `Encoding`, Hugging Face's `Tokenizer`.

A model is rejected if the package would encode differently with it. The engine of a package can read an expression that
is not one of `PATTERNS` in its own way, so such an expression is first tested on a text that has all kinds of
characters next to each other.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from itertools import chain, pairwise, product
from typing import TYPE_CHECKING

from bpe_conformance.fixtures import PATTERNS, Model

from ..patterns import pre_tokenize, resolve
from . import huggingface
from . import tiktoken as rank_files

if TYPE_CHECKING:
    import tiktoken
    import tokenizers

LARGEST_ID = 2**32 - 2  # ids are unsigned 32-bit integers in both packages; tiktoken reserves the largest one
_KINDS = (
    *"aZsSé日ʰ1٣½²,._'’-+%e$/\u0301\u200d\u001c\0🦊 \t\n\r\v\u00a0\u2028\u3000",
    *("aa", "AB", "123", "4567", "...", "  ", "\n\n", "\r\n", " \n", "'s", "'LL", "don't", "e\u0301"),
)


def to_tiktoken(model: Model, name: str) -> tiktoken.Encoding:
    """Return an encoding that returns the ids of `model`; a ValueError says why tiktoken would encode differently."""
    try:
        import tiktoken
    except ImportError:
        raise ImportError("tiktoken is not installed: pip install 'tiktoken>=0.12'") from None
    ranks, special = rank_files.ranks_of(model), _special_ids(model)
    for start, longer in pairwise(sorted(special)):  # a token is right before one that starts with it
        if longer.startswith(start):
            what = f"the special token {longer!a} starts with {start!a}"
            raise ValueError(f"{what}; tiktoken can match either")
    expression = PATTERNS.get(model.pattern, model.pattern)

    # tiktoken has no function that only splits. With all pairs of bytes as tokens, different splits give different ids.
    def ids(pieces: Sequence[str], pattern: str) -> list[int]:
        pairs = {bytes(pair): rank for rank, pair in enumerate(product(range(256), repeat=2))}
        tokens = {bytes([byte]): len(pairs) + byte for byte in range(256)} | pairs
        encoding = tiktoken.Encoding("split", pat_str=pattern, mergeable_ranks=tokens, special_tokens={})
        return list(chain.from_iterable(encoding.encode_ordinary_batch(list(pieces))))

    if expression not in PATTERNS.values():
        _compare("tiktoken", expression, lambda text: ids([text], expression), lambda ours: ids(ours, PATTERNS["none"]))
    return tiktoken.Encoding(name, pat_str=expression, mergeable_ranks=ranks, special_tokens=special)


def to_huggingface(model: Model) -> tokenizers.Tokenizer:
    """Return a tokenizer that returns the ids of `model`; a ValueError says why tokenizers would encode differently."""
    try:
        import tokenizers
    except ImportError:
        raise ImportError("tokenizers is not installed: pip install 'tokenizers>=0.21'") from None
    document = huggingface.document(model)
    _special_ids(model)

    def split(text: str) -> list[str]:
        splitter = tokenizers.pre_tokenizers.Split(tokenizers.Regex(model.pattern), "isolated")
        return [piece for piece, _ in splitter.pre_tokenize_str(text)]

    if PATTERNS.get(model.pattern, model.pattern) not in PATTERNS.values():
        _compare("tokenizers", model.pattern, split, list)
    return tokenizers.Tokenizer.from_str(json.dumps(document))


def _special_ids(model: Model) -> dict[str, int]:
    """Return special token → id, or raise a ValueError if one has no id or an id of the model is too large."""
    for index, token in model.vocab.items():
        if not 0 <= index <= LARGEST_ID:
            raise ValueError(f"the id {index} of {token!r} does not fit into 32 bits")
    ids = {token: index for index, token in model.vocab.items()}
    for text in model.special_tokens or ():
        if text.encode("utf-8") not in ids:
            raise ValueError(f"the special token {text!a} is not in the vocabulary")
    return {text: ids[text.encode("utf-8")] for text in model.special_tokens or ()}


def _compare(
    package: str,
    expression: str,
    theirs: Callable[[str], Sequence[object]],
    expected: Callable[[list[str]], Sequence[object]],
) -> None:
    """Raise a ValueError if `theirs` of a test text differs from `expected` of our pre-tokens of that text."""
    draw = random.Random(0)
    parts = [*chain.from_iterable(product(_KINDS, repeat=2)), *(draw.choice(_KINDS) for _ in range(5000))]
    text, compiled = "".join(parts), resolve(expression)
    if any(match.start() == match.end() for match in compiled.finditer(text)):
        raise ValueError(f"the pattern {expression!a} matches empty text, which {package} handles differently")
    try:
        same = theirs(text) == expected(list(pre_tokenize(text, compiled)))
    except Exception as error:  # tokenizers raises no narrower type
        raise ValueError(f"{package} rejects the pattern {expression!a}: {' '.join(str(error).split())}") from None
    if not same:
        raise ValueError(f"{package} splits differently by the pattern {expression!a}")
