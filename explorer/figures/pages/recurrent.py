"""The page Recurrent: predicted centres on a map, and the ways of information in a sentence."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style
from explorer.figures.base.plot import Spec

RECURRENT, ATTENTION = style.NEGATIVE, style.POSITIVE
"""Colours of the two ways through a sentence; neither is the hue of a kind of attention."""
_UPPER, _LOWER = 2.0, 0.0
"""The heights of the recurrent network's tokens and of self-attention's."""
_MOST_PLACES = 60
"""The most tokens of which each has a label of its own."""


def with_centres(figure: go.Figure, centres: np.ndarray, first: int, keys: int) -> go.Figure:
    """Marks on a map where each query of local attention looks."""
    places = np.asarray(centres, np.float32) - first
    inside = (places >= -0.5) & (places <= keys - 0.5)
    marks = plot.points(
        np.where(inside, places, np.nan),
        np.arange(len(places)),
        marker={"symbol": "line-ns", "size": 13, "line": {"width": 2.5, "color": style.POSITIVE}},
        customdata=np.asarray(centres, np.float32) + 1,
        hovertemplate="predicted centre: position %{customdata:.1f}<extra></extra>",
    )
    return figure.add_trace(marks)


def paths(tokens: Sequence[str], ends: tuple[int, int]) -> go.Figure:
    """The way of information from one token to another: through every state, or directly."""
    start, stop = sorted(ends)
    names = [labels.escape(name) for name in labels.names(tokens, 5.5)]
    size = 12 if len(tokens) <= 24 else 9
    every = -(-len(tokens) // _MOST_PLACES)
    corner: Spec = {"xref": "paper", "yref": "y", "xanchor": "left", "yanchor": "top"}
    texts = [
        plot.note(_steps(stop - start), 0, 3.2, 13, **corner),
        plot.note("self-attention: 1 step", 0, 1.42, 13, **corner),
    ]
    return plot.figure(
        [
            _tokens(names, _UPPER),
            _tokens(names, _LOWER),
            _way(list(range(start, stop + 1)), _UPPER, RECURRENT),
            _way([start, stop], _LOWER, ATTENTION),
        ],
        plot.named_axis(names, size, every, edge=0.6, tickangle=-60),
        {"range": [-0.55, 3.35], "visible": False, "fixedrange": True},
        300,
        (8, 8, 8, 74),
        annotations=[*_arrows(len(tokens), start, stop), *texts],
        shapes=_arc(start, stop),
    )


def _tokens(names: Sequence[str], y: float) -> Spec:
    """A faint circle for each token, at a height."""
    return plot.points(
        list(range(len(names))),
        [y] * len(names),
        marker={
            "size": 9,
            "color": "rgba(0,0,0,0)",
            "line": {"width": 1.5, "color": style.NEUTRAL},
        },
        customdata=names,
        hovertemplate="%{customdata}<extra></extra>",
    )


def _way(places: list[int], y: float, colour: str) -> Spec:
    """The tokens through which information goes; the first and the last are large."""
    sizes = [9] * len(places)
    sizes[0] = sizes[-1] = 13
    return plot.points(places, [y] * len(places), marker={"size": sizes, "color": colour})


def _steps(count: int) -> str:
    """How many steps the recurrent network takes."""
    if not count:
        return "recurrent: no step"
    return f"recurrent: {labels.counted(count, 'step')}, one after the other"


def _arrows(count: int, start: int, stop: int) -> list[Spec]:
    """From one state of the recurrent network to the next; those on the way have its colour."""
    arrow: Spec = {
        "y": _UPPER,
        "ay": _UPPER,
        "axref": "x",
        "ayref": "y",
        "xref": "x",
        "yref": "y",
        "text": "",
        "showarrow": True,
        "arrowhead": 2,
        "arrowsize": 0.9,
        "arrowcolor": style.NEUTRAL,
        "arrowwidth": 1.1,
    }
    arrows = []
    for i in range(count - 1):
        arrows.append({"x": i + 0.88, "ax": i + 0.12, **arrow})
        if start <= i < stop:
            arrows[-1] |= {"arrowcolor": RECURRENT, "arrowwidth": 2.2}
    return arrows


def _arc(start: int, stop: int) -> list[Spec]:
    """The way of self-attention from one token to another; none from a token to itself."""
    if start == stop:
        return []
    path = f"M {start} 0.12 Q {(start + stop) / 2} 1.9 {stop} 0.12"
    return [{"type": "path", "path": path, "line": {"color": ATTENTION, "width": 2.5}}]
