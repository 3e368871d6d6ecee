"""Finds, for a token of a table, a text whose encoding holds it, or says why there is none."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import islice, pairwise, product

import regex

from bpe_conformance.fixtures import PATTERNS, Merge, Model
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Word

from ..terminal import show
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
"""What is put around a token that is not a pre-token by itself."""
MOST_BODIES = 4096
"""How many texts around the bytes of a token that is not UTF-8 are tried."""
FARTHEST = 0x40000
"""From here on no character has been assigned for other than private use, and none is planned."""
CONTINUATION = [bytes([byte]) for byte in range(0x80, 0xC0)]
NO_UTF8 = "no UTF-8 text holds their bytes"
NOT_BUILT = "merges do not build them from their bytes"
UNSETTLED = "a character of theirs is classed otherwise by another version of Unicode"
NOT_FOUND = "no text was found in which they stand"
IMPOSSIBLE = (NO_UTF8, NOT_BUILT, UNSETTLED)


class Reach:
    """The encoding of one model, remembered by pre-token, and what it can reach.

    Args:
        model: the table.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.ranks = model.ranks
        compiled(model.pattern)
        self._pattern = PATTERNS[model.pattern]
        self._known: dict[str, Word] = {}

    def pre_tokens(self, text: str) -> list[str]:
        """Return the pre-tokens of a text, special tokens left out."""
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
        """Return the tokens of a pre-token's bytes, and the merges on the way.

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
        """Return a text whose encoding holds `token`, or None if none was found."""
        bodies = list(islice(filter(settled, bodies_of(token)), MOST_BODIES))
        for before, after in SURROUNDINGS:
            for body in bodies:
                if token in self.tokens(text := before + body + after):
                    return text
            bodies = bodies[:16]
        return None

    def why_not(self, token: bytes) -> tuple[str, str]:
        """Return why no text was found for a token, in general and in this case.

        That merges do not build it is a proof: within the span of a token the merges are those of its bytes alone.
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
        """Whether a merge can ever be made: the bytes of its result, alone, end with it."""
        word, made = self.steps(pair[0] + pair[1])
        return len(word) == 1 and made[-1] == pair


def settled(text: str) -> bool:
    """Whether Python and `regex`, which follow different versions of Unicode, class every character alike.

    What another version may class otherwise is split otherwise by an engine that is right as well (SPLIT-UNICODE-2).
    """
    return all(map(_is_settled, text))


@cache
def _is_settled(char: str) -> bool:
    category = unicodedata.category(char)
    if category == "Cn":
        return ord(char) >= FARTHEST
    return regex.match(rf"\p{{{category}}}", char) is not None


def text_of(token: bytes) -> str:
    """Return the text of a token, or nothing where it is not UTF-8 or its characters are not settled."""
    try:
        text = token.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return text if settled(text) else ""


def bodies_of(token: bytes) -> Iterator[str]:
    r"""Yield the texts whose UTF-8 holds `token` and no more characters than it touches.

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
    """Return what can begin a character that these continuation bytes go on with."""
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
    """Return what can complete a character that is begun."""
    missing = _length(begun[0]) - len(begun) if begun else 0
    triples = [first + rest for first, rest in product(CONTINUATION[::5], _pairs()[::5])]
    return {0: [b""], 1: CONTINUATION, 2: _pairs(), 3: triples}[missing]


def _pairs() -> list[bytes]:
    """Return pairs of continuation bytes, each byte in each place."""
    return [CONTINUATION[place] + CONTINUATION[(7 * place + 11) % len(CONTINUATION)] for place in range(64)]


def _spread(items: list[bytes], most: int = 128) -> list[bytes]:
    return items[:: max(1, len(items) // most)]


def _is_character(data: bytes) -> bool:
    """Whether the bytes are a character."""
    try:
        return len(data.decode("utf-8")) == 1
    except UnicodeDecodeError:
        return False
