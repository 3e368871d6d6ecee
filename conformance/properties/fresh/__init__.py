"""Fresh cases: what `--bpe-seed N` adds to a run. Nobody has seen them, and the same N gives the same cases.

Each case draws for itself, so that a change to one kind leaves the others as they are. The ids of a seed belong to the
version of the suite: another version may draw other cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bpe_conformance.fixtures import PATTERNS, gpt2_model, write_token
from bpe_conformance.fixtures.spec import Case, Clause, read_case

from ...cases.expectations import LOOKUP_KEYS, compute, oracle
from . import training
from .draws import CLASSES, Draw
from .encoding import (
    PIECES,
    RAW_TEXT,
    SPACE,
    beside,
    by_bytes,
    by_id,
    chosen,
    code_points,
    entries,
    fence,
    gpt2,
    latest,
    leftmost,
    literal,
    longest,
    many_specials,
    many_words,
    merge,
    nearly,
    plain,
    scan,
    split,
    whole_first,
)
from .forms import batch, decode, file, long_stream, nothing, stream

ATTEMPTS = 1000
REFUSED = "To refuse such a special token is as good: with a new id, or ignored if it is empty, it does no harm."
Options = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A kind of fresh case.

    Attributes:
        clause: what it belongs to.
        count: how many there are for a seed.
        title: what it is, behind the seed.
        op: the case's op.
        draw: returns (model, input), or for op train the input; None for a draw that shows nothing.
        options: what `draw` is called with.
    """

    clause: str
    count: int
    title: str
    op: str
    draw: Callable[..., Any]
    options: Options

    @property
    def section(self) -> str:
        """The section of its clause, in lower case, as it stands in ids."""
        return self.clause.partition("-")[0].lower()


SPLITS: dict[str, tuple[int, Sequence[str]]] = {
    "gpt2": (9, ("CONTRACTION-1", "LETTER-1", "NUMBER-1", "OTHER-1", "SPACE-1", "SPACE-3", "UNICODE-1")),
    "cl100k": (6, ("CL100K-1", "CL100K-2", "CL100K-3", "CL100K-4", "CL100K-5", "CL100K-5", "CL100K-2")),
    "cl100k-2023": (3, ("CL100K-2023-1",) * 7),
    "o200k": (8, ("O200K-3", "O200K-1", "O200K-5", "O200K-6", "O200K-7", "O200K-7", "O200K-2")),
    "llama3": (2, ("LLAMA3-1",) * 7),
    "qwen2": (2, ("QWEN2-1",) * 7),
    "none": (1, ("NONE-1",) * 7),
    "triads": (3, ("TRIADS-1", "TRIADS-1", "TRIADS-2", "TRIADS-7", "TRIADS-7", "TRIADS-7", "TRIADS-1")),
}
"""Pattern → how many cases of each kind, and the clauses that fit the kinds of `PIECES`."""
LATER = ("triads",)
"""Their kinds stand behind all others, which keep their places, and with them what they draw."""
EARLIER = tuple(name for name in PATTERNS if name not in LATER)


def _splits(patterns: Iterable[str]) -> Iterator[Kind]:
    for pattern in patterns:
        count, clauses = SPLITS[pattern]
        for about, clause in zip(PIECES, clauses, strict=True):
            options = {"pattern": pattern, "about": about}
            yield Kind(f"SPLIT-{clause}", count, f"{about}, split by {pattern}", "encode", split, options)


def _trains_by(patterns: Iterable[str]) -> Iterator[Kind]:
    for name in patterns:
        if name != "gpt2":
            yield _trains("TRAIN-SPLIT-1", 2, f"a corpus split by {name}", training.splitting, 3, 25, pattern=name)


def _beside(patterns: Iterable[str]) -> Iterator[Kind]:
    for name in patterns:
        title = f"beside special tokens, by {name}"
        yield _kind("SPECIAL-SEGMENT-1", 1, title, "encode", beside, pattern=name)


def _streams(patterns: Iterable[str]) -> Iterator[Kind]:
    for name in patterns:
        if name != "gpt2":
            title = f"split by {name}, cut everywhere"
            yield _kind("STREAM-EQUAL-1", 3, title, "stream", stream, cut="everywhere", pattern=name)


def _kind(clause: str, count: int, title: str, op: str, draw: Callable[..., Any], /, **options: Any) -> Kind:
    return Kind(clause, count, title, op, draw, options)


def _trains(clause: str, count: int, title: str, corpus: training.Corpus, low: int, high: int, **more: str) -> Kind:
    options = {"corpus": corpus, "merges": (low, high), **more}
    return Kind(clause, count, title, "train", training.train, options)


NUMBER_SIGNS = ("#", "##", "# ", "a", "#v", "\n")
NO_PAIRS = (" ", "\n", "a", "1", "a\n1", "!\na\n")
KINDS = (
    _kind("BYTES-ALPHABET-1", 6, "characters of all planes, without merges", "encode", code_points),
    _kind("BYTES-EMPTY-1", 1, "the empty text", "encode", nothing, given={"text": ""}),
    _kind("BYTES-ATOM-1", 8, "parts of characters as tokens", "encode", plain, pieces=CLASSES, count=30),
    _kind("BYTES-TEXT-1", 6, "composed and decomposed", "encode", plain, pieces=RAW_TEXT[:16]),
    _kind("BYTES-TEXT-2", 10, "what is easily stripped", "encode", plain, pieces=RAW_TEXT, ends=SPACE),
    _kind("BYTES-TEXT-3", 6, "control characters", "encode", plain, pieces=("\ufeff", "\0", "a", r"\p{C}")),
    *_splits(EARLIER),
    _kind("SPLIT-FENCE-1", 8, "merges that would cross borders", "encode", fence),
    _kind("TRAIN-TIE-1", 24, "a corpus of ties", "train", training.ties),
    _trains("TRAIN-TIE-1", 2, "more than a hundred ties", training.ties_of_many, 4, 8),
    _trains("TRAIN-TIE-1", 2, "ties of long tokens", training.long_ties, 60, 99),
    _trains("TRAIN-WEIGHT-1", 10, "words of different weight", training.weighted, 2, 20),
    _trains("TRAIN-WEIGHT-1", 1, "words of great weight", training.heavy, 2, 4),
    _trains("TRAIN-REPLACE-1", 12, "pairs that overlap", training.overlapping, 2, 12),
    _trains("TRAIN-RECOUNT-1", 12, "pairs side by side", training.overlapping, 6, 30),
    _trains("TRAIN-TEXT-1", 10, "a corpus as it is", training.as_it_is, 3, 15),
    _trains("TRAIN-BYTES-1", 8, "a corpus of scripts", training.scripts, 3, 20),
    _trains("TRAIN-BEST-1", 1, "a longer corpus", training.longer, 4, 8),
    _trains("TRAIN-BEST-1", 4, "real text", training.real, 20, 40),
    _trains("TRAIN-LENGTH-1", 4, "long words", training.long_words, 8, 16),
    _trains("TRAIN-SPLIT-1", 10, "a corpus with much to split", training.splitting, 3, 25),
    *_trains_by(EARLIER),
    _kind("TRAIN-SPECIAL-1", 12, "special tokens that overlap", "train", training.special, about="overlaps"),
    _kind("TRAIN-SPECIAL-2", 5, "special tokens of metacharacters", "train", training.special, about="metacharacters"),
    _kind("TRAIN-SPECIAL-3", 4, "parts of special tokens", "train", training.special, about="parts"),
    _kind("TRAIN-SPECIAL-4", 6, "white space beside special tokens", "train", training.special, about="space"),
    _kind("TRAIN-SPECIAL-6", 5, "near misses of special tokens", "train", training.special, about="near misses"),
    _kind("TRAIN-SIZE-1", 3, "a vocabulary that is filled", "train", training.size, merges=(1, 5)),
    _kind("TRAIN-SIZE-2", 2, "a vocabulary without merges", "train", training.size, merges=(0, 0)),
    _kind("TRAIN-END-1", 4, "a vocabulary that is not filled", "train", training.size, merges=(400, 500)),
    _kind("TRAIN-END-1", 2, "a text without pairs", "train", training.size, merges=(1, 9), texts=NO_PAIRS),
    _kind("TRAIN-EMPTY-1", 4, "a text of special tokens, or none", "train", training.size, merges=(1, 9), texts=("",)),
    _kind("TRAIN-IDS-1", 4, "a vocabulary that holds each token once", "train", training.size, merges=(1, 9)),
    _kind("MERGE-ORDER-1", 14, "merges in order of rank", "encode", merge, wrongs=(leftmost, latest, longest)),
    _kind("MERGE-RANK-1", 10, "a table whose ids are in random order", "encode", merge, wrongs=(by_id,), any_ids=True),
    _kind("MERGE-ID-1", 6, "ids with gaps", "encode", merge, any_ids=True),
    _kind("MERGE-PAIR-1", 12, "tokens that other pairs build", "encode", merge, wrongs=(by_bytes,)),
    _kind("MERGE-PAIR-1", 4, "pairs, and ids in random order", "encode", merge, wrongs=(by_bytes,), any_ids=True),
    _kind("MERGE-WHOLE-1", 5, "a pre-token that no merges build", "encode", merge, wrongs=(whole_first,)),
    _kind("MERGE-FULL-1", 6, "merging to the end", "encode", merge, longest=60),
    _kind("MERGE-LONG-1", 10, "a long pre-token", "encode", merge, longest=300),
    _kind("MERGE-LONG-1", 4, "a very long pre-token", "encode", merge, longest=990),
    _kind("MERGE-LONG-1", 2, "a long pre-token, ids in any order", "encode", merge, longest=990, any_ids=True),
    _kind("MERGE-STATE-1", 1, "many different words", "encode", many_words),
    _kind("MERGE-GPT2-1", 10, "stretches of real text", "encode", gpt2),
    _kind("SPECIAL-SCAN-1", 10, "special tokens that overlap", "encode", scan),
    _kind("SPECIAL-ORDER-1", 6, "special tokens in another order", "encode", scan),
    _kind("SPECIAL-EXACT-1", 8, "near misses of special tokens", "encode", nearly),
    _kind("SPECIAL-LITERAL-1", 6, "special tokens of metacharacters", "encode", literal),
    _kind("SPECIAL-SEGMENT-1", 8, "what stands beside special tokens", "encode", beside),
    *_beside(EARLIER),
    _kind("SPECIAL-SCAN-1", 1, "very many special tokens", "encode", many_specials),
    _kind("SPECIAL-EMPTY-1", 3, "an empty special token", "encode", entries, listed="with an empty one"),
    _kind("SPECIAL-ID-1", 6, "special tokens with entries anywhere", "encode", entries, listed="once"),
    _kind("SPECIAL-ABSENT-2", 4, "special tokens without entries", "encode", entries, listed="without entry"),
    _kind("SPECIAL-OFF-1", 4, "entries that are not listed as special", "encode", entries, listed="in part"),
    _kind("SPECIAL-REPEAT-1", 2, "special tokens that are listed twice", "encode", entries, listed="twice"),
    _kind("DECODE-BYTES-1", 10, "characters of several tokens", "decode", decode, pieces=CLASSES),
    _kind("DECODE-BYTES-1", 2, "many ids", "decode", decode, pieces=CLASSES, most=200),
    _kind("DECODE-EMPTY-1", 1, "no ids", "decode", nothing, given={"ids": []}),
    _kind("DECODE-UTF8-1", 20, "bytes that are not UTF-8", "decode", decode, invalid=0.6),
    _kind("DECODE-UTF8-1", 14, "little that is not UTF-8", "decode", decode, invalid=0.15),
    _kind("DECODE-BOM-1", 3, "byte-order marks", "decode", decode, pieces=("\ufeff", "\ufeff", "a")),
    _kind("DECODE-TEXT-1", 14, "text as it is", "decode", decode, pieces=RAW_TEXT),
    _kind("DECODE-SPECIAL-1", 6, "special tokens within characters", "decode", decode, special=True, invalid=0.2),
    _kind("STREAM-EQUAL-1", 20, "text, cut everywhere", "stream", stream, cut="everywhere"),
    _kind("STREAM-EQUAL-1", 10, "special tokens, cut everywhere", "stream", stream, cut="everywhere", special=True),
    _kind("STREAM-EQUAL-1", 4, "text, cut into characters", "stream", stream, cut="characters"),
    _kind("STREAM-EQUAL-1", 5, "special tokens, cut into characters", "stream", stream, cut="characters", special=True),
    _kind("STREAM-EQUAL-1", 8, "text, cut into chunks", "stream", stream, cut="chunks"),
    _kind("STREAM-EQUAL-1", 8, "special tokens, cut into chunks", "stream", stream, cut="chunks", special=True),
    *_streams(EARLIER),
    _kind("STREAM-EQUAL-1", 1, "no chunks", "stream", nothing, given={"chunks": []}),
    _kind("STREAM-EQUAL-1", 2, "long pre-tokens in single characters", "stream", long_stream, longest=1),
    _kind("STREAM-EQUAL-1", 2, "long pre-tokens in chunks", "stream", long_stream, longest=300),
    _kind("BATCH-EQUAL-1", 10, "texts of all lengths, in any order", "batch", batch),
    _kind("BATCH-EQUAL-1", 1, "very many texts", "batch", batch, most=400),
    _kind("BATCH-EQUAL-1", 1, "no texts", "batch", nothing, given={"texts": []}),
    _kind("FILE-MAP-1", 8, "awkward bytes are read", "load", file, load=True),
    _kind("FILE-LOAD-1", 6, "ids and keys in any order", "load", file, load=True),
    _kind("FILE-VERSION-1", 3, "merges of number signs", "load", file, load=True, pieces=NUMBER_SIGNS),
    _kind("FILE-SPECIAL-1", 4, "entries that look special", "load", file, load=True, special=True),
    _kind("FILE-SAVE-1", 7, "awkward bytes are saved", "save", file, load=False),
    _kind("FILE-SAVE-1", 3, "special tokens are saved", "save", file, load=False, special=True),
    *_splits(LATER),
    _kind("SPLIT-TRIADS-3", 16, "numerals, split by triads", "encode", split, pattern="triads", about="numerals"),
    *_trains_by(LATER),
    *_beside(LATER),
    *_streams(LATER),
    _kind("SPECIAL-ALLOWED-1", 10, "some special tokens allowed", "encode_allowed", chosen, barred=False),
    _kind("SPECIAL-DISALLOWED-1", 12, "some special tokens disallowed", "encode_allowed", chosen, barred=True),
)


def fresh_cases(seed: int, clauses: Mapping[str, Clause]) -> list[Case]:
    """Return the cases of `seed`, with the expectations of the oracle, in the order of the kinds.

    Args:
        seed: 0 or more; the same gives the same cases.
        clauses: clause id → clause, of the spec.

    Raises:
        ValueError: if the seed is negative.
    """
    if seed < 0:
        raise ValueError(f"the seed is {seed}; an integer of 0 or more is wanted")
    cases: list[Case] = []
    numbers: dict[str, int] = {}
    seen: set[str] = set()
    for place, kind in enumerate(KINDS):
        for number in range(kind.count):
            numbers[kind.section] = numbers.get(kind.section, 0) + 1
            name = f"seed-{seed}-{kind.section}-{numbers[kind.section]:03}"
            head = {"id": name, "title": f"seed {seed}: {kind.title}", "op": kind.op, "expect": {}}
            for attempt in range(ATTEMPTS):
                drawn = _draw(kind, f"{seed} {place} {number} {attempt}")
                if drawn is not None and repr(drawn) not in seen:
                    seen.add(repr(drawn))
                    cases.append(_with_expectation(read_case({**head, **drawn}, clauses[kind.clause])))
                    break
    return cases


def _draw(kind: Kind, key: str) -> dict[str, Any] | None:
    """Return the model and the input of a case, or None for a draw that shows nothing."""
    made = kind.draw(Draw(key), **kind.options)
    if made is None:
        return None
    return {"input": {"train": made}} if kind.op == "train" else {"model": made[0], "input": made[1]}


def _with_expectation(case: Case) -> Case:
    if case.op == "save":
        return replace(case, expect={"table": "same"})
    if case.clause.id == "MERGE-GPT2-1":
        return replace(case, model=gpt2_model(), expect=_by_gpt2(case.input["text"]))
    if case.clause.id == "SPECIAL-ABSENT-2":
        new = {"with_new_ids": compute(case, ["pair"])["tokens"]}
        return replace(case, expect={"any_of": [{"error": "special"}, new]}, note=REFUSED)
    if case.clause.id == "SPECIAL-EMPTY-1" and case.model is not None:
        named = tuple(token for token in case.model.special_tokens or () if token)
        ignored = compute(replace(case, model=replace(case.model, special_tokens=named)))
        return replace(case, expect={"any_of": [{"error": "special"}, ignored]}, note=REFUSED)
    return replace(case, expect=compute(case))


def _by_gpt2(text: str) -> dict[str, Any]:
    values = {}
    for key in LOOKUP_KEYS:
        tokenizer = oracle(gpt2_model(), key)
        values[key] = {"tokens": list(map(write_token, tokenizer.tokens(text))), "ids": tokenizer.encode(text)}
    return values["pair"] if values["pair"] == values["bytes"] else {"by_convention": values}
