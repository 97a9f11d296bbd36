"""Hard attention: soft and hard attention learn the same toy task, as curves."""

from __future__ import annotations

import statistics
from typing import Any

import streamlit as st

from figures.base import labels
from figures.pages.recurrent import soft_and_hard
from transformer.training.toys.tasks import TOYS
from ui.address import State
from ui.controls import Table, how, panel, seen
from ui.server import measured
from ui.views.recurrent.results import unmeasured

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
    found = measured.shipped(measured.HARD)
    if found is None:
        unmeasured("hard-attention")
        return
    st.markdown(learned(found))
    steps, methods = found["methods"]["soft"]["steps"], found["methods"]
    panel(
        "recurrent hard attention",
        lambda: soft_and_hard(steps, methods),
        f"A GRU of {found['d_model']} numbers with additive scores, which {TOYS[found['task']].about} (2 to "
        f"{found['longest']} letters) · {found['seeds']} seeds of each, one line a seed · exact: share of "
        f"{found['held_out']} fresh sequences given back without a mistake; hard attention then reads the "
        f"position of largest weight · variance: of the gradient over {found['estimates']} fresh batches of "
        f"{found['batch']} sequences, summed over all parameters",
        lambda: table(found),
        alt=learned(found),
        sentence=False,
    )
    st.markdown(baseline(found))
    with st.container(horizontal=True, gap="small"):
        seen(_SEEING, _FORMULA)
        how(found)
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


def learned(found: Json) -> str:
    """Cost of hard attention on the toy task: steps, exactness and variance."""
    soft, hard = found["methods"]["soft"], found["methods"]["hard"]
    reached = [_reached(each, 0.9) for each in (soft, hard)]
    ends = [_share(each["exact"]) for each in (soft, hard)]
    times = statistics.median(
        statistics.fmean(run[i] for run in hard["variance"])
        / statistics.fmean(run[i] for run in soft["variance"])
        for i in range(1, len(soft["steps"]))
    )
    return (
        f"Soft attention first gives back 90{labels.PER_CENT} of the sequences {reached[0]}, hard attention "
        f"{reached[1]}; after {soft['steps'][-1]:,} steps they give back {ends[0]} and {ends[1]}. In the "
        f"middle of the measurements, the variance of the gradient of hard attention is **{times:.0f} "
        "times** that of soft attention at the same step."
    )


def _reached(curves: Json, share: float) -> str:
    """The first measured steps at which each seed reaches a share."""
    steps = []
    for run in curves["exact"]:
        at = next((step for step, exact in zip(curves["steps"], run, strict=True) if exact >= share), None)
        if at is None:
            return f"in not every run of {len(curves['exact'])}"
        steps.append(at)
    low, high = min(steps), max(steps)
    return f"after {low:,} steps" if low == high else f"after {low:,} to {high:,} steps"


def _share(runs: list[list[float]]) -> str:
    low, high = (round(100 * each, 1) for each in (min(r[-1] for r in runs), max(r[-1] for r in runs)))
    return f"{low:g} to {high:g}{labels.PER_CENT}"


def baseline(found: Json) -> str:
    """Variance that the baseline removes: where it helps most, and in how many cases it helps."""
    hard = found["methods"]["hard"]
    means = [
        [statistics.fmean(run[i] for run in hard[name]) for i in range(len(hard["steps"]))]
        for name in ("variance", "without")
    ]
    shares = [with_ / without for with_, without in zip(*means, strict=True)]
    at = min(range(len(shares)), key=shares.__getitem__)
    helps = sum(share < 1 for share in shares)
    return (
        f"The baseline helps most at step {hard['steps'][at]:,}: there it takes the variance from "
        f"{means[1][at]:.2f} to {means[0][at]:.2f}. It lowers the variance at {helps} of {len(shares)} "
        "measured steps. "
        "Once the model is mostly right, most rewards are near 0, and little is left to take away."
    )
