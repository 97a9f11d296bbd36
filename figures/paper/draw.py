"""The parts of a sheet, drawn with matplotlib: maps and text; in pt from the upper left corner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from figures.base import style
from figures.base.shape import HeadLike
from figures.maps.heatmap import masked_blocks
from figures.paper.form import POINTS
from figures.paper.layout import GAP, SHORT, Layout, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GREY = "#000000", "#606060"
_HAIR = 0.4
"""Thickness of lines in pt."""
_SEAM = 0.1
"""Outline of a cell in pt, in its own colour: without it, readers of PDF show white lines between cells."""
_MIDDLE = 0.35
"""Depth of a line of text below the middle of its row, in multiples of the font size."""


def colours(
    weights: np.ndarray,  # from 0 to 1, any shape
    kind: str,  # encoder, decoder or cross
    scale: str = "linear",  # one of `style.SCALES`
) -> np.ndarray:
    """The colours of weights on white paper: those of the app's maps (`style.scale`) on a white page.

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

    canvas: Any = FigureCanvasAgg(Figure(dpi=POINTS))
    written = canvas.figure.text(0, 0, text or " ", fontsize=letters, parse_math=False)
    return cast(float, written.get_window_extent(canvas.get_renderer()).width)


@dataclass(frozen=True)
class Pen:
    """Draws on a sheet."""

    axes: Axes  # the sheet
    letters: float  # the font size in pt
    scale: str  # how weights become colours

    def write(self, x: float, y: float, text: str, **look: Any) -> None:
        """Writes a text as it is: a dollar sign does not begin a formula."""
        usual: dict[str, Any] = {"color": INK, "fontsize": self.letters, "rotation_mode": "anchor"}
        self.axes.text(x, y, text, parse_math=False, **usual | look)

    def box(self, x: float, y: float, width: float, height: float, **look: Any) -> None:
        """A rectangle with a thin outline."""
        from matplotlib.patches import Rectangle

        usual: dict[str, Any] = {"facecolor": "none", "edgecolor": GREY, "linewidth": _HAIR}
        self.axes.add_patch(Rectangle((x, y), width, height, **usual | look))

    def hatched(self, x: float, y: float, width: float, height: float) -> None:
        """A rectangle that is masked."""
        self.box(x, y, width, height, hatch="/////", linewidth=0)

    def head(self, laid: Layout, place: int) -> None:
        """The map at a place of the sheet, with its labels and titles."""
        panel, corner = laid.panels[place], laid.corners[place]
        x, y = corner
        rows, keys = panel.view.weights.shape
        down, across = rows * laid.cell, keys * laid.cell
        self._cells(panel.view, corner, laid.cell)
        self.box(x, y, across, down)
        self._labels(panel, corner, laid)
        if panel.title:
            self.write(
                x - panel.left, y - panel.top + self.letters, self._fitting(panel.title, laid.rooms[place])
            )
        quiet = {"color": GREY, "ha": "center"}
        self.write(x + across / 2, y - panel.above + self.letters, panel.titles[1], **quiet)
        beside = self._fitting((panel.titles[0], SHORT), down)
        self.write(x - panel.left + self.letters, y + down / 2, beside, rotation=90, **quiet)

    def _fitting(self, texts: Sequence[str], room: float) -> str:
        """The first text that fits into a width in pt; if none does, the last."""
        return next((text for text in texts if text_width(text, self.letters) <= room), texts[-1])

    def _labels(self, panel: Panel, corner: tuple[float, float], laid: Layout) -> None:
        (x, y), near = corner, GAP * self.letters
        look = {"fontsize": laid.letters}

        def along(i: int) -> float:
            return (i + 0.5) * laid.cell + _MIDDLE * laid.letters

        for i in range(0, len(panel.rows), laid.step):
            self.write(x - near, y + along(i), panel.rows[i], ha="right", **look)
        for j in range(0, len(panel.columns), laid.step):
            self.write(x + along(j), y - near, panel.columns[j], rotation=90, **look)

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
