"""The batch on the page of masks: its sentences, the rectangle they make, and the one that is shown."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from figures.base.bars import percent
from figures.pages.masks import padding_grid
from transformer.runs.batch import BatchEntry
from ui.address import session
from ui.address.state import State
from ui.controls import export, options, pickers
from ui.controls.text import plain
from ui.server import computed
from ui.server.opened import Opened
from ui.views.masks.padded import LONGER

MOST_SENTENCES = 6
SHORT = "Thank you."
_SHORT = 8
"""The longest row of a batch, in tokens, that fits the width of a phone."""


def member(opened: Opened, now: State) -> tuple[BatchEntry, int] | None:
    """Draws the sentences and their rectangle; returns the chosen one and its index, None after an error."""
    given = (now.sentences or "").strip()
    text = given or "\n".join((opened.translation.source_text, LONGER, SHORT))
    st.text_area(
        f"The sentences of the batch, one per line, at most {MOST_SENTENCES}",
        text,
        height=104,
        **pickers.control("sentences", text, _take_sentences),
    )
    lines = [line for line in text.splitlines() if line.strip()][:MOST_SENTENCES]
    try:
        entries = computed.batch(opened.asked.model, tuple(lines))
    except ValueError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return None
    index = min(now.member or 0, len(entries) - 1)
    _rectangle(entries, index)
    _picker(lines, index)
    return entries[index], index


def _take_sentences(text: str) -> None:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > MOST_SENTENCES:
        st.toast(f"A batch here holds at most {MOST_SENTENCES} sentences. The others are left out.")
    session.change(sentences="\n".join(lines[:MOST_SENTENCES]) or None, member=None)


def _rectangle(entries: tuple[BatchEntry, ...], index: int) -> None:
    mask = np.stack([entry.source_mask for entry in entries])
    padding = int((~mask).sum())
    sentences = f"{len(entries)} sentence{'s' * (len(entries) != 1)}"
    st.markdown(
        f"{sentences} × {mask.shape[1]} tokens make a rectangle of {mask.size} positions; "
        f"**{padding} of them ({percent(padding / mask.size)}) are `<pad>`** and hatched."
    )

    def draw() -> go.Figure:
        return padding_grid([entry.source_tokens for entry in entries], mask, index)

    with st.container(key=f"masks-batch-{'long' if mask.shape[1] > _SHORT else 'short'}"):
        st.plotly_chart(
            draw(),
            key="masks.batch",
            config={"displayModeBar": False},
            alt=f"The batch of {sentences}: {padding} of {mask.size} positions are padding",
        )
    caption = f"Source tokens of the batch · {padding} of {mask.size} positions padded · {entries[0].model}"
    export.picture("batch", draw, caption)


def _picker(lines: list[str], index: int) -> None:
    offered = {i: plain(text) for i, text in options.sentences(lines).items()}
    pickers.switch(
        "member",
        "Sentence of the batch",
        offered,
        index,
        lambda i: session.change(member=i or None),
        texts=True,
    )
