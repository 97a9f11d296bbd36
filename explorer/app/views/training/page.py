"""The page Training: its sections."""

from __future__ import annotations

import streamlit as st

from explorer.app.address import session
from explorer.app.server.opened import Opened
from explorer.app.shell import menu, sections
from explorer.app.views.training import history, lesson, loss, schedule, workshop
from transformer.interventions import Intervention

_SECTIONS = (lesson, loss, schedule, history, workshop)


def untouched(_change: Intervention) -> bool:
    """No change holds on this page: training sees the model as it is."""
    return False


def show(opened: Opened) -> None:
    now = session.current()
    if opened.asked.target is not None and now.target is None:
        st.caption("The target is a reference that a person wrote, as in training, not the model's output.")
    sections.draw("training", _SECTIONS, now, opened, now)
    for study in ("adam", "residuals", "cost"):
        menu.finding(study)
