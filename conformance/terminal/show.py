"""Formats text, tokens and merges for messages: one line, ASCII, short."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from bpe_conformance.fixtures import PATTERNS, Merge, Model
from bpe_conformance.fixtures.one_line import ascii_only, counted
from bpe_conformance.fixtures.pipeline import AddedToken, Pipeline

from .. import answer as answers
from ..operations import Call, Directory, Lazy, Merges, OwnTable, StoredIds

T = TypeVar("T")
LONGEST = 200
LONGEST_TOKEN = 40
NEAR = 6
FEW = (24, 16, 8, 4)  # characters on each side of the first that differs: the first number that fits is used
NEAR_WIDTH = 56
SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
POWER = re.compile(f"(?<=[0-9])[{SUPERSCRIPTS}]+")
LONGEST_ARGUMENT = 60  # characters of a text in a call
FIRST_ADDED = 3  # how many added tokens of a pipeline are shown
MOST_TEXTS = 8  # the most texts of a list in a call; of a longer list, the first one is shown
MOST_TOKENS = 12
REASONS = {  # reason of an error → why it must be raised
    "disallowed": "the text contains a disallowed special token",
    "size": "the vocabulary size is too small",
    "special": "the special tokens are not valid",
    "surrogate": "the text contains a lone surrogate",
    "table": "the vocabulary and the merges do not fit together",
    "unknown-id": "the vocabulary does not have the id",
}
TIMES = "times"  # what a measure counts, if it compares times
LAZY = {  # what a stream may hold back → how to say it
    "lazy": "ids as soon as their text has been read",
    "early": "text before more than 256 ids that end a character are read",
    "prompt": "at the end of each character, all text before the next id is read",
    "held": "at most 3 bytes held back when an id is read",
}
SPELLED = {ord("…"): "...", ord("·"): "|", ord("–"): "-"}  # sign → its spelling in ASCII, in sentences


def text_line(text: str, longest: int = LONGEST) -> str:
    r"""Return `text` quoted; if it is longer than `longest` characters, only its beginning and end.

    >>> text_line("a\n€"), text_line("abcdefghij", 8)
    ("'a\\n\\u20ac'", "'abcd' ... 'j' (10 characters)")
    """
    if len(text) > longest:
        return f"{text[: longest * 3 // 5]!a} ... {text[-(longest // 5) :]!a} ({len(text):,} characters)"
    return ascii(text)


def measured(amount: int, what: str) -> str:
    return f"{amount:,} times as long" if what == TIMES else f"{counted(amount, what)} held back"


def hex_line(data: bytes) -> str:
    return data[:24].hex(" ") + (" ..." if len(data) > 24 else "")


def token(data: bytes) -> str:
    r"""Return a token, quoted if it is visible ASCII, else its bytes; of a long one, the beginning and the length.

    >>> token(b" the"), token(b"\xe2\x82"), token(b"a" * 64)
    ("' the'", '<e2 82>', "'aaaaaaaaaa'...(64 bytes)")
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return f"<{hex_line(data)}>"
    return ascii(text) if len(text) <= LONGEST_TOKEN else f"{text[:10]!a}...({len(data)} bytes)"


def pair(merge: Merge) -> str:
    return f"({','.join(map(bare, merge))})"


def joined(merge: Merge) -> str:
    """Return a merge as the sum of its parts.

    >>> joined((b"lo", b"w")), joined((b" ", b"+"))
    ('lo+w', "' '+'+'")
    """
    return "+".join(map(bare, merge))


def bare(part: bytes) -> str:
    r"""Return a token, without quotes if it cannot be misread.

    >>> bare(b"low"), bare(b" a"), bare(b"'s"), bare(b"'\n"), bare(b"\xe2")
    ('low', "' a'", "'s", '"\'\\n"', '<e2>')
    """
    shown = token(part)
    is_quoted = shown[0] in "'\"" and shown[0] == shown[-1]
    plain = is_quoted and part.strip() and not any(byte < 33 or byte in b',+|"<>\\' for byte in part)
    return shown[1:-1] if plain and (part == b"'" or not part.endswith(b"'")) else shown


def merges(pairs: Sequence[Merge]) -> str:
    """Return at most a dozen merges, the first ones."""
    return _window(pairs, pair, 0, " ") or "none"


def ranked(pairs: Sequence[Merge], needed: Collection[int] = ()) -> list[str]:
    """Return merges with their ranks: the first of them, and those of the ranks `needed`, with those before and after.

    >>> ranked([(b"b", b"c"), (b"a", b"b")])
    ['0: b+c', '1: a+b']
    """
    near = {rank + step for rank in needed for step in (-1, 0, 1)}
    ranks = sorted({*range(2 * NEAR), *near} & set(range(len(pairs))))
    shown = []
    for before, rank in zip([-1, *ranks], ranks, strict=False):
        shown += ["..."] * (rank > before + 1) + [f"{rank}: {joined(pairs[rank])}"]
    last = ranks[-1] if ranks else -1
    return [*shown, *([f"{len(pairs) - last - 1:,} more ..."] if last + 1 < len(pairs) else [])] or ["none"]


def packed(parts: Sequence[str], width: int, between: str = "   ") -> str:
    r"""Return parts in lines of at most `width` characters, each part whole.

    >>> packed(["0: b+c", "1: a+b", "2: d+e"], 16)
    '0: b+c   1: a+b\n2: d+e'
    """
    lines = [""]
    for part in parts:
        longer = f"{lines[-1]}{between}{part}" if lines[-1] else part
        if len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(part)
    return "\n".join(filter(None, lines))


def prose(text: str) -> str:
    r"""Return a sentence in ASCII. Signs with a usual spelling in ASCII get that spelling; others are escaped.

    >>> prose("ids + 1, … up to 2²⁰: aa·a, €")
    'ids + 1, ... up to 2^20: aa|a, \\u20ac'
    """
    powers = POWER.sub(lambda match: "^" + "".join(str(SUPERSCRIPTS.index(sign)) for sign in match[0]), text)
    return ascii_only(powers.translate(SPELLED))


def escaped(text: str, quote: str) -> str:
    return text.encode("unicode_escape").decode("ascii").replace(quote, f"\\{quote}")


def text_near(text: str, around: int) -> tuple[str, int]:
    """Return `text` quoted, or only the part near the index `around` if it is long, and the column of that index.

    >>> text_near("abc", 1)
    ("'abc'", 2)
    >>> text_near("a" * 30 + "b" * 30, 30)
    ("... 'aaaaaaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbbbbb' ... (60 characters)", 29)
    """
    start, end = 0, len(text)
    for few in FEW:
        if len(ascii(text[start:end])) <= NEAR_WIDTH:
            break
        start, end = max(0, around - few), min(len(text), around + few)
    shown = ascii(text[start:end])
    head = "... " if start else ""
    column = len(head) + 1 + len(escaped(text[start:around], shown[0]))
    return f"{head}{shown}" + (f" ... ({len(text):,} characters)" if end < len(text) else ""), column


def numbers(values: Sequence[int]) -> str:
    more = f", ... {len(values) - 24} more" if len(values) > 24 else ""
    return f"[{', '.join(map(str, values[:24]))}{more}]"


def ids(numbers: Sequence[int], vocab: Mapping[int, bytes], around: int = 0) -> str:
    def shown(number: int) -> str:
        return f"{number} {token(vocab[number])}" if number in vocab else f"{number} ?"

    return _window(numbers, shown, around, " | ") or "no ids"


def _window(parts: Sequence[T], shown: Callable[[T], str], around: int, between: str) -> str:
    start = max(0, min(around - NEAR, len(parts) - 2 * NEAR))
    window = [shown(part) for part in parts[start : start + 2 * NEAR]]
    if start:
        window.insert(0, f"... {start} before")
    if start + 2 * NEAR < len(parts):
        window.append(f"{len(parts) - start - 2 * NEAR} more ...")
    return between.join(window)


def pipeline(steps: Pipeline) -> list[str]:
    """Return the parts of a pipeline in order, each in a few words, without settings that have their default.

    >>> pipeline(Pipeline(("NFC",), (AddedToken("<s>", lstrip=True),), lookup="whole"))
    ['NFC', "added '<s>' (lstrip)", 'ByteLevel', 'lookup whole']
    """
    parts: list[str] = [*steps.normalizer]
    names = {expression: name for name, expression in PATTERNS.items()}
    for value in (*steps.added_tokens[:FIRST_ADDED], *steps.steps):
        settings = {part.name: getattr(value, part.name) for part in fields(value)}
        flags = [name for name, one in settings.items() if one is True and name not in ("split", "special")]
        flags += ["no split"] if settings.get("split") is False else []
        flags += ["not special"] if settings.get("special") is False else []
        words = ["added"] if isinstance(value, AddedToken) else [type(value).__name__]
        text = settings.get("content", settings.get("expression"))
        words += [names.get(text, ascii(text))] if text is not None else []
        words += [settings["behavior"]] if settings.get("behavior", "Isolated") != "Isolated" else []
        parts.append(" ".join([*words, *([f"({', '.join(flags)})"] if flags else [])]))
    if (more := len(steps.added_tokens) - FIRST_ADDED) > 0:
        parts.insert(len(steps.normalizer) + FIRST_ADDED, f"{more} more added")
    return parts if steps.lookup == "pair" else [*parts, f"lookup {steps.lookup}"]


# Calls, and what is expected of them


@dataclass(frozen=True)
class Style:
    text: Callable[[str], str]
    texts: Callable[[Sequence[str], str], str]  # a list of texts; the second argument says what they are
    sequence: Callable[[Sequence[int]], str]  # ids as an argument
    choice: Callable[[str, Any], str]  # a choice of special tokens, as an argument with a name
    directory: str  # the path of a directory, as an argument
    constructor: str
    keyword: bool  # whether special tokens are a keyword argument, which is left out if there are none
    ids: Callable[[Sequence[int], Model | None], str]  # as an answer, with their tokens if the model is known
    tokens: Callable[[Sequence[bytes]], str] = ascii
    merges: Callable[[Sequence[Merge]], str] = ascii
    entries: Callable[[Sequence[tuple[int, bytes]]], str] = ascii
    reasons: bool = True  # whether to say why an error is expected


def call(made: Call, style: Style) -> str:
    if made.arguments is None:
        return made.method or style.constructor
    parts = [_argument(value, made, style) for value in made.arguments]
    for name, value in made.keywords.items():
        if name == "special_tokens":
            shown = style.texts(value, "special tokens")
            parts += ([f"{name}={shown}"] if value else []) if style.keyword else [shown]
        elif name == "pattern":
            parts += [f"pattern={value!a}"] if value != "gpt2" else []
        else:
            parts.append(f"{name}={style.choice(name, value)}")
    loaded = "from_files(...)." if made.on == "loaded" and style.keyword else ""
    return f"{loaded}{made.method}({', '.join(parts)})"


def _argument(value: Any, made: Call, style: Style) -> str:
    if isinstance(value, str):
        return style.text(value)
    if isinstance(value, Directory):
        return style.directory
    if isinstance(value, int):
        return str(value)
    if made.noun == "ids":
        shown = style.sequence(value)
        return f"({shown[1:-1]})" if isinstance(value, tuple) else shown
    return style.texts(value, made.noun)


def expected(value: Any, style: Style, model: Model | None = None) -> str:
    match value:
        case answers.AnyError(reason):
            return f"an error, because {REASONS[reason]}" if style.reasons and reason in REASONS else "an error"
        case answers.NewIds(tokens):
            absent = model is None or not {*tokens} <= {*model.vocab.values()}
            return style.tokens(tokens) + ", with a new id for each token without an entry" * absent
        case answers.Lossless():
            return "ids that spell the text"
        case Lazy(kind):
            return LAZY[kind]
        case OwnTable():
            return "files with the same vocabulary and merges"
        case StoredIds():
            return f"{style.ids(value.ids.ids, model)}, from gpt2-ids.json" if style.reasons else "the ids of GPT-2"
        case answers.AtMost(amount, what):
            return f"at most {measured(amount, what)}" + " at any time" * (what != TIMES)
        case answers.HighestCount(merges):
            return f"at most {merges} merges, each a pair with the highest count"
        case answers.Unchanged():
            return "the same answer; arguments and other results stay as they are"
        case Merges(merges, entries):
            return style.merges(merges) + (f"; ids {style.entries(entries)}" if entries else "")
        case answers.Table(_, merges):
            return f"merges {' '.join(ranked(merges))}" if merges else "no merges"
        case answers.Ids(ids):
            return style.ids(ids, model)
        case answers.Offsets(ids, spans):
            return f"{style.ids(ids, model)}, at {' '.join(map(span, spans))}" if spans else "no ids"
        case answers.Text(text):
            return style.text(text)
        case answers.Bytes(data):
            return hex_line(data) or "no bytes"
        case answers.Rows(rows):
            return "; ".join(style.ids(row, model) for row in rows) or "an empty list"
        case answers.Accepted():
            return "no error"
        case answers.Measure(amount, what):
            return measured(amount, what)
        case answers.Changed(what):
            return "; ".join(what)
        case answers.Fault(_, message) | answers.Refusal(_, message):
            return message
    raise TypeError(f"{value} is no answer")


def span(value: tuple[int, int]) -> str:
    return f"({value[0]},{value[1]})"


def cell(index: int, model: Model | None) -> str:
    token = model.vocab.get(index) if model is not None else None
    return bare(token) if token is not None else f"id {index}"


def _brief_text(text: str) -> str:
    return text_line(text, LONGEST_ARGUMENT)


def _brief_texts(texts: Sequence[str], noun: str) -> str:
    if len(texts) > MOST_TEXTS:
        return f"{len(texts):,} {noun}, the first {_brief_text(texts[0])}"
    return f"[{', '.join(map(_brief_text, texts))}]"


def _brief_ids(values: Sequence[int], model: Model | None) -> str:
    if not values:
        return "no ids"
    cells = [cell(index, model) for index in values[:MOST_TOKENS]] + ["..."] * (len(values) > MOST_TOKENS)
    return f"{' | '.join(cells)}   {numbers(values[:MOST_TOKENS])}"


def python_choice(name: str, tokens: Collection[str]) -> str:
    """Return a choice of special tokens as Python writes it: `allowed_special` is a set, the other one a tuple.

    >>> python_choice("allowed_special", []), python_choice("disallowed_special", ["<|e|>"])
    ('set()', "('<|e|>',)")
    """
    if tokens == "all":
        return '"all"'
    if name == "disallowed_special":
        return ascii(tuple(tokens))
    return f"{{{', '.join(map(ascii, tokens))}}}" if tokens else "set()"


BRIEF = Style(  # in the output of a run
    text=_brief_text,
    texts=_brief_texts,
    sequence=numbers,
    choice=python_choice,
    directory="...",
    constructor="the constructor",
    keyword=True,
    ids=_brief_ids,
    tokens=lambda tokens: " | ".join(map(bare, tokens)),
    merges=lambda merges: f"merges {' '.join(ranked(merges))}" if merges else "no merges",
    entries=lambda entries: ", ".join(f"{index} {token(entry)}" for index, entry in entries),
)
PYTHON = Style(  # in a program that repeats a call
    text=ascii,
    texts=lambda texts, _: ascii(list(texts)),
    sequence=lambda ids: str(list(ids)),
    choice=python_choice,
    directory="folder",
    constructor="TOKENIZER",
    keyword=False,
    ids=lambda ids, _: str(list(ids)),
)
