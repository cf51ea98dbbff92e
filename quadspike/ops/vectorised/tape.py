"""A neuron's lines of arithmetic, recorded once to be run with as few passes as possible.

Values carry a number as their factor, so that a multiplication by a constant costs nothing until
it must; comparisons give 0 and 1 in the type of the activations, which torch does several times
faster than with booleans.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from quadspike.errors import QuadspikeError

FUNCTIONS = ("abs", "exp", "log", "sqrt", "sigmoid", "sin", "cos", "tanh")
"""Methods of a tensor a recorded line may call."""
_MODERATE = 1e3
"""Up to which ratio two terms of a sum may share a factor without harm to either's range."""


class Node(NamedTuple):
    """One operation of torch: its name, the nodes it reads, and a number it takes."""

    name: str
    reads: tuple[int, ...] = ()
    number: float = 1.0
    fixed: bool = False
    """Whether it reads constants only, the same in every block."""


class Tape:
    """What was recorded; an equal operation is recorded once."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._known: dict[Node, int] = {}
        self.inputs: list[int] = []
        self.constants: list[int] = []

    def input(self) -> Value:
        """A tensor of the block's shape."""
        return self._leaf("input", self.inputs, fixed=False)

    def constant(self) -> Value:
        """A tensor that broadcasts over the block."""
        return self._leaf("constant", self.constants, fixed=True)

    def record(self, name: str, *reads: int, number: float = 1.0) -> Value:
        """The value of one more operation."""
        fixed = all(self.nodes[read].fixed for read in reads)
        node = Node(name, reads, number, fixed)
        if node not in self._known:
            self._known[node] = len(self.nodes)
            self.nodes.append(node)
        return Value(self, self._known[node])

    def literal(self, number: float) -> int:
        """The node of a number."""
        return self.record("number", number=float(number)).node

    def _leaf(self, name: str, leaves: list[int], fixed: bool) -> Value:
        leaves.append(len(self.nodes))
        self.nodes.append(Node(name, (), len(leaves), fixed))
        return Value(self, leaves[-1])


class Number(float):
    """A number where a value might be: what follows from it alone is one too, found once."""

    dtype = None

    def to(self, dtype: Any) -> Number:
        return self

    def __and__(self, other: Any) -> Any:
        return self * other

    __rand__ = __and__

    def __getattr__(self, name: str) -> Any:
        if name not in FUNCTIONS:
            raise QuadspikeError(f"a number has no {name!r}")
        return lambda: _by_torch(name, self)


def _by_torch(name: str, *numbers: float) -> Number:
    """As torch has it, where Python would raise: `1 / 0`, `log(0)`."""
    first, *others = (torch.tensor(number, dtype=torch.float64) for number in numbers)
    return Number(getattr(first, name)(*others))


def _operation(name: str) -> Callable[..., Any]:
    def operation(self: Number, *others: Any) -> Any:
        if any(isinstance(other, Value) for other in others):
            return NotImplemented
        return _by_torch(name, self, *map(_number, others))

    return operation


_ARITHMETIC = "neg abs add radd sub rsub mul rmul truediv rtruediv pow ge gt le lt eq"
for _name in (f"__{short}__" for short in _ARITHMETIC.split()):
    setattr(Number, _name, _operation(_name))


class Value:
    """`factor` times what a node computes; behaves as a tensor does in arithmetic."""

    __slots__ = ("factor", "node", "tape")
    __hash__ = None  # type: ignore[assignment]
    dtype = None  # whatever the block's is: `.to(v.dtype)` changes nothing

    def __init__(self, tape: Tape, node: int, factor: float = 1.0) -> None:
        self.tape, self.node, self.factor = tape, node, factor

    def settle(self) -> int:
        """The node that holds this value, its factor included."""
        if self.factor == 1.0:
            return self.node
        tape, node = self.tape, self.tape.nodes[self.node]
        if node.name == "mul" and not node.fixed:  # together with the product, in one pass
            zero = tape.literal(0.0)
            return tape.record("addcmul", zero, *node.reads, number=self.factor).node
        return tape.record("mul", self.node, tape.literal(self.factor)).node

    def times(self, number: float) -> Any:
        """A multiple, or the number 0."""
        factor = self.factor * number
        return Value(self.tape, self.node, factor) if factor else Number(0.0)

    def __neg__(self) -> Any:
        return self.times(-1.0)

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, Value):
            return self.times(_number(other))
        product = _product(self.tape, self.node, other.node)
        return product.times(self.factor * other.factor)

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Value):
            other = _number(other)
            if other == 0.0:
                return self
            shift = self.tape.literal(other / self.factor)
            return self.tape.record("add", self.node, shift).times(self.factor)
        first, second = self, other
        if self._is_product != other._is_product:
            first, second = (other, self) if self._is_product else (self, other)
        elif other.factor == 1.0:
            first, second = other, self
        ratio = second.factor / first.factor
        if not 1 / _MODERATE <= abs(ratio) <= _MODERATE:
            first, ratio = Value(self.tape, first.settle()), second.factor
        total = self.tape.record("add", first.node, second.node, number=ratio)
        return total.times(first.factor)

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __truediv__(self, other: Any) -> Any:
        if not isinstance(other, Value):
            return self.times(1.0 / _number(other))
        quotient = self.tape.record("div", self.node, other.node)
        return quotient.times(self.factor / other.factor)

    def __rtruediv__(self, other: Any) -> Any:
        return self.tape.record("reciprocal", self.node).times(_number(other) / self.factor)

    def __pow__(self, power: Any) -> Any:
        if power != 2:
            raise QuadspikeError(f"a recorded value is raised to 2 only, not {power}")
        return self * self

    def __abs__(self) -> Any:
        return self.abs()

    def __and__(self, other: Any) -> Any:
        return self * other

    def __ge__(self, other: Any) -> Any:
        return self._compare("ge", other)

    def __gt__(self, other: Any) -> Any:
        return self._compare("gt", other)

    def __le__(self, other: Any) -> Any:
        return self._compare("le", other)

    def __lt__(self, other: Any) -> Any:
        return self._compare("lt", other)

    def __eq__(self, other: Any) -> Any:
        return self._compare("eq", other)

    def __bool__(self) -> bool:
        raise QuadspikeError("a recorded value is true for some elements only")

    __radd__, __rmul__, __rand__ = __add__, __mul__, __and__

    def __getattr__(self, name: str) -> Any:
        if name not in FUNCTIONS:
            raise QuadspikeError(f"a recorded value has no {name!r}")
        return lambda: self.tape.record(name, self.settle())

    def to(self, dtype: Any) -> Value:
        return self

    def also_if_not_finite(self, other: Value) -> Value:
        """This value, but no number where `other` is none or infinite."""
        return self.tape.record("add", self.settle(), other.settle(), number=0.0)

    def _compare(self, name: str, other: Any) -> Value:
        shift = self._shift
        if self.factor == 1.0 and shift is not None and not isinstance(other, Value):
            past = Value(self.tape, self.tape.nodes[self.node].reads[0])
            return past._compare(name, _number(other) - shift)
        node = other.settle() if isinstance(other, Value) else self.tape.literal(_number(other))
        return self.tape.record(name, self.settle(), node)

    @property
    def _is_product(self) -> bool:
        return self.tape.nodes[self.node].name == "mul"

    @property
    def _shift(self) -> float | None:
        """The number last added, if that was what was done last."""
        node = self.tape.nodes[self.node]
        if node.name != "add" or node.number != 1.0:
            return None
        last = self.tape.nodes[node.reads[1]]
        return last.number if last.name == "number" else None


def _product(tape: Tape, first: int, second: int) -> Any:
    """`first * second`; `f (o - 1)` as `-(f - f o)`, one pass instead of two."""
    for f, total in ((first, second), (second, first)):
        sign = Value(tape, total)._shift
        if sign in (1.0, -1.0) and not tape.nodes[total].fixed:
            o = tape.nodes[total].reads[0]
            return tape.record("addcmul", f, f, o, number=sign).times(sign)
    return tape.record("mul", first, second)


def _number(value: Any) -> float:
    if not isinstance(value, int | float):
        raise QuadspikeError(f"a recorded line mixes values with {type(value).__name__}")
    return float(value)
