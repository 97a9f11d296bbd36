"""The page Recurrent: its sections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from ui.address import session
from ui.address.state import State
from ui.controls import pickers
from ui.controls.text import plain
from ui.shell import frame
from ui.shell.model_picker import pick_model
from ui.shell.sentence import sentence_box
from ui.views.recurrent import hard, long, maps, path, speed


@dataclass(frozen=True)
class _Section:
    """One section of the page."""

    label: str  # its name in the switch
    told: str  # what it shows, in a sentence
    show: Callable[[State], None]  # draws it
    reads: bool = False  # whether it reads the visitor's sentence


_SECTIONS = {
    "maps": _Section(
        "two alignments",
        "The same sentence through a recurrent network with attention and through a Transformer.",
        maps.show,
        reads=True,
    ),
    "long": _Section(
        "long sentences",
        "How each model does on short and long sentences; a recurrent decoder keeps its output in one state.",
        long.show,
    ),
    "path": _Section(
        "path length",
        "How many steps lie between two tokens of your sentence.",
        path.show,
        reads=True,
    ),
    "speed": _Section(
        "speed",
        "Training reads a whole target at once; translation writes it token by token. Timed on one core.",
        speed.show,
    ),
    "hard": _Section(
        "hard attention",
        "Hard attention looks at one place only and learns by trial and error. What does its noise cost?",
        hard.show,
    ),
}
"""The sections by the value of `view` in the address; the first one opens first."""


def show() -> None:
    """Draws the page."""
    now = frame.open_page("Recurrent")
    st.title("Recurrent")
    pick_model(now)
    section = _SECTIONS.get(now.view or "maps", _SECTIONS["maps"])
    if section.reads:
        sentence_box(now)
        frame.explain_signs()
    told = {name: each.told for name, each in _SECTIONS.items()}
    pickers.variants({name: each.label for name, each in _SECTIONS.items()}, now.view, told)
    try:
        section.show(session.current())
    except (ValueError, OSError) as error:
        st.error(plain(str(error)), icon=":material/error:")
    frame.show_notices(session.current())
