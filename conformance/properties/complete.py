"""Spaces covered by construction, and questions that a program confuses if a key loses something. None is drawn.

A tokenizer can be wrong for a single pair of letters, a single length or a single position. `spaces` counts what each
property covers; `bpe-conformance list --summary` prints it. A cache, a vocabulary or a table of pairs can have a key
that loses something: one tokenizer is asked all of a group of similar questions in turn, and again in reverse.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain, pairwise, product
from typing import Any, TypeAlias, TypeVar

from bpe_conformance.fixtures import PATTERNS, Merge, Model, characters, read_model
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Digits, Pipeline, Punctuation

from ..answer import Acceptable, Answer, AnyError, Ids, Lossless, Refusal
from ..cases.judging import MUCH_TIME
from ..implementation.implementation import Implementation
from ..implementation.proxy import CallFailed, TimedOut, TokenizerProxy
from ..operations import (
    Batch,
    Decode,
    DecodeBytes,
    Detokenize,
    Encode,
    EncodeWithOffsets,
    Expected,
    Operation,
    Question,
    Save,
    Stream,
    Train,
)
from ..outcome import Dependence, Expectation, Mismatch
from . import strategies
from .asking import Instance, ask, correct_answer, equals_oracle, is_correct, judged, of_each_method, undisturbed
from .engine import Fixed, Property, Verdicts, first
from .lifecycle import COLLIDING, Origin

T = TypeVar("T")
BLOCK, FEW = 96, 48
"""How many pairs one encoding, and one training, tests: few, because simple tokenizers are quadratic."""
LONGEST = 128
PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
ASCII = "".join(chr(code) for code in range(0x80) if not (chr(code).isspace() or code in range(0x1C, 0x20)))
"""All but white space, and U+001C to U+001F, which are white space to some engines."""
CONTRACTIONS = ("'s", "'t", "'m", "'d")
"""In the longer ones, the pair of letters is as frequent as that with the apostrophe, and wins the tie."""
MIXED = (
    "The cat's 12 hats: \u00e9t\u00e9 \u65e5\u672c \U0001f98a!\n\n"
    "  x =\t[a1, b_2]  // don't; 3.14 \u0436\u0437 e\u0301 "
)


def class_of(char: str) -> str:
    category = unicodedata.category(char)[0]
    return category if category in "LN" else "other"


@cache
def pairs_of_characters() -> Mapping[Merge, str]:
    """Return each pair of printable ASCII characters that GPT-2's pattern leaves together → a pre-token with it."""
    words = [one + other for one, other in product(PRINTABLE, PRINTABLE) if class_of(one) == class_of(other)]
    words += [f" {char}" for char in PRINTABLE] + list(CONTRACTIONS)
    return {(word[:1].encode(), word[1:2].encode()): word for word in words}


@cache
def pairs_of_bytes() -> Mapping[str, Mapping[Merge, str]]:
    """Return each pair of bytes of UTF-8 that GPT-2's pattern leaves together → a pre-token that holds it.

    They are in groups: no pre-token holds two pairs of its group. White space is left out.
    """
    firsts, lasts = ({name: dict[int, str]() for name in ("L", "N", "other")} for _ in range(2))
    runs = characters.agreed()
    digits = (char for run in runs for char in run if char.isdecimal())
    for char in (*strategies.characters_at_edges(), *(char for run in runs for char in run[::61]), *digits):
        data = char.encode("utf-8")
        if len(data) > 1 and not char.isspace():
            firsts[class_of(char)].setdefault(data[0], char)
            lasts[class_of(char)].setdefault(data[-1], char)
    ascii_of = {name: [char for char in ASCII if class_of(char) == name] for name in firsts}
    alone = [chr(code) for code in range(0x80, 0x800) if not chr(code).isspace() and chr(code) != "\x85"]
    alone += map(chr, (*range(0x825, 0xD800, 0x40), *range(0xE025, 0x10000, 0x40)))  # every second byte, then A5
    alone += map(chr, range(0x10965, 0x110000, 0x1000))  # every second byte, then A5 A5
    starts = {name: found.values() for name, found in firsts.items()}
    ends = {name: found.values() for name, found in lasts.items()}

    def beside(first: Mapping[str, Iterable[str]], second: Mapping[str, Iterable[str]]) -> dict[Merge, str]:
        found: dict[Merge, str] = {}
        for name in firsts:
            for one, other in product(first[name], second[name]):
                found.setdefault((one.encode()[-1:], other.encode()[:1]), one + other)
        return found

    after_e4 = map(chr, range(0x4000, 0x5000))  # all characters with this first byte
    all_starts = (char for name in firsts for char in (*ascii_of[name], *starts[name]))
    return {
        "ASCII, ASCII": beside(ascii_of, ascii_of),
        "space, any first byte": {(b" ", char.encode()[:1]): f" {char}" for char in all_starts},
        "ASCII, first byte": beside(ascii_of, starts),
        "last byte, ASCII": beside(ends, ascii_of),
        "last byte, first byte": beside(ends, starts),
        "first byte, second byte": {(char.encode()[:1], char.encode()[1:2]): char for char in alone},
        "second byte, third byte": {(char.encode()[1:2], char.encode()[2:]): char for char in after_e4},
    }


def spaces() -> Mapping[str, int]:
    """Return the name of each space → its size."""
    return {
        "pairs of printable ASCII characters, learned and merged in training": len(pairs_of_characters()),
        "pairs of bytes of UTF-8, merged in encoding": sum(map(len, pairs_of_bytes().values())),
        "ASCII characters, three in a row, of which a joined key confuses two pairs": 0x80,
        "ends and middles of ranges of characters of one category, encoded": len(parts_of_ranges()),
        "lengths of a text, of a pre-token and of an entry, encoded": 2 * LONGEST + len(UNBUILT),
        "positions of a cut in a stream": LONGEST + 1,
        "first bytes of a character, with what can follow, decoded": len(SUBPARTS),
        "special tokens, marks and parts of characters, decoded beside each other": len(NEIGHBOURS) ** 2,
        "runs of white space characters in a stream": len(RUNS),
    }


def together(
    implementation: Implementation,
    clause_id: str,
    question: Question[Any],
    right: Acceptable | None,
    alone: Iterable[Question[Any]],
) -> Verdicts:
    """Ask about many inputs at once. If the answer is incorrect, ask about each alone.

    `right` is the correct answer if no other split is declared. None: the oracle's.
    """
    if right is None or implementation.conventions["pattern"] != "gpt2":
        right = correct_answer(question, implementation.conventions)
    factor = MUCH_TIME if implementation.is_remote else 1
    if not is_correct(implementation, question, ask(implementation, question, factor), right):
        yield from (equals_oracle(implementation, one, clause_id) for one in (*alone, question))


Pose: TypeAlias = Callable[[Sequence[T]], tuple[Question[Any], Answer | None]]


def in_blocks(implementation: Implementation, clause_id: str, items: Sequence[T], size: int, pose: Pose[T]) -> Verdicts:
    """Ask about `size` inputs at once, then about the next. `pose` returns a question, and its answer or None."""
    for start in range(0, len(items), size):
        block = items[start : start + size]
        yield from together(implementation, clause_id, *pose(block), (pose([one])[0] for one in block))


def _training(words: Sequence[str]) -> tuple[Question[Any], None]:
    return Question(Train("\n".join(words), 256 + len(words))), None


@Fixed("law-train-pairs", "LAW-TRAIN-1", ("train",))
def trains_pairs(implementation: Implementation) -> Verdicts:
    """Every pair of printable ASCII characters that can be in one pre-token is learned and merged."""
    words = list(pairs_of_characters().values())
    yield from in_blocks(implementation, "LAW-TRAIN-1", words, FEW, _training)


def encoding(pairs: Sequence[tuple[Merge, str]]) -> tuple[Question[Any], Ids]:
    """Return a question in which each of the pairs is merged once, and its answer."""
    model = strategies.with_ids([pair for pair, _ in pairs])
    ids: list[int] = []
    for rank, (pair, word) in enumerate(pairs):
        before, _, after = word.encode("utf-8").partition(b"".join(pair))
        ids += [10, *before, 256 + rank, *after]
    return Question(Encode("".join(f"\n{word}" for _, word in pairs)), model), Ids(tuple(ids))


@Fixed("law-encode-pairs", "LAW-ENCODE-1", ("encode",))
def encodes_pairs(implementation: Implementation) -> Verdicts:
    """Every pair of bytes that UTF-8 allows within a pre-token is merged."""
    for pairs in pairs_of_bytes().values():
        yield from in_blocks(implementation, "LAW-ENCODE-1", list(pairs.items()), BLOCK, encoding)


def _building(words: Iterable[str]) -> list[Merge]:
    """Return merges that build each word from the left. The order is such that none of `COLLIDING` hinders another."""
    spelled = (word.encode() for word in sorted(words, reverse=True))
    return [*dict.fromkeys((word[:end], word[end : end + 1]) for word in spelled for end in range(1, len(word)))]


def _of_equal_hashes() -> Iterator[tuple[Model, str]]:
    """Yield tables with a merge of two tokens, and a text of others that have the same hash together or one by one."""
    for one, other in chain.from_iterable((words, words[::-1]) for words in COLLIDING):
        halves = [half for word in (one, other) for half in (word[: len(word) // 2], word[len(word) // 2 :])]
        yield strategies.with_ids([*_building(halves), (halves[0].encode(), halves[1].encode())]), f"{other} {one}"
        beside = [(one.encode(), b"Z"), (b"Z", one.encode())]
        yield strategies.with_ids([*_building((one, other)), *beside]), f"{other}Z Z{other} {one}Z Z{one}"


FACTORS = (1_000, 1 << 12, 1 << 16, 50_257, 100_000, 1 << 17, 200_000, 1 << 18, 500_000, 1_000_000)
"""Factors in usual keys of pairs. Ids of 2**20 and more need not work (MERGE-ID-2)."""


def _of_equal_keys() -> Iterator[tuple[Model, str]]:
    """Yield tables with an id so great that `left * factor + right`, or the reverse, is equal for two pairs."""
    merges = ((b"!", b"!"), (b'"', b"!!"), (b"!!", b'"'))
    for factor in FACTORS:
        ids = range(factor + ord("!"), factor + ord("!") + len(merges))
        vocab = {at: bytes([at]) for at in range(256)} | dict(zip(ids, map(b"".join, merges), strict=True))
        yield Model(vocab, merges), "#! !#"


@Fixed("law-encode-keys", "MERGE-PAIR-1", ("encode",))
def keys(implementation: Implementation) -> Verdicts:
    """For every ASCII character, `aaa` becomes `aa` and `a`, and pairs with equal hashes or keys are not confused."""
    for model, text in chain(_of_equal_hashes(), _of_equal_keys()):
        yield equals_oracle(implementation, Question(Encode(text), model), "MERGE-PAIR-1")
    chars = [*map(chr, range(0x80))]
    merges = [pair for char in chars for pair in ((char.encode(), char.encode()), (char.encode(), 2 * char.encode()))]
    model = strategies.with_ids(merges)
    texts = ["\n".join(char * 3 for char in ASCII), *(char * 3 for char in chars if char not in ASCII)]
    for text in texts:
        question = Question(Encode(text), model)
        alone = (replace(question, operation=Encode(part)) for part in text.split("\n") if part)
        yield from together(implementation, "MERGE-PAIR-1", question, None, alone)


RANGES = {"L": "a", "N": "1", "other": "."}
"""A character of each class. It is in one pre-token with a character of its own class only."""


@cache
def parts_of_ranges() -> Sequence[str]:
    """Return the ends and the middle of every range of one category, each after a character of its class."""
    chars = strategies.characters_at_edges()
    return tuple(RANGES[class_of(char)] + char for char in chars if not char.isspace())


def encoding_of_ranges(words: Sequence[str]) -> tuple[Question[Any], Ids]:
    """Return a question in which the first two bytes of each of these words are merged, and its answer."""
    spelled = [word.encode("utf-8") for word in words]
    pairs = list(dict.fromkeys((word[:1], word[1:2]) for word in spelled))
    ids = [index for word in spelled for index in (10, 256 + pairs.index((word[:1], word[1:2])), *word[2:])]
    text = "".join(f"\n{word.decode()}" for word in spelled)
    return Question(Encode(text), strategies.with_ids(pairs)), Ids(tuple(ids))


def encoding_after_spaces(words: Sequence[str]) -> tuple[Question[Any], Ids]:
    """Return a question in which the last characters of these words follow two spaces, and its answer.

    The first space is alone in its pre-token, unless a program takes the character for the end of the text.
    """
    text = "".join(f"\na  {word[-1]}" for word in words)
    return Question(Encode(text), strategies.with_ids([(b" ", b" ")])), Ids(tuple(text.encode("utf-8")))


@Fixed("law-split-ranges", "SPLIT-UNICODE-1", ("encode",))
def ranges(implementation: Implementation) -> Verdicts:
    """The ends and the middle of every range of letters, numbers and other characters are split by class."""
    yield from in_blocks(implementation, "SPLIT-UNICODE-1", parts_of_ranges(), BLOCK, encoding_of_ranges)


@Fixed("law-split-ends", "SPLIT-SPACE-1", ("encode",))
def ends_of_texts(implementation: Implementation) -> Verdicts:
    """After white space, no character ends the text: no control character, no noncharacter, not U+FFFD."""
    words = [*parts_of_ranges(), *ASCII]
    yield from in_blocks(implementation, "SPLIT-SPACE-1", words, BLOCK, encoding_after_spaces)


@Fixed("law-offsets-ranges", "OFFSET-UNIT-1", ("encode_with_offsets",))
def spans_of_ranges(implementation: Implementation) -> Verdicts:
    """A character of any category counts as one in the spans."""

    def pose(words: Sequence[str]) -> tuple[Question[Any], None]:
        return Question(EncodeWithOffsets("\n".join(words)), strategies.with_ids(())), None

    yield from in_blocks(implementation, "OFFSET-UNIT-1", parts_of_ranges(), BLOCK, pose)


LINE_ENDS = "\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\u00a0\u180e\u200b\u2028\u2029\u3000\ufeff"
"""Characters that some engine counts as the end of a line or as white space, and others do not."""


def encoding_beside_line_ends(pattern: str, chars: Sequence[str]) -> tuple[Question[Any], None]:
    """Return a question in which each of these characters is beside each class of characters, or is repeated."""
    text = "".join(f"a{char}{char}!{char}a1{char}2 {char} b\n{char}\n!{char}{char}b" for char in chars)
    return Question(Encode(text), replace(_of_neighbours(text), pattern=pattern)), None


@Fixed("law-split-line-ends", "SPLIT-NAME-1", ("encode", "pattern"))
def beside_line_ends(implementation: Implementation) -> Verdicts:
    """Under each named pattern, characters that some engines count as line ends are split as the expression says."""
    for name in strategies.patterns(implementation):
        pose = partial(encoding_beside_line_ends, name)
        yield from in_blocks(implementation, "SPLIT-NAME-1", LINE_ENDS, len(LINE_ENDS), pose)


_STARTS = strategies.with_ids([(b"x", bytes([byte])) for byte in range(256) if byte != ord("x")])
CLASSES = {
    "PIPELINE-PUNCTUATION-1": ("{}", Pipeline((), (), (Punctuation("Removed"), ByteLevel(split=False)))),
    "PIPELINE-DIGITS-1": ("x{}", Pipeline((), (), (Digits(individual=True), ByteLevel(split=False)))),
    "PIPELINE-WORD-1": ("{}x ", Pipeline((), (AddedToken("x", single_word=True),), (ByteLevel(),))),
}
"""Clause about a class of characters → a place for each, and the pipeline that shows whether it is of the class."""


@Fixed("law-pipeline-classes", "PIPELINE-PUNCTUATION-1", ("from_tokenizer_json", "encode"))
def classes_in_pipelines(implementation: Implementation) -> Verdicts:
    """Punctuation, digits and the characters of words are the characters of their categories, and no others."""
    for clause, (place, pipeline) in CLASSES.items():

        def pose(chars: Sequence[str], place: str = place, pipeline: Pipeline = pipeline) -> tuple[Question[Any], None]:
            model = replace(_STARTS, pipeline=pipeline)
            return Question(Encode("".join(map(place.format, chars))), model), None

        yield from in_blocks(implementation, clause, strategies.characters_of_old_categories(), 5 * BLOCK, pose)


_MERGES = [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c"), (b" ", b"h"), (b"\n", b"\n"), (b"\xc3", b"\xa9")]
MODEL = strategies.with_ids(_MERGES)
CUT_TEXTS = tuple((part * LONGEST)[:LONGEST] for part in (MIXED, "abc"))


UNBUILT = tuple(letter * length for letter in "q\u00e9" for length in range(3, LONGEST + 1))
"""Entries that no merges build. Two letters would be a merge under the lookup `bytes`."""
WITH_UNBUILT = replace(MODEL, vocab={**MODEL.vocab, **{1000 + at: word.encode() for at, word in enumerate(UNBUILT)}})


@Fixed("law-encode-lengths", "LAW-ENCODE-1", ("encode",))
def lengths(implementation: Implementation) -> Verdicts:
    """Texts, pre-tokens, and entries that no merges build, of each length up to 128 characters give the correct ids."""
    cut = [text[:end] for text in CUT_TEXTS for end in range(1, LONGEST + 1)]
    for model, texts in ((MODEL, cut), (WITH_UNBUILT, UNBUILT)):
        instance = Instance(implementation, model)
        for text in texts:
            question = Question(Encode(text), model)
            answer, right = instance.ask(question), correct_answer(question, implementation.conventions)
            if answer != right:
                found = equals_oracle(implementation, question, "LAW-ENCODE-1")
                yield found or Mismatch(question, Expectation((right,)), answer)
                break


BEFORE = "w " * 900
"""Some streams cut only when they hold a thousand characters. A pre-token of more than 2,048 bytes may be refused."""
GATHERED = (50, 300, 2_100)
"""Others hold fewer characters, or more, before they cut."""
HELD_BACK = ("a <a <b", "<b", "< e>", "<<a bb>", "bb")
HELD = "!a <a <b !a <b <a < e> <<a bb> <<a bb"
"""Special tokens that overlap or contain a space, so a stream may not cut inside them, and a text with them."""
UNSPLIT, UNSPLIT_TEXT = strategies.with_ids([(b"a", b" "), (b" ", b"b"), (b"w", b" ")]), "a b b a a b a"
UNSPLIT = replace(UNSPLIT, pattern="none")
CUT_IN_PIPELINES = "a b ab c a<s>  \u00e9 <s>e\u0301 <s> \u2126 \u304c\u3001b \u304b\u3099\u3001b <s"
PIPELINES = [Pipeline((form,), (AddedToken("<s>"),), (ByteLevel(),)) for form in ("NFC", "NFD")]
PIPELINES += [
    Pipeline((), (AddedToken("<s>", **{flag: True}),), (ByteLevel(),))
    for flag in ("lstrip", "rstrip", "single_word", "normalized")
]
PIPELINES.append(Pipeline((), (AddedToken("a b"), AddedToken("ab", rstrip=True)), (ByteLevel(),)))
CUTS_IN_PIPELINES = [
    *((pipeline, CUT_IN_PIPELINES) for pipeline in PIPELINES),
    (Pipeline((), (AddedToken("<m>", lstrip=True), AddedToken("<m>>")), (ByteLevel(),)), "x  <m>>  <m> <m>>"),
    (Pipeline(("NFC",), (), (ByteLevel(),)), "a\n\n\n b\n\n\nc\n"),
]


def _cut_anywhere(
    implementation: Implementation, model: Model, text: str, before: str = "", cuts: Iterable[int] | None = None
) -> Verdicts:
    right = correct_answer(Question(Encode(before + text), model), implementation.conventions)
    instance = Instance(implementation, model)
    for cut in range(len(text) + 1) if cuts is None else cuts:
        question = Question(Stream((before + text[:cut], text[cut:])), model)
        if instance.ask(question) != right:
            yield equals_oracle(implementation, question, "LAW-STREAM-1")
            return


@Fixed("law-stream-cuts", "LAW-STREAM-1", ("encode_iterable",))
def cuts(implementation: Implementation) -> Verdicts:
    """A stream gives the same ids wherever a text is cut in two, and if white space arrives character by character."""
    for before in ("", BEFORE):
        yield from _cut_anywhere(implementation, MODEL, CUT_TEXTS[0], before)
    special = HELD_BACK if "special" in implementation.capabilities else ()
    for model, text in ((strategies.with_ids(_MERGES, special=special), HELD), (UNSPLIT, UNSPLIT_TEXT)):
        if model.pattern == "gpt2" or f"pattern:{model.pattern}" in implementation.capabilities:
            for size in GATHERED:
                yield from _cut_anywhere(implementation, model, text, "w " * (size // 2))
    for char in (*BLANKS, *OTHER_BLANKS):
        yield from _cut_anywhere(implementation, _pairs_of_blanks(), f"a{char}  b", "w " * (GATHERED[-1] // 2), (2, 3))
    runs = Question(Stream(tuple("".join(STREAM))), _pairs_of_blanks())
    alone = (replace(runs, operation=Stream((*run,))) for run in STREAM)
    yield from together(implementation, "LAW-STREAM-1", runs, None, alone)


@Fixed("law-pipeline-cuts", "PIPELINE-WAYS-1", ("encode_iterable", "from_tokenizer_json"))
def cuts_in_pipelines(implementation: Implementation) -> Verdicts:
    """A stream through a pipeline gives the same ids wherever a text with added tokens is cut in two."""
    merges = [(b" ", b" "), (b"\n", b"\n"), (b"\x99", b"\xe3")]  # under NFD, an ideographic comma follows U+3099
    for pipeline, text in CUTS_IN_PIPELINES:
        added = [token.content for token in pipeline.added_tokens]
        model = replace(strategies.with_ids(merges, special=added), special_tokens=None, pipeline=pipeline)
        yield from _cut_anywhere(implementation, model, text, BEFORE)


BESIDE_BLANKS = tuple("".join(parts) for parts in product(("<s>", " x", "x ", "\n\n", " ", "b"), repeat=3))


@Fixed("law-pipeline-blanks", "OFFSET-SPECIAL-1", ("encode_with_offsets", "from_tokenizer_json"))
def blanks_in_pipelines(implementation: Implementation) -> Verdicts:
    """An added token covers all of itself, even if it begins, ends or lies in white space that another one took."""
    added = [AddedToken("<s>", lstrip=True, rstrip=True), *map(AddedToken, (" x", "x ", "\n\n"))]
    for tokens in (added, [replace(token, normalized=True) for token in added]):
        model = strategies.with_ids((), special=[token.content for token in tokens])
        pipeline = Pipeline(("NFC",), tuple(tokens), (ByteLevel(),))
        model = replace(model, special_tokens=None, pipeline=pipeline)
        whole, *alone = (Question(EncodeWithOffsets(one), model) for one in ("".join(BESIDE_BLANKS), *BESIDE_BLANKS))
        yield from together(implementation, "OFFSET-SPECIAL-1", whole, None, alone)


@Fixed("law-pipeline-strips", "PIPELINE-STRIP-1", ("encode", "from_tokenizer_json"))
def strips_in_pipelines(implementation: Implementation) -> Verdicts:
    """An added token with `lstrip` or `rstrip` takes any white space character on that side, and nothing else."""
    added = (AddedToken("<l>", lstrip=True), AddedToken("<r>", rstrip=True))
    model = strategies.with_ids((), special=[token.content for token in added])
    model = replace(model, special_tokens=None, pipeline=Pipeline((), added, (ByteLevel(),)))
    texts = [f"a{char}<l>{char}b<r>{char}c" for char in (*BLANKS, *OTHER_BLANKS, *NEARLY_BLANKS)]
    whole, *alone = (Question(Encode(text), model) for text in ("".join(texts), *texts))
    yield from together(implementation, "PIPELINE-STRIP-1", whole, None, alone)


BLANKS = " \t\n\r\u00a0\u3000"
NEARLY_BLANKS = "\x1c\x1d\x1e\x1f\u00ad\u180e\u200b\u200d\u2060\ufeff"
"""Characters that `str.isspace`, an older Unicode or a reader takes for white space, and the patterns do not."""
OTHER_BLANKS = (
    "\x0b\x0c\x85\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f"
)
RUNS = (
    *(f"a{''.join(run)}b" for run in product(BLANKS, repeat=3)),
    *(f"a{run}b" for char in OTHER_BLANKS for run in (f"{char}  ", f" {char} ", f"  {char}", f"{char}{char} ")),
)
"""White space of one byte, of two and of three, where a stream may not cut."""
STREAM = (*RUNS, *(f" !{char}! b" for char in NEARLY_BLANKS))


@cache
def _pairs_of_blanks() -> Model:
    """Return a table in which each pair of these white space characters is one token, and each `!` with the others."""
    merges: dict[Merge, None] = {}
    for char in (one.encode() for one in BLANKS + OTHER_BLANKS + NEARLY_BLANKS):
        merges.update({(char[:end], char[end : end + 1]): None for end in range(1, len(char))})
    merges.update({(one.encode(), other.encode()): None for one, other in product(BLANKS, BLANKS)})
    for char in (one.encode() for one in OTHER_BLANKS):
        merges.update({(char, b" "): None, (b" ", char): None, (char, char): None})
    for char in (one.encode() for one in NEARLY_BLANKS):
        merges.update({(b"!", char): None, (b"!" + char, b"!"): None})
    return strategies.with_ids([*merges])


# Caches

_LONG = "abcd" * 20
_MEDIUM = "ab cd " * 100
_LONGER = "ab cd " * 2_000  # some caches keep only long texts, by their length and their ends
_PREFIX = list(range(97, 101)) * 20
WIDE_IDS = {321: b"ab", 65_601: b"cd", 131_137: b"abcd", 524_353: b"AB"}
"""Their low bytes are 65, and so are the low 16 bits of all but the first. An id of 20 bits has to be possible."""
IDS: Sequence[Sequence[Sequence[int]]] = (
    ([65], [321], [65_601], [131_137], [524_353]),
    ([1, 23], [12, 3], [123], [1, 2, 3]),
    ([111], [11, 1], [1, 11], [1, 1, 1]),
    ([65, 66, 67], [67, 66, 65], [65, 67, 66], [66, 65, 67], [65, 66, 66, 67], [65, 65, 66, 67]),
    ([65], [65, 0], [0, 65], [65, 65], []),
    ([*_PREFIX, 65], [*_PREFIX, 66], [65, *_PREFIX], [66, *_PREFIX]),
    ([*_PREFIX[:40], 65, *_PREFIX[40:]], [*_PREFIX[:40], 66, *_PREFIX[40:]]),
)
"""Rows of ids that an incorrect key of a cache confuses: one that drops zeros, or keeps only low bits, joined digits,
sorted ids, their set or sum, or the first and last ids."""
TEXTS: Sequence[Sequence[str]] = (
    ("ab", "AB", "Ab", "aB", "ba", "BA"),
    ("ab", " ab", "ab ", "  ab", "ab\n", "\tab", "ab\0", "ab\r\n", "ab\u00a0", "\ufeffab", "ab\u200b"),
    ("\u0061", "\u0161", "\u6161", "\U00010061", "a\u0301", "\u00e1", "\uff41"),
    ("k", "K", "\u212a", "\u212b", "\u00c5", "A\u030a", "\u0130", "i", "\u0131", "\u017f", "s", "\u00df", "ss"),
    ("1", "01", "1.0", "+1", "1e0", "001", "10", "1e1", "0x1", "\u0661", "\u00b9", "\u2460"),
    (f"{_LONG}a", f"{_LONG}b", f"a{_LONG}", f"b{_LONG}", f"{_LONG[:40]}b{_LONG[40:]}", f"{_LONG[:40]}c{_LONG[40:]}"),
    (_MEDIUM, f"{_MEDIUM[:300]}ba{_MEDIUM[302:]}", f"{_MEDIUM[:306]}ba{_MEDIUM[308:]}"),
    (_LONGER, f"ba{_LONGER[2:]}", f"{_LONGER[:6_000]}ba{_LONGER[6_002:]}", f"{_LONGER[:-6]}ba cd "),
    ("ab cd", "cd ab", "abc d", "a bcd", "abcd", "ab\ncd", "ab cd ab", "ab ab cd"),
    ("abc\u00e9 \u65e5\u00e9", "\u00e9abc \u00e9\u65e5", "ab\u00e9c \u65e5\u00e9"),
    ("?", "\ufffd", "\U0001f98a", "\U0001f98b", "\u00bf", "\u263a", "\u263a\ufe0f"),
)
"""Rows of texts that an incorrect key of a cache confuses: one that ignores case, white space or order, keeps only a
part of the text or its length in characters and in bytes, or normalizes or parses it."""
CHUNKS: Sequence[Sequence[Sequence[str]]] = (
    (["ab", "cd"], ["cd", "ab"], ["ab", "dc"], ["ba", "cd"], ["ab", "ab"], ["ab", "cd", "ab"]),
    (["ab"], ["ab", "ab"], ["a", "b"], ["b", "a"], ["ab", " "], ["AB"], ["", "AB"]),
    ([_LONG, "a"], [_LONG, "b"], ["a", _LONG], ["b", _LONG]),
)
BATCHES: Sequence[Sequence[Sequence[str]]] = (
    (["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""], ["", "abc"], ["a", "b", "c"], ["c", "b", "a"]),
    (["ab", "cd"], ["cd", "ab"], ["ab", "cd", "ab"], ["ab", "ab", "cd"], ["AB", "cd"]),
    (["ab cd"], ["ab", "cd"], ["ab,cd"], ["ab\ncd"], ["ab\0cd"], ["['ab', 'cd']"]),
    ([f"{_LONG}a"], [f"{_LONG}b"], [f"a{_LONG}"]),
)
_TRAINED = "abcabd abcabe <|s|> cdcdcd"
_LONGER_TRAINED = (f"{_TRAINED} efef", f"efef {_TRAINED}")
_LARGER_EACH_TIME = ((258, ()), (270, ()), (300, ("ab",)), (310, ()), (312, ("ab", "cd")))
TRAININGS: Sequence[Sequence[Train]] = (
    (Train(_TRAINED, 262), Train(_TRAINED, 260), Train(_TRAINED, 258), Train(_TRAINED[::-1], 262)),
    (Train(_TRAINED.upper(), 262), Train(_TRAINED, 261), *(Train(text, 262) for text in _LONGER_TRAINED)),
    (Train(f"{_TRAINED} <|s|> <|s|>", 262), Train(f"{_TRAINED} <|s|> <|s|>", 262, ("<|s|>",))),
    tuple(
        Train("pqqp pq qp PQ QP pq,qp", 262, special)
        for special in (("pq", "qp"), ("pqqp",), ("pq qp",), ("pq,qp",), ("PQ", "QP"))
    ),
    tuple(Train("a1 a1a A1\n\nA12 12345", 270, (), pattern) for pattern in PATTERNS),
    tuple(Train(f"b{char} b{char}", 262) for char in ("\u00e9", "e\u0301")),
    tuple(Train(f"{' ab' * 40} {word}{' ab' * 400}", 260) for word in ("cdcd", "dcdc")),
    tuple(Train(f"{' ab' * 440} {word}", 260) for word in ("cdcd", "dcdc")),
    *(tuple(Train(word, 258) for word in words) for words in COLLIDING),
    tuple(Train("abcd efgh abxyzw mnop abqrs " * 3, size, special) for size, special in _LARGER_EACH_TIME),
)
"""Equal in their texts, as sorted letters, without case, at both ends, without special tokens or if these are joined,
without the pattern, in their normal form, or in a hash of 32 bits; or larger each time."""


@cache
def _model() -> Model:
    pairs = ["ab", "cd", "AB", "a\u0301", "01", "\u00e1"]
    merges: list[Merge] = [(pair.encode()[:1], pair.encode()[1:2]) for pair in pairs] + [(b"ab", b"cd")]
    return strategies.with_ids(merges)


@cache
def _wide_model() -> Model:
    model = strategies.with_ids([(b"a", b"b"), (b"c", b"d"), (b"ab", b"cd"), (b"A", b"B")])
    return replace(model, vocab={at: token for at, token in model.vocab.items() if at < 256} | WIDE_IDS)


def _in_turn(implementation: Implementation, model: Model | None, groups: Iterable[Iterable[Operation]]) -> Verdicts:
    """Ask one tokenizer the questions of each group, and again in reverse."""
    tokenizer = None if model is None else Instance(implementation, model)
    asked_earlier = list[tuple[Question[Any], Acceptable]]()
    for group in groups:
        questions = [Question[Any](operation, model) for operation in group]
        rights = [(question, correct_answer(question, implementation.conventions)) for question in questions]
        context = ""
        for question, right in [*rights, *reversed(rights)]:
            asked = replace(question, context=context)
            answer = ask(implementation, asked) if tokenizer is None else tokenizer.ask(asked)
            context = f"after {_brief(question.operation)}, among others"
            if not is_correct(implementation, question, answer, right):
                # an answer to another question is confused, even if a new tokenizer gives it: a class can have a cache
                is_confused = any(is_correct(implementation, other, answer, known) for other, known in asked_earlier)
                if is_confused and not _is_wrong_alone(implementation, question, right):
                    yield Mismatch(asked, Expectation((right,)), answer)
                yield undisturbed(implementation, asked, answer)
            asked_earlier.append((question, right))


def _is_wrong_alone(implementation: Implementation, question: Question[Any], right: Acceptable) -> bool:
    """Return whether the answer is incorrect in a new process, too; False if none can be started."""
    if implementation.spawn is None:
        return False
    try:
        with implementation.time_limit(math.inf, is_diagnosis=True), implementation.in_new_process() as other:
            return not is_correct(other, question, ask(other, question), right)
    except (CallFailed, TimedOut):
        return False


def _brief(operation: Operation) -> str:
    shown = ", ".join(ascii(value) for value in operation.call().arguments or ())
    return f"{operation.call().method}({shown if len(shown) <= 60 else f'{shown[:28]} ... {shown[-27:]}'})"


MANY_WORDS = " ".join(map(str, range(4_096)))
LONG_WORDS = ("x" * 40, "y" * 41, "z" * 42)
"""Words of so many tokens that a cache may not keep them."""
BEGUN = "a <a b> b  <a b>"
_MODEL_OF_BEGUN = strategies.with_ids((), special=["<a b>", "b "])
NEW_TEXTS, LONG_TAIL = 40, " cd" * 95
"""A new text often has the address of an earlier one, so a cache cannot use `id()` as its key.

Few objects are as large as these texts, so nothing else takes the address of the last one.
"""
NEW_TABLES = 64
"""So many are made one after another that some have the address of an earlier one, whose table was another."""
OF_TEXTS: Sequence[Callable[[str], Operation]] = (
    Encode,
    EncodeWithOffsets,
    lambda text: Batch((text,)),
    lambda text: Stream((text,)),
)
OF_IDS: Sequence[Callable[[tuple[int, ...]], Operation]] = (Decode, DecodeBytes, Detokenize)


def _rows_of_texts(implementation: Implementation, with_long: bool = True) -> Sequence[Sequence[str]]:
    """Return the rows of texts. A long one that nothing splits takes the oracle, and many tokenizers, too long."""
    if with_long and implementation.conventions["pattern"] != "none":
        return TEXTS
    return [row for row in TEXTS if _LONGER not in row]


def _confused(
    implementation: Implementation, *kinds: Callable[[Any], Operation], pipeline: Pipeline | None = None
) -> Verdicts:
    """Ask each kind of question about the rows of texts, or of ids.

    What is wrong without a pipeline, too, is not the fault of a pipeline.
    """
    for kind in kinds:
        is_of_ids = kind in OF_IDS
        if is_of_ids and implementation.conventions["lookup"] == "bytes":
            continue
        texts = _rows_of_texts(implementation, with_long=kind is Encode)  # a long text takes most of the time
        rows: Sequence[Sequence[Any]] = IDS if is_of_ids else texts
        groups = [[kind(tuple(one) if is_of_ids else one) for one in row] for row in rows]
        if {*groups[0][0].needs} <= implementation.capabilities:
            plain = _wide_model() if is_of_ids else _model()
            found = first(_in_turn(implementation, replace(plain, pipeline=pipeline), groups))
            is_own = pipeline is None or found is None or found.depends_on is not None
            yield found if is_own or first(_in_turn(implementation, plain, groups)) is None else None


@Fixed("law-cached-texts", "LAW-PURE-1", ("encode",))
def texts(implementation: Implementation) -> Verdicts:
    """One tokenizer encodes texts that are equal in their case, length, low bits, ends, normal form or address."""
    yield from _confused(implementation, Encode)
    tokenizer = Instance(implementation, _model())
    asked = [Question(Encode(f"ab {number:04}{LONG_TAIL}"), _model()) for number in range(NEW_TEXTS)]
    rights = [correct_answer(question, implementation.conventions) for question in asked]
    for number, (question, right) in enumerate(zip(asked, rights, strict=True)):

        def encode(proxy: TokenizerProxy, number: int = number) -> Answer:
            return Ids(tuple(proxy.encode(f"ab {number:04}{LONG_TAIL}")))

        answer = tokenizer.call(encode)
        if not is_correct(implementation, question, answer, right):
            yield undisturbed(implementation, replace(question, context="after a text that no longer exists"), answer)
    filled = Instance(implementation, _model())
    filled.ask(Question(Encode(MANY_WORDS), _model()))
    for question in (Question(Encode(word), _model(), "after many other words") for word in LONG_WORDS):
        for _ in range(2):  # a cache can store the key of a long value, but keep the value of the key before it
            yield undisturbed(implementation, question, filled.ask(question))
    if "special" in implementation.capabilities:
        yield from _in_turn(implementation, _MODEL_OF_BEGUN, _begun())


def _begun() -> Iterator[Sequence[Operation]]:
    """Yield pairs: a beginning of a text, which may end inside a special token, and the text."""
    return ([Encode(BEGUN[:end]), Encode(BEGUN)] for end in range(1, len(BEGUN)))


LOOK_ALIKES = ("?", "\ufffd", "\ufffd\ufffd\ufffd", "", " ", "\ud7ff", "\ue000", "\U00010000")
"""What programs write in place of a lone surrogate, or what is next to one."""


@Fixed("law-cached-surrogates", "ERROR-SURROGATE-1", ("encode",))
def surrogates(implementation: Implementation) -> Verdicts:
    """`encode` does not confuse a lone surrogate with the text that some programs write in its place."""
    model = strategies.with_ids(())
    for lone in ("\ud800", "\udfff"):
        forms = ("\ufffd".encode(), lone.encode("utf-8", "surrogatepass"), 3 * "\ufffd".encode())
        accepted = Expectation((AnyError("surrogate"), *(Ids(tuple(form)) for form in forms)))
        question, instance = Question(Encode(lone), model), Instance(implementation, model)
        for text in LOOK_ALIKES * 2:
            asked = Question(Encode(text), model, "after lone surrogates")
            yield undisturbed(implementation, asked, instance.ask(asked))
            answer = instance.ask(question)
            if not isinstance(answer, Refusal) and answer not in accepted.alternatives:
                depends_on = Dependence("undisturbed") if ask(implementation, question) == answer else None
                asked = replace(question, context=f"after the text {text!a}")
                yield Mismatch(asked, accepted, answer, depends_on=depends_on)


@Fixed("law-cached-tables", "LAW-WAYS-1", ("encode",))
def successors(implementation: Implementation) -> Verdicts:
    """A tokenizer follows its own table, even if an earlier one with another table had the same address."""
    models = [_model(), strategies.with_ids([(b"b", b"c")])]
    operations = [*(kind("abcd") for kind in OF_TEXTS), *(kind((256,)) for kind in OF_IDS)]
    for operation in operations:
        if not {*operation.needs} <= implementation.capabilities:
            continue
        questions = [Question(operation, model) for model in models]
        rights = [correct_answer(question, implementation.conventions) for question in questions]
        for number in range(NEW_TABLES):
            at = number.bit_count() % 2  # without a period: addresses can repeat with one
            answer = ask(implementation, questions[at])
            if not is_correct(implementation, questions[at], answer, rights[at]):
                asked = replace(questions[at], context="after a tokenizer that no longer exists")
                if is_correct(implementation, asked, answer, rights[1 - at]):
                    yield Mismatch(asked, Expectation((rights[at],)), answer)
                yield undisturbed(implementation, asked, answer)


@Fixed("law-cached-offsets", "LAW-PURE-1", ("encode_with_offsets",))
def spans(implementation: Implementation) -> Verdicts:
    """One tokenizer gives the spans of texts that are equal in their case, length, low bits, ends or normal form."""
    yield from _confused(implementation, EncodeWithOffsets)


@Fixed("law-cached-ids", "LAW-PURE-1", ("decode",))
def ids(implementation: Implementation) -> Verdicts:
    """One tokenizer decodes lists that are equal in their low bits, joined digits, sums, ends or order."""
    yield from _confused(implementation, Decode, DecodeBytes)


@Fixed("law-cached-detokenizing", "LAW-PURE-1", ("decode_iterable",))
def streams_of_ids(implementation: Implementation) -> Verdicts:
    """One tokenizer detokenizes ids that are equal in their low bits, joined digits, sums, ends or order."""
    yield from _confused(implementation, Detokenize)


@Fixed("law-cached-pipelines", "LAW-PURE-1", ("from_tokenizer_json",))
def in_pipelines(implementation: Implementation) -> Verdicts:
    """No method of a tokenizer with a pipeline confuses texts or ids that are equal in their length, ends or order."""
    yield from _confused(implementation, *OF_TEXTS, *OF_IDS, pipeline=Pipeline(("NFC",), (), (ByteLevel(),)))
    if "encode" in implementation.capabilities:
        added = Pipeline((), tuple(map(AddedToken, _MODEL_OF_BEGUN.special_tokens or ())))
        yield from _in_turn(implementation, replace(_MODEL_OF_BEGUN, special_tokens=None, pipeline=added), _begun())
    if "encode_batch" in implementation.capabilities:
        model = strategies.with_ids((), special=["e\u0301"])
        added = Pipeline(("NFC",), (AddedToken("e\u0301"),), (ByteLevel(),))
        texts = Batch(("\u00e9", "e\u0301", "\u00e9"))  # all of one normal form, and one is an added token
        question = Question(texts, replace(model, special_tokens=None, pipeline=added))
        yield equals_oracle(implementation, question, "PIPELINE-WAYS-1")


@Fixed("law-cached-streams", "LAW-PURE-1", ("encode_iterable",))
def streams(implementation: Implementation) -> Verdicts:
    """One tokenizer encodes streams that are equal in their first chunk, their number of chunks or their letters."""
    yield from _in_turn(implementation, _model(), ((Stream(tuple(chunks)) for chunks in group) for group in CHUNKS))


@Fixed("law-cached-batches", "LAW-PURE-1", ("encode_batch",))
def batches(implementation: Implementation) -> Verdicts:
    """A tokenizer does not confuse batches whose joined texts, number of texts or letters are the same."""
    yield from _in_turn(implementation, _model(), ((Batch(tuple(texts)) for texts in group) for group in BATCHES))
    like_texts = (Question(Batch(tuple(group)), _model()) for group in _rows_of_texts(implementation))
    yield from (equals_oracle(implementation, question, "LAW-BATCH-1") for question in like_texts)


@Fixed("law-cached-trainings", "LAW-REPLAY-1", ("train",))
def trainings(implementation: Implementation) -> Verdicts:
    """Trainings that are equal in their text, size or letters give each their own merges."""
    if implementation.conventions["tie_break"] == "unspecified":
        return
    has_special = "train-special" in implementation.capabilities
    named = strategies.patterns(implementation, "train-pattern")
    possible = [
        [asked for asked in group if (has_special or not asked.special) and asked.pattern in named]
        for group in TRAININGS
    ]
    yield from _in_turn(implementation, None, possible)


# Malformed bytes

SUBPARTS = tuple(
    bytes([lead, second, *rest, ord("a")])
    for lead in range(0xC0, 0x100)
    for second in (0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0)
    for rest in (b"", b"\x80", b"\xbf\xbf")
)
"""Each byte that could begin a character, with bytes at the limits of what can follow it."""


_MARK = strategies.with_ids([(b"\xef", b"\xbb"), (b"\xef\xbb", b"\xbf")], special=["<e>"])
_PARTS = (b"\xef\xbb\xbf", "\ufffd".encode(), b"\xf0\x9f", b"\xe6\x97", b"\x80", b"\xed\xa0\x80")
NEIGHBOURS = ([258], [257], *map(list, _PARTS), *([*char.encode()] for char in "a \n\0\u00e9\u65e5\U0001f98a"))
"""Ids of what a decoder could treat differently if something else is beside it: a special token, a byte-order mark as a
token and as bytes, U+FFFD, parts of characters, and characters."""


_MALFORMED = (*range(1, 132), *range(255, 258), *range(511, 514))
AFTER_MALFORMED = tuple(b"\x80" * length + "\U0001f98a".encode() for length in _MALFORMED)
"""A character after malformed bytes of each length at which a decoder could give up waiting."""


def _each_subpart(implementation: Implementation, kind: type[Decode | Detokenize], clause_id: str) -> Verdicts:
    for parts in (SUBPARTS, AFTER_MALFORMED):
        whole, *alone = [Question(kind(tuple(data)), read_model({})) for data in (b"".join(parts), *parts)]
        yield from together(implementation, clause_id, whole, None, alone)
    has_special = "special" in implementation.capabilities
    known = NEIGHBOURS if has_special else NEIGHBOURS[1:]
    model = _MARK if has_special else strategies.with_ids(_MARK.merges)
    pairs = [Question(kind((*one, *other)), model) for one, other in product(known, repeat=2)]
    whole = Question(kind(tuple(index for pair in pairs for index in pair.operation.ids)), model)
    beside = "DECODE-UTF8-1" if kind is Decode else "DETOK-EQUAL-1"
    for mismatch in together(implementation, beside, whole, None, pairs):
        yield None if mismatch is None else replace(mismatch, clause_id=beside)


@Fixed("law-decode-subparts", "DECODE-UTF8-1", ("decode",))
def decodes_subparts(implementation: Implementation) -> Verdicts:
    """Malformed bytes become the correct number of U+FFFD, and a special token or a mark keeps what is next to it."""
    yield from _each_subpart(implementation, Decode, "DECODE-UTF8-1")


@Fixed("law-detok-subparts", "DETOK-INVALID-1", ("decode_iterable",))
def detokenizes_subparts(implementation: Implementation) -> Verdicts:
    """In a stream, too, malformed bytes become U+FFFD, and a special token or a mark keeps what is next to it."""
    yield from _each_subpart(implementation, Detokenize, "DETOK-INVALID-1")


# Texts and ids that grow

_HEAD = "klm\n klm, klm klm k"  # long enough for a program that keeps only some of the texts
GROWN = f"{_HEAD} it'll 12345678901 \u00e9  \n \n b"
"""Its end changes what is before it: a contraction, digits in threes, and white space before a line end or a word."""
GROWN_SPECIALS = ("<k l>", "<k l>m", "\n\n<|")
GROWN_TO_SPECIALS = f"{_HEAD} <k l <k l>m\n\n<|"
_SPELLED = "kl\u00e9\u65e5\U0001f98a" * 3


@cache
def _of_neighbours(text: str, special: tuple[str, ...] | None = None) -> Model:
    """Return a table in which a character is one token, and so are two and three that are next to each other."""
    chars = [char.encode() for char in text]
    bytes_ = [(char[:end], char[end : end + 1]) for char in chars for end in range(1, len(char))]
    threes = [(left + right, last) for (left, right), last in zip(pairwise(chars), chars[2:], strict=False)]
    return strategies.with_ids([*dict.fromkeys((*bytes_, *pairwise(chars), *threes))], special=special)


def _growing_texts(implementation: Implementation, every_pattern: bool) -> Iterator[tuple[Model, list[str]]]:
    """Yield a table and each text that begins a longer one: by each pattern, and with special tokens by the first."""
    named = strategies.patterns(implementation)
    chosen = named if every_pattern else dict.fromkeys((named[0], named[-1]))
    given: list[tuple[str, str, tuple[str, ...] | None]] = [(pattern, GROWN, None) for pattern in chosen]
    if "special" in implementation.capabilities:
        given.append((named[0], GROWN_TO_SPECIALS, GROWN_SPECIALS))
    for pattern, text, special in given:
        model = replace(_of_neighbours(text, special), pattern=pattern)
        yield model, [text[:end] for end in range(len(_HEAD), len(text) + 1)]


def _growing(implementation: Implementation, kind: Callable[[str], Operation], every_pattern: bool = False) -> Verdicts:
    for model, texts in _growing_texts(implementation, every_pattern):
        yield from _in_turn(implementation, model, [map(kind, texts)])


@Fixed("law-growing-texts", "MERGE-STATE-1", ("encode",))
def grown_texts(implementation: Implementation) -> Verdicts:
    """One tokenizer encodes a text that grows character by character, and then shrinks, by each pattern."""
    yield from _growing(implementation, Encode, every_pattern=True)


@Fixed("law-growing-offsets", "LAW-PURE-1", ("encode_with_offsets",))
def grown_spans(implementation: Implementation) -> Verdicts:
    """One tokenizer gives the spans of a text that grows character by character, and then shrinks."""
    yield from _growing(implementation, EncodeWithOffsets)


@Fixed("law-growing-streams", "LAW-PURE-1", ("encode_iterable",))
def grown_streams(implementation: Implementation) -> Verdicts:
    """One tokenizer encodes streams of a text that grows from one to the next, and then shrinks."""
    yield from _growing(implementation, lambda text: Stream((text,)))


@Fixed("law-growing-batches", "BATCH-EQUAL-1", ("encode_batch",))
def grown_rows(implementation: Implementation) -> Verdicts:
    """A batch has the texts that begin a longer one, from the shortest to the longest, or the other way round."""
    for model, texts in _growing_texts(implementation, every_pattern=True):
        for rows in (texts, texts[::-1]):
            pairs = (Question(Batch(pair), model) for pair in pairwise(rows))
            yield from together(implementation, "BATCH-EQUAL-1", Question(Batch(tuple(rows)), model), None, pairs)


def _growing_ids(implementation: Implementation, *kinds: Callable[[tuple[int, ...]], Operation]) -> Verdicts:
    """Ask about ids that grow one by one: those of characters of several bytes, and of the parts of characters."""
    has_special = "special" in implementation.capabilities
    model = _MARK if has_special else strategies.with_ids(_MARK.merges)
    ids = (*_SPELLED.encode(), *chain(*(NEIGHBOURS if has_special else NEIGHBOURS[1:])))
    for kind in kinds:
        grown = [kind(ids[:end]) for end in range(1, len(ids) + 1)]
        if {*grown[0].needs} <= implementation.capabilities:
            yield from _in_turn(implementation, model, [grown])


@Fixed("law-growing-ids", "LAW-PURE-1", ("decode",))
def grown_ids(implementation: Implementation) -> Verdicts:
    """One tokenizer decodes ids that grow one by one, also within a character, and then shrink."""
    yield from _growing_ids(implementation, Decode, DecodeBytes)


@Fixed("law-growing-detokenizing", "DETOK-STATE-1", ("decode_iterable",))
def grown_streams_of_ids(implementation: Implementation) -> Verdicts:
    """One tokenizer detokenizes ids that grow one by one from stream to stream, and then shrink."""
    yield from _growing_ids(implementation, Detokenize)


# Characters

MARKS = (
    "\u0120\u010a\u0109\u010d\u2581\u2420\u2421\u2422\u2423\u2424\u00b7\u2587\u0100\u0143\ue000\uf8ff\U000f0000"
    "\ufdd0\uffff\U00100000\U0010fffd\U0010ffff"
)
"""Characters that programs write for white space or bytes, or use as marks of their own."""
EQUIVALENT = "K\u212a\u00c5\u212b\u03a9\u2126\u00e9\u1e9b\u0344\u0374\u037e;\u1fef`\u2000\u2001\uf900\u8c48\ufb01\u2460"
"""Characters, most of them canonically equivalent to another one of them."""
CASES = "aAkK\u00df\u1e9e\u0130\u0131\u017f\u01c4\u01c5\u01c6\u03c3\u03c2\u03a3\u1c80\u0434\ua64a\ua64b"
NUMBERS = ("01", "1", "001", "10", "010", "00", "0", "100", "011", "101", "110")
WORDS = ("low</w>", "</w>low", "##ing", "@@", "low@@", "<unk>", "\u0120low", "\u2581low")


@cache
def every_kind() -> str:
    """Return one character of each general category, one with each byte of UTF-8, and those above."""
    many = "".join(run[::7] for run in characters.agreed())
    known = [*map(chr, range(0x80)), *strategies.characters_at_edges(), *many]
    chosen = dict.fromkeys(MARKS + EQUIVALENT + CASES)
    of_category: dict[str, str] = {}
    of_byte: dict[int, str] = {}
    for char in known:
        of_category.setdefault(unicodedata.category(char), char)
        for byte in char.encode("utf-8"):
            of_byte.setdefault(byte, char)
    chosen |= dict.fromkeys([*of_category.values(), *of_byte.values()])
    return "".join(char for char in chosen if char not in characters.engine_differences())


def word(char: str) -> str:
    """Return a word with this character, which patterns leave together unless it is white space."""
    return f"{RANGES[class_of(char)]}{char}" if not char.isspace() else f"a{char}b"


@cache
def _words() -> tuple[str, ...]:
    return (*map(word, every_kind()), *NUMBERS, *WORDS)


def _training_to_the_end(words: Sequence[str]) -> tuple[Question[Any], None]:
    text = " ".join(words)
    return Question(Train(text, 256 + len(text))), None


def _training_beside_special(words: Sequence[str]) -> tuple[Question[Any], None]:
    text = f"{words[0]}<|s|>{' '.join(words[1:])}"
    return Question(Train(text, 257 + len(text), ("<|s|>",))), None


def _encoding(words: Sequence[str], special: Sequence[str] | None = None) -> Question[Any]:
    """Return a question in which each word that is one pre-token is one token, and special tokens are at the end."""
    merges: dict[bytes, Merge] = {}
    for one in words:
        data = one.encode("utf-8")
        for end in range(2, len(data)):
            merges.setdefault(data[1 : end + 1], (data[1:end], data[end : end + 1]))
        if len(data) > 1:
            merges.setdefault(data, (data[:1], data[1:]))
    text = "\n".join(words) + "".join(special or ())
    return Question(Encode(text), strategies.with_ids(list(merges.values()), special=special))


@Fixed("law-train-characters", "LAW-TRAIN-1", ("train",))
def trains_every_kind(implementation: Implementation) -> Verdicts:
    """Characters of every category, with every byte, marks of programs and equivalent characters are learned."""
    yield from in_blocks(implementation, "LAW-TRAIN-1", _words(), FEW, _training_to_the_end)
    if "train-special" in implementation.capabilities:  # a program may join texts, or mark tokens, by a character
        for mismatch in in_blocks(implementation, "TRAIN-SPECIAL-1", _words(), FEW, _training_beside_special):
            yield None if mismatch is None else replace(mismatch, clause_id="TRAIN-SPECIAL-1")


IN_REVERSE = strategies.with_ids([(b"\x97", b"\xa5"), (b"\xe6", b"\x97"), (b"\x97\xa5", b"\xe6")])
"""In a character of three bytes, the pair on the right comes first."""
BELOW = Model({0: b"abc", **{byte + 1: bytes([byte]) for byte in range(256)}}, ())
"""The entry of `abc` has the lowest id, and no merge makes it."""


@Fixed("law-encode-characters", "LAW-ENCODE-1", ("encode",))
def encodes_every_kind(implementation: Implementation) -> Verdicts:
    """Characters of every category, with every byte, marks of programs and equivalent characters are encoded."""
    for start in range(0, len(_words()), FEW):
        words = _words()[start : start + FEW]
        question = _encoding(words)
        alone = [replace(question, operation=Encode(one)) for one in words] + [_encoding([one]) for one in words]
        yield from together(implementation, "LAW-ENCODE-1", question, None, alone)
        if "special" in implementation.capabilities:  # a program may put a character in their place
            alone = [_encoding([one], ["<|s|>"]) for one in words]
            for mismatch in together(implementation, "SPECIAL-SCAN-1", _encoding(words, ["<|s|>"]), None, alone):
                yield None if mismatch is None else replace(mismatch, clause_id="SPECIAL-SCAN-1")
    texts = ["\u65e5" * count for count in (1, 2, 3, 90)]
    yield from (equals_oracle(implementation, Question(Encode(text), IN_REVERSE), "MERGE-ORDER-1") for text in texts)
    if implementation.conventions["lookup"] == "pair":
        for text in ("abc", "xabc abc"):
            mismatch = equals_oracle(implementation, Question(Encode(text), BELOW), "MERGE-WHOLE-1")
            yield None if mismatch is None else replace(mismatch, clause_id="MERGE-WHOLE-1")


# Tables that differ from the usual one in a few ids


def swapped(residue: int) -> Model:
    """Return a table in which the bytes b and b ^ 8 have each other's ids, if b modulo 8 is `residue`."""
    return Model({byte ^ 8 if byte % 8 == residue else byte: bytes([byte]) for byte in range(256)}, ())


def _in_swapped(implementation: Implementation, clause_id: str, *operations: Operation) -> Verdicts:
    if implementation.conventions["lookup"] != "bytes":
        for model in map(swapped, range(8)):
            yield from _of_one(implementation, clause_id, model, operations)


def _of_one(implementation: Implementation, clause_id: str, model: Model, operations: Iterable[Operation]) -> Verdicts:
    """Ask one tokenizer all that it has methods for; if an answer is incorrect, ask a new one, too."""
    tokenizer = Instance(implementation, model)
    for operation in operations:
        if {*operation.needs} <= implementation.capabilities:
            question = Question(operation, model)
            answer, right = tokenizer.ask(question), correct_answer(question, implementation.conventions)
            if not is_correct(implementation, question, answer, right):
                wrong = Mismatch(question, Expectation((right,)), answer)
                yield replace(equals_oracle(implementation, question, clause_id) or wrong, clause_id=clause_id)


@Fixed("law-encode-swapped", "LAW-ENCODE-1", ("encode",))
def encodes_swapped(implementation: Implementation) -> Verdicts:
    """The table gives the id of every byte, even if most ids are the values of their bytes."""
    yield from _in_swapped(implementation, "LAW-ENCODE-1", Encode(PRINTABLE), Encode(MIXED))


SWAPPED_IDS = tuple(range(0x80)), tuple(MIXED.encode("utf-8"))


@Fixed("law-decode-swapped", "DECODE-BYTES-1", ("decode",))
def decodes_swapped(implementation: Implementation) -> Verdicts:
    """The table gives the byte of every id, even if most ids are the values of their bytes."""
    operations = (kind(ids) for kind in (Decode, DecodeBytes) for ids in SWAPPED_IDS)
    yield from _in_swapped(implementation, "DECODE-BYTES-1", *operations)


@Fixed("law-detok-swapped", "DETOK-EQUAL-1", ("decode_iterable",))
def detokenizes_swapped(implementation: Implementation) -> Verdicts:
    """In a stream, too, the table gives the byte of every id, even if most ids are the values of their bytes."""
    yield from _in_swapped(implementation, "DETOK-EQUAL-1", *map(Detokenize, SWAPPED_IDS))


# Expressions that the specification does not print

EXPRESSIONS = (
    r"(a)b|[\s\S]",
    r"(?:(b)|c)+|[^bc]+",
    r"\p{N}{1,3}|\p{L}+|[^\p{L}\p{N}]+",  # has a part of llama3
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s",  # begins as gpt2
    r"\p{N}| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",  # ends as gpt2
    r"a?+ab|[bc]++c|x*+x|[\s\S]",
    r"(?<=a)b|b+|a+(?=c)|a|[^ab]+",
    r"[ab]+?b|a|ab|[\s\S]",
    r"(?i:ab)|[\s\S]",
    r"[a-z]+|[^a-z]+",
    r"[^.?]+[.?]*|[.?]+",
    r".+\n?|\n",
    r"\s+|\S+",
    r"[\s]|[\S]+",
    r"\d+|\D+",
    r"[\d]|[\D]+",
    r"\w+|\W+",
    r"[\w]|[\W]+",
    r"(?i:ks)+|\s|\S",
    r"(.)\1*|\n",
)
"""Each matches every character. Some need no class of characters, or have white space within a pre-token."""
WITH_GAPS, GAPS, MATCH = "[a-z]+", "++ab--ab**", "ab"
"""An expression that does not match each character, a text with a pair before, between and after its matches, and the
only match."""
WITH_EMPTY_MATCHES = r"\d*"
EXPRESSED = (
    "ab aab abb bcc cbbb aac xx abc! 1234567 12a it's don't'll x_y  How? Well. So a b. ABab aB\n\n\tend  \n"
    "KSks \u212a\u017fx\x1cx\x85x\xa0x\u180ex\u200bx\u2003x\u3000x\ufeffx 4\u0661\u0662x4\u2167x \xe9x\u65e5x\u20acx"
)
"""A text with characters that some engines, or their ASCII modes, classify differently."""
EXPRESSED_CUTS = ((EXPRESSED,), tuple(EXPRESSED), *(EXPRESSED.partition(cut) for cut in ("abb", "'t'll", "So a ")))


@cache
def _of_expressed() -> Model:
    return _of_neighbours(EXPRESSED)


def _taken(implementation: Implementation, prefix: str = "") -> Sequence[str]:
    """Return the expressions that the constructor takes (with the prefix `train-`, `train`), and note how many."""
    taken = [one for one in EXPRESSIONS if implementation.takes_expression(one, prefix)]
    is_passed_others = any(name.startswith("train-") == bool(prefix) for name in implementation.spellings)
    if is_passed_others and len(taken) < len(EXPRESSIONS):
        count = f"{'train' if prefix else 'the constructor'} takes {len(taken)} of {len(EXPRESSIONS)} expressions"
        implementation.note(f"{count} that have no name; the others are not tested")
    return taken


def _by_expressions(implementation: Implementation, clause_id: str, *operations: Operation) -> Verdicts:
    for expression in _taken(implementation):
        model = replace(_of_expressed(), pattern=expression)
        yield from (equals_oracle(implementation, Question(operation, model), clause_id) for operation in operations)


@Fixed("law-encode-expressions", "SPLIT-DEFAULT-1", ("encode", "pattern"))
def encodes_by_expressions(implementation: Implementation) -> Verdicts:
    """A text is split by any expression, even one with groups or lookaround, and an empty match loses no text."""
    yield from _by_expressions(implementation, "SPLIT-DEFAULT-1", Encode(EXPRESSED))
    lossless = Expected({"": (Lossless(),)})  # some libraries cut at an empty match
    asked = [
        Question(Encode(EXPRESSED), replace(_of_expressed(), pattern=one)) for one in (WITH_GAPS, WITH_EMPTY_MATCHES)
    ]
    if all(implementation.takes_expression(one.table.pattern) for one in asked):
        gaps, empty = (judged(implementation, one, lossless, "SPLIT-LOSSLESS-1") for one in asked)
        if gaps is None and empty is not None:  # code that collects only matches is usual, and right for named patterns
            yield replace(empty, clause_id="SPLIT-LOSSLESS-1")


@Fixed("law-batch-expressions", "LAW-BATCH-1", ("encode_batch", "pattern"))
def batches_by_expressions(implementation: Implementation) -> Verdicts:
    """The texts of a batch are split by any expression that the constructor takes."""
    yield from _by_expressions(implementation, "LAW-BATCH-1", Batch((EXPRESSED,)))


@Fixed("law-stream-expressions", "STREAM-EQUAL-1", ("encode_iterable", "pattern"))
def streams_by_expressions(implementation: Implementation) -> Verdicts:
    """A stream is split by any expression, also by one that has white space within a pre-token, wherever it is cut."""
    yield from _by_expressions(implementation, "STREAM-EQUAL-1", *map(Stream, EXPRESSED_CUTS))


@Fixed("law-offsets-expressions", "OFFSET-SPAN-1", ("encode_with_offsets", "pattern"))
def spans_by_expressions(implementation: Implementation) -> Verdicts:
    """The spans are those of the pre-tokens of any expression that the constructor takes."""
    yield from _by_expressions(implementation, "OFFSET-SPAN-1", EncodeWithOffsets(EXPRESSED))


@Fixed("law-train-expressions", "TRAIN-SPLIT-1", ("train", "train-pattern"))
def trains_by_expressions(implementation: Implementation) -> Verdicts:
    """Pairs are counted within the pre-tokens of any expression, and outside its matches everywhere or nowhere."""
    for expression in _taken(implementation, "train-"):
        yield equals_oracle(implementation, Question(Train(EXPRESSED, 256 + FEW, (), expression)), "TRAIN-SPLIT-1")
    if implementation.takes_expression(WITH_GAPS, "train-"):
        gaps, match = (Question(Train(text, 256 + FEW, (), WITH_GAPS)) for text in (GAPS, MATCH))
        if ask(implementation, gaps) != ask(implementation, match):  # code that collects only matches is usual
            yield equals_oracle(implementation, gaps, "TRAIN-SPLIT-1")


# Names of patterns

BY_NAME = f"{EXPRESSED} a\n \n b\n\n  \n c!\nd\n \n "
"""A text that different named patterns split differently."""
INVENTED = "no-such-pattern"


def _in_each_name(
    implementation: Implementation, prefix: str, questions: Callable[[str], Sequence[Question[Any]]]
) -> Verdicts:
    """Ask the first question by each name of a pattern whose expression is taken and, if it is correct, the others.

    A name is not supported if it is refused, or if an invented name gives the same answer. An answer that varies, or
    that is wrong in the same way with the expression, is not the fault of the name.
    """
    names = [name for name in PATTERNS if implementation.spellings.get(prefix + name) == PATTERNS[name]]
    other = implementation.with_target(implementation.target)
    other.spellings = {prefix + name: name for name in (*names, INVENTED)}
    unknown, again = (ask(other, questions(INVENTED)[0]) for _ in range(2)) if names else (None, None)
    if unknown != again:
        return
    for name in names:
        whole, *more = (replace(one, context=f"with the name {name} as the pattern") for one in questions(name))
        answer = ask(other, whole)
        if is_correct(other, whole, answer, correct_answer(whole, implementation.conventions)):
            yield from (equals_oracle(other, question, "SPLIT-NAME-1") for question in more)
        elif answer not in (unknown, ask(implementation, whole)) and not isinstance(answer, Refusal):
            yield equals_oracle(other, whole, "SPLIT-NAME-1")


@Fixed("law-encode-by-name", "SPLIT-NAME-1", ("encode", "pattern"))
def encodes_by_name(implementation: Implementation) -> Verdicts:
    """Where a pattern can be passed by name or as an expression, both split alike, in streams, too."""

    def asked(name: str) -> list[Question[Any]]:
        model = replace(_of_neighbours(BY_NAME), pattern=name)
        streams = [Stream(tuple(BY_NAME))] if "encode_iterable" in implementation.capabilities else []
        return [Question[Any](operation, model) for operation in (Encode(BY_NAME), *streams)]

    yield from _in_each_name(implementation, "", asked)


@Fixed("law-train-by-name", "SPLIT-NAME-1", ("train", "train-pattern"))
def trains_by_name(implementation: Implementation) -> Verdicts:
    """Where a pattern can be passed to `train` by name or as an expression, both split alike."""
    yield from _in_each_name(
        implementation, "train-", lambda name: [Question(Train(BY_NAME, 256 + len(BY_NAME), (), name))]
    )


# Names of special tokens of well-known models, and marks

SPECIAL_NAMES = (
    *("<s>", "</s>", "<pad>", "<unk>", "<mask>", "<bos>", "<eos>", "<sep>", "<cls>", "<start_of_turn>"),
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[BOS]", "[EOS]", "[INST]", "[/INST]", "<end_of_turn>"),
    *("<|endoftext|>", "<|pad|>", "<|unk|>", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|begin_of_text|>"),
    *("<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|endofprompt|>", "<|fim_prefix|>", "<|user|>"),
)
SIGNS = (
    *("@@", "##", "</w>", "\u2581", "\u0120", "\u010a", "\u2423", "<0x41>", "<0x0A>", "<0xE2>"),
    *("\\n", "\\x41", "\\u0041", "&amp;", "&#65;", "%20", "\x1b[0m", "\u200b", "\ufe0f", "\u00ad", "\ufffd", "\ufeff"),
    *(" n't", " 's", " .", " ,", "\r\n", "\0\0", "\u00a0", "\u3000", "\u2028", "e\u0301", "\ufb01", "``", "''"),
)
"""What tokenizers write for the start or the end of a word, for white space or for a byte, or what they clean up."""
CONTROLS = "\n\0\x01\x02\x03\x1c\x1d\x1e\x1f"
SEPARATORS = "".join(map("".join, product(CONTROLS, repeat=3)))
"""It contains every separator of three of these characters with which a program could join the texts of a batch."""
PLACEHOLDERS = "".join(f"{left}{at}{right}" for left, right in product(CONTROLS, repeat=2) for at in (0, 1))
"""It contains every placeholder that is the number of a special token between two of these characters."""
PLACES = ("{0}", "{0}kl", "{0}{0} kl", "kl{0} kl", "kl {0}{0}kl", "kl{0}", "kl {0}", "kl{0}{0}")
_KL = strategies.with_ids([(b"k", b"l")])
UNLISTED = replace(
    _KL, vocab={**_KL.vocab, **{1000 + at: one.encode() for at, one in enumerate((*SPECIAL_NAMES, *SIGNS))}}
)
"""No merge makes the entry of a name or a mark, and none is special."""
LISTED = replace(UNLISTED, special_tokens=SPECIAL_NAMES)


def _texts(parts: Iterable[str]) -> list[str]:
    """Return texts with each part at the start, in the middle and at the end, once and twice."""
    return [place.format(part) for part in parts for place in PLACES]


def _ids(parts: Iterable[str]) -> list[tuple[int, ...]]:
    """Return the ids of these texts, with the id of the part's entry."""
    bytes_of = [[tuple(piece.encode()) for piece in place.split("{0}")] for place in PLACES]
    entries = [UNLISTED.ids[part.encode()] for part in parts]
    return [sum(((entry, *piece) for piece in rest), first) for entry in entries for first, *rest in bytes_of]


def _named(
    implementation: Implementation, clause_id: str, operations: Iterable[Operation], if_listed: str = ""
) -> Verdicts:
    """Ask one tokenizer for which names are ordinary text and, by another clause, one for which they are special."""
    every = tuple(operations)
    yield from _of_one(implementation, clause_id, UNLISTED, every)
    if "special" in implementation.capabilities:
        yield from _of_one(implementation, if_listed or clause_id, LISTED, every)


@Fixed("law-encode-names", "SPECIAL-OFF-1", ("encode",))
def encodes_names(implementation: Implementation) -> Verdicts:
    """Names of well-known special tokens are special only if they are listed; what can replace them is text."""
    texts = (*_texts(SPECIAL_NAMES), PLACEHOLDERS)
    yield from _named(implementation, "SPECIAL-OFF-1", map(Encode, texts), "SPECIAL-SCAN-1")


@Fixed("law-batch-names", "LAW-BATCH-1", ("encode_batch",))
def batches_names(implementation: Implementation) -> Verdicts:
    """In a batch, well-known names are special only if they are listed, and marks and separators are text."""
    texts = _texts((*SPECIAL_NAMES, *SIGNS))
    yield from _named(implementation, "LAW-BATCH-1", [Batch(tuple(texts)), Batch(("kl", SEPARATORS, "kl"))])


@Fixed("law-stream-names", "STREAM-EQUAL-1", ("encode_iterable",))
def streams_names(implementation: Implementation) -> Verdicts:
    """In a stream, well-known names are special only if they are listed, and marks of tokenizers are text."""
    cut = Stream(tuple("kl ".join((*SPECIAL_NAMES, *SIGNS))))
    yield from _named(implementation, "STREAM-EQUAL-1", [*(Stream((text,)) for text in _texts(SPECIAL_NAMES)), cut])


@Fixed("law-offsets-names", "OFFSET-SPAN-1", ("encode_with_offsets",))
def spans_of_names(implementation: Implementation) -> Verdicts:
    """A well-known name has one span only if it is listed, and marks of tokenizers have the spans of their tokens."""
    joined = "kl ".join((*SPECIAL_NAMES, *SIGNS))
    yield from _named(implementation, "OFFSET-SPAN-1", map(EncodeWithOffsets, [*_texts(SPECIAL_NAMES), joined]))


@Fixed("law-decode-names", "SPECIAL-DECODE-1", ("decode",))
def decodes_names(implementation: Implementation) -> Verdicts:
    """The id of a well-known name decodes to the name, listed or not: at the start, in the middle and at the end."""
    joined = DecodeBytes(sum(_ids(SPECIAL_NAMES), ()))
    yield from _named(implementation, "SPECIAL-DECODE-1", [*map(Decode, _ids(SPECIAL_NAMES)), joined])


@Fixed("law-detok-names", "DETOK-SPECIAL-1", ("decode_iterable",))
def detokenizes_names(implementation: Implementation) -> Verdicts:
    """In a stream, too, the id of a well-known name gives the name, whether it is listed or not."""
    yield from _named(implementation, "DETOK-SPECIAL-1", map(Detokenize, _ids(SPECIAL_NAMES)))


def _marked(kind: Callable[[tuple[int, ...]], Operation]) -> list[Operation]:
    return [*map(kind, _ids(SIGNS)), *(kind(tuple(text.encode())) for text in _texts(SIGNS))]


@Fixed("law-decode-marks", "DECODE-TEXT-1", ("decode",))
def decodes_marks(implementation: Implementation) -> Verdicts:
    """Marks of words, of white space and of bytes, and what some decoders clean up, stay in the text."""
    joined = DecodeBytes(sum(_ids(SIGNS), ()))
    yield from _of_one(implementation, "DECODE-TEXT-1", UNLISTED, [*_marked(Decode), joined])


@Fixed("law-detok-marks", "DETOK-EQUAL-1", ("decode_iterable",))
def detokenizes_marks(implementation: Implementation) -> Verdicts:
    """In a stream, too, marks of words, of white space and of bytes stay in the text."""
    yield from _of_one(implementation, "DETOK-EQUAL-1", UNLISTED, _marked(Detokenize))


@Fixed("law-save-names", "FILE-SAVE-1", ("save",))
def saves_names(implementation: Implementation) -> Verdicts:
    """Entries of well-known names are in the files, whether they are listed or not."""
    yield from _named(implementation, "FILE-SAVE-1", [Save()])


@Fixed("law-load-names", "FILE-SPECIAL-1", ("from_files", "encode"))
def loads_names(implementation: Implementation) -> Verdicts:
    """In each method of a tokenizer that is loaded, or saved before, well-known names are special only if listed."""
    models = [UNLISTED, *([LISTED] if "special" in implementation.capabilities else [])]
    ways = ["loaded", *(["saved"] if "save" in implementation.capabilities else [])]
    for model, made in product(models, ways):
        loaded = Instance(implementation, partial(Origin("", model, made).make, implementation))
        alone = [Question[Any](Encode(f"kl {name}kl"), model) for name in SPECIAL_NAMES]
        of_ids = [Question[Any](kind(sum(_ids(SPECIAL_NAMES), ())), model) for kind in OF_IDS]
        for question in (*alone, *of_each_method(implementation, model, "kl ".join(SPECIAL_NAMES)), *of_ids):
            if {*question.operation.needs} <= implementation.capabilities:
                asked = replace(question, context="loaded from files")
                yield undisturbed(implementation, asked, loaded.ask(asked))


PROPERTIES: tuple[Property, ...] = (
    *(
        encodes_swapped,
        decodes_swapped,
        detokenizes_swapped,
        trains_pairs,
        encodes_pairs,
        keys,
        ranges,
        ends_of_texts,
        spans_of_ranges,
        beside_line_ends,
        classes_in_pipelines,
        lengths,
        cuts,
        cuts_in_pipelines,
        blanks_in_pipelines,
        strips_in_pipelines,
    ),
    *(trains_every_kind, encodes_every_kind, decodes_subparts, detokenizes_subparts),
    *(texts, surrogates, successors, spans, ids, streams_of_ids, in_pipelines, streams, batches, trainings),
    *(grown_texts, grown_spans, grown_streams, grown_rows, grown_ids, grown_streams_of_ids),
    *(encodes_by_expressions, batches_by_expressions, streams_by_expressions, spans_by_expressions),
    *(trains_by_expressions, encodes_by_name, trains_by_name, encodes_names, batches_names, streams_names),
    *(spans_of_names, decodes_names),
    *(detokenizes_names, decodes_marks, detokenizes_marks, saves_names, loads_names),
)
