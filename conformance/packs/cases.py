"""The cases of a pack: texts that incorrect encoders and patterns get wrong, texts with every token, streams and more.

Texts are drawn with `random.Random.random` alone, which gives the same values on every platform.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, pairwise, product
from typing import Any, TypeVar

import regex

from bpe_conformance.fixtures import Model, write_token
from bpe_conformance.fixtures.characters import NORMAL_FORMS, NormalForm, agreed
from bpe_conformance.fixtures.pipeline import AddedToken
from bpe_conformance.fixtures.values import TEXTS
from bpe_conformance.reference import textbook

from ..known_bugs import KnownBug, known_bugs
from ..known_bugs.bases import BaseEncoder, like
from ..operations import (
    Batch,
    Decode,
    Detokenize,
    Encode,
    EncodeWithOffsets,
    Operation,
    Stream,
    StreamCutEverywhere,
    Waiting,
)
from ..terminal import show
from .patterns import alternatives, expressions, variants
from .reach import Reach, ordinary, text_of

T = TypeVar("T")
CLASSES = tuple(  # classes of characters; a class in a list of pieces gives some of its characters
    rf"\p{{{name}}}" for name in (*("Lu", "Ll", "Lt", "Lm", "Lo"), "M", "Nd", "Nl", "No", "P", "S", "Z", "C")
)
SPACE = (" ", "  ", "\n", "\r\n", "\t", "   ", " \n", "\n\n")
CONTRACTIONS = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d")
NEARLY = ("'S", "'LL", "'Re", "'VE", "'", "''", "’s", "n't", "'em", "'x", "'l", "'r", "'v", "'\u017f")
MARKED = ("e\u0301", "\u0301", "क्षि")
ASTRAL = ("[\U0001d400\U0001d499\U0001d51f\U0002000b\U00020bb7]", "[\U0001d7ce\U0001d7cf\U0001d7d8]")
PIECES = {  # subject of a text → the pieces that it is made of
    "contractions": (*CONTRACTIONS, *NEARLY, "it", "We", "n", "l", "s", "e", " ", "!", "1", "\n", r"\p{Ll}", *MARKED),
    "letters": ("[a-z]", "[A-Z]", *CLASSES[:6], *ASTRAL, " ", "_", "-", "aB", "\t", "\u00a0", "\n", "'s", *MARKED),
    "numbers": ("[0-9]", "[0-9]", r"\p{N}", r"\p{N}", " ", "  ", ".", ",", "a", "1234567", "\n", "\t", "五", *MARKED),
    "other characters": (r"\p{P}", r"\p{S}", r"\p{C}", "...", "/", "\n", "\r\n", " ", "a", "1", "_", "'s", "👍🏽"),
    "white space": (*SPACE, *SPACE, *[r"\s"] * 4, "\x1c", "\u200b", "a", "1", "!", "日", "'s", r"\p{Z}"),
    "white space of Unicode": (r"\s", r"\s", r"\s", r"[\x1c-\x1f\u180e\u200b\u2060\ufeff]", "\ufeff", *"a1! \n"),
    "characters of all classes": (*CLASSES, *ASTRAL, " ", "'s"),
}
RAW_TEXT = (
    *("e\u0301", "é", "ﬁ", "\u212b", "Å", "\u017f", "½", "Ⅷ", "ｱ", "A", "a", "É", "İ", "ß", "가", "\u1100\u1161"),
    *("\r\n", "\r", "\n\n", "\n", "  ", " ", "\t", "\v", "\f", "\u00a0", "\u3000", "\u2028", "\u0085", "x"),
    *("\ufeff", "\0", "\x1a", "\x7f", "\xad", "\u200b", "\u200d", "\ufe0f", "\ufffd", "\ue000"),
    *("&amp;", "<b>", "\\n", "%20", "’", "“", "…", "--", "``", " .", " ,", " n't", " !", "🦊"),
)
"""Text that some tokenizers change: composed and compatibility characters, line ends, invisible characters, markup."""
SPLIT_CLAUSES: dict[str, Sequence[str]] = {  # pattern → the clause for each kind of `PIECES`
    "gpt2": ("CONTRACTION-1", "LETTER-1", "NUMBER-1", "OTHER-1", "SPACE-1", "SPACE-3", "UNICODE-1"),
    "cl100k": ("CL100K-1", "CL100K-2", "CL100K-3", "CL100K-4", "CL100K-5", "CL100K-5", "CL100K-2"),
    "cl100k-2023": ("CL100K-2023-1",) * 7,
    "o200k": ("O200K-3", "O200K-1", "O200K-5", "O200K-6", "O200K-7", "O200K-7", "O200K-2"),
    "llama3": ("LLAMA3-1",) * 7,
    "qwen2": ("QWEN2-1",) * 7,
    "none": ("NONE-1",) * 7,
    "triads": ("TRIADS-1", "TRIADS-1", "TRIADS-2", "TRIADS-7", "TRIADS-7", "TRIADS-7", "TRIADS-1"),
}


class Draw:
    def __init__(self, key: str) -> None:
        self._random = random.Random(key).random

    def below(self, bound: int) -> int:
        return int(self._random() * bound)

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        mixed = list(items)
        for last in range(len(mixed) - 1, 0, -1):
            other = self.below(last + 1)
            mixed[last], mixed[other] = mixed[other], mixed[last]
        return mixed

    def pieces(self, pieces: Sequence[str], count: int) -> str:
        r"""Return `count` of `pieces`, joined; a class, such as `\p{Lu}` or `[a-z]`, gives one to three characters."""
        drawn = [self.pick(pieces) for _ in range(count)]
        return "".join(self._some(piece) if piece.startswith(("\\p{", "\\s", "[")) else piece for piece in drawn)

    def real_text(self, stretches: int, longest: int) -> str:
        text = all_real_text()
        starts = [self.below(len(text) - longest) for _ in range(stretches)]
        return "".join(text[start : start + self.between(1, longest)] for start in starts)

    def _some(self, character_class: str) -> str:
        return "".join(self.pick(_members(character_class)) for _ in range(self.pick((1, 1, 2, 3))))


@cache
def _members(character_class: str) -> list[str]:
    return regex.findall(character_class, "".join(sorted({*all_real_text()})))


@cache
def all_real_text() -> str:
    return "\n".join(file.read_bytes().decode("utf-8") for file in sorted(TEXTS.glob("*.txt")))


@dataclass(frozen=True)
class Draft:
    """A case before it has an id and an expected value."""

    kind: str  # its purpose, a part of its id
    clause: str
    title: str  # what it shows
    operation: Operation


def encode(kind: str, clause: str, title: str, text: str) -> Draft:
    return Draft(kind, clause, title, Encode(text))


def grouped(parts: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    yield from (parts[start : start + size] for start in range(0, len(parts), size))


# Merging

WRONG = {  # id of a known bug → its name in the ids of a pack's cases, and what it does, as the end of a sentence
    "longest-match": ("longest-match", "takes the longest token from the left"),
    "fewest-tokens": ("fewest-tokens", "takes the fewest tokens that spell the text"),
    "greedy-left-to-right": ("leftmost-first", "merges the leftmost pair in the list"),
    "highest-rank-first": ("latest-first", "merges the pair with the highest rank"),
    "longest-result-first": ("longest-first", "merges the pair with the longest result"),
    "rank-from-id": ("by-id", "merges the pair whose result has the lowest id"),
    "rightmost-of-equals": ("rightmost-of-equals", "merges the last of equal pairs"),
    "single-pass": ("single-pass", "makes one pass over the text"),
    "initial-pairs-only": ("never-again", "ignores the pairs that a merge creates"),
    "rank-from-bytes": ("by-bytes", "merges two tokens if their concatenation is a token"),
    "whole-pre-token-first": ("whole-first", "emits a whole pre-token that merges do not build"),
    "whole-ignored": ("whole-left-out", "merges a pre-token that is a token, as if the lookup were pair,"),
}
WORDS = 48  # the largest number of words for each incorrect encoder
ALONE = 6  # how many of them, the shortest ones, are separate cases
CANDIDATES = 2000  # how many candidates of each kind are tried
LONG = (60, 400, 1200)  # bytes of a long pre-token


def words(reach: Reach, draw: Draw) -> tuple[list[Draft], dict[str, int]]:
    model, no_mistake = reach.model, "whole-pre-token-first" if reach.oracle.lookup == "whole" else "whole-ignored"
    bugs = {bug.id: bug for bug in known_bugs() if bug.id in WRONG and bug.id != no_mistake}
    left_out = reach.special_tokens - model.learned
    ordinary_vocab = {index: token for index, token in model.vocab.items() if token not in left_out}
    base = BaseEncoder(ordinary_vocab, model.merges, pipeline=model.pipeline)
    active: dict[str, Any] = {name: like(base, bugs[name].target) for name in WRONG if name in bugs}
    found: dict[str, list[str]] = {name: [] for name in active}
    for word, piece in _candidates(reach, draw):
        right = reach.oracle.word(piece)
        for name, encoder in list(active.items()):
            if encoder.merge(encoder.atoms(piece)) != right:
                found[name].append(word)
                if len(found[name]) == WORDS:
                    del active[name]
    drafts: list[Draft] = []
    for name, several in found.items():
        kind, what = WRONG[name]
        clause, title = bugs[name].clause, f"an encoder that {what} fails on"
        shortest = sorted(several, key=lambda word: (len(word), word))[:ALONE]
        drafts += [encode(kind, clause, f"{title} {show.text_line(word)}", word) for word in shortest]
        for group in grouped(several, 16):
            text = "".join(word if word.startswith(" ") else f"\n{word}" for word in group)
            if len(group) > 1:
                drafts.append(encode(kind, clause, f"{title} these words", text))
    return drafts, {WRONG[name][0]: len(several) for name, several in found.items()}


def _candidates(reach: Reach, draw: Draw) -> Iterator[tuple[str, str]]:
    """Yield texts and pre-tokens: adjacent tokens, repeated tokens, real text, and tokens that no merges build."""
    every = ordinary(reach)
    real = all_real_text().split()
    texts: list[str] = []
    for _ in range(CANDIDATES):
        texts.append("".join(text_of(draw.pick(every)) for _ in range(draw.between(2, 3))))
        texts.append(draw.pick((" ", "", "a")) + text_of(draw.pick(every)) * draw.between(2, 5))
        texts.append(f" {draw.pick(real)}")
    texts += [text for token in every if (text := text_of(token)) and reach.steps(token)[0] != (token,)]
    for piece in dict.fromkeys(piece for text in texts for piece in reach.pre_tokens(text)):
        word = text_of(b"".join(reach.oracle.atoms(piece)))
        if 1 < len(word.encode("utf-8")) <= 40:
            yield word, piece


def real(reach: Reach) -> Iterator[Draft]:
    clause = "MERGE-GPT2-1" if reach.model.is_gpt2 else "MERGE-ORDER-1"
    for file in sorted(TEXTS.glob("*.txt")):
        text = file.read_bytes().decode("utf-8")
        yield encode("real-text", clause, f"real text: {file.stem[3:].replace('-', ' ')}", text)


def long(draw: Draw) -> Iterator[Draft]:
    for length in LONG:
        for letters in ("a", "ab", "etaoinshrdlu", "=", " ", "日本語の", "0123456789", "ёжик"):
            text = "".join(draw.pick(letters) for _ in range(length))
            text = text.encode("utf-8")[:length].decode("utf-8", "ignore")
            yield encode("long", "MERGE-LONG-1", f"{length} bytes of {show.text_line(letters)}", text)


# Coverage

SIZE = 160  # tokens in a text


def tokens(reach: Reach, draw: Draw, alone: Collection[bytes]) -> Iterator[Draft]:
    """Yield texts that together have every token but those `alone`, each of which is a text of its own."""
    texts = covering(reach, draw, alone)
    for number, text in enumerate(texts, 1):
        clause = "MERGE-ORDER-1" if text.isascii() else "MERGE-BYTES-1"
        yield encode("tokens", clause, f"every token that is no text, text {number} of {len(texts)}", text)


def covering(reach: Reach, draw: Draw, alone: Collection[bytes] = ()) -> list[str]:
    """Return texts that together have every token for which a text was found, but those `alone`."""
    found = ((token, reach.text_for(token)) for token in ordinary(reach) if token not in alone)
    pending = draw.shuffled([(token, text) for token, text in found if text is not None])
    made: list[str] = []
    reached: set[bytes] = set()
    for joint, size in (("\n", SIZE), (" ", SIZE), ("", 1)):
        texts = [joint.join(text for _, text in group) for group in grouped(pending, size)]
        reached.update(token for text in texts for token in reach.tokens(text))
        made += texts
        pending = [(token, text) for token, text in pending if token not in reached]
    return made


# Splitting

_REPEATED = regex.compile(r"([A-Z][a-z]|.)\1+", regex.DOTALL)
DETECTIONS = 2  # how many texts detect each mistake in a pattern
TRIED = 4000  # how many texts are tried
BLOCK = 7  # bits of a code point within its block
BLOCKS = 32  # how many blocks a text of all scripts samples
OBJECT_PROPERTIES = ("constructor", "__proto__", "toString", "valueOf", "hasOwnProperty", "__class__", "length", "null")
"""Names that a lookup in a plain JavaScript or Python object finds, although they are not entries."""


def mistakes(reach: Reach, draw: Draw) -> tuple[list[Draft], dict[str, object], dict[str, int]]:
    """Return short texts whose ids mistakes in splitting change, and how many mistakes and known bugs they detect."""
    model, oracle = reach.model, reach.oracle
    wrong: list[tuple[str, Any, KnownBug | None]] = [
        (f"split differently {what}", like(oracle, type(oracle), pattern=pattern, pipeline=other), None)
        for what, pattern, other in variants(model)
    ]
    count, settings = len(wrong), model.pipeline.settings if model.pipeline is not None else set[str]()
    bugs = [bug for bug in known_bugs() if bug.settings and settings.issuperset(bug.settings)]
    wrong += [(f"an engine with the bug {bug.id} gives other ids", reach.wrong(bug.target), bug) for bug in bugs]
    left = dict.fromkeys(range(len(wrong)), DETECTIONS)
    drafts: list[Draft] = []
    entries = _kinds(reach)
    for clause, text in _texts(reach, draw, entries):
        segments = reach.segments(text)
        right, pieces = oracle.encode_segments(segments), _pieces(oracle, segments)
        detected = [
            mistake
            for mistake in left
            if (
                wrong[mistake][1].encode(text) != right
                if mistake >= count
                else _is_seen(wrong[mistake][1], segments, pieces, right)
            )
        ]
        if detected:
            what, _, bug = wrong[detected[-1]]  # known bugs are last
            kind, clause = ("split", f"SPLIT-{clause}") if bug is None else (bug.id, bug.clause)
            drafts.append(encode(kind, clause, what, text))
            left = {mistake: count - (mistake in detected) for mistake, count in left.items()}
            left = {mistake: count for mistake, count in left.items() if count}
    never = []
    alone = [reach.segments(text) for text in entries if not reach.is_open(text)]  # each entry is a case
    answers = [(segments, _pieces(oracle, segments), oracle.encode_segments(segments)) for segments in alone]
    for mistake, (what, encoder, _) in enumerate(wrong[:count]):
        if left.get(mistake) == DETECTIONS and not any(_is_seen(encoder, *answer) for answer in answers):
            never.append(what.split(" ", 2)[2])
    report: dict[str, object] = {"mutants": count, "told_apart": count - len(never), "not_told_apart": never}
    found = {bug.id: DETECTIONS - left.get(number, 0) for number, bug in enumerate(bugs, count)}
    return drafts, report, found


def _kinds(reach: Reach) -> list[str]:
    """Return a token's text of each kind. The kind names the class of each character, but ASCII marks themselves."""
    found: dict[str, str] = {}
    for text in filter(None, map(text_of, ordinary(reach))):
        kind = "".join(char if char.isascii() and not char.isalnum() else unicodedata.category(char) for char in text)
        found.setdefault(_REPEATED.sub(r"\1\1", kind), text)
    return list(found.values())


def _is_seen(wrong: Any, segments: textbook.Segments, pieces: list[list[str]], ids: list[int]) -> bool:
    return _pieces(wrong, segments) != pieces and wrong.encode_segments(segments) != ids


def _pieces(encoder: textbook.Encoding, segments: textbook.Segments) -> list[list[str]]:
    return [encoder.split(segment) for segment, is_special in segments if not is_special]


def _texts(reach: Reach, draw: Draw, entries: list[str]) -> Iterator[tuple[str, str]]:
    """Yield a clause and a text: characters of a subject, tokens, added tokens beside others, what is normalized."""
    model, pipeline = reach.model, reach.model.pipeline
    clauses = SPLIT_CLAUSES.get(model.pattern if pipeline is None else "", ["FENCE-1"] * len(PIECES))
    subjects = list(zip(clauses, PIECES.values(), strict=True))
    own = tuple(dict.fromkeys(part for _, expression in expressions(model) for part in _literals(expression)))
    tokens = [text for text in map(text_of, ordinary(reach)) if text], entries
    flagged = sorted(pipeline.added_tokens if pipeline else (), key=lambda token: token == AddedToken(token.content))
    added = [token.content for token in flagged[:MANY]]
    together = [text for first in added for second in added for text in _overlaps(first, second)[:-2]]
    beside = (*SPACE, "a", "_", "1", "!", "é", *MARKED)
    composed = (*RAW_TEXT[:16], *MARKED, *NEARLY, " ", "a", "1", "\n", r"\p{M}", r"\p{No}")
    others = (*added, *added, *map(reach.oracle.normalize, added), *together[:MANY], *beside), composed
    for number in range(TRIED if pipeline is None else 3 * TRIED // 4):
        clause, pieces = subjects[number % len(subjects)]
        if number % 4 == 1:  # a missing border shows in the ids only if a merge crosses it
            yield clause, "".join(draw.pick(tokens[number // 4 % 2]) for _ in range(draw.between(2, 4)))
        elif number % 4 == 3 and pipeline is not None:
            yield clause, draw.pieces(others[number // 4 % 2], draw.between(2, 7))
        else:
            yield clause, draw.pieces((*pieces, *own) if number % 3 == 0 else pieces, draw.between(2, 7))
    for word, part in product("aA", CONTRACTIONS):  # a contraction with U+017F shows only before another and letters
        yield from ((clauses[0], f"{word}'\u017f{cased}") for cased in (f"{part}e", f"{part.upper()}D"))
    for token in added:  # U+0338 composes with `>`, at which most of them end
        yield from ((clauses[0], text) for text in (f"{token}\u0338", f"a\u3000{token}\u00a0 a"))


def alternatives_met(reach: Reach, texts: Iterable[str]) -> dict[str, Any]:
    segments = [segment for text in texts for segment, special in reach.segments(text) if not special]
    missing: list[str] = []
    count, version = 0, regex.V0 if reach.model.pipeline is None else regex.V1
    for steps, pattern in expressions(reach.model):
        parts = {part: regex.compile(part, version) for part in alternatives(pattern)}
        met = {
            next((part for part, one in parts.items() if one.match(piece, match.start())), None)
            for segment in segments
            for piece in (reach.oracle.apply_all(steps, segment) if steps else [segment])
            for match in regex.finditer(pattern, piece, version)
        }
        missing += [part for part in parts if part not in met]
        count += len(parts)
    return {"all": count, "met": count - len(missing), "not_met": missing}


def _literals(pattern: str) -> tuple[str, ...]:
    bare = regex.sub(r"\\[pP]\{\w+\}|\\[^\W_]|\(\?[^:>)]*[:>]?|\{\d*,?\d*\}", " ", pattern)
    return tuple(dict.fromkeys(regex.findall(r"'?\p{L}+|[^\s\w\\\[\]()|?*+^$]", bare)))


def scripts(reach: Reach, draw: Draw) -> Iterator[Draft]:
    model = reach.model
    has_classes = model.pipeline is None and model.pattern in SPLIT_CLAUSES.keys() - {"none"}
    clause = "SPLIT-UNICODE-1" if has_classes else "BYTES-ATOM-1"
    visible = (char for run in agreed() for char in run if char.isprintable() and not reach.is_open(char))
    blocks = ["".join(block) for _, block in groupby(visible, lambda char: ord(char) >> BLOCK)]
    for group in grouped(blocks, BLOCKS):
        first = unicodedata.name(group[0][0], "signs").split(" ")[0].lower()
        words = ("".join(draw.pick(block) for _ in range(draw.between(1, 6))) for block in [*group, *group])
        text = "".join(draw.pick((" ", "  ", "\n", "1", ".")) + word for word in words)
        yield encode("scripts", clause, f"scripts, first {first}", text)


def raw(draw: Draw, forms: Sequence[NormalForm] = ()) -> Iterator[Draft]:
    """Yield texts that some tokenizers change: with decomposed letters, control characters, white space or a BOM.

    If a model has normal forms, they change some of these texts, and the clauses of unchanged text hold for the others.
    """
    yield encode("empty", "BYTES-EMPTY-1", "the empty text", "")
    for text in OBJECT_PROPERTIES:
        yield encode("raw", "BYTES-TEXT-2", "the name of a property of every object is plain text", f"{text} {text}")
    changed = f"text is normalized by {' and then '.join(forms)}, and not changed otherwise"
    for clause, pieces, ends in (
        ("BYTES-TEXT-1", RAW_TEXT[:16], ("",)),
        ("BYTES-TEXT-2", tuple(filter(_is_stable, RAW_TEXT)) if forms else RAW_TEXT, SPACE),
        ("BYTES-TEXT-3", ("\ufeff", "\0", "a", r"\p{C}", " "), ("",)),
    ):
        for _ in range(8):
            text = draw.pick(ends) + draw.pieces(pieces, draw.between(6, 20)) + draw.pick(ends)
            if forms and not _is_stable(text):
                yield encode("raw", "PIPELINE-NORM-1", changed, text)
            else:
                yield encode("raw", clause, "text is not changed", text)


def _is_stable(text: str) -> bool:
    return all(unicodedata.is_normalized(form, text) for form in NORMAL_FORMS)


# Special tokens

MANY = 12  # if there are more special tokens, only some have cases of their own
BESIDE = (" ", "  ", "\n", "\n\n", "\t", "a", "1", "!", "'s", "é", "日", "<", "|>", " the")
FOREIGN = (  # special tokens of other models
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start|>", "<|fim_prefix|>", "<think>"),
    *("<s>", "</s>", "<unk>", "<pad>", "[CLS]", "[INST]", "<|e|>"),
)
SWAPS = {"<": "＜", "|": "｜", "_": "-", "e": "е", "o": "ο", "i": "ı"}


def special(reach: Reach, draw: Draw) -> Iterator[Draft]:
    tokens = reach.special
    some = list(dict.fromkeys([*tokens[: MANY - 2], *tokens[-2:]]))
    for token in some:
        yield from _of_one(token, _beside_clause(reach.model, token), draw)
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


def _beside_clause(model: Model, token: str) -> str:
    """Return the clause that says what the text beside a special token becomes."""
    flags = next((one for one in model.steps.added_tokens if one.content == token), AddedToken(token))
    strips = "PIPELINE-STRIP-1" if flags.lstrip or flags.rstrip else "SPECIAL-SEGMENT-1"
    return "PIPELINE-WORD-1" if flags.single_word else strips


def _of_one(token: str, beside_clause: str, draw: Draw) -> Iterator[Draft]:
    shown = show.text_line(token)
    middle = draw.between(1, max(1, len(token) - 1))
    beside = tuple(text for one in BESIDE[:6] for text in (f"{token}{one}", f"{one}{token}"))
    parts = (token[:-1], token[1:], f"{token[:middle]} {token[middle:]}", f"{token[:middle]}\u200b{token[middle:]}")
    for kind, clause, title, texts in (
        ("alone", "SPECIAL-ID-1", "alone", (token,)),
        ("tripled", "SPECIAL-SCAN-1", "three times", (token * 3,)),
        ("edge", beside_clause, "at an edge", beside),
        ("beside", beside_clause, "between others", (token.join(["", *draw.shuffled(BESIDE), ""]),)),
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

BROKEN_ALONE = 40  # number of tokens that are not UTF-8 and are decoded alone
IDS = 400  # ids in a case that decodes a part of the vocabulary
SHORT = 24
TIDIED = (  # a clause, and a text that some decoders change: marks, composition, line ends, white space, controls
    ("DECODE-BOM-1", "\ufeffa"),
    ("DECODE-BOM-1", "\ufeff\ufeff a\ufeff"),
    ("DECODE-BYTES-1", "e\u0301 \u212b \ufb01 \u1e9b\u0323"),
    ("DECODE-BYTES-1", "a\r\nb\rc\n\n"),
    ("DECODE-BYTES-1", "  \ta . don 't \n "),
    ("DECODE-BYTES-1", "\0a\0\x7f\x85\u200b"),
)


def decoding(reach: Reach, draw: Draw) -> Iterator[Draft]:
    """Yield ids: single tokens that are not UTF-8, every id of the vocabulary, parts of characters."""
    vocab, ids_of = reach.model.vocab, reach.model.ids
    broken = [index for index, token in sorted(vocab.items()) if not isinstance(write_token(token), str)]
    for index in draw.shuffled(broken)[:BROKEN_ALONE]:
        title = f"{show.token(vocab[index])} alone is not UTF-8"
        yield Draft("decode-broken", "DECODE-UTF8-1", title, Decode((index,)))
    for group in grouped(broken, IDS // 4):
        yield Draft("decode-broken", "DECODE-UTF8-1", "tokens that are not UTF-8", Decode(tuple(group)))
    for group in grouped(sorted(vocab), IDS):
        yield Draft("decode-all", "DECODE-BYTES-1", "a part of the vocabulary", Decode(tuple(group)))
    for char in ("é", "€", "日", "🦊", "👍🏽"):
        ids = [ids_of[bytes([byte])] for byte in char.encode("utf-8")]
        yield Draft("decode-parts", "DECODE-BYTES-1", f"{char!a} in single bytes", Decode(tuple(ids)))
        yield Draft("decode-parts", "DECODE-UTF8-1", "a character cut short", Decode((*ids[:-1], *ids)))
    for clause, text in TIDIED:
        ids = [ids_of[token] for token in reach.tokens(text)]
        yield Draft("decode-text", clause, "a text is unchanged", Decode(tuple(ids)))
    for text, index in reach.model.special_ids.items():
        ids = [ids_of[b" "], index, index, ids_of[b" "], ids_of["é".encode()[:1]], index]
        title = f"{show.text_line(text)} between other tokens"
        yield Draft("decode-special", "DECODE-SPECIAL-1", title, Decode(tuple(ids)))
    yield Draft("decode-empty", "DECODE-EMPTY-1", "no ids", Decode(()))


def streams(reach: Reach, draw: Draw, hard: Sequence[str]) -> Iterator[Draft]:
    """Yield texts cut at every position: texts that are hard to split or merge, and texts with special tokens."""
    short = [text for text in hard if 2 <= len(text) <= SHORT]
    texts = [draw.pick(short) + draw.pick((" ", "\n", "", "a")) + draw.pick(short) for _ in range(24 if short else 0)]
    texts += [draw.pick((" ", "a ", "\n")) + token + draw.pick((" ", "a", "\n\n")) for token in reach.special[:8]]
    texts += ["we'll  go,\r\n\r\n 12345 日本 🦊!!\n", "a \n b\t\tc   d", "1234567 12 1 12345", "don't I'LL it's'"]
    for text in dict.fromkeys(texts):
        title = f"cut at every position: {show.text_line(text)}"
        yield Draft("stream", "STREAM-EQUAL-1", title, StreamCutEverywhere(text))
    for number in range(8):
        text = draw.real_text(4, 200) + draw.pieces(RAW_TEXT, 6) + (draw.pick(reach.special) if reach.special else "")
        if number % 2:
            chunks = tuple(text)
        else:
            bounds = [0, *sorted(draw.below(len(text)) for _ in range(9)), len(text)]
            chunks = tuple(text[start:end] for start, end in pairwise(bounds))
        yield Draft("stream", "STREAM-EQUAL-1", "real text in chunks", Stream(chunks))


def batches(reach: Reach, draw: Draw) -> Iterator[Draft]:
    """Yield lists of texts of all lengths, some of them empty or repeated."""
    for number in range(6):
        texts = ["", *(draw.pieces((*PIECES["contractions"], *RAW_TEXT, *reach.special), 5) for _ in range(4 * number))]
        texts += [draw.real_text(2, 80), texts[-1], ""]
        yield Draft("batch", "BATCH-EQUAL-1", "texts of all lengths", Batch(tuple(draw.shuffled(texts))))


# Text as ids arrive, and offsets

STREAMED = 1_200  # ids: more than 256 characters, even if each takes several ids (DETOK-LAZY-1)
TAILS = (b"", b"\x80", b"\x80\x80", b"\x80\x80\x80", b"\xa0\x80", b"\x90\x80\x80")
"""The bytes that complete a character, for each of its beginnings."""


def detokenizing(reach: Reach, draw: Draw) -> Iterator[Draft]:
    """Yield ids that end or begin inside a character, with its rest and without, and every id of the vocabulary."""
    vocab, ids_of = reach.model.vocab, reach.model.ids
    broken = [index for index, token in sorted(vocab.items()) if not isinstance(write_token(token), str)]
    cut = {index: vocab[index] for index in broken if textbook.unfinished(vocab[index])}
    for index in draw.shuffled(sorted(cut))[:BROKEN_ALONE]:
        shown, token = show.token(cut[index]), cut[index]
        yield Draft("detok-end", "DETOK-END-1", f"{shown} is the last token", Detokenize((index,)))
        whole = [tail for tail in TAILS if not textbook.unfinished(token + tail) and _is_text(token[-3:] + tail)]
        if whole:
            ids = (index, *(ids_of[bytes([byte])] for byte in whole[0]), index)
            yield Draft("detok-rest", "DETOK-EQUAL-1", f"{shown}, the rest of its character, {shown}", Detokenize(ids))
    for index in sorted(cut, key=lambda index: (-len(cut[index]), index))[:3]:
        title = f"what is before the last character of {show.token(cut[index])} does not wait"
        yield Draft("detok-held", "DETOK-HELD-1", title, Waiting((index, index), "held"))
    for text in ("a reader waits for each word ", "\u6587\u5b57\u5217"):
        once = tuple(ids_of[token] for token in reach.tokens(text))
        title = f"text comes before all ids are read: {show.text_line(text)}, again and again"
        yield Draft("detok-lazy", "DETOK-LAZY-1", title, Waiting(once * (1 + STREAMED // len(once)), "early"))
    for group in grouped(draw.shuffled(broken), IDS // 4):
        yield Draft("detok-broken", "DETOK-INVALID-1", "tokens that are not UTF-8", Detokenize(tuple(group)))
    for group in grouped(draw.shuffled(sorted(vocab)), IDS * 4):
        yield Draft("detok-all", "DETOK-EQUAL-1", "a part of the vocabulary in any order", Detokenize(tuple(group)))
    half = (ids_of[b"\xc3"],)
    for text, index in reach.model.special_ids.items():
        title = f"{show.text_line(text)} between halves of a character"
        ids = (*half, index, *half)
        yield Draft("detok-special", "DETOK-SPECIAL-1", title, Detokenize(ids))
    for _, text in TIDIED:
        ids = tuple(ids_of[token] for token in reach.tokens(text))
        yield Draft("detok-text", "DETOK-TEXT-1", "a text is unchanged", Detokenize(ids))


def _is_text(data: bytes) -> bool:
    return "\ufffd" not in data[[byte & 0xC0 != 0x80 for byte in data].index(True) :].decode("utf-8", "replace")


OFFSETS = 24  # how many of the texts that are hard to split or merge


def offsets(reach: Reach, draw: Draw, hard: Sequence[str]) -> Iterator[Draft]:
    """Yield texts whose tokens spell them: elsewhere, the spec leaves spans open."""
    short = [text for text in dict.fromkeys(hard) if len(text) <= SHORT]
    texts = [("OFFSET-SPAN-1", text) for text in draw.shuffled(short)[:OFFSETS]]
    texts += [("OFFSET-SHARED-1", "🦊 日本語, é👍🏽x क्षि\n\U0001d400"), ("OFFSET-SPACE-1", "  a \t\r\n b\u3000c  ")]
    texts += [("OFFSET-SPECIAL-1", f"é {token} b{token}") for token in reach.special[:8]]
    for clause, text in texts:
        spelled = b"".join(reach.model.vocab[index] for index in reach.ids(text))
        if spelled == text.encode("utf-8") == reach.oracle.normalize(text).encode("utf-8"):
            yield Draft("offsets", clause, f"where the tokens of {show.text_line(text)} are", EncodeWithOffsets(text))
