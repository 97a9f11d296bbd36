"""Frame of every page: configuration, style, notices."""

from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path

import streamlit as st

from explorer.app.address import State, session, sitemap
from explorer.app.address.parameters import carried
from explorer.app.controls import inform, plain
from explorer.app.controls.export import page_export, pictures
from explorer.app.server import hosted, visits
from explorer.app.server.source import Source
from explorer.app.shell import menu, strip
from explorer.figures.base import labels

_ICON = "data:image/png;base64," + b64encode(
    (Path(__file__).resolve().parents[3] / "assets" / "icon.png").read_bytes()
).decode("ascii")
"""The icon inside its address: a browser asks for one with an address of its own at every step."""
_STYLE = """
<style>
.stMainBlockContainer { padding: 1.1rem 2rem 2rem; max-width: 1500px; }
.stMainBlockContainer > .stVerticalBlock, .st-key-linked .stVerticalBlock { gap: .55rem; }
.stAppHeader { height: 1.6rem; min-height: 1.6rem; }
@media (min-width: 641px) { .stAppHeader { background: transparent; } }
.stSidebar [data-testid="stSidebarHeader"] {
  position: absolute; right: .6rem; top: .4rem; z-index: 2; height: auto; min-height: 0; margin: 0;
}
.stSidebar [data-testid="stSidebarUserContent"] { padding-top: .8rem; }
.stSidebar .stVerticalBlock { gap: .35rem; }
.stSidebar .st-key-menu { gap: .16rem; }
.st-key-menu summary { opacity: .85; }
.st-key-menu [data-testid="stCaptionContainer"] { padding-top: .25rem; font-size: .8rem; }
.st-key-under-home [data-testid="stCaptionContainer"] p { line-height: 1.35; }
.st-key-feeders, .st-key-inside-links { display: none; }
.stMainBlockContainer > .stVerticalBlock > :has(> .st-key-end) { order: 1; }
.stMainBlockContainer hr { margin: .3rem 0; }
[class*="st-key-frame-"] { overflow-x: auto; }
.st-key-anatomy-paper, .st-key-recurrent-terms, .st-key-recurrent-table { overflow-x: auto; }
.st-key-cell-measures :is(th, td) { padding: 2px 8px; font-size: 13px; }
[class*="st-key-anatomy-"]
  :is(.annotation-text, .textpoint text:not([style*="rgb(255, 255, 255)"])) { fill: currentColor !important; }
.st-key-anatomy-diagram .nsewdrag { cursor: pointer; }
.st-key-anatomy-paper table { min-width: 620px; }
.stMainBlockContainer h5 { padding: .9rem 0 .35rem; }
.stMainBlockContainer h4 { padding: 1.2rem 0 .5rem; }
.stElementContainer:has(> .stHtml > style:only-child) { display: none; }
.st-key-beside a[href^="encoder_self"] span[data-testid="stIconMaterial"] { color: #0072B2; }
.st-key-beside a[href^="decoder_self"] span[data-testid="stIconMaterial"] { color: #009E73; }
.st-key-beside a[href^="cross_"] span[data-testid="stIconMaterial"] { color: #D55E00; }
[data-testid="stLayoutWrapper"]:has(> .st-key-lm-note) { flex: 1 1 min(100%, 26rem) !important; }
.stMainBlockContainer h1 { font-size: 1.35rem; line-height: 1.3; padding: 0 0 .5rem; }
.st-key-examples { row-gap: .1rem; }
.st-key-doubt { row-gap: 0; }
.st-key-doubt button { min-height: 0; padding-block: 0; }
[class*="st-key-change"] { row-gap: 0; }
[class*="st-key-change"] button { min-height: 0; padding-block: 0; }
[class*="st-key-change"] button { position: relative; z-index: 1; }
[class*="st-key-what-if-"] [data-testid="stButtonGroup"] button { flex-grow: 0; }
.stMainBlockContainer [data-testid="stPageLink"] a :is(div, span, p) { white-space: normal; }
[data-testid="stCaptionContainer"][data-testid] { opacity: .75; }
:is([data-testid="stBaseButton-primary"]:not(:disabled), .stMultiSelect [data-tag])[class] {
  --letters: clamp(0, 999 * (128 - r), 255);
  color: rgb(from currentcolor var(--letters) var(--letters) var(--letters));
}
:is([data-testid="stPopoverButton"], [data-testid="stBaseButton-tertiary"])[aria-expanded="true"] {
  color: inherit;
}
:is([data-testid="stPopoverButton"], [data-testid="stBaseButton-tertiary"])[data-testid]:hover {
  color: inherit; text-decoration: underline; text-underline-offset: .2em;
}
.st-key-decoding .stSelectbox { display: flex; align-items: center; gap: .6rem; }
.st-key-decoding .stSelectbox > :last-child { flex: 1 1 0; min-width: 0; }
.st-key-decoding label { margin: 0; }
.stColumn:has([data-testid="stBaseButton-primary"]) { flex-shrink: 0; min-width: max-content; }
.stHorizontalBlock:has(.st-key-decoding) { flex-wrap: nowrap; }
.stMainBlockContainer:has(.lv-home) { padding-bottom: 0; }
.lm-frame { overflow-x: auto; }
.lm-frame table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
.lm-frame :is(th, td) { padding: .2rem .7rem; text-align: center; white-space: nowrap; border: 0; }
.lm-frame th { font-weight: 400; opacity: .7; }
.lm-line { width: 100%; }
.lm-line th { text-align: start; padding-inline-start: 0; width: 1%; }
.lm-line td { border-inline-start: 1px solid rgb(128 128 128 / .18); }
.lm-line tr:nth-child(3) { border-top: 1px solid rgb(128 128 128 / .35); }
.lm-line b { font-weight: 600; }
.lm-line small { display: block; opacity: .7; font-size: .75rem; }
.lm-line .at { background: rgb(0 158 115 / .16); }
.headline { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 .9rem; }
.headline h1 { padding: 0 !important; margin: 0; }
.headline p { margin: 0; opacity: .72; }
@media (min-width: 1000px) {
  .st-key-heading { flex-wrap: nowrap !important; }
  .headline { flex-wrap: nowrap; }
  .headline h1 { white-space: nowrap; }
  .headline p { min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
  .st-key-heading:has(.st-key-beside a) .headline { flex-wrap: wrap; }
  .st-key-heading:has(.st-key-beside a) .headline p { white-space: normal; line-height: 1.35; }
  /* The line of changes takes room that was empty, so that nothing moves when it comes. */
  .stMainBlockContainer:has(.lv-home) .st-key-linked { margin-top: 13px; }
  .stMainBlockContainer:has(.lv-home)
    [data-testid="stLayoutWrapper"]:has(> .st-key-changed) { margin-block: -.55rem -21px; }
  /* So does the line of doubt, which comes later. */
  [data-testid="stLayoutWrapper"]:has(> .st-key-doubt-room) { height: 0; margin-top: -.55rem; }
  .st-key-doubt-room { position: relative; z-index: 1; overflow: visible; }
  .st-key-doubt { flex-wrap: nowrap; }
  .st-key-doubt p { white-space: nowrap; }
  .stMainBlockContainer:has(.st-key-sections):has(.st-key-above):not(:has(.st-key-lm-note)) {
    [data-testid="stLayoutWrapper"]:has(> .st-key-changed) {
      width: calc(100% - 16rem); margin: -2.3rem 0 5px 16rem;
    }
    .st-key-changed { justify-content: flex-end; }
  }
}
/* In a narrow window, as at 150 % zoom, the menu is its icons; it unfolds over the page. */
@media (min-width: 769px) and (max-width: 1099px) {
  .stSidebar[data-collapsed="false"] {
    width: 2.4rem !important; min-width: 2.4rem !important; z-index: 100; border-color: transparent;
  }
  .stSidebar [data-testid="stSidebarContent"] { width: 2.4rem; overflow: hidden; background: inherit; }
  .stSidebar > :not([data-testid="stSidebarContent"]) { display: none; }
  .stSidebar [data-testid="stSidebarUserContent"] { width: 12rem; margin-inline-start: -.75rem; }
  .stSidebar:is(:hover, :has(:focus-visible)) [data-testid="stSidebarContent"] {
    width: 15rem; overflow-y: auto; box-shadow: 0 0 1rem rgb(0 0 0 / .25);
  }
  .stSidebar:is(:hover, :has(:focus-visible)) [data-testid="stSidebarUserContent"] { margin: 0; }
  .stSidebar:not(:hover, :has(:focus-visible))
    :is([data-testid="stSidebarHeader"], .stMarkdown, summary > :last-child, :has(+ * > .st-key-menu)) {
    opacity: 0; pointer-events: none;
  }
}
@media (max-width: 999px) {  /* below the picture, which it does not move */
  .stMainBlockContainer > .stVerticalBlock > :has(> .st-key-doubt-room) { order: 1; }
}
@media (max-width: 640px) {
  .stMainBlockContainer { padding: 1.6rem .9rem 2rem; }
  .headline p { font-size: .85rem; line-height: 1.3; }
  .st-key-heading { row-gap: .2rem; }
  .stMainBlockContainer > .stVerticalBlock > :has(> .st-key-examples),
  .st-key-linked > :has(+ .stElementContainer .lv) { order: 1; }
  .stHorizontalBlock:has(.st-key-decoding) { flex-direction: row; flex-wrap: wrap; }
  .stHorizontalBlock:has(.st-key-decoding) > :first-child { flex: 1 0 100%; }
  .stHorizontalBlock:has(.st-key-decoding) > :not(:first-child) { flex: 1 1 0; min-width: 0; }
  [data-testid="stButtonGroup"] {
    overflow-x: auto; padding-inline-end: 2rem;
    mask-image: linear-gradient(to right, #000 calc(100% - 2rem), transparent);
  }
  .st-key-sections [data-testid="stButtonGroup"] { padding-inline-end: 0; mask-image: none; }
  .st-key-sections [data-testid="stButtonGroup"] :has(> button) { flex-wrap: wrap; row-gap: .3rem; }
}
</style>
"""
_DARK = "<style>:is(.heatmaplayer image, .cbfills, .lv-mark i) { filter: brightness(1.4); }</style>"
"""On a dark page the hues reach two thirds of the lightness of a light one; this gives the rest
back."""


def open_page(
    page: str,  # the name of the page, as `sitemap` has it
    *,
    adopts: bool = True,  # whether it reads the address; a page that waits leaves that to its next run
) -> State:
    """The first line of every page: reads the address and sets up the page."""
    pictures().clear()
    if adopts:
        session.adopt(sitemap.PAGES[page].sort)
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
    st.html(_STYLE + (_DARK if st.context.theme.type == "dark" else ""))
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
    purpose = entry.purpose if source is None or source.task == "translate" else sitemap.WRITES
    with st.container(horizontal=True, vertical_alignment="center", key="heading"):
        paragraph = f'<p title="{purpose}">{purpose}</p>'
        st.html(
            f'<div class="headline"><h1>{entry.title or entry.name}</h1>{paragraph}</div>',
            width="stretch",
        )
        with st.container(horizontal=True, width="content", gap="xxsmall", key="beside"):
            for neighbour in sitemap.beside(page):
                label = sitemap.PAGES[neighbour].name.removesuffix(" self-attention")
                menu.link(neighbour, label, sitemap.PAGES[neighbour].icon, "content")
        if page == sitemap.HOME and now.lesson is None:  # its pictures fill the window to its end
            start = "Start here: click a target word; then lesson 1"
            with st.container(key="next", width="content"):
                menu.link(page, start, ":material/flag:", "content", lesson="map.1")


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
