"""`create_model` and the list it chooses from."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from quadspike.errors import check_count, check_name
from quadspike.models import resnet, small, vgg
from quadspike.models.network import Network, Readout
from quadspike.models.parts import Build
from quadspike.neurons import Neuron, create_neuron

Layers = OrderedDict[str, nn.Module]


@dataclass(frozen=True)
class Request:
    """What a model may be asked for; each builder reads what it needs."""

    build: Build
    in_channels: int
    num_classes: int
    form: resnet.ResidualForm
    stem_width: int | None
    dropout: float
    stem_pool: str


@dataclass(frozen=True)
class Entry:
    """A model: one line about it, its usual image size, and how to make its layers."""

    summary: str
    image_size: int
    make: Callable[[Request, int], Layers]


def _resnet(plan: resnet.Plan) -> Callable[[Request, int], Layers]:
    def make(ask: Request, image_size: int) -> Layers:
        shape = replace(plan, stem=ask.stem_width or plan.stem)
        return resnet.layers(
            shape, ask.build, ask.in_channels, ask.num_classes, ask.form, ask.stem_pool
        )

    return make


def _vggsnn(ask: Request, image_size: int) -> Layers:
    return vgg.layers(ask.build, ask.in_channels, ask.num_classes, image_size, ask.dropout)


def _mlp(ask: Request, image_size: int) -> Layers:
    return small.mlp_layers(ask.build, ask.in_channels, ask.num_classes, image_size)


def _cnn(ask: Request, image_size: int) -> Layers:
    return small.cnn_layers(ask.build, ask.in_channels, ask.num_classes)


MODELS: dict[str, Entry] = {
    "resnet19": Entry(
        "the paper's CIFAR network: 64-channel stem, 16 3x3 convolutions, a 256-unit spiking layer",
        32,
        _resnet(resnet.RESNET19),
    ),
    "resnet34": Entry(
        "the paper's ImageNet network: pooled 7x7 stem, stages of 3, 4, 6, 3 blocks",
        224,
        _resnet(resnet.RESNET34),
    ),
    "vggsnn": Entry(
        "the paper's event network: eight 3x3 convolutions with average pooling", 48, _vggsnn
    ),
    "resnet8": Entry(
        "three residual blocks, 16 to 64 channels, for a CPU", 32, _resnet(resnet.RESNET8)
    ),
    "cnn": Entry("three 3x3 convolutions, 32 to 128 channels, for a CPU", 8, _cnn),
    "mlp": Entry("two spiking layers of 128 on flattened images, for a CPU", 8, _mlp),
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


def create_model(
    name: str,
    *,
    neuron: str | dict[str, Any] | Neuron = "qif",
    norm: str | None = "tdbn",
    num_classes: int = 10,
    in_channels: int = 3,
    timesteps: int = 2,
    residual: str = "fire-then-sum",
    image_size: int | None = None,
    dropout: float = 0.0,
    stem_pool: str = "max",
    stem_width: int | None = None,
    shortcut_neuron: bool = True,
    readout: Readout = "mean",
    backend: str = "auto",
    seed: int | None = None,
) -> Network:
    """A network by name, its weights drawn anew.

    `seed` makes the weights a function of it alone; without one they follow
    `torch.manual_seed`. `image_size` matters to models that flatten (vggsnn, mlp), `dropout`
    to vggsnn, `residual`, `shortcut_neuron` and `stem_width` to the ResNets, `stem_pool` to
    resnet34.

    >>> model = create_model("cnn", in_channels=1, timesteps=4)
    >>> model(torch.randn(2, 1, 8, 8)).shape
    torch.Size([4, 2, 10])
    """
    entry = MODELS[check_name("model", name, MODELS)]
    check_count("num_classes", num_classes)
    check_count("in_channels", in_channels)
    form = resnet.ResidualForm(residual, shortcut_neuron)
    prototype = create_neuron(neuron)
    build = Build(prototype, norm, backend)
    ask = Request(build, in_channels, num_classes, form, stem_width, dropout, stem_pool)
    with torch.random.fork_rng(devices=[], enabled=seed is not None):
        if seed is not None:
            torch.manual_seed(seed)
        layers = entry.make(ask, image_size or entry.image_size)
        net = Network(layers, timesteps=timesteps, readout=readout, input_rank=4)
        initialize(net)
    net.config = {
        "name": name,
        "neuron": prototype.config(),
        "norm": norm,
        "num_classes": num_classes,
        "in_channels": in_channels,
        "timesteps": timesteps,
        "residual": residual,
        "image_size": image_size,
        "dropout": dropout,
        "stem_pool": stem_pool,
        "stem_width": stem_width,
        "shortcut_neuron": shortcut_neuron,
        "readout": readout,
    }
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def initialize(net: nn.Module) -> None:
    """Kaiming-normal convolutions by fan-out, as in the paper's lineage; linear as in torch."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
