"""Looking inside a network: what to record, and where it is put.

`model(x, taps=("rate", "window"))` returns the logits and, for every layer by name,
the recorded quantities. Reductions of the membrane have one value a step, `[T]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from torch import Tensor

from quadspike.constant import constant
from quadspike.errors import QuadspikeError, check_name

KINDS = {
    "rate": "mean spike magnitude per neuron and step, [T]",
    "mean": "mean membrane, differentiable, [T]",
    "window": "share of membranes inside the surrogate's window, [T]",
    "largest": "largest |membrane|, [T]",
    "finite": "whether every membrane is a finite number, [T]",
    "histogram": "counts of membranes in equal bins, both ends open, [T, bins]",
    "membrane": "the whole membrane, [T, B, ...]",
    "spikes": "the neuron's own spikes, before any sum, [T, B, ...]",
    "output": "the output of a block or a layer, [T, B, ...]",
}

Seen = dict[str, dict[str, Tensor]]


@dataclass(frozen=True)
class Taps:
    """Which quantities to record, in which layers, and the histogram's axis.

    >>> Taps.of("rate").kinds
    ('rate',)
    """

    kinds: tuple[str, ...]
    layers: str = "*"
    low: float = -3.0
    high: float = 3.0
    bins: int = 120

    def __post_init__(self) -> None:
        for kind in self.kinds:
            check_name("tap", kind, KINDS)
        if not (self.low < self.high and self.bins >= 1):
            raise QuadspikeError(
                f"a histogram needs low < high and bins >= 1, "
                f"got low={self.low}, high={self.high}, bins={self.bins}"
            )

    @classmethod
    def of(cls, request: Taps | str | Sequence[str]) -> Taps:
        if isinstance(request, Taps):
            return request
        if isinstance(request, str):
            return cls((request,))
        if not isinstance(request, Sequence):
            raise QuadspikeError(f"taps are names such as 'rate', or Taps(...), got {request!r}")
        return cls(tuple(request))

    def without(self, other: str) -> Taps | None:
        """The rest of it, if any is left."""
        kinds = tuple(kind for kind in self.kinds if kind != other)
        return replace(self, kinds=kinds) if kinds else None

    def match(self, layer: str) -> bool:
        """Whether to look at the layer of this name."""
        return bool(_matches(layer, self.layers))


@constant
def _matches(layer: str, pattern: str) -> bool:
    return fnmatchcase(layer, pattern)
