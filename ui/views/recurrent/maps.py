"""Two alignments: the cross-attention of a recurrent twin beside that of the Transformer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from figures import heatmap
from figures.base import captions
from figures.base.grid import framed
from figures.pages.recurrent import with_centres
from transformer import Window
from transformer.trace.view import HeadView
from transformer.what_if.difference import align_tokens
from ui.address import session
from ui.address.parameters import State, link
from ui.controls import export, pickers
from ui.controls.text import plain
from ui.linked_view import window_around
from ui.server import catalogue
from ui.server.recurrent.results import measured
from ui.shell import fitting
from ui.views.recurrent import scores, told, twins
from ui.views.recurrent.twins import Side

_SIZE, _CELLS = 440, 40
_SEEING = (
    "Each row is a token that a model predicts, each column a source token that it may read; both maps share "
    "one scale. The recurrent decoder has one state and one head: the row is its whole look at the source. "
    "The Transformer has many heads, and one of them is shown. Amber strokes are centres that local "
    "attention predicts."
)


def show(now: State) -> None:
    """Draws the section."""
    score = twins.score_of(now)
    if score is None:
        twins.missing()
        return
    _part(score)


@st.fragment
def _part(score: str) -> None:
    now = session.current()
    score = twins.score_of(now) or score
    controls = st.container(horizontal=True, vertical_alignment="center", gap="small")
    one = twins.side(now, f"{catalogue.RECURRENT}/{score}")
    other = twins.side(now, twins.REFERENCE) if twins.REFERENCE in catalogue.available() else None
    row = _row(now, one)
    with controls:
        _controls(score, one, other, row)
    sides = [one] if other is None else [one, other]
    st.markdown("  \n".join(f"{_name(each)}: **{plain(each.run.text)}**" for each in sides))
    rows = [row, None if other is None else _counterpart(one, other, row)]
    st.markdown(told.looks([(each, at) for each, at in zip(sides, rows, strict=False)]))
    with st.container(horizontal=True, gap="medium"):
        for each, at in zip(sides, rows, strict=False):
            _map(each, at)
    st.caption(plain(told.sizes(measured())))
    scores.show(one, row, now.source)


def _row(now: State, one: Side) -> int:
    """The step of the cursor: the visitor's, or the most telling one."""
    step, notes = fitting.fit_position("step", now.step, len(one.run.target_tokens))
    for note in notes:
        session.notice(note)
    return one.opened.first_step if step is None else step


def _controls(score: str, one: Side, other: Side | None, row: int) -> None:
    twins.pick(score)
    with st.container(width=230):
        pickers.row_picker(one.opened, "cross", row)
    if other is not None:
        with st.container(width=230):
            pickers.head_picker("cross", other.head, other.model)
    pickers.seen("What am I seeing?", _SEEING)
    st.page_link(
        "app.py",
        label="Open this twin on Translate",
        icon=":material/translate:",
        query_params=link(session.current(), model=one.model),
    )


def _counterpart(one: Side, other: Side, row: int) -> int | None:
    """The row of the other translation that stands for the same token; None if there is none."""
    pairs = align_tokens(one.run.target_tokens, other.run.target_tokens)
    return next((j for i, j in pairs if i == row), None)


def _name(each: Side) -> str:
    return told.name(each)


def view_of(each: Side, row: int | None) -> HeadView:
    """The map of a side, in a window around a row."""
    lengths = len(each.run.target_tokens), len(each.run.source_tokens)
    window = Window(*window_around(lengths[0], row or 0, _CELLS), *window_around(lengths[1], 0, _CELLS))
    return each.run.head("cross", *each.head, window=window)


def _map(each: Side, row: int | None) -> None:
    view = view_of(each, row)
    draw = drawing(view, row)
    lengths = len(each.run.target_tokens), len(each.run.source_tokens)
    badge = captions.badge(view.audit)
    caption = (
        f"{captions.place(view)} · {told.name(each)} · weights, colour from 0 to 1"
        f"{captions.window_note(view.window, lengths)} · {each.model} · {badge['text']}"
    )
    name = "recurrent" if view.reach or view.score != "scaled_dot" else "transformer"
    with st.container(width=_SIZE, gap="xsmall"):
        st.markdown(f"**{plain(told.name(each))}**")
        config = {"displayModeBar": False}
        st.plotly_chart(draw(), width="content", key=f"recurrent.{name}", config=config, alt=caption)
        st.caption(plain(caption), help=str(badge["title"]))
        export.picture(f"cross {name}", draw, caption)


def drawing(view: HeadView, row: int | None) -> Callable[[], go.Figure]:
    """Draws a map with the row of the cursor framed, and the centres of local attention marked."""

    def draw() -> go.Figure:
        figure = heatmap(view, _SIZE)
        if view.centres is not None:
            window = view.window
            figure = with_centres(figure, np.asarray(view.centres), window.key_start, view.weights.shape[1])
        return figure if row is None else framed(figure, row - view.window.query_start)

    return draw
