"""Frame of every page: configuration, style, notices."""

from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path

import streamlit as st

from explorer.app.address import State, session, sitemap
from explorer.app.address.parameters import carried
from explorer.app.controls import inform, plain, styles
from explorer.app.controls.export import page_export, pictures
from explorer.app.server import hosted, visits
from explorer.app.server.source import Source
from explorer.app.shell import menu, strip
from explorer.figures.base import labels
from explorer.figures.base.tasks import WORDS

_ICON = "data:image/png;base64," + b64encode(
    (Path(__file__).resolve().parents[3] / "assets" / "icon.png").read_bytes()
).decode("ascii")
"""The icon inside its address: a browser asks for one with an address of its own at every step."""


def open_page(
    page: str,  # the name of the page, as `sitemap` has it
    *,
    adopts: bool = True,  # whether it reads the address; a page that waits leaves that to its next run
) -> State:
    """The first line of every page: reads the address and sets up the page."""
    pictures().clear()
    if adopts:
        session.adopt()
    now = session.current()
    facts = {"characters": len(now.text or ""), "changes": len(now.changes), "decode": now.decode}
    hosted.log("page", page=page, section=now.view, **facts)
    entry = sitemap.PAGES[page]
    st.set_page_config(
        page_title=f"{entry.title or entry.name} · {sitemap.PAGES[sitemap.HOME].title}",
        page_icon=_ICON,
        layout="wide",
        initial_sidebar_state=240,
    )
    style = styles.sheet("frame")
    if st.context.theme.type == "dark":
        style += styles.sheet("dark")
    st.html(style)
    try:
        visits.begin()
    except visits.FullError as error:
        st.info(str(error))
        st.stop()
    session.visit().silent = None
    session.visit().roleless = False
    if now.lesson is not None and page != sitemap.LESSONS:
        strip.draw(now, page)
    return session.current()


def heading(page: str, now: State, source: Source | None = None) -> None:
    """Draws the heading, what the page is for (at home, with its model), and links to pages beside
    it."""
    entry = sitemap.PAGES[page]
    purpose = entry.purpose
    if source is not None:
        purpose = WORDS[source.task].purpose
    with st.container(horizontal=True, vertical_alignment="center", key="heading"):
        paragraph = f'<p title="{purpose}">{purpose}</p>'
        neighbours = sitemap.beside(page)
        style = "headline headline-beside" if neighbours else "headline"
        st.html(
            f'<div class="{style}"><h1>{entry.title or entry.name}</h1>{paragraph}</div>',
            width="stretch",
        )
        with st.container(horizontal=True, width="content", gap="xxsmall", key="beside"):
            for neighbour in neighbours:
                label = sitemap.PAGES[neighbour].name.removesuffix(" self-attention")
                menu.link(neighbour, label, sitemap.PAGES[neighbour].icon, "content")
        if page == sitemap.HOME and now.lesson is None:  # its pictures fill the window to its end
            with st.container(key="next", width="content"):
                _start(source)


def _start(source: Source | None) -> None:
    """Draws the link to the lesson that is taken first."""
    first = strip.first(source)
    start = f"Start here: click a word; then lesson {first.number}"
    named = {} if first.model is None else {"model": first.model}
    strip.link(first.lesson, 0, start, ":material/flag:", **named)


def end(
    page: str,  # as in `open_page`
    now: State,
    tokens: Iterable[str] = (),  # the pieces that the page shows, whose signs are then explained
    refused: bool = False,  # whether the page shows only why it has nothing to show
) -> None:
    """Draws the end of the page, wherever it is called: what to look at next, and what the signs
    mean."""
    with st.container(key="end"):
        with st.container(horizontal=True, vertical_alignment="center"):
            place = sitemap.PLACES[sitemap.at(page, now.view)]
            if session.current().lesson is None:  # it has a way on of its own
                with st.container(key="next", width="content"):
                    label = f"Next: {sitemap.PLACES[place.after].title}"
                    menu.link(place.after, label, ":material/arrow_forward:", "content")
            if not refused and place.export:
                page_export()
        if signs := labels.signs(tokens):
            st.caption(signs)


def show_notices(
    now: State,  # what the visitor sees; if an address cannot carry its texts, that is said too
    notes: tuple[str, ...] = (),  # on the translation
) -> None:
    """Says in one line each what was not as asked for, and what a reader should know."""
    visit = session.visit()
    texts = [*dict.fromkeys(visit.notices), *notes]
    visit.notices = []
    if not carried(now):
        texts.append("This text is too long for a link, so the address does not carry it.")
    if texts:
        inform(plain(" ".join(texts)))
