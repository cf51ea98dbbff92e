"""CIFAR10-DVS: the paper's settings.

The paper does not say how it splits the recordings, and there is no official way. Here the last
100 of each class test (`last100`): the split of most published code, fixed, and not the easier
`tebn`, so that a figure is not flattered by it. `split` overrides.
"""

from __future__ import annotations

from quadspike.training.field_values import LossName
from quadspike.training.recipe import Recipe


def cifar10dvs_vggsnn(timesteps: int = 10, neuron: str = "qif", loss: LossName = "ce") -> Recipe:
    """The paper's: 10 frames, Adam, 60 % dropout; the split is ours, `last100`."""
    return Recipe(
        "cifar10-dvs-vggsnn",
        "cifar10-dvs",
        "vggsnn",
        timesteps,
        neuron,
        dropout=0.6,
        loss=loss,
        tet_lambda=0.001,
        epochs=100,
        batch_size=128,
        optimizer="adam",
        lr=1e-3,
        weight_decay=5e-4,
        precision="bf16",
        split="last100",
    )


def cifar10dvs_resnet19(timesteps: int = 10, neuron: str = "qif", loss: LossName = "ce") -> Recipe:
    """The paper's: as with VGGSNN, in the network of the CIFAR settings."""
    return cifar10dvs_vggsnn(timesteps, neuron, loss).but(
        name="cifar10-dvs-resnet19", model="resnet19"
    )
