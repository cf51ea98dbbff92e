"""One time step of a soma as a program, forward and backward."""

from __future__ import annotations

from functools import cache, lru_cache
from types import SimpleNamespace
from typing import Any, NamedTuple

from torch import Tensor

from quadspike.ops import equations
from quadspike.ops.signature import Arguments
from quadspike.ops.vectorised.program import Program
from quadspike.ops.vectorised.tape import Number, Tape, Value


class Lines(NamedTuple):
    """What decides the arithmetic of a step; constants that are tensors have no number."""

    equation: str
    p: tuple[float | None, ...]
    s: tuple[float | None, ...]
    affine: bool
    residual: str | None
    rest: bool
    """Whether membrane and spikes before this step are 0."""

    @classmethod
    def of(cls, a: Arguments, rest: bool) -> Lines:
        p, s = (
            tuple(None if isinstance(value, Tensor) else value for value in part)
            for part in a.values()
        )
        place = a.place if a.residual is not None else None
        return cls(a.equation, p, s, a.mode != "none", place, rest)


class _Recorded:
    """A tape with the leaves every program begins with."""

    def __init__(self, lines: Lines) -> None:
        self.tape = Tape()
        known = equations.find(lines.equation)
        self.neuron, self.surrogate = known.neuron, known.surrogate
        self.u: Any = Number(0.0) if lines.rest else self.tape.input()
        self.o: Any = Number(0.0) if lines.rest else self.tape.input()
        self.x = self.tape.input()
        self.r = self.tape.input() if lines.residual else None
        self.scale = self.tape.constant() if lines.affine else None
        self.current: Any = self.x
        if self.scale is not None:
            self.current = self.x * self.scale + self.tape.constant()
        if lines.residual == "before":
            self.current = self.current + self.r
        self.p = self._named(known.neuron_fields, lines.p)
        self.s = self._named(known.surrogate_fields, lines.s)

    def _named(self, fields: tuple[str, ...], values: tuple[float | None, ...]) -> Any:
        read = (self.tape.constant() if value is None else value for value in values)
        return SimpleNamespace(**dict(zip(fields, read, strict=True)))


@lru_cache(maxsize=256)
def forward_step(lines: Lines, visible: bool = True) -> Program:
    """From u, o, x and the residual (u and o unless at rest) to u and o.

    `visible` is for others to see: a spike of a membrane that is no number is no number either,
    and the output is a third result where it is not o (see `emits`).
    """
    at = _Recorded(lines)
    u = at.neuron.advance(at.u, at.o, at.current, at.p)
    o = at.neuron.fire(u, at.p)
    if not visible:
        return Program(at.tape, [u, o])
    o = o.also_if_not_finite(u)
    if not emits(lines):
        return Program(at.tape, [u, o])
    out = o * getattr(at.p, "emitted", 1.0)
    return Program(at.tape, [u, o, out + at.r if lines.residual == "after" else out])


def emits(lines: Lines) -> bool:
    """Whether the output is something else than the spikes."""
    return lines.residual == "after" or equations.find(lines.equation).place("emitted") >= 0


class Asked(NamedTuple):
    """Which gradients a step passes on, and what it is given besides the forward's inputs."""

    out: bool
    """A gradient of the output."""
    later: bool
    """Gradients of u and o from the step after it."""
    membrane: bool
    """A gradient of the membrane itself."""
    mean: bool
    """A gradient of the mean membrane, the same everywhere."""
    earlier: bool
    """Gradients of u and o for the step before it."""
    detach_reset: bool
    repeated: bool
    """Gradients of x from later steps that read the same x."""
    residual: bool
    repeated_residual: bool
    scaled: bool
    """Whether the gradient of x is multiplied by the norm's scale here, rather than later."""
    affine: bool
    """What to sum for shift and scale."""
    centered: bool
    wanted: str
    """A flag for each of the neuron's constants."""


@lru_cache(maxsize=256)
def backward_step(lines: Lines, asked: Asked) -> Program:
    """Gradients of one step.

    Inputs: the forward's, then u after the step, and as `asked` gradients: the output's, the
    membrane's, its mean's, u's and o's from later, x's and the residual's sums so far. Outputs:
    x's gradient, and as asked the residual's, two terms for shift and scale, one a constant
    wanted, and u's and o's for the step before.
    """
    at = _Recorded(lines)
    tape = at.tape
    after = tape.input()
    g_out: Any = tape.input() if asked.out else 0.0
    g_o = g_out * getattr(at.p, "emitted", 1.0)
    g_u: Any = tape.input() if asked.membrane else 0.0
    if asked.mean:
        g_u = tape.input() + g_u
    if asked.later:
        g_u = tape.input() + g_u
        if not asked.detach_reset:
            g_o = tape.input() + g_o
    v = at.neuron.excess(after, at.p)
    d_excess = at.neuron.excess_partials(after, at.p)
    g_v = g_o * at.surrogate.derivative(v, at.s)
    g_u = g_v * d_excess[0] + g_u
    d_u, d_o, d_x, *d_p = at.neuron.advance_partials(at.u, at.o, at.current, at.p)
    g_current = g_u * d_x
    g_x = g_current * at.scale if asked.scaled else g_current
    outputs = [g_x + tape.input() if asked.repeated else g_x]
    if asked.residual:
        outputs.append(g_current + tape.input() if asked.repeated_residual else g_current)
    if asked.affine:
        center = at.x - tape.constant() if asked.centered else at.x
        outputs += [g_current, g_current * center]
    fields = equations.find(lines.equation).neuron_fields
    # Constants that are never learned may come last, without a partial.
    for field, partial, flag in zip(fields, d_p, asked.wanted, strict=False):
        if flag == "1":
            share = g_u * partial
            if field == "u_th":
                share = g_v * d_excess[1] + share
            elif field == "emitted":
                share = g_out * at.neuron.fire(after, at.p) + share
            outputs.append(share)
    if asked.earlier:
        outputs += [g_u * d_u] if asked.detach_reset else [g_u * d_u, g_u * d_o]
    return Program(tape, outputs)


@lru_cache(maxsize=1)
def correction() -> Program:
    """The gradient of x behind a batch's statistics: `scale g + slope x + constant`."""
    tape = Tape()
    x, g = tape.input(), tape.input()
    scale, slope, constant = tape.constant(), tape.constant(), tape.constant()
    return Program(tape, [x * slope + constant + g * scale])


class _AnyConstants:
    """A constant for whatever name is read."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def __getattr__(self, name: str) -> Value:
        return self._tape.constant()


@cache
def obstacle(neuron: Any, surrogate: Any) -> str:
    """Why the lines of a neuron and a surrogate cannot be recorded; empty if they can."""
    tape = Tape()
    p = _AnyConstants(tape)
    try:
        u = neuron.advance(tape.input(), tape.input(), tape.input(), p)
        slope = surrogate.derivative(neuron.excess(u, p), p)
        partials = (*neuron.advance_partials(u, u, u, p), *neuron.excess_partials(u, p))
        Program(tape, [u, neuron.fire(u, p), slope, *partials])
    except Exception as error:  # whatever lines that are no plain arithmetic may raise
        return f"{neuron.__name__} with {surrogate.__name__} is not plain arithmetic: {error}"
    return ""
