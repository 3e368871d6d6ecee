"""Laws about long texts in which everything occurs that tokenizers treat apart: by every pattern, in every method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Model, read_model, write_token
from bpe_conformance.reference import textbook

from ..cases.difference import Difference
from ..cases.expectations import oracle
from ..implementation.implementation import Implementation
from ..implementation.proxy import TokenizerProxy
from ..terminal import show
from .law_engine import Example, Law, fixed, told
from .time_budget import as_many_as, in_time

SPECIALS = ("<a", "<a b>", "é|", "#1", "\t <")
"""Each in an order in which a plain alternation finds the shorter one."""
PART = (
    " ab\u00e9\u65e5c it's DON'Tx I'mx we'llx you'rex he'dx I'vex x'sx 123456789012345 \u2167\u2168 "
    "\u0663\u0664 x\u00a0y\u3000z\u2003\u2003w\u0085v \u00abab\u00bb\u2014ab\u2026 ab\0\0 <a b>c<a <a b>e1 x<a b>"
    "\n\t <ab #1234567.8912345 \u00e9| e\u0301|a\u0301b \n  ab\n\n  ab\r\n\t\tab, \u0937\u093f\u0967 "
    "\U0001f98a\U0001f98a \U00010428\U0001d7d8 1e1234 50%% aB\u01c5c\u017f's  ...!? \n\n\n  x=[ab];  "
    "\u200b\u00aa\u0130I x \ty<a b>\n  ab\x1c\x1d\x1e\x1f\x01\x7f\ufeff\ufffe\uffff\ue000\u2028\u2581\u0120 "
    "\u212b\ufb01 ab"
)
"""It begins with a space and a letter and ends with a letter, so that its ids do not depend on what is around it."""
ALL = 0x110000
ENDS = (("\ufeff", "\0"), ("\n  ", " \n"), ("\0", "\ufeff"), ("\r\n", "\t"), ("'", "'"))
"""What is lost or changed where a text is read, stripped, or put together from lines."""
LENGTHS = (17_200, 70_000, 1_100_000)


def everything(implementation: Implementation, pattern: str, special: bool, turned: bool = False) -> Model:
    """Return a table with all pairs of bytes of the part, also of those that no pre-token holds, in a mixed order.

    Its ids are in the least usual order that the implementation takes, and beyond 16 bits. A pair that should be merged
    hides one beside it that should not: what one table hides, the one that is turned round shows.
    """
    pairs = {bytes(pair) for pair in pairwise(PART.encode("utf-8"))} - {token.encode("utf-8") for token in SPECIALS}
    mixed = sorted(pairs, key=lambda pair: ((pair[0] * 73 + pair[1] * 151) % 257, pair), reverse=turned)
    merge_ids = [70_000 + 3 * place for place in range(len(mixed))]
    ranked = implementation.conventions["lookup"] == "bytes"
    table: dict[str, Any] = {
        "merges": [[write_token(pair[:1]), write_token(pair[1:])] for pair in mixed],
        "byte_ids": "raw" if ranked else "reversed" if special else 7,
        "merge_ids": merge_ids if ranked else merge_ids[::2] + merge_ids[1::2],
        "pattern": pattern,
    }
    if special:
        table["special_tokens"] = list(SPECIALS)
        table["extra"] = [[66_000 - 7 * place, token] for place, token in enumerate(SPECIALS)]
    return read_model(table)


def part(below: int) -> str:
    """Return the characters of the part that have a lower code point: some have ways of their own for these."""
    return "".join(char for char in PART if ord(char) < below)


@dataclass(frozen=True)
class _Text:
    """A part many times over, between a beginning and an end, none of which changes the ids of another.

    Attributes:
        what: what a note says of it.
        model: the table.
        lengths: how long it is, in characters.
        chunks: the sizes of the chunks in which it is streamed; without any, it is asked of `encode` alone.
        behind: how many parts stand before it in a batch.
        below: of the part, only characters with a lower code point.
        before: the beginning.
        after: the end.
    """

    what: str
    model: Model
    lengths: Sequence[int]
    chunks: Sequence[int] = ()
    behind: int = 64
    below: int = ALL
    before: str = ""
    after: str = ""

    def told(self, times: int) -> str:
        """Return the text as Python writes it."""
        part = "PART" if self.below == ALL else f"part(0x{self.below:x})"
        before, after = f"{self.before!a} + " * bool(self.before), f" + {self.after!a}" * bool(self.after)
        return f"{before}{__name__}.{part} * {times}{after}"


def _texts(implementation: Implementation) -> Iterator[_Text]:
    """Yield what is encoded; chunks end elsewhere for each pattern."""
    short, long, _ = LENGTHS
    for number, name in enumerate(PATTERNS):
        if name == "none" or (name != "gpt2" and f"pattern:{name}" not in implementation.capabilities):
            continue
        for special in (True, False) if "special" in implementation.capabilities else (False,):
            what, model = f", {name}{', special tokens' * special}", everything(implementation, name, special)
            most = special or "special" not in implementation.capabilities
            if most or name in ("gpt2", "cl100k", "triads"):
                yield _Text(what, model, [short], (7 + number, 4_097 - 64 * number))
                yield _Text(what, model, [long], (4_097 + 64 * number,) if name in ("gpt2", "cl100k") else ())
            if name == "gpt2":
                yield _Text(what, model, LENGTHS)
            if most:
                turned = everything(implementation, name, special, turned=True)
                yield _Text(what, turned, [short], (7 + number, 4_097 - 64 * number))
    plain = everything(implementation, "gpt2", special=False)
    for below in (0x80, 0x100, 0x10000):
        yield _Text(f", below U+{below:04X}", plain, [short], (4_097,), 1, below)
        yield _Text(f", below U+{below:04X}", plain, [long], (), 1, below)
    for before, after in ENDS:
        yield _Text(f", between {before!a} and {after!a}", plain, [short], (4_097,), 1, ALL, before, after)
        yield _Text(f", between {before!a} and {after!a}", plain, [long], (), 1, ALL, before, after)


@told
def _long_ways(implementation: Implementation, example: Example) -> Difference | None:
    """A long text in which everything occurs that tokenizers treat apart, by each pattern, in every method."""
    every = as_many_as(implementation, "law-long-ways", _texts(implementation))
    for model, texts in groupby(every, lambda one: one.model):
        proxy, right = implementation.build(model), oracle(model, implementation.conventions["lookup"])
        for one in texts:
            first, ids, last = (right.encode(text) for text in (one.before, part(one.below), one.after))
            for length in in_time(implementation, f"law-long-ways{one.what}", one.lengths):
                times = length // len(part(one.below))
                text, long = one.before + part(one.below) * times + one.after, [*first, *ids * times, *last]
                for way, expected, got in _answers(implementation, proxy, right, one, text, long):
                    if got != expected:
                        asked = f"{one.told(times)}, of {len(text):,} characters{one.what}, {way}"
                        return _difference(asked, model, expected, got)
    return None


def _answers(
    implementation: Implementation,
    proxy: TokenizerProxy,
    right: textbook.Tokenizer,
    one: _Text,
    text: str,
    ids: list[int],
) -> Iterator[tuple[str, Sequence[object], Sequence[object]]]:
    """Yield each method with what it is to give and what it gives."""
    yield "encode", ids, proxy.encode(text)
    if not one.chunks:
        return
    if "encode_iterable" in implementation.capabilities:
        for size in one.chunks:
            chunks = [text[start : start + size] for start in range(0, len(text), size)]
            yield f"encode_iterable in chunks of {size:,}", ids, proxy.stream(chunks)
    if "encode_batch" in implementation.capabilities:
        rows = proxy.encode_batch([*[PART] * one.behind, text])
        yield "the number of rows of encode_batch", [one.behind + 1], [len(rows)]
        for row, expected in zip(rows, [right.encode(PART)] * one.behind + [ids], strict=False):
            yield f"encode_batch behind {one.behind} times the part", expected, row
    if "decode" in implementation.capabilities:
        yield "decode of its ids", text, proxy.decode(ids)
        byte_ids = {token: index for index, token in one.model.vocab.items() if len(token) == 1}
        yield "decode of the ids of its bytes", text, proxy.decode([byte_ids[bytes([byte])] for byte in text.encode()])
    if "decode_bytes" in implementation.capabilities:
        yield "decode_bytes of its ids", text.encode("utf-8"), proxy.decode_bytes(ids)


def _difference(asked: str, model: Model, expected: Sequence[object], got: Sequence[object]) -> Difference:
    place = show.first_difference(expected, got)
    near = slice(max(0, place - 4), place + 4)
    if isinstance(expected, list) and isinstance(got, list):
        wanted, given = (show.ids(one[near], model.vocab) for one in (expected, got))
        held = b"".join(model.vocab.get(index, b"") for index in expected[max(0, place - 8) : place + 8])
        return Difference(asked, wanted, given, f"at id {place:,}, near {held.decode('utf-8', 'replace')!a}")
    return Difference(asked, f"{expected[near]!a}", f"{got[near]!a}", f"at place {place:,}")


RICH_LAWS: tuple[Law, ...] = (
    Law("law-long-ways", "LAW-LONG-1", "encoder", ("encode",), fixed(), _long_ways, 1, None, 9),
)
