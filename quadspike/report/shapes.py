"""What a JSON file holds, as typed values, or an error that names the place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from quadspike.errors import QuadspikeError

_NAMES = {int: "a whole number", str: "a text", bool: "true or false"}


def build(kind: Any, value: Any, place: str = "") -> Any:
    """`value` as `kind`: a number, a text, a tuple, a dict or a dataclass of those.

    Keys that a dataclass does not know are left aside. JSON has no NaN, so a null where a
    float belongs is one.

    >>> build(tuple[float, ...], [1, 2.5])
    (1.0, 2.5)
    >>> build(dict[str, int], {"a": "b"})
    Traceback (most recent call last):
        ...
    quadspike.errors.QuadspikeError: a must be a whole number, got 'b'
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin is UnionType:
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return None if value is None else build(inner, value, place)
    if origin is tuple:
        return _tuple(arguments, value, place)
    if origin is dict:
        items = _mapping(value, place).items()
        return {key: build(arguments[1], item, _inside(place, key)) for key, item in items}
    if is_dataclass(kind):
        return _dataclass(kind, _mapping(value, place), place)
    if kind is float:
        return _float(value, place)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _wrong(place, _NAMES[kind], value)
    return value


def _tuple(arguments: tuple[Any, ...], value: Any, place: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _wrong(place, "a list", value)
    kinds = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
    if len(kinds) != len(value):
        raise _wrong(place, f"a list of {len(kinds)}", value)
    pairs = zip(kinds, value, strict=True)
    return tuple(build(kind, item, f"{place}[{i}]") for i, (kind, item) in enumerate(pairs))


def _dataclass(kind: Any, value: Mapping[str, Any], place: str) -> Any:
    hints = _hints(kind)
    for field in fields(kind):
        required = field.default is MISSING and field.default_factory is MISSING
        if required and field.name not in value:
            raise QuadspikeError(f"{_inside(place, field.name)} is missing")
    return kind(
        **{
            name: build(hint, value[name], _inside(place, name))
            for name, hint in hints.items()
            if name in value
        }
    )


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _mapping(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(place or "it", "an object", value)
    return value


def _float(value: Any, place: str) -> float:
    if value is None:
        return math.nan
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _wrong(place, "a number", value)
    try:
        return float(value)
    except OverflowError:
        raise _wrong(place, "a number that a float can hold", "a larger one") from None


def _inside(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _wrong(place: str, wanted: str, value: Any) -> QuadspikeError:
    shown = repr(value)
    return QuadspikeError(
        f"{place} must be {wanted}, got {shown if len(shown) < 60 else shown[:57] + '...'}"
    )
