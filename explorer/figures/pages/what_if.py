"""Effect of a change: difference of two maps, Δ log p by step, the same change at other heads."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style
from explorer.figures.base.plot import Spec
from explorer.figures.maps.heatmap import (
    LARGEST,
    LEGEND,
    cell_texts,
    hatching,
    row_ends,
    token_grid,
)

_ROW = 24
_STRIP = 0.36
"""Distance of dots above and below the middle of their strip; the bar is half as high."""


@dataclass(frozen=True)
class StepMove:
    """Outcome of one step."""

    token: str  # the token that the run without the changes wrote
    delta: float  # the change of its log-probability, in nats; NaN if it is not known
    note: str  # the hover text


def delta_bars(steps: Sequence[StepMove], parting: int | None) -> go.Figure:
    """Bars of Δ log p, one row per step; a line under the step (from 0) at which the runs part."""
    lengths = [0.0 if math.isnan(step.delta) else step.delta for step in steps]
    texts = [labels.moved(step.delta) for step in steps]
    names = [labels.short(step.token) for step in steps]
    notes = plot.noted([step.note for step in steps])
    rows = {"tickvals": list(range(len(steps))), "ticktext": names, "fixedrange": True}
    lines = []
    if parting is not None and parting < len(steps):
        lines.append(plot.stroke(y=parting + 0.5, width=1.5))
    return plot.figure(
        [plot.bars(lengths, style.sign_hues(lengths), text=texts, **notes)],
        _nats("Δ log p, nats", lengths),
        rows | {"range": [len(steps) - 0.5, -0.5]},
        40 + _ROW * len(steps),
        (110, 8, 20, 32),
        bargap=0.3,
        shapes=lines,
    )


def _nats(title: str, values: Sequence[float]) -> Spec:
    """An axis for differences of log-probabilities, with room for a number at the longest bar."""
    most = 1.3 * max(0.1, *map(abs, values))
    return {
        "range": [-most, most],
        "fixedrange": True,
        "title": {"text": title, "font": {"size": 10}},
        "gridcolor": style.GRID,
        "zerolinecolor": "rgba(128,128,128,.7)",
    }


def control_strip(effect: float, others: Sequence[float], notes: Sequence[str]) -> go.Figure:
    """The effect of a change in nats as a bar, over grey dots for the same at other heads."""
    y = [_STRIP * place for place in np.linspace(-1, 1, len(others) + 2)[1:-1]]
    grey = {"size": 9, "color": style.NEUTRAL, "line": {"width": 1, "color": style.LINE}}
    return plot.figure(
        [
            plot.bars(
                [effect], style.sign_hues([effect])[0], width=[_STRIP], **plot.noted(notes[:1])
            ),
            plot.points(list(others), y, marker=grey, **plot.noted(notes[1:])),
        ],
        _nats("Δ log p of the whole output, nats", [effect, *others]),
        {"range": [-0.5, 0.5], "visible": False, "fixedrange": True},
        96,
        (20, 4, 20, 34),
        hovermode="closest",
    )


Pair = tuple[int | None, int | None]
_ENDS = 40
ROOM = 8.5
"""Widest label, in multiples of its font size; a label may hold names from both sides."""


def scale_end(most: float) -> float:
    """The end of a diverging scale: the next tenth above the largest difference, at most 1."""
    return min(max(math.ceil(10 * most - 1e-6) / 10, 0.1), 1.0)


def merged_names(first: Sequence[str], second: Sequence[str], pairs: Sequence[Pair]) -> list[str]:
    """Names of aligned tokens: `A: …` or `B: …` if one side lacks it, both names if they differ."""
    a = labels.pieces(first)
    b = labels.pieces(second)
    names = list[str]()
    for i, j in pairs:
        if i is not None and j is not None:
            names.append(a[i] if a[i] == b[j] else f"{a[i]} | {b[j]}")
        elif i is not None:
            names.append(f"A: {a[i]}")
        elif j is not None:
            names.append(f"B: {b[j]}")
        else:
            names.append("")
    return names


def difference_map(
    first: np.ndarray,  # (rows, columns) weights of side A
    second: np.ndarray,  # the same for side B
    compared: np.ndarray,  # (rows, columns), True for cells whose difference means something
    rows: Sequence[str],  # names of the rows
    columns: Sequence[str],  # names of the columns
    # (rows,) total variation distance of each row, NaN if it has none; written at its end
    distances: np.ndarray,
    end: float,  # the scale runs from −end to end
    titles: tuple[str, str],  # titles of the rows and of the columns
    # width and height in px of a map with usual labels; longer names and distances enlarge it
    size: int = style.LARGE,
    room: float = ROOM,  # widest label, in multiples of its font size
) -> go.Figure:
    """Draws first − second; cells not compared are hatched. ValueError beyond 64 x 64 cells."""
    if max(compared.shape) > LARGEST:
        raise ValueError(f"A map shows at most {LARGEST} x {LARGEST} cells: ask for a window.")
    ticks = {-end: f"−{end:.1f}", 0.0: "0", end: f"{end:.1f}"}
    keys = [f"key {column}" for column in columns]
    cells = plot.heat(np.where(compared, first - second, 0), (-end, end), style.DIVERGING) | {
        "hovertemplate": "%{text}<br>A %{customdata[0]:.3f} · B %{customdata[1]:.3f} · "
        "A − B %{z:.3f}<extra></extra>",
        "showscale": True,
        "colorbar": plot.colour_bar(ticks, 0.7, 9, "weight, A − B", air=4),
        "customdata": np.stack([first, second], axis=-1).astype(np.float32),
        "text": cell_texts(rows, keys, compared, " (not compared)"),
    }
    layout = token_grid(rows, columns, titles, size, room, below=LEGEND)
    layout["width"] += _ENDS - layout["margin"]["r"]
    texts = ["" if np.isnan(distance) else f"{distance:.2f}" for distance in distances]
    unseen = row_ends(layout, texts, "TV", _ENDS)
    return style.figure(style.spec([cells, *hatching(compared), unseen], layout))
