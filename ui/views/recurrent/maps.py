"""Two alignments: the cross-attention of a recurrent twin beside that of the Transformer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
from ui.address.parameters import link
from ui.address.state import State
from ui.controls import export, pickers
from ui.controls.part import part
from ui.controls.text import plain
from ui.linked_view import window_around
from ui.server import catalogue, measured
from ui.shell import fitting
from ui.views.recurrent import scores, told, twins
from ui.views.recurrent.twins import Side

_SIZE, _CELLS = 440, 40
_SEEING = (
    "Each row is a token that a model predicts, each column a source token that it may read; both maps share "
    "one scale. The recurrent decoder has one state and one head: the row is its whole look at the source. "
    "The Transformer has many heads, and one of them is shown. Purple strokes are centres that local "
    "attention predicts."
)


def show(now: State) -> None:
    """Draws the section."""
    score = twins.score_of(now)
    if score is None:
        twins.missing()
        return
    _part(score)


@part
def _part(score: str) -> None:
    now = session.current()
    score = twins.score_of(now) or score
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        twins.pick(score)
        pickers.seen("What am I seeing?", _SEEING)
        _elsewhere(now, score)
    one = twins.side(now, f"{catalogue.RECURRENT}/{score}")
    other = twins.side(now, twins.REFERENCE) if catalogue.exists(twins.REFERENCE) else None
    row = _row(now, one)
    sides = [one] if other is None else [one, other]
    st.markdown("  \n".join(f"{told.title(each)}: **{plain(each.run.text)}**" for each in sides))
    rows: list[int | None] = [row]
    rows += [] if other is None else [counterpart(one.run.target_tokens, other.run.target_tokens, row)]
    st.markdown(told.looks([(each, at) for each, at in zip(sides, rows, strict=False)]))
    with st.container(horizontal=True, gap="medium"):
        for each, at in zip(sides, rows, strict=False):
            with st.container(width=_SIZE, gap="xsmall"):
                _control(each, at, each is one)
                _map(each, at)
    st.caption(plain(told.sizes(measured.shipped(measured.RECURRENT))))
    scores.show(one, row, now.source)


def _row(now: State, one: Side) -> int:
    """The step of the cursor: the visitor's, or the most telling one."""
    step, notes = fitting.fit_position("step", now.step, len(one.run.target_tokens))
    for note in notes:
        session.notice(note)
    return one.opened.first_step if step is None else step


def _elsewhere(now: State, score: str) -> None:
    st.page_link(
        "app.py",
        label="Open this twin on Translate",
        icon=":material/translate:",
        query_params=link(now, model=f"{catalogue.RECURRENT}/{score}"),
    )


def _control(each: Side, row: int | None, moves: bool) -> None:
    """The name of a side beside its control: the row of the cursor, or the head."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{plain(told.title(each))}**", width="stretch")
        with st.container(width=220):
            if moves:
                pickers.row_picker(each.opened, "cross", row or 0)
            else:
                pickers.head_picker("cross", each.head, each.model)


def counterpart(
    first: Sequence[str],  # the tokens of one translation
    second: Sequence[str],  # those of the other
    row: int,  # the place in the first, from 0
) -> int | None:
    """The place of the same token in another translation; None if there is none."""
    same = [i for i, token in enumerate(second) if token == first[row]]
    aligned = next((j for i, j in align_tokens(first, second) if i == row), None)
    return aligned if aligned in same else next(iter(same), None)


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
    config = {"displayModeBar": False}
    with st.container(key=f"recurrent-map-{name}"):
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
