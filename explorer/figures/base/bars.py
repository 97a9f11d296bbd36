"""Bars that follow the cursor: the candidates for the next token, and one row of an attention map.

Each figure holds every step as a Plotly frame named by its position, so a viewer can move between steps
without asking Python.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, style
from explorer.figures.base.quantity import quantity
from explorer.figures.base.shape import AlternativeLike, HeadLike, StepLike, row_sums

SHOWN = 10
EXCLUDED = "barred"
"""Stands in the place of a probability that no search could choose."""


def percent(share: float) -> str:
    """Writes a share from 0 to 1 as a percentage: `37 %`, `0.4 %`, `<0.1 %`."""
    value = 100 * share
    if 0 < value < 0.1:
        return f"<0.1{labels.PER_CENT}"
    if 99.5 <= value < 100 and share < 1:
        return f"{math.floor(10 * value) / 10:g}{labels.PER_CENT}"
    return format(value, ".1f" if 0 < value < 1 else ".0f") + labels.PER_CENT


def shown_candidates(step: StepLike) -> list[AlternativeLike | StepLike]:
    """The most probable tokens of a step, best first; the chosen token is always among them."""
    best: list[AlternativeLike | StepLike] = list(step.alternatives[:SHOWN])
    if all(option.token_id != step.token_id for option in best):
        best = [*best[: SHOWN - 1], step]
    return best


def candidates(step: StepLike) -> list[tuple[str, float, bool]]:
    """The candidates that are shown, as (token, log-probability, whether chosen)."""
    best = shown_candidates(step)
    return [(option.token, float(option.log_prob), option.token_id == step.token_id) for option in best]


def chances(step: StepLike) -> list[str]:
    """What stands at the bar of each candidate: its probability, or that the search rules excluded it."""
    barred = {each.token_id for each in step.alternatives if each.excluded} - {step.token_id}
    best = shown_candidates(step)
    return [EXCLUDED if each.token_id in barred else percent(math.exp(each.log_prob)) for each in best]


def _next_token_frame(name: str, step: StepLike) -> dict[str, Any]:
    options = candidates(step)
    shares = [math.exp(log_prob) for _, log_prob, _ in options]
    bar = {
        "x": np.array(shares, dtype=np.float32),
        "customdata": np.array([log_prob for _, log_prob, _ in options], dtype=np.float32),
        "text": list(map(labels.escape, chances(step))),
        "hovertext": [labels.escape(labels.piece(token)) for token, _, _ in options],
        "marker": {"color": [style.CHOSEN if chosen else style.NEUTRAL for *_, chosen in options]},
    }
    ticktext = [_option_label(token, chosen) for token, _, chosen in options]
    return {"name": name, "data": [bar], "layout": {"yaxis": {"ticktext": ticktext}}}


def _option_label(token: str, chosen: bool) -> str:
    label = labels.escape(labels.shorten(labels.piece(token)))
    return f"<b>{label}</b>" if chosen else label


def next_token(steps: Sequence[StepLike], step: int = 0, height: int = style.SIZE) -> go.Figure:
    """Draws the most probable next tokens of one step; the other steps are frames.

    Args:
        steps: the decode steps.
        step: the step that is drawn first (from 0).
        height: in px.
    """
    return style.figure(next_token_spec(steps, step, height))


def next_token_spec(steps: Sequence[StepLike], step: int = 0, height: int = style.SIZE) -> dict[str, Any]:
    """The same figure as plain values."""
    frames = [_next_token_frame(str(i), each) for i, each in enumerate(steps)]
    bar = {
        "type": "bar",
        "orientation": "h",
        "y": list(range(SHOWN)),
        "textposition": "outside",
        "cliponaxis": False,
        "textfont": {"size": 10},
        "hovertemplate": "%{hovertext}<br>probability %{x:.3f} · log-probability %{customdata:.2f} nats"
        "<extra></extra>",
        **frames[step]["data"][0],
    }
    still = {"fixedrange": True, "showgrid": False, "zeroline": False, "automargin": False, "ticks": ""}
    rows = {"tickmode": "array", "tickvals": list(range(SHOWN)), "tickfont": {"size": 11}}
    layout = {
        "xaxis": {**still, "range": [0, 1.3], "visible": False},
        "yaxis": {**still, **rows, "range": [SHOWN - 0.4, -0.6], **frames[step]["layout"]["yaxis"]},
        "height": height,
        "margin": {"l": 84, "t": 6, "r": 6, "b": 6},
        "bargap": 0.35,
        "dragmode": False,
    }
    return style.spec([bar], layout, frames)


def row_bars_spec(view: HeadLike, row: int = 0, height: int = 200) -> dict[str, Any]:
    """One row of a head, key by key; the other rows are frames named by their position in the window.

    Args:
        view: the head, over at most 64 keys.
        row: the row of the window that is drawn first (from 0).
        height: in px.
    """
    names = labels.row_names(view.query_tokens, view.predicted_tokens)
    ends = [f": Σ = {each}" for each in row_sums(view)] if quantity(view).sums else [""] * len(names)
    frames = [_row_frame(i, names[i], weights, ends[i]) for i, weights in enumerate(view.weights)]
    keys = [labels.escape(name) for name in labels.key_names(view.key_tokens)]
    bar = {
        "type": "bar",
        "x": list(range(len(keys))),
        "hovertext": keys,
        "marker": {"color": style.HUES[view.kind]},
        "hovertemplate": f"%{{hovertext}}<br>{quantity(view).share} %{{y:.3f}}<extra></extra>",
        **frames[row]["data"][0],
    }
    title = {"font": {"size": 12}, "x": 0, "xref": "paper", "y": 0.97, "yanchor": "top"}
    weights_axis = {
        "range": [0, 1],
        "tickvals": [0, 0.5, 1],
        "fixedrange": True,
        "automargin": False,
        "title": {"text": quantity(view).share, "font": {"size": 11}},
        "gridcolor": "rgba(128,128,128,.25)",
        "zeroline": False,
    }
    layout = {
        "title": title | frames[row]["layout"]["title"],
        "xaxis": {**style.token_axis(labels.ticks(view.key_tokens)), "tickangle": -90},
        "yaxis": weights_axis,
        "height": height,
        "margin": {"l": 50, "t": 30, "r": 6, "b": 74},
        "bargap": 0.15,
        "dragmode": False,
    }
    return style.spec([bar], layout, frames)


def _row_frame(position: int, name: str, weights: np.ndarray, end: str) -> dict[str, Any]:
    title = labels.escape(f"{name}{end}{' hidden' * ('+' in end)}")
    bar = {"y": weights.astype(np.float32)}
    return {"name": str(position), "data": [bar], "layout": {"title": {"text": title}}}
