"""Small event files in the official layout of CIFAR10-DVS."""

from __future__ import annotations

import numpy as np

from quadspike.data.events.aedat import write_aedat
from quadspike.data.events.cifar10dvs import CLASSES, load_cifar10dvs
from quadspike.data.events.form import Events

NUMBERS = (0, 9, 10, 99, 100, 899, 900, 999)


def recording(seed, count=200):
    random = np.random.default_rng(seed)
    return Events.of(
        np.sort(random.integers(0, 10**6, count)),
        random.integers(0, 128, count),
        random.integers(0, 128, count),
        random.integers(0, 2, count),
        width=128,
        height=128,
    )


def seed_of(name, number):
    return CLASSES.index(name) * 1000 + number


def write_class(root, name, numbers=NUMBERS):
    for number in numbers:
        target = root / name / f"cifar10_{name}_{number}.aedat"
        write_aedat(recording(seed_of(name, number)), target)


def write_all(root):
    for name in CLASSES:
        write_class(root, name)
    return root


def load(root, **options):
    return load_cifar10dvs(root, **{"split": "tebn", "allow_partial": True, **options})
