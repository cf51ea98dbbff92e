"""Lines of a user's own on every path: the same numbers, or the reference and the reason."""

from __future__ import annotations

import copy

import pytest
import torch

from quadspike import LIF, QuadspikeError, Soma, ops
from quadspike.neurons import check_partials
from tests import own_neurons as own

NEURONS = [own.Exponential, own.Rectified, own.Gated]
SURROGATES = [own.Tangent, own.Waves, own.Inside]


@pytest.fixture
def device(backend):
    return "cuda" if backend == "triton" and torch.cuda.is_available() else "cpu"


def gradients(soma, x, backend):
    soma = copy.deepcopy(soma)
    soma.backend = backend
    x = x.clone().requires_grad_()
    out = soma(x)
    (out * torch.arange(out.numel(), device=x.device).view_as(out)).sum().backward()
    return [out.detach(), x.grad, *(parameter.grad for parameter in soma.parameters())]


@pytest.mark.parametrize(
    "neuron",
    [*(kind() for kind in NEURONS), *(LIF(surrogate=kind()) for kind in SURROGATES)],
    ids=lambda neuron: f"{neuron.name}, {neuron.surrogate.name}",
)
@pytest.mark.parametrize("norm", ["tdbn", None, "mpbn"])
def test_every_path_has_the_same_numbers(neuron, norm, device, backend):
    check_partials(neuron)
    x = torch.randn(3, 4, 8, 5, device=device)
    soma = Soma(8, neuron, norm).to(device)
    expected = gradients(soma, x, "reference")
    size = max(float(gradient.abs().max()) for gradient in expected[1:])
    for found, truth in zip(gradients(soma, x, backend), expected, strict=True):
        torch.testing.assert_close(found, truth, rtol=1e-4, atol=1e-5 * size)
    assert ops.choose("auto", neuron, torch.device("cuda"), x.dtype).backend == "triton"


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (own.Borrowing, "Borrowing.advance: `LIF.advance(u, o, x, p)` is no plain arithmetic"),
        (own.Unnamed, "Unnamed.advance: it is no def"),
        (own.Mixing, "Mixing mixes currents, and its in_parts does not say why"),
    ],
)
def test_what_no_kernel_can_be_made_of_runs_on_the_reference(kind, reason):
    pytest.importorskip("triton")
    choice = ops.choose("auto", kind(), torch.device("cuda"), torch.float32)
    assert choice.backend == "reference"
    assert choice.reason.startswith(reason)


def test_currents_that_are_mixed_are_mixed_on_every_path():
    x = torch.ones(3, 2, 4) * 0.3
    assert own.Mixing()(x).sum() == 16  # of 0.3, 0.45 and 0.525 the last two fire
    assert LIF()(x).sum() == 0


def test_a_constant_of_one_channel_is_every_channel_s(device, backend):
    x = torch.randn(3, 4, 8, 5, device=device)
    for shape in ((1,), (3, 1)):
        soma = Soma(8, own.Scaled(shape), None).to(device)
        for found, truth in zip(
            gradients(soma, x, backend), gradients(soma, x, "reference"), strict=True
        ):
            torch.testing.assert_close(found, truth, rtol=1e-4, atol=1e-4)
    for shape in ((5,), (3, 1, 1)):
        wrong = Soma(8, own.Scaled(shape), None, backend=backend).to(device)
        with pytest.raises(QuadspikeError, match=r"a number, \[C\] or \[T, C\], got \("):
            wrong(x)


def test_methods_of_a_tensor_have_a_density():
    density = own.Exponential().density()
    x = torch.randn(200, 2000, generator=torch.Generator().manual_seed(0)) * 0.5
    assert density.rate == pytest.approx(float(own.Exponential()(x)[20:].mean()), abs=0.01)
