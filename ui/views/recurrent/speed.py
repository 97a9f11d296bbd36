"""Speed: tokens per second in training, and milliseconds per written token, by length."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import streamlit as st

from figures.pages.positions import Interval, measured_lines, twin_name
from ui.address.state import State
from ui.controls import pickers
from ui.controls.export import Table
from ui.controls.text import plain
from ui.server import measured
from ui.views.recurrent import drawn, told

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
    """Draws the section."""
    results = measured.shipped(measured.RECURRENT)
    if results is None or "speed" not in results:
        drawn.unmeasured("recurrent")
        return
    speed, reference = results["speed"], results["reference"]
    st.markdown(told.ratios(speed, reference))
    st.markdown(told.sequential(results))
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
    st.markdown(told.within(results))
    st.caption(plain(told.sizes(results)))
    with st.container(horizontal=True, gap="small"):
        pickers.seen("What am I seeing?", _SEEING)
        drawn.how(results)


def _speed(results: Json, kind: str, what: str) -> None:
    speed = results["speed"]
    found = {told.shown(name, results): _cells(values) for name, values in speed[kind].items()}
    machine = speed["machine"]

    def draw() -> go.Figure:
        figure = measured_lines(
            speed["lengths"], found, ("tokens in the sentence", _TITLES[kind]), height=330
        )
        return figure.update_yaxes(type="linear", rangemode="tozero", dtick=None)

    drawn.draw(
        kind,
        draw,
        f"{what} · best of {speed['repeats']} runs, the bar ends at their median · processor time of one "
        f"core, {machine['processor']}, float32 products",
        "; ".join(f"{twin_name(name)}: {_told(speed, kind, name)}" for name in speed[kind]),
        lambda: table(speed, kind),
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
