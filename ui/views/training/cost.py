"""Cost: Table 1 of the paper, beside what layers of each kind take on a machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from figures.pages.training.cost import Cost, costs
from lab.cost.table import LAYERS, NEIGHBOURHOOD
from ui.address import session
from ui.address.state import State
from ui.address.values import MODEL_WIDTHS
from ui.controls import pickers
from ui.controls.export import Table
from ui.controls.text import plain
from ui.server import measured
from ui.server.opened import Opened
from ui.views.training import drawn, prices

Json = dict[str, Any]
_MISSING = "Nothing was measured here; `python -m lab cost` does it and writes assets/cost.json."
_SEEING = (
    "A layer with random weights reads n random vectors. On logarithmic axes a power of n is a straight "
    "line, its exponent the slope. Fixed costs flatten the left end; projections (n · d²) keep "
    "self-attention below n². Written out, it also pays for memory that the system hands out anew in each "
    "pass, so its time can outgrow n²."
)
_COUNTED = (
    "The paper counts only the products that Table 1 names. Self-attention compares every token with every "
    "other one, d numbers each: n² · d. A recurrent layer multiplies every token with a d × d matrix: "
    "n · d². The two are equal where n = d."
)
_MEMORY = (
    "The most that all tensors of the pass hold at once, weights of the layer not counted. Fused "
    "self-attention computes the same as the written-out one, but keeps no n × n matrix: so its time is "
    "quadratic and its memory is not."
)
_COUNTED_LENGTHS = tuple(2**i for i in range(4, 15))


def show(_opened: Opened, now: State) -> None:
    """Draws the section."""
    found = measured.shipped(measured.COST)
    if found is None:
        st.info(_MISSING, icon=":material/info:")
        return
    width = prices.nearest(found, now.width)
    _controls(now)
    st.markdown(prices.growth(found, width))
    st.markdown(prices.table(found, width))
    st.caption(plain(prices.basis(found, width)))
    left, right = st.columns(2, gap="medium")
    with left:
        _measured(found, width, "milliseconds", "Processor time of one pass", _SEEING)
    with right:
        _measured(found, width, "megabytes", "Memory of one pass", _MEMORY)
    _counted(found, now.width, width)


def _controls(now: State) -> None:
    with st.container(width=300):
        pickers.slide(
            "width",
            "d, numbers per token",
            MODEL_WIDTHS,
            now.width,
            lambda each: session.change(width=int(each)),
            16,
        )


def _measured(found: Json, width: int, quantity: str, title: str, seeing: str) -> None:
    unit = {"milliseconds": "ms", "megabytes": "MB"}[quantity]
    lines = [
        Cost(kind, prices.name(kind), found["lengths"], values[quantity])
        for kind, values in found["widths"][str(width)].items()
    ]
    caption = f"{title} against its length · d = {width} · {prices.where(found)}"
    _picture(quantity, lambda: costs(lines, ("n, tokens", unit)), caption, seeing, lambda: table(found))


def _counted(found: Json, d: int, width: int) -> None:
    st.markdown("##### Where n² · d meets n · d²")
    st.markdown(prices.meets(found, d, width))
    lengths = sorted({*_COUNTED_LENGTHS, d})
    lines = [
        Cost(kind, layer.name, lengths, [layer.operations(n, d) for n in lengths])
        for kind, layer in LAYERS.items()
    ]
    caption = f"Operations per layer by Table 1, counted, not measured · d = {d:,} · r = {NEIGHBOURHOOD}"

    def draw() -> go.Figure:
        return costs(lines, ("n, tokens", "operations"), (d, f"n = d = {d:,}"), points=False)

    _picture("operations", draw, caption, _COUNTED, lambda: counted(lines))


def _picture(
    name: str, draw: Callable[[], go.Figure], caption: str, seeing: str, numbers: Callable[[], Table]
) -> None:
    drawn.draw(f"cost {name}", draw, caption, lambda: pickers.seen("What am I seeing?", seeing), numbers)


def table(found: Json) -> Table:
    """All measurements, for CSV."""
    names = ("layer", "d", "n", "least ms", "median ms", "MB")
    rows = [
        (kind, int(width), *each)
        for width, kinds in found["widths"].items()
        for kind, values in kinds.items()
        for each in zip(
            found["lengths"], values["milliseconds"], values["medians"], values["megabytes"], strict=True
        )
    ]
    return [names, *rows]


def counted(lines: list[Cost]) -> Table:
    """The counted operations, for CSV."""
    rows = [(each.key, n, value) for each in lines for n, value in zip(each.x, each.y, strict=True)]
    return [("layer", "n", "operations"), *rows]
