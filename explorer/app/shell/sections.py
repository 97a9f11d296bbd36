"""Sections of a page: their names and sentences stand in `sitemap`; the `show` of a file draws each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, TypeVar

import streamlit as st

from explorer.app.address import State, sitemap
from explorer.app.controls import pickers, refusals

T = TypeVar("T")
Fresh = Callable[[str], Mapping[str, Any]]
"""Other values of the state with which a section begins, by the value of `view`."""


def of(
    page: str,  # the name of the page, as `sitemap` has it
    *files: ModuleType,  # those that draw its sections, each named like its section
) -> dict[str, Callable[..., None]]:
    """What draws each section of a page: the `show` of its file; KeyError if one has none."""
    shows = {file.__name__.rpartition(".")[2]: file.show for file in files}
    return {view: shows[each.file or view] for view, each in sitemap.PAGES[page].sections.items()}


def chosen(
    sections: Mapping[str, T],  # by the value of `view` in the address; the first one opens first
    now: State,
) -> T:
    """The section that an address names."""
    return sections.get(now.view or "", next(iter(sections.values())))


def switch(
    page: str,  # as in `of`
    now: State,
    fresh: Fresh = lambda view: {},
    told: dict[str, str] | None = None,  # the sentences, if they depend on what is shown
    usual: str | None = None,  # the section that an address without one opens; None for the first
) -> None:
    """Draws the switch between the sections; a section with a door of its own stands alone."""
    offered = sitemap.switched(page)
    if sitemap.at(page, now.view) in sitemap.RESEARCH or len(offered) < 2:
        return
    said = {view: each.told for view, each in offered.items()}
    with st.container(key="sections"):
        pickers.variants(
            {view: each.name for view, each in offered.items()}, now.view, told or said, fresh, usual
        )


def draw(
    page: str,  # as in `of`
    files: Sequence[ModuleType],  # as in `of`
    now: State,
    *given: Any,  # what a section gets
) -> None:
    """Draws the switch and the section that an address names; what that refuses is said in a sentence."""
    switch(page, now)
    with refusals():
        chosen(of(page, *files), now)(*given)
