"""Which neuron, norm, surrogate, loss and training aid go together, by name.

Every part is independent of the others, so a rule is a reason why two of them make no sense
together. What no rule objects to is allowed, the odd and the untried included: LSG with another
surrogate than its own is an ablation, not a mistake.
"""

from __future__ import annotations

from typing import NamedTuple

from quadspike.errors import QuadspikeError
from quadspike.losses import LOSSES
from quadspike.neurons import NEURONS, Neuron
from quadspike.neurons.base import has_closed_form
from quadspike.norms import NORMS
from quadspike.surrogates import SURROGATES

FROM_STATISTICS = ("window", "learned-width")
"""Surrogates whose width is that of the membrane's distribution."""


class Parts(NamedTuple):
    """A choice of each; a surrogate of None is the neuron's own."""

    neuron: str
    norm: str | None = "tdbn"
    surrogate: str | None = None
    loss: str = "ce"
    aid: str | None = None
    window: str | float | None = None
    backend: str = "auto"
    stages: bool = True
    """Whether the network has stages, for heads after them."""
    static: bool = True
    """Whether an image is shown at every step, and no recording."""
    fewer_steps: bool = False
    """Whether training shows fewer time steps than inference."""


def check(parts: Parts) -> None:
    """Refuse parts that make no sense together, with the reason."""
    if reason := objection(parts):
        raise QuadspikeError(reason)


def objection(parts: Parts) -> str:
    """Why the parts make no sense together; empty if they do.

    >>> objection(Parts("qif", loss="im", aid="imp"))
    ''
    >>> objection(Parts("lif", aid="sml", stages=False))[:42]
    "aid='sml' puts heads after a network's sta"
    """
    return next((reason for rule in _RULES if (reason := rule(parts))), "")


def _statistics(parts: Parts) -> str:
    if parts.window is None and parts.surrogate not in FROM_STATISTICS:
        return ""
    if parts.neuron not in NEURONS or has_closed_form(NEURONS[parts.neuron]):
        return ""
    able = [name for name, kind in NEURONS.items() if has_closed_form(kind) and _fires_at_one(name)]
    return (
        f"{_asked(parts)} is made from the mean and spread of the membrane, of which "
        f"{parts.neuron!r} has no closed form; choose another surrogate, or a neuron that has "
        f"one: {', '.join(able)}"
    )


def _fires_at_one(neuron: str) -> bool:
    """Whether the neuron spikes past one threshold, as most do."""
    return neuron not in NEURONS or NEURONS[neuron].fire is Neuron.fire


def _asked(parts: Parts) -> str:
    """Where a gradient shall pass, as it was given."""
    if parts.window is not None:
        return f"window={parts.window!r}"
    return f"surrogate={parts.surrogate!r}"


def _one_threshold(parts: Parts) -> str:
    if _fires_at_one(parts.neuron):
        return ""
    if parts.surrogate not in (None, "rectangle") or parts.window is not None:
        return (
            f"{_asked(parts)} has its peak at one threshold, and {parts.neuron!r} has two, at "
            "-u_th and u_th; leave it out for the neuron's own, or use surrogate='rectangle'"
        )
    if parts.loss == "im":
        return (
            f"loss='im' draws the mean membrane to one threshold, and {parts.neuron!r} has two, at "
            "-u_th and u_th, between which its mean belongs; use ce, tet or lts"
        )
    return ""


def _stationary(parts: Parts) -> str:
    learns = parts.neuron in NEURONS and NEURONS[parts.neuron].learned
    if parts.window != "stationary" or not learns:
        return ""
    return (
        f"window='stationary' comes from a density that is solved once, and the constants of "
        f"{parts.neuron!r} change with every step; use window='mean' or 'threshold'"
    )


def _normalised_membrane(parts: Parts) -> str:
    if parts.loss != "im" or parts.norm != "mpbn":
        return ""
    return (
        "loss='im' draws the mean membrane to the threshold, and norm='mpbn' normalises the "
        "membrane before it meets the threshold: its own bias sets that mean; use another of the "
        "two"
    )


def _fused(parts: Parts) -> str:
    if parts.backend in ("auto", "reference"):
        return ""
    chosen = [
        (f"neuron={parts.neuron!r}", NEURONS.get(parts.neuron)),
        (f"surrogate={parts.surrogate!r}", SURROGATES.get(parts.surrogate or "")),
        (f"norm={parts.norm!r}", NORMS.get(parts.norm or "")),
    ]
    for asked, kind in chosen:
        if kind is not None and kind.only_reference:
            return (
                f"{asked} runs on the reference only, not on backend={parts.backend!r}: "
                f"{kind.only_reference}; use backend='auto'"
            )
    surrogate = SURROGATES.get(parts.surrogate or "")
    if parts.backend == "vectorised" and surrogate is not None and surrogate.not_vectorised:
        return (
            f"surrogate={parts.surrogate!r} does not run on backend='vectorised': "
            f"{surrogate.not_vectorised}; use backend='auto'"
        )
    return ""


def _heads(parts: Parts) -> str:
    if parts.aid not in ("sml", "shortcuts") or parts.stages:
        return ""
    return (
        f"aid={parts.aid!r} puts heads after a network's stages, and this network has none; use "
        "one with convolutions from `quadspike models`, or aid='imp'"
    )


def _later_steps(parts: Parts) -> str:
    if not parts.fewer_steps:
        return ""
    if not parts.static:
        return untrained_steps("a recording", "has a frame for each step")
    neuron, norm = NEURONS.get(parts.neuron), NORMS.get(parts.norm or "")
    if neuron is not None and neuron.per_step:
        return untrained_steps(f"neuron={parts.neuron!r}", neuron.per_step)
    if norm is not None and norm.per_step:
        return untrained_steps(f"norm={parts.norm!r}", norm.per_step)
    if LOSSES[parts.loss].readout == "last":
        return untrained_steps(f"loss={parts.loss!r}", "is for the last step alone")
    if parts.aid == "imp":
        return untrained_steps("aid='imp'", "learns from where the first step starts")
    return ""


def untrained_steps(asked: str, why: str) -> str:
    """Why training must show all steps."""
    return f"{asked} {why}, and with train_timesteps the later ones are not trained; leave it out"


_RULES = (
    _one_threshold,
    _statistics,
    _stationary,
    _normalised_membrane,
    _fused,
    _heads,
    _later_steps,
)
