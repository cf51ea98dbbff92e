"""A tape as code: what nobody wants left out, memory used again, constants done once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from quadspike.ops.vectorised.tape import Node, Tape, Value

_NUMBERED = {"add": "alpha", "addcmul": "value"}
"""What the number of an operation is called in torch."""


class Program:
    """Outputs of a tape from its inputs, over one block after the other.

    An output may be the memory of the one input it is added to.
    """

    def __init__(self, tape: Tape, outputs: Sequence[Any]) -> None:
        wanted = [
            value.settle() if isinstance(value, Value) else tape.literal(value) for value in outputs
        ]
        self._nodes = nodes = _fused(tape.nodes, wanted)
        needed = _needed(nodes, wanted)
        self._constants = tape.constants
        self._fixed = [i for i in needed if nodes[i].fixed]
        self.same = [wanted.index(node) for node in wanted]
        """For every output the first one that is equal to it."""
        self.spare = 0
        self.source = self._write(tape.inputs, wanted, [i for i in needed if not nodes[i].fixed])
        """One operation a line, for whoever wants to read it."""
        made: dict[str, Any] = {
            name: getattr(torch, name, None) for name in {node.name for node in nodes}
        }
        # As text, because at the size of a block an interpreter of instructions of our own would
        # take as long as the operations.
        exec(self.source, made)
        self._run: Callable[[list[Tensor]], None] = made["run"]

    def _write(self, inputs: list[int], wanted: list[int], order: list[int]) -> str:
        nodes = self._nodes
        names = {node: f"input_{k}" for k, node in enumerate(inputs)}
        names |= {node: f"fixed_{k}" for k, node in enumerate(self._fixed)}
        outputs = {node: f"output_{k}" for k, node in reversed(list(enumerate(wanted)))}
        last_use = {read: i for i in order for read in nodes[i].reads}
        free: list[str] = []
        lines = []
        for i in order:
            if nodes[i].name == "input":
                continue
            reads = [names[read] for read in nodes[i].reads]
            done = {read for read in nodes[i].reads if last_use[read] == i}
            free += sorted(names[read] for read in done if names[read].startswith("spare"))
            if i in outputs:
                names[i] = outputs[i]
            elif free:
                names[i] = free.pop()
            else:
                names[i] = f"spare_{self.spare}"
                self.spare += 1
            options = [f"{key}={value!r}" for key, value in _options(nodes[i]).items()]
            lines.append(f"{nodes[i].name}({', '.join([*reads, *options, f'out={names[i]}'])})")
        for k, node in enumerate(wanted):
            if names[node] != f"output_{k}":
                lines.append(f"if output_{k} is not {names[node]}: output_{k}.copy_({names[node]})")
        counts = {
            "input": len(inputs),
            "output": len(wanted),
            "spare": self.spare,
            "fixed": len(self._fixed),
        }
        slots = ", ".join(f"{kind}_{k}" for kind, n in counts.items() for k in range(n))
        return "\n    ".join(["def run(slots):", f"[{slots}] = slots", *lines]) + "\n"

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
        self._run([*inputs, *outputs, *spare[: self.spare], *fixed])


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
            fused[i] = Node("addcmul", (base, *product.reads), node.number)
    return fused
