"""Laws about long texts in which everything occurs that tokenizers treat apart: by every pattern, in every method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Model, read_model, write_token
from bpe_conformance.judging import show
from bpe_conformance.judging.difference import Difference
from bpe_conformance.judging.expectations import oracle
from bpe_conformance.judging.handle import Handle
from bpe_conformance.judging.in_time import in_time
from bpe_conformance.judging.law import Example, Law, fixed, told
from bpe_conformance.judging.subject import Subject

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
LENGTHS = (17_200, 70_000, 1_100_000)


def everything(subject: Subject, pattern: str, special: bool, turned: bool = False) -> Model:
    """Return a table with all pairs of bytes of the part, also of those that no pre-token holds, in a mixed order.

    Its ids are in the least usual order that the implementation takes, and beyond 16 bits. A pair that should be merged
    hides one beside it that should not: what one table hides, the one that is turned round shows.
    """
    pairs = {bytes(pair) for pair in pairwise(PART.encode("utf-8"))} - {token.encode("utf-8") for token in SPECIALS}
    mixed = sorted(pairs, key=lambda pair: ((pair[0] * 73 + pair[1] * 151) % 257, pair), reverse=turned)
    merge_ids = [70_000 + 3 * place for place in range(len(mixed))]
    ranked = subject.conventions["lookup"] == "bytes"
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


def _tables(subject: Subject) -> Iterator[tuple[str, Model, Sequence[int]]]:
    """Yield tables, in which lengths each is tried, and what the note on it says."""
    for name in PATTERNS:
        if name == "none" or (name != "gpt2" and f"pattern:{name}" not in subject.capabilities):
            continue
        for special in (True, False) if "special" in subject.capabilities else (False,):
            told = f", {name}{', special tokens' * special}"
            most = special or "special" not in subject.capabilities
            if most or name in ("gpt2", "cl100k", "triads"):
                yield told, everything(subject, name, special), LENGTHS[: 3 if name == "gpt2" else 2]
            if most:
                yield told, everything(subject, name, special, True), LENGTHS[:1]


@told
def _long_ways(subject: Subject, example: Example) -> Difference | None:
    """A long text in which everything occurs that tokenizers treat apart, by each pattern, in every method."""
    for what, model, lengths in _tables(subject):
        handle, ids = subject.build(model), oracle(model, subject.conventions["lookup"]).encode(PART)
        for length in in_time(subject, f"law-long-ways{what}", lengths):
            times = length // len(PART)
            for way, expected, got in _answers(subject, handle, model, ids, times):
                if got != expected:
                    asked = f"{__name__}.PART * {times}, of {times * len(PART):,} characters{what}, {way}"
                    return _difference(asked, model, expected, got)
    return None


def _answers(
    subject: Subject, handle: Handle, model: Model, ids: list[int], times: int
) -> Iterator[tuple[str, Sequence[object], Sequence[object]]]:
    """Yield each method with what it is to give and what it gives; chunks end elsewhere for each table."""
    text, long = PART * times, ids * times
    yield "encode", long, handle.encode(text)
    if len(text) > LENGTHS[1] or (len(text) > LENGTHS[0] and model.pattern not in ("gpt2", "cl100k")):
        return  # the time is better spent elsewhere
    if "encode_iterable" in subject.capabilities:
        number = list(PATTERNS).index(model.pattern)
        for size in (4_097 + 64 * number,) if len(text) > LENGTHS[0] else (7 + number, 4_097 - 64 * number):
            chunks = [text[start : start + size] for start in range(0, len(text), size)]
            yield f"encode_iterable in chunks of {size:,}", long, handle.stream(chunks)
    if "encode_batch" in subject.capabilities:
        rows = handle.encode_batch([PART] * 64 + [text])
        yield "the number of rows of encode_batch", [65], [len(rows)]
        for row, expected in zip(rows, [ids] * 64 + [long], strict=False):
            yield "encode_batch behind 64 times the part", expected, row
    if "decode" in subject.capabilities:
        yield "decode of its ids", text, handle.decode(long)
        byte_ids = {token: index for index, token in model.vocab.items() if len(token) == 1}
        yield "decode of the ids of its bytes", text, handle.decode([byte_ids[bytes([one])] for one in text.encode()])
    if "decode_bytes" in subject.capabilities:
        yield "decode_bytes of its ids", text.encode("utf-8"), handle.decode_bytes(long)


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
