"""One head's attention as a map: rows are queries, columns are keys, masked cells are hatched."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style
from explorer.figures.base.captions import cell_names, hidden, named, quantity, row_sums
from explorer.figures.base.plot import Spec
from transformer.view import HeadMap

LARGEST = 64
_SUMS = 76
MASKED = " (masked)"
LATER = " (masked: this row has not read it yet)"
"""What a hover text adds to a masked cell, and to one right of a masked decoder's diagonal."""
_SCORE = " · score before the mask %{customdata[1]:.2f}"
_LENGTH = " · length %{customdata[1]:.3f}"


def levels(weights: np.ndarray, mask: np.ndarray, scale: str = "linear") -> np.ndarray:
    """Turns weights from 0 to 1 into colour levels: 0 for masked cells, and for what is no number,
    1 to 255 for the others; below 0 is as 0, above 1 as 1."""
    visible = 1 + np.rint(254 * style.strength(weights, scale))
    return np.where(mask & ~np.isnan(visible), visible, 0).astype(np.uint8)


def pool(values: np.ndarray, limit: int) -> tuple[np.ndarray, int, int]:
    """Maxima over blocks, no side longer than `limit`; and the rows and columns of a block."""
    rows, columns = (-(-length // limit) for length in values.shape)
    starts = [
        np.arange(0, length, step)
        for length, step in zip(values.shape, (rows, columns), strict=True)
    ]
    pooled = np.maximum.reduceat(np.maximum.reduceat(values, starts[0], axis=0), starts[1], axis=1)
    return pooled, rows, columns


def hatching(mask: np.ndarray) -> list[Spec]:
    """All masked cells as one hatched polygon, for a mask (queries, keys); no trace without any."""
    x: list[float | None] = []
    y: list[float | None] = []
    for top, bottom, left, right in masked_blocks(mask):
        x += [left - 0.5, right - 0.5, right - 0.5, left - 0.5, left - 0.5, None]
        y += [top - 0.5, top - 0.5, bottom - 0.5, bottom - 0.5, top - 0.5, None]
    if not x:
        return []
    look: Spec = {
        "fill": "toself",
        "fillcolor": "rgba(0,0,0,0)",
        "fillpattern": style.HATCH,
        "line": {"width": 0},
    }
    return [plot.points(x[:-1], y[:-1], "lines", **look)]


def masked_blocks(mask: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Masked cells as rectangles (top, bottom, left, right); equal runs of rows are joined."""
    blocks: list[tuple[int, int, int, int]] = []
    open_runs: dict[tuple[int, int], int] = {}
    masked = [*map(_masked_runs, mask), set[tuple[int, int]]()]  # a last row closes all runs
    for row, runs in enumerate(masked):
        for run in [run for run in open_runs if run not in runs]:
            blocks.append((open_runs.pop(run), row, *run))
        for run in runs:
            open_runs.setdefault(run, row)
    return blocks


def _masked_runs(visible: np.ndarray) -> set[tuple[int, int]]:
    """The runs of masked cells of a row, each as its first column and the one after its last."""
    changes = np.flatnonzero(np.diff(np.concatenate(([True], visible, [True]))))
    return {(int(left), int(right)) for left, right in changes.reshape(-1, 2)}


def heatmap(
    view: HeadMap, size: int = style.SIZE, scale: str = "linear", sums: bool = False
) -> go.Figure:
    """One head: how much each query (row) attends to each key (column), on one scale for all heads.

    The hover text gives weight and score; `sums` writes each row's. ValueError beyond 64 x 64
    cells.
    """
    spec = heatmap_spec(view, size, scale, sums)
    cells = spec["data"][0]
    layout = spec["layout"]
    cells |= legend(scale, quantity(view).share) | {
        "text": cell_texts(**layout["meta"], mask=view.mask)
    }
    layout["height"] += LEGEND
    layout["margin"]["b"] += LEGEND
    return style.figure(spec)


def heatmap_spec(
    view: HeadMap,
    size: int = style.SIZE,
    scale: str = "linear",
    sums: bool = False,
    most: int = LARGEST,
) -> Spec:
    """`heatmap` as plain values, without legend.

    The linked view makes hover texts from `layout.meta`.
    """
    check(view, most)
    cells = plot.heat(levels(view.weights, view.mask, scale), (0, 255), style.SCALES_OF[view.kind])
    traces = [cells | _hover(view), *hatching(view.mask)]
    layout = token_grid(row_tokens(view), view.key_tokens, axis_titles(view), size)
    layout["meta"] = dict(zip(("rows", "columns"), cell_names(view), strict=True))
    if sums and quantity(view).sums:
        traces.append(_row_sums(layout, view))
    return style.spec(traces, layout)


def _hover(view: HeadMap) -> Spec:
    """The hover text of every cell, with the numbers that it gives."""
    numbers = [view.weights]
    hover = quantity(view).hover
    if view.measured is not None:
        numbers.append(np.nan_to_num(view.measured))
        if view.measure == "carried":
            hover += _LENGTH
    elif view.scores is not None and view.measure == "weight":
        numbers.append(view.scores)
        hover += _SCORE
    return {
        "customdata": np.stack(numbers, axis=-1).astype(np.float32),
        "hovertemplate": f"%{{text}}<br>{hover}<extra></extra>",
    }


def _row_sums(layout: Spec, view: HeadMap) -> Spec:
    """Writes its sum at the end of every row; returns the trace that it needs."""
    if hidden(view).any():
        return row_ends(layout, row_sums(view), "Σ + hidden", _SUMS)
    return row_ends(layout, row_sums(view), "Σ", 36)


def legend(scale: str = "linear", share: str = "weight") -> Spec:
    """A colour bar with numbers under a map of weights; it takes `LEGEND` px of height."""
    ticks = {1 + 254 * end: text for text, end in style.stops(scale)}
    bar = plot.colour_bar(ticks, 0.5, 9, f"{share}, {style.SCALE_NAMES[scale]}", air=4)
    return {"showscale": True, "colorbar": bar}


def cell_texts(
    rows: Sequence[str], columns: Sequence[str], mask: np.ndarray, other: str = MASKED
) -> list[list[str]]:
    """The names of every cell, escaped; `other` ends those of cells outside the mask."""
    endings = np.where(mask, "", other)
    return [
        [
            labels.escape(f"{row}, {column}{ending}")
            for column, ending in zip(columns, row_endings, strict=True)
        ]
        for row, row_endings in zip(rows, endings, strict=True)
    ]


def check(view: HeadMap, most: int = LARGEST) -> None:
    shape = view.weights.shape
    if max(shape) > most:
        raise ValueError(
            f"A map shows at most {most} x {most} cells, not {shape[0]} x {shape[1]}; ask for a "
            "window."
        )
    if shape != (len(view.query_tokens), len(view.key_tokens)):
        raise ValueError(
            f"The map has {shape[0]} x {shape[1]} cells, but labels for "
            f"{len(view.query_tokens)} x {len(view.key_tokens)}."
        )


def row_tokens(view: HeadMap) -> tuple[str, ...]:
    """The tokens that label the rows: those predicted, as is usual in cross-attention, or read."""
    if named(view) == "predicted" and view.predicted_tokens is not None:
        return view.predicted_tokens
    return view.query_tokens


def axis_titles(view: HeadMap) -> tuple[str, str]:
    """Axis titles: the source of the queries (rows), and that of the keys and values (columns)."""
    layer = f"layer {labels.count(view.layer)}"
    if view.title:
        return f"queries, {layer}", f"keys, {layer}"
    if view.kind == "encoder":
        return f"queries: encoder, {layer}", f"keys and values: encoder, {layer}"
    queries = f"queries: decoder, {layer} (token {named(view)})"
    if view.kind == "decoder":
        return queries, f"keys and values: decoder, {layer} (token read)"
    return queries, "keys and values: encoder output"


LEGEND = 34
"""Px of the legend under a map."""
_EDGE = 3
"""Px between a title and the edge of the figure."""
_LETTERS = 10
"""Font size of a title in px; a title longer than the map starts before the map."""


def token_grid(
    rows: Sequence[str],  # tokens from top to bottom
    columns: Sequence[str],  # tokens from left to right
    titles: tuple[str, str],  # titles of the rows and of the columns
    size: int = style.SIZE,  # width and height in px
    # widest label, in multiples of the font size; labels wider than usual enlarge the map
    room: float = labels.ROOM,
    below: int = 0,  # px for a legend under the map, which make the figure higher
) -> Spec:
    """The layout of a map."""
    longest = max(len(rows), len(columns))
    across = plot.token_axis(columns, size, longest, room)
    across |= {"side": "top", "tickangle": -90, "constrain": "domain", "constraintoward": "left"}
    down = plot.token_axis(rows, size, longest, room)
    down |= {"range": [len(rows) - 0.5, -0.5], "scaleanchor": "x"}
    down |= {"constrain": "domain", "constraintoward": "top"}
    more = round((room - labels.ROOM) * style.lettering(longest, size)[0])
    around = style.margin(size)
    left = around["l"] + more
    top = around["t"] + more
    corner: Spec = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "top"}
    spare = [min(0, size - around["l"] - _LETTERS * labels.width(title)) for title in titles]
    beside = {"xshift": _EDGE - left, "yshift": -spare[0], "textangle": -90}
    return {
        "xaxis": across,
        "yaxis": down,
        "width": size + more,
        "height": size + more + below,
        "margin": {
            "l": left,
            "t": top,
            "r": around["r"],
            "b": around["b"] + below,
            "autoexpand": False,
        },
        "annotations": [
            plot.note(titles[1], 0, 1, _LETTERS, **corner, xshift=spare[1], yshift=top - _EDGE),
            plot.note(titles[0], 0, 1, _LETTERS, **corner, **beside),
        ],
    }


def row_ends(layout: Spec, texts: Sequence[str], heading: str, right: int) -> Spec:
    """Writes a text at the end of every row of a map, in `right` px; returns the trace it needs."""
    down = layout["yaxis"]
    ends = {"overlaying": "y", "side": "right", "ticktext": [texts[i] for i in down["tickvals"]]}
    corner: Spec = {
        "xref": "x domain",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "bottom",
        "xshift": 4,
    }
    layout["yaxis2"] = down | ends
    layout["margin"]["r"] = right
    layout["annotations"].append(plot.note(heading, 1, 1, 9, **corner))
    return plot.nothing(yaxis="y2", x=[0], hoverinfo="skip")


def framed(figure: go.Figure, row: int) -> go.Figure:
    """Frames a row of a map, counted from 0."""
    columns = figure.data[0].z.shape[1]
    return figure.add_shape(plot.rectangle(-0.5, columns - 0.5, row - 0.5, row + 0.5))


def row_frame(figure: go.Figure, row: int) -> dict[str, float]:
    """Px and numbers of cells that place a frame over a row of a map, from 0, at any width."""
    around = figure.layout.margin
    rows, columns = figure.data[0].z.shape
    high = figure.layout.height - around.t - around.b
    sides = {"left": around.l, "top": around.t, "beside": around.l + around.r, "high": high}
    return {**sides, "rows": rows, "columns": columns, "row": row}


def lowered(figure: go.Figure, by: int) -> go.Figure:
    """Moves the cells of a map down by `by` px, level with those beside it; the title stays."""
    figure.layout.height += by
    figure.layout.margin.t += by
    figure.layout.annotations[0].yshift += by
    return figure
