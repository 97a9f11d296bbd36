"""What Adam does to one weight, in sentences and equations."""

from __future__ import annotations

from figures.base import labels
from figures.base.bars import percent
from lab.learning.moments import Moment, Recording
from ui.views.training.told import power

_EQUATIONS = (
    r"\begin{aligned} m_t &= \beta_1 m_{t-1} + (1-\beta_1)\, g_t \\ &= %s \cdot (%s) \\ "
    r"&\quad + %s \cdot (%s) = %s \end{aligned}",
    r"\begin{aligned} v_t &= \beta_2 v_{t-1} + (1-\beta_2)\, g_t^2 \\ &= %s \cdot %s \\ "
    r"&\quad + %s \cdot (%s)^2 = %s \end{aligned}",
    r"\begin{aligned} \hat m_t &= m_t / (1-\beta_1^t) = %s \\ "
    r"\hat v_t &= v_t / (1-\beta_2^t) = %s, \quad lrate = %s \\ "
    r"\Delta w &= -\,lrate \cdot \hat m_t / (\sqrt{\hat v_t} + \epsilon) = %s \end{aligned}",
)


def weight(found: Recording) -> str:
    """Which weight of which run it is."""
    row, column = (labels.count(each) for each in found.place)
    return (
        f"One weight of the preset `tiny`, trained for {len(found.rates):,} steps on the bundled sentence "
        f"pairs: row {row}, column {column} of `{found.parameter}`. It went from "
        f"{labels.number(found.weights[0], '.4f')} to {labels.number(found.weights[-1], '.4f')}."
    )


def step(each: Moment) -> str:
    """How the step compares with the gradient and the learning rate."""
    share = abs(each.update) / each.rate if each.rate else 0.0
    ratio = abs(each.gradient) / each.size if each.size else 0.0
    why = (
        "at the first step there is nothing to average, so only the sign of the gradient counts"
        if each.step == 1
        else "that is the gradient's running mean divided by its usual size"
    )
    return (
        f"At step {each.step:,}, the gradient is {labels.number(ratio, '.2g')} times its usual size. Adam "
        f"moves the weight by **{percent(share)} of the learning rate**: {why}. Weight decay adds "
        f"{percent(_part(each))} of that."
    )


def _part(each: Moment) -> float:
    return abs(each.decay / each.update) if each.update else 0.0


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
    """What is drawn."""
    row, column = (labels.count(each) for each in found.place)
    return (
        f"Gradient (after clipping), running means and step of one weight of a real run, at each of "
        f"{len(found.rates):,} steps · {found.parameter}, row {row}, column {column} · dotted: the chosen "
        f"step · β₁ {found.beta1:g}, β₂ {found.beta2:g}, ε {found.epsilon:g}"
    )
