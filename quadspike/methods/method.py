"""What a method of the literature is here: recipe fields, an equation, a source, figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from quadspike.training.recipe import Recipe

Kind = Literal["neuron", "norm", "surrogate", "loss", "aid"]
Status = Literal["published", "reconstruction", "ours"]

DATASETS = {
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "imagenet": "ImageNet",
    "cifar10-dvs": "CIFAR10-DVS",
}
"""The data sets of the paper's tables, as they are printed."""

NETWORKS = {"ResNet-19": "resnet19", "ResNet-34": "resnet34", "VGGSNN": "vggsnn"}
"""The networks of the paper's tables, as they are printed, and our names for them."""


@dataclass(frozen=True)
class Figure:
    """A cell of the paper's Table 1 or 2: test accuracy in percent, as printed.

    `unlike` says why the cell is no measurement of what its table says it is, if it is none.
    """

    dataset: str
    timesteps: int
    accuracy: float
    spread: float | None = None
    network: str = "ResNet-19"
    unlike: str = ""


@dataclass(frozen=True)
class Source:
    """Where a method was published."""

    authors: str
    title: str
    venue: str
    year: int


@dataclass(frozen=True)
class Method:
    """One system: everything in which its runs differ from each other's, and what to know of it.

    `differs` says where the harness is not the authors' setting, `energy_note` what the energy
    leaves out or counts in a way of its own.
    """

    key: str
    title: str
    kind: Kind
    line: str
    paragraph: str
    equation: str
    source: Source
    differs: str
    status: Status = "published"
    neuron: str = "lif"
    norm: str = "tdbn"
    surrogate: str | None = None
    loss: str = "ce"
    aid: str | None = None
    detach_reset: bool = False
    spikes: str = "binary"
    energy_note: str = ""
    figures: tuple[Figure, ...] = ()

    @property
    def name(self) -> str:
        """The title, marked where the method is no one's published code or equations."""
        return self.title if self.status == "published" else f"{self.title} ({self.status})"

    @property
    def overrides(self) -> dict[str, Any]:
        """The recipe's fields that make this method."""
        return {
            "neuron": self.neuron,
            "norm": self.norm,
            "surrogate": self.surrogate,
            "window": None,
            "loss": self.loss,
            "detach_reset": self.detach_reset,
            "aid": self.aid,
        }

    def applied_to(self, recipe: Recipe) -> Recipe:
        """The same setting with this method, checked."""
        return recipe.but(**self.overrides, name=f"{recipe.name}-{self.key}")
