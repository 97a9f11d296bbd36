"""A figure with all that belongs to it: alternative text, caption, badge, explanation, numbers and
export."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Literal

import plotly.graph_objects as go
import streamlit as st

from explorer.app.address import session
from explorer.app.controls.export import Picture, Table, collect
from explorer.app.controls.silence import drawn, hushed
from explorer.app.controls.text import plain, seen
from explorer.app.server.runs import lengths
from explorer.figures.base import captions
from explorer.figures.base.captions import badge
from explorer.figures.maps.heatmap import framed, row_frame
from transformer import Translation
from transformer.view import AuditReport, HeadMap

_INK = {"light": "#1d232c", "dark": "#e8ebf0"}
"""The colour of text in the coloured cells of a figure, by the visitor's theme."""
_FRAME = """<style>.st-key-{name} .svg-container {{ container-type: inline-size; }}
.st-key-{name} .gl-container::after {{
  --cell: min((100cqw - {beside}px) / {columns}, {high}px / {rows});
  content: ""; position: absolute; left: {left}px; top: calc({top}px + {row} * var(--cell));
  width: calc({columns} * var(--cell)); height: var(--cell);
  outline: 2px solid #808080; outline-offset: -1px; pointer-events: none;
}}</style>"""
"""A rule for one chart, whose key is its selector: no sheet can name it before it is drawn."""
Width = Literal["stretch", "content"]
Container = AbstractContextManager[object]


def chart(
    key: str,  # unique on the page
    figure: go.Figure,  # the figure; the `customdata` of a mark say what it stands for
    alt: str,  # what the figure shows, for people who do not see it
    take: Callable[[Any], object]
    | None = None,  # takes the `customdata` of the mark that was clicked
    width: Width = "stretch",  # as `st.plotly_chart` has it
    # whether a figure wider than the page scrolls in a frame of its own; a number is its least
    # width in px
    scrolls: bool | int = False,
    row: int
    # the row of a map to frame, from 0, over the figure, which need not be sent again
    | None = None,
) -> None:
    """Draws a figure alone; its marks can be clicked if anybody takes the clicks."""
    clicks: dict[str, Any] = {}
    if take is not None:
        clicks = {"on_select": lambda: session.on_pick(key, take), "selection_mode": "points"}
    name = key.replace(".", "-").replace(" ", "-")
    if row is not None:
        st.html(_FRAME.format(name=name, **row_frame(figure, row)))
    frame = f"frame-{name}"
    if scrolls and width == "stretch":
        own = figure.layout.width
        wide = (
            f"min-width: {own}px; max-width: {own}px"
            if scrolls is True
            else f"min-width: {scrolls}px"
        )
        st.html(f"<style>.st-key-{frame} > * {{ {wide} }}</style>")
    with st.container(key=frame) if scrolls else nullcontext():
        config = {"displayModeBar": False}
        st.plotly_chart(
            drawn(figure), width=width, key=key, config=config, alt=hushed(alt), **clicks
        )


def panel(
    name: str,  # unique on the page; also the name of the saved file
    make: Callable[..., go.Figure],  # draws the figure; called again when a visitor saves it
    caption: str,  # what the figure shows; written into the saved file with date, version and link
    table: Callable[[], Table] | None = None,  # makes the numbers, for CSV
    *,
    key: str = "",  # the key of the chart; its name if empty
    heading: str = "",  # a title above the figure, in Markdown
    place: Container | None = None,  # where figure and words stand
    seeing: str = "",  # the explanation, one click away
    formula: str | None = None,  # the formula below the explanation
    title: str = "What am I seeing?",  # the button of the explanation
    alt: str = "",  # the figure in words, for people who do not see it; the caption if empty
    note: str = "",  # a sentence between the figure and its caption, in Markdown
    audit: AuditReport | None = None,  # result of the checks; its badge ends the caption
    proof: str = "",  # what stands behind the badge; the usual words if empty
    # whether the figure shows values derived from a trace, not the model's own arrays
    derived: bool = False,
    take: Callable[[Any], object] | None = None,  # as in `chart`
    width: Width = "stretch",  # as in `chart`
    scrolls: bool | int = False,  # as in `chart`
    row: int | None = None,  # as in `chart`
    inked: bool = False,  # whether `make` takes the colour of text in coloured cells
    beside: Sequence[float] = (),  # the widths of figure and words if they stand side by side
    # whether the figure belongs to the visitor's sentence, which then names the file
    sentence: bool = True,
) -> None:
    """Draws a figure with its words, and puts it into the page's export."""
    left: Container = nullcontext()
    right: Container = nullcontext()
    if beside:
        left, right = st.columns(beside, gap="medium", vertical_alignment="center")
    bare = make
    on_screen = make
    if inked:
        bare = partial(make, _INK["light"])
        on_screen = partial(make, _INK[st.context.theme.type or "light"])
    with nullcontext() if place is None else place:
        if heading:
            st.markdown(heading)
        with left:
            figure = on_screen()
            chart(
                key or name,
                figure,
                alt=alt or caption,
                take=take,
                width=width,
                scrolls=scrolls,
                row=row,
            )
        with right:
            if note:
                st.markdown(hushed(note))
            picture = Picture(
                make=bare if row is None else lambda: framed(bare(), row),
                caption=caption,
                audit=audit,
                derived=derived,
                name=name,
                sentence=sentence,
                table=table,
                title=heading.strip("*# "),
            )
            collect(name, picture)
            says(picture, proof)
            if seeing:
                seen(seeing, formula, title)


def head_panel(
    name: str,  # as in `panel`
    draw: Callable[..., go.Figure],  # draws the figure of a head, in a size if it has one
    what: str,  # what the figure shows: its title, if it has a size, and part of its caption
    view: HeadMap,  # the head
    run: Translation,  # the run of the head
    of: str = "",  # whose head it is, such as "your sentence"
    size: int = 0,  # px of the figure; 0 for as much as there is
    # whether the figure shows the model's own arrays, so that it has their badge
    proven: bool = True,
    **more: Any,  # other arguments of `panel`
) -> None:
    """Draws a figure of one head, from which its caption and its badge come."""
    windowed = what + captions.window_note(view.window, lengths(run, view.kind))
    model = f"not the model's computation · {view.model}"
    if proven:
        model = view.model
        more["audit"] = view.audit
    make = partial(draw, view)
    if size:
        make = partial(draw, view, size)
        more |= {"heading": f"**{what}**", "place": st.container(width=size, gap="xsmall")}
    caption = " · ".join(filter(None, [captions.place(view), of, windowed, model]))
    panel(name, make, caption, **more)


def says(
    picture: Picture,  # the figure
    proof: str = "",  # as in `panel`
) -> None:
    """Draws the caption of a figure, with the badge of its checks if it has some."""
    if picture.audit is None:
        st.caption(plain(hushed(picture.caption)))
    else:
        checked = badge(picture.audit, picture.derived)
        st.caption(
            plain(f"{hushed(picture.caption)} · {checked['text']}"),
            help=proof or plain(str(checked["title"])),
        )
