from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from quadspike import QIF, Network, QuadspikeError, Soma, Taps, Timed, create_model
from quadspike.call import Call
from quadspike.models import Chain, Dropout
from quadspike.randomness import Key
from quadspike.taps import KINDS
from tests.conftest import calibrate


def small(**options) -> Network:
    return Network(
        nn.Conv2d(2, 4, 3, padding=1, bias=False),
        Soma(4),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(4 * 9, 5),
        **options,
    )


def test_a_sequential_of_the_user_s_own_trains():
    net = Network(nn.Linear(2, 32, bias=False), Soma(32), nn.Linear(32, 2), timesteps=3)
    x = torch.randn(256, 2)
    labels = (x.prod(1) > 0).long()  # not linearly separable
    optimizer = torch.optim.Adam(net.parameters(), 0.02)
    for _ in range(150):
        loss = nn.functional.cross_entropy(net.predict(net(x)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert (net.predict(net(x)).argmax(1) == labels).float().mean() > 0.9


def test_a_static_image_equals_its_repeated_frames():
    net = small(timesteps=3).double()
    x = torch.randn(4, 2, 6, 6, dtype=torch.float64)
    still = net(x)
    frames = net(x.expand(3, *x.shape))
    assert still.shape == (3, 4, 5)
    torch.testing.assert_close(still, frames)


def test_the_stem_of_a_static_image_runs_once():
    net = small(timesteps=3)
    rows = []
    net[0].register_forward_hook(lambda m, args, out: rows.append(len(out)))
    net(torch.randn(4, 2, 6, 6))
    net(torch.randn(3, 4, 2, 6, 6))
    assert rows == [4, 12]


@pytest.mark.parametrize("residual", ["fire-then-sum", "sum-then-fire"])
def test_activations_stay_channels_last_and_uncopied(residual):
    model = create_model("resnet8", residual=residual, timesteps=2)
    seen: list[tuple[nn.Module, torch.Tensor, torch.Tensor]] = []
    for module in model.modules():
        if isinstance(module, nn.Conv2d | Soma):
            module.register_forward_hook(lambda m, args, out: seen.append((m, args[0], out)))
    model(torch.randn(3, 3, 16, 16))
    outputs = {out.data_ptr() for _, _, out in seen}
    for module, x, out in seen:
        if x.ndim == 4:
            assert out.is_contiguous(memory_format=torch.channels_last), module
            assert x.is_contiguous(memory_format=torch.channels_last), module
    copied = [module for module, x, _ in seen[1:] if x.data_ptr() not in outputs]
    assert not copied  # every layer reads the very tensor another one wrote


def test_logits_are_per_step_and_readout_says_how_to_read_them():
    logits = torch.randn(4, 3, 5)
    assert torch.equal(small(readout="mean").predict(logits), logits.mean(0))
    assert torch.equal(small(readout="last").predict(logits), logits[-1])


def test_timesteps_can_be_overridden_for_a_call():
    assert small(timesteps=2)(torch.randn(4, 2, 6, 6), timesteps=7).shape[0] == 7


def test_no_membrane_is_ever_in_a_state_dict():
    model = create_model("resnet8")
    before = set(model.state_dict())
    model(torch.randn(2, 3, 16, 16))
    assert set(model.state_dict()) == before
    assert not [name for name in before if "membrane" in name or name.endswith((".u", ".o"))]


def test_a_plain_sequential_inside_a_network_is_a_chain():
    layers = [nn.Conv2d(8, 8, 3, padding=1), Soma(8), nn.Flatten(), nn.Linear(8 * 64, 2)]
    flat = Network(*layers)
    nested = Network(nn.Sequential(*layers[:2]), nn.Sequential(nn.Sequential(layers[2]), layers[3]))
    x = torch.randn(3, 8, 8, 8)
    assert torch.equal(nested(x), flat(x))


def test_a_residual_reaches_the_last_soma_of_nested_chains_or_is_refused():
    inner = Chain(nn.Linear(3, 3), Soma(3, norm=None), Soma(3, norm=None, residual="after"))
    x, residual, call = torch.randn(4, 3), torch.ones(4, 3), Call(1, 4)
    out = Chain(Chain(inner))(x, call, residual)
    assert torch.equal(out, inner(x, Call(1, 4), residual))
    assert out.min() >= 1
    with pytest.raises(QuadspikeError, match="ends in ReLU"):
        Chain(inner, nn.ReLU())(x, Call(1, 4), residual)


def test_a_slice_goes_on_as_the_network_does():
    model = create_model("mlp", in_channels=1, timesteps=2, readout="last").eval()
    body, x = model[:-1], torch.randn(3, 1, 8, 8)
    assert torch.equal(model.predict(model(x)), model.classifier(body.predict(body(x))))
    assert (body.timesteps, body.readout, body.training) == (2, "last", False)
    assert model[1:].input_rank == 2
    assert model[-1] is model.classifier


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.soma = Soma(4)


def test_what_cannot_be_told_about_time_is_refused():
    with pytest.raises(QuadspikeError, match=r"0\.soma needs to know about time"):
        Network(Plain(), nn.Linear(4, 2), input_rank=2)
    with pytest.raises(QuadspikeError, match="Network inside a Network"):
        Network(nn.Linear(2, 2), Network(nn.Linear(2, 2)))
    with pytest.raises(QuadspikeError, match="1: a chain cannot run a ModuleList"):
        Network(nn.Linear(2, 2), nn.ModuleList([Soma(2)]))


@pytest.mark.parametrize("body", [nn.Sequential, Chain])
def test_a_neuron_that_stands_in_a_chain_is_refused(body):
    """It takes [T, B, ...] and would run over the images of a batch as over time."""
    net = Network(nn.Linear(3, 4), body(QIF()), nn.Linear(4, 2))
    with pytest.raises(QuadspikeError, match=r"a chain cannot run a QIF.* Soma\(channels, neuron"):
        net(torch.randn(5, 3))


def test_a_module_of_one_s_own_may_hold_what_it_runs_in_lists():
    class Twice(Timed):
        def __init__(self, *held):
            super().__init__()
            self.held = nn.ModuleList(held)

        def forward(self, x, call):
            return sum(part(x, call) for part in self.held)

    somas = [Soma(4, norm=None), Soma(4, "lif", norm=None)]
    net = Network(nn.Linear(2, 4), Twice(*somas), timesteps=3)
    x = torch.randn(5, 2)
    shown = net[0](x).expand(3, 5, 4)
    assert torch.equal(net(x), somas[0](shown) + somas[1](shown))
    assert list(net.somas()) == ["1.held.0", "1.held.1"]
    with pytest.raises(QuadspikeError, match=r"1\.held\.0\.soma needs.*Plain around it"):
        Network(nn.Linear(2, 4), Twice(Plain()))


def test_a_network_without_a_soma_repeats_its_logits():
    net = Network(nn.Linear(3, 2), timesteps=4)
    logits = net(torch.randn(5, 3))
    assert logits.shape == (4, 5, 2)
    assert torch.equal(logits[0], logits[3])


# -- taps ------------------------------------------------------------------------------


def test_taps_reduce_what_they_name():
    net = calibrate(small(timesteps=3), torch.randn(16, 2, 6, 6))
    x = torch.randn(4, 2, 6, 6)
    logits, seen = net(x, taps=tuple(KINDS))
    assert torch.equal(logits, net(x))
    assert list(seen) == ["1"]
    values = seen["1"]
    u, o = values["membrane"], values["spikes"]
    axes = (1, 2, 3, 4)
    assert u.shape == (3, 4, 4, 6, 6)
    assert torch.equal(o, (u >= 0.5).float())
    torch.testing.assert_close(values["rate"], o.mean(axes))
    torch.testing.assert_close(values["mean"], u.mean(axes))
    torch.testing.assert_close(values["largest"], u.abs().amax(axes))
    low, high = net[1].neuron.surrogate.window(net[1].neuron)
    torch.testing.assert_close(values["window"], ((u >= low) & (u <= high)).float().mean(axes))
    assert values["finite"].all()
    assert values["histogram"].sum(1).tolist() == [u[0].numel()] * 3
    middle = values["histogram"][:, 60:70].sum(1)  # [0, 0.5) of the default axis
    assert middle.tolist() == ((u >= 0) & (u < 0.5)).sum(axes).tolist()


def test_the_window_tap_follows_parameters_per_step():
    neuron = QIF(a=torch.tensor([[0.1], [0.4]]))
    net = Network(nn.Linear(1, 1), Soma(1, neuron, norm=None), nn.Linear(1, 2), timesteps=2)
    x = torch.randn(500, 1)
    _, seen = net(x, taps=("window", "membrane"))
    low, high = neuron.surrogate.window(neuron)
    for t in range(2):
        u = seen["1"]["membrane"][t]
        expected = ((u >= low[t]) & (u <= high[t])).float().mean()
        torch.testing.assert_close(seen["1"]["window"][t], expected)


def test_the_mean_tap_passes_gradients():
    net = small()
    _, seen = net(torch.randn(4, 2, 6, 6), taps="mean")
    seen["1"]["mean"].sum().backward()
    assert net[1].norm.bias.grad.abs().sum() > 0


def test_block_outputs_and_layer_patterns():
    model = create_model("resnet8", timesteps=2)
    x = torch.randn(3, 3, 16, 16)
    _, seen = model(x, taps="output")
    assert set(seen) == {"layer1.0", "layer2.0", "layer3.0", *model.somas()}
    assert seen["layer3.0"]["output"].shape == (2, 3, 64, 4, 4)
    last = seen["layer3.0.second.soma"]["output"]
    assert torch.equal(last, seen["layer3.0"]["output"])
    _, seen = model(x, taps=Taps(("rate",), layers="layer2.*"))
    assert list(seen) == ["layer2.0.first.soma", "layer2.0.shortcut.soma", "layer2.0.second.soma"]


def test_fire_then_sum_makes_integers_and_sum_then_fire_spikes():
    x = torch.randn(8, 3, 16, 16)
    for residual, binary in {"fire-then-sum": False, "sum-then-fire": True}.items():
        model = create_model("resnet8", residual=residual)
        _, seen = model(x, taps=("output", "spikes"))
        output = seen["layer1.0"]["output"]
        assert torch.equal(output, output.round())
        assert (output.max() <= 1) == binary
        assert seen["layer1.0.second.soma"]["spikes"].max() == 1


# -- explain, dropout ------------------------------------------------------------------


def test_explain_names_every_soma():
    rows = create_model("resnet8", neuron="lif").explain()
    assert [row.layer for row in rows][:2] == ["stem.soma", "layer1.0.first.soma"]
    assert {(row.neuron, row.norm, row.backend) for row in rows} == {("lif", "tdbn", "vectorised")}
    assert all(row.reason for row in rows)


def test_dropout_keeps_the_mean_and_differs_between_layers():
    net = Network(Dropout(0.25), nn.Linear(4, 4, bias=False), input_rank=2, timesteps=1)
    twice = Network(Dropout(0.25), Dropout(0.25), nn.Linear(4, 4), input_rank=2, timesteps=1)
    for network in (net, twice):
        nn.init.eye_(network[-1].weight)
    nn.init.zeros_(twice[-1].bias)
    x = torch.ones(20_000, 4)
    assert net(x, key=Key(0, 0)).mean().item() == pytest.approx(1.0, abs=0.01)
    both = twice(x, key=Key(0, 0))
    assert (both == 0).float().mean().item() == pytest.approx(1 - 0.75**2, abs=0.01)


def test_dropout_is_a_function_of_the_key_and_one_mask_for_all_steps():
    net = Network(Chain(Dropout(0.5)), nn.Linear(6, 6, bias=False), timesteps=1, input_rank=2)
    with torch.no_grad():
        net[1].weight.copy_(torch.eye(6))
    x = torch.ones(3, 50, 6)
    one, again = net(x, key=Key(1, 5)), net(x, key=Key(1, 5))
    assert torch.equal(one, again)
    assert not torch.equal(one, net(x, key=Key(1, 6)))
    assert torch.equal(one[0], one[2])
    assert set(one.unique().tolist()) == {0.0, 2.0}
    assert torch.equal(net.eval()(x), x)
    net.train()
    torch.manual_seed(3)
    first = net(x)
    assert not torch.equal(first, net(x))  # without a key every call draws anew ...
    torch.manual_seed(3)
    assert torch.equal(first, net(x))  # ... from torch's own generator


@pytest.mark.parametrize("places", [(5,), (3, 7), (1, 2, 9)])
def test_a_batch_in_parts_meets_the_masks_of_the_whole(places):
    net = Network(Dropout(0.5), nn.Linear(7, 7, bias=False), timesteps=1, input_rank=2)
    nn.init.eye_(net[1].weight)
    x = torch.ones(3, 10, 7)
    whole = net(x, key=Key(1, 5))
    ends = (0, *places, 10)
    parts = [net(x[:, first:last], key=Key(1, 5, first)) for first, last in pairwise(ends)]
    assert torch.equal(torch.cat(parts, dim=1), whole)
    assert not torch.equal(net(x, key=Key(1, 5, 10)), whole)


@pytest.mark.parametrize(
    "layers",
    [
        [nn.Flatten(2), nn.Linear(36, 4), Soma(2)],  # each channel's pixels by themselves
        [nn.Flatten(1, 2), nn.Linear(6, 4), Soma(12)],
        [nn.Flatten(), nn.LazyLinear(2), Soma(2)],
        [nn.LazyConv2d(2, 3), Soma(2)],
    ],
)
def test_a_first_layer_that_can_take_the_input_is_not_refused(layers):
    net = Network(*layers, nn.Flatten(), nn.LazyLinear(5), input_rank=4)
    assert net(torch.randn(3, 2, 6, 6)).shape == (4, 3, 5)


# -- bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(2, 6, 6), r"\[B, C, H, W\] or \[T, B, C, H, W\]"),
        (torch.zeros(4, 3, 6, 6), "2 input channels, got 3"),
        (torch.zeros(0, 4, 2, 6, 6), "empty axis"),
        (torch.zeros(4, 2, 6, 6, dtype=torch.uint8), "floating"),
        ("x", "floating tensor, got str"),
        (np.zeros((4, 2, 6, 6)), r"got ndarray; use torch.as_tensor\(x, dtype=torch.float32\)"),
        (torch.zeros(4, 2, 6, 6).double(), r"weights are torch.float32, .*; use x.to\(torch.float"),
    ],
)
def test_bad_inputs_are_refused(x, message):
    with pytest.raises(QuadspikeError, match=message):
        small()(x)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: small(timesteps=0), "timesteps"),
        (lambda: small(timesteps=2.5), "timesteps"),
        (lambda: small(readout="first"), "readout"),
        (lambda: Network(nn.Flatten(), nn.Linear(4, 2)), "input_rank"),
        (lambda: Dropout(1.0), "0 <= p < 1"),
        (lambda: small()(torch.zeros(1, 2, 6, 6), taps="volts"), "unknown tap"),
        (lambda: Taps(("rate",), bins=0), "bins >= 1"),
        (lambda: small()(torch.zeros(2, 2, 6, 6), taps=5), "taps are names"),
        (lambda: small()(torch.zeros(2, 2, 6, 6), taps=Taps(("rate",), "x*")), "no layer matches"),
        (lambda: small()(torch.zeros(3, 2, 2, 6, 6), timesteps=2), "sequence of 3 steps"),
        (lambda: Network(nn.Linear(4, 2), input_rank=5), "input_rank"),
        (lambda: Network(nn.Linear(4, 2))(torch.zeros(1, 3)), "4 input channels, got 3"),
        (lambda: create_model("mlp")(torch.zeros(1, 1, 8, 8)), "for 192 numbers a sample, got 64"),
        (
            lambda: create_model("vggsnn", image_size=16)(torch.zeros(1, 3, 32, 32)),
            "layer 'classifier' is for 512 numbers a sample, got 2048: .* of another size",
        ),
        (lambda: small().predict(torch.zeros(3, 5)), r"\[T, B, classes\], got \(3, 5\)"),
        (lambda: small().predict((torch.zeros(2, 3, 5), {})), r"\[T, B, classes\], got tuple"),
        (lambda: Dropout("a"), "0 <= p < 1"),
        (lambda: small()(torch.zeros(1, 2, 6, 6), timesteps=0), "timesteps"),
    ],
)
def test_bad_options_are_refused(make, message):
    with pytest.raises(QuadspikeError, match=message):
        make()


@pytest.mark.parametrize("steps", [0, -1, 2.5, "3", None])
def test_timesteps_set_later_are_checked_too(steps):
    net = small()
    net.timesteps = steps
    with pytest.raises(QuadspikeError, match="timesteps must be a whole number >= 1"):
        net(torch.zeros(2, 2, 6, 6))


def test_a_readout_set_later_is_checked_too():
    net = small()
    net.readout = "frist"
    with pytest.raises(QuadspikeError, match="unknown readout 'frist'"):
        net.predict(torch.zeros(2, 2, 3))


def test_a_checkpoint_s_second_run_draws_what_the_first_drew():
    class Saving(Timed):
        def __init__(self, body):
            super().__init__()
            self.body, self.on = body, False

        def forward(self, x, call):
            if self.on:
                return checkpoint(self.body, x, call, use_reentrant=False)
            return self.body(x, call)

    body = Saving(Chain(nn.Linear(8, 8, bias=False), Soma(8), Dropout(0.5)))
    net = Network(nn.Linear(4, 8, bias=False), Soma(8), body, nn.Linear(8, 2), timesteps=3)
    x, found = torch.randn(16, 4), []
    for body.on in (False, True):
        torch.manual_seed(1)
        found.append(torch.autograd.grad(net(x).square().sum(), list(net.parameters())))
    for plain, saving in zip(*found, strict=True):
        torch.testing.assert_close(saving, plain)
