"""Is every layer alive? Firing rates, windows and the first number that is not one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from quadspike.models.mode import evaluating
from quadspike.models.network import Network

DEAD, SATURATED, BLIND = 1e-3, 0.95, 0.01
_KINDS = ("rate", "window", "largest", "finite")


@dataclass(frozen=True)
class LayerHealth:
    """One layer on one batch, averaged over time."""

    layer: str
    rate: float
    window: float
    """Share of membranes inside the surrogate's window, where a gradient passes."""
    largest: float
    finite: bool

    @property
    def warning(self) -> str:
        """What is wrong, in words; empty if nothing is."""
        if not self.finite:
            return "a membrane is not a finite number"
        if self.rate < DEAD:
            return f"dead: fires in {self.rate:.2%} of steps"
        if self.rate > SATURATED:
            return f"saturated: fires in {self.rate:.1%} of steps"
        if self.window < BLIND:
            return f"no gradient: {self.window:.2%} of membranes lie inside the window"
        return ""


@dataclass(frozen=True)
class Health:
    """Every layer of a network, in order."""

    finite_logits: bool
    layers: tuple[LayerHealth, ...]

    @property
    def first_non_finite(self) -> str | None:
        """The first layer whose membrane left the finite numbers, or "logits"; None if none."""
        found = next((layer.layer for layer in self.layers if not layer.finite), None)
        return found or (None if self.finite_logits else "logits")

    @property
    def warnings(self) -> tuple[str, ...]:
        found = [f"{layer.layer}: {layer.warning}" for layer in self.layers if layer.warning]
        if not self.finite_logits:
            found.append("logits: not finite numbers")
        return tuple(found)


@torch.no_grad()
def health(model: Network, x: Tensor) -> Health:
    """Look at every layer of `model` on the batch `x`, in evaluation mode.

    >>> from quadspike import create_model
    >>> model = create_model("cnn", in_channels=1, seed=0).eval()
    >>> health(model, torch.randn(8, 1, 8, 8)).first_non_finite is None
    True
    """
    with evaluating(model):
        logits, seen = model(x, taps=_KINDS)
    looks = [
        torch.stack(
            [
                values["rate"].nanmean().double(),
                values["window"].mean().double(),
                values["largest"].max().double(),
                values["finite"].all().double(),
            ]
        )
        for values in seen.values()
    ]
    # Read back at once: each number by itself would wait for the device.
    found = torch.stack(looks).tolist()
    return Health(
        bool(torch.isfinite(logits).all()),
        tuple(
            LayerHealth(name, rate, window, largest, bool(finite))
            for name, (rate, window, largest, finite) in zip(seen, found, strict=True)
        ),
    )
