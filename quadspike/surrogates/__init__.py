"""How a spike passes a gradient back.

A spike is a step, so its derivative is replaced by a surrogate `S(v)` of the excess
`v = u - u_th`, the distance of the membrane past its threshold. A surrogate is a
frozen value: `derivative` is plain arithmetic on `v` and the surrogate's constants,
so the same lines serve the reference and the kernels.
"""

from __future__ import annotations

from typing import Any

from quadspike.errors import QuadspikeError, check_name
from quadspike.surrogates.base import Surrogate, Thresholded
from quadspike.surrogates.boxes import (
    Center,
    Height,
    LearnedWidth,
    Ramp,
    Rectangle,
    Window,
    check_center,
)
from quadspike.surrogates.local_zo import LocalZO
from quadspike.surrogates.slopes import ArcTan, Sigmoid, Triangle
from quadspike.surrogates.tanh import Dspike, Evolving

__all__ = [
    "SURROGATES",
    "ArcTan",
    "Center",
    "Dspike",
    "Evolving",
    "Height",
    "LearnedWidth",
    "LocalZO",
    "Ramp",
    "Rectangle",
    "Sigmoid",
    "Surrogate",
    "Thresholded",
    "Triangle",
    "Window",
    "check_center",
    "create_surrogate",
]

SURROGATES: dict[str, type[Surrogate]] = {
    kind.name: kind
    for kind in (
        Rectangle,
        Window,
        Triangle,
        ArcTan,
        Sigmoid,
        Dspike,
        Evolving,
        LearnedWidth,
        LocalZO,
    )
}


def create_surrogate(spec: str | dict[str, Any] | Surrogate) -> Surrogate:
    """A surrogate from its name, its config, or itself.

    >>> create_surrogate({"name": "window", "center": "mean"})
    Window(center='mean', scale=1.0, height='one')
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
