"""Dropout: the map of a head in three runs with dropout, without it, and what flickers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from figures import heatmap
from figures.base import captions, labels
from figures.base.bars import percent
from figures.maps.heatmap import row_tokens
from figures.pages.masks import weight_map
from figures.pages.training.flicker import flicker_map
from lab.learning.flicker import SHOWN, Flicker
from transformer import Window
from transformer.trace.view import HeadView
from ui.address import State
from ui.controls import Picture, Table, chart, export, inform, pickers, plain, seen, word
from ui.linked_view import window_around
from ui.server import catalogue, runs
from ui.server.opened import Opened
from ui.server.training.flicker import with_dropout
from ui.shell.fitting import fit_head

_SEEING = (
    "In training, dropout sets each number of an embedding, and of what a sub-layer adds to the stream, to "
    "zero with a fixed probability, and scales up the rest. Attention weights themselves are not dropped "
    "here: they flicker because their queries and keys do. Outside training, nothing is dropped."
)
_FORMULA = r"\mathrm{Sublayer}'(x) = \frac{d \odot \mathrm{Sublayer}(x)}{1-p}, \qquad P(d_i = 0) = p"
_SIZE = 300
_CELLS = 40
"""Most rows and columns of a map here."""


def show(opened: Opened, now: State) -> None:
    model = opened.asked.model
    if not catalogue.translator(model).config.dropout:
        inform("This model's config has no dropout, so nothing would flicker.")
        return
    kind = catalogue.kind(model, now.kind)
    size, first = catalogue.sizes(model)[kind], runs.default_head(model, kind)
    head, _ = fit_head(kind, getattr(now, kind), size, first)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        pickers.kind_picker(kind, opened.kinds)
        with st.container(width=260):
            pickers.head_picker(kind, head, model)
    run, step, source = opened.translation, now.step or 0, now.source or 0
    rows = (len(run.source_tokens), source) if kind == "encoder" else (len(run.target_tokens), step)
    keys = (len(run.target_tokens), step) if kind == "decoder" else (len(run.source_tokens), source)
    ends = [window_around(length, min(place, length - 1), _CELLS) for length, place in (rows, keys)]
    window = Window(*ends[0], *ends[1])
    view = opened.translation.head(kind, *head, window)
    found = with_dropout(model, opened.translation, kind, window)
    st.markdown(flickers(found, view))
    drawn = pictures(found, view)
    _maps(drawn)
    badge = captions.badge(view.audit)["text"]
    st.caption(plain(f"{captions.place(view)} · {view.model} · without dropout: {badge}"))
    with st.container(horizontal=True, gap="small"):
        seen(_SEEING, _FORMULA)
        export.pictures("dropout", drawn)


def pictures(found: Flicker, view: HeadView) -> dict[str, Picture]:
    """The maps by name: without dropout, what flickers, and each run that is shown."""
    place = view.layer, view.head
    where = f"{captions.place(view)} · {view.model}"
    with_it = f"With dropout, {percent(found.rate)}"
    drawn: dict[str, tuple[Callable[[], go.Figure], str]] = {
        "without": (lambda: heatmap(view, _SIZE), "Without dropout"),
        "flickers": (
            lambda: flicker_map(view, found.spread[place], found.runs, _SIZE),
            f"What flickers in {found.runs} runs with dropout",
        ),
    } | {
        f"seed {seed}": (_drawn(view, found.shown[(i, *place)]), f"{with_it}, seed {seed}")
        for i, seed in enumerate(SHOWN)
    }
    return {
        name: Picture(
            make,
            f"{title} · {where}",
            view.audit if name == "without" else None,
            table=lambda: table(found, view),
        )
        for name, (make, title) in drawn.items()
    }


def _drawn(view: HeadView, weights: np.ndarray) -> Callable[[], go.Figure]:
    return lambda: weight_map(view, weights, _SIZE)


def _maps(found: dict[str, Picture]) -> None:
    names = list(found)
    for row in (names[:2], names[2:]):
        for name, column in zip(row, st.columns(3, gap="small"), strict=False):
            with column:
                _map(name, found[name])


def _map(name: str, found: Picture) -> None:
    st.caption(plain(found.caption.partition(" · ")[0]))
    chart(f"dropout {name}", found.make(), found.caption, width="content")


def table(found: Flicker, view: HeadView) -> Table:
    """Every cell as a row of numbers, for CSV; programs count from 0."""
    names = ("query", "key", "query token", "key token", "without dropout")
    place, first = (view.layer, view.head), (view.window.query_start, view.window.key_start)
    rows = [
        (
            *(first[0] + i, first[1] + j, query, key, float(view.weights[i, j])),
            *(float(each[(*place, i, j)]) for each in found.shown),
            *(float(found.mean[(*place, i, j)]), float(found.spread[(*place, i, j)])),
        )
        for i, query in enumerate(row_tokens(view))
        for j, key in enumerate(view.key_tokens)
        if view.mask[i, j]
    ]
    return [(*names, *(f"seed {seed}" for seed in SHOWN), "mean", "standard deviation"), *rows]


def flickers(found: Flicker, view: HeadView) -> str:
    """The cell that flickers most, and how much the cells flicker on average."""
    spread, mean = (each[view.layer, view.head] for each in (found.spread, found.mean))
    row, column = np.unravel_index(int(spread.argmax()), spread.shape)
    query, key = word(row_tokens(view)[row]), word(view.key_tokens[column])
    before, after, moved = (labels.number(float(each[row, column])) for each in (view.weights, mean, spread))
    average = float(spread[view.mask].mean())
    return (
        f"The same sentence, {found.runs} times with dropout ({percent(found.rate)}). "
        f"What flickers most is the weight from {query} to {key}: **{before}** without dropout, "
        f"**{after} ± {moved}** with it (mean and standard deviation). On average over all cells that are "
        f"not masked, the standard deviation is {labels.number(average, '.3f')}."
    )
