"""Fields of a recipe as text: `window=mean,timesteps=2`."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from quadspike.errors import QuadspikeError
from quadspike.training.constants import PREFIX
from quadspike.training.recipe import Recipe

_TYPES = {field.name: str(field.type) for field in dataclasses.fields(Recipe)}


def parse_fields(text: str) -> dict[str, Any]:
    """`FIELD=VALUE,...` as fields of a recipe.

    >>> parse_fields("window=mean,timesteps=2,clip=null")
    {'window': 'mean', 'timesteps': 2, 'clip': None}
    """
    found = {}
    for change in filter(None, text.split(",")):
        name, value = _split(change)
        found[name] = _value(name, value)
    return found


def parse_values(text: str) -> tuple[str, list[Any]]:
    """`FIELD=VALUE,VALUE,...` as a field and the values it takes.

    >>> parse_values("eta=null,0.5,1")
    ('eta', [None, 0.5, 1.0])
    """
    name, values = _split(text)
    return name, [_value(name, value) for value in values.split(",")]


def field_order(name: str) -> tuple[int, str]:
    """For sorting by the recipe's order: constants behind their neuron, what is no field last.

    >>> sorted(["device", "lr", "neuron.u_th", "neuron.a", "neuron"], key=field_order)
    ['neuron', 'neuron.a', 'neuron.u_th', 'lr', 'device']
    """
    names = list(_TYPES)
    field = "neuron_constants" if name.startswith(PREFIX) else name
    return names.index(field) if field in names else len(names), name


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise QuadspikeError(f"a field of a recipe is given as NAME=VALUE, got {text!r}")
    return name, value


def _value(field: str, text: str) -> Any:
    """A number, true, false or null as that; anything else is a name."""
    whole = float if "float" in _TYPES.get(field, "") else int
    try:
        return json.loads(text, parse_int=whole)
    except ValueError:
        return text
