"""A soma in parts: where something must know whole steps before there can be a spike.

A neuron that mixes currents needs those of all steps first. Behind a norm of the membrane every
step moves the membrane, and fires by what the norm makes of it. Each part is the fused operator;
what passes between the parts lies in memory: currents and membranes in the type of computation,
spikes, and so their gradients, in the type of the activations (grades in that of membranes).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from quadspike.draws import Draws
from quadspike.ops import fused
from quadspike.ops.constants import at_step
from quadspike.ops.look import look
from quadspike.ops.moments import statistics_by
from quadspike.ops.reference import ResidualPlace, SomaResult
from quadspike.state import State
from quadspike.taps import Taps


class _Given(NamedTuple):
    """Scale and shift, as a norm that has made them."""

    scale: Tensor
    shift: Tensor

    def terms(self, x: Tensor) -> None:
        return None

    def affine(self, x: Tensor, repeats: int) -> tuple[Tensor, Tensor]:
        return self.scale, self.shift


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
    """As `reference.soma`."""
    membrane = None if norm is None else norm.membrane
    given: dict[str, Any] = {"steps": steps, "batch": batch, "state": state, "taps": taps}
    given |= {"draws": draws, "keep_state": keep_state, "emit": x.dtype, "backend": backend}
    if neuron.in_parts:
        made = fused.operate(
            x,
            neuron,
            steps=steps,
            batch=batch,
            start=state.step if state else 0,
            norm=norm,
            residual=residual if place == "before" else None,
            keep=steps,
            emit=None,
            passing=True,
            draws=draws,
            backend=backend,
        )
        x, norm = torch.cat(tuple(neuron.mix(made.membranes))), None
        residual = residual if place == "after" else None
        if membrane is None:
            return fused.soma(x, neuron, residual=residual, place=place, **given)
    elif norm is not None:
        repeats = steps * batch // len(x)
        norm = _Given(*norm.affine(x, repeats, statistics_by(backend)))
    return _step_by_step(x, neuron, norm, membrane, residual, place, **given)


def _step_by_step(
    x: Tensor,
    neuron: Any,
    norm: Any,
    membrane: Any,
    residual: Tensor | None,
    place: ResidualPlace,
    *,
    steps: int,
    batch: int,
    state: State | None,
    taps: Taps | None,
    draws: Draws | None,
    keep_state: bool,
    emit: torch.dtype,
    backend: str,
) -> SomaResult:
    """The neuron fires by what `membrane` makes of its membranes; the reset acts on themselves."""
    start, p = state.step if state else 0, neuron.constants()
    u, o = (state.u, state.o) if state else (None, None)
    inputs, residuals = x.split(batch), () if residual is None else residual.split(batch)
    looked = taps.without("mean") if taps else None
    wants_mean = taps is not None and "mean" in taps.kinds
    seen_as: dict[str, Any] = {"keep": int(looked is not None), "mean": wants_mean}
    outputs: list[Tensor] = []
    membranes: list[Tensor] = []
    spikes: list[Tensor] = []
    means: list[Tensor] = []
    for t in range(steps):
        one: dict[str, Any] = {"steps": 1, "batch": batch, "start": start + t}
        one |= {"draws": draws, "backend": backend}
        more = residuals[t % len(residuals)] if residuals else None
        moved = fused.operate(
            inputs[t % len(inputs)],
            neuron,
            norm=norm,
            residual=more if place == "before" else None,
            before=(u, o),
            keep=1,
            emit=None,
            **one,
        )
        (u,) = moved.membranes
        # Spikes are exact in any type, and grades in their own.
        kind = u.dtype if neuron.graded else emit
        fired = fused.operate(u, neuron, norm=membrane, emit=kind, passing=True, **seen_as, **one)
        o = out = fired.out
        if "emitted" in p._fields:
            out = at_step(p, start + t, u).emitted * o.to(u.dtype)
        if more is not None and place == "after":
            out = out + more
        outputs.append(out.to(emit))
        membranes += fired.membranes
        if looked:
            spikes.append(o.to(u.dtype))
        means.append(fired.mean)
    seen = {"mean": torch.cat(means)} if wants_mean else {}
    if looked:
        seen |= look(neuron, membranes, spikes, start, looked)
    end = None
    if keep_state and u is not None and o is not None:
        end = State(u, o.to(u.dtype), start + steps)
    return SomaResult(torch.cat(outputs), end, seen)
