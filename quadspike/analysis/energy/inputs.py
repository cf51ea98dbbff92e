"""What `energy` may be given: the shape of a sample, batches of them, firing rates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from quadspike.analysis.energy.counts import Counts, SynapseCount
from quadspike.data.geometry import GEOMETRIES, Geometry
from quadspike.errors import QuadspikeError, check_count, check_name, is_number
from quadspike.models import Network


@dataclass(frozen=True)
class Sample:
    """One sample as the network will see it: a static image, or a frame at each step."""

    frame: tuple[int, ...]
    steps: int
    static: bool
    classes: int | None = None

    @classmethod
    def of(
        cls, given: str | Geometry | tuple[int, ...], model: Network, timesteps: int | None
    ) -> Sample:
        steps = model.timesteps if timesteps is None else check_count("timesteps", timesteps)
        if isinstance(given, str):
            given = GEOMETRIES[check_name("dataset", given, GEOMETRIES)]
        if isinstance(given, Geometry):
            return cls(given.frame, steps, given.static, given.classes)
        shape = tuple(given)
        if len(shape) == model.input_rank - 1:
            return cls(shape, steps, static=True)
        if len(shape) == model.input_rank and timesteps in (None, shape[0]):
            return cls(shape[1:], shape[0], static=False)
        rank = model.input_rank - 1
        raise QuadspikeError(
            f"input shape {shape} does not fit: give the {rank} sizes of one static sample, "
            f"or {rank + 1} for a sequence, the first equal to timesteps"
            + (f" ({timesteps})" if timesteps else "")
        )

    def empty(self, model: Network) -> Tensor:
        parameter = next(model.parameters())
        lead = (1,) if self.static else (self.steps, 1)
        return parameter.new_zeros(*lead, *self.frame)

    def check_outputs(self, counts: Counts) -> None:
        if self.classes is not None and counts.outputs != self.classes:
            raise QuadspikeError(
                f"the network has {counts.outputs} outputs, the data set {self.classes} classes: "
                f"create it with num_classes={self.classes}, or give the input shape {self.frame}"
            )

    def checked(self, batches: Iterable[Tensor], model: Network) -> Iterator[Tensor]:
        device = next(model.parameters()).device
        lead, symbols = (1, ("B",)) if self.static else (2, (str(self.steps), "B"))
        for batch in batches:
            good = isinstance(batch, Tensor) and batch.shape[lead:] == torch.Size(self.frame)
            if not good or (not self.static and batch.shape[0] != self.steps):
                wanted = f"inputs must be tensors [{', '.join((*symbols, *map(str, self.frame)))}]"
                if isinstance(batch, Tensor):
                    raise QuadspikeError(f"{wanted}, got {tuple(batch.shape)}")
                raise QuadspikeError(
                    f"{wanted}, got {type(batch).__name__}; of a loader of pairs "
                    "give (x for x, _ in loader)"
                )
            yield batch.to(device)


def stated_rates(rates: float | Mapping[str, float] | None, counts: Counts) -> dict[str, float]:
    """The rate of every spiking synapse, checked."""
    names = [c.layer for c in counts.layers if isinstance(c, SynapseCount) and not c.real]
    by_layer = dict(rates) if isinstance(rates, Mapping) else dict.fromkeys(names, rates)
    for name, rate in by_layer.items():
        check_name("spiking layer", name, names)
        if not (is_number(rate) and rate >= 0):
            raise QuadspikeError(f"the firing rate of {name!r} must be a number >= 0, got {rate!r}")
    missing = [name for name in names if name not in by_layer]
    if missing:
        raise QuadspikeError(
            f"no firing rate for {', '.join(missing)}; give every spiking layer's, "
            "or one number for all"
        )
    return {name: float(rate) for name, rate in by_layer.items() if rate is not None}
