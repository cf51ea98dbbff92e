"""The soma through the fused operator: the same arguments as the reference, the same results."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from quadspike.draws import Draws
from quadspike.ops import equations, layout
from quadspike.ops.constants import at_step, for_channels, rows
from quadspike.ops.look import look
from quadspike.ops.reference import ResidualPlace, SomaResult, spike
from quadspike.ops.registration import soma as soma_operator
from quadspike.ops.signature import Arguments
from quadspike.state import State
from quadspike.taps import Taps


class Normalisation(NamedTuple):
    """A batch normalisation the operator can do itself: `weight gain (x - mean) / std + bias`.

    Weight and bias are `[C]` or `[T, C]`. Statistics are the batch's, of all workers if `sync`,
    unless `running` gives mean and variance.
    """

    weight: Tensor
    bias: Tensor
    gain: float | Tensor
    eps: float
    running: tuple[Tensor, Tensor] | None
    sync: bool


class Operated(NamedTuple):
    """What the operator returns, asked for or empty."""

    out: Tensor
    """`[T*B, C, ...]`."""
    membranes: tuple[Tensor, ...]
    """The last, or all, `[B, C, ...]` each in the type of computation."""
    mean: Tensor
    """`[T]`."""


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
    keep_state: bool = True,
    emit: torch.dtype | None = None,
    backend: str,
) -> SomaResult:
    """As `reference.soma`, with a batch normalisation's statistics inside the operator.

    The output is of the type `emit`, or x's.
    """
    start = state.step if state else 0
    looked = taps.without("mean") if taps else None
    keep = steps if looked else int(keep_state)
    made = operate(
        x,
        neuron,
        steps=steps,
        batch=batch,
        start=start,
        norm=norm,
        residual=residual,
        place=place,
        before=(state.u, state.o) if state else (None, None),
        keep=keep,
        mean=taps is not None and "mean" in taps.kinds,
        emit=emit or x.dtype,
        draws=draws,
        backend=backend,
    )
    seen = {"mean": made.mean} if taps and "mean" in taps.kinds else {}
    if not keep:
        return SomaResult(made.out, None, seen)
    p, s = neuron.constants(), neuron.firing_slope.constants(neuron)
    first = start + steps - keep
    spikes = [
        spike(neuron, u, at_step(p, t, u), at_step(s, t, u), draws.at(t) if draws else None)
        for t, u in enumerate(made.membranes, first)
    ]
    if looked:
        seen |= look(neuron, made.membranes, spikes, start, looked)
    return SomaResult(made.out, State(made.membranes[-1], spikes[-1], start + steps), seen)


def operate(
    x: Tensor,
    neuron: Any,
    *,
    steps: int,
    batch: int,
    start: int,
    norm: Any = None,
    residual: Tensor | None = None,
    place: ResidualPlace = "before",
    before: tuple[Tensor | None, Tensor | None] = (None, None),
    keep: int = 0,
    mean: bool = False,
    emit: torch.dtype | None,
    passing: bool = False,
    draws: Draws | None = None,
    backend: str,
) -> Operated:
    """Steps of the operator from step `start` on, where u and o were as `before` says.

    With `passing` the membrane is the normalised input itself: the neuron only fires by it, and
    its spikes are emitted plain. `emit` is the output's type, None for none.
    """
    x = layout.settle(x)
    last = layout.has_channels_last(x)
    p, s = neuron.constants(), neuron.firing_slope.constants(neuron)
    fields, values = _firing(p) if passing else (p._fields, tuple(p))
    tensors, numbers, kinds = _sorted(values, s, start, steps, x.shape[1])
    terms, scale, shift = _terms(norm, x, steps * batch // x.shape[0])
    gain = terms.gain if terms else 1.0
    u, o = (None if value is None else layout.settle(value, last) for value in before)
    arguments = Arguments(
        x=x,
        residual=None if residual is None else layout.settle(residual, last),
        scale=_rows(scale, start, steps),
        shift=_rows(shift, start, steps),
        gain=gain if isinstance(gain, Tensor) else None,
        running_mean=terms.running[0] if terms and terms.running else None,
        running_var=terms.running[1] if terms and terms.running else None,
        initial_u=u,
        initial_o=o,
        start=draws.start if draws else None,
        constants=tensors,
        numbers=numbers,
        kinds=kinds,
        equation=equations.register(
            type(neuron), type(neuron.firing_slope), fields, s._fields, passing, neuron.graded
        ),
        mode=_mode(terms, scale),
        place=place,
        steps=steps,
        batch=batch,
        keep=keep,
        mean=mean,
        emit=emit,
        gain_number=1.0 if isinstance(gain, Tensor) else float(gain),
        eps=terms.eps if terms else 0.0,
        counter=draws.at(start).counter if draws else 0,
        samples=draws.samples if draws else 0,
        sync=terms.sync if terms else False,
        detach_reset=neuron.detach_reset,
        backend=backend,
    )
    out, membrane, means, moments, _ = soma_operator(*arguments)
    if terms and not terms.running:
        norm.track(moments[0], moments[1])
    # Split rather than unbound: their gradients join in the layout they have.
    return Operated(out, membrane.split(batch) if keep else (), means)


def _firing(p: Any) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """The constants firing reads, the threshold first: it alone learns by them."""
    read = {name: value for name, value in zip(p._fields, p, strict=True) if name != "emitted"}
    learned = {name: read.pop(name) for name in ("u_th",) if name in read}
    fixed = {name: v.detach() if isinstance(v, Tensor) else v for name, v in read.items()}
    return (*learned, *fixed), (*learned.values(), *fixed.values())


def _terms(
    norm: Any, x: Tensor, repeats: int
) -> tuple[Normalisation | None, Tensor | None, Tensor | None]:
    """A norm for the operator to do, with its weight and bias; or scale and shift already made."""
    if norm is None:
        return None, None, None
    terms: Normalisation | None = norm.terms(x)
    return (None, *norm.affine(x, repeats)) if terms is None else (terms, terms.weight, terms.bias)


def _mode(terms: Normalisation | None, scale: Tensor | None) -> str:
    if terms:
        return "running" if terms.running else "batch"
    return "none" if scale is None else "given"


def _rows(values: Tensor | None, start: int, steps: int) -> Tensor | None:
    """Those of a norm, `[C]` or `[1 or T, C]`."""
    if values is None:
        return None
    shared = values.ndim == 1 or len(values) == 1
    return (torch.atleast_2d(values) if shared else rows(values, start, steps)).contiguous()


def _sorted(
    p: Any, s: Any, start: int, steps: int, channels: int
) -> tuple[list[Tensor], list[float], str]:
    """Tensors and numbers of the constants apart, and a letter for each."""
    tensors: list[Tensor] = []
    numbers: list[float] = []
    kinds = []
    for part in (p, s):
        letters = ""
        for value in part:
            if not isinstance(value, Tensor):
                numbers.append(float(value))
                letters += "n"
                continue
            value = for_channels(value, channels)
            if value.ndim == 2:
                value = rows(value, start, steps)
                value = value[0] if value.shape[0] == 1 else value
            tensors.append(value.contiguous())
            letters += "lcs"[value.ndim]
        kinds.append(letters)
    return tensors, numbers, "|".join(kinds)
