"""Every layer of a network on one batch: how often it fires, where its membranes lie."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from quadspike.models import Network
from quadspike.models.mode import evaluating
from quadspike.taps import Taps

HISTOGRAM = Taps(("rate", "mean", "window", "largest", "histogram"))


@torch.no_grad()
def describe_layers(model: Network, x: Tensor) -> list[dict[str, Any]]:
    """One plain dictionary a soma, in order, ready for JSON.

    >>> from quadspike import create_model
    >>> model = create_model("cnn", in_channels=1, seed=0)
    >>> [layer["layer"] for layer in describe_layers(model, torch.randn(8, 1, 8, 8))]
    ['conv1.soma', 'conv2.soma', 'conv3.soma']
    """
    with evaluating(model):
        _, seen = model(x, taps=HISTOGRAM)
    somas = model.somas()
    layers = []
    for label, values in seen.items():
        neuron = somas[label.split("@")[0]].neuron
        layers.append(
            {
                "layer": label,
                "neuron": neuron.name,
                "rate": float(values["rate"].mean()),
                "rate_by_step": values["rate"].tolist(),
                "inside_window": float(values["window"].mean()),
                "mean": float(values["mean"].mean()),
                "largest": float(values["largest"].max()),
                "window": [middle(edge) for edge in neuron.surrogate.window(neuron)],
                "threshold": middle(neuron.threshold),
                "edges": [middle(edge) for edge in neuron.edges],
                "histogram": {
                    "low": HISTOGRAM.low,
                    "high": HISTOGRAM.high,
                    "counts": values["histogram"].sum(0).tolist(),
                },
            }
        )
    return layers


def middle(value: Any) -> float:
    """A number, or the mean of those of every channel."""
    return float(value.mean()) if isinstance(value, Tensor) else float(value)
