"""One of AutoAugment's operations per sample, in two ways that give the same bytes.

`apply` does everything to everyone: a sample undergoes one operation, so the families of
operations can follow one another with the others' samples at rest in each. One gather moves
pixels, one looks bytes up, one mixture serves colour and sharpness; shapes depend on nothing
drawn, so a CUDA graph can capture it. `apply_by_group` does to each only what it asks for,
which is several times quicker on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from quadspike.data.augment import colour, lookup
from quadspike.data.augment.affine import affine
from quadspike.data.augment.lookup import look_up
from quadspike.data.augment.policies import OPERATIONS

ALONE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "identity": lambda x, amount: x,
    "shear_x": lambda x, amount: affine(x, shear_x=amount),
    "shear_y": lambda x, amount: affine(x, shear_y=amount),
    "translate_x": lambda x, amount: affine(x, right=amount * x.shape[-1]),
    "translate_y": lambda x, amount: affine(x, down=amount * x.shape[-2]),
    "rotate": lambda x, amount: affine(x, degrees=amount),
    "invert": lambda x, amount: look_up(x, lookup.invert_table(x)),
    "solarize": lambda x, amount: look_up(x, lookup.solarize_table(amount)),
    "posterize": lambda x, amount: look_up(x, lookup.posterize_table(amount)),
    "brightness": lambda x, amount: look_up(x, lookup.brightness_table(amount)),
    "contrast": lambda x, amount: look_up(x, lookup.contrast_table(colour.grey(x), amount)),
    "autocontrast": lambda x, amount: look_up(x, lookup.autocontrast_table(x)),
    "equalize": lambda x, amount: look_up(x, lookup.equalize_table(x)),
    "colour": colour.colour,
    "sharpness": colour.sharpness,
}
"""Every operation on uint8 `[B, 3, H, W]` by amounts `[B]`; translations as shares of the size."""


def apply_by_group(x: Tensor, operation: Tensor, amount: Tensor) -> Tensor:
    """Each sample's operation, its place in `OPERATIONS`, by its amount.

    >>> x = torch.full((2, 3, 4, 4), 7, dtype=torch.uint8)
    >>> changed = apply_by_group(x, torch.tensor([0, 6]), torch.tensor([0.0, 0.0]))
    >>> OPERATIONS[6], changed[:, 0, 0, 0].tolist()
    ('invert', [7, 248])
    """
    changed = torch.empty_like(x)
    for place, name in enumerate(OPERATIONS):
        rows = torch.nonzero(operation == place)[:, 0]
        if len(rows):
            changed[rows] = ALONE[name](x[rows], amount[rows])
    return changed


def apply(x: Tensor, operation: Tensor, amount: Tensor) -> Tensor:
    """The same as `apply_by_group`, in shapes that depend on nothing drawn."""
    places = torch.arange(len(OPERATIONS), device=x.device)
    chosen = dict(zip(OPERATIONS, (operation[:, None] == places).unbind(1), strict=True))

    def amount_of(name: str, neutral: float) -> Tensor:
        return torch.where(chosen[name], amount, neutral)

    greys = colour.grey(x)
    dull = torch.where(chosen["colour"].view(-1, 1, 1, 1), greys, colour.smooth(x))
    mixed = chosen["colour"] | chosen["sharpness"]
    factor = torch.where(mixed, amount, 1.0).view(-1, 1, 1, 1)
    tables = {
        "invert": lookup.invert_table(x),
        "solarize": lookup.solarize_table(amount),
        "posterize": lookup.posterize_table(amount_of("posterize", 8)),
        "brightness": lookup.brightness_table(amount),
        "contrast": lookup.contrast_table(greys, amount),
        "autocontrast": lookup.autocontrast_table(x),
        "equalize": lookup.equalize_table(x),
    }
    table = lookup.ramp(x)
    for name, candidate in tables.items():
        table = torch.where(chosen[name].view(-1, 1, 1), candidate, table)
    x = colour.blend(dull, look_up(x, table), factor)
    return affine(
        x,
        degrees=amount_of("rotate", 0),
        shear_x=amount_of("shear_x", 0),
        shear_y=amount_of("shear_y", 0),
        right=amount_of("translate_x", 0) * x.shape[-1],
        down=amount_of("translate_y", 0) * x.shape[-2],
    )
