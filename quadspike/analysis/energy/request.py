"""From the words of a command line to an energy report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from quadspike.analysis.energy.paper import paper_table, printed_rate
from quadspike.analysis.energy.report import COSTS_45NM, EnergyCosts, EnergyReport, energy
from quadspike.data.geometry import GEOMETRIES, Geometry
from quadspike.errors import QuadspikeError, check_name
from quadspike.models import Network, create_model, list_models, load_model
from quadspike.models.registry import MODELS

UNTRAINED_RATE = 0.1587
"""P(N(0, u_th^2) >= u_th): how often a layer fires when tdBN has just set its input."""

POLARITIES = 2
"""Channels of an event camera's frames, which tell weights for recordings from others."""


@dataclass(frozen=True)
class EnergyRequest:
    """Which network, on what input, at which firing rates; None is what goes without saying."""

    model: str | None = None
    dataset: str | None = None
    timesteps: int | None = None
    neuron: str | None = None
    residual: str | None = None
    rate: float | None = None
    weights: Path | None = None
    inputs: Path | None = None
    costs: EnergyCosts = COSTS_45NM
    stem_every_step: bool = False

    def answer(self) -> tuple[str, EnergyReport]:
        """A heading that says where the rates come from, and the report."""
        network = self._created() if self.weights is None else self._loaded(self.weights)
        steps = network.timesteps if self.timesteps is None else self.timesteps
        source, rates, batch = self._rates(network, steps)
        geometry = self._geometry(network, batch)
        report = energy(
            network,
            geometry,
            timesteps=steps,
            rates=rates,
            inputs=batch,
            costs=self.costs,
            stem_every_step=self.stem_every_step,
        )
        name = self.weights or self.model
        kind = "images" if geometry.static else "recordings"
        on = self._dataset or f"{kind} of {geometry.frame}"
        return f"{name}, {on}, T = {steps}; firing rates: {source}", report

    def _created(self) -> Network:
        if self.model is None:
            raise QuadspikeError(
                f"name a model ({', '.join(list_models())}) or a run's folder, or use --weights or "
                "--paper"
            )
        shape = GEOMETRIES[check_name("dataset", self._dataset, GEOMETRIES)]
        return create_model(
            self.model,
            neuron=self.neuron or "qif",
            residual=self.residual or "fire-then-sum",
            in_channels=shape.channels,
            num_classes=shape.classes,
            image_size=shape.size,
            timesteps=2 if self.timesteps is None else self.timesteps,
        )

    def _loaded(self, weights: Path) -> Network:
        network = load_model(weights)
        assert network.config is not None  # what a file holds has one
        held = {**network.config, "neuron": network.config["neuron"]["name"]}
        asked = {"name": self.model, "residual": self.residual, "neuron": self.neuron}
        for option, value in asked.items():
            if value not in (None, held[option]):
                raise QuadspikeError(
                    f"{weights} holds {option} {held[option]!r}, not {value!r}; leave that out"
                )
        return network

    def _geometry(self, network: Network, batch: Tensor | None) -> Geometry:
        if self._dataset is not None:
            return GEOMETRIES[check_name("dataset", self._dataset, GEOMETRIES)]
        config = network.config or {}
        size = config["image_size"] or MODELS[config["name"]].image_size
        channels = config["in_channels"]
        static = channels != POLARITIES if batch is None else batch.ndim != 5
        return Geometry(channels, size, config["num_classes"], static)

    @property
    def _dataset(self) -> str | None:
        return "cifar10" if self.dataset is None and self.weights is None else self.dataset

    def _rates(self, network: Network, steps: int) -> tuple[str, float | None, Tensor | None]:
        if self.inputs is not None:
            if self.rate is not None:
                raise QuadspikeError("--inputs measures the rates; leave --rate out, or --inputs")
            batch = load_inputs(self.inputs)
            untrained = "" if self.weights else " with UNTRAINED weights"
            return f"measured on {self.inputs}{untrained}", None, batch
        if self.rate is not None:
            return f"{self.rate:g} as stated", self.rate, None
        name = network.config["name"] if network.config else self.model
        rows = [r for r in paper_table() if (r.model, r.geometry) == (name, self._dataset)]
        if rows:
            row = min(rows, key=lambda r: abs(r.timesteps - steps))
            rate = printed_rate(row)
            return f"{rate:.3f}, implied by the paper's energy table", rate, None
        return f"{UNTRAINED_RATE}, an untrained layer's under tdBN", UNTRAINED_RATE, None


def load_inputs(path: Path) -> Tensor:
    """A batch from a .npy file of floating numbers, `[N, C, H, W]` or `[T, N, C, H, W]`."""
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise QuadspikeError(f"cannot read inputs from {path}: {error.strerror or error}") from None
    except (ValueError, EOFError, BadZipFile):
        raise QuadspikeError(
            f"{path} is no .npy file of numbers, or is damaged; numpy.save(path, array) writes one"
        ) from None
    if not isinstance(array, np.ndarray) or not np.issubdtype(array.dtype, np.floating):
        kind = array.dtype if isinstance(array, np.ndarray) else "an archive"
        raise QuadspikeError(
            f"{path} must hold one array of floating numbers, scaled as the network was "
            f"trained; got {kind}"
        )
    return torch.from_numpy(array.astype(np.float32))
