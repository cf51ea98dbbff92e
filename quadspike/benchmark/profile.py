"""The part that says where a step's time goes, kernel by kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.profiler_util import FunctionEventAvg
from torch.profiler import ProfilerActivity

from quadspike.benchmark.contenders import best_own
from quadspike.benchmark.record import Row
from quadspike.benchmark.setting import Job, attempt
from quadspike.benchmark.timing import Work, copy_rate
from quadspike.soma import Soma
from quadspike.training.plan import wait
from quadspike.training.step import autocast

GROUPS: tuple[tuple[str, str], ...] = (
    ("soma statistics", r"^(statistics|normalise)_kernel"),
    ("soma forward", r"^apply_kernel"),
    ("soma backward", r"^(backward|gather)_kernel"),
    ("pooling", r"pool"),
    ("optimizer", r"FusedSgd|FusedAdam|_fused_"),
    ("layout changes", r"nchwToNhwc|nhwcToNchw|tensorTransform"),
    ("synapses", r"conv|cudnn|xmma|cutlass|gemm|nvjet|wgrad|dgrad|fprop|addmm|aten::mm"),
    ("casts and copies", r"copy|memcpy|memset|fill|CatArray|cat\b|clone"),
)
"""In this order: the first pattern that a kernel's name holds."""
OTHER = "other"
_REPLAYS = 5


def profile(job: Job) -> Iterator[Row]:
    """One row a group of kernels, the largest kernels in it, and what the somas move."""
    kernels: list[Kernel] = []
    own = best_own(job.device)

    def collect() -> Row:
        kernels.extend(_kernels(job, own.make(job.setting, job.device)))
        total = sum(kernel.ms for kernel in kernels)
        return {"ms": total, "launches": sum(kernel.launches for kernel in kernels)}

    yield attempt(job, "all kernels", f"{own.title}: all kernels", collect)
    for group in (*(name for name, _ in GROUPS), OTHER):
        mine = [kernel for kernel in kernels if kernel.group == group]
        row = {
            "ms": sum(kernel.ms for kernel in mine),
            "launches": sum(kernel.launches for kernel in mine),
            "kernels": [kernel.as_row() for kernel in mine[:12]],
        }
        if mine:
            yield attempt(job, group, group, lambda: row)  # noqa: B023
    soma_ms = sum(kernel.ms for kernel in kernels if kernel.group.startswith("soma"))
    if soma_ms:
        yield attempt(job, "soma bandwidth", "all somas", lambda: _bandwidth(job, soma_ms))


@dataclass(frozen=True)
class Kernel:
    """A kernel of a step: its time and how often it was launched."""

    name: str
    ms: float
    launches: float

    @property
    def group(self) -> str:
        """Which of `GROUPS` it belongs to.

        >>> Kernel("sm90_xmma_fprop_implicit_gemm_bf16", 0.1, 1).group
        'synapses'
        """
        found = (name for name, pattern in GROUPS if re.search(pattern, self.name, re.IGNORECASE))
        return next(found, OTHER)

    def as_row(self) -> Row:
        return {"name": self.name[:200], "ms": self.ms, "launches": self.launches}


def _kernels(job: Job, step: Work) -> list[Kernel]:
    """The kernels of a step, the longest first."""
    on_gpu = job.device.type == "cuda"
    runs = 1 if job.smoke else _REPLAYS
    for _ in range(2 if job.smoke else 10):
        step()
    wait(job.device)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with torch.profiler.profile(activities=activities) as profiler:
        for _ in range(runs):
            step()
        wait(job.device)
    found = []
    for event in profiler.key_averages():
        microseconds = _microseconds(event, on_gpu)
        if microseconds > 0:
            found.append(Kernel(event.key, microseconds / 1e3 / runs, event.count / runs))
    return sorted(found, key=lambda kernel: -kernel.ms)


def _microseconds(event: FunctionEventAvg, on_gpu: bool) -> float:
    """Its own time on the device; spans that only mark others have none."""
    if not on_gpu:
        return float(event.self_cpu_time_total)
    annotation = getattr(event, "is_user_annotation", False)  # not in every torch
    kernel = event.device_type.name == "CUDA" and not annotation
    return float(event.self_device_time_total) if kernel else 0.0


def _bandwidth(job: Job, soma_ms: float) -> Row:
    moved = soma_bytes(job)
    rate = moved / soma_ms / 1e9
    best = copy_rate(job.device, job.effort)
    return {"ms": soma_ms, "bytes": moved, "tb_s": rate, "copy_share": rate / best}


@torch.no_grad()
def soma_bytes(job: Job) -> int:
    """The fewest bytes the somas of a step move when each keeps its input alone for backward.

    Forward: statistics read x; then x (and a residual) is read and the output written.
    Backward: x, the output's gradient (and a residual before the neuron) are read for the
    channel sums, again for the gradients, and those are written.
    """
    total = 0

    def add(module: Soma, args: tuple[Any, ...], out: Tensor) -> None:
        nonlocal total
        x, _, residual = args
        total += (5 * x.numel() + 3 * out.numel()) * out.element_size()
        if residual is not None:
            passes = 4 if module.residual == "before" else 1
            total += passes * residual.numel() * residual.element_size()

    model = job.setting.network(job.device)
    with ExitStack() as hooks:
        for soma in model.somas().values():
            hooks.enter_context(soma.register_forward_hook(add))
        with autocast(job.setting.recipe, job.device):
            model(job.setting.batch(job.device)[0])
    return total
