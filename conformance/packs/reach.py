"""Finds which tokens and merges of a model texts reach: a text for each token, and the coverage of many texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

from bpe_conformance.fixtures import Merge, Model
from bpe_conformance.fixtures.characters import NEWER, agreed
from bpe_conformance.fixtures.pipeline import Punctuation
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Word

from ..known_bugs.bases import BaseEncoder, like
from ..operations import Encode, Expected, Operation, Setting, oracle
from ..operations.divergence import merge_steps
from ..terminal import show

SURROUNDINGS: tuple[tuple[str, str], ...] = (  # text around a token that is not a pre-token by itself
    *(("", after) for after in ("", " a", "a", "1", "!", "\n", "\na", "  ", "A", "é", "日", "s", "LL", "Ve", "T")),
    *((before, "") for before in ("a", "1", "\n", "!", " ", "'", "a'", "A", "é", "日", "\t", *")*/-;}#=")),
    *((both, both) for both in "a1!."),
    *(("a", " a"), ("1", " "), ("a", "!"), ("!", "a")),
)
MOST_BODIES = 4096  # how many texts are tried around the bytes of a token that is not UTF-8
FARTHEST = 0x40000  # from here on, all characters are for private use or unassigned, and no others are planned
CONTINUATION = bytes(range(0x80, 0xC0))
NO_UTF8 = "in no UTF-8 text"
NOT_BUILT = "not built by the merges"
CHANGED = "in no normalized text"
UNSETTLED = "with a character whose class depends on the version of Unicode"
NOT_FOUND = "in no text that was tried"
IMPOSSIBLE = (NO_UTF8, NOT_BUILT, CHANGED, UNSETTLED)


class _Cached(textbook.Encoding):
    """Merges each pre-token once, and looks for special tokens only in texts that contain one."""

    words: dict[str, Word]
    any_special: re.Pattern[str]

    def find_special(self, text: str, allowed: list[str]) -> textbook.Segments:
        normalized = self.normalize(text)
        if self.any_special.search(text) or self.any_special.search(normalized):
            return super().find_special(text, allowed)
        return [(normalized, False)] if text else []

    def word(self, pre_token: str) -> Word:
        if (known := self.words.get(pre_token)) is None:
            known = self.words[pre_token] = self.merge(self.atoms(pre_token))
        return known

    def encode_pre_token(self, pre_token: str) -> list[int]:
        return [self.ids[token] for token in self.word(pre_token)]


class _Oracle(_Cached, textbook.Tokenizer):
    """The textbook's tokenizer, cached, with all special tokens."""

    def segments(self, text: str, *_: object) -> textbook.Segments:
        return self.find_special(text, self.special)


@dataclass(frozen=True)
class _CachedSetting(Setting):
    oracle: Any = None  # an `_Oracle`


class Reach:
    """The textbook's encoder of one model, cached by pre-token, and what it can reach."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.special = list(dict.fromkeys(model.special_tokens or ()))
        self.special_tokens = {text.encode("utf-8") for text in self.special}
        right = oracle(model)
        texts = sorted({*self.special, *map(right.normalize, self.special)}, key=len, reverse=True)
        any_special = re.compile("|".join(map(re.escape, texts)) or "(?!)")
        self.oracle = like(right, _Oracle, words={}, any_special=any_special)
        self._settings: dict[str, Setting] = {}
        for key in Encode("").keys(model):
            is_other = key == "bytes" or not model.pipeline
            encoder = like(self.oracle, _Oracle, words={}, lookup=key) if is_other else self.oracle
            self._settings[key] = _CachedSetting(model, oracle=encoder)
        self.is_normalized = model.pipeline is not None and bool(model.pipeline.normalizer)
        self.cuts_punctuation = any(isinstance(step, Punctuation) for step in model.steps.steps)
        self._steps: dict[bytes, tuple[Word, list[Merge]]] = {}

    def wrong(self, kind: type[textbook.Encoding]) -> Any:
        """Return an incorrect encoder of the model, which merges each pre-token once, too."""
        is_same = all(getattr(kind, name) is getattr(BaseEncoder, name) for name in ("atoms", "merge", "stays_whole"))
        words = self.oracle.words if is_same else {}
        return like(self.oracle, type(kind.__name__, (kind, _Cached), {}), words=words)

    def is_open(self, text: str) -> bool:
        """Whether the normal form of a character, or what a step cuts out, depends on the engine's Unicode version."""
        return (self.is_normalized and NEWER.search(text) is not None) or (
            self.cuts_punctuation and any(map(_is_new_punctuation, text))
        )

    def segments(self, text: str) -> textbook.Segments:
        """Return the normalized segments of a text, and whether each is a special token."""
        return self.oracle.find_special(text, self.special)

    def pre_tokens(self, text: str) -> list[str]:
        """Return the pre-tokens, those of a model with a pipeline as mapped characters."""
        ordinary = (segment for segment, special in self.segments(text) if not special)
        return [piece for segment in ordinary for piece in self.oracle.split(segment)]

    def tokens(self, text: str) -> list[bytes]:
        return [token for piece in self.pre_tokens(text) for token in self.oracle.word(piece)]

    def ids(self, text: str) -> list[int]:
        return self.oracle.encode_segments(self.segments(text))

    def expected(self, operation: Operation) -> Expected:
        """Return the answers of an operation under every lookup, as its `compute` does."""
        return Expected.merged({key: (operation.computed(setting),) for key, setting in self._settings.items()})

    def steps(self, data: bytes) -> tuple[Word, list[Merge]]:
        """Return the tokens of a pre-token's bytes, and the merges in order.

        >>> from bpe_conformance.fixtures import read_model
        >>> Reach(read_model({"merges": [["b", "c"], ["a", "bc"]]})).steps(b"abc")
        ((b'abc',), [(b'b', b'c'), (b'a', b'bc')])
        """
        if (known := self._steps.get(data)) is None:
            word = tuple(data[place : place + 1] for place in range(len(data)))
            steps = list(merge_steps(word, self.model.ranks.get))
            made = [(before[here], before[here + 1]) for before, _, here, _ in steps]
            known = self._steps[data] = steps[-1][-1] if steps else word, made
        return known

    def text_for(self, token: bytes) -> str | None:
        """Return a text whose encoding contains `token`, or None if none was found."""
        bodies = list(filter(settled, bodies_of(token)))
        for before, after in SURROUNDINGS:
            for body in bodies:
                if token in self.tokens(text := before + body + after):
                    return text
            bodies = bodies[:16]
        return None

    def why_not(self, token: bytes) -> tuple[str, str]:
        """Return why no text was found for a token: a general reason, and an example.

        If the merges do not build it from its bytes alone, no text has it: inside a token only its own bytes merge.
        """
        if not (bodies := list(bodies_of(token))):
            return NO_UTF8, f"<{show.hex_line(token)}>"
        if all(self.oracle.normalize(body) != body for body in bodies):
            return CHANGED, show.token(token)  # each part of a normalized text is normalized
        built = self.steps(token)[0]
        if built != (token,):
            return NOT_BUILT, f"{show.token(token)} is {' | '.join(map(show.token, built))}"
        return NOT_FOUND if settled(bodies[0]) else UNSETTLED, show.token(token)  # what is added to it always is

    def can_merge(self, pair: Merge) -> bool:
        """Whether a merge is possible: on the bytes of its result alone, it is the last merge."""
        word, made = self.steps(pair[0] + pair[1])
        return len(word) == 1 and made[-1] == pair


def _is_new_punctuation(char: str) -> bool:
    """Whether it has become punctuation, or ceased to be, since Unicode 3.2: tokenizers 0.23 knows an old version."""
    return (unicodedata.category(char)[0] == "P") is not (unicodedata.ucd_3_2_0.category(char)[0] == "P")


def settled(text: str) -> bool:
    """Whether engines with different versions of Unicode agree on the classes of all characters (SPLIT-UNICODE-2)."""
    return all(ord(char) >= FARTHEST or char in _settled() for char in text)


@cache
def _settled() -> frozenset[str]:
    return frozenset("".join(agreed()))


def text_of(token: bytes) -> str:
    """Return the text of a token, or "" if it is not UTF-8 or not `settled`."""
    try:
        text = token.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return text if settled(text) else ""


def bodies_of(token: bytes) -> Iterator[str]:
    r"""Yield texts whose UTF-8 contains `token` and only characters that it overlaps.

    >>> list(bodies_of(b"ab")), next(bodies_of(b"\xacx")), list(bodies_of(b"\xff"))
    (['ab'], '¬x', [])
    """
    beginnings, ends = _completions()
    head = token[: len(token) - len(token.lstrip(CONTINUATION))]
    tail = token[len(token.rstrip(CONTINUATION)) - 1 :]
    befores = beginnings.get(head, []) if head else [b""]
    afters = ends.get(tail, [b""])
    most = 64 if head and tail in ends else MOST_BODIES
    for before, after in product(_spread(befores, most), _spread(afters, most)):
        try:
            yield (before + token + after).decode("utf-8")
        except UnicodeDecodeError:
            continue


@cache
def _completions() -> tuple[dict[bytes, list[bytes]], dict[bytes, list[bytes]]]:
    """Return the last bytes of characters → those before, and the first bytes → those after."""
    codes = sorted(ord(char) for char in _settled() if "\x7f" < char < chr(FARTHEST))
    beginnings: dict[bytes, list[bytes]] = {}
    ends: dict[bytes, list[bytes]] = {}
    for code in (*codes, *range(FARTHEST, 0x110000, 257)):
        char = chr(code).encode("utf-8")
        for cut in range(1, len(char)):
            beginnings.setdefault(char[cut:], []).append(char[:cut])
            ends.setdefault(char[:cut], []).append(char[cut:])
    return beginnings, ends


def _spread(items: list[bytes], most: int) -> list[bytes]:
    return items[:: -(-len(items) // most) or 1]


# Coverage

SHOWN = 20


def ordinary(reach: Reach) -> list[bytes]:
    return [token for _, token in sorted(reach.model.vocab.items()) if token not in reach.special_tokens]


def measure(reach: Reach, texts: Iterable[str], alone: Collection[bytes] = ()) -> dict[str, Any]:
    """Return how many tokens and merges the texts and the tokens `alone` reach, and why others are not reached."""
    every = ordinary(reach)
    tokens = {*alone, *(token for text in texts for token in reach.tokens(text))}.intersection(every)
    because: dict[str, dict[str, Any]] = {}
    impossible = 0
    for token in every:
        if token not in tokens:
            reason, example = reach.why_not(token)
            impossible += reason in IMPOSSIBLE
            found = because.setdefault(reason, {"count": 0, "examples": []})
            found["count"] += 1
            if len(found["examples"]) < SHOWN:
                found["examples"].append(example)
    merges = set(reach.model.merges)
    made = {merge for token in tokens for merge in reach.steps(token)[1]}  # inside a token, only its own bytes merge
    cannot = sum(not reach.can_merge(pair) for pair in merges - made)
    of_tokens = {"all": len(every), "reached": len(tokens), "impossible": impossible}
    of_merges = {"all": len(merges), "reached": len(made), "impossible": cannot}
    return {"tokens": of_tokens, "merges": of_merges, "not_reached": because}
