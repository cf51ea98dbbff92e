"""Muon: what turns, by how much, and what stays as SGD has it."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from quadspike import Network, QuadspikeError, Soma, create_model
from quadspike.data.geometry import GEOMETRIES
from quadspike.training import Recipe, muon
from quadspike.training.memory import need
from quadspike.training.muon import Muon, normalised_weights, orthogonal
from quadspike.training.network import make_network
from quadspike.training.schedule import make_optimizer, set_learning_rate
from quadspike.training.trainee import Trainee

RECIPE = Recipe("mine", "digits", "cnn", optimizer="muon", lr=0.2, turn=0.05, weight_decay=0.01)


def network() -> nn.Module:
    return create_model("cnn", in_channels=1, seed=3)


def with_gradients(model: nn.Module, seed: int = 0) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)
    return model


def angle(a: Tensor, b: Tensor) -> float:
    a, b = a.detach().double().flatten(), b.detach().double().flatten()
    cosine = nn.functional.cosine_similarity(a, b, dim=0)
    return math.acos(min(1.0, float(cosine)))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 10**6), st.floats(1e-12, 1e12))
def test_a_matrix_keeps_its_directions_and_loses_their_sizes(
    rows: int, columns: int, seed: int, scale: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    matrix = scale * torch.randn(2, rows, columns, generator=generator, dtype=torch.float64)
    u, s, vh = torch.linalg.svd(matrix, full_matrices=False)
    found = u.mT @ orthogonal(matrix) @ vh.mT
    sizes = found.diagonal(dim1=-2, dim2=-1)
    torch.testing.assert_close(found, torch.diag_embed(sizes), rtol=0, atol=1e-9)
    seen = s > 0.01 * s.amax(-1, keepdim=True)  # five rounds cannot lift the smallest ones
    assert ((sizes[seen] > 0.6) & (sizes[seen] < 1.25)).all()


def test_zero_stays_zero() -> None:
    assert torch.equal(orthogonal(torch.zeros(1, 3, 5)), torch.zeros(1, 3, 5))


@pytest.mark.parametrize(
    ("model", "options", "others"),
    [
        ("resnet19", {}, []),
        ("resnet19", {"residual": "sum-then-fire", "shortcut_neuron": False}, []),
        ("resnet34", {}, []),
        ("vggsnn", {"in_channels": 2}, []),
        ("cnn", {"norm": None}, [f"conv{n}.synapse.weight" for n in (1, 2, 3)]),
    ],
)
def test_every_weight_before_a_normalisation_turns(
    model: str, options: dict[str, Any], others: list[str]
) -> None:
    net = create_model(model, **options)
    turning = set(normalised_weights(net))
    left = [n for n, p in net.named_parameters() if p.ndim > 1 and p not in turning]
    assert left == [*others, "classifier.weight"]


@pytest.mark.parametrize("nesterov", [False, True])
def test_a_step_turns_by_the_angle_asked_for_and_keeps_the_length(nesterov: bool) -> None:
    model = with_gradients(network())
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    optimizer = make_optimizer(RECIPE.but(nesterov=nesterov), model)
    optimizer.step()
    turning = set(normalised_weights(model))
    assert len(turning) == 3
    for name, parameter in model.named_parameters():
        if parameter in turning:
            assert angle(before[name], parameter) == pytest.approx(0.05, rel=0.1)
            assert parameter.norm().item() == pytest.approx(before[name].norm().item(), rel=1e-6)


@pytest.mark.parametrize("nesterov", [False, True])
def test_two_steps_are_the_equation(nesterov: bool) -> None:
    model = network()
    weight = next(p for p in normalised_weights(model) if p.shape[1] > 1)
    optimizer = make_optimizer(RECIPE.but(nesterov=nesterov, momentum=0.8), model)
    expected, momentum = weight.detach().clone().flatten(1), torch.zeros_like(weight).flatten(1)
    for seed, share in ((1, 1.0), (2, 0.5)):
        with_gradients(model, seed)
        assert weight.grad is not None
        gradient = weight.grad.flatten(1).clone()
        set_learning_rate(optimizer, RECIPE.lr * share)
        optimizer.step()
        momentum = 0.8 * momentum + gradient
        turn = orthogonal((gradient + 0.8 * momentum if nesterov else momentum)[None])[0]
        length = expected.norm()
        expected = expected - share * 0.05 * turn * length / turn.norm()
        expected = expected * length / expected.norm()
        torch.testing.assert_close(weight.detach().flatten(1), expected, rtol=1e-5, atol=1e-7)


def test_all_else_moves_as_with_sgd() -> None:
    model = with_gradients(network())
    twin = copy.deepcopy(model)
    with_gradients(twin)
    turns, sgd = make_optimizer(RECIPE, model), make_optimizer(RECIPE.but(optimizer="sgd"), twin)
    assert isinstance(turns, Muon)
    turning = set(normalised_weights(model))
    for _ in range(2):
        turns.step()
        sgd.step()
        with_gradients(model)
        with_gradients(twin)
    for (name, ours), theirs in zip(model.named_parameters(), twin.parameters(), strict=True):
        assert torch.equal(ours, theirs) == (ours not in turning), name


def test_a_spoilt_step_changes_nothing() -> None:
    model = with_gradients(network())
    optimizer = make_optimizer(RECIPE, model)
    optimizer.found_inf, optimizer.grad_scale = torch.zeros(()), None  # type: ignore[attr-defined]
    optimizer.step()
    kept = copy.deepcopy((model.state_dict(), optimizer.state_dict()["state"]))
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, torch.nan)
    optimizer.found_inf.fill_(1)  # type: ignore[attr-defined]
    optimizer.step()
    now = model.state_dict(), optimizer.state_dict()["state"]
    torch.testing.assert_close(now, kept, rtol=0, atol=0)


def test_without_momentum_it_turns_along_the_gradient() -> None:
    model = with_gradients(network())
    before = normalised_weights(model)[1].detach().clone()
    make_optimizer(RECIPE.but(momentum=0.0), model).step()
    assert angle(before, normalised_weights(model)[1]) == pytest.approx(0.05, rel=0.1)


def test_a_weight_without_a_gradient_is_left_alone() -> None:
    model = with_gradients(network())
    weight = normalised_weights(model)[0]
    before, weight.grad = weight.detach().clone(), None
    make_optimizer(RECIPE, model).step()
    assert torch.equal(weight, before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("scale", [1e-36, 1e-30, 1e-26, 1e-20, 1e20])
def test_no_size_of_a_gradient_is_too_small_or_too_large(dtype: torch.dtype, scale: float) -> None:
    matrix = (scale * torch.randn(1, 8, 20, generator=torch.Generator().manual_seed(0))).to(dtype)
    found = orthogonal(matrix)
    assert found.isfinite().all()
    if scale > 1e-30:
        sizes = torch.linalg.svdvals(found.float())
        assert sizes.min() > 0.6
        assert sizes.max() < 1.25


def test_a_weight_stays_where_its_gradient_is_zero_and_turns_again_after() -> None:
    model = with_gradients(network())
    optimizer = make_optimizer(RECIPE, model)
    optimizer.step()
    weight = normalised_weights(model)[1]
    before = weight.detach().clone()
    for _ in range(1000):  # its momentum comes to be zero
        weight.grad = torch.zeros_like(weight)
        optimizer.step()
    assert torch.equal(weight, before)
    with_gradients(model)
    optimizer.step()
    assert angle(before, weight) == pytest.approx(0.05, rel=0.1)


def test_weights_of_all_shapes_turn_as_each_would_alone() -> None:
    shapes = [(300, 40), (5, 3, 3), (130, 2, 3, 3), (200, 16, 3, 3), (4, 200, 1, 1), (64, 3, 3, 3)]
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    for weight, found in zip(weights, muon._directions(weights), strict=True):
        rows = weight.flatten(1)
        wide = rows if len(rows) <= rows.shape[1] else rows.mT
        alone = orthogonal(wide[None])[0]
        alone = (alone if len(rows) <= rows.shape[1] else alone.mT) / alone.norm()
        torch.testing.assert_close(found.flatten(1), alone, rtol=1e-9, atol=1e-12)
        assert found.shape == weight.shape


def test_a_weight_that_feeds_two_somas_turns_once() -> None:
    linear = nn.Linear(6, 6)
    model = Network(linear, Soma(6), linear, Soma(6), nn.Linear(6, 2))
    assert [id(weight) for weight in normalised_weights(model)] == [id(linear.weight)]


def test_every_weight_that_feeds_one_soma_turns() -> None:
    soma, first, second = Soma(6), nn.Linear(6, 6), nn.Linear(6, 6)
    model = Network(nn.Sequential(first, soma), second, soma, nn.Linear(6, 2))
    assert {id(weight) for weight in normalised_weights(model)} == {
        id(first.weight),
        id(second.weight),
    }


def test_a_network_without_norms_is_refused() -> None:
    with pytest.raises(QuadspikeError, match=r"'muon' turns .* this network has none"):
        make_optimizer(RECIPE, create_model("cnn", in_channels=1, norm=None))


def test_no_weight_that_turns_decays_and_heads_turn_too() -> None:
    recipe = RECIPE.but(model="resnet8", aid="sml", decay_all=True, momentum=0.0)
    trainee = Trainee(create_model("resnet8", in_channels=1), recipe)
    optimizer = make_optimizer(recipe, trainee)
    turning = [group for group in optimizer.param_groups if group["turns"]]
    assert [group["weight_decay"] for group in turning] == [0.0]
    held = set(turning[0]["params"])
    assert any(p in held for p in trainee.heads.parameters())
    assert set(optimizer.state) == held  # the others need no momentum


def test_a_weight_of_zeros_stays_and_a_frozen_one_is_not_asked() -> None:
    model = network()
    zeros, frozen = normalised_weights(model)[:2]
    with torch.no_grad():
        zeros.zero_()
    frozen.requires_grad_(False)
    assert not any(weight is frozen for weight in normalised_weights(model))
    before = frozen.clone()
    make_optimizer(RECIPE, with_gradients(model)).step()
    assert torch.equal(zeros, torch.zeros_like(zeros))
    assert torch.equal(frozen, before)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_its_momentum_and_its_directions_count_as_memory(momentum: float) -> None:
    recipe, geometry = RECIPE.but(momentum=momentum), GEOMETRIES["digits"]
    model = make_network(recipe, geometry)
    found = need(model, recipe, geometry, torch.device("cpu")).fixed
    assert found == 4 * 4 * sum(p.numel() for p in model.parameters())
