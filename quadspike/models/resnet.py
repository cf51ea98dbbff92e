"""Spiking residual networks: ResNet-19, ResNet-34 and a small one for CPUs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor, nn

from quadspike.call import Call, Timed
from quadspike.errors import QuadspikeError, check_name
from quadspike.models.chain import Chain, Dropout
from quadspike.models.parts import Build, Layers, Request
from quadspike.models.pool import AveragePool, MaxPool

RESIDUALS = ("fire-then-sum", "sum-then-fire")


@dataclass(frozen=True)
class ResidualForm:
    """How a block's two branches meet."""

    residual: str = "fire-then-sum"
    shortcut_neuron: bool = True
    identity_norm: bool = False

    def __post_init__(self) -> None:
        if self.residual == "fire-then-sum" and self.identity_norm:
            raise QuadspikeError(
                "fire-then-sum adds spikes, which identity_norm=True would make real numbers: "
                "leave it out, or use residual='sum-then-fire'"
            )
        if self.residual == "fire-then-sum" and not self.shortcut_neuron:
            raise QuadspikeError(
                "fire-then-sum adds spikes, so its shortcuts need a neuron: use "
                "shortcut_neuron=True, or residual='sum-then-fire'"
            )


class Block(Timed):
    """Two convolutions and a shortcut, summed after or before the last neuron.

    fire-then-sum: `neuron(norm(conv2(...))) + shortcut(x)`: integer-valued activations;
    sum-then-fire: `neuron(norm(conv2(...)) + shortcut(x))`: binary spikes.

    Where the shape changes the shortcut is a 1x1 convolution with a normalisation and,
    as the paper's operation counts have it, a neuron of its own; sum-then-fire also works
    without that neuron. Where the shape stays, the shortcut is the identity, or in sum-then-fire
    a normalisation of it: both branches then are N(0, u_th^2 / 2) and their sum N(0, u_th^2).
    """

    def __init__(
        self, build: Build, inputs: int, outputs: int, stride: int, form: ResidualForm
    ) -> None:
        super().__init__()
        fires_first = form.residual == "fire-then-sum"
        # In sum-then-fire two branches of the threshold's size meet before one neuron.
        eta = 1.0 if fires_first else 1 / math.sqrt(2)
        self.first = build.layer(build.conv(inputs, outputs, 3, stride), build.soma(outputs))
        self.shortcut = Chain()
        if stride != 1 or inputs != outputs:
            fire = form.shortcut_neuron
            end = build.soma(outputs) if fire else build.normalise(outputs, eta)
            self.shortcut = build.layer(build.conv(inputs, outputs, 1, stride), end)
        elif form.identity_norm:
            self.shortcut = build.identity(outputs, eta)
        self.second = build.layer(
            build.conv(outputs, outputs, 3),
            build.soma(outputs, residual="after" if fires_first else "before", eta=eta),
        )

    def forward(self, x: Tensor, call: Call) -> Tensor:
        inner, residual = self.first(x, call), self.shortcut(x, call)
        out: Tensor = self.second(inner, call, residual)
        label, taps = call.visit(self), call.taps_for(self)
        if taps and "output" in taps.kinds:
            call.record(label, output=call.unflatten(out))
        return out


@dataclass(frozen=True)
class Plan:
    """A residual network: stem width, and (blocks, width, stride) of each stage."""

    stem: int
    stages: tuple[tuple[int, int, int], ...]
    hidden: int = 0
    imagenet_stem: bool = False

    @property
    def stage_ends(self) -> tuple[str, ...]:
        """The names of each stage's last block."""
        return tuple(f"layer{n}.{blocks - 1}" for n, (blocks, *_) in enumerate(self.stages, 1))


RESNET19 = Plan(64, ((3, 128, 1), (3, 256, 2), (2, 512, 2)), hidden=256)
RESNET34 = Plan(64, ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)), imagenet_stem=True)
RESNET8 = Plan(16, ((1, 16, 1), (1, 32, 2), (1, 64, 2)))


def layers(plan: Plan, ask: Request) -> Layers:
    """The named layers of a residual network."""
    form = ResidualForm(ask.residual, ask.shortcut_neuron, ask.identity_norm)
    build, parts, width = ask.build, Layers(), ask.stem_width or plan.stem
    if plan.imagenet_stem:
        check_name("stem pooling", ask.stem_pool, ("max", "avg"))
        pool = MaxPool if ask.stem_pool == "max" else AveragePool
        parts["stem"] = build.layer(build.conv(ask.in_channels, width, 7, 2), build.soma(width))
        parts["pool"] = pool(3, stride=2, padding=1)
    else:
        parts["stem"] = build.layer(build.conv(ask.in_channels, width, 3), build.soma(width))
    for number, (blocks, outputs, stride) in enumerate(plan.stages, start=1):
        stage = []
        for index in range(blocks):
            stage.append(Block(build, width, outputs, stride if index == 0 else 1, form))
            width = outputs
        parts[f"layer{number}"] = Chain(*stage)
    parts["average"] = nn.AdaptiveAvgPool2d(1)
    parts["flatten"] = nn.Flatten()
    if plan.hidden:
        parts["hidden"] = build.layer(build.linear(width, plan.hidden), build.soma(plan.hidden))
        width = plan.hidden
    if ask.dropout:
        parts["dropout"] = Dropout(ask.dropout)
    parts["classifier"] = nn.Linear(width, ask.num_classes)
    return parts
