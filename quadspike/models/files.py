"""A model on disk: safetensors weights whose header holds the model's configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from quadspike.atomic import write_atomic
from quadspike.checksum import checksum
from quadspike.errors import QuadspikeError, check_name
from quadspike.models.network import Network
from quadspike.models.registry import create_model
from quadspike.neurons import NEURONS
from quadspike.neurons.sided import Sided
from quadspike.surrogates import SURROGATES

FORMAT = 1
_HEADER, _CHECKSUM = "quadspike", "crc32"


def save_model(model: Network, path: str | Path) -> Path:
    """Write weights and configuration to one file, all or nothing."""
    if not isinstance(model, Network):
        raise QuadspikeError(
            f"save_model takes a quadspike.Network, got {type(model).__name__}; of one that was "
            "compiled or wrapped give the network inside"
        )
    target = Path(path)
    write_tensors(model.state_dict(), target, config=configuration(model))
    return target


def write_tensors(tensors: Mapping[str, Tensor], target: Path, **content: Any) -> None:
    """Tensors, what else is to be said of them and a checksum of both, all or nothing."""
    plain = {name: tensor.contiguous() for name, tensor in tensors.items()}
    content = {"format": FORMAT, **content}
    content[_CHECKSUM] = checksum(json.dumps(content), plain)
    # One entry: safetensors writes several in whatever order.
    write_atomic(target, save(plain, {_HEADER: json.dumps(content)}))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, ours or others'; nothing in it is ever run."""
    return _read(path)[0]


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and what the file says of them."""
    if path.is_dir():
        raise QuadspikeError(
            f"cannot read weights from {path}, a folder: give a file in it, as a run's "
            "last.safetensors"
        )
    try:
        with safe_open(path, framework="pt") as file:
            header = (file.metadata() or {}).get(_HEADER)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise QuadspikeError(f"cannot read weights from {path}: {error}") from None
    content = {} if header is None else _parse(header, path)
    stated = content.pop(_CHECKSUM, None)  # files of others have none, nor have older ones
    if stated is not None and stated != checksum(json.dumps(content), tensors):
        raise QuadspikeError(f"{path} is damaged: its checksum is another; put back a copy of it")
    return tensors, content


def configuration(model: Network) -> dict[str, Any]:
    """What `create_model` takes to make such a model."""
    if model.config is None:
        raise QuadspikeError(
            "only models from create_model know how to be rebuilt; "
            "save your own network's state_dict with safetensors"
        )
    if reason := why_not_rebuilt(model):
        raise QuadspikeError(f"{reason}, or save the network's state_dict with safetensors")
    return {**model.config, "timesteps": model.timesteps, "readout": model.readout}


def why_not_rebuilt(model: Network) -> str:
    """Which of the somas' parts the names in a configuration do not stand for, if any."""
    for layer, soma in model.somas().items():
        neuron, surrogate = soma.neuron, soma.neuron.surrogate
        kind = type(neuron).__bases__[1] if isinstance(neuron, Sided) else type(neuron)
        if NEURONS.get(neuron.name) is not kind:
            registry, name, own = "neurons.NEURONS", neuron.name, kind
        elif SURROGATES.get(surrogate.name) is not type(surrogate):
            registry, name, own = "surrogates.SURROGATES", surrogate.name, type(surrogate)
        else:
            continue
        return (
            f"layer {layer!r} has a {own.__name__}, which no file can name: register it under a "
            f"name of its own, quadspike.{registry}[{name!r}] = {own.__name__}"
        )
    return ""


def load_model(path: str | Path, **overrides: Any) -> Network:
    """The model saved at `path`; `overrides` change its configuration, such as `timesteps`."""
    target = Path(path)
    tensors, content = _read(target)
    config = content.get("config")
    if config is None:
        raise QuadspikeError(
            f"{target} holds tensors but no quadspike configuration; of a run load "
            "last.safetensors or best.safetensors, and give the weights of one's own network to "
            "that network, network.load_state_dict(safetensors.torch.load_file(path))"
        )
    if not isinstance(config, dict) or not {"name"} <= config.keys() <= {"name", *_options()}:
        raise QuadspikeError(
            f"the configuration in {target} is none of this version of quadspike; use the version "
            "that wrote it"
        )
    for name in overrides:
        check_name("option of a model", name, _options())
    return rebuild({**config, **overrides}, tensors, target)


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


def _options() -> list[str]:
    return [name for name in signature(create_model).parameters if name != "name"]


def _dtype(tensors: dict[str, Tensor]) -> torch.dtype:
    return next((t.dtype for t in tensors.values() if t.is_floating_point()), torch.float32)


def _parse(header: str, target: Path) -> dict[str, Any]:
    try:
        content = dict(json.loads(header))
        version = content["format"]
    except (ValueError, KeyError, TypeError):
        raise QuadspikeError(f"the configuration in {target} is damaged") from None
    if version != FORMAT:
        raise QuadspikeError(
            f"{target} has format {version}; this version of quadspike reads format {FORMAT}: "
            "update quadspike"
        )
    return content
