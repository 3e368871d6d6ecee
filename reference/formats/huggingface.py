"""Reads and writes Hugging Face's `tokenizer.json` for byte-level BPE.

Source: huggingface/tokenizers `src/models/bpe/`, `src/pre_tokenizers/byte_level.rs`,
`src/tokenizer/added_vocabulary.rs`. A setting that changes the ids of byte-level BPE (a normalizer, a prefix space,
`ignore_merges`, …) is rejected by name. The post-processor is ignored, because it only applies to
`add_special_tokens=True`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Model, spell
from bpe_conformance.fixtures.characters import has_surrogate
from bpe_conformance.fixtures.files import AnyPath, parse_json
from bpe_conformance.fixtures.one_line import shortened
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Digits, Pipeline, Punctuation, Split, Step

from ..special_tokens import straddles
from . import read_utf8, write_utf8
from .gpt2 import merges_of_pairs, read_id, read_key, spelled_vocab, vocab_of_entries

_REGEXES = {
    # There, `}+` repeats the repetition instead of making it possessive; an atomic group means the same in both.
    "cl100k": PATTERNS["cl100k"].replace(r"\p{N}{1,3}+", r"(?>\p{N}{1,3})")
}
_NAMES = {text: name for name, text in PATTERNS.items()} | {text: name for name, text in _REGEXES.items()}
_UNSET = (None, False, "", 0)
MIXED = 25_000_000
"""The most characters of `normalized` added tokens, times those of the others, for which overlaps are checked."""


def read(path: AnyPath) -> Model:
    """Read a model; its pattern is the name of a known pattern, or else the regular expression."""
    where = str(path)
    document = parse_json(read_utf8(path), where)
    if (piped := _minimal(document)) is not None:
        return piped
    model = _checked(_checked(document, dict, where).get("model"), dict, f"{where}: model")
    _refuse(document, where, ("normalizer", "truncation", "padding"))
    if model.get("type", "BPE") != "BPE":
        raise ValueError(f"{where}: the model is {shortened(model['type'])}; expected BPE")
    steps = ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "ignore_merges")
    _refuse(model, f"{where}: model", steps)
    added = _added_tokens(document, where)
    keys = _checked(model.get("vocab"), dict, f"{where}: model.vocab")
    ordinary = [(key, index) for key, index in keys.items() if key not in added]
    vocab = vocab_of_entries(ordinary, f"{where}: model.vocab")
    ordinary_tokens = set(vocab.values())
    for text, index in added.items():
        token = text.encode("utf-8")
        stated = read_id(keys.get(text, index), f"{where}: model.vocab: the id", text)
        if stated != index or index in vocab or token in ordinary_tokens:
            what = f"{shortened(text)} or its id {index} belongs to something else in the vocab"
            raise ValueError(f"{where}: added_tokens: {what}")
        vocab[index] = token
    at_merges = f"{where}: model.merges"
    merges = merges_of_pairs(_pairs(model, at_merges), lambda rank: f"{at_merges}[{rank}]", vocab)
    pattern = _pattern(document.get("pre_tokenizer"), f"{where}: pre_tokenizer")
    return Model(vocab, tuple(merges), tuple(added), pattern)


def _checked(value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{where}: expected an {'object' if kind is dict else 'array'}")
    return value


def _refuse(settings: Mapping[str, Any], where: str, names: tuple[str, ...]) -> None:
    for name in names:
        if settings.get(name) not in _UNSET:
            fix = "unset it in a copy of the file, for texts that it does not change"
            raise ValueError(f"{where}: {name} is set; plain byte-level BPE has none: {fix}")


def _pairs(model: Mapping[str, Any], where: str) -> Iterator[list[str]]:
    for number, pair in enumerate(_checked(model.get("merges", []), list, where)):
        parts = pair.split(" ") if isinstance(pair, str) else pair
        if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
            raise ValueError(f"{where}[{number}] is not a pair of strings")
        yield parts


def _added_tokens(document: Mapping[str, Any], where: str) -> dict[str, int]:
    added: dict[str, int] = {}
    normalized: dict[str, bool] = {}
    for number, entry in enumerate(_checked(document.get("added_tokens") or [], list, f"{where}: added_tokens")):
        position = f"{where}: added_tokens[{number}]"
        token = _checked(entry, dict, position)
        _refuse(token, position, ("lstrip", "rstrip", "single_word"))
        text = token.get("content")
        if not isinstance(text, str) or not text or "id" not in token:
            raise ValueError(f"{position}: expected a non-empty content and an id")
        if has_surrogate(text):
            raise ValueError(f"{position}: {shortened(text)} contains a lone surrogate")
        if text in added:
            raise ValueError(f"{position}: {shortened(text)} is a duplicate")
        added[text] = read_id(token["id"], f"{position}: the id", text)
        normalized[text] = bool(token.get("normalized"))
    _check_overlaps(normalized, f"{where}: added_tokens")
    return added


def _check_overlaps(normalized: Mapping[str, bool], where: str) -> None:
    """Reject tokens whose matches are not leftmost-longest: tokens that are not `normalized` are matched first."""
    kinds = [[text for text, late in normalized.items() if late is kind] for kind in (True, False)]
    if sum(map(len, kinds[0])) * sum(map(len, kinds[1])) > MIXED:
        raise ValueError(f"{where}: {len(kinds[0])} are normalized and {len(kinds[1])} are not, too many to compare")
    for first, second in [*product(*kinds), *product(*reversed(kinds))]:
        if straddles(first, second) or first.startswith(second):
            both = f"{shortened(first)} and {shortened(second)}"
            raise ValueError(f"{where}: {both} overlap, and one of them is normalized")


def _pattern(value: Any, where: str) -> str:
    steps = [value]
    if isinstance(value, dict) and value.get("type") == "Sequence":
        steps = value.get("pretokenizers", [])
    match steps:
        case [{"type": "ByteLevel", "add_prefix_space": False, **rest}]:
            if (used := rest.get("use_regex", True)) in (True, False):
                return "gpt2" if used else "none"
        case [
            {"type": "Split", "pattern": {"Regex": str(text)}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
        ]:
            return _NAMES.get(text, text)
    expected = "expected ByteLevel, or an isolating Split and ByteLevel, without add_prefix_space"
    raise ValueError(f"{where}: {expected}; write its split as one expression in a copy of the file")


def write(path: AnyPath, model: Model) -> None:
    write_utf8(path, rendered(model))


def rendered(model: Model) -> str:
    return json.dumps(document(model), ensure_ascii=False, indent=1) + "\n"


def document(model: Model) -> dict[str, Any]:
    """Return the JSON of the file.

    Raises:
        ValueError: if the format cannot represent the model: a byte has no token, two ids have the same bytes, a
            special token has no id, its text spells other bytes (as which it would be decoded), merges create it
            although its spelling differs from its text, or the pattern contains `}+`, which has another meaning there.
    """
    keys, added = _keys(model)
    pipeline = model.pipeline
    tokens = [added_token(text, index) for text, index in added.items()]
    if pipeline is not None:
        tokens = [added_token(token.content, added[token.content], token) for token in pipeline.added_tokens]
    merges = [[spell(left), spell(right)] for left, right in dict.fromkeys(model.merges)]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": tokens,
        "normalizer": None if pipeline is None else _normalizer(pipeline.normalizer),
        "pre_tokenizer": _pre_tokenizer(model.pattern) if pipeline is None else _steps(pipeline),
        "post_processor": None,
        "decoder": _byte_level(use_regex=True),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": pipeline is not None and pipeline.lookup == "whole",
            "vocab": dict(sorted(keys.items(), key=lambda item: item[1])),
            "merges": merges,
        },
    }


def _keys(model: Model) -> tuple[dict[str, int], dict[str, int]]:
    """Return the keys of the vocabulary, with special tokens as plain text, and those of the special tokens."""
    keys = spelled_vocab(model.vocab)
    if missing := [byte for byte in range(256) if spell(bytes([byte])) not in keys]:
        byte = bytes(missing[:1])
        raise ValueError(f"the vocabulary has no token for the byte {byte!r}, which tokenizers would drop")
    used = {part for left, right in model.merges for part in (left, right, left + right)}
    added: dict[str, int] = {}
    for text in dict.fromkeys(model.special_tokens or ()):
        token = text.encode("utf-8")
        spelled = spell(token)
        if spelled not in keys:
            raise ValueError(f"the special token {text!a} is not in the vocabulary")
        if spelled != text and (token in used or len(token) == 1):
            raise ValueError(f"the special token {text!a} is also an ordinary token, with another spelling")
        added[text] = keys.pop(spelled)
    for text, index in added.items():
        if keys.setdefault(text, index) != index:
            raise ValueError(f"the text of the special token {text!a} is the spelling of another token")
        if (other := read_key(text, "")) != text.encode("utf-8"):
            raise ValueError(f"the special token {text!a} spells other bytes; tokenizers would decode it as {other!r}")
    return keys, added


def added_token(text: str, index: int, token: AddedToken | None = None) -> dict[str, Any]:
    names = ("single_word", "lstrip", "rstrip", "normalized")
    return {"id": index, "content": text, **{name: getattr(token, name, False) for name in names}, "special": True}


def _byte_level(use_regex: bool, prefix_space: bool = False) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": prefix_space, "trim_offsets": True, "use_regex": use_regex}


def _normalizer(forms: tuple[str, ...]) -> dict[str, Any] | None:
    steps = [{"type": form} for form in forms]
    return {"type": "Sequence", "normalizers": steps} if len(steps) > 1 else steps[0] if steps else None


def _steps(pipeline: Pipeline) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": list(map(_step, pipeline.steps))}


def _step(step: Step) -> dict[str, Any]:
    match step:
        case Split(expression, behavior, invert):
            return {"type": "Split", "pattern": {"Regex": expression}, "behavior": behavior, "invert": invert}
        case Digits(individual):
            return {"type": "Digits", "individual_digits": individual}
        case Punctuation(behavior):
            return {"type": "Punctuation", "behavior": behavior}
        case ByteLevel(prefix_space, is_split):
            return _byte_level(is_split, prefix_space)


def _pre_tokenizer(pattern: str) -> dict[str, Any]:
    if pattern in ("gpt2", PATTERNS["gpt2"]):
        return _byte_level(use_regex=True)
    name = _NAMES.get(pattern, pattern)
    text = _REGEXES.get(name, PATTERNS.get(name, pattern))
    if re.search(r"\{[\d,]+\}\+", text):
        raise ValueError(f"the pattern {text!a} contains `}}+`, which is not possessive in tokenizers; use `(?>…)`")
    split = {"type": "Split", "pattern": {"Regex": text}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [split, _byte_level(use_regex=False)]}


def _minimal(document: dict[str, Any]) -> Model | None:
    """TEMPORARY: reads what `rendered` writes for a pipeline."""
    steps = (document["pre_tokenizer"] or {}).get("pretokenizers", [])
    kinds = [step["type"] for step in steps]
    if (document["pre_tokenizer"] or {}).get("type") != "Sequence" or kinds == ["Split", "ByteLevel"]:
        if not document.get("normalizer") and not document["model"].get("ignore_merges"):
            return None

    def step(raw: dict[str, Any]) -> Step:
        match raw["type"]:
            case "Split":
                return Split(raw["pattern"]["Regex"], raw["behavior"], raw["invert"])
            case "Digits":
                return Digits(raw["individual_digits"])
            case "Punctuation":
                return Punctuation(raw["behavior"])
        return ByteLevel(raw["add_prefix_space"], raw["use_regex"])

    normalizer = document["normalizer"]
    forms = [] if normalizer is None else normalizer.get("normalizers", [normalizer])
    added = [
        AddedToken(raw["content"], raw["normalized"], raw["lstrip"], raw["rstrip"], raw["single_word"])
        for raw in document["added_tokens"]
    ]
    contents = {raw["content"]: raw["id"] for raw in document["added_tokens"]}
    from bpe_conformance.fixtures import unspell

    vocab = {i: k.encode() if contents.get(k) == i else unspell(k) for k, i in document["model"]["vocab"].items()}
    merges = tuple((unspell(left), unspell(right)) for left, right in document["model"]["merges"])
    pipeline = Pipeline(
        tuple(form["type"] for form in forms),
        tuple(added),
        tuple(map(step, steps)),
        "whole" if document["model"]["ignore_merges"] else "pair",
    )
    return Model(vocab, merges, tuple(contents), pipeline=pipeline)
