"""Keeps the model of a run that has ended, under a name."""

from __future__ import annotations

import streamlit as st

from ui.address import session
from ui.controls.text import plain
from ui.server.here.run import Run
from ui.server.here.workshop import workshop


def show(run: Run) -> None:
    """Draws the form."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.container(width=260):
            name = st.text_input(
                "Name of the model",
                value=f"my-{run.asked.plan.task}",
                max_chars=40,
                key="here.name",
                help="Letters, digits, - and _. All visitors of this server will find the model.",
            ).strip()
        pressed = st.button(
            "Keep", type="primary", icon=":material/save:", key="here.keep", on_click=session.keep
        )
    if not pressed:
        st.caption(
            "A run that has ended stays here until somebody starts another; keep it to open it in every page."
        )
        return
    source = run.asked.shown.source
    try:
        workshop().keep(name)
    except ValueError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return
    session.notice(
        f"{name} is kept. It is now the chosen model: every page in the menu opens it with this sentence."
    )
    session.rerun(
        model=name,
        text=source,
        target=None,
        encoder=None,
        decoder=None,
        cross=None,
        born=None,
        **session.FRESH,
    )
