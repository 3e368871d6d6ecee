"""Cases of decoding, streams and batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from ..terminal import show
from .draft import Draft, grouped
from .draws import PIECES, RAW_TEXT, Draw
from .reach import Reach

SHAPES = 2
"""Single tokens of each shape: how much of a character is missing at either end."""
IDS = 400
"""Ids in a case that decodes a part of the vocabulary."""
SHORT = 24
TIDIED = (
    ("DECODE-BOM-1", "\ufeffa"),
    ("DECODE-BOM-1", "\ufeff\ufeff a\ufeff"),
    ("DECODE-BYTES-1", "e\u0301 \u212b \ufb01 \u1e9b\u0323"),
    ("DECODE-BYTES-1", "a\r\nb\rc\n\n"),
    ("DECODE-BYTES-1", "  \ta . don 't \n "),
    ("DECODE-BYTES-1", "\0a\0\x7f\x85\u200b"),
)
"""Clause, and a text that decoders are tempted to tidy: marks, composition, line ends, white space, controls."""


def decoding(reach: Reach, draw: Draw) -> Iterator[Draft]:
    """Yield ids: single tokens that are not UTF-8, every id of the vocabulary, parts of characters side by side."""
    vocab = reach.model.vocab
    broken = [index for index, token in sorted(vocab.items()) if not _is_utf8(token)]
    shapes: dict[tuple[int, int, int], list[int]] = {}
    for index in broken:
        shapes.setdefault(_shape(vocab[index]), []).append(index)
    for alike in shapes.values():
        for index in draw.shuffled(alike[:200])[:SHAPES]:
            title = f"{show.token(vocab[index])} alone is not UTF-8"
            yield Draft("decode-broken", "DECODE-UTF8-1", title, "decode", {"ids": [index]})
    for group in grouped(broken, IDS // 4):
        yield Draft("decode-broken", "DECODE-UTF8-1", "tokens that are not UTF-8", "decode", {"ids": list(group)})
    for group in grouped(sorted(vocab), IDS):
        yield Draft("decode-all", "DECODE-BYTES-1", "a part of the vocabulary", "decode", {"ids": list(group)})
    singles = {token: index for index, token in vocab.items() if len(token) == 1}
    for char in ("é", "€", "日", "🦊", "👍🏽"):
        ids = [singles[bytes([byte])] for byte in char.encode("utf-8")]
        yield Draft("decode-parts", "DECODE-BYTES-1", f"{char!a} in single bytes", "decode", {"ids": ids})
        yield Draft("decode-parts", "DECODE-UTF8-1", "a character cut short", "decode", {"ids": ids[:-1] + ids})
    ids_of = {token: index for index, token in sorted(vocab.items(), reverse=True)}
    for clause, text in TIDIED:
        ids = [ids_of[token] for token in reach.tokens(text)]
        yield Draft("decode-text", clause, "a text comes back as it was", "decode", {"ids": ids})
    for text in reach.model.special_tokens or ():
        index = next(index for index, token in vocab.items() if token == text.encode("utf-8"))
        ids = [singles[b" "], index, index, singles[b" "], singles["é".encode()[:1]], index]
        title = f"{show.text_line(text)} among others"
        yield Draft("decode-special", "DECODE-SPECIAL-1", title, "decode", {"ids": ids})
    yield Draft("decode-empty", "DECODE-EMPTY-1", "no ids", "decode", {"ids": []})


def _is_utf8(token: bytes) -> bool:
    try:
        token.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _shape(token: bytes) -> tuple[int, int, int]:
    """Return the first byte's class, the last lead byte's, and how many bytes follow it."""
    last = next((back for back in range(1, len(token) + 1) if not 0x80 <= token[-back] < 0xC0), len(token))
    return min(token[0] >> 4, 15), token[-last] >> 4, last


def streams(reach: Reach, draw: Draw, hard: Sequence[str]) -> Iterator[Draft]:
    """Yield texts cut everywhere: of those that are hard to split or merge, and with special tokens in them."""
    special = list(reach.model.special_tokens or ())
    short = [text for text in hard if 2 <= len(text) <= SHORT]
    texts = [draw.pick(short) + draw.pick((" ", "\n", "", "a")) + draw.pick(short) for _ in range(24 if short else 0)]
    texts += [draw.pick((" ", "a ", "\n")) + token + draw.pick((" ", "a", "\n\n")) for token in special[:8]]
    texts += ["we'll  go,\r\n\r\n 12345 日本 🦊!!\n", "a \n b\t\tc   d", "1234567 12 1 12345", "don't I'LL it's'"]
    for text in dict.fromkeys(texts):
        title = f"cut everywhere: {show.text_line(text)}"
        yield Draft("stream", "STREAM-EQUAL-1", title, "stream", {"text": text, "cut": "everywhere"})
    for number in range(8):
        text = draw.real_text(4, 200) + draw.pieces(RAW_TEXT, 6) + (draw.pick(special) if special else "")
        if number % 2:
            given: dict[str, Any] = {"text": text, "cut": "characters"}
        else:
            bounds = [0, *sorted(draw.below(len(text)) for _ in range(9)), len(text)]
            given = {"chunks": [text[start:end] for start, end in pairwise(bounds)]}
        yield Draft("stream", "STREAM-EQUAL-1", "real text in chunks", "stream", given)


def batches(reach: Reach, draw: Draw) -> Iterator[Draft]:
    """Yield lists of texts of all lengths, empty ones and repeated ones among them."""
    special = list(reach.model.special_tokens or ())
    for number in range(6):
        texts = ["", *(draw.pieces((*PIECES["contractions"], *RAW_TEXT, *special), 5) for _ in range(4 * number))]
        texts += [draw.real_text(2, 80), texts[-1], ""]
        yield Draft("batch", "BATCH-EQUAL-1", "texts of all lengths", "batch", {"texts": draw.shuffled(texts)})
