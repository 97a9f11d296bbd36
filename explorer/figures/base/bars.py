"""Bars that follow the cursor: candidates for the next token, or one row of a map.

Each step, or each row, is a frame.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style
from explorer.figures.base.captions import cell_names, hidden, quantity, row_sums
from explorer.figures.base.plot import Spec
from transformer.run import Alternative, DecodeStep
from transformer.view import HeadMap

SHOWN = 10
"""Most candidates of a step, and partners in a list, here and in the linked view."""
EXCLUDED = "barred"
"""Stands in the place of a probability that no search could choose."""


def shown_candidates(step: DecodeStep) -> list[Alternative | DecodeStep]:
    """The most probable tokens of a step, best first; the chosen token is always among them."""
    best: list[Alternative | DecodeStep] = list(step.alternatives[:SHOWN])
    if all(option.token_id != step.token_id for option in best):
        best = [*best[: SHOWN - 1], step]
    return best


class Candidate(NamedTuple):
    """A token of a step as its bar shows it."""

    token: str
    log_prob: float  # in nats
    chosen: bool
    chance: str  # what stands at its bar: its probability, or that the search rules excluded it


def candidates(step: DecodeStep) -> list[Candidate]:
    """The candidates that are shown."""
    barred = {alternative.token_id for alternative in step.alternatives if alternative.excluded} - {
        step.token_id
    }
    rows = list[Candidate]()
    for option in shown_candidates(step):
        chance = EXCLUDED if option.token_id in barred else labels.chance(option.log_prob)
        row = Candidate(
            token=option.token,
            log_prob=float(option.log_prob),
            chosen=option.token_id == step.token_id,
            chance=chance,
        )
        rows.append(row)
    return rows


def _next_token_frame(name: str, step: DecodeStep) -> Spec:
    rows = candidates(step)
    log_probs = [row.log_prob for row in rows]
    hues = {True: style.CHOSEN, False: style.NEUTRAL}
    bar = {
        "x": np.exp(log_probs).astype(np.float32),
        "customdata": np.array(log_probs, dtype=np.float32),
        "text": [labels.escape(row.chance) for row in rows],
        "hovertext": [labels.escape(labels.piece(row.token)) for row in rows],
        "marker": {"color": [hues[row.chosen] for row in rows]},
    }
    names = [labels.bold(labels.short(row.token), row.chosen) for row in rows]
    return {"name": name, "data": [bar], "layout": {"yaxis": {"ticktext": names}}}


def next_token(steps: Sequence[DecodeStep], step: int = 0, height: int = style.SIZE) -> go.Figure:
    """The most probable next tokens of one step (from 0) as bars; the other steps are frames."""
    frames = [_next_token_frame(str(i), decoded) for i, decoded in enumerate(steps)]
    hover = "probability %{x:.3f} · log-probability %{customdata:.2f} nats"
    first = {**frames[step]["data"][0], "y": list(range(SHOWN)), "textfont": {"size": 10}}
    bar = plot.bars([], "", hovertemplate=f"%{{hovertext}}<br>{hover}<extra></extra>", **first)
    across, down = plot.list_axes([""] * SHOWN, (0, 1.3))
    down |= {"tickfont": {"size": 11}, **frames[step]["layout"]["yaxis"]}
    drawn = plot.spec([bar], across, down, height, (84, 6, 6, 6), bargap=0.35)
    return style.figure(drawn | {"frames": frames})


def upright(tokens: Sequence[str], title: str, ends: Sequence[float]) -> tuple[Spec, Spec]:
    """The axes of upright bars over tokens."""
    return plot.token_axis(tokens, tickangle=-90), plot.number_axis(
        title, standoff=None, range=ends, tickfont=None
    )


def row_bars_spec(view: HeadMap, row: int = 0, height: int = 200) -> Spec:
    """One row of a head (from 0, in the window), key by key, over at most 64 keys.

    The other rows are frames.
    """
    share = quantity(view).share
    _, keys = cell_names(view)
    frames = [
        Spec(
            name=str(i),
            data=[{"y": view.weights[i].astype(np.float32)}],
            layout={"title": {"text": labels.escape(title)}},
        )
        for i, title in enumerate(_row_titles(view))
    ]
    bar = plot.bars(
        view.weights[row].astype(np.float32),
        style.HUES[view.kind],
        False,
        hovertext=list(map(labels.escape, keys)),
        hovertemplate=f"%{{hovertext}}<br>{share} %{{y:.3f}}<extra></extra>",
    )
    title = {"font": {"size": 12}, "x": 0, "xref": "paper", "y": 0.97, "yanchor": "top"}
    across, up = upright(view.key_tokens, share, [0, 1])
    drawn = plot.spec(
        [bar],
        across,
        up | {"tickvals": [0, 0.5, 1]},
        height,
        (50, 30, 6, 74),
        title=title | frames[row]["layout"]["title"],
        bargap=0.15,
    )
    return drawn | {"frames": frames}


def _row_titles(view: HeadMap) -> list[str]:
    """The name of every row, with its sum where rows have one."""
    rows, _ = cell_names(view)
    if not quantity(view).sums:
        return rows
    ending = " hidden" if hidden(view).any() else ""
    return [
        f"{name}: Σ = {total}{ending}" for name, total in zip(rows, row_sums(view), strict=True)
    ]


def strongest(
    view: HeadMap, place: int, of: Literal["query", "key"] = "query", height: int = style.SIZE
) -> go.Figure:
    """The keys of a query, or the queries of a key, sorted, as bars; IndexError without it."""
    queries, keys = cell_names(view)
    if of == "query":
        values = view.weights[place]
        visible = view.mask[place]
        partner_names = keys
    else:
        values = view.weights[:, place]
        visible = view.mask[:, place]
        partner_names = queries
    partners = np.flatnonzero(visible)
    order = partners[np.argsort(-values[partners], kind="stable")][:SHOWN]
    names = [partner_names[i] for i in order]
    listed = plot.bars(
        values[order].astype(np.float32),
        style.HUES[view.kind],
        text=[f"{value:.2f}" for value in values[order]],
        hovertext=list(map(labels.escape, names)),
        hovertemplate=f"%{{hovertext}}<br>{quantity(view).share} %{{x:.3f}}<extra></extra>",
    )
    bare = [name.removeprefix("key ").removeprefix("query ") for name in names]
    short = [labels.escape(labels.shorten(name, 24)) for name in bare]
    x, y = plot.list_axes(short, (0, 1.15), SHOWN)
    return plot.figure([listed], x, y | {"automargin": True}, height, (8, 6, 6, 6), bargap=0.35)
