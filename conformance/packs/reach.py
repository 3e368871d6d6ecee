"""Finds which tokens and merges of a model texts reach: a text for each token, and the coverage of many texts."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import islice, pairwise, product
from typing import Any

import regex

from bpe_conformance.fixtures import PATTERNS, Merge, Model
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Word

from ..terminal import show
from .draws import Draw
from .patterns import compiled

SURROUNDINGS = (
    ("", ""),
    ("", " a"),
    ("a", ""),
    ("1", ""),
    ("a", " a"),
    ("", "a"),
    ("", "1"),
    ("", "!"),
    ("", "\n"),
    ("", "\na"),
    ("\n", ""),
    ("!", ""),
    (" ", ""),
    ("'", ""),
    ("a'", ""),
    ("A", ""),
    ("", "A"),
    ("", "  "),
    ("", "é"),
    ("é", ""),
    ("a", "a"),
    ("1", "1"),
    ("!", "!"),
    (".", "."),
    ("1", " "),
    ("日", ""),
    ("", "日"),
    ("a", "!"),
    ("!", "a"),
    ("\t", ""),
    *((mark, "") for mark in ")*/-;}#="),
    ("", "s"),
    ("", "LL"),
    ("", "Ve"),
    ("", "T"),
)
"""Text around a token that is not a pre-token by itself."""
MOST_BODIES = 4096
"""How many texts are tried around the bytes of a token that is not UTF-8."""
FARTHEST = 0x40000
"""From here on, all characters are for private use or unassigned, and no others are planned."""
CONTINUATION = [bytes([byte]) for byte in range(0x80, 0xC0)]
NO_UTF8 = "no UTF-8 text contains their bytes"
NOT_BUILT = "the merges do not build them from their bytes"
UNSETTLED = "one of their characters has another class in another version of Unicode"
NOT_FOUND = "no text was found that has them"
IMPOSSIBLE = (NO_UTF8, NOT_BUILT, UNSETTLED)


class Reach:
    """The encoder of one model, cached by pre-token, and what it can reach.

    Args:
        model: its vocabulary and merges.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.ranks = model.ranks
        compiled(model.pattern)
        self._pattern = PATTERNS[model.pattern]
        self._known: dict[str, Word] = {}

    def pre_tokens(self, text: str) -> list[str]:
        """Return the pre-tokens of a text, without special tokens."""
        segments = textbook.cut_special(text, self.model.special_tokens or ())
        return [piece for part, special in segments if not special for piece in textbook.split(part, self._pattern)]

    def merged(self, pre_token: str) -> Word:
        """Return the tokens of a pre-token."""
        known = self._known.get(pre_token)
        if known is None:
            known = self._known[pre_token] = textbook.merge_by_pair(textbook.atoms(pre_token), self.ranks)
        return known

    def tokens(self, text: str) -> list[bytes]:
        """Return the ordinary tokens of a text."""
        return [token for piece in self.pre_tokens(text) for token in self.merged(piece)]

    def steps(self, data: bytes) -> tuple[Word, list[Merge]]:
        """Return the tokens of a pre-token's bytes, and the merges in order.

        >>> from bpe_conformance.fixtures import read_model
        >>> Reach(read_model({"merges": [["b", "c"], ["a", "bc"]]})).steps(b"abc")
        ((b'abc',), [(b'b', b'c'), (b'a', b'bc')])
        """
        word = tuple(data[place : place + 1] for place in range(len(data)))
        made: list[Merge] = []
        while True:
            found = [(self.ranks[pair], place) for place, pair in enumerate(pairwise(word)) if pair in self.ranks]
            if not found:
                return word, made
            here = min(found)[1]
            made.append((word[here], word[here + 1]))
            word = (*word[:here], word[here] + word[here + 1], *word[here + 2 :])

    def text_for(self, token: bytes) -> str | None:
        """Return a text whose encoding contains `token`, or None if none was found."""
        bodies = list(islice(filter(settled, bodies_of(token)), MOST_BODIES))
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
        if next(bodies_of(token), None) is None:
            return NO_UTF8, f"<{show.hex_line(token)}>"
        built = self.steps(token)[0]
        if built != (token,):
            return NOT_BUILT, f"{show.token(token)} is {' | '.join(map(show.token, built))}"
        if not any(map(settled, bodies_of(token))):
            return UNSETTLED, show.token(token)
        return NOT_FOUND, show.token(token)

    def can_merge(self, pair: Merge) -> bool:
        """Whether a merge is possible: on the bytes of its result alone, it is the last merge."""
        word, made = self.steps(pair[0] + pair[1])
        return len(word) == 1 and made[-1] == pair


def settled(text: str) -> bool:
    """Whether every character has the same class in Python and in `regex`, which follow different Unicode versions.

    Where versions differ, correct engines split differently (SPLIT-UNICODE-2).
    """
    return all(map(_is_settled, text))


@cache
def _is_settled(char: str) -> bool:
    category = unicodedata.category(char)
    if category == "Cn":
        return ord(char) >= FARTHEST
    return in_category(char, category)


def in_category(char: str, category: str) -> bool:
    """Whether a character has a general category in the version of Unicode that `regex` follows."""
    return _category(category).match(char) is not None


@cache
def _category(name: str) -> regex.Pattern[str]:
    return regex.compile(rf"\p{{{name}}}")


def text_of(token: bytes) -> str:
    """Return the text of a token, or "" if it is not UTF-8 or not `settled`."""
    try:
        text = token.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return text if settled(text) else ""


def bodies_of(token: bytes) -> Iterator[str]:
    r"""Yield the texts whose UTF-8 contains `token` and only characters that it overlaps.

    >>> list(bodies_of(b"ab")), next(bodies_of(b"\xacx")), list(bodies_of(b"\xff"))
    (['ab'], '¬x', [])
    """
    leading = next((place for place, byte in enumerate(token) if not 0x80 <= byte < 0xC0), len(token))
    trailing = next(
        (back for back in range(1, min(4, len(token) + 1)) if token[-back] >= 0xC0 and back < _length(token[-back])), 0
    )
    if leading > 3:
        return
    befores, afters = _before(token[:leading]), _after(token[-trailing:] if trailing else b"")
    for before, after in product(befores, afters):
        try:
            yield (before + token + after).decode("utf-8")
        except UnicodeDecodeError:
            continue


def _length(lead: int) -> int:
    return 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4


def _before(continuations: bytes) -> list[bytes]:
    """Return bytes that begin a character, which these continuation bytes complete."""
    if not continuations:
        return [b""]
    two = [bytes([lead]) for lead in range(0xC2, 0xE0)]
    three = [bytes([lead]) for lead in range(0xE0, 0xF0)]
    four = [bytes([lead]) for lead in range(0xF0, 0xF5)]
    longer = _spread([lead + byte for lead, byte in product(three, CONTINUATION)])
    found = {
        1: [*two, *longer, *(lead + byte for lead, byte in product(four, _pairs()[::3]))],
        2: [*three, *(lead + byte for lead, byte in product(four, CONTINUATION[::3]))],
        3: four,
    }
    return [before for before in found[len(continuations)] if _is_character(before + continuations)]


def _after(begun: bytes) -> list[bytes]:
    """Return bytes that complete a character which `begun` begins."""
    missing = _length(begun[0]) - len(begun) if begun else 0
    triples = [first + rest for first, rest in product(CONTINUATION[::5], _pairs()[::5])]
    return {0: [b""], 1: CONTINUATION, 2: _pairs(), 3: triples}[missing]


def _pairs() -> list[bytes]:
    """Return 64 pairs of continuation bytes; each byte occurs once as first and once as second."""
    return [CONTINUATION[place] + CONTINUATION[(7 * place + 11) % len(CONTINUATION)] for place in range(64)]


def _spread(items: list[bytes], most: int = 128) -> list[bytes]:
    return items[:: max(1, len(items) // most)]


def _is_character(data: bytes) -> bool:
    """Whether the bytes are one character."""
    try:
        return len(data.decode("utf-8")) == 1
    except UnicodeDecodeError:
        return False


# Coverage

SIZE = 160
"""Tokens in a text."""
JOINTS = ("", "\n", "1", " a", " ", "a", "!", "\na", "1 ", "é")
"""Separators of tokens in a text. Each token gets the first one that does not change it."""
SHOWN = 20


@dataclass
class Coverage:
    """How much of a model the texts reach.

    Attributes:
        tokens: the number of ordinary tokens, of those reached, and of those that cannot be reached.
        merges: likewise.
        because: reason → the number of tokens that are not reached, and examples.
    """

    tokens: dict[str, int] = field(default_factory=dict)
    merges: dict[str, int] = field(default_factory=dict)
    because: dict[str, dict[str, Any]] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"tokens": self.tokens, "merges": self.merges, "not_reached": self.because}

    def lines(self) -> list[str]:
        """Return the lines to print."""
        lines = [_share("tokens", self.tokens), _share("merges", self.merges)]
        for reason, found in self.because.items():
            lines.append(f"  {found['count']:>7,} tokens: {reason}, such as {', '.join(found['examples'][:3])}")
        return lines


def _share(what: str, counts: Mapping[str, int]) -> str:
    possible = counts["all"] - counts["impossible"]
    share = f"{100 * counts['reached'] / possible:.2f} % of those possible" if possible else "none is possible"
    return f"{what:10}{counts['reached']:>9,} of {counts['all']:,} reached, {share}"


def ordinary(reach: Reach) -> list[bytes]:
    """Return the tokens that are not special, by id."""
    special = {text.encode("utf-8") for text in reach.model.special_tokens or ()}
    return [token for _, token in sorted(reach.model.vocab.items()) if token not in special]


def covering(reach: Reach, draw: Draw) -> tuple[list[str], list[bytes]]:
    """Return texts that together have every token for which a text was found, and the other tokens."""
    texts = {token: reach.text_for(token) for token in ordinary(reach)}
    missing = [token for token, text in texts.items() if text is None]
    pending = _shuffled(draw, [(token, text) for token, text in texts.items() if text is not None])
    made: list[str] = []
    for joint in JOINTS:
        fitting = [one for one in pending if _fits(reach, *one, joint)]
        left = dict.fromkeys(one for one in pending)
        for start in range(0, len(fitting), SIZE):
            group = fitting[start : start + SIZE]
            text = joint.join(["", *(text for _, text in group), ""])
            found = set(reach.tokens(text))
            hit = [one for one in group if one[0] in found]
            if 2 * len(hit) >= len(group):
                made.append(text)
                for one in hit:
                    del left[one]
        pending = list(left)
    alone: set[bytes] = set()
    for token, text in pending:
        if token not in alone:
            made.append(text)
            alone.update(reach.tokens(text))
    return made, missing


def _fits(reach: Reach, token: bytes, text: str, joint: str) -> bool:
    return reach.tokens(joint.join(["", text, text, ""])).count(token) >= 2


def _shuffled(draw: Draw, items: list[tuple[bytes, str]]) -> list[tuple[bytes, str]]:
    """Return the items in random order, in linear time; `Draw.shuffled` takes quadratic time."""
    for last in range(len(items) - 1, 0, -1):
        other = draw.below(last + 1)
        items[last], items[other] = items[other], items[last]
    return items


def measure(reach: Reach, texts: Iterable[str]) -> Coverage:
    """Return how much of the model these texts reach."""
    tokens: set[bytes] = set()
    merges = set()
    for piece in dict.fromkeys(piece for text in texts for piece in reach.pre_tokens(text)):
        word, made = reach.steps(piece.encode("utf-8"))
        tokens.update(word)
        merges.update(made)
    every = ordinary(reach)
    coverage = Coverage()
    impossible = 0
    for token in every:
        if token not in tokens:
            reason, example = reach.why_not(token)
            impossible += reason in IMPOSSIBLE
            found = coverage.because.setdefault(reason, {"count": 0, "examples": []})
            found["count"] += 1
            if len(found["examples"]) < SHOWN:
                found["examples"].append(example)
    coverage.tokens = {"all": len(every), "reached": len(tokens & set(every)), "impossible": impossible}
    distinct = list(dict.fromkeys(reach.model.merges))
    cannot = sum(pair not in merges and not reach.can_merge(pair) for pair in distinct)
    coverage.merges = {"all": len(distinct), "reached": len(merges), "impossible": cannot}
    return coverage
