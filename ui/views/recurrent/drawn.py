"""A picture of the page Recurrent that does not depend on the sentence, with its caption and its export."""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go
import streamlit as st

from ui.controls import export
from ui.controls.export import Table
from ui.controls.text import command, plain


def draw(
    name: str,  # unique on the page; also the name of the file
    make: Callable[[], go.Figure],  # draws the figure
    caption: str,  # what the figure shows
    alt: str,  # its numbers, for visitors who cannot see it
    table: Callable[[], Table] | None = None,  # makes the numbers, for CSV
) -> None:
    """Draws a figure."""
    config = {"displayModeBar": False}
    st.plotly_chart(make(), key=f"recurrent.{name}", config=config, alt=f"{caption}. {alt}")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(plain(caption), width="stretch")
        export.picture(f"recurrent {name}", make, caption, sentence=False, table=table)


def how(found: dict[str, object]) -> None:
    """Draws how and when something was measured, one click away."""
    with st.popover("How it was measured", type="tertiary", icon=":material/help:"):
        again = found.get("again")
        for each in (found, *(again.values() if isinstance(again, dict) else ())):
            st.caption(str(each["date"]))
            st.code(command(str(each["command"])), language="sh", wrap_lines=True)


def unmeasured(command_name: str) -> None:
    """Says that nothing was measured yet."""
    st.info(
        f"Nothing was measured here yet; `python -m transformer {command_name}` does it.",
        icon=":material/info:",
    )
