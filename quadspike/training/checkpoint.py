"""Where a run stands, in one file: safetensors with a JSON header, never a pickle."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from quadspike.atomic import write_atomic
from quadspike.checksum import checksum
from quadspike.errors import QuadspikeError
from quadspike.training.network import unshared
from quadspike.training.recipe import Recipe
from quadspike.training.schedule import optimizer_tensors
from quadspike.training.step import Step

FORMAT = 1
_HEADER, _CHECKSUM = "quadspike-checkpoint", "crc32"


@dataclass
class Progress:
    """How far a run has come: `step` batches into `epoch`, both counted from 0."""

    epoch: int = 0
    step: int = 0
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)
    best_epoch: int | None = None
    warnings: list[str] = field(default_factory=list)
    samples: int = 0
    """Training samples, to know the same data again."""
    kernels: dict[str, Any] = field(default_factory=dict)
    """As `Kernels` counts them."""
    spent: dict[str, float] = field(default_factory=dict)
    """What `seconds` went into, as `Spending` says it."""
    images_per_second: float = 0.0
    environments: list[dict[str, Any]] = field(default_factory=list)
    """What its parts were made with and on, each once."""

    def made_with(self, environment: dict[str, Any]) -> None:
        """Note what the part that begins now is made with, as the last one."""
        others = [each for each in self.environments if each != environment]
        self.environments = [*others, environment]


@dataclass(frozen=True)
class Checkpoint:
    """All a run needs to go on."""

    recipe: Recipe
    progress: Progress
    tensors: dict[str, Tensor]

    def part(self, prefix: str) -> dict[str, Tensor]:
        """The tensors whose names begin with `prefix.`, without it."""
        start = f"{prefix}."
        return {n.removeprefix(start): t for n, t in self.tensors.items() if n.startswith(start)}


def run_tensors(step: Step, totals: Tensor, best: dict[str, Tensor] | None) -> dict[str, Tensor]:
    """What a checkpoint holds, by name."""
    parts = {
        **_learned(step),
        "best": best or {},
        "totals": {"epoch": totals},
    }
    return {f"{part}.{name}": t for part, named in parts.items() for name, t in named.items()}


def save_checkpoint(
    path: Path, recipe: Recipe, progress: Progress, tensors: dict[str, Tensor]
) -> None:
    """Write all of it, or nothing."""
    header = {"format": FORMAT, "recipe": recipe.as_dict(), "progress": asdict(progress)}
    plain = unshared(tensors)
    text = json.dumps(header)
    write_atomic(path, save(plain, {_HEADER: text, _CHECKSUM: checksum(text, plain)}))


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint; what is damaged, foreign or newer is refused with the reason."""
    try:
        path.open("rb").close()  # safe_open says of a file it may not read that there is none
    except OSError as error:
        raise QuadspikeError(
            f"cannot read {path}: {error.strerror}; see to it that it can be read, then go on"
        ) from None
    try:
        with safe_open(path, framework="pt") as file:
            found = file.metadata() or {}
            if _HEADER not in found:
                raise QuadspikeError(f"{path} is not a checkpoint of quadspike")
            content = json.loads(found[_HEADER])
            if content["format"] != FORMAT:
                raise QuadspikeError(
                    f"{path} has format {content['format']}, this version of quadspike reads "
                    f"format {FORMAT}; use the version that wrote it"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if found.get(_CHECKSUM) != checksum(found[_HEADER], tensors):
            raise ValueError("its checksum is another")
        recipe = Recipe.from_dict(content["recipe"])
        return Checkpoint(recipe, Progress(**content["progress"]), tensors)
    except QuadspikeError:
        raise
    except _DAMAGE as error:
        raise QuadspikeError(
            f"{path} is damaged, not a whole checkpoint: {error}; put back a copy of it, or begin "
            "anew in another folder"
        ) from None


_DAMAGE = (OSError, SafetensorError, ValueError, KeyError, TypeError, AttributeError, RuntimeError)
"""What a file that was cut or flipped makes its readers raise."""


def _learned(step: Step) -> dict[str, dict[str, Tensor]]:
    """Weights, their average and the optimizer's state, by name, network's and heads' apart."""
    network, heads = step.network, step.trainee.heads or nn.Identity()
    return {
        "model": network.state_dict(),
        "average": {} if step.average is None else step.average.network.state_dict(),
        "optimizer": optimizer_tensors(step.optimizer, network),
        "heads": heads.state_dict(),
        "heads-optimizer": optimizer_tensors(step.optimizer, heads),
    }


def restore(checkpoint: Checkpoint, path: Path, step: Step) -> None:
    """Put weights and the optimizer's state back into place."""
    for part, named in _learned(step).items():
        saved = checkpoint.part(part)
        unlike = [
            name
            for name in {**named, **saved}
            if name not in named or name not in saved or named[name].shape != saved[name].shape
        ]
        if unlike:
            raise QuadspikeError(
                f"{path} is of another network: {len(unlike)} tensors of its {part} do not fit, "
                f"the first is {unlike[0]!r}"
            )
        with torch.no_grad():
            for name, tensor in named.items():
                tensor.copy_(saved[name])
