"""The sections of the page What if, and the switch between them."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from ui.address import session
from ui.address.state import State
from ui.controls import pickers
from ui.controls.part import refusals
from ui.server import catalogue
from ui.shell import frame
from ui.shell.changed import of_tokens
from ui.shell.model_picker import pick_model
from ui.shell.page import open_sentence_page, with_model
from ui.views.what_if import backup, causal, changes, experiments, page

TITLE = "What if"
Switch = Callable[[State], None]
"""Draws the switch between the sections."""


def show() -> None:
    """Draws the section that the address names; the visitor's own changes if it names none."""
    session.adopt()
    _SECTIONS.get(session.current().view or "", _own_changes)(_switch)


def _switch(now: State) -> None:
    pickers.variants(_NAMES, now.view)


def _own_changes(switch: Switch) -> None:
    opened = open_sentence_page(TITLE, switch, tell=changes.tell)
    if opened is not None:
        with_model(opened, page.show)


def _causal_trace(switch: Switch) -> None:
    opened = open_sentence_page(TITLE, switch, changes=of_tokens, kinds=catalogue.KINDS)
    if opened is not None:
        with_model(opened, causal.show)


def _backup_heads(switch: Switch) -> None:
    model = _without_sentence(switch)
    if model is not None:
        with refusals():
            backup.show(model)


def _without_sentence(switch: Switch) -> str | None:
    """Draws the top of a section that needs no sentence; the model, or None if there is none."""
    now = frame.open_page(TITLE)
    st.title(TITLE)
    model = pick_model(now)
    switch(now)
    frame.show_notices(session.current())
    if model is None or catalogue.has_model(model):
        return model
    st.info(catalogue.NEEDS_MODEL, icon=":material/info:")
    return None


def _ready_experiments(switch: Switch) -> None:
    model = _without_sentence(switch)
    if model is not None:
        experiments.show(model)
        frame.explain_signs()


_NAMES = {
    "changes": "Your changes",
    "experiments": "Ready experiments",
    "causal": "Causal trace",
    "backup": "Backup heads",
}
"""Names of the sections by the value of `view` in the address; the first is the one without a value."""
_SECTIONS: dict[str, Callable[[Switch], None]] = {
    "experiments": _ready_experiments,
    "causal": _causal_trace,
    "backup": _backup_heads,
}
