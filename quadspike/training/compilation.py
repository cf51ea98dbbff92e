"""How many kernels a run compiled, and how many it found compiled: its time depends on that."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch


@dataclass
class Kernels:
    """Triton's. Those that an earlier run in the same process has loaded are in neither count."""

    compiled: int = 0
    cached: int = 0
    """Compiled beforehand: found on disk."""
    seconds: float = 0.0
    """Spent on compiling."""

    def add(self, earlier: Mapping[str, Any]) -> None:
        """Count what an earlier part of the same run had."""
        for name, count in earlier.items():
            setattr(self, name, getattr(self, name) + count)


@contextmanager
def watched(device: torch.device) -> Iterator[Kernels]:
    """Count the kernels that are compiled and found from here on, for a GPU."""
    found = Kernels()
    if device.type != "cuda" or importlib.util.find_spec("triton") is None:
        yield found
        return
    from triton import knobs

    before = knobs.compilation.listener
    ours: set[str] = set()

    def listen(**told: Any) -> None:
        kernel = told["metadata"]["hash"]
        if not told["cache_hit"]:
            ours.add(kernel)
            found.compiled += 1
            found.seconds += told["times"].total / 1e6
        elif kernel not in ours:
            found.cached += 1
        if before is not None:
            before(**told)

    knobs.compilation.listener = listen
    try:
        yield found
    finally:
        knobs.compilation.listener = before
