"""ImageNet: the paper's setting."""

from __future__ import annotations

from quadspike.training.field_values import LossName
from quadspike.training.recipe import Recipe


def imagenet_resnet34(timesteps: int = 4, neuron: str = "qif", loss: LossName = "ce") -> Recipe:
    """The paper's: T = 4, 350 epochs, a batch of 512 over all GPUs (the paper has four).

    The paper states neither the side of the cutout (16 here) nor whether statistics are shared
    among GPUs (here they are, so that results do not depend on how many there are).
    """
    return Recipe(
        "imagenet-resnet34",
        "imagenet",
        "resnet34",
        timesteps,
        neuron,
        loss=loss,
        tet_lambda=0.001,
        epochs=350,
        batch_size=512,
        optimizer="sgd",
        lr=0.15,
        momentum=0.9,
        weight_decay=5e-5,
        warmup_epochs=5,
        precision="bf16",
        cutout=16,
        image_transform="paper",
    )
