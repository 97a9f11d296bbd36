"""The page Training: its sections."""

from __future__ import annotations

import streamlit as st

from transformer.model.interventions import Intervention
from ui.address import session
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

_SECTIONS = {
    "shown": "what it is shown",
    "loss": "loss",
    "schedule": "schedule",
    "history": "how it went",
    "residuals": "residuals and norms",
    "adam": "Adam",
    "dropout": "dropout",
    "cost": "cost",
    "birth": "birth of a head",
    "here": "train here",
}
_TOLD = {
    "shown": "Training shows the model the whole target at once; every position learns in the same pass.",
    "loss": "Label smoothing asks for a little less than certainty: what that does at one position.",
    "schedule": "The learning rate rises while training warms up, then falls. Here is how, step by step.",
    "history": "What this model's own training measured, from its first step to its last.",
    "residuals": "The gradient of every layer, with residual connections and LayerNorm and without.",
    "adam": "How the optimiser turns one weight's gradients into steps.",
    "dropout": "Your sentence with dropout on, as in training: the maps of a head, and what flickers.",
    "cost": "What a layer of each kind costs: Table 1 of the paper, beside time and memory measured.",
    "birth": "Heads are not built in: training makes them. Move the slider and watch your sentence.",
    "here": "A small model learns a small task on this server, in a minute or two. Watch it learn.",
}
_SHOWS = {
    "shown": shown.show,
    "loss": loss.show,
    "schedule": schedule.show,
    "history": history.show,
    "residuals": residuals.show,
    "adam": adam.show,
    "dropout": dropout.show,
    "cost": cost.show,
    "birth": birth.show,
    "here": here.show,
}


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
