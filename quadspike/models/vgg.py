"""VGGSNN: eight convolutions with average pooling, for 48 x 48 event frames."""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from quadspike.errors import QuadspikeError
from quadspike.models.chain import Dropout
from quadspike.models.parts import Build
from quadspike.models.pool import AveragePool

WIDTHS = ((64, 128), (256, 256), (512, 512), (512, 512))


def layers(
    build: Build, in_channels: int, num_classes: int, image_size: int, dropout: float
) -> OrderedDict[str, nn.Module]:
    """The named layers; each pair of convolutions ends in a 2 x 2 average pooling."""
    side = image_size // 2 ** len(WIDTHS)
    if side < 1:
        raise QuadspikeError(
            f"vggsnn halves its input {len(WIDTHS)} times: image_size must be >= "
            f"{2 ** len(WIDTHS)}, got {image_size}"
        )
    parts: OrderedDict[str, nn.Module] = OrderedDict()
    width = in_channels
    for number, pair in enumerate(WIDTHS, start=1):
        for letter, outputs in zip("ab", pair, strict=True):
            parts[f"conv{number}{letter}"] = build.layer(
                build.conv(width, outputs, 3), build.soma(outputs)
            )
            width = outputs
        parts[f"pool{number}"] = AveragePool(2)
    parts["flatten"] = nn.Flatten()
    parts["dropout"] = Dropout(dropout)
    parts["classifier"] = nn.Linear(width * side * side, num_classes)
    return parts
