"""Two processes of one group, each with its share of the same eight samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor

from tests.kill_driver import free_port

SHARES = (slice(0, 5), slice(5, 8))
"""Unequal, so that a mean of means would show."""
_PATIENCE = 60


def of_two(work: Callable[..., Sequence[Tensor]], *given: Any) -> list[list[Tensor]]:
    """What `work(share, *given)` returns in each worker; a worker that dies fails the test."""
    context = mp.get_context("spawn")
    queue, port = context.Queue(), free_port()
    workers = [
        context.Process(target=_worker, args=(rank, port, queue, work, given)) for rank in (0, 1)
    ]
    for worker in workers:
        worker.start()
    found = dict(queue.get(timeout=_PATIENCE) for _ in workers)
    for worker in workers:
        worker.join(_PATIENCE)
        assert worker.exitcode == 0
    return [[*map(torch.tensor, found[rank])] for rank in (0, 1)]


def _worker(rank: int, port: int, queue: Any, work: Any, given: Any) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    queue.put((rank, [value.detach().numpy() for value in work(SHARES[rank], *given)]))
    dist.barrier()
    dist.destroy_process_group()
