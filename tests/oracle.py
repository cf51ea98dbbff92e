"""The neurons' equations and their gradients, written out in float64 NumPy.

Imports nothing from the package: a second derivation for the package to be checked against.
"""

from __future__ import annotations

import math

import numpy as np


def box(low, high, height=1.0):
    return lambda v: height * ((v >= low) & (v <= high)).astype(float)


def triangle(width=1.0):
    return lambda v: np.maximum(0.0, width - np.abs(v)) / width**2


def arctan(alpha=2.0):
    return lambda v: alpha / (2 * (1 + (math.pi / 2 * alpha * v) ** 2))


def sigmoid(alpha=4.0):
    def slope(v):
        e = np.exp(-alpha * np.abs(v))
        return alpha * e / (1 + e) ** 2

    return slope


def qif_window(a, u1, u2, u_th, center):
    mu = a * (u_th**2 + u1 * u2)
    sigma = math.sqrt(u_th**2 * (1 + a**2 * (2 * u_th**2 + (u1 + u2) ** 2)))
    low, high = (mu - sigma, mu + sigma) if center == "mean" else (u_th - sigma, u_th + sigma)
    return box(low - u_th, high - u_th)


class QIFOracle:
    def __init__(self, a=0.25, u1=0.0, u2=0.5, u_th=0.5, u_reset=0.0):
        self.a, self.u1, self.u2, self.u_th, self.u_reset = a, u1, u2, u_th, u_reset

    def step(self, u, o, x):
        return self.a * (u - self.u1) * (u - self.u2) * (1 - o) + self.u_reset * o + x

    def du(self, u, o):
        return self.a * ((u - self.u1) + (u - self.u2)) * (1 - o)

    def do(self, u, o):
        return self.u_reset - self.a * (u - self.u1) * (u - self.u2)

    def dparams(self, u, o):
        silent = 1 - o
        return {
            "a": (u - self.u1) * (u - self.u2) * silent,
            "u1": -self.a * (u - self.u2) * silent,
            "u2": -self.a * (u - self.u1) * silent,
            "u_reset": o,
        }


class LIFOracle:
    def __init__(self, beta=0.25, u_th=0.5, u_reset=0.0):
        self.beta, self.u_th, self.u_reset = beta, u_th, u_reset

    def step(self, u, o, x):
        return self.beta * u * (1 - o) + self.u_reset * o + x

    def du(self, u, o):
        return self.beta * (1 - o)

    def do(self, u, o):
        return self.u_reset - self.beta * u

    def dparams(self, u, o):
        return {"beta": u * (1 - o), "u_reset": o}


def forward(neuron, x):
    """Membranes and spikes for input [T, ...] from rest."""
    u, o = np.zeros_like(x[0]), np.zeros_like(x[0])
    membranes, spikes = [], []
    for current in x:
        u = neuron.step(u, o, current)
        o = (u >= neuron.u_th).astype(float)
        membranes.append(u)
        spikes.append(o)
    return np.array(membranes), np.array(spikes)


def backward(neuron, x, grad_spikes, slope, detach_reset=False):
    """Gradients of sum(grad_spikes * spikes) in x and in every parameter."""
    u, o = forward(neuron, x)
    grad_x = np.zeros_like(x)
    grads: dict[str, float] = {"u_th": 0.0}
    from_next = np.zeros_like(x[0])  # dL / du(t+1)
    for t in reversed(range(len(x))):
        grad_o = grad_spikes[t].copy()
        carried = np.zeros_like(x[0])
        if t + 1 < len(x):
            carried = from_next * neuron.du(u[t], o[t])
            if not detach_reset:
                grad_o += from_next * neuron.do(u[t], o[t])
        through_spike = grad_o * slope(u[t] - neuron.u_th)
        grads["u_th"] -= through_spike.sum()
        from_next = carried + through_spike
        grad_x[t] = from_next
        before = (u[t - 1], o[t - 1]) if t else (np.zeros_like(x[0]), np.zeros_like(x[0]))
        for name, partial in neuron.dparams(*before).items():
            grads[name] = grads.get(name, 0.0) + (from_next * partial).sum()
    return grad_x, grads
