"""Clocks: medians of device time after a warm-up, peaks of memory, and the device's ceilings."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from quadspike.training.graph import capture, warm_up
from quadspike.training.memory import GIB
from quadspike.training.plan import wait

Work = Callable[[], object]


@dataclass(frozen=True)
class Effort:
    """How long to measure: about `seconds`, within `least` and `most` runs, after warming up."""

    seconds: float = 2.0
    least: int = 20
    most: int = 200
    warm_runs: int = 5
    warm_seconds: float = 0.5


QUICK = Effort(seconds=0.0, least=2, most=2, warm_runs=1, warm_seconds=0.0)


@dataclass(frozen=True)
class Timing:
    """Milliseconds: the median of `runs`, and what a tenth of them stayed below and above."""

    ms: float
    low: float
    high: float
    runs: int


def timed(work: Work, device: torch.device, effort: Effort) -> Timing:
    """Time `work`: by events on a GPU, by the clock on a CPU."""
    work()  # compiles and captures, in which time a GPU falls asleep
    wait(device)
    begin = time.perf_counter()
    warm = 0
    while warm < effort.warm_runs or time.perf_counter() - begin < effort.warm_seconds:
        work()
        wait(device)
        warm += 1
    begin = time.perf_counter()
    work()
    wait(device)
    once = time.perf_counter() - begin
    runs = max(effort.least, min(effort.most, int(effort.seconds / once)))
    times = sorted(_events(work, runs) if device.type == "cuda" else _clock(work, runs))
    tenth = runs // 10
    return Timing(statistics.median(times), times[tenth], times[-1 - tenth], runs)


def _events(work: Work, runs: int) -> list[float]:
    marks = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(runs)]
    for before, after in marks:
        before.record()
        work()
        after.record()
    torch.cuda.synchronize()
    return [before.elapsed_time(after) for before, after in marks]


def _clock(work: Work, runs: int) -> list[float]:
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        work()
        times.append(1e3 * (time.perf_counter() - begin))
    return times


class Captured:
    """Work as one CUDA graph; every tensor it touches must stay where it is."""

    def __init__(self, work: Work) -> None:
        self._work = work  # a graph does not keep alive what it reads
        warm_up(work, 3)
        self._replay = capture(work)

    def __call__(self) -> None:
        self._replay()


class Peak:
    """The most memory held at once since this was made, beyond what was held then."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        if device.type == "cuda":
            gc.collect()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(device)
            self._before = torch.cuda.memory_allocated(device)

    def gib(self) -> float | None:
        """In GiB; unknown on a CPU."""
        if self._device.type != "cuda":
            return None
        return (torch.cuda.max_memory_allocated(self._device) - self._before) / GIB


def copy_rate(device: torch.device, effort: Effort) -> float:
    """TB/s of a large copy within the device, bytes read and written."""
    size = 2 * GIB if device.type == "cuda" else GIB >> 5
    source = torch.randint(256, (size,), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * size / timed(lambda: target.copy_(source), device, effort).ms / 1e9


def matrix_rate(device: torch.device, effort: Effort) -> float:
    """TFLOP/s of a large product on random numbers: bf16 on a GPU, fp32 on a CPU."""
    side, dtype = (8192, torch.bfloat16) if device.type == "cuda" else (512, torch.float32)
    left, right = (torch.randn(side, side, dtype=dtype, device=device) for _ in range(2))
    out = torch.empty_like(left)
    return 2 * side**3 / timed(lambda: torch.mm(left, right, out=out), device, effort).ms / 1e9
