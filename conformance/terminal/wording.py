"""Puts questions, expected values, answers and their differences into words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from bpe_conformance.fixtures import PATTERNS, Merge, Model
from bpe_conformance.fixtures.expression import pattern_name
from bpe_conformance.fixtures.one_line import counted, plural, shortened
from bpe_conformance.reference import textbook

from .. import answer as answers
from ..operations import OPERATIONS, Encode, Encoding, Question, oracle
from ..outcome import Dependence, Mismatch, Verdict
from . import show

T = TypeVar("T")
NEEDS = {  # what a test needs → why the suite skips it if that is missing
    "allowed_special": "encode lacks allowed_special or disallowed_special",
    "special tokens": "the constructor rejects special tokens",
    "special tokens in train": "train rejects special tokens",
    "two ids": "the constructor rejects a token with two ids",
    "shared memory": "the suite cannot change objects in another process",
    "new process": "the suite cannot start it again with another hash seed and locale of Python",
}
METHODS = {"from_tokenizer_json", *(kind.needs[0] for kind in OPERATIONS.values())} - NEEDS.keys()
"""The methods of the adapter protocol, each of which is a need, too."""
FILES: dict[str, dict[Any, str]] = {  # option of a loading case → value → what is special about the files
    "version_line": {False: "merges.txt has no version line", True: "merges.txt begins with a version line"},
    "newline": {"crlf": "merges.txt has CR LF line ends", "lf": "merges.txt has LF line ends"},
    "final_newline": {False: "merges.txt has no final line end", True: "merges.txt has a final line end"},
    "key_order": {
        "reversed": "the keys of vocab.json are in reversed order",
        "sorted": "the keys of vocab.json are sorted",
        "ids": "the keys of vocab.json are in order of id",
    },
    "ascii": {False: "vocab.json has unescaped non-ASCII characters", True: "vocab.json escapes non-ASCII characters"},
    "json_style": {
        "spaced": "vocab.json has the format of Python's json module",
        "compact": "vocab.json has no spaces between keys and values",
        "loose": "vocab.json has spaces, tabs and line ends wherever JSON allows them",
        "escaped": "vocab.json has escapes with upper-case digits, and \\/ for a slash",
    },
}
MOST_OTHERS = 3  # how many other incorrect answers of a test are shown
LONGEST_VALUE = 20  # characters of a text that a fact quotes


def call(asked: Question[Any]) -> str:
    return show.call(asked.operation.call(), show.BRIEF)


def _text(text: str) -> str:
    return show.text_line(text, show.LONGEST_ARGUMENT)


def setting(asked: Question[Any], needed: Sequence[int], width: int) -> Iterator[tuple[str, str]]:
    """Yield (label, text) rows: the relevant arguments of the tokenizer, with the ranks that explain the failure."""
    if (model := asked.model) is None:
        return
    if model.is_large:
        yield "merges", f"those of {model.name}"
    else:
        yield "merges", show.packed(show.ranked(model.merges, needed), width)
        if missing := _missing(model):
            shown = [*map(show.token, missing[:8]), *([f"{len(missing) - 8} more"] if len(missing) > 8 else [])]
            yield "lacks", f"the vocabulary has no {', '.join(shown)}"
    if model.pipeline is not None:
        steps = (f"{step};" for step in show.pipeline(model.pipeline))
        yield "pipeline", show.packed([*steps], width, " ").removesuffix(";")
    elif model.special_tokens:
        shown = [_text(token) for token in model.special_tokens[:8]]
        shown += [f"{len(model.special_tokens) - 8:,} more"] * (len(model.special_tokens) > 8)
        yield "special", show.packed([*(f"{token}," for token in shown[:-1]), shown[-1]], width, " ")
    if model.special_tokens and isinstance(asked.operation, Encode):
        text, special = asked.operation.text, list(model.special_tokens)
        is_plain = model.pipeline is None
        segments = textbook.cut_special(text, special) if is_plain else oracle(model).find_special(text, special)
        kind = "special" if is_plain else "added"
        shown = [f"{kind} {segment!a}" if is_special else _text(segment) for segment, is_special in segments]
        if 1 < len(shown) <= show.MOST_TEXTS:
            yield "segments", show.packed([*(f"{segment} |" for segment in shown[:-1]), shown[-1]], width, " ")
    if model.pattern != "gpt2":
        name = pattern_name(model.pattern)
        yield "pattern", name if name in PATTERNS else shortened(model.pattern)
    arguments = dict(asked.operation.arguments())
    if "files" in arguments:
        begins = "merges.txt begins with the line"
        shown = [FILES[name].get(value) or f"{begins} {_text(value)}" for name, value in arguments["files"]]
        yield "files", "; ".join(shown)
    if ids := arguments.get("ids"):
        cells = [show.cell(index, model) for index in ids[: show.MOST_TOKENS]]
        cells += ["..."] * (len(ids) > show.MOST_TOKENS)
        yield "tokens", show.packed([*(f"{cell} |" for cell in cells[:-1]), cells[-1]], width, " ")


def _missing(model: Model) -> list[bytes]:
    """Return the tokens without an entry: bytes, then parts and results of merges, then special tokens."""
    merged = [token for left, right in model.merges for token in (left, right, left + right)]
    special = [token.encode("utf-8") for token in model.special_tokens or ()]
    needed = dict.fromkeys([*(bytes([byte]) for byte in range(256)), *merged, *special])
    present = set(model.vocab.values())
    return [token for token in needed if token not in present]


def fact(mismatch: Mismatch) -> str:
    asked = call(mismatch.asked)
    asked = f"{asked[0].upper()}{asked[1:]}" if asked == show.BRIEF.constructor else asked
    remarks = "; ".join(filter(None, (mismatch.asked.about, mismatch.asked.context)))
    context = f" ({remarks})" if remarks else ""
    return f"{asked}{context} {_did(mismatch)}."


def _did(mismatch: Mismatch) -> str:
    match mismatch.answer:
        case answers.Fault(kind, message):
            is_answer = kind not in (answers.TIMED_OUT, answers.NO_RESULT)
            return f"gave {'no usable answer: ' * is_answer}{message}".rstrip(".")
        case answers.Refusal(_, message):
            return f"raised {message}".rstrip(".")
        case answers.Changed(what):
            built = call(mismatch.asked) == show.BRIEF.constructor
            return f"{'built a tokenizer' if built else 'gave a correct answer'}, but {'; '.join(what)}"
        case answers.Measure(amount, what):
            most = expected_of(mismatch, answers.AtMost)
            is_time = what == show.TIMES
            fact = f"took {show.measured(amount, what)}" if is_time else f"held back {counted(amount, what)}"
            return fact + (f"; at most {most.amount:,} are allowed" if most else "")
    facts = (_must_raise, _with_ends, _shifted, _differs)
    default = "gave another answer" if mismatch.expected.source else "gave an incorrect answer"
    return next(filter(None, (fact(mismatch) for fact in facts)), default)


def _must_raise(mismatch: Mismatch) -> str:
    correct = mismatch.expected.alternatives
    if not (reasons := [value.reason for value in correct if isinstance(value, answers.AnyError)]):
        return ""
    if len(reasons) < len(correct):
        if mismatch.divergence is not None:
            return ""
        spelled = answers.Lossless() in correct
        did = _unspelled(mismatch) if spelled else _id_in_use(mismatch) or "answered incorrectly"
        return f"raised no error and {did}"
    return f"raised no error, although {show.REASONS[reasons[0]]}" if reasons[0] in show.REASONS else "raised no error"


def _id_in_use(mismatch: Mismatch) -> str:
    """Say which token without an entry has the id of an entry, or return ""."""
    vocab, new = mismatch.asked.model and mismatch.asked.model.vocab, expected_of(mismatch, answers.NewIds)
    if vocab and new is not None and isinstance(mismatch.answer, answers.Ids):
        each = new.tokens if len(new.tokens) == len(mismatch.answer.ids) else ()  # otherwise, it is several ids
        for token, index in zip(each, mismatch.answer.ids, strict=False):
            if token not in vocab.values() and index in vocab:
                return f"gave {show.token(token)} the id {index}, which is that of {show.token(vocab[index])}"
    return ""


def _differs(mismatch: Mismatch) -> str:
    answer, where = mismatch.answer, mismatch.divergence
    saved = mismatch.asked.model is not None  # training has none
    match where:
        case answers.EncodingDivergence(cause=cause) if cause is not None and answer != answers.Ids(()):
            return _cause_fact(cause)
        case answers.TrainingDivergence() if saved:
            return _saved_fact(where)
        case answers.TrainingDivergence():
            return _training_fact(where)
        case answers.VocabDivergence(missing, surplus):
            parts = [f"without {', '.join(map(show.token, missing[:3]))}"] if missing else []
            parts += [f"with an extra {', '.join(map(show.token, surplus[:3]))}"] if surplus else []
            return f"returned a vocabulary {' and '.join(parts)}"
        case answers.EntryDivergence():
            return f"{'wrote' if saved else 'returned'} a vocabulary {_entry_fact(where)}"
        case answers.TextDivergence(character):
            return _text_fact(mismatch, character)
        case answers.RowDivergence(row):
            right = expected_of(mismatch, answers.Rows)
            return _rows_fact(answer, right, row) if isinstance(answer, answers.Rows) and right is not None else ""
        case answers.SpanDivergence(token) if isinstance(answer, answers.Offsets):
            return _span_fact(answer, mismatch, token)
        case answers.ByteDivergence(byte):
            return f"returned bytes that differ from byte {byte} on"
    ids = expected_of(mismatch, answers.Ids)
    if isinstance(answer, answers.Ids) and ids is not None:
        return _ids_fact(answer, ids)
    return _unspelled(mismatch) if answers.Lossless() in mismatch.expected.alternatives else ""


def _unspelled(mismatch: Mismatch) -> str:
    """Say that the ids do not spell the text and, if each has an entry, where they end or differ."""
    fact, asked, ids = "returned ids that do not spell the text", mismatch.asked, mismatch.answer
    if not isinstance(asked.operation, Encoding) or not isinstance(ids, answers.Ids) or asked.model is None:
        return fact
    tokens = [asked.model.vocab[index] for index in ids.ids if index in asked.model.vocab]
    if len(tokens) < len(ids.ids):
        return fact
    text, got = asked.operation.whole_text.encode("utf-8", "surrogatepass"), b"".join(tokens)
    byte = answers.first_difference(text, got)
    if byte == len(text):
        return f"{fact}: more bytes follow after its {len(text)}"
    ends = f"they end after {byte} of {counted(len(text), 'byte')}"
    return f"{fact}: {ends if byte == len(got) else f'the bytes differ from byte {byte} on'}"


def expected_of(mismatch: Mismatch, kind: type[T]) -> T | None:
    return next((alternative for alternative in mismatch.expected.alternatives if isinstance(alternative, kind)), None)


def _rows_fact(answer: answers.Rows, right: answers.Rows, row: int) -> str:
    if len(answer.rows) != len(right.rows):
        return f"returned {counted(len(answer.rows), 'row')} for {counted(len(right.rows), 'text')}"
    is_permuted = sorted(answer.rows) == sorted(right.rows)
    return "returned the rows in another order" if is_permuted else f"returned incorrect ids in row {row}"


def _ids_fact(answer: answers.Ids, right: answers.Ids) -> str:
    token = answers.first_difference(right.ids, answer.ids)
    if not answer.ids:
        return "returned no ids"
    if token == len(answer.ids):
        return f"stopped after {token} of {counted(len(right.ids), 'token')}"
    if token == len(right.ids):
        return f"returned {counted(len(answer.ids), 'token')} instead of {len(right.ids)}"
    return f"returned an incorrect token at index {token}"


def _with_ends(mismatch: Mismatch) -> str:
    """Say which token is before, and which after the correct ids, if the bytes differ in nothing else; return ""."""
    cause, got = getattr(mismatch.divergence, "cause", None), mismatch.answer
    right = expected_of(mismatch, answers.Ids) if isinstance(cause, answers.BytesLost | answers.UnknownId) else None
    ends = answers.surplus_ends(right.ids, got.ids) if right and isinstance(got, answers.Ids) else None
    if ends is None:
        return ""
    vocab = mismatch.asked.table.vocab
    added = [
        f"{f'{show.bare(vocab[index])} (id {index})' if index in vocab else f'the unknown id {index}'} {side}"
        for side, part in zip(("before", "after"), ends, strict=True)
        for index in part
    ]
    return f"put {' and '.join(added)} the correct ids"


def _shifted(mismatch: Mismatch) -> str:
    """Say by how much every id differs, if it is the same amount for two ids or more; return ""."""
    right, got = expected_of(mismatch, answers.Ids), mismatch.answer
    if right is None or not isinstance(got, answers.Ids) or len({*right.ids}) < 2 or len(got.ids) != len(right.ids):
        return ""
    first, *others = {index - expected for index, expected in zip(got.ids, right.ids, strict=True)}
    return f"returned each id {'plus' if first > 0 else 'minus'} {abs(first)}" if first and not others else ""


def _span_fact(answer: answers.Offsets, mismatch: Mismatch, token: int) -> str:
    right = expected_of(mismatch, answers.Offsets)
    if right is None or len(answer.spans) != len(right.spans):
        return f"returned {counted(len(answer.spans), 'span')} for {counted(len(answer.ids), 'id')}"
    got, expected = (show.span(one.spans[token]) for one in (answer, right))
    return f"returned the span {got} for {show.cell(answer.ids[token], mismatch.asked.model)} instead of {expected}"


def _cause_fact(cause: answers.EncodingCause) -> str:
    match cause:
        case answers.UnknownId(index):
            return f"returned the id {index}, which is not in the given vocabulary"
        case answers.BytesLost(byte, of_pipeline=True):
            return f"returned ids of other bytes than the steps of the file give, from byte {byte} on"
        case answers.BytesLost(byte):
            return f"returned ids that do not spell the text: the bytes differ from byte {byte} on"
        case answers.WrongId(token, expected, got):
            what = show.token(token) if token is not None else "the special token without an entry"
            return f"returned the id {got} for {what}, whose id is {expected}"
        case answers.CrossesBoundary(token, byte):
            return f"merged {show.token(token)} across the pre-token boundary at byte {byte}"
        case answers.PreTokenCut(pre_token, byte):
            return f"cut the pre-token {_text(pre_token)} at byte {byte}"
        case answers.SpecialToken(token, missed=True, of_pipeline=of_pipeline):
            return f"did not find the {_special(of_pipeline)} token {show.token(token)}"
        case answers.SpecialToken(token, allowed=False):
            return f"found the special token {show.token(token)}, which is not allowed"
        case answers.SpecialToken(token, of_pipeline=of_pipeline):
            return f"found the {_special(of_pipeline)} token {show.token(token)} where there is none"
        case answers.WholeTokenCut(pre_token, lookup):
            return f"split the pre-token {_text(pre_token)}, which is a token (lookup: {lookup})"
        case answers.NotAResult(token):
            return f"returned {show.token(token)}, which no merge produces here"
        case answers.WrongMerge(used, available):
            if used is None:
                return "left out a merge"
            if available is not None and used.merge == available.merge:
                return "merged a later occurrence of a pair first"
            return "merged the wrong pair first" if available is not None else "merged pairs in the wrong order"
    raise AssertionError(cause)


def _special(of_pipeline: bool) -> str:
    return "added" if of_pipeline else "special"  # an added token need not be special


def _training_fact(where: answers.TrainingDivergence) -> str:
    step = f"merge {where.step + 1}"
    if where.got is None:
        return f"stopped before {step}, {_with_count(where.expected, where.expected_count)}"
    if where.expected is None:
        return f"learned an extra {step}, {_with_count(where.got, where.got_count)}"
    if where.is_tie:
        chosen, right = show.joined(where.got), show.joined(where.expected)
        return f"chose {chosen} as {step} instead of {right} (tied at count {where.got_count})"
    chosen, right = _with_count(where.got, where.got_count), _with_count(where.expected, where.expected_count)
    return f"chose {chosen} as {step} instead of {right}"


def _with_count(pair: Merge | None, count: int) -> str:
    if pair is None:
        return "no pair"
    return f"{show.joined(pair)} ({f'count {count}' if count else 'in no pre-token'})"


def _saved_fact(where: answers.TrainingDivergence) -> str:
    rank = f"the merge of rank {where.step}"
    if where.got is None:
        return f"left out {rank}, {show.joined(where.expected) if where.expected else 'none'}"
    if where.expected is None:
        return f"wrote an extra merge of rank {where.step}, {show.joined(where.got)}"
    return f"wrote {show.joined(where.got)} as {rank} instead of {show.joined(where.expected)}"


def _entry_fact(where: answers.EntryDivergence) -> str:
    if where.expected is None:
        return f"with an extra id {where.id}, {_entry(where.got)}"
    if where.got is None:
        return f"without the id {where.id}, {_entry(where.expected)}"
    return f"in which id {where.id} is {_entry(where.got)} instead of {_entry(where.expected)}"


def _entry(token: bytes | None) -> str:
    return show.token(token) if token is not None else "missing"


def _text_fact(mismatch: Mismatch, character: int) -> str:
    right = expected_of(mismatch, answers.Text)
    if isinstance(mismatch.answer, answers.Text) and right is not None:
        got, text = mismatch.answer.text, right.text
        if max(len(got), len(text)) <= LONGEST_VALUE:
            return f"returned {got!a} instead of {text!a}"
    return f"returned a text that differs from character {character} on"


def pointer(where: answers.EncodingDivergence) -> str:
    """Return the note beside the caret: what happened at the first token that differs."""
    match where.cause:
        case answers.WrongMerge(used, available):
            parts = [f"used rank {used.rank}"] if used is not None else []
            if available is not None and used is not None and used.merge == available.merge:
                merged = f"rank {used.rank} ({show.joined(used.merge)}) merged"
                return f"{merged} at byte {used.byte}, not at byte {available.byte}"
            if available is not None:
                state = "was available" if used is not None else "did not merge"
                parts.append(f"rank {available.rank} ({show.joined(available.merge)}) {state} at byte {available.byte}")
            return "; ".join(parts)
        case answers.PreTokenCut(_, byte, missing):
            merge = f"rank {missing.rank} ({show.joined(missing.merge)}) did not merge at byte {missing.byte}"
            return f"the pre-token was cut at byte {byte}, or {merge}"
        case answers.CrossesBoundary(_, byte):
            return f"a pre-token ends at byte {byte}"
        case answers.SpecialToken(token, missed=True, of_pipeline=of_pipeline):
            return f"the {_special(of_pipeline)} token {show.token(token)} is here"
        case answers.SpecialToken(token, allowed=False):
            return f"{show.token(token)} is not in allowed_special"
        case answers.SpecialToken(token, of_pipeline=of_pipeline):
            return f"the {_special(of_pipeline)} token {show.token(token)} is not here"
        case answers.NotAResult(token):
            return f"no merge produces {show.token(token)} here"
        case answers.WrongId(_, expected, got):
            return f"id {got} instead of {expected}"
        case answers.UnknownId(index):
            return f"no token has the id {index}"
    return f"at byte {where.byte} of the text"


def cut_inside(asked: Question[Any], where: answers.EncodingDivergence, right: Sequence[int]) -> str:
    """Return an addition to the note beside the caret if a chunk of a stream ends inside the correct token, or ""."""
    token = asked.table.vocab.get(right[where.token], b"") if where.token < len(right) else b""
    end = 0
    for number, chunk in enumerate(getattr(asked.operation, "chunks", ()), 1):
        end += len(chunk.encode("utf-8", "surrogatepass"))
        if where.byte < end < where.byte + len(token):
            return f"; chunk {number} ends inside {show.bare(token)}, at byte {end}"
    return ""


def training_pointer(mismatch: Mismatch, where: answers.TrainingDivergence) -> str:
    if mismatch.asked.model is not None:
        return f"rank {where.step}"
    if where.expected is None:
        return f"merge {where.step + 1}: training ends before it"
    if where.is_tie:
        return f"merge {where.step + 1}: both pairs have count {where.got_count}"
    right = f"{show.joined(where.expected)} has count {where.expected_count}"
    got = f"; {show.joined(where.got)} has count {where.got_count}" if where.got is not None else ""
    return f"merge {where.step + 1}: {right}{got}"


def expectation(mismatch: Mismatch) -> str:
    return ", or ".join(value(alternative, mismatch) for alternative in mismatch.expected.alternatives)


def value(acceptable: answers.Acceptable, mismatch: Mismatch) -> str:
    """Return an answer, or what is accepted instead of one, in one line."""
    where = mismatch.divergence
    match acceptable, where:
        case answers.HighestCount(), answers.TrainingDivergence(expected=(_, _) as pair, expected_count=count):
            return f"a pair of count {count}, such as {show.joined(pair)}"
        case answers.HighestCount(), answers.EntryDivergence(index, expected=entry):
            return f"id {index} is {_entry(entry)}"
        case answers.Text(text), _:
            return show.text_near(text, where.character if isinstance(where, answers.TextDivergence) else 0)[0]
        case answers.Table(vocab), answers.EntryDivergence(index):
            return f"id {index} is {_entry(vocab.get(index))}"
        case answers.Table(vocab), answers.VocabDivergence():
            return f"a vocabulary of {counted(len(vocab), 'token')}"
        case answers.Rows(rows), _:
            return counted(len(rows), "row")
    return show.expected(acceptable, show.BRIEF, mismatch.asked.model)


def others(mismatch: Mismatch) -> str:
    """Say which other texts of a test have incorrect answers: how many, and the first of them."""
    shown, vocab = [], mismatch.asked.table.vocab

    def spelled(one: Any) -> str:
        return show.ids(one.ids, vocab) if isinstance(one, answers.Ids) else show.expected(one, show.BRIEF)

    for other in mismatch.others[:MOST_OTHERS]:
        text = _text(other.operation.texts()[0])
        shown.append(f"{text} is {spelled(other.correct[0])}, not {spelled(other.answer)}")
    shown += ["..."] * (len(mismatch.others) > MOST_OTHERS)
    return f"{counted(len(mismatch.others), 'other text')}: {'; '.join(shown)}"


DEPENDENCES = {  # kind of a dependence → which other part of the implementation is at fault
    "construct": "the constructor, which fails, takes too long or changes the vocabulary; fix the constructor first",
    "decode": "decode, which gives the same incorrect text for the same ids; fix decode first",
    "encode": "encode, which fails in the same way for {}; fix encode first",
    "pipeline": "encode with this pipeline, which fails in the same way for {}; fix the pipeline first",
    "plain": "the same method of a tokenizer without a pipeline, which is incorrect, too; fix that first",
    "segment": "encode, which is also incorrect for {} alone; fix encode first",
    "pre-tokens": "splitting: each pre-token alone is encoded correctly, so the text is split incorrectly (SPLIT)",
    "segments": "special tokens: each segment between special tokens alone is encoded correctly (SPECIAL)",
    "undisturbed": "no earlier call: a new tokenizer answers incorrectly, too",
}


def dependence(depends_on: Dependence) -> str:
    return DEPENDENCES[depends_on.kind].format(_text(depends_on.text))


def why_skipped(need: str) -> str:
    """Return why the suite skips the tests that need this; a need that is not a capability is the reason itself.

    >>> why_skipped("save"), why_skipped("pattern:cl100k")
    ('save is not implemented', 'the constructor does not take the pattern cl100k')
    """
    kind, _, name = need.partition(":")
    if kind in ("pattern", "train-pattern"):
        method = "train" if kind == "train-pattern" else "the constructor"
        known = {"": f"{method} takes no pattern", "*": f"{method} takes no other pattern"}
        return known.get(name, f"{method} does not take the pattern {name}")
    return f"{need} is not implemented" if need in METHODS else NEEDS.get(need, need)


def verdict(counts: Verdict) -> str:
    if counts.word == "error":
        return (
            f"ERROR: the suite itself failed in {counts.errors} of {counts.must} {counts.level} tests; please report it"
        )
    if counts.word == "fail":
        failed = counts.failed + counts.known
        tests = f"{counts.must} {counts.level} {plural(counts.must, 'test')}"
        text = f"FAIL: {failed} of {tests} {plural(failed, 'fails', 'fail')}"
        text += f" ({counts.known} of them known)" if counts.known else ""
    else:
        passed = counts.must - counts.elsewhere
        text = f"PASS: {passed} {counts.level} {plural(passed, 'test')} {plural(passed, 'passes', 'pass')}"
    if counts.elsewhere:
        text += f"; {elsewhere(counts.elsewhere)}"
    if counts.broken:
        fails = plural(counts.broken, "fails", "fail")
        text += f"; {counts.broken} of {counts.should} SHOULD {plural(counts.should, 'test')} {fails}"
    listed = plural(counts.stale, "that passes is listed as a known failure", "that pass are listed as known failures")
    return text + (f"; {counts.stale} {listed}" if counts.stale else "")


def elsewhere(count: int) -> str:
    fails, does = plural(count, "fails", "fail"), plural(count, "does", "do")
    return f"{count} more {fails} where another class fails, too, and {does} not count"
