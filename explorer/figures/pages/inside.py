"""One row of attention in the order of the equation: products, scores, mask, weights, weighted sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, style
from explorer.figures.base.strips import frame, largest, signed
from explorer.figures.maps.heatmap import hatching

NUMBERS_UP_TO = 18
STRONG = 0.75
WHAT_IF = "#767676"
_STILL = {"fixedrange": True, "showgrid": False, "zeroline": False, "ticks": "", "automargin": False}


@dataclass(frozen=True)
class LedgerRow:
    """One line of the calculation."""

    name: str  # written to the left of the line
    values: np.ndarray  # one number per key (keys,)
    share: bool = False  # whether the numbers are weights from 0 to 1, drawn in the hue of the attention kind
    masked: bool = False  # whether masked keys have no number in this line
    what_if: bool = False  # whether the line shows other arithmetic than the model's

    def cut(self, keys: slice) -> LedgerRow:
        """The same line for some of the keys."""
        return replace(self, values=self.values[keys])


def ledger_spec(
    kind: str,  # encoder, decoder or cross
    tokens: Sequence[str],  # at most 64 keys
    mask: np.ndarray,  # true where the query may attend (keys,)
    rows: Sequence[LedgerRow],  # from the products down to the weights
    selected: int | None = None,  # the key to frame
) -> dict[str, Any]:
    """The calculation of one row of attention, one line for each stage and one column per key."""
    count, places = len(tokens), _places(rows)
    names = [labels.escape(name) for name in labels.key_names(tokens)]
    traces = [
        _line(kind, row, place, mask) | {"text": [names]} for row, place in zip(rows, places, strict=True)
    ]
    seen = np.ones((1, count), dtype=bool)
    for row, place in zip(rows, places, strict=True):
        hatched = hatching(mask[None] if row.masked else seen)
        if hatched is not None:
            traces.append(hatched | {"y": [None if y is None else y + place for y in hatched["y"]]})
    if count <= NUMBERS_UP_TO:
        traces += _numbers(rows, places, mask)
    bottom = places[-1] + 0.5
    across = style.token_axis(labels.ticks(tokens), style.LARGE) | {"side": "top", "tickangle": -90}
    layout = {
        "xaxis": across,
        "yaxis": {
            **_STILL,
            "range": [bottom, -0.5],
            "tickmode": "array",
            "tickvals": places,
            "ticktext": [labels.escape(row.name) for row in rows],
            "tickfont": {"size": 12},
            "ticklabelstandoff": 5,
        },
        "shapes": [] if selected is None else [frame(selected - 0.5, selected + 0.5, -0.5, bottom)],
        "height": int(26 * (bottom + 0.5)) + 88,
        "margin": {"l": 112, "t": 82, "r": 4, "b": 6},
        "dragmode": False,
    }
    return style.spec(traces, layout)


def _places(rows: Sequence[LedgerRow]) -> list[float]:
    """Places of the lines, with a gap before the first line that is not the model's."""
    return [i + 0.6 if row.what_if else i for i, row in enumerate(rows)]


def _numbers(rows: Sequence[LedgerRow], places: Sequence[float], mask: np.ndarray) -> list[dict[str, Any]]:
    """The numbers in the cells: white on a strong purple or hue, otherwise in the page's text colour."""
    strong, faint = _written("#ffffff"), _written(None)
    for row, place in zip(rows, places, strict=True):
        end = 1.0 if row.share else largest(row.values[mask] if row.masked else row.values)
        for column in np.flatnonzero(mask | (not row.masked)):
            value = float(row.values[column])
            trace = strong if value > STRONG * end else faint
            trace["x"].append(int(column))
            trace["y"].append(place)
            trace["text"].append(labels.number(value))
    return [trace for trace in (strong, faint) if trace["x"]]


def _written(colour: str | None) -> dict[str, Any]:
    font: dict[str, Any] = {"size": 10} if colour is None else {"size": 10, "color": colour}
    return {
        "type": "scatter",
        "mode": "text",
        "x": [],
        "y": [],
        "text": [],
        "textfont": font,
        "hoverinfo": "skip",
    }


def _line(kind: str, row: LedgerRow, place: float, mask: np.ndarray) -> dict[str, Any]:
    values = np.where(mask, row.values, np.nan) if row.masked else row.values
    hover = f"%{{text}}<br>{labels.escape(row.name)} %{{z:.3f}}<extra></extra>"
    shared = {"y0": place, "xgap": 1, "ygap": 5, "hovertemplate": hover, "hoverongaps": False}
    if not row.share:
        return signed(values[None], largest(np.nan_to_num(values)), **shared)
    hue = WHAT_IF if row.what_if else style.HUES[kind]
    scale = [(0.0, style.rgba(hue, style.FAINTEST)), (1.0, style.rgba(hue, 1))]
    cells = {"type": "heatmap", "z": values[None].astype(np.float32), "zmin": 0, "zmax": 1}
    return cells | {"colorscale": scale, "showscale": False} | shared


def saturation_spec(
    factors: np.ndarray,  # multipliers of the scores (n,)
    curves: Sequence[tuple[str, np.ndarray]],  # name and values (n,) of each curve
    marks: Sequence[tuple[str, float]],  # name and factor of each vertical line
) -> dict[str, Any]:
    """Saturation of a softmax as its scores grow."""
    dashes = ("solid", "dash", "dot")
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": factors.astype(np.float32),
            "y": values.astype(np.float32),
            "name": name,
            "line": {"dash": dash, "width": 2, "color": "rgba(128,128,128,1)"},
            "hovertemplate": f"{labels.escape(name)} %{{y:.3f}} at × %{{x:.2f}}<extra></extra>",
        }
        for (name, values), dash in zip(curves, dashes, strict=False)
    ]
    soft = {"gridcolor": "rgba(128,128,128,.25)", "zeroline": False, "fixedrange": True, "automargin": False}
    title = {"text": "scores multiplied by", "font": {"size": 11}}
    steps = [0.125, 0.25, 0.5, 1, 2, 4, 8]
    layout = {
        "xaxis": {
            **soft,
            "type": "log",
            "title": title,
            "tickvals": steps,
            "ticktext": ["⅛", "¼", "½", *"1248"],
        },
        "yaxis": {**soft, "range": [0, 1.05], "tickvals": [0, 0.5, 1]},
        "shapes": [_mark(factor) for _, factor in marks],
        "annotations": [_mark_name(name, factor, i) for i, (name, factor) in enumerate(marks)],
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 11}},
        "height": 210,
        "margin": {"l": 34, "t": 30, "r": 8, "b": 40},
        "dragmode": False,
    }
    return style.spec(traces, layout)


def _mark(factor: float) -> dict[str, Any]:
    line = {"width": 1, "dash": "dot", "color": "rgba(128,128,128,.9)"}
    return {"type": "line", "x0": factor, "x1": factor, "y0": 0, "y1": 1, "yref": "paper", "line": line}


def _mark_name(name: str, factor: float, place: int) -> dict[str, Any]:
    position = {"x": float(np.log10(factor)), "y": 1.03 - 0.14 * place, "xanchor": "left", "yanchor": "top"}
    return {"text": labels.escape(name), "showarrow": False, "font": {"size": 10}, **position}


def saturation(
    factors: np.ndarray, curves: Sequence[tuple[str, np.ndarray]], marks: Sequence[tuple[str, float]]
) -> go.Figure:
    """`saturation_spec` as a figure."""
    return style.figure(saturation_spec(factors, curves, marks))
