"""`bpe-conformance lint`: checks of the spec. Each rule is a function; tests/bad_specs/ holds specs that break it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from bpe_conformance.fixtures.one_line import counted

from ...command_line import CommandError, print_lines
from ...properties import complete
from ...spec import FOLDER
from .. import spec_argument
from . import structure, texts  # noqa: F401  # they define the rules
from .rule import RULES, Context, Violation

__all__ = ["RULES", "arguments", "lint", "run", "verdict"]


def arguments(parser: argparse.ArgumentParser) -> None:
    spec_argument(parser)
    parser.add_argument("--rules", action="store_true", help="print the rules and check nothing")


def run(options: argparse.Namespace) -> int:
    """Print the findings and the spaces that the properties cover, or the rules; 1 if a rule is broken."""
    if options.rules:
        print_lines(f"{rule.name:20}{rule.summary}" for rule in RULES)
        return 0
    if not options.spec.is_dir():
        raise CommandError(f"{options.spec}: there is no directory of this name")
    findings = lint(options.spec)
    print_lines(finding.line(Path.cwd()) for finding in findings)
    if options.spec == FOLDER:
        print_lines(f"covered: all {count:,} {space}" for space, count in complete.spaces().items())
    print_lines([verdict(findings)])
    return 1 if any(not finding.warning for finding in findings) else 0


def lint(folder: Path) -> list[Violation]:
    """Return the findings in the spec in `folder`, by file and line; only the first, if the spec does not load."""
    context = Context(folder)
    found = [finding for rule in RULES if rule.before_loading for finding in rule.findings(context)][:1]
    if not found:
        found = [finding for rule in RULES if not rule.before_loading for finding in rule.findings(context)]
    return sorted(found, key=lambda finding: (str(finding.file), finding.row, finding.rule))


def verdict(findings: Sequence[Violation]) -> str:
    warnings = sum(finding.warning for finding in findings)
    errors = len(findings) - warnings
    line = counted(errors, "error") if errors else f"no errors; {len(RULES)} rules checked"
    return f"{line}; {counted(warnings, 'warning')}" if warnings else line
