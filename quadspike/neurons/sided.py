"""Any neuron, firing at a threshold of its own for each channel, on either side of it."""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from quadspike.errors import QuadspikeError
from quadspike.neurons.base import Neuron


class Sided(Neuron):
    """What a folded norm of the membrane leaves: `o = [side u >= bar]`.

    `side` is 1 where the norm's slope was positive, -1 where it was negative (the neuron fires
    below its threshold) and 0 where there was none, so that `bar` alone decides. `slope` is the
    norm's absolute slope, for the surrogate: `slope (side u - bar)` is the excess it saw.
    """

    bar: Tensor
    side: Tensor
    slope: Tensor
    fields: ClassVar[Any]
    """The named tuple of the constants."""

    @staticmethod
    def excess(u: Any, p: Any) -> Any:
        return (p.side * u - p.bar) * p.slope

    @staticmethod
    def excess_partials(u: Any, p: Any) -> tuple[Any, ...]:
        return p.side * p.slope, 0.0

    @staticmethod
    def fire(u: Any, p: Any) -> Any:
        return p.side * u >= p.bar

    def constants(self) -> Any:
        return self.fields(*super().constants(), self.bar, self.side, self.slope)

    def fit(self, channels: int, timesteps: int | None) -> None:
        super().fit(channels, timesteps)
        if "bar" in self._buffers:
            return
        u_th = torch.as_tensor(super().constants().u_th).detach()
        shape = tuple(u_th.shape) if u_th.ndim == 2 else (channels,)
        self.hold_sides(u_th.expand(shape).clone(), torch.ones(channels), torch.ones(channels))

    def check_channels(self, channels: int | None) -> None:
        super().check_channels(channels)
        held = len(self.side) if "side" in self._buffers else "no"
        if held != channels:
            raise QuadspikeError(
                f"{self.name}: its folded thresholds are for {held} channels, "
                f"the input has {'none' if channels is None else channels}"
            )

    def hold_sides(self, bar: Tensor, side: Tensor, slope: Tensor) -> None:
        """Thresholds `[C]` or `[T, C]` times their sides `[C]`, and the slopes `[C]`."""
        self.register_buffer("bar", bar)
        self.register_buffer("side", side)
        self.register_buffer("slope", slope)

    @property
    def edges(self) -> tuple[Any, ...]:
        return (self.side * self.bar,)

    def config(self) -> dict[str, Any]:
        return {**super().config(), "sided": True}

    def __reduce__(self) -> tuple[Any, ...]:
        # No module holds its class by name, and pickle looks there.
        return _unpickled, (type(self).__bases__[1], self.fields._fields[:-3]), self.__dict__


def sided(neuron: Neuron) -> Sided:
    """`neuron` itself, made sided; `fit` or `hold_sides` then gives it its thresholds."""
    kind: Any = type(neuron)
    if kind.fire is not Neuron.fire:
        raise QuadspikeError(
            f"a norm of the membrane cannot be folded into {neuron.name!r}: it does not fire at "
            "one threshold; run the network unfolded"
        )
    neuron.__class__ = _sided_kind(kind, type(neuron.constants())._fields)
    assert isinstance(neuron, Sided)
    return neuron


def _unpickled(kind: Any, fields: tuple[str, ...]) -> Sided:
    neuron: Sided = object.__new__(_sided_kind(kind, fields))
    return neuron


@cache
def _sided_kind(kind: Any, fields: tuple[str, ...]) -> Any:
    # One class a neuron, for the whole process: the kernels are compiled by class.
    constants = namedtuple("Constants", (*fields, "bar", "side", "slope"))  # type: ignore[misc]
    return type(f"Sided{kind.__name__}", (Sided, kind), {"fields": constants})
