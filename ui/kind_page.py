"""The page of one kind of attention: all its heads, the selected one large, the row of the cursor as bars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from figures import row_bars_spec
from figures.lines import links
from transformer.reading import ReadView
from ui import all_heads, display, linked_view, models, reading, state, widgets
from ui.explorer import Scene, chosen, explorer, place, read_head
from ui.linked_view import Layout
from ui.widgets import Opened


@dataclass(frozen=True)
class KindPage:
    """What differs between the three pages.

    Attributes:
        kind: encoder, decoder or cross.
        strips: the token strips shown.
        cursor: what the slider moves: `step` or `source`.
        note: what to notice, under the picture.
        seeing: the explanation, at most 60 words.
        formula: LaTeX.
    """

    kind: str
    strips: tuple[str, ...]
    cursor: str
    note: str
    seeing: str
    formula: str

    def layout(self, opened: Opened) -> Layout:
        """The linked view of the page, as the state asks for it."""
        show = state.current().show
        focus = self.kind if show == "matrix" else show
        plots: tuple[str, ...] = ("overview", focus, "row")
        if reading.is_windowed(opened.translation, self.kind):
            plots = (*plots, "whole")
        return Layout(self.kind, "page", self.strips, plots, focus, self.cursor)


def show(
    page: KindPage, opened: Opened, fade: bool = True, controls: Callable[[], None] | None = None
) -> None:
    """Draws the page of a kind for one sentence."""

    def below() -> None:
        left, right = st.columns([1, 1.2], gap="small", vertical_alignment="center")
        with left:
            all_heads.pickers(opened, page.kind)
        with right, st.container(horizontal=True):
            display.table(read_head(opened, page.kind))
            widgets.seen("What am I seeing?", page.seeing, page.formula)
        st.markdown(page.note)
        if controls is not None:
            controls()

    def above() -> None:
        with st.container(horizontal=True, vertical_alignment="center"):
            with st.container(width=260):
                widgets.head_picker(page.kind, opened.asked.model)
            display.shows()
            display.popover((page.kind,))
        if state.current().show == "lines":
            display.lines(page.kind, opened.asked.model)

    explorer(
        Scene(
            lambda: page.layout(opened),
            opened,
            (page.kind,),
            lambda: _extra(page, opened, fade),
            below,
            fade=fade,
            largest=520,
            above=above,
        )
    )


def _extra(page: KindPage, opened: Opened, fade: bool) -> dict[str, dict[str, Any]]:
    kind, translation, now = page.kind, opened.translation, state.current()
    view = read_head(opened, kind)
    row = linked_view.bars_feed(
        opened.trace,
        row_bars_spec(view),
        "source" if kind == "encoder" else "step",
        "The row of the cursor",
        "",
        "weights of one row, from 0 to 1",
        230,
        view.rows,
    )
    feeds = {"overview": all_heads.feed(opened, kind), "row": {**row, "hue": kind}}
    whole = models.lengths(translation, kind)
    if now.show == "lines":
        feeds["lines"] = _lines(opened, kind, view, whole) | {"fade": fade and kind != "encoder"}
    if now.show == "strongest":
        feeds["strongest"] = linked_view.strongest_feed(opened.trace, view, now.scale, whole)
    if reading.is_windowed(translation, kind):
        arrays = reading.whole(translation, kind, chosen(kind))
        axes = reading.axes(translation, kind)
        feeds["whole"] = linked_view.whole_feed(opened.trace, kind, arrays, axes, now.scale)
    return feeds


def _lines(opened: Opened, kind: str, view: ReadView, whole: tuple[int, int]) -> dict[str, Any]:
    now = state.current()
    layers, heads = models.sizes(opened.asked.model)[kind]
    others = [
        head for head in now.more or () if head[0] < layers and head[1] < heads and head != chosen(kind)
    ]
    views = [view, *(reading.view(opened.translation, kind, head, place(opened, kind)) for head in others)]
    name, _, number = now.links.partition("-")
    share = int(number) / 100
    mass, threshold = (share, 0.0) if name == "mass" else (None, share)
    found = [links(each, mass, threshold) for each in views]
    return linked_view.lines_feed(opened.trace, views, found, display.links_name(), whole=whole)
