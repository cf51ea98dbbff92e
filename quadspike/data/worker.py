"""What a worker process does: decode one batch of image files."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from quadspike.data.decode import BrokenImageError
from quadspike.data.loader import Draw
from quadspike.errors import QuadspikeError


class ImageFiles(Protocol):
    """Images that are loaded one by one on the host and finished in batches on the device."""

    name: str
    classes: tuple[str, ...]
    broken: str
    """`"fatal"` or `"skip"`."""
    labels: Tensor
    size: int
    draws: int
    """How many uniforms `load` takes."""

    def __len__(self) -> int: ...
    def file(self, index: int) -> Path: ...
    def load(self, index: int, u: Sequence[float]) -> Tensor: ...
    def finish(self, x: Tensor, draw: Draw) -> Tensor: ...


class Request(NamedTuple):
    """What a worker is asked for: one batch of one epoch."""

    epoch: int
    samples: NDArray[np.int64]


class Decoded(NamedTuple):
    """What a worker answers: bytes `[B, H, W, 3]`, or why there are none."""

    images: Tensor
    labels: Tensor
    samples: Tensor
    broken: list[tuple[str, str]]
    """Path and reason of each file that was passed over."""
    failure: str


class Decoder(Dataset[Decoded]):
    """Loads what is requested, in a worker process or in this one.

    A broken file raises nothing here: an exception would reach the main process wrapped in
    the worker's traceback, so the answer carries its message instead.
    """

    def __init__(self, files: ImageFiles, seed: int) -> None:
        self.files = files
        self.seed = seed

    def __getitem__(self, request: Request) -> Decoded:
        samples = torch.from_numpy(request.samples)
        draws = Draw(self.seed, request.epoch, samples).uniform(self.files.draws, "view").tolist()
        images = torch.empty(len(samples), self.files.size, self.files.size, 3, dtype=torch.uint8)
        chosen = []
        broken: list[tuple[str, str]] = []
        try:
            for row, (sample, u) in enumerate(zip(request.samples.tolist(), draws, strict=True)):
                index, image = self._load(sample, u, broken)
                images[row] = image.permute(1, 2, 0)
                chosen.append(index)
        except QuadspikeError as error:
            return Decoded(images[:0], samples[:0], samples[:0], broken, str(error))
        return Decoded(images, self.files.labels[torch.tensor(chosen)], samples, broken, "")

    def _load(
        self, sample: int, u: Sequence[float], broken: list[tuple[str, str]]
    ) -> tuple[int, Tensor]:
        """The sample, or the next good image after it, with its own place in the listing."""
        for index in chain(range(sample, len(self.files)), range(sample)):
            try:
                return index, self.files.load(index, u)
            except BrokenImageError as error:
                if self.files.broken == "fatal":
                    raise
                broken.append((str(error.path), error.reason))
        raise QuadspikeError(f"{self.files.name}: every one of its images is broken")
