"""What laws about histories of calls have in common."""

from __future__ import annotations

from collections.abc import Iterable

from bpe_conformance.fixtures import Model

from ..cases import divergence
from ..cases.difference import Difference
from ..cases.expectations import oracle
from ..implementation.implementation import Implementation
from ..implementation.proxy import TokenizerProxy
from ..terminal import show

NEARLY_ALIKE = tuple(
    one * times
    for times in (1, 8, 9, 60)
    for one in (
        "ab cd xyz\u00e9 ",
        "AB cd xyz\u00e9 ",
        "ab  cd xyz\u00e9 ",
        "ab\tcd xyz\u00e9\n",
        " ab cd xyz\u00e9",
        "ab cd xyze\u0301 ",
        "ab cd xyze ",
        "ab cd xyz ",
        "\uff41b cd xyz\u00e9 ",
        "ab, cd xyz\u00e9 ",
        "ab cd xyz\u200b\u00e9 ",
        "cd ab xyz\u00e9 ",
        "ba cd xyz\u00e9 ",
    )
)
"""Texts, short and long, that differ in case, white space, accents, normal form, signs, order or repetition only.

What keeps results by less than the whole text takes some of them for one another.
"""
SAME_ENDS = (
    *(f"abcd{'x' * middle}{one}{'y' * middle}abcd" for middle in (8, 40, 90, 150) for one in ("ab", "ba", "cd")),
    *(f"{'abcdef' * times}{one}" for times in (4, 8, 20, 50, 100) for one in ("xyz", "xzy", "abz")),
    *(f"{one} {'abcdef' * 100}" for one in ("xyz", "xzy", "abz")),
    *(f"{'abcdef ' * 600}{one}" for one in ("xyz", "xzy")),
    *(f"{one}{' abcdef' * 600}" for one in ("xyz", "xzy")),
    *(f"{'abcdef ' * 300}{one}{' abcdef' * 300}" for one in ("xyz", "xzy")),
)
"""Texts of one length that begin or end alike, or both: up to 4,200 characters are the same."""


def encodings_match(
    implementation: Implementation,
    proxy: TokenizerProxy,
    model: Model,
    texts: Iterable[str],
    told: str,
    splitting: bool = False,
) -> Difference | None:
    """Return how the first of these texts that is encoded otherwise than by the oracle differs.

    Args:
        implementation: the implementation.
        proxy: its tokenizer, which has this model.
        model: the model.
        texts: what is encoded, one after the other.
        told: what these calls are calls of.
        splitting: whether the texts are there for their pre-tokens.
    """
    lookup = implementation.conventions["lookup"]
    right = oracle(model, lookup)
    for number, text in enumerate(texts):
        expected, got = right.encode(text), proxy.encode(text)
        if got != expected:
            around = show.first_difference(expected, got)
            return Difference(
                f"{show.text_line(text)}, call {number + 1} of {told}",
                show.ids(expected, model.vocab, around),
                show.ids(got, model.vocab, around),
                divergence.encoding(model, text, expected, got, splitting=splitting, lookup=lookup),
            )
    return None
