"""Checks of the spec itself. One rule is one small class; tests/bad_specs/ holds what breaks it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bpe_conformance.fixtures.spec import load_spec

from . import coverage, loading, names, texts, values
from .rule import Context, Finding, Rule

FIRST: tuple[Rule, ...] = (loading.ModelsPinned(), loading.Schema())
RULES: tuple[Rule, ...] = (
    *FIRST,
    names.IdSection(),
    names.IdRetired(),
    names.TitleWords(),
    names.TitleFullStop(),
    names.TitleUnique(),
    names.ReferencesExist(),
    texts.TextQuoted(),
    texts.TextEscaped(),
    texts.UnicodeTwelve(),
    texts.EnginesAgree(),
    texts.TextSize(),
    values.WitnessKnown(),
    values.ExpectOrder(),
    values.AnyOfNote(),
    coverage.ClauseCased(),
    coverage.UncasedMeansNone(),
    coverage.FewCases(),
)

__all__ = ["FIRST", "RULES", "Context", "Finding", "Rule", "lint", "verdict"]


def lint(folder: Path) -> list[Finding]:
    """Return what is wrong with the spec in `folder`, by file and line. A spec that does not load breaks one rule."""
    before = Context(folder)
    found = [finding for rule in FIRST for finding in rule.check(before)][:1]
    if not found:
        context = Context(folder, load_spec(folder, check_schema=False))
        found = [finding for rule in RULES if rule not in FIRST for finding in rule.check(context)]
    return sorted(found, key=lambda finding: (str(finding.file), finding.row, finding.rule))


def verdict(findings: Sequence[Finding]) -> str:
    """Return the last line of the report."""
    advice = sum(finding.advice for finding in findings)
    errors = len(findings) - advice
    told = f"{errors} {'error' if errors == 1 else 'errors'}" if errors else f"no error, by {len(RULES)} rules"
    return f"{told}; {advice} advisory" if advice else told
