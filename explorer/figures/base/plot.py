"""What figures are put together from: axes, traces, texts, frames, places to click, a legend."""

import re
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, style

Spec = style.Spec
Numbers = Sequence[object] | np.ndarray
STILL: Spec = {
    "fixedrange": True,
    "showgrid": False,
    "zeroline": False,
    "automargin": False,
    "ticks": "",
}
"""An axis that a visitor cannot move, and of which nothing but its names is seen."""
HIDDEN = STILL | {"visible": False}
CLICKS: Spec = {"clickmode": "event+select", "hovermode": "closest"}
"""The layout of a figure whose points can be clicked."""
SEEN: Spec = {state: {"marker": {"opacity": 1}} for state in ("selected", "unselected")}
UNSEEN: Spec = {state: {"marker": {"opacity": 0}} for state in ("selected", "unselected")}
"""The marks of a trace stay as they are after a click: seen, or unseen."""
BESIDE: Spec = {"textposition": "middle right", "textfont": {"size": 10}, "cliponaxis": False}
"""Texts at the right of their points."""


def named_axis(
    names: Sequence[str],  # escaped; they stand at the positions 0, 1, …
    size: int = 11,  # of the letters, in px
    every: int = 1,  # step between the names that are drawn
    down: bool = False,  # whether they go from the top down
    edge: float = 0.5,  # what is seen beyond the first and the last
    **more: object,
) -> Spec:
    """An axis of names."""
    places = list(range(0, len(names), every))
    ticks = {
        "tickvals": places,
        "ticktext": [names[place] for place in places],
        "tickfont": {"size": size},
    }
    ends = [-edge, len(names) - 1 + edge]
    if down:
        ends.reverse()
    return {**STILL, "tickmode": "array", **ticks, "range": ends, **more}


def token_axis(
    tokens: Sequence[str],
    size: int = style.SIZE,  # of the map, in px
    count: int | None = None,  # number of cells on the map's longer side, if the cells are square
    room: float = labels.ROOM,  # widest name, in multiples of its font size
    **more: object,
) -> Spec:
    """An axis with tokens at the numeric positions 0, 1, …, so that equal tokens stay separate."""
    if count is None:
        count = len(tokens)
    letters, every = style.lettering(count, size)
    names = [labels.escape(name) for name in labels.names(tokens, room)]
    return {**named_axis(names, letters, every, ticklabelstandoff=3), **more}


def number_axis(title: str = "", size: int = 11, standoff: int | None = 6, **more: object) -> Spec:
    """An axis of numbers with a faint grid; `standoff` are px from its numbers to its title."""
    axis: Spec = {"tickfont": {"size": 10}}
    if title:
        axis["title"] = {"text": title, "font": {"size": size}, "standoff": standoff}
    grid = {"gridcolor": style.GRID, "zeroline": False, "fixedrange": True, "automargin": False}
    return {**axis, **grid, **more}


def noted(notes: Sequence[str]) -> Spec:
    """The hover text of each mark: plain text of one line or several."""
    texts = [labels.escape(note).replace("\n", "<br>") for note in notes]
    return {"hovertext": texts, "hovertemplate": "%{hovertext}<extra></extra>"}


def heat(
    z: np.ndarray, ends: tuple[float, float], colours: Sequence[tuple[float, str]], **more: object
) -> Spec:
    """Cells (rows, columns) in colours."""
    if z.dtype != np.uint8:
        z = np.ascontiguousarray(z, np.float32)
    return {
        "type": "heatmap",
        "z": z,
        "zmin": ends[0],
        "zmax": ends[1],
        "colorscale": colours,
        "showscale": False,
        **more,
    }


def bars(
    lengths: Numbers, colour: str | Sequence[str], across: bool = True, **more: object
) -> Spec:
    """Bars at 0, 1, …: `across` the figure, from the left, or upright.

    A `text` stands at its bar's end.
    """
    places = list(range(len(lengths)))
    bar: Spec = {"type": "bar"}
    if across:
        bar |= {"orientation": "h", "x": lengths, "y": places}
    else:
        bar |= {"x": places, "y": lengths}
    bar["marker"] = {"color": colour}
    if "text" in more:
        bar |= {"textposition": "outside", "cliponaxis": False}
    return bar | more


def points(x: Numbers, y: Numbers, mode: str = "markers", **more: object) -> Spec:
    """Points of a plane as marks, lines or texts; without a `hovertemplate` they tell nothing."""
    marks: Spec = {"type": "scatter", "mode": mode, "x": x, "y": y}
    if more.keys().isdisjoint({"hovertemplate", "hoverinfo"}):
        marks["hoverinfo"] = "skip"
    return marks | more


def nothing(**more: object) -> Spec:
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
    mode: str = "lines",
    **more: object,
) -> Spec:
    """A line."""
    line = {"color": colour, "dash": dash, "width": width}
    drawn = points(x, y, mode, hovertemplate=hover, name=labels.escape(name), line=line)
    return drawn | more


def targets(
    x: Numbers, y: Numbers, data: Sequence[object], notes: Sequence[str], side: float
) -> Spec:
    """Unseen squares of `side` px for pointer and click: Streamlit reports none on heatmaps."""
    look = {"symbol": "square", "size": side, "opacity": 0, "color": "rgba(128,128,128,1)"}
    return points(x, y, customdata=data, marker=look, showlegend=False, **noted(notes), **UNSEEN)


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
    **more: object,
) -> Spec:
    """A frame around cells."""
    line = {"color": colour, "width": width}
    return {"type": "rect", "x0": left, "x1": right, "y0": top, "y1": bottom, "line": line, **more}


def stroke(*, dash: str = "dot", width: float = 1, colour: str = style.LINE, **at: float) -> Spec:
    """A thin line through the whole figure: upright at `x`, or level at `y`."""
    ((axis, place),) = at.items()
    through = {"x": "y", "y": "x"}[axis]
    ends: Spec = {f"{axis}0": place, f"{axis}1": place}
    ends |= {f"{through}0": 0, f"{through}1": 1, f"{through}ref": "paper"}
    return {"type": "line", **ends, "line": {"color": colour, "width": width, "dash": dash}}


def note(text: str, x: float, y: float, size: int = 11, **more: object) -> Spec:
    """A text in a figure, in Plotly's markup."""
    return {"text": text, "x": x, "y": y, "showarrow": False, "font": {"size": size}, **more}


def colour_bar(
    ticks: dict[float, str], length: float, size: int = 10, title: str = "", air: int = 6
) -> Spec:
    """A thin colour bar under a map: escaped texts by value, share of its width, px of `air`."""
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
    bar: Spec = {**place, **look, "tickvals": list(ticks), "ticktext": list(ticks.values())}
    if title:
        bar["title"] = {"text": title, "side": "top", "font": {"size": size}}
    return bar


def legend(size: int = 11, top: bool = True, **more: object) -> Spec:
    """The layout of a level legend: along the upper edge of the figure, or just above the axes."""
    look: Spec = {"orientation": "h", "x": 0, "xanchor": "left", "font": {"size": size}}
    if top:
        look |= {"y": 1, "yanchor": "top", "yref": "container"}
        look |= {"itemclick": False, "itemdoubleclick": False, "traceorder": "normal"}
    else:
        look |= {"y": 1.02, "yanchor": "bottom"}
    return {"showlegend": True, "legend": look | more}


def spec(
    data: list[Spec],
    x: Spec,
    y: Spec,
    height: int,
    around: tuple[int, int, int, int] = (0, 0, 0, 0),
    **more: object,
) -> Spec:
    """A figure as plain values; `around` are px at the left, the top, the right and the bottom."""
    layout = {
        "xaxis": x,
        "yaxis": y,
        "height": height,
        "margin": dict(zip("ltrb", around, strict=True)),
    }
    return style.spec(data, layout | more)


def figure(
    data: list[Spec],
    x: Spec,
    y: Spec,
    height: int,
    around: tuple[int, int, int, int] = (0, 0, 0, 0),
    **more: object,
) -> go.Figure:
    """`spec` as a figure."""
    return style.figure(spec(data, x, y, height, around, **more))


def list_axes(
    names: Sequence[str], ends: tuple[float, float], rows: int | None = None
) -> tuple[Spec, Spec]:
    """The axes of a list with level bars: escaped names from the top down.

    They have the room of so many `rows`.
    """
    across = {**HIDDEN, "range": list(ends)}
    down = named_axis(names, 12, down=True, edge=0.6)
    if rows is not None:
        down["range"] = [rows - 0.4, -0.6]
    return across, down


NUMBER = re.compile(r"\d[.,]\d|\d\s?%")
"""A measured number in a text; whole numbers are places."""
_WHOLE = re.compile(r"[+−-]?\d+")
_ENDS = re.compile(r": Σ = .*")


def quiet(spec: Spec) -> Spec:
    """The figure without written numbers; clicks on its marks still count."""
    layout = dict(spec["layout"])
    if "annotations" in layout:
        layout["annotations"] = [
            note | {"text": _without(note.get("text"))} for note in layout["annotations"]
        ]
    if "title" in layout:
        title = layout["title"]
        layout["title"] = title | {"text": _ENDS.sub("", title.get("text") or "")}
    frames = [_quiet_frame(frame) for frame in spec.get("frames") or ()]
    data = [_quiet_trace(trace) for trace in spec["data"]]
    return {**spec, "data": data, "layout": layout, "frames": frames}


def _quiet_frame(frame: Spec) -> Spec:
    """A frame whose title, if it has one, says no sum."""
    if "title" not in frame.get("layout", {}):
        return frame
    text = _ENDS.sub("", frame["layout"]["title"]["text"])
    return frame | {"layout": {"title": {"text": text}}}


def _quiet_trace(trace: Spec) -> Spec:
    """A trace without written numbers and without hover texts."""
    quiet = {
        name: value
        for name, value in trace.items()
        if name not in ("hovertemplate", "hovertext", "text")
    }
    if trace.get("text") is not None:
        quiet["text"] = _without(trace["text"])
    if quiet.get("hoverinfo") != "skip":
        quiet["hoverinfo"] = "none"
    return quiet


Texts = str | None | Sequence["Texts"]
"""A text of a figure, or those of its marks by row and column."""


def _without(text: Texts) -> Texts:
    """Texts without those that are numbers, or hold a measured one."""
    if text is None:
        return None
    if isinstance(text, str):
        is_number = NUMBER.search(text) or _WHOLE.fullmatch(text)
        return "" if is_number else text
    return [_without(line) for line in text]
