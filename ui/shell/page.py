"""How every page with a sentence opens: title, model, sentence box, translation, notices."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from ui.address import session
from ui.address.parameters import State
from ui.server import catalogue
from ui.server.opened import Opened
from ui.shell import frame, sentence
from ui.shell.model_picker import pick_model


def open_sentence_page(title: str, controls: Callable[[State], None] | None = None) -> Opened | None:
    """Draws the head of a page and translates its sentence.

    Args:
        title: stands over the page, and in the window's title.
        controls: draws what belongs between the sentence box and the picture; gets the state.

    Returns:
        The sentence, ready to be shown; None where something was refused, which the page has then said.
    """
    now = frame.open_page(title)
    st.title(title)
    model = pick_model(now)
    opened = None
    if model is not None:
        sentence.sentence_box(now)
        if controls is not None:
            controls(now)
        opened = sentence.open_sentence(model, now)
    now = session.current()
    if opened is None:
        frame.menu(now)
        frame.show_notices(now)
    else:
        frame.show_notices(now, opened.translation.notes)
    return opened


def with_model(opened: Opened, show: Callable[[Opened], None]) -> None:
    """Shows what the model itself must compute; of a run from a file says in one sentence that it cannot.

    Args:
        opened: the sentence.
        show: draws the rest of the page.
    """
    if catalogue.has_model(opened.asked.model):
        show(opened)
    else:
        frame.menu(session.current())
        st.info(catalogue.NEEDS_MODEL, icon=":material/info:")
