"""What a trained network costs, on the spikes it fires for test images."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quadspike.analysis.energy import EnergyCosts, EnergyReport, energy
from quadspike.analysis.energy.beside import BesidePaper
from quadspike.analysis.energy.report import COSTS_45NM
from quadspike.errors import check_count
from quadspike.models import Network, load_model
from quadspike.records.weights import INDEX, load_export, read_index
from quadspike.training.datasets import make_data
from quadspike.training.distributed import Workers, choose_device
from quadspike.training.folder import RunFolder, sha256
from quadspike.training.judge import LOOKED_AT
from quadspike.training.network import to_device
from quadspike.training.recipe import Recipe
from quadspike.training.reproducible import algorithms
from quadspike.training.samples import first_samples


@dataclass(frozen=True)
class RunEnergy:
    """The bill of a run's last weights, and of which weights and images it is."""

    recipe: Recipe
    weights: str
    """Their SHA-256, as the run's record or the export's index has it."""
    samples: int
    report: EnergyReport

    @property
    def about(self) -> str:
        """In words, for a heading."""
        recipe = self.recipe
        return (
            f"{recipe.model} with {recipe.neuron_words()}, {recipe.dataset}, "
            f"T = {recipe.timesteps}; firing rates: measured on {self.samples:,} test images"
        )

    def beside_paper(self) -> BesidePaper | None:
        """Where its setting is one of the paper's energy table."""
        return BesidePaper.of(self.report, self.recipe.model, self.recipe.dataset)

    def numbers(self) -> dict[str, Any]:
        """What it is of, ready for JSON."""
        return {
            "recipe": self.recipe.as_dict(),
            "weights": self.weights,
            "samples": self.samples,
        }


def run_energy(
    folder: Path,
    *,
    samples: int = LOOKED_AT,
    device: str = "auto",
    data_root: str | Path | None = None,
    costs: EnergyCosts = COSTS_45NM,
    stem_every_step: bool = False,
) -> RunEnergy:
    """Measure a run's last weights, or exported ones, on the first test images of its data set.

    In float32, whatever the precision of the run, as the run's own summary has it.
    """
    check_count("samples", samples)
    recipe, network, weights = _trained(folder)
    place = choose_device(device, Workers())
    with algorithms(recipe.deterministic):
        data = make_data(recipe, data_root, place, Workers())
        report = energy(
            to_device(network, place),
            data.geometry,
            timesteps=recipe.timesteps,
            inputs=(batch.inputs for batch in first_samples(data.test, samples)),
            costs=costs,
            stem_every_step=stem_every_step,
        )
    return RunEnergy(recipe, weights, min(samples, data.sizes.test), report)


def _trained(folder: Path) -> tuple[Recipe, Network, str]:
    if (folder / INDEX).exists():
        index = read_index(folder)
        return Recipe.from_dict(index["recipe"]), load_export(folder), index["sha256"]
    run = RunFolder(folder)
    instead = (
        "measure it from Python, with quadspike.analysis.energy.energy(model, ..., inputs=...)"
    )
    recipe = run.read_packaged(instead)
    run.check_loaded(instead)
    weights = run.ended_weights(instead=", or the one that `quadspike records export` wrote")
    return recipe, load_model(weights), sha256(weights)
