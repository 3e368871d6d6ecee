"""Laws about every way through a tokenizer, however it was made: each method gives what its table determines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Model, gpt2_files, read_model

from ..cases.difference import Difference
from ..cases.expectations import oracle
from ..implementation.containment import CallFailed, Raised
from ..implementation.implementation import Implementation
from ..implementation.proxy import TokenizerProxy
from ..implementation.scratch import scratch_folder
from ..terminal import show
from .histories import encodings_match
from .law_engine import Example, Law, fixed, told

SPECIAL = "<|e|>"
TEXTS = (
    "it's DON'T 1234567 o'clock<|e|>ab ab\r\n\n  \u00e9\U0001f98a ab<|e|><|e|> 12",
    "abc abc\n\nabc 1234  abc's",
    "",
    "\u0130\u65e5\u672c abab cdcd",
)
TRAINED_ON = " ".join(["it's DON'T 1234567 o'clock ab ab abc abc's \u00e9\u00e9 1234 1234"] * 3)
TABLE = {
    "merges": [["a", "b"], [" ", "ab"], ["1", "2"], ["12", "3"], ["123", "4"], ["'", "s"], ["'", "T"], ["\n", "\n"]],
    "special_tokens": [SPECIAL],
    "extra": [[300, SPECIAL]],
}
ELSEWHERE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""A locale in which files are ASCII unless their encoding is said."""


def every_way(implementation: Implementation, proxy: TokenizerProxy, model: Model, made: str) -> Difference | None:
    """Return how a tokenizer differs from the oracle in any method that the implementation has."""
    right = oracle(model, implementation.conventions["lookup"])
    for text in TEXTS if SPECIAL in (model.special_tokens or ()) else [text.replace(SPECIAL, "") for text in TEXTS]:
        ids = right.encode(text)
        for way, got in _answers(implementation, proxy, text, ids):
            asked = f"{show.text_line(text)}, {way} of a tokenizer {made}"
            if isinstance(got, list) and got != ids:
                around = show.first_difference(ids, got)
                return Difference(asked, show.ids(ids, model.vocab, around), show.ids(got, model.vocab, around))
            if isinstance(got, str) and got != text:
                return Difference(asked, show.text_line(text), show.text_line(got))
            if isinstance(got, bytes) and got != text.encode("utf-8"):
                return Difference(asked, show.hex_line(text.encode("utf-8")), show.hex_line(got))
    return None


def _answers(
    implementation: Implementation, proxy: TokenizerProxy, text: str, ids: Sequence[int]
) -> Iterator[tuple[str, list[int] | str | bytes]]:
    """Yield each method with what it gives: ids, or the text or its bytes."""
    has = {name for name in implementation.capabilities if hasattr(proxy.instance, name)}
    if "encode" in has:
        yield "encode", proxy.encode(text)
    if "encode_batch" in has:
        yield "encode_batch", proxy.encode_batch(["ab", text])[-1]
    if "encode_iterable" in has:
        yield "encode_iterable", proxy.stream([text[at : at + 5] for at in range(0, len(text), 5)])
    if "decode" in has:
        yield "decode", proxy.decode(ids)
    if "decode_bytes" in has:
        yield "decode_bytes", proxy.decode_bytes(ids)


@told
def _built(implementation: Implementation, example: Example) -> Difference | None:
    """A tokenizer from the constructor, with special tokens and each pattern, in every method."""
    table = TABLE if "special" in implementation.capabilities else {"merges": TABLE["merges"]}
    for name in PATTERNS:
        if name == "gpt2" or f"pattern:{name}" in implementation.capabilities:
            model = read_model({**table, "pattern": name})
            found = every_way(implementation, implementation.build(model), model, f"with the pattern {name}")
            if found is not None:
                return found
    return None


@told
def _trained(implementation: Implementation, example: Example) -> Difference | None:
    """Tokenizers from `train`, with special tokens and with patterns, one after the other, in every method."""
    special = (SPECIAL,) if "train-special" in implementation.capabilities else ()
    names = [name for name in PATTERNS if name == "gpt2" or f"train-pattern:{name}" in implementation.capabilities]
    made: list[tuple[Model, TokenizerProxy]] = []
    for name, text in [("gpt2", TRAINED_ON), ("gpt2", TRAINED_ON[::-1]), *((name, TRAINED_ON) for name in names[1:])]:
        trained = implementation.train(text, 266 + len(special), list(special), name)
        proxy = trained.tokenizer()
        if proxy is None:
            return None
        made.append((Model(trained.vocab, tuple(trained.merges), special or None, name), proxy))
    for model, proxy in made:
        found = every_way(
            implementation, proxy, model, f"trained with the pattern {model.pattern}, others trained since"
        )
        if found is not None:
            return found
    with contextlib.suppress(Raised):
        implementation.train(TRAINED_ON, 100, list(special))
    plain = read_model({"merges": TABLE["merges"]})
    made_now = "a tokenizer without special tokens, after a training that failed"
    found = encodings_match(implementation, implementation.build(plain), plain, [f"ab{SPECIAL}ab"], made_now)
    if found is not None:
        return found
    model, proxy = made[0]
    if {"save", "from_files"} <= implementation.capabilities and hasattr(proxy.instance, "save"):
        with scratch_folder() as folder:
            try:
                proxy.save(folder)
            except Raised:  # which other laws tell, of files
                return None
            loaded = implementation.from_files(folder / "vocab.json", folder / "merges.txt", model.special_tokens)
        return every_way(implementation, loaded, model, "that was trained, saved and loaded")
    return None


@told
def _loaded(implementation: Implementation, example: Example) -> Difference | None:
    """A tokenizer from files of any name, with special tokens, in every method; loaded once more from what it saves."""
    model = read_model(TABLE if "special" in implementation.capabilities else {"merges": TABLE["merges"]})
    with scratch_folder() as folder:
        vocab, merges = gpt2_files.write(model, folder)
        elsewhere = folder / "other"
        elsewhere.mkdir()
        vocab, merges = vocab.rename(folder / "encoder.json"), merges.rename(elsewhere / "vocab.bpe")
        proxy = implementation.from_files(vocab, merges, model.special_tokens)
    found = every_way(implementation, proxy, model, "from files")
    if found is not None or "save" not in implementation.capabilities:
        return found
    with scratch_folder() as folder:
        proxy.save(folder)
        again = implementation.from_files(folder / "vocab.json", folder / "merges.txt", model.special_tokens)
    return every_way(implementation, again, model, "from files, saved and loaded again")


@told
def _saved_numbers(implementation: Implementation, example: Example) -> Difference | None:
    """Special tokens that the constructor numbers keep their ids in the files, in whatever order they are named."""
    model = read_model({"merges": TABLE["merges"], "special_tokens": ["<a>", "<b>", "<c>"]})
    try:
        proxy = implementation.build(model)
    except Raised as raised:
        if raised.is_error:  # to want an id for each is no fault
            return None
        raise
    text = "x<a>y<b>z<c>"
    ids = proxy.encode(text)
    with scratch_folder() as folder:
        proxy.save(folder)
        loaded = implementation.from_files(folder / "vocab.json", folder / "merges.txt", ["<c>", "<b>", "<a>"])
    again = loaded.encode(text)
    if again == ids:
        return None
    return Difference(f"{text!a}, special tokens without ids of the caller's", f"{ids}", f"{again} after save and load")


@told
def _saved_elsewhere(implementation: Implementation, example: Example) -> Difference | None:
    """Files are written and read in UTF-8 in a locale that has ASCII."""
    special = ["<|\u00e9|>"] if "special" in implementation.capabilities else []
    merges: list[Any] = [["a", "b"], ["1", "2"], [{"hex": "c3"}, {"hex": "a9"}]]
    model = read_model(
        {
            "merges": merges,
            "special_tokens": special,
            "extra": [[300 + at, one] for at, one in enumerate(special)],
        }
    )
    with scratch_folder() as folder:
        with implementation.in_new_process(ELSEWHERE) as other:
            try:
                proxy = other.build(model)
            except CallFailed:  # it does not start there, which says nothing of what it writes
                return None
            proxy.save(folder)
            text = f"ab 1234{''.join(special)}\u00e9"
            there = other.from_files(folder / "vocab.json", folder / "merges.txt", special or None).encode(text)
        loaded = implementation.from_files(folder / "vocab.json", folder / "merges.txt", special or None)
    expected, here = oracle(model, implementation.conventions["lookup"]).encode(text), loaded.encode(text)
    for got, how in ((here, "and load"), (there, "and load there")):
        if got != expected:
            asked = f"{text!a} after save in the locale C, {how}"
            return Difference(asked, show.ids(expected, model.vocab), show.ids(got, model.vocab))
    return None


FILES = ("save", "from_files", "encode")
WAYS_LAWS: tuple[Law, ...] = (
    Law("law-built-ways", "LAW-WAYS-1", "encoder", ("encode",), fixed(), _built, 1),
    Law("law-trained-ways", "LAW-WAYS-1", "trainer", ("train",), fixed(), _trained, 1),
    Law("law-loaded-ways", "LAW-WAYS-1", "files", ("from_files", "encode"), fixed(), _loaded, 1),
    Law("law-saved-numbers", "FILE-SAVE-1", "files", (*FILES, "special"), fixed(), _saved_numbers, 1),
    Law("law-saved-elsewhere", "FILE-SAVE-1", "files", (*FILES, "new process"), fixed(), _saved_elsewhere, 1),
)
