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
    """Triton's. Those that an earlier run in the same process has loaded are in neither count."""

    compiled: int = 0
    cached: int = 0
    """Compiled beforehand: found on disk."""
    seconds: float = 0.0
    """In which at least one was being compiled."""
    ours: list[str] = field(default_factory=list)
    """Those that were compiled: a later part of the same run finds them, which does not count."""
    found: list[str] = field(default_factory=list)

    def add(self, earlier: Mapping[str, Any]) -> None:
        """Count what an earlier part of the same run had."""
        for name, count in earlier.items():
            setattr(self, name, count + getattr(self, name))
        others = [kernel for kernel in self.found if kernel not in self.ours]
        self.cached -= len(self.found) - len(others)
        self.found = others

    def compile(self, kernel: str) -> None:
        """Note one that was compiled."""
        self.compiled += 1
        self.ours.append(kernel)

    def find(self, kernel: str) -> None:
        """Note one that the cache had."""
        if kernel not in self.ours:
            self.cached += 1
            self.found.append(kernel)


def counts(kernels: Mapping[str, Any]) -> dict[str, Any]:
    """Of `asdict(Kernels())`, what a record says."""
    return {name: kernels[name] for name in ("compiled", "cached", "seconds") if name in kernels}


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
                found.compile(kernel)
                compiled(told["times"].total / 1e6)
            else:
                found.find(kernel)
            if before is not None:
                before(**told)

    knobs.compilation.listener = listen
    try:
        yield found
    finally:
        knobs.compilation.listener = before
