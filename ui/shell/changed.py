"""The quiet line that says what is changed in the run of the model, and takes it back."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from transformer.model.interventions import Choose, DropSource, EditSource, Forbid, Intervention, Prefix
from ui.address import session
from ui.address.parameters import State
from ui.controls.text import plain
from ui.server import runs
from ui.server.opened import Opened

_MOST = 8
"""Most changes with a button of their own."""
_LONGEST = 90
"""Most letters of a translation on a button."""
_OF_TOKENS = (Choose, Forbid, Prefix, EditSource, DropSource)
"""Changes of what the model reads and writes, which leave its arithmetic as it is."""


def of_tokens(now: State) -> State:
    """The state without changes of the model's arithmetic."""
    return replace(now, changes=tuple(each for each in now.changes if isinstance(each, _OF_TOKENS)))


def tell(now: State, opened: Opened | None, arithmetic: bool = True) -> None:
    """Draws the line; draws nothing if nothing is changed.

    Args:
        now: the state.
        opened: the sentence; None if the changes were refused.
        arithmetic: whether changes of the model's arithmetic hold on this page.
    """
    if not now.changes:
        if opened is not None and opened.translation.interventions:
            st.caption(_sentence(opened.translation.interventions))
        return
    left_out = 0 if arithmetic else len(now.changes) - len(of_tokens(now).changes)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="changed"):
        note = " (this page shows the model's own arithmetic, without them)" if left_out else ""
        st.caption(f":material/edit: {_count(now.changes)}{note}:", width="content")
        for i, each in enumerate(now.changes[:_MOST]):
            _one(i, each, now.changes)
        if opened is not None and not left_out:
            _back(now, opened)
        if opened is None or len(now.changes) > 1:
            st.button("remove all", type="tertiary", on_click=_take, args=((),), key="changed.none")


def _sentence(changes: tuple[Intervention, ...]) -> str:
    return f":material/edit: {_count(changes)}: {'; '.join(map(_said, changes))}."


def _count(changes: tuple[Intervention, ...]) -> str:
    return "1 change is active" if len(changes) == 1 else f"{len(changes)} changes are active"


def _said(change: Intervention) -> str:
    return plain(str(change).replace("“▁", "“"))


def _one(number: int, change: Intervention, changes: tuple[Intervention, ...]) -> None:
    """One change; a click takes it out."""
    st.button(
        _said(change),
        type="tertiary",
        icon=":material/close:",
        help="Take this change out",
        on_click=_take,
        args=((*changes[:number], *changes[number + 1 :]),),
        key=f"changed.{number}",
    )


def _back(now: State, opened: Opened) -> None:
    """The way taken before the last change, which a click takes again."""
    fewer = now.changes[:-1]
    try:
        before = runs.translate(replace(opened.asked, changes=fewer), runs.Untold())
    except ValueError:  # what is left does not hold without the last change
        return
    text = before.text if len(before.text) <= _LONGEST else before.text[: _LONGEST - 1] + "…"
    st.button(
        f":gray[{plain(text)}]",
        type="tertiary",
        icon=":material/undo:",
        help="The translation before the last change. Click to go back to it.",
        on_click=_take,
        args=(fewer,),
        key="changed.back",
    )


def _take(changes: tuple[Intervention, ...]) -> None:
    session.change(**{**session.RUN, "changes": changes, "step": session.current().step})
