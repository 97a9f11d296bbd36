"""One head, large: the controls that choose it and how it is drawn, and the feeds of its pictures."""

from __future__ import annotations

import streamlit as st

from explorer.app.address import State
from explorer.app.controls import Picture, pickers
from explorer.app.maps import all_heads, display, measuring
from explorer.app.maps.looking import HeadSelection
from explorer.app.maps.run_export import caption_of
from explorer.figures import lines, row_bars_spec, strongest
from explorer.figures.base import captions, labels
from explorer.figures.base.quantity import quantity
from explorer.figures.maps.lines import links
from explorer.lenses.words.reading import ReadView
from explorer.linked import view as linked_view
from explorer.linked.view import Feed, LinesFeed


def focus(look: HeadSelection, now: State) -> str:
    """The name of the picture of the head, as the visitor wants it drawn."""
    return look.kind if now.show == "matrix" else now.show


def choose(look: HeadSelection, now: State, tiles: bool = True) -> None:
    """Draws the controls over the picture: which head, how it is drawn, and how the tiles beside it are."""
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.container(width=260):
            pickers.head_picker(look.kind, look.head, look.opened.source)
        display.shows(now.show)
        measuring.choose(look.opened, now)
        display.popover((look.kind,), now, (lambda: all_heads.pickers(look, now)) if tiles else None)
    if now.show == "lines":
        display.lines(look, now)


def feeds(
    look: HeadSelection,  # the visitor's look at the head
    now: State,  # the state
    fade: bool,  # whether the rows of later steps are faded
) -> dict[str, Feed]:
    """The feeds of everything but the map: all heads, the cursor's row, lines, lists, the whole matrix."""
    kind, trace, view = look.kind, look.opened.trace, look.read()
    row = linked_view.bars_feed(
        trace,
        row_bars_spec(view),
        "source" if kind == "encoder" else "step",
        "The row of the cursor",
        "",
        f"{quantity(view).share} of one row, from 0 to 1",
        captions.row_summaries(view),
        230,
        view.rows,
    )
    row["hue"] = kind
    found: dict[str, Feed] = {"overview": all_heads.feed(look, now), "row": row}
    off = linked_view.is_off(look.translation, kind, look.head)
    if now.show == "lines":
        drawn = _lines(look, now, view, fade)
        found["lines"] = linked_view.switched_off(drawn, view) if off else drawn
    if now.show == "strongest":
        listed = linked_view.strongest_feed(trace, view, now.scale, look.lengths)
        found["strongest"] = linked_view.switched_off(listed, view) if off else listed
    if look.is_windowed:
        found["whole"] = linked_view.whole_feed(trace, kind, look.whole(), look.axes, now.scale)
    return found


def _lines(look: HeadSelection, now: State, view: ReadView, fade: bool) -> LinesFeed:
    views = [view, *_others(look, now)]
    found = [links(each, *_kept(now.links)) for each in views]
    told = display.links_name(now.links)
    feed = linked_view.lines_feed(look.opened.trace, views, found, told, whole=look.lengths)
    return {**feed, "fade": fade and look.kind != "encoder"}


def _others(look: HeadSelection, now: State) -> list[ReadView]:
    """The other heads whose lines are drawn together with those of the chosen head."""
    layers, heads = look.opened.translation.config.sizes[look.kind]
    known = [head for head in now.more or () if head[0] < layers and head[1] < heads]
    return [look.read(head) for head in known if head != look.head]


def _kept(asked: str) -> tuple[float | None, float]:
    """Which links are drawn: the share of each row that they carry (None: any), and the smallest weight."""
    name, _, number = asked.partition("-")
    share = int(number) / 100
    return (share, 0.0) if name == "mass" else (None, share)


def printed(look: HeadSelection, now: State) -> dict[str, Picture]:
    """Lines and lists as Plotly figures for export; on the page, the linked view draws them itself."""
    view = look.read()
    if now.show == "lines":
        views = [view, *_others(look, now)]
        heads = ", ".join(labels.head_name(each.layer, each.head) for each in views)
        told = f"{heads} · {display.links_name(now.links)}, thickness = {quantity(view).share}"
        caption = f"{caption_of(view, look, None)} · {told}"
        return {"lines": Picture(lambda: lines(views, *_kept(now.links)), caption, view.audit, view.derived)}
    row = look.cell[0]
    at = next((i for i, group in enumerate(view.rows) if group.start <= row < group.stop), None)
    if now.show != "strongest" or at is None:
        return {}
    name = labels.row_names(view.query_tokens, view.predicted_tokens)[at]
    caption = f"{caption_of(view, look, None)} · the strongest keys, {name}"
    return {"strongest keys": Picture(lambda: strongest(view, at), caption, view.audit, view.derived)}
