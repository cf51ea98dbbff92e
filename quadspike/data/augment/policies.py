"""What AutoAugment learned, as tables: sub-policies and what a level of each operation means.

The policy found on reduced CIFAR-10 by Cubuk et al., "AutoAugment: Learning Augmentation
Strategies from Data" (2019), which CIFAR-100 uses as well.
"""

from __future__ import annotations

from typing import NamedTuple

OPERATIONS = (
    "identity",
    "shear_x",
    "shear_y",
    "translate_x",
    "translate_y",
    "rotate",
    "invert",
    "solarize",
    "posterize",
    "brightness",
    "contrast",
    "autocontrast",
    "equalize",
    "colour",
    "sharpness",
)

SIGNED = ("shear_x", "shear_y", "translate_x", "translate_y", "rotate")
"""Negated with probability one half."""

ENHANCED = ("brightness", "contrast", "colour", "sharpness")
"""Factors 1 + level or 1 - level, each with probability one half."""


class Step(NamedTuple):
    """An operation, how often it is applied, and its level of 0 to 9."""

    operation: str
    probability: float
    level: int


def magnitude(operation: str, level: int) -> float:
    """An operation's magnitude at a level; translations as a share of the image's size.

    >>> magnitude("rotate", 9), magnitude("posterize", 9), magnitude("solarize", 0)
    (30.0, 4, 256.0)
    """
    if operation == "posterize":
        return 8 - round(4 * level / 9)
    if operation == "solarize":
        return 256 * (9 - level) / 9
    greatest = {
        "shear_x": 0.3,
        "shear_y": 0.3,
        "translate_x": 150 / 331,
        "translate_y": 150 / 331,
        "rotate": 30.0,
        **dict.fromkeys(ENHANCED, 0.9),
    }
    return greatest.get(operation, 0.0) * level / 9


POLICIES: dict[str, tuple[tuple[Step, Step], ...]] = {
    "cifar10": (
        (Step("invert", 0.1, 7), Step("contrast", 0.2, 6)),
        (Step("rotate", 0.7, 2), Step("translate_x", 0.3, 9)),
        (Step("sharpness", 0.8, 1), Step("sharpness", 0.9, 3)),
        (Step("shear_y", 0.5, 8), Step("translate_y", 0.7, 9)),
        (Step("autocontrast", 0.5, 8), Step("equalize", 0.9, 2)),
        (Step("shear_y", 0.2, 7), Step("posterize", 0.3, 7)),
        (Step("colour", 0.4, 3), Step("brightness", 0.6, 7)),
        (Step("sharpness", 0.3, 9), Step("brightness", 0.7, 9)),
        (Step("equalize", 0.6, 5), Step("equalize", 0.5, 1)),
        (Step("contrast", 0.6, 7), Step("sharpness", 0.6, 5)),
        (Step("colour", 0.7, 7), Step("translate_x", 0.5, 8)),
        (Step("equalize", 0.3, 7), Step("autocontrast", 0.4, 8)),
        (Step("translate_y", 0.4, 3), Step("sharpness", 0.2, 6)),
        (Step("brightness", 0.9, 6), Step("colour", 0.2, 8)),
        (Step("solarize", 0.5, 2), Step("invert", 0.0, 3)),
        (Step("equalize", 0.2, 0), Step("autocontrast", 0.6, 0)),
        (Step("equalize", 0.2, 8), Step("equalize", 0.6, 4)),
        (Step("colour", 0.9, 9), Step("equalize", 0.6, 6)),
        (Step("autocontrast", 0.8, 4), Step("solarize", 0.2, 8)),
        (Step("brightness", 0.1, 3), Step("colour", 0.7, 0)),
        (Step("solarize", 0.4, 5), Step("autocontrast", 0.9, 3)),
        (Step("translate_y", 0.9, 9), Step("translate_y", 0.7, 9)),
        (Step("autocontrast", 0.9, 2), Step("solarize", 0.8, 3)),
        (Step("equalize", 0.8, 8), Step("invert", 0.1, 3)),
        (Step("translate_y", 0.7, 9), Step("autocontrast", 0.9, 1)),
    ),
}
