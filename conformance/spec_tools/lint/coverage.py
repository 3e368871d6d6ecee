"""No clause without a case, unless it says why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...properties.catalogue import PROPERTIES
from .rule import Context, Finding, Rule

JUDGED = ("must", "should")
BOUND = frozenset(one.clause_id for one in PROPERTIES)


def _cases(context: Context) -> Counter[str]:
    return Counter(case.clause.id for case in context.spec.cases)


class ClauseCased(Rule):
    """A clause that is judged has something that judges it."""

    name = "clause-cased"
    wants = "a must or should clause has a case or a law, or says `uncased`: why it cannot"

    def check(self, context: Context) -> Iterator[Finding]:
        """Look for clauses that nothing judges."""
        cases = _cases(context)
        for clause in context.spec.clauses.values():
            if clause.level in JUDGED and not cases[clause.id] and not clause.uncased and clause.id not in BOUND:
                message = f"{clause.id} has no case; write one, or say in `uncased` why there cannot be one"
                yield self.at_clause(context, clause, message)


class UncasedMeansNone(Rule):
    """A clause that says why it has no case has none."""

    name = "uncased-means-none"
    wants = "a clause that says `uncased` has no case"

    def check(self, context: Context) -> Iterator[Finding]:
        """Look for clauses that say `uncased` and have cases."""
        cases = _cases(context)
        for clause in context.spec.clauses.values():
            if clause.uncased and cases[clause.id]:
                message = f"{clause.id} says `uncased`, but has a case; take `uncased` away"
                yield self.at_clause(context, clause, message)


class FewCases(Rule):
    """One case seldom tells a clause from its neighbours."""

    name = "few-cases"
    wants = "a must or should clause without a law has two cases at least"
    advice = True

    def check(self, context: Context) -> Iterator[Finding]:
        """Look for clauses that a single case judges."""
        cases = _cases(context)
        for clause in context.spec.clauses.values():
            alone = cases[clause.id] == 1 and not clause.uncased and clause.id not in BOUND
            if clause.level in JUDGED and alone:
                message = f"{clause.id} has one case; think of another side from which it can be got wrong"
                yield self.at_clause(context, clause, message)
