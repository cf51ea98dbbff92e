"""Gradients by finite differences."""

from __future__ import annotations

import numpy as np


def numeric(f, x, h=1e-5):
    """The gradient of `f(x)` by central differences."""
    grad = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        shift = np.zeros_like(x)
        shift[i] = h
        grad[i] = (f(x + shift) - f(x - shift)) / (2 * h)
    return grad


def assert_gradient(grad, f, x):
    np.testing.assert_allclose(grad, numeric(f, np.asarray(x, float)), rtol=2e-6, atol=2e-8)
