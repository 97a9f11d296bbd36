"""The model as a diagram of clickable boxes, and small charts of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, style
from explorer.figures.base.bars import percent

_STILL = {"fixedrange": True, "showgrid": False, "zeroline": False, "ticks": "", "automargin": False}
_HIDDEN = {**_STILL, "visible": False}
_LINE = {"color": "rgba(128,128,128,.8)", "width": 1.2}
_HALF_WIDTH, _HALF_HEIGHT = 0.62, 0.36
_COLUMNS = (0.0, 2.0)
_TARGETS = 9
"""Number of invisible markers along a box, so that a click anywhere on the box registers."""
SLOT = 40
_FULL = 0.45
"""Opacity of a cell whose token has probability 1; text on it stays readable."""


@dataclass(frozen=True)
class Box:
    """A part of the diagram."""

    part: str  # name of the box, reported by a click
    label: str  # text in the box
    kind: str | None = None  # the attention kind whose hue the box has; None for other parts
    repeated: bool = False  # whether the box belongs to the layer that is stacked N times
    adds: int = 0  # how many boxes back the residual connection that ends here starts; 0 if none ends here
    shape: str = ""  # small, under the label; empty for none


def diagram_spec(
    encoder: Sequence[Box],  # boxes of the encoder, from the input upwards
    decoder: Sequence[Box],  # boxes of the decoder, likewise
    times: tuple[str, str],  # how often the layer of each stack is repeated, such as `3 ×`
    selected: str,  # the part to frame
    feeds: str,  # the part of the decoder that reads the encoder's output
) -> dict[str, Any]:
    """Encoder on the left, decoder on the right, both from the bottom up, as in the paper's figure 1."""
    shapes, notes = [], []
    for x, boxes, count in zip(_COLUMNS, (encoder, decoder), times, strict=True):
        shapes += _stack(x, boxes, selected)
        notes += [_label(x, y, box, box.part == selected) for y, box in enumerate(boxes)]
        inner = [y for y, box in enumerate(boxes) if box.repeated]
        notes.append(_text(x + 0.98, (inner[0] + inner[-1]) / 2, count, False))
    shapes += _crossing(len(encoder) - 1, [box.part for box in decoder].index(feeds))
    places = [
        (x + shift, y, box.part)
        for x, boxes in zip(_COLUMNS, (encoder, decoder), strict=True)
        for y, box in enumerate(boxes)
        for shift in np.linspace(-0.5, 0.5, _TARGETS)
    ]
    targets = {
        "type": "scatter",
        "mode": "markers",
        "x": [x for x, _, _ in places],
        "y": [y for _, y, _ in places],
        "customdata": [part for *_, part in places],
        "marker": {"symbol": "square", "size": 24, "color": "rgba(0,0,0,0)"},
        "hoverinfo": "none",
    }
    rows = max(len(encoder), len(decoder))
    layout = {
        "xaxis": {**_HIDDEN, "range": [-1.0, 3.2]},
        "yaxis": {**_HIDDEN, "range": [-0.75, rows - 0.1]},
        "shapes": shapes,
        "annotations": notes,
        "height": SLOT * rows + 30,
        "margin": {"l": 0, "t": 0, "r": 0, "b": 0},
        "dragmode": False,
        "clickmode": "event+select",
    }
    return style.spec([targets], layout)


def _stack(x: float, boxes: Sequence[Box], selected: str) -> list[dict[str, Any]]:
    inner = [y for y, box in enumerate(boxes) if box.repeated]
    edge = {"x0": x - 0.9, "x1": x + 0.84, "y0": inner[0] - 0.62, "y1": inner[-1] + 0.5}
    look = {"fillcolor": "rgba(128,128,128,.08)", "line": {"width": 0}, "layer": "below"}
    shapes: list[dict[str, Any]] = [{"type": "rect", **edge, **look}]
    shapes += [
        _path(f"M {x},{y + _HALF_HEIGHT} L {x},{y + 1 - _HALF_HEIGHT}") for y in range(-1, len(boxes) - 1)
    ]
    for y, box in enumerate(boxes):
        if box.adds:
            low, left = y - box.adds + 0.5 - 1, x - _HALF_WIDTH - 0.16
            shapes.append(_path(f"M {x},{low} L {left},{low} L {left},{y} L {x - _HALF_WIDTH},{y}"))
    return shapes + [_rectangle(x, y, box, box.part == selected) for y, box in enumerate(boxes)]


def _rectangle(x: float, y: float, box: Box, chosen: bool) -> dict[str, Any]:
    hue = style.rgba(style.HUES[box.kind], 0.3) if box.kind else "rgba(128,128,128,.22)"
    line = (
        {"color": "rgba(128,128,128,1)", "width": 3}
        if chosen
        else {"color": "rgba(128,128,128,.5)", "width": 1}
    )
    place = {"x0": x - _HALF_WIDTH, "x1": x + _HALF_WIDTH, "y0": y - _HALF_HEIGHT, "y1": y + _HALF_HEIGHT}
    return {"type": "rect", **place, "fillcolor": hue, "line": line, "layer": "below"}


def _path(path: str) -> dict[str, Any]:
    return {"type": "path", "path": path, "line": _LINE, "layer": "below"}


def _crossing(top: int, reader: int) -> list[dict[str, Any]]:
    x, end, middle = _COLUMNS[0], _COLUMNS[1] - _HALF_WIDTH, 0.92
    edge, up = top + _HALF_HEIGHT, top + 0.62
    return [_path(f"M {x},{edge} L {x},{up} L {middle},{up} L {middle},{reader} L {end},{reader}")]


def _label(x: float, y: float, box: Box, bold: bool) -> dict[str, Any]:
    note = _text(x, y, box.label, bold)
    if box.shape:
        note["text"] += f'<br><span style="font-size:9px">{labels.escape(box.shape)}</span>'
    return note


def _text(x: float, y: float, text: str, bold: bool) -> dict[str, Any]:
    written = labels.escape(text)
    place = {"x": x, "y": y, "showarrow": False, "font": {"size": 11}}
    return {"text": f"<b>{written}</b>" if bold else written, **place}


def diagram(
    encoder: Sequence[Box], decoder: Sequence[Box], times: tuple[str, str], selected: str, feeds: str
) -> go.Figure:
    """`diagram_spec` as a figure."""
    return style.figure(diagram_spec(encoder, decoder, times, selected, feeds))


def norms_spec(
    running: str,  # `pre` or `post`
    called: str = "LayerNorm",  # name of the model's norm
) -> dict[str, Any]:
    """Post-norm and pre-norm side by side; a frame and a label mark the one that the model uses."""
    orders = {
        "post": ("x", "sub-layer", "+", called),
        "pre": ("x", called, "sub-layer", "+"),
    }
    shapes, notes = [], []
    for x, (norm, parts) in zip((0.0, 2.0), orders.items(), strict=True):
        runs = norm == running
        adds = {"post": 1, "pre": 2}[norm]
        boxes = [Box(part, part, None, y > 0, adds if part == "+" else 0) for y, part in enumerate(parts)]
        shapes += _stack(x, boxes, "")
        notes += [_text(x, y, part, False) for y, part in enumerate(parts)]
        notes.append(_text(x, 4.15, f"{norm}-norm{': runs here' * runs}", runs))
        if runs:
            frame = {"x0": x - 0.96, "x1": x + 0.9, "y0": -0.6, "y1": 4.5}
            shapes.append({"type": "rect", **frame, "line": {"color": "rgba(128,128,128,1)", "width": 2}})
    layout = {
        "xaxis": {**_HIDDEN, "range": [-1.05, 3.0]},
        "yaxis": {**_HIDDEN, "range": [-0.75, 4.6]},
        "shapes": shapes,
        "annotations": notes,
        "height": 190,
        "margin": {"l": 0, "t": 0, "r": 0, "b": 0},
        "dragmode": False,
    }
    return style.spec([{"type": "scatter", "x": [None], "y": [None]}], layout)


def norms(running: str, called: str = "LayerNorm") -> go.Figure:
    """`norms_spec` as a figure."""
    return style.figure(norms_spec(running, called))


def lens_spec(
    # names of the rows, from the input upwards; the last row, in bold, is the model's own output
    rows: Sequence[str],
    tokens: Sequence[Sequence[str]],  # tokens (rows, ranks)
    shares: np.ndarray,  # their probabilities from 0 to 1 (rows, ranks)
    # whether a token is the one that the model finally wrote (rows, ranks); that token is bold
    written: np.ndarray,
    chosen: Sequence[str],  # a text for each row about that token
) -> dict[str, Any]:
    """The model's prediction as read off after each layer: a row per layer, the most probable token first."""
    count, ranks = shares.shape
    cells = {
        "type": "heatmap",
        "z": shares.astype(np.float32),
        "zmin": 0,
        "zmax": 1,
        "colorscale": [(0.0, "rgba(128,128,128,.06)"), (1.0, f"rgba(128,128,128,{_FULL})")],
        "showscale": False,
        "xgap": 2,
        "ygap": 3,
        "text": [[labels.escape(labels.piece(token)) for token in row] for row in tokens],
        "hovertemplate": "%{y}<br>%{text}: probability %{z:.4f}<extra></extra>",
    }
    places = [(row, rank) for row in range(count) for rank in range(ranks)]
    inside = {
        "type": "scatter",
        "mode": "text",
        "x": [rank for _, rank in places],
        "y": [row for row, _ in places],
        "text": [_cell(tokens[at[0]][at[1]], float(shares[at]), bool(written[at])) for at in places],
        "textfont": {"size": 11},
        "hoverinfo": "skip",
    }
    names = [f"{row}, {labels.escape(text)}" for row, text in zip(rows, chosen, strict=True)]
    layout = {
        "xaxis": {**_HIDDEN, "range": [-0.5, ranks - 0.5]},
        "yaxis": {
            **_STILL,
            "range": [-0.5, count - 0.5],
            "tickvals": list(range(count)),
            "ticktext": [*names[:-1], f"<b>{names[-1]}</b>"],
        },
        "height": 30 * count + 12,
        "margin": {"l": 164, "t": 4, "r": 4, "b": 4},
        "dragmode": False,
    }
    return style.spec([cells, inside], layout)


def _cell(token: str, share: float, bold: bool) -> str:
    text = labels.escape(f"{labels.shorten(labels.piece(token))} {percent(share)}")
    return f"<b>{text}</b>" if bold else text


def lens(
    rows: Sequence[str],
    tokens: Sequence[Sequence[str]],
    shares: np.ndarray,
    written: np.ndarray,
    chosen: Sequence[str],
) -> go.Figure:
    """`lens_spec` as a figure."""
    return style.figure(lens_spec(rows, tokens, shares, written, chosen))


def stream_spec(
    # for each line its name, the places (n,) and the lengths (n,)
    lines: Sequence[tuple[str, Sequence[str], np.ndarray]],
) -> dict[str, Any]:
    """The length of vectors along the residual stream."""
    dashes = ("solid", "dash")
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": list(range(len(places))),
            "y": np.asarray(lengths, dtype=np.float32),
            "name": labels.escape(name),
            "text": list(places),
            "line": {"dash": dash, "width": 2, "color": style.CHOSEN},
            "hovertemplate": "%{text}: ‖x‖ = %{y:.2f}<extra></extra>",
        }
        for (name, places, lengths), dash in zip(lines, dashes, strict=False)
    ]
    longest = max((places for _, places, _ in lines), key=len)
    soft = {"fixedrange": True, "zeroline": False, "gridcolor": "rgba(128,128,128,.25)"}
    layout = {
        "xaxis": {**soft, "showgrid": False, "title": {"text": "sub-layers passed", "font": {"size": 11}}}
        | {"tickvals": list(range(len(longest))), "range": [-0.3, len(longest) - 0.7]},
        "yaxis": {**soft, "rangemode": "tozero", "title": {"text": "‖x‖", "font": {"size": 11}}},
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 11}},
        "height": 230,
        "margin": {"l": 46, "t": 28, "r": 8, "b": 40},
        "dragmode": False,
    }
    return style.spec(traces, layout)


def stream(lines: Sequence[tuple[str, Sequence[str], np.ndarray]]) -> go.Figure:
    """`stream_spec` as a figure."""
    return style.figure(stream_spec(lines))


def ranked_spec(
    names: Sequence[str],  # plain text, the first at the top
    values: np.ndarray,  # lengths of the bars
    written: Sequence[str],  # texts at the ends of the bars
    what: str,  # what a bar measures, for the hover text
) -> dict[str, Any]:
    """A sorted list with bars."""
    count, end = len(names), float(np.max(values, initial=1e-9))
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": values.astype(np.float32),
        "y": list(range(count)),
        "text": [labels.escape(text) for text in written],
        "textposition": "outside",
        "cliponaxis": False,
        "hovertext": [labels.escape(name) for name in names],
        "hovertemplate": f"%{{hovertext}}<br>{what} %{{x:.3f}}<extra></extra>",
        "marker": {"color": style.NEUTRAL},
    }
    layout = {
        "xaxis": {**_HIDDEN, "range": [min(0.0, float(np.min(values, initial=0.0))), 1.35 * end]},
        "yaxis": {**_STILL, "range": [count - 0.4, -0.6], "tickvals": list(range(count))}
        | {"ticktext": [labels.escape(labels.shorten(name, 16)) for name in names]},
        "height": 22 * count + 14,
        "margin": {"l": 112, "t": 4, "r": 6, "b": 6},
        "bargap": 0.35,
        "dragmode": False,
    }
    return style.spec([bars], layout)


def ranked(names: Sequence[str], values: np.ndarray, written: Sequence[str], what: str) -> go.Figure:
    """`ranked_spec` as a figure."""
    return style.figure(ranked_spec(names, values, written, what))
