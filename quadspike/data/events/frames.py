"""Frames from events: counts per pixel and polarity in each of T steps.

Channel 0 counts OFF events, channel 1 ON events. The arithmetic is in whole numbers, so a
CPU and a GPU give the same frames.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from quadspike.data.events.form import Events
from quadspike.data.events.resize import RESIZES, resize_frames
from quadspike.errors import QuadspikeError, QuadspikeWarning, check_count, check_name

SLICES = ("count", "time")
VALUES = ("counts", "binary")


@dataclass(frozen=True)
class EventBatch:
    """Recordings of one sensor laid end to end; recording i is `offsets[i]:offsets[i + 1]`."""

    t: Tensor
    x: Tensor
    y: Tensor
    p: Tensor
    offsets: Tensor
    width: int
    height: int

    @classmethod
    def of(cls, recordings: Sequence[Events]) -> EventBatch:
        """From recordings of one sensor on one device."""
        sensors = {(events.width, events.height) for events in recordings}
        if len(sensors) != 1:
            raise QuadspikeError(
                f"a batch needs recordings of one sensor, got (width, height) {sorted(sensors)}"
            )
        fields = ([getattr(events, name) for events in recordings] for name in "txyp")
        t, x, y, p = (torch.cat(field) for field in fields)
        lengths = torch.tensor([0, *(len(events) for events in recordings)])
        return cls(t, x, y, p, lengths.cumsum(0).to(t.device), *sensors.pop())


@dataclass(frozen=True)
class Framing:
    """How recordings become frames.

    `by="count"`: N // T events a frame, the rest in the last; `by="time"`: equal slices of the
    time from the first event to the last. `values="binary"`: 1 where any event fell.
    `size=None` keeps the sensor's pixels.

    >>> Framing(10, size=48).levels, Framing(10).levels
    (16, 1)
    """

    steps: int
    by: str = "count"
    values: str = "counts"
    size: int | None = None
    resize: str = "bilinear"

    def __post_init__(self) -> None:
        check_count("steps", self.steps)
        check_name("way to slice", self.by, SLICES)
        check_name("kind of values", self.values, VALUES)
        check_name("resize", self.resize, RESIZES)
        if self.size is not None:
            check_count("size", self.size)

    @property
    def levels(self) -> int:
        """What one event is worth in stored bytes: interpolation leaves fractions of events."""
        if self.size is None or self.resize == "nearest":
            return 1
        return 255 if self.values == "binary" else 16

    def __call__(self, events: Events | EventBatch) -> Tensor:
        """Frames `[T, 2, H, W]` or `[N, T, 2, H, W]`: int32, or float32 where interpolated."""
        batch = EventBatch.of([events]) if isinstance(events, Events) else events
        frames = _counts(batch, self.steps, self.by)
        if self.values == "binary":
            frames = (frames > 0).to(torch.int32)
        if self.size is not None:
            frames = resize_frames(frames, self.size, self.resize)
        return frames[0] if isinstance(events, Events) else frames


def to_frames(
    events: Events | EventBatch,
    steps: int,
    *,
    by: str = "count",
    values: str = "counts",
    size: int | None = None,
    resize: str = "bilinear",
) -> Tensor:
    """Frames `[T, 2, H, W]` of a recording, or `[N, T, 2, H, W]` of a batch.

    uint8, or float32 where resizing interpolates; the options are those of `Framing`. A
    warning tells of pixels with more events than a byte holds.

    >>> events = Events.of([0, 1, 2], [0, 1, 1], [0, 0, 0], [1, 0, 0], width=2, height=1)
    >>> to_frames(events, 1).tolist()
    [[[[0, 2]], [[1, 0]]]]
    """
    frames = Framing(steps, by, values, size, resize)(events)
    if frames.is_floating_point():
        return frames
    stored, clipped = to_bytes(frames, levels=1)
    if clipped:
        warnings.warn(clipping(clipped, frames.numel(), 255), QuadspikeWarning, stacklevel=2)
    return stored


def to_bytes(frames: Tensor, levels: int) -> tuple[Tensor, int]:
    """Frames in steps of 1 / `levels` event as uint8, and how many pixels a byte cannot hold."""
    scaled = frames * levels
    if scaled.is_floating_point():
        scaled = scaled.round()
    clipped = int((scaled > 255).sum())
    return scaled.clamp(max=255).to(torch.uint8), clipped


def clipping(clipped: int, pixels: int, most: float) -> str:
    """What to say of pixels that were clipped."""
    return (
        f"{clipped} of {pixels} pixels held more than {most:g} events and were clipped to that; "
        "take more steps, or binary values"
    )


def _counts(batch: EventBatch, steps: int, by: str) -> Tensor:
    """`[N, T, 2, H, W]` as int32."""
    pixels = batch.height * batch.width
    # Events are in order, so a frame is a run of them: its length is all that is needed.
    runs = _runs_by_count(batch, steps) if by == "count" else _runs_by_time(batch, steps)
    first = torch.arange(runs.numel(), device=runs.device) * (2 * pixels)
    frame = torch.repeat_interleave(first, runs.flatten(), output_size=len(batch.t))
    index = frame + (batch.p.int() * pixels + batch.y.int() * batch.width + batch.x)
    shape = (*runs.shape, 2, batch.height, batch.width)
    frames = torch.zeros(shape, dtype=torch.int32, device=index.device)
    frames.view(-1).scatter_add_(0, index, torch.ones_like(index, dtype=torch.int32))
    return frames


def _runs_by_count(batch: EventBatch, steps: int) -> Tensor:
    """How many events each frame has, `[N, T]`."""
    lengths = batch.offsets.diff()
    runs = (lengths // steps)[:, None].repeat(1, steps)
    runs[:, -1] += lengths % steps
    return runs


def _runs_by_time(batch: EventBatch, steps: int) -> Tensor:
    lengths = batch.offsets.diff()
    if not len(batch.t):
        return lengths[:, None].repeat(1, steps)
    most = len(batch.t) - 1
    first = batch.t[batch.offsets[:-1].clamp(max=most)]
    last = batch.t[(batch.offsets[1:] - 1).clamp(min=0)]
    duration = torch.where(lengths > 0, last - first, 0)
    # One time line for all: each recording begins where the one before it is over.
    begin = torch.cumsum(duration + 1, 0) - duration - 1
    time = batch.t + torch.repeat_interleave(begin - first, lengths, output_size=len(batch.t))
    # The first time of frame k is the first with floor(time * T / duration) = k.
    step = torch.arange(1, steps, device=time.device)
    edges = begin[:, None] + (duration[:, None] * step + steps - 1) // steps
    # A recording without duration is all in its first frame.
    edges = torch.where(duration[:, None] > 0, edges, begin[:, None] + 1)
    place = torch.searchsorted(time, edges)
    return torch.cat((batch.offsets[:-1, None], place, batch.offsets[1:, None]), 1).diff(dim=1)
