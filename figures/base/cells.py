"""Parts of maps whose cells are places to click: unseen targets, axes of names, a colour bar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from figures.base import labels

Numbers = Sequence[float] | np.ndarray


def hover(note: str) -> str:
    """A note as a hover text: escaped, with its line breaks."""
    return labels.escape(note).replace("\n", "<br>")


def targets(x: Numbers, y: Numbers, data: Sequence[Any], notes: Sequence[str], side: float) -> dict[str, Any]:
    """Unseen squares that take the pointer and the click, because Streamlit reports no clicks on a heatmap.

    Args:
        x: centres of the squares.
        y: the same, from top to bottom.
        data: the `customdata` of each.
        notes: the hover text of each, as `hover` writes it.
        side: px of a square.
    """
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


def axis(texts: Sequence[str], side: str, size: int = 10, every: int = 1) -> dict[str, Any]:
    """An axis with a name at each of the positions 0, 1, ….

    Args:
        texts: the names, escaped.
        side: `left`, `top` or `bottom`; on the left, names go from the top down.
        size: font size in px.
        every: step between the names that are drawn.
    """
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


def colour_bar(ticks: dict[float, str], length: float, size: int = 10, title: str = "") -> dict[str, Any]:
    """A thin colour bar that lies under the map.

    Args:
        ticks: the texts of values, escaped.
        length: share of the map's width.
        size: font size in px.
        title: what stands above the bar.
    """
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
