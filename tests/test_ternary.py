from __future__ import annotations

import pytest
import torch

from quadspike import QuadspikeError, Soma
from quadspike.analysis.layers import describe_layers
from quadspike.call import Call
from quadspike.deploy import check_fold, fold
from quadspike.models import create_model
from quadspike.neurons import Ternary, TrainedTernary
from quadspike.taps import Taps
from tests.conftest import calibrate


def test_it_is_odd_and_ties_fire():
    x = torch.randn(5, 300)
    assert torch.equal(Ternary()(-x), -Ternary()(x))
    assert Ternary()(torch.tensor([[0.5, -0.5, 0.49, -0.49]])).tolist() == [[1, -1, 0, 0]]


def test_a_spike_of_either_sign_resets():
    x = torch.tensor([[4.0, -4.0], [0.4, 0.4]])
    assert Ternary(beta=1.0)(x).tolist() == [[1, -1], [0, 0]]


def test_the_surrogate_is_centred_on_zero():
    neuron = Ternary()
    assert neuron.surrogate.window(neuron) == (-1.0, 1.0)
    x = torch.linspace(-2, 2, 41).requires_grad_()
    neuron(x[None]).sum().backward()
    assert torch.equal(x.grad, (x.abs() <= 1).float())
    assert Ternary(surrogate="window").surrogate.window(neuron)[0] < 0
    with pytest.raises(QuadspikeError, match="has two"):
        Ternary(surrogate={"name": "window", "center": "stationary"})(x[None])


# -- what a spike is worth -------------------------------------------------------------


@pytest.mark.parametrize("backend", ["reference", "vectorised", "triton"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
@pytest.mark.parametrize("residual", [None, "after"])
def test_the_emitted_value_reaches_the_output_alone(backend, shape, residual):
    if backend == "triton":
        pytest.importorskip("triton")
    device = "cuda" if backend == "triton" and torch.cuda.is_available() else "cpu"
    alpha = torch.rand(shape) + 0.5
    trained = Soma(3, TrainedTernary(alpha=alpha), backend=backend, residual=residual)
    plain = Soma(3, Ternary(), backend=backend, residual=residual)
    x = torch.randn(2 * 4, 3, 5, 5, device=device)
    added = torch.randn_like(x) if residual else None
    weights = torch.randn_like(x)
    calls = [Call(2, 4, taps=Taps(("spikes", "rate", "membrane")), states={}) for _ in range(2)]
    trained, plain = trained.to(device), plain.to(device)
    out = trained(x, calls[0], added)
    plain(x, calls[1], added)
    seen, spikes = calls[0].seen["Soma"], calls[1].seen["Soma"]["spikes"]
    assert torch.equal(seen["spikes"], spikes)
    assert set(spikes.unique().tolist()) == {-1.0, 0.0, 1.0}
    assert torch.equal(seen["rate"], spikes.abs().mean((1, 2, 3, 4)))
    assert torch.equal(calls[0].states["Soma"].o, spikes[-1])
    emitted = alpha.to(device).expand(2, 3)[:, None, :, None, None] * spikes
    expected = emitted.flatten(0, 1) if added is None else emitted.flatten(0, 1) + added
    torch.testing.assert_close(out, expected)
    (out * weights).sum().backward()
    terms = (weights.view_as(spikes) * spikes).sum((1, 3, 4))
    total = terms if len(shape) == 2 else terms.sum(0) if shape else terms.sum()
    torch.testing.assert_close(trained.neuron.alpha.grad, total, rtol=1e-4, atol=1e-4)


def test_a_fold_knows_the_ties_at_both_thresholds():
    model = create_model("mlp", neuron="ternary", in_channels=1, timesteps=3)
    x = torch.randn(64, 1, 8, 8)
    calibrate(model, x)
    check = check_fold(model, fold(model), x)
    assert check.unexplained == 0


def test_both_thresholds_are_in_a_run_s_record():
    net = create_model("cnn", neuron="ternary", in_channels=1, seed=0)
    layer = describe_layers(net, torch.randn(4, 1, 8, 8))[0]
    assert layer["edges"] == [-0.5, 0.5]
    assert layer["rate"] > 0
