"""Running a network one frame at a time."""

from __future__ import annotations

import torch
from torch import Tensor

from quadspike.errors import QuadspikeError
from quadspike.models.network import Network
from quadspike.state import State


class Stream:
    """A network that goes on: each frame continues where the last one ended.

    >>> from quadspike import create_model
    >>> model = create_model("cnn", in_channels=1, timesteps=2).eval()
    >>> live = stream(model)
    >>> live(torch.randn(3, 1, 8, 8)).shape, live.steps
    (torch.Size([3, 10]), 1)
    """

    def __init__(self, model: Network) -> None:
        self.model = model
        for soma in model.somas().values():
            soma.neuron.check_streams()
        self._check_mode()
        self.states: dict[str, State] = {}
        self.steps = 0

    @torch.no_grad()
    def __call__(self, frame: Tensor) -> Tensor:
        """Logits `[B, classes]` for one frame `[B, ...]`, or `[T, B, classes]` for a chunk."""
        self._check_mode()
        logits, self.states = self.model.run(frame, self.states)
        self.steps += len(logits)
        return logits[0] if frame.ndim == self.model.input_rank else logits

    def _check_mode(self) -> None:
        if any(module.training for module in self.model.modules()):
            raise QuadspikeError(
                "a stream needs a network in evaluation mode: training statistics cover all "
                "steps at once; call model.eval() first"
            )

    def reset(self) -> None:
        """Back to rest."""
        self.states, self.steps = {}, 0


def stream(model: Network) -> Stream:
    """Run `model` frame by frame from rest; the same spikes as one call."""
    return Stream(model)
