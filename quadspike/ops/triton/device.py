"""A neuron's own lines as functions of the GPU."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from quadspike.ops import equations, lines
from quadspike.ops.signature import Arguments
from quadspike.ops.vectorised.tape import FUNCTIONS


class Equation(NamedTuple):
    """What the kernels call; the last argument of each is a tuple of constants."""

    advance: Any
    advance_partials: Any
    excess: Any
    excess_partials: Any
    fire: Any
    derivative: Any


def equation(a: Arguments) -> Equation:
    """The compiled lines of a call's neuron and surrogate."""
    p, s = (
        tuple(isinstance(value, float) and value == 0.0 for value in part) for part in a.values()
    )
    return _equation(a.equation, p, s)


@cache
def _equation(key: str, p_zeros: tuple[bool, ...], s_zeros: tuple[bool, ...]) -> Equation:
    known = equations.find(key)
    neuron, fields = known.neuron, known.neuron_fields
    return Equation(
        device_function(neuron.advance, fields, p_zeros),
        device_function(neuron.advance_partials, fields, p_zeros),
        device_function(neuron.excess, fields, p_zeros),
        device_function(neuron.excess_partials, fields, p_zeros),
        device_function(neuron.fire, fields, p_zeros),
        device_function(known.surrogate.derivative, known.surrogate_fields, s_zeros),
    )


@triton.jit
def number(condition):  # type: ignore[no-untyped-def]
    """A comparison as 1 or 0, in one instruction where a conversion takes two."""
    if condition.dtype == tl.int1:
        result = tl.where(condition, 1.0, 0.0)
    else:
        result = condition.to(tl.float32)
    return result


@triton.jit
def sigmoid(x):  # type: ignore[no-untyped-def]
    """Like Triton's, in half its instructions: those keep denormal numbers, added to 1 here."""
    return libdevice.fast_dividef(1.0, 1.0 + libdevice.fast_expf(-x))


@triton.jit
def tanh(x):  # type: ignore[no-untyped-def]
    """By what is no larger than 1, so that nothing overflows."""
    small = tl.exp(-2.0 * tl.abs(x))
    size = (1.0 - small) / (1.0 + small)
    return tl.where(x < 0, -size, size)


_NAMES = {name: f"tl.{name}" for name in FUNCTIONS}
_NAMES |= {"to": "number", "sigmoid": "sigmoid", "tanh": "tanh"}
if triton.knobs.runtime.interpret:  # which has no such library
    _NAMES["sigmoid"] = "tl.sigmoid"


@cache
def device_function(
    function: Callable[..., Any], fields: tuple[str, ...], zeros: tuple[bool, ...]
) -> Any:
    """`function` for the GPU: `p.field` as the place in a plain tuple, `value.to(dtype)` as
    `number(value)`, and the methods of a tensor as functions. What a constant that is zero
    multiplies is left out."""
    definition = lines.read(function)
    places = _Places(definition.args.args[-1].arg, fields, zeros)
    source = ast.unparse(ast.fix_missing_locations(places.visit(definition)))
    # Triton reads a function's source through `inspect`, which asks the line cache.
    name = f"{function.__module__}.{function.__qualname__}"
    filename = f"<{name} {id(function)} {fields} {zeros}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    scope: dict[str, Any] = {"tl": tl, "number": number, "sigmoid": sigmoid, "tanh": tanh}
    exec(compile(source, filename, "exec"), scope)
    return triton.jit(scope[function.__name__])


def _is_zero(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


class _Places(ast.NodeTransformer):
    """Attributes of the constants by position: kernels build their tuple step by step."""

    def __init__(self, name: str, fields: tuple[str, ...], zeros: tuple[bool, ...]) -> None:
        self.name, self.fields, self.zeros = name, fields, zeros

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if not (isinstance(node.value, ast.Name) and node.value.id == self.name):
            return node
        index = self.fields.index(node.attr)
        if self.zeros[index]:
            return ast.Constant(0.0)
        return ast.copy_location(ast.Subscript(node.value, ast.Constant(index), node.ctx), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        left, right = _is_zero(node.left), _is_zero(node.right)
        if isinstance(node.op, ast.Mult) and (left or right):
            return ast.Constant(0.0)
        if isinstance(node.op, ast.Add | ast.Sub) and right:
            return node.left
        if isinstance(node.op, ast.Add) and left:
            return node.right
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute):
            name, value = node.func.attr, node.func.value
        else:
            name, (value,) = "abs", node.args  # the only function that lines may call
        if _is_zero(value):
            return ast.Constant(0.0 if name == "to" else getattr(torch.zeros(()), name)().item())
        ours = ast.parse(_NAMES[name], mode="eval").body
        return ast.copy_location(ast.Call(ours, [value], []), node)
