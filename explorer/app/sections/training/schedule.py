"""Schedule: equation 3 of the paper for any d_model and warm-up, and the model's own schedule."""

from collections.abc import Collection

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.page_values import Schedule
from explorer.app.controls import panel, pickers, plain, power
from explorer.app.server.view import View
from explorer.app.shell import menu
from explorer.figures.base import style
from explorer.figures.base.labels import percent
from explorer.figures.pages.training import Curve, curves
from transformer.training.options import TrainingOptions, learning_rate
from transformer.training.stated import stated

FORMULA = (
    r"\begin{aligned} lrate &= d_{model}^{-0.5} \cdot "
    r"\min\!\left(step^{-0.5},\right. \\ &\qquad\quad \left. step \cdot warmup^{-1.5}\right) "
    r"\\[4pt] "
    r"lrate(%s) &= %s^{-0.5} \cdot %s^{-0.5} = %s \end{aligned}"
)
SEEING = (
    "Before the end of the warm-up, the rate rises in a straight line; after it, it falls with "
    "one over the square root of the step. Early steps are small, while Adam's averages rest on "
    "few gradients. A wider model takes smaller steps."
)
POINTS, WARMUPS = (
    240,
    5,
)  # places at which a line is drawn; fewest warm-ups that the picture reaches


def show(opened: View, now: State) -> None:
    values = now.values(Schedule)
    model = opened.source.load()
    trained = stated(model.card).options
    paper = TrainingOptions(
        schedule="inverse_sqrt", learning_rate=1.0, warmup=values.warmup
    )  # equation 3
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        pickers.slide("width", "d_model", values.width, width=300)
        pickers.slide("warmup", "Warm-up steps", values.warmup, width=300)
    warmup, width = (f"{value:,}".replace(",", r"{,}") for value in (values.warmup, values.width))
    peak = learning_rate(paper, values.warmup, values.width)
    later = 4 * values.warmup
    st.latex(FORMULA % (warmup, width, warmup, power(peak)))
    st.markdown(
        f"Up to step {values.warmup:,}, each step adds ${power(peak / values.warmup)}$ to the rate; "
        f"the peak is **${power(peak)}$**. Then it falls with 1/√step: at step {later:,}, four times "
        f"as late, it is {percent(learning_rate(paper, later, values.width) / peak)} of the peak."
    )
    name = f"equation 3: d_model {values.width:,}, warm-up {values.warmup:,}"
    last = WARMUPS * values.warmup
    if trained is not None:
        last = max(last, trained.steps)
    lines = [curve(name, paper, values.width, last=last, corners=(values.warmup,))]
    if trained is None:
        st.caption(
            "The card of this model states no training command, so its own schedule is not drawn."
        )
        menu.link_with_model("training/schedule", session.FORMER)
    else:
        d_model = model.config.d_model
        name = f"{model.name}: as trained ({trained.schedule})"
        st.markdown(own_schedule(model.name, trained, d_model))
        corners = (trained.warmup, trained.steps - trained.decay_steps)
        lines.append(curve(name, trained, d_model, last=trained.steps, corners=corners))
    points = [(line.name, *point) for line in lines for point in zip(line.x, line.y, strict=True)]
    panel(
        "schedule",
        lambda: curves(lines, ("step", "learning rate"), values.warmup),
        "Learning rate of each step · dotted: the end of the slider's warm-up · "
        f"{' · '.join(line.name for line in lines)}",
        lambda: [("schedule", "step", "learning rate"), *points],
        seeing=SEEING,
        sentence=False,
    )


def curve(
    name: str, options: TrainingOptions, width: int, *, last: int, corners: Collection[int]
) -> Curve:
    """The rates of evenly spread steps from 1 to the last, and of those at which the line bends."""
    even = {1 + round(i * (last - 1) / POINTS) for i in range(POINTS + 1)}
    steps = sorted(even | {corner for corner in corners if 1 <= corner <= last})
    rates = [learning_rate(options, step, width) for step in steps]
    if len(corners) == 1:
        return Curve(name, steps, rates, style.POSITIVE)
    return Curve(name, steps, rates, style.NEGATIVE, "dash")


def own_schedule(name: str, options: TrainingOptions, width: int) -> str:
    """Training of a model, from the command on its card."""
    peak = learning_rate(options, min(options.warmup, options.steps), width)
    falls = {
        "constant": f", the same rate up to step {options.steps - options.decay_steps:,}, "
        "then straight down to 0",
        "linear": ", then straight down to 0 at the last step",
    }.get(options.schedule, ", then down with 1/√step")
    return (
        f"{plain(name)} itself was trained for {options.steps:,} steps: up to ${power(peak)}$ by "
        f"step {options.warmup:,}{falls} (from the training command on its card)."
    )
