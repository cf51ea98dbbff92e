"""Which settings a sweep has: every combination of values, and single ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from quadspike.errors import QuadspikeError
from quadspike.recipes.registry import vary
from quadspike.training.field_values import OWN
from quadspike.training.fields import field_order
from quadspike.training.network import make_network
from quadspike.training.recipe import Recipe
from quadspike.training.sizes import check_sizes, known_geometry

_LONGEST = 200
"""Of the name of a folder, with room for a seed; most systems allow 255 bytes."""


@dataclass(frozen=True)
class Setting:
    """A recipe, and what it is called after: the fields that were asked for.

    >>> recipe = Recipe("mine", "digits", "mlp")
    >>> Setting.of(recipe, {"eta": 0.5, "window": "mean"}).name
    'window-mean_eta-0.5'
    """

    name: str
    recipe: Recipe

    @classmethod
    def of(cls, base: Recipe, fields: Mapping[str, Any]) -> Setting:
        """`base` with other fields, checked; refused by name."""
        if not fields:
            raise QuadspikeError("a setting has at least one FIELD=VALUE, got none")
        for field, instead in (("seed", "--seeds"), ("name", "--out")):
            if field in fields:
                raise QuadspikeError(f"a sweep is not over {field!r}; use {instead}")
        # In the recipe's order, so that nothing is called anew if it is asked in another one.
        name = _short(_text({field: fields[field] for field in sorted(fields, key=field_order)}))
        try:
            recipe = vary(base, **fields)
            check_sizes(recipe)
            if recipe.model != OWN and (geometry := known_geometry(recipe)):
                make_network(recipe, geometry)
        except QuadspikeError as error:
            raise QuadspikeError(f"{name} is refused: {error}") from None
        if OWN in (recipe.dataset, recipe.model):
            raise QuadspikeError(f"{name} is refused: a sweep has no network or data of your own")
        return cls(name, recipe)


def _short(name: str) -> str:
    """The name itself, or its beginning and a fingerprint of it where it is too long."""
    if len(name.encode()) <= _LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return name.encode()[: _LONGEST - 9].decode(errors="ignore") + f"-{digest}"


def settings(
    base: Recipe,
    over: Mapping[str, Sequence[Any]] | None = None,
    also: Iterable[Mapping[str, Any]] = (),
) -> list[Setting]:
    """Every combination of the values in `over`, then those of `also`; a recipe once.

    Without `over` there are only those of `also`.

    >>> recipe = Recipe("mine", "digits", "mlp")
    >>> found = settings(recipe, {"neuron": ["qif", "lif"], "lr": [0.1]}, [{"window": "mean"}])
    >>> [setting.name for setting in found]
    ['neuron-qif_lr-0.1', 'neuron-lif_lr-0.1', 'window-mean']
    """
    over = over or {}
    for given, what in ((also, "also"), *((values, field) for field, values in over.items())):
        if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
            raise QuadspikeError(f"{what} takes a list, got {given!r}; write [{given!r}]")
    combined = [dict(zip(over, values, strict=True)) for values in product(*over.values())]
    found: list[Setting] = []
    refused: list[str] = []
    for fields in (*(combined if over else ()), *also):
        try:
            setting = Setting.of(base, fields)
        except QuadspikeError as error:
            refused.append(str(error))
            continue
        if all(setting.recipe != other.recipe for other in found):
            found.append(setting)
    if refused:
        others = len(refused) - 1
        more = f" (and {others} more {'is' if others == 1 else 'are'} refused)" if others else ""
        raise QuadspikeError(refused[0] + more)
    if not found:
        raise QuadspikeError(
            "a sweep needs something to vary: --over FIELD=VALUE,VALUE or --also FIELD=VALUE"
        )
    return found


def _text(value: Any) -> str:
    """As a file and a record may be called.

    >>> [_text(value) for value in (None, True, 1.0, 1e20, 1e-5, "mean", {"a": 0.3, "u2": -1.0})]
    ['null', 'true', '1', '1e20', '1e-05', 'mean', 'a-0.3_u2--1']
    """
    if isinstance(value, Mapping):
        return "_".join(f"{name}-{_text(own)}" for name, own in value.items()) or "none"
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value).replace("+", "")
