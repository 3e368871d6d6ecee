"""One line for each case, and a table that counts clauses, cases and laws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from bpe_conformance.fixtures.spec import CLASS_OF_OP, LEVELS, Case, Section, Spec

from ..cases.expectations import LOOKUP_KEYS, TRAINING_KEYS
from ..command_error import unknown
from ..properties.catalogue import PROPERTIES
from ..terminal.show import ascii_only

COLUMNS = (*LEVELS, "all")


def select(
    spec: Spec,
    clause: str | None = None,
    section: str | None = None,
    level: str | None = None,
    op: str | None = None,
) -> list[Case]:
    """Return the cases that pass every filter, in the order of the files.

    Args:
        spec: where from.
        clause: the id of a clause, or what ids begin with: MERGE-ORDER-1, or MERGE-ORDER.
        section: a name such as MERGE.
        level: must, should, may or unspecified.
        op: an operation such as encode.

    Raises:
        CommandError: if a filter names nothing that there is.
    """
    if clause is not None and not any(_is_of(clause, one) for one in spec.clauses):
        raise unknown("clause", clause, spec.clauses, "bpe-conformance list")
    _known("section", section, [one.name for one in spec.sections])
    _known("level", level, LEVELS)
    _known("op", op, CLASS_OF_OP)
    return [
        case
        for case in spec.cases
        if (clause is None or _is_of(clause, case.clause.id))
        and section in (None, case.clause.section)
        and level in (None, case.level)
        and op in (None, case.op)
    ]


def _is_of(prefix: str, clause: str) -> bool:
    return clause == prefix or clause.startswith(prefix.rstrip("-") + "-")


def _known(what: str, name: str | None, known: Sequence[str] | dict[str, str]) -> None:
    if name is not None and name not in known:
        raise unknown(what, name, known, f"one of {', '.join(known)} is wanted; --help")


def lines(cases: Sequence[Case]) -> Iterator[str]:
    """Yield one line for each case: id, clause, level, title."""
    widths = [
        max((len(case.id) for case in cases), default=0),
        max((len(case.clause.id) for case in cases), default=0),
        max((len(case.level) for case in cases), default=0),
    ]
    for case in cases:
        head = (case.id, case.clause.id, case.level)
        padded = "  ".join(f"{text:{width}}" for text, width in zip(head, widths, strict=True))
        yield f"{padded}  {ascii_only(case.title)}"


def summary(spec: Spec) -> Iterator[str]:
    """Yield a table of the sections, and what the cases are about."""
    yield f"{'':9}|{'clauses':^27}|{'cases':^27}| {'by con-':>7}  {'':4}".rstrip()
    heads = ["must", "should", "may", "open", "all"]
    columns = "".join(f"{head:>{width}}" for head, width in zip(heads, (5, 7, 4, 5, 5), strict=True))
    yield f"{'section':9}|{columns} |{columns} | {'vention':>7}  laws"
    rows = [_counts(section, spec) for section in spec.sections]
    for section, row in zip(spec.sections, rows, strict=True):
        yield _row(section.name, row)
    yield _row("total", [sum(column) for column in zip(*rows, strict=True)])
    yield ""
    yield from _about(spec)


def _counts(section: Section, spec: Spec) -> list[int]:
    clauses = Counter(clause.level for clause in section.clauses)
    own = [case for case in spec.cases if case.clause.section == section.name]
    cases = Counter(case.level for case in own)
    names = {clause.id for clause in section.clauses}
    return [
        *(clauses[level] for level in LEVELS),
        len(section.clauses),
        *(cases[level] for level in LEVELS),
        len(own),
        sum("by_convention" in case.expect for case in own),
        sum(one.clause_id in names for one in PROPERTIES),
    ]


def _row(name: str, counts: Sequence[int]) -> str:
    cells = [f"{count:>{width}}" for count, width in zip(counts, (5, 7, 4, 5, 5) * 2 + (8, 6), strict=True)]
    return f"{name:9}|{''.join(cells[:5])} |{''.join(cells[5:10])} |{cells[10]}{cells[11]}"


def _about(spec: Spec) -> Iterator[str]:
    """Yield what the cases cover: operations, patterns, conventions."""
    ops = Counter(case.op for case in spec.cases)
    patterns = Counter(case.pattern for case in spec.cases)
    yield f"operations   {_told(ops)}"
    yield f"patterns     {_told(patterns)}"
    for name, keys, default in (("tie-breaks", TRAINING_KEYS, "lex-greater"), ("lookups", LOOKUP_KEYS, "pair")):
        held = Counter({key: sum(_own_value(case, key, default) for case in spec.cases) for key in keys})
        told = ", ".join(f"{key} {held[key]}" for key in keys if key != default)
        yield f"{name:13}cases with another value than {default}: {told}"


def _own_value(case: Case, key: str, default: str) -> bool:
    values = case.expect.get("by_convention", {})
    return key in values and values[key] != values.get(default)


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())
