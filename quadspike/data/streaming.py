"""Batches of images that do not fit into memory, decoded by worker processes.

What a batch holds is a function of (seed, epoch, step) alone: neither the number of workers
nor, for an equal global batch, the number of ranks changes it, and any epoch can be entered at
any step. Only bytes cross from the workers; the transform's second half runs on the device.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Sampler

from quadspike.data.loader import Batch, Draw
from quadspike.data.worker import Decoded, Decoder, ImageFiles, Request
from quadspike.errors import DataError, QuadspikeError, check_count
from quadspike.randomness import permutation


@contextmanager
def decoding() -> Iterator[None]:
    """Around whatever is done with batches: a worker process that was lost is told in words.

    torch raises that in the main process at once, whatever it is doing.
    """
    try:
        yield
    except RuntimeError as error:
        if not _of_a_worker(error):
            raise
        raise DataError(_lost(error)) from None


def _of_a_worker(error: Exception) -> bool:
    return str(error).startswith("DataLoader worker")


def _lost(error: Exception) -> str:
    why = str(error).strip() or type(error).__name__
    return (
        f"a process that decodes images was lost ({why}); if memory ran out, let the run have "
        "fewer processors or more memory, and give the same command again: with --resume a run "
        "goes on from its checkpoint"
    )


def _next(answers: Iterator[Decoded]) -> Decoded:
    """The next answer; that of a worker which was lost says so."""
    try:
        return next(answers)
    except (EOFError, OSError, RuntimeError) as error:
        # A pipe that broke, where torch has not yet seen why.
        if isinstance(error, RuntimeError) and not _of_a_worker(error):
            raise
        nothing = torch.empty(0)
        return Decoded(nothing, nothing, nothing, [], _lost(error))


class _Schedule(Sampler[Request]):
    """The requests of the epoch under way; the workers outlive it."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def __iter__(self) -> Iterator[Request]:
        return iter(self.requests)


class StreamingLoader:
    """A set of image files in batches on the device, one rank's share of them.

    `batch_size` is a rank's. Step s of an epoch is one global batch of `batch_size * world`
    images in the order of (seed, epoch), and rank r has the r-th part of it. Shuffled, every
    batch is full and what is left over is dropped. Otherwise every image is there once, nothing is
    repeated to fill up, and the ranks' shares of the last batch may be smaller by one than each
    other's. All ranks take equally many steps.

    Each worker decodes whole batches on one thread; `workers=0` decodes in this process.
    Where `broken="skip"`, the next good file takes a broken one's place, with its own label,
    and `broken` maps the path of each to the reason, for this rank and so far.
    """

    def __init__(
        self,
        dataset: ImageFiles,
        batch_size: int,
        workers: int = 0,
        seed: int = 0,
        shuffle: bool = False,
        rank: int = 0,
        world: int = 1,
        device: torch.device | str = "cpu",
    ) -> None:
        self.dataset = dataset
        self.batch_size = check_count("batch_size", batch_size)
        self.world = check_count("world", world)
        if not 0 <= rank < world:
            raise QuadspikeError(f"rank must lie in 0..{world - 1}, got {rank}")
        if workers < 0:
            raise QuadspikeError(f"workers must be at least 0, got {workers}")
        self.rank = rank
        self.seed = seed
        self.shuffle = shuffle
        self.device = torch.device(device)
        self.broken: dict[str, str] = {}
        self._bounds = _bounds(dataset, batch_size, world, drop_last=shuffle)
        self._workers = workers
        self._schedule = _Schedule()
        self._begun = 0
        self.close()

    def close(self) -> None:
        """End the workers; the next epoch starts new ones."""
        self._begun += 1
        self._loader = DataLoader(
            Decoder(self.dataset, self.seed),
            batch_size=None,
            sampler=self._schedule,
            num_workers=self._workers,
            persistent_workers=self._workers > 0,
            pin_memory=self.device.type == "cuda",
            worker_init_fn=_leave_signals_to_the_parent,
            generator=torch.Generator(),  # or each epoch would advance torch's own
        )

    def __len__(self) -> int:
        """Batches in an epoch, the same for every rank."""
        return len(self._bounds) - 1

    def epoch(self, epoch: int = 0, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, from step `start` on; it ends the one begun before it."""
        if not 0 <= start <= len(self):
            raise QuadspikeError(f"start must lie in 0..{len(self)}, got {start}")
        self._begun += 1
        mine = self._begun
        self._schedule.requests = self._requests(epoch, start)
        answers = iter(self._loader)
        for _ in range(start, len(self)):
            if mine != self._begun:
                raise QuadspikeError(
                    "a loader has one epoch at a time, and this one was ended by another or by "
                    "close(); make a second loader to read two side by side"
                )
            decoded = _next(answers)
            self.broken.update(decoded.broken)
            if decoded.failure:
                # Before the traceback holds on to them: collected with it, they end slowly.
                del answers
                self.close()
                raise DataError(decoded.failure)
            yield self._batch(decoded, epoch)

    def _requests(self, epoch: int, start: int) -> list[Request]:
        size = len(self.dataset)
        order = permutation(size, self.seed, epoch) if self.shuffle else torch.arange(size)
        samples = order.numpy()
        requests = []
        for low, high in pairwise(self._bounds[start:].tolist()):
            begin, end = (low + (high - low) * (self.rank + i) // self.world for i in (0, 1))
            requests.append(Request(epoch, samples[begin:end]))
        return requests

    def _batch(self, decoded: Decoded, epoch: int) -> Batch:
        images, labels, samples = (
            tensor.to(self.device, non_blocking=True)
            for tensor in (decoded.images, decoded.labels, decoded.samples)
        )
        draw = Draw(self.seed, epoch, samples)
        return Batch(self.dataset.finish(images.permute(0, 3, 1, 2), draw), labels)


def _bounds(dataset: ImageFiles, batch_size: int, world: int, drop_last: bool) -> NDArray[np.int64]:
    """Where the global batches begin and end in the epoch's order."""
    size, whole = len(dataset), batch_size * world
    if drop_last:
        if whole > size:
            raise QuadspikeError(
                f"a batch of {whole} ({batch_size} on each of {world} ranks) is larger than the "
                f"{size} images of {dataset.name}; lower the batch size"
            )
        return np.arange(size // whole + 1) * whole
    bounds = np.append(np.arange(0, size, whole), size)
    if len(bounds) > 2 and size - bounds[-2] < world:
        # Too few for every rank to have one: the last two batches share evenly.
        bounds[-2] = (bounds[-3] + size) // 2
    if np.diff(bounds).min() < world:
        raise QuadspikeError(
            f"{size} images of {dataset.name} in batches of {batch_size} leave one of {world} "
            "ranks without any; raise the batch size or take fewer ranks"
        )
    return bounds


def _leave_signals_to_the_parent(worker: int) -> None:
    # Ctrl-C and the end of a terminal reach every process in it, and `torchrun` and batch systems
    # tell every process to end: the parent decides, and may want a few batches more.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
