"""The sections of "Inside a head", and the list that jumps to them."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from explorer.figures.base import labels

_SCRIPT = 'import(new URL("app/static/page-2/contents.js", document.baseURI))'
_list = st.components.v2.component(
    "contents", js=f"export default async (part) =>\n  (await {_SCRIPT}).show(part);", isolate_styles=False
)


@dataclass(frozen=True)
class Section:
    """One section."""

    title: str  # its heading
    short: str  # its name in the list


SECTIONS = {
    "input": Section("The input", "input"),
    "projections": Section("Query, key, value", "q, k, v"),
    "path": Section("The whole path", "the path"),
    "products": Section("Query against keys", "q·k"),
    "weights": Section("Scores and weights", "weights"),
    "sum": Section("Weighted sum of values", "sum of values"),
    "matrix": Section("The matrix form", "matrix form"),
    "heads": Section("All heads, and the output matrix", "all heads"),
    "stream": Section("Back into the residual stream", "back"),
    "block": Section("The layer as a chain", "the layer"),
}
"""The numbered sections by the name that their keys carry, in order."""
CHANGED = ("weights", "sum")
"""The sections whose arithmetic the switches change."""
WHAT_IF = "what-if"
"""The switches stand between the products and the weights, without a number."""


ALL = "all"
"""In place of a section: all of them on one page."""
BUILD = "build"
"""In place of a section: a query of one's own."""
FIRST = "products"
"""Opens first: everything before it prepares the products, everything after it uses them."""


def steps() -> dict[str, str]:
    """The names of the steps in the switch, by section."""
    numbered = {name: f"{labels.count(i)} {each.short}" for i, (name, each) in enumerate(SECTIONS.items())}
    return {**numbered, ALL: "all", BUILD: "build one"}


def following(chosen: str) -> str | None:
    """The section after one; None after the last."""
    names = [*SECTIONS]
    place = names.index(chosen) + 1
    return names[place] if place < len(names) else None


def contents() -> None:
    """Draws the list; it stays at the top with the cursor while the sections scroll."""
    listed = [
        {"name": name, "text": f"{labels.count(place)} {section.short}"}
        for place, (name, section) in enumerate(SECTIONS.items())
    ]
    before = list(SECTIONS).index("weights")
    listed.insert(before, {"name": WHAT_IF, "text": "what if"})
    _list(key="inside.contents", data={"sections": listed})
