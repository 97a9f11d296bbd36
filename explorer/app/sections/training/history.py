"""Course of a training: the measurements of the model's own training, against the step."""

from __future__ import annotations

import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import Table, inform, panel
from explorer.app.server import measured
from explorer.app.server.opened import Opened
from explorer.app.shell import menu
from explorer.figures.base import labels, style
from explorer.figures.pages.training.curves import FAINT, Curve, Panel, panels
from explorer.lenses.targets.history import History, read_history

_SEEING = (
    "Grey: single steps, which differ because their batches do. Purple: their mean over neighbouring steps. "
    "The training loss includes label smoothing and dropout where the run had them; the validation loss "
    "includes neither. The average is a running mean of the weights. The norm of the gradient is "
    "measured before clipping."
)
_NONE = "This model comes without a log of its training, so there is no history to draw."


def show(opened: Opened, _now: State) -> None:
    found = measured.beside(opened.source, read_history)
    if found is None:
        inform(_NONE)
        menu.with_model("training/history", session.FORMER)
        return
    name = opened.source.translator().name
    st.markdown(sentence(found))
    panel(
        "history",
        lambda: panels(parts(found), "step"),
        caption(found, name),
        lambda: table(found),
        seeing=_SEEING,
        sentence=False,
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


def sentence(found: History) -> str:
    """Fall of the losses, and the BLEU reached."""
    loss = found.training["smoothed_loss"]
    return (
        f"In {found.steps:,} steps, the training loss fell from {labels.number(loss[0])} to "
        f"**{labels.number(loss[-1])} nats** per token. {_valid(found)}{_bleu(found)}"
    )


def _valid(found: History) -> str:
    both = (found.measured(name) for name in ("valid_loss", "valid_loss_average"))
    points = sorted((value, step) for points in both for step, value in points)
    if not points:
        return ""
    value, step = points[0]
    return f"On the validation pairs, the lowest loss was **{labels.number(value)} nats**, at step {step:,}. "


def _bleu(found: History) -> str:
    points = found.measured("bleu")
    if not points:
        return "The run measured no BLEU."
    step, value = points[-1]
    best = max(score for _, score in points)
    peak = "" if value == best else f"; the highest was {labels.number(best, '.1f')}"
    return (
        f"On {found.bleu_sentences:,} validation sentences, BLEU (greedy) was "
        f"**{labels.number(value, '.1f')}** at step {step:,}{peak}."
    )


def caption(found: History, model: str) -> str:
    """Caption of the drawing."""
    points = len(found.training["step"])
    every = "every step" if points == found.steps else f"{points:,} of {found.steps:,} steps"
    bleu = " · BLEU" if found.measured("bleu") else ""
    return (
        f"Loss{bleu} · learning rate · norm of the gradient before clipping, against the step · {every}, "
        f"means over {found.window:,} steps · from the log of this model's training · {model}"
    )
