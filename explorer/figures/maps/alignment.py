"""Word alignments: links that attention implies, compared with links made by hand."""

from collections.abc import Collection, Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style
from explorer.figures.base.plot import Spec
from explorer.figures.maps.heatmap import LEGEND, legend, levels, token_grid

Pair = tuple[int, int]
FOUND = "#56B4E9"
"""Colour of links that attention implies (Okabe and Ito); no attention kind has this hue."""
NAMED = 64
"""Most words of a side for which each cell's hover text says which links it has."""
_BY_HAND = "rgba(110,110,110,1)"
_MARKS = 22
"""Px for the legend of the marks."""
_PITCH = 10
"""Least px from one word to the next: every word has room for its label."""


def size_for(words: int, usual: int) -> int:
    """Width in px of a map of `words` words, each with its label; at least `usual`."""
    around = style.margin(usual)
    return max(usual, around["l"] + around["r"] + _PITCH * words)


def alignment_map(
    weights: np.ndarray,  # (target words, source words) from 0 to 1
    source: Sequence[str],  # words of the columns
    target: Sequence[str],  # words of the rows
    # (source word, target word) links that attention implies, drawn as dots
    links: Collection[Pair],
    sure: Collection[Pair],  # links made by hand, drawn as squares
    # links that an alignment may or may not have, drawn as dotted squares
    possible: Collection[Pair],
    titles: tuple[str, str],  # titles of the rows and of the columns
    size: int = style.LARGE,  # width and height in px
) -> go.Figure:
    """Cross-attention between words, with links as marks.

    A click's `customdata` is (source, target) word.
    """
    side = style.pitch(max(len(source), len(target)), size)
    only_possible = sorted(set(possible) - set(sure))
    marks = {"linked by attention": links, "sure link": sure, "possible link": only_possible}
    layout = token_grid(target, source, titles, size, below=LEGEND + _MARKS)
    layout |= plot.legend(10, y=0, yanchor="bottom")
    layout["shapes"] = [
        *(_square(pair, "dot") for pair in only_possible),
        *(_square(pair, "solid") for pair in sorted(sure)),
    ]
    traces = [
        _cells(weights),
        _dots(links, side),
        *_legend_of_squares(sure, only_possible),
        _targets(weights, side) | _hover(source, target, marks),
    ]
    return style.figure(style.spec(traces, layout))


def _cells(weights: np.ndarray) -> Spec:
    """The weights as colours, with their legend."""
    everywhere = np.ones(weights.shape, bool)
    cells = plot.heat(
        levels(weights, everywhere),
        (0, 255),
        style.SCALES_OF["cross"],
        showlegend=False,
        hoverinfo="skip",
    )
    return cells | legend()


def _dots(links: Collection[Pair], side: float) -> Spec:
    """A dot for each link that attention implies, in cells of `side` px."""
    columns = np.array([column for column, _ in sorted(links)], np.float32)
    rows = np.array([row for _, row in sorted(links)], np.float32)
    line = {"width": 1, "color": "rgba(0,0,0,.5)"}
    dot = {"symbol": "circle", "size": 0.42 * side, "color": FOUND, "line": line}
    return plot.points(columns, rows, name="link of attention", marker=dot, **plot.SEEN)


def _legend_of_squares(sure: Collection[Pair], possible: Collection[Pair]) -> list[Spec]:
    """Traces without points: squares are shapes, which have no place in a legend of their own."""
    square = {"symbol": "square-open", "size": 10, "color": _BY_HAND, "line": {"width": 2}}
    names = {"sure link made by hand": sure, "possible link (dotted)": possible}
    return [
        plot.nothing(mode="markers", name=name, marker=square)
        for name, pairs in names.items()
        if pairs
    ]


def _pairs(rows: int, columns: int) -> list[Pair]:
    """The (source, target) words of every cell, row by row."""
    return [(column, row) for row in range(rows) for column in range(columns)]


def _targets(weights: np.ndarray, side: float) -> Spec:
    """What takes pointer and click in every cell, without a hover text."""
    pairs = _pairs(*weights.shape)
    across = np.array([column for column, _ in pairs], np.uint8)
    down = np.array([row for _, row in pairs], np.uint8)
    data = [(column, row, round(float(weights[row, column]), 3)) for column, row in pairs]
    return plot.targets(across, down, data, (), 0.95 * side) | {"hovertext": None}


def _square(pair: Pair, dash: str) -> Spec:
    i, j = pair
    line = {"color": _BY_HAND, "width": 2.5, "dash": dash}
    return plot.rectangle(i - 0.42, i + 0.42, j - 0.42, j + 0.42) | {"line": line}


def _hover(
    source: Sequence[str],
    target: Sequence[str],
    marks: dict[str, Collection[Pair]],
) -> Spec:
    """Hover texts with words, links and weight; in a very large map, without the links."""
    weight = "<br>weight %{customdata[2]:.2f}<extra></extra>"
    if max(len(source), len(target)) > NAMED:
        return {"hovertemplate": f"%{{y}} – %{{x}}{weight}"}
    rows = labels.names(target)
    columns = labels.names(source)
    sets = {name: frozenset(links) for name, links in marks.items()}
    texts = list[str]()
    for column, row in _pairs(len(target), len(source)):
        names = [name for name, links in sets.items() if (column, row) in links]
        links = f" ({', '.join(names)})" if names else ""
        texts.append(labels.escape(f"{rows[row]} – {columns[column]}{links}"))
    return {"text": texts, "hovertemplate": f"%{{text}}{weight}"}
