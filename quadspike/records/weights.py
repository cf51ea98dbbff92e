"""A run's last weights in half precision, in files small enough to hand around.

The weights of synapses are halved; normalisation, neurons and initial membranes, a thousandth of
the numbers, stay as they are. A run in bf16 is halved to bfloat16, which is what its synapses
compute in anyway: not one logit changes. Any other is halved to float16, which is eight times
finer, or to bfloat16 where a weight is beyond its range.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from quadspike.atomic import write_atomic, write_text
from quadspike.deploy import fold
from quadspike.errors import QuadspikeError
from quadspike.models import Network, load_model
from quadspike.models.files import configuration, read_tensors, rebuild
from quadspike.models.synapses import Synapse
from quadspike.training.datasets import make_data
from quadspike.training.distributed import Workers, choose_device
from quadspike.training.folder import RunFolder, sha256
from quadspike.training.network import to_device
from quadspike.training.recipe import Recipe
from quadspike.training.record import device_name
from quadspike.training.reproducible import algorithms
from quadspike.training.scoring import Score, score

FORMAT = 1
INDEX, EVALUATION = "index.json", "evaluation.json"
KEYS = ("recipe", "config", "dtype", "of", "sha256", "bytes", "files")
"""What `INDEX` has besides its format."""
MIB = 1 << 20


def export(run: Path, out: Path, shard_mib: float = 15.0) -> dict[str, Any]:
    """Write the last weights of `run` to `out`; what its `index.json` says."""
    if not shard_mib > 0:
        raise QuadspikeError(f"shard_mib must be more than 0, got {shard_mib:g}")
    folder = RunFolder(run)
    as_it_is = "keep its last.safetensors as it is"
    recipe = folder.read_packaged(as_it_is)
    folder.check_loaded(as_it_is)
    weights = folder.ended_weights()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise QuadspikeError(f"{out} is not an empty folder; choose another --out")
    model = load_model(weights)
    dtype, tensors = halved(model, recipe)
    packed = [save(shard) for shard in _shards(tensors, int(shard_mib * MIB))]
    names = [f"weights-{i:02d}-of-{len(packed):02d}.safetensors" for i in range(1, 1 + len(packed))]
    index = {
        "format": FORMAT,
        "recipe": recipe.as_dict(),
        "config": configuration(model),
        "dtype": dtype,
        "of": sha256(weights),
        "sha256": digest(tensors),
        "bytes": sum(map(len, packed)),
        "files": {
            name: hashlib.sha256(content).hexdigest()
            for name, content in zip(names, packed, strict=True)
        },
    }
    for name, content in zip(names, packed, strict=True):
        write_atomic(out / name, content)
    write_text(out / INDEX, json.dumps(index, indent=1) + "\n")
    return index


def halved(model: Network, recipe: Recipe) -> tuple[str, dict[str, Tensor]]:
    """The model's tensors with those of its synapses in half precision, and in which."""
    synapses = {
        f"{name}.weight" for name, module in model.named_modules() if isinstance(module, Synapse)
    }
    tensors = {name: tensor.cpu().contiguous() for name, tensor in model.state_dict().items()}
    largest = torch.finfo(torch.float16).max
    fine = all(bool((tensors[name].abs() <= largest).all()) for name in synapses)
    dtype = torch.float16 if fine and recipe.precision != "bf16" else torch.bfloat16
    half = {name: t.to(dtype) if name in synapses else t for name, t in tensors.items()}
    return str(dtype).removeprefix("torch."), half


def digest(tensors: dict[str, Tensor]) -> str:
    """SHA-256 of names, types, shapes and bytes, however they lie in files."""
    found = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\0".encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def _shards(tensors: dict[str, Tensor], limit: int) -> Iterator[dict[str, Tensor]]:
    shard: dict[str, Tensor] = {}
    used = header = 128
    for name in sorted(tensors):
        need = tensors[name].nbytes + len(name) + header
        if header + need > limit:
            raise QuadspikeError(
                f"the tensor {name!r} alone needs {need / MIB:.2f} MiB, a shard may have "
                f"{limit / MIB:.2f}; raise --shard-mib"
            )
        if used + need > limit:
            yield shard
            shard, used = {}, header
        shard[name] = tensors[name]
        used += need
    yield shard


def read_index(folder: Path) -> dict[str, Any]:
    """What `export` wrote about the weights in `folder`, which are not read."""
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        if (version := index["format"]) == FORMAT:
            return {key: index[key] for key in KEYS}
    except OSError as error:
        raise QuadspikeError(
            f"{folder} holds no exported weights: cannot read {INDEX}: {error.strerror}"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise QuadspikeError(f"{folder / INDEX} is damaged: {error!r}; export again") from None
    raise QuadspikeError(
        f"{folder / INDEX} has format {version}, this version of quadspike reads {FORMAT}"
    )


def load_export(folder: Path, **overrides: Any) -> Network:
    """The model of exported weights, ready to compute in the run's own precision."""
    index = read_index(folder)
    recipe = Recipe.from_dict(index["recipe"])
    tensors: dict[str, Tensor] = {}
    for name, stated in index["files"].items():
        path = folder / name
        if not path.is_file() or sha256(path) != stated:
            raise QuadspikeError(
                f"{path} is missing or is not the file that was exported; fetch it again"
            )
        tensors |= read_tensors(path)
    if digest(tensors) != index["sha256"]:
        raise QuadspikeError(f"{folder / INDEX} is damaged: its sha256 is of other weights")
    full = torch.float64 if recipe.precision == "fp64" else torch.float32
    whole = {n: t.to(full) if t.is_floating_point() else t for n, t in tensors.items()}
    return rebuild({**index["config"], **overrides}, whole, folder)


def deployed(model: Network, recipe: Recipe) -> tuple[str, Network]:
    """The network as it is deployed, and the half precision of its weights.

    Every normalisation is merged into weights, which are then halved; currents and membranes are
    summed up in the precision of `recipe`.
    """
    plain = fold(model)
    name, tensors = halved(plain, recipe)
    plain.load_state_dict(tensors)  # into tensors of full precision, which hold them exactly
    return name, plain


@dataclass(frozen=True)
class ExportScore:
    """A fresh score of exported weights, one of the folded network, and the accuracy kept."""

    fresh: Score
    folded: Score | None
    kept: float | None


def evaluate_export(
    folder: Path,
    *,
    device: str = "auto",
    data_root: str | Path | None = None,
    backend: str = "auto",
    folded: bool = False,
) -> ExportScore:
    """Score exported weights on every test sample; the first score is kept beside them.

    With `folded` also the network as it is deployed; see `deployed`.
    """
    index = read_index(folder)
    recipe = Recipe.from_dict(index["recipe"])
    place = choose_device(device, Workers())
    model = to_device(load_export(folder, backend=backend), place)
    full = recipe.but(precision="fp32") if recipe.precision == "bf16" else recipe
    half, plain = deployed(model, full) if folded else ("", None)
    with algorithms(recipe.deterministic):
        data = make_data(recipe, data_root, place, Workers())
        fresh = score(model, data.test, recipe, place, Workers())
        merged = score(plain, data.test, full, place, Workers()) if plain else None
    known = read_evaluation(folder, index)
    content = known or {
        "format": FORMAT,
        "sha256": index["sha256"],
        "accuracy": fresh.accuracy,
        "loss": fresh.loss,
        "count": fresh.count,
        "device": device_name(place),
        "torch": torch.__version__,
    }
    if merged and "folded_accuracy" not in content:
        content = {"folded_accuracy": merged.accuracy, "folded_weights": half, **content}
    if content != known:
        write_text(folder / EVALUATION, json.dumps(content, indent=1) + "\n")
    return ExportScore(fresh, merged, None if known is None else known["accuracy"])


def read_evaluation(folder: Path, index: dict[str, Any]) -> dict[str, Any] | None:
    """The score kept beside exported weights, if there is one; it must be of them."""
    path = folder / EVALUATION
    if not path.exists():
        return None
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        weights, _ = content["sha256"], content["accuracy"]
    except (ValueError, KeyError, TypeError) as error:
        raise QuadspikeError(f"{path} is damaged: {error!r}; remove it and score again") from None
    if weights != index["sha256"]:
        raise QuadspikeError(f"{path} is of other weights; remove it and score again")
    return content
