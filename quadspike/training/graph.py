"""A step, or the evaluation of a batch, as one CUDA graph: thousands of launches become one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from quadspike.data.loader import Batch
from quadspike.training.rehearsal import rehearse_on_gpu
from quadspike.training.scoring import Count, Counter
from quadspike.training.spending import Spending
from quadspike.training.step import Step

Learn = Callable[[Tensor, Tensor], None]
Pool = Any  # a torch.cuda.CUDAGraph, which has stubs for no device
"""A graph in whose memory others may lie too: such as never run at once, as long as what one
leaves for later lies elsewhere.
"""
_WARM_UPS = 3
_SHAPES = 8
"""Most shapes of batches that get a graph of their own in an evaluation."""


@cache
def _stream(device: int, purpose: str) -> torch.cuda.Stream:
    """One for all that warms up, one for all captures: with each, cuBLAS takes 64 MiB for good."""
    return torch.cuda.Stream(device)


def _recorded(graph: Any, pool: Any = None) -> torch.cuda.graph:
    """Record in `graph` what is run, on the current device: torch's own stream is of its first."""
    return torch.cuda.graph(graph, pool, _stream(torch.cuda.current_device(), "capture"))


def warm_up(work: Callable[[], object], times: int = _WARM_UPS) -> None:
    """Run what will be captured, away from the current stream, as capturing wants it."""
    side = _stream(torch.cuda.current_device(), "warm-up")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(times):
            work()
    torch.cuda.current_stream().wait_stream(side)


def capture(work: Callable[[], object], pool: Pool = None) -> Callable[[], None]:
    """`work` as a graph, and how to run it; the caller keeps alive what it reads and writes."""
    graph = torch.cuda.CUDAGraph()
    with _recorded(graph, pool and pool.pool()):
        work()
    return graph.replay


def make_pool() -> Pool:
    """A graph that is never run: its memory is there for others, whichever of them come and go.

    Memory that its last graph has left takes no other one.
    """
    graph = torch.cuda.CUDAGraph()
    with _recorded(graph):
        torch.zeros(1, device="cuda")  # torch warns of an empty one
    return graph


class CapturedStep:
    """A step captured on its first batch and replayed on every other of the same shape.

    Where the trainee comes to train in another manner it is captured anew.

    Rehearsing, warming up and capturing leave no trace: weights, statistics, their averages, the
    optimizer's state and the totals are put back, so that a captured run follows the eager one.
    The learning rate and the step's number live on the device and change without capturing anew.
    """

    def __init__(self, step: Step, pool: Pool = None, spent: Spending | None = None) -> None:
        self.step, self._pool, self._spent = step, pool, spent or Spending()
        self._replay: Callable[[], None] | None = None
        self._manner = step.trainee.manner

    def __call__(self, inputs: Tensor, labels: Tensor) -> None:
        if self._manner != self.step.trainee.manner:
            self._replay, self._manner = None, self.step.trainee.manner
        if self._replay is None:
            with self._spent.on("capture"):
                self._replay = self._captured(inputs, labels)
        self._inputs.copy_(inputs)
        self._labels.copy_(labels)
        self._replay()

    def _captured(self, inputs: Tensor, labels: Tensor) -> Callable[[], None]:
        self._inputs, self._labels = inputs.clone(), labels.clone()
        kept = [(tensor, tensor.detach().clone()) for tensor in self._changed()]
        work = partial(self.step, self._inputs, self._labels)
        warm_up(partial(rehearse_on_gpu, work, self.step.recipe, self.step.device), times=1)
        warm_up(work)
        replay = capture(work, self._pool)
        with torch.no_grad():
            for tensor, before in kept:
                tensor.copy_(before)
        return replay

    def _changed(self) -> list[Tensor]:
        """Every tensor that a step writes to."""
        step = self.step
        state = [value for slots in step.optimizer.state.values() for value in slots.values()]
        return [
            *step.trainee.parameters(),
            *step.trainee.buffers(),
            *state,
            *(step.average.tensors if step.average is not None else ()),
            step.count,
            step.totals,
            step.spoilt,
        ]


class CapturedCount:
    """Counts batches by a graph for each of their shapes, a last partial batch's too.

    The first batch of a shape is counted as it is, which compiles and tunes what the graph will
    run. Weights and statistics are read where they lie: training goes on without capturing anew.
    """

    def __init__(self, count: Count, pool: Pool = None) -> None:
        self._count, self._pool = count, pool
        self._met: set[torch.Size] = set()
        self._graphs: dict[torch.Size, Count] = {}

    def __call__(self, batch: Batch) -> Tensor:
        shape = batch.inputs.shape
        if shape in self._graphs:
            return self._graphs[shape](batch)
        if shape not in self._met or len(self._graphs) == _SHAPES:
            self._met.add(shape)
            return self._count(batch)
        self._graphs[shape] = self._captured(batch)
        return self._graphs[shape](batch)

    def _captured(self, like: Batch) -> Count:
        inputs, labels = like.inputs.clone(), like.labels.clone()
        found = torch.zeros(3, dtype=torch.float64, device=inputs.device)
        replay = capture(lambda: found.copy_(self._count(Batch(inputs, labels))), self._pool)

        def count(batch: Batch) -> Tensor:
            inputs.copy_(batch.inputs)
            labels.copy_(batch.labels)
            replay()
            return found

        return count


def choose_runners(step: Step, spent: Spending) -> tuple[Learn, Count, str]:
    """How a step and a batch of an evaluation are run here, and why, in words."""
    count = Counter(step.judged, step.recipe, step.device)
    if step.device.type != "cuda":
        return step, count, "step by step: a CUDA graph needs a GPU"
    if step.workers.many:
        return step, count, "step by step: a CUDA graph is for one process"
    pool = make_pool()
    words = "each step is one CUDA graph, and so is each batch of an evaluation"
    return CapturedStep(step, pool, spent), CapturedCount(count, pool), words
