"""One file a neuron: its equation, its parameters, its checks."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from quadspike.errors import QuadspikeError, check_name
from quadspike.neurons.base import Neuron
from quadspike.neurons.check import check_partials
from quadspike.neurons.density import MembraneDensity
from quadspike.neurons.glif import GLIF
from quadspike.neurons.imlif import IMLIF
from quadspike.neurons.learned_qif import LearnedQIF
from quadspike.neurons.lif import LIF
from quadspike.neurons.lsg import LSG
from quadspike.neurons.plif import PLIF
from quadspike.neurons.qif import QIF, voltage_statistics
from quadspike.neurons.sided import sided
from quadspike.neurons.ternary import Ternary, TrainedTernary

__all__ = [
    "GLIF",
    "IMLIF",
    "LIF",
    "LSG",
    "NEURONS",
    "PLIF",
    "QIF",
    "LearnedQIF",
    "MembraneDensity",
    "Neuron",
    "Ternary",
    "TrainedTernary",
    "check_partials",
    "create_neuron",
    "voltage_statistics",
]

NEURONS: dict[str, type[Neuron]] = {
    kind.name: kind
    for kind in (QIF, LIF, PLIF, GLIF, LSG, IMLIF, Ternary, TrainedTernary, LearnedQIF)
}


def create_neuron(spec: str | dict[str, Any] | Neuron) -> Neuron:
    """A new neuron from its name, its config, or as a copy of another.

    >>> create_neuron({"name": "lif", "beta": 0.5}).beta
    0.5
    """
    if isinstance(spec, Neuron):
        return copy.deepcopy(spec)
    if not isinstance(spec, str | dict):
        raise QuadspikeError(
            f"a neuron is a name, its config or a neuron such as QIF(), got {spec!r}"
        )
    options: dict[str, Any] = {"name": spec} if isinstance(spec, str) else dict(spec)
    kind = NEURONS[check_name("neuron", options.pop("name", None), NEURONS)]
    fires_on_a_side = options.pop("sided", False)
    for name in options.pop("learned", ()):
        check_name(f"learned parameter of {kind.name!r}", name, kind.parameter_names())
        if name not in options:
            raise QuadspikeError(f"neuron {kind.name!r}: learned {name!r} needs its value")
        options[name] = nn.Parameter(torch.as_tensor(options[name], dtype=torch.float32))
    try:
        neuron = kind(**options)
    except TypeError as error:
        raise QuadspikeError(f"neuron {kind.name!r}: {error}") from None
    return sided(neuron) if fires_on_a_side else neuron
