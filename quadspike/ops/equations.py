"""Neurons and surrogates by a string, since an operator takes only tensors, numbers and names."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from quadspike.constant import constant
from quadspike.errors import QuadspikeError
from quadspike.ops import lines

_METHODS = ("advance", "advance_partials", "excess", "excess_partials", "fire")


class Known(NamedTuple):
    """A neuron and a surrogate, and the names of their constants in order."""

    neuron: Any
    surrogate: Any
    neuron_fields: tuple[str, ...]
    surrogate_fields: tuple[str, ...]

    def place(self, field: str) -> int:
        """Where one of the neuron's constants is; -1 for one it does not have."""
        return self.neuron_fields.index(field) if field in self.neuron_fields else -1


_known: dict[str, Known] = {}
_names: dict[Known, str] = {}


@constant
def register(
    neuron: type,
    surrogate: type,
    neuron_fields: tuple[str, ...],
    surrogate_fields: tuple[str, ...],
    passing: bool = False,
    graded: bool = False,
) -> str:
    """The name of this pair; the same pair has the same name for the whole process.

    With `passing` the membrane is its input, and only firing is the neuron's own; with `graded`
    the neuron emits its grade.
    """
    kind = _graded(neuron) if graded else neuron
    kind = _passing(kind) if passing else kind
    entry = Known(kind, surrogate, neuron_fields, surrogate_fields)
    if entry not in _names:
        name = f"{kind.__module__}.{kind.__qualname__}/{surrogate.__qualname__}"
        # Classes of one name, as a notebook makes them when a cell runs again, are told apart.
        name = f"{name}#{len(_known)}" if name in _known else name
        _known[name], _names[entry] = entry, name
    return _names[entry]


@cache
def _passing(neuron: type) -> type:
    lines = {"advance": staticmethod(_pass), "advance_partials": staticmethod(_pass_partials)}
    return type(f"Passing{neuron.__name__}", (neuron,), {"__module__": neuron.__module__, **lines})


@cache
def _graded(neuron: Any) -> type:
    lines = {
        "fire": staticmethod(neuron.grade),
        "excess": staticmethod(neuron.grade_excess),
        "excess_partials": staticmethod(neuron.grade_excess_partials),
    }
    return type(f"Graded{neuron.__name__}", (neuron,), {"__module__": neuron.__module__, **lines})


def _pass(u: Any, o: Any, x: Any, p: Any) -> Any:
    return x


def _pass_partials(u: Any, o: Any, x: Any, p: Any) -> tuple[Any, ...]:
    return 0.0, 0.0, 1.0, 0.0


def find(name: str) -> Known:
    """The pair registered under `name`."""
    if name not in _known:
        raise QuadspikeError(f"no neuron and surrogate are registered as {name!r} in this process")
    return _known[name]


@cache
def obstacle(neuron: Any, surrogate: Any) -> str:
    """Why the kernels cannot run a neuron with a surrogate; empty if they can."""
    for owner, name in [*((neuron, name) for name in _METHODS), (surrogate, "derivative")]:
        try:
            lines.read(getattr(owner, name))
        except lines.UnknownLineError as error:
            return f"{owner.__name__}.{name}: {error}"
    return ""


@cache
def missing(neuron: Any) -> str:
    """What a neuron lacks beside its own lines; empty if it has all.

    Those that a class inherits are of the lines beside them, not of its own.
    """
    for line in ("advance", "excess"):
        for kind in neuron.__mro__:
            if f"{line}_partials" in vars(kind):
                break
            if line in vars(kind):
                return f"{neuron.__name__} has no {line}_partials for its own {line}"
    mixers = [kind for kind in neuron.__mro__ if "mix" in vars(kind)]
    if len(mixers) > 1 and not neuron.in_parts:
        return f"{neuron.__name__} mixes currents, and its in_parts does not say why"
    return ""
