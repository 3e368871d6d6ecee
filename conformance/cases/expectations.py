"""The expected values of a case under each convention, as they are stored or as the oracle computes them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Merge, Model, read_choice, read_text, read_token, write_token
from bpe_conformance.fixtures.conventions import DEFAULTS
from bpe_conformance.fixtures.spec import FOLDER, Case
from bpe_conformance.reference import textbook

from ..outcome import Acceptable, AnyError, Ids, Lossless, NewIds, Question, Text

TRAINING_KEYS = ("lex-greater", "lex-smaller", "smaller-ids", "smaller-ids/gpt2", "first-seen")
TEXT_KEYS = tuple(f"{key}/text" for key in TRAINING_KEYS)
"""The keys with `train_special` text. A case has them only where special tokens in its text make a difference."""
LOOKUP_KEYS = ("pair", "bytes")
COMPUTED = ("merges", "tokens", "text", "batch", "by_convention")


def training_key(conventions: Mapping[str, str]) -> str:
    """Return the key under which a training case has the value for these conventions."""
    tie_break = conventions["tie_break"]
    order = "/gpt2" if (tie_break, conventions["byte_order"]) == ("smaller-ids", "gpt2") else ""
    return tie_break + order + ("/text" if conventions["train_special"] == "text" else "")


def conventions_of(key: str) -> dict[str, str]:
    """Return the conventions that decide the merges of a training under `key`, one of `TRAINING_KEYS` or `TEXT_KEYS`.

    >>> conventions_of("smaller-ids/gpt2/text")
    {'tie_break': 'smaller-ids', 'byte_order': 'gpt2', 'train_special': 'text'}
    """
    tie_break, *others = key.split("/")
    return {
        "tie_break": tie_break,
        "byte_order": "gpt2" if "gpt2" in others else "raw",
        "train_special": "text" if "text" in others else "boundary",
    }


def is_computed(case: Case) -> bool:
    """Return whether the oracle computes the expectation of `case`. The other cases state a rule, such as an error."""
    return case.op == "encode_allowed" or not case.expect or any(key in case.expect for key in COMPUTED)


def value_for(expect: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    """Return the expectation under the convention `key`, or None if the case has none."""
    if "by_convention" in expect:
        values = expect["by_convention"]
        found: Mapping[str, Any] | None = values.get(key, values.get(key.removesuffix("/text")))
        return found
    return expect


def read_merges(value: Any) -> list[Merge]:
    """Return the merges that an expectation spells."""
    return [(read_token(left), read_token(right)) for left, right in value]


def acceptable_answers(expect: Mapping[str, Any]) -> tuple[Acceptable, ...]:
    """Return the alternatives of an expectation of ids or of a text as values."""
    return tuple(map(_acceptable, _alternatives(expect)))


def _alternatives(expect: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for one in expect.get("any_of", (expect,)):
        if "by_convention" in one:
            yield from one["by_convention"].values()
        elif "any_of" in one:
            yield from _alternatives(one)
        else:
            yield one


def _acceptable(value: Mapping[str, Any]) -> Acceptable:
    if "error" in value:
        return AnyError(value["error"])
    if "with_new_ids" in value:
        return NewIds(tuple(read_token(token) for token in value["with_new_ids"]))
    if "lossless" in value:
        return Lossless()
    if "text" in value:
        return Text(read_text(value["text"]))
    return Ids(tuple(expected_ids(value)))


def expected_ids(expect: Mapping[str, Any]) -> list[int]:
    """Return the ids of an encoding expectation, from the file of stored ids if it names one."""
    if "stored" in expect:
        found: list[int] = _stored()[expect["stored"]]["ids"]
        return found
    ids: list[int] = expect["ids"]
    return ids


@lru_cache(maxsize=1)
def _stored() -> dict[str, Any]:
    stored: dict[str, Any] = json.loads((FOLDER / "texts" / "gpt2-ids.json").read_text("utf-8"))
    return stored


def chunkings(case: Case) -> list[list[str]]:
    """Return every list of chunks in a streaming case."""
    given = case.input
    if "chunks" in given:
        return [[read_text(chunk) for chunk in given["chunks"]]]
    if "repeat_chunks" in given:
        chunk, times = given["repeat_chunks"]
        return [[read_text(chunk)] * times]
    text = read_text(given["text"])
    if given["cut"] == "characters":
        return [list(text)]
    return [[text[:cut], text[cut:]] for cut in range(len(text) + 1)]


def whole_text(case: Case) -> str:
    """Return the text that an encoding, streaming or loading case is about."""
    if case.op == "stream":
        return "".join(chunkings(case)[0])
    return read_text(case.input["text"])


def texts_of(case: Case) -> list[str]:
    """Return the texts of a case that a tokenizer splits."""
    if case.op == "train":
        return [read_text(case.input["train"]["text"])]
    if case.op == "batch":
        return list(map(read_text, case.input["texts"]))
    return [whole_text(case)] if case.op not in ("decode", "save", "construct") else []


def question(case: Case) -> Question:
    """Return the question of `case` as Python values."""
    if case.op == "train":
        given = case.input["train"]
        special = [read_text(token) for token in given["special_tokens"]]
        texts = {"text": read_text(given["text"]), "special_tokens": special}
        return Question("train", None, {"pattern": "gpt2", **given, **texts})
    if case.op == "decode":
        ids = tuple(case.input["ids"]) if case.input.get("sequence") == "tuple" else list(case.input["ids"])
        return Question("decode", case.model, {**case.input, "ids": ids})
    if case.op == "batch":
        return Question("batch", case.model, {"texts": [read_text(text) for text in case.input["texts"]]})
    if case.op == "stream":
        return Question("stream", case.model, {"chunks": chunkings(case)[0]})
    if case.op in ("save", "construct"):
        return Question(case.op, case.model, {})
    chosen = choice(case) if case.op == "encode_allowed" else {}
    return Question(case.op, case.model, {**case.input, "text": whole_text(case), **chosen})


def choice(case: Case) -> dict[str, str | list[str]]:
    """Return the keyword arguments that an `encode_allowed` case passes to `encode`."""
    return {name: read_choice(case.input[name]) for name in ("allowed_special", "disallowed_special")}


def with_allowed(case: Case) -> Model:
    """Return the model of an `encode_allowed` case with only those special tokens that are allowed.

    Where nothing is disallowed, its tokenizer gives the same ids.
    """
    allowed = choice(case)["allowed_special"]
    found = (token for token in case.table.special_tokens or () if allowed == "all" or token in allowed)
    return replace(case.table, special_tokens=tuple(found))


def expression(pattern: str, conventions: Mapping[str, str]) -> str:
    """Return the regular expression of a pattern. `gpt2`, the default, is the one that an implementation declares.

    >>> expression("gpt2", {"pattern": "none"}) == PATTERNS["none"], expression("gpt2", {"pattern": "[a-z]+"})
    (True, '[a-z]+')
    """
    own = conventions.get("pattern", "gpt2")
    return PATTERNS.get(pattern, pattern) if pattern != "gpt2" else PATTERNS.get(own, own)


def oracle(model: Model, conventions: Mapping[str, str] = DEFAULTS) -> textbook.Tokenizer:
    """Return the textbook's tokenizer for a model, under these conventions."""
    make = _oracle if model.is_large else _oracle.__wrapped__
    return make(model, conventions["lookup"], expression(model.pattern, conventions))


@lru_cache(maxsize=4)
def _oracle(model: Model, lookup: str, pattern: str) -> textbook.Tokenizer:
    kind = textbook.with_conventions(lookup=lookup)
    return kind(model.vocab, model.merges, model.special_tokens, pattern)


def under(case: Case, conventions: Mapping[str, str]) -> Case:
    """Return the case. If it has no value for the declared pattern, the oracle computes it."""
    if case.expect and (conventions["pattern"] == "gpt2" or case.pattern != "gpt2" or not is_computed(case)):
        return case
    keys = training_key(conventions), conventions["lookup"]
    return replace(case, expect=compute(case, keys, conventions["pattern"]))


def compute(
    case: Case, only: Sequence[str] = (*TRAINING_KEYS, *TEXT_KEYS, *LOOKUP_KEYS), pattern: str = "gpt2"
) -> dict[str, Any]:
    """Return the expectation that the textbook oracle computes for `case`, in the form of the YAML.

    Args:
        case: what to compute; its own expectation is ignored.
        only: the keys of conventions to compute.
        pattern: what an implementation declares instead of GPT-2's pattern.
    """
    if case.op == "train":
        given = question(case).input
        keys = [key for key in (*TRAINING_KEYS, *TEXT_KEYS) if key in only]
        if not any(token in given["text"] for token in given["special_tokens"]):
            keys = list(dict.fromkeys(key.removesuffix("/text") for key in keys))
        return merged({key: _trained(case, key, pattern) for key in keys})
    if case.op == "decode":
        return decoded(oracle(case.table), case.input["ids"])
    if case.op == "batch":
        key = "pair" if "pair" in only else "bytes"
        return {"batch": [encoded(case.table, text, key, pattern) for text in question(case).input["texts"]]}
    text = whole_text(case)
    keys = [key for key in LOOKUP_KEYS if key in only and (key == "pair" or case.table.ranks_by_bytes)]
    if case.op == "encode_allowed":
        try:
            return merged({key: encoded(case.table, text, key, pattern, **choice(case)) for key in keys})
        except ValueError:
            return {"error": "disallowed"}
    return merged({key: encoded(case.table, text, key, pattern) for key in keys})


def encoded(model: Model, text: str, lookup: str, pattern: str, **chosen: Collection[str]) -> dict[str, Any]:
    """Return tokens and ids of `text` by the oracle.

    Raises:
        ValueError: if the text contains a token that `chosen` disallows.
    """
    tokenizer = oracle(model, {"lookup": lookup, "pattern": pattern})
    ids = tokenizer.encode(text, **chosen)
    return {"tokens": [write_token(tokenizer.vocab[index]) for index in ids], "ids": ids}


def decoded(tokenizer: textbook.Tokenizer, ids: Sequence[int]) -> dict[str, Any]:
    """Return the text of `ids` by the oracle, and their bytes if they are not UTF-8."""
    text, data = tokenizer.decode(ids), tokenizer.decode_bytes(ids)
    return {"text": text} if text.encode("utf-8") == data else {"text": text, "bytes": write_token(data)}


def _trained(case: Case, key: str, pattern: str) -> dict[str, Any]:
    given = question(case).input
    special = given["special_tokens"]
    split = expression(given["pattern"], {"pattern": pattern})
    merges = textbook.learn(given["text"], given["vocab_size"], special, split, **conventions_of(key))
    value: dict[str, Any] = {"merges": [[write_token(left), write_token(right)] for left, right in merges]}
    if case.clause.id.startswith("TRAIN-IDS-"):
        vocab = textbook.build_vocab(merges, special)
        value["ids"] = [[index, write_token(token)] for index, token in vocab.items() if index >= 256]
    return value


def merged(values: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the one value that all keys have, or all values; those of `TEXT_KEYS` only if one of them differs."""
    plain = {key: value for key, value in values.items() if key not in TEXT_KEYS}
    if all(plain.get(key.removesuffix("/text")) == value for key, value in values.items()):
        values = plain
    first = next(iter(values.values()), {})
    if all(value == first for value in values.values()):
        return first
    return {"by_convention": values}
