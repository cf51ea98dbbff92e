"""Small event files in the official layout of CIFAR10-DVS."""

from __future__ import annotations

import numpy as np

from quadspike.data.events.aedat import write_aedat
from quadspike.data.events.cifar10dvs import CLASSES, load_cifar10dvs
from quadspike.data.events.form import Events

NUMBERS = (0, 9, 10, 99, 100, 899, 900, 999)


def recording(seed, count=200, width=128, height=128, end=10**6):
    """Events at random places and times."""
    random = np.random.default_rng(seed)
    t = np.sort(random.integers(0, end, count))
    x, y, p = (random.integers(0, high, count) for high in (width, height, 2))
    return Events.of(t, x, y, p, width=width, height=height)


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
