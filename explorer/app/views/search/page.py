"""The page Beam search: its two sections."""

from __future__ import annotations

import streamlit as st

from explorer.app.address import session
from explorer.app.server.opened import Opened
from explorer.app.shell import sections
from explorer.app.views.search import beam, sampling

_SECTIONS = (beam, sampling)


def show(opened: Opened) -> None:
    now = session.current()
    if opened.asked.target is not None:
        st.caption("Your own translation plays no part here: the model looks for one itself.")
    sections.draw("beam_search", _SECTIONS, now, opened, now)
