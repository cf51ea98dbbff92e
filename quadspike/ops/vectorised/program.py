"""A tape as instructions: what nobody wants left out, memory used again, constants done once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from quadspike.ops.vectorised.tape import Node, Tape, Value

_NUMBERED = {"add": "alpha", "addcmul": "value"}
"""What the number of an operation is called in torch."""


class Instruction(NamedTuple):
    """`function(*slots read, **options)` into a slot."""

    function: Callable[..., Tensor]
    reads: tuple[int, ...]
    options: dict[str, float]
    into: int


class Program:
    """Outputs of a tape from its inputs, over one block after the other.

    A call's slots: the inputs, the outputs, `spare` tensors for what lies between, and what
    `fix` made of the constants. An output may be the memory of the input it is added to.
    """

    def __init__(self, tape: Tape, outputs: Sequence[Any]) -> None:
        wanted = [
            value.settle() if isinstance(value, Value) else tape.literal(value) for value in outputs
        ]
        nodes = _fused(tape.nodes, wanted)
        needed = _needed(nodes, wanted)
        self._constants = tape.constants
        self.same = [wanted.index(node) for node in wanted]
        """For every output the first one that is equal to it."""
        self._fixed = [i for i in needed if nodes[i].fixed]
        self._nodes = nodes
        self._emit(tape, wanted, [i for i in needed if not nodes[i].fixed])

    def _emit(self, tape: Tape, wanted: list[int], order: list[int]) -> None:
        nodes, first_output = self._nodes, len(tape.inputs)
        slot = {node: index for index, node in enumerate(tape.inputs)}
        last_use = {read: i for i in order for read in nodes[i].reads}
        mine = {node: first_output + k for k, node in reversed(list(enumerate(wanted)))}
        first_spare = first_output + len(wanted)
        free: list[int] = []
        self.spare = 0
        pending: list[tuple[int, tuple[int, ...], int]] = []
        for i in order:
            if nodes[i].name == "input":
                continue
            done = {r for r in nodes[i].reads if last_use[r] == i and slot.get(r, -1) >= first_spare}
            free += sorted(slot[read] for read in done)
            if i in mine:
                slot[i] = mine[i]
            elif free:
                slot[i] = free.pop()
            else:
                slot[i] = first_spare + self.spare
                self.spare += 1
            pending.append((i, nodes[i].reads, slot[i]))
        first_fixed = first_spare + self.spare
        slot |= {node: first_fixed + k for k, node in enumerate(self._fixed)}
        self._code = [
            Instruction(getattr(torch, nodes[i].name), tuple(slot[r] for r in reads), _options(nodes[i]), into)
            for i, reads, into in pending
        ]
        self._copies = [
            (slot[node], first_output + k)
            for k, node in enumerate(wanted)
            if slot[node] != first_output + k
        ]

    def fix(self, constants: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
        """The constants, numbers as tensors, and all that follows from them alone."""
        made: dict[int, Tensor] = dict(zip(self._constants, constants, strict=True))
        for i in self._fixed:
            node = self._nodes[i]
            if node.name == "number":
                made[i] = torch.tensor(node.number, dtype=dtype)
            elif node.name != "constant":
                function = getattr(torch, node.name)
                value = function(*(made[read] for read in node.reads), **_options(node))
                made[i] = value.to(dtype)  # comparisons give booleans
        return [made[i] for i in self._fixed]

    def __call__(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        spare: Sequence[Tensor],
        fixed: Sequence[Tensor],
    ) -> None:
        slots = [*inputs, *outputs, *spare[: self.spare], *fixed]
        for function, reads, options, into in self._code:
            function(*[slots[read] for read in reads], **options, out=slots[into])
        for source, target in self._copies:
            if slots[target] is not slots[source]:
                slots[target].copy_(slots[source])


def _options(node: Node) -> dict[str, float]:
    name = _NUMBERED.get(node.name)
    return {name: node.number} if name and node.number != 1.0 else {}


def _needed(nodes: list[Node], wanted: list[int]) -> list[int]:
    """What the outputs follow from, in the order it was recorded."""
    found = set(wanted)
    for i in reversed(range(len(nodes))):
        if i in found:
            found.update(nodes[i].reads)
    return sorted(found)


def _fused(nodes: list[Node], wanted: list[int]) -> list[Node]:
    """`a + k b c` as one operation where the product serves nothing else."""
    needed = _needed(nodes, wanted)
    uses = Counter(read for i in needed for read in nodes[i].reads) + Counter(wanted)
    fused = list(nodes)
    for i in needed:
        node = nodes[i]
        if node.name != "add" or node.fixed or node.number == 0.0:
            continue
        base, other = node.reads
        if node.number == 1.0 and nodes[base].name == "mul" and nodes[other].name != "mul":
            base, other = other, base
        product = nodes[other]
        if product.name == "mul" and uses[other] == 1 and not product.fixed:
            if all(nodes[read].name != "number" for read in (base, *product.reads)):
                fused[i] = Node("addcmul", (base, *product.reads), node.number)
    return fused
