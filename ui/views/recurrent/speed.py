"""Speed: tokens per second in training, and milliseconds per written token, by length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from figures.pages.positions import Interval, measured_lines, twin_name
from ui.address import State
from ui.controls import Table, how, panel, plain, seen
from ui.server import measured
from ui.views.recurrent.results import shown, sizes, unmeasured

Json = dict[str, Any]
_TITLES = {"training": "target tokens per second", "writing": "ms per token"}
_SEEING = (
    "In training, the whole target is known: attention computes all positions in one pass, a GRU one after "
    "another. One core does everything one after another anyway, so here the count of products decides; a "
    "GPU, with thousands of lanes, is mostly idle while a GRU takes its steps. The cost of all "
    "scores grows with the square of the length; additive ones pass every sum of query and key through a "
    "tanh, for which there is no fused kernel. Writing is one by one in all models."
)


def show(_now: State) -> None:
    results = measured.shipped(measured.RECURRENT)
    if results is None or "speed" not in results:
        unmeasured("recurrent")
        return
    speed, reference = results["speed"], results["reference"]
    st.markdown(ratios(speed, reference))
    st.markdown(sequential(results))
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("##### Training: a whole target at once")
        what = (
            f"Forward and backward pass of {speed['positions']:,} target tokens, sources as long as targets"
        )
        _speed(results, "training", what)
    with right:
        st.markdown("##### Writing: one token after another")
        what = "Greedy decoding with a cache, one sentence, without the encoder"
        _speed(results, "writing", what)
    st.markdown(within(results))
    st.caption(plain(sizes(results)))
    with st.container(horizontal=True, gap="small"):
        seen(_SEEING)
        how(results)


def _speed(results: Json, kind: str, what: str) -> None:
    speed = results["speed"]
    found = {shown(name, results): _cells(values) for name, values in speed[kind].items()}
    machine = speed["machine"]

    def draw() -> go.Figure:
        figure = measured_lines(
            speed["lengths"], found, ("tokens in the sentence", _TITLES[kind]), height=330
        )
        return figure.update_yaxes(type="linear", rangemode="tozero", dtick=None)

    panel(
        f"recurrent {kind}",
        draw,
        f"{what} · best of {speed['repeats']} runs, the bar ends at their median · processor time of one "
        f"core, {machine['processor']}, float32 products",
        lambda: table(speed, kind),
        alt=f"{what}, {_TITLES[kind]}. "
        + "; ".join(f"{twin_name(name)}: {_told(speed, kind, name)}" for name in speed[kind]),
        sentence=False,
    )


def _cells(values: Json) -> list[Interval | None]:
    """The best value of each length, with a bar as far as the median."""
    return [
        Interval(best, min(best, median), max(best, median))
        for best, median in zip(values["best"], values["median"], strict=True)
    ]


def _told(speed: Json, kind: str, name: str) -> str:
    values = speed[kind][name]["best"]
    return ", ".join(f"{n} tokens {value:g}" for n, value in zip(speed["lengths"], values, strict=True))


def table(speed: Json, kind: str) -> Table:
    """All measurements, for CSV."""
    rows = [
        (name, n, *each)
        for name, values in speed[kind].items()
        for n, *each in zip(speed["lengths"], values["best"], values["median"], values["ratio"], strict=True)
    ]
    return [("model", "tokens", f"{_TITLES[kind]}, best", "median", "ratio to the Transformer"), *rows]


def ratios(speed: Json, reference: str) -> str:
    """The ratios of both speeds between the shortest and the longest sentences."""
    lengths = speed["lengths"]
    parts = []
    for kind, unit in (("training", "tokens per second in training"), ("writing", "time per written token")):
        found = {each: values["ratio"] for each, values in speed[kind].items() if each != reference}
        ends = [_span([ratio[at] for ratio in found.values()]) for at in (0, -1)]
        parts.append(f"**{unit}**: {ends[0]} at {lengths[0]} tokens, {ends[1]} at {lengths[-1]}")
    return f"The recurrent twins against the Transformer, as ratios: {'; '.join(parts)}."


def sequential(results: Json) -> str:
    """Why the fastest recurrent twin compares as it does on one core, and what differs elsewhere."""
    speed, reference, models = results["speed"], results["reference"], results["models"]
    others = {each: values for each, values in speed["training"].items() if each != reference}
    name = max(others, key=lambda each: others[each]["best"][-1])
    short, long = speed["lengths"][0], speed["lengths"][-1]
    first, last = others[name]["ratio"][0], others[name]["ratio"][-1]
    positions = speed["positions"]
    own, other = (models[each]["parameters"] / 1e6 for each in (name, reference))
    return (
        f"**One after another, or all at once.** Each batch has {positions:,} target tokens. A GRU must "
        f"finish one position before the next, so each step multiplies one row of every sentence: "
        f"{positions // short:,} rows at {short} tokens, {positions // long:,} at {long}. The Transformer "
        f"multiplies all {positions:,} at once. One core does a row after another in any case, so what "
        f"counts there is how much there is to multiply: “{shown(name, results)}”, with {own:.2f} M "
        f"parameters against {other:.2f} M, trains {first:.2f} times as fast at {short} tokens and "
        f"{last:.2f} times at {long}. A GPU multiplies thousands of rows at once. What would count there is "
        "how many steps must wait for an earlier one: in a GRU, one per token. No GPU was measured here."
    )


def _span(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return f"×\u00a0{low}" if low == high else f"×\u00a0{low} to {high}"


def within(results: Json) -> str:
    """Cost of a token that is written, against one that is trained on, inside each model."""
    speed = results["speed"]
    at = len(speed["lengths"]) - 1
    told = []
    for each in speed["training"]:
        trained = 1000 / speed["training"][each]["best"][at]
        told.append(f"{shown(each, results)} {speed['writing'][each]['best'][at] / trained:.1f}")
    return (
        f"Writing a token takes this many times as long as training on one (forward and backward), at "
        f"{speed['lengths'][at]} tokens: {', '.join(told)}."
    )
