"""The page Training: its sections."""

from __future__ import annotations

from transformer.interventions import Intervention
from ui.address import session
from ui.server.opened import Opened
from ui.shell import sections
from ui.shell.sections import Section
from ui.views.training import adam, birth, cost, dropout, history, lesson, loss, residuals, schedule, workshop

_SECTIONS = {
    "shown": Section(
        "what it is shown",
        "Training shows the model the whole target at once; every position learns in the same pass.",
        lesson.show,
    ),
    "loss": Section(
        "loss",
        "Label smoothing asks for a little less than certainty: what that does at one position.",
        loss.show,
    ),
    "schedule": Section(
        "schedule",
        "The learning rate rises while training warms up, then falls. Here is how, step by step.",
        schedule.show,
    ),
    "history": Section(
        "how it went",
        "What this model's own training measured, from its first step to its last.",
        history.show,
    ),
    "residuals": Section(
        "residuals and norms",
        "The gradient of every layer, with residual connections and LayerNorm and without.",
        residuals.show,
    ),
    "adam": Section(
        "Adam",
        "How the optimiser turns one weight's gradients into steps.",
        adam.show,
    ),
    "dropout": Section(
        "dropout",
        "Your sentence with dropout on, as in training: the maps of a head, and what flickers.",
        dropout.show,
    ),
    "cost": Section(
        "cost",
        "What a layer of each kind costs: Table 1 of the paper, beside time and memory measured.",
        cost.show,
    ),
    "birth": Section(
        "birth of a head",
        "Heads are not built in: training makes them. Move the slider and watch your sentence.",
        birth.show,
    ),
    "here": Section(
        "train here",
        "A small model learns a small task on this server, while you watch.",
        workshop.show,
    ),
}
"""The sections by the value of `view` in the address; the first one opens first."""


def untouched(_change: Intervention) -> bool:
    """No change holds on this page: training sees the model as it is."""
    return False


def show(opened: Opened) -> None:
    """Draws the page."""
    now = session.current()
    sections.switch(_SECTIONS, now).draw(opened, now)
