"""The page of one kind of attention: all its heads, the selected one large, the row of the cursor as bars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from figures import lines, row_bars_spec, strongest
from figures.base import labels
from figures.maps.lines import links
from transformer.lenses.reading import ReadView
from ui import linked_view
from ui.address import session
from ui.controls import pickers
from ui.controls.export import Picture
from ui.linked_view import Layout
from ui.maps import display, read_as
from ui.maps.explorer import Scene, chosen, explorer, place, read_head
from ui.maps.take_home import caption_of, take_home
from ui.server import catalogue, runs
from ui.server.opened import Opened
from ui.views.attention import all_heads


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
        show = session.current().show
        focus = self.kind if show == "matrix" else show
        plots: tuple[str, ...] = ("overview", focus, "row")
        if read_as.is_windowed(opened.translation, self.kind):
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
            display.tables(lambda: [read_head(opened, page.kind)])
            pickers.seen("What am I seeing?", page.seeing, page.formula)
            take_home(scene, lambda: _printed(opened, page.kind))
        st.markdown(page.note)
        if controls is not None:
            controls()

    def above() -> None:
        with st.container(horizontal=True, vertical_alignment="center"):
            with st.container(width=260):
                pickers.head_picker(page.kind, opened.asked.model)
            display.shows()
            display.popover((page.kind,))
        if session.current().show == "lines":
            display.lines(page.kind, opened.asked.model)

    scene = Scene(
        lambda: page.layout(opened),
        opened,
        (page.kind,),
        lambda: _extra(page, opened, fade),
        below,
        fade=fade,
        largest=520,
        above=above,
    )
    explorer(scene)


def _extra(page: KindPage, opened: Opened, fade: bool) -> dict[str, dict[str, Any]]:
    kind, translation, now = page.kind, opened.translation, session.current()
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
    whole = runs.lengths(translation, kind)
    if now.show == "lines":
        feeds["lines"] = _lines(opened, kind, view, whole) | {"fade": fade and kind != "encoder"}
    if now.show == "strongest":
        feeds["strongest"] = linked_view.strongest_feed(opened.trace, view, now.scale, whole)
    if read_as.is_windowed(translation, kind):
        arrays = read_as.whole(translation, kind, chosen(kind))
        axes = read_as.axes(translation, kind)
        feeds["whole"] = linked_view.whole_feed(opened.trace, kind, arrays, axes, now.scale)
    return feeds


def _lines(opened: Opened, kind: str, view: ReadView, whole: tuple[int, int]) -> dict[str, Any]:
    views = _together(opened, kind, view)
    found = [links(each, *_kept()) for each in views]
    return linked_view.lines_feed(opened.trace, views, found, display.links_name(), whole=whole)


def _together(opened: Opened, kind: str, view: ReadView) -> list[ReadView]:
    """The heads that are drawn as lines."""
    layers, heads = catalogue.sizes(opened.asked.model)[kind]
    others = [
        head
        for head in session.current().more or ()
        if head[0] < layers and head[1] < heads and head != chosen(kind)
    ]
    at = place(opened, kind)
    return [view, *(read_as.view(opened.translation, kind, head, at) for head in others)]


def _kept() -> tuple[float | None, float]:
    """Which links are drawn: the share of each row, and the smallest weight."""
    name, _, number = session.current().links.partition("-")
    share = int(number) / 100
    return (share, 0.0) if name == "mass" else (None, share)


def _printed(opened: Opened, kind: str) -> dict[str, Picture]:
    """Lines and lists as Plotly figures, for export; the linked view draws them by itself."""
    show, view = session.current().show, read_head(opened, kind)
    if show == "lines":
        views = _together(opened, kind, view)
        heads = ", ".join(labels.head_name(each.layer, each.head) for each in views)
        caption = f"{caption_of(view, opened, None)} · {heads} · {display.links_name()}, thickness = weight"
        return {"lines": Picture(lambda: lines(views, *_kept()), caption, view.audit, view.derived)}
    row = place(opened, kind)[0]
    at = next((i for i, group in enumerate(view.rows) if group.start <= row < group.stop), None)
    if show != "strongest" or at is None:
        return {}
    name = labels.row_names(view.query_tokens, view.predicted_tokens)[at]
    caption = f"{caption_of(view, opened, None)} · the strongest keys, {name}"
    return {"strongest keys": Picture(lambda: strongest(view, at), caption, view.audit, view.derived)}
