"""A neuron's lines for the GPU: what a constant that is zero multiplies is left out."""

from __future__ import annotations

import inspect
from itertools import product

import pytest

pytest.importorskip("triton")

from quadspike.ops.triton.device import device_function


def lines(u, p):
    return p.a * u + p.b, p.b + u, u - p.b, p.b - u, (u - p.a * p.b) * 2 + p.a * (p.b + u)


@pytest.mark.parametrize("zeros", list(product([False, True], repeat=2)))
def test_zeros_change_the_lines_and_not_their_values(zeros):
    values = tuple(0.0 if zero else number for zero, number in zip(zeros, (3.0, 5.0), strict=True))
    made = device_function(lines, ("a", "b"), zeros).fn
    a, b = values
    assert made(7.0, values) == (a * 7 + b, b + 7, 7 - b, b - 7, (7 - a * b) * 2 + a * (b + 7))
    source = inspect.getsource(made)
    assert [f"p[{place}]" in source for place in (0, 1)] == [not zero for zero in zeros]


def test_nothing_is_left_of_what_a_zero_multiplies():
    made = device_function(lines, ("a", "b"), (True, True)).fn
    assert inspect.getsource(made).strip().endswith("return (0.0, u, u, 0.0 - u, u * 2)")
