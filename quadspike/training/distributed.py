"""More than one process: `torchrun` starts them, DistributedDataParallel joins them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.rendezvous import rendezvous

from quadspike.errors import QuadspikeError, check_device


@dataclass(frozen=True)
class Workers:
    """Which of how many processes this is; one alone without `torchrun`."""

    rank: int = 0
    world: int = 1
    local: int = 0

    @property
    def first(self) -> bool:
        """The one that writes and shows."""
        return self.rank == 0

    @property
    def many(self) -> bool:
        return self.world > 1

    def total(self, values: Tensor) -> Tensor:
        """The sum over all workers."""
        if not self.many:
            return values
        whole = values.clone()
        dist.all_reduce(whole)
        return whole

    def largest(self, values: list[int], device: torch.device) -> list[int]:
        """The largest over all workers, one by one; without others the device has no part in it."""
        if not self.many:
            return values
        whole = torch.tensor(values, device=device)
        dist.all_reduce(whole, dist.ReduceOp.MAX)
        return [int(value) for value in whole.tolist()]

    def agree(self, value: int, device: torch.device) -> bool:
        """Whether all workers hold the same number."""
        low, high = self.largest([-value, value], device)
        return -low == high

    def align(self, *models: nn.Module) -> None:
        """Give all workers the first one's buffers, which are those that are saved."""
        if self.many:
            for buffer in {id(b): b for model in models for b in model.buffers()}.values():
                dist.broadcast(buffer, 0)

    def share_of(self, batch_size: int) -> int:
        """This worker's part of a global batch."""
        if batch_size % self.world:
            raise QuadspikeError(
                f"a batch of {batch_size} does not fall into equal parts for {self.world} workers; "
                "choose a batch_size that the number of workers divides"
            )
        return batch_size // self.world


def asked_workers() -> Workers:
    """What `torchrun` says in the environment, without joining."""
    rank, world, local = (
        int(os.environ.get(name, default))
        for name, default in (("RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_RANK", "0"))
    )
    return Workers(rank, world, local)


def restarted() -> bool:
    """Whether `torchrun` started the workers anew after one was lost."""
    return _restarts() > 0


def would_restart() -> bool:
    """Whether `torchrun` would start the workers anew if they ended with another code than 0."""
    return _restarts() < int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0"))


def _restarts() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def choose_device(name: str, workers: Workers) -> torch.device:
    """The device by name; `auto` is this worker's GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and workers.many:
        name = f"cuda:{workers.local}"
    device = check_device(name)
    if device.type not in ("cpu", "cuda"):
        raise QuadspikeError(f"training runs on cpu or cuda, not on {name!r}")
    return device


def current(device: torch.device) -> AbstractContextManager[object]:
    """Make a GPU the one that is meant where none is named: streams and graphs name none."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


@contextmanager
def joined(workers: Workers, device: torch.device) -> Iterator[None]:
    """The process group for as long as a run lasts; none for one worker alone."""
    if not workers.many or dist.is_initialized():
        yield
        return
    backend = "nccl" if device.type == "cuda" else "gloo"
    limit = timedelta(minutes=30)
    store, rank, world = next(rendezvous("env://", timeout=limit))
    # The store outlives the workers it is of, those of a run before in the same processes or of a
    # start before by torchrun, and with them their addresses.
    name = f"start {_restarts()} of {world}, run {len(_groups)}"
    fresh = dist.PrefixStore(name, store)  # type: ignore[attr-defined]
    dist.init_process_group(backend, store=fresh, rank=rank, world_size=world, timeout=limit)
    _groups.append(dist.group.WORLD)
    try:
        yield
    finally:
        dist.destroy_process_group()


_groups: list[object] = []
"""Kept to the end of the process: if DistributedDataParallel is the last to let go of its group,
Python waits for the group's thread, and that thread may just wait for Python.
"""
