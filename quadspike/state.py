"""Where a neuron stands between two chunks of time."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class State(NamedTuple):
    """The membrane `u` and the spikes `o` of the last step, `[B, ...]`, and steps done."""

    u: Tensor
    o: Tensor
    step: int
