"""Read a CIFAR pickle as data: nothing in it is ever called or imported.

A pickle is a program that may call anything. The published ones call three names of numpy,
to build one array; here those names stand for inert records of what was asked for, and any
other name is refused.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quadspike.errors import QuadspikeError

_MODULES = ("numpy", "numpy.core.multiarray", "numpy._core.multiarray")


class _Array:
    """What a pickle says of an array."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Type(_Array):
    """What a pickle says of an array's type."""

    name: Any = None


class _Refused(Exception):  # noqa: N818 (never leaves this file)
    """A pickle that asks for something other than an array."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        stand_ins = {"_reconstruct": self._array, "dtype": self._type, "ndarray": "ndarray"}
        if module not in _MODULES or name not in stand_ins:
            raise _Refused(f"it asks for {module}.{name}, which no CIFAR file does")
        # Bound methods and a string: a pickle can set no attribute on either.
        return stand_ins[name]

    def _array(self, *ignored: Any) -> _Array:
        return _Array()

    def _type(self, name: Any, *ignored: Any) -> _Type:
        kind = _Type()
        kind.name = name
        return kind


def read_pickle(raw: bytes, where: str) -> dict[str, Any]:
    """The dictionary of a CIFAR pickle: numbers, strings, lists, and arrays of bytes.

    >>> read_pickle(pickle.dumps({"labels": [6, 9]}), "data_batch_1")
    {'labels': [6, 9]}
    """
    stream = io.BytesIO(raw)
    try:
        content = _Unpickler(stream, encoding="bytes").load()
    except Exception as error:  # a broken pickle can fail in any way
        reason = str(error) or type(error).__name__
        raise QuadspikeError(
            f"{where}: no CIFAR pickle: {reason} (near byte {stream.tell():,}); get it again"
        ) from error
    if not isinstance(content, dict):
        raise QuadspikeError(f"{where}: holds a {type(content).__name__}, not a dictionary")
    return {_text(key): _plain(value, where) for key, value in content.items()}


def _plain(value: Any, where: str) -> Any:
    return _as_array(value, where) if isinstance(value, _Array) else value


def _as_array(array: _Array, where: str) -> NDArray[np.uint8]:
    try:
        _, shape, kind, by_column, raw = array.state
        if _text(kind.name) not in ("u1", "|u1"):
            raise ValueError(f"of type {_text(kind.name)}, not bytes")
        return np.frombuffer(raw, np.uint8).reshape(shape, order="F" if by_column else "C")
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise QuadspikeError(f"{where}: holds a broken array: {error}") from error


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
