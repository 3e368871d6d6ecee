"""Rules about cases and the witnesses that agree, about files, ids and references, and about clauses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bpe_conformance.fixtures.yaml_file import Document, PathOf, SpecError

from ...properties import PROPERTIES
from ...spec import SECTIONS, Case, Clause, load_spec
from ..witnesses import HAND
from .rule import Context, Violation, at, at_case, case_rule, clause_rule, rule

VAGUE = re.compile(r"\b(should|must|probably|correctly|works|test)\b", re.IGNORECASE)


@case_rule("title-words", "title", "a title states a fact: no should, must, probably, correctly, works, test")
def _title_words(case: Case, _: Context) -> str:
    match = VAGUE.search(case.title)
    return f"the title contains {match.group()!a}; state a fact" if match else ""


@case_rule("title-full-stop", "title", "a title does not end with a full stop and has no space around it")
def _title_full_stop(case: Case, _: Context) -> str:
    if case.title.endswith(".") and not case.title.endswith("..."):
        return "the title ends with a full stop; delete it"
    return "the title has white space around it; delete that" if case.title != case.title.strip() else ""


@rule("title-unique", "two cases of one clause have different titles")
def _title_unique(context: Context) -> Iterator[Violation]:
    seen: dict[tuple[str, str], str] = {}
    for case in context.spec.cases:
        first = seen.setdefault((case.clause.id, case.title.lower()), case.id)
        if first != case.id:
            yield at_case(case, "title", f"{first} has the same title; state what differs")


@case_rule("witness-known", "agrees", f"`agrees` names only witnesses of fixtures/witnesses.yaml, or {HAND}")
def _witness_known(case: Case, context: Context) -> str:
    unknown = ", ".join(name for name in case.agrees if name not in context.witnesses)
    return f"there is no witness {unknown}; describe it in witnesses.yaml, or delete the name" if unknown else ""


@case_rule("any-of-note", "expect", "a case with `any_of` has a `note` that explains why each answer is correct")
def _any_of_note(case: Case, _: Context) -> str:
    is_open = not case.note and any(len(alternatives) > 1 for alternatives in case.expected.values.values())
    return "several answers are accepted; explain in `note` why each is correct" if is_open else ""


# Files, ids, references and clauses

REFERENCE = re.compile(rf"\b(?:{'|'.join(SECTIONS)})(?:-[A-Z0-9]+)+-[0-9]+\b")
PROSE = ("statement", "rationale", "uncased")
ELSEWHERE = "real-text-"
KEYWORD = re.compile(r"\b(MUST|SHOULD|MAY)\b")
BINDING = ("must", "should")
WITH_PROPERTY = frozenset(property_.clause_id for property_ in PROPERTIES)


@rule(
    "schema",
    "every file is strict YAML and valid under its JSON Schema; ids are unique; clauses and models exist",
    before_loading=True,
)
def _schema(context: Context) -> Iterator[Violation]:
    try:
        load_spec(context.folder)
        assert context.retired is not None
    except SpecError as error:
        yield Violation(error.file or context.folder, error.line, error.message)


@case_rule(
    "id-section", "id", f"the id of a case begins with the section of its clause in lower case, or with {ELSEWHERE}"
)
def _id_section(case: Case, _: Context) -> str:
    section = case.clause.section.lower() + "-"
    is_right = case.id.startswith((section, ELSEWHERE))
    return "" if is_right else f"the id {case.id} does not begin with {section}; rename it"


@rule("id-retired", "no id in retired.yaml is used again")
def _id_retired(context: Context) -> Iterator[Violation]:
    cases, clauses, properties = (context.retired[kind] for kind in ("cases", "clauses", "laws"))
    for case in context.spec.cases:
        if case.id in cases:
            yield at_case(case, "id", f"the id {case.id} is retired; choose a new one")
    for clause, document, path in context.clauses.values():
        if clause.id in clauses:
            yield at(document, (*path, "id"), f"the id {clause.id} is retired; choose a new one")
    for one in PROPERTIES:
        if one.id in properties:
            message = f"the id {one.id} is retired, but a property has it; give the property a new one"
            yield Violation(context.folder / "retired.yaml", 0, message)


@rule("references-exist", "every clause that a statement, rationale, intro or note names exists")
def _references_exist(context: Context) -> Iterator[Violation]:
    known = context.spec.clauses
    prose: list[tuple[Document, PathOf, str | None]] = []
    prose += [(document, ("intro",), document.value["intro"]) for document in context.documents("clauses")]
    for clause, document, path in context.clauses.values():
        prose += [(document, (*path, key), getattr(clause, key)) for key in PROSE]
    prose += [(case.document, (*case.path, "note"), case.note) for case in context.spec.cases if case.document]
    for document, path, text in prose:
        for name in REFERENCE.findall(text or ""):
            if name not in known:
                yield at(document, path, f"there is no clause {name}; name an existing one")


@clause_rule("example-exists", "every example of a clause is the id of one of its cases")
def _example_exists(clause: Clause, context: Context) -> str:
    cases = {case.id for case in context.spec.cases if case.clause.id == clause.id}
    unknown = ", ".join(name for name in clause.examples if name not in cases)
    return f"{clause.id} has no case {unknown}; name one of its cases" if unknown else ""


@clause_rule(
    "statement-keyword",
    "the first of MUST, SHOULD and MAY in a statement is the level of the clause; an open one has none",
)
def _statement_keyword(clause: Clause, _: Context) -> str:
    found = KEYWORD.search(clause.statement)
    says = f"says {found.group()}" if found else "has no keyword"
    is_right = (found.group().lower() if found else "unspecified") == clause.level
    return "" if is_right else f"{clause.id} is {clause.level}, but its statement {says}; use the keyword of the level"


@clause_rule(
    "clause-cased", "a must or should clause has a case or a property, or `uncased`, the reason why it cannot have one"
)
def _clause_cased(clause: Clause, context: Context) -> str:
    is_tested = context.case_counts[clause.id] or clause.uncased or clause.id in WITH_PROPERTY
    if clause.level not in BINDING or is_tested:
        return ""
    return f"{clause.id} has no case and no property; write one, or give the reason in `uncased`"


@clause_rule("uncased-means-none", "a clause with `uncased` has no case")
def _uncased_means_none(clause: Clause, context: Context) -> str:
    has_both = clause.uncased and context.case_counts[clause.id]
    return f"{clause.id} has `uncased` and a case; delete `uncased`" if has_both else ""


@clause_rule("few-cases", "a must or should clause without a property has at least two cases", warning=True)
def _few_cases(clause: Clause, context: Context) -> str:
    is_alone = context.case_counts[clause.id] == 1 and not clause.uncased and clause.id not in WITH_PROPERTY
    few = clause.level in BINDING and is_alone
    return f"{clause.id} has one case; write another that a different mistake fails" if few else ""
