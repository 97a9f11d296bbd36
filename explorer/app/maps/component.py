"""The two components: feeders, each of which carries one figure, and the view itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from explorer.linked.view import Cursor, Layout

_SCRIPT = 'import(new URL("app/static/linked_view-7/view.js", document.baseURI))'
# Data travel as a list of one: in a dictionary, Streamlit looks for tables among the values, with pandas.
# Streamlit mistakes a one-line script for a path, so each script has a line break.
_view = st.components.v2.component(
    "linked_view",
    js=f"export default async (part) =>\n  (await {_SCRIPT}).show({{ ...part, data: part.data[0] }});",
    isolate_styles=False,
)
_feeder = st.components.v2.component(
    "linked_view_feeder",
    js=f"export default async ({{ data }}) => {{\n  (await {_SCRIPT}).feed({{ data: data[0] }});\n}};",
    isolate_styles=False,
)


def feed(layout: Layout, name: str, payload: Mapping[str, object]) -> None:
    """Sends one figure or the strips to the browser; Streamlit sends them again only if they changed."""
    _feeder(key=f"feed.{layout.view}.{name}", data=[{"view": layout.view, "name": name, **payload}])


def mount(
    layout: Layout,  # the content of the view
    trace: str,  # the translation to show; figures of any other translation are not drawn
    cursor: Cursor,  # the visitor's cursor, with the number of the last event accepted
    key: str,  # session key under which the event arrives as `at`
    on_event: Callable[[], None],  # called when the browser has sent an event
    present: bool = False,  # whether the view fills the window in large type
    # called once the view is painted; None if nobody waits for that
    on_painted: Callable[[], None] | None = None,
) -> None:
    """Draws the view and tells it where the cursor is."""
    data: dict[str, object] = {
        "view": layout.view,
        "layout": layout.style,
        "strips": layout.strips,
        "plots": layout.plots,
        "focus": layout.focus,
        "cursor": layout.cursor,
        "trace": trace,
        "step": cursor.step,
        "source": cursor.source,
        "ack": cursor.ack,
        "awaited": on_painted is not None,
    }
    if present:
        data["present"] = True
    done = on_painted or (lambda: None)
    _view(key=key, data=[data], on_at_change=on_event, on_painted_change=done)
