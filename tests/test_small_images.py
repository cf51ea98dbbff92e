"""First epochs on images that are shrunk."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import Tensor, nn

from quadspike import QuadspikeError
from quadspike.cli.display import Display
from quadspike.data.geometry import Geometry
from quadspike.data.split import Split
from quadspike.training import Recipe, train
from quadspike.training.distributed import Workers
from quadspike.training.manner import Manner
from quadspike.training.network import make_network
from quadspike.training.plan import estimate
from quadspike.training.sizes import check_sizes
from tests.conftest import run_cli
from tests.watching import Epochs


def tiny(**changes: Any) -> Recipe:
    sizes = {"small_size": 4, "small_epochs": 1}
    return Recipe(
        "tiny", "digits", "cnn", timesteps=1, epochs=2, batch_size=256, lr=0.05, **sizes
    ).but(**changes)


def test_a_pixel_is_the_mean_of_those_it_covers() -> None:
    image = torch.arange(16.0).view(1, 1, 4, 4)
    assert Manner(size=2).show(image).flatten().tolist() == [2.5, 4.5, 10.5, 12.5]
    assert Manner(size=3).show(image)[0, 0, 0, 0] == image[0, 0, :2, :2].mean()


def test_the_first_epochs_see_small_images_and_evaluations_whole_ones(tmp_path: Path) -> None:
    recipe, epochs = tiny(), Epochs()
    network = make_network(recipe, Geometry(1, 8, 10))
    trained: dict[int, set[int]] = {}
    evaluated: list[int] = []

    def look(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        side = args[0].shape[-1]
        if module.training:
            trained.setdefault(epochs.over, set()).add(side)
        else:
            evaluated.append(side)

    network.register_forward_pre_hook(look)
    console = Console(file=StringIO(), width=200)
    watchers = [epochs, Display(console)]
    train(recipe, model=network, out=tmp_path / "run", device="cpu", observers=watchers)
    assert trained == {0: {4}, 1: {8}}
    assert evaluated[:2] == [8, 4]  # before any work one look at either size
    assert set(evaluated[2:]) == {8}
    assert "images of 4 x 4 in the first epoch" in console.file.getvalue()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"small_size": None}, "go together"),
        ({"small_epochs": 0}, "go together"),
        ({"small_epochs": 2}, "none of the 2 epochs for images of full size"),
        ({"dataset": "digits-events"}, "has recordings"),
    ],
)
def test_what_shrinks_nothing_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(QuadspikeError, match=words):
        tiny(**fields)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"small_size": 8}, "have a side of 8; make it less"),
        ({"model": "mlp"}, "does not take images of 4 x 4 beside 8 x 8"),
        ({"aid": "imp"}, "does not take images of 4 x 4 beside 8 x 8"),
    ],
)
def test_a_size_that_does_not_fit_is_refused_before_any_work(
    tmp_path: Path, fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(QuadspikeError, match=words):
        train(tiny(**fields), out=tmp_path / "run", device="cpu")


@pytest.mark.parametrize(
    ("recipe", "size", "words"),
    [("digits-mlp", 4, "does not take images of 4 x 4"), ("digits-cnn", 20, "make it less")],
)
def test_a_plan_refuses_what_a_run_does(
    recipe: str, size: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ("--small-size", str(size), "--small-epochs", "1")
    assert run_cli("train", recipe, *small, "--dry-run", "--device", "cpu") == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_known_data_refuse_it_before_they_are_read() -> None:
    with pytest.raises(QuadspikeError, match="those of cifar10 have a side of 32"):
        check_sizes(tiny(dataset="cifar10", model="resnet8", small_size=32))


def test_recordings_of_ones_own_are_not_shrunk(tmp_path: Path) -> None:
    frames = torch.zeros(8, 2, 1, 16, 16, dtype=torch.uint8)
    clips = Split("clips", frames, torch.arange(8) % 2, ("a", "b"), levels=1)
    recipe = tiny(dataset="own", timesteps=2, batch_size=4)
    with pytest.raises(QuadspikeError, match="not recordings"):
        train(recipe, data=(clips, clips), out=tmp_path / "run", device="cpu")


def test_a_plan_counts_small_images_for_less() -> None:
    recipe = Recipe("plan", "cifar10", "resnet8", timesteps=1, epochs=10)
    whole, small = (
        estimate(r, torch.device("cpu"), Workers()).seconds
        for r in (recipe, recipe.but(small_size=8, small_epochs=9))
    )
    assert small < 0.6 * whole
