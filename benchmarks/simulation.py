"""How fast the simulated event camera records, and what its recordings are like.

    python -m benchmarks.simulation --data ROOT --real RECORDING.aedat --json simulation.json

Three ways through: events on the device, frames on the device, and files on the disk. Without
`--data`, the folder of CIFAR-10, the pictures are noise with the spectrum of photographs.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from quadspike.data.cifar import load_cifar10
from quadspike.data.events.aedat import read_aedat
from quadspike.data.events.camera import CIFAR10_DVS_CAMERA
from quadspike.data.events.camera_keys import separate
from quadspike.data.events.form import Events
from quadspike.data.events.statistics import recordings_table
from quadspike.data.simulate import simulate, simulate_frames
from quadspike.data.split import Split

WHOLE = 10_000
STEPS, SIZE = 10, 48


def pictures(count: int) -> Split:
    """Grey noise with power falling as photographs' does, as many of each of ten classes."""
    noise = np.random.default_rng(0).normal(size=(count, 32, 32))
    rows, columns = np.fft.fftfreq(32)[:, None], np.fft.fftfreq(32)[None]
    weight = 1 / np.maximum(np.hypot(rows, columns), 1 / 32)
    shown = np.fft.ifft2(np.fft.fft2(noise) * weight).real
    bytes_ = (128 + 30 * shown / shown.std()).clip(0, 255).astype(np.uint8)
    images = torch.from_numpy(bytes_)[:, None]
    return Split("noise", images, torch.arange(count) % 10, tuple("0123456789"))


def chosen(data: Path | None, count: int) -> Split:
    """As many images, the same number of each class."""
    split = pictures(count) if data is None else load_cifar10(data)[0]
    per_class = [torch.nonzero(split.labels == k).flatten()[: count // 10] for k in range(10)]
    return split.subset(torch.cat(per_class))


def timed(work: Callable[[], None], device: torch.device) -> float:
    """Seconds, the device's work included."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    begun = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begun


def measure(split: Split, batch: int, folder: Path) -> tuple[dict[str, float], list[Events]]:
    """Seconds by what was done, and the recordings."""
    device = split.inputs.device
    samples = torch.arange(len(split), device=device)
    recordings: list[Events] = []

    def record(part: Tensor) -> None:
        recordings.extend(separate(CIFAR10_DVS_CAMERA.record(split.inputs[part], part, 0)))

    def events() -> None:
        for part in samples.split(batch):
            record(part)

    def frames() -> None:
        simulate_frames(split, STEPS, size=SIZE, batch=batch)

    def files() -> None:
        simulate(split, folder / "events", per_class=len(split) // 10, batch=batch)

    record(samples[:batch])
    recordings.clear()
    works = {"events on the device": events, f"frames of {SIZE} x {SIZE}": frames, "files": files}
    return {name: timed(work, device) for name, work in works.items()}, recordings


def speed_table(seconds: dict[str, float], recordings: int, events: int) -> Table:
    """Rates, and what the whole of CIFAR10-DVS would take."""
    table = Table("", title=f"{recordings} recordings, {events / recordings:,.0f} events each")
    for heading in ("recordings/s", "events/s", f"{WHOLE:,} recordings"):
        table.add_column(heading, justify="right")
    for name, took in seconds.items():
        whole = took / recordings * WHOLE
        table.add_row(name, f"{recordings / took:,.1f}", f"{events / took:,.3g}", f"{whole:,.0f} s")
    return table


def main() -> None:
    """Measure, show, and write the figures where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="the folder of CIFAR-10")
    parser.add_argument("--real", type=Path, nargs="*", default=[], help="AEDAT files to compare")
    parser.add_argument("--recordings", type=int, default=100, help="a multiple of 10")
    parser.add_argument("--batch", type=int, help="recordings at once; 256, or 16 on a CPU")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    asked = parser.parse_args()
    split = chosen(asked.data, asked.recordings).to(asked.device)
    batch = asked.batch or (16 if asked.device == "cpu" else 256)
    with tempfile.TemporaryDirectory() as folder:
        seconds, recordings = measure(split, batch, Path(folder))
    events = sum(map(len, recordings))
    console = Console()
    console.print(speed_table(seconds, len(split), events))
    real = [(path.stem, read_aedat(path, backwards="sort")) for path in asked.real]
    console.print(recordings_table([one.to("cpu") for one in recordings], real))
    if asked.json:
        cuda = asked.device.startswith("cuda")
        figures = {
            "device": torch.cuda.get_device_name() if cuda else platform.machine(),
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
            "source": split.name,
            "batch": batch,
            "recordings": len(split),
            "events": events,
            "seconds": seconds,
        }
        asked.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
