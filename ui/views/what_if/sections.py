"""The sections of the page What if, and the switch between them."""

from __future__ import annotations

from collections.abc import Callable

from ui.address import session
from ui.address.parameters import State
from ui.controls import pickers
from ui.shell.page import open_sentence_page, with_model
from ui.views.what_if import causal, changes, page

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
    opened = open_sentence_page(TITLE, switch, changes=False)
    if opened is not None:
        with_model(opened, causal.show)


_NAMES = {"changes": "Your changes", "causal": "Causal trace"}
"""Names of the sections by the value of `view` in the address; the first is the one without a value."""
_SECTIONS: dict[str, Callable[[Switch], None]] = {"causal": _causal_trace}
