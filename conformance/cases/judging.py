"""Judges one golden case: asks the implementation, compares with the expectation, and says what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from bpe_conformance.fixtures import PATTERNS, Model, read_text, read_token
from bpe_conformance.fixtures.spec import Case
from bpe_conformance.reference import textbook

from ..implementation import gpt2_files
from ..implementation.containment import CallFailed, Raised
from ..implementation.implementation import Implementation
from ..implementation.proxy import TokenizerProxy
from ..implementation.scratch import scratch_folder
from ..terminal import show
from . import dependence, divergence
from .difference import Difference, faulty
from .encoding import judge_ids, model_line
from .expectations import choice, chunkings, whole_text, with_allowed
from .training import judge_training
from .without_special import adapted

NEEDS = {
    "train": "train",
    "encode": "encode",
    "encode_allowed": "allowed_special",
    "construct": "encode",
    "decode": "decode",
    "stream": "encode_iterable",
    "batch": "encode_batch",
    "save": "save",
    "load": "from_files",
}


def skip_reason(case: Case, implementation: Implementation) -> str | None:
    """Return what the case needs and the implementation does not claim, or None."""
    needs = NEEDS[case.op]
    if needs not in implementation.capabilities:
        return needs
    if case.op == "load" and "encode" not in implementation.capabilities:
        return "encode"
    if implementation.fixed_model is not None:
        name = case.model.name if case.model else ""
        return None if name == implementation.fixed_model else "other models than its own"
    kind = "train-pattern" if case.op == "train" else "pattern"
    if case.pattern != "gpt2" and f"{kind}:{case.pattern}" not in implementation.capabilities:
        return f"{kind}:{case.pattern}"
    if adapted(case, implementation) is None:
        return "special tokens in train" if case.op == "train" else "special tokens"
    if case.op != "train" and implementation.conventions["lookup"] == "bytes":
        assert case.model is not None
        if not case.model.ranks_by_bytes:
            return "tables that are no list of ranks (lookup: bytes)"
    return None


def judge(case: Case, implementation: Implementation) -> Difference | None:
    """Return how the answer differs from what the case expects, or None if it does not.

    Raises:
        TimedOut: if the surrounding limit runs out.
    """
    case = adapted(case, implementation) or case
    if case.op == "train":
        return judge_training(case, implementation)
    assert case.model is not None
    if case.op == "decode":
        return _judge_decoding(case, case.model, implementation)
    if case.op == "batch":
        return _judge_batch(case, case.model, implementation)
    if case.op == "save":
        return _judge_saving(case.model, implementation)
    if case.op == "stream" and "lazy" in case.expect:
        return _judge_laziness(case, case.model, implementation)
    if case.op == "stream":
        for chunks in chunkings(case):
            shown = ", ".join(map(show.text_line, chunks)) if len(chunks) <= 8 else f"{len(chunks)} chunks"
            found = judge_ids(case, case.model, implementation, _streaming(chunks), f"[{shown}]")
            if found is not None:
                return replace(found, chunks=tuple(chunks))
        return None
    text = whole_text(case)
    if case.op == "load":
        return _judge_loading(case, case.model, implementation, text)
    if case.op == "encode_allowed":
        return _judge_choosing(case, case.model, implementation, text)
    return judge_ids(case, case.model, implementation, lambda proxy: proxy.encode(text), show.text_line(text))


def _streaming(chunks: list[str]) -> Callable[[TokenizerProxy], list[int]]:
    return lambda proxy: proxy.stream(iter(chunks))


def _judge_choosing(case: Case, model: Model, implementation: Implementation, text: str) -> Difference | None:
    chosen, like = choice(case), with_allowed(case)
    got: list[int] = []

    def ask(proxy: TokenizerProxy) -> list[int]:
        got[:] = proxy.encode_allowed(text, **chosen)
        return got

    asked = f", {show.choice(**chosen)}, of the special tokens {list(model.special_tokens or ())!a}"
    found = judge_ids(case, like, implementation, ask, show.text_line(text), lambda: implementation.build(model), asked)
    others = {token.encode("utf-8") for token in {*(model.special_tokens or ())}.difference(like.special_tokens or ())}
    wrong = next((model.vocab[index] for index in got if model.vocab.get(index) in others), None)
    if found is None or wrong is None:
        return found
    return replace(found, diverges=f"the special token {show.token(wrong)} is found, though it is not allowed")


def _judge_loading(case: Case, model: Model, implementation: Implementation, text: str) -> Difference | None:
    with scratch_folder() as folder:
        options = {key: value for key, value in case.input.items() if key != "text"}
        vocab, merges = gpt2_files.write(model, folder, **options)

        def build() -> TokenizerProxy:
            return implementation.from_files(vocab, merges, model.special_tokens)

        return judge_ids(case, model, implementation, lambda proxy: proxy.encode(text), show.text_line(text), build)


def _judge_saving(model: Model, implementation: Implementation) -> Difference | None:
    line = f"save of {model_line(model)}"
    expected = "vocab.json and merges.txt that hold the same table"
    with scratch_folder() as folder:
        try:
            implementation.build(model).save(folder)
            vocab, merges = gpt2_files.read(folder)
        except CallFailed as fault:
            return faulty(line, expected, fault)
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


def _judge_batch(case: Case, model: Model, implementation: Implementation) -> Difference | None:
    texts = [read_text(text) for text in case.input["texts"]]
    expected = [row["ids"] for row in case.expect["batch"]]
    line = f"{show.text_line(repr(texts))}        {model_line(model)}"
    wanted = f"{len(expected)} lists: {show.text_line(repr(expected))}"
    try:
        got = implementation.build(model).encode_batch(texts)
    except CallFailed as fault:
        return faulty(line, wanted, fault)
    if got == expected:
        return None
    place = show.first_difference(expected, got)
    found = Difference(line, wanted, show.text_line(repr(got)), f"at text {place}")
    if place >= min(len(got), len(texts)):
        return found
    return replace(found, depends=dependence.on_encode(texts[place], model, implementation, got[place]))


HELD_BACK = 16_384
"""How many characters a lazy stream may hold back, beside the longest chunk, pre-token and special token."""


def _judge_laziness(case: Case, model: Model, implementation: Implementation) -> Difference | None:
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
    line = f"{len(chunks)} chunks of {show.text_line(chunks[0])}        {model_line(model)}"
    expected = f"at most {bound:,} characters held back at any time"
    try:
        implementation.build(model).watch_stream(counted(), seen)
    except CallFailed as fault:
        return faulty(line, expected, fault)
    return (
        None
        if most <= bound
        else Difference(line, expected, f"{most:,} of {len(text):,} characters held back", answer="held back")
    )


def _judge_decoding(case: Case, model: Model, implementation: Implementation) -> Difference | None:
    ids: list[int] = case.input["ids"]
    named = "a tuple of ids" if case.input.get("sequence") == "tuple" else "ids"
    line = f"{named} {show.ids(ids, model.vocab)}        {model_line(model)}"
    alternatives = case.expect.get("any_of", (case.expect,))
    wanted = "  or  ".join(
        f"an error ({one['error']})" if "error" in one else show.text_line(read_text(one["text"]))
        for one in alternatives
    )
    texts = [read_text(one["text"]) for one in alternatives if "text" in one]
    refuses = len(texts) < len(alternatives)
    proxy: TokenizerProxy | None = None
    try:
        proxy = implementation.build(model)
        got = proxy.decode(tuple(ids) if case.input.get("sequence") == "tuple" else ids)
    except CallFailed as fault:
        if not (refuses and isinstance(fault, Raised) and fault.is_error):
            return faulty(line, wanted, fault)
        if proxy is None or texts or "decode_bytes" not in implementation.capabilities:
            return None
        return _judge_refusal(ids, proxy, line, f"{wanted} from decode_bytes as well")
    if got not in texts:
        whole = b"".join(model.vocab.get(index, b"") for index in ids)
        return Difference(line, wanted, show.text_line(got), divergence.decoding(whole, texts[0], got) if texts else "")
    if "decode_bytes" not in implementation.capabilities:
        return None
    found = case.expect
    data = read_token(found["bytes"]) if "bytes" in found else got.encode("utf-8")
    try:
        got_bytes = proxy.decode_bytes(ids)
    except CallFailed as fault:
        return faulty(line, f"decode_bytes gives {show.hex_line(data)}", fault)
    if got_bytes == data:
        return None
    return Difference(line, f"bytes {show.hex_line(data)}", f"bytes {show.hex_line(got_bytes)} from decode_bytes")


def _judge_refusal(ids: list[int], proxy: TokenizerProxy, line: str, wanted: str) -> Difference | None:
    try:
        got = proxy.decode_bytes(ids)
    except CallFailed as fault:
        return None if isinstance(fault, Raised) and fault.is_error else faulty(line, wanted, fault)
    return Difference(line, wanted, f"bytes {show.hex_line(got)} from decode_bytes")
