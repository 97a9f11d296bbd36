"""The page Recurrent: its sections."""

from __future__ import annotations

import streamlit as st

from ui.address import session
from ui.shell import frame, sections
from ui.shell.model_picker import pick_model
from ui.shell.sections import Section
from ui.shell.sentence import sentence_box
from ui.views.recurrent import hard, long, maps, path, speed, unit

_SECTIONS = {
    "maps": Section(
        "two alignments",
        "The same sentence through a recurrent network with attention and through a Transformer.",
        maps.show,
    ),
    "long": Section(
        "long sentences",
        "How each model does on short and long sentences; a recurrent decoder keeps its output in one state.",
        long.show,
    ),
    "path": Section(
        "path length",
        "How many steps lie between two tokens of your sentence.",
        path.show,
    ),
    "speed": Section(
        "speed",
        "Training reads a whole target at once; translation writes it token by token. Timed on one core.",
        speed.show,
    ),
    "unit": Section(
        "a unit for self-attention",
        "Firefox's translator has a small recurrent unit where the paper has masked self-attention: what "
        "changes?",
        unit.show,
    ),
    "hard": Section(
        "hard attention",
        "Hard attention looks at one place only and learns by trial and error. What does its noise cost?",
        hard.show,
    ),
}
_READING = {"maps", "path"}
"""Sections that read the visitor's sentence."""


def show() -> None:
    """Draws the page."""
    now = frame.open_page("Recurrent")
    st.title("Recurrent")
    pick_model(now)
    if (now.view or "maps") in _READING:
        sentence_box(now)
        frame.explain_signs()
    sections.switch(_SECTIONS, now).draw(session.current())
    frame.show_notices(session.current())
