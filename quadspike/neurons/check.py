"""Whether a neuron's handwritten partials are the derivatives of its lines."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from quadspike.errors import QuadspikeError
from quadspike.neurons.base import Neuron

_POINTS = 64


def check_partials(neuron: Neuron) -> None:
    """Refuse partials that are not those of autograd, or not all of them.

    The fast paths take a gradient from `advance_partials` and `excess_partials` alone, so a wrong
    one is a wrong gradient, and so is an excess by a learned constant other than u_th. Compared
    at random membranes, spikes, currents and constants.

    >>> from quadspike import QIF
    >>> check_partials(QIF())
    """
    make = type(neuron.constants())
    names = ("u", "o", "x", *make._fields)
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(len(names), _POINTS, dtype=torch.float64, generator=generator) * 2 - 1
    points[1] = (points[1] * 1.5).round()  # some spikes have a sign
    given = dict(zip(names, points.requires_grad_().unbind(), strict=True))
    u, o, x, *constants = given.values()
    p = make(*constants)
    _compare(neuron, "advance", list(given.items()), (u, o, x, p))
    if "u_th" in given:
        _compare(neuron, "excess", [("u", u), ("u_th", given["u_th"])], (u, p))
    if neuron.only_reference:
        return
    for name, value in neuron.constants()._asdict().items():
        if name != "u_th" and getattr(value, "requires_grad", False):
            _check_apart(neuron, name, given[name], (u, p))


def _check_apart(neuron: Neuron, name: str, constant: Tensor, args: Any) -> None:
    excess = neuron.excess(*args).sum()
    (slope,) = torch.autograd.grad(excess, constant, allow_unused=True, materialize_grads=True)
    if slope.any():
        kind = type(neuron).__name__
        raise QuadspikeError(
            f"{kind}.excess depends on {name}, which is learned, and the fast paths pass its "
            "gradient to u and u_th alone; make it a part of what constants() gives as u_th, or "
            "say in only_reference why the neuron needs the reference"
        )


def _compare(neuron: Neuron, line: str, given: list[tuple[str, Tensor]], args: Any) -> None:
    kind, tensors = type(neuron), [tensor for _, tensor in given]
    truth = torch.autograd.grad(
        getattr(neuron, line)(*args).sum(), tensors, allow_unused=True, materialize_grads=True
    )
    stated = getattr(neuron, f"{line}_partials")(*args)
    if len(stated) != len(given):
        raise QuadspikeError(
            f"{kind.__name__}.{line}_partials gives {len(stated)} derivatives; {len(given)} are "
            f"needed, in {', '.join(name for name, _ in given)}"
        )
    for (name, _), wanted, value in zip(given, truth, stated, strict=True):
        found = torch.as_tensor(value, dtype=torch.float64).detach().expand_as(wanted)
        if not torch.allclose(found, wanted, rtol=1e-6, atol=1e-9):
            worst = int((found - wanted).abs().argmax())
            raise QuadspikeError(
                f"{kind.__name__}.{line}_partials is wrong in {name}: {found[worst]:.6g} where "
                f"autograd finds {wanted[worst]:.6g}"
            )
