"""What `gradients.examine` found, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quadspike.markdown import markdown_table
from quadspike.written import NOTHING

Found = dict[str, Any]
"""One network's layers and blocks, with a label and what was looked at."""


def layer_tables(found: Found) -> str:
    """A heading, a row a soma, and a row a residual block where there are any."""
    growth = found["growth"]
    parts = [
        f"## {found['label']}",
        f"{found['weights']} weights, {found['samples']} {found['images']} images, loss "
        f"{_number(found['loss'])}; a layer multiplies the squared gradient by "
        f"{_number(growth['measured'])} in the geometric mean, predicted "
        f"{_number(growth['predicted'])} with each step by itself",
        _table(_LAYER_HEADINGS, [_layer_row(layer) for layer in found["layers"]]),
    ]
    if found["blocks"]:
        layers = {layer["layer"]: layer for layer in found["layers"]}
        rows = [
            _block_row(block, layers[f"{block['block']}.second.soma"]) for block in found["blocks"]
        ]
        parts.append(_table(_BLOCK_HEADINGS, rows))
    return "\n\n".join(parts)


_LAYER_HEADINGS = (
    "layer", "rate", "step to step", "gain", "u mean", "u std", "in window", "red", "blue",
    "after red", "dL/do", "dL/du", "dL/dW", "factor", "predicted",
)  # fmt: skip
_BLOCK_HEADINGS = (
    "block", "by shortcut", "by convolutions", "shortcut's share", "cosine",
    "in window, shortcut fired", "silent",
)  # fmt: skip


def _layer_row(layer: Found) -> list[str]:
    regions = layer["regions"] or {}
    gradient, factor = layer["gradient"], layer["factor"]
    return [
        layer["layer"].removesuffix(".soma"),
        *(_share(layer[name]) for name in ("rate", "temporal_correlation")),
        _share((layer.get("gain") or {}).get("rms")),
        *(_share(layer[name]) for name in ("mean", "std")),
        *(_share(value) for value in (layer["inside_window"], regions.get("red"))),
        *(_share(value) for value in (regions.get("blue"), layer["after_red"])),
        *(_size(gradient[name]) for name in ("output", "membrane", "weights")),
        *(_number(factor[name]) for name in ("measured", "predicted")),
    ]


def _block_row(block: Found, last: Found) -> list[str]:
    window = last["window_by_shortcut"] or {}
    return [
        block["block"],
        *(_size(block[name]) for name in ("shortcut", "convolutions")),
        *(_share(block[name]) for name in ("share", "cosine")),
        *(_share(window.get(name)) for name in ("fired", "silent")),
    ]


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return markdown_table(headings, "l" + "r" * (len(headings) - 1), rows, padded=True)


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"


def _size(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2e}"


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3g}"
