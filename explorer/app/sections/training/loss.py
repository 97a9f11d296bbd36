"""Loss: the smoothed target of one position, what it costs, and the gradient that it sends back."""

import math

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.page_values import Loss
from explorer.app.controls import Table, panel, pickers, seen, word
from explorer.app.server import per_run
from explorer.app.server.view import View
from explorer.app.shell import needs
from explorer.figures.base.labels import count, number, percent, piece
from explorer.figures.pages.distributions import against_target, gradient_bars, small
from explorer.lenses.targets.lesson import Position, SmoothedPosition, smoothed

FORMULA = (
    r"\begin{aligned} L &= (1-\varepsilon)\,(-\log p_y) + "
    r"\varepsilon \cdot \frac{1}{V} \sum_{k=1}^{V} -\log p_k \\[4pt] "
    r"&= %.2f \cdot %.2f + %.2f \cdot %.2f = %.2f \text{ nats} \end{aligned}"
)
GRADIENT = (
    r"\frac{\partial L}{\partial z_k} = p_k - q_k, \qquad "
    r"q_k = (1-\varepsilon)\,[k = y] + \frac{\varepsilon}{V}"
)
SEEING = (
    "Label smoothing takes ε of the target's probability from the right piece and spreads it "
    "evenly over all V pieces. Training steps against the gradient: a negative one raises the "
    "logit, a positive one lowers it."
)


def show(opened: View, now: State) -> None:
    if needs.tell_no_output(opened.source):
        return
    lesson = per_run.lesson(opened)
    epsilon = now.values(Loss).smoothing
    model = opened.translation.model
    place = min(now.step or 0, len(lesson.positions) - 1)

    def take(chosen: float) -> None:
        session.change(smoothing=round(chosen, 2))

    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        names = {
            i: f"{count(i)}: {piece(position.token)}" for i, position in enumerate(lesson.positions)
        }
        label = "Position of the target"
        pickers.choose(
            "position", label, names, place, "step", texts=True, labelled=True, width=260
        )
        pickers.slide("smoothing", "Label smoothing ε", epsilon, take, width=300)
    at = smoothed(opened.source.load(), lesson, place, epsilon)
    st.markdown(sentence(lesson.positions[place], place, at))
    st.latex(FORMULA % (1 - at.epsilon, at.bare_loss, at.epsilon, at.spread, at.loss))
    rest = f"{at.pieces - len(at.entries):,} others"
    rows = (*at.entries, at.rest)
    pieces = [*(piece(entry.token) for entry in at.entries), rest]
    shares = [row.share for row in rows]
    targets = [row.target for row in rows]
    slopes = [row.bare_gradient for row in rows], [row.gradient for row in rows]
    where = f"position {count(place)} · ε = {at.epsilon:g} · {model}"
    left, right = st.columns(2, gap="medium")
    panel(
        "target",
        lambda: against_target(pieces, shares, targets, at.right),
        f"The model's probabilities and the smoothed target (the right piece in bold) · {where}",
        lambda: table(at),
        place=left,
    )
    panel(
        "gradient",
        lambda: gradient_bars(pieces, *slopes, at.right),
        (
            "The gradient of the loss with respect to each logit, p − q; all of them sum to 0 · "
            f"{where}"
        ),
        lambda: table(at),
        place=right,
    )
    seen(SEEING, GRADIENT)


def table(at: SmoothedPosition) -> Table:
    """The pieces that are shown, as rows of numbers for CSV."""
    rows = (
        (
            entry.token or "all others",
            entry.share,
            entry.target,
            entry.bare,
            entry.gradient,
            entry.bare_gradient,
        )
        for entry in (*at.entries, at.rest)
    )
    return [("token", "p", "q", "q without smoothing", "p - q", "p - q without smoothing"), *rows]


def sentence(position: Position, place: int, at: SmoothedPosition) -> str:
    """Loss of a position under a smoothing, and where it pushes the right piece."""
    right = at.entries[at.right]
    text = (
        f"At position {count(place)}, the model gives the right piece, {word(position.token)}, "
        f"**{small(math.exp(-position.loss))}**: −log p is {number(at.bare_loss)} nats. "
    )
    if not at.epsilon:
        return f"{text}Without smoothing, that is the loss; it would be 0 only at {percent(1)}."
    sizes = (
        f"gradient {number(right.gradient, '+.3f')}; {number(right.bare_gradient, '+.3f')} without"
    )
    push = "Training raises the right piece's logit"
    if right.gradient > 0:
        push = "The model is surer than this target, so training *lowers* the right piece's logit"
    return (
        f"{text}The smoothed target wants {percent(right.target)} there and "
        f"{small(at.epsilon / at.pieces)} for each of the other {at.pieces - 1:,} pieces. The loss "
        f"is **{number(at.loss)} nats**, and no prediction makes it less than {number(at.floor)}. "
        f"{push} ({sizes} smoothing)."
    )
