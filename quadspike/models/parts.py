"""How a model makes its convolutions and somas, so that each model is only its shape."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from torch import nn

from quadspike.errors import QuadspikeError
from quadspike.models.chain import Chain
from quadspike.neurons import Neuron, create_neuron
from quadspike.norms import BatchNorm, create_norm
from quadspike.soma import Soma

Layers = OrderedDict[str, nn.Module]
"""A network's, by name."""


@dataclass(frozen=True)
class Build:
    """The choices every layer of a model shares."""

    neuron: str | dict[str, Any] | Neuron = "qif"
    norm: str | None = "tdbn"
    backend: str = "auto"
    timesteps: int | None = None
    eta: float | None = None
    """tdBN's eta of every layer, in place of each one's own."""

    def conv(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
        bias = self.norm is None  # a normalisation brings its own
        return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=bias)

    def linear(self, inputs: int, outputs: int) -> nn.Linear:
        return nn.Linear(inputs, outputs, bias=self.norm is None)

    def normalise(self, channels: int, eta: float) -> nn.Module:
        """A normalisation without a neuron."""
        if self.norm is None:
            return nn.Identity()
        threshold = create_neuron(self.neuron).threshold
        norm = create_norm(self.norm, channels, threshold, self._eta(eta), self.timesteps)
        if norm.timesteps is not None:
            raise QuadspikeError(
                f"{norm.name} has parameters of each step and needs a neuron behind it, which "
                "knows the step: use shortcut_neuron=True and no identity_norm"
            )
        norm.membrane = None  # without a neuron there is none
        return norm

    def identity(self, channels: int, eta: float) -> Chain:
        """A shortcut that only normalises."""
        norm = self.normalise(channels, eta)
        if isinstance(norm, BatchNorm):
            norm.cannot_fold = "it normalises an identity, which has no weights to take it in"
        return Chain(OrderedDict([("norm", norm)]))

    def layer(self, synapse: nn.Module, end: nn.Module) -> Chain:
        """A synapse and what follows it, by name."""
        name = "soma" if isinstance(end, Soma) else "norm"
        return Chain(OrderedDict([("synapse", synapse), (name, end)]))

    def soma(self, channels: int, residual: str | None = None, eta: float = 1.0) -> Soma:
        return Soma(
            channels, self.neuron, self.norm, residual, self._eta(eta), self.backend, self.timesteps
        )

    def _eta(self, usual: float) -> float:
        return usual if self.eta is None else self.eta


@dataclass(frozen=True)
class Request:
    """What a model is asked for; each builder reads what it takes."""

    build: Build
    in_channels: int
    num_classes: int
    image_size: int
    residual: str = "fire-then-sum"
    shortcut_neuron: bool = True
    identity_norm: bool = False
    stem_width: int | None = None
    stem_pool: str = "max"
    dropout: float = 0.0
