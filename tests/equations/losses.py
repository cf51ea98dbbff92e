"""From logits `[T, B, classes]` and labels to a number, with its gradients."""

from __future__ import annotations

import numpy as np

from tests.equations.recursion import Array


def softmax(z: Array) -> Array:
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def log_softmax(z: Array) -> Array:
    z = z - z.max(-1, keepdims=True)
    return z - np.log(np.exp(z).sum(-1, keepdims=True))


def cross_entropy(z: Array, labels: Array, smoothing: float = 0.0) -> tuple[float, Array]:
    """Of logits `[B, classes]`, mean over the batch; a smoothed target is shared by all classes."""
    target = np.eye(z.shape[-1])[labels] * (1 - smoothing) + smoothing / z.shape[-1]
    value = -(target * log_softmax(z)).sum(-1).mean()
    return float(value), (softmax(z) - target) / len(z)


def ce(logits: Array, labels: Array, smoothing: float = 0.0) -> tuple[float, Array]:
    """Cross-entropy of the mean over time."""
    value, grad = cross_entropy(logits.mean(0), labels, smoothing)
    return value, np.broadcast_to(grad / len(logits), logits.shape)


def tet(
    logits: Array, labels: Array, weight: float = 0.05, target: float = 1.0, smoothing: float = 0.0
) -> tuple[float, Array]:
    """`(1 - weight) mean_t CE(O(t), y) + weight mean (O - target)^2`."""
    each = [cross_entropy(step, labels, smoothing) for step in logits]
    entropy = np.mean([value for value, _ in each])
    g_entropy = np.array([grad for _, grad in each]) / len(logits)
    far = logits - target
    value = (1 - weight) * entropy + weight * (far**2).mean()
    return float(value), (1 - weight) * g_entropy + weight * 2 * far / far.size


def lts(logits: Array, labels: Array, smoothing: float = 0.0) -> tuple[float, Array]:
    """Cross-entropy of the last step alone."""
    value, last = cross_entropy(logits[-1], labels, smoothing)
    grad = np.zeros_like(logits)
    grad[-1] = last
    return value, grad


def information(membranes: list[Array], targets: list[float]) -> tuple[float, list[Array]]:
    """IM-Loss's own term: `1/L sum_l (mean(U_l) - target_l)^2`, and its membrane gradients.

    The mean is over time, batch, channels and space; the target is the threshold.
    """
    misses = [u.mean() - target for u, target in zip(membranes, targets, strict=True)]
    count = len(membranes)
    grads = [
        np.full_like(u, 2 * miss / (count * u.size))
        for u, miss in zip(membranes, misses, strict=True)
    ]
    return float(np.mean(np.square(misses))), grads


def im(
    logits: Array,
    labels: Array,
    membranes: list[Array],
    targets: list[float],
    weight: float = 0.005,
) -> tuple[float, Array, list[Array]]:
    """`CE + weight L_IM`, with gradients in the logits and in the membranes."""
    entropy, g_logits = ce(logits, labels)
    term, g_membranes = information(membranes, targets)
    return entropy + weight * term, g_logits, [weight * grad for grad in g_membranes]
