"""Judges one golden case: asks the implementation, compares with the expectation, and says what differs."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Merge, Model, read_text, read_token
from bpe_conformance.fixtures.spec import FOLDER, Case
from bpe_conformance.judging import diagnosis, gpt2_files, show
from bpe_conformance.judging.containment import Fault, Raised
from bpe_conformance.judging.expectations import chunkings, read_merges, training_key, value_for, whole_text
from bpe_conformance.judging.handle import Handle
from bpe_conformance.judging.subject import Subject, Trained
from bpe_conformance.reference import textbook

NEEDS = {
    "train": "train",
    "encode": "encode",
    "construct": "encode",
    "decode": "decode",
    "stream": "encode_iterable",
    "batch": "encode_batch",
    "save": "save",
    "load": "from_files",
}


@dataclass(frozen=True)
class Difference:
    """An answer that is not the expected one. Each attribute is one line.

    Attributes:
        input: what was asked.
        expected: what the spec says.
        got: what came back.
        diverges: where the two part, or "".
        traceback: the implementation's own frames, if it raised.
        chunks: of a streaming case, those that it was asked with.
    """

    input: str
    expected: str
    got: str
    diverges: str = ""
    traceback: Sequence[str] = ()
    chunks: Sequence[str] = ()


def unmet(case: Case, subject: Subject) -> str | None:
    """Return what the case needs and the implementation does not claim, or None."""
    needs = NEEDS[case.op]
    if needs not in subject.capabilities:
        return needs
    if case.op == "load" and "encode" not in subject.capabilities:
        return "encode"
    if subject.fixed_model is not None:
        name = case.model.name if case.model else ""
        return None if name == subject.fixed_model else "other models than its own"
    pattern = case.input["train"].get("pattern", "gpt2") if case.op == "train" else _pattern(case)
    kind = "train-pattern" if case.op == "train" else "pattern"
    if pattern != "gpt2" and f"{kind}:{pattern}" not in subject.capabilities:
        return f"{kind}:{pattern}"
    if case.op != "train" and subject.conventions["lookup"] == "bytes":
        assert case.model is not None
        if not case.model.ranks_by_bytes:
            return "tables that are no list of ranks (lookup: bytes)"
    return None


def _pattern(case: Case) -> str:
    return case.model.pattern if case.model else "gpt2"


def judge(case: Case, subject: Subject) -> Difference | None:
    """Return how the answer differs from what the case expects, or None if it does not.

    Raises:
        TimedOut: if the surrounding limit runs out.
    """
    if case.op == "train":
        return _judge_training(case, subject)
    assert case.model is not None
    if case.op == "decode":
        return _judge_decoding(case, case.model, subject)
    if case.op == "batch":
        return _judge_batch(case, case.model, subject)
    if case.op == "save":
        return _judge_saving(case.model, subject)
    if case.op == "stream" and "lazy" in case.expect:
        return _judge_laziness(case, case.model, subject)
    if case.op == "stream":
        for chunks in chunkings(case):
            shown = ", ".join(map(show.text_line, chunks)) if len(chunks) <= 8 else f"{len(chunks)} chunks"
            found = _judge_ids(case, case.model, subject, _streaming(chunks), f"[{shown}]")
            if found is not None:
                return replace(found, chunks=tuple(chunks))
        return None
    text = whole_text(case)
    if case.op == "load":
        return _judge_loading(case, case.model, subject, text)
    return _judge_ids(case, case.model, subject, lambda handle: handle.encode(text), show.text_line(text))


def _streaming(chunks: list[str]) -> Callable[[Handle], list[int]]:
    return lambda handle: handle.stream(iter(chunks))


# Encodings: op encode, construct, stream, load


def _judge_ids(
    case: Case, model: Model, subject: Subject, ask: Any, shown: str, build: Any = None
) -> Difference | None:
    expect = value_for(case.expect, subject.conventions["lookup"])
    if expect is None:
        return None
    text = whole_text(case)
    got: list[int] | Fault
    spelled = b""
    try:
        handle: Handle = build() if build else subject.build(model)
        got = ask(handle) if case.op != "construct" else []
        if any("lossless" in one for one in _alternatives(expect)):
            spelled = _spelled(got, model, handle)
    except Fault as fault:
        got = fault
    if any(_ids_match(one, model, text, got, spelled) for one in _alternatives(expect)):
        return None
    line = f"{shown}{_hex(text)}        {_model_line(model)}"
    return _difference(line, _ids_line(expect, model, got), got, model, text, expect)


def _alternatives(expect: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for one in expect.get("any_of", (expect,)):
        if "by_convention" in one:
            yield from one["by_convention"].values()
        elif "any_of" in one:
            yield from _alternatives(one)
        else:
            yield one


def _spelled(ids: Sequence[int], model: Model, handle: Handle) -> bytes:
    """Return the bytes of `ids`: by the model, or, for the new id of a special token, by the implementation."""
    special = set(model.special_tokens or ())
    parts = []
    for index in ids:
        token = model.vocab.get(index, b"")
        if not token and special and (text := handle.decode([index])) in special:
            token = text.encode("utf-8")
        parts.append(token)
    return b"".join(parts)


def _ids_match(expect: Mapping[str, Any], model: Model, text: str, got: list[int] | Fault, spelled: bytes) -> bool:
    if isinstance(got, Fault):
        return "error" in expect and isinstance(got, Raised) and got.is_error
    if "error" in expect:
        return False
    if "with_new_ids" in expect:
        return has_new_ids([read_token(token) for token in expect["with_new_ids"]], model, got)
    if "lossless" in expect:
        return spelled == text.encode("utf-8", "surrogatepass")
    return got == expected_ids(expect)


def has_new_ids(tokens: Sequence[bytes], model: Model, got: Sequence[int]) -> bool:
    """Whether `got` stands for `tokens`, those without an entry in the model each with one id that is not in use."""
    entries = {token: index for index, token in model.vocab.items()}
    new: dict[bytes, int] = {}
    for token, index in zip(tokens, got, strict=False):
        if token in entries:
            if index != entries[token]:
                return False
        elif index < 0 or index in model.vocab or new.setdefault(token, index) != index:
            return False
    return len(tokens) == len(got) and len(set(new.values())) == len(new)


def expected_ids(expect: Mapping[str, Any]) -> list[int]:
    """Return the ids that an encoding expectation holds, from the file of stored ids if it names one."""
    if "stored" in expect:
        found: list[int] = _stored()[expect["stored"]]["ids"]
        return found
    ids: list[int] = expect["ids"]
    return ids


@lru_cache(maxsize=1)
def _stored() -> dict[str, Any]:
    stored: dict[str, Any] = json.loads((FOLDER / "texts" / "gpt2-ids.json").read_text("utf-8"))
    return stored


def _ids_line(expect: Mapping[str, Any], model: Model, got: list[int] | Fault) -> str:
    lines = []
    for one in _alternatives(expect):
        if "error" in one:
            lines.append(f"an error ({one['error']})")
        elif "with_new_ids" in one:
            tokens = " | ".join(show.token(read_token(token)) for token in one["with_new_ids"])
            lines.append(f"{tokens}, each without an entry with a new id of its own")
        elif "lossless" in one:
            lines.append("ids whose bytes are the text")
        else:
            ids = expected_ids(one)
            around = 0 if isinstance(got, Fault) else show.first_difference(ids, got)
            lines.append(show.ids(ids, model.vocab, around))
    return "  or  ".join(lines)


def _difference(
    line: str, expected: str, got: list[int] | Fault, model: Model, text: str, expect: Mapping[str, Any]
) -> Difference:
    if isinstance(got, Fault):
        return _faulty(line, expected, got)
    plain = next((one for one in _alternatives(expect) if "ids" in one or "stored" in one), None)
    diverges, around = "", 0
    if plain is not None:
        ids = expected_ids(plain)
        around = show.first_difference(ids, got)
        diverges = diagnosis.encoding(model, text, ids, got) if text.isprintable() or _encodable(text) else ""
    return Difference(line, expected, show.ids(got, model.vocab, around), diverges)


def _encodable(text: str) -> bool:
    return not any(0xD800 <= ord(char) < 0xE000 for char in text)


def _faulty(line: str, expected: str, fault: Fault) -> Difference:
    return Difference(line, expected, str(fault), "", fault.where if isinstance(fault, Raised) else ())


def _hex(text: str) -> str:
    if len(text) > 24:
        return ""
    return f"  = {show.hex_line(text.encode('utf-8', 'surrogatepass'))}" if text else ""


def _model_line(model: Model) -> str:
    if model.name == "gpt2":
        return "model gpt2"
    name = f"model {model.name}: " if model.name else ""
    special = f", special tokens {list(model.special_tokens)!a}" if model.special_tokens else ""
    missing = sorted({bytes([byte]) for byte in range(256)} - set(model.vocab.values()))
    special += f", a vocabulary without {', '.join(map(show.token, missing))}" if missing else ""
    pattern = f", pattern {model.pattern}" if model.pattern != "gpt2" else ""
    return f"{name}merges {show.merges(model.merges)}{special}{pattern}"


def _judge_loading(case: Case, model: Model, subject: Subject, text: str) -> Difference | None:
    with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
        options = {key: value for key, value in case.input.items() if key != "text"}
        vocab, merges = gpt2_files.write(model, Path(folder), **options)

        def build() -> Handle:
            return subject.from_files(vocab, merges, model.special_tokens)

        return _judge_ids(case, model, subject, lambda handle: handle.encode(text), show.text_line(text), build)


def _judge_saving(model: Model, subject: Subject) -> Difference | None:
    line = f"save of {_model_line(model)}"
    expected = "vocab.json and merges.txt that hold the same table"
    with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
        try:
            subject.build(model).save(Path(folder))
            vocab, merges = gpt2_files.read(Path(folder))
        except Fault as fault:
            return _faulty(line, expected, fault)
        except ValueError as error:
            return Difference(line, expected, str(error))
    special = {token.encode("utf-8") for token in model.special_tokens or ()}
    if merges != list(model.merges):
        place = show.first_difference(merges, model.merges)
        return Difference(line, expected, f"merges.txt holds {show.merges(merges, place)}", f"at merge {place}")
    for index, token in model.vocab.items():
        if vocab.get(index) != token:
            given = show.token(vocab[index]) if index in vocab else "no entry"
            return Difference(line, expected, f"vocab.json has {given} at id {index}, not {show.token(token)}")
    extra = [index for index, token in vocab.items() if index not in model.vocab and token not in special]
    if extra:
        return Difference(line, expected, f"vocab.json has an entry too many at id {extra[0]}")
    return None


def _judge_batch(case: Case, model: Model, subject: Subject) -> Difference | None:
    texts = [read_text(text) for text in case.input["texts"]]
    expected = [row["ids"] for row in case.expect["batch"]]
    line = f"{show.text_line(repr(texts))}        {_model_line(model)}"
    wanted = f"{len(expected)} lists: {show.text_line(repr(expected))}"
    try:
        got = subject.build(model).encode_batch(texts)
    except Fault as fault:
        return _faulty(line, wanted, fault)
    if got == expected:
        return None
    place = show.first_difference(expected, got)
    return Difference(line, wanted, show.text_line(repr(got)), f"at text {place}")


HELD_BACK = 16_384
"""How many characters a lazy stream may hold back, beside the longest chunk, pre-token and special token."""


def _judge_laziness(case: Case, model: Model, subject: Subject) -> Difference | None:
    chunks = chunkings(case)[0]
    read = emitted = most = 0

    def counted() -> Iterator[str]:
        nonlocal read
        for chunk in chunks:
            read += len(chunk)
            yield chunk

    def seen(index: int) -> None:
        nonlocal emitted, most
        most = max(most, read - emitted)
        emitted += len(model.vocab.get(index, b""))

    text = "".join(chunks)
    longest = [chunks, model.special_tokens or ("",), textbook.split(text, PATTERNS[model.pattern])]
    bound = HELD_BACK + sum(max(map(len, parts)) for parts in longest)
    line = f"{len(chunks)} chunks of {show.text_line(chunks[0])}        {_model_line(model)}"
    expected = f"at most {bound:,} characters held back at any time"
    try:
        subject.build(model).watch_stream(counted(), seen)
    except Fault as fault:
        return _faulty(line, expected, fault)
    return None if most <= bound else Difference(line, expected, f"{most:,} of {len(text):,} characters held back")


def _judge_decoding(case: Case, model: Model, subject: Subject) -> Difference | None:
    ids: list[int] = case.input["ids"]
    line = f"ids {show.ids(ids, model.vocab)}        {_model_line(model)}"
    alternatives = case.expect.get("any_of", (case.expect,))
    wanted = "  or  ".join(
        f"an error ({one['error']})" if "error" in one else show.text_line(read_text(one["text"]))
        for one in alternatives
    )
    try:
        handle = subject.build(model)
        got = handle.decode(ids)
    except Fault as fault:
        if isinstance(fault, Raised) and fault.is_error and any("error" in one for one in alternatives):
            return None
        return _faulty(line, wanted, fault)
    texts = [read_text(one["text"]) for one in alternatives if "text" in one]
    if got not in texts:
        return Difference(line, wanted, show.text_line(got), diagnosis.decoding(texts[0], got) if texts else "")
    if "decode_bytes" not in subject.capabilities:
        return None
    found = case.expect
    data = read_token(found["bytes"]) if "bytes" in found else got.encode("utf-8")
    try:
        got_bytes = handle.decode_bytes(ids)
    except Fault as fault:
        return _faulty(line, f"decode_bytes gives {show.hex_line(data)}", fault)
    if got_bytes == data:
        return None
    return Difference(line, f"bytes {show.hex_line(data)}", f"bytes {show.hex_line(got_bytes)} from decode_bytes")


# Training


def _judge_training(case: Case, subject: Subject) -> Difference | None:
    given = case.input["train"]
    text, size = read_text(given["text"]), given["vocab_size"]
    special = [read_text(token) for token in given["special_tokens"]]
    named = [token for token in special if token]
    pattern = given.get("pattern", "gpt2")
    line = f"{show.text_line(text)}, vocab_size {size}, special tokens {special!a}"
    line += f", pattern {pattern}" if pattern != "gpt2" else ""
    conventions = subject.conventions
    key = training_key(conventions["tie_break"], conventions["byte_order"])
    alternatives = list(case.expect.get("any_of", (case.expect,)))
    wanted_error = any("error" in one for one in alternatives)
    values = [value_for(one, key) for one in alternatives if "error" not in one]
    accepted = [read_merges(value["merges"]) for value in values if value]
    expected = accepted[0] if accepted else []
    shown = "an error" if wanted_error else f"merges {show.merges(expected)}"
    try:
        trained = subject.train(text, size, special, pattern)
    except Fault as fault:
        if wanted_error and isinstance(fault, Raised) and fault.is_error:
            return None
        return _faulty(line, shown, fault)
    if not values:
        return Difference(line, shown, f"a vocabulary of {len(trained.vocab)}")
    words = textbook.corpus(text, special, PATTERNS[pattern])
    if key == "unspecified" or not accepted:
        distinct = len(dict.fromkeys(named))
        found = _judge_any_maximum(words, size - 256 - distinct, trained.merges, line)
        expected = trained.merges
    elif trained.merges in accepted:
        found, expected = None, trained.merges
    else:
        around = show.first_difference(expected, trained.merges)
        found = Difference(
            line,
            f"merges {show.merges(expected, around)}",
            f"merges {show.merges(trained.merges, around)}",
            diagnosis.training(words, expected, trained.merges),
        )
    return found or _judge_vocab(case, line, expected, named, trained, conventions)


def _judge_any_maximum(
    words: list[textbook.Word], wanted: int, merges: Sequence[Merge], line: str
) -> Difference | None:
    """Judge training step by step: each merge is a pair of the highest count (tie_break: unspecified)."""
    for step in range(wanted):
        counts = textbook.count_pairs(words)
        if not counts:
            wanted = step
            break
        most = max(counts.values())
        best = [pair for pair, count in counts.items() if count == most]
        chosen = merges[step] if step < len(merges) else None
        if chosen not in best:
            got = f"{show.pair(chosen)} with count {counts[chosen]}" if chosen else "the end of training"
            where = f"at step {step + 1}"
            return Difference(line, f"a pair of count {most}: {show.merges(best)}", got, where)
        words = [textbook.replace(word, chosen) for word in words]
    if len(merges) > wanted:
        return Difference(line, f"{wanted} merges", f"{len(merges)} merges", f"at step {wanted + 1}")
    return None


def _judge_vocab(
    case: Case,
    line: str,
    merges: Sequence[Merge],
    special: Sequence[str],
    trained: Trained,
    conventions: Mapping[str, str],
) -> Difference | None:
    expected = textbook.number(merges, special, conventions["byte_order"], conventions["id_layout"])
    if case.clause.id == "TRAIN-IDS-2":
        if trained.vocab == expected:
            return None
        index = min(i for i in {*expected, *trained.vocab} if expected.get(i) != trained.vocab.get(i))
        wanted = show.token(expected[index]) if index in expected else "no entry"
        got = show.token(trained.vocab[index]) if index in trained.vocab else "no entry"
        return Difference(line, f"id {index} is {wanted}", f"id {index} is {got}", f"at id {index}")
    wanted_tokens, got_tokens = Counter(expected.values()), Counter(trained.vocab.values())
    if case.clause.id != "TRAIN-IDS-1":
        wanted_tokens, got_tokens = Counter(set(wanted_tokens)), Counter(set(got_tokens))
    if wanted_tokens == got_tokens:
        return None
    missing, extra = wanted_tokens - got_tokens, got_tokens - wanted_tokens
    told = [f"{show.token(token)} is missing" for token in list(missing)[:3]]
    told += [f"{show.token(token)} is too many" for token in list(extra)[:3]]
    return Difference(
        line, f"a vocabulary of {sum(wanted_tokens.values())} tokens", ", ".join(told), "in the vocabulary"
    )
