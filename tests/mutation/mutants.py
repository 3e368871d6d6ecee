"""Makes mutants of a module with cosmic-ray's operators and one of our own."""

from __future__ import annotations

import ast
import contextlib
import difflib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import parso
from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

import bpe_conformance.reference

REFERENCE = Path(bpe_conformance.reference.__file__).parent
USELESS = ("Variable", "Eq_Is", "Lt_Is", "LtE_Is", "Gt_Is", "GtE_Is")
"""Operators that are random, and those that compare the identity of numbers, which CPython decides."""
STATEMENTS = ("expr_stmt", "atom_expr", "yield_expr", "raise_stmt", "del_stmt")


class Mutant(NamedTuple):
    """A mutant: its position, the first line that it changes, before and after, and its whole source."""

    module: str
    function: str
    operator: str
    was: str
    now: str
    source: str


class DeleteStatement:
    """Our own operator, in cosmic-ray's form, which replaces an assignment, call, yield, raise or del by `pass`."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if node.type == "simple_stmt" and node.children[0].type in STATEMENTS:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        statement = parso.parse("pass\n").children[0]  # type: ignore[no-untyped-call]
        statement.get_first_leaf().prefix = node.get_first_leaf().prefix
        return statement


def mutants(module: str, unreached: Collection[str]) -> Iterator[Mutant]:
    """Yield each mutant once, except those that are not Python, that run the same, or that are in `unreached`.

    `unreached` names constants, and functions whose bodies and calls are not mutated.
    """
    source = (REFERENCE / f"{module}.py").read_text("utf-8")
    nodes = list(ast_nodes(get_ast(source)))
    seen = {_dump(source, unreached)}
    operators = {name.removeprefix("core/"): plugins.get_operator(name) for name in plugins.operator_names()}
    for name, operator in {**operators, "DeleteStatement": DeleteStatement}.items():
        if any(word in name for word in USELESS):
            continue
        for occurrence in range(sum(len(list(operator().mutation_positions(node))) for node in nodes)):
            changed = mutate_code(source, operator(), occurrence)
            with contextlib.suppress(SyntaxError):
                dump = _dump(changed, unreached)
                if dump not in seen:
                    seen.add(dump)
                    function, was, now = _first_change(source, changed)
                    yield Mutant(module, function, name, was, now, changed)


def _dump(source: str, unreached: Collection[str]) -> str:
    tree = ast.parse(source)
    compile(tree, "", "exec", dont_inherit=True)
    _Plain().visit(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in unreached:
            node.body = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in unreached:
            node.args = []
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in unreached:
            node.value = ast.Constant(None)
    return ast.dump(tree)


class _Plain(ast.NodeTransformer):
    """Removes code that never runs, annotations, docstrings, and messages of errors, which are not tested."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        node.returns = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        node.annotation = ast.Name("object", ast.Load())
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.Raise:
        if isinstance(node.exc, ast.Call):
            node.exc.args = []
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return ast.Pass() if isinstance(node.value, ast.Constant) else node


def _first_change(old: str, new: str) -> tuple[str, str, str]:
    """Return the function of the first line that differs, and that line before and after."""
    before, after = old.splitlines(), new.splitlines()
    changes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    _, start, end, new_start, new_end = next(change for change in changes if change[0] != "equal")
    functions = [node for node in ast.walk(ast.parse(old)) if isinstance(node, ast.FunctionDef)]
    starts = [min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) for node in functions]
    around = [
        node.name for node, first in zip(functions, starts, strict=True) if first <= end <= (node.end_lineno or 0)
    ]
    sides = (before[start:end], after[new_start:new_end])
    was, now = (next((" ".join(line.split()) for line in side if line.strip()), "") for side in sides)
    return around[-1] if around else "", was, now
