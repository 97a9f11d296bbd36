"""The run of a chosen node in the linked view."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import seen
from explorer.app.maps import display, next_token_choice
from explorer.app.maps.explorer import Scene, explorer
from explorer.app.maps.looking import Looks
from explorer.app.maps.run_export import run_export
from explorer.app.server.opened import Opened
from explorer.linked import view as linked_view
from explorer.linked.view import Layout, RaceFeed

_LAYOUT = Layout(
    view="search",
    style="home",
    strips=("source", "target"),
    plots=("cross", "encoder", "decoder", "next"),
    focus="cross",
)
_SEEING = (
    "The attention of the chosen output, as far as it had come. One pass over its tokens computes again what "
    "the search computed, and the audit compares both. To continue the search with another candidate for the "
    "next token, click it."
)


@dataclass(frozen=True)
class Branched(Opened):
    """The run of a node, which no request can ask for."""

    place: str = ""  # what tells it from other runs of the same sentence

    @property
    def trace(self) -> str:
        whole = f"{self.asked.trace}\0{self.place}"
        return hashlib.sha256(whole.encode()).hexdigest()[:12]

    def traced(self) -> Opened:
        return self


def view(
    opened: Opened,  # the run
    # draws what follows every step together with the view
    beside: Callable[[State, Looks], None] | None = None,
) -> None:
    """Draws the linked view of a run."""
    _fit_step(opened)

    def below(now: State, looks: Looks) -> None:
        with st.container(horizontal=True, vertical_alignment="center"):
            display.popover(opened.kinds, now)
            display.tables(lambda: [looks[kind].read() for kind in opened.kinds])
            seen(_SEEING)
            run_export(scene)

    scene = Scene(
        _LAYOUT, opened, opened.kinds, lambda now, looks: {"next": _next(opened)}, below, beside=beside
    )
    explorer(scene)


def _fit_step(opened: Opened) -> None:
    """Keeps the cursor inside an output that is shorter than the one it was set in."""
    now, last = session.current(), len(opened.translation.target_tokens) - 1
    if (now.step or 0) > last:
        session.resolve(step=last)


def _next(opened: Opened) -> RaceFeed:
    run = opened.translation
    caption = "click a token to continue with it"
    return linked_view.race_feed(opened.trace, run.steps, caption, next_token_choice.offered(opened))
