"""Networks whose operations are counted in tests."""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from quadspike.analysis.energy.report import EnergyReport
from quadspike.data.geometry import GEOMETRIES
from quadspike.models import Network, create_model
from quadspike.soma import Soma

PAPER_NETWORKS = {
    ("resnet19", "cifar10"): (4_981_248, 2_214_726_144, 1_605_888),
    ("resnet19", "cifar10-dvs"): (9_880_064, 4_982_966_784, 3_612_928),
    ("vggsnn", "cifar10-dvs"): (4_497_408, 1_359_000_576, 921_600),
    ("resnet34", "imagenet"): (125_490_176, 3_545_747_456, 3_738_112),
}


def network_for(model: str, geometry: str, **options) -> Network:
    shape = GEOMETRIES[geometry]
    return create_model(
        model,
        in_channels=shape.channels,
        num_classes=shape.classes,
        image_size=shape.size,
        **options,
    )


def small_net(timesteps: int = 3, neuron: str = "qif") -> Network:
    return Network(
        OrderedDict(
            conv=nn.Conv2d(1, 4, 3, padding=1, bias=False),
            soma=Soma(4, neuron),
            deep=nn.Conv2d(4, 6, 3, stride=2, padding=1, bias=False),
            deep_soma=Soma(6, neuron),
            flatten=nn.Flatten(),
            classifier=nn.Linear(96, 10),
        ),
        timesteps=timesteps,
    )


def row_of(report: EnergyReport, layer: str):
    return next(row for row in report.rows if row.layer == layer)
