"""Fresh cases of decoding, streams, batches and files. Each function returns a model and an input, or None."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from bpe_conformance.fixtures import read_model
from bpe_conformance.reference import textbook

from ...cases.expectations import oracle
from .draws import Draw, Raw, showing, special_set, strewn, table
from .encoding import PIECES, RAW_TEXT, Made, any_characters, ids_of

AWKWARD = (
    " ",
    "#",
    "\n",
    "\r",
    "\t",
    "\u0085",
    "\xad",
    "\u00a0",
    "é",
    "Ġ",
    "\0",
    "\x7f",
    "a",
    '"',
    "\\",
    "ÿ",
    "€",
    "##",
)
MIXED = (r"\p{L}", "a", " ", "🦊")
INVALID = (
    *("ff", "fe", "80", "bfbf", "c0af", "c1bf", "c3", "c328", "e282", "e28228", "e0809f", "eda080", "edbfbf", "e0"),
    *(
        "f09fa6",
        "f09f",
        "f0",
        "f0808080",
        "f4908080",
        "f48fbf",
        "f5808080",
        "f8888080",
        "eda0bdedb880",
        "efbf",
        "df",
        "c080",
        "edb080",
    ),
)


def decode(
    draw: Draw, pieces: Sequence[str] = MIXED, invalid: float = 0.0, special: bool = False, most: int = 12
) -> Made:
    """Ids whose tokens begin and end anywhere, inside characters and inside what is no UTF-8."""
    data = b""
    for _ in range(draw.between(most // 6, most)):
        text = draw.pieces(pieces, 1) if draw.chance(0.8) else any_characters(draw, 2)
        data += bytes.fromhex(draw.pick(INVALID)) if draw.chance(invalid) else text.encode("utf-8")
        data = data[: len(data) - draw.below(2)] if draw.chance(invalid / 2) else data
    chosen = special_set(draw) if special else []
    model = table(draw, data, 8, True, chosen)
    made = read_model(model)
    ranks = {pair: place for place, pair in enumerate(made.merges) if draw.chance(0.7)}
    word = list(textbook.merge_by_pair(tuple(bytes([byte]) for byte in data), ranks))
    for token in chosen:
        word.insert(draw.below(len(word) + 1), token.encode("utf-8"))
    return model, {"ids": [ids_of(made)[token] for token in word]}


def stream(draw: Draw, cut: str, special: bool = False, pattern: str = "gpt2") -> Made | None:
    """Cuts inside whatever is no border."""
    chosen = special_set(draw) if special else []
    text = strewn(draw, chosen, 6) if special else draw.pieces(draw.pick((*PIECES.values(), RAW_TEXT, RAW_TEXT)), 6)
    if cut == "everywhere" and len(text) > 16:
        return None
    model = showing(text, chosen, pattern)
    if pattern == "none" or draw.chance(0.3):
        model = {**table(draw, text.encode("utf-8"), 16, True, chosen), "pattern": pattern}
    if model is None:
        return None
    if cut != "chunks":
        return model, {"text": text, "cut": cut}
    bounds = [0, *sorted(draw.below(len(text) + 1) for _ in range(draw.between(1, 7))), len(text)]
    return model, {"chunks": [text[start:end] for start, end in pairwise(bounds)]}


def long_stream(draw: Draw, longest: int) -> Made:
    """Long pre-tokens and long special tokens over many chunks of at most `longest` characters."""
    special = ["<|" + "-" * draw.between(20, 60) + "|>", "<|" + draw.walk("ab ", 40) + "|>"]
    parts = [
        draw.walk(draw.pick(("ab", "abc", "01", " ", "-.")), draw.between(300, 470)),
        *special,
        special[0][:-1],
        " a ",
    ]
    parts += [" " + draw.walk("abc", draw.between(300, 470)), draw.words("abc", 5, 40)]
    text = "".join(draw.shuffled(parts))
    chunks = [""]
    while len("".join(chunks)) < len(text):
        start = len("".join(chunks))
        chunks.append(text[start : start + draw.between(1, longest)])
    return table(draw, text.encode("utf-8"), 30, True, special), {"chunks": chunks}


def nothing(draw: Draw, given: Raw) -> Made:
    """An input without text, for some table."""
    return table(draw, b"abcabc", 4, True, special_set(draw)), given


def batch(draw: Draw, most: int = 9) -> Made | None:
    """Texts of any length, some empty, some twice, which either lookup encodes alike."""
    special = special_set(draw) if draw.chance(0.5) else []
    count = draw.between(most // 4, most)
    texts = ["", *(strewn(draw, special or RAW_TEXT, draw.between(1, 9)) for _ in range(count))]
    texts += [strewn(draw, special or RAW_TEXT, most)] if most > 100 else []
    texts = draw.shuffled(texts + [draw.pick(texts) for _ in range(draw.between(0, 3))])
    model = table(draw, "".join(texts).encode("utf-8"), 8, draw.chance(0.6), special)
    made = read_model(model)
    differ = made.ranks_by_bytes and any(
        oracle(made, "bytes").encode(text) != oracle(made).encode(text) for text in texts
    )
    return None if differ else (model, {"texts": texts})


def file(draw: Draw, load: bool, pieces: Sequence[str] = AWKWARD, special: bool = False) -> Made:
    """A table with tokens that are awkward to write down."""
    text = draw.walk(draw.shuffled(pieces)[:5], draw.between(8, 30))
    chosen = ["<|e|>", *draw.shuffled(("[#]", "\\n", '"x"'))[: draw.below(3)]] if special else []
    text = "".join(draw.pick((*chosen, "")) + text[place : place + 3] for place in range(0, len(text), 3))
    model = table(draw, text.encode("utf-8"), 12, draw.chance(0.7), chosen)
    if special and draw.chance(0.5):
        model["special_tokens"] = chosen[1:]
    options = {"key_order": draw.pick(("ids", "reversed", "sorted")), "ascii": draw.chance(0.5)}
    return model, ({"text": text, **options} if load else {})
