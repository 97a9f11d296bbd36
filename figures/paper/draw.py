"""The parts of a sheet, drawn with matplotlib: maps, letters, legend; in pt from the upper left corner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from figures.base import style
from figures.base.shape import HeadLike
from figures.maps.heatmap import masked_blocks
from figures.paper.form import POINTS
from figures.paper.layout import GAP, LINE, SHORT, Layout, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GREY = "#000000", "#606060"
_HAIR = 0.4
"""Thickness of lines in pt."""
_SEAM = 0.1
"""Outline of a cell in pt, in its own colour: without it, readers of PDF show white lines between cells."""


def colours(weights: np.ndarray, kind: str, scale: str = "linear") -> np.ndarray:
    """The colours of weights on white paper: those of the app's maps (`style.scale`) on a white page.

    Args:
        weights: from 0 to 1, any shape.
        kind: encoder, decoder or cross.
        scale: one of `style.SCALES`.

    Returns:
        Red, green and blue from 0 to 1, in one more dimension at the end.
    """
    hue = np.array([int(style.HUES[kind][i : i + 2], 16) for i in (1, 3, 5)]) / 255
    opacity = style.FAINTEST + (1 - style.FAINTEST) * style.strength(np.asarray(weights), scale)
    return 1 - opacity[..., None] * (1 - hue)


def blank(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty figure of a size in pt."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / POINTS, height / POINTS), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    return figure, axes


def text_width(text: str, letters: float) -> float:
    """The width of a text in pt, in the fonts that draw it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    canvas = FigureCanvasAgg(Figure(dpi=POINTS))
    written = canvas.figure.text(0, 0, text or " ", fontsize=letters, parse_math=False)
    return float(written.get_window_extent(canvas.get_renderer()).width)


@dataclass(frozen=True)
class Pen:
    """Draws on a sheet.

    Attributes:
        axes: the sheet.
        letters: size of the letters in pt.
        scale: how weights become colours.
    """

    axes: Axes
    letters: float
    scale: str

    def write(self, x: float, y: float, text: str, **look: Any) -> None:
        """Writes a text as it is: a dollar sign does not begin a formula."""
        usual = {"color": INK, "fontsize": self.letters}
        self.axes.text(x, y, text, parse_math=False, **usual | look)

    def box(self, x: float, y: float, width: float, height: float, **look: Any) -> None:
        """A rectangle with a thin outline."""
        from matplotlib.patches import Rectangle

        usual = {"facecolor": "none", "edgecolor": GREY, "linewidth": _HAIR}
        self.axes.add_patch(Rectangle((x, y), width, height, **usual | look))

    def hatched(self, x: float, y: float, width: float, height: float) -> None:
        """A rectangle that is masked."""
        self.box(x, y, width, height, hatch="/////", linewidth=0)

    def head(self, panel: Panel, corner: tuple[float, float], laid: Layout) -> None:
        """A map with its labels and titles."""
        x, y = corner
        rows, keys = panel.view.weights.shape
        down, across = rows * laid.cell, keys * laid.cell
        self._cells(panel.view, corner, laid.cell)
        self.box(x, y, across, down)
        self._labels(panel, corner, laid)
        top, left = y - panel.top, x - panel.left
        self.write(left, top, panel.title, va="top")
        up = top + LINE * self.letters * bool(panel.title)
        quiet = {"color": GREY}
        self.write(x + across / 2, up, panel.titles[1], ha="center", va="top", **quiet)
        rotated = panel.titles[0] if text_width(panel.titles[0], self.letters) <= down else SHORT
        self.write(left, y + down / 2, rotated, va="center", rotation=90, **quiet)

    def _labels(self, panel: Panel, corner: tuple[float, float], laid: Layout) -> None:
        (x, y), near, cell = corner, GAP * self.letters, laid.cell
        for i in range(0, len(panel.rows), laid.step):
            at = y + (i + 0.5) * cell
            self.write(x - near, at, panel.rows[i], ha="right", va="center_baseline")
        for j in range(0, len(panel.columns), laid.step):
            at = x + (j + 0.5) * cell
            self.write(at, y - near, panel.columns[j], ha="center", va="bottom", rotation=90)

    def _cells(self, view: HeadLike, corner: tuple[float, float], cell: float) -> None:
        """Every visible cell as a square of its own; masked cells are hatched."""
        from matplotlib.collections import PolyCollection

        queries, keys = np.nonzero(view.mask)
        square = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
        places = np.asarray(corner) + cell * (np.stack([keys, queries], 1)[:, None] + square)
        filled = colours(view.weights[queries, keys], view.kind, self.scale)
        drawn = PolyCollection(places, facecolors=filled, edgecolors=filled, linewidths=_SEAM)
        drawn.set_gid(f"cells-{view.kind}-{view.layer}-{view.head}")
        self.axes.add_collection(drawn)
        for top, bottom, left, right in masked_blocks(view.mask):
            place = corner[0] + cell * left, corner[1] + cell * top
            self.hatched(*place, cell * (right - left), cell * (bottom - top))

    def legend(self, kinds: Sequence[str], masked: bool, y: float) -> None:
        """One line that says what the colours of each kind mean, and the hatching."""
        x, side = self._named(0, y, "weight"), 0.9 * self.letters
        for text, share in style.stops(self.scale):
            for kind in kinds:
                self.box(x, y, side, side, facecolor=colours(np.array(share), kind))
                x += side
            x = self._named(x + 0.3 * side, y, text)
        if masked:
            self.hatched(x, y, side, side)
            self.box(x, y, side, side)
            self._named(x + 1.3 * side, y, "masked")

    def _named(self, x: float, y: float, text: str) -> float:
        """Writes a word of the legend, and returns where the next thing begins."""
        self.write(x, y + self.letters / 2, text, va="center_baseline", color=GREY)
        return x + text_width(text, self.letters) + 0.6 * self.letters
