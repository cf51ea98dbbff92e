"""IM-LIF (a reconstruction): attention over time mixes each current with its past."""

from __future__ import annotations

import numpy as np

from tests.equations.recursion import Array, sigma


def attention(x: Array, w1: Array, w2: Array, causal: bool = True) -> tuple[Array, ...]:
    """`a [T, B]` for currents `x [T, B, C, ...]`, with `w1 [H, T]` and `w2 [T, H]`.

    s_t is the mean of x_t over channels and space, a_t = sigma(w2_t . relu(w1 s)). Causal, a_t
    is computed as if s_{t+1}, s_{t+2}, ... were 0; no weight is masked, so each step has hidden
    values of its own. Also what `mix_backward` needs again.
    """
    steps = len(x)
    s = x.mean(tuple(range(2, x.ndim)))
    seen = np.tril(np.ones((steps, steps))) if causal else np.ones((steps, steps))
    inputs = seen[:, :, None] * s[None]  # [t, t', B]: what step t sees of step t'
    hidden = np.einsum("hk,tkb->thb", w1, inputs)
    a = sigma(np.einsum("th,thb->tb", w2, np.maximum(hidden, 0)))
    return a, hidden, inputs, seen


def mix(x: Array, w1: Array, w2: Array, causal: bool = True) -> Array:
    """`I_1 = x_1`, `I_t = x_t + a_t I_{t-1}`."""
    a = attention(x, w1, w2, causal)[0]
    mixed = [x[0]]
    for t in range(1, len(x)):
        mixed.append(x[t] + _wide(a[t], x) * mixed[-1])
    return np.array(mixed)


def mix_backward(
    x: Array, w1: Array, w2: Array, grad: Array, causal: bool = True
) -> tuple[Array, Array, Array]:
    """Gradients of `sum(grad * mix)` in x, w1 and w2."""
    a, hidden, inputs, seen = attention(x, w1, w2, causal)
    mixed = mix(x, w1, w2, causal)
    g_x, g_a = np.zeros_like(x), np.zeros_like(a)
    g = np.zeros_like(x[0])
    for t in reversed(range(len(x))):
        g = grad[t] + g
        g_x[t] = g
        if t:
            g_a[t] = (g * mixed[t - 1]).sum(tuple(range(1, g.ndim)))
            g = g * _wide(a[t], x)
    g_logit = g_a * a * (1 - a)
    g_w2 = np.einsum("tb,thb->th", g_logit, np.maximum(hidden, 0))
    g_hidden = w2[:, :, None] * g_logit[:, None] * (hidden > 0)
    g_w1 = np.einsum("thb,tkb->hk", g_hidden, inputs)
    g_s = np.einsum("tk,hk,thb->kb", seen, w1, g_hidden)
    return g_x + _wide(g_s, x) / np.prod(x.shape[2:]), g_w1, g_w2


def _wide(a: Array, x: Array) -> Array:
    return a.reshape(*a.shape, *[1] * (x.ndim - 2))
