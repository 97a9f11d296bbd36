"""Sections of a page: their names and sentences are declared by the page.

The `show` of a file draws each.
"""

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TypeVar

import streamlit as st

from explorer.app.address import State, sitemap
from explorer.app.address.kinds import Moves
from explorer.app.controls import pickers, refusals

T = TypeVar("T")
Fresh = Callable[[str], Moves]
"""Other values of the state with which a section begins, by the value of `view`."""


def chosen(
    sections: Mapping[str, T],  # by the value of `view` in the address; the first one opens first
    now: State,
) -> T:
    """The section that an address names."""
    return sections.get(now.view or "", next(iter(sections.values())))


def switch(
    page: str,  # the name of the page, as `sitemap` has it
    now: State,
    fresh: Fresh = lambda view: {},
    purposes: dict[str, str] | None = None,  # the sentences, if they depend on what is shown
    usual: str | None = None,  # the section that an address without one opens; None for the first
) -> None:
    """Draws the switch between the sections, if the page has several."""
    declared = sitemap.PAGES[page].sections
    if declared:
        names = {view: section.name for view, section in declared.items()}
        purposes = purposes or {view: section.purpose for view, section in declared.items()}
        with st.container(key="sections"):
            pickers.variants(names, now.view, purposes, fresh, usual)


def draw(
    page: str,  # as in `switch`
    files: Sequence[
        ModuleType
    ],  # those that draw its sections, in the order in which the page declares them
    now: State,
    *arguments: object,  # what a section gets
) -> None:
    """Draws the switch and the section that an address names.

    What that refuses is said in a sentence.
    """
    switch(page, now)
    with refusals():
        chosen(dict(zip(sitemap.PAGES[page].sections, files, strict=True)), now).show(*arguments)
