"""One query's path as lectures draw it: from the vectors of a few keys up to the output of the head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from explorer.figures.base import labels, style
from explorer.figures.base.strips import frame

LECTURE_KEYS = 4
_STILL = {"fixedrange": True, "showgrid": False, "zeroline": False, "ticks": "", "automargin": False}
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Symbols:
    """Vectors and numbers of attention in the notation of a text."""

    x: str  # the vector that the query is computed from
    source: str  # the vectors that keys and values are computed from
    score: str  # the score of a key, before the softmax
    weight: str  # the weight of a key, after the softmax
    output: str  # the output of the head for one query
    columns: bool  # whether vectors are columns, and a position stands at the top of a symbol

    def numbered(self, symbol: str, position: int) -> str:
        """A symbol with its position (from 0), in Plotly's markup: raised in columns, lowered in rows."""
        number = str(labels.count(position))
        return symbol + (number.translate(_SUPERSCRIPTS) if self.columns else f"<sub>{number}</sub>")

    def result(self, position: int) -> str:
        """The output for one query, in Plotly's markup; a number at "head" would name another head."""
        return self.numbered(self.output, position) if self.columns else self.output

    def matrix(self, name: str) -> str:
        """The weight matrix Q, K, V or O, in Plotly's markup."""
        return f"W<sup>{name.lower() if self.columns else name}</sup>"

    def projected(self, position: int) -> str:
        """The formula of a position's query: q = x W^Q, or q = W^q a."""
        q, x = self.numbered("q", position), self.numbered(self.x, position)
        return f"{q} = {self.matrix('Q')}{x}" if self.columns else f"{q} = {x}{self.matrix('Q')}"


def lecture_keys(weights: np.ndarray, mask: np.ndarray) -> list[int]:
    """The keys that the drawing shows: the four visible keys of most weight, in reading order."""
    seen = np.flatnonzero(mask)
    best = seen[np.argsort(-weights[seen], kind="stable")][:LECTURE_KEYS]
    return sorted(int(i) for i in best)


def lecture_spec(
    kind: str,  # encoder, decoder or cross
    query: tuple[str, int],  # token and position (from 0) of the query
    tokens: Sequence[str],  # all keys
    scores: np.ndarray,  # scores before the mask (keys,)
    weights: np.ndarray,  # attention weights (keys,)
    mask: np.ndarray,  # true where the query may attend (keys,)
    symbols: Symbols,  # how the vectors are written
) -> dict[str, Any]:
    """The path from one query to its output."""
    keys = lecture_keys(weights, mask)
    names = labels.names(tokens, 9)
    token, position = labels.escape(labels.shorten(labels.piece(query[0]), 9)), query[1]
    lines: list[tuple[tuple[float, float], tuple[float, float], float]] = [((0, 0.2), (0, 0.8), 1)]
    boxes = [
        _box(0, 0, f"{symbols.numbered(symbols.x, position)}<br>{token}"),
        _box(0, 1, symbols.projected(position)),
        _box(0, 5, f"<b>{symbols.result(position)}</b> = Σ {symbols.weight} v"),
    ]
    for column, key in enumerate(keys, start=1):
        boxes += _key_boxes(column, key, names[key], (float(scores[key]), float(weights[key])), symbols)
        lines += _key_lines(column, float(weights[key]))
    boxes.append({**_box(1.5, 2.9, "softmax"), "borderpad": 0, "bordercolor": None, "bgcolor": None})
    layout = {
        "xaxis": {**_STILL, "visible": False, "range": [-0.6, len(keys) + 0.6]},
        "yaxis": {**_STILL, "visible": False, "range": [-0.45, 5.4]},
        "annotations": boxes,
        "shapes": [
            frame(0.5, len(keys) + 0.5, 2.65, 3.15, fillcolor="rgba(128,128,128,.14)", line={"width": 0})
        ],
        "height": 330,
        "margin": {"l": 0, "t": 0, "r": 0, "b": 0},
        "dragmode": False,
    }
    return style.spec([_link(kind, *line) for line in lines], layout)


def _key_boxes(
    column: int, key: int, name: str, numbers: tuple[float, float], symbols: Symbols
) -> list[dict[str, Any]]:
    source, k, v = (symbols.numbered(each, key) for each in (symbols.source, "k", "v"))
    return [
        _box(column, 0, f"{source}<br>{labels.escape(name)}"),
        _box(column - 0.2, 1, k),
        _box(column + 0.27, 3.8, v),
        _box(column - 0.2, 2, f"{symbols.score} = {labels.number(numbers[0])}"),
        _box(column - 0.2, 3.8, f"{symbols.weight} = <b>{numbers[1]:.2f}</b>"),
    ]


def _key_lines(column: int, weight: float) -> list[tuple[tuple[float, float], tuple[float, float], float]]:
    return [
        ((column - 0.2, 0.3), (column - 0.2, 0.8), 1),
        ((column - 0.2, 1.2), (column - 0.2, 1.8), 1),
        ((column + 0.27, 0.3), (column + 0.27, 3.6), 1),
        ((0.1, 1.2), (column - 0.3, 1.8), 1),
        ((column - 0.2, 2.2), (column - 0.2, 2.65), 1),
        ((column - 0.2, 3.15), (column - 0.2, 3.6), 1),
        ((column, 4.05), (0.12, 4.75), 1 + 9 * weight),
    ]


def _box(x: float, y: float, text: str) -> dict[str, Any]:
    look = {"bordercolor": "rgba(128,128,128,.6)", "borderpad": 3, "bgcolor": "rgba(128,128,128,.14)"}
    return {"x": x, "y": y, "text": text, "showarrow": False, "font": {"size": 11}, **look}


def _link(kind: str, start: tuple[float, float], end: tuple[float, float], width: float) -> dict[str, Any]:
    colour = style.NEUTRAL if width == 1 else style.rgba(style.HUES[kind], 0.75)
    line = {"width": width, "color": colour}
    points = {"x": [start[0], end[0]], "y": [start[1], end[1]]}
    return {"type": "scatter", "mode": "lines", **points, "line": line, "hoverinfo": "skip"}
