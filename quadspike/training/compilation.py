"""How many kernels a run compiled, and how many it found compiled: its time depends on that."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import torch


@dataclass
class Kernels:
    """Triton's. Those that an earlier run in the same process has loaded are nowhere in it."""

    ours: list[str] = field(default_factory=list)
    """Those that were compiled."""
    found: list[str] = field(default_factory=list)
    """Those that were there beforehand, on disk, and not by an earlier part of the same run."""
    seconds: float = 0.0
    """In which at least one was being compiled."""

    def add(self, earlier: Mapping[str, Any]) -> None:
        """Count what an earlier part of the same run had, as `asdict` gave it."""
        self.seconds += earlier["seconds"]
        self.ours += earlier["ours"]
        found = [*earlier["found"], *self.found]
        self.found = [kernel for kernel in found if kernel not in self.ours]


def counts(kernels: Mapping[str, Any]) -> dict[str, Any]:
    """Of `asdict(Kernels())`, what a record says."""
    compiled, cached = len(kernels["ours"]), len(kernels["found"])
    return {"compiled": compiled, "cached": cached, "seconds": kernels["seconds"]}


@contextmanager
def watched(device: torch.device) -> Iterator[Kernels]:
    """Count the kernels that are compiled and found from here on, for a GPU."""
    found = Kernels()
    if device.type != "cuda" or importlib.util.find_spec("triton") is None:
        yield found
        return
    from triton import knobs

    before = knobs.compilation.listener
    spans: list[tuple[float, float]] = []
    """When kernels were being compiled, one span after the other."""
    one_at_a_time = Lock()  # many threads compile

    def compiled(seconds: float) -> None:
        end = time.monotonic()
        start = end - seconds
        found.seconds += seconds
        while spans and spans[-1][1] > start:
            begun, ended = spans.pop()
            found.seconds -= ended - max(begun, start)
            start = min(begun, start)
        spans.append((start, end))

    def listen(**told: Any) -> None:
        kernel = told["metadata"]["hash"]
        with one_at_a_time:
            if not told["cache_hit"]:
                found.ours.append(kernel)
                compiled(told["times"].total / 1e6)
            elif kernel not in found.ours:
                found.found.append(kernel)
            if before is not None:
                before(**told)

    knobs.compilation.listener = listen
    try:
        yield found
    finally:
        knobs.compilation.listener = before
