"""Hard attention: soft and hard attention learn the same toy task, as curves."""

from __future__ import annotations

from typing import Any

import streamlit as st

from figures.pages.recurrent import soft_and_hard
from transformer.training.toys.tasks import TOYS
from ui.address.state import State
from ui.controls import pickers
from ui.controls.export import Table
from ui.server import measured
from ui.views.recurrent import drawn, told

Json = dict[str, Any]
_SEEING = (
    "Soft attention reads a mixture of all positions, and its gradient is exact. Hard attention draws one "
    "position, so nothing can be differentiated through the draw: REINFORCE makes a draw more likely if it "
    "did better than a baseline, here the running mean of rewards. That is right on average and noisy, which "
    "the variance of the gradient shows."
)
_FORMULA = (
    r"\frac{\partial L}{\partial W} \approx \sum_t \frac{\partial \log p(y_t \mid s_t)}{\partial W} "
    r"+ \left(\log p(y_t \mid s_t) - b\right) \frac{\partial \log \alpha_t(s_t)}{\partial W}, "
    r"\qquad s_t \sim \alpha_t"
)


def show(_now: State) -> None:
    """Draws the section."""
    found = measured.shipped(measured.HARD)
    if found is None:
        drawn.unmeasured("hard-attention")
        return
    st.markdown(told.learned(found))
    steps, methods = found["methods"]["soft"]["steps"], found["methods"]
    drawn.draw(
        "hard attention",
        lambda: soft_and_hard(steps, methods),
        f"A GRU of {found['d_model']} numbers with additive scores, which {TOYS[found['task']].about} (2 to "
        f"{found['longest']} letters) · {found['seeds']} seeds of each, one line a seed · exact: share of "
        f"{found['held_out']} fresh sequences given back without a mistake; hard attention then reads the "
        f"position of largest weight · variance: of the gradient over {found['estimates']} fresh batches of "
        f"{found['batch']} sequences, summed over all parameters",
        told.learned(found),
        lambda: table(found),
    )
    st.markdown(told.baseline(found))
    with st.container(horizontal=True, gap="small"):
        pickers.seen("What am I seeing?", _SEEING, _FORMULA)
        drawn.how(found)
    st.caption("Xu et al. 2015, section 4.1; Williams 1992. These models are not among the twins.")


def table(found: Json) -> Table:
    """All curves, for CSV."""
    rows = [
        (method, quantity, seed, step, value)
        for method, curves in found["methods"].items()
        for quantity, runs in curves.items()
        if quantity != "steps"
        for seed, run in enumerate(runs, start=1)
        for step, value in zip(curves["steps"], run, strict=True)
    ]
    return [("attention", "quantity", "seed", "step", "value"), *rows]
