"""Reads and writes Hugging Face's `tokenizer.json` for byte-level BPE, with every step of its pipeline.

Source: huggingface/tokenizers `src/models/bpe/`, `src/pre_tokenizers/`, `src/tokenizer/added_vocabulary.rs`. A file
that special tokens and one split pattern suffice for gives a model without a pipeline. A setting that is not supported
is rejected by name. The post-processor is ignored, because it only applies to `add_special_tokens=True`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import regex

from bpe_conformance.fixtures import PATTERNS, Model, spell
from bpe_conformance.fixtures.characters import NORMAL_FORMS, NormalForm, has_surrogate
from bpe_conformance.fixtures.files import AnyPath, parse_json, write_text
from bpe_conformance.fixtures.one_line import shortened
from bpe_conformance.fixtures.pipeline import (
    BEHAVIORS,
    FLAGS,
    AddedToken,
    ByteLevel,
    Digits,
    Pipeline,
    Punctuation,
    Split,
    Step,
)

from ..pipeline import model_of, normalize
from . import read_utf8
from .gpt2 import HEADER, merges_of_pairs, read_id, read_key, spelled_vocab, vocab_of_entries
from .oniguruma import translated

_REGEXES = {
    # There, `}+` repeats the repetition instead of making it possessive; an atomic group means the same in both.
    "cl100k": PATTERNS["cl100k"].replace(r"\p{N}{1,3}+", r"(?>\p{N}{1,3})")
}
_NAMES = {text: name for name, text in _REGEXES.items()}
_KNOWN = {text: name for name, text in PATTERNS.items()}
_UNSET = (None, False, "", 0)
_IN_UTF8 = frozenset(bytes([byte]) for byte in range(256)) - {bytes([byte]) for byte in (0xC0, 0xC1, *range(0xF5, 256))}
_OUTER_SPACE = regex.compile(r"\A\s|\s\Z")
COPY = "in a copy of the file"


def read(path: AnyPath) -> Model:
    """Read a model; without a pipeline, its pattern is the name of a known pattern, or else a regular expression."""
    where = str(path)
    document = parse_json(read_utf8(path), where)
    model = _checked(_checked(document, dict, where).get("model"), dict, f"{where}: model")
    _refuse(document, where, ("truncation", "padding"))
    if model.get("type", "BPE") != "BPE":
        raise ValueError(f"{where}: the model is {shortened(model['type'])}; expected BPE")
    _refuse(model, f"{where}: model", ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"))
    keys = _checked(model.get("vocab"), dict, f"{where}: model.vocab")
    vocab, tokens = _vocab(keys, _added_tokens(document, f"{where}: added_tokens"), where)
    at_merges = f"{where}: model.merges"
    pairs = _pairs(model, at_merges)
    ranks = list(pairs.values())
    merges = tuple(merges_of_pairs(pairs, lambda rank: f"{at_merges}[{ranks[rank]}]", vocab))
    pipeline = Pipeline(
        tuple(_normal_forms(document.get("normalizer"), f"{where}: normalizer")),
        tuple(tokens),
        tuple(_steps(document.get("pre_tokenizer"), f"{where}: pre_tokenizer")),
        "whole" if model.get("ignore_merges") else "pair",
    )
    _check_pipeline(pipeline, keys, model, where)
    return model_of(vocab, merges, pipeline)


def _checked(value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{where}: expected an {'object' if kind is dict else 'array'}")
    return value


def _refuse(settings: Mapping[str, Any], where: str, names: tuple[str, ...]) -> None:
    for name in names:
        if settings.get(name) not in _UNSET:
            fix = f"unset it {COPY}, which gives the right ids for texts that it does not change"
            raise ValueError(f"{where}: {name} is set, which is not supported; {fix}")


def _pairs(model: Mapping[str, Any], where: str) -> dict[tuple[str, ...], int]:
    """Return the pairs of spelled tokens, and where they are in the array; of equal pairs, the last one counts."""
    pairs: dict[tuple[str, ...], int] = {}
    for number, pair in enumerate(_checked(model.get("merges", []), list, where)):
        if isinstance(pair, str):
            if pair.startswith(HEADER):
                continue
            pair = pair.split(" ")
        elif not isinstance(pair, list) or {*map(type, pair)} != {str}:
            raise ValueError(f"{where}[{number}] is not a pair of strings")
        parts = tuple(pair)
        pairs.pop(parts, None)
        pairs[parts] = number
    return pairs


def _added_tokens(document: Mapping[str, Any], where: str) -> list[AddedToken]:
    """Return the added tokens with the ids that the file states."""
    added: dict[str, AddedToken] = {}
    for number, entry in enumerate(_checked(document.get("added_tokens") or [], list, where)):
        position = f"{where}[{number}]"
        token = _checked(entry, dict, position)
        text = token.get("content")
        if not isinstance(text, str) or not text or "id" not in token:
            raise ValueError(f"{position}: expected a non-empty content and an id")
        if has_surrogate(text):
            raise ValueError(f"{position}: {shortened(text)} contains a lone surrogate")
        if text in added:
            raise ValueError(f"{position}: {shortened(text)} is a duplicate")
        flags = {name: bool(token.get(name)) for name in FLAGS}
        index = read_id(token["id"], f"{position}: the id", text)
        added[text] = AddedToken(text, **flags, id=index, special=bool(token.get("special")))
    return list(added.values())


def _vocab(keys: Mapping[str, Any], added: list[AddedToken], where: str) -> tuple[dict[int, bytes], list[AddedToken]]:
    """Return the vocabulary, with added tokens, and these with an id only where their bytes do not determine it.

    As in tokenizers, an added token that is a key has the id of the key, and all others count up from the number of
    keys, whatever ids the file states.
    """
    contents = {token.content for token in added}
    ordered = sorted(keys.items(), key=lambda item: item[0] in contents)
    vocab = vocab_of_entries(ordered, f"{where}: model.vocab")
    ids: dict[bytes, int] = {}
    for (key, index), spelled in zip(ordered, vocab.values(), strict=True):
        if ids.setdefault(spelled, index) != index and key not in contents:
            raise ValueError(f"{where}: model.vocab: {shortened(key)} has the same bytes as the id {ids[spelled]}")
    tokens = []
    following = len(keys)
    for number, token in enumerate(added):
        text = token.content.encode("utf-8")
        index = keys.get(token.content)
        if index is None:
            index, following = following, following + 1
            if token.id == index and index in vocab:
                what = f"the id {index} of {shortened(token.content)} belongs to something else in the vocab"
                raise ValueError(f"{where}: added_tokens[{number}]: {what}")
            vocab[index] = text
        if token.id != index:
            what = f"the id of {shortened(token.content)} is {token.id}, but tokenizers gives it {index}"
            fix = f"put it into model.vocab with its id, {COPY}"
            raise ValueError(f"{where}: added_tokens[{number}]: {what}; {fix}")
        is_known = vocab[index] == text and ids.setdefault(text, index) == index
        tokens.append(replace(token, id=None if is_known else index))
    return vocab, tokens


def _normal_forms(value: Any, where: str) -> Iterator[NormalForm]:
    match value:
        case None:
            return
        case {"type": "Sequence", "normalizers": [*steps]}:
            for step in steps:
                yield from _normal_forms(step, where)
        case {"type": "NFC" | "NFD" | "NFKC" | "NFKD" as form}:
            yield form
        case _:
            name = shortened(value.get("type") if isinstance(value, dict) else value)
            expected = f"expected {', '.join(NORMAL_FORMS)} or a Sequence of them"
            fix = f"remove it {COPY}, which gives the right ids for texts that it does not change"
            raise ValueError(f"{where}: {name} is not supported; {expected}; {fix}")


def _steps(value: Any, where: str) -> Iterator[Step]:
    match value:
        case {"type": "Sequence", "pretokenizers": [*steps]}:
            for number, step in enumerate(steps):
                yield from _steps(step, f"{where}[{number}]")
        case {"type": "Split", "pattern": dict(pattern), "behavior": behavior, "invert": bool(invert)}:
            yield Split(_expression(pattern, where), _behavior(behavior, where), invert)
        case {"type": "Digits", "individual_digits": bool(individual)}:
            yield Digits(individual)
        case {"type": "Punctuation"}:
            yield Punctuation(_behavior(value.get("behavior", "Isolated"), where))
        case {"type": "ByteLevel", "add_prefix_space": bool(prefix), **rest} if (
            used := rest.get("use_regex", True)
        ) in (True, False):
            yield ByteLevel(prefix, used)
        case _:
            name = shortened(value.get("type") if isinstance(value, dict) else value)
            fix = "write it as Split, Digits, Punctuation or ByteLevel, with all their settings"
            raise ValueError(f"{where}: {name} is not supported; {fix}, {COPY}")


def _behavior(value: Any, where: str) -> str:
    if value not in BEHAVIORS:
        raise ValueError(f"{where}: the behavior is {shortened(value)}; expected one of {', '.join(BEHAVIORS)}")
    return str(value)


def _expression(pattern: Mapping[str, Any], where: str) -> str:
    try:
        match pattern:
            case {"Regex": str(text)}:
                return PATTERNS[_NAMES[text]] if text in _REGEXES.values() else translated(text)
            case {"String": str(text)}:
                return translated(re.sub(r"[\\.^$*+?{}\[\]|()]", r"\\\g<0>", text))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    raise ValueError(f"{where}: the pattern is {shortened(pattern)}; expected a Regex or a String")


def _check_pipeline(pipeline: Pipeline, keys: Mapping[str, Any], model: Mapping[str, Any], where: str) -> None:
    """Reject what tokenizers does not do reliably, and what a pipeline cannot say."""
    if not any(isinstance(step, ByteLevel) for step in pipeline.steps):
        fix = "expected a ByteLevel step, which makes the model byte-level"
        raise ValueError(f"{where}: pre_tokenizer: {fix}")
    contents = {token.content for token in pipeline.added_tokens}
    for token in pipeline.added_tokens:
        if (token.lstrip or token.rstrip) and _OUTER_SPACE.search(token.content):
            what = f"{shortened(token.content)} has lstrip or rstrip and begins or ends with white space"
            fix = f"tokenizers can panic; unset the flag {COPY}"
            raise ValueError(f"{where}: added_tokens: {what}, with which {fix}")
    if model.get("unk_token") not in _UNSET and (missing := _IN_UTF8 - {read_key(key, where) for key in keys}):
        fix = f"unset unk_token {COPY}, and such a byte is dropped"
        raise ValueError(f"{where}: model: unk_token is set, and {min(missing)!r} is not in the vocabulary; {fix}")
    if pipeline.lookup == "whole":
        changes = set(";`K") if {*pipeline.normalizer} <= {"NFC", "NFD"} else set(map(chr, range(128)))
        for token in pipeline.added_tokens:
            if token.content in keys and (token.single_word or (pipeline.normalizer and changes & {*token.content})):
                what = f"ignore_merges can look up {shortened(token.content)}, which is a key, as an ordinary token"
                raise ValueError(f"{where}: added_tokens: {what}; take it out of model.vocab {COPY}")
        for key in keys:
            if key not in contents and read_key(key, where) == key.encode("utf-8") and not key.isascii():
                what = f"{shortened(key)} is not spelled in GPT-2's byte map"
                raise ValueError(f"{where}: model.vocab: {what}; with ignore_merges, take it out {COPY}")
    forms: dict[str, str] = {}
    for token in pipeline.added_tokens:
        if token.normalized:
            form = normalize(token.content, pipeline.normalizer)
            if forms.setdefault(form, token.content) != token.content:
                both = f"{shortened(forms[form])} and {shortened(token.content)}"
                what = f"{both} have one normal form, and tokenizers takes either"
                raise ValueError(f"{where}: added_tokens: {what}; remove one of them {COPY}")


def write(path: AnyPath, model: Model) -> None:
    write_text(path, rendered(model))


@lru_cache(maxsize=1)
def rendered(model: Model) -> str:
    return json.dumps(document(model), ensure_ascii=False, indent=1) + "\n"


UNUSED = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
"""A post-processor that changes nothing."""


@lru_cache(maxsize=1)
def either_spelling(model: Model, indent: int | None = None) -> str:
    """Return the text of the file in a spelling that the format has for it, which the number of merges chooses.

    - Odd: as `tokenizers` wrote it before version 0.20. Merges are texts, settings that it did not have yet are
      missing, and an expression without operators is a String, which is no expression. As in GPT-2's file, the decoder
      and the post-processor have a prefix space, which changes nothing.
    - Even: a post-processor puts the first added token before each text, which `encode` without special tokens does not
      do. For a multiple of four, it is in a Sequence, as in Llama 3's file.
    - Two more than a multiple of four: the keys of the vocabulary are in reverse order and, if there are several normal
      forms, a Sequence has others within it: of the parts before ByteLevel, or before the last one.
    - Six more than a multiple of eight: such a Sequence has all parts but the first, again and again.
    - Two more than a multiple of eight: if there is no normal form, the normalizer is an empty Sequence, as in the file
      of DeepSeek V3.
    """
    written = document(model)
    model_part, steps = written["model"], written["pre_tokenizer"] or {}
    if len(model.merges) % 2:
        model_part["merges"] = [" ".join(pair) for pair in model_part["merges"]]
        for step in steps.get("pretokenizers", [steps]):
            expression = step.get("pattern", {}).get("Regex", "")
            text = re.sub(r"\\(\W)", r"\1", expression)
            if text and re.sub(r"[\\^$.|?*+()\[\]{}]", r"\\\g<0>", text) == expression:
                step["pattern"] = {"String": text}
            if step.get("use_regex"):
                del step["use_regex"]  # its default
        if not model_part["ignore_merges"]:
            del model_part["ignore_merges"]
        written["decoder"]["add_prefix_space"] = True
        written["post_processor"] = UNUSED
    elif added := written["added_tokens"]:
        template = _template(added[0]["content"], added[0]["id"])
        several = {"type": "Sequence", "processors": [UNUSED, template]}
        written["post_processor"] = template if len(model.merges) % 4 else several
    if len(model.merges) % 8 == 2 and written["normalizer"] is None:
        written["normalizer"] = {"type": "Sequence", "normalizers": []}
    if len(model.merges) % 4 == 2:
        model_part["vocab"] = dict(reversed(model_part["vocab"].items()))
        is_nested = model.pipeline is not None and len(model.pipeline.normalizer) > 1
        for name, key in (("normalizer", "normalizers"), ("pre_tokenizer", "pretokenizers")) * is_nested:
            parts = (written[name] or {}).get(key, [])
            if len(model.merges) % 8 == 6:
                for first in range(len(parts) - 2, 0, -1):
                    parts[first:] = [{"type": "Sequence", key: parts[first:]}]
                continue
            last = next((at for at, part in enumerate(parts) if part["type"] == "ByteLevel"), len(parts) - 1)
            if last > 0:
                parts[:last] = [{"type": "Sequence", key: parts[:last]}]
    return json.dumps(written, ensure_ascii=False, indent=indent)


def _template(text: str, index: int) -> dict[str, Any]:
    single = [{"SpecialToken": {"id": text, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    known = {text: {"id": text, "ids": [index], "tokens": [text]}}
    pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}]
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": known}


def document(model: Model) -> dict[str, Any]:
    """Return the JSON of the file; a ValueError says why the format cannot represent the model."""
    pipeline = model.pipeline
    normalizer: dict[str, Any] | None = None
    if pipeline is None:
        keys, added = _keys(model)
        tokens = [added_token(AddedToken(text), index) for text, index in added.items()]
        steps: dict[str, Any] | None = _pre_tokenizer(model.expression)
    else:
        keys, tokens = _keys_of_pipeline(model, pipeline)
        normalizer = _one_or_sequence("normalizers", [{"type": form} for form in pipeline.normalizer])
        steps = _one_or_sequence("pretokenizers", [_written(step) for step in pipeline.steps])
    merges = [[spell(left), spell(right)] for left, right in dict.fromkeys(model.merges)]
    unset = dict.fromkeys(("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"))
    ignore_merges = pipeline is not None and pipeline.lookup == "whole"
    bpe = {"type": "BPE", **unset, "fuse_unk": False, "byte_fallback": False, "ignore_merges": ignore_merges}
    vocab = dict(sorted(keys.items(), key=lambda item: item[1]))
    file: dict[str, Any] = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens}
    file |= {"normalizer": normalizer, "pre_tokenizer": steps, "post_processor": None}
    return file | {"decoder": _byte_level(use_regex=True), "model": {**bpe, "vocab": vocab, "merges": merges}}


def _one_or_sequence(key: str, parts: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return a single part as it is, as published files have it; some engines know no sequence of one."""
    return {"type": "Sequence", key: parts} if len(parts) > 1 else next(iter(parts), None)


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


def _keys_of_pipeline(model: Model, pipeline: Pipeline) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Return the keys of the vocabulary, and the added tokens as the file has them.

    Added tokens whose ids count up from the number of keys need no key; others become keys, as plain text.
    """
    used = {part for left, right in model.merges for part in (left, right, left + right)}
    used.update(token for token in model.vocab.values() if len(token) == 1)
    ids = {
        token.content: model.ids.get(token.content.encode("utf-8"), -1) if token.id is None else token.id
        for token in pipeline.added_tokens
    }
    ordinary = dict(model.vocab)
    plain: dict[str, int] = {}
    following = len(model.vocab) - 1
    for text, index in reversed(ids.items()):
        token = ordinary.pop(index, b"")
        is_spare = token not in used or token in ordinary.values()  # a byte that has another id, too
        if index == following and token == text.encode("utf-8") and is_spare:
            following -= 1
        elif spell(token) == text:
            ordinary[index] = token
        elif token == text.encode("utf-8") and read_key(text, "") == token:
            plain[text] = index
        else:
            what = "its bytes" if token else f"its id {index}"
            raise ValueError(f"the added token {text!a} cannot get its id: it does not spell {what}")
    keys = spelled_vocab(ordinary)
    for text, index in plain.items():
        if keys.setdefault(text, index) != index:
            raise ValueError(f"the text of the added token {text!a} is the spelling of another token")
    if missing := next((token for token in used if spell(token) not in keys), None):
        raise ValueError(f"the added token {missing!r} is also an ordinary token, with another spelling")
    _check_pipeline(pipeline, keys, {}, "the model")
    return keys, [added_token(token, ids[token.content]) for token in pipeline.added_tokens]


def added_token(token: AddedToken, index: int) -> dict[str, Any]:
    return {"id": index, "content": token.content, **{name: getattr(token, name) for name in (*FLAGS, "special")}}


def _regex(expression: str) -> str:
    return _REGEXES.get(_KNOWN.get(expression, ""), expression)


def _split(text: str, behavior: str = "Isolated", invert: bool = False) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": text}, "behavior": behavior, "invert": invert}


def _byte_level(use_regex: bool, prefix_space: bool = False) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": prefix_space, "trim_offsets": True, "use_regex": use_regex}


def _written(step: Step) -> dict[str, Any]:
    match step:
        case Split(expression, behavior, invert):
            text = _regex(expression)
            if translated(text) != text:
                what = f"tokenizers reads the expression {shortened(text)} otherwise"
                raise ValueError(f"{what}; write it as {shortened(translated(text))} if that is what it means")
            return _split(text, behavior, invert)
        case Digits(individual):
            return {"type": "Digits", "individual_digits": individual}
        case Punctuation(behavior):
            return {"type": "Punctuation", "behavior": behavior}
        case ByteLevel(prefix_space, is_split):
            return _byte_level(is_split, prefix_space)


def _pre_tokenizer(expression: str) -> dict[str, Any]:
    if expression == PATTERNS["gpt2"]:
        return _byte_level(use_regex=True)
    text = _regex(expression)
    if re.search(r"\{[\d,]+\}\+", text):
        raise ValueError(f"the pattern {text!a} contains `}}+`, which is not possessive in tokenizers; use `(?>…)`")
    return {"type": "Sequence", "pretokenizers": [_split(text), _byte_level(use_regex=False)]}
