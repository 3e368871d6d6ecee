"""Properties of `encode` and `decode`: merges, unchanged arguments, splits, special tokens, pipelines."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import combinations, cycle, islice, pairwise, product
from typing import Any

from hypothesis import strategies as st

from bpe_conformance.fixtures import Merge, Model
from bpe_conformance.fixtures import pipeline as values
from bpe_conformance.fixtures.characters import NORMAL_FORMS
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Digits, Punctuation, Split, Step
from bpe_conformance.reference import textbook

from ..answer import Accepted, Answer, AnyError, Changed, Fault, Ids, NewIds, Refusal, Text, Unchanged
from ..implementation.implementation import Implementation, constructor_arguments
from ..implementation.proxy import CallFailed, TimedOut, TokenizerProxy
from ..operations import (
    Batch,
    Construct,
    Decode,
    DecodeBytes,
    Detokenize,
    Encode,
    EncodeAllowed,
    EncodeWithOffsets,
    Expected,
    Operation,
    Question,
    Stream,
    oracle,
    pieces,
)
from ..operations.setting import Setting
from ..outcome import Expectation, Mismatch
from . import strategies
from .asking import (
    HASH_SEEDS,
    OTHER_PROCESSES,
    Instance,
    ask,
    correct_answer,
    equals_oracle,
    is_correct,
    is_lost,
    judged,
    odd_lists_kept,
    undisturbed,
)
from .engine import Drawn, Fixed, Property, Verdicts
from .strategies import Encodings, Pieces, some_bytes, table

NEEDS = ("encode", "special")
CHOOSING = (*NEEDS, "allowed_special")


@Drawn("law-arguments", "LAW-PURE-1", ("encode", "shared memory"), strategies.mixed_encodings, 10)
def arguments(implementation: Implementation, question: Question[Encode]) -> Verdicts:
    """The constructor, `encode` and `decode` change none of the caller's lists, sets and mappings."""
    model, text = question.table, question.operation.text
    names = ("vocab", "merges", "special_tokens")
    given, before = (dict(zip(names, constructor_arguments(model, {})[0], strict=False)) for _ in range(2))
    instance = Instance(implementation, partial(implementation.build_from, list(given.values())))

    def calls() -> Iterator[tuple[Question[Any], Answer]]:
        yield (made := Question(Construct(), model)), instance.ask(made)
        encoded = instance.ask(question)
        yield question, encoded
        if isinstance(encoded, Ids) and "decode" in implementation.capabilities:
            ids, before["ids"] = list(encoded.ids), list(encoded.ids)
            given["ids"] = ids
            yield Question(Decode(encoded.ids), model), instance.call(lambda one: Text(one.decode_itself(ids)))
        if "allowed_special" in implementation.capabilities:
            special = list(model.special_tokens or ())
            unknown, given["allowed_special"], given["disallowed_special"] = ({*special, "<absent>"} for _ in range(3))
            before["allowed_special"] = before["disallowed_special"] = unknown
            odd = EncodeAllowed("kl", tuple(sorted(unknown)), tuple(sorted(unknown)))
            sets = given["allowed_special"], given["disallowed_special"]
            instance.call(lambda one: Ids(tuple(one.encode_allowed_itself("kl", *sets))))
            yield Question(odd, model), Accepted()  # what a string that is not special means is open
            before.pop("disallowed_special")
            allowed, before["allowed_special"] = set(special), set(special)
            given["allowed_special"] = allowed
            absent = tuple(token for token in special if token and token not in text)
            asked = Question(EncodeAllowed(text, tuple(special), absent), model)
            yield asked, instance.call(lambda one: Ids(tuple(one.encode_allowed_itself(text, allowed, absent))))
            disallowed, before["disallowed_special"] = {*special, "<absent>"}, {*special, "<absent>"}
            given["disallowed_special"] = disallowed
            both = Question(EncodeAllowed("kl", tuple(special), tuple(sorted(disallowed))), model)
            yield both, instance.call(lambda one: Ids(tuple(one.encode_allowed_itself("kl", allowed, disallowed))))

    if "special" in implementation.capabilities:
        listed = replace(model, special_tokens=(*(model.special_tokens or ()), "<|new|>"))
        passed, as_before = (constructor_arguments(listed, {})[0] for _ in range(2))
        Instance(implementation, partial(implementation.build_from, passed)).ask(Question(Construct(), listed))
        compared = zip(names, passed, as_before, strict=True)
        changed = tuple(f"the caller's {name} changed" for name, now, was in compared if now != was)
        if changed:
            asked = Question(Construct(), listed, "with the caller's own lists and mappings")
            yield Mismatch(asked, Expectation((Unchanged(),)), Changed(changed), clause_id="ERROR-STATE-1")
    for asked, answer in calls():
        changed = tuple(f"the caller's {name} changed" for name, was in before.items() if given[name] != was)
        if changed:
            asked = replace(asked, context="with the caller's own lists and mappings")
            yield Mismatch(asked, Expectation((Unchanged(),)), Changed(changed))
        if isinstance(answer, Refusal | Fault):
            return  # for other properties to find


MANY = 1_100  # items of a list, of which many are not in their order


def _kept(
    id_: str,
    noun: str,
    kind: Callable[[tuple[Any, ...]], Operation],
    items: Sequence[Any],
    call: Callable[[TokenizerProxy, list[Any]], object],
) -> Property:
    method = kind(()).needs[0]

    def test(implementation: Implementation) -> Verdicts:
        model = strategies.with_ids([(b"k", b"l")])
        for count in (2, MANY):
            given = [items[at % len(items)] for at in range(count)]
            asked, passed = Question(kind(tuple(given)), model, "with a list that the caller keeps"), [*given]

            def called(proxy: TokenizerProxy, passed: list[Any] = passed) -> Answer:
                call(proxy, passed)
                return Accepted()

            Instance(implementation, model).call(called)
            if passed != given:
                yield Mismatch(asked, Expectation((Unchanged(),)), Changed((f"the caller's {noun} changed",)))

    asks = f"`{method}` does not change a list of {noun}, even a long one."
    return replace(Fixed(id_, "LAW-PURE-1", (method, "shared memory"))(test), asks=asks)


_UNSORTED = "klkl", "kl", "", "m k", "klkl"
KEPT = (
    _kept("law-kept-texts", "texts", Batch, _UNSORTED, lambda proxy, passed: proxy.returned("encode_batch", passed)),
    _kept("law-kept-chunks", "chunks", Stream, _UNSORTED, lambda proxy, passed: proxy.stream(passed)),
    _kept("law-kept-ids", "ids", Decode, (256, 107, 256, 109, 32), lambda proxy, passed: proxy.decode_itself(passed)),
)


@Fixed("law-special-list", "ERROR-STATE-1", (*NEEDS, "shared memory"))
def list_passed_to_the_constructor(implementation: Implementation) -> Verdicts:
    """The constructor does not change its list of special tokens, which can be long, or have empty or repeated ones."""
    model = strategies.with_ids((), special=["<e>", "<f>"])

    def build(passed: list[str]) -> object:
        return implementation.build_from([*constructor_arguments(model, {})[0][:2], passed])

    yield from odd_lists_kept(
        implementation, lambda listed: Question(Construct(), replace(model, special_tokens=listed)), build
    )


CHANGED = "kl \u00e9 kl<s>"
SHAPES = ("", "k", "kl", "<s>", CHANGED, "kl " * 700)
"""Texts whose ids code may keep ready: an empty one, one byte, one token, a special token, and a long one."""


def _returned_changed(implementation: Implementation, model: Model, *operations: Operation) -> Verdicts:
    tokenizer = Instance(implementation, model)
    operations = tuple(one for one in operations if {*one.needs} <= implementation.capabilities)
    for operation in operations:
        asked = Question[Any](operation, model, "after the caller changed what it returned")
        yield undisturbed(implementation, asked, tokenizer.call(partial(_after_change, operation)))
    for operation, later in pairwise(operations):
        answer = tokenizer.call(partial(_after_another, operation, later))
        if isinstance(answer, Changed):
            asked = Question[Any](operation, model, "with a result that the caller keeps")
            yield Mismatch(asked, Expectation((Unchanged(),)), answer, clause_id="LAW-PURE-1")


def _after_another(operation: Operation, later: Operation, tokenizer: TokenizerProxy) -> Answer:
    """Return `Changed` if a later call changes what a call returned."""
    call, other = operation.call(), later.call()
    kept = tokenizer.returned(call.method, *call.arguments or (), **call.keywords)
    before = _values(kept)
    tokenizer.returned(other.method, *other.arguments or (), **other.keywords)
    return Ids(()) if _values(kept) == before else Changed(("a later call changed the result",))


def _values(result: Any) -> Any:
    """Return the values in lists and arrays; None for other objects, whose comparison could run any code."""
    if type(result) in (list, tuple):
        return [_values(part) for part in result]
    if type(result) is int:
        return result
    if type(result) in (bytearray, memoryview):
        return bytes(result)
    return _values(result.tolist()) if hasattr(result, "tolist") else None


def _after_change(operation: Operation, tokenizer: TokenizerProxy) -> Answer:
    call = operation.call()
    for _ in range(2):  # a cache may hand out its own list the second time
        _change(tokenizer.returned(call.method, *call.arguments or (), **call.keywords))
    return operation.of(tokenizer)


SAME_LIST = Changed(("two rows are the same list",))


def _rows_apart(operation: Batch, has_encode: bool, tokenizer: TokenizerProxy) -> Answer:
    """Return `SAME_LIST` if two rows of a batch are the same list, unless `encode` returns one list twice, too."""

    def encode(text: str) -> Any:
        return tokenizer.returned("encode", text)

    if has_encode and any(_repeats_a_list((encode(text), encode(text))) for text in SHAPES):
        return Accepted()  # for other properties to find
    rows = tokenizer.returned("encode_batch", [*operation.batch])
    return SAME_LIST if _repeats_a_list(rows) else Accepted()


def _repeats_a_list(results: Any) -> bool:
    lists = [id(one) for one in results if type(one) is list] if type(results) in (list, tuple) else []
    return len({*lists}) < len(lists)


def _change(result: Any) -> None:
    for part in result if type(result) in (list, tuple) else ():
        _change(part)
    if type(result) in (list, bytearray):
        result.reverse()
        result.append(0)


@Fixed("law-lists-allowed", "ERROR-STATE-1", (*CHOOSING, "shared memory"))
def allowed_changed(implementation: Implementation) -> Verdicts:
    """`encode` with a choice of special tokens is correct after returned lists change."""
    model = strategies.with_ids([(b"k", b"l")], special=["<s>"])
    yield from _returned_changed(implementation, model, *(EncodeAllowed(text, "all", ()) for text in SHAPES))


def _shapes_changed(implementation: Implementation, *kinds: Callable[[str], Operation]) -> Verdicts:
    special = ["<s>"] if "special" in implementation.capabilities else []
    model = strategies.with_ids([(b"k", b"l")], special=special)
    yield from _returned_changed(implementation, model, *(kind(text) for kind, text in product(kinds, SHAPES)))


@Fixed("law-lists-texts", "ERROR-STATE-1", ("encode", "shared memory"))
def ids_changed(implementation: Implementation) -> Verdicts:
    """`encode` is correct after returned ids change, whatever the text."""
    yield from _shapes_changed(implementation, Encode)


@Fixed("law-lists-batches", "ERROR-STATE-1", ("encode_batch", "shared memory"))
def rows_changed(implementation: Implementation) -> Verdicts:
    """`encode_batch` is correct after returned rows change, whatever the texts. No two rows are the same list."""
    yield from _shapes_changed(implementation, lambda text: Batch((text,)), lambda text: Batch((text, "l")))
    asked = Question(Batch(tuple(islice(cycle(SHAPES[:-1]), MANY))), strategies.with_ids([(b"k", b"l")]))
    has_encode = "encode" in implementation.capabilities
    if Instance(implementation, asked.table).call(partial(_rows_apart, asked.operation, has_encode)) == SAME_LIST:
        yield Mismatch(asked, Expectation((Unchanged(),)), SAME_LIST, clause_id="LAW-PURE-1")


@Fixed("law-lists-offsets", "ERROR-STATE-1", ("encode_with_offsets", "shared memory"))
def spans_changed(implementation: Implementation) -> Verdicts:
    """`encode_with_offsets` is correct after returned ids and spans change, whatever the text."""
    yield from _shapes_changed(implementation, EncodeWithOffsets)


@Fixed("law-lists-bytes", "ERROR-STATE-1", ("decode_bytes", "shared memory"))
def bytes_changed(implementation: Implementation) -> Verdicts:
    """`decode_bytes` is correct after a bytearray that it returned changes. No two calls return the same bytearray."""
    model = strategies.with_ids([(b"k", b"l")])
    yield from _returned_changed(implementation, model, *map(DecodeBytes, ((), (107,), (256,), (256, 107) * 700)))


@Fixed("law-lists-pipeline", "ERROR-STATE-1", ("from_tokenizer_json", "shared memory"))
def changed_with_pipeline(implementation: Implementation) -> Verdicts:
    """Methods of a tokenizer with a pipeline are correct after returned lists change."""
    pipeline = values.Pipeline(("NFC",), (AddedToken("<s>"),), (ByteLevel(),))
    model = replace(strategies.with_ids([(b"k", b"l")], special=["<s>"]), special_tokens=None, pipeline=pipeline)
    for kind in (Encode, lambda text: Batch((text, CHANGED)), EncodeWithOffsets):
        yield from _returned_changed(implementation, model, *map(kind, SHAPES))


# Splitting


def _of_other_patterns(implementation: Implementation) -> Encodings:
    return strategies.splits(implementation, strategies.patterns(implementation)[1:])


PROBES = "1{0}Aa{0}..{0}\t{0}\t\t"
BESIDE = (("1", "A"), ("a", "."), (".", "\t"), ("\t", "\t"))  # the texts before and after a character in the probes


@cache
def _beside_characters() -> Model:
    """Return merges of which one is applied if a boundary beside a character in a text of `PROBES` is missing."""
    firsts = [bytes([byte]) for byte in (*range(0xC2, 0xF5), *range(0x20), 0x7F)]
    lasts = [bytes([byte]) for byte in (*range(0x80, 0xC0), *range(0x20), 0x7F)]
    befores, afters = ([text.encode() for text in dict.fromkeys(column)] for column in zip(*BESIDE, strict=True))
    merges: list[Merge] = [*product(befores, firsts), *product(lasts, afters)]
    distinct = {left + right: (left, right) for left, right in reversed(merges)}
    return strategies.with_ids(list(distinct.values()))


def _characters(implementation: Implementation) -> Encodings:
    def build(pattern: str, chars: str) -> Question[Encode]:
        text = "".join(map(PROBES.format, chars))
        return Question(Encode(text), replace(_beside_characters(), pattern=pattern))

    names = [name for name in strategies.patterns(implementation) if name != "none"]
    return st.builds(build, st.sampled_from(names), strategies.some_characters())


# Special tokens


_with_disallowed = partial(strategies.allowed_encodings, disallowed=True)
CHOICES = ("<a>", "<b>", "<c>")


@Fixed("law-allowed-choices", "MERGE-STATE-1", CHOOSING)
def each_choice(implementation: Implementation) -> Verdicts:
    """One tokenizer finds the special tokens that are allowed, whatever other choices were passed to it before."""
    model = strategies.with_ids((), special=CHOICES)
    chosen = [choice for count in range(len(CHOICES) + 1) for choice in combinations(CHOICES, count)]
    calls = [EncodeAllowed("x<c>y<a><b>z", choice, ()) for choice in chosen]
    calls += [EncodeAllowed("x<b>y", (), choice) for choice in chosen]
    tokenizer = Instance(implementation, model)
    for call in (*calls, *reversed(calls)):
        question = Question(call, model, "after other choices")
        yield undisturbed(implementation, question, tokenizer.ask(question))


@Fixed("law-lookup-special", "MERGE-LOOKUP-1", CHOOSING)
def special_as_pre_token(implementation: Implementation) -> Verdicts:
    """A special token that the call does not allow is no token of the lookups `bytes` and `whole`."""
    if implementation.conventions["lookup"] == "pair":
        return
    model = strategies.with_ids(((b"k", b"l"),), special=("<|kl|>", "klm", "mm"))
    for text in ("<|kl|>", "klm", "mm", "klmm"):
        found = equals_oracle(implementation, Question(EncodeAllowed(text, (), ()), model), "MERGE-LOOKUP-1")
        if found is not None and text == "<|kl|>":
            return  # it ignores the choice, or refuses it; SPECIAL-ALLOWED-1 is a SHOULD
        yield found


def _absent_tokens(implementation: Implementation) -> Encodings:
    def without_entries(question: Question[Encode], unrelated: bool) -> Question[Encode]:
        model = question.table
        special = model.special_tokens or ()
        absent = {token.encode("utf-8") for token in special}
        vocab = {index: token for index, token in model.vocab.items() if token not in absent}
        if unrelated and implementation.conventions["lookup"] != "bytes":
            vocab[5000] = b"no such pre-token"
        return replace(question, model=replace(model, vocab=vocab))

    return st.builds(without_entries, strategies.special_encodings(implementation), st.booleans())


@Drawn("law-special-absent", "SPECIAL-ABSENT-2", NEEDS, _absent_tokens, 30)
def absent(implementation: Implementation, question: Question[Encode]) -> Verdicts:
    """A special token without an entry gets its own id, or is refused."""
    model = question.table
    text, special = question.operation.text, model.special_tokens or ()
    plain = oracle(replace(model, special_tokens=None), implementation.conventions)
    tokens: list[bytes] = []
    for segment, is_special in textbook.cut_special(text, special):
        tokens += [segment.encode("utf-8")] if is_special else plain.tokens(segment)
    expected = Expected({"": (NewIds(tuple(tokens)), AnyError("a special token without an entry"))})
    yield judged(implementation, question, expected, "SPECIAL-ABSENT-2")


@Drawn("law-decode-first", "LAW-PURE-1", ("decode", *NEEDS), _absent_tokens, 4)
def decoded_first(implementation: Implementation, question: Question[Encode]) -> Verdicts:
    """A tokenizer that has encoded nothing decodes the id of a special token without an entry."""
    tokenizer = Instance(implementation, question.table)
    ids = tokenizer.ask(question)
    if not isinstance(ids, Ids):
        return
    context = "as the first call of a new tokenizer; another one gave the ids"
    asked = Question(Decode(ids.ids), question.model, context)
    right = tokenizer.ask(asked)
    if right == Text(question.operation.text) and (answer := ask(implementation, asked)) != right:
        yield Mismatch(asked, Expectation((right,)), answer)


ORDERED = ("<|a|>", "<|a|><|a|>", "<|a", "|><|", "a|>x", "aa", "aaa", "aaaa", "ab", "abc", "bc", "bcd", "cd")
ORDERED_TEXT = "aaaaabcd<|a|><|a|><|a|>xabcbcdaaa<|a<|a|"


@Fixed("law-hash-seed-special", "SPECIAL-ORDER-1", (*NEEDS, "new process"))
def hash_seed(implementation: Implementation) -> Verdicts:
    """Special tokens that overlap, in several orders, are found in the same way in a process with another hash seed."""
    context = f"in a new process with PYTHONHASHSEED={HASH_SEEDS[0]}"
    try:
        other = implementation.elsewhere(OTHER_PROCESSES[0])
    except (CallFailed, TimedOut):
        return  # it starts only in the environment that it was started in
    for step in range(1, len(ORDERED)):
        special = [ORDERED[step * place % len(ORDERED)] for place in range(len(ORDERED))]
        model = strategies.with_ids((), special=special)
        question = Question(Encode(ORDERED_TEXT), model, context)
        yield undisturbed(implementation, question, ask(other, question))


# Pipelines


STREAMING_JSON = ("encode_iterable", "from_tokenizer_json")
ASCII: Pieces = ("a", "b", " ", "1", "-", "  ", "\n", "ab", ".", "A", "<s>", "12", "_", "bc", "c", "x", "'s", "--")
OTHERS: Pieces = (*"²ﬁ\u0323\u00a0日Ⅷ€🦊éạ", "e\u0301", "\u1100\u1161", "a\u0323\u0302")
CONTENTS = ("<s>", "ab", "abc", "bc", "a b", "ạ", "a\u0323", "<s", "s>", "ﬁ", "12", "-a", "  ", "xx")
EXPRESSIONS = ("-", r"\s+(?!\S)|\s+", r"\p{N}{1,3}", r" ?\p{L}+", "(?=b)", r"[a-z]+|[^a-z\s]+", "(?<=a)b", "|a")


def _steps(data: bytes) -> tuple[Step, ...]:
    """Return up to three steps and ByteLevel among them."""
    steps: list[Step] = []
    for byte in filter(None, data[:3]):
        behavior, kind = values.BEHAVIORS[byte % 5], byte // 5 % 16
        several: dict[int, Step] = {0: Digits(), 1: Digits(individual=True), 2: Punctuation(), 3: Punctuation(behavior)}
        steps.append(several.get(kind) or Split(EXPRESSIONS[kind % len(EXPRESSIONS)], behavior, byte % 3 == 0))
    choice = data[3]
    steps.insert(len(steps) if choice < 192 else 0, ByteLevel(prefix_space=choice % 4 == 1, split=choice % 8 < 5))
    return tuple(steps)


def _added(data: bytes) -> tuple[AddedToken, ...]:
    """Return up to three added tokens; white space at the end of a content excludes the flags that take white space."""
    found: dict[str, AddedToken] = {}
    for byte, flags in zip(data[::2], data[1::2], strict=True):
        content = CONTENTS[byte % len(CONTENTS)]
        strips = content.strip() == content
        left, right = strips and flags & 2 > 0, strips and flags & 4 > 0
        token = AddedToken(content, flags % 2 == 1, left, right, flags & 24 == 8, special=flags & 96 > 0)
        found.setdefault(unicodedata.normalize("NFKC", content), token)  # no two of one normal form
    return tuple(found.values())


def _pipelines(implementation: Implementation) -> Encodings:
    def build(data: bytes, chosen: bytes, number: int) -> Question[Encode]:
        forms = tuple(NORMAL_FORMS[one % 4] for one in chosen[:2] if one % 8 > 3)
        added = _added(chosen[6 : 6 + 2 * (chosen[2] % 4)])
        contents = tuple(token.content for token in added)
        parts = strategies.pieces((*ASCII, *OTHERS, *contents * 5), data)
        is_clear = {*forms} <= {"NFC", "NFD"} and not any(token.single_word for token in added)
        lookup = "whole" if chosen[2] >= 160 and is_clear else "pair"  # or it may find an added token: PIPELINE-WHOLE-1
        text, seen = "".join(parts), [*parts]
        for form in forms:
            seen = [unicodedata.normalize(form, part) for part in [*seen, text]]
        pipeline = values.Pipeline(forms, added, _steps(chosen[2:6]), lookup)
        model = replace(table(seen, number, implementation, contents), pipeline=pipeline)
        return Question(Encode(text), _with_entries(model, text) if lookup == "whole" or number % 4 == 3 else model)

    return st.builds(build, some_bytes(12), st.binary(min_size=12, max_size=12), st.integers(0, (1 << 24) - 1))


def _with_entries(model: Model, text: str) -> Model:
    """Return a model with further entries: every second pre-token of the text that has none."""
    known = set(model.vocab.values())
    words = dict.fromkeys(piece for piece, is_added in pieces(model, text) if not is_added and piece not in known)
    first = max(model.vocab) + 1
    return replace(model, vocab={**model.vocab, **dict(enumerate([*words][::2], first))})


def _pipeline_streams(implementation: Implementation) -> st.SearchStrategy[Question[Stream]]:
    """Return a strategy: streams of short chunks, of a third of them through a pipeline that splits nothing."""

    def cut(question: Question[Encode], size: int) -> Question[Stream]:
        text, model = question.operation.text, question.table
        if size == 1 and model.pipeline is not None:
            model = replace(model, pipeline=replace(model.pipeline, steps=(ByteLevel(split=False),)))
        chunks = tuple(text[start : start + size] for start in range(0, len(text), size))
        return Question(Stream(chunks), model)

    return st.builds(cut, _pipelines(implementation), st.integers(1, 3))


@Drawn("law-pipeline-ways", "PIPELINE-WAYS-1", ("from_tokenizer_json",), _pipelines, 25)
def every_way(implementation: Implementation, question: Question[Encode]) -> Verdicts:
    """Every method of a tokenizer with a pipeline is correct, also after errors and texts of the same normal form."""
    text, pipeline = question.operation.text, question.table.pipeline
    assert pipeline is not None
    # In Hugging Face's tokenizers, an added token decodes to its normal form.
    added = (one for one in pipeline.added_tokens if one.content.isascii())
    model = replace(question.table, pipeline=replace(pipeline, added_tokens=tuple(added)))
    has_spans = len(pipeline.normalizer) < 2  # otherwise, the characters that a token comes from can be ambiguous
    texts = tuple(dict.fromkeys((unicodedata.normalize("NFD", text), text, unicodedata.normalize("NFC", text))))
    tokenizer = Instance(implementation, model)
    for one in texts:
        right = correct_answer(Question(Encode(one), model), implementation.conventions)
        ids = right.ids if isinstance(right, Ids) else ()
        for operation in (
            *[EncodeWithOffsets(one)] * has_spans,
            *(Encode(one), Batch(texts), Stream((one[:2], one[2:]))),
            *(Decode(ids), DecodeBytes(ids), Detokenize(ids)),
        ):
            asked = Question[Any](operation, model)
            if not {*operation.needs} <= implementation.capabilities:
                continue
            answer = tokenizer.ask(asked)
            if not is_correct(implementation, asked, answer, correct_answer(asked, implementation.conventions)):
                alone = None if operation == Encode(one) else equals_oracle(implementation, asked, "PIPELINE-WAYS-1")
                if alone is not None and isinstance(operation, EncodeWithOffsets):
                    setting = Setting(model, implementation.conventions)
                    alone = replace(alone, clause_id=operation.broken_clause(alone.answer, setting))
                asked = replace(asked, context="after other calls, of which one may have raised an error")
                yield alone or undisturbed(implementation, asked, answer)
        if is_lost(tokenizer.ask(Question(Encode(f"{one}\ud800"), model))):
            return


PROPERTIES: tuple[Property, ...] = (
    Drawn("law-encode", "LAW-ENCODE-1", ("encode",), strategies.encodings, 60).agree(
        "`encode` gives the ids that result from one merge at a time, whatever the order of the ids in the vocabulary."
    ),
    *(
        arguments,
        *KEPT,
        list_passed_to_the_constructor,
        allowed_changed,
        ids_changed,
        rows_changed,
        spans_changed,
        bytes_changed,
        changed_with_pipeline,
    ),
    Drawn("law-split", "SPLIT-DEFAULT-1", ("encode",), partial(strategies.splits, names=["gpt2"]), 60).agree(
        "A text is split by GPT-2's pattern."
    ),
    Drawn("law-encode-pattern", "SPLIT-NAME-1", ("encode", "pattern"), _of_other_patterns, 150).agree(
        "A text is split by the pattern that is passed."
    ),
    Drawn("law-split-classes", "SPLIT-UNICODE-1", ("encode",), _characters, 25).agree(
        "Characters of all scripts and categories, next to letters, digits, signs and white space, are split by class."
    ),
    Drawn("law-special", "SPECIAL-SCAN-1", NEEDS, strategies.special_encodings, 60).agree(
        "Of overlapping special tokens, `encode` finds the leftmost, then the longest; all other text is ordinary."
    ),
    Drawn("law-allowed", "SPECIAL-ALLOWED-1", CHOOSING, strategies.allowed_encodings).agree(
        "Only the special tokens that are allowed are found."
    ),
    Drawn("law-disallowed", "SPECIAL-DISALLOWED-1", CHOOSING, _with_disallowed, 60).agree(
        "A text with a disallowed special token is refused."
    ),
    *(each_choice, special_as_pre_token, absent, decoded_first, hash_seed),
    Drawn("law-round-trip", "LAW-ROUNDTRIP-1", ("decode",), strategies.encoded_texts, 36).agree(
        "The correct ids of a text decode to it."
    ),
    Drawn("law-decode", "DECODE-UTF8-1", ("decode",), strategies.decodings, 60).agree(
        "Any ids decode to their bytes, and these to text, with U+FFFD for what is not UTF-8."
    ),
    Drawn("law-pipeline", "PIPELINE-EQUAL-1", ("from_tokenizer_json", "encode"), _pipelines, 100).agree(
        "Any pipeline gives the ids of the steps, in their order."
    ),
    Drawn("law-pipeline-stream", "PIPELINE-WAYS-1", STREAMING_JSON, _pipeline_streams, 60).agree(
        "A stream of any pipeline gives the ids of the whole text, wherever the chunks end."
    ),
    every_way,
)
