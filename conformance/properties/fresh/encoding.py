"""Fresh cases of everything but training. Each function returns a model and an input, or None if they show nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bpe_conformance.fixtures import PATTERNS, Merge, Model, read_model
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Word

from ...cases.expectations import oracle
from ..examples import SPECIALS
from .draws import CLASSES, Draw, Raw, in_turn, real_text, showing, special_set, strewn, table

Made = tuple[Raw, Raw]
Wrong = Callable[[Model, Word], Word]

ALPHABETS = (
    *("ab", "abc", "abcd", "aab", "lowers", "aé", "é€", "日本語", "aß€", "🦊🐻a", "ñn", "кот", "a-", "01"),
    *(" ", ",\0-"),
)
LONG_ALPHABETS = ("ab", "abc", "aab", " ", "01", "-.", "é€", "日本語")
SPACE = (" ", "  ", "\n", "\r\n", "\t", "   ", " \n", "\n\n")
CONTRACTIONS = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d")
NEARLY = ("'S", "'LL", "'Re", "'VE", "'", "''", "’s", "n't", "'em", "'x", "'l", "'r", "'v", "'\u017f")
MARKED = ("e\u0301", "\u0301", "क्षि")
ASTRAL = ("[\U0001d400\U0001d499\U0001d51f\U0002000b\U00020bb7]", "[\U0001d7ce\U0001d7cf\U0001d7d8]")
WHITE = "white space of Unicode"
PIECES = {
    "contractions": (*CONTRACTIONS, *NEARLY, "it", "We", "n", "l", "s", "e", " ", "!", "1", "\n", r"\p{Ll}", *MARKED),
    "letters": (
        "[a-z]",
        "[A-Z]",
        *CLASSES[:6],
        *ASTRAL,
        r"\p{L}",
        " ",
        "_",
        "-",
        "aB",
        "\t",
        "\u00a0",
        "\n",
        "  ",
        "'s",
        *MARKED,
    ),
    "numbers": ("[0-9]", "[0-9]", r"\p{N}", r"\p{N}", " ", "  ", ".", ",", "a", "1234567", "\n", "\t", "五", *MARKED),
    "other characters": (
        r"\p{P}",
        r"\p{S}",
        r"\p{C}",
        "...",
        "/",
        "\n",
        "\r\n",
        " ",
        "  ",
        "a",
        "1",
        "_",
        "'s",
        "👍🏽",
    ),
    "white space": (*SPACE, *SPACE, *[r"\s"] * 4, "\x1c", "\u200b", "a", "1", "!", "日", "'s", r"\p{Z}"),
    WHITE: (r"\s", r"\s", r"\s", r"[\x1c-\x1f\u180e\u200b\u2060\ufeff]", "a", "1", "!", " "),
    "characters of all classes": (*CLASSES, *ASTRAL, " ", "'s"),
}
NUMERALS = (
    *("[0-9]", "[0-9][0-9]", "123", "4567", "123456789", ".", ".25", ".14159265", ",", ",", ",678", "_", "_901"),
    *("e-10", "E5", "e+1234", "e", "%", "%", "%d", "-", "$", "a", "x", " ", " ", "\n", "'S", "’ll", "é", r"\p{N}"),
)
RAW_TEXT = (
    *("e\u0301", "é", "ﬁ", "\u212b", "Å", "\u017f", "½", "Ⅷ", "ｱ", "A", "a", "É", "İ", "ß", "가", "\u1100\u1161"),
    *("\r\n", "\r", "\n\n", "\n", "  ", " ", "\t", "\v", "\f", "\u00a0", "\u3000", "\u2028", "\u0085", "x"),
    *("\ufeff", "\0", "\x1a", "\x7f", "\xad", "\u200b", "\u200d", "\ufe0f", "\ufffd", "\ue000"),
    *("&amp;", "<b>", "\\n", "%20", "’", "“", "…", "--", "``", " .", " ,", " n't", " !", "🦊"),
)
META = (
    "[.*]",
    "(a)",
    "a+",
    "a|b",
    "^a",
    "b$",
    "\\d",
    "{2}",
    "a?",
    "(",
    "[a",
    "\\",
    "*b",
    ".",
    "%s",
    "{0}",
    "\\1",
    "$&",
)


NOTABLE = (
    0xFDD0,
    0xFDEF,
    0xFFFE,
    0xFFFF,
    0x1FFFE,
    0x2FFFF,
    0x10FFFE,
    0x10FFFF,
    0xE0100,
    0xF900,
    0xFFFD,
    0xFEFF,
    0x10330,
)


def split(draw: Draw, about: str, pattern: str = "gpt2") -> Made | None:
    """A text rich in what a clause is about, with a table that shows each border."""
    text = draw.pieces(NUMERALS if about == "numerals" else PIECES[about], draw.between(4, 12))
    if pattern == "none":
        return {**table(draw, text.encode("utf-8"), 12, False), "pattern": pattern}, {"text": text}
    model = showing(text, (), pattern)
    return None if model is None else (model, {"text": text})


def fence(draw: Draw) -> Made | None:
    """Merges of a text that was not split."""
    text = draw.words(("a", "b", "1", "!", "é"), 3, 5, (" ", "\n", "  ", "'s ", ", "))
    model = table(draw, text.encode("utf-8"), 12, draw.chance(0.5))
    crosses = tokens({**model, "pattern": "none"}, text) != tokens(model, text)
    return (model, {"text": text}) if crosses else None


def tokens(model: Raw, text: str) -> list[bytes]:
    """Return the tokens of `text` by the oracle."""
    return oracle(read_model(model)).tokens(text)


def plain(draw: Draw, pieces: Sequence[str], count: int = 14, ends: Sequence[str] = ("",)) -> Made:
    """A text of `pieces`, and a table with tokens that begin and end inside characters."""
    text = draw.pick(ends) + draw.pieces(pieces, draw.between(count // 2, count)) + draw.pick(ends)
    return table(draw, text.encode("utf-8"), draw.below(count), draw.chance(0.5)), {"text": text}


def any_characters(draw: Draw, count: int) -> str:
    """Return characters of all planes, noncharacters too."""
    tops = (0x800, 0x3000, 0xD800, 0x10000, 0x20000, 0x110000)
    drawn = [draw.pick(NOTABLE) if draw.chance(0.2) else draw.below(draw.pick(tops)) for _ in range(count)]
    return "".join(chr(code) for code in drawn if not 0xD800 <= code < 0xE000)


def code_points(draw: Draw) -> Made:
    """Code points of all planes; with no merges it does not matter how an engine classes them."""
    return {"byte_ids": draw.pick(("raw", "gpt2", "reversed", 1000))}, {"text": any_characters(draw, 200)}


def many_words(draw: Draw) -> Made:
    """More different pre-tokens than a small cache holds, some of them again, and some that begin alike."""
    stem = draw.walk("abcd", 18)
    words = [draw.walk("abcdefghijkl", draw.between(3, 5)) for _ in range(1500)]
    alike = [stem + draw.walk("abcd", 4) for _ in range(8)]
    text = " ".join([*alike, *words, *words[:100]])
    return table(draw, text.encode("utf-8")[:400], 30, draw.chance(0.5)), {"text": text}


def gpt2(draw: Draw) -> Made:
    """Stretches of real text, for GPT-2's table."""
    return {"name": "gpt2"}, {"text": real_text(draw, 12, 60)}


def _ranked(rank: Callable[[Model, int, Merge], int]) -> Wrong:
    def wrong(model: Model, word: Word) -> Word:
        return textbook.merge_by_pair(word, {pair: rank(model, place, pair) for place, pair in enumerate(model.merges)})

    return wrong


def ids_of(model: Model) -> dict[bytes, int]:
    """Return token → id."""
    return {token: index for index, token in model.vocab.items()}


def by_bytes(model: Model, word: Word) -> Word:
    """Merge neighbours whose concatenation is a token."""
    return textbook.merge_by_bytes(word, {left + right: place for place, (left, right) in enumerate(model.merges)})


def whole_first(model: Model, word: Word) -> Word:
    """Emit a pre-token whole that is in the vocabulary."""
    return (b"".join(word),) if b"".join(word) in ids_of(model) else word


leftmost = _ranked(lambda model, place, pair: 0)
latest = _ranked(lambda model, place, pair: -place)
longest = _ranked(lambda model, place, pair: -len(pair[0] + pair[1]))
by_id = _ranked(lambda model, place, pair: ids_of(model)[pair[0] + pair[1]])


def merge(draw: Draw, wrongs: Sequence[Wrong] = (), any_ids: bool = False, longest: int = 24) -> Made | None:
    """A table and a text that a wrong encoder, one of `wrongs`, encodes otherwise."""
    long = longest > 100
    letters = draw.pick(LONG_ALPHABETS if long else ALPHABETS)
    text = draw.walk(letters if long else (*letters, " "), draw.between(longest // 4, longest))
    if long:
        text = text.encode("utf-8")[:longest].decode("utf-8", "ignore")
    model = table(draw, text.encode("utf-8"), 40 if long else draw.between(4, 14), any_ids)
    if whole_first in wrongs:
        model["extra"] = [[99_999, draw.pick(textbook.split(text))]]
    made = read_model(model)
    if len(ids_of(made)) < len(made.vocab):
        return None
    ranks = {pair: place for place, pair in enumerate(made.merges)}
    words = textbook.corpus(text, (), PATTERNS["gpt2"])
    for wrong in wrongs and (draw.pick(wrongs),):
        if all(wrong(made, word) == textbook.merge_by_pair(word, ranks) for word in words):
            return None
    return model, {"text": text}


def scan(draw: Draw) -> Made | None:
    """Special tokens that overlap, in a text that cutting out one kind after the other would cut otherwise."""
    special = special_set(draw)
    text = strewn(draw, special, 9)
    segments = [segment for segment, _ in textbook.cut_special(text, special)]
    if len(segments) < 2 or (draw.chance(0.7) and segments == in_turn(text, special)):
        return None
    return table(draw, text.encode("utf-8"), 8, draw.chance(0.5), special), {"text": text}


def metacharacters(draw: Draw) -> list[str]:
    """Return special tokens that mean something to a regular expression or a template."""
    made = [draw.pick(META) + draw.pick(("", "", ">", "b", "|", draw.pick(META))) for _ in range(3)]
    return [token for token in dict.fromkeys(made) if len(token) > 1] or ["a.b"]


def literal(draw: Draw) -> Made:
    """Metacharacters, and what they would match."""
    special = metacharacters(draw)
    text = strewn(draw, special, 6) + draw.pieces(("a", "aa", "b", "ab", "1", "axb", "x"), 4)
    return table(draw, text.encode("utf-8"), 6, draw.chance(0.5), special), {"text": text}


def beside(draw: Draw, pattern: str = "gpt2") -> Made | None:
    """White space, contractions and numbers beside special tokens, with a table that shows where they are split."""
    special = [draw.pick(("<|e|>", "<e>", "[x]", "a>", " |", "\n|", "|s", "12|"))]
    sides = (*SPACE, *CONTRACTIONS, "a", "b", "12", "!", "'", "é", "a  ", "\n ")
    text = "".join(draw.pieces(sides, draw.between(0, 3)) + special[0] for _ in range(3)) + draw.pieces(sides, 2)
    model = showing(text, special, pattern)
    return None if model is None else (model, {"text": text})


def chosen(draw: Draw, barred: bool) -> Made:
    """A text with special tokens, some of them allowed, and with `barred` some disallowed; none begins with another."""
    drawn = special_set(draw)
    special = [one for one in drawn if not any(one != other and one.startswith(other) for other in drawn)]
    text = strewn(draw, special, draw.between(3, 10))

    def some() -> str | list[str]:
        return "all" if draw.chance(0.3) else [token for token in special if draw.chance(0.5)]

    given = {"text": text, "allowed_special": some(), "disallowed_special": some() if barred else []}
    return table(draw, text.encode("utf-8"), 6, any_ids=False, special=special), given


def many_specials(draw: Draw) -> Made:
    """Special tokens by the hundred, long ones among them, in a long text."""
    special = [f"<|{draw.walk('abc', 3)}{number}|>" for number in range(110)]
    special += ["<|" + "-" * draw.between(40, 400) + "|>" for _ in range(2)]
    special = draw.shuffled(list(dict.fromkeys(special)))
    text = "".join(draw.pieces(("ab", " ", "\n", "<|", "<|abc|>", "a"), 5) + draw.pick(special) for _ in range(500))
    return table(draw, text.encode("utf-8")[:200], 6, draw.chance(0.5), special), {"text": text}


def near_misses(draw: Draw, count: int) -> tuple[list[str], str]:
    """Return special tokens and a text of them and of what nearly is one.

    Other case, width or composition, a space within, a part left out.
    """
    every = ("<|End|>", "[é]", "e\u0301!", "<e>", "Ab", "tok en", "[ﬁ]", "🦊!", "__pad__", "\n\n")
    special = draw.shuffled(every)[: draw.between(1, 4)]
    near: list[str] = []
    for token in special:
        cut = draw.between(1, len(token) - 1)
        near += [token.lower(), token.upper(), token[:cut] + " " + token[cut:], token[:cut] + token[cut + 1 :]]
        near += [token.replace("é", "e\u0301"), token.replace("e\u0301", "é"), token.replace("ﬁ", "fi")]
        near += [f" {token} ", f"a{token}a", f"_{token}1", token, token]
    return special, "".join(draw.pick(near) for _ in range(count))


def nearly(draw: Draw) -> Made:
    """Near misses of special tokens."""
    special, text = near_misses(draw, 8)
    return table(draw, text.encode("utf-8"), 6, draw.chance(0.5), special), {"text": text}


def entries(draw: Draw, listed: str) -> Made:
    """Special tokens with entries anywhere, which are listed once, in part, twice, or have no entry at all."""
    special = draw.shuffled([token for token in SPECIALS if draw.chance(0.4)] or SPECIALS[:1])
    text = strewn(draw, special, 8)
    model = table(draw, text.encode("utf-8"), 6, True, special)
    if listed == "in part":
        model["special_tokens"] = special[: draw.below(3) - 1] if len(special) > 2 else []
    elif listed == "twice":
        model["special_tokens"] += draw.shuffled(special)
    elif listed == "with an empty one":
        text = draw.walk("ab", 9) + text
        model = table(draw, text.encode("utf-8")[:12], 6, True, special)
        model["special_tokens"].insert(draw.below(2), "")
    elif listed == "without entry":
        model["extra"] = [entry for entry in model["extra"] if draw.chance(0.4)]
    return model, {"text": text}
