"""A Transformer in training: the shifted target, the loss of every position, and its gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from explorer.figures.base import labels, style
from explorer.figures.base.bars import percent
from explorer.figures.pages.training.curves import titled_axis

COLUMNS = 40
"""Most positions that one picture shows."""
GUESSED, OWN = style.NEGATIVE, style.POSITIVE
"""Hues of a wrong guess and of what is chosen."""
_NARROWEST, _WIDEST, _ROOM = 64, 104, 1000
"""Px from one position to the next, and the px that a short target fills."""
_LEFT, _RIGHT = 92, 12
_FONT = 11
_FAINT = "rgba(128,128,128,.85)"
_BAND = "rgba(128,128,128,.14)"
_ROW = 34


@dataclass(frozen=True)
class Column:
    """One position of a target, with tokens as pieces."""

    read: str  # what the decoder reads
    token: str  # what it should predict
    loss: float  # −log p of that token, in nats
    guess: str  # its most probable token
    share: float  # the probability of that guess


def shifted_right(
    columns: Sequence[Column],  # the positions of a target
    chosen: int,  # the position (from 0) that is marked
    first: int = 0,  # the first position that is drawn
    ink: str | None = None,  # the colour of tokens; None for that of the page
) -> go.Figure:
    """Draws what the decoder reads, what it should predict, and the loss of each position as bars."""
    shown = range(first, min(first + COLUMNS, len(columns)))
    part = [columns[i] for i in shown]
    pitch = _pitch(len(part))
    losses = [each.loss for each in part]
    rows = [{i: columns[i].read for i in shown}, {i: columns[i].token for i in shown}]
    hues = [OWN if i == chosen else style.NEUTRAL for i in shown]
    notes = {i: _note(i, columns[i]) for i in shown}
    font = {} if ink is None else {"color": ink}
    data = [
        _moves(len(part)),
        *(_scattered(row, y, pitch, first, font, notes) | {"yaxis": "y2"} for y, row in enumerate(rows)),
        _loss_bars(losses, hues, notes),
    ]
    top = max(losses, default=0.0)
    layout = _columns(shown, pitch) | {
        "height": 330,
        "yaxis": titled_axis("loss in nats") | {"domain": [0, 0.6], "range": [0, max(1.18 * top, 0.1)]},
        "yaxis2": _named_rows(("reads", "to predict")) | {"domain": [0.66, 1]},
        "bargap": 0.45,
        "clickmode": "event+select",
    }
    return style.figure(style.spec(data, layout))


def two_ways(
    columns: Sequence[Column],  # the positions of the target
    free: Sequence[str],  # the greedy translation, as pieces
    parting: int | None,  # the first step (from 0) at which it is not the target; None if there is none
    first: int = 0,  # the first step that is drawn
    ink: str | None = None,  # as in `shifted_right`
) -> go.Figure:
    """Draws the target, the best guess under teacher forcing, and what the model writes on its own."""
    longest = max(len(columns), len(free))
    shown = range(first, min(first + COLUMNS, longest))
    pitch, end = _pitch(len(shown)), longest if parting is None else parting
    forced = {i: columns[i] for i in shown if i < len(columns)}
    own = {i: free[i] for i in shown if i < len(free)}
    wrong = {i for i, each in forced.items() if each.guess != each.token}
    font = {} if ink is None else {"color": ink}
    rows: list[tuple[int, dict[int, str], dict[str, Any]]] = [
        (0, {i: each.token for i, each in forced.items()}, font),
        (1, {i: each.guess for i, each in forced.items() if i not in wrong}, font),
        (1, {i: each.guess for i, each in forced.items() if i in wrong}, {"color": GUESSED}),
        (2, {i: token for i, token in own.items() if i <= end}, font),
        (2, {i: token for i, token in own.items() if i > end}, {"color": _FAINT}),
    ]
    notes = {i: _note(i, each) for i, each in forced.items()}
    data = [_scattered(tokens, y, pitch, first, look, notes) for y, tokens, look in rows if tokens]
    layout = _columns(shown, pitch) | {
        "height": 58 + 3 * _ROW,
        "yaxis": _named_rows(("target", "in training", "on its own")),
        "shapes": [] if parting is None or parting not in shown else [_band(parting - first)],
    }
    return style.figure(style.spec(data, layout))


def _pitch(count: int) -> float:
    return min(_WIDEST, max(_NARROWEST, _ROOM / max(count, 1)))


def _columns(shown: range, pitch: float) -> dict[str, Any]:
    """Frame of the pictures with one column per position."""
    still = {"fixedrange": True, "showgrid": False, "zeroline": False, "automargin": False, "ticks": ""}
    return {
        "width": round(_LEFT + _RIGHT + pitch * max(len(shown), 4)),
        "margin": {"l": _LEFT, "r": _RIGHT, "t": 28, "b": 8},
        "xaxis": {
            **still,
            "side": "top",
            "anchor": "free",
            "position": 1,
            "range": [-0.5, max(len(shown), 4) - 0.5],
            "tickvals": list(range(len(shown))),
            "ticktext": [f"{labels.count(i)}" for i in shown],
            "tickfont": {"size": 10},
        },
        "dragmode": False,
        "hovermode": "closest",
    }


def _named_rows(names: Sequence[str]) -> dict[str, Any]:
    return {
        "tickvals": list(range(len(names))),
        "ticktext": list(names),
        "tickfont": {"size": 11},
        "range": [len(names) - 0.5, -0.5],
        "fixedrange": True,
        "showgrid": False,
        "zeroline": False,
        "automargin": False,
        "ticks": "",
    }


def _scattered(
    tokens: dict[int, str], y: int, pitch: float, first: int, font: dict[str, Any], notes: dict[int, str]
) -> dict[str, Any]:
    room = (pitch - 6) / _FONT
    whole = [labels.escape(labels.piece(token)) for token in tokens.values()]
    same = {"textfont": {"color": font["color"]}} if font else {}
    return {
        "type": "scatter",
        "mode": "text",
        "x": [i - first for i in tokens],
        "y": [y] * len(tokens),
        "text": [labels.escape(labels.fitted(labels.piece(token), room)) for token in tokens.values()],
        "textfont": {"size": _FONT} | font,
        "customdata": list(tokens),
        "hovertext": [
            notes.get(i, f"step {labels.count(i)}: {text}") for i, text in zip(tokens, whole, strict=True)
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "selected": same,
        "unselected": same,
        "cliponaxis": False,
    }


def _moves(count: int) -> dict[str, Any]:
    """Thin lines from each token to the place, one to the right, at which it is read."""
    x, y = list[float | None](), list[float | None]()
    for i in range(count - 1):
        x += [i + 0.22, i + 0.78, None]
        y += [0.72, 0.28, None]
    line = {"color": "rgba(128,128,128,.55)", "width": 1}
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "yaxis": "y2",
        "line": line,
        "hoverinfo": "skip",
    }


def _loss_bars(losses: Sequence[float], hues: Sequence[str], notes: dict[int, str]) -> dict[str, Any]:
    whole = {"marker": {"opacity": 1}}
    return {
        "type": "bar",
        "x": list(range(len(losses))),
        "y": list(losses),
        "marker": {"color": list(hues)},
        "text": [labels.number(loss) for loss in losses],
        "textposition": "outside",
        "textangle": 0,
        "constraintext": "none",
        "textfont": {"size": 10},
        "customdata": list(notes),
        "hovertext": list(notes.values()),
        "hovertemplate": "%{hovertext}<extra></extra>",
        "cliponaxis": False,
        "selected": whole,
        "unselected": whole,
    }


def _note(position: int, each: Column) -> str:
    read, token, guess = (labels.escape(labels.piece(t)) for t in (each.read, each.token, each.guess))
    share = labels.escape(percent(min(1.0, math.exp(-each.loss))))
    return (
        f"position {labels.count(position)}: reads {read}, is to predict {token}<br>"
        f"loss {labels.number(each.loss)} nats (probability {share})<br>"
        f"best guess {guess} ({labels.escape(percent(each.share))})"
    )


def _band(column: int) -> dict[str, Any]:
    """A grey column behind the texts."""
    return {
        "type": "rect",
        "x0": column - 0.5,
        "x1": column + 0.5,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "fillcolor": _BAND,
        "line": {"width": 0},
        "layer": "below",
    }
