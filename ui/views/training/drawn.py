"""A picture of the page Training, with its caption, its explanation and its export."""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go
import streamlit as st

from ui.controls import export
from ui.controls.export import Table
from ui.controls.text import plain


def draw(
    name: str,
    make: Callable[[], go.Figure],
    caption: str,
    explain: Callable[[], None],
    table: Callable[[], Table],
) -> None:
    """Draws a figure that takes no clicks and does not depend on the sentence.

    Args:
        name: unique on the page; also the name of the file.
        make: draws the figure.
        caption: what the figure shows.
        explain: draws the explanation.
        table: makes the numbers, for CSV.
    """
    st.plotly_chart(make(), key=f"training.{name}", config={"displayModeBar": False}, alt=caption)
    st.caption(plain(caption))
    with st.container(horizontal=True, gap="small"):
        explain()
        export.picture(name, make, caption, sentence=False, table=table)
