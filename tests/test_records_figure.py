"""Figures of runs on record: which lines there are, where they lie, what is refused."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text
from PIL import Image

from quadspike import QuadspikeError
from quadspike.records import (
    Plot,
    Series,
    Store,
    against,
    by_agreement,
    curves,
    draw,
    read_groups,
)
from quadspike.records.picture import spaced
from tests.conftest import run_cli
from tests.record_cases import put

SHORT = {"recipe": "cifar10-resnet19-short", "validation": 5000}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "records")


def points(series: Series) -> list[tuple[float, float]]:
    return [(x, round(y, 6)) for run in series.runs for x, y in run]


def test_curves_are_of_the_held_out_images_a_line_a_setting(store):
    put(store, "study/a0", 0.5, 0.8, window="mean", residual="sum-then-fire", **SHORT)
    put(store, "study/a1", 0.6, 0.9, window="mean", residual="sum-then-fire", seed=1, **SHORT)
    put(store, "study/b", 0.4, 0.7, window="mean", **SHORT)
    plot = curves(read_groups(store, ["study"]))
    assert (plot.x, plot.y) == ("epoch", "accuracy on held-out images, %")
    first, second = plot.series
    assert first.label == "residual fire-then-sum"
    assert points(first) == [(1, 41), (2, 71)]
    assert second.label == "residual sum-then-fire"
    assert second.runs == [
        [(1, pytest.approx(51)), (2, pytest.approx(81))],
        [(1, pytest.approx(61)), (2, pytest.approx(91))],
    ]
    assert second.mean() == [(1, pytest.approx(56)), (2, pytest.approx(86))]


def test_the_test_set_where_a_run_holds_out_nothing(store):
    put(store, "one/a", 0.5, 0.8, recipe="cifar10-resnet19-short")
    put(store, "two/b", 0.6, 0.9, **SHORT)
    plot = curves(read_groups(store, ["one", "two"]))
    assert plot.y == "test accuracy, %"
    assert {series.label: points(series) for series in plot.series} == {
        "validation = 0": [(1, 50), (2, 80)],
        "validation = 5000": [(1, 60), (2, 90)],
    }


def test_against_a_number_a_line_for_each_of_the_others(store):
    for lr, accuracy in ((0.2, 0.9), (0.05, 0.8)):
        for detached in (False, True):
            name = f"study/{lr}-{detached}".lower()
            put(store, name, 0.5, accuracy + 0.02 * detached, lr=lr, detach_reset=detached)
    put(store, "study/seed1", 0.5, 0.84, lr=0.05, seed=1)
    plot = against(read_groups(store, ["study"]), "lr")
    assert (plot.x, plot.along, plot.names) == ("lr", "numbers", {})
    off, on = plot.series
    assert (off.label, on.label) == ("no detach reset", "detach reset")
    assert points(off) == [(0.05, 80), (0.05, 84), (0.2, 90)]
    assert off.mean() == [(0.05, pytest.approx(82)), (0.2, pytest.approx(90))]
    assert points(on) == [(0.05, 82), (0.2, 92)]


def test_windows_by_name_lie_where_the_neuron_puts_them(store):
    for window in (None, "mean", 0.25, "stationary", -0.5):
        put(store, f"study/at{window}".lower(), 0.5, 0.9, window=window)
    plot = against(read_groups(store, ["study"]), "window")
    assert (plot.x, plot.along) == ("centre of the window", "numbers")
    places = {"own": 0.5, "mean": 0.0625, "stationary": 0.046752}
    assert plot.names == pytest.approx(places, abs=1e-5)
    (series,) = plot.series
    assert [x for x, _ in series.mean()] == sorted([*plot.names.values(), 0.25, -0.5])


def test_a_name_that_lies_elsewhere_for_another_neuron_says_so(store):
    for neuron in ("qif", "lif"):
        for window in ("threshold", "mean"):
            put(store, f"study/{neuron}-{window}", 0.9, neuron=neuron, window=window)
    plot = against(read_groups(store, ["study"]), "window")
    assert plot.names == {"mean, LIF": 0, "mean, QIF": 0.0625, "threshold": 0.5}
    assert [series.label for series in plot.series] == ["LIF", "QIF"]


def test_names_without_a_place_stand_in_a_row(store):
    for eta in (1.0, None, 0.5):
        put(store, f"study/{eta}".lower(), 0.9, eta=eta)
    plot = against(read_groups(store, ["study"]), "eta")
    assert plot.along == "names"
    assert plot.names == {"own": 0, "0.5": 1, "1": 2}
    assert [x for x, _ in plot.series[0].mean()] == [0, 1, 2]


def test_what_cannot_be_drawn_is_refused(store, tmp_path):
    with pytest.raises(QuadspikeError, match="'study' has no runs on record; no group has"):
        read_groups(store, ["study"])
    put(store, "alone", 0.9)
    put(store, "study/a", 0.9, lr=0.1)
    put(store, "study/b", 0.9, lr=0.2)
    with pytest.raises(QuadspikeError, match="'' has no runs on record; those that have are: stu"):
        read_groups(store, [""])
    with pytest.raises(QuadspikeError, match="name a group"):
        read_groups(store, [])
    runs = read_groups(store, ["study"])
    with pytest.raises(QuadspikeError, match="unknown field 'learning_rate'"):
        against(runs, "learning_rate")
    with pytest.raises(QuadspikeError, match="do not differ in 'eta'; they differ in: lr"):
        against(runs, "eta")
    with pytest.raises(QuadspikeError, match="they differ in no field"):
        against(runs[:1], "lr")


def test_a_single_epoch_is_seen():
    series = [Series(name, [[(1.0, y)]]) for name, y in (("a", 89.0), ("b", 90.0))]
    (ax,) = draw(Plot("epoch", "accuracy", series, "epochs")).axes
    assert [line.get_marker() for line in ax.lines] == ["o", "o"]


def test_a_line_of_few_points_shows_them_all():
    few = [Series(name, [[(1.0, y - 60), (24.0, y)]]) for name, y in (("a", 89.0), ("b", 90.0))]
    (ax,) = draw(Plot("epoch", "accuracy", few, "epochs")).axes
    assert [line.get_marker() for line in ax.lines] == ["o", "o"]
    assert ax.get_xlim()[0] <= 1
    assert ax.get_ylim()[0] < 29
    many = [Series("a", [[(float(x), 90 - 60 / x) for x in range(1, 25)]])]
    (ax,) = draw(Plot("epoch", "accuracy", many, "epochs")).axes
    assert ax.get_ylim()[0] > 80
    assert ax.lines[0].get_marker() == ""


def test_labels_keep_apart_and_in_their_order():
    close = [0.9, 0.95, 0.955, 0.96, 0.97]
    found = spaced(close, 0.1)
    assert all(b - a > 0.1 - 1e-9 for a, b in pairwise(found))
    assert found[-1] <= 1
    assert spaced([0.1, 0.5, 0.8], 0.1) == pytest.approx([0.1, 0.5, 0.8])


@pytest.mark.parametrize("fields", [1, 6])
def test_no_label_covers_another_or_leaves_the_page(fields):
    many = "window stationary, " * fields
    lines = [Series(f"{many}lr = {i}", [[(1, 50), (2, 90 + 0.01 * i)]]) for i in range(16)]
    figure = draw(Plot("epoch", "accuracy, %", lines, "epochs"))
    (ax,) = figure.axes
    texts = [text for text in ax.texts if isinstance(text, Annotation)]
    assert [text.get_text().split(" = ")[1] for text in texts] == [str(i) for i in range(16)]
    # The text alone: an annotation's extent is with its arrow.
    extents = [Text.get_window_extent(text) for text in texts]
    assert not any(a.overlaps(b) for a, b in combinations(extents, 2))
    page = figure.bbox
    assert all(page.x0 <= box.x0 and box.x1 <= page.x1 for box in extents)
    assert all(page.y0 <= box.y0 and box.y1 <= page.y1 for box in extents)
    assert ax.get_window_extent().width > 0.3 * page.width


@pytest.mark.parametrize("along", ["epochs", "numbers"])
def test_no_pointer_crosses_the_frame_to_a_line_that_ends_early(along):
    def drawn(early: float) -> tuple[list[Annotation], list[Line2D]]:
        lines = [Series(str(i), [[(1, 30), (early if i % 2 else 80, 90 + i)]]) for i in range(10)]
        (ax,) = draw(Plot("x", "accuracy, %", lines, along)).axes
        keys = [line for line in ax.lines if line.get_transform() == ax.transAxes]
        for key, line in zip(keys, ax.lines, strict=False):
            assert (key.get_color(), key.get_linestyle()) == (
                line.get_color(),
                line.get_linestyle(),
            )
        return [text for text in ax.texts if isinstance(text, Annotation)], keys

    names, keys = drawn(24)
    assert not [name for name in names if name.arrow_patch]
    assert [name.xyann[1] for name in names] == [key.get_ydata()[0] for key in keys]
    assert all(max(key.get_xdata()) < name.xyann[0] for name, key in zip(names, keys, strict=True))
    names, keys = drawn(78)
    assert all(name.arrow_patch for name in names)
    assert keys == []


def test_the_command_draws_what_is_on_record(store, tmp_path, capsys):
    for seed in (0, 1):
        for window in (None, "mean"):
            name = f"study/{window}-{seed}".lower()
            put(store, name, 0.5, 0.8, 0.85 + 0.01 * seed, window=window, seed=seed, **SHORT)
    figure = ("records", "figure", "study", "--records", str(store.root), "--out")
    for extra in ((), ("--x", "window")):
        out = tmp_path / "figure.png"
        assert run_cli(*figure, str(out), *extra) == 0
        assert f"4 runs in {1 if extra else 2} line" in capsys.readouterr().out
        with Image.open(out) as image:
            assert image.width == 1360
            assert len(image.convert("RGB").getcolors(1 << 24)) > 50
        out.unlink()
    assert run_cli(*figure, str(tmp_path / "figure.svg")) == 0
    assert run_cli(*figure, str(tmp_path / "figure.bmp")) == 2
    assert "unknown figure format 'bmp'" in capsys.readouterr().err
    assert run_cli(*figure, str(tmp_path / "figure.png"), "--x", "lr") == 2
    assert "they differ in: window" in capsys.readouterr().err
    assert run_cli("records", "figure", "none", *figure[3:], str(tmp_path / "figure.png")) == 2
    assert "those that have are: study" in capsys.readouterr().err
    assert not (tmp_path / "figure.png").exists()


def test_every_run_is_a_point_at_its_surrogate_s_agreement(store):
    put(store, "study/mean", 0.5, 0.4, window="mean", **SHORT)
    put(store, "study/wide", 0.5, 0.6, window="mean", eta=2.0, **SHORT)
    put(store, "study/gain", 0.5, 0.61, window="mean", initial_gain=2.0, **SHORT)
    put(store, "study/plain", 0.5, 0.58, window="mean", norm="bn", **SHORT)
    put(store, "study/lif", 0.5, 0.7, neuron="lif", **SHORT)
    plot = by_agreement(read_groups(store, ["study"]))
    assert (plot.along, plot.joined) == ("numbers", False)
    lif, qif = plot.series
    assert (lif.label, qif.label) == ("LIF", "QIF")
    (narrow, _), *spread = sorted(point for run in qif.runs for point in run)
    assert narrow == pytest.approx(0.760, abs=1e-3)
    # All three make currents of twice the spread: the threshold is 0.5, and bn's spread is 1.
    assert [x for x, _ in spread] == pytest.approx([0.921] * 3, abs=1e-3)
    drawn = [line for line in draw(plot).axes[0].lines if len(line.get_xdata())]
    assert {line.get_linestyle() for line in drawn} == {"None"}  # in front of the names alone


def test_agreement_is_refused_where_nobody_knows_the_currents(store):
    put(store, "study/tebn", 0.5, 0.4, norm="tebn", **SHORT)
    with pytest.raises(QuadspikeError, match="norm='tebn'"):
        by_agreement(read_groups(store, ["study"]))
