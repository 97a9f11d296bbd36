"""The model as a diagram of clickable boxes, and small charts of its parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style
from explorer.figures.base.labels import percent
from explorer.figures.base.plot import Spec

_LINE = {"color": "rgba(128,128,128,.8)", "width": 1.2}
_HALF_WIDTH, _HALF_HEIGHT = 0.62, 0.36
_COLUMNS = (0.0, 2.0)
_TARGETS = 9
"""Number of invisible markers along a box, so that a click anywhere on the box registers."""
SLOT = 40
_SHADES = [(0.0, "rgba(128,128,128,.06)"), (1.0, "rgba(128,128,128,.45)")]
"""Colours of probabilities from 0 to 1; text on them stays readable."""


@dataclass(frozen=True)
class Box:
    """A part of the diagram."""

    part: str  # name of the box, reported by a click
    label: str  # text in the box
    kind: str | None = None  # the attention kind whose hue the box has; None for other parts
    repeated: bool = False  # whether the box belongs to the layer that is stacked N times
    # how many boxes back the residual connection that ends here starts; 0 if none ends here
    adds: int = 0
    shape: str = ""  # small, under the label; empty for none


def diagram(
    columns: Sequence[Sequence[Box]],
    times: Sequence[str],
    selected: str,
    feeds: str,
) -> go.Figure:
    """The stacks from the bottom up, side by side; the last reads the one before it at `feeds`.

    As in the paper's figure 1.
    """
    shapes = list[Spec]()
    notes = list[Spec]()
    targets = list[tuple[float, float, str]]()
    for x, boxes, count in zip(_COLUMNS, columns, times, strict=False):
        shapes += _stack(x, boxes, selected)
        notes += _texts(x, boxes, count, selected)
        for y, box in enumerate(boxes):
            targets += [(x + shift, y, box.part) for shift in np.linspace(-0.5, 0.5, _TARGETS)]
    for boxes, reading in pairwise(columns):
        shapes.append(_feeding(len(boxes), [box.part for box in reading].index(feeds)))
    xs, ys, parts = zip(*targets, strict=True)
    marker = {"symbol": "square", "size": 24, "color": "rgba(0,0,0,0)"}
    rows = max(map(len, columns))
    return plot.figure(
        [plot.points(xs, ys, customdata=parts, marker=marker, hoverinfo="none")],
        plot.HIDDEN | {"range": [-1.0, _COLUMNS[len(columns) - 1] + 1.2]},
        plot.HIDDEN | {"range": [-0.75, rows - 0.1]},
        SLOT * rows + 30,
        shapes=shapes,
        annotations=notes,
        clickmode=plot.CLICKS["clickmode"],
    )


def _feeding(encoder: int, reader: int) -> Spec:
    """The arrow from the top of so many boxes of the encoder to the decoder's box that reads it."""
    left = _COLUMNS[0]
    right = _COLUMNS[1] - _HALF_WIDTH
    middle = 0.92
    edge = encoder - 1 + _HALF_HEIGHT
    up = encoder - 0.38
    return _path((left, edge), (left, up), (middle, up), (middle, reader), (right, reader))


def _texts(x: float, boxes: Sequence[Box], count: str, selected: str) -> list[Spec]:
    """What stands in the boxes, and how often the layer is stacked."""
    notes = []
    for y, box in enumerate(boxes):
        text = labels.bold(labels.escape(box.label), box.part == selected)
        if box.shape:
            text += f'<br><span style="font-size:9px">{labels.escape(box.shape)}</span>'
        notes.append(plot.note(text, x, y))
    inner = [y for y, box in enumerate(boxes) if box.repeated]
    notes.append(plot.note(labels.escape(count), x + 0.98, (inner[0] + inner[-1]) / 2))
    return notes


def _stack(x: float, boxes: Sequence[Box], selected: str) -> list[Spec]:
    """The frame of a layer, the arrows between boxes, and the boxes."""
    inner = [y for y, box in enumerate(boxes) if box.repeated]
    edges = x - 0.9, x + 0.84, inner[0] - 0.62, inner[-1] + 0.5
    shapes = [plot.rectangle(*edges, width=0, fillcolor="rgba(128,128,128,.08)", layer="below")]
    shapes += [
        _path((x, y + _HALF_HEIGHT), (x, y + 1 - _HALF_HEIGHT)) for y in range(-1, len(boxes) - 1)
    ]
    for y, box in enumerate(boxes):
        low = y - box.adds - 0.5
        left = x - _HALF_WIDTH - 0.16
        if box.adds:
            shapes.append(_path((x, low), (left, low), (left, y), (x - _HALF_WIDTH, y)))
    shapes += [_frame(x, y, box, box.part == selected) for y, box in enumerate(boxes)]
    return shapes


def _frame(x: float, y: float, box: Box, selected: bool) -> Spec:
    """A box, with a strong frame if it is selected."""
    hue = "rgba(128,128,128,.22)"
    if box.kind:
        hue = style.rgba(style.HUES[box.kind], 0.3)
    edges = x - _HALF_WIDTH, x + _HALF_WIDTH, y - _HALF_HEIGHT, y + _HALF_HEIGHT
    frame = plot.rectangle(*edges, colour="rgba(128,128,128,.5)", width=1)
    if selected:
        frame = plot.rectangle(*edges, width=3)
    return frame | {"fillcolor": hue, "layer": "below"}


def _path(*corners: tuple[float, float]) -> Spec:
    path = "M " + " L ".join(f"{x},{y}" for x, y in corners)
    return {"type": "path", "path": path, "line": _LINE, "layer": "below"}


def lens(
    # names of the rows, from the input upwards; the last row, in bold, is the model's own output
    rows: Sequence[str],
    tokens: Sequence[Sequence[str]],  # tokens (rows, ranks)
    shares: np.ndarray,  # their probabilities from 0 to 1 (rows, ranks)
    # whether a token is the one that the model finally wrote (rows, ranks); that token is bold
    written: np.ndarray,
    chosen: Sequence[str],  # a text for each row about that token
) -> go.Figure:
    """The model's prediction as read off after each layer, a row each: the most probable first."""
    count, ranks = shares.shape
    cells = plot.heat(shares, (0, 1), _SHADES, xgap=2, ygap=3) | {
        "text": [[labels.escape(labels.piece(token)) for token in row] for row in tokens],
        "hovertemplate": "%{y}<br>%{text}: probability %{z:.4f}<extra></extra>",
    }
    places = [(row, rank) for row in range(count) for rank in range(ranks)]
    texts = [
        f"{labels.shorten(labels.piece(tokens[i][j]), 10)} {percent(float(shares[i, j]))}"
        for i, j in places
    ]
    texts = [
        labels.bold(labels.escape(text), bool(written[place]))
        for text, place in zip(texts, places, strict=True)
    ]
    y, x = zip(*places, strict=True)
    names = [f"{row}, {labels.escape(text)}" for row, text in zip(rows, chosen, strict=True)]
    names[-1] = labels.bold(names[-1])
    across = plot.HIDDEN | {"range": [-0.5, ranks - 0.5]}
    inside = plot.points(x, y, "text", text=texts, textfont={"size": 11})
    return plot.figure(
        [cells, inside], across, plot.named_axis(names, 12), 30 * count + 12, (164, 4, 4, 4)
    )


def stream(lines: Sequence[tuple[str, Sequence[str], np.ndarray]]) -> go.Figure:
    """The length of vectors along the residual stream: each line's name, places and lengths."""
    traces = [
        plot.curve(
            name,
            list(range(len(places))),
            np.asarray(lengths, np.float32),
            hover="%{text}: ‖x‖ = %{y:.2f}<extra></extra>",
            colour=style.CHOSEN,
            dash=dash,
            mode="lines+markers",
            text=list(places),
        )
        for (name, places, lengths), dash in zip(lines, ("solid", "dash"), strict=False)
    ]
    longest = max(len(places) for _, places, _ in lines)
    ticks: Spec = {"tickvals": list(range(longest)), "range": [-0.3, longest - 0.7]}
    x = plot.number_axis("sub-layers passed", standoff=None, showgrid=False, **ticks)
    y = plot.number_axis("‖x‖", standoff=None, rangemode="tozero")
    return plot.figure(traces, x, y, 230, (46, 28, 8, 40), **plot.legend(top=False))


def ranked(
    names: Sequence[str], values: np.ndarray, written: Sequence[str], what: str
) -> go.Figure:
    """A sorted list of bars with texts at their ends; the hover text says `what` they measure."""
    listed = plot.bars(
        values.astype(np.float32),
        style.NEUTRAL,
        text=list(map(labels.escape, written)),
        hovertext=list(map(labels.escape, names)),
        hovertemplate=f"%{{hovertext}}<br>{what} %{{x:.3f}}<extra></extra>",
    )
    low = min(0.0, float(np.min(values, initial=0.0)))
    high = float(np.max(values, initial=1e-9))
    short = [labels.escape(labels.shorten(name, 16)) for name in names]
    axes = plot.list_axes(short, (low, 1.35 * high))
    return plot.figure([listed], *axes, 22 * len(names) + 14, (112, 4, 6, 6), bargap=0.35)
