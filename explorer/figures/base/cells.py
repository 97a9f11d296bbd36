"""Parts of maps whose cells are places to click: unseen targets, axes of names, a colour bar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from explorer.figures.base import labels

Numbers = Sequence[float] | np.ndarray


def hover(note: str) -> str:
    """A note as a hover text: escaped, with its line breaks."""
    return labels.escape(note).replace("\n", "<br>")


def targets(
    x: Numbers,  # centres of the squares
    y: Numbers,  # the same, from top to bottom
    data: Sequence[Any],  # the `customdata` of each
    notes: Sequence[str],  # the hover text of each, as `hover` writes it
    side: float,  # px of a square
) -> dict[str, Any]:
    """Unseen squares that take pointer and click, because Streamlit reports no clicks on a heatmap."""
    unseen = {"marker": {"opacity": 0}}
    return {
        "type": "scatter",
        "mode": "markers",
        "x": x,
        "y": y,
        "customdata": data,
        "hovertext": notes,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {"symbol": "square", "size": side, "opacity": 0, "color": "rgba(128,128,128,1)"},
        "selected": unseen,
        "unselected": unseen,
        "showlegend": False,
    }


def axis(
    texts: Sequence[str],  # the names, escaped
    side: str,  # `left`, `top` or `bottom`; on the left, names go from the top down
    size: int = 10,  # font size in px
    every: int = 1,  # step between the names that are drawn
) -> dict[str, Any]:
    """An axis with a name at each of the positions 0, 1, …."""
    ends = (-0.5, len(texts) - 0.5)
    shown = range(0, len(texts), every)
    return {
        "tickmode": "array",
        "tickvals": list(shown),
        "ticktext": [texts[at] for at in shown],
        "side": side,
        "range": list(reversed(ends) if side == "left" else ends),
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "automargin": False,
        "ticks": "",
        "tickfont": {"size": size},
    }


def colour_bar(
    ticks: dict[float, str],  # the texts of values, escaped
    length: float,  # share of the map's width
    size: int = 10,  # font size in px
    title: str = "",  # what stands above the bar
) -> dict[str, Any]:
    """A thin colour bar that lies under the map."""
    bar = {
        "orientation": "h",
        "x": 0,
        "xanchor": "left",
        "y": 0,
        "yanchor": "top",
        "xpad": 0,
        "ypad": 6,
        "len": length,
        "thickness": 8,
        "outlinewidth": 0,
        "tickvals": list(ticks),
        "ticktext": list(ticks.values()),
        "tickfont": {"size": size},
    }
    return bar | ({"title": {"text": title, "side": "top", "font": {"size": size}}} if title else {})
