"""Names beside the points of a plot, where they cover least."""

from __future__ import annotations

import math
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from quadspike.analysis.figures.style import GREY, INK

_CLEAR = 5.0
"""Points around a marker that labels keep out of."""
_NEAR = 11.0
"""A label farther away than that, in points, gets a line to its point."""
_APART = 2.5
"""Points between two labels."""
_CROWD = 60.0
_RINGS = (8, 13, 19, 26, 34, 44, 56, 70, 86)


@dataclass(frozen=True)
class Point:
    """What is drawn, in the units of the axes; `spread` is half the height of its bar."""

    name: str
    kind: str
    x: float
    y: float
    spread: float | None = None


@dataclass(frozen=True)
class _Label:
    """A text of `width` x `height` pixels whose point lies `at` pixels."""

    at: tuple[float, float]
    width: float
    height: float
    scale: float
    """Pixels a point."""

    def box(self, offset: tuple[float, float]) -> Bbox:
        """Where the text lies if the side or corner towards its point is at `offset` points."""
        length = math.hypot(*offset)
        x, y = (
            place + self.scale * away + size * (away / length - 1) / 2
            for place, away, size in zip(self.at, offset, (self.width, self.height), strict=True)
        )
        return Bbox.from_bounds(x, y, self.width, self.height)

    def cost(self, offset: tuple[float, float], taken: list[Bbox], inside: Bbox) -> float:
        """What it would cover, what would hang out, and how far it would be."""
        box, own = self.box(offset), self.width * self.height
        covered = sum(_area(Bbox.intersection(box, other)) for other in taken)
        out = own - _area(Bbox.intersection(box, inside))
        return (10 * covered + 20 * out) / own + math.hypot(*offset) / 60


def place_labels(ax: Axes, points: list[Point]) -> None:
    """Name every point; the axes must have their final limits and layout."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    scale = figure.dpi / 72
    at = [_pixels(ax, point.x, point.y) for point in points]
    taken = [_mark(ax, point, _CLEAR * scale) for point in points]
    crowd = [sum(math.dist(a, b) < _CROWD * scale for b in at) for a in at]
    # The most crowded first: they have the fewest places to go.
    for index in sorted(range(len(points)), key=lambda i: -crowd[i]):
        point = points[index]
        text = ax.annotate(
            point.name,
            (point.x, point.y),
            xytext=(0, 0),
            textcoords="offset points",
            fontsize=7.5,
            color=INK,
            va="bottom",
            zorder=4,
            arrowprops={"arrowstyle": "-", "lw": 0.4, "color": GREY, "shrinkA": 1, "shrinkB": 2},
        )
        size = text.get_window_extent()
        label = _Label(at[index], size.width, size.height, scale)
        best = _best(label, taken, ax.get_window_extent())
        box = label.box(best)
        taken.append(box.padded(_APART * scale))
        text.set_position(((box.x0 - label.at[0]) / scale, (box.y0 - label.at[1]) / scale))
        assert text.arrow_patch is not None
        text.arrow_patch.set_visible(math.hypot(*best) > _NEAR)


def _best(label: _Label, taken: list[Bbox], inside: Bbox) -> tuple[float, float]:
    angles = sorted((2 * math.pi * k / 24 for k in range(24)), key=lambda a: -math.cos(a))
    offsets = [(r * math.cos(a), r * math.sin(a)) for r in _RINGS for a in angles]
    return min(offsets, key=lambda offset: label.cost(offset, taken, inside))


def _mark(ax: Axes, point: Point, clear: float) -> Bbox:
    """What a marker with its bar covers."""
    bar = point.spread or 0.0
    x, low = _pixels(ax, point.x, point.y - bar)
    _, high = _pixels(ax, point.x, point.y + bar)
    return Bbox.from_extents(x - clear, low - clear, x + clear, high + clear)


def _pixels(ax: Axes, x: float, y: float) -> tuple[float, float]:
    place = ax.transData.transform((x, y))
    return float(place[0]), float(place[1])


def _area(box: Bbox | None) -> float:
    return 0.0 if box is None else float(box.width * box.height)
