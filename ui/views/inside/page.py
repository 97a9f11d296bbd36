"""One query of one head, step by step: the cursor, the controls, and the sections under them."""

from __future__ import annotations

import numpy as np
import streamlit as st

from transformer.lenses.inside import InsideHead
from ui.address import session
from ui.address.parameters import State
from ui.controls import options, pickers
from ui.linked_view import Layout, window_around
from ui.maps.explorer import Scene, explorer, no_more
from ui.maps.looking import Looking, Looks
from ui.server import computed
from ui.server.opened import Opened
from ui.views.inside import sections, what_if
from ui.views.inside.look import Look

KINDS = {"encoder": "encoder", "decoder": "masked decoder", "cross": "cross-attention"}
USUAL = "cross"
_STRIPS = {"encoder": ("source",), "decoder": ("target",), "cross": ("source", "target")}
_SEEING = (
    "You see one query of one head: everything that the head reads from the residual stream, and everything "
    "that happens until its result is added back. Purple is positive, amber is negative, clear is zero. "
    "Point at a cell to see its number. Every number is the model's own for this sentence, and the formula "
    "beside it gives the same number again."
)
_FORMULA = r"\mathrm{head} = \mathrm{softmax}\!\left(\frac{(xW_Q)(aW_K)^{\top}}{\sqrt{d_k}}\right) aW_V"


def controls(state: State) -> None:
    """Chooses the kind of attention."""
    now = _kind(state)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.segmented_control(
            "Kind of attention",
            list(KINDS),
            default=now,
            format_func=KINDS.__getitem__,
            required=True,
            label_visibility="collapsed",
            width="content",
            **pickers.control("kind", now, lambda each: session.change(kind=None if each == USUAL else each)),
        )
        st.caption(
            "A head works like a look-up in a table. It compares a **query** with all **keys** and adds up "
            "their **values**: the better a key matches, the more its value counts.",
            width="stretch",
        )


def _kind(now: State) -> str:
    return now.kind or USUAL


def show(opened: Opened) -> None:
    """Draws the page for one sentence; the text under the cursor names the head, but no map shows it."""
    kind = _kind(session.current())
    cursor = "source" if kind == "encoder" else "step"
    layout = Layout(f"inside-{kind}", "page", _STRIPS[kind], (), kind, cursor)

    def below(now: State, looks: Looks) -> None:
        _below(looks[kind], now)

    explorer(Scene(layout, opened, (kind,), no_more, below, follows=True))


def _below(at: Looking, now: State) -> None:
    opened, kind = at.opened, at.kind
    inside = computed.inside(opened.asked, opened.translation, kind, at.head, at.cell[0])
    key = _key(at, inside, now.key)
    heads, keys, explanation = st.columns([1, 1, 2], gap="small", vertical_alignment="center")
    with heads:
        pickers.head_picker(kind, at.head, opened.asked.model)
    with keys:
        _key_picker(inside, kind, key)
    with explanation, st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"weight {inside.view.weights[0, key]:.2f}", width="content")
        pickers.seen("What am I seeing?", _SEEING, _FORMULA)
    window = window_around(len(inside.view.key_tokens), key)
    look = Look(opened, inside, at.as_recorded(), key, *window)
    for step in sections.FIRST:
        step(look)
    outcome = what_if.controls(look, now.what_if)
    for later in sections.LAST:
        later(look, outcome)


def _key(at: Looking, inside: InsideHead, asked: int | None) -> int:
    """The key under inspection: in cross-attention the source token at the cursor, else the chosen one."""
    if at.kind == "cross":
        return at.cell[1]
    count = len(inside.view.key_tokens)
    if asked is None:
        return int(np.argmax(inside.view.weights[0]))
    if asked >= count:
        st.info(f"This row has {count} keys; key {count} is shown.", icon=":material/info:")
    return min(asked, count - 1)


def _key_picker(inside: InsideHead, kind: str, key: int) -> None:
    names = options.keys(inside.view.key_tokens)
    field = "source" if kind == "cross" else "key"
    st.selectbox(
        "Key",
        list(names),
        index=key,
        format_func=names.__getitem__,
        label_visibility="collapsed",
        **pickers.control(
            f"key.{kind}", key, lambda each: session.change(**{field: int(each)}), names.values()
        ),
    )
