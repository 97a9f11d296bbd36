"""One query of one head, step by step: the cursor, the controls, and the sections under them."""

from __future__ import annotations

import numpy as np
import streamlit as st

from figures.base import labels
from transformer.lenses.inside import InsideHead
from ui.address import session
from ui.controls import pickers
from ui.linked_view import Layout, window_around
from ui.maps.explorer import Scene, chosen, explorer, head, place
from ui.server import runs
from ui.server.opened import Opened
from ui.views.inside import sections, what_if
from ui.views.inside.look import Look

KINDS = {"encoder": "encoder", "decoder": "masked decoder", "cross": "cross-attention"}
USUAL = "cross"
_STRIPS = {"encoder": ("source",), "decoder": ("target",), "cross": ("source", "target")}
_SEEING = (
    "One query of one head: everything between the residual stream and the residual stream. Purple is "
    "positive, amber "
    "negative, clear is zero; point at a cell for its number. Every number is the model's own for this "
    "sentence, and is "
    "recomputed by the formula beside it."
)
_FORMULA = r"\mathrm{head} = \mathrm{softmax}\!\left(\frac{(xW_Q)(aW_K)^{\top}}{\sqrt{d_k}}\right) aW_V"


def controls() -> None:
    """Chooses the kind of attention."""
    now = kind()
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
            "A head works like a look-up in a table: a **query** is compared with all **keys**, and hands "
            "out their **values**, the better the match the more.",
            width="stretch",
        )


def kind() -> str:
    """The kind that the page shows."""
    return session.current().kind or USUAL


def show(opened: Opened) -> None:
    """Draws the page for one sentence; the head is spoken of under the cursor, but not drawn there."""
    now = kind()
    cursor = "source" if now == "encoder" else "step"
    layout = Layout(f"inside-{now}", "page", _STRIPS[now], (), now, cursor)
    explorer(Scene(layout, opened, (now,), dict, lambda: _below(opened, now), follows=True))


def _below(opened: Opened, now: str) -> None:
    row = place(opened, now)[0]
    inside = runs.inside(opened.asked, opened.translation, now, chosen(now), row)
    key = _key(opened, inside, now)
    heads, keys, explanation = st.columns([1, 1, 2], gap="small", vertical_alignment="center")
    with heads:
        pickers.head_picker(now, opened.asked.model)
    with keys:
        _key_picker(inside, now, key)
    with explanation:
        pickers.seen("What am I seeing?", _SEEING, _FORMULA)
    window = window_around(len(inside.view.key_tokens), key)
    look = Look(opened, inside, head(opened, now), key, *window)
    for step in sections.FIRST:
        step(look)
    outcome = what_if.controls(look)
    for later in sections.LAST:
        later(look, outcome)


def _key(opened: Opened, inside: InsideHead, now: str) -> int:
    """The key that is looked at: in cross-attention the source token of the cursor, else the chosen one."""
    if now == "cross":
        return place(opened, now)[1]
    asked, count = session.current().key, len(inside.view.key_tokens)
    if asked is None:
        return int(np.argmax(inside.view.weights[0]))
    if asked >= count:
        st.info(f"This row has {count} keys; key {count} is shown.", icon=":material/info:")
    return min(asked, count - 1)


def _key_picker(inside: InsideHead, now: str, key: int) -> None:
    names = labels.names(inside.view.key_tokens, 20)
    weights = inside.view.weights[0]
    field = "source" if now == "cross" else "key"

    def name(position: int) -> str:
        return f"key {labels.count(position)}: {names[position]} ({weights[position]:.2f})"

    st.selectbox(
        "Key",
        range(len(names)),
        index=key,
        format_func=name,
        label_visibility="collapsed",
        **pickers.control(f"key.{now}", key, lambda each: session.change(**{field: int(each)})),
    )
