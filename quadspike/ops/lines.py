"""A neuron's lines as syntax: what only Python knows is put in as numbers, or told."""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from quadspike.ops.vectorised.tape import FUNCTIONS


class UnknownLineError(Exception):
    """What in the lines no kernel can be made of."""


def read(function: Callable[..., Any]) -> ast.FunctionDef:
    """A function of plain arithmetic, without annotations, with literals for numbers from outside
    of it and products for squares. Refuses what is more than arithmetic of them.

    >>> HALF = 0.5
    >>> def line(u: float, p: tuple) -> float:
    ...     return HALF * u**2 + p.beta
    >>> print(ast.unparse(read(line)))
    def line(u, p):
        return 0.5 * (u * u) + p.beta
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        raise UnknownLineError("its source cannot be read") from None
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise UnknownLineError("it is no def")
    outside = inspect.getclosurevars(function)
    plain = _Plain(definition, {**outside.globals, **outside.nonlocals})
    definition.body = [made for line in definition.body if (made := plain.visit(line))]
    definition.decorator_list, definition.returns = [], None
    for argument in definition.args.args:
        argument.annotation = None
    return ast.fix_missing_locations(definition)


_STATEMENTS = ast.Return | ast.Assign | ast.AnnAssign | ast.AugAssign
_EXPRESSIONS = ast.Tuple | ast.UnaryOp | ast.BinOp | ast.Compare | ast.Constant
_LOOKED_INTO = ast.Name | ast.Attribute | ast.Call
_SIGNS = ast.operator | ast.unaryop | ast.cmpop | ast.expr_context


class _Plain(ast.NodeTransformer):
    """Arithmetic alone is left."""

    def __init__(self, definition: ast.FunctionDef, outside: dict[str, Any]) -> None:
        names = (node for node in ast.walk(definition) if isinstance(node, ast.Name))
        self.inside = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        self.inside |= {argument.arg for argument in definition.args.args}
        self.outside = outside

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return None  # a docstring
        if not isinstance(node, _STATEMENTS | _EXPRESSIONS | _LOOKED_INTO | _SIGNS):
            raise _unknown(node)
        return super().visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        return ast.copy_location(ast.Assign([node.target], self.visit(node.value)), node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return node if node.id in self.inside else self._number(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        ours = isinstance(node.value, ast.Name) and node.value.id in self.inside
        return node if ours else self._number(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Pow):
            return node
        if not (isinstance(node.right, ast.Constant) and node.right.value == 2):
            raise _unknown(node)
        return ast.copy_location(ast.BinOp(node.left, ast.Mult(), copy.deepcopy(node.left)), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("to", *FUNCTIONS):
            node.func.value = self.visit(node.func.value)
            return node
        if isinstance(node.func, ast.Name) and node.func.id == "abs" not in self.inside:
            node.args = [self.visit(argument) for argument in node.args]
            return node
        raise _unknown(node)

    def _number(self, node: ast.Name | ast.Attribute) -> ast.AST:
        found = self._outside(node)
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise _unknown(node)
        return ast.copy_location(ast.Constant(found), node)

    def _outside(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Attribute):
            return getattr(self._outside(node.value), node.attr, None)
        return self.outside.get(node.id) if isinstance(node, ast.Name) else None


def _unknown(node: ast.AST) -> UnknownLineError:
    return UnknownLineError(f"`{ast.unparse(node)}` is no plain arithmetic of its arguments")
