"""The truth: the soma's arithmetic, one step after the other, under autograd.

Computes in float32 (float64 for float64 input) whatever the storage type, and never uses
a neuron's handwritten partials, so that each checks the other.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from quadspike.draws import Draws
from quadspike.ops.constants import at_step, row
from quadspike.ops.look import look
from quadspike.state import State
from quadspike.taps import Taps

ResidualPlace = Literal["before", "after"]


class Moments(NamedTuple):
    """Partial statistics of a channel, `[C]` each; those of two halves can be merged."""

    n: Tensor
    mean: Tensor
    m2: Tensor
    """Sum of squared deviations from the mean."""


class SomaResult(NamedTuple):
    """What a soma gives back."""

    out: Tensor
    """What the spikes emit, and the residual if it comes after, `[T*B, ...]` in x's dtype."""
    state: State | None
    """Where the neuron stands; None from the kernels where nobody asked."""
    seen: dict[str, Tensor]


def statistics(x: Tensor) -> Moments:
    """Number, mean and squared deviations of every channel of `x [N, C, ...]`."""
    wide = x.to(compute_dtype(x))
    axes = [axis for axis in range(x.ndim) if axis != 1]
    variance, mean = torch.var_mean(wide, dim=axes, correction=0)
    n = mean.new_full((), x.numel() // x.shape[1])
    return Moments(n, mean, variance * n)


def soma(
    x: Tensor,
    neuron: Any,
    *,
    steps: int,
    batch: int,
    norm: Any = None,
    residual: Tensor | None = None,
    place: ResidualPlace = "before",
    state: State | None = None,
    taps: Taps | None = None,
    draws: Draws | None = None,
) -> SomaResult:
    """Norm, residual and neuron over `steps` steps of `x [T*B, C, ...]`.

    `x` may hold a single step, `[B, C, ...]`: every step then sees it, without a copy.
    The norm's `affine` gives scale and shift as `[1 or T, C]`, and its norm of the membrane, if
    it has one, makes what the neuron fires by. The residual joins the current before the neuron,
    or the output after it. The output is the spikes, or their product with the constant `emitted`
    of a neuron that has one; state and taps keep the plain spikes. A surrogate that draws takes
    `draws`.
    """
    dtype = compute_dtype(x)
    # Once for all steps: a gradient that comes from several is summed as wide as that too.
    wide = x.to(dtype)
    scale = shift = None
    if norm is not None:
        scale, shift = norm.affine(wide, repeats=steps * batch // x.shape[0])
    inputs = wide.view(-1, batch, *x.shape[1:])
    residuals = None if residual is None else residual.to(dtype).view(-1, batch, *x.shape[1:])
    start = state.step if state else 0
    p, s = neuron.constants(), neuron.firing_slope.constants(neuron)
    rest = torch.zeros_like(inputs[0])  # in the input's memory layout
    u, o = (rest, rest) if state is None else (state.u, state.o)
    outputs, membranes, spikes = [], [], []

    def current_at(t: int) -> Tensor:
        current = _step(inputs, t)
        if scale is not None and shift is not None:
            current = row(scale, start + t, current) * current + row(shift, start + t, current)
        if residuals is not None and place == "before":
            current = current + _step(residuals, t)
        return current

    for t, current in enumerate(neuron.mix(map(current_at, range(steps)))):
        p_t, s_t = at_step(p, start + t, current), at_step(s, start + t, current)
        u = neuron.advance(u, o.detach() if neuron.detach_reset else o, current, p_t)
        seen_u = _normalised(u, norm)
        o = spike(neuron, seen_u, p_t, s_t, draws.at(start + t) if draws else None)
        out = p_t.emitted * o if "emitted" in p_t._fields else o
        if residuals is not None and place == "after":
            out = out + _step(residuals, t)
        outputs.append(out.to(x.dtype))
        if taps:
            membranes.append(seen_u)
            spikes.append(o)
    seen = look(neuron, membranes, spikes, start, taps) if taps else {}
    return SomaResult(torch.cat(outputs), State(u, o, start + steps), seen)


def _normalised(u: Tensor, norm: Any) -> Tensor:
    """The membranes of one step as the neuron fires by them."""
    if norm is None or norm.membrane is None:
        return u
    scale, shift = norm.membrane.affine(u)
    return row(scale, 0, u) * u + row(shift, 0, u)


def spike(neuron: Any, u: Tensor, p: Any, s: Any, draws: Draws | None) -> Tensor:
    """The spikes of membranes `u`, and the gradient that passes them."""
    fired, v = neuron.firing(u, p), neuron.firing_excess(u, p)
    spikes: Tensor = Spike.apply(v, fired, neuron.firing_slope, s, draws)
    return spikes


class Spike(torch.autograd.Function):
    """The step forward, the surrogate backward."""

    @staticmethod
    def forward(
        ctx: Any, excess: Tensor, fired: Tensor, surrogate: Any, s: Any, draws: Draws | None
    ) -> Tensor:
        ctx.save_for_backward(excess)
        ctx.surrogate, ctx.s, ctx.draws = surrogate, s, draws
        # A membrane that is no longer a number must not pass as a silent one.
        return fired.to(excess.dtype) + (excess - excess)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (excess,) = ctx.saved_tensors
        return grad * ctx.surrogate.slope(excess, ctx.s, ctx.draws), None, None, None, None


def compute_dtype(x: Tensor) -> torch.dtype:
    """The type the reference computes in: at least float32."""
    return torch.promote_types(x.dtype, torch.float32)


def _step(x: Tensor, t: int) -> Tensor:
    return x[t] if x.shape[0] > 1 else x[0]
