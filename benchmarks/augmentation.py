"""How long one epoch of CIFAR's augmentation takes: 50,000 images of 32 x 32, random bytes.

    python benchmarks/augmentation.py                       # the GPU if there is one, and the CPU
    python benchmarks/augmentation.py --batch-sizes 512 --json augmentation.json

Each epoch goes through the loader in order, so it includes picking the images and drawing
their random numbers, but not the shuffle. "draws alone" are the random numbers of crop, flip
and cutout. Medians of whole epochs by the clock, after a warm-up; on a GPU synchronised before
and after. On the CPU a part of the epoch is timed and scaled up.
"""

from __future__ import annotations

import json
import platform
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import tyro
from rich.console import Console
from rich.table import Table
from torch import Tensor

from quadspike.atomic import write_text
from quadspike.data.augment import cifar_train
from quadspike.data.loader import Draw, Loader, Transform
from quadspike.data.split import Split

IMAGES = 50_000
ON_CPU = 4_096


def draws_alone(x: Tensor, draw: Draw) -> Tensor:
    """The random numbers of crop, flip and cutout, and nothing done with them."""
    for count, purpose in ((2, "crop"), (1, "flip"), (2, "cutout")):
        draw.uniform(count, purpose)
    return x


PIPELINES: dict[str, Transform] = {
    "draws alone": draws_alone,
    "crop, flip, cutout, normalise": cifar_train("cifar10"),
    "the same with AutoAugment": cifar_train("cifar100"),
}


@dataclass(frozen=True)
class Timing:
    """The median milliseconds of an epoch, and how many of its images were really timed."""

    device: str
    pipeline: str
    batch_size: int
    milliseconds: float
    images_timed: int


def epoch_seconds(loader: Loader, epoch: int) -> float:
    """One epoch by the clock."""
    on_gpu = loader.split.inputs.is_cuda
    if on_gpu:
        torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in loader.epoch(epoch):
        pass
    if on_gpu:
        torch.cuda.synchronize()
    return time.perf_counter() - begin


def measure(device: str, batch_sizes: tuple[int, ...], repeats: int) -> list[Timing]:
    """Every pipeline at every batch size on one device."""
    images = IMAGES if device == "cuda" else ON_CPU
    inputs = torch.randint(256, (images, 3, 32, 32), dtype=torch.uint8)
    split = Split("noise", inputs, torch.zeros(images).long(), ("noise",)).to(device)
    timings = []
    for name, transform in PIPELINES.items():
        for batch_size in batch_sizes:
            loader = Loader(split, batch_size, transform)
            epoch_seconds(loader, 0)
            times = [epoch_seconds(loader, epoch) for epoch in range(1, repeats + 1)]
            scaled = 1e3 * statistics.median(times) * IMAGES / images
            timings.append(Timing(device, name, batch_size, scaled, images))
    return timings


def describe(device: str) -> str:
    """The hardware, in words."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    return f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} thread(s)"


def table(device: str, timings: list[Timing]) -> Table:
    """One device's timings, a column a batch size."""
    scaled = f", scaled from {ON_CPU:,} images" if device == "cpu" else ""
    grid = Table(title=f"ms an epoch of {IMAGES:,} images on {describe(device)}{scaled}")
    grid.add_column("")
    for batch_size in dict.fromkeys(timing.batch_size for timing in timings):
        grid.add_column(f"batches of {batch_size:,}", justify="right")
    for name in PIPELINES:
        row = [timing.milliseconds for timing in timings if timing.pipeline == name]
        grid.add_row(name, *(f"{value:,.1f}" for value in row))
    return grid


def write(path: Path, timings: list[Timing]) -> None:
    """All timings and the software they were taken with."""
    content = {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "devices": {timing.device: describe(timing.device) for timing in timings},
        "timings": [asdict(timing) for timing in timings],
    }
    write_text(path, json.dumps(content, indent=2))


def main(
    batch_sizes: tuple[int, ...] = (128, 1024),
    repeats: int = 5,
    devices: tuple[str, ...] = ("cuda", "cpu"),
    json: Path | None = None,
) -> None:
    """Time CIFAR's augmentation.

    Args:
        batch_sizes: images in a batch.
        repeats: epochs to take the median of.
        devices: where to run; a GPU that is not there is left out.
        json: a file for the numbers.
    """
    timings: list[Timing] = []
    for device in devices:
        if device == "cuda" and not torch.cuda.is_available():
            continue
        taken = measure(device, batch_sizes, repeats)
        Console().print(table(device, taken))
        timings += taken
    if json:
        write(json, timings)


if __name__ == "__main__":
    tyro.cli(main)
