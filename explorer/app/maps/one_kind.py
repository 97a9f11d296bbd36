"""The page of one kind of attention: all its heads, the chosen one large, and the cursor's row as bars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from explorer.app.address import State
from explorer.app.controls import formula, say, seen
from explorer.app.maps import display, measuring, one_head
from explorer.app.maps.explorer import Scene, explorer
from explorer.app.maps.looking import Looks
from explorer.app.maps.run_export import run_export
from explorer.app.server.opened import Opened
from explorer.linked.view import Layout
from transformer.config import AttentionKind

_LOCAL = (
    " Local attention multiplies these weights by a Gaussian around a predicted centre, so a row sums to "
    "less than 1, and keys outside its window are hatched."
)


@dataclass(frozen=True)
class KindPage:
    """Differences between the three pages."""

    kind: str  # encoder, decoder or cross
    strips: tuple[str, ...]  # the token strips that the page shows
    cursor: str  # what the slider moves: `step` or `source`
    note: str  # the text under the picture that says what to notice
    seeing: str  # the explanation, at most 60 words

    def layout(self, now: State, looks: Looks) -> Layout:
        """The layout of the page's linked view for a state."""
        focus = one_head.focus(looks[self.kind], now)
        plots: tuple[str, ...] = ("overview", focus, "row")
        if looks[self.kind].is_windowed:
            plots = (*plots, "whole")
        return Layout(self.kind, "page", self.strips, plots, focus, self.cursor)


def show(
    page: KindPage, opened: Opened, fade: bool = True, controls: Callable[[], None] | None = None
) -> None:
    """Draws the page of a kind for one sentence."""

    def below(now: State, looks: Looks) -> None:
        look = looks[page.kind]
        with st.container(horizontal=True):
            display.tables(lambda: [look.read()])
            measuring.cell(look)
            positions = opened.translation.config.positions
            site = opened.translation.config.sites[AttentionKind(page.kind)]
            told = f"{page.seeing} {formula.explained(page.kind, positions, site.score)}"
            told += _LOCAL if look.read().reach else ""
            written = formula.attention(page.kind, positions, site.causal, site.score)
            seen(told, written)
            run_export(scene, lambda now, looks: one_head.printed(looks[page.kind], now))
        say(page.note)
        if controls is not None:
            controls()

    def above(now: State, looks: Looks) -> None:
        one_head.choose(looks[page.kind], now)

    scene = Scene(
        page.layout,
        opened,
        (page.kind,),
        lambda now, looks: one_head.feeds(looks[page.kind], now, fade),
        below,
        fade=fade,
        largest=520,
        above=above,
    )
    explorer(scene)
