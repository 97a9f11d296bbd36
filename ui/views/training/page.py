"""The page Training: its sections."""

from __future__ import annotations

import streamlit as st

from transformer.model.interventions import Intervention
from ui.address import session
from ui.controls import pickers
from ui.controls.text import plain
from ui.server.opened import Opened
from ui.views.training import shown

_SECTIONS = {"shown": "what it is shown"}
_TOLD = {
    "shown": "Training shows the model the whole target at once; every position learns in the same pass.",
}
_SHOWS = {"shown": shown.show}


def untouched(_change: Intervention) -> bool:
    """No change holds on this page: training sees the model as it is."""
    return False


def show(opened: Opened) -> None:
    """Draws the page."""
    now = session.current()
    pickers.variants(_SECTIONS, now.view, _TOLD)
    section = now.view if now.view in _SHOWS else "shown"
    try:
        _SHOWS[section](opened, now)
    except ValueError as error:
        st.error(plain(str(error)), icon=":material/error:")
