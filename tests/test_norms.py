from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from quadspike import LIF, QuadspikeError, Soma, TDBatchNorm1d, TDBatchNorm2d
from quadspike.norms import BatchNorm, TDBatchNorm, create_norm, synchronize
from tests.equations import norms
from tests.two_workers import of_two


def test_a_threshold_in_a_tensor_is_a_number(backend):
    soma = Soma(8, norm=None, backend=backend)
    x = torch.randn(4, 3, 8, 5)
    soma.norm = TDBatchNorm(8, u_th=0.5)
    expected = soma(x)
    soma.norm = TDBatchNorm(8, u_th=torch.tensor(0.5))
    assert torch.equal(soma(x), expected)


@pytest.mark.parametrize(
    ("kind", "shape"), [(TDBatchNorm2d, (3, 4, 5, 6, 7)), (TDBatchNorm1d, (3, 8, 5))]
)
def test_equals_its_statement_with_gradients(kind, shape):
    norm = kind(5, u_th=0.7, eta=0.5).double()
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    x = (torch.randn(shape, dtype=torch.float64) * 3 + 2).requires_grad_()
    weights = torch.randn(shape, dtype=torch.float64)
    truth = norms.Norm(norm.weight.detach(), norm.bias.detach(), gain=0.35)
    g_x, grads = truth.backward(x.detach().numpy(), weights.numpy())
    expected = (truth.forward(x.detach().numpy()), g_x, grads["weight"], grads["bias"])
    y = norm(x)
    (y * weights).sum().backward()
    got = (y.detach(), x.grad, norm.weight.grad, norm.bias.grad)
    for ours, theirs in zip(got, map(torch.as_tensor, expected), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_running_statistics_and_evaluation_equal_torch_s_batch_norm():
    ours, theirs = TDBatchNorm2d(4, u_th=0.5, eta=2.0), nn.BatchNorm2d(4)  # gain 1
    for _ in range(3):
        x = torch.randn(3, 5, 4, 6, 6) * 2 + 1
        torch.testing.assert_close(ours(x), theirs(x.flatten(0, 1)).view(x.shape))
    torch.testing.assert_close(ours.running_mean, theirs.running_mean)
    torch.testing.assert_close(ours.running_var, theirs.running_var)
    torch.testing.assert_close(ours.eval()(x), theirs.eval()(x.flatten(0, 1)).view(x.shape))


def test_time_first_and_flattened_inputs_agree():
    norm = TDBatchNorm2d(4)
    x = torch.randn(2, 3, 4, 5, 5)
    assert torch.equal(norm(x), norm(x.flatten(0, 1)).view(x.shape))


def test_an_input_that_stands_for_several_steps_counts_as_its_copies():
    once, copied = TDBatchNorm(4), TDBatchNorm(4)
    x = torch.randn(3, 4, 5, 5)
    once.affine(x, repeats=4)
    copied.affine(x.repeat(4, 1, 1, 1))
    torch.testing.assert_close(once.running_mean, copied.running_mean)
    torch.testing.assert_close(once.running_var, copied.running_var)


def test_statistics_hold_for_means_far_beyond_the_spread():
    x = torch.randn(8, 4, 16, 16, dtype=torch.float64) + 1000
    wide, narrow = TDBatchNorm2d(4).double(), TDBatchNorm2d(4)
    wide(x), narrow(x.float())
    torch.testing.assert_close(narrow.running_var.double(), wide.running_var, rtol=1e-4, atol=0)


def test_right_under_autocast_and_in_bfloat16():
    norm, x = TDBatchNorm2d(4), torch.randn(2, 8, 4, 6, 6)
    expected = norm(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(norm(x), expected)
        half = norm(x.bfloat16())
    assert half.dtype == torch.bfloat16
    assert norm.running_mean.dtype == torch.float32
    torch.testing.assert_close(half.float(), expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("training", [True, False])
def test_takes_what_it_is_not_stored_in(dtype, training):
    norm, x = TDBatchNorm2d(4).train(training), torch.randn(2, 8, 4, 6, 6)
    expected = copy.deepcopy(norm)(x)
    rounding = {"rtol": 0, "atol": 0.03}
    found = copy.deepcopy(norm)(x.to(dtype))
    torch.testing.assert_close(found, expected.to(dtype), **rounding)
    found = norm.to(dtype)(x.to(dtype))
    torch.testing.assert_close(found, expected.to(dtype), **rounding)


def test_thresholds_per_channel_scale_each_channel():
    u_th = torch.tensor([0.5, 1.0, 2.0])
    norm = create_norm("tdbn", 3, u_th, eta=0.5)
    spread = norm(torch.randn(4096, 3)).std(0)
    torch.testing.assert_close(spread, 0.5 * u_th, rtol=1e-3, atol=0)
    assert create_norm("tdbn", 3, u_th.expand(2, 3), 1.0).gain.shape == (3,)


def test_a_learned_threshold_goes_on_without_its_norm():
    soma = Soma(3, LIF(u_th=nn.Parameter(torch.full((3,), 0.5))))
    with torch.no_grad():
        soma.neuron.u_th.fill_(2.0)
    assert soma.norm.u_th.tolist() == soma.norm.gain.tolist() == [0.5] * 3


def test_scale_and_shift_are_float32_whatever_the_storage():
    norm = TDBatchNorm(3).bfloat16()
    for mode in (True, False):
        scale, shift = norm.train(mode).affine(torch.randn(8, 3).bfloat16())
        assert scale.dtype == shift.dtype == torch.float32


def test_plain_batch_norm_ignores_the_threshold():
    norm = create_norm("bn", 4, u_th=0.5, eta=1.0)
    assert type(norm) is BatchNorm
    assert norm(torch.randn(64, 4, 8, 8)).std().item() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: TDBatchNorm2d(4)(torch.zeros(2, 3, 5, 6, 6)), "4 channels, got 5"),
        (lambda: TDBatchNorm2d(4)(torch.zeros(2, 4)), "H, W"),
        (lambda: TDBatchNorm1d(4)(torch.zeros(2, 4, 3, 3)), r"\[N, C\]"),
        (lambda: TDBatchNorm2d(4)(torch.zeros(2, 4, 3, 3, dtype=torch.int)), "floating"),
        (lambda: TDBatchNorm1d(4)(torch.zeros(1, 4)), "more than one value"),
        (lambda: TDBatchNorm2d(0), "channels must be"),
        (lambda: TDBatchNorm2d(4, u_th=0), "u_th > 0"),
        (lambda: TDBatchNorm2d(4, u_th=torch.ones(3)), r"a number or \[4\], got \(3,\)"),
        (lambda: TDBatchNorm2d(4, eps=-1.0), "eps >= 0"),
        (lambda: TDBatchNorm2d(4, momentum=5.0), "momentum in"),
        (lambda: TDBatchNorm(4).affine(torch.zeros(1, 4), repeats=4), "more than one value"),
        (lambda: create_norm("tdbm", 4, 0.5, 1.0), "did you mean 'tdbn'"),
    ],
)
def test_bad_input_is_refused(act, message):
    with pytest.raises(QuadspikeError, match=message):
        act()


# -- across workers --------------------------------------------------------------------


def _share(mine: slice, x, weights):
    norm = synchronize(TDBatchNorm2d(3).double())
    part = x[:, mine].clone().requires_grad_()
    y = norm(part)
    (y * weights[:, mine]).sum().backward()
    return y, part.grad, norm.running_var


def test_synchronised_workers_equal_one_process():
    x = torch.randn(2, 8, 3, 4, 4, dtype=torch.float64) * 2 + 5
    weights = torch.randn_like(x)
    alone = TDBatchNorm2d(3).double()
    whole = x.clone().requires_grad_()
    y = alone(whole)
    (y * weights).sum().backward()
    parts = of_two(_share, x, weights)
    joined = [torch.cat([part[i] for part in parts], dim=1) for i in (0, 1)]
    torch.testing.assert_close(joined[0], y.detach(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(joined[1], whole.grad, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(parts[1][2], alone.running_var)
