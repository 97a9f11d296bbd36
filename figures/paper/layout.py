"""Where everything stands on a sheet of maps, in pt from the upper left corner."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from figures.base import labels
from figures.base.shape import HeadLike, named
from figures.maps.heatmap import row_tokens
from figures.paper.form import Form

Measure = Callable[[str], float]
"""The width of a text in pt."""
LINE = 1.35
"""Height of a line of text, in multiples of the font size."""
GAP = 0.4
"""Space between a label and its map, in multiples of the font size."""
SHORT = "queries"
"""The title of the rows of a map that is too low for more."""
_ROOM = 14.0
"""Widest label, in multiples of the font size."""
_TALLEST = 680.0
"""Greatest height of a sheet in pt: a page of a journal."""
_LETTERS_EACH = 0.95
"""Least distance of two labels, in multiples of the font size."""
_LEAST = 5.0
"""Smallest font size of a label in pt: before labels get smaller, some are left out."""
_AIR = 1.5
"""Space between two maps, in multiples of the font size."""


@dataclass(frozen=True)
class Panel:
    """One map with its labels."""

    view: HeadLike  # the head
    # what may stand above the map, the longest first; nothing if the sheet holds one map
    title: tuple[str, ...]
    titles: tuple[str, str]  # the titles of the rows and of the columns
    rows: list[str]  # the labels from top to bottom
    columns: list[str]  # the labels from left to right
    left: float  # room in pt to the left of the map
    above: float  # height in pt of the labels and the title of the columns
    top: float  # room in pt above the map; in a layout the same for all maps of a row

    @staticmethod
    def of(view: HeadLike, title: tuple[str, ...], form: Form, measure: Measure) -> Panel:
        """Measures the labels of a head."""
        rows, columns = labels.names(row_tokens(view), _ROOM), labels.names(view.key_tokens, _ROOM)
        side, line = (1 + GAP) * form.letters, LINE * form.letters
        left = side + max(map(measure, rows)) + GAP * form.letters
        above = side + max(map(measure, columns)) + GAP * form.letters
        return Panel(view, title, _axis_titles(view), rows, columns, left, above, above + line * bool(title))


def _axis_titles(view: HeadLike) -> tuple[str, str]:
    """Titles of the rows and of the columns, short enough for a small map."""
    return SHORT if view.kind == "encoder" else f"{SHORT} (token {named(view)})", "keys"


@dataclass(frozen=True)
class Layout:
    """A sheet of maps whose cells all have one size."""

    panels: tuple[Panel, ...]  # the maps, row by row
    corners: tuple[tuple[float, float], ...]  # the upper left corner of each map's first cell
    rooms: tuple[float, ...]  # the width in pt for what stands above each map
    cell: float  # side of a cell
    letters: float  # the font size of the labels in pt
    step: int  # every how many tokens a label is written, so that labels do not overlap
    bottom: float  # where the maps end


def lay_out(panels: Sequence[Panel], form: Form) -> Layout:
    """Places maps side by side, as large as the width allows and a page is tall.

    Raises:
        ValueError: the labels leave no room for the maps.
    """
    count = min(form.columns, len(panels))
    grid = [panels[i : i + count] for i in range(0, len(panels), count)]
    across = [[row[i] for row in grid if i < len(row)] for i in range(count)]
    lefts = [max(panel.left for panel in column) for column in across]
    tops = [max(panel.top for panel in row) for row in grid]
    wide = [max(panel.view.weights.shape[1] for panel in column) for column in across]
    tall = [max(panel.view.weights.shape[0] for panel in row) for row in grid]
    gap = _AIR * form.letters
    cell = min(
        (form.points - sum(lefts) - gap * (count - 1) - 1) / sum(wide),
        (_TALLEST - sum(tops) - gap * (len(grid) - 1)) / sum(tall),
    )
    if cell < 0.25:
        raise ValueError(
            f"Labels of {form.letters:g} pt leave no room for the maps in {form.width:g} cm. "
            "Choose a larger width, a smaller font, or fewer maps per row."
        )
    xs = _starts(lefts, [cell * each for each in wide], gap)
    ys = _starts(tops, [cell * each for each in tall], gap)
    corners = tuple((xs[i % count], ys[i // count]) for i in range(len(panels)))
    level = tuple(replace(panel, top=tops[i // count]) for i, panel in enumerate(panels))
    rooms = tuple(panel.left + cell * wide[i % count] for i, panel in enumerate(panels))
    return Layout(level, corners, rooms, cell, *_fitting(cell, form.letters), ys[-1] + cell * tall[-1])


def _fitting(cell: float, letters: float) -> tuple[float, int]:
    """The size of labels in pt, and every how many tokens one is written.

    Labels become smaller than the other text if that leaves room for all of them.
    """
    small = cell / _LETTERS_EACH
    if small >= min(letters, _LEAST):
        return min(letters, small), 1
    return letters, math.ceil(_LETTERS_EACH * letters / cell)


def flowing(widths: Sequence[float], room: float, gap: float) -> list[list[int]]:
    """Breaks things that stand beside one another into rows no wider than `room`; a row has at least one."""
    rows: list[list[int]] = []
    end = math.inf
    for i, width in enumerate(widths):
        if end + gap + width > room:
            rows.append([])
            end = -gap
        rows[-1].append(i)
        end += gap + width
    return rows


def _starts(before: Sequence[float], sizes: Sequence[float], gap: float) -> list[float]:
    """Where each of several maps in a row begins, behind the room that it needs before it."""
    starts, end = [], 0.0
    for room, size in zip(before, sizes, strict=True):
        starts.append(end + room)
        end += room + size + gap
    return starts
