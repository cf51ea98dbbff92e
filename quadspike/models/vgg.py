"""VGGSNN: eight convolutions with average pooling, for 48 x 48 event frames."""

from __future__ import annotations

from torch import nn

from quadspike.errors import QuadspikeError
from quadspike.models.chain import Dropout
from quadspike.models.parts import Layers, Request
from quadspike.models.pool import AveragePool

WIDTHS = ((64, 128), (256, 256), (512, 512), (512, 512))


def layers(ask: Request) -> Layers:
    """The named layers; each pair of convolutions ends in a 2 x 2 average pooling."""
    side = ask.image_size // 2 ** len(WIDTHS)
    if side < 1:
        raise QuadspikeError(
            f"vggsnn halves its input {len(WIDTHS)} times: image_size must be >= "
            f"{2 ** len(WIDTHS)}, got {ask.image_size}"
        )
    build, parts, width = ask.build, Layers(), ask.in_channels
    for number, pair in enumerate(WIDTHS, start=1):
        for letter, outputs in zip("ab", pair, strict=True):
            parts[f"conv{number}{letter}"] = build.layer(
                build.conv(width, outputs, 3), build.soma(outputs)
            )
            width = outputs
        parts[f"pool{number}"] = AveragePool(2)
    parts["flatten"] = nn.Flatten()
    parts["dropout"] = Dropout(ask.dropout)
    parts["classifier"] = nn.Linear(width * side * side, ask.num_classes)
    return parts
