"""The menu: every page in its group, and the links between pages.

Streamlit opens a page with the query that the server sent with the link, whatever its `href` says.
So the query is constant, and means "keep this session's state" (`address/session.py`): a step of
the cursor sends no link again. `linked_view/menu.js` writes the full address into the
`href`, for new tabs and copies; `page/words.js` lists the words of the glossary that the
page uses, `page/scheme.js` has the page drawn anew when it becomes dark or light, and
`page/enter.js` lets Enter run the model in a field of several lines.
"""

from typing import Literal

import streamlit as st

from explorer.app.address import session, sitemap
from explorer.app.address.parameters import KEEP
from explorer.app.address.state import HERE, SHARED
from explorer.app.server import models, studies
from explorer.app.server.models import KINDS
from explorer.linked.served import imported

_SCRIPTS = f"""
export default async ({{ data, parentElement, setTriggerValue }}) => {{
  (await {imported("linked_view/menu.js")}).keep({{ data: data[0] }});
  (await {imported("page/scheme.js")}).follow({{ setTriggerValue }});
  (await {imported("page/words.js")}).begin(parentElement);
  await {imported("page/enter.js")};
}};
"""
_addresses = st.components.v2.component("menu_addresses", js=_SCRIPTS, isolate_styles=False)


def link(
    name: str,  # the page or section, as `sitemap` names it
    label: str = "",  # the text; the name of the place if empty
    icon: str | None = None,  # before it
    width: Literal["stretch", "content"] = "stretch",  # as `st.page_link` has it
    **named: str,  # parameters of the address that the link sets
) -> None:
    """Draws a link to a place, which keeps the rest of this session's state."""
    page, _, view = name.partition("/")
    first = not view or view == next(iter(sitemap.PAGES[page].sections))
    query = {**KEEP, **({} if first else {"view": view}), **named}
    text = label or sitemap.PLACES[name].name
    st.page_link(sitemap.script(name), label=text, icon=icon, query_params=query, width=width)


def link_with_model(
    name: str,  # the place
    model: str,  # a model that can show it
) -> None:
    """Draws a link to a place with another model, where the chosen one has nothing to show."""
    if (chosen := models.available().get(model)) is not None:
        link(
            name, f"Open it with {chosen.title}", ":material/arrow_forward:", "content", model=model
        )


def finding(
    name: str,  # the study, as `explorer.app.server.studies` names it
) -> None:
    """Draws a link to what was found over many sentences, if there is such a study."""
    try:
        question = studies.study(name).question
    except (KeyError, ValueError):  # absent or damaged
        return
    link("findings", f"Measured: {question}", ":material/biotech:", "content", study=name)


def draw() -> None:
    """Draws the menu; it is the same in every run, so only a full run of a page draws it."""
    with st.container(key="menu"):
        for group in sitemap.GROUPS:
            pages = [entry[0] for entry in sitemap.entries(group.name)]
            if group.folded:
                with st.expander(group.name, icon=":material/biotech:", type="compact"):
                    for name in pages:
                        link(name)
                continue
            st.caption(f"**{group.name}** · {group.description}")
            for name in pages:
                link(name, *sitemap.ENTRIES.get(name, ("", sitemap.PAGES[name].icon)))
        with st.container(key="inside-links"):  # clicked by the maps (`acts.js`)
            for kind in KINDS:
                link("inside_a_head", f"Inside: {kind}", kind=kind)
        shared = [name for name in SHARED if name not in HERE]
        facts = {"query": KEEP, "shared": shared, "steady": session.CARRIED}
        _addresses(key="menu-addresses", data=[facts], on_scheme_change=session.keep)
