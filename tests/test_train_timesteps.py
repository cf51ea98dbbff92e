"""Training shows a static image fewer steps than inference does."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import nn

from quadspike import Network, QuadspikeError, Soma
from quadspike.cli.display import Display
from quadspike.data.geometry import Geometry
from quadspike.data.split import Split
from quadspike.examine import examine_layers
from quadspike.models import load_model
from quadspike.models.files import read_tensors
from quadspike.records.words import heading, shown
from quadspike.training import Recipe, evaluate, train
from quadspike.training.distributed import Workers
from quadspike.training.memory import GIB, Need, need, out_of_memory
from quadspike.training.network import make_network
from quadspike.training.plan import Measured, estimate
from quadspike.training.step import Step
from quadspike.training.trainee import Trainee
from tests.watching import Epochs

CPU = torch.device("cpu")


def tiny(**changes: Any) -> Recipe:
    return Recipe(
        "tiny", "digits", "mlp", timesteps=3, epochs=2, batch_size=256, lr=0.05, train_timesteps=1
    ).but(**changes)


def own_network(**soma: Any) -> Network:
    return Network(
        nn.Flatten(), nn.Linear(64, 8), Soma(8, **soma), nn.Linear(8, 10), timesteps=3, input_rank=4
    )


@pytest.mark.parametrize("neuron", ["qif", "lif"])
def test_the_weights_are_those_of_as_many_steps_and_evaluation_is_at_all(
    tmp_path: Path, neuron: str
) -> None:
    few, one = tmp_path / "few", tmp_path / "one"
    train(tiny(neuron=neuron), out=few, device="cpu")
    train(tiny(neuron=neuron, timesteps=1, train_timesteps=None), out=one, device="cpu")
    found, wanted = (read_tensors(path / "last.safetensors") for path in (few, one))
    torch.testing.assert_close(found, wanted)
    assert load_model(few / "last.safetensors").timesteps == 3
    usual, short = (evaluate(few, device="cpu", timesteps=steps) for steps in (None, 1))
    assert usual.fresh.accuracy == usual.recorded
    assert (short.fresh.loss == pytest.approx(usual.fresh.loss, rel=1e-5)) is (neuron == "qif")


def test_the_last_epochs_show_all_steps(tmp_path: Path) -> None:
    """An epoch of one step, then one of three that goes on from its weights."""
    recipe, epochs = tiny(neuron="lif", full_epochs=1), Epochs()
    network = make_network(recipe, Geometry(1, 8, 10))
    shown: dict[int, set[int]] = {}
    network.register_forward_hook(
        lambda module, args, out: (
            shown.setdefault(epochs.over, set()).add(out.shape[0]) if module.training else None
        )
    )
    train(recipe, model=network, out=tmp_path / "both", device="cpu", observers=[epochs])
    assert shown == {0: {1}, 1: {3}}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"full_epochs": 3}, "all 2 epochs"),
        ({"full_epochs": 1, "train_timesteps": None}, "train_timesteps"),
        ({"full_epochs": 1, "train_timesteps": 3}, "train_timesteps"),
    ],
)
def test_full_epochs_that_change_nothing_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(QuadspikeError, match=words):
        tiny(**fields)


def test_heads_and_taps_see_the_steps_of_training() -> None:
    recipe = tiny(model="cnn", aid="sml", loss="im")
    trainee = Trainee(make_network(recipe, Geometry(1, 8, 10)), recipe)
    trainee.manner = recipe.manner_in(0)
    loss, logits = trainee(torch.randn(4, 1, 8, 8), torch.arange(4), torch.zeros(()))
    assert logits.shape == (1, 4, 10)
    loss.backward()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"train_timesteps": 4}, ("train_timesteps=4", "timesteps=3")),
        ({"dataset": "digits-events"}, ("recording", "frame for each step")),
        ({"norm": "tebn"}, ("norm='tebn'", "factor for each step")),
        ({"neuron": "glif"}, ("neuron='glif'", "conductance")),
        ({"neuron": "im-lif"}, ("neuron='im-lif'", "each step keeps")),
        ({"loss": "lts"}, ("loss='lts'", "last step")),
        ({"aid": "imp"}, ("aid='imp'", "first step")),
    ],
)
def test_what_needs_all_steps_is_refused(fields: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(QuadspikeError) as caught:
        tiny(**fields)
    assert all(word in str(caught.value) for word in (*words, "train_timesteps"))
    tiny(**{**fields, "train_timesteps": None})
    tiny(**{**fields, "train_timesteps": 3})  # all steps are no fewer


def test_one_s_own_network_and_clips_are_looked_at_too(tmp_path: Path) -> None:
    recipe = tiny(model="own")
    with pytest.raises(QuadspikeError, match="tebn learns a factor for each step"):
        train(recipe, model=own_network(norm="tebn", timesteps=3), out=tmp_path, device="cpu")
    clips = torch.randint(3, (512, 3, 1, 8, 8), dtype=torch.uint8)
    split = Split("clips", clips, torch.arange(512) % 10, tuple("0123456789"), levels=1)
    with pytest.raises(QuadspikeError, match="a recording has a frame for each step"):
        train(tiny(dataset="own"), data=(split, split), out=tmp_path, device="cpu")
    assert train(recipe, model=own_network(), out=tmp_path, device="cpu").status == "finished"


def test_memory_and_the_plan_are_those_of_training() -> None:
    geometry = Geometry(1, 8, 10)
    few, one, all_three = (
        need(make_network(recipe, geometry), recipe, geometry, CPU)
        for recipe in (tiny(), tiny(timesteps=1), tiny(train_timesteps=None))
    )
    assert few == one
    assert few.per_sample < all_three.per_sample
    later = tiny(full_epochs=1)
    assert need(make_network(later, geometry), later, geometry, CPU) == all_three
    assert "at T = 3:" in out_of_memory(later, 256, Need(GIB, GIB), None)
    assert "at T = 1:" in out_of_memory(tiny(), 256, Need(GIB, GIB), None)
    plan, whole = (estimate(r, CPU, Workers()) for r in (tiny(), tiny(train_timesteps=None)))
    assert plan.memory_gib < whole.memory_gib


def test_the_plan_times_every_epoch_with_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    def sample(measured: Measured, most: int) -> float:
        return {1: 1.0, None: 3.0}[measured.manner.steps]

    monkeypatch.setattr(Measured, "sample_seconds", sample)
    monkeypatch.setattr(Measured, "update_seconds", lambda measured, most: 7.0)
    for full in (0, 4):
        plan = estimate(tiny(epochs=10, full_epochs=full), CPU, Workers())
        samples = tiny().batch_size * (10 - full + 3 * full)
        assert plan.seconds == pytest.approx(plan.steps_per_epoch * (samples + 10 * 7.0))


def test_an_update_costs_a_step_the_same_however_many_samples_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    geometry, recipe = Geometry(1, 8, 10), tiny()
    network = make_network(recipe, geometry)
    measured = Measured(network, recipe, geometry, CPU, recipe.manner_in(0))
    monkeypatch.setattr(
        Measured, "_median", lambda _, work: 5.0 if isinstance(work.func, Step) else 2.0
    )
    assert measured.update_seconds(2) == 3.0
    assert measured.sample_seconds(2) == 1.0
    assert measured.step_seconds(2) == 5.0


def test_layers_are_looked_at_with_all_steps() -> None:
    found = examine_layers("digits-mlp:timesteps=2,train_timesteps=1", samples=8, device="cpu")
    assert {len(layer["rate_by_step"]) for layer in found["layers"]} == {2}


def test_it_is_said(tmp_path: Path) -> None:
    text = StringIO()
    display = Display(Console(file=text, width=200))
    train(tiny(epochs=1), out=tmp_path / "run", device="cpu", observers=[display])
    assert "T = 3 (1 in training), " in text.getvalue()
    train(tiny(full_epochs=1), out=tmp_path / "full", device="cpu", observers=[display])
    assert "T = 3 (1 in training until the last epoch), " in text.getvalue()
    assert heading("train_timesteps") == "T in training"
    assert [shown("train_timesteps", value) for value in (None, 1)] == ["all", "1"]
