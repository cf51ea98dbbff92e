"""What every surrogate shares."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from quadspike.draws import EACH, Draws, share
from quadspike.errors import QuadspikeError
from quadspike.randomness import fresh_key


class Thresholded(Protocol):
    """What a surrogate may ask of its neuron."""

    @property
    def threshold(self) -> Any: ...

    @property
    def origin(self) -> Any: ...

    @property
    def progress(self) -> Tensor: ...

    def voltage_statistics(self, exact: bool = False) -> tuple[Any, Any]: ...


@dataclass(frozen=True)
class Surrogate:
    """Base: `constants(neuron)` once per call, `derivative(v, s)` per element.

    One's own is a frozen dataclass with a `name`, these two and `reach`; like a neuron's lines,
    those of `derivative` are arithmetic and tensor methods.

    One that `draws` has `share` as the last of its constants: `derivative` is the slope for one
    draw, uniform in (0, 1), that is put there, and `S` is the mean over all draws.
    """

    name: ClassVar[str]
    only_reference: ClassVar[str] = ""
    """Why the fused paths cannot run this surrogate, if they cannot."""
    not_vectorised: ClassVar[str] = ""
    """Why the CPU's fast path cannot run it, if only that one cannot."""
    evolves: ClassVar[bool] = False
    """Whether it reads the neuron's `progress`, the share of the training that is done."""

    @property
    def draws(self) -> int:
        """How many random numbers it draws for a place and a time step."""
        return 0

    def constants(self, neuron: Thresholded) -> Any:
        """What `derivative` reads, as a named tuple."""
        raise NotImplementedError

    @staticmethod
    def derivative(v: Any, s: Any) -> Any:
        """`S(v)`, standing in for d spike / d v."""
        raise NotImplementedError

    def slope(self, v: Tensor, s: Any, draws: Draws | None = None) -> Tensor:
        """`S(v)` of membranes `[B, ...]`; fresh draws unless given."""
        if not self.draws:
            plain: Tensor = self.derivative(v, s)
            return plain
        if draws is None:
            draws = Draws.of(fresh_key(), "", self.draws, v)
        total = torch.zeros_like(v)
        for k in range(draws.samples):
            if k % EACH == 0:
                word = draws.word(v, k // EACH)
            one = s._replace(share=share(word, k % EACH, v.dtype))
            total = total + self.derivative(v, one)
        return total / draws.samples

    def mean_slope(self, v: Tensor, s: Any) -> Tensor:
        """`S(v)` in the mean over its draws, where it has any."""
        if self.draws:
            raise NotImplementedError
        return self.slope(v, s)

    def corners(self, neuron: Thresholded) -> tuple[Any, ...]:
        """The excesses at which `S` jumps or bends, if there are any."""
        return ()

    def reach(self, neuron: Thresholded) -> tuple[Any, Any]:
        """The excesses between which `S` is at least half its peak."""
        raise QuadspikeError(
            f"the surrogate {self.name!r} does not say where it passes a gradient, which training "
            "and layer health report: give it reach(neuron), the excesses between which it is at "
            "least half its peak"
        )

    def window(self, neuron: Thresholded) -> tuple[Any, Any]:
        """The membrane voltages between which a gradient passes."""
        low, high = self.reach(neuron)
        return neuron.origin + low, neuron.origin + high

    def config(self) -> dict[str, Any]:
        """What `create_surrogate` needs to make it again."""
        return {"name": self.name, **asdict(self)}


def positive(owner: str, **values: float) -> None:
    """Refuse constants that are not finite and above 0."""
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise QuadspikeError(f"{owner} needs {name} > 0, got {value}")
