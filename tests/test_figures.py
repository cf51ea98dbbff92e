"""Every figure draws for every kind of neuron, shows what it says, and is written the same."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from quadspike import LIF, QIF, QuadspikeError
from quadspike.analysis import figures
from quadspike.analysis.dynamics import orbit, simulate, step
from quadspike.analysis.figures import FIGURES, comparison, draw_all, gallery, style
from quadspike.analysis.figures.saving import write_figure
from quadspike.analysis.sheet import contact_sheet
from quadspike.data.augment import Pipeline
from quadspike.data.digits import load_digits
from quadspike.errors import QuadspikeWarning
from quadspike.surrogates import Window

NEURONS: dict[str, Callable[[], QIF]] = {
    "defaults": QIF,
    "swapped roots": lambda: QIF(u1=0.5, u2=0.0),
    "complex roots": lambda: QIF.from_resting(0.25, 0.1, 5.0, u_th=0.6),
    "double root": lambda: QIF(a=0.3, u1=0.2, u2=0.2),
    "shifted": lambda: QIF(a=0.2, u1=-0.3, u2=0.4, u_th=0.9),
    "nearly flat": lambda: QIF(a=0.01, u_th=2.0),
    "learned": lambda: QIF(a=torch.nn.Parameter(torch.tensor(0.25))),
}
MAGIC = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few cells and few pixels: these tests are about drawing, not about resolution."""
    monkeypatch.setattr("quadspike.analysis.figures.theorem._CELLS", 6)
    monkeypatch.setattr("quadspike.analysis.figures.gallery._DPI", 60)


def line(ax: Axes, label: str) -> Line2D:
    return next(item for item in ax.lines if str(item.get_label()).startswith(label))


def legend_texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def digests(paths: list[Path]) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


# -- every figure, every neuron ----------------------------------------------------------


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_draws_for_complex_roots(name: str) -> None:
    figure = FIGURES[name](NEURONS["complex roots"]())
    figure.draw_without_rendering()
    assert figure.canvas.manager is None  # pyplot does not know it
    assert len(set(legend_texts(figure))) == len(legend_texts(figure)) > 1
    assert all(np.isfinite([*ax.get_xlim(), *ax.get_ylim()]).all() for ax in figure.axes)


@pytest.mark.parametrize("kind", ["swapped roots", "double root", "learned"])
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_made_for_other_neurons(name: str, kind: str) -> None:
    assert FIGURES[name](NEURONS[kind]()).axes


def test_a_neuron_that_does_not_rest_has_no_stable_fixed_point() -> None:
    with pytest.warns(QuadspikeWarning):
        neuron = QIF(a=0.9, u2=2.9, u_th=3.0)
    for draw in (figures.recurrence, figures.cobweb, figures.phase_portrait):
        texts = legend_texts(draw(neuron))
        assert "unstable fixed point" in texts
        assert "stable fixed point" not in texts


@pytest.mark.parametrize("kind", ["defaults", "double root", "shifted", "nearly flat"])
def test_named_points_do_not_cover_each_other(kind: str) -> None:
    figure = figures.recurrence(NEURONS[kind]())
    figure.draw_without_rendering()
    for ax in figure.axes:
        names = [text for text in ax.texts if text.get_text().startswith("$u_")]
        # Of the text alone: an annotation's own extent includes its pointer.
        boxes = [Text.get_window_extent(text) for text in names]
        for i, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[:i])


# -- what they show ----------------------------------------------------------------------


def test_recurrence_shows_f_and_its_fixed_points() -> None:
    neuron = QIF()
    figure = figures.recurrence(neuron)
    whole, near = figure.axes
    u, f = (np.asarray(values) for values in line(whole, "$f(u)").get_data())
    assert np.allclose(f, 0.25 * u * (u - 0.5))
    assert u[0] < 0 < 4.5 < u[-1]
    for label, at, face in (("stable", 0.0, style.INK), ("unstable", 4.5, "white")):
        marker = line(whole, f"{label} fixed point")
        assert (marker.get_xdata()[0], marker.get_ydata()[0]) == (at, at)  # type: ignore[index]
        assert marker.get_markerfacecolor() == face
    assert any("-0.0156" in text.get_text() for text in near.texts)
    assert near.get_ylim()[0] < -1 / 64
    assert [t.get_text() for t in whole.texts] == ["$u_r = u_1$", "$u_2 = u_{th}$", "$u_c$"]


def test_powers_of_ten_are_written_as_such_in_formulas() -> None:
    neuron = QIF(a=0.001)
    least = [text.get_text() for text in figures.recurrence(neuron).axes[1].texts]
    assert r"$u_\mathrm{min} = -6.25 \times 10^{-5}$" in least
    starts = [text for text in legend_texts(figures.cobweb(neuron)) if "from" in text]
    assert "from $u(0) = 0.25$" in starts
    assert r"from $u(0) = 1.04 \times 10^{3}$" in starts


def test_regions_are_drawn_only_where_they_are() -> None:
    def shown(neuron: QIF) -> set[str]:
        return {text for text in legend_texts(figures.recurrence(neuron)) if "region" in text}

    assert shown(QIF()) == {"red region", "blue region", "green region"}
    assert shown(NEURONS["complex roots"]()) == {"red region", "green region"}


def test_cobweb_follows_the_orbit() -> None:
    whole = figures.cobweb(QIF(), starts=[-1.0]).axes[0]
    x, y = (np.asarray(values) for values in line(whole, "from $u(0) = -1").get_data())
    path = orbit(QIF(), -1.0, 3)
    assert x[:6].tolist() == np.repeat(path, 2)[:6].tolist()
    assert np.allclose(y[1::2], step(QIF(), x[1::2]))
    assert np.array_equal(x[::2], y[::2])  # every other corner is on the identity


def test_cobweb_starts_once_in_each_region_and_beyond() -> None:
    starts = [text for text in legend_texts(figures.cobweb(QIF())) if text.startswith("from")]
    values = [float(text.split("=")[1].strip(" $")) for text in starts]
    assert values[0] < 0 < values[1] < 0.5 < values[2] < 4.5 < values[3]


def test_membrane_density_shows_the_windows_and_their_shares() -> None:
    neuron = QIF()
    figure = figures.membrane_density(neuron)
    ax, density = figure.axes[0], neuron.density()
    for center in ("mean", "threshold"):
        low, high = Window(center).window(neuron)
        bar = line(ax, f"window “{center}”")
        assert list(bar.get_xdata()) == pytest.approx([low, high])  # type: ignore[arg-type]
        assert f"{density.share(low, high):.1%}" in str(bar.get_label())
    u, pdf = (np.asarray(values) for values in line(ax, "exact").get_data())
    assert np.allclose(pdf, density.pdf(u))
    values, edges, _ = ax.patches[0].get_data()  # type: ignore[attr-defined]
    assert np.abs(values - density.pdf((edges[:-1] + edges[1:]) / 2)).max() < 0.02


def test_density_and_comparison_need_a_positive_threshold() -> None:
    neuron = QIF(a=0.2, u1=-1.0, u2=-1.0, u_th=-0.5)
    for name in ("membrane_density", "lif_against_qif"):
        with pytest.raises(QuadspikeError, match="u_th"):
            FIGURES[name](neuron)


def test_the_paper_is_marked_only_where_it_is_allowed() -> None:
    assert any("paper" in text for text in legend_texts(figures.theorem_quality(0.5)))
    for u_th in (0.4, 5.0):
        assert not any("paper" in text for text in legend_texts(figures.theorem_quality(u_th)))


def test_a_neuron_is_marked_where_it_lies_on_the_plane_of_the_theorem() -> None:
    for neuron, marked in ((QIF(a=0.3, u2=0.3), True), (QIF(), False), (QIF(u1=-0.2), False)):
        texts = legend_texts(FIGURES["theorem_quality"](neuron))
        assert any("this neuron" in text for text in texts) == marked


# -- QIF against LIF ---------------------------------------------------------------------


def test_integration_is_lif_alone_at_the_paper_s_parameters() -> None:
    qif, lif = QIF(), LIF()
    x = comparison.integration_input(qif, lif)
    assert len(set(x)) == 1
    assert 0 < x[0] < 0.5
    fired = simulate(lif, x).spikes
    assert fired[0] == 0
    assert fired.sum() >= 3
    assert simulate(qif, x).spikes.sum() == 0
    assert not comparison.sums_constant_input(qif)
    note = figures.lif_against_qif(qif, lif).axes[3].texts
    assert "no positive constant input" in note[0].get_text()


def test_integration_is_both_where_the_threshold_leaves_room() -> None:
    qif, lif = QIF(u2=0.0), LIF()
    x = comparison.integration_input(qif, lif)
    for neuron in (qif, lif):
        fired = simulate(neuron, x).spikes
        assert fired[0] == 0
        assert fired.sum() >= 3
    assert not figures.lif_against_qif(qif, lif).axes[3].texts


@pytest.mark.parametrize("kind", NEURONS)
def test_only_the_qif_oscillates_and_below_its_threshold(kind: str) -> None:
    qif = NEURONS[kind]()
    x = comparison.oscillation_input(qif)
    swings = np.sign(np.diff(simulate(qif, x).membranes[2:]))
    assert (swings[1:] == -swings[:-1]).all()
    assert simulate(qif, x).spikes.sum() == 0
    drift = np.diff(simulate(LIF(), x).membranes[3:])
    assert (drift <= 1e-9).all() or (drift >= -1e-9).all()


@pytest.mark.parametrize("kind", NEURONS)
def test_a_negative_voltage_then_a_spike_that_lif_does_not_make(kind: str) -> None:
    qif = NEURONS[kind]()
    lif = LIF(u_th=float(qif.threshold))
    x = comparison.rebound_input(qif)
    membranes, spikes = simulate(qif, x)
    (fired,) = np.flatnonzero(spikes)
    assert membranes[fired - 1] < 0
    assert x[fired] == x[1] > 0  # the very push that does not fire when it comes alone
    assert simulate(lif, x).spikes.sum() == 0


# -- files -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_written_in_every_format_and_the_same_again(name: str, tmp_path: Path) -> None:
    paths = draw_all(tmp_path / "new" / "folder", QIF(), names=name)
    assert [path.name for path in paths] == [f"{name}.{ending}" for ending in MAGIC]
    for path in paths:
        assert path.read_bytes().startswith(MAGIC[path.suffix[1:]])
        assert path.stat().st_size > 5000
        assert b"/CreationDate" not in path.read_bytes()
    # By itself, so that what was written before may not matter.
    again = {"recurrence": ["svg"], "phase_portrait": ["pdf"], "theorem_quality": ["pdf"]}
    for path in draw_all(tmp_path, QIF(), again.get(name, ["png"]), name):
        assert digests([path]).items() <= digests(paths).items()


def test_draw_all_draws_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Path] = []
    monkeypatch.setattr(Figure, "draw_without_rendering", lambda figure: None)
    monkeypatch.setattr(gallery, "write_figure", lambda figure, path, dpi: drawn.append(path))
    assert draw_all(tmp_path, QIF()) == drawn
    assert {path.name for path in drawn} == {f"{name}.{end}" for name in FIGURES for end in MAGIC}


def test_the_reader_s_settings_neither_change_a_figure_nor_are_changed(tmp_path: Path) -> None:
    plain = digests(draw_all(tmp_path, QIF(), "svg", "phase_portrait"))
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True, "svg.hashsalt": "mine"}):
        assert digests(draw_all(tmp_path, QIF(), "svg", "phase_portrait")) == plain
        assert matplotlib.rcParams["font.size"] == 30


def test_threads_draw_the_same(tmp_path: Path) -> None:
    def draw(index: int) -> dict[str, str]:
        return digests(draw_all(tmp_path / str(index), QIF(), "svg", ["phase_portrait"]))

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(draw, range(2))
    assert first == second


def test_unknown_formats_and_names_are_told_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(QuadspikeError, match="unknown figure format 'jpg'"):
        draw_all(tmp_path / "out", QIF(), formats=("svg", "jpg"))
    with pytest.raises(QuadspikeError, match="did you mean 'cobweb'"):
        draw_all(tmp_path / "out", QIF(), names=["cobwebs"])
    with pytest.raises(QuadspikeError, match="at least one figure format"):
        draw_all(tmp_path / "out", QIF(), formats=())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("inside", ["", "deeper"])
def test_a_file_in_the_place_of_the_folder(tmp_path: Path, inside: str) -> None:
    (tmp_path / "taken").write_text("text")
    with pytest.raises(QuadspikeError, match=r"cannot make the folder .*taken"):
        draw_all(tmp_path / "taken" / inside, QIF(), "svg", "phase_portrait")


def test_a_figure_is_written_whole_whatever_the_case_of_its_ending(tmp_path: Path) -> None:
    figure = contact_sheet(load_digits()[0], Pipeline(()), count=2)
    for name in ("a.PNG", "b.svg", "c.Svg", "d.pdf"):
        write_figure(figure, tmp_path / name, dpi=50)
        assert (tmp_path / name).read_bytes().startswith(MAGIC[name[2:].lower()])
    assert (tmp_path / "b.svg").read_bytes() == (tmp_path / "c.Svg").read_bytes()
    assert b"<dc:date>" not in (tmp_path / "b.svg").read_bytes()
    assert len(list(tmp_path.iterdir())) == 4
    with pytest.raises(QuadspikeError, match="unknown figure format 'gif'"):
        write_figure(figure, tmp_path / "e.gif")
