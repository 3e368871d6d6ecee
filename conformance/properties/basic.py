"""The laws: properties that hold for every input."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Model, read_model, read_text
from bpe_conformance.fixtures.spec import Clause
from bpe_conformance.fixtures.yaml_file import SpecError
from bpe_conformance.reference import textbook

from ..cases.difference import Difference
from ..cases.encoding import has_new_ids
from ..cases.expectations import compute, oracle, training_key
from ..cases.judging import judge
from ..implementation.containment import CallFailed, Raised, call
from ..implementation.implementation import Implementation, constructor_arguments
from ..implementation.scratch import scratch_folder
from ..terminal import show
from . import examples
from .characters import CHARACTER_LAWS
from .law_engine import Example, Law, case_of, fixed
from .long_inputs import LONG_LAWS
from .rich_texts import RICH_LAWS
from .state import STATE_LAWS
from .trainers import TRAINING_LAWS
from .ways import WAYS_LAWS


def bind(clauses: Mapping[str, Clause]) -> list[Law]:
    """Return the laws with their clauses.

    Raises:
        SpecError: if a law's clause does not exist.
    """
    for law in LAWS:
        if law.clause_id not in clauses:
            raise SpecError(f"the law {law.id} names the clause {law.clause_id}, which does not exist")
    return [replace(law, bound=clauses[law.clause_id]) for law in LAWS]


_NO_CLAUSE = Clause("LAW-EXAMPLE-1", "LAW", "must", "", "", ())


def _equals_oracle(implementation: Implementation, example: Example) -> Difference | None:
    """Judge the example as a golden case whose value the oracle computes now."""
    case = case_of(_NO_CLAUSE, example)
    conventions = implementation.conventions
    keys = [training_key(conventions["tie_break"], conventions["byte_order"]), conventions["lookup"]]
    return judge(replace(case, expect=compute(case, keys)), implementation)


def _model(example: Example) -> Model:
    return read_model(example["model"])


def _encode(implementation: Implementation, example: Example) -> tuple[Any, str, list[int]]:
    proxy = implementation.build(_model(example))
    text = read_text(example["input"]["text"])
    return proxy, text, proxy.encode(text)


def _reported(test: Callable[[Implementation, Example], Difference | None]) -> Callable[[Implementation, Example], Any]:
    """Turn a fault of the implementation into a difference."""

    def tried(implementation: Implementation, example: Example) -> Difference | None:
        try:
            return test(implementation, example)
        except CallFailed as fault:
            shown = show.text_line(str(example.get("input", example)))
            return Difference(shown, "an answer", str(fault), "", fault.where if isinstance(fault, Raised) else ())

    return tried


def _shown(example: Example) -> str:
    model = _model(example)
    special = f", special tokens {list(model.special_tokens)!a}" if model.special_tokens else ""
    given = example["input"]
    asked = show.text_line(given["text"]) if "text" in given else ascii(next(iter(given.values())))
    return f"{asked}        merges {show.merges(model.merges)}{special}"


@_reported
def _round_trip(implementation: Implementation, example: Example) -> Difference | None:
    proxy, text, ids = _encode(implementation, example)
    back = proxy.decode(ids)
    if back == text:
        return None
    return Difference(_shown(example), show.text_line(text), f"{show.text_line(back)} from ids {ids[:20]}")


@_reported
def _idempotent(implementation: Implementation, example: Example) -> Difference | None:
    proxy, _, ids = _encode(implementation, example)
    again = proxy.encode(proxy.decode(ids))
    if again == ids:
        return None
    vocab = _model(example).vocab
    return Difference(_shown(example), show.ids(ids, vocab), f"{show.ids(again, vocab)} the second time")


@_reported
def _special_equation(implementation: Implementation, example: Example) -> Difference | None:
    _, text, ids = _encode(implementation, example)
    model = _model(example)
    parts: list[int] = []
    for segment, _ in textbook.cut_special(text, model.special_tokens or ()):
        parts += implementation.build(model).encode(segment)
    if parts == ids:
        return None
    around = show.first_difference(parts, ids)
    return Difference(
        _shown(example),
        f"{show.ids(parts, model.vocab, around)}, segment by segment",
        show.ids(ids, model.vocab, around),
    )


@_reported
def _arguments_unchanged(implementation: Implementation, example: Example) -> Difference | None:
    model = _model(example)
    given, _ = constructor_arguments(model, {})
    vocab, merges, special = (*given, None)[:3]
    ids, kept = [], []
    try:
        proxy = implementation.build_from(given)
        ids = proxy.encode(example["input"]["text"])
        kept = list(ids)
        if "decode" in implementation.capabilities:
            call("decode(...)", proxy.instance.decode, kept)
    except Raised as raised:
        if not (raised.is_error and example.get("absent")):
            raise
    for name, now, before in (("vocab", vocab, dict(model.vocab)), ("merges", merges, list(model.merges))):
        if now != before:
            told = f"the caller's {name} was changed; copy it in the constructor"
            return Difference(_shown(example), f"{name} as the caller passed it", told)
    if special is not None and special != list(model.special_tokens or ()):
        return Difference(_shown(example), "special_tokens as the caller passed it", "the caller's list was changed")
    if kept != ids:
        return Difference(_shown(example), "the ids passed to decode unchanged", "decode changed the caller's list")
    return None


@_reported
def _absent_specials(implementation: Implementation, example: Example) -> Difference | None:
    """A special token without an entry: an error at construction, or ids of its own that decode to it."""
    model = _model(example)
    text = example["input"]["text"]
    try:
        proxy = implementation.build(model)
    except Raised as raised:
        if raised.is_error:
            return None
        raise
    ids = proxy.encode(text)
    wanted: list[bytes] = []
    plain = oracle(replace(model, special_tokens=None), implementation.conventions["lookup"])
    for segment, special in textbook.cut_special(text, model.special_tokens or ()):
        wanted += [segment.encode("utf-8")] if special else plain.tokens(segment)
    if not has_new_ids(wanted, model, ids):
        shown = " | ".join(map(show.token, wanted[:16]))
        return Difference(_shown(example), f"{shown}, each special token with a new id", show.ids(ids, model.vocab))
    if "decode" in implementation.capabilities and (back := proxy.decode(ids)) != text:
        return Difference(_shown(example), show.text_line(text), show.text_line(back))
    others: list[tuple[str, list[int]]] = []
    if "encode_batch" in implementation.capabilities:
        others += [("in a batch", row) for row in proxy.encode_batch([text, text])]
    if "encode_iterable" in implementation.capabilities:
        others.append(("as a stream", proxy.stream([text[:3], text[3:]])))
    for told, found in others:
        if found != ids:
            return Difference(_shown(example), show.ids(ids, model.vocab), f"{show.ids(found, model.vocab)} {told}")
    return None


@_reported
def _results_unshared(implementation: Implementation, example: Example) -> Difference | None:
    proxy, text, ids = _encode(implementation, example)
    raw = call("encode(...)", proxy.instance.encode, text)
    if type(raw) is list:  # another kind of list could refuse
        raw.append(0)
        raw[:] = [0] * len(raw)
    again = proxy.encode(text)
    twice = proxy.encode(text + text)
    fresh = implementation.build(_model(example)).encode(text + text)
    vocab = _model(example).vocab
    if again != ids:
        return Difference(
            _shown(example),
            show.ids(ids, vocab),
            f"{show.ids(again, vocab)} after the caller changed the earlier result",
        )
    if twice != fresh:
        return Difference(
            _shown(example), f"{show.ids(fresh, vocab)}, as a new tokenizer gives", show.ids(twice, vocab)
        )
    return None


@_reported
def _after_an_error(implementation: Implementation, example: Example) -> Difference | None:
    proxy, text, ids = _encode(implementation, example)
    bad: list[tuple[str, Any]] = [("encode", "a\ud800 \udfff"), ("decode", [10**9]), ("decode", [-1])]
    bad += [("decode", [*ids, 10**9]), ("decode_bytes", [*ids, 10**9])]
    for name, argument in bad:
        with contextlib.suppress(Raised):
            if name in implementation.capabilities:
                call(f"{name}(...)", getattr(proxy.instance, name), argument)
    again = proxy.encode(text)
    if again != ids:
        vocab = _model(example).vocab
        told = f"{show.ids(again, vocab)} after encode of a lone surrogate and decode of the ids 10^9 and -1"
        return Difference(_shown(example), show.ids(ids, vocab), told)
    if "decode" in implementation.capabilities and (back := proxy.decode(ids)) != text:
        return Difference(_shown(example), show.text_line(text), f"{show.text_line(back)} after calls with bad input")
    if "decode_bytes" in implementation.capabilities and (data := proxy.decode_bytes(ids)) != text.encode("utf-8"):
        told = f"{show.hex_line(data)} after calls with bad input"
        return Difference(_shown(example), show.hex_line(text.encode("utf-8")), told)
    return None


@_reported
def _table_unaliased(implementation: Implementation, example: Example) -> Difference | None:
    model = _model(example)
    given, _ = constructor_arguments(model, {})
    vocab, merges, special = (*given, None)[:3]
    proxy = implementation.build_from(given)
    text = example["input"]["text"]
    before = proxy.encode(text)
    back = proxy.decode(before) if "decode" in implementation.capabilities else ""
    vocab.clear()
    merges.clear()
    if special is not None:
        special.clear()
    emptied = "after the caller emptied the vocab, the merges and the list that it had passed"
    try:
        after = proxy.encode(text)
        again = proxy.decode(before) if "decode" in implementation.capabilities else ""
    except Raised as raised:
        where = raised.where
        return Difference(
            _shown(example), f"ids {before}, text {show.text_line(back)}", f"{raised}, {emptied}", "", where
        )
    if after != before:
        return Difference(_shown(example), f"ids {before}", f"ids {after} {emptied}")
    if again != back:
        return Difference(_shown(example), show.text_line(back), f"{show.text_line(again)} {emptied}")
    return None


@_reported
def _streams_apart(implementation: Implementation, example: Example) -> Difference | None:
    """A stream that is left unread, one that fails and two read in turn spoil no other."""
    proxy, text, ids = _encode(implementation, example)
    vocab = _model(example).vocab
    pieces = [text[place : place + 3] for place in range(0, len(text), 3)] or [""]

    def failing() -> Iterator[str]:
        yield from pieces[: len(pieces) // 2 + 1]
        raise ValueError("no more chunks")

    proxy.first_of_stream(iter(pieces))
    if (plain := proxy.encode(text)) != ids:
        return Difference(_shown(example), show.ids(ids, vocab), f"{show.ids(plain, vocab)} behind an open stream")
    with contextlib.suppress(Raised):
        proxy.stream(failing())
    if (alone := proxy.stream(iter(pieces))) != ids:
        return Difference(_shown(example), show.ids(ids, vocab), f"{show.ids(alone, vocab)} after an unfinished stream")
    for number, got in enumerate(proxy.streams_in_turn(list(pieces), list(pieces))):
        if got != ids:
            told = f"{show.ids(got, vocab)} from stream {number + 1} of two that are read in turn"
            return Difference(_shown(example), show.ids(ids, vocab), told)
    return None


@_reported
def _save_load(implementation: Implementation, example: Example) -> Difference | None:
    proxy, text, ids = _encode(implementation, example)
    model = _model(example)
    with scratch_folder() as folder:
        proxy.save(folder)
        loaded = implementation.from_files(folder / "vocab.json", folder / "merges.txt", model.special_tokens)
        again = loaded.encode(text)
    if again == ids:
        return None
    return Difference(
        _shown(example), show.ids(ids, model.vocab), f"{show.ids(again, model.vocab)} after save and from_files"
    )


def _training_line(given: Mapping[str, Any]) -> str:
    special = ascii(given["special_tokens"])
    return f"{show.text_line(given['text'])}, vocab_size {given['vocab_size']}, special tokens {special}"


@_reported
def _trained_encodes(implementation: Implementation, example: Example) -> Difference | None:
    given = example["input"]["train"]
    trained = implementation.train(given["text"], given["vocab_size"], given["special_tokens"])
    proxy = trained.tokenizer()
    if proxy is None:
        return None
    model = Model(trained.vocab, tuple(trained.merges), tuple(given["special_tokens"]))
    ids = proxy.encode(given["text"])
    expected = oracle(model, implementation.conventions["lookup"]).encode(given["text"])
    line = f"train on {_training_line(given)}, then encode the same text"
    if ids != expected:
        around = show.first_difference(expected, ids)
        return Difference(line, show.ids(expected, model.vocab, around), show.ids(ids, model.vocab, around))
    for index, token in trained.vocab.items():
        text = token.decode("utf-8", "replace")
        if text.encode("utf-8") != token or textbook.split(text) != [text]:
            continue
        got = proxy.encode(text)
        if got != [index]:
            return Difference(f"{line} and token {show.token(token)}", f"ids [{index}]", f"ids {got[:20]}")
    return None


@_reported
def _monotone(implementation: Implementation, example: Example) -> Difference | None:
    given = example["input"]["train"]
    merges = implementation.train(given["text"], given["vocab_size"], given["special_tokens"]).merges
    words = textbook.corpus(given["text"], given["special_tokens"], PATTERNS["gpt2"])
    last: int | None = None
    for step, pair in enumerate(merges):
        count = textbook.count_pairs(words).get(pair, 0)
        if count == 0 or (last is not None and count > last):
            return Difference(
                _training_line(given),
                f"a pair that occurs, at most {last} times" if last is not None else "a pair that occurs",
                f"{show.pair(pair)} with count {count}",
                f"at step {step + 1}",
            )
        words = [textbook.replace(word, pair) for word in words]
        last = count
    return None


@_reported
def _arguments_of_training(implementation: Implementation, example: Example) -> Difference | None:
    given = example["input"]["train"]
    special = list(given["special_tokens"])
    first = implementation.train_from(given["text"], given["vocab_size"], special)
    if special != given["special_tokens"]:
        return Difference(_training_line(given), "special_tokens as the caller passed it", f"{special!a}")
    again = implementation.train(given["text"], given["vocab_size"], given["special_tokens"])
    if (again.merges, again.vocab) != (first.merges, first.vocab):
        return Difference(
            _training_line(given), f"merges {show.merges(first.merges)}", f"merges {show.merges(again.merges)} again"
        )
    return None


HASH_SEED_TEXT = "the cat sat on the mat, that rat ate the oat; a bat at bay ate it all. abab cdcd efef zxzx yqyq"


def _hash_seeds(implementation: Implementation, example: Example) -> Difference | None:
    """Processes with different hash seeds train on the same text: merges and vocabulary are the same."""
    special = ["<|a|>", "<|a|><|a|>", "<|b|>", "at", "ate"] if "train-special" in implementation.capabilities else []
    found = []
    for seed in example["seeds"]:
        try:
            with implementation.in_new_process({"PYTHONHASHSEED": str(seed)}) as other:
                trained = other.train(HASH_SEED_TEXT, 300, special)
            found.append((trained.merges, trained.vocab))
        except CallFailed as fault:
            return Difference(f"train with PYTHONHASHSEED={seed}", "merges", str(fault))
    if all(one == found[0] for one in found):
        return None
    place = next(show.first_difference(found[0][0], one[0]) for one in found[1:] if one != found[0])
    different = next(one for one in found[1:] if one != found[0])
    return Difference(
        f"{show.text_line(HASH_SEED_TEXT)}, vocab_size 300, special tokens {special!a}",
        f"merges {show.merges(found[0][0], place)}",
        f"merges {show.merges(different[0], place)} with another PYTHONHASHSEED",
        f"at step {place + 1}",
    )


HASH_SEED_SPECIALS = ("<|a|>", "<|a|><|a|>", "<|a", "|><|", "a|>x", "aa", "aaa", "aaaa", "ab", "abc", "bc", "bcd", "cd")


def _hash_seeds_of_encoding(implementation: Implementation, example: Example) -> Difference | None:
    """Processes with different hash seeds encode with special tokens that overlap, named in several orders."""
    count = len(HASH_SEED_SPECIALS)
    for seed in example["seeds"]:
        try:
            with implementation.in_new_process({"PYTHONHASHSEED": str(seed)}) as other:
                for step in range(1, count):
                    special = [HASH_SEED_SPECIALS[step * place % count] for place in range(count)]
                    model = {"special_tokens": special, "extra": [[300 + i, token] for i, token in enumerate(special)]}
                    text = "aaaaabcd<|a|><|a|><|a|>xabcbcdaaa<|a<|a|"
                    found = _equals_oracle(other, {"op": "encode", "model": model, "input": {"text": text}})
                    if found is not None:
                        return replace(found, input=f"{found.input}, PYTHONHASHSEED={seed}")
        except CallFailed as fault:
            return Difference(f"encode with PYTHONHASHSEED={seed}", "ids", str(fault))
    return None


LAWS: tuple[Law, ...] = (
    Law("law-encode", "LAW-ENCODE-1", "encoder", ("encode",), examples.encodings, _equals_oracle, 300),
    Law(
        "law-encode-pattern",
        "SPLIT-NAME-1",
        "encoder",
        ("encode", "pattern"),
        partial(examples.encodings, pattern=True),
        _equals_oracle,
        150,
    ),
    Law(
        "law-special",
        "SPECIAL-SCAN-1",
        "encoder",
        ("encode", "special"),
        partial(examples.encodings, special=True),
        _equals_oracle,
        250,
    ),
    Law(
        "law-special-equation",
        "LAW-SPECIAL-1",
        "encoder",
        ("encode", "special"),
        partial(examples.encodings, special=True),
        _special_equation,
    ),
    Law(
        "law-allowed",
        "SPECIAL-ALLOWED-1",
        "encoder",
        ("encode", "special", "allowed_special"),
        examples.chosen_specials,
        _equals_oracle,
    ),
    Law(
        "law-disallowed",
        "SPECIAL-DISALLOWED-1",
        "encoder",
        ("encode", "special", "allowed_special"),
        partial(examples.chosen_specials, barred=True),
        _equals_oracle,
    ),
    Law("law-idempotent", "LAW-IDEMPOTENT-1", "encoder", ("encode", "decode"), examples.mixed, _idempotent),
    Law("law-round-trip", "LAW-ROUNDTRIP-1", "decoder", ("encode", "decode"), examples.mixed, _round_trip, 150),
    Law("law-decode", "DECODE-UTF8-1", "decoder", ("decode",), examples.decodings, _equals_oracle, 150),
    Law(
        "law-arguments",
        "LAW-PURE-1",
        "encoder",
        ("encode", "shared memory"),
        examples.absent_or_not,
        _arguments_unchanged,
        60,
    ),
    Law(
        "law-special-absent",
        "SPECIAL-ABSENT-2",
        "encoder",
        ("encode", "special"),
        examples.absent_specials,
        _absent_specials,
        80,
    ),
    Law("law-results", "LAW-PURE-1", "encoder", ("encode",), examples.mixed, _results_unshared, 60),
    Law("law-after-error", "ERROR-AFTER-1", "encoder", ("encode",), examples.mixed, _after_an_error, 20),
    Law(
        "law-unaliased",
        "ERROR-STATE-2",
        "encoder",
        ("encode", "shared memory", "special"),
        partial(examples.encodings, special=True),
        _table_unaliased,
        20,
    ),
    Law("law-train", "LAW-TRAIN-1", "trainer", ("train",), examples.trainings, _equals_oracle, 200),
    Law(
        "law-train-special",
        "TRAIN-SPECIAL-1",
        "trainer",
        ("train", "train-special"),
        partial(examples.trainings, special=True),
        _equals_oracle,
        200,
    ),
    Law(
        "law-train-monotone",
        "LAW-MONOTONE-1",
        "trainer",
        ("train",),
        partial(examples.trainings, special=True),
        _monotone,
        50,
    ),
    Law(
        "law-train-again",
        "LAW-REPLAY-1",
        "trainer",
        ("train",),
        partial(examples.trainings, special=True),
        _arguments_of_training,
        30,
    ),
    Law(
        "law-train-encode",
        "LAW-SELF-1",
        "trainer",
        ("train", "encode"),
        partial(examples.trainings, special=True),
        _trained_encodes,
        60,
    ),
    Law(
        "law-hash-seed-special",
        "SPECIAL-ORDER-1",
        "encoder",
        ("encode", "new process", "special"),
        fixed(seeds=[1, 2, 3]),
        _hash_seeds_of_encoding,
        1,
        timeout_factor=12,
    ),
    Law(
        "law-hash-seed",
        "LAW-SEED-1",
        "trainer",
        ("train", "new process"),
        fixed(seeds=[1, 2]),
        _hash_seeds,
        1,
        timeout_factor=12,
    ),
    Law("law-stream", "LAW-STREAM-1", "streaming", ("encode_iterable",), examples.streams, _equals_oracle, 250),
    Law(
        "law-stream-apart",
        "LAW-STREAM-1",
        "streaming",
        ("encode", "encode_iterable"),
        examples.mixed,
        _streams_apart,
        60,
    ),
    Law("law-batch", "LAW-BATCH-1", "batch", ("encode_batch",), examples.batches, _equals_oracle, 60),
    Law("law-save", "LAW-SAVE-1", "files", ("save", "from_files", "encode"), examples.mixed, _save_load, 30),
    *STATE_LAWS,
    *TRAINING_LAWS,
    *WAYS_LAWS,
    *LONG_LAWS,
    *RICH_LAWS,
    *CHARACTER_LAWS,
)
