"""Contact sheets: samples before and after augmentation, clips as strips of frames."""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from quadspike.data.augment.basic import Normalize, Pipeline
from quadspike.data.events.transforms import TimeFirst
from quadspike.data.loader import Draw
from quadspike.data.split import Split
from quadspike.randomness import permutation

Picture = NDArray[np.float64]


def contact_sheet(
    split: Split, augmentation: Pipeline, count: int = 8, epochs: int = 3, seed: int = 0
) -> Figure:
    """`count` samples of a split, and how `epochs` epochs of training would see them."""
    samples = permutation(len(split), seed, 0, "contact sheet")[:count].sort().values
    clips = split.inputs.ndim == 5
    pictures = [_pictures(split.inputs[samples], split.levels)]
    visible = Pipeline(tuple(s for s in augmentation.steps if not isinstance(s, _INVISIBLE)))
    if visible.steps:
        for epoch in range(epochs):
            changed = visible(split.inputs[samples], Draw(seed, epoch, samples))
            pictures.append(_pictures(changed, split.levels))
    names = [split.classes[int(label)] for label in split.labels[samples]]
    return _strips(split, pictures[:2], names) if clips else _grid(split, pictures, names)


_INVISIBLE = (Normalize, TimeFirst)


def _grid(split: Split, rows: list[list[Picture]], names: list[str]) -> Figure:
    figure = Figure(figsize=(1.1 * len(names), 1.15 * len(rows) + 0.5), layout="constrained")
    axes = figure.subplots(len(rows), len(names), squeeze=False)
    for row, pictures in enumerate(rows):
        for column, picture in enumerate(pictures):
            axis = axes[row][column]
            _show(axis, picture)
            if row == 0:
                axis.set_title(names[column], fontsize=8)
            if column == 0:
                label = "as stored" if row == 0 else f"epoch {row - 1}"
                axis.set_ylabel(label, fontsize=8)
    figure.suptitle(split.name, fontsize=9)
    return figure


def _strips(split: Split, rows: list[list[Picture]], names: list[str]) -> Figure:
    """Each clip a strip of frames, side by side in time; below it the same, augmented."""
    figure = Figure(figsize=(9.0, 1.0 * len(names) * len(rows) + 0.5), layout="constrained")
    axes = figure.subplots(len(names) * len(rows), 1, squeeze=False)
    for column, name in enumerate(names):
        for row, pictures in enumerate(rows):
            axis = axes[column * len(rows) + row][0]
            _show(axis, pictures[column])
            axis.set_ylabel(name if row == 0 else "augmented", fontsize=8)
    figure.suptitle(f"{split.name}: ON red, OFF blue, time to the right", fontsize=9)
    return figure


def _show(axis: Axes, picture: Picture) -> None:
    axis.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    axis.set_xticks([])
    axis.set_yticks([])


def _pictures(inputs: Tensor, levels: int) -> list[Picture]:
    if inputs.ndim == 4:
        floats = (inputs.double() / levels).permute(0, 2, 3, 1).cpu().numpy()
        return [picture[..., 0] if picture.shape[-1] == 1 else picture for picture in floats]
    return [_strip(clip) for clip in inputs]


def _strip(clip: Tensor) -> Picture:
    """A clip `[T, 2, H, W]` as one picture, white where nothing happened."""
    events = clip.double()
    # The brightest pixels saturate, or a single hot one would leave the rest invisible.
    top = torch.quantile(events[events > 0], 0.95) if bool((events > 0).any()) else torch.ones(())
    off, on = (events / top).clamp(0, 1).unbind(1)
    frames = torch.stack([1 - off, (1 - off) * (1 - on), 1 - on], dim=-1)
    frames = torch.nn.functional.pad(frames, (0, 0, 0, 1))  # a line between frames
    return np.asarray(torch.cat(list(frames), dim=1).cpu().numpy())
