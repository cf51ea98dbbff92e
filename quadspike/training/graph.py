"""The whole step as one CUDA graph: a few thousand launches become one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from quadspike.training.step import Step

Learn = Callable[[Tensor, Tensor], None]
_WARM_UPS = 3


class CapturedStep:
    """A step captured on its first batch and replayed on every other of the same shape.

    Warming up and capturing leave no trace: weights, statistics, the optimizer's state and the
    totals are put back, so that a captured run follows the eager one. The learning rate and
    the step's number live on the device and change without capturing anew.
    """

    def __init__(self, step: Step) -> None:
        self.step = step
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, inputs: Tensor, labels: Tensor) -> None:
        if self._graph is None:
            self._capture(inputs, labels)
        self._inputs.copy_(inputs)
        self._labels.copy_(labels)
        assert self._graph is not None
        self._graph.replay()

    def _capture(self, inputs: Tensor, labels: Tensor) -> None:
        self._inputs, self._labels = inputs.clone(), labels.clone()
        kept = [(tensor, tensor.detach().clone()) for tensor in self._changed()]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM_UPS):
                self.step(self._inputs, self._labels)
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self.step(self._inputs, self._labels)
        with torch.no_grad():
            for tensor, before in kept:
                tensor.copy_(before)

    def _changed(self) -> list[Tensor]:
        """Every tensor that a step writes to."""
        step = self.step
        state = [value for slots in step.optimizer.state.values() for value in slots.values()]
        return [
            *step.trainee.parameters(),
            *step.trainee.buffers(),
            *state,
            step.count,
            step.totals,
            step.spoilt,
        ]


def learner(step: Step) -> tuple[Learn, str]:
    """How the step is run here, and why, in words."""
    if step.device.type != "cuda":
        return step, "step by step: a CUDA graph needs a GPU"
    if step.workers.many:
        return step, "step by step: a CUDA graph is for one process"
    return CapturedStep(step), "each step is one CUDA graph"
