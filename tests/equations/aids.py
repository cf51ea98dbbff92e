"""Losses of the training aids, of logits `[B, classes]`, with their gradients."""

from __future__ import annotations

import math

import numpy as np

from tests.equations.losses import cross_entropy, log_softmax, softmax
from tests.equations.recursion import Array


def divergence(target: Array, z: Array, temperature: float) -> tuple[float, Array]:
    """`KL(softmax(target / T) || softmax(z / T))`, mean over the batch; gradient in z alone."""
    p = softmax(target / temperature)
    value = (p * (log_softmax(target / temperature) - log_softmax(z / temperature))).sum(-1).mean()
    return float(value), (softmax(z / temperature) - p) / (temperature * len(z))


def sml(
    main: Array,
    heads: list[Array],
    labels: Array,
    alpha: float = 0.5,
    weight: float = 0.9,
    temperature: float = 3.0,
) -> tuple[float, Array, list[Array]]:
    """Surrogate modules: N heads learn the labels, and network and heads from one another.

    (1 - weight) / (1 + N alpha) (CE(main) + alpha sum CE(head))
      + weight / (2 N) sum [KL(sg(main) || head) + KL(sg(head) || main)]
    """
    count = len(heads)
    label_share = (1 - weight) / (1 + count * alpha)
    value, grad = cross_entropy(main, labels)
    value, g_main, g_heads = label_share * value, label_share * grad, []
    for head in heads:
        entropy, g_entropy = cross_entropy(head, labels)
        down, g_down = divergence(main, head, temperature)
        up, g_up = divergence(head, main, temperature)
        value += label_share * alpha * entropy + weight / (2 * count) * (down + up)
        g_main = g_main + weight / (2 * count) * g_up
        g_heads.append(label_share * alpha * g_entropy + weight / (2 * count) * g_down)
    return value, g_main, g_heads


def shortcuts(
    main: Array, branches: list[Array], labels: Array, share: float
) -> tuple[float, Array, list[Array]]:
    """Backpropagation shortcuts (a reconstruction): `CE(main) + share sum CE(branch)`."""
    value, g_main = cross_entropy(main, labels)
    g_branches = []
    for branch in branches:
        entropy, grad = cross_entropy(branch, labels)
        value += share * entropy
        g_branches.append(share * grad)
    return value, g_main, g_branches


def summed_shortcuts(
    main: Array, branches: list[Array], labels: Array, share: float
) -> tuple[float, Array, list[Array]]:
    """The other reading: `CE(main + share sum branch)`."""
    value, grad = cross_entropy(main + share * np.sum(branches, axis=0), labels)
    return value, grad, [share * grad for _ in branches]


def share(progress: float, schedule: str = "linear") -> float:
    """The branches' share when a fraction of training is done: from 1 to 0, or "fixed" at 1."""
    if schedule == "fixed":
        return 1.0
    if schedule == "cosine":
        return (1 + math.cos(math.pi * progress)) / 2
    return 1 - progress


def imp(u0: Array, batch: int) -> Array:
    """IMP's initial membranes `[B, C, ...]`: a learned `u0 [1, C, ...]` for every sample."""
    return np.broadcast_to(u0, (batch, *u0.shape[1:]))


def imp_backward(grad_initial: Array) -> Array:
    """The gradient of `u0 [1, C, ...]` from that of the initial membranes."""
    return grad_initial.sum(0, keepdims=True)
