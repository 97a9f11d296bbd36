"""What a linked view holds, and what the home page's view is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """The content of a linked view."""

    view: str  # name of the view; feeders name the view they feed
    style: str  # `home` (side by side) or `page` (one below the other)
    strips: tuple[str, ...]  # the token strips, in order: `source`, `target`
    plots: tuple[str, ...]  # names of the figures, in order
    focus: str  # the map that the sentence describes and the arrow keys move on
    cursor: str = "step"  # what the slider moves: `step` or `source`
