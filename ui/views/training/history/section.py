"""How it went: what the model's own training measured, against the step."""

from __future__ import annotations

import streamlit as st

from figures.base import style
from figures.pages.training.curves import Curve
from figures.pages.training.panels import FAINT, Panel, panels
from transformer.training.runs.history import History
from ui.address.state import State
from ui.controls import pickers
from ui.controls.export import Table
from ui.server import catalogue, computed
from ui.server.opened import Opened
from ui.views.training import drawn
from ui.views.training.history import told

_SEEING = (
    "Grey: single steps, which differ because their batches do. Purple: their mean over neighbouring steps. "
    "The training loss includes label smoothing and dropout; the validation loss includes neither, so it is "
    "lower. The average is a running mean of the weights. The norm of the gradient is measured before "
    "clipping."
)
_NONE = "This model comes without a log of its training, so there is no history to draw."


def show(opened: Opened, _now: State) -> None:
    """Draws the section."""
    found = computed.history(opened.asked.model)
    if found is None:
        st.info(_NONE, icon=":material/info:")
        return
    name = catalogue.translator(opened.asked.model).name
    st.markdown(told.history(found))
    caption = told.caption(found, name)
    drawn.draw(
        "history",
        lambda: panels(parts(found), "step"),
        caption,
        lambda: pickers.seen("What am I seeing?", _SEEING),
        lambda: table(found),
    )


def parts(found: History) -> list[Panel]:
    """The panels of a history; what the run did not measure has none."""
    steps, of = found.training["step"], found.training
    smoothed = "mean over neighbouring steps"
    losses = [
        Curve("single steps", steps, of["loss"], FAINT, width=1),
        Curve(smoothed, steps, of["smoothed_loss"], style.POSITIVE),
        *_measured(found, "valid_loss", "validation loss", "dot"),
        *_measured(found, "valid_loss_average", "validation loss, averaged weights", "solid"),
    ]
    norms = [
        Curve("single steps", steps, of["gradient_norm"], FAINT, width=1),
        Curve(smoothed, steps, of["smoothed_gradient_norm"], style.POSITIVE),
    ]
    rate = [Curve("learning rate", steps, of["learning_rate"], style.POSITIVE)]
    bleu = _measured(found, "bleu", "BLEU", "solid")
    return [
        Panel("loss in nats", losses, 220),
        *([Panel("BLEU", bleu)] if bleu else []),
        Panel("learning rate", rate, 90),
        Panel("norm of the gradient", norms),
    ]


def _measured(found: History, column: str, name: str, dash: str) -> list[Curve]:
    points = found.measured(column)
    if not points:
        return []
    return [Curve(name, [step for step, _ in points], [value for _, value in points], style.NEGATIVE, dash)]


def table(found: History) -> Table:
    """Every point that is drawn, for CSV: one quantity, step and value in a row."""
    drawn = [
        (name, step, value)
        for name, column in found.training.items()
        if name != "step"
        for step, value in zip(found.training["step"], column, strict=True)
    ]
    names = [name for name in found.evaluations if name != "step"]
    return [
        ("quantity", "step", "value"),
        *drawn,
        *((name, *point) for name in names for point in found.measured(name)),
    ]
