"""Word alignments: links that attention implies, compared with links made by hand."""

from collections.abc import Collection, Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style
from explorer.figures.base.plot import Spec
from explorer.figures.maps.heatmap import LEGEND, legend, levels, token_grid

Pair = tuple[int, int]
FOUND = "#56B4E9"
"""Colour of links that attention implies (Okabe and Ito palette); no attention kind uses this
hue."""
NAMED = 64
"""Most words of a side for which each cell's hover text says which links it has."""
_BY_HAND = "rgba(110,110,110,1)"
_MARKS = 22
"""Px for the legend of the marks."""
_PITCH = 10
"""Least px from one word to the next: every word has room for its label."""


def size_for(words: int, usual: int) -> int:
    """Width in px of a map of `words` words, so that every word gets its label; at least
    `usual`."""
    around = style.margin(usual)
    return max(usual, around["l"] + around["r"] + _PITCH * words)


def alignment_map(
    weights: np.ndarray,  # (target words, source words) from 0 to 1
    source: Sequence[str],  # words of the columns
    target: Sequence[str],  # words of the rows
    links: Collection[
        Pair
    ],  # (source word, target word) links that attention implies, drawn as dots
    sure: Collection[Pair],  # links made by hand, drawn as squares
    possible: Collection[
        Pair
    ],  # links that an alignment may or may not have, drawn as dotted squares
    titles: tuple[str, str],  # titles of the rows and of the columns
    size: int = style.LARGE,  # width and height in px
) -> go.Figure:
    """Cross-attention between words, with links as marks; a click's `customdata` is (source,
    target) word."""
    layout = token_grid(target, source, titles, size, below=LEGEND + _MARKS)
    layout |= plot.legend(10, y=0, yanchor="bottom")
    side = style.pitch(max(len(source), len(target)), size)
    everywhere = np.ones(weights.shape, bool)
    cells = plot.heat(
        levels(weights, everywhere),
        (0, 255),
        style.SCALES_OF["cross"],
        showlegend=False,
        hoverinfo="skip",
    )
    others = sorted(set(possible) - set(sure))
    layout["shapes"] = [_square(pair, "dot") for pair in others] + [
        _square(pair, "solid") for pair in sorted(sure)
    ]
    x, y = (np.array([pair[at] for pair in sorted(links)], np.float32) for at in (0, 1))
    line = {"width": 1, "color": "rgba(0,0,0,.5)"}
    dot = {"symbol": "circle", "size": 0.42 * side, "color": FOUND, "line": line}
    traces = [
        cells | legend(),
        plot.points(x, y, name="link of attention", marker=dot, **plot.SEEN),
    ]
    # squares are shapes, which have no place in a legend: traces without points stand there for
    # them
    square = {"symbol": "square-open", "size": 10, "color": _BY_HAND, "line": {"width": 2}}
    for pairs, name in ((sure, "sure link made by hand"), (others, "possible link (dotted)")):
        traces += [plot.nothing(mode="markers", name=name, marker=square)] if pairs else []
    pairs = [(i, j) for j in range(len(target)) for i in range(len(source))]
    across, down = (np.array([pair[at] for pair in pairs], np.uint8) for at in (0, 1))
    data = [(i, j, round(float(weights[j, i]), 3)) for i, j in pairs]
    marks = {"linked by attention": links, "sure link": sure, "possible link": others}
    told = {"hovertext": None} | _hover(source, target, marks, pairs)
    traces.append(plot.targets(across, down, data, (), 0.95 * side) | told)
    return style.figure(style.spec(traces, layout))


def _square(pair: Pair, dash: str) -> Spec:
    i, j = pair
    line = {"color": _BY_HAND, "width": 2.5, "dash": dash}
    return plot.rectangle(i - 0.42, i + 0.42, j - 0.42, j + 0.42) | {"line": line}


def _hover(
    source: Sequence[str],
    target: Sequence[str],
    marks: dict[str, Collection[Pair]],
    pairs: Sequence[Pair],
) -> Spec:
    """Hover texts with words, links and weight; in a very large map, without the links."""
    weight = "<br>weight %{customdata[2]:.2f}<extra></extra>"
    if max(len(source), len(target)) > NAMED:
        return {"hovertemplate": f"%{{y}} – %{{x}}{weight}"}
    rows = labels.names(target)
    columns = labels.names(source)
    sets = {name: frozenset(of) for name, of in marks.items()}
    texts = list[str]()
    for i, j in pairs:
        told = [name for name, of in sets.items() if (i, j) in of]
        links = f" ({', '.join(told)})" if told else ""
        texts.append(labels.escape(f"{rows[j]} – {columns[i]}{links}"))
    return {"text": texts, "hovertemplate": f"%{{text}}{weight}"}
