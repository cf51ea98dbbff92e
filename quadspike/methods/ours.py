"""The paper's neuron and what is built on it here."""

from __future__ import annotations

from quadspike.methods.method import NETWORKS, Figure, Method, Source
from quadspike.recipes import RECIPES

_PAPER = Source(
    "Jahns, Moreno, Stojkov, Kinsy",
    "Discretized Quadratic Integrate-and-Fire Neuron Model for Deep Spiking Neural Networks",
    "preprint",
    2025,
)
_WINDOW = (
    "The surrogate's window has the paper's width but is centred on the threshold; the paper's "
    "equation centres it on the mean membrane (`--window mean`). The paper states neither the "
    "side of the cutout nor its CIFAR10-DVS split."
)


def _figures(loss: str) -> tuple[Figure, ...]:
    """What the paper prints for QIF with that loss, as its recipes have it."""
    printed = {model: network for network, model in NETWORKS.items()}
    found = [(entry.make(), entry.figures) for entry in RECIPES.values() if entry.figures]
    return tuple(
        Figure(recipe.dataset, steps, *figure, network=printed[recipe.model])
        for recipe, figures in found
        for (steps, judged), figure in figures.items()
        if judged == loss
    )


METHODS = (
    Method(
        key="qif",
        title="QIF",
        kind="neuron",
        line="the paper's quadratic neuron, its surrogate window derived from its parameters",
        paragraph=(
            "What a membrane carries to the next step is a parabola of it instead of a fixed "
            "share: next to nothing between the roots, where a membrane below the threshold is "
            "damped and changes its sign, and growing with the square of a strongly inhibited "
            "one, which rebounds. It costs one multiplication and one addition a step more than "
            "LIF. Mean and spread of the membrane under normalised input follow "
            "from a, u1, u2 and u_th, and they set the width of the surrogate gradient, so "
            "nothing about it is tuned."
        ),
        equation=(
            "u(t) = a (u(t-1) - u1)(u(t-1) - u2) (1 - o(t-1)) + I(t),   o(t) = [u(t) >= u_th]\n"
            "a = 1/4, u1 = 0, u2 = 1/2, u_th = 1/2\n"
            "do/du := 1 inside a window of half width sigma, else 0\n"
            "sigma^2 = u_th^2 (1 + a^2 (2 u_th^2 + (u1 + u2)^2)),   mu = a (u_th^2 + u1 u2)"
        ),
        source=_PAPER,
        differs=_WINDOW,
        neuron="qif",
        figures=_figures("ce"),
    ),
    Method(
        key="qif-tet",
        title="QIF + TET",
        kind="loss",
        line="QIF trained with the TET loss, the paper's second row",
        paragraph=(
            "The same neuron, every step of its output judged by itself. In the paper this helps "
            "on CIFAR and costs accuracy on ImageNet and CIFAR10-DVS."
        ),
        equation=(
            "the QIF neuron with\n"
            "L = (1 - lambda) mean over t of CE(O(t), y) + lambda mean of (O - phi)^2"
        ),
        source=_PAPER,
        differs=f"{_WINDOW} Nor does it state TET's phi, here 1.",
        neuron="qif",
        loss="tet",
        figures=_figures("tet"),
    ),
    Method(
        key="qif-learned",
        title="QIF, learned",
        kind="neuron",
        line="QIF whose a, u1, u2 and u_th are learned, one set a layer",
        paragraph=(
            "An extension that the paper does not make: the four numbers of the neuron are "
            "parameters of each layer that start exactly at the paper's values. After every step "
            "of the optimizer they are moved back into the region where the neuron damps a "
            "membrane that does not fire, and the surrogate's window follows them without a "
            "gradient of its own."
        ),
        equation=(
            "the QIF neuron with learned a > 0, u1, u2, u_th in each layer, kept so that\n"
            "max(u1, u2) <= u_th <= u_c   (u_c the larger fixed point of the parabola)"
        ),
        source=_PAPER,
        differs="The paper fixes all four numbers; there is no figure to compare with.",
        status="ours",
        neuron="qif-learned",
    ),
)
