"""Train here: the run that is going on, or what the last one left, and the form for another."""

from __future__ import annotations

import streamlit as st

from ui.address import session
from ui.address.state import State
from ui.controls.part import part
from ui.controls.text import plain
from ui.server.here.limits import closed
from ui.server.here.run import Run
from ui.server.here.workshop import workshop
from ui.server.opened import Opened
from ui.views.training.here import keeping, live, setup, told

_TICK = 1.0
"""Seconds between two looks at a run."""


def show(_opened: Opened, _now: State) -> None:
    """Draws the section."""
    run = workshop().run
    if run is None or run.told:
        part(_ended)(run)
        return
    part(_going, run_every=_TICK)(run)
    live.saving(run)


def _going(run: Run) -> None:
    """Draws a run that is going on; the end of the run draws the whole page again."""
    if run.told or workshop().run is not run:
        session.rerun()
    live.progress(run)
    if workshop().controls(session.browser()):
        _controls(run)
    else:
        st.caption("Another visitor began this run and controls it; you can watch.")
    live.show(run)


def _controls(run: Run) -> None:
    shop, who = workshop(), session.browser()
    with st.container(horizontal=True, gap="small"):
        if run.paused:
            st.button(
                "Continue", icon=":material/play_arrow:", key="here.go", on_click=shop.go_on, args=(who,)
            )
        else:
            st.button("Pause", icon=":material/pause:", key="here.pause", on_click=shop.pause, args=(who,))
        st.button("Stop", icon=":material/stop:", key="here.stop", on_click=shop.stop, args=(who,))


def _ended(run: Run | None) -> None:
    """Draws what the last run left, and the form."""
    if run is not None:
        st.markdown(told.ended(run))
        if run.has_model:
            keeping.show(run)
            live.show(run)
            live.saving(run)
            st.divider()
    if (why := closed()) is not None:
        st.info(plain(why), icon=":material/info:")
        return
    setup.show(run)
