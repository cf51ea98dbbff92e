"""The one in-memory form of a recording."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from quadspike.errors import QuadspikeError


@dataclass(frozen=True, eq=False)
class Events:
    """Events in the order of time: `t` in microseconds, column `x`, row `y`, polarity `p`.

    Row 0 is the top, column 0 the left of the upright picture; `p` is 1 for ON (brighter)
    and 0 for OFF. All are tensors of one length on one device: int64, int16, int16, uint8.

    >>> events = Events.of([3, 9], [0, 1], [1, 1], [1, 0], width=2, height=2)
    >>> len(events), events.duration
    (2, 6)
    """

    t: Tensor
    x: Tensor
    y: Tensor
    p: Tensor
    width: int
    height: int

    @classmethod
    def of(cls, t: object, x: object, y: object, p: object, *, width: int, height: int) -> Events:
        """From any four equal-length sequences or arrays; checked."""
        events = cls(
            _narrow("t", t, torch.int64),
            _narrow("x", x, torch.int16),
            _narrow("y", y, torch.int16),
            _narrow("p", p, torch.uint8),
            width,
            height,
        )
        events.check()
        return events

    def __len__(self) -> int:
        return len(self.t)

    @property
    def duration(self) -> int:
        """Microseconds from the first event to the last."""
        return int(self.t[-1] - self.t[0]) if len(self) else 0

    def to(self, device: torch.device | str) -> Events:
        t, x, y, p = (tensor.to(device) for tensor in (self.t, self.x, self.y, self.p))
        return replace(self, t=t, x=x, y=y, p=p)

    def check(self, name: str = "events") -> None:
        """Refuse what is no recording: lengths, ranges, time running backwards."""
        if len({len(self.t), len(self.x), len(self.y), len(self.p)}) != 1:
            lengths = [len(v) for v in (self.t, self.x, self.y, self.p)]
            raise QuadspikeError(f"{name}: t, x, y, p must be equally long, got {lengths}")
        if not len(self):
            return
        for label, value, size in (("x", self.x, self.width), ("y", self.y, self.height)):
            low, high = int(value.min()), int(value.max())
            if low < 0 or high >= size:
                raise QuadspikeError(
                    f"{name}: {label} must lie in 0..{size - 1}, got {low}..{high}"
                )
        if int(self.p.max()) > 1:
            raise QuadspikeError(f"{name}: p must be 0 or 1, got {int(self.p.max())}")
        backwards = torch.nonzero(self.t[1:] < self.t[:-1])
        if len(backwards):
            place = int(backwards[0]) + 1
            raise QuadspikeError(
                f"{name}: time runs backwards at event {place}: "
                f"{int(self.t[place - 1])} then {int(self.t[place])} us"
            )


def _narrow(name: str, values: object, dtype: torch.dtype) -> Tensor:
    """As that integer type, refusing fractions (of seconds, say) and what would wrap round."""
    given = torch.as_tensor(values)
    fractional = given.is_floating_point() or given.is_complex()
    if given.ndim != 1 or (fractional and len(given)):
        raise QuadspikeError(
            f"{name} must be a row of whole numbers, got {given.dtype} {list(given.shape)}"
        )
    wide = given.long()
    limits = torch.iinfo(dtype)
    if len(wide) and not limits.min <= int(wide.min()) <= int(wide.max()) <= limits.max:
        raise QuadspikeError(f"{name} must lie in {limits.min}..{limits.max}")
    return wide.to(dtype)
