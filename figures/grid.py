"""The frame of every map between two lists of tokens: square cells, labels on top and at the left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from figures import labels, style


def token_grid(
    rows: Sequence[str],
    columns: Sequence[str],
    titles: tuple[str, str],
    size: int = style.SIZE,
    margin: dict[str, int] = style.MARGIN,
) -> dict[str, Any]:
    """The layout of a map.

    Args:
        rows: tokens from top to bottom.
        columns: tokens from left to right.
        titles: what the rows are, and what the columns are.
        size: width and height in px.
        margin: room for labels and titles, in px.
    """
    across = style.token_axis(labels.ticks(columns), size)
    down = style.token_axis(labels.ticks(rows), size)
    across |= {"side": "top", "tickangle": -90, "constrain": "domain", "constraintoward": "left"}
    down |= {"range": [len(rows) - 0.5, -0.5], "scaleanchor": "x"}
    down |= {"constrain": "domain", "constraintoward": "top"}
    margin = style.margin(size)
    left, top = {"x": 0, "xanchor": "left"}, {"y": 1, "yanchor": "top"}
    return {
        "xaxis": across,
        "yaxis": down,
        "width": size,
        "height": size,
        "margin": margin,
        "dragmode": False,
        "annotations": [
            _title(titles[1], **left, **top, yshift=margin["t"] - 6),
            _title(titles[0], **left, **top, xshift=6 - margin["l"], textangle=-90),
        ],
    }


def _title(text: str, **place: object) -> dict[str, object]:
    return {"text": text, "xref": "paper", "yref": "paper", "showarrow": False, "font": {"size": 10}, **place}
