"""Events put in order: one whole number each, that sorts as events do."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch

from quadspike.data.events.camera_pixels import Spikes
from quadspike.data.events.form import Events
from quadspike.data.events.frames import EventBatch


def merge(parts: Sequence[Spikes], recordings: int, size: int, duration: int) -> EventBatch:
    """Recordings one after the other, each in the order of time.

    Events of one microsecond stand in the order of rows, then columns, OFF before ON.
    """
    pixels, span = size * size, duration + 1
    keys = torch.cat([_key(part, pixels, span) for part in parts]).sort().values
    ends = torch.arange(recordings + 1, device=keys.device) * (span * pixels * 2)
    offsets = torch.searchsorted(keys, ends)
    pixel = (keys >> 1) % pixels
    return EventBatch(
        t=(keys >> 1) // pixels % span,
        x=(pixel % size).to(torch.int16),
        y=(pixel // size).to(torch.int16),
        p=(keys & 1).to(torch.uint8),
        offsets=offsets,
        width=size,
        height=size,
    )


def separate(batch: EventBatch) -> list[Events]:
    """The recordings of a batch, each a view of it."""
    ends = batch.offsets.tolist()
    return [
        Events(
            batch.t[start:end],
            batch.x[start:end],
            batch.y[start:end],
            batch.p[start:end],
            batch.width,
            batch.height,
        )
        for start, end in pairwise(ends)
    ]


def _key(part: Spikes, pixels: int, span: int) -> torch.Tensor:
    recording, pixel = part.pixel // pixels, part.pixel % pixels
    return ((recording * span + part.t) * pixels + pixel) * 2 + part.p
