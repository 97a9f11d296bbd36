"""Birth of a head: which run, the sentence through its snapshots, and the statistics of the run."""

from __future__ import annotations

import streamlit as st

from figures.base import labels
from lab.birth.sentence import Frame
from transformer.text.vocabulary import clean
from ui.address import session
from ui.address.state import State
from ui.controls import export, pickers
from ui.controls.part import part
from ui.controls.text import plain
from ui.server.opened import Opened
from ui.server.training import births
from ui.views.training.birth import appearing, lapse

_NO_RUN = (
    "No model here has snapshots of its training. `python -m transformer train --snapshots 12` keeps some; "
    "any model in the folder of models that has them can be opened here."
)
_TICK = 0.9
"""Seconds between two snapshots while the visitor plays."""


def show(opened: Opened, now: State) -> None:
    """Draws the section."""
    runs = births.runs()
    if not runs:
        st.info(_NO_RUN, icon=":material/info:")
        return
    name = _run(opened, now, list(runs))
    text, target = clean(export.sentence_of(now)), opened.translation.text
    frames = _through(name, text, target, len(runs[name]))
    _controls(name, list(runs), now)
    given = opened.asked.model if now.target is None else None
    seen = lapse.Seen(name, frames, given)
    if now.play:
        part(lapse.play, run_every=_TICK)(seen)
    else:
        part(lapse.show)(seen)
    appearing.show(births.born(name), name)


def _through(name: str, text: str, target: str, count: int) -> tuple[Frame, ...]:
    """The sentence through all snapshots, with a bar while they read it."""
    bar = st.empty()

    def tell(step: int, read: int) -> None:
        bar.progress(read / count, f"Reading the sentence with the snapshot of step {step:,}")

    frames = births.through(name, text, target, tell)
    bar.empty()
    return frames


def _run(opened: Opened, now: State, runs: list[str]) -> str:
    """The run of the address, else that of the chosen model, else the usual one."""
    if now.run in runs:
        return str(now.run)
    if now.run is not None:
        st.info(
            plain(f"There is no run “{labels.shorten(now.run, 40)}” with snapshots here."),
            icon=":material/info:",
        )
    return opened.asked.model if opened.asked.model in runs else runs[0]


def _controls(name: str, runs: list[str], now: State) -> None:
    """The choice of the run and of the kind, and Play."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        if len(runs) > 1:
            with st.container(width=220):
                st.selectbox(
                    "Training run",
                    runs,
                    index=runs.index(name),
                    label_visibility="collapsed",
                    **pickers.control("run", name, _take_run, runs),
                )
        pickers.kind_picker(now.kind or "cross", lambda kind: session.change(kind=kind, born=None))
        st.toggle(
            "Play", now.play, **pickers.control("birth.play", now.play, lambda on: session.change(play=on))
        )


def _take_run(name: str) -> None:
    session.change(run=name, snapshot=None, born=None)
