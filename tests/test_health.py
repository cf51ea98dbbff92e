from __future__ import annotations

import torch
from torch import nn

from quadspike import create_model
from quadspike.analysis.health import health
from quadspike.surrogates import Rectangle
from tests.conftest import calibrate


def model_and_input():
    x = torch.randn(16, 3, 16, 16)
    return calibrate(create_model("resnet8", seed=1), x), x


def test_a_healthy_network_has_no_warnings():
    model, x = model_and_input()
    report = health(model, x)
    assert [layer.layer for layer in report.layers] == list(model.somas())
    assert report.warnings == ()
    assert report.first_non_finite is None
    assert all(0.05 < layer.rate < 0.5 and layer.window > 0.3 for layer in report.layers)


def test_dead_saturated_and_blind_layers_are_named():
    model, x = model_and_input()
    names = list(model.somas())
    for name, current in {names[1]: -1.0, names[2]: 10.0}.items():
        norm = model.get_submodule(name).norm
        nn.init.zeros_(norm.weight), nn.init.constant_(norm.bias, current)
    warnings = health(model, x).warnings
    assert warnings[0].startswith(f"{names[1]}: dead")
    assert warnings[1].startswith(f"{names[2]}: saturated")


def test_the_first_layer_that_is_not_finite_is_named():
    model, x = model_and_input()
    with torch.no_grad():
        model.layer2[0].first[0].weight[0, 0, 0, 0] = torch.nan
    report = health(model, x)
    assert report.first_non_finite == "layer2.0.first.soma"
    assert "not a finite number" in report.warnings[0]
    assert not torch.isfinite(model(x)).all()  # nor does the network hide it


def test_a_membrane_too_large_for_its_square_is_reported():
    model, x = model_and_input()
    with torch.no_grad():
        model.stem[1].norm.bias.fill_(-1e25)  # finite, but its square is not
    report = health(model, x)
    assert report.first_non_finite == "stem.soma"


def test_a_layer_through_which_no_gradient_passes_is_named():
    model, x = model_and_input()
    neuron = model.stem[1].neuron
    neuron.surrogate = Rectangle(half_width=0.01, offset=50.0)
    assert health(model, x).warnings == (
        "stem.soma: no gradient: 0.00% of membranes lie inside the window",
    )


def test_a_number_lost_in_the_classifier_is_seen_too():
    model, x = model_and_input()
    with torch.no_grad():
        model.classifier.weight[0, 0] = torch.nan
    report = health(model, x)
    assert report.first_non_finite == "logits"
    assert report.warnings == ("logits: not finite numbers",)


def test_health_leaves_the_network_as_it_was():
    model, x = model_and_input()
    model.train()
    model.stem[1].norm.eval()  # as a user might freeze it
    before = {name: value.clone() for name, value in model.state_dict().items()}
    health(model, x)
    assert model.training
    assert not model.stem[1].norm.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
