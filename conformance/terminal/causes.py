"""Describes the likely causes of failures: what the code does, how to fix it, and the smallest failing case."""

from __future__ import annotations

import inspect
import math
import re
import shlex
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator

from bpe_conformance.fixtures.conventions import DEFAULTS, TIE_BREAK_CODE
from bpe_conformance.fixtures.one_line import counted, plural

from .. import protocol
from ..answer import (
    PROTOCOL_ERROR,
    TIMED_OUT,
    BytesLost,
    Changed,
    EncodingDivergence,
    Fault,
    Measure,
    Refusal,
    SpecialToken,
    TrainingDivergence,
    UnknownId,
)
from ..operations import Encode, Train, tie_clause
from ..outcome import MOST_CAUSES, BugCause, Cause, Command, ConventionCause, ErrorCause, Outcome, RunResult, at_fault
from . import wording
from .failure import NAMES, WIDTH, for_terminal
from .show import prose

LONG = 100  # characters or ids: thousands of tests have shorter inputs
MANY = 100  # texts in a batch
WITHIN_LIMIT = 3  # so many tests without an answer had the whole time limit: the first ones (session/items.py)
MOST_EXAMPLES = 4  # how many causes are shown with their smallest failing case
MUCH_LARGER, FAR_LARGER = 2, 10
GROSS = 0.5  # the share of the cases of splits that fail if the splits are wrong in a way that cuts plain words
SHARED = (
    "Look for state that calls or instances share: a cache, a class attribute, a list as a default argument; in "
    "JavaScript, the lastIndex of a regular expression with the flag g. If there is none, look for "
    "random numbers, the time, threads, and the order of a set, which differs from process to process."
)
STATE = ("MERGE-STATE-1", "LAW-PURE-1", "ERROR-STATE-1", "ERROR-AFTER-1", "DETOK-STATE-1")
"""Clauses about the same answer after other calls."""
RULES = {"lookup": "MERGE-LOOKUP-1", "pattern": "SPLIT-DEFAULT-1", "train_special": "TRAIN-SPECIAL-1"}
"""Convention → the clause that defines its default. `tie_break` has one for the default and one for other rules."""
MERGE, SPECIAL_TOKEN = 4, 16  # added to the size for each; with special tokens, a case shows two rules at once
TIES, SIZES, ONCE, IDS = ("TRAIN-TIE-",), ("TRAIN-SIZE-", "TRAIN-END-"), ("TRAIN-ONCE-",), ("TRAIN-IDS-",)
"""Beginnings of the clauses about equal counts, the number of merges, pairs that occur once, and ids."""


def conventions(cause: ConventionCause) -> str:
    """Return the attribute that declares them. A pattern is alone, and has an attribute of its own."""
    if pattern := dict(cause.conventions).get("pattern"):
        return f'pattern = "{pattern}"'
    return "conventions = {" + ", ".join(f'"{name}": "{value}"' for name, value in cause.conventions) + "}"


def name(cause: Cause) -> str:
    match cause:
        case BugCause(bugs):
            return " or ".join(bug.id for bug in bugs[:NAMES])
        case ConventionCause():
            return f"undeclared {_values(cause)}"
        case ErrorCause(message):
            return message


def _values(cause: ConventionCause) -> str:
    return ", ".join(f"{key}={value}" for key, value in cause.conventions)


def lines(result: RunResult, examples: bool = True) -> Iterator[tuple[str, str]]:
    """Yield the lines about the likely causes of a run, each with its style; with `examples`, failures too."""
    diagnosis = result.diagnosis
    total = counted(len(diagnosis.failing), "failure")
    if diagnosis.passes_alone:
        yield f"{diagnosis.passes_alone} passes alone, in a new process: earlier calls, or chance, change answers.", ""
        yield from ((line, "") for line in _row("fix", SHARED))
        yield "  rule       LAW-PURE-1: bpe-conformance explain LAW-PURE-1", ""
        yield "", ""
    for number, cause in enumerate(diagnosis.causes, 1):
        shown = example(cause, result)
        verb = "explains" if len(cause.tests) > 1 else "may explain"  # one failure often has several possible causes
        yield f"{number}. {name(cause)} {verb} {len(cause.tests):,} of {total}.", "cause"
        yield from ((line, "") for line in _described(cause, result.command))
        if examples and number <= MOST_EXAMPLES:
            yield "", ""
            yield from for_terminal(shown, result).brief().styled()
        else:
            yield f"  rerun      {result.command.rerun(shown)}", ""
        yield "", ""


def _described(cause: Cause, command: Command) -> Iterator[str]:
    match cause:
        case BugCause(bugs):
            first, *others = bugs
            yield from wrapped(prose(first.sentence), "  ", "  ")
            yield from _row("fix", prose(first.fix))
            for bug in others[: NAMES - 1]:
                yield from _row("or", prose(f"{bug.sentence} {bug.fix}"))
        case ConventionCause():
            place = _declaring(command)
            if rule := _broken_tie_rule(cause, command):
                text = (
                    f"Each merge has the highest count, but ties do not follow {rule}. If they should, the code that "
                    f"chooses between tied pairs has a bug. If any of these pairs will do, declare it in {place}:"
                )
            else:
                asked = _handout(cause, command)
                but = f", but the handout asks for {asked}" if asked else ""
                yield from wrapped(f"The answers are correct under this convention{but}.", "  ", "  ")
                if follow := _follow(cause, command):
                    yield from _row("fix", f"F{follow[1:]}.")
                only = "Only if your course asks for" if asked else "If you intend"
                text = f"{only} this convention, declare it in {place}:"
            yield from wrapped(text, "  ", "  ")
            yield from _row("declare", conventions(cause))
            if not command.argument:
                yield from _row("check", f"bpe-conformance conventions {shlex.quote(command.adapter)}")
        case ErrorCause(_, place):
            if place:
                yield from _row("raised in", place)


def _declaring(command: Command) -> str:
    if command.adapter.startswith("cs336:"):
        return f"the module {command.adapter.removeprefix('cs336:')}"
    return "the reply to start" if command.adapter.startswith("cmd:") else "the class"


def _row(label: str, text: str) -> list[str]:
    return wrapped(text, f"  {label:<10} ", " " * 13)


def wrapped(text: str, first: str, following: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=following, break_long_words=False, break_on_hyphens=False
    )


def _broken_tie_rule(cause: ConventionCause, command: Command) -> str:
    """Return the declared rule for ties if the answers follow no rule at all, or ""."""
    return command.conventions["tie_break"] if ("tie_break", "unspecified") in cause.conventions else ""


def _handout(cause: ConventionCause, command: Command) -> str:
    """Return the rule for ties that the assignment asks for, if the answers follow another one, or ""."""
    is_default = command.adapter.startswith("cs336:") and command.conventions["tie_break"] == DEFAULTS["tie_break"]
    return DEFAULTS["tie_break"] if is_default and cause.conventions[0][0] == "tie_break" else ""


def _rules(cause: ConventionCause, command: Command) -> Iterator[tuple[str, str]]:
    """Yield the clause that defines the declared value of each convention, and Python for it, or ""."""
    for name, _ in cause.conventions:
        if name == "tie_break":
            yield tie_clause(command.conventions), TIE_BREAK_CODE.get(command.conventions[name], "")
        elif name in RULES:
            yield RULES[name], ""


def _follow(cause: ConventionCause, command: Command) -> str:
    """Return how to follow the declared values, or "" if no clause defines them."""
    steps = [rule + (f": {code}" if code else "") for rule, code in _rules(cause, command)]
    return f"follow {'; and '.join(steps)}" if steps else ""


def example(cause: Cause, result: RunResult) -> Outcome:
    """Return the test that shows a cause best: the smallest input of the clause that the cause breaks.

    If one of another clause is `FAR_LARGER` times smaller, it is chosen. A test that also names the cause if it runs
    alone is preferred, unless its input is more than `MUCH_LARGER` times as large.
    """
    clauses = {test: found.id for test in cause.tests if (found := result.by_test[test].clause) is not None}
    broken = [bug.clause for bug in cause.bugs] if isinstance(cause, BugCause) else []
    if isinstance(cause, ConventionCause):
        rules = [rule for rule, _ in _rules(cause, result.command)]
        broken = [*rules, Counter(clauses.values()).most_common(1)[0][0]]
    own = [[test for test in cause.tests if clauses.get(test) == clause] for clause in broken]
    first = result.by_test[cause.tests[0]].mismatch
    if isinstance(cause, ErrorCause) and first and isinstance(first.answer, Fault) and first.answer.kind == TIMED_OUT:
        own = [list(cause.tests[:WITHIN_LIMIT])]
    tests = {test: difficulty(result.by_test[test]) for test in next(filter(None, own), cause.tests)}
    *kind, size = tests[best := min(tests, key=tests.__getitem__)]
    named = cause.clear if isinstance(cause, BugCause) else ()
    clear = [test for test in tests if test in named and tests[test] <= (*kind, MUCH_LARGER * size)]
    shown = result.by_test[min(clear or [best], key=tests.__getitem__)]
    smallest = min((result.by_test[test] for test in cause.tests), key=difficulty)
    is_far_larger = isinstance(cause, BugCause) and _size(shown) > FAR_LARGER * _size(smallest)
    return smallest if is_far_larger and difficulty(smallest)[:-1] <= difficulty(shown)[:-1] else shown


def in_order(failures: Iterable[Outcome], result: RunResult) -> list[Outcome]:
    """Return failures in the order in which to read them: the easiest first, but those of splits before others.

    An incorrect merge also fails tests of splits, and an incorrect split tests of merges. It is the split if its
    section fails more than twice as often, unless a single word is encoded incorrectly, which only a gross fault of
    splits explains, or tests of bytes fail more often: then other bytes are encoded.
    """
    splits = _share(result, "SPLIT")
    is_merge = splits < GROSS and any(map(_fails_for_a_word, result.tested_outcomes))
    is_split = splits > max(2 * _share(result, "MERGE"), _share(result, "BYTES")) and not is_merge
    return sorted(failures, key=lambda one: (one.depends, is_split and one.section != "SPLIT", difficulty(one)))


def _share(result: RunResult, section: str) -> float:
    """Return the share of the cases of a section that fail, and not because of another part; GPT-2 has all rules."""
    every = [each for each in result.tested_outcomes if each.section == section and each.kind == "case"]
    cases = [each for each in every if each.clause is not None and each.clause.id != "MERGE-GPT2-1"]
    return sum(each.state == "failed" and not each.depends for each in cases) / max(1, len(cases))


def _fails_for_a_word(outcome: Outcome) -> bool:
    """Return whether a test of merges gives incorrect ids for a text of lower-case ASCII letters."""
    if outcome.mismatch is None or outcome.section != "MERGE" or outcome.state != "failed" or outcome.depends:
        return False
    asked = outcome.mismatch.asked.operation
    is_word = isinstance(asked, Encode) and asked.text.isascii() and asked.text.isalpha() and asked.text.islower()
    return is_word and not isinstance(outcome.mismatch.answer, Refusal | Fault) and not _is_about_bytes(outcome)


def difficulty(outcome: Outcome) -> tuple[int, ...]:
    """Return how hard a failure is to understand.

    That is: whether it follows from another, whether its operation uses another, whether it fails without earlier
    calls, too, whether it is a value and no error, whether it is a property's example, whether another fault can be its
    cause, whether its clause is about something else, how many earlier calls it needs, and how large its input is.
    """
    if outcome.mismatch is None:
        return ()
    asked, answer = outcome.mismatch.asked, outcome.mismatch.answer
    is_value = not isinstance(answer, Refusal | Fault)
    uses_another = asked.operation.repeats_encode or asked.operation.conformance_class == "files"
    size = _size(outcome)
    if asked.model is not None:
        size += MERGE * len(asked.model.merges) + SPECIAL_TOKEN * len(asked.model.special_tokens or ())
    about = outcome.depends, uses_another, not asked.context, is_value, _is_about_bytes(outcome), outcome.kind != "case"
    return *about, *_of_training(outcome), asked.context.count("; "), size


def _size(outcome: Outcome) -> int:
    """Return the size of the input without the model."""
    wrong = outcome.mismatch
    return sum(len(ascii(value)) for value in wrong.asked.operation.write().values()) if wrong is not None else 0


def _is_about_bytes(outcome: Outcome) -> bool:
    """Return whether a test of merges, splits or laws fails for other bytes, an unknown id or a special token."""
    where = outcome.mismatch and outcome.mismatch.divergence
    cause = where.cause if isinstance(where, EncodingDivergence) else None
    return isinstance(cause, BytesLost | UnknownId | SpecialToken) and outcome.section in ("MERGE", "SPLIT", "LAW")


def _of_training(outcome: Outcome) -> tuple[int, bool]:
    """Return how many kinds of faults change a training in this way, and whether its clause is about something else.

    Incorrect counts change ties and the end, too. Nearly all cases have ties, or end when no pair is left.
    """
    where = outcome.mismatch and outcome.mismatch.divergence
    if not isinstance(where, TrainingDivergence) or outcome.clause is None:
        return 0, False
    clause = outcome.clause.id
    if where.is_tie:
        return 2, not clause.startswith(TIES)
    if where.expected is None:
        return 1, not clause.startswith(SIZES)
    if where.got is None:
        return 1, not clause.startswith(SIZES + ONCE)
    return 0, clause.startswith(TIES + SIZES + ONCE + IDS)


def advice(result: RunResult) -> tuple[str, str]:
    """Return the next step: what to do, and the command or the declaration; both are "" if there is none."""
    diagnosis = result.diagnosis
    if not diagnosis.failing or diagnosis.warnings:
        return "", ""
    if not diagnosis.causes:
        first, *_ = in_order((result.by_test[test] for test in diagnosis.failing), result)
        return "start with", result.command.rerun(first)
    cause, *others = diagnosis.causes
    if isinstance(cause, ConventionCause) and not others:
        agree = f"{len(cause.tests):,} of {counted(len(diagnosis.failing), 'failure')} agree with {_values(cause)}"
        if rule := _broken_tie_rule(cause, result.command):
            agree += f". If ties should follow {rule}, the trainer has a bug; if any tied pair will do, declare"
            return agree, conventions(cause)
        if asked := _handout(cause, result.command):
            agree += f". The handout asks for {asked}: {TIE_BREAK_CODE[asked]}. Only if your course does not, declare"
            return agree, conventions(cause)
        return f"{agree}: if you intend this, declare", conventions(cause)
    names = "; ".join(map(name, diagnosis.causes))
    return f"{_explained(result)}: {names}; start with", result.command.rerun(example(cause, result))


def _explained(result: RunResult) -> str:
    causes = result.diagnosis.causes
    explained = sum(len(cause.tests) for cause in causes)
    verb = "causes explain" if causes[1:] else "cause explains"
    if len(result.diagnosis.failing) == 1:
        return "One failure is not enough to be certain of its cause, which may be"
    return f"{len(causes)} likely {verb} {explained:,} of {counted(len(result.diagnosis.failing), 'failure')}"


def steps(result: RunResult) -> Iterator[str]:
    """Yield the last lines of a run: each cause, what to change, and the command that shows it."""
    text, code = advice(result)
    diagnosis, causes = result.diagnosis, result.diagnosis.causes
    if result.command.selecting[:1] == ("--bpe-case",) and [one.state for one in result.tested_outcomes] == ["passed"]:
        yield f"next          test everything again: {result.command.base}"
        yield from wrapped(
            "A test that fails there and passes alone depends on earlier calls, or on chance.", " " * 14, " " * 14
        )
    if not text or len(result.tested_outcomes) == 1:
        return
    if alone := result.diagnosis.passes_alone:
        yield from _next(f"{alone} passes alone, in a new process. {SHARED}")
        yield from wrapped("Then run the same command again: other tests may also pass alone.", " " * 14, " " * 14)
    after_calls = "" if alone else _after_calls(result)
    shown = result.command.rerun(result.by_test[after_calls]) if after_calls else ""
    if after_calls:
        yield from _next(f"In {after_calls}, the answer is incorrect only after other calls. {SHARED}")
        yield f"     {shown}"
    if not causes:
        if not alone and code != shown:
            yield f"next          {text} {code}"
            yield from wrapped(_long_inputs(map(result.by_test.__getitem__, diagnosis.failing)), " " * 14, " " * 14)
        return
    is_convention = isinstance(causes[0], ConventionCause) and not causes[1:]
    if is_convention:
        yield from _next(f"{text} {code}")
    else:
        yield f"next          {_explained(result)}{'. Fix one, and run again:' if causes[1:] else ':'}"
    for number, cause in enumerate(() if is_convention else causes, 1):
        first = example(cause, result)
        yield f"  {number}. {name(cause)} ({counted(len(cause.tests), 'failure')})"
        for line in _wrong_and_right(cause, first, result.command):
            yield from wrapped(line, "     ", "       ")
        if isinstance(cause, ErrorCause) and _breaks_protocol(first) and result.command.adapter.startswith("cmd:"):
            yield "     Fix: see which rule of the protocol the program breaks:"
            yield f"     bpe-conformance check-bridge {shlex.quote(result.command.adapter)}"
        yield f"     {result.command.rerun(first)}"
    left = in_order((result.by_test[test] for test in result.diagnosis.unexplained), result)
    faulty = at_fault(result.outcomes, result.options.strict)
    if roots := [one for one in left if not one.follows(faulty) and one.test != after_calls]:
        kinds = {_kind(result.by_test[test]) for cause in causes for test in cause.tests}
        if alone:
            why = f"may have the same cause as {alone}"
        elif len(causes) >= MOST_CAUSES or all(one.test in result.diagnosis.overlaid for one in roots):
            why = "may have other causes, which show once these are fixed"
        elif all(one.kind != "case" and _kind(one) in kinds for one in roots):
            why = f"may have the same cause{'s' if causes[1:] else ''}"  # a property has no published answers
        else:
            why = f"{plural(len(roots), 'has', 'have')} no known cause"
        yield f"  {counted(len(roots), 'more failure')} {why}{'' if alone else '; start with:'}"
        if not alone:
            yield f"     {result.command.rerun(roots[0])}"
    if rest := sum(one.follows(faulty) for one in left):
        yield f"  {counted(rest, 'more failure')} {plural(rest, 'follows', 'follow')} from others; fix those first"


def _kind(outcome: Outcome) -> tuple[str, str]:
    """Return the class of a test, and that of the method that gave its incorrect answer."""
    wrong = outcome.mismatch
    return outcome.conformance_class, wrong.asked.operation.conformance_class if wrong is not None else ""


def _after_calls(result: RunResult) -> str:
    """Return the first unexplained test that fails only because of earlier calls, or ""."""
    for test in result.diagnosis.unexplained:
        found = result.by_test[test]
        wrong = found.mismatch
        after_others = wrong is not None and wrong.asked.context and not found.depends
        if wrong is not None and isinstance(wrong.answer, Changed):
            continue  # the call itself changed what it must not
        if after_others and found.clause is not None and found.clause.id in STATE:
            return test
    return ""


def _long_inputs(failures: Iterable[Outcome]) -> str:
    """Return a hint if only long inputs fail, or ""."""
    least, unit = math.inf, ""
    for outcome in failures:
        if outcome.mismatch is None or isinstance(outcome.mismatch.answer, Refusal | Fault | Measure):
            return ""
        operation = outcome.mismatch.asked.operation
        ids, texts = getattr(operation, "ids", ()), operation.texts()
        size = (len(ids), "ids") if ids else (sum(map(len, texts)), "characters")
        if operation.conformance_class == "batch" and len(texts) >= MANY:
            size = len(texts), "texts"
        least, unit = min((least, unit), size)
    if not (MANY if unit == "texts" else LONG) <= least < math.inf:
        return ""
    what = "batch" if unit == "texts" else "input"
    matters = "Its length may be the cause, or something that only long inputs have, such as many different words."
    return f"The smallest {what} that fails has {least:,} {unit}. {matters}"


def _next(text: str) -> list[str]:
    return wrapped(text, "next          ", " " * 14)


def _breaks_protocol(outcome: Outcome) -> bool:
    answer = outcome.mismatch.answer if outcome.mismatch else None
    return isinstance(answer, Fault) and answer.kind == PROTOCOL_ERROR


def _gets_text(shown: Outcome, command: Command) -> bool:
    return _trains(shown) and not command.trains_from_file


def _gets_path(shown: Outcome, command: Command) -> bool:
    return _trains(shown) and command.trains_from_file


def _trains(shown: Outcome) -> bool:
    return shown.mismatch is not None and isinstance(shown.mismatch.asked.operation, Train)


_ARGUMENTS = re.compile(r"TypeError: .*\b(takes .* argument|missing \d+ required|unexpected keyword)")


def _parameters(method: str) -> str:
    """Return the parameters that the adapter protocol gives a method, without `self`."""
    for kind in vars(protocol).values():
        if isinstance(kind, type) and method in vars(kind):
            return ", ".join([*inspect.signature(vars(kind)[method]).parameters][1:])
    return ""


def _wrong_and_right(cause: Cause, shown: Outcome, command: Command) -> Iterator[str]:
    if isinstance(cause, BugCause):
        yield prose(cause.bugs[0].sentence)
    elif shown.mismatch is not None:
        yield wording.fact(shown.mismatch)
    if said := fix(cause, shown, command):
        yield f"Fix: {said}"


def fix(cause: Cause, shown: Outcome, command: Command) -> str:
    """Return what to change, or "" if the suite does not know; `shown` is the failure that is shown with the cause."""
    if isinstance(cause, BugCause):
        return prose(cause.bugs[0].fix)
    if isinstance(cause, ConventionCause):
        follow = _follow(cause, command) or f"follow {shown.clause.id if shown.clause else 'the rule'}"
        declaration = f"`{conventions(cause)}` in {_declaring(command)}"
        if _broken_tie_rule(cause, command):
            return f"{follow}; or declare {declaration} if any tied pair will do."
        if _handout(cause, command):
            return f"{follow}. Only if your course asks for this convention, declare {declaration}."
        return f"{follow}; or, if you intend this convention, declare {declaration}."
    answer = shown.mismatch.answer if shown.mismatch is not None else None
    if isinstance(answer, Fault) and answer.kind == TIMED_OUT and answer.traceback:
        place, _, source = answer.traceback[-1].partition(": ")
        return f"look at {place}, where it was stopped" + (f": `{source}`" if source else "")
    if " returned None;" in cause.message:
        return "add the missing return or yield, or raise NotImplementedError to have its tests skipped."
    if not cause.place and shown.mismatch is not None and _ARGUMENTS.match(cause.message):
        takes = _parameters(shown.mismatch.asked.operation.call().method)
        return (
            f"write the method so that it takes ({takes}), or leave it out to have its tests skipped." if takes else ""
        )
    if not cause.place or cause.place.startswith("bpe_conformance/"):  # an adapter of the suite cannot be wrong
        return ""
    place, _, source = cause.place.partition(": ")
    if "FileNotFoundError" in cause.message and _gets_text(shown, command):
        return "train gets the text itself, not the name of a file."
    if re.search("TypeError.*(Posix|Windows)Path", cause.message) and _gets_path(shown, command):
        return "the trainer gets the path of a file; read the text from it."
    look = f"look at {place}, which raises the error" + (f": `{source}`" if source else "")
    if cause.message.startswith(NotImplementedError.__name__):
        left_out = "a whole method and, in the constructor or train, all special tokens"
        return f"{look}. This error can leave out {left_out}."
    return look if source else f"{look}."
