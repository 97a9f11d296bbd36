"""The cells of a map on paper: the trace's own numbers at their own places."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.patches import Rectangle

from figures.base import style
from figures.base.shape import HeadLike
from figures.paper.draw import Pen, blank, colours
from figures.paper.layout import Layout, Panel
from transformer import Translator

CELL = 10.0


def drawn(view: HeadLike, scale: str = "linear") -> tuple[np.ndarray, list[Rectangle]]:
    """The weights read from the cells of a drawn map (NaN for a cell that is not there), and its boxes."""
    rows, keys = view.weights.shape
    _, axes = blank(CELL * keys, CELL * rows)
    names = [""] * rows, [""] * keys
    panel = Panel(view, (), ("", ""), *names, 0, 0, 0)
    laid = Layout((panel,), ((0, 0),), (CELL * keys,), CELL, 8, 1, CELL * rows)
    Pen(axes, 8, scale).head(laid, 0)
    (cells,) = (each for each in axes.collections if isinstance(each, PolyCollection))
    found = np.full((rows, keys), np.nan)
    for path, colour in zip(cells.get_paths(), cells.get_facecolor(), strict=True):
        column, row = (path.get_extents().p0 / CELL).round().astype(int)
        found[row, column] = weight(colour, view.kind)
    return found, [each for each in axes.patches if isinstance(each, Rectangle)]


def weight(colour: np.ndarray, kind: str) -> float:
    """The weight behind a colour of the linear scale."""
    ends = colours(np.array([0.0, 1.0]), kind)
    channel = int(np.argmax(abs(ends[1] - ends[0])))
    return float((colour[channel] - ends[0, channel]) / (ends[1, channel] - ends[0, channel]))


@pytest.mark.parametrize("kind", style.HUES)
def test_the_cells_hold_the_weights_of_the_trace(translator: Translator, kind: str) -> None:
    run = translator.translate("a b c d e f")
    head = run.head(kind, 1, 0)
    found, _ = drawn(head)
    np.testing.assert_allclose(found[head.mask], run.weights(kind, 1, 0)[head.mask], atol=1e-6)
    assert np.isnan(found[~head.mask]).all()


def test_exactly_the_masked_cells_are_hatched(translator: Translator) -> None:
    head = translator.translate("a b c d e f").head("decoder", 0, 1)
    _, boxes = drawn(head)
    hatched = np.zeros(head.mask.shape, dtype=int)
    for box in boxes:
        if box.get_hatch():
            left, top, right, bottom = (box.get_bbox().extents / CELL).round().astype(int)
            hatched[top:bottom, left:right] += 1
    np.testing.assert_array_equal(hatched, (~head.mask).astype(int))


@pytest.mark.parametrize("scale", style.SCALES)
def test_colours_are_those_of_the_app_on_white(scale: str) -> None:
    shares = style.strength(np.linspace(0, 1, 9), scale)
    hue = np.array([0, 0x72, 0xB2]) / 255
    opacity = (style.FAINTEST + (1 - style.FAINTEST) * shares)[:, None]
    np.testing.assert_allclose(colours(np.linspace(0, 1, 9), "encoder", scale), 1 - opacity * (1 - hue))
