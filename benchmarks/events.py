"""How fast event files are read and made into frames, in events a second.

    python -m benchmarks.events --json events.json

Recordings are generated, of CIFAR10-DVS's mean length; each figure is the fastest of several runs
on one thread, the one that other work disturbed least.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from quadspike.data.events.aedat import format_aedat, parse_aedat
from quadspike.data.events.form import Events
from quadspike.data.events.frames import EventBatch, Framing
from quadspike.data.events.nmnist import parse_nmnist

EVENTS, SHORT = 204_979, 4_100
STEPS, SIZE = 10, 48


def recording(count: int, size: int, seconds: float) -> Events:
    """Events at random places and times."""
    source = np.random.default_rng(0)
    t = np.sort(source.integers(0, int(seconds * 1e6), count))
    x, y, p = (source.integers(0, high, count) for high in (size, size, 2))
    return Events.of(t, x, y, p, width=size, height=size)


def nmnist_bytes(events: Events) -> bytes:
    """A recording in the records of N-MNIST."""
    t, x, y, p = (
        tensor.numpy().astype(np.int64) for tensor in (events.t, events.x, events.y, events.p)
    )
    columns = (x, y, p << 7 | t >> 16, t >> 8 & 255, t & 255)
    return np.stack(columns, axis=1).astype(np.uint8).tobytes()


def rate(work: Callable[[], object], events: int, runs: int, wait: Callable[[], None]) -> float:
    """Events a second of the fastest run."""
    seconds = []
    for _ in range(runs):
        wait()
        begun = time.perf_counter()
        work()
        wait()
        seconds.append(time.perf_counter() - begun)
    return events / min(seconds)


def measure(runs: int) -> dict[str, float]:
    """Events a second by what was done."""
    long, short = recording(EVENTS, 128, 1.3), recording(SHORT, 34, 0.3)
    aedat, nmnist = format_aedat(long, "bench"), nmnist_bytes(short)
    idle = lambda: None  # noqa: E731
    found = {
        "read aedat": rate(lambda: parse_aedat(aedat, "bench"), EVENTS, runs, idle),
        "read nmnist": rate(lambda: parse_nmnist(nmnist, "bench"), SHORT, runs, idle),
    }
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    for device in devices:
        wait = torch.cuda.synchronize if device == "cuda" else idle
        one = long.to(device)
        batch = EventBatch.of([one] * 16)
        for name, framing in {
            f"frames {STEPS} x 128 x 128": Framing(STEPS),
            f"frames {STEPS} x 128 x 128 by time": Framing(STEPS, by="time"),
            f"frames {STEPS} x {SIZE} x {SIZE}": Framing(STEPS, size=SIZE),
        }.items():
            found[f"{name}, {device}"] = rate(lambda: framing(one), EVENTS, runs, wait)  # noqa: B023
            found[f"{name}, {device}, 16 at once"] = rate(
                lambda: framing(batch),  # noqa: B023
                16 * EVENTS,
                max(3, runs // 4),
                wait,
            )
    return found


def main() -> None:
    """Measure, print, and write the figures if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the figures there")
    parser.add_argument("--runs", type=int, default=20)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found = measure(arguments.runs)
    for name, value in found.items():
        print(f"{name:45s} {value / 1e6:9.1f} M events/s")
    if arguments.json:
        about = {
            "torch": torch.__version__,
            "machine": platform.processor() or platform.machine(),
            "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        }
        figures = {"environment": about, "runs": arguments.runs, "events_per_second": found}
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
