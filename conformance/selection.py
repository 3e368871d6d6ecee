"""Selects cases and properties by id, clause, section, level or operation, with suggestions for typos."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType
from typing import Protocol

from .operations import IN_YAML
from .spec import LEVELS, SECTIONS, Clause

SUGGESTIONS = 3


class SelectionError(ValueError):
    """A filter names something that does not exist. The message is one line with suggestions."""


class Entry(Protocol):
    """A case or a property."""

    @property
    def id(self) -> str: ...

    @property
    def clause(self) -> Clause: ...


@dataclass(frozen=True)
class Selection:
    """Filters, in any letter case. An entry is selected if it passes each filter that is not empty.

    `clauses` are ids or prefixes of them that end before a hyphen: `MERGE-ORDER`. Properties have no operation.
    """

    ids: Sequence[str] = ()
    clauses: Sequence[str] = ()
    sections: Sequence[str] = ()
    levels: Sequence[str] = ()
    operations: Sequence[str] = ()

    def check(self, ids: Collection[str], clauses: Iterable[str]) -> None:
        """Raise SelectionError for the first name that does not exist."""
        prefixes = {prefix for clause in clauses for prefix in accumulate(clause.split("-"), "{}-{}".format)}
        kinds = {"section": SECTIONS, "clause": prefixes, "case or property": ids}
        by_lower = {one.lower(): one for one in ids}
        for name in self.ids:
            known(by_lower.get(name.lower(), name), ids, "case or property", kinds=kinds)
        for name in self.clauses:
            known(name.upper().rstrip("-"), prefixes, "clause", kinds=kinds)
        for name in self.sections:
            known(name.upper(), SECTIONS, "section", listed=True, kinds=kinds)
        for name in self.levels:
            known(name, LEVELS, "level", listed=True)
        for name in self.operations:
            known(name, [kind.name for kind in IN_YAML], "operation", listed=True)

    def matches(self, entry: Entry) -> bool:
        clause = entry.clause
        prefixes = [f"{name.upper().rstrip('-')}-" for name in self.clauses]
        return (
            (not self.ids or entry.id.lower() in map(str.lower, self.ids))
            and (not prefixes or any(map(f"{clause.id}-".startswith, prefixes)))
            and (not self.sections or clause.section in map(str.upper, self.sections))
            and (not self.levels or clause.level in self.levels)
            and (not self.operations or _operation(entry) in self.operations)
        )


def _operation(entry: Entry) -> str | None:
    return getattr(getattr(entry, "operation", None), "name", None)  # a property has none


def known(
    name: str,
    names: Iterable[str],
    what: str,
    listed: bool = False,
    see: str = "bpe-conformance list",
    kinds: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> None:
    """Raise SelectionError if `name` is not one of `names`: one line with the nearest, in any case and from any part.

    `what` is what a name is, in the singular; `kinds` has the names of other kinds, of which it may be one. If none is
    near, the error lists all names, or says what to `see`.

    >>> known("merge-oder-1", ["MERGE-ORDER-1", "BYTES-ALL-1"], "clause")
    Traceback (most recent call last):
    bpe_conformance.selection.SelectionError: there is no clause 'merge-oder-1'; did you mean MERGE-ORDER-1?
    """
    every = list(names)
    if name in every:
        return
    by_lower = {one.lower(): one for one in every}
    start = name.lower() if "-" in name else f"{name.lower()}-"  # a part of a word alone can begin many others
    near = [lower for lower in by_lower if name and lower.startswith(start)][:SUGGESTIONS]
    near += [lower for lower in difflib.get_close_matches(name.lower(), by_lower, SUGGESTIONS) if lower not in near]
    near = near[:SUGGESTIONS]
    others = (lower for lower in by_lower if name and name.lower() in lower and lower not in near)
    near += [*others][: SUGGESTIONS - len(near)]
    if other := next((kind for kind, some in kinds.items() if name.lower() in map(str.lower, some)), ""):
        fix = f"it is a {other}"
    elif near:
        fix = f"did you mean {' or '.join(by_lower[lower] for lower in near)}?"
    else:
        fix = f"choose one of {', '.join(every)}" if listed else f"see {see}"
    raise SelectionError(f"there is no {what} {name!a}; {fix}")
