from __future__ import annotations

import pytest
import torch

from quadspike.ops import moments
from quadspike.ops.reference import statistics


@pytest.mark.parametrize("backend", ["triton", "vectorised"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(6, 5), (4, 3, 5, 6), (3, 4, 7)])
def test_equal_the_reference_s_with_gradients(shape, dtype, backend, device):
    if backend == "triton":
        pytest.importorskip("triton")
    elif device != "cpu":
        pytest.skip("for the CPU")
    x = (torch.randn(shape, device=device) * 2 + 3).to(dtype)
    if x.ndim == 4:
        x = x.contiguous(memory_format=torch.channels_last)
    results = []
    for by in (statistics, moments.statistics_by(backend)):
        given = x.clone().requires_grad_()
        found = by(given)
        loss = (found.mean * torch.arange(shape[1], device=device)).sum() + found.m2.sum()
        (grad,) = torch.autograd.grad(loss, given)
        assert grad.dtype == dtype
        assert grad.stride() == x.stride()
        results.append((found.n.expand_as(found.mean), found.mean, found.m2, grad))
    for got, expected in zip(*results[::-1], strict=True):
        torch.testing.assert_close(got, expected, rtol=max(1e-5, torch.finfo(dtype).eps), atol=1e-5)


@pytest.mark.parametrize("backend", ["triton", "vectorised"])
def test_is_what_torch_expects(backend, device):
    if backend == "triton":
        pytest.importorskip("triton")
    x = torch.randn(4, 3, 5, device=device, requires_grad=True)
    torch.library.opcheck(torch.ops.quadspike.moments.default, (x, backend))
    given = (x.detach(), torch.ones(3, device=device), torch.ones(3, device=device))
    torch.library.opcheck(torch.ops.quadspike.moments_backward.default, given)
