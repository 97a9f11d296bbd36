"""Adam: the gradient of one weight of a real run, both running means, and the step that they make."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
import streamlit as st

from figures.base import style
from figures.pages.training.curves import Curve
from figures.pages.training.panels import FAINT, Panel, panels
from lab.learning.moments import Moment, Recording, moments, read_recording
from ui.address import session
from ui.address.state import State
from ui.controls import export, pickers
from ui.controls.export import Table
from ui.controls.text import plain
from ui.server import measured
from ui.server.opened import Opened
from ui.views.training.adam import told

_SEEING = (
    "Grey: the weight's gradient, which jumps from batch to batch. Purple above: m̂, its running mean. "
    "Amber: √v̂, its usual size. Their quotient, times the learning rate, is the step: small if gradients "
    "disagree in sign or have just become smaller, almost the whole rate if they agree. Click a line to "
    "choose a step."
)
_NONE = "The recording of this run, assets/adam.json, is not here, so there is nothing to draw."
_KEY = "training-adam"


def show(_opened: Opened, now: State) -> None:
    """Draws the section."""
    found = measured.shipped(measured.ADAM, read_recording)
    if found is None:
        st.info(_NONE, icon=":material/info:")
        return
    steps = moments(found)
    chosen = steps[min(now.update, len(steps)) - 1]
    st.markdown(told.weight(found))
    _control(chosen.step, len(steps))
    st.markdown(told.step(chosen))
    with st.container(horizontal=True, gap="medium"):
        for equation in told.equations(found, chosen):
            with st.container(width="content"):
                st.latex(equation)
    _picture(found, steps, chosen)


def _control(step: int, last: int) -> None:
    with st.container(width=420):
        pickers.slide(
            "update", "Step of training", (1, last), step, lambda each: session.change(update=int(each))
        )


def parts(steps: Sequence[Moment]) -> list[Panel]:
    """The gradient with its mean, its usual size, and the step against the learning rate."""
    x = [each.step for each in steps]

    def curve(name: str, values: Sequence[float], color: str = style.POSITIVE, dash: str = "solid") -> Curve:
        return Curve(name, x, values, color, dash, 1 if color == FAINT else 2)

    return [
        Panel(
            "gradient",
            [
                curve("g, the gradient", [each.gradient for each in steps], FAINT),
                curve("m̂, its running mean", [each.mean_corrected for each in steps]),
            ],
            from_zero=False,
        ),
        Panel(
            "size",
            [
                curve("|g|", [abs(each.gradient) for each in steps], FAINT),
                curve("√v̂, its usual size", [each.size for each in steps], style.NEGATIVE),
            ],
            100,
        ),
        Panel(
            "step",
            [
                curve("± learning rate", [each.rate for each in steps], style.CHOSEN, "dot"),
                curve("± learning rate", [-each.rate for each in steps], style.CHOSEN, "dot"),
                curve("Adam's step", [each.update for each in steps]),
            ],
            150,
            from_zero=False,
        ),
    ]


def _picture(found: Recording, steps: Sequence[Moment], chosen: Moment) -> None:
    caption = told.caption(found)

    def draw() -> go.Figure:
        return panels(parts(steps), "step", chosen.step)

    pickers.clickable(draw(), _KEY, _choose, caption)
    st.caption(plain(caption))
    with st.container(horizontal=True, gap="small"):
        pickers.seen("What am I seeing?", _SEEING)
        export.picture("adam", draw, caption, sentence=False, table=lambda: table(found, steps))


def _choose(place: object) -> None:
    """Takes the step of the point that the visitor clicked."""
    if isinstance(place, int):
        session.change(update=place)


def table(found: Recording, steps: Sequence[Moment]) -> Table:
    """Every step, for CSV."""
    names = ("step", "learning rate", "weight", "gradient", "m", "v", "m corrected", "v corrected")
    rows = [
        (
            *(each.step, each.rate, weight, each.gradient, each.mean, each.square),
            *(each.mean_corrected, each.square_corrected, each.update, each.decay),
        )
        for each, weight in zip(steps, found.weights, strict=True)
    ]
    return [(*names, "Adam's step", "weight decay"), *rows]
