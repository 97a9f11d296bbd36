"""What every figure is put together from: axes, traces, texts, frames, places to click, a
legend."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, style

Spec = dict[str, Any]
Numbers = Sequence[Any] | np.ndarray
STILL: Spec = {
    "fixedrange": True,
    "showgrid": False,
    "zeroline": False,
    "automargin": False,
    "ticks": "",
}
"""An axis that a visitor cannot move, and of which nothing but its names is seen."""
HIDDEN = STILL | {"visible": False}
CLICKS = {"clickmode": "event+select", "hovermode": "closest"}
"""The layout of a figure whose points can be clicked."""
SEEN: Spec = {each: {"marker": {"opacity": 1}} for each in ("selected", "unselected")}
UNSEEN: Spec = {each: {"marker": {"opacity": 0}} for each in ("selected", "unselected")}
"""The marks of a trace stay as they are after a click: seen, or unseen."""
BESIDE: Spec = {"textposition": "middle right", "textfont": {"size": 10}, "cliponaxis": False}
"""Texts at the right of their points."""


def named_axis(
    names: Sequence[str],  # escaped; they stand at the positions 0, 1, …
    size: int = 11,  # of the letters, in px
    every: int = 1,  # step between the names that are drawn
    down: bool = False,  # whether they go from the top down
    edge: float = 0.5,  # what is seen beyond the first and the last
    **more: Any,
) -> Spec:
    """An axis of names."""
    shown = range(0, len(names), every)
    ends = [-edge, len(names) - 1 + edge]
    ticks = {
        "tickvals": list(shown),
        "ticktext": [names[at] for at in shown],
        "tickfont": {"size": size},
    }
    return {**STILL, "tickmode": "array", **ticks, "range": ends[::-1] if down else ends, **more}


def token_axis(
    tokens: Sequence[str],
    size: int = style.SIZE,  # of the map, in px
    count: int | None = None,  # number of cells on the map's longer side, if the cells are square
    room: float = labels.ROOM,  # widest name, in multiples of its font size
    **more: Any,
) -> Spec:
    """An axis with tokens at the numeric positions 0, 1, …, so that equal tokens stay separate."""
    count = len(tokens) if count is None else count
    letters, every = style.lettering(count, size)
    names = [labels.escape(name) for name in labels.names(tokens, room)]
    return named_axis(names, letters, every, ticklabelstandoff=3, **more)


def number_axis(title: str = "", size: int = 11, standoff: int | None = 6, **more: Any) -> Spec:
    """An axis of numbers with a faint grid; `standoff` are px from its numbers to its title."""
    text = {"title": {"text": title, "font": {"size": size}, "standoff": standoff}} if title else {}
    grid = {"gridcolor": style.GRID, "zeroline": False, "fixedrange": True, "automargin": False}
    return {"tickfont": {"size": 10}, **text, **grid, **more}


def noted(notes: Sequence[str]) -> Spec:
    """The hover text of each mark: plain text of one line or several."""
    texts = [labels.escape(note).replace("\n", "<br>") for note in notes]
    return {"hovertext": texts, "hovertemplate": "%{hovertext}<extra></extra>"}


def heat(
    z: np.ndarray, ends: tuple[float, float], colours: Sequence[tuple[float, str]], **more: Any
) -> Spec:
    """Cells (rows, columns) in colours."""
    return {
        "type": "heatmap",
        "z": z if z.dtype == np.uint8 else np.ascontiguousarray(z, np.float32),
        "zmin": ends[0],
        "zmax": ends[1],
        "colorscale": colours,
        "showscale": False,
        **more,
    }


def bars(lengths: Numbers, colour: str | Sequence[str], across: bool = True, **more: Any) -> Spec:
    """Bars at 0, 1, …: `across` the figure, from the left, or upright; a `text` stands at its bar's
    end."""
    places = list(range(len(lengths)))
    values = lengths
    axes = {"orientation": "h", "x": values, "y": places} if across else {"x": places, "y": values}
    ends = {"textposition": "outside", "cliponaxis": False} if "text" in more else {}
    return {"type": "bar", **axes, "marker": {"color": colour}, **ends, **more}


def points(x: Numbers, y: Numbers, mode: str = "markers", **more: Any) -> Spec:
    """Points of a plane as marks, lines or texts; without a `hovertemplate` they tell nothing."""
    told = {} if {"hovertemplate", "hoverinfo"} & set(more) else {"hoverinfo": "skip"}
    return {"type": "scatter", "mode": mode, "x": x, "y": y, **told, **more}


def nothing(**more: Any) -> Spec:
    """A trace without points, for an axis or a legend that needs one."""
    return {"type": "scatter", "x": [None], "y": [None], **more}


def curve(
    name: str,  # as the legend calls it, in plain text
    x: Numbers,
    y: Numbers,
    hover: str,  # Plotly's text of a place
    colour: str,
    dash: str = "solid",
    width: float = 2,
    **more: Any,
) -> Spec:
    """A line."""
    look = {"name": labels.escape(name), "line": {"color": colour, "dash": dash, "width": width}}
    return points(x, y, **{"mode": "lines", "hovertemplate": hover, **look, **more})


def targets(
    x: Numbers, y: Numbers, data: Sequence[Any], notes: Sequence[str], side: float, **more: Any
) -> Spec:
    """Unseen squares of `side` px that take pointer and click; Streamlit reports no clicks on
    heatmaps."""
    look = {"symbol": "square", "size": side, "opacity": 0, "color": "rgba(128,128,128,1)"}
    return points(
        x, y, customdata=data, marker=look, showlegend=False, **noted(notes), **UNSEEN, **more
    )


def error(below: Numbers, above: Numbers) -> Spec:
    """The bars of intervals that reach so far below their values and above them."""
    ends = {"array": above, "arrayminus": below}
    return {"type": "data", "symmetric": False, "thickness": 1.2, "width": 3, **ends}


def rectangle(
    left: float,
    right: float,
    top: float,
    bottom: float,
    colour: str = style.FRAME,
    width: float = 2,
    **more: Any,
) -> Spec:
    """A frame around cells."""
    line = {"color": colour, "width": width}
    return {"type": "rect", "x0": left, "x1": right, "y0": top, "y1": bottom, "line": line, **more}


def stroke(*, dash: str = "dot", width: float = 1, colour: str = style.LINE, **at: float) -> Spec:
    """A thin line through the whole figure: upright at `x`, or level at `y`."""
    ((axis, place),) = at.items()
    ends: Spec = {f"{axis}0": place, f"{axis}1": place}
    ends |= (
        {"y0": 0, "y1": 1, "yref": "paper"} if axis == "x" else {"x0": 0, "x1": 1, "xref": "paper"}
    )
    return {"type": "line", **ends, "line": {"color": colour, "width": width, "dash": dash}}


def note(text: str, x: float, y: float, size: int = 11, **more: Any) -> Spec:
    """A text in a figure, in Plotly's markup."""
    return {"text": text, "x": x, "y": y, "showarrow": False, "font": {"size": size}, **more}


def colour_bar(
    ticks: dict[float, str], length: float, size: int = 10, title: str = "", air: int = 6
) -> Spec:
    """A thin colour bar under a map: escaped texts by value, share of the map's width, px of
    `air`."""
    place = {
        "orientation": "h",
        "x": 0,
        "xanchor": "left",
        "y": 0,
        "yanchor": "top",
        "xpad": 0,
        "ypad": air,
    }
    look = {"len": length, "thickness": 8, "outlinewidth": 0, "tickfont": {"size": size}}
    text = {"title": {"text": title, "side": "top", "font": {"size": size}}} if title else {}
    return {**place, **look, "tickvals": list(ticks), "ticktext": list(ticks.values()), **text}


def legend(size: int = 11, top: bool = True, **more: Any) -> Spec:
    """The layout of a level legend: along the upper edge of the figure, or just above the axes."""
    place = (
        {"y": 1, "yanchor": "top", "yref": "container"} if top else {"y": 1.02, "yanchor": "bottom"}
    )
    quiet = {"itemclick": False, "itemdoubleclick": False, "traceorder": "normal"} if top else {}
    look = {
        "orientation": "h",
        "x": 0,
        "xanchor": "left",
        "font": {"size": size},
        **place,
        **quiet,
        **more,
    }
    return {"showlegend": True, "legend": look}


def spec(
    data: list[Spec],
    x: Spec,
    y: Spec,
    height: int,
    around: tuple[int, int, int, int] = (0, 0, 0, 0),
    **more: Any,
) -> Spec:
    """A figure as plain values; `around` are px on the left, at the top, on the right, at the
    bottom."""
    frames = more.pop("frames", None)
    layout = {
        "xaxis": x,
        "yaxis": y,
        "height": height,
        "margin": dict(zip("ltrb", around, strict=True)),
    }
    return style.spec(data, layout | more, frames)


def figure(
    data: list[Spec],
    x: Spec,
    y: Spec,
    height: int,
    around: tuple[int, int, int, int] = (0, 0, 0, 0),
    **more: Any,
) -> go.Figure:
    """`spec` as a figure."""
    return style.figure(spec(data, x, y, height, around, **more))


def list_axes(
    names: Sequence[str], ends: tuple[float, float], rows: int | None = None
) -> tuple[Spec, Spec]:
    """The axes of a list with level bars: escaped names from the top down, in the room of so many
    `rows`."""
    down = named_axis(names, 12, down=True, edge=0.6)
    return {**HIDDEN, "range": list(ends)}, down if rows is None else down | {
        "range": [rows - 0.4, -0.6]
    }


NUMBER = re.compile(r"\d[.,]\d|\d\s?%")
"""A measured number in a text; whole numbers are places."""
_WHOLE = re.compile(r"[+−-]?\d+")
_ENDS = re.compile(r": Σ = .*")


def quiet(spec: dict[str, Any]) -> dict[str, Any]:
    """The figure without written numbers; clicks on its marks still count."""
    layout = dict(spec["layout"])
    if "annotations" in layout:
        layout["annotations"] = [
            each | {"text": _without(each.get("text"))} for each in layout["annotations"]
        ]
    if "title" in layout:
        layout["title"] = layout["title"] | {
            "text": _ENDS.sub("", layout["title"].get("text") or "")
        }
    frames = [
        frame | {"layout": {"title": {"text": _ENDS.sub("", frame["layout"]["title"]["text"])}}}
        if "title" in frame.get("layout", {})
        else frame
        for frame in spec.get("frames") or ()
    ]
    data = []
    for trace in spec["data"]:
        left = {
            name: trace[name]
            for name in trace
            if name not in ("hovertemplate", "hovertext", "text")
        }
        hover = {} if left.get("hoverinfo") == "skip" else {"hoverinfo": "none"}
        data.append(
            left
            | ({"text": _without(trace["text"])} if trace.get("text") is not None else {})
            | hover
        )
    return {**spec, "data": data, "layout": layout, "frames": frames}


def _without(text: Any) -> Any:
    if isinstance(text, str):
        return "" if NUMBER.search(text) or _WHOLE.fullmatch(text) else text
    return text if text is None else [_without(each) for each in text]
