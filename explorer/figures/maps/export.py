"""Figures that leave the app: fixed colours, and the caption and provenance inside the picture."""

import textwrap
import unicodedata
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot
from explorer.figures.maps.heatmap import heatmap
from transformer.text.words import Group
from transformer.view import HeadMap

INK = "#1d232c"
PAPER = "#ffffff"
SIZE = 620
_WIDTH, _HEIGHT = 900, 450
_LINE, _LETTER, _EDGE = 13, 5.3, 8
_LONGEST_LINE = 400
_STEERING = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}


def printed(figure: go.Figure, lines: Sequence[str]) -> go.Figure:
    """A copy with dark text on white, and with a description below the picture."""
    layout = figure.layout
    width = layout.width or _WIDTH
    height = layout.height or _HEIGHT
    bottom = _margin(layout.margin.b)
    left = _margin(layout.margin.l)
    rows = [row for line in lines for row in wrapped(line, int((width - 2 * _EDGE) / _LETTER))]
    extra = _LINE * len(rows) + 2 * _EDGE
    copy = go.Figure(data=figure.data, layout=layout)
    copy.update_layout(
        template=go.layout.Template(),
        paper_bgcolor=PAPER,
        plot_bgcolor=PAPER,
        font={"color": INK},
        width=width,
        height=height + extra,
        margin={"b": bottom + extra},
        meta={"caption": [plain(line) for line in lines]},
    )
    text = "<br>".join(labels.escape(row) for row in rows)
    corner: plot.Spec = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "top"}
    shift: plot.Spec = {"xshift": _EDGE - left, "yshift": -bottom - _EDGE}
    below = plot.note(text, 0, 0, align="left", name="caption", **corner, **shift)
    copy.add_annotation(below | {"font": {"size": 10, "color": INK}})
    return copy


def _margin(px: float | None) -> float:
    """A margin of a figure, or Plotly's own."""
    return 80 if px is None else px


def wrapped(text: str, letters: int) -> list[str]:
    """Breaks a paragraph into rows of at most `letters` letters; wide ones count twice."""
    text = plain(text)
    if len(text) > _LONGEST_LINE:
        text = text[:_LONGEST_LINE] + "…"
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    fitting = max(10, int(letters * len(text) / max(1, len(text) + wide)))
    return textwrap.wrap(text, fitting) or [""]


def plain(text: str) -> str:
    """Replaces characters that control the direction or layout of a text with visible signs."""
    return "".join(
        labels.display(letter) if unicodedata.category(letter) in _STEERING else letter
        for letter in text.replace("\n", " ")
    )


def marked(
    view: HeadMap,
    row: int | None = None,
    column: int | None = None,
    later: bool = True,
    size: int = SIZE,
    scale: str = "linear",
    *,
    together: Sequence[int] = (),  # rows of the view that are looked at as one
) -> go.Figure:
    """A head's map with the cursor marked, as in the linked view."""
    figure = heatmap(view, size, scale)
    rows = getattr(view, "rows", None)
    query = _place(rows, view.window.query_start, len(view.query_tokens), row)
    if query is None:
        return figure
    last = max((query, *together))
    if later and last + 1 < len(view.weights):
        _fade_after(figure, last)
    for ringed in together or (query,):
        figure.add_shape(_ring(-0.5, view.weights.shape[1] - 0.5, ringed))
    columns = getattr(view, "columns", None)
    key = _place(columns, view.window.key_start, len(view.key_tokens), column)
    if key is not None:
        figure.add_shape(_ring(key - 0.5, key + 0.5, query))
    return figure


def _ring(left: float, right: float, row: int) -> plot.Spec:
    """A frame around cells of a row."""
    return plot.rectangle(left, right, row - 0.5, row + 0.5, INK)


def _fade_after(figure: go.Figure, row: int) -> None:
    """Makes the cells after a row a trace of their own, which is faint."""
    cells = figure.data[0]
    faint = go.Heatmap(cells)
    faint.text = cells.text[row + 1 :]
    _keep_rows(faint, slice(row + 1, None))
    _keep_rows(cells, slice(0, row + 1))
    faint.update(y0=row + 1, dy=1, opacity=0.25, showscale=False)
    figure.add_trace(faint)
    figure.data = (figure.data[0], figure.data[-1], *figure.data[1:-1])


def _keep_rows(cells: go.Heatmap, rows: slice) -> None:
    """Leaves a map some of its rows; their texts stay."""
    cells.z = np.asarray(cells.z)[rows]
    cells.customdata = np.asarray(cells.customdata)[rows]


def _place(
    groups: Sequence[Group] | None, start: int, length: int, position: int | None
) -> int | None:
    """The row or column of a map that holds a position of the sentence; None if none does."""
    if position is None:
        return None
    if groups is None:
        inside = start <= position < start + length
        return position - start if inside else None
    return next((i for i, group in enumerate(groups) if group.start <= position < group.stop), None)
