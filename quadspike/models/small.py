"""Networks small enough for a CPU and a coffee."""

from __future__ import annotations

from torch import nn

from quadspike.models.parts import Layers, Request

_HIDDEN = 128
_WIDTHS = (32, 64, 128)


def mlp_layers(ask: Request) -> Layers:
    """Two fully connected spiking layers on flattened images."""
    build, pixels = ask.build, ask.in_channels * ask.image_size * ask.image_size
    return Layers(
        flatten=nn.Flatten(),
        hidden1=build.layer(build.linear(pixels, _HIDDEN), build.soma(_HIDDEN)),
        hidden2=build.layer(build.linear(_HIDDEN, _HIDDEN), build.soma(_HIDDEN)),
        classifier=nn.Linear(_HIDDEN, ask.num_classes),
    )


def cnn_layers(ask: Request) -> Layers:
    """Three 3 x 3 convolutions, the later two with stride 2, then a global average."""
    build, parts, width = ask.build, Layers(), ask.in_channels
    for number, outputs in enumerate(_WIDTHS, start=1):
        conv = build.conv(width, outputs, 3, stride=1 if number == 1 else 2)
        parts[f"conv{number}"] = build.layer(conv, build.soma(outputs))
        width = outputs
    parts["average"] = nn.AdaptiveAvgPool2d(1)
    parts["flatten"] = nn.Flatten()
    parts["classifier"] = nn.Linear(width, ask.num_classes)
    return parts
