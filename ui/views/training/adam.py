"""Adam: the gradient of one weight of a real run, both running means, and the step that they make."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from figures.base import labels, style
from figures.base.bars import percent
from figures.pages.training.curves import Curve
from figures.pages.training.panels import FAINT, Panel, panels
from lab.studies.adam import Moment, Recording, moments, read_recording
from ui.address import State, session
from ui.controls import Table, inform, panel, pickers, power
from ui.server import measured
from ui.server.opened import Opened

_SEEING = (
    "Grey: the weight's gradient, which jumps from batch to batch. Purple above: m̂, its running mean. "
    "Amber: √v̂, its usual size. Their quotient, times the learning rate, is the step: small if gradients "
    "disagree in sign or have just become smaller, almost the whole rate if they agree. Click a line to "
    "choose a step."
)
_NONE = "The recording of this run, assets/adam.json, is not here, so there is nothing to draw."
_EQUATIONS = (
    r"\begin{aligned} m_t &= \beta_1 m_{t-1} + (1-\beta_1)\, g_t \\ &= %s \cdot (%s) \\ "
    r"&\quad + %s \cdot (%s) = %s \end{aligned}",
    r"\begin{aligned} v_t &= \beta_2 v_{t-1} + (1-\beta_2)\, g_t^2 \\ &= %s \cdot %s \\ "
    r"&\quad + %s \cdot (%s)^2 = %s \end{aligned}",
    r"\begin{aligned} \hat m_t &= m_t / (1-\beta_1^t) = %s \\ "
    r"\hat v_t &= v_t / (1-\beta_2^t) = %s, \quad lrate = %s \\ "
    r"\Delta w &= -\,lrate \cdot \hat m_t / (\sqrt{\hat v_t} + \epsilon) = %s \end{aligned}",
)


def show(_opened: Opened, now: State) -> None:
    found = measured.shipped(measured.ADAM, read_recording)
    if found is None:
        inform(_NONE)
        return
    steps = moments(found)
    chosen = steps[min(now.update, len(steps)) - 1]
    st.markdown(weight_sentence(found))
    _control(chosen.step, len(steps))
    st.markdown(step_sentence(chosen))
    with st.container(horizontal=True, gap="medium"):
        for equation in equations(found, chosen):
            with st.container(width="content"):
                st.latex(equation)
    panel(
        "adam",
        lambda: panels(parts(steps), "step", chosen.step),
        caption(found),
        lambda: table(found, steps),
        seeing=_SEEING,
        take=_choose,
        sentence=False,
    )


def _control(step: int, last: int) -> None:
    with st.container(width=420):
        pickers.slide("update", "Step of training", step, ends=(1, last))


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


def weight_sentence(found: Recording) -> str:
    """Which weight of which run it is."""
    row, column = (labels.count(each) for each in found.place)
    return (
        f"One weight of the preset `tiny`, trained for {len(found.rates):,} steps on the bundled sentence "
        f"pairs: row {row}, column {column} of `{found.parameter}`. It went from "
        f"{labels.number(found.weights[0], '.4f')} to {labels.number(found.weights[-1], '.4f')}."
    )


def step_sentence(each: Moment) -> str:
    """Size of the step against the gradient and the learning rate."""
    share = abs(each.update) / each.rate if each.rate else 0.0
    ratio = abs(each.gradient) / each.size if each.size else 0.0
    why = (
        "at the first step there is nothing to average, so only the sign of the gradient counts"
        if each.step == 1
        else "that is the gradient's running mean divided by its usual size"
    )
    part = abs(each.decay / each.update) if each.update else 0.0
    return (
        f"At step {each.step:,}, the gradient is {labels.number(ratio, '.2g')} times its usual size. Adam "
        f"moves the weight by **{percent(share)} of the learning rate**: {why}. Weight decay adds "
        f"{percent(part)} of that."
    )


def equations(found: Recording, each: Moment) -> tuple[str, ...]:
    """The equations with the numbers of a step: both means, both corrected, and the step."""
    one, two, gradient = found.beta1, found.beta2, _latex(each.gradient)
    mean = f"{one:g}", _latex(each.mean_before), f"{1 - one:.2g}", gradient, _latex(each.mean)
    square = f"{two:g}", _latex(each.square_before), f"{1 - two:.2g}", gradient, _latex(each.square)
    corrected = _latex(each.mean_corrected), _latex(each.square_corrected)
    numbers = mean, square, (*corrected, _latex(each.rate), _latex(each.update))
    return tuple(text % values for text, values in zip(_EQUATIONS, numbers, strict=True))


def _latex(value: float) -> str:
    return power(value, 2)


def caption(found: Recording) -> str:
    """Caption of the drawing."""
    row, column = (labels.count(each) for each in found.place)
    return (
        f"Gradient (after clipping), running means and step of one weight of a real run, at each of "
        f"{len(found.rates):,} steps · {found.parameter}, row {row}, column {column} · dotted: the chosen "
        f"step · β₁ {found.beta1:g}, β₂ {found.beta2:g}, ε {found.epsilon:g}"
    )
