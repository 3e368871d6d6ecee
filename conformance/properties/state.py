"""Laws about what earlier calls and other instances leave behind: each is one fixed history of calls."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Model, read_model

from ..cases import divergence
from ..cases.difference import Difference
from ..cases.expectations import oracle
from ..implementation.containment import Raised, call
from ..implementation.implementation import Implementation
from ..implementation.scratch import scratch_folder
from ..terminal import show
from .histories import NEARLY_ALIKE, SAME_ENDS, encodings_match
from .law_engine import Example, Law, fixed, told
from .time_budget import as_many_as

WORDS = read_model(
    {
        "merges": [["a", "b"], ["c", "d"], ["ab", "cd"], ["e", "f"], [" ", "ab"], ["b", "c"], ["x", "y"], ["xy", "z"]],
        "special_tokens": ["<|e|>"],
        "extra": [[300, "<|e|>"]],
    }
)
BYTES = read_model({})
COLLIDING = (
    *("plumless\nbuckeroo", "costarring\nliquid", "declinate\nmacallums", "Aa\nBB", "hetairas\nmentioner"),
    *("aavjr\nabrul", "aamvm\naeraa", "urmfetsu\nrmanpzqf", "azpcsgid\nodkzfrif"),
)
"""Words of one 32-bit hash: CRC-32, FNV-1a, its older form, Java, djb2; MurmurHash3, one-at-a-time, sdbm, xxHash."""


def _words(count: int) -> Iterator[str]:
    """Yield distinct words of the letters a to f, x, y, z."""
    letters = "abcdefxyz"
    for number in range(count):
        word = ""
        while number or not word:
            number, digit = divmod(number, len(letters))
            word += letters[digit]
        yield word


@told
def _history(implementation: Implementation, example: Example) -> Difference | None:
    """One tokenizer encodes many texts, some of them alike, some again and again."""
    proxy = implementation.build(_words_table(implementation))
    again = ["ab abcd<|e|>xyz", "", "ab abcd<|e|>xyz", "abcd abcd abcd abcd", "ab abcd<|e|>xyz", "AB ab", "ab AB"]
    many = [" ".join(_words(11_000)), " ".join(_words(500))]
    with contextlib.suppress(Raised):  # it may refuse lone surrogates, but not take them for what replaces them
        proxy.encode("ab\ud800 \ud800 ab")
    again += ["ab? ? ab", "ab\ufffd \ufffd ab"]
    calls = [*again, *NEARLY_ALIKE, *SAME_ENDS, *SAME_ENDS, *many, *again]
    found = encodings_match(implementation, proxy, _words_table(implementation), calls, "one tokenizer")
    if found is not None:
        return found
    calls = [*_words(4_200), ("abcd" * 6 + "abxyzcd" + " ") * 1_400, *COLLIDING, *again]
    texts = as_many_as(implementation, "law-history", calls)
    return encodings_match(implementation, proxy, _words_table(implementation), texts, "one tokenizer")


@told
def _characters(implementation: Implementation, example: Example) -> Difference | None:
    """Every character of the Basic Multilingual Plane, and a sample of the others, keeps its bytes."""
    proxy = implementation.build(BYTES)
    codes = [*range(0xD800), *range(0xE000, 0x10000), *range(0x10000, 0x110000, 251), 0x1FFFF, 0x10FFFF]
    for start in range(0, len(codes), 512):
        text = "".join(map(chr, codes[start : start + 512]))
        ids = proxy.encode(text)
        expected = list(text.encode("utf-8"))
        if ids != expected:
            around = show.first_difference(expected, ids)
            shown = f"the characters from U+{codes[start]:04X} on, bytes as ids"
            return Difference(shown, show.ids(expected, BYTES.vocab, around), show.ids(ids, BYTES.vocab, around))
    return None


def _words_table(implementation: Implementation) -> Model:
    return WORDS if "special" in implementation.capabilities else replace(WORDS, special_tokens=None)


def _taken(models: list[Model], implementation: Implementation) -> list[Model]:
    """Return the models that the implementation takes."""
    ranks, special = implementation.conventions["lookup"] == "bytes", "special" in implementation.capabilities
    return [one for one in models if (one.ranks_by_bytes or not ranks) and (special or not one.special_tokens)]


@told
def _instances(implementation: Implementation, example: Example) -> Difference | None:
    """Several tokenizers are built, then used in turn."""
    first = [["a", "b"], ["b", "c"], ["ab", "c"]]
    other = [["b", "c"], ["a", "b"], ["ab", "c"]]
    special = {"special_tokens": ["<|e|>"], "extra": [[300, "<|e|>"]]}
    models = [
        read_model({"merges": first}),
        read_model({"merges": other, "merge_ids": [257, 256, 258]}),
        read_model({"merges": other, **special}),
        read_model({"merges": first, "special_tokens": ["<|e|>"], "extra": [[301, "<|e|>"]]}),
        read_model({"merges": first, "byte_ids": "reversed"}),
        read_model({"special_tokens": ["abc"], "extra": [[300, "abc"]]}),
    ]
    for between in ("|", ",", " ", "\n", "\0", ""):  # what a list of special tokens may be joined by
        for joined in ([f"xx{between}yy"], ["xx", "yy"]):
            extra = [[310 + place, token] for place, token in enumerate(joined)]
            models.append(read_model({"merges": first, "special_tokens": joined, "extra": extra}))
    models = _taken(models, implementation)
    models += [
        replace(models[0], pattern=name) for name in PATTERNS if f"pattern:{name}" in implementation.capabilities
    ]
    handles = [implementation.build(model) for model in models]
    for turn in range(2):
        for model, proxy in zip(models, handles, strict=True):
            texts = [
                "abc xabc",
                "xx|yy xx,yy xx yyxx\nyy\0xx\0yy",
                "abc\nabc\nabc\nabc",
                "ab<|e|>abc",
                "abc 123 abc's\n abc",
            ]
            told = f"turn {turn + 1} of {len(models)} tokenizers that live side by side"
            found = encodings_match(implementation, proxy, model, texts, told)
            if found is not None:
                return found
    return None


@told
def _lists_of_the_caller(implementation: Implementation, example: Example) -> Difference | None:
    """The caller changes every list that it got, goes on with every list that it passed, and asks again."""
    model = _words_table(implementation)
    right, proxy = oracle(model, implementation.conventions["lookup"]), implementation.build(model)
    texts = ["ab abcd xyz", "abcd", "xyz\u00e9 ab<|e|>", "ab abcd xyz " * 2_000]
    wanted = [right.encode(text) for text in texts]

    def told(asked: str, expected: Sequence[int], got: Sequence[int]) -> Difference | None:
        return (
            None if got == expected else Difference(asked, show.ids(expected, model.vocab), show.ids(got, model.vocab))
        )

    found: list[Difference | None] = []
    for method in ("encode_batch", "encode"):
        if method not in implementation.capabilities:
            continue
        for _ in range(2):
            if method == "encode":
                rows: Any = [call("encode(...)", proxy.instance.encode, text) for text in texts]
            else:
                given = list(texts)
                rows = call("encode_batch(...)", proxy.instance.encode_batch, given)
                found.append(_unchanged(method, given, texts))
            for row in [*rows, rows] if type(rows) is list else ():
                if type(row) is list:
                    row.reverse()
                    row.append(0)
            for text, ids in zip(texts, wanted, strict=True):
                asked = f"{show.text_line(text)} after the caller changed what {method} had returned"
                found.append(told(asked, ids, proxy.encode(text)))
    if "encode_iterable" in implementation.capabilities:
        chunks = ["ab ab", "cd", " x", "yz"]
        proxy.stream(chunks)
        found.append(_unchanged("encode_iterable", chunks, ["ab ab", "cd", " x", "yz"]))
        found.append(told("the same chunks again", right.encode("ab abcd xyz"), proxy.stream(chunks)))
    if "decode" in implementation.capabilities:
        found.append(
            _growing("decode", proxy.decode_itself, lambda data: data.decode("utf-8", "replace"), model, wanted)
        )
    if "decode_bytes" in implementation.capabilities:
        found.append(_growing("decode_bytes", proxy.decode_bytes_itself, bytes, model, wanted))
    return next((one for one in found if one is not None), None)


def _growing(
    method: str,
    ask: Callable[[list[int]], str | bytes],
    expect: Callable[[bytes], str | bytes],
    model: Model,
    rows: list[list[int]],
) -> Difference | None:
    """Ask for one and the same list, which grows in the middle of a character, and is turned round."""
    ids: list[int] = []
    for more in (rows[0], [0xF0, 0x9F], [0xA6, 0x8A], rows[1]):
        ids += more
        before, expected = list(ids), expect(b"".join(model.vocab[index] for index in ids))
        got = ask(ids)
        if (found := _unchanged(method, ids, before)) is not None:
            return found
        if got != expected:
            return Difference(f"{method} of {before}, a list that was shorter before", f"{expected!a}", f"{got!a}")
    ids.reverse()
    expected, got = expect(b"".join(model.vocab[index] for index in ids)), ask(ids)
    return None if got == expected else Difference(f"{method} of a list turned round", f"{expected!a}", f"{got!a}")


def _unchanged(method: str, given: list[Any], before: list[Any]) -> Difference | None:
    if given == before:
        return None
    return Difference(f"{method} of {before!a}", "the caller's list unchanged", f"the caller's list is {given!a}")


@told
def _decode_history(implementation: Implementation, example: Example) -> Difference | None:
    """One tokenizer decodes long lists of ids, and halves of characters in separate calls."""
    model = read_model(
        {
            "merges": [
                [{"hex": "e2"}, {"hex": "82"}],
                [{"hex": "ac"}, "!"],
                [{"hex": "ef"}, {"hex": "bb"}],
                [{"hex": "efbb"}, {"hex": "bf"}],
            ]
        }
    )
    proxy = implementation.build(model)
    text = "a€é🦊!" * 1_100
    lists = [list(text.encode()), list(("x" + text).encode()), [0xF0, 0x9F], [0xA6, 0x8A], [256], [257], [0xE2], [97]]
    lists += [[97] * times + [last] for times in (70, 700, 5_000) for last in (98, 99)]
    lists += [[first] + [97] * times for times in (70, 700, 5_000) for first in (98, 99)]
    lists += [[97, 98] * 300, [98, 97] * 300, [97] * 300 + [98] * 300]
    lists += [[259], [259, 97], [97, 259], [0], [10], [32]]  # 259 is U+FEFF
    lists += [[97, 99], [98, 98], [99, 97], [256, 257] * 40, list(range(256)), [0xF0, 0x9F], list("é".encode())]
    for number, ids in enumerate(lists):
        expected = b"".join(model.vocab[index] for index in ids).decode("utf-8", "replace")
        got = proxy.decode(ids)
        if got != expected:
            shown = f"{len(ids)} ids {show.ids(ids[:8], model.vocab)}, call {number + 1} of one tokenizer"
            told = divergence.decoding(b"".join(model.vocab[index] for index in ids), expected, got)
            return Difference(shown, show.text_line(expected), show.text_line(got), told)
    return None


@told
def _batch_history(implementation: Implementation, example: Example) -> Difference | None:
    """One tokenizer encodes several batches."""
    proxy = implementation.build(_words_table(implementation))
    right = oracle(_words_table(implementation), implementation.conventions["lookup"])
    batches = [
        [f"{word} abcd" for word in _words(130)],
        ["ab", "AB", "ab", "Ab", "ab"],
        list(SAME_ENDS),
        ["abcd xyz " * 160, "abcd" * 60, "x"],
        ["ab cd"],
        ["cd ab"],
        *([blank] for blank in ("\n\n\n\n", " \t\r\n", "    ", "\ufeff", "")),
        list(NEARLY_ALIKE),
        [f"{word} ab{place % 7}" for place, word in enumerate([*_words(130)] * 20)],
    ]
    for number, texts in enumerate(as_many_as(implementation, "law-batch-history", batches)):
        given = list(texts)
        rows = call("encode_batch(...)", proxy.instance.encode_batch, given)
        shown = f"batch {number + 1}: {show.text_line(repr(texts))}"
        if given != texts:
            return Difference(shown, "the caller's list unchanged", "the caller's list was changed")
        got = proxy.encode_batch(texts)
        expected = [right.encode(text) for text in texts]
        if got != expected:
            place = show.first_difference(expected, got)
            wanted = show.ids(expected[place], WORDS.vocab) if place < len(expected) else "no further row"
            answer = show.ids(got[place], WORDS.vocab) if place < len(got) else "no row"
            return Difference(shown, wanted, answer, f"at text {place}")
        lists = [row for row in rows if isinstance(row, list)] if isinstance(rows, list) else []
        if len({id(row) for row in lists}) < len(lists):
            return Difference(shown, "a list of its own for each text", "one list for two texts")
    return None


@told
def _stream_history(implementation: Implementation, example: Example) -> Difference | None:
    """One tokenizer encodes several streams, of chunks that are nearly alike."""
    model = _words_table(implementation)
    proxy, right = implementation.build(model), oracle(model, implementation.conventions["lookup"])
    alike = [*NEARLY_ALIKE, *SAME_ENDS]
    streams = [[text[:5], text[5:]] for text in alike] + [[text[:-5], text[-5:]] for text in alike]
    streams += [list(NEARLY_ALIKE)] * 2
    wanted = {text: right.encode(text) for text in {"".join(chunks) for chunks in streams}}
    for number, chunks in enumerate(streams):
        expected, got = wanted["".join(chunks)], proxy.stream(chunks)
        if got != expected:
            around = show.first_difference(expected, got)
            shown = f"chunks {show.text_line(repr(chunks))}, stream {number + 1} of one tokenizer"
            return Difference(shown, show.ids(expected, model.vocab, around), show.ids(got, model.vocab, around))
    return None


@told
def _batch_with_a_bad_text(implementation: Implementation, example: Example) -> Difference | None:
    """A text that encode refuses is refused in a batch too."""
    proxy = implementation.build(BYTES)
    texts = ["ab", "a\ud800b", "cd"]
    try:
        expected: list[list[int]] | None = [proxy.encode(text) for text in texts]
    except Raised:
        expected = None
    try:
        got: list[list[int]] | None = proxy.encode_batch(texts)
    except Raised:
        got = None
    if got == expected:
        after = proxy.encode_batch(["cd"])
        return None if after == [[99, 100]] else Difference(f"['cd'] after {texts!a}", "[[99, 100]]", f"{after}")
    wanted = "an error, as encode raises" if expected is None else f"{expected}"
    return Difference(f"{texts!a}", wanted, "an error" if got is None else f"{got}")


@told
def _choices_in_turn(implementation: Implementation, example: Example) -> Difference | None:
    """One tokenizer is asked with other special tokens allowed each time, with a refusal between."""
    special = ["<a>", "<b>"]
    model = read_model({"special_tokens": special, "extra": [[300, "<a>"], [301, "<b>"]]})
    proxy, text = implementation.build(model), "x<a>y<b>"
    for turn in range(2):
        for allowed in (["<a>"], ["<b>"], [], special, ["<b>"]):
            right = oracle(replace(model, special_tokens=tuple(allowed)), implementation.conventions["lookup"])
            for how, ask, expected in (
                (
                    f"special tokens {allowed!a} allowed",
                    partial(proxy.encode_allowed, text, allowed, ()),
                    right.encode(text),
                ),
                ("nothing said of them", partial(proxy.encode, text), [120, 300, 121, 301]),
            ):
                with contextlib.suppress(Raised):
                    proxy.encode_allowed(text, (), "all")
                got = ask()
                if got != expected:
                    asked = f"{text!a}, turn {turn + 1}, {how}, after a refusal"
                    return Difference(asked, show.ids(expected, model.vocab), show.ids(got, model.vocab))
    return None


@told
def _files_again(implementation: Implementation, example: Example) -> Difference | None:
    """Several tokenizers are saved into one folder, one after the other, and loaded."""
    special = ["a b", "<|\u00e9|>", "\u00b6\u00b6"]  # the last is how the bytes B6 B6 are spelled
    models = [
        read_model({"merges": [["a", "b"], ["b", "c"], ["ab", "c"]]}),
        read_model({"merges": [["b", "c"], ["c", "d"]], "merge_ids": [257, 258], "extra": [[256, "zz"]]}),
        read_model(
            {
                "merges": [["a", "b"]],
                "special_tokens": special,
                "extra": [[300 - place, token] for place, token in enumerate(special)],
            }
        ),
        read_model({"merges": [["a", "b"], ["c", "d"]]}),  # of the same size as the next
        read_model({"merges": [["a", "c"], ["b", "d"]]}),
    ]
    models = _taken(models, implementation)
    with scratch_folder() as folder:
        for number, model in enumerate(models):
            proxy = implementation.build(model)
            try:
                proxy.save(folder)
            except Raised as raised:
                if number and raised.is_error:  # to refuse a folder that is in use is no fault
                    return None
                raise
            texts = ["abc abcd", "bcd", "ab<|\u00e9|>a b\u00b6\u00b6", "acbd\u00f6"]
            found = encodings_match(implementation, proxy, model, texts, "a tokenizer that was saved")
            if found is not None:
                return found
            names = None if model.special_tokens is None else list(model.special_tokens)
            loaded = implementation.from_files(folder / "vocab.json", folder / "merges.txt", names)
            if names is not None and names != list(model.special_tokens or ()):
                return _unchanged("from_files", names, list(model.special_tokens or ()))
            found = encodings_match(
                implementation, loaded, model, texts, "a tokenizer loaded from a folder used before"
            )
            if found is not None:
                return found
    return None


STATE_LAWS: tuple[Law, ...] = (
    Law("law-history", "MERGE-STATE-1", "encoder", ("encode",), fixed(), _history, 1, timeout_factor=6),
    Law("law-lists", "ERROR-STATE-1", "encoder", ("encode", "shared memory"), fixed(), _lists_of_the_caller, 1),
    Law("law-characters", "BYTES-ALPHABET-1", "encoder", ("encode",), fixed(), _characters, 1, timeout_factor=3),
    Law("law-instances", "ERROR-STATE-1", "encoder", ("encode",), fixed(), _instances, 1, timeout_factor=6),
    Law("law-decode-history", "DECODE-BYTES-1", "decoder", ("decode",), fixed(), _decode_history, 1),
    Law("law-batch-history", "LAW-BATCH-1", "batch", ("encode_batch",), fixed(), _batch_history, 1, timeout_factor=9),
    Law(
        "law-stream-history",
        "LAW-STREAM-1",
        "streaming",
        ("encode_iterable",),
        fixed(),
        _stream_history,
        1,
        timeout_factor=3,
    ),
    Law("law-batch-bad-text", "LAW-BATCH-1", "batch", ("encode", "encode_batch"), fixed(), _batch_with_a_bad_text, 1),
    Law(
        "law-choices-in-turn",
        "LAW-PURE-1",
        "encoder",
        ("encode", "special", "allowed_special"),
        fixed(),
        _choices_in_turn,
        1,
    ),
    Law(
        "law-files-again",
        "LAW-SAVE-1",
        "files",
        ("save", "from_files", "encode"),
        fixed(),
        _files_again,
        1,
        timeout_factor=6,
    ),
)
