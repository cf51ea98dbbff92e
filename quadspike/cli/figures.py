"""`quadspike figures`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg
from tyro.constructors import PrimitiveConstructorSpec

Format = Literal["svg", "pdf", "png"]

# As a type of two numbers or nothing, tyro would answer mistakes with its own markup.
_TWO = PrimitiveConstructorSpec(
    nargs=2,
    metavar="U_R U_C",
    instance_from_str=lambda words: (float(words[0]), float(words[1])),
    is_instance=lambda given: given is None or isinstance(given, tuple),
    str_from_instance=lambda given: [str(given)],
)


def figures(
    out: Positional[Annotated[Path, arg(metavar="FOLDER")]],
    formats: tuple[Format, ...] = ("svg", "pdf", "png"),
    only: tuple[str, ...] = (),
    a: float = 0.25,
    u1: float = 0.0,
    u2: float = 0.5,
    u_th: float = 0.5,
    u_reset: float = 0.0,
    resting: Annotated[tuple[float, float] | None, _TWO] = None,
) -> None:
    """Draw the neuron: recurrence, cobweb, phase portrait, density, LIF against QIF.

    Args:
        out: The folder to write to.
        formats: Any of svg, pdf, png.
        only: Names of single figures; all without it.
        a: Sharpness of the parabola.
        u1: One root.
        u2: The other root.
        u_th: The firing threshold.
        u_reset: Where a spike leaves the membrane.
        resting: Resting and critical potential, instead of the roots.
    """
    from quadspike.analysis.figures import draw_all
    from quadspike.errors import QuadspikeError
    from quadspike.neurons import QIF

    if resting is not None:
        if (u1, u2) != (0.0, 0.5):
            raise QuadspikeError("--resting stands in place of the roots; leave --u1 and --u2 out")
        neuron = QIF.from_resting(a, *resting, u_th=u_th, u_reset=u_reset)
    else:
        neuron = QIF(a=a, u1=u1, u2=u2, u_th=u_th, u_reset=u_reset)
    for path in draw_all(out, neuron, formats=formats, names=only or None):
        print(path)
