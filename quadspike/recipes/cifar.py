"""CIFAR-10 and CIFAR-100: the paper's settings, and shorter ones."""

from __future__ import annotations

from quadspike.training.constants import had_by
from quadspike.training.field_values import LossName
from quadspike.training.recipe import Recipe


def cifar10_resnet19(timesteps: int = 2, neuron: str = "qif", loss: LossName = "ce") -> Recipe:
    """The paper's, for T = 2 or 4; the side of the cutout is the lineage's, the paper states none.

    >>> recipe = cifar10_resnet19(loss="tet")
    >>> recipe.epochs, recipe.lr, recipe.tet_lambda
    (400, 0.1, 0.05)
    """
    return Recipe(
        "cifar10-resnet19",
        "cifar10",
        "resnet19",
        timesteps,
        neuron,
        loss=loss,
        tet_lambda=0.05,
        epochs=400,
        batch_size=128,
        optimizer="sgd",
        lr=0.1,
        momentum=0.9,
        weight_decay=1e-4,
        precision="bf16",
        cutout=16,
    )


def cifar10_resnet19_strong(
    timesteps: int = 2, neuron: str = "qif", loss: LossName = "ce", epochs: int = 400
) -> Recipe:
    """More accurate than the paper's: a QIF that remembers, Dspike's surrogate, AutoAugment.

    Three in ten epochs, the first, are graded and show one step, which costs half and starts
    faster.

    >>> cifar10_resnet19_strong(epochs=100).graded_epochs
    30
    """
    graded = 3 * epochs // 10
    several = {"train_timesteps": 1, "full_epochs": epochs - graded} if timesteps > 1 else {}
    return cifar10_resnet19(timesteps, neuron, loss).but(
        name="cifar10-resnet19-strong",
        neuron_constants=had_by(neuron, {"u2": -2}),
        surrogate="dspike",
        epochs=epochs,
        graded_epochs=graded,
        weight_decay=2e-4,
        autoaugment=True,
        evaluate_every=20,
        **several,
    )


def cifar10_speedrun(
    timesteps: int = 2, neuron: str = "qif", loss: LossName = "ce", epochs: int = 128
) -> Recipe:
    """The way to 96 % in the least time: Muon, and first what costs least.

    Half of the epochs are graded, the first of them with images of 20 x 20, and only the last
    quarter shows all steps.

    >>> recipe = cifar10_speedrun()
    >>> recipe.small_epochs, recipe.graded_epochs, recipe.full_epochs
    (51, 64, 32)
    """
    small = 2 * epochs // 5
    several = {"train_timesteps": 1, "full_epochs": -(-epochs // 4)} if timesteps > 1 else {}
    return cifar10_resnet19(timesteps, neuron, loss).but(
        name="cifar10-speedrun",
        neuron_constants=had_by(neuron, {"u2": -2}),
        surrogate="dspike",
        epochs=epochs,
        batch_size=512,
        small_size=20 if small else None,
        small_epochs=small,
        graded_epochs=epochs // 2,
        optimizer="muon",
        lr=0.4,
        turn=0.02,
        nesterov=True,
        weight_decay=5e-4,
        autoaugment=True,
        evaluate_every=epochs,
        **several,
    )


def cifar100_resnet19(timesteps: int = 2, neuron: str = "qif", loss: LossName = "ce") -> Recipe:
    """The paper's, for T = 2 or 4: as CIFAR-10, with AutoAugment."""
    return cifar10_resnet19(timesteps, neuron, loss).but(
        name="cifar100-resnet19", dataset="cifar100", autoaugment=True
    )


def cifar10_resnet19_short(
    timesteps: int = 2, neuron: str = "qif", loss: LossName = "ce"
) -> Recipe:
    """Thirty epochs, minutes on one GPU, with the larger weight decay usual in short runs."""
    return cifar10_resnet19(timesteps, neuron, loss).but(
        name="cifar10-resnet19-short", epochs=30, weight_decay=5e-4
    )


def cifar100_resnet19_short(
    timesteps: int = 2, neuron: str = "qif", loss: LossName = "ce"
) -> Recipe:
    """Thirty epochs, minutes on one GPU, without AutoAugment, which is for long runs."""
    return cifar10_resnet19_short(timesteps, neuron, loss).but(
        name="cifar100-resnet19-short", dataset="cifar100"
    )


def cifar10_resnet8_short(timesteps: int = 2, neuron: str = "qif", loss: LossName = "ce") -> Recipe:
    """Ten epochs of a network of 16 to 64 channels, too small to need a cutout."""
    return cifar10_resnet19_short(timesteps, neuron, loss).but(
        name="cifar10-resnet8-short", model="resnet8", epochs=10, precision="fp32", cutout=0
    )
