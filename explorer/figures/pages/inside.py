"""One row of attention: in the order of the equation, as lectures draw it, and with a query that is
built."""

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
    share: bool = (
        False  # whether the numbers are weights from 0 to 1, drawn in the hue of the attention kind
    )
    masked: bool = False  # whether masked keys have no number in this line
    what_if: bool = False  # whether the line shows other arithmetic than the model's


def ledger_spec(
    kind: str,
    tokens: Sequence[str],
    mask: np.ndarray,
    rows: Sequence[LedgerRow],
    selected: int | None = None,
) -> Spec:
    """The calculation of one row, a line for each stage; a gap precedes the first that is not the
    model's."""
    places = [i + 0.6 if row.what_if else i for i, row in enumerate(rows)]
    names = [f"key {labels.escape(name)}" for name in labels.names(tokens)]
    lines = list(zip(rows, places, strict=True))
    traces = [_line(kind, row, place, mask) | {"text": [names]} for row, place in lines]
    for row, place in lines:
        for hatched in hatching(mask[None]) if row.masked else ():
            traces.append(hatched | {"y": [None if y is None else y + place for y in hatched["y"]]})
    if (
        len(tokens) <= NUMBERS_UP_TO
    ):  # white on a strong purple or hue, else in the page's text colour
        fonts = {"size": 10, "color": "#ffffff"}, {"size": 10}
        strong, faint = (plot.points([], [], "text", text=[], textfont=font) for font in fonts)
        for row, place in lines:
            end = 1.0 if row.share else largest(row.values[mask] if row.masked else row.values)
            for column in np.flatnonzero(mask | (not row.masked)):
                value = float(row.values[column])
                trace = strong if value > STRONG * end else faint
                for key, each in (("x", int(column)), ("y", place), ("text", labels.number(value))):
                    trace[key].append(each)
        traces += [trace for trace in (strong, faint) if trace["x"]]
    bottom = places[-1] + 0.5
    return plot.spec(
        traces,
        plot.token_axis(tokens, style.LARGE, side="top", tickangle=-90),
        plot.STILL
        | {
            "range": [bottom, -0.5],
            "tickvals": places,
            "ticktext": [labels.escape(row.name) for row in rows],
        }
        | {"tickmode": "array", "tickfont": {"size": 12}, "ticklabelstandoff": AIR},
        int(26 * (bottom + 0.5)) + 88,
        (112, 82, 4, 6),
        shapes=[]
        if selected is None
        else [plot.rectangle(selected - 0.5, selected + 0.5, -0.5, bottom)],
    )


def _line(kind: str, row: LedgerRow, place: float, mask: np.ndarray) -> Spec:
    values = np.where(mask, row.values, np.nan) if row.masked else row.values
    hover = f"%{{text}}<br>{labels.escape(row.name)} %{{z:.3f}}<extra></extra>"
    shared = {"y0": place, "xgap": 1, "ygap": 5, "hovertemplate": hover, "hoverongaps": False}
    if not row.share:
        return signed(values[None], largest(np.nan_to_num(values)), **shared)
    hue = WHAT_IF if row.what_if else style.HUES[kind]
    return plot.heat(values[None], (0, 1), style.shades(hue, style.FAINTEST), **shared)


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
        """A symbol with its position (from 0), in Plotly's markup: raised in columns, lowered in
        rows."""
        number = str(labels.count(position))
        return symbol + (
            number.translate(_SUPERSCRIPTS) if self.columns else f"<sub>{number}</sub>"
        )

    def result(self, position: int) -> str:
        """The output for one query, in Plotly's markup; a number at "head" would name another
        head."""
        return self.numbered(self.output, position) if self.columns else self.output

    def matrix(self, name: str) -> str:
        """The weight matrix Q, K, V or O, in Plotly's markup."""
        return f"W<sup>{name.lower() if self.columns else name}</sup>"


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
    token = labels.short(query[0], 9)
    position = query[1]
    asks = symbols.numbered("q", position)
    read = symbols.numbered(symbols.x, position)
    matrix = symbols.matrix("Q")
    projected = f"{matrix}{read}" if symbols.columns else f"{read}{matrix}"
    boxes = [
        _box(0, 0, f"{read}<br>{token}"),
        _box(0, 1, f"{asks} = {projected}"),
        _box(0, 5, f"<b>{symbols.result(position)}</b> = Σ {symbols.weight} v"),
    ]
    lines = [_link((0, 0.2), (0, 0.8))]
    for x, key in enumerate(keys, start=1):
        source, k, v = (symbols.numbered(each, key) for each in (symbols.source, "k", "v"))
        left = x - 0.2
        right = x + 0.27
        weight = float(weights[key])
        boxes += [
            _box(x, 0, f"{source}<br>{labels.escape(names[key])}"),
            _box(left, 1, k),
            _box(right, 3.8, v),
            _box(left, 2, f"{symbols.score} = {labels.number(float(scores[key]))}"),
            _box(left, 3.8, f"{symbols.weight} = <b>{weight:.2f}</b>"),
        ]
        lines += [
            _link((left, 0.3), (left, 0.8)),
            _link((left, 1.2), (left, 1.8)),
            _link((right, 0.3), (right, 3.6)),
            _link((0.1, 1.2), (x - 0.3, 1.8)),
            _link((left, 2.2), (left, 2.65)),
            _link((left, 3.15), (left, 3.6)),
            _link((x, 4.05), (0.12, 4.75), 1 + 9 * weight, style.rgba(style.HUES[kind], 0.75)),
        ]
    softmax = plot.rectangle(0.5, len(keys) + 0.5, 2.65, 3.15, width=0, fillcolor=_GREY)
    return plot.spec(
        lines,
        plot.HIDDEN | {"range": [-0.6, len(keys) + 0.6]},
        plot.HIDDEN | {"range": [-0.45, 5.4]},
        330,
        annotations=[*boxes, plot.note("softmax", 1.5, 2.9, borderpad=0)],
        shapes=[softmax],
    )


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
    """Weights above, scores as points below, one column per key; a dotted line at each weight asked
    for."""
    names = [f"key {labels.escape(name)}" for name in labels.names(tokens)]
    colours = [style.HUES[kind] if key in pair else style.NEUTRAL for key in range(len(tokens))]
    drawn: Spec = {"x": np.arange(len(tokens)), "hovertext": names, "cliponaxis": False}
    weighed, scored = (
        np.where(mask, each, np.nan).astype(np.float32) for each in (weights, scores)
    )
    written = {
        "text": [percent(float(weight)) if weight >= 0.005 else "" for weight in weights],
        "textfont": {"size": 11},
        "hovertemplate": "%{hovertext}<br>weight %{y:.3f}<extra></extra>",
    }
    told = "%{hovertext}<br>score %{y:.3f}<extra></extra>"
    marker = {"color": colours, "size": 11}
    traces = [
        plot.bars(weighed, colours, across=False, **written) | drawn,
        plot.points(drawn["x"], scored, yaxis="y2", marker=marker, hovertemplate=told) | drawn,
    ]
    low = float(scores[mask].min())
    high = float(scores[mask].max())
    air = max(_LEAST - (high - low), 0.3 * (high - low)) / 2
    soft = plot.number_axis(zeroline=None, tickfont=None)
    above = {"domain": [0.52, 1], "range": [0, 1.08], "tickvals": [0, 0.5, 1], "title": "weight"}
    below = {"domain": [0, 0.4], "range": [low - air, high + air], "nticks": 4, "title": "score"}
    return plot.figure(
        [*traces, *hatching(mask[None])],
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


def key_plane(
    kind: str, tokens: Sequence[str], places: np.ndarray, query: np.ndarray, pair: tuple[int, int]
) -> go.Figure:
    """The keys from above the plane, and the query's direction: a score is how far along it a key
    lies."""
    size = float(np.linalg.norm(query))
    tip = query / max(size, 1e-9) * 0.7 * float(np.linalg.norm(places, axis=1).max())
    seen = np.concatenate([places, tip[None], np.zeros((1, 2))])
    low = seen.min(0)
    high = seen.max(0)
    air = 0.15 * float((high - low).max()) + 1e-9
    names = [labels.escape(name) for name in labels.names(tokens, 6)]
    hues = [style.HUES[kind] if key in pair else style.CHOSEN for key in range(len(tokens))]
    keys = plot.points(
        places[:, 0].astype(np.float32),
        places[:, 1].astype(np.float32),
        "markers+text",
        marker={"size": [10 if key in pair else 6 for key in range(len(tokens))], "color": hues},
        text=[name if key in pair else "" for key, name in enumerate(names)],
        textposition="top center",
        textfont={"size": 12},
        cliponaxis=False,
        hovertext=[f"key {name}" for name in names],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    arrow = {
        "ax": 0,
        "ay": 0,
        "axref": "x",
        "ayref": "y",
        "showarrow": True,
        "arrowhead": 2,
        "arrowwidth": 2,
    }
    head = {"x": tip[0], "y": tip[1], "text": "", "arrowcolor": style.POSITIVE}
    end = {
        "x": tip[0],
        "y": tip[1],
        "showarrow": False,
        "text": "<b>q</b>",
        "xshift": 10,
        "yshift": 8,
    }
    axis = plot.number_axis(
        zeroline=True, zerolinecolor="rgba(128,128,128,.5)", showticklabels=False
    )
    across, up = (axis | {"range": [low[i] - air, high[i] + air]} for i in range(2))
    notes = [arrow | head, end] if size else []
    return plot.figure(
        [keys], across, up | {"scaleanchor": "x"}, 210, (6, 6, 6, 6), annotations=notes
    )
