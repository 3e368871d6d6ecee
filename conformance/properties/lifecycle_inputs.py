"""The inputs of the state machine: tables, texts, trainings, and calls that an implementation may reject.

Letters, tables and special tokens differ from those in the probes of capabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from bpe_conformance.fixtures import PATTERNS, Model, gpt2_files, read_model

from ..implementation.implementation import Implementation
from ..implementation.output import scratch_folder
from ..implementation.proxy import TokenizerProxy
from ..operations import OPERATIONS
from .asking import load, posed, train


@dataclass(frozen=True)
class Origin:
    """How a tokenizer is made.

    Attributes:
        name: a unique name for its table.
        model: its vocabulary, merges, special tokens and pattern.
        made: `built`, `trained`, `loaded`, or `saved`, which means saved and then loaded.
        training: the arguments of its training, or None.
    """

    name: str
    model: Model
    made: str = "built"
    training: Mapping[str, Any] | None = None

    def make(self, implementation: Implementation) -> TokenizerProxy:
        """Make a tokenizer in this way."""
        if self.training is None and self.made == "built":
            return implementation.build(self.model)
        made = (
            None if self.training is None else train(implementation, posed("train", None, self.training).operation)[1]
        )
        if self.made == "trained":
            assert made is not None
            return made
        with scratch_folder() as folder:
            if self.made == "loaded":
                gpt2_files.write(self.model, folder)
            else:
                (made or implementation.build(self.model)).save(folder)
            return load(implementation, folder, self.model.fresh()[2])


SPECIAL = "<|s|>"
SPACED = "<| k l |>"


def _table(*merges: str, **more: Any) -> dict[str, Any]:
    return {"merges": [pair.split("+") for pair in merges], **more}


_MERGES = ("k+l", "l+m", "kl+m", " +kl", "K+L", "3+4", "m+n", "k+k", "k+\n")
_OTHERS = ("l+m", "k+l", "k+lm", "m+n", "k+k", " +k", "4+5", "L+M")
_TABLES: Mapping[str, Mapping[str, Any]] = {
    "plain": _table(*_MERGES),
    "other": _table(*_OTHERS, merge_ids=[257, 256, *range(258, 264)]),
    "special": _table(*_MERGES, special_tokens=[SPECIAL], extra=[[300, SPECIAL]]),
    "renumbered": _table(*_MERGES, special_tokens=["xx", SPECIAL], extra=[[300, SPECIAL], [301, "xx"]]),
    "unlisted": _table(*_MERGES, extra=[[300, SPECIAL], [301, "xx"]]),
    "reversed": _table(*_MERGES, byte_ids="reversed"),
    "bar": _table(*_OTHERS, special_tokens=["xx|yy"], extra=[[300, "xx|yy"]]),
    "apart": _table(*_OTHERS, special_tokens=["xx", "yy"], extra=[[300, "xx"], [301, "yy"]]),
    "joined": _table(*_OTHERS, special_tokens=["xxyy"], extra=[[300, "xxyy"]]),
}
_SPACED = _table(*_OTHERS, special_tokens=[SPACED], extra=[[300, SPACED]])
"""It is not saved, because the spelling of its special token in files is open."""
_ALIKE = (
    "klm klmn xy\u00e9 ",
    "KLM klmn xy\u00e9 ",
    "klm  klmn xy\u00e9 ",
    " klm klmn xy\u00e9",
    "klm klmn xye\u0301 ",
)
_FAMILIES: tuple[tuple[str, ...], ...] = (
    ("klm", "KLM", "Klm", "mlk", "klm ", " klm", "kl", "lm", "k?", "k\ufffd"),
    (*_ALIKE, "klmn klm xy\u00e9 ", "klm, klmn xy\u00e9 ", "klm klmn xye ", "klm klmn xy\u00e9\n"),
    tuple(one * 12 for one in _ALIKE),
    tuple("klmn" * 6 + end for end in ("kl", "lk", "mn", "nk")),
    tuple(start + " klmn" * 30 for start in ("kl", "lk", "mn")) + tuple("klmn " * 30 + end for end in ("kl", "lk")),
    (
        f"kl{SPECIAL}klm",
        f"{SPECIAL}{SPECIAL}kl",
        f"klm xx|yyy {SPECIAL} kl",
        f"klm<|klm{SPECIAL}",
        "klm xx|yyy",
        f"kl{SPACED}klm",
    ),
    ("", " ", "\n\n", " \n \n", "\ufeff", "\ufeffklm", "    ", "k"),
    ("it's IT'S 345345 klm\n\n klm", "345 3453 45", "klm's klm'S\r\n\r\nklm", "klm\n\nklm.klm"),
    # pairs of words of one 32-bit hash: CRC-32, FNV-1a and -1, Java, djb2, MurmurHash3, one-at-a-time, sdbm, xxHash
    (
        "plumless\ncostarring\ndeclinate\nAa\nhetairas\naavjr\naamvm\nurmfetsu\nazpcsgid",
        "buckeroo\nliquid\nmacallums\nBB\nmentioner\nabrul\naeraa\nrmanpzqf\nodkzfrif",
    ),
)
"""Texts that a cache confuses if its key is incomplete."""
CORPORA = (
    "klmn klmn klkl mnmn<|s|>klmn mnkl nknk",
    "knkn lknm<|s|>nmlk mnmn nmlk lklk nmlk nmlk",
    "klmn klmn klkl mnmn<|s|>klmn mnkl nkn",
    "it's 345345 KLM\n\n klm it's 345 345 KLM",
)
TRAININGS: tuple[Mapping[str, Any], ...] = tuple(
    {"text": text, "vocab_size": size, "special_tokens": special, "pattern": pattern}
    for text in CORPORA
    for size, special, pattern in ((266, (), "gpt2"), (262, (), "gpt2"), (264, (SPECIAL,), "gpt2"), (264, (), "cl100k"))
)
EVERY_MERGE = f"klm klmn mnkl kk KLM lmk 345 k\n{SPECIAL}xx|yyy xxyyy{SPACED}"
"""A text that needs each merge and special token of the tables."""
WITH_SPECIALS = _FAMILIES[5]
TEXTS = st.sampled_from(_FAMILIES).flatmap(lambda family: st.lists(st.sampled_from(family), min_size=1, max_size=8))
SIMPLEST = st.sampled_from(("", "k", SPECIAL)).map(lambda text: [text])
"""Texts whose ids an encoder may keep ready."""
ONE_TEXT = st.sampled_from(_FAMILIES[0] + WITH_SPECIALS)
NUMBERS = st.integers(0, 63)
TAILS = (b"", b"\xf0\x9f", b"\xa6\x8a", b"\xe2\x82", b"\xc3", b"\xef\xbb\xbf", b"k", b"\xff", b"\n")
"""Bytes that are decoded after a text, some of them parts of characters."""
_BAD = "klm\ud800 k"


def _failing() -> Iterator[str]:
    yield from ("klm k", "lm ")
    raise ValueError("no more chunks")


REFUSED: tuple[tuple[str, str, Callable[[TokenizerProxy, list[int]], object]], ...] = (
    ("encode", "a lone surrogate", lambda one, ids: one.encode(_BAD)),
    ("decode", "an unknown id", lambda one, ids: one.decode([*ids, 10**9])),
    ("decode_bytes", "an unknown id", lambda one, ids: one.decode_bytes([*ids, 10**9])),
    ("encode_batch", "a lone surrogate", lambda one, ids: one.encode_batch(["klm", _BAD])),
    ("encode_iterable", "a lone surrogate", lambda one, ids: one.stream(iter(["klm", _BAD]))),
    ("encode_iterable", "an iterator that raises an error", lambda one, ids: one.stream(_failing())),
)
METHODS = {**{name: kind.needs[0] for name, kind in OPERATIONS.items()}, "encode_allowed": "encode"}


def origins(implementation: Implementation, in_files: bool = True) -> list[Origin]:
    """Return the ways to build tokenizers that the implementation supports.

    Args:
        implementation: the implementation under test.
        in_files: whether to leave out tables that cannot be written to files.
    """
    special, ranked = "special" in implementation.capabilities, implementation.conventions["lookup"] == "bytes"
    tables = _TABLES if in_files else {**_TABLES, "spaced": _SPACED}
    models = {name: read_model(table) for name, table in tables.items()}
    for name in PATTERNS:
        if f"pattern:{name}" in implementation.capabilities:
            models[name] = replace(models["special" if special else "plain"], pattern=name)
    return [
        Origin(name, one)
        for name, one in models.items()
        if (special or not one.special_tokens) and (one.ranks_by_bytes or not ranked)
    ]
