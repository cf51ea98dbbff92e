"""`create_model` and the list it chooses from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from quadspike import composition
from quadspike.errors import QuadspikeError, check_count, check_name, is_number
from quadspike.models import resnet, small, vgg
from quadspike.models.network import Network, Readout
from quadspike.models.parts import Build, Layers, Request
from quadspike.neurons import Neuron, create_neuron
from quadspike.norms import BatchNorm


@dataclass(frozen=True)
class Entry:
    """A model: one line about it, its usual image size, its options, how to make its layers."""

    summary: str
    image_size: int
    takes: frozenset[str]
    make: Callable[[Request], Layers]
    stages: tuple[str, ...] = ()
    """The block or soma that ends each stage of its images, in order."""


_RESIDUAL = frozenset({"residual", "shortcut_neuron", "identity_norm", "stem_width", "dropout"})
OPTIONS = (*sorted(_RESIDUAL), "stem_pool")
MODELS: dict[str, Entry] = {
    "resnet19": Entry(
        "the paper's CIFAR network: 64-channel stem, 16 3x3 convolutions, a 256-unit spiking layer",
        32,
        _RESIDUAL,
        partial(resnet.layers, resnet.RESNET19),
        resnet.RESNET19.stage_ends,
    ),
    "resnet34": Entry(
        "the paper's ImageNet network: pooled 7x7 stem, stages of 3, 4, 6, 3 blocks",
        224,
        _RESIDUAL | {"stem_pool"},
        partial(resnet.layers, resnet.RESNET34),
        resnet.RESNET34.stage_ends,
    ),
    "vggsnn": Entry(
        "the paper's event network: eight 3x3 convolutions with average pooling",
        48,
        frozenset({"dropout"}),
        vgg.layers,
        tuple(f"conv{number}b.soma" for number in range(1, 1 + len(vgg.WIDTHS))),
    ),
    "resnet8": Entry(
        "three residual blocks, 16 to 64 channels, for a CPU",
        32,
        _RESIDUAL,
        partial(resnet.layers, resnet.RESNET8),
        resnet.RESNET8.stage_ends,
    ),
    "cnn": Entry(
        "three 3x3 convolutions, 32 to 128 channels, for a CPU",
        8,
        frozenset(),
        small.cnn_layers,
        ("conv1.soma", "conv2.soma", "conv3.soma"),
    ),
    "mlp": Entry(
        "two spiking layers of 128 on flattened images, for a CPU", 8, frozenset(), small.mlp_layers
    ),
}


def list_models() -> list[str]:
    """The names `create_model` knows.

    >>> "resnet19" in list_models()
    True
    """
    return list(MODELS)


def describe_models() -> dict[str, str]:
    """Each name with one line about it."""
    return {name: entry.summary for name, entry in MODELS.items()}


def stages(model: Network) -> tuple[str, ...]:
    """The names of what ends each of the network's stages; none for one's own network."""
    return () if model.config is None else MODELS[model.config["name"]].stages


def create_model(
    name: str,
    *,
    neuron: str | dict[str, Any] | Neuron = "qif",
    norm: str | None = "tdbn",
    eta: float | None = None,
    initial_gain: float = 1.0,
    num_classes: int = 10,
    in_channels: int = 3,
    timesteps: int = 2,
    residual: str = "fire-then-sum",
    image_size: int | None = None,
    dropout: float = 0.0,
    stem_pool: str = "max",
    stem_width: int | None = None,
    shortcut_neuron: bool = True,
    identity_norm: bool = False,
    readout: Readout = "mean",
    backend: str = "auto",
    seed: int | None = None,
) -> Network:
    """A network by name, its weights drawn anew.

    `seed` makes the weights a function of it alone; without one they follow
    `torch.manual_seed`. `eta` is tdBN's factor on the threshold in every layer; without it, it is
    1, and 1/sqrt(2) where two branches meet before a neuron. `initial_gain` is what the weights of
    every normalisation start from. `image_size` matters to models that flatten (vggsnn, mlp).
    `residual`, `shortcut_neuron`, `identity_norm` (a normalisation on identity shortcuts, for
    sum-then-fire) and `stem_width` are for the ResNets, `stem_pool` for resnet34, `dropout`, before
    the classifier, for the ResNets and vggsnn.

    >>> model = create_model("cnn", in_channels=1, timesteps=4)
    >>> model(torch.randn(2, 1, 8, 8)).shape
    torch.Size([4, 2, 10])
    """
    entry = MODELS[check_name("model", name, MODELS)]
    check_count("num_classes", num_classes)
    check_count("in_channels", in_channels)
    prototype = create_neuron(neuron)
    ask = Request(
        Build(prototype, norm, backend, check_count("timesteps", timesteps), eta),
        in_channels,
        num_classes,
        check_count("image_size", entry.image_size if image_size is None else image_size),
        residual,
        shortcut_neuron,
        identity_norm,
        None if stem_width is None else check_count("stem_width", stem_width),
        stem_pool,
        dropout,
    )
    _check_taken(name, entry, ask)
    check_gains(norm, eta, initial_gain, identity_norm)
    composition.check(composition.Parts(prototype.name, norm, prototype.surrogate.name))
    with seeded(seed):
        net = Network(entry.make(ask), timesteps=timesteps, readout=readout, input_rank=4)
        initialize(net, initial_gain)
    net.config = {
        "name": name,
        "neuron": prototype.config(),
        "norm": norm,
        "eta": eta,
        "initial_gain": initial_gain,
        "num_classes": num_classes,
        "in_channels": in_channels,
        "timesteps": timesteps,
        "residual": residual,
        "image_size": image_size,
        "dropout": dropout,
        "stem_pool": stem_pool,
        "stem_width": stem_width,
        "shortcut_neuron": shortcut_neuron,
        "identity_norm": identity_norm,
        "readout": readout,
    }
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def _check_taken(name: str, entry: Entry, ask: Request) -> None:
    """Refuse an option that the model would ignore."""
    plain = Request(ask.build, ask.in_channels, ask.num_classes, ask.image_size)
    check_name("residual form", ask.residual, resnet.RESIDUALS)
    for option in OPTIONS:
        if option not in entry.takes and getattr(ask, option) != getattr(plain, option):
            takers = [other for other, found in MODELS.items() if option in found.takes]
            raise QuadspikeError(
                f"{name} has no {option}, got {getattr(ask, option)!r}; it is for "
                f"{', '.join(takers)}"
            )


def check_gains(
    norm: str | None, eta: float | None, initial_gain: float, identity_norm: bool
) -> None:
    """Refuse gains that are none, and those of a normalisation that is not there."""
    for option, value in (("eta", eta), ("initial_gain", initial_gain)):
        if not (value is None and option == "eta") and not (is_number(value) and value > 0):
            raise QuadspikeError(f"{option} must be a number > 0, got {value!r}")
    if eta is not None and norm != "tdbn":
        raise QuadspikeError(f"eta={eta!r} is tdBN's, got norm={norm!r}; leave it out")
    if norm is None and (initial_gain != 1 or identity_norm):
        asked = "identity_norm=True" if identity_norm else f"initial_gain={initial_gain!r}"
        raise QuadspikeError(f"{asked} is for a normalisation, got norm=None; leave it out")


@contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Initial weights from a seed of their own, torch's generators left as they were."""
    if seed is None:
        yield
        return
    if not isinstance(seed, int) or isinstance(seed, bool) or not -(2**63) <= seed < 2**64:
        raise QuadspikeError(f"seed must be a whole number of at most 64 bits, got {seed!r}")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


def initialize(net: nn.Module, initial_gain: float = 1.0) -> None:
    """Kaiming-normal convolutions by fan-out, as in the paper's lineage; linear as in torch."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, BatchNorm):
            nn.init.constant_(module.weight, initial_gain)
