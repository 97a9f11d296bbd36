"""The page of positional encodings, with its three parts."""

from __future__ import annotations

import streamlit as st

from ui.address import session
from ui.controls import pickers
from ui.shell import frame
from ui.shell.changed import of_tokens
from ui.shell.model_picker import pick_model
from ui.shell.page import open_sentence_page
from ui.views.positions import results, sentence, tables

_VARIANTS = {"tables": "what it is", "sentence": "on your sentence", "results": "how much it helps"}


def show() -> None:
    """Draws the page."""
    session.adopt()
    if session.current().view == "sentence":
        opened = open_sentence_page(
            "Positions", lambda now: pickers.variants(_VARIANTS, now.view), changes=of_tokens
        )
        if opened is not None:
            sentence.show(opened)
        return
    now = frame.open_page("Positions")
    st.title("Positions")
    pick_model(now)
    pickers.variants(_VARIANTS, now.view)
    if now.view == "results":
        results.show()
    else:
        tables.show()
