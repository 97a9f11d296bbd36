"""What every page shares: configuration, menu, notices."""

from __future__ import annotations

import streamlit as st

from ui.address import session
from ui.address.parameters import State, carried, link
from ui.controls.text import plain
from ui.server import catalogue

PAGES = (
    ("app.py", "Translate", ":material/translate:"),
    ("pages/encoder_self_attention.py", "Encoder self-attention", ":material/input:"),
    ("pages/decoder_self_attention.py", "Decoder self-attention", ":material/output:"),
    ("pages/cross_attention.py", "Cross-attention", ":material/compare_arrows:"),
    ("pages/inside_a_head.py", "Inside a head", ":material/function:"),
    ("pages/masks.py", "Masks", ":material/grid_off:"),
    ("pages/positions.py", "Positions", ":material/straighten:"),
    ("pages/anatomy.py", "Anatomy", ":material/account_tree:"),
    ("pages/heads.py", "Heads over sentences", ":material/library_books:"),
    ("pages/compare.py", "Compare", ":material/difference:"),
    ("pages/open_file.py", "Open a file", ":material/folder_open:"),
)
_ICON = catalogue.ROOT / "assets" / "icon.png"
_STYLE = """
<style>
.stMainBlockContainer { padding: 1.1rem 2rem 2rem; max-width: 1500px; }
.stMainBlockContainer > .stVerticalBlock, .st-key-linked .stVerticalBlock { gap: .55rem; }
.stAppHeader { height: 1.6rem; min-height: 1.6rem; background: transparent; }
.stSidebarHeader { height: 1.2rem; min-height: 1.2rem; padding-bottom: 0; }
.stSidebar .stVerticalBlock { gap: .35rem; }
.st-key-feeders { display: none; }
.stMainBlockContainer hr { margin: .3rem 0; }
.st-key-anatomy-lens, .st-key-anatomy-paper { overflow-x: auto; }
.st-key-masks-batch-long { overflow-x: auto; }
.st-key-masks-batch-long > * { min-width: 48rem; }
[class*="st-key-anatomy-"]
  :is(.annotation-text, .textpoint text:not([style*="rgb(255, 255, 255)"])) { fill: currentColor !important; }
.st-key-anatomy-diagram .nsewdrag { cursor: pointer; }
.st-key-anatomy-lens > *, .st-key-anatomy-paper table { min-width: 620px; }
.stMainBlockContainer h5 { padding: 0 0 .2rem; }
.stElementContainer:has(> .stHtml > style:only-child) { display: none; }
.stSidebar a[href^="encoder_self"] span[data-testid="stIconMaterial"] { color: #0072B2; }
.stSidebar a[href^="decoder_self"] span[data-testid="stIconMaterial"] { color: #009E73; }
.stSidebar a[href^="cross_"] span[data-testid="stIconMaterial"] { color: #D55E00; }
.stMainBlockContainer h1 { font-size: 1.35rem; line-height: 1.3; padding: 0 0 .5rem; }
.st-key-examples { row-gap: .1rem; }
@media (max-width: 640px) { .stMainBlockContainer { padding: 1.6rem .9rem 2rem; } }
</style>
"""


def open_page(title: str) -> State:
    """The first line of every page: reads the address and sets up the page."""
    session.adopt()
    st.set_page_config(
        page_title=f"{title} · Attention explorer",
        page_icon=str(_ICON),
        layout="wide",
        initial_sidebar_state=240,
    )
    st.html(_STYLE)
    return session.current()


def menu(now: State) -> None:
    """Draws the menu in the sidebar. Its links carry the state, so a change of state must draw it again."""
    links = link(now)
    with st.sidebar:
        for path, label, icon in PAGES:
            st.page_link(path, label=label, icon=icon, query_params=links, width="stretch")


def show_notices(now: State, notes: tuple[str, ...] = ()) -> None:
    """Says in one line each what was not as asked for, and what a reader should know.

    Args:
        now: what the visitor sees; if an address cannot carry its texts, that is said too.
        notes: on the translation.
    """
    texts = [*session.take_notices(), *notes]
    if not carried(now):
        texts.append("This text is too long for a link, so the address does not carry it.")
    if texts:
        st.info(plain(" ".join(texts)), icon=":material/info:")
