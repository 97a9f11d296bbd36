"""The switches of "Inside a head": the other arithmetic, its number, and what the two change."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from figures.base import labels
from figures.pages.inside import saturation
from transformer.lenses.inside import InsideHead
from transformer.what_if import arithmetic as what_if
from ui.address import session
from ui.address.values import WhatIf
from ui.controls import export, options, pickers
from ui.controls.text import plain
from ui.server import computed
from ui.views.inside.arithmetic import ARITHMETIC, BADGE, RADII, TEMPERATURES, Outcome, usual
from ui.views.inside.look import CONFIG, Look

_FACTORS = np.geomspace(1 / 8, 8, 61)
_OWN = "the model's arithmetic"


def controls(look: Look, asked: WhatIf | None) -> Outcome | None:
    """Draws the switches and what they change; returns None if the model's own arithmetic is chosen."""
    name, number = _fitted(look, asked)
    st.divider()
    with st.container(horizontal=True, vertical_alignment="center", key="what-if"):
        st.markdown("**What if** this head computed otherwise?", width="content")
        st.selectbox(
            "Other arithmetic",
            ["", *ARITHMETIC],
            index=["", *ARITHMETIC].index(name),
            format_func=lambda each: ARITHMETIC[each].label if each else _OWN,
            label_visibility="collapsed",
            width=260,
            **pickers.control("what_if", name, _take),
        )
        if name:
            _number(look, name, number)
            st.badge(BADGE, color="gray", icon=":material/science:")
    if not name:
        return None
    outcome = ARITHMETIC[name].compute(look.inside, number, lambda each: _partner(look, each))
    _told(look, name, outcome)
    return outcome


def _fitted(look: Look, asked: WhatIf | None) -> tuple[str, float]:
    """The arithmetic that a state asks for, with its number fitted to the model."""
    if asked is None:
        return "", 0.0
    name, number = asked
    heads = look.sizes[2]
    if number is None:
        return name, usual(name, look.view.head, heads)
    if name == "pair" and number >= heads:
        st.info(f"This layer has {heads} heads; head {heads} is taken.", icon=":material/info:")
    return name, min(number, heads - 1) if name == "pair" else number


def _take(name: str) -> None:
    session.change(what_if=(name, None) if name else None)


def _number(look: Look, name: str, number: float) -> None:
    """Draws the control of an arithmetic's number, if it has one."""
    heads = look.sizes[2]
    usual_numbers, written = {
        "temperature": (TEMPERATURES, lambda each: f"T = {each:g}"),
        "local": (RADII, lambda each: f"r = {each:g}"),
        "pair": (range(heads), lambda each: f"with head {labels.count(int(each))}"),
    }.get(name, ((), str))
    if usual_numbers:
        offered = options.numbers(usual_numbers, number, written)
        st.selectbox(
            "Number",
            list(offered),
            index=list(offered).index(number),
            format_func=offered.__getitem__,
            label_visibility="collapsed",
            width=150,
            **pickers.control(
                f"what_if.{name}",
                number,
                lambda each: session.change(what_if=(name, float(each))),
                offered.values(),
            ),
        )


def _partner(look: Look, head: int) -> InsideHead:
    chosen = (look.view.layer, head)
    return computed.inside(look.opened.asked, look.opened.translation, look.kind, chosen, look.inside.row)


def _told(look: Look, name: str, outcome: Outcome) -> None:
    """Explains the arithmetic and shows its result beside the model's own."""
    arithmetic, mask = ARITHMETIC[name], look.view.mask[0]
    left, right = st.columns([1, 2], gap="medium")
    with left:
        st.latex(arithmetic.formula)
        nothing = "" if outcome.weights.any() else " **No key is that near, so every weight is 0.**"
        st.markdown(
            f"{arithmetic.text}{nothing} This switch changes only the arithmetic of this head; nothing after "
            "the head is computed again."
        )
    with right:
        own = what_if.saturation(look.view.weights[0], mask)
        other = what_if.saturation(outcome.weights, mask)
        b = look.inside.outputs[look.view.head]
        moved = float(np.linalg.norm(outcome.output - b) / max(float(np.linalg.norm(b)), 1e-9))
        st.markdown(
            "| | the model | what if |\n|--|--|--|\n"
            f"| largest weight | {own.largest:.2f} | {other.largest:.2f} |\n"
            f"| entropy, share of equal weights' | {own.entropy:.2f} | {other.entropy:.2f} |\n"
            f"| gradient of the softmax, ‖∂w/∂s‖ | {own.gradient:.3f} | {_gradient(name, other.gradient)} |\n"
            f"| b moves by, in lengths of b | – | {moved:.2f} |\n"
        )
        if outcome.factor is not None:
            _curve(look, outcome.factor)


def _gradient(name: str, value: float) -> str:
    return "0 (arg max)" if name == "hard" else f"{value:.3f}"


def _curve(look: Look, factor: float) -> None:
    scores, mask = look.view.scores[0].astype(np.float64), look.view.mask[0]
    found = [what_if.saturation(what_if.softmax(scores * each, mask), mask) for each in _FACTORS]
    curves = [
        ("largest weight", np.array([each.largest for each in found])),
        ("gradient ‖∂w/∂s‖", np.array([each.gradient for each in found])),
    ]
    caption = look.caption(f"softmax of this row's scores times a factor; {BADGE}, except at 1")

    def make() -> go.Figure:
        return saturation(_FACTORS, curves, [("the model", 1.0), ("what if", factor)])

    alt = "Largest weight and gradient of the softmax as the scores grow"
    st.plotly_chart(make(), key="inside.saturation", alt=alt, config=CONFIG)
    with st.container(horizontal=True, gap="small"):
        st.caption(plain(caption), width="stretch")
        export.picture("inside-saturation", make, caption)
