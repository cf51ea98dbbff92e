"""What travels with one batch through a network.

Modules keep nothing between calls; a `Call` carries the time axis, the states to go on
from, what to look at and the key of every random draw.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch import Tensor, nn

from quadspike.taps import Seen, Taps

if TYPE_CHECKING:
    from quadspike.randomness import Key
    from quadspike.state import State


class Timed(nn.Module):
    """A module whose `forward(x, call)` needs to know about time, and tells those inside it.

    `x` is `[T*B, ...]`, or `[B, ...]` before the first soma. A residual block:

    >>> from quadspike import Chain, Soma
    >>> class Block(Timed):
    ...     def __init__(self, width):
    ...         super().__init__()
    ...         self.first = Chain(nn.Linear(width, width), Soma(width))
    ...         self.second = Chain(nn.Linear(width, width), Soma(width, residual="after"))
    ...     def forward(self, x, call):
    ...         return self.second(self.first(x, call), call, x)
    """


@dataclass
class Call:
    """One trip of `batch` samples over `timesteps` steps; activations are `[T*B, ...]`."""

    timesteps: int
    batch: int
    names: dict[nn.Module, str] = field(default_factory=dict)
    taps: Taps | None = None
    seen: Seen = field(default_factory=dict)
    states: dict[str, State] | None = None
    key: Key | None = None
    visits: dict[nn.Module, int] = field(default_factory=dict)

    def name(self, module: nn.Module) -> str:
        return self.names.get(module, type(module).__name__)

    def visit(self, module: nn.Module) -> str:
        """The module's name in this call; a module run again is `name@2`, `name@3`, ..."""
        again = self.visits.get(module, 0) + 1
        self.visits[module] = again
        return self.name(module) if again == 1 else f"{self.name(module)}@{again}"

    def unflatten(self, flat: Tensor) -> Tensor:
        """`[T*B, ...]` as `[T, B, ...]`; what no soma has spread over time repeats."""
        steps = flat.view(-1, self.batch, *flat.shape[1:])
        return steps.expand(self.timesteps, *steps.shape[1:])

    def taps_for(self, module: nn.Module) -> Taps | None:
        """What to look at in `module`, if anything."""
        return self.taps if self.taps and self.taps.match(self.name(module)) else None

    def record(self, label: str, **values: Tensor) -> None:
        self.seen.setdefault(label, {}).update(values)
