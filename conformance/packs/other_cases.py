"""Cases of special tokens, decoding, streams and batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from bpe_conformance.fixtures import write_token

from ..terminal import show
from .draws import PIECES, RAW_TEXT, Draw
from .encoding_cases import Draft, encode, grouped
from .reach import Reach

MANY = 12
"""If there are more special tokens, only some have cases of their own."""
BESIDE = (" ", "  ", "\n", "\n\n", "\t", "a", "1", "!", "'s", "é", "日", "<", "|>", " the")
FOREIGN = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start|>", "<|fim_prefix|>", "<think>"),
    *("<s>", "</s>", "<unk>", "<pad>", "[CLS]", "[INST]", "<|e|>"),
)
"""Special tokens of other models."""
SWAPS = {"<": "＜", "|": "｜", "_": "-", "e": "е", "o": "ο", "i": "ı"}


def special(reach: Reach, draw: Draw) -> Iterator[Draft]:
    """Yield the cases of the special tokens of a model, and of text that looks like special tokens."""
    tokens = list(dict.fromkeys(reach.model.special_tokens or ()))
    some = list(dict.fromkeys([*tokens[: MANY - 2], *tokens[-2:]]))
    for token in some:
        yield from _of_one(token, draw)
    for first, second in [*((token, token) for token in some), *_pairs(tokens, draw)]:
        shown = f"{show.text_line(first)} and {show.text_line(second)}"
        for text in (first + second, second + first, f"{first} {second}", *_overlaps(first, second)):
            yield encode("special-two", "SPECIAL-SCAN-1", f"{shown}, side by side or overlapping", text)
    for group in grouped(tokens, 40):
        yield encode("special-all", "SPECIAL-ID-1", "every special token", "".join(f"{token}a " for token in group))
        yield encode("special-all", "SPECIAL-ORDER-1", "the same, without text between them", "".join(reversed(group)))
    for text in FOREIGN:
        if not any(token in text for token in tokens):
            title = f"{text} is not a special token of this model"
            yield encode("special-foreign", "SPECIAL-OFF-1", title, f"a{text} b")


def _of_one(token: str, draw: Draw) -> Iterator[Draft]:
    shown = show.text_line(token)
    middle = draw.between(1, max(1, len(token) - 1))
    beside = tuple(text for one in BESIDE[:6] for text in (f"{token}{one}", f"{one}{token}"))
    parts = (token[:-1], token[1:], f"{token[:middle]} {token[middle:]}", f"{token[:middle]}\u200b{token[middle:]}")
    for kind, clause, title, texts in (
        ("alone", "SPECIAL-ID-1", "alone", (token,)),
        ("tripled", "SPECIAL-SCAN-1", "three times", (token * 3,)),
        ("edge", "SPECIAL-SEGMENT-1", "at an edge", beside),
        ("beside", "SPECIAL-SEGMENT-1", "between others", (token.join(["", *draw.shuffled(BESIDE), ""]),)),
        ("parts", "SPECIAL-EXACT-1", "in parts", (*parts, token[::-1])),
        ("alike", "SPECIAL-EXACT-1", "spelled differently", _alike(token)),
    ):
        for text in dict.fromkeys(texts):
            yield encode(f"special-{kind}", clause, f"{shown} {title}", text)


def _alike(token: str) -> tuple[str, ...]:
    swapped = tuple(token.replace(char, other) for char, other in SWAPS.items() if char in token)
    return tuple(text for text in (token.upper(), token.lower(), token.title(), *swapped) if text != token)


def _overlaps(first: str, second: str) -> tuple[str, ...]:
    """Return texts in which the end of the first overlaps the beginning of the second, or nearly does."""
    shared = [length for length in range(1, min(len(first), len(second))) if first.endswith(second[:length])]
    return (*(first + second[length:] for length in shared), first + second[1:], first[:-1] + second)


def _pairs(special: list[str], draw: Draw) -> list[tuple[str, str]]:
    """Return pairs of special tokens; pairs that contain or overlap each other come first."""
    met = [(a, b) for a in special for b in special if a != b and (a in b or any(a.endswith(b[:n]) for n in (1, 2, 3)))]
    return list(dict.fromkeys([*met[:MANY], *((draw.pick(special), draw.pick(special)) for _ in range(4) if special)]))


# Decoding, streams, batches

ALONE = 40
"""Number of tokens that are not UTF-8 and are decoded alone."""
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
"""A clause, and a text that some decoders change: marks, composition, line ends, white space, controls."""


def decoding(reach: Reach, draw: Draw) -> Iterator[Draft]:
    """Yield ids: single tokens that are not UTF-8, every id of the vocabulary, parts of characters."""
    vocab = reach.model.vocab
    broken = [index for index, token in sorted(vocab.items()) if not isinstance(write_token(token), str)]
    for index in draw.shuffled(broken)[:ALONE]:
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
        yield Draft("decode-text", clause, "a text is unchanged", "decode", {"ids": ids})
    for text in reach.model.special_tokens or ():
        index = ids_of[text.encode("utf-8")]
        ids = [singles[b" "], index, index, singles[b" "], singles["é".encode()[:1]], index]
        title = f"{show.text_line(text)} between other tokens"
        yield Draft("decode-special", "DECODE-SPECIAL-1", title, "decode", {"ids": ids})
    yield Draft("decode-empty", "DECODE-EMPTY-1", "no ids", "decode", {"ids": []})


def streams(reach: Reach, draw: Draw, hard: Sequence[str]) -> Iterator[Draft]:
    """Yield texts cut at every position: texts that are hard to split or merge, and texts with special tokens."""
    special = list(reach.model.special_tokens or ())
    short = [text for text in hard if 2 <= len(text) <= SHORT]
    texts = [draw.pick(short) + draw.pick((" ", "\n", "", "a")) + draw.pick(short) for _ in range(24 if short else 0)]
    texts += [draw.pick((" ", "a ", "\n")) + token + draw.pick((" ", "a", "\n\n")) for token in special[:8]]
    texts += ["we'll  go,\r\n\r\n 12345 日本 🦊!!\n", "a \n b\t\tc   d", "1234567 12 1 12345", "don't I'LL it's'"]
    for text in dict.fromkeys(texts):
        title = f"cut at every position: {show.text_line(text)}"
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
    """Yield lists of texts of all lengths, some of them empty or repeated."""
    special = list(reach.model.special_tokens or ())
    for number in range(6):
        texts = ["", *(draw.pieces((*PIECES["contractions"], *RAW_TEXT, *special), 5) for _ in range(4 * number))]
        texts += [draw.real_text(2, 80), texts[-1], ""]
        yield Draft("batch", "BATCH-EQUAL-1", "texts of all lengths", "batch", {"texts": draw.shuffled(texts)})
