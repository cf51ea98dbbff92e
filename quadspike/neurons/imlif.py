"""IM-LIF: a LIF neuron whose input current remembers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from quadspike.errors import QuadspikeError
from quadspike.neurons.base import Neuron
from quadspike.neurons.lif import LIF


class IMLIF(LIF):
    """A reconstruction of IM-LIF (Lian 2024) from its abstract; its authors published no code.

    The current X of a step joins what is kept of the currents before it, and LIF takes the sum:

        I_1 = X_1,  I_t = X_t + a_t I_{t-1},  a = sigmoid(excite relu(squeeze s)),

    where `s_t` is the mean of X_t over channels and space, one number a sample. `squeeze` and
    `excite`, `[T, T]`, are learned. With `causal`, a_t sees s_1..s_t alone: it is row t of the
    formula for an s whose later entries are 0, and no weight is masked. At the start s is about
    0 behind a normalisation, so that half of the last current is kept.

    >>> neuron = IMLIF()
    >>> neuron.fit(channels=3, timesteps=4)
    >>> neuron(torch.randn(4, 2, 3)).shape
    torch.Size([4, 2, 3])
    """

    name = "im-lif"
    per_step = "learns how much each step keeps"
    macs_per_step = 2
    in_parts = "IM-LIF weighs the currents of a step by the means of the steps before it"
    cannot_stream = "its attention reads the means of all steps so far, which no state holds"

    _two_step_statistics = Neuron._two_step_statistics  # LIF's is of independent currents

    squeeze: nn.Parameter | None
    excite: nn.Parameter | None

    def __init__(self, *args: Any, causal: bool = True, **options: Any) -> None:
        super().__init__(*args, **options)
        self.causal = causal
        self.timesteps: int | None = None
        self.register_parameter("squeeze", None)
        self.register_parameter("excite", None)

    def fit(self, channels: int, timesteps: int | None) -> None:
        if timesteps is None:
            raise QuadspikeError(
                "im-lif learns how much each step keeps and must know how many there are: give "
                "timesteps, such as Soma(..., neuron='im-lif', timesteps=4)"
            )
        if timesteps == self.timesteps:
            return  # it fits, and may have learned
        self.timesteps = timesteps
        if timesteps > 1:  # a single step has nothing to keep
            weights = (torch.empty(timesteps, timesteps) for _ in range(2))
            self.squeeze, self.excite = (nn.Parameter(nn.init.xavier_uniform_(w)) for w in weights)

    def mix(self, currents: Iterable[Tensor]) -> Iterable[Tensor]:
        given = list(currents)
        if self.timesteps is None or len(given) > self.timesteps:
            raise QuadspikeError(
                f"im-lif has weights for {self.timesteps or 'no'} steps, got {len(given)}; call "
                f"fit(channels, timesteps={len(given)}), or make its soma with timesteps"
            )
        kept = given[0]
        mixed = [kept]
        if len(given) > 1:
            for current, share in zip(given[1:], self.attention(given)[1:], strict=True):
                kept = current + share.view(-1, *[1] * (current.ndim - 1)) * kept
                mixed.append(kept)
        return mixed

    def attention(self, currents: list[Tensor]) -> Tensor:
        """How much of the current before it each step keeps, `[T, B]` in (0, 1)."""
        assert self.squeeze is not None
        assert self.excite is not None
        axes = tuple(range(1, currents[0].ndim))
        means = torch.stack([x.mean(axes) if axes else x for x in currents])
        steps = len(means)
        squeeze = self.squeeze[:, :steps].to(means.dtype)
        seen = torch.ones(steps, steps, device=means.device, dtype=means.dtype)
        weights = squeeze * (seen.tril() if self.causal else seen)[:, None]
        # Products and sums, not a matrix product: autocast would make that one coarse.
        hidden = (weights[..., None] * means).sum(2).relu()
        excite = self.excite[:steps].to(means.dtype)
        return (excite[..., None] * hidden).sum(1).sigmoid()

    def config(self) -> dict[str, Any]:
        made = super().config()
        learned = [name for name in made["learned"] if name in self.parameter_names()]
        return {**made, "learned": learned, "causal": self.causal}

    def _scalar_constants(self) -> Any:
        raise QuadspikeError(
            "no stationary density for 'im-lif', whose currents depend on each other over time"
        )
