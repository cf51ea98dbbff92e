"""The picture of the runs beside the paper: where its points lie, and what they are called."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from quadspike import QuadspikeError
from quadspike.records import Store, accuracy_against_time, ungrouped
from tests.conftest import run_cli
from tests.record_cases import put


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "records")
    put(store, "tet", 0.9, 0.96, loss="tet", seconds=600.0)
    put(store, "a", 0.9, 0.95, seconds=1200.0)
    put(store, "b", 0.9, 0.97, seconds=1800.0, seed=1)
    put(store, "four", 0.9, 0.94, timesteps=4)
    put(store, "group/left-out", 0.9, 0.5)
    return store


def marked(ax, label: str) -> list[tuple[float, float]]:
    (line,) = [line for line in ax.lines if line.get_label() == label]
    return [(x, round(y, 6)) for x, y in np.asarray(line.get_xydata())]


def test_seeds_are_one_point_and_the_paper_s_are_those_of_the_same_loss(store):
    two, four = accuracy_against_time(ungrouped(store)).axes
    assert tuple(ax.get_title("left") for ax in (two, four)) == (
        "resnet19 on cifar10, T = 2",
        "resnet19 on cifar10, T = 4",
    )
    assert two.get_xscale() == "log"
    assert marked(two, "CE") == [(25, 96)]
    assert marked(two, "TET") == [(10, 96)]
    assert marked(two, "the paper, CE") == [(300, 96.44)]
    assert marked(two, "the paper, TET") == [(300, 96.7)]
    assert marked(four, "CE") == [(22, 94)]
    assert marked(four, "the paper, CE") == [(660, 96.49)]
    names = {text.get_text() for text in two.texts}
    assert {
        "cifar10-resnet19, QIF\n400 epochs, 2 seeds",
        "cifar10-resnet19, QIF\n400 epochs, 1 seed",
        "the paper",
    } == names


def test_a_bar_is_the_spread_over_seeds(store):
    two, _ = accuracy_against_time(ungrouped(store)).axes
    bars = [segment for bar in two.collections for segment in bar.get_segments()]
    heights = {round(float(high - low), 3) for (_, low), (_, high) in bars}
    assert 2.828 in heights  # twice the sample standard deviation of 95 and 97
    assert 0.14 in heights  # the paper's 0.07


def test_settings_that_the_paper_has_not_stand_alone_and_near_times_on_a_plain_axis(tmp_path):
    store = Store(tmp_path / "records")
    for neuron, seconds in (("qif", 6.0), ("lif", 5.0)):
        done = {"recipe": "digits-cnn", "neuron": neuron, "device": "CPU", "seconds": seconds}
        put(store, neuron, 0.9, 0.95, **done)
    (ax,) = accuracy_against_time(ungrouped(store)).axes
    assert (ax.get_xlabel(), ax.get_xscale()) == ("minutes of training on one CPU", "linear")
    names = {text.get_text().partition("\n")[0] for text in ax.texts}
    assert names == {"digits-cnn, QIF", "digits-cnn, LIF"}


def test_the_command_draws_the_runs_in_no_group(store, tmp_path, capsys):
    figure = ("records", "figure", "--records", str(store.root), "--out")
    out = tmp_path / "figure.png"
    assert run_cli(*figure, str(out)) == 0
    assert "4 runs beside the paper's" in capsys.readouterr().out
    with Image.open(out) as image:
        assert image.width == 1360
    assert run_cli(*figure, str(tmp_path / "x.png"), "--x", "lr") == 2
    assert "--x lr is for the runs of a group" in capsys.readouterr().err
    assert run_cli("records", "figure", "--records", str(tmp_path / "no"), "--out", str(out)) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_without_such_runs_there_is_no_picture():
    with pytest.raises(QuadspikeError, match="no runs are on record outside of groups"):
        accuracy_against_time([])
