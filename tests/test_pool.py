from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from quadspike.models.pool import AveragePool, squares_mean


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize(("size", "shape"), [(2, (3, 5, 8, 12)), (3, (1, 4, 9, 3))])
def test_squares_have_torch_s_means_and_gradients(size, shape, dtype):
    x = torch.randn(shape, dtype=dtype).contiguous(memory_format=torch.channels_last)
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    got, expected = squares_mean(ours, size), F.avg_pool2d(theirs, size)
    torch.testing.assert_close(got, expected)
    assert got.is_contiguous(memory_format=torch.channels_last)
    weights = torch.randn_like(got)
    got.backward(weights)
    expected.backward(weights)
    torch.testing.assert_close(ours.grad, theirs.grad)
    assert ours.grad.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.gpu
@pytest.mark.parametrize("side", [48, 49])  # an odd one is torch's
def test_the_pool_is_torch_s_on_a_gpu(side):
    x = torch.randn(4, 64, side, side, device="cuda", dtype=torch.bfloat16)
    x = x.contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(AveragePool(2)(x), F.avg_pool2d(x, 2))
