"""Loss: the smoothed target of one position, what it costs, and the gradient that it sends back."""

from __future__ import annotations

import math

import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import Table, panel, pickers, seen, word
from explorer.app.server import per_run
from explorer.app.server.opened import Opened
from explorer.figures.base import labels
from explorer.figures.base.bars import percent
from explorer.figures.pages.distributions import Piece, against_target, gradient_bars, small
from explorer.lenses.targets import smoothing
from explorer.lenses.targets.lesson import Position, TrainingView
from explorer.lenses.targets.smoothing import SmoothedPiece, SmoothedPosition

_FORMULA = (
    r"\begin{aligned} L &= (1-\varepsilon)\,(-\log p_y) + "
    r"\varepsilon \cdot \frac{1}{V} \sum_{k=1}^{V} -\log p_k \\[4pt] "
    r"&= %s \cdot %s + %s \cdot %s = %s \text{ nats} \end{aligned}"
)
_GRADIENT = (
    r"\frac{\partial L}{\partial z_k} = p_k - q_k, \qquad "
    r"q_k = (1-\varepsilon)\,[k = y] + \frac{\varepsilon}{V}"
)
_SEEING = (
    "Label smoothing takes ε of the target's probability from the right piece and spreads it evenly over "
    "all V pieces. The gradient with respect to a logit is the model's probability minus the target's: a "
    "negative one raises the logit, a positive one lowers it. Training steps against the gradient."
)


def show(opened: Opened, now: State) -> None:
    lesson = per_run.lesson(opened)
    place = min(now.step or 0, len(lesson.positions) - 1)
    _controls(lesson, place, now.smoothing)
    found = smoothing.smoothed(opened.source.translator(), lesson, place, now.smoothing)
    st.markdown(smoothed(lesson.positions[place], place, found))
    parts = (1 - found.epsilon, found.bare_loss, found.epsilon, found.spread, found.loss)
    with_numbers = _FORMULA % tuple(f"{value:.2f}" for value in parts)
    st.latex(with_numbers)
    _pictures(found, place, opened.translation.model)


def _controls(lesson: TrainingView, place: int, epsilon: float) -> None:
    names = {i: position(each, i) for i, each in enumerate(lesson.positions)}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        with st.container(width=260):
            pickers.choose(
                "position", "Position of the target", names, place, "step", texts=True, labelled=True
            )
        with st.container(width=300):
            pickers.slide(
                "smoothing",
                "Label smoothing ε",
                epsilon,
                lambda each: session.change(smoothing=round(each, 2)),
            )


def _pictures(found: SmoothedPosition, place: int, model: str) -> None:
    pieces = [_piece(each, found) for each in (*found.entries, found.rest)]
    where = f"position {labels.count(place)} · ε = {found.epsilon:g} · {model}"
    left, right = st.columns(2, gap="medium")
    with left:
        panel(
            "target",
            lambda: against_target(pieces, found.right),
            f"The model's probabilities and the smoothed target (the right piece in bold) · {where}",
            lambda: table(found),
        )
    with right:
        panel(
            "gradient",
            lambda: gradient_bars(pieces, found.right),
            f"The gradient of the loss with respect to each logit, p − q; all of them sum to 0 · {where}",
            lambda: table(found),
        )
    seen(_SEEING, _GRADIENT)


def _piece(each: SmoothedPiece, found: SmoothedPosition) -> Piece:
    others = found.pieces - len(found.entries)
    name = labels.piece(each.token) if each is not found.rest else f"{others:,} others"
    return Piece(name, each.share, each.target, each.bare)


def table(found: SmoothedPosition) -> Table:
    """The pieces that are shown, as rows of numbers for CSV."""
    names = ("token", "p", "q", "q without smoothing", "p - q", "p - q without smoothing")
    rows = [
        (each.token or "all others", each.share, each.target, each.bare, each.gradient, each.bare_gradient)
        for each in (*found.entries, found.rest)
    ]
    return [names, *rows]


def share(loss: float) -> str:
    """The probability behind a loss in nats."""
    return small(min(1.0, math.exp(-loss)))


def position(each: Position, place: int) -> str:
    """A position as an option of a list."""
    return f"{labels.count(place)}: {labels.piece(each.token)}"


def smoothed(each: Position, place: int, found: SmoothedPosition) -> str:
    """Loss of a position under a smoothing, and the place to which it pushes the right piece."""
    target = found.entries[found.right].target
    lines = (
        f"At position {labels.count(place)}, the model gives the right piece, {word(each.token)}, "
        f"**{share(each.loss)}**: −log p is {labels.number(found.bare_loss)} nats. "
    )
    if not found.epsilon:
        return f"{lines}Without smoothing, that is the loss; it would be 0 only at {percent(1)}."
    other = small(found.epsilon / found.pieces)
    return (
        f"{lines}The smoothed target wants {percent(target)} there and {other} for each of the other "
        f"{found.pieces - 1:,} pieces. The loss is **{labels.number(found.loss)} nats**, and no prediction "
        f"makes it less than {labels.number(found.floor)}. {_push(found)}"
    )


def _push(found: SmoothedPosition) -> str:
    right = found.entries[found.right]
    bare = labels.number(right.bare_gradient, "+.3f")
    sizes = f"(gradient {labels.number(right.gradient, '+.3f')}; {bare} without smoothing)"
    if right.gradient > 0:
        return f"The model is surer than this target, so training *lowers* the right piece's logit {sizes}."
    return f"Training raises the right piece's logit {sizes}."
