"""The menu: every page, in groups, and the links between them.

Streamlit opens a page with the query that the server sent with the link, whatever its `href` says. So the
query is constant, and means "keep this session's state" (`ui/address/session.py`): a step of the cursor
sends no link again. `static/linked_view-5/menu.js` writes the full address into the `href`, for new tabs and
copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from ui.address import session
from ui.address.parameters import KEEP
from ui.address.state import PAGE_OWN, PLACE


@dataclass(frozen=True)
class Page:
    """One entry."""

    path: str  # the script
    label: str  # the name in the menu
    icon: str  # the icon
    sort: str = session.TRANSLATE  # the sort of models that the page shows; each sort has a place of its own


GROUPS: dict[str, tuple[Page, ...]] = {
    "": (Page("app.py", "Translate", ":material/translate:"),),
    "Attention": (
        Page("pages/encoder_self_attention.py", "Encoder self-attention", ":material/input:"),
        Page("pages/decoder_self_attention.py", "Decoder self-attention", ":material/output:"),
        Page("pages/cross_attention.py", "Cross-attention", ":material/compare_arrows:"),
        Page("pages/inside_a_head.py", "Inside a head", ":material/function:"),
    ),
    "How it works": (
        Page("pages/anatomy.py", "Anatomy", ":material/account_tree:"),
        Page("pages/search.py", "Search", ":material/alt_route:"),
        Page("pages/training.py", "Training", ":material/model_training:"),
        Page("pages/positions.py", "Positions", ":material/straighten:"),
        Page("pages/masks.py", "Masks", ":material/grid_off:"),
    ),
    "Other models": (
        Page("pages/language_model.py", "Language model", ":material/notes:", "language"),
        Page("pages/recurrent.py", "Recurrent", ":material/replay:"),
    ),
    "Experiments": (
        Page("pages/what_if.py", "What if", ":material/science:"),
        Page("pages/compare.py", "Compare", ":material/difference:"),
        Page("pages/explanation.py", "Explanation", ":material/balance:"),
    ),
    "Beyond this sentence": (
        Page("pages/heads.py", "Heads over sentences", ":material/library_books:"),
        Page("pages/open_file.py", "Open a file", ":material/folder_open:"),
    ),
}
"""The pages under their headings, in the order of the menu."""
PAGES = tuple(page for pages in GROUPS.values() for page in pages)

_SCRIPT = 'import(new URL("app/static/linked_view-5/menu.js", document.baseURI))'
_addresses = st.components.v2.component(
    "menu_addresses",
    js=f"export default async ({{ data }}) => {{\n  (await {_SCRIPT}).keep({{ data: data[0] }});\n}};",
    isolate_styles=False,
)


def draw() -> None:
    """Draws the menu; it is the same in every run, so only a full run of a page draws it."""
    with st.container(key="menu"):
        for heading, pages in GROUPS.items():
            if heading:
                st.caption(heading)
            for page in pages:
                st.page_link(page.path, label=page.label, icon=page.icon, query_params=KEEP, width="stretch")
        sorts = {Path(page.path).stem: page.sort for page in PAGES if page.sort != session.TRANSLATE}
        told = {"query": KEEP, "own": PAGE_OWN, "place": PLACE, "sorts": sorts}
        _addresses(key="menu-addresses", data=[told])
