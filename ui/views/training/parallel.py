"""What one pass over the whole target saves: time of training's way and of inference's, by target length."""

from __future__ import annotations

from typing import Any

import streamlit as st

from figures.pages.training.cost import Cost, costs
from ui.controls import pickers
from ui.controls.export import Table
from ui.server import measured
from ui.views.training import drawn, prices

Json = dict[str, Any]
_WAYS = {
    "parallel": "all at once (training)",
    "cached": "one by one, keys and values kept",
    "again": "one by one, computed again",
}
_SEEING = (
    "The decoder predicts targets of several lengths in three ways. In training, one pass computes all "
    "positions. Inference needs a pass per token: with a cache, a pass computes one position; without one, "
    "all positions so far. The first two do almost the same arithmetic. One pass reads the weights and "
    "starts every operation only once, not again for each token."
)


def show() -> None:
    """Draws the times; nothing if none were measured."""
    found = measured.shipped(measured.COST)
    if found is None:
        return
    decoding = found["decoding"]
    lines = [
        Cost(way, name, decoding["lengths"], decoding["ways"][way]["milliseconds"])
        for way, name in _WAYS.items()
    ]
    caption = (
        f"Processor time of the decoder by target length, source of {decoding['source']} tokens · "
        f"{decoding['model']} · {prices.where(found)}"
    )
    st.markdown("##### One pass, or one pass per token")
    st.markdown(prices.ways(found))
    drawn.draw(
        "parallel",
        lambda: costs(lines, ("tokens of the target", "ms")),
        caption,
        lambda: pickers.seen("What am I seeing?", _SEEING),
        lambda: table(decoding),
    )


def table(decoding: Json) -> Table:
    """The times and their ratio to one pass, for CSV."""
    parallel = decoding["ways"]["parallel"]["milliseconds"]
    rows = [
        (way, length, least, middle, least / one)
        for way, values in decoding["ways"].items()
        for length, least, middle, one in zip(
            decoding["lengths"], values["milliseconds"], values["medians"], parallel, strict=True
        )
    ]
    return [("way", "tokens", "least ms", "median ms", "ratio to one pass"), *rows]
