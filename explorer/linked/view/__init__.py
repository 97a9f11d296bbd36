"""Strips, cursor, maps and bars that move together: what `static/linked_view-7` is sent, and answers."""

from __future__ import annotations

from explorer.linked.view.events import Cursor, CursorRange, picked_candidate, picked_head, presented, reduce
from explorer.linked.view.feeds import (
    bars_feed,
    choice,
    colour_note,
    is_off,
    lines_feed,
    map_feed,
    overview_feed,
    race_feed,
    strongest_feed,
    switched_off,
    whole_feed,
    window_around,
)
from explorer.linked.view.home import Layout
from explorer.linked.view.silent import LATER, silenced
from explorer.linked.view.strips import (
    EXAMPLE,
    SIDES,
    Feed,
    Gloss,
    Shade,
    WordAlignment,
    followed,
    glossed,
    strips_feed,
    tell,
)

__all__ = [
    "EXAMPLE",
    "LATER",
    "SIDES",
    "Cursor",
    "CursorRange",
    "Feed",
    "Gloss",
    "Layout",
    "Shade",
    "WordAlignment",
    "bars_feed",
    "choice",
    "colour_note",
    "followed",
    "glossed",
    "is_off",
    "lines_feed",
    "map_feed",
    "overview_feed",
    "picked_candidate",
    "picked_head",
    "presented",
    "race_feed",
    "reduce",
    "silenced",
    "strips_feed",
    "strongest_feed",
    "switched_off",
    "tell",
    "whole_feed",
    "window_around",
]
