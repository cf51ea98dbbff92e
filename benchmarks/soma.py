"""How fast the fused soma runs against the memory it has to move: ResNet-19's layers.

    python benchmarks/soma.py                          # every shape, T = 2 and 4
    python benchmarks/soma.py --residual before --out soma.json
    python benchmarks/soma.py --surrogate local-zo     # what its draws cost
    python benchmarks/soma.py --sweep sums input       # which tiles are best, kernel by kernel

Bytes are those of the two-pass algorithm, whatever the caches save: a training forward reads x
twice and writes once; a backward reads x and the output's gradient twice and writes once; a
forward at inference reads and writes once; each read of a residual and each write of its gradient
counts one more. "of copy" is the share of the rate of a plain copy measured in the same run.
Calls are captured in one CUDA graph and walk over more memory than the caches hold. bfloat16,
channels last, QIF with its window or another surrogate.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import torch
import triton
from torch import Tensor

from quadspike import QIF
from quadspike.atomic import write_text
from quadspike.benchmark.timing import Effort, copy_rate
from quadspike.norms import TDBatchNorm
from quadspike.ops import equations, registration
from quadspike.ops.signature import Arguments, Gradients, Incoming
from quadspike.ops.triton import launch_backward, launch_forward, tiles
from quadspike.surrogates import SURROGATES

LAYERS = ((64, 32), (128, 32), (256, 16), (512, 8))
"""Channels and side of ResNet-19's activations on 32 x 32 images."""
BEYOND_CACHE = 512 * 2**20
Kernel = Literal["statistics", "apply", "sums", "input"]


@dataclass(frozen=True)
class Timing:
    """One measurement: microseconds a call, and what they are worth."""

    what: str
    layer: str
    steps: int
    microseconds: float
    terabytes_per_second: float
    of_copy: float
    setting: str = ""


def microseconds(calls: list[Callable[[], Any]], replays: int = 20) -> float:
    """The time of one call: all of them in one CUDA graph, the median of its replays."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for call in calls[:2]:  # compiles
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    graph.replay()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(replays + 1)]
    marks[0].record()
    for mark in marks[1:]:
        graph.replay()
        mark.record()
    torch.cuda.synchronize()
    times = sorted(a.elapsed_time(b) for a, b in itertools.pairwise(marks))
    return 1e3 * times[len(times) // 2] / len(calls)


@dataclass(frozen=True)
class Layer:
    """One soma's tensors, as many sets as the caches cannot hold."""

    channels: int
    side: int
    steps: int
    batch: int
    residual: str | None
    surrogate: str = "window"

    @property
    def name(self) -> str:
        return f"{self.side}x{self.side}x{self.channels}"

    @property
    def bytes(self) -> int:
        return 2 * self.steps * self.batch * self.channels * self.side**2

    def tensor(self) -> Tensor:
        shape = (self.steps * self.batch, self.channels, self.side, self.side)
        x = torch.randn(shape, dtype=torch.bfloat16, device="cuda")
        return x.contiguous(memory_format=torch.channels_last)

    def arguments(self, mode: str) -> list[Arguments]:
        """A call's arguments for every set of tensors."""
        neuron, norm = QIF(surrogate=self.surrogate), TDBatchNorm(self.channels).cuda()
        p, s = neuron.constants(), neuron.surrogate.constants(neuron)
        samples = neuron.surrogate.draws
        common = Arguments(
            x=torch.empty(0),
            residual=None,
            scale=norm.weight.detach()[None],
            shift=norm.bias.detach()[None],
            gain=None,
            running_mean=norm.running_mean if mode == "running" else None,
            running_var=norm.running_var if mode == "running" else None,
            initial_u=None,
            initial_o=None,
            start=norm.weight.new_zeros((), dtype=torch.int64) if samples else None,
            constants=[],
            numbers=[float(value) for value in (*p, *s)],
            kinds="n" * len(p) + "|" + "n" * len(s),
            equation=equations.register(type(neuron), type(neuron.surrogate), p._fields, s._fields),
            mode=mode,
            place=self.residual or "before",
            steps=self.steps,
            batch=self.batch,
            keep=0,
            mean=False,
            emit=torch.bfloat16,
            gain_number=float(norm.gain),
            eps=norm.eps,
            counter=0,
            samples=samples,
            sync=False,
            detach_reset=False,
            backend="triton",
        )
        sets = max(2, -(-BEYOND_CACHE // (3 * self.bytes)))
        return [
            common._replace(x=self.tensor(), residual=self.tensor() if self.residual else None)
            for _ in range(sets)
        ]

    def incoming(self, given: list[Arguments]) -> list[Incoming]:
        """Gradients of the outputs, and what the forward made."""
        made = [registration.soma(*a)[3:] for a in given]
        flags = "0" * len(given[0].p_kinds)
        return [Incoming(self.tensor(), None, None, *m, True, flags) for m in made]


def measure(layer: Layer, copy: float) -> list[Timing]:
    """Forward and backward in training, and forward at inference."""
    train, infer = layer.arguments("batch"), layer.arguments("running")
    incoming = layer.incoming(train)
    before = layer.residual == "before"
    reads = int(layer.residual is not None)
    calls = {
        "forward": (3 + reads, [lambda a=a: registration.soma(*a) for a in train]),
        "backward": (
            5 + 3 * before,
            [
                lambda g=g, a=a: registration.soma_backward(*g, *a)
                for g, a in zip(incoming, train, strict=True)
            ],
        ),
        "inference": (2 + reads, [lambda a=a: registration.soma(*a) for a in infer]),
    }
    return [rated(what, layer, passes, run, copy) for what, (passes, run) in calls.items()]


def rated(
    what: str,
    layer: Layer,
    passes: int,
    calls: list[Callable[[], Any]],
    copy: float,
    note: str = "",
) -> Timing:
    """The time of a call that moves the layer's bytes `passes` times."""
    took = microseconds(calls)
    rate = passes * layer.bytes / (1e-6 * took)
    return Timing(what, layer.name, layer.steps, took, rate / 1e12, rate / copy, note)


def kernel_calls(kernel: Kernel, layer: Layer) -> tuple[int, list[Callable[[], Any]]]:
    """One kernel alone, and how often it moves the layer's bytes."""
    given = layer.arguments("batch")
    reads, before = int(layer.residual is not None), layer.residual == "before"
    if kernel == "statistics":
        return 1, [lambda a=a: launch_forward.statistics(a.x) for a in given]
    incoming = layer.incoming(given)
    pairs = list(zip(incoming, given, strict=True))
    if kernel == "apply":
        return 2 + reads, [lambda g=g, a=a: launch_forward.apply(a, g.affine) for g, a in pairs]

    def walk(g: Incoming, a: Arguments) -> Any:
        slots = launch_backward.Slots.of(a, g)
        made = Gradients(*registration.gradients(a, True, g.wanted))
        sums = kernel == "sums"
        return launch_backward.walk(
            g, a, slots, made, None if sums else g.moments, sums=sums, write=not sums
        )

    passes = 2 + before if kernel == "sums" else 3 + 2 * before
    return passes, [lambda g=g, a=a: walk(g, a) for g, a in pairs]


def sweep(kernel: Kernel, layer: Layer, copy: float) -> list[Timing]:
    """Every setting of a kernel's tiles, fastest first; the table is put back after."""
    kept, at_once = tiles.SETTINGS[kernel], tiles.AT_ONCE
    reduces = kernel in ("statistics", "sums")
    choices = itertools.product(
        (8, 16, 32),
        (2, 4, 8),
        (64, 256),
        (264, 396, 528, 1056) if reduces else (264,),
        (2, 4, 8) if kernel == "statistics" else (at_once,),
    )
    passes, calls = kernel_calls(kernel, layer)
    timings = []
    try:
        for *choice, tiles.AT_ONCE in choices:
            setting = tiles.Setting(*choice)
            if setting.columns > max(64, layer.channels):
                continue
            tiles.SETTINGS[kernel] = {1: setting}
            note = ", ".join(f"{value} {name}" for name, value in setting._asdict().items())
            if kernel == "statistics":
                note += f", {tiles.AT_ONCE} at once"
            timings.append(rated(kernel, layer, passes, calls, copy, note))
    finally:
        tiles.SETTINGS[kernel], tiles.AT_ONCE = kept, at_once
    return sorted(timings, key=lambda timing: timing.microseconds)


def show(timing: Timing) -> None:
    """One line."""
    rates = f"{timing.terabytes_per_second:6.2f} TB/s {timing.of_copy:6.0%} of copy"
    place = f"{timing.layer:>10} T={timing.steps}"
    print(f"{timing.what:10} {place} {timing.microseconds:9.1f} us {rates}  {timing.setting}")


def write(path: Path, timings: list[Timing], copy: float, options: dict[str, Any]) -> None:
    """All timings and what they were taken with, all or nothing."""
    content = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": platform.python_version(),
        "copy_terabytes_per_second": copy / 1e12,
        **options,
        "timings": [asdict(timing) for timing in timings],
    }
    write_text(path, json.dumps(content, indent=2))


def main() -> None:
    """Time the fused soma on ResNet-19's layers."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--batch", type=int, default=128, help="images in a batch")
    parser.add_argument("--steps", type=int, nargs="+", default=[2, 4], help="numbers of steps")
    parser.add_argument("--residual", choices=("before", "after"), help="where a residual joins")
    parser.add_argument("--surrogate", default="window", choices=SURROGATES, help="of the QIF")
    parser.add_argument(
        "--sweep",
        nargs="+",
        default=[],
        choices=get_args(Kernel),
        help="try tiles of these kernels",
    )
    parser.add_argument("--best", type=int, default=5, help="settings of a sweep to print")
    parser.add_argument("--out", type=Path, help="a file for the numbers")
    options = parser.parse_args()
    copy = 1e12 * copy_rate(torch.device("cuda"), Effort())
    print(f"{torch.cuda.get_device_name()}: a copy moves {copy / 1e12:.2f} TB/s")
    timings: list[Timing] = []
    for steps, (channels, side) in itertools.product(options.steps, LAYERS):
        layer = Layer(channels, side, steps, options.batch, options.residual, options.surrogate)
        if not options.sweep:
            taken = measure(layer, copy)
            timings += taken
            for timing in taken:
                show(timing)
        for kernel in options.sweep:
            taken = sweep(kernel, layer, copy)
            timings += taken
            for timing in taken[: options.best]:
                show(timing)
    if options.out:
        given = {name: getattr(options, name) for name in ("batch", "residual", "surrogate")}
        write(options.out, timings, copy, given)


if __name__ == "__main__":
    main()
