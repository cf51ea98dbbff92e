"""A model on disk: safetensors weights whose header holds the model's configuration."""

from __future__ import annotations

import json
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from quadspike.atomic import write_atomic
from quadspike.errors import QuadspikeError, check_name
from quadspike.models.network import Network
from quadspike.models.registry import create_model
from quadspike.neurons import NEURONS

FORMAT = 1
_HEADER = "quadspike"


def save_model(model: Network, path: str | Path) -> Path:
    """Write weights and configuration to one file, all or nothing."""
    target = Path(path)
    header = json.dumps({"format": FORMAT, "config": configuration(model)})
    tensors = {name: value.contiguous() for name, value in model.state_dict().items()}
    write_atomic(target, save(tensors, metadata={_HEADER: header}))
    return target


def configuration(model: Network) -> dict[str, Any]:
    """What `create_model` takes to make such a model."""
    if model.config is None:
        raise QuadspikeError(
            "only models from create_model know how to be rebuilt; "
            "save your own network's state_dict with safetensors"
        )
    check_name("neuron", model.config["neuron"]["name"], NEURONS)
    return {**model.config, "timesteps": model.timesteps, "readout": model.readout}


def load_model(path: str | Path, **overrides: Any) -> Network:
    """The model saved at `path`; `overrides` change its configuration, such as `timesteps`."""
    target = Path(path)
    try:
        with safe_open(target, framework="pt") as file:
            header = (file.metadata() or {}).get(_HEADER)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise QuadspikeError(f"cannot read a model from {target}: {error}") from None
    if header is None:
        raise QuadspikeError(
            f"{target} holds tensors but no quadspike configuration: not saved by save_model"
        )
    saved = _parse(header, target)
    check_overrides(overrides)
    return rebuild({**saved, **overrides}, tensors, target)


def rebuild(config: dict[str, Any], tensors: dict[str, Tensor], source: Path) -> Network:
    """The model of a `configuration` with its weights, which `source` held."""
    model = create_model(**config).to(_dtype(tensors))
    hold_initial_membranes(model, tensors)
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise QuadspikeError(f"the weights in {source} do not fit its model: {error}") from None
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def hold_initial_membranes(model: Network, tensors: dict[str, Tensor]) -> None:
    """Make room for the initial membranes among `tensors`, if the layers learned any."""
    for name, soma in model.somas().items():
        if (initial_u := tensors.get(f"{name}.initial_u")) is not None:
            soma.start_from(initial_u)


def check_overrides(overrides: dict[str, Any]) -> None:
    """Only what `create_model` takes can be overridden."""
    allowed = [name for name in signature(create_model).parameters if name != "name"]
    for name in overrides:
        check_name("option of a model", name, allowed)


def _dtype(tensors: dict[str, Tensor]) -> torch.dtype:
    return next((t.dtype for t in tensors.values() if t.is_floating_point()), torch.float32)


def _parse(header: str, target: Path) -> dict[str, Any]:
    try:
        content = json.loads(header)
        version, config = content["format"], dict(content["config"])
    except (ValueError, KeyError, TypeError):
        raise QuadspikeError(f"the configuration in {target} is damaged") from None
    if version != FORMAT:
        raise QuadspikeError(
            f"{target} has format {version}; this version of quadspike reads format {FORMAT}: "
            "update quadspike"
        )
    return config
