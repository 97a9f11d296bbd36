"""The list of changes: each can be switched off and on, and taken out."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.change_list import Listed
from explorer.app.controls import pickers, plain
from explorer.app.sections.what_if.forms import fields
from explorer.app.server.opened import Opened
from explorer.app.shell import changed
from transformer import interventions as do
from transformer.config import AttentionKind
from transformer.interventions import Intervention, Mask


def tell(now: State, opened: Opened | None, _holds: changed.Holds) -> None:
    """Draws the list in place of the line that other pages draw; nothing if nothing is changed."""
    items = changed.all_of(now)
    if now.target is not None:
        _given(now.target, items)
    if not items:
        changed.show_changes(now, opened)
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="changes"):
        for i, item in enumerate(items):
            _one(i, item, items, opened)
        if len(items) > 1:
            st.button("Remove all", type="tertiary", on_click=changed.take, args=((),), key="changed.none")


def lifts(change: Intervention) -> bool:
    """Whether a change lets the decoder see later tokens, which needs a given translation."""
    return isinstance(change, Mask) and change.kind is AttentionKind.DECODER and do.lifts(change)


def target_for(opened: Opened, change: Intervention) -> str | None:
    """The translation that the model must read with a change: one that lifts the causal mask needs one."""
    own = opened.asked.target
    return fields.unchanged(opened).text if own is None and lifts(change) else own


def _given(target: str, items: tuple[Listed, ...]) -> None:
    """Says that the model reads a given translation, and decodes again with a click."""
    decodable = [Listed(change, on and not lifts(change)) for change, on in items]
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="changes-given"):
        st.caption(f"The model reads a given translation: {plain(target)}", width="content")
        st.button(
            "Translate again",
            type="tertiary",
            help="Switches off the changes that hold only for a given translation; they stay in the list.",
            on_click=partial(changed.take, decodable, target=None),
            key="what-if.decode",
        )


def _one(number: int, item: Listed, items: tuple[Listed, ...], opened: Opened | None) -> None:
    said = changed.said(item.change, None if opened is None else opened.translation)

    def switch(on: bool) -> None:
        own = session.current().target
        target = target_for(opened, item.change) if on and opened is not None else own
        changed.take(_with(items, number, Listed(item.change, on)), target=target)

    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", width="content"):
        st.checkbox(
            said if item.on else f":gray[{said} (off)]",
            item.on,
            width="content",
            **pickers.control(f"changed.on.{number}", item.on, switch, [said]),
        )
        st.button(
            "",
            type="tertiary",
            icon=":material/close:",
            help="Remove this change",
            on_click=changed.take,
            args=(_with(items, number),),
            key=f"changed.{number}",
        )


def _with(items: tuple[Listed, ...], number: int, *instead: Listed) -> tuple[Listed, ...]:
    """The list with another item in one place, or without it."""
    return *items[:number], *instead, *items[number + 1 :]
