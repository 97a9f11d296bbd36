"""The page of one kind of attention: all its heads, the chosen one large, and the cursor's row as bars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from figures import lines, row_bars_spec, strongest
from figures.base import labels
from figures.maps.lines import links
from transformer.lenses.reading import ReadView
from ui import linked_view
from ui.address.parameters import State
from ui.controls import formula, pickers
from ui.controls.export import Picture
from ui.linked_view import Feed, Layout, LinesFeed
from ui.maps import display
from ui.maps.explorer import Scene, explorer
from ui.maps.looking import Looking, Looks
from ui.maps.take_home import caption_of, take_home
from ui.server import catalogue
from ui.server.opened import Opened
from ui.views.attention import all_heads


@dataclass(frozen=True)
class KindPage:
    """What differs between the three pages.

    Attributes:
        kind: encoder, decoder or cross.
        strips: the token strips that the page shows.
        cursor: what the slider moves: `step` or `source`.
        note: the text under the picture that says what to notice.
        seeing: the explanation, at most 60 words.
    """

    kind: str
    strips: tuple[str, ...]
    cursor: str
    note: str
    seeing: str

    def layout(self, now: State, looks: Looks) -> Layout:
        """The layout of the page's linked view for a state."""
        focus = self.kind if now.show == "matrix" else now.show
        plots: tuple[str, ...] = ("overview", focus, "row")
        if looks[self.kind].is_windowed:
            plots = (*plots, "whole")
        return Layout(self.kind, "page", self.strips, plots, focus, self.cursor)


def show(
    page: KindPage, opened: Opened, fade: bool = True, controls: Callable[[], None] | None = None
) -> None:
    """Draws the page of a kind for one sentence."""

    def below(now: State, looks: Looks) -> None:
        look = looks[page.kind]
        left, right = st.columns([1, 1.2], gap="small", vertical_alignment="center")
        with left:
            all_heads.pickers(look, now)
        with right, st.container(horizontal=True):
            display.tables(lambda: [look.read()])
            positions = opened.translation.config.positions
            told = f"{page.seeing} {formula.explained(page.kind, positions)}"
            masked = page.kind == "decoder"
            pickers.seen("What am I seeing?", told, formula.attention(page.kind, positions, masked))
            take_home(scene, lambda now, looks: _printed(looks[page.kind], now))
        st.markdown(page.note)
        if controls is not None:
            controls()

    def above(now: State, looks: Looks) -> None:
        look = looks[page.kind]
        with st.container(horizontal=True, vertical_alignment="center"):
            with st.container(width=260):
                pickers.head_picker(page.kind, look.head, opened.asked.model)
            display.shows(now.show)
            display.popover((page.kind,), now)
        if now.show == "lines":
            display.lines(look, now)

    scene = Scene(
        page.layout,
        opened,
        (page.kind,),
        lambda now, looks: _extra(looks[page.kind], now, fade),
        below,
        fade=fade,
        largest=520,
        above=above,
    )
    explorer(scene)


def _extra(look: Looking, now: State, fade: bool) -> dict[str, Feed]:
    kind, trace, view = look.kind, look.opened.trace, look.read()
    row = linked_view.bars_feed(
        trace,
        row_bars_spec(view),
        "source" if kind == "encoder" else "step",
        "The row of the cursor",
        "",
        "weights of one row, from 0 to 1",
        230,
        view.rows,
    )
    row["hue"] = kind
    feeds: dict[str, Feed] = {"overview": all_heads.feed(look, now), "row": row}
    if now.show == "lines":
        feeds["lines"] = _lines(look, now, view, fade)
    if now.show == "strongest":
        feeds["strongest"] = linked_view.strongest_feed(trace, view, now.scale, look.lengths)
    if look.is_windowed:
        feeds["whole"] = linked_view.whole_feed(trace, kind, look.whole(), look.axes, now.scale)
    return feeds


def _lines(look: Looking, now: State, view: ReadView, fade: bool) -> LinesFeed:
    views = [view, *_others(look, now)]
    found = [links(each, *_kept(now.links)) for each in views]
    told = display.links_name(now.links)
    feed = linked_view.lines_feed(look.opened.trace, views, found, told, whole=look.lengths)
    return {**feed, "fade": fade and look.kind != "encoder"}


def _others(look: Looking, now: State) -> list[ReadView]:
    """The other heads whose lines are drawn together with those of the chosen head."""
    layers, heads = catalogue.sizes(look.opened.asked.model)[look.kind]
    known = [head for head in now.more or () if head[0] < layers and head[1] < heads]
    return [look.read(head) for head in known if head != look.head]


def _kept(asked: str) -> tuple[float | None, float]:
    """Which links are drawn: the share of each row that they carry (None: any), and the smallest weight."""
    name, _, number = asked.partition("-")
    share = int(number) / 100
    return (share, 0.0) if name == "mass" else (None, share)


def _printed(look: Looking, now: State) -> dict[str, Picture]:
    """Lines and lists as Plotly figures for export; on the page, the linked view draws them itself."""
    view = look.read()
    if now.show == "lines":
        views = [view, *_others(look, now)]
        heads = ", ".join(labels.head_name(each.layer, each.head) for each in views)
        told = f"{heads} · {display.links_name(now.links)}, thickness = weight"
        caption = f"{caption_of(view, look, None)} · {told}"
        return {"lines": Picture(lambda: lines(views, *_kept(now.links)), caption, view.audit, view.derived)}
    row = look.cell[0]
    at = next((i for i, group in enumerate(view.rows) if group.start <= row < group.stop), None)
    if now.show != "strongest" or at is None:
        return {}
    name = labels.row_names(view.query_tokens, view.predicted_tokens)[at]
    caption = f"{caption_of(view, look, None)} · the strongest keys, {name}"
    return {"strongest keys": Picture(lambda: strongest(view, at), caption, view.audit, view.derived)}
