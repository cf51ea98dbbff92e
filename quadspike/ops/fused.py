"""The soma through the fused operator: the same arguments as the reference, the same results."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from quadspike.draws import Draws
from quadspike.ops import equations, layout
from quadspike.ops.constants import at_step, rows
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
    backend: str,
) -> SomaResult:
    """As `reference.soma`, with a batch normalisation's statistics inside the operator."""
    if x.ndim == 1:  # no channel axis: one channel
        lone = None if state is None else State(state.u[:, None], state.o[:, None], state.step)
        options: dict[str, Any] = {"taps": taps, "keep_state": keep_state, "backend": backend}
        options |= {"state": lone, "draws": draws}
        wide = soma(x[:, None], neuron, steps=steps, batch=batch, **options)
        return _without_channels(wide)
    x = layout.settle(x)
    last = layout.has_channels_last(x)
    start = state.step if state else 0
    p, s = neuron.constants(), neuron.surrogate.constants(neuron)
    tensors, numbers, kinds = _sorted(p, s, start, steps)
    terms, scale, shift = _terms(norm, x, steps * batch // x.shape[0])
    gain = terms.gain if terms else 1.0
    keep = steps if taps else int(keep_state)
    arguments = Arguments(
        x=x,
        residual=None if residual is None else layout.settle(residual, last),
        scale=_rows(scale, start, steps),
        shift=_rows(shift, start, steps),
        gain=gain if isinstance(gain, Tensor) else None,
        running_mean=terms.running[0] if terms and terms.running else None,
        running_var=terms.running[1] if terms and terms.running else None,
        initial_u=None if state is None else layout.settle(state.u, last),
        initial_o=None if state is None else layout.settle(state.o, last),
        start=draws.start if draws else None,
        constants=tensors,
        numbers=numbers,
        kinds=kinds,
        equation=equations.register(type(neuron), type(neuron.surrogate), p._fields, s._fields),
        mode=_mode(terms, scale),
        place=place,
        steps=steps,
        batch=batch,
        keep=keep,
        gain_number=1.0 if isinstance(gain, Tensor) else float(gain),
        eps=terms.eps if terms else 0.0,
        counter=draws.at(start).counter if draws else 0,
        samples=draws.samples if draws else 0,
        sync=terms.sync if terms else False,
        detach_reset=neuron.detach_reset,
        backend=backend,
    )
    out, membrane, moments, _ = soma_operator(*arguments)
    if terms and not terms.running:
        norm.track(moments[0], moments[1])
    if not keep:
        return SomaResult(out, None, {})
    membranes = membrane.unflatten(0, (keep, batch)).unbind(0)
    first = start + steps - keep
    spikes = [
        spike(neuron, u, at_step(p, t, u), at_step(s, t, u), draws.at(t) if draws else None)
        for t, u in enumerate(membranes, first)
    ]
    seen = look(neuron, membranes, spikes, start, taps) if taps else {}
    return SomaResult(out, State(membranes[-1], spikes[-1], start + steps), seen)


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


def _sorted(p: Any, s: Any, start: int, steps: int) -> tuple[list[Tensor], list[float], str]:
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
            if value.ndim == 2:
                value = rows(value, start, steps)
                value = value[0] if value.shape[0] == 1 else value
            tensors.append(value.contiguous())
            letters += "lcs"[value.ndim]
        kinds.append(letters)
    return tensors, numbers, "|".join(kinds)


def _without_channels(result: SomaResult) -> SomaResult:
    state = result.state
    if state is not None:
        state = State(state.u[:, 0], state.o[:, 0], state.step)
    whole = {"membrane", "spikes"}
    seen = {kind: v[:, :, 0] if kind in whole else v for kind, v in result.seen.items()}
    return SomaResult(result.out[:, 0], state, seen)
