"""How a spike passes a gradient back.

A spike is a step, so its derivative is replaced by a surrogate `S(v)` of the excess
`v = u - u_th`, the distance of the membrane past its threshold. A surrogate is a
frozen value: `derivative` is plain arithmetic on `v` and the surrogate's constants,
so the same lines serve the reference and the kernels.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, get_args

from quadspike.errors import QuadspikeError, check_name


class Thresholded(Protocol):
    """What a surrogate may ask of its neuron."""

    @property
    def threshold(self) -> Any: ...

    @property
    def origin(self) -> Any: ...

    def voltage_statistics(self, exact: bool = False) -> tuple[Any, Any]: ...


@dataclass(frozen=True)
class Surrogate:
    """Base: `constants(neuron)` once per call, `derivative(v, s)` per element."""

    name: ClassVar[str]
    only_reference: ClassVar[str] = ""
    """Why the fused paths cannot run this surrogate, if they cannot."""

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


def _positive(owner: str, **values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise QuadspikeError(f"{owner} needs {name} > 0, got {value}")


class _Box(NamedTuple):
    low: Any
    high: Any
    height: Any


@dataclass(frozen=True)
class _Boxed(Surrogate):
    """A constant height on a closed interval of excesses."""

    @staticmethod
    def derivative(v: Any, s: Any) -> Any:
        inside = (v >= s.low) & (v <= s.high)
        return inside.to(v.dtype) * s.height

    def reach(self, neuron: Thresholded) -> tuple[Any, Any]:
        box = self.constants(neuron)
        return box.low, box.high


@dataclass(frozen=True)
class Rectangle(_Boxed):
    """`height` where `|u - u_th - offset| <= half_width`, else 0.

    >>> Rectangle(half_width=0.5).config()
    {'name': 'rectangle', 'half_width': 0.5, 'height': 1.0, 'offset': 0.0}
    """

    half_width: float = 0.5
    height: float = 1.0
    offset: float = 0.0
    name: ClassVar[str] = "rectangle"

    def __post_init__(self) -> None:
        _positive("Rectangle", half_width=self.half_width, height=self.height)

    def constants(self, neuron: Thresholded) -> _Box:
        low, high = self.offset - self.half_width, self.offset + self.half_width
        return _Box(low, high, self.height)


Center = Literal["threshold", "mean", "stationary"]


@dataclass(frozen=True)
class Window(_Boxed):
    """The window derived from the neuron's own parameters, height 1, closed.

    With the membrane's mean `mu` and spread `sigma` under tdBN input (Theorem 1):

    - `center="mean"`: `mu - sigma <= u <= mu + sigma`, the paper's equation;
    - `center="threshold"`: `|u - u_th| <= sigma`, the same width around the threshold;
    - `center="stationary"`: as "mean", from the exact stationary density with reset.
    """

    center: Center = "threshold"
    name: ClassVar[str] = "window"

    def __post_init__(self) -> None:
        check_name("window center", self.center, get_args(Center))

    def constants(self, neuron: Thresholded) -> _Box:
        mean, std = neuron.voltage_statistics(exact=self.center == "stationary")
        middle = 0.0 if self.center == "threshold" else mean - neuron.origin
        return _Box(middle - std, middle + std, 1.0)


class _Width(NamedTuple):
    width: Any


@dataclass(frozen=True)
class Triangle(Surrogate):
    """`max(0, width - |v|) / width^2`: area 1, support of `width` on either side."""

    width: float = 1.0
    name: ClassVar[str] = "triangle"

    def __post_init__(self) -> None:
        _positive("Triangle", width=self.width)

    def constants(self, neuron: Thresholded) -> _Width:
        return _Width(self.width)

    @staticmethod
    def derivative(v: Any, s: Any) -> Any:
        height = s.width - v.abs()
        return height * (height > 0).to(v.dtype) / (s.width * s.width)

    def reach(self, neuron: Thresholded) -> tuple[float, float]:
        return -self.width / 2, self.width / 2


class _Steepness(NamedTuple):
    alpha: Any


@dataclass(frozen=True)
class ArcTan(Surrogate):
    """`alpha / (2 (1 + (pi alpha v / 2)^2))`: the slope of an arctangent, area 1."""

    alpha: float = 2.0
    name: ClassVar[str] = "arctan"

    def __post_init__(self) -> None:
        _positive("ArcTan", alpha=self.alpha)

    def constants(self, neuron: Thresholded) -> _Steepness:
        return _Steepness(self.alpha)

    @staticmethod
    def derivative(v: Any, s: Any) -> Any:
        w = 1.5707963267948966 * s.alpha * v  # pi / 2
        return 0.5 * s.alpha / (1.0 + w * w)

    def reach(self, neuron: Thresholded) -> tuple[float, float]:
        half = 2 / (math.pi * self.alpha)
        return -half, half


@dataclass(frozen=True)
class Sigmoid(Surrogate):
    """`alpha g (1 - g)` with `g = sigmoid(alpha v)`: area 1."""

    alpha: float = 4.0
    name: ClassVar[str] = "sigmoid"

    def __post_init__(self) -> None:
        _positive("Sigmoid", alpha=self.alpha)

    def constants(self, neuron: Thresholded) -> _Steepness:
        return _Steepness(self.alpha)

    @staticmethod
    def derivative(v: Any, s: Any) -> Any:
        g = (s.alpha * v).sigmoid()
        return s.alpha * g * (1.0 - g)

    def reach(self, neuron: Thresholded) -> tuple[float, float]:
        half = math.log(3 + 2 * math.sqrt(2)) / self.alpha
        return -half, half


SURROGATES: dict[str, type[Surrogate]] = {
    kind.name: kind for kind in (Rectangle, Window, Triangle, ArcTan, Sigmoid)
}


def create_surrogate(spec: str | dict[str, Any] | Surrogate) -> Surrogate:
    """A surrogate from its name, its config, or itself.

    >>> create_surrogate({"name": "window", "center": "mean"})
    Window(center='mean')
    """
    if isinstance(spec, Surrogate):
        return spec
    if not isinstance(spec, str | dict):
        raise QuadspikeError(
            f"a surrogate is a name, its config or a surrogate such as ArcTan(), got {spec!r}"
        )
    options = {"name": spec} if isinstance(spec, str) else dict(spec)
    kind = SURROGATES[check_name("surrogate", options.pop("name", None), SURROGATES)]
    try:
        return kind(**options)
    except TypeError as error:
        raise QuadspikeError(f"surrogate {kind.name!r}: {error}") from None
