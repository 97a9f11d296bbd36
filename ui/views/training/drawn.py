"""A picture of the page Training, with its caption, its explanation and its export."""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go
import streamlit as st

from ui.controls import export
from ui.controls.export import Table
from ui.controls.text import plain


def draw(
    name: str,  # unique on the page; also the name of the file
    make: Callable[[], go.Figure],  # draws the figure
    caption: str,  # what the figure shows
    explain: Callable[[], None],  # draws the explanation
    table: Callable[[], Table],  # makes the numbers, for CSV
) -> None:
    """Draws a figure that takes no clicks and does not depend on the sentence."""
    st.plotly_chart(make(), key=f"training.{name}", config={"displayModeBar": False}, alt=caption)
    st.caption(plain(caption))
    with st.container(horizontal=True, gap="small"):
        explain()
        export.picture(name, make, caption, sentence=False, table=table)
