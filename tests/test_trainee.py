"""What is trained: the network stays what it is, whatever stands beside it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from quadspike import Network, QuadspikeError, Soma, create_model
from quadspike.data.geometry import GEOMETRIES, Geometry
from quadspike.losses import LOSSES, mean_cross_entropy
from quadspike.models.registry import seeded
from quadspike.norms import BatchNorm
from quadspike.training import Recipe
from quadspike.training.network import make_network
from quadspike.training.trainee import Trainee, make_loss

DIGITS = Geometry(1, 8, 10)
START = torch.tensor(0.0)


def recipe(**changes: Any) -> Recipe:
    return Recipe("tiny", "digits", "cnn").but(**changes)


def trainee(**changes: Any) -> Trainee:
    asked = recipe(**changes)
    return Trainee(make_network(asked, DIGITS), asked)


def batch() -> tuple[Tensor, Tensor]:
    return torch.randn(6, 1, 8, 8), torch.arange(6)


@pytest.mark.parametrize("aid", ["sml", "shortcuts"])
def test_heads_leave_no_trace_in_the_network(aid: str) -> None:
    plain, aided = trainee(), trainee(aid=aid)
    assert aided.heads is not None
    ours, theirs = aided.network.state_dict(), plain.network.state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())
    assert aided.network.config == plain.network.config
    assert sum(p.numel() for p in aided.parameters()) > sum(p.numel() for p in plain.parameters())


@pytest.mark.parametrize("aid", [None, "sml", "shortcuts", "imp"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("model", ["cnn", "resnet8"])
def test_every_parameter_takes_part(model: str, loss: str, aid: str | None) -> None:
    """As several workers need it; and every gradient is a finite number."""
    asked = trainee(model=model, loss=loss, aid=aid)
    value, logits = asked(*batch(), START)
    value.backward()
    assert logits.shape == (2, 6, 10)
    for name, parameter in asked.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
    assert all(p.grad.any() for p in (asked.heads or nn.Identity()).parameters())


def test_heads_are_a_function_of_the_seed() -> None:
    one, same, other = (trainee(aid="sml", seed=seed).heads for seed in (0, 0, 1))
    assert one is not None
    assert same is not None
    assert other is not None
    first = "heads.0.0.weight"
    assert torch.equal(one.state_dict()[first], same.state_dict()[first])
    assert not torch.equal(one.state_dict()[first], other.state_dict()[first])


def test_heads_do_not_repeat_the_draws_of_the_network_s_weights() -> None:
    heads = trainee(aid="shortcuts", seed=3).heads
    assert heads is not None
    with seeded(3):
        first = nn.Linear(32, 10)
    assert heads.state_dict()["heads.0.weight"].shape == first.weight.shape
    assert not torch.equal(heads.state_dict()["heads.0.weight"], first.weight)


@pytest.mark.parametrize("sync", [True, False])
def test_heads_follow_the_network_s_type_and_the_recipe_s_statistics(sync: bool) -> None:
    asked = trainee(aid="sml", precision="fp64", sync_norm=sync)
    assert asked.heads is not None
    assert {p.dtype for p in asked.heads.parameters()} == {torch.float64}
    norms = [m for m in asked.heads.modules() if isinstance(m, BatchNorm)]
    assert norms
    assert {norm.sync for norm in norms} == {sync}


def test_the_paper_s_network_gets_the_published_width_and_small_ones_less() -> None:
    for model, width in (("resnet19", 256), ("cnn", 64), ("resnet8", 32)):
        asked = Recipe("wide", "cifar10", model, aid="sml")
        heads = Trainee(make_network(asked, GEOMETRIES["cifar10"]), asked).heads
        assert heads is not None
        assert heads.state_dict()["heads.0.0.weight"].shape[0] == width


def test_im_adds_the_membranes_of_every_soma() -> None:
    asked = trainee(loss="im", im_weight=0.3)
    inputs, labels = batch()
    found, _ = asked(inputs, labels, START)
    with torch.no_grad():
        logits, seen = asked.network(inputs, taps="mean")
    assert len(seen) == 3
    apart = [(float(values["mean"].mean()) - 0.5) ** 2 for values in seen.values()]
    expected = mean_cross_entropy(logits, labels) + 0.3 * sum(apart) / 3
    torch.testing.assert_close(found.detach(), expected)


def test_lts_makes_a_network_that_is_read_out_at_its_last_step() -> None:
    asked = trainee(loss="lts")
    assert asked.network.readout == "last"
    found, logits = asked(*batch(), START)
    torch.testing.assert_close(found, nn.functional.cross_entropy(logits[-1], batch()[1]))
    assert torch.equal(asked.network.predict(logits), logits[-1])
    with pytest.raises(QuadspikeError, match="readout='last'"):
        Trainee(create_model("cnn", in_channels=1), recipe(loss="lts"))


def test_labels_are_smoothed_in_every_loss() -> None:
    logits, labels = torch.randn(2, 6, 10), torch.arange(6)
    for loss in ("ce", "tet", "lts"):
        plain = make_loss(recipe(loss=loss))(logits, labels)
        smooth = make_loss(recipe(loss=loss, label_smoothing=0.3))(logits, labels)
        assert not torch.allclose(plain, smooth), loss


def test_ones_own_network_has_no_place_for_heads_but_for_initial_membranes() -> None:
    own = Network(
        nn.Flatten(), nn.Linear(64, 8), Soma(8), nn.Linear(8, 10), timesteps=2, input_rank=4
    )
    for aid in ("sml", "shortcuts"):
        with pytest.raises(QuadspikeError, match="stages"):
            Trainee(own, recipe(model="own", aid=aid))
    network = make_network(recipe(model="own", aid="imp"), DIGITS, own)
    assert network.somas()["2"].initial_u is not None
