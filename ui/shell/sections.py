"""Sections of a page: each is a name, a sentence and a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ui.address.state import State
from ui.controls import pickers
from ui.controls.part import refusals


@dataclass(frozen=True)
class Section:
    """One section of a page."""

    name: str  # its name in the switch
    told: str  # what it shows, in a sentence
    show: Callable[..., None]  # draws it

    def draw(self, *given: Any) -> None:
        """Draws the section; what it refuses is said there, in a sentence."""
        with refusals():
            self.show(*given)


S = TypeVar("S", bound=Section)


def chosen(
    sections: Mapping[str, S],  # by the value of `view` in the address; the first one opens first
    now: State,
) -> S:
    """The section that an address names."""
    return sections.get(now.view or "", next(iter(sections.values())))


def switch(
    sections: Mapping[str, S],  # as in `chosen`
    now: State,
    # other values of the state with which a section begins, by the value of `view`
    fresh: Callable[[str], Mapping[str, Any]] = lambda view: {},
) -> S:
    """Draws the switch between the sections; returns the section that an address names."""
    told = {view: each.told for view, each in sections.items()}
    pickers.variants({view: each.name for view, each in sections.items()}, now.view, told, fresh)
    return chosen(sections, now)
