from __future__ import annotations

import pytest
import torch

from quadspike import LIF, QuadspikeError, Soma, create_model, create_neuron, load_model, save_model
from quadspike.neurons import IMLIF


def ready(steps=4):
    neuron = IMLIF()
    neuron.fit(3, steps)
    return neuron


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


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Soma(3, "im-lif"), "give timesteps"),
        (lambda: IMLIF()(torch.zeros(2, 2, 3)), "no steps, got 2"),
        (lambda: ready(2)(torch.zeros(3, 2, 3)), "2 steps, got 3"),
        (lambda: ready().run(torch.zeros(2, 2, 3)), "cannot be streamed.*no state holds"),
        (lambda: IMLIF().voltage_statistics(), "no closed form"),
        (lambda: IMLIF().density(), "no stationary density"),
        (
            lambda: create_model("cnn", neuron="im-lif").run(torch.zeros(2, 3, 8, 8), {}),
            "cannot be streamed",
        ),
    ],
)
def test_what_cannot_be_is_refused(act, message):
    with pytest.raises(QuadspikeError, match=message):
        act()
