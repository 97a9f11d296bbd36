"""The controls that add a change: words to hide with one click, and every other sort by group."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from explorer.app.address import session
from explorer.app.address.change_list import Listed
from explorer.app.controls import part, pickers, plain
from explorer.app.sections.what_if import changes
from explorer.app.sections.what_if.forms import attention, fields, heads, patching, tokens
from explorer.app.server import runs
from explorer.app.server.opened import Opened
from explorer.app.shell import changed
from explorer.figures.base import labels
from transformer import interventions as do

_GROUPS = {
    "Tokens": tokens.SORTS,
    "Heads": heads.HEADS,
    "Attention": attention.SORTS,
    "Arithmetic": heads.ARITHMETIC,
    "Another sentence": patching.SORTS,
}
_MOST = 64
"""Most words that can be clicked."""
_FORCED = (
    "While decoding, later tokens do not exist. So the causal mask can be lifted only over a finished "
    "translation: the page takes the one without changes and keeps to it."
)


def add(opened: Opened) -> None:
    """Lets the visitor hide a word, or choose another change and add it."""
    _words(opened)
    _others(opened)


def _words(opened: Opened) -> None:
    """The source as the model reads it; a click hides a token from cross-attention, or shows it again."""
    words = labels.names(opened.translation.source_tokens)[:_MOST]
    hidden = [at for at in range(len(words)) if do.hide(at) in session.current().changes]
    st.pills(
        "Click a word to hide it from cross-attention",
        range(len(words)),
        format_func=words.__getitem__,
        selection_mode="multi",
        default=hidden,
        width="stretch",
        **pickers.control("what-if.words", hidden, _hide, words),
    )
    if len(opened.translation.source_tokens) > _MOST:
        st.caption(f"The first {_MOST} tokens; a mask of cross-attention can hide any key.")


def _hide(chosen: list[int]) -> None:
    """Makes the chosen tokens those that are hidden, among the tokens that can be clicked."""
    items = changed.all_of(session.current())
    acting = [each.change for each in items if each.on]
    new = [change for at in chosen if (change := do.hide(at)) not in acting]
    over = [do.hide(at) for at in range(_MOST) if at not in chosen]
    kept = [each for each in items if each.change not in new and not (each.on and each.change in over)]
    changed.take([*kept, *(Listed(change, True) for change in new)])


@part
def _others(opened: Opened) -> None:
    group = st.segmented_control(
        "or change something else", list(_GROUPS), width="stretch", key="what-if.group"
    )
    if group is not None:
        _one(opened, _GROUPS[group])


def _one(opened: Opened, sorts: tuple[fields.Sort, ...]) -> None:
    change, problem = None, None
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="what-if-add"):
        with st.container(width=290):
            sort = sorts[st.selectbox("Change", range(len(sorts)), format_func=lambda i: sorts[i].label) or 0]
        try:
            change = sort.choose(opened)
            problem = None if change is None else runs.refusal(_with(opened, change))
        except ValueError as error:
            problem = str(error)
        wanted = st.button(
            "Add", type="primary", disabled=change is None or problem is not None, key="what-if.add"
        )
    if problem is not None:
        st.warning(plain(problem), icon=":material/error:")
    else:
        new = change is not None and changes.target_for(opened, change) != opened.asked.target
        st.caption(_FORCED if new else sort.says)
    if wanted and change is not None:
        changed.add(change, target=changes.target_for(opened, change))
        session.rerun()


def _with(opened: Opened, change: do.Intervention) -> runs.Request:
    """The request with one more change."""
    others = tuple(each for each in opened.asked.changes if each != change)
    return replace(opened.asked, changes=(*others, change), target=changes.target_for(opened, change))
