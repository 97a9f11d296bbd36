"""The linked view of a text: the strip, the candidates for the next token, and one head."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import streamlit as st

from explorer.app.address import State, session
from explorer.app.controls import formula, seen
from explorer.app.maps import display, one_head
from explorer.app.maps.explorer import Scene, Strips, explorer
from explorer.app.maps.looking import Looks
from explorer.app.maps.run_export import run_export
from explorer.app.server.opened import Opened
from explorer.figures.base import labels
from explorer.figures.base.bars import shown_candidates
from explorer.linked import view as linked_view
from explorer.linked.view import Feed, Layout, RaceFeed

KIND, VIEW = "decoder", "language_model"
SIDES = {**linked_view.SIDES, "target": "text"}
_SEEING = (
    "Every token that the model has read makes a query and compares it with the keys of the tokens read so "
    "far, its own among them. Later tokens are masked: their weights are exactly 0. A row is labelled by the "
    "token it reads; the cursor names the token it predicts."
)
_BYTE = re.compile("<0x[0-9A-F]{2}>")
_SPLIT = "With this token, the text is split into other pieces, which the model now reads."


def show(
    opened: Opened,  # the text
    caption: str,  # what a reader should know about the candidates
    strips: Strips,  # what the strip shows beside the tokens
    # further figures by name, in the place of all heads and of the row of the cursor
    more: Mapping[str, Feed] = MappingProxyType({}),
) -> None:
    """Draws the view."""
    parts, fade = tuple(more) or ("overview", "row"), opened.translation.method != "forced"

    def layout(now: State, looks: Looks) -> Layout:
        focus = one_head.focus(looks[KIND], now)
        whole = ("whole",) if looks[KIND].is_windowed else ()
        return Layout(VIEW, "page", ("target",), ("next", focus, *parts, *whole), focus)

    def feeds(now: State, looks: Looks) -> dict[str, Feed]:
        wanted = layout(now, looks).plots
        found = {"next": _next(opened, caption), **more, **one_head.feeds(looks[KIND], now, fade)}
        return {name: feed for name, feed in found.items() if name in wanted}

    def below(now: State, looks: Looks) -> None:
        _below(scene, now, looks)

    scene = Scene(
        layout,
        opened,
        (KIND,),
        feeds,
        below,
        fade=fade,
        largest=520,
        above=lambda now, looks: one_head.choose(
            looks[KIND], now, tiles="overview" in scene.laid_out(now, looks).plots
        ),
        strips=replace(strips, sides=SIDES),
        go_on=take,
    )
    explorer(scene)


def _below(scene: Scene, now: State, looks: Looks) -> None:
    look, positions = looks[KIND], scene.opened.translation.config.positions
    with st.container(horizontal=True):
        display.tables(lambda: [look.read()])
        told = f"{_SEEING} {formula.explained(KIND, positions)}"
        seen(told, formula.attention(KIND, positions, masked=True))
        run_export(scene, lambda now, looks: one_head.printed(looks[KIND], now))


def _next(opened: Opened, caption: str) -> RaceFeed:
    told = f"click another to continue with it · the token of the text in bold · {caption}"
    return linked_view.race_feed(opened.trace, opened.translation.steps, told, offered(opened))


def take(
    opened: Opened,  # the text
    step: int,  # the step, from 0
    token_id: int,  # one of the step's candidates
) -> dict[str, Any]:
    """The state's values for continuing with a candidate; it and the token it replaces count as tried."""
    run = opened.translation
    if token_id == run.steps[step].token_id:
        return {}
    session.tried().update((_place(opened, step), each) for each in (token_id, run.steps[step].token_id))
    wanted, writer = (*run.target_ids[:step], token_id), opened.source.writer()
    prompt = writer.generator.text(wanted)
    found = writer.ids(prompt)
    if found != wanted:
        session.notice(_SPLIT)
    return {**session.FRESH, "prompt": prompt, "step": len(found) - 1}


def offered(opened: Opened) -> tuple[list[list[int | None]], list[list[int]]]:
    """The ids of the candidates of each step, and of those that the visitor has tried.

    A token that nobody can type is not offered: None stands for its id.
    """
    run, tried = opened.translation, session.tried()
    rows = [shown_candidates(step) for step in run.steps]
    ids = [[each.token_id if _typed(each.token) else None for each in row] for row in rows]
    found = [
        [each.token_id for each in row if (_place(opened, i), each.token_id) in tried]
        for i, row in enumerate(rows)
    ]
    return ids, found


def _typed(token: str) -> bool:
    """Whether a text can end with a token: not with a mark, with one byte of a character, or with a blank."""
    text = token.strip(labels.WORD_START)
    return bool(text) and not labels.is_special(text) and not _BYTE.fullmatch(text)


def _place(opened: Opened, step: int) -> tuple[Hashable, ...]:
    """The tokens before a step."""
    return opened.asked.model, opened.translation.target_ids[:step]
