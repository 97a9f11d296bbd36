"""The page Training: its sections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from transformer.interventions import Intervention
from ui.address import session
from ui.address.state import State
from ui.controls import pickers
from ui.controls.text import plain
from ui.server.opened import Opened
from ui.views.training import cost, loss, schedule, shown
from ui.views.training.adam import section as adam
from ui.views.training.birth import section as birth
from ui.views.training.dropout import section as dropout
from ui.views.training.here import section as here
from ui.views.training.history import section as history
from ui.views.training.residuals import section as residuals


@dataclass(frozen=True)
class _Section:
    """One section of the page."""

    label: str  # its name in the switch
    told: str  # what it shows, in a sentence
    show: Callable[[Opened, State], None]  # draws it


_SECTIONS = {
    "shown": _Section(
        "what it is shown",
        "Training shows the model the whole target at once; every position learns in the same pass.",
        shown.show,
    ),
    "loss": _Section(
        "loss",
        "Label smoothing asks for a little less than certainty: what that does at one position.",
        loss.show,
    ),
    "schedule": _Section(
        "schedule",
        "The learning rate rises while training warms up, then falls. Here is how, step by step.",
        schedule.show,
    ),
    "history": _Section(
        "how it went",
        "What this model's own training measured, from its first step to its last.",
        history.show,
    ),
    "residuals": _Section(
        "residuals and norms",
        "The gradient of every layer, with residual connections and LayerNorm and without.",
        residuals.show,
    ),
    "adam": _Section(
        "Adam",
        "How the optimiser turns one weight's gradients into steps.",
        adam.show,
    ),
    "dropout": _Section(
        "dropout",
        "Your sentence with dropout on, as in training: the maps of a head, and what flickers.",
        dropout.show,
    ),
    "cost": _Section(
        "cost",
        "What a layer of each kind costs: Table 1 of the paper, beside time and memory measured.",
        cost.show,
    ),
    "birth": _Section(
        "birth of a head",
        "Heads are not built in: training makes them. Move the slider and watch your sentence.",
        birth.show,
    ),
    "here": _Section(
        "train here",
        "A small model learns a small task on this server, while you watch.",
        here.show,
    ),
}
"""The sections by the value of `view` in the address; the first one opens first."""


def untouched(_change: Intervention) -> bool:
    """No change holds on this page: training sees the model as it is."""
    return False


def show(opened: Opened) -> None:
    """Draws the page."""
    now = session.current()
    labels = {name: each.label for name, each in _SECTIONS.items()}
    pickers.variants(labels, now.view, {name: each.told for name, each in _SECTIONS.items()})
    section = _SECTIONS.get(now.view or "shown", _SECTIONS["shown"])
    try:
        section.show(opened, now)
    except ValueError as error:
        st.error(plain(str(error)), icon=":material/error:")
