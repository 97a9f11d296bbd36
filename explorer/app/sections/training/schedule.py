"""Schedule: equation 3 of the paper for any d_model and warm-up, and the model's own schedule."""

from __future__ import annotations

import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import Table, panel, pickers, plain, power
from explorer.app.server.opened import Opened
from explorer.app.shell import menu
from explorer.figures.base import style
from explorer.figures.base.bars import percent
from explorer.figures.pages.training.curves import Curve, curves
from explorer.lenses.targets.stated import stated_options
from transformer.training.options import TrainingOptions, learning_rate

_FORMULA = (
    r"\begin{aligned} lrate &= d_{model}^{-0.5} \cdot "
    r"\min\!\left(step^{-0.5},\right. \\ &\qquad\quad \left. step \cdot warmup^{-1.5}\right) \\[4pt] "
    r"lrate(%s) &= %s^{-0.5} \cdot %s^{-0.5} = %s \end{aligned}"
)
_SEEING = (
    "Two slopes meet at the end of the warm-up: before it, the rate rises in a straight line; after it, the "
    "rate falls with one over the square root of the step. Early steps are small, while Adam's averages "
    "rest on few gradients. A wider model takes smaller steps."
)
_CARD = "from the training command on its card"
_POINTS = 240
_SHOWN = 5
"""Smallest number of warm-ups that the picture reaches."""


def show(opened: Opened, now: State) -> None:
    paper = paper_options(now.warmup)
    model = opened.source.translator()
    own = stated_options(model.card)
    _controls(now)
    warmup = f"{paper.warmup:,}".replace(",", r"{,}")
    wide = f"{now.width:,}".replace(",", r"{,}")
    with_numbers = _FORMULA % (warmup, wide, warmup, power(learning_rate(paper, paper.warmup, now.width)))
    st.latex(with_numbers)
    st.markdown(paper_schedule(paper, now.width))
    if own is not None:
        st.markdown(own_schedule(model.name, own, model.config.d_model))
    else:
        st.caption("The card of this model states no training command, so its own schedule is not drawn.")
        menu.with_model("training/schedule", session.FORMER)
    last = max(_SHOWN * now.warmup, 0 if own is None else own.steps)
    lines = [_line(f"equation 3: d_model {now.width:,}, warm-up {now.warmup:,}", paper, now.width, last)]
    if own is not None:
        lines.append(_own(model.name, own, model.config.d_model))
    names = " · ".join(each.name for each in lines)
    panel(
        "schedule",
        lambda: curves(lines, ("step", "learning rate"), now.warmup),
        f"Learning rate of each step · dotted: the end of the slider's warm-up · {names}",
        lambda: table(lines),
        seeing=_SEEING,
        sentence=False,
    )


def paper_options(warmup: int) -> TrainingOptions:
    """The options under which `learning_rate` is equation 3."""
    return TrainingOptions(schedule="inverse_sqrt", learning_rate=1.0, warmup=warmup)


def _controls(now: State) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        with st.container(width=300):
            pickers.slide("width", "d_model", now.width)
        with st.container(width=300):
            pickers.slide("warmup", "Warm-up steps", now.warmup)


def _steps(last: int, *corners: int) -> list[int]:
    """Steps from 1 on, evenly spread, and those at which a line bends."""
    even = {1 + round(i * (last - 1) / _POINTS) for i in range(_POINTS + 1)}
    return sorted(even | {each for each in corners if 1 <= each <= last})


def _line(name: str, options: TrainingOptions, width: int, last: int) -> Curve:
    steps = _steps(last, options.warmup)
    return Curve(name, steps, [learning_rate(options, step, width) for step in steps], style.POSITIVE)


def _own(name: str, options: TrainingOptions, width: int) -> Curve:
    steps = _steps(options.steps, options.warmup, options.steps - options.decay_steps)
    rates = [learning_rate(options, step, width) for step in steps]
    return Curve(f"{name}: as trained ({options.schedule})", steps, rates, style.NEGATIVE, "dash")


def table(lines: list[Curve]) -> Table:
    """The points of the lines, for CSV."""
    rows = [(each.name, step, rate) for each in lines for step, rate in zip(each.x, each.y, strict=True)]
    return [("schedule", "step", "learning rate"), *rows]


def paper_schedule(paper: TrainingOptions, width: int) -> str:
    """The two slopes of equation 3, in numbers."""
    peak = learning_rate(paper, paper.warmup, width)
    later = 4 * paper.warmup
    return (
        f"Up to step {paper.warmup:,}, each step adds ${power(peak / paper.warmup)}$ to the rate; the peak "
        f"is **${power(peak)}$**. Then it falls with 1/√step: at step {later:,}, four times as late, it is "
        f"{percent(learning_rate(paper, later, width) / peak)} of the peak."
    )


def own_schedule(name: str, own: TrainingOptions, width: int) -> str:
    """Training of a model, from the command on its card."""
    peak = learning_rate(own, min(own.warmup, own.steps), width)
    rises = (
        f"{plain(name)} itself was trained for {own.steps:,} steps: up to ${power(peak)}$ by step "
        f"{own.warmup:,}"
    )
    if own.schedule == "constant":
        begins = own.steps - own.decay_steps
        return f"{rises}, the same rate up to step {begins:,}, then straight down to 0 ({_CARD})."
    if own.schedule == "linear":
        return f"{rises}, then straight down to 0 at the last step ({_CARD})."
    return f"{rises}, then down with 1/√step ({_CARD})."
