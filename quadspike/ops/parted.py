"""A soma in parts: where something must know whole steps before there can be a spike.

The currents of all steps come first, and a neuron may mix them. Behind a norm of the membrane
every step then moves the membrane, and fires by what the norm makes of it. Each part is the fused
operator; what passes between the parts lies in memory, in the type of computation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from quadspike.ops import fused
from quadspike.ops.constants import at_step
from quadspike.ops.look import look
from quadspike.ops.reference import ResidualPlace, SomaResult
from quadspike.state import State
from quadspike.taps import Taps


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
    keep_state: bool = True,
    backend: str,
) -> SomaResult:
    """As `reference.soma`."""
    made = fused.operate(
        x,
        neuron,
        steps=steps,
        batch=batch,
        start=state.step if state else 0,
        norm=norm,
        residual=residual if place == "before" else None,
        keep=steps,
        emit=False,
        passing=True,
        backend=backend,
    )
    currents = neuron.mix(made.membranes)
    after = residual if place == "after" else None
    if norm is not None and norm.membrane is not None:
        result = _step_by_step(currents, neuron, norm.membrane, after, state, taps, backend)
    else:
        result = fused.soma(
            torch.cat(tuple(currents)),
            neuron,
            steps=steps,
            batch=batch,
            residual=after,
            place=place,
            state=state,
            taps=taps,
            keep_state=keep_state,
            backend=backend,
        )
    return result._replace(out=result.out.to(x.dtype))


def _step_by_step(
    currents: Iterable[Tensor],
    neuron: Any,
    norm: Any,
    after: Tensor | None,
    state: State | None,
    taps: Taps | None,
    backend: str,
) -> SomaResult:
    """The neuron fires by what `norm` makes of each step's membranes; the reset acts on them."""
    u, o = (state.u, state.o) if state else (None, None)
    step = state.step if state else 0
    p, first = neuron.constants(), step
    looked = taps.without("mean") if taps else None
    wants_mean = taps is not None and "mean" in taps.kinds
    outputs, membranes, spikes, means = [], [], [], []
    for current in currents:
        one: dict[str, Any] = {"steps": 1, "batch": len(current), "start": step, "backend": backend}
        moved = fused.operate(current, neuron, before=(u, o), keep=1, emit=False, **one)
        (u,) = moved.membranes
        options: dict[str, Any] = {"keep": int(looked is not None), "mean": wants_mean}
        fired = fused.operate(u, neuron, norm=norm, passing=True, **options, **one)
        o = fired.out
        outputs.append(at_step(p, step, o).emitted * o if "emitted" in p._fields else o)
        membranes += fired.membranes
        spikes.append(o)
        means.append(fired.mean)
        step += 1
    seen = {"mean": torch.cat(means)} if wants_mean else {}
    if looked:
        seen |= look(neuron, membranes, spikes, first, looked)
    assert u is not None
    assert o is not None
    if after is not None:
        rests = after.split(len(u))
        outputs = [out + rests[t % len(rests)] for t, out in enumerate(outputs)]
    return SomaResult(torch.cat(outputs), State(u, o, step), seen)
