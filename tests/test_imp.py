"""Learned initial membranes: they start the neuron everywhere, and stay with the network."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from quadspike import Network, QuadspikeError, Soma, create_model, load_model, save_model
from quadspike.aids.imp import learn_initial_membranes
from quadspike.call import Call
from quadspike.deploy import check_fold, fold, stream
from quadspike.neurons import LIF, QIF
from tests.conftest import calibrate


def started(model="cnn", frame=(1, 8, 8), seed=0, **options):
    network = create_model(model, in_channels=1, seed=1, **options)
    learn_initial_membranes(network, frame, seed)
    return network


@pytest.mark.parametrize("neuron", [QIF(surrogate="triangle"), LIF(surrogate="arctan")])
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("backend", ["triton", "vectorised"])
def test_the_fused_paths_learn_it_as_the_reference_does(neuron, channels_last, backend, device):
    if backend == "vectorised" and device != "cpu":
        pytest.skip("is for the CPU")
    layout = torch.channels_last if channels_last else torch.contiguous_format
    x = torch.randn(6, 3, 4, 4).to(device, memory_format=layout)
    u0, weights = torch.rand(3, 4, 4) - 0.3, torch.randn(6, 3, 4, 4, device=device)
    outs, grads = [], []
    for which in ("reference", backend):
        soma = Soma(3, neuron, backend=which)
        soma.start_from(u0)
        soma.to(device)
        out = soma(x, Call(3, 2))
        outs.append(out)
        (out * weights).sum().backward()
        grads.append(soma.initial_u.grad)
        assert grads[-1].abs().sum() > 0
    assert torch.equal(*outs)
    assert outs[0].stride() == outs[1].stride()
    torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-5)


def test_every_soma_gets_one_of_its_own_size_from_the_seed_and_its_name():
    network = started("resnet8", (1, 12, 12), neuron={"name": "lif", "u_th": 2.0})
    assert network.stem.soma.initial_u.shape == (16, 12, 12)
    assert network.get_submodule("layer3.0.shortcut.soma").initial_u.shape == (64, 3, 3)
    drawn = [soma.initial_u for soma in network.somas().values()]
    everything = torch.cat([u.detach().flatten() for u in drawn])
    assert everything.abs().max() <= 0.4  # 0.2 thresholds
    assert everything.std() == pytest.approx(0.4 / 3**0.5, rel=0.05)
    first, second = (
        network.get_submodule(f"layer1.0.{n}.soma").initial_u for n in ("first", "second")
    )
    assert not torch.equal(first, second)
    again = started("resnet8", (1, 12, 12), neuron={"name": "lif", "u_th": 2.0})
    other = started("resnet8", (1, 12, 12), seed=5, neuron={"name": "lif", "u_th": 2.0})
    assert torch.equal(again.stem.soma.initial_u, drawn[0])
    assert not torch.equal(other.stem.soma.initial_u, drawn[0])


def test_nothing_else_of_the_network_changes():
    plain, network = create_model("cnn", in_channels=1, seed=1), started()
    for name, tensor in plain.state_dict().items():
        assert torch.equal(tensor, network.state_dict()[name]), name
    assert network.training
    extra = network.state_dict().keys() - plain.state_dict().keys()
    assert extra == {f"{name}.initial_u" for name in network.somas()}


def test_it_is_saved_loaded_folded_and_streamed(tmp_path):
    x = torch.randn(4, 1, 8, 8)
    network = calibrate(started(timesteps=3), x)
    found = load_model(save_model(network, tmp_path / "m.safetensors")).eval()
    assert torch.equal(found(x), network(x))
    folded = fold(network)
    again = load_model(save_model(folded, tmp_path / "f.safetensors")).eval()
    assert torch.equal(again(x), folded(x))
    assert check_fold(network, folded, x).unexplained == 0
    live = stream(network)
    torch.testing.assert_close(torch.stack([live(x) for _ in range(3)]), network(x))
    live.reset()
    torch.testing.assert_close(live(x), network(x)[0])


def test_another_size_of_image_is_refused():
    network = started()
    with pytest.raises(QuadspikeError, match=r"conv1.soma.*\(32, 8, 8\).*one size"):
        network(torch.zeros(1, 1, 10, 10))


def test_what_is_there_stays_and_the_mode_too():
    network = started().eval()
    network.conv1.train()
    before = copy.deepcopy(network.state_dict())
    learn_initial_membranes(network, (1, 8, 8), seed=9)
    assert all(torch.equal(before[n], t) for n, t in network.state_dict().items())
    assert network.conv1.training
    assert not network.conv2.training


def test_a_soma_run_twice_is_refused():
    soma, linear = Soma(4), nn.Linear(4, 4)
    network = Network(linear, soma, linear, soma, timesteps=2)
    with pytest.raises(QuadspikeError, match="1@2"):
        learn_initial_membranes(network, (4,))


def test_a_membrane_for_other_channels_is_refused():
    with pytest.raises(QuadspikeError, match="3 channels"):
        Soma(3).start_from(torch.zeros(4, 2, 2))
