"""Surrogates of a constant height on an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from quadspike.errors import QuadspikeError, check_name, is_number
from quadspike.surrogates.base import Surrogate, Thresholded, positive


class Box(NamedTuple):
    """What a box is: where it begins and ends, and its height."""

    low: Any
    high: Any
    height: Any


@dataclass(frozen=True)
class Boxed(Surrogate):
    """A constant height on a closed interval of excesses."""

    @staticmethod
    def derivative(v: Any, s: Any) -> Any:
        inside = (v >= s.low) & (v <= s.high)
        return inside.to(v.dtype) * s.height

    def corners(self, neuron: Thresholded) -> tuple[Any, Any]:
        return self.reach(neuron)

    def reach(self, neuron: Thresholded) -> tuple[Any, Any]:
        box = self.constants(neuron)
        return box.low, box.high


@dataclass(frozen=True)
class Rectangle(Boxed):
    """`height` where `|u - u_th - offset| <= half_width`, else 0.

    >>> Rectangle(half_width=0.5).config()
    {'name': 'rectangle', 'half_width': 0.5, 'height': 1.0, 'offset': 0.0}
    """

    half_width: float = 0.5
    height: float = 1.0
    offset: float = 0.0
    name: ClassVar[str] = "rectangle"

    def __post_init__(self) -> None:
        positive("Rectangle", half_width=self.half_width, height=self.height)

    def constants(self, neuron: Thresholded) -> Box:
        low, high = self.offset - self.half_width, self.offset + self.half_width
        return Box(low, high, self.height)


@dataclass(frozen=True)
class Ramp(Boxed):
    """1 where `|v| <= 1/2`, of the excess of a grade: no stand-in, but its true slope."""

    name: ClassVar[str] = "ramp"

    def constants(self, neuron: Thresholded) -> Box:
        return Box(-0.5, 0.5, 1.0)


Center = Literal["threshold", "mean", "stationary"]
Height = Literal["one", "unit-area"]


def check_center(kind: str, given: object) -> None:
    """Refuse what is neither the name of a centre nor a finite membrane."""
    names = get_args(Center)
    if given not in names and not is_number(given):
        raise QuadspikeError(
            f"{kind} must be {', '.join(names)} or a finite number, the membrane in its middle; "
            f"got {given!r}"
        )


@dataclass(frozen=True)
class Window(Boxed):
    """The window derived from the neuron's own parameters, closed.

    With the membrane's mean `mu` and spread `sigma` under tdBN input (Theorem 1):

    - `center="mean"`: `mu - sigma <= u <= mu + sigma`, the paper's equation;
    - `center="threshold"`: `|u - u_th| <= sigma`, the same width around the threshold;
    - `center="stationary"`: as "mean", from the exact stationary density with reset;
    - `center=0.3`: that membrane, for studies of where a window belongs.

    `scale` is a factor on sigma. The height is 1, or `1 / (2 scale sigma)` for an area of 1.

    >>> from quadspike import LIF
    >>> [round(value, 4) for value in Window(scale=2, height="unit-area").constants(LIF(beta=0))]
    [-1.0, 1.0, 0.5]
    """

    center: Center | float = "threshold"
    scale: float = 1.0
    height: Height = "one"
    name: ClassVar[str] = "window"

    def __post_init__(self) -> None:
        check_center("window center", self.center)
        check_name("window height", self.height, get_args(Height))
        positive("Window", scale=self.scale)

    def constants(self, neuron: Thresholded) -> Box:
        mean, std = neuron.voltage_statistics(exact=self.center == "stationary")
        if self.center == "threshold":
            middle = 0.0
        else:
            middle = (mean if isinstance(self.center, str) else self.center) - neuron.origin
        half = self.scale * std
        height = 1.0 if self.height == "one" else 0.5 / half
        return Box(middle - half, middle + half, height)


@dataclass(frozen=True)
class LearnedWidth(Boxed):
    """LSG's window `|u - u_th| <= sigma`, of height `1 / (2 sigma)`: area 1.

    `sigma` is the membrane's spread under tdBN input, from the neuron's parameters as they are
    now; for LIF `u_th sqrt(1 + beta^2)`. Where these are learned the window follows, and passes
    them no gradient of its own.

    >>> from quadspike import LIF
    >>> [round(value, 4) for value in LearnedWidth().constants(LIF(beta=0.2))]
    [-0.5099, 0.5099, 0.9806]
    """

    name: ClassVar[str] = "learned-width"

    def constants(self, neuron: Thresholded) -> Box:
        _, std = neuron.voltage_statistics()
        return Box(-std, std, 0.5 / std)
