"""Ids, titles and references."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bpe_conformance.fixtures.spec import SECTIONS

from ...properties.catalogue import PROPERTIES
from .rule import Context, Finding, Rule

VAGUE = re.compile(r"\b(should|must|probably|correctly|works|test)\b", re.IGNORECASE)
REFERENCE = re.compile(rf"\b(?:{'|'.join(SECTIONS)})(?:-[A-Z0-9]+)+-[0-9]+\b")
ELSEWHERE = "real-text-"


class IdSection(Rule):
    """The id of a case begins with the section of its clause."""

    name = "id-section"
    wants = f"the id of a case begins with its section in lower case, or with {ELSEWHERE}"

    def check(self, context: Context) -> Iterator[Finding]:
        """Look at the first word of every id."""
        for case in context.spec.cases:
            section = case.clause.section.lower() + "-"
            if not case.id.startswith((section, ELSEWHERE)):
                yield self.at_case(case, "id", f"the id {case.id} does not begin with {section}; choose one that does")


class IdRetired(Rule):
    """An id that was once used for something else is not used again."""

    name = "id-retired"
    wants = "an id that stands in retired.yaml is not used again"

    def check(self, context: Context) -> Iterator[Finding]:
        """Look every id up among the retired ones."""
        cases, clauses, laws = (context.retired[kind] for kind in ("cases", "clauses", "laws"))
        for case in context.spec.cases:
            if case.id in cases:
                yield self.at_case(case, "id", f"the id {case.id} is retired; choose a new one")
        for clause, document, path in context.clauses.values():
            if clause.id in clauses:
                yield self.at(document, (*path, "id"), f"the id {clause.id} is retired; choose a new one")
        for law in PROPERTIES:
            if law.id in laws:
                message = f"the id {law.id} is retired, but a law has it; give the law a new one"
                yield Finding(context.folder / "retired.yaml", 0, self.name, message)


class TitleWords(Rule):
    """A title states what is so."""

    name = "title-words"
    wants = "a title states a fact: no should, must, probably, correctly, works, test"

    def check(self, context: Context) -> Iterator[Finding]:
        """Look for words that state a wish."""
        for case in context.spec.cases:
            match = VAGUE.search(case.title)
            if match:
                yield self.at_case(case, "title", f"the title says {match.group()!a}; state what is so")


class TitleFullStop(Rule):
    """A title is no sentence with a full stop."""

    name = "title-full-stop"
    wants = "a title has no full stop at its end and no space around it"

    def check(self, context: Context) -> Iterator[Finding]:
        """Look at both ends."""
        for case in context.spec.cases:
            if case.title.endswith(".") and not case.title.endswith("..."):
                yield self.at_case(case, "title", "the title ends with a full stop; take it away")
            elif case.title != case.title.strip():
                yield self.at_case(case, "title", "the title has white space around it; take it away")


class TitleUnique(Rule):
    """Two cases of a clause differ in what they say."""

    name = "title-unique"
    wants = "two cases of one clause have different titles"

    def check(self, context: Context) -> Iterator[Finding]:
        """Compare the titles within each clause, whatever their case."""
        seen: dict[tuple[str, str], str] = {}
        for case in context.spec.cases:
            first = seen.setdefault((case.clause.id, case.title.lower()), case.id)
            if first != case.id:
                yield self.at_case(case, "title", f"the title is that of {first} too; say what differs")


class ReferencesExist(Rule):
    """A clause that prose names is there."""

    name = "references-exist"
    wants = "a clause that a statement, rationale, intro or note names exists"

    def check(self, context: Context) -> Iterator[Finding]:
        """Look up everything in prose that looks like the id of a clause."""
        known = context.spec.clauses
        for document in context.clause_documents:
            prose = [("intro",), *(("clauses", i, key) for i in range(len(document.value["clauses"])) for key in PROSE)]
            for path in prose:
                for name in _missing(_value(document.value, path), known):
                    yield self.at(document, path, f"there is no clause {name}; name one that there is")
        for case in context.spec.cases:
            for name in _missing(case.note, known):
                yield self.at_case(case, "note", f"there is no clause {name}; name one that there is")


PROSE = ("statement", "rationale", "uncased")


def _value(value: dict[str, object], path: tuple[str | int, ...]) -> object:
    found: object = value
    for key in path:
        if isinstance(found, dict):
            found = found.get(key)
        elif isinstance(found, list) and isinstance(key, int):
            found = found[key]
    return found


def _missing(prose: object, known: dict[str, object] | object) -> list[str]:
    assert isinstance(known, dict)
    return [name for name in REFERENCE.findall(prose) if name not in known] if isinstance(prose, str) else []
