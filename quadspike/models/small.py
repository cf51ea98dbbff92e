"""Networks small enough for a CPU and a coffee."""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from quadspike.models.parts import Build


def mlp_layers(
    build: Build, in_channels: int, num_classes: int, image_size: int, hidden: int = 128
) -> OrderedDict[str, nn.Module]:
    """Two fully connected spiking layers on flattened images."""
    pixels = in_channels * image_size * image_size
    return OrderedDict(
        flatten=nn.Flatten(),
        hidden1=build.layer(build.linear(pixels, hidden), build.soma(hidden)),
        hidden2=build.layer(build.linear(hidden, hidden), build.soma(hidden)),
        classifier=nn.Linear(hidden, num_classes),
    )


def cnn_layers(
    build: Build, in_channels: int, num_classes: int, widths: tuple[int, ...] = (32, 64, 128)
) -> OrderedDict[str, nn.Module]:
    """Three 3 x 3 convolutions, the later two with stride 2, then a global average."""
    parts: OrderedDict[str, nn.Module] = OrderedDict()
    width = in_channels
    for number, outputs in enumerate(widths, start=1):
        conv = build.conv(width, outputs, 3, stride=1 if number == 1 else 2)
        parts[f"conv{number}"] = build.layer(conv, build.soma(outputs))
        width = outputs
    parts["average"] = nn.AdaptiveAvgPool2d(1)
    parts["flatten"] = nn.Flatten()
    parts["classifier"] = nn.Linear(width, num_classes)
    return parts
