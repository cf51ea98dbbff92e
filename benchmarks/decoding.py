"""How fast images come off the disk: our path beside Pillow alone, and where the time goes.

    python benchmarks/decoding.py                      # generated JPEGs of 500 x 375
    python benchmarks/decoding.py --root IMAGENET      # a folder with train/<synset>/*.JPEG

Both sides read a file, decode it, resize it to 256 x 256 and cut 224 x 224 out (the paper's
transform), on one core and in turns. "Pillow alone" is open, convert, resize (bilinear), crop.
Stages are timed in processor time, the loader by the clock; the best round counts, since
whatever else runs on the machine only ever slows one down.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
import PIL
import torch
import tyro
from PIL import Image
from rich.console import Console
from rich.table import Table
from torch import Tensor
from tyro.conf import arg

from quadspike.atomic import write_text
from quadspike.data.crops import crop, squash
from quadspike.data.decode import open_photo
from quadspike.data.imagenet import RESIZED, SIZE, ImageNet
from quadspike.data.loader import Draw
from quadspike.data.streaming import StreamingLoader

DISTINCT = 64  # images that are timed stage by stage; the loader gets more, for long epochs
BOX = (13, 21, 13 + SIZE, 21 + SIZE)
Work = Callable[[], object]
Clock = Callable[[], float]
T = TypeVar("T")


class Bytes(ImageNet):
    """Batches as they reach the device, before its half of the transform."""

    def finish(self, x: Tensor, draw: Draw) -> Tensor:
        return x


def photo(width: int, height: int, seed: int) -> Image.Image:
    """Noise with the spectrum of a photograph, about 1 over frequency."""
    noise = np.random.default_rng(seed).normal(size=(height, width, 3))
    rows, columns = np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)[None]
    weight = 1 / np.maximum(np.hypot(rows, columns), 1 / max(width, height))
    picture = np.fft.ifft2(np.fft.fft2(noise, axes=(0, 1)) * weight[..., None], axes=(0, 1)).real
    grey = picture.mean(axis=2, keepdims=True)
    picture = 128 + 48 * (0.3 * picture + 0.7 * grey) / picture.std()
    return Image.fromarray(picture.clip(0, 255).astype(np.uint8))


def generate(root: Path, images: int, size: tuple[int, int]) -> None:
    """A training folder of JPEGs, at 500 x 375 about 100 kB each as ImageNet's are."""
    folder = root / "train" / "n00000000"
    folder.mkdir(parents=True)
    for index in range(images):
        file = folder / f"{index:04}.JPEG"
        if index < DISTINCT:
            photo(*size, index).save(file, quality=92)
        else:
            shutil.copy(folder / f"{index % DISTINCT:04}.JPEG", file)


def pillow_alone(path: Path) -> Tensor:
    """What a plain script does for one image."""
    with Image.open(path) as image:
        small = image.convert("RGB").resize((RESIZED, RESIZED), Image.Resampling.BILINEAR)
    return torch.from_numpy(np.array(small.crop(BOX)))


def seconds(work: list[Work], rounds: int, clock: Clock = time.process_time) -> list[float]:
    """The best time of each, taken in turns so that a busy neighbour disturbs all alike."""
    taken: list[list[float]] = [[] for _ in work]
    for _ in range(rounds):
        for times, call in zip(taken, work, strict=True):
            begin = clock()
            call()
            times.append(clock() - begin)
    return [min(times) for times in taken]


def each(call: Callable[[T], object], items: Iterable[T]) -> None:
    """Call it on every item and keep nothing: fresh memory each time would be timed too."""
    for item in items:
        call(item)


def one_core(data: ImageNet, rounds: int) -> dict[str, float]:
    """Milliseconds an image, stage by stage and for both whole paths."""
    files = [data.file(index) for index in range(min(len(data), DISTINCT))]
    batch = torch.empty(len(files), SIZE, SIZE, 3, dtype=torch.uint8)
    draw = Draw(0, 0, torch.arange(len(files)))
    decoded = [open_photo(file).pixels() for file in files]
    small = [squash(image, RESIZED) for image in decoded]
    u = [0.4] * data.draws

    def collate(images: list[Tensor]) -> None:
        for row, image in enumerate(images):
            batch[row] = crop(image, BOX).permute(1, 2, 0)

    def ours() -> None:
        for row in range(len(files)):
            batch[row] = data.load(row, u).permute(1, 2, 0)

    def theirs() -> None:
        for row, file in enumerate(files):
            batch[row] = pillow_alone(file)

    work: dict[str, Work] = {
        "read": lambda: each(Path.read_bytes, files),
        "read and decode": lambda: each(lambda file: open_photo(file).pixels(), files),
        "resize": lambda: each(lambda image: squash(image, RESIZED), decoded),
        "crop and collate": lambda: collate(small),
        "flip, hole, normalise": lambda: data.finish(batch.permute(0, 3, 1, 2), draw),
        "our path": ours,
        "pillow alone": theirs,
    }
    times = seconds(list(work.values()), rounds)
    cost = {name: 1e3 * t / len(files) for name, t in zip(work, times, strict=True)}
    decode = cost.pop("read and decode") - cost["read"]
    return {"read": cost.pop("read"), "decode in full": decode, **cost}


def transfer(images: int, rounds: int) -> float:
    """Milliseconds an image from pinned memory to the GPU."""
    batch = torch.empty(images, SIZE, SIZE, 3, dtype=torch.uint8, pin_memory=True)

    def copy() -> None:
        batch.to("cuda", non_blocking=True)
        torch.cuda.synchronize()

    return 1e3 * seconds([copy], rounds, time.perf_counter)[0] / images


def streamed(data: ImageNet, workers: int, batch_size: int, device: str, rounds: int) -> float:
    """Images a second out of a loader that is warm."""
    loader = StreamingLoader(data, batch_size, workers, shuffle=True, device=device)

    def epoch(number: int) -> float:
        begin = time.perf_counter()
        for batch in loader.epoch(number):
            last = batch.inputs
        last[0, 0, 0, 0].item()  # waits for the device
        return time.perf_counter() - begin

    epoch(0)  # starts the workers
    return len(loader) * batch_size / min(epoch(number) for number in range(1, rounds + 1))


def main(
    root: Path | None = None,
    images: int = 768,
    size: tuple[int, int] = (500, 375),
    rounds: int = 10,
    batch_size: int = 32,
    workers: tuple[int, ...] = (1, 2),
    json_file: Annotated[Path | None, arg(name="json")] = None,
) -> None:
    """Measure how fast images are decoded, and print a table.

    Args:
        root: A folder in ImageNet's layout; without it, JPEGs are generated.
        images: How many to generate.
        size: Width and height of the generated ones.
        rounds: Repetitions; the best counts.
        batch_size: Images in a batch of the loader.
        workers: Numbers of worker processes to try.
        json_file: Where to write the figures too.
    """
    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory() as scratch:
        if root is None:
            root = Path(scratch)
            generate(root, images, size)
        data = ImageNet(root, "train", "paper")
        kilobytes = [data.file(index).stat().st_size / 1e3 for index in range(len(data))]
        cost = one_core(data, rounds)
        if device == "cuda":
            cost["transfer"] = transfer(batch_size, rounds)
        raw = Bytes(root, "train", "paper")
        rates = {count: streamed(raw, count, batch_size, device, rounds) for count in workers}
    figures = {
        "images": len(data),
        "kilobytes_an_image": statistics.mean(kilobytes),
        "milliseconds_an_image": cost,
        "images_a_second_by_workers": rates,
        "environment": {
            "cores": os.cpu_count(),
            "device": device,
            "machine": platform.machine(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "pillow": PIL.__version__,
        },
    }
    show(cost, rates, f"{len(data)} images of {statistics.mean(kilobytes):.0f} kB, {device}")
    if json_file:
        write_text(json_file, json.dumps(figures, indent=2))


def show(cost: dict[str, float], rates: dict[int, float], title: str) -> None:
    """The figures as a table."""
    table = Table("", "ms an image", "images/s", title=title)
    for name, milliseconds in cost.items():
        whole = name in ("our path", "pillow alone")
        table.add_row(name, f"{milliseconds:.3f}", f"{1e3 / milliseconds:.0f}" if whole else "")
    for workers, rate in rates.items():
        table.add_row(f"loader, workers: {workers}", f"{1e3 / rate:.3f}", f"{rate:.0f}")
    Console().print(table)


if __name__ == "__main__":
    tyro.cli(main)
