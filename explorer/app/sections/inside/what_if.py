"""The switches of "Inside a head": the other arithmetic, its number, and what the two change."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import streamlit as st

from explorer.app.address import session
from explorer.app.address.kinds import Kind, UnreadableError
from explorer.app.address.state import own
from explorer.app.controls import inform, options, pickers
from explorer.app.controls.slots import slot
from explorer.app.sections.inside.arithmetic import (
    ARITHMETIC,
    BADGE,
    RADII,
    TEMPERATURES,
    Outcome,
    offered,
    usual,
)
from explorer.app.sections.inside.look import Contents, Figure, Look
from explorer.app.server import per_run
from explorer.figures.base import labels
from explorer.figures.pages.inside import saturation_spec
from explorer.lenses.inside.inside import InsideHead
from explorer.lenses.what_if import arithmetic as what_if

WhatIf = tuple[str, float | None]
WHAT_IFS: dict[str, tuple[float, float] | None] = {
    **dict.fromkeys(("no-projections", "inputs", "no-scale", "additive", "bilinear", "hard")),
    "temperature": (0.05, 20.0),
    "local": (0.0, 1024.0),
    "local-best": (0.0, 1024.0),
    "local-predicted": (1.0, 1024.0),
    "pair": (1.0, 256.0),
}
"""Alternative arithmetic, with the range of its number; None if it takes no number."""
WHAT_IF = "what-if"
"""Names the slots of the switches."""
_FACTORS = np.geomspace(1 / 8, 8, 61)
_OWN = "the model's arithmetic"


def _read_what_if(value: str) -> WhatIf:
    if value in WHAT_IFS:
        return value, None
    name, dash, written = value.rpartition("-")
    low, high = WHAT_IFS.get(name) or (0.0, 0.0)
    if not dash or not high or not math.isfinite(number := float(written)):
        raise UnreadableError
    number = min(max(number, low), high)
    if name == "temperature":
        return name, number
    return name, float(int(number) - (name == "pair"))


def _write_what_if(value: WhatIf) -> str:
    name, number = value
    return name if number is None else f"{name}-{number + (name == 'pair'):g}"


own("what_if", Kind(_read_what_if, _write_what_if))  # a temperature, a radius, a head (from 0)


def controls(look: Look, asked: WhatIf | None) -> None:
    """Draws the switches, and slots for what they change."""
    name, number = fitted(look, asked)
    with st.container(key=f"inside-section-{WHAT_IF}"):
        with st.container(horizontal=True, vertical_alignment="center", key="what-if"):
            st.markdown("**What if** this head computed otherwise?", width="content")
            others = offered(look.inside)
            names = {"": _OWN, **{each: other.label for each, other in others.items()}}
            pickers.choose("what_if", "Other arithmetic", names, name, _take, width=260)
            if name:
                _number(look, name, number)
                st.badge(BADGE, color="gray", icon=":material/science:")
        if name:
            _frame(look, name, asked)


def outcome(look: Look, asked: WhatIf | None) -> Outcome | None:
    """Result of another arithmetic for this query; None if the model's own is chosen."""
    name, number = fitted(look, asked)
    return ARITHMETIC[name].compute(look.inside, number, lambda each: _partner(look, each)) if name else None


def fitted(look: Look, asked: WhatIf | None) -> tuple[str, float]:
    """The arithmetic that a state asks for, with its number fitted to the model."""
    if asked is None:
        return "", 0.0
    name, number = asked
    if name not in offered(look.inside):
        return "", 0.0
    heads = look.sizes[2]
    if number is None:
        return name, usual(name, look.view.head, heads)
    return name, min(number, heads - 1) if name == "pair" else number


def _take(name: str) -> None:
    session.change(what_if=(name, None) if name else None)


def _number(look: Look, name: str, number: float) -> None:
    """Draws the control of an arithmetic's number, if it has one."""
    heads = look.sizes[2]
    radius: Callable[[float], str] = lambda each: f"r = {each:g}"  # noqa: E731
    usual_numbers, written = {
        "temperature": (TEMPERATURES, lambda each: f"T = {each:g}"),
        "local": (RADII, radius),
        "local-best": (RADII, radius),
        "local-predicted": (RADII[1:], radius),
        "pair": (range(heads), lambda each: f"with head {labels.count(int(each))}"),
    }.get(name, ((), str))
    if usual_numbers:
        choices = options.numbers(usual_numbers, number, written)
        pickers.choose(
            f"what_if.{name}",
            "Number",
            choices,
            number,
            lambda each: session.change(what_if=(name, float(each))),
            texts=True,
            width=150,
        )


def _frame(look: Look, name: str, asked: WhatIf | None) -> None:
    """Explains the arithmetic; its numbers are fed into the slots."""
    heads = look.sizes[2]
    if name == "pair" and asked is not None and (asked[1] or 0) >= heads:
        inform(f"This layer has {heads} heads; head {heads} is taken.")
    left, right = st.columns([1, 2], gap="medium")
    with left:
        st.latex(ARITHMETIC[name].written(look.symbols))
        slot(f"{WHAT_IF}.text")
    with right:
        slot(f"{WHAT_IF}.table")
        slot(f"{WHAT_IF}.figures")


def _partner(look: Look, head: int) -> InsideHead:
    chosen = (look.view.layer, head)
    return per_run.inside(look.opened, look.kind, chosen, look.inside.row)


def told(look: Look, asked: WhatIf | None, found: Outcome | None) -> Contents | None:
    """Difference that the other arithmetic makes for this query; None if the model's own is chosen."""
    if found is None:
        return None
    name, _ = fitted(look, asked)
    nothing = "" if found.weights.any() else " **No key is that near, so every weight is 0.**"
    text = (
        f"{ARITHMETIC[name].text} {found.note}{nothing} This switch changes only the arithmetic of this "
        "head; nothing after the head is computed again."
    )
    curve = () if found.factor is None else (_curve(look, found.factor),)
    return Contents({"text": text, "table": _table(look, name, found)}, {"figures": curve})


def _table(look: Look, name: str, found: Outcome) -> str:
    mask, output = look.view.mask[0], look.output
    own, other = (what_if.saturation(each, mask) for each in (look.view.weights[0], found.weights))
    entropy, gradient, moved = f"{other.entropy:.2f}", f"{other.gradient:.3f}", "–"
    if name == "hard":
        gradient = "0 (arg max)"
    if name == "local-predicted":  # no softmax: the bell curve keeps the weights from summing to 1
        entropy = gradient = "–"
    if len(found.output) == len(output):
        away = np.linalg.norm(found.output - output) / max(float(np.linalg.norm(output)), 1e-9)
        moved = f"{away:.2f}"
    letter, weight, score = look.symbols.output, look.symbols.weight, look.symbols.score
    return (
        "| | the model | what if |\n|--|--|--|\n"
        f"| largest weight | {own.largest:.2f} | {other.largest:.2f} |\n"
        f"| entropy, as a share of that of equal weights | {own.entropy:.2f} | {entropy} |\n"
        f"| gradient of the softmax, ‖∂{weight}/∂{score}‖ | {own.gradient:.3f} | {gradient} |\n"
        f"| {letter} moves by, as a multiple of its length | – | {moved} |"
    )


def _curve(look: Look, factor: float) -> Figure:
    scores, mask = look.view.scores[0].astype(np.float64), look.view.mask[0]
    found = [what_if.saturation(what_if.softmax(scores * each, mask), mask) for each in _FACTORS]
    symbols = look.symbols
    curves = [
        ("largest weight", np.array([each.largest for each in found])),
        (f"gradient ‖∂{symbols.weight}/∂{symbols.score}‖", np.array([each.gradient for each in found])),
    ]
    return Figure(
        "saturation",
        saturation_spec(_FACTORS, curves, [("the model", 1.0), ("what if", factor)]),
        f"softmax of this row's scores times a factor; {BADGE}, except at 1",
        "Largest weight and gradient of the softmax as the scores grow",
        computed=False,
    )
