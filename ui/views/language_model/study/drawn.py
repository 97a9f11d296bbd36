"""A picture of a study section, with its caption, its explanation and its export; and what is missing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from transformer.storage import marks
from transformer.storage.description import LANGUAGE_FILE, WEIGHTS_FILE
from transformer.storage.marks import DIGESTS
from ui.controls import export, pickers
from ui.controls.export import Table
from ui.controls.text import plain
from ui.server import measured as server

Json = dict[str, Any]


def known(model: str, part: str) -> Json | None:
    """One part of the measurements that came with a model; says so if there is none."""
    with suppress(KeyError, OSError, ValueError):
        found = server.beside(model, _of_model)
        return found[part] | {"weights": found[DIGESTS][WEIGHTS_FILE][:12]}
    st.info(
        "No such measurement came with this model. `python -m lab language` makes it and writes "
        "language.json into its directory.",
        icon=":material/info:",
    )
    return None


def _of_model(directory: Path) -> Json:
    return marks.measured(directory, LANGUAGE_FILE) or {}


def measured(model: str, found: Json) -> str:
    """Of which model a measurement is, with the hash of its weights, and when it was made."""
    return f"{model.rpartition('/')[2]} (weights {found['weights']}) · measured on {found['date']}"


def draw(
    name: str,  # unique on the page; also the name of the file
    make: Callable[[], go.Figure],  # draws the figure
    caption: str,  # what the figure shows
    seeing: str,  # the explanation, one click away
    table: Callable[[], Table],  # makes the numbers, for CSV
) -> None:
    """Draws a figure that takes no clicks."""
    st.plotly_chart(make(), key=f"language.{name}", config={"displayModeBar": False}, alt=caption)
    below(name, make, caption, seeing, table)


def below(
    name: str, make: Callable[[], go.Figure], caption: str, seeing: str, table: Callable[[], Table]
) -> None:
    """The caption, the explanation and the export of a figure; arguments as in ``draw``."""
    st.caption(plain(caption))
    with st.container(horizontal=True, gap="small"):
        pickers.seen("What am I seeing?", seeing)
        export.picture(name, make, caption, sentence=False, table=table)
