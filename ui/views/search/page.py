"""The page Search: its two sections."""

from __future__ import annotations

import streamlit as st

from ui.address import session
from ui.server.opened import Opened
from ui.shell import sections
from ui.shell.sections import Section
from ui.views.search import beam, sampling

_SECTIONS = {
    "beam": Section(
        "beam search",
        "Beam search keeps several unfinished translations at once. The tree shows the best 2 × beam "
        "continuations of each step.",
        beam.show,
    ),
    "sampling": Section(
        "sampling",
        "Sampling draws each token at random, by its probability after temperature, top-k and top-p. "
        "Several draws form a tree.",
        sampling.show,
    ),
}


def show(opened: Opened) -> None:
    """Draws the page."""
    now = session.current()
    section = sections.switch(_SECTIONS, now)
    if opened.asked.target is not None:
        st.caption("Your own translation plays no part here: the model looks for one itself.")
    section.draw(opened, now)
