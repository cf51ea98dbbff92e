"""What every surrogate shares."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol

from torch import Tensor

from quadspike.errors import QuadspikeError


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
    """Base: `constants(neuron)` once per call, `derivative(v, s)` per element."""

    name: ClassVar[str]
    only_reference: ClassVar[str] = ""
    """Why the fused paths cannot run this surrogate, if they cannot."""
    evolves: ClassVar[bool] = False
    """Whether it reads the neuron's `progress`, the share of the training that is done."""
    draws: ClassVar[bool] = False
    """Whether it draws random numbers: its constants then have fields `key` and `place`."""

    def constants(self, neuron: Thresholded) -> Any:
        """What `derivative` reads, as a named tuple."""
        raise NotImplementedError

    @staticmethod
    def derivative(v: Any, s: Any) -> Any:
        """`S(v)`, standing in for d spike / d v."""
        raise NotImplementedError

    def reach(self, neuron: Thresholded) -> tuple[Any, Any]:
        """The excesses between which `S` is at least half its peak."""
        raise NotImplementedError

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
