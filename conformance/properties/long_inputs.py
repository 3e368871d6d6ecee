"""Laws about long inputs: past the sizes at which fast implementations cut a text up or take other ways."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, pairwise

from bpe_conformance.fixtures import PATTERNS, Model, gpt2_files, read_model
from bpe_conformance.fixtures.models import END_OF_TEXT, gpt2_model

from ..cases.difference import Difference
from ..cases.expectations import oracle
from ..implementation.containment import CallFailed, Raised
from ..implementation.implementation import Implementation
from ..implementation.proxy import TokenizerProxy
from ..implementation.scratch import scratch_folder
from ..terminal import show
from .draws import Draw
from .law_engine import Example, Law, fixed, told
from .time_budget import as_many_as, in_time

WORD, BLANKS, SPECIAL = " abé日c", " \n\n", "<|en|>"
MODEL = read_model(
    {
        "merges": [
            *([" ", "a"], ["b", {"hex": "c3"}], [{"hex": "a9"}, {"hex": "e6"}], [{"hex": "97"}, {"hex": "a5"}]),
            *([{"hex": "97a5"}, "c"], [" a", {"hex": "62c3"}], [{"hex": "a9e6"}, {"hex": "97a563"}]),
            *([{"hex": "206162c3"}, {"hex": "a9e697a563"}], [" ", "\n"], [" \n", "\n"]),
        ],
        "special_tokens": [SPECIAL],
        "extra": [[300, SPECIAL]],
    }
)
"""Its pre-tokens and special token are one token each, and multiples of three in characters and in bytes.

So a text of them that is cut at a place that is no such multiple, as no power of two or ten is, has other ids.
"""
MIXED = " ab\n\ncd. it's 1234567 IT'S don't \r\n\U0001f98a\u00e9"
MIXED_TABLE = {"merges": [["\n", "\n"], ["'", "s"], ["'", "S"], ["1", "2"], ["12", "3"], ["a", "b"], [" ", "ab"]]}
"""What the fast ways of splitting treat apart: line ends, contractions, digits, characters of several bytes."""
RUNS = read_model(
    {
        "merges": [
            ["a", "b"],
            ["ab", "c"],
            ["\t", " "],
            ["\t ", "\n"],
            ["1", "2"],
            ["12", "3"],
            ["!", "?"],
            ["!?", "."],
            [" ", " "],
            [{"hex": "c3"}, {"hex": "a9"}],
            [{"hex": "c3a9"}, "x"],
            [{"hex": "c3a978"}, "y"],
        ]
    }
)
DOUBLING = read_model({"merges": [["a" * size, "a" * size] for size in (2**power for power in range(13))]})
"""A run of a is a few tokens, the longest of 8,192 bytes."""
ORDERED = read_model({"merges": [["b", "c"], ["a", "b"], ["ab", "c"]]})
"""In a run of abc, (b,c) is merged first: the longest tokens are wrong."""
DOUBLED = read_model({"merges": [["a", "a"], ["\t", "\t"]]})
"""A run of an odd length is merged from the left, and its last character stays alone."""
UNSPACED = read_model({"merges": [["'", "l"], ["'l", "l"], ["a", "b"], [{"hex": "82"}, {"hex": "e3"}]]})
"""Where a text without white space is cut behind a pre-token or a full stop, other ids show."""
LENGTHS = (4_300, 17_200, 70_000, 280_000, 1_100_000)
LONGEST_RUN = 70_000
DISTINCT = 130_000


def _model(implementation: Implementation, special: bool) -> tuple[Model, str]:
    """Return a model that the implementation has, and a part, the ids of which do not depend on what is around it."""
    if implementation.fixed_model is not None:
        model = gpt2_model()
        return model, WORD + BLANKS + WORD + END_OF_TEXT * special
    if special:
        return MODEL, WORD + BLANKS + WORD + SPECIAL
    return Model(MODEL.vocab, MODEL.merges, None), WORD + WORD + BLANKS


def _mixed(implementation: Implementation) -> Iterator[tuple[str, Model, str]]:
    """Yield models for a part in which all stands that patterns tell apart, and what the note on each says."""
    if implementation.fixed_model is not None:
        yield ", mixed text", gpt2_model(), MIXED
        return
    for name in ("gpt2", "cl100k"):
        if name == "gpt2" or f"pattern:{name}" in implementation.capabilities:
            yield f", mixed text, {name}", read_model({**MIXED_TABLE, "pattern": name}), MIXED


def _ways(implementation: Implementation) -> list[bool]:
    """Return whether the parts end in a special token: each way that the implementation has."""
    if implementation.fixed_model is None:
        return [True, False] if "special" in implementation.capabilities else [False]
    try:
        ids = implementation.build(gpt2_model()).encode(END_OF_TEXT)
    except CallFailed:
        return [False]
    return [False, True] if len(ids) == 1 else [False]


def _differs(asked: str, model: Model, expected: Sequence[int], got: Sequence[int]) -> Difference | None:
    if got == expected:
        return None
    place = show.first_difference(expected, got)
    near = slice(max(0, place - 4), place + 4)
    before = len(b"".join(model.vocab[index] for index in expected[:place]).decode("utf-8", "ignore"))
    return Difference(
        asked,
        f"{show.ids(expected[near], model.vocab)}, {len(expected):,} ids in all",
        f"{show.ids(got[near], model.vocab)}, {len(got):,} ids in all",
        f"at id {place:,}, character {before:,}",
    )


@dataclass(frozen=True)
class _Repeated:
    """A part, the ids of which do not depend on what is around it, many times over; and who encodes it."""

    model: Model
    part: str
    ids: list[int]
    times: int
    proxy: TokenizerProxy

    def __str__(self) -> str:
        return f"{self.times:,} times {self.part!a}"


def _plain(implementation: Implementation) -> Iterator[tuple[str, Model, str]]:
    for special in _ways(implementation):
        yield (", special tokens" * special, *_model(implementation, special))


def _repeated(
    implementation: Implementation, law: str, parts: Iterable[tuple[str, Model, str]], lengths: Sequence[int]
) -> Iterator[_Repeated]:
    """Yield each part in each of these lengths for which there is time."""
    for what, model, part in as_many_as(implementation, law, parts):
        ids, proxy = oracle(model, implementation.conventions["lookup"]).encode(part), implementation.build(model)
        for length in in_time(implementation, law + what, lengths):
            yield _Repeated(model, part, ids, length // len(part), proxy)


def _spaced(implementation: Implementation) -> Iterator[tuple[str, Model, str]]:
    """Yield a part that has white space in its special token alone: where a text is cut at one, the token is lost."""
    if implementation.fixed_model is None and "special" in implementation.capabilities:
        table = {"merges": [["x", "y"]], "special_tokens": ["<a b c>"], "extra": [[300, "<a b c>"]]}
        yield ", a special token with spaces", read_model(table), "xyz<a b c>"


@told
def _long_texts(implementation: Implementation, example: Example) -> Difference | None:
    """A text of up to a million characters, in which one part stands again and again."""
    plain = _repeated(implementation, "law-long-texts", _plain(implementation), LENGTHS)
    others = chain(_mixed(implementation), _spaced(implementation))
    for long in chain(plain, _repeated(implementation, "law-long-texts", others, LENGTHS[:4])):
        before = "x" if long.times % 2 else ""  # moves every place that shows a cut
        expected = oracle(long.model, implementation.conventions["lookup"]).encode(before) + long.ids * long.times
        got = long.proxy.encode(before + long.part * long.times)
        found = _differs(f"{before!a} and {long}", long.model, expected, got)
        if found is not None:
            return found
    return None


@told
def _many_pre_tokens(implementation: Implementation, example: Example) -> Difference | None:
    """A text with 130,000 different pre-tokens, more than a number of 16 bits or most caches hold."""
    model, part = Model(MODEL.vocab, MODEL.merges, None), WORD + BLANKS
    right, proxy = oracle(model, implementation.conventions["lookup"]), implementation.build(model)
    for count in in_time(implementation, "law-many-pre-tokens", (1_000, 3_000, 10_000, 30_000, 70_000, DISTINCT)):
        numbers = "".join(f" {number}" for number in range(100_000, 100_000 + count))  # no merge has a digit
        for before, after in ((part, part), ("", part)):
            expected = [*right.encode(before), *numbers.encode(), *right.encode(after)]
            asked = f"{before!a}, the numbers from 100000 to {99_999 + count} and {after!a}"
            found = _differs(asked, model, expected, proxy.encode(f"{before}{numbers}{after}"))
            if found is not None:
                return found
    return None


@told
def _many_special_tokens(implementation: Implementation, example: Example) -> Difference | None:
    """A table with 1,100 special tokens, two of them 300 characters long, which differ in the last."""
    special = [f"<{number}>" for number in range(1_098)] + ["-" * 300, "-" * 299 + "+"]
    model = read_model({"special_tokens": special, "extra": [[400 + place, one] for place, one in enumerate(special)]})
    proxy = implementation.build(model)
    places = [*range(0, 1_100, 13), 1_098, 1_099, 255, 256, 1_000]
    expected = [index for place in places for index in (97, 400 + place)]
    text = "".join(f"a{special[place]}" for place in places)
    return _differs(show.text_line(text), model, expected, proxy.encode(text))


@lru_cache(maxsize=2)
def _large_table(threes: int) -> Model:
    """Return a table with all 65,536 pairs of bytes, in an order without sense, and so many merges behind them."""
    pairs = [(bytes([place >> 8]), bytes([place & 255])) for place in (40_503 * one & 0xFFFF for one in range(65_536))]
    letters = [bytes([letter]) for letter in (*range(ord("a"), ord("z") + 1), *range(ord("0"), ord("?")))]
    longer = [(one + other, third) for one in letters for other in letters for third in letters]
    merges = [*pairs, *(longer[7_919 * place % len(longer)] for place in range(threes))]
    vocab = dict(enumerate([*(bytes([byte]) for byte in range(256)), *(left + right for left, right in merges)]))
    return Model(vocab, tuple(merges), None)


def _large_texts(count: int) -> str:
    draw = Draw("law-large-table")
    sizes = [draw.between(3, 9) for _ in range(count)] + [200]
    return " ".join("".join(chr(draw.between(97, 122)) for _ in range(size)) for size in sizes)


@told
def _large_tables(implementation: Implementation, example: Example) -> Difference | None:
    """A table with more merges than 16 bits count, and than 100,000."""
    model = _large_table(45_000)
    proxy, right = implementation.build(model), oracle(model, implementation.conventions["lookup"])
    for count in in_time(implementation, "law-large-table", (10, 40, 150)):
        text = _large_texts(count)
        found = _differs(f"{show.text_line(text)} with 110,536 merges", model, right.encode(text), proxy.encode(text))
        if found is not None:
            return found
    return None


@told
def _large_files(implementation: Implementation, example: Example) -> Difference | None:
    """Files with more merges than 16 bits count."""
    model, text = _large_table(5_000), _large_texts(40)
    with scratch_folder() as folder:
        proxy = implementation.from_files(*gpt2_files.write(model, folder), None)
    expected = oracle(model, implementation.conventions["lookup"]).encode(text)
    found = _differs(f"{show.text_line(text)}, files of 70,536 merges", model, expected, proxy.encode(text))
    if found is not None or "save" not in implementation.capabilities:
        return found
    with scratch_folder() as folder:
        proxy.save(folder)
        proxy = implementation.from_files(folder / "vocab.json", folder / "merges.txt", None)
    asked = f"{show.text_line(text)}, 70,536 merges that were saved and loaded"
    return _differs(asked, model, expected, proxy.encode(text))


def _limit(implementation: Implementation, asked: str, raised: Raised) -> None:
    """Note an error, which a limit may be; anything else is raised again."""
    if not raised.is_error:
        raise raised
    implementation.note(f"{asked}: {raised}")


@told
def _long_runs(implementation: Implementation, example: Example) -> Difference | None:
    """One pre-token of up to 70,000 characters: letters, white space, digits and signs, letters with each pattern."""
    if implementation.fixed_model is not None:
        return None
    lengths = [length for length in LENGTHS if length <= LONGEST_RUN]
    tables = (
        (RUNS, "abc"),
        (RUNS, "\t \n"),
        (RUNS, "123"),
        (ORDERED, "abc"),
        (DOUBLED, "a"),
        (DOUBLED, "\t"),
        (RUNS, "!?."),
        (RUNS, "\u00e9xy"),
        *(
            (replace(RUNS, pattern=name), "abc")
            for name in PATTERNS
            if f"pattern:{name}" in implementation.capabilities
        ),
    )
    refused = False
    for model, part in as_many_as(implementation, "law-long-runs", tables):
        proxy, right = implementation.build(model), oracle(model, implementation.conventions["lookup"])
        for length in in_time(implementation, "law-long-runs", lengths if model.pattern == "gpt2" else lengths[:1]):
            before, times = "\n" if length == lengths[-2] else "", length // len(part) | 1  # moves places, as above
            try:
                got = proxy.encode(before + part * times)
            except Raised as raised:
                _limit(implementation, f"law-long-runs: a pre-token of {length:,} characters", raised)
                refused = True
                break
            two = right.encode(part * 2)  # of a part of one character, one token
            expected = [*right.encode(before), *two * (times // 2), *right.encode(part) * (times % 2)]
            found = _differs(f"{before!a} and {times:,} times {part!a}", model, expected, got)
            if found is not None:
                return found
    for length in in_time(implementation, "law-long-runs, tokens that double", (1_023, 8_191, 20_011)):
        text = "a" * length
        whole, rest = divmod(len(text), 1 << 13)
        tokens = ["a" * (1 << 13)] * whole + ["a" * (1 << bit) for bit in range(12, -1, -1) if rest >> bit & 1]
        ids = {token: index for index, token in DOUBLING.vocab.items()}
        expected = [ids[token.encode()] for token in tokens]
        try:
            proxy = implementation.build(DOUBLING)
            got = proxy.encode(text)
        except Raised as raised:
            if not (refused and raised.is_error):  # one note says it
                _limit(implementation, f"law-long-runs: a pre-token of {len(text):,} characters", raised)
            break
        if (found := _differs(f"{len(text):,} times 'a'", DOUBLING, expected, got)) is not None:
            return found
        if "decode" in implementation.capabilities and (back := proxy.decode(expected)) != text:
            asked = f"the ids of {len(text):,} times 'a', tokens of up to 8,192 bytes"
            return Difference(asked, f"{len(text):,} characters", f"{len(back):,} characters")
    return None


@told
def _long_streams(implementation: Implementation, example: Example) -> Difference | None:
    """A long stream, in one chunk, in large ones and in small ones."""
    for sizes, lengths in (((10**6, 65_536), LENGTHS[:4]), ((7,), LENGTHS[:3])):
        for long in _repeated(implementation, "law-long-streams", _plain(implementation), lengths):
            text = long.part * long.times
            for size in sizes:
                chunks = [text[start : start + size] for start in range(0, len(text), size)]
                got = long.proxy.stream(iter(chunks))
                found = _differs(f"{long}, in {len(chunks):,} chunks", long.model, long.ids * long.times, got)
                if found is not None:
                    return found
    runs = [(", one pre-token", RUNS, part) for part in ("abc", "  ", "!?.") if implementation.fixed_model is None]
    for long in _repeated(implementation, "law-long-streams", runs, LENGTHS[:3]):
        text = long.part * long.times
        try:
            got = long.proxy.stream([text[start : start + 4_097] for start in range(0, len(text), 4_097)])
        except Raised as raised:
            _limit(implementation, f"law-long-streams: a pre-token of {len(text):,} characters", raised)
            break
        found = _differs(f"{long}, one pre-token, in chunks of 4,097", long.model, long.ids * long.times, got)
        if found is not None:
            return found
    parts = [("ab'll", LENGTHS[:4]), ("日本。」", LENGTHS[:3])] if implementation.fixed_model is None else []
    unspaced = (
        _repeated(implementation, "law-long-streams", [(f", {part!a} again and again", UNSPACED, part)], lengths)
        for part, lengths in parts
    )
    for long in chain.from_iterable(unspaced):
        text = long.part * long.times
        ends = [0, *range(4, len(text), 4_095), len(text)]  # the first behind "ab'l", as all others
        got = long.proxy.stream([text[start:end] for start, end in pairwise(ends)])
        found = _differs(f"{long}, in chunks of 4 and of 4,095", long.model, long.ids * long.times, got)
        if found is not None:
            return found
    return None


@told
def _large_batches(implementation: Implementation, example: Example) -> Difference | None:
    """Batches of as many texts as groups of them hold, of more and of fewer."""
    for special in _ways(implementation):
        model, part = _model(implementation, special)
        right, proxy = oracle(model, implementation.conventions["lookup"]), implementation.build(model)
        rows = {text: right.encode(text) for text in (" \n", part, "", f"{part} ", "x\n", "abc")}
        what = "law-large-batches" + ", special tokens" * special
        for count in in_time(implementation, what, (64, 128, 256, 511, 512, 513, 1_000, 1_024, 4_096, 5_001)):
            texts = (list(rows) * (count // len(rows) + 1))[:count]
            got = proxy.encode_batch(texts)
            asked = f"a batch of {count:,} texts"
            if len(got) != count:
                return Difference(asked, f"{count:,} rows", f"{len(got):,} rows")
            for place, text in enumerate(texts):
                found = _differs(f"{text!a}, text {place:,} of {asked}", model, rows[text], got[place])
                if found is not None:
                    return found
    return None


@told
def _batches_of_long_texts(implementation: Implementation, example: Example) -> Difference | None:
    """A batch with a long text between two short ones."""
    for long in _repeated(
        implementation, "law-long-batches", chain(_plain(implementation), _spaced(implementation)), LENGTHS[:4]
    ):
        rows = long.proxy.encode_batch([long.part, long.part * long.times, long.part])
        if len(rows) != 3:
            return Difference(f"a part, {long}, and the part, in a batch", "3 rows", f"{len(rows):,} rows")
        for times, row in zip((1, long.times, 1), rows, strict=True):
            asked = f"{times:,} times {long.part!a} in a batch"
            found = _differs(asked, long.model, long.ids * times, row)
            if found is not None:
                return found
    return None


@told
def _long_decoding(implementation: Implementation, example: Example) -> Difference | None:
    """Up to a million ids, the characters of which are each made of several."""
    model = gpt2_model() if implementation.fixed_model is not None else Model(MODEL.vocab, MODEL.merges, None)
    ids = {token: index for index, token in model.vocab.items()}
    proxy = implementation.build(model)
    for part in ("🦊", "日", "\ufeffé\r\n\x00\u2028\n"):
        for length in in_time(implementation, "law-long-decoding", LENGTHS if part == "🦊" else LENGTHS[:-1]):
            times = length // 4
            data = ("a" + part * times).encode("utf-8") + b"\xe2\x82"
            text = data.decode("utf-8", "replace")
            got = proxy.decode([ids[bytes([byte])] for byte in data])
            if got != text:
                place = show.first_difference(text, got)
                return Difference(
                    f"the bytes of 'a', {times:,} times {part!a}, and the bytes e2 82, as ids",
                    show.text_line(text[place : place + 4]),
                    show.text_line(got[place : place + 4]),
                    f"at character {place:,}",
                )
    return None


@told
def _long_and_wrong(implementation: Implementation, example: Example) -> Difference | None:
    """What is refused when it is short is refused when it is long: a lone surrogate, and an unknown id."""
    model, part = _model(implementation, False)
    proxy = implementation.build(model)
    ids = oracle(model, implementation.conventions["lookup"]).encode(part)
    unknown = max(model.vocab) + 1
    surrogate, decoded = f"{part!a} and a lone surrogate", f"the ids of {part!a} and {unknown}"
    for method, asked, short in (
        ("encode", surrogate, lambda times: proxy.encode(part * times + "\ud800")),
        ("encode_batch", f"{surrogate}, in a batch", lambda times: proxy.encode_batch([part * times + "\ud800"])),
        ("encode_iterable", f"{surrogate}, as a stream", lambda times: proxy.stream([part * times + "\ud800"])),
        ("decode", decoded, lambda times: proxy.decode(ids * times + [unknown])),
    ):
        if method not in implementation.capabilities or not _refused(short, 1):
            continue
        for length in in_time(implementation, "law-long-errors", LENGTHS[:3]):
            if not _refused(short, length // len(part)):
                return Difference(
                    f"{asked}, the part {length // len(part):,} times", "an error, as for one", "no error"
                )
    return None


def _refused(ask: Callable[[int], object], times: int) -> bool:
    try:
        ask(times)
    except Raised as raised:
        if not raised.is_error:
            raise
        return True
    return False


@told
def _long_choices(implementation: Implementation, example: Example) -> Difference | None:
    """In a long text, too, a special token is text where it is not allowed, and an error where it is disallowed."""
    model, part = _model(implementation, True)
    plain = oracle(Model(model.vocab, model.merges, None), implementation.conventions["lookup"]).encode(part)
    proxy = implementation.build(model)
    for length in in_time(implementation, "law-long-choices", LENGTHS[:3]):
        times = length // len(part)
        got = proxy.encode_allowed(part * times, (), ())
        found = _differs(f"{times:,} times {part!a}, allowed_special none", model, plain * times, got)
        if found is not None:
            return found
        text = WORD * (length // len(WORD)) + SPECIAL
        if not _refused(lambda times: proxy.encode_allowed(text, (), "all"), 1):  # noqa: B023
            asked = f"{length // len(WORD):,} times {WORD!a} and {SPECIAL}, disallowed_special all"
            return Difference(asked, "an error", "no error")
    return None


LONG_LAWS: tuple[Law, ...] = (
    Law("law-long-texts", "LAW-LONG-1", "encoder", ("encode",), fixed(), _long_texts, 1, None, 9, True),
    Law("law-many-pre-tokens", "LAW-LONG-1", "encoder", ("encode",), fixed(), _many_pre_tokens, 1, None, 9),
    Law("law-large-table", "LAW-ENCODE-1", "encoder", ("encode",), fixed(), _large_tables, 1, None, 9),
    Law("law-large-files", "FILE-LOAD-1", "files", ("from_files", "encode"), fixed(), _large_files, 1, None, 9),
    Law("law-long-runs", "LAW-LONG-2", "encoder", ("encode",), fixed(), _long_runs, 1, None, 9),
    Law(
        "law-many-special",
        "SPECIAL-SCAN-1",
        "encoder",
        ("encode", "special"),
        fixed(),
        _many_special_tokens,
        1,
        None,
        3,
    ),
    Law("law-long-errors", "LAW-LONG-1", "encoder", ("encode",), fixed(), _long_and_wrong, 1, None, 9),
    Law(
        "law-long-choices",
        "LAW-LONG-1",
        "encoder",
        ("encode", "special", "allowed_special"),
        fixed(),
        _long_choices,
        1,
        None,
        9,
    ),
    Law("law-long-streams", "LAW-LONG-1", "streaming", ("encode_iterable",), fixed(), _long_streams, 1, None, 9, True),
    Law("law-large-batches", "LAW-LONG-1", "batch", ("encode_batch",), fixed(), _large_batches, 1, None, 9, True),
    Law(
        "law-long-batches", "LAW-LONG-1", "batch", ("encode_batch",), fixed(), _batches_of_long_texts, 1, None, 9, True
    ),
    Law("law-long-decoding", "LAW-LONG-1", "decoder", ("decode",), fixed(), _long_decoding, 1, None, 9, True),
)
