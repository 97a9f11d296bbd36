"""Other arithmetic on the vectors of one query: its table, its switches, and the difference that it
makes."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import streamlit as st

from explorer.app.address import session
from explorer.app.address.page_values import WhatIf
from explorer.app.controls import pickers
from explorer.app.sections.inside.look import BADGE, Contents, Look, Outcome
from explorer.figures.pages.inside import LedgerRow
from explorer.lenses.what_if import arithmetic
from explorer.lenses.what_if.arithmetic import Doubles

WHAT_IF = "what-if"  # names the slots of the switches


class Arithmetic(NamedTuple):
    """One way to compute weights."""

    label: str  # its name in the list of choices
    formula: str  # LaTeX, as `Notation.latex` takes it
    text: str  # what it changes, in one or two sentences
    compute: Callable[[Look, float], Outcome]  # gets its temperature
    temperatures: tuple[float, ...] = ()  # those that are offered, the first one first


def _scored(look: Look, scores: Doubles, placed: bool = True) -> Outcome:
    """The softmax of other scores, to which positions add what they add here, if they are to be
    placed."""
    if placed and look.inside.bias is not None:
        scores = scores + look.inside.bias
    weights = arithmetic.softmax(scores, look.view.mask[0])
    line = LedgerRow("what if: score", scores, masked=True, what_if=True)
    return _weighed(look, weights, line)


def _weighed(look: Look, weights: Doubles, *above: LedgerRow) -> Outcome:
    """What other weights give, with their line of the calculation under those above it."""
    line = LedgerRow("what if: weight", weights, share=True, masked=True, what_if=True)
    return Outcome(weights, weights @ look.view.value, (*above, line))


ARITHMETIC = {
    "no-projections": Arithmetic(
        "scores without W_Q and W_K",
        (
            r"SCORE_j = \frac{OWN \cdot SOURCE_j}{\sqrt{d_{model}}}, \quad OUTPUT = \sum_j "
            r"WEIGHT_j\, "
            r"v_j"
        ),
        "The inputs are compared as they are: nothing about the scores is learned, and all heads "
        "of the layer would have the same. The values v still come from this head's third "
        "matrix. In self-attention, a token is usually most like itself.",
        lambda look, _: _scored(
            look, arithmetic.without_projections(look.inside.read, look.inside.sources)
        ),
    ),
    "no-scale": Arithmetic(
        "no ÷ √d_k",
        r"SCORE_j = q \cdot k_j",
        "The scores grow √d_k-fold. The softmax saturates: in most rows one weight comes close "
        "to 1, and the gradient close to 0, so training would hardly change that weight (section "
        "3.2.1 of the paper).",
        lambda look, _: _scored(look, look.inside.products.astype(np.float64)),
    ),
    "temperature": Arithmetic(
        "temperature",
        r"WEIGHT = \mathrm{softmax}(SCORE / T)",
        "If T is below 1, the largest score takes a larger share. If T is above 1, the weights "
        "become more alike.",
        lambda look, t: _scored(look, look.view.scores[0].astype(np.float64) / t, False),
        (2.0, 0.1, 0.25, 0.5, 4.0, 10.0),
    ),
    "hard": Arithmetic(
        "hard attention",
        r"WEIGHT_j = \begin{cases} 1 & j = \arg\max_i SCORE_i \\ 0 & \text{else} \end{cases}",
        "The best key takes all. The gradient of an arg max is 0 almost everywhere, so gradients "
        "alone cannot train it. REINFORCE draws a key at random and makes lucky draws more "
        "likely; Gumbel-softmax adds noise to the scores and takes a softmax of low temperature, "
        "so that a gradient flows.",
        lambda look, _: _weighed(look, arithmetic.hard(look.view.scores[0], look.view.mask[0])),
    ),
}


def _offered(look: Look) -> dict[str, Arithmetic]:
    """Those that compute something else than the model does: one that never divides cannot leave it
    out."""
    return {
        name: each
        for name, each in ARITHMETIC.items()
        if name != "no-scale" or look.inside.divisor != 1
    }


def fitted(look: Look, change: WhatIf | None) -> tuple[str, float]:
    """The arithmetic that a state asks for, and its temperature; no name for the model's."""
    name, number = change or ("", None)
    if name not in _offered(look):
        return "", 0.0
    return name, (*ARITHMETIC[name].temperatures, 0.0)[0] if number is None else number


def controls(look: Look, change: WhatIf | None) -> None:
    name, number = fitted(look, change)
    with st.container(horizontal=True, vertical_alignment="center", key="what-if"):
        st.markdown("**What if** this head computed otherwise?", width="content")
        names = {
            "": "the model's arithmetic",
            **{key: each.label for key, each in _offered(look).items()},
        }
        take = lambda chosen: session.change(what_if=(chosen, None) if chosen else None)  # noqa: E731
        pickers.choose("what_if", "Other arithmetic", names, name, take, width=260)
        if not name:
            return
        if usual := ARITHMETIC[name].temperatures:
            choices = {each: f"T = {each:g}" for each in sorted({*map(float, usual), number})}
            take = lambda chosen: session.change(what_if=(name, float(chosen)))  # noqa: E731
            pickers.choose("what_if.number", "Number", choices, number, take, texts=True, width=150)
        st.badge(BADGE, color="gray", icon=":material/science:")


def difference(look: Look, change: WhatIf | None) -> Contents | None:
    """What other arithmetic changes for this query; None if the model's own is chosen."""
    found = look.outcome
    (name, _) = fitted(look, change)
    if found is None:
        return None
    mask = look.view.mask[0]
    symbols = look.symbols
    output = look.view.output[0]
    own, other = (
        arithmetic.saturation(each, mask) for each in (look.view.weights[0], found.weights)
    )
    gradient = "0 (arg max)" if name == "hard" else f"{other.gradient:.3f}"
    moved = np.linalg.norm(found.output - output) / max(float(np.linalg.norm(output)), 1e-9)
    letters = f"{symbols.weight}/∂{symbols.score}"
    return Contents(
        [ARITHMETIC[name].formula],
        f"{ARITHMETIC[name].text} This switch changes only the arithmetic of this head; nothing "
        "after it is computed again.",
        [],
        "| | the model | what if |\n|--|--|--|\n"
        f"| largest weight | {own.largest:.2f} | {other.largest:.2f} |\n"
        f"| entropy, as a share of that of equal weights | {own.entropy:.2f} | {other.entropy:.2f} "
        "|\n"
        f"| gradient of the softmax, ‖∂{letters}‖ | {own.gradient:.3f} | {gradient} |\n"
        f"| {symbols.output} moves by, as a multiple of its length | – | {moved:.2f} |",
    )
