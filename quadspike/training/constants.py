"""A neuron's constants in a recipe: held frozen, and each with a name of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from quadspike.errors import QuadspikeError, check_name, is_number
from quadspike.neurons import NEURONS

PREFIX = "neuron."
"""`neuron.a` is the constant a, wherever a recipe's fields have names."""
_FIELD = "neuron_constants"


class Constants(Mapping[str, float]):
    """Numbers by name that cannot change, so that a recipe has a hash.

    >>> print(Constants({"a": 0.3, "u_th": 0.6}))
    a=0.3, u_th=0.6
    """

    def __init__(self, given: Mapping[str, float] | None = None) -> None:
        self._numbers = dict(given or {})

    def __getitem__(self, name: str) -> float:
        return self._numbers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __hash__(self) -> int:
        return hash(frozenset(self._numbers.items()))

    def __repr__(self) -> str:
        return repr(self._numbers)

    def __str__(self) -> str:
        return ", ".join(f"{name}={number:g}" for name, number in self.items()) or "none"


def checked(neuron: str, given: object) -> Constants:
    """What was given as numbers of that neuron, in its own order.

    >>> checked("qif", {"u_th": 0.6, "a": 1})
    {'a': 1.0, 'u_th': 0.6}
    """
    if not isinstance(given, Mapping):
        raise QuadspikeError(
            f"neuron_constants are numbers by name, such as {{'u_th': 0.6}}, got {given!r}"
        )
    allowed = NEURONS[neuron].constant_names()
    given = {k: v.item() if isinstance(v, np.generic) else v for k, v in given.items()}
    for name, number in given.items():
        check_name(f"constant of neuron {neuron!r}", name, allowed)
        if not is_number(number):
            raise QuadspikeError(f"{PREFIX}{name} must be a finite number, got {number!r}")
    return Constants({name: float(given[name]) for name in allowed if name in given})


def had_by(neuron: str, constants: Mapping[str, float]) -> dict[str, float]:
    """Those that the neuron has.

    >>> had_by("lif", {"u2": -2.0, "u_th": 0.6})
    {'u_th': 0.6}
    """
    known = NEURONS[neuron].constant_names()
    return {name: number for name, number in constants.items() if name in known}


def one_by_one(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe's fields with each constant in place of all.

    >>> one_by_one({"neuron": "qif", "neuron_constants": {"a": 0.3}})
    {'neuron': 'qif', 'neuron.a': 0.3}
    """
    found: dict[str, Any] = {}
    for name, value in fields.items():
        found |= {PREFIX + k: v for k, v in value.items()} if name == _FIELD else {name: value}
    return found


def together(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The reverse; a constant that is None is left to the neuron.

    >>> together({"neuron_constants": {"a": 0.3}, "neuron.a": None, "neuron.u_th": 0.6})
    {'neuron_constants': {'u_th': 0.6}}
    """
    single = {k.removeprefix(PREFIX): v for k, v in fields.items() if k.startswith(PREFIX)}
    if not single:
        return dict(fields)
    found = {name: value for name, value in fields.items() if not name.startswith(PREFIX)}
    constants = {**found.get(_FIELD, {}), **single}
    found[_FIELD] = {name: number for name, number in constants.items() if number is not None}
    return found
