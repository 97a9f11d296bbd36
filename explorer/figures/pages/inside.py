"""One row of attention: in the equation's order, as lectures draw it, and with a built query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style
from explorer.figures.base.labels import percent
from explorer.figures.base.plot import Spec
from explorer.figures.base.strips import AIR, largest, signed
from explorer.figures.maps.heatmap import hatching

NUMBERS_UP_TO = 18
STRONG = 0.75
WHAT_IF = "#767676"


@dataclass(frozen=True)
class LedgerRow:
    """One line of the calculation."""

    name: str  # written to the left of the line
    values: np.ndarray  # one number per key (keys,)
    # whether the numbers are weights from 0 to 1, drawn in the hue of the attention kind
    share: bool = False
    masked: bool = False  # whether masked keys have no number in this line
    what_if: bool = False  # whether the line shows other arithmetic than the model's

    def visible(self, mask: np.ndarray) -> np.ndarray:
        """The keys that have a number in this line."""
        return mask if self.masked else np.ones_like(mask)

    def end(self, mask: np.ndarray) -> float:
        """The end of the line's scale."""
        return 1.0 if self.share else largest(self.values[self.visible(mask)])


def ledger_spec(
    kind: str,
    tokens: Sequence[str],
    mask: np.ndarray,
    rows: Sequence[LedgerRow],
    selected: int | None = None,
) -> Spec:
    """The calculation of one row, a line for each stage.

    A gap precedes the first that is not the model's.
    """
    names = [f"key {labels.escape(name)}" for name in labels.names(tokens)]
    lines = [(i + 0.6 if row.what_if else i, row) for i, row in enumerate(rows)]
    traces = [_line(kind, row, place, mask) | {"text": [names]} for place, row in lines]
    for place, row in lines:
        if row.masked:
            traces += _hatched(mask, place)
    if len(tokens) <= NUMBERS_UP_TO:
        traces += _numbers(lines, mask)
    bottom = lines[-1][0] + 0.5
    framed = list[Spec]()
    if selected is not None:
        framed.append(plot.rectangle(selected - 0.5, selected + 0.5, -0.5, bottom))
    down: Spec = {
        "range": [bottom, -0.5],
        "tickvals": [place for place, _ in lines],
        "ticktext": [labels.escape(row.name) for row in rows],
        "tickmode": "array",
        "tickfont": {"size": 12},
        "ticklabelstandoff": AIR,
    }
    return plot.spec(
        traces,
        plot.token_axis(tokens, style.LARGE, side="top", tickangle=-90),
        plot.STILL | down,
        int(26 * (bottom + 0.5)) + 88,
        (112, 82, 4, 6),
        shapes=framed,
    )


def _line(kind: str, row: LedgerRow, place: float, mask: np.ndarray) -> Spec:
    """The colours of a line at its place from the top."""
    values = np.where(row.visible(mask), row.values, np.nan)
    hover = f"%{{text}}<br>{labels.escape(row.name)} %{{z:.3f}}<extra></extra>"
    look: Spec = {"y0": place, "xgap": 1, "ygap": 5, "hovertemplate": hover, "hoverongaps": False}
    if not row.share:
        return signed(values[None], largest(np.nan_to_num(values)), **look)
    hue = WHAT_IF if row.what_if else style.HUES[kind]
    return plot.heat(values[None], (0, 1), style.shades(hue, style.FAINTEST), **look)


def _hatched(mask: np.ndarray, place: float) -> list[Spec]:
    """The hatching of masked keys in the line at a place."""
    traces = hatching(mask[None])
    for trace in traces:
        trace["y"] = [None if y is None else y + place for y in trace["y"]]
    return traces


def _numbers(lines: Sequence[tuple[float, LedgerRow]], mask: np.ndarray) -> list[Spec]:
    """The numbers in the cells: white on a strong purple or hue, else as the page's text."""
    strong = plot.points([], [], "text", text=[], textfont={"size": 10, "color": "#ffffff"})
    faint = plot.points([], [], "text", text=[], textfont={"size": 10})
    for place, row in lines:
        for column in np.flatnonzero(row.visible(mask)):
            value = float(row.values[column])
            trace = strong if value > STRONG * row.end(mask) else faint
            trace["x"].append(int(column))
            trace["y"].append(place)
            trace["text"].append(labels.number(value))
    return [trace for trace in (strong, faint) if trace["x"]]


LECTURE_KEYS = 4
_GREY = "rgba(128,128,128,.14)"
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
        """A symbol with its position (from 0) in markup: raised in columns, lowered in rows."""
        number = str(labels.count(position))
        if self.columns:
            return symbol + number.translate(_SUPERSCRIPTS)
        return f"{symbol}<sub>{number}</sub>"

    def result(self, position: int) -> str:
        """The output for one query in markup; a number at "head" would name another head."""
        if self.columns:
            return self.numbered(self.output, position)
        return self.output

    def matrix(self, name: str) -> str:
        """The weight matrix Q, K, V or O, in Plotly's markup."""
        if self.columns:
            return f"W<sup>{name.lower()}</sup>"
        return f"W<sup>{name}</sup>"

    def projected(self, matrix: str, vector: str) -> str:
        """A weight matrix times a vector, in the order of the notation."""
        return f"{matrix}{vector}" if self.columns else f"{vector}{matrix}"


def lecture_keys(weights: np.ndarray, mask: np.ndarray) -> list[int]:
    """The keys that the drawing shows: the four visible keys of most weight, in reading order."""
    seen = np.flatnonzero(mask)
    best = seen[np.argsort(-weights[seen], kind="stable")][:LECTURE_KEYS]
    return sorted(int(i) for i in best)


def lecture_spec(
    kind: str,
    query: tuple[str, int],
    tokens: Sequence[str],
    scores: np.ndarray,
    weights: np.ndarray,
    mask: np.ndarray,
    symbols: Symbols,
) -> Spec:
    """The path from one query to its output."""
    keys = lecture_keys(weights, mask)
    names = labels.names(tokens, 9)
    boxes = _query_boxes(query, symbols)
    lines = [_link((0, 0.2), (0, 0.8))]
    for x, key in enumerate(keys, start=1):
        score = float(scores[key])
        weight = float(weights[key])
        source = f"{symbols.numbered(symbols.source, key)}<br>{labels.escape(names[key])}"
        boxes += [
            _box(x, 0, source),
            _box(x - _ASIDE, 1, symbols.numbered("k", key)),
            _box(x + _APART, 3.8, symbols.numbered("v", key)),
            _box(x - _ASIDE, 2, f"{symbols.score} = {labels.number(score)}"),
            _box(x - _ASIDE, 3.8, f"{symbols.weight} = <b>{weight:.2f}</b>"),
        ]
        lines += _key_links(x, weight, style.rgba(style.HUES[kind], 0.75))
    softmax = plot.rectangle(0.5, len(keys) + 0.5, 2.65, 3.15, width=0, fillcolor=_GREY)
    return plot.spec(
        lines,
        plot.HIDDEN | {"range": [-0.6, len(keys) + 0.6]},
        plot.HIDDEN | {"range": [-0.45, 5.4]},
        330,
        annotations=[*boxes, plot.note("softmax", 1.5, 2.9, borderpad=0)],
        shapes=[softmax],
    )


_ASIDE, _APART = 0.2, 0.27
"""How far left of its column the path of a key stands, and how far right that of its value."""


def _query_boxes(query: tuple[str, int], symbols: Symbols) -> list[Spec]:
    """The token and position of the query, its vector, and the output."""
    token, position = query
    x = symbols.numbered(symbols.x, position)
    product = symbols.projected(symbols.matrix("Q"), x)
    return [
        _box(0, 0, f"{x}<br>{labels.short(token, 9)}"),
        _box(0, 1, f"{symbols.numbered('q', position)} = {product}"),
        _box(0, 5, f"<b>{symbols.result(position)}</b> = Σ {symbols.weight} v"),
    ]


def _key_links(x: float, weight: float, colour: str) -> list[Spec]:
    """The lines of a key and its value up to the output, the last as thick as its weight."""
    left = x - _ASIDE
    right = x + _APART
    return [
        _link((left, 0.3), (left, 0.8)),
        _link((left, 1.2), (left, 1.8)),
        _link((right, 0.3), (right, 3.6)),
        _link((0.1, 1.2), (x - 0.3, 1.8)),
        _link((left, 2.2), (left, 2.65)),
        _link((left, 3.15), (left, 3.6)),
        _link((x, 4.05), (0.12, 4.75), 1 + 9 * weight, colour),
    ]


def _box(x: float, y: float, text: str) -> Spec:
    return plot.note(text, x, y, bordercolor="rgba(128,128,128,.6)", borderpad=3, bgcolor=_GREY)


def _link(
    start: tuple[float, float],
    end: tuple[float, float],
    width: float = 1,
    colour: str = style.NEUTRAL,
) -> Spec:
    line = {"width": width, "color": style.NEUTRAL if width == 1 else colour}
    return plot.points([start[0], end[0]], [start[1], end[1]], "lines", line=line)


_LEAST = 4.0
"""Least range of the axis of scores, so that equal scores look equal."""


def built_row(
    kind: str,
    tokens: Sequence[str],
    mask: np.ndarray,
    scores: np.ndarray,
    weights: np.ndarray,
    pair: tuple[int, int],
    goals: Sequence[float],
) -> go.Figure:
    """Weights above, scores as points below, one column per key.

    A dotted line stands at each weight that is a goal.
    """
    names = [f"key {labels.escape(name)}" for name in labels.names(tokens)]
    colours = _hues_of_pair(len(tokens), pair, style.HUES[kind], style.NEUTRAL)
    keys = np.arange(len(tokens))
    on_keys: Spec = {"x": keys, "hovertext": names, "cliponaxis": False}
    bars = plot.bars(
        np.where(mask, weights, np.nan).astype(np.float32),
        colours,
        across=False,
        text=[percent(float(weight)) if weight >= 0.005 else "" for weight in weights],
        textfont={"size": 11},
        hovertemplate="%{hovertext}<br>weight %{y:.3f}<extra></extra>",
    )
    points = plot.points(
        keys,
        np.where(mask, scores, np.nan).astype(np.float32),
        yaxis="y2",
        marker={"color": colours, "size": 11},
        hovertemplate="%{hovertext}<br>score %{y:.3f}<extra></extra>",
    )
    low = float(scores[mask].min())
    high = float(scores[mask].max())
    air = max(_LEAST - (high - low), 0.3 * (high - low)) / 2
    soft = plot.number_axis(zeroline=None, tickfont=None)
    above = {"domain": [0.52, 1], "range": [0, 1.08], "tickvals": [0, 0.5, 1], "title": "weight"}
    below = {"domain": [0, 0.4], "range": [low - air, high + air], "nticks": 4, "title": "score"}
    return plot.figure(
        [bars | on_keys, points | on_keys, *hatching(mask[None])],
        plot.token_axis(tokens, style.LARGE, tickangle=-90, anchor="free"),
        soft | above,
        286,
        (56, 12, 6, 66),
        yaxis2=soft | below,
        shapes=[
            plot.stroke(y=goal, width=1.5, colour=style.CHOSEN) | {"layer": "below"}
            for goal in goals
        ],
        bargap=0.2,
    )


def _hues_of_pair(keys: int, pair: tuple[int, int], hue: str, grey: str) -> list[str]:
    """The colour of each key: a hue for those of a pair, a grey for all others."""
    return [hue if key in pair else grey for key in range(keys)]


def key_plane(
    kind: str, tokens: Sequence[str], places: np.ndarray, query: np.ndarray, pair: tuple[int, int]
) -> go.Figure:
    """The keys from above the plane, and the query's direction.

    A score is how far along it a key lies.
    """
    size = float(np.linalg.norm(query))
    tip = query / max(size, 1e-9) * 0.7 * float(np.linalg.norm(places, axis=1).max())
    corners = np.concatenate([places, tip[None], np.zeros((1, 2))])
    low = corners.min(0)
    high = corners.max(0)
    air = 0.15 * float((high - low).max()) + 1e-9
    axis = plot.number_axis(
        zeroline=True, zerolinecolor="rgba(128,128,128,.5)", showticklabels=False
    )
    across, up = (axis | {"range": [low[i] - air, high[i] + air]} for i in range(2))
    return plot.figure(
        [_keys_of_plane(kind, tokens, places, pair)],
        across,
        up | {"scaleanchor": "x"},
        210,
        (6, 6, 6, 6),
        annotations=_arrow_to(tip) if size else [],
    )


def _keys_of_plane(
    kind: str, tokens: Sequence[str], places: np.ndarray, pair: tuple[int, int]
) -> Spec:
    """The keys as points; those of the pair are large, in the hue of the kind, and named."""
    names = [labels.escape(name) for name in labels.names(tokens, 6)]
    sizes = [6] * len(tokens)
    texts = [""] * len(tokens)
    for key in pair:
        sizes[key] = 10
        texts[key] = names[key]
    hues = _hues_of_pair(len(tokens), pair, style.HUES[kind], style.CHOSEN)
    return plot.points(
        places[:, 0].astype(np.float32),
        places[:, 1].astype(np.float32),
        "markers+text",
        marker={"size": sizes, "color": hues},
        text=texts,
        textposition="top center",
        textfont={"size": 12},
        cliponaxis=False,
        hovertext=[f"key {name}" for name in names],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _arrow_to(tip: np.ndarray) -> list[Spec]:
    """An arrow from the origin, and a q at its tip."""
    arrow = {
        "ax": 0,
        "ay": 0,
        "axref": "x",
        "ayref": "y",
        "showarrow": True,
        "arrowhead": 2,
        "arrowwidth": 2,
        "x": tip[0],
        "y": tip[1],
        "text": "",
        "arrowcolor": style.POSITIVE,
    }
    name = {
        "x": tip[0],
        "y": tip[1],
        "showarrow": False,
        "text": "<b>q</b>",
        "xshift": 10,
        "yshift": 8,
    }
    return [arrow, name]
