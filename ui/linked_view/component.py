"""The two components: feeders, which carry one figure each, and the view itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from ui.linked_view.events import Cursor

_SCRIPT = 'import(new URL("app/static/linked_view-4/view.js", document.baseURI))'
# Streamlit takes a one-line script for a path, so each has a line break.
_view = st.components.v2.component(
    "linked_view", js=f"export default async (part) =>\n  (await {_SCRIPT}).show(part);", isolate_styles=False
)
_feeder = st.components.v2.component(
    "linked_view_feeder",
    js=f"export default async (part) => {{\n  (await {_SCRIPT}).feed(part);\n}};",
    isolate_styles=False,
)


@dataclass(frozen=True)
class Layout:
    """What a linked view holds.

    Attributes:
        view: its name; feeders name the view they feed.
        style: `home` (side by side) or `page` (one below the other).
        strips: which token strips it shows, in order: `source`, `target`.
        plots: the names of its figures, in order.
        focus: the map that the sentence and the arrow keys speak of.
        cursor: what the slider moves: `step` or `source`.
    """

    view: str
    style: str
    strips: tuple[str, ...]
    plots: tuple[str, ...]
    focus: str
    cursor: str = "step"


def feed(layout: Layout, name: str, payload: dict[str, Any]) -> None:
    """Sends one figure or the strips to the browser; Streamlit sends it again only when it changed."""
    _feeder(key=f"feed.{layout.view}.{name}", data={"view": layout.view, "name": name, **payload})


def mount(layout: Layout, trace: str, cursor: Cursor, key: str, on_event: Callable[[], None]) -> None:
    """Draws the view and tells it where the cursor stands.

    Args:
        layout: what the view holds.
        trace: the translation it shows; figures of another one are not drawn.
        cursor: where the visitor stands, with the last event taken.
        key: session key under which the event arrives as `at`.
        on_event: called when the browser sent one.
    """
    data = {
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
    }
    _view(key=key, data=data, on_at_change=on_event)
