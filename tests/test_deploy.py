from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.nn.utils import parametrizations, prune
from torch.nn.utils.parametrize import remove_parametrizations

from quadspike import (
    LIF,
    Network,
    QuadspikeError,
    Soma,
    create_model,
    load_model,
    save_model,
)
from quadspike.call import Timed
from quadspike.deploy import check_fold, fold, stream
from quadspike.models.pool import MaxPool
from quadspike.norms import BatchNorm
from tests.conftest import calibrate

CASES = [
    ("resnet8", 3, 16, "fire-then-sum"),
    ("resnet8", 3, 16, "sum-then-fire"),
    ("vggsnn", 2, 16, "fire-then-sum"),
    ("cnn", 1, 8, "fire-then-sum"),
    ("mlp", 1, 8, "fire-then-sum"),
]


def ready(name, channels, size, residual, dtype=torch.float64, **options):
    """A model with random norms and running statistics, as training would leave it."""
    model = create_model(
        name, in_channels=channels, image_size=size, residual=residual, timesteps=3, **options
    ).to(dtype)
    for module in model.modules():
        if isinstance(module, BatchNorm):
            nn.init.normal_(module.weight, 1.0, 0.5)
            nn.init.normal_(module.bias, 0.0, 0.2)
    calibrate(model, torch.randn(32, channels, size, size, dtype=dtype))
    return model, torch.randn(16, channels, size, size, dtype=dtype)


@pytest.mark.parametrize("neuron", ["qif", "lif"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_folding_changes_no_spike_in_float64(case, neuron):
    model, x = ready(*case, neuron=neuron)
    folded = fold(model)
    check = check_fold(model, folded, x)
    assert not any(isinstance(module, BatchNorm) for module in folded.modules())
    assert sum(layer.spikes for layer in check.layers) > 10_000
    assert sum(layer.changed for layer in check.layers) == 0
    assert check.changed_spikes == 0
    assert check.changed_predictions == 0
    _, seen = model(x, taps="rate")
    assert all(values["rate"].min() > 0 for values in seen.values())  # the test saw spikes


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        ("resnet19", 3, 32, "fire-then-sum"),
        ("resnet19", 3, 32, "sum-then-fire"),
        ("resnet34", 3, 64, "fire-then-sum"),
        ("vggsnn", 2, 48, "fire-then-sum"),
    ],
    ids=str,
)
def test_the_paper_s_networks_fold_and_stream_without_a_changed_spike(case):
    model, x = ready(*case)
    folded = fold(model)
    check = check_fold(model, folded, x[:4])
    assert sum(layer.changed for layer in check.layers) == 0
    assert check.changed_spikes == 0
    live = stream(folded)
    frames = torch.stack([live(x[:4]) for _ in range(3)])
    torch.testing.assert_close(frames, model(x[:4]), rtol=1e-10, atol=1e-10)


def test_folding_reaches_a_shortcut_without_a_neuron():
    model, x = ready(*CASES[1], shortcut_neuron=False)
    folded = fold(model)
    assert not any(isinstance(module, BatchNorm) for module in folded.modules())
    torch.testing.assert_close(folded(x), model(x))
    live = stream(folded)
    torch.testing.assert_close(torch.stack([live(x) for _ in range(3)]), model(x))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_folding_changes_only_ties_in_float32(case):
    model, x = ready(*case, dtype=torch.float32)
    check = check_fold(model, fold(model), x)
    assert check.unexplained == 0
    assert check.changed_spikes < 1e-3


def test_a_flip_at_a_tie_explains_what_its_neuron_does_later():
    """A membrane at the threshold, up to rounding, whose spike decides the next step."""
    net = Network(nn.Linear(1, 1, bias=False), Soma(1, LIF(beta=1.0), norm=None), nn.Linear(1, 2))
    shifted = copy.deepcopy(net.double().eval())
    with torch.no_grad():
        net[0].weight.fill_(0.5)
        shifted[0].weight.fill_(0.5 - 1e-15)
    x = torch.tensor([1.0, 0.2, 0.2], dtype=torch.float64).view(3, 1, 1)
    (layer,) = check_fold(net, shifted, x).layers
    assert layer.changed == 2
    assert layer.ties == layer.changed
    with torch.no_grad():
        shifted[0].weight.fill_(0.4999)  # further off than rounding
    check = check_fold(net, shifted, x)
    assert check.unexplained == check.layers[0].changed > 0


def test_a_norm_that_no_chain_holds_is_not_left_behind():
    class Own(Timed):
        def __init__(self):
            super().__init__()
            self.conv, self.soma = nn.Conv2d(1, 4, 3), Soma(4)

        def forward(self, x, call):
            return self.soma(self.conv(x), call)

    net = Network(Own(), nn.Flatten(), nn.Linear(144, 2), input_rank=4)
    net(torch.randn(2, 1, 8, 8))
    with pytest.raises(QuadspikeError, match=r"cannot fold 0\.soma\.norm"):
        fold(net)


def test_what_is_no_network_is_not_folded():
    with pytest.raises(QuadspikeError, match=r"fold takes a quadspike\.Network, got Linear"):
        fold(nn.Linear(2, 2))


@pytest.mark.parametrize(
    "options",
    [
        {"shortcut_neuron": False},
        {"identity_norm": True, "stem_width": 8},  # all shortcuts are projections
        {"eta": 0.7, "initial_gain": 0.5},
    ],
    ids=str,
)
def test_a_folded_model_can_be_saved_and_loaded(options, tmp_path):
    model, x = ready(*CASES[1], **options)
    folded = fold(model)
    again = load_model(save_model(folded, tmp_path / "folded.safetensors")).eval()
    assert again.stem[0].weight.dtype == torch.float64
    assert torch.equal(again(x), folded(x))


def test_a_wrong_fold_is_noticed():
    model, x = ready(*CASES[0])
    folded = fold(model)
    with torch.no_grad():
        folded.layer2[0].first[0].bias += 0.05
    check = check_fold(model, folded, x)
    wrong = [layer.layer for layer in check.layers if layer.changed > layer.ties]
    assert wrong == ["layer2.0.first.soma"]
    assert check.changed_spikes > 0


def test_layers_are_compared_however_a_module_of_one_s_own_calls_them():
    class Own(Timed):
        def __init__(self):
            super().__init__()
            self.used = nn.Sequential(nn.Linear(6, 6), Soma(6, residual="after"))
            self.unused = nn.Sequential(nn.Linear(6, 6), Soma(6))

        def forward(self, x, call):
            synapse, soma = self.used
            return soma(synapse(x), call, residual=x)

    x = torch.randn(64, 6, dtype=torch.float64)
    net = Network(nn.Linear(6, 6), Soma(6), Own(), nn.Linear(6, 2)).double()
    calibrate(net, x)
    check = check_fold(net, fold(net), x)
    assert [layer.layer for layer in check.layers] == ["1", "2.used.1"]
    assert check.unexplained == 0


def test_folding_leaves_the_original_alone_and_keeps_the_readout():
    model, x = ready(*CASES[0], readout="last")
    before = model(x)
    folded = fold(model.train())
    assert model.training
    assert not folded.training
    assert folded.readout == "last"
    assert torch.equal(model.eval()(x), before)


def test_folding_keeps_an_existing_bias():
    net = Network(nn.Linear(6, 5), Soma(5), nn.Linear(5, 2), timesteps=3).double()
    calibrate(net, torch.randn(64, 6, dtype=torch.float64))
    check = check_fold(net, fold(net), torch.randn(64, 6, dtype=torch.float64))
    assert check.changed_spikes == 0


@pytest.mark.parametrize("made", [parametrizations.weight_norm, prune.identity])
def test_a_weight_that_is_computed_from_others_cannot_be_folded(made):
    net = Network(nn.Linear(6, 5), Soma(5), nn.Linear(5, 2), timesteps=3)
    made(net[0], "weight")
    net(torch.randn(4, 6))
    with pytest.raises(QuadspikeError, match=r"'1': the weight of its .*Linear is computed"):
        fold(net)
    if made is prune.identity:
        prune.remove(net[0], "weight")
    else:
        remove_parametrizations(net[0], "weight")
    fold(net)


def test_a_norm_without_a_synapse_before_it_cannot_be_folded():
    net = Network(nn.Conv2d(1, 4, 3), nn.AvgPool2d(2), Soma(4), nn.Flatten(), nn.Linear(36, 2))
    with pytest.raises(QuadspikeError, match="follows AvgPool2d"):
        fold(net)
    with pytest.raises(QuadspikeError, match="evaluation mode"):
        check_fold(net, net, torch.zeros(1, 1, 8, 8))


def test_a_norm_over_another_axis_than_its_synapse_s_cannot_be_folded():
    net = Network(nn.Conv2d(1, 3, 3), Soma(3), nn.Linear(6, 4), Soma(3), nn.Flatten())
    with pytest.raises(QuadspikeError, match="3 channels and its Linear makes 4 numbers"):
        fold(net)


def shared(place: str) -> Network:
    linear, soma, tied = nn.Linear(6, 6), Soma(6), nn.Linear(6, 6)
    tied.weight = linear.weight
    layers: dict[str, list[nn.Module]] = {
        "Soma": [nn.Linear(6, 6), soma, nn.Linear(6, 6), soma],
        "Linear": [linear, Soma(6), linear, Soma(6)],
        "Parameter": [linear, Soma(6), tied, Soma(6)],
        "nothing": [nn.Sequential(linear, nn.Linear(6, 6))] * 2 + [nn.Linear(6, 6), Soma(6)],
    }
    return Network(*layers[place], nn.Linear(6, 2), timesteps=3).double()


@pytest.mark.parametrize("place", ["Soma", "Linear", "Parameter"])
def test_what_stands_in_two_places_cannot_be_folded(place):
    with pytest.raises(QuadspikeError, match=f"its {place} stands in 2 places"):
        fold(shared(place))


def test_what_no_norm_follows_may_stand_in_two_places():
    net, x = shared("nothing"), torch.randn(64, 6, dtype=torch.float64)
    calibrate(net, x)
    assert check_fold(net, fold(net), x).changed_spikes == 0


def test_a_pool_that_stands_in_two_places_is_before_both():
    pool = nn.MaxPool2d(2)
    net = Network(nn.Conv2d(1, 4, 3), Soma(4), pool, nn.Conv2d(4, 4, 3), pool, Soma(4))
    with pytest.raises(QuadspikeError, match="'5': its normalisation follows MaxPool2d"):
        fold(net)


# -- streaming -------------------------------------------------------------------------


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_stream_equals_one_call(case, folded):
    model, _ = ready(*case)
    model = fold(model) if folded else model
    _, channels, size, _ = case
    frames = torch.randn(5, 4, channels, size, size, dtype=torch.float64)
    expected = model(frames)
    live = stream(model)
    got = torch.stack([live(frame) for frame in frames])
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)
    assert live.steps == 5
    live.reset()
    torch.testing.assert_close(live(frames[0]), expected[0])


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.sampled_from(["qif", "lif"]))
@settings(max_examples=15, deadline=None)
def test_streamed_chunks_equal_one_call(chunks, neuron):
    model, _ = ready(*CASES[3], neuron=neuron)
    frames = torch.randn(sum(chunks), 2, 1, 8, 8, dtype=torch.float64)
    live = stream(model)
    got = torch.cat([live(part) for part in frames.split(chunks)])
    torch.testing.assert_close(got, model(frames), rtol=1e-12, atol=1e-12)


def test_a_stream_refuses_another_batch_or_size_and_a_network_put_back_to_training():
    model, x = ready(*CASES[0])
    live = stream(model)
    live(x[:4])
    for other in (x[:1], x[:3], x[:4, :, :8, :8]):
        with pytest.raises(QuadspikeError, match="the state is for inputs"):
            live(other)
    assert live.steps == 1
    model.train()
    for again in (live, lambda x: stream(model)):
        with pytest.raises(QuadspikeError, match="evaluation mode"):
            again(x[:4])


def test_a_step_beyond_the_parameters_is_refused_and_leaves_no_layer_ahead():
    betas = torch.full((2, 4), 0.5)
    second = Soma(4, LIF(beta=betas), norm=None)
    net = Network(nn.Linear(3, 4), Soma(4, norm=None), nn.Linear(4, 4), second, nn.Linear(4, 2))
    live = stream(net.eval())
    live(torch.randn(1, 3)), live(torch.randn(1, 3))
    states = dict(live.states)
    with pytest.raises(QuadspikeError, match="step 3"):
        live(torch.randn(1, 3))
    assert (live.steps, live.states) == (2, states)


def test_a_soma_used_twice_has_two_states():
    soma = Soma(6, norm=None)
    net = Network(nn.Linear(6, 6), soma, nn.Linear(6, 6), soma, nn.Linear(6, 2)).double().eval()
    frames = torch.randn(5, 4, 6, dtype=torch.float64)
    live = stream(net)
    torch.testing.assert_close(torch.stack([live(frame) for frame in frames]), net(frames))
    _, seen = net(frames, taps="rate")
    assert list(seen) == ["1", "1@2"]


def test_scale_and_shift_per_step_follow_a_stream():
    class PerStep(BatchNorm):
        def affine(self, x, repeats=1):
            return torch.tensor([[1.0], [3.0], [-2.0]]), torch.tensor([[0.0], [0.2], [0.9]])

    net = Network(nn.Linear(1, 1), Soma(1), nn.Linear(1, 2)).eval()
    net[1].norm = PerStep(1).eval()
    frames = torch.randn(3, 64, 1)
    live = stream(net)
    assert torch.equal(torch.stack([live(frame) for frame in frames]), net(frames))


@pytest.mark.parametrize("strict", [False, True])
def test_an_export_has_no_operator_of_ours(strict):
    model = create_model("cnn", in_channels=1, seed=0, timesteps=3).eval()
    small, x = fold(model), torch.rand(4, 1, 8, 8)
    assert {layer.backend for layer in small.explain()} == {"vectorised"}
    program = torch.export.export(small, (x,), strict=strict)
    assert "quadspike." not in str(program.graph)
    assert torch.equal(program.module()(x), small(x))


def test_an_export_on_a_gpu_pools_with_torch(monkeypatch):
    monkeypatch.setattr("quadspike.ops.pool._INSTALLED", True)
    with FakeTensorMode():
        x = torch.empty(2, 2, 8, 8, device="cuda", memory_format=torch.channels_last)
        program = torch.export.export(Network(MaxPool(2), input_rank=4), (x,))
    assert "quadspike." not in str(program.graph)
