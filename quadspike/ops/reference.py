"""The truth: the soma's arithmetic, one step after the other, under autograd.

Computes in float32 (float64 for float64 input) whatever the storage type, and never uses
a neuron's handwritten partials, so that each checks the other.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from quadspike.errors import QuadspikeError
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
    """Spikes, or spikes plus residual, `[T*B, ...]` in the input's dtype."""
    state: State
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
    scale: Tensor | None = None,
    shift: Tensor | None = None,
    residual: Tensor | None = None,
    place: ResidualPlace = "before",
    state: State | None = None,
    taps: Taps | None = None,
) -> SomaResult:
    """Affine, residual and neuron over `steps` steps of `x [T*B, C, ...]`.

    `x` may hold a single step, `[B, C, ...]`: every step then sees it, without a copy.
    `scale` and `shift` are `[1 or T, C]`. The residual joins the current before the neuron,
    or the spikes after it.
    """
    dtype = compute_dtype(x)
    inputs = x.view(-1, batch, *x.shape[1:])
    residuals = None if residual is None else residual.view(-1, batch, *x.shape[1:])
    start = state.step if state else 0
    p, s = neuron.constants(), neuron.surrogate.constants(neuron)
    rest = torch.zeros_like(inputs[0], dtype=dtype)  # in the input's memory layout
    u, o = (rest, rest) if state is None else (state.u, state.o)
    outputs, membranes, spikes = [], [], []
    for t in range(steps):
        current = _step(inputs, t).to(dtype)
        if scale is not None and shift is not None:
            current = _row(scale, start + t, current) * current + _row(shift, start + t, current)
        if residuals is not None and place == "before":
            current = current + _step(residuals, t)
        p_t, s_t = _at(p, start + t, current), _at(s, start + t, current)
        u = neuron.advance(u, o.detach() if neuron.detach_reset else o, current, p_t)
        o = Spike.apply(neuron.excess(u, p_t), neuron.fire(u, p_t), neuron.surrogate, s_t)
        out = o
        if residuals is not None and place == "after":
            out = o + _step(residuals, t)
        outputs.append(out.to(x.dtype))
        if taps:
            membranes.append(u)
            spikes.append(o)
    seen = _look(neuron, membranes, spikes, start, taps) if taps else {}
    return SomaResult(torch.cat(outputs), State(u, o, start + steps), seen)


class Spike(torch.autograd.Function):
    """The step forward, the surrogate backward."""

    @staticmethod
    def forward(ctx: Any, excess: Tensor, fired: Tensor, surrogate: Any, s: Any) -> Tensor:
        ctx.save_for_backward(excess)
        ctx.surrogate, ctx.s = surrogate, s
        # A membrane that is no longer a number must not pass as a silent one.
        return fired.to(excess.dtype) + (excess - excess)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        (excess,) = ctx.saved_tensors
        return grad * ctx.surrogate.derivative(excess, ctx.s), None, None, None


def compute_dtype(x: Tensor) -> torch.dtype:
    """The type the reference computes in: at least float32."""
    return torch.promote_types(x.dtype, torch.float32)


def _step(x: Tensor, t: int) -> Tensor:
    return x[t] if x.shape[0] > 1 else x[0]


def _row(values: Tensor, step: int, like: Tensor) -> Tensor:
    """The row of `[1 or T, C]` for a step, shaped to broadcast over `[B, C, ...]`."""
    if values.shape[0] > 1 and step >= values.shape[0]:
        raise QuadspikeError(
            f"step {step + 1} was asked for, but this layer has parameters for "
            f"{values.shape[0]} steps; start anew, or use parameters shared by all steps"
        )
    row = values[step] if values.shape[0] > 1 else values[0]
    return row.to(like.dtype).view(-1, *[1] * (like.ndim - 2))


def _at(constants: Any, step: int, like: Tensor) -> Any:
    """Named constants at one step: numbers as they are, tensors shaped to broadcast."""

    def pick(value: Any) -> Any:
        if not isinstance(value, Tensor) or value.ndim == 0:
            return value
        return _row(value if value.ndim == 2 else value[None], step, like)

    return type(constants)(*map(pick, constants))


class _Edges(NamedTuple):
    low: Any
    high: Any


def _look(
    neuron: Any, membranes: list[Tensor], spikes: list[Tensor], start: int, taps: Taps
) -> dict[str, Tensor]:
    edges = neuron.surrogate.window(neuron) if "window" in taps.kinds else (0.0, 0.0)

    def inside(u: Tensor, t: int) -> Tensor:
        low, high = _at(_Edges(*edges), start + t, u)
        within: Tensor = (u >= low) & (u <= high)
        return within.to(u.dtype).mean()

    look = {
        "rate": lambda u, o, t: o.abs().mean(),
        "mean": lambda u, o, t: u.mean(),
        "window": lambda u, o, t: inside(u, t),
        "largest": lambda u, o, t: u.abs().amax(),
        "finite": lambda u, o, t: torch.isfinite(u).all(),
        "histogram": lambda u, o, t: _histogram(u, taps),
        "membrane": lambda u, o, t: u,
        "spikes": lambda u, o, t: o,
    }
    return {
        kind: torch.stack([look[kind](u, spikes[t], t) for t, u in enumerate(membranes)])
        for kind in taps.kinds
        if kind in look
    }


def _histogram(u: Tensor, taps: Taps) -> Tensor:
    """Counts in equal bins; what lies outside falls in the first or the last."""
    place = (u.detach() - taps.low) * (taps.bins / (taps.high - taps.low))
    index = place.nan_to_num(0.0).floor().clamp(0, taps.bins - 1).long()
    counts = torch.zeros(taps.bins, dtype=torch.int64, device=u.device)
    return counts.scatter_add_(0, index.flatten(), torch.ones_like(index).flatten())
