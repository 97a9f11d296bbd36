"""The page Search: its two sections."""

from __future__ import annotations

import streamlit as st

from ui.address import session
from ui.controls import pickers
from ui.controls.text import plain
from ui.server.opened import Opened
from ui.views.search import beam, sampling

_SECTIONS = {"beam": "beam search", "sampling": "sampling"}
_TOLD = {
    "beam": "Beam search keeps several unfinished translations at once. The tree shows the best 2 × beam "
    "continuations of each step.",
    "sampling": "Sampling draws each token at random, by its probability after temperature, top-k and "
    "top-p. Several draws form a tree.",
}


def show(opened: Opened) -> None:
    """Draws the page."""
    now = session.current()
    pickers.variants(_SECTIONS, now.view, _TOLD)
    if opened.asked.target is not None:
        st.caption("Your own translation plays no part here: the model looks for one itself.")
    try:
        (sampling if now.view == "sampling" else beam).show(opened, now)
    except ValueError as error:
        st.error(plain(str(error)), icon=":material/error:")
