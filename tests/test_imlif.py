from __future__ import annotations

import pytest
import torch

from quadspike import LIF, QuadspikeError, Soma, create_model, create_neuron, load_model, save_model
from quadspike.deploy import stream
from quadspike.neurons import IMLIF


def ready(steps=4, causal=True, **options):
    neuron = IMLIF(causal=causal, **options)
    neuron.fit(3, steps)
    return neuron


def formula(x, neuron):
    """The attention written out sample by sample, then LIF."""
    steps, batch = x.shape[:2]
    shares = torch.zeros(steps, batch, dtype=x.dtype)
    for b in range(batch):
        s = x[:, b].flatten(1).mean(1)
        for t in range(steps):
            seen = s * (torch.arange(steps) <= t) if neuron.causal else s
            shares[t, b] = (neuron.excite @ (neuron.squeeze @ seen).relu()).sigmoid()[t]
    current, currents = x[0], [x[0]]
    for t in range(1, steps):
        current = x[t] + shares[t].view(-1, *[1] * (x.ndim - 2)) * current
        currents.append(current)
    return LIF(surrogate="arctan")(torch.stack(currents)), shares


@pytest.mark.parametrize("shape", [(4, 6, 3, 2, 2), (4, 6, 3)])
@pytest.mark.parametrize("causal", [True, False])
def test_equals_its_formula_in_float64_with_gradients(shape, causal):
    neuron = ready(causal=causal, surrogate="arctan").double()
    x = torch.randn(shape, dtype=torch.float64).requires_grad_()
    weights = torch.randn_like(x)
    expected, shares = formula(x, neuron)
    out = neuron(x)
    assert torch.equal(out, expected)
    torch.testing.assert_close(neuron.attention(list(x)), shares)
    inputs = [x, neuron.squeeze, neuron.excite]
    wanted = torch.autograd.grad((expected * weights).sum(), inputs)
    got = torch.autograd.grad((out * weights).sum(), inputs)
    for ours, theirs in zip(got, wanted, strict=True):
        assert ours.any()
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def test_causal_steps_do_not_see_the_future():
    for causal in (True, False):
        neuron = ready(causal=causal)
        x = torch.randn(4, 8, 3) + 1
        other = torch.cat([x[:2], 3 * torch.randn(2, 8, 3)])
        same = neuron.attention(list(x))[:2] == neuron.attention(list(other))[:2]
        assert same.all() == causal


def test_a_causal_neuron_runs_fewer_steps_than_it_knows():
    neuron, x = ready(), torch.randn(4, 8, 3)
    assert torch.equal(neuron(x[:2]), neuron(x)[:2])


def test_starts_by_keeping_about_half_and_is_lif_at_one_step():
    soma = Soma(8, "im-lif", timesteps=4)
    x = torch.randn(4, 16, 8, 6, 6) * 3 + 1
    shares = soma.neuron.attention(list(soma.norm(x)))
    assert (shares - 0.5).abs().max() < 0.1
    neuron, x = ready(steps=1), torch.randn(1, 5, 3)
    assert not list(neuron.parameters())
    assert torch.equal(neuron(x), LIF()(x))


def test_every_parameter_learns():
    model = create_model("cnn", in_channels=1, neuron="im-lif", timesteps=2)
    model(torch.randn(8, 1, 8, 8)).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


def test_is_saved_loaded_and_made_again(tmp_path):
    model = create_model("cnn", in_channels=1, neuron={"name": "im-lif", "causal": False})
    again = load_model(save_model(model, tmp_path / "model.safetensors"))
    x = torch.randn(8, 1, 8, 8)
    assert torch.equal(again.eval()(x), model.eval()(x))
    neuron = again.somas()["conv1.soma"].neuron
    assert neuron.causal is False
    assert create_neuron(neuron.config()).config() == neuron.config()


def test_a_soma_keeps_what_a_neuron_has_learned():
    learned = Soma(3, "im-lif", timesteps=4).neuron
    copied = Soma(3, learned, timesteps=4).neuron
    assert torch.equal(copied.squeeze, learned.squeeze)
    assert torch.equal(copied.excite, learned.excite)


def test_runs_in_parts_and_says_why():
    choice = Soma(3, "im-lif", timesteps=2).explain()
    assert choice.backend == "vectorised"
    assert "in parts" in choice.reason
    assert "means" in choice.reason


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Soma(3, "im-lif"), "give timesteps"),
        (lambda: IMLIF()(torch.zeros(2, 2, 3)), "no steps, got 2"),
        (lambda: ready(2)(torch.zeros(3, 2, 3)), "2 steps, got 3"),
        (lambda: ready().run(torch.zeros(2, 2, 3)), "cannot be streamed.*no state holds"),
        (lambda: IMLIF().voltage_statistics(), "no closed form"),
        (lambda: IMLIF().density(), "no stationary density"),
        (lambda: stream(create_model("cnn", neuron="im-lif").eval()), "cannot be streamed"),
        (
            lambda: create_model("cnn", neuron="im-lif").run(torch.zeros(2, 3, 8, 8), {}),
            "cannot be streamed",
        ),
    ],
)
def test_what_cannot_be_is_refused(act, message):
    with pytest.raises(QuadspikeError, match=message):
        act()
