"""The page of positional encodings: its three parts, and what the first of them explains."""

from __future__ import annotations

import streamlit as st

from ui import frame, positions_results, positions_sentence, positions_tables, state, widgets
from ui.model_picker import pick_model
from ui.sentence_page import open_sentence_page

_VARIANTS = {"tables": "What it is", "sentence": "On your sentence", "results": "What it buys"}


def show() -> None:
    """Draws the page."""
    state.adopt()
    if state.current().view == "sentence":
        opened = open_sentence_page("Positions", lambda: widgets.variants(_VARIANTS))
        if opened is not None:
            positions_sentence.show(opened)
        return
    frame.open_page("Positions")
    st.title("Positions")
    pick_model()
    widgets.variants(_VARIANTS)
    if state.current().view == "results":
        positions_results.show()
    else:
        positions_tables.show()
