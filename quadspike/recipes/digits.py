"""Settings for the digits inside the package: no download, no GPU."""

from __future__ import annotations

from quadspike.training.field_values import LossName
from quadspike.training.recipe import Recipe


def digits_cnn(timesteps: int = 4, neuron: str = "qif", loss: LossName = "ce") -> Recipe:
    """Three convolutions.

    >>> digits_cnn().dataset
    'digits'
    """
    return Recipe(
        "digits-cnn",
        "digits",
        "cnn",
        timesteps,
        neuron,
        loss=loss,
        label_smoothing=0.1,
        epochs=25,
        batch_size=64,
        optimizer="adam",
        lr=0.01,
    )


def digits_cnn_short(timesteps: int = 4, neuron: str = "qif", loss: LossName = "ce") -> Recipe:
    """The same in seconds: what `quadspike compare` trains every method with."""
    return digits_cnn(timesteps, neuron, loss).but(name="digits-cnn-short", epochs=8)


def digits_mlp(timesteps: int = 4, neuron: str = "qif", loss: LossName = "ce") -> Recipe:
    """Two fully connected layers: seconds."""
    return digits_cnn(timesteps, neuron, loss).but(name="digits-mlp", model="mlp")


def digits_events_cnn(timesteps: int = 4, neuron: str = "qif", loss: LossName = "ce") -> Recipe:
    """The digits before a simulated event camera, a frame a step."""
    return digits_cnn(timesteps, neuron, loss).but(
        name="digits-events-cnn", dataset="digits-events", epochs=10
    )
