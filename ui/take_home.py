"""The export button of a linked view: its figures, what is on the screen as JSON, the whole run as NPZ."""

from __future__ import annotations

import io
from collections.abc import Callable

import streamlit as st

from transformer import Translation, save_trace, save_view
from transformer.capture import HeadView
from transformer.model import Transformer
from transformer.trace_json import Selection
from ui import models, state
from ui.export import Picture, file_name, offer
from ui.widgets import Opened

KEY = "export.run"


@st.fragment
def take_home(
    opened: Opened, pictures: Callable[[], dict[str, Picture]], shown: Callable[[], HeadView]
) -> None:
    """Draws the button; nothing is made before it is opened.

    Args:
        opened: the sentence.
        pictures: makes the figures on the screen, by the name that the visitor reads.
        shown: makes the matrix that goes into the JSON file.
    """
    box = st.popover("export", type="tertiary", icon=":material/download:", key=KEY, on_change="rerun")
    if box.open:
        with box:
            offer("run", pictures())
            st.divider()
            _run(opened, shown())


def _run(opened: Opened, view: HeadView) -> None:
    run, name = opened.translation, file_name(f"{opened.translation.model} {opened.asked.text}")
    model = models.translator(opened.asked.model).model if models.has_model(opened.asked.model) else None
    selection = _selection()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown("This run")
        st.download_button(
            "JSON",
            lambda: view_file(run, view, selection),
            f"{name}.json",
            "application/json",
            key=f"{KEY}.json",
            on_click="ignore",
        )
        st.download_button(
            "NPZ",
            lambda: trace_file(run, model),
            f"{name}.npz",
            "application/octet-stream",
            key=f"{KEY}.npz",
            on_click="ignore",
        )
    st.caption(
        "JSON: tokens, steps, alternatives, your selection, the matrix shown. NPZ: the whole trace. "
        "Both open again under “Open a file” and in Python, also where the model is not."
    )


def _selection() -> Selection:
    cursor, now = state.cursor(), state.current()
    heads = {kind: head for kind in models.KINDS if (head := getattr(now, kind)) is not None}
    return Selection(cursor.step, cursor.source, heads)


def view_file(run: Translation, view: HeadView, selection: Selection) -> bytes:
    """The content of the JSON file."""
    file = io.BytesIO()
    save_view(run, view, file, selection)
    return file.getvalue()


def trace_file(run: Translation, model: Transformer | None) -> bytes:
    """The content of the NPZ file."""
    file = io.BytesIO()
    save_trace(run, file, model)
    return file.getvalue()
