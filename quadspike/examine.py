"""The layers of a run or of an untrained recipe, under the recipe's own loss."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from quadspike.analysis.gradients import examine
from quadspike.data.loader import Batch
from quadspike.errors import QuadspikeError, check_count, check_name
from quadspike.models import Network, load_model
from quadspike.neurons import Neuron
from quadspike.randomness import Key
from quadspike.recipes import RECIPES, create_recipe
from quadspike.training.datasets import make_data
from quadspike.training.distributed import Workers, choose_device
from quadspike.training.fields import parse_fields
from quadspike.training.folder import RunFolder
from quadspike.training.network import load_weights, make_network, to_device
from quadspike.training.recipe import Recipe
from quadspike.training.samples import first_samples
from quadspike.training.sources import TrainingData
from quadspike.training.trainee import Trainee

Weights = Literal["initial", "best", "last"]
Images = Literal["training", "held-out"]


@dataclass(frozen=True)
class Subject:
    """What is looked at: a recipe, and the run's folder if it is one."""

    label: str
    recipe: Recipe
    folder: RunFolder | None = None

    @classmethod
    def of(cls, given: str | Path) -> Subject:
        """A run's folder, or a recipe's name with other fields, `NAME:FIELD=VALUE,...`.

        >>> Subject.of("digits-cnn:window=mean,timesteps=2").recipe.window
        'mean'
        """
        name, _, changes = str(given).partition(":")
        if name in RECIPES:
            return cls(str(given), create_recipe(name, **parse_fields(changes)))
        if Path(given).is_dir():
            folder = RunFolder(Path(given))
            instead = "look at it from Python, with quadspike.analysis.gradients.examine"
            recipe = folder.read_packaged(instead)
            folder.check_loaded(instead)
            return cls(folder.path.name or str(given), recipe, folder)
        raise QuadspikeError(
            f"{str(given)!r} is neither a run's folder nor a recipe; the recipes: "
            f"{', '.join(RECIPES)}, each also with other fields, as digits-cnn:window=mean"
        )

    def network(self, weights: Weights, data: TrainingData) -> Network:
        """With the weights asked for."""
        if weights == "initial":
            model = make_network(self.recipe, data.geometry)
            if self.folder and (first := self.folder.first_weights(None, resume=True)):
                self.folder.check_first_weights(first)
                load_weights(model, first)
            return model
        if self.folder is None:
            raise QuadspikeError(
                f"{self.label} is a recipe, whose only weights are the initial ones, got "
                f"weights={weights!r}; give the folder of a run"
            )
        return load_model(self.folder.ended_weights(weights, ", or use the initial weights"))


def examine_layers(
    given: str | Path,
    *,
    weights: Weights | None = None,
    images: Images = "training",
    samples: int = 128,
    device: str = "auto",
    data_root: str | Path | None = None,
) -> dict[str, Any]:
    """What `analysis.gradients.examine` finds in a run's folder or a recipe, and of what it is.

    A run's last weights and a recipe's initial ones unless said otherwise; in float32, or float64
    where the recipe computes in that.
    """
    subject = Subject.of(given)
    chosen: Weights = weights or ("last" if subject.folder else "initial")
    check_name("weights", chosen, get_args(Weights))
    check_name("images", images, get_args(Images))
    check_count("samples", samples)
    place = choose_device(device, Workers())
    recipe = subject.recipe
    data = make_data(recipe, data_root, place, Workers())
    model = to_device(subject.network(chosen, data), place)
    batch = first_batch(data, images, samples)
    progress = torch.tensor(0.0 if chosen == "initial" else 1.0, device=place)

    def loss(network: Network) -> Tensor:
        for neuron in network.modules():
            if isinstance(neuron, Neuron) and neuron.surrogate.evolves:
                neuron.progress.copy_(progress)
        value: Tensor = Trainee(network, recipe)(*batch, progress, Key(recipe.seed, 0))[0]
        return value

    return {
        "label": subject.label,
        "recipe": recipe.as_dict(),
        "weights": chosen,
        "images": images,
        "samples": len(batch.labels),
        **examine(model, loss),
    }


def first_batch(data: TrainingData, images: Images, samples: int) -> Batch:
    """The first images as an epoch shows them, augmented where training is."""
    source = data.train if images == "training" else data.validation
    if source is None:
        raise QuadspikeError("the recipe holds no images out (validation=0); look at training ones")
    return Batch.joined(first_samples(source, samples))
